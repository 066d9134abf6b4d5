//! Products of vectors and matrices as sums of primitives.

use super::shape::{entries, is_expected, nan, nan_of_shape};
use crate::trace::Var;

/// The scalar product Σ aᵢbᵢ of two slices of one length, added up from the first term to the last.
/// It is 0 for empty slices.
///
/// # Errors
///
/// If `b` has another length than `a`, the recording fails
/// ([`Error::is_shape`](crate::Error::is_shape)); the result is NaN.
///
/// # Examples
///
/// ```
/// use phigrad::{Tape, Var, linalg};
///
/// let f = Tape::record(|x: &[Var]| linalg::dot(&x[..2], &x[2..]));
/// assert_eq!(f.value_and_grad(&[1.0, 2.0, 3.0, 4.0])?, (11.0, vec![3.0, 4.0, 1.0, 2.0]));
/// assert!(f.grad(&[1.0, 2.0, 3.0]).unwrap_err().is_shape());
/// # Ok::<(), phigrad::Error>(())
/// ```
#[track_caller]
#[must_use]
pub fn dot(a: &[Var], b: &[Var]) -> Var {
    if !is_expected("length of `b` of `linalg::dot`", b.len(), a.len()) {
        return Var::from(f64::NAN);
    }
    sum_of_products(a, b)
}

/// The scalar product of slices of one length.
#[track_caller]
fn sum_of_products(a: &[Var], b: &[Var]) -> Var {
    let mut terms = a.iter().zip(b);
    let Some((&a, &b)) = terms.next() else { return Var::from(0.0) };
    let mut sum = a * b;
    for (&a, &b) in terms {
        sum += a * b;
    }
    sum
}

/// `alpha · x + y`, number by number.
///
/// # Errors
///
/// If `y` has another length than `x`, the recording fails
/// ([`Error::is_shape`](crate::Error::is_shape)); the results are NaN.
///
/// # Examples
///
/// ```
/// use phigrad::{Tape, Var, linalg};
///
/// let f = Tape::record(|x: &[Var]| linalg::axpy(x[0], &x[1..3], &x[3..]));
/// assert_eq!(f.eval(&[2.0, 1.0, 10.0, 5.0, 7.0])?, [7.0, 27.0]);
/// # Ok::<(), phigrad::Error>(())
/// ```
#[track_caller]
#[must_use]
pub fn axpy(alpha: impl Into<Var>, x: &[Var], y: &[Var]) -> Vec<Var> {
    if !is_expected("length of `y` of `linalg::axpy`", y.len(), x.len()) {
        return nan(x.len());
    }
    let alpha = alpha.into();
    let mut sums = Vec::with_capacity(x.len());
    for (&x, &y) in x.iter().zip(y) {
        sums.push(alpha * x + y);
    }
    sums
}

/// The product A·x of a row-major matrix of this shape, `[rows, columns]`, and a vector.
///
/// # Errors
///
/// If `a` does not have `rows * columns` entries or `x` does not have `columns`, the recording
/// fails ([`Error::is_shape`](crate::Error::is_shape)); the results are NaN.
///
/// # Examples
///
/// ```
/// use phigrad::{Tape, Var, linalg};
///
/// let f = Tape::record(|x: &[Var]| linalg::matvec(&x[..6], [3, 2], &x[6..]));
/// assert_eq!(f.eval(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 10.0, 1.0])?, [12.0, 34.0, 56.0]);
/// # Ok::<(), phigrad::Error>(())
/// ```
#[track_caller]
#[must_use]
pub fn matvec(a: &[Var], shape: [usize; 2], x: &[Var]) -> Vec<Var> {
    let [rows, columns] = shape;
    if !is_expected("length of `a` of `linalg::matvec`", a.len(), entries(shape))
        || !is_expected("length of `x` of `linalg::matvec`", x.len(), columns)
    {
        return nan_of_shape(rows);
    }
    let mut products = Vec::with_capacity(rows);
    for row in 0..rows {
        products.push(sum_of_products(&a[row * columns..][..columns], x));
    }
    products
}
