//! A system of several numbers before its first step: its map, the points that numbers are
//! measured from, and the derivatives of both.

use std::collections::BTreeSet;

use super::doubt::left_of;
use super::emit::Emitter;
use super::fixed::Fixed;
use super::point::{Point, is_near, terms_of_change};
use super::power::{Matrix, System, linear_part, offset};
use super::products::{Factors, Row};
use super::sizes::{self, Sizes, size, sizes_of};
use super::slopes::{Parts, chosen};
use super::still::Still;
use super::terms::Terms;
use super::toward::Toward;
use super::written::value;
use crate::op::Op;
use crate::phi::pair::{Pair, Pairs};
use crate::ssa::Node;

/// So many nodes may coefficients be made of.
const MOST_LEAVES: usize = 64;

/// A system before its first step.
pub(super) struct Start {
    pub(super) map: Matrix<Pair>,
    /// What is added in a step to the distance from `base`.
    pub(super) change: Row,
    /// ζ, and the first distance from it.
    pub(super) base: Row,
    pub(super) first: Row,
    /// Whether that distance is zero, if something is added.
    pub(super) moves: Option<Node>,
    /// What the start is made of.
    pub(super) firsts: Vec<Terms>,
    /// The derivatives of the map and of what is added, by the nodes that they are made of.
    pub(super) slopes: Vec<Slope>,
    /// The numbers that are wanted.
    pub(super) outputs: Vec<usize>,
    /// Where it comes to if powers vanish, if something is added.
    pub(super) fixed: Option<Fixed>,
    /// To which numbers or what they depend on something is added.
    pub(super) is_driven: Vec<bool>,
    /// That point, if derivatives by it are told by themselves.
    pub(super) toward: Option<Toward>,
    /// Whether a loop has carried some of the numbers.
    pub(super) is_from_loop: bool,
    pub(super) has_offset: bool,
    /// Where nothing but rounding is added to the numbers, if no loop has brought them there.
    pub(super) rest: Still,
    /// Whether the map has derivatives that are wanted.
    pub(super) has_slopes: bool,
}

/// The derivatives of a system by one node.
pub(super) struct Slope {
    pub(super) leaf: Node,
    pub(super) of_map: Matrix<Pair>,
    /// That of what is added to ζ.
    pub(super) of_change: Row,
    /// Where the numbers stay, and would with another leaf.
    pub(super) still: Still,
}

impl Slope {
    /// How large the terms are of this derivative of a number with these `sums`, where numbers
    /// `reach` so far.
    pub(super) fn size(&self, emitter: &mut Emitter<'_>, sums: &Row, reach: &Sizes) -> Node {
        let map = sizes_of(emitter, &self.of_map);
        let mut total = None;
        for ((&sum, &added), row) in sums.iter().zip(&self.of_change).zip(map) {
            let own = size(emitter, added);
            let change = row.into_iter().zip(reach.iter().copied());
            let change = sizes::sum(emitter, change, own);
            let sum = size(emitter, sum);
            total = sizes::sum(emitter, [(sum, change)], total);
        }
        total.unwrap_or_else(|| emitter.constant(0.0))
    }
}

impl Start {
    /// `system` before so many `steps`, of whose states those of these numbers are wanted; `None`
    /// if its coefficients change, or are made of too much.
    pub(super) fn of(
        emitter: &mut Emitter<'_>,
        system: &System,
        steps: Node,
        wanted: &BTreeSet<usize>,
    ) -> Option<Start> {
        if !system.is_fixed() {
            return None;
        }
        let size = system.states.len();
        let rows: Matrix<Pair> = system.rows.iter().map(|row| linear_part(system, row)).collect();
        let offsets: Row = system.rows.iter().map(|row| offset(emitter, row)).collect();
        let all: Vec<Pair> = rows.iter().flatten().chain(&offsets).flatten().copied().collect();
        let parts = Parts::of(emitter, &all)?;
        // Nobody asks for derivatives by what no active input leads to.
        let leaves = parts.leaves().into_iter().filter(|&leaf| emitter.may_be_active(leaf));
        let leaves: Vec<Node> = leaves.collect();
        if leaves.len() > MOST_LEAVES {
            return None;
        }
        let has_offset = offsets.iter().any(Option::is_some);
        let one = emitter.constant(1.0);
        let share = parts.growth(emitter).share(emitter, one, None);
        let normal = |emitter: &mut Emitter<'_>, row: &Row| -> Row {
            row.iter().map(|entry| entry.map(|entry| emitter.normal(entry))).collect()
        };
        let written = |row: &Row| row.iter().map(|&pair| parts.terms(pair)).collect();
        let written_map: Option<Vec<Vec<Terms>>> = rows.iter().map(written).collect();
        let less_one = written_map.as_ref().map(|all| {
            let own = |(number, row): (usize, &Vec<Terms>)| {
                row[number].plus(&Terms::number((-1.0).into()))
            };
            all.iter().enumerate().map(own).collect::<Vec<Terms>>()
        });
        let nodes_of_map = written_map.iter().flatten().flatten().flat_map(Terms::nodes).collect();
        let fixed = written_map.zip(written(&offsets)).filter(|_| has_offset);
        let fixed = fixed.and_then(|(map, added)| Fixed::of(&map, &added));
        let fixed_point = fixed.as_ref().and_then(|fixed| {
            (0..size).map(|number| fixed.number(number)).collect::<Option<Vec<Terms>>>()
        });
        let numbers = parts.numbers(emitter);
        let number = |pair: &Option<Pair>| pair.map(|pair| numbers[&pair]);
        let row_of = |row: &Row| -> Row { row.iter().map(number).collect() };
        let map: Matrix<Pair> = rows.iter().map(|row| normal(emitter, &row_of(row))).collect();
        let added = normal(emitter, &row_of(&offsets));
        let zero = emitter.constant(0.0);
        let firsts = system.firsts.clone();
        let with_rest = |&first: &Node| match emitter.numbers.get(&first) {
            Some(&pair) if pair.high == first => Some(pair),
            _ => Some(first.into()),
        };
        let whole: Row = firsts.iter().map(with_rest).collect();
        let (mut base, mut first) = (vec![None; size], whole.clone());
        let (mut still, mut rest) = (Still::default(), Still::default());
        let mut change = vec![None; size];
        let (mut moving, mut near, mut is_driven) = (None, None, vec![false; size]);
        let is_from_loop = firsts.iter().any(|&first| emitter.is_multiple_from_loop(first));
        if has_offset {
            let mut total = zero;
            for pair in added.iter().flatten() {
                let part = emitter.apply(Op::Abs, &[pair.high]);
                total = if total == zero { part } else { emitter.apply(Op::Add, &[total, part]) };
            }
            moving = Some(emitter.apply(Op::Gt, &[total, zero]));
            let point = Point::of(emitter, &map, &added, &firsts);
            is_driven = point.is_driven;
            for (number, (&start, is_start)) in firsts.iter().zip(point.is_start).enumerate() {
                if emitter.value(is_start) == Some(0.0) {
                    continue;
                }
                let from = emitter.apply(Op::Select, &[is_start, start, zero]);
                base[number] = (from != zero).then(|| from.into());
                // What the start has besides is a part of the way from ζ.
                let rest = whole[number].and_then(|pair| pair.low);
                let high = emitter.apply(Op::Select, &[is_start, rest.unwrap_or(zero), start]);
                let low = rest.map(|rest| emitter.apply(Op::Select, &[is_start, zero, rest]));
                first[number] = Some(Pair { high, low });
            }
            if let Some(point) = fixed_point.as_ref().filter(|all| all.iter().all(Terms::is_whole))
            {
                let point: Row = point.iter().map(|terms| terms.emitted(emitter)).collect();
                let is_near = is_near(emitter, steps, &map, [&added, &point], &firsts);
                for number in (0..size).filter(|&number| is_driven[number]) {
                    // What a product starts as may be the point, which is not rounded.
                    let start = value(emitter, firsts[number]);
                    let way = difference(emitter, Some(start), point[number]);
                    first[number] = either(emitter, is_near, way, first[number]);
                    base[number] = either(emitter, is_near, point[number], base[number]);
                }
                near = Some(is_near);
            }
            let terms = terms_of_change(emitter, &map, less_one.as_deref(), &base);
            for ((change, terms), &added) in change.iter_mut().zip(terms).zip(&added) {
                *change = left_of(emitter, &terms, added, share);
                // Nothing is added to the way from the point itself.
                *change = near.map_or(*change, |near| either(emitter, near, None, *change));
            }
            let is_known = |pair: &Pair| emitter.value(pair.high).is_some();
            let may_rest = !map.iter().flatten().flatten().all(is_known)
                && are_made_of_the_same(emitter, &parts, &firsts, &offsets);
            if is_from_loop && fixed.is_some() || !is_from_loop && may_rest {
                let terms = terms_of_change(emitter, &map, less_one.as_deref(), &whole);
                let near = if is_from_loop { &mut still } else { &mut rest };
                for (terms, &added) in terms.iter().zip(&added) {
                    near.add(emitter, terms, added);
                }
            }
        }
        let mut slopes = Vec::new();
        for &leaf in &leaves {
            let known = parts.slopes(emitter, leaf);
            let of = |pair: &Option<Pair>| pair.and_then(|pair| known.get(&pair).copied());
            let of_map: Matrix<Pair> =
                rows.iter().map(|row| row.iter().map(of).collect()).collect();
            let mut of_change: Row = offsets.iter().map(of).collect();
            let mut of_leaf = still.clone();
            if !still.is_empty() {
                for (row, &added) in of_map.iter().zip(&of_change) {
                    let terms = row.iter().copied().zip(whole.iter().copied());
                    of_leaf.add(emitter, &terms.collect::<Vec<Factors>>(), added);
                }
            }
            if has_offset {
                let is_apart = |&number: &usize| {
                    fixed.as_ref().is_some_and(|fixed| fixed.is_apart_from(number, leaf))
                };
                let apart: BTreeSet<usize> = (0..size).filter(is_apart).collect();
                for (number, (change, row)) in of_change.iter_mut().zip(&of_map).enumerate() {
                    let terms: Vec<Factors> =
                        row.iter().copied().zip(base.iter().copied()).collect();
                    *change = left_of(emitter, &terms, *change, share);
                    // What does not move the point adds nothing there.
                    let is_apart = (0..size).all(|other| {
                        apart.contains(&other) || other != number && map[number][other].is_none()
                    });
                    let near = near.filter(|_| is_apart);
                    *change = near.map_or(*change, |near| either(emitter, near, None, *change));
                }
            }
            slopes.push(Slope { leaf, of_map, of_change, still: of_leaf });
        }
        let has_slopes =
            slopes.iter().any(|slope| slope.of_map.iter().flatten().any(Option::is_some));
        let firsts: Vec<Terms> =
            firsts.iter().map(|&first| Terms::of_node(emitter, first)).collect();
        let toward = fixed_point
            .and_then(|point| Toward::of(emitter, &system.rows, &firsts, &point, &nodes_of_map));
        let outputs = (0..size).filter(|&number| wanted.contains(&system.states[number])).collect();
        Some(Start {
            map,
            change,
            base,
            first,
            moves: moving,
            firsts,
            slopes,
            outputs,
            fixed,
            is_driven,
            toward,
            is_from_loop,
            has_offset,
            rest,
            has_slopes,
        })
    }

    /// The numbers that the wanted ones depend on, and these.
    pub(super) fn needed(&self) -> BTreeSet<usize> {
        let (mut needed, mut pending) = (BTreeSet::new(), self.outputs.clone());
        while let Some(number) = pending.pop() {
            if needed.insert(number) {
                let row = self.map[number].iter().enumerate();
                pending.extend(row.filter(|(_, entry)| entry.is_some()).map(|(other, _)| other));
            }
        }
        needed
    }
}

/// `a - b`.
fn difference(emitter: &mut Emitter<'_>, a: Option<Pair>, b: Option<Pair>) -> Option<Pair> {
    let less = emitter.number(-1.0, 0.0);
    let b = b.map(|b| emitter.product(b, less));
    emitter.sum(a, b).map(|difference| emitter.normal(difference))
}

/// Whether two of what numbers begin with and of what is added to them are made of the same: they
/// may begin where they stay, but for rounding.
fn are_made_of_the_same(
    emitter: &mut Emitter<'_>,
    parts: &Parts,
    firsts: &[Node],
    offsets: &Row,
) -> bool {
    let mut all: Vec<BTreeSet<Node>> =
        firsts.iter().map(|&first| Terms::of_node(emitter, first).nodes()).collect();
    let offsets = offsets.iter().flatten();
    all.extend(offsets.filter_map(|&pair| Some(parts.terms(Some(pair))?.nodes())));
    let mut seen = BTreeSet::new();
    all.iter().flatten().any(|&node| !seen.insert(node))
}

/// `a` if `condition` is not zero, else `b`; what is missing is zero.
fn either(
    emitter: &mut Emitter<'_>,
    condition: Node,
    a: Option<Pair>,
    b: Option<Pair>,
) -> Option<Pair> {
    if a.is_none() && b.is_none() {
        return None;
    }
    let zero = emitter.number(0.0, 0.0);
    Some(chosen(emitter, condition, a.unwrap_or(zero), b.unwrap_or(zero)))
}
