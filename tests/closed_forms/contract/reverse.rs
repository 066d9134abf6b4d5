//! A reverse-mode tape over any arithmetic: values and partials of the programs, for the reference.

use std::marker::PhantomData;
use std::ops::{Add, Div, Mul, Neg, Sub};

use super::arithmetic::Arithmetic;
use super::number::Number;

#[derive(Clone, Copy)]
enum Op {
    Constant,
    Input,
    Add(u32, u32),
    Sub(u32, u32),
    Mul(u32, u32),
    Div(u32, u32),
    Neg(u32),
    Exp(u32),
    Ln(u32),
}

/// The operations of a program with their values. A thread has one for each arithmetic.
pub struct Tape<N> {
    ops: Vec<Op>,
    values: Vec<N>,
}

/// A value on the tape of this thread.
pub struct Node<N> {
    index: u32,
    arithmetic: PhantomData<fn() -> N>,
}

impl<N> Clone for Node<N> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<N> Copy for Node<N> {}

impl<N> Tape<N> {
    pub const fn new() -> Self {
        Tape { ops: Vec::new(), values: Vec::new() }
    }
}

impl<N: Arithmetic> Tape<N> {
    fn push(&mut self, op: Op, value: N) -> Node<N> {
        let index = self.ops.len() as u32;
        self.ops.push(op);
        self.values.push(value);
        Node { index, arithmetic: PhantomData }
    }

    /// The partials of the last node, by the inputs, which are the first nodes, and its value.
    fn sweep(&self, output: u32, inputs: usize) -> Vec<N> {
        let mut adjoints: Vec<Option<N>> = vec![None; output as usize + 1];
        adjoints[output as usize] = Some(N::of(1.0));
        for index in (inputs..=output as usize).rev() {
            let Some(adjoint) = adjoints[index].take().filter(|adjoint| !adjoint.is_zero()) else {
                continue;
            };
            let value = |of: u32| &self.values[of as usize];
            let mut add = |to: u32, share: &dyn Fn() -> N| {
                if !matches!(self.ops[to as usize], Op::Constant) {
                    let sum = &mut adjoints[to as usize];
                    *sum = Some(sum.as_ref().map_or_else(share, |sum| sum.add(&share())));
                }
            };
            match self.ops[index] {
                Op::Constant | Op::Input => {}
                Op::Add(a, b) => {
                    add(a, &|| adjoint.clone());
                    add(b, &|| adjoint.clone());
                }
                Op::Sub(a, b) => {
                    add(a, &|| adjoint.clone());
                    add(b, &|| adjoint.neg());
                }
                Op::Mul(a, b) => {
                    add(a, &|| adjoint.mul(value(b)));
                    add(b, &|| adjoint.mul(value(a)));
                }
                Op::Div(a, b) => {
                    let share = adjoint.div(value(b));
                    add(a, &|| share.clone());
                    add(b, &|| share.mul(&self.values[index]).neg());
                }
                Op::Neg(a) => add(a, &|| adjoint.neg()),
                Op::Exp(a) => add(a, &|| adjoint.mul(&self.values[index])),
                Op::Ln(a) => add(a, &|| adjoint.div(value(a))),
            }
        }
        let partials = adjoints.into_iter().take(inputs);
        let mut all: Vec<N> = partials.map(|sum| sum.unwrap_or_else(|| N::of(0.0))).collect();
        all.resize_with(inputs, || N::of(0.0));
        all.push(self.values[output as usize].clone());
        all
    }
}

/// The partials of `program` by its inputs at `point`, and at last its value.
pub fn differentiate<N: Arithmetic>(
    point: &[f64],
    program: impl FnOnce(&[Node<N>]) -> Node<N>,
) -> Vec<N> {
    N::with_tape(|tape| {
        tape.ops.clear();
        tape.values.clear();
    });
    let input = |&x: &f64| N::with_tape(|tape| tape.push(Op::Input, N::of(x)));
    let inputs: Vec<Node<N>> = point.iter().map(input).collect();
    let output = program(&inputs);
    N::with_tape(|tape| tape.sweep(output.index, inputs.len()))
}

impl<N: Arithmetic> Node<N> {
    fn unary(self, op: Op, compute: impl FnOnce(&N) -> N) -> Self {
        N::with_tape(|tape| {
            let value = compute(&tape.values[self.index as usize]);
            tape.push(op, value)
        })
    }

    fn binary(self, other: Self, op: Op, compute: impl FnOnce(&N, &N) -> N) -> Self {
        N::with_tape(|tape| {
            let [a, b] = [self, other].map(|node| &tape.values[node.index as usize]);
            let value = compute(a, b);
            tape.push(op, value)
        })
    }
}

impl<N: Arithmetic> From<f64> for Node<N> {
    fn from(x: f64) -> Self {
        N::with_tape(|tape| tape.push(Op::Constant, N::of(x)))
    }
}

impl<N: Arithmetic> Add for Node<N> {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        self.binary(other, Op::Add(self.index, other.index), N::add)
    }
}

impl<N: Arithmetic> Sub for Node<N> {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        self.binary(other, Op::Sub(self.index, other.index), N::sub)
    }
}

impl<N: Arithmetic> Mul for Node<N> {
    type Output = Self;

    fn mul(self, other: Self) -> Self {
        self.binary(other, Op::Mul(self.index, other.index), N::mul)
    }
}

impl<N: Arithmetic> Div for Node<N> {
    type Output = Self;

    fn div(self, other: Self) -> Self {
        self.binary(other, Op::Div(self.index, other.index), N::div)
    }
}

impl<N: Arithmetic> Neg for Node<N> {
    type Output = Self;

    fn neg(self) -> Self {
        self.unary(Op::Neg(self.index), N::neg)
    }
}

impl<N: Arithmetic> Number for Node<N> {
    fn exponential(self) -> Self {
        self.unary(Op::Exp(self.index), N::exp)
    }

    fn logarithm(self) -> Self {
        self.unary(Op::Ln(self.index), N::ln)
    }
}
