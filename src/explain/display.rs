//! Display form: scalar recurrences as the formula aⁿ·p + b·(aⁿ-1)/(a-1), and all calls accepted,
//! so that fallback versions of loops are not shown.

use crate::entity::Entity;
use crate::numeric::{AffineMap, Instruction, Program, Routine, Trips};
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
        def if is_acceptance(graph, node) => {
            let accepted = match def {
                Def::Call(call) => {
                    let CallData { routine, args } = &graph.calls[call];
                    let args = args.iter().map(|&arg| rebuild.copied(arg)).collect();
                    rebuild.builder.call(routine, args)
                }
                Def::Apply(op, [a, b, _]) => {
                    let args = [a, b].map(|arg| rebuild.copied(arg));
                    rebuild.builder.apply(op, &args)
                }
                _ => return None,
            };
            rebuild.builder.assume(accepted, true);
            Some(accepted)
        }
        Def::Result(..) | Def::Apply(Op::Attach, _) => formula(rebuild, node),
        _ => None,
    });
    eliminate_dead_code(&display)
}

/// Builds the formulas of a routine as nodes.
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
            let node = match *instruction {
                // For a double-double the high-order word.
                Instruction::Input(input)
                | Instruction::Rounded(input)
                | Instruction::Bounded(input) => self.rebuild.copied(self.args[input as usize]),
                Instruction::Constant(number) => self.rebuild.builder.constant(number),
                Instruction::Folded(number) => self.rebuild.builder.constant(number.hi),
                Instruction::Apply(op, args) => {
                    self.apply(op, args.map(|slot| slots[slot.index()]))
                }
                Instruction::Power(ref inner) => {
                    let powers = self.powers(&slots, &inner.map, Trips::Constant(inner.trips))?;
                    slots.extend(powers);
                    continue;
                }
            };
            slots.push(node);
        }
        Some(slots)
    }

    /// `node` minus one; for r + 1 that is r.
    fn minus_one(&mut self, node: Node, one: Node) -> Node {
        match self.rebuild.builder.graph().nodes[node].def {
            Def::Apply(Op::Add, [a, b, _]) if b == one => a,
            Def::Apply(Op::Add, [a, b, _]) if a == one => b,
            _ => self.apply(Op::Sub, [node, one]),
        }
    }

    /// aⁿ and b·(aⁿ - 1)/(a - 1), of a map of one state.
    fn powers(&mut self, slots: &[Node], map: &AffineMap, trips: Trips) -> Option<[Node; 2]> {
        let ([a], [b]) = (map.matrix(), map.offset()) else { return None };
        let zero = self.rebuild.builder.constant(0.0);
        let [a, b] = [a, b].map(|slot| slot.map_or(zero, |slot| slots[slot.index()]));
        let (count, op) = match trips {
            Trips::Constant(count) => {
                let op = if count < 1 << 30 { Op::Powi } else { Op::Powf };
                (self.rebuild.builder.constant(count as f64), op)
            }
            Trips::Input(input) => (self.rebuild.copied(self.args[input as usize]), Op::Powf),
        };
        let power = self.apply(op, [a, count]);
        let one = self.rebuild.builder.constant(1.0);
        let [above, below] = [power, a].map(|number| self.minus_one(number, one));
        let sum = if a == one { count } else { self.apply(Op::Div, [above, below]) };
        Some([power, if b == zero { zero } else { self.apply(Op::Mul, [b, sum]) }])
    }
}

/// The formula of `node`, if it is the value of a scalar recurrence or of a polynomial, with or
/// without attached partials.
fn formula(rebuild: &mut Rebuild<'_>, mut node: Node) -> Option<Node> {
    let graph = rebuild.graph();
    while let Def::Apply(Op::Attach, [value, ..]) = graph.nodes[node].def {
        node = value;
    }
    let Def::Result(call, number) = graph.nodes[node].def else { return None };
    let Def::Call(call) = graph.nodes[call].def else { return None };
    let CallData { routine, args } = &graph.calls[call];
    let mut formulas = Formulas { rebuild, args };
    match &**routine {
        _ if routine.value_index(0) != number as usize => None,
        Routine::Moments(_) | Routine::Custom(_) => None,
        Routine::Polynomial(polynomial) => {
            let slots = formulas.slots(polynomial.program())?;
            slots.get(polynomial.value().index()).copied()
        }
        Routine::AffinePower(power) => {
            let slots = formulas.slots(power.program())?;
            let start = slots[power.start().first()?.index()];
            let [ratio, sum] = formulas.powers(&slots, power.map(), power.trips())?;
            let from_start = formulas.apply(Op::Mul, [ratio, start]);
            let is_driven = power.map().offset() != [None];
            Some(if is_driven { formulas.apply(Op::Add, [from_start, sum]) } else { from_start })
        }
    }
}
