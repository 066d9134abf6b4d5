//! Block profile: the blocks that profiled runs reach.

use super::Nest;
use crate::entity::PrimaryMap;
use crate::ssa::arrays::ArrayData;
use crate::ssa::graph::{Block, End, Graph, Item};
use crate::ssa::interpret::interpret_while;

/// The limit on the steps of all runs together.
const MOST_STEPS: usize = 1 << 20;

/// The blocks of `graph`, a verified graph, that are reached on these inputs, active before
/// inactive. If the limit of steps is exceeded, the runs before count. `None` if the graph has no
/// branches, or if no run returns.
pub(crate) fn block_profile(
    graph: &Graph,
    inputs: &[impl AsRef<[f64]>],
) -> Option<PrimaryMap<Block, bool>> {
    let is_branch = |end: &End| matches!(end, End::Branch { .. });
    if !graph.blocks.values().any(|block| is_branch(&block.end)) {
        return None;
    }
    let costs = costs(graph);
    let mut reached = PrimaryMap::filled(false, graph.blocks.len());
    let (mut remaining, mut has_ended) = (MOST_STEPS, false);
    for inputs in inputs {
        let mut blocks = Vec::new();
        let outcome = interpret_while(graph, inputs.as_ref(), |block| {
            blocks.push(block);
            remaining = remaining.saturating_sub(costs[block]);
            remaining > 0
        });
        match outcome {
            Ok(_) => {
                has_ended = true;
                blocks.into_iter().for_each(|block| reached[block] = true);
            }
            // It stopped at a guard: another kernel serves such inputs.
            Err(Some(_)) => {}
            Err(None) => break,
        }
    }
    has_ended.then_some(reached)
}

/// The cost of entering each block: its steps, and at the beginning of an iteration all values
/// that the interpreter may save.
fn costs(graph: &Graph) -> PrimaryMap<Block, usize> {
    let steps = |block: Block| {
        let items = graph.blocks[block].items.iter();
        let steps = items.map(|item| match *item {
            Item::Fill(array) => match &graph.arrays[array] {
                ArrayData::Sums(nodes) => nodes.len(),
                ArrayData::Outputs { count, .. } => *count as usize,
                _ => 1,
            },
            _ => 1,
        });
        steps.sum::<usize>() + 1
    };
    let mut costs: PrimaryMap<Block, usize> = graph.blocks.keys().map(steps).collect();
    let nest = Nest::of(graph);
    let mut kept = PrimaryMap::filled(0, graph.regions.len());
    for block in graph.blocks.keys() {
        if let Some(region) = nest.block_loop(block) {
            kept[region] += graph.blocks[block].items.len();
        }
    }
    for (region, data) in graph.regions.iter() {
        costs[data.root] += kept[region];
    }
    costs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ssa::parse;

    fn reached_by(text: &str, inputs: &[[f64; 1]]) -> Option<Vec<bool>> {
        block_profile(&parse(text).unwrap(), inputs)
            .map(|blocks| blocks.values().copied().collect())
    }

    const GUARDED: &str = "graph active 1 inactive 0\nv1 = const 0\nv2 = const 9\nb0:\n  \
         v3 = lt v0 v2\n  guard v3\n  v4 = gt v0 v1\n  v6 = region r0 b1\n  return v6\n\
         b1:\n  branch v4 b2 b3\nb2:\n  return v0\nb3:\n  v5 = neg v0\n  return v5\n";

    #[test]
    fn runs_that_stop_at_guards_do_not_count() {
        let (one, both) = (vec![true, true, true, false], vec![true; 4]);
        assert_eq!(reached_by(GUARDED, &[[2.0], [10.0]]), Some(one));
        assert_eq!(reached_by(GUARDED, &[[2.0], [-2.0]]), Some(both));
        assert_eq!(reached_by(GUARDED, &[[10.0]]), None);
        assert_eq!(reached_by(GUARDED, &[]), None);
    }

    #[test]
    fn runs_within_the_limit_of_steps_count() {
        let counted = |times: u32| {
            format!(
                "graph active 1 inactive 0\nv1 = const 0\nv2 = const 1\nv3 = const {times}\nb0:\n  \
                 v8 = region r0 b1 bound {times} entries v4=v1\n  return v8\n\
                 b1:\n  v5 = add v4 v2\n  v6 = lt v5 v3\n  v7 = gt v0 v1\n  branch v7 b2 b3\n\
                 b2:\n  return v6 v5 v5\nb3:\n  return v6 v5 v5\n"
            )
        };
        let known = |times| reached_by(&counted(times), &[[2.0], [-2.0]]);
        assert_eq!(known(1000), Some(vec![true; 4]));
        assert_eq!(known(100_000), Some(vec![true, true, true, false]));
        assert_eq!(known(1 << 20), None);
    }

    #[test]
    fn a_graph_without_branches_has_no_profile() {
        let text = "graph active 1 inactive 0\nb0:\n  return v0\n";
        assert_eq!(reached_by(text, &[[1.0]]), None);
    }
}
