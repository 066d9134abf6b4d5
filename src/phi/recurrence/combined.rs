//! Sums and differences of what a loop carries that are numbers of their own.
//!
//! Two numbers that level out have a sum that stays what it is, and a difference that is
//! multiplied by the same in each step, whatever the numbers themselves come to. In closed forms of
//! the two, each of which is a sum of both, all that is left of the difference may cancel; a sweep
//! through the loop passes on the difference alone. So a program that takes it behind the loop gets
//! the closed form of that number: for weights w with wᵀ·A = λ·wᵀ, wᵀ·z becomes λ·wᵀ·z + wᵀ·b.

use std::collections::{BTreeMap, BTreeSet};

use hashbrown::HashMap;

use super::MOST_STATES;
use super::form::{Affine, Base, Coefficient, Forms};
use super::power::{self, System, advanced};
use super::terms::Terms;
use crate::op::Op;
use crate::phi::pair::{Pair, Pairs};
use crate::ssa::{Def, Graph, Node, Region};

/// Sums of more steps are not looked at, nor would certificates know whose they are.
const MOST_STEPS: usize = 24;

/// A node that is a sum of multiples of what comes out of one loop.
#[derive(Clone)]
pub(super) struct Combination {
    pub(super) node: Node,
    region: Region,
    /// The φs, each with its factor.
    parts: Vec<(Node, f64)>,
    /// How many sums and products it is, each counted wherever it is used.
    steps: usize,
}

/// The sums of several φs of loops in `graph`, by their loops.
pub(super) fn combinations(graph: &Graph) -> HashMap<Region, Vec<Combination>> {
    let mut known: HashMap<Node, Combination> = HashMap::new();
    let mut all: HashMap<Region, Vec<Combination>> = HashMap::new();
    for node in graph.nodes.keys() {
        let Some(found) = combination(graph, &known, node) else { continue };
        if found.parts.len() > 1 {
            all.entry(found.region).or_default().push(found.clone());
        }
        known.insert(node, found);
    }
    all
}

fn combination(
    graph: &Graph,
    known: &HashMap<Node, Combination>,
    node: Node,
) -> Option<Combination> {
    let (op, [a, b, c]) = match graph.nodes[node].def {
        Def::Phi(region, _) if graph.regions[region].cycle.is_some() => {
            return Some(Combination { node, region, parts: vec![(node, 1.0)], steps: 0 });
        }
        Def::Apply(op, args) => (op, args),
        _ => return None,
    };
    let number = |node: Node| graph.constant(node);
    // That is what a program begins a sum with.
    let is_nothing = |node: Node| number(node) == Some(0.0);
    let product = |a: Node, b: Node| match (number(a), number(b)) {
        (Some(factor), _) => Some(known.get(&b)?.scaled(factor)),
        (_, Some(factor)) => Some(known.get(&a)?.scaled(factor)),
        _ => None,
    };
    let found = match op {
        Op::Neg => known.get(&a)?.scaled(-1.0),
        Op::Mul => product(a, b)?,
        // Rounded, as the quotients are.
        Op::Div => known.get(&a)?.scaled(1.0 / number(b)?),
        Op::Add | Op::Sub if is_nothing(b) => known.get(&a)?.scaled(1.0),
        Op::Add if is_nothing(a) => known.get(&b)?.scaled(1.0),
        Op::Sub if is_nothing(a) => known.get(&b)?.scaled(-1.0),
        Op::Add => known.get(&a)?.scaled(1.0).plus(known.get(&b)?, 1.0)?,
        Op::Sub => known.get(&a)?.scaled(1.0).plus(known.get(&b)?, -1.0)?,
        Op::MulAdd if is_nothing(c) => product(a, b)?,
        Op::MulAdd => product(a, b)?.plus(known.get(&c)?, 1.0)?,
        _ => return None,
    };
    let found = Combination { node, ..found };
    found.fits().then_some(found)
}

impl Combination {
    /// So many times this.
    fn scaled(&self, factor: f64) -> Combination {
        let parts = self.parts.iter().map(|&(phi, own)| (phi, own * factor)).collect();
        Combination { parts, steps: self.steps + 1, ..*self }
    }

    /// This, and `other` so many times, if that is of the same loop.
    fn plus(mut self, other: &Combination, factor: f64) -> Option<Combination> {
        if self.region != other.region {
            return None;
        }
        for &(phi, own) in &other.parts {
            match self.parts.iter_mut().find(|(known, _)| *known == phi) {
                Some((_, before)) => *before += own * factor,
                None => self.parts.push((phi, own * factor)),
            }
        }
        self.steps += other.steps;
        self.parts.retain(|&(_, factor)| factor != 0.0);
        Some(self)
    }

    fn fits(&self) -> bool {
        let are_normal = self.parts.iter().all(|(_, factor)| factor.is_normal());
        are_normal && self.parts.len() <= MOST_STATES && self.steps <= MOST_STEPS
    }

    /// The form after `times` steps, where `state_of` tells which number of `system` a φ is; `None`
    /// if it is no number of its own.
    pub(super) fn form(
        &self,
        forms: &mut Forms<'_, '_>,
        system: &System,
        times: usize,
        most: usize,
        state_of: impl Fn(Node) -> Option<usize>,
    ) -> Option<Node> {
        // Several φs may be the same number.
        let mut places: BTreeMap<usize, f64> = BTreeMap::new();
        for &(phi, factor) in &self.parts {
            let state = state_of(phi)?;
            let place = system.states.iter().position(|&other| other == state)?;
            *places.entry(place).or_default() += factor;
        }
        if places.len() < 2 || places.values().any(|factor| !factor.is_normal()) {
            return None;
        }
        let &whole = places.values().next()?;
        // What is divided by the first factor is exact, or nothing would be known to cancel but
        // what is rounded.
        let weights: Vec<(usize, f64)> =
            places.iter().map(|(&place, &factor)| (place, factor / whole)).collect();
        let is_exact = |((_, weight), &factor): (&(usize, f64), &f64)| {
            weight.is_normal() && weight.mul_add(whole, -factor) == 0.0
        };
        if !weights.iter().zip(places.values()).all(is_exact) {
            return None;
        }
        let before = forms.emitter.items.len();
        let (derived, overflows) = (forms.emitter.derived, forms.emitter.overflows);
        let found = alone(forms, system, &weights, times, most);
        let found = found.filter(|_| {
            let steps = forms.emitter.items.len() - before;
            steps <= most && !forms.emitter.overflows
        });
        let Some(node) = found else {
            forms.emitter.forget(before);
            (forms.emitter.derived, forms.emitter.overflows) = (derived, overflows);
            return None;
        };
        let whole = forms.emitter.constant(whole);
        Some(forms.emitter.apply(Op::Mul, &[whole, node]))
    }
}

/// What a number comes to that is a sum of those of `system`, if it is one of its own.
fn alone(
    forms: &mut Forms<'_, '_>,
    system: &System,
    weights: &[(usize, f64)],
    times: usize,
    most: usize,
) -> Option<Node> {
    let own = system.states[weights.first()?.0];
    let row = row(forms, system, weights, own)?;
    let mut start = None;
    for &(place, weight) in weights {
        let weight = forms.emitter.constant(weight);
        let part = forms.emitter.apply(Op::Mul, &[weight, system.firsts[place]]);
        start = Some(match start {
            Some(sum) => forms.emitter.apply(Op::Add, &[sum, part]),
            None => part,
        });
    }
    let alone = System { states: vec![own], rows: vec![row], firsts: vec![start?] };
    let states = BTreeSet::from([own]);
    let wanted = power::Wanted { states: &states, most };
    advanced(forms, &alone, times, &wanted).ok()?.first().copied()
}

/// What a step makes of the sum, as the number `own`, if it is one.
fn row(
    forms: &mut Forms<'_, '_>,
    system: &System,
    weights: &[(usize, f64)],
    own: usize,
) -> Option<Affine> {
    let mut sums: BTreeMap<Base, (Terms, Option<Pair>)> = BTreeMap::new();
    for &(place, weight) in weights {
        for (&base, coefficient) in &system.rows[place] {
            let &Coefficient::Fixed(pair) = coefficient else { return None };
            let (terms, sum) = sums.entry(base).or_default();
            *terms = terms.plus(&Terms::of(forms.emitter, pair)?.scaled(weight));
            let weight = forms.emitter.number(weight, 0.0);
            let part = forms.emitter.product(weight, pair);
            *sum = forms.emitter.sum(*sum, Some(part));
        }
    }
    let factor = sums.get(&Base::State(own)).cloned().unwrap_or_default();
    for (place, &state) in system.states.iter().enumerate() {
        let (found, _) = sums.remove(&Base::State(state)).unwrap_or_default();
        let weight = weights.iter().find(|&&(other, _)| other == place).map(|&(_, weight)| weight);
        let left = match weight {
            Some(weight) => found.plus(&factor.0.scaled(-weight)),
            None => found,
        };
        if !left.is_zero() {
            return None;
        }
    }
    // What is left of states is that one.
    sums.insert(Base::State(own), factor);
    let row = sums.into_iter().filter(|(_, (terms, _))| !terms.is_zero());
    Some(row.filter_map(|(base, (_, sum))| Some((base, Coefficient::Fixed(sum?)))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::phi::recurrence::solve_all;
    use crate::ssa::{Outcome, eliminate_dead_code, interpret, parse};

    /// Two hundred steps of a' = r·a and b' = b + a, or of a and b that level out at the rate r, and
    /// what is returned of the outputs v13 to v15, of which the first two are a.
    fn graph(steps: &str, returned: &str) -> Graph {
        let text = format!(
            "graph active 3 inactive 0\nv3 = const 199.0\nv4 = iteration r0\nv5 = const 2.0\nb0:\n  \
             v13 v14 v15 = region r0 b1 bound 200 entries v6=v0 v7=v1\n{returned}b1:\n{steps}  \
             v12 = lt v4 v3\n  return v12 v10 v11 v10 v10 v11\n"
        );
        parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
    }

    const GROWING: &str = "  v8 = neg v6\n  v9 = neg v7\n  v10 = mul v2 v6\n  \
                           v11 = add v7 v6\n";
    const LEVELLING: &str = "  v8 = sub v6 v7\n  v9 = mul v2 v8\n  v10 = sub v6 v9\n  \
                             v11 = add v7 v9\n";
    const SUM: &str = "  v16 = add v13 v15\n  return v16\n";
    const DIFFERENCE: &str = "  v16 = sub v15 v14\n  return v16\n";

    /// What the closed form comes to, if all of the loop has one.
    fn closed(graph: &Graph, inputs: &[f64]) -> Option<f64> {
        let solved = solve_all(graph);
        let small = eliminate_dead_code(&solved.graph);
        match interpret(&small, inputs) {
            Outcome::Values(values) if small.regions.is_empty() => values.first().copied(),
            _ => None,
        }
    }

    #[test]
    fn outputs_that_are_the_same_number_count_together() {
        // a + a, of a number that grows by powers, and b beside it.
        let twice = graph(GROWING, "  v16 = add v13 v14\n  return v16\n");
        let value = closed(&twice, &[1.0, 3.0, 1.01]).unwrap();
        assert!((value - 2.0 * 1.01f64.powi(200)).abs() < 1e-12, "{value}");
        // Once a is taken away again it is a difference all the same.
        let text = "  v16 = sub v15 v14\n  v17 = sub v16 v13\n  v18 = add v17 v14\n  return v18\n";
        let value = closed(&graph(LEVELLING, text), &[1.25, 0.5, 0.45]).unwrap();
        assert!((value + 0.75e-200).abs() < 1e-212, "{value:e}");
    }

    #[test]
    fn only_multiples_of_themselves_have_forms() {
        let inputs = [1.25, 0.5, 0.45];
        let digits = |steps: &str, returned: &str, expected: f64| {
            let value = closed(&graph(steps, returned), &inputs).unwrap();
            (value - expected).abs() <= 1e-12 * expected.abs()
        };
        assert!(digits(LEVELLING, SUM, 1.75) && digits(LEVELLING, DIFFERENCE, -0.75e-200));
        // Of 2·b - a, and of what grows, there is the sum.
        let other = "  v16 = mul v15 v5\n  v17 = sub v16 v14\n  return v17\n";
        assert!(digits(LEVELLING, other, 0.875));
        let power = 1.25 * 0.45f64.powi(200);
        let sum = 0.5 + (1.25 - power) / 0.55;
        assert!(digits(GROWING, SUM, sum + power) && digits(GROWING, DIFFERENCE, sum - power));
    }

    #[test]
    fn longer_sums_are_not_looked_at() {
        let chain = |length: usize| {
            let mut text = "  v16 = sub v15 v14\n".to_owned();
            for number in 17..17 + length {
                text += &format!("  v{number} = add v{} v{0}\n", number - 1);
            }
            let text = format!("{text}  return v{}\n", 16 + length);
            combinations(&graph(LEVELLING, &text)).into_values().flatten().count()
        };
        assert_eq!([chain(0), chain(3), chain(4), chain(20)], [1, 4, 4, 4]);
    }
}
