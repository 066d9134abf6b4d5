//! The programs of the suite as data: thin loops over a state, each with its trip counts and a
//! generator of inputs.

mod cancelled;
mod combined;
mod coupled;
mod exits;
mod extremes;
mod index;
mod nested;
mod rounded;
mod scalar;
mod shared;
mod sums;
mod systems;

use phigrad::Var;
use phigrad::internals::Random;

use super::examine::Examined;
use super::number::Number;

/// The method by which the reference computes a program.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Reference {
    /// By binary powering of the affine map of a step.
    Powers,
    /// Step by step.
    Steps,
}

/// A program: a loop over a state, with as little as possible around it.
pub trait Family: Sync {
    fn name(&self) -> String;

    /// The number of active inputs; the others of a point are inactive.
    fn inputs(&self) -> usize;

    /// The trip counts, for each of which a kernel is made.
    fn trips(&self) -> &'static [usize] {
        &[40, 127, 300, 1000]
    }

    fn reference(&self) -> Reference {
        Reference::Powers
    }

    /// The precision of the reference: powers amplify its rounding errors by up to 2⁵⁷⁷.
    fn bits(&self) -> usize {
        1024
    }

    /// The state before the loop.
    fn start<T: Number>(&self, x: &[T]) -> Vec<T>;

    /// The state after the iteration of this number.
    fn step<T: Number>(&self, x: &[T], state: &[T], index: usize) -> Vec<T>;

    /// The result of the program: an affine function of the state.
    fn output<T: Number>(&self, _x: &[T], state: &[T]) -> T {
        state[0]
    }

    /// The start of an extended state whose step is an affine map that does not use the index.
    fn affine_start<T: Number>(&self, x: &[T]) -> Vec<T> {
        self.start(x)
    }

    /// A step of that state.
    fn affine_step<T: Number>(&self, x: &[T], state: &[T]) -> Vec<T> {
        self.step(x, state, 0)
    }

    /// Captured data: constants that follow the inputs of the program.
    fn captured(&self, _trips: usize) -> Vec<f64> {
        Vec::new()
    }

    /// Inputs for this trip count.
    fn point(&self, trips: usize, random: &mut Random) -> Vec<f64>;

    /// The program on the tape, where `x` are inputs and captured data.
    fn run(&self, trips: usize, x: &[Var]) -> Var {
        let step = |state: Vec<Var>, index| self.step(x, &state, index);
        let state = (0..trips).fold(self.start(x), step);
        self.output(x, &state)
    }

    /// The number of iterations at a point; `None` if rounding decides it.
    fn steps(&self, trips: usize, _point: &[f64]) -> Option<usize> {
        Some(trips)
    }

    /// The number of profiling runs before the kernel is compiled.
    fn profiled(&self) -> usize {
        1
    }
}

/// All families.
pub fn all() -> Vec<Box<dyn Examined>> {
    let lists = [
        scalar::all(),
        systems::all(),
        coupled::all(),
        index::all(),
        nested::all(),
        rounded::all(),
        combined::all(),
        extremes::all(),
        sums::all(),
        shared::all(),
        cancelled::all(),
        exits::all(),
    ];
    lists.into_iter().flatten().collect()
}

/// Boxes families for the table.
macro_rules! table {
    ($($family:expr),* $(,)?) => {
        pub fn all() -> Vec<Box<dyn $crate::contract::examine::Examined>> {
            vec![$(Box::new($family)),*]
        }
    };
}
use table;

/// A power of ten with an exponent of this range.
fn decade(random: &mut Random, low: f64, high: f64) -> f64 {
    10f64.powf(random.uniform(low, high))
}

fn sign(random: &mut Random) -> f64 {
    random.pick(&[1.0, -1.0])
}

/// True if powers of `ratio` stay in a range that the reference can resolve.
fn is_tame(ratio: f64, trips: usize) -> bool {
    trips as f64 * ratio.abs().ln() < 400.0
}

/// Ratios of geometric sequences: near ±1, of all sizes, tiny and zero.
fn ratio(random: &mut Random, trips: usize) -> f64 {
    const KNOWN: [f64; 24] = [
        0.0, 1e-300, -1e-300, 1e-8, -1e-8, 0.5, -0.5, 0.9, -0.9, 0.999, -0.999, 1.0, 1.0001, 1.01,
        2.0, 0.9312345, -1.0, -1.0001, -0.9312345, 3.0, -2.5, 1e4, 1.001, 0.97,
    ];
    loop {
        let near = decade(random, -15.0, -1.0);
        let ratio = match random.below(8) {
            0..3 => random.pick(&KNOWN),
            3 => random.pick(&KNOWN) * 0.99993,
            4 => sign(random) * (1.0 - near),
            5 => sign(random) * (1.0 + near),
            6 => random.uniform(-1.2, 1.2),
            _ => sign(random) * decade(random, -8.0, 0.3),
        };
        if is_tame(ratio, trips) {
            return ratio;
        }
    }
}

/// A number of any usual size.
fn any(random: &mut Random) -> f64 {
    match random.below(4) {
        0 => random.pick(&[0.0, 1.0, -0.77, 1e-6, -2.2e3, 0.3]),
        _ => sign(random) * decade(random, -8.0, 4.0),
    }
}
