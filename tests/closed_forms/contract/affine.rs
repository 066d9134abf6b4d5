//! Affine forms of a loop's state, and powers of affine maps: n steps by log₂ n squarings.

use std::ops::{Add, Div, Mul, Neg, Sub};

use super::arithmetic::Arithmetic;
use super::number::Number;
use super::reverse::Node;

/// The largest number of states.
const STATES: usize = 6;

/// `None` is zero.
type Term<N> = Option<Node<N>>;

/// An affine form of the state of a loop: Σ cᵢ·zᵢ + constant.
pub struct Affine<N> {
    coefficients: [Term<N>; STATES],
    constant: Term<N>,
}

impl<N> Clone for Affine<N> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<N> Copy for Affine<N> {}

fn sum<N: Arithmetic>(a: Term<N>, b: Term<N>) -> Term<N> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a + b),
        (a, None) => a,
        (None, b) => b,
    }
}

fn product<N: Arithmetic>(a: Term<N>, b: Term<N>) -> Term<N> {
    Some(a? * b?)
}

impl<N: Arithmetic> Affine<N> {
    /// The form that does not depend on the state.
    pub fn constant(value: Node<N>) -> Self {
        Affine { coefficients: [None; STATES], constant: Some(value) }
    }

    /// The state of this number.
    fn state(number: usize) -> Self {
        let mut form = Affine { coefficients: [None; STATES], constant: None };
        form.coefficients[number] = Some(Node::from(1.0));
        form
    }

    fn is_constant(&self) -> bool {
        self.coefficients.iter().all(Option::is_none)
    }

    fn each(self, change: impl Fn(Node<N>) -> Node<N>) -> Self {
        let coefficients = self.coefficients.map(|c| c.map(&change));
        Affine { coefficients, constant: self.constant.map(&change) }
    }
}

impl<N: Arithmetic> From<f64> for Affine<N> {
    fn from(x: f64) -> Self {
        Affine::constant(Node::from(x))
    }
}

impl<N: Arithmetic> Add for Affine<N> {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        let coefficient = |i: usize| sum(self.coefficients[i], other.coefficients[i]);
        let coefficients = std::array::from_fn(coefficient);
        Affine { coefficients, constant: sum(self.constant, other.constant) }
    }
}

impl<N: Arithmetic> Sub for Affine<N> {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        self + -other
    }
}

impl<N: Arithmetic> Neg for Affine<N> {
    type Output = Self;

    fn neg(self) -> Self {
        self.each(|term| -term)
    }
}

impl<N: Arithmetic> Mul for Affine<N> {
    type Output = Self;

    fn mul(self, other: Self) -> Self {
        let (form, factor) = if self.is_constant() { (other, self) } else { (self, other) };
        assert!(factor.is_constant(), "a product of states is not affine");
        match factor.constant {
            Some(factor) => form.each(|term| term * factor),
            None => factor,
        }
    }
}

impl<N: Arithmetic> Div for Affine<N> {
    type Output = Self;

    fn div(self, other: Self) -> Self {
        assert!(other.is_constant(), "a quotient by a state is not affine");
        let divisor = other.constant.unwrap();
        self.each(|term| term / divisor)
    }
}

impl<N: Arithmetic> Number for Affine<N> {
    fn exponential(self) -> Self {
        unreachable!("an exponential is not affine")
    }

    fn logarithm(self) -> Self {
        unreachable!("a logarithm is not affine")
    }

    /// An inner loop is a power of an affine map whose coefficients are loop invariants.
    fn repeat(count: usize, state: Vec<Self>, step: impl Fn(&[Self]) -> Vec<Self>) -> Vec<Self> {
        let power = Map::of(state.len(), step).power(count);
        let apply = |(row, offset): (&Vec<Term<N>>, &Term<N>)| {
            let start = Affine { coefficients: [None; STATES], constant: *offset };
            let terms = row.iter().zip(&state);
            terms.fold(start, |all, (&c, &z)| c.map_or(all, |c| all + Affine::constant(c) * z))
        };
        power.matrix.iter().zip(&power.offset).map(apply).collect()
    }
}

/// The affine map of one step: z ↦ matrix·z + offset.
#[derive(Clone)]
pub struct Map<N> {
    matrix: Vec<Vec<Term<N>>>,
    offset: Vec<Term<N>>,
}

impl<N: Arithmetic> Map<N> {
    /// The map of `step`.
    pub fn of(states: usize, step: impl FnOnce(&[Affine<N>]) -> Vec<Affine<N>>) -> Self {
        let state: Vec<Affine<N>> = (0..states).map(Affine::state).collect();
        let next = step(&state);
        assert!(next.len() == states && states <= STATES, "{} of {states} states", next.len());
        let matrix = next.iter().map(|form| form.coefficients[..states].to_vec()).collect();
        Map { matrix, offset: next.iter().map(|form| form.constant).collect() }
    }

    fn apply(&self, state: &[Term<N>]) -> Vec<Term<N>> {
        let row = |(row, &offset): (&Vec<Term<N>>, &Term<N>)| {
            let products = row.iter().zip(state).map(|(&c, &z)| product(c, z));
            products.fold(offset, sum)
        };
        self.matrix.iter().zip(&self.offset).map(row).collect()
    }

    /// First `other`, then this map.
    fn after(&self, other: &Self) -> Self {
        let entry = |row: &Vec<Term<N>>, column: usize| {
            let products = row.iter().zip(&other.matrix).map(|(&c, row)| product(c, row[column]));
            products.fold(None, sum)
        };
        let columns = 0..self.offset.len();
        let row = |row| columns.clone().map(|column| entry(row, column)).collect();
        let matrix = self.matrix.iter().map(row).collect();
        Map { matrix, offset: self.apply(&other.offset) }
    }

    /// The state after `count` steps.
    pub fn advance(mut self, mut state: Vec<Term<N>>, mut count: usize) -> Vec<Term<N>> {
        while count > 0 {
            if count & 1 == 1 {
                state = self.apply(&state);
            }
            count >>= 1;
            if count > 0 {
                self = self.after(&self);
            }
        }
        state
    }

    /// The map of `count` steps, of which there are some.
    fn power(mut self, mut count: usize) -> Self {
        let mut all: Option<Map<N>> = None;
        while count > 1 {
            if count & 1 == 1 {
                all = Some(all.map_or_else(|| self.clone(), |all| self.after(&all)));
            }
            count >>= 1;
            self = self.after(&self);
        }
        all.map_or_else(|| self.clone(), |all| self.after(&all))
    }
}
