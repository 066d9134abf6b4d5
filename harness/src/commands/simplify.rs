//! `simplify`: what simplification of segments costs, and what formulas as users
//! write them gain or lose by it.

use std::hint::black_box;
use std::io::Write;
use std::panic::Location;
use std::time::{Duration, Instant};

use phigrad::Var;
use phigrad::internals::Tuning;
use phigrad::internals::diff::{Wanted, reverse};
use phigrad::internals::jit::{Kernel, compile};
use phigrad::internals::loops::{RerollLimits, reroll};
use phigrad::internals::merge::{MergeLimits, MergedTraces};
use phigrad::internals::simplify::{SimplifyLimits, Stage, simplify_segments};
use phigrad::internals::soi::divide;
use phigrad::internals::ssa::{Folding, Graph, eliminate_dead_code, simplify};
use phigrad::internals::trace::{Inputs, Tracer};
use serde::Serialize;

use crate::cli::{Selection, SimplifyArgs};
use crate::compiled::failed;
use crate::error::Error;
use crate::json::JsonFile;
use crate::progress;
use crate::table::{number, time, write_table};
use crate::timing::{Contender, Plan, RoundDone, interleave};
use crate::vectors;

/// The best of so many counts: the work is the same each time.
const REPETITIONS: usize = 20;
/// They are repeated for at least so long: of short ones that many are over before a processor
/// that was idle is at its speed.
const WARM: Duration = Duration::from_millis(20);
const PLAN: Plan = Plan { rounds: 21, sample: Duration::from_millis(2), fresh: 1 };

/// A formula as a user writes it.
struct Formula {
    name: &'static str,
    at: &'static [f64],
    run: fn(&[Var]) -> Var,
}

const FORMULAS: &[Formula] = &[
    Formula { name: "ln(1 + e^x)", at: &[0.7], run: |x| (x[0].exp() + 1.0).ln() },
    Formula {
        name: "logistic loss",
        at: &[0.7, -0.3],
        run: |x| -(1.0 / (1.0 + (-(x[0] * x[1])).exp())).ln(),
    },
    Formula { name: "sigmoid", at: &[0.7], run: |x| 1.0 / (1.0 + (-x[0]).exp()) },
    Formula { name: "ln(e^x + e^y)", at: &[0.7, 0.2], run: |x| (x[0].exp() + x[1].exp()).ln() },
    Formula {
        name: "ln(e^x + e^y + e^z)",
        at: &[0.7, 0.2, -0.4],
        run: |x| (x[0].exp() + x[1].exp() + x[2].exp()).ln(),
    },
    Formula {
        name: "ln(sum of 8 e^x)",
        at: &[0.7, 0.2, -0.4, 1.1, 0.3, 0.9, -1.2, 0.5],
        run: |x| x.iter().map(|x| x.exp()).sum::<Var>().ln(),
    },
    Formula {
        name: "sqrt(x^2 + y^2)",
        at: &[3.0, 4.1],
        run: |x| (x[0] * x[0] + x[1] * x[1]).sqrt(),
    },
    Formula {
        name: "x/|x|",
        at: &[3.0, 4.1],
        run: |x| {
            let norm = (x[0] * x[0] + x[1] * x[1]).sqrt();
            x[0] / norm + x[1] / norm * 2.0
        },
    },
    Formula {
        name: "(a^2 - b^2)/(a - b)",
        at: &[3.0, 2.9],
        run: |x| (x[0] * x[0] - x[1] * x[1]) / (x[0] - x[1]),
    },
    Formula { name: "e^x - 1", at: &[1e-3], run: |x| x[0].exp() - 1.0 },
    Formula { name: "ln(1 + x)", at: &[1e-3], run: |x| (x[0] + 1.0).ln() },
    Formula { name: "x^3 x^2", at: &[1.1], run: |x| x[0].powi(3) * x[0].powi(2) },
    Formula {
        name: "y^1.5/y",
        at: &[1.1],
        run: |x| (x[0] * x[0] + 1.0).powf(1.5) / (x[0] * x[0] + 1.0),
    },
];

/// A measurement; the field names are the keys of the JSON file.
#[derive(Clone, Debug, Serialize)]
struct Row {
    program: String,
    /// Nodes of the gradient graph.
    nodes: usize,
    segments: usize,
    /// Segments that became e-graphs, and those with a better form.
    tried: usize,
    improved: usize,
    most_iterations: usize,
    incomplete: usize,
    simplify_ns: f64,
    /// Nodes of the segments that became e-graphs times their iterations.
    work: usize,
    ns_per_node_and_iteration: f64,
    native_ns: f64,
    /// Without simplification, over with it; of formulas only.
    gradient_gain: Option<f64>,
    value_and_gradient_gain: Option<f64>,
}

/// Measures formulas and benchmark programs.
pub fn simplification(args: &SimplifyArgs, out: &mut dyn Write) -> Result<(), Error> {
    let json = args.json.as_deref().map(JsonFile::open).transpose()?;
    let is_wanted = |name: &str| match &args.only {
        Some(only) => name.to_lowercase().starts_with(&only.to_lowercase()),
        None => true,
    };
    let programs = Selection::default().resolve()?;
    let bar =
        progress::bar((FORMULAS.len() * 2 * PLAN.rounds as usize + programs.len() + 1) as u64);
    let mut rows = Vec::new();
    for formula in FORMULAS.iter().filter(|formula| is_wanted(formula.name)) {
        bar.set_message(formula.name);
        let graph = traced(formula.name, formula.run, formula.at)?;
        let mut row = row(formula.name.to_owned(), &graph)?;
        let gains = gains(formula, &|| bar.inc(1))?;
        (row.gradient_gain, row.value_and_gradient_gain) = (Some(gains.0), Some(gains.1));
        rows.push(row);
    }
    if is_wanted(MANY) {
        bar.set_message(MANY);
        rows.push(row(MANY.to_owned(), &traced(MANY, many, &MANY_AT)?)?);
    }
    let cases = vectors::load()?;
    for (entry, config) in programs.into_iter().filter(|(entry, _)| is_wanted(entry.name)) {
        let case = vectors::find(&cases, entry.name, config)?;
        bar.set_message(case.subject());
        rows.push(row(case.subject(), &(entry.graph)(case)?)?);
        bar.inc(1);
    }
    bar.finish_and_clear();
    if let Some(json) = json {
        json.write(&rows)?;
    }
    write_rows(out, &rows)
}

const MANY: &str = "all, 8 times";
const MANY_AT: [f64; 8] = [0.7, 0.2, -0.4, 1.1, 0.3, 0.9, -1.2, 0.5];

/// All formulas at several points each.
fn many(x: &[Var]) -> Var {
    let mut sum = Var::from(0.0);
    for shift in 0..8 {
        let mut at: Vec<Var> = x.to_vec();
        at.rotate_left(shift);
        for formula in FORMULAS {
            let base = at.iter().zip(formula.at).map(|(&x, &at)| x * 1e-3 + at);
            sum += (formula.run)(&base.collect::<Vec<_>>());
        }
    }
    sum
}

/// The graph of `run`, as recorded at `x`.
pub fn traced(subject: &str, run: impl Fn(&[Var]) -> Var, x: &[f64]) -> Result<Graph, Error> {
    let unfit = |what: String| Error::Inaccurate { subject: subject.to_owned(), finding: what };
    let inputs = Inputs { active: x, inactive: &[] };
    let mut tracer = Tracer::default();
    let trace = tracer
        .run(|x, _| run(x), inputs, 1 << 24, Location::caller())
        .map_err(|error| unfit(error.to_string()))?;
    let mut traces = MergedTraces::new(x.len(), 0);
    let limits = MergeLimits { paths: 1, nodes: usize::MAX };
    traces.merge(&trace, limits).map_err(|error| unfit(error.to_string()))?;
    Ok(traces.graph().as_ref().clone())
}

/// The shortest time of one run, and what the last one came to.
fn shortest<T>(mut run: impl FnMut() -> Result<T, Error>) -> Result<(f64, T), Error> {
    let (begin, mut shortest, mut count) = (Instant::now(), Duration::MAX, 0);
    loop {
        let start = Instant::now();
        let made = run()?;
        shortest = shortest.min(start.elapsed());
        count += 1;
        if count >= REPETITIONS && begin.elapsed() >= WARM {
            return Ok((shortest.as_secs_f64() * 1e9, made));
        }
    }
}

fn row(program: String, recorded: &Graph) -> Result<Row, Error> {
    let rolled = simplify(&reroll(recorded, RerollLimits::default()), Folding::Real);
    let gradient = eliminate_dead_code(&reverse(&rolled, Wanted::Gradient, Folding::Real));
    let (simplify_ns, (segments, simplified)) = shortest(|| {
        let segments = divide(&gradient, Tuning::default().simplified);
        let simplified =
            simplify_segments(&gradient, &segments, Stage::Final, SimplifyLimits::DEFAULT);
        Ok((segments.list.len(), simplified))
    })?;
    // By itself: it would leave little of the other's code and data in the caches.
    let (native_ns, _) = shortest(|| native(&program, &simplified.graph))?;
    let runs = simplified.runs;
    let work = runs.iter().map(|run| run.nodes * run.iterations).sum();
    Ok(Row {
        program,
        nodes: gradient.nodes.len(),
        segments,
        tried: runs.len(),
        improved: runs.iter().filter(|run| run.improved).count(),
        most_iterations: runs.iter().map(|run| run.iterations).max().unwrap_or(0),
        incomplete: runs.iter().filter(|run| !run.complete).count(),
        simplify_ns,
        work,
        ns_per_node_and_iteration: simplify_ns / work as f64,
        native_ns,
        gradient_gain: None,
        value_and_gradient_gain: None,
    })
}

/// The speedup, at best of all rounds, of kernels of `formula` with
/// simplification: gradients alone, and with the value.
fn gains(formula: &Formula, round_done: RoundDone) -> Result<(f64, f64), Error> {
    let recorded = simplify(&traced(formula.name, formula.run, formula.at)?, Folding::Real);
    let gain = |wanted| {
        let without = eliminate_dead_code(&reverse(&recorded, wanted, Folding::Real));
        let (segments, limits) =
            (divide(&without, Tuning::default().simplified), SimplifyLimits::DEFAULT);
        let with = simplify_segments(&without, &segments, Stage::Final, limits).graph;
        let kernels = [native(formula.name, &with)?, native(formula.name, &without)?];
        let mut contenders = kernels.each_ref().map(|kernel| {
            let (mut scratch, mut outputs) = (Vec::new(), vec![0.0; kernel.outputs()]);
            Contender::new(formula.at, move |x| {
                // A formula without comparisons and of this length cannot be refused.
                let _ = kernel.run(x, &[], &mut scratch, black_box(&mut outputs));
                Ok(())
            })
        });
        interleave(&mut contenders.each_mut(), &PLAN, round_done)
            .map_err(failed(formula.name, "run while measured"))?;
        let [with, without] = contenders.map(|contender| contender.best_ns());
        Ok::<f64, Error>(without / with)
    };
    Ok((gain(Wanted::Gradient)?, gain(Wanted::GradientAndValue)?))
}

fn native(subject: &str, graph: &Graph) -> Result<Kernel, Error> {
    compile(graph).map_err(|error| Error::Inaccurate {
        subject: subject.to_owned(),
        finding: error.to_string(),
    })
}

fn write_rows(out: &mut dyn Write, rows: &[Row]) -> Result<(), Error> {
    let header = [
        "program",
        "nodes",
        "segments",
        "tried",
        "improved",
        "iterations",
        "incomplete",
        "simplify",
        "work",
        "each",
        "native",
        "gradient",
        "with value",
    ];
    let gain = |gain: Option<f64>| gain.map_or_else(|| "-".to_owned(), number);
    let cells = |row: &Row| {
        vec![
            row.program.clone(),
            row.nodes.to_string(),
            row.segments.to_string(),
            row.tried.to_string(),
            row.improved.to_string(),
            row.most_iterations.to_string(),
            row.incomplete.to_string(),
            time(row.simplify_ns),
            row.work.to_string(),
            if row.work == 0 { "-".to_owned() } else { time(row.ns_per_node_and_iteration) },
            time(row.native_ns),
            gain(row.gradient_gain),
            gain(row.value_and_gradient_gain),
        ]
    };
    write_table(out, &header, &rows.iter().map(cells).collect::<Vec<_>>())?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formulas_become_graphs_and_rows() {
        let graph = traced("all", many, &MANY_AT).unwrap();
        let row = row("all".to_owned(), &graph).unwrap();
        assert!(row.improved > 0 && row.work > 0 && row.tried <= row.segments, "{row:?}");
        let mut out = Vec::new();
        write_rows(&mut out, &[row]).unwrap();
        assert_eq!(String::from_utf8(out).unwrap().lines().count(), 2);
    }
}
