//! Straight-line programs of any length, for measuring what compiling costs.
//!
//! They are drawn at random, but always the same: each step takes recent values
//! or inputs. A candidate step is accepted if its value and its sensitivity to
//! the inputs stay in a sane range at the base point, so that neither results
//! nor gradients overflow or vanish, however long the program is.

use phigrad::internals::Random;

use crate::programs::Scalar;

/// Inputs of every program.
const INPUTS: usize = 16;
/// Operands are among that many latest values.
const RECENT: usize = 16;
/// Every so many steps the latest value is added to the result, so that all
/// parts of the program matter to the gradient.
const TAP_EVERY: usize = 10;
/// Sane sizes of values, and the largest sane sum of derivatives by the inputs.
const SMALLEST: f64 = 0.25;
const LARGEST: f64 = 4.0;
const MOST_SENSITIVE: f64 = 4.0;

/// One operation; operands are indices of values, the inputs come first.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Step {
    Add(usize, usize),
    Sub(usize, usize),
    Mul(usize, usize),
    Div(usize, usize),
    Sqrt(usize),
    Sin(usize),
    /// Adds the latest value to the result.
    Tap,
}

/// A program.
pub struct StraightLine {
    steps: Vec<Step>,
}

impl StraightLine {
    /// The program of that many operations.
    pub fn new(operations: usize) -> StraightLine {
        let mut random = Random::new(0);
        // Each value at the base point, with the sum of the absolute values of
        // its derivatives by the inputs.
        let mut values: Vec<(f64, f64)> = base_point().into_iter().map(|x| (x, 1.0)).collect();
        let mut steps = Vec::with_capacity(operations);
        for index in 1..=operations {
            if index % TAP_EVERY == 0 {
                steps.push(Step::Tap);
                continue;
            }
            let (step, value) = draw(&values, &mut random);
            steps.push(step);
            values.push(value);
        }
        StraightLine { steps }
    }

    /// Runs the program.
    pub fn objective<T: Scalar>(&self, x: &[T]) -> T {
        let mut values = Vec::with_capacity(x.len() + self.steps.len());
        values.extend_from_slice(x);
        let mut result = T::zero();
        for step in &self.steps {
            let value = match *step {
                Step::Add(a, b) => values[a] + values[b],
                Step::Sub(a, b) => values[a] - values[b],
                Step::Mul(a, b) => values[a] * values[b],
                Step::Div(a, b) => values[a] / values[b],
                Step::Sqrt(a) => values[a].sqrt(),
                Step::Sin(a) => values[a].sin(),
                Step::Tap => {
                    result = result + values[values.len() - 1];
                    continue;
                }
            };
            values.push(value);
        }
        result
    }
}

/// The point at which the programs are sane.
pub fn base_point() -> Vec<f64> {
    (0..INPUTS).map(|i| 0.5 + (i as f64 + 0.5) / INPUTS as f64).collect()
}

/// A step that keeps to the sane range, and what it yields.
fn draw(values: &[(f64, f64)], random: &mut Random) -> (Step, (f64, f64)) {
    for _ in 0..64 {
        let recent = |random: &mut Random| values.len() - 1 - random.below(RECENT);
        let a = recent(random);
        let b = if random.below(4) == 0 { random.below(INPUTS) } else { recent(random) };
        let step = match random.below(6) {
            0 => Step::Add(a, b),
            1 => Step::Sub(a, b),
            2 => Step::Mul(a, b),
            3 => Step::Div(a, b),
            4 => Step::Sqrt(a),
            _ => Step::Sin(a),
        };
        let value = yields(step, values);
        // Written so that what is not a number is rejected too.
        if (SMALLEST..=LARGEST).contains(&value.0.abs()) && value.1 <= MOST_SENSITIVE {
            return (step, value);
        }
    }
    // Sane whatever came before.
    let step = Step::Sin(random.below(INPUTS));
    (step, yields(step, values))
}

/// Value and sensitivity of a step.
fn yields(step: Step, values: &[(f64, f64)]) -> (f64, f64) {
    match step {
        Step::Add(a, b) => (values[a].0 + values[b].0, values[a].1 + values[b].1),
        Step::Sub(a, b) => (values[a].0 - values[b].0, values[a].1 + values[b].1),
        Step::Mul(a, b) => {
            let ((a, da), (b, db)) = (values[a], values[b]);
            (a * b, da * b.abs() + db * a.abs())
        }
        Step::Div(a, b) => {
            let ((a, da), (b, db)) = (values[a], values[b]);
            (a / b, da / b.abs() + db * a.abs() / (b * b))
        }
        Step::Sqrt(a) => (values[a].0.sqrt(), 0.5 * values[a].1 / values[a].0.sqrt()),
        Step::Sin(a) => (values[a].0.sin(), values[a].1 * values[a].0.cos().abs()),
        Step::Tap => values.last().copied().unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_have_the_asked_length_and_are_always_the_same() {
        let program = StraightLine::new(1000);
        assert_eq!(program.steps.len(), 1000);
        assert_eq!(program.steps, StraightLine::new(1000).steps);
        assert_eq!(program.steps, StraightLine::new(2000).steps[..1000]);
    }

    #[test]
    fn all_operations_occur_often() {
        let program = StraightLine::new(10_000);
        let kind = std::mem::discriminant::<Step>;
        for sample in [
            Step::Add(0, 0),
            Step::Sub(0, 0),
            Step::Mul(0, 0),
            Step::Div(0, 0),
            Step::Sqrt(0),
            Step::Sin(0),
            Step::Tap,
        ] {
            let count = program.steps.iter().filter(|step| kind(step) == kind(&sample)).count();
            assert!(count >= 500, "{sample:?} occurs {count} times");
        }
    }

    #[test]
    fn values_and_derivatives_stay_finite() {
        let program = StraightLine::new(100_000);
        let base = base_point();
        let value = program.objective(&base);
        assert!(value.is_finite());
        for input in 0..base.len() {
            let mut near = base.clone();
            near[input] += 1e-6;
            let slope = (program.objective(&near) - value) / 1e-6;
            assert!(slope.is_finite() && slope.abs() > 1e-3 && slope.abs() < 1e6, "{slope:e}");
        }
    }
}
