//! The Jacobian tape: for runs of which nothing but the first derivatives of the output is wanted.
//!
//! A `Var` carries a [`Differential`](super::differential::Differential), the product of the partial
//! derivatives since the last variable, so functions of one number and operations with constants
//! record nothing. An operation with operands that depend on two variables makes a new one: an
//! [`Entry`] with the two variables and the derivatives by them. The reverse sweep is a loop over
//! entries.
//!
//! The results are those of the event tape but for rounding. A product that would overflow,
//! underflow or lose digits is not formed: its factors become entries. A partial derivative that is
//! infinite, NaN or subnormal is a [`Node`], which applies the rule of the primitive to the adjoint
//! (an adjoint of zero is not propagated); so is a call of a custom operation.

mod ring;
mod run;
mod slow;
mod sweep;

pub(super) use ring::{differential, has_made_room, is_recording, next_variable, restart};
pub use run::JacobianRun;

use super::CustomCall;
use crate::op::{MAX_ARITY, Op};

/// A variable that is a linear combination of two others; of one if the other is variable 0.
#[derive(Clone, Copy, Debug)]
struct Entry {
    operands: [u32; 2],
    partials: [f64; 2],
}

/// Variables that are no linear combinations of others. Their entries are zero.
#[derive(Debug)]
struct Node {
    /// The first of them.
    first: usize,
    rule: NodeRule,
}

#[derive(Debug)]
enum NodeRule {
    /// The result `y` of `op` at `x`.
    Operation {
        op: Op,
        x: [f64; MAX_ARITY],
        y: f64,
        /// The variables that the operands are.
        operands: [Option<u32>; MAX_ARITY],
    },
    /// The outputs of a call.
    Call {
        call: CustomCall,
        /// The values of its arguments and outputs.
        numbers: Vec<f64>,
    },
}

/// The entries of one run, in order.
#[derive(Debug, Default)]
pub(super) struct JacobianTape {
    entries: Vec<Entry>,
    nodes: Vec<Node>,
    /// The number of variables without entries, the first ones: variable 0, whose adjoint is not
    /// read, and the inputs.
    inputs: usize,
    /// The largest number of entries.
    limit: usize,
    /// True if the run had more.
    pub(super) is_exceeded: bool,
}

impl Entry {
    const ZERO: Entry = Entry { operands: [0; 2], partials: [0.0; 2] };
}

impl JacobianTape {
    pub(super) const fn new() -> Self {
        JacobianTape {
            entries: Vec::new(),
            nodes: Vec::new(),
            inputs: 0,
            limit: 0,
            is_exceeded: false,
        }
    }

    /// Clears the tape for a run with so many inputs and at most `limit` entries.
    pub(super) fn begin(&mut self, inputs: usize, limit: usize) {
        self.entries.clear();
        self.nodes.clear();
        (self.inputs, self.limit, self.is_exceeded) = (1 + inputs, limit, false);
    }

    /// The number of variables.
    pub(super) fn len(&self) -> usize {
        self.inputs + self.entries.len()
    }
}
