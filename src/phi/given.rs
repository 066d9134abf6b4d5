//! What a loop is given, and how large that may be so that nothing in it overflows on the way.

use std::collections::BTreeSet;

use hashbrown::HashMap;

use crate::op::Op;
use crate::ssa::{Block, Def, Flow, Graph, Node, Region, Scope, SeriesData};

/// Of what is less than two to this power a loop may add up many before that overflows.
const LARGE: f64 = 900.0;

/// The numbers that a loop computes with.
pub(super) struct Given {
    /// Inputs and what was computed before the loop; and functions of it which are computed in
    /// the loop, and are the same in all iterations.
    pub(super) nodes: BTreeSet<Node>,
    /// How large they may be.
    pub(super) limit: f64,
}

/// How large a product is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Size {
    /// How many numbers are multiplied that are given.
    degree: u32,
    /// The constants that they are multiplied by, as powers of two: the least one, and the
    /// largest.
    constants: (f64, f64),
}

impl Size {
    /// Of what is given.
    const ONE: Size = Size { degree: 1, constants: (0.0, 0.0) };

    fn constants(numbers: impl IntoIterator<Item = f64>) -> Size {
        let powers = numbers.into_iter().map(|number| number.abs().log2());
        let powers = powers.filter(|power| power.is_finite());
        let of_all = powers.fold((f64::INFINITY, f64::NEG_INFINITY), |(least, largest), power| {
            (least.min(power), largest.max(power))
        });
        Size { degree: 0, constants: if of_all.0 <= of_all.1 { of_all } else { (0.0, 0.0) } }
    }

    fn times(self, other: Size) -> Size {
        let constants =
            (self.constants.0 + other.constants.0, self.constants.1 + other.constants.1);
        Size { degree: self.degree.saturating_add(other.degree), constants }
    }

    fn inverse(self) -> Size {
        Size { constants: (-self.constants.1, -self.constants.0), ..self }
    }

    /// Of one or the other, or of their sum.
    fn or(self, other: Size) -> Size {
        let (a, b) = (self.constants, other.constants);
        Size { degree: self.degree.max(other.degree), constants: (a.0.min(b.0), a.1.max(b.1)) }
    }

    fn power(self, exponent: f64) -> Size {
        let (least, largest) = self.constants;
        let degree = (f64::from(self.degree) * exponent.abs()) as u32;
        let positive =
            Size { degree, constants: (least * exponent.abs(), largest * exponent.abs()) };
        if exponent < 0.0 { positive.inverse() } else { positive }
    }

    /// How large what is given may be.
    fn limit(self) -> f64 {
        let left = LARGE - self.constants.1.max(0.0);
        if self.degree == 0 { f64::INFINITY } else { (left / f64::from(self.degree)).exp2() }
    }
}

/// What `region`, a loop, is given of which its `results` are computed. The forms may not depend
/// on all of it: what an iteration adds may be taken away by another. Of data the forms ask
/// themselves.
pub(super) fn given(flow: &Flow<'_>, region: Region, results: &[Node]) -> Given {
    let graph = flow.graph();
    let scope = Scope::of(graph, region);
    let mut given = Given { nodes: BTreeSet::new(), limit: LARGE.exp2() };
    // What is open counts as one number: where a loop goes round, what it has come to.
    let mut sizes: HashMap<Node, Size> = HashMap::new();
    let mut fixed: HashMap<Node, bool> = HashMap::new();
    let first = results.iter().flat_map(|&result| flow.sources(result));
    let mut pending: Vec<(Node, bool)> = first.map(|node| (node, false)).collect();
    while let Some((node, is_ready)) = pending.pop() {
        let is_open = sizes.contains_key(&node);
        let (size, is_fixed) = match graph.nodes[node].def {
            Def::Const(bits) => (Size::constants([f64::from_bits(bits)]), true),
            Def::Iteration(counted) => {
                let bound = graph.regions[counted].cycle.as_ref().map_or(1, |cycle| cycle.bound);
                (Size::constants([1.0, f64::from(bound)]), false)
            }
            Def::Element(access) => match &graph.series[graph.accesses[access].series] {
                SeriesData::Constants(numbers) => {
                    (Size::constants(numbers.iter().map(|&bits| f64::from_bits(bits))), false)
                }
                _ => (Size::ONE, false),
            },
            _ if !scope.contains(node) => {
                given.nodes.insert(node);
                (Size::ONE, true)
            }
            Def::Apply(op, args) if is_ready => {
                let args = &args[..op.arity()];
                let is_fixed = args.iter().all(|arg| fixed[arg]);
                if is_fixed && may_be_large(graph, op, args) {
                    given.nodes.insert(node);
                    (Size::ONE, true)
                } else {
                    (applied(graph, op, args, &sizes), is_fixed)
                }
            }
            _ if is_ready => {
                let all = flow.sources(node).into_iter().map(|source| sizes[&source]);
                (all.reduce(Size::or).unwrap_or_default(), false)
            }
            _ if !is_open => {
                pending.push((node, true));
                pending.extend(flow.sources(node).into_iter().map(|source| (source, false)));
                (Size::ONE, false)
            }
            _ => continue,
        };
        sizes.insert(node, size);
        fixed.insert(node, is_fixed);
    }
    given.limit = sizes.into_values().map(Size::limit).fold(given.limit, f64::min);
    given
}

/// Whether `op` makes large numbers of others.
fn may_be_large(graph: &Graph, op: Op, args: &[Node]) -> bool {
    match op {
        Op::Powi => graph.constant(args[1]).is_none(),
        Op::Exp | Op::ExpM1 | Op::Exp2 | Op::Powf | Op::Sinh | Op::Cosh | Op::Tan => true,
        Op::Div | Op::Recip => graph.constant(args[args.len() - 1]).is_none(),
        _ => false,
    }
}

/// How large `op` of `args` is, whose `sizes` are known.
fn applied(graph: &Graph, op: Op, args: &[Node], sizes: &HashMap<Node, Size>) -> Size {
    let size = |number: usize| sizes[&args[number]];
    match (op, args.get(1).and_then(|&arg| graph.constant(arg))) {
        (Op::Powi, Some(exponent)) => size(0).power(exponent),
        (Op::Mul | Op::Powi, _) => size(0).times(size(1)),
        (Op::Div, _) => size(0).times(size(1).inverse()),
        (Op::Recip, _) => size(0).inverse(),
        (Op::MulAdd, _) => size(0).times(size(1)).or(size(2)),
        _ => (1..args.len()).map(size).fold(size(0), Size::or),
    }
}

/// A copy of `node`, which is the same in all iterations of a loop in `block`, before that.
pub(super) fn before(graph: &mut Graph, scope: &Scope, block: Block, node: Node) -> Node {
    let mut copies: HashMap<Node, Node> = HashMap::new();
    let mut pending = vec![(node, false)];
    while let Some((node, is_ready)) = pending.pop() {
        let data = &graph.nodes[node];
        match data.def {
            _ if copies.contains_key(&node) => {}
            Def::Apply(op, args) if scope.contains(node) => {
                let args = &args[..op.arity()];
                if is_ready {
                    let args: Vec<Node> = args.iter().map(|arg| copies[arg]).collect();
                    let copy = graph.push_apply(block, op, &args, data.place);
                    copies.insert(node, copy);
                } else {
                    pending.push((node, true));
                    pending.extend(args.iter().map(|&arg| (arg, false)));
                }
            }
            _ => _ = copies.insert(node, node),
        }
    }
    copies[&node]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entity::Entity;
    use crate::ssa::{ParseError, parse};

    /// What a loop of 10 iterations is given which adds up the last of these steps, of the
    /// inputs v0 and v1 and the iteration number v6.
    fn of_sum(steps: &[&str]) -> Result<(Vec<usize>, f64), ParseError> {
        let each = steps.iter().zip(8..).map(|(step, id)| format!("  v{id} = {step}\n"));
        let (each, last) = (each.collect::<String>(), 7 + steps.len());
        let [next, again, sum] = [1, 2, 3].map(|more| last + more);
        let graph = parse(&format!(
            "graph active 2 inactive 0\nv2 = const 9.0\nv3 = const 0.0\nv4 = const 102.0\n\
             v5 = const 1e200\nv6 = iteration r0\nb0:\n  \
             v{sum} = region r0 b1 bound 10 entries v7=v3\n  return v{sum}\nb1:\n{each}  \
             v{next} = add v7 v{last}\n  v{again} = lt v6 v2\n  \
             return v{again} v{next} v{next}\n"
        ))?;
        let all: Vec<Region> = graph.regions.keys().collect();
        assert_eq!(all.len(), 1);
        let results = graph.regions[all[0]].phis.clone();
        let Given { nodes, limit } = given(&Flow::of(&graph), all[0], &results);
        Ok((nodes.into_iter().map(Entity::index).collect(), limit))
    }

    #[test]
    fn what_is_multiplied_has_a_lower_limit() -> Result<(), ParseError> {
        let near = |limit: f64, power: f64| (limit.log2() - power).abs() < 0.01;
        let iterations = 10f64.log2();
        let (nodes, limit) = of_sum(&["mul v0 v6", "mul v0 v1", "mul v8 v9"])?;
        assert!(nodes == [0, 1] && near(limit, (LARGE - iterations) / 3.0), "{nodes:?} {limit}");
        let (nodes, limit) = of_sum(&["powi v0 v4"])?;
        assert!(nodes == [0] && near(limit, LARGE / 102.0), "{nodes:?} {limit}");
        let (nodes, limit) = of_sum(&["mul v0 v6", "mul v8 v5"])?;
        let constants = iterations + 1e200f64.log2();
        assert!(nodes == [0] && near(limit, LARGE - constants), "{nodes:?} {limit}");
        Ok(())
    }

    #[test]
    fn functions_of_what_is_given_are_given() -> Result<(), ParseError> {
        let (nodes, _) = of_sum(&["exp v0", "mul v8 v6"])?;
        assert_eq!(nodes, [0, 8]);
        let (nodes, _) = of_sum(&["mul v0 v6", "exp v8"])?;
        assert_eq!(nodes, [0]);
        Ok(())
    }
}
