//! Equality saturation: rules are applied until nothing changes or a limit is met.

use egg::{Id, Pattern, PatternAst, Searcher};

use super::facts::Terms;
use super::language::Term;
use super::pattern::{Tree, bit, instantiate};
use super::rules::{Found, RULES, Right, Rule};
use super::{SimplifyLimits, Stage};
use crate::ssa::{Graph, Segment};

/// A rule, ready to be searched for.
struct Ready {
    rule: &'static Rule,
    left: Vec<(Pattern<Term>, PatternAst<Term>)>,
    right: Option<PatternAst<Term>>,
}

/// A rule that has not been needed so far.
struct Unread {
    rule: &'static Rule,
    /// The left side in all orders.
    orders: Vec<Tree>,
    right: Option<Tree>,
    /// The primitives of the left side, one bit each.
    needs: u64,
    /// Those of the right side.
    makes: u64,
    ready: Option<Ready>,
}

/// The rules of a stage.
pub(super) struct Saturation {
    rules: Vec<Unread>,
    limits: SimplifyLimits,
}

impl Saturation {
    pub(super) fn new(stage: Stage, limits: SimplifyLimits) -> Saturation {
        let usable = RULES.iter().filter(|rule| stage == Stage::Final || rule.before_derivatives);
        Saturation { rules: usable.filter_map(unread).collect(), limits }
    }

    /// Whether the left side of a rule that is worth it occurs here.
    pub(super) fn may_match(&self, graph: &Graph, segment: &Segment) -> bool {
        segment.nodes.iter().any(|&node| {
            self.rules
                .iter()
                .filter(|rule| rule.rule.is_worth_it)
                .any(|rule| rule.orders.iter().any(|left| left.occurs(graph, node, &mut vec![])))
        })
    }

    /// Applies the rules. Returns whether anything has become equal to something else.
    pub(super) fn run(&mut self, terms: &mut Terms, mut ops: u64) -> bool {
        let most = terms.total_size() * self.limits.growth + 32;
        let mut changed = false;
        terms.rebuild();
        for _ in 0..self.limits.iterations {
            let mut matches = Vec::new();
            for (number, rule) in self.rules.iter_mut().enumerate() {
                if rule.needs & !ops != 0 {
                    continue;
                }
                let ready = rule.ready();
                for (order, (pattern, _)) in ready.left.iter().enumerate() {
                    for found in pattern.search(terms) {
                        let substs = found.substs.into_iter();
                        matches.extend(substs.map(|subst| (number, order, found.eclass, subst)));
                    }
                }
            }
            let mut again = false;
            for (number, order, class, subst) in matches {
                if terms.total_size() > most {
                    break;
                }
                let Some(ready) = &self.rules[number].ready else { continue };
                let rule = ready.rule;
                let mut found = Found { terms, subst: &subst };
                if !(rule.holds)(&found) {
                    continue;
                }
                let other: Option<Id> = match (rule.right, &ready.right) {
                    (Right::Made(make, _), _) => make(&mut found),
                    (Right::Pattern(_), Some(ast)) => {
                        instantiate(terms, ast, &subst).map(|(id, _)| id)
                    }
                    (Right::Pattern(_), None) => None,
                };
                let Some(other) = other else { continue };
                if terms.union(class, other) {
                    again = true;
                    ops |= self.rules[number].makes;
                }
                // Also where another rule has found the same.
                if rule.is_stable
                    && let Some((_, Some(term))) = instantiate(terms, &ready.left[order].1, &subst)
                    && !terms.analysis.superseded.contains(&term)
                {
                    terms.analysis.superseded.push(term);
                }
            }
            terms.rebuild();
            changed |= again;
            if !again || terms.total_size() > most {
                break;
            }
        }
        changed
    }
}

fn unread(rule: &'static Rule) -> Option<Unread> {
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
    let orders = left.orders();
    Some(Unread { rule, orders, right, needs, makes, ready: None })
}

impl Unread {
    fn ready(&mut self) -> &Ready {
        let Unread { rule, orders, right, ready, .. } = self;
        ready.get_or_insert_with(|| Ready {
            rule,
            left: orders.iter().map(|order| (order.pattern(), order.ast())).collect(),
            right: right.as_ref().map(Tree::ast),
        })
    }
}
