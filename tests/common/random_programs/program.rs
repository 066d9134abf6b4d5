//! Random programs: a tree of statements with an interpreter that is generic over the number
//! type, and a readable text form for reports of failures.

use core::fmt;
use std::collections::BTreeSet;

use super::scalar::Scalar;
use phigrad::flow::{self, Carrier, Carry, Region};
use phigrad::internals::op::{Domain, MAX_ARITY, Op, domain};

/// A program with assignments, `if`, short loops and reads, over numbered
/// inputs and local variables; made by [`Recipe::program`](super::Recipe::program).
///
/// `x0`, `x1`, … are the active inputs, `d0`, … the inactive ones and `t0`, …
/// the locals, which start at 0. A *tame* program moves each operand into the
/// domain of its primitive, without guards, and keeps results small, so that
/// its values are finite. A *wild* one takes the operands as they are.
#[derive(Clone, Debug)]
pub struct Program {
    pub(super) active: usize,
    pub(super) inactive: usize,
    pub(super) locals: usize,
    pub(super) counters: usize,
    pub(super) tame: bool,
    /// True if control flow is annotated.
    pub(super) annotated: bool,
    pub(super) body: Vec<Statement>,
}

/// An operand of an assignment.
#[derive(Clone, Copy, Debug)]
pub(super) enum Operand {
    Active(usize),
    Inactive(usize),
    Local(usize),
    Constant(f64),
}

/// A statement of a program.
#[derive(Clone, Debug)]
pub(super) enum Statement {
    Assign {
        target: usize,
        op: Op,
        operands: [Operand; MAX_ARITY],
    },
    /// Reads out the number and makes a small constant of it.
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
    /// Repeats while the comparison holds, at most `most` times.
    While {
        comparison: Op,
        left: Operand,
        right: Operand,
        most: u32,
        body: Vec<Statement>,
    },
    /// `break` or `continue` of the innermost loop.
    Jump {
        exit: bool,
    },
    /// Increments a counter, which is not traced.
    Count {
        counter: usize,
    },
    /// Assigns a constant computed from a counter.
    Number {
        target: usize,
        counter: usize,
    },
    /// Branches on a counter.
    IfCount {
        counter: usize,
        below: u64,
        then: Vec<Statement>,
    },
}

/// The control flow after a statement.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flow {
    Next,
    Break,
    Continue,
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
        let counters = vec![0; self.counters];
        let Program { tame, annotated, .. } = *self;
        let mut execution = Execution { active, inactive, locals, counters, tame, annotated };
        execution.block(&self.body);
        execution.locals[0]
    }
}

/// The state of a running program.
struct Execution<'a, S> {
    active: &'a [S],
    inactive: &'a [S],
    locals: Vec<S>,
    counters: Vec<u64>,
    tame: bool,
    annotated: bool,
}

impl<S: Scalar> Execution<'_, S> {
    fn block(&mut self, statements: &[Statement]) -> Flow {
        for statement in statements {
            let then = self.statement(statement);
            if then != Flow::Next {
                return then;
            }
        }
        Flow::Next
    }

    fn statement(&mut self, statement: &Statement) -> Flow {
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
                let region = self.annotated.then(flow::enter);
                let (left, right) = (self.operand(*left), self.operand(*right));
                let holds = S::compare(*comparison, left, right);
                let after = self.block(if holds { then } else { otherwise });
                // A jump exits the region without joining.
                if after != Flow::Next {
                    return after;
                }
                self.join(region, &[then, otherwise]);
            }
            Statement::Repeat { times, body } => self.repeat(*times, body, |_| true),
            Statement::While { comparison, left, right, most, body } => {
                self.repeat(*most, body, |execution| {
                    S::compare(*comparison, execution.operand(*left), execution.operand(*right))
                });
            }
            Statement::Jump { exit: true } => return Flow::Break,
            Statement::Jump { exit: false } => return Flow::Continue,
            Statement::Count { counter } => self.counters[*counter] += 1,
            Statement::Number { target, counter } => {
                self.locals[*target] = S::constant((self.counters[*counter] % 4) as f64 - 1.5);
            }
            Statement::IfCount { counter, below, then } => {
                let region = self.annotated.then(flow::enter);
                if self.counters[*counter] % 5 < *below {
                    let after = self.block(then);
                    if after != Flow::Next {
                        return after;
                    }
                }
                self.join(region, &[then]);
            }
        }
        Flow::Next
    }

    fn repeat(&mut self, times: u32, body: &[Statement], holds: impl Fn(&Self) -> bool) {
        let region = self.annotated.then(flow::enter);
        for _ in 0..times {
            if let Some(region) = region {
                region.item_head(|carrier| self.carry(&[body], carrier));
            }
            if !holds(self) || self.block(body) == Flow::Break {
                break;
            }
        }
        self.join(region, &[body]);
    }

    fn join(&mut self, region: Option<Region>, blocks: &[&[Statement]]) {
        if let Some(region) = region {
            flow::join(region, (), |(), carrier| self.carry(blocks, carrier));
        }
    }

    /// Hands the variables that the blocks change to `carrier`.
    fn carry(&mut self, blocks: &[&[Statement]], carrier: &mut Carrier) {
        let mut changes = Changes::default();
        blocks.iter().for_each(|block| changes.block(block));
        for local in changes.locals {
            carrier.variable("local", true);
            self.locals[local].carry(carrier);
        }
        for counter in changes.counters {
            carrier.variable("counter", true);
            self.counters[counter].carry(carrier);
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

/// The variables that statements change.
#[derive(Default)]
struct Changes {
    locals: BTreeSet<usize>,
    counters: BTreeSet<usize>,
}

impl Changes {
    fn block(&mut self, statements: &[Statement]) {
        for statement in statements {
            match statement {
                Statement::Assign { target, .. }
                | Statement::Read { target, .. }
                | Statement::Number { target, .. } => {
                    self.locals.insert(*target);
                }
                Statement::If { then, otherwise, .. } => {
                    self.block(then);
                    self.block(otherwise);
                }
                Statement::IfCount { then, .. } => self.block(then),
                Statement::Repeat { body, .. } | Statement::While { body, .. } => self.block(body),
                Statement::Count { counter } => {
                    self.counters.insert(*counter);
                }
                Statement::Jump { .. } => {}
            }
        }
    }
}

/// Applies `op` to `args` moved into its domain, and scales the result down if it may be large.
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
    // y / √(1 + y²), without calls, so that long basic blocks stay in registers.
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
        Domain::UnitInterval => {
            let sin = S::apply(Op::Sin, [x; MAX_ARITY]);
            S::apply(Op::MulAdd, [S::constant(0.45), sin, S::constant(0.5)])
        }
        Domain::AboveMinusOne => add(abs(), -0.75),
        Domain::AtLeastOne => add(abs(), 1.25),
    }
}

/// Tests whether the result of `op` is small if its operands are.
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
            Statement::While { comparison, left, right, most, body } => {
                writeln!(f, "{indent}while {comparison} {left} {right}, at most {most} {{")?;
                write_block(body, depth + 1, f)?;
                writeln!(f, "{indent}}}")?;
            }
            Statement::Jump { exit } => {
                writeln!(f, "{indent}{}", if *exit { "break" } else { "continue" })?;
            }
            Statement::Count { counter } => writeln!(f, "{indent}n{counter} += 1")?,
            Statement::Number { target, counter } => {
                writeln!(f, "{indent}t{target} = n{counter} % 4 - 1.5")?;
            }
            Statement::IfCount { counter, below, then } => {
                writeln!(f, "{indent}if n{counter} % 5 < {below} {{")?;
                write_block(then, depth + 1, f)?;
                writeln!(f, "{indent}}}")?;
            }
        }
    }
    Ok(())
}
