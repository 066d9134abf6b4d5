//! Types of expressions, as far as the text shows.

use quote::ToTokens;
use syn::{BinOp, Block, Expr, Ident, Stmt, Type, UnOp};

use crate::tokens;

/// Generic types that are often constructed before their parameters are inferred.
const CONTAINERS: &[&str] = &[
    "Arc",
    "BTreeMap",
    "BTreeSet",
    "BinaryHeap",
    "Box",
    "Cell",
    "Cow",
    "HashMap",
    "HashSet",
    "LinkedList",
    "Option",
    "Rc",
    "RefCell",
    "Result",
    "Vec",
    "VecDeque",
    "Default",
    "PhantomData",
];

/// Functions and methods whose type is inferred from the use of the result.
const INFERRED: &[&str] = &[
    "collect",
    "default",
    "empty",
    "from_iter",
    "into",
    "parse",
    "product",
    "sum",
    "try_from",
    "try_into",
    "unzip",
    "partition",
    "with_capacity",
    "zeroed",
];

const NUMBERS: &[&str] = &[
    "Var", "bool", "char", "f32", "f64", "i8", "i16", "i32", "i64", "i128", "isize", "u8", "u16",
    "u32", "u64", "u128", "usize",
];

fn is_one_of(name: &Ident, list: &[&str]) -> bool {
    list.iter().any(|other| name == other)
}

/// Tests whether the type of `expr` is certainly inferred where it stands, without later code;
/// `variable` answers for variables, and `None` for other names.
pub fn is_known(expr: &Expr, variable: &dyn Fn(&Ident) -> Option<bool>) -> bool {
    let known = |expr: &Expr| is_known(expr, variable);
    let typed = |ty: &Type| is_known_type(ty);
    match expr {
        Expr::Lit(_) => true,
        Expr::Path(path) => match path.path.get_ident() {
            Some(name) => variable(name).unwrap_or_else(|| {
                // A constant; a single letter may be a parameter, other names are variants.
                let name = name.to_string();
                name.len() > 1 && !name.contains(char::is_lowercase)
            }),
            None => false,
        },
        Expr::Field(field) => known(&field.base),
        Expr::Index(index) => known(&index.expr),
        Expr::Paren(paren) => known(&paren.expr),
        Expr::Group(group) => known(&group.expr),
        Expr::Reference(reference) => known(&reference.expr),
        Expr::Try(question) => known(&question.expr),
        Expr::Unary(unary) => known(&unary.expr),
        Expr::Cast(cast) => typed(&cast.ty),
        Expr::Binary(binary) => {
            is_question(&binary.op) || (known(&binary.left) && known(&binary.right))
        }
        Expr::Range(range) => {
            [&range.start, &range.end].into_iter().flatten().all(|end| known(end))
        }
        // All elements have one type.
        Expr::Array(array) => array.elems.iter().any(known),
        Expr::Repeat(repeat) => known(&repeat.expr),
        Expr::Tuple(tuple) => tuple.elems.iter().all(known),
        Expr::Struct(data) => {
            data.fields.iter().all(|field| known(&field.expr))
                && data.rest.as_ref().is_none_or(|rest| known(rest))
        }
        Expr::MethodCall(call) => {
            let named = call.turbofish.is_some() || !is_one_of(&call.method, INFERRED);
            let plain = |argument: &Expr| matches!(argument, Expr::Closure(_)) || known(argument);
            named && known(&call.receiver) && call.args.iter().all(plain)
        }
        Expr::Call(call) => is_known_call(call, variable),
        Expr::Block(block) => is_known_block(&block.block, variable),
        Expr::If(branch) => is_known_block(&branch.then_branch, variable),
        Expr::Match(choice) => choice.arms.first().is_some_and(|arm| known(&arm.body)),
        Expr::Macro(call) if call.mac.path.is_ident("format") => true,
        Expr::Macro(call) if call.mac.path.is_ident("vec") => {
            tokens::arguments(&call.mac).is_some_and(|elements| elements.first().is_some_and(known))
        }
        _ => false,
    }
}

fn is_known_call(call: &syn::ExprCall, variable: &dyn Fn(&Ident) -> Option<bool>) -> bool {
    let Expr::Path(path) = &*call.func else { return false };
    let arguments = call.args.iter().all(|argument| is_known(argument, variable));
    let names: Vec<&Ident> = path.path.segments.iter().map(|segment| &segment.ident).collect();
    let Some((&last, before)) = names.split_last() else { return false };
    let is_type = |name: &Ident| name.to_string().starts_with(char::is_uppercase);
    let owner = before.last().filter(|name| is_type(name) || is_one_of(name, NUMBERS));
    match owner {
        // A single letter is a generic parameter.
        Some(name)
            if is_one_of(name, NUMBERS)
                || ["Self", "String"].iter().any(|own| *name == own)
                || name.to_string().len() == 1 =>
        {
            true
        }
        Some(name) if is_one_of(name, CONTAINERS) && last == "with_capacity" => false,
        Some(_) => !call.args.is_empty() && arguments,
        None if last == "Some" => arguments,
        None if last == "Ok" || last == "Err" => false,
        None if is_type(last) => !call.args.is_empty() && arguments,
        None => arguments && !is_one_of(last, INFERRED) && last != "new",
    }
}

/// A block with statements may have variables of its own.
fn is_known_block(block: &Block, variable: &dyn Fn(&Ident) -> Option<bool>) -> bool {
    match block.stmts.as_slice() {
        [Stmt::Expr(expr, None)] => is_known(expr, variable),
        _ => false,
    }
}

/// Tests whether the result of the operator is a `bool`.
pub fn is_question(op: &BinOp) -> bool {
    matches!(
        op,
        BinOp::Eq(_)
            | BinOp::Ne(_)
            | BinOp::Lt(_)
            | BinOp::Le(_)
            | BinOp::Gt(_)
            | BinOp::Ge(_)
            | BinOp::And(_)
            | BinOp::Or(_)
    )
}

/// Tests whether a type has nothing to infer.
pub fn is_known_type(ty: &Type) -> bool {
    tokens::idents(ty.to_token_stream()).iter().all(|name| name != "_")
}

/// Tests whether a type is certainly one of numbers.
pub fn is_number_type(ty: &Type) -> bool {
    matches!(ty, Type::Path(path) if path.path.get_ident().is_some_and(|n| is_one_of(n, NUMBERS)))
}

/// Tests whether the value of `expr` is certainly a number.
pub fn is_number(expr: &Expr) -> bool {
    match expr {
        Expr::Lit(literal) => !matches!(literal.lit, syn::Lit::Str(_) | syn::Lit::ByteStr(_)),
        Expr::Cast(cast) => is_number_type(&cast.ty),
        Expr::Paren(paren) => is_number(&paren.expr),
        Expr::Unary(unary) => !matches!(unary.op, UnOp::Deref(_)) && is_number(&unary.expr),
        Expr::Binary(binary) => {
            is_question(&binary.op) || is_number(&binary.left) || is_number(&binary.right)
        }
        Expr::Call(_) => is_copied(expr),
        _ => false,
    }
}

/// Tests whether a type is certainly `Copy`.
pub fn is_copied_type(ty: &Type) -> bool {
    match ty {
        Type::Path(path) => path.path.get_ident().is_some_and(|name| is_one_of(name, NUMBERS)),
        Type::Reference(reference) => reference.mutability.is_none(),
        _ => false,
    }
}

/// Tests whether the type of `expr` is certainly `Copy`.
pub fn is_copied(expr: &Expr) -> bool {
    match expr {
        Expr::Lit(_) | Expr::Index(_) | Expr::Cast(_) => true,
        Expr::Paren(paren) => is_copied(&paren.expr),
        Expr::Unary(unary) => !matches!(unary.op, UnOp::Deref(_)) && is_copied(&unary.expr),
        Expr::Binary(binary) => {
            is_question(&binary.op) || (is_copied(&binary.left) && is_copied(&binary.right))
        }
        Expr::Call(call) => match &*call.func {
            Expr::Path(path) => path.path.segments.first().is_some_and(|first| {
                path.path.segments.len() == 2 && is_one_of(&first.ident, NUMBERS)
            }),
            _ => false,
        },
        _ => false,
    }
}
