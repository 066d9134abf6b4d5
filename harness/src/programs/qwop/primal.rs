//! QWOP by hand for `f64` alone: the bare primal, and forces that the gradient
//! shares with it.

use super::{
    BONE, BONE_ENDS, COMMANDS, DRAG, EFFORT_PRICE, FALLEN, FLOOR_DAMPING, FLOOR_STIFFNESS,
    FRICTION, GRAVITY, HEAD, KNEE_STIFFNESS, LEGS, MAX_SPEED, MAX_SPEED2, MUSCLE, MUSCLE_ENDS,
    MUSCLES, Material, PHASE_STEPS, PHASES, POINTS, POSE, Qwop, REACH, SLIP_SPEED, SOFTENING,
    START_SPEED, TIME_STEP,
};

/// A pair x and y for each point.
pub type Points = [[f64; 2]; POINTS];

/// The commands within their bounds.
pub fn clipped(x: &[f64]) -> [f64; COMMANDS] {
    let x = &x[..COMMANDS];
    std::array::from_fn(|i| x[i].clamp(-1.0, 1.0))
}

/// The bare primal: the sums in the order of the objective.
pub fn primal(model: &Qwop, x: &[f64]) -> f64 {
    let commands = clipped(x);
    let mut position = POSE;
    let mut velocity = [[START_SPEED, 0.0]; POINTS];
    let mut fall = 0.0;
    for step in 0..model.steps {
        let mut force = model.masses.map(|mass| [0.0, -GRAVITY * mass]);
        for (&ends, &rest) in BONE_ENDS.iter().zip(&model.bone_rest) {
            pull(&position, &velocity, &mut force, ends, rest, &BONE);
        }
        let phase = (step / PHASE_STEPS) % PHASES;
        for i in 0..MUSCLES {
            let rest = model.muscle_rest[i] * (1.0 + REACH * commands[phase * MUSCLES + i]);
            pull(&position, &velocity, &mut force, MUSCLE_ENDS[i], rest, &MUSCLE);
        }
        for (hip, knee, foot) in LEGS {
            let [ax, ay] = minus(position[knee], position[hip]);
            let [bx, by] = minus(position[foot], position[knee]);
            straighten(&mut force, knee, foot, [ax, ay], [bx, by]);
        }
        for i in 0..POINTS {
            touch_floor(position[i], velocity[i], &mut force[i]);
        }
        for i in 0..POINTS {
            for k in 0..2 {
                force[i][k] -= DRAG * velocity[i][k];
                velocity[i][k] += TIME_STEP * force[i][k] / model.masses[i];
            }
        }
        for v in &mut velocity {
            let speed2 = v[0] * v[0] + v[1] * v[1];
            if speed2 > MAX_SPEED2 {
                let factor = MAX_SPEED / speed2.sqrt();
                *v = [v[0] * factor, v[1] * factor];
            }
        }
        for i in 0..POINTS {
            for k in 0..2 {
                position[i][k] += TIME_STEP * velocity[i][k];
            }
        }
        if position[HEAD][1] < FALLEN {
            fall += (FALLEN - position[HEAD][1]) * (FALLEN - position[HEAD][1]);
        }
    }
    let (mut moment, mut mass) = (0.0, 0.0);
    for (m, [x, _]) in model.masses.iter().zip(&position) {
        moment += m * x;
        mass += m;
    }
    let effort = x.iter().fold(0.0, |sum, c| sum + c * c);
    -moment / mass + 5.0 * TIME_STEP * fall + EFFORT_PRICE * effort
}

#[inline(always)]
pub fn minus(a: [f64; 2], b: [f64; 2]) -> [f64; 2] {
    [a[0] - b[0], a[1] - b[1]]
}

/// Adds the pull of a spring on its ends.
#[inline(always)]
fn pull(
    position: &Points,
    velocity: &Points,
    force: &mut Points,
    (a, b): (usize, usize),
    rest: f64,
    material: &Material,
) {
    let [dx, dy] = minus(position[b], position[a]);
    let [dvx, dvy] = minus(velocity[b], velocity[a]);
    let length = (dx * dx + dy * dy + SOFTENING).sqrt();
    let closing = (dvx * dx + dvy * dy) / length;
    let stretch = length - rest;
    let Material { stiffness, damping, slack } = *material;
    let stiffness = if stretch > 0.0 { stiffness } else { slack * stiffness };
    let f = (stiffness * stretch + damping * closing) / length;
    force[a] = [force[a][0] + f * dx, force[a][1] + f * dy];
    force[b] = [force[b][0] - f * dx, force[b][1] - f * dy];
}

/// Adds the force of a knee with thigh `a` and shin `b`.
#[inline(always)]
pub fn straighten(force: &mut Points, knee: usize, foot: usize, a: [f64; 2], b: [f64; 2]) {
    let cross = a[0] * b[1] - a[1] * b[0];
    if cross > 0.0 {
        let f = KNEE_STIFFNESS * cross;
        force[foot] = [force[foot][0] + f * a[1], force[foot][1] - f * a[0]];
        force[knee] = [force[knee][0] - f * a[1], force[knee][1] + f * a[0]];
    }
}

/// Adds the floor's push and friction.
#[inline(always)]
pub fn touch_floor([_, y]: [f64; 2], [vx, vy]: [f64; 2], force: &mut [f64; 2]) {
    if y < 0.0 {
        let mut normal = -FLOOR_STIFFNESS * y;
        if vy < 0.0 {
            normal -= FLOOR_DAMPING * vy;
        }
        let friction = if vx > SLIP_SPEED {
            -FRICTION * normal
        } else if vx < -SLIP_SPEED {
            FRICTION * normal
        } else {
            -FRICTION * normal * vx / SLIP_SPEED
        };
        *force = [force[0] + friction, force[1] + normal];
    }
}
