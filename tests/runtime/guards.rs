//! No stale gradient: kernels with one arm of a guard are called on all arms, at ties, NaN,
//! infinities and both zeros, and must give the tape's answer; after another `compile` they must
//! serve all arms.

use crate::common::served::Served::{Fallback, Kernel};
use crate::common::served::{NUMERICS, Pair, Served, manual};
use num_traits::{Float, ToPrimitive};
use phigrad::{Numerics, Var};

const EDGES: [f64; 12] = [
    -1.5,
    -0.5,
    -0.0,
    0.0,
    5e-324,
    0.5,
    0.5 + f64::EPSILON,
    1.0,
    2.25,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::NAN,
];

/// A function whose guards end in `arm`; its derivatives differ from arm to arm. The values
/// compared enter by `min` and `max`, which ignore NaN, so that the result is finite everywhere.
fn body(x: &[Var], arm: f64) -> Var {
    let bounded = |v: Var| v.min(1e3).max(-1e3);
    x[2] * (arm + 1.0) + (x[3] * (arm - 0.5)).sin() * bounded(x[0]) + bounded(x[1]) * x[2]
}

/// All pairs of `edges` as the numbers compared.
fn points(edges: &[f64]) -> Vec<[f64; 4]> {
    let pairs = edges.iter().flat_map(|&a| edges.iter().map(move |&b| (a, b)));
    pairs.map(|(a, b)| [a, b, 0.75, 1.25]).collect()
}

/// Checks one kind of guard. `traced` is the arm in a recorded function and `plain` on plain
/// numbers. If `exact`, each arm is one path, so that a kernel must serve all points of an arm
/// that it has.
fn check_kind(
    name: &str,
    edges: &[f64],
    traced: impl Fn(Var, Var) -> u64 + Copy,
    plain: impl Fn(f64, f64) -> u64,
    exact: bool,
) {
    let points = points(edges);
    let arm = |x: &[f64; 4]| plain(x[0], x[1]);
    let mut profiled_at: Vec<[f64; 4]> = Vec::new();
    for point in &points {
        if profiled_at.iter().all(|other| arm(other) != arm(point)) {
            profiled_at.push(*point);
        }
    }
    assert!(profiled_at.len() >= 2, "{name} has one arm only");
    for numerics in NUMERICS {
        for recorded in &profiled_at {
            let pair = Pair::new(numerics, |x: &[Var]| {
                let arm = traced(x[0], x[1]);
                body(x, (arm % 1009) as f64)
            });
            pair.profile(&[recorded]);
            for point in &points {
                let served = pair.check(point);
                let context =
                    format!("{name}, {numerics:?}, recorded at {recorded:?}, at {point:?}");
                if arm(point) != arm(recorded) {
                    assert_eq!(served, Fallback, "{context}");
                } else if exact {
                    assert_eq!(served, Kernel, "{context}");
                }
            }
            pair.kernel.compile().unwrap();
            for point in &points {
                let served = pair.check(point);
                assert_eq!(served, Kernel, "{name}, {numerics:?}, again, at {point:?}");
            }
            assert_eq!(pair.kernel.report().refusals, []);
        }
    }
}

/// Runs [`check_kind`] with one expression for traced and plain numbers.
macro_rules! kinds {
    ($exact:literal, $edges:expr; $(|$a:ident, $b:ident| $arm:expr;)*) => {
        $(check_kind(
            stringify!($arm),
            $edges,
            |$a: Var, $b: Var| { let _ = ($a, $b); u64::from($arm) },
            |$a: f64, $b: f64| { let _ = ($a, $b); u64::from($arm) },
            $exact,
        );)*
    };
}

#[test]
#[allow(clippy::neg_cmp_op_on_partial_ord)] // NaN takes the other arm.
fn comparisons_of_two_vars_are_guards() {
    kinds! { true, &EDGES;
        |a, b| a < b;
        |a, b| a <= b;
        |a, b| a > b;
        |a, b| a >= b;
        |a, b| a == b;
        |a, b| a != b;
        |a, b| !(a < b);
        |a, b| a.partial_cmp(&b).map_or(3, |ordering| ordering as i8 as u8);
    }
}

#[test]
#[allow(clippy::neg_cmp_op_on_partial_ord)] // NaN takes the other arm.
fn comparisons_with_numbers_are_guards() {
    kinds! { true, &EDGES;
        |a, b| a < 0.5;
        |a, b| a <= 0.0;
        |a, b| a > 0.5;
        |a, b| b >= 0.5;
        |a, b| a == 0.0;
        |a, b| b != 0.5;
        |a, b| 0.5 < a;
        |a, b| 0.5 <= b;
        |a, b| 0.0 > a;
        |a, b| -0.0 >= a;
        |a, b| 0.5 == a;
        |a, b| 0.0 != b;
        |a, b| a < f64::INFINITY;
        |a, b| !(a >= 0.5);
        |a, b| a.partial_cmp(&0.5).map_or(3, |ordering| ordering as i8 as u8);
        |a, b| 0.5.partial_cmp(&a).map_or(3, |ordering| ordering as i8 as u8);
    }
}

#[test]
fn predicates_of_num_traits_are_guards() {
    kinds! { true, &EDGES;
        |a, b| Float::is_nan(a);
        |a, b| Float::is_finite(a);
        |a, b| Float::is_infinite(a);
        |a, b| Float::is_sign_positive(a);
        |a, b| Float::is_sign_negative(b);
        |a, b| Float::classify(a) as u8;
        |a, b| num_traits::Zero::is_zero(&a);
        |a, b| num_traits::One::is_one(&a);
        |a, b| num_traits::Signed::is_positive(&a);
        |a, b| num_traits::Signed::is_negative(&a);
    }
    // A number may fail to be normal by either of two guards.
    kinds! { false, &EDGES; |a, b| Float::is_normal(a); }
}

#[test]
fn several_guards_make_a_tree_of_paths() {
    kinds! { false, &EDGES;
        |a, b| u8::from(a < b && b < 1.0) + 2 * u8::from(a == 0.0 || b.is_nan());
        |a, b| u8::from(a < 0.0) + 2 * u8::from(a < 0.5) + 4 * u8::from(a < 1.0) + 8 * u8::from(a < 2.0);
    }
}

#[test]
fn numbers_read_out_are_guarded_bit_for_bit() {
    let edges = [-1.5, -0.0, 0.0, 0.5, 1.0, f64::INFINITY, f64::NAN];
    check_kind("value", &edges, |a, _| a.value().to_bits(), |a, _| a.to_bits(), true);
    let both = |a: f64, b: f64| a.to_bits() % 100_003 * 31 + b.to_bits() % 100_003;
    check_kind("values", &edges[1..5], |a, b| both(a.value(), b.value()), both, true);
    // -0 and 0 are printed differently.
    let length =
        |text: String| text.bytes().fold(7, |hash, byte| hash * 31 % 99_991 + u64::from(byte));
    kinds_of_text(&edges, length);
    let parts = |(mantissa, exponent, sign): (u64, i16, i8)| {
        mantissa % 10_007 + 20_000 * u64::from(exponent.unsigned_abs()) + (sign + 1) as u64
    };
    check_kind(
        "integer_decode",
        &edges[..5],
        |a, _| parts(Float::integer_decode(a)),
        |a, _| parts(Float::integer_decode(a)),
        true,
    );
    kinds! { true, &edges; |a, _b| a.to_f64().unwrap_or(9.0).to_bits(); }
}

fn kinds_of_text(edges: &[f64], length: impl Fn(String) -> u64 + Copy) {
    let text = |a: f64| length(format!("{a}"));
    check_kind("Display", edges, |a, _| length(format!("{a}")), |a, _| text(a), true);
    check_kind(
        "Debug",
        edges,
        |a, _| length(format!("{a:?}")),
        |a, _| length(format!("{a:?}")),
        true,
    );
    check_kind(
        "{:e}",
        edges,
        |a, _| length(format!("{a:e}")),
        |a, _| length(format!("{a:e}")),
        true,
    );
    let wide = |a: f64| length(format!("{a:8.3}"));
    check_kind("{:8.3}", edges, |a, _| length(format!("{a:8.3}")), |a, _| wide(a), true);
}

#[test]
fn casts_are_guarded_up_to_the_integer_part() {
    // The guard distinguishes -0 from 0, so an arm may have two paths.
    kinds! { false, &[-1.5, -0.5, -0.0, 0.5, 0.75, 1.0, 1.75, 3e9, 1e30, f64::NAN];
        |a, _b| a.to_i64().map_or(77, |n| (n + 5) as u64);
        |a, _b| a.to_i32().map_or(77, |n| (n + 5) as u64);
        |a, _b| a.to_u64().map_or(77, |n| n);
        |a, _b| a.to_usize().map_or(77, |n| n as u64);
        |a, _b| a.to_i128().map_or(77, |n| (n + 5) as u64);
        |a, _b| a.to_u128().map_or(77, |n| n as u64);
        |a, _b| a.to_f32().map_or(77, |n| u64::from(n.to_bits()));
        |a, _b| num_traits::cast::<_, i64>(a).map_or(77, |n| (n + 5) as u64);
    }
}

/// Records at the first point, checks at all, records them, and checks again; returns who served
/// in the first round.
fn twice<F: Fn(&[Var]) -> Var + Copy>(
    f: F,
    numerics: Numerics,
    points: &[Vec<f64>],
) -> Vec<Served> {
    let pair = Pair::new(numerics, f);
    pair.profile(&points[..1]);
    let first = points.iter().map(|x| pair.check(x)).collect();
    pair.kernel.compile().unwrap();
    for x in points {
        assert_eq!(pair.check(x), Kernel, "{x:?}");
    }
    first
}

#[test]
fn a_table_is_read_at_the_index_of_this_call() {
    let table = [1.0, 10.0, 100.0, 1000.0];
    for numerics in NUMERICS {
        let f = |x: &[Var]| x[0] * table[x[0].floor().value() as usize % 4];
        let points = [0.5, 0.25, 0.999, 1.0, 2.5, 3.0].map(|x| vec![x]);
        let served = twice(f, numerics, &points);
        assert_eq!(served, [Kernel, Kernel, Kernel, Fallback, Fallback, Fallback]);
    }
}

#[test]
fn inactive_inputs_are_guarded_like_active_ones() {
    let table = [1.0, 10.0, 100.0];
    for numerics in NUMERICS {
        let f = manual(numerics).record_with(|w: &[Var], data: &[Var]| {
            let factor = table[data[0].floor().value() as usize];
            if data[1] > 0.0 { w[0] * factor } else { w[0] * w[0] * factor }
        });
        for _ in 0..2 {
            for (a, b, expected) in
                [(0.5, 1.0, 1.0), (0.75, 0.0, 6.0), (1.0, f64::NAN, 60.0), (2.5, 1e-9, 100.0)]
            {
                assert_eq!(f.grad(&[3.0], &[a, b]).unwrap(), [expected]);
                f.compile().unwrap();
            }
        }
        let report = f.report();
        assert_eq!((report.fallbacks, report.kernel_calls, report.paths), (3, 4, 4));
    }
}

#[test]
fn a_match_on_ranges_takes_the_arm_of_this_call() {
    fn f(x: &[Var]) -> Var {
        match x[0].value() {
            v if v < 0.0 => -x[0],
            0.0..1.0 => x[0] * x[0],
            1.0..=2.0 => x[0].exp(),
            _ => x[0].sqrt(),
        }
    }
    fn chain(x: &[Var]) -> Var {
        match x[0] {
            v if v < 0.0 => -v,
            v if v < 1.0 => v * v,
            v if v <= 2.0 => v.exp(),
            v => v.sqrt(),
        }
    }
    let points = [-1.0, 0.0, 0.5, 1.0, 1.5, 2.0, 2.5].map(|x| vec![x]);
    for numerics in NUMERICS {
        let served = twice(f, numerics, &points);
        assert_eq!(served, [Kernel, Fallback, Fallback, Fallback, Fallback, Fallback, Fallback]);
        let points: Vec<_> = points.iter().rev().cloned().collect();
        let served = twice(chain, numerics, &points);
        assert_eq!(served, [Kernel, Fallback, Fallback, Fallback, Fallback, Fallback, Fallback]);
    }
}

#[test]
fn a_loop_runs_as_often_as_this_call_needs() {
    fn halve(x: &[Var]) -> Var {
        let (mut v, mut steps) = (x[0], 0.0);
        while v > 1.0 {
            v = v / 2.0 + x[1] * 0.01;
            steps += 1.0;
        }
        v * steps + x[1]
    }
    fn count(x: &[Var]) -> Var {
        (0..x[0].to_usize().unwrap_or(0)).fold(x[1], |sum, i| sum * x[1] + x[0] * i as f64)
    }
    for numerics in NUMERICS {
        let points = [5.0, 7.9, 0.5, 1.0, 2.0, 9.0, 100.0].map(|x| vec![x, 0.3]);
        let served = twice(halve, numerics, &points);
        assert_eq!(served, [Kernel, Kernel, Fallback, Fallback, Fallback, Fallback, Fallback]);
        let points = [3.5, 3.0, 0.0, 1.0, 2.75, 20.0].map(|x| vec![x, 0.3]);
        let served = twice(count, numerics, &points);
        assert_eq!(served, [Kernel, Kernel, Fallback, Fallback, Fallback, Fallback]);
    }
}

#[test]
fn early_returns_and_question_marks_are_paths() {
    fn early(x: &[Var]) -> Var {
        for (i, &v) in x.iter().enumerate() {
            if v <= 0.0 {
                return x[0] * i as f64;
            }
        }
        x.iter().map(|v| v.ln()).sum()
    }
    fn root(v: Var) -> Option<Var> {
        (v >= 0.0).then(|| v.sqrt())
    }
    fn question(x: &[Var]) -> Var {
        let chain = || Some(root(x[0])? + root(x[1] - 1.0)? * root(x[2])?);
        chain().unwrap_or(x[0] - x[1])
    }
    for numerics in NUMERICS {
        let points =
            [[1.0, 2.0, 3.0], [1.5, 0.5, 2.0], [1.0, 2.0, 0.0], [1.0, -0.0, 1.0], [-1.0; 3]];
        let points = points.map(|x| x.to_vec());
        let served = twice(early, numerics, &points);
        assert_eq!(served, [Kernel, Kernel, Fallback, Fallback, Fallback]);
        let points =
            [[1.0, 2.0, 3.0], [4.0, 1.5, 0.5], [4.0, 1.5, -1.0], [1.0, 0.5, 1.0], [-1.0; 3]];
        let points = points.map(|x| x.to_vec());
        let served = twice(question, numerics, &points);
        assert_eq!(served, [Kernel, Kernel, Fallback, Fallback, Fallback]);
    }
}

#[test]
fn a_kernel_of_many_paths_serves_each() {
    fn digits(x: &[Var]) -> Var {
        let sum: Var = x.iter().map(|&v| if v < 0.5 { v.sin() } else { v * v }).sum();
        sum * x[0]
    }
    for numerics in NUMERICS {
        let point = |i: u32| [0, 1, 2, 3, 4].map(|k| 0.3 + 0.4 * f64::from(i >> k & 1));
        let points: Vec<_> = (0..32).map(point).collect();
        let pair = Pair::new(numerics, digits);
        for (i, x) in points.iter().enumerate() {
            assert_eq!(pair.kernel.report().paths, i);
            pair.kernel.grad(x).unwrap();
        }
        pair.kernel.compile().unwrap();
        for i in 0..200 {
            let x = [0, 1, 2, 3, 4].map(|k| 0.5 + 0.37 * f64::from(i * (k + 3)).sin());
            assert_eq!(pair.check(&x), Kernel, "{x:?}");
        }
        assert_eq!(pair.check(&[0.5; 5]), Kernel);
        assert_eq!(pair.kernel.report().paths, 32);
        assert!(pair.kernel.report().kernels.iter().all(|kernel| kernel.paths == 32));
    }
}

#[test]
fn a_path_recorded_in_steps_joins_the_kernel_at_each_compilation() {
    fn stairs(x: &[Var]) -> Var {
        let step = (0..12).find(|&i| x[0] < f64::from(i)).unwrap_or(12);
        x[0] * f64::from(step) + x[0].sin()
    }
    for numerics in NUMERICS {
        let pair = Pair::new(numerics, stairs);
        pair.profile(&[[5.5]]);
        for round in 0..12 {
            let x = [f64::from(round * 7 % 12) + 0.5];
            let known = round * 7 % 12 == 5;
            assert_eq!(pair.check(&x), if known { Kernel } else { Fallback }, "{x:?}");
            pair.kernel.compile().unwrap();
            assert_eq!(pair.check(&x), Kernel, "{x:?}");
            let place = pair.kernel.report().last_new_path;
            assert_eq!(place.is_some(), round > 0 || !known, "{x:?}");
        }
        assert_eq!(pair.kernel.report().paths, 12);
    }
}

#[test]
fn a_tie_of_a_rounded_product_is_decided_as_on_the_tape() {
    fn arm(x: &[Var]) -> Var {
        if x[0] * x[1] - x[2] > 0.0 { x[0] } else { x[1] }
    }
    fn entry(x: &[Var]) -> Var {
        // The points below lie at the steps of the table.
        let index = (x[0] * x[1] - x[2]).ceil().value();
        x[0] * [1.0, 10.0, 100.0][(index + 1.0) as usize]
    }
    for numerics in NUMERICS {
        for f in [arm, entry] {
            let pair = Pair::new(numerics, f);
            pair.profile(&[[1.0, 0.5, 0.0], [1.0, 0.5, 1.0], [1.0, 0.5, 2.0]]);
            for i in 1..100 {
                let (a, b) = (0.1 * f64::from(i), 0.7);
                pair.check(&[a, b, a * b]);
            }
        }
    }
}

#[test]
fn a_guard_on_the_sign_of_zero_decides_as_on_the_tape() {
    fn plus(x: &[Var]) -> Var {
        if Float::is_sign_positive(x[0] + 0.0) { x[0] } else { 2.0 * x[0] }
    }
    fn minus(x: &[Var]) -> Var {
        if Float::is_sign_positive(0.0 - x[0]) { x[0] } else { 2.0 * x[0] }
    }
    for numerics in NUMERICS {
        for f in [plus, minus] {
            let pair = Pair::new(numerics, f);
            pair.profile(&[[1.0], [-1.0]]);
            pair.check(&[-0.0]);
            pair.check(&[0.0]);
        }
    }
}
