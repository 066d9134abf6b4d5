//! Brachistochrone: travel time along straight sections between two fixed
//! points; the inputs are the interior heights.

use super::{Program, Scalar};

const GRAVITY: f64 = 9.8;
const X_START: f64 = 0.0;
const X_END: f64 = 4.0;
const Y_START: f64 = 1.0;
const Y_END: f64 = 0.0;

/// A path of that many sections.
pub struct Brachistochrone {
    sections: usize,
}

/// Time to slide down the path with the interior heights `heights`.
fn travel_time<T: Scalar>(heights: &[T], sections: usize) -> T {
    let dx = (X_END - X_START) / sections as f64;
    let start: T = Y_START.into();
    let mut y = vec![start];
    y.extend_from_slice(heights);
    y.push(Y_END.into());
    let mut total = T::zero();
    for i in 1..=sections {
        let v0 = ((start - y[i - 1]) * (2.0 * GRAVITY)).sqrt();
        let v1 = ((start - y[i]) * (2.0 * GRAVITY)).sqrt();
        let dy = y[i] - y[i - 1];
        let distance = (dy * dy + dx * dx).sqrt();
        total = total + distance / ((v0 + v1) / 2.0);
    }
    total
}

/// Buffers of the hand-written functions, one element for each height.
pub struct Work {
    y: Vec<f64>,
    speed: Vec<f64>,
    inverse_speed: Vec<f64>,
    /// Derivative of a section's time by its height difference.
    by_dy: Vec<f64>,
    /// Derivative of a section's time by either of its speeds, times -g.
    by_speed: Vec<f64>,
}

impl Program for Brachistochrone {
    const NAME: &'static str = "Brachistochrone";
    type Config = usize;
    const CONFIGS: &'static [usize] = &[200, 400, 1000];
    type Work = Work;

    fn new(sections: usize) -> Self {
        Brachistochrone { sections }
    }

    fn work(&self) -> Work {
        let zeros = vec![0.0; self.sections + 1];
        Work {
            y: zeros.clone(),
            speed: zeros.clone(),
            inverse_speed: zeros.clone(),
            by_dy: zeros.clone(),
            by_speed: zeros,
        }
    }

    fn objective<T: Scalar>(&self, x: &[T]) -> T {
        travel_time(x, self.sections)
    }

    fn primal(&self, x: &[f64], work: &mut Work) -> f64 {
        let n = x.len() + 1;
        let dx = (X_END - X_START) / n as f64;
        let y = &mut work.y[..=n];
        y[0] = Y_START;
        y[1..n].copy_from_slice(x);
        y[n] = Y_END;
        let mut total = 0.0;
        for ends in y.windows(2) {
            let v0 = (2.0 * GRAVITY * (Y_START - ends[0])).sqrt();
            let v1 = (2.0 * GRAVITY * (Y_START - ends[1])).sqrt();
            let dy = ends[1] - ends[0];
            let distance = (dx * dx + dy * dy).sqrt();
            total += distance / ((v0 + v1) / 2.0);
        }
        total
    }

    /// Three passes (speeds, sections, gradient) without a sum across
    /// elements, because such loops are vectorised by the compiler.
    fn hand_gradient(&self, x: &[f64], gradient: &mut [f64], work: &mut Work) {
        let n = x.len() + 1;
        let dx = (X_END - X_START) / n as f64;
        let dx2 = dx * dx;
        // Slices of known length let the compiler drop the bounds checks.
        let y = &mut work.y[..n + 1];
        let speed = &mut work.speed[..n + 1];
        let inverse_speed = &mut work.inverse_speed[..n + 1];
        let by_dy = &mut work.by_dy[..n];
        let by_speed = &mut work.by_speed[..n];
        let gradient = &mut gradient[..n - 1];

        y[0] = Y_START;
        y[1..n].copy_from_slice(x);
        y[n] = Y_END;
        speed[0] = 0.0;
        for i in 1..n + 1 {
            speed[i] = (2.0 * GRAVITY * (Y_START - y[i])).sqrt();
            inverse_speed[i] = 1.0 / speed[i];
        }
        for i in 0..n {
            let dy = y[i + 1] - y[i];
            let distance = (dx2 + dy * dy).sqrt();
            let slowness = 2.0 / (speed[i + 1] + speed[i]);
            by_dy[i] = dy * slowness / distance;
            by_speed[i] = 0.5 * GRAVITY * distance * slowness * slowness;
        }
        for i in 0..n - 1 {
            gradient[i] =
                by_dy[i] - by_dy[i + 1] + inverse_speed[i + 1] * (by_speed[i] + by_speed[i + 1]);
        }
    }
}
