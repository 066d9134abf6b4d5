//! Plain variables that traced decisions change: flags, counters, indices, modes. Their values do
//! not multiply paths.

use phigrad::internals::Random;
use phigrad::{Tape, Var, traced};

fn share<F: Fn(&[Var]) -> Var + Copy>(name: &str, f: F, ranges: &[(f64, f64)]) -> f64 {
    let recorded = Tape::builder().background(false).hot_threshold(1).record(f);
    let reference = Tape::builder().background(false).hot_threshold(u32::MAX).record(f);
    let mut random = Random::new(7);
    let mut before = 0;
    for call in 0..2000 {
        if call == 1000 {
            before = recorded.report().kernel_calls;
        }
        let x: Vec<f64> = ranges.iter().map(|&(low, high)| random.uniform(low, high)).collect();
        let found = recorded.value_and_grad(&x).unwrap();
        let expected = reference.value_and_grad(&x).unwrap();
        assert!((found.0 - expected.0).abs() <= 1e-9 * expected.0.abs().max(1.0), "{name} {x:?}");
        for (a, b) in found.1.iter().zip(&expected.1) {
            assert!((a - b).abs() <= 1e-9 * b.abs().max(1.0), "{name} {x:?} {found:?} {expected:?}");
        }
    }
    let share = (recorded.report().kernel_calls - before) as f64 / 1000.0;
    eprintln!("{name}: {share}\n{}", recorded.report());
    share
}

#[traced]
fn thermostat(p: &[Var]) -> Var {
    let (mut x, mut on, mut cost) = (p[0], false, Var::from(0.0));
    for k in 0..90 {
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

#[traced]
fn mean_above(p: &[Var]) -> Var {
    let (mut count, mut sum) = (0, Var::from(0.0));
    for k in 0..60 {
        let y = p[0] * (f64::from(k) * 0.7).sin() + p[1] * (f64::from(k) * 0.31).cos();
        if y > p[2] {
            count += 1;
            sum += y;
        }
    }
    sum / (f64::from(count) + 1.0)
}

#[traced]
fn least(p: &[Var]) -> Var {
    let mut at = 0;
    for i in 1..p.len() {
        if p[i] < p[at] {
            at = i;
        }
    }
    p[at] * (at as f64 + 1.0)
}

#[derive(Clone, Copy, PartialEq, phigrad::Carry)]
enum Gait {
    Walk,
    Run,
    Rest,
}

#[traced]
fn gaits(p: &[Var]) -> Var {
    let (mut gait, mut energy, mut way) = (Gait::Walk, p[0], Var::from(0.0));
    for _ in 0..60 {
        gait = match gait {
            Gait::Walk if energy > p[1] => Gait::Run,
            Gait::Run if energy < p[2] => Gait::Rest,
            Gait::Rest if energy > 0.6 => Gait::Walk,
            same => same,
        };
        match gait {
            Gait::Walk => (energy, way) = (energy * 1.01, way + 0.1),
            Gait::Run => (energy, way) = (energy * 0.9, way + 0.3 * energy),
            Gait::Rest => energy = energy + 0.05,
        }
    }
    way + energy
}

#[test]
fn a_flag_needs_few_paths() {
    assert!(share("thermostat", thermostat, &[(0.0, 2.0), (0.2, 0.8), (1.0, 2.0)]) > 0.95);
}

#[test]
fn a_counter_needs_few_paths() {
    assert!(share("mean_above", mean_above, &[(0.0, 1.0); 3]) > 0.95);
}

#[test]
fn an_index_needs_few_paths() {
    assert!(share("least", least, &[(0.0, 1.0); 20]) > 0.95);
}

#[test]
fn a_mode_needs_few_paths() {
    assert!(share("gaits", gaits, &[(0.0, 1.0); 3]) > 0.95);
}
