//! Special functions: values and derivatives against figures of multiple precision.

use phigrad::internals::op::{Op, eval};
use phigrad::{Tape, Var};

/// The primitive, its operand, and the value that mpmath computes with 60 digits.
const FIGURES: &[(Op, f64, f64)] = &[
    (Op::Erf, 1e-300, 1.1283791670955126e-300),
    (Op::Erf, 1e-09, 1.1283791670955127e-09),
    (Op::Erf, 0.125, 0.14031620480133383),
    (Op::Erf, 0.5, 0.5204998778130465),
    (Op::Erf, 0.84375, 0.7672256612323416),
    (Op::Erf, 1.0, 0.8427007929497149),
    (Op::Erf, 1.25, 0.9229001282564583),
    (Op::Erf, 2.0, 0.9953222650189527),
    (Op::Erf, 2.875, 0.9999521451602562),
    (Op::Erf, 4.5, 0.9999999998033839),
    (Op::Erf, 5.875, 0.9999999999999999),
    (Op::Erf, 6.5, 1.0),
    (Op::Erf, -0.75, -0.7111556336535151),
    (Op::Erf, -1.5, -0.9661051464753108),
    (Op::Erf, -3.0, -0.9999779095030014),
    (Op::Erfc, 1e-09, 0.9999999988716208),
    (Op::Erfc, 0.125, 0.8596837951986662),
    (Op::Erfc, 0.25, 0.7236736098317631),
    (Op::Erfc, 0.5, 0.4795001221869535),
    (Op::Erfc, 0.84375, 0.23277433876765838),
    (Op::Erfc, 1.0, 0.15729920705028513),
    (Op::Erfc, 1.25, 0.07709987174354177),
    (Op::Erfc, 2.0, 0.004677734981047266),
    (Op::Erfc, 2.875, 4.785483974377341e-05),
    (Op::Erfc, 4.5, 1.9661604415428876e-10),
    (Op::Erfc, 6.5, 3.8421483271206475e-20),
    (Op::Erfc, 10.0, 2.088487583762545e-45),
    (Op::Erfc, 20.0, 5.395865611607901e-176),
    (Op::Erfc, 26.5, 2.2109076642637343e-307),
    (Op::Erfc, -0.75, 1.7111556336535152),
    (Op::Erfc, -1.5, 1.9661051464753108),
    (Op::Erfc, -6.5, 2.0),
    (Op::LnGamma, 1e-300, 690.7755278982137),
    (Op::LnGamma, 0.001, 6.907178885383853),
    (Op::LnGamma, 0.25, 1.2880225246980774),
    (Op::LnGamma, 0.5, 0.5723649429247001),
    (Op::LnGamma, 0.75, 0.20328095143129538),
    (Op::LnGamma, 1.0, 0.0),
    (Op::LnGamma, 1.25, -0.09827183642181316),
    (Op::LnGamma, 1.5, -0.12078223763524522),
    (Op::LnGamma, 1.75, -0.08440112102048555),
    (Op::LnGamma, 2.0, 0.0),
    (Op::LnGamma, 2.5, 0.2846828704729192),
    (Op::LnGamma, 3.25, 0.9358019311087253),
    (Op::LnGamma, 6.5, 5.662562059857142),
    (Op::LnGamma, 10.0, 12.80182748008147),
    (Op::LnGamma, 100.0, 359.1342053695754),
    (Op::LnGamma, 1000000.0, 12815504.569147613),
    (Op::LnGamma, 1e300, 6.897755278982137e302),
    (Op::LnGamma, -0.5, 1.2655121234846454),
    (Op::LnGamma, -1.25, 1.3664317612369763),
    (Op::LnGamma, -2.75, 0.004487897535955773),
    (Op::LnGamma, -10.5, -15.147270590717842),
];

/// True if the error is within a few units in the last place; absolute where ln Γ crosses 0 below
/// 0.
fn is_near(found: f64, expected: f64, x: f64) -> bool {
    let scale = if x < 0.0 { expected.abs().max(1.0) } else { expected.abs() };
    (found - expected).abs() <= 4e-16 * scale
}

#[test]
fn values_are_those_of_multiple_precision() {
    for &(op, x, expected) in FIGURES {
        let found = eval(op, [x, 0.0, 0.0]);
        assert!(is_near(found, expected, x), "{op} {x}: {found:e}, not {expected:e}");
    }
}

#[test]
fn derivatives_of_all_orders_are_there() {
    // ψ(x), ψ′(x), ψ″(x) by mpmath with 60 digits.
    for (x, expected) in [
        (0.25, [-4.2274535333762655, 17.19732915450711, -129.32773993753693]),
        (1.0, [-0.5772156649015329, 1.6449340668482264, -2.4041138063191885]),
        (2.5, [0.7031566406452432, 0.49035775610023485, -0.2362040516417274]),
        (7.75, [1.9817915626943456, 0.13771379144765566, -0.01893546667267096]),
        (40.0, [3.676327374034843, 0.02531510384129103, -0.0006408202718352986]),
    ] {
        let gradient = |order: Option<u32>| {
            let f = Tape::record(move |v: &[Var]| match order {
                None => v[0].ln_gamma(),
                Some(order) => v[0].polygamma(order),
            });
            f.grad(&[x]).unwrap()[0]
        };
        let found = [gradient(None), gradient(Some(0)), gradient(Some(1))];
        for (found, expected) in found.into_iter().zip(expected) {
            assert!((found / expected - 1.0).abs() < 1e-15, "{x}: {found:e}, not {expected:e}");
        }
    }
}
