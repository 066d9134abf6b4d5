//! Recorded functions with loops whose number of iterations depends on the
//! inputs: after some calls kernels serve nearly all, with the tape's results.

use crate::common::served::{NUMERICS, Pair, Served, manual};
use phigrad::internals::Random;
use phigrad::{Numerics, Purpose, TapeBuilder, Var, traced};

/// Records from that many calls at random points; returns how many of 500 others
/// are served by the kernel, which must be right, and the size of its code.
fn served(
    numerics: Numerics,
    calls: usize,
    ranges: &[(f64, f64)],
    f: impl Fn(&[Var]) -> Var + Copy,
) -> (usize, usize) {
    served_by(manual(numerics), numerics, calls, ranges, f)
}

/// The same for kernels that `builder` makes.
fn served_by(
    builder: TapeBuilder,
    numerics: Numerics,
    calls: usize,
    ranges: &[(f64, f64)],
    f: impl Fn(&[Var]) -> Var + Copy,
) -> (usize, usize) {
    let mut random = Random::new(7);
    let mut point = || ranges.iter().map(|&(a, b)| random.uniform(a, b)).collect::<Vec<f64>>();
    let pair = Pair::with(builder, numerics, f);
    pair.profile(&(0..calls).map(|_| point()).collect::<Vec<_>>());
    let count = (0..500).filter(|_| pair.check(&point()) == Served::Kernel).count();
    let report = pair.kernel.report();
    assert!(report.refusals.is_empty() && report.unmerged.is_empty(), "{report}");
    (count, report.kernels[0].code_bytes)
}

fn newton(x: &[Var]) -> Var {
    let mut y = x[0];
    loop {
        let step = (y * y * y - x[1]) / (y * y * 3.0);
        y -= step;
        if step.abs() < 1e-9 {
            return y * x[1];
        }
    }
}

#[traced]
fn newton_annotated(x: &[Var]) -> Var {
    let (mut y, mut last) = (x[0], x[0] + 1.0);
    while (y - last).abs() > 1e-9 {
        last = y;
        y = y - (y * y * y - x[1]) / (y * y * 3.0);
    }
    (y + last).sin()
}

#[traced]
fn bisection(x: &[Var]) -> Var {
    let (mut low, mut high) = (x[0] * 0.5, x[1]);
    while high - low > 1e-3 {
        let middle = low * 0.4 + high * 0.6;
        if middle * middle > 2.0 {
            high = middle;
        } else {
            low = middle;
        }
    }
    low * x[0] + high
}

#[traced]
fn escape(x: &[Var]) -> Var {
    let (mut a, mut b) = (x[0], x[1]);
    while a * a + b * b < 4.0 {
        (a, b) = (a * a - b * b + x[0], a * b * 2.0 + x[1]);
    }
    (a * a + b * b + 1.0).ln()
}

#[test]
fn most_calls_of_newton_iterations_run_in_the_kernel() {
    for numerics in NUMERICS {
        for f in [newton, newton_annotated] {
            let (count, _) = served(numerics, 50, &[(0.5, 9.0), (1.0, 40.0)], f);
            assert!(count >= 475, "{numerics:?} {count}");
        }
    }
}

#[test]
fn most_calls_of_bisections_run_in_the_kernel() {
    for numerics in NUMERICS {
        let (count, _) = served(numerics, 50, &[(0.0, 2.6), (1.5, 9.0)], bisection);
        assert!(count >= 475, "{numerics:?} {count}");
    }
}

#[test]
fn most_calls_of_escape_time_loops_run_in_the_kernel() {
    for numerics in NUMERICS {
        let (count, _) = served(numerics, 50, &[(0.4, 1.0), (0.3, 1.0)], escape);
        assert!(count >= 475, "{numerics:?} {count}");
    }
}

#[traced]
fn growth(x: &[Var]) -> Var {
    let mut y = x[0];
    while y < 1e6 {
        y = y * x[1] + 1.0;
    }
    y.sqrt() * x[0]
}

fn growth_plain(x: &[Var]) -> Var {
    let mut y = x[0];
    while y < 1e6 {
        y = y * x[1] + 1.0;
    }
    y.sqrt() * x[0]
}

/// The size of the code that a few calls add, with `factor` as the growth of an
/// iteration.
fn size(f: fn(&[Var]) -> Var, factor: f64) -> usize {
    let recorded = manual(Numerics::Real).record(f);
    for i in 0..8 {
        recorded.grad(&[1.0 + f64::from(i) * 0.1, factor]).unwrap();
    }
    recorded.compile().unwrap();
    let kernels = recorded.report().kernels;
    kernels.iter().find(|kernel| kernel.purpose == Purpose::Gradient).unwrap().code_bytes
}

#[test]
fn code_does_not_grow_with_the_largest_number_of_iterations() {
    let ranges = |factor: f64, more: f64| [(1.0, 1.5), (factor, factor * more)];
    for (f, more) in [(growth as fn(&[Var]) -> Var, 1.015), (growth_plain, 1.001)] {
        // About 20, and from 200 to 350 iterations: a loop each.
        let open = |ranges: &[(f64, f64)]| {
            let builder = manual(Numerics::Real).phi_calculus(false);
            served_by(builder, Numerics::Real, 50, ranges, f)
        };
        let (small, large) = (open(&ranges(1.8, 1.1)), open(&ranges(1.03, more)));
        assert!(small.0 >= 475 && large.0 >= 475, "{small:?} {large:?}");
        assert!(large.1 <= small.1 + 500, "{small:?} {large:?}");
        let small = served(Numerics::Real, 50, &ranges(1.8, 1.1), f);
        let large = served(Numerics::Real, 50, &ranges(1.03, more), f);
        assert!(small.0 >= 475 && large.0 >= 475, "{small:?} {large:?}");
        // Behind few iterations it stays a loop; behind many there is a closed form, which
        // the value alone does not need.
        assert!(large.1 <= small.1 + 1000, "{small:?} {large:?}");
    }
    // The gradient needs it, with its derivatives.
    for f in [growth as fn(&[Var]) -> Var, growth_plain] {
        let (small, large) = (size(f, 1.8), size(f, 1.03));
        assert!(large <= small + 2000, "{small} {large}");
    }
    // About 400 and 1,400 iterations: a loop over the binary digits of their number.
    assert_eq!(size(growth, 1.03), size(growth, 1.01));
    // About 400, 4,000 and 40,000 iterations: it may grow with the digits of their number.
    let sizes = [1.03, 1.003, 1.0003].map(|factor| size(growth_plain, factor));
    assert!(sizes[2] <= sizes[0] + 1000, "{sizes:?}");
}
