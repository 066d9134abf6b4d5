//! The errors of a batch: which elements have no result, and why.

use core::convert::Infallible;
use core::fmt;

use crate::runtime::error::{Error, Kind};

/// The reason why a batch has no results, or not for all elements. `E` is the error of the function
/// itself: see [`Output::Error`](crate::Output::Error).
///
/// For a function without errors of its own, it converts to [`Error`], which then tells the first
/// element without a result ([`Error::element`]).
///
/// # Examples
///
/// ```
/// use phigrad::{BatchError, Tape, Var};
///
/// let root = |x: &[Var]| if x[0] < 0.0 { Err("negative") } else { Ok(x[0].sqrt()) };
/// let f = Tape::record(root);
/// let mut gradients = [0.0; 3];
/// let error = f.grad_batch_into(&[1.0, -1.0, 4.0], 3, &mut gradients).unwrap_err();
/// // The other elements have their results.
/// assert_eq!(gradients, [0.5, 0.0, 0.25]);
/// let BatchError::Elements(errors) = error else { panic!("the lengths are right") };
/// assert_eq!((errors.len(), errors[0].element), (1, 1));
/// ```
#[derive(Debug)]
pub enum BatchError<E> {
    /// A slice has the wrong length: no element has been called, and nothing is written.
    Shape(Error),
    /// These elements have no result, at least one, in order. Those of all other elements are
    /// written; those of these elements are unchanged.
    Elements(Vec<ElementError<E>>),
}

/// The reason why an element of a batch has no result.
///
/// # Examples
///
/// ```
/// use phigrad::{BatchError, Tape, Var};
///
/// let f = Tape::record(|x: &[Var]| if x[0] < 0.0 { Err("negative") } else { Ok(x[0].sqrt()) });
/// let error = f.eval_batch_into(&[4.0, -1.0], 2, &mut [0.0; 2]).unwrap_err();
/// let BatchError::Elements(errors) = error else { panic!("the lengths are right") };
/// assert_eq!(
///     errors[0].to_string(),
///     "element 1 of the batch: the function returned an error: negative"
/// );
/// ```
#[derive(Debug, thiserror::Error)]
#[error("element {element} of the batch: {cause}")]
pub struct ElementError<E> {
    /// The position of the element, from 0.
    pub element: usize,
    /// The error of its call.
    pub cause: ElementCause<E>,
}

/// The error of the call for an element.
///
/// # Examples
///
/// ```
/// use phigrad::{BatchError, ElementCause, Tape, Var};
///
/// let f = Tape::record(|x: &[Var]| if x[0] < 0.0 { Err("negative") } else { Ok(x[0].sqrt()) });
/// let error = f.eval_batch_into(&[4.0, -1.0], 2, &mut [0.0; 2]).unwrap_err();
/// let BatchError::Elements(errors) = error else { panic!("the lengths are right") };
/// assert!(matches!(errors[0].cause, ElementCause::Function("negative")));
/// ```
#[derive(Debug, thiserror::Error)]
pub enum ElementCause<E> {
    /// That of the function itself.
    #[error("the function returned an error: {0}")]
    Function(E),
    /// That of the call.
    #[error(transparent)]
    Call(Error),
}

impl From<BatchError<Infallible>> for Error {
    fn from(error: BatchError<Infallible>) -> Self {
        let errors = match error {
            BatchError::Shape(error) => return error,
            BatchError::Elements(errors) => errors,
        };
        let first = errors.into_iter().next();
        first.map_or(Kind::NoElement, |first| Kind::Element(Box::new(first))).into()
    }
}

impl<E: fmt::Display> fmt::Display for BatchError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let errors = match self {
            BatchError::Shape(error) => return error.fmt(f),
            BatchError::Elements(errors) => errors,
        };
        let Some(first) = errors.first() else { return Ok(()) };
        match errors.len() {
            1 => first.fmt(f),
            2 => write!(f, "{first} (and another element)"),
            all => write!(f, "{first} (and {} other elements)", all - 1),
        }
    }
}

impl<E: fmt::Debug + fmt::Display> core::error::Error for BatchError<E> {}
