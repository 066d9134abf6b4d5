//! What coefficients are as sums of products of nodes.
//!
//! Factors that the steps of a recurrence share do not move its fixed point, and terms
//! that cancel are no terms. Both show where what was computed before the loop is written
//! out; and derivatives by the nodes that it was computed of are then known, with all
//! digits, also where several coefficients were computed of the same.

use std::collections::{BTreeMap, BTreeSet};

use hashbrown::HashMap;

use super::emit::Emitter;
use crate::op::Op;
use crate::phi::double::Double;
use crate::phi::pair::{How, Pair, Pairs};
use crate::ssa::{Def, Node, is_held, is_tangent, told_number};

/// A number of more terms is not written out: it is a node.
const MOST_TERMS: usize = 6;
/// From how far a number is written out, in steps.
const DEPTH: usize = 8;
/// Products of higher powers are not written out.
const MOST_POWER: i32 = 1 << 12;
/// What is left of numbers that cancel is zero if it is this much smaller: it is the rounding of
/// pairs.
pub(super) const NOTHING: f64 = 1e-29;

/// A product of powers of nodes, in order.
type Powers = BTreeMap<Node, i32>;

/// A sum of products of nodes, each with its coefficient; zero has none.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Terms {
    pub(super) all: BTreeMap<Vec<(Node, i32)>, Double>,
    /// The nodes that have cancelled, or the inverses of them: where one is no number the
    /// whole is none.
    pub(super) lost: BTreeSet<(Node, i32)>,
}

impl Terms {
    pub(super) fn number(number: Double) -> Terms {
        let is_zero = number.rounded() == 0.0;
        let all = (!is_zero).then(|| (Vec::new(), number));
        Terms { all: all.into_iter().collect(), lost: BTreeSet::new() }
    }

    fn product(powers: Vec<(Node, i32)>, number: Double) -> Terms {
        Terms { all: [(powers, number)].into(), lost: BTreeSet::new() }
    }

    pub(super) fn node(node: Node) -> Terms {
        Terms::product(vec![(node, 1)], 1.0.into())
    }

    /// What `pair` was made of; `None` if that is not known, or is too much.
    pub(super) fn of(emitter: &Emitter<'_>, pair: Pair) -> Option<Terms> {
        Terms::of_pair(emitter, pair, 4 * DEPTH, &mut HashMap::new())
    }

    /// What `node` was made of, or that node.
    pub(super) fn of_node(emitter: &Emitter<'_>, node: Node) -> Terms {
        Terms::written(emitter, node, DEPTH)
    }

    /// `known` are those that were asked for before.
    fn of_pair(
        emitter: &Emitter<'_>,
        pair: Pair,
        depth: usize,
        known: &mut HashMap<Pair, Option<Terms>>,
    ) -> Option<Terms> {
        if let Some(known) = known.get(&pair) {
            return known.clone();
        }
        let terms = Terms::of_new_pair(emitter, pair, depth, known);
        known.insert(pair, terms.clone());
        terms
    }

    fn of_new_pair(
        emitter: &Emitter<'_>,
        pair: Pair,
        depth: usize,
        known: &mut HashMap<Pair, Option<Terms>>,
    ) -> Option<Terms> {
        let low = pair.low.map_or(Some(0.0), |low| emitter.value(low));
        if let (Some(high), Some(low)) = (emitter.value(pair.high), low) {
            return Some(Terms::number(Double::from(high) + low.into()));
        }
        let depth = depth.checked_sub(1)?;
        if emitter.told(pair).is_some() {
            return None;
        }
        let terms = match emitter.origin(pair) {
            None if pair.low.is_none() => Terms::of_node(emitter, pair.high),
            None => return None,
            Some((_, How::Sum(a, b))) => {
                let a = Terms::of_pair(emitter, a, depth, known)?;
                a.plus(&Terms::of_pair(emitter, b, depth, known)?)
            }
            Some((_, How::Product(a, b))) => {
                let whole = [a, b].map(|factor| Terms::of_pair(emitter, factor, depth, known));
                let [Some(of_a), Some(of_b)] = whole else { return None };
                let of_a =
                    if a.low.is_none() { of_b.divisor(a.high).unwrap_or(of_a) } else { of_a };
                let of_b =
                    if b.low.is_none() { of_a.divisor(b.high).unwrap_or(of_b) } else { of_b };
                match (of_a.times(&of_b), a.low, b.low) {
                    (Some(product), ..) => product,
                    (None, _, None) => of_a.times(&Terms::node(b.high))?,
                    (None, None, _) => of_b.times(&Terms::node(a.high))?,
                    _ => return None,
                }
            }
            Some((_, How::Quotient(a, b))) => {
                let of_a = Terms::of_pair(emitter, a, depth, known)?;
                of_a.divided(&Terms::of_node(emitter, b), b)?
            }
        };
        (terms.all.len() <= 2 * MOST_TERMS).then_some(terms)
    }

    fn written(emitter: &Emitter<'_>, node: Node, depth: usize) -> Terms {
        let graph = &*emitter.graph;
        if let Some(number) = graph.constant(node).filter(|number| number.is_finite()) {
            return Terms::number(number.into());
        }
        let whole = Terms::node(node);
        let Def::Apply(op, [a, b, _]) = graph.nodes[node].def else { return whole };
        let is_whole = emitter.is_measured(node) || told_number(graph, node).is_some();
        if depth == 0 || is_whole || is_tangent(graph, node) || is_held(graph, node) {
            return whole;
        }
        let of = |node| Terms::written(emitter, node, depth - 1);
        let written = match op {
            Op::Add => Some(of(a).plus(&of(b))),
            Op::Sub => Some(of(a).plus(&of(b).scaled(-1.0))),
            Op::Neg => Some(of(a).scaled(-1.0)),
            Op::Mul => {
                let (of_a, of_b) = (of(a), of(b));
                let of_a = of_b.divisor(a).unwrap_or(of_a);
                let of_b = of_a.divisor(b).unwrap_or(of_b);
                // What is multiplied out may cancel that did not before.
                let product = of_a.times(&of_b);
                product.or_else(|| of_a.times(&Terms::node(b)))
            }
            Op::Div => of(a).divided(&of(b), b),
            Op::Recip => Some(of(a).inverse().unwrap_or_else(|| Terms::inverse_of(a))),
            _ => None,
        };
        written.filter(|terms| terms.all.len() <= MOST_TERMS).unwrap_or(whole)
    }

    pub(super) fn is_zero(&self) -> bool {
        self.all.is_empty()
    }

    fn inverse_of(node: Node) -> Terms {
        Terms::product(vec![(node, -1)], 1.0.into())
    }

    /// `node` itself, if it is a divisor in all products: what it was computed of would not
    /// cancel.
    fn divisor(&self, node: Node) -> Option<Terms> {
        let divides = |powers: &Vec<(Node, i32)>| powers.iter().any(|&(of, n)| of == node && n < 0);
        (!self.all.is_empty() && self.all.keys().all(divides)).then(|| Terms::node(node))
    }

    /// The quotient by `divisor`, which is what `node` was computed of.
    fn divided(&self, divisor: &Terms, node: Node) -> Option<Terms> {
        if let Some(inverse) = divisor.inverse() {
            return self.times(&inverse);
        }
        match self.quotient(divisor) {
            Some(mut quotient) => {
                quotient.lost.extend([(node, 1), (node, -1)]);
                Some(quotient)
            }
            None => self.times(&Terms::inverse_of(node)),
        }
    }

    /// The inverse of a single term.
    fn inverse(&self) -> Option<Terms> {
        let (powers, number) = self.single()?;
        let powers = powers.iter().map(|&(node, power)| (node, -power)).collect();
        let number = Double::from(1.0) / number;
        let lost = self.lost.clone();
        number.is_finite().then(|| Terms { lost, ..Terms::product(powers, number) })
    }

    pub(super) fn plus(&self, other: &Terms) -> Terms {
        let mut sum = self.clone();
        sum.lost.extend(&other.lost);
        for (powers, &number) in &other.all {
            let before = sum.all.remove(powers).unwrap_or(Double::ZERO);
            let after = before + number;
            let size = before.high.abs().max(number.high.abs());
            if after.high.abs() > NOTHING * size {
                sum.all.insert(powers.clone(), after);
            } else {
                sum.lost.extend(powers.iter().map(|&(node, power)| (node, power.signum())));
            }
        }
        sum
    }

    pub(super) fn scaled(&self, factor: f64) -> Terms {
        let scaled = |(powers, &number): (&Vec<(Node, i32)>, &Double)| {
            (powers.clone(), number * factor.into())
        };
        Terms { all: self.all.iter().map(scaled).collect(), lost: self.lost.clone() }
    }

    /// The product, if one of the factors is a single term: nothing is multiplied out of
    /// which terms could cancel.
    pub(super) fn times(&self, other: &Terms) -> Option<Terms> {
        if self.all.len() > 1 && other.all.len() > 1 {
            return None;
        }
        let mut product = Terms::default();
        product.lost.extend(self.lost.union(&other.lost));
        if self.all.is_empty() || other.all.is_empty() {
            // Zero times something is a number where that is one.
            let of_all = self.all.keys().chain(other.all.keys()).flatten();
            product.lost.extend(of_all.map(|&(node, power)| (node, power.signum())));
        }
        for (a, &number) in &self.all {
            for (b, &factor) in &other.all {
                let number = number * factor;
                if !number.is_finite() || number.high.abs() < f64::MIN_POSITIVE {
                    return None;
                }
                let powers = multiplied(a, b, 1);
                if powers.iter().any(|&(_, power)| power.abs() > MOST_POWER) {
                    return None;
                }
                for &(node, power) in a {
                    if b.iter().any(|&(other, of)| other == node && (of < 0) != (power < 0)) {
                        product.lost.extend([(node, 1), (node, -1)]);
                    }
                }
                product.all.insert(powers, number);
            }
        }
        Some(product)
    }

    /// How many products are added up.
    pub(super) fn count(&self) -> usize {
        self.all.len()
    }

    /// The products that are added up.
    pub(super) fn singles(&self) -> impl Iterator<Item = Terms> {
        let single = |(powers, &number): (&Vec<(Node, i32)>, &Double)| {
            Terms::product(powers.clone(), number)
        };
        self.all.iter().map(single)
    }

    /// The only product of powers of nodes, and its coefficient.
    pub(super) fn single(&self) -> Option<(&[(Node, i32)], Double)> {
        let mut all = self.all.iter();
        let (Some((powers, &number)), None) = (all.next(), all.next()) else { return None };
        Some((powers, number))
    }

    /// This with coefficients as floats that are these but for rounding of pairs.
    pub(super) fn snapped(mut self) -> Terms {
        for number in self.all.values_mut() {
            if number.low.abs() <= NOTHING * number.high.abs() {
                number.low = 0.0;
            }
        }
        self
    }

    /// Whether nothing is divided by a node.
    pub(super) fn is_whole(&self) -> bool {
        self.all.keys().flatten().all(|&(_, power)| power > 0)
    }

    /// The derivative by `node`.
    pub(super) fn slope(&self, node: Node) -> Terms {
        let mut slope = Terms::default();
        for (powers, &number) in &self.all {
            if let Some(&(_, power)) = powers.iter().find(|(other, _)| *other == node) {
                let powers = multiplied(powers, &[(node, 1)], -1);
                slope.all.insert(powers, number * f64::from(power).into());
            }
        }
        slope
    }

    /// The nodes in it.
    pub(super) fn nodes(&self) -> BTreeSet<Node> {
        self.all.keys().flatten().map(|&(node, _)| node).collect()
    }

    /// The single term that this is `divisor` multiplied by.
    pub(super) fn quotient(&self, divisor: &Terms) -> Option<Terms> {
        let (powers, &number) = divisor.all.iter().next()?;
        self.all.iter().find_map(|(of, &factor)| {
            let quotient = Terms::product(multiplied(of, powers, -1), factor / number);
            let product = quotient.times(divisor)?;
            product.plus(&self.scaled(-1.0)).is_zero().then(|| {
                let lost = self.lost.union(&divisor.lost).copied().collect();
                Terms { lost, ..quotient }
            })
        })
    }

    /// The number that this is, if it is one.
    fn known(&self) -> Option<Double> {
        let number = self.all.get(&Vec::new()).copied();
        number.filter(|_| self.all.len() == 1)
    }

    /// This, divided by `number`.
    fn over(&self, number: Double) -> Option<Terms> {
        let over = |(powers, &of): (&Vec<(Node, i32)>, &Double)| (powers.clone(), of / number);
        let all: BTreeMap<Vec<(Node, i32)>, Double> = self.all.iter().map(over).collect();
        let is_number = |of: &Double| of.is_finite() && of.high.abs() >= f64::MIN_POSITIVE;
        all.values().all(is_number).then(|| Terms { all, lost: self.lost.clone() })
    }

    /// The most factors of a product, divisors among them.
    pub(super) fn degree(&self) -> u32 {
        let degree = |powers: &Vec<(Node, i32)>| -> u32 {
            powers.iter().map(|&(_, of)| of.unsigned_abs()).sum()
        };
        self.all.keys().map(degree).max().unwrap_or(0)
    }
}

/// `a` multiplied by a power of `b`.
fn multiplied(a: &[(Node, i32)], b: &[(Node, i32)], power: i32) -> Vec<(Node, i32)> {
    let mut powers: Powers = a.iter().copied().collect();
    for &(node, of) in b {
        *powers.entry(node).or_insert(0) += of * power;
    }
    powers.into_iter().filter(|&(_, power)| power != 0).collect()
}

/// Takes the factors that all terms of `all` have out of them, and returns them; zeros do
/// not count.
fn common(all: &mut [Terms]) -> Terms {
    let mut shared: Option<Powers> = None;
    for (powers, _) in all.iter().flat_map(|terms| &terms.all) {
        let of: Powers = powers.iter().copied().collect();
        shared = Some(match shared {
            None => of,
            Some(shared) => shared
                .into_iter()
                .filter_map(|(node, power)| {
                    let other = of.get(&node).copied().unwrap_or(0);
                    let both = if power > 0 { power.min(other) } else { power.max(other) };
                    (both.signum() == power.signum() && both != 0).then_some((node, both))
                })
                .collect(),
        });
    }
    let shared: Vec<(Node, i32)> = shared.unwrap_or_default().into_iter().collect();
    for terms in all {
        let without = |(powers, &number): (&Vec<(Node, i32)>, &Double)| {
            (multiplied(powers, &shared, -1), number)
        };
        terms.all = terms.all.iter().map(without).collect();
    }
    Terms::product(shared, 1.0.into())
}

/// `less_one` as a factor times a divisor, and its multiples by `quotients` without the factor; what
/// these are divided by is the divisor. Where that vanishes c is far away, and what is told of the
/// way to it cancels.
fn whole(less_one: &Terms, quotients: Vec<Terms>) -> Option<(Terms, Terms, Vec<Terms>)> {
    let mut divisor = Powers::new();
    for &(node, power) in quotients.iter().flat_map(|terms| terms.all.keys()).flatten() {
        if power < 0 {
            let most = divisor.entry(node).or_insert(0);
            *most = (-power).max(*most);
        }
    }
    let inverse = divisor.iter().map(|(&node, &power)| (node, -power)).collect();
    let factor = less_one.times(&Terms::product(inverse, 1.0.into()))?;
    let divisor = Terms::product(divisor.into_iter().collect(), 1.0.into());
    let added = quotients.iter().map(|quotient| quotient.times(&divisor));
    let added = added.collect::<Option<Vec<Terms>>>()?;
    factor.is_whole().then_some((factor, divisor, added))
}

/// What a step of a number does to it, without what all of it is multiplied by.
pub(super) struct Step {
    /// The factors that are shared, as a product.
    pub(super) shared: Vec<Terms>,
    /// a - 1.
    pub(super) less_one: Terms,
    /// What is added.
    pub(super) added: Terms,
}

impl Step {
    /// The step that adds `less_one` of the number and all of `added`.
    pub(super) fn of(less_one: Terms, added: Vec<Terms>) -> Step {
        let mut all = added;
        all.push(less_one);
        let mut shared = vec![common(&mut all)];
        let mut less_one = all.pop().unwrap_or_default();
        if less_one.all.len() > 1 {
            // (1 - a)·c is c on the way from a number to c.
            let quotients = all.iter().map(|added| added.quotient(&less_one));
            let quotients = quotients.collect::<Option<Vec<Terms>>>();
            if let Some((factor, divisor, added)) = quotients.and_then(|q| whole(&less_one, q)) {
                shared.push(factor);
                (less_one, all) = (divisor, added);
            }
        } else if let Some(number) = less_one.known() {
            // The fixed point is known, too, where its parts are numbers.
            let quotients = all.iter().map(|added| added.over(number));
            if let Some(quotients) = quotients.collect::<Option<Vec<Terms>>>() {
                all = quotients;
                shared.push(core::mem::replace(&mut less_one, Terms::number(1.0.into())));
            }
        }
        let one = Terms::number(1.0.into());
        shared.retain(|factor| *factor != one);
        let added = all.iter().fold(Terms::default(), |sum, added| sum.plus(added));
        Step { shared, less_one, added }
    }
}
