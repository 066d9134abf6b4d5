//! Recordings that compile only when told to, and the check that what was meant to
//! run in a kernel did.

use phigrad::report::KernelReport;
use phigrad::{Numerics, Purpose, Recorded, Report, Tape, Var};

use crate::error::Error;

/// A recording that stays on the tape until `compile` is called.
pub fn record<F>(function: F, numerics: Numerics) -> Recorded<F>
where
    F: Fn(&[Var]) -> Var + Send + Sync + 'static,
{
    Tape::builder().hot_threshold(u32::MAX).background(false).numerics(numerics).record(function)
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
