//! Uses of variables: the log entries for places and the code that accesses them.

use core::mem;
use core::ops::Range;

use proc_macro2::Ident;
use quote::quote_spanned;
use syn::spanned::Spanned;
use syn::{Expr, Pat, UnOp};

use super::Walker;
use super::macros::UnknownAccess;
use crate::binding::Reference;
use crate::captures::{Access, LongBorrow, Mention};
use crate::log::{Element, Kind, Projection, Variable};
use crate::places::{self, Index, Step, place};
use crate::shape;

impl Walker {
    /// Walks through the indices in a place, or through an expression that is no place.
    pub(super) fn steps(&mut self, expr: &mut Expr) {
        match expr {
            Expr::Path(_) => {}
            Expr::Paren(paren) => self.steps(&mut paren.expr),
            Expr::Group(group) => self.steps(&mut group.expr),
            Expr::Field(field) => self.steps(&mut field.base),
            Expr::Index(index) => {
                self.steps(&mut index.expr);
                let before = self.log.mentions.len();
                self.expr(&mut index.index);
                self.note_index(expr, before);
            }
            Expr::Unary(unary) if matches!(unary.op, UnOp::Deref(_)) => self.steps(&mut unary.expr),
            _ => self.expr(expr),
        }
    }

    /// Notes that mention number `number`, if it is the latest, is nothing but the index of the
    /// element `expr`.
    fn note_index(&mut self, expr: &Expr, number: usize) {
        let Some((name, steps)) = place(expr) else { return };
        let (Some(of), projection) = (self.find(name), self.projection(&steps)) else { return };
        if let [mention] = &mut self.log.mentions[number..]
            && steps.len() == projection.fields.len() + 1
            && projection.element == Some(Element::Variable(mention.variable))
            && !self.unsafe_code
        {
            mention.index_of = Some((of, projection));
        }
    }

    /// The variable of a place, after a walk through its indices. Notes the access if the variable
    /// is not found.
    fn reach(&mut self, expr: &mut Expr, access: UnknownAccess) -> Option<(Variable, Vec<Step>)> {
        self.steps(expr);
        self.note_unknown_place(expr, access);
        let (name, steps) = place(expr)?;
        Some((self.find(name)?, steps))
    }

    /// The projection that `steps` lead to.
    fn projection(&self, steps: &[Step]) -> Projection {
        let fields = places::fields(steps);
        let element = match steps.get(fields.len()) {
            Some(Step::Index(Some(Index::Number(number)))) => Some(Element::Number(*number)),
            Some(Step::Index(Some(Index::Name(name)))) => self
                .find(name)
                .filter(|&variable| {
                    let binding = &self.log.bindings[variable];
                    binding.copied && !binding.mutable && !binding.is_deferred()
                })
                .map(Element::Variable),
            _ => None,
        };
        Projection { fields, element }
    }

    /// Notes that `variable` is named, in a way that cannot be rewritten.
    pub(super) fn named(&mut self, variable: Variable, steps: &[Step], access: Access) {
        self.refused.push(variable);
        self.log_mention(variable, steps, access);
    }

    /// Notes that `variable` is named; if nothing is done with a part of it, that can be rewritten.
    fn used(&mut self, variable: Variable, steps: &[Step], access: Access) {
        self.note_use(variable, steps.is_empty());
        self.log_mention(variable, steps, access);
    }

    pub(super) fn log_mention(&mut self, variable: Variable, steps: &[Step], access: Access) {
        // Fields of a union are for unsafe code only.
        let projection =
            if self.unsafe_code { Projection::default() } else { self.projection(steps) };
        let (at, branch) = (self.log.entries.len(), self.branch);
        self.log.flow.mention(self.log.mentions.len());
        self.log.mentions.push(Mention {
            variable,
            projection,
            at,
            branch,
            access,
            index_of: None,
        });
    }

    /// Notes that `variable` is borrowed, and that the borrow may be stored.
    pub(super) fn note_borrow(&mut self, variable: Variable, steps: &[Step]) {
        if self.storing {
            let (fields, at) = (places::fields(steps), self.log.entries.len());
            let borrow = LongBorrow { variable, fields, at, until: None, holders: None };
            self.log.long_borrows.push(borrow);
        }
    }

    /// Ends the borrows of an expression.
    pub(super) fn end_borrows(&mut self, long_borrows: Range<usize>) {
        let end = self.log.entries.len();
        for borrow in &mut self.log.long_borrows[long_borrows] {
            borrow.until.get_or_insert(end);
        }
    }

    /// Walks through a read of `expr` by value.
    pub(super) fn read(&mut self, expr: &mut Expr) {
        if let Expr::Path(path) = &*expr {
            self.ask_function(&path.path);
        }
        if let Some((variable, steps)) = self.reach(expr, UnknownAccess::Read) {
            let copied = steps.iter().any(|step| matches!(step, Step::Index(_)));
            self.used(variable, &steps, if copied { Access::Use } else { Access::Move });
            self.mention(variable, &steps);
            self.pin_value(expr);
        }
    }

    /// Walks through a shared borrow of `expr`.
    pub(super) fn look(&mut self, expr: &mut Expr) {
        if let Some((variable, steps)) = self.reach(expr, UnknownAccess::Lend) {
            self.used(variable, &steps, Access::Use);
            self.mention(variable, &steps);
        }
    }

    /// Notes that a place of `variable` is accessible.
    pub(super) fn mention(&mut self, variable: Variable, steps: &[Step]) {
        self.push(variable, Kind::Read);
        self.push(variable, Kind::Mention(self.projection(steps)));
    }

    /// Walks through a change of `expr` in place, which shows that its variable is mutable.
    pub(super) fn change(&mut self, expr: &mut Expr, assigned: bool) {
        self.change_by(expr, assigned, Access::Use);
    }

    fn change_by(&mut self, expr: &mut Expr, assigned: bool, access: Access) {
        if let Some((variable, steps)) = self.reach(expr, UnknownAccess::Change) {
            let (own, projection) = (places::is_own(&steps), self.projection(&steps));
            self.named(variable, &steps, if own { access } else { Access::Use });
            if assigned && access == Access::Use {
                self.note_borrow(variable, &steps);
            }
            let binding = &mut self.log.bindings[variable];
            if !binding.mutable && !binding.is_deferred() && steps.len() == 1 {
                binding.reference = Reference::Mutable;
            }
            let assigned = assigned && own;
            match assigned {
                // It may have no value yet, or none any more.
                true => self.push(variable, Kind::Read),
                false => self.mention(variable, &steps),
            }
            self.push(variable, Kind::Change(assigned, projection));
        }
    }

    pub(super) fn assign(&mut self, left: &mut Expr) {
        match left {
            Expr::Tuple(tuple) => tuple.elems.iter_mut().for_each(|left| self.assign(left)),
            Expr::Array(array) => array.elems.iter_mut().for_each(|left| self.assign(left)),
            Expr::Call(call) => call.args.iter_mut().for_each(|left| self.assign(left)),
            Expr::Struct(data) => data.fields.iter_mut().for_each(|f| self.assign(&mut f.expr)),
            Expr::Paren(paren) => self.assign(&mut paren.expr),
            Expr::Infer(_) | Expr::Range(_) => {}
            Expr::Path(_) => {
                if let Some((variable, steps)) = self.reach(left, UnknownAccess::Change) {
                    let is_refused = self.inert;
                    self.log_mention(variable, &steps, Access::Assign);
                    if is_refused {
                        self.refused.push(variable);
                    }
                    self.push(variable, Kind::Assign);
                }
            }
            _ => self.change_by(left, true, Access::Assign),
        }
    }

    /// Walks through `expr` as an argument of code that may change what is behind it.
    pub(super) fn lend(&mut self, expr: &mut Expr) {
        if let Expr::Path(path) = &*expr {
            self.ask_function(&path.path);
        }
        if let Some((variable, steps)) = self.reach(expr, UnknownAccess::Lend) {
            self.used(variable, &steps, Access::Move);
            if self.log.bindings[variable].is_reference() {
                self.note_borrow(variable, &steps);
            }
            self.mention(variable, &steps);
            self.push(variable, Kind::Lend(places::fields(&steps)));
            // A reference that is carried later must not be moved.
            if steps.is_empty() && self.log.bindings[variable].is_reference() && !self.inert {
                let span = expr.span();
                *expr = Expr::Verbatim(quote_spanned!(span=> &mut *#expr));
            }
            self.pin_value(expr);
        }
    }

    pub(super) fn called(&mut self, function: &mut Expr) {
        if let Expr::Path(path) = &*function {
            self.ask_function(&path.path);
        }
        if let Some((variable, steps)) = self.reach(function, UnknownAccess::Lend) {
            self.named(variable, &steps, Access::Move);
            self.note_borrow(variable, &steps);
            let binding = &self.log.bindings[variable];
            let kind = match binding.mutable {
                true => Kind::Change(true, self.projection(&steps)),
                false => Kind::Lend(places::fields(&steps)),
            };
            self.mention(variable, &steps);
            self.push(variable, kind);
        }
    }

    /// Notes a function that observes state that is not handed over.
    fn ask_function(&mut self, path: &syn::Path) {
        let mut names = path.segments.iter().rev().map(|segment| &segment.ident);
        let (last, owner) = (names.next(), names.next());
        let is_local = owner.is_none() && last.is_some_and(|name| self.find(name).is_some());
        if !is_local && last.is_some_and(|name| places::asks_unseen_of(owner, name)) {
            self.push_event(Kind::Unseen);
        }
    }

    /// Walks through the receiver of a method. Returns the number of the call if the type of the
    /// receiver has to be tested.
    pub(super) fn receiver(&mut self, receiver: &mut Expr, method: &Ident) -> Option<usize> {
        let is_simple = shape::is_simple_place(receiver);
        if places::asks_unseen(method) {
            self.push_event(Kind::Unseen);
        }
        let access =
            if places::is_looker(method) { UnknownAccess::Read } else { UnknownAccess::Lend };
        let (variable, steps) = self.reach(receiver, access)?;
        let binding = &self.log.bindings[variable];
        let (mutable, lends) = (binding.mutable, binding.mutable || binding.is_reference());
        let looks = places::is_looker(method);
        self.used(variable, &steps, if looks { Access::Use } else { Access::Move });
        self.mention(variable, &steps);
        if !places::is_reader(method, mutable) {
            if lends && !places::is_taker(method) {
                self.note_borrow(variable, &steps);
            }
            let kind = match mutable {
                true => Kind::Change(true, self.projection(&steps)),
                false => Kind::Lend(places::fields(&steps)),
            };
            self.push(variable, kind);
            return None;
        }
        let binding = &self.log.bindings[variable];
        if self.inert
            || !is_simple
            || places::is_common(method)
            || !(mutable || binding.is_reference())
        {
            return None;
        }
        let number = self.log.methods;
        self.log.methods += 1;
        self.push(variable, Kind::Method(number));
        Some(number)
    }

    /// Walks through the expression that patterns are matched with.
    pub(super) fn scrutinee(&mut self, expr: &mut Expr, pattern: Option<&Pat>) -> bool {
        let names = pattern.map(shape::names).unwrap_or_default();
        let storing = mem::replace(&mut self.storing, true);
        self.in_condition(|walker| match place(expr) {
            Some(_) if !names.is_empty() => {
                // Not rewritten: a match does not move a place by itself.
                let inert = mem::replace(&mut walker.inert, true);
                walker.lend(expr);
                walker.inert = inert;
            }
            _ => walker.expr(expr),
        });
        self.storing = storing;
        names.iter().any(|name| name.by_ref.is_some() && name.mutability.is_some())
    }
}
