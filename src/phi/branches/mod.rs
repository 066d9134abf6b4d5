//! Rules for φs of branches: F1 to F3, C1, C3 and C4. (`diff` applies C2.)
//!
//! - `analysis`: positions and value numbers of nodes
//! - `cancellation`: tests whether a moved application would cancel with its operands
//!
//! The rules keep the bits of all outputs: an application of a φ moves into the arms of the branch,
//! and back. Primitives are pure and total, so an application may move to any place where its
//! operands are visible. It moves only if an arm gains by it: there the application folds, is
//! available already, or cancels when segments are simplified.

mod analysis;
mod cancellation;

use std::collections::BTreeSet;

use hashbrown::{HashMap, HashSet};
use smallvec::SmallVec;

use self::analysis::Analysis;
use self::cancellation::cancels;
use super::rule::{Applied, Rule};
use crate::explain::notation::Brief;
use crate::op::{MAX_ARITY, Op};
use crate::ssa::{
    Block, Def, Editor, End, Graph, Item, Node, NodeData, Region, eliminate_dead_code, verify,
};

/// The largest number of passes over the graph.
const MAX_ROUNDS: usize = 8;
/// The largest number of leaves of a branch that applications move into.
const MAX_LEAVES: usize = 8;
/// The largest number of steps that move before a branch for one application.
const MAX_MOVED_STEPS: usize = 16;

/// A graph with simpler branches, and the rules that were applied.
#[derive(Clone, Debug)]
pub struct Branched {
    /// The graph.
    pub graph: Graph,
    /// The formulas that were applied.
    pub applied: Vec<Applied>,
}

/// Simplifies the φs of the branches of `graph`, a verified graph. Its outputs
/// keep their bits. A graph that replays regions is returned unchanged.
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
    for _ in 0..MAX_ROUNDS {
        let Some((graph, mut applied)) = round(&branched.graph) else { break };
        branched.graph = graph;
        branched.applied.append(&mut applied);
    }
    branched
}

/// One pass over the graph; `None` if no rule applies.
fn round(graph: &Graph) -> Option<(Graph, Vec<Applied>)> {
    let has_phis = |region: &Region| is_branch(graph, *region);
    if !graph.regions.keys().any(|region| has_phis(&region)) {
        return None;
    }
    let mut rules = Rules::of(graph);
    for block in graph.preorder() {
        for region in graph.regions_of(block).filter(has_phis) {
            rules.order_arms(region);
            rules.fold_identical(region);
            rules.exchange_branches(region);
        }
        rules.distribute_users(block);
    }
    rules.finish()
}

/// True if `region` is no loop and has φs.
fn is_branch(graph: &Graph, region: Region) -> bool {
    graph.regions[region].cycle.is_none() && !graph.regions[region].phis.is_empty()
}

/// The rules, applied to one graph. The analysis is that of the original graph, so each region and
/// node is changed at most once in a pass.
struct Rules<'a> {
    analysis: Analysis<'a>,
    editor: Editor,
    changed: HashSet<Region>,
    applied: Vec<Applied>,
}

impl<'a> Rules<'a> {
    fn of(graph: &'a Graph) -> Self {
        Rules {
            analysis: Analysis::of(graph),
            editor: Editor::of(graph),
            changed: HashSet::new(),
            applied: Vec::new(),
        }
    }

    fn brief(&self) -> Brief<'a> {
        Brief::new(self.analysis.graph)
    }

    fn graph(&self) -> &'a Graph {
        self.analysis.graph
    }

    fn note(&mut self, rule: Rule, node: Node, form: String) {
        let at = self.graph().place(self.graph().nodes[node].place).cloned();
        self.applied.push(Applied { rule, at, form });
    }

    /// The leaves of `region` with the operands of φ `number`.
    fn phi_operands(&self, region: Region, number: usize) -> Vec<(Block, Node)> {
        let graph = self.graph();
        let leaves = graph.leaves(graph.regions[region].root);
        let value = |leaf: Block| match &graph.blocks[leaf].end {
            End::Return(values) => values.get(number).map(|&value| (leaf, value)),
            End::Branch { .. } | End::Open => None,
        };
        leaves.into_iter().filter_map(value).collect()
    }

    /// F3: swaps the arms of a branch if the complement of its condition is available.
    fn order_arms(&mut self, region: Region) {
        let graph = self.graph();
        let root = graph.regions[region].root;
        let End::Branch { condition, then, otherwise } = graph.blocks[root].end else { return };
        // For NaN operands only `ne` and `eq` are complements: `lt` and `ge` are both false.
        let (Def::Apply(Op::Ne, args), Some((block, at))) =
            (graph.nodes[condition].def, self.analysis.regions[region])
        else {
            return;
        };
        let args = args.map(|arg| self.analysis.values[arg]);
        let complement = self.analysis.number_of(Op::Eq, &args[..2]);
        let Some(known) = self.analysis.available(complement, block, at) else { return };
        let end = End::Branch { condition: known, then: otherwise, otherwise: then };
        self.editor.blocks[root].end = end;
        let phi = graph.regions[region].phis[0];
        let form = self.brief().complement(condition, [then, otherwise]);
        self.note(Rule::F3, phi, form);
        self.changed.insert(region);
    }

    /// F1: replaces a φ of equal operands by the operand.
    fn fold_identical(&mut self, region: Region) {
        let Some((block, at)) = self.analysis.regions[region] else { return };
        for (number, &phi) in self.graph().regions[region].phis.iter().enumerate() {
            let phi_operands = self.phi_operands(region, number);
            let Some(&(_, first)) = phi_operands.first() else { continue };
            let value = self.analysis.values[first];
            let same = |&(_, other): &(Block, Node)| self.analysis.values[other] == value;
            if self.changed.contains(&region)
                || self.analysis.is_saved[phi]
                || !phi_operands.iter().all(same)
            {
                continue;
            }
            let outside = match self.analysis.available(value, block, at) {
                Some(known) => known,
                None => match self.copy_before(first, region) {
                    Some(copy) => copy,
                    None => continue,
                },
            };
            let form = self.brief().same(phi, first);
            self.note(Rule::F1, phi, form);
            self.editor.replace(phi, outside);
        }
    }

    /// Copies `node`, a node inside `region`, to before it. Each path through the region computes
    /// the value, so the work does not grow.
    fn copy_before(&mut self, node: Node, region: Region) -> Option<Node> {
        let (block, at) = self.analysis.regions[region]?;
        let mut moved: BTreeSet<Node> = BTreeSet::new();
        let mut pending = vec![node];
        while let Some(node) = pending.pop() {
            if self.analysis.is_visible(node, block, at) || !moved.insert(node) {
                continue;
            }
            if moved.len() > MAX_MOVED_STEPS
                || !matches!(self.graph().nodes[node].def, Def::Apply(..))
            {
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
            let copy = self.editor.insert_node(region, Def::Apply(op, args), place);
            copies.insert(node, copy);
        }
        copies.get(&node).copied()
    }

    /// C3: a branch whose operands are φs of an earlier branch becomes a `select` in one arm of
    /// that; in its other arm the two φs have equal operands.
    fn exchange_branches(&mut self, region: Region) {
        let graph = self.graph();
        let root = graph.regions[region].root;
        let End::Branch { condition, .. } = graph.blocks[root].end else { return };
        for (number, &phi) in graph.regions[region].phis.iter().enumerate() {
            let [(_, a), (_, b)] = self.phi_operands(region, number)[..] else { continue };
            let (Def::Phi(inner, i), Def::Phi(same, j)) = (graph.nodes[a].def, graph.nodes[b].def)
            else {
                continue;
            };
            let Some((block, at)) = self.analysis.regions[inner].filter(|_| inner == same) else {
                continue;
            };
            let is_free = [region, inner].iter().all(|region| !self.changed.contains(region))
                && !self.editor.is_replaced(phi)
                && is_branch(graph, inner)
                && self.analysis.is_visible(condition, block, at);
            let (of_a, of_b) =
                (self.phi_operands(inner, i as usize), self.phi_operands(inner, j as usize));
            let pairs: Vec<(Block, Node, Node)> =
                of_a.iter().zip(&of_b).map(|(&(leaf, a), &(_, b))| (leaf, a, b)).collect();
            let values = &self.analysis.values;
            let differ = pairs.iter().filter(|(_, a, b)| values[*a] != values[*b]).count();
            // Exactly one arm needs a select.
            if !is_free || a == b || pairs.len() != 2 || differ != 1 {
                continue;
            }
            let choices: Vec<[Node; 3]> =
                pairs.iter().map(|&(_, a, b)| [condition, a, b]).collect();
            let ends = choices.iter().map(|choice| (Op::Select, &choice[..]));
            let form = self.brief().distributed(phi, inner, ends);
            let place = graph.nodes[phi].place;
            let phi_operands = pairs.into_iter().map(|(leaf, a, b)| {
                if self.analysis.values[a] == self.analysis.values[b] {
                    return (leaf, a);
                }
                (leaf, self.editor.push_apply(leaf, Op::Select, &[condition, a, b], place))
            });
            let phi_operands: Vec<(Block, Node)> = phi_operands.collect();
            let new = self.add_phi(inner, &phi_operands);
            self.editor.replace(phi, new);
            self.changed.extend([region, inner]);
            self.note(Rule::C3, phi, form);
        }
    }

    /// Adds a φ to `region` with these operands.
    fn add_phi(&mut self, region: Region, phi_operands: &[(Block, Node)]) -> Node {
        for &(leaf, value) in phi_operands {
            if let End::Return(values) = &mut self.editor.blocks[leaf].end {
                values.push(value);
            }
        }
        self.editor.push_phi(region)
    }

    /// F2, C1 and C4: moves applications of φs in `block` into the arms of the branch.
    fn distribute_users(&mut self, block: Block) {
        for item in &self.graph().blocks[block].items {
            let Item::Node(node) = *item else { continue };
            let Def::Apply(op, args) = self.graph().nodes[node].def else { continue };
            let args: SmallVec<[Node; MAX_ARITY]> = args[..op.arity()].into();
            let regions = args.iter().filter_map(|&arg| match self.graph().nodes[arg].def {
                Def::Phi(region, _) => Some(region),
                _ => None,
            });
            // The latest of these regions: the φs of the others are visible in its arms.
            let latest =
                regions.max_by_key(|&region| self.analysis.regions[region].map(|(_, at)| at));
            if let Some(region) = latest
                && self.analysis.regions[region].is_some_and(|(own_block, _)| own_block == block)
                && is_branch(self.graph(), region)
            {
                self.distribute(region, node, op, &args);
            }
        }
    }

    /// Replaces `node`, `op` of `args`, by a φ of `region` if an arm gains by it.
    fn distribute(&mut self, region: Region, node: Node, op: Op, args: &[Node]) {
        let graph = self.graph();
        let is_operand =
            |arg: Node| matches!(graph.nodes[arg].def, Def::Phi(of, _) if of == region);
        let branched: Vec<usize> = (0..args.len()).filter(|&i| is_operand(args[i])).collect();
        let leaves = graph.leaves(graph.regions[region].root);
        let is_changed = self.changed.contains(&region)
            || self.is_moved(node)
            || args.iter().any(|arg| self.editor.is_replaced(*arg));
        // The exponent of an integer power is a constant.
        let fits = leaves.len() <= MAX_LEAVES && !(op == Op::Powi && branched.contains(&1));
        if is_changed || !fits {
            return;
        }
        let Some((block, at)) = self.analysis.regions[region] else { return };
        // The application in each arm: its operands, value number, and an available node.
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
                here.iter().map(|&arg| self.analysis.values[arg]).collect();
            let value = self.analysis.number_of(op, &numbers);
            let end = graph.blocks[leaf].items.len();
            let known = self.analysis.available(value, leaf, end);
            gains |= known.is_some()
                || self.analysis.constant(value).is_some()
                || branched.iter().any(|&operand| cancels(&self.analysis, op, &here, operand));
            results.push((leaf, here, value, known));
        }
        // C4 and F1: all arms compute a value that is available before the branch.
        let first = results[0].2;
        let same = results.iter().all(|&(_, _, value, _)| value == first);
        if same && self.analysis.is_saved[node] {
            return;
        }
        if same && let Some(known) = self.analysis.available(first, block, at) {
            let rule = if branched.len() > 1 { Rule::C4 } else { Rule::F1 };
            let form = self.brief().same(node, known);
            self.note(rule, node, form);
            self.editor.replace(node, known);
            return;
        }
        if !gains || !self.move_operands(region, args, &branched) {
            return;
        }
        // F2 and C1: the application in each arm, and a φ of the results.
        let ends = results.iter().map(|(_, here, ..)| (op, &here[..]));
        let form = self.brief().distributed(node, region, ends);
        let place = graph.nodes[node].place;
        let mut phi_operands = Vec::new();
        for (leaf, here, value, known) in results {
            let result = match (self.analysis.constant(value), known) {
                (Some(constant), _) => self.editor.push_const(constant.to_bits()),
                (None, Some(known)) => known,
                (None, None) => self.editor.push_apply(leaf, op, &here, place),
            };
            phi_operands.push((leaf, result));
        }
        let rule = if branched.len() > 1 { Rule::C1 } else { Rule::F2 };
        self.note(rule, node, form);
        let phi = self.add_phi(region, &phi_operands);
        self.editor.replace(node, phi);
        self.changed.insert(region);
    }

    /// Moves the operands that are no φs of `region` before it. Returns false if one of them
    /// cannot move.
    fn move_operands(&mut self, region: Region, args: &[Node], branched: &[usize]) -> bool {
        let Some((block, at)) = self.analysis.regions[region] else { return false };
        let others = (0..args.len()).filter(|i| !branched.contains(i)).map(|i| args[i]);
        let mut pending: Vec<Node> = others.collect();
        let mut steps: Vec<Node> = Vec::new();
        while let Some(node) = pending.pop() {
            if self.analysis.is_visible(node, block, at) || steps.contains(&node) {
                continue;
            }
            let here =
                self.analysis.position(node).is_some_and(|(own_block, _)| own_block == block);
            let is_step = matches!(self.graph().nodes[node].def, Def::Apply(..));
            let is_changed = self.editor.is_replaced(node) || self.is_moved(node);
            if !here || !is_step || is_changed || steps.len() >= MAX_MOVED_STEPS {
                return false;
            }
            steps.push(node);
            pending.extend(self.graph().nodes[node].args());
        }
        steps.sort_unstable();
        for step in steps {
            if let Some(position) = self.analysis.position(step) {
                self.editor.move_before(position, region);
            }
        }
        true
    }

    /// True if `node` is a step that moves before a region.
    fn is_moved(&self, node: Node) -> bool {
        self.analysis.position(node).is_some_and(|position| self.editor.is_moved(position))
    }

    /// The edited graph and the rules that were applied; `None` if there are none.
    fn finish(self) -> Option<(Graph, Vec<Applied>)> {
        if self.applied.is_empty() {
            return None;
        }
        let graph = eliminate_dead_code(&self.editor.finish()?);
        // An edit that uses a value where it is not visible is discarded.
        verify(&graph).is_ok().then_some((graph, self.applied))
    }
}
