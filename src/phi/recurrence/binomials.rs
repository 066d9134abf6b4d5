//! Coefficients that change as polynomials in the iteration number: products of that with
//! what is carried become numbers of the state.
//!
//! A polynomial t(i) is Σ Δₖ·C(i, k), where Δₖ are its differences at zero. If s becomes
//! a·s + b, then C(i, k)·s becomes, since C(i+1, k) is C(i, k) + C(i, k−1),
//!
//! ```text
//! a·(C(i, k)·s + C(i, k−1)·s) + b·(C(i, k) + C(i, k−1)),
//! ```
//!
//! which is affine in such products, and has no coefficient that changes. So Σ i·rⁱ is a
//! system of three numbers. Binomials keep it near rⁱ: all that is added is 1 or r.

use hashbrown::HashMap;

use super::emit::Emitter;
use super::form::{Affine, Base, CHANGES, Coefficient, Forms, Rows};
use super::line::{Line, line};
use crate::phi::double::Double;
use crate::phi::pair::{Pair, Pairs};

/// The largest degree of a polynomial in the iteration number.
const DEGREE: usize = 4;

/// So many numbers are added to the state at most.
const MOST_PRODUCTS: usize = 5;

/// A polynomial in the iteration number.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Polynomial {
    /// What the binomial coefficients of the iteration number over 0, 1, 2, … are
    /// multiplied by.
    pub(super) parts: Vec<Option<Pair>>,
    /// Whether it is only next to rounded numbers that the program computes.
    pub(super) rounded: Rounded,
}

/// How the numbers of a program are rounded that a polynomial is next to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rounded {
    /// They are those of the polynomial.
    Not,
    /// They are on a line that has begun at most two steps from zero. Gone through backwards
    /// it ends there; no exponential is made of that.
    FromZero,
    /// They are on another line, or made of those on one and of others that change.
    Anywhere,
}

/// A number of the state, or 1 (`None`), times a binomial coefficient of the iteration
/// number over this.
pub(super) type Product = (usize, Option<usize>);

impl Forms<'_, '_> {
    /// The sum of coefficients of which one is not known, and one may change.
    pub(super) fn added_polynomials(
        &mut self,
        a: &Coefficient,
        b: &Coefficient,
    ) -> Result<Coefficient, &'static str> {
        let (a, b) = (polynomial(self.emitter, a)?, polynomial(self.emitter, b)?);
        Ok(Coefficient::Polynomial(sum(self.emitter, &a, &b)))
    }

    /// The product of such coefficients.
    pub(super) fn multiplied_polynomials(
        &mut self,
        a: &Coefficient,
        b: &Coefficient,
    ) -> Result<Coefficient, &'static str> {
        let (a, b) = (polynomial(self.emitter, a)?, polynomial(self.emitter, b)?);
        Ok(Coefficient::Polynomial(product(self.emitter, &a, &b)?))
    }

    /// What an affine form without states is as one polynomial.
    pub(super) fn without_states(&mut self, affine: &Affine) -> Result<Coefficient, &'static str> {
        let mut total = Polynomial { parts: Vec::new(), rounded: Rounded::Not };
        for (base, coefficient) in affine {
            let &Base::Node(node) = base else { return Err(CHANGES) };
            let part = polynomial(self.emitter, coefficient)?;
            let node = Polynomial { parts: vec![Some(node.into())], rounded: Rounded::Not };
            let part = product(self.emitter, &part, &node)?;
            total = sum(self.emitter, &total, &part);
        }
        Ok(Coefficient::Polynomial(total))
    }

    /// Makes products with the iteration number parts of the state in `rows` where that lets
    /// numbers that change with it and coefficients that are not known go together.
    pub(super) fn spread(&mut self, rows: &mut Rows) {
        if let Some(spread) = self.spread_rows(rows) {
            *rows = spread;
        }
    }

    fn spread_rows(&mut self, rows: &Rows) -> Option<Rows> {
        let (mut changes, mut is_unknown) = (false, false);
        for (base, coefficient) in rows.values().flatten() {
            match (base, coefficient) {
                (_, Coefficient::Fixed(pair)) => is_unknown |= self.number(*pair).is_none(),
                (_, Coefficient::Polynomial(_)) => (changes, is_unknown) = (true, true),
                (Base::State(_), Coefficient::Table(_)) => changes = true,
                // Even steps need no more than the iteration number.
                (Base::Node(_), Coefficient::Table(table)) => {
                    changes |= differences(table).is_none_or(|(all, _)| all.len() > 2);
                }
            }
        }
        if !changes || !is_unknown {
            return None;
        }
        let counter = self.counter();
        let emitter = &mut *self.emitter;
        let mut spread = Spread { emitter, counter, numbers: HashMap::new(), pending: Vec::new() };
        let mut found = Rows::new();
        for (&state, row) in rows {
            found.insert(state, spread.product(row, 0).ok()?);
        }
        while let Some((number, (degree, of))) = spread.pending.pop() {
            let next = match of {
                Some(state) => spread.product(rows.get(&state)?, degree),
                None => spread.binomial(degree),
            };
            found.insert(number, next.ok()?);
        }
        let mut numbers: Vec<(usize, Product)> =
            spread.numbers.into_iter().map(|(product, number)| (number, product)).collect();
        numbers.sort_unstable();
        self.products = numbers.into_iter().map(|(_, product)| product).collect();
        Some(found)
    }
}

struct Spread<'a, 'g> {
    emitter: &'a mut Emitter<'g>,
    /// The number of the state that is the iteration number.
    counter: usize,
    numbers: HashMap<Product, usize>,
    /// Those whose next values are not known yet.
    pending: Vec<(usize, Product)>,
}

impl Spread<'_, '_> {
    /// The number of the state that `product` is; not for 1.
    fn number(&mut self, product: Product) -> Result<usize, &'static str> {
        match product {
            (0, Some(state)) => return Ok(state),
            (1, None) => return Ok(self.counter),
            _ => {}
        }
        if let Some(&number) = self.numbers.get(&product) {
            return Ok(number);
        }
        if self.numbers.len() == MOST_PRODUCTS {
            return Err(CHANGES);
        }
        let number = self.counter + 1 + self.numbers.len();
        self.numbers.insert(product, number);
        self.pending.push((number, product));
        Ok(number)
    }

    fn add(&mut self, row: &mut Affine, base: Base, part: Pair) -> Result<(), &'static str> {
        let sum = match row.remove(&base) {
            Some(Coefficient::Fixed(before)) => self.emitter.sum(Some(before), Some(part)),
            Some(_) => None,
            None => Some(part),
        };
        row.insert(base, Coefficient::Fixed(sum.ok_or(CHANGES)?));
        Ok(())
    }

    /// What the product of a binomial over `degree` with a number is next, of which `row`
    /// is what it is next.
    fn product(&mut self, row: &Affine, degree: usize) -> Result<Affine, &'static str> {
        let one = Some(self.emitter.number(1.0, 0.0));
        let mut parts = vec![None; degree];
        parts.push(one);
        if degree > 0 {
            parts[degree - 1] = one;
        }
        let binomial = Polynomial { parts, rounded: Rounded::Not };
        let mut spread = Affine::new();
        for (&base, coefficient) in row {
            let parts = polynomial(self.emitter, coefficient)?;
            let product = product(self.emitter, &parts, &binomial)?;
            for (degree, part) in product.parts.into_iter().enumerate() {
                let Some(part) = part else { continue };
                let (base, part) = match base {
                    Base::Node(_) if degree == 0 => (base, part),
                    Base::Node(node) => {
                        let number = self.number((degree, None))?;
                        (Base::State(number), self.emitter.product(part, node.into()))
                    }
                    Base::State(state) => (Base::State(self.number((degree, Some(state)))?), part),
                };
                self.add(&mut spread, base, part)?;
            }
        }
        Ok(spread)
    }

    /// What a binomial over `degree`, which is more than 1, is next.
    fn binomial(&mut self, degree: usize) -> Result<Affine, &'static str> {
        let one = self.emitter.number(1.0, 0.0);
        let mut binomial = Affine::new();
        for degree in [degree, degree - 1] {
            let number = self.number((degree, None))?;
            self.add(&mut binomial, Base::State(number), one)?;
        }
        Ok(binomial)
    }
}

/// What `coefficient` is as a polynomial.
fn polynomial(
    emitter: &mut Emitter<'_>,
    coefficient: &Coefficient,
) -> Result<Polynomial, &'static str> {
    Ok(match coefficient {
        Coefficient::Fixed(pair) => Polynomial { parts: vec![Some(*pair)], rounded: Rounded::Not },
        Coefficient::Polynomial(polynomial) => polynomial.clone(),
        Coefficient::Table(table) => {
            let number = |difference: Double| {
                let is_there = difference != Double::ZERO;
                is_there.then(|| emitter.number(difference.high, difference.low))
            };
            let (differences, rounded) = differences(table).ok_or(CHANGES)?;
            Polynomial { parts: differences.into_iter().map(number).collect(), rounded }
        }
    })
}

fn sum(emitter: &mut Emitter<'_>, a: &Polynomial, b: &Polynomial) -> Polynomial {
    let at = |of: &Polynomial, degree: usize| of.parts.get(degree).copied().flatten();
    let degrees = 0..a.parts.len().max(b.parts.len());
    let parts = degrees.map(|degree| emitter.sum(at(a, degree), at(b, degree))).collect();
    let mut rounded = a.rounded.max(b.rounded);
    // The sum may be near zero where what is rounded is not.
    let changes = |of: &Polynomial| of.parts.len() > 1;
    if rounded != Rounded::Not && changes(a) && changes(b) {
        rounded = Rounded::Anywhere;
    }
    Polynomial { parts, rounded }
}

/// The product: C(i, j)·C(i, k) is the sum of m!/((m−j)!·(m−k)!·(j+k−m)!)·C(i, m).
fn product(
    emitter: &mut Emitter<'_>,
    a: &Polynomial,
    b: &Polynomial,
) -> Result<Polynomial, &'static str> {
    let factorial = |n: usize| (1..=n).map(|k| k as f64).product::<f64>();
    let mut total: Vec<Option<Pair>> = Vec::new();
    for (j, &of_a) in a.parts.iter().enumerate() {
        for (k, &of_b) in b.parts.iter().enumerate() {
            let (Some(of_a), Some(of_b)) = (of_a, of_b) else { continue };
            if j + k > DEGREE {
                return Err(CHANGES);
            }
            let whole = emitter.product(of_a, of_b);
            total.resize(total.len().max(j + k + 1), None);
            for (m, total) in total.iter_mut().enumerate().take(j + k + 1).skip(j.max(k)) {
                let ways = factorial(m) / factorial(m - j) / factorial(m - k);
                let ways = emitter.number(ways / factorial(j + k - m), 0.0);
                let part = emitter.product(whole, ways);
                *total = emitter.sum(*total, Some(part));
            }
        }
    }
    Ok(Polynomial { parts: total, rounded: a.rounded.max(b.rounded) })
}

/// The polynomial in `most` less the iteration number: C(n−i, k) is the sum of
/// (−1)ᵐ·C(n−m, k−m)·C(i, m).
pub(super) fn turned(
    emitter: &mut Emitter<'_>,
    polynomial: &Polynomial,
    most: usize,
) -> Polynomial {
    let Polynomial { parts, rounded } = polynomial;
    let mut total: Vec<Option<Pair>> = vec![None; parts.len()];
    for (k, &part) in parts.iter().enumerate() {
        let Some(part) = part else { continue };
        for (m, total) in total.iter_mut().enumerate().take(k + 1) {
            let mut ways = Double::from(if m % 2 == 0 { 1.0 } else { -1.0 });
            for j in 0..k - m {
                let left = most as f64 - m as f64 - j as f64;
                ways = ways * left.into() / ((j + 1) as f64).into();
            }
            if ways != Double::ZERO {
                let ways = emitter.number(ways.high, ways.low);
                let part = emitter.product(part, ways);
                *total = emitter.sum(*total, Some(part));
            }
        }
    }
    Polynomial { parts: total, rounded: *rounded }
}

/// The differences at zero of the polynomial that `table` is, if it is one of a small degree,
/// or that it is next to, if that is a line.
pub(super) fn differences(table: &[Double]) -> Option<(Vec<Double>, Rounded)> {
    if let Some(exact) = exact_differences(table) {
        return Some((exact, Rounded::Not));
    }
    let Line { first, step, is_exact } = line(table)?;
    let rounded = match (is_exact, first.high.abs() <= 2.0 * step.high.abs()) {
        (true, _) => Rounded::Not,
        (false, true) => Rounded::FromZero,
        (false, false) => Rounded::Anywhere,
    };
    Some((vec![first, step], rounded))
}

fn exact_differences(table: &[Double]) -> Option<Vec<Double>> {
    let mut row: Vec<Double> = table.iter().take(DEGREE + 1).copied().collect();
    let mut differences = Vec::new();
    while let Some(&first) = row.first() {
        differences.push(first);
        row = row.windows(2).map(|pair| pair[1] - pair[0]).collect();
    }
    while differences.last() == Some(&Double::ZERO) {
        differences.pop();
    }
    // Any so few numbers would be a polynomial.
    if differences.len() >= table.len() && table.len() > 1 {
        return None;
    }
    let at = |i: usize| {
        let (mut sum, mut binomial) = (Double::ZERO, 1.0);
        for (degree, &difference) in differences.iter().enumerate() {
            sum = sum + difference * binomial.into();
            binomial = binomial * (i as f64 - degree as f64) / (degree as f64 + 1.0);
        }
        sum
    };
    table.iter().enumerate().all(|(i, &number)| number == at(i)).then_some(differences)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polynomials_are_known_by_their_differences() {
        let table = |f: fn(f64) -> f64| -> Vec<Double> {
            (0..50).map(|i| Double::from(f(f64::from(i)))).collect()
        };
        let known =
            |f| exact_differences(&table(f)).map(|all| all.iter().map(|d| d.rounded()).collect());
        assert_eq!(known(|i| i), Some(vec![0.0, 1.0]));
        assert_eq!(known(|i| 2.0 * i * i - 5.0), Some(vec![-5.0, 2.0, 4.0]));
        assert_eq!(known(|i| i * i * i), Some(vec![0.0, 1.0, 6.0, 6.0]));
        assert_eq!(known(|i| i.powi(5)), None::<Vec<f64>>);
        assert_eq!(known(|i| if i < 40.0 { i } else { 0.0 }), None);
        assert_eq!(exact_differences(&table(|i| i)[..2]), None);
        let rounded = |f| differences(&table(f)).map(|(_, rounded)| rounded);
        assert_eq!(rounded(|i| i / 4.0), Some(Rounded::Not));
        assert_eq!(rounded(|i| (i + 2.0) / 3.0), Some(Rounded::FromZero));
        assert_eq!(rounded(|i| (49.0 - i) / 3.0), Some(Rounded::Anywhere));
        assert_eq!(differences(&table(|i| i * i / 3.0)), None);
    }
}
