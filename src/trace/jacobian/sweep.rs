//! The reverse sweep over the Jacobian tape.

use core::cell::Cell;
use core::mem;

use super::{Entry, JacobianTape, Node, NodeRule};
use crate::trace::differential::Differential;
use crate::trace::sweep::{Adjoints, contribution_of};

impl JacobianTape {
    /// The derivatives of a number with this differential by the first `active` inputs.
    pub(super) fn sweep<'a>(
        &self,
        output: Differential,
        active: usize,
        adjoints: &'a mut Adjoints,
    ) -> &'a [f64] {
        let mut end = self.len();
        let adjoints = adjoints.begin(self.inputs, end);
        if !output.is_constant()
            && let Some(adjoint) = adjoints.get_mut(output.tag as u32 as usize)
        {
            *adjoint = output.coefficient;
            for node in self.nodes.iter().rev() {
                self.propagate(node.end(), &mut adjoints[..end]);
                node.propagate(adjoints);
                end = node.first;
            }
            self.propagate(self.inputs, &mut adjoints[..end]);
        }
        // After variable 0.
        &adjoints[1..=active]
    }

    /// Propagates the adjoints of the variables from `start` on, which become zero.
    fn propagate(&self, start: usize, adjoints: &mut [f64]) {
        let end = adjoints.len();
        let entries = &self.entries[start - self.inputs..end - self.inputs];
        // The adjoint of the current variable and those of the two before it, the most frequent
        // operands, are in registers: through memory, each entry would wait for the store of one
        // before.
        let adjoints = Cell::from_mut(adjoints).as_slice_of_cells();
        let mut rest = adjoints;
        let (mut adjoint, mut first) = (pop(&mut rest), pop(&mut rest));
        for (variable, entry) in (start..end).zip(entries).rev() {
            let &Entry { operands, partials } = entry;
            let mut second = pop(&mut rest);
            for (operand, partial) in operands.into_iter().zip(partials) {
                let (operand, contribution) = (operand as usize, partial * adjoint);
                match rest.get(operand) {
                    Some(sum) => sum.set(sum.get() + contribution),
                    None if operand + 1 == variable => first += contribution,
                    None => second += contribution,
                }
            }
            (adjoint, first) = (first, second);
        }
        let before = adjoints[..start].iter().rev();
        before.zip([adjoint, first]).for_each(|(to, adjoint)| to.set(adjoint));
    }
}

/// Takes the last of `adjoints` off them; zero if there is none.
#[inline(always)]
fn pop(adjoints: &mut &[Cell<f64>]) -> f64 {
    match adjoints.split_last() {
        Some((last, rest)) => {
            *adjoints = rest;
            last.take()
        }
        None => 0.0,
    }
}

impl Node {
    /// The first variable after those of the node.
    fn end(&self) -> usize {
        match &self.rule {
            NodeRule::Operation { .. } => self.first + 1,
            NodeRule::Call { call, .. } => call.outputs().end,
        }
    }

    /// Propagates the adjoints of its variables, which become zero.
    #[cold]
    fn propagate(&self, adjoints: &mut [f64]) {
        match &self.rule {
            &NodeRule::Operation { op, x, y, operands } => {
                let adjoint = mem::take(&mut adjoints[self.first]);
                // Not propagated, not even to an infinite partial.
                if adjoint == 0.0 {
                    return;
                }
                for (number, operand) in operands.into_iter().enumerate() {
                    if let Some(operand) = operand {
                        add(adjoints, operand, contribution_of(op, number, x, y, adjoint));
                    }
                }
            }
            NodeRule::Call { call, numbers } => call.sweep_numbers(numbers, adjoints),
        }
    }
}

#[inline(always)]
fn add(adjoints: &mut [f64], to: u32, contribution: f64) {
    if let Some(adjoint) = adjoints.get_mut(to as usize) {
        *adjoint += contribution;
    }
}
