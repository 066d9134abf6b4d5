//! Rounding errors that a program makes up for.
//!
//! `ln(u)·x/(u - 1)` with `u = 1 + x` is ln(1 + x) to the last digits for small `x`, and
//! `(u - 1)·x/ln(u)` with `u = eˣ` is eˣ - 1: both parts have the rounding error of `u`,
//! and their quotient has not. If one of them were computed in a form that is accurate by
//! itself, most digits would be lost; so both stay as they are.

use crate::entity::Array;
use crate::op::Op;
use crate::ssa::{Def, Graph, Node};

const LOGARITHM: u8 = 1;
const DIFFERENCE: u8 = 2;

/// The numbers of which both the logarithm and the difference from 1 are computed.
pub(super) fn compensated(graph: &Graph) -> Array<Node, bool> {
    let mut used = Array::filled(0u8, graph.nodes.len());
    for data in graph.nodes.values() {
        let Def::Apply(op, [a, b, _]) = data.def else { continue };
        match op {
            Op::Ln | Op::Log2 | Op::Log10 => used[a] |= LOGARITHM,
            Op::Sub if graph.constant(b) == Some(1.0) => used[a] |= DIFFERENCE,
            Op::Sub if graph.constant(a) == Some(1.0) => used[b] |= DIFFERENCE,
            Op::Add if graph.constant(b) == Some(-1.0) => used[a] |= DIFFERENCE,
            Op::Add if graph.constant(a) == Some(-1.0) => used[b] |= DIFFERENCE,
            _ => {}
        }
    }
    let mut compensated = Array::filled(false, graph.nodes.len());
    for (node, &used) in used.iter() {
        compensated[node] = used == LOGARITHM | DIFFERENCE;
    }
    compensated
}
