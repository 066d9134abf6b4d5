//! Graphs evaluated in double-double, as a reference.

use phigrad::internals::entity::PrimaryMap;
use phigrad::internals::op::{Op, eval};
use phigrad::internals::ssa::{Def, End, Graph, Item, Node};

use super::double_double::DoubleDouble;

const ZERO: DoubleDouble = DoubleDouble(0.0, 0.0);
const ONE: DoubleDouble = DoubleDouble(1.0, 0.0);

/// `op` of its operands; `None` if it is not in the list.
fn applied(op: Op, [a, b]: [DoubleDouble; 2]) -> Option<DoubleDouble> {
    Some(match op {
        Op::Add => a + b,
        Op::Sub => a - b,
        Op::Mul => a * b,
        Op::Div => a / b,
        Op::Recip => ONE / a,
        Op::Neg => -a,
        Op::Exp => a.exp(),
        Op::Ln => a.ln(),
        Op::Sqrt => a.sqrt(),
        Op::Sin => a.sin_cos().0,
        Op::Cos => a.sin_cos().1,
        Op::Powi => (0..b.0 as u32).fold(ONE, |all, _| all * a),
        _ => return None,
    })
}

/// The outputs of `graph` in double-double. It is one block of operations of the list above; guards
/// are ignored.
pub fn evaluate_block(graph: &Graph, point: &[f64]) -> Vec<DoubleDouble> {
    let mut values: PrimaryMap<Node, DoubleDouble> = PrimaryMap::filled(ZERO, graph.nodes.len());
    for (node, data) in graph.nodes.iter() {
        let value = match data.def {
            Def::Input(number) => DoubleDouble::from(point[number as usize]),
            Def::Const(bits) => DoubleDouble::from(f64::from_bits(bits)),
            Def::Apply(op, _) if op.is_comparison() || op == Op::Abs => {
                DoubleDouble::from(f64::NAN)
            }
            Def::Apply(op, [a, b, _]) => applied(op, [values[a], values[b]])
                .unwrap_or_else(|| panic!("no reference for {op:?}")),
            other => panic!("no reference for {other:?}"),
        };
        values[node] = value;
    }
    let root = &graph.blocks[graph.root()];
    assert!(root.items.iter().all(|item| !matches!(item, Item::Region(_))));
    let End::Return(outputs) = &root.end else { panic!("branches") };
    outputs.iter().map(|&output| values[output]).collect()
}

/// The outputs of `graph`, a tree of blocks without regions: arithmetic in double-double, other
/// functions of the rounded operands in working precision.
pub fn evaluate_tree(graph: &Graph, point: &[f64]) -> Option<Vec<f64>> {
    let mut values: PrimaryMap<Node, DoubleDouble> = PrimaryMap::filled(ZERO, graph.nodes.len());
    for (node, data) in graph.nodes.iter() {
        match data.def {
            Def::Input(number) => values[node] = DoubleDouble::from(point[number as usize]),
            Def::Const(bits) => values[node] = DoubleDouble::from(f64::from_bits(bits)),
            _ => {}
        }
    }
    let mut block = graph.root();
    loop {
        for &item in &graph.blocks[block].items {
            match item {
                Item::Node(node) => {
                    let Def::Apply(op, args) = graph.nodes[node].def else { return None };
                    let [a, b, c] = args.map(|arg| values[arg]);
                    let is_plain = matches!(op, Op::Add | Op::Sub | Op::Mul | Op::Div | Op::Neg);
                    values[node] = match applied(op, [a, b]).filter(|_| is_plain) {
                        Some(value) => value,
                        None if op == Op::MulAdd => a * b + c,
                        None => DoubleDouble::from(eval(op, [a, b, c].map(|x| x.0 + x.1))),
                    };
                }
                Item::Guard { .. } => {}
                Item::Region(_) | Item::Fill(_) | Item::Accumulate(..) | Item::Store(..) => {
                    return None;
                }
            }
        }
        block = match &graph.blocks[block].end {
            End::Return(outputs) => {
                return Some(outputs.iter().map(|&output| values[output].0).collect());
            }
            &End::Branch { condition, then, otherwise } => {
                if values[condition].0 == 0.0 {
                    otherwise
                } else {
                    then
                }
            }
            End::Open => return None,
        };
    }
}
