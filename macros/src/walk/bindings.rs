//! Bindings: the facts known about a variable where it is declared.

use core::mem;

use proc_macro2::Ident;
use syn::{Expr, Local, Pat, Type, parse_quote};

use super::Walker;
use crate::binding::{Binding, Origin, Reference};
use crate::log::Variable;
use crate::places::{is_variable, place};
use crate::{shape, types};

/// The facts about the variables of a pattern; see [`Binding`].
#[derive(Clone, Copy, Default)]
pub struct Bound {
    pub known: bool,
    pub copied: bool,
    pub reference: Reference,
    pub origin: Origin,
    pub holder: bool,
    pub number: bool,
    /// The pattern may not match, so a name in it may be a constant.
    pub refutable: bool,
}

impl Walker {
    /// Walks through a declaration.
    pub(super) fn local(&mut self, local: &mut Local) {
        let long_borrows = self.log.long_borrows.len();
        let original = local.init.as_ref().map(|init| init.expr.clone());
        let (written, mut is_pending) = (local.pat.clone(), false);
        let mut refutable = false;
        let mut bound = Bound { origin: Origin::Deferred, ..Bound::default() };
        if let Some(init) = &mut local.init {
            bound.reference = self.reference(&init.expr);
            bound.origin = match &*init.expr {
                Expr::Closure(_) => Origin::Closure,
                _ => Origin::Value,
            };
            bound.holder = matches!(&*init.expr, Expr::Reference(_));
            bound.number = types::is_number(&init.expr);
            (bound.known, bound.copied) = (self.is_known(&init.expr), types::is_copied(&init.expr));
            let start = self.begin();
            let is_single = matches!(&local.pat, Pat::Ident(_))
                || matches!(&local.pat, Pat::Type(typed) if matches!(*typed.pat, Pat::Ident(_)));
            let target = self.first_walk.lets.get(self.lets.len()).copied();
            let is_tracked =
                |target: &Variable| self.first_walk.tracked.get(*target) == Some(&true);
            self.target = target.filter(is_tracked).filter(|_| is_single && !self.inert);
            let number = self.lets.len();
            self.lets.push(0);
            let pending = mem::take(&mut self.is_pending);
            self.storing(|walker| walker.argument(&mut init.expr));
            self.target = None;
            is_pending = mem::replace(&mut self.is_pending, pending);
            self.lets[number] = self.log.bindings.len();
            if bound.origin == Origin::Closure {
                let (variable, end) = (self.log.bindings.len(), self.log.entries.len());
                self.log.closures.push((variable, start, end));
            }
            if let Some((_, diverge)) = &mut init.diverge {
                let before = self.log.flow.fork();
                self.scoped(|walker| walker.expr(diverge));
                self.log.flow.continue_from(before);
                refutable = true;
            }
        }
        let mut pattern = &mut local.pat;
        if let Pat::Type(typed) = pattern {
            bound = Bound { origin: bound.origin, ..of_type(&typed.ty) };
            pattern = &mut typed.pat;
        }
        let first = self.log.bindings.len();
        let init = local.init.as_ref().map(|init| &*init.expr);
        let lenders = init.map(|init| self.lenders_of(init, bound.holder)).unwrap_or_default();
        let borrows = self
            .lent_by(lenders, |walker| walker.bind_pattern(pattern, Bound { refutable, ..bound }));
        let holders = first..self.log.bindings.len();
        self.note_hints(&written, original.as_deref(), first);
        self.declare_shadows(first, local.init.is_some(), is_pending);
        // A φ may replace it where paths join.
        if bound.origin == Origin::Deferred && shape::make_mutable(pattern) {
            local.attrs.push(parse_quote!(#[allow(unused_mut)]));
        }
        if let (true, Some(init)) = (borrows, &mut local.init) {
            self.storing(|walker| walker.change(&mut init.expr, true));
        }
        for borrow in &mut self.log.long_borrows[long_borrows..] {
            borrow.holders.get_or_insert(holders.clone());
        }
    }

    /// The knowledge whether the value of `expr` is a mutable reference.
    fn reference(&self, expr: &Expr) -> Reference {
        let is_known = match place(expr) {
            Some((name, steps)) if steps.is_empty() => {
                self.find(name).is_some_and(|variable| self.log.bindings[variable].is_reference())
            }
            _ => false,
        };
        match expr {
            Expr::Reference(reference) if reference.mutability.is_some() => Reference::Mutable,
            _ if is_known => Reference::Mutable,
            _ if shape::is_plain_value(expr) => Reference::NotMutable,
            _ => Reference::Unknown,
        }
    }

    pub fn bind(&mut self, name: &Ident, mutable: bool, bound: Bound) {
        let variable = self.log.bindings.len();
        let known = self.first_walk.references.get(variable).copied().unwrap_or(false);
        self.log.bindings.push(Binding {
            name: name.clone(),
            mutable,
            reference: if known { Reference::Mutable } else { bound.reference },
            origin: bound.origin,
            opaque: self.opaque.contains(name),
            known: bound.known,
            copied: bound.copied,
            holder: bound.holder,
            number: bound.number,
            lenders: self.lenders.clone(),
            at: self.log.entries.len(),
            branch: self.branch,
            typed: false,
            hint: None,
            tracked: false,
            is_small: bound.origin == Origin::Deferred,
            vars: false,
        });
        self.log.flow.declare(variable);
        self.scope.push(variable);
    }

    /// Binds the names of `pattern`. Returns whether it has a `ref mut`.
    pub fn bind_pattern(&mut self, pattern: &Pat, bound: Bound) -> bool {
        self.bind_macros(pattern);
        let mut names = shape::names(pattern);
        names.retain(|name| {
            // If a variable of this name exists, no constant does.
            let ident = &name.ident;
            let is = !bound.refutable || is_variable(name) || self.find(ident).is_some();
            if !is {
                self.uncertain_names.push((ident.clone(), self.log.entries.len()));
            }
            is
        });
        let single = matches!(pattern, Pat::Ident(_));
        for name in &names {
            let by_ref = name.by_ref.is_some();
            let reference = match bound.reference {
                _ if by_ref && name.mutability.is_some() => Reference::Mutable,
                Reference::Mutable if single && !by_ref => Reference::Mutable,
                Reference::NotMutable if single => Reference::NotMutable,
                _ => Reference::Unknown,
            };
            let copied = bound.copied && single && !by_ref;
            let mutable = name.mutability.is_some() && !by_ref;
            self.bind(&name.ident, mutable, Bound { reference, copied, ..bound });
        }
        names.iter().any(|name| name.by_ref.is_some() && name.mutability.is_some())
    }

    pub fn bind_parameter(&mut self, pattern: &Pat, bound: Bound) {
        match pattern {
            Pat::Type(typed) => {
                let first = self.log.bindings.len();
                let bound = Bound { origin: bound.origin, ..of_type(&typed.ty) };
                self.bind_pattern(&typed.pat, bound);
                self.note_hints(pattern, None, first);
            }
            _ => {
                self.bind_pattern(pattern, bound);
            }
        }
    }
}

/// The facts that a type tells about a variable.
pub fn of_type(ty: &Type) -> Bound {
    match ty {
        Type::Reference(reference) if reference.mutability.is_some() => {
            let known = types::is_known_type(ty);
            Bound { reference: Reference::Mutable, known, holder: true, ..Bound::default() }
        }
        Type::Paren(paren) => of_type(&paren.elem),
        Type::Group(group) => of_type(&group.elem),
        _ => Bound {
            reference: match shape::is_plain_type(ty) {
                true => Reference::NotMutable,
                false => Reference::Unknown,
            },
            known: types::is_known_type(ty),
            copied: types::is_copied_type(ty),
            holder: shape::has_lifetime(quote::ToTokens::to_token_stream(ty)),
            number: types::is_number_type(ty),
            ..Bound::default()
        },
    }
}
