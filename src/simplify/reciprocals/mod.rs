//! Strength reduction of divisions: a divisor that is used several times is inverted once, a
//! constant one when the kernel is made, and the divisions become multiplications.
//!
//! - `candidates`: the divisions that may become multiplications
//! - `places`: where reciprocals are computed, and whether they may overflow
//!
//! The product x · (1/d) has an error of at most 1.5 ulp where the quotient has 0.5; above 2¹⁰²²,
//! where 1/d is subnormal, 2.5 ulp. For 0 < |d| ≤ 2⁻¹⁰²⁴ the reciprocal overflows, so a finite
//! quotient would become infinite. Unless d is known not to be so small, a guard stops the graph:
//! 1/d · d is infinite for these d alone. It is NaN where d is 0 or infinite, and the products by
//! 1/d are what the quotients are.

mod candidates;
mod places;

use std::collections::BTreeMap;

use hashbrown::HashMap;

use self::candidates::candidates;
use self::places::{Place, Places};
use crate::entity::PrimaryMap;
use crate::op::Op;
use crate::ssa::{
    ArrayData, Block, Def, Editor, Flow, Folding, Graph, Item, Nest, Node, NodeData, padded,
    simplify, verify,
};

/// The graph with each divisor inverted once where it is used several times on a path, or in each
/// iteration of a loop in which it is invariant. Constant divisors are inverted here.
///
/// Divisions on which a comparison or a singularity depends keep their bits.
///
/// # Examples
///
/// ```
/// use phigrad::internals::simplify::share_reciprocals;
/// use phigrad::internals::ssa::parse;
///
/// let text = "graph active 3 inactive 0\nb0:\n  v3 = sqrt v0\n  v4 = div v1 v3\n  \
///             v5 = div v2 v3\n  v6 = add v4 v5\n  return v6\n";
/// let shared = share_reciprocals(&parse(text)?).to_string();
/// let expected = "v3 = sqrt v0\n  v4 = recip v3\n  v5 = mul v1 v4\n  v6 = mul v2 v4\n";
/// assert!(shared.contains(expected), "{shared}");
/// # Ok::<(), phigrad::internals::ssa::ParseError>(())
/// ```
pub fn share_reciprocals(graph: &Graph) -> Graph {
    let divides = |data: &NodeData| matches!(data.def, Def::Apply(Op::Div | Op::Recip, _));
    if !graph.nodes.values().any(divides) {
        return graph.clone();
    }
    let (flow, nest) = (Flow::of(graph), Nest::of(graph));
    let candidates = candidates(graph, &flow, &nest);
    let mut divisions: BTreeMap<Node, Vec<Division>> = BTreeMap::new();
    for block in graph.preorder() {
        for item in &graph.blocks[block].items {
            if let Item::Node(node) = *item
                && candidates[node]
                && let Some(&divisor) = graph.operands(node).last()
            {
                divisions.entry(divisor).or_default().push(Division { node, block });
            }
        }
    }
    let places = Places::of(graph, &flow, nest, &candidates);
    let mut edit = Edit::of(graph);
    for (&divisor, divisions) in &divisions {
        match graph.constant(divisor) {
            Some(number) => edit.multiply_by(number.recip(), divisions),
            None => {
                for place in places.of_reciprocals(divisor, divisions) {
                    edit.share(divisor, &place, places.may_overflow(divisor, place.block));
                }
            }
        }
    }
    edit.finish().unwrap_or_else(|| graph.clone())
}

/// A quotient or a reciprocal, and its block.
#[derive(Clone, Copy)]
struct Division {
    node: Node,
    block: Block,
}

/// The edited graph.
struct Edit<'a> {
    graph: &'a Graph,
    editor: Editor,
    /// The steps to insert at the start of each block.
    at_start: HashMap<Block, Vec<Item>>,
    /// The steps to insert after the definition of each divisor.
    after: HashMap<Node, Vec<Item>>,
    /// True for nodes whose values an array saves: they must stay in their loop.
    is_saved: PrimaryMap<Node, bool>,
}

impl<'a> Edit<'a> {
    fn of(graph: &'a Graph) -> Self {
        let mut is_saved = PrimaryMap::filled(false, graph.nodes.len());
        for array in graph.arrays.values() {
            if let ArrayData::Saved(node) = *array {
                is_saved[node] = true;
            }
        }
        let (at_start, after) = Default::default();
        Edit { graph, editor: Editor::of(graph), at_start, after, is_saved }
    }

    /// Makes `divisions` multiplications by a constant, unless that is infinite or subnormal.
    fn multiply_by(&mut self, reciprocal: f64, divisions: &[Division]) {
        if reciprocal.is_normal() {
            let reciprocal = self.editor.push_const(reciprocal.to_bits());
            self.multiply(reciprocal, divisions);
        }
    }

    /// Computes the reciprocal of `divisor` once for the divisions of `place`. With `is_guarded`
    /// the graph stops if it overflows.
    fn share(&mut self, divisor: Node, place: &Place, is_guarded: bool) {
        let source = self.graph.nodes[divisor].place;
        let mut items = Vec::new();
        let mut apply = |op, args: &[Node]| {
            let def = Def::Apply(op, padded(args));
            let node = self.editor.nodes.push(NodeData { def, place: source });
            items.push(Item::Node(node));
            node
        };
        let reciprocal = apply(Op::Recip, &[divisor]);
        if is_guarded {
            let product = apply(Op::Mul, &[reciprocal, divisor]);
            let infinity = self.editor.push_const(f64::INFINITY.to_bits());
            let def = Def::Apply(Op::Eq, padded(&[product, infinity]));
            let condition = self.editor.nodes.push(NodeData { def, place: source });
            items.extend([Item::Node(condition), Item::Guard { condition, expect: false }]);
        }
        match place.is_after_divisor {
            true => self.after.insert(divisor, items),
            false => {
                let at_start = self.at_start.entry(place.block).or_default();
                at_start.extend(items);
                None
            }
        };
        self.multiply(reciprocal, &place.divisions);
    }

    fn multiply(&mut self, reciprocal: Node, divisions: &[Division]) {
        for &Division { node, .. } in divisions {
            match self.graph.nodes[node].def {
                Def::Apply(Op::Div, [dividend, ..]) => {
                    let args = padded(&[dividend, reciprocal]);
                    self.editor.nodes[node].def = Def::Apply(Op::Mul, args);
                }
                _ if self.is_saved[node] => {}
                _ => self.editor.replace(node, reciprocal),
            }
        }
    }

    /// The edited graph; `None` if it is the old one.
    fn finish(mut self) -> Option<Graph> {
        if self.editor.nodes.len() == self.graph.nodes.len() {
            return None;
        }
        for (block, data) in self.graph.blocks.iter() {
            let mut items = self.at_start.remove(&block).unwrap_or_default();
            for &item in &data.items {
                items.push(item);
                let defined: &[Node] = match &item {
                    Item::Node(node) => core::slice::from_ref(node),
                    Item::Region(region) => &self.graph.regions[*region].phis,
                    Item::Guard { .. } | Item::Fill(_) | Item::Accumulate(..) | Item::Store(..) => {
                        &[]
                    }
                };
                for node in defined {
                    items.extend(self.after.remove(node).into_iter().flatten());
                }
            }
            self.editor.blocks[block].items = items;
        }
        let edited = self.editor.finish().filter(|edited| {
            let verified = verify(edited);
            debug_assert!(verified.is_ok(), "{verified:?}\n{}", self.graph);
            verified.is_ok()
        });
        edited.map(|edited| simplify(&edited, Folding::Real))
    }
}
