//! Arrays and slices, changed through indices, references and sorting.

programs! {
    assigned_by_index: inputs(5), Merges(0.95),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut a = [S::from(0.0); 3];
            for i in 0..x.len() {
                if x[i] > 0.0 { a[i % 3] = x[i]; } else { a[(i + 1) % 3] = a[i % 3] * 0.5 - x[i]; }
            }
            a[0] * a[1] - a[2]
        }
    }
    // The index is state that a comparison chose.
    index_chosen_before: inputs(5), Splits(0.65),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut a = [x[0], x[1], x[2]];
            let mut k = 0;
            for &v in x {
                if v > 1.0 { k = (k + 1) % 3; }
                a[k] = a[k] + v * v;
            }
            a[0] - a[1] * a[2]
        }
    }
    swapped: inputs(4), Merges(0.95),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let (mut a, mut b) = (x[0], x[1]);
            if a > b { core::mem::swap(&mut a, &mut b); }
            let mut all = [a, b, x[2], x[3]];
            if all[2] > all[3] { all.swap(2, 3); }
            if all[0] > all[2] { let t = all[0]; all[0] = all[2]; all[2] = t; }
            if all[1] > all[3] { (all[1], all[3]) = (all[3], all[1]); }
            if all[1] > all[2] { let (p, q) = all.split_at_mut(2); core::mem::swap(&mut p[1], &mut q[0]); }
            all[0] + all[1] * 2.0 + all[2] * 3.0 + all[3] * 4.0
        }
    }
    bubble_sort: inputs(5), Merges(0.95),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut a = [x[0], x[1], x[2], x[3], x[4]];
            for i in 0..5 { for j in 0..4 - i { if a[j] > a[j + 1] { a.swap(j, j + 1); } } }
            let mut y = S::from(0.0);
            for (i, v) in a.iter().enumerate() { y = y + *v * (i * i) as f64; }
            y
        }
    }
    insertion_sort: inputs(5), Merges(0.95),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut a = x.to_vec();
            for i in 1..a.len() {
                let v = a[i];
                let mut j = i;
                while j > 0 && a[j - 1] > v { a[j] = a[j - 1]; j -= 1; }
                a[j] = v;
            }
            a[0] * a[4] + a[2]
        }
    }
    // The comparisons are made in the standard library.
    sorted_by: inputs(4), Splits(0.45),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut a = x.to_vec();
            a.sort_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
            let mut y = a[0] - a[3];
            if a[1] + a[2] > 0.0 { y = y * a[1]; } else { y = y + a[2]; }
            if x[0] > 0.0 { y = y.sin(); }
            y
        }
    }
    sorted_in_one_branch: inputs(4), Merges(0.90),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut a = vec![x[1], x[2], x[3]];
            if x[0] > 0.0 { a.sort_by(|a, b| b.partial_cmp(a).unwrap_or(std::cmp::Ordering::Equal)); }
            else if x[0] < -1.0 { a.reverse(); }
            else { a.rotate_left(1); }
            a[0] + a[1] * 2.0 + a[2] * 4.0
        }
    }
    elimination: inputs(6), Merges(0.95),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let one = S::from(1.0);
            let mut m = [[x[0], x[1], one], [x[2], x[3], x[0]], [x[4], x[5], x[1]]];
            let mut det = S::from(1.0);
            for k in 0..3 {
                let mut p = k;
                for i in k + 1..3 { if m[i][k].abs() > m[p][k].abs() { p = i; } }
                if p != k { m.swap(p, k); det = -det; }
                det = det * m[k][k];
                if m[k][k] == 0.0 { return det; }
                for i in k + 1..3 {
                    let f = m[i][k] / m[k][k];
                    for j in k..3 { m[i][j] = m[i][j] - f * m[k][j]; }
                }
            }
            det
        }
    }
    by_iter_mut: inputs(4), UntrackedUse(0.95),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut a = x.to_vec();
            for v in a.iter_mut() { if *v > 0.5 { *v = *v * 2.0; } else { *v = *v - 1.0; } }
            for v in &mut a { if *v < -1.0 { continue; } *v = v.sin(); }
            for (i, v) in a.iter_mut().enumerate() { if *v > 0.0 { *v = *v * i as f64; } }
            for pair in a.chunks_mut(2) { if pair[0] > pair[1] { pair.swap(0, 1); } }
            a[0] - a[1] * a[2] + a[3]
        }
    }
    split_at_mut: inputs(4), Merges(0.95),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut a = [x[0], x[1], x[2], x[3]];
            let (left, right) = a.split_at_mut(2);
            for (l, r) in left.iter_mut().zip(right.iter_mut()) {
                if *l > *r { *l = *l - *r; } else { *r = *r * *l; }
            }
            if left[0] > 0.0 { right[1] = left[1]; }
            if right[1] > 0.5 { left[1] = left[0] + 1.0; }
            a[0] + a[1] * 2.0 - a[2] * a[3]
        }
    }
    // Two references to parts of one array, either of which is taken.
    chosen_reference: inputs(4), Keeps("second", 0.95),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut a = [x[0], x[1]];
            let (first, second) = a.split_at_mut(1);
            let chosen = if x[2] > 0.0 { &mut first[0] } else { &mut second[0] };
            *chosen = *chosen * 3.0;
            if x[3] > 0.0 { *chosen = *chosen + x[3]; }
            a[0] - a[1] * 2.0
        }
    }
    references_to_references: inputs(4), Keeps("q", 0.95),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let (mut a, mut b) = (x[0], x[1]);
            let mut p = &mut a;
            let mut q = &mut b;
            if x[2] > 0.0 { core::mem::swap(&mut p, &mut q); }
            *p = *p * 2.0;
            if x[3] > 0.0 { **(&mut q) = *p + x[3]; }
            a * 3.0 + b
        }
    }
    shared_reference_chosen: inputs(4), Keeps("the value of the expression", 0.95),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let a = x[0] * 2.0;
            let b = x[1].sin();
            let r: &S = if x[2] > 0.0 { &a } else { &b };
            let rr = &r;
            let y = if x[3] > 0.0 { **rr } else { x[3] };
            y * *r
        }
    }
    const_generics: inputs(6), Merges(0.95),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            reduce::<S, 2>([x[0], x[1]]) + reduce::<S, 3>([x[2], x[3], x[4]]) * reduce::<S, 1>([x[5]]) + reduce::<S, 0>([])
        }
        fn reduce<S: Num, const N: usize>(a: [S; N]) -> S {
            let mut best = S::from(-1.0);
            let mut rest = [S::from(0.5); N];
            for i in 0..N { if a[i] > best { best = a[i]; } else { rest[i] = a[i]; } }
            for v in rest { if v < 0.0 { best = best + v; } }
            best
        }
    }
    filled_in_branch: inputs(3), Merges(0.95),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut a = [x[0]; 4];
            if x[1] > 0.0 { a[1..3].fill(x[1]); } else { a.copy_within(0..2, 2); a[0] = x[2]; }
            if x[2] > 0.5 { a[3] = a[1] * a[2]; }
            a[0] + a[1] * a[3] - a[2]
        }
    }
    prefix_changed: inputs(5), Merges(0.95),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut a = x.to_vec();
            let mut rest = &mut a[..];
            while let [first, others @ ..] = rest {
                if *first > 0.0 { *first = *first * 2.0; } else { *first = -*first; }
                rest = others;
            }
            a[0] * a[1] + a[2] * a[3] - a[4]
        }
    }
}
