//! Every primitive: value and gradient at ordinary points against closed
//! forms, at singular points against a table, and all executors against each
//! other at all combinations of special numbers.
//!
//! The table in `common/derivatives.rs` has the derivatives at points where
//! calculus leaves a choice; the rules are in `op/derivative.rs`.

use crate::common::derivatives::{NASTY, partials};
use crate::common::programs::{all_same, interpreted, reversed};
use crate::common::random_programs::Scalar;
use phigrad::check::{GradientCheck, Tolerance, close, same};
use phigrad::internals::Random;
use phigrad::internals::diff::{Wanted, directional, reverse};
use phigrad::internals::jit::compile;
use phigrad::internals::op::{Domain, Op, domain, eval};
use phigrad::internals::ssa::{Folding, Graph, parse, simplify};
use phigrad::{Numerics, Recorded, Tape, Var};

const INF: f64 = f64::INFINITY;
const NAN: f64 = f64::NAN;
const MAX: f64 = f64::MAX;
const TINY: f64 = f64::MIN_POSITIVE;
const SUB: f64 = 5e-324;

/// `op` of the inputs as a recorded function; operands that are no inputs are those of `args`.
fn record(
    op: Op,
    args: [f64; 3],
    numerics: Numerics,
) -> Recorded<impl Fn(&[Var]) -> Var + Send + Sync> {
    Tape::builder().hot_threshold(u32::MAX).numerics(numerics).record(move |x: &[Var]| {
        let operand = |i: usize| x.get(i).copied().unwrap_or(Var::from(args[i]));
        Scalar::apply(op, [0, 1, 2].map(operand))
    })
}

/// All operands: `x`, and beyond it those of `args`.
fn completed(x: &[f64], args: [f64; 3]) -> [f64; 3] {
    [0, 1, 2].map(|i| x.get(i).copied().unwrap_or(args[i]))
}

/// The number of operands that are inputs: exponents of `powi` and shapes of beta functions are
/// constants.
fn inputs(op: Op) -> usize {
    if matches!(op, Op::Powi | Op::BetaInc | Op::BetaDensity) { 1 } else { op.arity() }
}

/// A point in the domain of `op`, away from its edges.
fn ordinary(op: Op, random: &mut Random) -> [f64; 3] {
    domain(op).map(|domain| match domain {
        Domain::Integer => random.below(15) as f64 - 7.0,
        domain => domain.member(random.uniform(-3.0, 3.0)),
    })
}

/// The primitives of one value: attached partials have tests of their own.
fn recorded() -> impl Iterator<Item = Op> {
    Op::ALL.iter().copied().filter(|&op| op != Op::Attach)
}

/// Those of them whose derivative is that of the value.
fn differentiated() -> impl Iterator<Item = Op> {
    recorded().filter(|&op| op != Op::Detach)
}

#[test]
fn ordinary_values_and_gradients_are_those_of_closed_forms() {
    let mut random = Random::new(1);
    for op in recorded() {
        for numerics in [Numerics::Exact, Numerics::Real] {
            for _ in 0..8 {
                let x = ordinary(op, &mut random);
                let args = x;
                let (f, partials) = (record(op, args, numerics), partials(op, x));
                let x = &x[..inputs(op)];
                let found = f.value_and_grad(x).unwrap();
                // Without a closed form the kernel is compared with the tape.
                let expected = partials.map_or(found.1.clone(), |partials| partials.to_vec());
                f.compile().unwrap();
                for (value, gradient) in [found, f.value_and_grad(x).unwrap()] {
                    for (i, (&d, &expected)) in gradient.iter().zip(&expected).enumerate() {
                        let tolerance = Tolerance::new(2e-13, 1e-14);
                        assert!(close(d, expected, tolerance), "{op} {x:?} {i}: {d} {expected}");
                    }
                    // A kernel may multiply by the reciprocal that the gradient needs.
                    let is_quotient = op == Op::Div && numerics == Numerics::Real;
                    let tolerance = Tolerance::new(if is_quotient { 5e-16 } else { 0.0 }, 0.0);
                    let expected = eval(op, args);
                    let fits = same(value, expected) || close(value, expected, tolerance);
                    assert!(fits, "{op} {x:?} {value}");
                }
            }
        }
    }
}

#[test]
fn ordinary_gradients_agree_with_differences() {
    let mut random = Random::new(2);
    let mut check = GradientCheck::default();
    check.step = 1e-3;
    for op in differentiated() {
        let confirmed = (0..10).filter(|_| {
            let x = ordinary(op, &mut random);
            let value = |moved: &[f64]| Ok(eval(op, completed(moved, x)));
            // `Same` reads its operands out, which has no derivative.
            let count = inputs(op);
            let gradient = record(op, x, Numerics::Exact).grad(&x[..count]).unwrap();
            match check.gradient(value, &x[..count], &gradient) {
                Ok(()) => true,
                Err(phigrad::check::GradientError::Rough { .. }) => false,
                Err(error) => panic!("{op} {x:?}: {error}"),
            }
        });
        assert!(confirmed.count() >= 8, "{op}");
    }
}

#[test]
fn ordinary_second_derivatives_agree_with_differences_of_gradients() {
    let mut random = Random::new(3);
    let mut check = GradientCheck::default();
    check.step = 1e-3;
    for op in differentiated() {
        let confirmed = (0..10).filter(|_| {
            let point = ordinary(op, &mut random);
            let (text, x) = (graph(op, point), &point[..inputs(op)]);
            let gradient = reverse(&text, Wanted::Gradient, Folding::Exact);
            let along = |x: &[f64], j: usize| {
                let mut direction = vec![0.0; x.len()];
                direction[j] = 1.0;
                directional(&gradient, x, &direction).unwrap()
            };
            (0..x.len()).all(|i| {
                let second: Vec<f64> = (0..x.len()).map(|j| along(x, j).1[i]).collect();
                match check.gradient(|moved| Ok(along(moved, i).0[i]), x, &second) {
                    Ok(()) => true,
                    Err(phigrad::check::GradientError::Rough { .. }) => false,
                    Err(error) => panic!("{op} {point:?} {i}: {error}"),
                }
            })
        });
        assert!(confirmed.count() >= 8, "{op}");
    }
}

#[test]
fn singular_points_have_the_values_and_derivatives_of_the_table() {
    let tolerance = Tolerance::new(1e-15, 0.0);
    for &(op, args, value, gradient) in NASTY {
        for numerics in [Numerics::Exact, Numerics::Real] {
            let f = record(op, completed(args, [0.0; 3]), numerics);
            let x = &args[..inputs(op)];
            let taped = f.value_and_grad(x).unwrap();
            f.compile().unwrap();
            for (found, slopes) in [taped, f.value_and_grad(x).unwrap()] {
                let zeros = value != 0.0 || same(found, value);
                assert!(close(found, value, tolerance) && zeros, "{op} {args:?}: {found}");
                assert_eq!(slopes.len(), gradient.len(), "{op}");
                for (&slope, &expected) in slopes.iter().zip(gradient) {
                    assert!(close(slope, expected, tolerance), "{op} {args:?}: {slopes:?}");
                }
            }
        }
    }
    for op in recorded().filter(|&op| partials(op, [0.5; 3]).is_some()) {
        assert!(NASTY.iter().any(|case| case.0 == op), "{op} has no nasty point");
    }
}

const SPECIAL: [f64; 18] = [
    0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, INF, -INF, NAN, MAX, -MAX, TINY, -TINY, SUB, -SUB, 1e200,
    1e-200,
];
const EXPONENTS: [f64; 12] =
    [0.0, 1.0, -1.0, 2.0, -2.0, 3.0, -7.0, 64.0, -65.0, 1000.0, 2147483647.0, -2147483647.0];

/// All combinations of special numbers for `count` operands.
fn combinations(count: usize) -> Vec<Vec<f64>> {
    // Every second one where there are three operands.
    let numbers: Vec<f64> = SPECIAL.into_iter().step_by(if count > 2 { 2 } else { 1 }).collect();
    (0..count).fold(vec![Vec::new()], |shorter, _| {
        let longer =
            |x: &Vec<f64>| numbers.iter().map(|&n| [x.as_slice(), &[n]].concat()).collect();
        shorter.iter().flat_map::<Vec<Vec<f64>>, _>(longer).collect()
    })
}

/// The graph of one primitive; operands that are no inputs are those of `args`.
fn graph(op: Op, args: [f64; 3]) -> Graph {
    let count = inputs(op);
    let constants: String =
        (count..op.arity()).map(|i| format!("v{i} = const {:?}\n", args[i])).collect();
    let (y, operands) = (op.arity(), (0..op.arity()).map(|i| format!("v{i}")));
    let operands = operands.collect::<Vec<_>>().join(" ");
    let text = format!(
        "graph active {count} inactive 0\n{constants}b0:\n  v{y} = {op} {operands}\n  return v{y}\n"
    );
    parse(&text).unwrap()
}

/// The constant operands to test `op` with.
fn constants(op: Op) -> Vec<[f64; 3]> {
    match op {
        Op::Powi => EXPONENTS.map(|exponent| [0.0, exponent, 0.0]).to_vec(),
        Op::BetaInc | Op::BetaDensity => {
            vec![[0.0, 0.5, 2.5], [0.0, 1.0, 1e3], [0.0, 2e4, 3e4], [0.0, -1.0, INF]]
        }
        _ => vec![[0.0; 3]],
    }
}

#[test]
fn all_executors_agree_at_all_special_numbers() {
    for op in recorded() {
        for args in constants(op) {
            let graph = graph(op, args);
            let gradient = reversed(&graph, Folding::Exact);
            let kernel = compile(&gradient).unwrap();
            let (tape, compiled) =
                (record(op, args, Numerics::Exact), record(op, args, Numerics::Exact));
            let (mut scratch, mut found) = (Vec::new(), vec![0.0; kernel.outputs()]);
            for (index, x) in combinations(inputs(op)).into_iter().enumerate() {
                // The kernel's bits are the interpreter's, NaN or not.
                kernel.run(&x, &[], &mut scratch, &mut found).unwrap();
                let expected = interpreted(&gradient, &(x.clone(), Vec::new())).unwrap();
                assert!(all_same(&found, &expected), "{op} {x:?} {args:?}: {found:?}");
                // `Same` on traced numbers reads them out: it is a constant.
                if op == Op::Same {
                    continue;
                }
                // Both are the tape's; an adjoint of 1 is propagated everywhere.
                let (value, slopes) = tape.value_and_grad(&x).unwrap();
                let taped = [slopes.as_slice(), &[value]].concat();
                assert!(all_same(&found, &taped), "{op} {x:?} {args:?}: {found:?} {taped:?}");
                // All stages, compiled after the first call.
                let (value, slopes) = compiled.value_and_grad(&x).unwrap();
                let whole = [slopes.as_slice(), &[value]].concat();
                assert!(all_same(&whole, &taped), "{op} {x:?} {args:?}: {whole:?} {taped:?}");
                if index == 0 {
                    compiled.compile().unwrap();
                }
            }
            assert_eq!(compiled.report().fallbacks, 0, "{op}");
        }
    }
}

/// Graphs on which folding has something to do: a primitive with a constant
/// operand, with equal operands, and above another primitive.
fn foldable(op: Op) -> Vec<Graph> {
    let graph = |constants: &[f64], nodes: &str, last: usize| {
        let constants: String =
            constants.iter().zip(2..).map(|(c, i)| format!("v{i} = const {c:?}\n")).collect();
        let text = format!("graph active 2 inactive 0\n{constants}b0:\n{nodes}  return v{last}\n");
        parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
    };
    let mut graphs = Vec::new();
    match (op, op.arity()) {
        (Op::Powi, _) => {
            graphs.extend(EXPONENTS.map(|n| graph(&[n], "  v3 = powi v0 v2\n", 3)));
        }
        (_, 1) => {
            for inner in Op::ALL.iter().filter(|inner| inner.arity() == 1) {
                let nodes = format!("  v2 = {inner} v0\n  v3 = {op} v2\n");
                graphs.push(graph(&[], &nodes, 3));
            }
        }
        (_, 2) => {
            graphs.push(graph(&[], &format!("  v2 = {op} v0 v0\n"), 2));
            for constant in SPECIAL.into_iter().filter(|c| !c.is_nan()) {
                for operands in ["v0 v2", "v2 v0"] {
                    graphs.push(graph(&[constant], &format!("  v3 = {op} {operands}\n"), 3));
                }
            }
        }
        _ => {
            for constant in SPECIAL.into_iter().filter(|c| !c.is_nan()) {
                for operands in ["v2 v0 v1", "v0 v2 v1", "v0 v1 v2", "v0 v1 v1"] {
                    graphs.push(graph(&[constant], &format!("  v3 = {op} {operands}\n"), 3));
                }
            }
        }
    }
    graphs
}

#[test]
fn exact_folding_keeps_all_bits_and_real_folding_all_finite_numbers() {
    let points = combinations(2);
    for op in recorded() {
        for graph in foldable(op) {
            let (exact, real) = (simplify(&graph, Folding::Exact), simplify(&graph, Folding::Real));
            for x in &points {
                let point = (x.clone(), Vec::new());
                let expected = interpreted(&graph, &point).unwrap();
                let found = interpreted(&exact, &point).unwrap();
                assert!(
                    all_same(&found, &expected),
                    "{found:?} {expected:?} {x:?}\n{graph}{exact}"
                );
                let found = interpreted(&real, &point).unwrap();
                let near = !expected[0].is_finite() || found[0] == expected[0];
                assert!(near, "{found:?} {expected:?} {x:?}\n{graph}{real}");
            }
        }
    }
}

#[test]
#[allow(clippy::op_ref)] // The references are what is tested.
fn operators_take_numbers_on_either_side_by_value_and_by_reference() {
    type Forms = fn(Var) -> [Var; 7];
    let forms: [(Op, Forms); 5] = [
        (Op::Add, |x| [x + 3.0, &x + 3.0, x + &3.0, &x + &3.0, 3.0 + x, &3.0 + &x, x + x]),
        (Op::Sub, |x| [x - 3.0, &x - 3.0, x - &3.0, &x - &3.0, 3.0 - x, &3.0 - &x, x - x]),
        (Op::Mul, |x| [x * 3.0, &x * 3.0, x * &3.0, &x * &3.0, 3.0 * x, &3.0 * &x, x * x]),
        (Op::Div, |x| [x / 3.0, &x / 3.0, x / &3.0, &x / &3.0, 3.0 / x, &3.0 / &x, x / x]),
        (Op::Rem, |x| [x % 3.0, &x % 3.0, x % &3.0, &x % &3.0, 3.0 % x, &3.0 % &x, x % x]),
    ];
    let x = 7.25;
    for (op, form) in forms {
        for i in 0..7 {
            let args = match i {
                0..4 => [x, 3.0, 0.0],
                4 | 5 => [3.0, x, 0.0],
                _ => [x, x, 0.0],
            };
            let f = Tape::builder().hot_threshold(u32::MAX).record(|x: &[Var]| form(x[0])[i]);
            let [by_first, by_second, _] = partials(op, args).unwrap();
            let expected = match i {
                0..4 => by_first,
                4 | 5 => by_second,
                _ => by_first + by_second,
            };
            let (value, gradient) = f.value_and_grad(&[x]).unwrap();
            assert!(same(value, eval(op, args)), "{op} {i}");
            assert!(close(gradient[0], expected, Tolerance::new(1e-15, 1e-16)), "{op} {i}");
        }
    }
    let assigned = Tape::record(|x: &[Var]| {
        let mut y = x[0];
        y += 2.0;
        y -= x[1];
        y *= &x[0];
        y /= 4.0;
        y %= 10.0;
        -&y
    });
    assert_eq!(assigned.value_and_grad(&[3.0, 1.0]).unwrap(), (-3.0, vec![-1.75, 0.75]));
}

#[test]
fn the_smallest_exponent_of_powi_has_a_kernel_and_a_derivative() {
    let f = record(Op::Powi, [0.0, f64::from(i32::MIN), 0.0], Numerics::Exact);
    assert_eq!(f.grad(&[1.0]).unwrap(), [f64::from(i32::MIN)]);
    f.compile().unwrap();
    assert_eq!(f.grad(&[1.0]).unwrap(), [f64::from(i32::MIN)]);
}
