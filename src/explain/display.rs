//! Display forms of routines: a recurrence of one state becomes the formula aⁿ·p + b·(aⁿ-1)/(a-1),
//! and calls are assumed to be accepted, so that no loop is shown as their fallback.

use crate::entity::Entity;
use crate::numeric::{AffineMap, AffinePower, Instruction, Program, Routine, Trips};
use crate::op::Op;
use crate::ssa::{
    CallData, Def, Folding, Graph, Node, Rebuild, eliminate_dead_code, is_acceptance, rebuild,
};

/// The display form of `graph`.
pub(super) fn display_form(graph: &Graph) -> Graph {
    if graph.calls.is_empty() {
        return graph.clone();
    }
    let display = rebuild(graph, Folding::Real, |rebuild, node| match graph.nodes[node].def {
        Def::Call(call) => {
            let CallData { routine, args } = &graph.calls[call];
            let args = args.iter().map(|&arg| rebuild.copied(arg)).collect();
            let accepted = rebuild.builder.call(routine, args);
            rebuild.builder.assume(accepted, true);
            Some(accepted)
        }
        Def::Apply(Op::Mul, [a, b, _]) if is_acceptance(graph, node) => {
            let args = [a, b].map(|arg| rebuild.copied(arg));
            let accepted = rebuild.builder.apply(Op::Mul, &args);
            rebuild.builder.assume(accepted, true);
            Some(accepted)
        }
        Def::Apply(Op::Attach, [value, ..]) if scalar_value(graph, value).is_some() => {
            Some(rebuild.copied(value))
        }
        Def::Result(..) => {
            let (routine, args) = scalar_value(graph, node)?;
            formula(rebuild, routine, args)
        }
        _ => None,
    });
    eliminate_dead_code(&display)
}

/// The routine of one state or of a polynomial whose value `node` is, maybe with partials
/// attached, and its operands.
fn scalar_value(graph: &Graph, mut node: Node) -> Option<(&Routine, &[Node])> {
    while let Def::Apply(Op::Attach, [value, ..]) = graph.nodes[node].def {
        node = value;
    }
    let Def::Result(of, number) = graph.nodes[node].def else { return None };
    let Def::Call(call) = graph.nodes[of].def else { return None };
    let CallData { routine, args } = &graph.calls[call];
    let (program, states) = match &**routine {
        Routine::AffinePower(power) => (power.program(), power.map().states()),
        Routine::Polynomial(polynomial) => (polynomial.program(), 1),
        Routine::Moments(_) => return None,
    };
    let is_scalar = |instruction: &Instruction| match instruction {
        Instruction::Power(power) => power.map.states() == 1,
        _ => true,
    };
    let is_value = routine.value_index(0) == number as usize;
    (is_value && states == 1 && program.instructions().iter().all(is_scalar))
        .then_some((routine, args))
}

/// The recurrence that `routine` computes.
pub(super) fn affine_power(routine: &Routine) -> Option<&AffinePower> {
    match routine {
        Routine::AffinePower(power) => Some(power),
        Routine::Polynomial(_) | Routine::Moments(_) => None,
    }
}

/// Formulas as nodes.
struct Formulas<'r, 'g> {
    rebuild: &'r mut Rebuild<'g>,
    args: &'r [Node],
}

impl Formulas<'_, '_> {
    fn apply(&mut self, op: Op, args: [Node; 2]) -> Node {
        self.rebuild.builder.apply(op, &args[..op.arity()])
    }

    /// The values of the slots of a program.
    fn slots(&mut self, program: &Program) -> Option<Vec<Node>> {
        let mut slots: Vec<Node> = Vec::new();
        for instruction in program.instructions() {
            let (op, a, b) = match *instruction {
                // The low-order word is not shown.
                Instruction::Input(input) | Instruction::Bounded(input) => {
                    slots.push(self.rebuild.copied(*self.args.get(input as usize)?));
                    continue;
                }
                Instruction::Constant(number) => {
                    slots.push(self.rebuild.builder.constant(number));
                    continue;
                }
                Instruction::Folded(number) => {
                    slots.push(self.rebuild.builder.constant(number.hi));
                    continue;
                }
                Instruction::Power(ref inner) => {
                    let (ratio, sum) = self.powers(&slots, &inner.map, inner.trips)?;
                    let zero = self.rebuild.builder.constant(0.0);
                    slots.extend([ratio, sum.unwrap_or(zero)]);
                    continue;
                }
                Instruction::Add(a, b) => (Op::Add, a, b),
                Instruction::Sub(a, b) => (Op::Sub, a, b),
                Instruction::Mul(a, b) => (Op::Mul, a, b),
                Instruction::Div(a, b) => (Op::Div, a, b),
                Instruction::Neg(a) => (Op::Neg, a, a),
            };
            slots.push(self.apply(op, [a, b].map(|slot| slots[slot.index()])));
        }
        Some(slots)
    }

    /// A number less 1; of 1 + r that is r.
    fn less_one(&mut self, node: Node) -> Node {
        let one = self.rebuild.builder.constant(1.0);
        match self.rebuild.builder.graph().nodes[node].def {
            Def::Apply(Op::Add, [a, b, _]) if b == one => a,
            Def::Apply(Op::Add, [a, b, _]) if a == one => b,
            _ => self.apply(Op::Sub, [node, one]),
        }
    }

    /// aⁿ, and b·(aⁿ - 1)/(a - 1) if b is not zero, of a map of one state.
    fn powers(
        &mut self,
        slots: &[Node],
        map: &AffineMap,
        trips: Trips,
    ) -> Option<(Node, Option<Node>)> {
        let ([a], [b]) = (map.matrix(), map.offset()) else { return None };
        let zero = self.rebuild.builder.constant(0.0);
        let a = a.map_or(zero, |slot| slots[slot.index()]);
        let (count, op) = match trips {
            Trips::Constant(count) => {
                let op = if count < 1 << 30 { Op::Powi } else { Op::Powf };
                (self.rebuild.builder.constant(count as f64), op)
            }
            Trips::Input(input) => (self.rebuild.copied(*self.args.get(input as usize)?), Op::Powf),
        };
        let power = self.apply(op, [a, count]);
        let Some(b) = b.map(|slot| slots[slot.index()]) else { return Some((power, None)) };
        let (above, below) = (self.less_one(power), self.less_one(a));
        let is_one = self.rebuild.builder.graph().constant(a) == Some(1.0);
        let sum = if is_one { count } else { self.apply(Op::Div, [above, below]) };
        Some((power, Some(self.apply(Op::Mul, [b, sum]))))
    }
}

/// The value of `routine`, a recurrence of one state or a polynomial, as a formula.
fn formula(rebuild: &mut Rebuild<'_>, routine: &Routine, args: &[Node]) -> Option<Node> {
    let mut formulas = Formulas { rebuild, args };
    let power = match routine {
        Routine::AffinePower(power) => power,
        Routine::Polynomial(polynomial) => {
            let slots = formulas.slots(polynomial.program())?;
            return slots.get(polynomial.value().index()).copied();
        }
        Routine::Moments(_) => return None,
    };
    let slots = formulas.slots(power.program())?;
    let start = slots[power.start().first()?.index()];
    let (ratio, sum) = formulas.powers(&slots, power.map(), power.trips())?;
    let from_start = formulas.apply(Op::Mul, [ratio, start]);
    Some(match sum {
        Some(sum) => formulas.apply(Op::Add, [from_start, sum]),
        None => from_start,
    })
}
