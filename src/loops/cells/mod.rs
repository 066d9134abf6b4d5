//! Arrays in memory: what a loop carries from one iteration to the next, or gathers from inner loops,
//! element by element becomes cells ([`ArrayData::Cells`]).
//!
//! ```text
//! for t in 0..100 {                        // 1,000 entry φs w₀, w₁, …
//!     for i in 0..1000 { v = f(w[i]) }     // reads an array of nodes, which is copied
//!     next w₀ = v[0], next w₁ = v[1], …    // 1,000 elements of saved values
//! }
//! ```
//!
//! becomes a matrix C with a row for each iteration:
//!
//! ```text
//! for i in 0..1000 { C[0][i] = first wᵢ }
//! for t in 0..100 { for i in 0..1000 { C[t + 1][i] = f(C[t][i]) } }
//! ```
//!
//! A row holds each value once, so cells are never overwritten, and the reverse sweep reads them
//! again. The columns of arrays that share values are the same, so `w[i - 1]`, `w[i]` and `w[i + 1]`
//! read one matrix (`columns`). `scope` finds the arrays of one loop, and `emit` rewrites them.

mod columns;
mod emit;
mod scope;

use crate::ssa::{ArrayData, Def, Graph, Region, verify};

use scope::Scope;

/// The least number of elements of an array for which cells pay.
pub(super) const LEAST_COLUMNS: usize = 8;

/// The largest number of loops of a graph that are searched for arrays.
const MOST_LOOPS: usize = 64;

/// `graph` with the arrays of its loops in cells, at most `most_cells` for each array.
///
/// # Examples
///
/// ```
/// use phigrad::internals::loops::{RerollLimits, reroll, store_arrays};
/// use phigrad::internals::op::Op;
/// use phigrad::internals::ssa::{End, Graph, Node, interpret};
///
/// // for _ in 0..50 { for i in 0..20 { y[i] = sin(y[i]) } }; y[0] · y[1] · … · y[19]
/// let mut graph = Graph::new(20, 0);
/// let root = graph.root();
/// let mut y: Vec<Node> = (0..20).map(|i| graph.input(i)).collect();
/// for _ in 0..50 {
///     for y in &mut y {
///         *y = graph.push_apply(root, Op::Sin, &[*y], None);
///     }
/// }
/// let product = y.into_iter().reduce(|a, b| graph.push_apply(root, Op::Mul, &[a, b], None));
/// graph.blocks[root].end = End::Return(product.into_iter().collect());
/// let rolled = reroll(&graph, RerollLimits::default());
/// let stored = store_arrays(&rolled, 1 << 20);
/// assert!(stored.nodes.len() < rolled.nodes.len() / 2);
/// let x: Vec<f64> = (0..20).map(|i| f64::from(i) / 20.0 + 0.5).collect();
/// assert_eq!(interpret(&stored, &x), interpret(&graph, &x));
/// ```
pub fn store_arrays(graph: &Graph, most_cells: u64) -> Graph {
    if !has_long_arrays(graph) {
        return graph.clone();
    }
    let mut stored = graph.clone();
    // Inner loops, and of one block the later loops, first: what they read belongs to an earlier one.
    let blocks = graph.preorder();
    let regions = blocks.iter().flat_map(|&block| graph.regions_of(block).collect::<Vec<_>>());
    let mut loops: Vec<Option<Region>> =
        regions.filter(|&region| graph.regions[region].cycle.is_some()).map(Some).collect();
    loops.reverse();
    loops.truncate(MOST_LOOPS);
    loops.push(None);
    for region in loops {
        let found = Scope::of(&stored, region).map(|scope| scope.arrays(most_cells));
        if let Some(arrays) = found.filter(|arrays| !arrays.is_empty())
            && let Some(new) = emit::emit(&stored, region, &arrays)
            // In a release build an invalid result is dropped: the loops are right without cells.
            && verify(&new).is_ok()
        {
            stored = new;
        }
    }
    crate::ssa::eliminate_dead_code(&stored)
}

/// Tests whether a loop reads a long array of nodes that are computed.
fn has_long_arrays(graph: &Graph) -> bool {
    graph.nodes.values().any(|data| {
        let Def::Element(access) = data.def else { return false };
        let access = &graph.accesses[access];
        let ArrayData::Nodes(nodes) = &graph.arrays[access.array] else { return false };
        let is_leaf = |def: Def| matches!(def, Def::Input(_) | Def::Const(_));
        nodes.len() >= LEAST_COLUMNS
            && !access.strides.is_empty()
            && nodes.iter().any(|&node| !is_leaf(graph.nodes[node].def))
    })
}
