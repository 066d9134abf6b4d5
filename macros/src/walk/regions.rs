//! Control flow: each construct is walked through and wrapped in a region.

use core::mem;

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::{Attribute, BinOp, Expr, ExprIf, ExprMatch, Label, Lifetime, Token};

use super::plain::bare;
use super::{Body, Bound, EnclosingLoop, Value, Walker, enter, join};
use crate::flow_graph::BlockId;
use crate::log::{JumpTarget, Kind, Role, Variable};
use crate::shape;
use crate::uniform::LoopText;

impl Walker {
    /// Walks through a chain of `&&` or `||`.
    pub(super) fn logic(&mut self, expr: &mut Expr, target: Option<Variable>) {
        let trivial = shape::is_trivial(expr) && target.is_none();
        let alone = self.inert || self.condition || trivial;
        let start = self.begin();
        let Expr::Binary(binary) = expr else { return };
        let span = match binary.op {
            BinOp::And(token) => token.spans[0],
            BinOp::Or(token) => token.spans[0],
            _ => Span::mixed_site(),
        };
        self.in_condition(|walker| {
            walker.expr(&mut binary.left);
            let short = walker.log.flow.fork();
            // Not a scope of its own: a `let` in this operand is visible in the code that follows.
            walker.branch(|walker| walker.expr(&mut binary.right));
            let long = walker.log.flow.here();
            walker.log.flow.join(&[short, long]);
        });
        if !alone {
            let value = Value { carried: true, target, ..Value::default() };
            *expr = self.region(span, start, &quote!(#expr), value);
        }
    }

    /// Walks through a block with a label, which `break` leaves.
    pub(super) fn labelled(&mut self, expr: &mut Expr, value: bool, target: Option<Variable>) {
        let value = Value { target, ..self.value(expr, value) };
        let Expr::Block(block) = expr else { return };
        let span = block.label.as_ref().map_or(Span::mixed_site(), |label| label.name.ident.span());
        let start = self.begin();
        self.log.flow.enter_block(name_of(&block.label));
        self.scoped(|walker| {
            walker.target = target;
            walker.block(&mut block.block);
        });
        self.log.flow.leave_block();
        if !self.inert {
            let attributes = mem::take(&mut block.attrs);
            let region = self.region(span, start, &quote!(#expr), value);
            *expr = attributed(attributes, region);
        }
    }

    pub(super) fn if_region(&mut self, expr: &mut Expr, value: bool, target: Option<Variable>) {
        let diverges = shape::diverges(expr);
        let start = self.begin();
        let value = Value { target, ..self.value(expr, value) };
        let Expr::If(branch) = expr else { return };
        let span = branch.if_token.span;
        let value = if branch.else_branch.is_some() { value } else { Value::default() };
        if self.inert || diverges {
            self.branches(branch, target);
            return;
        }
        let attributes = mem::take(&mut branch.attrs);
        self.branches(branch, target);
        let region = self.region(span, start, &quote!(#expr), value);
        *expr = attributed(attributes, region);
    }

    fn branches(&mut self, branch: &mut ExprIf, target: Option<Variable>) {
        let borrowed = self.log.long_borrows.len();
        let (borrowed, refused) = self.scoped(|walker| {
            walker.in_condition(|walker| walker.expr(&mut branch.cond));
            let borrowed = borrowed..walker.log.long_borrows.len();
            let refused = walker.log.flow.fork();
            walker.branch(|walker| {
                walker.target = target;
                walker.block(&mut branch.then_branch);
            });
            (borrowed, refused)
        });
        let accepted = self.log.flow.continue_from(refused);
        match branch.else_branch.as_mut().map(|(_, otherwise)| &mut **otherwise) {
            Some(Expr::If(next)) => self.branches(next, target),
            Some(otherwise) => self.scoped(|walker| {
                walker.target = target;
                walker.expr(otherwise);
            }),
            None => {}
        }
        let otherwise = self.log.flow.here();
        self.log.flow.join(&[accepted, otherwise]);
        self.end_borrows(borrowed);
    }

    pub(super) fn match_region(&mut self, expr: &mut Expr, value: bool, target: Option<Variable>) {
        let diverges = shape::diverges(expr);
        let start = self.begin();
        let value = Value { target, ..self.value(expr, value) };
        let Expr::Match(choice) = expr else { return };
        let span = choice.match_token.span;
        if self.inert || diverges {
            self.arms(choice, target);
            return self.pin_match(expr);
        }
        let attributes = mem::take(&mut choice.attrs);
        self.arms(choice, target);
        self.pin_match(expr);
        let region = self.region(span, start, &quote!(#expr), value);
        *expr = attributed(attributes, region);
    }

    fn arms(&mut self, choice: &mut ExprMatch, target: Option<Variable>) {
        let binding = choice.arms.iter().find(|arm| !shape::names(&arm.pat).is_empty());
        let (known, borrowed) = (self.is_known(&choice.expr), self.log.long_borrows.len());
        let mut names = choice.arms.iter().flat_map(|arm| shape::names(&arm.pat));
        let is_copied = !names.any(|name| name.by_ref.is_some());
        let pattern = binding.map(|arm| arm.pat.clone());
        self.is_scrutinee = !self.inert && is_copied && bare(&choice.expr).is_some();
        self.scrutinee(&mut choice.expr, pattern.as_ref());
        self.is_scrutinee = false;
        let borrowed = borrowed..self.log.long_borrows.len();
        let mut borrows = false;
        let lenders = self.lenders_of(&choice.expr, false);
        let (mut next, mut ends) = (self.log.flow.here(), Vec::new());
        for arm in &mut choice.arms {
            self.log.flow.continue_from(next);
            self.scoped(|walker| {
                let bound = Bound { known, refutable: true, ..Bound::default() };
                borrows |= walker.lent_by(lenders.clone(), |w| w.bind_pattern(&arm.pat, bound));
                if let Some((_, guard)) = &mut arm.guard {
                    walker.in_condition(|walker| walker.expr(guard));
                }
                next = walker.log.flow.fork();
                walker.branch(|walker| {
                    walker.target = target;
                    walker.expr(&mut arm.body);
                });
                if arm.comma.is_none() && matches!(*arm.body, Expr::Verbatim(_)) {
                    arm.comma = Some(Token![,](Span::mixed_site()));
                }
            });
            ends.push(self.log.flow.here());
        }
        self.log.flow.join(&ends);
        if borrows {
            self.change(&mut choice.expr, true);
        }
        self.end_borrows(borrowed);
    }

    /// Walks through `loop` and `while`.
    pub(super) fn loop_region(&mut self, expr: &mut Expr, value: bool, target: Option<Variable>) {
        let (endless, by_macros) = (shape::diverges(expr), shape::exits_by_macros_only(expr));
        let start = self.begin();
        let lent = self.value(expr, value).lent;
        let head = (!self.inert).then(|| self.point(Role::Head, start, false, None));
        let (span, label, attributes, condition, body) = match expr {
            Expr::Loop(loop_expr) => {
                let attributes = mem::take(&mut loop_expr.attrs);
                (loop_expr.loop_token.span, &loop_expr.label, attributes, None, &mut loop_expr.body)
            }
            Expr::While(loop_expr) => {
                let attributes = mem::take(&mut loop_expr.attrs);
                let condition = Some(&mut loop_expr.cond);
                (
                    loop_expr.while_token.span,
                    &loop_expr.label,
                    attributes,
                    condition,
                    &mut loop_expr.body,
                )
            }
            _ => return,
        };
        let value = value && condition.is_none();
        let label = label.clone();
        let (number, _) = self.begin_loop(name_of(&label), start, None);
        let bound = condition.as_ref().and_then(|condition| self.bound(condition));
        let mut condition = condition;
        let (mut refused, borrowed) = (None, self.log.long_borrows.len());
        self.scoped(|walker| {
            if let Some(condition) = &mut condition {
                walker.in_condition(|walker| walker.expr(condition));
                refused = Some(walker.log.flow.fork());
            }
            let borrowed = borrowed..walker.log.long_borrows.len();
            let scope = walker.branch;
            walker.branch(|walker| {
                walker.log.loop_texts[number].scope = scope;
                walker.log.loop_texts[number].body = walker.branch;
                walker.block(body);
            });
            walker.end_borrows(borrowed);
        });
        let end = self.log.entries.len();
        (self.log.loop_texts[number].end, self.log.loop_texts[number].bound) = (end, bound);
        self.end_loop(refused);
        let Some(head) = head else { return };
        let end = self.point(Role::Join, start, value, None);
        self.log.points[end].lent = lent;
        self.log.points[end].target = target.filter(|_| value);
        self.is_pending |= self.log.points[end].target.is_some();
        self.log.loops[number] = Some(end);
        let (region, iterate) = self.head(head, end, "loop_head");
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
        // If no macro leaves it, the code after it is unreachable.
        let whole = match by_macros {
            true => quote!(#[allow(unreachable_code)] { #whole }),
            false => whole,
        };
        let block = Expr::Verbatim(quote!({ let #region = #enter; #whole }));
        *expr = attributed(attributes, block);
    }

    /// The name of the region of a loop with these points, and the call at its head.
    pub(super) fn head(
        &mut self,
        head: usize,
        end: usize,
        method: &str,
    ) -> (TokenStream, TokenStream) {
        self.log.points[head].end = self.log.entries.len();
        self.log.points[head].mutators_of = end;
        let span = Span::mixed_site();
        let region = format_ident!("__phigrad_region_{end}", span = span);
        let point = format_ident!("__phigrad_point_{head}", span = span);
        let method = format_ident!("{method}", span = span);
        (quote!(#region), quote_spanned!(span=> #region.#method(|__phigrad_to| { #point });))
    }

    /// Begins a loop whose body is this region, if any. Returns its number and its head.
    pub(super) fn begin_loop(
        &mut self,
        label: Option<Lifetime>,
        start: usize,
        body: Option<Body>,
    ) -> (usize, BlockId) {
        let number = self.log.loops.len();
        self.log.loops.push(None);
        let text = LoopText { start, end: start, scope: 0, body: 0, bound: None };
        self.log.loop_texts.push(text);
        let head = self.log.flow.enter_loop(label.clone());
        self.enclosing_loops.push(EnclosingLoop { label, number, start, body });
        (number, head)
    }

    /// Ends a loop, whose exits are `break` and, if any, `refused`.
    pub(super) fn end_loop(&mut self, refused: Option<BlockId>) {
        self.enclosing_loops.pop();
        self.log.flow.leave_loop(refused);
    }

    /// Notes a jump.
    pub(super) fn jump(&mut self, target: JumpTarget) {
        // Inside closures and macros it may have another target.
        let target = if self.inert { JumpTarget::Unknown } else { target };
        self.log.jumps.push((self.log.entries.len(), target));
        self.push_event(Kind::Jump);
    }

    /// Walks through a `break`.
    pub(super) fn jump_out(&mut self, label: &mut Option<Lifetime>) {
        let written = label.clone();
        let mut enclosing_loops = self.enclosing_loops.iter().rev();
        let enclosing_loop =
            enclosing_loops.find(|enclosing| label.is_none() || enclosing.label == *label);
        let target = enclosing_loop
            .map_or(JumpTarget::Unknown, |enclosing| JumpTarget::Loop(enclosing.number));
        if let (None, false, Some(Body::Block { whole, .. })) =
            (&label, self.inert, enclosing_loop.and_then(|enclosing| enclosing.body.clone()))
        {
            *label = Some(whole);
        }
        self.jump(target);
        self.log.flow.add_break(written.as_ref());
    }

    /// Walks through a `continue`.
    pub(super) fn continue_loop(&mut self, expr: &mut Expr) {
        let Expr::Continue(jump) = &*expr else { return };
        let label = jump.label.clone();
        let target =
            self.enclosing_loops.iter().rev().find(|f| label.is_none() || f.label == label);
        let body = target.and_then(|enclosing| enclosing.body.clone());
        let target =
            target.map_or(JumpTarget::Unknown, |enclosing| JumpTarget::Next(enclosing.number));
        self.jump(target);
        match body {
            Some(Body::Block { own, .. }) if !self.inert => {
                *expr = Expr::Verbatim(quote!(break #own));
            }
            Some(Body::Open { index, point }) if !self.inert => {
                *expr = Expr::Verbatim(self.next_item(index, point, label.as_ref()));
            }
            _ => {}
        }
        self.log.flow.add_continue(label.as_ref());
    }

    pub(super) fn return_value(&mut self, expr: &mut Expr) {
        let Expr::Return(jump) = expr else { return };
        if let Some(value) = &mut jump.expr {
            self.expr(value);
        }
        self.jump(JumpTarget::Function);
        self.log.flow.begin_unreachable();
        if !self.inert {
            let (span, value) = (jump.return_token.span, &jump.expr);
            let value = value.as_ref().map_or(quote!(()), |value| quote!(#value));
            let ended = self.join_function(span, &value);
            *expr = Expr::Verbatim(quote!(return #ended));
        }
    }

    pub(super) fn question(&mut self, expr: &mut Expr) {
        let Expr::Try(question) = expr else { return };
        self.expr(&mut question.expr);
        self.jump(JumpTarget::Function);
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
            match ::phigrad::flow::TryOperator::branch(#inner) {
                ::core::ops::ControlFlow::Continue(__phigrad_output) => __phigrad_output,
                ::core::ops::ControlFlow::Break(__phigrad_residual) => {
                    match ::phigrad::flow::join(
                        __phigrad_body,
                        __phigrad_residual,
                        |__phigrad_value, __phigrad_to| {
                            // The conversion afterwards depends on the position.
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

    /// Ends the function's region with `value`.
    fn join_function(&mut self, span: Span, value: &TokenStream) -> TokenStream {
        let point = self.exit();
        let body = format_ident!("__phigrad_body", span = Span::mixed_site());
        join(span, &quote!(#body), value, point)
    }
}

pub(super) fn name_of(label: &Option<Label>) -> Option<Lifetime> {
    label.as_ref().map(|label| label.name.clone())
}

/// Moves the attributes of a statement to its replacement.
pub(super) fn attributed(attributes: Vec<Attribute>, expr: Expr) -> Expr {
    if attributes.is_empty() { expr } else { Expr::Verbatim(quote!(#(#attributes)* #expr)) }
}
