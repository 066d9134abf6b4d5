//! Random programs: a small tree of statements that runs on numbers and on
//! `Var`, and prints readably so that a failing one can be reported.

use core::fmt;

use super::scalar::Scalar;
use crate::op::{Domain, MAX_ARITY, Op, domain};

/// A program with assignments, `if`, short loops and reads, over numbered
/// inputs and local variables; made by [`Recipe::program`](super::Recipe::program).
///
/// `x0`, `x1`, … are the active inputs, `d0`, … the inactive ones and `t0`, …
/// the locals, which start at 0. A *tame* program moves each operand into the
/// domain of its primitive, without guards, and keeps results small, so that
/// its values are finite. A *wild* one takes the operands as they are.
///
/// # Examples
///
/// ```
/// use phigrad::Tape;
/// use phigrad::check::{Random, Recipe, same};
///
/// let program = Recipe::default().program(&mut Random::new(1));
/// let f = Tape::record_with({
///     let program = program.clone();
///     move |x, data| program.eval(x, data)
/// });
/// let (x, data) = ([0.3, -1.2, 0.7], [0.5]);
/// assert!(same(f.eval(&x, &data)?, program.eval(&x, &data)), "{program}");
/// # Ok::<(), phigrad::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Program {
    pub(super) active: usize,
    pub(super) inactive: usize,
    pub(super) locals: usize,
    pub(super) tame: bool,
    pub(super) body: Vec<Statement>,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Operand {
    Active(usize),
    Inactive(usize),
    Local(usize),
    Constant(f64),
}

#[derive(Clone, Debug)]
pub(super) enum Statement {
    Assign {
        target: usize,
        op: Op,
        operands: [Operand; MAX_ARITY],
    },
    /// Reads the number out and makes a small constant of it.
    Read {
        target: usize,
        value: Operand,
    },
    If {
        comparison: Op,
        left: Operand,
        right: Operand,
        then: Vec<Statement>,
        otherwise: Vec<Statement>,
    },
    Repeat {
        times: u32,
        body: Vec<Statement>,
    },
}

impl Program {
    /// The number of active inputs.
    pub fn active(&self) -> usize {
        self.active
    }

    /// The number of inactive inputs.
    pub fn inactive(&self) -> usize {
        self.inactive
    }

    /// The result at these inputs; missing ones are NaN.
    pub fn eval<S: Scalar>(&self, active: &[S], inactive: &[S]) -> S {
        let locals = vec![S::constant(0.0); self.locals.max(1)];
        let mut run = Run { active, inactive, locals, tame: self.tame };
        run.block(&self.body);
        run.locals[0]
    }
}

struct Run<'a, S> {
    active: &'a [S],
    inactive: &'a [S],
    locals: Vec<S>,
    tame: bool,
}

impl<S: Scalar> Run<'_, S> {
    fn block(&mut self, statements: &[Statement]) {
        for statement in statements {
            self.statement(statement);
        }
    }

    fn statement(&mut self, statement: &Statement) {
        match statement {
            &Statement::Assign { target, op, operands } => {
                let args = operands.map(|operand| self.operand(operand));
                self.locals[target] = if self.tame { tame(op, args) } else { S::apply(op, args) };
            }
            &Statement::Read { target, value } => {
                let number = S::apply(Op::Floor, [self.operand(value); MAX_ARITY]).read();
                let small = if number.abs() < 3.0 { number } else { 0.0 };
                self.locals[target] = S::constant(small);
            }
            Statement::If { comparison, left, right, then, otherwise } => {
                let (left, right) = (self.operand(*left), self.operand(*right));
                let holds = S::compare(*comparison, left, right);
                self.block(if holds { then } else { otherwise });
            }
            Statement::Repeat { times, body } => (0..*times).for_each(|_| self.block(body)),
        }
    }

    fn operand(&self, operand: Operand) -> S {
        let input = |inputs: &[S], i| inputs.get(i).copied().unwrap_or(S::constant(f64::NAN));
        match operand {
            Operand::Active(i) => input(self.active, i),
            Operand::Inactive(i) => input(self.inactive, i),
            Operand::Local(i) => self.locals[i],
            Operand::Constant(value) => S::constant(value),
        }
    }
}

/// The value of `op` at members of its domain made from `args`, made small
/// where the primitive may yield large values.
fn tame<S: Scalar>(op: Op, args: [S; MAX_ARITY]) -> S {
    let domains = domain(op);
    let mut members = args;
    for (i, arg) in members.iter_mut().enumerate().take(op.arity()) {
        *arg = member(domains[i], *arg);
    }
    let y = S::apply(op, members);
    if keeps_small(op) {
        return y;
    }
    // y / √(1 + y²), without calls, so that long stretches stay in registers.
    let one = S::constant(1.0);
    let square = S::apply(Op::MulAdd, [y, y, one]);
    let root = S::apply(Op::Sqrt, [square; MAX_ARITY]);
    S::apply(Op::Div, [y, root, root])
}

/// [`Domain::member`] on a scalar.
fn member<S: Scalar>(domain: Domain, x: S) -> S {
    let add = |a, b: f64| S::apply(Op::Add, [a, S::constant(b), a]);
    let abs = || S::apply(Op::Abs, [x; MAX_ARITY]);
    match domain {
        Domain::Real | Domain::Integer => x,
        Domain::NonZero => {
            let shift = S::apply(Op::CopySign, [S::constant(0.5), x, x]);
            S::apply(Op::Add, [x, shift, shift])
        }
        Domain::NonNegative | Domain::Positive => add(abs(), 0.25),
        Domain::Unit | Domain::OpenUnit => {
            let sin = S::apply(Op::Sin, [x; MAX_ARITY]);
            S::apply(Op::Mul, [S::constant(0.9), sin, sin])
        }
        Domain::AboveMinusOne => add(abs(), -0.75),
        Domain::AtLeastOne => add(abs(), 1.25),
    }
}

/// Whether the result of `op` is small because its operands are.
fn keeps_small(op: Op) -> bool {
    op.is_comparison()
        || matches!(op, Op::Neg | Op::Abs | Op::Signum | Op::CopySign | Op::Min | Op::Max)
        || matches!(op, Op::Floor | Op::Ceil | Op::Round | Op::Trunc | Op::Fract | Op::Select)
        || matches!(op, Op::Sin | Op::Cos | Op::Atan | Op::Asin | Op::Acos | Op::Atan2 | Op::Tanh)
        || matches!(op, Op::Sqrt | Op::Cbrt | Op::Ln1p | Op::Asinh | Op::Recip)
}

impl fmt::Display for Operand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Operand::Active(i) => write!(f, "x{i}"),
            Operand::Inactive(i) => write!(f, "d{i}"),
            Operand::Local(i) => write!(f, "t{i}"),
            Operand::Constant(value) => write!(f, "{value:?}"),
        }
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Program { active, inactive, locals, .. } = self;
        let manner = if self.tame { "tame" } else { "wild" };
        writeln!(f, "{manner} program active {active} inactive {inactive} locals {locals}")?;
        write_block(&self.body, 1, f)?;
        writeln!(f, "  return t0")
    }
}

fn write_block(block: &[Statement], depth: usize, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let indent = "  ".repeat(depth);
    for statement in block {
        match statement {
            Statement::Assign { target, op, operands } => {
                write!(f, "{indent}t{target} = {op}")?;
                operands.iter().take(op.arity()).try_for_each(|operand| write!(f, " {operand}"))?;
                writeln!(f)?;
            }
            Statement::Read { target, value } => writeln!(f, "{indent}t{target} = read {value}")?,
            Statement::If { comparison, left, right, then, otherwise } => {
                writeln!(f, "{indent}if {comparison} {left} {right} {{")?;
                write_block(then, depth + 1, f)?;
                writeln!(f, "{indent}}} else {{")?;
                write_block(otherwise, depth + 1, f)?;
                writeln!(f, "{indent}}}")?;
            }
            Statement::Repeat { times, body } => {
                writeln!(f, "{indent}repeat {times} {{")?;
                write_block(body, depth + 1, f)?;
                writeln!(f, "{indent}}}")?;
            }
        }
    }
    Ok(())
}
