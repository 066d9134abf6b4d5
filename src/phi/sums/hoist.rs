//! Sums over data that are known only in a call: computed once, before the
//! loops that use them.
//!
//! There are two loops over the data. The first finds the pivot by least squares:
//! for terms a·w + b it is -Σab/Σa², and then the magnitudes of the form are at
//! most √2 times √(n·Σg²) for any data and any w; for squared terms it is the
//! vertex of the sum, and then nothing in it cancels. The second loop adds up the
//! coefficients around the pivot.

use super::chain::Chain;
use super::terms::{Step, Terms, Variables, terms};
use crate::op::Op;
use crate::phi::draft::{Body, Draft};
use crate::phi::notation::Brief;
use crate::ssa::{Def, Node, Region};

/// How often the loop must be run in those around it, for its data to be summed
/// up before them.
const RUNS: u64 = 8;

/// Replaces a sum by one over data that is computed before the loops around, and
/// returns its form, or why there is none.
pub(super) fn hoist(draft: &mut Draft, region: Region, chain: &Chain) -> Result<String, String> {
    let mut around = Vec::new();
    let mut next = draft.loop_around(region);
    while let Some(outer) = next {
        around.push(outer);
        next = draft.loop_around(outer);
    }
    let mut why =
        "no loop around it runs it so often that sums over its data before that would pay"
            .to_owned();
    while let Some(outer) = around.pop() {
        let inner = around.iter().chain([&outer]);
        let bound = |&region: &Region| draft.graph.regions[region].cycle.as_ref().map(|c| c.bound);
        let runs = inner.filter_map(bound).map(u64::from).fold(1, u64::saturating_mul);
        if runs < RUNS {
            continue;
        }
        match terms(draft, region, &chain.added, Variables::Inside(outer)).and_then(fitting) {
            Ok((terms, kind)) => return Ok(emit(draft, region, outer, chain, &terms, kind)),
            Err(this) => why = this,
        }
    }
    Err(why)
}

/// What is added in each iteration.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// a·w + b
    Line,
    /// (a·w + b)²
    Square,
}

/// Terms for which there is a form that is good for all data.
fn fitting(terms: Terms) -> Result<(Terms, Kind), String> {
    let is_known = terms.steps.iter().any(|step| matches!(step, Step::Known(_) | Step::Read(_)));
    if !is_known || terms.variables.len() != 1 {
        return Err("its data are not known before it, or it has several variables".to_owned());
    }
    // Iterations of loops around would be those of others.
    if terms.loops.len() > 1 {
        return Err("its data change with a loop around".to_owned());
    }
    let is_power = |step: &Step| match *step {
        Step::Apply(Op::Powi, [a, b, _]) if terms.degrees[a] > 0 => {
            !matches!(terms.steps[b], Step::Number(exponent) if exponent == 2.0)
        }
        _ => false,
    };
    if terms.steps.iter().any(is_power) {
        return Err("its terms are neither lines nor squares of such".to_owned());
    }
    if terms.degree() == 1 {
        return Ok((terms, Kind::Line));
    }
    let is_square = |&(sign, step): &(f64, usize)| match terms.steps[step] {
        Step::Apply(Op::Mul, [a, b, _]) => sign > 0.0 && a == b && terms.degrees[a] == 1,
        Step::Apply(Op::Powi, [a, b, _]) => {
            let squares = matches!(terms.steps[b], Step::Number(exponent) if exponent == 2.0);
            sign > 0.0 && squares && terms.degrees[a] == 1
        }
        _ => false,
    };
    if terms.added.iter().all(is_square) {
        return Ok((terms, Kind::Square));
    }
    Err("its terms are neither lines nor squares of such".to_owned())
}

/// Inserts the loops over the data before `outer`, and the form before `region`.
fn emit(
    draft: &mut Draft,
    region: Region,
    outer: Region,
    chain: &Chain,
    terms: &Terms,
    kind: Kind,
) -> String {
    let (zero, count) = (draft.constant(0.0), chain.count);
    let body = draft.begin_loop(outer, count, &[zero, zero]);
    let raw = Writer { draft, body: &body, region, terms, pivot: None }.total();
    let (above, below) = match kind {
        Kind::Line => {
            (product(draft, &body, raw[1], raw[0]), product(draft, &body, raw[1], raw[1]))
        }
        Kind::Square => {
            let two = draft.constant(2.0);
            (raw[1], product(draft, &body, Some(two), raw[2]))
        }
    };
    let nexts = [above, below].into_iter().zip(body.entries.clone()).map(|(x, entry)| match x {
        Some(x) => draft.step(&body, apply(Op::Add, &[entry, x])),
        None => entry,
    });
    let nexts: Vec<Node> = nexts.collect();
    let sums = draft.end_loop(&body, &nexts);
    let quotient = draft.apply(outer, Op::Div, &[sums[0], sums[1]]);
    let best = draft.apply(outer, Op::Neg, &[quotient]);
    // Where the variable has no effect any pivot is good. One that is not finite
    // makes the result so, and the call is not served by it.
    let is_flat = draft.apply(outer, Op::Eq, &[sums[1], zero]);
    let pivot = draft.apply(outer, Op::Select, &[is_flat, zero, best]);

    let size = terms.degree() as usize + 1;
    let body = draft.begin_loop(outer, count, &vec![zero; size]);
    let shifted = Writer { draft, body: &body, region, terms, pivot: Some(pivot) }.total();
    let entries = body.entries.clone();
    let nexts = entries.into_iter().enumerate().map(|(degree, entry)| {
        let coefficient = shifted.get(degree).copied().flatten();
        coefficient.map_or(entry, |x| draft.step(&body, apply(Op::Add, &[entry, x])))
    });
    let nexts: Vec<Node> = nexts.collect();
    let sums = draft.end_loop(&body, &nexts);

    let variable = terms.variables[0];
    let difference = draft.apply(region, Op::Sub, &[variable, pivot]);
    let mut form = sums[size - 1];
    for &sum in sums[..size - 1].iter().rev() {
        form = draft.apply(region, Op::Mul, &[form, difference]);
        form = draft.apply(region, Op::Add, &[form, sum]);
    }
    if draft.graph.constant(chain.first) != Some(0.0) {
        form = draft.apply(region, Op::Add, &[chain.first, form]);
    }
    draft.forget_use(chain.first);
    chain.phis.iter().for_each(|&phi| draft.replace(phi, form));
    let form = match kind {
        Kind::Line => "S1·(u − u₀) + S0",
        Kind::Square => "S2·(u − u₀)^2 + S1·(u − u₀) + S0",
    };
    let u = Brief::new(&draft.graph).node(variable);
    format!(
        "Σ_{{i<{count}}} g(i) = {form}, where g(i) is what is added, u = {u}, and u₀ and the \
         sums over the data are computed before the loops around"
    )
}

fn apply(op: Op, args: &[Node]) -> Def {
    Def::Apply(op, core::array::from_fn(|i| args.get(i).copied().unwrap_or(args[0])))
}

/// A coefficient in the body of a loop; none is zero.
type Coefficient = Option<Node>;

fn product(draft: &mut Draft, body: &Body, a: Coefficient, b: Coefficient) -> Coefficient {
    match (a, b) {
        (Some(a), Some(b)) if draft.graph.constant(a) == Some(1.0) => Some(b),
        (Some(a), Some(b)) if draft.graph.constant(b) == Some(1.0) => Some(a),
        (Some(a), Some(b)) => Some(draft.step(body, apply(Op::Mul, &[a, b]))),
        _ => None,
    }
}

/// Writes the coefficients of terms into the body of a loop over the data.
struct Writer<'a> {
    draft: &'a mut Draft,
    body: &'a Body,
    /// The loop that the terms are of.
    region: Region,
    terms: &'a Terms,
    /// What is subtracted from the variable.
    pivot: Option<Node>,
}

impl Writer<'_> {
    /// The coefficients of what an iteration adds.
    fn total(&mut self) -> Vec<Coefficient> {
        let mut results: Vec<Vec<Coefficient>> = Vec::new();
        for step in &self.terms.steps {
            let result = match step {
                Step::Number(number) => vec![Some(self.draft.constant(*number))],
                Step::Iteration(_) => vec![Some(self.body.number)],
                Step::Known(node) => vec![Some(*node)],
                Step::Read(data) => {
                    let mut data = data.clone();
                    for (region, _) in &mut data.strides {
                        if *region == self.region {
                            *region = self.body.region;
                        }
                    }
                    let access = self.draft.graph.accesses.push(data);
                    vec![Some(self.draft.step(self.body, Def::Element(access)))]
                }
                Step::Element { numbers, base, strides } => {
                    let stride: i64 = strides.iter().map(|&(_, stride)| stride).sum();
                    vec![Some(self.draft.number_in(self.body, numbers, *base, stride))]
                }
                Step::Variable(_) => vec![self.pivot, Some(self.draft.constant(1.0))],
                Step::Apply(op, args) => {
                    let empty = Vec::new();
                    let args = args.map(|arg| results.get(arg).unwrap_or(&empty).as_slice());
                    self.apply(*op, args)
                }
            };
            results.push(result);
        }
        let mut total = vec![None; self.terms.degree() as usize + 1];
        for &(sign, step) in &self.terms.added {
            let op = if sign < 0.0 { Op::Sub } else { Op::Add };
            total = self.combine(op, &total, &results[step]);
        }
        total
    }

    fn combine(&mut self, op: Op, a: &[Coefficient], b: &[Coefficient]) -> Vec<Coefficient> {
        let at = |x: &[Coefficient], i: usize| x.get(i).copied().flatten();
        let size = a.len().max(b.len());
        (0..size)
            .map(|i| match (at(a, i), at(b, i)) {
                (Some(a), Some(b)) => Some(self.draft.step(self.body, apply(op, &[a, b]))),
                (None, Some(b)) if op == Op::Sub => {
                    Some(self.draft.step(self.body, apply(Op::Neg, &[b])))
                }
                (a, b) => a.or(b),
            })
            .collect()
    }

    fn multiply(&mut self, a: &[Coefficient], b: &[Coefficient]) -> Vec<Coefficient> {
        let mut all = vec![None; a.len() + b.len() - 1];
        for (i, &x) in a.iter().enumerate() {
            for (j, &y) in b.iter().enumerate() {
                let part = product(self.draft, self.body, x, y);
                all[i + j] = self.combine(Op::Add, &[all[i + j]], &[part])[0];
            }
        }
        all
    }

    fn apply(&mut self, op: Op, args: [&[Coefficient]; 3]) -> Vec<Coefficient> {
        let [a, b, c] = args;
        let arity = op.arity();
        match op {
            Op::Add | Op::Sub => self.combine(op, a, b),
            Op::Neg => self.combine(Op::Sub, &[], a),
            Op::Mul => self.multiply(a, b),
            Op::MulAdd => {
                let product = self.multiply(a, b);
                self.combine(Op::Add, &product, c)
            }
            // Other exponents do not come here.
            Op::Powi if a.len() > 1 => self.multiply(a, a),
            _ => {
                let zero = self.draft.constant(0.0);
                let size = args[..arity].iter().map(|arg| arg.len()).max().unwrap_or(1);
                let part = |i: usize| {
                    let at = |arg: &[Coefficient], i: usize| arg.get(i).copied().flatten();
                    // A condition, or divisor, is the same for each coefficient.
                    let index = |number: usize| match op {
                        Op::Select if number == 0 => 0,
                        Op::Div if number == 1 => 0,
                        _ => i,
                    };
                    let nodes = (0..arity).map(|n| at(args[n], index(n)).unwrap_or(zero));
                    nodes.collect::<Vec<Node>>()
                };
                let parts: Vec<Vec<Node>> = (0..size).map(part).collect();
                parts
                    .into_iter()
                    .map(|args| Some(self.draft.step(self.body, apply(op, &args))))
                    .collect()
            }
        }
    }
}
