//! Cloning inside an edited graph: a region with all that is in it, or single steps.

use hashbrown::HashMap;

use super::arrays::{Access, Array, Entry, Loop};
use super::graph::{CallData, Def, End, Graph, Item, Node, NodeData, Region};

/// The clones of nodes, regions and arrays. All others stand for themselves.
#[derive(Default)]
pub(crate) struct Copies {
    pub(crate) nodes: HashMap<Node, Node>,
    regions: HashMap<Region, Region>,
    arrays: HashMap<Array, Array>,
}

impl Copies {
    /// A substitution of these nodes.
    pub(crate) fn of(nodes: HashMap<Node, Node>) -> Copies {
        Copies { nodes, ..Copies::default() }
    }

    /// The clone of `node`, or `node` itself.
    pub(crate) fn node(&self, node: Node) -> Node {
        self.nodes.get(&node).copied().unwrap_or(node)
    }

    /// Clones `region`, a region that replays none, with all that is in it. The clone is an item of
    /// no block yet.
    pub(crate) fn region(&mut self, graph: &mut Graph, region: Region) -> Region {
        let copy = self.begin(graph, region);
        // Blocks with their clones and the number of the next item; a stack.
        let mut pending = vec![(graph.regions[region].root, graph.regions[copy].root, 0)];
        while let Some((block, new, next)) = pending.pop() {
            let Some(&item) = graph.blocks[block].items.get(next) else {
                let end = match graph.blocks[block].end.clone() {
                    End::Open => End::Open,
                    End::Return(values) => {
                        End::Return(values.into_iter().map(|value| self.node(value)).collect())
                    }
                    End::Branch { condition, then, otherwise } => {
                        let arms = [graph.new_block(), graph.new_block()];
                        pending.extend([(otherwise, arms[1], 0), (then, arms[0], 0)]);
                        let condition = self.node(condition);
                        End::Branch { condition, then: arms[0], otherwise: arms[1] }
                    }
                };
                graph.blocks[new].end = end;
                continue;
            };
            pending.push((block, new, next + 1));
            let item = match item {
                Item::Node(node) => Item::Node(self.step(graph, node)),
                Item::Guard { condition, expect } => {
                    Item::Guard { condition: self.node(condition), expect }
                }
                Item::Region(inner) => {
                    let copy = self.begin(graph, inner);
                    pending.push((graph.regions[inner].root, graph.regions[copy].root, 0));
                    Item::Region(copy)
                }
                Item::Fill(array) => Item::Fill(self.array(graph, array)),
                Item::Accumulate(access, node) => {
                    Item::Accumulate(self.access(graph, access), self.node(node))
                }
                Item::Store(access, node) => {
                    Item::Store(self.access(graph, access), self.node(node))
                }
            };
            graph.blocks[new].items.push(item);
        }
        copy
    }

    /// Clones `node`, a step whose operands have been cloned.
    pub(crate) fn step(&mut self, graph: &mut Graph, node: Node) -> Node {
        let NodeData { def, place } = graph.nodes[node];
        let def = match def {
            Def::Apply(op, args) => Def::Apply(op, args.map(|arg| self.node(arg))),
            Def::Element(access) => Def::Element(self.access(graph, access)),
            Def::Call(call) => {
                let CallData { routine, args } = graph.calls[call].clone();
                let args = args.into_iter().map(|arg| self.node(arg)).collect();
                Def::Call(graph.calls.push(CallData { routine, args }))
            }
            Def::Result(call, number) => Def::Result(self.node(call), number),
            other => other,
        };
        let copy = graph.nodes.push(NodeData { def, place });
        self.nodes.insert(node, copy);
        copy
    }

    /// Clones `region` with its φs, entry φs and iteration number, without steps.
    fn begin(&mut self, graph: &mut Graph, region: Region) -> Region {
        let mut data = graph.regions[region].clone();
        data.root = graph.new_block();
        let copy = graph.regions.push(data.clone());
        self.regions.insert(region, copy);
        let mut again = |nodes: &mut HashMap<Node, Node>, node: Node, def: Def| {
            let place = graph.nodes[node].place;
            let new = graph.nodes.push(NodeData { def, place });
            nodes.insert(node, new);
            new
        };
        for (phi, number) in data.phis.iter_mut().zip(0..) {
            *phi = again(&mut self.nodes, *phi, Def::Phi(copy, number));
        }
        if let Some(Loop { entries, .. }) = &mut data.cycle {
            for (Entry { phi, first }, number) in entries.iter_mut().zip(0..) {
                *first = self.nodes.get(first).copied().unwrap_or(*first);
                *phi = again(&mut self.nodes, *phi, Def::Entry(copy, number));
            }
        }
        graph.regions[copy] = data;
        let number = graph.nodes.iter().find(|(_, data)| data.def == Def::Iteration(region));
        if let Some((number, _)) = number {
            let new = graph.push_iteration(copy);
            self.nodes.insert(number, new);
        }
        copy
    }

    fn access(&mut self, graph: &mut Graph, access: Access) -> Access {
        let array = self.array(graph, graph.accesses[access].array);
        let copy = |region| Some(*self.regions.get(&region).unwrap_or(&region));
        let copied = graph.accesses[access].with_loops(array, copy);
        graph.accesses.push(copied)
    }

    fn array(&mut self, graph: &mut Graph, array: Array) -> Array {
        if let Some(&copy) = self.arrays.get(&array) {
            return copy;
        }
        let mut data = graph.arrays[array].clone();
        data.nodes_mut().for_each(|node| *node = self.node(*node));
        let is_shared = data == graph.arrays[array] && !data.has_identity();
        let copy = if is_shared { array } else { graph.arrays.push(data) };
        self.arrays.insert(array, copy);
        copy
    }
}
