//! Common loops of user programs: none of these is rejected.

use super::{Random, is_accepted, power_of_ten, routine};

/// A trip count from one to about 6,000.
const TRIPS: [f64; 9] = [33.0, 64.0, 100.0, 127.0, 300.0, 500.0, 1000.0, 2000.0, 5000.0];

/// Asserts that no call of a routine is rejected. The number of steps is the last input.
fn assert_accepted(text: &str, mut inputs: impl FnMut(&mut Random, f64) -> Vec<f64>) {
    let power = routine(text);
    let mut random = Random::new(17);
    let mut rejected = Vec::new();
    for _ in 0..400 {
        let trips = random.pick(&TRIPS);
        let mut inputs = inputs(&mut random, trips);
        inputs.push(trips);
        if !is_accepted(&power, &inputs) {
            rejected.push(inputs);
        }
    }
    assert!(rejected.is_empty(), "{} rejected, {:?}: {text}", rejected.len(), rejected[0]);
}

#[test]
fn springs_are_accepted() {
    // v -= h (k z + d v); z += h v.
    let text = "affine_power inputs 6 wrt x0 x1 x2 x3 x4 : \
        t0 = x0 | t1 = x1 | t2 = x2 | t3 = x3 | t4 = x4 | t5 = const 1.0 | \
        t6 = mul t2 t0 | t7 = neg t6 | t8 = mul t2 t1 | t9 = sub t5 t8 | \
        t10 = mul t2 t7 | t11 = add t5 t10 | t12 = mul t2 t9 | \
        advance x5 states 2 matrix t11 t12 t7 t9 offset - - start t3 t4 outputs 0";
    assert_accepted(text, |random, _| {
        let step = random.pick(&[0.5, 0.1, 1e-2, 1e-3, 1e-6]) * random.uniform(0.5, 1.0);
        let stiffness = random.uniform(0.5, 1.5) * random.pick(&[1.0, 1.0, 1e-4]);
        let damping = random.pick(&[0.0, 1e-3, 0.1, 0.9]);
        vec![stiffness, damping, step, random.uniform(0.1, 1.0), random.uniform(-1.0, 1.0)]
    });
}

#[test]
fn rotations_are_accepted() {
    let text = "affine_power inputs 5 wrt x0 x1 x2 x3 : \
        t0 = x0 | t1 = x1 | t2 = x2 | t3 = x3 | t4 = neg t1 | \
        advance x4 states 2 matrix t0 t4 t1 t0 offset - - start t2 t3 outputs 0";
    assert_accepted(text, |random, _| {
        let (angle, scale) =
            (power_of_ten(random, -6.0, 0.5), random.pick(&[1.0, 1.0, 0.9999, 0.9, 1.001]));
        let start = [random.uniform(-1.0, 1.0), random.uniform(-1.0, 1.0)];
        vec![scale * angle.cos(), scale * angle.sin(), start[0], start[1]]
    });
}

#[test]
fn annuities_are_accepted() {
    // s += c p; p *= 1 / (1 + r).
    let text = "affine_power inputs 3 wrt x0 x1 : t0 = x0 | t1 = x1 | t2 = const 1.0 | \
        t3 = add t2 t0 | t4 = div t2 t3 | t5 = const 0.0 | \
        advance x2 states 2 matrix t2 t1 - t4 offset - - start t5 t4 outputs 0";
    assert_accepted(text, |random, trips| {
        let rates = [0.0, 1e-12, 1e-6, 1e-3, 0.05, 0.5, -1e-6, -1e-4];
        let rate = random.pick(&rates) * random.uniform(0.9, 1.0);
        let rate = if trips * rate < -1.0 { 0.0 } else { rate };
        vec![rate, random.uniform(0.5, 2.0)]
    });
    // y (1 + r / 12) - c.
    let text = "affine_power inputs 4 wrt x0 x1 x2 : t0 = x0 | t1 = x1 | t2 = x2 | \
        t3 = const 12.0 | t4 = div t1 t3 | t5 = const 1.0 | t6 = add t5 t4 | t7 = neg t2 | \
        advance x3 states 1 matrix t6 offset t7 start t0 outputs 0";
    assert_accepted(text, |random, trips| {
        let rate = random.pick(&[0.0, 1e-12, 1e-3, 0.01, 0.05, -0.01]);
        let debt = random.uniform(1e3, 1e6);
        vec![debt, rate, debt / trips * random.pick(&[1.0, 0.5, 2.0])]
    });
}

#[test]
fn momentum_is_accepted() {
    // v = k v - r (c w - t); w += v.
    let text = "affine_power inputs 6 wrt x0 x1 x2 x3 x4 : \
        t0 = x0 | t1 = x1 | t2 = x2 | t3 = x3 | t4 = x4 | t5 = const 1.0 | t6 = const 0.0 | \
        t7 = mul t0 t2 | t8 = neg t7 | t9 = sub t5 t7 | t10 = mul t0 t4 | \
        advance x5 states 2 matrix t9 t1 t8 t1 offset t10 t10 start t3 t6 outputs 0";
    assert_accepted(text, |random, _| {
        let rate = random.pick(&[0.9, 0.1, 1e-3, 1e-6]) * random.uniform(0.5, 1.0);
        let (kept, curvature) = (random.uniform(0.1, 1.0), random.uniform(0.1, 1.9));
        let target = random.pick(&[0.0, 0.7, -0.3]);
        match random.below(4) {
            0 => vec![rate, kept, curvature, random.uniform(-1.0, 1.0), target],
            1 => vec![(1.0 - kept.sqrt()).powi(2) / curvature, kept, curvature, 1.0, target],
            2 => vec![rate, 0.9, curvature, target / curvature, target],
            _ => vec![rate, 0.9, 1.0, target, target],
        }
    });
}

#[test]
fn averages_of_averages_are_accepted() {
    // a += r (x - a); b += r (a - b); c += r (b - c).
    let text = "affine_power inputs 6 wrt x0 x1 x2 x3 x4 : \
        t0 = x0 | t1 = x1 | t2 = x2 | t3 = x3 | t4 = x4 | t5 = const 1.0 | t6 = sub t5 t0 | \
        t7 = mul t0 t6 | t8 = mul t0 t7 | t9 = mul t0 t0 | t10 = mul t0 t9 | \
        t11 = mul t10 t4 | t12 = mul t9 t4 | t13 = mul t0 t4 | \
        advance x5 states 3 matrix t6 t7 t8 - t6 t7 - - t6 offset t11 t12 t13 \
        start t1 t2 t3 outputs 0";
    assert_accepted(text, |random, _| {
        let rates = [0.9, 0.5, 0.1, 1e-2, 1e-4, 1e-6];
        let rate = random.pick(&rates) * random.uniform(0.9, 1.0);
        let start = random.uniform(-1.0, 1.0);
        let other = random.uniform(0.0, 1.0);
        vec![rate, start, random.pick(&[start, other]), start, random.pick(&[start, 0.5, -1.0])]
    });
}

#[test]
fn sums_with_the_index_are_accepted() {
    // s += i p; p *= r, where i p is a state of its own.
    let text = "affine_power inputs 3 wrt x0 x1 : t0 = x0 | t1 = x1 | t2 = const 1.0 | \
        t3 = const 0.0 | advance x2 states 3 matrix t2 - t2 - t0 - - t0 t0 offset - - - \
        start t3 t1 t3 outputs 0";
    assert_accepted(text, |random, trips| {
        let near: f64 = random.pick(&[1e-15, 1e-12, 1e-9, 1e-6, 1e-4, 1e-2]);
        let ratios = [0.0, 1e-8, -1e-8, 0.5, -0.5, 0.9, 0.999, -0.999, 1.0, 1.01, 0.9312345, 0.97];
        let other = random.pick(&ratios);
        let ratio = random.pick(&[other, 1.0 - near, 1.0 + near]);
        let ratio = if trips * ratio.abs().ln() > 300.0 { 0.5 } else { ratio };
        vec![ratio, random.pick(&[1.0, -0.7])]
    });
}
