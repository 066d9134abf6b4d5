//! Ordinary Rust: variables without a value, and values that are moved away, on
//! some of several paths.

ordinary! {
    assigned_after_calls: inputs(3),
    traced {
        fn twice(x: Var) -> Var {
            x * 2.0
        }
        fn note(count: &mut usize) {
            *count += 1;
        }
        pub fn run(x: &[Var]) -> Var {
            let mut count = 0;
            let mut y;
            let z;
            if x[0] > 0.0 {
                y = twice(x[0]);
                y += x[1];
                z = y * x[2];
                note(&mut count);
            } else {
                note(&mut count);
                z = twice(x[1]);
            }
            if x[1] > 1.0 {
                return z;
            }
            if count == 1 && x[2] > 0.0 {
                y = z + 1.0;
            } else {
                y = twice(z);
            }
            y * x[0]
        }
    }
    assigned_in_other_iterations: inputs(4),
    traced {
        fn half(x: Var) -> Var {
            x * 0.5
        }
        pub fn run(x: &[Var]) -> Var {
            let mut sum = Var::from(0.0);
            let mut last;
            for &v in x {
                if v > 0.0 {
                    last = half(v);
                    sum += last;
                } else {
                    sum -= half(v);
                }
                if sum > 2.0 {
                    break;
                }
                last = sum * v;
                sum += last.sin();
            }
            last = half(sum);
            if last > 0.5 { last } else { sum * x[0] }
        }
    }
    exit_in_an_arm: inputs(3),
    plain {
        fn fail(what: usize) -> ! {
            panic!("no such kind: {what}")
        }
    }
    traced {
        pub fn run(x: &[Var]) -> Var {
            let kind = if x[0] > 1.0 { 2 } else if x[0] > 0.0 { 1 } else { 0 };
            let scale;
            let mut shift;
            match kind {
                0 => {
                    shift = x[2];
                    scale = x[1] * shift;
                }
                1 => {
                    shift = x[1] * x[2];
                    scale = shift.sin();
                }
                2 => scale = x[2] * 3.0,
                other => fail(other),
            }
            if kind == 2 {
                if x[1] == 77.0 {
                    fail(9)
                } else {
                    shift = x[1];
                }
            } else {
                shift = x[0];
            }
            scale * shift
        }
    }
    moved_and_made_again: inputs(3),
    traced {
        fn total(v: Vec<Var>) -> Var {
            let mut sum = Var::from(0.0);
            for x in v {
                if x > 0.0 {
                    sum += x;
                }
            }
            sum
        }
        pub fn run(x: &[Var]) -> Var {
            let mut parts = vec![x[0]];
            let mut sum = Var::from(1.0);
            if x[0] > 0.5 {
                sum += total(parts);
            } else {
                parts.push(x[1]);
                sum -= parts[1];
            }
            if x[2] > 1.0 {
                return sum;
            }
            parts = vec![sum, x[2]];
            let mut i = 0;
            while i < 3 {
                let got = total(parts);
                if got > 2.0 {
                    sum *= got;
                    break;
                }
                parts = vec![got, x[i]];
                i += 1;
                if x[i - 1] < -1.0 {
                    continue;
                }
                parts.push(sum);
            }
            sum
        }
    }
    parts_moved: inputs(3),
    plain {
        #[derive(Carry)]
        struct Pair {
            left: Vec<Var>,
            right: Vec<Var>,
            scale: f64,
        }
    }
    traced {
        fn last(v: Vec<Var>) -> Var {
            v[v.len() - 1]
        }
        pub fn run(x: &[Var]) -> Var {
            let mut pair = Pair { left: vec![x[0]], right: vec![x[1]], scale: 1.0 };
            let mut sum = Var::from(0.0);
            for i in 0..3 {
                if x[i] > 0.0 {
                    sum += last(pair.left);
                    pair.scale += 0.5;
                } else {
                    pair.left.push(sum);
                    sum -= pair.left[0];
                }
                if sum > 3.0 {
                    return sum;
                }
                pair.left = vec![sum, x[i]];
                pair.right.push(x[i] * pair.scale);
            }
            let Pair { left, mut right, scale } = pair;
            if x[0] > x[1] {
                right.extend(left);
            }
            last(right) * scale + sum
        }
    }
    loop_that_assigns_or_leaves: inputs(4),
    traced {
        fn good(x: Var, limit: f64) -> bool {
            x * x < limit
        }
        pub fn run(x: &[Var]) -> Var {
            let (low, high);
            let mut i = 0;
            'search: loop {
                if good(x[i], 0.25) {
                    low = x[i];
                    high = low + 1.0;
                    break 'search;
                }
                for j in 0..i {
                    if good(x[j] - x[i], 0.5) {
                        low = x[j];
                        high = x[i];
                        break 'search;
                    }
                }
                i += 1;
                if i == x.len() {
                    return x[0];
                }
            }
            let mut step;
            if low > high {
                step = high - low;
                step *= 2.0;
            } else if good(low, 0.1) {
                return high;
            } else {
                step = low;
            }
            step = step * high + low;
            step
        }
    }
    bound_by_match_and_let_else: inputs(3),
    traced {
        fn root(x: Var) -> Option<Var> {
            if x > 0.0 { Some(x.sqrt()) } else { None }
        }
        pub fn run(x: &[Var]) -> Var {
            let value;
            let Some(r) = root(x[0]) else {
                let Some(other) = root(x[1]) else { return x[2] };
                value = other * x[2];
                return value;
            };
            let flag;
            match root(x[1] - r) {
                Some(a) if a > r => (value, flag) = (a, true),
                Some(a) => {
                    value = a * r;
                    flag = false;
                }
                None if x[2] > 0.0 => {
                    flag = root(x[2]).is_some();
                    value = r;
                }
                None => return r,
            }
            if flag { value } else { value * x[2] }
        }
    }
    deferred_references: inputs(3),
    traced {
        fn grow(v: &mut Var, by: Var) {
            *v += by;
        }
        pub fn run(x: &[Var]) -> Var {
            let (mut a, mut b) = (x[0], x[1]);
            let chosen;
            let other: &Var;
            if x[2] > 0.0 {
                grow(&mut a, x[2]);
                chosen = &mut a;
                other = &b;
            } else {
                grow(&mut b, x[0]);
                chosen = &mut b;
                other = &a;
            }
            if *chosen > *other {
                grow(chosen, *other);
            } else {
                *chosen = x[2];
            }
            a * b
        }
    }
    deferred_in_closures: inputs(3),
    traced {
        pub fn run(x: &[Var]) -> Var {
            let limit;
            let mut hits = 0;
            if x[0] > 0.0 {
                limit = x[1].exp();
            } else {
                limit = x[2].abs();
            }
            let mut over = |v: Var| {
                if v < 0.0 {
                    return false;
                }
                hits += 1;
                v > limit
            };
            let mut sum = Var::from(0.0);
            for &v in x {
                if over(v) {
                    sum += v;
                } else {
                    sum += 0.5;
                }
            }
            sum * hits as f64 + limit
        }
    }
    assigned_between_jumps: inputs(4),
    traced {
        fn next(x: Var) -> Var {
            x * 0.7 + 0.1
        }
        pub fn run(x: &[Var]) -> Var {
            let mut v = x[0];
            let mut best;
            let mut rounds = 0;
            loop {
                if v > 1.0 {
                    best = next(v);
                    if best < x[1] {
                        return best;
                    }
                } else {
                    v = next(v);
                }
                rounds += 1;
                if rounds > 3 {
                    break;
                }
                best = v + x[2];
                if best > 2.0 {
                    v = best * 0.25;
                    continue;
                }
                v += x[3];
            }
            best = v * x[1];
            if best > 0.0 { best = next(best) }
            best
        }
    }
}
