//! `Var` is used like an `f64`: operators in every order, conversions, and the
//! traits of `num_traits`, each with the right value and gradient.

use std::num::FpCategory;
use std::panic::Location;

use crate::common::served::{NUMERICS, Pair, Served, manual};
use num_traits::{Bounded, Float, FloatConst, FromPrimitive, Num, One, Signed, ToPrimitive, Zero};
use phigrad::internals::op::Op;
use phigrad::internals::trace::{Inputs, Role, Tracer};
use phigrad::{Numerics, Var};

type Binary = fn(Var, Var) -> Var;
type Question = fn(f64, f64) -> bool;

/// Value and gradient of `f` at `x`, the same from the tape and from kernels.
fn at<const N: usize>(f: impl Fn(&[Var]) -> Var + Copy, x: [f64; N]) -> (f64, [f64; N]) {
    for numerics in NUMERICS {
        let pair = Pair::new(numerics, f);
        pair.profile(&[x]);
        assert!(matches!(pair.check(&x), Served::Kernel | Served::NonFinite));
    }
    let (value, gradient) = manual(Numerics::Exact).record(f).value_and_grad(&x).unwrap();
    (value, gradient.try_into().unwrap())
}

/// Checks an operator between `Var` and `f64`, by value and by reference, in
/// every order and with assignment.
macro_rules! operator {
    ($op:tt, $assign:tt, |$a:ident, $b:ident| $derivatives:expr) => {{
        let ($a, $b) = (7.5, 2.0);
        let value = $a $op $b;
        let (by_a, by_b): (f64, f64) = $derivatives;
        let both = (value, [by_a, by_b]);
        assert_eq!(at(|x: &[Var]| x[0] $op x[1], [$a, $b]), both);
        assert_eq!(at(|x: &[Var]| &x[0] $op x[1], [$a, $b]), both);
        assert_eq!(at(|x: &[Var]| x[0] $op &x[1], [$a, $b]), both);
        assert_eq!(at(|x: &[Var]| &x[0] $op &x[1], [$a, $b]), both);
        let first = (value, [by_a]);
        assert_eq!(at(|x: &[Var]| x[0] $op $b, [$a]), first);
        assert_eq!(at(|x: &[Var]| &x[0] $op $b, [$a]), first);
        assert_eq!(at(|x: &[Var]| x[0] $op &$b, [$a]), first);
        assert_eq!(at(|x: &[Var]| &x[0] $op &$b, [$a]), first);
        let second = (value, [by_b]);
        assert_eq!(at(|x: &[Var]| $a $op x[0], [$b]), second);
        assert_eq!(at(|x: &[Var]| &$a $op x[0], [$b]), second);
        assert_eq!(at(|x: &[Var]| $a $op &x[0], [$b]), second);
        assert_eq!(at(|x: &[Var]| &$a $op &x[0], [$b]), second);
        assert_eq!(at(|x: &[Var]| { let mut v = x[0]; v $assign x[1]; v }, [$a, $b]), both);
        assert_eq!(at(|x: &[Var]| { let mut v = x[0]; v $assign &x[1]; v }, [$a, $b]), both);
        assert_eq!(at(|x: &[Var]| { let mut v = x[0]; v $assign $b; v }, [$a]), first);
        assert_eq!(at(|x: &[Var]| { let mut v = Var::from($a); v $assign x[0]; v }, [$b]), second);
        // Constants only.
        assert_eq!((Var::from($a) $op Var::from($b)).value(), value);
    }};
}

#[test]
#[allow(clippy::op_ref)] // References are what is tested.
fn operators_take_vars_and_numbers_in_every_order() {
    operator!(+, +=, |a, b| (1.0, 1.0));
    operator!(-, -=, |a, b| (1.0, -1.0));
    operator!(*, *=, |a, b| (b, a));
    operator!(/, /=, |a, b| (1.0 / b, -a / (b * b)));
    operator!(%, %=, |a, b| (1.0, -(a / b).trunc()));
    assert_eq!(at(|x: &[Var]| -x[0], [2.0]), (-2.0, [-1.0]));
    assert_eq!(at(|x: &[Var]| -&x[0], [2.0]), (-2.0, [-1.0]));
}

#[test]
fn sums_and_products_take_vars_and_references() {
    let x = [2.0, 3.0, 4.0];
    let (sum, product) = ((9.0, [1.0; 3]), (24.0, [12.0, 8.0, 6.0]));
    assert_eq!(at(|x: &[Var]| x.iter().sum(), x), sum);
    assert_eq!(at(|x: &[Var]| x.iter().copied().sum(), x), sum);
    assert_eq!(at(|x: &[Var]| x.iter().product(), x), product);
    assert_eq!(at(|x: &[Var]| x.iter().copied().product(), x), product);
    // Numbers join as constants.
    assert_eq!(at(|x: &[Var]| [1.0, 2.0].map(Var::from).iter().sum::<Var>() + x[0], [1.0]).0, 4.0);
    let empty: [Var; 0] = [];
    assert_eq!(empty.iter().sum::<Var>().value(), 0.0);
    assert_eq!(empty.iter().product::<Var>().value(), 1.0);
}

#[test]
fn numbers_become_constants() {
    let constants = [
        Var::from(3.0f64),
        Var::from(3.0f32),
        Var::from(3i8),
        Var::from(3i16),
        Var::from(3i32),
        Var::from(3u8),
        Var::from(3u16),
        Var::from(3u32),
        3.0.into(),
    ];
    assert!(constants.iter().all(|c| c.value() == 3.0));
    assert_eq!(Var::default().value(), 0.0);
    let f = manual(Numerics::Exact).record(move |x: &[Var]| {
        let three: Var = 3.into();
        x[0] * three
    });
    assert_eq!(f.grad(&[1.0]).unwrap(), [3.0]);
    // Comparing and reading constants records no guard.
    let g = manual(Numerics::Exact).record(|x: &[Var]| {
        let c = Var::from(2.0);
        if c > 1.0 && c.value() == 2.0 && !Float::is_nan(c) { x[0] * c } else { x[0] }
    });
    g.grad(&[1.0]).unwrap();
    assert_eq!(g.report().conditions, 0);
    assert_eq!(
        format!(
            "{:?} {} {:e} {:E}",
            Var::from(2.5),
            Var::from(2.5),
            Var::from(2.5),
            Var::from(2.5)
        ),
        "2.5 2.5 2.5e0 2.5E0"
    );
}

/// Generic code of the kind that users have: nothing in it knows of `Var`.
fn generic<T: Float + FloatConst>(x: &[T]) -> T {
    let two = T::one() + T::one();
    let half = T::from(0.5).unwrap();
    let radius = x[0].hypot(x[1]) + x[0].powi(3) / (T::PI() * two);
    let angle = x[1].atan2(x[0]).to_degrees().to_radians() - T::FRAC_PI_4() * T::E().ln();
    let (sine, cosine) = angle.sin_cos();
    let mixed = radius.ln_1p() * sine + (x[0] * x[1]).tanh() * cosine.exp_m1();
    let clamped = Float::clamp(mixed, -T::one(), two).max(-two).min(two);
    let tail = x[0].mul_add(half, x[1].cbrt()) + x[1].sqrt().recip() + x[0].powf(half);
    let logs = x[0].log2() + x[0].log10() + x[1].log(T::from(3.0).unwrap()) + x[0].exp2();
    let inverse = (x[0] / two).asin() + (x[0] / two).acos().tan() + (x[1] / two).atan();
    let hyperbolic = x[0].sinh() - x[1].cosh() + x[0].asinh() * (x[1] + two).acosh();
    let signs = x[0].signum() * x[1].copysign(-x[0]) + Float::abs(x[0] - x[1]).fract();
    let steps = x[0].floor() + x[1].ceil() * half + x[0].round() - x[1].trunc();
    let remainder = (x[0] * two) % half + Float::abs_sub(x[1], x[0]);
    if x[0] < x[1] && Float::is_finite(mixed) {
        clamped
            + tail
            + logs
            + inverse
            + hyperbolic
            + signs
            + steps
            + remainder
            + (x[0] / two).atanh()
    } else {
        clamped * tail - logs
    }
}

#[test]
fn generic_code_has_the_value_and_the_gradient() {
    for x in [[0.6, 1.3], [1.1, 1.7], [1.7, 0.4]] {
        let (value, gradient) = at(generic::<Var>, x);
        assert_eq!(value.to_bits(), generic(&x).to_bits(), "{x:?}");
        for i in 0..2 {
            let mut ends = [x, x];
            let h = 1e-6;
            ends[0][i] -= h;
            ends[1][i] += h;
            let difference = (generic(&ends[1]) - generic(&ends[0])) / (2.0 * h);
            assert!((gradient[i] - difference).abs() < 1e-6, "{x:?}: {} {difference}", gradient[i]);
        }
    }
}

#[test]
fn constants_of_num_traits_are_those_of_f64() {
    macro_rules! same {
        ($trait:ident: $($name:ident)*) => {
            $(assert_eq!(<Var as $trait>::$name().value(), <f64 as $trait>::$name());)*
        };
    }
    same! { FloatConst:
        E FRAC_1_PI FRAC_1_SQRT_2 FRAC_2_PI FRAC_2_SQRT_PI FRAC_PI_2 FRAC_PI_3 FRAC_PI_4 FRAC_PI_6
        FRAC_PI_8 LN_10 LN_2 LOG10_E LOG2_E PI SQRT_2 TAU LOG10_2 LOG2_10
    }
    same! { Float: infinity neg_infinity min_value min_positive_value max_value epsilon }
    same! { Bounded: min_value max_value }
    same! { Zero: zero }
    same! { One: one }
    assert!(<Var as Float>::nan().value().is_nan());
    assert!(<Var as Float>::neg_zero().value().is_sign_negative());
}

#[test]
fn predicates_of_num_traits_agree_with_f64() {
    let edges =
        [0.0, -0.0, 1.0, -2.5, 5e-324, -1e-310, 1e300, f64::INFINITY, f64::NEG_INFINITY, f64::NAN];
    for x in edges {
        let seen = std::cell::Cell::new(false);
        let f = manual(Numerics::Exact).record(|v: &[Var]| {
            let v = v[0];
            assert_eq!((v.is_nan(), Float::is_nan(v)), (x.is_nan(), x.is_nan()));
            assert_eq!(Float::is_infinite(v), x.is_infinite());
            assert_eq!((v.is_finite(), Float::is_finite(v)), (x.is_finite(), x.is_finite()));
            assert_eq!(v.is_infinite(), x.is_infinite());
            assert_eq!(Float::is_normal(v), x.is_normal());
            assert_eq!(Float::is_sign_positive(v), x.is_sign_positive());
            assert_eq!(Float::is_sign_negative(v), x.is_sign_negative());
            let category: FpCategory = Float::classify(v);
            assert_eq!(category, x.classify());
            assert_eq!(Signed::is_positive(&v), Signed::is_positive(&x));
            assert_eq!(Signed::is_negative(&v), Signed::is_negative(&x));
            assert_eq!(Zero::is_zero(&v), x == 0.0);
            assert_eq!(One::is_one(&v), x == 1.0);
            assert_eq!(Float::integer_decode(v), Float::integer_decode(x));
            assert_eq!(v.to_i64(), x.to_i64());
            assert_eq!(v.to_i32(), x.to_i32());
            assert_eq!(v.to_u8(), x.to_u8());
            assert_eq!(v.to_u64(), x.to_u64());
            assert_eq!(v.to_usize(), x.to_usize());
            assert_eq!(v.to_i128(), x.to_i128());
            assert_eq!(v.to_u128(), x.to_u128());
            assert_eq!(v.to_f64().map(f64::to_bits), Some(x.to_bits()));
            assert_eq!(v.to_f32().map(f32::to_bits), x.to_f32().map(f32::to_bits));
            seen.set(true);
            v
        });
        f.eval(&[x]).unwrap();
        assert!(seen.get());
    }
}

#[test]
fn casts_and_parsing_make_constants() {
    assert_eq!(<Var as num_traits::NumCast>::from(3u8).unwrap().value(), 3.0);
    assert_eq!(<Var as num_traits::NumCast>::from(Var::from(2.5)).unwrap().value(), 2.5);
    assert_eq!(Var::from_i64(-4).unwrap().value(), -4.0);
    assert_eq!(Var::from_u64(4).unwrap().value(), 4.0);
    assert_eq!(Var::from_f64(0.5).unwrap().value(), 0.5);
    assert_eq!(Var::from_f32(0.5).unwrap().value(), 0.5);
    assert_eq!(Var::from_str_radix("1.5", 10).unwrap().value(), 1.5);
    assert!(Var::from_str_radix("one", 10).is_err());
    // A cast through `NumCast` leaves the recording: no gradient, but a guard.
    let f = manual(Numerics::Exact)
        .record(|x: &[Var]| x[0] * <Var as num_traits::NumCast>::from(x[0]).unwrap());
    assert_eq!(f.grad(&[3.0]).unwrap(), [3.0]);
    f.compile().unwrap();
    assert_eq!(f.grad(&[4.0]).unwrap(), [4.0]);
    assert_eq!(f.report().fallbacks, 1);
}

#[test]
fn signed_is_the_arithmetic_of_f64() {
    for x in [-2.5, -0.0, 0.0, 3.5] {
        assert_eq!(at(|v: &[Var]| Signed::abs(&v[0]), [x]).0, x.abs());
        assert_eq!(at(|v: &[Var]| Signed::signum(&v[0]), [x]), (x.signum(), [0.0]));
        let (difference, gradient) = at(|v: &[Var]| Signed::abs_sub(&v[0], &v[1]), [x, 1.0]);
        assert_eq!(difference, (x - 1.0).max(0.0));
        assert_eq!(gradient, if x > 1.0 { [1.0, -1.0] } else { [0.0, 0.0] });
    }
    assert_eq!(at(|v: &[Var]| Signed::abs(&v[0]), [-2.0]), (2.0, [-1.0]));
    assert_eq!(at(|v: &[Var]| v[0].abs(), [0.0]), (0.0, [0.0]));
}

#[test]
fn conditions_are_numbers_and_select_without_a_guard() {
    let conditions: [(Binary, Question); 6] = [
        (|a, b| a.less_than(b), |a, b| a < b),
        (|a, b| a.at_most(b), |a, b| a <= b),
        (|a, b| a.greater_than(b), |a, b| a > b),
        (|a, b| a.at_least(b), |a, b| a >= b),
        (|a, b| a.equal_to(b), |a, b| a == b),
        (|a, b| a.differs_from(b), |a, b| a != b),
    ];
    let edges = [-1.0, -0.0, 0.0, 1.5, f64::NAN];
    for (traced, plain) in conditions {
        for numerics in NUMERICS {
            let pair = Pair::new(numerics, |x: &[Var]| {
                let condition = traced(x[0], x[1]);
                condition.select(x[2] * x[2], x[2].exp()) + condition
            });
            pair.profile(&[[0.0, 1.0, 2.0]]);
            for a in edges {
                for b in edges {
                    // One kernel serves both outcomes.
                    assert_eq!(pair.check(&[a, b, 2.0]), Served::Kernel);
                    let gradient = pair.kernel.grad(&[a, b, 2.0]).unwrap();
                    let slope = if plain(a, b) { 4.0 } else { 2.0f64.exp() };
                    assert!((gradient[2] - slope).abs() < 1e-12 && gradient[..2] == [0.0; 2]);
                }
            }
            assert_eq!(pair.kernel.report().conditions, 0);
        }
    }
}

#[test]
fn select_takes_any_number_but_zero_as_true() {
    for (condition, value) in [(1.0, 5.0), (-3.0, 5.0), (f64::NAN, 5.0), (0.0, 7.0), (-0.0, 7.0)] {
        let select = |x: &[Var]| x[0].select(x[1], 7.0);
        let slope = if value == 5.0 { 1.0 } else { 0.0 };
        assert_eq!(at(select, [condition, 5.0]), (value, [0.0, slope]));
        assert_eq!(
            at(|x: &[Var]| x[0].select(5.0, x[1]), [condition, 7.0]),
            (value, [0.0, 1.0 - slope])
        );
        assert_eq!(at(|x: &[Var]| x[0].select(x[1], x[1]), [condition, 7.0]), (7.0, [0.0, 1.0]));
    }
}

#[test]
fn clamp_min_and_max_keep_the_derivative_inside() {
    let clamp = |x: &[Var]| x[0].clamp(-1.0, 2.0);
    for (x, value, slope) in
        [(0.5, 0.5, 1.0), (-1.0, -1.0, 1.0), (2.0, 2.0, 1.0), (-1.5, -1.0, 0.0), (9.0, 2.0, 0.0)]
    {
        assert_eq!(at(clamp, [x]), (value, [slope]));
        assert_eq!(at(|x: &[Var]| Float::clamp(x[0], x[1], x[2]), [x, -1.0, 2.0]).0, value);
    }
    assert!(at(clamp, [f64::NAN]).0.is_nan());
    assert_eq!(at(|x: &[Var]| x[0].clamp(x[1], x[2]), [0.0, 2.0, 1.0]).0, 1.0, "low above high");
    assert_eq!(at(|x: &[Var]| x[0].max(0.0), [0.0]), (0.0, [0.0]));
    assert_eq!(at(|x: &[Var]| x[0].min(x[1]), [1.0, 1.0]), (1.0, [0.0, 1.0]));
    assert_eq!(at(|x: &[Var]| x[0].max(x[1]), [f64::NAN, 1.0]), (1.0, [0.0, 1.0]));
    assert_eq!(at(|x: &[Var]| x[0].min(x[1]), [1.0, f64::NAN]), (1.0, [1.0, 0.0]));
}

#[test]
fn functions_of_several_numbers_take_numbers_too() {
    let (x, y) = (1.5, 0.75);
    assert_eq!(at(|v: &[Var]| v[0].powf(2.0), [x]).0, x.powf(2.0));
    assert_eq!(at(|v: &[Var]| v[0].hypot(y), [x]).0, x.hypot(y));
    assert_eq!(at(|v: &[Var]| v[0].atan2(y), [x]).0, x.atan2(y));
    assert_eq!(at(|v: &[Var]| v[0].copysign(-1), [x]), (-x, [-1.0]));
    assert_eq!(at(|v: &[Var]| v[0].mul_add(2.0, v[1]), [x, y]), (2.0 * x + y, [2.0, 1.0]));
    assert_eq!(at(|v: &[Var]| Var::from(2.0).mul_add(v[0], 1), [x]), (2.0 * x + 1.0, [2.0]));
    assert_eq!(at(|v: &[Var]| v[0].log(2.0), [8.0]).0, 8.0f64.ln() / 2.0f64.ln());
    assert_eq!(at(|v: &[Var]| v[0].powi(0), [x]), (1.0, [0.0]));
    assert_eq!(at(|v: &[Var]| v[0].powi(-2), [2.0]), (0.25, [-0.25]));
}

/// The primitives of the steps that `f` records, guards among them.
fn recorded(f: Binary) -> Vec<Op> {
    let mut tracer = Tracer::default();
    let inputs = Inputs { active: &[0.5, 0.25], inactive: &[] };
    let trace = tracer.run(|x, _| f(x[0], x[1]), inputs, 100, Location::caller()).unwrap();
    let steps = trace.events.iter().filter(|e| matches!(e.role(), Role::Apply | Role::Guard));
    steps.map(|event| event.op()).collect()
}

#[test]
fn each_operation_records_the_primitive_that_it_names() {
    fn guard(x: Var, _: bool) -> Var {
        x
    }
    let operations: [(Binary, Op); 54] = [
        (|a, b| a + b, Op::Add),
        (|a, b| a - b, Op::Sub),
        (|a, b| a * b, Op::Mul),
        (|a, b| a / b, Op::Div),
        (|a, b| a % b, Op::Rem),
        (|a, _| -a, Op::Neg),
        (|a, _| a.recip(), Op::Recip),
        (|a, b| a.mul_add(b, b), Op::MulAdd),
        (|a, _| a.powi(3), Op::Powi),
        (|a, b| a.powf(b), Op::Powf),
        (|a, _| a.sqrt(), Op::Sqrt),
        (|a, _| a.cbrt(), Op::Cbrt),
        (|a, b| a.hypot(b), Op::Hypot),
        (|a, _| a.exp(), Op::Exp),
        (|a, _| a.exp_m1(), Op::ExpM1),
        (|a, _| a.exp2(), Op::Exp2),
        (|a, _| a.ln(), Op::Ln),
        (|a, _| a.ln_1p(), Op::Ln1p),
        (|a, _| a.log2(), Op::Log2),
        (|a, _| a.log10(), Op::Log10),
        (|a, _| a.sin(), Op::Sin),
        (|a, _| a.cos(), Op::Cos),
        (|a, _| a.tan(), Op::Tan),
        (|a, _| a.asin(), Op::Asin),
        (|a, _| a.acos(), Op::Acos),
        (|a, _| a.atan(), Op::Atan),
        (|a, b| a.atan2(b), Op::Atan2),
        (|a, _| a.sinh(), Op::Sinh),
        (|a, _| a.cosh(), Op::Cosh),
        (|a, _| a.tanh(), Op::Tanh),
        (|a, _| a.asinh(), Op::Asinh),
        (|a, _| a.acosh(), Op::Acosh),
        (|a, _| a.atanh(), Op::Atanh),
        (|a, _| a.abs(), Op::Abs),
        (|a, _| a.signum(), Op::Signum),
        (|a, b| a.copysign(b), Op::CopySign),
        (|a, b| a.min(b), Op::Min),
        (|a, b| a.max(b), Op::Max),
        (|a, _| a.floor(), Op::Floor),
        (|a, _| a.ceil(), Op::Ceil),
        (|a, _| a.round(), Op::Round),
        (|a, _| a.trunc(), Op::Trunc),
        (|a, _| a.fract(), Op::Fract),
        (|a, b| a.select(b, b), Op::Select),
        (|a, b| guard(a, a < b), Op::Lt),
        (|a, b| guard(a, a <= b), Op::Le),
        (|a, b| guard(a, a > b), Op::Gt),
        (|a, b| guard(a, a >= b), Op::Ge),
        (|a, b| guard(a, a == b), Op::Eq),
        (|a, b| guard(a, a != b), Op::Ne),
        (|a, _| guard(a, a.value() > 0.0), Op::Same),
        (|a, b| guard(a, 1.0 < b), Op::Lt),
        (|a, b| a.less_than(b), Op::Lt),
        (|a, b| a.differs_from(b), Op::Ne),
    ];
    for (f, op) in operations {
        assert_eq!(recorded(f), [op]);
    }
}
