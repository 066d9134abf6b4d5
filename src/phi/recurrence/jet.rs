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
//! For numbers to which something is added ζ is the fixed point, if that is known and not too far:
//! then d is zero, and v vanishes without a difference. Otherwise it is the start: at a fixed point d
//! is zero then, and so is all that comes of it, however large the powers are. For those to which
//! nothing is added, or so little that the fixed point would be lost next to the start, ζ is zero
//! (`point`). Where all powers have vanished, so have the derivatives by what the fixed point does
//! not depend on (`fixed`).

use super::doubt::{Doubt, Halves, checked};
use super::emit::Emitter;
use super::fixed::{is_left, unless_left};
use super::power::Matrix;
use super::products::{
    Factors, Row, applied, both, product, square, sum_of_products, times, total,
};
use super::sizes::{self, Sizes, total_size};
use super::slopes::{Digits, Totals};
use super::start::{Slope, Start};
use super::toward::Taken;
use crate::op::Op;
use crate::phi::pair::{Pair, Pairs};
use crate::ssa::Node;

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
    /// What is known after no steps, and may be other than zero after some, if entries of powers may
    /// be where `filled` says so.
    pub(super) fn none(&self, emitter: &mut Emitter<'_>, filled: &[Vec<bool>]) -> Jet {
        let (zero, one) = (emitter.number(0.0, 0.0), emitter.number(1.0, 0.0));
        let size = self.map.len();
        let row_of =
            |number: usize| (0..size).map(move |other| other == number || filled[number][other]);
        let power = |number: usize| {
            let first = |other| if other == number { one } else { zero };
            let row = row_of(number).enumerate();
            row.map(|(other, is_filled)| is_filled.then(|| first(other))).collect()
        };
        let moves = |number: usize| {
            row_of(number)
                .zip(&self.change)
                .any(|(is_filled, change)| is_filled && change.is_some())
        };
        let output = |&number: &usize| {
            let row_if = |is_there: bool| -> Row {
                row_of(number).map(|is_filled| (is_there && is_filled).then_some(zero)).collect()
            };
            let by_map = vec![row_if(self.has_slopes); size];
            Output { number, sums: row_if(self.has_offset), by_map }
        };
        Jet {
            power: (0..size).map(power).collect(),
            moved: (0..size).map(|number| moves(number).then_some(zero)).collect(),
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
        let from = self.base[output.number];
        let mut value = total(emitter, [], [from, distance]);
        let zero = emitter.constant(0.0);
        let base = from.map_or(zero, |from| from.high);
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
        if let Some(number) = value
            && (self.is_from_loop || !self.rest.is_empty())
        {
            let unless_grown = doubt.unless_grown(emitter, number);
            value = Some(match self.is_from_loop {
                true => unless_grown,
                false => self.rest.unless_rounding(emitter, unless_grown, number),
            });
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
            totals.count(slope.leaf, doubt.steps(emitter));
        }
        let value = value.unwrap_or_else(|| emitter.number(0.0, 0.0));
        let rounded = emitter.rounded(value);
        let mut own_row = Row::new();
        if toward.is_some() {
            for (other, &slope) in row.iter().enumerate() {
                let least = doubt.by_start(output.number, other);
                let slope =
                    slope.map(|slope| least.map_or(slope, |least| checked(emitter, slope, least)));
                own_row.push(slope);
            }
        }
        let taken = toward.map(|toward| Taken { toward, number: output.number, row: &own_row });
        let digits = Digits::of(self.outputs.len(), row.len(), toward.is_some());
        let node = totals.told(emitter, rounded, taken, digits);
        emitter.numbers.insert(node, value);
        node
    }
}

impl Jet {
    /// What is known after twice as many steps.
    pub(super) fn doubled(&self, emitter: &mut Emitter<'_>) -> Jet {
        let outputs = self.outputs.iter().map(|output| {
            let has_slopes = output.by_map.iter().flatten().any(Option::is_some);
            let by_map = match has_slopes {
                true => both(emitter, &self.power, &output.by_map, |i, j| {
                    [(self.moved[i], output.sums[j])]
                }),
                false => output.by_map.clone(),
            };
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
