//! Projections: of the variables that annotated functions change, only the fields
//! and elements that change are carried.

use std::collections::BTreeMap;
use std::panic::Location;

use phigrad::internals::trace::{Inputs, Role, Tracer};
use phigrad::{Carry, Var, traced};

/// The values carried to the first join, one letter each: `p`hi, `s`tate, `o`paque.
fn carried(f: impl FnOnce(&[Var]) -> Var, x: &[f64]) -> String {
    let inputs = Inputs { active: x, inactive: &[] };
    let mut tracer = Tracer::default();
    let trace = tracer.run(|x, _| f(x), inputs, 10_000, Location::caller()).unwrap();
    let join = trace.events.iter().position(|event| event.role() == Role::Join).unwrap();
    let letters = trace.events.iter().skip(join + 1).map_while(|event| match event.role() {
        Role::Phi => Some('p'),
        Role::State | Role::NamesInput => Some('s'),
        Role::Opaque => Some('o'),
        _ => None,
    });
    letters.collect()
}

#[derive(Carry)]
struct Figure {
    force: Vec<[Var; 2]>,
    table: BTreeMap<usize, Var>,
}

fn figure(x: &[Var]) -> Figure {
    let force = vec![[x[0], x[1]]; 3];
    Figure { force, table: BTreeMap::from([(1, x[0]), (2, x[1])]) }
}

#[traced]
fn push(figure: &mut Figure, a: usize, b: usize, by: Var) {
    if by > 0.0 {
        figure.force[a][0] += by;
        figure.force[b][1] += by;
    }
}

#[test]
fn elements_are_carried_by_themselves_and_once() {
    let run = |a, b| {
        carried(
            |x| {
                let mut figure = figure(x);
                push(&mut figure, a, b, x[0]);
                figure.force[a][0]
            },
            &[1.0, 2.0],
        )
    };
    assert_eq!(run(0, 2), "pppp");
    assert_eq!(run(1, 1), "pp");
}

#[test]
fn a_missing_element_is_state() {
    #[traced]
    fn guarded(x: &[Var], at: usize) -> Var {
        let mut all = x.to_vec();
        if x[0] > 0.0 && at < all.len() {
            all[at] = x[1];
        }
        all[0]
    }
    assert_eq!(carried(|x| guarded(x, 1), &[1.0, 2.0]), "p");
    assert_eq!(carried(|x| guarded(x, 2), &[1.0, 2.0]), "s");
}

#[test]
fn the_whole_is_carried_if_the_index_may_change() {
    #[traced]
    fn moving(x: &[Var]) -> Var {
        let mut all = x.to_vec();
        let mut at = 0;
        if x[0] > 0.0 {
            all[at] = x[1];
            at += 1;
            all[at] = x[0];
        }
        all[0]
    }
    // The length and all elements; `at` is not used any more.
    assert_eq!(carried(moving, &[1.0, 2.0]), "spp");
    #[traced]
    fn inner(x: &[Var]) -> Var {
        let mut all = [x[0], x[1]];
        if x[0] > 0.0 {
            let at: usize = 1;
            all[at] = x[0];
        }
        all[0] + all[1]
    }
    assert_eq!(carried(inner, &[1.0, 2.0]), "pp");
}

#[test]
fn the_whole_is_carried_if_elements_are_not_numbered() {
    #[traced]
    fn ranges(x: &[Var], by: usize) -> Var {
        let mut figure = figure(x);
        if x[0] > 0.0 {
            figure.force[0..by].fill([x[1]; 2]);
            *figure.table.entry(by).or_insert(x[0]) += 1.0;
        }
        figure.force[0][0] + figure.table[&by]
    }
    assert_eq!(carried(|x| ranges(x, 1), &[1.0, 2.0]), "sppppppspsp");
}
