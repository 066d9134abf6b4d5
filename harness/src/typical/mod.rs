//! Small programs that branch as users' programs do, for counting how fast
//! kernels serve them.

use phigrad::Var;
use phigrad::internals::Random;

use decisions::{american_option, barrier_option, bisection, grades, stock, tariff};
use fits::{decision_tree, hidden_states, huber, k_means, kalman, newton, time_warping};
use simulations::{adaptive_steps, balls, controller, predators, projectile, queue, ray};

mod decisions;
mod fits;
mod simulations;

/// The function of a program.
pub type Function = dyn Fn(&[Var]) -> Var + Send + Sync;

/// A program with the point around which it is called and how far from it.
pub struct Typical {
    /// Its name.
    pub name: &'static str,
    /// The point.
    pub center: Vec<f64>,
    /// The largest distance of an input from that of the point.
    pub radius: f64,
    /// The function that is recorded.
    pub function: Box<Function>,
}

impl Typical {
    /// A program with these parts.
    pub fn new(name: &'static str, center: &[f64], radius: f64, function: Box<Function>) -> Self {
        Typical { name, center: center.to_vec(), radius, function }
    }
}

/// All of them, always with the same data.
pub fn programs() -> Vec<Typical> {
    let random = &mut Random::new(1 << 40);
    let mut table = |rows: usize, columns: usize| -> Vec<Vec<f64>> {
        (0..rows).map(|_| (0..columns).map(|_| random.uniform(0.0, 1.0)).collect()).collect()
    };
    let (draws, houses, loads) = (table(20, 12), table(40, 2), table(1, 30));
    let (gaps, curves, points) = (table(25, 2), table(2, 12), table(30, 2));
    let (measured, pairs) = (table(1, 50), table(40, 2));
    let (observed, demands) = (table(1, 30), table(1, 52));
    let of = Typical::new;
    vec![
        of("barrier option", &[1.0, 0.4, 0.05, 1.0, 1.3], 0.1, {
            Box::new(move |x| barrier_option(x, &draws))
        }),
        of("decision tree", &[0.4, 0.6, 0.3, 1.0, 2.0, 3.0, 4.0], 0.2, {
            Box::new(move |x| decision_tree(x, &houses))
        }),
        of("colliding balls", &[0.2, 0.5, 0.8, 0.6, -0.3, -0.5], 0.15, Box::new(balls)),
        of("adaptive step size", &[1.0, 0.2, 2.0], 0.3, Box::new(adaptive_steps)),
        of("Newton's method", &[1.5, 0.5, 2.5, 1.0], 0.4, Box::new(newton)),
        of("tariff", &[0.2, 0.5, 0.8, 1.0, 2.0, 4.0], 0.15, {
            Box::new(move |x| tariff(x, &loads[0]))
        }),
        of("queue", &[0.5, 0.9, 1.1], 0.2, Box::new(move |x| queue(x, &gaps))),
        of("time warping", &[1.0, 0.1, 0.3], 0.3, {
            Box::new(move |x| time_warping(x, &curves[0], &curves[1]))
        }),
        of("k-means", &[0.2, 0.2, 0.8, 0.3, 0.5, 0.8], 0.2, Box::new(move |x| k_means(x, &points))),
        of("grades", &[0.1, 0.3, 0.5, 0.7, 0.9], 0.3, Box::new(grades)),
        of("American option", &[1.0, 0.3, 0.05, 1.1], 0.1, Box::new(american_option)),
        of("projectile", &[3.0, 4.0, 0.3, 0.7], 0.2, Box::new(projectile)),
        of("predators", &[1.1, 0.4, 0.4, 0.4], 0.1, Box::new(predators)),
        of("Kalman filter", &[0.4, 0.2, 2.0], 0.1, Box::new(move |x| kalman(x, &measured[0]))),
        of("controller", &[1.0, 0.5, 0.6], 0.3, Box::new(controller)),
        of("Huber's loss", &[0.5, 0.2, 0.2], 0.15, Box::new(move |x| huber(x, &pairs))),
        of("rate of return", &[1.0, 0.8, 1.2, 1.0, 0.9], 0.3, Box::new(bisection)),
        of("ray marching", &[0.0, 0.2, 0.3, 0.8], 0.2, Box::new(ray)),
        of("hidden states", &[0.8, 0.7, 0.3, 0.7], 0.1, {
            Box::new(move |x| hidden_states(x, &observed[0]))
        }),
        of("stock", &[1.0, 1.0, 1.0], 0.3, Box::new(move |x| stock(x, &demands[0]))),
    ]
}
