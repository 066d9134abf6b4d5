//! Closed forms of recurrences: which loops have one, which have none and why,
//! and that they mean the same.
#![allow(clippy::unwrap_used, clippy::panic)] // Helpers of tests may fail like tests.

mod common;

use std::panic::Location;

use common::rolling::loops;
use phigrad::Var;
use phigrad::check::{Random, Tolerance, close};
use phigrad::diff::{Wanted, reverse};
use phigrad::op::Op;
use phigrad::phi::Rule;
use phigrad::phi::recurrence::{Solved, solve_all};
use phigrad::ssa::{
    End, Folding, Graph, Lifted, Node, Outcome, Paths, RerollLimits, eliminate_dead_code,
    interpret, reroll, simplify, verify,
};
use phigrad::trace::{Inputs, Tracer};

const TOLERANCE: Tolerance = Tolerance::new(1e-11, 1e-13);

fn rolled(x: &[f64], f: impl Fn(&[Var]) -> Var) -> Graph {
    let mut tracer = Tracer::default();
    let mut lifted = Lifted::new(x.len(), 0);
    let inputs = Inputs { active: x, inactive: &[] };
    let trace = tracer.run(|x, _| f(x), inputs, 1 << 24, Location::caller()).unwrap();
    lifted.merge(&trace, Paths { paths: 1, nodes: 1 << 24 }).unwrap();
    reroll(lifted.graph(), RerollLimits::default())
}

/// Solves `graph`, and compares value and gradient with those of its loops.
fn compared(graph: &Graph, points: &[Vec<f64>]) -> Solved {
    let solved = solve_all(graph);
    verify(&solved.graph).unwrap_or_else(|error| panic!("{error}\n{}\n{graph}", solved.graph));
    let gradient = |graph: &Graph| {
        let simple = simplify(graph, Folding::Real);
        eliminate_dead_code(&reverse(&simple, Wanted::GradientAndValue, Folding::Real))
    };
    let (open, closed) = (gradient(graph), gradient(&solved.graph));
    verify(&closed).unwrap();
    for point in points {
        match (interpret(&open, point), interpret(&closed, point)) {
            (Outcome::Values(a), Outcome::Values(b)) => {
                let scale = a.iter().fold(0.0, |max: f64, a| max.max(a.abs()));
                let tolerance = Tolerance::new(TOLERANCE.relative, TOLERANCE.absolute * scale);
                for (&a, &b) in a.iter().zip(&b) {
                    assert!(close(a, b, tolerance), "{a:e} {b:e} at {point:?}\n{graph}");
                }
            }
            (Outcome::Unseen(_), Outcome::Unseen(_)) => {}
            (a, b) => panic!("{a:?} {b:?} at {point:?}\n{graph}"),
        }
    }
    solved
}

fn points(inputs: usize) -> Vec<Vec<f64>> {
    let mut random = Random::new(inputs as u64);
    (0..4).map(|_| (0..inputs).map(|_| random.uniform(0.1, 1.1)).collect()).collect()
}

/// Records and solves `f`; compares it at several points.
fn solved(inputs: usize, f: impl Fn(&[Var]) -> Var) -> Solved {
    let points = points(inputs);
    compared(&rolled(&points[0], f), &points)
}

/// The rules that solve `f`, of whose loops none is left.
#[track_caller]
fn rules(inputs: usize, f: impl Fn(&[Var]) -> Var) -> Vec<Rule> {
    let solved = solved(inputs, f);
    assert_eq!(loops(&solved.graph), 0, "{:?}\n{}", solved.refused, solved.graph);
    solved.applied.iter().map(|applied| applied.rule).collect()
}

/// Why `f` keeps its loops.
#[track_caller]
fn refusal(inputs: usize, f: impl Fn(&[Var]) -> Var) -> String {
    let solved = solved(inputs, f);
    assert!(solved.applied.is_empty() && loops(&solved.graph) > 0, "{}", solved.graph);
    solved.refused[0].why.clone()
}

#[test]
fn geometric_affine_and_constant_steps() {
    assert_eq!(rules(2, |x| (0..100).fold(x[0], |y, _| y * x[1])), [Rule::C6]);
    assert_eq!(rules(3, |x| (0..100).fold(x[0], |y, _| y * x[1] + x[2])), [Rule::C6]);
    assert_eq!(rules(2, |x| (0..100).fold(x[0], |y, _| y + x[1])), [Rule::C6]);
    assert_eq!(rules(2, |x| (0..100).fold(x[0], |y, _| (y - x[1] * 0.3) / 1.5)), [Rule::C6]);
    // Invariants may be anything.
    let steps = |x: &[Var]| (0..100).fold(x[0], |y, _| y * x[1].sin() + (x[2] * x[0]).exp());
    assert_eq!(rules(3, steps), [Rule::C6]);
    let steps = |x: &[Var]| (0..100).fold(x[0], |y, _| -(y / (x[1] + 1.0) - x[2]));
    assert_eq!(rules(3, steps), [Rule::C6]);
    let steps = |x: &[Var]| (0..100).fold(x[0], |y, _| y.mul_add(x[1], x[2]));
    assert_eq!(rules(3, steps), [Rule::C6]);
}

#[test]
fn the_closed_form_is_named_with_its_place() {
    let solved = solved(3, |x| (0..100).fold(x[0], |y, _| y * x[1] + x[2]));
    let applied = &solved.applied[0];
    assert!(applied.form.starts_with("a^100·p + b·Σ_{j<100} a^j, where p = "), "{}", applied.form);
    assert!(applied.at.as_ref().unwrap().file.ends_with("recurrences.rs"));
}

#[test]
fn coupled_recurrences() {
    let momentum = |x: &[Var]| {
        let (mut w, mut v) = (x[0], Var::from(0.0));
        for _ in 0..300 {
            v = v * x[1] - x[2] * 0.1 * (w - x[3]);
            w += v;
        }
        w * w
    };
    assert!(rules(4, momentum).contains(&Rule::C6));
    let fibonacci = |x: &[Var]| {
        let (mut a, mut b) = (x[0], x[1]);
        for _ in 0..60 {
            (a, b) = (b, a + b);
        }
        a
    };
    assert_eq!(rules(2, fibonacci), [Rule::C6]);
    let filter = |x: &[Var]| {
        let mut y = [x[0], x[1], x[2]];
        for _ in 0..2000 {
            y = [y[0] * x[3] * 0.3 - y[1] * 0.2 + y[2] * 0.1 + x[4], y[0], y[1]];
        }
        y[0] + y[2]
    };
    assert_eq!(rules(5, filter), [Rule::C6]);
}

#[test]
fn numbers_that_do_not_depend_on_each_other_are_solved_apart() {
    let steps = |x: &[Var]| {
        let mut y = x.to_vec();
        for _ in 0..100 {
            y.iter_mut().for_each(|y| *y = *y * 0.9 + 0.2);
        }
        y.iter().copied().sum::<Var>()
    };
    let rules = rules(9, steps);
    assert!(rules.len() >= 9, "{rules:?}");
}

#[test]
fn coefficients_that_change_are_folded_if_they_are_known() {
    let numbers: Vec<f64> = (0..100).map(|i| 0.9 + 0.2 * f64::from(i * 7 % 10) / 9.0).collect();
    let n = &numbers;
    assert_eq!(rules(1, |x| n.iter().fold(x[0], |y, &c| y * c)), [Rule::C8]);
    assert_eq!(rules(1, |x| n.iter().fold(x[0], |y, &c| y / c)), [Rule::C8]);
    assert_eq!(rules(2, |x| n.iter().fold(x[0], |y, &c| y + x[1] * c)), [Rule::C7]);
    assert_eq!(rules(2, |x| n.iter().fold(x[0], |y, &c| y * c + x[1])), [Rule::C9]);
    assert_eq!(rules(2, |x| n.iter().fold(x[0], |y, &c| y * 0.9 + x[1] * c)), [Rule::C9]);
    let squares = |x: &[Var]| n.iter().fold(x[0], |y, &c| y + (x[1] * c - 0.3) * (c * c));
    assert_eq!(rules(2, squares), [Rule::C7]);
}

#[test]
fn iteration_numbers_count() {
    let ramp = |x: &[Var]| {
        let (mut y, mut i) = (x[0], Var::from(0.0));
        for _ in 0..100 {
            y = y * x[1] + i * x[2];
            i += 1.0;
        }
        y + i
    };
    assert!(rules(3, ramp).contains(&Rule::C6));
}

#[test]
fn nested_loops_are_solved_from_the_inside_out() {
    let steps = |x: &[Var]| {
        let mut y = x[0];
        for _ in 0..20 {
            for _ in 0..30 {
                y = y * 0.99 + x[1] * 0.01;
            }
            y *= x[2];
        }
        y
    };
    assert_eq!(rules(3, steps), [Rule::C6, Rule::C6]);
}

#[test]
fn gradient_descent_over_known_data_has_no_loop_left() {
    let data: Vec<(f64, f64)> =
        (0..40).map(|i| f64::from(i) * 0.05).map(|x| (x, 0.7 * x + 0.1 * x.sin())).collect();
    let steps = |rate: &[Var]| {
        let mut w = Var::from(0.5);
        for _ in 0..50 {
            let mut slope = Var::from(0.0);
            for &(x, y) in &data {
                slope += (w * x - y) * x;
            }
            w -= rate[0] * slope * 0.01;
        }
        data.iter().fold(Var::from(0.0), |sum, &(x, y)| sum + (w * x - y).powi(2))
    };
    let solved = solved(1, steps);
    // The last loop is a sum of squares.
    assert!(loops(&solved.graph) <= 1, "{:?}\n{}", solved.refused, solved.graph);
}

#[test]
fn the_last_iteration_may_pass_on_anything() {
    let steps = |x: &[Var]| {
        let (mut y, mut last) = (x[0], x[0]);
        for _ in 0..100 {
            let next = y * x[1] + x[2];
            last = (next * y).sin() + next.exp();
            y = next;
        }
        last * y
    };
    assert_eq!(rules(3, steps), [Rule::C6]);
    // The same of values that do not depend on the iterations before.
    let mut numbers = (0..100).map(f64::from);
    let steps = |x: &[Var]| {
        let mut last = x[0];
        for c in numbers.by_ref().take(0).chain((0..100).map(f64::from)).collect::<Vec<_>>() {
            last = (x[0] * c).sin();
        }
        last
    };
    let f = std::cell::RefCell::new(steps);
    let solved = solved(1, |x| (f.borrow_mut())(x));
    assert_eq!(loops(&solved.graph), 0, "{}", solved.graph);
}

#[test]
fn what_does_not_depend_on_the_rest_leaves_the_loop() {
    let steps = |x: &[Var]| {
        let (mut y, mut z) = (x[0], x[1]);
        for _ in 0..100 {
            y = y * 0.99 + x[1];
            z = z.sin() + 0.1;
        }
        y * z
    };
    let solved = solved(2, steps);
    assert_eq!((loops(&solved.graph), solved.applied.len()), (1, 1), "{}", solved.graph);
    let region = solved.graph.regions.values().find(|data| data.cycle.is_some()).unwrap();
    assert_eq!(region.cycle.as_ref().unwrap().entries.len(), 1);
}

#[test]
fn decisions_that_do_not_change_come_before() {
    let steps =
        |x: &[Var]| (0..100).fold(x[0], |y, _| if x[1] > 0.05 { y * 0.9 + x[1] } else { y + 1.0 });
    let solved = solved(2, steps);
    assert_eq!(loops(&solved.graph), 0, "{}", solved.graph);
    // That, and that the result is finite.
    assert_eq!(solved.graph.conditions(), 2);
    assert!(matches!(interpret(&solved.graph, &[1.0, 0.0]), Outcome::Unseen(_)));
}

#[test]
fn loops_without_closed_form_stay() {
    assert!(refusal(1, |x| (0..50).fold(x[0], |y, _| y * y * 0.3)).contains("affine"));
    assert!(refusal(1, |x| (0..50).fold(x[0], |y, _| y.sin() + 0.3)).contains("affine"));
    let inputs = |x: &[Var]| x.iter().fold(Var::from(1.0), |y, &a| y * a + 0.5);
    assert!(refusal(40, inputs).contains("elements"));
    let guarded =
        |x: &[Var]| (0..50).fold(x[0], |y, _| if y < 1e9 { y * 0.9 + x[1] } else { x[1] });
    assert!(refusal(2, guarded).contains("decision"));
    let all_used = |x: &[Var]| {
        let mut sums = vec![x[0]];
        for i in 0..50 {
            sums.push(sums[i] * 0.9 + x[1]);
        }
        sums.iter().rev().fold(Var::from(0.0), |y, &s| (y + s).sin())
    };
    let why = refusal(2, all_used);
    assert!(why.contains("all iterations") || why.contains("elements"), "{why}");
    let known = |x: &[Var]| (0..50).fold(x[0], |y, i| y * (x[1] * f64::from(i) * 0.01));
    assert!(refusal(2, known).contains("change"), "{}", refusal(2, known));
    let many = |x: &[Var]| {
        let mut y = x.to_vec();
        for _ in 0..50 {
            let sum: Var = y.iter().copied().sum();
            y.iter_mut().for_each(|y| *y = *y * 0.5 + sum * 0.05);
        }
        y[0]
    };
    let refused = solved(8, many).refused;
    assert!(refused.iter().any(|refused| refused.why.contains("too many")), "{refused:?}");
}

#[test]
fn powers_that_are_not_finite_are_refused_or_not_hidden() {
    let grows = |x: &[Var]| (0..5000).fold(x[0] * 0.0, |y, _| y * 2.0);
    let solved = solve_all(&rolled(&[1.0], grows));
    assert!(!solved.applied.is_empty() || solved.refused[0].why.contains("finite"));
    // Zero times infinity is no number, and the tape must be asked.
    let grows = |x: &[Var]| (0..5000).fold(x[0], |y, _| y * x[1]);
    let solved = solve_all(&rolled(&[0.0, 2.0], grows));
    assert!(matches!(interpret(&solved.graph, &[0.0, 2.0]), Outcome::Unseen(_)));
}

#[test]
fn tiny_powers_of_huge_numbers_keep_their_digits() {
    let exact = 1e300 * 2f64.powi(-1000) * 2f64.powi(-100);
    let steps = |x: &[Var]| (0..1100).fold(x[0], |y, _| y * 0.5);
    let solved = solve_all(&rolled(&[1.0], steps));
    assert_eq!(interpret(&solved.graph, &[1e300]), Outcome::Values(vec![exact]));
    let steps = |x: &[Var]| (0..1100).fold(x[0], |y, _| y * x[1]);
    let solved = solve_all(&rolled(&[1.0, 0.5], steps));
    assert_eq!(interpret(&solved.graph, &[1e300, 0.5]), Outcome::Values(vec![exact]));
}

#[test]
fn second_derivatives_of_closed_forms() {
    let graph = rolled(&[0.9, 1.0, 1.0], |x| (0..100).fold(x[1], |y, _| y * x[0] + x[2]));
    let solved = solve_all(&graph);
    let first = reverse(&solved.graph, Wanted::Gradient, Folding::Real);
    let second = reverse(&first, Wanted::Gradient, Folding::Real);
    verify(&second).unwrap();
    for (r, p, b) in [(0.9, 1.3, 0.4), (1.0, 0.5, 2.0), (1.0 - 1e-9, 1.0, 1.0), (0.0, 1.0, 3.0)] {
        let Outcome::Values(got) = interpret(&second, &[r, p, b]) else { panic!() };
        // Of Σ b·r^j and p·r^100, by r twice, and once each by the others.
        let sum = |f: &dyn Fn(i32) -> f64| (0..100).map(f).sum::<f64>();
        let twice = |j: i32| if j < 2 { 0.0 } else { f64::from(j * (j - 1)) * r.powi(j - 2) };
        let once = |j: i32| if j < 1 { 0.0 } else { f64::from(j) * r.powi(j - 1) };
        let wanted = [p * twice(100) + b * sum(&twice), once(100), sum(&once)];
        for (got, wanted) in got.iter().zip(wanted) {
            assert!(close(*got, wanted, TOLERANCE), "{got:e} {wanted:e} at {r}");
        }
    }
}

#[test]
fn second_derivatives_of_systems() {
    let spring = |x: &[Var]| {
        let (mut place, mut speed) = (x[2], x[3]);
        for _ in 0..300 {
            speed -= (x[0] * place + x[1] * speed) * 0.05;
            place += speed * 0.05;
        }
        place
    };
    let solved = solve_all(&rolled(&[1.0, 0.1, 1.0, 0.5], spring));
    assert_eq!(loops(&solved.graph), 0);
    let first = reverse(&solved.graph, Wanted::Gradient, Folding::Real);
    let second = reverse(&first, Wanted::Gradient, Folding::Real);
    verify(&second).unwrap();
    let values = |graph: &Graph, x: &[f64]| match interpret(graph, x) {
        Outcome::Values(values) => values,
        other => panic!("{other:?}"),
    };
    let at = [1.0, 0.1, 1.0, 0.5];
    for (input, got) in values(&second, &at).into_iter().enumerate() {
        let slope = |step: f64| {
            let mut x = at;
            x[input] += step;
            values(&first, &x)[0]
        };
        let wanted = (slope(1e-5) - slope(-1e-5)) / 2e-5;
        assert!(close(got, wanted, Tolerance::new(1e-6, 1e-6)), "{got:e} {wanted:e} of {input}");
    }
}

/// A loop of a random system of `size` numbers: coefficients are inputs, sums of
/// them, numbers, or missing.
fn system(random: &mut Random, size: usize, times: u32) -> Graph {
    let inputs = size + 3;
    let mut graph = Graph::new(inputs, 0);
    let root = graph.root();
    let firsts: Vec<Node> = (0..size).map(|i| graph.input(i)).collect();
    let region = graph.push_region(root, None, None);
    let phis = graph.make_loop(region, times, &firsts);
    let number = graph.push_iteration(region);
    let body = graph.regions[region].root;
    let mut nexts = Vec::new();
    for row in 0..size {
        let mut sum: Option<Node> = None;
        for (column, &phi) in phis.iter().enumerate() {
            let size = if row == column { 0.6 } else { 0.3 / size as f64 };
            let scale = graph.push_const((random.uniform(-1.0, 1.5) * size).to_bits());
            let parameter = graph.input(size_of_state(inputs) + random.below(3));
            let term = match random.below(4) {
                0 if row != column => continue,
                1 => graph.push_apply(body, Op::Mul, &[phi, scale], None),
                2 => {
                    let factor = graph.push_apply(body, Op::Mul, &[parameter, scale], None);
                    graph.push_apply(body, Op::Mul, &[factor, phi], None)
                }
                _ => {
                    let product = graph.push_apply(body, Op::Mul, &[phi, scale], None);
                    let product = graph.push_apply(body, Op::Mul, &[product, parameter], None);
                    graph.push_apply(body, Op::Sub, &[product, parameter], None)
                }
            };
            sum = Some(match sum {
                Some(sum) => graph.push_apply(body, Op::Add, &[sum, term], None),
                None => term,
            });
        }
        nexts.push(sum.unwrap_or(phis[row]));
    }
    let last = graph.push_const(f64::from(times - 1).to_bits());
    let again = graph.push_apply(body, Op::Lt, &[number, last], None);
    // Some loops pass on what is next, some what was before, too.
    let value = if random.chance(0.5) { nexts[0] } else { phis[size - 1] };
    let passed = [again].into_iter().chain(nexts.iter().copied()).chain([nexts[0], value]);
    graph.blocks[body].end = End::Return(passed.collect());
    let (a, b) = (graph.push_phi(region), graph.push_phi(region));
    let output = graph.push_apply(root, Op::Add, &[a, b], None);
    graph.blocks[root].end = End::Return([output].into_iter().collect());
    graph
}

fn size_of_state(inputs: usize) -> usize {
    inputs - 3
}

#[test]
fn random_systems_mean_the_same() {
    let mut random = Random::new(7);
    let mut solved = 0;
    for times in [1, 2, 3, 17, 1000, 1500] {
        for size in 1..=4 {
            for _ in 0..10 {
                let graph = system(&mut random, size, times);
                verify(&graph).unwrap();
                let points = points(size + 3);
                let found = compared(&graph, &points);
                solved += found.applied.len();
                if times == 1500 {
                    assert_eq!(loops(&found.graph), 0, "{:?}\n{graph}", found.refused);
                }
            }
        }
    }
    assert!(solved > 100, "{solved}");
}
