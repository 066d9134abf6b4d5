//! The divisions that may become multiplications by reciprocals.
//!
//! The rounding error of a reciprocal is the same in all quotients by it. It would accumulate in a
//! loop that multiplies a carried value by it, so such divisions stay, as do those of products
//! with many reciprocals.
//!
//! A quotient of related numbers stays as well: x/(x + y) and x/√(x² + y²) are exactly 1 where y
//! vanishes, and so the terms of their derivatives cancel. The product may be 1 - 2⁻⁵³.

use std::collections::VecDeque;

use hashbrown::{HashMap, HashSet};

use crate::entity::PrimaryMap;
use crate::op::Op;
use crate::ssa::{Def, Flow, Graph, Nest, Node, control_slice};

/// The largest number of reciprocals among the factors of a product.
const MAX_FACTORS: u32 = 8;
/// The largest number of nodes that a divisor is computed from and that a dividend is compared with.
const MAX_SOURCES: usize = 64;
/// The distance from a dividend to the nodes that it is computed from and that are compared.
const DIVIDEND_DEPTH: usize = 3;

/// Finds the quotients that may become products, and the reciprocals, which keep their bits.
pub(super) fn candidates(graph: &Graph, flow: &Flow<'_>, nest: &Nest) -> PrimaryMap<Node, bool> {
    let (keeps_bits, multiplies) = (control_slice(graph, flow), multiplies_carried(graph, flow));
    let mut candidates = PrimaryMap::filled(false, graph.nodes.len());
    // True for nodes that are computed from a carried value.
    let mut carried = PrimaryMap::filled(false, graph.nodes.len());
    // The number of reciprocals among the factors of each node.
    let mut factors = PrimaryMap::filled(0u32, graph.nodes.len());
    let mut sources = Sources { graph, of_divisors: HashMap::new() };
    for (node, data) in graph.nodes.iter() {
        match data.def {
            Def::Entry(..) => carried[node] = true,
            Def::Phi(..) => {
                carried[node] = flow.sources(node).iter().any(|&of| of < node && carried[of]);
            }
            Def::Apply(op, args) => {
                let operands = data.args();
                carried[node] = operands.iter().any(|&arg| carried[arg]);
                if is_product(op) {
                    let all = operands.iter().map(|&arg| factors[arg]);
                    factors[node] = all.fold(0, u32::saturating_add);
                }
                let accumulates = || {
                    let is_invariant = nest.node_loop(args[1]) != nest.node_loop(node);
                    multiplies[node] && carried[args[0]] && is_invariant
                };
                let may_round = |sources: &mut Sources<'_>| {
                    !keeps_bits[node]
                        && factors[node] < MAX_FACTORS
                        && !accumulates()
                        && !sources.are_related(args[0], args[1])
                };
                match op {
                    Op::Recip => candidates[node] = true,
                    Op::Div if may_round(&mut sources) => {
                        candidates[node] = true;
                        factors[node] += 1;
                    }
                    _ => {}
                }
            }
            _ => {}
        }
    }
    candidates
}

/// Finds the factors of the values that loops pass on to their next iterations.
fn multiplies_carried(graph: &Graph, flow: &Flow<'_>) -> PrimaryMap<Node, bool> {
    let mut multiplies = PrimaryMap::filled(false, graph.nodes.len());
    for region in graph.regions.keys() {
        for number in 0..graph.entries(region).len() {
            flow.phi_nexts(region, number).for_each(|next| multiplies[next] = true);
        }
    }
    for (node, data) in graph.nodes.iter().rev() {
        match data.def {
            _ if !multiplies[node] => {}
            Def::Apply(op, _) if is_product(op) => {
                data.args().iter().for_each(|&arg| multiplies[arg] = true);
            }
            Def::Phi(..) => flow.sources(node).iter().for_each(|&of| multiplies[of] = true),
            _ => {}
        }
    }
    multiplies
}

/// True if a relative error of an operand is a relative error of the result.
fn is_product(op: Op) -> bool {
    matches!(
        op,
        Op::Mul | Op::Div | Op::Recip | Op::Neg | Op::Abs | Op::Sqrt | Op::Powi | Op::Select
    )
}

/// The nodes that numbers are computed from.
struct Sources<'a> {
    graph: &'a Graph,
    of_divisors: HashMap<Node, HashSet<Node>>,
}

impl Sources<'_> {
    /// True if both are computed from the same number, other than constants, `dividend` by few steps.
    fn are_related(&mut self, dividend: Node, divisor: Node) -> bool {
        let graph = self.graph;
        let of_divisor =
            self.of_divisors.entry(divisor).or_insert_with(|| nearest_sources(graph, divisor));
        let mut level = vec![dividend];
        for _ in 0..DIVIDEND_DEPTH {
            if level.iter().any(|node| of_divisor.contains(node)) {
                return true;
            }
            let operands = level.iter().flat_map(|&node| match graph.nodes[node].def {
                // Another quotient by the divisor is rounded already.
                Def::Apply(Op::Div, [_, by, _]) if by == divisor => &graph.nodes[node].args()[..1],
                _ => graph.nodes[node].args(),
            });
            level = operands.copied().collect();
        }
        level.iter().any(|node| of_divisor.contains(node))
    }
}

/// The nodes that `node` is computed from, itself included, the nearest first up to a limit.
fn nearest_sources(graph: &Graph, node: Node) -> HashSet<Node> {
    let mut pending = VecDeque::from([node]);
    let mut sources = HashSet::new();
    while let Some(node) = pending.pop_front().filter(|_| sources.len() < MAX_SOURCES) {
        if graph.constant(node).is_none() && sources.insert(node) {
            pending.extend(graph.nodes[node].args());
        }
    }
    sources
}
