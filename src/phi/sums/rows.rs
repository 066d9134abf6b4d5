//! What a loop adds up as rows of coefficients: lines, or polynomials, in its variables,
//! computed again in loops over the data.

use std::collections::BTreeSet;

use super::polynomial::Basis;
use super::steps::{Coefficient, Place, Steps};
use super::terms::{Step, Terms};
use crate::op::Op;
use crate::phi::draft::{Body, Draft};
use crate::phi::pair::{Pair, Pairs};
use crate::ssa::{Def, Node, Region};

/// What is added in each iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// a·u + b·v + … + c
    Line,
    /// (a·u + b·v + … + c)², times positive numbers
    Square,
    /// any other polynomial
    Polynomial,
}

/// The terms of a loop as lines in its variables.
pub(super) struct Lines {
    pub(super) terms: Terms,
    pub(super) kind: Kind,
    /// The steps that are lines, or of which squares or products are added, with their
    /// factors.
    lines: Vec<(f64, usize)>,
}

/// A line: its factor, its value at the pivot, and its slopes.
pub(super) struct Row {
    pub(super) factor: f64,
    pub(super) value: Coefficient,
    pub(super) slopes: Vec<Coefficient>,
}

impl Lines {
    /// The lines of which `terms` are made.
    pub(super) fn of(mut terms: Terms) -> Lines {
        if terms.degree() <= 1 {
            let lines = terms.added.clone();
            return Lines { terms, kind: Kind::Line, lines };
        }
        let (added, size) = (terms.added.clone(), terms.steps.len());
        let squares = added.into_iter().map(|(sign, step)| square(&mut terms, step, sign));
        if let Some(lines) = squares.collect() {
            return Lines { terms, kind: Kind::Square, lines };
        }
        terms.steps.truncate(size);
        terms.degrees.truncate(size);
        let lines = factors(&terms).into_iter().map(|step| (1.0, step)).collect();
        Lines { terms, kind: Kind::Polynomial, lines }
    }

    /// Whether there are lines.
    pub(super) fn has_lines(&self) -> bool {
        !self.lines.is_empty()
    }

    /// The steps that are lines, or of which squares or products are added.
    pub(super) fn steps(&self) -> impl Iterator<Item = usize> + '_ {
        self.lines.iter().map(|&(_, step)| step)
    }

    /// The variables of each line.
    pub(super) fn variables(&self) -> Vec<BTreeSet<usize>> {
        let variables = self.variables_of_steps();
        self.lines.iter().map(|&(_, step)| variables[step].clone()).collect()
    }

    /// The variables of each step.
    pub(super) fn variables_of_steps(&self) -> Vec<BTreeSet<usize>> {
        let mut variables: Vec<BTreeSet<usize>> = Vec::new();
        for step in &self.terms.steps {
            variables.push(match step {
                Step::Variable(number) => BTreeSet::from([*number]),
                Step::Apply(op, args) => {
                    args[..op.arity()].iter().flat_map(|&arg| variables[arg].clone()).collect()
                }
                _ => BTreeSet::new(),
            });
        }
        variables
    }

    /// Whether one of the lines is one in several variables.
    pub(super) fn mixes(&self) -> bool {
        self.variables().iter().any(|variables| variables.len() > 1)
    }

    /// Writes the rows of one iteration into the body of a loop over the data, which
    /// stands for `region`; what is subtracted from the variables is `pivot`. With
    /// `precise` they are pairs: what cancels in them does no harm.
    pub(super) fn rows(
        &self,
        draft: &mut Draft,
        body: &Body,
        region: Region,
        pivot: Option<&[Node]>,
        precise: bool,
    ) -> Vec<Row> {
        let size = self.terms.variables.len();
        let one = draft.constant(1.0);
        let unit = |number| move |other| (other == number).then(|| Pair::from(one));
        let units: Vec<Vec<Coefficient>> =
            (0..size).map(|number| (0..size).map(unit(number)).collect()).collect();
        let steps = Steps { draft, place: Place::In(body) };
        let (terms, differences, basis) = (&self.terms, units.as_slice(), None);
        let mut writer = Writer { steps, body, region, terms, pivot, differences, basis, precise };
        let results = writer.results(1);
        let row = |writer: &mut Writer<'_>, factor: f64, mut line: Vec<Coefficient>| {
            line.resize(1 + size, None);
            let value = writer.steps.once(line[0]);
            Row { factor, value, slopes: line[1..].to_vec() }
        };
        match self.kind {
            Kind::Square | Kind::Polynomial => {
                let rows = self.lines.iter();
                let rows =
                    rows.map(|&(factor, step)| row(&mut writer, factor, results[step].clone()));
                rows.collect()
            }
            Kind::Line => {
                let mut total: Vec<Coefficient> = vec![None; 1 + size];
                for &(sign, step) in &self.lines {
                    for (sum, &part) in total.iter_mut().zip(&results[step]) {
                        *sum = match sign < 0.0 {
                            true => writer.steps.minus(*sum, part, precise),
                            false => writer.steps.plus(*sum, part, precise),
                        };
                    }
                }
                vec![Row { factor: 1.0, value: total[0], slopes: total[1..].to_vec() }]
            }
        }
    }

    /// Writes what does not depend on the variables into the body of a loop over the data,
    /// which stands for `region`: the result of each such step.
    pub(super) fn known(
        &self,
        draft: &mut Draft,
        body: &Body,
        region: Region,
    ) -> Vec<Option<Node>> {
        let steps = Steps { draft, place: Place::In(body) };
        let (terms, differences, basis, precise) = (&self.terms, &[], None, false);
        let pivot = None;
        let mut writer = Writer { steps, body, region, terms, pivot, differences, basis, precise };
        let results = writer.results(0).into_iter();
        results.map(|result| Some(result.first().copied()??.high)).collect()
    }

    /// Writes the coefficients of what one iteration adds into the body of a loop over the
    /// data, which stands for `region`: those of a polynomial in coordinates, of which the
    /// differences of the variables from `pivot` are linear forms.
    pub(super) fn coefficients(
        &self,
        draft: &mut Draft,
        body: &Body,
        region: Region,
        pivot: &[Node],
        differences: &[Vec<Coefficient>],
        basis: &Basis,
    ) -> Vec<Coefficient> {
        let steps = Steps { draft, place: Place::In(body) };
        let (terms, precise) = (&self.terms, true);
        let (pivot, basis) = (Some(pivot), Some(basis));
        let mut writer = Writer { steps, body, region, terms, pivot, differences, basis, precise };
        let results = writer.results(1);
        let mut total: Vec<Coefficient> = Vec::new();
        for &(sign, step) in &self.terms.added {
            total.resize(total.len().max(results[step].len()), None);
            for (sum, &part) in total.iter_mut().zip(&results[step]) {
                *sum = match sign < 0.0 {
                    true => writer.steps.minus(*sum, part, precise),
                    false => writer.steps.plus(*sum, part, precise),
                };
            }
        }
        total
    }
}

/// The lines of which the terms are sums of products, but for what does not depend on the
/// data: a variable alone is a factor, wherever it is zero.
pub(super) fn factors(terms: &Terms) -> Vec<usize> {
    let is_line = |&step: &usize| terms.degrees[step] == 1;
    let mut used: BTreeSet<usize> =
        terms.added.iter().map(|&(_, step)| step).filter(is_line).collect();
    let mut has_data: Vec<bool> = Vec::new();
    for (step, &degree) in terms.steps.iter().zip(&terms.degrees) {
        has_data.push(match step {
            Step::Number(_) | Step::Variable(_) => false,
            Step::Apply(op, args) => {
                let args = &args[..op.arity()];
                if degree > 1 {
                    used.extend(args.iter().copied().filter(is_line));
                }
                args.iter().any(|&arg| has_data[arg])
            }
            Step::Element { .. } | Step::Iteration(_) | Step::Known(_) | Step::Read(_) => true,
        });
    }
    used.into_iter().filter(|&step| has_data[step]).collect()
}

/// The line of which `step` is the square, and the positive factor of that.
fn square(terms: &mut Terms, step: usize, factor: f64) -> Option<(f64, usize)> {
    // Steps that are shared are looked at for each of their uses.
    square_within(terms, step, factor, &mut 64)
}

/// The same, if no more than so many steps have to be looked at.
fn square_within(
    terms: &mut Terms,
    step: usize,
    factor: f64,
    steps: &mut u32,
) -> Option<(f64, usize)> {
    *steps = steps.checked_sub(1)?;
    let number = |step: usize| match terms.steps[step] {
        Step::Number(number) => Some(number),
        _ => None,
    };
    let Step::Apply(op, [a, b, c]) = terms.steps[step] else { return None };
    let degrees = [a, b].map(|step| terms.degrees[step]);
    let numbers = [number(a), number(b)];
    let found = match op {
        Op::Mul if a == b && degrees[0] == 1 => Some((factor, a)),
        Op::Powi if numbers[1] == Some(2.0) && degrees[0] == 1 => Some((factor, a)),
        Op::Mul if degrees[0] == 0 => square_within(terms, b, factor * numbers[0]?, steps),
        Op::Mul if degrees[1] == 0 => square_within(terms, a, factor * numbers[1]?, steps),
        Op::Div => square_within(terms, a, factor / numbers[1]?, steps),
        // Where nothing is added, that is the square of nothing.
        Op::Select => {
            let sides = [b, c].map(|side| match number(side) {
                Some(0.0) => Some(None),
                _ => None,
            });
            let [then, otherwise] = [(b, sides[0]), (c, sides[1])].map(|(side, nothing)| {
                nothing.or_else(|| square_within(terms, side, factor, steps).map(Some))
            });
            let (then, otherwise) = (then?, otherwise?);
            let factor = then.or(otherwise)?.0;
            let fits = |side: Option<(f64, usize)>| side.is_none_or(|side| side.0 == factor);
            if !fits(then) || !fits(otherwise) {
                return None;
            }
            let line = |side: Option<(f64, usize)>, zero: usize| side.map_or(zero, |side| side.1);
            let lines = [a, line(then, b), line(otherwise, c)];
            terms.steps.push(Step::Apply(Op::Select, lines));
            terms.degrees.push(1);
            Some((factor, terms.steps.len() - 1))
        }
        // A number times a line, times that line.
        Op::Mul => [(a, b), (b, a)].into_iter().find_map(|(scaled, line)| {
            let Step::Apply(Op::Mul, [x, y, _]) = terms.steps[scaled] else { return None };
            let scale = [(x, y), (y, x)].into_iter().find(|&(_, other)| other == line)?.0;
            Some((factor * number(scale)?, line))
        }),
        _ => None,
    };
    found.filter(|(factor, _)| *factor > 0.0 && factor.is_finite())
}

/// Writes the coefficients of terms into the body of a loop over the data.
struct Writer<'a> {
    steps: Steps<'a>,
    body: &'a Body,
    /// The loop that the terms are of.
    region: Region,
    terms: &'a Terms,
    pivot: Option<&'a [Node]>,
    /// For each variable its difference from the pivot as a linear form.
    differences: &'a [Vec<Coefficient>],
    /// The monomials, if there are more than lines.
    basis: Option<&'a Basis>,
    precise: bool,
}

impl Writer<'_> {
    /// The value at the pivot and the slopes of each step, or all coefficients if there is a
    /// basis; nothing for those above degree `most` if there is none.
    fn results(&mut self, most: u32) -> Vec<Vec<Coefficient>> {
        let mut results: Vec<Vec<Coefficient>> = Vec::new();
        for (step, &degree) in self.terms.steps.iter().zip(&self.terms.degrees) {
            let result = match step {
                _ if degree > most && self.basis.is_none() => Vec::new(),
                Step::Variable(number) => {
                    let pivot = self.pivot.map(|pivot| pivot[*number]);
                    let pivot = pivot.filter(|&pivot| self.steps.value(pivot) != Some(0.0));
                    let mut line = vec![pivot.map(Pair::from)];
                    line.extend_from_slice(&self.differences[*number]);
                    line
                }
                Step::Apply(op, args) => {
                    let empty = Vec::new();
                    let args = args.map(|arg| results.get(arg).unwrap_or(&empty).as_slice());
                    let result = self.apply(*op, args);
                    match self.basis {
                        // What cancels in a pair makes its first part no better than the other.
                        Some(_) => result.into_iter().map(|x| self.normal(x)).collect(),
                        None => result,
                    }
                }
                other => vec![Some(self.known(other).into())],
            };
            results.push(result);
        }
        results
    }

    /// A number that does not depend on the variables.
    fn known(&mut self, step: &Step) -> Node {
        let (draft, body) = (&mut *self.steps.draft, self.body);
        match step {
            Step::Number(number) => draft.constant(*number),
            Step::Known(node) => *node,
            Step::Read(data) => {
                let mut data = data.clone();
                for (region, _) in &mut data.strides {
                    if *region == self.region {
                        *region = body.region;
                    }
                }
                let access = draft.graph.accesses.push(data);
                draft.step(body, Def::Element(access))
            }
            Step::Element { numbers, base, strides, .. } => {
                let stride: i64 = strides.iter().map(|&(_, stride)| stride).sum();
                draft.number_in(body, numbers, *base, stride)
            }
            Step::Iteration(_) | Step::Variable(_) | Step::Apply(..) => body.number,
        }
    }

    fn normal(&mut self, x: Coefficient) -> Coefficient {
        x.map(|x| self.steps.normal(x))
    }

    /// The product; one factor is a number if there is no basis.
    fn multiply(&mut self, a: &[Coefficient], b: &[Coefficient]) -> Vec<Coefficient> {
        if let Some(basis) = self.basis.filter(|_| a.len() > 1 && b.len() > 1) {
            return self.expanded(a, b, basis);
        }
        let (line, number) = if a.len() > 1 { (a, b) } else { (b, a) };
        let number = number.first().copied().flatten();
        let precise = self.precise;
        line.iter().map(|&x| self.steps.times(x, number, precise)).collect()
    }

    /// The product of two polynomials.
    fn expanded(
        &mut self,
        a: &[Coefficient],
        b: &[Coefficient],
        basis: &Basis,
    ) -> Vec<Coefficient> {
        let mut product: Vec<Coefficient> = vec![None; basis.len()];
        let two = self.steps.constant(2.0);
        for (i, &x) in a.iter().enumerate() {
            for (j, &y) in b.iter().enumerate() {
                let Some(at) = basis.product(i, j).filter(|_| x.is_some() && y.is_some()) else {
                    continue;
                };
                // Of a square each two different ones come twice.
                if a == b && i > j {
                    continue;
                }
                let mut part = self.steps.times(x, y, true);
                if a == b && i < j {
                    part = self.steps.times(Some(two.into()), part, true);
                }
                product[at] = self.steps.plus(product[at], part, true);
            }
        }
        product
    }

    /// A power with an exponent of at least one, by squares.
    fn power(&mut self, base: &[Coefficient], exponent: u32) -> Vec<Coefficient> {
        let mut power = base.to_vec();
        for bit in (0..exponent.max(1).ilog2()).rev() {
            power = self.multiply(&power.clone(), &power);
            if exponent >> bit & 1 == 1 {
                power = power.into_iter().map(|x| self.normal(x)).collect();
                power = self.multiply(&power, base);
            }
            power = power.into_iter().map(|x| self.normal(x)).collect();
        }
        power
    }

    fn apply(&mut self, op: Op, args: [&[Coefficient]; 3]) -> Vec<Coefficient> {
        let [a, b, c] = args;
        let at = |x: &[Coefficient], i: usize| x.get(i).copied().flatten();
        let size = args[..op.arity()].iter().map(|arg| arg.len()).max().unwrap_or(1);
        let (precise, steps) = (self.precise, &mut self.steps);
        match op {
            Op::Add => (0..size).map(|i| steps.plus(at(a, i), at(b, i), precise)).collect(),
            Op::Sub => (0..size).map(|i| steps.minus(at(a, i), at(b, i), precise)).collect(),
            Op::Neg => (0..size).map(|i| steps.minus(None, at(a, i), precise)).collect(),
            Op::Mul => self.multiply(a, b),
            Op::MulAdd => {
                let product = self.multiply(a, b);
                let steps = &mut self.steps;
                (0..size).map(|i| steps.plus(at(&product, i), at(c, i), precise)).collect()
            }
            Op::Powi if a.len() > 1 => match at(b, 0).and_then(|x| self.steps.value(x.high)) {
                Some(1.0) => a.to_vec(),
                Some(exponent) if self.basis.is_some() => self.power(a, exponent as u32),
                // Squares do not come here.
                _ => Vec::new(),
            },
            _ => (0..size).map(|i| Some(self.each(op, args, i))).collect(),
        }
    }

    /// Coefficient `i` of what has one for each of its operand's, or is a number.
    fn each(&mut self, op: Op, args: [&[Coefficient]; 3], i: usize) -> Pair {
        let zero = self.steps.constant(0.0);
        let at = |number: usize| {
            // A condition, or divisor, is the same for each coefficient.
            let shared = matches!((op, number), (Op::Select, 0) | (Op::Div, 1));
            let known = args[number].get(if shared { 0 } else { i }).copied().flatten();
            known.unwrap_or(zero.into())
        };
        match op {
            Op::Select => {
                let (condition, then, otherwise) = (at(0).high, at(1), at(2));
                let high = self.steps.apply(op, &[condition, then.high, otherwise.high]);
                let low = (then.low.or(otherwise.low)).map(|_| {
                    let lows = [then.low, otherwise.low].map(|low| low.unwrap_or(zero));
                    self.steps.apply(op, &[condition, lows[0], lows[1]])
                });
                Pair { high, low }
            }
            Op::Div if self.precise => {
                let divisor = self.steps.rounded(at(1));
                self.steps.quotient(at(0), divisor)
            }
            _ => {
                let args: Vec<Node> =
                    (0..op.arity()).map(|number| self.steps.rounded(at(number))).collect();
                self.steps.apply(op, &args).into()
            }
        }
    }
}
