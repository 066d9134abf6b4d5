//! The walk through a function: records the uses of variables in the log, and wraps control flow in
//! regions.
//!
//! It walks twice: the first walk finds which variables are mutable references and which loops
//! change their items; the second one rewrites.

mod aliases;
mod assignments;
mod bindings;
mod items;
mod macros;
mod pins;
pub mod plain;
mod regions;
mod uses;

use core::mem;

use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{BinOp, Block, Error, Expr, Lifetime, Local, Stmt, Token, UnOp};

pub use self::bindings::{Bound, of_type};
use crate::borrows;
use crate::log::{Branch, Entry, Kind, Log, Point, Role, Variable};
use crate::places::place;
use crate::shape;
use crate::types;

/// A loop around the current expression.
struct EnclosingLoop {
    label: Option<Lifetime>,
    /// Its number in [`Log::loops`].
    number: usize,
    start: usize,
    /// The region of the body, if it has one.
    body: Option<Body>,
}

/// The region of a loop body.
#[derive(Clone)]
enum Body {
    /// A block with the label `own`, to which `continue` becomes a `break`; a `break` of the loop
    /// needs the label `whole`.
    Block { own: Lifetime, whole: Lifetime },
    /// The body of loop `index`; its region ends at `point`, or before a `continue`.
    Open { index: usize, point: usize },
}

/// The results of the first walk for the second one.
#[derive(Default)]
pub struct FirstWalk {
    /// For each variable whether it is a mutable reference.
    references: Vec<bool>,
    /// For each `for` loop whether it changes what its items refer to.
    changing: Vec<bool>,
    /// For each variable whether it is tracked.
    tracked: Vec<bool>,
    /// For each `let` with a value its first variable.
    lets: Vec<Variable>,
}

/// The value of a region.
#[derive(Default)]
struct Value {
    carried: bool,
    /// The variables that it may borrow from.
    lent: Vec<Variable>,
    /// The tracked variable to which it is assigned.
    target: Option<Variable>,
}

#[derive(Default)]
pub struct Walker {
    pub log: Log,
    pub errors: Vec<Error>,
    /// The variables named in the attribute's `opaque`.
    opaque: Vec<Ident>,
    first_walk: FirstWalk,
    changing: Vec<bool>,
    scope: Vec<Variable>,
    /// Names that may be variables of unknown type, and the positions in the log where they may be
    /// declared.
    uncertain_names: Vec<(Ident, usize)>,
    /// The macros defined inside, and the names that they may refer to, with the variables if they
    /// are known.
    macros: Vec<Ident>,
    meant: Vec<(Ident, Option<Variable>)>,
    branch: Branch,
    enclosing_loops: Vec<EnclosingLoop>,
    /// True inside closures and macro arguments, where nothing is rewritten.
    inert: bool,
    /// True inside a condition, which lies in a region already.
    condition: bool,
    /// True where the value of an expression may be stored.
    storing: bool,
    /// True inside an unsafe block.
    unsafe_code: bool,
    /// The variables that a new binding may have borrowed from.
    lenders: Vec<Variable>,
    questions: u64,
    /// For each `let` with a value so far its first variable.
    lets: Vec<Variable>,
    /// The variables with uses that cannot be rewritten.
    refused: Vec<Variable>,
    /// The pairs of swapped variables.
    swapped: Vec<[Variable; 2]>,
    /// The tracked variables that the macro around reads.
    pins: Option<Vec<Variable>>,
    /// True in the expression that a `match` looks at, and in an operand that is not pinned.
    is_scrutinee: bool,
    is_compared: bool,
    /// True in the iterator of a loop, whose variables are pinned before it.
    is_hoisted: bool,
    /// The tracked variable to which the next expression is assigned.
    target: Option<Variable>,
    /// True if a shadow is pending for that assignment.
    is_pending: bool,
    /// Statements around the current one.
    before: Vec<TokenStream>,
    after: Vec<TokenStream>,
}

impl Walker {
    /// A walker for the first walk.
    pub fn new(opaque: Vec<Ident>) -> Walker {
        Walker { opaque, ..Walker::default() }
    }

    /// A walker for the second walk.
    pub fn again(self) -> Walker {
        let references = self.log.bindings.iter().map(|binding| binding.is_reference()).collect();
        let tracked = self.trackable();
        let first_walk =
            FirstWalk { references, changing: self.changing, tracked, lets: self.lets };
        Walker { first_walk, opaque: self.opaque, ..Walker::default() }
    }

    pub fn begin(&mut self) -> usize {
        // An entry that separates later bindings from earlier ones.
        self.push_event(Kind::Start);
        let at = self.log.entries.len();
        self.log.starts.push((at, self.log.flow.location()));
        at
    }

    fn push(&mut self, variable: Variable, kind: Kind) {
        self.log.entries.push(Entry { variable: Some(variable), kind, branch: self.branch });
    }

    /// Adds an entry that concerns no variable.
    fn push_event(&mut self, kind: Kind) {
        self.log.entries.push(Entry { variable: None, kind, branch: self.branch });
    }

    fn find(&self, name: &Ident) -> Option<Variable> {
        let is = |variable: &&Variable| self.log.bindings[**variable].name == *name;
        self.scope.iter().rev().find(is).copied()
    }

    fn point(
        &mut self,
        role: Role,
        start: usize,
        value: bool,
        mutators_of: Option<usize>,
    ) -> usize {
        let mut visible: Vec<Variable> = Vec::new();
        for &variable in self.scope.iter().rev() {
            let name = &self.log.bindings[variable].name;
            if !visible.iter().any(|&other| self.log.bindings[other].name == *name) {
                visible.push(variable);
            }
        }
        let index = self.log.points.len();
        self.log.points.push(Point {
            role,
            start,
            end: self.log.entries.len(),
            loops: self.enclosing_loops.iter().map(|enclosing| enclosing.start).collect(),
            branch: self.branch,
            visible,
            location: self.log.flow.location(),
            value,
            lent: Vec::new(),
            memory: None,
            mutators_of: mutators_of.unwrap_or(index),
            target: None,
        });
        index
    }

    /// A point at which the function returns; its region is that of point 0.
    pub fn exit(&mut self) -> usize {
        self.point(Role::Exit, 0, true, Some(0))
    }

    fn scoped<R>(&mut self, walk: impl FnOnce(&mut Self) -> R) -> R {
        let condition = mem::replace(&mut self.condition, false);
        let names = self.names();
        let result = self.branch(walk);
        self.forget(names);
        self.condition = condition;
        result
    }

    /// The number of names in scope, of each kind.
    fn names(&self) -> [usize; 3] {
        [self.scope.len(), self.uncertain_names.len(), self.meant.len()]
    }

    /// Ends a scope that began with these numbers of names.
    fn forget(&mut self, [scope, uncertain_names, meant]: [usize; 3]) {
        self.scope.truncate(scope);
        self.uncertain_names.truncate(uncertain_names);
        self.meant.truncate(meant);
    }

    /// Walks through code that may not run.
    fn branch<R>(&mut self, walk: impl FnOnce(&mut Self) -> R) -> R {
        self.log.branches.push(self.branch);
        let outside = mem::replace(&mut self.branch, self.log.branches.len());
        let result = walk(self);
        self.branch = outside;
        result
    }

    fn in_condition<R>(&mut self, walk: impl FnOnce(&mut Self) -> R) -> R {
        let condition = mem::replace(&mut self.condition, true);
        let result = walk(self);
        self.condition = condition;
        result
    }

    fn without_rewriting<R>(&mut self, walk: impl FnOnce(&mut Self) -> R) -> R {
        let inert = mem::replace(&mut self.inert, true);
        let before = self.log.flow.fork();
        self.target = None;
        let result = self.scoped(walk);
        self.log.flow.join_skipped(before);
        self.inert = inert;
        result
    }

    /// Wraps `inner` in a region; its value is carried if `value` says so.
    fn region(&mut self, span: Span, start: usize, inner: &TokenStream, value: Value) -> Expr {
        let point = self.point(Role::Join, start, value.carried, None);
        self.log.points[point].lent = value.lent;
        self.log.points[point].target = value.target.filter(|_| value.carried);
        self.is_pending |= self.log.points[point].target.is_some();
        let enter = enter(span, point);
        Expr::Verbatim(join(span, &enter, inner, point))
    }

    /// Wraps `inner` in a region with a value, which is entered if `needed` holds.
    fn region_if(
        &mut self,
        span: Span,
        start: usize,
        inner: &TokenStream,
        needed: &TokenStream,
    ) -> Expr {
        let point = self.point(Role::Join, start, true, None);
        let enter = quote_spanned!(span=> ::phigrad::flow::enter_if(#needed));
        let enter = enter_by(&enter, point);
        Expr::Verbatim(join(span, &enter, inner, point))
    }

    /// The value of `expr`, and whether it is used.
    fn value(&self, expr: &Expr, used: bool) -> Value {
        let names = if used { borrows::of_value(expr) } else { Vec::new() };
        let lent = names.iter().filter_map(|name| self.find(name)).collect();
        Value { carried: used, lent, target: None }
    }

    pub fn block(&mut self, block: &mut Block) {
        let condition = mem::replace(&mut self.condition, false);
        let (names, target) = (self.names(), self.target.take());
        let count = block.stmts.len();
        let mut inserted = Vec::new();
        for (index, statement) in block.stmts.iter_mut().enumerate() {
            let last = index + 1 == count;
            let is_value = matches!(statement, Stmt::Expr(_, None));
            self.target = target.filter(|_| last && is_value);
            let tail = last && matches!(statement, Stmt::Expr(_, None));
            let closures = self.log.closures.len();
            let storing = self.storing;
            self.storing &= tail;
            self.statement(statement, last);
            self.storing = storing;
            let is_closure = matches!(&*statement, Stmt::Local(local) if is_closure(local));
            if is_closure && !self.inert && self.log.closures.len() > closures {
                // Closures inside it come first.
                let closure = self.log.closures.len() - 1;
                let span = Span::mixed_site();
                let local = format_ident!("__phigrad_holds_{closure}", span = span);
                let captured = format_ident!("__phigrad_captured_by_{closure}", span = span);
                let tokens =
                    quote_spanned! {span=> #[allow(unused_variables)] let #local = #captured; };
                inserted.push((index, tokens));
            }
            inserted.extend(self.before.drain(..).map(|tokens| (index, tokens)));
            inserted.extend(self.after.drain(..).map(|tokens| (index + 1, tokens)));
        }
        for (count, (at, tokens)) in inserted.into_iter().enumerate() {
            block.stmts.insert(at + count, Stmt::Expr(Expr::Verbatim(tokens), None));
        }
        self.forget(names);
        self.condition = condition;
    }

    fn statement(&mut self, statement: &mut Stmt, last: bool) {
        match statement {
            Stmt::Local(local) => self.local(local),
            Stmt::Item(syn::Item::Macro(item)) => self.macro_item(item),
            Stmt::Item(_) => {}
            Stmt::Macro(call) => {
                let pins = self.macro_call(&call.mac);
                self.before.extend(pins);
                self.declares(&call.mac);
            }
            Stmt::Expr(expr, semicolon) => {
                let value = last && semicolon.is_none();
                self.any(expr, value);
                if !value && semicolon.is_none() && matches!(expr, Expr::Verbatim(_)) {
                    *semicolon = Some(Token![;](Span::mixed_site()));
                }
            }
        }
    }

    pub fn expr(&mut self, expr: &mut Expr) {
        self.any(expr, true);
    }

    /// Walks through an expression; `value` tells whether its value is used.
    fn any(&mut self, expr: &mut Expr, value: bool) {
        let span = expr.span();
        let target = self.target.take();
        if let Some(target) = target
            && (self.negation(expr, target) || self.sum(expr, target))
        {
            return;
        }
        if self.swap(expr) {
            return;
        }
        match expr {
            Expr::Array(array) => array.elems.iter_mut().for_each(|e| self.argument(e)),
            Expr::Assign(_) => self.assignment(expr),
            Expr::Binary(binary) => match binary.op {
                BinOp::And(_) | BinOp::Or(_) => self.logic(expr, target),
                op if shape::assigns(&op) => self.operator_assignment(expr),
                op if types::is_question(&op) => self.compare(expr),
                _ => {
                    self.expr(&mut binary.left);
                    self.expr(&mut binary.right);
                }
            },
            Expr::Block(block) if block.label.is_some() => self.labelled(expr, value, target),
            Expr::Block(block) => {
                self.target = target;
                self.block(&mut block.block);
            }
            Expr::Break(jump) => {
                if let Some(value) = &mut jump.expr {
                    self.expr(value);
                }
                self.jump_out(&mut jump.label);
            }
            Expr::Call(call) => {
                self.called(&mut call.func);
                call.args.iter_mut().for_each(|argument| self.argument(argument));
                if !shape::makes(&call.func) {
                    self.log.flow.may_diverge();
                }
            }
            Expr::Cast(cast) => {
                if matches!(&*cast.ty, syn::Type::Ptr(_)) {
                    // The address in a pointer is observable.
                    self.push_event(Kind::Unseen);
                }
                self.expr(&mut cast.expr);
            }
            Expr::Closure(closure) if closure.asyncness.is_none() => {
                self.log.flow.enter_closure();
                let pins = self.pins.take();
                self.without_rewriting(|walker| {
                    for pattern in &closure.inputs {
                        walker.bind_parameter(pattern, Bound::default());
                    }
                    walker.storing(|walker| walker.expr(&mut closure.body));
                });
                self.pins = pins;
                self.log.flow.leave_closure();
            }
            Expr::Const(_) | Expr::Infer(_) | Expr::Lit(_) => {}
            Expr::Continue(_) => self.continue_loop(expr),
            Expr::Path(_) => {
                self.target = target;
                self.read(expr);
            }
            Expr::Index(_) => self.element(expr),
            Expr::Field(_) => self.read(expr),
            Expr::ForLoop(_) => self.for_loop(expr),
            Expr::Group(group) => {
                self.target = target;
                self.any(&mut group.expr, value);
            }
            Expr::If(_) => self.if_region(expr, value, target),
            Expr::Let(condition) => {
                let known = self.is_known(&condition.expr);
                let lenders = self.lenders_of(&condition.expr, false);
                let is_unbound = shape::names(&condition.pat).is_empty();
                self.is_scrutinee =
                    !self.inert && is_unbound && plain::bare(&condition.expr).is_some();
                let borrows = self.scrutinee(&mut condition.expr, Some(&condition.pat));
                if mem::take(&mut self.is_scrutinee) {
                    self.pin_condition(&mut condition.expr);
                }
                let bound = Bound { known, refutable: true, ..Bound::default() };
                self.lent_by(lenders, |walker| walker.bind_pattern(&condition.pat, bound));
                if borrows {
                    self.storing(|walker| walker.change(&mut condition.expr, true));
                }
            }
            Expr::Loop(_) | Expr::While(_) => self.loop_region(expr, value, target),
            Expr::Macro(call) => {
                let pins = self.macro_call(&call.mac);
                if !pins.is_empty() {
                    *expr = Expr::Verbatim(quote_spanned! {Span::mixed_site()=>
                        (match { #(#pins)* } { () => #expr })
                    });
                }
            }
            Expr::Match(_) => self.match_region(expr, value, target),
            Expr::MethodCall(call) => {
                let receiver = call.receiver.clone();
                if !Self::can_wrap(&call.args)
                    && let Some(variable) = plain::bare(&receiver).and_then(|name| self.find(name))
                {
                    self.refused.push(variable);
                }
                let method = self.receiver(&mut call.receiver, &call.method);
                let storing = mem::replace(&mut self.storing, true);
                self.alias_arguments(&receiver, &call.method, &call.args);
                call.args.iter_mut().for_each(|argument| self.argument(argument));
                self.storing = storing;
                self.log.flow.may_diverge();
                if let Some(number) = method {
                    *expr = Expr::Verbatim(crate::emit::noted(number, &receiver, expr));
                }
                self.pin_call(&receiver, expr);
            }
            Expr::Paren(paren) => {
                self.target = target;
                self.any(&mut paren.expr, value);
            }
            Expr::Range(range) => {
                for end in [&mut range.start, &mut range.end].into_iter().flatten() {
                    self.expr(end);
                }
            }
            Expr::RawAddr(raw) => {
                self.push_event(Kind::Unseen);
                self.change(&mut raw.expr, true);
            }
            Expr::Reference(reference) => match reference.mutability {
                Some(_) => self.change(&mut reference.expr, true),
                None => {
                    self.look(&mut reference.expr);
                    self.pin_reference(expr);
                }
            },
            Expr::Repeat(repeat) => self.expr(&mut repeat.expr),
            Expr::Return(_) => self.return_value(expr),
            Expr::Struct(data) => {
                for field in &mut data.fields {
                    let inert = self.inert;
                    if self.tracked(&field.expr).is_some() {
                        field.colon_token.get_or_insert(Token![:](Span::mixed_site()));
                    }
                    let is_scrutinee = self.is_scrutinee;
                    self.is_scrutinee = field.colon_token.is_none() && !inert;
                    self.inert |= field.colon_token.is_none();
                    self.argument(&mut field.expr);
                    (self.inert, self.is_scrutinee) = (inert, is_scrutinee);
                }
                if let Some(rest) = &mut data.rest {
                    self.expr(rest);
                }
            }
            Expr::Try(_) => self.question(expr),
            Expr::Tuple(tuple) => tuple.elems.iter_mut().for_each(|e| self.argument(e)),
            Expr::Unary(unary) => match unary.op {
                UnOp::Deref(_) => self.read(expr),
                _ => self.expr(&mut unary.expr),
            },
            Expr::Unsafe(block) => {
                if shape::has_control_flow(&block.block) && !self.inert {
                    self.refuse(span, "an unsafe block with control flow or assignments");
                }
                let outside = mem::replace(&mut self.unsafe_code, true);
                let pins = self.pins.take();
                self.without_rewriting(|walker| walker.block(&mut block.block));
                (self.unsafe_code, self.pins) = (outside, pins);
            }
            Expr::Async(_) | Expr::Await(_) | Expr::Closure(_) => self.refuse(span, "async code"),
            Expr::TryBlock(_) => self.refuse(span, "a try block"),
            Expr::Yield(_) => self.refuse(span, "a generator"),
            _ => self.unknown(quote!(#expr)),
        }
    }

    /// Sets the type of a variable declared without a value.
    fn set_type(&mut self, left: &Expr, known: bool) {
        if let Expr::Path(path) = left
            && let Some(variable) = path.path.get_ident().and_then(|name| self.find(name))
        {
            let binding = &mut self.log.bindings[variable];
            binding.known |= binding.is_deferred() && known;
        }
    }

    /// Walks through code whose values may be stored.
    fn storing<R>(&mut self, walk: impl FnOnce(&mut Self) -> R) -> R {
        let storing = mem::replace(&mut self.storing, true);
        let result = walk(self);
        self.storing = storing;
        result
    }

    fn is_known(&self, expr: &Expr) -> bool {
        let known = |name: &Ident| self.find(name).map(|v| self.log.bindings[v].known);
        types::is_known(expr, &known)
    }

    fn refuse(&mut self, span: Span, what: &str) {
        let message = format!(
            "`#[phigrad::traced]` does not support {what}; move it into a function without the \
             attribute"
        );
        self.errors.push(Error::new(span, message));
    }

    /// Walks through an argument of a call, a field or an element.
    fn argument(&mut self, argument: &mut Expr) {
        if place(argument).is_some() && !matches!(argument, Expr::Index(_)) {
            self.target = self.target.take().filter(|_| plain::bare(argument).is_some());
            self.lend(argument);
        } else if matches!(argument, Expr::Index(_)) {
            self.target = None;
            self.lend_element(argument);
        } else {
            self.expr(argument);
        }
    }
}

fn is_closure(local: &Local) -> bool {
    local.init.as_ref().is_some_and(|init| matches!(&*init.expr, Expr::Closure(_)))
}

/// The call that enters the region that ends at `point`. All of it has the keyword's span, which
/// becomes the region's place.
pub fn enter(span: Span, point: usize) -> TokenStream {
    enter_by(&quote_spanned!(span=> ::phigrad::flow::enter()), point)
}

fn enter_by(enter: &TokenStream, point: usize) -> TokenStream {
    let mutators = format_ident!("__phigrad_mutators_{point}", span = Span::mixed_site());
    let jumps = format_ident!("__phigrad_jumps_{point}", span = Span::mixed_site());
    let live_ins = format_ident!("__phigrad_live_ins_{point}", span = Span::mixed_site());
    quote!(#enter.with_mutators(#mutators) #jumps #live_ins)
}

/// The call that ends `region` at `point` with the value of `inner`.
pub fn join(span: Span, region: &TokenStream, inner: &TokenStream, point: usize) -> TokenStream {
    let span = Span::mixed_site().located_at(span);
    let point = format_ident!("__phigrad_point_{point}", span = span);
    quote_spanned! {span=>
        ::phigrad::flow::join(#region, #inner, |__phigrad_value, __phigrad_to| { #point })
    }
}
