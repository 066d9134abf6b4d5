//! From a segment to its e-graph and back.

use egg::{Id, Language};
use hashbrown::{HashMap, HashSet};

use super::extract::{Choices, Pinned};
use super::facts::{Facts, Knowledge, Terms};
use super::known::KnownAt;
use super::language::Term;
use super::loops::shared;
use super::pattern::bit;
use super::saturate::Saturation;
use super::{SegmentRun, Settings};
use crate::op::{Op, latency};
use crate::ssa::{Def, Graph, Node, Rebuild, Segment};

/// How far rules see into what a segment is computed from.
const SIGHT: usize = 3;
/// What it costs to remember a value of a loop for each iteration, and to read it.
const HISTORY: u64 = 20;
/// How deep patterns are.
const DEEPEST: usize = 4;

/// A segment on its way into an e-graph.
struct Reading<'a> {
    graph: &'a Graph,
    segment: &'a Segment,
    settings: &'a Settings<'a>,
    known: KnownAt<'a>,
    terms: Terms,
    classes: HashMap<Node, Id>,
    leaves: Vec<Node>,
    pinned: Vec<Pinned>,
    ops: u64,
}

impl Reading<'_> {
    /// How far rules see behind each node that the segment is computed from: as far as
    /// on the shortest way to it.
    fn sights(&self) -> HashMap<Node, usize> {
        let inside: HashSet<Node> = self.segment.nodes.iter().copied().collect();
        let mut sights = HashMap::new();
        let mut nodes: Vec<Node> = self.segment.nodes.clone();
        for sight in (0..=SIGHT).rev() {
            let mut next = Vec::new();
            for &arg in nodes.iter().flat_map(|&node| self.graph.operands(node)) {
                if !inside.contains(&arg) && !sights.contains_key(&arg) {
                    sights.insert(arg, sight);
                    next.push(arg);
                }
            }
            nodes = next.into_iter().filter(|&node| self.sees_operands(node)).collect();
        }
        sights
    }

    fn operand(&mut self, node: Node, sights: &HashMap<Node, usize>) -> Id {
        if let Some(&class) = self.classes.get(&node) {
            return class;
        }
        let sight = sights.get(&node).copied().unwrap_or(0);
        let class = match self.graph.nodes[node].def {
            Def::Const(bits) => self.terms.add(Term::Const(bits)),
            Def::Apply(op, args) if sight > 0 && self.sees_operands(node) => {
                let args: Vec<Id> =
                    args[..op.arity()].iter().map(|&arg| self.operand(arg, sights)).collect();
                self.ops |= bit(op);
                let class = self.terms.add(Term::apply(op, &args));
                self.tell(node, class);
                let fee = if sight == SIGHT { 0 } else { self.fee(node, op) };
                self.pin(class, node, fee);
                class
            }
            _ => {
                let number = self.leaves.len() as u32;
                self.leaves.push(node);
                let range = self.known.range(node);
                self.terms.analysis.leaves.push(range);
                let changes = self.settings.loops.changes(node, self.segment.block);
                self.terms.analysis.changes.push(changes);
                self.terms.analysis.carried.push(self.settings.loops.is_carried(node));
                self.terms.add(Term::Leaf(number))
            }
        };
        self.classes.insert(node, class);
        class
    }

    fn pin(&mut self, class: Id, node: Node, fee: u64) {
        let changes = self.settings.loops.changes(node, self.segment.block);
        self.pinned.push(Pinned { class, node, fee, changes });
    }

    /// Whether the operands of `node` are visible where the segment is.
    fn sees_operands(&self, node: Node) -> bool {
        let is_visible = |&arg: &Node| self.settings.known.is_visible(arg, self.segment.block);
        self.graph.operands(node).iter().all(is_visible)
    }

    /// What it costs to use `node` here, where it has not been used so far. If it may
    /// be computed otherwise where it is, it is computed for this alone.
    fn fee(&self, node: Node, op: Op) -> u64 {
        let Settings { segments, is_candidate, decisive, known, .. } = self.settings;
        let may_go = segments.of[node].is_some_and(|number| is_candidate[number as usize]);
        let own = if may_go && !decisive[node] { latency(op) } else { 0 };
        own + if known.is_history(node, self.segment.block) { HISTORY } else { 0 }
    }

    fn tell(&mut self, node: Node, class: Id) {
        if self.settings.compensated[node] {
            let facts = Facts { is_compensated: true, ..self.terms[class].data };
            self.terms.set_analysis_data(class, facts);
        }
        if let Some(range) = self.known.told(node) {
            let facts = self.terms[class].data.and(range);
            self.terms.set_analysis_data(class, facts);
        }
    }

    /// Reads the segment. Returns what it costs, but for what stays as it is.
    fn read(&mut self) -> u64 {
        let sights = self.sights();
        let mut total = 0;
        for &node in &self.segment.nodes {
            let Def::Apply(op, args) = self.graph.nodes[node].def else { continue };
            let args: Vec<Id> =
                args[..op.arity()].iter().map(|&arg| self.operand(arg, &sights)).collect();
            self.ops |= bit(op);
            let class = self.terms.add(Term::apply(op, &args));
            self.classes.insert(node, class);
            self.tell(node, class);
            if self.settings.decisive[node] {
                self.pin(class, node, 0);
            } else {
                let changes = self.settings.loops.changes(node, self.segment.block);
                total += shared(latency(op), changes, &self.terms.analysis.ways);
            }
        }
        total
    }
}

/// A better way to compute the outputs of a segment.
pub(super) struct Better {
    terms: Terms,
    choices: Choices,
    leaves: Vec<Node>,
    /// The node of each pinned class.
    pinned: HashMap<Id, Node>,
    /// The classes of what is to be computed otherwise.
    outputs: HashMap<Node, Id>,
    /// The nodes with a better form because an exponential may overflow, each with
    /// that exponential.
    overflowing: Vec<(Node, Node)>,
    /// The classes whose values must be finite.
    guarded: HashSet<Id>,
    built: HashMap<Id, Node>,
}

/// A better way to compute the outputs of `segment`, if the rules know one, and how
/// it was looked for.
pub(super) fn better(
    graph: &Graph,
    segment: &Segment,
    settings: &Settings<'_>,
    saturation: &Saturation,
) -> (Option<Better>, SegmentRun) {
    let mut reading = Reading {
        graph,
        segment,
        settings,
        known: settings.known.at(segment.block),
        terms: Terms::new(Knowledge::within(settings.loops.ways(segment.block))),
        classes: HashMap::new(),
        leaves: Vec::new(),
        pinned: Vec::new(),
        ops: 0,
    };
    let before = reading.read();
    let Reading { mut terms, classes, leaves, pinned, ops, .. } = reading;
    let went = saturation.run(&mut terms, ops);
    let overflowing = overflowing(graph, &mut terms, &classes, settings);
    let mut run = SegmentRun {
        nodes: segment.nodes.len(),
        terms: terms.total_size(),
        iterations: went.iterations,
        complete: went.complete,
        improved: false,
    };
    if !went.changed {
        return (None, run);
    }
    let pinned: Vec<Pinned> = pinned
        .into_iter()
        .map(|pinned| Pinned { class: terms.find(pinned.class), ..pinned })
        .filter(|pinned| terms[pinned.class].data.constant.is_none())
        .collect();
    let guarded = terms.analysis.guarded.iter().map(|&class| terms.find(class)).collect();
    let choices = Choices::best(&terms, &pinned);
    let outputs: HashMap<Node, Id> = segment
        .outputs
        .iter()
        .filter(|&&node| !settings.decisive[node])
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
    let built = HashMap::new();
    let pinned = nodes;
    let better = Better { terms, choices, leaves, pinned, outputs, overflowing, guarded, built };
    (Some(better), run)
}

/// The nodes with a better form because an exponential may overflow, each with that
/// exponential. Those that are to stay as they are have none.
fn overflowing(
    graph: &Graph,
    terms: &mut Terms,
    classes: &HashMap<Node, Id>,
    settings: &Settings<'_>,
) -> Vec<(Node, Node)> {
    let found = core::mem::take(&mut terms.analysis.overflowing);
    let mut found: Vec<Id> = found.into_iter().map(|class| terms.find(class)).collect();
    found.dedup();
    let mut all = Vec::new();
    let mut kept = Vec::new();
    for class in found {
        let mut nodes: Vec<Node> = classes
            .iter()
            .filter(|&(_, &other)| terms.find(other) == class)
            .map(|(&node, _)| node)
            .collect();
        nodes.sort();
        if nodes.iter().any(|node| settings.as_they_are.contains(node)) {
            kept.push(class);
            continue;
        }
        for node in nodes {
            exponentials(graph, node, DEEPEST, &mut |exponential| all.push((node, exponential)));
        }
    }
    if !kept.is_empty() {
        let is_kept: Vec<Term> =
            kept.iter().flat_map(|&class| terms[class].nodes.iter().copied()).collect();
        let canonical = |term: &Term| term.map_children(|id| terms.find(id));
        let superseded = terms.analysis.superseded.iter().map(canonical);
        let rest = superseded.filter(|term| !is_kept.contains(term)).collect();
        terms.analysis.superseded = rest;
    }
    all
}

/// Calls `each` with the exponentials that `node` is computed from, so deep at most.
fn exponentials(graph: &Graph, node: Node, depth: usize, each: &mut impl FnMut(Node)) {
    if let Def::Apply(op, _) = graph.nodes[node].def {
        if op == Op::Exp {
            each(node);
        } else if depth > 0 {
            let args = graph.operands(node).iter();
            args.for_each(|&arg| exponentials(graph, arg, depth - 1, each));
        }
    }
}

impl Better {
    /// The nodes with a better form because an exponential may overflow, each with
    /// that exponential.
    pub(super) fn overflowing(&self) -> &[(Node, Node)] {
        &self.overflowing
    }

    /// Forgets what has been built, to build it in another graph.
    pub(super) fn restart(&mut self) {
        self.built.clear();
    }

    /// Builds the better form of `node`, if it has one that can be built here.
    pub(super) fn build(&mut self, rebuild: &mut Rebuild<'_>, node: Node) -> Option<Node> {
        let &class = self.outputs.get(&node)?;
        let order = self.order(rebuild, class)?;
        for class in order {
            let built = match self.choices.term(class) {
                None => {
                    let pinned = *self.pinned.get(&class)?;
                    rebuild.copied(pinned)
                }
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
            if self.guarded.contains(&class) {
                let builder = &mut rebuild.builder;
                let (size, most) = (builder.apply(Op::Abs, &[built]), builder.constant(f64::MAX));
                let is_finite = builder.apply(Op::Le, &[size, most]);
                builder.guard(is_finite, true);
            }
            self.built.insert(class, built);
        }
        self.built.get(&class).copied()
    }

    /// What is to be built for `root`, operands first. None if something in it is
    /// computed later only.
    fn order(&self, rebuild: &Rebuild<'_>, root: Id) -> Option<Vec<Id>> {
        let mut order = Vec::new();
        // Classes that are being looked at: one below itself would be a circle.
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
            match self.choices.term(class) {
                None if !rebuild.is_copied(*self.pinned.get(&class)?) => return None,
                Some(Term::Leaf(number))
                    if !rebuild.is_copied(*self.leaves.get(*number as usize)?) =>
                {
                    return None;
                }
                None => {}
                Some(term) => {
                    let operands = term.children().iter();
                    pending.extend(operands.map(|&operand| (self.terms.find(operand), false)));
                }
            }
        }
        Some(order)
    }
}
