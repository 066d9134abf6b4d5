//! Certificates: a graph and what was made of it come to the same.
//!
//! It shares nothing with φ-calculus, and knows graphs and the interpreter alone. What is
//! to be proven is a [`Claim`]: a graph, the one after, and which nodes took the place of
//! others. Whole graphs are compared (`agree`), and each closed form by itself with its
//! loop, which is cut out for that (`disproved`): a whole graph may not reach a loop, or
//! make nothing of what comes out of it.
//!
//! A form of a loop that is gone through a known number of times is one for that number
//! alone. So the loop is cut out by itself, too, and made shorter and longer: the same
//! rules must have right forms for that, or none (`lengths`). A loop that is left by a
//! decision is made to end at each of its ends, sooner or later (`ends`).
//!
//! Values are compared as kernels compute them, and, with twice the digits, together with
//! their derivatives (`numbers`): so what rounding does to a form excuses nothing, and a
//! derivative that is told by tangents must be that of the loop. Derivatives of the loop
//! are found by the rules of differentiation of the primitives, step by step.

mod cut;
mod ends;
mod facts;
mod inputs;
mod lengths;
mod numbers;
#[cfg(test)]
mod tests;
mod tree;
mod twice;
mod whole;

use hashbrown::HashMap;

use crate::ssa::{
    Block, Graph, Node, Region, has_alternatives, in_order, interpret_with, most_steps,
};

use cut::{Cut, Wanted, cut};
use ends::ended;
use facts::Facts;
use inputs::Point;
use lengths::right_at_lengths;
use numbers::{Dual, Float};
pub(crate) use whole::agree;
use whole::{SIZES, agree_where};

/// The numbers of iterations before the last one that loops are made to have, besides
/// their own. A loop has one iteration at least: one of none is not in a graph.
const TRIPS: [u32; 6] = [0, 1, 2, 3, 17, 301];

/// What is interpreted for the certificate of one claim may take so many steps, besides
/// what has to be compared once.
const MOST_STEPS: u64 = 1 << 20;
/// The same for one loop.
const MOST_STEPS_OF_LOOP: u64 = 1 << 15;
/// Of loops of more steps derivatives are compared for fewer iterations only.
const MOST_STEPS_OF_DUALS: u64 = 1 << 17;
/// Loops of more steps are compared for fewer iterations only.
const MOST_STEPS_AT_ONCE: u64 = 1 << 24;

/// How far numbers of twice the precision may be apart, relative to the larger one:
/// constants of forms are rounded.
const PRECISE: f64 = 1e-10;
/// How far floats may be apart.
const TOLERANCE: f64 = 1e-6;
/// How far both may be apart relative to the largest number that was carried on the way:
/// they are what rounding leaves where all cancels.
const ROUNDING: f64 = 1e-12;

/// That a graph comes to the same as another one, in which nodes have taken the place of
/// others. Nodes, blocks, regions and series of the graph before have the same ids in the
/// one after, whose nodes need not be in order.
pub(crate) struct Claim<'a> {
    pub(crate) before: &'a Graph,
    pub(crate) after: &'a Graph,
    /// What has taken the place of a node; that may itself be replaced.
    pub(crate) replaced: &'a HashMap<Node, Node>,
}

impl Claim<'_> {
    /// What stands for `node`.
    fn resolved(&self, mut node: Node) -> Node {
        while let Some(&other) = self.replaced.get(&node) {
            node = other;
        }
        node
    }
}

/// Applies the rules that are to be checked to another graph, as far as they apply.
pub(crate) type Rules<'a> = &'a dyn Fn(&Graph) -> Option<Graph>;

/// What was compared of the outputs of a loop.
#[derive(Clone, Debug, Default)]
struct Seen {
    values: Vec<bool>,
    /// Slopes that were finite without a finite form to compare them with.
    missed: Vec<bool>,
    slopes: Vec<bool>,
}

impl Seen {
    fn of(count: usize) -> Seen {
        Seen { values: vec![false; count], missed: vec![false; count], slopes: vec![false; count] }
    }

    /// Whether each value was compared, and each derivative for which there was an occasion.
    fn is_enough(&self) -> bool {
        let slopes = self.slopes.iter().zip(&self.missed);
        self.values.iter().all(|&seen| seen) && slopes.into_iter().all(|(&seen, &m)| seen || !m)
    }

    /// Whether these are the same, as floats.
    fn floats(&mut self, loops: &[Float], forms: &[Float]) -> bool {
        let pairs = loops.iter().zip(forms).zip(&mut self.values);
        let mut all = true;
        for ((a, b), seen) in pairs {
            *seen |= a.value.is_finite() && b.value.is_finite();
            all &= is_alike(a.value, b.value, TOLERANCE, ROUNDING * a.carried.max(1e-3));
        }
        all
    }

    /// Whether these are the same, with all digits and derivatives.
    fn duals(&mut self, loops: &[Dual], forms: &[Dual]) -> bool {
        let mut all = true;
        for (number, (a, b)) in loops.iter().zip(forms).enumerate() {
            let [carried, carried_slope] = a.carried;
            let far = a.value.minus(b.value).high;
            let are_finite = a.value.high.is_finite() && b.value.high.is_finite();
            self.values[number] |= are_finite;
            let largest = a.value.high.abs().max(b.value.high.abs());
            all &= !are_finite || far.abs() <= PRECISE * largest + ROUNDING * carried + LEAST;
            let far = a.slope.minus(b.slope).high;
            let are_finite = a.slope.high.is_finite() && b.slope.high.is_finite();
            self.slopes[number] |= are_finite;
            self.missed[number] |= a.slope.high.is_finite() && a.value.high.is_finite();
            let largest = a.slope.high.abs().max(b.slope.high.abs());
            all &= !are_finite || far.abs() <= PRECISE * largest + ROUNDING * carried_slope + LEAST;
        }
        all
    }
}

/// What is lost where numbers become too small for twice the precision.
const LEAST: f64 = 1e-250;

/// Whether two numbers are the same but for rounding, which may come to `rounding`.
fn is_alike(a: f64, b: f64, tolerance: f64, rounding: f64) -> bool {
    // A result that is not finite is computed again on the tape.
    !a.is_finite()
        || !b.is_finite()
        || (a - b).abs() <= (tolerance * a.abs().max(b.abs())).max(rounding)
}

/// The loops of a claim that have closed forms which come to something else, or to
/// nothing that is finite anywhere. With `stays` the loops are those of the graph after,
/// from which more may come out. `rules` are those by which the forms were found.
pub(crate) fn disproved(claim: &Claim<'_>, stays: bool, rules: Rules<'_>) -> Vec<Region> {
    let facts = Facts::of(claim);
    let (mut left, chooses) = (MOST_STEPS, has_alternatives(claim.after));
    let mut loops = facts.loops();
    loops.retain(|&region| is_proven(&facts, region, stays, chooses, rules, &mut left).is_none());
    loops
}

/// Compares the forms of `region`; `None` if they are wrong, or cannot be compared.
fn is_proven(
    facts: &Facts<'_>,
    region: Region,
    stays: bool,
    chooses: bool,
    rules: Rules<'_>,
    left: &mut u64,
) -> Option<()> {
    let outputs = facts.outputs(region);
    let mut budget = MOST_STEPS_OF_LOOP.min(*left);
    let whole = budget;
    let at_lengths = right_at_lengths(facts, region, rules, &mut budget)?;
    let mut seen = Seen { values: vec![false; outputs.len()], ..at_lengths.clone() };
    let before = facts.claim.before;
    let bound = before.regions[region].cycle.as_ref().map_or(1, |cycle| cycle.bound);
    let mut gone = 0;
    let mut made: Option<Cut> = None;
    for point in points_of_cuts(before, region, bound) {
        let cut = match made.take().filter(|cut| !cut.turns) {
            Some(cut) => cut,
            None => {
                let around = point.number;
                cut(facts, Wanted { region, outputs, stays, forms: true, around })?
            }
        };
        let steps = most_steps(&cut.graph, |_| 1);
        if steps > MOST_STEPS_AT_ONCE {
            seen.values = at_lengths.values;
            break;
        }
        let costs = if steps > MOST_STEPS_OF_DUALS { steps } else { 2 * steps };
        // The first points may be none where numbers are finite.
        let limit = if seen.is_enough() { budget } else { MOST_STEPS_AT_ONCE - gone };
        if point.number >= needed_points(before, region, chooses) && costs > limit {
            break;
        }
        gone = MOST_STEPS_AT_ONCE.min(gone + costs);
        budget = budget.saturating_sub(costs);
        holds(&cut, &cut.graph, point, steps, &mut seen)?;
        made = Some(cut);
    }
    *left -= whole - budget;
    seen.is_enough().then_some(())
}

/// Compares what `graph`, made of a cut, comes to at `point`; `None` if that is wrong.
fn holds(cut: &Cut, graph: &Graph, point: Point, steps: u64, seen: &mut Seen) -> Option<()> {
    let count = seen.values.len();
    if steps <= MOST_STEPS_OF_DUALS
        && let Ok(values) = interpret_with(graph, &cut.inputs.duals(point))
    {
        let (loops, forms) = values.split_at(count);
        seen.duals(loops, forms).then_some(())?;
    }
    if let Ok(values) = interpret_with(graph, &cut.inputs.floats(point)) {
        let (loops, forms) = values.split_at(count);
        seen.floats(loops, forms).then_some(())?;
    }
    Some(())
}

/// Where `region` of `graph` is compared, if it has so many iterations at most: first where
/// powers neither vanish nor overflow on the way, with sums of as many products as it
/// carries numbers near one, and single products near one; then so near to one and zero
/// that what is left of them is small, for all iterations together.
fn points_of_cuts(graph: &Graph, region: Region, bound: u32) -> impl Iterator<Item = Point> {
    let carried = graph.entries(region).len().max(1) as f64;
    let near = |one: f64| (one, one * 4.0 / f64::from(bound.max(4)));
    let single = (carried > 1.0).then(|| near(1.0));
    let points = [near(1.0 / carried)].into_iter().chain(single);
    let least = 1.0 / 16384.0 / f64::from(bound.max(1));
    // Where that is of products, their factors are larger.
    let small = [(1.0, least), (0.0, least), (0.0, least.sqrt())];
    let points = points.chain(small).chain(SIZES.map(|size| (0.0, size)));
    points.zip(0..).map(|((near, size), number)| Point { number, near, size })
}

/// How many of these points are compared in any case: those near one, and the nearest where
/// the graph `chooses` between forms of one number.
fn needed_points(graph: &Graph, region: Region, chooses: bool) -> u64 {
    let near_one = if graph.entries(region).len() > 1 { 2 } else { 1 };
    near_one + u64::from(chooses)
}

/// Whether closed forms behind the loop `region` come to what it comes to itself, with the
/// loop made to end after some numbers of iterations in each of `ends`, whatever its
/// conditions say: whole graphs, in which it is reached, whatever decides that, and each
/// form by itself. At each end all is finite somewhere, or nothing would have been
/// compared.
pub(crate) fn agree_at_ends(claim: &Claim<'_>, region: Region, ends: &[Block]) -> bool {
    let facts = Facts::of(claim);
    let Some(after) = in_order(claim.after) else { return false };
    let most = claim.before.regions[region].cycle.as_ref().map_or(0, |cycle| cycle.bound - 1);
    let outputs = facts.outputs(region);
    let mut cuts: Vec<(Point, Cut)> = Vec::new();
    for point in points_of_cuts(claim.before, region, most + 1).take(3) {
        let wanted = Wanted { region, outputs, stays: true, forms: true, around: point.number };
        let Some(cut) = cut(&facts, wanted) else { return false };
        cuts.push((point, cut));
    }
    let trips = TRIPS.iter().copied().filter(|&trips| trips < most).chain([most]);
    let trips: Vec<u32> = trips.collect();
    ends.iter().all(|&end| {
        let (mut is_finite, mut seen) = (false, Seen::of(outputs.len()));
        let agree = trips.iter().all(|&trips| {
            // All iterations of a long loop are gone through in what was cut out alone.
            let graphs = [claim.before, &after].map(|graph| ended(graph, region, end, trips));
            let [Some(before), Some(after)] = &graphs else { return false };
            let each = most_steps(before, |_| 1) / u64::from(most + 1) * u64::from(trips + 1);
            if each <= MOST_STEPS {
                match agree_where(before, after, &SIZES[..2]) {
                    Some(compared) => is_finite |= compared.is_finite,
                    None => return false,
                }
            }
            cuts.iter().enumerate().all(|(number, (point, cut))| {
                let each = most_steps(&cut.graph, |_| 1);
                let each = each / u64::from(most + 1) * u64::from(trips + 1);
                if each > MOST_STEPS_AT_ONCE || each > MOST_STEPS && number > 0 {
                    return true;
                }
                let end = cut.blocks.get(&end).copied();
                let graph = end.and_then(|end| ended(&cut.graph, cut.region, end, trips));
                graph.is_some_and(|graph| holds(cut, &graph, *point, each, &mut seen).is_some())
            })
        });
        agree && is_finite && seen.is_enough()
    })
}
