//! A single number that an iteration multiplies and adds to: what it comes to, and its
//! derivatives, with twice the digits.
//!
//! Let y become a·y + b, n times. With m = n - 1 and S = Σ_{j<n} aʲ the end and its
//! derivatives are
//!
//! ```text
//! y = aⁿ·p + b·S,    ∂y/∂p = aⁿ,    ∂y/∂b = S,    ∂y/∂a = n·aᵐ·p + b·S',
//! S = (aⁿ - 1) / (a - 1),    S' = (n·aᵐ - S) / (a - 1).
//! ```
//!
//! Of these only the power takes many steps. Where a is near 1, both fractions lose digits:
//! there S and S' are the first terms of their series in a - 1, which are binomial
//! coefficients. Where |a| is larger than 1 by more than some 10⁻⁷ the end is p + d·S, where
//! d is the first change: at a fixed point that is zero, and so is all that comes of it,
//! however large the powers are. Nearer to 1 both forms keep their digits, as powers are
//! small there. What these sums are made of is chosen first, so that each is computed once.
//!
//! If the fixed point c is known, as where b and a - 1 are numbers but for what both have as
//! a factor, there are no fractions: the end is c + (p - c)·aⁿ, and p + (p - c)·(aⁿ - 1)
//! where the power is near 1.
//!
//! A factor g that both b = g·β and a - 1 = g·l have, such as the rate of gradient descent,
//! does not move the fixed point: ∂y/∂g is (β + l·p)·n·aᵐ, which is no difference of large
//! numbers.

use std::collections::{BTreeMap, BTreeSet};

use super::doubt::{least_part, left_of, unless_apart, unless_grown};
use super::emit::Emitter;
use super::form::{Affine, Base, Coefficient, Forms};
use super::geometric::{Factor, Powers, Whether, is_beyond, normal_sum, product};
use super::growth::Growth;
use super::power::{System, offset};
use super::products::{Factors, Row, sum_of};
use super::range::require_factor;
use super::sizes::{total_of_products, total_size};
use super::slopes::{Digits, Parts, Totals};
use super::still::{unless_rounded, unless_still};
use super::terms::{Step, Terms};
use super::toward::{Taken, Toward};
use crate::op::Op;
use crate::phi::pair::{Pair, Pairs};
use crate::ssa::{Node, marked};

/// So many nodes may a number be made of.
const MOST_LEAVES: usize = 64;
const MOST: &str = "it is made of too many values";

/// A number, and its derivatives.
pub(super) enum Part {
    /// What counts is what it is next to itself and this.
    Written(Terms, f64),
    /// With those that are not zero everywhere.
    Made(Pair, BTreeMap<Node, Pair>),
}

impl Part {
    pub(super) fn emitted(&self, emitter: &mut Emitter<'_>) -> Pair {
        match self {
            Part::Written(terms, scale) => {
                let number = terms.emitted_next_to(emitter, *scale);
                number.unwrap_or_else(|| emitter.number(0.0, 0.0))
            }
            Part::Made(number, _) => *number,
        }
    }

    /// The number; `None` if it is zero.
    fn number(&self, emitter: &mut Emitter<'_>) -> Option<Pair> {
        match self {
            Part::Written(terms, scale) => terms.emitted_next_to(emitter, *scale),
            Part::Made(number, _) => Some(*number),
        }
    }

    pub(super) fn slope(&self, emitter: &mut Emitter<'_>, node: Node) -> Option<Pair> {
        match self {
            Part::Written(terms, scale) => terms.slope(node).emitted_next_to(emitter, *scale),
            Part::Made(_, slopes) => slopes.get(&node).copied(),
        }
    }

    pub(super) fn nodes(&self) -> BTreeSet<Node> {
        match self {
            Part::Written(terms, _) => terms.nodes(),
            Part::Made(_, slopes) => slopes.keys().copied().collect(),
        }
    }
}

/// A number before its first step.
pub(super) struct Start {
    first: Part,
    /// Whether that is what a loop has carried.
    is_from_loop: bool,
    /// The parts of a step: what all of it is multiplied by, the factor less 1, and what
    /// is added.
    pub(super) shared: Vec<Part>,
    pub(super) change: Part,
    pub(super) added: Part,
    /// What it is multiplied by, and whether powers of that may be large.
    pub(super) factor: Factor,
    is_large: Whether,
    pub(super) has_added: bool,
    /// The point that it is taken to, if derivatives by that are told by themselves.
    toward: Option<Toward>,
    /// By how much that has grown which a step is made of, if it is made of what inner loops come
    /// to.
    growth: Option<Growth>,
}

/// The number of `system`, which has one, after `times` steps; `None` if it has more.
pub(super) fn changed(
    forms: &mut Forms<'_, '_>,
    system: &System,
    times: usize,
) -> Option<Result<Vec<Node>, &'static str>> {
    let row = system.only_row()?;
    let before = forms.emitter.items.len();
    let emitter = &mut *forms.emitter;
    let Some(start) = Start::of(emitter, system, row) else { return Some(Err(MOST)) };
    let node = match start.has_added {
        true => {
            let known = start.factor.after(emitter, times);
            start.end(emitter, &known)
        }
        false => start.multiplied(emitter, times),
    };
    emitter.derived += emitter.items.len() - before;
    Some(Ok(vec![node]))
}

/// The same after `count` steps, of which there are `most` at most.
pub(super) fn changed_by(
    forms: &mut Forms<'_, '_>,
    system: &System,
    count: Node,
    most: u32,
) -> Option<Result<Node, &'static str>> {
    let row = system.only_row()?;
    let emitter = &mut *forms.emitter;
    let Some(start) = Start::of(emitter, system, row) else { return Some(Err(MOST)) };
    let known = start.factor.after_count(emitter, count, most);
    Some(Ok(start.end(emitter, &known)))
}

impl Start {
    pub(super) fn of(emitter: &mut Emitter<'_>, system: &System, row: &Affine) -> Option<Start> {
        let start = Start::written(emitter, system, row);
        let start = start.or_else(|| Start::made(emitter, system, row))?;
        (start.leaves().len() <= MOST_LEAVES).then_some(start)
    }

    /// With coefficients whose terms are known.
    fn written(emitter: &mut Emitter<'_>, system: &System, row: &Affine) -> Option<Start> {
        let (mut added, mut factor) = (Vec::new(), Terms::default());
        for (&base, coefficient) in row {
            let &Coefficient::Fixed(pair) = coefficient else { return None };
            let terms = Terms::of(emitter, pair)?;
            match base {
                Base::State(_) => factor = factor.plus(&terms),
                Base::Node(node) => {
                    let whole = terms.times(&Terms::of_node(emitter, node));
                    added.push(whole.or_else(|| terms.times(&Terms::node(node)))?);
                }
            }
        }
        // What is almost zero would be lost next to 1.
        let less_one = factor.plus(&Terms::number((-1.0).into()));
        let mut growth = Growth::default();
        for number in added.iter().chain([&less_one]).flat_map(|terms| terms.all.values()) {
            let number = emitter.number(number.high, number.low);
            growth.add_constant(emitter, number);
        }
        let &node = system.firsts.first()?;
        let first = Terms::of_node(emitter, node);
        let zero = emitter.number(0.0, 0.0);
        let value = factor.emitted(emitter).unwrap_or(zero);
        let step = Step::of(less_one.clone(), added);
        let one = Terms::number(1.0.into());
        let point = (step.less_one == one).then(|| step.added.scaled(-1.0));
        let others = step.shared.iter().flat_map(Terms::nodes).collect();
        let toward = point.and_then(|point| {
            let (rows, first) = (core::slice::from_ref(row), core::slice::from_ref(&first));
            Toward::of(emitter, rows, first, &[point], &others)
        });
        let less_one = less_one.emitted(emitter).unwrap_or(zero);
        let has_added = !step.added.is_zero();
        let is_large = is_large(emitter, value, has_added);
        Some(Start {
            first: Part::Written(first, 0.0),
            is_from_loop: emitter.is_multiple_from_loop(node),
            shared: step.shared.into_iter().map(|shared| Part::Written(shared, 1.0)).collect(),
            change: Part::Written(step.less_one, 1.0),
            added: Part::Written(step.added, 0.0),
            factor: Factor { value, less_one },
            is_large,
            has_added,
            toward,
            growth: (!growth.is_none()).then_some(growth),
        })
    }

    /// With coefficients that are what a loop in the loop comes to.
    fn made(emitter: &mut Emitter<'_>, system: &System, row: &Affine) -> Option<Start> {
        let state = Base::State(*system.states.first()?);
        let own = match row.get(&state) {
            Some(&Coefficient::Fixed(pair)) => Some(pair),
            _ => None,
        };
        let added = offset(emitter, row);
        let pairs: Vec<Pair> = own.into_iter().chain(added).collect();
        if !pairs.iter().any(|&pair| emitter.is_made_of_told(pair)) {
            return None;
        }
        let parts = Parts::of(emitter, &pairs)?;
        let (numbers, growth) = (parts.numbers(emitter), parts.growth(emitter));
        let mut slopes = [BTreeMap::new(), BTreeMap::new()];
        for leaf in parts.leaves() {
            let of = parts.slopes(emitter, leaf);
            for (pair, slopes) in [own, added].into_iter().zip(&mut slopes) {
                slopes.extend(pair.and_then(|pair| of.get(&pair)).map(|&slope| (leaf, slope)));
            }
        }
        let zero = emitter.number(0.0, 0.0);
        let [value, number] = [own, added].map(|pair| match pair {
            Some(pair) => emitter.normal(numbers[&pair]),
            None => zero,
        });
        let less = emitter.number(-1.0, 0.0);
        let less_one = normal_sum(emitter, value, less);
        let [of_factor, of_added] = slopes;
        let is_large = is_large(emitter, value, added.is_some());
        let first = Terms::of_node(emitter, *system.firsts.first()?);
        Some(Start {
            first: Part::Written(first, 0.0),
            // What inner loops come to is looked at by its own growth.
            is_from_loop: false,
            shared: Vec::new(),
            change: Part::Made(less_one, of_factor),
            added: Part::Made(number, of_added),
            factor: Factor { value, less_one },
            is_large,
            has_added: added.is_some(),
            toward: None,
            growth: Some(growth),
        })
    }

    /// The nodes that all of it is made of.
    fn leaves(&self) -> BTreeSet<Node> {
        let parts = [&self.first, &self.change, &self.added];
        parts.into_iter().chain(&self.shared).flat_map(Part::nodes).collect()
    }

    /// Whether it may begin where it stays, but for rounding: both are made of the same.
    fn may_rest(&self) -> bool {
        !self.is_from_loop && !self.first.nodes().is_disjoint(&self.added.nodes())
    }

    /// Whether its fixed point is known: what is added is that, with the other sign.
    pub(super) fn has_fixed_point(&self) -> bool {
        let one = || Terms::number(1.0.into());
        self.has_added && matches!(&self.change, Part::Written(terms, _) if *terms == one())
    }

    /// `pair` multiplied by what all of a step is multiplied by, but for one of that.
    pub(super) fn whole(
        &self,
        emitter: &mut Emitter<'_>,
        pair: Pair,
        without: Option<usize>,
    ) -> Pair {
        let mut whole = pair;
        for (_, part) in self.shared.iter().enumerate().filter(|&(at, _)| Some(at) != without) {
            let factor = part.emitted(emitter);
            whole = emitter.product(whole, factor);
        }
        whole
    }

    /// The number, with its derivatives.
    fn end(&self, emitter: &mut Emitter<'_>, powers: &Powers) -> Node {
        let first = self.first.number(emitter);
        let mut parts = vec![(&self.first, powers.power)];
        let (value, change) = match self.has_fixed_point() {
            true => self.around_fixed_point(emitter, powers, first, &mut parts),
            false => self.after_start(emitter, powers, first, &mut parts),
        };
        for (at, factor) in self.shared.iter().enumerate() {
            if let (false, Some(change)) = (factor.nodes().is_empty(), change) {
                let slope = emitter.product(change, powers.slope);
                parts.push((factor, self.whole(emitter, slope, Some(at))));
            }
        }
        let power = total_size(emitter, &[Some(powers.power)]);
        let least = match &self.growth {
            Some(growth) => growth.share(emitter, powers.number, Some(powers.power)),
            None => least_part(emitter, powers.number, power),
        };
        let value = value.map(|value| match (self.is_from_loop && self.has_added, change) {
            (false, _) => value,
            (true, Some(way)) if self.toward.is_some() => {
                let point = self.added.emitted(emitter);
                let power = unless_apart(emitter, power, [way, point]);
                unless_grown(emitter, value, power)
            }
            (true, _) => unless_grown(emitter, value, power),
        });
        self.with_slopes(emitter, value, &parts, least)
    }

    /// The number, and how far from the fixed point it was before.
    fn around_fixed_point<'a>(
        &'a self,
        emitter: &mut Emitter<'_>,
        powers: &Powers,
        first: Option<Pair>,
        parts: &mut Vec<(&'a Part, Pair)>,
    ) -> (Option<Pair>, Option<Pair>) {
        let [zero, one, less] = [0.0, 1.0, -1.0].map(|number| emitter.number(number, 0.0));
        let added = self.added.number(emitter);
        let terms = [(first, Some(one)), (added, Some(one))];
        let way = sum_of(emitter, terms).map(|way| emitter.normal(way));
        let way = match self.may_rest() {
            true => way.map(|way| unless_rounded(emitter, way, &terms, self.is_large)),
            false => way,
        };
        let fixed = emitter.product(added.unwrap_or(zero), less);
        let (is_far, factor) = self.factor.power_or_change(emitter, powers);
        let from = is_far.either(emitter, fixed, first.unwrap_or(zero));
        let value = sum_of(emitter, [(Some(from), Some(one)), (way, Some(factor))]);
        if !self.added.nodes().is_empty() && self.toward.is_none() {
            parts.push((&self.added, self.factor.change(emitter, powers)));
        }
        (value, way)
    }

    /// The number, and its first change without what is shared.
    fn after_start<'a>(
        &'a self,
        emitter: &mut Emitter<'_>,
        powers: &Powers,
        first: Option<Pair>,
        parts: &mut Vec<(&'a Part, Pair)>,
    ) -> (Option<Pair>, Option<Pair>) {
        let (zero, one) = (emitter.number(0.0, 0.0), emitter.number(1.0, 0.0));
        let (less_one, added) = (self.change.number(emitter), self.added.number(emitter));
        let terms = [(less_one, first), (added, Some(one))];
        let change = self.left(emitter, powers, terms).map(|change| emitter.normal(change));
        let change = change.map(|change| match (self.is_from_loop, self.may_rest()) {
            (true, _) => unless_still(emitter, change, &terms),
            (_, true) => unless_rounded(emitter, change, &terms, self.is_large),
            (_, false) => change,
        });
        let either = |emitter: &mut Emitter<'_>, for_large: Pair, for_small: Pair| {
            self.is_large.either(emitter, for_large, for_small)
        };
        let sum = self.has_added.then(|| self.factor.sum(emitter, powers));
        let by_added = sum.map(|sum| self.whole(emitter, sum, None));
        let by_first = either(emitter, one, powers.power);
        let summed = either(emitter, change.unwrap_or(zero), added.unwrap_or(zero));
        let value = self.left(emitter, powers, [(first, Some(by_first)), (Some(summed), by_added)]);
        parts.extend(by_added.map(|by_added| (&self.added, by_added)));
        if !self.change.nodes().is_empty() {
            let by_first = match sum {
                Some(sum) => either(emitter, sum, powers.slope),
                None => powers.slope,
            };
            let sum_slope = sum.map(|sum| {
                let slope = self.factor.sum_slope(emitter, powers, sum);
                self.whole(emitter, slope, None)
            });
            let slope = sum_of(emitter, [(first, Some(by_first)), (Some(summed), sum_slope)]);
            let slope = slope.map(|slope| self.whole(emitter, slope, None));
            parts.extend(slope.map(|slope| (&self.change, slope)));
        }
        (value, change)
    }

    /// The sum of products; if a step is made of what inner loops come to no number where they
    /// cancel by more than the digits that they have. Such loops may multiply by large powers
    /// what is taken away again, or begins with nothing.
    fn left(
        &self,
        emitter: &mut Emitter<'_>,
        powers: &Powers,
        factors: [Factors; 2],
    ) -> Option<Pair> {
        let is_single = factors.iter().any(|(a, b)| a.is_none() || b.is_none());
        let growth = self.growth.as_ref().filter(|_| !is_single);
        let share = growth.and_then(|all| all.share(emitter, powers.number, Some(powers.power)));
        match share {
            Some(_) => left_of(emitter, &factors, None, share),
            None => sum_of(emitter, factors),
        }
    }

    /// The number after `times` steps if nothing is added to it. Half of the power is
    /// applied twice, so that it is in the range of numbers if the result is.
    fn multiplied(&self, emitter: &mut Emitter<'_>, times: usize) -> Node {
        let one = emitter.number(1.0, 0.0);
        let before = times - 1;
        let power = self.factor.power(emitter, before / 2);
        let power = emitter.normal(power);
        let first = self.first.emitted(emitter);
        let powered = |emitter: &mut Emitter<'_>, number: Pair| {
            let mut after = product(emitter, number, power);
            after = product(emitter, after, power);
            if before & 1 == 1 {
                after = product(emitter, after, self.factor.value);
            }
            after
        };
        let last = powered(emitter, first);
        let value = product(emitter, last, self.factor.value);
        // What is multiplied by derivatives that make it larger again has lost digits there.
        emitter.require_none_below(value.high, f64::MIN_POSITIVE);
        let of_power = powered(emitter, one);
        let by_first = product(emitter, of_power, self.factor.value);
        let number = emitter.number(times as f64, 0.0);
        let by_factor = product(emitter, last, number);
        let mut parts = vec![(&self.first, by_first)];
        let factor = self.factor_part();
        parts.push((&factor, by_factor));
        self.with_slopes(emitter, Some(value), &parts, None)
    }

    /// `value` with its derivatives, where `parts` are what it was computed of and
    /// its derivatives by that. The part `least` of the terms of these is to be left.
    fn with_slopes(
        &self,
        emitter: &mut Emitter<'_>,
        value: Option<Pair>,
        parts: &[(&Part, Pair)],
        least: Option<Node>,
    ) -> Node {
        let mut totals = Totals::default();
        for leaf in self.leaves() {
            let mut factors = Vec::new();
            for (part, slope) in parts {
                let own = part.slope(emitter, leaf);
                own.iter().for_each(|own| require_factor(emitter, own.high, slope.high));
                factors.push((own, Some(*slope)));
            }
            let total = sum_of(emitter, factors.iter().copied());
            // A single term is all that there is.
            let terms = factors.iter().filter(|(a, b)| a.is_some() && b.is_some()).count();
            let least = least.filter(|_| terms > 1).map(|part| {
                let size = total_of_products(emitter, &factors);
                emitter.apply(Op::Mul, &[size, part])
            });
            totals.add_sum(emitter, leaf, total, [least]);
        }
        let value = value.unwrap_or_else(|| emitter.number(0.0, 0.0));
        let rounded = emitter.rounded(value);
        // By the first part its derivative is the power.
        let row: Row = parts.iter().take(1).map(|&(_, power)| Some(power)).collect();
        let toward = self.toward.as_ref();
        let taken = toward.map(|toward| Taken { toward, number: 0, row: &row });
        let node = totals.told(emitter, rounded, taken, Digits::Rounded);
        emitter.numbers.insert(node, value);
        node
    }

    /// The factor, as far as its derivatives go: 1 more or less.
    fn factor_part(&self) -> Part {
        match &self.change {
            Part::Written(less_one, scale) => {
                let whole = self.shared.iter().fold(less_one.clone(), |terms, factor| {
                    let Part::Written(factor, _) = factor else { return terms };
                    // One of the two is a single term.
                    terms.times(factor).unwrap_or_default()
                });
                Part::Written(whole, *scale)
            }
            Part::Made(number, slopes) => Part::Made(*number, slopes.clone()),
        }
    }
}

/// Whether the size of `factor` is more than a number next to 1, by which the form is marked
/// as one of two, if that matters.
fn is_large(emitter: &mut Emitter<'_>, factor: Pair, has_added: bool) -> Whether {
    match has_added {
        true => is_beyond(emitter, factor.high, marked(1.0)),
        false => Whether::Known(false),
    }
}
