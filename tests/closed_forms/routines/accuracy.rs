//! Error bounds and accepted results against multiple precision, and planted errors.

use super::exact;
use super::{Bounded, Random, is_accepted, power_of_ten, random, sign, violation};
use phigrad::internals::numeric::{AffineMap, AffinePower, Instruction, Program, Slot, Trips};

/// The statistics of a number of calls.
#[derive(Debug, Default)]
struct Tally {
    calls: usize,
    accepted: usize,
    results: usize,
    violations: Vec<String>,
}

impl Tally {
    /// Checks all results of a call, each changed by `plant`.
    fn check(
        &mut self,
        power: &AffinePower,
        inputs: &[f64],
        plant: impl Fn(usize, Bounded) -> Bounded,
    ) {
        let Some(exact) = exact::results(power, inputs) else {
            assert!(!is_accepted(power, inputs), "division by zero {inputs:?}: {power}");
            return;
        };
        self.calls += 1;
        self.accepted += usize::from(is_accepted(power, inputs));
        for (index, result, scale) in power.bounded_results(inputs) {
            self.results += 1;
            if let Some(violation) = violation(plant(index, result), scale, &exact[index - 1]) {
                self.violations.push(format!("result {index}, {violation}, {inputs:?}: {power}"));
            }
        }
    }

    fn assert_none(&self) {
        let first = self.violations.first();
        assert!(first.is_none(), "{} of {}: {first:?}", self.violations.len(), self.results);
        assert!(self.results > self.calls && self.accepted * 5 > self.calls, "{self:?}");
    }
}

/// The routine of `states` states whose inputs are all its coefficients and its starts.
fn plain(states: usize, trips: u64) -> AffinePower {
    let inputs = (states * (states + 2)) as u32;
    let mut program = Program::new(inputs);
    let load = |input| program.push(Instruction::Input(input)).unwrap();
    let slots: Vec<Slot> = (0..inputs).map(load).collect();
    let (matrix, vectors) = slots.split_at(states * states);
    let (offset, start) = vectors.split_at(states);
    let all = |slots: &[Slot]| slots.iter().copied().map(Some).collect();
    let map = AffineMap::new(all(matrix), all(offset)).unwrap();
    let trips = Trips::Constant(trips);
    AffinePower::new(program, map, start.to_vec(), trips, vec![0], (0..inputs).collect()).unwrap()
}

/// Coefficients of maps of several kinds: dense, unipotent, rotations, weakly coupled.
fn coefficients(random: &mut Random, states: usize) -> Vec<f64> {
    let kind = random.below(4);
    let scale = random.pick(&[1.0, 0.9999, 0.99, 0.9, 0.5, 1.0001, 1.01]);
    let angle = power_of_ten(random, -6.0, 0.4);
    let mut all = Vec::new();
    for (i, j) in (0..states).flat_map(|i| (0..states).map(move |j| (i, j))) {
        let entry = match kind {
            0 => random.uniform(-1.0, 1.0) / (states as f64).sqrt(),
            1 if i == j => 1.0,
            1 if j == i + 1 => random.uniform(-1.0, 1.0),
            2 if i == j => {
                if i < 2 && states > 1 {
                    angle.cos()
                } else {
                    0.9
                }
            }
            2 if i + j == 1 => {
                if i < j {
                    -angle.sin()
                } else {
                    angle.sin()
                }
            }
            3 if i == j => 1.0 - power_of_ten(random, -9.0, 0.0),
            3 => sign(random) * power_of_ten(random, -9.0, -1.0),
            _ => 0.0,
        };
        all.push(entry * scale);
    }
    all.extend(
        (0..states).map(|_| random.pick(&[0.0, 1.0, -0.3, 1e-8]) * random.uniform(0.5, 1.0)),
    );
    all.extend((0..states).map(|_| sign(random) * power_of_ten(random, -6.0, 3.0)));
    all
}

const TRIPS: [u64; 13] = [0, 1, 2, 3, 33, 64, 100, 127, 1000, 1023, 5000, 100_000, 1_000_000];

fn check_plain(seed: u64, counts: [usize; 6], plant: impl Fn(usize, Bounded) -> Bounded) -> Tally {
    let mut random = Random::new(seed);
    let mut tally = Tally::default();
    for (states, count) in (1..).zip(counts) {
        for _ in 0..count {
            let power = plain(states, random.pick(&TRIPS));
            tally.check(&power, &coefficients(&mut random, states), &plant);
        }
    }
    tally
}

fn check_random(seed: u64, count: usize) -> Tally {
    let mut random = Random::new(seed);
    let mut tally = Tally::default();
    for _ in 0..count {
        let states = random.pick(&[1, 1, 2, 2, 3, 4]);
        let power = random::routine(&mut random, states);
        let inputs = random::inputs(&mut random, power.inputs());
        tally.check(&power, &inputs, |_, result| result);
    }
    tally
}

#[test]
fn bounds_hold_and_accepted_results_are_accurate() {
    check_plain(1, [400, 150, 60, 12, 3, 2], |_, result| result).assert_none();
}

#[test]
fn bounds_hold_through_coefficient_programs() {
    check_random(2, 1000).assert_none();
}

#[test]
fn extremes_are_accurate_or_rejected() {
    let numbers = [0.0, 5e-324, 1e-320, 1e-310, 1e-300, 1e-250, 1e-160, 1.0, 1e200, -1e308];
    let ratios = [2.0, 0.5, 1.0, 1.5, 1.01, 0.9, -2.0, 1e-3, 1e3, 1e100, 1e-100, 1.0 + 1e-9, -1.0];
    let mut random = Random::new(3);
    let mut tally = Tally::default();
    for _ in 0..300 {
        let mut any = || random.pick(&numbers);
        let (offset, start, tiny) = (any(), any(), [any(), any(), any(), any()]);
        let ratio = random.pick(&ratios);
        let trips = random.pick(&TRIPS).min(5000);
        tally.check(&plain(1, trips), &[ratio, offset, start], |_, result| result);
        if tiny.iter().all(|number| number.abs() <= 1.0) && random.below(4) == 0 {
            let inputs =
                [ratio, tiny[0], tiny[1], random.pick(&ratios), 0.0, tiny[2], start, tiny[3]];
            tally.check(&plain(2, trips), &inputs, |_, result| result);
        }
    }
    let first = tally.violations.first();
    assert!(first.is_none(), "{first:?}");
}

#[test]
#[ignore = "a minute"]
fn bounds_hold_for_many() {
    check_plain(11, [6000, 3000, 1500, 300, 60, 60], |_, result| result).assert_none();
    check_random(12, 20_000).assert_none();
}

#[test]
fn planted_errors_are_caught() {
    let counts = [60, 20, 0, 0, 0, 0];
    let small = |_, result: Bounded| Bounded { bound: result.bound / 1024.0, ..result };
    assert!(!check_plain(4, counts, small).violations.is_empty());
    let wrong_partial = |index, result: Bounded| {
        let factor = if index == 3 { 1.0 + 1e-14 } else { 1.0 };
        Bounded { hi: result.hi * factor, ..result }
    };
    assert!(!check_plain(4, counts, wrong_partial).violations.is_empty());
    assert!(check_plain(4, counts, |_, result| result).violations.is_empty());
    // A bound that is too large hides the error, but not that the result is accepted.
    let exact = exact::Exact::new(1.0);
    let off = Bounded::new((1.0 + 8.0 * f64::EPSILON, 0.0), f64::EPSILON);
    assert!(violation(off, 0.0, &exact).is_some());
    let unseen = Bounded { bound: 9.0 * f64::EPSILON, ..off };
    assert!(violation(unseen, 0.0, &exact).is_none());
    assert!(violation(Bounded::exact(f64::NAN), 0.0, &exact).is_some());
    assert!(violation(Bounded::ONE, 0.0, &exact).is_none());
}
