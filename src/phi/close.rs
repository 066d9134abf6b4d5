//! The order of the rules: sums from the innermost loops outwards, then recurrences from the
//! outermost inwards, in turns; last, loops with data-dependent exits.

use super::reason::OpenReason;
use super::recurrence::{Kind, close_recurrences};
use super::rule::{Applied, OpenLoop, Rule};
use super::sums::close_sums;
use crate::ssa::{Folding, Graph, Place, simplify};

/// Limits of [`close`]; all are counts.
///
/// # Examples
///
/// ```
/// use phigrad::internals::phi::CloseLimits;
///
/// assert_eq!(CloseLimits::default(), CloseLimits::DEFAULT);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CloseLimits {
    /// The largest number of variables of a polynomial. Default: 6.
    pub variables: usize,
    /// The largest number of monomials of a polynomial. Default: 28.
    pub monomials: usize,
    /// The most work to fold the data of one sum, in products of coefficients; a parabola takes
    /// about 30 for each number, a plane 80. Default: 2²⁸.
    pub work: u64,
    /// The largest number of loops that are examined. Default: 2¹⁴.
    pub loops: usize,
    /// The largest number of rounds, each of sums and then recurrences. Default: 3.
    pub rounds: usize,
    /// True closes loops without regard to the cost model. Default: false.
    pub always: bool,
}

impl CloseLimits {
    /// The default limits, as a constant.
    pub const DEFAULT: CloseLimits = CloseLimits {
        variables: 6,
        monomials: 28,
        work: 1 << 28,
        loops: 1 << 14,
        rounds: 3,
        always: false,
    };
}

impl Default for CloseLimits {
    fn default() -> Self {
        CloseLimits::DEFAULT
    }
}

/// The result of [`close`].
#[derive(Clone, Debug)]
pub struct Closed {
    /// The graph with closed forms; an unchanged copy if there are none.
    pub graph: Graph,
    /// The formulas that were applied.
    pub applied: Vec<Applied>,
    /// The loops, or values of loops, without a closed form.
    pub open: Vec<OpenLoop>,
    /// The graph for kernels of the value alone, if it differs: without the closed forms of loops
    /// with data-dependent exits, since such a loop has computed its values when it exits.
    pub for_values: Option<Graph>,
}

/// Replaces values of loops by closed forms.
///
/// `graph` is a verified graph; one that replays regions is returned unchanged. The new graph is
/// equal in real arithmetic. Its values differ from those of the loops by about the rounding error
/// of the loops, so only a comparison that rounding decides may change. Each closed form is
/// validated against its loop before it is used.
///
/// # Examples
///
/// ```
/// use phigrad::internals::phi::{CloseLimits, Rule, close};
/// use phigrad::internals::ssa::{AccessData, Builder, Folding, ArrayData};
/// use phigrad::internals::op::Op;
///
/// // The sum of i·x for i < 100.
/// let mut builder = Builder::new(1, 0, Folding::Real);
/// let (x, zero, last) = (builder.input(0), builder.constant(0.0), builder.constant(99.0));
/// let (region, entries) = builder.begin_loop(100, &[zero], None);
/// let number = builder.iteration(region);
/// let term = builder.apply(Op::Mul, &[number, x]);
/// let sum = builder.apply(Op::Add, &[entries[0], term]);
/// let again = builder.apply(Op::Lt, &[number, last]);
/// builder.finish_block(&[again, sum, sum]);
/// let sum = builder.end_loop(region, 1)[0];
/// builder.finish_block(&[sum]);
///
/// let closed = close(&builder.into_graph(), CloseLimits::default());
/// assert_eq!(closed.applied[0].rule, Rule::C7);
/// let text = "graph active 1 inactive 0\nv1 = const 4950.0\nb0:\n  v2 = mul v0 v1\n  return v2\n";
/// assert_eq!(closed.graph.to_string(), text);
/// ```
pub fn close(graph: &Graph, limits: CloseLimits) -> Closed {
    let (applied, open) = (Vec::new(), Vec::new());
    let mut closed = Closed { graph: graph.clone(), applied, open, for_values: None };
    if graph.regions.values().any(|data| data.replays.is_some()) {
        return closed;
    }
    let mut open = Open::default();
    // A closed inner sum may make the loop around it an affine recurrence, and the other way round.
    let mut before = 0;
    for _ in 0..limits.rounds {
        before = closed.applied.len();
        sums(&mut closed, &mut open, &limits);
        recurrences(&mut closed, &mut open, Kind::Counted, &limits);
        if closed.applied.len() == before {
            break;
        }
    }
    // Loops with data-dependent exits come last: their closed forms keep the loop.
    let (without, counted) = (closed.graph.clone(), closed.applied.len());
    recurrences(&mut closed, &mut open, Kind::Exits, &limits);
    if closed.applied.len() > counted {
        closed.for_values = Some(without);
    }
    closed.open = open.grouped(&closed.applied[before..]);
    exits(&mut closed.applied);
    closed
}

/// The reasons of the last round why loops are no sums and no recurrences.
#[derive(Default)]
struct Open {
    as_sums: Vec<OpenLoop>,
    as_recurrences: Vec<OpenLoop>,
}

impl Open {
    /// The reasons grouped by place, without those of the loops in `closed`.
    fn grouped(&self, closed: &[Applied]) -> Vec<OpenLoop> {
        let mut open: Vec<OpenLoop> = Vec::new();
        for OpenLoop { at, reasons } in self.as_sums.iter().chain(&self.as_recurrences) {
            if closed.iter().any(|formula| formula.at == *at) {
                continue;
            }
            match open.iter_mut().find(|other| other.at == *at) {
                Some(other) => {
                    let new = reasons.iter().filter(|reason| !other.reasons.contains(reason));
                    let new: Vec<OpenReason> = new.copied().collect();
                    other.reasons.extend(new);
                }
                None => open.push(OpenLoop { at: at.clone(), reasons: reasons.clone() }),
            }
        }
        open
    }
}

fn sums(closed: &mut Closed, open: &mut Open, limits: &CloseLimits) {
    let mut found = close_sums(&closed.graph, limits);
    (open.as_sums, open.as_recurrences) = (found.open, Vec::new());
    if let Some(graph) = found.graph {
        closed.graph = graph;
        closed.applied.append(&mut found.applied);
    }
}

fn recurrences(closed: &mut Closed, open: &mut Open, kind: Kind, limits: &CloseLimits) {
    let mut found = close_recurrences(&closed.graph, kind, limits);
    open.as_recurrences.append(&mut found.open);
    if let Some(graph) = found.graph {
        closed.graph = simplify(&graph, Folding::Real);
        closed.applied.append(&mut found.applied);
    }
}

/// Adds F5 once for each loop that has a closed form: its exit φs are the carried values after the
/// last iteration.
fn exits(applied: &mut Vec<Applied>) {
    let is_exit = |formula: &&Applied| formula.rule == Rule::F5;
    let mut known: Vec<Option<Place>> =
        applied.iter().filter(is_exit).map(|formula| formula.at.clone()).collect();
    let others = known.len();
    for formula in applied.iter() {
        if formula.rule.is_about_loops() && !known.contains(&formula.at) {
            known.push(formula.at.clone());
        }
    }
    let form = "φ_L'(p, d) = d after the last iteration, the only exit".to_owned();
    applied.extend(known.into_iter().skip(others).map(|at| Applied {
        rule: Rule::F5,
        at,
        form: form.clone(),
    }));
}
