//! Value and gradient of the solution of 20 equations, by kernels and by nalgebra on plain numbers:
//! the shortest times of many calls, one after the other in turn.
//!
//! Run it with `cargo bench --features linalg --bench linalg`.

use std::hint::black_box;
use std::time::{Duration, Instant};

use nalgebra::{DMatrix, DVector};
use phigrad::{Tape, Var, linalg};

const N: usize = 20;

/// The sum of the unknowns.
fn solution(x: &[Var]) -> Var {
    linalg::solve(&x[..N * N], &x[N * N..], N).map_or(Var::from(f64::NAN), |x| x.into_iter().sum())
}

/// The same on plain numbers; `gradient` gets its gradient.
fn plain(x: &[f64], gradient: Option<&mut [f64]>) -> f64 {
    let lu = DMatrix::from_row_slice(N, N, &x[..N * N]).lu();
    let mut unknowns = DVector::from_column_slice(&x[N * N..]);
    lu.solve_mut(&mut unknowns);
    if let Some(gradient) = gradient {
        // The transpose of PA = LU.
        let (mut adjoint, u, l) = (DVector::from_element(N, 1.0), lu.u(), lu.l());
        u.tr_solve_upper_triangular_mut(&mut adjoint);
        l.tr_solve_lower_triangular_mut(&mut adjoint);
        lu.p().inv_permute_rows(&mut adjoint);
        let by_a = &adjoint * unknowns.transpose();
        for i in 0..N {
            for j in 0..N {
                gradient[i * N + j] = -by_a[(i, j)];
            }
        }
        gradient[N * N..].copy_from_slice(adjoint.as_slice());
    }
    unknowns.sum()
}

fn shortest(best: &mut Duration, mut run: impl FnMut()) {
    const CALLS: u32 = 20;
    let start = Instant::now();
    (0..CALLS).for_each(|_| run());
    *best = (*best).min(start.elapsed() / CALLS);
}

fn main() -> Result<(), phigrad::Error> {
    let x: Vec<f64> = (0..N * N + N).map(|i| ((i * i * 7 + i * 3) as f64).sin()).collect();
    let f = Tape::builder().background(false).audit(0).record(solution);
    let (mut one, mut other) = (vec![0.0; x.len()], vec![0.0; x.len()]);
    f.grad_into(&x, &mut one)?;
    f.eval(&x)?;
    f.compile()?;
    plain(&x, Some(&mut other));
    f.grad_into(&x, &mut one)?;
    let error = one.iter().zip(&other).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    println!("largest difference of gradients: {error:e}");
    let mut best = [Duration::MAX; 4];
    for _ in 0..2000 {
        shortest(&mut best[0], || drop(black_box(f.eval(black_box(&x)))));
        shortest(&mut best[1], || {
            black_box(plain(black_box(&x), None));
        });
        shortest(&mut best[2], || drop(black_box(f.grad_into(black_box(&x), &mut one))));
        shortest(&mut best[3], || {
            black_box(plain(black_box(&x), Some(&mut other)));
        });
    }
    let [eval, plain_eval, grad, plain_grad] = best.map(|best| best.as_secs_f64() * 1e6);
    println!(
        "value:    kernel {eval:.2} µs, nalgebra {plain_eval:.2} µs, {:.2}",
        eval / plain_eval
    );
    println!(
        "gradient: kernel {grad:.2} µs, nalgebra {plain_grad:.2} µs, {:.2}",
        grad / plain_grad
    );
    println!("{}", f.report());
    Ok(())
}
