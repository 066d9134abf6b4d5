//! What a loop in another one makes of its state: an affine map, with its derivatives.
//!
//! Let z become A·z + b in each of n steps. The map of all of them is z → P·z + q with
//! P = Aⁿ and q = Σₖ Aᵏ·b. What is made of P and q is differentiated by the rules of sums
//! and products, in pairs; so the derivatives of P and q are computed here, and told.
//! Those of a single number have forms. Those of several are doubled with the powers:
//! where M and N are two maps,
//!
//! ```text
//! d(P_M·P_N) = dP_M·P_N + P_M·dP_N,    d(P_M·q_N + q_M) = dP_M·q_N + P_M·dq_N + dq_M.
//! ```

use std::collections::BTreeSet;

use super::doubt::{Doubt, Halves, checked};
use super::emit::{Emitter, Told};
use super::form::{Base, Coefficient};
use super::geometric::product;
use super::power::{Matrix, System, linear_part, offset};
use super::products::sum_of_products;
use super::record::{factor_text, offset_text};
use super::single::Start;
use super::sizes;
use super::slopes::Parts;
use crate::phi::pair::{Pair, Pairs};
use crate::ssa::Node;

/// So many nodes may coefficients be made of.
const MOST_LEAVES: usize = 16;
/// About how many steps a product of pairs takes that is added to another.
const PRODUCT: usize = 18;
/// A map takes no more steps than this.
const LARGEST: usize = 1 << 14;
/// Nor is one begun that would if so many times fewer entries were zero.
const SPARSE: usize = 8;

type Row = Vec<Option<Pair>>;

/// z → P·z + q.
#[derive(Clone)]
pub(super) struct Map {
    pub(super) powers: Matrix<Pair>,
    pub(super) added: Row,
}

/// The map of `times` steps of `system`; `None` if it would take too much, or if its
/// coefficients change.
pub(super) fn after(emitter: &mut Emitter<'_>, system: &System, times: usize) -> Option<Map> {
    if !system.is_fixed() {
        return None;
    }
    let before = emitter.items.len();
    let map = match system.states.as_slice() {
        [_] => of_one(emitter, system, times),
        _ => of_several(emitter, system, times),
    };
    let steps = emitter.items.len() - before;
    emitter.derived += steps;
    map.filter(|_| steps <= LARGEST)
}

fn of_one(emitter: &mut Emitter<'_>, system: &System, times: usize) -> Option<Map> {
    let row = system.rows.first()?;
    let own = match row.get(&Base::State(*system.states.first()?)) {
        Some(&Coefficient::Fixed(own)) => own,
        _ => {
            let added = offset(emitter, row);
            return Some(Map { powers: vec![vec![None]], added: vec![added] });
        }
    };
    let one = emitter.number(1.0, 0.0);
    if own == one {
        let number = emitter.number(times as f64, 0.0);
        let added = offset(emitter, row).map(|added| emitter.product(added, number));
        return Some(Map { powers: vec![vec![Some(one)]], added: vec![added] });
    }
    let start = Start::of(emitter, system, row)?;
    let Start { shared, change, added, factor, has_added, .. } = &start;
    let powers = factor.after(emitter, times);
    let (less_one, number) = (change.emitted(emitter), added.emitted(emitter));
    let mut parts = Vec::new();
    let by_added = match start.has_fixed_point() {
        true => factor.change(emitter, &powers),
        false => {
            let sum = factor.sum(emitter, &powers);
            if !change.nodes().is_empty() {
                // For each part the derivatives of the power and of the sum by it. What all
                // of a step is multiplied by does not move the fixed point.
                let by_change = start.whole(emitter, powers.slope, None);
                let slope = factor.sum_slope(emitter, &powers, sum);
                let slope = start.whole(emitter, slope, None);
                let slope = start.whole(emitter, slope, None);
                let slope = product(emitter, number, slope);
                parts.push((change, Some(by_change), Some(slope)));
            }
            start.whole(emitter, sum, None)
        }
    };
    let total = has_added.then(|| product(emitter, number, by_added));
    parts.push((added, None, Some(by_added)));
    for (at, part) in shared.iter().enumerate().filter(|(_, part)| !part.nodes().is_empty()) {
        let slope = start.whole(emitter, powers.slope, Some(at));
        let [power, sum] = [less_one, number].map(|number| product(emitter, number, slope));
        parts.push((part, Some(power), Some(sum)));
    }
    let leaves: BTreeSet<Node> = parts.iter().flat_map(|(part, ..)| part.nodes()).collect();
    if leaves.len() > MOST_LEAVES {
        return None;
    }
    let mut told = [Vec::new(), Vec::new()];
    for leaf in leaves {
        let (mut of_power, mut of_total) = (Vec::new(), Vec::new());
        for (part, power, total) in &parts {
            let own = part.slope(emitter, leaf);
            of_power.push((own, *power));
            of_total.push((own, *total));
        }
        for (told, terms) in told.iter_mut().zip([of_power, of_total]) {
            told.extend(sum_of_products(emitter, terms, None).map(|slope| (leaf, slope)));
        }
    }
    let [of_power, of_total] = told;
    let (a, b) = (grouped(factor_text(emitter, own)), grouped(offset_text(emitter, row)));
    let text = format!("{a}^{times}");
    emitter.tell(powers.power, Told { slopes: of_power, text, factors: Some(times) });
    if let Some(total) = total {
        let text = format!("{b}·Σ_{{j<{times}}} {a}^j");
        emitter.tell(total, Told { slopes: of_total, text, factors: None });
    }
    Some(Map { powers: vec![vec![Some(powers.power)]], added: vec![total] })
}

/// `text` as a factor.
fn grouped(text: String) -> String {
    match text.contains([' ', '·', '/', '^', '−']) {
        true => format!("({text})"),
        false => text,
    }
}

/// A map and its derivatives by nodes.
#[derive(Clone)]
struct Jet {
    map: Map,
    slopes: Vec<Map>,
}

fn of_several(emitter: &mut Emitter<'_>, system: &System, times: usize) -> Option<Map> {
    let rows: Matrix<Pair> = system.rows.iter().map(|row| linear_part(system, row)).collect();
    let added: Row = system.rows.iter().map(|row| offset(emitter, row)).collect();
    let all: Vec<Pair> = rows.iter().flatten().chain(&added).flatten().copied().collect();
    let parts = Parts::of(emitter, &all)?;
    let leaves = parts.leaves();
    let (size, digits) = (rows.len(), times.ilog2() as usize + 1);
    let products = size * size * (size + 1) * (1 + 2 * leaves.len());
    if leaves.len() > MOST_LEAVES || 2 * digits * products * PRODUCT > SPARSE * LARGEST {
        return None;
    }
    let numbers = parts.numbers(emitter);
    let mut number = |pair: &Option<Pair>| pair.map(|pair| emitter.normal(numbers[&pair]));
    let powers = rows.iter().map(|row| row.iter().map(&mut number).collect()).collect();
    let map = Map { powers, added: added.iter().map(&mut number).collect() };
    let slopes = leaves.iter().map(|&leaf| {
        let slopes = parts.slopes(emitter, leaf);
        let of = |pair: &Option<Pair>| pair.and_then(|pair| slopes.get(&pair).copied());
        let powers = rows.iter().map(|row| row.iter().map(of).collect()).collect();
        Map { powers, added: added.iter().map(of).collect() }
    });
    let step = Jet { map, slopes: slopes.collect() };
    let (mut whole, mut half) = (step.clone(), None);
    for digit in (0..times.ilog2()).rev() {
        let twice = composed(emitter, &whole, &whole);
        half = Some(core::mem::replace(&mut whole, twice).map.powers);
        if times >> digit & 1 == 1 {
            whole = composed(emitter, &step, &whole);
        }
    }
    if let Some(half) = half {
        doubt(emitter, &mut whole, &step, &half, times);
    }
    tell(emitter, &whole, &leaves, times);
    Some(whole.map)
}

/// Makes entries of `whole`, so many times `step`, and twice `half` with perhaps one more, no number of
/// which rounding may have left nothing: what large ways lead to that cancel, such as that of the
/// sum of two numbers whose difference grows.
fn doubt(
    emitter: &mut Emitter<'_>,
    whole: &mut Jet,
    step: &Jet,
    half: &Matrix<Pair>,
    times: usize,
) {
    let steps = emitter.constant(times as f64);
    let powers = whole.map.powers.clone();
    let halves = Halves { power: &powers, later: half, earlier: half };
    let nothing: Row = vec![None; half.len()];
    let starts = [&nothing, &step.map.added];
    let doubt = Doubt::of(emitter, &step.map.powers, &halves, steps, starts);
    let check = |emitter: &mut Emitter<'_>, entry: &mut Option<Pair>, least: Option<Node>| {
        if let (Some(number), Some(least)) = (*entry, least) {
            *entry = Some(checked(emitter, number, least));
        }
    };
    for (i, row) in whole.map.powers.iter_mut().enumerate() {
        for (j, entry) in row.iter_mut().enumerate() {
            check(emitter, entry, doubt.by_start(i, j));
        }
    }
    for (i, entry) in whole.map.added.iter_mut().enumerate() {
        check(emitter, entry, doubt.end(i));
    }
    for (slope, of_step) in whole.slopes.iter_mut().zip(&step.slopes) {
        let least = doubt.entries_by_map(emitter, &of_step.powers);
        for (entry, least) in slope.powers.iter_mut().flatten().zip(least.into_iter().flatten()) {
            check(emitter, entry, least);
        }
        for (i, entry) in slope.added.iter_mut().enumerate() {
            let by_map = doubt.by_map(emitter, i, &of_step.powers);
            let by_added = doubt.by_added(emitter, i, &of_step.added);
            let one = emitter.constant(1.0);
            let least = sizes::sum(emitter, [(by_map, Some(one))], by_added);
            check(emitter, entry, least);
        }
    }
}

fn tell(emitter: &mut Emitter<'_>, whole: &Jet, leaves: &[Node], times: usize) {
    let told = |of: &dyn Fn(&Map) -> Option<Pair>, text, factors| {
        let slopes = leaves.iter().zip(&whole.slopes);
        let slopes = slopes.filter_map(|(&leaf, slope)| Some((leaf, of(slope)?))).collect();
        Told { slopes, text, factors }
    };
    for (i, row) in whole.map.powers.iter().enumerate() {
        for (j, entry) in row.iter().enumerate() {
            if let &Some(entry) = entry {
                let text = format!("(A^{times})[{}, {}]", i + 1, j + 1);
                emitter.tell(entry, told(&|map| map.powers[i][j], text, Some(times)));
            }
        }
        if let Some(added) = whole.map.added[i] {
            let text = format!("(Σ_{{j<{times}}} A^j·b)[{}]", i + 1);
            emitter.tell(added, told(&|map| map.added[i], text, None));
        }
    }
}

/// `a` after `b`.
fn composed(emitter: &mut Emitter<'_>, a: &Jet, b: &Jet) -> Jet {
    let map = Map {
        powers: entries(emitter, &[(&a.map.powers, &b.map.powers)]),
        added: columns(emitter, &[(&a.map.powers, &b.map.added)], &a.map.added),
    };
    let slopes = a.slopes.iter().zip(&b.slopes).map(|(of_a, of_b)| Map {
        powers: entries(emitter, &[(&of_a.powers, &b.map.powers), (&a.map.powers, &of_b.powers)]),
        added: columns(
            emitter,
            &[(&of_a.powers, &b.map.added), (&a.map.powers, &of_b.added)],
            &of_a.added,
        ),
    });
    let slopes = slopes.collect();
    Jet { map, slopes }
}

/// The sum of products of matrices.
fn entries(emitter: &mut Emitter<'_>, products: &[(&Matrix<Pair>, &Matrix<Pair>)]) -> Matrix<Pair> {
    let size = products.first().map_or(0, |(a, _)| a.len());
    let mut entry = |i: usize, j: usize| {
        let of = |&(a, b): &(&Matrix<Pair>, &Matrix<Pair>)| -> Vec<(Option<Pair>, Option<Pair>)> {
            (0..size).map(|k| (a[i][k], b[k][j])).collect()
        };
        let terms: Vec<_> = products.iter().flat_map(of).collect();
        sum_of_products(emitter, terms, None)
    };
    (0..size).map(|i| (0..size).map(|j| entry(i, j)).collect()).collect()
}

/// The sum of products of matrices and columns, and of `addend`.
fn columns(emitter: &mut Emitter<'_>, products: &[(&Matrix<Pair>, &Row)], addend: &Row) -> Row {
    let mut entry = |i: usize| {
        let of = |&(a, b): &(&Matrix<Pair>, &Row)| -> Vec<(Option<Pair>, Option<Pair>)> {
            a[i].iter().copied().zip(b.iter().copied()).collect()
        };
        let terms: Vec<_> = products.iter().flat_map(of).collect();
        sum_of_products(emitter, terms, addend[i])
    };
    (0..addend.len()).map(&mut entry).collect()
}
