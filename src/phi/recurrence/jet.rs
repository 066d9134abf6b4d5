//! What a system of several numbers comes to after a number of steps, and its
//! derivatives, by doubling.
//!
//! Let z become A·z + b in each step, and d be what the first step adds to a point ζ
//! that is chosen below. With v = z - ζ a step is v → A·v + d. After m steps
//!
//! ```text
//! vₘ = Aᵐ·v₀ + wₘ,    wₘ = Σₖ Aᵏ·d,
//! ```
//!
//! and the derivative of number i by what step k adds is a row eᵢᵀ·Aᵐ⁻¹⁻ᵏ. So that by
//! what all steps add is sₘ = Σₖ eᵢᵀ·Aᵏ, and the one by A is Kₘ = Σₖ vₖ·eᵢᵀ·Aᵐ⁻¹⁻ᵏ.
//! All of them double:
//!
//! ```text
//! w₂ₘ = wₘ + Aᵐ·wₘ,   s₂ₘ = sₘ + sₘ·Aᵐ,   K₂ₘ = Aᵐ·Kₘ + Kₘ·Aᵐ + wₘ·sₘ.
//! ```
//!
//! This is the power of the matrix of A and its change, [[A, v₀·eᵢᵀ], [0, A]], one for
//! each number that is wanted, however many coefficients there are. So the steps may be
//! counted in the call (`doubling`); where their number is known, `binary` takes fewer
//! products. All of it is computed in pairs: where two eigenvalues are almost equal, or a
//! point does not move, what cancels is far larger than the result.
//!
//! For numbers to which something is added ζ is the start: at a fixed point d is zero then,
//! and so is all that comes of it, however large the powers are. For those to which nothing
//! is added, or so little that the fixed point would be lost next to the start, ζ is zero, and
//! what vanishes does so without a difference (`point`). Where all powers have vanished, so
//! have the derivatives by what the fixed point does not depend on (`fixed`).

use std::collections::BTreeSet;

use super::doubt::{Doubt, Halves, checked, left_of};
use super::emit::Emitter;
use super::fixed::{Fixed, is_left, unless_left};
use super::point::{Point, terms_of_change};
use super::power::{Matrix, System, linear_part, offset};
use super::products::{
    Factors, Row, applied, both, product, square, sum_of_products, times, total,
};
use super::sizes::{self, Sizes, size, sizes_of, total_size};
use super::slopes::{Parts, Totals};
use super::still::Still;
use super::terms::Terms;
use super::toward::Toward;
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
    base: Vec<Node>,
    pub(super) first: Row,
    /// Whether that distance is zero, if something is added.
    moves: Option<Node>,
    /// What the start is made of.
    firsts: Vec<Terms>,
    /// The derivatives of the map and of what is added, by the nodes that they are made of.
    slopes: Vec<Slope>,
    /// The numbers that are wanted.
    pub(super) outputs: Vec<usize>,
    /// Where it comes to if powers vanish, if something is added.
    fixed: Option<Fixed>,
    /// To which numbers or what they depend on something is added.
    is_driven: Vec<bool>,
    /// That point, if derivatives by it are told by themselves.
    toward: Option<Toward>,
    /// Whether a loop has carried some of the numbers.
    is_from_loop: bool,
    pub(super) has_offset: bool,
    /// Whether the map has derivatives that are wanted.
    pub(super) has_slopes: bool,
}

struct Slope {
    leaf: Node,
    of_map: Matrix<Pair>,
    /// That of what is added to ζ.
    of_change: Row,
    /// Where the numbers stay, and would with another leaf.
    still: Still,
}

impl Slope {
    /// How large the terms are of this derivative of a number with these `sums`, where numbers
    /// `reach` so far.
    fn size(&self, emitter: &mut Emitter<'_>, sums: &Row, reach: &Sizes) -> Node {
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

/// What is known after a number of steps.
#[derive(Clone)]
pub(super) struct Jet {
    pub(super) power: Matrix<Pair>,
    moved: Row,
    outputs: Vec<Output>,
}

/// What is known of the derivatives of one number.
#[derive(Clone)]
pub(super) struct Output {
    pub(super) number: usize,
    pub(super) sums: Row,
    pub(super) by_map: Matrix<Pair>,
}

/// What states come from.
pub(super) struct End<'a> {
    /// How far from ζ numbers are, and those that they depend on, next to what comes of them.
    pub(super) reach: Sizes,
    /// The same where anything is added, and zero elsewhere.
    pub(super) driven_reach: Sizes,
    /// The power of the map, if only to some digits.
    pub(super) power: &'a Matrix<Pair>,
    pub(super) doubt: Doubt,
}

impl Start {
    /// `system`, of whose states those of these numbers are wanted; `None` if its
    /// coefficients change, or are made of too much.
    pub(super) fn of(
        emitter: &mut Emitter<'_>,
        system: &System,
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
        let (mut base, mut first, mut still) = (vec![zero; size], whole.clone(), Still::default());
        let mut change = vec![None; size];
        let (mut moving, mut is_driven) = (None, vec![false; size]);
        let is_from_loop = firsts.iter().any(|&first| emitter.is_from_loop(first));
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
                base[number] = emitter.apply(Op::Select, &[is_start, start, zero]);
                // What the start has besides is a part of the way from ζ.
                let rest = whole[number].and_then(|pair| pair.low);
                let high = emitter.apply(Op::Select, &[is_start, rest.unwrap_or(zero), start]);
                let low = rest.map(|rest| emitter.apply(Op::Select, &[is_start, zero, rest]));
                first[number] = Some(Pair { high, low });
            }
            let from = base.iter().map(|&base| (base != zero).then(|| base.into())).collect();
            let terms = terms_of_change(emitter, &map, less_one.as_deref(), &from);
            for ((change, terms), &added) in change.iter_mut().zip(terms).zip(&added) {
                *change = left_of(emitter, &terms, added, share);
            }
            if fixed.is_some() && is_from_loop {
                let terms = terms_of_change(emitter, &map, less_one.as_deref(), &whole);
                for (terms, &added) in terms.iter().zip(&added) {
                    still.add(emitter, terms, added);
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
                for (change, row) in of_change.iter_mut().zip(&of_map) {
                    let base = base.iter().map(|&z| (z != zero).then(|| z.into()));
                    let terms: Vec<Factors> = row.iter().copied().zip(base).collect();
                    *change = left_of(emitter, &terms, *change, share);
                }
            }
            slopes.push(Slope { leaf, of_map, of_change, still: of_leaf });
        }
        let has_slopes =
            slopes.iter().any(|slope| slope.of_map.iter().flatten().any(Option::is_some));
        let firsts: Vec<Terms> =
            firsts.iter().map(|&first| Terms::of_node(emitter, first)).collect();
        let point = fixed.as_ref().and_then(|fixed| {
            (0..size).map(|number| fixed.number(number)).collect::<Option<Vec<Terms>>>()
        });
        let toward = point
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
            has_slopes,
        })
    }

    /// What is known after no steps, and may be other than zero after some: entries of
    /// powers where `filled` says so.
    pub(super) fn none(&self, emitter: &mut Emitter<'_>, filled: &[Vec<bool>]) -> Jet {
        let (zero, one) = (emitter.number(0.0, 0.0), emitter.number(1.0, 0.0));
        let size = self.map.len();
        let zeros = |is_there: bool| vec![is_there.then_some(zero); size];
        let power = |(i, row): (usize, &Vec<bool>)| {
            let entry = |(j, &is_there): (usize, &bool)| match i == j {
                true => Some(one),
                false => is_there.then_some(zero),
            };
            row.iter().enumerate().take(size).map(entry).collect()
        };
        let output = |&number: &usize| Output {
            number,
            sums: zeros(self.has_offset),
            by_map: vec![zeros(self.has_slopes); size],
        };
        Jet {
            power: filled.iter().enumerate().map(power).collect(),
            moved: zeros(self.has_offset),
            outputs: self.outputs.iter().map(output).collect(),
        }
    }

    /// What is known after one step more than `jet`.
    pub(super) fn stepped(&self, emitter: &mut Emitter<'_>, jet: &Jet) -> Jet {
        let one = emitter.number(1.0, 0.0);
        let outputs = jet.outputs.iter().map(|output| {
            let row = &jet.power[output.number];
            let unit = |other| (other == output.number && self.has_offset).then_some(one);
            let start: Row = (0..self.map.len()).map(unit).collect();
            let by_map = match self.has_slopes {
                true => product(emitter, &self.map, &output.by_map, |i, j| {
                    [(self.change[i], output.sums[j]), (self.first[i], row[j])]
                }),
                false => output.by_map.clone(),
            };
            let sums = times(emitter, &output.sums, &self.map, &[&start]);
            Output { number: output.number, sums, by_map }
        });
        let outputs = outputs.collect();
        let moved = applied(emitter, &self.map, &jet.moved, &self.change);
        let power = product(emitter, &self.map, &jet.power, |_, _| []);
        Jet { power, moved, outputs }
    }

    /// The states that are wanted, in their order, after so many steps, which `jet` stands for.
    /// Its power is the square of `earlier`, and perhaps one step more.
    pub(super) fn ends(
        &self,
        emitter: &mut Emitter<'_>,
        jet: &Jet,
        earlier: &Matrix<Pair>,
        steps: Node,
    ) -> Vec<(usize, Node)> {
        let halves = Halves { power: &jet.power, later: earlier, earlier };
        let distance = applied(emitter, &jet.power, &self.first, &jet.moved);
        let end = self.ended(emitter, &distance, &halves, steps);
        let ends = jet.outputs.iter().map(|output| {
            let row = &jet.power[output.number];
            (output.number, self.end(emitter, output, row, distance[output.number], &end))
        });
        ends.collect()
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

    /// What comes to an end by a number of `steps`, which the `halves` are of, so far from ζ.
    pub(super) fn ended<'a>(
        &self,
        emitter: &mut Emitter<'_>,
        distance: &Row,
        halves: &Halves<'a>,
        steps: Node,
    ) -> End<'a> {
        let starts = [&self.first, &self.change];
        let doubt = Doubt::of(emitter, &self.map, halves, steps, starts);
        let reach = doubt.reach(emitter, distance);
        let mut driven_reach = vec![None; distance.len()];
        if let (Some(moves), Some(_)) = (self.moves, &self.fixed) {
            // Where nothing is added there is no difference.
            let zero = emitter.constant(0.0);
            let mut moved = |reach| emitter.apply(Op::Select, &[moves, reach, zero]);
            driven_reach = reach.iter().map(|&reach| reach.map(&mut moved)).collect();
        }
        End { reach, driven_reach, power: halves.power, doubt }
    }

    /// A state with its derivatives: `output` is known of it, `row` is its row of the power
    /// of the map, and `distance` is how far from ζ it is.
    pub(super) fn end(
        &self,
        emitter: &mut Emitter<'_>,
        output: &Output,
        row: &Row,
        distance: Option<Pair>,
        End { reach, driven_reach, power, doubt }: &End<'_>,
    ) -> Node {
        // What nothing is added to vanishes without a difference.
        let fixed = self.fixed.as_ref().filter(|_| self.is_driven[output.number]);
        let size_of_power = fixed.map(|_| {
            let power: Row = power.iter().flatten().copied().collect();
            total_size(emitter, &power)
        });
        let at_end = fixed.zip(size_of_power);
        let at_end = at_end.map(|(fixed, power)| (fixed, is_left(emitter, power)));
        let base = self.base[output.number];
        let from = (emitter.value(base) != Some(0.0)).then(|| Pair::from(base));
        let mut value = total(emitter, [], [from, distance]);
        let size_of_base = emitter.apply(Op::Abs, &[base]);
        let terms: Vec<Factors> = row.iter().copied().zip(self.first.iter().copied()).collect();
        let one = Some(emitter.constant(1.0));
        let least = doubt.of_terms(emitter, &terms, reach[output.number]);
        let least = sizes::sum(emitter, [(least, one)], doubt.end(output.number));
        if let (Some(number), Some(least)) = (value, least) {
            // A digit that is lost next to the start is none of the loop's.
            let least = emitter.apply(Op::Sub, &[least, size_of_base]);
            value = Some(checked(emitter, number, least));
        }
        if let (Some((fixed, is_more)), Some(number)) = (&at_end, value)
            && fixed.is_zero(output.number)
        {
            let largest = match driven_reach[output.number] {
                Some(reach) => emitter.apply(Op::Add, &[size_of_base, reach]),
                None => size_of_base,
            };
            value = Some(unless_left(emitter, *is_more, number, largest));
        }
        if self.is_from_loop {
            value = value.map(|number| doubt.unless_grown(emitter, number));
        }
        let mut totals = Totals::default();
        for (other, (first, &slope)) in self.firsts.iter().zip(row).enumerate() {
            let least = doubt.by_start(output.number, other);
            for leaf in first.nodes() {
                if emitter.may_be_active(leaf) {
                    let own = first.slope(leaf).emitted(emitter);
                    totals.add(emitter, leaf, (own, slope), least);
                }
            }
        }
        let toward = self.toward.as_ref();
        let told = |slope: &&Slope| toward.is_none_or(|toward| !toward.tells(slope.leaf));
        for slope in self.slopes.iter().filter(told) {
            let added = output.sums.iter().copied().zip(slope.of_change.iter().copied());
            let scaled = slope.of_map.iter().enumerate().flat_map(|(j, row)| {
                row.iter().enumerate().map(move |(l, &entry)| (output.by_map[l][j], entry))
            });
            let terms: Vec<Factors> = added.filter(|_| self.has_offset).chain(scaled).collect();
            let mut total = sum_of_products(emitter, terms, None);
            let mut least = [
                doubt.by_map(emitter, output.number, &slope.of_map),
                doubt.by_added(emitter, output.number, &slope.of_change),
            ];
            if let (Some((fixed, is_more)), Some(number)) = (&at_end, total)
                && fixed.is_apart_from(output.number, slope.leaf)
            {
                let largest = slope.size(emitter, &output.sums, driven_reach);
                total = Some(unless_left(emitter, *is_more, number, largest));
            }
            let zero = emitter.number(0.0, 0.0);
            total = total.map(|total| slope.still.either(emitter, zero, total));
            least = least.map(|least| slope.still.unless(emitter, least));
            totals.add_sum(emitter, slope.leaf, total, least);
        }
        let value = value.unwrap_or_else(|| emitter.number(0.0, 0.0));
        let rounded = emitter.rounded(value);
        let toward = toward.map(|toward| (toward, output.number));
        let node = totals.told(emitter, rounded, toward, self.outputs.len() == 1);
        emitter.numbers.insert(node, value);
        node
    }
}

impl Jet {
    /// What is known after twice as many steps.
    pub(super) fn doubled(&self, emitter: &mut Emitter<'_>) -> Jet {
        let outputs = self.outputs.iter().map(|output| {
            let by_map = both(emitter, &self.power, &output.by_map, |i, j| {
                [(self.moved[i], output.sums[j])]
            });
            let sums = times(emitter, &output.sums, &self.power, &[&output.sums]);
            Output { number: output.number, sums, by_map }
        });
        let outputs = outputs.collect();
        let moved = applied(emitter, &self.power, &self.moved, &self.moved);
        let power = square(emitter, &self.power);
        Jet { power, moved, outputs }
    }

    /// All numbers, part by part.
    pub(super) fn parts(&self) -> Vec<Option<Pair>> {
        let mut parts: Row = self.power.iter().flatten().copied().collect();
        parts.extend(&self.moved);
        for output in &self.outputs {
            parts.extend(&output.sums);
            parts.extend(output.by_map.iter().flatten());
        }
        parts
    }

    /// The same with other numbers in the place of those that are there.
    pub(super) fn with(&self, parts: &[Pair]) -> Jet {
        let mut parts = parts.iter().copied();
        let mut next = |part: &Option<Pair>| part.and_then(|_| parts.next());
        let mut row = |row: &Row| -> Row { row.iter().map(&mut next).collect() };
        let power = self.power.iter().map(&mut row).collect();
        let moved = row(&self.moved);
        let outputs = self.outputs.iter().map(|output| Output {
            number: output.number,
            sums: row(&output.sums),
            by_map: output.by_map.iter().map(&mut row).collect(),
        });
        Jet { power, moved, outputs: outputs.collect() }
    }
}
