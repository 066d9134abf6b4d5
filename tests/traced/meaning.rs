//! The attribute changes no results: values and gradients equal those of the same
//! functions without it, on the tape and by kernels.
#![allow(clippy::all)] // The programs are written in many ways on purpose.

use std::panic::Location;

use crate::carried::leaks;
use crate::common::served::manual;
use phigrad::internals::trace::{Adjoints, Detail, Inputs, Tracer, sweep};
use phigrad::{Numerics, Var};

/// Asserts that both functions agree at all points, on the tape and, once all
/// points are recorded, by kernels, and that no number leaks out of a region.
fn assert_agree(
    name: &str,
    plain: fn(&[Var]) -> Var,
    traced: fn(&[Var]) -> Var,
    points: &[&[f64]],
) {
    let recorded = manual(Numerics::Exact).record(traced);
    let reference = manual(Numerics::Exact).record(plain);
    let mut taped = Vec::new();
    for point in points {
        let (value, gradient) = recorded.value_and_grad(point).unwrap();
        let (expected, slopes) = reference.value_and_grad(point).unwrap();
        assert_eq!(value.to_bits(), expected.to_bits(), "{name} at {point:?}");
        // Joins change the order in which adjoints are summed.
        for (found, expected) in gradient.iter().zip(&slopes) {
            let close = (found - expected).abs() <= 1e-13 * expected.abs().max(1.0);
            assert!(close, "{name} at {point:?}: {gradient:?} is not {slopes:?}");
        }
        taped.push((value, gradient));
        let inputs = Inputs { active: point, inactive: &[] };
        let mut tracer = Tracer::default();
        let trace = tracer.run(|x, _| traced(x), inputs, 10_000, Location::caller()).unwrap();
        assert_eq!(leaks(&trace), [""; 0], "{name} at {point:?}");
        assert_captures_change_nothing(traced, inputs);
    }
    let agree = |by: &str| {
        for (point, expected) in points.iter().zip(&taped) {
            let found = &recorded.value_and_grad(point).unwrap();
            assert_eq!(found, expected, "{name} at {point:?} {by}");
        }
    };
    // The graph is cleared if a region turns out not to be mergeable; then the
    // points have to be recorded again.
    for _ in 0..2 {
        recorded.compile().unwrap();
        agree("while learning");
    }
    recorded.compile().unwrap();
    let before = recorded.report().kernel_calls;
    agree("by the kernel");
    let report = recorded.report();
    assert!(report.refusals.is_empty(), "{name}: {report}");
    assert_eq!(report.kernel_calls - before, points.len() as u64, "{name}: {report}");
}

/// Asserts that captures do not change the events of a run, and that there are
/// none unless [`Detail::Captures`] is set.
fn assert_captures_change_nothing(f: fn(&[Var]) -> Var, inputs: Inputs<'_>) {
    let mut tracer = Tracer::default();
    let mut record = |detail| {
        tracer.detail(detail);
        let trace = tracer.run(|x, _| f(x), inputs, 10_000, Location::caller()).unwrap();
        let captured = (0..trace.events.len()).filter(|&i| trace.captured(i).is_some());
        assert!(detail == Detail::Captures || captured.count() == 0);
        let slopes = sweep(&trace, &mut Adjoints::default()).to_vec();
        let words = format!("{:?} {:?} {:?}", trace.events, trace.output, trace.opaque);
        (words, trace.signature, slopes)
    };
    let (without, with) = (record(Detail::Marks), record(Detail::Captures));
    assert_eq!(without, with);
    assert_eq!(without, record(Detail::Marks));
}

/// The same functions twice: as they are, and annotated.
macro_rules! both {
    ($($name:ident at $points:expr $(, $type:item)? => { $($item:item)+ })*) => {
        $(
            mod $name {
                #[allow(unused_imports, dead_code)]
                mod plain {
                    use phigrad::Var;
                    use std::collections::VecDeque;
                    use num_traits::Float;
                    $($type)?
                    $($item)+
                }
                #[allow(unused_imports, dead_code)]
                mod traced {
                    use phigrad::Var;
                    use std::collections::VecDeque;
                    use num_traits::Float;
                    $($type)?
                    $(#[phigrad::traced] $item)+
                }

                #[test]
                fn agrees() {
                    super::assert_agree(stringify!($name), plain::f, traced::f, &$points);
                }
            }
        )*
    };
}

both! {
    branches at [&[1.0, 2.0], &[-1.0, 2.0], &[0.5, -3.0]] => {
        pub fn f(x: &[Var]) -> Var {
            let (a, b) = (x[0], x[1]);
            let mut y = a;
            if a > 0.0 && b > 0.0 { y = y * b; } else if b > 1.0 || !(a > -2.0) { y -= b; } else { y = -y; }
            let z = if y > 1.0 { y.sqrt() } else if y > 0.0 { y * y } else { 2.0.into() };
            if let Some(half) = (a > 0.75).then_some(a / 2.0) { y += half; }
            y * z
        }
    }
    loops at [&[0.3, 1.7], &[2.0, 0.1]] => {
        pub fn f(x: &[Var]) -> Var {
            let mut sum = Var::from(0.0);
            for i in 0..5 {
                if i == 3 { continue; }
                sum += x[0] * f64::from(i);
            }
            let mut n = 0;
            while sum > 1.0 { sum = sum * 0.5; n += 1; }
            let last = loop {
                sum += x[1];
                n += 1;
                if sum > 4.0 { break sum * 2.0; }
                if n > 20 { break x[0]; }
            };
            for (i, v) in x.iter().enumerate().rev() { sum = sum + *v * (i as f64); }
            last + sum * f64::from(n)
        }
    }
    labels at [&[0.3, 1.7, -0.2], &[2.0, 0.1, 0.4], &[-2.0, -0.1, -0.4]] => {
        pub fn f(x: &[Var]) -> Var {
            let mut best = x[0];
            'outer: for i in 0..x.len() {
                for j in (0..x.len()).rev() {
                    if x[i] * x[j] < 0.0 { continue 'outer; }
                    if x[i] + x[j] > 2.0 { best = x[i] * x[j]; break 'outer; }
                    best += x[j] * 0.5;
                }
                best = best * 1.5;
            }
            let bonus = 'block: {
                if best > 1.0 { break 'block best; }
                if best < -1.0 { break 'block -best; }
                best * best
            };
            best + bonus
        }
    }
    returns at [&[0.3, 1.7], &[2.0, 0.1], &[-3.0, 0.4]] => {
        pub fn f(x: &[Var]) -> Var {
            if x[0] < -2.0 { return x[1] * 3.0; }
            for v in x {
                if *v > 1.9 { return *v * *v; }
                match search(x, *v) {
                    Some(found) if found > 0.5 => return found,
                    Some(_) | None => {}
                }
            }
            checked(x).unwrap_or_else(|message| x[0] + message.len() as f64)
        }
        fn search(x: &[Var], at: Var) -> Option<Var> {
            let first = x.first()?;
            let mut sum = *first;
            for v in x { sum += positive(*v - at)?; }
            Some(sum)
        }
        fn positive(x: Var) -> Option<Var> { if x < 0.0 { None } else { Some(x.sin()) } }
        fn checked(x: &[Var]) -> Result<Var, String> {
            let y = bounded(x[0])?;
            let n: usize = "3".parse().map_err(|_| String::new())?;
            Ok(y * n as f64)
        }
        fn bounded(x: Var) -> Result<Var, &'static str> {
            if x > 1.0 { return Err("large"); }
            Ok(x * 2.0)
        }
    }
    matches_with_guards at [&[0.3], &[2.0], &[-3.0], &[7.0]] => {
        pub fn f(x: &[Var]) -> Var {
            let count = x[0].floor().value() as i32;
            let base = match count {
                0 => x[0],
                n if n < 0 => -x[0],
                n @ 1..=5 if x[0] > 2.5 || n == 2 => x[0] * f64::from(n),
                _ => { let y = x[0].ln(); y * y }
            };
            match (base > 1.0, base > 3.0) {
                (true, true) => base.sqrt(),
                (true, false) => base + 1.0,
                _ => base.exp(),
            }
        }
    }
    stacks at [&[0.3, 1.0, 2.0], &[-2.0, 1.0, 0.5]] => {
        pub fn f(x: &[Var]) -> Var {
            let mut stack = x.to_vec();
            let mut sum = Var::default();
            while let Some(top) = stack.pop() {
                if top > 1.5 { stack.push(top / 2.0); stack.push(top / 4.0); continue; }
                sum = sum * 0.9 + top;
            }
            let mut queue: VecDeque<Var> = x.iter().copied().collect();
            let mut left = 10;
            while let Some(front) = queue.pop_front() && left > 0 {
                left -= 1;
                if front > 0.0 { queue.push_back(front - 0.75); }
                sum += front;
            }
            sum
        }
    }
    shadowing at [&[0.3, 1.0], &[-2.0, 1.0]] => {
        pub fn f(x: &[Var]) -> Var {
            let y = x[0];
            let mut y = if y > 0.0 { y } else { let y = -y; y * 2.0 };
            for x in x { let y = &mut y; if *x > 0.5 { *y = *y * *x; } }
            let late;
            if y > 1.0 { late = y; } else { late = y * x[1]; }
            let x = x[1];
            if x > y { y = x; }
            y + late
        }
    }
    structs at [&[1.0, -3.0], &[0.2, 5.0]], #[derive(Clone, Copy)]
        pub struct Ball { height: Var, velocity: [Var; 2], bounces: u32 } => {
        pub fn f(x: &[Var]) -> Var {
            let mut ball = Ball { height: x[0], velocity: [x[1], x[0]], bounces: 0 };
            for _ in 0..6 { ball.advance(0.1); }
            let Ball { height, .. } = ball;
            height * ball.velocity[0] + f64::from(ball.bounces) + ball.energy()
        }
        impl Ball {
            fn advance(&mut self, dt: f64) {
                self.velocity[0] -= dt * 9.8;
                self.height += self.velocity[0] * dt;
                if self.height < 0.0 {
                    self.height = -self.height;
                    for v in &mut self.velocity { *v = -*v * 0.9; }
                    self.bounces += 1;
                }
            }
            const fn count(&self) -> u32 { self.bounces }
            fn energy(self) -> Var { if self.count() > 0 { self.height } else { self.velocity[1] } }
        }
    }
    arrays at [&[3.0, 1.0, 2.0], &[-1.0, 5.0, 0.5], &[1.0, 2.0, 3.0]] => {
        pub fn f(x: &[Var]) -> Var {
            let mut all: Vec<Var> = x.to_vec();
            sort(&mut all);
            let mut grid = [[Var::default(); 2]; 2];
            for i in 0..2 { for j in 0..2 { if i != j { grid[i][j] = all[i + j]; } else { grid[i][j] += all[i]; } } }
            scale(&mut grid[0], all[2]);
            grid[0][0] * grid[1][1] - grid[0][1] * grid[1][0]
        }
        fn sort(all: &mut [Var]) {
            for i in 1..all.len() {
                let mut j = i;
                while j > 0 && all[j - 1] > all[j] { all.swap(j - 1, j); j -= 1; }
            }
        }
        fn scale(row: &mut [Var], by: Var) { for v in row { if by > 1.0 { *v *= by; } } }
    }
    generics at [&[3.0, 1.0], &[-1.0, 0.5]] => {
        pub fn f(x: &[Var]) -> Var {
            let plain: f64 = newton(2.0, 0.3);
            newton(x[0], x[1]) + plain + largest(x.iter().copied())
        }
        fn newton<T: Float + From<f64>>(start: T, target: T) -> T {
            let mut y = start;
            let three: T = 3.0.into();
            let mut steps = 0;
            while (y * y * y - target).abs() >= T::epsilon().sqrt() && steps < 50 {
                y = y - (y * y * y - target) / (three * y * y);
                if y < -three { y = -y; }
                steps += 1;
            }
            y
        }
        fn largest<T: Float>(mut items: impl Iterator<Item = T>) -> T {
            let Some(mut best) = items.next() else { return T::zero() };
            for item in items { if item > best { best = item; } }
            best
        }
    }
    carried_generics at [&[3.0, 1.0], &[-1.0, 0.5]] => {
        pub fn f(x: &[Var]) -> Var { relu(x[0]) * relu(x[1]) + relu(0.5) }
        fn relu<T: Float + phigrad::Carry>(x: T) -> T {
            let mut y = x;
            if y < T::zero() { y = y * y; }
            y
        }
    }
    closures at [&[3.0, 1.0, -1.0], &[-1.0, 0.5, 0.2]] => {
        pub fn f(x: &[Var]) -> Var {
            let mut total = Var::from(1.0);
            let mut add = |v: Var| { if v > 0.0 { total += v; } else { return; } total = total * 1.1; };
            for v in x { if *v < 2.0 { add(*v); } else { add(v.sqrt()); } }
            if x[0] > 0.0 { x.iter().for_each(|v| total += *v); }
            let clip = |v: Var| -> Var { if v > 1.0 { return 1.0.into(); } v };
            let squares: Vec<Var> = x.iter().map(|&v| if v > 0.0 { v * v } else { v }).collect();
            total * clip(x[1]) + squares.iter().copied().fold(x[0], |a, b| if a > b { a } else { b })
        }
    }
    recursion at [&[3.0, 5.0], &[-1.0, 2.0]] => {
        pub fn f(x: &[Var]) -> Var { power(x[0], 5) + halves(x[1], 0) }
        fn power(x: Var, n: u32) -> Var {
            if n == 0 { return 1.0.into(); }
            let half = power(x, n / 2);
            if n % 2 == 0 { half * half } else { half * half * x }
        }
        fn halves(x: Var, depth: usize) -> Var { if x < 1.0 || depth > 9 { x } else { halves(x / 2.0, depth + 1) + x } }
    }
    references at [&[3.0, 5.0], &[-1.0, 2.0]] => {
        pub fn f(x: &[Var]) -> Var {
            let mut pair = [x[0], x[1]];
            let [a, b] = &mut pair;
            if *a > 0.0 { core::mem::swap(a, b); } else { *a = *b * 2.0; }
            let mut best = &x[0];
            for v in x { if v > best { best = v; } }
            let chosen = if pair[0] > pair[1] { &mut pair[0] } else { &mut pair[1] };
            *chosen += *best;
            bump(&mut pair[0], x[1]);
            let slot = pick(&mut pair, x[0]);
            *slot *= 3.0;
            let mut rest: &[Var] = &pair;
            let mut sum = Var::default();
            while let [head, tail @ ..] = rest { sum = sum * 2.0 + *head; rest = tail; }
            sum
        }
        fn bump(target: &mut Var, by: Var) { let target = target; if by > 3.0 { *target += by; return; } *target -= by; }
        fn pick(pair: &mut [Var; 2], by: Var) -> &mut Var { if by > 0.0 { &mut pair[0] } else { &mut pair[1] } }
    }
    options at [&[3.0, 5.0], &[-1.0, 2.0]] => {
        pub fn f(x: &[Var]) -> Var {
            let mut kept: Option<Var> = None;
            for v in x {
                match &mut kept {
                    Some(k) if *v > 2.5 => *k = *k + *v,
                    Some(k) => { if *v > 0.0 { *k *= *v } }
                    none => { *none = Some(*v); }
                }
            }
            if let Some(ref mut k) = kept { if *k > 1.0 { *k = k.sqrt(); } }
            let boxed: Box<dyn Fn(Var) -> Var> = if x[0] > 0.0 { Box::new(|v| v * 2.0) } else { Box::new(|v| -v) };
            let table: &[f64] = if x[1] > 3.0 { &[1.0, 2.0] } else { &[4.0] };
            boxed(kept.unwrap_or_default()) * table[0] + table.len() as f64
        }
    }
    moved at [&[3.0, 5.0], &[-1.0, 2.0]] => {
        pub fn f(x: &[Var]) -> Var {
            let mut groups: Vec<Vec<Var>> = Vec::new();
            let mut group = Vec::new();
            for v in x {
                if *v > 2.0 { groups.push(group); group = Vec::new(); }
                group.push(*v);
            }
            let name = String::from("x");
            let mut extra = vec![x[0]];
            if x[1] > 2.0 { extra.push(x[1]); groups.push(extra); drop(name); } else { groups.push(group); }
            let sums = groups.iter().map(|g| g.iter().copied().sum::<Var>());
            sums.sum()
        }
    }
    holders at [&[3.0, 5.0], &[-1.0, 2.0]], pub struct Pen<'a> { out: &'a mut Vec<Var> } => {
        pub fn f(x: &[Var]) -> Var {
            let (mut first, mut second, mut third) = (vec![x[0]], vec![x[1]], x.to_vec());
            let pen = Pen { out: &mut first };
            if x[0] > 0.0 { pen.out[0] = x[1] * 2.0; }
            let mut pen = Pen { out: &mut second };
            if x[0] > 0.0 { pen.write(x[1] * 3.0); } else { pen.out[0] *= 2.0; }
            let tail = third.as_mut_slice();
            if x[1] > 3.0 { tail[1] = x[0] * x[0]; }
            consume(Pen { out: &mut third }, x[0]);
            let mut add = |v: Var| first[0] += v;
            if x[1] > 3.0 { add(x[0] * x[1]); }
            let mut left = x.iter();
            let found = if x[0] > 0.0 { advance(&mut left) } else { left.any(|v| *v > 1.0) };
            let rest: Var = left.copied().sum();
            first[0] + second[0] * third[0] + third[1] + rest + if found { 1.0 } else { 2.0 }
        }
        impl Pen<'_> { fn write(&mut self, v: Var) { if v > 10.0 { self.out[0] = v; } else { self.out.push(v); } } }
        fn consume(pen: Pen<'_>, by: Var) { if by > 0.0 { pen.out[0] *= by; } }
        fn advance<'a>(left: &mut impl Iterator<Item = &'a Var>) -> bool { left.next().copied().is_some_and(|v| v > 1.0) }
    }
    parts at [&[3.0, 5.0, 1.0], &[-1.0, 2.0, 0.5], &[1.0, -2.0, 4.0]], #[derive(phigrad::Carry)]
        pub struct Body { place: [[Var; 2]; 3], push: Vec<Var>, queue: std::collections::VecDeque<Var>, count: usize } => {
        pub fn f(x: &[Var]) -> Var {
            let mut body = Body { place: [[x[0], x[1]]; 3], push: x.to_vec(), queue: x.iter().copied().collect(), count: 0 };
            for i in 0..3 {
                for j in (0..3).rev() { collide(&mut body, i, j); }
                if body.push[i] > 1.0 { body.push[0] = body.push[i] * 0.5; body.queue[i] += body.push[0]; body.count += 1; }
            }
            let at = body.count;
            if x[1] > 0.0 && at < body.push.len() { body.push[at] = x[2]; }
            let sum: Var = body.push.iter().chain(&body.queue).copied().sum();
            sum + body.place.iter().map(|p| p[0] * p[1]).sum::<Var>() + body.count as f64
        }
        fn collide(body: &mut Body, i: usize, j: usize) {
            if body.push[i] > body.push[j] {
                body.place[i][0] = body.place[j][1] * 0.5 + body.push[i];
                body.place[j][1] = body.place[i][0] - body.push[j];
                body.push[j] += 0.25;
            } else if i == j { body.place[i] = [body.push[i], body.push[0]]; }
        }
    }
    macros at [&[3.0, 5.0], &[-1.0, 2.0]] => {
        pub fn f(x: &[Var]) -> Var {
            let mut text = String::new();
            let mut y = vec![x[0]; 2];
            for i in 0..2 {
                if x[i] > 0.0 { text += &format!("{i}"); }
                assert!(i < 5, "{text} {}", i);
                if matches!(i, 1) { y[i] *= x[1]; }
            }
            y[0] * y[1] + text.len() as f64
        }
    }
}

#[test]
fn changes_of_a_thread_local_are_not_tracked() {
    use std::cell::Cell;
    thread_local!(static CELL: Cell<Var> = Cell::default());
    #[phigrad::traced]
    fn hidden(x: &[Var]) -> Var {
        if x[0] > 0.0 {
            CELL.set(x[0] * 2.0);
        }
        CELL.get()
    }
    // The documented limit, and the check of all other tests can fail.
    let inputs = Inputs { active: &[1.0], inactive: &[] };
    let mut tracer = Tracer::default();
    let trace = tracer.run(|x, _| hidden(x), inputs, 100, Location::caller()).unwrap();
    assert_eq!(leaks(&trace).len(), 1);
}

#[test]
fn a_panic_inside_an_annotated_function_leaves_the_thread_usable() {
    #[phigrad::traced]
    fn fragile(x: &[Var]) -> Var {
        let mut y = x[0];
        for i in 0..3 {
            if y > 2.0 {
                assert!(x[0] < 5.0, "too large at {i}");
                y = y * 0.5;
            }
        }
        y
    }
    let f = manual(Numerics::Exact).record(|x: &[Var]| fragile(x));
    let panics = || std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| f.grad(&[9.0])));
    assert!(panics().is_err());
    assert_eq!(f.grad(&[4.0]).unwrap(), [0.5]);
    f.compile().unwrap();
    assert!(panics().is_err());
    assert_eq!(f.grad(&[4.0]).unwrap(), [0.5]);
}

#[test]
fn a_foreign_var_that_is_only_carried_is_no_error() {
    #[phigrad::traced]
    fn sum(x: &[Var], mut outside: Var) -> Var {
        if x[0] > 0.0 {
            outside = x[0];
        }
        if x[0] > -1.0 { x[0] * 2.0 } else { outside }
    }
    let outer = manual(Numerics::Exact).record(|y: &[Var]| {
        let kept = y[0];
        let inner = manual(Numerics::Exact).record(move |x: &[Var]| sum(x, kept));
        assert_eq!(inner.grad(&[-0.5]).unwrap(), [2.0]);
        assert!(inner.grad(&[-2.0]).unwrap_err().is_foreign_var());
        y[0]
    });
    assert_eq!(outer.grad(&[1.0]).unwrap(), [1.0]);
}
