//! Sums of products of pairs, and products of matrices of them.
//!
//! What rounding takes from products and sums, and what second parts come to, is added up
//! apart from the sum and apart from each other, so that none of them waits for the others.
//! Of a matrix that is multiplied by itself, and of A·B + B·A, many products are needed
//! twice: those of two entries that face each other across the diagonal stand in two of its
//! entries, and an entry is multiplied by two of the diagonal.

use super::emit::Emitter;
use super::power::Matrix;
use crate::op::Op;
use crate::phi::pair::{Pair, Pairs, is_power_of_two};
use crate::ssa::Node;

/// A row or column of a matrix.
pub(super) type Row = Vec<Option<Pair>>;

/// Two numbers that are multiplied; if one is missing, it is zero.
pub(super) type Factors = (Option<Pair>, Option<Pair>);

/// The sum of products, and of `addend`.
pub(super) fn sum_of_products(
    emitter: &mut Emitter<'_>,
    factors: impl IntoIterator<Item = Factors>,
    addend: Option<Pair>,
) -> Option<Pair> {
    total(emitter, factors, [addend])
}

/// The sum of products, and of `addends`.
pub(super) fn total(
    emitter: &mut Emitter<'_>,
    factors: impl IntoIterator<Item = Factors>,
    addends: impl IntoIterator<Item = Option<Pair>>,
) -> Option<Pair> {
    let sum = loose_total(emitter, factors, addends)?;
    Some(emitter.normal(sum))
}

/// The same, but not made normal, so that what is made of it waits for less: the second part may be
/// some ulps of the first, and all that is left where the first cancels. A product of two pairs
/// leaves that of their second parts out, which is no more than what rounding has taken from this
/// second part already, next to the terms. No such pair is handed out: it is a factor or an addend
/// of one total, whose derivatives are told.
fn loose_total(
    emitter: &mut Emitter<'_>,
    factors: impl IntoIterator<Item = Factors>,
    addends: impl IntoIterator<Item = Option<Pair>>,
) -> Option<Pair> {
    let mut sum = Sum::default();
    for factors in factors {
        if let (Some(a), Some(b)) = factors {
            sum.add_product(emitter, a, b);
        }
    }
    for addend in addends.into_iter().flatten() {
        sum.lost = emitter.add_low(sum.lost, addend.low);
        sum.add(emitter, addend.high);
    }
    let low = emitter.add_low(sum.lost, sum.cross);
    Some(Pair { high: sum.high?, low: emitter.unless_zero(low) })
}

/// A sum of pairs in the making.
#[derive(Default)]
struct Sum {
    high: Option<Node>,
    /// What rounding has taken from products and sums.
    lost: Option<Node>,
    /// What second parts come to.
    cross: Option<Node>,
}

impl Sum {
    fn add_product(&mut self, emitter: &mut Emitter<'_>, a: Pair, b: Pair) {
        for (factor, other) in [(a, b), (b, a)] {
            if let (Some(scale), None) = (emitter.value(factor.high), factor.low)
                && is_power_of_two(scale)
            {
                if let Some(low) = other.low {
                    self.cross(emitter, low, factor.high);
                }
                let high = emitter.apply(Op::Mul, &[other.high, factor.high]);
                return self.add(emitter, high);
            }
        }
        let high = emitter.apply(Op::Mul, &[a.high, b.high]);
        let negative = emitter.apply(Op::Neg, &[high]);
        let lost = emitter.apply(Op::MulAdd, &[a.high, b.high, negative]);
        match (a == b, a.low) {
            (true, Some(low)) => {
                let twice = emitter.apply(Op::Add, &[a.high, a.high]);
                self.cross(emitter, twice, low);
            }
            _ => {
                a.low.into_iter().for_each(|low| self.cross(emitter, b.high, low));
                b.low.into_iter().for_each(|low| self.cross(emitter, a.high, low));
            }
        }
        let lost = emitter.unless_zero(Some(lost));
        self.lost = emitter.add_low(self.lost, lost);
        self.add(emitter, high);
    }

    /// Adds a product that is far smaller than the sum.
    fn cross(&mut self, emitter: &mut Emitter<'_>, a: Node, b: Node) {
        self.cross = Some(match self.cross {
            Some(sum) => emitter.apply(Op::MulAdd, &[a, b, sum]),
            None => emitter.apply(Op::Mul, &[a, b]),
        });
    }

    /// Adds `number`.
    fn add(&mut self, emitter: &mut Emitter<'_>, number: Node) {
        let Some(before) = self.high.replace(number) else { return };
        let (sum, lost) = emitter.split_sum(before, number);
        let lost = emitter.unless_zero(Some(lost));
        self.lost = emitter.add_low(self.lost, lost);
        self.high = Some(sum);
    }
}

/// `a · b`, to each entry of which these products are added.
pub(super) fn product<T: IntoIterator<Item = Factors>>(
    emitter: &mut Emitter<'_>,
    a: &Matrix<Pair>,
    b: &Matrix<Pair>,
    more: impl Fn(usize, usize) -> T,
) -> Matrix<Pair> {
    let size = a.len();
    let mut entry = |i: usize, j: usize| {
        let terms = (0..size).map(|k| (a[i][k], b[k][j])).chain(more(i, j));
        total(emitter, terms, [])
    };
    (0..size).map(|i| (0..size).map(|j| entry(i, j)).collect()).collect()
}

/// `column` multiplied by `map`, and `addend`.
pub(super) fn applied(
    emitter: &mut Emitter<'_>,
    map: &Matrix<Pair>,
    column: &Row,
    addend: &Row,
) -> Row {
    let rows = map.iter().zip(addend);
    let entry = |(row, &addend): (&Row, &Option<Pair>)| {
        let terms = row.iter().copied().zip(column.iter().copied());
        total(emitter, terms, [addend])
    };
    rows.map(entry).collect()
}

/// `row` multiplied by `map`, and the sum of `addends`.
pub(super) fn times(
    emitter: &mut Emitter<'_>,
    row: &Row,
    map: &Matrix<Pair>,
    addends: &[&Row],
) -> Row {
    let entry = |column: usize| {
        let terms = row.iter().zip(map).map(|(&a, row)| (a, row[column]));
        total(emitter, terms, addends.iter().map(|addend| addend[column]))
    };
    (0..row.len()).map(entry).collect()
}

/// The sums of each two entries of the diagonal of `a`.
fn diagonal(emitter: &mut Emitter<'_>, a: &Matrix<Pair>) -> Matrix<Pair> {
    let size = a.len();
    let mut sum = |i: usize, j: usize| {
        let (i, j) = (i.min(j), i.max(j));
        loose_total(emitter, [], [a[i][i], a[j][j]])
    };
    (0..size).map(|i| (0..size).map(|j| sum(i, j)).collect()).collect()
}

/// `a · a`.
pub(super) fn square(emitter: &mut Emitter<'_>, a: &Matrix<Pair>) -> Matrix<Pair> {
    let size = a.len();
    let sums = diagonal(emitter, a);
    // The products of entries that face each other.
    let mut around = |i: usize, j: usize| {
        let (i, j) = (i.min(j), i.max(j));
        loose_total(emitter, [(a[i][j], a[j][i])], [])
    };
    let around: Matrix<Pair> = (0..size)
        .map(|i| (0..size).map(|j| if i == j { None } else { around(i, j) }).collect())
        .collect();
    let mut entry = |i: usize, j: usize| {
        if i == j {
            return total(emitter, [(a[i][i], a[i][i])], around[i].iter().copied());
        }
        let others = (0..size).filter(|&k| k != i && k != j).map(|k| (a[i][k], a[k][j]));
        total(emitter, [(a[i][j], sums[i][j])].into_iter().chain(others), [])
    };
    (0..size).map(|i| (0..size).map(|j| entry(i, j)).collect()).collect()
}

/// `a · b + b · a`, to each entry of which these products are added.
pub(super) fn both<T: IntoIterator<Item = Factors>>(
    emitter: &mut Emitter<'_>,
    a: &Matrix<Pair>,
    b: &Matrix<Pair>,
    more: impl Fn(usize, usize) -> T,
) -> Matrix<Pair> {
    let size = a.len();
    let (of_a, of_b) = (diagonal(emitter, a), diagonal(emitter, b));
    let two = emitter.number(2.0, 0.0);
    let mut around = |i: usize, j: usize| {
        let (i, j) = (i.min(j), i.max(j));
        loose_total(emitter, [(a[i][j], b[j][i]), (a[j][i], b[i][j])], [])
    };
    let around: Matrix<Pair> = (0..size)
        .map(|i| (0..size).map(|j| if i == j { None } else { around(i, j) }).collect())
        .collect();
    let mut entry = |i: usize, j: usize| {
        if i == j {
            let twice = a[i][i].map(|entry| Pairs::product(emitter, entry, two));
            let terms = [(twice, b[i][i])].into_iter().chain(more(i, i));
            return total(emitter, terms, around[i].iter().copied());
        }
        let others = (0..size).filter(|&k| k != i && k != j);
        let others = others.flat_map(|k| [(a[i][k], b[k][j]), (b[i][k], a[k][j])]);
        let own = [(a[i][j], of_b[i][j]), (b[i][j], of_a[i][j])];
        total(emitter, own.into_iter().chain(others).chain(more(i, j)), [])
    };
    (0..size).map(|i| (0..size).map(|j| entry(i, j)).collect()).collect()
}

/// The sum of products and `addend`, by ordinary rounding; that of the pairs
/// does not count.
pub(super) fn dot(emitter: &mut Emitter<'_>, terms: &[(Pair, Node)], addend: Option<Node>) -> Node {
    let one = emitter.constant(1.0);
    let mut sum = addend;
    let lows = terms.iter().filter_map(|&(factor, x)| factor.low.map(|low| (low, x)));
    let highs = terms.iter().map(|&(factor, x)| (factor.high, x));
    let all: Vec<(Node, Node)> = lows.chain(highs).collect();
    for (factor, x) in all {
        sum = Some(match sum {
            None => emitter.apply(Op::Mul, &[factor, x]),
            Some(sum) if factor == one => emitter.apply(Op::Add, &[x, sum]),
            Some(sum) if x == one => emitter.apply(Op::Add, &[factor, sum]),
            Some(sum) => emitter.apply(Op::MulAdd, &[factor, x, sum]),
        });
    }
    sum.unwrap_or_else(|| emitter.constant(0.0))
}

/// The sum of products, as it comes.
pub(super) fn sum_of(
    emitter: &mut Emitter<'_>,
    factors: impl IntoIterator<Item = Factors>,
) -> Option<Pair> {
    let mut sum = None;
    for factors in factors {
        if let (Some(a), Some(b)) = factors {
            let product = emitter.product(a, b);
            sum = emitter.sum(sum, Some(product));
        }
    }
    sum
}
