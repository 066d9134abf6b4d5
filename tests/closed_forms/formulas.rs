//! Each rule of φ-calculus in numbers: programs to which it applies, and others.
//!
//! | rule | applies | does not apply |
//! | --- | --- | --- |
//! | F1 | branch_rules: f1_folds_phis_of_equal_values | f1_keeps_phis_of_different_values |
//! | F2 | branch_rules: f2_moves_an_operation_to_its_inverse | f2_moves_only_operations_that_fold_or_cancel |
//! | F3 | branch_rules: f3_swaps_arms_of_a_complement | the same |
//! | F4 | f4_resolves_a_phi_to_the_last_iteration | f4_keeps_loops_that_depend_on_earlier_iterations |
//! | F5 | exits: derivatives_are_those_of_the_form_at_the_trip_count | f5_resolves_exits_that_differ |
//! | C1 | branch_rules: c1_and_c4_combine_two_phis_of_one_branch | c1_and_c4_keep_phis_of_two_branches |
//! | C2 | c2_differentiates_the_arm_that_is_taken | c2_skips_inactive_branches |
//! | C3 | branch_rules: c3_exchanges_nested_branches | the same |
//! | C4 | branch_rules: c1_and_c4_combine_two_phis_of_one_branch | c1_and_c4_keep_phis_of_two_branches |
//! | C5 | c5_describes_open_loops | c5_is_not_reported_for_closed_loops |
//! | C6 | c6_closes_loops_with_invariant_coefficients | c6_keeps_loops_whose_coefficients_depend_on_the_state |
//! | C7 | c7_closes_sums_of_independent_terms | c7_keeps_loops_whose_terms_depend_on_the_sum |
//! | C8 | c8_closes_products_of_independent_factors | c8_keeps_loops_whose_factors_depend_on_the_product |
//! | C9 | c9_closes_recurrences_with_data_as_coefficients | c9_keeps_loops_with_unknown_coefficients |

use phigrad::internals::diff::{Wanted, reverse};
use phigrad::internals::explain::differentiated_phis;
use phigrad::internals::op::Op;
use phigrad::internals::phi::{CloseLimits, close, simplify_branches};
use phigrad::internals::ssa::{
    AccessData, ArrayData, Builder, Folding, Graph, Node, Outcome, interpret, parse, verify,
};
use phigrad::report::{Applied, OpenReason, RecurrenceReason, Rule, SumReason};
use phigrad::{Tape, Var};

/// The trip counts at which forms are compared with their loops.
const TRIPS: [u32; 8] = [1, 2, 3, 17, 64, 100, 1000, 4099];

/// The next state of an iteration, from the state, the iteration number and an array element.
type Step = fn(&mut Builder, carried: Node, number: Node, element: Node) -> Node;

/// A loop of `count` iterations from x₀, where x₁ and x₂ are other inputs.
fn looped(count: u32, step: Step) -> Graph {
    let mut builder = Builder::new(3, 0, Folding::Exact);
    let first = builder.input(0);
    // Near 1, so that products neither overflow nor underflow.
    let number = |i: u32| (1.0 + 0.3 / f64::from(count) * (0.7 * f64::from(i)).sin()).to_bits();
    let array = builder.array(ArrayData::Constants((0..count).map(number).collect()));
    let (region, entries) = builder.begin_loop(count, &[first], None);
    let number = builder.iteration(region);
    let strides = [(region, 1)].into_iter().collect();
    let element =
        builder.element(AccessData { array, base: 0, strides, changes: Default::default() });
    let next = step(&mut builder, entries[0], number, element);
    let last = builder.constant(f64::from(count - 1));
    let again = builder.apply(Op::Lt, &[number, last]);
    builder.finish_block(&[again, next, next]);
    let after = builder.end_loop(region, 1)[0];
    builder.finish_block(&[after]);
    builder.into_graph()
}

/// Asserts that `rule` closes a loop of a hundred iterations, and that value and derivatives of the
/// form equal those of the loop for all trip counts.
fn holds(rule: Rule, step: Step) {
    holds_from(100, rule, step);
}

/// Asserts the same, but for trip counts below `least`: a form of so few iterations may cost more
/// than the loop.
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
                // Numbers that are too large are not compared.
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

/// Asserts that the loop stays open for this reason.
fn refused(step: Step, reason: OpenReason) {
    let graph = looped(1000, step);
    let closed = close(&graph, CloseLimits::default());
    assert!(closed.applied.is_empty() && closed.graph == graph, "{:?}", closed.applied);
    assert!(closed.open.iter().any(|loop_| loop_.reasons.contains(&reason)), "{:?}", closed.open);
}

#[test]
fn f4_resolves_a_phi_to_the_last_iteration() {
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
fn f4_keeps_loops_that_depend_on_earlier_iterations() {
    refused(
        |builder, carried, _, element| {
            let product = builder.apply(Op::Mul, &[carried, element]);
            builder.apply(Op::Sin, &[product])
        },
        OpenReason::Sum(SumReason::NotAdded),
    );
}

#[test]
fn f5_resolves_exits_that_differ() {
    // w := 0.9·w while w > x₁; one exit returns w, the other its sine.
    let text = "graph active 2 inactive 0\nv2 = const 0.9\nv4 = iteration r0\nv5 = const 999.0\nv6 = const 0.0\n\
                b0:\n  v11 = region r0 b1 bound 1000 entries v3=v0\n  return v11\n\
                b1:\n  v7 = mul v3 v2\n  v8 = gt v7 v1\n  v9 = lt v4 v5\n  branch v8 b2 b3\n\
                b2:\n  return v9 v7 v7\nb3:\n  v10 = sin v7\n  return v6 v7 v10\n";
    // If both exits return the carried value, it is the form after k iterations.
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

/// The rules that are applied to the graph of `text`, whose values are asserted to be the same.
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
fn c1_and_c4_keep_phis_of_two_branches() {
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
fn c2_differentiates_the_arm_that_is_taken() {
    let graph = parse(BRANCH).unwrap();
    assert_eq!(differentiated_phis(&graph)[0].rule, Rule::C2);
    let gradient = reverse(&graph, Wanted::Gradient, Folding::Real);
    let at = |x: f64, y: f64| interpret(&gradient, &[x, y]);
    assert_eq!(at(1.0, 0.3), Outcome::Values(vec![0.0, 0.3f64.cos()]));
    assert_eq!(at(-2.0, 0.3), Outcome::Values(vec![0.3, -2.0]));
}

#[test]
fn c2_skips_inactive_branches() {
    let inactive = BRANCH.replace("active 2 inactive 0", "active 0 inactive 2");
    assert!(differentiated_phis(&parse(&inactive).unwrap()).is_empty());
}

#[test]
fn c5_describes_open_loops() {
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
    // The reason is reported.
    assert!(
        explanation.open[0]
            .reasons
            .contains(&OpenReason::Recurrence(RecurrenceReason::NotAffine(Op::Sin))),
        "{explanation}"
    );
}

#[test]
fn c5_is_not_reported_for_closed_loops() {
    let f = Tape::record(|x: &[Var]| (0..200).fold(x[0], |y, _| y * x[1] + 0.5));
    f.grad(&[0.5, 0.9]).unwrap();
    let rules = f.explain().unwrap().rules();
    assert!(rules.contains(&Rule::C6) && !rules.contains(&Rule::C5), "{rules:?}");
}

#[test]
fn c6_closes_loops_with_invariant_coefficients() {
    holds(Rule::C6, |builder, carried, _, _| {
        let (a, b) = (builder.input(1), builder.input(2));
        let product = builder.apply(Op::Mul, &[a, carried]);
        builder.apply(Op::Add, &[product, b])
    });
}

#[test]
fn c6_keeps_loops_whose_coefficients_depend_on_the_state() {
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
fn c7_closes_sums_of_independent_terms() {
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
fn c7_keeps_loops_whose_terms_depend_on_the_sum() {
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
fn c8_closes_products_of_independent_factors() {
    holds(Rule::C8, |builder, carried, _, element| builder.apply(Op::Mul, &[carried, element]));
    // A product of data and an invariant: the product of the data and a power.
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
fn c8_keeps_loops_whose_factors_depend_on_the_product() {
    refused(
        |builder, carried, _, element| {
            let square = builder.apply(Op::Mul, &[carried, carried]);
            builder.apply(Op::Mul, &[square, element])
        },
        OpenReason::Sum(SumReason::NotAdded),
    );
}

#[test]
fn c9_closes_recurrences_with_data_as_coefficients() {
    holds(Rule::C9, |builder, carried, _, element| {
        let b = builder.input(2);
        let product = builder.apply(Op::Mul, &[element, carried]);
        let term = builder.apply(Op::Mul, &[b, element]);
        builder.apply(Op::Add, &[product, term])
    });
}

#[test]
fn c9_keeps_loops_with_unknown_coefficients() {
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
fn each_rule_has_the_tests_of_the_table() {
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
