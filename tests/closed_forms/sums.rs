//! Sums and products: closed forms of recorded and random loops, with the same values.

use std::panic::Location;

use phigrad::internals::Random;
use phigrad::internals::diff::{Wanted, reverse};
use phigrad::internals::loops::{RerollLimits, reroll};
use phigrad::internals::merge::{MergeLimits, MergedTraces};
use phigrad::internals::op::Op;
use phigrad::internals::phi::{CloseLimits, Closed, close};
use phigrad::internals::ssa::{
    AccessData, ArrayData, Block, Builder, Def, End, Folding, Graph, Nest, Node, Outcome, Region,
    interpret, parse, simplify, verify,
};
use phigrad::internals::trace::{Inputs, Tracer};
use phigrad::report::{OpenReason, Rule, SumReason};
use phigrad::{Tape, Var};

/// The graph of `f` at a point, with its loops.
fn rolled(active: &[f64], inactive: &[f64], f: impl Fn(&[Var], &[Var]) -> Var) -> Graph {
    let inputs = Inputs { active, inactive };
    let mut traces = MergedTraces::new(active.len(), inactive.len());
    let mut tracer = Tracer::default();
    let trace = tracer.run(|x, d| f(x, d), inputs, 1 << 24, Location::caller()).unwrap();
    traces.merge(&trace, MergeLimits { paths: usize::MAX, nodes: 1 << 24 }).unwrap();
    simplify(&reroll(traces.graph(), RerollLimits::default()), Folding::Real)
}

fn closed_with(active: &[f64], inactive: &[f64], f: impl Fn(&[Var], &[Var]) -> Var) -> Closed {
    let before = rolled(active, inactive, f);
    let closed = close(&before, CloseLimits::default());
    verify(&closed.graph).unwrap();
    assert_eq!(parse(&closed.graph.to_string()).unwrap().to_string(), closed.graph.to_string());
    for scale in [1.0, 0.9, 1.01, 3.0] {
        let active = active.iter().map(|x| x * scale);
        let point: Vec<f64> = active.chain(inactive.iter().copied()).collect();
        if let (Outcome::Values(a), Outcome::Values(b)) =
            (interpret(&before, &point), interpret(&closed.graph, &point))
        {
            let is_close = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-9 * a.abs().max(1e-3);
            assert!(a.iter().zip(&b).all(is_close), "{a:?} {b:?}");
        }
    }
    closed
}

fn closed(point: &[f64], f: impl Fn(&[Var]) -> Var) -> Closed {
    closed_with(point, &[], |x, _| f(x))
}

/// True if `condition` is the acceptance of a call.
fn accepts(graph: &Graph, condition: Node) -> bool {
    match graph.nodes[condition].def {
        Def::Call(_) => true,
        Def::Apply(Op::Mul, [a, b, _]) => accepts(graph, a) && accepts(graph, b),
        _ => false,
    }
}

/// The nesting depth of each loop, without fallback versions.
fn depths(graph: &Graph) -> Vec<usize> {
    let nest = Nest::of(graph);
    let is_fallback = |block: Block| {
        graph.blocks.values().any(|data| match data.end {
            End::Branch { condition, otherwise, .. } => {
                otherwise == block && accepts(graph, condition)
            }
            _ => false,
        })
    };
    let around =
        |region: Region| std::iter::successors(Some(region), |&outer| nest.loop_around(outer));
    let serves = |&region: &Region| {
        around(region).all(|of| nest.region_block(of).is_none_or(|block| !is_fallback(block)))
    };
    let loops = graph.regions.keys().filter(|&region| graph.regions[region].cycle.is_some());
    loops.filter(serves).map(|region| around(region).count() - 1).collect()
}

fn data(count: usize) -> (Vec<f64>, Vec<f64>) {
    let x: Vec<f64> = (0..count).map(|i| (0.7 * i as f64).sin()).collect();
    let y = x.iter().enumerate().map(|(i, x)| 0.7 * x + 0.1 * ((i * i) as f64).cos()).collect();
    (x, y)
}

/// The error of a fit by gradient descent; numbers are constants or inputs.
fn fit_error<T: Copy + Into<Var>>(rate: Var, x: &[T], y: &[T]) -> Var {
    fit_error_within(40, rate, x, y)
}

/// The error after at most `most` iterations.
fn fit_error_within<T: Copy + Into<Var>>(most: u32, rate: Var, x: &[T], y: &[T]) -> Var {
    let n = x.len() as f64;
    let mut w = Var::from(0.0);
    let mut iteration = 0;
    while iteration < most {
        let mut slope = Var::from(0.0);
        for (&xi, &yi) in x.iter().zip(y) {
            let (xi, yi): (Var, Var) = (xi.into(), yi.into());
            slope += (w * xi - yi) * xi;
        }
        slope *= 2.0 / n;
        if slope.abs() < 1e-4 {
            break;
        } else {
            w -= rate * slope;
        }
        iteration += 1;
    }
    let mut error = Var::from(0.0);
    for (&xi, &yi) in x.iter().zip(y) {
        let (xi, yi): (Var, Var) = (xi.into(), yi.into());
        let residual = yi - w * xi;
        error += residual * residual;
    }
    error / n
}

#[test]
fn gradient_descent_has_no_loop_over_its_data() {
    let (x, y) = data(200);
    let closed = closed(&[0.05], |r| fit_error(r[0], &x, &y));
    let rules: Vec<Rule> = closed.applied.iter().map(|applied| applied.rule).collect();
    assert_eq!(rules[..2], [Rule::C7; 2], "{:?} {}", closed.open, closed.graph);
    // Only the `while` may remain.
    assert!(depths(&closed.graph).iter().all(|&depth| depth == 0), "{}", closed.graph);
    for phi in [true, false] {
        let f = Tape::builder().phi_calculus(phi).record(|r| fit_error(r[0], &x, &y));
        let on_tape = f.value_and_grad(&[0.05]).unwrap();
        f.compile().unwrap();
        let (value, gradient) = f.value_and_grad(&[0.05]).unwrap();
        assert_eq!(f.report().kernel_calls, 1);
        assert!((value - on_tape.0).abs() < 1e-13 * on_tape.0.abs());
        assert!((gradient[0] - on_tape.1[0]).abs() < 1e-13 * on_tape.1[0].abs());
    }
}

#[test]
fn sums_over_inactive_inputs_are_hoisted() {
    let (x, y) = data(100);
    let both = [x, y].concat();
    let program = |r: &[Var], d: &[Var]| fit_error(r[0], &d[..100], &d[100..]);
    let closed = closed_with(&[0.05], &both, program);
    assert!(depths(&closed.graph).iter().all(|&depth| depth == 0), "{}", closed.graph);
    let f = Tape::record_with(program);
    let on_tape = f.value_and_grad(&[0.05], &both).unwrap();
    f.compile().unwrap();
    let (value, gradient) = f.value_and_grad(&[0.05], &both).unwrap();
    assert_eq!(f.report().kernel_calls, 1);
    assert!((value - on_tape.0).abs() < 1e-13 * on_tape.0.abs());
    assert!((gradient[0] - on_tape.1[0]).abs() < 1e-13 * on_tape.1[0].abs());
}

/// The number of closed forms of `f`, and of loops that remain.
fn shape(point: &[f64], f: impl Fn(&[Var]) -> Var) -> (usize, usize) {
    let closed = closed(point, f);
    println!("{:?} {:?}", closed.applied, closed.open);
    let sums = closed.applied.iter().filter(|applied| applied.rule != Rule::F5);
    (sums.count(), depths(&closed.graph).len())
}

#[test]
fn sums_of_many_shapes_close() {
    let (x, y) = data(60);
    let both = || x.iter().zip(&y);
    let dot = |w: &[Var]| both().map(|(&x, &y)| w[0] * x * y).sum::<Var>();
    assert_eq!(shape(&[0.3], dot), (1, 0), "an iterator");
    let squares = |w: &[Var]| both().map(|(&x, &y)| (w[0] * x - y).powi(2)).sum::<Var>();
    assert_eq!(shape(&[0.3], squares), (1, 0), "squares by powi");
    let negative = |w: &[Var]| both().fold(w[0], |s, (&x, &y)| s - (w[0] * x - y) * 2.0);
    assert_eq!(shape(&[0.3], negative), (1, 0), "subtracted, from a variable");
    let two_parts = |w: &[Var]| both().fold(Var::from(0.0), |s, (&x, &y)| s + w[0] * x - y * w[1]);
    assert_eq!(shape(&[0.3, 0.4], two_parts), (1, 0), "two parts");
    let of_data = |w: &[Var]| x.iter().map(|&x| Var::from(x).exp() * w[0]).sum::<Var>();
    assert_eq!(shape(&[0.3], of_data), (1, 0), "a function of data");
    let invariant = |w: &[Var]| x.iter().map(|&x| (w[0].exp() * x - 1.0) * x).sum::<Var>();
    assert_eq!(shape(&[0.3], invariant), (1, 0), "a function of a variable");
    let counted = |w: &[Var]| (0..100).map(|i| w[0] * f64::from(i) + f64::from(i * i)).sum::<Var>();
    assert_eq!(shape(&[0.3], counted), (1, 0), "of the index");
    let mean = |w: &[Var]| {
        let mean = both().map(|(&x, _)| w[0] * x).sum::<Var>() / 60.0;
        both().map(|(&x, &y)| (w[0] * x - mean - y).powi(2)).sum::<Var>() / 59.0
    };
    assert_eq!(shape(&[0.3], mean), (2, 0), "a variance");
    let two_sums = |w: &[Var]| {
        let (mut s, mut t) = (Var::from(0.0), Var::from(0.0));
        for (&x, &y) in both() {
            s += w[0] * x - y;
            t += (w[0] * x - y) * x;
        }
        s * t
    };
    assert_eq!(shape(&[0.3], two_sums), (2, 0), "two sums");
    let line = |w: &[Var]| both().map(|(&x, &y)| (w[0] * x + w[1] - y).powi(2)).sum::<Var>();
    assert_eq!(shape(&[0.3, 0.1], line), (1, 0), "a line");
    let nested = |w: &[Var]| {
        let inner = |x: f64| y.iter().map(move |&y| w[0] * y - x).sum::<Var>();
        x.iter().map(|&x| inner(x) * x).sum::<Var>()
    };
    // The first inner sum has a form of its own: it is multiplied by zero. The outer sum may stay.
    assert!(shape(&[0.3], nested).0 >= 2, "nested");
    let quotients = |w: &[Var]| both().map(|(&x, &y)| (w[0] * x - y) / (w[1] + 2.0)).sum::<Var>();
    assert_eq!(shape(&[0.3, 0.4], quotients), (1, 0), "divided by what is invariant");
    let all = |w: &[Var]| {
        let mut s = Var::from(0.0);
        for &x in &x {
            for &y in &y {
                s += (w[0] * x - y) * y;
            }
        }
        s
    };
    assert_eq!(shape(&[0.3], all).1, 0, "one sum over two loops");
}

#[test]
fn descents_have_no_inner_loop() {
    let (x, y) = data(60);
    let momentum = |p: &[Var]| {
        let (mut w, mut v) = (Var::from(0.1), Var::from(0.0));
        for _ in 0..100 {
            let slope = x.iter().zip(&y).map(|(&x, &y)| (w * x - y) * x).sum::<Var>() / 60.0;
            v = p[1] * v - p[0] * slope;
            w += v;
        }
        x.iter().zip(&y).map(|(&x, &y)| (w * x - y) * (w * x - y)).sum()
    };
    let closed_momentum = closed(&[0.05, 0.9], momentum);
    assert_eq!(depths(&closed_momentum.graph), [], "{:?}", closed_momentum.open);
    let line = |p: &[Var]| {
        let (mut a, mut b) = (Var::from(0.1), Var::from(0.0));
        for _ in 0..50 {
            let (mut da, mut db) = (Var::from(0.0), Var::from(0.0));
            for (&x, &y) in x.iter().zip(&y) {
                let residual = a * x + b - y;
                da += residual * x;
                db += residual;
            }
            a -= p[0] * da;
            b -= p[0] * db;
        }
        x.iter().zip(&y).map(|(&x, &y)| (a * x + b - y).powi(2)).sum()
    };
    let closed_line = closed(&[0.005], line);
    assert_eq!(depths(&closed_line.graph), [0], "{}", closed_line.graph);
}

#[test]
fn sums_that_are_no_polynomials_stay_open() {
    let (x, y) = data(60);
    let logistic = |w: &[Var]| x.iter().map(|&x| (1.0 + (w[0] * x).exp()).ln()).sum::<Var>();
    assert_eq!(shape(&[0.3], logistic).0, 0, "a logistic loss");
    let product = |w: &[Var]| x.iter().fold(w[0], |p, &x| p * (w[0] + x));
    assert_eq!(shape(&[0.3], product).0, 0, "a product");
    let used = |w: &[Var]| {
        let (mut s, mut t) = (Var::from(0.0), Var::from(0.0));
        for (&x, &y) in x.iter().zip(&y) {
            s += w[0] * x;
            t += s.sin() * y;
        }
        s + t
    };
    assert_eq!(shape(&[0.3], used).0, 0, "a sum that is used on the way");
    let active = |w: &[Var]| w.iter().map(|&w| w * 2.0 + 1.0).sum::<Var>();
    let point: Vec<f64> = x.clone();
    assert_eq!(shape(&point, active).0, 0, "of as many variables as iterations");
    let fifth = |w: &[Var]| x.iter().map(|&x| (w[0] + x).powi(5)).sum::<Var>();
    assert_eq!(shape(&[0.3], fifth).0, 0, "a high degree");
}

#[test]
fn descriptions_of_sums_are_exact() {
    let sum = |w: &[Var]| (1..=100).fold(Var::from(0.0), |s, i| s + (w[0] - f64::from(i)).powi(2));
    let closed = closed(&[0.3], sum);
    let text = "graph active 1 inactive 0\nv1 = const 50.5\nv3 = const 100.0\nv6 = const 83325.0\n\
                b0:\n  v2 = sub v0 v1\n  v4 = mul v2 v3\n  v5 = mul v2 v4\n  v7 = add v5 v6\n  return v7\n";
    let without_places: String = closed
        .graph
        .to_string()
        .lines()
        .map(|line| format!("{}\n", line.split(" @").next().unwrap_or(line)))
        .collect();
    assert_eq!(without_places, text);
    let applied = &closed.applied[0];
    assert_eq!((applied.rule, applied.at.as_ref().unwrap().file.as_ref()), (Rule::C7, file!()));
    let form = "Σ_{i<100} g(i) = 100·(u − 50.5)^2 + 83325, where g(i) is the term, u = x₀";
    assert_eq!(applied.form, form);
}

/// Σ of a random polynomial over random data, as a graph with a loop of `count`
/// iterations.
fn random_sum(random: &mut Random, count: u32) -> Graph {
    let mut builder = Builder::new(2, 0, Folding::Exact);
    let (v, w) = (builder.input(0), builder.input(1));
    let zero = builder.constant(0.0);
    let first = if random.chance(0.5) { zero } else { builder.apply(Op::Sin, &[v]) };
    let numbers: Vec<f64> = (0..3 * count).map(|_| random.uniform(-2.0, 2.0)).collect();
    let numbers = numbers.into_iter().map(f64::to_bits).collect();
    let array = builder.array(ArrayData::Constants(numbers));
    let (region, entries) = builder.begin_loop(count, &[first], None);
    let mut nodes = vec![v, w, builder.iteration(region)];
    for base in 0..3 {
        let strides = [(region, 3)].into_iter().collect();
        nodes.push(builder.element(AccessData {
            array,
            base,
            strides,
            changes: Default::default(),
        }));
    }
    for _ in 0..6 {
        let (a, b) = (random.pick(&nodes), random.pick(&nodes));
        let op = random.pick(&[Op::Add, Op::Sub, Op::Mul, Op::Mul]);
        nodes.push(builder.apply(op, &[a, b]));
    }
    let mut sum = entries[0];
    for _ in 0..1 + random.below(2) {
        let term = random.pick(&nodes[6..]);
        let op = if random.chance(0.3) { Op::Sub } else { Op::Add };
        sum = builder.apply(op, &[sum, term]);
    }
    let (number, last) = (nodes[2], builder.constant(f64::from(count - 1)));
    let again = builder.apply(Op::Lt, &[number, last]);
    builder.finish_block(&[again, sum, sum]);
    let sum = builder.end_loop(region, 1)[0];
    builder.finish_block(&[sum]);
    builder.into_graph()
}

#[test]
fn random_sums_equal_the_loop_for_all_trip_counts() {
    let mut random = Random::new(3);
    let mut forms = 0;
    for round in 0..300 {
        let count = [1, 2, 3, 17, 100][round % 5];
        let graph = random_sum(&mut random, count);
        verify(&graph).unwrap();
        let closed = close(&graph, CloseLimits::default());
        verify(&closed.graph).unwrap();
        forms += closed.applied.len();
        let gradient = |graph: &Graph| reverse(graph, Wanted::GradientAndValue, Folding::Real);
        let (before, after) = (gradient(&graph), gradient(&closed.graph));
        for _ in 0..4 {
            let point = [random.uniform(-3.0, 3.0), random.uniform(-3.0, 3.0)];
            let (Outcome::Values(a), Outcome::Values(b)) =
                (interpret(&before, &point), interpret(&after, &point))
            else {
                panic!("it stopped")
            };
            // The terms may be large and cancel.
            let scale = 1e-10 * f64::from(count).powi(4).max(1.0);
            let is_close = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-10 * a.abs() + scale;
            assert!(a.iter().zip(&b).all(is_close), "{a:?} {b:?}\n{graph}\n{}", closed.graph);
        }
    }
    assert!(forms > 80, "{forms}");
}

#[test]
fn a_line_through_a_million_points_is_a_polynomial() {
    let count: u32 = 1_000_000;
    let mut builder = Builder::new(2, 0, Folding::Exact);
    let (slope, level, zero) = (builder.input(0), builder.input(1), builder.constant(0.0));
    let number = |i: u32| (0.7 * f64::from(i)).sin().to_bits();
    let array = builder.array(ArrayData::Constants((0..2 * count).map(number).collect()));
    let (region, entries) = builder.begin_loop(count, &[zero], None);
    let element = |builder: &mut Builder, base: u32| {
        let strides = [(region, 2)].into_iter().collect();
        builder.element(AccessData { array, base, strides, changes: Default::default() })
    };
    let (x, y) = (element(&mut builder, 0), element(&mut builder, 1));
    let line = builder.apply(Op::Mul, &[slope, x]);
    let line = builder.apply(Op::Add, &[line, level]);
    let residual = builder.apply(Op::Sub, &[line, y]);
    let square = builder.apply(Op::Mul, &[residual, residual]);
    let sum = builder.apply(Op::Add, &[entries[0], square]);
    let (number, last) = (builder.iteration(region), builder.constant(f64::from(count - 1)));
    let again = builder.apply(Op::Lt, &[number, last]);
    builder.finish_block(&[again, sum, sum]);
    let sum = builder.end_loop(region, 1)[0];
    builder.finish_block(&[sum]);
    let closed = close(&builder.into_graph(), CloseLimits::default());
    assert!(depths(&closed.graph).is_empty(), "{:?}", closed.open);
}

#[test]
fn limits_are_kept() {
    let (x, y) = data(60);
    let line =
        |w: &[Var]| x.iter().zip(&y).map(|(&x, &y)| (w[0] * x + w[1] - y).powi(2)).sum::<Var>();
    let graph = rolled(&[0.3, 0.1], &[], |w, _| line(w));
    let all = CloseLimits::default();
    for (limits, reason) in [
        (CloseLimits { variables: 1, ..all }, SumReason::Variables(1)),
        (CloseLimits { monomials: 5, ..all }, SumReason::Monomials(5)),
        (CloseLimits { work: 100, ..all }, SumReason::Work(100)),
    ] {
        let closed = close(&graph, limits);
        assert!(closed.applied.is_empty() && closed.graph == graph);
        assert!(closed.open[0].reasons.contains(&OpenReason::Sum(reason)), "{:?}", closed.open);
    }
    assert!(close(&graph, CloseLimits { loops: 0, ..all }).applied.is_empty());
}

#[test]
fn products_of_data_that_underflow_are_kept() {
    let tiny: Vec<f64> = (0..50).map(|i| 1e-200 * (0.7 * f64::from(i)).sin()).collect();
    let slope = |w: Var| tiny.iter().map(|&a| (w * a - 1e-200) * a).sum::<Var>();
    let f = Tape::builder().hot_threshold(u32::MAX).record(|x| slope(x[0]));
    let on_tape = f.value_and_grad(&[1e200]).unwrap();
    f.compile().unwrap();
    let (value, gradient) = f.value_and_grad(&[1e200]).unwrap();
    assert_eq!((f.report().kernel_calls, gradient), (1, on_tape.1));
    assert!(value != 0.0 && (value - on_tape.0).abs() <= 1e-13 * value.abs(), "{value}");
}
