//! Equality saturation: rules are applied until nothing changes or a limit is reached.

use std::sync::OnceLock;

use egg::{Id, Language};
use hashbrown::HashSet;

use super::egraph::{Term, Terms, bit};
use super::matching::{Classes, Letters, Pattern, search};
use super::rules::{Match, Right, Rule, rules};
use super::{SimplifyLimits, Stage};
use crate::op::Op;
use crate::ssa::{Def, Graph, Segment};

/// A rule, read.
struct Ready {
    /// Its place in the table.
    number: usize,
    rule: &'static Rule,
    left: Pattern,
    right: Option<Pattern>,
    /// The primitives of the left-hand side, one bit each.
    needs: u64,
    /// Those of the right-hand side.
    makes: u64,
}

/// All rules, for each primitive those with it at the root of their left-hand side.
static READY: OnceLock<Vec<Vec<Ready>>> = OnceLock::new();

/// The rules of a stage.
pub(super) struct Saturation {
    rules: &'static [Vec<Ready>],
    stage: Stage,
    limits: SimplifyLimits,
}

/// What a run of the rules did.
pub(super) struct Saturated {
    /// How often all rules were tried.
    pub(super) iterations: usize,
    /// Whether classes were united.
    pub(super) changed: bool,
    /// Whether no rule has anything to add.
    pub(super) complete: bool,
}

/// Where the left-hand side of a rule occurs.
struct Candidate {
    ready: &'static Ready,
    class: Id,
    term: Term,
    letters: Letters<Id>,
}

impl Saturation {
    pub(super) fn new(stage: Stage, limits: SimplifyLimits) -> Saturation {
        Saturation { rules: READY.get_or_init(all_ready), stage, limits }
    }

    /// The rules whose left-hand side has `op` at its root, and no primitives but `ops`, one
    /// bit each: most rules have others.
    fn of(&self, op: Op, ops: u64) -> impl Iterator<Item = &'static Ready> {
        let is_final = self.stage == Stage::Final;
        self.rules[op as usize].iter().filter(move |ready| {
            ready.needs & !ops == 0 && (is_final || ready.rule.before_derivatives)
        })
    }

    /// Whether the left-hand side of a rule that is worth an e-graph occurs in `segment`, in a
    /// graph with these primitives, one bit each.
    pub(super) fn may_match(&self, graph: &Graph, ops: u64, segment: &Segment) -> bool {
        segment.nodes.iter().any(|&node| {
            let Def::Apply(op, args) = graph.nodes[node].def else { return false };
            self.of(op, ops).filter(|ready| ready.rule.triggers).any(|ready| {
                let mut occurs = false;
                search(graph, &args[..op.arity()], &ready.left, &mut |_| occurs = true);
                occurs
            })
        })
    }

    /// Applies the rules to what has these primitives, one bit each.
    pub(super) fn run(&self, terms: &mut Terms, mut ops: u64) -> Saturated {
        let most = terms.total_size() * self.limits.terms_per_node + 32;
        // Superseding forms have more room, and come first: without the form of one of several
        // terms those of the others were in vain.
        let most_of_all = 2 * most;
        let mut result = Saturated { iterations: 0, changed: false, complete: false };
        let mut done: HashSet<(usize, Term, Letters<Id>)> = HashSet::new();
        terms.rebuild();
        for _ in 0..self.limits.iterations {
            result.iterations += 1;
            let mut candidates = self.candidates(terms, ops);
            candidates.sort_by_key(|candidate| !candidate.ready.rule.supersedes);
            let mut again = false;
            for Candidate { ready, class, term, letters } in candidates {
                let rule = ready.rule;
                if terms.total_size() > if rule.supersedes { most_of_all } else { most } {
                    break;
                }
                let key = (ready.number, term, letters);
                if done.contains(&key) {
                    continue;
                }
                let letters = &key.2;
                let mut found = Match { terms, letters, term };
                if !(rule.holds)(&found) {
                    continue;
                }
                let other: Option<Id> = match (rule.right, &ready.right) {
                    (Right::Made(make, _), _) => make(&mut found),
                    (Right::Pattern(_), Some(right)) => right.instantiate(terms, letters),
                    (Right::Pattern(_), None) => None,
                };
                let Some(other) = other else { continue };
                if terms.find(class) != terms.find(other) {
                    terms.union(class, other);
                    again = true;
                    ops |= ready.makes;
                }
                // Also where another rule has found the same.
                if rule.supersedes && !terms.analysis.superseded.contains(&term) {
                    terms.analysis.superseded.push(term);
                }
                // What is made without a pattern may depend on what else is known.
                if matches!(rule.right, Right::Pattern(_)) {
                    done.insert(key);
                }
            }
            if !terms.clean {
                terms.rebuild();
            }
            result.changed |= again;
            result.complete = !again;
            if !again || terms.total_size() > most_of_all {
                break;
            }
        }
        result
    }

    /// Where the left-hand sides of rules occur, in the order of the rules.
    fn candidates(&self, terms: &Terms, ops: u64) -> Vec<Candidate> {
        let mut candidates = Vec::new();
        let classes = Classes::of(terms);
        for class in terms.classes() {
            for &term in &class.nodes {
                let Term::Apply(op, _) = term else { continue };
                for ready in self.of(op, ops) {
                    search(&classes, term.children(), &ready.left, &mut |letters| {
                        let letters = letters.clone();
                        candidates.push(Candidate { ready, class: class.id, term, letters });
                    });
                }
            }
        }
        candidates
    }
}

fn all_ready() -> Vec<Vec<Ready>> {
    let mut all: Vec<Vec<Ready>> = Op::ALL.iter().map(|_| Vec::new()).collect();
    for ready in rules().enumerate().filter_map(ready) {
        if let Pattern::Apply { op, .. } = ready.left {
            all[op as usize].push(ready);
        }
    }
    all
}

fn ready((number, rule): (usize, &'static Rule)) -> Option<Ready> {
    let left = Pattern::parse(rule.left)?;
    let (right, makes) = match rule.right {
        Right::Pattern(text) => {
            let pattern = Pattern::parse(text)?;
            let makes = pattern.ops();
            (Some(pattern), makes)
        }
        Right::Made(_, ops) => (None, ops.iter().fold(0, |all, &op| all | bit(op))),
    };
    let needs = left.ops();
    Some(Ready { number, rule, left, right, needs, makes })
}
