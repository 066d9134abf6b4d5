//! Jumps out of regions while variables are borrowed, moved or have no value yet:
//! such variables must not be captured, so that the functions compile.

use phigrad::{Tape, Var, traced};

#[traced]
fn borrowed_items(x: &[Var]) -> Var {
    let mut v = x.to_vec();
    for y in v.iter_mut() {
        *y *= 2.0;
        if *y > 3.0 {
            break;
        }
    }
    for y in &mut v {
        *y += 1.0;
        if *y > 4.0 {
            break;
        }
    }
    for (i, y) in v.iter_mut().enumerate() {
        *y *= i as f64;
        if *y > 2.5 {
            break;
        }
    }
    for pair in v.chunks_mut(2) {
        pair[0] += 1.0;
        if pair[0] > 2.0 {
            return pair[0];
        }
    }
    v[0] + v[1]
}

#[traced]
fn borrowed_outside(x: &[Var]) -> Var {
    let mut v = x.to_vec();
    let first = &mut v[0];
    for y in x {
        *first += *y;
        if *first > 2.0 {
            break;
        }
    }
    let (a, b) = v.split_at_mut(1);
    for i in 0..1 {
        a[i] = b[i] * a[i];
        if a[i] > 0.5 {
            break;
        }
    }
    let mut items = v.iter_mut();
    loop {
        match items.next() {
            Some(y) => {
                *y *= 0.5;
                if *y > 0.25 {
                    break;
                }
            }
            None => break,
        }
    }
    v[0] * v[1]
}

struct Sums<'a> {
    all: &'a mut Vec<Var>,
    last: Var,
}

#[traced]
fn borrowed_by_fields(x: &[Var]) -> Var {
    let mut v = x.to_vec();
    let mut sums = Sums { all: &mut v, last: x[0] };
    for y in x {
        sums.all.push(*y * 2.0);
        sums.last += *y;
        if sums.last > 2.0 {
            break;
        }
    }
    let last = sums.last;
    v[v.len() - 1] * last
}

#[traced]
fn borrowed_by_closures(x: &[Var]) -> Var {
    let mut total = x[0];
    let mut add = |y: Var| total += y;
    for y in x {
        add(*y);
        if *y > 1.0 {
            break;
        }
    }
    total
}

fn sum(v: Vec<Var>) -> Var {
    v.into_iter().sum()
}

#[traced]
fn moved_away(x: &[Var]) -> Var {
    let mut v = x.to_vec();
    let mut best = x[0];
    for y in x {
        if *y > 1.5 {
            break;
        }
        best = best * 0.5 + sum(v);
        v = vec![*y, best];
    }
    best + v[0]
}

#[traced]
fn moved_before_the_jump(x: &[Var]) -> Var {
    let mut v = x.to_vec();
    for y in x {
        v[0] *= 2.0;
        if *y > 1.5 {
            return sum(v);
        }
    }
    v[0]
}

struct Pair {
    name: String,
    y: Var,
}

#[traced]
fn partly_moved(x: &[Var]) -> Var {
    let mut pair = Pair { name: "pair".into(), y: x[0] };
    let name = pair.name;
    for y in x {
        pair.y += *y;
        if pair.y > 2.0 {
            break;
        }
    }
    pair.y * name.len() as f64
}

#[traced]
fn popped(x: &[Var]) -> Option<Var> {
    let (mut stack, mut y) = (x.to_vec(), Var::from(1.0));
    while let Some(top) = stack.pop() {
        y *= top;
        if y > 2.0 {
            stack.clear();
            break;
        }
    }
    stack.first().copied()?;
    Some(y)
}

#[traced]
fn generic<T: Clone + Into<Var>>(x: &[T], limit: f64) -> Var {
    let mut last: Option<T> = None;
    let mut y = Var::from(0.0);
    for next in x {
        y += next.clone().into();
        last = Some(next.clone());
        if y > limit {
            break;
        }
    }
    last.map_or(y, |last| last.into() * y)
}

#[test]
fn kernels_agree_with_the_tape() {
    type Program = fn(&[Var]) -> Var;
    let programs: [(&str, Program); 9] = [
        ("borrowed_items", borrowed_items),
        ("borrowed_outside", borrowed_outside),
        ("borrowed_by_fields", borrowed_by_fields),
        ("borrowed_by_closures", borrowed_by_closures),
        ("moved_away", moved_away),
        ("moved_before_the_jump", moved_before_the_jump),
        ("partly_moved", partly_moved),
        ("popped", |x| popped(x).unwrap_or(x[0])),
        ("generic", |x| generic(x, 1.0)),
    ];
    for (name, program) in programs {
        let f = Tape::builder().hot_threshold(5).background(false).record(program);
        let tape = Tape::builder().hot_threshold(u32::MAX).record(program);
        for i in 0..300 {
            let x: Vec<f64> =
                (0..4).map(|k| (f64::from(i) * (1.3 + f64::from(k))).sin() * 2.0).collect();
            let (found, expected) = (f.grad(&x).unwrap(), tape.grad(&x).unwrap());
            for (a, b) in found.iter().zip(&expected) {
                assert!(
                    (a - b).abs() <= 1e-9 * (1.0 + b.abs()),
                    "{name} at {x:?}: {found:?} {expected:?}"
                );
            }
        }
    }
}
