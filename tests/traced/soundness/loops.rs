//! Loops: trip counts and exits.

programs! {
    triangular: inputs(6), Merges(0.95),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut y = S::from(0.0);
            for i in 0..x.len() {
                for j in 0..i {
                    if x[i] > x[j] { y = y + x[i] * x[j]; } else { y = y - x[j]; }
                }
            }
            y
        }
    }
    // The first run does not enter the loop, later ones go round it often.
    none_first: inputs(3).between(-1.0, 6.0).order(Ascending), Merges(0.95),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut y = x[0];
            let mut z = S::from(1.0);
            while y > 1.0 && y < 50.0 { y = y - 0.75; if x[1] > y { z = z + y * y; } }
            let mut w = x[2];
            while w > 2.0 && w < 50.0 { w = w * 0.5; }
            y * z + w
        }
    }
    none_last: inputs(3).between(-1.0, 6.0).order(Descending), Merges(0.85),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut y = x[0];
            let mut z = S::from(1.0);
            while y > 1.0 && y < 50.0 { y = y - 0.75; if x[1] > y { z = z + y * y; } }
            let mut w = x[2];
            while w > 2.0 && w < 50.0 { w = w * 0.5; }
            y * z + w
        }
    }
    // Static state decides about the next iteration.
    untraced_exit: inputs(6), Splits(0.85),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut fuel = 7i32;
            let (mut i, mut y) = (0, S::from(0.5));
            while fuel > 0 {
                let v = x[i % x.len()];
                if v > 0.5 { fuel -= 3; y = y + v; } else { fuel -= 1; y = y * 0.5 - v; }
                i += 1;
            }
            y
        }
    }
    // Ends for one of two reasons, and which is not looked at.
    two_exits: inputs(6), Splits(0.90),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let (mut i, mut y) = (0, S::from(0.0));
            while i < x.len() && y < 2.0 {
                if x[i] > 0.0 { y = y + x[i]; } else { y = y + x[i] * x[i] * 0.5; }
                i += 1;
            }
            y * y
        }
    }
    two_exits_told_apart: inputs(6), Splits(0.85),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let (mut i, mut y) = (0, S::from(0.0));
            while i < x.len() && y < 2.0 {
                if x[i] > 0.0 { y = y + x[i]; } else { y = y + x[i] * x[i] * 0.5; }
                i += 1;
            }
            if i == x.len() { y.sin() } else { y * x[i] }
        }
    }
    newton: inputs(2).between(0.2, 9.0), Splits(0.85),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut y = x[0];
            loop {
                let next = (y + x[1] / y) * 0.5;
                let change = (next - y).abs();
                y = next;
                if change < 1e-3 { break; }
                if !(y.abs() < 1e9) { return x[0]; }
            }
            y
        }
    }
    bisection: inputs(2), Merges(0.95),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let (mut low, mut high) = (S::from(-3.0), S::from(3.0));
            for _ in 0..8 {
                let middle = (low + high) * 0.5;
                if middle * middle * middle + middle > x[0] * 3.0 { high = middle; } else { low = middle; }
            }
            (low + high) * x[1]
        }
    }
    loop_value: inputs(5), Splits(0.85),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut i = 0;
            let mut y = S::from(1.0);
            let found = loop {
                if i == x.len() { break S::from(-1.0); }
                if x[i] > 1.0 { break x[i] * y; }
                if x[i] < -1.5 { break y; }
                y = y + x[i] * x[i];
                i += 1;
            };
            found * y
        }
    }
    kinds_of_iterators: inputs(6), Merges(0.95),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut y = S::from(0.0);
            for pair in x.windows(2) { if pair[0] < pair[1] { y = y + pair[0] * pair[1]; } }
            for chunk in x.chunks(4) { if chunk[0] > 0.0 { y = y * 0.5 + chunk[chunk.len() - 1]; } }
            for (a, b) in x.iter().zip(x.iter().rev()) { if *a > *b { y = y - *a; } }
            for i in (0..x.len()).rev().step_by(2) { if x[i] > 0.0 { y = y + x[i] * i as f64; } }
            for (i, v) in x.iter().enumerate().skip(1) { if *v > 1.0 { y = y + *v * i as f64; } }
            y
        }
    }
    // The iterator decides on traced numbers which items there are.
    filtered_items: inputs(5), Keeps("iterator of the loop", 0.55),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut y = S::from(0.5);
            for v in x.iter().filter(|v| **v > 0.0) { if *v < 1.0 { y = y * *v + 1.0; } }
            y
        }
    }
    items_taken_while: inputs(6), Keeps("iterator of the loop", 0.80),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut y = S::from(0.5);
            for (i, v) in x.iter().enumerate().take_while(|(_, v)| **v < 0.75) {
                if *v > -0.5 { y = y + *v * i as f64; }
            }
            y
        }
    }
    items_are_computed: inputs(5), Merges(0.95),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut y = S::from(0.5);
            for v in x.iter().map(|v| *v * *v - 1.0) { if v > 0.0 { y = y + v.sqrt(); } else { y = y - v; } }
            y
        }
    }
    // Two loops share one iterator.
    iterator_by_hand: inputs(6), Splits(0.95),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut items = x.iter();
            let mut y = S::from(0.0);
            while let Some(v) = items.next() {
                y = y + *v;
                if *v > 0.5 { break; }
            }
            for v in items { y = y * 0.5 - *v; }
            y
        }
    }
    peeked: inputs(5), Keeps("items", 0.85),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut items = x.iter().copied().peekable();
            let mut y = S::from(0.0);
            while let Some(v) = items.next() {
                if let Some(next) = items.peek() && *next > v { y = y + *next * v; } else { y = y - v; }
            }
            y
        }
    }
    exchanged_each_time: inputs(6), Merges(0.95),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let (mut a, mut b) = (S::from(1.0), S::from(2.0));
            for &v in x {
                if v > 0.0 { (a, b) = (b, a + v); } else { (a, b) = (b * v, a); }
            }
            a - b * 3.0
        }
    }
    // What is carried is the same number under several names.
    names_of_one_number: inputs(5), Merges(0.95),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let (mut a, mut b, mut c) = (x[0], x[0], x[0]);
            for &v in &x[1..] {
                if v > 0.5 { b = a; c = v; } else if v < -0.5 { a = c; } else { c = b + v; }
            }
            a * 2.0 + b * 3.0 - c
        }
    }
    inner_count_depends: inputs(5), Splits(0.70),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut y = S::from(1.0);
            let mut width = 1;
            for &v in x {
                for k in 0..width { y = y + v * k as f64; }
                if v > 0.0 { width = width % 3 + 1; }
            }
            y
        }
    }
    // How long the data are depends on the trace; one of the slices is empty.
    empty_slices: inputs(4), Merges(0.95),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut y = S::from(1.0);
            let part = if x[0] > 0.0 { &x[..0] } else { &x[1..3] };
            for v in part { y = y + *v * 2.0; }
            for v in &x[4..] { y = y * *v; }
            for (a, b) in part.iter().zip(&x[2..]) { if *a > *b { y = y - *a; } }
            y
        }
    }
    while_in_while: inputs(3).between(0.0, 3.0), Splits(0.90),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let (mut a, mut y) = (x[0] + 1.0, S::from(0.0));
            while a > 0.5 && a < 50.0 {
                let mut b = x[1] + a;
                while b > 1.0 && b < 200.0 { b = b * 0.4; y = y + b * x[2]; }
                a = a - 0.9;
            }
            y
        }
    }
    // The loop's variable is carried, although no iteration changes it.
    unchanged_in_loop: inputs(4), Merges(0.93),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut kept = x[0] * 2.0;
            let mut y = S::from(0.0);
            for &v in x {
                if v > 10.0 { kept = v; }
                if v > 0.0 { y = y + kept; }
            }
            y * kept
        }
    }
}
