//! Which data, and which sums over them, a form serves: where products of the data could
//! overflow or underflow, or the form is not finite and something could hide that, the
//! kernel stops.

use hashbrown::HashSet;

use super::chain::Chain;
use super::hoist::Sum;
use super::rows::{Kind, Lines};
use super::steps::{Place, Steps};
use super::terms::{Step, Terms};
use crate::op::Op;
use crate::phi::draft::Draft;
use crate::phi::pair::Pairs;
use crate::ssa::{Def, End, Node, Region};

/// Products of as many data as are multiplied have at most this power of ten, or its inverse.
const MOST: f64 = 200.0;

/// A number between this and its inverse counts for nothing in products.
const MODERATE: f64 = 1e5;

/// Quotients of sums over the data are at most so large.
const LARGEST_QUOTIENT: f64 = 1e100;

/// The sizes that coefficients may have which are not zero.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    low: f64,
    high: f64,
}

impl Sizes {
    /// Those for which the products in the form of `lines` are in range, or why a
    /// constant is not of such a size.
    pub(super) fn of(lines: &Lines) -> Result<Sizes, String> {
        let terms = &lines.terms;
        let weights = weights(terms);
        let added = terms.added.iter().map(|&(_, step)| weights[step]);
        // What makes slopes orthogonal squares them.
        let slopes = lines.steps().map(|step| weights[step].saturating_mul(2));
        let most = added.chain(slopes).max().unwrap_or(0).max(2);
        let high = 10f64.powf(MOST / f64::from(most));
        let sizes = Sizes { low: high.recip(), high };
        let number = |&(step, _): &(usize, bool)| match terms.steps[step] {
            Step::Number(number) => Some(number.abs()),
            _ => None,
        };
        let is_in = |size: f64| size == 0.0 || (sizes.low..=sizes.high).contains(&size);
        match coefficients(terms).iter().filter_map(number).all(is_in) {
            true => Ok(sizes),
            false => Err("products with a constant in it could overflow or underflow".to_owned()),
        }
    }
}

/// How many coefficients are multiplied in each step.
fn weights(terms: &Terms) -> Vec<u32> {
    let mut weights: Vec<u32> = Vec::new();
    for (step, &degree) in terms.steps.iter().zip(&terms.degrees) {
        weights.push(match step {
            Step::Number(x) if (MODERATE.recip()..=MODERATE).contains(&x.abs()) => 0,
            Step::Variable(_) => 0,
            Step::Apply(op, args) if degree > 0 => {
                let [a, b, c] = args.map(|arg| weights.get(arg).copied().unwrap_or(0));
                match op {
                    Op::Mul | Op::Div => a.saturating_add(b),
                    Op::MulAdd => a.saturating_add(b).max(c),
                    Op::Powi => a.saturating_mul(degree / terms.degrees[args[0]].max(1)),
                    Op::Select => b.max(c),
                    Op::Neg => a,
                    _ => a.max(b),
                }
            }
            _ => 1,
        });
    }
    weights
}

/// The steps without variables of which those with variables are made, or that are added,
/// and whether they are divisors.
fn coefficients(terms: &Terms) -> Vec<(usize, bool)> {
    let mut found: Vec<(usize, bool)> =
        terms.added.iter().map(|&(_, step)| (step, false)).collect();
    for (step, &degree) in terms.steps.iter().zip(&terms.degrees) {
        let Step::Apply(op, args) = step else { continue };
        if degree == 0 {
            continue;
        }
        let used = match op {
            Op::Powi => 0..1,
            Op::Select => 1..3,
            _ => 0..op.arity(),
        };
        found.extend(used.map(|number| (args[number], *op == Op::Div && number == 1)));
    }
    found.retain(|&(step, _)| terms.degrees[step] == 0);
    found.sort_unstable();
    found.dedup();
    found
}

impl Sum<'_> {
    /// Goes through the data before the loops around, and stops the graph there if the size
    /// of one of them is out of range.
    pub(super) fn require_sizes(&mut self, sizes: Sizes) {
        let (lines, outer, region) = (self.lines, self.outer, self.region);
        let is_number = |step: usize| matches!(lines.terms.steps[step], Step::Number(_));
        let mut used = coefficients(&lines.terms);
        // A divisor that is zero is out of range, whatever it is.
        used.retain(|&(step, is_divisor)| is_divisor || !is_number(step));
        if used.is_empty() {
            return;
        }
        let (zero, one) = (self.draft.constant(0.0), self.draft.constant(1.0));
        let body = self.draft.begin_loop(outer, self.count(), &[one, zero]);
        let results = lines.known(self.draft, &body, region);
        let mut steps = Steps { draft: self.draft, place: Place::In(&body) };
        let (mut low, mut high) = (body.entries[0], body.entries[1]);
        for (step, is_divisor) in used {
            let Some(x) = results[step] else { continue };
            let size = steps.apply(Op::Abs, &[x]);
            let least = match is_divisor {
                true => size,
                false => {
                    let is_zero = steps.apply(Op::Eq, &[x, zero]);
                    steps.apply(Op::Select, &[is_zero, one, size])
                }
            };
            low = steps.apply(Op::Min, &[low, least]);
            // Of a sum infinity and what is no number stay.
            high = steps.apply(Op::Add, &[high, size]);
        }
        let found = self.draft.end_loop(&body, &[low, high]);
        self.draft.require(outer, Op::Ge, found[0], sizes.low);
        self.draft.require(outer, Op::Le, found[1], sizes.high);
    }

    /// Stops the graph before the loops around if one of these quotients is too large.
    pub(super) fn require_quotients<'n>(&mut self, quotients: impl Iterator<Item = &'n Node>) {
        for &node in quotients {
            if self.draft.graph.constant(node).is_none() {
                self.draft.require_size(self.outer, node, 0.0, LARGEST_QUOTIENT);
            }
        }
    }

    /// Stops the graph before the loop if `form` is not finite, where something that comes
    /// of it may be finite all the same. Else the result is not finite, and the call is not
    /// served. Lines overflow where the sum does, so what comes after the loops around
    /// cannot tell the two apart.
    pub(super) fn require_finite(&mut self, chain: &Chain, form: Node) {
        let within = match self.lines.kind {
            Kind::Line => self.outermost(),
            Kind::Square | Kind::Polynomial => None,
        };
        if hides(self.draft, within, &chain.phis) {
            let size = self.draft.apply(self.region, Op::Abs, &[form]);
            self.draft.require(self.region, Op::Lt, size, f64::INFINITY);
        }
    }

    fn outermost(&self) -> Option<Region> {
        core::iter::successors(Some(self.outer), |&region| self.draft.loop_around(region)).last()
    }
}

/// Whether what is computed of `nodes`, in `within` if that is a region, is more than sums
/// and products: these are not finite if what they are made of is not.
fn hides(draft: &Draft, within: Option<Region>, nodes: &[Node]) -> bool {
    let graph = &draft.graph;
    let mut found: HashSet<Node> = nodes.iter().map(|&node| draft.resolve(node)).collect();
    loop {
        let before = found.len();
        for (node, data) in graph.nodes.iter() {
            if within.is_some_and(|region| !draft.is_inside(node, region)) {
                continue;
            }
            match data.def {
                Def::Apply(op, _) => {
                    let reaches = |number: usize| {
                        draft.args(node).nth(number).is_some_and(|arg| found.contains(&arg))
                    };
                    if !(0..op.arity()).any(reaches) {
                        continue;
                    }
                    let is_sum_or_product =
                        matches!(op, Op::Add | Op::Sub | Op::Mul | Op::Neg | Op::MulAdd);
                    if !is_sum_or_product && (op != Op::Div || reaches(1)) {
                        return true;
                    }
                    found.insert(node);
                }
                Def::Element(access) => {
                    let all = graph.series[graph.accesses[access].series].nodes();
                    if all.into_iter().any(|node| found.contains(&draft.resolve(node))) {
                        found.insert(node);
                    }
                }
                Def::Const(_) | Def::Input(_) | Def::Iteration(_) => {}
                Def::Phi(..) | Def::Entry(..) => {}
            }
        }
        for block in graph.blocks.keys() {
            match (&graph.blocks[block].end, draft.around[block]) {
                (End::Branch { condition, .. }, _) if found.contains(condition) => return true,
                (End::Return(values), Some(region))
                    if values.iter().any(|&value| found.contains(&draft.resolve(value))) =>
                {
                    let entries = graph.entries(region).iter().map(|entry| entry.phi);
                    found.extend(graph.regions[region].phis.iter().copied().chain(entries));
                }
                _ => {}
            }
        }
        for region in graph.regions.keys() {
            for entry in graph.entries(region) {
                if found.contains(&draft.resolve(entry.first)) {
                    found.insert(entry.phi);
                }
            }
        }
        if found.len() == before {
            return false;
        }
    }
}
