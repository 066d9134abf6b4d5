//! Forward mode on the graph: a graph to the graph of its derivatives along directions.
//!
//! Each varied node gets a tangent for each direction, computed right after it by the same
//! derivative rules as its adjoint. φs and entry φs of loops get tangents that are φs and entry φs,
//! passed on beside them; elements of arrays get elements of an array of tangents. What does not
//! depend on the direction is computed once.

use std::sync::Arc;

use hashbrown::HashMap;
use smallvec::SmallVec;

use crate::custom::{CustomFunction, CustomRoutine};
use crate::entity::PrimaryMap;
use crate::numeric::Routine;
use crate::op::{Algebra, Numbers, Op, contribution};
use crate::ssa::{
    Access, AccessData, Array, ArrayData, Call, CallData, Def, Editor, End, Entry, Flow, Graph,
    Item, Node, NodeData, PlaceId, Region, padded, varied_by,
};

/// The directions of derivatives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Directions {
    /// So many, each with a further inactive input for each active one, after all others.
    Inputs(usize),
    /// One along the axis of each active input.
    Axes,
}

/// The derivatives of the outputs of `graph`, a verified graph, along a direction: a further
/// inactive input for each active one, after all others.
///
/// The reverse pass on the result gives the Hessian times the direction. A graph that calls
/// routines other than custom operations for their outputs is not differentiated; `None` then.
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
    tangents(graph, Directions::Inputs(1))
}

/// The derivatives of the outputs of `graph` along several directions: those of all outputs along
/// the first one, then those along the next. `None` as for [`tangent`].
///
/// # Examples
///
/// ```
/// use phigrad::internals::diff::{Directions, tangents};
/// use phigrad::internals::ssa::{Outcome, interpret, parse};
///
/// // The gradient of x·y at (3, 5).
/// let graph = parse("graph active 2 inactive 0\nb0:\n  v2 = mul v0 v1\n  return v2\n")?;
/// let gradient = tangents(&graph, Directions::Axes).expect("no calls");
/// assert_eq!(interpret(&gradient, &[3.0, 5.0]), Outcome::Values(vec![5.0, 3.0]));
/// # Ok::<(), phigrad::internals::ssa::ParseError>(())
/// ```
pub fn tangents(graph: &Graph, directions: Directions) -> Option<Graph> {
    let is_outputs = |call: &CallData| {
        call.routine.custom().is_some_and(|custom| custom.function == CustomFunction::Eval)
    };
    if !graph.calls.values().all(is_outputs) {
        return None;
    }
    let flow = Flow::of(graph);
    let varied = match directions {
        Directions::Inputs(count) => {
            varied_by(&flow, (0..count).map(|_| |number| graph.is_active(number)))
        }
        Directions::Axes => {
            varied_by(&flow, (0..graph.active as u32).map(|axis| move |number| number == axis))
        }
    };
    let mut tangents = Tangents {
        tangents: vec![PrimaryMap::filled(None, graph.nodes.len()); varied.len()],
        arrays: HashMap::new(),
        after: HashMap::new(),
        derivatives: HashMap::new(),
        editor: Editor::of(graph),
        graph,
        varied,
        directions,
    };
    if let Directions::Inputs(count) = directions {
        tangents.editor.inactive += count * graph.active;
    }
    tangents.replace_output_arrays();
    graph.nodes.keys().for_each(|node| tangents.visit(node));
    tangents.pass_on();
    tangents.place();
    tangents.editor.finish()
}

/// A pass in forward mode.
struct Tangents<'a> {
    graph: &'a Graph,
    directions: Directions,
    editor: Editor,
    /// For each direction the nodes that vary along it.
    varied: Vec<PrimaryMap<Node, bool>>,
    /// For each direction the tangent of each node; `None` if it is zero.
    tangents: Vec<PrimaryMap<Node, Option<Node>>>,
    /// The arrays of tangents, by the number of the direction; `None` if all are zero.
    arrays: HashMap<(Array, usize), Option<Array>>,
    /// The steps to insert after a node.
    after: HashMap<Node, Vec<Item>>,
    /// For each call of a custom operation, and each direction, that of its Jacobian-vector
    /// product.
    derivatives: HashMap<(Node, usize), Node>,
}

impl Tangents<'_> {
    /// Makes the tangents of `node`, after those of its operands.
    fn visit(&mut self, node: Node) {
        for along in 0..self.varied.len() {
            if self.varied[along][node] {
                self.tangents[along][node] = self.tangent_of(node, along);
            }
        }
    }

    fn tangent_of(&mut self, node: Node, along: usize) -> Option<Node> {
        let NodeData { def, place } = self.graph.nodes[node];
        match def {
            Def::Input(number) => Some(match self.directions {
                Directions::Inputs(_) => {
                    let number = self.direction(number, along);
                    self.push(Def::Input(number), place)
                }
                Directions::Axes => self.editor.push_const(1.0f64.to_bits()),
            }),
            Def::Apply(op, args) => self.apply((node, place), op, &args[..op.arity()], along),
            Def::Phi(region, _) => {
                let number = self.editor.regions[region].phis.len() as u32;
                let tangent = self.push(Def::Phi(region, number), place);
                self.editor.regions[region].phis.push(tangent);
                Some(tangent)
            }
            Def::Entry(region, number) => self.entry((region, number), place, along),
            Def::Element(access) => {
                let access = self.access(access, along)?;
                Some(self.step(node, Def::Element(access), place))
            }
            // The acceptance of a call does not vary, its outputs do.
            Def::Call(call) => {
                self.call((node, place), call, along);
                None
            }
            Def::Result(call, number) => self.output(call, number, place, along),
            Def::Const(_) | Def::Iteration(_) => None,
        }
    }

    /// The number of the input that is the direction `along` of active input `number`.
    fn direction(&self, number: u32, along: usize) -> u32 {
        let Graph { active, inactive, .. } = self.graph;
        (active + inactive + along * active) as u32 + number
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
    fn apply(
        &mut self,
        (node, place): (Node, Option<PlaceId>),
        op: Op,
        args: &[Node],
        along: usize,
    ) -> Option<Node> {
        let x = padded(args);
        let mut sum = None;
        for (operand, &arg) in args.iter().enumerate() {
            let Some(tangent) = self.tangents[along][arg] else { continue };
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
    fn call(&mut self, (node, place): (Node, Option<PlaceId>), call: Call, along: usize) {
        let CallData { routine, args } = &self.graph.calls[call];
        let Some(CustomRoutine { custom, .. }) = routine.custom() else { return };
        let computed = custom.outputs() + custom.saved();
        let routine = CustomRoutine { custom: custom.clone(), function: CustomFunction::Jvp };
        let mut operands = args.clone();
        operands.extend(
            (1..=computed as u32).map(|number| self.step(node, Def::Result(node, number), place)),
        );
        operands.extend(args.iter().map(|&arg| self.tangent_or_zero(arg, along)));
        let routine = Arc::new(Routine::Custom(routine));
        let call = self.editor.calls.push(CallData { routine, args: operands });
        let derivative = self.step(node, Def::Call(call), place);
        self.derivatives.insert((node, along), derivative);
    }

    /// The tangent of result `number` of a call of a custom operation; `None` if it is saved for
    /// derivatives.
    fn output(
        &mut self,
        call: Node,
        number: u32,
        place: Option<PlaceId>,
        along: usize,
    ) -> Option<Node> {
        let &derivative = self.derivatives.get(&(call, along))?;
        let outputs = self.graph.custom_routine(call)?.custom.outputs();
        (number as usize <= outputs)
            .then(|| self.step(call, Def::Result(derivative, number), place))
    }

    /// The tangent of an entry φ: that with this number of a region.
    fn entry(
        &mut self,
        (region, number): (Region, u32),
        place: Option<PlaceId>,
        along: usize,
    ) -> Option<Node> {
        let first = self.graph.entries(region)[number as usize].first;
        let first = self.tangent_or_zero(first, along);
        let new = self.editor.entries(region).len() as u32;
        let phi = self.push(Def::Entry(region, new), place);
        let cycle = self.editor.regions[region].cycle.as_mut()?;
        cycle.entries.push(Entry { phi, first });
        Some(phi)
    }

    /// The access to the tangent of an element; `None` if all tangents are zero.
    fn access(&mut self, access: Access, along: usize) -> Option<Access> {
        let data = &self.graph.accesses[access];
        let array = self.array(data.array, along)?;
        Some(self.editor.accesses.push(AccessData { array, ..data.clone() }))
    }

    /// The array of the tangents of the elements of `array`; `None` if all are zero.
    fn array(&mut self, array: Array, along: usize) -> Option<Array> {
        if let Some(&tangents) = self.arrays.get(&(array, along)) {
            return tangents;
        }
        let is_active = |number: u32| self.graph.is_active(number);
        let data = match &self.graph.arrays[array] {
            &ArrayData::Inputs { first, count } if is_active(first) => {
                Some(match self.directions {
                    Directions::Inputs(_) => {
                        ArrayData::Inputs { first: self.direction(first, along), count }
                    }
                    Directions::Axes => {
                        let is_axis = |number: u32| number as usize == along;
                        let of_input = |number| f64::from(u8::from(is_axis(number))).to_bits();
                        ArrayData::Constants((first..first + count).map(of_input).collect())
                    }
                })
            }
            ArrayData::Nodes(nodes) => {
                let tangents = nodes.iter().map(|&node| self.tangent_or_zero(node, along));
                Some(ArrayData::Nodes(tangents.collect()))
            }
            &ArrayData::Saved(node) => self.tangents[along][node].map(ArrayData::Saved),
            ArrayData::Sums(firsts) => {
                let tangent = |first: &Option<Node>| self.tangents[along][(*first)?];
                Some(ArrayData::Sums(firsts.iter().map(tangent).collect()))
            }
            &ArrayData::Cells(count) => Some(ArrayData::Cells(count)),
            ArrayData::Inputs { .. } | ArrayData::Constants(_) | ArrayData::Outputs { .. } => None,
        };
        let tangents = data.map(|data| self.editor.arrays.push(data));
        self.arrays.insert((array, along), tangents);
        tangents
    }

    fn tangent_or_zero(&mut self, node: Node, along: usize) -> Node {
        match self.tangents[along][node] {
            Some(tangent) => tangent,
            None => self.editor.push_const(0.0f64.to_bits()),
        }
    }

    /// Makes the arrays of the derivatives of outputs that are in arrays.
    fn replace_output_arrays(&mut self) {
        let outputs = self.graph.outputs() as u32;
        for (array, first, count) in self.graph.output_arrays() {
            for along in 0..self.varied.len() {
                let first = along as u32 * outputs + first;
                let tangents = self.editor.arrays.push(ArrayData::Outputs { first, count });
                self.arrays.insert((array, along), Some(tangents));
            }
            // No step is left that uses it.
            self.editor.arrays[array] = ArrayData::Sums(vec![None; count as usize]);
        }
    }

    /// Has each leaf of a region pass on the tangents, and each path return those of the outputs.
    fn pass_on(&mut self) {
        let graph = self.graph;
        for region in graph.regions.keys() {
            for &leaf in &graph.leaves(graph.regions[region].root) {
                let Some(passed) = graph.passed(region, leaf) else { continue };
                let entries: Vec<Node> =
                    graph.entries(region).iter().map(|entry| entry.phi).collect();
                let nexts = self.with_tangents(passed.nexts, &entries);
                let values = self.with_tangents(passed.values, &graph.regions[region].phis);
                let all = passed.again.into_iter().chain(nexts).chain(values).collect();
                self.editor.blocks[leaf].end = End::Return(all);
            }
        }
        for &leaf in &graph.leaves(graph.root()) {
            let End::Return(outputs) = &graph.blocks[leaf].end else { continue };
            let mut all: SmallVec<[Node; 2]> = SmallVec::new();
            for along in 0..self.varied.len() {
                outputs.iter().for_each(|&output| all.push(self.tangent_or_zero(output, along)));
            }
            self.editor.blocks[leaf].end = End::Return(all);
        }
    }

    /// The values `passed` to `phis`, then those to the tangents of these.
    fn with_tangents(&mut self, passed: &[Node], phis: &[Node]) -> Vec<Node> {
        let mut all = passed.to_vec();
        for (&node, &phi) in passed.iter().zip(phis) {
            for along in 0..self.varied.len() {
                if self.varied[along][phi] {
                    all.push(self.tangent_or_zero(node, along));
                }
            }
        }
        all
    }

    /// Puts the steps into their blocks.
    fn place(&mut self) {
        for block in self.graph.blocks.keys() {
            let items = core::mem::take(&mut self.editor.blocks[block].items);
            let mut with_steps = Vec::with_capacity(items.len());
            for item in items {
                if !self.is_of_outputs(item) {
                    with_steps.push(item);
                }
                match item {
                    Item::Node(node) => {
                        with_steps.extend(self.after.remove(&node).unwrap_or_default());
                    }
                    Item::Fill(array) => {
                        let tangents = |along| self.arrays.get(&(array, along)).copied().flatten();
                        let filled = (0..self.varied.len()).filter_map(tangents);
                        with_steps.extend(filled.map(Item::Fill));
                    }
                    Item::Accumulate(access, node) => {
                        self.accumulate(access, node, &mut with_steps);
                    }
                    Item::Store(access, node) => self.store(access, node, &mut with_steps),
                    Item::Guard { .. } | Item::Region(_) => {}
                }
            }
            self.editor.blocks[block].items = with_steps;
        }
    }

    /// Tests whether `item` is a step of an array of outputs.
    fn is_of_outputs(&self, item: Item) -> bool {
        let array = match item {
            Item::Fill(array) => array,
            Item::Accumulate(access, _) => self.graph.accesses[access].array,
            Item::Node(_) | Item::Guard { .. } | Item::Region(_) | Item::Store(..) => return false,
        };
        matches!(self.graph.arrays[array], ArrayData::Outputs { .. })
    }

    /// Appends the steps that add the tangents of `node` to those of a sum.
    fn accumulate(&mut self, access: Access, node: Node, steps: &mut Vec<Item>) {
        let array = self.graph.accesses[access].array;
        for along in 0..self.varied.len() {
            let is_used = self.arrays.get(&(array, along)).is_some_and(Option::is_some);
            if let Some(tangent) = self.tangents[along][node]
                && is_used
                && let Some(access) = self.access(access, along)
            {
                steps.push(Item::Accumulate(access, tangent));
            }
        }
    }

    /// Appends the steps that store the tangents of `node`, zero included: another cell of the
    /// array may vary.
    fn store(&mut self, access: Access, node: Node, steps: &mut Vec<Item>) {
        let array = self.graph.accesses[access].array;
        for along in 0..self.varied.len() {
            let is_used = self.arrays.get(&(array, along)).is_some_and(Option::is_some);
            if is_used && let Some(access) = self.access(access, along) {
                let tangent = self.tangent_or_zero(node, along);
                steps.push(Item::Store(access, tangent));
            }
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
