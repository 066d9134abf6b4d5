//! The body of a loop: what depends on what in it.

use std::collections::BTreeSet;

use hashbrown::{HashMap, HashSet};

use super::edit::Edit;
use crate::op::Op;
use crate::ssa::{Def, End, Graph, Item, Node, Region, SeriesData};

/// A loop that carries more numbers stays as it is, so that little time is lost.
const MOST_CARRIED: usize = 512;

/// So many steps of straight code are done in the time of one that waits for the iteration before,
/// that of its sweep included, which waits for memory as well. It is fitted, as [`OTHER`] is, by
/// kernels of filters of two to four numbers and of gradient descent with momentum: straight code
/// takes 0.22 ns for each of its steps; an iteration of 8 steps, of which 5 wait for each other,
/// took 6.8 ns, and one of 50 steps, of which 8 do, 28 ns.
pub(super) const LONG: usize = 8;
/// The same of any other step.
const OTHER: usize = 2;

/// A loop of one block that is gone through a known number of times.
pub(super) struct Body {
    pub(super) region: Region,
    pub(super) times: u32,
    /// The steps of the block that compute a node.
    pub(super) steps: Vec<Node>,
    /// The conditions that guards check, and what they expect.
    pub(super) guards: Vec<(Node, bool)>,
    /// What guards of closed forms in the body require to be finite. It is if what
    /// comes of it is, as long as that is affine.
    pub(super) finite: Vec<Node>,
    pub(super) entries: Vec<(Node, Node)>,
    /// What each entry φ is in the next iteration.
    pub(super) nexts: Vec<Node>,
    /// What that depends on.
    pub(super) next_cones: Vec<Cone>,
    /// What the loop passes on to its φs.
    pub(super) values: Vec<Node>,
    /// All that is computed in the loop, at any depth.
    inside: HashSet<Node>,
    /// What is computed in regions of the body, or comes out of them.
    inner: HashSet<Node>,
    /// Whether there are regions in the body.
    pub(super) has_regions: bool,
}

/// What a value depends on.
#[derive(Default)]
pub(super) struct Cone {
    /// The entry φs, by number.
    pub(super) states: BTreeSet<usize>,
    /// The nodes of the body that it is computed from, and itself.
    pub(super) nodes: HashSet<Node>,
    /// Whether it changes from iteration to iteration by itself.
    pub(super) changes: bool,
    /// Whether an inner region computes a part of it.
    pub(super) is_inner: bool,
}

impl Cone {
    /// Whether it is the same in all iterations.
    fn is_fixed(&self) -> bool {
        self.states.is_empty() && !self.changes && !self.is_inner
    }
}

impl Body {
    pub(super) fn of(edit: &Edit, region: Region) -> Result<Body, &'static str> {
        let graph = &edit.graph;
        let data = &graph.regions[region];
        let Some(cycle) = data.cycle.as_ref().filter(|_| data.replays.is_none()) else {
            return Err("it is no loop");
        };
        let block = data.root;
        let End::Return(passed) = &graph.blocks[block].end else {
            return Err("it branches");
        };
        let passed: Vec<Node> = passed.iter().map(|&node| edit.resolved(node)).collect();
        let last = cycle.bound - 1;
        // One that may want more iterations than it may have stops the graph.
        if !is_counted(graph, region, passed[0], last) {
            return Err("its trip count is not known");
        }
        let entries: Vec<(Node, Node)> =
            cycle.entries.iter().map(|entry| (entry.phi, edit.resolved(entry.first))).collect();
        if entries.len() > MOST_CARRIED {
            return Err("it carries too many numbers");
        }
        let nexts = passed[1..][..entries.len()].to_vec();
        let values = passed[1 + entries.len()..].to_vec();
        let mut body = Body {
            region,
            times: cycle.bound,
            steps: Vec::new(),
            guards: Vec::new(),
            finite: Vec::new(),
            inside: entries.iter().map(|&(phi, _)| phi).collect(),
            entries,
            nexts,
            next_cones: Vec::new(),
            values,
            inner: HashSet::new(),
            has_regions: false,
        };
        let mut ranges = Vec::new();
        for item in &graph.blocks[block].items {
            match *item {
                Item::Node(node) => {
                    body.inside.insert(node);
                    body.steps.push(node);
                }
                Item::Guard { condition, expect } => match edit.required.get(&condition) {
                    Some(&Some(node)) => body.finite.push(edit.resolved(node)),
                    Some(None) => ranges.push((edit.resolved(condition), expect)),
                    None => body.guards.push((edit.resolved(condition), expect)),
                },
                Item::Region(inner) if edit.is_gone(inner) => {}
                Item::Region(inner) => {
                    body.has_regions = true;
                    body.inner.extend(nodes_in(graph, inner));
                }
                Item::Fill(_) | Item::Accumulate(..) => return Err("it adds to sums"),
            }
        }
        body.inside.extend(&body.inner);
        body.next_cones = body.nexts.iter().map(|&next| body.cone(edit, next)).collect();
        // What it begins a loop in it with has a range by what it begins with itself; what is
        // the same in all iterations has its own.
        ranges.retain(|&(condition, _)| body.cone(edit, condition).is_fixed());
        body.guards.append(&mut ranges);
        Ok(body)
    }

    /// How many steps an iteration takes; a power counts as many.
    pub(super) fn weight(&self, graph: &Graph) -> usize {
        self.steps.iter().map(|&node| steps_of(graph, node)).sum()
    }

    /// How many steps of straight code are done in the time of an iteration and of its sweep: they
    /// take as long as all of their steps, or as those of `states` that wait for the iteration before.
    pub(super) fn time(&self, edit: &Edit, graph: &Graph, states: &BTreeSet<usize>) -> usize {
        (LONG * self.waiting(edit, graph, states)).max(OTHER * self.weight(graph))
    }

    /// How many steps wait for the iteration before, one after the other: those on the longest way
    /// that leads from a number back to it, by iteration. Of numbers that only follow others
    /// several iterations are computed at once.
    fn waiting(&self, edit: &Edit, graph: &Graph, states: &BTreeSet<usize>) -> usize {
        /// So many iterations are counted, after as many that fill what follows.
        const COUNTED: usize = 32;
        let all = self.ways(edit, graph, states);
        // How many steps have been done when each number is known.
        let mut done = vec![Some(0usize); self.nexts.len()];
        let mut last = 0;
        for iteration in 0..2 * COUNTED {
            let known = |ways: &Vec<(usize, usize)>| {
                ways.iter().filter_map(|&(from, way)| Some(done[from]? + way)).max()
            };
            done = all.iter().map(known).collect();
            if iteration + 1 == COUNTED {
                last = done.iter().flatten().copied().max().unwrap_or(0);
            }
        }
        let end = done.iter().flatten().copied().max().unwrap_or(last);
        end.saturating_sub(last).div_ceil(COUNTED)
    }

    /// The longest ways to what each of `states` is next, from those that it depends on.
    fn ways(
        &self,
        edit: &Edit,
        graph: &Graph,
        states: &BTreeSet<usize>,
    ) -> Vec<Vec<(usize, usize)>> {
        let needed = states.iter().flat_map(|&state| &self.next_cones[state].nodes);
        let needed: HashSet<Node> = needed.copied().collect();
        let entry = |&state: &usize| (self.entries[state].0, vec![(state, 0)]);
        let mut ways: HashMap<Node, Vec<(usize, usize)>> = states.iter().map(entry).collect();
        for &node in self.steps.iter().filter(|node| needed.contains(*node)) {
            let mut all: Vec<(usize, usize)> = Vec::new();
            for &arg in graph.nodes[node].args() {
                let before = ways.get(&edit.resolved(arg)).into_iter().flatten();
                for &(from, way) in before {
                    let way = way + steps_of(graph, node);
                    match all.iter_mut().find(|(other, _)| *other == from) {
                        Some((_, longest)) => *longest = way.max(*longest),
                        None => all.push((from, way)),
                    }
                }
            }
            ways.insert(node, all);
        }
        let next = |state| states.contains(&state).then(|| ways.get(&self.nexts[state]))?;
        (0..self.nexts.len()).map(|state| next(state).cloned().unwrap_or_default()).collect()
    }

    pub(super) fn is_inside(&self, node: Node) -> bool {
        self.inside.contains(&node)
    }

    /// What `node` depends on within one iteration.
    pub(super) fn cone(&self, edit: &Edit, node: Node) -> Cone {
        let (mut cone, mut pending) = (Cone::default(), vec![node]);
        while let Some(node) = pending.pop() {
            if matches!(edit.graph.nodes[node].def, Def::Iteration(region) if region == self.region)
            {
                cone.changes = true;
                continue;
            }
            if !self.is_inside(node) || !cone.nodes.insert(node) {
                continue;
            }
            if self.inner.contains(&node) {
                cone.is_inner = true;
                continue;
            }
            match edit.graph.nodes[node].def {
                Def::Entry(_, number) => {
                    cone.states.insert(number as usize);
                }
                Def::Element(access) => {
                    let data = &edit.graph.accesses[access];
                    cone.changes |= data.strides.iter().any(|&(region, _)| region == self.region);
                    match &edit.graph.series[data.series] {
                        SeriesData::Nodes(nodes) if nodes.iter().any(|&n| self.is_inside(n)) => {
                            // Each may be read; the node is none of the known forms.
                            cone.is_inner = true;
                        }
                        SeriesData::History(past) if self.is_inside(*past) => cone.is_inner = true,
                        _ => {}
                    }
                }
                _ => {
                    let args = edit.graph.nodes[node].args();
                    pending.extend(args.iter().map(|&arg| edit.resolved(arg)));
                }
            }
        }
        cone
    }

    /// The states that those of `cone` depend on in all iterations before, and
    /// whether inner regions have a part in that.
    pub(super) fn closure(&self, cone: &Cone) -> (BTreeSet<usize>, bool) {
        let (mut closure, mut is_inner) = (BTreeSet::new(), cone.is_inner);
        let mut pending: Vec<usize> = cone.states.iter().copied().collect();
        while let Some(state) = pending.pop() {
            if closure.insert(state) {
                let cone = &self.next_cones[state];
                is_inner |= cone.is_inner;
                pending.extend(&cone.states);
            }
        }
        (closure, is_inner)
    }
}

/// How many steps `node` counts as.
fn steps_of(graph: &Graph, node: Node) -> usize {
    const POWER: usize = 16;
    if matches!(graph.nodes[node].def, Def::Apply(Op::Powf, _)) { POWER } else { 1 }
}

/// Whether `again` says that iterations go on to that of number `last`.
pub(super) fn is_counted(graph: &Graph, region: Region, again: Node, last: u32) -> bool {
    if last == 0 && graph.constant(again) == Some(0.0) {
        return true;
    }
    let Def::Apply(Op::Lt, [number, most, _]) = graph.nodes[again].def else { return false };
    graph.nodes[number].def == Def::Iteration(region)
        && graph.constant(most) == Some(f64::from(last))
}

/// All nodes that `region` computes, its φs included.
fn nodes_in(graph: &Graph, region: Region) -> Vec<Node> {
    let (mut nodes, mut regions) = (Vec::new(), vec![region]);
    while let Some(region) = regions.pop() {
        nodes.extend(&graph.regions[region].phis);
        nodes.extend(graph.entries(region).iter().map(|entry| entry.phi));
        let mut blocks = vec![graph.regions[region].root];
        while let Some(block) = blocks.pop() {
            if let End::Branch { then, otherwise, .. } = graph.blocks[block].end {
                blocks.extend([then, otherwise]);
            }
            regions.extend(graph.regions_of(block));
            nodes.extend(graph.blocks[block].items.iter().filter_map(|item| match item {
                Item::Node(node) => Some(*node),
                _ => None,
            }));
        }
    }
    nodes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ssa::parse;

    /// The weight of an iteration with these steps, and its time. It carries v4 and v5, which begin
    /// as the second input, and become v9 and v10.
    fn measured(steps: &str) -> (usize, usize) {
        let text = format!(
            "graph active 2 inactive 0\nv2 = const 99.0\nv3 = iteration r0\nb0:\n  \
             v12 v13 = region r0 b1 bound 100 entries v4=v1 v5=v1\n  return v12\nb1:\n{steps}  \
             v11 = lt v3 v2\n  return v11 v9 v10 v9 v10\n"
        );
        let edit = Edit::of(&parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}")));
        let region = edit.graph.regions.keys().next().unwrap();
        let body = Body::of(&edit, region).unwrap();
        let all = (0..body.entries.len()).collect();
        (body.weight(&edit.graph), body.time(&edit, &edit.graph, &all))
    }

    #[test]
    fn an_iteration_takes_as_long_as_what_waits_in_it_or_all_of_its_steps() {
        // One after the other, but for the comparison.
        let serial = "  v6 = mul v4 v0\n  v7 = add v6 v0\n  v8 = mul v7 v0\n  \
                      v9 = add v8 v0\n  v10 = mul v9 v0\n";
        assert_eq!(measured(serial), (6, 4 * LONG));
        // Most of it depends on nothing that is carried.
        let wide = "  v6 = mul v3 v0\n  v7 = mul v6 v0\n  v8 = add v7 v0\n  \
                    v9 = add v4 v8\n  v10 = add v5 v7\n";
        assert_eq!(measured(wide), (6, 6 * OTHER));
        let wider = "  v6 = mul v3 v0\n  v7 = powf v6 v0\n  v8 = add v7 v0\n  \
                     v9 = add v4 v8\n  v10 = add v5 v7\n";
        assert_eq!(measured(wider), (21, 21 * OTHER));
    }

    #[test]
    fn numbers_that_follow_others_do_not_wait_for_them() {
        let measured = |steps: &str| measured(&format!("  v8 = neg v0\n{steps}"));
        // Both are multiplied and added to, and one follows the other.
        let follows = "  v6 = mul v4 v0\n  v9 = add v6 v0\n  v7 = mul v5 v0\n  v10 = add v7 v9\n";
        assert_eq!(measured(follows), (6, 2 * LONG));
        // Each is made of the other one before.
        let around = "  v6 = mul v5 v0\n  v9 = add v6 v0\n  v7 = mul v4 v0\n  v10 = add v7 v0\n";
        assert_eq!(measured(around), (6, 2 * LONG));
        // One is made of the other one of the same iteration.
        let both = "  v6 = mul v5 v4\n  v7 = add v6 v0\n  v9 = mul v7 v0\n  v10 = add v9 v0\n";
        assert_eq!(measured(both), (6, 4 * LONG));
        // Nothing is made of itself.
        let passed = "  v6 = mul v4 v0\n  v7 = mul v6 v0\n  v9 = add v0 v3\n  v10 = add v7 v0\n";
        assert_eq!(measured(passed), (6, 6 * OTHER));
    }
}
