//! The gradient of QWOP by hand: a reverse sweep over the steps.

use super::primal::{Points, clipped, minus, straighten, touch_floor};
use super::{
    BONE, BONE_ENDS, BONES, COMMANDS, DRAG, EFFORT_PRICE, FALLEN, FLOOR_DAMPING, FLOOR_STIFFNESS,
    FRICTION, GRAVITY, HEAD, KNEE_STIFFNESS, LEGS, MAX_SPEED, MAX_SPEED2, MUSCLE, MUSCLE_ENDS,
    MUSCLES, Material, PHASE_STEPS, PHASES, POINTS, POSE, Qwop, REACH, SLIP_SPEED, SOFTENING,
    START_SPEED, TIME_STEP,
};

/// a b + c, in one rounding where the target is known to have the instruction:
/// a call of `fma` elsewhere would be far slower than the two operations.
#[inline(always)]
fn multiply_add(a: f64, b: f64, c: f64) -> f64 {
    if cfg!(target_feature = "fma") { a.mul_add(b, c) } else { a * b + c }
}

/// Springs of one material: what the reverse sweep needs to know. With d and dv
/// the differences of the ends' positions and velocities, g that of the forces'
/// adjoints and h = g d, the adjoint of d is `pull` g + h `slope`, that of dv is
/// h `damping` d, and that of the rest length is -h `tension`.
#[derive(Clone, Copy)]
struct Springs<const N: usize> {
    pull: [f64; N],
    slope: [[f64; 2]; N],
    damping: [f64; N],
    tension: [f64; N],
}

impl<const N: usize> Default for Springs<N> {
    fn default() -> Self {
        Springs { pull: [0.0; N], slope: [[0.0; 2]; N], damping: [0.0; N], tension: [0.0; N] }
    }
}

impl<const N: usize> Springs<N> {
    /// Adds the pulls to `force`. Square roots and divisions have a loop of
    /// their own, which is vectorised across springs; the loops around it are
    /// vectorised by pairs x and y.
    #[inline(always)]
    fn forward(
        &mut self,
        position: &Points,
        velocity: &Points,
        force: &mut Points,
        ends: &[(usize, usize); N],
        rest: &[f64; N],
        material: &Material,
    ) {
        let (mut length2, mut approach, mut by_length) = ([0.0; N], [0.0; N], [0.0; N]);
        for (i, &(a, b)) in ends.iter().enumerate() {
            let [dx, dy] = minus(position[b], position[a]);
            let [dvx, dvy] = minus(velocity[b], velocity[a]);
            length2[i] = multiply_add(dx, dx, multiply_add(dy, dy, SOFTENING));
            approach[i] = multiply_add(dvx, dx, dvy * dy);
        }
        for i in 0..N {
            let length = length2[i].sqrt();
            let inverse = 1.0 / length;
            let damping = material.damping * inverse * inverse;
            let closing = damping * approach[i];
            let stretch = length - rest[i];
            let slack = material.slack * material.stiffness;
            let stiffness = if stretch > 0.0 { material.stiffness } else { slack };
            let tension = stiffness * inverse;
            let pull = multiply_add(tension, stretch, closing);
            by_length[i] = multiply_add(-inverse, pull + closing, tension) * inverse;
            self.pull[i] = pull;
            self.damping[i] = damping;
            self.tension[i] = tension;
        }
        for (i, &(a, b)) in ends.iter().enumerate() {
            let d = minus(position[b], position[a]);
            let dv = minus(velocity[b], velocity[a]);
            for k in 0..2 {
                self.slope[i][k] = multiply_add(by_length[i], d[k], self.damping[i] * dv[k]);
                force[a][k] = multiply_add(self.pull[i], d[k], force[a][k]);
                force[b][k] = multiply_add(-self.pull[i], d[k], force[b][k]);
            }
        }
    }

    /// Adds to the adjoints of positions and velocities; `by_rest` gets h `tension`.
    #[inline(always)]
    fn backward(
        &self,
        position: &Points,
        force_bar: &Points,
        position_bar: &mut Points,
        velocity_bar: &mut Points,
        ends: &[(usize, usize); N],
        by_rest: &mut [f64; N],
    ) {
        for i in 0..N {
            let (a, b) = ends[i];
            let d = minus(position[b], position[a]);
            let g = minus(force_bar[a], force_bar[b]);
            let h = multiply_add(g[0], d[0], g[1] * d[1]);
            let damped = h * self.damping[i];
            for k in 0..2 {
                let d_bar = multiply_add(self.pull[i], g[k], h * self.slope[i][k]);
                position_bar[b][k] += d_bar;
                position_bar[a][k] -= d_bar;
                velocity_bar[b][k] = multiply_add(damped, d[k], velocity_bar[b][k]);
                velocity_bar[a][k] = multiply_add(-damped, d[k], velocity_bar[a][k]);
            }
            by_rest[i] = multiply_add(h, self.tension[i], by_rest[i]);
        }
    }
}

/// A step as the reverse sweep needs it: the state before it and the springs.
#[derive(Clone, Copy, Default)]
pub struct Step {
    position: Points,
    velocity: Points,
    bones: Springs<BONES>,
    muscles: Springs<MUSCLES>,
    /// Velocities before the speed limit, if it had to act.
    limited: Option<Points>,
}

/// The gradient by hand, without the value: every step keeps the derivatives of
/// its springs, so that the reverse sweep needs neither square root nor division.
pub fn gradient(model: &Qwop, x: &[f64], gradient: &mut [f64], steps: &mut [Step]) {
    let commands = clipped(x);
    let rest: [[f64; MUSCLES]; PHASES] = std::array::from_fn(|phase| {
        let rest = |i| model.muscle_rest[i] * (1.0 + REACH * commands[phase * MUSCLES + i]);
        std::array::from_fn(rest)
    });
    let pace = model.masses.map(|mass| TIME_STEP / mass);
    let weight = model.masses.map(|mass| -GRAVITY * mass);

    let mut position = POSE;
    let mut velocity = [[START_SPEED, 0.0]; POINTS];
    for (t, step) in steps.iter_mut().enumerate() {
        (step.position, step.velocity) = (position, velocity);
        let rest = &rest[(t / PHASE_STEPS) % PHASES];
        step.forward(&model.bone_rest, rest, &weight, &pace, &mut position, &mut velocity);
    }

    let mass: f64 = model.masses.iter().sum();
    let mut position_bar = model.masses.map(|m| [-m / mass, 0.0]);
    let mut velocity_bar = [[0.0; 2]; POINTS];
    let mut by_rest = [[0.0; MUSCLES]; PHASES];
    let mut head = position[HEAD][1];
    for (t, step) in steps.iter().enumerate().rev() {
        if head < FALLEN {
            position_bar[HEAD][1] -= 10.0 * TIME_STEP * (FALLEN - head);
        }
        head = step.position[HEAD][1];
        let by_rest = &mut by_rest[(t / PHASE_STEPS) % PHASES];
        step.backward(&pace, &mut position_bar, &mut velocity_bar, by_rest);
    }
    let gradient = &mut gradient[..COMMANDS];
    for i in 0..COMMANDS {
        gradient[i] = 2.0 * EFFORT_PRICE * x[i];
        if (-1.0..=1.0).contains(&x[i]) {
            let muscle = i % MUSCLES;
            gradient[i] -= REACH * model.muscle_rest[muscle] * by_rest[i / MUSCLES][muscle];
        }
    }
}

impl Step {
    #[inline(always)]
    fn forward(
        &mut self,
        bone_rest: &[f64; BONES],
        muscle_rest: &[f64; MUSCLES],
        weight: &[f64; POINTS],
        pace: &[f64; POINTS],
        position: &mut Points,
        velocity: &mut Points,
    ) {
        let mut force: Points = std::array::from_fn(|i| {
            [-DRAG * velocity[i][0], multiply_add(-DRAG, velocity[i][1], weight[i])]
        });
        self.bones.forward(position, velocity, &mut force, &BONE_ENDS, bone_rest, &BONE);
        self.muscles.forward(position, velocity, &mut force, &MUSCLE_ENDS, muscle_rest, &MUSCLE);
        for (hip, knee, foot) in LEGS {
            let thigh = minus(position[knee], position[hip]);
            let shin = minus(position[foot], position[knee]);
            straighten(&mut force, knee, foot, thigh, shin);
        }
        for i in 0..POINTS {
            touch_floor(position[i], velocity[i], &mut force[i]);
        }
        let mut fast = false;
        for i in 0..POINTS {
            for k in 0..2 {
                velocity[i][k] = multiply_add(pace[i], force[i][k], velocity[i][k]);
            }
            let [vx, vy] = velocity[i];
            fast |= multiply_add(vx, vx, vy * vy) > MAX_SPEED2;
        }
        self.limited = None;
        if fast {
            self.limited = Some(*velocity);
            for v in velocity.iter_mut() {
                let speed2 = multiply_add(v[0], v[0], v[1] * v[1]);
                if speed2 > MAX_SPEED2 {
                    let factor = MAX_SPEED / speed2.sqrt();
                    *v = [v[0] * factor, v[1] * factor];
                }
            }
        }
        for i in 0..POINTS {
            for k in 0..2 {
                position[i][k] = multiply_add(TIME_STEP, velocity[i][k], position[i][k]);
            }
        }
    }

    /// Turns the adjoints of the state after the step into those of the state
    /// before it.
    #[inline(always)]
    fn backward(
        &self,
        pace: &[f64; POINTS],
        position_bar: &mut Points,
        velocity_bar: &mut Points,
        by_rest: &mut [f64; MUSCLES],
    ) {
        for i in 0..POINTS {
            for k in 0..2 {
                velocity_bar[i][k] =
                    multiply_add(TIME_STEP, position_bar[i][k], velocity_bar[i][k]);
            }
        }
        if let Some(raw) = &self.limited {
            for i in 0..POINTS {
                velocity_bar[i] = limit_back(raw[i], velocity_bar[i]);
            }
        }
        let mut force_bar = [[0.0; 2]; POINTS];
        for i in 0..POINTS {
            for k in 0..2 {
                force_bar[i][k] = pace[i] * velocity_bar[i][k];
                velocity_bar[i][k] = multiply_add(-DRAG, force_bar[i][k], velocity_bar[i][k]);
            }
        }
        let position = &self.position;
        for i in 0..POINTS {
            if position[i][1] < 0.0 {
                let bars = (&mut position_bar[i], &mut velocity_bar[i]);
                floor_back(position[i][1], self.velocity[i], force_bar[i], bars);
            }
        }
        for (hip, knee, foot) in LEGS {
            let [ax, ay] = minus(position[knee], position[hip]);
            let [bx, by] = minus(position[foot], position[knee]);
            let cross = ax * by - ay * bx;
            if cross > 0.0 {
                let f = KNEE_STIFFNESS * cross;
                let [gx, gy] = minus(force_bar[foot], force_bar[knee]);
                let cross_bar = KNEE_STIFFNESS * (ay * gx - ax * gy);
                let a_bar = [by * cross_bar - f * gy, f * gx - bx * cross_bar];
                let b_bar = [-ay * cross_bar, ax * cross_bar];
                for k in 0..2 {
                    position_bar[hip][k] -= a_bar[k];
                    position_bar[knee][k] += a_bar[k] - b_bar[k];
                    position_bar[foot][k] += b_bar[k];
                }
            }
        }
        let (muscles, bones) = (&self.muscles, &self.bones);
        muscles.backward(position, &force_bar, position_bar, velocity_bar, &MUSCLE_ENDS, by_rest);
        let unused = &mut [0.0; BONES];
        bones.backward(position, &force_bar, position_bar, velocity_bar, &BONE_ENDS, unused);
    }
}

/// The adjoint of the velocity `raw` before the speed limit from the one after.
fn limit_back(raw: [f64; 2], bar: [f64; 2]) -> [f64; 2] {
    let speed2 = multiply_add(raw[0], raw[0], raw[1] * raw[1]);
    if speed2 > MAX_SPEED2 {
        let factor = MAX_SPEED / speed2.sqrt();
        let along = (raw[0] * bar[0] + raw[1] * bar[1]) / speed2;
        return [factor * (bar[0] - along * raw[0]), factor * (bar[1] - along * raw[1])];
    }
    bar
}

/// Adds the floor's part to the adjoints of a point's position and velocity.
#[inline(always)]
fn floor_back(
    y: f64,
    [vx, vy]: [f64; 2],
    [friction_bar, push_bar]: [f64; 2],
    (position_bar, velocity_bar): (&mut [f64; 2], &mut [f64; 2]),
) {
    let mut normal = -FLOOR_STIFFNESS * y;
    if vy < 0.0 {
        normal -= FLOOR_DAMPING * vy;
    }
    let grip = if vx > SLIP_SPEED {
        -FRICTION
    } else if vx < -SLIP_SPEED {
        FRICTION
    } else {
        velocity_bar[0] -= FRICTION / SLIP_SPEED * normal * friction_bar;
        -FRICTION / SLIP_SPEED * vx
    };
    let normal_bar = push_bar + grip * friction_bar;
    position_bar[1] -= FLOOR_STIFFNESS * normal_bar;
    if vy < 0.0 {
        velocity_bar[1] -= FLOOR_DAMPING * normal_bar;
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::tests::require_gradient_of_tape;
    use super::*;

    /// The contacts of the figure at the start of a step or in it.
    fn situations(step: &Step) -> [bool; 7] {
        let [sinking, sliding, sticking, sliding_back] = [0, 1, 2, 3].map(|kind| {
            step.position.iter().zip(&step.velocity).any(|([_, y], [vx, vy])| {
                let met = [*vy < 0.0, *vx > SLIP_SPEED, vx.abs() <= SLIP_SPEED, *vx < -SLIP_SPEED];
                *y < 0.0 && met[kind]
            })
        });
        let bent = LEGS.into_iter().any(|(hip, knee, foot)| {
            let [ax, ay] = minus(step.position[knee], step.position[hip]);
            let [bx, by] = minus(step.position[foot], step.position[knee]);
            ax * by - ay * bx > 0.0
        });
        let fallen = step.position[HEAD][1] < FALLEN;
        [step.limited.is_some(), sinking, sliding, sticking, sliding_back, bent, fallen]
    }

    #[test]
    fn the_gradient_by_hand_is_right_in_every_situation() {
        let commands: Vec<f64> = (0..COMMANDS).map(|i| 1.2 * (7.0 * i as f64).cos()).collect();
        let mut met = [false; 7];
        for config in [(0.05, 40), (1.0, 75), (40.0, 120)] {
            let steps = require_gradient_of_tape::<Qwop>(config, &commands);
            for situations in steps.iter().map(situations) {
                for (met, situation) in met.iter_mut().zip(situations) {
                    *met |= situation;
                }
            }
        }
        assert_eq!(met, [true; 7]);
    }
}
