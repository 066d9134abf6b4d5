//! A reference of twice the digits: straight graphs run on unevaluated sums of
//! two floats.

use phigrad::op::Op;
use phigrad::ssa::{Def, End, Graph, Item};

/// The sum of two floats, the second at most half an ulp of the first.
pub type Pair = (f64, f64);

fn two_sum(a: f64, b: f64) -> Pair {
    let sum = a + b;
    let part = sum - a;
    (sum, (a - (sum - part)) + (b - part))
}

pub fn add(a: Pair, b: Pair) -> Pair {
    let (sum, rest) = two_sum(a.0, b.0);
    let (low, last) = two_sum(a.1, b.1);
    let (sum, rest) = two_sum(sum, rest + low);
    two_sum(sum, rest + last)
}

pub fn sub(a: Pair, b: Pair) -> Pair {
    add(a, (-b.0, -b.1))
}

pub fn mul(a: Pair, b: Pair) -> Pair {
    let product = a.0 * b.0;
    let rest = a.0.mul_add(b.0, -product);
    two_sum(product, rest + (a.0 * b.1 + a.1 * b.0))
}

pub fn div(a: Pair, b: Pair) -> Pair {
    let first = a.0 / b.0;
    let rest = sub(a, mul(b, (first, 0.0)));
    let second = rest.0 / b.0;
    let rest = sub(rest, mul(b, (second, 0.0)));
    add(two_sum(first, second), (rest.0 / b.0, 0.0))
}

/// The outputs of `graph`, which is one block of sums, products and quotients;
/// guards are passed over.
pub fn precisely(graph: &Graph, point: &[f64]) -> Vec<Pair> {
    let mut values: Vec<Pair> = Vec::new();
    let at = |node: phigrad::ssa::Node| node.to_string()[1..].parse::<usize>().unwrap();
    for data in graph.nodes.values() {
        let arg = |number: usize| match data.def {
            Def::Apply(_, args) => values[at(args[number])],
            _ => unreachable!(),
        };
        let value = match data.def {
            Def::Input(number) => (point[number as usize], 0.0),
            Def::Const(bits) => (f64::from_bits(bits), 0.0),
            Def::Apply(Op::Add, _) => add(arg(0), arg(1)),
            Def::Apply(Op::Sub, _) => sub(arg(0), arg(1)),
            Def::Apply(Op::Mul, _) => mul(arg(0), arg(1)),
            Def::Apply(Op::Div, _) => div(arg(0), arg(1)),
            Def::Apply(Op::Recip, _) => div((1.0, 0.0), arg(0)),
            Def::Apply(Op::Neg, _) => (-arg(0).0, -arg(0).1),
            Def::Apply(Op::Powi, _) => {
                let power = |all: Pair, _: u32| mul(all, arg(0));
                (0..arg(1).0 as u32).fold((1.0, 0.0), power)
            }
            Def::Apply(op, _) if op.is_comparison() || op == Op::Abs => (f64::NAN, 0.0),
            other => panic!("no reference for {other:?}"),
        };
        values.push(value);
    }
    let root = &graph.blocks[graph.root()];
    assert!(root.items.iter().all(|item| !matches!(item, Item::Region(_))));
    let End::Return(outputs) = &root.end else { panic!("branches") };
    outputs.iter().map(|&output| values[at(output)]).collect()
}
