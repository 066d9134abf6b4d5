//! Sums over inactive inputs: their moments are computed in the call, before the outermost loop
//! around in which the data do not change.
//!
//! Two kinds of sums are accurate in working precision: lines in one variable whose leading
//! coefficients have one sign, and squares of lines with weights of one sign. A first loop over the
//! data computes the expansion point (the root of the sum, or the least-squares solution), a second
//! one the moments around it. For all other polynomials a loop calls the routine `moments`, which adds
//! up in double-double around zero, and the polynomial is a routine under the accuracy contract.

use std::sync::Arc;

use super::condition::shifted_variables;
use super::data::{Datum, Step, sample, sample_of};
use super::description;
use super::extract::{LoopContext, Transform};
use super::form::{Coefficient, Sum};
use super::moments::Update;
use super::polynomial::Monomial;
use super::solve::{ClosedForm, Expression, ExtractedUpdate, divide_out, extract_update, factors};
use crate::numeric::double_double::Bounded;
use crate::numeric::{Instruction, Moments, OPERATIONS, Program, Routine, Slot};
use crate::op::Op;
use crate::phi::close::CloseLimits;
use crate::phi::reason::SumReason;
use crate::phi::recurrence::{Body, needed};
use crate::phi::rule::Rule;
use crate::pipeline::cost;
use crate::ssa::{
    AccessData, ArrayData, Block, Def, Editor, End, Graph, Item, Node, NodeData, Region, RegionData,
};

/// The largest trip count of a loop whose terms are tested to be squares, one by one.
const MAX_TESTED_ITERATIONS: u64 = 1 << 16;

/// Loops over data, to be inserted before the loop `outer`.
pub(super) struct Hoist {
    outer: Region,
    /// The largest number of runs of the closed loop for one run of `outer`.
    runs: u64,
    /// The number of data.
    count: u64,
    moments: MomentMethod,
}

/// The method by which moments are computed in a call.
enum MomentMethod {
    /// In working precision around zero.
    WorkingPrecision,
    /// In working precision around an expansion point of this variable, which is computed from the
    /// update around zero.
    Expanded(usize, Update),
    /// In double-double around zero, by this routine, whose first inputs are these data.
    DoubleDouble(Routine, Vec<Datum>),
}

/// The closed form of `value`, the next value of an entry φ, with moments computed before the
/// outermost loop around for which that is possible.
pub(super) fn hoisted_form(
    context: LoopContext<'_>,
    body: &Body,
    value: Node,
    count: u64,
    limits: &CloseLimits,
) -> Result<ClosedForm, SumReason> {
    let LoopContext { graph, nest, region, .. } = context;
    let around = core::iter::successors(nest.loop_around(region), |&of| nest.loop_around(of));
    let mut around: Vec<Region> = around.collect();
    let mut last = SumReason::DataOfCall;
    while let Some(&outer) = around.last() {
        let bound = |of: &Region| graph.regions[*of].cycle.as_ref().map_or(1, |of| of.bound);
        let runs = around.iter().map(|of| u64::from(bound(of))).fold(1, u64::saturating_mul);
        let context = LoopContext { outer: Some(outer), ..context };
        match hoisted_before(context, body, value, (count, runs), limits) {
            Ok(found) => return Ok(found),
            Err(reason) => last = reason,
        }
        around.pop();
    }
    Err(last)
}

/// The closed form with moments computed before the loop `context.outer`.
fn hoisted_before(
    context: LoopContext<'_>,
    body: &Body,
    value: Node,
    (count, runs): (u64, u64),
    limits: &CloseLimits,
) -> Result<ClosedForm, SumReason> {
    let LoopContext { graph, nest, region, .. } = context;
    let outer = context.outer.ok_or(SumReason::DataOfCall)?;
    let entry = body.nexts.iter().position(|&next| next == value).ok_or(SumReason::Exit)?;
    let first = graph.entries(region)[entry].first;
    let needed = needed(graph, nest, region, &body.nexts, &[value]);
    let extract = |is_shifted: &[bool]| {
        extract_update(context, body, &needed, (value, entry), is_shifted, limits)
    };
    let ExtractedUpdate { update: plain, variables, ratio } = extract(&[])?;
    if ratio != Monomial::ONE || plain.factor.is_some() || !plain.data.has_live_ins() {
        return Err(SumReason::DataOfCall);
    }
    let factors = factors(&plain.terms, &variables);
    let monomials = divide_out(&factors, &plain.terms);
    let is_used = |number: &usize| monomials.iter().any(|of| of.exponents[*number] > 0);
    let used: Vec<usize> = (0..variables.len()).filter(is_used).collect();
    if plain.terms.len() > limits.monomials {
        return Err(SumReason::Monomials(limits.monomials));
    }
    let mut is_shifted = shifted_variables(&monomials, variables.len());
    // A common factor is not expanded: its shifted powers would not have it as a factor.
    factors.iter().for_each(|&(number, _)| is_shifted[number] = false);
    let is_well_conditioned = |variable: usize| {
        variables[variable].transform == Transform::Identity
            && has_one_sign(&plain, &monomials, variable, count)
    };
    let has_no_exponential = variables
        .iter()
        .all(|variable| matches!(variable.transform, Transform::Identity | Transform::Reciprocal));
    let placeholder = Coefficient::Node(first);
    let (mut expansion_point, mut coefficient) = (Vec::new(), placeholder);
    let (update, moments) = match used[..] {
        _ if has_no_exponential && monomials.len() < 2 => (plain, MomentMethod::WorkingPrecision),
        [variable]
            if has_no_exponential && is_shifted[variable] && is_well_conditioned(variable) =>
        {
            let zero = Coefficient::Number(Bounded::ZERO);
            let at = |number| if number == variable { placeholder } else { zero };
            expansion_point = (0..variables.len()).map(at).collect();
            (extract(&is_shifted)?.update, MomentMethod::Expanded(variable, plain))
        }
        _ => {
            let (routine, data) = accumulation(&plain)?;
            coefficient = Coefficient::DoubleDouble([first; 3]);
            (plain, MomentMethod::DoubleDouble(routine, data))
        }
    };
    let is_accurate = !matches!(moments, MomentMethod::DoubleDouble(..));
    let number = graph.constant(first);
    let sum = Sum {
        monomials: divide_out(&factors, &update.terms),
        // Placeholders until `Hoist::insert`.
        moments: vec![coefficient; update.terms.len()],
        expansion_point,
        variables,
        factors,
        start_number: number.unwrap_or(0.0),
        start_is_moment: false,
        start_node: Some(first).filter(|_| number.is_none()),
        factor: Bounded::ONE,
    };
    let description = description::sum(graph, &sum, &[], count);
    // In real arithmetic any expansion point gives the same sum; validation uses 0.3.
    let expansion_point = sum
        .expansion_point
        .iter()
        .map(|of| if matches!(of, Coefficient::Node(_)) { 0.3 } else { 0.0 });
    let (expansion_point, expression) = (expansion_point.collect(), Expression::Sum(sum));
    let hoist = Some(Hoist { outer, runs, count, moments });
    Ok(ClosedForm {
        entry,
        rule: Rule::C7,
        description,
        expression,
        is_accurate,
        hoist,
        update,
        expansion_point,
    })
}

/// The routine that adds the terms of an iteration to the moments, and the data that are its first
/// inputs; the moments are the others.
fn accumulation(update: &Update) -> Result<(Routine, Vec<Datum>), SumReason> {
    let steps = update.data.steps();
    let arithmetic = |datum: Datum| match &steps[datum] {
        Step::Apply(op, args) if OPERATIONS.contains(op) || *op == Op::MulAdd => {
            Some((*op, &args[..op.arity()]))
        }
        _ => None,
    };
    let mut is_needed = vec![false; steps.len()];
    update.terms.iter().for_each(|&(_, datum)| is_needed[datum] = true);
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
    for (_, datum) in &update.terms {
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

/// True if all terms are lines in `variable` with leading coefficients of one sign, or
/// squares of lines with weights of one sign: the sum around its expansion point is then well
/// conditioned.
fn has_one_sign(plain: &Update, monomials: &[Monomial], variable: usize, count: u64) -> bool {
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
        (Some(weight), _) if count <= MAX_TESTED_ITERATIONS => {
            // A zero discriminant, at one sample for each iteration.
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

/// `graph` with samples for the live-ins and inactive inputs of `update`.
pub(super) fn sampled(graph: &Graph, update: &Update) -> Graph {
    let mut sampled = graph.clone();
    for step in update.data.steps() {
        match *step {
            Step::InactiveInput { array, .. } => {
                if let ArrayData::Inputs { count, .. } = graph.arrays[array] {
                    sampled.arrays[array] = ArrayData::Constants(sample(array, count));
                }
            }
            Step::LiveIn(node) => {
                sampled.nodes[node].def = Def::Const(sample_of(node).to_bits());
            }
            _ => {}
        }
    }
    sampled
}

impl Hoist {
    /// The cost for each run of the loop `region`, if it runs half as often as it can.
    pub(super) fn cost(&self, graph: &Graph, region: Region) -> u64 {
        let (passes, routine) = match &self.moments {
            MomentMethod::WorkingPrecision => (1, None),
            MomentMethod::Expanded(..) => (2, None),
            MomentMethod::DoubleDouble(routine, _) => (1, Some(routine)),
        };
        let once = cost::data_passes(graph, region, passes, self.count, routine);
        once.saturating_mul(2) / self.runs.max(1)
    }

    /// Inserts the loops, and replaces the placeholders of `sum` by their results.
    pub(super) fn insert(
        &self,
        new: &mut Editor,
        context: LoopContext<'_>,
        update: &Update,
        sum: &mut Sum,
    ) -> Option<()> {
        let place = context.graph.regions[context.region].place;
        let mut builder = LoopBuilder { new, outer: self.outer, place, count: self.count };
        sum.moments = match &self.moments {
            MomentMethod::WorkingPrecision => {
                builder.sum_terms(update, &[]).into_iter().map(Coefficient::Node).collect()
            }
            MomentMethod::Expanded(variable, plain) => {
                let point = builder.expansion_point(plain, *variable);
                *sum.expansion_point.get_mut(*variable)? = Coefficient::Node(point);
                let mut expansion_point = vec![None; *variable];
                expansion_point.push(Some(point));
                builder
                    .sum_terms(update, &expansion_point)
                    .into_iter()
                    .map(Coefficient::Node)
                    .collect()
            }
            MomentMethod::DoubleDouble(routine, data) => {
                let words = builder.accumulate(update, &Arc::new(routine.clone()), data);
                let words = words.as_chunks().0.iter();
                words.map(|&words| Coefficient::DoubleDouble(words)).collect()
            }
        };
        Some(())
    }
}

/// Inserts loops over data.
struct LoopBuilder<'a> {
    new: &'a mut Editor,
    /// The loop before which they are inserted.
    outer: Region,
    place: Option<crate::ssa::PlaceId>,
    count: u64,
}

impl LoopBuilder<'_> {
    fn apply(&mut self, op: Op, args: &[Node]) -> Node {
        self.new.insert_apply(self.outer, op, args, self.place)
    }

    /// Computes the expansion point: the root of a line, or the least-squares solution of squares;
    /// zero if that is not finite.
    fn expansion_point(&mut self, plain: &Update, variable: usize) -> Node {
        let degree = plain.terms.iter().map(|(of, _)| of.exponents[variable]).max().unwrap_or(0);
        let least = plain.terms.iter().map(|(of, _)| of.exponents[variable]).min().unwrap_or(0);
        let sums = self.sum_terms(plain, &[]);
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

    /// The sums of the terms of `update` around `expansion_point`.
    fn sum_terms(&mut self, update: &Update, expansion_point: &[Option<Node>]) -> Vec<Node> {
        let (terms, place) = (&update.terms, self.place);
        self.build_loop(update, expansion_point, terms.len(), |new, root, values, entries| {
            let add = |(&entry, &(_, datum)): (&Node, &(Monomial, Datum))| {
                new.push_apply(root, Op::Add, &[entry, values[datum]], place)
            };
            entries.iter().zip(terms).map(add).collect()
        })
    }

    /// The words and bounds of the sums of the terms around zero, by `routine`.
    fn accumulate(&mut self, update: &Update, routine: &Arc<Routine>, data: &[Datum]) -> Vec<Node> {
        let place = self.place;
        self.build_loop(update, &[], routine.outputs(), |new, root, values, entries| {
            let args = data.iter().map(|&datum| values[datum]).chain(entries.iter().copied());
            let call = new.push_call(root, Arc::clone(routine), args.collect(), place);
            let results = (0..routine.outputs()).map(|output| routine.value_index(output));
            results.map(|result| new.push_result(root, call, result as u32)).collect()
        })
    }

    /// Inserts a loop over the data with `carried` entry φs that start at zero. `next` computes
    /// their next values from the data of an iteration and the φs. Returns the exit φs.
    fn build_loop(
        &mut self,
        update: &Update,
        expansion_point: &[Option<Node>],
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
        for step in update.data.steps() {
            let element = |new: &mut Graph, array, base: i64, stride: i64| {
                let strides = [(region, stride as i32)].into_iter().collect();
                let access = new.accesses.push(AccessData {
                    array,
                    base: base as u32,
                    strides,
                    changes: Default::default(),
                });
                let node = new.nodes.push(NodeData { def: Def::Element(access), place });
                new.blocks[root].items.push(Item::Node(node));
                node
            };
            values.push(match *step {
                Step::Number(number) => new.push_const(number.to_bits()),
                Step::ExpansionPoint(variable) => {
                    expansion_point.get(variable).copied().flatten().unwrap_or(zero)
                }
                Step::Iteration => number,
                Step::Element { ref table, base, stride } => {
                    let array = new.arrays.push(ArrayData::Constants(table.clone()));
                    element(new, array, base, stride)
                }
                Step::InactiveInput { array, base, stride, .. } => {
                    element(new, array, base, stride)
                }
                Step::LiveIn(node) => node,
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
        new.insert(self.outer, Item::Region(region));
        phis
    }
}
