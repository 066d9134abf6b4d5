//! The body of a loop: what depends on what in it.

use std::collections::BTreeSet;

use hashbrown::{HashMap, HashSet};

use super::edit::Edit;
use crate::op::Op;
use crate::ssa::{Def, End, Graph, Item, Node, Region, SeriesData};

/// A loop that carries more numbers stays as it is, so that little time is lost.
const MOST_CARRIED: usize = 512;

/// So many steps of straight code are done in the time of one on the longest way from an iteration
/// to the next, that of its sweep included, which waits for memory as well; and of any other one.
/// They are fitted, by kernels of filters of two to four numbers and of gradient descent with
/// momentum: straight code takes 0.22 ns for each of its steps; an iteration of 8 steps, of which 5
/// wait for each other, took 6.8 ns, and one of 50 steps, of which 8 do, 28 ns.
pub(super) const LONG: usize = 8;
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
    /// take as long as all of their steps, or as the longest way from one iteration to the next.
    pub(super) fn time(&self, edit: &Edit, graph: &Graph) -> usize {
        let mut ways: HashMap<Node, usize> = HashMap::new();
        for &node in &self.steps {
            let args = graph.nodes[node].args().iter().map(|&arg| edit.resolved(arg));
            let before = args.filter_map(|arg| match graph.nodes[arg].def {
                Def::Entry(region, _) if region == self.region => Some(0),
                _ => ways.get(&arg).copied(),
            });
            if let Some(before) = before.max() {
                ways.insert(node, before + steps_of(graph, node));
            }
        }
        let longest = self.nexts.iter().filter_map(|next| ways.get(next)).max();
        (LONG * longest.copied().unwrap_or(0)).max(OTHER * self.weight(graph))
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

    /// The weight of an iteration with these steps, and its time. It carries v4, which begins as
    /// the second input, and becomes v9.
    fn measured(steps: &str) -> (usize, usize) {
        let text = format!(
            "graph active 2 inactive 0\nv2 = const 99.0\nv3 = iteration r0\nb0:\n  \
             v11 = region r0 b1 bound 100 entries v4=v1\n  return v11\nb1:\n{steps}  \
             v10 = lt v3 v2\n  return v10 v9 v9\n"
        );
        let edit = Edit::of(&parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}")));
        let region = edit.graph.regions.keys().next().unwrap();
        let body = Body::of(&edit, region).unwrap();
        (body.weight(&edit.graph), body.time(&edit, &edit.graph))
    }

    #[test]
    fn an_iteration_takes_as_long_as_what_waits_in_it_or_all_of_its_steps() {
        // One after the other, but for the comparison.
        let serial = "  v5 = mul v4 v0\n  v6 = add v5 v0\n  v7 = mul v6 v0\n  \
                      v8 = add v7 v0\n  v9 = mul v8 v0\n";
        assert_eq!(measured(serial), (6, 5 * LONG));
        // Most of it depends on nothing that is carried.
        let wide = "  v5 = mul v3 v0\n  v6 = mul v5 v0\n  v7 = add v6 v0\n  \
                    v8 = mul v5 v7\n  v9 = add v4 v8\n";
        assert_eq!(measured(wide), (6, 6 * OTHER));
        let wider = "  v5 = mul v3 v0\n  v6 = mul v5 v0\n  v7 = powf v6 v0\n  \
                     v8 = mul v5 v7\n  v9 = add v4 v8\n";
        assert_eq!(measured(wider), (21, 21 * OTHER));
    }
}
