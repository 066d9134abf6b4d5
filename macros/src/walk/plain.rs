//! Tracked variables: those that may be plain, and of which each use can be rewritten. Generated
//! code keeps a shadow of each (`phigrad::flow::Shadow`).
//!
//! The first walk finds them: a mention refuses its variable unless it is one of the uses below.
//! The second walk rewrites the uses.

use core::mem;

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{BinOp, Expr, ExprBinary, Pat, PatIdent, UnOp};

use super::Walker;
use crate::hint::{self, Hint};
use crate::log::{Log, Variable};
use crate::places::place;
use crate::tokens;
use crate::uniform::Update;

/// The name of the shadow of `variable`.
pub fn shadow(variable: Variable) -> Ident {
    format_ident!("__phigrad_shadow_{variable}", span = Span::mixed_site())
}

/// A call for `variable`, which has this name here.
pub fn track(name: &Ident, variable: Variable, call: &TokenStream) -> TokenStream {
    let (span, shadow) = (Span::mixed_site().located_at(name.span()), shadow(variable));
    // The place of the guards.
    let call = call.clone().into_iter().map(|mut token| {
        token.set_span(token.span().located_at(name.span()));
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

/// The name of the comparison, and of the one with exchanged operands.
fn comparison(op: &BinOp) -> Option<[&'static str; 2]> {
    Some(match op {
        BinOp::Lt(_) => ["Less", "Greater"],
        BinOp::Le(_) => ["AtMost", "AtLeast"],
        BinOp::Gt(_) => ["Greater", "Less"],
        BinOp::Ge(_) => ["AtLeast", "AtMost"],
        BinOp::Eq(_) => ["Equal", "Equal"],
        BinOp::Ne(_) => ["Differs", "Differs"],
        _ => return None,
    })
}

impl Log {
    /// Tests whether a shadow stands for `variable`.
    fn is_tracked(&self, variable: Variable) -> bool {
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
        let is_trackable = |(variable, binding): (Variable, &crate::binding::Binding)| {
            binding.hint.is_some()
                && !binding.opaque
                && !binding.is_closure()
                && !binding.is_reference()
                && !log.has_macros
                && !self.refused.contains(&variable)
                && is_assigned_inside(variable)
        };
        log.bindings.iter().enumerate().map(is_trackable).collect()
    }

    /// The tracked variable that `expr` names, if it is nothing else.
    pub(super) fn tracked(&self, expr: &Expr) -> Option<(Ident, Variable)> {
        let name = bare(expr)?;
        let variable = self.find(name)?;
        self.log.is_tracked(variable).then(|| (name.clone(), variable))
    }

    /// Tests whether `tokens` name a tracked variable.
    fn names_tracked(&self, tokens: TokenStream) -> Vec<Variable> {
        let names = tokens::idents(tokens);
        let mut found: Vec<Variable> =
            names.iter().filter_map(|name| self.find(name)).filter(|&v| self.log.is_tracked(v)).collect();
        found.dedup();
        found
    }

    /// The hint of the value of `expr`.
    pub(super) fn hint(&self, expr: &Expr) -> Option<Hint> {
        hint::of(expr, &|name| self.find(name).map(|variable| self.log.bindings[variable].hint))
    }

    /// Tests whether the value of `expr` is certainly a `Var` or a collection of them.
    pub(super) fn holds_vars(&self, expr: &Expr) -> bool {
        match expr {
            Expr::Path(path) => path
                .path
                .get_ident()
                .and_then(|name| self.find(name))
                .is_some_and(|variable| self.log.bindings[variable].vars),
            Expr::Paren(paren) => self.holds_vars(&paren.expr),
            Expr::Reference(reference) => self.holds_vars(&reference.expr),
            Expr::Index(index) => self.holds_vars(&index.expr),
            Expr::MethodCall(call) => {
                ["to_vec", "clone", "to_owned"].iter().any(|name| call.method == name)
                    && self.holds_vars(&call.receiver)
            }
            Expr::Array(array) => array.elems.iter().any(|element| self.holds_vars(element)),
            Expr::Repeat(repeat) => self.holds_vars(&repeat.expr),
            Expr::Call(call) => tokens::idents(call.func.to_token_stream()).iter().any(|n| n == "Var"),
            Expr::Macro(call) if call.mac.path.is_ident("vec") => tokens::arguments(&call.mac)
                .is_some_and(|elements| elements.first().is_some_and(|e| self.holds_vars(e))),
            _ => false,
        }
    }

    /// Notes the hints of the variables of `pattern`, of which the first has number `first`.
    pub(super) fn note_hints(&mut self, pattern: &Pat, init: Option<&Expr>, first: Variable) {
        match (pattern, init) {
            (Pat::Ident(PatIdent { by_ref: None, subpat: None, ident, .. }), _) => {
                let known = init.map(|init| (self.hint(init), self.holds_vars(init)));
                let is_small = init.is_some_and(|init| hint::is_small(init, hint::BEGIN));
                self.set_hint(ident, first, false, known.unwrap_or_default());
                if let Some(variable) = self.find(ident).filter(|&variable| variable >= first) {
                    self.log.bindings[variable].is_small |= is_small;
                }
            }
            (Pat::Tuple(pair), Some(Expr::Tuple(values))) if pair.elems.len() == values.elems.len() => {
                for (pattern, init) in pair.elems.iter().zip(&values.elems) {
                    self.note_hints(pattern, Some(init), first);
                }
            }
            (Pat::Type(typed), init) => {
                if let Pat::Ident(PatIdent { by_ref: None, ident, .. }) = &*typed.pat {
                    let names = tokens::idents(typed.ty.to_token_stream());
                    let vars = names.iter().any(|name| name == "Var");
                    self.set_hint(ident, first, true, (hint::of_type(&typed.ty), vars));
                    let is_small = init.is_some_and(|init| hint::is_small(init, hint::BEGIN));
                    if let Some(variable) = self.find(ident).filter(|&variable| variable >= first) {
                        self.log.bindings[variable].is_small |= is_small;
                    }
                }
            }
            _ => {}
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

    /// Walks through the iterator of a loop. Returns the statements that pin what it reads before
    /// the loop's region: in the region, a decision before the first item hides its position.
    pub(super) fn iterator(&mut self, expr: &mut Expr) -> Vec<TokenStream> {
        let is_hoisted = !self.inert
            && hint::is_hoistable(expr)
            && !self.names_tracked(expr.to_token_stream()).is_empty();
        let pins = is_hoisted.then(Vec::new);
        let (outer, hoisted) = match is_hoisted {
            true => (mem::replace(&mut self.pins, pins), mem::replace(&mut self.is_hoisted, true)),
            false => (None, false),
        };
        self.in_condition(|walker| walker.storing(|walker| walker.argument(expr)));
        if !is_hoisted {
            return Vec::new();
        }
        self.is_hoisted = hoisted;
        let pins = mem::replace(&mut self.pins, outer);
        self.pins_of(pins.unwrap_or_default())
    }

    /// The names that determine how often a loop runs, if they are all in its condition or iterator.
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
        let is_constant = |name: &&Ident| self.find(name).is_some();
        names.iter().filter(is_constant).map(|name| self.find(name)).collect()
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

    /// Notes a use of the whole of `variable`: it refuses the variable unless it can be rewritten.
    pub(super) fn note_use(&mut self, variable: Variable, is_bare: bool) {
        if !is_bare || (self.inert && self.pins.is_none() && !self.is_scrutinee) {
            self.refused.push(variable);
        } else if self.log.is_tracked(variable) {
            self.log.pinned.push((self.log.entries.len(), variable));
            if let Some(pins) = &mut self.pins {
                pins.push(variable);
            }
        }
    }

    /// Rewrites a read of a variable by value.
    pub(super) fn pin_value(&mut self, expr: &mut Expr) {
        let target = self.target.take();
        if self.inert || self.is_scrutinee || self.is_compared || self.is_hoisted {
            return;
        }
        let Some((name, variable)) = self.tracked(expr) else { return };
        let call = match target {
            Some(target) => {
                self.log.pinned.pop();
                self.is_pending = true;
                let shadow = shadow(target);
                quote_spanned!(Span::mixed_site()=> copy_to(&#shadow))
            }
            None => quote_spanned!(Span::mixed_site()=> pin()),
        };
        let call = track(&name, variable, &call);
        *expr = Expr::Verbatim(quote_spanned!(Span::mixed_site()=> (match #call { () => #expr })));
    }

    /// Rewrites a shared borrow of a variable.
    pub(super) fn pin_reference(&mut self, expr: &mut Expr) {
        if let Expr::Reference(reference) = &*expr
            && !self.inert
            && !self.is_hoisted
            && let Some((name, variable)) = self.tracked(&reference.expr)
        {
            *expr = Expr::Verbatim(track(&name, variable, &quote!(pinned())));
        }
    }

    /// A place that reads a variable.
    fn pinned_place(name: &Ident, variable: Variable) -> Expr {
        let call = track(name, variable, &quote!(pinned()));
        Expr::Verbatim(quote_spanned!(Span::mixed_site()=> (*#call)))
    }

    /// Walks through the expression of an `if let` or `while let` without bindings.
    pub(super) fn pin_condition(&mut self, expr: &mut Expr) {
        if !self.inert
            && let Some((name, variable)) = self.tracked(expr)
        {
            *expr = Self::pinned_place(&name, variable);
        }
    }

    /// Wraps `expr`, a `match`, if it matches a tracked variable.
    pub(super) fn pin_match(&mut self, expr: &mut Expr) {
        let Expr::Match(choice) = &*expr else { return };
        if !self.inert
            && let Some((name, variable)) = self.tracked(&choice.expr)
        {
            let call = track(&name, variable, &quote!(pin()));
            *expr = Expr::Verbatim(quote_spanned!(Span::mixed_site()=> { #call; #expr }));
        }
    }

    /// Rewrites a method call on a tracked variable; `receiver` is the former receiver.
    pub(super) fn pin_call(&mut self, receiver: &Expr, expr: &mut Expr) {
        if !self.inert
            && !self.is_hoisted
            && let Some((name, variable)) = self.tracked(receiver)
        {
            let call = track(&name, variable, &quote!(pin()));
            *expr = Expr::Verbatim(quote_spanned!(Span::mixed_site()=> (match #call { () => #expr })));
        }
    }

    /// The statements that pin what a macro reads.
    pub(super) fn pins_of(&self, pins: Vec<Variable>) -> Vec<TokenStream> {
        let mut pins = pins;
        pins.sort_unstable();
        pins.dedup();
        let pin = |variable: Variable| {
            let name = &self.log.bindings[variable].name;
            let call = track(name, variable, &quote!(pin()));
            quote_spanned!(Span::mixed_site()=> #call;)
        };
        pins.into_iter().map(pin).collect()
    }

    /// Tests whether `expr` can be evaluated twice, and the second time without pins.
    fn is_known_twice(&self, expr: &Expr) -> bool {
        let is_unread = || self.names_tracked(expr.to_token_stream()).is_empty();
        hint::is_repeatable(expr) && (hint::names(expr).is_some() || is_unread())
    }

    /// Walks through a comparison. One with a tracked integer is a comparison of its shadow.
    pub(super) fn compare(&mut self, expr: &mut Expr) {
        let Expr::Binary(binary) = expr else { return };
        let Some(names) = comparison(&binary.op) else { return };
        let original = binary.clone();
        let sides = [self.tracked(&binary.left), self.tracked(&binary.right)];
        let is_integer = |side: &Option<(Ident, Variable)>| {
            let hint = side.as_ref().and_then(|(_, variable)| self.log.bindings[*variable].hint);
            hint.is_some_and(|hint| hint.integer)
        };
        let integers = [is_integer(&sides[0]), is_integer(&sides[1])];
        let pinned = self.log.pinned.len();
        for (side, operand) in [&mut *binary.left, &mut *binary.right].into_iter().enumerate() {
            let compared = mem::replace(&mut self.is_compared, sides[side].is_some());
            self.any(operand, true);
            self.is_compared = compared;
        }
        if self.inert || self.is_hoisted {
            return;
        }
        let span = Span::mixed_site();
        let named = |name: &str| format_ident!("{name}", span = span);
        let call = match (&sides, integers) {
            ([Some((name, variable)), Some((other, shadow))], [true, true]) => {
                let (op, shadow) = (named(names[0]), self::shadow(*shadow));
                let call = quote_spanned! {span=>
                    compare_with(::phigrad::flow::Comparison::#op, &#other, &#shadow)
                };
                Some(track(name, *variable, &call))
            }
            ([Some((name, variable)), None], [true, _]) if self.is_known_twice(&original.right) => {
                let (op, other) = (named(names[0]), &binary.right);
                let call =
                    quote_spanned!(span=> compare(::phigrad::flow::Comparison::#op, &(#other)));
                Some(track(name, *variable, &call))
            }
            ([None, Some((name, variable))], [_, true]) if self.is_known_twice(&original.left) => {
                let (op, other) = (named(names[1]), &binary.left);
                let call =
                    quote_spanned!(span=> compare(::phigrad::flow::Comparison::#op, &(#other)));
                Some(track(name, *variable, &call))
            }
            _ => None,
        };
        if let Some(call) = call {
            // The comparison needs no search.
            let own: Vec<Variable> = sides.iter().flatten().map(|(_, variable)| *variable).collect();
            let later = self.log.pinned.split_off(pinned);
            self.log.pinned.extend(later.into_iter().filter(|(_, other)| !own.contains(other)));
            *expr = Expr::Verbatim(quote_spanned!(span=> (match #call { () => #original })));
            return;
        }
        for (side, operand) in [&mut *binary.left, &mut *binary.right].into_iter().enumerate() {
            if let Some((name, variable)) = &sides[side] {
                *operand = Self::pinned_place(name, *variable);
            }
        }
    }

    /// Walks through `!v` for the assignment to `target`. Returns false if it is something else.
    pub(super) fn negation(&mut self, expr: &mut Expr, target: Variable) -> bool {
        let Expr::Unary(unary) = &*expr else { return false };
        let (UnOp::Not(_), Some((name, variable))) = (&unary.op, self.tracked(&unary.expr)) else {
            return false;
        };
        if self.inert {
            return false;
        }
        let mut inner = unary.expr.clone();
        let compared = mem::replace(&mut self.is_compared, true);
        self.any(&mut inner, true);
        self.is_compared = compared;
        self.log.pinned.pop();
        self.is_pending = true;
        let shadow = shadow(target);
        let call = track(&name, variable, &quote_spanned!(Span::mixed_site()=> negate_to(&#shadow)));
        *expr = Expr::Verbatim(quote_spanned!(Span::mixed_site()=> (match #call { () => #expr })));
        true
    }

    /// Walks through the sum or difference of a tracked integer and something known, for the
    /// assignment to `target`. Returns false if it is something else.
    pub(super) fn sum(&mut self, expr: &mut Expr, target: Variable) -> bool {
        let Expr::Binary(ExprBinary { left, right, op, .. }) = &*expr else { return false };
        let subtracts = matches!(op, BinOp::Sub(_));
        if self.inert || !matches!(op, BinOp::Add(_) | BinOp::Sub(_)) {
            return false;
        }
        let is_integer = |expr: &Expr| self.hint(expr).is_some_and(|hint| hint.integer);
        let first = self.tracked(left).filter(|_| is_integer(left));
        let other = self.tracked(right).filter(|_| is_integer(right) && !subtracts);
        let is_known = |expr: &Expr| is_integer(expr) && hint::is_repeatable(expr);
        let (name, variable, is_first) = match (first, other) {
            (Some((name, variable)), _) if is_known(right) => (name, variable, true),
            (None, Some((name, variable))) if is_known(left) => (name, variable, false),
            _ => return false,
        };
        let Expr::Binary(ExprBinary { left, right, .. }) = expr else { return false };
        for (operand, is_own) in [(left, is_first), (right, !is_first)] {
            let compared = mem::replace(&mut self.is_compared, is_own);
            self.any(operand, true);
            self.is_compared = compared;
            if is_own {
                self.log.pinned.pop();
            }
        }
        self.is_pending = true;
        let (span, shadow) = (Span::mixed_site(), shadow(target));
        let copy = track(&name, variable, &quote_spanned!(span=> copy_to(&#shadow)));
        *expr = Expr::Verbatim(quote_spanned! {span=>
            (match #expr {
                __phigrad_sum => {
                    #copy;
                    (&::phigrad::flow::Track(&__phigrad_sum, &#shadow)).sum_to(&#shadow, #subtracts);
                    __phigrad_sum
                }
            })
        });
        true
    }

    /// Walks through an assignment.
    pub(super) fn assignment(&mut self, expr: &mut Expr) {
        let Expr::Assign(assign) = expr else { return };
        let (known, hint) = (self.is_known(&assign.right), self.hint(&assign.right));
        let from = hint::names(&assign.right);
        let from = from.and_then(|names| names.iter().map(|name| self.find(name)).collect());
        let is_small = hint::is_small(&assign.right, hint::BEGIN);
        let diverges = crate::shape::diverges(&assign.right);
        let target = self.tracked(&assign.left).map(|(_, variable)| variable);
        let pending = mem::take(&mut self.is_pending);
        let mut pendings = Vec::new();
        match (&*assign.left, &mut *assign.right) {
            (Expr::Tuple(left), Expr::Tuple(right))
                if left.elems.len() == right.elems.len() && !self.inert =>
            {
                for (left, right) in left.elems.iter().zip(&mut right.elems) {
                    let target = self.tracked(left).map(|(_, variable)| variable);
                    self.target = target;
                    self.storing(|walker| walker.argument(right));
                    self.target = None;
                    if mem::take(&mut self.is_pending) {
                        pendings.extend(target);
                    }
                }
            }
            (_, right) => {
                self.target = target;
                self.storing(|walker| walker.expr(right));
                self.target = None;
                if mem::take(&mut self.is_pending) {
                    pendings.extend(target);
                }
            }
        }
        self.is_pending = pending;
        let first = self.log.entries.len();
        self.assign(&mut assign.left);
        let is_whole = bare(&assign.left).is_some();
        let mut changed = Vec::new();
        for at in first..self.log.entries.len() {
            let entry = &self.log.entries[at];
            if let (Some(variable), crate::log::Kind::Assign) = (entry.variable, &entry.kind) {
                let from = from.clone().filter(|_| is_whole);
                self.log.updates.push(Update { at, variable, from, is_small });
                if self.log.is_tracked(variable) {
                    changed.push(variable);
                }
                self.defer_hint(variable, hint.filter(|_| is_whole));
            }
        }
        self.set_type(&assign.left, known);
        self.alias(&assign.left, &assign.right);
        if changed.is_empty() || diverges || self.inert {
            return;
        }
        let begins = pendings.iter().map(|&variable| {
            let shadow = shadow(variable);
            quote_spanned!(Span::mixed_site()=> #shadow.begin();)
        });
        let notes = changed.iter().map(|&variable| {
            let call = match pendings.contains(&variable) {
                true => quote!(assigned_pending()),
                false => quote!(assigned()),
            };
            let call = track(&self.log.bindings[variable].name, variable, &call);
            quote!(#call;)
        });
        *expr = Expr::Verbatim(quote!({ #(#begins)* #expr; #(#notes)* }));
    }

    /// Sets the hint of a variable declared without a value and a type.
    fn defer_hint(&mut self, variable: Variable, hint: Option<Hint>) {
        let is_first = !self.log.updates.iter().rev().skip(1).any(|update| update.variable == variable);
        let binding = &mut self.log.bindings[variable];
        if !binding.is_deferred() {
            return;
        }
        match (binding.hint, hint) {
            (None, Some(_)) if is_first => binding.hint = hint,
            // Its type may not be known there.
            (_, None) if !binding.typed => self.refused.push(variable),
            _ => {}
        }
    }

    /// The call after a tracked variable was added to, or subtracted from. All uses of the variable
    /// have to be known to tell whether it is a counter.
    fn adding(&self, variable: Variable, subtracts: bool) -> TokenStream {
        let counts = format_ident!("__phigrad_counts_{variable}", span = Span::mixed_site());
        quote!(added(#subtracts, #counts))
    }

    /// Walks through `v += e` and the like.
    pub(super) fn operator_assignment(&mut self, expr: &mut Expr) {
        let Expr::Binary(binary) = expr else { return };
        let is_small = hint::is_small(&binary.right, hint::STEP);
        let names = hint::names(&binary.right);
        let from = names.and_then(|names| names.iter().map(|name| self.find(name)).collect());
        self.expr(&mut binary.right);
        let Some(variable) = bare(&binary.left).and_then(|name| self.find(name)) else {
            return self.change(&mut binary.left, false);
        };
        let refused = self.refused.len();
        self.change(&mut binary.left, false);
        self.refused.truncate(refused);
        if self.inert {
            self.refused.push(variable);
            return;
        }
        let at = self.log.entries.len() - 1;
        let is_step = matches!(binary.op, BinOp::AddAssign(_) | BinOp::SubAssign(_));
        let is_small = is_step && is_small;
        self.log.updates.push(Update { at, variable, from, is_small });
        if let Some((name, variable)) = self.tracked(&binary.left) {
            let call = match binary.op {
                BinOp::AddAssign(_) => self.adding(variable, false),
                BinOp::SubAssign(_) => self.adding(variable, true),
                _ => {
                    self.log.pinned.push((at, variable));
                    quote!(changed())
                }
            };
            let call = track(&name, variable, &call);
            *expr = Expr::Verbatim(quote!({ #expr; #call; }));
        }
    }

    /// Walks through the read of an element. One whose index is tracked is a region of its own, so
    /// that the paths of the search for the index join.
    pub(super) fn element(&mut self, expr: &mut Expr) {
        self.element_by(expr, Self::read);
    }

    /// Walks through an element that is an argument.
    pub(super) fn lend_element(&mut self, expr: &mut Expr) {
        self.element_by(expr, Self::lend);
    }

    fn element_by(&mut self, expr: &mut Expr, walk: fn(&mut Self, &mut Expr)) {
        let tracked = match &*expr {
            Expr::Index(_) if !self.inert && !self.is_hoisted && self.holds_vars(expr) => {
                self.names_tracked(expr.to_token_stream())
            }
            _ => Vec::new(),
        };
        if tracked.is_empty() {
            return walk(self, expr);
        }
        let (span, start) = (expr.span(), self.begin());
        walk(self, expr);
        let shadows = tracked.into_iter().map(shadow);
        let needed = quote_spanned!(Span::mixed_site()=> false #(|| #shadows.is_traced())*);
        *expr = self.region_if(span, start, &quote!(#expr), &needed);
    }

    /// Tests whether a method call can be wrapped: no argument is a temporary that the result may
    /// borrow.
    pub(super) fn can_wrap<'a>(arguments: impl IntoIterator<Item = &'a Expr>) -> bool {
        arguments.into_iter().all(|argument| match argument {
            Expr::Reference(reference) => bare(&reference.expr).is_some(),
            Expr::Call(call) => Self::can_wrap(&call.args),
            Expr::MethodCall(call) => place(&call.receiver).is_some() && Self::can_wrap(&call.args),
            Expr::Macro(_) => false,
            _ => true,
        })
    }
}
