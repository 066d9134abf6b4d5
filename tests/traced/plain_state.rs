//! Plain variables that traced decisions change: flags, counters, indices, modes. Their values do
//! not multiply paths: kernels serve nearly all calls after a thousand, with the derivatives of the
//! same code without the attribute.
#![allow(clippy::needless_range_loop, clippy::assign_op_pattern)] // As people write.

use phigrad::internals::Random;
use phigrad::{Carry, Recorded, Tape, Var};

/// The number of calls, and those of them that kernels may not serve.
const CALLS: usize = 2000;
const FIRST: usize = 1000;

fn check(
    name: &str,
    annotated: fn(&[Var]) -> Var,
    plain: fn(&[Var]) -> Var,
    low: &[f64],
    high: &[f64],
) {
    let builder = Tape::builder().background(false);
    let recorded: Recorded<_> = builder.hot_threshold(1).record(annotated);
    let reference = builder.hot_threshold(u32::MAX).record(plain);
    let (mut random, mut before) = (Random::new(7), 0);
    for call in 0..CALLS {
        if call == FIRST {
            before = recorded.report().kernel_calls;
        }
        let x: Vec<f64> = low.iter().zip(high).map(|(&a, &b)| random.uniform(a, b)).collect();
        let (value, gradient) = recorded.value_and_grad(&x).unwrap();
        let (expected, derivatives) = reference.value_and_grad(&x).unwrap();
        let pairs = gradient.iter().zip(&derivatives).chain([(&value, &expected)]);
        for (found, expected) in pairs {
            let error = (found - expected).abs() / expected.abs().max(1.0);
            assert!(error <= 1e-10, "{name} at {x:?}: {found} is not {expected}");
        }
    }
    let report = recorded.report();
    let served = (report.kernel_calls - before) as f64 / (CALLS - FIRST) as f64;
    assert!(served >= 0.95, "{name}: kernels serve {served} of the later calls\n{report}");
}

#[derive(Clone, Copy, PartialEq, Carry)]
enum Gait {
    Walk,
    Run,
    Rest,
}

#[derive(Clone, Copy, PartialEq, Eq, Carry)]
enum Light {
    Red,
    Green,
    Yellow,
}

impl Light {
    fn next(self) -> Light {
        match self {
            Light::Red => Light::Green,
            Light::Green => Light::Yellow,
            Light::Yellow => Light::Red,
        }
    }
}

/// Programs in two copies, of which one is annotated, and the ranges of their inputs.
macro_rules! served {
    ($($name:ident in $low:expr, $high:expr => { $($item:item)+ })*) => {
        $(
            mod $name {
                mod plain {
                    #[allow(unused_imports)]
                    use crate::plain_state::{Gait, Light};
                    use phigrad::Var;
                    $($item)+
                }
                mod annotated {
                    #[allow(unused_imports)]
                    use crate::plain_state::{Gait, Light};
                    use phigrad::Var;
                    $(#[phigrad::traced] $item)+
                }

                #[test]
                fn is_served() {
                    super::check(stringify!($name), annotated::run, plain::run, &$low, &$high);
                }
            }
        )*
    };
}

served! {
    thermostat in [0.0, 0.2, 1.0], [2.0, 0.8, 2.0] => {
        pub fn run(p: &[Var]) -> Var {
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
    }
    mean_above in [0.0; 3], [1.0; 3] => {
        pub fn run(p: &[Var]) -> Var {
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
    }
    least in [0.0; 20], [1.0; 20] => {
        pub fn run(p: &[Var]) -> Var {
            let mut at = 0;
            for i in 1..p.len() {
                if p[i] < p[at] {
                    at = i;
                }
            }
            p[at] * (at as f64 + 1.0)
        }
    }
    gaits in [0.0; 3], [1.0; 3] => {
        pub fn run(p: &[Var]) -> Var {
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
    }
    two_flags in [0.0; 4], [1.0; 4] => {
        pub fn run(p: &[Var]) -> Var {
            let (mut x, mut heats, mut cools, mut cost) = (p[0] * 3.0, false, false, Var::from(0.0));
            for k in 0..80 {
                heats = if heats { x < p[2] + 1.0 } else { x < p[1] };
                if cools && x < p[3] + 1.2 {
                    cools = false;
                } else if !cools && x > p[3] + 1.7 {
                    cools = true;
                }
                x = x * 0.95 + (f64::from(k) * 0.3).cos() * 0.2 + 0.1;
                if heats && !cools {
                    x += 0.2;
                } else if cools {
                    x -= 0.25;
                    cost += 0.1 * x;
                }
                cost += x * x * 0.1;
            }
            cost
        }
    }
    latch in [-1.0; 3], [1.0; 3] => {
        pub fn run(p: &[Var]) -> Var {
            let mut alarm = false;
            let mut sum = Var::from(0.0);
            let mut k = 0;
            while k < 50 {
                let y = p[0] * (k as f64 * 0.4).sin() + p[1] * (k as f64 * 0.9).cos();
                alarm = alarm || y > p[2] + 1.0;
                sum += if alarm { y * 0.5 } else { y * y };
                k += 1;
            }
            if alarm { -sum } else { sum }
        }
    }
    toggles in [-1.0; 3], [1.0; 3] => {
        pub fn run(p: &[Var]) -> Var {
            let mut up = true;
            let mut sum = Var::from(0.0);
            for k in 0..60 {
                let y = p[0] * (f64::from(k) * 0.7).sin() + p[1];
                if y < p[2] {
                    up = !up;
                }
                sum = if up { sum + y } else { sum - y * y };
            }
            sum
        }
    }
    longest_run in [-1.0; 3], [1.0; 3] => {
        pub fn run(p: &[Var]) -> Var {
            let (mut run, mut longest) = (0usize, 0usize);
            let mut sum = Var::from(1.0);
            for k in 0..60 {
                let y = p[0] * (f64::from(k) * 0.3).sin() + p[1] * (f64::from(k) * 0.11).cos() - p[2] * 0.2;
                if y > 0.0 {
                    run += 1;
                    sum += y;
                } else {
                    run = 0;
                }
                if run > longest {
                    longest = run;
                }
            }
            sum * longest as f64
        }
    }
    third_hit in [0.0; 3], [1.0; 3] => {
        pub fn run(p: &[Var]) -> Var {
            let mut hits = 0;
            let mut y = p[0];
            for k in 0..100 {
                y = y * 0.9 + p[1] * (f64::from(k) * 0.5).sin();
                if y > p[2] {
                    hits += 1;
                }
                if hits == 3 {
                    break;
                }
            }
            y * y
        }
    }
    bounded_newton in [0.5, 0.1], [30.0, 0.9] => {
        pub fn run(p: &[Var]) -> Var {
            let (mut x, mut n) = (p[0], 0);
            while (x * x - p[0]).abs() > p[1] * 0.01 && n < 40 {
                x = x - (x * x - p[0]) / (2.0 * x);
                n += 1;
            }
            if n > 4 { x * 2.0 } else { x }
        }
    }
    weighted in [-1.0; 3], [1.0; 3] => {
        pub fn run(p: &[Var]) -> Var {
            let (mut level, mut sum) = (0i32, Var::from(0.0));
            for k in 0..40 {
                let y = p[0] * (f64::from(k) * 0.6).sin() + p[1] * (f64::from(k) * 0.23).cos();
                if y > p[2] && level < 3 {
                    level += 1;
                } else if y < -p[2] && level > -3 {
                    level -= 1;
                }
                sum += y * f64::from(level);
            }
            sum
        }
    }
    countdown in [-1.0; 3], [1.0; 3] => {
        pub fn run(p: &[Var]) -> Var {
            let mut wait = 0u32;
            let mut sum = Var::from(0.0);
            for k in 0..70 {
                let y = p[0] + p[1] * (f64::from(k) * 0.4).sin();
                if wait > 0 {
                    wait -= 1;
                    sum += 0.1;
                } else if y > p[2] {
                    wait = 5;
                    sum += y;
                }
            }
            sum * p[0]
        }
    }
    two_least in [0.0; 12], [1.0; 12] => {
        pub fn run(p: &[Var]) -> Var {
            let (mut first, mut second) = if p[0] < p[1] { (0, 1) } else { (1, 0) };
            for i in 2..p.len() {
                if p[i] < p[first] {
                    second = first;
                    first = i;
                } else if p[i] < p[second] {
                    second = i;
                }
            }
            p[first] * 2.0 - p[second] * p[second]
        }
    }
    greatest_pair in [0.0; 8], [1.0; 8] => {
        pub fn run(p: &[Var]) -> Var {
            let (mut a, mut b) = (0, 1);
            let mut most = p[0] * p[1];
            for i in 0..p.len() {
                for j in i + 1..p.len() {
                    let product = p[i] - p[j] * 0.5;
                    if product > most {
                        (a, b) = (i, j);
                        most = product;
                    }
                }
            }
            most * p[a] + p[b].sin()
        }
    }
    last_crossing in [-1.0; 16], [1.0; 16] => {
        pub fn run(x: &[Var]) -> Var {
            let mut last = 0;
            for i in 1..x.len() {
                if x[i - 1] < 0.0 && x[i] >= 0.0 {
                    last = i;
                }
            }
            if last == 0 {
                return x[0] * 3.0;
            }
            x[last] * x[last] + x[0]
        }
    }
    greatest_by_while in [0.0; 12], [1.0; 12] => {
        pub fn run(x: &[Var]) -> Var {
            let (mut at, mut i) = (0, 1);
            while i < x.len() {
                if x[i] > x[at] {
                    at = i;
                }
                i += 1;
            }
            let before = if at > 0 { x[at - 1] } else { x[at] };
            x[at] + before * before
        }
    }
    lights in [0.0; 3], [1.0; 3] => {
        pub fn run(p: &[Var]) -> Var {
            let mut light = Light::Red;
            let mut since = 0;
            let mut queue = p[0];
            let mut cost = Var::from(0.0);
            for k in 0..60 {
                queue += p[1] * (1.0 + (f64::from(k) * 0.3).sin()) * 0.2;
                if light == Light::Green {
                    queue = queue * 0.8;
                }
                let switches = match light {
                    Light::Red => queue > p[2] + 0.5,
                    Light::Green => queue < p[2] * 0.5,
                    Light::Yellow => since >= 2,
                };
                if switches {
                    light = light.next();
                    since = 0;
                } else {
                    since += 1;
                }
                cost += queue * queue;
            }
            cost
        }
    }
    numbered_modes in [0.0; 3], [1.0; 3] => {
        pub fn run(p: &[Var]) -> Var {
            let mut mode: u8 = 0;
            let mut x = p[0];
            let mut sum = Var::from(0.0);
            for _ in 0..60 {
                match mode {
                    0 if x > p[1] => mode = 1,
                    1 if x < p[2] * 0.5 => mode = 2,
                    2 => mode = 0,
                    _ => {}
                }
                x = match mode {
                    0 => x * 1.05 + 0.01,
                    1 => x * 0.9,
                    _ => x + 0.1,
                };
                sum += x;
            }
            sum
        }
    }
    stepped_modes in [0.0; 3], [1.0; 3] => {
        fn step(gait: Gait, energy: Var, p: &[Var]) -> Gait {
            match gait {
                Gait::Walk if energy > p[1] => Gait::Run,
                Gait::Run if energy < p[2] => Gait::Rest,
                Gait::Rest if energy > 0.6 => Gait::Walk,
                same => same,
            }
        }

        pub fn run(p: &[Var]) -> Var {
            let mut gait = Gait::Rest;
            let mut energy = p[0];
            let mut way = Var::from(0.0);
            for _ in 0..40 {
                gait = step(gait, energy, p);
                if gait == Gait::Run {
                    energy = energy * 0.9;
                    way += energy;
                } else if matches!(gait, Gait::Walk) {
                    energy = energy * 1.02;
                    way += 0.1;
                } else {
                    energy += 0.06;
                }
            }
            way * energy
        }
    }
    chosen_modes in [0.0; 3], [1.0; 3] => {
        pub fn run(p: &[Var]) -> Var {
            let mut gait = if p[0] > p[1] { Gait::Run } else { Gait::Walk };
            let mut x = p[0];
            for _ in 0..50 {
                let next = if x > p[1] + 0.3 {
                    Gait::Rest
                } else if x < p[2] * 0.3 {
                    Gait::Run
                } else {
                    gait
                };
                gait = next;
                if let Gait::Run = gait {
                    x = x * 1.1 + 0.02;
                } else {
                    x = x * 0.93;
                }
            }
            x
        }
    }
    none_yet in [0.0; 10], [1.0; 10] => {
        pub fn run(x: &[Var]) -> Var {
            let mut at = usize::MAX;
            for i in 0..x.len() {
                if x[i] > 0.8 && (at == usize::MAX || x[i] < x[at]) {
                    at = i;
                }
            }
            if at == usize::MAX { x[0] } else { x[at] * 2.0 }
        }
    }
    packed in [0.0; 15], [1.0; 15] => {
        pub fn run(x: &[Var]) -> Var {
            let (mut at, mut above) = (0, 0);
            let mut sum = Var::from(0.0);
            for a in 0..5 {
                for b in 0..=a {
                    if x[at] > 0.5 {
                        above += 1;
                        sum += x[at] * (a + b) as f64;
                    }
                    at += 1;
                }
            }
            if above > 7 { sum } else { sum * sum }
        }
    }
    returns_early in [0.0; 3], [1.0; 3] => {
        pub fn run(p: &[Var]) -> Var {
            let mut misses = 0;
            let mut x = p[0];
            for k in 0..50 {
                x = x * 0.9 + p[1] * (f64::from(k) * 0.7).sin() * 0.3;
                if x < p[2] * 0.3 {
                    misses += 1;
                    if misses > 5 {
                        return x - p[1];
                    }
                    continue;
                }
                x += 0.01;
            }
            x * f64::from(misses)
        }
    }
}
