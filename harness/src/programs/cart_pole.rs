//! CartPole: a small neural network pushes a cart to keep the pole on it
//! upright; the inputs are the network's weights.

use super::{Program, Scalar};

const HIDDEN: usize = 16;
const STATES: usize = 4;

/// The offsets of the weights: first layer (row by row), its biases, second layer;
/// last comes the second bias.
const BIAS1: usize = HIDDEN * STATES;
const LAYER2: usize = BIAS1 + HIDDEN;
const BIAS2: usize = LAYER2 + HIDDEN;
const WEIGHTS: usize = BIAS2 + 1;

/// Position and angle, each followed by its velocity.
const START: [f64; STATES] = [0.02, -0.03, 0.2, 0.8];

const GRAVITY: f64 = 9.8;
const CART_MASS: f64 = 1.0;
const POLE_MASS: f64 = 0.1;
const TOTAL_MASS: f64 = CART_MASS + POLE_MASS;
const LENGTH: f64 = 0.5;
const TAU: f64 = 0.02;
const MAX_FORCE: f64 = 10.0;
/// The pole's part in swing and reaction.
const SHARE: f64 = POLE_MASS * LENGTH / TOTAL_MASS;
/// Beyond these the loss grows faster.
const X_LIMIT: f64 = 2.4;
const ANGLE_LIMIT: f64 = 0.2095;

/// A run of that many steps.
pub struct CartPole {
    steps: usize,
}

/// The network: one hidden layer with tanh, one output.
#[phigrad::traced]
fn policy<T: Scalar>(weights: &[T], state: &[T; STATES]) -> T {
    let mut out = weights[BIAS2];
    for j in 0..HIDDEN {
        let mut z = weights[BIAS1 + j];
        for i in 0..STATES {
            z = z + weights[j * STATES + i] * state[i];
        }
        out = out + weights[LAYER2 + j] * z.tanh();
    }
    out
}

/// One explicit Euler step with the push `action`: the state after it.
#[phigrad::traced]
fn advance<T: Scalar>(state: &[T; STATES], action: T) -> [T; STATES] {
    let [x, x_dot, angle, angle_dot] = *state;
    let mut push = action;
    if action > 1.0 {
        push = T::one();
    } else if action < -1.0 {
        push = -T::one();
    }
    let (cos, sin) = (angle.cos(), angle.sin());
    let swing = angle_dot * (POLE_MASS * LENGTH) * angle_dot * sin;
    let pull = (push * MAX_FORCE + swing) / TOTAL_MASS;
    let four_thirds: T = (4.0 / 3.0).into();
    let inertia = (four_thirds - cos * POLE_MASS * cos / TOTAL_MASS) * LENGTH;
    let angle_acc = (sin * GRAVITY - cos * pull) / inertia;
    let x_acc = pull - angle_acc * (POLE_MASS * LENGTH) * cos / TOTAL_MASS;
    [x + x_dot * TAU, x_dot + x_acc * TAU, angle + angle_dot * TAU, angle_dot + angle_acc * TAU]
}

/// The cost of a state.
#[phigrad::traced]
fn cost<T: Scalar>(state: &[T; STATES]) -> T {
    let (x, angle) = (state[0], state[2]);
    let mut loss = angle * angle + x * 0.1 * x;
    if x.abs() > X_LIMIT {
        let excess = x.abs() - X_LIMIT;
        loss = loss + excess * 10.0 * excess;
    }
    if angle.abs() > ANGLE_LIMIT {
        let excess = angle.abs() - ANGLE_LIMIT;
        loss = loss + excess * 100.0 * excess;
    }
    loss
}

/// The cost of a run.
#[phigrad::traced]
fn loss_of_run<T: Scalar>(weights: &[T], steps: usize) -> T {
    let mut state: [T; STATES] = START.map(|s| s.into());
    let mut total = T::zero();
    for _ in 0..steps {
        let action = policy(weights, &state);
        state = advance(&state, action);
        total = total + cost(&state);
    }
    total
}

impl Program for CartPole {
    const NAME: &'static str = "CartPole";
    type Config = usize;
    const CONFIGS: &'static [usize] = &[6, 8, 10];
    /// The values of a step that the reverse sweep needs.
    type Work = Vec<Step>;

    fn new(steps: usize) -> Self {
        CartPole { steps }
    }

    fn work(&self) -> Vec<Step> {
        vec![Step::default(); self.steps]
    }

    fn objective<T: Scalar>(&self, x: &[T]) -> T {
        loss_of_run(x, self.steps)
    }

    fn primal(&self, x: &[f64], _: &mut Vec<Step>) -> f64 {
        let weights = &x[..WEIGHTS];
        let rows = weights[..BIAS1].as_chunks::<STATES>().0;
        let (mut state, mut total) = (START, 0.0);
        for _ in 0..self.steps {
            let mut action = weights[BIAS2];
            for j in 0..HIDDEN {
                let mut z = weights[BIAS1 + j];
                for i in 0..STATES {
                    z += rows[j][i] * state[i];
                }
                action += weights[LAYER2 + j] * z.tanh();
            }
            let [x, x_dot, angle, angle_dot] = state;
            let force = MAX_FORCE * action.clamp(-1.0, 1.0);
            let (sin, cos) = angle.sin_cos();
            let pull = (force + POLE_MASS * LENGTH * angle_dot * angle_dot * sin) / TOTAL_MASS;
            let inertia = LENGTH * (4.0 / 3.0 - POLE_MASS * cos * cos / TOTAL_MASS);
            let angle_acc = (GRAVITY * sin - cos * pull) / inertia;
            let x_acc = pull - POLE_MASS * LENGTH * angle_acc * cos / TOTAL_MASS;
            let (x, angle) = (x + TAU * x_dot, angle + TAU * angle_dot);
            state = [x, x_dot + TAU * x_acc, angle, angle_dot + TAU * angle_acc];
            let mut loss = angle * angle + 0.1 * x * x;
            if x.abs() > X_LIMIT {
                loss += 10.0 * (x.abs() - X_LIMIT) * (x.abs() - X_LIMIT);
            }
            if angle.abs() > ANGLE_LIMIT {
                loss += 100.0 * (angle.abs() - ANGLE_LIMIT) * (angle.abs() - ANGLE_LIMIT);
            }
            total += loss;
        }
        total
    }

    /// The forward pass has the first layer transposed, the reverse sweep has not, so
    /// that the loops of both are vectorised. The last action moves neither
    /// position nor angle before the run ends, so the network is not asked for it.
    fn hand_gradient(&self, x: &[f64], gradient: &mut [f64], steps: &mut Vec<Step>) {
        let network = Network::read(x);
        let mut state = START;
        let last = steps.len() - 1;
        for step in &mut steps[..last] {
            state = step.forward(&network, state);
        }
        steps[last].state = state;

        gradient.fill(0.0);
        let mut weights = Weights { values: &x[..WEIGHTS], bars: &mut gradient[..WEIGHTS] };
        let [x, x_dot, angle, angle_dot] = state;
        let [x_bar, angle_bar] = cost_slopes(x + TAU * x_dot, angle + TAU * angle_dot);
        let mut bar = [x_bar, TAU * x_bar, angle_bar, TAU * angle_bar];
        for pair in steps.windows(2).rev() {
            let [x, _, angle, _] = pair[1].state;
            let [x_slope, angle_slope] = cost_slopes(x, angle);
            bar[0] += x_slope;
            bar[2] += angle_slope;
            pair[0].backward(&mut weights, &mut bar);
        }
    }
}

/// Derivatives of a state's cost by position and angle.
fn cost_slopes(x: f64, angle: f64) -> [f64; 2] {
    let (mut x_slope, mut angle_slope) = (0.2 * x, 2.0 * angle);
    if x.abs() > X_LIMIT {
        x_slope += 20.0 * (x - X_LIMIT.copysign(x));
    }
    if angle.abs() > ANGLE_LIMIT {
        angle_slope += 200.0 * (angle - ANGLE_LIMIT.copysign(angle));
    }
    [x_slope, angle_slope]
}

/// The weights for the forward pass, with the first layer transposed.
struct Network {
    layer1: [[f64; HIDDEN]; STATES],
    bias1: [f64; HIDDEN],
    layer2: [f64; HIDDEN],
    bias2: f64,
}

impl Network {
    fn read(x: &[f64]) -> Network {
        let x = &x[..WEIGHTS];
        Network {
            layer1: std::array::from_fn(|i| std::array::from_fn(|j| x[j * STATES + i])),
            bias1: std::array::from_fn(|j| x[BIAS1 + j]),
            layer2: std::array::from_fn(|j| x[LAYER2 + j]),
            bias2: x[BIAS2],
        }
    }
}

/// The weights and their adjoints for the reverse sweep.
struct Weights<'a> {
    values: &'a [f64],
    bars: &'a mut [f64],
}

/// A step as the reverse sweep needs it: the state before it and what was
/// computed from it.
#[derive(Clone, Copy, Default)]
pub struct Step {
    state: [f64; STATES],
    hidden: [f64; HIDDEN],
    /// True if the action is within its bounds, so that it has an effect.
    free: bool,
    sin: f64,
    cos: f64,
    pull: f64,
    angle_acc: f64,
    inverse_inertia: f64,
}

impl Step {
    /// Takes the step from `state`; returns the state after it.
    fn forward(&mut self, network: &Network, state: [f64; STATES]) -> [f64; STATES] {
        let mut z = network.bias1;
        for (weights, s) in network.layer1.iter().zip(state) {
            for (z, weight) in z.iter_mut().zip(weights) {
                *z += weight * s;
            }
        }
        let mut action = network.bias2;
        for (j, z) in z.into_iter().enumerate() {
            self.hidden[j] = z.tanh();
            action += network.layer2[j] * self.hidden[j];
        }
        let [x, x_dot, angle, angle_dot] = state;
        let (sin, cos) = angle.sin_cos();
        let push = MAX_FORCE / TOTAL_MASS * action.clamp(-1.0, 1.0);
        let pull = push + SHARE * angle_dot * angle_dot * sin;
        let inverse_inertia = 1.0 / (LENGTH * 4.0 / 3.0 - SHARE * cos * cos);
        let angle_acc = (GRAVITY * sin - cos * pull) * inverse_inertia;
        let x_acc = pull - SHARE * angle_acc * cos;
        self.state = state;
        self.free = (-1.0..=1.0).contains(&action);
        (self.sin, self.cos, self.pull) = (sin, cos, pull);
        (self.angle_acc, self.inverse_inertia) = (angle_acc, inverse_inertia);
        [x + TAU * x_dot, x_dot + TAU * x_acc, angle + TAU * angle_dot, angle_dot + TAU * angle_acc]
    }

    /// Turns `bar`, the adjoint of the state after the step, into that of the
    /// state before it, and adds to the adjoints of the weights.
    fn backward(&self, weights: &mut Weights<'_>, bar: &mut [f64; STATES]) {
        let Step { state, hidden, free, sin, cos, pull, angle_acc, inverse_inertia } = *self;
        let angle_dot = state[3];
        let x_acc_bar = TAU * bar[1];
        let angle_acc_bar = TAU * bar[3] - SHARE * cos * x_acc_bar;
        let torque_bar = angle_acc_bar * inverse_inertia;
        let pull_bar = x_acc_bar - cos * torque_bar;
        let cos_bar =
            torque_bar * (2.0 * SHARE * cos * angle_acc - pull) - SHARE * angle_acc * x_acc_bar;
        let sin_bar = GRAVITY * torque_bar + SHARE * angle_dot * angle_dot * pull_bar;
        bar[1] += TAU * bar[0];
        bar[3] += TAU * bar[2] + 2.0 * SHARE * angle_dot * sin * pull_bar;
        bar[2] += sin_bar * cos - cos_bar * sin;
        if !free {
            return;
        }
        let action_bar = MAX_FORCE / TOTAL_MASS * pull_bar;
        let (layer1, rest) = weights.values.split_at(BIAS1);
        let layer2 = &rest[HIDDEN..2 * HIDDEN];
        let (layer1_bar, rest) = weights.bars.split_at_mut(BIAS1);
        let (bias1_bar, rest) = rest.split_at_mut(HIDDEN);
        let (layer2_bar, bias2_bar) = rest.split_at_mut(HIDDEN);
        let mut z_bar = [0.0; HIDDEN];
        for j in 0..HIDDEN {
            layer2_bar[j] += action_bar * hidden[j];
            z_bar[j] = action_bar * layer2[j] * (1.0 - hidden[j] * hidden[j]);
            bias1_bar[j] += z_bar[j];
        }
        bias2_bar[0] += action_bar;
        let rows = layer1.as_chunks::<STATES>().0;
        let rows_bar = layer1_bar.as_chunks_mut::<STATES>().0;
        for j in 0..HIDDEN {
            for i in 0..STATES {
                rows_bar[j][i] += z_bar[j] * state[i];
                bar[i] += z_bar[j] * rows[j][i];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::require_gradient_of_tape;
    use super::*;

    fn weights(scale: f64, bias: f64) -> Vec<f64> {
        let mut weights: Vec<f64> = (0..WEIGHTS).map(|i| scale * (3.0 * i as f64).sin()).collect();
        weights[BIAS2] = bias;
        weights
    }

    #[test]
    fn the_gradient_by_hand_is_right_for_runs_of_any_length() {
        for steps in [1, 2, 3, 40] {
            require_gradient_of_tape::<CartPole>(steps, &weights(0.2, 0.1));
        }
    }

    #[test]
    fn the_gradient_by_hand_is_right_beyond_all_bounds() {
        for bias in [-0.9, 0.9] {
            let steps = require_gradient_of_tape::<CartPole>(60, &weights(0.3, bias));
            let beyond = |at: usize, limit| steps.iter().any(|step| step.state[at].abs() > limit);
            assert!(beyond(0, X_LIMIT) && beyond(2, ANGLE_LIMIT), "{bias}");
            assert!(steps.iter().any(|step| step.free), "{bias}");
            assert!(!steps.iter().all(|step| step.free), "{bias}");
        }
    }
}
