//! Sums over data that are known only in a call, inactive inputs: their moments are computed once,
//! before the outermost loop around in which they do not change.
//!
//! These are lines and squares of lines in one variable, and what has no variable but factors. A
//! first loop finds the expansion point, the root of the line or the least-squares solution, and a
//! second one adds up around it. In working precision that is as accurate as the loop: a line has
//! no part that cancels, and of squares none does. Other sums would need more digits.

use super::condition::measured;
use super::data::{Datum, Step, sample, sample_of};
use super::extract::{Of, Place};
use super::form::{Coefficient, Sum};
use super::moments::Iterate;
use super::polynomial::Monomial;
use super::reason::Reason;
use super::record;
use super::solve::{Extracted, Form, Found, extracted, factors, without};
use crate::numeric::double_double::Bounded;
use crate::op::Op;
use crate::phi::close::CloseLimits;
use crate::phi::recurrence::{Body, needed};
use crate::phi::rule::Rule;
use crate::phi::version::Cursor;
use crate::ssa::{
    AccessData, Def, End, Graph, Item, Node, NodeData, Region, RegionData, SeriesData, cost,
};

/// So many samples tell whether all terms are squares.
const SAMPLES: u64 = 8;

/// Loops over data that are inserted before a loop.
pub(super) struct Hoist {
    outer: Region,
    count: u64,
    /// What an iteration adds around zero.
    plain: Iterate,
    /// The variable that is measured from an expansion point.
    measured: Option<usize>,
}

/// The closed form of `value`, the next value of an entry φ, over data that are known before a
/// loop around.
pub(super) fn hoisted(
    place: Place<'_>,
    body: &Body,
    value: Node,
    count: u64,
    limits: &CloseLimits,
) -> Result<Found, Reason> {
    let Place { graph, nest, region, .. } = place;
    let around = core::iter::successors(nest.loop_around(region), |&of| nest.loop_around(of));
    let mut around: Vec<Region> = around.collect();
    let mut last = Reason::Data;
    while let Some(&outer) = around.last() {
        let bound = |of: &Region| graph.regions[*of].cycle.as_ref().map_or(1, |of| of.bound);
        let runs = around.iter().map(|of| u64::from(bound(of))).fold(1, u64::saturating_mul);
        let place = Place { outer: Some(outer), ..place };
        match before(place, body, value, (count, runs), limits) {
            Ok(found) => return Ok(found),
            Err(reason) => last = reason,
        }
        around.pop();
    }
    Err(last)
}

/// The same before the loop of `place`.
fn before(
    place: Place<'_>,
    body: &Body,
    value: Node,
    (count, runs): (u64, u64),
    limits: &CloseLimits,
) -> Result<Found, Reason> {
    let Place { graph, nest, region, .. } = place;
    let outer = place.outer.ok_or(Reason::Data)?;
    let entry = body.nexts.iter().position(|&next| next == value).ok_or(Reason::Exit)?;
    let first = graph.entries(region)[entry].first;
    let needed = needed(graph, nest, region, &body.nexts, &[value]);
    let extract = |pivots: &[bool]| extracted(place, body, &needed, (value, entry), pivots, limits);
    let Extracted { iterate: plain, variables, ratio } = extract(&[])?;
    if ratio != Monomial::ONE || plain.factor.is_some() || !plain.data.is_read() {
        return Err(Reason::Data);
    }
    let factors = factors(&plain.terms, &variables);
    let monomials = without(&factors, &plain.terms);
    let is_measured = measured(&monomials, variables.len());
    let all: Vec<usize> = (0..variables.len()).filter(|&number| is_measured[number]).collect();
    let is_used = |number: &usize| monomials.iter().any(|of| of.exponents[*number] > 0);
    let (iterate, measured) = match all[..] {
        [] if monomials.len() < 2 => (extract(&[])?.iterate, None),
        [variable] if (0..variables.len()).filter(is_used).count() == 1 => {
            let degree = monomials.iter().map(Monomial::degree).max().unwrap_or(0);
            let is_plain = variables[variable].of == Of::Itself;
            let fits = degree == 1 || degree == 2 && are_squares(&plain, &monomials, variable);
            if !(is_plain && fits) {
                return Err(Reason::Data);
            }
            (extract(&is_measured)?.iterate, Some(variable))
        }
        _ => return Err(Reason::Data),
    };
    if factors
        .iter()
        .any(|&(number, _)| matches!(variables[number].of, Of::Exponential | Of::Decay))
    {
        return Err(Reason::Data);
    }
    let passes = if measured.is_some() { 2 } else { 1 };
    if !limits.always && !cost::is_worth_hoisting(graph, region, runs, passes) {
        return Err(Reason::Cost);
    }
    let number = graph.constant(first);
    let place_of = Coefficient::Node(first);
    let sum = Sum {
        monomials: without(&factors, &iterate.terms),
        // Nodes take their places when they are inserted.
        moments: vec![place_of; iterate.terms.len()],
        pivot: match measured {
            Some(variable) => {
                let zero = Coefficient::Number(Bounded::ZERO);
                let at = |number| if number == variable { place_of } else { zero };
                (0..variables.len()).map(at).collect()
            }
            None => Vec::new(),
        },
        variables,
        factors,
        begin: number.unwrap_or(0.0),
        is_begun: false,
        first: Some(first).filter(|_| number.is_none()),
        factor: Bounded::ONE,
    };
    let formula = record::sum(graph, &sum, &[], count);
    let pivot = sum.pivot.iter().map(|of| match of {
        Coefficient::Number(_) => 0.0,
        // Where it is does not matter for what the sum is.
        Coefficient::Node(_) => 0.3,
    });
    let (pivot, form) = (pivot.collect(), Form::Sum(sum));
    let hoist = Some(Hoist { outer, count, plain, measured });
    Ok(Found { entry, rule: Rule::C7, formula, form, is_accurate: true, hoist, iterate, pivot })
}

/// Whether all terms are squares of lines in `variable`, by samples: polynomials whose
/// discriminant is zero, and whose highest coefficient is not negative.
fn are_squares(plain: &Iterate, monomials: &[Monomial], variable: usize) -> bool {
    let line = Monomial::variable(variable);
    let datum = |of: Option<Monomial>| {
        let at = monomials.iter().position(|&monomial| Some(monomial) == of);
        at.map(|at| plain.terms[at].1)
    };
    let all = [Some(Monomial::ONE), Some(line), line.shifted(variable, 1)].map(datum);
    let mut values = Vec::new();
    (0..SAMPLES).all(|iteration| {
        plain.data.evaluate(iteration, &[], &mut values);
        let [c, b, a] = all.map(|datum| datum.map_or(0.0, |datum| values[datum].hi));
        (b * b - 4.0 * a * c).abs() <= 1e-12 * b * b && a >= 0.0
    })
}

/// `graph` with samples for what `iterate` reads in a call.
pub(super) fn sampled(graph: &Graph, iterate: &Iterate) -> Graph {
    let mut sampled = graph.clone();
    for step in iterate.data.steps() {
        match *step {
            Step::Row { series, .. } => {
                if let SeriesData::Inputs { count, .. } = graph.series[series] {
                    sampled.series[series] = SeriesData::Constants(sample(series, count));
                }
            }
            Step::Known(node) => {
                sampled.nodes[node].def = Def::Const(sample_of(node).to_bits());
            }
            _ => {}
        }
    }
    sampled
}

impl Hoist {
    /// Inserts the loops, and lets `sum` use what they compute.
    pub(super) fn insert(
        &self,
        new: &mut Graph,
        place: Place<'_>,
        around: &Iterate,
        sum: &mut Sum,
    ) -> Option<()> {
        let block = place.nest.region_block(self.outer)?;
        let mut cursor = Cursor::before(new, block, self.outer)?;
        let source = place.graph.regions[place.region].place;
        let mut adder = Adder { new, cursor: &mut cursor, place: source, count: self.count };
        if let Some(variable) = self.measured {
            let point = adder.expansion_point(&self.plain, variable);
            *sum.pivot.get_mut(variable)? = Coefficient::Node(point);
            let mut pivot = vec![None; variable];
            pivot.push(Some(point));
            let moments = adder.add_up(around, &pivot);
            sum.moments = moments.into_iter().map(Coefficient::Node).collect();
        } else {
            let moments = adder.add_up(around, &[]);
            sum.moments = moments.into_iter().map(Coefficient::Node).collect();
        }
        Some(())
    }
}

/// Inserts loops that add up data.
struct Adder<'a> {
    new: &'a mut Graph,
    cursor: &'a mut Cursor,
    place: Option<crate::ssa::PlaceId>,
    count: u64,
}

impl Adder<'_> {
    fn apply(&mut self, op: Op, args: &[Node]) -> Node {
        let args = core::array::from_fn(|at| args.get(at).copied().unwrap_or(args[0]));
        self.cursor.push(self.new, Def::Apply(op, args), self.place)
    }

    /// The root of a line, or the least-squares solution for squares; zero where there is none.
    fn expansion_point(&mut self, plain: &Iterate, variable: usize) -> Node {
        let degree = plain.terms.iter().map(|(of, _)| of.exponents[variable]).max().unwrap_or(0);
        let least = plain.terms.iter().map(|(of, _)| of.exponents[variable]).min().unwrap_or(0);
        let sums = self.add_up(plain, &[]);
        let of = |exponent: u8| {
            let mut all = plain.terms.iter().zip(&sums);
            all.find(|((of, _), _)| of.exponents[variable] == exponent).map(|(_, &sum)| sum)
        };
        let zero = self.new.push_const(0);
        let top = of(degree).unwrap_or(zero);
        let below = of(degree.saturating_sub(1)).unwrap_or(zero);
        let power =
            self.new.push_const(f64::from(least).mul_add(-1.0, f64::from(degree)).to_bits());
        let top = self.apply(Op::Mul, &[top, power]);
        let quotient = self.apply(Op::Div, &[below, top]);
        let point = self.apply(Op::Neg, &[quotient]);
        let difference = self.apply(Op::Sub, &[point, point]);
        let is_finite = self.apply(Op::Eq, &[difference, zero]);
        self.apply(Op::Select, &[is_finite, point, zero])
    }

    /// The sums of the terms of `iterate` around `pivot`.
    fn add_up(&mut self, iterate: &Iterate, pivot: &[Option<Node>]) -> Vec<Node> {
        let (new, place) = (&mut *self.new, self.place);
        let root = new.new_block();
        let data = RegionData { root, phis: Vec::new(), replays: None, cycle: None, place };
        let region = new.regions.push(data);
        let zero = new.push_const(0);
        let firsts = vec![zero; iterate.terms.len()];
        let entries = new.make_loop(region, self.count as u32, &firsts);
        let number = new.push_iteration(region);
        let mut values: Vec<Node> = Vec::new();
        for step in iterate.data.steps() {
            let element = |new: &mut Graph, series, base: i64, stride: i64| {
                let strides = [(region, stride as i32)].into_iter().collect();
                let access = new.accesses.push(AccessData { series, base: base as u32, strides });
                let node = new.nodes.push(NodeData { def: Def::Element(access), place });
                new.blocks[root].items.push(Item::Node(node));
                node
            };
            values.push(match *step {
                Step::Number(number) => new.push_const(number.to_bits()),
                Step::Pivot(variable) => pivot.get(variable).copied().flatten().unwrap_or(zero),
                Step::Iteration => number,
                Step::Element { ref table, base, stride } => {
                    let series = new.series.push(SeriesData::Constants(table.clone()));
                    element(new, series, base, stride)
                }
                Step::Row { series, base, stride, .. } => element(new, series, base, stride),
                Step::Known(node) => node,
                Step::Apply(op, args) => {
                    let args: Vec<Node> = args[..op.arity()].iter().map(|&at| values[at]).collect();
                    new.push_apply(root, op, &args, place)
                }
            });
        }
        let next = |(&entry, &(_, datum)): (&Node, &(Monomial, Datum))| (entry, values[datum]);
        let nexts: Vec<(Node, Node)> = entries.iter().zip(&iterate.terms).map(next).collect();
        let nexts: Vec<Node> = nexts
            .into_iter()
            .map(|(entry, value)| new.push_apply(root, Op::Add, &[entry, value], place))
            .collect();
        let last = new.push_const((self.count as f64 - 1.0).to_bits());
        let again = new.push_apply(root, Op::Lt, &[number, last], None);
        let passed = core::iter::once(&again).chain(&nexts).chain(&nexts).copied().collect();
        new.blocks[root].end = End::Return(passed);
        let phis = nexts.iter().map(|_| new.push_phi(region)).collect();
        self.cursor.insert(self.new, Item::Region(region));
        phis
    }
}
