//! Hints that a variable is plain: a flag, a counter, an index or a mode, as far as its text shows.
//!
//! A hint needs no proof, because generated code asks the type. But the constructor of the type has
//! to be known where the variable is declared: probes cannot ask a type that is inferred later.

use proc_macro2::Ident;
use syn::{BinOp, Block, Expr, Lit, Stmt, Type, UnOp};

use crate::{shape, tokens, types};

/// A variable that may be plain.
#[derive(Clone, Copy, PartialEq)]
pub struct Hint {
    /// Certainly an integer.
    pub integer: bool,
}

const INTEGER: Option<Hint> = Some(Hint { integer: true });
const OTHER: Option<Hint> = Some(Hint { integer: false });

const INTEGERS: &[&str] =
    &["i8", "i16", "i32", "i64", "i128", "isize", "u8", "u16", "u32", "u64", "u128", "usize"];

/// Types of the language and the standard library that are not plain.
const OTHERS: &[&str] = &[
    "Var",
    "f32",
    "f64",
    "str",
    "String",
    "Vec",
    "VecDeque",
    "Box",
    "Rc",
    "Arc",
    "Cell",
    "RefCell",
    "Option",
    "Result",
    "HashMap",
    "HashSet",
    "BTreeMap",
    "BTreeSet",
    "BinaryHeap",
    "Cow",
];

/// Methods of integers that return one.
const ARITHMETIC: &[&str] = &[
    "abs",
    "abs_diff",
    "clamp",
    "div_euclid",
    "max",
    "min",
    "pow",
    "rem_euclid",
    "saturating_add",
    "saturating_sub",
    "wrapping_add",
    "wrapping_mul",
    "wrapping_sub",
];

fn is_one_of(name: &Ident, list: &[&str]) -> bool {
    list.iter().any(|other| name == other)
}

fn is_type(name: &Ident) -> bool {
    name.to_string().starts_with(char::is_uppercase)
}

/// The hint of a type's name.
fn of_name(name: &Ident) -> Option<Hint> {
    match name {
        _ if is_one_of(name, INTEGERS) => INTEGER,
        _ if name == "bool" || name == "char" => OTHER,
        // A single letter is a generic parameter.
        _ if is_one_of(name, OTHERS) || name.to_string().len() == 1 => None,
        _ => is_type(name).then_some(Hint { integer: false }),
    }
}

/// The hint of a type.
pub fn of_type(ty: &Type) -> Option<Hint> {
    match ty {
        Type::Path(path) if path.qself.is_none() => {
            let last = path.path.segments.last()?;
            if last.arguments.is_empty() { of_name(&last.ident) } else { None }
        }
        Type::Paren(paren) => of_type(&paren.elem),
        Type::Group(group) => of_type(&group.elem),
        _ => None,
    }
}

/// Tests whether a type is a sequence of `Var`s, or a reference to one.
pub fn is_vars(ty: &Type) -> bool {
    let is_var = |ty: &Type| matches!(ty, Type::Path(path) if path.path.is_ident("Var"));
    match ty {
        Type::Reference(reference) => is_vars(&reference.elem),
        Type::Slice(slice) => is_var(&slice.elem),
        Type::Array(array) => is_var(&array.elem),
        Type::Path(path) => path.path.segments.last().is_some_and(|last| {
            let names = tokens::idents(quote::ToTokens::to_token_stream(&last.arguments));
            last.ident == "Vec" && matches!(&names[..], [name] if name == "Var")
        }),
        _ => false,
    }
}

/// The hint of the value of `expr`; `variable` answers for variables, and `None` for other names.
pub fn of(expr: &Expr, variable: &dyn Fn(&Ident) -> Option<Option<Hint>>) -> Option<Hint> {
    let of = |expr: &Expr| of(expr, variable);
    match expr {
        Expr::Lit(literal) => match &literal.lit {
            Lit::Int(number) if !number.suffix().starts_with('f') => INTEGER,
            Lit::Bool(_) | Lit::Char(_) => OTHER,
            _ => None,
        },
        Expr::Path(path) if path.qself.is_none() => match path.path.get_ident() {
            Some(name) => variable(name)
                .unwrap_or((is_type(name) && name != "None").then_some(Hint { integer: false })),
            None => {
                let mut names = path.path.segments.iter().rev().map(|segment| &segment.ident);
                let (last, owner) = (names.next()?, names.next()?);
                if is_one_of(owner, INTEGERS) {
                    return INTEGER;
                }
                (is_type(last) && !is_one_of(owner, OTHERS)).then_some(Hint { integer: false })
            }
        },
        Expr::Paren(paren) => of(&paren.expr),
        Expr::Group(group) => of(&group.expr),
        Expr::Unary(unary) if !matches!(unary.op, UnOp::Deref(_)) => of(&unary.expr),
        Expr::Cast(cast) => of_type(&cast.ty).filter(|_| types::is_number_type(&cast.ty)),
        Expr::Binary(binary) if types::is_question(&binary.op) => OTHER,
        Expr::Binary(binary) => match binary.op {
            BinOp::Shl(_) | BinOp::Shr(_) => of(&binary.left),
            _ => of(&binary.left)
                .zip(of(&binary.right))
                .map(|(a, b)| Hint { integer: a.integer && b.integer }),
        },
        Expr::MethodCall(call) if call.turbofish.is_none() => match of(&call.receiver) {
            _ if call.method == "len" && call.args.is_empty() => INTEGER,
            Some(hint) if hint.integer && is_one_of(&call.method, ARITHMETIC) => INTEGER,
            _ if call.method.to_string().starts_with("is_") => OTHER,
            _ => None,
        },
        Expr::Call(call) => {
            let Expr::Path(path) = &*call.func else { return None };
            let mut names = path.path.segments.iter().rev().map(|segment| &segment.ident);
            let (last, owner) = (names.next()?, names.next()?);
            // Another function may be that of a trait, whose type is inferred.
            let makes = (last == "new" || last == "default") && owner != "Default";
            of_name(owner).filter(|hint| hint.integer || makes)
        }
        Expr::Block(block) if block.label.is_none() => of_block(&block.block, &of),
        Expr::If(branch) => {
            let otherwise = branch.else_branch.as_ref().and_then(|(_, other)| of(other));
            joined([of_block(&branch.then_branch, &of), otherwise])
        }
        Expr::Match(choice) => joined(
            choice.arms.iter().filter(|arm| !shape::diverges(&arm.body)).map(|arm| of(&arm.body)),
        ),
        _ => None,
    }
}

/// The hint of a value that has one of these.
fn joined(all: impl IntoIterator<Item = Option<Hint>>) -> Option<Hint> {
    let known: Vec<Hint> = all.into_iter().flatten().collect();
    let integer = known.iter().any(|hint| hint.integer);
    (!known.is_empty()).then_some(Hint { integer })
}

fn of_block(block: &Block, of: &dyn Fn(&Expr) -> Option<Hint>) -> Option<Hint> {
    match block.stmts.as_slice() {
        // A block with statements may have variables of its own.
        [Stmt::Expr(expr, None)] => of(expr),
        _ => None,
    }
}

/// Tests whether the value of `expr` is a hash or a random number, which counts nothing.
pub fn is_scrambled(expr: &Expr) -> bool {
    const SCRAMBLERS: &[&str] = &[
        "overflowing_mul",
        "reverse_bits",
        "rotate_left",
        "rotate_right",
        "swap_bytes",
        "wrapping_mul",
        "wrapping_pow",
        "wrapping_shl",
    ];
    let names = tokens::idents(quote::ToTokens::to_token_stream(expr));
    names.iter().any(|name| is_one_of(name, SCRAMBLERS))
}

/// The tuple that the value of `expr` is, on one of its paths.
pub fn tuple_of(expr: &Expr) -> Option<&syn::ExprTuple> {
    fn tail(block: &Block) -> Option<&Expr> {
        match block.stmts.last() {
            Some(Stmt::Expr(expr, None)) => Some(expr),
            _ => None,
        }
    }
    match expr {
        Expr::Tuple(tuple) => Some(tuple),
        Expr::Block(block) => tail(&block.block).and_then(tuple_of),
        Expr::If(branch) => {
            let otherwise = || branch.else_branch.as_ref().and_then(|(_, other)| tuple_of(other));
            tail(&branch.then_branch).and_then(tuple_of).or_else(otherwise)
        }
        Expr::Match(choice) => choice.arms.iter().find_map(|arm| tuple_of(&arm.body)),
        _ => None,
    }
}

/// Tests whether `expr` is an integer literal whose absolute value is at most `limit`.
pub fn is_small(expr: &Expr, limit: u64) -> bool {
    match expr {
        Expr::Lit(literal) => match &literal.lit {
            Lit::Int(number) => number.base10_parse::<u64>().is_ok_and(|number| number <= limit),
            _ => false,
        },
        Expr::Paren(paren) => is_small(&paren.expr, limit),
        Expr::Unary(unary) => matches!(unary.op, UnOp::Neg(_)) && is_small(&unary.expr, limit),
        _ => false,
    }
}

/// The largest number that a counter begins with, and the largest by which it changes.
pub const MAX_BEGIN: u64 = 1 << 20;
pub const MAX_STEP: u64 = 4;

/// Tests whether `expr` can be evaluated twice: it has no effects, and what it computes is plain if
/// its variables are.
pub fn is_repeatable(expr: &Expr) -> bool {
    match expr {
        Expr::Lit(_) | Expr::Path(_) => true,
        Expr::Paren(paren) => is_repeatable(&paren.expr),
        Expr::Group(group) => is_repeatable(&group.expr),
        Expr::Field(field) => is_repeatable(&field.base),
        Expr::Unary(unary) => is_repeatable(&unary.expr),
        Expr::Cast(cast) => is_repeatable(&cast.expr),
        Expr::Index(index) => is_repeatable(&index.expr) && is_repeatable(&index.index),
        Expr::Binary(binary) => {
            !shape::assigns(&binary.op)
                && !matches!(binary.op, BinOp::And(_) | BinOp::Or(_))
                && is_repeatable(&binary.left)
                && is_repeatable(&binary.right)
        }
        Expr::MethodCall(call) => {
            call.method == "len" && call.args.is_empty() && is_repeatable(&call.receiver)
        }
        _ => false,
    }
}

/// Tests whether `expr` is an iterator that changes nothing and evaluates each part once.
pub fn is_hoistable(expr: &Expr) -> bool {
    match expr {
        Expr::Paren(paren) => is_hoistable(&paren.expr),
        Expr::Group(group) => is_hoistable(&group.expr),
        Expr::Reference(reference) => is_hoistable(&reference.expr),
        Expr::Index(index) => is_hoistable(&index.expr) && is_hoistable(&index.index),
        Expr::Range(range) => {
            [&range.start, &range.end].into_iter().flatten().all(|end| is_repeatable(end))
        }
        Expr::MethodCall(call) => {
            let is_simple =
                |argument: &Expr| matches!(argument, Expr::Closure(_)) || is_hoistable(argument);
            is_hoistable(&call.receiver) && call.args.iter().all(is_simple)
        }
        _ => is_repeatable(expr),
    }
}

/// The names in a repeatable expression of integers.
pub fn names(expr: &Expr) -> Option<Vec<Ident>> {
    let is_plain = is_repeatable(expr) && !has_index(expr);
    is_plain.then(|| tokens::variables(quote::ToTokens::to_token_stream(expr)))
}

fn has_index(expr: &Expr) -> bool {
    match expr {
        Expr::Index(_) | Expr::Field(_) => true,
        Expr::Paren(paren) => has_index(&paren.expr),
        Expr::Group(group) => has_index(&group.expr),
        Expr::Unary(unary) => has_index(&unary.expr),
        Expr::Cast(cast) => has_index(&cast.expr),
        Expr::Binary(binary) => has_index(&binary.left) || has_index(&binary.right),
        _ => false,
    }
}
