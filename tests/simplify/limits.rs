//! Simplification of segments is bounded: its work is counted, in proportion to the
//! number of segments, and the result is the same in every run and on every thread.

use phigrad::internals::Tuning;
use phigrad::internals::simplify::{Simplified, SimplifyLimits, Stage, simplify_segments};
use phigrad::internals::soi::divide;
use phigrad::internals::ssa::{Graph, parse};
use phigrad::{Tape, Var};

/// The sum of `count` losses of a logistic regression, each with its own input.
fn losses(count: usize) -> Graph {
    let mut text = format!("graph active {count} inactive 0\nv{count} = const 1.0\nb0:\n");
    let mut next = count + 1;
    let mut sum = None;
    for input in 0..count {
        text += &format!("  v{next} = neg v{input}\n  v{} = exp v{next}\n", next + 1);
        text += &format!("  v{} = add v{} v{count}\n", next + 2, next + 1);
        text += &format!("  v{} = ln v{}\n", next + 3, next + 2);
        next += 4;
        sum = Some(match sum {
            None => next - 1,
            Some(sum) => {
                text += &format!("  v{next} = add v{sum} v{}\n", next - 1);
                next += 1;
                next - 1
            }
        });
    }
    parse(&(text + &format!("  return v{}\n", sum.unwrap()))).unwrap()
}

fn simplified(graph: &Graph) -> Simplified {
    simplify_segments(
        graph,
        &divide(graph, Tuning::default().simplified),
        Stage::Final,
        SimplifyLimits::DEFAULT,
    )
}

/// The nodes, and the terms that rules were tried on, over all segments.
fn work(graph: &Graph) -> (usize, usize) {
    let runs = simplified(graph).runs;
    let nodes = runs.iter().map(|run| run.nodes).sum();
    (nodes, runs.iter().map(|run| run.terms * run.iterations).sum())
}

#[test]
fn work_is_proportional_to_the_number_of_segments() {
    let (nodes, small) = work(&losses(100));
    assert_eq!(nodes, 499);
    for factor in [4, 16] {
        let (nodes, large) = work(&losses(100 * factor));
        assert_eq!(nodes, 500 * factor - 1);
        assert!(large <= small * factor * 11 / 10, "{small} for 100, {large} for {factor} times");
    }
}

#[test]
fn work_is_limited_for_each_segment() {
    let limits = SimplifyLimits { iterations: 3, terms_per_node: 2 };
    let graph = losses(200);
    let runs = simplify_segments(
        &graph,
        &divide(&graph, Tuning::default().simplified),
        Stage::Final,
        limits,
    )
    .runs;
    assert!(runs.len() > 10);
    for run in runs {
        assert!(run.nodes <= Tuning::default().simplified && run.iterations <= 3, "{run:?}");
        // Leaves and constants are terms, too, and the last rule may exceed the limit.
        assert!(run.terms <= 3 * (2 * run.nodes) + 64, "{run:?}");
    }
}

#[test]
fn all_threads_get_the_same_result() {
    let graph = losses(50);
    let expected = simplified(&graph);
    assert!(expected.runs.iter().any(|run| run.improved));
    std::thread::scope(|scope| {
        let others: Vec<_> = (0..4).map(|_| scope.spawn(|| simplified(&graph))).collect();
        for other in others {
            assert_eq!(other.join().unwrap(), expected);
        }
    });
}

/// A function whose ranges would be widened without end.
#[test]
fn ranges_of_recursive_terms_terminate() {
    fn f(x: &[Var]) -> Var {
        let (mut s, mut rate) = (x[0], x[1]);
        for _ in 0..45 {
            for _ in 0..33 {
                s -= rate * (s * (0.1 / 0.7) - x[2]);
            }
            rate *= 0.01 / 7.0;
        }
        s = (1.0 + s * s).ln();
        for _ in 0..38 {
            s *= 0.2 / 0.7;
        }
        s.tanh().exp()
    }
    let recorded = Tape::builder().hot_threshold(u32::MAX).background(false).record(f);
    let (value, partials) = recorded.value_and_grad(&[0.3, 0.4, 0.5]).unwrap();
    recorded.compile().unwrap();
    let (again, others) = recorded.value_and_grad(&[0.3, 0.4, 0.5]).unwrap();
    assert!((value - again).abs() <= 1e-15 * value && recorded.report().kernel_calls == 1);
    for (partial, other) in partials.iter().zip(&others) {
        assert!((partial - other).abs() <= 1e-12 * partial.abs(), "{partial:e} {other:e}");
    }
}
