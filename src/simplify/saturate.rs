//! Equality saturation: rules are applied until nothing changes or a limit is reached.

use std::sync::OnceLock;

use egg::{Id, Language};
use hashbrown::HashSet;

use super::egraph::{OpSet, Term, Terms, bit};
use super::matching::{Classes, Pattern, Substitution, search};
use super::rules::{Match, Right, Rule, rules};
use super::{SimplifyLimits, Stage};
use crate::op::Op;
use crate::ssa::{Def, Graph, Segment};

/// A rule with its parsed patterns.
struct CompiledRule {
    /// Its index in the table.
    number: usize,
    rule: &'static Rule,
    left: Pattern,
    right: Option<Pattern>,
    /// The primitives of the left-hand side, one bit each.
    needs: OpSet,
    /// The primitives of the right-hand side, one bit each.
    adds_ops: OpSet,
}

/// All rules, by the primitive at the root of their left-hand side.
static COMPILED_RULES: OnceLock<Vec<Vec<CompiledRule>>> = OnceLock::new();

/// The rules of a stage.
pub(super) struct Saturation {
    rules: &'static [Vec<CompiledRule>],
    stage: Stage,
    limits: SimplifyLimits,
}

/// The result of a run of the rules.
pub(super) struct Saturated {
    /// The number of iterations over all rules.
    pub(super) iterations: usize,
    /// True if classes were united.
    pub(super) changed: bool,
    /// True if the e-graph is saturated.
    pub(super) complete: bool,
}

/// An instance of the left-hand side of a rule.
struct Candidate {
    compiled: &'static CompiledRule,
    class: Id,
    term: Term,
    substitution: Substitution<Id>,
}

impl Saturation {
    pub(super) fn new(stage: Stage, limits: SimplifyLimits) -> Saturation {
        Saturation { rules: COMPILED_RULES.get_or_init(compile_rules), stage, limits }
    }

    /// The rules whose left-hand side has `op` at its root and no primitives but `ops`, one bit
    /// each. This filter excludes most rules.
    fn of(&self, op: Op, ops: OpSet) -> impl Iterator<Item = &'static CompiledRule> {
        let is_final = self.stage == Stage::Final;
        self.rules[op as usize].iter().filter(move |compiled| {
            compiled.needs & !ops == 0 && (is_final || compiled.rule.at_any_stage)
        })
    }

    /// True if the left-hand side of a triggering rule has an instance in `segment`. `ops` are the
    /// primitives of the graph, one bit each.
    pub(super) fn may_match(&self, graph: &Graph, ops: OpSet, segment: &Segment) -> bool {
        segment.nodes.iter().any(|&node| {
            let Def::Apply(op, args) = graph.nodes[node].def else { return false };
            self.of(op, ops).filter(|compiled| compiled.rule.triggers).any(|compiled| {
                let mut occurs = false;
                search(graph, &args[..op.arity()], &compiled.left, &mut |_| occurs = true);
                occurs
            })
        })
    }

    /// Applies the rules to an e-graph with the primitives `ops`, one bit each.
    pub(super) fn run(&self, terms: &mut Terms, mut ops: OpSet) -> Saturated {
        let max_terms = terms.total_size() * self.limits.terms_per_node + 32;
        // Superseding rules are applied first and have a larger limit: the forms of several terms
        // share subterms, and are of use only together.
        let max_superseding_terms = 2 * max_terms;
        let mut result = Saturated { iterations: 0, changed: false, complete: false };
        let mut done: HashSet<(usize, Term, Substitution<Id>)> = HashSet::new();
        terms.rebuild();
        for _ in 0..self.limits.iterations {
            result.iterations += 1;
            let mut candidates = self.candidates(terms, ops);
            candidates.sort_by_key(|candidate| !candidate.compiled.rule.supersedes);
            let mut again = false;
            for Candidate { compiled, class, term, substitution } in candidates {
                let rule = compiled.rule;
                if terms.total_size()
                    > if rule.supersedes { max_superseding_terms } else { max_terms }
                {
                    break;
                }
                let key = (compiled.number, term, substitution);
                if done.contains(&key) {
                    continue;
                }
                let substitution = &key.2;
                let mut found = Match { terms, substitution, term };
                if !(rule.holds)(&found) {
                    continue;
                }
                let other: Option<Id> = match (rule.right, &compiled.right) {
                    (Right::Computed(compute, _), _) => compute(&mut found),
                    (Right::Pattern(_), Some(right)) => right.instantiate(terms, substitution),
                    (Right::Pattern(_), None) => None,
                };
                let Some(other) = other else { continue };
                if terms.find(class) != terms.find(other) {
                    terms.union(class, other);
                    again = true;
                    ops |= compiled.adds_ops;
                }
                // Also if another rule has united the classes already.
                if rule.supersedes && !terms.analysis.superseded.contains(&term) {
                    terms.analysis.superseded.push(term);
                }
                // A computed right-hand side may depend on facts, so it is tried again.
                if matches!(rule.right, Right::Pattern(_)) {
                    done.insert(key);
                }
            }
            if !terms.clean {
                terms.rebuild();
            }
            result.changed |= again;
            result.complete = !again;
            if !again || terms.total_size() > max_superseding_terms {
                break;
            }
        }
        result
    }

    /// The instances of left-hand sides, by class and rule.
    fn candidates(&self, terms: &Terms, ops: OpSet) -> Vec<Candidate> {
        let mut candidates = Vec::new();
        let classes = Classes::of(terms);
        for class in terms.classes() {
            for &term in &class.nodes {
                let Term::Apply(op, _) = term else { continue };
                for compiled in self.of(op, ops) {
                    search(&classes, term.children(), &compiled.left, &mut |substitution| {
                        let substitution = substitution.clone();
                        candidates.push(Candidate {
                            compiled,
                            class: class.id,
                            term,
                            substitution,
                        });
                    });
                }
            }
        }
        candidates
    }
}

fn compile_rules() -> Vec<Vec<CompiledRule>> {
    let mut all: Vec<Vec<CompiledRule>> = Op::ALL.iter().map(|_| Vec::new()).collect();
    for compiled in rules().enumerate().filter_map(compiled) {
        if let Pattern::Apply { op, .. } = compiled.left {
            all[op as usize].push(compiled);
        }
    }
    all
}

fn compiled((number, rule): (usize, &'static Rule)) -> Option<CompiledRule> {
    let left = Pattern::parse(rule.left)?;
    let (right, adds_ops) = match rule.right {
        Right::Pattern(text) => {
            let pattern = Pattern::parse(text)?;
            let adds_ops = pattern.ops();
            (Some(pattern), adds_ops)
        }
        Right::Computed(_, ops) => (None, ops.iter().fold(0, |all, &op| all | bit(op))),
    };
    let needs = left.ops();
    Some(CompiledRule { number, rule, left, right, needs, adds_ops })
}
