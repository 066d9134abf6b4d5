//! Sizes of numbers, and sums of products of them, by ordinary rounding. What is missing is
//! zero.

use super::emit::Emitter;
use super::power::Matrix;
use super::products::Factors;
use crate::op::Op;
use crate::phi::pair::{Pair, Pairs};
use crate::ssa::Node;

/// What is larger than another number by less than this and the number of steps, once for each
/// other number of a system, may be so as a polynomial of that number.
pub(super) const GROWTH: f64 = (1u32 << 12) as f64;

/// Sizes of the numbers of a row or column.
pub(super) type Sizes = Vec<Option<Node>>;

/// The sum of the sizes of numbers.
pub(super) fn total_size(emitter: &mut Emitter<'_>, row: &[Option<Pair>]) -> Node {
    let mut total = emitter.constant(0.0);
    for entry in row.iter().flatten() {
        let size = emitter.apply(Op::Abs, &[entry.high]);
        let is_first = emitter.value(total) == Some(0.0);
        total = if is_first { size } else { emitter.apply(Op::Add, &[total, size]) };
    }
    total
}

/// How large `pair` is; what is known to be zero is missing.
pub(super) fn size(emitter: &mut Emitter<'_>, pair: Option<Pair>) -> Option<Node> {
    let size = emitter.apply(Op::Abs, &[pair?.high]);
    (emitter.value(size) != Some(0.0)).then_some(size)
}

/// How large the terms are of a sum of products and `addend`.
pub(super) fn size_of_products(
    emitter: &mut Emitter<'_>,
    products: &[Factors],
    addend: Option<Pair>,
) -> Option<Node> {
    let mut terms = Vec::new();
    for &(a, b) in products {
        terms.push(size(emitter, a).zip(size(emitter, b)));
    }
    let addend = size(emitter, addend);
    let terms = terms.into_iter().flatten().map(|(a, b)| (Some(a), Some(b)));
    sum(emitter, terms, addend)
}

/// The same of the entries of `map`.
pub(super) fn sizes_of(emitter: &mut Emitter<'_>, map: &Matrix<Pair>) -> Matrix<Node> {
    map.iter().map(|row| row.iter().map(|&entry| size(emitter, entry)).collect()).collect()
}

/// `size · by`.
pub(super) fn scaled(emitter: &mut Emitter<'_>, size: Option<Node>, by: Node) -> Option<Node> {
    sum(emitter, [(size, Some(by))], None)
}

/// The sum of products of sizes, and of `addend`.
pub(super) fn sum(
    emitter: &mut Emitter<'_>,
    terms: impl IntoIterator<Item = (Option<Node>, Option<Node>)>,
    addend: Option<Node>,
) -> Option<Node> {
    let one = emitter.constant(1.0);
    let mut total = addend;
    for terms in terms {
        let (Some(a), Some(b)) = terms else { continue };
        total = Some(match total {
            None => emitter.apply(Op::Mul, &[a, b]),
            Some(total) if a == one => emitter.apply(Op::Add, &[b, total]),
            Some(total) if b == one => emitter.apply(Op::Add, &[a, total]),
            Some(total) => emitter.apply(Op::MulAdd, &[a, b, total]),
        });
    }
    total
}

/// `map · column`.
pub(super) fn applied(emitter: &mut Emitter<'_>, map: &Matrix<Node>, column: &Sizes) -> Sizes {
    let entry = |row: &Sizes| sum(emitter, row.iter().copied().zip(column.iter().copied()), None);
    map.iter().map(entry).collect()
}

/// `a · b`.
pub(super) fn product(
    emitter: &mut Emitter<'_>,
    a: &Matrix<Node>,
    b: &Matrix<Node>,
) -> Matrix<Node> {
    let mut product = Matrix::new();
    for row in a {
        let column = |other: usize| b.iter().map(move |row| row[other]);
        let entry = |other| sum(emitter, row.iter().copied().zip(column(other)), None);
        product.push((0..row.len()).map(entry).collect());
    }
    product
}

/// The sum of the sizes of products.
///
/// The products are those that the sum itself begins with, so they take no steps of their own.
pub(super) fn total_of_products(emitter: &mut Emitter<'_>, factors: &[Factors]) -> Node {
    let mut terms = Vec::new();
    for factors in factors {
        if let (Some(a), Some(b)) = factors {
            terms.push(Some(emitter.apply(Op::Mul, &[a.high, b.high]).into()));
        }
    }
    total_size(emitter, &terms)
}
