//! φs of branches: F1 to F3, C1, C3 and C4. (C2 is what `diff` does.)
//!
//! None of them changes a bit of any value: they say that the same operations are
//! done in another arm of the place where paths join. All primitives are pure and
//! total, so each may be done where its operands are known. It is done there only
//! where something comes of it: an operation folds, is known already, or stands
//! beside something that cancels with it when segments are simplified.

mod cancel;
mod place;

use std::collections::BTreeSet;

use hashbrown::{HashMap, HashSet};
use smallvec::SmallVec;

use self::cancel::cancels;
use self::place::Places;
use super::rule::{Applied, Rule};
use crate::entity::PrimaryMap;
use crate::explain::notation::Brief;
use crate::op::{MAX_ARITY, Op};
use crate::ssa::{
    Block, Def, End, Graph, Item, Node, NodeData, Region, eliminate_dead_code, in_order, verify,
};

/// How often the graph is gone through at most.
const ROUNDS: usize = 8;
/// Nothing is moved into a branch of more ends.
const MOST_ENDS: usize = 8;
/// So many steps are moved before a branch at most, for one operation.
const MOST_MOVED: usize = 16;

/// A graph with simpler branches, and how it came to it.
#[derive(Clone, Debug)]
pub struct Branched {
    /// The graph.
    pub graph: Graph,
    /// The formulas that were applied.
    pub applied: Vec<Applied>,
}

/// Simplifies the φs of the branches of `graph`, a verified graph. Its outputs
/// keep their bits. A graph that replays regions stays as it is.
///
/// # Examples
///
/// ```
/// use phigrad::internals::phi::{Rule, simplify_branches};
/// use phigrad::internals::ssa::parse;
///
/// // exp(if x > 0 { ln(y) } else { y })
/// let text = "graph active 2 inactive 0\nv2 = const 0.0\nb0:\n  v3 = gt v0 v2\n  \
///             v5 = region r0 b1\n  v6 = exp v5\n  return v6\nb1:\n  branch v3 b2 b3\nb2:\n  \
///             v4 = ln v1\n  return v4\nb3:\n  return v1\n";
/// let branched = simplify_branches(&parse(text)?);
/// assert_eq!(branched.applied[0].rule, Rule::F2);
/// assert_eq!(branched.applied[0].form, "e^φ(x₀ > 0; ln(x₁), x₁) = φ(x₀ > 0; e^ln(x₁), e^x₁)");
/// assert!(branched.graph.to_string().ends_with("v4 = ln v1\n  v5 = exp v4\n  return v5\nb3:\n  v6 = exp v1\n  return v6\n"));
/// # Ok::<(), phigrad::internals::ssa::ParseError>(())
/// ```
pub fn simplify_branches(graph: &Graph) -> Branched {
    let mut branched = Branched { graph: graph.clone(), applied: Vec::new() };
    if graph.regions.values().any(|data| data.replays.is_some()) {
        return branched;
    }
    for _ in 0..ROUNDS {
        let Some((graph, mut applied)) = round(&branched.graph) else { break };
        branched.graph = graph;
        branched.applied.append(&mut applied);
    }
    branched
}

/// Goes through the graph once; `None` if there is nothing to do.
fn round(graph: &Graph) -> Option<(Graph, Vec<Applied>)> {
    let has_phis = |region: &Region| is_branch(graph, *region);
    if !graph.regions.keys().any(|region| has_phis(&region)) {
        return None;
    }
    let mut edit = Edit::of(graph);
    for block in graph.preorder() {
        for region in graph.regions_of(block).filter(has_phis) {
            edit.order_sides(region);
            edit.identity(region);
            edit.exchange(region);
        }
        edit.users(block);
    }
    edit.finish()
}

/// Whether `region` is no loop and has φs.
fn is_branch(graph: &Graph, region: Region) -> bool {
    graph.regions[region].cycle.is_none() && !graph.regions[region].phis.is_empty()
}

/// A graph on its way into another. What is decided rests on the graph as it was,
/// so each region and node is touched once.
struct Edit<'a> {
    places: Places<'a>,
    new: Graph,
    replaced: HashMap<Node, Node>,
    touched: HashSet<Region>,
    /// Steps to be inserted before a region.
    before: HashMap<Region, Vec<Node>>,
    /// Steps that are inserted elsewhere.
    moved: HashSet<Node>,
    applied: Vec<Applied>,
}

impl<'a> Edit<'a> {
    fn of(graph: &'a Graph) -> Self {
        Edit {
            places: Places::of(graph),
            new: graph.clone(),
            replaced: HashMap::new(),
            touched: HashSet::new(),
            before: HashMap::new(),
            moved: HashSet::new(),
            applied: Vec::new(),
        }
    }

    fn brief(&self) -> Brief<'a> {
        Brief::new(self.places.graph)
    }

    fn graph(&self) -> &'a Graph {
        self.places.graph
    }

    fn note(&mut self, rule: Rule, node: Node, form: String) {
        let at = self.graph().place(self.graph().nodes[node].place).cloned();
        self.applied.push(Applied { rule, at, form });
    }

    /// The ends of `region` with what they pass on for φ `number`.
    fn passed(&self, region: Region, number: usize) -> Vec<(Block, Node)> {
        let graph = self.graph();
        let leaves = graph.leaves(graph.regions[region].root);
        let value = |leaf: Block| match &graph.blocks[leaf].end {
            End::Return(values) => values.get(number).map(|&value| (leaf, value)),
            End::Branch { .. } | End::Open => None,
        };
        leaves.into_iter().filter_map(value).collect()
    }

    /// F3: the arms of a branch change places where the complement of its
    /// condition is known.
    fn order_sides(&mut self, region: Region) {
        let graph = self.graph();
        let root = graph.regions[region].root;
        let End::Branch { condition, then, otherwise } = graph.blocks[root].end else { return };
        // Of numbers that are not ordered both are false but for these two.
        let (Def::Apply(Op::Ne, args), Some((block, at))) =
            (graph.nodes[condition].def, self.places.regions[region])
        else {
            return;
        };
        let args = args.map(|arg| self.places.values[arg]);
        let complement = self.places.value(Op::Eq, &args[..2]);
        let Some(known) = self.places.known(complement, block, at) else { return };
        let end = End::Branch { condition: known, then: otherwise, otherwise: then };
        self.new.blocks[root].end = end;
        let phi = graph.regions[region].phis[0];
        let form = self.brief().complement(condition, [then, otherwise]);
        self.note(Rule::F3, phi, form);
        self.touched.insert(region);
    }

    /// F1: a φ of equal values is that value.
    fn identity(&mut self, region: Region) {
        let Some((block, at)) = self.places.regions[region] else { return };
        for (number, &phi) in self.graph().regions[region].phis.iter().enumerate() {
            let passed = self.passed(region, number);
            let Some(&(_, first)) = passed.first() else { continue };
            let value = self.places.values[first];
            let same = |&(_, other): &(Block, Node)| self.places.values[other] == value;
            if self.touched.contains(&region) || self.places.past[phi] || !passed.iter().all(same) {
                continue;
            }
            let outside = match self.places.known(value, block, at) {
                Some(known) => known,
                None => match self.copied(first, region) {
                    Some(copy) => copy,
                    None => continue,
                },
            };
            let form = self.brief().same(phi, first);
            self.note(Rule::F1, phi, form);
            self.replaced.insert(phi, outside);
        }
    }

    /// A copy of `node`, in the tree of `region`, before it. Each path through the
    /// region computed it, so nothing more is computed than before.
    fn copied(&mut self, node: Node, region: Region) -> Option<Node> {
        let (block, at) = self.places.regions[region]?;
        let mut moved: BTreeSet<Node> = BTreeSet::new();
        let mut pending = vec![node];
        while let Some(node) = pending.pop() {
            if self.places.is_visible(node, block, at) || !moved.insert(node) {
                continue;
            }
            if moved.len() > MOST_MOVED || !matches!(self.graph().nodes[node].def, Def::Apply(..)) {
                return None;
            }
            pending.extend(self.graph().nodes[node].args());
        }
        let mut copies: HashMap<Node, Node> = HashMap::new();
        // Operands have smaller ids.
        for node in moved {
            let NodeData { def: Def::Apply(op, args), place } = self.graph().nodes[node] else {
                return None;
            };
            let args = args.map(|arg| copies.get(&arg).copied().unwrap_or(arg));
            let copy = self.new.nodes.push(NodeData { def: Def::Apply(op, args), place });
            self.before.entry(region).or_default().push(copy);
            copies.insert(node, copy);
        }
        copies.get(&node).copied()
    }

    /// C3: a branch of values that an earlier branch chose becomes a choice on one
    /// arm of that, where the other arm passes on the same for both.
    fn exchange(&mut self, region: Region) {
        let graph = self.graph();
        let root = graph.regions[region].root;
        let End::Branch { condition, .. } = graph.blocks[root].end else { return };
        for (number, &phi) in graph.regions[region].phis.iter().enumerate() {
            let [(_, a), (_, b)] = self.passed(region, number)[..] else { continue };
            let (Def::Phi(inner, i), Def::Phi(same, j)) = (graph.nodes[a].def, graph.nodes[b].def)
            else {
                continue;
            };
            let Some((block, at)) = self.places.regions[inner].filter(|_| inner == same) else {
                continue;
            };
            let is_free = [region, inner].iter().all(|region| !self.touched.contains(region))
                && !self.replaced.contains_key(&phi)
                && is_branch(graph, inner)
                && self.places.is_visible(condition, block, at);
            let (of_a, of_b) = (self.passed(inner, i as usize), self.passed(inner, j as usize));
            let pairs: Vec<(Block, Node, Node)> =
                of_a.iter().zip(&of_b).map(|(&(leaf, a), &(_, b))| (leaf, a, b)).collect();
            let values = &self.places.values;
            let differ = pairs.iter().filter(|(_, a, b)| values[*a] != values[*b]).count();
            // By the same branch both are chosen at once, so that is something else.
            if !is_free || a == b || pairs.len() != 2 || differ != 1 {
                continue;
            }
            let choices: Vec<[Node; 3]> =
                pairs.iter().map(|&(_, a, b)| [condition, a, b]).collect();
            let ends = choices.iter().map(|choice| (Op::Select, &choice[..]));
            let form = self.brief().distributed(phi, inner, ends);
            let place = graph.nodes[phi].place;
            let passed = pairs.into_iter().map(|(leaf, a, b)| {
                if self.places.values[a] == self.places.values[b] {
                    return (leaf, a);
                }
                let def = Def::Apply(Op::Select, [condition, a, b]);
                let chosen = self.new.nodes.push(NodeData { def, place });
                self.new.blocks[leaf].items.push(Item::Node(chosen));
                (leaf, chosen)
            });
            let passed: Vec<(Block, Node)> = passed.collect();
            let new = self.join(inner, &passed);
            self.replaced.insert(phi, new);
            self.touched.extend([region, inner]);
            self.note(Rule::C3, phi, form);
        }
    }

    /// A new φ of `region` for these values.
    fn join(&mut self, region: Region, passed: &[(Block, Node)]) -> Node {
        for &(leaf, value) in passed {
            if let End::Return(values) = &mut self.new.blocks[leaf].end {
                values.push(value);
            }
        }
        self.new.push_phi(region)
    }

    /// F2, C1 and C4: applications of φs in `block` go where the φs come from.
    fn users(&mut self, block: Block) {
        for item in &self.graph().blocks[block].items {
            let Item::Node(node) = *item else { continue };
            let Def::Apply(op, args) = self.graph().nodes[node].def else { continue };
            let args: SmallVec<[Node; MAX_ARITY]> = args[..op.arity()].into();
            let regions = args.iter().filter_map(|&arg| match self.graph().nodes[arg].def {
                Def::Phi(region, _) => Some(region),
                _ => None,
            });
            // The latest one, by which those before are known.
            let latest =
                regions.max_by_key(|&region| self.places.regions[region].map(|(_, at)| at));
            if let Some(region) = latest
                && self.places.regions[region].is_some_and(|(home, _)| home == block)
                && is_branch(self.graph(), region)
            {
                self.distribute(region, node, op, &args);
            }
        }
    }

    fn distribute(&mut self, region: Region, node: Node, op: Op, args: &[Node]) {
        let graph = self.graph();
        let is_operand =
            |arg: Node| matches!(graph.nodes[arg].def, Def::Phi(of, _) if of == region);
        let branched: Vec<usize> = (0..args.len()).filter(|&i| is_operand(args[i])).collect();
        let leaves = graph.leaves(graph.regions[region].root);
        let is_touched = self.touched.contains(&region)
            || self.moved.contains(&node)
            || args.iter().any(|arg| self.replaced.contains_key(arg));
        // The exponent of an integer power is a constant.
        let fits = leaves.len() <= MOST_ENDS && !(op == Op::Powi && branched.contains(&1));
        if is_touched || !fits {
            return;
        }
        let Some((block, at)) = self.places.regions[region] else { return };
        let mut results = Vec::new();
        let mut gains = false;
        for &leaf in &leaves {
            let End::Return(values) = &graph.blocks[leaf].end else { return };
            let here: SmallVec<[Node; MAX_ARITY]> = args
                .iter()
                .map(|&arg| match graph.nodes[arg].def {
                    Def::Phi(of, number) if of == region => values[number as usize],
                    _ => arg,
                })
                .collect();
            let numbers: SmallVec<[Node; MAX_ARITY]> =
                here.iter().map(|&arg| self.places.values[arg]).collect();
            let value = self.places.value(op, &numbers);
            let end = graph.blocks[leaf].items.len();
            let known = self.places.known(value, leaf, end);
            gains |= known.is_some()
                || self.places.constant(value).is_some()
                || branched.iter().any(|&operand| cancels(&self.places, op, &here, operand));
            results.push((leaf, here, value, known));
        }
        let first = results[0].2;
        let same = results.iter().all(|&(_, _, value, _)| value == first);
        if same && self.places.past[node] {
            return;
        }
        if same && let Some(known) = self.places.known(first, block, at) {
            let rule = if branched.len() > 1 { Rule::C4 } else { Rule::F1 };
            let form = self.brief().same(node, known);
            self.note(rule, node, form);
            self.replaced.insert(node, known);
            return;
        }
        if !gains || !self.move_operands(region, args, &branched) {
            return;
        }
        let ends = results.iter().map(|(_, here, ..)| (op, &here[..]));
        let form = self.brief().distributed(node, region, ends);
        let place = graph.nodes[node].place;
        let mut passed = Vec::new();
        for (leaf, here, value, known) in results {
            let result = match (self.places.constant(value), known) {
                (Some(constant), _) => self.new.push_const(constant.to_bits()),
                (None, Some(known)) => known,
                (None, None) => {
                    let padded = core::array::from_fn(|i| here.get(i).copied().unwrap_or(here[0]));
                    let def = Def::Apply(op, padded);
                    let result = self.new.nodes.push(NodeData { def, place });
                    self.new.blocks[leaf].items.push(Item::Node(result));
                    result
                }
            };
            passed.push((leaf, result));
        }
        let rule = if branched.len() > 1 { Rule::C1 } else { Rule::F2 };
        self.note(rule, node, form);
        let phi = self.join(region, &passed);
        self.replaced.insert(node, phi);
        self.touched.insert(region);
    }

    /// Moves the operands that are no φs of `region` before it, if they can be.
    fn move_operands(&mut self, region: Region, args: &[Node], branched: &[usize]) -> bool {
        let Some((block, at)) = self.places.regions[region] else { return false };
        let others = (0..args.len()).filter(|i| !branched.contains(i)).map(|i| args[i]);
        let mut pending: Vec<Node> = others.collect();
        let mut found: Vec<Node> = Vec::new();
        while let Some(node) = pending.pop() {
            if self.places.is_visible(node, block, at) || found.contains(&node) {
                continue;
            }
            let here = self.places.position(node).is_some_and(|(home, _)| home == block);
            let is_step = matches!(self.graph().nodes[node].def, Def::Apply(..));
            let is_touched = self.replaced.contains_key(&node) || self.moved.contains(&node);
            if !here || !is_step || is_touched || found.len() >= MOST_MOVED {
                return false;
            }
            found.push(node);
            pending.extend(self.graph().nodes[node].args());
        }
        found.sort_unstable();
        self.moved.extend(&found);
        self.before.entry(region).or_default().extend(found);
        true
    }

    fn finish(mut self) -> Option<(Graph, Vec<Applied>)> {
        if self.applied.is_empty() {
            return None;
        }
        for block in self.places.graph.blocks.keys() {
            let items = core::mem::take(&mut self.new.blocks[block].items);
            let mut all = Vec::with_capacity(items.len());
            for item in items {
                match item {
                    Item::Node(node) if self.moved.contains(&node) => continue,
                    Item::Region(region) => {
                        let before = self.before.get(&region).into_iter().flatten();
                        all.extend(before.map(|&node| Item::Node(node)));
                    }
                    _ => {}
                }
                all.push(item);
            }
            self.new.blocks[block].items = all;
        }
        self.rename();
        let graph = eliminate_dead_code(&in_order(&self.new)?);
        // A form that uses what is not visible would be refused later.
        verify(&graph).is_ok().then_some((graph, self.applied))
    }

    /// Puts what stands for replaced nodes in their places.
    fn rename(&mut self) {
        let replaced = &self.replaced;
        let rename = |node: &mut Node| {
            while let Some(&other) = replaced.get(node) {
                *node = other;
            }
        };
        let nodes: PrimaryMap<Node, NodeData> = self
            .new
            .nodes
            .values()
            .map(|data| {
                let mut data = *data;
                if let Def::Apply(_, args) = &mut data.def {
                    args.iter_mut().for_each(rename);
                }
                data
            })
            .collect();
        self.new.nodes = nodes;
        for block in self.places.graph.blocks.keys() {
            let data = &mut self.new.blocks[block];
            for item in &mut data.items {
                if let Item::Guard { condition: node, .. } | Item::Accumulate(_, node) = item {
                    rename(node);
                }
            }
            match &mut data.end {
                End::Return(values) => values.iter_mut().for_each(rename),
                End::Branch { condition, .. } => rename(condition),
                End::Open => {}
            }
        }
        for region in self.places.graph.regions.keys() {
            if let Some(cycle) = &mut self.new.regions[region].cycle {
                cycle.entries.iter_mut().for_each(|entry| rename(&mut entry.first));
            }
        }
        for array in self.places.graph.arrays.keys() {
            self.new.arrays[array].nodes_mut().for_each(rename);
        }
        for call in self.places.graph.calls.keys() {
            self.new.calls[call].args.iter_mut().for_each(rename);
        }
    }
}
