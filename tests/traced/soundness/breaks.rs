//! Loops with `break`: an exit that was seen in one iteration is known in others,
//! if the values carried to its target correspond.

programs! {
    escapes_of_for: inputs(1).between(0.26, 1.5), Merges(0.97),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut z = S::from(0.0);
            for _ in 0..30 {
                z = z * z + x[0];
                if z * z > 4.0 { break; }
            }
            z
        }
    }
    escapes_by_position: inputs(1).between(0.26, 1.5), Merges(0.97),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut z = S::from(0.0);
            for i in 0..30 {
                z = z * z + x[0] + f64::from(i) * 0.001;
                if z > 4.0 { break; }
            }
            z
        }
    }
    escapes_of_while: inputs(1).between(0.26, 1.5), Merges(0.95),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let (mut z, mut k) = (S::from(0.0), 0);
            while k < 30 {
                z = z * z + x[0];
                if z * z > 4.0 { break; }
                k += 1;
            }
            z
        }
    }
    escapes_first_short: inputs(1).between(0.26, 1.5).order(Descending), Merges(0.9),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let (mut z, mut w) = (S::from(0.0), x[0]);
            for _ in 0..30 {
                z = z * z + x[0];
                if z > 4.0 { w = w * z; break; }
                w = w + z.sin();
            }
            z + w
        }
    }
    returns_out_of_for: inputs(1).between(0.26, 1.5), Merges(0.95),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut z = x[0];
            for _ in 0..25 {
                z = z * z + x[0];
                if z > 3.0 { return z * 3.0; }
            }
            z
        }
    }
    value_of_the_loop: inputs(1).between(0.26, 1.5), Merges(0.9),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let (mut z, mut k) = (x[0], 0);
            let y = loop {
                z = z * z + x[0];
                k += 1;
                if z > 4.0 { break z * 2.0; }
                if k > 20 { break z; }
            };
            y * y + z
        }
    }
    // The number of the iteration is needed behind the loop.
    counted_escapes: inputs(1).between(0.26, 1.5), Splits(0.3),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let (mut z, mut n) = (S::from(0.0), 0);
            for i in 0..20 {
                n = i;
                z = z * z + x[0];
                if z > 4.0 { break; }
            }
            z * f64::from(n)
        }
    }
    counted_by_while: inputs(1).between(0.26, 1.5), Splits(0.3),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let (mut z, mut k) = (S::from(0.0), 0);
            while k < 20 {
                z = z * z + x[0];
                if z > 4.0 { break; }
                k += 1;
            }
            z * f64::from(k)
        }
    }
    counted_and_returned: inputs(1).between(0.26, 1.5), Splits(0.3),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut z = S::from(0.0);
            for i in 0..20 {
                z = z * z + x[0];
                if z > 4.0 { return z * f64::from(i); }
            }
            z
        }
    }
    // It is known only after the loop.
    counted_at_the_break: inputs(1).between(0.26, 1.5), Splits(0.3),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let (mut z, mut n) = (S::from(0.0), 100);
            for i in 0..20 {
                z = z * z + x[0];
                if z > 4.0 { n = i; break; }
            }
            z * f64::from(n)
        }
    }
    state_at_the_break: inputs(1).between(0.26, 1.5), Merges(0.94),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let (mut z, mut hits) = (S::from(0.0), 2);
            for _ in 0..20 {
                z = z * z + x[0];
                if z > 4.0 { hits += 1; break; }
            }
            z * f64::from(hits)
        }
    }
    // A constant leaves no trace, and is another one in each iteration.
    constants_are_carried: inputs(1).between(0.26, 1.5), Splits(0.3),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let (mut z, mut w) = (S::from(0.0), S::from(7.0));
            for i in 0..20 {
                z = z * z + x[0];
                if z > 4.0 { break; }
                w = S::from(f64::from(i));
            }
            z * w
        }
    }
    constants_or_numbers: inputs(1).between(0.26, 1.5), Sound,
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let (mut z, mut w) = (S::from(0.0), S::from(7.0));
            for i in 0..20 {
                z = z * z + x[0];
                if z > 4.0 { break; }
                if i == 3 { w = z; }
                if i == 5 { w = S::from(0.0); }
                if i == 8 { w = x[0]; }
            }
            z * w
        }
    }
    // What is written depends on where the loop is, and all of it is needed.
    elements_at_the_break: inputs(1).between(0.26, 1.5), Splits(0.3),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let (mut z, mut a) = (S::from(0.0), [x[0]; 20]);
            for i in 0..20 {
                z = z * z + x[0];
                if z > 4.0 { a[i] = z; break; }
            }
            let mut y = z;
            for k in 0..20 { y = y * 0.5 + a[k] * f64::from(k as u32); }
            y
        }
    }
    one_element_is_needed: inputs(1).between(0.26, 1.5), Sound,
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let (mut z, mut a) = (S::from(0.0), [x[0]; 20]);
            let last = 7;
            for i in 0..20 {
                z = z * z + x[0];
                if z > 4.0 { a[i] = z; break; }
                a[last] = z * 0.5;
            }
            a[last] + z
        }
    }
    references_at_the_break: inputs(6), Sound,
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let (mut y, mut r) = (x[0], &x[5]);
            for i in 0..5 {
                y = y * 0.5 + x[i];
                if y > 1.0 { r = &x[i]; break; }
            }
            y * *r
        }
    }
    a_typed_reference_at_the_break: inputs(6), Sound,
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut y = x[0];
            let mut r: &S = &x[5];
            for i in 0..5 {
                y = y * 0.5 + x[i];
                if y > 1.0 { r = &x[i]; break; }
            }
            y * *r
        }
    }
    a_reference_returned: inputs(6), Sound,
    traced {
        fn first<S: Num>(x: &[S]) -> &S {
            for v in x {
                if *v > 1.0 { return v; }
            }
            &x[0]
        }
        pub fn run<S: Num>(x: &[S]) -> S {
            *first(x) * 3.0
        }
    }
    a_reference_out_of_an_iterator: inputs(6), Sound,
    traced {
        fn first<S: Num>(x: &[S]) -> &S {
            let mut items = x.iter();
            while let Some(v) = items.next() {
                if *v > 1.0 { return v; }
            }
            &x[0]
        }
        pub fn run<S: Num>(x: &[S]) -> S {
            *first(x) * 3.0
        }
    }
    a_reference_out_of_a_shrinking_slice: inputs(6), Sound,
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let (mut rest, mut r, mut y): (&[S], &S, S) = (x, &x[5], x[0]);
            loop {
                let Some((v, tail)) = rest.split_first() else { break };
                y = y * 0.5 + *v;
                if y > 1.0 { r = v; break; }
                rest = tail;
            }
            y * *r
        }
    }
    a_reference_out_of_two_loops: inputs(6), Sound,
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut r: &S = &x[5];
            'outer: for i in 0..3 {
                for j in 0..2 {
                    if x[i] + x[3 + j] > 1.0 { r = &x[i]; break 'outer; }
                }
            }
            x[0] * *r
        }
    }
    references_out_of_a_branch: inputs(3), Sound,
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut y = x[2];
            for i in 0..2 {
                let mut r = &x[0];
                if x[i] > 1.0 { r = &x[i]; }
                y = y * 0.5 + *r * f64::from(i as u32 + 1);
            }
            y
        }
    }
    // Changes after the branch are not carried if the branch exits the loop.
    changes_after_the_branch: inputs(1).between(0.26, 1.5), Merges(0.9),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let (mut z, mut u, mut v) = (S::from(0.0), x[0], x[0] * 2.0);
            for _ in 0..20 {
                z = z * z + x[0];
                if z > 4.0 { u = v; break; }
                v = u;
                u = z * 0.5;
            }
            z * v + u
        }
    }
    // One variable has the number of another in one iteration, but not in all.
    equal_by_chance: inputs(1).between(0.26, 1.5), Splits(0.3),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let (mut z, mut u, mut v) = (S::from(0.0), x[0], x[0]);
            for i in 0..20 {
                z = z * z + x[0];
                if z > 4.0 { break; }
                v = if i % 3 == 0 { z } else { u };
                u = z;
            }
            z * v + u * u
        }
    }
    shadowed: inputs(1).between(0.26, 1.5), Sound,
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut z = S::from(0.0);
            for i in 0..20 {
                z = z * z + x[0];
                let w = z * 2.0;
                {
                    let z = w + f64::from(i);
                    if z > 6.0 { break; }
                }
            }
            z
        }
    }
    breaks_and_continues: inputs(1).between(0.26, 1.5), Merges(0.5),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let (mut z, mut w) = (S::from(0.0), x[0]);
            for _ in 0..12 {
                z = z * z + x[0];
                if z > 4.0 { break; } else if z > 1.0 { continue; }
                w = w * 0.5 + z;
            }
            z + w
        }
    }
    // The last iteration ends like one with a `break`.
    last_iterations: inputs(2), Merges(0.5),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let (mut y, mut w) = (x[0], x[1]);
            for _ in 0..4 {
                y = y * 0.75 + x[1];
                if y > 1.0 { w = w + y; continue; }
                if y < -1.0 { w = w * y; break; }
                w = w - 0.5;
            }
            w
        }
    }
    nested_escapes: inputs(1).between(0.26, 1.5), Merges(0.9),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let (mut z, mut w) = (S::from(0.0), x[0]);
            for _ in 0..5 {
                for _ in 0..5 {
                    z = z * z + x[0];
                    if z > 4.0 { break; }
                }
                w = w + z;
                if w > 5.0 { break; }
                z = z * 0.5;
            }
            w + z
        }
    }
    escapes_of_both: inputs(1).between(0.26, 1.5), Splits(0.9),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let (mut z, mut w) = (S::from(0.0), x[0]);
            'all: for i in 0..5 {
                for j in 0..5 {
                    z = z * z + x[0];
                    if z > 4.0 { break 'all; }
                    if z * z * f64::from(j) > f64::from(i + 3) { break; }
                }
                w = w + z;
            }
            w + z
        }
    }
    // The outer loop counts what is needed later.
    outer_counts: inputs(1).between(0.26, 1.5), Splits(0.3),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let (mut z, mut rounds) = (S::from(0.0), 0);
            'all: for _ in 0..5 {
                rounds += 1;
                for _ in 0..4 {
                    z = z * z + x[0];
                    if z > 4.0 { break 'all; }
                }
            }
            z * f64::from(rounds)
        }
    }
    helpers_with_loops: inputs(2).between(0.3, 1.5), Merges(0.9),
    traced {
        fn escape<S: Num>(c: S, scale: f64) -> S {
            let mut z = c;
            for _ in 0..15 {
                z = z * z + c;
                if z > 4.0 { return z * scale; }
            }
            z
        }
        pub fn run<S: Num>(x: &[S]) -> S { escape(x[0], 1.5) + escape(x[1], 1.5) * x[0] }
    }
    helpers_differ: inputs(2).between(0.3, 1.5), Merges(0.9),
    traced {
        fn escape<S: Num>(c: S, scale: f64) -> S {
            let (mut z, mut w) = (c, c);
            for _ in 0..15 {
                z = z * z + c;
                if z > 4.0 { w = w * scale; break; }
            }
            z * scale + w
        }
        pub fn run<S: Num>(x: &[S]) -> S { escape(x[0], 1.5) + escape(x[1], 2.5) * x[0] }
    }
    through_references: inputs(1).between(0.26, 1.5), Merges(0.9),
    traced {
        fn escape<S: Num>(c: S, z: &mut S, n: &mut u32) {
            for _ in 0..15 {
                *z = *z * *z + c;
                if *z > 4.0 { *n += 1; return; }
            }
        }
        pub fn run<S: Num>(x: &[S]) -> S {
            let (mut z, mut n) = (x[0], 1);
            escape(x[0], &mut z, &mut n);
            let mut w = x[0] * 0.5;
            escape(x[0] * 1.5, &mut w, &mut n);
            z * w * f64::from(n)
        }
    }
    // Whether the last iteration returns or is the last makes no difference but that of
    // a mark, so that this is taken for hidden state.
    counts_behind_references: inputs(1).between(0.26, 1.5), Sound,
    traced {
        fn escape<S: Num>(c: S, z: &mut S, n: &mut u32) {
            for _ in 0..15 {
                *z = *z * *z + c;
                *n += 1;
                if *z > 4.0 { return; }
            }
        }
        pub fn run<S: Num>(x: &[S]) -> S {
            let (mut z, mut n) = (x[0], 1);
            escape(x[0], &mut z, &mut n);
            z * f64::from(n)
        }
    }
    questions: inputs(1).between(0.26, 1.5), Merges(0.8),
    traced {
        fn below<S: Num>(z: S) -> Option<S> { if z > 4.0 { None } else { Some(z * 0.9) } }
        fn escape<S: Num>(c: S) -> Option<S> {
            let mut z = c;
            for _ in 0..12 { z = below(z * z + c)?; }
            Some(z)
        }
        pub fn run<S: Num>(x: &[S]) -> S { escape(x[0]).unwrap_or(x[0] * 3.0) + x[0] }
    }
    // The escaped number decides where the loop continues.
    escapes_of_numbers: inputs(1).between(0.26, 1.5), Sound,
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let (mut z, mut n) = (S::from(0.0), 0.0);
            for _ in 0..8 {
                z = z * z + x[0];
                if z > 2.0 { n += z.floor().value(); if n > 5.0 { break; } }
            }
            z * n
        }
    }
    data_of_the_iteration: inputs(6), Merges(0.9),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut y = x[0];
            for v in x {
                y = y * 0.5 + *v;
                if y * *v > 2.0 { y = y - *v; break; }
            }
            y
        }
    }
    limits_of_the_iteration: inputs(1).between(0.26, 1.5), Splits(0.5),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut z = S::from(0.0);
            for limit in [2.0, 3.0, 2.5, 4.0, 2.0, 5.0, 3.0, 2.0, 1.5, 4.0] {
                z = z * z + x[0];
                if z > limit { z = z - limit; break; }
            }
            z
        }
    }
}
