//! Tangents: nodes that are zero, with the derivative one. They tell differentiation
//! what a derivative is that has been computed already.
//!
//! A value Y with known derivatives D by nodes x is Y + Σ D·t(x), where t(x) is the
//! tangent of x. Y and D pass no derivative on: each is less its own tangent, and
//! differentiation knows that what is less a tangent is constant. So D is the whole
//! derivative, however Y is computed, and D may have digits that a sweep through Y
//! would not have.
//!
//! A tangent is `(x + FAR) - FAR`, spelt with `mul_add` as rounding errors are, by which
//! rewriting by the rules of real numbers leaves it alone. Where something less its
//! tangent is not known as such any more, its derivative is less itself, which is zero
//! as well. A tangent is a mark more than a computation: [`without_tangents`] takes it out
//! before anything is compiled.
//!
//! Where D are derivatives of several numbers by one, their sum is gathered with twice the
//! digits (`diff::gathered`). Their tangents are far by a number of their own, one for each closed
//! form: so tangents of different forms are different nodes.
//!
//! What people are not shown is marked, too: other forms of the same number, and what asks
//! whether enough of its digits are known.

use super::dead::eliminate_dead_code;
use super::fold::Folding;
use super::graph::{Def, Graph, Node};
use super::nest::Nest;
use super::rebuild::{Rebuild, rebuild};
use crate::entity::Array;
use crate::op::Op;

/// What a tangent is far from: numbers of less than 2⁹⁴⁶ vanish beside it. Its digits
/// are such as no program has by accident.
pub(crate) const FAR: f64 = f64::from_bits(0x7E7B_4D2C_9A61_7E35);

/// 2¹²⁸: what closed forms begin with is less, and derivatives of that by what it was made of.
pub(crate) const MODERATE: f64 = f64::from_bits(0x47F0_0000_0000_0000);

/// By so much powers may have grown where what is passed on adds up.
pub(crate) const GROWN: f64 = (1u64 << 40) as f64;

/// The places in a number of that of a form, and of what it says of steps in powers of 16.
const FORM_AT: u32 = u32::BITS;
const STEPS_AT: u32 = 48;
const MOST_STEPS: u64 = 15;

/// What tangents are far from whose adjoints are gathered, by the number of their form. A
/// derivative by what so many `steps` are made of counts all of them, so that it is larger than a
/// power by their number.
pub(crate) fn far(form: u16, steps: f64) -> f64 {
    let power = (0..MOST_STEPS).find(|&power| of_steps(power) >= steps).unwrap_or(MOST_STEPS);
    f64::from_bits(FAR.to_bits() ^ u64::from(form) << FORM_AT ^ power << STEPS_AT)
}

fn of_steps(power: u64) -> f64 {
    (1u64 << (4 * power)) as f64
}

/// What tells tangents.
#[derive(Clone, Copy)]
struct Form {
    /// Zero if their adjoints are not gathered.
    number: u16,
    /// So many steps do derivatives count at most.
    steps: f64,
}

/// What tells tangents that are so `far`, if there are such.
fn form_of(far: f64) -> Option<Form> {
    let bits = far.to_bits() ^ FAR.to_bits();
    let (number, power) = (bits >> FORM_AT & u64::from(u16::MAX), bits >> STEPS_AT);
    let form = Form { number: number as u16, steps: of_steps(power.min(MOST_STEPS)) };
    (self::far(form.number, form.steps).to_bits() == far.to_bits()).then_some(form)
}

/// Whether tangents are so `far`.
pub(crate) fn is_far(far: f64) -> bool {
    form_of(far).is_some()
}

/// A number that no tangent of `graph` has, as long as there are any.
pub(crate) fn next_form(graph: &Graph) -> u16 {
    let constants = graph.nodes.keys().filter_map(|node| graph.constant(node));
    let forms = constants.filter_map(|far| Some(form_of(far)?.number));
    forms.max().unwrap_or(0).saturating_add(1)
}

/// The last digits of limits between two forms of the same number, which no program has
/// by accident.
const MARK: u64 = 0x9A61_7E35;

/// A number near `limit` by which one of two forms of a number is chosen: as functions of
/// real numbers both are the same, or almost so. Where something is beyond a limit that is
/// less than 1, and where nothing is beyond one that is not, the form is that for people.
pub(crate) const fn marked(limit: f64) -> f64 {
    f64::from_bits(limit.to_bits() & !(u32::MAX as u64) | MARK)
}

/// What a number is where too few of its digits are known.
pub(crate) const NO_NUMBER: u64 = f64::NAN.to_bits() | MARK;

/// The other one, if `node` is it or [`NO_NUMBER`].
fn undoubted(graph: &Graph, node: Node) -> Option<Node> {
    let Def::Apply(Op::Select, [_, then, otherwise]) = graph.nodes[node].def else { return None };
    graph.constant(otherwise).filter(|number| number.to_bits() == NO_NUMBER).map(|_| then)
}

/// Whether there are numbers of which too few digits may be known.
pub(crate) fn has_doubts(graph: &Graph) -> bool {
    graph.nodes.keys().any(|node| undoubted(graph, node).is_some())
}

/// The form for people, if `node` chooses between two of the same number.
fn preferred(graph: &Graph, node: Node) -> Option<Node> {
    let Def::Apply(Op::Select, [condition, then, otherwise]) = graph.nodes[node].def else {
        return None;
    };
    let Def::Apply(Op::Gt, [_, limit, _]) = graph.nodes[condition].def else { return None };
    let limit = graph.constant(limit).filter(|&limit| limit == marked(limit))?;
    Some(if limit < 1.0 { then } else { otherwise })
}

/// Whether there are numbers with several forms.
pub(crate) fn has_alternatives(graph: &Graph) -> bool {
    graph.nodes.keys().any(|node| preferred(graph, node).is_some())
}

/// `graph` with the forms for people, if numbers have several, and without doubts; `None` if
/// it is that already.
pub(crate) fn for_people(graph: &Graph) -> Option<Graph> {
    if !has_alternatives(graph) && !has_doubts(graph) {
        return None;
    }
    let plain = rebuild(graph, Folding::Real, |rebuild, node| {
        let form = preferred(graph, node).or_else(|| undoubted(graph, node));
        form.map(|form| rebuild.copied(form))
    });
    Some(eliminate_dead_code(&plain))
}

/// Whether `node` is the tangent of something.
pub(crate) fn is_tangent(graph: &Graph, node: Node) -> bool {
    tangent_sum(graph, node).is_some()
}

/// The sum of a number and what is far from it, if `node` is the tangent of that number.
pub(crate) fn tangent_sum(graph: &Graph, node: Node) -> Option<Node> {
    far_sum(graph, node).map(|(sum, _)| sum)
}

/// That sum, and what tells tangents of the form, if `node` is a tangent.
fn far_sum(graph: &Graph, node: Node) -> Option<(Node, Form)> {
    let Def::Apply(Op::MulAdd, [a, b, c]) = graph.nodes[node].def else { return None };
    let constant = |node| graph.constant(node);
    let far = -constant(c)?;
    let form = form_of(far)?;
    let sum = match [constant(a), constant(b)] {
        [Some(1.0), _] => b,
        [_, Some(1.0)] => a,
        _ => return None,
    };
    let is_far = match graph.nodes[sum].def {
        Def::Apply(Op::Add, [a, b, _]) => constant(a) == Some(far) || constant(b) == Some(far),
        // Of what is less something, which is less that when it is made far.
        Def::Apply(Op::Sub, [a, _, _]) => constant(a) == Some(far),
        _ => false,
    };
    is_far.then_some((sum, form))
}

/// Whether `node` is a tangent whose adjoint is gathered.
pub(crate) fn is_gathering(graph: &Graph, node: Node) -> bool {
    far_sum(graph, node).is_some_and(|(_, form)| form.number != 0)
}

/// By how much slopes by what `node` is the tangent of may be larger than what they are multiplied
/// by.
pub(crate) fn grown_by(graph: &Graph, node: Node) -> f64 {
    far_sum(graph, node).map_or(GROWN, |(_, form)| GROWN * form.steps)
}

/// What `node` is the tangent of, if it is one.
pub(crate) fn tangent_of(graph: &Graph, node: Node) -> Option<Node> {
    let sum = tangent_sum(graph, node)?;
    graph.nodes[sum].args().iter().copied().find(|&arg| graph.constant(arg).is_none())
}

/// Whether `node` is a derivative times a tangent, or a tangent that is there in some cases.
pub(crate) fn is_slope(graph: &Graph, node: Node) -> bool {
    is_way(graph, node)
        || match graph.nodes[node].def {
            Def::Apply(Op::Mul | Op::Neg | Op::Select, _) => {
                graph.nodes[node].args().iter().any(|&arg| is_way(graph, arg))
            }
            _ => false,
        }
}

/// The derivative and what it is multiplied by, if `node` is one times a tangent or several of them.
pub(crate) fn slope_by(graph: &Graph, node: Node) -> Option<(Node, Node)> {
    let Def::Apply(Op::Mul, [a, b, _]) = graph.nodes[node].def else { return None };
    match [a, b].map(|of| is_way(graph, of)) {
        [_, true] => Some((a, b)),
        [true, _] => Some((b, a)),
        _ => None,
    }
}

/// The number, if `node` is one and a derivative of it times a tangent.
pub(crate) fn told_number(graph: &Graph, node: Node) -> Option<Node> {
    match graph.nodes[node].def {
        Def::Apply(Op::Add, [a, b, _]) if is_slope(graph, b) => Some(a),
        Def::Apply(Op::Add, [a, b, _]) if is_slope(graph, a) => Some(b),
        // What is added was less something.
        Def::Apply(Op::Sub, [a, b, _]) if is_slope(graph, b) && !is_held(graph, node) => Some(a),
        _ => None,
    }
}

/// Whether `node` is a sum of multiples of tangents.
pub(crate) fn is_way(graph: &Graph, mut node: Node) -> bool {
    while let Def::Apply(Op::Add | Op::Sub, [a, b, _]) = graph.nodes[node].def {
        node = match [a, b].map(|part| is_multiple(graph, part)) {
            [_, true] => a,
            [true, _] => b,
            _ => return false,
        };
    }
    is_multiple(graph, node)
}

/// Whether `node` is a tangent, or a number times one.
fn is_multiple(graph: &Graph, node: Node) -> bool {
    let is_number = |node| graph.constant(node).is_some();
    is_tangent(graph, node)
        || match graph.nodes[node].def {
            Def::Apply(Op::Neg, [a, ..]) => is_tangent(graph, a),
            Def::Apply(Op::Mul, [a, b, _]) => {
                is_number(a) && is_tangent(graph, b) || is_number(b) && is_tangent(graph, a)
            }
            _ => false,
        }
}

/// Whether `node` is a number less its tangent, which has no derivative.
pub(crate) fn is_held(graph: &Graph, node: Node) -> bool {
    let Def::Apply(Op::Sub, [number, tangent, _]) = graph.nodes[node].def else { return false };
    let Def::Apply(_, [a, b, _]) = graph.nodes[tangent].def else { return false };
    // What a tangent is far from is a part of all of them.
    graph.constant(number).is_none()
        && is_tangent(graph, tangent)
        && [a, b].into_iter().any(|sum| match graph.nodes[sum].def {
            Def::Apply(Op::Add, args) => args[..2].contains(&number),
            Def::Apply(Op::Sub, [_, negated, _]) => {
                matches!(graph.nodes[number].def, Def::Apply(Op::Neg, [x, ..]) if x == negated)
            }
            _ => false,
        })
}

/// `graph` with tangents as the zeros that they are, and nothing that is computed of
/// them alone.
pub(crate) fn without_tangents(graph: &Graph) -> Graph {
    if !has_tangents(graph) {
        return graph.clone();
    }
    let zero = zeros(graph);
    let plain = rebuild(graph, Folding::Real, |rebuild, node| {
        if zero[node] {
            return Some(rebuild.builder.constant(0.0));
        }
        let Def::Apply(op, [a, b, c]) = graph.nodes[node].def else { return None };
        let copied = |rebuild: &mut Rebuild<'_>, node| Some(rebuild.copied(node));
        match op {
            Op::Add if zero[a] => copied(rebuild, b),
            Op::Add | Op::Sub if zero[b] => copied(rebuild, a),
            Op::Sub if zero[a] => {
                let b = rebuild.copied(b);
                Some(rebuild.builder.apply(Op::Neg, &[b]))
            }
            Op::MulAdd if zero[a] || zero[b] => copied(rebuild, c),
            Op::MulAdd if zero[c] => {
                let (a, b) = (rebuild.copied(a), rebuild.copied(b));
                Some(rebuild.builder.apply(Op::Mul, &[a, b]))
            }
            _ => None,
        }
    });
    eliminate_dead_code(&plain)
}

/// Whether there are tangents.
pub(crate) fn has_tangents(graph: &Graph) -> bool {
    graph.nodes.keys().any(|node| is_tangent(graph, node))
}

/// Whether there are tangents in loops.
pub(crate) fn loops_have_tangents(graph: &Graph) -> bool {
    if !has_tangents(graph) {
        return false;
    }
    let nest = Nest::of(graph);
    graph.nodes.keys().any(|node| is_tangent(graph, node) && nest.node_loop(node).is_some())
}

/// Which nodes are zero because tangents are.
fn zeros(graph: &Graph) -> Array<Node, bool> {
    let mut zero: Array<Node, bool> = Array::filled(false, graph.nodes.len());
    // Operands have been made before; where they have not, a step stays that adds zero.
    for node in graph.nodes.keys() {
        let Def::Apply(op, [a, b, c]) = graph.nodes[node].def else { continue };
        zero[node] = match op {
            Op::MulAdd => is_tangent(graph, node) || (zero[a] || zero[b]) && zero[c],
            Op::Mul => zero[a] || zero[b],
            Op::Add | Op::Sub => zero[a] && zero[b],
            Op::Neg | Op::Div => zero[a],
            Op::Select => {
                let is_zero = |node: Node| zero[node] || graph.constant(node) == Some(0.0);
                (zero[b] || zero[c]) && is_zero(b) && is_zero(c)
            }
            _ => false,
        };
    }
    zero
}

#[cfg(test)]
mod tests {
    use core::f64::consts as known;

    use super::*;
    use crate::ssa::{Outcome, interpret, parse};

    #[test]
    fn no_known_number_is_marked() {
        let constants = [
            known::E,
            known::FRAC_1_PI,
            known::FRAC_1_SQRT_2,
            known::FRAC_2_PI,
            known::FRAC_2_SQRT_PI,
            known::FRAC_PI_2,
            known::FRAC_PI_3,
            known::FRAC_PI_4,
            known::FRAC_PI_6,
            known::FRAC_PI_8,
            known::LN_2,
            known::LN_10,
            known::LOG2_10,
            known::LOG2_E,
            known::LOG10_2,
            known::LOG10_E,
            known::PI,
            known::SQRT_2,
            known::TAU,
            1.618_033_988_749_895,
            0.577_215_664_901_532_9,
        ];
        let is_marked = |number: f64| number.to_bits() & u64::from(u32::MAX) == MARK;
        let fits = |number: f64| {
            let all = [number, 1.0 / number, number.sqrt(), number * number, number.ln()];
            all.iter().all(|&number| !is_marked(number) && !is_marked(number - 1.0))
        };
        assert!(is_marked(marked(1.0)) && is_marked(marked(1e-3)));
        assert!(
            constants
                .iter()
                .all(|&number| fits(number) && number.to_bits() << 12 != FAR.to_bits() << 12)
        );
        for above in (1..400).map(f64::from) {
            assert!((1..400).all(|below| fits(above / f64::from(below))));
            assert!((0..20).all(|zeros| fits(above / 10f64.powi(zeros))));
            assert!([above.exp(), above.cbrt(), above.sin()].into_iter().all(fits));
            assert!(constants.iter().all(|&number| fits(above * number) && fits(number / above)));
        }
    }

    #[test]
    fn choices_by_known_limits_are_no_forms_of_one_number() {
        for limit in [known::SQRT_2, known::FRAC_1_SQRT_2, known::PI] {
            let text = format!(
                "graph active 1 inactive 0\nv1 = const {limit:?}\nv2 = const 7.0\nb0:\n  \
                 v3 = gt v0 v1\n  v4 = mul v0 v2\n  v5 = select v3 v4 v0\n  return v5\n"
            );
            assert!(!has_alternatives(&parse(&text).unwrap()));
        }
    }

    /// sin x with the derivative that `slope` says, of `v2` and the tangent `v6` of x.
    fn graph(last: &str) -> Graph {
        let text = format!(
            "graph active 1 inactive 0\nv1 = const 1.0\nv2 = const {FAR:?}\nv3 = const {:?}\n\
             b0:\n  v4 = sin v0\n  v5 = add v0 v2\n  v6 = mul_add v5 v1 v3\n  v7 = add v4 v2\n  \
             v8 = mul_add v7 v1 v3\n  v9 = sub v4 v8\n{last}",
            -FAR
        );
        parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
    }

    #[test]
    fn what_is_less_something_is_held_as_well() {
        let known = graph(
            "  v10 = mul v0 v0\n  v11 = neg v10\n  v12 = sub v2 v10\n  \
             v13 = mul_add v12 v1 v3\n  v14 = sub v11 v13\n  v15 = mul v14 v6\n  \
             v16 = add v9 v15\n  return v16\n",
        );
        let held = known.nodes.keys().filter(|&node| is_held(&known, node)).count();
        assert_eq!(held, 2);
    }

    #[test]
    fn tangents_are_zero_and_gone_without_them() {
        let known = graph(
            "  v10 = mul v0 v0\n  v11 = add v10 v2\n  v12 = mul_add v11 v1 v3\n  \
             v13 = sub v10 v12\n  v14 = mul v13 v6\n  v15 = add v9 v14\n  return v15\n",
        );
        assert!(has_tangents(&known) && !loops_have_tangents(&known));
        let held = known.nodes.keys().filter(|&node| is_held(&known, node)).count();
        assert_eq!(held, 2);
        let plain = without_tangents(&known);
        assert_eq!(
            plain.to_string(),
            "graph active 1 inactive 0\nb0:\n  v1 = sin v0\n  return v1\n"
        );
        for x in [0.0, 1.0, -3.5e100, 1e-300] {
            assert_eq!(interpret(&known, &[x]), Outcome::Values(vec![x.sin()]));
        }
    }

    #[test]
    fn ways_are_slopes_and_gone_with_tangents() {
        // The tangents of x and sin x are v6 and v8.
        let known = graph(
            "  v10 = neg v8\n  v11 = sub v6 v10\n  v12 = mul v0 v11\n  v13 = const 0.5\n  \
             v14 = mul v13 v8\n  v15 = sub v6 v14\n  v16 = const 0.0\n  \
             v17 = select v0 v16 v14\n  v18 = select v0 v14 v16\n  v19 = mul v0 v15\n  \
             v20 = add v4 v12\n  v21 = add v20 v17\n  v22 = add v21 v18\n  v23 = add v22 v19\n  \
             return v23\n",
        );
        let slopes: Vec<usize> = (10..24)
            .filter(|&at| {
                let node = known.nodes.keys().nth(at);
                node.is_some_and(|node| is_slope(&known, node))
            })
            .collect();
        assert_eq!(slopes, [10, 11, 12, 14, 15, 17, 18, 19]);
        let plain = without_tangents(&known).to_string();
        assert_eq!(plain, "graph active 1 inactive 0\nb0:\n  v1 = sin v0\n  return v1\n");
    }

    #[test]
    fn numbers_that_are_told_are_known_however_slopes_are_added() {
        // v9 is sin x held, and v11 a slope.
        let known = graph(
            "  v10 = mul v0 v0\n  v11 = mul v10 v6\n  v12 = add v9 v11\n  v13 = add v11 v9\n  \
             v14 = sub v9 v11\n  v15 = sub v9 v6\n  v16 = sub v11 v10\n  v17 = add v9 v10\n  \
             return v17\n",
        );
        let nodes: Vec<Node> = known.nodes.keys().collect();
        for (at, number) in [(12, 9), (13, 9), (14, 9), (15, 9)] {
            assert_eq!(told_number(&known, nodes[at]), Some(nodes[number]), "v{at}");
        }
        for at in [9, 10, 11, 16, 17] {
            assert_eq!(told_number(&known, nodes[at]), None, "v{at}");
        }
    }

    #[test]
    fn a_tangent_of_what_is_less_another_one_is_not_held() {
        // That of -t(x), with FAR - t(x) in it.
        let less = graph("  v10 = sub v2 v6\n  v11 = mul_add v10 v1 v3\n  return v11\n");
        let nodes: Vec<Node> = less.nodes.keys().collect();
        assert!(is_tangent(&less, nodes[11]) && !is_held(&less, nodes[10]));
        assert_eq!(tangent_of(&less, nodes[11]), Some(nodes[6]));
    }

    #[test]
    fn what_is_less_another_tangent_is_not_held() {
        let other = graph("  v10 = sub v0 v8\n  v11 = sub v10 v6\n  return v11\n");
        let held: Vec<bool> = other.nodes.keys().map(|node| is_held(&other, node)).collect();
        assert_eq!(held.iter().filter(|&&is_held| is_held).count(), 1);
        assert!(held[9]);
        let plain = without_tangents(&other).to_string();
        assert_eq!(plain, "graph active 1 inactive 0\nb0:\n  return v0\n");
    }
}
