//! Data programs: straight-line programs that compute the coefficients of an iteration's terms
//! from data.

use hashbrown::HashMap;

use crate::entity::Entity;
use crate::numeric::double_double::Bounded;
use crate::op::{Op, eval};
use crate::ssa::{Array, Node, Table};

/// The index of a step of a data program.
pub(super) type Datum = usize;

/// A step of a data program.
#[derive(Clone, Debug)]
pub(super) enum Step {
    Number(f64),
    /// The coordinate of the expansion point for this variable.
    ExpansionPoint(usize),
    /// The iteration number.
    Iteration,
    /// An element of a table; the index moves with the iteration.
    Element {
        table: Table,
        base: i64,
        stride: i64,
    },
    /// An inactive input; the index moves with the iteration. Translation validation uses the
    /// numbers of `sample`.
    InactiveInput {
        array: Array,
        sample: Table,
        base: i64,
        stride: i64,
    },
    /// An inactive node that is visible before the loop around. Translation validation uses
    /// [`sample_of`] it.
    LiveIn(Node),
    Apply(Op, [Datum; 3]),
}

/// A straight-line program over data. Equal applications are shared; operations with zero and one
/// are folded.
#[derive(Default)]
pub(super) struct Data {
    steps: Vec<Step>,
    numbers: HashMap<u64, Datum>,
    applications: HashMap<(Op, [Datum; 3]), Datum>,
}

impl Data {
    pub(super) fn steps(&self) -> &[Step] {
        &self.steps
    }

    pub(super) fn push(&mut self, step: Step) -> Datum {
        self.steps.push(step);
        self.steps.len() - 1
    }

    pub(super) fn constant(&mut self, number: f64) -> Datum {
        if let Some(&datum) = self.numbers.get(&number.to_bits()) {
            return datum;
        }
        let datum = self.push(Step::Number(number));
        self.numbers.insert(number.to_bits(), datum);
        datum
    }

    /// The constant that `datum` is, if it is one.
    pub(super) fn number(&self, datum: Datum) -> Option<f64> {
        match self.steps[datum] {
            Step::Number(number) => Some(number),
            _ => None,
        }
    }

    /// True if a step changes from iteration to iteration.
    pub(super) fn changes(&self) -> bool {
        let has_live_ins = |step: &Step| {
            matches!(step, Step::Iteration | Step::Element { .. } | Step::InactiveInput { .. })
        };
        self.steps.iter().any(has_live_ins)
    }

    /// True if a step is known only in a call.
    pub(super) fn has_live_ins(&self) -> bool {
        self.steps.iter().any(|step| matches!(step, Step::InactiveInput { .. } | Step::LiveIn(_)))
    }

    pub(super) fn apply(&mut self, op: Op, args: &[Datum]) -> Datum {
        let numbers = [0, 1].map(|at| args.get(at).and_then(|&arg| self.number(arg)));
        match (op, numbers) {
            (Op::Add, [Some(0.0), _]) | (Op::Mul, [Some(1.0), _]) => return args[1],
            (Op::Add | Op::Sub, [_, Some(0.0)]) | (Op::Mul | Op::Div, [_, Some(1.0)]) => {
                return args[0];
            }
            (Op::Mul, [Some(0.0), _] | [_, Some(0.0)]) => return self.constant(0.0),
            (Op::Neg, [Some(number), _]) => return self.constant(-number),
            // A product is computed in double-double, a power is not.
            (Op::Powi, [_, Some(2.0)]) => return self.apply(Op::Mul, &[args[0], args[0]]),
            _ => {}
        }
        let mut key = core::array::from_fn(|at| args.get(at).copied().unwrap_or(0));
        if op.commutes() && key[1] < key[0] {
            key.swap(0, 1);
        }
        if let Some(&datum) = self.applications.get(&(op, key)) {
            return datum;
        }
        let datum = self.push(Step::Apply(op, key));
        self.applications.insert((op, key), datum);
        datum
    }

    /// The sign of each step in all of `count` iterations: `Some(true)` if it is never negative,
    /// `Some(false)` if it is never positive. Live-ins and inactive inputs have an unknown sign.
    pub(super) fn signs(&self, count: u64) -> Vec<Option<bool>> {
        let mut signs: Vec<Option<bool>> = Vec::new();
        for step in &self.steps {
            let sign = match step {
                Step::Number(number) if number.is_nan() => None,
                Step::Number(number) => Some(*number >= 0.0),
                Step::Iteration => Some(true),
                Step::Element { table, base, stride } => {
                    let element = |iteration: u64| {
                        let index = usize::try_from(base + stride * iteration as i64).ok();
                        index.and_then(|index| table.get(index)).map(|&bits| f64::from_bits(bits))
                    };
                    let all = |is: fn(f64) -> bool| (0..count).all(|i| element(i).is_some_and(is));
                    let is_datum = [all(|x| x >= 0.0), all(|x| x <= 0.0)];
                    is_datum.iter().position(|&is| is).map(|at| at == 0)
                }
                Step::ExpansionPoint(_) | Step::InactiveInput { .. } | Step::LiveIn(_) => None,
                Step::Apply(op, [a, b, c]) => {
                    let equal = |one: Option<bool>, other| one.filter(|_| one == other);
                    match op {
                        Op::Mul => self.product_sign(*a, *b, &signs),
                        Op::Abs | Op::Exp | Op::Sqrt => Some(true),
                        Op::Div => signs[*a].zip(signs[*b]).map(|(a, b)| a == b),
                        Op::Add => equal(signs[*a], signs[*b]),
                        Op::Sub => equal(signs[*a], signs[*b].map(|sign| !sign)),
                        Op::Neg => signs[*a].map(|sign| !sign),
                        Op::Select => equal(signs[*b], signs[*c]),
                        _ => None,
                    }
                }
            };
            signs.push(sign);
        }
        signs
    }

    /// The sign of `a · b` from the signs of their factors; squares are never negative.
    fn product_sign(&self, a: Datum, b: Datum, signs: &[Option<bool>]) -> Option<bool> {
        /// The largest number of factors.
        const MAX_FACTORS: usize = 16;
        let (mut pending, mut single) = (vec![a, b], Vec::new());
        while let Some(factor) = pending.pop() {
            match self.steps[factor] {
                Step::Apply(Op::Mul, [a, b, _]) => pending.extend([a, b]),
                _ => match single.iter().position(|&known| known == factor) {
                    Some(at) => _ = single.swap_remove(at),
                    None => single.push(factor),
                },
            }
            if pending.len() + single.len() > MAX_FACTORS {
                return None;
            }
        }
        single.into_iter().try_fold(true, |sign, factor| Some(sign == signs[factor]?))
    }

    /// Computes all steps of an iteration around `expansion_point`, with samples for live-ins and
    /// inactive inputs.
    pub(super) fn evaluate(
        &self,
        iteration: u64,
        expansion_point: &[f64],
        values: &mut Vec<Bounded>,
    ) {
        values.clear();
        for step in &self.steps {
            let value = match step {
                Step::Number(number) => Bounded::exact(*number),
                Step::ExpansionPoint(variable) => {
                    Bounded::exact(expansion_point.get(*variable).copied().unwrap_or(0.0))
                }
                Step::Iteration => Bounded::exact(iteration as f64),
                Step::Element { table, base, stride }
                | Step::InactiveInput { sample: table, base, stride, .. } => {
                    let index = usize::try_from(base + stride * iteration as i64).ok();
                    let bits = index.and_then(|index| table.get(index));
                    Bounded::exact(bits.map_or(f64::NAN, |&bits| f64::from_bits(bits)))
                }
                Step::LiveIn(node) => Bounded::exact(sample_of(*node)),
                Step::Apply(op, args) => applied(*op, args.map(|arg| values[arg])),
            };
            values.push(value);
        }
    }
}

/// Applies `op`, in double-double if it is an arithmetic operation or the exponential.
fn applied(op: Op, [a, b, c]: [Bounded; 3]) -> Bounded {
    match op {
        Op::Add => a + b,
        Op::Sub => a - b,
        Op::Mul => a * b,
        Op::Div => a / b,
        Op::Neg => -a,
        Op::MulAdd => a * b + c,
        Op::Select if a.hi != 0.0 => b,
        Op::Select => c,
        Op::Recip => Bounded::ONE / a,
        Op::Exp => exponential(a),
        // Rounded as in the loop.
        _ => Bounded::exact(eval(op, [a.hi, b.hi, c.hi])),
    }
}

/// The exponential function, also out of the range of [`Bounded::exp`].
fn exponential(a: Bounded) -> Bounded {
    const SQUARINGS: i32 = 3;
    if a.hi < -2000.0 {
        return Bounded::new((0.0, 0.0), f64::MIN_POSITIVE);
    }
    let power = (a * Bounded::exact(0.5f64.powi(SQUARINGS))).exp();
    (0..SQUARINGS).fold(power, |power, _| power * power)
}

/// Sample numbers of moderate size for the inputs of an array.
pub(super) fn sample(array: Array, count: u32) -> Table {
    let number = |at: u32| (1.7 * f64::from(at) + array.index() as f64).sin() + 0.25;
    (0..count).map(|at| number(at).to_bits()).collect()
}

/// A sample number of moderate size for a node.
pub(super) fn sample_of(node: Node) -> f64 {
    (1.3 * node.index() as f64).sin() + 1.5
}
