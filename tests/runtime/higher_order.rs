//! Derivatives of the third order and above, by gradients inside recorded functions: against the
//! coefficients of Taylor series, and against formulas.

use core::convert::Infallible;
use std::sync::Arc;

use phigrad::internals::Random;
use phigrad::{CustomOperation, Numerics, Operation, Purpose, Recorded, Tape, TapeBuilder, Var};

use crate::common::random_programs::Recipe;
use crate::common::series::Series;
use crate::common::served::{NUMERICS, limits, manual};

/// Programs of two numbers, for `Var` and for [`Series`].
macro_rules! programs {
    ($($(#[$meta:meta])* fn $name:ident($x:ident, $y:ident) $body:block)*) => {
        mod traced_numbers {
            use phigrad::Var as Number;

            $(
                $(#[$meta])*
                pub fn $name(numbers: &[Number]) -> Number {
                    let ($x, $y) = (numbers[0], numbers[1]);
                    $body
                }
            )*

            pub const ALL: &[(&str, fn(&[Number]) -> Number)] =
                &[$((stringify!($name), $name)),*];
        }

        mod series {
            use super::Series as Number;

            $(
                fn $name(numbers: &[Number]) -> Number {
                    let ($x, $y) = (numbers[0], numbers[1]);
                    $body
                }
            )*

            pub const ALL: &[fn(&[Number]) -> Number] = &[$($name),*];
        }
    };
}

programs! {
    fn polynomial(x, y) { x * x * x * y - 2.0 * x * y * y + 0.5 * x * x * x * x }

    fn exponential(x, y) { (x * y).exp() + (x - 2.0 * y).sin() }

    fn quotient(x, y) { x / (2.0 + y * y) * (1.0 + x * x).sqrt() }

    fn logarithm(x, y) { (x.exp() + (2.0 * y).exp() + 1.0).ln() * y }

    fn branch(x, y) { if x > y { x * y.sin() * x } else { (x * y).exp() } }

    #[phigrad::traced]
    fn traced_branch(x, y) {
        let mut z = x * y;
        if z > 0.0 {
            z = z.exp();
        } else {
            z = z * z * y;
        }
        z * x + y.sin()
    }

    fn recurrence(x, y) {
        let mut z = y;
        for k in 0..7 {
            z = z * x + (y * f64::from(k)).sin();
        }
        z
    }

    fn search(x, y) {
        let mut z = y * y + 0.5;
        while z < 4.0 {
            z *= 1.5 + 0.25 * x * x;
        }
        z * x
    }

    #[phigrad::traced]
    fn traced_search(x, y) {
        let mut z = y * y + 0.5;
        let mut sum = x;
        while z < 4.0 {
            if sum > 1.0 {
                z *= 1.5 + 0.25 * x * x;
            } else {
                z += 1.0 + (x * z).sin() * 0.25;
            }
            sum += z * 0.25;
        }
        z * sum
    }

    #[phigrad::traced]
    fn pendulum(x, y) {
        let (mut angle, mut speed) = (x, y);
        for _ in 0..12 {
            speed -= 0.2 * angle.sin();
            angle += 0.2 * speed;
        }
        angle * speed
    }
}

/// The derivative of `f` along `v`, by its gradient.
fn along<F: Fn(&[Var]) -> Var + Send + Sync + 'static>(
    builder: TapeBuilder,
    f: Arc<Recorded<F>>,
    v: [f64; 2],
) -> Arc<Recorded<impl Fn(&[Var]) -> Var + Send + Sync + 'static>> {
    Arc::new(builder.record(move |x: &[Var]| {
        let gradient = f.call_grad(x).unwrap();
        gradient[0] * v[0] + gradient[1] * v[1]
    }))
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn assert_near(name: &str, found: f64, expected: f64) {
    let tolerance = 1e-10 * expected.abs().max(1.0);
    assert!((found - expected).abs() <= tolerance, "{name}: {found} {expected}");
}

/// Compares the third and fourth derivatives of all programs, and what serves them.
fn check(builder: impl Fn() -> TapeBuilder, compile: bool, has_kernels: bool) {
    let mut random = Random::new(7);
    let programs = traced_numbers::ALL.iter().zip(series::ALL);
    for (&(name, program), series) in programs {
        let v = [random.uniform(-1.0, 1.0), random.uniform(-1.0, 1.0)];
        let f = Arc::new(builder().record(program));
        let first = along(builder(), f, v);
        let second = along(builder(), Arc::clone(&first), v);
        let mut served = 0;
        for round in 0..12 {
            let x = [random.uniform(-1.5, 1.5), random.uniform(-1.5, 1.5)];
            let line = [Series::of(x[0], v[0]), Series::of(x[1], v[1])];
            let [_, _, two, three, four] = core::array::from_fn(|k| series(&line).derivative(k));
            assert_near(name, dot(&first.grad(&x).unwrap(), &v), two);
            assert_near(name, dot(&first.hvp(&x, &v).unwrap(), &v), three);
            let hessian = first.hessian(&x).unwrap();
            let product = [dot(&hessian[..2], &v), dot(&hessian[2..], &v)];
            assert_near(name, dot(&product, &v), three);
            let sparse = first.sparse_hessian(&x).unwrap();
            let entries = sparse.triplets().map(|(row, column, entry)| v[row] * entry * v[column]);
            assert_near(name, entries.sum(), three);
            assert_near(name, dot(&second.grad(&x).unwrap(), &v), three);
            let before = second.report().kernel_calls;
            assert_near(name, dot(&second.hvp(&x, &v).unwrap(), &v), four);
            served += second.report().kernel_calls - before;
            if compile && round % 4 == 3 {
                first.compile().unwrap();
                second.compile().unwrap();
            }
        }
        assert_eq!(served > 0, has_kernels, "{name}: {}", second.report());
    }
}

#[test]
fn the_tape_has_third_and_fourth_derivatives() {
    check(|| Tape::builder().tape_only(), false, false);
}

#[test]
fn kernels_have_third_and_fourth_derivatives() {
    for numerics in NUMERICS {
        check(|| manual(numerics), true, true);
    }
}

#[test]
fn kernels_of_first_calls_have_third_and_fourth_derivatives() {
    check(|| Tape::builder().compile_at_first_call(), false, true);
}

#[test]
fn random_programs_have_third_derivatives() {
    let recipe = Recipe { inactive: 0, ..Recipe::default() };
    let mut random = Random::new(5);
    let (mut compared, mut served) = (0, 0);
    for _ in 0..40 {
        let program = recipe.program(&mut random);
        let slope = |builder: fn() -> TapeBuilder| {
            let program = program.clone();
            let f = builder().record(move |x: &[Var]| program.eval(x, &[]));
            builder().record(move |x: &[Var]| f.call_grad(x).unwrap().into_iter().sum::<Var>())
        };
        let tape = slope(|| Tape::builder().tape_only());
        let kernel = slope(|| manual(Numerics::Real));
        let uniform = |random: &mut Random, most: f64| -> Vec<f64> {
            (0..program.active()).map(|_| random.uniform(-most, most)).collect()
        };
        let v = uniform(&mut random, 1.0);
        let points: Vec<Vec<f64>> = (0..6).map(|_| uniform(&mut random, 2.0)).collect();
        for x in &points {
            kernel.hvp(x, &v).unwrap();
        }
        let is_compiled = kernel.compile().is_ok();
        let before = kernel.report().kernel_calls;
        for x in &points {
            let found = tape.hvp(x, &v).unwrap();
            let largest = found.iter().fold(1.0f64, |most, number| most.max(number.abs()));
            if largest.is_nan() || largest > 1e5 {
                continue;
            }
            let by_kernel = kernel.hvp(x, &v).unwrap();
            for (one, other) in found.iter().zip(&by_kernel) {
                assert!((one - other).abs() <= 1e-7 * largest, "{program} {found:?} {by_kernel:?}");
            }
            let differences = [1e-5, 2e-5].map(|step| {
                let [above, below] = [step, -step].map(|step| {
                    let moved: Vec<f64> = x.iter().zip(&v).map(|(x, v)| x + step * v).collect();
                    tape.grad(&moved).unwrap()
                });
                let parts =
                    above.iter().zip(below).map(|(one, other)| (one - other) / (2.0 * step));
                parts.collect::<Vec<f64>>()
            });
            let [one, two] = &differences;
            // Otherwise the differences are of different paths.
            if one.iter().zip(two).all(|(a, b)| (a - b).abs() < 1e-5 * largest) {
                compared += 1;
                for (found, expected) in found.iter().zip(one) {
                    let error = (found - expected).abs();
                    assert!(error <= 1e-4 * largest, "{program} {x:?} {found} {expected}");
                }
            }
        }
        served += (kernel.report().kernel_calls - before) * u64::from(is_compiled);
    }
    assert!(compared > 100 && served > 50, "{compared} {served}");
}

type Boxed = Box<dyn Fn(&[Var]) -> Var + Send + Sync>;

#[test]
fn gradients_nest_to_any_depth() {
    // The derivative of order k is (2ᵏ·x + k·2ᵏ⁻¹)·exp(2x).
    let expected =
        |x: f64, k: i32| (2f64.powi(k) * x + f64::from(k) * 2f64.powi(k - 1)) * (2.0 * x).exp();
    let build = || manual(Numerics::Real);
    let mut f = build().record(Box::new(|x: &[Var]| x[0] * (2.0 * x[0]).exp()) as Boxed);
    for depth in 0..6 {
        for x in [0.3, -0.4, 0.3] {
            assert_near("value", f.eval(&[x]).unwrap(), expected(x, depth));
            assert_near("gradient", f.grad(&[x]).unwrap()[0], expected(x, depth + 1));
            assert_near("product", f.hvp(&[x], &[1.0]).unwrap()[0], expected(x, depth + 2));
            f.compile().unwrap();
        }
        f = build().record(Box::new(move |x: &[Var]| f.call_grad(x).unwrap()[0]) as Boxed);
    }
}

#[test]
fn repeated_and_constant_arguments_have_partials_of_their_own() {
    for numerics in NUMERICS {
        let f = Arc::new(manual(numerics).record(|x: &[Var]| match x[1] > 1.0 {
            true => x[0].powi(3).mul_add(x[1] * x[1], x[1]),
            false => x[0] * x[1].powi(3),
        }));
        let shared = Arc::clone(&f);
        // By x: 3·a²·a² + 2·a³·a + 1 = 5·a⁴ + 1 above 1, a³ + 3·a³ below.
        let repeated = manual(numerics).record(move |a: &[Var]| {
            shared.call_grad(&[a[0], a[0]]).unwrap().into_iter().sum::<Var>()
        });
        // By the constant c: 2·a³·c + 1 above 1, 3·a·c² below. Both arguments may be constants.
        let constant = manual(numerics).record(move |a: &[Var]| {
            let by = |c: f64| f.call_grad(&[a[0], Var::from(c)]).unwrap()[1];
            let four = f.call_grad(&[Var::from(1.0), Var::from(2.0)]).unwrap()[0];
            by(2.0) + by(0.5) * a[0] + four
        });
        for _ in 0..2 {
            assert_near("above", repeated.hvp(&[1.5], &[1.0]).unwrap()[0], 60.0 * 1.5 * 1.5);
            assert_near("below", repeated.hvp(&[0.5], &[1.0]).unwrap()[0], 24.0 * 0.5);
            // 4·a³ + 1 + 0.75·a² + 12
            assert_near("constant", constant.eval(&[1.5]).unwrap(), 28.1875);
            assert_near("constant", constant.hvp(&[1.5], &[1.0]).unwrap()[0], 24.0 * 1.5 + 1.5);
            repeated.compile().unwrap();
            constant.compile().unwrap();
        }
        assert!(repeated.report().kernel_calls >= 2 && constant.report().kernel_calls >= 2);
    }
}

#[test]
fn errors_of_inlined_functions_are_returned() {
    let root = manual(Numerics::Real).record(|x: &[Var]| {
        if x[0] < 0.0 { Err("negative") } else { Ok(x[0].powi(2) * x[0].sqrt()) }
    });
    let root = Arc::new(root);
    let shared = Arc::clone(&root);
    let slope = manual(Numerics::Real)
        .record(move |x: &[Var]| shared.call_grad(x).unwrap().map(|gradient| gradient[0]));
    let handled =
        manual(Numerics::Real).record(move |x: &[Var]| match root.call_grad(x).unwrap() {
            Ok(gradient) => gradient[0],
            Err(_) => x[0].powi(4),
        });
    for _ in 0..3 {
        // The third derivative of x^2.5 is 1.875/√x.
        assert_near("root", slope.hvp(&[4.0], &[1.0]).unwrap().unwrap()[0], 0.9375);
        assert_eq!(slope.hvp(&[-4.0], &[1.0]).unwrap(), Err("negative"));
        assert_near("root", handled.hvp(&[4.0], &[1.0]).unwrap()[0], 0.9375);
        assert_near("other", handled.hvp(&[-2.0], &[1.0]).unwrap()[0], 48.0);
        slope.compile().unwrap();
        handled.compile().unwrap();
    }
    // Both paths of the second one are guarded.
    assert_eq!((slope.report().kernel_calls, handled.report().kernel_calls), (2, 4));
}

/// Gradient descent of 20 steps by `slope`, which depends on the parameter `a`.
fn minimum(a: Var, slope: impl Fn(Var) -> Var) -> Var {
    (0..20).fold(Var::from(0.5), |y, _| y - 0.2 * slope(y)) + a
}

#[test]
fn an_objective_with_a_minimiser_has_hessian_products() {
    for numerics in NUMERICS {
        // A branch, and a call of another recorded function.
        let quartic = manual(numerics).record(|x: &[Var]| 0.1 * x[0].powi(4));
        let energy = manual(numerics).record(move |x: &[Var]| {
            let square = (x[0] - x[1].sin()).powi(2);
            square + if x[0] > 0.0 { quartic.call(&x[..1]).unwrap() } else { x[0].powi(2) }
        });
        let f = manual(numerics).record(move |x: &[Var]| {
            minimum(x[0], |y| energy.call_grad(&[y, x[0]]).unwrap()[0]).powi(2)
        });
        let expected = Tape::builder().tape_only().record(|x: &[Var]| {
            let a = x[0];
            let other = |y: Var| if y > 0.0 { 0.4 * y.powi(3) } else { 2.0 * y };
            minimum(a, |y| 2.0 * (y - a.sin()) + other(y)).powi(2)
        });
        for _ in 0..2 {
            for a in [0.3, 0.8, -0.6] {
                let product = f.hvp(&[a], &[1.0]).unwrap()[0];
                assert_near("minimum", product, expected.hvp(&[a], &[1.0]).unwrap()[0]);
            }
            f.compile().unwrap();
        }
        assert_eq!(f.report().kernel_calls, 3, "{}", f.report());
    }
}

/// Steps along `slope` in a loop with a branch.
#[phigrad::traced]
fn steps(x: &[Var], slope: impl Fn(Var) -> Var) -> Var {
    let (mut y, mut sum) = (x[1], Var::from(0.0));
    for _ in 0..6 {
        if y > 0.5 {
            y -= 0.2 * slope(y);
        } else {
            sum += slope(y * x[1]);
            y += 0.3;
        }
    }
    y * sum + y.sin()
}

#[test]
fn gradients_are_inlined_in_arms_and_loops() {
    for numerics in NUMERICS {
        let energy = manual(numerics).record(|x: &[Var]| traced_numbers::traced_branch(x));
        let f = manual(numerics)
            .record(move |x: &[Var]| steps(x, |y| energy.call_grad(&[y, x[0]]).unwrap()[0]));
        let expected = Tape::builder().tape_only().record(|x: &[Var]| {
            // With z = y·x the energy is y·exp(z) + sin x for z > 0, otherwise y·z²·x + sin x.
            steps(x, |y| {
                let (z, x) = (y * x[0], x[0]);
                if z > 0.0 { z.exp() * (1.0 + z) } else { 3.0 * z * z * x }
            })
        });
        let mut random = Random::new(11);
        for round in 0..60 {
            let x = [random.uniform(-1.0, 1.0), random.uniform(-1.0, 1.0)];
            let (found, other) = (f.hessian(&x).unwrap(), expected.hessian(&x).unwrap());
            found.iter().zip(&other).for_each(|(&one, &other)| assert_near("entry", one, other));
            if round == 40 {
                f.compile().unwrap();
            }
        }
        assert!(f.report().kernel_calls > 10, "{}", f.report());
    }
}

#[test]
fn constant_arguments_may_count_iterations() {
    for numerics in NUMERICS {
        let f = manual(numerics).record(|x: &[Var]| x[0].powi(4) * x[1] * x[1]);
        // The sum of 8·k·x³ for k below 60, times x.
        let g = manual(numerics).record(move |x: &[Var]| {
            let by = |k: u32| f.call_grad(&[x[0], Var::from(k)]).unwrap()[1];
            (0..60).map(by).sum::<Var>() * x[0]
        });
        for _ in 0..2 {
            for x in [0.5, 1.5] {
                // 3540·x⁵
                assert_near("sum", g.hvp(&[x], &[1.0]).unwrap()[0], 70800.0 * x * x * x);
            }
            g.compile().unwrap();
        }
        assert_eq!(g.report().kernel_calls, 2, "{}", g.report());
    }
}

#[test]
fn a_panic_inside_leaves_the_thread_usable() {
    let f = manual(Numerics::Real).record(|x: &[Var]| {
        assert!(x[0] < 5.0, "too large");
        x[0].powi(4)
    });
    let g = manual(Numerics::Real).record(move |x: &[Var]| f.call_grad(x).unwrap()[0]);
    for _ in 0..2 {
        assert_near("product", g.hvp(&[1.0], &[1.0]).unwrap()[0], 24.0);
        let call = std::panic::AssertUnwindSafe(|| g.hvp(&[6.0], &[1.0]));
        assert!(std::panic::catch_unwind(call).is_err());
    }
}

#[test]
fn a_called_function_inlines_gradients_for_its_own_hessian_products() {
    let cubic = manual(Numerics::Real).record(|x: &[Var]| x[0].powi(3) * x[1]);
    let cubic = Arc::new(cubic);
    let shared = Arc::clone(&cubic);
    // (3x²y, x³), of several outputs.
    let gradient = manual(Numerics::Real).record(move |x: &[Var]| shared.call_grad(x).unwrap());
    let f = manual(Numerics::Real).record(move |x: &[Var]| {
        let outside = gradient.call(x).unwrap();
        let inside = cubic.call_grad(x).unwrap();
        outside[0] * inside[1]
    });
    for _ in 0..3 {
        // 3·x⁵·y
        let hessian = f.hessian(&[2.0, 0.5]).unwrap();
        for (found, expected) in hessian.iter().zip([240.0, 240.0, 240.0, 0.0]) {
            assert_near("entry", *found, expected);
        }
        f.compile().unwrap();
    }
    assert_eq!(f.report().kernel_calls, 2, "{}", f.report());
}

#[test]
fn adjoints_of_zero_are_not_propagated() {
    let f = manual(Numerics::Real).record(|x: &[Var]| {
        x[1].powi(3) + x[0].at_most(0.0).select(0.0, x[0].powi(2) * x[0].sqrt())
    });
    let slope = manual(Numerics::Real)
        .record(move |x: &[Var]| f.call_grad(x).unwrap().into_iter().sum::<Var>());
    for _ in 0..2 {
        assert_eq!(slope.hvp(&[0.0, 2.0], &[1.0, 1.0]).unwrap(), [0.0, 6.0]);
        let product = slope.hvp(&[4.0, 2.0], &[1.0, 1.0]).unwrap();
        assert_near("by x", product[0], 0.9375);
        assert_near("by y", product[1], 6.0);
        slope.compile().unwrap();
    }
    assert_eq!(slope.report().kernel_calls, 1, "{}", slope.report());
    // A derivative that is not finite does not become zero.
    let f = manual(Numerics::Real).record(|x: &[Var]| x[0].sqrt() * x[1]);
    let slope = manual(Numerics::Real).record(move |x: &[Var]| f.call_grad(x).unwrap()[0]);
    assert!(!slope.hvp(&[0.0, 0.0], &[0.0, 1.0]).unwrap().iter().all(|number| number.is_finite()));
}

/// The square, with derivatives by hand.
struct Square {
    is_twice_differentiable: bool,
}

impl Operation for Square {
    type Error = Infallible;

    fn inputs(&self) -> usize {
        1
    }

    fn outputs(&self) -> usize {
        1
    }

    fn eval(&self, x: &[f64], y: &mut [f64], _: &mut [f64]) -> Result<(), Infallible> {
        y[0] = x[0] * x[0];
        Ok(())
    }

    fn vjp(&self, x: &[f64], _: &[f64], _: &[f64], w: &[f64], out: &mut [f64]) {
        out[0] = 2.0 * x[0] * w[0];
    }

    fn is_twice_differentiable(&self) -> bool {
        self.is_twice_differentiable
    }

    fn vjp_tangent(
        &self,
        _: &[f64],
        _: &[f64],
        _: &[f64],
        (w, v): (&[f64], &[f64]),
        out: &mut [f64],
    ) {
        out[0] = 2.0 * w[0] * v[0];
    }

    fn name(&self) -> &str {
        "square"
    }
}

#[test]
fn custom_operations_inside_have_no_third_derivatives() {
    for is_twice_differentiable in [false, true] {
        let square = CustomOperation::new(Square { is_twice_differentiable });
        let inside = square.clone();
        // It is called above 1 only.
        let f = manual(Numerics::Real).record(move |x: &[Var]| match x[0] > 1.0 {
            true => {
                let Ok(y) = inside.call(x);
                y[0] * x[0]
            }
            false => x[0].powi(3),
        });
        let slope = manual(Numerics::Real).record(move |x: &[Var]| f.call_grad(x).unwrap()[0]);
        for _ in 0..2 {
            assert_near("below", slope.hvp(&[0.5], &[1.0]).unwrap()[0], 6.0);
            let error = slope.hvp(&[2.0], &[1.0]).unwrap_err();
            assert!(error.is_not_twice_differentiable(), "{error}");
            assert!(error.place().is_some());
            assert!(slope.hessian(&[2.0]).unwrap_err().is_not_twice_differentiable());
            assert!(slope.sparse_hessian(&[2.0]).unwrap_err().is_not_twice_differentiable());
            assert_near("value", slope.eval(&[2.0]).unwrap(), 12.0);
            if is_twice_differentiable {
                assert_near("gradient", slope.grad(&[2.0]).unwrap()[0], 12.0);
            }
            slope.compile().unwrap();
        }
        // Outside of the inner function it has the derivatives that it has.
        let g = manual(Numerics::Real).record(|x: &[Var]| x[0].powi(3));
        let outside = manual(Numerics::Real).record(move |x: &[Var]| {
            let Ok(y) = square.call(x);
            y[0] * g.call_grad(x).unwrap()[0]
        });
        let product = outside.hvp(&[2.0], &[1.0]);
        match is_twice_differentiable {
            true => assert_near("outside", product.unwrap()[0], 144.0),
            false => assert!(product.unwrap_err().is_not_twice_differentiable()),
        }
    }
}

#[test]
fn one_specialisation_serves_gradients_and_one_second_derivatives() {
    let f = manual(Numerics::Real).record(|x: &[Var]| x[0].powi(4));
    let limits = limits(|limits| limits.specialisations = 1);
    let builder = manual(Numerics::Real).limits(limits);
    let slope = builder.record(move |x: &[Var]| f.call_grad(x).unwrap()[0]);
    for round in 0..2 {
        for calls in [0, 2] {
            assert_near("gradient", slope.grad(&[2.0]).unwrap()[0], 48.0);
            assert_near("product", slope.hvp(&[2.0], &[1.0]).unwrap()[0], 48.0);
            slope.compile().unwrap();
            let report = slope.report();
            assert_eq!((report.kernel_calls, report.tape_calls), (calls, 2), "{round}: {report}");
            let purposes = report.kernels.iter().map(|kernel| kernel.purpose);
            assert_eq!(purposes.filter(|&one| one == Purpose::HessianProduct).count(), 1);
        }
        slope.invalidate();
        assert_eq!(slope.report().tape_calls, 0);
    }
}

#[test]
fn long_gradients_are_refused() {
    let limits = limits(|limits| limits.trace_events = 50);
    let f = Tape::record(|x: &[Var]| (0..30).fold(x[0], |y, _| y * x[0]));
    let slope = Tape::builder().limits(limits).record(move |x: &[Var]| f.call_grad(x).unwrap()[0]);
    assert!(slope.hvp(&[1.0], &[1.0]).unwrap_err().is_too_long());
    assert_near("gradient", slope.grad(&[1.0]).unwrap()[0], 930.0);
}
