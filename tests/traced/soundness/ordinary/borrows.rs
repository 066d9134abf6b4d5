//! Ordinary Rust: borrows that are kept while their owners have changed.

ordinary! {
    kept_element: inputs(3),
    traced {
        pub fn run(x: &[Var]) -> Var {
            let mut v = vec![x[0], x[1]];
            let zero = Var::from(0.0);
            let mut best = &zero;
            if x[2] > 0.0 {
                v.push(x[2]);
                best = &v[0];
            } else if x[1] > 0.0 {
                v.clear();
                best = &x[1];
            }
            let result = *best * 2.0;
            result + v.len() as f64
        }
    }
    kept_last: inputs(3),
    traced {
        fn longest<'a>(a: &'a [Var], b: &'a [Var]) -> &'a [Var] {
            if a.len() > b.len() { a } else { b }
        }
        pub fn run(x: &[Var]) -> Var {
            let mut left = vec![x[0]];
            let right = vec![x[1], x[2]];
            let mut chosen: &[Var] = &right;
            if x[0] > 0.0 {
                left.push(x[1]);
                left.push(x[2] * x[0]);
                chosen = longest(&left, &right);
            }
            let mut last = None;
            if x[1] > x[2] {
                last = chosen.last();
            }
            last.map_or(chosen[0], |l| *l * *l) + left[0]
        }
    }
    list_of_borrows: inputs(4),
    traced {
        pub fn run(x: &[Var]) -> Var {
            let mut rows = vec![vec![x[0]], vec![x[1]]];
            let mut views: Vec<&[Var]> = Vec::new();
            if x[2] > 0.0 {
                rows[0].push(x[2]);
                rows[1].push(x[3]);
                views.push(&rows[0]);
                views.push(&rows[1]);
            } else {
                rows.truncate(1);
                for row in &rows {
                    views.push(row);
                }
            }
            let mut sum = Var::from(0.0);
            for view in &views {
                for v in *view {
                    sum += if *v > 0.0 { *v } else { *v * 0.5 };
                }
            }
            sum + rows.len() as f64
        }
    }
    borrow_in_struct: inputs(3),
    plain {
        struct Solver<'a> {
            work: &'a mut Vec<Var>,
            steps: usize,
        }
    }
    traced {
        impl Solver<'_> {
            fn step(&mut self, x: Var) {
                if x > 0.0 {
                    self.work.push(x);
                } else if let Some(last) = self.work.last_mut() {
                    *last -= x;
                }
                self.steps += 1;
            }
            fn finish(self) -> (Var, usize) {
                let mut sum = Var::from(0.0);
                for v in self.work.iter() {
                    sum += *v * *v;
                }
                (sum, self.steps)
            }
        }
        fn solve(work: &mut Vec<Var>, x: &[Var]) -> Var {
            let mut solver = Solver { work, steps: 0 };
            for &v in x {
                solver.step(v);
            }
            if solver.steps > 5 {
                return x[0];
            }
            let (sum, steps) = solver.finish();
            sum * steps as f64
        }
        fn wrapped(work: &mut Vec<Var>, x: &[Var]) -> Var {
            let mut slot = Some(work);
            if x[0] > 0.0 && let Some(inner) = slot.take() {
                inner.push(x[1]);
                return inner[0];
            }
            match slot {
                Some(inner) => solve(inner, x),
                None => x[2],
            }
        }
        pub fn run(x: &[Var]) -> Var {
            let mut work = vec![x[2]];
            let first = wrapped(&mut work, x);
            let second = solve(&mut work, x);
            first * second + work.len() as f64
        }
    }
    split_and_swap: inputs(4),
    traced {
        fn sort(v: &mut [Var]) -> usize {
            let mut swaps = 0;
            let (left, right) = v.split_at_mut(2);
            for (a, b) in left.iter_mut().zip(right.iter_mut()) {
                if *a > *b {
                    std::mem::swap(a, b);
                    swaps += 1;
                }
            }
            if let [first, .., last] = v {
                if *first < *last {
                    std::mem::swap(first, last);
                } else {
                    *first += *last;
                }
            }
            swaps
        }
        pub fn run(x: &[Var]) -> Var {
            let mut v = x.to_vec();
            let swaps = sort(&mut v);
            let old = std::mem::replace(&mut v[0], x[1]);
            let taken = if old > 0.0 { std::mem::take(&mut v) } else { Vec::new() };
            let mut sum = old * swaps as f64;
            for (i, t) in taken.iter().enumerate() {
                sum += *t * (i + 1) as f64;
            }
            if v.is_empty() { sum } else { sum - v[3] }
        }
    }
    walk_of_a_list: inputs(4),
    plain {
        #[derive(Carry)]
        struct Node {
            value: Var,
            next: Option<Box<Node>>,
        }
    }
    traced {
        fn insert(head: &mut Option<Box<Node>>, value: Var) {
            let mut cursor = head;
            while let Some(node) = cursor {
                if node.value > value {
                    node.value = value;
                    node.value += value * 0.5;
                    return;
                }
                cursor = &mut node.next;
            }
            *cursor = Some(Box::new(Node { value, next: None }));
        }
        fn sum(mut node: Option<&Node>) -> Var {
            let mut total = Var::from(0.0);
            let mut weight = 1.0;
            while let Some(n) = node {
                total += n.value * weight;
                weight *= 0.5;
                node = n.next.as_deref();
            }
            total
        }
        pub fn run(x: &[Var]) -> Var {
            let mut head = None;
            for &v in x {
                insert(&mut head, v);
            }
            sum(head.as_deref())
        }
    }
    stack_of_work: inputs(3),
    traced {
        fn integrate(f: &dyn Fn(Var) -> Var, a: Var, b: Var) -> Var {
            let mut stack = vec![(a, b, 0)];
            let mut total = Var::from(0.0);
            while let Some((l, r, depth)) = stack.pop() {
                let m = (l + r) * 0.5;
                let (fl, fm, fr) = (f(l), f(m), f(r));
                let coarse = (fl + fr) * (r - l) * 0.5;
                let fine = (fl + fm * 4.0 + fr) * (r - l) / 6.0;
                let error = (coarse - fine).abs();
                if depth >= 2 || error < 0.5 {
                    total += fine;
                } else {
                    stack.push((l, m, depth + 1));
                    stack.push((m, r, depth + 1));
                }
            }
            total
        }
        pub fn run(x: &[Var]) -> Var {
            let (p, q) = (x[1], x[2]);
            integrate(&|t| (t * p).exp() + q, Var::from(0.0), x[0])
        }
    }
    shared_cells: inputs(3),
    plain {
        use std::cell::{Cell, RefCell};
        use std::rc::Rc;
        struct Counter {
            count: Cell<usize>,
            log: Rc<RefCell<Vec<Var>>>,
        }
    }
    traced {
        impl Counter {
            fn note(&self, v: Var) -> bool {
                self.count.set(self.count.get() + 1);
                if v > 0.0 {
                    self.log.borrow_mut().push(v);
                    return true;
                }
                false
            }
        }
        pub fn run(x: &[Var]) -> Var {
            let log = Rc::new(RefCell::new(Vec::new()));
            let counter = Counter { count: Cell::new(0), log: Rc::clone(&log) };
            let mut hits = 0;
            for &v in x {
                if counter.note(v) && counter.note(v - 1.0) {
                    hits += 1;
                }
            }
            let mut sum = Var::from(hits as f64);
            for v in log.borrow().iter() {
                sum += *v * *v;
            }
            sum * counter.count.get() as f64
        }
    }
    reborrow_in_loop: inputs(4),
    traced {
        fn descend<'a>(mut rest: &'a mut [Var], limit: f64) -> &'a mut Var {
            while rest.len() > 1 {
                let middle = rest.len() / 2;
                let (left, right) = rest.split_at_mut(middle);
                if left[0] > limit {
                    rest = left;
                } else {
                    rest = right;
                }
            }
            &mut rest[0]
        }
        pub fn run(x: &[Var]) -> Var {
            let mut v = x.to_vec();
            let found = descend(&mut v, 0.5);
            *found *= 3.0;
            if *found < 0.0 {
                *found = x[0] * x[1];
            }
            v[0] + v[1] * v[2] - v[3]
        }
    }
    last_iteration_returns: inputs(3),
    traced {
        fn advance(state: &mut (usize, f64), x: &[Var]) -> Var {
            for i in 0..x.len() {
                state.0 += 1;
                if x[i] > 0.0 {
                    state.1 += 0.5;
                    if i + 1 == x.len() {
                        return x[i] * state.1;
                    }
                }
            }
            x[0] * state.0 as f64
        }
        pub fn run(x: &[Var]) -> Var {
            let mut state = (0, 1.0);
            let mut sum = Var::from(0.0);
            let mut round = 0;
            loop {
                let got = advance(&mut state, x);
                sum += got;
                if got > 1.0 || round == 2 {
                    return sum * state.1;
                }
                round += 1;
            }
        }
    }
}
