//! Sparse derivatives: those of the dense ones, on the tape and by kernels, for patterns of all
//! kinds and paths with different ones.

use std::cell::Cell;

use phigrad::internals::Random;
use phigrad::{
    CustomOperation, Limits, Numerics, Operation, Purpose, SparseMatrix, Tape, Var, traced,
};

use crate::common::random_programs::Recipe;
use crate::common::served::{NUMERICS, limits, manual};
use crate::common::vector_programs::vector_programs;

fn chain(x: &[Var]) -> Var {
    x.windows(2).map(|x| (x[1] - x[0] * x[0]).powi(2) + (1.0 - x[0]).powi(2)).sum()
}

fn arrow(x: &[Var]) -> Var {
    x[1..].iter().map(|&leaf| (leaf * x[0]).sin() + leaf.exp()).sum()
}

fn band(x: &[Var]) -> Var {
    x.windows(4).map(|x| x[0] * x[3] + (x[1] - x[2]).cosh()).sum()
}

/// The energy of a membrane over a square grid.
fn grid(x: &[Var]) -> Var {
    let side = x.len().isqrt();
    let mut energy = Var::from(0.0);
    for i in 0..side {
        for j in 0..side {
            let at = x[i * side + j];
            if i + 1 < side {
                energy += (1.0 + (at - x[(i + 1) * side + j]).powi(2)).sqrt();
            }
            if j + 1 < side {
                energy += (1.0 + (at - x[i * side + j + 1]).powi(2)).sqrt();
            }
        }
    }
    energy
}

fn dense(x: &[Var]) -> Var {
    (x.iter().sum::<Var>() / x.len() as f64).exp() * x[0]
}

fn linear(x: &[Var]) -> Var {
    x.iter().zip(1..).map(|(&x, i)| x * f64::from(i)).sum()
}

fn constant(_: &[Var]) -> Var {
    3.0.into()
}

fn input(x: &[Var]) -> Var {
    x[2]
}

/// Neighbours interact where they are ordered.
#[traced]
fn branches(x: &[Var]) -> Var {
    let mut sum = Var::from(0.0);
    for i in 1..x.len() {
        if x[i] > x[i - 1] {
            sum += x[i] * x[i - 1];
        } else {
            sum += x[i].exp();
        }
    }
    sum
}

/// Whole paths: the first input decides who interacts.
fn paths(x: &[Var]) -> Var {
    match (x[0] > 0.0, x[1] > 0.0) {
        (true, true) => x[2] * x[3],
        (true, false) => x[4].sin(),
        (false, true) => x[5] * x[0] * x[1],
        (false, false) => x.iter().sum(),
    }
}

/// A loop with an exit that depends on the inputs.
#[traced]
fn exits(x: &[Var]) -> Var {
    let (mut sum, mut i) = (Var::from(0.0), 0);
    while i < x.len() {
        sum += x[i] * x[i];
        if sum > 1.5 {
            break;
        }
        i += 1;
    }
    sum
}

/// Newton's method for the root of each input, a number of times that depends on it.
#[traced]
fn roots(x: &[Var]) -> Var {
    let mut sum = Var::from(0.0);
    for &x in x {
        let (square, mut root) = (x * x + 0.5, Var::from(1.0));
        while (root * root - square).abs() > 1e-8 {
            root = (root + square / root) * 0.5;
        }
        sum += root * x;
    }
    sum
}

/// A power with a number of factors that depends on the first input.
#[traced]
fn factors(x: &[Var]) -> Var {
    let (mut power, mut i) = (Var::from(1.0), 1);
    while power < 1.0 + x[0].abs() {
        power *= x[i % x.len()].abs() + 1.1;
        i += 1;
    }
    power
}

fn sorted(x: &[Var]) -> Var {
    let mut x = x.to_vec();
    Var::sort(&mut x);
    x[0] * x[1] + x[2].exp()
}

type Scalar = fn(&[Var]) -> Var;

const SCALARS: [(&str, Scalar); 14] = [
    ("chain", chain),
    ("arrow", arrow),
    ("band", band),
    ("grid", grid),
    ("dense", dense),
    ("linear", linear),
    ("constant", constant),
    ("input", input),
    ("branches", branches),
    ("paths", paths),
    ("exits", exits),
    ("roots", roots),
    ("factors", factors),
    ("sorted", sorted),
];

/// Residuals of a discretised equation, an input and a constant.
fn residuals(x: &[Var]) -> Vec<Var> {
    let mut residuals: Vec<Var> =
        x.windows(3).map(|x| x[0] - 2.0 * x[1] + x[2] - x[1].exp()).collect();
    residuals.extend([x[0], 2.0.into(), x[1]]);
    residuals
}

/// Many outputs of one input, one of many.
fn bordered(x: &[Var]) -> Vec<Var> {
    let mut all: Vec<Var> = x.iter().map(|&one| one * x[0]).collect();
    all.push(x.iter().map(|&x| x * x).sum());
    all
}

/// Sums of the inputs so far.
fn sums(x: &[Var]) -> Vec<Var> {
    let mut sum = Var::from(0.0);
    x.iter()
        .map(|&x| {
            sum += x * x;
            sum
        })
        .collect()
}

#[traced]
fn differences(x: &[Var]) -> Vec<Var> {
    let mut residuals = Vec::new();
    for i in 0..x.len() {
        let next = x[(i + 1) % x.len()];
        residuals.push(if x[i] > next { x[i] * x[i] } else { x[i].exp() - next });
    }
    residuals
}

fn few(x: &[Var]) -> Vec<Var> {
    vec![x[0] * x[1], x[2..].iter().copied().sum()]
}

type Vector = fn(&[Var]) -> Vec<Var>;

const VECTORS: [(&str, Vector); 5] = [
    ("residuals", residuals),
    ("bordered", bordered),
    ("sums", sums),
    ("differences", differences),
    ("few", few),
];

/// Random numbers, some of them zero.
fn vector(random: &mut Random, length: usize) -> Vec<f64> {
    let mut number = || if random.chance(0.1) { 0.0 } else { random.uniform(-0.9, 0.9) };
    (0..length).map(|_| number()).collect()
}

/// Asserts that the dense form is `expected`, and that the rows are sorted.
fn assert_near(name: &str, found: &SparseMatrix, expected: &[f64], tolerance: f64) {
    assert_well_formed(found);
    let found = found.to_dense();
    assert_eq!(found.len(), expected.len(), "{name}");
    let largest = expected.iter().fold(1.0f64, |most, number| most.max(number.abs()));
    for (place, (one, other)) in found.iter().zip(expected).enumerate() {
        let is_near = (one - other).abs() <= tolerance * largest || one.is_nan() && other.is_nan();
        assert!(is_near, "{name} {place}: {one} {other}\n{found:?}\n{expected:?}");
    }
}

/// Tests whether a dense Hessian is symmetric: not where an operand without a derivative, such as
/// the order of a Bessel function, depends on an input.
fn is_symmetric(hessian: &[f64]) -> bool {
    let size = hessian.len().isqrt();
    let largest = hessian.iter().fold(1.0f64, |most, number| most.max(number.abs()));
    let differs = |at: usize| (hessian[at] - hessian[at % size * size + at / size]).abs();
    (0..hessian.len()).all(|at| differs(at) <= 1e-9 * largest)
}

fn assert_well_formed(matrix: &SparseMatrix) {
    let (offsets, columns) = (matrix.row_offsets(), matrix.column_indices());
    assert_eq!(offsets.len(), matrix.rows() + 1);
    assert_eq!((offsets[0], offsets[matrix.rows()]), (0, matrix.values().len()));
    assert_eq!(columns.len(), matrix.values().len());
    for ends in offsets.windows(2) {
        let row = &columns[ends[0]..ends[1]];
        assert!(row.windows(2).all(|two| two[0] < two[1]), "{row:?}");
        assert!(row.iter().all(|&column| column < matrix.columns()));
    }
}

#[test]
fn hessians_and_gradients_are_those_of_the_dense_calls() {
    for numerics in NUMERICS {
        for (name, program) in SCALARS {
            let mut random = Random::new(17);
            let tape = Tape::builder().tape_only().numerics(numerics).record(program);
            let f = manual(numerics).record(program);
            let (mut hessian, mut jacobian) = (SparseMatrix::default(), SparseMatrix::default());
            for round in 0..60 {
                let x = vector(&mut random, 9);
                f.sparse_hessian_into(&x, &mut hessian).unwrap();
                assert_near(name, &hessian, &tape.hessian(&x).unwrap(), 1e-10);
                assert_eq!(hessian, hessian.transposed(), "{name}");
                f.sparse_jacobian_into(&x, &mut jacobian).unwrap();
                assert_near(name, &jacobian, &tape.grad(&x).unwrap(), 1e-11);
                let alone = tape.sparse_hessian(&x).unwrap();
                assert_near(name, &alone, &tape.hessian(&x).unwrap(), 1e-13);
                if round % 20 == 19 {
                    f.compile().unwrap();
                }
            }
            let report = f.report();
            assert!(report.kernel_calls > 20, "{name}: {report}");
            for purpose in [Purpose::SparseHessian, Purpose::SparseJacobian] {
                assert!(report.kernels.iter().any(|kernel| kernel.purpose == purpose), "{report}");
            }
        }
    }
}

#[test]
fn jacobians_are_those_of_the_dense_calls() {
    for numerics in NUMERICS {
        for (name, program) in VECTORS {
            let mut random = Random::new(19);
            let tape = Tape::builder().tape_only().numerics(numerics).record(program);
            let f = manual(numerics).record(program);
            let mut jacobian = SparseMatrix::default();
            for round in 0..60 {
                let x = vector(&mut random, 9);
                f.sparse_jacobian_into(&x, &mut jacobian).unwrap();
                assert_near(name, &jacobian, &tape.jacobian(&x).unwrap(), 1e-11);
                let alone = tape.sparse_jacobian(&x).unwrap();
                assert_near(name, &alone, &tape.jacobian(&x).unwrap(), 1e-13);
                if round % 20 == 19 {
                    f.compile().unwrap();
                }
            }
            assert!(f.report().kernel_calls > 20, "{name}: {}", f.report());
        }
    }
}

#[test]
fn the_corpus_has_the_same_sparse_derivatives() {
    for program in vector_programs() {
        let run = program.run;
        let sum =
            move |x: &[Var]| run(x).iter().zip(1..).map(|(&y, i)| y * f64::from(i)).sum::<Var>();
        let tape = || Tape::builder().tape_only();
        let (f_on_tape, g_on_tape) = (tape().record(run), tape().record(sum));
        let (f, g) = (manual(Numerics::Real).record(run), manual(Numerics::Real).record(sum));
        let mut random = Random::new(23);
        for round in 0..30 {
            let (low, high) = program.domain;
            let x: Vec<f64> = (0..4).map(|_| random.uniform(low, high)).collect();
            let found = f.sparse_jacobian(&x).unwrap();
            assert_near(program.name, &found, &f_on_tape.jacobian(&x).unwrap(), 1e-9);
            let found = g.sparse_hessian(&x).unwrap();
            assert_near(program.name, &found, &g_on_tape.hessian(&x).unwrap(), 1e-8);
            if round % 10 == 9 {
                f.compile().unwrap();
                g.compile().unwrap();
            }
        }
        let served = f.report().kernel_calls.min(g.report().kernel_calls);
        assert!(served > 4, "{}: {served}", program.name);
    }
}

/// A map of two numbers with a Jacobian by hand.
struct Rotation;

impl Operation for Rotation {
    type Error = core::convert::Infallible;

    fn inputs(&self) -> usize {
        2
    }

    fn outputs(&self) -> usize {
        2
    }

    fn eval(&self, x: &[f64], y: &mut [f64], _: &mut [f64]) -> Result<(), Self::Error> {
        (y[0], y[1]) = (x[0] * x[1], x[0] - x[1]);
        Ok(())
    }

    fn vjp(&self, x: &[f64], _: &[f64], _: &[f64], w: &[f64], out: &mut [f64]) {
        (out[0], out[1]) = (w[0] * x[1] + w[1], w[0] * x[0] - w[1]);
    }

    fn is_twice_differentiable(&self) -> bool {
        true
    }

    fn vjp_tangent(
        &self,
        _: &[f64],
        _: &[f64],
        _: &[f64],
        (w, v): (&[f64], &[f64]),
        out: &mut [f64],
    ) {
        (out[0], out[1]) = (w[0] * v[1], w[0] * v[0]);
    }
}

#[test]
fn custom_operations_depend_on_all_of_their_arguments() {
    let operation = CustomOperation::new(Rotation);
    let program = |x: &[Var]| -> Vec<Var> {
        x.windows(2).flat_map(|x| operation.call(x).unwrap_or_default()).collect()
    };
    let sum = |x: &[Var]| program(x).iter().map(|y| y.sin()).sum::<Var>();
    let (f, g) = (manual(Numerics::Real).record(program), manual(Numerics::Real).record(sum));
    for round in 0..6 {
        let x: Vec<f64> = (0..5).map(|i| f64::from(i * round) * 0.1).collect();
        let jacobian = f.sparse_jacobian(&x).unwrap();
        assert_eq!((jacobian.rows(), jacobian.values().len()), (8, 16));
        assert_near("custom", &jacobian, &f.jacobian(&x).unwrap(), 1e-13);
        let hessian = g.sparse_hessian(&x).unwrap();
        assert_eq!(hessian.values().len(), 13);
        assert_near("custom", &hessian, &g.hessian(&x).unwrap(), 1e-12);
        if round == 3 {
            f.compile().unwrap();
            g.compile().unwrap();
        }
    }
}

#[test]
fn patterns_are_tight_and_stable() {
    let entries: [(&str, Scalar, usize); 6] = [
        ("chain", chain, 19),
        ("arrow", arrow, 7 + 12),
        ("linear", linear, 0),
        ("constant", constant, 0),
        ("input", input, 0),
        ("dense", dense, 49),
    ];
    for numerics in NUMERICS {
        for (name, program, count) in entries {
            let f = manual(numerics).record(program);
            let first = f.sparse_hessian(&[0.0; 7]).unwrap();
            assert_eq!(first.values().len(), count, "{name}");
            f.compile().unwrap();
            for x in [0.3, 0.0, -0.5] {
                let next = f.sparse_hessian(&[x; 7]).unwrap();
                assert!(next.has_pattern_of(&first), "{name}: {next:?}");
            }
            assert_eq!(f.report().kernel_calls, 3, "{name}");
        }
    }
}

/// Intermediate results in vectors, which loops read from earlier loops.
fn stages(x: &[Var]) -> Vec<Var> {
    let waves: Vec<Var> = x.iter().map(|x| x.sin()).collect();
    let sums: Vec<Var> = waves.windows(2).map(|w| w[0] * w[1] + 1.0).collect();
    sums.windows(2).map(|s| s[0] / s[1]).collect()
}

#[test]
fn patterns_of_kernels_are_those_of_runs() {
    let names = ["residuals", "bordered", "few"];
    let vectors = VECTORS.into_iter().filter(|(name, _)| names.contains(name));
    for (name, program) in vectors.chain([("stages", stages as Vector)]) {
        for numerics in NUMERICS {
            let sum = |x: &[Var]| program(x).iter().map(|y| y.exp()).sum::<Var>();
            let (f, g) = (manual(numerics).record(program), manual(numerics).record(sum));
            let x: Vec<f64> = (0..80).map(f64::from).map(f64::sin).collect();
            let (jacobian, hessian) =
                (f.sparse_jacobian(&x).unwrap(), g.sparse_hessian(&x).unwrap());
            f.compile().unwrap();
            g.compile().unwrap();
            let (first, second) = (f.sparse_jacobian(&x).unwrap(), g.sparse_hessian(&x).unwrap());
            assert!(
                first.has_pattern_of(&jacobian),
                "{name}: {} {}",
                f.report(),
                first.values().len()
            );
            assert!(second.has_pattern_of(&hessian), "{name}: {}", second.values().len());
            assert_eq!((f.report().kernel_calls, g.report().kernel_calls), (1, 1));
            assert_near(name, &first, &jacobian.to_dense(), 1e-12);
            assert_near(name, &second, &hessian.to_dense(), 1e-11);
        }
    }
}

#[test]
fn patterns_grow_with_new_paths_only() {
    let f = manual(Numerics::Real).record(paths);
    let x = |a: f64, b: f64| [a, b, 0.5, 0.6, 0.7, 0.8];
    let places = |x: &[f64]| -> Vec<(usize, usize)> {
        let matrix = f.sparse_hessian(x).unwrap();
        matrix.triplets().map(|(row, column, _)| (row, column)).collect()
    };
    assert_eq!(places(&x(1.0, 1.0)), [(2, 3), (3, 2)]);
    assert_eq!(places(&x(-1.0, -1.0)), [(2, 3), (3, 2)]);
    assert_eq!(places(&x(1.0, -1.0)), [(2, 3), (3, 2), (4, 4)]);
    assert_eq!(places(&x(1.0, 1.0)), [(2, 3), (3, 2), (4, 4)]);
    f.compile().unwrap();
    assert_eq!(places(&x(1.0, 1.0)), [(2, 3), (3, 2), (4, 4)]);
    // A path that the kernel does not know.
    assert_eq!(places(&x(-1.0, 1.0)).len(), 9);
    assert_eq!(places(&x(1.0, 1.0)).len(), 9);
    let hessian = f.sparse_hessian(&x(-1.0, 1.0)).unwrap();
    assert_eq!(hessian.to_dense()[..6], [0.0, 0.8, 0.0, 0.0, 0.0, 1.0]);
    assert_eq!((f.report().kernel_calls, f.report().fallbacks), (2, 2));
    f.invalidate();
    assert_eq!(places(&x(1.0, 1.0)), [(2, 3), (3, 2)]);
}

#[test]
fn a_linear_path_in_a_kernel_does_not_serve_another_one() {
    let f = manual(Numerics::Real)
        .record(|x: &[Var]| if x[0] > 0.0 { x[0] + x[1] } else { x[0] * x[1] });
    assert_eq!(f.sparse_hessian(&[1.0, 2.0]).unwrap().to_dense(), [0.0; 4]);
    f.compile().unwrap();
    assert_eq!(f.sparse_hessian(&[1.0, 2.0]).unwrap().to_dense(), [0.0; 4]);
    assert_eq!(f.report().kernel_calls, 1);
    assert_eq!(f.sparse_hessian(&[-1.0, 2.0]).unwrap().to_dense(), [0.0, 1.0, 1.0, 0.0]);
}

#[test]
fn hidden_state_does_not_hide_entries_from_the_tape() {
    // The same operations of other inputs.
    let partner = Cell::new(1);
    let f = Tape::builder().tape_only().record(|x: &[Var]| x[0] * x[partner.get()]);
    for _ in 0..2 {
        for i in 1..4 {
            partner.set(i);
            let mut expected = vec![0.0; 16];
            (expected[i], expected[4 * i]) = (1.0, 1.0);
            assert_eq!(f.sparse_hessian(&[1.0; 4]).unwrap().to_dense(), expected);
        }
    }
}

#[test]
fn random_programs_have_the_same_sparse_derivatives() {
    let tame = Recipe { active: 5, ..Recipe::default() };
    let recipes = [
        tame,
        Recipe { guards: 0.3, loops: 0.2, reads: 0.05, ..tame },
        Recipe { annotated: true, guards: 0.3, loops: 0.2, jumps: 0.2, counters: 1, ..tame },
    ];
    let mut compared = 0;
    for (seed, recipe) in recipes.iter().enumerate() {
        let mut random = Random::new(30 + seed as u64);
        for _ in 0..40 {
            let programs: Vec<_> = (0..3).map(|_| recipe.program(&mut random)).collect();
            let one = |x: &[Var], data: &[Var]| -> Var { programs[0].eval(x, data) };
            let all = |x: &[Var], data: &[Var]| -> Vec<Var> {
                programs.iter().map(|program| program.eval(x, data)).collect()
            };
            let (f, g) =
                (manual(Numerics::Real).record_with(one), manual(Numerics::Real).record_with(all));
            let f_on_tape = Tape::builder().tape_only().record_with(one);
            let g_on_tape = Tape::builder().tape_only().record_with(all);
            for round in 0..12 {
                let (x, data) = recipe.inputs(&mut random);
                let name = programs[0].to_string();
                let (found, expected) =
                    (f.sparse_hessian(&x, &data).unwrap(), f_on_tape.hessian(&x, &data).unwrap());
                if expected.iter().all(|number| number.abs() < 1e6) && is_symmetric(&expected) {
                    assert_near(&name, &found, &expected, 1e-7);
                    compared += 1;
                }
                let found = g.sparse_jacobian(&x, &data).unwrap();
                let expected = g_on_tape.jacobian(&x, &data).unwrap();
                if expected.iter().all(|number| number.abs() < 1e6) {
                    assert_near(&name, &found, &expected, 1e-8);
                }
                if round % 5 == 4 {
                    let _ = (f.compile(), g.compile());
                }
            }
        }
    }
    assert!(compared > 1000, "{compared}");
}

#[test]
fn sizes_without_numbers_and_errors() {
    let f = Tape::record(|_: &[Var]| Var::from(1.0));
    for _ in 0..2 {
        let hessian = f.sparse_hessian(&[]).unwrap();
        assert_eq!((hessian.rows(), hessian.columns(), hessian.row_offsets()), (0, 0, &[0][..]));
        assert_eq!(f.sparse_jacobian(&[]).unwrap().row_offsets(), [0, 0]);
        f.compile().unwrap();
    }
    let none = Tape::record(|_: &[Var]| -> Vec<Var> { vec![] });
    assert_eq!(none.sparse_jacobian(&[1.0, 2.0]).unwrap().columns(), 2);

    let f = manual(Numerics::Real)
        .record(|x: &[Var]| if x[0] < 0.0 { Err("negative") } else { Ok(x[0].ln()) });
    let mut unchanged = f.sparse_hessian(&[2.0]).unwrap().unwrap();
    assert_eq!(unchanged.values(), [-0.25]);
    assert_eq!(f.sparse_hessian_into(&[-1.0], &mut unchanged).unwrap(), Err("negative"));
    assert_eq!(f.sparse_jacobian(&[-1.0]).unwrap(), Err("negative"));
    assert_eq!(unchanged.values(), [-0.25]);

    let short = limits(|limits: &mut Limits| limits.trace_events = 5);
    let f = Tape::builder().limits(short).record(chain);
    assert!(f.sparse_hessian_into(&[0.5; 9], &mut unchanged).unwrap_err().is_too_long());
    assert_eq!(unchanged.values(), [-0.25]);
}

#[test]
fn results_that_are_not_finite_come_from_the_tape() {
    let root = |x: &[Var]| x[0].sqrt() + x[1] * x[1] + x[2] * x[1];
    let f = manual(Numerics::Real).record(root);
    f.sparse_hessian(&[1.0, 1.0, 1.0]).unwrap();
    f.compile().unwrap();
    let hessian = f.sparse_hessian(&[0.0, 1.0, 1.0]).unwrap();
    assert_eq!(hessian.to_dense()[1..], [0.0, 0.0, 0.0, 2.0, 1.0, 0.0, 1.0, 0.0]);
    assert!(!hessian.values()[0].is_finite());
    assert_eq!(f.report().non_finite, 1);
}

#[test]
fn lengths_of_input_and_shapes_of_output_have_their_own_patterns() {
    let f = manual(Numerics::Real).record(|x: &[Var]| -> Vec<Var> {
        if x[0] > 0.0 { x.to_vec() } else { vec![x[0] * x[1]] }
    });
    for _ in 0..2 {
        for (sign, length) in [(1.0, 3), (-1.0, 3), (1.0, 5), (-1.0, 4)] {
            let jacobian = f.sparse_jacobian(&vec![sign; length]).unwrap();
            assert_eq!(jacobian.columns(), length);
            assert_eq!(jacobian.rows(), if sign > 0.0 { length } else { 1 });
            assert_eq!(jacobian.values().len(), if sign > 0.0 { length } else { 2 });
        }
        f.compile().unwrap();
    }
    assert_eq!(f.report().kernel_calls, 4);
}

#[test]
fn audits_compare_sparse_results_with_the_tape() {
    let scale = Cell::new(2.0);
    let f = manual(Numerics::Real).audit(1).record(|x: &[Var]| x[0] * x[1] * scale.get());
    f.sparse_hessian(&[1.0, 1.0]).unwrap();
    f.compile().unwrap();
    assert_eq!(f.sparse_hessian(&[1.0, 1.0]).unwrap().values(), [2.0, 2.0]);
    scale.set(3.0);
    assert_eq!(f.sparse_hessian(&[1.0, 1.0]).unwrap().values(), [3.0, 3.0]);
    assert!(!f.report().refusals.is_empty());
}

/// Times for a chain, by tape and by kernel; run with `--release --ignored --nocapture`.
#[test]
#[ignore = "a measurement"]
fn chains_take_time_linear_in_unknowns() {
    for unknowns in [1_000, 10_000, 100_000] {
        let x: Vec<f64> = (0..unknowns).map(|i| (i as f64 * 0.7).sin()).collect();
        let mut hessian = SparseMatrix::default();
        let tape = Tape::builder().tape_only().record(chain);
        let f = manual(Numerics::Real).record(chain);
        let mut time = |what: &str, run: &mut dyn FnMut(&mut SparseMatrix)| {
            let (mut least, mut first) = (f64::INFINITY, None);
            for _ in 0..9 {
                let start = std::time::Instant::now();
                run(&mut hessian);
                let elapsed = start.elapsed().as_secs_f64() * 1e3;
                first.get_or_insert(elapsed);
                least = least.min(elapsed);
            }
            println!("{unknowns} {what}: first {:.3} ms, least {least:.3} ms", first.unwrap());
        };
        time("gradient, tape", &mut |_| drop(tape.grad(&x).unwrap()));
        let direction = vec![1.0; unknowns];
        time("Hessian product, tape", &mut |_| drop(tape.hvp(&x, &direction).unwrap()));
        time("sparse Hessian, tape", &mut |hessian| tape.sparse_hessian_into(&x, hessian).unwrap());
        f.sparse_hessian(&x).unwrap();
        let start = std::time::Instant::now();
        f.compile().unwrap();
        println!("{unknowns} compile: {:.1} ms", start.elapsed().as_secs_f64() * 1e3);
        time("sparse Hessian, kernel", &mut |hessian| f.sparse_hessian_into(&x, hessian).unwrap());
        assert_eq!(f.report().kernel_calls, 9, "{}", f.report());
        f.grad(&x).unwrap();
        f.compile().unwrap();
        time("gradient, kernel", &mut |_| drop(f.grad(&x).unwrap()));
        assert_eq!(hessian.values().len(), 3 * unknowns - 2);
    }
}
