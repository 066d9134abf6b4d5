//! Closed forms keep the accuracy contract: a table of programs, each with seeded inputs, run on
//! the tape, in kernels with closed forms and in kernels without, and judged against multiple
//! precision.
//!
//! - `number`: the numbers of programs; `families`: the programs and their inputs
//! - `arithmetic`, `reverse`, `affine`, `reference`: exact values and partials
//! - `judge`: the contract as one function; `served`: the three executors
//! - `examine`, `summary`: one family, and the table of all families
//! - `bounded`, `planted`: planted errors
//!
//! `cargo test --release --test closed_forms contract -- --nocapture` prints the table, and the
//! first violations
//! of each family; `-- --ignored` takes ten times as many points. `PHIGRAD_CONTRACT_FAMILY` selects
//! families by a part of their names. With t the error of the tape, the columns are:
//!
//! - `worst`: the largest error among accurate results, in units of 4 t + 4 ulp;
//! - `floor`: components that are accurate only with the floor of the contract;
//! - `unmeas`: components for which the tape is not finite;
//! - `as loop`: components that violate the contract and have the bits of the loop's result;
//! - `loop >`: components of the kernel without closed forms that violate it;
//! - `viol`, `largest`: violations, and the largest of them in units of the allowed error;
//! - `chance`: results of sums in working precision above 4 t + 4 ulp that four times the tape's
//!   error at nearby points allows;
//! - `reject`: points at which a closed form is known to be rejected;
//! - `forms`, `kernel`: rules that were applied, and the share of calls that a kernel served;
//! - `compile`, `time`: the times of compilation and of the whole family.

mod affine;
mod arithmetic;
mod bounded;
mod examine;
mod families;
mod judge;
mod number;
mod planted;
mod reference;
mod reverse;
mod served;
mod summary;

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use examine::Source;
use families::all;
use summary::{Summary, table};

/// Examines all families on all processors, in the order of the table.
fn examine_all(points: usize) -> Vec<Summary> {
    let only = std::env::var("PHIGRAD_CONTRACT_FAMILY").unwrap_or_default();
    let families: Vec<_> =
        all().into_iter().filter(|family| family.title().contains(&only)).collect();
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        while let Some(family) = families.get(next.fetch_add(1, Ordering::Relaxed)) {
            let summary = family.examine(points, Source::Kernel);
            done.lock().unwrap().push((family.title(), summary));
        }
    };
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(work);
        }
    });
    let mut done = done.into_inner().unwrap();
    let place = |title: &str| families.iter().position(|family| family.title() == title);
    done.sort_by_key(|(title, _)| place(title));
    done.into_iter().map(|(_, summary)| summary).collect()
}

fn assert_kept(points: usize) {
    let summaries = examine_all(points);
    let table = table(&summaries);
    println!("{table}");
    let violations: usize = summaries.iter().map(|summary| summary.violations).sum();
    assert!(violations == 0, "{violations} violations of the contract\n{table}");
}

/// Points of a family in the default run.
const POINTS: usize = 800;

#[test]
fn closed_forms_keep_the_contract() {
    assert_kept(POINTS);
}

#[test]
#[ignore = "ten times the points"]
fn closed_forms_keep_the_contract_at_many_points() {
    assert_kept(10 * POINTS);
}

#[test]
fn the_table_is_large_enough() {
    let families = all();
    assert!(families.len() >= 25, "{}", families.len());
    assert!(families.len() * POINTS >= 20_000, "{}", families.len() * POINTS);
    let titles: std::collections::HashSet<String> =
        families.iter().map(|family| family.title()).collect();
    assert_eq!(titles.len(), families.len());
}
