//! Pins: reads of tracked variables become reads after guards on their shadows.

use core::mem;

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{BinOp, Expr};

use super::Walker;
use super::plain::{bare, shadow, track};
use crate::hint;
use crate::log::Variable;
use crate::places::place;

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

impl Walker {
    /// Notes a use of the whole of `variable`: it refuses the variable unless it can be rewritten.
    pub(super) fn note_use(&mut self, variable: Variable, is_bare: bool) {
        if !is_bare || (self.inert && self.pins.is_none() && !self.is_scrutinee) {
            self.refused.push(variable);
        } else if self.log.is_tracked(variable)
            && let Some(pins) = &mut self.pins
        {
            pins.push(variable);
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
            *expr =
                Expr::Verbatim(quote_spanned!(Span::mixed_site()=> (match #call { () => #expr })));
        }
    }

    /// The statements that pin what a macro reads.
    pub(super) fn pins_of(&self, mut pins: Vec<Variable>) -> Vec<TokenStream> {
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
        let with_known = |name: &Ident, variable: Variable, comparison: &str, known: &Expr| {
            let op = named(comparison);
            let call = quote_spanned!(span=> compare(::phigrad::flow::Comparison::#op, &(#known)));
            Some(track(name, variable, &call))
        };
        let call = match (&sides, integers) {
            ([Some((name, variable)), Some((other, shadow))], [true, true]) => {
                let (op, shadow) = (named(names[0]), self::shadow(*shadow));
                let call = quote_spanned! {span=>
                    compare_with(::phigrad::flow::Comparison::#op, &#other, &#shadow)
                };
                Some(track(name, *variable, &call))
            }
            ([Some((name, variable)), None], [true, _]) if self.is_known_twice(&original.right) => {
                with_known(name, *variable, names[0], &binary.right)
            }
            ([None, Some((name, variable))], [_, true]) if self.is_known_twice(&original.left) => {
                with_known(name, *variable, names[1], &binary.left)
            }
            _ => None,
        };
        if let Some(call) = call {
            *expr = Expr::Verbatim(quote_spanned!(span=> (match #call { () => #original })));
            return;
        }
        for (side, operand) in [&mut *binary.left, &mut *binary.right].into_iter().enumerate() {
            if let Some((name, variable)) = &sides[side] {
                *operand = Self::pinned_place(name, *variable);
            }
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
            Expr::Index(_) if !self.inert && !self.is_hoisted && self.is_var(expr) => {
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
}
