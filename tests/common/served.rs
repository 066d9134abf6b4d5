//! Helpers of several test targets: a recorded function and the same function on the tape only,
//! with a comparison of both.

use phigrad::{Limits, Numerics, Recorded, Report, Tape, TapeBuilder, Var};

/// Both options for rounding.
pub const NUMERICS: [Numerics; 2] = [Numerics::Exact, Numerics::Real];

/// The tolerance between kernel and tape with [`Numerics::Real`], relative to the larger of 1 and
/// the tape's value.
pub const TOLERANCE: f64 = 1e-12;

/// A builder of functions that are compiled only on request.
pub fn manual(numerics: Numerics) -> TapeBuilder {
    Tape::builder().hot_threshold(u32::MAX).background(false).numerics(numerics)
}

/// The default limits with the changes of `change`.
pub fn limits(change: impl FnOnce(&mut Limits)) -> Limits {
    let mut limits = Limits::default();
    change(&mut limits);
    limits
}

/// Tests whether a kernel may return `found` where the tape returns `expected`.
pub fn agrees(numerics: Numerics, expected: f64, found: f64) -> bool {
    if expected.is_nan() {
        return found.is_nan();
    }
    if numerics == Numerics::Exact {
        expected.to_bits() == found.to_bits()
    } else if expected.is_infinite() {
        expected == found
    } else {
        (expected - found).abs() <= TOLERANCE * expected.abs().max(1.0)
    }
}

/// The executor that served the calls of one [`Pair::check`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Served {
    /// A kernel.
    Kernel,
    /// The tape, because the kernel stopped at a guard.
    Fallback,
    /// The tape, because the kernel's result was not finite.
    NonFinite,
    /// The tape, for some results for the one reason and for some for the other.
    FallbackOrNonFinite,
    /// The tape, because there is no kernel.
    Tape,
}

/// A function with kernels, and the same function on the tape only.
pub struct Pair<F> {
    numerics: Numerics,
    tape: Recorded<F>,
    pub kernel: Recorded<F>,
}

impl<F: Fn(&[Var]) -> Var + Copy> Pair<F> {
    pub fn new(numerics: Numerics, f: F) -> Self {
        Pair::with(manual(numerics), numerics, f)
    }

    pub fn with(builder: TapeBuilder, numerics: Numerics, f: F) -> Self {
        Pair { numerics, tape: manual(numerics).record(f), kernel: builder.record(f) }
    }

    /// Records the paths of `points`, then compiles.
    pub fn profile<P: AsRef<[f64]>>(&self, points: &[P]) {
        for point in points {
            self.kernel.value_and_grad(point.as_ref()).unwrap();
        }
        self.kernel.compile().unwrap();
    }

    /// Asserts that value and gradient at `x` are the tape's, alone and
    /// together, and that one executor served all three calls.
    pub fn check(&self, x: &[f64]) -> Served {
        let (value, gradient) = self.tape.value_and_grad(x).unwrap();
        let before = self.kernel.report();
        let (found, both) = self.kernel.value_and_grad(x).unwrap();
        self.compare(x, &[value], &[found]);
        self.compare(x, &gradient, &both);
        self.compare(x, &gradient, &self.kernel.grad(x).unwrap());
        self.compare(x, &[value], &[self.kernel.eval(x).unwrap()]);
        let after = self.kernel.report();
        let counts = |report: &Report| {
            [report.kernel_calls, report.fallbacks, report.non_finite, report.tape_calls]
        };
        let (before, after) = (counts(&before), counts(&after));
        let [kernel, fallbacks, non_finite, tape] = [0, 1, 2, 3].map(|i| after[i] - before[i]);
        assert_eq!(kernel + tape, 3, "{x:?}");
        match (kernel, fallbacks, non_finite) {
            (3, 0, 0) => Served::Kernel,
            (0, 3, 0) => Served::Fallback,
            (0, 0, 0) => Served::Tape,
            // Only one of value and gradient may be finite.
            (_, 0, n) if n == tape => Served::NonFinite,
            // Only one of them may have a guard against the overflow of a reciprocal.
            (_, f, n) if f + n == tape => Served::FallbackOrNonFinite,
            _ => panic!("served by several executors at {x:?}: {:?}", self.kernel.report()),
        }
    }

    fn compare(&self, x: &[f64], expected: &[f64], found: &[f64]) {
        assert_eq!(expected.len(), found.len());
        let same = expected.iter().zip(found).all(|(&e, &f)| agrees(self.numerics, e, f));
        assert!(same, "{:?} at {x:?}: the tape {expected:?}, here {found:?}", self.numerics);
    }
}
