//! What a loop adds up as rows of coefficients: lines in its variables, computed
//! again in loops over the data.

use super::terms::{Step, Terms};
use crate::op::Op;
use crate::phi::draft::{Body, Draft};
use crate::phi::pair::{Pair, Pairs};
use crate::ssa::{Def, Node, Region};

/// A coefficient in the body of a loop; none is zero.
pub(super) type Coefficient = Option<Pair>;

/// What is added in each iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// a·u + b·v + … + c
    Line,
    /// (a·u + b·v + … + c)², times positive numbers
    Square,
}

/// The terms of a loop as lines in its variables.
pub(super) struct Lines {
    pub(super) terms: Terms,
    pub(super) kind: Kind,
    /// The steps that are lines, or of which squares are added, with their factors.
    lines: Vec<(f64, usize)>,
}

/// A line: its factor, its value at the pivot, and its slopes.
pub(super) struct Row {
    pub(super) factor: f64,
    pub(super) value: Coefficient,
    pub(super) slopes: Vec<Coefficient>,
}

impl Lines {
    /// The lines of `terms`, if those are lines or squares of lines.
    pub(super) fn of(mut terms: Terms) -> Result<Lines, String> {
        if terms.degree() <= 1 {
            let lines = terms.added.clone();
            return Ok(Lines { terms, kind: Kind::Line, lines });
        }
        let added = terms.added.clone().into_iter();
        let lines: Option<Vec<(f64, usize)>> =
            added.map(|(sign, step)| square(&mut terms, step, sign)).collect();
        match lines {
            Some(lines) => Ok(Lines { terms, kind: Kind::Square, lines }),
            None => Err("its terms are neither lines nor squares of such".to_owned()),
        }
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
        let steps = Steps { draft, place: Place::In(body) };
        let mut writer = Writer { steps, body, region, terms: &self.terms, pivot, precise };
        let results = writer.results();
        let size = self.terms.variables.len();
        let row = |writer: &mut Writer<'_>, factor: f64, mut line: Vec<Coefficient>| {
            line.resize(1 + size, None);
            let value = writer.steps.once(line[0]);
            Row { factor, value, slopes: line[1..].to_vec() }
        };
        match self.kind {
            Kind::Square => {
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
                vec![row(&mut writer, 1.0, total)]
            }
        }
    }
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

/// Where steps are made.
#[derive(Clone, Copy)]
pub(super) enum Place<'a> {
    /// Before a loop.
    Before(Region),
    /// In the body of one.
    In(&'a Body),
}

/// Makes steps and coefficients.
pub(super) struct Steps<'a> {
    pub(super) draft: &'a mut Draft,
    pub(super) place: Place<'a>,
}

impl Pairs for Steps<'_> {
    fn apply(&mut self, op: Op, args: &[Node]) -> Node {
        match self.place {
            Place::Before(region) => self.draft.apply(region, op, args),
            Place::In(body) => {
                let args = core::array::from_fn(|i| args.get(i).copied().unwrap_or(args[0]));
                self.draft.step(body, Def::Apply(op, args))
            }
        }
    }

    fn constant(&mut self, value: f64) -> Node {
        self.draft.constant(value)
    }

    fn value(&self, node: Node) -> Option<f64> {
        self.draft.graph.constant(node)
    }
}

impl Steps<'_> {
    /// `a · b`, as a pair if it is to be `precise`.
    pub(super) fn times(&mut self, a: Coefficient, b: Coefficient, precise: bool) -> Coefficient {
        let (a, b) = (a?, b?);
        let is_one = |steps: &Self, x: Pair| x.low.is_none() && steps.value(x.high) == Some(1.0);
        Some(match () {
            () if is_one(self, a) => b,
            () if is_one(self, b) => a,
            () if precise => self.product(a, b),
            () => self.apply(Op::Mul, &[a.high, b.high]).into(),
        })
    }

    /// The coefficient as one number.
    pub(super) fn once(&mut self, a: Coefficient) -> Coefficient {
        a.map(|a| self.rounded(a).into())
    }

    /// `a + b`, as a pair if it is to be `precise`.
    pub(super) fn plus(&mut self, a: Coefficient, b: Coefficient, precise: bool) -> Coefficient {
        match (a, b) {
            (Some(a), Some(b)) if !precise => Some(self.apply(Op::Add, &[a.high, b.high]).into()),
            (a, b) => self.sum(a, b),
        }
    }

    /// `a − b`, as a pair if it is to be `precise`.
    pub(super) fn minus(&mut self, a: Coefficient, b: Coefficient, precise: bool) -> Coefficient {
        match (a, b) {
            (Some(a), Some(b)) if !precise => Some(self.apply(Op::Sub, &[a.high, b.high]).into()),
            (a, Some(b)) => {
                let high = self.apply(Op::Neg, &[b.high]);
                let low = b.low.map(|low| self.apply(Op::Neg, &[low]));
                self.plus(a, Some(Pair { high, low }), precise)
            }
            (a, None) => a,
        }
    }
}

/// Writes the coefficients of terms into the body of a loop over the data.
struct Writer<'a> {
    steps: Steps<'a>,
    body: &'a Body,
    /// The loop that the terms are of.
    region: Region,
    terms: &'a Terms,
    pivot: Option<&'a [Node]>,
    precise: bool,
}

impl Writer<'_> {
    /// The value at the pivot and the slopes of each step; nothing for squares.
    fn results(&mut self) -> Vec<Vec<Coefficient>> {
        let mut results: Vec<Vec<Coefficient>> = Vec::new();
        for (step, &degree) in self.terms.steps.iter().zip(&self.terms.degrees) {
            let result = match step {
                _ if degree > 1 => Vec::new(),
                Step::Variable(number) => {
                    let mut line = vec![None; 1 + self.terms.variables.len()];
                    line[0] = self.pivot.map(|pivot| pivot[*number].into());
                    line[1 + number] = Some(self.steps.constant(1.0).into());
                    line
                }
                Step::Apply(op, args) => {
                    let empty = Vec::new();
                    let args = args.map(|arg| results.get(arg).unwrap_or(&empty).as_slice());
                    self.apply(*op, args)
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

    /// The product, of which one factor is a number.
    fn multiply(&mut self, a: &[Coefficient], b: &[Coefficient]) -> Vec<Coefficient> {
        let (line, number) = if a.len() > 1 { (a, b) } else { (b, a) };
        let number = number.first().copied().flatten();
        let precise = self.precise;
        line.iter().map(|&x| self.steps.times(x, number, precise)).collect()
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
