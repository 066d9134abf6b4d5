//! Ways to change the variables of a sum that change its terms least, or not at all.
//!
//! In (x + aᵢ·y − m)² that is x and m by the same: a flat direction. The loop's terms stay small
//! there, while monomials in x and m grow and cancel; and programs go there: m is the mean of
//! what it is subtracted from. In (aᵢ·y − m)² that is m by ā·y: the terms change as the aᵢ differ,
//! but the monomials by all of aᵢ.

use super::moments::Evaluator;
use crate::phi::double::Double;

/// What is left of a variable's slopes, relative to their squares, is rounding up to here.
const FLAT: f64 = 1e-28;

/// Directions in which the terms of a sum change least.
#[derive(Clone, Debug, Default)]
pub(super) struct Slow {
    /// In which no term changes. Each has a first variable that no other has a part in.
    pub(super) flats: Vec<Vec<f64>>,
    /// By the others, for each variable how they change if it does.
    pub(super) others: Vec<Vec<f64>>,
}

/// The directions in which the terms of `count` iterations, in these `around`, change least
/// wherever the `variables` are.
pub(super) fn slow_directions(
    evaluator: &mut Evaluator<'_>,
    variables: usize,
    count: u32,
    around: &[u32],
) -> Slow {
    /// Anywhere, but where nothing is zero or the same.
    const PLACES: [f64; 2] = [0.618_033_988_749_894_9, -1.324_717_957_244_746];
    if variables < 2 {
        return Slow::default();
    }
    let place = |at: f64| (1..=variables).map(|v| at * (v as f64).sqrt()).collect();
    let slopes = evaluator.slopes(&PLACES.map(place), count, around);
    let scales: Vec<f64> = (0..variables).map(|v| slopes[v][v].high.sqrt().recip()).collect();
    // What no term depends on has no part in any of them.
    let used: Vec<usize> = (0..variables).filter(|&v| scales[v].is_normal()).collect();
    let scaled = |&i: &usize| {
        let part = |&j: &usize| slopes[i][j] * scales[i].into() * scales[j].into();
        used.iter().map(part).collect()
    };
    let [flats, others] = least(used.iter().map(scaled).collect()).map(|directions| {
        let unscaled = directions.into_iter().map(|direction| {
            let mut all = vec![0.0; variables];
            used.iter().zip(direction).for_each(|(&v, part)| all[v] = part.rounded() * scales[v]);
            all
        });
        unscaled.filter(|direction| direction.iter().all(|part| part.is_finite())).collect()
    });
    Slow { flats, others }
}

/// Of a symmetric matrix without negative eigenvalues, and with ones on its diagonal, a basis of
/// what it takes to zero, and the columns of the inverse of the rest; by elimination, from the last
/// row on.
fn least(mut rows: Vec<Vec<Double>>) -> [Vec<Vec<Double>>; 2] {
    let size = rows.len();
    // Beside it the unit matrix, which becomes the inverse.
    for (at, row) in rows.iter_mut().enumerate() {
        row.extend((0..size).map(|column| Double::from(f64::from(u8::from(column == at)))));
    }
    let mut is_free = vec![false; size];
    for pivot in (0..size).rev() {
        if rows[pivot][pivot].high <= FLAT {
            is_free[pivot] = true;
            continue;
        }
        let by = rows[pivot][pivot];
        let row: Vec<Double> = rows[pivot].iter().map(|&x| x / by).collect();
        for (_, other) in rows.iter_mut().enumerate().filter(|&(at, _)| at != pivot) {
            let factor = other[pivot];
            other.iter_mut().zip(&row).for_each(|(x, &part)| *x = *x - factor * part);
        }
        rows[pivot] = row;
    }
    let null = |at: usize, free: usize| match is_free[at] {
        _ if at == free => 1.0.into(),
        false if at > free => -rows[at][free],
        _ => Double::ZERO,
    };
    let inverse = |at: usize, column: usize| match is_free[at] {
        true => Double::ZERO,
        false => rows[at][size + column],
    };
    let all = |part: &dyn Fn(usize, usize) -> Double, wanted: bool| {
        let columns = (0..size).filter(|&at| is_free[at] == wanted);
        columns.map(|column| (0..size).map(|at| part(at, column)).collect()).collect()
    };
    [all(&null, true), all(&inverse, false)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn null(rows: &[&[f64]]) -> Vec<Vec<f64>> {
        let rows = rows.iter().map(|row| row.iter().map(|&x| x.into()).collect()).collect();
        let rounded = |row: Vec<Double>| row.into_iter().map(Double::rounded).collect();
        let [null, _] = least(rows);
        null.into_iter().map(rounded).collect()
    }

    #[test]
    fn others_are_the_columns_of_the_inverse() {
        let [flats, others] =
            least(vec![vec![1.0.into(), 0.5.into()], vec![0.5.into(), 1.0.into()]]);
        assert!(flats.is_empty());
        let expected = [[4.0 / 3.0, -2.0 / 3.0], [-2.0 / 3.0, 4.0 / 3.0]];
        for (found, expected) in others.iter().flatten().zip(expected.as_flattened()) {
            assert!((found.rounded() - expected).abs() < 1e-15, "{others:?}");
        }
    }

    #[test]
    fn null_spaces_are_what_a_matrix_takes_to_zero() {
        assert!(null(&[&[1.0, 0.5], &[0.5, 1.0]]).is_empty());
        // Data that are far from zero, but not the same.
        let near = 1.0 - 1e-16;
        assert!(null(&[&[1.0, near], &[near, 1.0]]).is_empty());
        assert_eq!(null(&[&[1.0, -1.0], &[-1.0, 1.0]]), [[1.0, 1.0]]);
        // Of rank 1: each is as the last, or its negative.
        let found = null(&[&[1.0, -1.0, 1.0], &[-1.0, 1.0, -1.0], &[1.0, -1.0, 1.0]]);
        assert_eq!(found, [[1.0, 0.0, -1.0], [0.0, 1.0, 1.0]]);
    }
}
