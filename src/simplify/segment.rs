//! From a segment to its e-graph and back.

use egg::{Id, Language};
use hashbrown::{HashMap, HashSet};

use super::SegmentRun;
use super::egraph::{Knowledge, Leaf, Term, Terms, bit};
use super::extract::{Choices, Pinned};
use super::known_ranges::{Known, KnownAt};
use super::loops::{Loops, cost};
use super::saturate::Saturation;
use crate::entity::PrimaryMap;
use crate::op::{Op, latency};
use crate::ssa::{Def, Graph, Node, Rebuild, Segment, Segments};

/// How far rules see into what a segment is computed from.
const SIGHT: usize = 3;
/// What it costs to save a value of a loop in each iteration, and to read it.
const SAVING: u64 = 20;

/// What is the same for all segments of a graph.
pub(super) struct Context<'a> {
    pub(super) graph: &'a Graph,
    pub(super) segments: &'a Segments,
    /// For each segment whether a rule may apply in it.
    pub(super) is_candidate: Vec<bool>,
    pub(super) known: Known<'a>,
    pub(super) loops: &'a Loops,
    /// The nodes whose bits a comparison or a singularity depends on.
    pub(super) keeps_bits: PrimaryMap<Node, bool>,
}

/// A segment that is read into an e-graph.
struct Reading<'a> {
    context: &'a Context<'a>,
    segment: &'a Segment,
    known: KnownAt<'a>,
    terms: Terms,
    classes: HashMap<Node, Id>,
    leaves: Vec<Node>,
    pinned: Vec<Pinned>,
    ops: u64,
}

impl Reading<'_> {
    /// How far rules see behind each node that the segment is computed from: as far as
    /// on the shortest path to it.
    fn sights(&self) -> HashMap<Node, usize> {
        let inside: HashSet<Node> = self.segment.nodes.iter().copied().collect();
        let mut sights = HashMap::new();
        let mut nodes: Vec<Node> = self.segment.nodes.clone();
        for sight in (0..=SIGHT).rev() {
            let mut next = Vec::new();
            for &arg in nodes.iter().flat_map(|&node| self.context.graph.operands(node)) {
                if !inside.contains(&arg) && !sights.contains_key(&arg) {
                    sights.insert(arg, sight);
                    next.push(arg);
                }
            }
            nodes = next.into_iter().filter(|&node| self.sees_operands(node)).collect();
        }
        sights
    }

    /// Whether the operands of `node` are visible where the segment is.
    fn sees_operands(&self, node: Node) -> bool {
        let is_visible = |&arg: &Node| self.context.known.is_visible(arg, self.segment.block);
        self.context.graph.operands(node).iter().all(is_visible)
    }

    /// Reads the segment. Returns what it costs, but for what stays as it is.
    fn read(&mut self) -> u64 {
        let sights = self.sights();
        let mut total = 0;
        for &node in &self.segment.nodes {
            let Def::Apply(op, args) = self.context.graph.nodes[node].def else { continue };
            let class = self.application(node, op, &args[..op.arity()], &sights);
            if self.context.keeps_bits[node] {
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
        sights: &HashMap<Node, usize>,
    ) -> Id {
        let args: Vec<Id> = args.iter().map(|&arg| self.operand(arg, sights)).collect();
        self.ops |= bit(op);
        let class = self.terms.add(Term::apply(op, &args));
        self.classes.insert(node, class);
        if let Some(range) = self.known.refined(node) {
            let facts = self.terms[class].data.and(range);
            self.terms.set_analysis_data(class, facts);
        }
        class
    }

    fn operand(&mut self, node: Node, sights: &HashMap<Node, usize>) -> Id {
        if let Some(&class) = self.classes.get(&node) {
            return class;
        }
        let sight = sights.get(&node).copied().unwrap_or(0);
        let class = match self.context.graph.nodes[node].def {
            Def::Const(bits) => self.terms.add(Term::Const(bits)),
            Def::Apply(op, args) if sight > 0 && self.sees_operands(node) => {
                let class = self.application(node, op, &args[..op.arity()], sights);
                let fee = if sight == SIGHT { 0 } else { self.fee(node, op) };
                self.pin(class, node, fee);
                class
            }
            _ => {
                let number = self.leaves.len() as u32;
                self.leaves.push(node);
                self.terms.analysis.leaves.push(Leaf {
                    range: self.known.range(node),
                    changes: self.context.loops.changes(node, self.segment.block),
                    is_carried: self.context.loops.is_carried(node),
                });
                self.terms.add(Term::Leaf(number))
            }
        };
        self.classes.insert(node, class);
        class
    }

    fn pin(&mut self, class: Id, node: Node, fee: u64) {
        let changes = self.context.loops.changes(node, self.segment.block);
        self.pinned.push(Pinned { class, node, fee, changes });
    }

    /// What it costs to use `node` here, where it has not been used so far. If it may
    /// be computed otherwise where it is, it is computed for this alone.
    fn fee(&self, node: Node, op: Op) -> u64 {
        let Context { segments, is_candidate, keeps_bits, loops, .. } = self.context;
        let may_go = segments.of[node].is_some_and(|number| is_candidate[number as usize]);
        let own = if may_go && !keeps_bits[node] { latency(op) } else { 0 };
        own + if loops.is_saved(node, self.segment.block) { SAVING } else { 0 }
    }
}

/// A better form of the outputs of a segment.
pub(super) struct Better {
    terms: Terms,
    choices: Choices,
    leaves: Vec<Node>,
    /// The node of each pinned class.
    pinned: HashMap<Id, Node>,
    /// The classes of what is to be computed otherwise.
    outputs: HashMap<Node, Id>,
    built: HashMap<Id, Node>,
}

/// A better form of the outputs of `segment`, if the rules find one, and the counts of the run.
pub(super) fn better(
    context: &Context<'_>,
    segment: &Segment,
    saturation: &Saturation,
) -> (Option<Better>, SegmentRun) {
    let enclosing = context.loops.enclosing(context.graph, segment.block);
    let mut reading = Reading {
        context,
        segment,
        known: context.known.at(segment.block),
        terms: Terms::new(Knowledge::within(enclosing)),
        classes: HashMap::new(),
        leaves: Vec::new(),
        pinned: Vec::new(),
        ops: 0,
    };
    let before = reading.read();
    let Reading { mut terms, classes, leaves, pinned, ops, .. } = reading;
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
        .filter(|&&node| !context.keeps_bits[node])
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
        // The first of several: it is computed before the others.
        nodes.entry(class).or_insert(node);
    }
    let (pinned, built) = (nodes, HashMap::new());
    (Some(Better { terms, choices, leaves, pinned, outputs, built }), run)
}

impl Better {
    /// Builds the better form of `node`, if it has one that can be built here.
    pub(super) fn build(&mut self, rebuild: &mut Rebuild<'_>, node: Node) -> Option<Node> {
        let &class = self.outputs.get(&node)?;
        for class in self.order(rebuild, class)? {
            let built = match self.choices.term(class) {
                None => rebuild.copied(*self.pinned.get(&class)?),
                Some(Term::Leaf(number)) => rebuild.copied(*self.leaves.get(*number as usize)?),
                Some(Term::Const(bits)) => rebuild.builder.constant(f64::from_bits(*bits)),
                Some(Term::Apply(op, operands)) => {
                    let operands: Option<Vec<Node>> = operands[..op.arity()]
                        .iter()
                        .map(|&operand| self.built.get(&self.terms.find(operand)).copied())
                        .collect();
                    rebuild.builder.apply(*op, &operands?)
                }
            };
            self.built.insert(class, built);
        }
        self.built.get(&class).copied()
    }

    /// What is to be built for `root`, operands first. None if something in it is
    /// computed later only.
    fn order(&self, rebuild: &Rebuild<'_>, root: Id) -> Option<Vec<Id>> {
        let mut order = Vec::new();
        // For each class that has been visited whether its operands are done: one that is
        // below itself would be a cycle.
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
            let outer = match self.choices.term(class) {
                None => Some(*self.pinned.get(&class)?),
                Some(Term::Leaf(number)) => Some(*self.leaves.get(*number as usize)?),
                Some(term) => {
                    let operands = term.children().iter();
                    pending.extend(operands.map(|&operand| (self.terms.find(operand), false)));
                    None
                }
            };
            if outer.is_some_and(|node| !rebuild.is_copied(node)) {
                return None;
            }
        }
        Some(order)
    }
}
