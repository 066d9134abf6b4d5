//! Runs on the tape: which tape serves a call, and with which buffers.

use core::cell::Cell;
use std::sync::{MutexGuard, PoisonError};

use super::core::Core;
use super::error::{Error, Kind};
use super::function::{Function, NoOutput, Request, read, read_jacobian, run_or_nan};
use super::specialisation::{ServedRun, Specialisation};
use crate::pipeline::{Limits, Numerics};
use crate::trace::{
    Adjoints, Detail, Inlining, Inputs, LongRun, Run, RunLimits, Tangents, Tracer, Var,
};

/// The buffers of one tape call.
#[derive(Default)]
pub(super) struct Workspace {
    tracer: Tracer,
    adjoints: Adjoints,
    tangents: Tangents,
    /// The inactive inputs with the weights of the outputs.
    inactive: Vec<f64>,
}

/// A run on the tape.
pub(super) enum TapeRun<'a> {
    /// It was kept whole, or has a Jacobian tape.
    Whole(ServedRun<'a>),
    Long(&'a LongRun<'a>),
}

impl Core {
    /// Runs `f` on the tape with this detail, reads the results off it, and calls `then`; returns
    /// the value, or the derivative along the direction if there is one.
    ///
    /// With a `specialisation`, a Jacobian tape may serve an untracked run.
    ///
    /// The buffers are kept for later calls if the whole run fits into them: those of a long run
    /// may be much larger.
    pub(super) fn on_tape(
        &self,
        f: &impl Function,
        inputs: Inputs<'_>,
        request: Request<'_>,
        (detail, specialisation): (Detail, Option<&Specialisation>),
        results: &mut [f64],
        then: impl FnOnce(TapeRun<'_>, Inputs<'_>),
    ) -> Result<f64, Error> {
        let mut workspace = self.lock_workspaces().pop().unwrap_or_default();
        let Workspace { tracer, adjoints, tangents, inactive } = &mut workspace;
        // Marks change the order in which adjoints are added up, so with exact numerics they are
        // always recorded.
        tracer.detail(match self.options.numerics {
            Numerics::Exact => detail.max(Detail::Marks),
            Numerics::Real => detail,
        });
        tracer.inline(if self.inlines { Inlining::Gradients } else { Inlining::None });
        let Limits { trace_events: whole, call_events: call, .. } = self.options.limits;
        let has_reverse_sweep = request.purpose.is_swept();
        let limits = RunLimits { whole, call, has_reverse_sweep };
        let weights = f.weights();
        let inputs = if weights == 0 {
            inputs
        } else {
            inactive.clear();
            inactive.extend_from_slice(inputs.inactive);
            inactive.extend_from_slice(request.weights);
            inactive.resize(inputs.inactive.len() + weights, 0.0);
            Inputs { inactive, ..inputs }
        };
        // The path of an untracked run is not merged, so its operations are not needed.
        if detail == Detail::Untracked
            && self.options.numerics == Numerics::Real
            && !self.inlines
            && !request.purpose.needs_whole_run()
            && let Some(specialisation) = specialisation
            && specialisation.has_jacobian_tape()
        {
            let no_output = Cell::new(None);
            let function = run_or_nan(f, &no_output);
            let run = tracer.run_jacobian(function, inputs, whole, self.created_at);
            if let Some(run) = run.map_err(Kind::Trace)? {
                let value = self
                    .check_output(no_output.get())
                    .map(|()| read_jacobian(f, &run, request.purpose, adjoints, results));
                if let Some(value) = value.transpose() {
                    if value.is_ok() {
                        then(TapeRun::Whole(ServedRun::on_jacobian(&run)), inputs);
                    }
                    self.lock_workspaces().push(workspace);
                    return value;
                }
            }
            // The run is too long, or its gradient is not finite: an event tape decides.
            specialisation.note_repeated();
        }
        let no_output = Cell::new(None);
        let mut run = tracer
            .run_within(run_or_nan(f, &no_output), inputs, limits, self.created_at)
            .map_err(Kind::Trace)?;
        let result = self
            .check_output(no_output.get())
            .and_then(|()| read(f, &mut run, request, whole, (adjoints, tangents), results));
        if result.is_ok() {
            then(
                match &run {
                    Run::Whole(trace) => TapeRun::Whole(ServedRun::on_events(trace)),
                    Run::Long(run) => TapeRun::Long(run),
                },
                inputs,
            );
        }
        if matches!(run, Run::Whole(_)) {
            self.lock_workspaces().push(workspace);
        }
        result
    }

    /// An error if a run has no output.
    fn check_output(&self, no_output: Option<NoOutput>) -> Result<(), Error> {
        match no_output {
            None => Ok(()),
            Some(NoOutput::Error) => Err(Kind::Failed.into()),
            Some(NoOutput::OtherOutputs) => Err(Kind::OtherOutputs { at: self.created_at }.into()),
        }
    }

    /// Runs `f` on the tape with marks and sites, and calls `read` with the run.
    pub(super) fn on_whole_tape<T>(
        &self,
        f: impl FnOnce(&[Var], &[Var]) -> Var,
        inputs: Inputs<'_>,
        read: impl FnOnce(&Run<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let mut workspace = self.lock_workspaces().pop().unwrap_or_default();
        workspace.tracer.detail(Detail::Marks);
        let Limits { trace_events: whole, call_events: call, .. } = self.options.limits;
        let limits = RunLimits { whole, call, has_reverse_sweep: false };
        let run = workspace.tracer.run_within(f, inputs, limits, self.created_at);
        let run = run.map_err(Kind::Trace)?;
        let result = read(&run);
        if matches!(run, Run::Whole(_)) {
            self.lock_workspaces().push(workspace);
        }
        result
    }

    fn lock_workspaces(&self) -> MutexGuard<'_, Vec<Workspace>> {
        self.workspaces.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
