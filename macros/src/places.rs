//! Place expressions: the variable that an expression reads or changes, and known method names.

use proc_macro2::Ident;
use syn::{Expr, Lit, Member, PatIdent, UnOp};

/// A projection step from a variable: to a part of it, or to its target.
#[derive(Clone)]
pub enum Step {
    Field(Member),
    /// The index, if it is a name or a number.
    Index(Option<Index>),
    Deref,
}

/// An index that is constant as long as its variable is.
#[derive(Clone)]
pub enum Index {
    Name(Ident),
    Number(usize),
}

fn index(expr: &Expr) -> Option<Index> {
    match expr {
        Expr::Path(path) => path.path.get_ident().map(|name| Index::Name(name.clone())),
        Expr::Lit(literal) => match &literal.lit {
            Lit::Int(number) => number.base10_parse().ok().map(Index::Number),
            _ => None,
        },
        _ => None,
    }
}

/// The variable at the root of a place, and the steps from it.
pub fn place(expr: &Expr) -> Option<(&Ident, Vec<Step>)> {
    let (inner, step) = match expr {
        Expr::Path(path) if path.qself.is_none() => {
            return path.path.get_ident().map(|name| (name, Vec::new()));
        }
        Expr::Paren(paren) => return place(&paren.expr),
        Expr::Group(group) => return place(&group.expr),
        Expr::Field(field) => (&field.base, Step::Field(field.member.clone())),
        Expr::Index(indexed) => (&indexed.expr, Step::Index(index(&indexed.index))),
        Expr::Unary(unary) if matches!(unary.op, UnOp::Deref(_)) => (&unary.expr, Step::Deref),
        _ => return None,
    };
    let (name, mut steps) = place(inner)?;
    steps.push(step);
    Some((name, steps))
}

/// The leading field accesses of `steps`.
pub fn fields(steps: &[Step]) -> Vec<Member> {
    let fields = steps.iter().map_while(|step| match step {
        Step::Field(member) => Some(member.clone()),
        Step::Index(_) | Step::Deref => None,
    });
    fields.collect()
}

/// Tests whether an assignment to this place may change the target of a reference.
pub fn is_own(steps: &[Step]) -> bool {
    steps.iter().all(|step| matches!(step, Step::Field(_)))
}

/// Methods of common types that change nothing.
const READERS: &[&str] = &[
    "abs",
    "abs_sub",
    "acos",
    "acosh",
    "as_ref",
    "as_slice",
    "as_str",
    "asin",
    "asinh",
    "at_least",
    "at_most",
    "atan",
    "atan2",
    "atanh",
    "bessel_i",
    "bessel_j",
    "beta_inc",
    "binary_search",
    "capacity",
    "cbrt",
    "ceil",
    "chars",
    "chunks",
    "chunks_exact",
    "clamp",
    "clone",
    "concat",
    "contains",
    "contains_key",
    "copysign",
    "cos",
    "cosh",
    "detach",
    "differs_from",
    "digamma",
    "div_euclid",
    "ends_with",
    "equal_to",
    "erf",
    "erf_inv",
    "erfc",
    "erfc_inv",
    "erfcx",
    "exp",
    "exp2",
    "exp_m1",
    "first",
    "floor",
    "fract",
    "gamma_p",
    "gamma_q",
    "get",
    "greater_than",
    "hypot",
    "is_empty",
    "is_err",
    "is_finite",
    "is_infinite",
    "is_nan",
    "is_negative",
    "is_none",
    "is_ok",
    "is_one",
    "is_positive",
    "is_sign_negative",
    "is_sign_positive",
    "is_some",
    "is_zero",
    "iter",
    "join",
    "keys",
    "len",
    "less_than",
    "ln",
    "ln_1p",
    "ln_beta",
    "ln_gamma",
    "ln_normal_cdf",
    "ln_rising",
    "log",
    "log10",
    "log2",
    "log_add_exp",
    "logit",
    "mul_add",
    "neg",
    "normal_cdf",
    "normal_quantile",
    "polygamma",
    "powf",
    "powi",
    "recip",
    "rem_euclid",
    "round",
    "saturating_add",
    "saturating_sub",
    "select",
    "sigmoid",
    "signum",
    "sin",
    "sin_cos",
    "sinh",
    "softplus",
    "sqrt",
    "starts_with",
    "tan",
    "tanh",
    "to_degrees",
    "to_owned",
    "to_radians",
    "to_string",
    "to_vec",
    "total_cmp",
    "trigamma",
    "trunc",
    "value",
    "values",
    "windows",
    "wrapping_add",
    "wrapping_mul",
    "wrapping_sub",
];

/// The same, but on an iterator behind a reference they consume items.
const READERS_OR_TAKERS: &[&str] = &[
    "cmp",
    "cloned",
    "copied",
    "eq",
    "ge",
    "gt",
    "last",
    "le",
    "lt",
    "max",
    "min",
    "ne",
    "partial_cmp",
];

/// Tests whether a method of this name changes nothing of a variable; `mutable` tells that the
/// variable was declared with `mut`, so that it is no mutable reference.
pub fn is_reader(method: &Ident, mutable: bool) -> bool {
    let is = |list: &[&str]| list.iter().any(|reader| method == reader);
    is(READERS) || (mutable && is(READERS_OR_TAKERS))
}

/// Tests whether a method of this name belongs to a trait of the language that changes nothing.
pub fn is_common(method: &Ident) -> bool {
    ["clone", "to_owned", "to_string"].iter().any(|name| method == name)
}

/// Methods that borrow their receiver and do not move it.
const LOOKERS: &[&str] = &[
    "as_ref",
    "as_slice",
    "as_str",
    "binary_search",
    "capacity",
    "chars",
    "chunks",
    "clone",
    "contains",
    "contains_key",
    "first",
    "get",
    "is_empty",
    "iter",
    "keys",
    "len",
    "to_owned",
    "to_string",
    "to_vec",
    "values",
    "windows",
];

/// Methods that change their receiver and keep no reference into it.
const TAKERS: &[&str] = &[
    "append",
    "clear",
    "dedup",
    "extend",
    "fill",
    "next",
    "next_back",
    "pop",
    "pop_back",
    "pop_front",
    "push",
    "push_back",
    "push_front",
    "push_str",
    "remove",
    "replace",
    "resize",
    "retain",
    "reverse",
    "sort",
    "sort_by",
    "sort_by_key",
    "swap",
    "swap_remove",
    "truncate",
];

/// Tests whether a method of this name does not move its receiver.
pub fn is_looker(method: &Ident) -> bool {
    LOOKERS.iter().any(|name| method == name)
}

/// Tests whether no result of a method of this name borrows from its receiver.
pub fn is_taker(method: &Ident) -> bool {
    TAKERS.iter().any(|name| method == name)
}

/// Functions and methods that observe more than the content of their arguments: addresses, owners,
/// capacity.
const UNSEEN: &[&str] = &[
    "addr",
    "addr_eq",
    "align_offset",
    "align_to",
    "as_mut_ptr",
    "as_mut_ptr_range",
    "as_ptr",
    "as_ptr_range",
    "capacity",
    "expose_provenance",
    "fn_addr_eq",
    "from_mut",
    "from_ref",
    "is_unique",
    "offset_from",
    "ptr_eq",
    "spare_capacity_mut",
    "strong_count",
    "upgrade",
    "weak_count",
];

/// The same for `Rc` and `Arc`, called as functions.
const UNSEEN_OF_OWNERS: &[&str] =
    &["get_mut", "into_inner", "make_mut", "try_unwrap", "unwrap_or_clone"];

/// Tests whether a method of this name may observe state that is not handed over.
pub fn asks_unseen(method: &Ident) -> bool {
    UNSEEN.iter().any(|name| method == name)
}

/// Tests whether a function of this name, of this type or module, may do so.
pub fn asks_unseen_of(owner: Option<&Ident>, function: &Ident) -> bool {
    asks_unseen(function)
        || (owner.is_some() && UNSEEN_OF_OWNERS.iter().any(|name| function == name))
        || (function == "eq" && owner.is_none_or(|owner| owner == "ptr"))
}

/// Tests whether the items of this iterator are certainly numbers.
pub fn counts(expr: &Expr) -> bool {
    match expr {
        Expr::Range(_) => true,
        Expr::Paren(paren) => counts(&paren.expr),
        Expr::MethodCall(call) => {
            ["rev", "skip", "take", "step_by"].iter().any(|name| call.method == name)
                && counts(&call.receiver)
        }
        _ => false,
    }
}

/// Tests whether `expr` certainly yields mutable references: `x.iter_mut()`.
pub fn lends_items(expr: &Expr) -> bool {
    match expr {
        Expr::MethodCall(call) => {
            ["iter_mut", "chunks_mut", "chunks_exact_mut", "values_mut"]
                .iter()
                .any(|name| call.method == name)
                || (["rev", "skip", "take", "step_by"].iter().any(|name| call.method == name)
                    && lends_items(&call.receiver))
        }
        Expr::Paren(paren) => lends_items(&paren.expr),
        _ => false,
    }
}

/// The same after `.enumerate()`.
pub fn lends_numbered_items(expr: &Expr) -> bool {
    matches!(expr, Expr::MethodCall(call) if call.method == "enumerate" && lends_items(&call.receiver))
}

/// Tests whether a name in a refutable pattern is certainly a variable, and no constant.
pub fn is_variable(name: &PatIdent) -> bool {
    name.by_ref.is_some()
        || name.mutability.is_some()
        || name.subpat.is_some()
        || !name.ident.to_string().starts_with(char::is_uppercase)
}
