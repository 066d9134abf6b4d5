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

/// A node that is a sum of multiples of what comes out of one loop.
#[derive(Clone)]
pub(super) struct Combination {
    pub(super) node: Node,
    region: Region,
    /// The φs, each with its factor.
    parts: Vec<(Node, f64)>,
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
    let (op, [a, b, _]) = match graph.nodes[node].def {
        Def::Phi(region, _) if graph.regions[region].cycle.is_some() => {
            return Some(Combination { node, region, parts: vec![(node, 1.0)] });
        }
        Def::Apply(op, args) => (op, args),
        _ => return None,
    };
    let scaled = |of: &Combination, factor: f64| {
        let parts = of.parts.iter().map(|&(phi, own)| (phi, own * factor)).collect();
        Some(Combination { node, region: of.region, parts })
    };
    let number = |node: Node| graph.constant(node);
    let factor = match op {
        Op::Add => 1.0,
        Op::Sub => -1.0,
        Op::Neg => return scaled(known.get(&a)?, -1.0),
        Op::Mul => {
            return match (number(a), number(b)) {
                (Some(factor), _) => scaled(known.get(&b)?, factor),
                (_, Some(factor)) => scaled(known.get(&a)?, factor),
                _ => None,
            };
        }
        _ => return None,
    };
    let (mut sum, other) = (scaled(known.get(&a)?, 1.0)?, known.get(&b)?);
    if sum.region != other.region {
        return None;
    }
    for &(phi, own) in &other.parts {
        match sum.parts.iter_mut().find(|(known, _)| *known == phi) {
            Some((_, before)) => *before += own * factor,
            None => sum.parts.push((phi, own * factor)),
        }
    }
    let fits =
        sum.parts.len() <= MOST_STATES && sum.parts.iter().all(|(_, factor)| factor.is_normal());
    fits.then_some(sum)
}

impl Combination {
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
        let places = self.parts.iter().map(|&(phi, factor)| {
            let state = state_of(phi)?;
            Some((system.states.iter().position(|&other| other == state)?, factor))
        });
        let places: Vec<(usize, f64)> = places.collect::<Option<_>>()?;
        let &(first, whole) = places.first()?;
        // What is divided by the first factor is exact, or nothing would be known to cancel.
        let weights: Vec<(usize, f64)> =
            places.iter().map(|&(place, factor)| (place, factor / whole)).collect();
        let is_exact = |((_, weight), (_, factor)): (&(usize, f64), &(usize, f64))| {
            weight.is_normal() && weight.mul_add(whole, -factor) == 0.0
        };
        if !weights.iter().zip(&places).all(is_exact) {
            return None;
        }
        let before = forms.emitter.items.len();
        let (derived, overflows) = (forms.emitter.derived, forms.emitter.overflows);
        let found = self.advanced(forms, system, &weights, first, times, most);
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

    fn advanced(
        &self,
        forms: &mut Forms<'_, '_>,
        system: &System,
        weights: &[(usize, f64)],
        first: usize,
        times: usize,
        most: usize,
    ) -> Option<Node> {
        let own = system.states[first];
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
