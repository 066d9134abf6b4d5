//! Gathered adjoints: sums that are computed with twice the digits.
//!
//! What a closed form makes of several numbers is a matrix of known derivatives. Where it
//! has grown, what the numbers pass on to one that they began as may cancel: a loop would
//! have passed on little or nothing in each step, and of the sum of the rounded products no
//! digit is left. So these are summed as in "Accurate Sum and Dot Product" (Ogita, Rump and
//! Oishi 2005), algorithm Dot2.

use hashbrown::HashMap;

use super::activity::Activity;
use super::reverse::Reverse;
use crate::entity::Array;
use crate::op::Op;
use crate::ssa::{Builder, Def, Folding, Node, is_way, tangent_sum};

/// Which nodes have adjoints that are gathered: tangents of what comes from a loop, and ways
/// of it, that several derivatives are multiplied by in the block that they are in. Only for
/// [`Folding::Real`]: otherwise the order of additions is that of the tape.
pub(super) fn gathered(activity: &Activity<'_>, folding: Folding) -> Array<Node, bool> {
    let graph = activity.graph;
    let mut gathered = Array::filled(false, graph.nodes.len());
    if folding == Folding::Exact {
        return gathered;
    }
    let mut comes_from_loop = gathered.clone();
    for node in graph.nodes.keys() {
        let args = graph.nodes[node].args();
        comes_from_loop[node] = match tangent_sum(graph, node) {
            Some(sum) => graph.nodes[sum].args().iter().any(|&arg| graph.is_from_loop(arg)),
            None => args.iter().any(|&arg| comes_from_loop[arg]) && is_way(graph, node),
        };
    }
    /// How many products a node is a factor of, and whether it is used elsewhere.
    #[derive(Clone, Copy, Default)]
    struct Uses {
        products: u32,
        is_outside: bool,
    }
    let mut uses: HashMap<Node, Uses> = HashMap::new();
    for user in graph.nodes.keys().filter(|&user| activity.active[user]) {
        let Def::Apply(op, _) = graph.nodes[user].def else { continue };
        for &arg in graph.nodes[user].args().iter().filter(|&&arg| comes_from_loop[arg]) {
            let uses = uses.entry(arg).or_default();
            uses.products += u32::from(op == Op::Mul);
            uses.is_outside |= activity.nest.node_block(user) != activity.nest.node_block(arg);
        }
    }
    for (node, uses) in uses {
        gathered[node] = uses.products > 1 && !uses.is_outside;
    }
    gathered
}

impl Reverse<'_> {
    /// Adds `passed` to the adjoint of `node`, which is gathered.
    pub(super) fn gather(&mut self, node: Node, passed: Node) {
        let (sum, lost) = match self.adjoints.get(node) {
            Some(before) => split_sum(&mut self.builder, before, passed),
            None => (passed, None),
        };
        self.adjoints.set(node, sum);
        self.gather_lost(node, lost);
    }

    /// Adds the product of `adjoint` and `slope` to the adjoint of `node`, which is gathered.
    pub(super) fn gather_product(&mut self, node: Node, adjoint: Node, slope: Node) {
        let product = self.builder.apply(Op::Mul, &[adjoint, slope]);
        self.gather(node, product);
        let negative = self.builder.apply(Op::Neg, &[product]);
        let lost = self.builder.apply(Op::MulAdd, &[adjoint, slope, negative]);
        self.gather_lost(node, Some(lost));
    }

    /// `adjoint`, that of `node`, with what rounding has taken from it.
    pub(super) fn with_lost(&mut self, node: Node, adjoint: Node) -> Node {
        match self.lost.remove(&node) {
            Some(lost) => self.builder.apply(Op::Add, &[adjoint, lost]),
            None => adjoint,
        }
    }

    fn gather_lost(&mut self, node: Node, lost: Option<Node>) {
        let Some(lost) = lost else { return };
        let sum = match self.lost.get(&node) {
            Some(&before) => self.builder.apply(Op::Add, &[before, lost]),
            None => lost,
        };
        self.lost.insert(node, sum);
    }
}

/// `a + b`, and what rounding takes from it, by Knuth's sum without error. That differences are
/// products makes rewriting leave them as they are.
fn split_sum(builder: &mut Builder, a: Node, b: Node) -> (Node, Option<Node>) {
    let sum = builder.apply(Op::Add, &[a, b]);
    let less = builder.constant(-1.0);
    let of_b = builder.apply(Op::MulAdd, &[a, less, sum]);
    let of_a = builder.apply(Op::MulAdd, &[of_b, less, sum]);
    let (lost_a, lost_b) = (builder.apply(Op::Sub, &[a, of_a]), builder.apply(Op::Sub, &[b, of_b]));
    (sum, Some(builder.apply(Op::Add, &[lost_a, lost_b])))
}
