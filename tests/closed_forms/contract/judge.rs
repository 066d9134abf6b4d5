//! The accuracy contract of closed forms as one function.
//!
//! With t the error of the tape, the error of a result may be `4·t + 4 ulp` plus the floor of the
//! contract: 2⁻⁷⁵ of the effect of a relative change. The size of that effect is
//! `s = max(|y|, |z0|)`. For a whole program y is its value, and z0 the value that it would have
//! without any iteration: the programs of the suite are thin loops, and their outputs are affine in
//! the state, so that y and z0 are the final and the first state, weighted as in the output. The
//! floor is `2⁻⁷⁵·s` for the value and `2⁻⁷⁵·s / max(|x|, 2⁻⁴⁰·s, 2⁻⁴⁰)` for the partial by x. It
//! is added because a closed form compares its error bound with the floor before it rounds the
//! result to working precision. Results whose exact and returned values are both below 1e-285 pass.

/// Smaller results are not compared.
const LEAST: f64 = 1e-285;

/// The distance from the size of `x` to the next larger number.
pub fn ulp(x: f64) -> f64 {
    let size = x.abs().clamp(f64::MIN_POSITIVE, f64::MAX.next_down());
    size.next_up() - size
}

/// The floor of a value, or of a partial by an input of this size.
#[derive(Clone, Copy, Debug)]
pub enum Component {
    Value,
    Partial { input: f64 },
}

impl Component {
    /// The error that is always allowed, `effect` being the s of the contract.
    pub fn floor(self, effect: f64) -> f64 {
        let effect = effect.min(f64::MAX);
        let floor = 2f64.powi(-75) * effect;
        match self {
            Component::Value => floor,
            Component::Partial { input } => {
                let least = 2f64.powi(-40);
                floor / input.abs().max(least * effect).max(least)
            }
        }
    }
}

/// True if a closed form may return `value`, whose error is at most `bound`.
pub fn is_accepted(value: f64, bound: f64, floor: f64) -> bool {
    let size = value.abs();
    let is_small = bound <= 2f64.powi(-51) * size || bound <= floor || size + bound <= LEAST;
    size.is_finite() && is_small
}

/// One component: its exact value, a result and the tape's result with their errors.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    /// Rounded to double precision.
    pub exact: f64,
    pub found: f64,
    /// The distance of `found` from the truth.
    pub error: f64,
    pub tape: f64,
    pub tape_error: f64,
    pub floor: f64,
}

/// The contract's verdict on one component.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Verdict {
    /// Within four times the tape's error and four ulps; the share of that.
    Accurate(f64),
    /// Above that by at most the floor, or too small to be compared.
    BelowFloor,
    /// The tape's result, or the exact one, is not finite.
    Unmeasured,
    /// The error in units of the allowed one.
    Violated(f64),
}

/// Judges one component.
pub fn judge(measured: Measured) -> Verdict {
    let Measured { exact, found, error, tape, tape_error, floor } = measured;
    if !tape.is_finite() {
        // A finite result for an exact one out of range is wrong.
        let is_wrong = !exact.is_finite() && found.is_finite();
        return if is_wrong { Verdict::Violated(f64::INFINITY) } else { Verdict::Unmeasured };
    }
    if !exact.is_finite() {
        return Verdict::Unmeasured;
    }
    if !found.is_finite() || error.is_nan() {
        return Verdict::Violated(f64::INFINITY);
    }
    if exact.abs() <= LEAST && found.abs() <= LEAST {
        return Verdict::BelowFloor;
    }
    let allowed = 4.0 * tape_error + 4.0 * ulp(exact);
    if error <= allowed {
        Verdict::Accurate(error / allowed)
    } else if error <= allowed + floor {
        Verdict::BelowFloor
    } else {
        Verdict::Violated(error / (allowed + floor))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tape's error is half an ulp.
    fn verdict(exact: f64, found: f64, floor: f64) -> Verdict {
        let (error, tape_error) = ((found - exact).abs(), 0.5 * ulp(exact));
        judge(Measured { exact, found, error, tape: exact, tape_error, floor })
    }

    #[test]
    fn the_allowed_error_is_the_tapes_and_ulps() {
        let ulp = f64::EPSILON;
        assert_eq!(verdict(1.0, 1.0 + 3.0 * ulp, 0.0), Verdict::Accurate(0.5));
        assert_eq!(verdict(-1.0, -1.0 - 6.0 * ulp, 0.0), Verdict::Accurate(1.0));
        assert_eq!(verdict(1.0, 1.0 + 12.0 * ulp, 0.0), Verdict::Violated(2.0));
        assert_eq!(verdict(1.0, 1.0 - 12.0 * ulp, 6.0 * ulp), Verdict::BelowFloor);
        assert_eq!(verdict(1.0, 1.0 - 24.0 * ulp, 6.0 * ulp), Verdict::Violated(2.0));
    }

    #[test]
    fn planted_errors_are_caught() {
        let is_caught =
            |exact, found, floor| matches!(verdict(exact, found, floor), Verdict::Violated(_));
        for exact in [1.7, -3e8, 1e-200, 1e-280] {
            // The error that is accepted if its bound is too small by 2¹⁰.
            assert!(is_caught(exact, exact * (1.0 + 2f64.powi(-41)), 0.0));
            assert!(is_caught(exact, exact * (1.0 - 2f64.powi(-41)), 0.0));
            // Partials of the wrong sign, the wrong size, another input; missing; not finite.
            for wrong in [-exact, 2.0 * exact, 0.3, 0.0, f64::NAN, f64::INFINITY] {
                let floor = Component::Partial { input: 0.7 }.floor(exact.abs());
                assert!(is_caught(exact, wrong, floor), "{wrong} for {exact}");
            }
        }
        // Above the floor of 2⁻⁷⁵ by a factor of 2¹⁰.
        let floor = Component::Value.floor(1.0);
        assert!(is_caught(0.0, 2f64.powi(-65), floor));
        assert!(is_caught(1e-30, 1e-30 + 2f64.powi(-65), floor));
        assert_eq!(verdict(1e-30, 1e-30 + 2f64.powi(-76), floor), Verdict::BelowFloor);
    }

    #[test]
    fn floors_are_those_of_the_contract() {
        let floor = 2f64.powi(-75);
        assert_eq!(Component::Value.floor(3.0), 3.0 * floor);
        let partial = |input, effect| Component::Partial { input }.floor(effect);
        assert_eq!(partial(-0.5, 1.0), 2.0 * floor);
        assert_eq!(partial(0.0, 1.0), 2f64.powi(40) * floor);
        assert_eq!(partial(1e-9, 2f64.powi(60)), 2f64.powi(40) * floor);
        assert_eq!(partial(1e-9, 1.0), floor / 1e-9);
    }

    #[test]
    fn results_without_a_finite_tape_are_not_judged() {
        let verdict = |exact, found, tape: f64| {
            let error = f64::INFINITY;
            judge(Measured { exact, found, error, tape, tape_error: error, floor: 0.0 })
        };
        let infinite = f64::INFINITY;
        assert_eq!(verdict(infinite, infinite, infinite), Verdict::Unmeasured);
        assert_eq!(verdict(infinite, f64::NAN, f64::NAN), Verdict::Unmeasured);
        assert_eq!(verdict(infinite, 1e300, infinite), Verdict::Violated(infinite));
        assert_eq!(verdict(1.0, 1.0, f64::NAN), Verdict::Unmeasured);
        assert_eq!(verdict(1.0, f64::NAN, 1.0), Verdict::Violated(infinite));
        assert_eq!(verdict(1e-290, 0.0, 0.0), Verdict::BelowFloor);
    }
}
