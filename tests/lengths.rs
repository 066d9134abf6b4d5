//! Lengths as users write them, √(x² + y²) and the like: kernels have the bits of the tape
//! where squares are numbers of a usual size, and are right where they are not.
#![allow(clippy::unwrap_used)] // A failing helper fails its test.

use phigrad::op::Op;
use phigrad::phi::{lengths_in_range, scale_lengths};
use phigrad::ssa::{End, Graph, Outcome, interpret, parse, verify};
use phigrad::{Recorded, Tape, Var};

type Program = fn(&[Var]) -> Var;

fn length(x: &[Var]) -> Var {
    x.iter().map(|&x| x * x).sum::<Var>().sqrt()
}

/// Programs of the lengths of vectors of three parts, and their degree: if the vector is
/// c times as long, the value is multiplied by c to that power.
const PROGRAMS: [(&str, Program, i32); 8] = [
    ("length", |x| (x[0] * x[0] + x[1] * x[1] + x[2] * x[2]).sqrt(), 1),
    ("length of two", |x| (x[0].powi(2) + x[1].powi(2)).sqrt() + x[2], 1),
    ("by the power 2", |x| (x[0].powf(2.0) + x[1].powf(2.0) + x[2].powf(2.0)).sqrt(), 1),
    ("by the power 0.5", |x| (x[0] * x[0] + x[1] * x[1] + x[2] * x[2]).powf(0.5), 1),
    ("unit vector", |x| x[0] / length(x), 0),
    (
        "unit vectors",
        |x| {
            let length = length(x);
            x[0] / length * 0.5 - x[1] / length * (x[2] / length)
        },
        0,
    ),
    ("distance", |x| ((x[0] - x[1]).powi(2) + (x[1] - x[2]).powi(2)).sqrt(), 1),
    (
        "way",
        |x| {
            let mut way = Var::from(0.0);
            for i in 0..3 {
                let (a, b) = (x[i] - x[(i + 1) % 3], x[i] + x[(i + 1) % 3] * 0.5);
                way += (a * a + b * b).sqrt();
            }
            way
        },
        1,
    ),
];

fn compiled(run: Program, at: &[f64]) -> Recorded<impl Fn(&[Var]) -> Var> {
    let f = Tape::builder().hot_threshold(u32::MAX).background(false).record(run);
    for _ in 0..2 {
        f.eval(at).unwrap();
        f.grad(at).unwrap();
        f.value_and_grad(at).unwrap();
        f.compile().unwrap();
    }
    f
}

fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(((1023 + exponent) as u64) << 52)
}

/// To scale by a power of two rounds nothing, so all digits must be the same.
#[test]
fn lengths_of_all_sizes_have_the_same_digits() {
    for (name, run, degree) in PROGRAMS {
        let kernel = compiled(run, &[0.3, 0.4, 0.5]);
        for x in [[0.3, -1.7, 0.9], [1.0, 1e-9, 0.1], [-3.0, 4.0, 0.25], [2.5, 2.0, -1e3]] {
            let (value, slopes) = kernel.value_and_grad(&x).unwrap();
            for exponent in [-900, -640, -480, -300, 300, 500, 520, 900] {
                let scale = power_of_two(exponent);
                let far = x.map(|x| x * scale);
                let calls = kernel.report().kernel_calls;
                let (got, got_slopes) = kernel.value_and_grad(&far).unwrap();
                let (scale, of_slopes) = match degree {
                    0 => (1.0, power_of_two(-exponent)),
                    _ => (scale, 1.0),
                };
                assert_eq!(got, value * scale, "{name} {far:?}");
                assert_eq!(kernel.eval(&far).unwrap(), got, "{name} {far:?}");
                let expected: Vec<f64> = slopes.iter().map(|slope| slope * of_slopes).collect();
                assert_eq!(got_slopes, expected, "{name} {far:?}");
                assert_eq!(kernel.grad(&far).unwrap(), expected, "{name} {far:?}");
                assert_eq!(kernel.report().kernel_calls, calls + 3, "{name} {far:?}");
            }
        }
    }
}

#[test]
fn lengths_of_a_usual_size_are_those_of_the_tape() {
    for (name, run, _) in PROGRAMS {
        let kernel = compiled(run, &[0.3, 0.4, 0.5]);
        let tape = Tape::builder().hot_threshold(u32::MAX).background(false).record(run);
        for x in [[0.3, -1.7, 0.9], [1e100, 1e-9, 1e90], [-3e-120, 4e-100, 2e-130]] {
            let (taped, slopes) = tape.value_and_grad(&x).unwrap();
            let (got, got_slopes) = kernel.value_and_grad(&x).unwrap();
            assert_eq!(got, taped, "{name} {x:?}");
            for (got, taped) in got_slopes.iter().zip(&slopes) {
                assert!((got - taped).abs() <= 1e-15 * taped.abs(), "{name} {x:?}: {got} {taped}");
            }
        }
    }
}

#[test]
fn lengths_with_a_constant_do_not_overflow() {
    let soft = compiled(|x| (x[0] * x[0] + x[1] * x[1] + 0.25).sqrt(), &[0.3, 0.4]);
    let close = |got: (f64, Vec<f64>), value: f64, slopes: [f64; 2]| {
        let near = |got: f64, exact: f64| (got - exact).abs() <= 4e-16 * exact.abs();
        near(got.0, value) && near(got.1[0], slopes[0]) && near(got.1[1], slopes[1])
    };
    assert!(close(soft.value_and_grad(&[3e200, 4e200]).unwrap(), 5e200, [0.6, 0.8]));
    assert!(close(soft.value_and_grad(&[0.0, 1e-200]).unwrap(), 0.5, [0.0, 2e-200]));
    let tiny = compiled(|x| (x[0] * x[0] + 1.6e-319).sqrt(), &[0.3]);
    let expected = (9e-320f64 + 1.6e-319).sqrt();
    assert!((tiny.eval(&[3e-160]).unwrap() / expected - 1.0).abs() < 1e-4);
}

/// The length of two numbers with a constant under the root.
fn soft(a: Var, b: Var) -> Var {
    (a * a + b * b + 0.25).sqrt()
}

/// Nothing is compiled for numbers of that size, but the kernel serves.
#[test]
fn kernels_serve_where_lengths_with_a_constant_overflow() {
    // Each with its value and its derivatives at (3, 4) times a large number, which it is
    // proportional to.
    let straight: Program = |x| soft(x[0], x[1]) + soft(x[0], x[0]) * 0.5 + x[1];
    let mixed: Program = |x| soft(x[0], x[1]) + length(&[x[0] - x[1], x[1]]);
    let unit: Program = |x| x[0] / soft(x[0], x[1]) * x[1];
    let branch: Program = |x| if x[0] > 1.0 { soft(x[0], x[1]) } else { x[1] * 2.0 };
    let many: Program = |x| (0..100).map(|i| soft(x[0] * f64::from(i), x[1])).sum::<Var>() * 0.01;
    let root = 18f64.sqrt();
    let sum: f64 = (0..100).map(|i| (3.0 * f64::from(i)).hypot(4.0)).sum::<f64>() * 0.01;
    let slope = |part: fn(f64) -> f64| {
        let part = |i: f64| part(i) / (3.0 * i).hypot(4.0);
        (0..100).map(|i| part(f64::from(i))).sum::<f64>() * 0.01
    };
    let slopes = [slope(|i| 3.0 * i * i), slope(|_| 4.0)];
    let programs = [
        ("straight", straight, 5.0 + root * 0.5 + 4.0, [0.6 + 1.0 / 2f64.sqrt(), 1.8]),
        (
            "mixed",
            mixed,
            5.0 + 17f64.sqrt(),
            [0.6 - 17f64.sqrt().recip(), 0.8 + 5.0 / 17f64.sqrt()],
        ),
        ("unit", unit, 2.4, [0.512, 0.216]),
        ("branch", branch, 5.0, [0.6, 0.8]),
        ("many", many, sum, slopes),
    ];
    for (name, run, value, slopes) in programs {
        let kernel = compiled(run, &[3.0, 4.0]);
        let near = |got: f64, exact: f64| (got - exact).abs() <= 1e-14 * exact.abs();
        for scale in [1e160, 1e200, 1e300] {
            let (x, before) = ([3.0 * scale, 4.0 * scale], kernel.report());
            let (got, got_slopes) = kernel.value_and_grad(&x).unwrap();
            assert!(near(got, value * scale), "{name} {scale}: {got}");
            let both = [&got_slopes, &kernel.grad(&x).unwrap()];
            for (got, exact) in both.into_iter().flat_map(|got| got.iter().zip(slopes)) {
                assert!(near(*got, exact), "{name} {scale}: {got_slopes:?}");
            }
            assert_eq!(kernel.eval(&x).unwrap(), got, "{name} {scale}");
            let report = kernel.report();
            assert_eq!(report.kernel_calls, before.kernel_calls + 3, "{name} {scale}");
            assert_eq!(report.interpreted_calls, before.interpreted_calls + 3, "{name} {scale}");
            let line = "beyond the range of kernels, interpreted";
            assert!(report.to_string().contains(line), "{report}");
        }
    }
}

/// Then what is finite may be nothing that it should be, as is a quotient by what has overflowed.
#[test]
fn where_something_else_overflows_as_well_the_tape_decides() {
    let programs: [(&str, Program); 4] = [
        ("divisor", |x| {
            let length = (x[0] * x[0] + 1.0).sqrt();
            Var::from(1.0) / (length / (x[1] * x[1] * 1e-160) + 1.0)
        }),
        ("addend", |x| soft(x[0], x[1]) * 1e-160 + Var::from(5.0) / (x[0] * x[1] * 1e-320 + 1.0)),
        ("another root", |x| (x[0] * x[0] * 2.0 + 1.0).sqrt() + (x[1] * x[1] + 1.0).sqrt()),
        ("in a branch", |x| if x[0] > 1.0 { soft(x[0], x[1]) / (x[1] * x[1]) } else { x[1] }),
    ];
    let same = |a: f64, b: f64| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan();
    for (name, run) in programs {
        let kernel = compiled(run, &[3.0, 4.0]);
        let tape = Tape::builder().hot_threshold(u32::MAX).background(false).record(run);
        let x = [3e160, 4e160];
        let (value, slopes) = tape.value_and_grad(&x).unwrap();
        let before = kernel.report();
        let (got, got_slopes) = kernel.value_and_grad(&x).unwrap();
        assert!(same(got, value) && same(kernel.eval(&x).unwrap(), value), "{name}: {got}");
        for got in [got_slopes, kernel.grad(&x).unwrap()] {
            assert!(got.iter().zip(&slopes).all(|(&a, &b)| same(a, b)), "{name}: {got:?}");
        }
        let report = kernel.report();
        assert_eq!(report.kernel_calls, before.kernel_calls, "{name}");
        assert_eq!(report.non_finite, before.non_finite + 3, "{name}");
    }
}

/// Who does not know the way does not know it beyond the range of the kernel.
#[test]
fn ways_that_are_not_known_are_not_known_for_huge_numbers_either() {
    let run: Program = |x| {
        let length = soft(x[0], x[1]);
        if x[2] > 0.0 { length } else { length * 3.0 }
    };
    let kernel = compiled(run, &[3.0, 4.0, 1.0]);
    let calls = |x: &[f64]| {
        let before = kernel.report();
        let value = kernel.eval(x).unwrap();
        let after = kernel.report();
        (value, after.kernel_calls - before.kernel_calls, after.tape_calls - before.tape_calls)
    };
    let huge = power_of_two(700);
    assert_eq!(calls(&[3.0 * huge, 4.0 * huge, 1.0]), (5.0 * huge, 1, 0));
    // On the tape squares overflow.
    assert_eq!(calls(&[3.0 * huge, 4.0 * huge, -1.0]), (f64::INFINITY, 0, 1));
    // What is not finite is for the tape to say.
    assert_eq!(calls(&[f64::INFINITY, 4.0, 1.0]), (f64::INFINITY, 0, 1));
    let (value, in_kernel, on_tape) = calls(&[f64::NAN, 4.0 * huge, 1.0]);
    assert!(value.is_nan());
    assert_eq!((in_kernel, on_tape), (0, 1));
}

#[test]
fn infinite_and_unknown_parts_stay_what_they_are() {
    let kernel = compiled(length, &[0.3, 0.4, 0.5]);
    assert_eq!(kernel.eval(&[f64::INFINITY, 1.0, 0.0]).unwrap(), f64::INFINITY);
    assert!(kernel.eval(&[f64::NAN, 1e200, 0.0]).unwrap().is_nan());
    assert_eq!(kernel.eval(&[0.0, 0.0, -0.0]).unwrap(), 0.0);
    assert_eq!(kernel.eval(&[1.7e308, 1.7e308, 0.0]).unwrap(), f64::INFINITY);
    assert_eq!(kernel.eval(&[5e-324, 0.0, 0.0]).unwrap(), 5e-324);
}

/// In a loop the branch is in each iteration.
#[test]
fn lengths_in_loops_are_scaled() {
    let run: Program = |x| {
        let mut sum = Var::from(0.0);
        for i in 0..200 {
            let (a, b) = (x[0] * (1.0 + f64::from(i)), x[1] - x[0]);
            sum += (a * a + b * b).sqrt();
        }
        sum
    };
    let kernel = compiled(run, &[0.3, 0.4]);
    let (value, slopes) = kernel.value_and_grad(&[0.75, 1.5]).unwrap();
    for exponent in [-700, 700] {
        let (scale, calls) = (power_of_two(exponent), kernel.report().kernel_calls);
        let got = kernel.value_and_grad(&[0.75 * scale, 1.5 * scale]).unwrap();
        assert_eq!(got, (value * scale, slopes.clone()), "{exponent}");
        assert_eq!(kernel.report().kernel_calls, calls + 1);
    }
}

#[test]
fn only_lengths_are_scaled() {
    let is_scaled = |steps: &str| {
        let graph = parse(&format!("graph active 2 inactive 0\n{steps}")).unwrap();
        let scaled = scale_lengths(&graph);
        assert_eq!(verify(&scaled), Ok(()), "{scaled}");
        let bits = |graph: &Graph| match interpret(graph, &[3.0, -4.0]) {
            Outcome::Values(values) => values.into_iter().map(f64::to_bits).collect(),
            Outcome::Unseen(_) => Vec::new(),
        };
        assert_eq!(bits(&scaled), bits(&graph), "{scaled}");
        scaled != graph
    };
    let plain = "b0:\n  v2 = mul v0 v0\n  v3 = mul v1 v1\n  v4 = add v2 v3\n  v5 = sqrt v4\n  ";
    assert!(is_scaled(&format!("{plain}return v5\n")));
    // The sum is used by something else.
    assert!(!is_scaled(&format!("{plain}v6 = add v5 v4\n  return v6\n")));
    // A part is no square.
    assert!(!is_scaled(&format!("{}return v5\n", plain.replace("mul v1 v1", "mul v1 v0"))));
    // A constant is below zero, or as large as squares that overflow.
    let constant = |value: &str| {
        let body = "b0:\n  v3 = mul v0 v0\n  v4 = add v3 v2\n  v5 = sqrt v4\n  return v5\n";
        is_scaled(&format!("v2 = const {value}\n{body}"))
    };
    assert!(constant("1.0") && !constant("-1.0") && !constant("1e300"));
    // The root decides which way to go.
    let decides = "v6 = gt v5 v0\n  branch v6 b1 b2\nb1:\n  return v0\nb2:\n  return v1\n";
    assert!(!is_scaled(&format!("{plain}{decides}")));
    assert!(is_scaled(&format!("{plain}v6 = div v0 v5\n  return v6\n")));
}

/// Lengths with a constant stay as they are in code, and their sums are to be finite; others are
/// scaled in it.
#[test]
fn sums_with_a_constant_are_to_be_finite() {
    let soft = "v2 = const 0.25\nb0:\n  v3 = mul v0 v0\n  v4 = add v3 v2\n  v5 = sqrt v4\n  ";
    let plain = "v6 = mul v0 v0\n  v7 = mul v1 v1\n  v8 = add v6 v7\n  v9 = sqrt v8\n  \
                 v10 = mul v5 v9\n  ";
    for (steps, regions) in
        [(format!("{soft}return v5\n"), 0), (format!("{soft}{plain}return v10\n"), 1)]
    {
        let graph = parse(&format!("graph active 2 inactive 0\n{steps}")).unwrap();
        let in_range = lengths_in_range(&graph);
        assert_eq!(verify(&in_range.graph), Ok(()), "{}", in_range.graph);
        assert_eq!((in_range.graph.regions.len(), in_range.finite.len()), (regions, 1));
        let x = [2.0, 3.0];
        assert_eq!(interpret(&in_range.graph, &x), interpret(&graph, &x));
        // It is what the root is of.
        let mut asked = in_range.graph.clone();
        let root = asked.root();
        asked.blocks[root].end = End::Return(in_range.finite.iter().copied().collect());
        assert_eq!(interpret(&asked, &x), Outcome::Values(vec![4.25]));
    }
}

#[test]
fn long_code_keeps_its_lengths() {
    let long = |count: usize, constant: Option<f64>| {
        let mut graph = Graph::new(count + 1, 0);
        let (root, mut total) = (graph.root(), graph.input(0));
        for number in 0..count {
            let parts = [graph.input(number), graph.input(number + 1)];
            let [a, b] = parts.map(|x| graph.push_apply(root, Op::Mul, &[x, x], None));
            let mut sum = graph.push_apply(root, Op::Add, &[a, b], None);
            if let Some(constant) = constant {
                let constant = graph.push_const(constant.to_bits());
                sum = graph.push_apply(root, Op::Add, &[sum, constant], None);
            }
            let length = graph.push_apply(root, Op::Sqrt, &[sum], None);
            total = graph.push_apply(root, Op::Add, &[total, length], None);
        }
        graph.blocks[root].end = End::Return([total].into_iter().collect());
        graph
    };
    let scaled = |count| scale_lengths(&long(count, None)).regions.len();
    assert_eq!((scaled(64), scaled(65)), (64, 0));
    // What makes no code is limited by nothing.
    let in_range = lengths_in_range(&long(65, Some(1.0)));
    assert_eq!((in_range.graph.regions.len(), in_range.finite.len()), (0, 65));
}
