//! Control flow: each construct is walked through and becomes a region.

use core::mem;

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::{Attribute, BinOp, Expr, ExprIf, ExprMatch, Label, Lifetime, Pat, Token};

use super::{Bound, Frame, NOTHING, Value, Walker, enter, join};
use crate::log::{Goal, Kind, Role};
use crate::places;
use crate::shape;

impl Walker {
    /// A chain of `&&` or `||`.
    pub(super) fn logic(&mut self, expr: &mut Expr) {
        let alone = self.inert || self.condition || shape::is_trivial(expr);
        let start = self.begin();
        let Expr::Binary(binary) = expr else { return };
        let span = match binary.op {
            BinOp::And(token) => token.spans[0],
            BinOp::Or(token) => token.spans[0],
            _ => Span::mixed_site(),
        };
        self.in_condition(|walker| {
            walker.expr(&mut binary.left);
            // Not a scope of its own: a `let` on this side is for what follows.
            walker.branch(|walker| walker.expr(&mut binary.right));
        });
        if !alone {
            let value = Value { carried: true, ..Value::default() };
            *expr = self.region(span, start, &quote!(#expr), value);
        }
    }

    /// A block with a label, which `break` leaves.
    pub(super) fn labelled(&mut self, expr: &mut Expr, value: bool) {
        let value = self.value(expr, value);
        let Expr::Block(block) = expr else { return };
        let span = block.label.as_ref().map_or(Span::mixed_site(), |label| label.name.ident.span());
        let attributes = mem::take(&mut block.attrs);
        let start = self.begin();
        self.scoped(|walker| walker.block(&mut block.block));
        let region = self.region(span, start, &quote!(#expr), value);
        *expr = attributed(attributes, region);
    }

    pub(super) fn if_region(&mut self, expr: &mut Expr, value: bool) {
        let diverges = shape::diverges(expr);
        let start = self.begin();
        let value = self.value(expr, value);
        let Expr::If(branch) = expr else { return };
        let span = branch.if_token.span;
        let value = if branch.else_branch.is_some() { value } else { Value::default() };
        if self.inert || diverges {
            self.branches(branch);
            return;
        }
        let attributes = mem::take(&mut branch.attrs);
        self.branches(branch);
        let region = self.region(span, start, &quote!(#expr), value);
        *expr = attributed(attributes, region);
    }

    fn branches(&mut self, branch: &mut ExprIf) {
        let borrowed = self.log.keeps.len();
        let borrowed = self.scoped(|walker| {
            walker.in_condition(|walker| walker.expr(&mut branch.cond));
            let borrowed = borrowed..walker.log.keeps.len();
            walker.branch(|walker| walker.block(&mut branch.then_branch));
            borrowed
        });
        match branch.else_branch.as_mut().map(|(_, otherwise)| &mut **otherwise) {
            Some(Expr::If(next)) => self.branches(next),
            Some(otherwise) => self.scoped(|walker| walker.expr(otherwise)),
            None => {}
        }
        self.give_back(borrowed);
    }

    pub(super) fn match_region(&mut self, expr: &mut Expr, value: bool) {
        let diverges = shape::diverges(expr);
        let start = self.begin();
        let value = self.value(expr, value);
        let Expr::Match(choice) = expr else { return };
        let span = choice.match_token.span;
        if self.inert || diverges {
            self.arms(choice);
            return;
        }
        let attributes = mem::take(&mut choice.attrs);
        self.arms(choice);
        let region = self.region(span, start, &quote!(#expr), value);
        *expr = attributed(attributes, region);
    }

    fn arms(&mut self, choice: &mut ExprMatch) {
        let binding = choice.arms.iter().find(|arm| !shape::names(&arm.pat).is_empty());
        let (known, borrowed) = (self.is_known(&choice.expr), self.log.keeps.len());
        self.scrutinee(&mut choice.expr, binding.map(|arm| &arm.pat));
        let borrowed = borrowed..self.log.keeps.len();
        let mut borrows = false;
        for arm in &mut choice.arms {
            self.scoped(|walker| {
                let bound = Bound { known, refutable: true, ..Bound::default() };
                borrows |= walker.bind_pattern(&arm.pat, bound);
                if let Some((_, guard)) = &mut arm.guard {
                    walker.in_condition(|walker| walker.expr(guard));
                }
                walker.branch(|walker| walker.expr(&mut arm.body));
                if arm.comma.is_none() && matches!(*arm.body, Expr::Verbatim(_)) {
                    arm.comma = Some(Token![,](Span::mixed_site()));
                }
            });
        }
        if borrows {
            self.change(&mut choice.expr, true);
        }
        self.give_back(borrowed);
    }

    /// `loop` and `while`.
    pub(super) fn loop_region(&mut self, expr: &mut Expr, value: bool) {
        let (endless, by_macros) = (shape::diverges(expr), shape::is_left_by_macros(expr));
        let start = self.begin();
        let lent = self.value(expr, value).lent;
        let head = (!self.inert).then(|| self.point(Role::Head, start, false, None));
        let (span, label, attributes, condition, body) = match expr {
            Expr::Loop(repeat) => {
                let attributes = mem::take(&mut repeat.attrs);
                (repeat.loop_token.span, &repeat.label, attributes, None, &mut repeat.body)
            }
            Expr::While(repeat) => {
                let attributes = mem::take(&mut repeat.attrs);
                let condition = Some(&mut repeat.cond);
                (repeat.while_token.span, &repeat.label, attributes, condition, &mut repeat.body)
            }
            _ => return,
        };
        let value = value && condition.is_none();
        let label = label.clone();
        let number = self.begin_loop(name_of(&label), start, None);
        let mut condition = condition;
        let borrowed = self.log.keeps.len();
        self.scoped(|walker| {
            if let Some(condition) = &mut condition {
                walker.in_condition(|walker| walker.expr(condition));
            }
            let borrowed = borrowed..walker.log.keeps.len();
            walker.branch(|walker| walker.block(body));
            walker.give_back(borrowed);
        });
        self.frames.pop();
        let Some(head) = head else { return };
        let end = self.point(Role::Join, start, value, None);
        self.log.points[end].lent = lent;
        self.log.loops[number] = Some(end);
        let (region, iterate) = self.head(head, end, "again");
        let whole = match condition {
            Some(condition) => quote! {
                #label loop { #iterate if #condition #body else { break } }
            },
            None => {
                let statements = &body.stmts;
                quote!(#label loop { #iterate #(#statements)* })
            }
        };
        let enter = enter(span, end);
        let whole = if endless { whole } else { join(span, &region, &whole, end) };
        // If no macro leaves it, what comes after it is never reached.
        let whole = match by_macros {
            true => quote!(#[allow(unreachable_code)] { #whole }),
            false => whole,
        };
        let block = Expr::Verbatim(quote!({ let #region = #enter; #whole }));
        *expr = attributed(attributes, block);
    }

    /// The name of the region of a loop with these points, and what is called at
    /// its head.
    fn head(&mut self, head: usize, end: usize, method: &str) -> (TokenStream, TokenStream) {
        self.log.points[head].end = self.log.entries.len();
        self.log.points[head].suspects_of = end;
        let span = Span::mixed_site();
        let region = format_ident!("__phigrad_region_{end}", span = span);
        let point = format_ident!("__phigrad_point_{head}", span = span);
        let method = format_ident!("{method}", span = span);
        (quote!(#region), quote_spanned!(span=> #region.#method(|__phigrad_to| { #point });))
    }

    pub(super) fn for_loop(&mut self, expr: &mut Expr) {
        let start = self.begin();
        let index = self.changing.len();
        self.changing.push(false);
        let Expr::ForLoop(repeat) = expr else { return };
        let changing = self.found.changing.get(index).copied().unwrap_or(false) && !self.inert;
        let shared = shape::shares_items(&repeat.expr) || self.is_plain(&repeat.expr);
        let lends = places::lends_items(&repeat.expr);
        let numbered = places::lends_numbered_items(&repeat.expr);
        let stateful = shape::has_closure(&repeat.expr);
        let known = self.is_known(&repeat.expr);
        let borrowed = self.log.keeps.len();
        self.in_condition(|walker| {
            walker.keeping(|walker| walker.argument(&mut repeat.expr));
        });
        let borrowed = borrowed..self.log.keeps.len();
        let stateful = stateful
            && self.log.entries[start..]
                .iter()
                .any(|e| matches!(e.kind, Kind::Change(..) | Kind::Assign | Kind::Unknown(_)));
        let items = self.log.bindings.len();
        let inside = self.begin();
        let head = (!self.inert).then(|| self.point(Role::Head, inside, false, None));
        let leave = Lifetime::new(&format!("'_phigrad_body_{index}"), Span::mixed_site());
        let own = Lifetime::new(&format!("'_phigrad_loop_{index}"), Span::mixed_site());
        let left = name_of(&repeat.label).unwrap_or(own);
        let body = changing.then(|| (leave.clone(), left.clone()));
        let number = self.begin_loop(name_of(&repeat.label), inside, body);
        let mut own = None;
        let memory = format_ident!("__phigrad_memory_{index}", span = Span::mixed_site());
        self.scoped(|walker| {
            match &*repeat.pat {
                Pat::Tuple(pair) if numbered && pair.elems.len() == 2 => {
                    walker.bind_pattern(&pair.elems[0], Bound { known, ..Bound::default() });
                    let item = Bound { reference: true, item: true, known, ..Bound::default() };
                    walker.bind_pattern(&pair.elems[1], item);
                }
                pattern => {
                    let copied = places::counts(&repeat.expr);
                    let item =
                        Bound { reference: lends, item: true, known, copied, ..Bound::default() };
                    walker.bind_pattern(pattern, item);
                }
            }
            let bound = items..walker.log.bindings.len();
            let begin = walker.begin();
            walker.block(&mut repeat.body);
            walker.changing[index] =
                walker.log.entries[begin..].iter().any(|entry| match entry.kind {
                    Kind::Change(..) => {
                        bound.contains(&entry.variable)
                            && !walker.log.bindings[entry.variable].mutable
                    }
                    Kind::Lend(_) => bound.contains(&entry.variable) && !shared,
                    _ => false,
                });
            own = changing.then(|| walker.point(Role::Join, begin, false, None));
            if let Some(own) = own {
                walker.log.points[own].memory = Some(memory.clone());
            }
        });
        self.frames.pop();
        self.give_back(borrowed);
        let Some(head) = head else { return };
        let end = self.point(Role::Join, start, false, None);
        self.log.loops[number] = Some(end);
        let (region, also) = self.head(head, end, "also");
        let span = repeat.for_token.span;
        let block = &repeat.body;
        let body = match own {
            Some(own) => {
                let enter = enter(repeat.body.brace_token.span.open(), own);
                let ended = join(span, &enter, &quote!(#leave: #block), own);
                quote!(#ended;)
            }
            None => {
                let statements = &block.stmts;
                quote!(#(#statements)*)
            }
        };
        let (pattern, iterator) = (&repeat.pat, &repeat.expr);
        let label = (changing || repeat.label.is_some()).then(|| quote!(#left:));
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
        let attributes = mem::take(&mut repeat.attrs);
        let remember = quote_spanned!(site=> let #memory = ::phigrad::flow::Memory::default(););
        *expr = attributed(
            attributes,
            Expr::Verbatim(quote!({ let #region = #enter; #remember #whole })),
        );
    }

    fn is_plain(&self, expr: &Expr) -> bool {
        match places::place(expr) {
            Some((name, steps)) if steps.is_empty() => {
                self.find(name).is_some_and(|variable| self.log.bindings[variable].plain)
            }
            _ => false,
        }
    }

    /// A loop begins, whose body can be left by `body`. Returns its number.
    fn begin_loop(
        &mut self,
        label: Option<Lifetime>,
        start: usize,
        body: Option<(Lifetime, Lifetime)>,
    ) -> usize {
        let number = self.log.loops.len();
        self.log.loops.push(None);
        self.frames.push(Frame { label, number, start, body });
        number
    }

    /// Control goes elsewhere.
    pub(super) fn jump(&mut self, goal: Goal) {
        // Inside closures and macros it may not lead where it seems to.
        let goal = if self.inert { Goal::Elsewhere } else { goal };
        self.log.jumps.push((self.log.entries.len(), goal));
        self.push(NOTHING, Kind::Jump);
    }

    /// `break`.
    pub(super) fn jump_out(&mut self, label: &mut Option<Lifetime>) {
        let mut frames = self.frames.iter().rev();
        let left = frames.find(|frame| label.is_none() || frame.label == *label);
        let goal = left.map_or(Goal::Elsewhere, |frame| Goal::Loop(frame.number));
        if let (None, false, Some((_, own))) =
            (&label, self.inert, left.and_then(|frame| frame.body.clone()))
        {
            *label = Some(own);
        }
        self.jump(goal);
    }

    pub(super) fn repeat(&mut self, expr: &mut Expr) {
        let Expr::Continue(jump) = &*expr else { return };
        let label = jump.label.as_ref();
        let target =
            self.frames.iter().rev().find(|f| label.is_none() || f.label.as_ref() == label);
        let body = target.and_then(|frame| Some(frame.body.clone()?.0));
        let goal = target.map_or(Goal::Elsewhere, |frame| Goal::Next(frame.number));
        self.jump(goal);
        if let (Some(body), false) = (body, self.inert) {
            *expr = Expr::Verbatim(quote!(break #body));
        }
    }

    pub(super) fn leave(&mut self, expr: &mut Expr) {
        let Expr::Return(jump) = expr else { return };
        if let Some(value) = &mut jump.expr {
            self.expr(value);
        }
        self.jump(Goal::Function);
        if !self.inert {
            let (span, value) = (jump.return_token.span, &jump.expr);
            let value = value.as_ref().map_or(quote!(()), |value| quote!(#value));
            let ended = self.leaving(span, &value);
            *expr = Expr::Verbatim(quote!(return #ended));
        }
    }

    pub(super) fn question(&mut self, expr: &mut Expr) {
        let Expr::Try(question) = expr else { return };
        self.expr(&mut question.expr);
        self.jump(Goal::Function);
        if self.inert {
            return;
        }
        self.questions += 1;
        let (span, inner, number) = (question.question_token.span, &question.expr, self.questions);
        let site = Span::mixed_site().located_at(span);
        let point = self.exit();
        self.log.points[point].value = false;
        let point = format_ident!("__phigrad_point_{point}", span = Span::mixed_site());
        let tokens = quote_spanned! {site=>
            match ::phigrad::flow::Question::branch(#inner) {
                ::core::ops::ControlFlow::Continue(__phigrad_output) => __phigrad_output,
                ::core::ops::ControlFlow::Break(__phigrad_residual) => {
                    match ::phigrad::flow::join(
                        __phigrad_body,
                        __phigrad_residual,
                        |__phigrad_value, __phigrad_to| {
                            // What is converted afterwards depends on where it was.
                            __phigrad_to.state(#number);
                            ::phigrad::flow::Residual::hand_over(__phigrad_value, __phigrad_to);
                            #point
                        },
                    )? {}
                }
            }
        };
        *expr = Expr::Verbatim(tokens);
    }

    /// The end of the function's region with `value`.
    fn leaving(&mut self, span: Span, value: &TokenStream) -> TokenStream {
        let point = self.exit();
        let body = format_ident!("__phigrad_body", span = Span::mixed_site());
        join(span, &quote!(#body), value, point)
    }
}

fn name_of(label: &Option<Label>) -> Option<Lifetime> {
    label.as_ref().map(|label| label.name.clone())
}

/// A statement keeps its attributes.
fn attributed(attributes: Vec<Attribute>, expr: Expr) -> Expr {
    if attributes.is_empty() { expr } else { Expr::Verbatim(quote!(#(#attributes)* #expr)) }
}
