//! A double-double reference: straight-line graphs evaluated on unevaluated sums of two floats.

use phigrad::internals::entity::PrimaryMap;
use phigrad::internals::op::{Op, eval};
use phigrad::internals::ssa::{Def, End, Graph, Item, Node};

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

/// ln 2 and π/2.
const LN_2: Pair = (std::f64::consts::LN_2, 2.319_046_813_846_299_6e-17);
const HALF_PI: Pair = (std::f64::consts::FRAC_PI_2, 6.123_233_995_736_766e-17);

pub fn exp(x: Pair) -> Pair {
    if x.0.is_nan() || x.0.abs() >= 700.0 {
        return (x.0.exp(), 0.0);
    }
    let times = (x.0 / LN_2.0).round();
    let rest = sub(x, mul((times, 0.0), LN_2));
    // exp(x/256) - 1 by its Taylor series, then squared eight times.
    let part = (rest.0 / 256.0, rest.1 / 256.0);
    let mut term = part;
    let mut sum = part;
    for k in 2..16 {
        term = div(mul(term, part), (f64::from(k), 0.0));
        sum = add(sum, term);
    }
    for _ in 0..8 {
        sum = add((2.0 * sum.0, 2.0 * sum.1), mul(sum, sum));
    }
    let sum = add((1.0, 0.0), sum);
    let half = 2f64.powi((times / 2.0) as i32);
    let rest = 2f64.powi(times as i32 - (times / 2.0) as i32);
    (sum.0 * half * rest, sum.1 * half * rest)
}

pub fn ln(x: Pair) -> Pair {
    // Newton's method, twice.
    let first = (x.0.ln(), 0.0);
    if !first.0.is_finite() {
        return first;
    }
    let step = |y: Pair| add(y, sub(mul(x, exp((-y.0, -y.1))), (1.0, 0.0)));
    step(step(first))
}

pub fn sqrt(x: Pair) -> Pair {
    let first = x.0.sqrt();
    if first == 0.0 || !first.is_finite() {
        return (first, 0.0);
    }
    let half = |x: Pair| (0.5 * x.0, 0.5 * x.1);
    half(add((first, 0.0), div(x, (first, 0.0))))
}

/// The sine; of large numbers with fewer correct digits.
pub fn sin(x: Pair) -> Pair {
    let quarters = (x.0 / HALF_PI.0).round();
    let rest = sub(x, mul((quarters, 0.0), HALF_PI));
    let square = mul(rest, rest);
    let is_odd = quarters.rem_euclid(2.0) == 1.0;
    let (mut term, first) = if is_odd { ((1.0, 0.0), 1) } else { (rest, 2) };
    let mut sum = term;
    for k in 0..16 {
        let k = f64::from(2 * k + first);
        term = div(mul(term, square), (-k * (k + 1.0), 0.0));
        sum = add(sum, term);
    }
    let is_negative = quarters.rem_euclid(4.0) >= 2.0;
    if is_negative { (-sum.0, -sum.1) } else { sum }
}

/// Applies `op`; `None` if it is not in the list.
fn applied(op: Op, [a, b]: [Pair; 2]) -> Option<Pair> {
    Some(match op {
        Op::Add => add(a, b),
        Op::Sub => sub(a, b),
        Op::Mul => mul(a, b),
        Op::Div => div(a, b),
        Op::Recip => div((1.0, 0.0), a),
        Op::Neg => (-a.0, -a.1),
        Op::Exp => exp(a),
        Op::Ln => ln(a),
        Op::Sqrt => sqrt(a),
        Op::Sin => sin(a),
        Op::Cos => sin(sub(HALF_PI, a)),
        Op::Powi => (0..b.0 as u32).fold((1.0, 0.0), |all, _| mul(all, a)),
        _ => return None,
    })
}

/// The outputs of `graph`, one block of sums, products, quotients and the functions in the list
/// above; guards are ignored.
pub fn precisely(graph: &Graph, point: &[f64]) -> Vec<Pair> {
    let mut values: PrimaryMap<Node, Pair> = PrimaryMap::filled((0.0, 0.0), graph.nodes.len());
    for (node, data) in graph.nodes.iter() {
        let value = match data.def {
            Def::Input(number) => (point[number as usize], 0.0),
            Def::Const(bits) => (f64::from_bits(bits), 0.0),
            Def::Apply(op, _) if op.is_comparison() || op == Op::Abs => (f64::NAN, 0.0),
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

/// The outputs of `graph`, a tree of blocks without regions, at `point`: sums, products and
/// quotients in double-double, other functions of rounded operands.
#[allow(dead_code)] // Most tests that use this file have no trees.
pub fn nearly(graph: &Graph, point: &[f64]) -> Option<Vec<f64>> {
    let mut values: PrimaryMap<Node, Pair> = PrimaryMap::filled((0.0, 0.0), graph.nodes.len());
    for (node, data) in graph.nodes.iter() {
        match data.def {
            Def::Input(number) => values[node] = (point[number as usize], 0.0),
            Def::Const(bits) => values[node] = (f64::from_bits(bits), 0.0),
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
                        None if op == Op::MulAdd => add(mul(a, b), c),
                        None => (eval(op, [a, b, c].map(|pair| pair.0 + pair.1)), 0.0),
                    };
                }
                Item::Guard { .. } => {}
                Item::Region(_) | Item::Fill(_) | Item::Accumulate(..) => return None,
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
