//! Random programs with flags, counters, an index and a mode: a machine that is annotated runs a
//! random list of instructions. Kernels, the tape and plain numbers agree.

use phigrad::check::same;
use phigrad::internals::Random;
use phigrad::{Numerics, Tape, Var};

/// An instruction: a number of its kind, and its operands.
#[derive(Clone, Copy, Debug)]
pub struct Instruction {
    kind: u32,
    input: usize,
    bound: f64,
    number: i32,
}

#[derive(Clone, Debug)]
pub struct Program {
    instructions: Vec<Instruction>,
    rounds: usize,
}

const KINDS: u32 = 22;
const INPUTS: usize = 4;

fn random_program(random: &mut Random) -> Program {
    let count = 3 + random.below(6);
    let instruction = |random: &mut Random| Instruction {
        kind: random.below(KINDS as usize) as u32,
        input: random.below(INPUTS),
        bound: random.uniform(-1.0, 1.0),
        number: random.below(4) as i32,
    };
    let instructions = (0..count).map(|_| instruction(random)).collect();
    Program { instructions, rounds: 1 + random.below(4) }
}

macro_rules! machine {
    ($module:ident $(, $attribute:meta)?) => {
        #[allow(warnings, clippy::all)]
        mod $module {
            use super::{INPUTS, Program};
            use crate::soundness::num::Num;

            #[derive(Clone, Copy, PartialEq, phigrad::Carry)]
            enum Mode { Idle, Up, Down, Off }

            $(#[$attribute])?
            fn turned<S: Num>(mode: Mode, y: S, bound: f64) -> Mode {
                match mode {
                    Mode::Idle if y > bound => Mode::Up,
                    Mode::Up if y < bound => Mode::Down,
                    Mode::Down => Mode::Idle,
                    same => same,
                }
            }

            $(#[$attribute])?
            pub fn run<S: Num>(program: &Program, x: &[S]) -> S {
                let (mut on, mut armed) = (false, true);
                let (mut n, mut m, mut at) = (0i32, 2u8, 1usize);
                let mut mode = Mode::Idle;
                let mut y = x[0];
                for round in 0..program.rounds {
                    let mut steps = 0;
                    for op in &program.instructions {
                        let (v, bound) = (x[op.input], op.bound);
                        steps += 1;
                        match op.kind {
                            0 => if v > bound { on = !on; },
                            1 => on = v + y > bound,
                            2 => if on && y > bound { armed = false; } else if !armed { on = true; },
                            3 => if y < bound { n += op.number; } else { n -= 1; },
                            4 => y = y * 0.75 + v * f64::from(n) * 0.1,
                            5 => if n > op.number { y = y + 0.5; n = 0; },
                            6 => if x[op.input] > x[at] { at = op.input; },
                            7 => y = y + x[at] * 0.5,
                            8 => mode = turned(mode, y, bound),
                            9 => match mode { Mode::Up => y = y * 0.5, Mode::Down => y = y + v, Mode::Off => return y * 2.0, _ => {} },
                            10 => { m = if v < bound { m.wrapping_add(100) } else { m }; if m > 200 { y = -y; } }
                            11 => { if armed && v < bound { continue; } y = y + 0.25; }
                            12 => if on && v > bound { break; },
                            13 => (on, armed) = if y > bound { (armed, on) } else { (on, armed) },
                            14 => { let mut left = n; while y > bound && left > 0 { y = y * 0.8 - 0.1; left -= 1; } if left == 0 { on = true; } }
                            15 => at = match mode { Mode::Idle => at, Mode::Up => (at + 1) % INPUTS, _ => op.input },
                            16 => if mode == Mode::Idle && y > bound { mode = Mode::Off; } else if on { mode = Mode::Up; },
                            17 => { let hot = y > bound && on; y = if hot { y * 0.9 } else { y + 0.05 }; n = n.max(i32::from(hot)); }
                            18 => for k in 0..n.clamp(0, 3) { y = y + x[k as usize] * 0.125; if y > 3.0 { n -= 1; } },
                            19 => n = if y > bound { n + 1 } else if armed { n } else { -n },
                            20 => on = !armed,
                            _ => if at > op.number as usize || v > bound { y = y * y * 0.25; steps += 2; },
                        }
                    }
                    y = y + f64::from(steps) * 0.01;
                    if n > 40 { return y; }
                }
                y + if on { 1.0 } else { 0.0 } + f64::from(n) + x[3] * at as f64 + f64::from(m) + if mode == Mode::Up { 0.5 } else { 0.0 }
            }
        }
    };
}

machine!(annotated, phigrad::traced);
machine!(unannotated);

#[test]
fn random_machines_agree_with_plain_numbers_and_the_tape() {
    let random = &mut Random::new(20);
    let mut served = 0;
    for number in 0..120 {
        let program = random_program(random);
        let point = |random: &mut Random| {
            let ties = random.chance(0.1);
            let number = |random: &mut Random| {
                let any = random.uniform(-1.5, 1.5);
                if ties { (any * 2.0).round() * 0.5 } else { any }
            };
            (0..INPUTS).map(|_| number(random)).collect::<Vec<f64>>()
        };
        let numerics = if number % 3 == 0 { Numerics::Exact } else { Numerics::Real };
        let builder = Tape::builder().numerics(numerics).background(false);
        let run = |x: &[Var]| annotated::run(&program, x);
        let reference = builder.hot_threshold(u32::MAX).record(|x| unannotated::run(&program, x));
        let recorded = builder.hot_threshold(10).record(run);
        for call in 0..250 {
            let x = point(random);
            let (value, gradient) = recorded.value_and_grad(&x).unwrap();
            let plain = unannotated::run(&program, &x);
            let (_, derivatives) = reference.value_and_grad(&x).unwrap();
            let is_equal = match numerics {
                Numerics::Exact => same(value, plain),
                _ => (value - plain).abs() <= 1e-10 * plain.abs().max(1.0),
            };
            assert!(
                is_equal,
                "{number}, call {call}: {value} is not {plain} at {x:?}\n{program:?}"
            );
            for (found, expected) in gradient.iter().zip(&derivatives) {
                let error = (found - expected).abs() / expected.abs().max(1.0);
                assert!(
                    error < 1e-9,
                    "{number}, call {call}: {gradient:?} is not {derivatives:?} at {x:?}\n{program:?}"
                );
            }
        }
        let report = recorded.report();
        let refused = report.refusals.iter().any(|r| format!("{r:?}").contains("Divergent"));
        assert!(!refused, "{number}: {report}\n{program:?}");
        served += report.kernel_calls;
    }
    assert!(served > 120 * 250 / 2, "{served} calls by kernels");
}
