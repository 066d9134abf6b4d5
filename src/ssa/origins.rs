//! What nodes are computed from, followed forwards: from inputs, and out of loops.

use std::collections::BTreeSet;

use hashbrown::HashSet;

use super::hidden::hides;
use super::scope::Scope;
use crate::entity::{Array, Entity};
use crate::op::Op;
use crate::ssa::{Def, Flow, Node, SeriesData};

/// How many inputs are followed at once.
pub(crate) const AT_ONCE: usize = u64::BITS as usize;

/// What each node and, behind them, each series is used by.
pub(crate) struct Origins<'a> {
    flow: Flow<'a>,
    users: Vec<Vec<u32>>,
}

impl<'a> Origins<'a> {
    pub(crate) fn of(flow: Flow<'a>) -> Self {
        Origins::through(flow, |_, _, _| true)
    }

    /// The same but for what primitives may hide: there is a way from a node to what is said to
    /// be computed from it on which all is NaN or infinite where the node is, where control flow
    /// goes that way.
    pub(crate) fn plain(flow: Flow<'a>) -> Self {
        let graph = flow.graph();
        Origins::through(flow, |op, args, operand| {
            op != Op::Select && !hides(graph, op, args, operand)
        })
    }

    /// Of the operands of primitives only some are followed.
    fn through(flow: Flow<'a>, is_followed: impl Fn(Op, &[Node], usize) -> bool) -> Self {
        let graph = flow.graph();
        let behind = graph.nodes.len();
        let mut users = vec![Vec::new(); behind + graph.series.len()];
        for (node, data) in graph.nodes.iter() {
            match data.def {
                Def::Element(access) => {
                    let series = graph.accesses[access].series;
                    users[behind + series.index()].push(node.index() as u32);
                }
                Def::Apply(op, _) => {
                    for (operand, &arg) in data.args().iter().enumerate() {
                        if is_followed(op, data.args(), operand) {
                            users[arg.index()].push(node.index() as u32);
                        }
                    }
                }
                _ => {
                    for source in flow.sources(node) {
                        users[source.index()].push(node.index() as u32);
                    }
                }
            }
        }
        for series in graph.series.keys() {
            for element in flow.elements(series) {
                users[element.index()].push((behind + series.index()) as u32);
            }
        }
        Origins { flow, users }
    }

    /// The nodes out of `scope` that those in it that are computed from `nodes` are passed on to.
    pub(crate) fn leaving(
        &self,
        nodes: impl IntoIterator<Item = Node>,
        scope: &Scope,
    ) -> BTreeSet<Node> {
        let behind = self.flow.graph().nodes.len();
        let (mut seen, mut leaving) = (HashSet::new(), BTreeSet::new());
        let mut pending: Vec<usize> = nodes.into_iter().map(Entity::index).collect();
        while let Some(at) = pending.pop() {
            if at < behind && !scope.contains(Node::from_index(at)) {
                leaving.insert(Node::from_index(at));
            } else if seen.insert(at) {
                pending.extend(self.users[at].iter().map(|&user| user as usize));
            }
        }
        leaving
    }

    /// Which of the first [`AT_ONCE`] of `inputs`, numbers in order, each node is computed from:
    /// a bit for each.
    pub(crate) fn among(&self, inputs: &[u32]) -> Array<Node, u64> {
        let graph = self.flow.graph();
        let bit = |number: u32| inputs.binary_search(&number).map_or(0, |at| 1u64 << at);
        let mut masks = vec![0u64; self.users.len()];
        for (node, number) in graph.input_nodes() {
            masks[node.index()] = bit(number);
        }
        for (series, data) in graph.series.iter() {
            if let SeriesData::Inputs { first, count } = *data {
                let is_in = |number: &&u32| (first..first + count).contains(*number);
                let mask = inputs.iter().filter(is_in).fold(0, |mask, &number| mask | bit(number));
                masks[graph.nodes.len() + series.index()] = mask;
            }
        }
        let mut pending: Vec<usize> = (0..masks.len()).filter(|&at| masks[at] != 0).collect();
        while let Some(at) = pending.pop() {
            let mask = masks[at];
            for &user in &self.users[at] {
                let user = user as usize;
                if masks[user] | mask != masks[user] {
                    masks[user] |= mask;
                    pending.push(user);
                }
            }
        }
        graph.nodes.keys().map(|node| masks[node.index()]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ssa::{ParseError, parse};

    #[test]
    fn inputs_are_followed_through_loops_and_series() -> Result<(), ParseError> {
        // s = s·x₀ for a while, from x₁; x₂ is not used.
        let text = "graph active 3 inactive 0\nv3 = const 99.0\nv5 = iteration r0\nb0:\n  \
                    v8 = region r0 b1 bound 100 entries v4=v1\n  v9 = add v8 v3\n  return v9\nb1:\n  \
                    v6 = mul v4 v0\n  v7 = lt v5 v3\n  return v7 v6 v6\n";
        let graph = parse(text)?;
        let masks = Origins::of(Flow::of(&graph)).among(&[0, 1, 2]);
        assert_eq!(masks.values().copied().collect::<Vec<u64>>(), [1, 2, 4, 0, 3, 0, 3, 0, 3, 3]);
        let masks = Origins::of(Flow::of(&graph)).among(&[1]);
        assert_eq!(masks.values().copied().collect::<Vec<u64>>(), [0, 1, 0, 0, 1, 0, 1, 0, 1, 1]);
        Ok(())
    }
}
