//! Dependences of values on inputs, and the pattern of second derivatives that follows from them.
//!
//! A value depends on inputs through linear and nonlinear operations. Where an operation has a
//! second partial derivative by two operands, each input of the one operand and each of the other
//! interact: the second derivative of the output by them may be other than zero. Other inputs do
//! not interact.
//!
//! Sets of inputs are computed only for operands that interact. A value with one use, such as a
//! partial sum, gets no set of its own: its inputs are collected where it is used. Equal sets are
//! stored once. So a sum of n terms of few inputs takes time linear in n.

use core::ops::Range;

use hashbrown::{HashMap, HashSet};

use super::pattern::Pattern;
use crate::op::{MAX_ARITY, Op, Structure};

/// A value, by its number: the inputs that its derivative passes through.
pub(super) type Value = u32;

/// The value that depends on no input.
pub(super) const NONE: Value = 0;

/// The first operand of an input; the second one is its number.
const INPUT: u32 = u32::MAX;

/// The largest number of entries of a pattern, and of numbers in sets. While products are found, an
/// entry takes 64 bytes, so that such a pattern takes 8 gigabytes; sets take half a gigabyte.
pub(super) const MAX_ENTRIES: usize = 1 << 27;

/// The pattern has more entries than there may be, or takes as much memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the sparsity pattern has more than {MAX_ENTRIES} entries")]
pub struct TooDense;

impl TooDense {
    /// The limit.
    pub(crate) const LIMIT: usize = MAX_ENTRIES;
}

/// The matrix whose pattern is asked for: second derivatives by inputs of two ranges.
#[derive(Clone, Debug)]
pub(super) struct Ranges {
    pub(super) rows: Range<u32>,
    pub(super) columns: Range<u32>,
}

/// Values with their operands, and the interactions.
pub(super) struct Dependences {
    ranges: Ranges,
    structures: Vec<Structure>,
    /// The operands of each value; for an input [`INPUT`] and its number.
    operands: Vec<[u32; 2]>,
    /// Two operands that interact, and the value for which they do.
    interactions: Vec<(Value, [Value; 2])>,
}

impl Dependences {
    pub(super) fn new(ranges: Ranges) -> Self {
        let structures = Op::ALL.iter().map(|&op| Structure::of(op)).collect();
        Dependences { ranges, structures, operands: vec![[NONE; 2]], interactions: Vec::new() }
    }

    /// The value of input `number`.
    pub(super) fn input(&mut self, number: u32) -> Value {
        let Ranges { rows, columns } = &self.ranges;
        if rows.contains(&number) || columns.contains(&number) {
            self.push([INPUT, number])
        } else {
            NONE
        }
    }

    /// The value that depends on the inputs of both.
    pub(super) fn union(&mut self, a: Value, b: Value) -> Value {
        match (a, b) {
            (NONE, only) | (only, NONE) => only,
            (a, b) if a == b => a,
            both => self.push(both.into()),
        }
    }

    /// The value of `op` at `args`.
    pub(super) fn apply(&mut self, op: Op, args: [Value; MAX_ARITY]) -> Value {
        let Structure { differentiable, interacting } = self.structures[op as usize];
        let passed =
            |operand: usize| if differentiable >> operand & 1 != 0 { args[operand] } else { NONE };
        let (two, third) = (self.union(passed(0), passed(1)), passed(2));
        let value = self.union(two, third);
        if value == NONE || interacting == [0; MAX_ARITY] {
            return value;
        }
        let mut nonlinear = NONE;
        for a in 0..op.arity() {
            for b in a..op.arity() {
                if interacting[a] >> b & 1 != 0 && args[a] != NONE && args[b] != NONE {
                    if nonlinear == NONE {
                        // A value of its own, which may be dead where its operands are not.
                        nonlinear = self.push([value, NONE]);
                    }
                    self.interactions.push((nonlinear, [args[a], args[b]]));
                }
            }
        }
        if nonlinear == NONE { value } else { nonlinear }
    }

    /// A value of which nothing is known but that it depends on no other inputs than `of`.
    pub(super) fn any_function(&mut self, of: Value) -> Value {
        if of == NONE {
            return NONE;
        }
        let value = self.push([of, NONE]);
        self.interactions.push((value, [of; 2]));
        value
    }

    /// Makes `a` and `b` interact for the output.
    pub(super) fn product(&mut self, a: Value, b: Value) -> Value {
        self.apply(Op::Mul, [a, b, NONE])
    }

    fn push(&mut self, operands: [u32; 2]) -> Value {
        self.operands.push(operands);
        self.operands.len() as u32 - 1
    }

    /// The numbers of values that the derivative of value number `value` passes on to.
    fn passed_to(&self, value: usize) -> impl Iterator<Item = usize> + use<> {
        let [a, b] = self.operands[value];
        let used = if a == INPUT { [NONE; 2] } else { [a, b] };
        used.into_iter().filter(|&value| value != NONE).map(|value| value as usize)
    }

    /// The pattern of the second derivatives of `output`.
    pub(super) fn pattern(mut self, output: Value) -> Result<Pattern, TooDense> {
        let Ranges { rows, columns } = self.ranges.clone();
        self.retain_interactions(output);
        let sets = Sets::of(&self)?;
        // For each row the sets of inputs that its input interacts with.
        let mut partners: Vec<Vec<u32>> = vec![Vec::new(); rows.len()];
        let mut known = HashSet::new();
        for &(_, [a, b]) in &self.interactions {
            let (a, b) = (sets.of_value[a as usize], sets.of_value[b as usize]);
            if !known.insert((a.min(b), a.max(b))) {
                continue;
            }
            for (of, partner) in [(a, b), (b, a)] {
                let elements = sets.elements(of).iter().filter(|&number| rows.contains(number));
                elements.for_each(|number| partners[(number - rows.start) as usize].push(partner));
                if a == b {
                    break;
                }
            }
        }
        let mut pattern = Pattern::with_columns(columns.len());
        let (mut row_of, mut found) = (vec![usize::MAX; columns.len()], Vec::new());
        for (row, partners) in partners.iter().enumerate() {
            found.clear();
            for &partner in partners {
                for number in
                    sets.elements(partner).iter().filter(|&number| columns.contains(number))
                {
                    let column = (number - columns.start) as usize;
                    if core::mem::replace(&mut row_of[column], row) != row {
                        found.push(column);
                    }
                }
                if found.len() == columns.len() {
                    break;
                }
            }
            if pattern.len() + found.len() > MAX_ENTRIES {
                return Err(TooDense);
            }
            found.sort_unstable();
            pattern.push_row(found.iter().copied());
        }
        Ok(pattern)
    }

    /// Drops interactions for values that `output` does not depend on, and those without an input
    /// of a row.
    fn retain_interactions(&mut self, output: Value) {
        let mut live = vec![false; self.operands.len()];
        live[output as usize] = true;
        for value in (1..=output as usize).rev().filter(|_| output != NONE) {
            if live[value] {
                self.passed_to(value).for_each(|operand| live[operand] = true);
            }
        }
        let mut is_of_row = vec![false; self.operands.len()];
        for value in 1..self.operands.len() {
            is_of_row[value] = match self.operands[value] {
                [INPUT, number] => self.ranges.rows.contains(&number),
                _ => self.passed_to(value).any(|operand| is_of_row[operand]),
            };
        }
        self.interactions.retain(|&(value, operands)| {
            live[value as usize] && operands.iter().any(|&operand| is_of_row[operand as usize])
        });
    }
}

/// The sets of inputs of the values that need one.
struct Sets {
    /// The set of each value; [`Sets::UNKNOWN`] for those without one.
    of_value: Vec<u32>,
    /// The ends of the sets in `numbers`.
    ends: Vec<usize>,
    /// The inputs of all sets, sorted in each.
    numbers: Vec<u32>,
    /// The sets by a hash of their inputs.
    by_hash: HashMap<u64, Vec<u32>>,
    /// The unions of two sets.
    unions: HashMap<[u32; 2], u32>,
}

impl Sets {
    const UNKNOWN: u32 = u32::MAX;

    fn of(dependences: &Dependences) -> Result<Sets, TooDense> {
        let count = dependences.operands.len();
        let mut uses = vec![0u8; count];
        for value in dependences.interactions.iter().flat_map(|(_, operands)| operands) {
            uses[*value as usize] = 2;
        }
        for value in (1..count).rev().filter(|_| count > 1) {
            if uses[value] > 0 {
                for operand in dependences.passed_to(value) {
                    uses[operand] = uses[operand].saturating_add(1);
                }
            }
        }
        let (numbers, ends) = (Vec::new(), vec![0]);
        let (by_hash, unions) = Default::default();
        let mut sets =
            Sets { of_value: vec![Self::UNKNOWN; count], ends, numbers, by_hash, unions };
        let (mut parts, mut pending, mut inputs) = (Vec::new(), Vec::new(), Vec::new());
        for value in (1..count).filter(|&value| uses[value] > 1) {
            parts.clear();
            inputs.clear();
            pending.push(value);
            while let Some(part) = pending.pop() {
                match (dependences.operands[part], sets.of_value[part]) {
                    ([INPUT, number], _) => inputs.push(number),
                    (_, Self::UNKNOWN) => pending.extend(dependences.passed_to(part)),
                    (_, set) => parts.push(set),
                }
            }
            parts.sort_unstable();
            parts.dedup();
            sets.of_value[value] = sets.union(&parts, &mut inputs)?;
        }
        Ok(sets)
    }

    fn elements(&self, set: u32) -> &[u32] {
        let set = set as usize;
        &self.numbers[self.ends[set]..self.ends[set + 1]]
    }

    /// The set of the inputs of `parts` and of `inputs`.
    fn union(&mut self, parts: &[u32], inputs: &mut Vec<u32>) -> Result<u32, TooDense> {
        let pair = match *parts {
            [only] if inputs.is_empty() => return Ok(only),
            [a, b] if inputs.is_empty() => Some([a, b]),
            _ => None,
        };
        if let Some(&known) = pair.and_then(|pair| self.unions.get(&pair)) {
            return Ok(known);
        }
        parts.iter().for_each(|&part| inputs.extend_from_slice(self.elements(part)));
        inputs.sort_unstable();
        inputs.dedup();
        let set = self.set(inputs)?;
        if let Some(pair) = pair {
            self.unions.insert(pair, set);
        }
        Ok(set)
    }

    /// The set of `elements`, which are sorted.
    fn set(&mut self, elements: &[u32]) -> Result<u32, TooDense> {
        let hash =
            elements.iter().fold(elements.len() as u64, |hash, &one| mixed(hash, one.into()));
        let known = self.by_hash.get(&hash).into_iter().flatten();
        if let Some(&known) = known.clone().find(|&&set| self.elements(set) == elements) {
            return Ok(known);
        }
        if self.numbers.len() + elements.len() > MAX_ENTRIES {
            return Err(TooDense);
        }
        let set = self.ends.len() as u32 - 1;
        self.numbers.extend_from_slice(elements);
        self.ends.push(self.numbers.len());
        self.by_hash.entry(hash).or_default().push(set);
        Ok(set)
    }
}

/// A hash of `hash` and `word`.
#[inline]
pub(super) fn mixed(hash: u64, word: u64) -> u64 {
    let product = u128::from(hash ^ word ^ 0x9e37_79b9_7f4a_7c15) * 0xd6e8_feb8_6659_fd93_u128;
    (product as u64) ^ (product >> 64) as u64
}
