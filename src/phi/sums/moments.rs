//! Moments: the coefficients of a sum of polynomials in a frame, with twice the
//! digits, and how large what was added up is.

use super::frame::Frame;
use super::polynomial::Basis;
use super::terms::{Step, Terms};
use crate::op::{Op, eval};
use crate::phi::double::Double;
use crate::ssa::Table;

/// A sum of polynomials in a frame.
#[derive(Clone, Debug)]
pub(super) struct Moments {
    /// The coefficient of each monomial in the coordinates of the frame.
    pub(super) sums: Vec<Double>,
    /// For each monomial the sum of the magnitudes of its coefficients.
    pub(super) magnitudes: Vec<f64>,
    /// For each two monomials the sum of the products of their coefficients, so
    /// that the sum of squared terms is a quadratic form of it.
    pub(super) products: Vec<f64>,
    /// The same of what has been added up after each term.
    pub(super) partial: Vec<f64>,
}

/// A program with buffers for its results.
pub(super) struct Evaluator<'a> {
    terms: &'a Terms,
    basis: &'a Basis,
    /// The coefficients of each step's result, one after the other.
    results: Vec<Double>,
    starts: Vec<usize>,
    total: Vec<Double>,
}

impl<'a> Evaluator<'a> {
    pub(super) fn new(terms: &'a Terms, basis: &'a Basis) -> Self {
        let mut starts = vec![0];
        for &degree in &terms.degrees {
            starts.push(starts[starts.len() - 1] + basis.count(degree));
        }
        let results = vec![Double::ZERO; starts[starts.len() - 1]];
        Evaluator { terms, basis, results, starts, total: vec![Double::ZERO; basis.len()] }
    }

    /// The moments of `count` iterations in `frame`, in these iterations of
    /// the loops around; `first` is a term of its own, unless what the sum begins with is a
    /// step. `None` if anything is not
    /// finite.
    pub(super) fn moments(
        &mut self,
        first: f64,
        frame: &Frame,
        count: u32,
        around: &[u32],
    ) -> Option<Moments> {
        let size = self.basis.len();
        let mut moments = Moments {
            sums: vec![Double::ZERO; size],
            magnitudes: vec![0.0; size],
            products: vec![0.0; size * size],
            partial: vec![0.0; size * size],
        };
        self.for_each_term(first, frame, count, around, |term| moments.add(term));
        moments.mirror();
        let numbers = moments.magnitudes.iter().chain(&moments.products).chain(&moments.partial);
        let is_finite = numbers.copied().all(f64::is_finite)
            && moments.sums.iter().copied().all(Double::is_finite);
        is_finite.then_some(moments)
    }

    /// What the terms of each of `count` iterations come to, if they have no variables.
    pub(super) fn values(&mut self, frame: &Frame, count: u32) -> impl Iterator<Item = Double> {
        (0..count).map(|iteration| {
            self.run(frame, &[iteration]);
            self.total[0]
        })
    }

    /// Shows `see` what the sum begins with, and what each of `count` iterations adds to it, in
    /// these iterations of the loops around.
    pub(super) fn for_each_term(
        &mut self,
        first: f64,
        frame: &Frame,
        count: u32,
        around: &[u32],
        mut see: impl FnMut(&[Double]),
    ) {
        let mut iterations = vec![0];
        iterations.extend_from_slice(around);
        self.total.fill(Double::ZERO);
        self.total[0] = first.into();
        if let Some(step) = self.terms.begin {
            self.run(frame, &iterations);
            let result = &self.results[self.starts[step]..self.starts[step + 1]];
            self.total.fill(Double::ZERO);
            self.total[..result.len()].copy_from_slice(result);
        }
        see(&self.total);
        for iteration in 0..count {
            iterations[0] = iteration;
            self.run(frame, &iterations);
            see(&self.total);
        }
    }

    /// The sum of the terms of one iteration.
    fn run(&mut self, frame: &Frame, iterations: &[u32]) {
        for (index, step) in self.terms.steps.iter().enumerate() {
            let (before, after) = self.results.split_at_mut(self.starts[index]);
            let to = &mut after[..self.starts[index + 1] - self.starts[index]];
            let starts = &self.starts;
            let arg = |step: usize| &before[starts[step]..starts[step + 1]];
            match step {
                Step::Number(number) => to[0] = (*number).into(),
                Step::Iteration(number) => {
                    to[0] = f64::from(iterations.get(*number).copied().unwrap_or(0)).into();
                }
                Step::Element { numbers, lost, base, strides } => {
                    let moved = strides.iter().map(|&(number, stride)| {
                        stride * i64::from(iterations.get(number).copied().unwrap_or(0))
                    });
                    let index = usize::try_from(base + moved.sum::<i64>());
                    let number = |numbers: &Table, without: f64| {
                        let number = index.ok().and_then(|index| numbers.get(index));
                        Double::from(number.map_or(without, |&bits| f64::from_bits(bits)))
                    };
                    to[0] = number(numbers, f64::NAN);
                    if let Some(lost) = lost {
                        to[0] = to[0] + number(lost, 0.0);
                    }
                }
                // Not known when a graph is made.
                Step::Known(_) | Step::Read(_) => to[0] = f64::NAN.into(),
                Step::Variable(number) => {
                    to.fill(Double::ZERO);
                    to[0] = frame.pivot[*number].into();
                    to[1..].copy_from_slice(&frame.differences[*number]);
                }
                Step::Apply(op, args) => {
                    let args = args.map(|step| if step < index { arg(step) } else { &[] });
                    apply(self.basis, *op, args, to);
                }
            }
        }
        self.total.fill(Double::ZERO);
        for &(sign, step) in &self.terms.added {
            let result = &self.results[self.starts[step]..self.starts[step + 1]];
            for (sum, &x) in self.total.iter_mut().zip(result) {
                *sum = if sign < 0.0 { *sum - x } else { *sum + x };
            }
        }
    }
}

fn apply(basis: &Basis, op: Op, args: [&[Double]; 3], to: &mut [Double]) {
    let [a, b, c] = args;
    let at = |x: &[Double], i: usize| x.get(i).copied().unwrap_or(Double::ZERO);
    match op {
        Op::Add => (0..to.len()).for_each(|i| to[i] = at(a, i) + at(b, i)),
        Op::Sub => (0..to.len()).for_each(|i| to[i] = at(a, i) - at(b, i)),
        Op::Neg => (0..to.len()).for_each(|i| to[i] = -at(a, i)),
        Op::Mul => basis.multiply(a, b, to),
        Op::MulAdd => {
            basis.multiply(a, b, to);
            (0..to.len()).for_each(|i| to[i] = to[i] + at(c, i));
        }
        Op::Div => (0..to.len()).for_each(|i| to[i] = at(a, i) / at(b, 0)),
        Op::Select => {
            let chosen = if at(a, 0) != Double::ZERO { b } else { c };
            (0..to.len()).for_each(|i| to[i] = at(chosen, i));
        }
        Op::Powi if a.len() > 1 => {
            let mut power = a.to_vec();
            for _ in 1..at(b, 0).high as u32 {
                basis.multiply(&power.clone(), a, to);
                power = to.to_vec();
            }
            to.fill(Double::ZERO);
            to[..power.len()].copy_from_slice(&power);
        }
        _ => to[0] = eval(op, args.map(|arg| at(arg, 0).rounded())).into(),
    }
}

impl Moments {
    fn add(&mut self, term: &[Double]) {
        for (i, &x) in term.iter().enumerate() {
            self.sums[i] = self.sums[i] + x;
            self.magnitudes[i] += x.high.abs();
        }
        for (i, &x) in term.iter().enumerate() {
            // The other half is the same.
            for (j, &y) in term[..=i].iter().enumerate() {
                let at = i * term.len() + j;
                self.products[at] += x.high * y.high;
                self.partial[at] += self.sums[i].high * self.sums[j].high;
            }
        }
    }

    /// Fills the halves of the products that are the same.
    fn mirror(&mut self) {
        let size = self.sums.len();
        for i in 0..size {
            for j in i + 1..size {
                self.products[i * size + j] = self.products[j * size + i];
                self.partial[i * size + j] = self.partial[j * size + i];
            }
        }
    }
}
