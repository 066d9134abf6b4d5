//! Whole graphs, compared as they are.

use crate::ssa::{Graph, Item, Outcome, interpret, interpret_with, most_steps, without_tangents};

use super::numbers::Dual;
use super::{MOST_STEPS, MOST_STEPS_OF_DUALS, TOLERANCE, is_alike};

/// Where graphs are compared: how large the inputs are, one point for each.
pub(super) const SIZES: [f64; 6] = [1.0, 0.05, 1e-3, 3.0, 40.0, 1e4];

/// Whether two graphs of the same inputs come to the same, but for rounding, at
/// some points, of which there are fewer if a run takes many steps. Guards do not
/// stop them, so that all of each is compared.
pub(crate) fn agree(before: &Graph, after: &Graph) -> bool {
    // To compare must not take longer than all else, and each form has been compared by
    // itself: near 2²⁰ steps one is affordable, and another one if that told nothing.
    let points = MOST_STEPS / most_steps(before, |_| 1).max(1);
    let (first, more) = SIZES.split_at((points as usize).clamp(1, SIZES.len()));
    match agree_where(before, after, first) {
        Some(false) => agree_where(before, after, &more[..more.len().min(1)]).is_some(),
        Some(true) => true,
        None => false,
    }
}

/// Where graphs are compared that are called with so many numbers, one point for each size.
fn points(count: usize, sizes: &[f64]) -> impl Iterator<Item = Vec<f64>> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut uniform = move || {
        // A multiplicative generator; its upper bits are good enough.
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    sizes.iter().map(move |size| (0..count).map(|_| size * (2.0 * uniform() - 0.8)).collect())
}

/// Whether what `before` comes to is finite at one of these points; `None` if `after`
/// comes to something else at one.
pub(super) fn agree_where(before: &Graph, after: &Graph, sizes: &[f64]) -> Option<bool> {
    if (before.active, before.inactive) != (after.active, after.inactive) {
        return None;
    }
    let [before, after] = [before, after].map(|graph| without_tangents(&without_guards(graph)));
    let mut is_finite = false;
    for point in points(before.active + before.inactive, sizes) {
        match (interpret(&before, &point), interpret(&after, &point)) {
            (Outcome::Values(a), Outcome::Values(b)) if alike(&a, &b) => {
                is_finite |= a.iter().all(|value| value.is_finite());
            }
            (Outcome::Unseen(_), Outcome::Unseen(_)) => {}
            // A loop may be at rest where a form is not, as less is rounded.
            (Outcome::Values(a), Outcome::Values(_)) => {
                let (twice, form) = (values_twice(&before, &point)?, values_twice(&after, &point)?);
                match alike(&twice, &form) {
                    true => is_finite |= twice.iter().all(|value| value.is_finite()),
                    // If the loop comes to something else itself, rounding decides.
                    false if alike(&twice, &a) => return None,
                    false => {}
                }
            }
            _ => return None,
        }
    }
    Some(is_finite)
}

/// What `graph` comes to at `point` in numbers of twice the precision; `None` if that takes too
/// long.
fn values_twice(graph: &Graph, point: &[f64]) -> Option<Vec<f64>> {
    let inputs: Vec<Dual> = point.iter().map(|&input| Dual::input(input, 0.0)).collect();
    let is_short = most_steps(graph, |_| 1) <= MOST_STEPS_OF_DUALS;
    let values = is_short.then(|| interpret_with(graph, &inputs))?.ok()?;
    Some(values.iter().map(|dual| dual.value.high).collect())
}

fn alike(a: &[f64], b: &[f64]) -> bool {
    let same = |(&a, &b): (&f64, &f64)| is_alike(a, b, TOLERANCE, TOLERANCE * 1e-9);
    a.len() == b.len() && a.iter().zip(b).all(same)
}

/// The graph without its guards: what it would come to if they held.
pub(super) fn without_guards(graph: &Graph) -> Graph {
    let mut graph = graph.clone();
    let blocks: Vec<_> = graph.blocks.keys().collect();
    for block in blocks {
        graph.blocks[block].items.retain(|item| !matches!(item, Item::Guard { .. }));
    }
    graph
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ssa::parse;

    #[test]
    fn graphs_agree_with_those_that_come_to_the_same() {
        let graph = |op: &str| {
            let text = format!("graph active 1 inactive 0\nb0:\n  v1 = {op} v0 v0\n  return v1\n");
            parse(&text).unwrap()
        };
        let (square, sum) = (graph("mul"), graph("add"));
        assert!(agree(&square, &square) && !agree(&square, &sum));
    }

    #[test]
    fn graphs_without_guards_go_on() {
        let graph = parse("graph active 1 inactive 0\nb0:\n  guard v0\n  return v0\n").unwrap();
        assert!(matches!(interpret(&graph, &[0.0]), Outcome::Unseen(_)));
        assert_eq!(interpret(&without_guards(&graph), &[0.0]), Outcome::Values(vec![0.0]));
    }
}
