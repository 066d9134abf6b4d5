//! Products of data and invariants (C8): `Π (a c_i) = aⁿ Π c_i`, a scalar recurrence with the
//! invariant coefficient a, whose first value is multiplied by the product of the data.

use super::extract::{Transform, Variable};
use super::form::{ProgramBuilder, Target};
use super::moments::Update;
use super::polynomial::Monomial;
use crate::numeric::double_double::{Bounded, power_of_two};
use crate::numeric::{AffineMap, AffinePower, Slot, Trips};
use crate::op::Op;
use crate::phi::reason::SumReason;
use crate::ssa::{Graph, Node};

/// The largest magnitude of the binary exponent of the product of the data.
const LARGEST: i64 = 400;

/// A product in closed form: `first · data · (2^shift · Π variable^exponent)^count`.
pub(super) struct Product {
    pub(super) variables: Vec<Variable>,
    pub(super) monomial: Monomial,
    pub(super) data: Bounded,
    /// The mean binary exponent of the data, taken out so that their product is in range.
    shift: i64,
    pub(super) first: Node,
    count: u64,
}

impl Product {
    /// The product over `count` iterations, each of which multiplies by `update.factor` and
    /// `monomial`.
    pub(super) fn of(
        update: &Update,
        (variables, monomial): (Vec<Variable>, Monomial),
        first: Node,
        count: u64,
    ) -> Result<Product, SumReason> {
        let at = |iteration: u64, values: &mut Vec<Bounded>| {
            update.data.evaluate(iteration, &[], values);
            update.factor.map_or(Bounded::ONE, |factor| values[factor])
        };
        let mut values = Vec::new();
        let exponents = (0..count).map(|iteration| at(iteration, &mut values).hi.abs().log2());
        let mean = exponents.sum::<f64>() / count as f64;
        if mean.is_nan() || mean.abs() >= LARGEST as f64 {
            return Err(SumReason::Range);
        }
        let shift = if (mean * count as f64).abs() < LARGEST as f64 { 0 } else { mean as i64 };
        let scale = Bounded::exact(power_of_two(-shift));
        let data = (0..count).fold(Bounded::ONE, |data, i| data * (at(i, &mut values) * scale));
        let size = power_of_two(LARGEST);
        if !(data.hi.abs() < size && data.hi.abs() > 1.0 / size) {
            return Err(SumReason::Range);
        }
        Ok(Product { variables, monomial, data, shift, first, count })
    }

    /// The routine, and its inputs.
    pub(super) fn routine(
        &self,
        graph: &Graph,
        is_differentiated: impl Fn(Node) -> bool,
    ) -> Result<(AffinePower, Vec<Node>), SumReason> {
        let mut writer = ProgramBuilder::default();
        let mut ratio: Option<Slot> = match self.shift {
            0 => None,
            shift => Some(writer.number(Bounded::exact(power_of_two(shift)))?),
        };
        for (&variable, &exponent) in self.variables.iter().zip(&self.monomial.exponents) {
            for _ in 0..exponent {
                let slot = writer.variable(variable)?;
                ratio = Some(match ratio {
                    Some(ratio) => writer.apply(Op::Mul, [ratio, slot])?,
                    None => slot,
                });
            }
        }
        let first = match graph.constant(self.first) {
            Some(number) => writer.number(Bounded::exact(number))?,
            None => {
                writer.variable(Variable { node: self.first, transform: Transform::Identity })?
            }
        };
        let data = writer.number(self.data)?;
        let start = writer.apply(Op::Mul, [first, data])?;
        let (program, inputs, differentiated) = writer.finish(is_differentiated);
        let map = AffineMap::new(vec![ratio], vec![None]).map_err(|_| SumReason::TooManySteps)?;
        let trips = Trips::Constant(self.count);
        let power = AffinePower::new(program, map, vec![start], trips, vec![0], differentiated);
        Ok((power.map_err(|_| SumReason::TooManySteps)?, inputs))
    }
}
