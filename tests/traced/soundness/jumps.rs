//! Jumps: break and continue out of several loops, labelled blocks, and
//! conditions that have effects.

programs! {
    break_outer: inputs(5), Splits(0.75),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut y = S::from(0.0);
            'outer: for i in 0..x.len() {
                for j in 0..x.len() {
                    if x[i] + x[j] > 3.0 { break 'outer; }
                    if x[j] < -1.0 { break; }
                    y = y + x[i] * x[j];
                }
                y = y * 0.5;
            }
            y
        }
    }
    continue_outer: inputs(5), Merges(0.85),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut y = S::from(1.0);
            'outer: for i in 0..x.len() {
                for j in i..x.len() {
                    if x[j] < -1.2 { continue 'outer; }
                    if x[j] > 1.5 { continue; }
                    y = y + x[j].sin();
                }
                y = y * 0.75;
            }
            y
        }
    }
    // Jumps over three levels, of which one ends in a different state.
    three_levels: inputs(4), Splits(0.90),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let (mut y, mut skipped) = (S::from(1.0), 0);
            'a: for i in 0..3 {
                'b: loop {
                    for j in 0..x.len() {
                        if x[j] > 1.6 { skipped += 1; continue 'a; }
                        if x[j] < -1.6 { break 'b; }
                        if i == 2 && x[j] > 1.0 { break 'a; }
                        y = y * 0.9 + x[j];
                    }
                    break;
                }
                y = -y;
            }
            y + f64::from(skipped)
        }
    }
    labelled_block: inputs(3), Merges(0.95),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let y = 'found: {
                if x[0] > 1.0 { break 'found x[0] * 2.0; }
                let mut t = x[1];
                if x[1] > 0.0 { if x[2] > 0.0 { break 'found t; } t = t - x[2]; }
                t * t
            };
            y.sin() + x[0]
        }
    }
    labelled_block_without_value: inputs(3), Merges(0.95),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut y = x[0];
            'done: {
                if x[1] > 1.0 { break 'done; }
                y = y * 2.0;
                'inner: { if x[2] > 0.0 { break 'inner; } if x[2] < -1.0 { break 'done; } y = y + 1.0; }
                y = y - x[2];
            }
            y
        }
    }
    // The right operand changes a traced number, if it is evaluated.
    short_circuit_effects: inputs(4), Merges(0.95),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut y = x[0];
            let a = x[1] > 0.0 && { y = y + x[1] * x[1]; y > 1.0 };
            let b = x[2] > 0.0 || { y = y - x[2]; false };
            if (a && b) || { y = y * 0.5; x[3] > y } { y = y + x[3]; }
            y
        }
    }
    short_circuit_in_loop: inputs(6), Splits(0.95),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let (mut i, mut y) = (0, S::from(0.0));
            while i < x.len() && { y = y + x[i]; y < 2.5 } && (x[i] > -1.0 || { y = y * 0.5; true }) {
                i += 1;
            }
            y
        }
    }
    // A flag remembers a comparison and is used after others.
    outcomes_kept: inputs(4), Splits(0.95),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let a = x[0] > x[1];
            let b = x[1] > x[2];
            let mut y = if x[3] > 0.0 { x[3] } else { -x[3] };
            if a { y = y * x[0]; }
            if b != a { y = y + x[1]; }
            if a & b { y = y.sin(); }
            y
        }
    }
    break_in_a_condition: inputs(4), Splits(0.95),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut y = S::from(0.0);
            for &v in x {
                if (if v > 1.0 { break } else { v < 0.0 }) { continue; }
                let w = if v > 0.5 { v } else { if y > 3.0 { break; } v * v };
                y = y + w;
            }
            y
        }
    }
    // Assigned in both branches, before any use.
    declared_without_value: inputs(3), Merges(0.95),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let y;
            let z;
            if x[0] > 0.0 { y = x[0] * 2.0; z = x[1]; } else { z = -x[1]; y = z * z; }
            let w: S;
            match x[2] > 0.5 { true => { w = y; } false => w = x[2] }
            y + z * w
        }
    }
    declared_and_jumped: inputs(4), Merges(0.95),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut total = S::from(0.0);
            for &v in x {
                let y;
                if v > 1.0 { y = v; } else if v < -1.0 { continue; } else { y = v * v; total = total + 1.0; }
                total = total + y;
            }
            total
        }
    }
    shadowed: inputs(3), Merges(0.95),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let y = x[0];
            let y = if y > 0.0 { let y = y * 2.0; let z = y; { let y = z + 1.0; y } } else { y };
            let mut z = y;
            if x[1] > 0.0 { let mut z = x[1]; z = z + y; if z > 2.0 { z = S::from(2.0); } let _ = z; } else { z = z - x[1]; }
            for y in x { let z = &mut z; if *y > 0.5 { *z = *z + *y; } }
            y + z
        }
    }
}
