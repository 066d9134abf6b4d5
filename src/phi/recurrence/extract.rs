//! Extraction: one walk through a loop body finds each value as an affine form of the state, with
//! coefficients that a straight-line program computes from the live-ins.
//!
//! An inner loop is extracted by the same walk and becomes a power in the coefficient program. The
//! states of the outer loop that it reads are states of the inner system that do not change.

use hashbrown::{HashMap, HashSet};

use super::coefficients::Coefficients;
use super::form::{Form, MAX_DEGREE, Variable};
use super::is_inside;
use super::system::{Next, System, close};
use crate::loops::trip_count;
use crate::numeric::{AffineMap, OPERATIONS, Power};
use crate::op::Op;
use crate::phi::reason::RecurrenceReason;
use crate::ssa::{Access, ArrayData, Block, Def, End, Graph, Item, Nest, Node, Passed, Region};

/// A walk through a loop nest.
pub(super) struct Extraction<'a> {
    graph: &'a Graph,
    nest: &'a Nest,
    pub(super) coefficients: Coefficients,
    /// The extracted loops from the outermost to the current one.
    scopes: Vec<Scope>,
    /// The number of steps before the loops that the coefficient program recomputes.
    recomputed: usize,
}

/// The largest number of recomputed steps; each takes time in each call.
const MAX_RECOMPUTED_STEPS: usize = 12;

/// A loop that is being extracted.
struct Scope {
    region: Region,
    trips: u64,
    /// The forms of its entry φs and of the steps so far.
    forms: HashMap<Node, Form>,
    /// The variables of the loop around that are states here, numbered after the entry φs.
    outer: Vec<Variable>,
}

/// The body of a loop on the path that continues it.
pub(in crate::phi) struct Body {
    pub(in crate::phi) items: Vec<Item>,
    /// The condition to continue.
    pub(in crate::phi) again: Node,
    /// The next value of each entry φ.
    pub(in crate::phi) nexts: Vec<Node>,
    /// The operand of each exit φ.
    pub(in crate::phi) values: Vec<Node>,
}

/// The body of the loop `region`, if that is one block of steps and inner loops.
pub(in crate::phi) fn body(graph: &Graph, region: Region) -> Result<Body, RecurrenceReason> {
    let root = graph.regions[region].root;
    let is_straight = |item: &Item| match *item {
        Item::Node(_) => true,
        Item::Region(inner) => graph.regions[inner].cycle.is_some(),
        Item::Guard { .. } | Item::Fill(_) | Item::Accumulate(..) | Item::Store(..) => false,
    };
    match graph.blocks[root].items.iter().all(is_straight) {
        true => body_to(graph, region, &[root]),
        false => Err(RecurrenceReason::Branches),
    }
}

/// The body of the loop `region` on the path through `blocks`, from its root to a leaf.
pub(super) fn body_to(
    graph: &Graph,
    region: Region,
    blocks: &[Block],
) -> Result<Body, RecurrenceReason> {
    let passed = blocks.last().and_then(|&leaf| graph.passed(region, leaf));
    let Some(Passed { again: Some(again), nexts, values }) = passed else {
        return Err(RecurrenceReason::Branches);
    };
    let items = blocks.iter().flat_map(|&block| &graph.blocks[block].items).copied().collect();
    Ok(Body { items, again, nexts: nexts.to_vec(), values: values.to_vec() })
}

impl<'a> Extraction<'a> {
    pub(super) fn new(graph: &'a Graph, nest: &'a Nest) -> Extraction<'a> {
        Extraction {
            graph,
            nest,
            coefficients: Coefficients::default(),
            scopes: Vec::new(),
            recomputed: 0,
        }
    }

    /// The system of `region` that computes `wanted`, nodes visible at the end of its body.
    pub(super) fn system(
        &mut self,
        region: Region,
        body: &Body,
        trips: u64,
        wanted: &[Node],
    ) -> Result<System, RecurrenceReason> {
        // Each entry φ is a state; the walk computes the form of each needed step.
        let entries = self.graph.entries(region);
        let needed = needed(self.graph, self.nest, region, &body.nexts, wanted);
        let (forms, outer) = (HashMap::new(), Vec::new());
        self.scopes.push(Scope { region, trips, forms, outer });
        for (entry, state) in entries.iter().zip(0..) {
            let form = Form::variable(Variable::state(state), &mut self.coefficients)?;
            self.define(entry.phi, form);
        }
        for &item in &body.items {
            match item {
                Item::Node(node) if needed.contains(&node) => {
                    let form = self.step(node)?;
                    self.define(node, form);
                }
                Item::Region(inner) => {
                    let phis = &self.graph.regions[inner].phis;
                    if phis.iter().any(|phi| needed.contains(phi)) {
                        self.inner(inner)?;
                    }
                }
                _ => {}
            }
        }
        // The next values of the needed states and the outputs close to a system.
        let is_needed = |entry: &usize| needed.contains(&entries[*entry].phi);
        let mut nexts: Vec<Option<Next>> = Vec::new();
        for entry in 0..entries.len() {
            nexts.push(match is_needed(&entry) {
                true => Some(Next::Form(self.form(body.nexts[entry])?)),
                false => None,
            });
        }
        let outputs: Vec<(Option<u32>, Form)> = wanted
            .iter()
            .map(|&value| {
                let state = (0..entries.len())
                    .find(|entry| body.nexts[*entry] == value && is_needed(entry));
                Ok((state.map(|state| state as u32), self.form(value)?))
            })
            .collect::<Result<_, RecurrenceReason>>()?;
        let Some(scope) = self.scopes.pop() else { return Err(RecurrenceReason::TooManySteps) };
        nexts.extend(scope.outer.iter().map(|_| Some(Next::Unchanged)));
        let mut system = close(&mut self.coefficients, nexts, outputs)?;
        system.outer = scope.outer;
        Ok(system)
    }

    fn define(&mut self, node: Node, form: Form) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.forms.insert(node, form);
        }
    }

    /// The affine form of `node` in the current loop.
    pub(super) fn form(&mut self, node: Node) -> Result<Form, RecurrenceReason> {
        self.form_in(self.scopes.len(), node)
    }

    /// The affine form of `node` in the loop at `depth`, which counts from 1.
    fn form_in(&mut self, depth: usize, node: Node) -> Result<Form, RecurrenceReason> {
        let Some(scope) = depth.checked_sub(1).and_then(|index| self.scopes.get(index)) else {
            return self.invariant(node);
        };
        if let Some(form) = scope.forms.get(&node) {
            return Ok(form.clone());
        }
        match self.graph.nodes[node].def {
            Def::Const(_) | Def::Input(_) => return self.invariant(node),
            Def::Iteration(region) if region == scope.region => {
                let number = Variable { state: None, degree: 1 };
                return Form::variable(number, &mut self.coefficients);
            }
            _ => {}
        }
        let outer = self.form_in(depth - 1, node)?;
        self.translated(depth, &outer)
    }

    /// Translates a form of the loop around to one of the loop at `depth`, where the outer
    /// variables are states that do not change.
    fn translated(&mut self, depth: usize, outer: &Form) -> Result<Form, RecurrenceReason> {
        let mut form = Form::default();
        for &(variable, slot) in outer.terms() {
            let variable = match variable {
                Variable::ONE => variable,
                other => {
                    let Some(scope) = self.scopes.get_mut(depth - 1) else {
                        return Err(RecurrenceReason::TooManySteps);
                    };
                    let known = scope.outer.iter().position(|&outer| outer == other);
                    let index = known.unwrap_or_else(|| {
                        scope.outer.push(other);
                        scope.outer.len() - 1
                    });
                    let entries = self.graph.entries(scope.region).len();
                    Variable::state((entries + index) as u32)
                }
            };
            form.add_term(variable, slot, &mut self.coefficients)?;
        }
        Ok(form)
    }

    /// The form of a node that is invariant in all extracted loops. The coefficient program
    /// recomputes expressions such as 1 + r and exp(-r) in double-double, so that powers do not
    /// amplify their rounding errors. The rounding errors of other functions enter the error bound.
    fn invariant(&mut self, node: Node) -> Result<Form, RecurrenceReason> {
        if let Some(slot) = self.coefficients.known(node) {
            return Ok(Form::invariant(slot));
        }
        match (self.graph.constant(node), self.graph.nodes[node].def) {
            (Some(0.0), _) => return Ok(Form::default()),
            (Some(number), _) if number.is_finite() => {
                return Ok(Form::invariant(self.coefficients.constant(number)?));
            }
            (_, Def::Apply(op, args))
                if is_coefficient_operation(op) && self.recomputed < MAX_RECOMPUTED_STEPS =>
            {
                self.recomputed += 1;
                let [a, b] = [args[0], args[1]].map(|arg| self.invariant(arg));
                let (a, b, coefficients) = (a?, b?, &mut self.coefficients);
                let form = match (op, b.as_invariant()) {
                    (Op::Exp | Op::Sqrt, Some(slot)) => {
                        Ok(Form::invariant(coefficients.apply(op, slot, slot)?))
                    }
                    (Op::Add, _) => a.plus(&b, coefficients),
                    (Op::Sub, _) => a.plus(&negated(&b, coefficients)?, coefficients),
                    (Op::Mul, _) => a.times(&b, coefficients),
                    (Op::Neg, _) => negated(&a, coefficients),
                    (Op::Recip, _) => inverse(&a, coefficients),
                    (_, Some(b)) => a.map(|slot| coefficients.div(slot, b).map(Some)),
                    (_, None) => Err(RecurrenceReason::Quotient),
                }?;
                if let Some(slot) = form.as_invariant() {
                    coefficients.define(node, slot);
                }
                return Ok(form);
            }
            _ => {}
        }
        let is_rounded = matches!(self.graph.nodes[node].def, Def::Apply(op, _) if rounds(op));
        Ok(Form::invariant(self.coefficients.live_in(node, is_rounded)?))
    }

    fn step(&mut self, node: Node) -> Result<Form, RecurrenceReason> {
        match self.graph.nodes[node].def {
            Def::Apply(op, args) => self.applied(node, op, &args[..op.arity()]),
            Def::Element(access) => self.element(node, access),
            Def::Call(_) | Def::Result(..) => Err(RecurrenceReason::Call),
            _ => self.form(node),
        }
    }

    fn applied(&mut self, node: Node, op: Op, args: &[Node]) -> Result<Form, RecurrenceReason> {
        let forms = args.iter().map(|&arg| self.form(arg)).collect::<Result<Vec<_>, _>>()?;
        let coefficients = &mut self.coefficients;
        match (op, &forms[..]) {
            (Op::Add, [a, b]) => a.plus(b, coefficients),
            (Op::Sub, [a, b]) => a.plus(&negated(b, coefficients)?, coefficients),
            (Op::Neg, [a]) => negated(a, coefficients),
            (Op::Mul, [a, b]) => a.times(b, coefficients),
            (Op::MulAdd, [a, b, c]) => a.times(b, coefficients)?.plus(c, coefficients),
            (Op::Div, [a, b]) => match b.as_invariant() {
                Some(divisor) => a.map(|slot| coefficients.div(slot, divisor).map(Some)),
                None => Err(RecurrenceReason::Quotient),
            },
            (Op::Recip, [a]) => inverse(a, coefficients),
            (Op::Powi, [a, _]) if !is_invariant(a) => {
                match self.graph.constant(args[1]).filter(|&power| power.abs() <= 4.0) {
                    Some(power) if power >= 1.0 => {
                        (1..power as u8).try_fold(a.clone(), |all, _| all.times(a, coefficients))
                    }
                    _ => Err(RecurrenceReason::NotAffine(op)),
                }
            }
            // Any other function of invariants is computed before the loop, as a live-in.
            _ if forms.iter().all(is_invariant) && self.is_movable(node) => self.invariant(node),
            _ => Err(RecurrenceReason::NotAffine(op)),
        }
    }

    /// True if `node`, a step of the current loop, can be computed before all extracted loops.
    fn is_movable(&self, node: Node) -> bool {
        movable_steps(self.graph, self.nest, node, |region| {
            self.scopes.iter().any(|scope| scope.region == region)
        })
        .is_some()
    }

    /// The form of an array element: an invariant if no extracted loop moves the access, otherwise
    /// a polynomial of the iteration number if the constants are one.
    fn element(&mut self, node: Node, access: Access) -> Result<Form, RecurrenceReason> {
        let data = &self.graph.accesses[access];
        let own = |&&(region, stride): &&(Region, i32)| {
            stride != 0 && self.scopes.iter().any(|scope| scope.region == region)
        };
        if data.changes.iter().any(|change| own(&change)) {
            return Err(RecurrenceReason::ChangingCoefficient);
        }
        let mut strides = data.strides.iter().filter(own);
        let Some(&(region, stride)) = strides.next() else {
            return match self.is_movable(node) {
                true => self.invariant(node),
                false => Err(RecurrenceReason::ChangingCoefficient),
            };
        };
        let (Some(scope), None) = (self.scopes.last(), strides.next()) else {
            return Err(RecurrenceReason::ChangingCoefficient);
        };
        let ArrayData::Constants(numbers) = &self.graph.arrays[data.array] else {
            return Err(RecurrenceReason::ChangingCoefficient);
        };
        if scope.region != region || data.strides.len() != 1 {
            return Err(RecurrenceReason::ChangingCoefficient);
        }
        let at = |i: u64| {
            let index = i64::from(data.base) + i64::from(stride) * i as i64;
            usize::try_from(index).ok().and_then(|index| numbers.get(index)).copied()
        };
        let values: Option<Vec<f64>> =
            (0..scope.trips).map(|i| at(i).map(f64::from_bits)).collect();
        let parts = values
            .and_then(|values| finite_differences(&values))
            .ok_or(RecurrenceReason::ChangingCoefficient)?;
        let mut form = Form::default();
        for (part, degree) in parts.into_iter().zip(0..) {
            let slot = self.coefficients.constant(part)?;
            form.add_term(Variable { state: None, degree }, slot, &mut self.coefficients)?;
        }
        Ok(form)
    }

    /// Extracts `inner`, a loop in the current one: a power in the coefficient program. Defines the
    /// forms of its φs, A^m p + Σ A^k b for the start p.
    fn inner(&mut self, inner: Region) -> Result<(), RecurrenceReason> {
        let graph = self.graph;
        let body = body(graph, inner)?;
        let trips = trip_count(graph, inner, body.again).ok_or(RecurrenceReason::TripCount)?;
        let system = self.system(inner, &body, trips, &body.values)?;
        let map = AffineMap::new(system.matrix, system.offset)
            .map_err(|_| RecurrenceReason::TooManyStates)?;
        let states = system.variables.len();
        let results = self.coefficients.power(Power { map, trips })?;
        let entries = graph.entries(inner);
        let mut starts = Vec::new();
        for variable in &system.variables {
            starts.push(match variable.state {
                // C(0, k) is zero.
                _ if variable.degree > 0 => Form::default(),
                Some(state) if (state as usize) < entries.len() => {
                    self.form(entries[state as usize].first)?
                }
                Some(state) => match system.outer.get(state as usize - entries.len()) {
                    Some(&outer) => Form::variable(outer, &mut self.coefficients)?,
                    None => Form::default(),
                },
                None => Form::default(),
            });
        }
        for (&phi, &row) in graph.regions[inner].phis.iter().zip(&system.outputs) {
            let mut form = Form::invariant(results[states * states + row]);
            for (column, start) in starts.iter().enumerate() {
                let entry = results[row * states + column];
                let part = start.map(|slot| self.coefficients.mul(entry, slot))?;
                form = form.plus(&part, &mut self.coefficients)?;
            }
            self.define(phi, form);
        }
        Ok(())
    }
}

/// True if coefficient programs compute `op`.
fn is_coefficient_operation(op: Op) -> bool {
    OPERATIONS.contains(&op) || op == Op::Recip
}

/// True if results of `op` are rounded.
fn rounds(op: Op) -> bool {
    !(op.is_comparison() || matches!(op, Op::Neg | Op::Abs | Op::Min | Op::Max | Op::Select))
}

fn inverse(form: &Form, coefficients: &mut Coefficients) -> Result<Form, RecurrenceReason> {
    let divisor = form.as_invariant().ok_or(RecurrenceReason::Quotient)?;
    let one = coefficients.constant(1.0)?;
    Ok(Form::invariant(coefficients.div(one, divisor)?))
}

fn negated(form: &Form, coefficients: &mut Coefficients) -> Result<Form, RecurrenceReason> {
    form.map(|slot| coefficients.neg(slot).map(Some))
}

/// True if the form is the same in all iterations.
fn is_invariant(form: &Form) -> bool {
    form.terms().is_empty() || form.as_invariant().is_some()
}

/// The steps inside the loops `is_inside` that compute `node` from nodes visible before these
/// loops, in order. `None` if one of them cannot move there.
pub(in crate::phi) fn movable_steps(
    graph: &Graph,
    nest: &Nest,
    node: Node,
    is_inside: impl Fn(Region) -> bool,
) -> Option<Vec<Node>> {
    /// The largest number of steps that move for one value.
    const MAX_MOVED_STEPS: usize = 64;
    let stands_inside = |node: Node| {
        core::iter::successors(nest.node_loop(node), |&r| nest.loop_around(r)).any(&is_inside)
    };
    let is_step = |node: Node| match graph.nodes[node].def {
        _ if !stands_inside(node) => Some(false),
        Def::Apply(..) => Some(true),
        Def::Element(access) => {
            let data = &graph.accesses[access];
            let is_live_in = matches!(
                graph.arrays[data.array],
                ArrayData::Constants(_) | ArrayData::Inputs { .. }
            );
            let is_invariant = !data.loops().any(&is_inside);
            (is_live_in && is_invariant).then_some(true)
        }
        _ => None,
    };
    steps_to(graph, &[node], MAX_MOVED_STEPS, is_step)
}

/// The steps that compute `values`, in order: the nodes for which `is_step` is true, reached
/// through such nodes. `None` if there are more than `most`, or if `is_step` is `None` for one.
pub(super) fn steps_to(
    graph: &Graph,
    values: &[Node],
    most: usize,
    is_step: impl Fn(Node) -> Option<bool>,
) -> Option<Vec<Node>> {
    let (mut steps, mut seen) = (Vec::new(), HashSet::new());
    let mut pending: Vec<(Node, bool)> = values.iter().map(|&value| (value, false)).collect();
    while let Some((node, done)) = pending.pop() {
        if done {
            steps.push(node);
        } else if !seen.contains(&node) && is_step(node)? {
            seen.insert(node);
            if seen.len() > most {
                return None;
            }
            pending.push((node, true));
            pending.extend(graph.operands(node).iter().map(|&arg| (arg, false)));
        }
    }
    Some(steps)
}

/// The nodes inside `region` that `wanted` depends on, through any number of iterations.
pub(in crate::phi) fn needed(
    graph: &Graph,
    nest: &Nest,
    region: Region,
    nexts: &[Node],
    wanted: &[Node],
) -> HashSet<Node> {
    let (mut needed, mut pending) = (HashSet::new(), wanted.to_vec());
    while let Some(node) = pending.pop() {
        if !is_inside(nest, node, region) || !needed.insert(node) {
            continue;
        }
        match graph.nodes[node].def {
            Def::Entry(of, number) if of == region => {
                pending.extend(nexts.get(number as usize));
            }
            // An inner loop is extracted as a whole, with all its outputs.
            Def::Phi(inner, _) => {
                let End::Return(passed) = &graph.blocks[graph.regions[inner].root].end else {
                    continue;
                };
                pending.extend(passed);
                pending.extend(graph.entries(inner).iter().map(|entry| entry.first));
            }
            _ => pending.extend(graph.operands(node)),
        }
    }
    needed
}

/// The coefficients of C(i, 0), C(i, 1), …, by finite differences, if `numbers` are exactly a
/// polynomial of their index i. The numbers are multiples of 2⁻¹⁰ below 2⁴⁰, so that their
/// differences are exact.
fn finite_differences(numbers: &[f64]) -> Option<Vec<f64>> {
    const SCALE: f64 = 1024.0;
    const MAX_MAGNITUDE: f64 = (1u64 << 40) as f64;
    let is_exact = |number: f64| (number * SCALE).fract() == 0.0 && number.abs() < MAX_MAGNITUDE;
    if !numbers.iter().all(|&number| is_exact(number)) {
        return None;
    }
    let (mut differences, mut parts) = (numbers.to_vec(), Vec::new());
    while parts.len() <= usize::from(MAX_DEGREE) {
        parts.push(*differences.first()?);
        differences = differences.windows(2).map(|pair| pair[1] - pair[0]).collect();
        if differences.iter().all(|&difference| difference == 0.0) {
            // Any k numbers are a polynomial with k coefficients, so there must be more.
            return (differences.len() > parts.len()).then_some(parts);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exact_polynomials_of_the_iteration_number_are_found() {
        let squares: Vec<f64> = (0..20).map(|i| f64::from(i * i + 3)).collect();
        assert_eq!(finite_differences(&squares), Some(vec![3.0, 1.0, 2.0]));
        let halves: Vec<f64> = (0..20).map(|i| 0.5 * f64::from(i)).collect();
        assert_eq!(finite_differences(&halves), Some(vec![0.0, 0.5]));
        let tenths: Vec<f64> = (0..20).map(|i| 0.1 * f64::from(i)).collect();
        assert_eq!(finite_differences(&tenths), None);
        assert_eq!(finite_differences(&[1.0, 5.0, 2.0]), None);
    }
}
