//! Assignments: each one of a tracked variable is followed by one of its shadow.

use core::mem;

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::{BinOp, Expr, ExprBinary, UnOp};

use super::Walker;
use super::plain::{bare, shadow, track};
use crate::hint::{self, Hint};
use crate::log::Variable;
use crate::tokens;
use crate::uniform::Update;

impl Walker {
    /// Walks through an assignment.
    pub(super) fn assignment(&mut self, expr: &mut Expr) {
        let Expr::Assign(assign) = expr else { return };
        let (known, hint) = (self.is_known(&assign.right), self.hint(&assign.right));
        let from = hint::names(&assign.right);
        let from = from.and_then(|names| names.iter().map(|name| self.find(name)).collect());
        let is_small = hint::is_small(&assign.right, hint::MAX_BEGIN);
        let is_scrambled = hint::is_scrambled(&assign.right);
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
                self.refused.extend(is_scrambled.then_some(variable));
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
        let is_first =
            !self.log.updates.iter().rev().skip(1).any(|update| update.variable == variable);
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
        let is_small = hint::is_small(&binary.right, hint::MAX_STEP);
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
                _ => quote!(changed()),
            };
            let call = track(&name, variable, &call);
            *expr = Expr::Verbatim(quote!({ #expr; #call; }));
        }
    }

    /// Walks through `mem::swap` of two variables. Returns false if it is something else.
    pub(super) fn swap(&mut self, expr: &mut Expr) -> bool {
        let Expr::Call(call) = &mut *expr else { return false };
        let names = tokens::idents(call.func.to_token_stream());
        let is_swap = matches!(&names[..], [.., module, name] if module == "mem" && name == "swap");
        let lent = |argument: &Expr| match argument {
            Expr::Reference(reference) if reference.mutability.is_some() => {
                bare(&reference.expr).and_then(|name| self.find(name))
            }
            _ => None,
        };
        let variables: Vec<Variable> = call.args.iter().filter_map(lent).collect();
        let &[first, second] = &variables[..] else { return false };
        if !is_swap || self.inert || call.args.len() != 2 {
            return false;
        }
        let refused = self.refused.len();
        for (argument, variable) in call.args.iter_mut().zip([first, second]) {
            self.any(argument, true);
            let at = self.log.entries.len() - 1;
            self.log.updates.push(Update { at, variable, from: None, is_small: false });
        }
        self.refused.truncate(refused);
        self.log.flow.may_diverge();
        self.swapped.push([first, second]);
        if self.log.is_tracked(first) && self.log.is_tracked(second) {
            let (first, second) = (shadow(first), shadow(second));
            *expr = Expr::Verbatim(
                quote_spanned!(Span::mixed_site()=> { #expr; #first.swap(&#second); }),
            );
        }
        true
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
        self.is_pending = true;
        let shadow = shadow(target);
        let call =
            track(&name, variable, &quote_spanned!(Span::mixed_site()=> negate_to(&#shadow)));
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
}
