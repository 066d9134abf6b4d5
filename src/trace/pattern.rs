//! Induction patterns: how the operands of a loop in a trace depend on the number of the iteration.

use smallvec::SmallVec;

use super::event::{Form, Kind, Step};
use super::{Carried, Events, Operand, Role};
use crate::op::Op;

/// The largest distance in iterations from a value to its use.
pub(crate) const DISTANCE: usize = 4;
/// The rules of operands are inferred from this many iterations.
const FIRST: usize = DISTANCE + 1;

/// A loop in a trace: each iteration has the same events, and their operands follow rules.
#[derive(Debug)]
pub(crate) struct Pattern {
    pub(crate) times: usize,
    /// The events of one iteration.
    pub(crate) body: Vec<Part>,
}

/// An event of the loop body.
#[derive(Debug)]
pub(crate) enum Part {
    /// No step: a constant used by a step, or an ignored mark.
    Nothing,
    /// An applied primitive; for a guard, `outcome` is its outcome.
    Step { op: Op, outcome: Option<bool>, slots: SmallVec<[Slot; 2]> },
}

/// The rule of an operand over the iterations.
#[derive(Clone, Debug)]
pub(crate) enum Slot {
    Constant(u64),
    /// A constant for each iteration.
    Table(Vec<u64>),
    /// An event before the loop: number `first + stride · iteration`.
    Event {
        first: u32,
        by: i64,
    },
    /// Event number `at` of the body, `distance` iterations earlier; in the first `distance`
    /// iterations the operands `initial`.
    Inside {
        at: usize,
        distance: usize,
        firsts: SmallVec<[Operand; 1]>,
    },
}

impl Pattern {
    /// The values that its iterations carry.
    pub(super) fn carried(&self) -> Carried<usize> {
        let mut carried = Carried::new(self.body.len());
        for (user, part) in self.body.iter().enumerate() {
            for slot in part.slots() {
                if let Slot::Inside { at, distance, .. } = *slot {
                    carried.add(at, at, distance, user);
                }
            }
        }
        carried
    }
}

impl Part {
    /// The operands.
    pub(crate) fn slots(&self) -> &[Slot] {
        match self {
            Part::Nothing => &[],
            Part::Step { slots, .. } => slots,
        }
    }
}

/// The rule of one event of the body.
struct Rule {
    role: Role,
    kind: Kind,
    holds: bool,
    /// For each operand that is an event: its index in the next iteration, and the stride.
    next: [u32; 3],
    by: [u32; 3],
    bits: u64,
    /// The constants of all iterations so far, if they differ.
    table: Option<Vec<u64>>,
    slots: SmallVec<[Slot; 2]>,
}

/// The rules inferred from the first iterations of a loop.
pub(crate) struct Opening<'a> {
    events: &'a Events,
    passes: &'a dyn Fn(usize) -> bool,
    start: usize,
    /// The rule of each event of the body.
    rules: Vec<Rule>,
    /// The largest possible number of iterations.
    most: usize,
}

/// Infers the rules of the loop that begins with event `start` and has this period, from its first
/// iterations. `None` if they follow none, or if there are not more iterations than those; at most
/// `most` are considered. Marks for which `is_ignored` holds are not part of the loop.
pub(crate) fn opening<'a>(
    events: &'a Events,
    passes: &'a dyn Fn(usize) -> bool,
    start: usize,
    period: usize,
    most: usize,
) -> Option<Opening<'a>> {
    let mut most = most.min((events.len() - start) / period);
    if most <= FIRST {
        return None;
    }
    let mut rules = Vec::with_capacity(period);
    for at in start..start + period {
        let rule = rule(events, passes, start, period, at)?;
        for slot in &rule.slots {
            // An operand from before the loop stays before the loop.
            if let Slot::Event { first, by } = *slot
                && by > 0
            {
                let room = (start - 1 - first as usize) / by as usize;
                most = most.min(room + 1);
            }
        }
        rules.push(rule);
    }
    (most > FIRST).then_some(Opening { events, passes, start, rules, most })
}

impl Opening<'_> {
    /// The pattern of the first iterations alone.
    pub(crate) fn first(&self) -> Option<Pattern> {
        Some(Pattern { times: FIRST, body: self.body(FIRST)? })
    }

    /// The pattern of all iterations that follow the rules, at most `most`.
    pub(crate) fn pattern(mut self, most: usize) -> Option<Pattern> {
        let most = most.min(self.most);
        if most <= FIRST {
            return None;
        }
        let times = go_on(&mut self.rules, self.events, self.passes, self.start, most);
        Some(Pattern { times, body: self.body(times)? })
    }

    /// The body, for this number of iterations.
    fn body(&self, times: usize) -> Option<Vec<Part>> {
        let rules = &self.rules;
        let constants = |rule: &Rule| match rule.table.as_ref().map(|table| &table[..times]) {
            Some(table) if table.iter().any(|&bits| bits != rule.bits) => {
                Slot::Table(table.to_vec())
            }
            _ => Slot::Constant(rule.bits),
        };
        let mut body = Vec::with_capacity(rules.len());
        for rule in rules {
            if !matches!(rule.role, Role::Apply | Role::Guard) {
                body.push(Part::Nothing);
                continue;
            }
            let mut slots = SmallVec::new();
            for slot in &rule.slots {
                slots.push(match slot {
                    Slot::Constant(_) | Slot::Table(_) => constants(rule),
                    &Slot::Inside { at, distance, .. } if rules[at].role == Role::Constant => {
                        if distance > 0 {
                            return None;
                        }
                        constants(&rules[at])
                    }
                    &Slot::Inside { at, .. } if !rules[at].is_step() => return None,
                    Slot::Event { .. } | Slot::Inside { .. } => slot.clone(),
                });
            }
            // The exponent of an integer power is part of the operation.
            if rule.kind.op == Op::Powi && !matches!(slots[1], Slot::Constant(_)) {
                return None;
            }
            let outcome = (rule.role == Role::Guard).then_some(rule.holds);
            body.push(Part::Step { op: rule.kind.op, outcome, slots });
        }
        Some(body)
    }
}

impl Rule {
    fn is_step(&self) -> bool {
        matches!(self.role, Role::Apply | Role::Guard)
    }

    /// Tests whether an event of iteration number `times` follows the rule, and advances the rule
    /// to the next iteration.
    #[inline]
    fn follows(&mut self, step: &Step, value: f64, times: usize) -> bool {
        let (kind, known) = (step.kind, self.kind);
        if kind.op != known.op || kind.form != known.form || kind.role != self.role {
            return false;
        }
        match self.role {
            Role::Apply => {}
            Role::Guard if (value != 0.0) == self.holds => {}
            Role::Constant => return self.constant(value.to_bits(), times),
            _ => return false,
        }
        let arity = known.op.arity();
        let fits = match known.form {
            Form::Events => {
                step.first == self.next[0]
                    && (arity < 2 || step.second() == self.next[1])
                    && (arity < 3 || step.third() == self.next[2])
            }
            Form::ConstantSecond => {
                step.first == self.next[0] && self.constant(step.payload, times)
            }
            Form::ConstantFirst => step.first == self.next[1] && self.constant(step.payload, times),
        };
        for (next, by) in self.next.iter_mut().zip(self.by) {
            *next = next.wrapping_add(by);
        }
        fits
    }

    /// Adds the constant of iteration number `times`.
    #[inline]
    fn constant(&mut self, bits: u64, times: usize) -> bool {
        match &mut self.table {
            Some(table) => table.push(bits),
            None if bits == self.bits => {}
            None => {
                let mut table = vec![self.bits; times];
                table.push(bits);
                self.table = Some(table);
            }
        }
        true
    }
}

/// Compares the iterations after the first ones with the rules; returns the number of iterations
/// that follow them, at most `most`.
fn go_on(
    rules: &mut [Rule],
    events: &Events,
    passes: &dyn Fn(usize) -> bool,
    start: usize,
    most: usize,
) -> usize {
    let period = rules.len();
    for times in FIRST..most {
        let from = start + times * period;
        let steps = &events.steps[from..from + period];
        let values = &events.values[from..from + period];
        for (at, ((rule, step), &value)) in rules.iter_mut().zip(steps).zip(values).enumerate() {
            let is_mark =
                || rule.role == Role::Enter && is_mark(step.kind.role) && passes(from + at);
            if !is_mark() && !rule.follows(step, value, times) {
                return times;
            }
        }
    }
    most
}

fn is_mark(role: Role) -> bool {
    matches!(role, Role::Enter | Role::Iterate | Role::Join)
}

/// Infers the rule of event `at` from the first iterations. Marks get the role [`Role::Enter`].
fn rule(
    events: &Events,
    passes: &dyn Fn(usize) -> bool,
    start: usize,
    period: usize,
    at: usize,
) -> Option<Rule> {
    let all = || (0..FIRST).map(|times| events.at(at + times * period));
    let last = events.at(at + (FIRST - 1) * period);
    let (role, kind, holds) = (last.role(), last.step.kind, last.value() != 0.0);
    let (next, by, bits, table, slots) = ([0; 3], [0; 3], 0, None, SmallVec::new());
    let mut rule = Rule { role, kind, holds, next, by, bits, table, slots };
    if is_mark(role) {
        rule.role = Role::Enter;
        let pass = |times| is_mark(events.at(at + times * period).role());
        let all = (0..FIRST).all(|times| pass(times) && passes(at + times * period));
        return all.then_some(rule);
    }
    if !matches!(role, Role::Apply | Role::Guard | Role::Constant) {
        return None;
    }
    let is_same = |event: super::Event<'_>| {
        event.role() == role
            && (role == Role::Constant || event.op() == kind.op)
            && (role != Role::Guard || (event.value() != 0.0) == holds)
    };
    if !all().all(is_same) {
        return None;
    }
    if role == Role::Constant {
        rule.bits = events.values[at].to_bits();
        let mut values = all().map(|event| event.value().to_bits()).enumerate().skip(1);
        return values.all(|(times, bits)| rule.constant(bits, times)).then_some(rule);
    }
    for index in 0..last.operands().len() {
        let mut operands = [Operand::Constant(0.0); FIRST];
        for (operand, event) in operands.iter_mut().zip(all()) {
            *operand = event.operands().nth(index)?;
        }
        let slot = slot(&operands, start, period)?;
        match slot {
            Slot::Event { first, by } => {
                rule.next[index] = (i64::from(first) + by * FIRST as i64) as u32;
                rule.by[index] = by as u32;
            }
            Slot::Inside { at, distance, .. } => {
                rule.next[index] = (start + at + (FIRST - distance) * period) as u32;
                rule.by[index] = period as u32;
            }
            Slot::Constant(bits) => {
                // One operand at most is a constant; its values may differ.
                rule.bits = bits;
                for (times, operand) in operands.iter().enumerate().skip(1) {
                    if let Operand::Constant(value) = operand {
                        rule.constant(value.to_bits(), times);
                    }
                }
            }
            Slot::Table(_) => return None,
        }
        rule.slots.push(slot);
    }
    Some(rule)
}

/// Infers the rule of an operand from the first iterations. Constants may differ.
fn slot(operands: &[Operand], start: usize, period: usize) -> Option<Slot> {
    let inside = |operand: &Operand| match *operand {
        Operand::Event(event) if event as usize >= start => Some(event as usize - start),
        _ => None,
    };
    if let Some(distance) = operands.iter().position(|operand| inside(operand).is_some()) {
        let first = inside(&operands[distance])?;
        let (at, mut rest) = (first, operands[distance..].iter().enumerate());
        // It comes from the body as soon as an earlier iteration exists.
        let fits = at < period
            && distance <= DISTANCE
            && rest.all(|(times, operand)| inside(operand) == Some(at + times * period));
        let firsts = SmallVec::from_slice(&operands[..distance]);
        return fits.then_some(Slot::Inside { at, distance, firsts });
    }
    let (&first, &second) = (operands.first()?, operands.get(1)?);
    match (first, second) {
        (Operand::Constant(first), _) => {
            let all = operands.iter().all(|operand| matches!(operand, Operand::Constant(_)));
            all.then_some(Slot::Constant(first.to_bits()))
        }
        (Operand::Event(first), Operand::Event(second)) => {
            let by = i64::from(second) - i64::from(first);
            let expected = |times: usize| i64::from(first) + by * times as i64;
            let mut all = operands.iter().enumerate();
            let fits = |(times, operand): (usize, &Operand)| matches!(*operand, Operand::Event(event) if i64::from(event) == expected(times));
            all.all(fits).then_some(Slot::Event { first, by })
        }
        (Operand::Event(_), Operand::Constant(_)) => None,
    }
}
