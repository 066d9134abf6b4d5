//! Products of data with what is invariant (C8): `Π (a c_i) = aⁿ Π c_i`, a recurrence of one state
//! with an invariant coefficient, whose first value takes the product of the data.

use super::extract::{Of, Variable};
use super::moments::Iterate;
use super::polynomial::Monomial;
use super::reason::Reason;
use crate::numeric::double_double::{Bounded, power_of_two};
use crate::numeric::{AffineMap, AffinePower, Instruction, Program, Slot, Trips};
use crate::ssa::{Graph, Node};

/// The largest exponent of 2 by which the product of the data may be larger than 1 or smaller.
const LARGEST: i64 = 400;

/// A product in closed form: `first · data · (2^shift · Π variable^exponent)^count`.
pub(super) struct Product {
    pub(super) variables: Vec<Variable>,
    pub(super) monomial: Monomial,
    pub(super) data: Bounded,
    /// So that the product of the data is in range.
    shift: i64,
    pub(super) first: Node,
    count: u64,
}

impl Product {
    /// The product of `count` iterations that multiply by `iterate.factor` and a monomial.
    pub(super) fn of(
        iterate: &Iterate,
        (variables, monomial): (Vec<Variable>, Monomial),
        first: Node,
        count: u64,
    ) -> Result<Product, Reason> {
        let at = |iteration: u64, values: &mut Vec<Bounded>| {
            iterate.data.evaluate(iteration, &[], values);
            iterate.factor.map_or(Bounded::ONE, |factor| values[factor])
        };
        let mut values = Vec::new();
        let exponents = (0..count).map(|iteration| at(iteration, &mut values).hi.abs().log2());
        let mean = exponents.sum::<f64>() / count as f64;
        if !(mean.abs() < LARGEST as f64) {
            return Err(Reason::Range);
        }
        let shift = if (mean * count as f64).abs() < LARGEST as f64 { 0 } else { mean as i64 };
        let scale = Bounded::exact(power_of_two(-shift));
        let data = (0..count).fold(Bounded::ONE, |data, i| data * (at(i, &mut values) * scale));
        let size = power_of_two(LARGEST);
        if !(data.hi.abs() < size && data.hi.abs() > 1.0 / size) {
            return Err(Reason::Range);
        }
        Ok(Product { variables, monomial, data, shift, first, count })
    }

    /// The routine's inputs: nodes or their exponentials.
    pub(super) fn inputs(&self, graph: &Graph) -> Vec<Variable> {
        let mut inputs: Vec<Variable> = Vec::new();
        let first = Variable { node: self.first, of: Of::Itself };
        let read = self.variables.iter().enumerate();
        let read = read.filter(|&(number, _)| self.monomial.exponents[number] > 0);
        let is_number = graph.constant(self.first).is_some();
        let first = Some(first).filter(|_| !is_number);
        for variable in read.map(|(_, variable)| *variable).chain(first) {
            let of = match variable.of {
                Of::Itself | Of::Inverse => Of::Itself,
                Of::Exponential | Of::Decay => Of::Exponential,
            };
            let input = Variable { of, ..variable };
            if !inputs.contains(&input) {
                inputs.push(input);
            }
        }
        inputs
    }

    /// The routine for `count` iterations, whose data have been multiplied by `data`.
    pub(super) fn routine(
        &self,
        graph: &Graph,
        is_differentiated: impl Fn(Node) -> bool,
    ) -> Result<AffinePower, Reason> {
        let inputs = self.inputs(graph);
        let mut program = Program::new(inputs.len() as u32);
        let mut push = |instruction| program.push(instruction).map_err(|_| Reason::Degree);
        let place = |input: Variable| {
            let at = inputs.iter().position(|&known| known == input);
            Instruction::Input(at.unwrap_or(0) as u32)
        };
        let mut ratio: Slot = push(Instruction::Constant(power_of_two(self.shift)))?;
        for (number, &Variable { node, of }) in self.variables.iter().enumerate() {
            for _ in 0..self.monomial.exponents[number] {
                let (is_inverse, of) = match of {
                    Of::Itself | Of::Exponential => (false, of),
                    Of::Inverse => (true, Of::Itself),
                    Of::Decay => (true, Of::Exponential),
                };
                let slot = push(place(Variable { node, of }))?;
                ratio = push(match is_inverse {
                    true => Instruction::Div(ratio, slot),
                    false => Instruction::Mul(ratio, slot),
                })?;
            }
        }
        let first = match graph.constant(self.first) {
            Some(number) => push(Instruction::Constant(number))?,
            None => push(place(Variable { node: self.first, of: Of::Itself }))?,
        };
        let data = push(Instruction::Folded(self.data))?;
        let start = push(Instruction::Mul(first, data))?;
        let map = AffineMap::new(vec![Some(ratio)], vec![None]).map_err(|_| Reason::Degree)?;
        let differentiated = (0u32..)
            .zip(&inputs)
            .filter(|(_, input)| is_differentiated(input.node))
            .map(|(number, _)| number)
            .collect();
        let trips = Trips::Constant(self.count);
        AffinePower::new(program, map, vec![start], trips, vec![0], differentiated)
            .map_err(|_| Reason::Degree)
    }

    /// The value where these nodes have these values.
    pub(super) fn at(&self, graph: &Graph, nodes: &[Node], values: &[f64]) -> Option<f64> {
        let value = |node: Node| {
            let at = nodes.iter().position(|&known| known == node);
            graph.constant(node).or_else(|| values.get(at?).copied())
        };
        let mut ratio = power_of_two(self.shift);
        for (variable, &exponent) in self.variables.iter().zip(&self.monomial.exponents) {
            let base = value(variable.node)?;
            let base = match variable.of {
                Of::Itself => base,
                Of::Inverse => 1.0 / base,
                Of::Exponential => base.exp(),
                Of::Decay => (-base).exp(),
            };
            ratio *= base.powi(i32::from(exponent));
        }
        Some(value(self.first)? * self.data.hi * ratio.powi(i32::try_from(self.count).ok()?))
    }
}
