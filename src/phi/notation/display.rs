//! Display forms: graphs for people, without what is there for rounding alone. Closed forms stand
//! without the loops that serve where they are rejected, those of one state as formulas.

use crate::entity::Entity;
use crate::numeric::{AffineMap, Instruction, Program, Routine, Trips};
use crate::op::Op;
use crate::ssa::{
    CallData, Def, Folding, Graph, Node, Rebuild, eliminate_dead_code, is_acceptance, rebuild,
};

/// The display form of `graph`.
pub(crate) fn display_form(graph: &Graph) -> Graph {
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

/// The routine of one state, or of a polynomial, whose value `node` is, maybe with partials attached, and its operands.
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
    };
    let is_scalar = |instruction: &Instruction| match instruction {
        Instruction::Power(power) => power.map.states() == 1,
        _ => true,
    };
    let is_value = routine.value_index(0) == number as usize;
    (is_value && states == 1 && program.instructions().iter().all(is_scalar))
        .then_some((routine, args))
}

/// The value of `routine`, a recurrence of one state or a polynomial, as a formula.
fn formula(rebuild: &mut Rebuild<'_>, routine: &Routine, args: &[Node]) -> Option<Node> {
    let power = match routine {
        Routine::AffinePower(power) => power,
        Routine::Polynomial(polynomial) => {
            let slots = slots(rebuild, polynomial.program(), args)?;
            return slots.get(polynomial.value().index()).copied();
        }
    };
    let slots = slots(rebuild, power.program(), args)?;
    let (ratio, sum) = powers(rebuild, power.map(), power.trips(), &slots, args)?;
    let start = slots[power.start().first()?.index()];
    let from_start = rebuild.builder.apply(Op::Mul, &[ratio, start]);
    Some(match sum {
        Some(sum) => rebuild.builder.apply(Op::Add, &[from_start, sum]),
        None => from_start,
    })
}

/// The values of the slots of a program.
fn slots(rebuild: &mut Rebuild<'_>, program: &Program, args: &[Node]) -> Option<Vec<Node>> {
    let mut slots: Vec<Node> = Vec::new();
    for instruction in program.instructions() {
        let mut apply = |op, a: crate::numeric::Slot, b: crate::numeric::Slot| {
            rebuild.builder.apply(op, &[slots[a.index()], slots[b.index()]])
        };
        let node = match *instruction {
            Instruction::Input(input) => rebuild.copied(*args.get(input as usize)?),
            Instruction::Constant(number) => rebuild.builder.constant(number),
            Instruction::Folded(number) => rebuild.builder.constant(number.hi),
            Instruction::Add(a, b) => apply(Op::Add, a, b),
            Instruction::Sub(a, b) => apply(Op::Sub, a, b),
            Instruction::Mul(a, b) => apply(Op::Mul, a, b),
            Instruction::Div(a, b) => apply(Op::Div, a, b),
            Instruction::Neg(a) => rebuild.builder.apply(Op::Neg, &[slots[a.index()]]),
            Instruction::Power(ref inner) => {
                let (ratio, sum) = powers(rebuild, &inner.map, inner.trips, &slots, args)?;
                slots.push(ratio);
                sum.unwrap_or_else(|| rebuild.builder.constant(0.0))
            }
        };
        slots.push(node);
    }
    Some(slots)
}

/// aⁿ, and b·(aⁿ - 1)/(a - 1) if b is not zero.
fn powers(
    rebuild: &mut Rebuild<'_>,
    map: &AffineMap,
    trips: Trips,
    slots: &[Node],
    args: &[Node],
) -> Option<(Node, Option<Node>)> {
    let zero = rebuild.builder.constant(0.0);
    let slot = |slot: Option<crate::numeric::Slot>| slot.map(|slot| slots[slot.index()]);
    let (a, b) = (slot(*map.matrix().first()?).unwrap_or(zero), slot(*map.offset().first()?));
    let count = match trips {
        Trips::Constant(count) => rebuild.builder.constant(count as f64),
        Trips::Input(input) => rebuild.copied(*args.get(input as usize)?),
    };
    let is_small = matches!(trips, Trips::Constant(count) if count < 1 << 30);
    let op = if is_small { Op::Powi } else { Op::Powf };
    let builder = &mut rebuild.builder;
    let power = builder.apply(op, &[a, count]);
    let Some(b) = b else { return Some((power, None)) };
    if builder.graph().constant(a) == Some(1.0) {
        let sum = builder.apply(Op::Mul, &[count, b]);
        return Some((power, Some(sum)));
    }
    let one = builder.constant(1.0);
    let [above, below] = [power, a].map(|from| builder.apply(Op::Sub, &[from, one]));
    let quotient = builder.apply(Op::Div, &[above, below]);
    Some((power, Some(builder.apply(Op::Mul, &[b, quotient]))))
}

/// What a result of a routine is, in words: a component of the state, or a partial derivative of
/// it by what `name` says of an operand.
pub(super) fn result_text(
    routine: &Routine,
    number: u32,
    name: impl Fn(usize) -> String,
) -> String {
    let Routine::AffinePower(power) = routine else { return "…".to_owned() };
    let n = match power.trips() {
        Trips::Constant(count) => count.to_string(),
        Trips::Input(input) => name(input as usize),
    };
    let map = power.map();
    let sum = match map.offset().iter().any(Option::is_some) {
        true => format!(" + Σ_{{j<{n}}} A^j·b"),
        false => String::new(),
    };
    let (stride, number) = (1 + power.differentiated().len(), (number as usize).saturating_sub(1));
    let row = power.outputs().get(number / stride).map_or(0, |&row| row + 1);
    let component = format!("(A^{n}·p{sum})_{row}");
    match (number % stride).checked_sub(1).and_then(|at| power.differentiated().get(at)) {
        Some(&input) => format!("∂{component}/∂{}", name(input as usize)),
        None => component,
    }
}
