//! Aliases: variables that store references into others.

use proc_macro2::Ident;
use syn::punctuated::Punctuated;
use syn::{Expr, Token};

use super::Walker;
use crate::borrows;
use crate::log::{Kind, Variable};
use crate::places::{is_looker, place};

/// Methods of collections that store their arguments.
const KEEPERS: &[&str] = &["get_or_insert", "insert", "push", "push_back", "push_front", "replace"];

impl Walker {
    /// Walks through code whose bindings may have borrowed from `lenders`.
    pub(super) fn lent_by<R>(
        &mut self,
        lenders: Vec<Variable>,
        walk: impl FnOnce(&mut Self) -> R,
    ) -> R {
        let before = core::mem::replace(&mut self.lenders, lenders);
        let result = walk(self);
        self.lenders = before;
        result
    }

    /// The variables that the value of `expr` may have borrowed from.
    pub(super) fn lenders_of(&self, expr: &Expr, holds: bool) -> Vec<Variable> {
        let mut lenders = Vec::new();
        for (name, is_borrowed) in borrows::of(expr, holds) {
            let Some(variable) = self.find(&name) else { continue };
            let own = is_borrowed.then_some(variable);
            for lender in self.log.bindings[variable].lenders.iter().copied().chain(own) {
                if !lenders.contains(&lender) {
                    lenders.push(lender);
                }
            }
        }
        lenders
    }

    /// Notes that `left` stores references into what `right` has borrowed from.
    pub(super) fn alias(&mut self, left: &Expr, right: &Expr) {
        if let Some((name, steps)) = place(left)
            && let Some(holder) = self.find(name)
        {
            let holds = steps.is_empty() && self.log.bindings[holder].holder;
            let lenders = self.lenders_of(right, holds);
            self.note_aliases(holder, lenders);
        }
    }

    /// Notes that the receiver of a method may store its arguments.
    pub(super) fn alias_arguments(
        &mut self,
        receiver: &Expr,
        method: &Ident,
        arguments: &Punctuated<Expr, Token![,]>,
    ) {
        if let Some((name, _)) = place(receiver)
            && let Some(holder) = self.find(name)
            && (KEEPERS.iter().any(|keeper| method == keeper) || self.log.bindings[holder].holder)
            && !is_looker(method)
        {
            for argument in arguments.iter().filter(|a| !matches!(a, Expr::Closure(_))) {
                let lenders = self.lenders_of(argument, false);
                self.note_aliases(holder, lenders);
            }
        }
    }

    fn note_aliases(&mut self, holder: Variable, lenders: Vec<Variable>) {
        if self.log.bindings[holder].number {
            return;
        }
        for lender in lenders.into_iter().filter(|&lender| lender != holder) {
            self.push(lender, Kind::Alias(holder));
            self.log.bindings[holder].lenders.push(lender);
        }
    }
}
