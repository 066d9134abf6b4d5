//! `closed`: linear loops, whose closed forms cost next to nothing, against
//! gradients written by hand that go through the loops.

use std::hint::black_box;
use std::io::Write;
use std::time::{Duration, Instant};

use phigrad::{Limits, Recorded, Tape, Var};
use serde::Serialize;

use crate::accuracy::deviation;
use crate::cli::ClosedArgs;
use crate::compiled::{failed, gradient_kernel, require_kernel_calls};
use crate::error::Error;
use crate::json::JsonFile;
use crate::progress;
use crate::table::{number, time, write_table};
use crate::timing::{Contender, Plan, RoundDone, interleave};

/// The kernel and the loop may deviate by this much for each step, and the root
/// of the steps counts: it is the loop that rounds so often.
const TOLERANCE: f64 = 1e-14;
const PLAN: Plan = Plan { rounds: 11, sample: Duration::from_millis(20), fresh: 1 };

/// A loop with its gradient by hand.
struct Linear {
    name: &'static str,
    at: &'static [f64],
    run: fn(&[Var], usize) -> Var,
    by_hand: fn(&[f64], usize, &mut Scratch, &mut [f64]),
}

/// The values of the forward pass that the gradients by hand save.
#[derive(Default)]
struct Scratch {
    first: Vec<f64>,
    second: Vec<f64>,
}

const LOOPS: [Linear; 3] = [
    Linear {
        name: "geometric",
        at: &[0.999_999, 2.0],
        run: |x, steps| {
            let mut y = x[1];
            for _ in 0..steps {
                y *= x[0];
            }
            y
        },
        by_hand: |x, steps, scratch, gradient| {
            let mut y = x[1];
            scratch.first.clear();
            for _ in 0..steps {
                scratch.first.push(y);
                y *= x[0];
            }
            let (mut adjoint, mut by_ratio) = (1.0, 0.0);
            for &y in scratch.first.iter().rev() {
                by_ratio += adjoint * y;
                adjoint *= x[0];
            }
            gradient.copy_from_slice(&[by_ratio, adjoint]);
        },
    },
    Linear {
        name: "affine",
        at: &[0.999_999, 2.0, 1e-6],
        run: |x, steps| {
            let mut y = x[1];
            for _ in 0..steps {
                y = x[0] * y + x[2];
            }
            y
        },
        by_hand: |x, steps, scratch, gradient| {
            let mut y = x[1];
            scratch.first.clear();
            for _ in 0..steps {
                scratch.first.push(y);
                y = x[0] * y + x[2];
            }
            let (mut adjoint, mut by_ratio, mut by_addend) = (1.0, 0.0, 0.0);
            for &y in scratch.first.iter().rev() {
                by_ratio += adjoint * y;
                by_addend += adjoint;
                adjoint *= x[0];
            }
            gradient.copy_from_slice(&[by_ratio, adjoint, by_addend]);
        },
    },
    // A spring with damping: position and speed.
    Linear {
        name: "coupled",
        at: &[1.5, 1e-3, 1e-4, 1.0, 0.0],
        run: |x, steps| {
            let (stiffness, damping, step) = (x[0], x[1], x[2]);
            let (mut place, mut speed) = (x[3], x[4]);
            for _ in 0..steps {
                speed -= step * (stiffness * place + damping * speed);
                place += step * speed;
            }
            place
        },
        by_hand: |x, steps, scratch, gradient| {
            let (stiffness, damping, step) = (x[0], x[1], x[2]);
            let (mut place, mut speed) = (x[3], x[4]);
            scratch.first.clear();
            scratch.second.clear();
            for _ in 0..steps {
                scratch.first.push(place);
                scratch.second.push(speed);
                speed -= step * (stiffness * place + damping * speed);
                place += step * speed;
            }
            let (mut of_place, mut of_speed) = (1.0, 0.0);
            let mut by = [0.0; 3];
            for (&place, &speed) in scratch.first.iter().zip(&scratch.second).rev() {
                let force = stiffness * place + damping * speed;
                by[2] += of_place * (speed - step * force);
                of_speed += step * of_place;
                by[2] -= of_speed * force;
                let of_force = -step * of_speed;
                by[0] += of_force * place;
                by[1] += of_force * speed;
                of_place += of_force * stiffness;
                of_speed += of_force * damping;
            }
            gradient.copy_from_slice(&[by[0], by[1], by[2], of_place, of_speed]);
        },
    },
];

/// A measurement; the field names are the keys of the JSON file.
#[derive(Clone, Debug, Serialize)]
struct Row {
    name: &'static str,
    steps: usize,
    hand_ns: f64,
    kernel_ns: f64,
    speedup: f64,
    first_call_ns: f64,
    compile_ns: f64,
    kernel_bytes: usize,
    deviation: f64,
}

/// Measures all loops; fails if a gradient deviates.
pub fn closed(args: &ClosedArgs, out: &mut dyn Write) -> Result<(), Error> {
    let json = args.json.as_deref().map(JsonFile::open).transpose()?;
    let bar = progress::bar(LOOPS.len() as u64 * u64::from(PLAN.rounds));
    let mut rows = Vec::with_capacity(LOOPS.len());
    for linear in &LOOPS {
        bar.set_message(linear.name);
        rows.push(measure(linear, args.steps, &|| bar.inc(1))?);
    }
    bar.finish_and_clear();
    if let Some(json) = json {
        json.write(&rows)?;
    }
    write_rows(out, &rows)
}

/// Records `linear`, with limits that let all steps through.
fn record(linear: &Linear, steps: usize) -> Recorded<impl Fn(&[Var]) -> Var + use<>> {
    // The coupled loop has eight operations in each step.
    let mut limits = Limits::default();
    limits.trace_events = limits.trace_events.max(10 * steps);
    limits.call_events = limits.call_events.max(limits.trace_events);
    limits.nodes = limits.nodes.max(10 * steps);
    let run = linear.run;
    let builder = Tape::builder().hot_threshold(u32::MAX).background(false);
    builder.limits(limits).record(move |x: &[Var]| run(x, steps))
}

fn measure(linear: &Linear, steps: usize, round_done: RoundDone) -> Result<Row, Error> {
    let subject = format!("{} loop", linear.name);
    let recorded = record(linear, steps);
    let (mut gradient, mut by_hand) = (vec![0.0; linear.at.len()], vec![0.0; linear.at.len()]);
    let start = Instant::now();
    recorded.grad_into(linear.at, &mut gradient).map_err(failed(&subject, "run the tape"))?;
    let first_call_ns = start.elapsed().as_secs_f64() * 1e9;
    let start = Instant::now();
    recorded.compile().map_err(failed(&subject, "compile"))?;
    let compile_ns = start.elapsed().as_secs_f64() * 1e9;
    let before = recorded.report();
    let kernel_bytes = gradient_kernel(&before, &subject)?.bytes;
    recorded.grad_into(linear.at, &mut gradient).map_err(failed(&subject, "run the kernel"))?;
    let mut scratch = Scratch::default();
    (linear.by_hand)(linear.at, steps, &mut scratch, &mut by_hand);
    let off = deviation(&gradient, &by_hand);
    if off > TOLERANCE * steps as f64 {
        let finding = format!("the kernel deviates from the loop by hand by {off:.1e}");
        return Err(Error::Inaccurate { subject, finding });
    }
    let mut hand = Contender::new(linear.at, |x| {
        (linear.by_hand)(x, steps, &mut scratch, black_box(&mut by_hand));
        Ok(())
    });
    let mut kernel = Contender::new(linear.at, |x| recorded.grad_into(x, black_box(&mut gradient)));
    interleave(&mut [&mut hand, &mut kernel], &PLAN, round_done)
        .map_err(failed(&subject, "run while measured"))?;
    let after = recorded.report();
    require_kernel_calls(&subject, kernel.calls() + 1, &before, &after)?;
    let (hand_ns, kernel_ns) = (hand.median_ns(), kernel.median_ns());
    Ok(Row {
        name: linear.name,
        steps,
        hand_ns,
        kernel_ns,
        speedup: hand_ns / kernel_ns,
        first_call_ns,
        compile_ns,
        kernel_bytes,
        deviation: off,
    })
}

fn write_rows(out: &mut dyn Write, rows: &[Row]) -> Result<(), Error> {
    let header = [
        "loop",
        "steps",
        "by hand",
        "kernel",
        "speedup",
        "first call",
        "compile",
        "bytes",
        "deviation",
    ];
    let cells = |row: &Row| {
        vec![
            row.name.to_owned(),
            row.steps.to_string(),
            time(row.hand_ns),
            time(row.kernel_ns),
            number(row.speedup),
            time(row.first_call_ns),
            time(row.compile_ns),
            row.kernel_bytes.to_string(),
            format!("{:.1e}", row.deviation),
        ]
    };
    write_table(out, &header, &rows.iter().map(cells).collect::<Vec<_>>())?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_agree_with_the_loops_by_hand() {
        for linear in &LOOPS {
            let recorded = record(linear, 1000);
            let mut by_hand = vec![0.0; linear.at.len()];
            (linear.by_hand)(linear.at, 1000, &mut Scratch::default(), &mut by_hand);
            let on_tape = recorded.grad(linear.at).unwrap();
            assert!(deviation(&on_tape, &by_hand) < 1e-11, "{}", linear.name);
            recorded.compile().unwrap();
            let in_kernel = recorded.grad(linear.at).unwrap();
            assert!(deviation(&in_kernel, &by_hand) < 1e-11, "{}", linear.name);
        }
    }
}
