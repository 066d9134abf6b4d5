//! The inputs and results of a batch: many calls with inputs of one length.

#[cfg(feature = "rayon")]
use core::ops::Range;

use crate::pipeline::InvariantInputs;
use crate::runtime::error::{Error, Kind};
use crate::trace::Inputs;

/// The inputs of a batch: an input of its own for each element, or one that all share.
///
/// A slice, array or vector becomes [`Rows::Each`].
///
/// # Examples
///
/// ```
/// use phigrad::{Rows, Tape, Var};
///
/// let f = Tape::record_with(|x: &[Var], data: &[Var]| (x[0] - data[0]).powi(2));
/// let (points, data) = ([1.0, 2.0, 3.0], [5.0, 6.0, 7.0]);
/// let mut gradients = [0.0; 3];
/// // Three points with the same data, ...
/// f.grad_batch_into(&points, Rows::Shared(&[1.0]), 3, &mut gradients)?;
/// assert_eq!(gradients, [0.0, 2.0, 4.0]);
/// // one point with three rows of data, ...
/// f.grad_batch_into(Rows::Shared(&[1.0]), &data, 3, &mut gradients)?;
/// assert_eq!(gradients, [-8.0, -10.0, -12.0]);
/// // and three points, each with data of its own.
/// f.grad_batch_into(&points, &data, 3, &mut gradients)?;
/// assert_eq!(gradients, [-8.0, -8.0, -8.0]);
/// # Ok::<(), phigrad::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rows<'a> {
    /// The input of the first element, then that of the second, and so on, all of one length.
    Each(&'a [f64]),
    /// The input of all elements.
    Shared(&'a [f64]),
}

impl<'a> From<&'a [f64]> for Rows<'a> {
    fn from(rows: &'a [f64]) -> Self {
        Rows::Each(rows)
    }
}

impl<'a, const LENGTH: usize> From<&'a [f64; LENGTH]> for Rows<'a> {
    fn from(rows: &'a [f64; LENGTH]) -> Self {
        Rows::Each(rows)
    }
}

impl<'a> From<&'a Vec<f64>> for Rows<'a> {
    fn from(rows: &'a Vec<f64>) -> Self {
        Rows::Each(rows)
    }
}

/// An input of each element, all of a known length.
#[derive(Clone, Copy)]
pub(super) struct Input<'a> {
    numbers: &'a [f64],
    /// The length of the input of an element.
    pub(super) length: usize,
    pub(super) is_shared: bool,
}

impl<'a> Input<'a> {
    fn new(rows: Rows<'a>, count: usize, slice: &'static str) -> Result<Self, Error> {
        match rows {
            Rows::Shared(numbers) => Ok(Input { numbers, length: numbers.len(), is_shared: true }),
            Rows::Each(numbers) => {
                let length = numbers.len().checked_div(count).unwrap_or(0);
                if length * count != numbers.len() {
                    return Err(Kind::Rows { slice, count, found: numbers.len() }.into());
                }
                Ok(Input { numbers, length, is_shared: false })
            }
        }
    }

    pub(super) fn of_element(self, element: usize) -> &'a [f64] {
        match self.is_shared {
            true => self.numbers,
            false => &self.numbers[element * self.length..][..self.length],
        }
    }
}

/// The inputs of a batch, whose lengths have been checked.
#[derive(Clone, Copy)]
pub(super) struct Batch<'a> {
    pub(super) active: Input<'a>,
    pub(super) inactive: Input<'a>,
    /// The number of elements.
    pub(super) count: usize,
}

impl<'a> Batch<'a> {
    /// `rows` are the active inputs, and the inactive ones if there are any.
    pub(super) fn new(rows: &[Rows<'a>], count: usize) -> Result<Self, Error> {
        let rows = |number: usize| rows.get(number).copied().unwrap_or(Rows::Shared(&[]));
        Ok(Batch {
            active: Input::new(rows(0), count, "slice of inputs")?,
            inactive: Input::new(rows(1), count, "slice of data")?,
            count,
        })
    }

    /// The inputs that are the same for all elements.
    pub(super) fn invariant_inputs(&self) -> InvariantInputs {
        let is_shared = |input: Input<'_>| input.is_shared && input.length > 0;
        match (is_shared(self.active), is_shared(self.inactive)) {
            (_, true) => InvariantInputs::Inactive,
            (true, false) => InvariantInputs::Active,
            (false, false) => InvariantInputs::None,
        }
    }

    /// The inputs of one element.
    pub(super) fn inputs(&self, element: usize) -> Inputs<'a> {
        Inputs {
            active: self.active.of_element(element),
            inactive: self.inactive.of_element(element),
        }
    }
}

/// The place for the results of a batch, or of a range of its elements: a value and a gradient for
/// each of them, or one of the two.
pub(super) struct BatchResults<'a> {
    pub(super) values: Option<&'a mut [f64]>,
    pub(super) gradients: Option<&'a mut [f64]>,
    /// The length of a gradient.
    columns: usize,
}

impl<'a> BatchResults<'a> {
    /// Checks the lengths of slices for the results of `batch`.
    pub(super) fn new(
        batch: &Batch<'_>,
        values: Option<&'a mut [f64]>,
        gradients: Option<&'a mut [f64]>,
    ) -> Result<Self, Error> {
        let columns = batch.active.length;
        if let Some(values) = &values {
            Error::check_length("slice of values", batch.count, values.len())?;
        }
        if let Some(gradients) = &gradients {
            let expected = batch.count.saturating_mul(columns);
            Error::check_length("slice of gradients", expected, gradients.len())?;
        }
        Ok(BatchResults { values, gradients, columns })
    }

    /// The gradient of an element; empty if there are none.
    pub(super) fn gradient(&mut self, element: usize) -> &mut [f64] {
        match &mut self.gradients {
            Some(gradients) => &mut gradients[element * self.columns..][..self.columns],
            None => &mut [],
        }
    }

    /// The gradients of an element and the next one; empty if there are none.
    pub(super) fn gradients_of_two(&mut self, element: usize) -> (&mut [f64], &mut [f64]) {
        match &mut self.gradients {
            Some(gradients) => {
                let both = &mut gradients[element * self.columns..][..2 * self.columns];
                both.split_at_mut(self.columns)
            }
            None => Default::default(),
        }
    }

    pub(super) fn set_value(&mut self, element: usize, value: f64) {
        if let Some(values) = &mut self.values {
            values[element] = value;
        }
    }

    /// Splits it into ranges of `length` elements, each with the range of its elements.
    #[cfg(feature = "rayon")]
    pub(super) fn split(
        self,
        count: usize,
        length: usize,
    ) -> Vec<(Range<usize>, BatchResults<'a>)> {
        let BatchResults { mut values, mut gradients, columns } = self;
        let split_off = |slice: &mut Option<&'a mut [f64]>, length: usize| {
            let (first, rest) = slice.take()?.split_at_mut(length);
            *slice = Some(rest);
            Some(first)
        };
        let starts = (0..count).step_by(length.max(1));
        let ranges = starts.map(|start| start..count.min(start + length));
        ranges
            .map(|range| {
                let values = split_off(&mut values, range.len());
                let gradients = split_off(&mut gradients, range.len() * columns);
                (range, BatchResults { values, gradients, columns })
            })
            .collect()
    }
}
