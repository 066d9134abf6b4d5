//! Loop fusion by recomputation: a loop that reads saved values of another loop computes them
//! itself.

use hashbrown::HashMap;
use smallvec::SmallVec;

use crate::op::Op;
use crate::ssa::{
    AccessData, ArrayData, Def, Folding, Graph, Nest, Node, Rebuild, Region, eliminate_dead_code,
    rebuild,
};

/// The limit on the steps that are recomputed for one saved value.
const MOST_STEPS: usize = 16;

/// The limit on rounds, for loops that read one another in a chain.
const MOST_TIMES: usize = 8;

/// The graph with saved values recomputed where they are read, if they depend on no other
/// iteration and take few cheap steps; `None` if there are none.
///
/// A program that stores its residuals in a vector and then adds them up becomes one that adds
/// each of them at once. A loop whose values are not read any more is removed. Values keep their
/// bits; the adjoints of the loop's inputs are accumulated in another order.
///
/// # Examples
///
/// ```
/// use phigrad::internals::loops::fuse;
/// use phigrad::internals::ssa::parse;
///
/// // One loop saves 3·j·x for each j, another adds up the squares.
/// let text = "graph active 1 inactive 0\nv1 = const 9.0\nv2 = const 3.0\nv3 = const 0.0\n\
///             v4 = iteration r0\nv8 = iteration r1\na0 = saved v6\ni0 = a0 base 0 r1*1\nb0:\n  \
///             region r0 b1 bound 10\n  v13 = region r1 b2 bound 10 entries v9=v3\n  \
///             return v13\nb1:\n  v5 = mul v4 v2\n  v6 = mul v5 v0\n  v7 = lt v4 v1\n  \
///             return v7\nb2:\n  v10 = element i0\n  v11 = mul_add v10 v10 v9\n  \
///             v12 = lt v8 v1\n  return v12 v11 v11\n";
/// let graph = parse(text)?;
/// let fused = fuse(&graph).ok_or("nothing to fuse")?;
/// assert_eq!((graph.regions.len(), fused.regions.len()), (2, 1));
/// assert_eq!(fuse(&fused), None);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn fuse(graph: &Graph) -> Option<Graph> {
    let mut fused = fused_once(graph)?;
    // A recomputed value may itself read saved values of another loop.
    for _ in 1..MOST_TIMES {
        match fused_once(&fused) {
            Some(new) => fused = new,
            None => break,
        }
    }
    Some(fused)
}

/// One round of [`fuse`].
fn fused_once(graph: &Graph) -> Option<Graph> {
    let is_saved = |array: &ArrayData| matches!(array, ArrayData::Saved(_));
    if !graph.arrays.values().any(is_saved) {
        return None;
    }
    let (nest, mut changed) = (Nest::of(graph), false);
    let fused = rebuild(graph, Folding::Exact, |rebuild, node| {
        let Def::Element(access) = graph.nodes[node].def else { return None };
        let read = &graph.accesses[access];
        let (saved, region) = saved_node(graph, &nest, read)?;
        // In a loop nested deeper it would be recomputed more often than it was computed.
        let around = nest.loop_around(region);
        let reader = nest.node_loop(node);
        let is_next = reader == around || reader.is_some_and(|r| nest.loop_around(r) == around);
        let source = IterationRead { graph, nest: &nest, region, read };
        let steps = is_next.then(|| source.steps(saved))??;
        let made = source.compute(rebuild, &steps);
        changed |= made.is_some();
        made
    });
    changed.then(|| eliminate_dead_code(&fused))
}

/// The node whose saved value `read` is, and its loop.
fn saved_node(graph: &Graph, nest: &Nest, read: &AccessData) -> Option<(Node, Region)> {
    match graph.arrays[read.array] {
        ArrayData::Saved(saved) => Some((saved, nest.node_loop(saved)?)),
        _ => None,
    }
}

/// A read of one iteration of a loop.
struct IterationRead<'a> {
    graph: &'a Graph,
    nest: &'a Nest,
    region: Region,
    /// The access, whose index is the number of the iteration.
    read: &'a AccessData,
}

impl IterationRead<'_> {
    /// The steps to recompute `saved`, operands first; `None` if it is not possible or too many.
    fn steps(&self, saved: Node) -> Option<Vec<Node>> {
        let mut steps = Vec::new();
        let mut pending = vec![(saved, false)];
        while let Some((node, is_ready)) = pending.pop() {
            if steps.contains(&node) || !self.is_inside(node) {
                continue;
            }
            if is_ready {
                steps.push(node);
                continue;
            }
            if steps.len() + pending.len() > 2 * MOST_STEPS {
                return None;
            }
            pending.push((node, true));
            match self.graph.nodes[node].def {
                Def::Apply(op, args) if is_cheap(op) => {
                    pending.extend(args[..op.arity()].iter().map(|&arg| (arg, false)));
                }
                Def::Element(access) => _ = self.element(&self.graph.accesses[access])?,
                Def::Iteration(region) if region == self.region => {}
                _ => return None,
            }
        }
        (steps.len() <= MOST_STEPS).then_some(steps)
    }

    /// Recomputes `steps` for the iteration that is read.
    fn compute(&self, rebuild: &mut Rebuild<'_>, steps: &[Node]) -> Option<Node> {
        let mut made: HashMap<Node, Node> = HashMap::new();
        for &step in steps {
            let new = match self.graph.nodes[step].def {
                Def::Apply(op, args) => {
                    let known = |arg: &Node| made.get(arg).copied();
                    let args = args[..op.arity()].iter();
                    let args: SmallVec<[Node; 3]> = args
                        .map(|arg| known(arg).unwrap_or_else(|| rebuild.copied(*arg)))
                        .collect();
                    rebuild.builder.apply(op, &args)
                }
                Def::Element(access) => {
                    let access = self.element(&self.graph.accesses[access])?;
                    rebuild.element(&access)
                }
                _ => rebuild.index(self.read),
            };
            made.insert(step, new);
        }
        steps.last().and_then(|last| made.get(last)).copied()
    }

    /// Tests whether `node` is computed in the loop.
    fn is_inside(&self, node: Node) -> bool {
        let within = core::iter::successors(self.nest.node_loop(node), |&region| {
            self.nest.loop_around(region)
        });
        within.into_iter().any(|region| region == self.region)
    }

    /// The access that `access`, in the loop, is in the iteration that is read.
    fn element(&self, access: &AccessData) -> Option<AccessData> {
        if self.graph.arrays[access.array].is_written() || !access.changes.is_empty() {
            return None;
        }
        // Saved values of an inner loop are of the current iteration only.
        if self.graph.arrays[access.array].nodes().any(|node| self.is_inside(node)) {
            return None;
        }
        let mut composed = AccessData { strides: SmallVec::new(), ..access.clone() };
        let mut add = |region: Region, stride: i32| {
            match composed.strides.iter_mut().find(|(known, _)| *known == region) {
                Some((_, known)) => *known = known.checked_add(stride)?,
                None => composed.strides.push((region, stride)),
            }
            Some(())
        };
        let mut base = i64::from(access.base);
        for &(region, stride) in &access.strides {
            if region != self.region {
                add(region, stride)?;
                continue;
            }
            base += i64::from(stride) * i64::from(self.read.base);
            for &(outer, step) in &self.read.strides {
                add(outer, stride.checked_mul(step)?)?;
            }
        }
        composed.base = u32::try_from(base).ok()?;
        Some(composed)
    }
}

/// Tests whether `op` costs no more than to save a value and load it.
fn is_cheap(op: Op) -> bool {
    matches!(op, Op::Add | Op::Sub | Op::Mul | Op::MulAdd | Op::Neg | Op::Abs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ssa::{interpret, parse, verify};

    /// Loop r0 saves `saved` in each iteration; loop r1 adds up the values in reverse order.
    fn graph(saved: &str, body: &str) -> Graph {
        let text = format!(
            "graph active 1 inactive 0\nv1 = const 9.0\nv2 = const 3.0\nv3 = const 0.0\n\
             v4 = iteration r0\nv5 = iteration r1\na0 = saved {saved}\n\
             i0 = a0 base 9 r1*-1\nb0:\n  v11 = region r0 b1 bound 10 entries v6=v0\n  \
             v16 = region r1 b2 bound 10 entries v12=v3\n  return v16\nb1:\n{body}  \
             v10 = lt v4 v1\n  return v10 v9 v9\nb2:\n  v13 = element i0\n  \
             v14 = mul_add v13 v5 v12\n  v15 = lt v5 v1\n  return v15 v14 v14\n"
        );
        let graph = parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert_eq!(verify(&graph), Ok(()));
        graph
    }

    #[test]
    fn values_of_one_iteration_are_recomputed() {
        let graph = graph("v8", "  v7 = mul v4 v2\n  v8 = mul v7 v0\n  v9 = sin v6\n");
        let fused = fuse(&graph).unwrap();
        assert_eq!(verify(&fused), Ok(()));
        assert_eq!((graph.regions.len(), fused.regions.len()), (2, 1));
        for x in [0.0, 1.3, -2.5e10] {
            assert_eq!(interpret(&graph, &[x]), interpret(&fused, &[x]));
        }
    }

    #[test]
    fn carried_or_expensive_values_are_read() {
        let carried = "  v7 = mul v6 v2\n  v8 = mul v7 v0\n  v9 = sin v6\n";
        let function = "  v7 = sin v4\n  v8 = mul v7 v0\n  v9 = sin v6\n";
        for body in [carried, function] {
            let graph = graph("v8", body);
            assert_eq!(fuse(&graph), None);
        }
        assert_eq!(fuse(&graph("v6", carried)), None);
    }
}
