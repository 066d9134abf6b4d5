//! A progress bar on standard error while something is measured.

use std::io::{IsTerminal, stderr};

use indicatif::{ProgressBar, ProgressStyle};

/// A bar of `steps` steps; invisible unless standard error is a terminal, where
/// a person can see it move.
pub fn bar(steps: u64) -> ProgressBar {
    if !stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(steps);
    match ProgressStyle::with_template("{bar:32} {msg:<20} {elapsed} of about {duration}") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}
