//! Forward mode on the graph: a graph to the graph of its directional derivatives.
//!
//! Each varied node gets a tangent, computed right after it by the same derivative rules as its
//! adjoint. φs and entry φs of loops get tangents that are φs and entry φs, passed on beside them;
//! elements of arrays get elements of an array of tangents.

use core::iter::once;
use std::sync::Arc;

use hashbrown::HashMap;

use crate::custom::{CustomPart, Part};
use crate::entity::PrimaryMap;
use crate::numeric::Routine;
use crate::op::{Algebra, Numbers, Op, contribution};
use crate::ssa::{
    AccessData, Activity, Array, ArrayData, Call, CallData, Def, Editor, End, Entry, Flow, Graph,
    Item, Node, NodeData, PlaceId, Region, padded,
};

/// The derivatives of the outputs of `graph`, a verified graph, along a direction: a further
/// inactive input for each active one, after all others.
///
/// The reverse pass on the result gives the Hessian times the direction. A graph that calls
/// routines other than custom operations, adds to sums, or has regions that replay others is not differentiated; `None` then.
///
/// # Examples
///
/// ```
/// use phigrad::internals::diff::tangent;
/// use phigrad::internals::ssa::{Outcome, interpret, parse};
///
/// // x·y at (3, 5), along (1, 10).
/// let graph = parse("graph active 2 inactive 0\nb0:\n  v2 = mul v0 v1\n  return v2\n")?;
/// let derivative = tangent(&graph).expect("no calls");
/// assert_eq!(interpret(&derivative, &[3.0, 5.0, 1.0, 10.0]), Outcome::Values(vec![35.0]));
/// # Ok::<(), phigrad::internals::ssa::ParseError>(())
/// ```
pub fn tangent(graph: &Graph) -> Option<Graph> {
    let replays = graph.regions.values().any(|region| region.replays.is_some());
    let is_outputs =
        |call: &CallData| call.routine.custom().is_some_and(|custom| custom.part == Part::Outputs);
    let has_routines = !graph.calls.values().all(is_outputs);
    if replays || graph.arrays.values().any(ArrayData::is_sums) || has_routines {
        return None;
    }
    let varied = Activity::of(&Flow::of(graph)).varied;
    let mut tangents = Tangents {
        tangents: PrimaryMap::filled(None, graph.nodes.len()),
        arrays: HashMap::new(),
        after: HashMap::new(),
        derivatives: HashMap::new(),
        editor: Editor::of(graph),
        graph,
        varied,
    };
    tangents.editor.inactive += graph.active;
    graph.nodes.keys().for_each(|node| tangents.visit(node));
    tangents.pass_on();
    tangents.place();
    tangents.editor.finish()
}

struct Tangents<'a> {
    graph: &'a Graph,
    editor: Editor,
    varied: PrimaryMap<Node, bool>,
    /// The tangent of each node; `None` if it is zero.
    tangents: PrimaryMap<Node, Option<Node>>,
    /// The arrays of tangents.
    arrays: HashMap<Array, Array>,
    /// The steps to insert after a node.
    after: HashMap<Node, Vec<Item>>,
    /// For each call of a custom operation that of its Jacobian-vector product.
    derivatives: HashMap<Node, Node>,
}

impl Tangents<'_> {
    /// Makes the tangent of `node`, after those of its operands.
    fn visit(&mut self, node: Node) {
        if !self.varied[node] {
            return;
        }
        let NodeData { def, place } = self.graph.nodes[node];
        self.tangents[node] = match def {
            Def::Input(number) => Some(self.push(Def::Input(self.direction(number)), place)),
            Def::Apply(op, args) => self.apply(node, op, &args[..op.arity()], place),
            Def::Phi(region, _) => {
                let number = self.editor.regions[region].phis.len() as u32;
                let tangent = self.push(Def::Phi(region, number), place);
                self.editor.regions[region].phis.push(tangent);
                Some(tangent)
            }
            Def::Entry(region, number) => self.entry(region, number, place),
            Def::Element(access) => {
                let AccessData { array, .. } = self.graph.accesses[access];
                let array = self.array(array);
                let data = AccessData { array, ..self.graph.accesses[access].clone() };
                let access = self.editor.accesses.push(data);
                Some(self.step(node, Def::Element(access), place))
            }
            // The acceptance of a call does not vary, its outputs do.
            Def::Call(call) => {
                self.call(node, call, place);
                None
            }
            Def::Result(call, number) => self.output(call, number, place),
            Def::Const(_) | Def::Iteration(_) => None,
        };
    }

    /// The number of the input that is the direction of active input `number`.
    fn direction(&self, number: u32) -> u32 {
        (self.graph.active + self.graph.inactive) as u32 + number
    }

    fn push(&mut self, def: Def, place: Option<PlaceId>) -> Node {
        self.editor.nodes.push(NodeData { def, place })
    }

    /// Adds a step after `node` and those after it.
    fn step(&mut self, node: Node, def: Def, place: Option<PlaceId>) -> Node {
        let step = self.push(def, place);
        self.after.entry(node).or_default().push(Item::Node(step));
        step
    }

    /// The sum of the contributions of the operands.
    fn apply(&mut self, node: Node, op: Op, args: &[Node], place: Option<PlaceId>) -> Option<Node> {
        let x = padded(args);
        let mut sum = None;
        for (operand, &arg) in args.iter().enumerate() {
            let Some(tangent) = self.tangents[arg] else { continue };
            let mut steps = Steps { tangents: self, node, place };
            let Some(part) = contribution(&mut steps, op, operand, x, node, tangent) else {
                continue;
            };
            sum = Some(match sum {
                None => part,
                Some(sum) => steps.apply(Op::Add, [sum, part]),
            });
        }
        sum
    }

    /// Calls the Jacobian-vector product after `node`, which calls a custom operation.
    fn call(&mut self, node: Node, call: Call, place: Option<PlaceId>) {
        let CallData { routine, args } = &self.graph.calls[call];
        let Some(CustomPart { custom, .. }) = routine.custom() else { return };
        let computed = custom.outputs() + custom.saved();
        let part = CustomPart { custom: custom.clone(), part: Part::Jvp };
        let mut operands = args.clone();
        operands.extend(
            (1..=computed as u32).map(|number| self.step(node, Def::Result(node, number), place)),
        );
        operands.extend(args.iter().map(|&arg| self.tangent_or_zero(arg)));
        let routine = Arc::new(Routine::Custom(part));
        let call = self.editor.calls.push(CallData { routine, args: operands });
        let derivative = self.step(node, Def::Call(call), place);
        self.derivatives.insert(node, derivative);
    }

    /// The tangent of result `number` of a call of a custom operation; `None` if it is saved for
    /// derivatives.
    fn output(&mut self, call: Node, number: u32, place: Option<PlaceId>) -> Option<Node> {
        let &derivative = self.derivatives.get(&call)?;
        let outputs = self.graph.custom_part(call)?.custom.outputs();
        (number as usize <= outputs)
            .then(|| self.step(call, Def::Result(derivative, number), place))
    }

    /// The tangent of entry φ `number` of `region`.
    fn entry(&mut self, region: Region, number: u32, place: Option<PlaceId>) -> Option<Node> {
        let first = self.graph.entries(region)[number as usize].first;
        let first = self.tangent_or_zero(first);
        let new = self.editor.entries(region).len() as u32;
        let phi = self.push(Def::Entry(region, new), place);
        let cycle = self.editor.regions[region].cycle.as_mut()?;
        cycle.entries.push(Entry { phi, first });
        Some(phi)
    }

    /// The array of the tangents of the elements of `array`.
    fn array(&mut self, array: Array) -> Array {
        if let Some(&tangents) = self.arrays.get(&array) {
            return tangents;
        }
        let data = match &self.graph.arrays[array] {
            &ArrayData::Inputs { first, count } => {
                ArrayData::Inputs { first: self.direction(first), count }
            }
            ArrayData::Nodes(nodes) => {
                ArrayData::Nodes(nodes.iter().map(|&node| self.tangent_or_zero(node)).collect())
            }
            &ArrayData::Saved(node) => ArrayData::Saved(self.tangents[node].unwrap_or(node)),
            // Their elements do not vary.
            other => other.clone(),
        };
        let tangents = self.editor.arrays.push(data);
        self.arrays.insert(array, tangents);
        tangents
    }

    fn tangent_or_zero(&mut self, node: Node) -> Node {
        match self.tangents[node] {
            Some(tangent) => tangent,
            None => self.editor.push_const(0.0f64.to_bits()),
        }
    }

    /// Has each leaf of a region pass on the tangents, and each path return those of the outputs.
    fn pass_on(&mut self) {
        let graph = self.graph;
        for region in graph.regions.keys() {
            for &leaf in &graph.leaves(graph.regions[region].root) {
                let Some(passed) = graph.passed(region, leaf) else { continue };
                let with_tangents = |this: &mut Self, all: &[Node], phis: &[Node]| -> Vec<Node> {
                    let varied = all.iter().zip(phis).filter(|(_, phi)| this.varied[**phi]);
                    let varied: Vec<Node> = varied.map(|(&node, _)| node).collect();
                    let tangents = varied.into_iter().map(|node| this.tangent_or_zero(node));
                    all.iter().copied().chain(tangents).collect()
                };
                let entries: Vec<Node> =
                    graph.entries(region).iter().map(|entry| entry.phi).collect();
                let nexts = with_tangents(self, passed.nexts, &entries);
                let values = with_tangents(self, passed.values, &graph.regions[region].phis);
                let all = passed.again.into_iter().chain(nexts).chain(values).collect();
                self.editor.blocks[leaf].end = End::Return(all);
            }
        }
        for &leaf in &graph.leaves(graph.root()) {
            if let End::Return(outputs) = &graph.blocks[leaf].end {
                let outputs = outputs.iter().map(|&node| self.tangent_or_zero(node)).collect();
                self.editor.blocks[leaf].end = End::Return(outputs);
            }
        }
    }

    /// Puts the steps into their blocks.
    fn place(&mut self) {
        for block in self.graph.blocks.keys() {
            let items = core::mem::take(&mut self.editor.blocks[block].items);
            let with_steps = items.into_iter().flat_map(|item| {
                let after = match item {
                    Item::Node(node) => self.after.remove(&node).unwrap_or_default(),
                    _ => Vec::new(),
                };
                once(item).chain(after)
            });
            self.editor.blocks[block].items = with_steps.collect();
        }
    }
}

/// Builds the steps of derivative rules, after `node`.
struct Steps<'a, 'b> {
    tangents: &'a mut Tangents<'b>,
    node: Node,
    place: Option<PlaceId>,
}

impl Algebra for Steps<'_, '_> {
    type Value = Node;

    fn constant(&mut self, value: f64) -> Node {
        self.tangents.editor.push_const(value.to_bits())
    }

    fn apply<const N: usize>(&mut self, op: Op, args: [Node; N]) -> Node {
        // The exponent of `powi` must stay a constant.
        let constants = args.map(|arg| self.tangents.editor.constant(arg));
        if constants.iter().all(Option::is_some) {
            let value = Numbers.apply(op, constants.map(Option::unwrap_or_default));
            return self.constant(value);
        }
        self.tangents.step(self.node, Def::Apply(op, padded(&args)), self.place)
    }
}
