//! The derivatives of pairs by the nodes that they were made of, as pairs.
//!
//! Coefficients of recurrences are sums, products and quotients of few nodes. A sweep
//! through them would add up what cancels, as the rate of gradient descent does at its
//! end; so what is next to be added up is known with twice the digits.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

use hashbrown::HashMap;

use super::doubt::checked;
use super::emit::Emitter;
use super::growth::Growth;
use super::products::{Factors, sum_of_products};
use super::range::require_factor;
use super::terms::Terms;
use super::toward::{By, Slope, Taken, with_carried};
use super::written::value;
use crate::op::Op;
use crate::phi::pair::{How, Pair, Pairs};
use crate::ssa::Node;

/// So many nodes are looked at at most that pairs are made of.
const MOST_ORIGINS: usize = 4096;

/// So many derivatives are passed on at most.
const MOST_PASSED: usize = 64;

/// What some pairs were made of.
pub(super) struct Origins {
    /// The pairs that were made of others, operands first.
    steps: Vec<(Pair, How)>,
    /// Those whose derivatives were told.
    told: Vec<(Pair, Vec<(Node, Pair)>)>,
    /// The powers among them, and constants.
    growth: Growth,
    /// The nodes that they all were made of.
    pub(super) leaves: Vec<Node>,
    numbers: OnceCell<HashMap<Pair, Pair>>,
}

impl Origins {
    /// What `pairs` were made of; `None` if that is not known of all, or is too much.
    pub(super) fn of(emitter: &Emitter<'_>, pairs: &[Pair]) -> Option<Origins> {
        let (mut steps, mut leaves) = (BTreeMap::new(), Vec::new());
        let mut told: Vec<(Pair, Vec<(Node, Pair)>)> = Vec::new();
        let mut growth = Growth::default();
        let mut pending = pairs.to_vec();
        while let Some(pair) = pending.pop() {
            if emitter.value(pair.high).is_some() {
                growth.add_constant(emitter, pair);
                continue;
            }
            if let Some(known) = emitter.told(pair) {
                if told.iter().all(|(other, _)| *other != pair) {
                    let nodes = known.slopes.iter().map(|&(node, _)| node);
                    let nodes: Vec<Node> = nodes.filter(|node| !leaves.contains(node)).collect();
                    leaves.extend(nodes);
                    told.push((pair, known.slopes.clone()));
                    if let Some(factors) = known.factors {
                        growth.add(pair, factors);
                    }
                }
                continue;
            }
            let Some((number, how)) = emitter.origin(pair) else {
                if pair.low.is_some() {
                    return None;
                }
                if !leaves.contains(&pair.high) {
                    leaves.push(pair.high);
                }
                continue;
            };
            if steps.insert(number, (pair, how)).is_none() {
                match how {
                    How::Sum(a, b) | How::Product(a, b) => pending.extend([a, b]),
                    How::Quotient(a, b) => pending.extend([a, b.into()]),
                }
            }
            if steps.len() + leaves.len() > MOST_ORIGINS {
                return None;
            }
        }
        leaves.sort_unstable();
        let steps = steps.into_values().collect();
        Some(Origins { steps, told, growth, leaves, numbers: OnceCell::new() })
    }

    /// What the pairs come to with all digits of the nodes that they were made of; those that
    /// are not there are what they were.
    fn numbers(&self, emitter: &mut Emitter<'_>) -> &HashMap<Pair, Pair> {
        self.numbers.get_or_init(|| {
            let mut numbers = HashMap::new();
            for &(pair, how) in &self.steps {
                let operands = match how {
                    How::Sum(a, b) | How::Product(a, b) => [a, b],
                    How::Quotient(a, b) => [a, b.into()],
                };
                let [a, b] = operands.map(|operand| whole(emitter, &numbers, operand));
                if [a, b] == operands {
                    continue;
                }
                let number = match how {
                    How::Sum(..) => emitter.sum(Some(a), Some(b)).unwrap_or(pair),
                    How::Product(..) => emitter.product(a, b),
                    How::Quotient(..) => quotient(emitter, a, b),
                };
                numbers.insert(pair, emitter.normal(number));
            }
            numbers
        })
    }

    /// How large the terms are that each pair was made of; nothing of those that were not made.
    fn sizes(&self, emitter: &mut Emitter<'_>) -> HashMap<Pair, Node> {
        let mut sizes: HashMap<Pair, Node> = HashMap::new();
        for &(made, how) in &self.steps {
            let mut of = |operand: Pair| {
                let known = sizes.get(&operand).copied();
                known.unwrap_or_else(|| emitter.apply(Op::Abs, &[operand.high]))
            };
            let (op, of) = match how {
                How::Sum(a, b) => (Op::Add, [of(a), of(b)]),
                How::Product(a, b) => (Op::Mul, [of(a), of(b)]),
                // What is divided by less than its terms is larger than by these.
                How::Quotient(a, b) => (Op::Div, [of(a), emitter.apply(Op::Abs, &[b])]),
            };
            sizes.insert(made, emitter.apply(op, &of));
        }
        sizes
    }

    /// The derivatives by `leaf`, those that are not zero everywhere.
    pub(super) fn slopes(&self, emitter: &mut Emitter<'_>, leaf: Node) -> HashMap<Pair, Pair> {
        let one = emitter.number(1.0, 0.0);
        let mut slopes: HashMap<Pair, Pair> = [(Pair::from(leaf), one)].into();
        for (pair, known) in &self.told {
            let own = known.iter().find(|&&(node, _)| node == leaf);
            slopes.extend(own.map(|&(_, slope)| (*pair, slope)));
        }
        let numbers = self.numbers(emitter);
        for &(pair, how) in &self.steps {
            let slope = match how {
                How::Sum(a, b) => emitter.sum(slopes.get(&a).copied(), slopes.get(&b).copied()),
                How::Product(a, b) => {
                    let mut scaled = |slope: Pair, by: Pair| {
                        let by = whole(emitter, numbers, by);
                        emitter.product(slope, by)
                    };
                    let of_a = slopes.get(&a).map(|&slope| scaled(slope, b));
                    let of_b = slopes.get(&b).map(|&slope| scaled(slope, a));
                    emitter.sum(of_a, of_b)
                }
                How::Quotient(a, b) => {
                    let of_b = slopes.get(&Pair::from(b)).copied().map(|slope| {
                        // It is divided twice, and may be multiplied again after that.
                        [true, false].into_iter().for_each(|of| emitter.require_size(b, of));
                        let of = whole(emitter, numbers, pair);
                        let product = emitter.product(of, slope);
                        let less = emitter.number(-1.0, 0.0);
                        emitter.product(product, less)
                    });
                    let above = emitter.sum(slopes.get(&a).copied(), of_b);
                    above.map(|above| {
                        let above = emitter.normal(above);
                        let divisor = whole(emitter, numbers, b.into());
                        quotient(emitter, above, divisor)
                    })
                }
            };
            if let Some(slope) = slope {
                let slope = emitter.normal(slope);
                if emitter.value(slope.high) != Some(0.0) {
                    slopes.insert(pair, slope);
                }
            }
        }
        slopes
    }
}

/// `pair` with all digits, where `numbers` are those of pairs that were made.
fn whole(emitter: &mut Emitter<'_>, numbers: &HashMap<Pair, Pair>, pair: Pair) -> Pair {
    let is_node = pair.low.is_none() && emitter.value(pair.high).is_none();
    match numbers.get(&pair) {
        Some(&number) => number,
        // What was made may have no second part either.
        None if is_node && emitter.origin(pair).is_none() => value(emitter, pair.high),
        None => pair,
    }
}

/// What some pairs are, and their derivatives.
pub(super) enum Parts {
    /// Sums of products: whatever was computed before the loop is written out.
    Written(HashMap<Pair, Terms>),
    /// As they were made.
    Made(Vec<Pair>, Origins),
}

impl Parts {
    /// What `pairs` were made of; `None` if that is not known of all, or is too much.
    pub(super) fn of(emitter: &Emitter<'_>, pairs: &[Pair]) -> Option<Parts> {
        let written = pairs.iter().map(|&pair| Some((pair, Terms::of(emitter, pair)?)));
        match written.collect::<Option<HashMap<Pair, Terms>>>() {
            Some(written) => Some(Parts::Written(written)),
            None => Some(Parts::Made(pairs.to_vec(), Origins::of(emitter, pairs)?)),
        }
    }

    /// The nodes that they all were made of.
    pub(super) fn leaves(&self) -> Vec<Node> {
        match self {
            Parts::Written(all) => {
                let nodes: BTreeSet<Node> = all.values().flat_map(Terms::nodes).collect();
                nodes.into_iter().collect()
            }
            Parts::Made(_, origins) => origins.leaves.clone(),
        }
    }

    /// By how much what they are made of may have grown.
    pub(super) fn growth(&self, emitter: &mut Emitter<'_>) -> Growth {
        let mut growth = Growth::default();
        match self {
            Parts::Written(all) => {
                for number in all.values().flat_map(|terms| terms.all.values()) {
                    let number = emitter.number(number.high, number.low);
                    growth.add_constant(emitter, number);
                }
            }
            Parts::Made(_, origins) => growth.clone_from(&origins.growth),
        }
        growth
    }

    /// What `pair` is as a sum of products; zero if there is none.
    pub(super) fn terms(&self, pair: Option<Pair>) -> Option<Terms> {
        match (self, pair) {
            (_, None) => Some(Terms::default()),
            (Parts::Written(all), Some(pair)) => all.get(&pair).cloned(),
            (Parts::Made(..), _) => None,
        }
    }

    /// What stands for each pair; no number where it cancels by more than the digits of
    /// powers.
    pub(super) fn numbers(&self, emitter: &mut Emitter<'_>) -> HashMap<Pair, Pair> {
        let zero = emitter.number(0.0, 0.0);
        match self {
            Parts::Written(all) => {
                let mut in_order: Vec<(&Pair, &Terms)> = all.iter().collect();
                in_order.sort_unstable_by_key(|(pair, _)| (pair.high, pair.low));
                let number = |(&pair, terms): (&Pair, &Terms)| {
                    (pair, terms.emitted(emitter).unwrap_or(zero))
                };
                in_order.into_iter().map(number).collect()
            }
            Parts::Made(all, origins) => {
                let numbers = origins.numbers(emitter);
                let known: Vec<(Pair, Pair)> =
                    all.iter().map(|&pair| (pair, whole(emitter, numbers, pair))).collect();
                let one = emitter.constant(1.0);
                let Some(share) = origins.growth.share(emitter, one, None) else {
                    return known.into_iter().collect();
                };
                let sizes = origins.sizes(emitter);
                let checked = known.into_iter().map(|(pair, number)| {
                    // What was not made of anything does not cancel.
                    let Some(&size) = sizes.get(&pair) else { return (pair, number) };
                    let least = emitter.apply(Op::Mul, &[size, share]);
                    (pair, checked(emitter, number, least))
                });
                checked.collect()
            }
        }
    }

    /// The derivatives by `leaf`, those that are not zero everywhere.
    pub(super) fn slopes(&self, emitter: &mut Emitter<'_>, leaf: Node) -> HashMap<Pair, Pair> {
        match self {
            Parts::Written(all) => {
                let mut in_order: Vec<(&Pair, &Terms)> = all.iter().collect();
                in_order.sort_unstable_by_key(|(pair, _)| (pair.high, pair.low));
                let slope = |(&pair, terms): (&Pair, &Terms)| {
                    Some((pair, terms.slope(leaf).emitted(emitter)?))
                };
                in_order.into_iter().filter_map(slope).collect()
            }
            Parts::Made(_, origins) => origins.slopes(emitter, leaf),
        }
    }
}

/// With how many digits derivatives are told.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Digits {
    Rounded,
    /// With twice the digits: what several numbers pass on to one may cancel.
    InPairs,
}

impl Digits {
    /// Those of so many outputs of a system of so many numbers: what several pass on to one is added
    /// up, and what one that is taken to a point gets of several ways.
    pub(super) fn of(outputs: usize, numbers: usize, are_taken: bool) -> Digits {
        match outputs > 1 || are_taken && numbers > 1 {
            true => Digits::InPairs,
            false => Digits::Rounded,
        }
    }
}

/// Sums of what belongs to the same node.
#[derive(Default)]
pub(super) struct Totals {
    of: BTreeMap<Node, Total>,
}

/// A sum, and what is to be left of it so that it is more than rounding.
#[derive(Clone, Copy, Default)]
struct Total {
    sum: Option<Pair>,
    least: Option<Node>,
    /// So many steps are made of the node at most.
    steps: f64,
}

impl Totals {
    /// Adds the product of `factors`. Of the second one `least` is to be left.
    pub(super) fn add(
        &mut self,
        emitter: &mut Emitter<'_>,
        node: Node,
        factors: Factors,
        least: Option<Node>,
    ) {
        if let (Some(own), Some(slope)) = factors {
            require_factor(emitter, own.high, slope.high);
        }
        let sum = sum_of_products(emitter, [factors], None);
        let least = factors.0.zip(least).map(|(own, least)| {
            let size = emitter.apply(Op::Abs, &[own.high]);
            emitter.apply(Op::Mul, &[size, least])
        });
        self.add_sum(emitter, node, sum, [least]);
    }

    /// Adds `sum`, of which all of `least` is to be left.
    pub(super) fn add_sum(
        &mut self,
        emitter: &mut Emitter<'_>,
        node: Node,
        sum: Option<Pair>,
        least: impl IntoIterator<Item = Option<Node>>,
    ) {
        let Some(sum) = sum else { return };
        let total = self.of.entry(node).or_default();
        total.sum = emitter.sum(total.sum, Some(sum));
        for least in least.into_iter().flatten() {
            total.least = Some(match total.least {
                Some(total) => emitter.apply(Op::Add, &[total, least]),
                None => least,
            });
        }
    }

    /// Lets the derivative by `node` count so many steps.
    pub(super) fn count(&mut self, node: Node, steps: f64) {
        if let Some(total) = self.of.get_mut(&node) {
            total.steps = total.steps.max(steps);
        }
    }

    /// Whether some of the nodes were computed of the same, so that derivatives by that add up.
    pub(super) fn meet(&self, emitter: &Emitter<'_>) -> bool {
        let leaves = self.of.keys().flat_map(|&node| Terms::of_node(emitter, node).nodes());
        let mut seen = BTreeSet::new();
        leaves.filter(|&leaf| emitter.may_be_active(leaf)).any(|leaf| !seen.insert(leaf))
    }

    /// Passes derivatives on to what nodes were computed of: several of them may have been
    /// computed of the same, and what cancels there is known with twice the digits.
    fn pass_on(&mut self, emitter: &mut Emitter<'_>) {
        let mut whole = BTreeSet::new();
        for _ in 0..MOST_PASSED {
            // What was made later may have been computed of what was made before.
            let made = self.of.keys().rev().filter(|&node| !whole.contains(node));
            let made = made.copied().map(|node| (node, Terms::of_node(emitter, node)));
            let mut others = Vec::new();
            let found = made.into_iter().find(|(node, terms)| {
                let is_whole = *terms == Terms::node(*node);
                others.extend(is_whole.then_some(*node));
                !is_whole
            });
            whole.extend(others);
            let Some((node, terms)) = found else { return };
            let Some(total) = self.of.remove(&node) else { return };
            for leaf in terms.nodes() {
                let own = terms.slope(leaf).emitted(emitter);
                self.add(emitter, leaf, (own, total.sum), total.least);
                self.count(leaf, total.steps);
            }
        }
    }

    /// `value` with these sums as its derivatives, and with those by the point that it is `taken`
    /// to, if that is known.
    pub(super) fn told(
        mut self,
        emitter: &mut Emitter<'_>,
        value: Node,
        taken: Option<Taken<'_>>,
        digits: Digits,
    ) -> Node {
        self.pass_on(emitter);
        let (mut slopes, mut carried) = (Vec::new(), Vec::new());
        for (&node, total) in &self.of {
            let Some(mut slope) = total.sum else { continue };
            if let Some(least) = total.least {
                slope = checked(emitter, slope, least);
            }
            match emitter.is_from_loop(node) {
                true => {
                    let own = Slope::of(emitter, By::Node(node), slope, digits);
                    carried.push(own.of_steps(total.steps));
                }
                false => slopes.push((emitter.far(digits, total.steps), node, slope)),
            }
        }
        let value = with_others(emitter, value, &slopes, digits);
        if let Some(taken) = &taken {
            carried.extend(taken.slopes(emitter, digits));
        }
        with_carried(emitter, value, &carried, taken)
    }
}

/// `value` with these derivatives by what comes from elsewhere than loops.
fn with_others(
    emitter: &mut Emitter<'_>,
    value: Node,
    slopes: &[(f64, Node, Pair)],
    digits: Digits,
) -> Node {
    let mut told = Vec::new();
    for &(far, node, slope) in slopes {
        match digits {
            Digits::Rounded => told.push((far, node, emitter.rounded(slope))),
            Digits::InPairs => {
                let Pair { high, low } = emitter.normal(slope);
                let low = emitter.unless_zero(low);
                told.extend([high].into_iter().chain(low).map(|part| (far, node, part)));
            }
        }
    }
    emitter.with_slopes_by(value, &told)
}

/// `a` if `condition` is not zero, else `b`.
pub(super) fn chosen(emitter: &mut Emitter<'_>, condition: Node, a: Pair, b: Pair) -> Pair {
    let high = emitter.apply(Op::Select, &[condition, a.high, b.high]);
    let zero = emitter.constant(0.0);
    let low = (a.low.is_some() || b.low.is_some()).then(|| {
        let (a, b) = (a.low.unwrap_or(zero), b.low.unwrap_or(zero));
        emitter.apply(Op::Select, &[condition, a, b])
    });
    Pair { high, low }
}

/// `a / b`.
pub(super) fn quotient(emitter: &mut Emitter<'_>, a: Pair, b: Pair) -> Pair {
    match b.low {
        Some(_) => {
            let inverse = inverse(emitter, b);
            emitter.product(a, inverse)
        }
        None => emitter.quotient(a, b.high),
    }
}

/// The inverse of a pair.
pub(super) fn inverse(emitter: &mut Emitter<'_>, a: Pair) -> Pair {
    let one = emitter.constant(1.0);
    let high = emitter.apply(Op::Div, &[one, a.high]);
    let negative = emitter.apply(Op::Neg, &[high]);
    let mut left = emitter.apply(Op::MulAdd, &[negative, a.high, one]);
    if let Some(low) = a.low {
        left = emitter.apply(Op::MulAdd, &[negative, low, left]);
    }
    let low = emitter.apply(Op::Mul, &[left, high]);
    Pair { high, low: emitter.unless_zero(Some(low)) }
}
