//! The operations that are not inlined: those with a full ring, with coefficients that are not kept,
//! or with three operands, and calls of custom operations.

use super::{Entry, JacobianTape, Node, NodeRule};
use crate::custom::Custom;
use crate::op::{MAX_ARITY, Op};
use crate::trace::CustomCall;
use crate::trace::differential::{Differential, Partial, is_moderate};
use crate::trace::recorder::ID;

/// A variable and its coefficient in a linear combination.
type Term = (u32, f64);

impl JacobianTape {
    /// The differential of `op`, whose value at `x` is `y`, for operands with these differentials,
    /// not all of which are constants. `None` beyond the limit.
    pub(in crate::trace) fn record(
        &mut self,
        op: Op,
        x: [f64; MAX_ARITY],
        of: [Differential; MAX_ARITY],
        y: f64,
    ) -> Option<Differential> {
        let partials = [0, 1, 2].map(|operand| match of[operand].is_constant() {
            true => None,
            false => partial(op, operand, x, y),
        });
        if !partials.iter().flatten().all(|partial| partial.is_exact()) {
            return self.push_node(op, x, of, (y, partials));
        }
        let mut terms: [Option<Term>; MAX_ARITY] = [None; MAX_ARITY];
        for (of, partial) in of.into_iter().zip(partials) {
            let Some(partial) = partial else { continue };
            let product = partial.times(of.coefficient);
            let term = match product.is_kept() || product.value.is_normal() {
                true => (of.tag as u32, product.value),
                false => (self.variable(of)?, partial.value),
            };
            add(&mut terms, term);
        }
        let combination = |[a, b]: [Term; 2]| Entry { operands: [a.0, b.0], partials: [a.1, b.1] };
        let tag = match terms {
            [Some(a), None, _] if is_moderate(a.1) || a.1 == 0.0 => {
                let own = of.into_iter().find(|of| !of.is_constant() && of.tag as u32 == a.0)?;
                return Some(Differential { coefficient: a.1, ..own });
            }
            [Some(a), None, _] => self.push(combination([a, (0, 0.0)]))?,
            [Some(a), Some(b), None] => self.push(combination([a, b]))?,
            [Some(a), Some(b), Some(c)] => {
                let first = self.push(combination([a, b]))?;
                self.push(combination([(first as u32, 1.0), c]))?
            }
            // There are no derivatives.
            [None, ..] => {
                return of.into_iter().find(|of| !of.is_constant()).map(Differential::detached);
            }
        };
        Some(Differential::of_variable(tag))
    }

    /// The variable that a number with this differential is, after it has become one.
    fn variable(&mut self, Differential { coefficient, tag }: Differential) -> Option<u32> {
        if coefficient == 1.0 {
            return Some(tag as u32);
        }
        let (operands, partials) = ([tag as u32, 0], [coefficient, 0.0]);
        self.push(Entry { operands, partials }).map(|tag| tag as u32)
    }

    /// Records an operation as a node.
    fn push_node(
        &mut self,
        op: Op,
        x: [f64; MAX_ARITY],
        of: [Differential; MAX_ARITY],
        (y, partials): (f64, [Option<Partial>; MAX_ARITY]),
    ) -> Option<Differential> {
        let mut operands = [None; MAX_ARITY];
        for (operand, (of, partial)) in operands.iter_mut().zip(of.into_iter().zip(partials)) {
            if partial.is_some() {
                *operand = Some(self.variable(of)?);
            }
        }
        let tag = self.push(Entry::ZERO)?;
        let rule = NodeRule::Operation { op, x, y, operands };
        self.nodes.push(Node { first: (tag & ID) as usize, rule });
        Some(Differential::of_variable(tag))
    }

    /// Records a call of `custom` with arguments that have these values and differentials, not all
    /// of which are constants, and the outputs `y`. Returns the tag of the first output; `None`
    /// beyond the limit.
    pub(in crate::trace) fn record_call(
        &mut self,
        custom: &Custom,
        x: impl Iterator<Item = (f64, Differential)>,
        y: &[f64],
        saved: Vec<f64>,
    ) -> Option<u64> {
        let mut numbers = Vec::new();
        for (value, Differential { coefficient, tag }) in x {
            numbers.push(value);
            self.push(Entry { operands: [tag as u32, 0], partials: [coefficient, 0.0] })?;
        }
        numbers.extend_from_slice(y);
        let mut first = None;
        for _ in y {
            let tag = self.push(Entry::ZERO)?;
            first.get_or_insert(tag);
        }
        let first = first?;
        let first_output = (first & ID) as usize;
        let call = CustomCall { custom: custom.clone(), first_output, saved };
        self.nodes.push(Node { first: first_output, rule: NodeRule::Call { call, numbers } });
        Some(first)
    }
}

/// Adds a term, to another one of the same variable if the sum may be a coefficient.
fn add(terms: &mut [Option<Term>; MAX_ARITY], (variable, coefficient): Term) {
    for term in terms {
        match term {
            Some((other, sum)) if *other == variable => {
                let total = *sum + coefficient;
                if is_moderate(total) || total == 0.0 {
                    *sum = total;
                    return;
                }
            }
            Some(_) => {}
            None => {
                *term = Some((variable, coefficient));
                return;
            }
        }
    }
}

#[inline(never)]
fn partial(op: Op, operand: usize, x: [f64; MAX_ARITY], y: f64) -> Option<Partial> {
    Partial::of(op, operand, x, y)
}
