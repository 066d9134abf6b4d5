//! Loops in kernels of `Numerics::Exact`: value and gradient have the tape's bits, and kernels
//! with loops do not grow with the trip count.
#![allow(clippy::needless_range_loop)] // The programs are written as in a paper.

use phigrad::check::same;
use phigrad::internals::Random;
use phigrad::{Numerics, RecordedWith, Tape, Var, traced};

/// A program over `x` and `data` of a size.
type Function = fn(&[Var], &[Var]) -> Var;

fn recorded(f: Function) -> RecordedWith<Function> {
    Tape::builder()
        .hot_threshold(u32::MAX)
        .background(false)
        .numerics(Numerics::Exact)
        .record_with(f)
}

fn numbers(random: &mut Random, count: usize) -> Vec<f64> {
    (0..count).map(|_| random.uniform(-1.0, 1.0)).collect()
}

/// Asserts that the kernel agrees with the tape on random inputs of these lengths, and at zeros,
/// infinities and NaN. Returns the size of the kernel.
fn assert_exact(name: &str, f: Function, active: usize, inactive: usize) -> usize {
    let (kernel, tape) = (recorded(f), recorded(f));
    let mut random = Random::new(17);
    let mut points: Vec<(Vec<f64>, Vec<f64>)> =
        (0..4).map(|_| (numbers(&mut random, active), numbers(&mut random, inactive))).collect();
    for (index, special) in
        [0.0, -0.0, f64::INFINITY, f64::NAN, 1e-310, 1e300].into_iter().enumerate()
    {
        let (mut x, mut data) = points[index % 4].clone();
        x[index % active] = special;
        if let Some(number) = data.get_mut(3) {
            *number = special;
        }
        points.push((x, data));
    }
    points.push((vec![0.0; active], vec![0.0; inactive]));
    for (x, data) in &points {
        kernel.grad(x, data).unwrap();
    }
    kernel.compile().unwrap();
    for (x, data) in &points {
        let (value, gradient) = tape.value_and_grad(x, data).unwrap();
        let (found, slopes) = kernel.value_and_grad(x, data).unwrap();
        assert!(same(value, found), "{name}: {found} is not {value}");
        assert_all_same(name, &slopes, &gradient);
        assert_all_same(name, &kernel.grad(x, data).unwrap(), &gradient);
        assert!(same(kernel.eval(x, data).unwrap(), value), "{name}");
    }
    let report = kernel.report();
    assert!(report.refusals.is_empty(), "{name}: {report}");
    assert!(report.kernel_calls >= 9, "{name}: {report}");
    report.kernels.iter().map(|kernel| kernel.code_bytes).max().unwrap()
}

fn assert_all_same(name: &str, found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len());
    for (index, (&a, &b)) in found.iter().zip(expected).enumerate() {
        assert!(same(a, b), "{name}: {index} is {a:e} ({:x}), not {b:e}", a.to_bits());
    }
}

/// The number of iterations; `data` has one number for each.
fn plain(x: &[Var], data: &[Var]) -> Var {
    let mut y = x[0];
    for &number in data {
        y = (y * x[1] + number).sin() + y * x[1];
    }
    y
}

fn carried_twice(x: &[Var], data: &[Var]) -> Var {
    let (mut before, mut y) = (x[0], x[1]);
    for &number in data {
        (before, y) = (y, (y * 0.5 + before * y * x[2]).cos() * number + before);
    }
    y * before
}

fn invariants(x: &[Var], data: &[Var]) -> Var {
    let mut y = Var::from(0.0);
    for &number in data {
        y += (x[0] * number).sin() * x[1] + x[0] * x[1] + x[0] / (x[1] * x[1] + 2.0);
    }
    x[0] * y + x[1]
}

/// Each element is used in three iterations.
fn stencil(x: &[Var], _: &[Var]) -> Var {
    let mut y = Var::from(0.0);
    for i in 1..x.len() - 1 {
        y += (x[i - 1] - x[i] * 2.0 + x[i + 1]).sin() * x[i];
    }
    y
}

fn gather(x: &[Var], _: &[Var]) -> Var {
    let n = x.len();
    let mut y = Var::from(0.0);
    for i in 0..n {
        y += (x[i] * x[(i * i + 7 * i + 3) % n]).sin() + x[(i * 5 + 1) % n] * 0.25;
    }
    y
}

fn constants(x: &[Var], data: &[Var]) -> Var {
    let mut y = x[0];
    for i in 0..data.len() {
        let weight = ((i * 37) % 19) as f64 * 0.05;
        y = (y * weight + x[1] * (1.0 - weight)).tanh();
    }
    y
}

fn nested(x: &[Var], data: &[Var]) -> Var {
    let mut sum = Var::from(0.0);
    for row in data.chunks(40) {
        let mut y = x[0];
        for &number in row {
            y = (y * x[1] + number).sin() * 0.5 + y;
        }
        sum += y * x[1];
    }
    sum
}

/// The saved values of one loop are read by others, one of them backwards.
fn behind(x: &[Var], data: &[Var]) -> Var {
    let mut y = x[0];
    let mut all = Vec::new();
    for &number in data {
        y = (y * x[1] + number).sin() + y * y * 0.1;
        all.push(y);
    }
    let mut z = y * x[1];
    for i in 1..all.len() {
        z = z * 0.9 + all[i] * all[i - 1] + all[i].sin();
    }
    for value in all.iter().rev() {
        z = z * 0.5 + *value;
    }
    z + all[all.len() - 1] * all[3]
}

/// The value of the first iteration is used after the loop.
fn first(x: &[Var], data: &[Var]) -> Var {
    let mut y = x[0];
    for &number in data {
        y = (y * y * 0.5 + number * y).sin();
    }
    y * x[0] + x[0]
}

/// The value of the first iteration is used in each iteration and after the loop.
fn first_again(x: &[Var], data: &[Var]) -> Var {
    let mut y = x[0];
    for &number in data {
        y = y - (y * y - x[0] * number) / (y * 2.0 + 5.0) * x[0];
    }
    y * x[0] + x[1]
}

/// A value is used in the next two iterations, and the last two values after the loop.
fn two_behind(x: &[Var], data: &[Var]) -> Var {
    let (mut before, mut y) = (x[0], x[0]);
    for &number in data {
        (before, y) = (y, (y * before * number + before * x[0]).sin() + y * x[1]);
    }
    before * y + before + x[0] * x[1]
}

/// Carried values are used several times, and all are read later.
fn kept(x: &[Var], data: &[Var]) -> Var {
    let mut y = x[0];
    let mut all = vec![y];
    for &number in data {
        y = (y * y * x[1] + y * number).sin();
        all.push(y);
    }
    let mut z = x[1];
    for value in &all {
        z = z * 0.9 + *value * *value;
    }
    z + y * x[0]
}

/// Each active input is used in one iteration only.
fn actives(x: &[Var], _: &[Var]) -> Var {
    let mut y = x[1] * 0.5;
    for &number in x {
        y = (y * number).sin() + number;
    }
    y
}

/// Each row of a matrix begins with a value that is used again in the row.
fn rows(x: &[Var], data: &[Var]) -> Var {
    let mut sum = x[0];
    for (i, row) in data.chunks(40).enumerate() {
        let mut y = x[i % 3];
        for &number in row {
            y = (y * x[i % 3] + number * y).sin() + sum * 0.1;
        }
        sum = sum * 0.5 + y * x[i % 3] * x[0];
    }
    sum * x[0]
}

/// Adjoints are zero, and partials are not finite.
fn edges(x: &[Var], data: &[Var]) -> Var {
    let mut y = x[0];
    for &number in data {
        y = (y * y * number).sqrt() * 0.5 + (y.abs() * x[1]).sqrt() + y.max(x[1]) * 0.0;
    }
    y.min(2.0)
}

#[traced]
fn branches(x: &[Var], data: &[Var]) -> Var {
    let mut y = x[0];
    for &number in data {
        if number > 0.0 {
            y = y * x[1] + number;
        } else {
            y = (y + x[1] * y).sin();
        }
    }
    y * x[1]
}

/// The trip count depends on the inputs.
fn leaves(x: &[Var], data: &[Var]) -> Var {
    let mut y = x[0] * 0.5;
    for &number in data {
        if y > 40.0 {
            break;
        }
        y = y * 1.01 + number * number + x[1].sin();
    }
    y * x[1] + x[0]
}

const ALL: [(&str, Function); 17] = [
    ("plain", plain),
    ("carried_twice", carried_twice),
    ("invariants", invariants),
    ("stencil", stencil),
    ("gather", gather),
    ("constants", constants),
    ("nested", nested),
    ("behind", behind),
    ("first", first),
    ("first_again", first_again),
    ("two_behind", two_behind),
    ("kept", kept),
    ("actives", actives),
    ("rows", rows),
    ("edges", edges),
    ("branches", branches),
    ("leaves", leaves),
];

/// The numbers of inputs for this trip count.
fn lengths(name: &str, iterations: usize) -> (usize, usize) {
    match name {
        "stencil" | "gather" | "actives" => (iterations, 0),
        _ => (3, iterations),
    }
}

#[test]
fn kernels_with_loops_equal_the_tape_bit_for_bit() {
    for (name, f) in ALL {
        for iterations in [40, 160] {
            let (active, inactive) = lengths(name, iterations);
            assert_exact(name, f, active, inactive);
        }
    }
}

#[test]
fn kernels_do_not_grow_with_the_trip_count() {
    let grows = |name: &str, f: Function, sizes: [usize; 2]| {
        let [small, large] = sizes.map(|iterations| {
            let (active, inactive) = lengths(name, iterations);
            assert_exact(name, f, active, inactive)
        });
        assert!(small < 1500 && large <= small + small / 10, "{name}: {small} {large}");
    };
    grows("plain", plain, [200, 20_000]);
    grows("invariants", invariants, [200, 2000]);
    grows("constants", constants, [200, 2000]);
    grows("edges", edges, [200, 2000]);
    grows("first", first, [200, 2000]);
    grows("first_again", first_again, [200, 2000]);
    grows("two_behind", two_behind, [200, 2000]);
    grows("kept", kept, [200, 2000]);
    grows("actives", actives, [500, 5000]);
}

#[test]
fn kernels_of_stencils_have_little_code_per_input() {
    let [small, large] = [200, 1200].map(|inputs| assert_exact("stencil", stencil, inputs, 0));
    // The accumulators are filled and returned input by input.
    assert!(large - small < 50 * 1000, "{small} {large}");
}
