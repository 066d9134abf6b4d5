//! What an affine recurrence comes to after a number of steps.

use std::collections::BTreeSet;

use super::binary;
use super::doubling::{derived_by, digits};
use super::emit::Emitter;
use super::form::{Affine, Base, CHANGES, Coefficient, Forms};
use super::inner;
use super::jet::{Start, steps_of_digit};
use super::single::changed;
use crate::op::Op;
use crate::phi::double::Double;
use crate::phi::pair::{Pair, Pairs};
use crate::ssa::Node;

/// A linear map of columns to rows; what is missing is zero by structure.
pub(super) type Matrix<T> = Vec<Vec<Option<T>>>;

/// How often the last power is applied at least: so it is in the range of numbers
/// if the result is.
pub(super) const LAST: usize = 2;
/// Constants nearer to zero than this may have lost digits to underflow.
const LEAST: f64 = 1e-270;

/// Powers larger than this are not multiplied by the start of a single number: at a
/// fixed point all digits of the product would cancel.
const CANCELS: f64 = 1e6;

/// So many products are computed at most where coefficients change: some tenths
/// of a second.
const MOST_PRODUCTS: usize = 1 << 24;

/// Straight code of a closed form has no more steps: it takes time to compile, and room.
/// Beyond that a loop goes through the digits of the number of steps.
const STRAIGHT: usize = 1 << 17;
/// The body of that loop has no more steps.
const BODY: usize = 1 << 15;
const MADE: &str = "its coefficients are made of too many values";
pub(super) const COSTS: &str = "its closed form would cost more than the loop";
const OVERFLOWS: &str = "the powers of its coefficients are not finite";
const UNDERFLOWS: &str = "the products of its coefficients underflow";

/// A system of recurrences: its next state as a function of its state.
pub(super) struct System {
    /// Its states, by their numbers among those of the loop.
    pub(super) states: Vec<usize>,
    pub(super) rows: Vec<Affine>,
    pub(super) firsts: Vec<Node>,
}

/// Which states are wanted, and what they may cost.
pub(super) struct Wanted<'a> {
    pub(super) states: &'a BTreeSet<usize>,
    /// Closed forms with derivatives of twice the precision have no more steps than this.
    pub(super) most: usize,
}

impl Wanted<'_> {
    /// Whether so many binary digits of a number of steps of `system` may be not too much.
    pub(super) fn allows(&self, system: &System, digits: u32) -> bool {
        // What is zero in a matrix costs nothing.
        digits as usize * self.steps_of_digit(system) <= 4 * self.most
    }

    /// Whether so many digits are not too much for a loop that goes through them.
    fn allows_loop(&self, system: &System, digits: u32) -> bool {
        let steps = self.steps_of_digit(system);
        steps <= BODY && digits as usize * steps <= self.most
    }

    /// About how many steps a digit costs at most.
    fn steps_of_digit(&self, system: &System) -> usize {
        let is_wanted = |state: &&usize| self.states.contains(*state);
        let wanted = system.states.iter().filter(is_wanted).count();
        let mut bases = system.rows.iter().flat_map(|row| row.keys());
        let has_offset = bases.any(|base| matches!(base, Base::Node(_)));
        steps_of_digit(system.states.len(), wanted, has_offset)
    }
}

/// The states after `times` steps, at most those of the forms, one node for each. Of
/// those that are not `wanted` it may be any.
pub(super) fn advanced(
    forms: &mut Forms<'_, '_>,
    system: &System,
    times: usize,
    wanted: &Wanted<'_>,
) -> Result<Vec<Node>, &'static str> {
    if times == 0 {
        return Ok(system.firsts.clone());
    }
    let known = numeric(forms, system, times)?;
    if known.is_none() {
        forms.require_moderate(system);
    }
    let nodes = match known {
        Some(nodes) => nodes,
        // Few steps are made one by one.
        None if forms.is_inner || times < 2 * LAST => match inner::changed(forms, system, times) {
            Some(nodes) => nodes,
            None => match derived(forms.emitter, system, times, wanted) {
                Ok(nodes) => nodes,
                Err(_) => doubled(forms.emitter, system, times),
            },
        },
        None => match changed(forms, system, times) {
            Some(nodes) => nodes?,
            None => derived(forms.emitter, system, times, wanted)?,
        },
    };
    // Powers may overflow where the loop does not, and what comes of that must decide
    // nothing: such calls are the tape's.
    nodes.iter().for_each(|&node| forms.emitter.require_finite(node));
    if forms.emitter.overflows { Err(OVERFLOWS) } else { Ok(nodes) }
}

/// The nodes, other than states, that the rows refer to.
fn bases(system: &System) -> Vec<Node> {
    let all = system.rows.iter().flat_map(|row| row.keys());
    let nodes = all.filter_map(|base| match base {
        Base::Node(node) => Some(*node),
        Base::State(_) => None,
    });
    nodes.collect::<BTreeSet<Node>>().into_iter().collect()
}

fn column(system: &System, bases: &[Node], base: Base) -> Option<usize> {
    match base {
        Base::State(state) => system.states.iter().position(|&other| other == state),
        Base::Node(node) => {
            bases.iter().position(|&other| other == node).map(|at| at + system.states.len())
        }
    }
}

/// Where a coefficient comes from.
#[derive(Clone, Copy)]
enum Source<'a> {
    Number(Double),
    Table(&'a [Double]),
}

/// The result where all coefficients are known: they are composed here, and
/// what is left is one linear combination. `None` if not all are known.
fn numeric(
    forms: &mut Forms<'_, '_>,
    system: &System,
    times: usize,
) -> Result<Option<Vec<Node>>, &'static str> {
    let (size, bases) = (system.states.len(), bases(system));
    let width = size + bases.len();
    let mut changes = false;
    for coefficient in system.rows.iter().flat_map(|row| row.values()) {
        match coefficient {
            Coefficient::Table(_) => changes = true,
            Coefficient::Fixed(pair) if forms.number(*pair).is_some() => {}
            Coefficient::Fixed(_) => {
                let is_table = |c: &Coefficient| matches!(c, Coefficient::Table(_));
                let tables = system.rows.iter().flat_map(|row| row.values()).any(is_table);
                return if tables { Err(CHANGES) } else { Ok(None) };
            }
        }
    }
    if changes && times.saturating_mul(size * size * width) > MOST_PRODUCTS {
        return Err("it has too many iterations to be folded");
    }
    let mut sources: Vec<Vec<(usize, Source<'_>)>> = Vec::with_capacity(size);
    for row in &system.rows {
        let places = row.iter().filter_map(|(&base, coefficient)| {
            let source = match coefficient {
                Coefficient::Table(table) => Source::Table(table),
                Coefficient::Fixed(pair) => Source::Number(forms.number(*pair)?),
            };
            column(system, &bases, base).map(|column| (column, source))
        });
        sources.push(places.collect());
    }
    let step = |i: usize| -> Matrix<Double> {
        let row = |places: &Vec<(usize, Source<'_>)>| {
            let mut numbers = vec![None; width];
            for &(column, source) in places {
                numbers[column] = match source {
                    Source::Table(table) => table.get(i).copied(),
                    Source::Number(number) => Some(number),
                };
            }
            numbers
        };
        sources.iter().map(row).collect()
    };
    let compose = |a: &Matrix<Double>, b: &Matrix<Double>| composed(&mut Doubles, a, b);
    let total = if changes {
        let mut total = step(0);
        for i in 1..times {
            total = compose(&step(i), &total);
        }
        total
    } else {
        let (mut power, mut total, mut left) = (step(0), None, times);
        loop {
            if left & 1 == 1 {
                total = Some(match total {
                    Some(total) => compose(&power, &total),
                    None => power.clone(),
                });
            }
            left >>= 1;
            if left == 0 {
                break total.unwrap_or(power);
            }
            power = compose(&power, &power);
        }
    };
    if let ([row], false) = (&total[..], changes)
        && row[0].is_some_and(|power| power.high.abs() > CANCELS)
    {
        return Ok(None);
    }
    let numbers = || total.iter().flatten().flatten();
    if changes && !numbers().all(|number| number.is_finite()) {
        return Err(OVERFLOWS);
    }
    let in_range = |number: &Double| number.is_finite() && number.high.abs() >= LEAST;
    if !numbers().all(in_range) {
        if !changes {
            // In steps the numbers stay in range, if those of the loop do.
            return Ok(None);
        }
        let is_zero = |number: &Double| number.high == 0.0;
        let has_zero = |coefficient: &Coefficient| match coefficient {
            Coefficient::Table(table) => table.iter().any(is_zero),
            Coefficient::Fixed(_) => false,
        };
        let zeros = system.rows.iter().flat_map(|row| row.values()).any(has_zero);
        if !zeros || !numbers().all(|number| is_zero(number) || in_range(number)) {
            return Err(UNDERFLOWS);
        }
    }
    Ok(Some(combine(forms.emitter, system, &bases, &total)))
}

fn combine(
    emitter: &mut Emitter<'_>,
    system: &System,
    bases: &[Node],
    total: &Matrix<Double>,
) -> Vec<Node> {
    let columns: Vec<Node> = system.firsts.iter().chain(bases).copied().collect();
    let row = |row: &Vec<Option<Double>>| {
        let mut sum = None;
        for (number, &node) in row.iter().zip(&columns) {
            let Some(number) = number else { continue };
            let factor = emitter.number(number.high, number.low);
            let product = emitter.product(factor, node.into());
            sum = emitter.sum(sum, Some(product));
        }
        match sum {
            Some(sum) => emitter.rounded(sum),
            None => emitter.constant(0.0),
        }
    };
    total.iter().map(row).collect()
}

/// What the entries of a matrix are added and multiplied by.
trait Arithmetic<T> {
    fn added(&mut self, a: Option<T>, b: Option<T>) -> Option<T>;
    fn multiplied(&mut self, a: T, b: T) -> T;
    fn normalised(&mut self, a: T) -> T;
}

struct Doubles;

impl Arithmetic<Double> for Doubles {
    fn added(&mut self, a: Option<Double>, b: Option<Double>) -> Option<Double> {
        match (a, b) {
            (Some(a), Some(b)) => Some(a + b),
            (a, b) => a.or(b),
        }
    }

    fn multiplied(&mut self, a: Double, b: Double) -> Double {
        a * b
    }

    fn normalised(&mut self, a: Double) -> Double {
        a
    }
}

impl Arithmetic<Pair> for Emitter<'_> {
    fn added(&mut self, a: Option<Pair>, b: Option<Pair>) -> Option<Pair> {
        Pairs::sum(self, a, b)
    }

    fn multiplied(&mut self, a: Pair, b: Pair) -> Pair {
        Pairs::product(self, a, b)
    }

    fn normalised(&mut self, a: Pair) -> Pair {
        Pairs::normal(self, a)
    }
}

/// The map `a` after the map `b`; both leave the columns beyond the rows as they are.
fn composed<T: Copy>(
    arithmetic: &mut impl Arithmetic<T>,
    a: &Matrix<T>,
    b: &Matrix<T>,
) -> Matrix<T> {
    let size = a.len();
    let mut entry = |row: &Vec<Option<T>>, column: usize| {
        let mut entry = row[column].filter(|_| column >= size);
        for (factor, other) in row[..size].iter().zip(b) {
            if let (Some(factor), Some(other)) = (*factor, other[column]) {
                let product = arithmetic.multiplied(factor, other);
                entry = arithmetic.added(entry, Some(product));
            }
        }
        entry.map(|entry| arithmetic.normalised(entry))
    };
    a.iter().map(|row| (0..row.len()).map(|column| entry(row, column)).collect()).collect()
}

/// The result by powers that are squares of each other: the map after 1, 2, 4, …
/// steps.
fn doubled(emitter: &mut Emitter<'_>, system: &System, times: usize) -> Vec<Node> {
    let (mut map, columns) = one_step(emitter, system);
    let mut state = system.firsts.clone();
    let mut left = times;
    loop {
        let last = left < 2 * LAST;
        let repeat = if last { left } else { left & 1 };
        for _ in 0..repeat {
            state = applied(emitter, &map, &state, &columns);
        }
        if last {
            return state;
        }
        left >>= 1;
        map = squared(emitter, &map);
    }
}

/// The result of several numbers, with derivatives of twice the precision.
///
/// # Errors
///
/// Why not: mostly because it would cost too much.
fn derived(
    emitter: &mut Emitter<'_>,
    system: &System,
    times: usize,
    wanted: &Wanted<'_>,
) -> Result<Vec<Node>, &'static str> {
    let count = u32::try_from(times).map_err(|_| COSTS)?;
    if system.states.len() < 2 || !wanted.allows(system, times.ilog2()) {
        return Err(COSTS);
    }
    let before = emitter.items.len();
    let start = Start::of(emitter, system, wanted.states).ok_or(MADE)?;
    let begun = emitter.items.len();
    let straight = binary::after(emitter, &start, times, wanted.most.min(STRAIGHT));
    let nodes = match straight {
        Some(ends) => {
            let mut nodes = system.firsts.clone();
            ends.into_iter().for_each(|(number, node)| nodes[number] = node);
            nodes
        }
        None => {
            emitter.forget(begun);
            if !wanted.allows_loop(system, digits(count)) {
                emitter.forget(before);
                return Err(COSTS);
            }
            let number = emitter.constant(times as f64);
            derived_by(emitter, &start, &system.firsts, number, count)
        }
    };
    emitter.prune(before, &nodes);
    emitter.derived += emitter.items.len() - before;
    Ok(nodes)
}

/// The map of one step, and what its columns beyond the states belong to.
pub(super) fn one_step(emitter: &mut Emitter<'_>, system: &System) -> (Matrix<Pair>, Vec<Node>) {
    let size = system.states.len();
    let rows: Vec<_> = system.rows.iter().map(|row| linear_part(system, row)).collect();
    let offsets: Vec<_> = system.rows.iter().map(|row| offset(emitter, row)).collect();
    let with_offset: Vec<usize> = (0..size).filter(|&row| offsets[row].is_some()).collect();
    // One column for each offset if that costs nothing, so that the offsets are
    // no part of what is squared; otherwise one for all.
    let is_known = |pair: &Pair| emitter.graph.constant(pair.high).is_some();
    let apart = with_offset.len() <= 1 || rows.iter().flatten().flatten().all(is_known);
    let one: Pair = emitter.constant(1.0).into();
    let extra = if apart { with_offset.len() } else { 1 };
    let mut map: Matrix<Pair> = rows;
    for (row, entries) in map.iter_mut().enumerate() {
        let place = with_offset.iter().position(|&other| other == row);
        entries.extend((0..extra).map(|column| match apart {
            true => (place == Some(column)).then_some(one),
            false => offsets[row],
        }));
    }
    let columns: Vec<Node> = match apart {
        true => {
            let offsets = with_offset.iter().filter_map(|&row| offsets[row]);
            offsets.map(|offset| emitter.rounded(offset)).collect()
        }
        false => vec![one.high],
    };
    (map, columns)
}

/// The map of twice as many steps.
pub(super) fn squared(emitter: &mut Emitter<'_>, map: &Matrix<Pair>) -> Matrix<Pair> {
    match &map[..] {
        [row] => vec![squared_row(emitter, row)],
        _ => composed(emitter, map, map),
    }
}

/// The square of the map of a single number.
///
/// What is added to it is multiplied by 1 + a, 1 + a², 1 + a⁴, …: only in the
/// first of these can anything cancel, and no error but those of the powers of a
/// is multiplied by more than the number itself.
fn squared_row(emitter: &mut Emitter<'_>, row: &[Option<Pair>]) -> Vec<Option<Pair>> {
    let Some(factor) = row[0] else { return row.to_vec() };
    let product = emitter.product(factor, factor);
    let square = emitter.normal(product);
    let added = row[1..].iter().map(|added| {
        added.map(|added| dot(emitter, &[(factor, added.high)], Some(added.high)).into())
    });
    let added: Vec<Option<Pair>> = added.collect();
    core::iter::once(Some(square)).chain(added).collect()
}

/// The sum of products and `addend`, by ordinary rounding; that of the pairs
/// does not count.
pub(super) fn dot(emitter: &mut Emitter<'_>, terms: &[(Pair, Node)], addend: Option<Node>) -> Node {
    let one = emitter.constant(1.0);
    let mut sum = addend;
    let lows = terms.iter().filter_map(|&(factor, x)| factor.low.map(|low| (low, x)));
    let highs = terms.iter().map(|&(factor, x)| (factor.high, x));
    let all: Vec<(Node, Node)> = lows.chain(highs).collect();
    for (factor, x) in all {
        sum = Some(match sum {
            None => emitter.apply(Op::Mul, &[factor, x]),
            Some(sum) if factor == one => emitter.apply(Op::Add, &[x, sum]),
            Some(sum) if x == one => emitter.apply(Op::Add, &[factor, sum]),
            Some(sum) => emitter.apply(Op::MulAdd, &[factor, x, sum]),
        });
    }
    sum.unwrap_or_else(|| emitter.constant(0.0))
}

pub(super) fn linear_part(system: &System, row: &Affine) -> Vec<Option<Pair>> {
    let pair = |&state: &usize| match row.get(&Base::State(state)) {
        Some(Coefficient::Fixed(pair)) => Some(*pair),
        _ => None,
    };
    system.states.iter().map(pair).collect()
}

pub(super) fn offset(emitter: &mut Emitter<'_>, row: &Affine) -> Option<Pair> {
    let mut sum = None;
    for (base, coefficient) in row {
        if let (Base::Node(node), Coefficient::Fixed(pair)) = (base, coefficient) {
            let product = emitter.product(*pair, (*node).into());
            sum = emitter.sum(sum, Some(product));
        }
    }
    sum
}

/// The state after the steps that `map` stands for. There are few such steps, so
/// that they are rounded as the loop rounds its own does no harm.
pub(super) fn applied(
    emitter: &mut Emitter<'_>,
    map: &Matrix<Pair>,
    state: &[Node],
    columns: &[Node],
) -> Vec<Node> {
    let row = |row: &Vec<Option<Pair>>| {
        // What is added comes first: it does not wait for the state.
        let (own, added) = row.split_at(state.len());
        let terms = added.iter().zip(columns).chain(own.iter().zip(state));
        let terms: Vec<(Pair, Node)> =
            terms.filter_map(|(factor, &x)| factor.map(|factor| (factor, x))).collect();
        dot(emitter, &terms, None)
    };
    map.iter().map(row).collect()
}
