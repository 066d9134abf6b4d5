//! Where nothing is left of what a recurrence comes to but rounding.
//!
//! At a fixed point that repels, or where a program never leaves the few directions in which
//! a system does not grow, terms with large powers add up to little or nothing. The loop
//! stays there exactly, or not at all; of the sum no digit is left, not even with twice the
//! digits. There the closed form is no number, so that its kernel does not serve, and one
//! with the loop does.
//!
//! What rounding leaves of an entry of Aⁿ may come from any entry on its way: with
//! W = 1 + |A| + |A|² + …, which tells how large the ways from a number to another one are,
//! it is no more than a few bits of W·|Aⁿ|·W. That counts where powers grow faster than
//! polynomials of n. Where they do not, with Aⁿ = B·C and a third of all steps at least in B and in C,
//! what rounding leaves is that of |B|·|C|. It counts in two cases: if |B|·|C| is larger than
//! W + |Aⁿ| by more than polynomials, so that much cancels in B·C; or if it is much even next to
//! W. In which units numbers are does not matter to all of that, and what a number does not
//! depend on has no part in it.
//!
//! Where numbers come from other loops, what has grown by much is no number, whatever is left: what
//! cancels may do so there.
//!
//! Powers of a single number have all of their digits, so that its value needs no doubt where
//! it is measured from its start (`single`), and of maps that are numbers it is known which
//! digits they have (`folded`).

use super::emit::Emitter;
use super::power::Matrix;
use super::products::{Factors, Row, sum_of_products};
use super::sizes::{
    GROWTH, Sizes, applied, product, scaled, size, size_of_products, sizes_of, sum,
};
use crate::op::Op;
use crate::phi::pair::{Pair, Pairs};
use crate::ssa::{GROWN, Node};

/// This part of its terms is to be left of a sum, for each step: so much more than the 2⁻¹⁰⁴
/// that rounding takes that the digits of a rounded number are true.
const PART: f64 = 1.0 / (1u64 << 50) as f64;

/// What has grown by less, over the number of factors, leaves more digits than count.
const FEW: f64 = 1.0 / (1u64 << 44) as f64;

/// What is to be left where powers have grown or cancel does not count if it is no more than this
/// part of the ways.
const NOTHING: f64 = 1.0 / (1u64 << 30) as f64;

/// The same where they do neither: rounding has taken 2⁻⁴⁰ of the ways.
const MUCH: f64 = (1u64 << 14) as f64;

/// A number whose way to a point is at least this part of that has not come to rest there.
const APART: f64 = 1.0 / (1u32 << 20) as f64;

/// A power of a map as the product of two others, with a third of all steps at least in each, if
/// there are several. Of all of them only some digits count.
pub(super) struct Halves<'a> {
    pub(super) power: &'a Matrix<Pair>,
    pub(super) later: &'a Matrix<Pair>,
    pub(super) earlier: &'a Matrix<Pair>,
}

/// `sum`, but no number if it is less than `least`; if that is negative, it is a number always.
pub(super) fn checked(emitter: &mut Emitter<'_>, sum: Pair, least: Node) -> Pair {
    let size = emitter.apply(Op::Abs, &[sum.high]);
    let is_more = emitter.apply(Op::Ge, &[size, least]);
    let (one, no_number) = (emitter.constant(1.0), emitter.no_number());
    // A factor makes what is derived from it no number, too.
    let factor = emitter.apply(Op::Select, &[is_more, one, no_number]);
    Pair { high: emitter.apply(Op::Mul, &[sum.high, factor]), ..sum }
}

/// `number`, but no number if a `power` has grown so much that sums of derivatives may be left with
/// too few digits.
///
/// What has come to rest in a loop around, or before, passes on what cancels with what other loops
/// pass on. A number is finite where its form serves, by a guard, so that kernels for derivatives
/// alone stop, too.
pub(super) fn unless_grown(emitter: &mut Emitter<'_>, number: Pair, power: Node) -> Pair {
    // Known numbers have no derivatives, which would be multiplied by what has grown.
    if emitter.value(power).is_some() {
        return number;
    }
    let (one, no_number) = (emitter.constant(1.0), emitter.no_number());
    let limit = emitter.constant(GROWN);
    // What is NaN is doubted.
    let has_not = emitter.apply(Op::Le, &[power, limit]);
    let factor = emitter.apply(Op::Select, &[has_not, one, no_number]);
    Pair { high: emitter.apply(Op::Mul, &[number.high, factor]), ..number }
}

/// `power`, but zero if the `way` to the `point` that a number is taken to is not small next to
/// that: only what has come to rest there is mostly rounding, which grows with the power. Its
/// derivatives are told by the way, so that nothing cancels in them that does not in the loop.
pub(super) fn unless_apart(
    emitter: &mut Emitter<'_>,
    power: Node,
    [way, point]: [Pair; 2],
) -> Node {
    if emitter.value(power).is_some() {
        return power;
    }
    let [way, point] = [way, point].map(|of| emitter.apply(Op::Abs, &[of.high]));
    let part = emitter.constant(APART);
    let least = emitter.apply(Op::Mul, &[point, part]);
    let is_apart = emitter.apply(Op::Ge, &[way, least]);
    let zero = emitter.constant(0.0);
    emitter.apply(Op::Select, &[is_apart, zero, power])
}

/// What is to be left of terms after a number of `steps`, as a part of them, if they are made of
/// what has `grown` so much in powers of so many `factors`; `None` if it is known not to have
/// grown by much.
pub(super) fn grown_share(
    emitter: &mut Emitter<'_>,
    steps: Node,
    factors: Node,
    grown: Node,
) -> Option<Node> {
    let (few, one) = (emitter.constant(FEW), emitter.constant(1.0));
    let few = emitter.apply(Op::Mul, &[few, factors]);
    let scaled = emitter.apply(Op::Mul, &[grown, few]);
    let share = part(emitter, steps);
    unless_small(emitter, scaled, Some(one), share)
}

/// The sum of `products` and `addend`, but no number if less than `part` of its terms is left.
pub(super) fn left_of(
    emitter: &mut Emitter<'_>,
    products: &[Factors],
    addend: Option<Pair>,
    part: Option<Node>,
) -> Option<Pair> {
    let sum = sum_of_products(emitter, products.iter().copied(), addend)?;
    let size = size_of_products(emitter, products, addend).filter(|_| part.is_some());
    let least = part.and_then(|part| scaled(emitter, size, part));
    Some(least.map_or(sum, |least| checked(emitter, sum, least)))
}

/// What is to be left of the terms of a sum where a power has grown to this size after a
/// number of `steps`, as a part of them; `None` if it is known not to have grown by much.
pub(super) fn least_part(emitter: &mut Emitter<'_>, steps: Node, power: Node) -> Option<Node> {
    let part = part(emitter, steps);
    let scaled = emitter.apply(Op::Mul, &[power, part]);
    let one = emitter.constant(1.0);
    unless_small(emitter, scaled, Some(one), part)
}

/// What is to be left of states and their derivatives.
pub(super) struct Doubt {
    steps: Node,
    /// How large the ways from one number to another are.
    ways: Matrix<Node>,
    /// What is to be left of the entries of the power.
    least: Matrix<Node>,
    /// How large the start and all steps are, and what they lead to.
    reached: Sizes,
    /// What is to be left of the numbers.
    ends: Sizes,
    /// How large what comes of a number is by ways that lead back to it.
    returned: Option<Node>,
}

impl Doubt {
    /// Of what a system comes to by a number of `steps` of `map`, which the `halves` are of.
    /// It starts as `first`, and each step adds `change`.
    pub(super) fn of(
        emitter: &mut Emitter<'_>,
        map: &Matrix<Pair>,
        halves: &Halves<'_>,
        steps: Node,
        [first, change]: [&Row; 2],
    ) -> Doubt {
        // Sizes that overflow are doubted, and no reason against the form.
        let overflows = emitter.overflows;
        let ways = ways(emitter, map);
        let [power, later, earlier] =
            [halves.power, halves.later, halves.earlier].map(|power| sizes_of(emitter, power));
        let both = product(emitter, &later, &earlier);
        let [before, after] = [&earlier, &power].map(|power| {
            let power = product(emitter, &ways, power);
            product(emitter, &power, &ways)
        });
        let part = part(emitter, steps);
        let one = emitter.constant(1.0);
        // Of a third of all steps a polynomial is three times as small for each other number.
        let others = i32::try_from(map.len() - 1).unwrap_or(i32::MAX).min(31);
        let growth = emitter.constant(GROWTH * 3f64.powi(others));
        let mut polynomial = emitter.constant(GROWTH);
        for _ in 1..map.len() {
            polynomial = emitter.apply(Op::Mul, &[polynomial, steps]);
        }
        let [nothing, much] = [NOTHING, MUCH].map(|part| emitter.constant(part));
        let mut least = Matrix::new();
        for (i, row) in after.iter().enumerate() {
            let entry = |(j, &after): (usize, &Option<Node>)| {
                let (after, way) = (after?, ways[i][j]);
                let limit = scaled(emitter, before[i][j], growth);
                let grown = unless_small(emitter, after, limit, after);
                let whole = [(power[i][j], Some(polynomial)), (way, Some(polynomial))];
                let limit = sum(emitter, whole, None);
                let cancels = both[i][j].and_then(|both| unless_small(emitter, both, limit, one));
                let of_both = match cancels {
                    Some(cancels) => emitter.apply(Op::Select, &[cancels, nothing, much]),
                    None => much,
                };
                let mut least = None;
                for (terms, part_of_way) in [(grown, nothing), (both[i][j], of_both)] {
                    let Some(terms) = terms else { continue };
                    let of_terms = emitter.apply(Op::Mul, &[terms, part]);
                    let limit = scaled(emitter, way, part_of_way);
                    let own = unless_small(emitter, of_terms, limit, of_terms);
                    least = sum(emitter, [(own, Some(one))], least);
                }
                least
            };
            least.push(row.iter().enumerate().map(entry).collect());
        }
        let mut spans = Sizes::new();
        for (first, change) in first.iter().zip(change) {
            let [first, change] = [first, change].map(|part| size(emitter, *part));
            spans.push(sum(emitter, [(Some(steps), change)], first));
        }
        let [reached, ends] = [&ways, &least].map(|map| applied(emitter, map, &spans));
        let back = after.iter().enumerate().map(|(number, row)| (row[number], Some(one)));
        let returned = sum(emitter, back, None);
        emitter.overflows = overflows;
        Doubt { steps, ways, least, reached, ends, returned }
    }

    /// The number of steps; 1 if it is not known.
    pub(super) fn steps(&self, emitter: &Emitter<'_>) -> f64 {
        emitter.value(self.steps).unwrap_or(1.0)
    }

    /// `number`, but no number if powers have grown: see [`unless_grown`].
    pub(super) fn unless_grown(&self, emitter: &mut Emitter<'_>, number: Pair) -> Pair {
        match self.returned {
            Some(returned) => unless_grown(emitter, number, returned),
            None => number,
        }
    }

    /// How large the terms may be that the numbers are sums of, where they are as large as `row`:
    /// W·|row|. What was larger before has come to that, but for what has vanished with powers.
    pub(super) fn reach(&self, emitter: &mut Emitter<'_>, row: &Row) -> Sizes {
        let overflows = emitter.overflows;
        let row: Sizes = row.iter().map(|&number| size(emitter, number)).collect();
        let reach = applied(emitter, &self.ways, &row);
        emitter.overflows = overflows;
        reach
    }

    /// What is to be left of a number, if that is known.
    pub(super) fn end(&self, number: usize) -> Option<Node> {
        self.ends[number]
    }

    /// What is to be left of a number that is the sum of these products if it and those that it
    /// depends on `reach` so far: numbers that begin equal may vanish by powers of the one eigenvalue,
    /// where the products vanish by those of the other. One that goes through zero between
    /// others that do not has the digits that these are rounded to. Of derivatives that is not
    /// asked: they vanish like that wherever a program has come to rest.
    pub(super) fn of_terms(
        &self,
        emitter: &mut Emitter<'_>,
        terms: &[Factors],
        reach: Option<Node>,
    ) -> Option<Node> {
        let is_sum = terms.iter().filter(|(a, b)| a.is_some() && b.is_some()).count() > 1;
        let size = size_of_products(emitter, terms, None).filter(|_| is_sum)?;
        let part = part(emitter, self.steps);
        let least = emitter.apply(Op::Mul, &[size, part]);
        unless_small(emitter, least, reach, least)
    }

    /// The same of its derivative by what another one starts with, an entry of the power.
    pub(super) fn by_start(&self, number: usize, other: usize) -> Option<Node> {
        self.least[number][other]
    }

    /// The same of derivatives of these entries by what the map has so much of.
    pub(super) fn entries_by_map(
        &self,
        emitter: &mut Emitter<'_>,
        map: &Matrix<Pair>,
    ) -> Matrix<Node> {
        let map = sizes_of(emitter, map);
        let mut sides = [&self.ways, &self.least].map(|after| product(emitter, after, &map));
        for (side, before) in sides.iter_mut().zip([&self.least, &self.ways]) {
            *side = product(emitter, side, before);
        }
        let [grown_before, grown_after] = sides;
        let one = emitter.constant(1.0);
        let mut both = Matrix::new();
        for (before, after) in grown_before.iter().zip(&grown_after) {
            let entry = |(&before, &after): (&Option<Node>, &Option<Node>)| {
                let total = sum(emitter, [(before, Some(one))], after);
                scaled(emitter, total, self.steps)
            };
            both.push(before.iter().zip(after).map(entry).collect());
        }
        both
    }

    /// The same of that by what each step adds so much of to the numbers.
    pub(super) fn by_added(
        &self,
        emitter: &mut Emitter<'_>,
        number: usize,
        added: &Row,
    ) -> Option<Node> {
        let mut total = None;
        for (&least, added) in self.least[number].iter().zip(added) {
            let added = size(emitter, *added);
            total = sum(emitter, [(least, added)], total);
        }
        scaled(emitter, total, self.steps)
    }

    /// The same of that by what the map has so much of.
    pub(super) fn by_map(
        &self,
        emitter: &mut Emitter<'_>,
        number: usize,
        map: &Matrix<Pair>,
    ) -> Option<Node> {
        let (ways, least) = (&self.ways[number], &self.least[number]);
        let mut total = None;
        for ((row, &way), &least) in map.iter().zip(ways).zip(least) {
            for (column, entry) in row.iter().enumerate() {
                // Powers may have grown before and after.
                let own = [(least, self.reached[column]), (way, self.ends[column])];
                let own = sum(emitter, own, None);
                let entry = size(emitter, *entry);
                total = sum(emitter, [(own, entry)], total);
            }
        }
        scaled(emitter, total, self.steps)
    }
}

/// The part that is to be left of sums after a number of `steps`.
fn part(emitter: &mut Emitter<'_>, steps: Node) -> Node {
    let part = emitter.constant(PART);
    emitter.apply(Op::Mul, &[steps, part])
}

/// `least`, but zero if a size is no more than `small`; `None` if it is known to be. What is
/// missing is zero.
fn unless_small(
    emitter: &mut Emitter<'_>,
    size: Node,
    small: Option<Node>,
    least: Node,
) -> Option<Node> {
    let zero = emitter.constant(0.0);
    // What is NaN is doubted.
    let is_small = emitter.apply(Op::Le, &[size, small.unwrap_or(zero)]);
    let least = emitter.apply(Op::Select, &[is_small, zero, least]);
    (emitter.value(least) != Some(0.0)).then_some(least)
}

/// How large the ways from one number to another are in `map`: Σ |A|ᵏ. There are as many
/// steps on them as other numbers at most.
fn ways(emitter: &mut Emitter<'_>, map: &Matrix<Pair>) -> Matrix<Node> {
    let (map, one) = (sizes_of(emitter, map), emitter.constant(1.0));
    let mut ways: Matrix<Node> = map.iter().map(|row| vec![None; row.len()]).collect();
    for _ in 0..map.len() {
        ways = product(emitter, &map, &ways);
        for (number, row) in ways.iter_mut().enumerate() {
            row[number] = Some(match row[number] {
                Some(entry) => emitter.apply(Op::Add, &[entry, one]),
                None => one,
            });
        }
    }
    ways
}
