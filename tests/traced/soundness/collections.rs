//! Collections that grow, shrink and are taken apart on some paths.

programs! {
    pushed: inputs(5), Splits(0.60),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut kept = Vec::new();
            for &v in x { if v > 0.0 { kept.push(v); } else if v < -1.5 { kept.push(v * v); } }
            let mut y = S::from(1.0);
            for (i, v) in kept.iter().enumerate() { y = y + *v * (i + 1) as f64; }
            y * kept.len() as f64
        }
    }
    popped: inputs(5), Splits(0.85),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut all = x.to_vec();
            if x[0] > 0.0 { all.pop(); }
            if x[1] > 0.0 { all.truncate(2); } else if x[1] < -1.0 { all.clear(); }
            if x[2] > 1.0 { all.insert(0, x[2]); }
            if !all.is_empty() && x[3] > 0.0 { all.remove(0); }
            let mut y = S::from(0.5);
            for v in &all { y = y * *v + 1.0; }
            y
        }
    }
    stack: inputs(3).between(0.0, 2.5), Splits(0.75),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut stack = x.to_vec();
            let mut y = S::from(0.0);
            let mut steps = 0;
            while let Some(top) = stack.pop() {
                steps += 1;
                if top > 1.0 && steps < 12 { stack.push(top * 0.5); stack.push(top - 1.0); continue; }
                y = y * 0.9 + top;
            }
            y
        }
    }
    stack_of_tasks: inputs(4), Merges(0.95),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut stack = vec![(0usize, x.len())];
            let mut y = S::from(0.0);
            while let Some((low, high)) = stack.pop() {
                if high - low == 1 { y = y + x[low] * low as f64; continue; }
                let middle = (low + high) / 2;
                if x[low] > x[middle] { stack.push((low, middle)); stack.push((middle, high)); }
                else { stack.push((middle, high)); y = y * x[low]; }
            }
            y
        }
    }
    queue: inputs(4), Splits(0.35),
    plain { pub use std::collections::VecDeque; }
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut queue: VecDeque<S> = x.iter().copied().collect();
            let (mut y, mut left) = (S::from(0.0), 7);
            while let Some(front) = queue.pop_front() && left > 0 {
                left -= 1;
                if front > 0.5 { queue.push_back(front - 1.0); } else if front < -1.0 { queue.push_front(front + 0.8); }
                y = y * 0.5 + front;
            }
            y
        }
    }
    retained: inputs(5), Splits(0.17),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut all = x.to_vec();
            all.retain(|v| *v > -0.5);
            all.dedup_by(|a, b| (*a - *b).abs() < 0.3);
            let mut y = S::from(2.0);
            for v in all.drain(..) { if v > 1.0 { y = y - v; } else { y = y * v; } }
            y
        }
    }
    taken: inputs(5), Splits(0.65),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut slot: Option<S> = None;
            let mut y = S::from(0.0);
            for &v in x {
                if v > 0.5 { if let Some(old) = slot.replace(v) { y = y + old * v; } }
                else if v < -1.0 { if let Some(old) = slot.take() { y = y - old; } }
                else if let Some(kept) = &mut slot { *kept = *kept * v; }
            }
            y + slot.unwrap_or(S::from(3.0))
        }
    }
    maps: inputs(4), Splits(0.95),
    plain { pub use std::collections::BTreeMap; }
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut map: BTreeMap<usize, S> = BTreeMap::new();
            for (i, &v) in x.iter().enumerate() {
                if v > 0.0 { map.insert(i % 3, v); } else { let e = map.entry(i % 2).or_insert(S::from(1.0)); *e = *e * v; }
            }
            let mut y = S::from(0.0);
            for (k, v) in &map { y = y + *v * (*k as f64 + 1.0); }
            y
        }
    }
    taken_as_a_whole: inputs(4), Keeps("back", 0.95),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut front = vec![x[0], x[1]];
            let mut back = vec![x[2]];
            if x[3] > 0.0 { back.extend(core::mem::take(&mut front)); }
            else if x[3] < -1.0 { core::mem::swap(&mut front, &mut back); }
            else { front = core::mem::replace(&mut back, vec![x[3]]); }
            let mut y = S::from(1.0);
            for v in front.iter() { y = y * *v; }
            for v in back.iter() { y = y + *v * 2.0; }
            y
        }
    }
    boxes: inputs(4), Merges(0.95),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut a = Box::new(x[0]);
            let mut b = Box::new((x[1], x[2]));
            if x[3] > 0.0 { *a = *a * x[3]; } else { a = Box::new(b.0); }
            if b.1 > 0.5 { b.1 = *a; } else { *b = (*a, x[3]); }
            *a + b.0 * b.1
        }
    }
    rows: inputs(5), Splits(0.70),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut rows = vec![vec![x[0]], vec![], vec![x[1], x[2]]];
            for &v in x { if v > 0.7 { rows[1].push(v); } else { let last = rows.len() - 1; rows[last][0] = rows[last][0] + v; } }
            let mut y = S::from(0.0);
            for (i, row) in rows.iter().enumerate() { for v in row { if *v > 0.0 { y = y + *v * i as f64; } else { y = y - *v; } } }
            y
        }
    }
    shared_counted: inputs(4), Keeps("shared", 0.95),
    plain { pub use std::rc::Rc; }
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut shared = Rc::new(x[0]);
            let other = Rc::clone(&shared);
            if x[1] > 0.0 { shared = Rc::new(x[1] * 2.0); }
            if x[2] > 0.0 { *Rc::make_mut(&mut shared) = x[2] + *other; }
            let y = if x[3] > 0.0 { *shared } else { -*shared };
            y * *other
        }
    }
}
