//! Numbers that leave the recording, and what is done with them.

programs! {
    coarse_index: inputs(4), Merges(0.90),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let i = (x[0].abs().floor().value() as usize).min(3);
            let y = if x[1] > 0.0 { x[i] } else { x[2] };
            y * x[(i + 1) % 4]
        }
    }
    in_a_loop: inputs(3), Merges(0.85),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut y = S::from(0.0);
            for &v in x {
                let n = v.abs().floor().value();
                if v > 0.0 { y = y + v * n; } else if n > 0.0 { y = y - v; }
            }
            y
        }
    }
    on_one_way: inputs(4), Merges(0.90),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut table = [1.0, 2.0, 3.0, 4.0];
            let mut y = x[1];
            if x[0] > 0.0 { table[x[0].floor().value().clamp(0.0, 3.0) as usize] = -1.0; } else { y = y * 2.0; }
            if x[2] > 0.0 { y = y + x[2] * table[0]; }
            y * table[1] + x[3]
        }
    }
    // What escapes decides later, without a guard of its own.
    decides_later: inputs(4), Splits(0.90),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let level = (x[0] * 2.0).floor().value();
            let y = if x[1] > 0.0 { x[1] } else { x[2] };
            if level > 0.0 { y } else if level.is_nan() { S::from(9.0) } else { y * x[3] }
        }
    }
    // A different number on every run: nothing is known, and nothing is wrong.
    every_time_another: inputs(3), Splits(0.00),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let seen = x[0].value();
            let y = if x[1] > 0.0 { x[1] * seen } else { x[2] };
            y + seen
        }
    }
    carried_then_read: inputs(4), Merges(0.95),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut y = x[0].floor();
            for &v in &x[1..] { if v > 0.0 { y = y + 1.0; } else { y = y - 1.0; } }
            let n = y.value();
            if n == 1.0 { x[1] } else { x[2] * n }
        }
    }
    total_order: inputs(4), Splits(0.25),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut all = [x[0].floor(), x[1].floor(), x[2].floor()];
            all.sort_by(|a, b| a.value().total_cmp(&b.value()));
            let y = if x[3] > 0.0 { all[0] } else { all[2] };
            y * all[1] + x[3]
        }
    }
    formatted: inputs(3), Splits(0.00),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let text = format!("{:.0}", x[0].value());
            let mut y = x[1];
            if x[2] > 0.0 { y = y * x[2]; }
            if text.starts_with('-') { y } else { y + text.len() as f64 }
        }
    }
}
