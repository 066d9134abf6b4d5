//! Whole graphs, compared as they are.

use crate::ssa::{Graph, Item, Outcome, interpret, interpret_with, most_steps, without_tangents};

use super::numbers::Dual;
use super::{MOST_STEPS, MOST_STEPS_OF_DUALS, TOLERANCE, is_alike};

/// Where graphs are compared: how large the inputs are, one point for each.
pub(super) const SIZES: [f64; 6] = [1.0, 0.05, 1e-3, 3.0, 40.0, 1e4];

/// Of what is this part of what was carried numbers of twice the precision have no digit left.
const NO_DIGIT: f64 = 1e-24;

/// What comparing told.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Compared {
    /// Whether all was finite somewhere, and the same.
    pub(super) is_finite: bool,
    /// Whether rounding decides somewhere what the graph before comes to, so that nothing was told.
    is_open: bool,
}

/// Whether two graphs of the same inputs come to the same, but for rounding, at
/// some points, of which there are fewer if a run takes many steps. Guards do not
/// stop them, so that all of each is compared.
pub(crate) fn agree(before: &Graph, after: &Graph) -> bool {
    // To compare must not take longer than all else, and each form has been compared by
    // itself: near 2²⁰ steps one is affordable, and another one if that told nothing.
    let points = MOST_STEPS / most_steps(before, |_| 1).max(1);
    let (first, more) = SIZES.split_at((points as usize).clamp(1, SIZES.len()));
    let Some(mut compared) = agree_where(before, after, first) else { return false };
    if !compared.is_finite && !more.is_empty() {
        let Some(more) = agree_where(before, after, &more[..1]) else { return false };
        compared.is_finite |= more.is_finite;
        compared.is_open |= more.is_open;
    }
    compared.is_finite || !compared.is_open
}

/// Where graphs are compared that are called with so many numbers, one point for each size.
fn points(count: usize, sizes: &[f64]) -> impl Iterator<Item = Vec<f64>> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut uniform = move || {
        // A multiplicative generator; its upper bits are good enough.
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    sizes.iter().map(move |size| (0..count).map(|_| size * (2.0 * uniform() - 0.8)).collect())
}

/// What is told by comparing at these points; `None` if `after` comes to something else at one.
pub(super) fn agree_where(before: &Graph, after: &Graph, sizes: &[f64]) -> Option<Compared> {
    if (before.active, before.inactive) != (after.active, after.inactive) {
        return None;
    }
    let [before, after] = [before, after].map(|graph| without_tangents(&without_guards(graph)));
    let mut compared = Compared::default();
    for point in points(before.active + before.inactive, sizes) {
        match (interpret(&before, &point), interpret(&after, &point)) {
            (Outcome::Values(a), Outcome::Values(b)) if a.len() == b.len() => {
                let is_same = alike(&a, &b) || {
                    let twice = [&before, &after].map(|graph| values_twice(graph, &point));
                    let [Some(twice), Some(form)] = twice else { return None };
                    let outputs = a.iter().zip(&b).zip(twice.iter().zip(&form));
                    outputs.map(told_twice).collect::<Option<Vec<bool>>>()?.into_iter().all(|is| is)
                };
                compared.is_open |= !is_same;
                compared.is_finite |= is_same && a.iter().chain(&b).all(|value| value.is_finite());
            }
            (Outcome::Unseen(_), Outcome::Unseen(_)) => {}
            _ => return None,
        }
    }
    Some(compared)
}

/// Whether an output is the same, of which the loop and the form come to `a` and `b`, and to
/// `twice` and `form` in numbers of twice the precision; `None` if it is another one.
///
/// A loop may be at rest where a form is not, as less is rounded: then the form is to have all digits
/// of what the loop comes to with more of them. If that is something else than the form comes to,
/// and than the loop, rounding decides; so it does where all that the loop has carried cancels.
fn told_twice(((&a, &b), (twice, form)): ((&f64, &f64), (&Dual, &Dual))) -> Option<bool> {
    let same = |a, b| is_alike(a, b, TOLERANCE, TOLERANCE * 1e-9);
    if same(a, b) {
        return Some(true);
    }
    let ([carried, _], is_vague) = (twice.carried, twice.is_vague);
    let [twice, form] = [twice, form].map(|number| number.value.high);
    // Large numbers that cancel to the last digit leave no other digit.
    let cancels = a == 0.0 && twice == 0.0;
    if cancels && [form, b].iter().all(|size| size.abs() <= NO_DIGIT * carried) {
        return Some(false);
    }
    // What twice the digits do not tell is no other number.
    if is_vague {
        return Some(false);
    }
    if !twice.is_finite() || !form.is_finite() {
        return None;
    }
    match same(twice, form) && same(twice, b) {
        true => Some(true),
        false => (!same(twice, a)).then_some(false),
    }
}

/// What `graph` comes to at `point` in numbers of twice the precision; `None` if that takes too
/// long.
fn values_twice(graph: &Graph, point: &[f64]) -> Option<Vec<Dual>> {
    let inputs: Vec<Dual> = point.iter().map(|&input| Dual::input(input, 0.0)).collect();
    let is_short = most_steps(graph, |_| 1) <= MOST_STEPS_OF_DUALS;
    is_short.then(|| interpret_with(graph, &inputs))?.ok()
}

fn alike(a: &[f64], b: &[f64]) -> bool {
    a.iter().zip(b).all(|(&a, &b)| is_alike(a, b, TOLERANCE, TOLERANCE * 1e-9))
}

/// The graph without its guards: what it would come to if they held.
pub(super) fn without_guards(graph: &Graph) -> Graph {
    let mut graph = graph.clone();
    let blocks: Vec<_> = graph.blocks.keys().collect();
    for block in blocks {
        graph.blocks[block].items.retain(|item| !matches!(item, Item::Guard { .. }));
    }
    graph
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ssa::parse;

    #[test]
    fn graphs_agree_with_those_that_come_to_the_same() {
        let graph = |op: &str| {
            let text = format!("graph active 1 inactive 0\nb0:\n  v1 = {op} v0 v0\n  return v1\n");
            parse(&text).unwrap()
        };
        let (square, sum) = (graph("mul"), graph("add"));
        assert!(agree(&square, &square) && !agree(&square, &sum));
    }

    #[test]
    fn forms_that_lose_digits_are_others_and_loops_that_do_tell_nothing() {
        // Of outputs that are what they are told, of the input.
        let graph = |[first, second]: [&str; 2]| {
            let text = format!(
                "graph active 1 inactive 0\nv1 = const 1e17\nv2 = const 2.0\nv3 = const 1.0\nb0:\n  \
                 v4 = add v0 v1\n  v5 = sub v4 v1\n  v6 = mul v0 v2\n  v7 = add v0 v3\n  \
                 return {first} {second}\n"
            );
            parse(&text).unwrap()
        };
        let (input, lost, double, more) = ("v0", "v5", "v6", "v7");
        let compared = |before, after| {
            agree_where(&graph(before), &graph(after), &SIZES[..2])
                .map(|compared| (compared.is_finite, compared.is_open))
        };
        assert_eq!(compared([input, double], [input, double]), Some((true, false)));
        // The loop is at rest, and the form is not.
        assert_eq!(compared([lost, double], [input, double]), Some((true, false)));
        // The form is right in numbers of twice the precision alone.
        assert_eq!(compared([input, double], [lost, double]), None);
        // What the loop comes to is rounding, and the form something else.
        assert_eq!(compared([lost, double], [double, double]), Some((false, true)));
        assert!(!agree(&graph([lost, double]), &graph([double, double])));
        // That is no excuse for another output.
        assert_eq!(compared([lost, double], [double, more]), None);
    }

    #[test]
    fn a_sine_of_a_number_without_digits_tells_nothing() {
        // What is computed of the input is `op` of it, with other digits, and a large multiple of that.
        let graph = |op: &str, factor: f64| {
            let text = format!(
                "graph active 1 inactive 0\nv1 = const {factor}\nv2 = const 1e200\nb0:\n  \
                 v3 = mul v0 v1\n  v4 = mul v3 v3\n  v5 = mul v4 v4\n  v6 = {op} v5\n  \
                 v7 = mul v6 v2\n  v8 = mul v7 v2\n  v9 = tanh v8\n  v10 = add v6 v9\n  \
                 return v10\n"
            );
            parse(&text).unwrap()
        };
        let compared = |op: &str, size: f64| {
            let factors = [1e10, 1.1e10].map(|factor| graph(op, factor));
            agree_where(&factors[0], &factors[1], &[size]).map(|compared| compared.is_open)
        };
        assert_eq!(compared("sin", 1.0), Some(true));
        // Where digits are known another number is one, whatever comes of it later.
        assert_eq!(compared("sin", 1e-10), None);
        assert_eq!(compared("sqrt", 1e10), None);
    }

    #[test]
    fn graphs_without_guards_go_on() {
        let graph = parse("graph active 1 inactive 0\nb0:\n  guard v0\n  return v0\n").unwrap();
        assert!(matches!(interpret(&graph, &[0.0]), Outcome::Unseen(_)));
        assert_eq!(interpret(&without_guards(&graph), &[0.0]), Outcome::Values(vec![0.0]));
    }

    #[test]
    fn where_rounding_decides_nothing_is_told() {
        let number = |value: f64, carried: f64| {
            let number = Dual::input(value, 0.0);
            Dual { carried: [carried; 2], ..number }
        };
        let told = |loop_: (f64, f64), form: (f64, f64), carried: f64| {
            let twice = number(loop_.1, carried);
            told_twice(((&loop_.0, &form.0), (&twice, &number(form.1, 0.0))))
        };
        // The same, or the same with more digits only.
        assert_eq!(told((1.0, 1.0), (1.0, 1.0), 1.0), Some(true));
        assert_eq!(told((0.75, 1.0), (1.0, 1.0), 1.0), Some(true));
        // Another number: nothing is rounded in the loop.
        assert_eq!(told((1.0, 1.0), (2.0, 2.0), 1.0), None);
        // Both are others with more digits.
        assert_eq!(told((1.0, 3.0), (2.0, 2.0), 1.0), Some(false));
        // Of what was carried no digit is left, and that may be what the form comes to.
        assert_eq!(told((0.0, 0.0), (1e-3, 1e-3), 1e22), Some(false));
        assert_eq!(told((0.0, 0.0), (1e-3, 1e-3), 1e18), None);
        assert_eq!(told((0.0, 0.0), (1e-3, 1.0), 1e22), None);
        assert_eq!(told((0.0, f64::INFINITY), (1.0, 1.0), 1.0), None);
        // A form without a number where the loop has one.
        assert_eq!(told((0.0, 0.0), (1.0, f64::INFINITY), 1.0), None);
    }
}
