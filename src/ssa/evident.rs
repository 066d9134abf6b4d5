//! What is evident: nodes that are finite wherever the graph comes to finite outputs.

use std::collections::BTreeMap;
use std::rc::Rc;

use hashbrown::HashMap;

use super::graph::{Block, Def, End, Graph, Item, Node, Region};
use super::hidden::hides;
use super::nest::Nest;
use crate::entity::Array;
use crate::op::Op;

/// So much is looked at.
const MOST_STEPS: usize = 1 << 20;

/// So often it is asked which values of a loop keep each other from being finite.
const MOST_ROUNDS: usize = 4;

/// So many nodes before a region are looked at on each way through it.
const MOST_OTHERS: usize = 64;

/// From how far a size is seen to be one, in steps.
const DEPTH: usize = 8;

/// Of each node of `graph` whether the graph stops, or comes to an output that is not finite
/// if these `show`, wherever the node is not finite. Nodes need be in no order. `None` if that
/// would take too long.
pub(crate) fn evident_nodes(graph: &Graph, show: bool) -> Option<Array<Node, bool>> {
    let evident = Array::filled(false, graph.nodes.len());
    let (extents, looks) = (Extents::of(graph), HashMap::new());
    let mut walk = Walk { graph, extents, evident, left: MOST_STEPS, looks };
    walk.block(graph.root(), graph.root(), 1, true, &|outputs| {
        let shown = outputs.iter().filter(|_| show);
        Shown { anyway: 0, by: shown.map(|&output| (output, 1)).collect() }
    });
    (walk.left > 0).then_some(walk.evident)
}

/// Where a node that is not finite shows, as a set of channels: there is one for the outputs,
/// and in a loop two for each around it, for what is passed on if this iteration is the last
/// one, and if it is not.
type Channels = u64;

/// In which channels around a region the nodes show that what comes out of it is computed from.
type Inner = BTreeMap<Node, Channels>;

/// A region around which there are so many channels, and those in which its φs show.
type Look = (Region, u32, Box<[Channels]>);

/// In which channels each node shows on the way from a place in the graph to its end.
#[derive(Clone, Default)]
struct Shown {
    /// Where all nodes do, since control flow does not come there.
    anyway: Channels,
    by: BTreeMap<Node, Channels>,
}

impl Shown {
    fn get(&self, node: Node) -> Channels {
        self.anyway | self.by.get(&node).copied().unwrap_or(0)
    }

    /// Whether `node` did not show in all `channels`.
    fn add(&mut self, node: Node, channels: Channels) -> bool {
        let is_new = channels & !self.get(node) != 0;
        if is_new {
            *self.by.entry(node).or_insert(0) |= channels;
        }
        is_new
    }

    /// What shows on both ways.
    fn and(&self, other: &Shown) -> Shown {
        let nodes = self.by.keys().chain(other.by.keys());
        let by = nodes.map(|&node| (node, self.get(node) & other.get(node)));
        let anyway = self.anyway & other.anyway;
        Shown { anyway, by: by.filter(|&(_, channels)| channels != 0).collect() }
    }
}

/// All channels of a block that has so many.
fn all(width: u32) -> Channels {
    Channels::MAX >> (Channels::BITS - width)
}

/// What a condition that comes out as `expect` shows to be finite: what is less than something
/// and would be +∞ or NaN.
fn bounded(graph: &Graph, condition: Node, expect: bool) -> Option<Node> {
    let (less, more) = match graph.nodes[condition].def {
        Def::Apply(Op::Lt | Op::Le, [less, more, _]) => (less, more),
        Def::Apply(Op::Gt | Op::Ge, [more, less, _]) => (less, more),
        _ => return None,
    };
    let is_strict = matches!(graph.nodes[condition].def, Def::Apply(Op::Lt | Op::Gt, _));
    let is_less = is_strict || graph.constant(more).is_some_and(f64::is_finite);
    (expect && is_less && is_size(graph, less, DEPTH)).then_some(less)
}

/// Whether `node` is +∞ or NaN if it is not finite.
fn is_size(graph: &Graph, node: Node, depth: usize) -> bool {
    let is_positive = |node| graph.constant(node) > Some(0.0);
    let is_also = |node| depth > 0 && is_size(graph, node, depth - 1);
    match graph.nodes[node].def {
        Def::Apply(Op::Abs | Op::Sqrt | Op::Hypot, _) => true,
        Def::Apply(Op::Mul, [a, b, _]) if a == b => true,
        Def::Apply(Op::Mul, [a, b, _]) if is_positive(a) => is_also(b),
        Def::Apply(Op::Mul | Op::Div, [a, b, _]) if is_positive(b) => is_also(a),
        Def::Apply(Op::Add, [a, b, _]) => is_also(a) && is_also(b),
        _ => false,
    }
}

/// Which nodes are in a tree of blocks: blocks have numbers in preorder.
struct Extents {
    numbers: Array<Block, usize>,
    /// The first number after the tree of each block.
    ends: Array<Block, usize>,
    /// The number of the block of each node; what is in none counts as in the first.
    of_nodes: Array<Node, usize>,
}

impl Extents {
    fn of(graph: &Graph) -> Extents {
        let (order, nest) = (graph.preorder(), Nest::of(graph));
        let mut numbers = Array::filled(0, graph.blocks.len());
        let mut ends = numbers.clone();
        for (number, &block) in order.iter().enumerate() {
            (numbers[block], ends[block]) = (number, number + 1);
        }
        let parents = graph.parents();
        for &block in order.iter().rev() {
            if let Some(parent) = parents[block] {
                ends[parent] = ends[parent].max(ends[block]);
            }
        }
        let number = |node: Node| nest.node_block(node).map_or(0, |block| numbers[block]);
        let of_nodes = graph.nodes.keys().map(number).collect();
        Extents { numbers, ends, of_nodes }
    }

    fn contains(&self, block: Block, node: Node) -> bool {
        (self.numbers[block]..self.ends[block]).contains(&self.of_nodes[node])
    }
}

struct Walk<'a> {
    graph: &'a Graph,
    extents: Extents,
    evident: Array<Node, bool>,
    /// How many steps are left.
    left: usize,
    /// What was found in regions.
    looks: HashMap<Look, Rc<Inner>>,
}

impl Walk<'_> {
    /// What shows from the beginning of `block` on, which is in the tree below `top`, where `leaf`
    /// says it of the values that an end passes on. Where this is the last word on the nodes of the
    /// block they are noted.
    fn block(
        &mut self,
        block: Block,
        top: Block,
        width: u32,
        is_last: bool,
        leaf: &dyn Fn(&[Node]) -> Shown,
    ) -> Shown {
        let graph = self.graph;
        let mut shown = match &graph.blocks[block].end {
            End::Open => Shown::default(),
            End::Return(values) => leaf(values),
            &End::Branch { condition, then, otherwise } => {
                let sides = [(then, true), (otherwise, false)].map(|(side, expect)| {
                    let mut shown = self.block(side, top, width, is_last, leaf);
                    if let Some(finite) = bounded(graph, condition, expect) {
                        shown.add(finite, all(width));
                        self.close(&mut shown, top, width, vec![finite]);
                    }
                    shown
                });
                self.left = self.left.saturating_sub(sides[0].by.len() + sides[1].by.len());
                sides[0].and(&sides[1])
            }
        };
        for item in &graph.blocks[block].items {
            if let Item::Guard { condition, expect } = *item
                && let Some(finite) = bounded(graph, condition, expect)
            {
                shown.add(finite, all(width));
            }
        }
        let nodes: Vec<Node> = shown.by.keys().copied().collect();
        self.close(&mut shown, top, width, nodes);
        if is_last {
            for item in &graph.blocks[block].items {
                match *item {
                    Item::Node(node) => self.evident[node] = shown.get(node) == all(width),
                    Item::Region(region) => {
                        for &phi in &graph.regions[region].phis {
                            self.evident[phi] = shown.get(phi) == all(width);
                        }
                        self.region(region, &shown, width, true);
                    }
                    Item::Guard { .. } | Item::Fill(_) | Item::Accumulate(..) => {}
                }
            }
        }
        shown
    }

    /// Adds what the `pending` nodes are computed from, as far as they are in the tree below
    /// `top`, or are few. Of the rest that is added around it, or each of several regions in a row
    /// would look at all before it; what several ways have in common only by way of such nodes
    /// is not found.
    fn close(&mut self, shown: &mut Shown, top: Block, width: u32, mut pending: Vec<Node>) {
        let mut others = MOST_OTHERS;
        // A region is looked at when nothing else is left that may show what comes out of it, the
        // last one first; and again if more shows of that later.
        let mut regions: BTreeMap<usize, Region> = BTreeMap::new();
        while self.left > 0 {
            let Some(node) = pending.pop() else {
                let Some((_, region)) = regions.pop_last() else { return };
                self.left -= 1;
                let root = self.graph.regions[region].root;
                // What it says of nodes in it is for it alone.
                let inner = self.seen(region, shown, width);
                let outside = inner.iter().filter(|(node, _)| !self.extents.contains(root, **node));
                let new = outside.filter(|&(&node, &of)| shown.add(node, of));
                pending.extend(new.map(|(&node, _)| node));
                continue;
            };
            self.left -= 1;
            if !self.extents.contains(top, node) {
                let is_phi = matches!(self.graph.nodes[node].def, Def::Phi(..));
                if others == 0 || is_phi {
                    continue;
                }
                others -= 1;
            }
            let channels = shown.get(node);
            match self.graph.nodes[node].def {
                Def::Apply(op, args) => {
                    for (operand, &arg) in args[..op.arity()].iter().enumerate() {
                        let hides = hides(self.graph, op, &args, operand) || op == Op::Select;
                        if !hides && shown.add(arg, channels) {
                            pending.push(arg);
                        }
                    }
                }
                Def::Phi(region, _) => {
                    let root = self.graph.regions[region].root;
                    regions.insert(self.extents.numbers[root], region);
                }
                Def::Input(_) | Def::Const(_) | Def::Entry(..) => {}
                Def::Iteration(_) | Def::Element(_) | Def::Call(_) | Def::Result(..) => {}
            }
        }
    }

    /// As [`Walk::region`] if that is not the last word, looked for once: the ways through what is
    /// around a region all come to it, and mostly with the same of its φs.
    fn seen(&mut self, region: Region, outer: &Shown, width: u32) -> Rc<Inner> {
        let phis = &self.graph.regions[region].phis;
        let of_phis = phis.iter().map(|&phi| outer.get(phi)).collect();
        let key: Look = (region, width, of_phis);
        if let Some(known) = self.looks.get(&key) {
            return Rc::clone(known);
        }
        let found = Rc::new(self.region(region, outer, width, false));
        // What is kept costs, too.
        self.left = self.left.saturating_sub(found.len());
        self.looks.insert(key, Rc::clone(&found));
        found
    }

    /// In which channels around `region` the nodes show that it is computed from.
    fn region(&mut self, region: Region, outer: &Shown, width: u32, is_last: bool) -> Inner {
        let (graph, data) = (self.graph, &self.graph.regions[region]);
        let outer: Vec<Channels> = data.phis.iter().map(|&phi| outer.get(phi)).collect();
        if data.cycle.is_none() {
            let shown = self.block(data.root, data.root, width, is_last, &|values| {
                let mut shown = Shown::default();
                for (&value, &channels) in values.iter().zip(&outer) {
                    shown.add(value, channels);
                }
                shown
            });
            return shown.by;
        }
        if width > Channels::BITS / 2 {
            return BTreeMap::new();
        }
        let (decides, nexts) = graph.passed_before_phis(region);
        let entries = graph.entries(region);
        // First all that it carries is taken to show, then what does if that does.
        let mut carried = vec![all(width); nexts];
        for round in 0.. {
            let shown = self.block(data.root, data.root, 2 * width, is_last, &|values| {
                let again = (decides == 1).then(|| graph.constant(values[0])).flatten();
                let anyway = match again {
                    Some(0.0) => all(width) << width,
                    Some(_) => all(width),
                    None => 0,
                };
                let mut shown = Shown { anyway, by: BTreeMap::new() };
                for (&value, &channels) in values[decides..].iter().zip(&carried) {
                    shown.add(value, channels << width);
                }
                for (&value, &channels) in values[decides + nexts..].iter().zip(&outer) {
                    shown.add(value, channels);
                }
                shown
            });
            let both = |node| shown.get(node) & shown.get(node) >> width & all(width);
            let known: Vec<Channels> = entries.iter().map(|entry| both(entry.phi)).collect();
            if round > MOST_ROUNDS || known == carried {
                let nodes = shown.by.keys();
                let mut from: Inner = nodes.map(|&node| (node, both(node))).collect();
                for (entry, channels) in entries.iter().zip(known) {
                    *from.entry(entry.first).or_insert(0) |= channels;
                }
                return from;
            }
            // Where that has no end nothing that it carries shows.
            carried = if round == MOST_ROUNDS { vec![0; nexts] } else { known };
        }
        BTreeMap::new()
    }
}

#[cfg(test)]
mod tests {
    use super::{MOST_OTHERS, MOST_STEPS, evident_nodes};
    use crate::entity::Entity;
    use crate::op::Op;
    use crate::ssa::{Builder, Def, End, Folding, Node, ParseError, parse};

    /// The ids of the nodes of the graph of `text` that are evident.
    fn evident(text: &str) -> Result<Vec<usize>, ParseError> {
        let graph = parse(&format!("graph active 2 inactive 0\n{text}"))?;
        let found = evident_nodes(&graph, true).unwrap();
        Ok(found.iter().filter(|&(_, &is)| is).map(|(node, _)| node.index()).collect())
    }

    #[test]
    fn what_reaches_an_output_on_all_ways_is_evident() -> Result<(), ParseError> {
        // Only the hyperbolic tangent hides what is not finite.
        let line = "b0:\n  v2 = mul v0 v1\n  v3 = tanh v0\n  v4 = add v2 v3\n  return v4\n";
        assert_eq!(evident(line)?, [2, 3, 4]);
        let two = |then: &str, otherwise: &str, rest: &str| {
            format!(
                "v2 = const 1.0\nb0:\n  v3 = mul v0 v1\n  v4 = abs v3\n  v5 = lt v4 v2\n  \
                 v6 = mul v0 v0\n  v9 = region r0 b1\n{rest}b1:\n  branch v5 b2 b3\nb2:\n  \
                 v7 = add {then}\n  return v7\nb3:\n  v8 = add {otherwise}\n  return v8\n"
            )
        };
        let end = "  return v9\n";
        assert_eq!(evident(&two("v6 v2", "v3 v6", end))?, [3, 6, 7, 8, 9]);
        // Where its size is less than 1 the product is finite; elsewhere it may not be.
        assert_eq!(evident(&two("v2 v2", "v3 v2", end))?, [3, 7, 8, 9]);
        assert_eq!(evident(&two("v3 v2", "v2 v2", end))?, [7, 8, 9]);
        assert_eq!(evident(&two("v6 v2", "v2 v2", end))?, [7, 8, 9]);
        // A guard stops the graph.
        assert_eq!(evident(&two("v2 v2", "v2 v2", "  guard v5\n  return v9\n"))?, [3, 4, 7, 8, 9]);
        assert_eq!(evident(&two("v2 v2", "v2 v2", "  guard v5\n  return v2\n"))?, [3, 4]);
        Ok(())
    }

    #[test]
    fn what_a_loop_carries_to_its_end_is_evident() -> Result<(), ParseError> {
        // v3 = v3 + v0·v6 and v4 = v4·v1, as long as v3 is less than 9.
        let two = |nexts: &str, exits: &str, output: &str| {
            format!(
                "v2 = const 9.0\nv5 = iteration r0\nb0:\n  v11 = region r0 b1 bound 9 entries \
                 v3=v0 v4=v1\n  return {output}\nb1:\n  v6 = mul v0 v1\n  v7 = add v3 v6\n  v8 = \
                 mul v4 v1\n  v9 = mul v6 v1\n  v10 = lt v3 v2\n  return v10 {nexts} {exits}\n"
            )
        };
        assert_eq!(evident(&two("v7 v8", "v7", "v11"))?, [6, 7, 11]);
        // What comes out is from before this iteration.
        assert_eq!(evident(&two("v7 v8", "v3", "v11"))?, [11]);
        assert_eq!(evident(&two("v7 v8", "v8", "v11"))?, [8, 11]);
        // Each is what the other was.
        assert_eq!(evident(&two("v4 v7", "v7", "v11"))?, [11]);
        assert_eq!(evident(&two("v9 v8", "v9", "v11"))?, [11]);
        assert_eq!(evident(&two("v7 v8", "v7", "v2"))?, []);
        Ok(())
    }

    #[test]
    fn many_regions_in_a_row_are_looked_at_once_each() -> Result<(), ParseError> {
        // Each chooses between what came out of the one before and its double.
        const MANY: usize = 400;
        let (mut root, mut sides) = (String::new(), String::new());
        for k in 0..MANY {
            let (before, [doubled, out]) = (3 + 2 * k, [4, 5].map(|id| id + 2 * k));
            let [top, then, otherwise] = [1, 2, 3].map(|id| id + 3 * k);
            root.push_str(&format!("  v{out} = region r{k} b{top}\n"));
            sides.push_str(&format!(
                "b{top}:\n  branch v0 b{then} b{otherwise}\nb{then}:\n  v{doubled} = add \
                 v{before} v{before}\n  return v{doubled}\nb{otherwise}:\n  return v{before}\n"
            ));
        }
        let last = 3 + 2 * MANY;
        let found = evident(&format!(
            "v2 = const 1.0\nb0:\n  v3 = mul v1 v1\n{root}  return v{last}\n{sides}"
        ))?;
        assert_eq!(found, (3..=last).collect::<Vec<_>>());
        Ok(())
    }

    /// Regions that are in each other, so `deep`, each of which chooses between the sines and the
    /// cosines of what comes out of the one in it.
    fn nested(builder: &mut Builder, deep: usize) -> Vec<Node> {
        let inputs = [0, 1, 2, 3, 4, 5, 6, 7].map(|index| builder.input(index));
        if deep == 0 {
            return inputs.into();
        }
        let region = builder.begin_region(None);
        let inner = nested(builder, deep - 1);
        let (then, otherwise) = builder.branch(inputs[0]);
        for (side, op) in [(then, Op::Sin), (otherwise, Op::Cos)] {
            builder.enter(side);
            let passed: Vec<Node> = inner.iter().map(|&node| builder.apply(op, &[node])).collect();
            builder.finish_block(&passed);
            builder.leave();
        }
        builder.end_region(region, inner.len())
    }

    #[test]
    fn regions_in_each_other_are_looked_at_once_each() {
        // Not once for each of the eight numbers that come out, or that would be 8¹² times.
        let mut builder = Builder::new(8, 0, Folding::Exact);
        let outputs = nested(&mut builder, 12);
        builder.finish_block(&outputs);
        let graph = builder.into_graph();
        let found = evident_nodes(&graph, true).unwrap();
        // In each a sine and a cosine, one of which comes out, of which all that is computed shows
        // in an output.
        let computed = graph.nodes.iter().filter(|(_, data)| !matches!(data.def, Def::Input(_)));
        let is_shown: Vec<bool> = computed.map(|(node, _)| found[node]).collect();
        assert_eq!(is_shown, [true; 12 * 8 * 3]);
    }

    #[test]
    fn ways_have_nodes_before_them_in_common() -> Result<(), ParseError> {
        // One side is the product, the other is made of it in so many steps.
        let text = |steps: usize| {
            let chain = (4..4 + steps).map(|id| format!("  v{id} = add v{} v2\n", id - 1));
            let chain: String = chain.collect();
            let (last, out) = (3 + steps, 4 + steps);
            format!(
                "v2 = const 1.0\nb0:\n  v3 = mul v0 v1\n{chain}  v{out} = region r0 b1\n  \
                 return v{out}\nb1:\n  branch v0 b2 b3\nb2:\n  return v3\nb3:\n  return v{last}\n"
            )
        };
        let near = MOST_OTHERS - 1;
        assert_eq!(evident(&text(near))?, [3, 4 + near]);
        // From too far that is not found.
        let far = MOST_OTHERS + 1;
        assert_eq!(evident(&text(far))?, [4 + far]);
        Ok(())
    }

    #[test]
    fn nothing_is_told_of_what_takes_too_long() -> Result<(), ParseError> {
        let mut graph = parse("graph active 1 inactive 0\nb0:\n  v1 = neg v0\n  return v1\n")?;
        let root = graph.root();
        let mut last = graph.nodes.keys().last().unwrap();
        for _ in 2..MOST_STEPS - 1 {
            last = graph.push_apply(root, Op::Neg, &[last], None);
        }
        graph.blocks[root].end = End::Return(vec![last].into());
        assert!(evident_nodes(&graph, true).is_some_and(|found| found[last]));
        last = graph.push_apply(root, Op::Neg, &[last], None);
        graph.blocks[root].end = End::Return(vec![last].into());
        assert!(evident_nodes(&graph, true).is_none());
        Ok(())
    }
}
