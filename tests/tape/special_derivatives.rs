//! Special functions: values, gradients and Hessians against figures of multiple precision, on the
//! tape and by kernels, and the edges of compositions.

use crate::common::served::NUMERICS;
use phigrad::{Special, Tape, Var, traced};

/// A function of one or two numbers.
struct Figures {
    name: &'static str,
    f: fn(&[Var]) -> Var,
    /// The relative error that is allowed.
    tolerance: f64,
    points: &'static [Point],
}

/// Operands, value, gradient and Hessian that mpmath computes with 80 digits.
type Point = (&'static [f64], f64, &'static [f64], &'static [f64]);

#[rustfmt::skip]
#[allow(clippy::approx_constant)] // Figures of other functions.
const FIGURES: &[Figures] = &[
    Figures {
        name: "erf_inv",
        f: |x| x[0].erf_inv(),
        tolerance: 2e-15,
        points: &[
            (&[0.3], 0.2724627147267543, &[0.9545203588405493], &[0.496486526010743]),
            (&[-0.999999], -3.458910737275499, &[139146.31032670866], &[-133940754141.78464]),
            (&[1e-20], 8.86226925452758e-21, &[0.886226925452758], &[1.392081999207927e-20]),
        ],
    },
    Figures {
        name: "erfc_inv",
        f: |x| x[0].erfc_inv(),
        tolerance: 2e-15,
        points: &[
            (&[1e-100], 15.065574702592645, &[-3.311561294461473e+98], &[3.304313880571065e+198]),
            (&[0.7], 0.2724627147267544, &[-0.9545203588405493], &[0.4964865260107431]),
            (&[1.9375], -1.3171503349861307, &[-5.023378761292894], &[-66.47482343511982]),
        ],
    },
    Figures {
        name: "erfcx",
        f: |x| x[0].erfcx(),
        tolerance: 4e-15,
        points: &[
            (&[-3.0], 16205.988853999586, &[-97237.06150316462], &[615834.3467269868]),
            (&[0.5], 0.6156903441929259, &[-0.5126888229025867], &[0.718691865483265]),
            (&[20.0], 0.02817434874105132, &[-0.0014052174534598012], &[0.00013999934371059262]),
        ],
    },
    Figures {
        name: "ln_gamma",
        f: |x| x[0].ln_gamma(),
        tolerance: 2e-15,
        points: &[
            (&[2.0], 0.0, &[0.42278433509846713], &[0.6449340668482264]),
            (&[0.9999990463256836], 5.504765026737053e-07, &[-0.5772172336339979], &[1.6449363595927704]),
            (&[0.01], 4.599479878042022, &[-100.56088545786868], &[10001.621213528313]),
            (&[100000000.0], 1742068066.1038346, &[18.420680738952367], &[1.000000005e-08]),
        ],
    },
    Figures {
        name: "digamma",
        f: |x| x[0].digamma(),
        tolerance: 2e-15,
        points: &[
            (&[1.25], -0.22745353337626542, &[1.1973291545071107], &[-1.3277399375369203]),
            (&[20.5], 2.9958363947076467, &[0.04998959242996099], &[-0.0024984397723677343]),
        ],
    },
    Figures {
        name: "trigamma",
        f: |x| x[0].trigamma(),
        tolerance: 2e-15,
        points: &[
            (&[1.25], 1.1973291545071107, &[-1.3277399375369203], &[2.782144009188396]),
            (&[20.5], 0.04998959242996099, &[-0.0024984397723677343], &[0.0002496881810853771]),
        ],
    },
    Figures {
        name: "ln_rising",
        f: |x| x[0].ln_rising(x[1]),
        tolerance: 4e-15,
        points: &[
            (&[3.5, 2.25], 3.165742434275212, &[0.5565737304226934, 1.6597303710679365], &[-0.1404503441609821, 0.18990741193925276, 0.18990741193925276, 0.18990741193925276]),
            (&[100000000.0, 3.0], 55.2620422618571, &[2.9999999700000005e-08, 18.420680768952366], &[-2.9999999400000017e-16, 9.999999750000006e-09, 9.999999750000006e-09, 9.999999750000006e-09]),
            (&[0.125, 100.0], 357.68988572768234, &[12.989909998425547, 4.601417335129693], &[-65.37809588810865, 0.010037556879391694, 0.010037556879391694, 0.010037556879391694]),
        ],
    },
    Figures {
        name: "ln_beta",
        f: |x| x[0].ln_beta(x[1]),
        tolerance: 2e-14,
        points: &[
            (&[2.0, 3.0], -2.4849066497880004, &[-1.0833333333333333, -0.5833333333333334], &[0.4236111111111111, -0.22132295573711533, -0.22132295573711533, 0.1736111111111111]),
            (&[1.5, 10000000000.0], -34.65955863258343, &[-22.98936095606188, -1.4999999999625e-10], &[0.9348022004446793, -9.999999999e-11, -9.999999999e-11, 1.499999999925e-20]),
            (&[5.0, 5.0], -6.4457198193855785, &[-0.7456349206349207, -0.7456349206349207], &[0.11615662005542958, -0.10516633568168575, -0.10516633568168575, 0.11615662005542958]),
            (&[1e-05, 0.001], 11.522875779386185, &[-99009.90263380809, -9.90100652422198], &[9999019703.952991, -980297.6919161407, -980297.6919161407, 19703.95061705511]),
        ],
    },
    Figures {
        name: "gamma_p",
        f: |x| x[0].gamma_p(x[1]),
        tolerance: 1e-14,
        points: &[
            (&[2.0, 3.5], 0.22022259152428408, &[0.23036145712293568, -0.1801009452864442], &[0.05759036428073392, -0.09445037665943735, -0.09445037665943735, 0.10445331793723535]),
            (&[0.1, 0.5], 0.345279153981423, &[1.6143422587153617, -0.8229360969795988], &[-9.68605355229217, -0.5473832094906455, -0.5473832094906455, 1.6586313062993034]),
            (&[40.0, 30.0], 0.9567713178482644, &[0.013849103220550553, -0.016025177168002572], &[-0.0038085033856514023, 0.004216239285062879, 0.004216239285062879, -0.004621515312205224]),
            (&[1010.0, 1000.0], 0.6276789447369947, &[0.01188451503603511, -0.011945731337225441], &[-0.0001294353122736497, 0.00012419810453217166, 0.00012419810453217166, -0.00011887289008597825]),
            (&[900.0, 1000.0], 0.0005499022657117829, &[6.585503650465444e-05, -6.245709035841566e-05], &[7.244054015511989e-06, -6.90558759862388e-06, -6.90558759862388e-06, 6.581064795890883e-06]),
            (&[5.0, 0.01], 0.9999882464805873, &[1.377268312378968e-05, -0.0012026299019355631], &[-1.6499674382300036e-05, 0.0014071594884343035, 0.0014071594884343035, -0.0055000585375698085]),
        ],
    },
    Figures {
        name: "gamma_q",
        f: |x| x[0].gamma_q(x[1]),
        tolerance: 1e-14,
        points: &[
            (&[2.0, 3.5], 0.779777408475716, &[-0.23036145712293568, 0.1801009452864442], &[-0.05759036428073392, 0.09445037665943735, 0.09445037665943735, -0.10445331793723535]),
            (&[100.0, 2.5], 2.8406228986415315e-41, &[-2.798437487569611e-41, 1.1112692390622655e-40], &[2.756460925256067e-41, -1.0919540982291831e-40, -1.0919540982291831e-40, 4.208089929791854e-40]),
            (&[0.2, 0.01], 0.01221559054324581, &[-0.0405128389201694, 1.2203964926602442], &[0.24105139157500793, -4.008804055325783, -4.008804055325783, -0.24660893494857544]),
            (&[1200.0, 1000.0], 1.2881606086281433e-09, &[-2.208219779050657e-10, 2.416038611395438e-10], &[3.6987681299098505e-11, -4.037103617675402e-11, -4.037103617675402e-11, 4.405324125287554e-11]),
        ],
    },
    Figures {
        name: "beta_inc of small shapes",
        f: |x| x[0].beta_inc(2.5, 0.5),
        tolerance: 1e-14,
        points: &[
            (&[0.3], 0.01892712407194565, &[0.16670618833028558], &[0.9526067904587747]),
            (&[0.96875], 0.7045616458548968, &[4.578375638295691], &[80.34310797525342]),
        ],
    },
    Figures {
        name: "beta_inc",
        f: |x| x[0].beta_inc(30.0, 70.0),
        tolerance: 1e-14,
        points: &[
            (&[0.3], 0.5116251045586091, &[8.678386475342808], &[-16.530259953033877]),
            (&[0.1], 1.8929897218613862e-08, &[4.294286247452311e-06], &[0.0009161143994564928]),
        ],
    },
    Figures {
        name: "beta_inc of large shapes",
        f: |x| x[0].beta_inc(5e4, 2e4),
        tolerance: 1e-13,
        points: &[
            (&[0.71], 0.006144577340796013, &[10.11038126210181], &[14751.63059135819]),
            (&[0.715], 0.661786137436748, &[214.37259703759744], &[-52147.955515412774]),
        ],
    },
    Figures {
        name: "normal_cdf",
        f: |x| x[0].normal_cdf(),
        tolerance: 3e-14,
        points: &[
            (&[0.0], 0.5, &[0.3989422804014327], &[0.0]),
            (&[1.5], 0.9331927987311419, &[0.12951759566589172], &[-0.1942763934988376]),
            (&[-10.0], 7.619853024160525e-24, &[7.694598626706419e-23], &[7.694598626706419e-22]),
        ],
    },
    Figures {
        name: "ln_normal_cdf",
        f: |x| x[0].ln_normal_cdf(),
        tolerance: 4e-15,
        points: &[
            (&[-30.0], -454.3212439563432, &[30.033259667433676], &[-0.9988962284881099]),
            (&[-0.5], -1.1759117615936185, &[1.1410777703680646], &[-0.731519592844121]),
            (&[0.0], -0.6931471805599453, &[0.7978845608028654], &[-0.6366197723675814]),
            (&[2.0], -0.02301290932896349, &[0.055247862678989956], &[-0.11354805168857644]),
        ],
    },
    Figures {
        name: "normal_quantile",
        f: |x| x[0].normal_quantile(),
        tolerance: 4e-15,
        points: &[
            (&[1e-100], -21.273453560965326, &[4.690375414837741e+98], &[-4.6800792702224667e+198]),
            (&[0.1], -1.2815515655446004, &[5.698059856117004], &[-41.60927029199777]),
            (&[0.9999999999], 6.361340889697422, &[1535723574.0619514], &[1.5002884675257012e+19]),
        ],
    },
    Figures {
        name: "bessel_j of order 0",
        f: |x| x[0].bessel_j(0),
        tolerance: 1e-14,
        points: &[
            (&[2.5], -0.048383776468198, &[-0.49709410246427405], &[0.2472214174539076]),
            (&[-50.0], 0.055812327669251816, &[-0.09751182812517514], &[-0.05776256423175532]),
        ],
    },
    Figures {
        name: "bessel_j of order 3",
        f: |x| x[0].bessel_j(3),
        tolerance: 1e-14,
        points: &[
            (&[0.01], 2.0833203125325523e-08, &[6.249934896061198e-06], &[0.0012499739584700517]),
            (&[2.5], 0.21660039103911352, &[0.186138589192681], &[0.020848736380137553]),
        ],
    },
    Figures {
        name: "bessel_i of order 0",
        f: |x| x[0].bessel_i(0),
        tolerance: 4e-15,
        points: &[
            (&[0.5], 1.0634833707413236, &[0.2578943053908963], &[0.5476947599595309]),
            (&[-25.0], 5774560606.4663105, &[-5657865129.878701], &[5548246001.271162]),
            (&[100.0], 1.0737517071310738e+42, &[1.0683693903381625e+42], &[1.0630680132276922e+42]),
        ],
    },
    Figures {
        name: "bessel_i of order 2",
        f: |x| x[0].bessel_i(2),
        tolerance: 4e-15,
        points: &[
            (&[0.5], 0.031906149177738256, &[0.1302697086799433], &[0.2818651186616637]),
            (&[100.0], 1.0523843193243106e+42, &[1.0473217039516763e+42], &[1.0423320560125236e+42]),
        ],
    },
    Figures {
        name: "softplus",
        f: |x| x[0].softplus(),
        tolerance: 2e-15,
        points: &[
            (&[-700.0], 9.85967654375977e-305, &[9.85967654375977e-305], &[9.85967654375977e-305]),
            (&[-40.0], 4.248354255291589e-18, &[4.248354255291589e-18], &[4.248354255291589e-18]),
            (&[0.0], 0.6931471805599453, &[0.5], &[0.25]),
            (&[0.125], 0.7575990353171691, &[0.5312093733737563], &[0.24902597501361748]),
            (&[40.0], 40.0, &[1.0], &[4.248354255291589e-18]),
        ],
    },
    Figures {
        name: "sigmoid",
        f: |x| x[0].sigmoid(),
        tolerance: 2e-15,
        points: &[
            (&[-700.0], 9.85967654375977e-305, &[9.85967654375977e-305], &[9.85967654375977e-305]),
            (&[-1.5], 0.18242552380635635, &[0.14914645207033286], &[0.09473021278475267]),
            (&[0.0], 0.5, &[0.25], &[0.0]),
            (&[0.125], 0.5312093733737563, &[0.24902597501361748], &[-0.015543889267927368]),
            (&[40.0], 1.0, &[4.248354255291589e-18], &[-4.248354255291589e-18]),
        ],
    },
    Figures {
        name: "logit",
        f: |x| x[0].logit(),
        tolerance: 2e-15,
        points: &[
            (&[1e-10], -23.025850929840455, &[10000000001.0], &[-1e+20]),
            (&[0.5], 0.0, &[4.0], &[0.0]),
            (&[0.4990234375], -0.0039062549670651, &[4.00001525884727], &[-0.03125023841994335]),
            (&[0.9999999999], 23.025850847100088, &[9999999173.59636], &[9.999998345192786e+19]),
        ],
    },
    Figures {
        name: "log_add_exp",
        f: |x| x[0].log_add_exp(x[1]),
        tolerance: 2e-15,
        points: &[
            (&[1.0, 2.0], 2.313261687518223, &[0.2689414213699951, 0.7310585786300049], &[0.19661193324148185, -0.19661193324148185, -0.19661193324148185, 0.19661193324148185]),
            (&[0.0, 0.0], 0.6931471805599453, &[0.5, 0.5], &[0.25, -0.25, -0.25, 0.25]),
            (&[-800.0, -790.0], -789.9999546011007, &[4.5397868702434395e-05, 0.9999546021312976], &[4.5395807735951673e-05, -4.5395807735951673e-05, -4.5395807735951673e-05, 4.5395807735951673e-05]),
            (&[50.0, 0.0], 50.0, &[1.0, 1.9287498479639178e-22], &[1.9287498479639178e-22, -1.9287498479639178e-22, -1.9287498479639178e-22, 1.9287498479639178e-22]),
        ],
    },
];

/// Asserts the tolerance, and below `floor` the absolute error.
fn assert_near(what: &str, found: &[f64], expected: &[f64], tolerance: f64, floor: f64) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (&one, &other) in found.iter().zip(expected) {
        let error = (one - other).abs();
        assert!(error <= tolerance * other.abs() + floor, "{what}: {one:e}, not {other:e}");
    }
}

#[test]
fn values_gradients_and_hessians_are_those_of_multiple_precision() {
    for numerics in NUMERICS {
        for Figures { name, f, tolerance, points } in FIGURES {
            let recorded = Tape::builder()
                .hot_threshold(u32::MAX)
                .background(false)
                .numerics(numerics)
                .record(f);
            for compiled in [false, true] {
                let before = recorded.report().kernel_calls;
                for &(x, value, gradient, hessian) in *points {
                    let what = format!("{name} {x:?} {numerics:?} {compiled}");
                    let mut found = (vec![0.0; x.len()], vec![0.0; hessian.len()]);
                    let (g, h) = (&mut found.0, &mut found.1);
                    let y = recorded.value_grad_hessian_into(x, g, h).unwrap();
                    let steepest = gradient.iter().fold(0.0, |most, g: &f64| g.abs().max(most));
                    // Values around roots, and second derivatives around theirs.
                    assert_near(&what, &[y], &[value], *tolerance, 2e-16 * steepest.min(1.0));
                    assert_near(&what, &found.0, gradient, *tolerance, 1e-307);
                    assert_near(&what, &found.1, hessian, *tolerance, 2e-15 * steepest.min(1.0));
                    let alone = (recorded.eval(x).unwrap(), recorded.grad(x).unwrap());
                    assert_near(&what, &[alone.0], &[value], *tolerance, 2e-16 * steepest.min(1.0));
                    assert_near(&what, &alone.1, gradient, *tolerance, 1e-307);
                }
                let served = recorded.report().kernel_calls - before;
                assert!(!compiled || served >= 3 * points.len() as u64, "{name}: {served}");
                recorded.compile().unwrap();
            }
            assert_eq!(recorded.report().paths, 1, "{name}");
        }
    }
}

/// Every function of the trait that has a value everywhere in (0.1, 0.9).
fn all<T: Special>(x: &[T]) -> Vec<T> {
    let (a, b) = (x[0], x[1]);
    let first = vec![
        a.erf(),
        a.erfc(),
        a.erfcx(),
        a.erf_inv(),
        a.erfc_inv(),
        a.ln_gamma(),
        a.polygamma(2),
        a.digamma(),
        a.trigamma(),
        a.ln_rising(b),
        a.ln_beta(b),
        a.gamma_p(b),
        a.gamma_q(b),
        a.beta_inc(2.0, 3.5),
        a.normal_cdf(),
        a.ln_normal_cdf(),
        a.normal_quantile(),
        a.bessel_j(3),
        a.bessel_i(-2),
    ];
    let second = vec![
        a.softplus(),
        (-a).sigmoid(),
        a.logit(),
        a.log_add_exp(b),
        (-a).rem_euclid(b),
        (-a).div_euclid(b),
        a.detach(),
        a.less_than(b).select(a, b),
        a.at_most(b) + a.greater_than(b) + a.at_least(b) + a.equal_to(b) + a.differs_from(b),
    ];
    first.into_iter().chain(second).collect()
}

#[test]
fn plain_numbers_have_the_bits_of_the_tape_and_of_kernels() {
    let points = [[0.25, 0.75], [0.75, 0.25], [0.3, 0.3], [0.1, 0.9], [0.9, 0.55]];
    for number in 0..all(&points[0]).len() {
        let builder = Tape::builder().numerics(phigrad::Numerics::Exact);
        let f = builder.compile_at_first_call().record(move |x: &[Var]| all(x)[number]);
        for x in &points {
            let expected = all(x)[number];
            assert_eq!(f.eval(x).unwrap().to_bits(), expected.to_bits(), "{number} {x:?}");
        }
        let report = f.report();
        assert_eq!((report.paths, report.kernel_calls), (1, points.len() as u64 - 1), "{number}");
    }
}

#[test]
fn compositions_neither_overflow_nor_cancel_at_their_edges() {
    let (infinity, nan) = (f64::INFINITY, f64::NAN);
    for (f, x, value, gradient) in [
        (Special::softplus as fn(Var) -> Var, 1000.0, 1000.0, 1.0),
        (Special::softplus, -1000.0, 0.0, 0.0),
        (Special::softplus, infinity, infinity, 1.0),
        (Special::softplus, -infinity, 0.0, 0.0),
        (Special::softplus, nan, nan, nan),
        (Special::sigmoid, -745.0, 5e-324, 5e-324),
        (Special::sigmoid, 745.0, 1.0, 5e-324),
        (Special::sigmoid, 1e300, 1.0, 0.0),
        (Special::sigmoid, -infinity, 0.0, 0.0),
        (Special::sigmoid, nan, nan, nan),
        (Special::logit, 0.0, -infinity, infinity),
        (Special::logit, 1.0, infinity, infinity),
        (Special::logit, 5e-324, -744.4400719213812, infinity),
        (Special::logit, -1.0, nan, -0.5),
        (Special::normal_cdf, -40.0, 0.0, 0.0),
        (Special::normal_cdf, infinity, 1.0, 0.0),
        (Special::ln_normal_cdf, 1e10, -0.0, 0.0),
        (Special::ln_normal_cdf, -1e100, -5e199, 1e100),
        (Special::normal_quantile, 0.0, -infinity, infinity),
        (Special::normal_quantile, 1.0, infinity, infinity),
        (Special::normal_quantile, 5e-324, -38.467405617144344, infinity),
        (Special::normal_quantile, 0.5, 0.0, 2.5066282746310002),
        (Special::normal_quantile, 1.5, nan, nan),
    ] {
        for numerics in NUMERICS {
            let recorded = Tape::builder().background(false).numerics(numerics).record(|x| f(x[0]));
            for _ in 0..2 {
                let (y, g) = recorded.value_and_grad(&[x]).unwrap();
                for (found, expected) in [(y, value), (g[0], gradient)] {
                    let error = (found - expected).abs();
                    let is_same = found == expected || (found.is_nan() && expected.is_nan());
                    assert!(is_same || error <= 1e-15 * expected.abs(), "{x}: {found} {expected}");
                }
                let second = recorded.hessian(&[x]).unwrap()[0];
                let is_flat = gradient == 0.0 || x.abs() > 100.0;
                assert!(!is_flat || second.is_finite() || !x.is_finite(), "{x}: {second}");
                recorded.compile().unwrap();
            }
            assert_eq!(recorded.report().paths, 1, "{x}");
        }
    }
}

#[test]
fn log_add_exp_takes_infinities() {
    let (infinity, nan) = (f64::INFINITY, f64::NAN);
    let f = Tape::builder().compile_at_first_call().record(|x: &[Var]| x[0].log_add_exp(x[1]));
    for (x, expected) in [
        ([0.0, 0.0], 2.0f64.ln()),
        ([infinity, infinity], infinity),
        ([-infinity, -infinity], -infinity),
        ([-infinity, infinity], infinity),
        ([-infinity, 3.0], 3.0),
        ([3.0, -infinity], 3.0),
        ([infinity, -1e308], infinity),
        ([1e308, -1e308], 1e308),
        ([nan, 1.0], nan),
        ([1.0, nan], nan),
        ([infinity, nan], nan),
    ] {
        let found = f.eval(&x).unwrap();
        assert!(found == expected || (found.is_nan() && expected.is_nan()), "{x:?}: {found}");
    }
    assert_eq!(f.grad(&[-infinity, 3.0]).unwrap(), [0.0, 1.0]);
    assert_eq!(f.report().paths, 1);
}

#[test]
fn remainders_and_quotients_are_those_of_the_language() {
    let numbers = [5.5, -5.5, 6.0, -6.0, 0.0, -0.0, 1e300, f64::INFINITY, f64::NAN];
    let both = |x: &[Var]| [x[0].rem_euclid(x[1]), x[0].div_euclid(x[1])];
    let [rest, whole] = [0, 1].map(|i| Tape::record(move |x: &[Var]| both(x)[i]));
    for a in numbers {
        for b in [2.0, -2.0, 0.75, 0.0, f64::INFINITY] {
            let same = |found: f64, expected: f64| {
                found.to_bits() == expected.to_bits() || (found.is_nan() && expected.is_nan())
            };
            assert!(same(rest.eval(&[a, b]).unwrap(), a.rem_euclid(b)), "{a} {b}");
            assert!(same(whole.eval(&[a, b]).unwrap(), a.div_euclid(b)), "{a} {b}");
        }
    }
    assert_eq!(rest.grad(&[5.5, -2.0]).unwrap(), [1.0, 2.0]);
    assert_eq!(rest.grad(&[-5.5, 2.0]).unwrap(), [1.0, 3.0]);
    assert_eq!(whole.grad(&[5.5, 2.0]).unwrap(), [0.0, 0.0]);
}

#[test]
fn orders_of_all_numbers_are_those_of_total_cmp() {
    let numbers = [f64::NEG_INFINITY, -1.0, -0.0, 0.0, 5e-324, 1.0, f64::INFINITY, f64::NAN];
    let f = Tape::record(|x: &[Var]| Var::from(x[0].total_cmp(&x[1]) as i8));
    for round in 0..2 {
        for a in numbers {
            for b in numbers {
                let found = f.eval(&[a, b]).unwrap();
                assert_eq!(found, f64::from(a.total_cmp(&b) as i8), "{a} {b} {round}");
            }
        }
        f.compile().unwrap();
    }
    // Less, greater, equal, and the signs of zeros; NaN in either place and in both.
    assert_eq!(f.report().paths, 8);
}

/// Branches around special functions of a variable that changes.
#[traced]
fn branches(x: &[Var]) -> Var {
    let mut y = 1.0 + x[0];
    for &limit in x {
        let (log, fixed) = (y.ln_gamma(), y.detach());
        if limit > 0.5 {
            y = fixed + log.sigmoid();
        } else {
            y += y.log_add_exp(log).softplus();
        }
    }
    y
}

#[test]
fn special_functions_do_not_keep_paths_from_joining() {
    let f = Tape::builder().hot_threshold(u32::MAX).background(false).record(branches);
    let tape = Tape::builder().tape_only().record(branches);
    let point = |number: u32| [0, 1, 2, 3, 4].map(|bit| f64::from(number >> bit & 1));
    for number in [0, 31, 5, 10] {
        f.grad(&point(number)).unwrap();
    }
    f.compile().unwrap();
    for number in 0..32 {
        let (x, found) = (point(number), f.grad(&point(number)).unwrap());
        assert_near("gradient", &found, &tape.grad(&x).unwrap(), 1e-13, 1e-13);
    }
    assert_eq!(f.report().fallbacks, 0, "{}", f.report());
}
