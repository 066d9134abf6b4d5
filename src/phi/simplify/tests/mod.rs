//! Each rule on numbers: where it holds, the right side is about as accurate as the
//! left one against a reference of twice the precision, finite where that is, and
//! NaN where an operand is; and without the facts that it needs it does nothing.

mod loops;
mod precise;
mod random;

use egg::{Id, Language};

use super::facts::{Knowledge, Terms};
use super::found::Found;
use super::language::Term;
use super::matching::Letters;
use super::pattern::Tree;
use super::range::{Range, range_of};
use super::rules::{Right, Rule, Tag, rules};
use crate::op::{Op, eval};
use precise::Precise;
use random::Random;

fn letters(tree: &Tree, all: &mut Vec<char>) {
    match tree {
        Tree::Variable(name) if !all.contains(name) => all.push(*name),
        Tree::Variable(_) | Tree::Number(_) => {}
        Tree::Apply { operands, .. } => operands.iter().for_each(|operand| letters(operand, all)),
    }
}

fn between(low: f64, high: f64) -> Range {
    Range { low, high, nan: false, ..Range::UNKNOWN }
}

/// What is known of each letter; `k` and `m` are constants.
type Scenario = fn(char) -> Range;

const SCENARIOS: &[Scenario] = &[
    |_| Range::UNKNOWN,
    |_| between(0.0, f64::INFINITY),
    |_| between(1e-3, f64::INFINITY),
    |_| between(-100.0, 100.0),
    |_| between(0.5, 8.0),
    |name| if name == 'x' { between(-40.0, 0.0) } else { Range::UNKNOWN },
    |name| if name == 'a' { between(5.0, 8.0) } else { between(1.0, 2.0) },
    |_| Range { integer: true, ..between(3.0, 3.0) },
    |name| if name == 'a' { between(1.0, 2.0) } else { between(5.0, 8.0) },
];

const CONSTANTS: &[[f64; 2]] = &[[1.5, 0.5], [2.5, 3.0], [-0.75, 2.0], [0.5, 1.25]];

/// A rule at work.
struct Trial {
    terms: Terms,
    left: Id,
    right: Option<Id>,
    names: Vec<char>,
    ranges: Vec<Range>,
}

impl Trial {
    /// In a loop, if `in_loop` says so, of which the letters are free that the rule wants to be.
    fn of(
        rule: &Rule,
        range: impl Fn(char) -> Range,
        constants: Option<[f64; 2]>,
        in_loop: bool,
    ) -> Trial {
        let tree = Tree::parse(rule.left).expect(rule.name);
        let mut all = Vec::new();
        letters(&tree, &mut all);
        let ways = if in_loop { vec![(1, 100)] } else { Vec::new() };
        let mut terms = Terms::new(Knowledge::within(ways));
        let (mut bound, mut names, mut ranges) = (Letters::new(), Vec::new(), Vec::new());
        for name in all {
            let constant = match (name, constants) {
                ('k', Some([k, _])) => Some(k),
                ('m', Some([_, m])) => Some(m),
                _ => None,
            };
            let id = match constant {
                Some(value) => terms.add(Term::constant(value)),
                None => {
                    let mut leaf = || {
                        terms.analysis.leaves.push(range(name));
                        let changes = u64::from(!rule.frees.contains(name));
                        terms.analysis.changes.push(changes);
                        ranges.push(range(name));
                        names.push(name);
                        terms.add(Term::Leaf(names.len() as u32 - 1))
                    };
                    if name == 's' {
                        // A sum of exponentials.
                        let [a, b] =
                            [leaf(), leaf()].map(|x| terms.add(Term::apply(Op::Exp, &[x])));
                        terms.add(Term::apply(Op::Add, &[a, b]))
                    } else if name == 'd' && rule.left.contains("?n") {
                        // A sum of which that is a part.
                        let others = [leaf(), leaf()];
                        let part = bound.iter().find(|(name, _)| *name == 'n').map(|&(_, id)| id);
                        let part = part.expect(rule.name);
                        let first = terms.add(Term::apply(Op::Add, &[others[0], part]));
                        terms.add(Term::apply(Op::Add, &[first, others[1]]))
                    } else {
                        leaf()
                    }
                }
            };
            bound.push((name, id));
        }
        let left = tree.instantiate(&mut terms, &bound).expect(rule.name);
        let term = terms[left].nodes[0];
        let mut found = Found { terms: &mut terms, letters: &bound, term };
        let right = match rule.right {
            _ if !(rule.holds)(&found) => None,
            Right::Made(make, _) => make(&mut found),
            Right::Pattern(text) => {
                let tree = Tree::parse(text).expect(rule.name);
                tree.instantiate(&mut terms, &bound)
            }
        };
        Trial { terms, left, right, names, ranges }
    }

    /// Whether the graph stops before the loop for these numbers.
    fn stops(&self, leaves: &[f64]) -> bool {
        self.terms.analysis.guarded.iter().any(|&id| !self.value(id, leaves).is_finite())
    }

    fn value(&self, id: Id, leaves: &[f64]) -> f64 {
        match &self.terms[id].nodes[0] {
            Term::Leaf(number) => leaves[*number as usize],
            Term::Const(bits) => f64::from_bits(*bits),
            term @ Term::Apply(op, _) => {
                let mut args = [0.0; 3];
                for (arg, &operand) in args.iter_mut().zip(term.children()) {
                    *arg = self.value(operand, leaves);
                }
                eval(*op, args)
            }
        }
    }

    fn precise(&self, id: Id, leaves: &[f64]) -> Precise {
        match &self.terms[id].nodes[0] {
            Term::Leaf(number) => Precise::from(leaves[*number as usize]),
            Term::Const(bits) => Precise::from(f64::from_bits(*bits)),
            term @ Term::Apply(op, _) => {
                let args: Vec<Precise> =
                    term.children().iter().map(|&id| self.precise(id, leaves)).collect();
                Precise::eval(*op, &args)
            }
        }
    }
}

/// A number near to 0, 1 or -1, at any distance.
fn near(random: &mut Random) -> f64 {
    let distance = 10f64.powf(-16.0 * random.unit());
    let signed = if random.chance(0.5) { -distance } else { distance };
    signed + [0.0, 0.0, 1.0, -1.0][random.below(4)]
}

fn ulp(x: f64) -> f64 {
    (x.abs().next_up() - x.abs()).max(f64::MIN_POSITIVE)
}

#[test]
fn rules_are_accurate_where_they_hold() {
    let mut random = Random(17);
    for rule in rules() {
        let mut fired = false;
        for scenario in SCENARIOS {
            for &constants in CONSTANTS {
                let trial = Trial::of(rule, scenario, Some(constants), true);
                let Some(right) = trial.right else { continue };
                fired = true;
                for number in 0..150 {
                    let leaves: Vec<f64> = trial
                        .ranges
                        .iter()
                        .map(|range| {
                            let (low, high) = (range.low.max(-30.0), range.high.min(30.0));
                            match number % 3 {
                                // Near 0 and 1, where digits are lost.
                                0 => near(&mut random).clamp(low, high),
                                _ => low + (high - low) * random.unit(),
                            }
                        })
                        .collect();
                    let (old, new) =
                        (trial.value(trial.left, &leaves), trial.value(right, &leaves));
                    let exact = trial.precise(trial.left, &leaves);
                    if !exact.is_finite() || !old.is_finite() {
                        continue;
                    }
                    if rule.tag == Tag::Exact {
                        assert_eq!(old.to_bits(), new.to_bits(), "{} {leaves:?}", rule.name);
                    }
                    let bound = 4.0 * exact.distance(old) + 4.0 * ulp(old);
                    assert!(
                        exact.distance(new) <= bound,
                        "{}: {new} for {old} at {leaves:?}",
                        rule.name
                    );
                }
            }
        }
        assert!(fired, "{} never holds", rule.name);
    }
}

#[test]
fn rules_make_no_infinities_and_forget_no_nan() {
    let wide = [
        0.0,
        5e-324,
        1e-310,
        1e-200,
        1e-9,
        0.3,
        1.0,
        2.0,
        30.0,
        700.5,
        709.5,
        745.0,
        800.0,
        1e9,
        1e154,
        1e200,
        1e308,
        f64::INFINITY,
    ];
    let mut random = Random(5);
    for rule in rules() {
        for scenario in SCENARIOS {
            for &constants in CONSTANTS {
                let trial = Trial::of(rule, scenario, Some(constants), true);
                let Some(right) = trial.right else { continue };
                for _ in 0..250 {
                    let mut leaves: Vec<f64> = Vec::new();
                    for range in &trial.ranges {
                        let size: f64 = wide[random.below(wide.len())];
                        let x = if random.chance(0.5) { -size } else { size };
                        leaves.push(x.clamp(range.low, range.high));
                    }
                    let (old, new) =
                        (trial.value(trial.left, &leaves), trial.value(right, &leaves));
                    // A product near the largest number may round to either side of it.
                    let is_finite = old.is_finite() && old.abs() < 1e305 && !trial.stops(&leaves);
                    assert!(
                        !is_finite || new.is_finite(),
                        "{}: {new} for {old} at {leaves:?}",
                        rule.name
                    );
                    for (i, range) in trial.ranges.iter().enumerate() {
                        if range.nan {
                            let mut spoilt = leaves.clone();
                            spoilt[i] = f64::NAN;
                            let was = trial.value(trial.left, &spoilt).is_nan();
                            let is = trial.value(right, &spoilt).is_nan();
                            assert!(!was || is, "{} forgets {}", rule.name, trial.names[i]);
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn rules_do_nothing_without_the_facts_that_they_need() {
    for rule in rules() {
        let trial = Trial::of(rule, |_| Range::UNKNOWN, None, false);
        assert_eq!(trial.right.is_none(), rule.tag == Tag::NeedsFact, "{}", rule.name);
    }
}

#[test]
fn ranges_hold_what_is_computed() {
    let mut random = Random(3);
    for &op in Op::ALL {
        for _ in 0..3000 {
            let mut ranges = [Range::UNKNOWN; 3];
            let mut args = [0.0; 3];
            for (range, arg) in ranges.iter_mut().zip(&mut args) {
                let ends = [0, 1].map(|_| {
                    let size = [0.0, 0.5, 1.0, 3.0, 800.0, 1e200, f64::INFINITY][random.below(7)];
                    if random.chance(0.5) { -size } else { size }
                });
                *range = between(ends[0].min(ends[1]), ends[0].max(ends[1]));
                let (low, high) = (range.low.clamp(-1e300, 1e300), range.high.clamp(-1e300, 1e300));
                *arg = match random.below(4) {
                    0 => range.low,
                    1 => range.high,
                    _ => (low + (high - low) * random.unit()).clamp(range.low, range.high),
                };
            }
            let is_square = random.chance(0.2);
            if is_square {
                (ranges[1], args[1]) = (ranges[0], args[0]);
            }
            if op == Op::Powi {
                args[1] = args[1].clamp(-9.0, 9.0).trunc();
                ranges[1] = Range::constant(args[1]);
            }
            let (value, range) = (eval(op, args), range_of(op, ranges, is_square));
            let holds = if value.is_nan() {
                range.nan
            } else {
                range.low <= value
                    && value <= range.high
                    && !(range.is_nonzero() && value == 0.0)
                    && !(range.integer && value.trunc() != value)
            };
            assert!(holds, "{op} {args:?} = {value} is not in {range:?} of {ranges:?}");
        }
    }
}
