//! Sums of exponentials that are scaled so that they do not overflow.
//!
//! What is computed of `e^a + e^b + ..` often does not depend on their scale: softmax,
//! the derivative of a logarithm of such a sum. So each node has a degree, by how much it
//! is multiplied if the exponentials are multiplied by a factor: 1 for the exponentials
//! and their sums, 0 for quotients of them. Where everything that leaves a block is of
//! degree 0 but for logarithms, which the factor moves, each `e^a` becomes `e^(a - s)`. The
//! shift `s` is the largest exponent if its power is near to an overflow or to zero,
//! and else 0: then nothing but the exponents is computed otherwise, and each bit is kept.
//!
//! A kernel pays a difference and a maximum for each exponential.

use std::collections::BTreeSet;

use hashbrown::{HashMap, HashSet};

use super::known::Known;
use crate::entity::Array;
use crate::op::Op;
use crate::ssa::{
    Def, Flow, Folding, Graph, Item, Node, Rebuild, decisive_nodes_but, for_each_use, rebuild,
};

/// Exponents up to this are not shifted: powers and sums of them are finite, and
/// their reciprocals have all digits.
const UNSHIFTED: f64 = 700.0;
/// No exponent is shifted by more, so that infinite ones stay what they are.
const FARTHEST: f64 = 1e300;
/// Degrees beyond this may overflow themselves.
const HIGHEST_DEGREE: i32 = 2;
/// How many exponentials are scaled together.
const MOST: usize = 1024;

/// Exponentials that are scaled together.
struct Group {
    exponentials: Vec<Node>,
    /// What the exponents need that comes behind the first exponential, in order.
    early: Vec<Node>,
}

/// What is to be scaled in a graph.
#[derive(Default)]
struct Plan {
    groups: Vec<Group>,
    /// The group of each exponential, and of each logarithm.
    exponentials: HashMap<Node, usize>,
    logarithms: HashMap<Node, usize>,
}

/// The steps of a block.
struct Steps<'a> {
    graph: &'a Graph,
    nodes: Vec<Node>,
    places: HashMap<Node, usize>,
    /// For each step those that use it.
    users: Vec<Vec<usize>>,
    /// Whether something else uses it.
    escapes: Vec<bool>,
}

/// The graph with exponentials that do not overflow in sums of which the scale does not
/// matter; none if there are no such sums.
pub(super) fn scaled(graph: &Graph) -> Option<Graph> {
    let is_exponential = |node: Node| matches!(graph.nodes[node].def, Def::Apply(Op::Exp, _));
    let is_sum = |node: Node| match graph.nodes[node].def {
        Def::Apply(Op::Add, [_, b, _]) => is_exponential(weighted(graph, b).unwrap_or(b)),
        _ => false,
    };
    if !graph.nodes.keys().any(is_sum) {
        return None;
    }
    let flow = Flow::of(graph);
    let mut is_positive = Array::filled(false, graph.nodes.len());
    for (node, data) in graph.nodes.iter() {
        is_positive[node] = match data.def {
            Def::Apply(Op::Exp, _) => true,
            Def::Apply(Op::Add | Op::Mul | Op::Div, [a, b, _]) => is_positive[a] && is_positive[b],
            Def::Apply(Op::Recip, [a, ..]) => is_positive[a],
            Def::Const(bits) => f64::from_bits(bits) > 0.0,
            _ => false,
        };
    }
    // To divide by such a number, or to take its logarithm, decides nothing: its bits change
    // only where it would overflow or vanish.
    let decisive = decisive_nodes_but(graph, &flow, |_, node| is_positive[node]);
    let known = Known::of(graph, &flow);
    let uses = uses(graph);
    let mut plan = Plan::default();
    for block in graph.preorder() {
        let steps = graph.blocks[block].items.iter().filter_map(|item| match *item {
            Item::Node(node) => Some(node),
            _ => None,
        });
        let nodes: Vec<Node> = steps.collect();
        if nodes.iter().any(|&node| is_sum(node)) {
            let here = known.at(block);
            let may_overflow = |exponent: Node| here.range(exponent).high > UNSHIFTED;
            Steps::new(graph, nodes, &uses).plan(&decisive, &may_overflow, &mut plan);
        }
    }
    if plan.groups.is_empty() {
        return None;
    }
    let mut shifts: Vec<Option<Node>> = vec![None; plan.groups.len()];
    Some(rebuild(graph, Folding::Real, |rebuild, node| {
        let Def::Apply(_, [operand, ..]) = graph.nodes[node].def else { return None };
        if let Some(&number) = plan.exponentials.get(&node) {
            let shift = match shifts[number] {
                Some(shift) => shift,
                None => plan.groups[number].shift(graph, rebuild)?,
            };
            shifts[number] = Some(shift);
            let exponent = rebuild.copied(operand);
            let shifted = rebuild.builder.apply(Op::Sub, &[exponent, shift]);
            return Some(rebuild.builder.apply(Op::Exp, &[shifted]));
        }
        let &number = plan.logarithms.get(&node)?;
        let shift = shifts[number]?;
        let operand = rebuild.copied(operand);
        let logarithm = rebuild.builder.apply(Op::Ln, &[operand]);
        Some(rebuild.builder.apply(Op::Add, &[logarithm, shift]))
    }))
}

/// What `node` is a multiple of, if the factor is a positive constant of a usual size.
fn weighted(graph: &Graph, node: Node) -> Option<Node> {
    let Def::Apply(Op::Mul | Op::Div, [part, factor, _]) = graph.nodes[node].def else {
        return None;
    };
    let factor = graph.constant(factor)?;
    (1e-100..=1e100).contains(&factor).then_some(part)
}

impl Group {
    fn shift(&self, graph: &Graph, rebuild: &mut Rebuild<'_>) -> Option<Node> {
        // The builder finds these again when it is their turn.
        let mut early: HashMap<Node, Node> = HashMap::new();
        let copy = |rebuild: &mut Rebuild<'_>, early: &HashMap<Node, Node>, node: Node| {
            early.get(&node).copied().unwrap_or_else(|| rebuild.copied(node))
        };
        for &node in &self.early {
            let Def::Apply(op, args) = graph.nodes[node].def else { return None };
            let args = args.map(|arg| copy(rebuild, &early, arg));
            early.insert(node, rebuild.builder.apply(op, &args[..op.arity()]));
        }
        let exponent = |&node: &Node| match graph.nodes[node].def {
            Def::Apply(_, [exponent, ..]) => Some(exponent),
            _ => None,
        };
        let mut all: Vec<Node> = self
            .exponentials
            .iter()
            .filter_map(exponent)
            .map(|exponent| copy(rebuild, &early, exponent))
            .collect();
        // In pairs, so that none waits for all others.
        while all.len() > 1 {
            all = all
                .chunks(2)
                .map(|pair| match *pair {
                    [a, b] => rebuild.builder.apply(Op::Max, &[a, b]),
                    _ => pair[0],
                })
                .collect();
        }
        let largest = *all.first()?;
        let builder = &mut rebuild.builder;
        let [zero, bound, low, high] =
            [0.0, UNSHIFTED, -FARTHEST, FARTHEST].map(|x| builder.constant(x));
        let size = builder.apply(Op::Abs, &[largest]);
        let is_far = builder.apply(Op::Gt, &[size, bound]);
        let clamped = builder.apply(Op::Min, &[largest, high]);
        let clamped = builder.apply(Op::Max, &[clamped, low]);
        Some(builder.apply(Op::Select, &[is_far, clamped, zero]))
    }
}

impl<'a> Steps<'a> {
    fn new(graph: &'a Graph, nodes: Vec<Node>, uses: &Array<Node, u32>) -> Steps<'a> {
        let places: HashMap<Node, usize> =
            nodes.iter().enumerate().map(|(place, &node)| (node, place)).collect();
        let mut users = vec![Vec::new(); nodes.len()];
        for (place, &node) in nodes.iter().enumerate() {
            for arg in graph.operands(node) {
                if let Some(&of_arg) = places.get(arg) {
                    users[of_arg].push(place);
                }
            }
        }
        let all = nodes.iter().zip(&users);
        let escapes = all.map(|(&node, users)| users.len() < uses[node] as usize).collect();
        Steps { graph, nodes, places, users, escapes }
    }

    /// Whether the quotient at `place` is of two parts that make up `exponentials`, and is
    /// used only as n/o in 1 + n/o, by which something is divided: where one part vanishes
    /// the other does not, and what is divided is 0 or as it is.
    fn is_share(&self, place: usize, exponentials: &[Node]) -> bool {
        let Def::Apply(Op::Div, [a, b, _]) = self.graph.nodes[self.nodes[place]].def else {
            return false;
        };
        let mut parts: BTreeSet<usize> = BTreeSet::new();
        for part in [a, b] {
            let Some(&place) = self.places.get(&part) else { return false };
            parts.extend(
                self.exponentials(place, &mut HashSet::new()).iter().map(|node| self.places[node]),
            );
        }
        let divides = |user: usize, divisor: Node| match self.graph.nodes[self.nodes[user]].def {
            Def::Apply(Op::Recip, _) => true,
            Def::Apply(Op::Div, [a, b, _]) => b == divisor && a != divisor,
            _ => false,
        };
        let is_whole = |&user: &usize| {
            let node = self.nodes[user];
            let is_sum = match self.graph.nodes[node].def {
                Def::Apply(Op::Add, [_, b, _]) => self.graph.constant(b) == Some(1.0),
                _ => false,
            };
            let users = &self.users[user];
            is_sum && !self.escapes[user] && users.iter().all(|&user| divides(user, node))
        };
        exponentials.iter().all(|node| parts.contains(&self.places[node]))
            && !self.escapes[place]
            && self.users[place].iter().all(is_whole)
    }

    /// Adds the groups of this block to `plan`.
    fn plan(
        &self,
        decisive: &Array<Node, bool>,
        may_overflow: &dyn Fn(Node) -> bool,
        plan: &mut Plan,
    ) {
        let mut is_sum: Vec<bool> = Vec::with_capacity(self.nodes.len());
        for &node in &self.nodes {
            let is_part = |arg: &Node| {
                self.places.get(arg).is_some_and(|&place| is_sum.get(place) == Some(&true))
            };
            is_sum.push(match self.graph.nodes[node].def {
                Def::Apply(Op::Exp, _) => !decisive[node],
                Def::Apply(Op::Add, [a, b, _]) => is_part(&a) && is_part(&b) && !decisive[node],
                _ => weighted(self.graph, node).is_some_and(|part| is_part(&part)),
            });
        }
        let mut taken: HashSet<Node> = HashSet::new();
        // Whole sums before their parts.
        for place in (0..self.nodes.len()).rev() {
            let is_add = matches!(self.graph.nodes[self.nodes[place]].def, Def::Apply(Op::Add, _));
            if !is_sum[place] || !is_add || taken.contains(&self.nodes[place]) {
                continue;
            }
            // Another sum may have parts in common with it.
            let mut parts = HashSet::new();
            let exponentials = self.exponentials(place, &mut parts);
            taken.extend(parts);
            let is_free = |node: &Node| !plan.exponentials.contains_key(node);
            if exponentials.len() > MOST || !exponentials.iter().all(is_free) {
                continue;
            }
            self.plan_group(self.nodes[place], exponentials, decisive, may_overflow, plan);
        }
    }

    /// The exponentials of the sum at `place`, in order, and the sums that it is made of.
    fn exponentials(&self, place: usize, sums: &mut HashSet<Node>) -> Vec<Node> {
        let mut pending = vec![self.nodes[place]];
        let mut found: BTreeSet<usize> = BTreeSet::new();
        while let Some(node) = pending.pop() {
            match self.graph.nodes[node].def {
                Def::Apply(Op::Add, [a, b, _]) if sums.insert(node) => pending.extend([a, b]),
                Def::Apply(Op::Exp, _) => found.extend(self.places.get(&node)),
                _ => pending.extend(weighted(self.graph, node)),
            }
        }
        found.into_iter().map(|place| self.nodes[place]).collect()
    }

    fn plan_group(
        &self,
        sum: Node,
        exponentials: Vec<Node>,
        decisive: &Array<Node, bool>,
        may_overflow: &dyn Fn(Node) -> bool,
        plan: &mut Plan,
    ) {
        let exponents = exponentials.iter().map(|&node| self.graph.operands(node)[0]);
        let exponents: Vec<Node> = exponents.collect();
        if exponents.len() < 2 || !exponents.iter().any(|&exponent| may_overflow(exponent)) {
            return;
        }
        if self.are_shifted(&exponents) {
            return;
        }
        let Some((logarithms, touched)) = self.degrees(sum, &exponentials, decisive) else {
            return;
        };
        let Some(early) = self.early(&exponentials, &exponents, &touched) else { return };
        let is_other = |node: &Node| {
            plan.exponentials.contains_key(node) || plan.logarithms.contains_key(node)
        };
        if early.iter().any(is_other) || logarithms.iter().any(is_other) {
            return;
        }
        let number = plan.groups.len();
        plan.exponentials.extend(exponentials.iter().map(|&node| (node, number)));
        plan.logarithms.extend(logarithms.iter().map(|&node| (node, number)));
        plan.groups.push(Group { exponentials, early });
    }

    /// Whether the same was subtracted from all exponents already.
    fn are_shifted(&self, exponents: &[Node]) -> bool {
        let shift = |&exponent: &Node| match self.graph.nodes[exponent].def {
            Def::Apply(Op::Sub, [_, shift, _]) => Some(shift),
            _ => None,
        };
        let first = exponents.first().and_then(shift);
        first.is_some() && exponents.iter().all(|exponent| shift(exponent) == first)
    }

    /// The logarithms of `sum`, and what depends on the exponentials
    /// up to the last of them. None if scale matters, or if something is divided by another
    /// sum than `sum`: without the largest exponential it may become zero.
    fn degrees(
        &self,
        sum: Node,
        exponentials: &[Node],
        decisive: &Array<Node, bool>,
    ) -> Option<(Vec<Node>, HashSet<usize>)> {
        let mut degrees: HashMap<usize, i32> = HashMap::new();
        let mut pending: BTreeSet<usize> = BTreeSet::new();
        let mut last = 0;
        for node in exponentials {
            let &place = self.places.get(node)?;
            degrees.insert(place, 1);
            last = last.max(place);
        }
        for &place in degrees.keys() {
            pending.extend(&self.users[place]);
            if self.escapes[place] {
                return None;
            }
        }
        let mut logarithms = Vec::new();
        // The sum and its multiples.
        let mut wholes: HashSet<Node> = HashSet::from_iter([sum]);
        while let Some(place) = pending.pop_first() {
            let node = self.nodes[place];
            let Def::Apply(op, args) = self.graph.nodes[node].def else { return None };
            let of = |i: usize| {
                self.places.get(&args[i]).and_then(|place| degrees.get(place)).copied().unwrap_or(0)
            };
            let [a, b, c] = [of(0), of(1), of(2)];
            let degree = match op {
                _ if (0..op.arity()).all(|i| of(i) == 0) => 0,
                Op::Add | Op::Sub | Op::Max | Op::Min if a == b => a,
                Op::Mul => a + b,
                Op::Div if b == 0 || wholes.contains(&args[1]) => a - b,
                Op::Div if a == b && self.is_share(place, exponentials) => 0,
                Op::Recip if wholes.contains(&args[0]) => -a,
                Op::Neg | Op::Abs => a,
                Op::Select if a == 0 && b == c => b,
                Op::Ln if wholes.contains(&args[0]) => {
                    logarithms.push(node);
                    0
                }
                _ => return None,
            };
            let is_wide = degree.abs() > HIGHEST_DEGREE;
            if is_wide || (degree != 0 && (self.escapes[place] || decisive[node])) {
                return None;
            }
            // Logarithms are computed otherwise, and must not decide anything.
            if matches!(op, Op::Ln) && decisive[node] {
                return None;
            }
            degrees.insert(place, degree);
            if weighted(self.graph, node).is_some_and(|part| wholes.contains(&part)) {
                wholes.insert(node);
            }
            if degree != 0 || place < last {
                pending.extend(&self.users[place]);
            }
        }
        Some((logarithms, degrees.into_keys().collect()))
    }

    /// What the exponents need that comes behind the first exponential. None if that
    /// cannot be computed before it.
    fn early(
        &self,
        exponentials: &[Node],
        exponents: &[Node],
        touched: &HashSet<usize>,
    ) -> Option<Vec<Node>> {
        let &first = self.places.get(exponentials.first()?)?;
        let mut early: BTreeSet<usize> = BTreeSet::new();
        let mut pending: Vec<Node> = exponents.to_vec();
        while let Some(node) = pending.pop() {
            let Some(&place) = self.places.get(&node) else { continue };
            if place < first || !early.insert(place) {
                continue;
            }
            let is_application = matches!(self.graph.nodes[node].def, Def::Apply(..));
            if touched.contains(&place) || !is_application {
                return None;
            }
            pending.extend(self.graph.operands(node));
        }
        Some(early.into_iter().map(|place| self.nodes[place]).collect())
    }
}

/// How often each node is used, by anything.
fn uses(graph: &Graph) -> Array<Node, u32> {
    let mut uses = Array::filled(0, graph.nodes.len());
    graph.nodes.values().for_each(|data| data.args().iter().for_each(|&arg| uses[arg] += 1));
    for_each_use(graph, |node| uses[node] += 1);
    uses
}
