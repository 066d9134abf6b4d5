//! Programs that follow something through time.
#![allow(clippy::needless_range_loop, reason = "they are written as users write them")]

use phigrad::{Var, traced};

/// Three balls on a line between walls; they change their speeds when they meet.
#[traced]
pub fn balls(x: &[Var]) -> Var {
    let mut place = [x[0], x[1], x[2]];
    let mut speed = [x[3], x[4], x[5]];
    for _ in 0..40 {
        for ball in 0..3 {
            place[ball] += speed[ball] * 0.02;
            let leaves = place[ball] < 0.0 && speed[ball] < 0.0;
            if leaves || place[ball] > 1.0 && speed[ball] > 0.0 {
                speed[ball] = -speed[ball] * 0.9;
            }
        }
        for one in 0..3 {
            for other in one + 1..3 {
                let (apart, closing) = (place[other] - place[one], speed[other] - speed[one]);
                if apart.abs() < 0.1 && apart * closing < 0.0 {
                    (speed[one], speed[other]) = (speed[other], speed[one]);
                }
            }
        }
    }
    place[0] * place[1] + place[2]
}

/// The distance of a ball with drag that bounces a few times.
#[traced]
pub fn projectile(x: &[Var]) -> Var {
    let (mut vx, mut vy, drag, bounce) = (x[0], x[1], x[2] * 0.1, x[3]);
    let (mut px, mut py) = (Var::from(0.0), Var::from(0.0));
    let (mut bounces, mut steps) = (0, 0);
    while bounces < 4 && steps < 400 {
        let speed = (vx * vx + vy * vy + 1e-6).sqrt();
        vx -= drag * speed * vx * 0.02;
        vy -= (drag * speed * vy + 9.81) * 0.02;
        px += vx * 0.02;
        py += vy * 0.02;
        if py < 0.0 {
            py = -py;
            vy = -vy * bounce;
            bounces += 1;
        }
        steps += 1;
    }
    px
}

/// decides about the step.
#[traced]
pub fn adaptive_steps(x: &[Var]) -> Var {
    let (mut y, stiffness, end) = (x[0], x[1] + 2.0, x[2]);
    let (mut t, mut step) = (Var::from(0.0), Var::from(0.1));
    while t < end {
        if t + step > end {
            step = end - t;
        }
        let slope = t.sin() - stiffness * y;
        let euler = y + step * slope;
        let heun = y + step * (slope + (t + step).sin() - stiffness * euler) * 0.5;
        let error = (heun - euler).abs();
        if error < 0.02 {
            y = heun;
            t += step;
            if error < 0.005 {
                step *= 1.5;
            }
        } else {
            step *= 0.5;
        }
    }
    y
}

/// Predators and prey after ten years, by the method of Runge and Kutta.
#[traced]
pub fn predators(x: &[Var]) -> Var {
    let slopes =
        |prey: Var, hunters: Var| (prey * (x[0] - x[1] * hunters), hunters * (x[2] * prey - x[3]));
    let (mut prey, mut hunters) = (Var::from(1.0), Var::from(0.5));
    let h = 0.1;
    for _ in 0..100 {
        let (a, b) = slopes(prey, hunters);
        let (c, d) = slopes(prey + a * (h / 2.0), hunters + b * (h / 2.0));
        let (e, f) = slopes(prey + c * (h / 2.0), hunters + d * (h / 2.0));
        let (g, i) = slopes(prey + e * h, hunters + f * h);
        prey += (a + 2.0 * c + 2.0 * e + g) * (h / 6.0);
        hunters += (b + 2.0 * d + 2.0 * f + i) * (h / 6.0);
    }
    prey + hunters
}

/// The error of a controller whose output saturates, and which integrates only where it does not.
#[traced]
pub fn controller(x: &[Var]) -> Var {
    let (gain, integral_gain, damping) = (x[0] * 4.0, x[1] * 2.0, x[2]);
    let (mut place, mut speed, mut integral) = (Var::from(0.0), Var::from(0.0), Var::from(0.0));
    let mut cost = Var::from(0.0);
    for k in 0..100 {
        let target = if k < 50 { 1.0 } else { -0.5 };
        let error = target - place;
        let wanted = gain * error + integral_gain * integral - damping * speed;
        let mut saturated = false;
        let mut force = wanted;
        if wanted > 2.0 {
            force = Var::from(2.0);
            saturated = true;
        } else if wanted < -2.0 {
            force = Var::from(-2.0);
            saturated = true;
        }
        if !saturated {
            integral += error * 0.05;
        }
        speed += (force - speed * 0.3) * 0.05;
        place += speed * 0.05;
        cost += error * error * 0.05;
    }
    cost
}

/// The waiting time of customers at three servers; each takes the first that is free.
#[traced]
pub fn queue(x: &[Var], gaps: &[Vec<f64>]) -> Var {
    let mut free = [Var::from(0.0); 3];
    let (mut now, mut waited) = (Var::from(0.0), Var::from(0.0));
    for customer in gaps {
        now += x[0] * customer[0];
        let mut first = 0;
        for server in 1..3 {
            if free[server] < free[first] {
                first = server;
            }
        }
        let start = if free[first] > now { free[first] } else { now };
        waited += start - now;
        free[first] = start + x[1] * customer[1] + x[2] * 0.1;
    }
    waited
}

/// The light on a sphere and a floor where rays meet them, by marching along them.
#[traced]
pub fn ray(x: &[Var]) -> Var {
    let (centre, radius) = ([x[0], x[1] + 1.0, x[2] + 3.0], x[3]);
    let mut light = Var::from(0.0);
    for pixel in 0..8 {
        let direction = [f64::from(pixel) * 0.1 - 0.35, -0.1, 1.0];
        let mut along = Var::from(0.0);
        for _ in 0..40 {
            let at = direction.map(|d| along * d);
            let [dx, dy, dz] = [at[0] - centre[0], at[1] + 1.0 - centre[1], at[2] - centre[2]];
            let sphere = (dx * dx + dy * dy + dz * dz).sqrt() - radius;
            let floor = at[1] + 1.0;
            let free = if sphere < floor { sphere } else { floor };
            if free < 0.01 {
                light += if sphere < floor { dy / radius } else { 1.0 / (1.0 + along) };
                break;
            }
            if along > 10.0 {
                break;
            }
            along += free * 0.9;
        }
    }
    light
}
