//! Finds loops in a list of steps by their forms: what repeats is an iteration.
//!
//! Shorter periods come first, and a loop becomes one token, so that outer loops are found around
//! inner ones. All sequences of tokens that are equal to the body of a loop are iterations of it,
//! also where there is only one: the inner loop of a triangle has one iteration in the first row.
//!
//! ```text
//! d msd msmsd msmsmsd      the steps of rows of a triangle
//! d Md  Md    Md           M: loops with 1, 2 and 3 iterations of ms
//! d R                      R: a loop with 3 iterations of Md
//! ```

use core::cmp::Reverse;
use core::ops::Range;

use hashbrown::{HashMap, HashSet};
use smallvec::SmallVec;

use super::operands::Source;
use super::recording::Recording;
use super::split::{Piece, Rows, Splitting, rows};
use super::tree::MOST_STATEMENTS;
use crate::entity::Entity;
use crate::loops::reroll::{PeriodicRun, RerollLimits, TemplateId, runs};

/// The form of a step, or a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Key {
    Form(u32),
    Loop(u32),
}

impl Key {
    /// A number for each key: forms first.
    fn number(self, recording: &Recording<'_>) -> usize {
        match self {
            Key::Form(form) => form as usize,
            Key::Loop(number) => recording.forms.len() + number as usize,
        }
    }
}

/// A step, or an execution of a loop.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token {
    pub(super) key: Key,
    /// The first of its steps.
    pub(super) first: u32,
    /// The number of an execution of a loop.
    pub(super) execution: u32,
}

/// The loops of a recording.
pub(super) struct Parse {
    /// The whole recording.
    pub(super) tokens: Vec<Token>,
    /// The body of each loop.
    pub(super) bodies: Vec<Vec<Key>>,
    pub(super) executions: Vec<Execution>,
    splitting: Splitting,
    /// True if iterations were peeled, or rows split in two.
    pub(super) is_split: bool,
    /// The loops over the rests of rows, by the loops over the rows.
    rests: HashMap<u32, u32>,
}

/// An execution of a loop.
#[derive(Debug)]
pub(super) struct Execution {
    /// The tokens of all iterations but those in gaps.
    pub(super) tokens: Vec<Token>,
    /// The gaps between its iterations.
    pub(super) gaps: Gaps,
    /// The number of iterations, also of those in gaps.
    pub(super) times: u32,
}

/// The gaps between the iterations of an execution of a loop, in order.
pub(super) type Gaps = SmallVec<[LoopGap; 1]>;

/// A gap between iterations of an execution of a loop.
#[derive(Clone, Copy, Debug)]
pub(super) struct LoopGap {
    /// Its number.
    pub(super) gap: u32,
    /// The number of iterations that one of the trace loop is.
    pub(super) by: u32,
    /// The first step after it.
    at: u32,
    /// The number of iterations in this gap and the ones before it.
    total: u32,
}

/// The number of iterations in those of `gaps` that are before `step`.
pub(super) fn iterations_in_gaps(gaps: &Gaps, step: u32) -> u32 {
    let before = gaps.partition_point(|gap| gap.at <= step);
    before.checked_sub(1).map_or(0, |last| gaps[last].total)
}

/// The largest depth of nested loops.
const MOST_LEVELS: usize = 24;
/// The least number of iterations by which a loop is found.
const LEAST_ITERATIONS: u32 = 3;
/// The number of earlier occurrences to which a token is compared: it may be several times in a body.
const OCCURRENCES: u32 = 4;

/// Finds the loops of `recording`. `None` if a gap does not lie between iterations of one loop.
pub(super) fn parse(recording: &Recording<'_>, splitting: Splitting) -> Option<Parse> {
    let token = |(step, &form): (usize, &u32)| Token {
        key: Key::Form(form),
        first: step as u32,
        execution: u32::MAX,
    };
    let tokens = recording.form_of_step.iter().enumerate().map(token).collect();
    let (bodies, executions, rests) = Default::default();
    let mut parse = Parse { tokens, bodies, executions, splitting, is_split: false, rests };
    for _ in 0..MOST_LEVELS {
        let bodies = parse.next_bodies(recording);
        if bodies.is_empty() {
            break;
        }
        parse.collapse(recording, &bodies)?;
    }
    let in_loops = parse.executions.iter().map(|execution| execution.gaps.len()).sum::<usize>();
    (in_loops == recording.gaps.len()).then_some(parse)
}

impl Parse {
    /// The bodies of the loops with the shortest period that has any: short runs that read scattered
    /// elements stay straight-line code.
    fn next_bodies(&self, recording: &Recording<'_>) -> Vec<Vec<Key>> {
        let id = |token: &Token| TemplateId::from_index(token.key.number(recording));
        let ids: Vec<TemplateId> = self.tokens.iter().map(id).collect();
        let limits = RerollLimits {
            iterations: LEAST_ITERATIONS,
            occurrences: OCCURRENCES,
            ..RerollLimits::DEFAULT
        };
        let runs = runs(&ids, &limits);
        for runs in runs.chunk_by(|run, next| run.period == next.period) {
            let period = runs[0].period;
            if period > MOST_STATEMENTS {
                break;
            }
            let mut loops: HashMap<Vec<Key>, Vec<&PeriodicRun>> = HashMap::new();
            for run in runs {
                let keys = least_rotation(&self.keys(run.start, period));
                loops.entry(keys).or_default().push(run);
            }
            let mut bodies: Vec<(usize, Vec<Key>)> = Vec::new();
            for runs in loops.into_values() {
                let length = |run: &PeriodicRun| run.end - run.start;
                // Runs of several lengths are rows of a triangle, which may read packed arrays.
                let is_same = runs.iter().all(|run| length(run) == length(runs[0]));
                let scattered = runs.iter().filter(|run| self.is_scattered(recording, run)).count();
                if is_same && 2 * scattered > runs.len() {
                    continue;
                }
                // Runs of one loop may begin with any of its steps: the longest decides.
                let longest = runs.iter().max_by_key(|run| (length(run), Reverse(run.start)));
                let Some(run) = longest else { continue };
                let start = run.start + self.rotation(recording, run.start, run.end, period);
                bodies.push((run.start, self.keys(start, period)));
            }
            if !bodies.is_empty() {
                bodies.sort_by_key(|body| body.0);
                return bodies.into_iter().map(|body| body.1).collect();
            }
        }
        Vec::new()
    }

    /// The keys of so many tokens.
    fn keys(&self, start: usize, count: usize) -> Vec<Key> {
        self.tokens[start..start + count].iter().map(|token| token.key).collect()
    }

    /// Tests whether a few iterations read values from before them that lie anywhere, such as the
    /// neighbours in a grid that a sum adds.
    fn is_scattered(&self, recording: &Recording<'_>, run: &PeriodicRun) -> bool {
        const MOST_ITERATIONS: usize = 8;
        let tokens = &self.tokens[run.start..run.end];
        if tokens.len() / run.period > MOST_ITERATIONS {
            return false;
        }
        let element = |token: &Token, slot: usize| match recording.operands(token.first)[slot] {
            Source::Step(step) if step < tokens[0].first => {
                let form = recording.form_of_step[recording.representative(step) as usize];
                Some((form, i64::from(recording.ordinals[step as usize])))
            }
            _ => None,
        };
        let is_scattered = |at: usize, slot: usize| {
            let elements =
                tokens[at..].iter().step_by(run.period).map(|token| element(token, slot));
            let Some(elements) = elements.collect::<Option<Vec<_>>>() else { return false };
            let change =
                |pair: &[(u32, i64)]| (pair[0].0 == pair[1].0).then(|| pair[1].1 - pair[0].1);
            let mut changes = elements.windows(2).filter_map(change);
            changes.next().is_some_and(|first| changes.any(|change| change != first))
        };
        let is_form = |&at: &usize| matches!(tokens[at].key, Key::Form(_));
        let slots =
            |at: usize| (0..recording.operands(tokens[at].first).len()).map(move |slot| (at, slot));
        (0..run.period).filter(is_form).flat_map(slots).any(|(at, slot)| is_scattered(at, slot))
    }

    /// The first step of an iteration: that for which iterations read least from the ones before.
    fn rotation(
        &self,
        recording: &Recording<'_>,
        start: usize,
        end: usize,
        period: usize,
    ) -> usize {
        let middle = start + ((end - start) / period / 2).max(1) * period;
        // The last use of each value in less than two iterations.
        let mut uses: HashMap<u32, (usize, usize)> = HashMap::new();
        for at in middle..middle + period {
            let until = self.tokens.get(at + 1).map_or(recording.len() as u32, |t| t.first);
            for step in self.tokens[at].first..until {
                for &operand in recording.operands(step) {
                    let Source::Step(producer) = operand else { continue };
                    if producer as usize >= recording.len() {
                        continue;
                    }
                    let token = self.tokens.partition_point(|token| token.first <= producer) - 1;
                    if (start..at).contains(&token) && at - token < 2 * period {
                        uses.insert(producer, (token, at));
                    }
                }
            }
        }
        // The number of values from a step before to one after the beginning of an iteration. Until
        // the end the changes from one place to the next.
        let mut crossing = vec![0i64; 3 * period + 1];
        for &(token, at) in uses.values() {
            let first = (token + 1 + period - start % period) % period;
            crossing[first] += 1;
            crossing[first + at - token] -= 1;
        }
        for at in 1..crossing.len() {
            crossing[at] += crossing[at - 1];
        }
        let crossing = |at: usize| crossing[at..].iter().step_by(period).take(3).sum::<i64>();
        let form = |mut token: Token| loop {
            match token.key {
                Key::Form(form) => return form,
                Key::Loop(_) => token = self.executions[token.execution as usize].tokens[0],
            }
        };
        let place = |at: usize| recording.place(form(self.tokens[start + at]));
        (0..period).min_by_key(|&at| (crossing(at), place(at), at)).unwrap_or(0)
    }

    /// Makes loops of all sequences of iterations with these bodies.
    fn collapse(&mut self, recording: &Recording<'_>, bodies: &[Vec<Key>]) -> Option<()> {
        (self.bodies.len() + bodies.len() <= MOST_STATEMENTS).then_some(())?;
        let mut by_first = vec![Vec::new(); recording.forms.len() + self.bodies.len()];
        for body in bodies {
            by_first[body[0].number(recording)].push(self.bodies.len() as u32);
            self.bodies.push(body.clone());
        }
        let tokens = core::mem::take(&mut self.tokens);
        let mut found: Vec<(usize, u32, Rows)> = Vec::new();
        let mut at = 0;
        while at < tokens.len() {
            let candidates = by_first[tokens[at].key.number(recording)].iter();
            let counts = candidates.map(|&number| (number, self.iterations(number, &tokens[at..])));
            let Some((number, count)) = counts.max_by_key(|&(_, count)| count).filter(|f| f.1 > 0)
            else {
                at += 1;
                continue;
            };
            let period = self.bodies[number as usize].len();
            let whole = &tokens[at..at + count * period];
            found.push((at, number, rows(recording, self, whole, period)));
            at += whole.len();
        }
        let with_rests = self.loops_with_rests(&found);
        let peels = self.splitting == Splitting::Ends;
        let mut next = 0;
        for (at, number, rows) in found {
            self.tokens.extend_from_slice(&tokens[next..at]);
            next = at;
            let period = self.bodies[number as usize].len();
            for (piece, kind) in rows.pieces(with_rests.contains(&number), peels) {
                let piece = &tokens[at + piece.start * period..at + piece.end * period];
                next += piece.len();
                let is_finished = self.splitting != Splitting::Rows
                    && tokens
                        .get(next)
                        .is_some_and(|&after| self.is_finished_by(recording, piece, period, after));
                let peeled = match kind {
                    Piece::Peeled => piece.len(),
                    _ if is_finished => period,
                    _ => 0,
                };
                let (piece, peeled) = piece.split_at(piece.len() - peeled);
                if !piece.is_empty() {
                    let number = if kind == Piece::Rest { self.rest_of(number)? } else { number };
                    let execution = self.executions.len() as u32;
                    let (key, first) = (Key::Loop(number), piece[0].first);
                    self.tokens.push(Token { key, first, execution });
                    let gaps = self.gaps(recording, piece, period)?;
                    let in_gaps = iterations_in_gaps(&gaps, u32::MAX);
                    let times = (piece.len() / period) as u32 + in_gaps;
                    self.executions.push(Execution { tokens: piece.to_vec(), gaps, times });
                }
                self.is_split |= !peeled.is_empty();
                self.tokens.extend_from_slice(peeled);
            }
        }
        self.tokens.extend_from_slice(&tokens[next..]);
        Some(())
    }

    /// Tests whether the step after a loop continues its last iteration, which reads nothing of the one
    /// before: the diagonal of a matrix that is computed row by row.
    fn is_finished_by(
        &self,
        recording: &Recording<'_>,
        piece: &[Token],
        period: usize,
        after: Token,
    ) -> bool {
        let reads = |step: u32, range: Range<u32>| {
            let is_inside = |source: &Source| match source {
                Source::Step(step) => range.contains(step),
                Source::Leaf(_) => false,
            };
            recording.operands(step).iter().any(is_inside)
        };
        let start = piece.len() - period;
        let last = piece[start].first..after.first;
        let before = start.checked_sub(period).map_or(last.start, |before| piece[before].first);
        matches!(after.key, Key::Form(_))
            && reads(after.first, last.clone())
            && !last.clone().any(|step| reads(step, before..last.start))
    }

    /// The loops of `found` whose rows have rests: from row to row, or from one execution to the next,
    /// both pieces get longer or shorter.
    fn loops_with_rests(&self, found: &[(usize, u32, Rows)]) -> HashSet<u32> {
        let mut with_rests = HashSet::new();
        if self.splitting == Splitting::Rows {
            return with_rests;
        }
        let mut breaks: HashMap<u32, (i64, i64)> = HashMap::new();
        for (_, number, rows) in found {
            let changes = rows.only_break().is_some_and(|(before, after)| {
                let known = breaks.entry(*number).or_insert((before, after));
                known.0 != before && known.1 != after
            });
            if changes || rows.has_diagonal() {
                with_rests.insert(*number);
            }
        }
        with_rests
    }

    /// The loop over the rests of rows of loop `number`.
    fn rest_of(&mut self, number: u32) -> Option<u32> {
        if let Some(&rest) = self.rests.get(&number) {
            return Some(rest);
        }
        (self.bodies.len() < MOST_STATEMENTS).then_some(())?;
        self.is_split = true;
        let rest = self.bodies.len() as u32;
        self.bodies.push(self.bodies[number as usize].clone());
        self.rests.insert(number, rest);
        Some(rest)
    }

    /// The gaps between `tokens`, of iterations with `period` tokens; `None` if one is not for a
    /// whole number of iterations.
    pub(super) fn gaps(
        &self,
        recording: &Recording<'_>,
        tokens: &[Token],
        period: usize,
    ) -> Option<Gaps> {
        let mut gaps = Gaps::new();
        let next = recording.gaps.partition_point(|gap| gap.at <= tokens[0].first);
        for (gap, number) in recording.gaps[next..].iter().zip(next as u32..) {
            if gap.at >= self.end(tokens[tokens.len() - 1]) {
                break;
            }
            let at = tokens.partition_point(|token| token.first <= gap.at) - 1;
            if tokens[at].first < gap.at {
                // It is in an inner loop.
                continue;
            }
            let before = gap.at - gap.period;
            let start = tokens.binary_search_by_key(&before, |token| token.first).ok()?;
            ((at - start) % period == 0).then_some(())?;
            let by = ((at - start) / period) as u32;
            let total = iterations_in_gaps(&gaps, u32::MAX) + gap.times * by;
            gaps.push(LoopGap { gap: number, by, at: gap.at, total });
        }
        Some(gaps)
    }

    /// The step after `token`.
    fn end(&self, mut token: Token) -> u32 {
        while let Key::Loop(_) = token.key {
            let tokens = &self.executions[token.execution as usize].tokens;
            token = tokens[tokens.len() - 1];
        }
        token.first + 1
    }

    /// The number of iterations of this loop at the beginning of `tokens`.
    fn iterations(&self, number: u32, tokens: &[Token]) -> usize {
        let body = &self.bodies[number as usize];
        let is_body = |tokens: &[Token]| {
            tokens.len() == body.len()
                && tokens.iter().zip(body).all(|(token, key)| token.key == *key)
        };
        tokens.chunks(body.len()).take_while(|tokens| is_body(tokens)).count()
    }
}

/// The least rotation of `keys`.
fn least_rotation(keys: &[Key]) -> Vec<Key> {
    let rotated = |at: usize| keys[at..].iter().chain(&keys[..at]);
    let least = (0..keys.len()).min_by(|&a, &b| rotated(a).cmp(rotated(b))).unwrap_or(0);
    rotated(least).copied().collect()
}
