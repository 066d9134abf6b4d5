//! Sums over data that are known only in a call, inactive inputs: their moments are computed once,
//! before the outermost loop around in which they do not change.
//!
//! For lines in one variable whose coefficients have one sign, and weighted squares of lines whose
//! weights have, a first loop finds the expansion point, the root of the sum or the least-squares solution,
//! and a second one adds up around it. In working precision that is as accurate as the loop. The
//! moments of all other polynomials are double-doubles around zero, of which a routine computes the
//! sum, under the accuracy contract.

use std::sync::Arc;

use super::condition::measured;
use super::data::{Datum, Step, sample, sample_of};
use super::extract::{Of, Place};
use super::form::{Coefficient, Sum};
use super::moments::Iterate;
use super::polynomial::Monomial;
use super::record;
use super::solve::{Extracted, Form, Found, extracted, factors, without};
use crate::numeric::double_double::Bounded;
use crate::numeric::{Instruction, Moments, OPERATIONS, Program, Routine, Slot};
use crate::op::Op;
use crate::phi::close::CloseLimits;
use crate::phi::reason::SumReason;
use crate::phi::recurrence::{Body, needed};
use crate::phi::rule::Rule;
use crate::phi::version::Cursor;
use crate::pipeline::cost;
use crate::ssa::{
    AccessData, ArrayData, Block, Def, End, Graph, Item, Node, NodeData, Region, RegionData,
};

/// The most iterations of which each term is tested whether it is a square.
const MOST_TESTED: u64 = 1 << 16;

/// Loops over data that are inserted before a loop.
pub(super) struct Hoist {
    outer: Region,
    /// How often a loop uses what they compute.
    runs: u64,
    count: u64,
    moments: Hoisted,
}

/// How moments are computed in a call.
enum Hoisted {
    /// In working precision.
    Plain,
    /// The same around an expansion point of this variable, found from what an iteration adds
    /// around zero.
    Around(usize, Iterate),
    /// In double-double, by this routine, whose first inputs are these data.
    DoubleDouble(Routine, Vec<Datum>),
}

/// The closed form of `value`, the next value of an entry φ, over data that are known before a
/// loop around.
pub(super) fn hoisted(
    place: Place<'_>,
    body: &Body,
    value: Node,
    count: u64,
    limits: &CloseLimits,
) -> Result<Found, SumReason> {
    let Place { graph, nest, region, .. } = place;
    let around = core::iter::successors(nest.loop_around(region), |&of| nest.loop_around(of));
    let mut around: Vec<Region> = around.collect();
    let mut last = SumReason::DataOfCall;
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
) -> Result<Found, SumReason> {
    let Place { graph, nest, region, .. } = place;
    let outer = place.outer.ok_or(SumReason::DataOfCall)?;
    let entry = body.nexts.iter().position(|&next| next == value).ok_or(SumReason::Exit)?;
    let first = graph.entries(region)[entry].first;
    let needed = needed(graph, nest, region, &body.nexts, &[value]);
    let extract = |pivots: &[bool]| extracted(place, body, &needed, (value, entry), pivots, limits);
    let Extracted { iterate: plain, variables, ratio } = extract(&[])?;
    if ratio != Monomial::ONE || plain.factor.is_some() || !plain.data.is_read() {
        return Err(SumReason::DataOfCall);
    }
    let factors = factors(&plain.terms, &variables);
    let monomials = without(&factors, &plain.terms);
    let is_used = |number: &usize| monomials.iter().any(|of| of.exponents[*number] > 0);
    let used: Vec<usize> = (0..variables.len()).filter(is_used).collect();
    if plain.terms.len() > limits.monomials {
        return Err(SumReason::Monomials(limits.monomials));
    }
    let mut is_measured = measured(&monomials, variables.len());
    // Another power of it would not have these factors.
    factors.iter().for_each(|&(number, _)| is_measured[number] = false);
    let fits = |variable: usize| {
        variables[variable].of == Of::Itself && has_one_sign(&plain, &monomials, variable, count)
    };
    let has_no_exponential =
        variables.iter().all(|variable| matches!(variable.of, Of::Itself | Of::Inverse));
    let placeholder = Coefficient::Node(first);
    let (mut pivot, mut coefficient) = (Vec::new(), placeholder);
    let (iterate, moments) = match used[..] {
        _ if has_no_exponential && monomials.len() < 2 => (plain, Hoisted::Plain),
        [variable] if has_no_exponential && is_measured[variable] && fits(variable) => {
            let zero = Coefficient::Number(Bounded::ZERO);
            let at = |number| if number == variable { placeholder } else { zero };
            pivot = (0..variables.len()).map(at).collect();
            (extract(&is_measured)?.iterate, Hoisted::Around(variable, plain))
        }
        _ => {
            let (routine, data) = accumulation(&plain)?;
            coefficient = Coefficient::DoubleDouble([first; 3]);
            (plain, Hoisted::DoubleDouble(routine, data))
        }
    };
    let is_accurate = !matches!(moments, Hoisted::DoubleDouble(..));
    let number = graph.constant(first);
    let sum = Sum {
        monomials: without(&factors, &iterate.terms),
        // Placeholders, which `Hoist::insert` replaces.
        moments: vec![coefficient; iterate.terms.len()],
        pivot,
        variables,
        factors,
        begin: number.unwrap_or(0.0),
        is_begun: false,
        first: Some(first).filter(|_| number.is_none()),
        factor: Bounded::ONE,
    };
    let formula = record::sum(graph, &sum, &[], count);
    // The sum does not depend on the expansion point; validation uses this one.
    let pivot =
        sum.pivot.iter().map(|of| if matches!(of, Coefficient::Node(_)) { 0.3 } else { 0.0 });
    let (pivot, form) = (pivot.collect(), Form::Sum(sum));
    let hoist = Some(Hoist { outer, runs, count, moments });
    Ok(Found { entry, rule: Rule::C7, formula, form, is_accurate, hoist, iterate, pivot })
}

/// The routine that adds the terms of an iteration to the moments so far, and the data that are
/// its inputs before these.
fn accumulation(iterate: &Iterate) -> Result<(Routine, Vec<Datum>), SumReason> {
    let steps = iterate.data.steps();
    let arithmetic = |datum: Datum| match &steps[datum] {
        Step::Apply(op, args) if OPERATIONS.contains(op) || *op == Op::MulAdd => {
            Some((*op, &args[..op.arity()]))
        }
        _ => None,
    };
    let mut is_needed = vec![false; steps.len()];
    iterate.terms.iter().for_each(|&(_, datum)| is_needed[datum] = true);
    for datum in (0..steps.len()).rev() {
        if is_needed[datum]
            && let Some((_, args)) = arithmetic(datum)
        {
            args.iter().for_each(|&arg| is_needed[arg] = true);
        }
    }
    let (mut program, mut data) = (Program::new(0), Vec::new());
    let mut slots: Vec<Option<Slot>> = vec![None; steps.len()];
    for datum in (0..steps.len()).filter(|&datum| is_needed[datum]) {
        let instruction = match (&steps[datum], arithmetic(datum)) {
            (&Step::Number(number), _) => Instruction::Constant(number),
            (_, None) => {
                data.push(datum);
                Instruction::Input(program.add_input())
            }
            (_, Some((op, args))) => {
                let args = args.iter().map(|&arg| slots[arg].ok_or(SumReason::DataOfCall));
                let args = args.collect::<Result<Vec<Slot>, SumReason>>()?;
                match args[..] {
                    [a, b, c] => {
                        let product = push(&mut program, Instruction::Apply(Op::Mul, [a, b]))?;
                        Instruction::Apply(Op::Add, [product, c])
                    }
                    [a, ref rest @ ..] => {
                        Instruction::Apply(op, [a, rest.first().copied().unwrap_or(a)])
                    }
                    [] => return Err(SumReason::DataOfCall),
                }
            }
        };
        slots[datum] = Some(push(&mut program, instruction)?);
    }
    let mut values = Vec::new();
    for (_, datum) in &iterate.terms {
        let first = program.add_input();
        let _ = (program.add_input(), program.add_input());
        let before = push(&mut program, Instruction::Bounded(first))?;
        let term = slots[*datum].ok_or(SumReason::DataOfCall)?;
        values.push(push(&mut program, Instruction::Apply(Op::Add, [before, term]))?);
    }
    let moments = Moments::new(program, values).map_err(|_| SumReason::TooManySteps)?;
    Ok((Routine::Moments(moments), data))
}

fn push(program: &mut Program, instruction: Instruction) -> Result<Slot, SumReason> {
    program.push(instruction).map_err(|_| SumReason::TooManySteps)
}

/// Whether all terms are lines in `variable` whose coefficients have one sign, or squares of lines
/// times weights of one sign: then nothing of the sum around its expansion point cancels that is large.
fn has_one_sign(plain: &Iterate, monomials: &[Monomial], variable: usize, count: u64) -> bool {
    let line = Monomial::variable(variable);
    let of = |monomial: Monomial| {
        let at = monomials.iter().position(|&known| known == monomial);
        at.map(|at| plain.terms[at].1)
    };
    let all = [Some(Monomial::ONE), Some(line), line.shifted(variable, 1)];
    let [c, b, a] = all.map(|monomial| monomial.and_then(of));
    if !monomials.iter().all(|monomial| all.contains(&Some(*monomial))) {
        return false;
    }
    let signs = plain.data.signs(count);
    match (a, b) {
        (None, Some(slope)) => signs[slope].is_some(),
        (Some(weight), _) if count <= MOST_TESTED => {
            // Tested at one sample for each iteration.
            let mut values = Vec::new();
            let is_square = (0..count).all(|iteration| {
                plain.data.evaluate(iteration, &[], &mut values);
                let [c, b, a] = [c, b, a].map(|datum| datum.map_or(0.0, |datum| values[datum].hi));
                (b * b - 4.0 * a * c).abs() <= 1e-12 * b * b
            });
            is_square && signs[weight].is_some()
        }
        _ => false,
    }
}

/// `graph` with samples for what `iterate` reads in a call.
pub(super) fn sampled(graph: &Graph, iterate: &Iterate) -> Graph {
    let mut sampled = graph.clone();
    for step in iterate.data.steps() {
        match *step {
            Step::Row { array, .. } => {
                if let ArrayData::Inputs { count, .. } = graph.arrays[array] {
                    sampled.arrays[array] = ArrayData::Constants(sample(array, count));
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
    /// What it takes for each time that the loop `region` runs; half of the largest number of runs
    /// as a rule.
    pub(super) fn cost(&self, graph: &Graph, region: Region) -> u64 {
        let (passes, routine) = match &self.moments {
            Hoisted::Plain => (1, None),
            Hoisted::Around(..) => (2, None),
            Hoisted::DoubleDouble(routine, _) => (1, Some(routine)),
        };
        let once = cost::over_data(graph, region, passes, self.count, routine);
        once.saturating_mul(2) / self.runs.max(1)
    }

    /// Inserts the loops, and lets `sum` use what they compute.
    pub(super) fn insert(
        &self,
        new: &mut Graph,
        place: Place<'_>,
        iterate: &Iterate,
        sum: &mut Sum,
    ) -> Option<()> {
        let block = place.nest.region_block(self.outer)?;
        let mut cursor = Cursor::before(new, block, self.outer)?;
        let source = place.graph.regions[place.region].place;
        let mut adder = Adder { new, cursor: &mut cursor, place: source, count: self.count };
        sum.moments = match &self.moments {
            Hoisted::Plain => {
                adder.add_up(iterate, &[]).into_iter().map(Coefficient::Node).collect()
            }
            Hoisted::Around(variable, plain) => {
                let point = adder.expansion_point(plain, *variable);
                *sum.pivot.get_mut(*variable)? = Coefficient::Node(point);
                let mut pivot = vec![None; *variable];
                pivot.push(Some(point));
                adder.add_up(iterate, &pivot).into_iter().map(Coefficient::Node).collect()
            }
            Hoisted::DoubleDouble(routine, data) => {
                let words = adder.accumulate(iterate, &Arc::new(routine.clone()), data);
                let words = words.as_chunks().0.iter();
                words.map(|&words| Coefficient::DoubleDouble(words)).collect()
            }
        };
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
        let (terms, place) = (&iterate.terms, self.place);
        self.over_data(iterate, pivot, terms.len(), |new, root, values, entries| {
            let add = |(&entry, &(_, datum)): (&Node, &(Monomial, Datum))| {
                new.push_apply(root, Op::Add, &[entry, values[datum]], place)
            };
            entries.iter().zip(terms).map(add).collect()
        })
    }

    /// The words and bounds of the same around zero, by `routine`.
    fn accumulate(
        &mut self,
        iterate: &Iterate,
        routine: &Arc<Routine>,
        data: &[Datum],
    ) -> Vec<Node> {
        let place = self.place;
        self.over_data(iterate, &[], routine.outputs(), |new, root, values, entries| {
            let args = data.iter().map(|&datum| values[datum]).chain(entries.iter().copied());
            let call = new.push_call(root, Arc::clone(routine), args.collect(), place);
            let results = (0..routine.outputs()).map(|output| routine.value_index(output));
            results.map(|result| new.push_result(root, call, result as u32)).collect()
        })
    }

    /// A loop over the data that carries so many numbers, zero at first, to what `next` makes of
    /// them and of the data of an iteration; what comes out of it.
    fn over_data(
        &mut self,
        iterate: &Iterate,
        pivot: &[Option<Node>],
        carried: usize,
        next: impl FnOnce(&mut Graph, Block, &[Node], &[Node]) -> Vec<Node>,
    ) -> Vec<Node> {
        let (new, place) = (&mut *self.new, self.place);
        let root = new.new_block();
        let data = RegionData { root, phis: Vec::new(), replays: None, cycle: None, place };
        let region = new.regions.push(data);
        let zero = new.push_const(0);
        let firsts = vec![zero; carried];
        let entries = new.make_loop(region, self.count as u32, &firsts);
        let number = new.push_iteration(region);
        let mut values: Vec<Node> = Vec::new();
        for step in iterate.data.steps() {
            let element = |new: &mut Graph, array, base: i64, stride: i64| {
                let strides = [(region, stride as i32)].into_iter().collect();
                let access = new.accesses.push(AccessData { array, base: base as u32, strides });
                let node = new.nodes.push(NodeData { def: Def::Element(access), place });
                new.blocks[root].items.push(Item::Node(node));
                node
            };
            values.push(match *step {
                Step::Number(number) => new.push_const(number.to_bits()),
                Step::Pivot(variable) => pivot.get(variable).copied().flatten().unwrap_or(zero),
                Step::Iteration => number,
                Step::Element { ref table, base, stride } => {
                    let array = new.arrays.push(ArrayData::Constants(table.clone()));
                    element(new, array, base, stride)
                }
                Step::Row { array, base, stride, .. } => element(new, array, base, stride),
                Step::Known(node) => node,
                Step::Apply(op, args) => {
                    let args: Vec<Node> = args[..op.arity()].iter().map(|&at| values[at]).collect();
                    new.push_apply(root, op, &args, place)
                }
            });
        }
        let nexts = next(new, root, &values, &entries);
        let last = new.push_const((self.count as f64 - 1.0).to_bits());
        let again = new.push_apply(root, Op::Lt, &[number, last], None);
        let passed = core::iter::once(&again).chain(&nexts).chain(&nexts).copied().collect();
        new.blocks[root].end = End::Return(passed);
        let phis = nexts.iter().map(|_| new.push_phi(region)).collect();
        self.cursor.insert(self.new, Item::Region(region));
        phis
    }
}
