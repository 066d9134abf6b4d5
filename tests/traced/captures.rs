//! The live-in values of regions of annotated functions, as captured by the recorder.
#![allow(clippy::assign_op_pattern)] // As programs for other number types are written.
#![allow(clippy::vec_init_then_push, clippy::useless_vec)] // References are kept in them.

use std::panic::Location;

use phigrad::internals::trace::{Detail, Inputs, Operand, Role, Tracer};
use phigrad::{Carry, Var, traced};

/// The capture of a region: a hash and the live-in values; `None` if not all are known.
type Capture = Option<(u64, Vec<Operand>)>;

/// The captures of the regions of a run, in the order of their entry.
fn captures(f: impl FnOnce(&[Var]) -> Var, x: &[f64]) -> Vec<Capture> {
    let inputs = Inputs { active: x, inactive: &[] };
    let mut tracer = Tracer::default();
    tracer.detail(Detail::Captures);
    let trace = tracer.run(|x, _| f(x), inputs, 10_000, Location::caller()).unwrap();
    let events = trace.events.iter().enumerate();
    let enters = events.filter(|(_, event)| event.role() == Role::Enter);
    let capture = |(i, _)| trace.captured(i).map(|(key, numbers)| (key, numbers.to_vec()));
    enters.map(capture).collect()
}

/// The live-in values of the regions, one word each: `e3` for an event, `c3` for a
/// constant; `?` for an incomplete capture.
fn numbers(f: impl FnOnce(&[Var]) -> Var, x: &[f64]) -> Vec<String> {
    let word = |operand: &Operand| match operand {
        Operand::Event(event) => format!("e{event}"),
        Operand::Constant(value) => format!("c{value}"),
    };
    let words = |capture: &Capture| match capture {
        Some((_, operands)) => operands.iter().map(word).collect::<Vec<_>>().join(" "),
        None => "?".into(),
    };
    captures(f, x).iter().map(words).collect()
}

#[traced]
fn branch(x: &[Var], scale: f64) -> Var {
    let mut y = x[0];
    let unused = x[1];
    if y > 0.0 {
        y = y * scale;
    }
    y + unused
}

#[test]
fn variables_named_in_a_region_are_live_in() {
    assert_eq!(numbers(|x| branch(x, 2.0), &[1.0, 2.0]), ["e0 e1", "e0"]);
}

#[test]
fn static_state_is_in_the_hash() {
    let key = |scale: f64| captures(|x| branch(x, scale), &[1.0, 2.0])[1].clone().unwrap().0;
    assert_eq!(key(2.0), key(2.0));
    assert_ne!(key(2.0), key(3.0));
    assert_ne!(key(0.0), key(-0.0));
}

#[test]
fn traced_numbers_are_not_in_the_hash() {
    #[traced]
    fn relu(x: Var) -> Var {
        if x > 0.0 { x } else { 0.0.into() }
    }
    let all = captures(|x| relu(x[0]) + relu(x[1]) + relu(3.0.into()), &[1.0, -2.0]);
    let ifs: Vec<_> = all.iter().skip(1).step_by(2).map(|c| c.clone().unwrap()).collect();
    assert!(ifs.iter().all(|(key, _)| *key == ifs[0].0));
    assert_eq!(ifs[0].1, [Operand::Event(0)]);
    assert_eq!(ifs[1].1, [Operand::Event(1)]);
    assert_eq!(ifs[2].1, [Operand::Constant(3.0)]);
}

#[derive(Clone, Carry)]
enum Phase {
    Rest,
    Moving(Vec<Var>),
    Turning(Vec<Var>),
}

#[traced]
fn total(phase: &Phase) -> Var {
    match phase {
        Phase::Rest => 0.0.into(),
        Phase::Moving(all) => all[0] + all[1],
        Phase::Turning(all) => all[0] * all[1],
    }
}

#[test]
fn enums_are_their_variant_and_what_they_hold() {
    let run = |phase: fn(Vec<Var>) -> Phase| {
        captures(|x| total(&phase(x.to_vec())), &[1.0, 2.0])[1].clone().unwrap()
    };
    let (moving, turning) = (run(Phase::Moving), run(Phase::Turning));
    assert_eq!(moving.1, [Operand::Event(0), Operand::Event(1)]);
    assert_eq!(moving.1, turning.1);
    assert_ne!(moving.0, turning.0);
    assert_eq!(run(|_| Phase::Rest).1, []);
}

trait Law {
    fn force(x: Var) -> Var;
}
struct Spring;
struct Cubic;
impl Law for Spring {
    fn force(x: Var) -> Var {
        -x
    }
}
impl Law for Cubic {
    fn force(x: Var) -> Var {
        -x * x * x
    }
}

struct World<L>(std::marker::PhantomData<L>);

#[traced]
impl<L: Law> World<L> {
    fn push<const N: usize>(x: Var) -> Var {
        if x > 0.0 { L::force(x) * N as f64 } else { x }
    }
}

#[test]
fn the_types_that_a_function_depends_on_are_in_the_hash() {
    let key = |f: fn(Var) -> Var| captures(|x| f(x[0]), &[1.0])[1].clone().unwrap().0;
    let keys = [
        key(World::<Spring>::push::<1>),
        key(World::<Spring>::push::<2>),
        key(World::<Cubic>::push::<1>),
    ];
    assert!(keys[0] != keys[1] && keys[0] != keys[2] && keys[1] != keys[2]);
    assert_eq!(keys[0], key(World::<Spring>::push::<1>));
}

#[test]
fn regions_of_one_function_differ_even_in_one_place() {
    macro_rules! twice {
        ($x:expr) => {{
            #[traced]
            fn both(x: Var) -> Var {
                let mut y = x;
                if x > 0.0 {
                    y = y + 1.0;
                }
                if x > 0.0 {
                    y = y * 2.0;
                }
                y
            }
            both($x)
        }};
    }
    let all = captures(|x| twice!(x[0]), &[1.0]);
    assert_ne!(all[1].clone().unwrap().0, all[2].clone().unwrap().0);
}

#[derive(Clone, Carry)]
struct Figure {
    force: [Var; 2],
    place: Var,
    name: String,
}

#[traced]
impl Figure {
    fn step(&mut self, dt: f64) {
        if self.place > 0.0 {
            self.place += self.force[0] * dt;
        }
    }
}

#[test]
fn only_named_fields_are_captured() {
    let f = |x: &[Var]| {
        let mut figure = Figure { force: [x[0], x[1]], place: x[2], name: "a".into() };
        figure.step(0.5);
        figure.place + figure.name.len() as f64
    };
    assert_eq!(numbers(f, &[1.0, 2.0, 3.0]), ["e2 e0", "e2 e0"]);
}

#[test]
fn every_kind_of_region_is_captured() {
    #[traced]
    fn f(x: &[Var]) -> Var {
        let (mut sum, first) = (x[0], x[1]);
        for i in 0..2 {
            sum = sum + first * f64::from(i);
        }
        while sum < first {
            sum += 1.0;
        }
        loop {
            if sum > 3.0 {
                break;
            }
            sum += 1.0;
        }
        let both = sum > 0.0 && first > 0.0;
        if both { sum } else { first }
    }
    // Function, for, while, loop, if in it, &&, if.
    let all = numbers(f, &[4.0, 2.0]);
    assert_eq!(all.len(), 7, "{all:?}");
    assert!(all.iter().all(|words| words != "?"), "{all:?}");
    assert_eq!(all[0], "e0 e1");
    let counts: Vec<usize> = all.iter().map(|words| words.split(' ').count()).collect();
    assert_eq!(counts, [2, 2, 2, 1, 1, 2, 2]);
}

struct Unknown {
    seen: Vec<Var>,
}

impl Unknown {
    fn len(&self) -> f64 {
        self.seen.len() as f64
    }
}

#[test]
fn unknown_content_makes_a_capture_incomplete() {
    #[traced]
    fn unknown(x: &[Var]) -> Var {
        let mut unknown = Unknown { seen: x.to_vec() };
        if x[0] > 0.0 {
            unknown.seen.push(x[1]);
        }
        let seen = unknown;
        if x[0] > 1.0 { seen.seen[0] * 2.0 } else { x[1] + seen.len() }
    }
    // The fields named in the first branch have known types.
    assert_eq!(numbers(unknown, &[1.0, 2.0]), ["e0 e1", "e0 e1 e0 e1", "?"]);

    #[traced]
    fn closure(x: &[Var]) -> Var {
        let by = x[1];
        let scale = |v: Var| v * by;
        if x[0] > 0.0 { scale(x[0]) } else { x[0] }
    }
    assert_eq!(numbers(closure, &[1.0, 2.0]), ["e1 e0", "?"]);

    #[traced(opaque(y))]
    fn by_wish(x: &[Var]) -> Var {
        let mut y = x[0];
        if y > 0.0 {
            y += 1.0;
        }
        y
    }
    assert_eq!(numbers(by_wish, &[1.0]), ["e0", "?"]);
}

#[test]
fn a_foreign_var_makes_a_capture_incomplete() {
    let inputs = Inputs { active: &[1.0], inactive: &[] };
    let outer = |y: &[Var]| {
        let kept = y[0];
        #[traced]
        fn f(x: &[Var], kept: Var) -> Var {
            if x[0] > 2.0 { kept } else { x[0] }
        }
        assert_eq!(numbers(|x| f(x, kept), &[1.0]), ["?", "?"]);
        y[0]
    };
    Tracer::default().run(|x, _| outer(x), inputs, 100, Location::caller()).unwrap();
}

#[test]
fn too_much_is_not_captured() {
    let sum = |x: &[Var], count: usize, words: usize| {
        #[traced]
        fn any(x: &[Var], words: &[u8]) -> Var {
            let mut y = x[0];
            if y > 0.0 {
                y += x[x.len() - 1] + f64::from(words.len() as u32);
            }
            y
        }
        any(&x[..count], &vec![0; words])
    };
    let x = vec![1.0; 300];
    // The sum is live-in as well.
    assert_eq!(captures(|x| sum(x, 255, 4), &x).iter().filter(|c| c.is_some()).count(), 2);
    assert_eq!(captures(|x| sum(x, 256, 4), &x).iter().filter(|c| c.is_some()).count(), 1);
    assert_eq!(captures(|x| sum(x, 300, 4), &x), [None, None]);
    assert_eq!(captures(|x| sum(x, 1, 3000), &x).iter().filter(|c| c.is_some()).count(), 2);
    assert_eq!(captures(|x| sum(x, 1, 5000), &x), [None, None]);
}

#[test]
fn recordings_have_tables_of_their_own() {
    let f = |x: &[Var]| {
        let y = branch(x, 2.0);
        // The inner one captures its own regions only.
        assert_eq!(numbers(|x| branch(x, 2.0), &[1.0, 2.0]), ["e0 e1", "e0"]);
        let inputs = Inputs { active: &[1.0, 2.0], inactive: &[] };
        let mut silent = Tracer::default();
        let trace = silent.run(|x, _| branch(x, 2.0), inputs, 100, Location::caller()).unwrap();
        assert!((0..trace.events.len()).all(|i| trace.captured(i).is_none()));
        branch(&[y, y], 2.0)
    };
    let all = numbers(f, &[1.0, 2.0]);
    assert_eq!(all.len(), 4);
    assert!(all.iter().all(|words| words != "?"), "{all:?}");
}

#[test]
fn without_a_recording_nothing_is_captured() {
    let x = [Var::from(2.0), Var::from(3.0)];
    assert_eq!(branch(&x, 2.0).value(), 7.0);
}

/// Variables that have no value where a region begins, or are borrowed there. The
/// functions have to compile.
mod lifetimes {
    use super::*;

    pub struct Name(pub String);

    #[traced]
    fn late(x: &[Var]) -> Var {
        let y;
        if x[0] > 0.0 {
            y = x[0];
        } else {
            y = x[1] * 2.0;
        }
        let z: Var;
        let w: Var = x[1];
        if y > 0.0 {
            z = y * w;
            return z;
        }
        y
    }

    #[test]
    fn a_variable_without_a_value_is_not_captured() {
        assert_eq!(numbers(late, &[1.0, 2.0]), ["e0 e1", "e0 e1", "e6 e1"]);
    }

    #[traced]
    fn moved(x: &[Var]) -> Var {
        let mut name = String::from("a");
        let owned = name;
        if x[0] > 0.0 {
            name = String::from("bb");
            drop(name);
        }
        let mut other = Name(owned);
        let inner = other.0;
        if x[0] > 1.0 {
            other.0 = inner;
        } else {
            other = Name(String::new());
        }
        let mut text = String::new();
        for _ in 0..2 {
            if x[0] > 2.0 {
                text = String::from("c");
            } else {
                continue;
            }
            drop(text);
            text = other.0.clone();
        }
        let unseen = text;
        if matches!(x[0] > 0.0, unseen if unseen) {
            return x[0] + unseen.len() as f64;
        }
        x[0]
    }

    #[test]
    fn a_variable_that_may_have_been_moved_is_not_captured() {
        let all = numbers(moved, &[1.5]);
        // The text of the second one is moved out and assigned again.
        assert_eq!(all[..3], ["e0", "?", "?"], "{all:?}");
    }

    #[traced]
    fn borrowed(x: &[Var]) -> Var {
        let mut pair = (x[0], x[1]);
        let mut sum = x[0];
        let first = &mut pair.0;
        if sum > 0.0 {
            *first = x[1] * pair.1;
        }
        let whole = &mut pair;
        let result = if sum > 1.0 {
            whole.0 = x[1];
            sum * 2.0
        } else {
            sum
        };
        let mut figure = Figure { force: [x[0], x[1]], place: x[0], name: String::new() };
        for force in figure.force.iter_mut() {
            if *force > figure.place {
                *force = figure.place * x[0];
            }
        }
        match &mut figure.force {
            [a, _] if *a > 0.0 => {
                if *a > 1.0 {
                    sum = figure.place + *a;
                }
            }
            _ => {}
        }
        let mut list = vec![x[0], x[1]];
        let mut left = list.iter_mut();
        while let Some(one) = left.next() {
            if *one > 5.0 {
                sum = sum * list[0];
                break;
            }
        }
        let mut holders: Vec<&mut (Var, Var)> = Vec::new();
        holders.push(&mut pair);
        if x[0] > 0.0 {
            sum = sum * holders[0].0 + pair.0;
        }
        let mut held = list.get_mut(0);
        if x[0] > 0.5 {
            sum += held.take().map_or(x[0], |v| *v) + list[0];
        }
        result + sum + figure.force[0]
    }

    #[test]
    fn a_borrowed_variable_is_not_captured() {
        let all = numbers(borrowed, &[1.5, 2.5]);
        // The borrow of one field does not affect the other one.
        assert_eq!(all[1], "e1 e1 e0 e0", "{all:?}");
        assert_eq!(all[all.len() - 2..], ["?", "?"], "{all:?}");
    }

    #[traced]
    fn inferred(x: &[Var]) -> Var {
        let mut list = Vec::new();
        let mut best = None;
        if x[0] > 0.0 {
            list.push(Unknown { seen: x.to_vec() });
            best = Some(Name(String::from("a")));
        }
        x[0] + list.len() as f64 + best.map_or(0.0, |name| name.0.len() as f64)
    }

    #[test]
    fn a_variable_of_unknown_type_is_not_captured() {
        assert_eq!(numbers(inferred, &[1.5, 2.5]), ["e0 e1", "?"]);
    }
}
