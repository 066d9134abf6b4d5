//! Numbers that a loop takes to a point, or away from that, and that another one around it or before
//! it has carried, or that begin elsewhere.
//!
//! Let z become c + P·(z - c) in each of them. In a sweep the adjoint of z is multiplied by P,
//! and that of c gets the rest: both together stay what they were. Where powers are
//! larger than 1 in some iterations and less in others each may grow to be large, and be small
//! again in the end; of a sum of products with 1 - P, each rounded, nothing is left then. A
//! program that computes z - r·(z - c) adds the same to the one as it takes from the other,
//! and loses nothing. So does what is told here: the derivatives P are those by the way z - c,
//! of which z gets what c loses; and all that is passed to z first goes to c, or, where P
//! is near 1, to z, and P less 1 is that by the way.

use std::collections::BTreeSet;

use super::emit::Emitter;
use super::form::{Affine, Base};
use super::slopes::Digits;
use super::terms::Terms;
use crate::op::Op;
use crate::phi::pair::{Pair, Pairs};
use crate::ssa::Node;

/// Numbers and the point that they are taken to.
pub(super) struct Toward {
    numbers: Vec<Number>,
    /// What the point is made of.
    leaves: BTreeSet<Node>,
}

struct Number {
    /// What a loop around carries, or one before has, if it begins as that.
    carried: Option<Node>,
    /// The nodes that the point is the sum of, with their factors, but for constants.
    parts: Vec<(Node, f64)>,
}

/// A number of those that are taken to a point, with its derivatives by what all of them begin as.
#[derive(Clone, Copy)]
pub(super) struct Taken<'a> {
    pub(super) toward: &'a Toward,
    pub(super) number: usize,
    pub(super) row: &'a [Option<Pair>],
}

impl Toward {
    /// Of numbers that begin as `firsts`, z, and that steps take to `point`, c, by a map that is
    /// made of `nodes_of_map`. The steps are known as `rows`, too.
    ///
    /// So much is needed that the derivative by c is all that P leaves of 1:
    ///
    /// - c is a sum of multiples of nodes, of which neither the map nor any z is made.
    ///
    /// P is the whole derivative by a z that is a node which comes from a loop, and of which
    /// neither the map nor another z is made. Those by what other ones are made of are told beside
    /// that; of a z that is given as zero, too.
    pub(super) fn of(
        emitter: &Emitter<'_>,
        rows: &[Affine],
        firsts: &[Terms],
        point: &[Terms],
        nodes_of_map: &BTreeSet<Node>,
    ) -> Option<Toward> {
        let leaves: BTreeSet<Node> = point.iter().flat_map(Terms::nodes).collect();
        let is_made_of = |node| firsts.iter().filter(|first| first.nodes().contains(&node)).count();
        if leaves.iter().any(|leaf| nodes_of_map.contains(leaf) || is_made_of(*leaf) > 0) {
            return None;
        }
        let computed = computed(emitter, rows);
        let mut numbers = Vec::new();
        for (first, point) in firsts.iter().zip(point) {
            let node = first.single().and_then(|(powers, _)| Some(powers.first()?.0));
            let carried = node.filter(|&node| {
                *first == Terms::node(node)
                    && emitter.is_from_loop(node)
                    && emitter.may_be_active(node)
                    && !nodes_of_map.contains(&node)
                    && is_made_of(node) == 1
            });
            numbers.push(Number { carried, parts: parts(&computed, point)? });
        }
        let is_constant = numbers.iter().all(|number| number.parts.is_empty());
        (!is_constant).then_some(Toward { numbers, leaves })
    }

    /// Whether derivatives by `leaf` are told by themselves.
    pub(super) fn tells(&self, leaf: Node) -> bool {
        self.leaves.contains(&leaf)
    }
}

impl Taken<'_> {
    /// The derivatives by what those numbers begin as that no loop has carried.
    pub(super) fn slopes(&self, emitter: &mut Emitter<'_>, digits: Digits) -> Vec<Slope> {
        let mut slopes = Vec::new();
        for (place, (number, &slope)) in self.toward.numbers.iter().zip(self.row).enumerate() {
            if let (None, false, Some(slope)) = (number.carried, number.parts.is_empty(), slope) {
                slopes.push(Slope::of(emitter, By::Number(place), slope, digits));
            }
        }
        slopes
    }

    fn own(&self) -> &Number {
        &self.toward.numbers[self.number]
    }

    /// The parts of the point that the number goes to which begins so.
    fn parts(&self, by: By) -> &[(Node, f64)] {
        let all = &self.toward.numbers;
        let number = match by {
            By::Number(place) => all.get(place),
            By::Node(node) => all.iter().find(|number| number.carried == Some(node)),
        };
        number.map_or(&[], |number| &number.parts)
    }

    fn is_own(&self, by: By) -> bool {
        match by {
            By::Number(place) => place == self.number,
            By::Node(node) => self.own().carried == Some(node),
        }
    }
}

/// What a derivative is by.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    /// What a loop has carried.
    Node(Node),
    /// What the number at this place begins as.
    Number(usize),
}

/// The derivative of a number by one that comes from a loop, or is taken to a point.
///
/// Where that is near 1 it is what it is more than 1: derivatives by the first number are
/// products of all of them, and the same rounding error in each would add up.
pub(super) struct Slope {
    by: By,
    is_near: Node,
    /// The sum of these, one of them if it is rounded.
    parts: Vec<Node>,
    digits: Digits,
    steps: f64,
}

impl Slope {
    pub(super) fn of(emitter: &mut Emitter<'_>, by: By, whole: Pair, digits: Digits) -> Slope {
        let whole = if digits == Digits::InPairs { emitter.normal(whole) } else { whole };
        let (less, half) = (emitter.constant(-1.0), emitter.constant(0.5));
        let way = emitter.apply(Op::Add, &[whole.high, less]);
        let size = emitter.apply(Op::Abs, &[way]);
        let is_near = emitter.apply(Op::Lt, &[size, half]);
        let way = Pair { high: way, ..whole };
        let parts = match digits {
            Digits::InPairs => {
                let high = emitter.apply(Op::Select, &[is_near, way.high, whole.high]);
                core::iter::once(high).chain(whole.low).collect()
            }
            Digits::Rounded => {
                let [way, whole] = [way, whole].map(|pair| emitter.rounded(pair));
                vec![emitter.apply(Op::Select, &[is_near, way, whole])]
            }
        };
        Slope { by, is_near, parts, digits, steps: 1.0 }
    }

    /// The same, that of so many steps.
    pub(super) fn of_steps(self, steps: f64) -> Slope {
        Slope { steps, ..self }
    }
}

/// `value` with its derivatives by what comes from loops, and by the point, if it is known,
/// that it is `taken` to.
pub(super) fn with_carried(
    emitter: &mut Emitter<'_>,
    mut value: Node,
    slopes: &[Slope],
    taken: Option<Taken<'_>>,
) -> Node {
    let zero = emitter.constant(0.0);
    let mut whole = Vec::new();
    for this in slopes {
        let tangent = match this.by {
            By::Node(node) => Some(emitter.tangent(node)),
            By::Number(_) => None,
        };
        let parts = taken.as_ref().map_or(&[][..], |taken| taken.parts(this.by));
        let less: Vec<Node> =
            parts.iter().map(|&(node, factor)| multiple(emitter, (node, -factor))).collect();
        let way = tangent.into_iter().chain(less);
        let Some(way) = way.reduce(|way, part| emitter.apply(Op::Add, &[way, part])) else {
            continue;
        };
        // What several numbers pass on to the way is gathered.
        let gathered = match this.digits {
            Digits::InPairs => {
                let far = emitter.far(this.digits, this.steps);
                emitter.tangent_by(far, way)
            }
            Digits::Rounded => way,
        };
        for &part in &this.parts {
            let part = emitter.held(part);
            if emitter.value(part) != Some(0.0) {
                let product = emitter.apply(Op::Mul, &[part, gathered]);
                value = emitter.apply(Op::Add, &[value, product]);
            }
        }
        if taken.is_some_and(|taken| taken.is_own(this.by)) {
            if let Some(tangent) = tangent {
                whole.push(emitter.apply(Op::Select, &[this.is_near, tangent, zero]));
            }
            for &part in parts {
                let part = multiple(emitter, part);
                whole.push(emitter.apply(Op::Select, &[this.is_near, zero, part]));
            }
        } else {
            whole.push(emitter.apply(Op::Select, &[this.is_near, gathered, zero]));
        }
    }
    // What vanishes in the end has come to the point.
    if let Some(taken) = taken
        && slopes.iter().all(|this| !taken.is_own(this.by))
    {
        whole.extend(taken.own().parts.iter().map(|&part| multiple(emitter, part)));
    }
    whole.retain(|&part| part != zero);
    // A sweep comes to the whole before it comes to the products.
    whole.into_iter().fold(value, |value, part| emitter.apply(Op::Add, &[value, part]))
}

/// The tangent of a number times a factor.
fn multiple(emitter: &mut Emitter<'_>, (node, factor): (Node, f64)) -> Node {
    let (tangent, factor) = (emitter.tangent(node), emitter.constant(factor));
    emitter.apply(Op::Mul, &[factor, tangent])
}

/// What was computed before the loop and may be the point of one of `rows`, whatever it was computed
/// of: what is added in a step, or that is a multiple of it.
fn computed(emitter: &Emitter<'_>, rows: &[Affine]) -> Vec<(Node, Terms)> {
    let bases = rows.iter().flat_map(Affine::keys).filter_map(|&base| match base {
        Base::Node(node) => Some(node),
        Base::State(_) => None,
    });
    let of = |node: Node| emitter.graph.nodes[node].args().iter().copied();
    let all: BTreeSet<Node> =
        bases.flat_map(|node| core::iter::once(node).chain(of(node))).collect();
    let numbers = all.into_iter().filter(|&node| emitter.value(node).is_none());
    numbers.map(|node| (node, Terms::of_node(emitter, node))).collect()
}

/// The nodes that `point` is the sum of, with their factors: the one of those that are `computed`
/// which is that.
fn parts(computed: &[(Node, Terms)], point: &Terms) -> Option<Vec<(Node, f64)>> {
    let less = point.scaled(-1.0);
    if let Some((node, _)) = computed.iter().find(|(_, terms)| less.plus(terms).is_zero()) {
        return Some(vec![(*node, 1.0)]);
    }
    let part = |term: Terms| {
        let (powers, factor) = term.single()?;
        match *powers {
            [] => Some(None),
            [(node, 1)] if factor.low == 0.0 => Some(Some((node, factor.high))),
            _ => None,
        }
    };
    let parts: Option<Vec<_>> = point.singles().map(part).collect();
    Some(parts?.into_iter().flatten().collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ssa::{Def, Graph, Region, parse};

    /// A loop that carries v5 and v6; v0 to v2 are inputs.
    fn graph() -> Graph {
        let text = "graph active 3 inactive 0\nv3 = const 9.0\nv4 = iteration r0\nb0:\n  \
                    v9 = region r0 b1 bound 10 entries v5=v0 v6=v1\n  return v9\nb1:\n  \
                    v7 = add v5 v6\n  v8 = lt v4 v3\n  return v8 v7 v6 v7\n";
        parse(text).unwrap()
    }

    /// Whether numbers that begin so are known to be taken to `point` by a map of `map`.
    fn is_told(point: &[&Terms], firsts: &[&Terms], map: &[Node]) -> bool {
        let all = |terms: &[&Terms]| terms.iter().map(|&terms| terms.clone()).collect();
        let (point, firsts): (Vec<Terms>, Vec<Terms>) = (all(point), all(firsts));
        let mut graph = graph();
        let emitter = Emitter::new(&mut graph, None);
        let map = map.iter().copied().collect();
        let rows = vec![Affine::new(); firsts.len()];
        let toward = Toward::of(&emitter, &rows, &firsts, &point, &map);
        if let Some(toward) = &toward {
            let leaves: BTreeSet<Node> = point.iter().flat_map(Terms::nodes).collect();
            assert!(graph.nodes.keys().all(|node| toward.tells(node) == leaves.contains(&node)));
        }
        toward.is_some()
    }

    #[test]
    fn a_point_is_told_of_what_a_loop_carries_and_the_map_is_not_made_of() {
        let graph = graph();
        let region = graph.regions.keys().next().unwrap();
        let find = |def: Def| graph.nodes.iter().find(|(_, data)| data.def == def).unwrap().0;
        let entry = |region: Region, number| find(Def::Entry(region, number));
        let (z, other) = (Terms::node(entry(region, 0)), Terms::node(entry(region, 1)));
        let inputs = [0, 1, 2].map(|number| find(Def::Input(number)));
        let [x, y, rate] = inputs.map(Terms::node);
        let sum = x.scaled(-0.5).plus(&y).plus(&Terms::number(3.0.into()));
        let map = &inputs[2..];
        assert!(is_told(&[&x], &[&z], map));
        assert!(is_told(&[&sum], &[&z], map));
        // Of several numbers each is told of its own.
        assert!(is_told(&[&x, &y], &[&z, &other], map));
        assert!(is_told(&[&x, &Terms::default()], &[&z, &y], map));
        // Another loop's number may be the point.
        assert!(is_told(&[&other], &[&z], map));

        // So may what begins elsewhere go to it.
        assert!(is_told(&[&x], &[&y], map));
        assert!(is_told(&[&x], &[&z.scaled(2.0)], map));
        assert!(is_told(&[&x, &y], &[&z, &z], map));
        assert!(is_told(&[&x], &[&z], &[entry(region, 0)]));

        let refused: [(&[&Terms], &[&Terms]); 5] = [
            // The point: constant, a product, of what the map is made of, of the start.
            (&[&Terms::number(3.0.into())], &[&z]),
            (&[&x.times(&y).unwrap()], &[&z]),
            (&[&x.plus(&rate)], &[&z]),
            (&[&x.plus(&z)], &[&z]),
            // What another one begins with.
            (&[&x, &Terms::default()], &[&z, &x]),
        ];
        for (number, (point, firsts)) in refused.into_iter().enumerate() {
            assert!(!is_told(point, firsts, map), "{number}");
        }
    }
}
