//! Functions of several outputs: values, products with the Jacobian and the Jacobian, by kernels as
//! on the tape, and against each other.

use core::cell::Cell;

use phigrad::internals::Random;
use phigrad::{Limits, Numerics, OutputReader, OutputWriter, Outputs, Purpose, Tape, Var, traced};

use crate::common::random_programs::Recipe;
use crate::common::served::{NUMERICS, manual};

/// A kinematic chain: the positions of its joints.
fn chain(angles: &[Var]) -> Vec<Var> {
    let zero = Var::from(0.0);
    let (mut at, mut angle, mut positions) = ((zero, zero), zero, vec![]);
    for &turn in angles {
        angle += turn;
        at = (at.0 + angle.cos(), at.1 + angle.sin());
        positions.extend([at.0, at.1]);
    }
    positions
}

/// Differences of neighbours, with a branch.
#[traced]
fn differences(x: &[Var]) -> Vec<Var> {
    let mut residuals = Vec::new();
    for i in 0..x.len() {
        let d = x[i] - x[(i + 1) % x.len()];
        residuals.push(if d > 0.0 { d * d } else { d.exp() - 1.0 });
    }
    residuals
}

/// Few outputs of many inputs, one of them an input and one a constant.
fn moments(x: &[Var]) -> Vec<Var> {
    let mean = x.iter().sum::<Var>() / x.len() as f64;
    let variance = x.iter().map(|&x| (x - mean).powi(2)).sum::<Var>();
    vec![mean, variance.sqrt(), x[0], 3.0.into()]
}

type Function = fn(&[Var]) -> Vec<Var>;

const PROGRAMS: [(&str, Function); 3] =
    [("chain", chain), ("differences", differences), ("moments", moments)];

fn vector(random: &mut Random, length: usize) -> Vec<f64> {
    (0..length).map(|_| random.uniform(-0.9, 0.9)).collect()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn assert_near(name: &str, found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len(), "{name}");
    let largest = expected.iter().fold(1.0f64, |most, number| most.max(number.abs()));
    for (one, other) in found.iter().zip(expected) {
        assert!((one - other).abs() <= 1e-12 * largest, "{name}: {found:?} {expected:?}");
    }
}

/// All results at `x`: outputs, both products, Jacobian.
fn results<F: Fn(&[Var]) -> Vec<Var>>(
    f: &phigrad::Recorded<F>,
    x: &[f64],
    (v, w): (&[f64], &[f64]),
) -> [Vec<f64>; 4] {
    [f.eval(x), f.jvp(x, v), f.vjp(x, w), f.jacobian(x)].map(|result| result.unwrap())
}

#[test]
fn kernels_return_what_the_tape_returns() {
    for (name, program) in PROGRAMS {
        for numerics in NUMERICS {
            let mut random = Random::new(11);
            let f = manual(numerics).record(program);
            for round in 0..40 {
                let x = vector(&mut random, 12);
                let (v, w) = (vector(&mut random, 12), vector(&mut random, program_outputs(name)));
                let on_tape = results(
                    &Tape::builder().tape_only().numerics(numerics).record(program),
                    &x,
                    (&v, &w),
                );
                let found = results(&f, &x, (&v, &w));
                for (found, expected) in found.iter().zip(&on_tape) {
                    match numerics {
                        Numerics::Exact => assert_eq!(found, expected, "{name}"),
                        _ => assert_near(name, found, expected),
                    }
                }
                if round == 20 {
                    f.compile().unwrap();
                }
            }
            let report = f.report();
            assert!(report.kernel_calls > 20, "{name}: {report}");
            for purpose in [
                Purpose::Outputs,
                Purpose::JacobianVectorProduct,
                Purpose::VectorJacobianProduct,
                Purpose::Jacobian,
            ] {
                assert!(report.kernels.iter().any(|kernel| kernel.purpose == purpose), "{report}");
            }
        }
    }
}

/// The number of outputs for 12 inputs.
fn program_outputs(name: &str) -> usize {
    match name {
        "chain" => 24,
        "differences" => 12,
        _ => 4,
    }
}

#[test]
fn random_programs_agree_in_all_derivatives() {
    let mut compared = 0;
    for seed in 0..60 {
        let mut random = Random::new(seed);
        let recipe = Recipe { active: 4, inactive: 0, ..Recipe::default() };
        let programs: Vec<_> = (0..3).map(|_| recipe.program(&mut random)).collect();
        let f = manual(Numerics::Real).record(|x: &[Var]| {
            programs.iter().map(|program| program.eval(x, &[])).collect::<Vec<Var>>()
        });
        for round in 0..8 {
            let ((x, _), v) = (recipe.inputs(&mut random), vector(&mut random, 4));
            let w = vector(&mut random, 3);
            let [y, jv, wj, jacobian] = results(&f, &x, (&v, &w));
            if [&y, &jv, &wj, &jacobian].into_iter().flatten().any(|number| !number.is_finite()) {
                continue;
            }
            compared += 1;
            let rows: Vec<f64> = jacobian.chunks(4).map(|row| dot(row, &v)).collect();
            assert_near("Jv", &jv, &rows);
            let column = |j: usize| (0..3).map(|i| w[i] * jacobian[4 * i + j]).sum();
            assert_near("wJ", &wj, &(0..4).map(column).collect::<Vec<f64>>());
            for (program, (row, y)) in programs.iter().zip(jacobian.chunks(4).zip(&y)) {
                let one = Tape::builder().tape_only();
                let one = one.record(|x: &[Var]| -> Var { program.eval(x, &[]) });
                let (value, gradient) = one.value_and_grad(&x).unwrap();
                assert_near("value", &[*y], &[value]);
                assert_near("row", row, &gradient);
            }
            if round == 4 {
                f.compile().unwrap();
            }
        }
    }
    assert!(compared > 300, "{compared}");
}

#[test]
fn outputs_of_any_type_come_back_in_their_form() {
    let f = manual(Numerics::Real).record(|x: &[Var]| {
        let squares: Vec<Var> = x.iter().map(|&x| x * x).collect();
        (x[0] + x[1], [x[0], x[1]], (squares, vec![[x[1], 2.0.into()]]))
    });
    let expected = (5.0, [2.0, 3.0], (vec![4.0, 9.0], vec![[3.0, 2.0]]));
    let derivatives = (1.0, [1.0, 0.0], (vec![4.0, 0.0], vec![[0.0, 0.0]]));
    for _ in 0..2 {
        assert_eq!(f.eval(&[2.0, 3.0]).unwrap(), expected);
        assert_eq!(f.jvp(&[2.0, 3.0], &[1.0, 0.0]).unwrap(), derivatives);
        f.compile().unwrap();
    }
    assert_eq!(f.report().kernel_calls, 2);
    let none = Tape::record(|_: &[Var]| -> Vec<Var> { Vec::new() });
    assert!(none.eval(&[1.0]).unwrap().is_empty());
    assert_eq!(none.vjp(&[1.0, 2.0], &[]).unwrap(), [0.0, 0.0]);
    assert!(none.jacobian(&[1.0]).unwrap().is_empty());
    let of_nothing = Tape::record(|_: &[Var]| [Var::from(1.0), Var::from(2.0)]);
    assert_eq!(of_nothing.eval(&[]).unwrap(), [1.0, 2.0]);
    assert!(of_nothing.jacobian(&[]).unwrap().is_empty());
}

#[test]
fn paths_may_have_outputs_of_different_shapes() {
    let program = |x: &[Var]| match x[0] > 0.0 {
        true => (vec![x[0], x[1]], vec![]),
        false => (vec![x[0]], vec![x[1] * 2.0]),
    };
    let f = manual(Numerics::Real).record(program);
    for round in 0..10 {
        let sign = if round % 2 == 0 { 1.0 } else { -1.0 };
        let (first, second) = f.eval(&[sign, 3.0]).unwrap();
        match round % 2 {
            0 => assert_eq!((first, second), (vec![1.0, 3.0], vec![])),
            _ => assert_eq!((first, second), (vec![-1.0], vec![6.0])),
        }
        if round == 4 {
            f.compile().unwrap();
        }
    }
    assert_eq!(f.report().kernel_calls, 5);
}

#[test]
fn errors_of_the_function_are_returned_and_not_recorded() {
    #[derive(Debug, PartialEq)]
    struct Negative(usize);
    let f = manual(Numerics::Real).record(|x: &[Var]| {
        let root = |i: usize| if x[i] < 0.0 { Err(Negative(i)) } else { Ok(x[i].sqrt()) };
        (0..x.len()).map(root).collect::<Result<Vec<Var>, _>>()
    });
    let scalar = manual(Numerics::Real)
        .record(|x: &[Var]| if x[0] < 0.0 { Err("negative") } else { Ok(x[0].ln()) });
    for _ in 0..2 {
        assert_eq!(f.eval(&[4.0, 9.0]).unwrap(), Ok(vec![2.0, 3.0]));
        assert_eq!(f.eval(&[4.0, -9.0]).unwrap(), Err(Negative(1)));
        assert_eq!(f.jacobian(&[-4.0, -9.0]).unwrap(), Err(Negative(0)));
        assert_eq!(scalar.value_and_grad(&[1.0]).unwrap(), Ok((0.0, vec![1.0])));
        assert_eq!(scalar.grad(&[-1.0]).unwrap(), Err("negative"));
        assert_eq!(scalar.hessian(&[-1.0]).unwrap(), Err("negative"));
        let mut unchanged = [7.0];
        assert_eq!(scalar.grad_into(&[-1.0], &mut unchanged).unwrap(), Err("negative"));
        assert_eq!(unchanged, [7.0]);
        f.compile().unwrap();
        scalar.compile().unwrap();
    }
    let report = f.report();
    assert_eq!((report.paths, report.kernel_calls, report.tape_calls), (1, 1, 5));
}

#[test]
fn wrong_lengths_are_errors() {
    let f = manual(Numerics::Real).record(|x: &[Var]| vec![x[0], x[0] * x[1]]);
    for _ in 0..2 {
        let x = [2.0, 3.0];
        let mut four = [0.0; 4];
        let errors = [
            f.vjp(&x, &[1.0]).unwrap_err(),
            f.vjp(&x, &[1.0; 3]).unwrap_err(),
            f.jvp(&x, &[1.0]).unwrap_err(),
            f.eval_into(&x, &mut four).unwrap_err(),
            f.jvp_into(&x, &[1.0, 1.0], &mut four).unwrap_err(),
            f.vjp_into(&x, &[1.0, 1.0], &mut four).unwrap_err(),
            f.jacobian_into(&x, &mut four[..3]).unwrap_err(),
        ];
        errors.iter().for_each(|error| assert!(error.is_shape(), "{error}"));
        assert_eq!(four, [0.0; 4]);
        f.eval(&x).unwrap();
        f.compile().unwrap();
    }
}

#[test]
fn outputs_that_differ_when_repeated_are_an_error() {
    let calls = Cell::new(0);
    let f = manual(Numerics::Real).record(|x: &[Var]| {
        calls.set(calls.get() + 1);
        vec![x[0]; calls.get()]
    });
    assert!(f.eval(&[1.0]).unwrap_err().is_not_repeatable());
}

#[test]
fn long_runs_have_outputs_and_vector_jacobian_products() {
    let mut limits = Limits::default();
    limits.trace_events = 100;
    let f = manual(Numerics::Real).limits(limits).record(|x: &[Var]| {
        let y = (0..500).fold(x[0], |y, _| y * x[1]);
        vec![y, y + x[0]]
    });
    assert_eq!(f.eval(&[3.0, 1.0]).unwrap(), [3.0, 6.0]);
    assert_eq!(f.vjp(&[3.0, 1.0], &[1.0, 2.0]).unwrap(), [5.0, 4500.0]);
    assert!(f.jvp(&[3.0, 1.0], &[1.0, 2.0]).unwrap_err().is_too_long());
    assert!(f.jacobian(&[3.0, 1.0]).unwrap_err().is_too_long());
}

#[test]
fn a_loop_over_outputs_stays_a_loop() {
    let nodes = |length: usize| {
        let f = manual(Numerics::Real).record(differences_plain);
        let x: Vec<f64> = (0..length).map(|i| (i as f64).sin()).collect();
        f.vjp(&x, &vec![1.0; length]).unwrap();
        f.jvp(&x, &vec![1.0; length]).unwrap();
        f.compile().unwrap();
        f.report().kernels.iter().map(|kernel| kernel.nodes).collect::<Vec<_>>()
    };
    assert_eq!(nodes(200), nodes(400));
}

fn differences_plain(x: &[Var]) -> Vec<Var> {
    (0..x.len()).map(|i| (x[i] - x[(i + 1) % x.len()]).powi(2)).collect()
}

/// A network of coupled oscillators: a loop that carries six numbers and reads `parameters` by
/// index. Its outputs are further from the inputs than its loop is long.
#[traced]
fn oscillators(parameters: &[Var], outputs: usize) -> Vec<Var> {
    let mut at = [parameters[0], parameters[1], parameters[2]];
    let mut speed = [Var::from(0.0); 3];
    for step in 0..40 {
        let drive = (parameters[3] * f64::from(step)).sin();
        for i in 0..3 {
            let pull = at[(i + 1) % 3] - at[i];
            let force = if pull > 0.1 { pull * parameters[4] } else { drive + pull.sin() };
            speed[i] += 0.05 * (force - parameters[5] * speed[i]);
        }
        for i in 0..3 {
            at[i] += 0.05 * speed[i];
        }
    }
    (0..outputs).map(|k| at[k % 3] * parameters[k % parameters.len()] + speed[k % 2]).collect()
}

/// Jacobians whose products are computed along axes and in groups, by rows and by columns.
#[test]
fn jacobians_of_loops_in_one_run_and_in_groups() {
    let mut random = Random::new(31);
    for (inputs, outputs) in [(6, 2), (6, 12), (20, 19), (23, 24), (40, 7), (9, 60)] {
        let tape = Tape::builder().tape_only().record(|x: &[Var]| oscillators(x, outputs));
        let kernel = manual(Numerics::Real).record(|x: &[Var]| oscillators(x, outputs));
        let (mut served, name) = (0, format!("{outputs} × {inputs}"));
        for round in 0..60 {
            let x = vector(&mut random, inputs);
            let expected = tape.jacobian(&x).unwrap();
            let before = kernel.report().kernel_calls;
            assert_near(&name, &kernel.jacobian(&x).unwrap(), &expected);
            served += kernel.report().kernel_calls - before;
            let sparse = kernel.sparse_jacobian(&x).unwrap().to_dense();
            assert_near(&format!("sparse {name}"), &sparse, &expected);
            if round % 20 == 15 {
                kernel.compile().unwrap();
            }
        }
        assert!(served > 15, "{name}: {served}\n{}", kernel.report());
    }
}

/// The kernel for calls without outputs has guards, too.
#[test]
fn paths_without_outputs_are_guarded() {
    let f = manual(Numerics::Real).record(|x: &[Var]| {
        let y = if x[0] < 3.0 { x[0] * 2.0 } else { x[0] };
        if x[1] < 0.0 { vec![] } else { vec![y] }
    });
    for round in 0..3 {
        for (x, expected) in [
            ([4.0, -1.0], &[][..]),
            ([2.0, -1.0], &[]),
            ([4.0, 1.0], &[1.0, 0.0]),
            ([2.0, 1.0], &[2.0, 0.0]),
        ] {
            assert_eq!(f.jacobian(&x).unwrap(), expected, "round {round}, {x:?}");
            assert_eq!(f.sparse_jacobian(&x).unwrap().to_dense(), expected, "round {round}, {x:?}");
            if round == 0 && expected.is_empty() {
                f.compile().unwrap();
            }
        }
        f.compile().unwrap();
    }
}

#[test]
fn an_exit_counts_for_the_kernel_of_the_same_shape() {
    let f = manual(Numerics::Real).record(|x: &[Var]| {
        if x[0] > 0.0 {
            // Many paths, so that the graph of this shape has had many versions.
            let bits = (0..3).map(|bit| if x[1] > f64::from(bit) { x[0].sin() } else { x[0] });
            return vec![bits.sum::<Var>(), x[1]];
        }
        vec![if x[1] > 0.0 { x[1] * x[1] } else { x[0] * x[1] }]
    });
    f.eval(&[-1.0, 1.0]).unwrap();
    for t in [-0.5, 0.5, 1.5, 2.5] {
        f.eval(&[1.0, t]).unwrap();
    }
    f.compile().unwrap();
    assert_eq!(f.eval(&[-1.0, -2.0]).unwrap(), [2.0]);
    let exit = f.report().last_side_exit.unwrap();
    assert_eq!((exit.at.line, exit.held), (line!() - 9, false));
    assert_eq!(f.report().fallbacks, 2);
}

/// One number by its type, which is written so often.
struct Miscounted(Vec<Var>);

impl Outputs for Miscounted {
    type Values = f64;

    const COUNT: Option<usize> = Some(1);

    fn write(self, to: &mut OutputWriter) {
        self.0.into_iter().for_each(|number| to.number(number));
    }

    fn read(from: &mut OutputReader<'_, f64>) -> f64 {
        from.number()
    }

    fn read_vars(from: &mut OutputReader<'_, Var>) -> Self {
        Miscounted(vec![from.number()])
    }
}

#[test]
fn outputs_that_write_another_number_than_their_type_says_are_an_error() {
    for count in [0, 2] {
        let f = Tape::record(|x: &[Var]| Miscounted(vec![x[0]; count]));
        for error in [f.eval(&[1.0]).unwrap_err(), f.vjp(&[1.0], &[1.0]).unwrap_err()] {
            assert!(error.is_shape(), "{error}");
            assert!(error.to_string().contains("Outputs::COUNT"), "{error}");
        }
    }
}

#[test]
fn a_slice_of_a_wrong_length_has_its_name() {
    let f = Tape::record(|x: &[Var]| x[0] * x[0]);
    let name = |error: phigrad::Error| error.to_string().split(" has").next().unwrap().to_owned();
    assert_eq!(name(f.grad_into(&[1.0], &mut []).unwrap_err()), "the gradient");
    assert_eq!(name(f.hvp_into(&[1.0], &[1.0], &mut []).unwrap_err()), "the product");
    assert_eq!(name(f.vjp_into(&[1.0], &[1.0], &mut []).unwrap_err()), "the product");
}
