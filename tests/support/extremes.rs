//! Compiled functions and the tape, compared where only the loop may get through.

use phigrad::{Recorded, Var};

/// Compares what the compiled function says at `x` with the tape, to some digits. Whether a
/// kernel serves a lesson.
pub fn compare<F>(
    make: impl Fn() -> Recorded<F>,
    lessons: &[&[f64]],
    x: &[f64],
) -> Result<bool, phigrad::Error>
where
    F: Fn(&[Var]) -> Var + Send + Sync + 'static,
{
    let (taught, tape) = (make(), make());
    for lesson in lessons {
        taught.grad(lesson)?;
    }
    taught.compile()?;
    assert!(!taught.report().kernels.is_empty());
    let (value, gradient) = taught.value_and_grad(x)?;
    let (expected, derivatives) = tape.value_and_grad(x)?;
    let all = [expected].into_iter().chain(derivatives);
    for (found, expected) in [value].into_iter().chain(gradient).zip(all) {
        let error = (found - expected).abs();
        assert!(error <= 1e-12 * expected.abs(), "{found} {expected} at {x:?}");
    }
    // The loop in reserve is no closed form.
    let served = || taught.report().kernel_calls - taught.report().reserve_calls;
    let before = served();
    for lesson in lessons {
        taught.grad(lesson)?;
    }
    Ok(served() > before)
}
