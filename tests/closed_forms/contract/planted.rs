//! Planted errors are caught in the programs of the suite: partials of the wrong input, and results
//! that are accepted by an error bound that is too small.

use phigrad::internals::Random;

use super::examine::{Bound, Examined, Source};
use super::families::{Family, all};
use super::number::Number;
use super::summary::{Summary, table};

fn examined(is_wanted: impl Fn(&str, bool) -> bool, points: usize, source: Source) -> Vec<Summary> {
    let mut families = all();
    families.retain(|family| is_wanted(&family.title(), family.is_affine()));
    families.iter().map(|family| family.examine(points, source)).collect()
}

fn total(summaries: &[Summary], count: impl Fn(&Summary) -> usize) -> usize {
    summaries.iter().map(count).sum()
}

#[test]
fn wrong_partials_are_caught_in_each_family() {
    // Most results of the extremes are not finite.
    let is_usual = |title: &str, _| !title.starts_with("extremes");
    let summaries = examined(is_usual, 20, Source::WrongPartials);
    println!("{}", table(&summaries));
    for Summary { name, violations, points, .. } in &summaries {
        assert!(2 * violations >= *points, "{name}: {violations} of {points} points");
    }
}

#[test]
fn right_bounds_keep_the_contract() {
    let is_affine = |_: &str, is_affine| is_affine;
    let summaries = examined(is_affine, 100, Source::Prototype(Bound::Running(1.0)));
    let table = table(&summaries);
    println!("{table}");
    assert_eq!(total(&summaries, |summary| summary.violations), 0, "{table}");
    let rejected = total(&summaries, |summary| summary.rejected);
    let points = total(&summaries, |summary| summary.points);
    assert!(5 * rejected <= points, "{rejected} of {points} rejected\n{table}");
}

/// A loop at a fixed point that repels. Its state is a power of two, so that all of its steps are
/// exact on the tape. In a closed form powers of 2³⁰ to 2⁸⁰ times the state cancel.
#[derive(Clone, Copy)]
enum Repelling {
    Scalar,
    Saddle,
    Consensus,
}

impl Family for Repelling {
    fn name(&self) -> String {
        let name = match self {
            Repelling::Scalar => "scalar",
            Repelling::Saddle => "saddle",
            Repelling::Consensus => "consensus",
        };
        format!("repelling {name}")
    }

    fn inputs(&self) -> usize {
        3
    }

    fn trips(&self) -> &'static [usize] {
        &[100]
    }

    fn start<T: Number>(&self, x: &[T]) -> Vec<T> {
        match self {
            Repelling::Scalar => vec![x[1]],
            _ => vec![x[1], x[1]],
        }
    }

    fn step<T: Number>(&self, x: &[T], z: &[T], _: usize) -> Vec<T> {
        match self {
            Repelling::Scalar => vec![z[0] * x[0] + x[2]],
            Repelling::Saddle => vec![z[0] * x[0] + z[1] * x[2], z[1]],
            Repelling::Consensus => {
                let shift = x[2] * (z[1] - z[0]);
                vec![z[0] + shift, z[1] - shift]
            }
        }
    }

    fn point(&self, trips: usize, random: &mut Random) -> Vec<f64> {
        let amplified = random.uniform(30.0, 80.0);
        let ratio = 2f64.powf(amplified / trips as f64);
        let state = random.pick(&[0.25, 0.5, 1.0, 2.0, 4.0]);
        let last = match self {
            Repelling::Scalar => state * (1.0 - ratio),
            Repelling::Saddle => 1.0 - ratio,
            Repelling::Consensus => (1.0 - ratio) / 2.0,
        };
        vec![ratio, state, last]
    }
}

#[test]
fn bounds_that_are_too_small_are_caught() {
    let few = 2f64.powi(-10);
    for family in [Repelling::Scalar, Repelling::Saddle, Repelling::Consensus] {
        let of = |bound| family.examine(400, Source::Prototype(bound));
        // A running bound adds up the errors of all operations: it is 2⁷ to 2¹¹ times the error.
        let right = [of(Bound::Tight(1.0)), of(Bound::Running(1.0))];
        let wrong = [of(Bound::Tight(few)), of(Bound::Running(few * few))];
        println!("{}{}", table(&right), table(&wrong));
        let name = family.name();
        assert_eq!(total(&right, |summary| summary.violations), 0, "{name}");
        for Summary { violations, points, .. } in wrong {
            assert!(violations >= 10, "{name}: {violations} of {points} points");
        }
    }
}
