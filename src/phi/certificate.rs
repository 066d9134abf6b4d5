//! Certificates: a graph and what was made of it come to the same.
//!
//! It shares nothing with the rest of φ-calculus: both graphs are run by the
//! interpreter.

use crate::ssa::{Graph, Item, Outcome, interpret};

/// Where graphs are compared: how large the inputs are, one point for each.
const SIZES: [f64; 6] = [1.0, 0.05, 1e-3, 3.0, 40.0, 1e4];

/// How far results may be apart, relative to the largest.
const TOLERANCE: f64 = 1e-6;

/// Whether two graphs of the same inputs come to the same, but for rounding, at
/// some points. Guards do not stop them, so that all of each is compared.
///
/// # Examples
///
/// ```
/// use phigrad::phi::agree;
/// use phigrad::ssa::parse;
///
/// let square = parse("graph active 1 inactive 0\nb0:\n  v1 = mul v0 v0\n  return v1\n")?;
/// let sum = parse("graph active 1 inactive 0\nb0:\n  v1 = add v0 v0\n  return v1\n")?;
/// assert!(agree(&square, &square) && !agree(&square, &sum));
/// # Ok::<(), phigrad::ssa::ParseError>(())
/// ```
pub fn agree(before: &Graph, after: &Graph) -> bool {
    if (before.active, before.inactive) != (after.active, after.inactive) {
        return false;
    }
    let (before, after) = (without_guards(before), without_guards(after));
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut uniform = || {
        // A multiplicative generator; its upper bits are good enough.
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    SIZES.iter().all(|size| {
        let count = before.active + before.inactive;
        let point: Vec<f64> = (0..count).map(|_| size * (2.0 * uniform() - 0.8)).collect();
        match (interpret(&before, &point), interpret(&after, &point)) {
            (Outcome::Values(a), Outcome::Values(b)) => alike(&a, &b),
            (Outcome::Unseen(_), Outcome::Unseen(_)) => true,
            _ => false,
        }
    })
}

fn alike(a: &[f64], b: &[f64]) -> bool {
    // A result that is not finite is computed again on the tape.
    let is_alike = |(a, b): (&f64, &f64)| {
        !a.is_finite()
            || !b.is_finite()
            || (a - b).abs() <= TOLERANCE * a.abs().max(b.abs()).max(1e-9)
    };
    a.len() == b.len() && a.iter().zip(b).all(is_alike)
}

/// The graph without its guards: what it would come to if they held.
///
/// # Examples
///
/// ```
/// use phigrad::phi::without_guards;
/// use phigrad::ssa::{Outcome, interpret, parse};
///
/// let graph = parse("graph active 1 inactive 0\nb0:\n  guard v0\n  return v0\n")?;
/// assert_eq!(interpret(&without_guards(&graph), &[0.0]), Outcome::Values(vec![0.0]));
/// # Ok::<(), phigrad::ssa::ParseError>(())
/// ```
pub fn without_guards(graph: &Graph) -> Graph {
    let mut graph = graph.clone();
    let blocks: Vec<_> = graph.blocks.keys().collect();
    for block in blocks {
        graph.blocks[block].items.retain(|item| !matches!(item, Item::Guard { .. }));
    }
    graph
}
