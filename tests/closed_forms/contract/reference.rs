//! The exact value and partials of a program: by powers of the affine map of its step, or step by
//! step, over any arithmetic of the reverse tape.

use super::affine::{Affine, Map};
use super::arithmetic::Arithmetic;
use super::families::{Family, Reference};
use super::number::Number;
use super::reverse::{Node, differentiate};

/// The inputs of a program, then its captured data.
fn with_captured<T: Number>(family: &impl Family, trips: usize, x: &[T]) -> Vec<T> {
    let captured = family.captured(trips).into_iter().map(T::from);
    x.iter().copied().chain(captured).collect()
}

/// The partials and at last the value, with `steps` iterations of a loop of `trips`.
pub fn exact<N: Arithmetic>(
    family: &impl Family,
    how: Reference,
    (trips, steps): (usize, usize),
    point: &[f64],
) -> Vec<N> {
    let mut all = differentiate::<N>(point, |x| match how {
        Reference::Powers => by_powers(family, trips, steps, x),
        Reference::Steps => {
            let x = with_captured(family, trips, x);
            let step = |state: Vec<Node<N>>, index| family.step(&x, &state, index);
            let state = (0..steps).fold(family.start(&x), step);
            family.output(&x, &state)
        }
    });
    // The partials by inactive inputs are not wanted.
    all.drain(family.inputs()..point.len());
    all
}

fn by_powers<N: Arithmetic>(
    family: &impl Family,
    trips: usize,
    steps: usize,
    x: &[Node<N>],
) -> Node<N> {
    let x = with_captured(family, trips, x);
    let start = family.affine_start(&x);
    let constants: Vec<Affine<N>> = x.iter().map(|&x| Affine::constant(x)).collect();
    let map = Map::of(start.len(), |state| family.affine_step(&constants, state));
    let state = map.advance(start.into_iter().map(Some).collect(), steps);
    let state: Vec<Node<N>> =
        state.into_iter().map(|z| z.unwrap_or_else(|| Node::from(0.0))).collect();
    family.output(&x, &state)
}

/// The program's output without any iteration, in double precision.
pub fn output_at_start(family: &impl Family, trips: usize, point: &[f64]) -> f64 {
    let x = with_captured(family, trips, point);
    family.output(&x, &family.start(&x))
}
