//! Loop nests from iteration vectors: recognises nests in straight-line code whose trip counts and
//! indices are affine functions of the iteration numbers around, with arrays in memory.
//!
//! `reroll` rolls inner loops first and has to find at each level how the next one uses what this
//! one computes. Here the forms of all steps tell the tree of loops first (`parse`, `split`, `tree`),
//! as recognition of nested loops in traces does (Ketterlin and Clauss, CGO 2008). Then each operand
//! of each statement is a function of its iteration vector (`operands`): the same value everywhere,
//! an input or constant with an affine index, the latest value of a variable (`variables`), or a
//! cell of a matrix (`matrices`). `emit` makes the graph.
//!
//! ```text
//! for i in 0..n {                        row i of a triangular system
//!     let mut sum = b[i];                a variable
//!     for j in 0..i { sum -= l[i * n + j] * y[j]; }      trips i, an input, a cell
//!     y[i] = sum / l[i * n + i];         stored in cell i
//! }
//! ```

mod affine;
mod copies;
mod emit;
mod matrices;
mod operands;
mod parse;
mod recording;
mod split;
mod tree;
mod variables;

use self::split::Splitting;
use crate::ssa::{Graph, verify};

/// The number of steps of nests up to which there are none that are much smaller.
const MOST_STEPS: usize = 64;

/// The loop nests of `graph`, which is as recorded, of one block of primitives, guards and trace loops;
/// `None` if it has other steps, or an operand or trip count of another form, or would need more than
/// `most_cells` cells of memory.
///
/// The new graph does the same operations on the same numbers in the same order.
pub fn recognise_nests(graph: &Graph, most_cells: u64) -> Option<Graph> {
    let recording = recording::Recording::of(graph)?;
    let nests = |splitting| {
        let parse = parse::parse(&recording, splitting)?;
        if parse.bodies.is_empty() || splitting != Splitting::Rows && !parse.is_split {
            return None;
        }
        let tree = tree::Tree::of(&recording, &parse)?;
        let operands = operands::operands(&recording, &tree)?;
        let cells = operands.matrices.iter().map(|matrix| u64::from(matrix.size)).sum::<u64>();
        (cells <= most_cells).then_some(())?;
        let has_tables = operands.matrices.iter().any(|matrix| matrix.stores.is_empty());
        let nests = emit::emit(&recording, &tree, operands)?;
        verify(&nests).is_ok().then_some((nests, has_tables))
    };
    let steps = |graph: &Graph| graph.blocks.values().map(|block| block.items.len()).sum::<usize>();
    let mut least: Option<Graph> = None;
    for splitting in [Splitting::Rows, Splitting::Diagonals, Splitting::Ends] {
        let Some((graph, has_tables)) = nests(splitting) else { continue };
        let is_least = !has_tables && steps(&graph) <= MOST_STEPS;
        least = least.into_iter().chain([graph]).min_by_key(steps);
        if is_least {
            break;
        }
    }
    least
}
