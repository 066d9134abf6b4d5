//! Tracked variables: those that may have a plain type (`phigrad::flow::Plain`) and of which each
//! use can be rewritten. Generated code keeps a shadow of each (`phigrad::flow::Shadow`).
//!
//! The first walk finds them: a mention refuses its variable unless it is one of the uses below.
//! The second walk rewrites the uses.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::{Expr, Pat, PatIdent};

use super::Walker;
use crate::hint::{self, Hint};
use crate::log::{Log, Variable};
use crate::tokens;

/// The name of the shadow of `variable`.
pub fn shadow(variable: Variable) -> Ident {
    format_ident!("__phigrad_shadow_{variable}", span = Span::mixed_site())
}

/// A call for `variable`, which has this name here.
pub fn track(name: &Ident, variable: Variable, call: &TokenStream) -> TokenStream {
    let (span, shadow) = (Span::mixed_site().located_at(name.span()), shadow(variable));
    // The place of the guards.
    let call = call.clone().into_iter().map(|mut token| {
        token.set_span(name.span());
        token
    });
    let call = TokenStream::from_iter(call);
    quote_spanned!(span=> (&::phigrad::flow::Track(&#name, &#shadow)).#call)
}

/// The declaration of the shadow of `variable`.
pub fn declaration(variable: Variable) -> TokenStream {
    let shadow = shadow(variable);
    quote_spanned! {Span::mixed_site()=>
        #[allow(unused_variables)]
        let #shadow = ::phigrad::flow::Shadow::new();
    }
}

/// The variable that `expr` names, if it is nothing else.
pub(super) fn bare(expr: &Expr) -> Option<&Ident> {
    match expr {
        Expr::Path(path) if path.qself.is_none() => path.path.get_ident(),
        Expr::Paren(paren) => bare(&paren.expr),
        Expr::Group(group) => bare(&group.expr),
        _ => None,
    }
}

impl Log {
    /// Tests whether a shadow stands for `variable`.
    pub fn is_tracked(&self, variable: Variable) -> bool {
        self.bindings[variable].tracked
    }
}

impl Walker {
    /// The variables that may be tracked, after the first walk.
    pub(super) fn trackable(&self) -> Vec<bool> {
        let log = &self.log;
        let is_assigned_inside = |variable: Variable| {
            let branch = log.bindings[variable].branch;
            log.updates.iter().any(|update| {
                update.variable == variable && log.entries[update.at].branch != branch
            })
        };
        let is_candidate = |(variable, binding): (Variable, &crate::binding::Binding)| {
            binding.hint.is_some()
                && !binding.opaque
                && !binding.is_closure()
                && !binding.is_reference()
                && !log.has_macros
                && !self.refused.contains(&variable)
                && is_assigned_inside(variable)
        };
        let mut tracked: Vec<bool> = log.bindings.iter().enumerate().map(is_candidate).collect();
        // Both of two swapped variables, or none.
        while let Some([first, second]) =
            self.swapped.iter().find(|[first, second]| tracked[*first] != tracked[*second])
        {
            (tracked[*first], tracked[*second]) = (false, false);
        }
        tracked
    }

    /// The tracked variable that `expr` names, if it is nothing else.
    pub(super) fn tracked(&self, expr: &Expr) -> Option<(Ident, Variable)> {
        let name = bare(expr)?;
        let variable = self.find(name)?;
        self.log.is_tracked(variable).then(|| (name.clone(), variable))
    }

    /// The tracked variables that `tokens` name.
    pub(super) fn names_tracked(&self, tokens: TokenStream) -> Vec<Variable> {
        let names = tokens::idents(tokens);
        let mut found: Vec<Variable> = names
            .iter()
            .filter_map(|name| self.find(name))
            .filter(|&v| self.log.is_tracked(v))
            .collect();
        found.dedup();
        found
    }

    /// The hint of the value of `expr`.
    pub(super) fn hint(&self, expr: &Expr) -> Option<Hint> {
        hint::of(expr, &|name| self.find(name).map(|variable| self.log.bindings[variable].hint))
    }

    /// Tests whether the value of `expr` is certainly a sequence of `Var`s.
    fn holds_vars(&self, expr: &Expr) -> bool {
        match expr {
            Expr::Path(_) => bare(expr)
                .and_then(|name| self.find(name))
                .is_some_and(|variable| self.log.bindings[variable].vars),
            Expr::Paren(paren) => self.holds_vars(&paren.expr),
            Expr::Reference(reference) => self.holds_vars(&reference.expr),
            Expr::MethodCall(call) => {
                ["to_vec", "clone", "to_owned"].iter().any(|name| call.method == name)
                    && self.holds_vars(&call.receiver)
            }
            Expr::Array(array) => array.elems.first().is_some_and(|first| self.is_var(first)),
            Expr::Repeat(repeat) => self.is_var(&repeat.expr),
            Expr::Macro(call) if call.mac.path.is_ident("vec") => tokens::arguments(&call.mac)
                .is_some_and(|elements| elements.first().is_some_and(|first| self.is_var(first))),
            _ => false,
        }
    }

    /// Tests whether the value of `expr` is certainly a `Var`: a constant, or an element.
    pub(super) fn is_var(&self, expr: &Expr) -> bool {
        match expr {
            Expr::Index(index) => {
                !matches!(*index.index, Expr::Range(_)) && self.holds_vars(&index.expr)
            }
            Expr::Call(call) => {
                let names = tokens::idents(call.func.to_token_stream());
                matches!(&names[..], [.., owner, _] if owner == "Var")
            }
            _ => false,
        }
    }

    /// Notes the hints of the variables of `pattern`, of which the first has number `first`.
    pub(super) fn note_hints(&mut self, pattern: &Pat, init: Option<&Expr>, first: Variable) {
        match (pattern, init) {
            (Pat::Ident(PatIdent { by_ref: None, subpat: None, ident, .. }), _) => {
                let known = init.map(|init| (self.hint(init), self.holds_vars(init)));
                self.set_hint(ident, first, false, known.unwrap_or_default());
                self.note_small(ident, first, init);
            }
            (Pat::Tuple(pair), Some(Expr::Tuple(values))) => {
                for (pattern, init) in pair.elems.iter().zip(&values.elems) {
                    self.note_hints(pattern, Some(init), first);
                }
            }
            (Pat::Tuple(_), Some(init)) => {
                if let Some(values) = hint::tuple_of(init).cloned() {
                    self.note_hints(pattern, Some(&Expr::Tuple(values)), first);
                }
            }
            (Pat::Type(typed), init) => {
                if let Pat::Ident(PatIdent { by_ref: None, ident, .. }) = &*typed.pat {
                    let vars = hint::is_vars(&typed.ty);
                    self.set_hint(ident, first, true, (hint::of_type(&typed.ty), vars));
                    self.note_small(ident, first, init);
                }
            }
            _ => {}
        }
    }

    /// Notes whether the new variable `name` begins with a small number.
    fn note_small(&mut self, name: &Ident, first: Variable, init: Option<&Expr>) {
        let is_small = init.is_some_and(|init| hint::is_small(init, hint::MAX_BEGIN));
        if let Some(variable) = self.find(name).filter(|&variable| variable >= first) {
            self.log.bindings[variable].is_small |= is_small;
        }
    }

    /// Declares the shadows of the variables from number `first` on around the current statement.
    pub(super) fn declare_shadows(&mut self, first: Variable, has_value: bool, is_pending: bool) {
        for variable in first..self.log.bindings.len() {
            if !self.log.is_tracked(variable) {
                continue;
            }
            self.before.push(declaration(variable));
            if has_value {
                let call = match is_pending {
                    true => quote!(assigned_pending()),
                    false => quote!(assigned()),
                };
                let call = track(&self.log.bindings[variable].name, variable, &call);
                self.after.push(quote!(#call;));
            }
        }
    }

    /// The declarations of the shadows of parameters.
    pub fn parameter_shadows(&self) -> Vec<TokenStream> {
        let bindings = self.log.bindings.iter().enumerate();
        let tracked = bindings.filter(|(_, binding)| binding.tracked && binding.is_parameter());
        let shadows = tracked.map(|(variable, binding)| {
            let declaration = declaration(variable);
            let call = track(&binding.name, variable, &quote!(assigned()));
            quote!(#declaration #call;)
        });
        shadows.collect()
    }

    /// The variables that determine how often a loop runs, if its condition or iterator names them
    /// all.
    pub(super) fn bound(&self, expr: &Expr) -> Option<Vec<Variable>> {
        let names = match expr {
            Expr::Binary(binary) if crate::types::is_question(&binary.op) => {
                let (left, right) = (hint::names(&binary.left)?, hint::names(&binary.right)?);
                left.into_iter().chain(right).collect()
            }
            Expr::Range(range) => {
                let ends = [&range.start, &range.end].into_iter().flatten();
                ends.map(|end| hint::names(end)).collect::<Option<Vec<_>>>()?.concat()
            }
            Expr::Paren(paren) => return self.bound(&paren.expr),
            Expr::MethodCall(call) if call.args.is_empty() => return self.bound(&call.receiver),
            Expr::Reference(reference) => hint::names(&reference.expr)?,
            _ => hint::names(expr)?,
        };
        // Other names are those of constants.
        Some(names.iter().filter_map(|name| self.find(name)).collect())
    }

    fn set_hint(
        &mut self,
        name: &Ident,
        first: Variable,
        typed: bool,
        (hint, vars): (Option<Hint>, bool),
    ) {
        if let Some(variable) = self.find(name).filter(|&variable| variable >= first) {
            let binding = &mut self.log.bindings[variable];
            (binding.hint, binding.vars) = (hint, vars);
            binding.typed = typed;
            binding.tracked =
                self.first_walk.tracked.get(variable).copied().unwrap_or(false) && !self.inert;
        }
    }
}
