//! The point from which a system of recurrences is measured.
//!
//! Each number is measured from the fixed point, if that is known and not too far, or from where it
//! starts, or from zero. At a fixed point the way from the start is zero, and so is all that comes
//! of it, however large the powers are. But what becomes far smaller than its start loses its digits
//! in the difference; from zero it vanishes without one. From the fixed point so does the way to
//! that.

use super::emit::Emitter;
use super::power::Matrix;
use super::products::{Factors, Row};
use super::terms::Terms;
use crate::op::Op;
use crate::phi::pair::{Pair, Pairs};
use crate::ssa::Node;

/// A number that the first steps take so many times farther than what is added is measured from
/// zero.
const FAR: f64 = (1u32 << 20) as f64;

/// A fixed point so many times farther away than a number and its first step costs digits that
/// count.
const TOO_FAR: f64 = (1u64 << 30) as f64;

/// Where the numbers of a system are measured from.
pub(super) struct Point {
    /// Whether a number is measured from its start: known by structure, or found out.
    pub(super) is_start: Vec<Node>,
    /// Whether anything is added to a number, or to one that it depends on.
    pub(super) is_driven: Vec<bool>,
}

impl Point {
    /// That of the system with these coefficients, of which some are added.
    pub(super) fn of(
        emitter: &mut Emitter<'_>,
        map: &Matrix<Pair>,
        added: &Row,
        firsts: &[Node],
    ) -> Point {
        let system = Of { map, added, firsts };
        let is_driven = system.driven(emitter);
        let effects = system.effects(emitter);
        let ways = system.ways(emitter);
        let (yes, no) = (emitter.constant(1.0), emitter.constant(0.0));
        let is_start = (0..firsts.len()).map(|number| {
            let starts_at_zero = emitter.value(firsts[number]) == Some(0.0);
            match is_driven[number] && !starts_at_zero {
                // What stays is added to others.
                true if system.stays(emitter, number) => yes,
                true => {
                    let far = emitter.constant(FAR);
                    let most = emitter.apply(Op::Mul, &[effects[number], far]);
                    emitter.apply(Op::Lt, &[ways[number], most])
                }
                false => no,
            }
        });
        Point { is_start: is_start.collect(), is_driven }
    }
}

/// Whether all numbers may be measured from their fixed `point`. What is added has come to all of
/// them after as many steps as there are numbers.
pub(super) fn is_near(
    emitter: &mut Emitter<'_>,
    steps: Node,
    map: &Matrix<Pair>,
    [added, point]: [&Row; 2],
    firsts: &[Node],
) -> Node {
    let system = Of { map, added, firsts };
    let effects = system.effects(emitter);
    let ways = system.ways(emitter);
    let [far, zero, largest] = [TOO_FAR, 0.0, f64::MAX].map(|number| emitter.constant(number));
    let least = emitter.constant(firsts.len() as f64);
    let mut all = emitter.apply(Op::Ge, &[steps, least]);
    for (number, point) in point.iter().enumerate() {
        let Some(point) = point else { continue };
        let start = emitter.apply(Op::Abs, &[firsts[number]]);
        let reach = emitter.apply(Op::Add, &[start, ways[number]]);
        let reach = emitter.apply(Op::Add, &[reach, effects[number]]);
        let most = emitter.apply(Op::Mul, &[reach, far]);
        let size = emitter.apply(Op::Abs, &[point.high]);
        // What is no finite number is not.
        for most in [most, largest] {
            let is_near = emitter.apply(Op::Le, &[size, most]);
            all = emitter.apply(Op::Select, &[is_near, all, zero]);
        }
    }
    all
}

/// What a step adds to numbers with this `map` at `point`, as sums of products, but for
/// what it adds in any case. The entries of its diagonal, less 1, are known where they are written
/// out.
pub(super) fn terms_of_change(
    emitter: &mut Emitter<'_>,
    map: &Matrix<Pair>,
    less_one: Option<&[Terms]>,
    point: &Row,
) -> Vec<Vec<Factors>> {
    let less = emitter.number(-1.0, 0.0);
    let mut all = Vec::new();
    for (row, entries) in map.iter().enumerate() {
        let own = less_one.map(|all| all[row].emitted(emitter));
        let back = own.is_none().then(|| (Some(less), point[row]));
        let terms =
            entries.iter().zip(point).enumerate().map(|(column, (&entry, &at))| {
                (own.filter(|_| column == row).unwrap_or(entry), at)
            });
        all.push(back.into_iter().chain(terms).collect());
    }
    all
}

/// A system.
struct Of<'a> {
    map: &'a Matrix<Pair>,
    added: &'a Row,
    firsts: &'a [Node],
}

impl Of<'_> {
    /// Whether a number is the same after each step, by structure.
    fn stays(&self, emitter: &Emitter<'_>, number: usize) -> bool {
        let mut row = self.map[number].iter().enumerate();
        let is_one = |entry: &Pair| entry.low.is_none() && emitter.value(entry.high) == Some(1.0);
        self.added[number].is_none()
            && row.all(|(other, entry)| match entry {
                Some(entry) => other == number && is_one(entry),
                None => other != number,
            })
    }

    fn driven(&self, emitter: &Emitter<'_>) -> Vec<bool> {
        let size = self.firsts.len();
        let is_source = |number: usize| self.added[number].is_some() || self.stays(emitter, number);
        let mut driven: Vec<bool> = (0..size).map(is_source).collect();
        // A way from a number to another one is no longer than there are numbers.
        for _ in 1..size {
            for (number, row) in self.map.iter().enumerate() {
                driven[number] |= (0..size).any(|other| row[other].is_some() && driven[other]);
            }
        }
        driven
    }

    /// About how much of what is added comes to each number in a few steps, by ordinary
    /// rounding.
    fn effects(&self, emitter: &mut Emitter<'_>) -> Vec<Node> {
        let sources = (0..self.firsts.len()).map(|number| match self.added[number] {
            Some(added) => emitter.apply(Op::Abs, &[added.high]),
            None if self.stays(emitter, number) => emitter.apply(Op::Abs, &[self.firsts[number]]),
            None => emitter.constant(0.0),
        });
        let sources: Vec<Node> = sources.collect();
        self.spread(emitter, &sources)
    }

    /// About how far the first few steps take each number: the first one alone may leave it where
    /// it starts, and take what it depends on elsewhere.
    fn ways(&self, emitter: &mut Emitter<'_>) -> Vec<Node> {
        let ways: Vec<Node> =
            (0..self.firsts.len()).map(|number| self.way(emitter, number)).collect();
        self.spread(emitter, &ways)
    }

    /// What comes to each number of `sources` in as many steps as there are numbers.
    fn spread(&self, emitter: &mut Emitter<'_>, sources: &[Node]) -> Vec<Node> {
        let mut all = sources.to_vec();
        for _ in 1..sources.len() {
            let next = sources.iter().enumerate().map(|(number, &source)| {
                let mut sum = source;
                for (other, entry) in self.map[number].iter().enumerate() {
                    let Some(entry) = entry.filter(|_| other != number) else {
                        continue;
                    };
                    if emitter.value(all[other]) == Some(0.0) {
                        continue;
                    }
                    let size = emitter.apply(Op::Abs, &[entry.high]);
                    sum = emitter.apply(Op::MulAdd, &[size, all[other], sum]);
                }
                sum
            });
            all = next.collect();
        }
        all
    }

    /// How far the first step takes a number.
    fn way(&self, emitter: &mut Emitter<'_>, number: usize) -> Node {
        let less = emitter.constant(-1.0);
        let mut step = emitter.apply(Op::Mul, &[self.firsts[number], less]);
        for (entry, &first) in self.map[number].iter().zip(self.firsts) {
            if let Some(entry) = entry {
                step = emitter.apply(Op::MulAdd, &[entry.high, first, step]);
            }
        }
        if let Some(added) = self.added[number] {
            step = emitter.apply(Op::Add, &[step, added.high]);
        }
        emitter.apply(Op::Abs, &[step])
    }
}
