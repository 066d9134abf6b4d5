//! `trips`: what compiling loops costs as their trip counts grow, stage by stage.
//! Code must not grow with the number of iterations once a loop is rolled.

use std::hint::black_box;
use std::io::Write;
use std::panic::Location;
use std::time::{Duration, Instant};

use phigrad::internals::diff::{Wanted, reverse};
use phigrad::internals::loops::{RerollLimits, reroll};
use phigrad::internals::merge::{MergeLimits, MergedTraces};
use phigrad::internals::ssa::{Folding, simplify};
use phigrad::internals::trace::{Inputs, Tracer};
use phigrad::{Tape, Var};
use serde::Serialize;

use crate::accuracy::deviation;
use crate::cli::TripsArgs;
use crate::commands::run::calls;
use crate::compiled::{break_even, failed, first_tier, gradient_kernel, require_kernel_calls};
use crate::error::Error;
use crate::json::JsonFile;
use crate::progress;
use crate::table::{number, time, write_table};
use crate::timing::{Contender, Plan, interleave, median};
use crate::verify::TOLERANCE;

/// Numbers of iterations; the first is too small to be rolled.
const ITERATIONS: [usize; 4] = [10, 1_000, 100_000, 1_000_000];
const PLAN: Plan = Plan { rounds: 11, sample: Duration::from_millis(2), fresh: 3 };

/// A loop of so many iterations.
struct Loop {
    name: &'static str,
    /// The number of active inputs that so many iterations read, besides two others.
    active: fn(usize) -> usize,
    /// The number of inactive inputs that they read.
    data: fn(usize) -> usize,
    /// More iterations take the tape too long.
    most: usize,
    run: fn(usize, &[Var], &[Var]) -> Var,
}

const LOOPS: [Loop; 5] = [
    Loop { name: "table", active: |_| 0, data: |_| 0, most: usize::MAX, run: table },
    Loop { name: "inactive", active: |_| 0, data: |count| count, most: usize::MAX, run: inactive },
    Loop { name: "active", active: |count| count, data: |_| 0, most: usize::MAX, run: active },
    Loop { name: "nested", active: |_| 0, data: |_| 0, most: usize::MAX, run: nested },
    Loop { name: "descent", active: |_| 0, data: |count| 2 * count, most: 1_000, run: descent },
];

/// The number with this index in a table of constants.
fn constant(index: usize) -> f64 {
    (index as f64 * 0.61).sin()
}

fn table(iterations: usize, x: &[Var], _: &[Var]) -> Var {
    (0..iterations).fold(x[0], |state, i| (state * x[1] + constant(i)).sin())
}

fn inactive(_: usize, x: &[Var], data: &[Var]) -> Var {
    data.iter().fold(x[0], |state, &term| (state * x[1] + term).cos())
}

fn active(_: usize, x: &[Var], _: &[Var]) -> Var {
    x[2..].iter().fold(x[0], |state, &term| (state * x[1] + term).cos())
}

/// Ten iterations inside, which are not worth a loop of their own.
fn nested(iterations: usize, x: &[Var], _: &[Var]) -> Var {
    let inner = 10;
    (0..iterations / inner).fold(x[0], |state, i| {
        let row = (0..inner).fold(state, |row, j| (row * x[1] + constant(j)).sin());
        state * 0.5 + row * constant(i)
    })
}

/// A hundred steps of gradient descent on y ~ w·x over so many points, which are inputs. Its kernel
/// goes through them once.
fn descent(points: usize, x: &[Var], data: &[Var]) -> Var {
    let (xs, ys) = data.split_at(points);
    (0..100).fold(x[0], |w, _| {
        let terms = xs.iter().zip(ys).map(|(&x, &y)| (w * x - y) * x);
        w - 0.1 * x[1] * terms.sum::<Var>() / points as f64
    })
}

/// A measurement; the field names are the keys of the JSON file.
#[derive(Clone, Debug, Serialize)]
struct Row {
    program: &'static str,
    iterations: usize,
    events: usize,
    /// Merging the trace and making its graph.
    lift_ns: f64,
    reroll_ns: f64,
    /// Merging and rerolling, for each event.
    roll_ns_per_event: f64,
    /// Differentiating what was rolled.
    differentiate_ns: f64,
    /// From the derivative with loops to native code.
    native_ns: f64,
    /// All from the graph to the kernel.
    compile_ns: f64,
    /// Nodes of the gradient graph.
    nodes: usize,
    /// Code alone; tables of constants grow with what they hold.
    code_bytes: usize,
    constant_bytes: usize,
    kernel_ns_per_iteration: f64,
    tape_ns_per_iteration: f64,
    /// The kernel of the first tier.
    first_tier_ns_per_iteration: f64,
    first_tier_compile_ns: f64,
    break_even_calls: Option<f64>,
    optimised_break_even_calls: Option<f64>,
}

/// Measures all programs at all numbers of iterations.
pub fn trips(args: &TripsArgs, out: &mut dyn Write) -> Result<(), Error> {
    let json = args.json.as_deref().map(JsonFile::open).transpose()?;
    let bar = progress::bar((LOOPS.len() * ITERATIONS.len()) as u64);
    let mut rows = Vec::new();
    for program in &LOOPS {
        for iterations in
            ITERATIONS.into_iter().filter(|&count| count <= args.most.min(program.most))
        {
            bar.set_message(format!("{} {iterations}", program.name));
            rows.push(measure(program, iterations)?);
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    if let Some(json) = json {
        json.write(&rows)?;
    }
    write_rows(out, &rows)
}

fn measure(program: &Loop, iterations: usize) -> Result<Row, Error> {
    let subject = format!("{} of {iterations} iterations", program.name);
    let data: Vec<f64> = (0..(program.data)(iterations)).map(constant).collect();
    let mut x = vec![0.3, 0.7];
    x.extend((0..(program.active)(iterations)).map(constant));
    let run = program.run;
    let stages = stages(program, iterations, &x, &data, &subject)?;

    let builder = || Tape::builder().hot_threshold(u32::MAX).background(false);
    let fresh = || builder().record_with(move |x: &[Var], data: &[Var]| run(iterations, x, data));
    let (on_tape, in_kernel) = (fresh(), fresh());
    let in_first = first_tier(Tape::builder())
        .record_with(move |x: &[Var], data: &[Var]| run(iterations, x, data));
    in_first.grad(&x, &data).map_err(failed(&subject, "run the tape"))?;
    in_first.compile().map_err(failed(&subject, "compile"))?;
    let first_compile = gradient_kernel(&in_first.report(), &subject)?.compile_time;
    let expected = on_tape.grad(&x, &data).map_err(failed(&subject, "run the tape"))?;
    in_kernel.grad(&x, &data).map_err(failed(&subject, "run the tape"))?;
    in_kernel.compile().map_err(failed(&subject, "compile"))?;
    let before = in_kernel.report();
    let kernel = gradient_kernel(&before, &subject)?;
    let (bytes, code_bytes, compile) = (kernel.bytes, kernel.code_bytes, kernel.compile_time);
    let got = in_kernel.grad(&x, &data).map_err(failed(&subject, "run the kernel"))?;
    let off = deviation(&got, &expected);
    if off > TOLERANCE {
        let finding = format!("the kernel deviates from the tape by {off:.1e}");
        return Err(Error::Inaccurate { subject, finding });
    }
    let zeros = || vec![0.0; x.len()];
    let (mut tape_out, mut kernel_out, mut first_out) = (zeros(), zeros(), zeros());
    let mut tape = Contender::new(&x, |x| on_tape.grad_into(x, &data, black_box(&mut tape_out)));
    let mut kernel =
        Contender::new(&x, |x| in_kernel.grad_into(x, &data, black_box(&mut kernel_out)));
    let mut first = Contender::new(&x, |x| in_first.grad_into(x, &data, black_box(&mut first_out)));
    interleave(&mut [&mut tape, &mut kernel, &mut first], &PLAN, &|| {})
        .map_err(failed(&subject, "run while measured"))?;
    let after = in_kernel.report();
    require_kernel_calls(&subject, kernel.calls() + 1, &before, &after)?;
    let each = |all: f64| all / iterations as f64;
    let (compile_ns, first_tier_compile_ns) =
        (compile.as_secs_f64() * 1e9, first_compile.as_secs_f64() * 1e9);
    let (tape_ns, kernel_ns, first_ns) = (tape.median_ns(), kernel.median_ns(), first.median_ns());
    Ok(Row {
        program: program.name,
        iterations,
        events: stages.events,
        lift_ns: median(&stages.lift),
        reroll_ns: median(&stages.reroll),
        roll_ns_per_event: (median(&stages.lift) + median(&stages.reroll))
            / stages.events.max(1) as f64,
        differentiate_ns: median(&stages.differentiate),
        native_ns: median(&stages.native),
        compile_ns,
        nodes: stages.nodes,
        code_bytes,
        constant_bytes: bytes - code_bytes,
        kernel_ns_per_iteration: each(kernel_ns),
        tape_ns_per_iteration: each(tape_ns),
        first_tier_ns_per_iteration: each(first_ns),
        first_tier_compile_ns,
        break_even_calls: break_even(first_tier_compile_ns, tape_ns, first_ns),
        optimised_break_even_calls: break_even(compile_ns, tape_ns, kernel_ns),
    })
}

#[derive(Default)]
struct Stages {
    events: usize,
    nodes: usize,
    lift: Vec<f64>,
    reroll: Vec<f64>,
    differentiate: Vec<f64>,
    native: Vec<f64>,
}

/// Goes through the stages that a recorded function goes through, with a clock.
fn stages(
    program: &Loop,
    iterations: usize,
    x: &[f64],
    data: &[f64],
    subject: &str,
) -> Result<Stages, Error> {
    let limits = MergeLimits { paths: 1, nodes: usize::MAX };
    let unfit = |what: String| Error::Inaccurate { subject: subject.to_owned(), finding: what };
    let mut tracer = Tracer::default();
    let inputs = Inputs { active: x, inactive: data };
    let trace = tracer
        .run(|x, data| (program.run)(iterations, x, data), inputs, 1 << 24, Location::caller())
        .map_err(|error| unfit(error.to_string()))?;
    let mut stages = Stages { events: trace.events.len(), ..Stages::default() };
    for _ in 0..PLAN.fresh {
        let start = Instant::now();
        let mut traces = MergedTraces::new(x.len(), data.len());
        traces.merge(&trace, limits).map_err(|error| unfit(error.to_string()))?;
        let graph = traces.compact();
        stages.lift.push(start.elapsed().as_secs_f64() * 1e9);
        let start = Instant::now();
        let rolled = reroll(graph, RerollLimits::default());
        stages.reroll.push(start.elapsed().as_secs_f64() * 1e9);
        let start = Instant::now();
        let gradient = reverse(&simplify(&rolled, Folding::Real), Wanted::Gradient, Folding::Real);
        stages.differentiate.push(start.elapsed().as_secs_f64() * 1e9);
        let start = Instant::now();
        let kernel = phigrad::internals::jit::compile(&gradient);
        stages.native.push(start.elapsed().as_secs_f64() * 1e9);
        kernel.map_err(|error| unfit(error.to_string()))?;
        stages.nodes = gradient.nodes.len();
    }
    Ok(stages)
}

fn write_rows(out: &mut dyn Write, rows: &[Row]) -> Result<(), Error> {
    let header = [
        "program",
        "iterations",
        "events",
        "lift",
        "reroll",
        "roll/event",
        "diff",
        "native",
        "compile",
        "nodes",
        "code",
        "constants",
        "kernel/iter",
        "tape/kernel",
        "break-even",
        "first tier/iter",
        "compile",
        "break-even",
    ];
    let cells = |row: &Row| {
        vec![
            row.program.to_owned(),
            row.iterations.to_string(),
            row.events.to_string(),
            time(row.lift_ns),
            time(row.reroll_ns),
            time(row.roll_ns_per_event),
            time(row.differentiate_ns),
            time(row.native_ns),
            time(row.compile_ns),
            row.nodes.to_string(),
            row.code_bytes.to_string(),
            row.constant_bytes.to_string(),
            time(row.kernel_ns_per_iteration),
            number(row.tape_ns_per_iteration / row.kernel_ns_per_iteration),
            calls(row.optimised_break_even_calls),
            time(row.first_tier_ns_per_iteration),
            time(row.first_tier_compile_ns),
            calls(row.break_even_calls),
        ]
    };
    write_table(out, &header, &rows.iter().map(cells).collect::<Vec<_>>())?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_program_has_a_line_for_each_number_of_iterations() {
        let mut out = Vec::new();
        trips(&TripsArgs { json: None, most: 10 }, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text.lines().count(), 1 + LOOPS.len(), "{text}");
        assert!(LOOPS.iter().all(|program| text.contains(program.name)), "{text}");
    }
}
