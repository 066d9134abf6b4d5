//! Induction patterns: how the operands of a loop in a trace depend on the number of the iteration.

use smallvec::SmallVec;

use super::event::{Form, Kind, Step};
use super::{CarriedValues, Events, Operand, Role};
use crate::op::Op;

/// The largest distance in iterations from a value to its use.
pub(crate) const MAX_DISTANCE: usize = 4;
/// The rules of operands are inferred from this many iterations.
const SAMPLE: usize = MAX_DISTANCE + 1;

/// A loop in a trace: each iteration has the same events, and their operands follow rules.
#[derive(Debug)]
pub(crate) struct InductionPattern {
    pub(crate) times: usize,
    /// The events of one iteration.
    pub(crate) body: Vec<BodyEvent>,
}

/// An event of the loop body.
#[derive(Debug)]
pub(crate) enum BodyEvent {
    /// No step: a constant used by a step, or an ignored mark.
    NoStep,
    /// An applied primitive; for a guard, `outcome` is its outcome.
    Step { op: Op, outcome: Option<bool>, operand_rules: SmallVec<[OperandRule; 2]> },
}

/// The rule of an operand over the iterations.
#[derive(Clone, Debug)]
pub(crate) enum OperandRule {
    Constant(u64),
    /// A constant for each iteration.
    Table(Vec<u64>),
    /// An event before the loop: number `first + stride · iteration`.
    Event {
        first: u32,
        stride: i64,
    },
    /// Event number `at` of the body, `distance` iterations earlier; in the first `distance`
    /// iterations the operands `initial`.
    Body {
        at: usize,
        distance: usize,
        initial: SmallVec<[Operand; 1]>,
    },
}

impl InductionPattern {
    /// The values that its iterations carry.
    pub(super) fn carried(&self) -> CarriedValues<usize> {
        let mut carried = CarriedValues::new(self.body.len());
        for (user, event) in self.body.iter().enumerate() {
            for operand_rule in event.operand_rules() {
                if let OperandRule::Body { at, distance, .. } = *operand_rule {
                    carried.add(at, at, distance, user);
                }
            }
        }
        carried
    }
}

impl BodyEvent {
    /// The operands.
    pub(crate) fn operand_rules(&self) -> &[OperandRule] {
        match self {
            BodyEvent::NoStep => &[],
            BodyEvent::Step { operand_rules, .. } => operand_rules,
        }
    }
}

/// The rule of one event of the body.
struct EventRule {
    role: Role,
    kind: Kind,
    holds: bool,
    /// For each operand that is an event: its index in the next iteration, and the stride.
    next: [u32; 3],
    stride: [u32; 3],
    bits: u64,
    /// The constants of all iterations so far, if they differ.
    table: Option<Vec<u64>>,
    operand_rules: SmallVec<[OperandRule; 2]>,
}

/// The rules inferred from the first iterations of a loop.
pub(crate) struct Induction<'a> {
    events: &'a Events,
    is_ignored: &'a dyn Fn(usize) -> bool,
    start: usize,
    /// The rule of each event of the body.
    rules: Vec<EventRule>,
    /// The largest possible number of iterations.
    most: usize,
}

/// Infers the rules of the loop that begins with event `start` and has this period, from its first
/// iterations. `None` if they follow none, or if there are not more iterations than those; at most
/// `most` are considered. Marks for which `is_ignored` holds are not part of the loop.
pub(crate) fn infer_induction<'a>(
    events: &'a Events,
    is_ignored: &'a dyn Fn(usize) -> bool,
    start: usize,
    period: usize,
    most: usize,
) -> Option<Induction<'a>> {
    let mut most = most.min((events.len() - start) / period);
    if most <= SAMPLE {
        return None;
    }
    let mut rules = Vec::with_capacity(period);
    for at in start..start + period {
        let rule = event_rule(events, is_ignored, start, period, at)?;
        for operand_rule in &rule.operand_rules {
            // An operand from before the loop stays before the loop.
            if let OperandRule::Event { first, stride } = *operand_rule
                && stride > 0
            {
                let room = (start - 1 - first as usize) / stride as usize;
                most = most.min(room + 1);
            }
        }
        rules.push(rule);
    }
    (most > SAMPLE).then_some(Induction { events, is_ignored, start, rules, most })
}

impl Induction<'_> {
    /// The pattern of the first iterations alone.
    pub(crate) fn first(&self) -> Option<InductionPattern> {
        Some(InductionPattern { times: SAMPLE, body: self.body(SAMPLE)? })
    }

    /// The pattern of all iterations that follow the rules, at most `most`.
    pub(crate) fn pattern(mut self, most: usize) -> Option<InductionPattern> {
        let most = most.min(self.most);
        if most <= SAMPLE {
            return None;
        }
        let times =
            matching_iterations(&mut self.rules, self.events, self.is_ignored, self.start, most);
        Some(InductionPattern { times, body: self.body(times)? })
    }

    /// The body, for this number of iterations.
    fn body(&self, times: usize) -> Option<Vec<BodyEvent>> {
        let rules = &self.rules;
        let constants = |rule: &EventRule| match rule.table.as_ref().map(|table| &table[..times]) {
            Some(table) if table.iter().any(|&bits| bits != rule.bits) => {
                OperandRule::Table(table.to_vec())
            }
            _ => OperandRule::Constant(rule.bits),
        };
        let mut body = Vec::with_capacity(rules.len());
        for rule in rules {
            if !matches!(rule.role, Role::Apply | Role::Guard) {
                body.push(BodyEvent::NoStep);
                continue;
            }
            let mut operand_rules = SmallVec::new();
            for operand_rule in &rule.operand_rules {
                operand_rules.push(match operand_rule {
                    OperandRule::Constant(_) | OperandRule::Table(_) => constants(rule),
                    &OperandRule::Body { at, distance, .. } if rules[at].role == Role::Constant => {
                        if distance > 0 {
                            return None;
                        }
                        constants(&rules[at])
                    }
                    &OperandRule::Body { at, .. } if !rules[at].is_step() => return None,
                    OperandRule::Event { .. } | OperandRule::Body { .. } => operand_rule.clone(),
                });
            }
            // The exponent of an integer power is part of the operation.
            if rule.kind.op == Op::Powi && !matches!(operand_rules[1], OperandRule::Constant(_)) {
                return None;
            }
            let outcome = (rule.role == Role::Guard).then_some(rule.holds);
            body.push(BodyEvent::Step { op: rule.kind.op, outcome, operand_rules });
        }
        Some(body)
    }
}

impl EventRule {
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
                step.first == self.next[0] && self.constant(step.payload.bits(), times)
            }
            Form::ConstantFirst => {
                step.first == self.next[1] && self.constant(step.payload.bits(), times)
            }
        };
        for (next, stride) in self.next.iter_mut().zip(self.stride) {
            *next = next.wrapping_add(stride);
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
fn matching_iterations(
    rules: &mut [EventRule],
    events: &Events,
    is_ignored: &dyn Fn(usize) -> bool,
    start: usize,
    most: usize,
) -> usize {
    let period = rules.len();
    for times in SAMPLE..most {
        let from = start + times * period;
        let steps = &events.steps[from..from + period];
        let values = &events.values[from..from + period];
        for (at, ((rule, step), &value)) in rules.iter_mut().zip(steps).zip(values).enumerate() {
            let is_mark =
                || rule.role == Role::Enter && is_mark(step.kind.role) && is_ignored(from + at);
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
fn event_rule(
    events: &Events,
    is_ignored: &dyn Fn(usize) -> bool,
    start: usize,
    period: usize,
    at: usize,
) -> Option<EventRule> {
    let all = || (0..SAMPLE).map(|times| events.at(at + times * period));
    let last = events.at(at + (SAMPLE - 1) * period);
    let (role, kind, holds) = (last.role(), last.step.kind, last.value() != 0.0);
    let (next, stride, bits, table, operand_rules) = ([0; 3], [0; 3], 0, None, SmallVec::new());
    let mut rule = EventRule { role, kind, holds, next, stride, bits, table, operand_rules };
    if is_mark(role) {
        rule.role = Role::Enter;
        let pass = |times| is_mark(events.at(at + times * period).role());
        let all = (0..SAMPLE).all(|times| pass(times) && is_ignored(at + times * period));
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
        let mut operands = [Operand::Constant(0.0); SAMPLE];
        for (operand, event) in operands.iter_mut().zip(all()) {
            *operand = event.operands().nth(index)?;
        }
        let operand_rule = operand_rule(&operands, start, period)?;
        match operand_rule {
            OperandRule::Event { first, stride } => {
                rule.next[index] = (i64::from(first) + stride * SAMPLE as i64) as u32;
                rule.stride[index] = stride as u32;
            }
            OperandRule::Body { at, distance, .. } => {
                rule.next[index] = (start + at + (SAMPLE - distance) * period) as u32;
                rule.stride[index] = period as u32;
            }
            OperandRule::Constant(bits) => {
                // One operand at most is a constant; its values may differ.
                rule.bits = bits;
                for (times, operand) in operands.iter().enumerate().skip(1) {
                    if let Operand::Constant(value) = operand {
                        rule.constant(value.to_bits(), times);
                    }
                }
            }
            OperandRule::Table(_) => return None,
        }
        rule.operand_rules.push(operand_rule);
    }
    Some(rule)
}

/// Infers the rule of an operand from the first iterations. Constants may differ.
fn operand_rule(operands: &[Operand], start: usize, period: usize) -> Option<OperandRule> {
    let inside = |operand: &Operand| match *operand {
        Operand::Event(event) if event as usize >= start => Some(event as usize - start),
        _ => None,
    };
    if let Some(distance) = operands.iter().position(|operand| inside(operand).is_some()) {
        let first = inside(&operands[distance])?;
        let (at, mut rest) = (first, operands[distance..].iter().enumerate());
        // It comes from the body as soon as an earlier iteration exists.
        let fits = at < period
            && distance <= MAX_DISTANCE
            && rest.all(|(times, operand)| inside(operand) == Some(at + times * period));
        let initial = SmallVec::from_slice(&operands[..distance]);
        return fits.then_some(OperandRule::Body { at, distance, initial });
    }
    let (&first, &second) = (operands.first()?, operands.get(1)?);
    match (first, second) {
        (Operand::Constant(first), _) => {
            let all = operands.iter().all(|operand| matches!(operand, Operand::Constant(_)));
            all.then_some(OperandRule::Constant(first.to_bits()))
        }
        (Operand::Event(first), Operand::Event(second)) => {
            let stride = i64::from(second) - i64::from(first);
            let expected = |times: usize| i64::from(first) + stride * times as i64;
            let mut all = operands.iter().enumerate();
            let fits = |(times, operand): (usize, &Operand)| matches!(*operand, Operand::Event(event) if i64::from(event) == expected(times));
            all.all(fits).then_some(OperandRule::Event { first, stride })
        }
        (Operand::Event(_), Operand::Constant(_)) => None,
    }
}
