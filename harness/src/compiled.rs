//! Recordings that compile only when told to, and the check that what was meant to
//! run in a kernel did.

use phigrad::internals::{Tier, Tuning};
use phigrad::report::KernelReport;
use phigrad::{Numerics, Purpose, Recorded, Report, Tape, TapeBuilder, Var};

use crate::error::Error;

/// A recording that stays on the tape until `compile` is called.
pub fn record<F>(function: F, numerics: Numerics) -> Recorded<F>
where
    F: Fn(&[Var]) -> Var + Send + Sync + 'static,
{
    Tape::builder().hot_threshold(u32::MAX).background(false).numerics(numerics).record(function)
}

/// The same with kernels of the first tier.
pub fn record_first_tier<F>(function: F) -> Recorded<F>
where
    F: Fn(&[Var]) -> Var + Send + Sync + 'static,
{
    first_tier(Tape::builder()).record(function)
}

/// `builder` with kernels of the first tier, when told to.
pub fn first_tier(builder: TapeBuilder) -> TapeBuilder {
    let tuning = Tuning { tier: Some(Tier::First), ..Tuning::default() };
    builder.hot_threshold(u32::MAX).background(false).tuning(tuning)
}

/// The number of calls after which compiling has paid; none if the kernel saves nothing.
pub fn break_even(compile_ns: f64, tape_ns: f64, kernel_ns: f64) -> Option<f64> {
    (tape_ns > kernel_ns).then(|| compile_ns / (tape_ns - kernel_ns))
}

/// The same without closed forms.
pub fn record_open<F>(function: F) -> Recorded<F>
where
    F: Fn(&[Var]) -> Var + Send + Sync + 'static,
{
    let builder = Tape::builder().hot_threshold(u32::MAX).background(false);
    builder.phi_calculus(false).record(function)
}

/// The newest kernel for gradients alone.
pub fn gradient_kernel<'a>(report: &'a Report, subject: &str) -> Result<&'a KernelReport, Error> {
    let is_gradient = |kernel: &&KernelReport| matches!(kernel.purpose, Purpose::Gradient);
    let newest = report.kernels.iter().rev().find(is_gradient);
    newest.ok_or_else(|| Error::NoKernel { subject: subject.to_owned() })
}

/// Fails unless the kernels answered all of the `calls` made since `before`.
pub fn require_kernel_calls(
    subject: &str,
    calls: u64,
    before: &Report,
    after: &Report,
) -> Result<(), Error> {
    let kernel_calls = after.kernel_calls.saturating_sub(before.kernel_calls);
    let fallbacks = after.fallbacks.saturating_sub(before.fallbacks);
    if kernel_calls == calls && fallbacks == 0 {
        return Ok(());
    }
    Err(Error::NotInKernel { subject: subject.to_owned(), calls, kernel_calls, fallbacks })
}

/// Turns an error of the library into one that says what was going on.
pub fn failed(subject: &str, action: &'static str) -> impl FnOnce(phigrad::Error) -> Error {
    move |source| Error::Library { subject: subject.to_owned(), action, source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compiling_pays_after_the_time_saved_adds_up() {
        assert_eq!(break_even(1000.0, 15.0, 5.0), Some(100.0));
    }

    #[test]
    fn compiling_never_pays_where_the_kernel_is_not_faster() {
        assert_eq!(break_even(1000.0, 5.0, 5.0), None);
        assert_eq!(break_even(1000.0, 5.0, 6.0), None);
    }
}
