//! The function that a call runs on the tape, and the results that the call reads off it.

use core::cell::{Cell, RefCell};

use super::error::{Error, Kind};
use super::outputs::{OutputShape, OutputWriter};
use super::sparse::SparseRequest;
use super::specialisation::Specialisation;
use crate::pipeline::Purpose;
use crate::sparse::MatrixKind;
use crate::trace::{
    Adjoints, JacobianRun, LongRun, Operand, Run, Site, Tangents, Trace, TraceError, Var,
    push_forward, sweep, sweep_from, sweep_tangents, weighted_sum,
};

/// The derivatives that a call asks for.
#[derive(Clone, Copy)]
pub(super) struct Request<'a> {
    pub(super) purpose: Purpose,
    /// The direction, if the purpose has one: a number for each active input.
    pub(super) direction: &'a [f64],
    /// The weights of a vector-Jacobian product: a number for each output.
    pub(super) weights: &'a [f64],
    /// The place for a sparse result.
    pub(super) sparse: Option<SparseRequest<'a>>,
    /// True if a kernel calls. Where the result is not finite, it exits at once: its tape calls
    /// again, so that the tape would run twice for each level of nested functions.
    pub(super) is_by_kernel: bool,
}

impl From<Purpose> for Request<'_> {
    /// A request without direction and weights.
    fn from(purpose: Purpose) -> Self {
        Request { purpose, direction: &[], weights: &[], sparse: None, is_by_kernel: false }
    }
}

impl<'a> Request<'a> {
    /// The request, with the pattern of `specialisation` if the result is sparse.
    pub(super) fn in_specialisation(self, specialisation: &'a Specialisation) -> Request<'a> {
        let known = Some(specialisation.pattern(self.purpose));
        let sparse = self.sparse.map(|sparse| SparseRequest { known, ..sparse });
        Request { sparse, ..self }
    }
}

/// The reason why a run has no output.
#[derive(Clone, Copy)]
pub(super) enum NoOutput {
    /// The function has returned an error.
    Error,
    /// The outputs have another shape than expected.
    OtherOutputs,
}

/// A function, and how the results of a call follow from its tape.
pub(super) trait Function {
    /// The number of weights, the last inactive inputs.
    fn weights(&self) -> usize;

    /// Runs it.
    fn run(&self, active: &[Var], inactive: &[Var]) -> Result<Var, NoOutput>;

    /// Writes the results of a whole run into `results`, and returns the value, or the derivative
    /// along the direction.
    fn read_whole(
        &self,
        trace: &Trace<'_>,
        request: Request<'_>,
        buffers: (&mut Adjoints, &mut Tangents),
        results: &mut [f64],
    ) -> Result<f64, Error>;

    /// The same of a run with this value and gradient, which is empty if `purpose` needs none.
    fn read_first_order(
        &self,
        purpose: Purpose,
        value: f64,
        gradient: &[f64],
        results: &mut [f64],
    ) -> f64;
}

/// Runs `function` as one that always has an output, and stores in `no_output` why it had none.
pub(super) fn run_or_nan<'a>(
    function: &'a impl Function,
    no_output: &'a Cell<Option<NoOutput>>,
) -> impl Fn(&[Var], &[Var]) -> Var + 'a {
    |active, inactive| {
        let output = function.run(active, inactive);
        no_output.set(output.err());
        output.unwrap_or(Var::from(f64::NAN))
    }
}

/// Writes the results of `run`, limited to `whole` events, into `results`, and returns the value,
/// or the derivative along the direction.
pub(super) fn read(
    function: &impl Function,
    run: &mut Run<'_>,
    request: Request<'_>,
    whole: usize,
    (adjoints, tangents): (&mut Adjoints, &mut Tangents),
    results: &mut [f64],
) -> Result<f64, Error> {
    match run {
        Run::Whole(trace) => function.read_whole(trace, request, (adjoints, tangents), results),
        Run::Long(run) if request.purpose.needs_whole_run() => Err(too_long(whole, run)),
        Run::Long(run) => {
            let gradient: &[f64] = match request.purpose.is_swept() {
                true => run.sweep(&run_or_nan(function, &Cell::new(None)), adjoints),
                false => Ok(&[][..]),
            }
            .map_err(Kind::Trace)?;
            Ok(function.read_first_order(request.purpose, run.value(), gradient, results))
        }
    }
}

/// As [`read`], of a run on a Jacobian tape. `None` if the gradient is not finite.
pub(super) fn read_jacobian(
    function: &impl Function,
    run: &JacobianRun<'_>,
    purpose: Purpose,
    adjoints: &mut Adjoints,
    results: &mut [f64],
) -> Option<f64> {
    let gradient = if purpose.is_swept() { run.sweep(adjoints) } else { &[] };
    let is_finite = gradient.iter().all(|partial| partial.is_finite());
    is_finite.then(|| function.read_first_order(purpose, run.value(), gradient, results))
}

/// The error of a long run that ought to be whole; `limit` is [`Limits::trace_events`].
///
/// [`Limits::trace_events`]: crate::Limits::trace_events
pub(super) fn too_long(limit: usize, run: &LongRun<'_>) -> Error {
    Kind::Trace(TraceError::TooLong { limit, name: "trace_events", at: run.beyond() }).into()
}

/// An error if `trace` calls an operation without second derivatives.
fn check_second_derivatives(trace: &Trace<'_>) -> Result<(), Error> {
    match trace.calls.iter().find(|call| !call.custom.is_twice_differentiable()) {
        None => Ok(()),
        Some(call) => {
            let (operation, at) = (call.custom.name().to_owned(), trace.site_of(call));
            Err(Kind::NoSecondDerivative { operation, at }.into())
        }
    }
}

/// A function of one output.
pub(super) struct Scalar<F>(pub(super) F);

impl<F: Fn(&[Var], &[Var]) -> Option<Var>> Function for Scalar<F> {
    fn weights(&self) -> usize {
        0
    }

    fn run(&self, active: &[Var], inactive: &[Var]) -> Result<Var, NoOutput> {
        self.0(active, inactive).ok_or(NoOutput::Error)
    }

    fn read_whole(
        &self,
        trace: &Trace<'_>,
        Request { purpose, direction, sparse, .. }: Request<'_>,
        (adjoints, tangents): (&mut Adjoints, &mut Tangents),
        results: &mut [f64],
    ) -> Result<f64, Error> {
        if let Some(sparse) = sparse {
            let is_hessian = purpose == Purpose::SparseHessian;
            if is_hessian {
                check_second_derivatives(trace)?;
            }
            let kind = if is_hessian { MatrixKind::Hessian } else { MatrixKind::Gradient };
            sparse.read(trace, &[trace.output], kind, (adjoints, tangents))?;
            return Ok(f64::NAN);
        }
        if purpose == Purpose::Hessian {
            check_second_derivatives(trace)?;
            let (columns, mut direction) = (trace.active, vec![0.0; trace.active]);
            for (number, row) in results.chunks_exact_mut(columns.max(1)).enumerate() {
                direction[number] = 1.0;
                push_forward(trace, &direction, tangents);
                direction[number] = 0.0;
                let products = sweep_tangents(trace, tangents).iter().map(|one| one.tangent);
                row.iter_mut().zip(products).for_each(|(to, product)| *to = product);
            }
            return Ok(f64::NAN);
        }
        if purpose.has_direction() {
            if purpose.has_reverse_sweep() {
                check_second_derivatives(trace)?;
            }
            push_forward(trace, direction, tangents);
            let derivative = tangents.of(trace.output);
            if purpose.has_reverse_sweep() {
                let products = sweep_tangents(trace, tangents).iter().map(|one| one.tangent);
                results.iter_mut().zip(products).for_each(|(to, product)| *to = product);
            }
            return Ok(derivative);
        }
        if purpose.has_reverse_sweep() {
            results.copy_from_slice(sweep(trace, adjoints));
        }
        Ok(trace.value())
    }

    fn read_first_order(
        &self,
        purpose: Purpose,
        value: f64,
        gradient: &[f64],
        results: &mut [f64],
    ) -> f64 {
        if purpose.has_reverse_sweep() {
            results.copy_from_slice(gradient);
        }
        value
    }
}

/// A function of several outputs, as the sum of these, each times a weight: the last inactive
/// inputs. The derivatives of the sum by the weights are the outputs, those by the other inputs are
/// the weights times the Jacobian.
pub(super) struct Weighted<'a, F> {
    f: F,
    /// The expected outputs; a run with others has no result.
    expected: &'a OutputShape,
    /// The outputs of the latest run.
    outputs: RefCell<OutputWriter>,
    /// The place where the function was recorded.
    at: Site,
}

impl<'a, F> Weighted<'a, F> {
    pub(super) fn new(f: F, expected: &'a OutputShape, at: Site) -> Self {
        Weighted { f, expected, outputs: RefCell::default(), at }
    }

    /// The shape of the outputs of the latest run.
    pub(super) fn shape(&self) -> OutputShape {
        self.outputs.borrow().shape()
    }

    /// Writes the Jacobian into `results`: a sweep for each row, or a derivative for each column if
    /// these are fewer.
    fn read_jacobian(
        &self,
        trace: &Trace<'_>,
        (adjoints, tangents): (&mut Adjoints, &mut Tangents),
        results: &mut [f64],
    ) {
        let (outputs, columns) = (self.outputs.borrow(), trace.active);
        if outputs.numbers.len() <= columns {
            for (row, output) in results.chunks_exact_mut(columns.max(1)).zip(&outputs.numbers) {
                row.copy_from_slice(sweep_from(trace, output.into_operand(), adjoints));
            }
            return;
        }
        let mut direction = vec![0.0; columns];
        for column in 0..columns {
            direction[column] = 1.0;
            push_forward(trace, &direction, tangents);
            direction[column] = 0.0;
            let rows = results.chunks_exact_mut(columns).zip(&outputs.numbers);
            rows.for_each(|(row, output)| row[column] = tangents.of(output.into_operand()));
        }
    }

    /// Writes what `read` gives for each output of the latest run into `results`.
    fn read_outputs(&self, results: &mut [f64], read: impl Fn(Var) -> f64) {
        let outputs = self.outputs.borrow();
        results.iter_mut().zip(&outputs.numbers).for_each(|(to, &output)| *to = read(output));
    }
}

impl<F: Fn(&[Var], &[Var], &mut OutputWriter) -> bool> Function for Weighted<'_, F> {
    fn weights(&self) -> usize {
        self.expected.count
    }

    fn run(&self, active: &[Var], inactive: &[Var]) -> Result<Var, NoOutput> {
        let (data, weights) = inactive.split_at(inactive.len() - self.expected.count);
        // Not borrowed while the function runs.
        let mut outputs = self.outputs.take();
        outputs.clear();
        let sum = match (self.f)(active, data, &mut outputs) {
            false => Err(NoOutput::Error),
            true if !outputs.is_of(self.expected) => Err(NoOutput::OtherOutputs),
            true => Ok(weighted_sum(&outputs.numbers, weights, self.at)),
        };
        self.outputs.replace(outputs);
        sum
    }

    fn read_whole(
        &self,
        trace: &Trace<'_>,
        Request { purpose, direction, sparse, .. }: Request<'_>,
        (adjoints, tangents): (&mut Adjoints, &mut Tangents),
        results: &mut [f64],
    ) -> Result<f64, Error> {
        if let Some(sparse) = sparse {
            let outputs = self.outputs.borrow();
            let kind = MatrixKind::Jacobian { outputs: outputs.numbers.len() };
            let outputs: Vec<Operand> =
                outputs.numbers.iter().map(|output| output.into_operand()).collect();
            sparse.read(trace, &outputs, kind, (adjoints, tangents))?;
            return Ok(f64::NAN);
        }
        match purpose {
            Purpose::JacobianVectorProduct => {
                push_forward(trace, direction, tangents);
                self.read_outputs(results, |output| tangents.of(output.into_operand()));
            }
            Purpose::VectorJacobianProduct => results.copy_from_slice(sweep(trace, adjoints)),
            Purpose::HessianProduct => {
                check_second_derivatives(trace)?;
                push_forward(trace, direction, tangents);
                let products = sweep_tangents(trace, tangents).iter().map(|one| one.tangent);
                results.iter_mut().zip(products).for_each(|(to, product)| *to = product);
            }
            Purpose::Jacobian => self.read_jacobian(trace, (adjoints, tangents), results),
            _ => self.read_outputs(results, |output| output.number()),
        }
        Ok(f64::NAN)
    }

    fn read_first_order(
        &self,
        purpose: Purpose,
        _: f64,
        gradient: &[f64],
        results: &mut [f64],
    ) -> f64 {
        match purpose {
            Purpose::VectorJacobianProduct => results.copy_from_slice(gradient),
            _ => self.read_outputs(results, |output| output.number()),
        }
        f64::NAN
    }
}
