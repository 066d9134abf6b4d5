//! Emission of straight code in the place of a loop, in numbers of twice the
//! precision.
//!
//! A power of a million factors is as good as its first factor is known: what is
//! rounded away there counts a million times. So each number is a pair.

use std::rc::Rc;

use hashbrown::{HashMap, HashSet};

use super::slopes::Digits;
use super::terms::Terms;
use crate::op::{MAX_ARITY, Op, eval};
use crate::phi::pair::{How, Pair, Pairs};
use crate::ssa::{
    Access, Def, FAR, Graph, Item, NO_NUMBER, Node, NodeData, PlaceId, SeriesData, far, next_form,
    told_number,
};

/// 2²⁵⁶. Products of a few numbers between it and its inverse neither overflow nor underflow.
pub(super) const LARGE: f64 = f64::from_bits(0x4FF0_0000_0000_0000);

/// So many nodes are looked at at most that a node is made of.
const MOST_SEEN: usize = 256;

/// Steps on their way into a graph: they are nodes of it, and no block has them yet.
pub(super) struct Emitter<'a> {
    pub(super) graph: &'a mut Graph,
    pub(super) items: Vec<Item>,
    place: Option<PlaceId>,
    known: HashMap<Def, Node>,
    /// What pairs were made of, with their numbers in the order of making.
    origins: HashMap<Pair, (usize, How)>,
    /// What nodes come to with twice the digits.
    pub(super) numbers: HashMap<Node, Pair>,
    /// How many pairs were made.
    made: usize,
    /// Pairs whose derivatives are known otherwise.
    told: HashMap<Pair, Told>,
    /// Products and sums whose rounding errors are computed as well: what they are besides
    /// these errors is no sum of products of what they were computed of.
    measured: HashSet<Node>,
    /// Those of the graph before.
    measured_before: Rc<HashSet<Node>>,
    /// The conditions that guards of the form require, and the nodes that are to be finite.
    pub(super) required: Vec<(Node, Option<Node>)>,
    /// How many of the steps compute derivatives, or values with them.
    pub(super) derived: usize,
    /// Whether a constant came out that is not finite.
    pub(super) overflows: bool,
    /// The number of the form, if tangents have been marked by it.
    form: Option<u16>,
}

/// What is known of a pair, other than by what it was made of.
#[derive(Clone, Debug)]
pub(super) struct Told {
    /// Its derivatives by nodes, those that are not zero everywhere.
    pub(super) slopes: Vec<(Node, Pair)>,
    /// What it is, for people.
    pub(super) text: String,
    /// If it is a power that a loop came to, of how many factors.
    pub(super) factors: Option<usize>,
}

impl<'a> Emitter<'a> {
    pub(super) fn new(graph: &'a mut Graph, place: Option<PlaceId>) -> Self {
        let (items, required, known) = (Vec::new(), Vec::new(), HashMap::new());
        let (origins, told) = (HashMap::new(), HashMap::new());
        Emitter {
            graph,
            items,
            place,
            known,
            origins,
            numbers: HashMap::new(),
            made: 0,
            told,
            measured: HashSet::new(),
            measured_before: Rc::default(),
            required,
            derived: 0,
            overflows: false,
            form: None,
        }
    }

    /// What the tangents of derivatives are far from that have so many digits.
    pub(super) fn far(&mut self, digits: Digits, steps: f64) -> f64 {
        match digits {
            Digits::Rounded => FAR,
            Digits::InPairs => {
                let form = *self.form.get_or_insert_with(|| next_form(self.graph));
                far(form, steps)
            }
        }
    }

    /// With what is [`measured`] in the graph.
    pub(super) fn with_measured(self, measured_before: &Rc<HashSet<Node>>) -> Self {
        Emitter { measured_before: measured_before.clone(), ..self }
    }

    /// Whether the rounding error of `node` is computed as well.
    pub(super) fn is_measured(&self, node: Node) -> bool {
        self.measured.contains(&node) || self.measured_before.contains(&node)
    }

    /// Applies a step of a loop to what is before it.
    pub(super) fn copied(&mut self, op: Op, args: &[Node]) -> Node {
        self.measured.extend(measured_by(self.graph, op, args));
        self.apply(op, args)
    }

    pub(super) fn element(&mut self, access: Access) -> Node {
        self.step(Def::Element(access))
    }

    /// Input number `number`.
    pub(super) fn input(&mut self, number: u32) -> Node {
        let graph = &mut self.graph;
        *self.known.entry(Def::Input(number)).or_insert_with(|| {
            let known = graph.input_nodes().find(|&(_, of)| of == number);
            known.map_or_else(|| graph.push_input(number), |(node, _)| node)
        })
    }

    fn step(&mut self, def: Def) -> Node {
        if let Some(&node) = self.known.get(&def) {
            return node;
        }
        let node = self.graph.nodes.push(NodeData { def, place: self.place });
        self.items.push(Item::Node(node));
        self.known.insert(def, node);
        node
    }

    /// What numbers are of which too few digits are known.
    pub(super) fn no_number(&mut self) -> Node {
        self.known_constant(NO_NUMBER)
    }

    /// The constant with these bits, which may be infinite or NaN.
    fn known_constant(&mut self, bits: u64) -> Node {
        let graph = &mut self.graph;
        *self.known.entry(Def::Const(bits)).or_insert_with(|| graph.push_const(bits))
    }

    /// What `pair` was made of, with a number that is larger than those of its operands.
    pub(super) fn origin(&self, pair: Pair) -> Option<(usize, How)> {
        self.origins.get(&pair).copied()
    }

    /// What `pair` was made of, if that is not what its derivatives come of otherwise.
    pub(super) fn made_of(&self, pair: Pair) -> Option<How> {
        let (_, how) = self.origin(pair).filter(|_| !self.told.contains_key(&pair))?;
        Some(how)
    }

    /// Tells the derivatives of `pair`, and what it is.
    pub(super) fn tell(&mut self, pair: Pair, told: Told) {
        // A pair without a second part may be a node that was there before.
        if pair.low.is_some() && self.value(pair.high).is_none() {
            self.told.insert(pair, told);
        }
    }

    /// Whether anything was told.
    pub(super) fn has_told(&self) -> bool {
        !self.told.is_empty()
    }

    /// What was told of `pair`.
    pub(super) fn told(&self, pair: Pair) -> Option<&Told> {
        self.told.get(&pair)
    }

    /// Whether `pair` was made of one whose derivatives were told.
    pub(super) fn is_made_of_told(&self, pair: Pair) -> bool {
        if self.told.is_empty() {
            return false;
        }
        let (mut seen, mut pending) = (HashSet::new(), vec![pair]);
        while let Some(pair) = pending.pop() {
            if self.told.contains_key(&pair) {
                return true;
            }
            if !seen.insert(pair) {
                continue;
            }
            match self.origin(pair) {
                Some((_, How::Sum(a, b) | How::Product(a, b))) => pending.extend([a, b]),
                Some((_, How::Quotient(a, _))) => pending.push(a),
                None => {}
            }
        }
        false
    }

    /// Makes as if the steps after the first `kept` had not been made.
    pub(super) fn forget(&mut self, kept: usize) {
        let (mut gone, mut unguarded) = (HashSet::new(), HashSet::new());
        for item in self.items.drain(kept..) {
            match item {
                Item::Node(node) => _ = gone.insert(node),
                Item::Guard { condition, .. } => _ = unguarded.insert(condition),
                Item::Region(_) | Item::Fill(_) | Item::Accumulate(..) => {}
            }
        }
        // A step may be guarded again that was before.
        for item in &self.items {
            if let Item::Guard { condition, .. } = item {
                unguarded.remove(condition);
            }
        }
        self.required.retain(|(condition, _)| !unguarded.contains(condition));
        self.take_out(&gone);
    }

    /// Of the steps after the first `kept` leaves those that `wanted` and guards need; all of
    /// them if there are loops among them.
    pub(super) fn prune(&mut self, kept: usize, wanted: &[Node]) {
        if self.items[kept..].iter().any(|item| matches!(item, Item::Region(_))) {
            return;
        }
        let mut needed: HashSet<Node> = wanted.iter().copied().collect();
        let later = self.items.split_off(kept);
        let mut left = Vec::new();
        let mut gone = HashSet::new();
        for item in later.into_iter().rev() {
            match item {
                Item::Node(node) if !needed.contains(&node) => {
                    gone.insert(node);
                    continue;
                }
                Item::Node(node) => needed.extend(self.graph.nodes[node].args()),
                Item::Guard { condition, .. } => {
                    needed.insert(condition);
                }
                Item::Region(_) | Item::Fill(_) | Item::Accumulate(..) => {}
            }
            left.push(item);
        }
        self.items.extend(left.into_iter().rev());
        self.take_out(&gone);
    }

    fn take_out(&mut self, gone: &HashSet<Node>) {
        self.known.retain(|_, node| !gone.contains(node));
        let is_gone = |pair: &Pair| {
            gone.contains(&pair.high) || pair.low.is_some_and(|low| gone.contains(&low))
        };
        self.origins.retain(|pair, _| !is_gone(pair));
        self.numbers.retain(|_, pair| !is_gone(pair));
        self.told.retain(|pair, _| !is_gone(pair));
    }

    /// Whether a loop around carries `node`, or one before has carried it, for which there may be
    /// a closed form by now.
    pub(super) fn is_from_loop(&self, node: Node) -> bool {
        match self.graph.nodes[node].def {
            Def::Entry(..) => true,
            Def::Phi(region, _) => self.graph.regions[region].cycle.is_some(),
            _ => told_number(self.graph, node).is_some(),
        }
    }

    /// The same of a multiple of it by a number: that rests where it does.
    pub(super) fn is_multiple_from_loop(&self, node: Node) -> bool {
        self.is_from_loop(node)
            || Terms::of_node(self, node).single().is_some_and(
                |(powers, _)| matches!(*powers, [(node, 1)] if self.is_from_loop(node)),
            )
    }

    /// Whether `node` may depend on an active input.
    pub(super) fn may_be_active(&self, node: Node) -> bool {
        let (mut seen, mut pending) = (HashSet::new(), vec![node]);
        while let Some(node) = pending.pop() {
            if !seen.insert(node) {
                continue;
            }
            match self.graph.nodes[node].def {
                Def::Const(_) | Def::Iteration(_) => {}
                Def::Input(number) if !self.graph.is_active(number) => {}
                Def::Apply(op, args) if seen.len() <= MOST_SEEN => {
                    pending.extend(&args[..op.arity()]);
                }
                Def::Element(access) => match self.graph.series[self.graph.accesses[access].series]
                {
                    SeriesData::Constants(_) => {}
                    SeriesData::Inputs { first, .. } if !self.graph.is_active(first) => {}
                    _ => return true,
                },
                _ => return true,
            }
        }
        false
    }

    /// Stops the graph where `node` is not finite.
    pub(super) fn require_finite(&mut self, node: Node) {
        if self.graph.constant(node).is_some_and(f64::is_finite) {
            return;
        }
        let infinity = self.known_constant(f64::INFINITY.to_bits());
        let size = self.apply(Op::Abs, &[node]);
        let condition = self.step(Def::Apply(Op::Lt, [size, infinity, size]));
        if self.push_guard(condition) {
            self.required.push((condition, Some(node)));
        }
    }

    /// Stops the graph where `node` is not less than `limit`.
    pub(super) fn require_below(&mut self, node: Node, limit: f64) {
        let limit = self.constant(limit);
        let condition = self.apply(Op::Lt, &[node, limit]);
        self.push_guard(condition);
    }

    /// Stops the graph where `condition` is not so. Whether that is looked at only now.
    fn push_guard(&mut self, condition: Node) -> bool {
        let guard = Item::Guard { condition, expect: true };
        let is_new = !self.items.contains(&guard);
        if is_new {
            self.items.push(guard);
        }
        is_new
    }

    /// Stops the graph where `condition` does not hold.
    pub(super) fn require(&mut self, condition: Node) {
        if self.push_guard(condition) {
            self.required.push((condition, None));
        }
    }

    /// Stops the graph where `node`, or its inverse, is so large that products of a few such
    /// numbers may overflow on the way.
    pub(super) fn require_size(&mut self, node: Node, inverted: bool) {
        let most = self.constant(f64::MAX / LARGE);
        let op = if inverted { Op::Div } else { Op::Mul };
        let scaled = self.apply(op, &[most, node]);
        self.require_finite(scaled);
    }
}

impl Pairs for Emitter<'_> {
    fn constant(&mut self, value: f64) -> Node {
        self.overflows |= !value.is_finite();
        self.known_constant(value.to_bits())
    }

    /// What `op` comes to, with constants folded.
    fn apply(&mut self, op: Op, args: &[Node]) -> Node {
        let constants = core::array::from_fn(|i| args.get(i).map(|&arg| self.graph.constant(arg)));
        if let [Some(Some(_)), Some(Some(_)) | None, Some(Some(_)) | None] = constants {
            let value = eval(op, constants.map(|value| value.flatten().unwrap_or(0.0)));
            return self.constant(value);
        }
        match (op, constants) {
            (Op::Mul, [Some(Some(1.0)), ..]) => return args[1],
            (Op::Mul, [_, Some(Some(1.0)), _]) => return args[0],
            (Op::Mul, [Some(Some(-1.0)), ..]) => return self.apply(Op::Neg, &args[1..2]),
            (Op::Mul, [_, Some(Some(-1.0)), _]) => return self.apply(Op::Neg, &args[..1]),
            (Op::Select, [Some(Some(0.0)), ..]) => return args[2],
            (Op::Select, [Some(Some(_)), ..]) => return args[1],
            _ => {}
        }
        let args: [Node; MAX_ARITY] =
            core::array::from_fn(|i| args.get(i).copied().unwrap_or(args[0]));
        self.step(Def::Apply(op, args))
    }

    fn value(&self, node: Node) -> Option<f64> {
        self.graph.constant(node)
    }

    fn made(&mut self, result: Pair, how: How) {
        let is_operand = match how {
            How::Sum(a, b) | How::Product(a, b) => result == a || result == b,
            How::Quotient(a, _) => result == a,
        };
        if !is_operand && self.value(result.high).is_none() {
            let number = self.made;
            self.made += 1;
            self.origins.entry(result).or_insert((number, how));
        }
    }
}

/// The products and sums of `graph` whose rounding errors it computes.
pub(super) fn measured(graph: &Graph) -> HashSet<Node> {
    let steps = graph.nodes.values().filter_map(|data| match data.def {
        Def::Apply(op, args) => measured_by(graph, op, &args[..op.arity()]),
        _ => None,
    });
    steps.collect()
}

/// What `op` of `args` computes the rounding error of, if it does.
pub(super) fn measured_by(graph: &Graph, op: Op, args: &[Node]) -> Option<Node> {
    let (Op::MulAdd, &[a, b, c]) = (op, args) else { return None };
    let (factors, def) = ([a, b], |node: Node| graph.nodes[node].def);
    let is_less = |node: Node| graph.constant(node) == Some(-1.0);
    match def(c) {
        // a·b - (a·b)
        Def::Apply(Op::Neg, [of, ..]) => match def(of) {
            Def::Apply(Op::Mul, [x, y, _]) => {
                ([x, y] == factors || [y, x] == factors).then_some(of)
            }
            _ => None,
        },
        // (a + b) - a
        Def::Apply(Op::Add, [x, y, _]) => {
            let less = |less, of| is_less(less) && (of == x || of == y);
            (less(a, b) || less(b, a)).then_some(c)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ssa::{split_product, split_sum};

    #[test]
    fn a_sum_or_product_whose_rounding_error_is_computed_is_measured() {
        for is_sum in [true, false] {
            let mut graph = Graph::new(2, 0);
            let (root, args) = (graph.root(), [graph.input(0), graph.input(1)]);
            let less = graph.push_const((-1.0f64).to_bits());
            let apply = |op: Op, args: &[Node]| graph.push_apply(root, op, args, None);
            let [result, _] = match is_sum {
                true => split_sum(apply, less, args),
                false => split_product(apply, args),
            };
            let found = measured(&graph);
            assert!(found.contains(&result), "{found:?}");
        }
    }

    #[test]
    fn other_products_and_sums_measure_nothing() {
        let mut graph = Graph::new(2, 0);
        let (root, [x, y]) = (graph.root(), [graph.input(0), graph.input(1)]);
        let [less, two] = [-1.0f64, 2.0].map(|number| graph.push_const(number.to_bits()));
        let mut apply = |op: Op, args: &[Node]| graph.push_apply(root, op, args, None);
        let (sum, product) = (apply(Op::Add, &[x, y]), apply(Op::Mul, &[x, y]));
        let negative = apply(Op::Neg, &[product]);
        // Twice one of them away; less something else; and other factors than the product's.
        apply(Op::MulAdd, &[x, two, sum]);
        apply(Op::MulAdd, &[product, less, sum]);
        apply(Op::MulAdd, &[x, x, negative]);
        apply(Op::MulAdd, &[x, y, product]);
        assert!(measured(&graph).is_empty());
        // In any order.
        let mut apply = |op: Op, args: &[Node]| graph.push_apply(root, op, args, None);
        apply(Op::MulAdd, &[less, y, sum]);
        apply(Op::MulAdd, &[y, x, negative]);
        assert_eq!(measured(&graph), [sum, product].into_iter().collect());
    }
}
