//! Heat: a rod whose cells exchange heat in explicit steps, each with a source that
//! depends on its temperature; the inputs are the temperatures at the start and
//! the conductivity. The objective compares the end with a target.

use super::super::{Program, Scalar};
use super::Extra;

const STEPS: usize = 100;
/// Length of a step, in units of the square of a cell.
const STEP: f64 = 0.2;
const HEATING: f64 = 0.05;

/// The temperature that a cell should have at the end.
fn target(cell: usize, cells: usize) -> f64 {
    (core::f64::consts::TAU * cell as f64 / cells as f64).cos()
}

/// A rod of that many cells.
pub struct Heat {
    targets: Vec<f64>,
}

/// Temperatures before each step, and adjoints.
pub struct Work {
    history: Vec<f64>,
    adjoints: Vec<f64>,
    next: Vec<f64>,
}

/// The temperatures `next` after a step from `now`; the ends are insulated.
fn step(now: &[f64], conductivity: f64, next: &mut [f64]) {
    let last = now.len() - 1;
    let rate = STEP * conductivity;
    let after = |left: f64, here: f64, right: f64| {
        here + rate * (left - 2.0 * here + right) + STEP * HEATING * here * (1.0 - here * here)
    };
    next[0] = after(now[0], now[0], now[1]);
    for i in 1..last {
        next[i] = after(now[i - 1], now[i], now[i + 1]);
    }
    next[last] = after(now[last - 1], now[last], now[last]);
}

impl Heat {
    /// Fills the history; its last row is the end.
    fn run(&self, x: &[f64], work: &mut Work) {
        let cells = self.targets.len();
        work.history[..cells].copy_from_slice(&x[..cells]);
        for time in 0..STEPS {
            let (before, after) = work.history.split_at_mut((time + 1) * cells);
            step(&before[time * cells..], x[cells], &mut after[..cells]);
        }
    }
}

impl Program for Heat {
    const NAME: &'static str = "Heat";
    type Config = usize;
    const CONFIGS: &'static [usize] = &[1000];
    type Work = Work;

    fn new(cells: usize) -> Self {
        Heat { targets: (0..cells).map(|i| target(i, cells)).collect() }
    }

    fn work(&self) -> Work {
        let cells = self.targets.len();
        let zeros = vec![0.0; cells];
        Work { history: vec![0.0; (STEPS + 1) * cells], adjoints: zeros.clone(), next: zeros }
    }

    fn objective<T: Scalar>(&self, x: &[T]) -> T {
        let last = self.targets.len() - 1;
        let rate = x[last + 1] * STEP;
        let mut now = x[..=last].to_vec();
        let mut next = now.clone();
        for _ in 0..STEPS {
            for i in 0..=last {
                let (left, here, right) = (now[i.max(1) - 1], now[i], now[(i + 1).min(last)]);
                let source = here * (-(here * here) + 1.0) * (STEP * HEATING);
                next[i] = here + rate * (left - here * 2.0 + right) + source;
            }
            core::mem::swap(&mut now, &mut next);
        }
        let mut total = T::zero();
        for (&end, &target) in now.iter().zip(&self.targets) {
            total = total + (end - target) * (end - target);
        }
        total
    }

    fn primal(&self, x: &[f64], work: &mut Work) -> f64 {
        let cells = self.targets.len();
        let (now, next) = (&mut work.adjoints, &mut work.next);
        now.copy_from_slice(&x[..cells]);
        for _ in 0..STEPS {
            step(now, x[cells], next);
            core::mem::swap(now, next);
        }
        now.iter().zip(&self.targets).map(|(end, target)| (end - target).powi(2)).sum()
    }

    fn hand_gradient(&self, x: &[f64], gradient: &mut [f64], work: &mut Work) {
        self.run(x, work);
        let cells = self.targets.len();
        let last = cells - 1;
        let rate = STEP * x[cells];
        let Work { history, adjoints, next } = work;
        let ends = &history[STEPS * cells..];
        for ((adjoint, end), target) in adjoints.iter_mut().zip(ends).zip(&self.targets) {
            *adjoint = 2.0 * (end - target);
        }
        let mut by_rate = 0.0;
        for now in history[..STEPS * cells].chunks_exact(cells).rev() {
            let by_own = |here: f64| 1.0 + STEP * HEATING * (1.0 - 3.0 * here * here);
            // The matrix of the exchange is symmetric.
            let exchange =
                |of: &[f64], i: usize| of[i.max(1) - 1] - 2.0 * of[i] + of[(i + 1).min(last)];
            for i in [0, last] {
                by_rate += adjoints[i] * exchange(now, i);
                next[i] = by_own(now[i]) * adjoints[i] + rate * exchange(adjoints, i);
            }
            for i in 1..last {
                by_rate += adjoints[i] * (now[i - 1] - 2.0 * now[i] + now[i + 1]);
                let exchanged = adjoints[i - 1] - 2.0 * adjoints[i] + adjoints[i + 1];
                next[i] = by_own(now[i]) * adjoints[i] + rate * exchanged;
            }
            core::mem::swap(adjoints, next);
        }
        gradient[..cells].copy_from_slice(adjoints);
        gradient[cells] = STEP * by_rate;
    }
}

impl Extra for Heat {
    fn point(&self) -> Vec<f64> {
        let cells = self.targets.len();
        let start = |i: usize| (3.0 * core::f64::consts::TAU * i as f64 / cells as f64).sin();
        (0..cells).map(start).chain([1.0]).collect()
    }
}
