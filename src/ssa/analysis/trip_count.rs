//! Trip counts that are known before a call: constants, or affine functions of the iteration numbers
//! of the loops around, as in a triangle.

use smallvec::SmallVec;

use crate::op::Op;
use crate::ssa::arrays::AccessData;
use crate::ssa::graph::{Def, Graph, Node, Region};

/// `constant` plus, for each loop, a multiple of its iteration number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AffineIndex {
    pub(crate) constant: i128,
    /// Without multiples of zero.
    pub(crate) terms: SmallVec<[(Region, i128); 2]>,
    /// With `k` an iteration number, multiples of `k (k − 1) / 2`: of accesses alone.
    changes: SmallVec<[(Region, i128); 1]>,
}

impl AffineIndex {
    fn constant(constant: i128) -> AffineIndex {
        AffineIndex { constant, terms: SmallVec::new(), changes: SmallVec::new() }
    }

    /// The index of `access`.
    pub(crate) fn of(access: &AccessData) -> AffineIndex {
        let terms = access.strides.iter().filter(|by| by.1 != 0);
        let terms = terms.map(|&(region, stride)| (region, i128::from(stride))).collect();
        let changes = access.changes.iter().map(|&(region, by)| (region, i128::from(by)));
        AffineIndex { constant: i128::from(access.base), terms, changes: changes.collect() }
    }

    /// Adds `factor` times `other`.
    fn add(&mut self, factor: i128, other: &AffineIndex) {
        self.constant += factor * other.constant;
        for &(region, multiple) in &other.terms {
            match self.terms.iter_mut().find(|term| term.0 == region) {
                Some(term) => term.1 += factor * multiple,
                None => self.terms.push((region, factor * multiple)),
            }
        }
        self.terms.retain(|term| term.1 != 0);
    }

    /// The value of `node`, if it is such a function of integers.
    fn of_node(graph: &Graph, node: Node) -> Option<AffineIndex> {
        /// The largest constant, so that sums and products are exact.
        const MOST: f64 = (1u64 << 31) as f64;
        let is_index = |number: &f64| number.fract() == 0.0 && number.abs() <= MOST;
        match graph.nodes[node].def {
            Def::Const(_) => {
                let number = graph.constant(node).filter(is_index)?;
                Some(AffineIndex::constant(number as i128))
            }
            Def::Iteration(region) => {
                let terms = [(region, 1)].into_iter().collect();
                Some(AffineIndex { terms, ..AffineIndex::constant(0) })
            }
            Def::Apply(op, args) => {
                let mut args = args[..op.arity()].iter().map(|&arg| Self::of_node(graph, arg));
                let mut next = || args.next()?;
                let mut first = next()?;
                match op {
                    Op::Add => first.add(1, &next()?),
                    Op::Sub => first.add(-1, &next()?),
                    Op::Neg => first.scale(-1),
                    Op::Mul => first = first.times(next()?)?,
                    Op::MulAdd => {
                        first = first.times(next()?)?;
                        first.add(1, &next()?);
                    }
                    _ => return None,
                }
                Some(first).filter(|index| index.is_exact())
            }
            _ => None,
        }
    }

    /// The product, if one of both is a constant.
    fn times(mut self, mut other: AffineIndex) -> Option<AffineIndex> {
        if !other.terms.is_empty() {
            core::mem::swap(&mut self, &mut other);
        }
        self.scale(other.constant);
        other.terms.is_empty().then_some(self)
    }

    fn scale(&mut self, factor: i128) {
        self.constant *= factor;
        self.terms.iter_mut().chain(&mut self.changes).for_each(|term| term.1 *= factor);
        self.terms.retain(|term| term.1 != 0);
    }

    /// Tests whether it is computed without rounding: iteration numbers have 32 bits, and the sum of
    /// so few terms has less than 53.
    fn is_exact(&self) -> bool {
        const MOST: i128 = 1 << 50;
        const MOST_MULTIPLE: i128 = 1 << 18;
        let is_small = |term: &(Region, i128)| term.1.abs() <= MOST_MULTIPLE;
        self.constant.abs() <= MOST && self.terms.len() <= 4 && self.terms.iter().all(is_small)
    }

    /// The smallest and the largest value over all iterations of its loops.
    pub(crate) fn range(&self, graph: &Graph) -> (i128, i128) {
        self.range_within(graph, MAX_DEPTH)
    }

    fn range_within(&self, graph: &Graph, depth: u32) -> (i128, i128) {
        let mut negated = self.clone();
        negated.scale(-1);
        (-negated.most(graph, depth), self.clone().most(graph, depth))
    }

    /// The largest value. The last iteration of an inner loop is a function of those of the loops
    /// around it, which have smaller ids, so inner loops are eliminated first.
    fn most(mut self, graph: &Graph, depth: u32) -> i128 {
        let inner =
            |index: &AffineIndex| index.terms.iter().chain(&index.changes).map(|t| t.0).max();
        while let Some(region) = inner(&self) {
            let multiple = remove(&mut self.terms, region).unwrap_or(0);
            let change = remove(&mut self.changes, region).unwrap_or(0);
            let bound = i128::from(graph.bound(region).saturating_sub(1));
            if change != 0 {
                // A parabola: its largest value is at an end, or next to its vertex.
                let vertex = (change - 2 * multiple).div_euclid(2 * change);
                let numbers = [0, bound, vertex.clamp(0, bound), (vertex + 1).clamp(0, bound)];
                let value = |k: i128| multiple * k + change * (k * (k - 1) / 2);
                self.constant += numbers.into_iter().map(value).max().unwrap_or(0);
            } else if multiple > 0 {
                match last_iteration_within(graph, region, depth) {
                    Some(last) => self.add(multiple, &last),
                    None => self.constant += multiple * bound,
                }
            }
        }
        self.constant
    }
}

/// Removes the part of `region`.
fn remove<A: smallvec::Array<Item = (Region, i128)>>(
    parts: &mut SmallVec<A>,
    region: Region,
) -> Option<i128> {
    let at = parts.iter().position(|part| part.0 == region)?;
    Some(parts.swap_remove(at).1)
}

/// The largest depth of loops whose trip counts depend on one another; the bounds serve for others.
const MAX_DEPTH: u32 = 4;

/// The number of the last iteration of `region`, a loop, if that is known before a call: all its
/// leaves compare the iteration number with the same affine function, which is nowhere negative or
/// out of the bound.
pub(crate) fn last_iteration(graph: &Graph, region: Region) -> Option<AffineIndex> {
    last_iteration_within(graph, region, MAX_DEPTH)
}

fn last_iteration_within(graph: &Graph, region: Region, depth: u32) -> Option<AffineIndex> {
    let depth = depth.checked_sub(1)?;
    let bound = i128::from(graph.regions[region].cycle.as_ref()?.bound);
    let mut last = None;
    for leaf in graph.leaves(graph.regions[region].root) {
        let again = graph.passed(region, leaf)?.again?;
        let Def::Apply(Op::Lt, [number, most, _]) = graph.nodes[again].def else { return None };
        if graph.nodes[number].def != Def::Iteration(region) {
            return None;
        }
        let most = AffineIndex::of_node(graph, most)?;
        if most.terms.iter().any(|term| term.0 >= region)
            || last.replace(most.clone()).is_some_and(|known| known != most)
        {
            return None;
        }
    }
    let last = last?;
    let (least, most) = last.range_within(graph, depth);
    (least >= 0 && most < bound).then_some(last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ssa::parse;

    /// for i in 0..4 { for j in 0..2i + 3 { x[…] } }
    fn triangle() -> Graph {
        let text = "graph active 40 inactive 0 sparse\nv0 = const 3.0\nv1 = const 2.0\nv2 = const 0.0\n\
                    v3 = iteration r0\nv7 = iteration r1\nb0:\n  v13 = region r0 b1 bound 4 \
                    entries v4=v2\n  return v13\nb1:\n  v5 = mul v1 v3\n  v6 = add v5 v1\n  \
                    v11 = region r1 b2 bound 9 entries v8=v4\n  v12 = lt v3 v0\n  \
                    return v12 v11 v11\nb2:\n  v9 = add v8 v7\n  v10 = lt v7 v6\n  \
                    return v10 v9 v9\n";
        parse(text).unwrap()
    }

    #[test]
    fn the_last_iteration_of_an_inner_loop_depends_on_the_outer_one() {
        let graph = triangle();
        let [outer, inner] = [0, 1].map(|at| graph.regions.keys().nth(at).unwrap());
        assert_eq!(last_iteration(&graph, outer), Some(AffineIndex::constant(3)));
        let terms = [(outer, 2)].into_iter().collect();
        let last = AffineIndex { terms, ..AffineIndex::constant(2) };
        assert_eq!(last_iteration(&graph, inner), Some(last));
    }

    /// The verifier asks for ranges before it knows that iteration numbers are visible.
    #[test]
    fn loops_that_count_each_other_are_refused() {
        let text = triangle().to_string().replace("v12 = lt v3 v0", "v12 = lt v3 v7");
        let error = parse(&text).unwrap_err();
        assert!(error.to_string().contains("v12 uses v7, not visible here"), "{error}");
    }

    #[test]
    fn the_range_of_an_index_is_that_of_a_triangle() {
        let graph = triangle();
        let [outer, inner] = [0, 1].map(|at| graph.regions.keys().nth(at).unwrap());
        let range = |constant, i, j| {
            let terms = [(outer, i), (inner, j)].into_iter().collect();
            AffineIndex { terms, ..AffineIndex::constant(constant) }.range(&graph)
        };
        assert_eq!(range(5, 1, 0), (5, 8));
        assert_eq!(range(0, 0, 1), (0, 8));
        // 2i - j, from -2 for j = 2i + 2 to 6 for i = 3, j = 0.
        assert_eq!(range(0, 2, -1), (-2, 6));
        assert_eq!(range(0, -2, 1), (-6, 2));
        assert_eq!(range(0, 1, 1), (0, 11));
    }
}
