//! Which blocks runs reach: what is known of a graph beyond its meaning.

use super::graph::{Block, End, Graph};
use super::interpret::interpret_while;
use crate::entity::Array;

/// The runs take no more steps than that, all together.
const MOST_STEPS: usize = 1 << 20;

/// Which blocks of `graph` are reached on these inputs, active before inactive. `None` if the
/// graph has no branches, or if nothing is known: no run came to its end, or they took too long.
///
/// # Examples
///
/// ```
/// use phigrad::ssa::{parse, reached};
///
/// let text = "graph active 1 inactive 0\nv1 = const 0\nb0:\n  v2 = gt v0 v1\n  branch v2 b1 b2\n\
///             b1:\n  return v0\nb2:\n  return v1\n";
/// let graph = parse(text)?;
/// let blocks = reached(&graph, &[[2.0]]).unwrap();
/// assert_eq!(blocks.values().collect::<Vec<_>>(), [&true, &true, &false]);
/// # Ok::<(), phigrad::ssa::ParseError>(())
/// ```
pub fn reached(graph: &Graph, inputs: &[impl AsRef<[f64]>]) -> Option<Array<Block, bool>> {
    let is_branch = |end: &End| matches!(end, End::Branch { .. });
    if !graph.blocks.values().any(|block| is_branch(&block.end)) {
        return None;
    }
    let mut reached = Array::filled(false, graph.blocks.len());
    let (mut left, mut has_ended) = (MOST_STEPS, false);
    for inputs in inputs {
        let mut blocks = Vec::new();
        let outcome = interpret_while(graph, inputs.as_ref(), |block| {
            blocks.push(block);
            let steps = graph.blocks[block].items.len() + 1;
            left = left.saturating_sub(steps);
            left > 0
        });
        match outcome {
            Ok(_) => {
                has_ended = true;
                blocks.into_iter().for_each(|block| reached[block] = true);
            }
            // It stopped at a guard: another kernel serves.
            Err(Some(_)) => {}
            Err(None) => return None,
        }
    }
    has_ended.then_some(reached)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ssa::parse;

    fn reached_by(text: &str, inputs: &[[f64; 1]]) -> Option<Vec<bool>> {
        reached(&parse(text).unwrap(), inputs).map(|blocks| blocks.values().copied().collect())
    }

    const GUARDED: &str = "graph active 1 inactive 0\nv1 = const 0\nv2 = const 9\nb0:\n  \
         v3 = lt v0 v2\n  guard v3\n  v4 = gt v0 v1\n  v6 = region r0 b1\n  return v6\n\
         b1:\n  branch v4 b2 b3\nb2:\n  return v0\nb3:\n  v5 = neg v0\n  return v5\n";

    #[test]
    fn runs_that_stop_at_guards_tell_nothing() {
        let (one, both) = (vec![true, true, true, false], vec![true; 4]);
        assert_eq!(reached_by(GUARDED, &[[2.0], [10.0]]), Some(one));
        assert_eq!(reached_by(GUARDED, &[[2.0], [-2.0]]), Some(both));
        assert_eq!(reached_by(GUARDED, &[[10.0]]), None);
        assert_eq!(reached_by(GUARDED, &[]), None);
    }

    #[test]
    fn runs_that_take_long_tell_nothing() {
        let counted = |times: u32| {
            format!(
                "graph active 1 inactive 0\nv1 = const 0\nv2 = const 1\nv3 = const {times}\nb0:\n  \
                 v8 = region r0 b1 bound {times} entries v4=v1\n  return v8\n\
                 b1:\n  v5 = add v4 v2\n  v6 = lt v5 v3\n  v7 = gt v0 v1\n  branch v7 b2 b3\n\
                 b2:\n  return v6 v5 v5\nb3:\n  return v6 v5 v5\n"
            )
        };
        let is_known = |times| reached_by(&counted(times), &[[2.0]]).is_some();
        assert!(is_known(1000) && !is_known(1 << 20));
    }

    #[test]
    fn nothing_is_to_be_known_without_branches() {
        let text = "graph active 1 inactive 0\nb0:\n  return v0\n";
        assert_eq!(reached_by(text, &[[1.0]]), None);
    }
}
