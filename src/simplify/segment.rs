//! From a segment to its e-graph, and from the best terms back to nodes.

use egg::Id;
use hashbrown::{HashMap, HashSet};
use smallvec::SmallVec;

use super::SegmentRun;
use super::egraph::{FactAnalysis, Leaf, OpSet, Term, Terms, bit};
use super::extract::{Choices, Pinned};
use super::loops::{Loops, cost};
use super::saturate::Saturation;
use crate::entity::PrimaryMap;
use crate::op::{MAX_ARITY, Op, latency};
use crate::ssa::{BlockRanges, Def, Graph, KnownRanges, Node, Rebuild, Segment, Segments};

/// The depth to which nodes outside a segment are in its e-graph, as context for rules.
const MAX_LOOKAHEAD: usize = 3;
/// The cost to save a value of a loop in each iteration, and to read it.
const SAVE_COST: u64 = 20;

/// The analyses that all segments of a graph share.
pub(super) struct Context<'a> {
    pub(super) graph: &'a Graph,
    pub(super) segments: &'a Segments,
    /// True for segments in which a rule may apply.
    pub(super) is_candidate: Vec<bool>,
    pub(super) ranges: KnownRanges<'a>,
    pub(super) loops: &'a Loops,
    /// True for nodes on which a comparison or a singularity depends; they keep their bits.
    pub(super) control_slice: PrimaryMap<Node, bool>,
}

/// Builds the e-graph of a segment.
struct SegmentReader<'a> {
    context: &'a Context<'a>,
    segment: &'a Segment,
    ranges: BlockRanges<'a>,
    terms: Terms,
    classes: HashMap<Node, Id>,
    leaves: Vec<Node>,
    pinned: Vec<Pinned>,
    ops: OpSet,
}

impl SegmentReader<'_> {
    /// The remaining lookahead at each node outside the segment, by the shortest path to it.
    fn lookaheads(&self) -> HashMap<Node, usize> {
        let inside: HashSet<Node> = self.segment.nodes.iter().copied().collect();
        let mut lookaheads = HashMap::new();
        let mut nodes: Vec<Node> = self.segment.nodes.clone();
        for lookahead in (0..=MAX_LOOKAHEAD).rev() {
            let mut next = Vec::new();
            for &arg in nodes.iter().flat_map(|&node| self.context.graph.operands(node)) {
                if !inside.contains(&arg) && !lookaheads.contains_key(&arg) {
                    lookaheads.insert(arg, lookahead);
                    next.push(arg);
                }
            }
            nodes = next.into_iter().filter(|&node| self.sees_operands(node)).collect();
        }
        lookaheads
    }

    /// True if the operands of `node` are visible in the segment's block.
    fn sees_operands(&self, node: Node) -> bool {
        let is_visible = |&arg: &Node| self.context.ranges.is_visible(arg, self.segment.block);
        self.context.graph.operands(node).iter().all(is_visible)
    }

    /// Reads the segment. Returns its cost, without nodes that keep their bits.
    fn read(&mut self) -> u64 {
        let lookaheads = self.lookaheads();
        let mut total = 0;
        for &node in &self.segment.nodes {
            let Def::Apply(op, args) = self.context.graph.nodes[node].def else { continue };
            let class = self.application(node, op, &args[..op.arity()], &lookaheads);
            if self.context.control_slice[node] {
                self.pin(class, node, 0);
            } else {
                let changes = self.context.loops.changes(node, self.segment.block);
                let term = Term::apply(op, &[]);
                total += cost(&term, changes, &self.terms.analysis.enclosing);
            }
        }
        total
    }

    fn application(
        &mut self,
        node: Node,
        op: Op,
        args: &[Node],
        lookaheads: &HashMap<Node, usize>,
    ) -> Id {
        let args: Vec<Id> = args.iter().map(|&arg| self.operand(arg, lookaheads)).collect();
        self.ops |= bit(op);
        let class = self.terms.add(Term::apply(op, &args));
        self.classes.insert(node, class);
        if let Some(range) = self.ranges.refined(node) {
            let facts = self.terms[class].data.and(range);
            self.terms.set_analysis_data(class, facts);
        }
        class
    }

    fn operand(&mut self, node: Node, lookaheads: &HashMap<Node, usize>) -> Id {
        if let Some(&class) = self.classes.get(&node) {
            return class;
        }
        let lookahead = lookaheads.get(&node).copied().unwrap_or(0);
        let class = match self.context.graph.nodes[node].def {
            Def::Const(bits) => self.terms.add(Term::Const(bits)),
            Def::Apply(op, args) if lookahead > 0 && self.sees_operands(node) => {
                let class = self.application(node, op, &args[..op.arity()], lookaheads);
                let use_cost = if lookahead == MAX_LOOKAHEAD { 0 } else { self.use_cost(node, op) };
                self.pin(class, node, use_cost);
                class
            }
            _ => {
                let number = self.leaves.len() as u32;
                self.leaves.push(node);
                self.terms.analysis.leaves.push(Leaf {
                    range: self.ranges.range(node),
                    changes: self.context.loops.changes(node, self.segment.block),
                    is_carried: self.context.loops.is_carried(node),
                });
                self.terms.add(Term::Leaf(number))
            }
        };
        self.classes.insert(node, class);
        class
    }

    fn pin(&mut self, class: Id, node: Node, use_cost: u64) {
        let changes = self.context.loops.changes(node, self.segment.block);
        self.pinned.push(Pinned { class, node, use_cost, changes });
    }

    /// The cost to use `node`, a node outside the segment that the segment does not use yet: the
    /// latency if its own segment may replace it, and the cost to save it in a loop.
    fn use_cost(&self, node: Node, op: Op) -> u64 {
        let Context { segments, is_candidate, control_slice, loops, .. } = self.context;
        let may_go = segments.of[node].is_some_and(|number| is_candidate[number as usize]);
        let own = if may_go && !control_slice[node] { latency(op) } else { 0 };
        own + if loops.is_saved(node, self.segment.block) { SAVE_COST } else { 0 }
    }
}

/// A better form of the outputs of a segment, without the e-graph, which would take hundreds of
/// bytes for each term until the graph is rebuilt.
pub(super) struct Improvement {
    /// The best term of each class that an output needs.
    best: HashMap<Id, Best>,
    /// The classes of the outputs that are replaced.
    outputs: HashMap<Node, Id>,
    /// The nodes built so far.
    built: HashMap<Id, Node>,
}

/// The best term of a class.
#[derive(Clone, Copy)]
enum Best {
    /// An existing node.
    Node(Node),
    Const(u64),
    Apply(Op, [Id; MAX_ARITY]),
}

impl Best {
    /// The classes of the operands.
    fn operands(&self) -> &[Id] {
        match self {
            Best::Node(_) | Best::Const(_) => &[],
            Best::Apply(op, operands) => &operands[..op.arity()],
        }
    }
}

/// A better form of the outputs of `segment`, if the rules find one, and the counts of the run.
pub(super) fn improvement(
    context: &Context<'_>,
    segment: &Segment,
    saturation: &Saturation,
) -> (Option<Improvement>, SegmentRun) {
    let enclosing = context.loops.enclosing(context.graph, segment.block);
    let mut reader = SegmentReader {
        context,
        segment,
        ranges: context.ranges.at(segment.block),
        terms: Terms::new(FactAnalysis::within(enclosing)),
        classes: HashMap::new(),
        leaves: Vec::new(),
        pinned: Vec::new(),
        ops: 0,
    };
    let before = reader.read();
    let SegmentReader { mut terms, classes, leaves, pinned, ops, .. } = reader;
    let saturated = saturation.run(&mut terms, ops);
    let mut run = SegmentRun {
        nodes: segment.nodes.len(),
        terms: terms.total_size(),
        iterations: saturated.iterations,
        complete: saturated.complete,
        improved: false,
    };
    if !saturated.changed {
        return (None, run);
    }
    let pinned: Vec<Pinned> = pinned
        .into_iter()
        .map(|pinned| Pinned { class: terms.find(pinned.class), ..pinned })
        .filter(|pinned| terms[pinned.class].data.constant.is_none())
        .collect();
    let choices = Choices::best(&terms, &pinned);
    let outputs: HashMap<Node, Id> = segment
        .outputs
        .iter()
        .filter(|&&node| !context.control_slice[node])
        .filter_map(|&node| Some((node, terms.find(*classes.get(&node)?))))
        .collect();
    let mut needed: Vec<Id> = outputs.values().copied().collect();
    needed.sort();
    run.improved = choices.cost(&needed) < before || !terms.analysis.superseded.is_empty();
    if !run.improved {
        return (None, run);
    }
    let mut nodes = HashMap::new();
    for Pinned { class, node, .. } in pinned {
        // Of several nodes the first, which is computed before the others.
        nodes.entry(class).or_insert(node);
    }
    let mut best = HashMap::new();
    while let Some(class) = needed.pop() {
        if best.contains_key(&class) {
            continue;
        }
        let choice = match choices.term(class) {
            None => nodes.get(&class).map(|&node| Best::Node(node)),
            Some(Term::Leaf(number)) => leaves.get(*number as usize).map(|&node| Best::Node(node)),
            Some(Term::Const(bits)) => Some(Best::Const(*bits)),
            Some(Term::Apply(op, operands)) => {
                Some(Best::Apply(*op, operands.map(|operand| terms.find(operand))))
            }
        };
        // An output that needs a class without a term is not replaced.
        let Some(choice) = choice else { continue };
        best.insert(class, choice);
        needed.extend_from_slice(choice.operands());
    }
    (Some(Improvement { best, outputs, built: HashMap::new() }), run)
}

impl Improvement {
    /// Builds the better form of `node`, if it has one that can be built here.
    pub(super) fn build(&mut self, rebuild: &mut Rebuild<'_>, node: Node) -> Option<Node> {
        let &class = self.outputs.get(&node)?;
        for class in self.order(rebuild, class)? {
            let built = match *self.best.get(&class)? {
                Best::Node(node) => rebuild.copied(node),
                Best::Const(bits) => rebuild.builder.constant(f64::from_bits(bits)),
                Best::Apply(op, operands) => {
                    let built = |operand: &Id| self.built.get(operand).copied();
                    let operands: Option<SmallVec<[Node; MAX_ARITY]>> =
                        operands[..op.arity()].iter().map(built).collect();
                    rebuild.builder.apply(op, &operands?)
                }
            };
            self.built.insert(class, built);
        }
        self.built.get(&class).copied()
    }

    /// The classes to build for `root`, operands first. `None` if one of them is computed only
    /// later.
    fn order(&self, rebuild: &Rebuild<'_>, root: Id) -> Option<Vec<Id>> {
        let mut order = Vec::new();
        // True for visited classes whose operands are done; reaching one with false is a cycle.
        let mut states: HashMap<Id, bool> = HashMap::new();
        let mut pending = vec![(root, false)];
        while let Some((class, is_done)) = pending.pop() {
            if is_done {
                states.insert(class, true);
                order.push(class);
                continue;
            }
            if self.built.contains_key(&class) {
                continue;
            }
            match states.get(&class) {
                Some(true) => continue,
                Some(false) => return None,
                None => {}
            }
            states.insert(class, false);
            pending.push((class, true));
            let best = self.best.get(&class)?;
            if matches!(best, Best::Node(node) if !rebuild.is_copied(*node)) {
                return None;
            }
            pending.extend(best.operands().iter().map(|&operand| (operand, false)));
        }
        Some(order)
    }
}
