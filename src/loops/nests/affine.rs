//! Affine functions of iteration vectors, found from samples.

use smallvec::SmallVec;

/// `constant` plus, for each enclosing loop, a multiple of its iteration number.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Affine {
    pub(super) constant: i64,
    /// One factor for each loop, outermost first.
    pub(super) factors: SmallVec<[i64; 4]>,
}

impl Affine {
    /// Zero, in so many loops.
    pub(super) fn zero(depth: usize) -> Affine {
        Affine { constant: 0, factors: SmallVec::from_elem(0, depth) }
    }

    /// The iteration number of loop `number` of `depth`.
    pub(super) fn number(number: usize, depth: usize) -> Affine {
        let mut affine = Affine::zero(depth);
        affine.factors[number] = 1;
        affine
    }

    /// The function with these values; `None` if there is no such function with whole factors.
    /// Factors that no sample determines are zero.
    pub(super) fn through<'v>(
        depth: usize,
        samples: impl Iterator<Item = (&'v [i64], i64)> + Clone,
    ) -> Option<Affine> {
        let mut system = System { rows: Vec::new() };
        // Multiples of the factors, so that they are whole before all are determined.
        let mut affine = Affine::zero(depth);
        let mut multiple = 1;
        while let Some((vector, value)) = samples.clone().find(|&(vector, value)| {
            affine.exactly_at(vector) != i128::from(multiple) * i128::from(value)
        }) {
            system.add(vector, value)?;
            (affine, multiple) = system.solution(depth)?;
        }
        (multiple == 1).then_some(affine)
    }

    /// The value for this iteration vector, for factors of any size.
    fn exactly_at(&self, vector: &[i64]) -> i128 {
        let products = self.factors.iter().zip(vector);
        let products = products.map(|(&by, &number)| i128::from(by) * i128::from(number));
        i128::from(self.constant) + products.sum::<i128>()
    }

    /// The value for this iteration vector.
    pub(super) fn at(&self, vector: &[i64]) -> i64 {
        self.constant + self.factors.iter().zip(vector).map(|(by, number)| by * number).sum::<i64>()
    }

    /// Adds `factor` times `other`.
    pub(super) fn add(&mut self, factor: i64, other: &Affine) {
        self.constant += factor * other.constant;
        self.factors.iter_mut().zip(&other.factors).for_each(|(own, by)| *own += factor * by);
    }
}

/// The number of independent directions in which `vectors` differ.
pub(super) fn directions<'v>(mut vectors: impl Iterator<Item = &'v [i64]>) -> usize {
    let Some(first) = vectors.next() else { return 0 };
    let (mut rows, mut new): (Vec<Vec<i128>>, Vec<i128>) = Default::default();
    for vector in vectors {
        if rows.len() == first.len() {
            break;
        }
        new.clear();
        new.extend(vector.iter().zip(first).map(|(number, first)| i128::from(number - first)));
        // There is no right-hand side.
        new.push(0);
        if rows.iter().all(|row| eliminate(&mut new, row).is_some()) && pivot(&new).is_some() {
            rows.push(new.clone());
        }
    }
    rows.len()
}

/// Linear equations in reduced row echelon form: the unknowns are the constant and the factors; the
/// last number of a row is its right-hand side.
struct System {
    rows: Vec<Vec<i128>>,
}

impl System {
    /// Adds the equation of a sample; `None` if it contradicts the others.
    fn add(&mut self, vector: &[i64], value: i64) -> Option<()> {
        let new = [1].into_iter().chain(vector.iter().copied()).chain([value]);
        let mut new: Vec<i128> = new.map(i128::from).collect();
        for row in &self.rows {
            eliminate(&mut new, row)?;
        }
        pivot(&new)?;
        for row in &mut self.rows {
            eliminate(row, &new)?;
        }
        self.rows.push(new);
        Some(())
    }

    /// A multiple of the solution in which all unknowns without an equation are zero, and by which
    /// number it is multiplied.
    fn solution(&self, depth: usize) -> Option<(Affine, i64)> {
        let mut multiple: i128 = 1;
        for row in &self.rows {
            let (by, right) = (row[pivot(row)?], *row.last()?);
            let least = by / greatest_common_divisor(by, right);
            let common = greatest_common_divisor(multiple, least);
            multiple = multiple.checked_mul(least / common)?.abs();
        }
        let mut unknowns = vec![0; depth + 1];
        for row in &self.rows {
            let (at, right) = (pivot(row)?, *row.last()?);
            let scaled = right.checked_mul(multiple)? / row[at];
            unknowns[at] = i64::try_from(scaled).ok()?;
        }
        let factors = SmallVec::from_slice(&unknowns[1..]);
        Some((Affine { constant: unknowns[0], factors }, i64::try_from(multiple).ok()?))
    }
}

/// The number of the first unknown with a coefficient.
fn pivot(row: &[i128]) -> Option<usize> {
    row[..row.len() - 1].iter().position(|&number| number != 0)
}

/// Eliminates the first unknown of `by` from `row`.
fn eliminate(row: &mut [i128], by: &[i128]) -> Option<()> {
    let at = pivot(by)?;
    let (own, other) = (row[at], by[at]);
    if own == 0 {
        return Some(());
    }
    for (number, &known) in row.iter_mut().zip(by) {
        *number = number.checked_mul(other)?.checked_sub(known.checked_mul(own)?)?;
    }
    let common = row.iter().fold(0, |common, &number| greatest_common_divisor(common, number));
    if common > 1 {
        row.iter_mut().for_each(|number| *number /= common);
    }
    Some(())
}

fn greatest_common_divisor(a: i128, b: i128) -> i128 {
    let (mut a, mut b) = (a.abs(), b.abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    fn through(samples: &[(&[i64], i64)]) -> Option<(i64, Vec<i64>)> {
        let depth = samples[0].0.len();
        let affine = Affine::through(depth, samples.iter().copied())?;
        Some((affine.constant, affine.factors.to_vec()))
    }

    #[test]
    fn functions_are_found_from_samples() {
        let triangle: &[(&[i64], i64)] =
            &[(&[1, 0], 10), (&[2, 0], 17), (&[2, 1], 16), (&[3, 2], 22)];
        assert_eq!(through(triangle), Some((3, vec![7, -1])));
        // Nothing tells the loops apart: both numbers are always the same.
        assert_eq!(through(&[(&[0, 0], 1), (&[1, 1], 3)]), Some((1, vec![2, 0])));
        assert_eq!(through(&[(&[3], 5)]), Some((5, vec![0])));
        assert_eq!(through(&[(&[], 5)]), Some((5, vec![])));
        assert_eq!(through(&[(&[0], 0), (&[1], 1), (&[2], 4)]), None);
        assert_eq!(through(&[(&[0], 0), (&[2], 1)]), None);
    }

    #[test]
    fn directions_are_counted_once() {
        let vectors: [&[i64]; 5] = [&[1, 0, 2], &[1, 0, 2], &[2, 0, 4], &[0, 0, 0], &[1, 3, 2]];
        let counts: Vec<usize> =
            (0..=5).map(|count| directions(vectors[..count].iter().copied())).collect();
        assert_eq!(counts, [0, 0, 0, 1, 1, 2]);
    }
}
