//! QWOP: a stick figure of point masses and springs stumbles over a floor with
//! friction; the inputs are the commands of its muscles, a row for each phase.

mod gradient;
mod primal;

use gradient::Step;

use super::{Program, Scalar};

const POINTS: usize = 11;
const BONES: usize = 10;
const MUSCLES: usize = 6;
const PHASES: usize = 4;
const COMMANDS: usize = PHASES * MUSCLES;
/// Steps of time in a phase.
const PHASE_STEPS: usize = 15;
const TIME_STEP: f64 = 0.004;

const HEAD: usize = 0;
const SHOULDER: usize = 1;
const HIP: usize = 2;
const KNEE_L: usize = 3;
const FOOT_L: usize = 4;
const KNEE_R: usize = 5;
const FOOT_R: usize = 6;
const ELBOW_L: usize = 7;
const HAND_L: usize = 8;
const ELBOW_R: usize = 9;
const HAND_R: usize = 10;

/// The first positions of the points, x and y.
const POSE: [[f64; 2]; POINTS] = [
    [0.0, 1.95],
    [0.0, 1.6],
    [0.0, 1.0],
    [0.12, 0.55],
    [0.05, 0.02],
    [-0.1, 0.52],
    [-0.18, 0.03],
    [0.2, 1.35],
    [0.38, 1.15],
    [-0.2, 1.35],
    [-0.05, 1.1],
];
/// The first speed of all of them, to the right.
const START_SPEED: f64 = 0.4;
const MASSES: [f64; POINTS] = [1.5, 2.0, 3.0, 1.0, 0.6, 1.0, 0.6, 0.5, 0.3, 0.5, 0.3];

/// The points that bones and muscles join.
const BONE_ENDS: [(usize, usize); BONES] = [
    (HEAD, SHOULDER),
    (SHOULDER, HIP),
    (HIP, KNEE_L),
    (KNEE_L, FOOT_L),
    (HIP, KNEE_R),
    (KNEE_R, FOOT_R),
    (SHOULDER, ELBOW_L),
    (ELBOW_L, HAND_L),
    (SHOULDER, ELBOW_R),
    (ELBOW_R, HAND_R),
];
const MUSCLE_ENDS: [(usize, usize); MUSCLES] = [
    (SHOULDER, KNEE_L),
    (SHOULDER, KNEE_R),
    (HIP, FOOT_L),
    (HIP, FOOT_R),
    (HIP, HAND_L),
    (HIP, HAND_R),
];
/// Hip, knee and foot of each leg.
const LEGS: [(usize, usize, usize); 2] = [(HIP, KNEE_L, FOOT_L), (HIP, KNEE_R, FOOT_R)];

const GRAVITY: f64 = 9.8;
const DRAG: f64 = 0.6;
/// Square of a speed that no point exceeds, and that speed.
const MAX_SPEED2: f64 = 64.0;
const MAX_SPEED: f64 = 8.0;
/// Keeps the length differentiable where two points meet.
const SOFTENING: f64 = 1e-9;
/// The change of a muscle's rest length by a command of 1.
const REACH: f64 = 0.3;
const KNEE_STIFFNESS: f64 = 800.0;
const FLOOR_STIFFNESS: f64 = 6000.0;
const FLOOR_DAMPING: f64 = 40.0;
const FRICTION: f64 = 0.9;
/// Below this speed along the floor, friction grows with the speed.
const SLIP_SPEED: f64 = 0.5;
/// A head below this height has fallen.
const FALLEN: f64 = 0.9;
const EFFORT_PRICE: f64 = 0.01;

/// The material of a bone or muscle.
#[derive(phigrad::Carry)]
struct Material {
    stiffness: f64,
    damping: f64,
    /// Part of the stiffness that is left while it is compressed.
    slack: f64,
}

const BONE: Material = Material { stiffness: 4000.0, damping: 30.0, slack: 1.0 };
const MUSCLE: Material = Material { stiffness: 300.0, damping: 10.0, slack: 0.2 };

/// A figure of some weight and how long it moves.
pub struct Qwop {
    masses: [f64; POINTS],
    bone_rest: [f64; BONES],
    muscle_rest: [f64; MUSCLES],
    steps: usize,
}

/// The moving figure: a pair x and y for each point.
#[derive(phigrad::Carry)]
struct Figure<T> {
    position: [[T; 2]; POINTS],
    velocity: [[T; 2]; POINTS],
    force: [[T; 2]; POINTS],
}

/// A command within its bounds.
#[phigrad::traced]
fn clip<T: Scalar>(command: T) -> T {
    if command > 1.0 {
        T::one()
    } else if command < -1.0 {
        -T::one()
    } else {
        command
    }
}

/// Pulls the two ends of a damped spring together.
#[phigrad::traced]
fn pull<T: Scalar>(figure: &mut Figure<T>, a: usize, b: usize, rest: T, material: &Material) {
    let dx = figure.position[b][0] - figure.position[a][0];
    let dy = figure.position[b][1] - figure.position[a][1];
    let length = (dx * dx + dy * dy + SOFTENING).sqrt();
    let dvx = figure.velocity[b][0] - figure.velocity[a][0];
    let dvy = figure.velocity[b][1] - figure.velocity[a][1];
    let closing = (dvx * dx + dvy * dy) / length;
    let stretch = length - rest;
    let stiffness =
        if stretch > 0.0 { material.stiffness } else { material.slack * material.stiffness };
    let f = (stretch * stiffness + closing * material.damping) / length;
    figure.force[a][0] = figure.force[a][0] + f * dx;
    figure.force[a][1] = figure.force[a][1] + f * dy;
    figure.force[b][0] = figure.force[b][0] - f * dx;
    figure.force[b][1] = figure.force[b][1] - f * dy;
}

/// Keeps a knee from bending forward.
#[phigrad::traced]
fn straighten<T: Scalar>(figure: &mut Figure<T>, hip: usize, knee: usize, foot: usize) {
    let ax = figure.position[knee][0] - figure.position[hip][0];
    let ay = figure.position[knee][1] - figure.position[hip][1];
    let bx = figure.position[foot][0] - figure.position[knee][0];
    let by = figure.position[foot][1] - figure.position[knee][1];
    let cross = ax * by - ay * bx;
    if cross > 0.0 {
        let f = cross * KNEE_STIFFNESS;
        figure.force[foot][0] = figure.force[foot][0] + f * ay;
        figure.force[foot][1] = figure.force[foot][1] - f * ax;
        figure.force[knee][0] = figure.force[knee][0] - f * ay;
        figure.force[knee][1] = figure.force[knee][1] + f * ax;
    }
}

/// The floor's push and friction on a point below it.
#[phigrad::traced]
fn touch_floor<T: Scalar>(figure: &mut Figure<T>, point: usize) {
    let height = figure.position[point][1];
    let [vx, vy] = figure.velocity[point];
    if height < 0.0 {
        let mut normal = height * -FLOOR_STIFFNESS;
        if vy < 0.0 {
            normal = normal - vy * FLOOR_DAMPING;
        }
        let friction;
        if vx > SLIP_SPEED {
            friction = normal * -FRICTION;
        } else if vx < -SLIP_SPEED {
            friction = normal * FRICTION;
        } else {
            friction = normal * -FRICTION * vx / SLIP_SPEED;
        }
        figure.force[point][0] = figure.force[point][0] + friction;
        figure.force[point][1] = figure.force[point][1] + normal;
    }
}

/// Moves a point by a step of time: velocity, speed limit, position.
#[phigrad::traced]
fn advance<T: Scalar>(figure: &mut Figure<T>, point: usize, mass: f64) {
    let [fx, fy] = figure.force[point];
    let [mut vx, mut vy] = figure.velocity[point];
    vx = vx + fx * TIME_STEP / mass;
    vy = vy + fy * TIME_STEP / mass;
    let speed2 = vx * vx + vy * vy;
    if speed2 > MAX_SPEED2 {
        let max_speed: T = MAX_SPEED.into();
        let factor = max_speed / speed2.sqrt();
        vx = vx * factor;
        vy = vy * factor;
    }
    let [x, y] = figure.position[point];
    figure.velocity[point] = [vx, vy];
    figure.position[point] = [x + vx * TIME_STEP, y + vy * TIME_STEP];
}

impl Qwop {
    /// The cost of a run: the figure should come far, not fall, and save effort.
    #[phigrad::traced]
    fn cost<T: Scalar>(&self, commands: &[T]) -> T {
        let mut figure = Figure {
            position: POSE.map(|[x, y]| [x.into(), y.into()]),
            velocity: [[START_SPEED.into(), T::zero()]; POINTS],
            force: [[T::zero(); 2]; POINTS],
        };
        let fallen: T = FALLEN.into();
        let mut fall = T::zero();
        for step in 0..self.steps {
            for point in 0..POINTS {
                let weight = -GRAVITY * self.masses[point];
                figure.force[point] = [T::zero(), weight.into()];
            }
            for (bone, (a, b)) in BONE_ENDS.into_iter().enumerate() {
                pull(&mut figure, a, b, self.bone_rest[bone].into(), &BONE);
            }
            let phase = (step / PHASE_STEPS) % PHASES;
            for (muscle, (a, b)) in MUSCLE_ENDS.into_iter().enumerate() {
                let command = clip(commands[phase * MUSCLES + muscle]);
                let rest = (command * REACH + 1.0) * self.muscle_rest[muscle];
                pull(&mut figure, a, b, rest, &MUSCLE);
            }
            for (hip, knee, foot) in LEGS {
                straighten(&mut figure, hip, knee, foot);
            }
            for point in 0..POINTS {
                touch_floor(&mut figure, point);
                let [vx, vy] = figure.velocity[point];
                let [fx, fy] = figure.force[point];
                figure.force[point] = [fx - vx * DRAG, fy - vy * DRAG];
                advance(&mut figure, point, self.masses[point]);
            }
            let head = figure.position[HEAD][1];
            if head < FALLEN {
                fall = fall + (fallen - head) * (fallen - head);
            }
        }
        let mut moment = T::zero();
        let mut mass = 0.0;
        for point in 0..POINTS {
            moment = moment + figure.position[point][0] * self.masses[point];
            mass += self.masses[point];
        }
        let mut effort = T::zero();
        for &command in commands {
            effort = effort + command * command;
        }
        -moment / mass + fall * (5.0 * TIME_STEP) + effort * EFFORT_PRICE
    }
}

/// Lengths in the pose at the start.
fn rest_lengths<const N: usize>(ends: [(usize, usize); N]) -> [f64; N] {
    ends.map(|(a, b)| {
        let ([ax, ay], [bx, by]) = (POSE[a], POSE[b]);
        ((ax - bx).powi(2) + (ay - by).powi(2)).sqrt()
    })
}

impl Program for Qwop {
    const NAME: &'static str = "QWOP";
    /// Factor of all masses, and steps of time.
    type Config = (f64, usize);
    const CONFIGS: &'static [(f64, usize)] = &[(1.0, 20), (1.6, 260), (2.4, 330)];
    /// The values of a step that the reverse sweep needs.
    type Work = Vec<Step>;

    fn new((mass_scale, steps): (f64, usize)) -> Self {
        Qwop {
            masses: MASSES.map(|mass| mass_scale * mass),
            bone_rest: rest_lengths(BONE_ENDS),
            muscle_rest: rest_lengths(MUSCLE_ENDS),
            steps,
        }
    }

    fn work(&self) -> Vec<Step> {
        vec![Step::default(); self.steps]
    }

    fn objective<T: Scalar>(&self, x: &[T]) -> T {
        self.cost(x)
    }

    fn primal(&self, x: &[f64], _: &mut Vec<Step>) -> f64 {
        primal::primal(self, x)
    }

    fn hand_gradient(&self, x: &[f64], gradient: &mut [f64], steps: &mut Vec<Step>) {
        gradient::gradient(self, x, gradient, steps);
    }
}
