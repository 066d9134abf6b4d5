//! Static state that splits paths without end: the report names the variable and its line.

use phigrad::internals::Random;
use phigrad::report::UnmergedReason;
use phigrad::{Carry, Recorded, Report, Tape, Var, traced};

#[derive(Carry)]
struct Machine {
    on: bool,
}

/// A field.
#[traced]
fn with_a_field(p: &[Var]) -> Var {
    let mut machine = Machine { on: false };
    let (mut x, mut cost) = (p[0], Var::from(0.0));
    for k in 0..60 {
        if machine.on && x > p[2] {
            machine.on = false;
        } else if !machine.on && x < p[1] {
            machine.on = true;
        }
        x = x * 0.9 + (f64::from(k) * 0.2).sin() * 0.1;
        if machine.on {
            x += 0.3;
        }
        cost += x * x;
    }
    cost
}

/// An element of an array.
#[traced]
fn with_an_element(p: &[Var]) -> Var {
    let mut mode = [false; 4];
    let mut sum = Var::from(0.0);
    for k in 0..60 {
        let y = p[0] * (k as f64 * 0.7).sin() + p[1] * (k as f64 * 0.31).cos();
        let i = k % 4;
        if y > p[2] {
            mode[i] = !mode[i];
        }
        sum += if mode[i] { y } else { y * y };
    }
    sum
}

/// An option.
#[traced]
fn with_an_option(x: &[Var]) -> Var {
    let mut best: Option<usize> = None;
    for i in 0..60 {
        if best.is_none_or(|at| x[i] * 1.01 < x[at]) {
            best = Some(i);
        }
    }
    best.map_or(x[0], |at| x[at] * 2.0)
}

/// The same as `with_a_field` with a flag that is tracked.
#[traced]
fn tracked(p: &[Var]) -> Var {
    let mut on = false;
    let (mut x, mut cost) = (p[0], Var::from(0.0));
    for k in 0..60 {
        if on && x > p[2] {
            on = false;
        } else if !on && x < p[1] {
            on = true;
        }
        x = x * 0.9 + (f64::from(k) * 0.2).sin() * 0.1;
        if on {
            x += 0.3;
        }
        cost += x * x;
    }
    cost
}

/// Static state with three values that no loop changes.
#[traced]
fn bounded(x: &[Var]) -> Var {
    let mut machine = Machine { on: false };
    if x[0] > x[1] {
        machine.on = true;
    }
    let mut sum = Var::from(0.0);
    for x in x {
        sum += if *x > 0.5 { *x } else { x * x };
    }
    if machine.on { sum } else { sum * 2.0 }
}

type Program = fn(&[Var]) -> Var;

fn report(f: Program, inputs: usize) -> Report {
    let recorded: Recorded<_> = Tape::builder().background(false).hot_threshold(u32::MAX).record(f);
    let mut random = Random::new(3);
    for _ in 0..CALLS {
        let x: Vec<f64> = (0..inputs).map(|_| random.uniform(0.0, 1.0)).collect();
        recorded.grad(&x).unwrap();
    }
    recorded.report()
}

/// The number of calls, each with other inputs.
const CALLS: usize = 100;

/// The number of the first line of this file with this text.
fn line_of(text: &str) -> u32 {
    let lines = include_str!("split_state.rs").lines();
    lines.zip(1..).find(|(line, _)| line.contains(text)).unwrap().1
}

#[test]
fn a_variable_whose_state_splits_paths_without_end_is_named_with_its_line() {
    let programs: [(Program, usize, &str, &str); 3] = [
        (with_a_field, 3, "machine.on", "let mut machine"),
        (with_an_element, 3, "mode", "let mut mode"),
        (with_an_option, 60, "best", "let mut best"),
    ];
    for (f, inputs, variable, declaration) in programs {
        let report = report(f, inputs);
        let line = line_of(declaration);
        let is_named = report.unmerged.iter().any(|region| match &region.reason {
            UnmergedReason::State { name, declared } => *name == variable && declared.line == line,
            _ => false,
        });
        assert!(is_named, "{variable} in line {line}: {report}");
        let named = format!("`{variable}` (tests/traced/split_state.rs:{line}:");
        assert!(report.to_string().contains(&named), "{named}\n{report}");
    }
}

#[test]
fn state_that_is_tracked_or_bounded_is_not_named() {
    for (f, inputs) in [(tracked as Program, 3), (bounded, 8)] {
        let report = report(f, inputs);
        assert!(report.unmerged.is_empty(), "{report}");
    }
}
