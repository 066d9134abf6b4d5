//! The product of two matrices.

use core::convert::Infallible;

use super::product::{Operand, add_product};
use super::shape;
use super::shape::{entries, is_expected, nan_of_shape};
use super::table::Table;
use super::vectors::matvec;
use crate::custom::Operation;
use crate::trace::Var;

/// The largest number of multiplications that are recorded one by one. From here on the arguments
/// and results of an operation, a few for each hundred multiplications, cost less.
const MAX_PRIMITIVES: usize = 256;

/// The product A·B of two row-major matrices of these shapes, `[rows, columns]`, in row-major
/// order.
///
/// # Errors
///
/// If a slice does not have as many entries as its shape, or `b` does not have as many rows as `a`
/// has columns, the recording fails ([`Error::is_shape`](crate::Error::is_shape)); the results are
/// NaN.
///
/// # Examples
///
/// ```
/// use phigrad::{Tape, Var, linalg};
///
/// let square = Tape::record(|a: &[Var]| linalg::matmul(a, [2, 2], a, [2, 2]));
/// assert_eq!(square.eval(&[1.0, 1.0, 0.0, 1.0])?, [1.0, 2.0, 0.0, 1.0]);
/// # Ok::<(), phigrad::Error>(())
/// ```
#[track_caller]
#[must_use]
pub fn matmul(a: &[Var], a_shape: [usize; 2], b: &[Var], b_shape: [usize; 2]) -> Vec<Var> {
    let ([rows, inner], [b_rows, columns]) = (a_shape, b_shape);
    if !is_expected("length of `a` of `linalg::matmul`", a.len(), entries(a_shape))
        || !is_expected("length of `b` of `linalg::matmul`", b.len(), entries(b_shape))
        || !is_expected("number of rows of `b` of `linalg::matmul`", b_rows, inner)
    {
        return nan_of_shape(entries([rows, columns]));
    }
    if rows.saturating_mul(inner).saturating_mul(columns) > MAX_PRIMITIVES {
        static PRODUCTS: Table<Product> = Table::new();
        let Ok(product) = PRODUCTS.get(Product { rows, inner, columns }).call(&[a, b].concat());
        return product;
    }
    let transposed = shape::transposed(b, columns);
    let mut product = Vec::with_capacity(rows * columns);
    for row in 0..rows {
        product.extend(matvec(&transposed, [columns, inner], &a[row * inner..][..inner]));
    }
    product
}

/// A·B, with the entries of both as inputs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Product {
    rows: usize,
    inner: usize,
    columns: usize,
}

impl Product {
    /// The factors in inputs or directions.
    fn factors<'a>(&self, x: &'a [f64]) -> [Operand<'a>; 2] {
        let (a, b) = x.split_at(self.rows * self.inner);
        [Operand::new(a, self.inner), Operand::new(b, self.columns)]
    }
}

impl Operation for Product {
    type Error = Infallible;

    fn inputs(&self) -> usize {
        (self.rows + self.columns) * self.inner
    }

    fn outputs(&self) -> usize {
        self.rows * self.columns
    }

    fn eval(&self, x: &[f64], y: &mut [f64], _: &mut [f64]) -> Result<(), Infallible> {
        let [a, b] = self.factors(x);
        y.fill(0.0);
        add_product(a, b, y);
        Ok(())
    }

    /// WBᵀ and AᵀW.
    fn vjp(&self, x: &[f64], _: &[f64], _: &[f64], w: &[f64], out: &mut [f64]) {
        let ([a, b], w) = (self.factors(x), Operand::new(w, self.columns));
        out.fill(0.0);
        let (by_a, by_b) = out.split_at_mut(self.rows * self.inner);
        add_product(w, b.transpose(), by_a);
        add_product(a.transpose(), w, by_b);
    }

    fn jvp(&self, x: &[f64], _: &[f64], _: &[f64], v: &[f64], out: &mut [f64]) {
        let ([a, b], [da, db]) = (self.factors(x), self.factors(v));
        out.fill(0.0);
        add_product(da, b, out);
        add_product(a, db, out);
    }

    fn is_twice_differentiable(&self) -> bool {
        true
    }

    fn vjp_tangent(
        &self,
        _: &[f64],
        _: &[f64],
        _: &[f64],
        (w, v): (&[f64], &[f64]),
        out: &mut [f64],
    ) {
        // The product is bilinear.
        self.vjp(v, &[], &[], w, out);
    }

    fn name(&self) -> &str {
        "linalg::matmul"
    }
}
