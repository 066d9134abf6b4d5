//! Each formula of φ-calculus where it holds, in numbers, and where it is refused.
//!
//! | formula | holds | refused |
//! | --- | --- | --- |
//! | F1 | branch_rules: f1_equal_values_are_no_choice | f1_is_refused_where_the_values_differ |
//! | F2 | branch_rules: f2_moves_what_meets_its_inverse | f2_moves_what_folds_and_nothing_that_is_used_otherwise |
//! | F3 | branch_rules: f3_one_condition_serves_both_ways | the same |
//! | F4 | f4_what_an_iteration_comes_to_is_that_of_the_last | f4_is_refused_where_that_depends_on_those_before |
//! | F5 | exits: derivatives_are_those_of_the_form_at_the_number_of_iterations | f5_holds_where_exits_differ |
//! | C1 | branch_rules: c1_and_c4_look_at_two_values_of_one_branch | c1_and_c4_are_refused_for_two_branches |
//! | C2 | c2_is_the_derivative_of_the_side_that_is_taken | c2_is_refused_where_nothing_depends_on_inputs |
//! | C3 | branch_rules: c3_two_branches_change_places | the same |
//! | C4 | branch_rules: c1_and_c4_look_at_two_values_of_one_branch | c1_and_c4_are_refused_for_two_branches |
//! | C5 | c5_is_what_a_loop_is_that_stays | c5_is_not_needed_where_there_is_a_form |
//! | C6 | c6_holds_where_coefficients_do_not_change | c6_is_refused_where_they_depend_on_the_state |
//! | C7 | c7_holds_where_terms_do_not_depend_on_the_sum | c7_is_refused_where_they_do |
//! | C8 | c8_holds_where_factors_do_not_depend_on_the_product | c8_is_refused_where_they_do |
//! | C9 | c9_holds_where_coefficients_are_known | c9_is_refused_where_they_are_not |

use phigrad::internals::diff::{Wanted, reverse};
use phigrad::internals::explain::differentiated_phis;
use phigrad::internals::op::Op;
use phigrad::internals::phi::{CloseLimits, close, simplify_branches};
use phigrad::internals::ssa::{
    AccessData, ArrayData, Builder, Folding, Graph, Node, Outcome, interpret, parse, verify,
};
use phigrad::report::{Applied, OpenReason, RecurrenceReason, Rule, SumReason};
use phigrad::{Tape, Var};

/// The numbers of iterations at which forms are compared with their loops.
const TRIPS: [u32; 8] = [1, 2, 3, 17, 64, 100, 1000, 4099];

/// What an iteration makes of what is carried, given its number and a number of a table.
type Step = fn(&mut Builder, carried: Node, number: Node, element: Node) -> Node;

/// A loop of `count` iterations from x₀, where x₁ and x₂ are other inputs.
fn looped(count: u32, step: Step) -> Graph {
    let mut builder = Builder::new(3, 0, Folding::Exact);
    let first = builder.input(0);
    // Near 1, so that products neither grow nor vanish.
    let number = |i: u32| (1.0 + 0.3 / f64::from(count) * (0.7 * f64::from(i)).sin()).to_bits();
    let array = builder.array(ArrayData::Constants((0..count).map(number).collect()));
    let (region, entries) = builder.begin_loop(count, &[first], None);
    let number = builder.iteration(region);
    let strides = [(region, 1)].into_iter().collect();
    let element = builder.element(AccessData { array, base: 0, strides });
    let next = step(&mut builder, entries[0], number, element);
    let last = builder.constant(f64::from(count - 1));
    let again = builder.apply(Op::Lt, &[number, last]);
    builder.finish_block(&[again, next, next]);
    let after = builder.end_loop(region, 1)[0];
    builder.finish_block(&[after]);
    builder.into_graph()
}

/// Asserts that `rule` makes a form of a loop of a hundred iterations, and that at any number of iterations
/// what comes out means the same, with its derivatives.
fn holds(rule: Rule, step: Step) {
    holds_from(100, rule, step);
}

/// The same of a loop of so many iterations; a form of fewer may cost more than the loop.
fn holds_from(least: u32, rule: Rule, step: Step) {
    for count in TRIPS {
        let graph = looped(count, step);
        verify(&graph).unwrap();
        let closed = close(&graph, CloseLimits::default());
        verify(&closed.graph).unwrap();
        let is_applied = closed.applied.iter().any(|applied| applied.rule == rule);
        assert!(is_applied || count < least, "{rule}: {:?} {:?}", closed.applied, closed.open);
        let both = |graph: &Graph| reverse(graph, Wanted::GradientAndValue, Folding::Real);
        let (before, after) = (both(&graph), both(&closed.graph));
        for point in [[0.7, 0.9, 0.3], [1.3, 1.0, -0.2], [-0.4, 0.99, 2.0], [0.5, -0.8, 0.0]] {
            let outcomes = [&before, &after].map(|graph| interpret(graph, &point));
            let (a, b) = match outcomes {
                [Outcome::Values(a), Outcome::Values(b)] => (a, b),
                // The tape is asked where numbers are too large.
                [Outcome::Values(a), Outcome::Unseen(_)] if a.iter().any(|a| !a.is_finite()) => {
                    continue;
                }
                other => panic!("{rule} {count} {point:?}: {other:?}"),
            };
            let close = |(a, b): (&f64, &f64)| a == b || (a - b).abs() <= 1e-10 * a.abs().max(1e-3);
            assert!(a.iter().zip(&b).all(close), "{rule} {count} {point:?}: {a:?} {b:?}");
        }
    }
}

/// Asserts that the loop stays, for a reason.
fn refused(step: Step, reason: OpenReason) {
    let graph = looped(1000, step);
    let closed = close(&graph, CloseLimits::default());
    assert!(closed.applied.is_empty() && closed.graph == graph, "{:?}", closed.applied);
    assert!(closed.open.iter().any(|loop_| loop_.reasons.contains(&reason)), "{:?}", closed.open);
}

#[test]
fn f4_what_an_iteration_comes_to_is_that_of_the_last() {
    let step: Step = |builder, _, number, element| {
        let x = builder.input(1);
        let product = builder.apply(Op::Mul, &[number, x]);
        let product = builder.apply(Op::Mul, &[product, element]);
        builder.apply(Op::Sin, &[product])
    };
    for count in TRIPS {
        let graph = looped(count, step);
        let last = f64::from(count - 1);
        let element = 1.0 + 0.3 / f64::from(count) * (0.7 * last).sin();
        let expected = Outcome::Values(vec![(last * 0.9 * element).sin()]);
        let closed = close(&graph, CloseLimits::default());
        assert_eq!(interpret(&closed.graph, &[0.7, 0.9, 0.3]), expected, "{count}");
    }
}

#[test]
fn f4_is_refused_where_that_depends_on_those_before() {
    refused(
        |builder, carried, _, element| {
            let product = builder.apply(Op::Mul, &[carried, element]);
            builder.apply(Op::Sin, &[product])
        },
        OpenReason::Sum(SumReason::NotAdded),
    );
}

#[test]
fn f5_holds_where_exits_differ() {
    // w := 0.9·w while w > x₁; what comes out is w there, but its sine at the other end.
    let text = "graph active 2 inactive 0\nv2 = const 0.9\nv4 = iteration r0\nv5 = const 999.0\nv6 = const 0.0\n\
                b0:\n  v11 = region r0 b1 bound 1000 entries v3=v0\n  return v11\n\
                b1:\n  v7 = mul v3 v2\n  v8 = gt v7 v1\n  v9 = lt v4 v5\n  branch v8 b2 b3\n\
                b2:\n  return v9 v7 v7\nb3:\n  v10 = sin v7\n  return v6 v7 v10\n";
    // Where both ends pass on what is carried it is the form after k iterations.
    for text in [text.to_owned(), text.replace("return v6 v7 v10", "return v6 v7 v7")] {
        let graph = parse(&text).unwrap();
        verify(&graph).unwrap();
        let closed = close(&graph, CloseLimits::default());
        let is_exit = |applied: &Applied| applied.rule == Rule::F5;
        assert!(closed.applied.iter().any(is_exit), "{:?}", closed.open);
        for point in [[1.0, 0.3], [5.0, 1e-3], [-1.0, 2.0], [1.0, -1.0]] {
            let outcomes = [&graph, &closed.graph].map(|graph| interpret(graph, &point));
            let [Outcome::Values(a), Outcome::Values(b)] = outcomes else { panic!("{text}") };
            assert!((a[0] - b[0]).abs() <= 1e-12 * a[0].abs(), "{a:?} {b:?}");
        }
    }
}

/// The rules applied to the graph of `text`, which keeps its meaning.
fn branched(text: &str) -> Vec<Rule> {
    let graph = parse(text).unwrap();
    verify(&graph).unwrap();
    let branched = simplify_branches(&graph);
    for point in [[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0], [f64::NAN, 0.0]] {
        assert_eq!(interpret(&graph, &point), interpret(&branched.graph, &point));
    }
    branched.applied.into_iter().map(|applied| applied.rule).collect()
}

#[test]
fn c1_and_c4_are_refused_for_two_branches() {
    let is_pair = |rule: &Rule| matches!(rule, Rule::C1 | Rule::C4);
    let head = "graph active 2 inactive 0\nv2 = const 0.0\nv3 = const 2.0\nv4 = const 0.5\nb0:\n";
    let one = format!(
        "{head}  v5 = gt v0 v2\n  v6 v7 = region r0 b1\n  v8 = mul v6 v7\n  return v8\n\
         b1:\n  branch v5 b2 b3\nb2:\n  return v3 v4\nb3:\n  return v4 v3\n"
    );
    assert!(branched(&one).iter().any(is_pair), "{:?}", branched(&one));
    let two = format!(
        "{head}  v5 = gt v0 v2\n  v6 = gt v1 v2\n  v7 = region r0 b1\n  v8 = region r1 b4\n  \
         v9 = mul v7 v8\n  return v9\nb1:\n  branch v5 b2 b3\nb2:\n  return v3\nb3:\n  \
         return v4\nb4:\n  branch v6 b5 b6\nb5:\n  return v4\nb6:\n  return v3\n"
    );
    assert!(!branched(&two).iter().any(is_pair), "{:?}", branched(&two));
}

const BRANCH: &str = "graph active 2 inactive 0\nv2 = const 0.0\nb0:\n  v3 = gt v0 v2\n  v6 = region r0 b1\n  \
                      return v6\nb1:\n  branch v3 b2 b3\nb2:\n  v4 = sin v1\n  return v4\nb3:\n  \
                      v5 = mul v0 v1\n  return v5\n";

#[test]
fn c2_is_the_derivative_of_the_side_that_is_taken() {
    let graph = parse(BRANCH).unwrap();
    assert_eq!(differentiated_phis(&graph)[0].rule, Rule::C2);
    let gradient = reverse(&graph, Wanted::Gradient, Folding::Real);
    let at = |x: f64, y: f64| interpret(&gradient, &[x, y]);
    assert_eq!(at(1.0, 0.3), Outcome::Values(vec![0.0, 0.3f64.cos()]));
    assert_eq!(at(-2.0, 0.3), Outcome::Values(vec![0.3, -2.0]));
}

#[test]
fn c2_is_refused_where_nothing_depends_on_inputs() {
    let inactive = BRANCH.replace("active 2 inactive 0", "active 0 inactive 2");
    assert!(differentiated_phis(&parse(&inactive).unwrap()).is_empty());
}

#[test]
fn c5_is_what_a_loop_is_that_stays() {
    let f = Tape::record(|x: &[Var]| (0..200).fold(x[0], |y, _| (y * x[1]).sin()));
    f.grad(&[0.5, 0.9]).unwrap();
    let explanation = f.explain().unwrap();
    let forms: Vec<(Rule, &str)> = explanation.loops[0]
        .forms
        .iter()
        .map(|formula| (formula.rule, formula.form.text.as_str()))
        .collect();
    let found = forms.iter().find(|(rule, _)| *rule == Rule::C5).unwrap().1;
    assert_eq!(found, "d after the loop = f^[n](p), where f is an iteration: the loop stays open");
    // And it is said why.
    assert!(
        explanation.open[0]
            .reasons
            .contains(&OpenReason::Recurrence(RecurrenceReason::NotAffine(Op::Sin))),
        "{explanation}"
    );
}

#[test]
fn c5_is_not_needed_where_there_is_a_form() {
    let f = Tape::record(|x: &[Var]| (0..200).fold(x[0], |y, _| y * x[1] + 0.5));
    f.grad(&[0.5, 0.9]).unwrap();
    let rules = f.explain().unwrap().rules();
    assert!(rules.contains(&Rule::C6) && !rules.contains(&Rule::C5), "{rules:?}");
}

#[test]
fn c6_holds_where_coefficients_do_not_change() {
    holds(Rule::C6, |builder, carried, _, _| {
        let (a, b) = (builder.input(1), builder.input(2));
        let product = builder.apply(Op::Mul, &[a, carried]);
        builder.apply(Op::Add, &[product, b])
    });
}

#[test]
fn c6_is_refused_where_they_depend_on_the_state() {
    refused(
        |builder, carried, _, _| {
            let (a, b) = (builder.input(1), builder.input(2));
            let rest = builder.apply(Op::Sub, &[b, carried]);
            let product = builder.apply(Op::Mul, &[a, carried]);
            builder.apply(Op::Mul, &[product, rest])
        },
        OpenReason::Recurrence(RecurrenceReason::Product),
    );
}

#[test]
fn c7_holds_where_terms_do_not_depend_on_the_sum() {
    holds(Rule::C7, |builder, carried, number, element| {
        let (a, b) = (builder.input(1), builder.input(2));
        let product = builder.apply(Op::Mul, &[a, element]);
        let residual = builder.apply(Op::Sub, &[product, b]);
        let square = builder.apply(Op::Mul, &[residual, residual]);
        let term = builder.apply(Op::Add, &[square, number]);
        builder.apply(Op::Add, &[carried, term])
    });
}

#[test]
fn c7_is_refused_where_they_do() {
    refused(
        |builder, carried, _, element| {
            let term = builder.apply(Op::Sin, &[carried]);
            let term = builder.apply(Op::Mul, &[term, element]);
            builder.apply(Op::Add, &[carried, term])
        },
        OpenReason::Sum(SumReason::NotAdded),
    );
}

#[test]
fn c8_holds_where_factors_do_not_depend_on_the_product() {
    holds(Rule::C8, |builder, carried, _, element| builder.apply(Op::Mul, &[carried, element]));
    // Numbers and what is invariant: a product of numbers and a power.
    holds(Rule::C8, |builder, carried, _, element| {
        let factor = builder.input(1);
        let factor = builder.apply(Op::Mul, &[element, factor]);
        builder.apply(Op::Mul, &[carried, factor])
    });
    holds_from(1000, Rule::C8, |builder, carried, _, element| {
        let (factor, one) = (builder.input(2), builder.constant(1.0));
        let divisor = builder.apply(Op::Exp, &[factor]);
        let factor = builder.apply(Op::Add, &[one, element]);
        let product = builder.apply(Op::Mul, &[carried, factor]);
        let product = builder.apply(Op::Div, &[product, divisor]);
        let half = builder.constant(0.5);
        builder.apply(Op::Mul, &[product, half])
    });
}

#[test]
fn c8_is_refused_where_they_do() {
    refused(
        |builder, carried, _, element| {
            let square = builder.apply(Op::Mul, &[carried, carried]);
            builder.apply(Op::Mul, &[square, element])
        },
        OpenReason::Sum(SumReason::NotAdded),
    );
}

#[test]
fn c9_holds_where_coefficients_are_known() {
    holds(Rule::C9, |builder, carried, _, element| {
        let b = builder.input(2);
        let product = builder.apply(Op::Mul, &[element, carried]);
        let term = builder.apply(Op::Mul, &[b, element]);
        builder.apply(Op::Add, &[product, term])
    });
}

#[test]
fn c9_is_refused_where_they_are_not() {
    refused(
        |builder, carried, _, element| {
            let a = builder.input(1);
            let factor = builder.apply(Op::Add, &[a, element]);
            let product = builder.apply(Op::Mul, &[factor, carried]);
            builder.apply(Op::Add, &[product, element])
        },
        OpenReason::Sum(SumReason::Factors),
    );
}

#[test]
fn each_formula_has_a_test_that_is_there() {
    let sources =
        [include_str!("formulas.rs"), include_str!("branch_rules.rs"), include_str!("exits.rs")];
    let table = sources[0].lines().take_while(|line| line.starts_with("//!"));
    let rows: Vec<Vec<&str>> = table
        .filter_map(|line| line.strip_prefix("//! | "))
        .skip(2)
        .map(|row| row.trim_end_matches(" |").split(" | ").collect())
        .collect();
    let rules = [
        Rule::F1,
        Rule::F2,
        Rule::F3,
        Rule::F4,
        Rule::F5,
        Rule::C1,
        Rule::C2,
        Rule::C3,
        Rule::C4,
        Rule::C5,
        Rule::C6,
        Rule::C7,
        Rule::C8,
        Rule::C9,
    ];
    assert_eq!(rows.len(), rules.len());
    for (rule, row) in rules.iter().zip(rows) {
        assert_eq!(row[0], rule.to_string());
        for name in row[1..].iter().filter(|name| **name != "the same") {
            let name = name.rsplit(": ").next().unwrap();
            let is_there = sources.iter().any(|text| text.contains(&format!("fn {name}()")));
            assert!(is_there, "{rule}: {name}");
        }
    }
}
