//! HookeanSpring: elastic energy of a ring of vertices with springs to the next
//! and the next but one; the inputs are the coordinates x0, y0, x1, y1, ...

use super::{Program, Scalar};

const STIFFNESS: f64 = 1.0;
/// Keeps the length differentiable where two vertices meet.
const SOFTENING: f64 = 1e-6;

/// Rest lengths of the springs to the next vertex and to the next but one.
const NEAR_REST: f64 = 1.0;
const FAR_REST: f64 = 1.5;
/// The longest reach of a spring, in vertices.
const HALO: usize = 2;

/// A spring between two vertices.
#[derive(Clone, Copy)]
struct Spring {
    a: usize,
    b: usize,
    rest: f64,
}

/// The springs of the ring.
pub struct HookeanSpring {
    springs: Vec<Spring>,
}

/// Energy of the springs at the positions `x`.
fn energy<T: Scalar>(x: &[T], springs: &[Spring]) -> T {
    let mut total = T::zero();
    for &Spring { a, b, rest } in springs {
        let dx = x[2 * a] - x[2 * b];
        let dy = x[2 * a + 1] - x[2 * b + 1];
        let stretch = (dx * dx + dy * dy + SOFTENING).sqrt() - rest;
        total = total + stretch * (0.5 * STIFFNESS) * stretch;
    }
    total
}

/// Buffers of the gradient by hand; index `HALO + i` belongs to vertex i.
pub struct Work {
    x: Vec<f64>,
    y: Vec<f64>,
    /// Forces, x and y, of the springs that start at each vertex.
    near: [Vec<f64>; 2],
    far: [Vec<f64>; 2],
}

impl Program for HookeanSpring {
    const NAME: &'static str = "HookeanSpring";
    type Config = usize;
    const CONFIGS: &'static [usize] = &[10, 20, 40];
    type Work = Work;

    fn new(vertices: usize) -> Self {
        let springs = (0..vertices)
            .flat_map(|a| {
                [(1, NEAR_REST), (2, FAR_REST)].map(|(step, rest)| Spring {
                    a,
                    b: (a + step) % vertices,
                    rest,
                })
            })
            .collect();
        HookeanSpring { springs }
    }

    fn work(&self) -> Work {
        let zeros = || vec![0.0; self.springs.len() / 2 + 2 * HALO];
        Work { x: zeros(), y: zeros(), near: [zeros(), zeros()], far: [zeros(), zeros()] }
    }

    fn objective<T: Scalar>(&self, x: &[T]) -> T {
        energy(x, &self.springs)
    }

    fn primal(&self, x: &[f64], _: &mut Work) -> f64 {
        let mut total = 0.0;
        for &Spring { a, b, rest } in &self.springs {
            let (a, b) = (2 * a, 2 * b);
            let (dx, dy) = (x[a] - x[b], x[a + 1] - x[b + 1]);
            let stretch = (dx * dx + dy * dy + SOFTENING).sqrt() - rest;
            total += 0.5 * STIFFNESS * stretch * stretch;
        }
        total
    }

    /// Uses what the list of springs does not say: they form a ring. With a halo
    /// of two vertices on both sides every step is a loop over neighbours, which
    /// the compiler vectorises, instead of a scatter.
    fn hand_gradient(&self, x: &[f64], gradient: &mut [f64], work: &mut Work) {
        let n = gradient.len() / 2;
        let Work { x: px, y: py, near: [near_x, near_y], far: [far_x, far_y] } = work;
        let (px, py) = (&mut px[..n + 2 * HALO], &mut py[..n + 2 * HALO]);
        let (inner_x, inner_y) = (&mut px[HALO..HALO + n], &mut py[HALO..HALO + n]);
        let positions = &x.as_chunks::<2>().0[..n];
        for i in 0..n {
            [inner_x[i], inner_y[i]] = positions[i];
        }
        for p in [&mut *px, &mut *py] {
            p.copy_within(n..n + HALO, 0);
            p.copy_within(HALO..2 * HALO, n + HALO);
        }

        pull(px, py, 1, NEAR_REST, &mut near_x[..n + HALO], &mut near_y[..n + HALO]);
        pull(px, py, 2, FAR_REST, &mut far_x[..n + HALO], &mut far_y[..n + HALO]);

        // A vertex is pulled by the springs that start at it and, the other
        // way, by those that started one (near) and two (far) vertices before.
        let (near_x, near_y) = (windows(near_x, n), windows(near_y, n));
        let (far_x, far_y) = (windows(far_x, n), windows(far_y, n));
        let gradient = &mut gradient.as_chunks_mut::<2>().0[..n];
        for i in 0..n {
            gradient[i] = [
                near_x[2][i] - near_x[1][i] + far_x[2][i] - far_x[0][i],
                near_y[2][i] - near_y[1][i] + far_y[2][i] - far_y[0][i],
            ];
        }
    }
}

/// The slices of length `n` that start at 0, 1 and 2.
fn windows(values: &[f64], n: usize) -> [&[f64]; 3] {
    [&values[..n], &values[1..n + 1], &values[2..n + 2]]
}

/// Forces of the springs from each vertex to the one `step` further on.
fn pull(x: &[f64], y: &[f64], step: usize, rest: f64, fx: &mut [f64], fy: &mut [f64]) {
    let n = fx.len();
    let (fx, fy) = (&mut fx[..n], &mut fy[..n]);
    let (xa, ya, xb, yb) = (&x[..n], &y[..n], &x[step..step + n], &y[step..step + n]);
    for i in 0..n {
        let (dx, dy) = (xa[i] - xb[i], ya[i] - yb[i]);
        let length = (dx * dx + dy * dy + SOFTENING).sqrt();
        let pull = STIFFNESS * (1.0 - rest / length);
        fx[i] = pull * dx;
        fy[i] = pull * dy;
    }
}
