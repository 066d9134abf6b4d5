//! Vector loops: pairs of iterations of an innermost loop.
//!
//! In front of a loop of one basic block whose iterations depend on each other through recurrences
//! of single nodes alone comes one that runs two iterations at once, with vectors of two numbers as
//! in `lanes`; the loop itself runs the rest, at least one iteration. See `pairs` for the lowering.
//!
//! ```text
//! for i in 0..9 { sum += x[i] · y; z[i] += x[i] }
//!
//! for i in 0, 2, 4, 6 {
//!   terms = x[i..i + 2] · (y, y);  sum += terms.0;  sum += terms.1
//!   z[i..i + 2] += x[i..i + 2]
//! }
//! for i in 8..9 { sum += x[i] · y; z[i] += x[i] }
//! ```
//!
//! Recurrences are computed number by number, and each element of an array gets its additions in
//! the order of iterations, so the results have the same bits.

use super::math::is_call;
use super::operands::{counter_test, in_registers, known_element};
use super::plan::{BasicBlock, Next, Plan, Source, Step};
use super::schedule::Test;
use crate::op::Op;
use crate::ssa::{Access, AffineIndex, Def, Graph, Node, Region, last_iteration};

/// The least bound of a loop for which a vector loop pays.
const LEAST_TRIPS: u32 = 8;
/// The number of iterations after which a store does not delay a load of the same memory any more.
const STORE_ITERATIONS: i64 = 8;
/// The least number of operations on vectors in each iteration.
const LEAST_OPERATIONS: usize = 2;

/// A loop of one basic block that can run pairs of iterations.
pub(super) struct VectorLoop {
    pub(super) region: Region,
    /// The loop with the iteration number: a replaying loop has that of the replayed one.
    pub(super) counting: Region,
    /// The number of the last iteration of a loop that replays none.
    pub(super) last: Option<AffineIndex>,
    /// The steps of the block.
    pub(super) steps: Vec<Step>,
    /// The parameters of the block, with their next values.
    pub(super) carried: Vec<(Node, Carried)>,
}

/// The next value of an entry φ.
#[derive(Clone, Copy)]
pub(super) enum Carried {
    /// The φ itself.
    Same,
    /// A constant: only the first iteration has another value.
    Constant(f64),
    /// This node, which alone uses the φ, and which no step uses.
    Recurrence(Node),
}

impl VectorLoop {
    /// The vector loop for the loop with this block as its header.
    pub(super) fn of(graph: &Graph, plan: &Plan, header: usize) -> Option<Self> {
        let block = &plan.blocks[header];
        let &Next::Branch { test, then, .. } = &block.next else { return None };
        let back = &plan.blocks[then];
        let Next::BackEdge(region, to, values) = &back.next else { return None };
        if *to != header || !loads_constants_only(back) || graph.bound(*region) < LEAST_TRIPS {
            return None;
        }
        let last = match test {
            Test::More(_) => None,
            Test::Node(_) => Some(last_iteration(graph, *region)?),
        };
        let is_plain = |step: &Step| match *step {
            Step::Load(node, Source::Slot(_)) => {
                !matches!(graph.nodes[node].def, Def::Entry(of, _) if of == *region)
            }
            Step::Compute(node) => {
                matches!(graph.nodes[node].def, Def::Apply(..) | Def::Element(_))
            }
            Step::Load(..)
            | Step::Save(..)
            | Step::Accumulate(..)
            | Step::Store(..)
            | Step::Guard(..) => true,
            _ => false,
        };
        let counting = graph.regions[*region].replays.unwrap_or(*region);
        let has_constant_stride = |step: &Step| {
            let changes = access_of(graph, step).map(|access| &graph.accesses[access].changes);
            changes.is_none_or(|changes| changes.iter().all(|change| change.0 != counting))
        };
        if !block.steps.iter().all(|step| is_plain(step) && has_constant_stride(step)) {
            return None;
        }
        let mut carried = Vec::new();
        for (&phi, &next) in block.parameters.iter().zip(values) {
            // The next value of several φs would be computed from two recurrences.
            let is_own = values.iter().filter(|&&value| value == next).count() == 1;
            let how = match graph.constant(next) {
                _ if phi == next => Carried::Same,
                Some(constant) => Carried::Constant(constant),
                None if is_own && is_recurrence(graph, &block.steps, phi, next) => {
                    Carried::Recurrence(next)
                }
                None => return None,
            };
            carried.push((phi, how));
        }
        let recurrences = carried.iter().filter(|(_, how)| matches!(how, Carried::Recurrence(_)));
        let operations = block.steps.iter().filter(|step| is_operation(graph, step)).count();
        if operations < recurrences.count() + LEAST_OPERATIONS {
            return None;
        }
        let accesses = Accesses { graph, counting, is_reversed: last.is_none() };
        let steps = block.steps.clone();
        accesses.allows_pairs(&steps).then_some(VectorLoop {
            region: *region,
            counting,
            last,
            steps,
            carried,
        })
    }

    pub(super) fn has_guards(&self) -> bool {
        self.steps.iter().any(|step| matches!(step, Step::Guard(..)))
    }
}

/// The access of an element, an addition or a store.
fn access_of(graph: &Graph, step: &Step) -> Option<Access> {
    match *step {
        Step::Compute(node) => match graph.nodes[node].def {
            Def::Element(access) => Some(access),
            _ => None,
        },
        Step::Accumulate(access, _) | Step::Store(access, _) => Some(access),
        _ => None,
    }
}

/// Tests whether `block` loads constants at most, before it ends.
pub(super) fn loads_constants_only(block: &BasicBlock) -> bool {
    let is_constant = |step: &Step| matches!(step, Step::Load(_, Source::Const(_)));
    block.parameters.is_empty() && block.steps.iter().all(is_constant)
}

/// The nodes that `step` uses.
pub(super) fn used(graph: &Graph, step: &Step) -> Vec<Node> {
    match *step {
        Step::Compute(node) => match known_element(graph, node) {
            Some(source) => vec![source],
            None => in_registers(graph, node).to_vec(),
        },
        Step::Save(node, _)
        | Step::Accumulate(_, node)
        | Step::Store(_, node)
        | Step::Guard(node, _) => vec![node],
        _ => vec![],
    }
}

/// The node that `step` puts into a register.
pub(super) fn defined(step: &Step) -> Option<Node> {
    match *step {
        Step::Load(node, _) | Step::Compute(node) => Some(node),
        _ => None,
    }
}

/// Tests whether `step` computes a number by arithmetic, or writes one.
fn is_operation(graph: &Graph, step: &Step) -> bool {
    match *step {
        Step::Compute(node) => match graph.nodes[node].def {
            Def::Apply(op, _) => !matches!(op, Op::Lt | Op::Attach | Op::Detach),
            _ => false,
        },
        Step::Accumulate(..) | Step::Store(..) | Step::Save(..) => true,
        _ => false,
    }
}

/// Tests whether only `next`, an operation that is no call, uses `phi`, and no step uses `next`.
fn is_recurrence(graph: &Graph, steps: &[Step], phi: Node, next: Node) -> bool {
    let Def::Apply(op, _) = graph.nodes[next].def else { return false };
    let users = |of: Node| steps.iter().filter(move |step| used(graph, step).contains(&of));
    !is_call(op)
        && counter_test(graph, next).is_none()
        && steps.contains(&Step::Compute(next))
        && users(next).next().is_none()
        && users(phi).all(|step| *step == Step::Compute(next))
}

/// The accesses to memory when both iterations of a pair run each step.
struct Accesses<'g> {
    graph: &'g Graph,
    counting: Region,
    /// True if the iteration number decreases.
    is_reversed: bool,
}

/// The position of the element that an access touches, relative to another access.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Distance {
    /// Never the same element.
    Apart,
    /// The element that the other access touches so many iterations later.
    Iterations(i64),
    /// The same element in all iterations.
    Always,
    Unknown,
}

impl Accesses<'_> {
    /// Tests whether pairs of iterations have the results of single ones, and read and write memory
    /// without waiting for each other.
    fn allows_pairs(&self, steps: &[Step]) -> bool {
        let (mut reads, mut writes): (Vec<Access>, Vec<Access>) = (Vec::new(), Vec::new());
        for step in steps {
            match *step {
                Step::Compute(node) => {
                    if let Def::Element(access) = self.graph.nodes[node].def {
                        reads.push(access);
                    }
                }
                Step::Accumulate(access, _) | Step::Store(access, _) => writes.push(access),
                _ => {}
            }
        }
        let is_free = |read: Access, write: Access| match self.distance(read, write) {
            Distance::Apart => true,
            Distance::Iterations(count) => count.abs() != 1,
            Distance::Always | Distance::Unknown => false,
        };
        if !reads.iter().all(|&read| writes.iter().all(|&write| is_free(read, write))) {
            return false;
        }
        let are_free = |(index, &later): (usize, &Access)| {
            writes[..index].iter().all(|&earlier| match self.distance(later, earlier) {
                Distance::Apart => true,
                // A vector of which an earlier store has written one number comes late from memory.
                Distance::Iterations(count) => count % 2 == 0 || count.abs() > STORE_ITERATIONS,
                Distance::Always | Distance::Unknown => false,
            })
        };
        writes.iter().enumerate().all(are_free)
    }

    /// The change of the index of `access` from one iteration to the next that runs.
    fn step_of(&self, access: Access) -> i64 {
        let strides = &self.graph.accesses[access].strides;
        let own = strides.iter().filter(|stride| self.counting(stride.0) == self.counting);
        let stride: i64 = own.map(|stride| i64::from(stride.1)).sum();
        if self.is_reversed { -stride } else { stride }
    }

    fn counting(&self, region: Region) -> Region {
        self.graph.regions[region].replays.unwrap_or(region)
    }

    /// The number of iterations by which `access` is ahead of `other`.
    fn distance(&self, access: Access, other: Access) -> Distance {
        let [data, other_data] = [access, other].map(|access| &self.graph.accesses[access]);
        if data.array != other_data.array {
            return Distance::Apart;
        }
        let strides = [data, other_data].map(|data| {
            let strides = data.strides.iter();
            let mut strides: Vec<(Region, i32)> =
                strides.map(|&(region, stride)| (self.counting(region), stride)).collect();
            strides.sort_unstable();
            strides
        });
        if strides[0] != strides[1] || data.changes != other_data.changes {
            return Distance::Unknown;
        }
        let (ahead, step) =
            (i64::from(data.base) - i64::from(other_data.base), self.step_of(access));
        match step {
            0 if ahead == 0 => Distance::Always,
            0 => Distance::Apart,
            _ if ahead % step == 0 => Distance::Iterations(ahead / step),
            _ => Distance::Apart,
        }
    }
}
