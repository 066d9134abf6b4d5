//! Ordinary Rust: state behind references that is no traced number, and exits from
//! the last iteration.

ordinary! {
    counter_behind_a_reference: inputs(3),
    traced {
        fn search(x: &[Var], tries: &mut usize) -> Option<usize> {
            for (i, v) in x.iter().enumerate() {
                *tries += 1;
                if *v > 1.0 {
                    return Some(i);
                }
                if i + 1 == x.len() && *v > 0.0 {
                    *tries += 10;
                    return None;
                }
            }
            None
        }
        pub fn run(x: &[Var]) -> Var {
            let mut tries = 0;
            let first = search(x, &mut tries);
            let second = search(&x[1..], &mut tries);
            let i = first.or(second).unwrap_or(0);
            x[i] * tries as f64 + x[2]
        }
    }
    question_in_the_last_iteration: inputs(3),
    plain {
        #[derive(Default)]
        struct Stats {
            seen: usize,
            names: Vec<String>,
        }
    }
    traced {
        fn check(v: Var, stats: &mut Stats) -> Result<Var, String> {
            stats.seen += 1;
            if v < -1.0 {
                stats.names.push(format!("low {}", stats.seen));
                return Err(stats.names.join(","));
            }
            Ok(v * 2.0)
        }
        fn all(x: &[Var], stats: &mut Stats) -> Result<Var, String> {
            let mut sum = Var::from(0.0);
            let mut rest = x;
            while let [first, tail @ ..] = rest {
                sum += check(*first, stats)?;
                rest = tail;
                if tail.is_empty() {
                    return Ok(sum);
                }
            }
            Err(String::new())
        }
        pub fn run(x: &[Var]) -> Var {
            let mut stats = Stats::default();
            let a = all(x, &mut stats);
            let b = all(&x[..2], &mut stats).unwrap_or(x[2]);
            match a {
                Ok(a) => a * b,
                Err(text) => b * (text.len() + stats.seen) as f64,
            }
        }
    }
    taken_items: inputs(4),
    traced {
        fn next_positive<'a>(items: &mut impl Iterator<Item = &'a Var>, skipped: &mut u32) -> Option<&'a Var> {
            loop {
                let item = items.next()?;
                if *item > 0.0 {
                    return Some(item);
                }
                *skipped += 1;
            }
        }
        pub fn run(x: &[Var]) -> Var {
            let mut items = x.iter();
            let mut skipped = 0;
            let Some(a) = next_positive(&mut items, &mut skipped) else {
                return x[0] * f64::from(skipped);
            };
            let b = next_positive(items.by_ref(), &mut skipped).copied();
            let rest: Var = items.copied().sum();
            b.map_or(*a, |b| b * *a) + rest * f64::from(skipped)
        }
    }
    callback_with_state: inputs(3),
    traced {
        fn visit(x: &[Var], f: &mut dyn FnMut(usize, Var) -> bool) -> usize {
            let mut n = 0;
            for (i, v) in x.iter().enumerate() {
                if !f(i, *v) {
                    break;
                }
                n += 1;
            }
            n
        }
        pub fn run(x: &[Var]) -> Var {
            let mut seen = Vec::new();
            let mut total = Var::from(0.0);
            let n = visit(x, &mut |i, v| {
                if v > 1.0 {
                    return false;
                }
                seen.push(i);
                total += v * seen.len() as f64;
                true
            });
            let m = visit(&x[1..], &mut |_, v| v > 0.0);
            total * (n + 2 * m) as f64 + x[seen.last().copied().unwrap_or(2)]
        }
    }
    slots_behind_references: inputs(4),
    traced {
        fn fill(slots: &mut [Option<usize>; 3], limit: &mut f64, x: &[Var]) -> bool {
            'items: for (i, v) in x.iter().enumerate() {
                for slot in slots.iter_mut() {
                    match slot {
                        None if *v > *limit => {
                            *slot = Some(i);
                            *limit += 0.25;
                            continue 'items;
                        }
                        Some(old) if x[*old] < *v => {
                            *old = i;
                            if i == 3 {
                                return true;
                            }
                            break;
                        }
                        _ => {}
                    }
                }
            }
            false
        }
        pub fn run(x: &[Var]) -> Var {
            let (mut slots, mut limit) = ([None; 3], -1.0);
            let full = fill(&mut slots, &mut limit, x);
            let mut sum = Var::from(0.0);
            for i in slots.into_iter().flatten() {
                sum += x[i] * limit;
            }
            if full { sum * 2.0 } else { sum + x[0] }
        }
    }
    text_as_state: inputs(3),
    traced {
        fn describe(x: Var, out: &mut String) {
            if x > 0.5 {
                out.push('+');
            } else if x < -0.5 {
                out.insert(0, '-');
            } else {
                let n = out.len();
                out.push_str(&n.to_string());
            }
        }
        pub fn run(x: &[Var]) -> Var {
            let mut text = String::from("x");
            for v in x {
                describe(*v, &mut text);
            }
            let weight = match text.as_bytes() {
                [b'-', .., b'+'] => 2.0,
                [b'-', b'-', ..] => 3.0,
                [b'x', rest @ ..] => rest.len() as f64,
                _ => -1.0,
            };
            x[0] * weight + x[1] * x[2]
        }
    }
    grid_walk: inputs(4),
    plain {
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
        enum Way {
            Up,
            Right,
        }
        struct Grid {
            seen: std::collections::BTreeSet<(usize, usize)>,
            trail: Vec<Way>,
        }
    }
    traced {
        impl Grid {
            fn go(&mut self, at: (usize, usize), x: &[Var]) -> Result<Var, Way> {
                let (i, j) = at;
                if !self.seen.insert(at) {
                    return Err(*self.trail.last().unwrap_or(&Way::Up));
                }
                if i + j == 3 {
                    return Ok(x[i] * x[j]);
                }
                let way = if x[i] > x[j] { Way::Up } else { Way::Right };
                self.trail.push(way);
                let next = match way {
                    Way::Up => (i + 1, j),
                    Way::Right => (i, j + 1),
                };
                Ok(self.go(next, x)? + x[i + j])
            }
        }
        pub fn run(x: &[Var]) -> Var {
            let mut grid = Grid { seen: Default::default(), trail: vec![] };
            let first = grid.go((0, 0), x);
            grid.seen.remove(&(1, 0));
            let second = grid.go((1, 0), x);
            let turns = grid.trail.windows(2).filter(|w| w[0] != w[1]).count();
            match (first, second) {
                (Ok(a), Ok(b)) => a + b * turns as f64,
                (Ok(a), Err(Way::Up)) | (Err(_), Ok(a)) => a * 0.5,
                _ => x[3] * turns as f64,
            }
        }
    }
    events_in_order: inputs(4),
    plain {
        use std::cmp::{Ordering, Reverse};
        use std::collections::BinaryHeap;
        #[derive(PartialEq, Eq, PartialOrd, Ord)]
        struct Event(u32, usize);
    }
    traced {
        pub fn run(x: &[Var]) -> Var {
            let mut heap = BinaryHeap::new();
            let mut order: Vec<usize> = (0..x.len()).collect();
            order.sort_by(|&a, &b| x[a].partial_cmp(&x[b]).unwrap_or(Ordering::Equal));
            for (rank, &i) in order.iter().enumerate() {
                heap.push(Reverse(Event(rank as u32, i)));
            }
            let mut level = x[0];
            let mut steps = 0;
            while let Some(Reverse(Event(time, i))) = heap.pop() {
                level = level * 0.5 + x[i];
                steps += 1;
                if level > 1.0 && time < 3 && steps < 6 {
                    heap.push(Reverse(Event(time + 2, (i + 1) % 4)));
                }
            }
            level * steps as f64
        }
    }
    shadowed_everywhere: inputs(3),
    traced {
        pub fn run(x: &[Var]) -> Var {
            let y = x[0];
            let y = if y > 0.0 { let y = y * 2.0; y + 1.0 } else { y };
            let mut n = 1;
            for y in x {
                let n_before = n + 1;
                let mut n = n_before;
                if *y > 0.5 {
                    n += 3;
                }
                let y = *y * n as f64;
                if y > 2.0 {
                    let x = [y, y];
                    return x[0] + x[1];
                }
            }
            n += if let Some(y) = x.iter().find(|y| **y < 0.0) { let y = y.value(); (y < -1.0) as i32 } else { 5 };
            { let n = n * 2; y * f64::from(n) }
        }
    }
    temporaries_in_conditions: inputs(3),
    plain {
        use std::cell::RefCell;
        struct Guarded(RefCell<Vec<Var>>);
    }
    traced {
        impl Guarded {
            fn last(&self) -> Option<Var> {
                self.0.borrow().last().copied()
            }
            fn grow(&self, v: Var) {
                if let Some(last) = self.last() {
                    self.0.borrow_mut().push(last * v);
                } else {
                    self.0.borrow_mut().push(v);
                }
            }
        }
        pub fn run(x: &[Var]) -> Var {
            let guarded = Guarded(RefCell::new(Vec::new()));
            for v in x {
                guarded.grow(*v);
                if guarded.0.borrow().len() > 1 && guarded.0.borrow()[1] > 0.0 {
                    guarded.0.borrow_mut()[0] *= 0.5;
                }
            }
            match guarded.0.borrow().as_slice() {
                [a, b, ..] if *a > *b => *a,
                all => all[all.len() - 1],
            }
        }
    }
}
