//! `for` loops. A body that changes what its items refer to is a region of its own, at the end of
//! which the loop saves the state of its items.

use core::mem;

use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::{Block, Expr, Lifetime, Pat};

use super::regions::{attributed, name_of};
use super::{Body, Bound, Walker, enter, join};
use crate::binding::{Origin, Reference};
use crate::log::{Kind, Role};
use crate::places;
use crate::shape;

impl Walker {
    pub(super) fn for_loop(&mut self, expr: &mut Expr) {
        let start = self.begin();
        let index = self.changing.len();
        self.changing.push(false);
        let Expr::ForLoop(for_expr) = expr else { return };
        let changing = self.first_walk.changing.get(index).copied().unwrap_or(false) && !self.inert;
        let shared = shape::shares_items(&for_expr.expr) || self.is_plain(&for_expr.expr);
        let lends = places::lends_items(&for_expr.expr);
        let numbered = places::lends_numbered_items(&for_expr.expr);
        let stateful = shape::has_closure(&for_expr.expr);
        let bound = self.bound(&for_expr.expr);
        let known = self.is_known(&for_expr.expr);
        let lenders = self.lenders_of(&for_expr.expr, false);
        let borrowed = self.log.long_borrows.len();
        let pins = self.iterator(&mut for_expr.expr);
        let borrowed = borrowed..self.log.long_borrows.len();
        let stateful = stateful
            && self.log.entries[start..]
                .iter()
                .any(|e| matches!(e.kind, Kind::Change(..) | Kind::Assign | Kind::Unknown(_)));
        // The body, as a scope with the names of the pattern.
        let items = self.log.bindings.len();
        let inside = self.begin();
        let head = (!self.inert).then(|| self.point(Role::Head, inside, false, None));
        let body_label = Lifetime::new(&format!("'_phigrad_body_{index}"), Span::mixed_site());
        let own = Lifetime::new(&format!("'_phigrad_loop_{index}"), Span::mixed_site());
        let loop_label = name_of(&for_expr.label).unwrap_or(own);
        // Macros that jump cannot name the label that a block would need.
        let is_open = shape::has_unknown_macros(&for_expr.body);
        let diverges = shape::block_diverges(&for_expr.body);
        let mut body = (changing && !is_open)
            .then(|| Body::Block { own: body_label.clone(), whole: loop_label.clone() });
        let (number, behind) = self.begin_loop(name_of(&for_expr.label), inside, None);
        let mut own = None;
        let memory = format_ident!("__phigrad_memory_{index}", span = Span::mixed_site());
        self.scoped(|walker| {
            walker.lent_by(lenders, |walker| match &*for_expr.pat {
                Pat::Tuple(pair) if numbered && pair.elems.len() == 2 => {
                    walker.bind_pattern(&pair.elems[0], Bound { known, ..Bound::default() });
                    let item = Bound {
                        reference: Reference::Mutable,
                        origin: Origin::Item,
                        known,
                        ..Bound::default()
                    };
                    walker.bind_pattern(&pair.elems[1], item);
                }
                pattern => {
                    let copied = places::counts(&for_expr.expr);
                    let reference = if lends { Reference::Mutable } else { Reference::Unknown };
                    let item = Bound {
                        reference,
                        origin: Origin::Item,
                        known,
                        copied,
                        ..Bound::default()
                    };
                    walker.bind_pattern(pattern, item);
                }
            });
            let bound = items..walker.log.bindings.len();
            let begin = walker.begin();
            own = changing.then(|| walker.point(Role::Join, begin, false, None));
            if let (Some(point), true) = (own, is_open) {
                body = Some(Body::Open { index, point });
            }
            if let Some(enclosing) = walker.enclosing_loops.last_mut() {
                enclosing.body = body;
            }
            let points = walker.log.points.len();
            let branch = walker.branch;
            walker.log.loop_texts[number].scope = branch;
            walker.log.loop_texts[number].body = branch;
            walker.block(&mut for_expr.body);
            walker.log.flow.end_body();
            walker.changing[index] = walker.log.entries[begin..].iter().any(|entry| {
                match (entry.variable, &entry.kind) {
                    (Some(variable), Kind::Change(..)) => {
                        bound.contains(&variable) && !walker.log.bindings[variable].mutable
                    }
                    (Some(variable), Kind::Lend(_)) => bound.contains(&variable) && !shared,
                    _ => false,
                }
            });
            if let Some(own) = own {
                walker.end_item(own, points, &memory);
            }
        });
        let text = &mut self.log.loop_texts[number];
        (text.end, text.bound) = (self.log.entries.len(), bound);
        self.end_loop(Some(behind));
        self.end_borrows(borrowed);
        let Some(head) = head else { return };
        // The generated code: a region around the loop, a head for each item, and perhaps a region
        // around the body.
        let end = self.point(Role::Join, start, false, None);
        self.log.loops[number] = Some(end);
        let (region, also) = self.head(head, end, "extend_head");
        let span = for_expr.for_token.span;
        let block = &for_expr.body;
        let body = match own {
            Some(own) => {
                let enter = enter(for_expr.body.brace_token.span.open(), own);
                match is_open {
                    true => {
                        let ended = (!diverges).then_some((own, span));
                        open_body(index, &enter, block, ended)
                    }
                    false => {
                        let ended = join(span, &enter, &quote!(#body_label: #block), own);
                        quote!(#ended;)
                    }
                }
            }
            None => {
                let statements = &block.stmts;
                quote!(#(#statements)*)
            }
        };
        let (pattern, iterator) = (&for_expr.pat, &for_expr.expr);
        let label = (changing || for_expr.label.is_some()).then(|| quote!(#loop_label:));
        let site = Span::mixed_site();
        let counted = match stateful {
            true => quote!(false),
            false => quote_spanned! {site=>
                (&::phigrad::flow::ItemOrder(&__phigrad_iterator)).is_counted()
            },
        };
        let items = quote_spanned! {site=>
            ::phigrad::flow::items(#counted, __phigrad_iterator, &#memory, #region, |__phigrad_item, __phigrad_to| {
                (&mut ::phigrad::flow::Probe(__phigrad_item)).hand_over(__phigrad_to)
            })
        };
        let whole = quote_spanned! {site=>
            match ::core::iter::IntoIterator::into_iter(#iterator) {
                __phigrad_iterator => #label for #pattern in #items { #also #body }
            }
        };
        let (enter, whole) = (enter(span, end), join(span, &region, &whole, end));
        let attributes = mem::take(&mut for_expr.attrs);
        let remember = quote_spanned!(site=> let #memory = ::phigrad::flow::Memory::default(););
        *expr = attributed(
            attributes,
            Expr::Verbatim(quote!({ #(#pins)* let #region = #enter; #remember #whole })),
        );
    }

    fn is_plain(&self, expr: &Expr) -> bool {
        match places::place(expr) {
            Some((name, steps)) if steps.is_empty() => self.find(name).is_some_and(|variable| {
                self.log.bindings[variable].reference == Reference::NotMutable
            }),
            _ => false,
        }
    }

    /// Ends the text of a body whose region ends at `own`; the points from number `inside` on lie
    /// in it.
    fn end_item(&mut self, own: usize, inside: usize, memory: &Ident) {
        let (end, location) = (self.log.entries.len(), self.log.flow.location());
        let loops = self.log.points[own].loops.clone();
        let point = &mut self.log.points[own];
        (point.end, point.location, point.memory) = (end, location, Some(memory.clone()));
        for point in &mut self.log.points[inside..] {
            if point.role == Role::Join && point.mutators_of == own {
                (point.end, point.location, point.loops) = (end, location, loops.clone());
                point.memory = Some(memory.clone());
            }
        }
    }

    /// The replacement of a `continue` in a body whose region ends at `own`.
    pub(super) fn next_item(
        &mut self,
        index: usize,
        own: usize,
        label: Option<&Lifetime>,
    ) -> TokenStream {
        let (region, memory) = names(index);
        let start = self.log.points[own].start;
        let point = self.point(Role::Join, start, false, Some(own));
        let visible = &self.log.points[point].visible;
        if !self.log.points[own].visible.iter().all(|variable| visible.contains(variable)) {
            // Another variable has this name here.
            self.log.points[point].mutators_of = point;
            return quote!(continue #label);
        }
        let site = Span::mixed_site();
        let ended = join(site, &quote!(#region), &quote!(()), point);
        quote_spanned!(site=> { #ended; #memory.end(); continue #label })
    }
}

/// The body of a loop that macros may leave. It is no block with a label, so it may be left
/// unnoticed; therefore it reports its end. `ended` is the point at its end, if that is reachable.
fn open_body(
    index: usize,
    enter: &TokenStream,
    body: &Block,
    ended: Option<(usize, Span)>,
) -> TokenStream {
    let (region, memory) = names(index);
    let site = Span::mixed_site();
    let begin = quote_spanned!(site=> let #region = #enter; #memory.begin(););
    let Some((own, span)) = ended else { return quote!(#begin #body) };
    let ended = join(span, &quote!(#region), &quote!(#body), own);
    let done = quote_spanned!(site=> #memory.end(););
    quote!(#begin #ended; #done)
}

/// The names of the region of the body of loop `index`, and of the loop's memory.
fn names(index: usize) -> (Ident, Ident) {
    let site = Span::mixed_site();
    (
        format_ident!("__phigrad_item_{index}", span = site),
        format_ident!("__phigrad_memory_{index}", span = site),
    )
}
