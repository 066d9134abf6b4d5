//! Equality saturation: rules are applied until nothing changes or a limit is met.

use std::sync::OnceLock;

use egg::{Id, Language};
use hashbrown::HashSet;

use super::facts::Terms;
use super::found::Found;
use super::language::Term;
use super::loops::{Loops, is_free};
use super::matching::{Application, Classes, Letters};
use super::pattern::{Tree, bit};
use super::rules::{Right, Rule, rules};
use super::{SimplifyLimits, Stage};
use crate::op::Op;
use crate::ssa::{Def, Graph, Node, Segment};

/// A rule, read.
struct Ready {
    /// Its place in the table.
    number: usize,
    rule: &'static Rule,
    left: Tree,
    right: Option<Tree>,
    /// The primitives of the left side, one bit each.
    needs: u64,
    /// Those of the right side.
    makes: u64,
}

/// All rules, for each primitive those with it at the root of their left side.
static READY: OnceLock<Vec<Vec<Ready>>> = OnceLock::new();

/// The rules of a stage.
pub(super) struct Saturation {
    rules: &'static [Vec<Ready>],
    stage: Stage,
    limits: SimplifyLimits,
}

/// How it went.
pub(super) struct Saturated {
    /// How often all rules were tried.
    pub(super) iterations: usize,
    /// Whether anything has become equal to something else.
    pub(super) changed: bool,
    /// Whether no rule has anything to add.
    pub(super) complete: bool,
}

/// Where a rule has been found.
struct Match {
    ready: &'static Ready,
    class: Id,
    term: Term,
    letters: Letters<Id>,
}

impl Saturation {
    pub(super) fn new(stage: Stage, limits: SimplifyLimits) -> Saturation {
        Saturation { rules: READY.get_or_init(all_ready), stage, limits }
    }

    /// The rules whose left side has `op` at its root, and no primitives but `ops`, one bit each:
    /// most rules have others.
    fn of(&self, op: Op, ops: u64) -> impl Iterator<Item = &'static Ready> {
        let stage = self.stage;
        let may_occur = move |ready: &&Ready| ready.needs & !ops == 0;
        let usable = move |ready: &&Ready| match stage {
            Stage::Primal => ready.rule.before_derivatives,
            Stage::Final => true,
            // What is computed before a loop may have a guard.
            Stage::Shown => ready.rule.frees.is_empty(),
        };
        self.rules[op as usize].iter().filter(may_occur).filter(usable)
    }

    /// Whether the left side of a rule that is worth it occurs here, in a graph with these
    /// primitives, one bit each.
    pub(super) fn may_match(
        &self,
        graph: &Graph,
        ops: u64,
        loops: &Loops,
        segment: &Segment,
    ) -> bool {
        let ways = loops.ways(segment.block);
        // What the rule makes of these can be computed before the loop.
        let is_moved = |ready: &Ready, letters: &Letters<Node>| {
            let is_free = |node: Node| is_free(loops.changes(node, segment.block), &ways);
            letters.iter().all(|&(name, node)| ready.rule.frees.contains(name) == is_free(node))
        };
        segment.nodes.iter().any(|&node| {
            let Def::Apply(op, args) = graph.nodes[node].def else { return false };
            let application = Application::new(graph, &args[..op.arity()]);
            let is_worth_it = |ready: &&Ready| {
                ready.rule.is_worth_it || !ready.rule.frees.is_empty() && !ways.is_empty()
            };
            self.of(op, ops).filter(is_worth_it).any(|ready| {
                let mut occurs = false;
                application.search(&ready.left, &mut |letters| {
                    occurs |= ready.rule.is_worth_it || is_moved(ready, letters);
                });
                occurs
            })
        })
    }

    /// Applies the rules to what has these primitives, one bit each.
    pub(super) fn run(&self, terms: &mut Terms, mut ops: u64) -> Saturated {
        let most = terms.total_size() * self.limits.growth + 32;
        // Forms that are finite or accurate where others are not have more room, and come
        // first: if one of several terms had no such form, that of the others was in vain.
        let most_of_all = 2 * most;
        let mut went = Saturated { iterations: 0, changed: false, complete: false };
        // What has been added needs not be added again in the next iteration.
        let mut done: HashSet<(usize, Term, Letters<Id>)> = HashSet::new();
        terms.rebuild();
        for _ in 0..self.limits.iterations {
            went.iterations += 1;
            let mut matches = self.matches(terms, ops);
            matches.sort_by_key(|found| !found.ready.rule.is_stable);
            let mut again = false;
            for Match { ready, class, term, letters } in matches {
                let most = if ready.rule.is_stable { most_of_all } else { most };
                if terms.total_size() > most {
                    break;
                }
                let key = (ready.number, term, letters);
                if done.contains(&key) {
                    continue;
                }
                let letters = &key.2;
                let mut found = Found { terms, letters, term };
                if !(ready.rule.holds)(&found) {
                    continue;
                }
                let other: Option<Id> = match (ready.rule.right, &ready.right) {
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
                if ready.rule.is_stable && !terms.analysis.superseded.contains(&term) {
                    terms.analysis.superseded.push(term);
                    if ready.needs & bit(Op::Exp) != 0 && !ready.rule.is_accurate {
                        terms.analysis.overflowing.push(class);
                    }
                }
                // What is made without a pattern may depend on what else is known.
                if matches!(ready.rule.right, Right::Pattern(_)) {
                    done.insert(key);
                }
            }
            if !terms.clean {
                terms.rebuild();
            }
            went.changed |= again;
            went.complete = !again;
            if !again || terms.total_size() > most_of_all {
                break;
            }
        }
        went
    }

    /// Where the left sides of rules occur, in the order of the rules.
    fn matches(&self, terms: &Terms, ops: u64) -> Vec<Match> {
        let mut matches = Vec::new();
        let classes = Classes::of(terms);
        for class in terms.classes() {
            for &term in &class.nodes {
                let Term::Apply(op, _) = term else { continue };
                let application = Application::new(&classes, term.children());
                for ready in self.of(op, ops) {
                    application.search(&ready.left, &mut |letters| {
                        let letters = letters.clone();
                        matches.push(Match { ready, class: class.id, term, letters });
                    });
                }
            }
        }
        matches
    }
}

fn all_ready() -> Vec<Vec<Ready>> {
    let mut all: Vec<Vec<Ready>> = Op::ALL.iter().map(|_| Vec::new()).collect();
    for ready in rules().enumerate().filter_map(ready) {
        if let Some(op) = ready.left.root() {
            all[op as usize].push(ready);
        }
    }
    all
}

fn ready((number, rule): (usize, &'static Rule)) -> Option<Ready> {
    let left = Tree::parse(rule.left)?;
    let (right, makes) = match rule.right {
        Right::Pattern(text) => {
            let tree = Tree::parse(text)?;
            let makes = tree.ops();
            (Some(tree), makes)
        }
        Right::Made(_, ops) => (None, ops.iter().fold(0, |all, &op| all | bit(op))),
    };
    let needs = left.ops();
    Some(Ready { number, rule, left, right, needs, makes })
}
