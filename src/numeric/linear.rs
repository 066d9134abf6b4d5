//! Small linear systems: solution in double-double, and a test for positive definiteness.

use super::double_double::Bounded;

/// The smallest pivot of a Cholesky decomposition of a matrix scaled to entries of about one; a
/// smaller one may be rounding error.
const MIN_PIVOT: f64 = 1e-10;

/// True if the Cholesky decomposition of a symmetric matrix exists.
pub fn is_positive_definite(size: usize, entry: impl Fn(usize, usize) -> f64) -> bool {
    let mut factor = vec![0.0; size * size];
    for i in 0..size {
        for j in 0..=i {
            let sum: f64 = (0..j).map(|k| factor[i * size + k] * factor[j * size + k]).sum();
            let reduced = entry(i, j) - sum;
            if i == j && !(reduced > MIN_PIVOT && reduced.is_finite()) {
                return false;
            }
            factor[i * size + j] =
                if i == j { reduced.sqrt() } else { reduced / factor[j * size + j] };
        }
    }
    true
}

/// Solves a system by Gauss-Jordan elimination with partial pivoting. Data far from zero make it
/// ill-conditioned, hence double-double. `None` if a pivot is zero.
pub fn solve(
    size: usize,
    matrix: impl Fn(usize, usize) -> Bounded,
    right: impl Fn(usize) -> Bounded,
) -> Option<Vec<f64>> {
    let mut rows: Vec<Vec<Bounded>> =
        (0..size).map(|i| (0..size).map(|j| matrix(i, j)).chain([right(i)]).collect()).collect();
    for column in 0..size {
        let magnitude = |row: usize| rows[row][column].hi.abs();
        let pivot_row = (column..size).max_by(|&a, &b| magnitude(a).total_cmp(&magnitude(b)))?;
        rows.swap(column, pivot_row);
        let pivot = rows[column].clone();
        if pivot[column].hi == 0.0 {
            return None;
        }
        for (_, row) in rows.iter_mut().enumerate().filter(|&(index, _)| index != column) {
            let factor = row[column] / pivot[column];
            row.iter_mut().zip(&pivot).for_each(|(x, &p)| *x = *x - factor * p);
        }
    }
    let solution = rows.iter().enumerate().map(|(index, row)| (row[size] / row[index]).hi);
    Some(solution.collect())
}
