//! Borrows: the variables that the value of an expression may borrow from, as far as its text
//! shows.

use proc_macro2::Ident;
use syn::visit::{self, Visit};
use syn::{Block, Expr, Stmt};

use crate::places::place;

/// Methods of the standard library whose results borrow from their receiver.
const LENDERS: &[&str] = &[
    "as_bytes",
    "as_deref",
    "as_ref",
    "as_slice",
    "as_str",
    "borrow",
    "chars",
    "chunks",
    "chunks_exact",
    "first",
    "get",
    "iter",
    "keys",
    "last",
    "lines",
    "range",
    "rchunks",
    "split_at",
    "split_first",
    "split_last",
    "trim",
    "values",
    "windows",
];

/// Methods whose result holds the references that their receiver holds.
const PASSERS: &[&str] = &[
    "and",
    "as_deref",
    "as_ref",
    "chain",
    "collect",
    "cycle",
    "enumerate",
    "expect",
    "filter",
    "find",
    "fuse",
    "into_iter",
    "last",
    "max_by",
    "max_by_key",
    "min_by",
    "min_by_key",
    "next",
    "next_back",
    "nth",
    "ok",
    "ok_or",
    "or",
    "peek",
    "peekable",
    "rev",
    "skip",
    "skip_while",
    "step_by",
    "take",
    "take_while",
    "to_vec",
    "unwrap",
    "unwrap_or",
    "unwrap_or_default",
    "unwrap_or_else",
    "zip",
];

fn name(expr: &Expr) -> Option<Ident> {
    place(expr).map(|(name, _)| name.clone())
}

fn is_lender(method: &Ident) -> bool {
    method.to_string().ends_with("_mut") || LENDERS.iter().any(|lender| method == lender)
}

/// The variables that the value of `expr` borrows from, with `true`, and those whose references it
/// holds. If it certainly `holds` a reference, any call may return one of its arguments.
pub fn of(expr: &Expr, holds: bool) -> Vec<(Ident, bool)> {
    let mut names = Vec::new();
    collect(expr, holds, &mut names);
    names
}

fn collect(expr: &Expr, holds: bool, names: &mut Vec<(Ident, bool)>) {
    match expr {
        Expr::Path(_) => names.extend(name(expr).map(|name| (name, false))),
        Expr::Reference(reference) => match name(&reference.expr) {
            Some(name) => names.push((name, true)),
            None => collect(&reference.expr, holds, names),
        },
        Expr::MethodCall(call) => {
            let passes = PASSERS.iter().any(|passer| call.method == passer);
            if is_lender(&call.method) || holds {
                names.extend(name(&call.receiver).map(|name| (name, true)));
            }
            let mutable = !of_mutable(&call.receiver).is_empty();
            if passes || holds || mutable || is_lender(&call.method) {
                collect(&call.receiver, holds, names);
                let is_value = |argument: &&Expr| !matches!(argument, Expr::Closure(_));
                call.args.iter().filter(is_value).for_each(|a| collect(a, holds, names));
            }
        }
        Expr::Call(call) => {
            let makes = crate::shape::makes(&call.func);
            for argument in &call.args {
                match makes || holds {
                    true => collect(argument, holds, names),
                    false => names.extend(of_mutable(argument).into_iter().map(|n| (n, true))),
                }
            }
        }
        Expr::Tuple(tuple) => tuple.elems.iter().for_each(|e| collect(e, holds, names)),
        Expr::Array(array) => array.elems.iter().for_each(|e| collect(e, holds, names)),
        Expr::Struct(data) => data.fields.iter().for_each(|f| collect(&f.expr, holds, names)),
        Expr::Paren(paren) => collect(&paren.expr, holds, names),
        Expr::Group(group) => collect(&group.expr, holds, names),
        Expr::Try(question) => collect(&question.expr, holds, names),
        Expr::Block(block) => tail(&block.block, &mut |e| collect(e, holds, names)),
        Expr::If(branch) => {
            tail(&branch.then_branch, &mut |e| collect(e, holds, names));
            branch.else_branch.iter().for_each(|(_, other)| collect(other, holds, names));
        }
        Expr::Match(choice) => choice.arms.iter().for_each(|a| collect(&a.body, holds, names)),
        Expr::Macro(call) if call.mac.path.is_ident("vec") => {
            let elements = crate::tokens::arguments(&call.mac).unwrap_or_default();
            elements.iter().for_each(|element| collect(element, holds, names));
        }
        _ => {}
    }
}

/// The variables that `expr` borrows mutably and may return.
fn of_mutable(expr: &Expr) -> Vec<Ident> {
    match expr {
        Expr::Reference(reference) if reference.mutability.is_some() => {
            name(&reference.expr).into_iter().collect()
        }
        Expr::MethodCall(call) if call.method.to_string().ends_with("_mut") => {
            name(&call.receiver).into_iter().collect()
        }
        Expr::MethodCall(call) => of_mutable(&call.receiver),
        Expr::Call(call) => call.args.iter().flat_map(of_mutable).collect(),
        Expr::Paren(paren) => of_mutable(&paren.expr),
        _ => Vec::new(),
    }
}

fn tail(block: &Block, visit: &mut dyn FnMut(&Expr)) {
    if let Some(Stmt::Expr(expr, None)) = block.stmts.last() {
        visit(expr);
    }
}

/// The variables that the value of `expr`, including values of `break`, may borrow from.
pub fn of_value(expr: &Expr) -> Vec<Ident> {
    struct Breaks(Vec<Ident>);
    impl Visit<'_> for Breaks {
        fn visit_expr_break(&mut self, jump: &syn::ExprBreak) {
            if let Some(value) = &jump.expr {
                borrowed(value, &mut self.0);
            }
            visit::visit_expr_break(self, jump);
        }
    }
    let mut breaks = Breaks(Vec::new());
    breaks.visit_expr(expr);
    borrowed(expr, &mut breaks.0);
    breaks.0
}

fn borrowed(expr: &Expr, names: &mut Vec<Ident>) {
    match expr {
        Expr::Reference(reference) => names.extend(name(&reference.expr)),
        Expr::MethodCall(call) => {
            let method = &call.method;
            if is_lender(method) || method == "unwrap" || method == "expect" {
                names.extend(name(&call.receiver));
                borrowed(&call.receiver, names);
            }
        }
        Expr::Call(call) => call.args.iter().for_each(|e| borrowed(e, names)),
        Expr::Tuple(tuple) => tuple.elems.iter().for_each(|e| borrowed(e, names)),
        Expr::Array(array) => array.elems.iter().for_each(|e| borrowed(e, names)),
        Expr::Struct(data) => data.fields.iter().for_each(|field| borrowed(&field.expr, names)),
        Expr::Paren(paren) => borrowed(&paren.expr, names),
        Expr::Block(block) => tail(&block.block, &mut |e| borrowed(e, names)),
        Expr::Unsafe(block) => tail(&block.block, &mut |e| borrowed(e, names)),
        Expr::If(branch) => {
            tail(&branch.then_branch, &mut |e| borrowed(e, names));
            branch.else_branch.iter().for_each(|(_, other)| borrowed(other, names));
        }
        Expr::Match(choice) => choice.arms.iter().for_each(|arm| borrowed(&arm.body, names)),
        _ => {}
    }
}
