//! Numbers in even steps, also rounded ones, such as those of `i as f64 / 12.0`.

use crate::phi::double::Double;

/// The line that numbers are on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Line {
    pub(super) first: Double,
    pub(super) step: Double,
    /// Whether the numbers are those of the line, and not only next to them.
    pub(super) is_exact: bool,
}

/// Numbers so near to a line, in parts of their size, are on it: both were computed with
/// twice the digits.
const EXACT: f64 = 1e-29;

/// As far as this, in parts of their size, one rounding moves numbers.
const HALF_ULP: f64 = f64::EPSILON / 2.0;

/// Independent roundings add up to less than so many times the root of the sum of the
/// squares of the largest they may be: of 1000 numbers as i/12, i/252, i·0.01 or i·0.1 to
/// between 0.6 and 2.5 times. But those of i·0.1 go one way for thousands of numbers, and add
/// up to 15 times for 10⁵; those of i·0.001 do for 32, and add up to 3.8 times.
const MOST_ADDED: f64 = 2.5;

/// The line of `table`, if each number is rounded once from it, and these roundings do not
/// add up.
pub(super) fn line(table: &[Double]) -> Option<Line> {
    let (first, step) = (*table.first()?, *table.get(1)? - *table.first()?);
    if distance(table, first, step, 0.0).is_some() {
        return Some(Line { first, step, is_exact: true });
    }
    let is_single = table.iter().all(|number| number.low == 0.0);
    let mut most = if is_single { HALF_ULP } else { EXACT };
    let mut best = None;
    for step in steps(table) {
        for first in firsts(first, step) {
            // An earlier line is a simpler one.
            if let Some(distance) = distance(table, first, step, most)
                && (best.is_none() || distance < most)
                && (distance <= EXACT || is_noise(table, first, step))
            {
                most = distance;
                best = Some(Line { first, step, is_exact: distance <= EXACT });
            }
        }
    }
    best
}

/// The largest distance of a number from the line, in parts of its size, if none is more
/// than `most`.
fn distance(table: &[Double], first: Double, step: Double, most: f64) -> Option<f64> {
    let mut largest: f64 = 0.0;
    for (i, &number) in table.iter().enumerate() {
        let off = (number - (first + step * (i as f64).into())).rounded().abs();
        let size = number.high.abs();
        if !(off <= most * size && off.is_finite()) {
            return None;
        }
        if off > 0.0 {
            largest = largest.max(off / size);
        }
    }
    Some(largest)
}

/// Whether what the numbers of `table` are away from the line adds up to no more than noise
/// does, also with signs in turn: from the first number on, as in a sum, and in windows of
/// each size, as in one that forgets.
fn is_noise(table: &[Double], first: Double, step: Double) -> bool {
    let largest = table.iter().fold(0.0, |most: f64, number| most.max(number.high.abs()));
    let mut windows: Vec<Added> = Vec::with_capacity(table.len());
    for (i, &number) in table.iter().enumerate() {
        let off = (number - (first + step * (i as f64).into())).rounded() / largest;
        let turning = if i % 2 == 0 { off } else { -off };
        windows.push(Added { off, turning, squares: (number.high / largest).powi(2) });
    }
    let mut so_far = Added::default();
    let mut is_noise = windows.iter().all(|&window| {
        so_far = so_far + window;
        so_far.is_noise()
    });
    while is_noise && windows.len() > 1 {
        let pair = |pair: &[Added]| pair.iter().fold(Added::default(), |all, &one| all + one);
        windows = windows.chunks(2).map(pair).collect();
        is_noise = windows.iter().all(|window| window.is_noise());
    }
    is_noise
}

/// What some numbers of a table add up to, in parts of its largest one.
#[derive(Clone, Copy, Default)]
struct Added {
    /// Their distances from the line.
    off: f64,
    /// The same with signs in turn.
    turning: f64,
    /// The squares of the numbers.
    squares: f64,
}

impl Added {
    fn is_noise(self) -> bool {
        let most = MOST_ADDED * HALF_ULP * self.squares.sqrt();
        self.off.abs() <= most && self.turning.abs() <= most
    }
}

impl core::ops::Add for Added {
    type Output = Added;

    fn add(self, other: Added) -> Added {
        Added {
            off: self.off + other.off,
            turning: self.turning + other.turning,
            squares: self.squares + other.squares,
        }
    }
}

/// What steps the numbers may have: a part of 1, that of the first two, that of the last two,
/// that of both ends.
fn steps(table: &[Double]) -> impl Iterator<Item = Double> {
    let (first, last) = (table[0], table[table.len() - 1]);
    let of_two = |i: usize| Some(*table.get(i + 1)? - *table.get(i)?);
    let ends = (last - first) / (table.len().max(2) as f64 - 1.0).into();
    let parts = (Double::from(1.0) / ends).rounded().round();
    let of_one = (parts != 0.0 && parts.is_finite()).then(|| Double::from(1.0) / parts.into());
    let last_two = table.len().checked_sub(2).and_then(of_two);
    of_one.into_iter().chain(of_two(0)).chain(last_two).chain([ends])
}

/// What the first number may be: half the step so many times, or as it is.
fn firsts(first: Double, step: Double) -> [Double; 2] {
    let halves = (first / step * 2.0.into()).rounded().round();
    [step * (halves / 2.0).into(), first]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table_of(f: impl Fn(f64) -> f64) -> Vec<Double> {
        (0..500).map(|i| f(f64::from(i)).into()).collect()
    }

    fn line_of(f: impl Fn(f64) -> f64) -> Option<Line> {
        line(&table_of(f))
    }

    #[test]
    fn numbers_in_even_steps_are_on_a_line() {
        let exact = line_of(|i| 3.0 - 0.25 * i).unwrap();
        assert_eq!(exact, Line { first: 3.0.into(), step: (-0.25).into(), is_exact: true });
    }

    #[test]
    fn rounded_numbers_are_next_to_the_line_they_were_computed_from() {
        let twelfth = Double::from(1.0) / 12.0.into();
        type Test = (fn(f64) -> f64, Double, Double);
        let tests: [Test; 6] = [
            (|i| i / 12.0, Double::ZERO, twelfth),
            (|i| (i + 1.0) / 12.0, twelfth, twelfth),
            (|i| (i + 0.5) / 12.0, twelfth * 0.5.into(), twelfth),
            (|i| (499.0 - i) / 12.0, twelfth * 499.0.into(), -twelfth),
            (|i| i * 0.01, Double::ZERO, 0.01.into()),
            (|i| (i + 3.0) * 0.3, Double::from(3.0) * 0.3.into(), 0.3.into()),
        ];
        for (i, (f, first, step)) in tests.into_iter().enumerate() {
            let line = line_of(f).unwrap();
            assert!(!line.is_exact, "{i}: {line:?}");
            let near = |a: Double, b: Double| (a - b).rounded().abs() <= 1e-16 * b.high.abs();
            assert!(near(line.first, first) && near(line.step, step), "{i}: {line:?}");
        }
        // Parts of 1, and what the first two numbers tell, are found with twice the digits.
        assert_eq!(line_of(|i| i / 12.0).unwrap().step, twelfth);
        assert_eq!(line_of(|i| i * 0.07).unwrap().step, 0.07.into());
        assert_eq!(line_of(|i| (499.0 - i) * 0.07).unwrap().step, (-0.07).into());
    }

    #[test]
    fn other_numbers_are_on_no_line() {
        assert_eq!(line_of(|i| i * i), None);
        assert_eq!(line_of(|i| if i == 499.0 { 7.0 } else { i / 12.0 }), None);
        // Each addition rounds, and the errors add up.
        let table: Vec<Double> = core::iter::successors(Some(0.0), |t| Some(t + 0.1))
            .take(500)
            .map(Double::from)
            .collect();
        assert_eq!(line(&table), None);
        // Next to one rounded number is none that two roundings move.
        assert_eq!(line_of(|i| if i == 25.0 { (i / 12.0).next_up() } else { i / 12.0 }), None);
        // All roundings are up, if these are small enough.
        let up = |i: f64| {
            let (near, exact) = (i / 3.0, Double::from(i) / 3.0.into());
            let off = (Double::from(near.next_up()) - exact).rounded();
            let is_near = near > 0.0 && off <= HALF_ULP * near;
            if is_near { near.next_up() } else { near }
        };
        assert!(
            distance(&table_of(up), Double::ZERO, Double::from(1.0) / 3.0.into(), HALF_ULP)
                .is_some()
        );
        assert_eq!(line_of(up), None);
        let tenths =
            |n: u32| -> Vec<Double> { (0..n).map(|i| Double::from(f64::from(i) * 0.1)).collect() };
        for scale in [1.0, f64::exp2(530.0), f64::exp2(-540.0)] {
            let scaled = |n: u32| -> Vec<Double> {
                tenths(n).into_iter().map(|number| (number.high * scale).into()).collect()
            };
            assert!(line(&scaled(1000)).is_some());
            assert_eq!(line(&scaled(100_000)), None);
        }
        // They go one way for some hundred numbers, and another way for the next ones.
        let windows = |i: f64| i * (1.0 + 1543.0 * f64::EPSILON);
        let table: Vec<Double> = (0..3000).map(|i| windows(f64::from(i)).into()).collect();
        assert!(line(&table[..1000]).is_some() && line(&table).is_none());
        // Near zero the rounding of 5 is larger than the number.
        assert_eq!(line_of(|i| 5.0 - i * 0.01), None);
        assert_eq!(line_of(|_| f64::NAN), None);
        assert_eq!(line_of(|i| i * f64::INFINITY), None);
        assert_eq!(line(&[1.0.into()]), None);
    }
}
