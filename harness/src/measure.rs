//! Measures one configuration: bare primal, gradient by hand, tape and kernels
//! side by side, then what compiling costs.

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use phigrad::{Numerics, Recorded, Tape, Var};
use serde::Serialize;

use crate::compiled::{
    break_even, failed, gradient_kernel, record, record_first_tier, record_open,
    require_kernel_calls,
};
use crate::error::Error;
use crate::programs::Program;
use crate::timing::{Contender, Plan, RoundDone, interleave, median};
use crate::vectors::Case;
use crate::verify::require_right;

/// The first calls on the tape are profiled, some of them again after the first one that is not, and
/// cost more than those that follow.
const PROFILED_CALLS: usize = 200;

/// Compiling is timed again on fresh recordings only if it is cheaper than this.
const CHEAP_COMPILE: Duration = Duration::from_millis(200);

/// A measurement; the field names are the keys of the JSON file.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Name of the program.
    pub benchmark: String,
    /// Number of the configuration.
    pub config: usize,
    /// Number of inputs.
    pub inputs: usize,
    /// Events of the trace.
    pub trace_events: usize,
    /// The objective by hand.
    pub primal_ns: f64,
    /// The gradient by hand.
    pub hand_ns: f64,
    /// The gradient by the tape: recording and sweep.
    pub tape_ns: f64,
    /// The gradient by the kernel.
    pub kernel_ns: f64,
    /// The gradient by a kernel made without φ-calculus.
    pub kernel_no_phi_ns: f64,
    /// Value and gradient by the kernel.
    pub kernel_value_ns: f64,
    /// The first gradient of a fresh recording.
    pub first_call_ns: f64,
    /// Compiling the gradient kernel.
    pub compile_ns: f64,
    /// Calls after which compiling the first tier has paid; none if its kernel saves nothing.
    pub break_even_calls: Option<f64>,
    /// Size of the gradient kernel.
    pub kernel_bytes: usize,
    /// Largest deviation of value and gradient of tape and kernel.
    pub max_rel_err: f64,
    /// The gradient by a kernel of the first tier.
    pub first_tier_ns: f64,
    /// Compiling that.
    pub first_tier_compile_ns: f64,
    /// Calls after which compiling the optimised kernel alone has paid.
    pub optimised_break_even_calls: Option<f64>,
}

/// Verifies, then measures the program `P`.
pub fn measure<P: Program>(case: &Case, plan: &Plan, round_done: RoundDone) -> Result<Row, Error> {
    let subject = case.subject();
    let deviations = require_right::<P>(case)?;

    let x = case.input.as_slice();
    let program: Arc<P> = Arc::new(case.program()?);
    let fresh = || {
        let program = Arc::clone(&program);
        record(move |x| program.objective(x), Numerics::default())
    };
    let mut out = vec![0.0; x.len()];

    let on_tape = fresh();
    for _ in 0..PROFILED_CALLS {
        on_tape.grad_into(x, &mut out).map_err(failed(&subject, "run the tape"))?;
    }
    let in_kernel = fresh();
    in_kernel.grad_into(x, &mut out).map_err(failed(&subject, "run the tape"))?;
    in_kernel.compile().map_err(failed(&subject, "compile"))?;
    let before = in_kernel.report();
    let open = {
        let program = Arc::clone(&program);
        record_open(move |x| program.objective(x))
    };
    open.grad_into(x, &mut out).map_err(failed(&subject, "run the tape"))?;
    open.compile().map_err(failed(&subject, "compile"))?;
    let open_before = open.report();
    let fresh_first = || {
        let program = Arc::clone(&program);
        record_first_tier(move |x| program.objective(x))
    };
    let first_tier = fresh_first();
    first_tier.grad_into(x, &mut out).map_err(failed(&subject, "run the tape"))?;
    first_tier.compile().map_err(failed(&subject, "compile"))?;
    let first_before = first_tier.report();

    let (mut primal_work, mut hand_work) = (program.work(), program.work());
    let mut primal = Contender::new(x, |x| {
        black_box(black_box(&*program).primal(x, &mut primal_work));
        Ok(())
    });
    let mut hand = Contender::new(x, {
        let mut out = out.clone();
        let program = &program;
        move |x| {
            black_box(&**program).hand_gradient(x, black_box(&mut out), &mut hand_work);
            Ok(())
        }
    });
    let mut tape = Contender::new(x, {
        let mut out = out.clone();
        let on_tape = &on_tape;
        move |x| on_tape.grad_into(x, black_box(&mut out))
    });
    let mut kernel = Contender::new(x, {
        let mut out = out.clone();
        let in_kernel = &in_kernel;
        move |x| in_kernel.grad_into(x, black_box(&mut out))
    });
    let mut kernel_no_phi = Contender::new(x, {
        let mut out = out.clone();
        let open = &open;
        move |x| open.grad_into(x, black_box(&mut out))
    });
    let mut kernel_first = Contender::new(x, {
        let mut out = out.clone();
        let first_tier = &first_tier;
        move |x| first_tier.grad_into(x, black_box(&mut out))
    });
    let mut kernel_value = Contender::new(x, {
        let mut out = out.clone();
        let in_kernel = &in_kernel;
        move |x| {
            black_box(in_kernel.value_and_grad_into(x, black_box(&mut out))?);
            Ok(())
        }
    });
    let contenders = &mut [
        &mut primal,
        &mut hand,
        &mut tape,
        &mut kernel,
        &mut kernel_no_phi,
        &mut kernel_first,
        &mut kernel_value,
    ];
    interleave(contenders, plan, round_done).map_err(failed(&subject, "run while measured"))?;

    // A kernel that gave calls back to the tape would have measured the tape.
    let after = in_kernel.report();
    let calls = kernel.calls() + kernel_value.calls();
    require_kernel_calls(&subject, calls, &before, &after)?;
    require_kernel_calls(&subject, kernel_no_phi.calls(), &open_before, &open.report())?;
    let first_after = first_tier.report();
    require_kernel_calls(&subject, kernel_first.calls(), &first_before, &first_after)?;

    let newest = gradient_kernel(&after, &subject)?;
    let first_tier_compile =
        gradient_kernel(&first_after, &subject)?.compile_time.as_secs_f64() * 1e9;
    let (mut compile, mut first_compile) =
        (vec![newest.compile_time.as_secs_f64() * 1e9], vec![first_tier_compile]);
    if newest.compile_time < CHEAP_COMPILE {
        for _ in 1..plan.fresh {
            compile.push(fresh_compile_ns(&fresh(), x, &subject)?);
            first_compile.push(fresh_compile_ns(&fresh_first(), x, &subject)?);
        }
    }
    let mut first_call = Vec::new();
    for _ in 0..plan.fresh {
        let program = Arc::clone(&program);
        let recorded = Tape::record(move |x: &[Var]| program.objective(x));
        first_call.push(first_call_ns(&recorded, x, &subject)?);
    }

    let (tape_ns, kernel_ns) = (tape.median_ns(), kernel.median_ns());
    let (compile_ns, first_tier_compile_ns) = (median(&compile), median(&first_compile));
    let first_tier_ns = kernel_first.median_ns();
    Ok(Row {
        benchmark: case.benchmark.clone(),
        config: case.config,
        inputs: x.len(),
        trace_events: after.trace_events,
        primal_ns: primal.median_ns(),
        hand_ns: hand.median_ns(),
        tape_ns,
        kernel_ns,
        kernel_no_phi_ns: kernel_no_phi.median_ns(),
        kernel_value_ns: kernel_value.median_ns(),
        first_call_ns: median(&first_call),
        compile_ns,
        break_even_calls: break_even(first_tier_compile_ns, tape_ns, first_tier_ns),
        kernel_bytes: newest.bytes,
        max_rel_err: deviations.tape.max(deviations.kernel_real),
        first_tier_ns,
        first_tier_compile_ns,
        optimised_break_even_calls: break_even(compile_ns, tape_ns, kernel_ns),
    })
}

/// Compiles the gradient kernel of a fresh recording.
fn fresh_compile_ns<F>(recorded: &Recorded<F>, x: &[f64], subject: &str) -> Result<f64, Error>
where
    F: Fn(&[Var]) -> Var + Send + Sync + 'static,
{
    recorded.grad(x).map_err(failed(subject, "run the tape"))?;
    recorded.compile().map_err(failed(subject, "compile"))?;
    Ok(gradient_kernel(&recorded.report(), subject)?.compile_time.as_secs_f64() * 1e9)
}

/// Asks a fresh recording for its first gradient.
fn first_call_ns<F>(recorded: &Recorded<F>, x: &[f64], subject: &str) -> Result<f64, Error>
where
    F: Fn(&[Var]) -> Var + Send + Sync + 'static,
{
    let start = Instant::now();
    let answer = recorded.grad(black_box(x));
    let elapsed = start.elapsed();
    black_box(answer.map_err(failed(subject, "run the tape"))?);
    Ok(elapsed.as_secs_f64() * 1e9)
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// A row with different numbers everywhere.
    pub fn sample_row() -> Row {
        Row {
            benchmark: "HMC".to_owned(),
            config: 2,
            inputs: 3,
            trace_events: 4000,
            primal_ns: 50.0,
            hand_ns: 60.0,
            tape_ns: 700.0,
            kernel_ns: 70.0,
            kernel_no_phi_ns: 120.0,
            kernel_value_ns: 80.0,
            first_call_ns: 9000.0,
            compile_ns: 1_000_000.0,
            break_even_calls: break_even(300_000.0, 700.0, 100.0),
            kernel_bytes: 1100,
            max_rel_err: 1e-14,
            first_tier_ns: 100.0,
            first_tier_compile_ns: 300_000.0,
            optimised_break_even_calls: break_even(1_000_000.0, 700.0, 70.0),
        }
    }

    #[test]
    fn the_row_has_the_agreed_keys_in_order() {
        let text = serde_json::to_string(&sample_row()).unwrap();
        let keys: Vec<&str> = text
            .trim_matches(['{', '}'])
            .split(',')
            .filter_map(|field| field.split(':').next().map(|key| key.trim_matches('"')))
            .collect();
        let expected = [
            "benchmark",
            "config",
            "inputs",
            "trace_events",
            "primal_ns",
            "hand_ns",
            "tape_ns",
            "kernel_ns",
            "kernel_no_phi_ns",
            "kernel_value_ns",
            "first_call_ns",
            "compile_ns",
            "break_even_calls",
            "kernel_bytes",
            "max_rel_err",
            "first_tier_ns",
            "first_tier_compile_ns",
            "optimised_break_even_calls",
        ];
        assert_eq!(keys, expected);
    }
}
