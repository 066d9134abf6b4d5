//! Certificates: a graph and what was made of it come to the same.
//!
//! It shares nothing with the rest of φ-calculus: both graphs are run by the
//! interpreter. Whole graphs are compared (`agree`), and each closed form by itself with
//! its loop, which is cut out for that (`disproved`): a whole graph may not reach a loop,
//! or make nothing of what comes out of it.

mod cut;
#[cfg(test)]
mod tests;

use cut::{Cut, Point, cut};

use super::replacement::Replacement;
use crate::op::Op;
use crate::ssa::{
    Block, Def, End, Graph, Item, Node, Outcome, Region, in_order, interpret, most_steps,
    without_tangents,
};

/// Where graphs are compared: how large the inputs are, one point for each.
const SIZES: [f64; 6] = [1.0, 0.05, 1e-3, 3.0, 40.0, 1e4];

/// Beyond so many steps in all, graphs are compared at fewer points, but at two at least.
const MOST_STEPS: u64 = 1 << 20;

/// How far results may be apart, relative to the largest.
const TOLERANCE: f64 = 1e-6;

/// Whether two graphs of the same inputs come to the same, but for rounding, at
/// some points, of which there are fewer if a run takes millions of steps. Guards do not
/// stop them, so that all of each is compared.
///
/// # Examples
///
/// ```
/// use phigrad::phi::agree;
/// use phigrad::ssa::parse;
///
/// let square = parse("graph active 1 inactive 0\nb0:\n  v1 = mul v0 v0\n  return v1\n")?;
/// let sum = parse("graph active 1 inactive 0\nb0:\n  v1 = add v0 v0\n  return v1\n")?;
/// assert!(agree(&square, &square) && !agree(&square, &sum));
/// # Ok::<(), phigrad::ssa::ParseError>(())
/// ```
pub fn agree(before: &Graph, after: &Graph) -> bool {
    // To compare must not take longer than all else.
    let points = MOST_STEPS / most_steps(before, |_| 1).max(1);
    agree_where(before, after, &SIZES[..(points as usize).clamp(2, SIZES.len())])
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

/// Whether what the graph comes to is finite at one of these points.
fn is_finite_somewhere(graph: &Graph, sizes: &[f64]) -> bool {
    let graph = without_guards(graph);
    points(graph.active + graph.inactive, sizes).any(|point| {
        matches!(interpret(&graph, &point),
            Outcome::Values(values) if values.iter().all(|value| value.is_finite()))
    })
}

/// How far two results may be apart, relative to the largest number that was carried: both
/// are what rounding leaves where all cancels.
const ROUNDING: f64 = 1e-12;

/// A loop of `before` that has a closed form in `after` which comes to something else, or
/// to nothing that is finite anywhere.
/// With `stays` the loops are those of `after`, from which more may come out.
pub(super) fn disproved(before: &Graph, after: &Replacement, stays: bool) -> Option<Region> {
    before.regions.keys().find(|&region| {
        let phis = replaced(before, after, region);
        let is_proven = || {
            let mut compared = vec![false; phis.len()];
            let mut most = SIZES.len() + 1;
            let bound = before.regions[region].cycle.as_ref().map_or(1, |cycle| cycle.bound);
            for point in points_of_cuts(bound) {
                let cut = cut(before, after, region, stays, &phis, point);
                let Some(cut) = cut else { return true };
                let few = MOST_STEPS / most_steps(&cut.graph, |_| 1).max(1);
                most = most.min((few as usize).max(2));
                if point.number as usize >= most {
                    break;
                }
                if !holds(&cut.graph, &mut compared) {
                    return false;
                }
            }
            compared.into_iter().all(|compared| compared)
        };
        before.regions[region].cycle.is_some() && !phis.is_empty() && !is_proven()
    })
}

/// The φs of `region` that something else stands for.
fn replaced(before: &Graph, after: &Replacement, region: Region) -> Vec<Node> {
    let phis = before.regions[region].phis.iter().copied();
    phis.filter(|&phi| after.resolved(phi) != phi).collect()
}

/// Where a loop of at most so many iterations is compared: first near one, where powers
/// neither vanish nor overflow on the way.
fn points_of_cuts(bound: u32) -> impl Iterator<Item = Point> {
    let near_one = (1.0, 4.0 / f64::from(bound.max(4)));
    let points = [near_one].into_iter().chain(SIZES.map(|size| (0.0, size)));
    points.zip(0..).map(|((near, size), number)| Point { number, near, size })
}

/// Whether what was cut out comes to the same as what stands for it; notes of which values
/// both were finite.
fn holds(graph: &Graph, compared: &mut [bool]) -> bool {
    let Outcome::Values(values) = interpret(&without_tangents(graph), &[]) else { return true };
    let (values, carried) = values.split_at(2 * compared.len());
    let (loops, forms) = values.split_at(compared.len());
    let largest = carried.first().copied().filter(|size| size.is_finite()).unwrap_or(0.0);
    compared.iter_mut().zip(loops.iter().zip(forms)).all(|(compared, (a, b))| {
        *compared |= a.is_finite() && b.is_finite();
        is_alike(*a, *b, ROUNDING * largest)
    })
}

fn agree_where(before: &Graph, after: &Graph, sizes: &[f64]) -> bool {
    if (before.active, before.inactive) != (after.active, after.inactive) {
        return false;
    }
    let [before, after] = [before, after].map(|graph| without_tangents(&without_guards(graph)));
    points(before.active + before.inactive, sizes).all(|point| {
        match (interpret(&before, &point), interpret(&after, &point)) {
            (Outcome::Values(a), Outcome::Values(b)) => alike(&a, &b),
            (Outcome::Unseen(_), Outcome::Unseen(_)) => true,
            _ => false,
        }
    })
}

/// The numbers of iterations after which loops are made to end, besides the largest.
const TRIPS: [u32; 5] = [0, 1, 2, 3, 17];

/// Whether closed forms behind the loop `region` come to what it comes to itself, with the
/// loop made to end after some numbers of iterations in each of `ends`, whatever its
/// conditions say: whole graphs, in which it is reached, whatever decides that, and each
/// form by itself. At each end all is finite somewhere, or nothing would have been
/// compared.
pub(super) fn agree_at_ends(
    before: &Graph,
    after: &Replacement,
    region: Region,
    ends: &[Block],
) -> bool {
    let Some(new) = after.ordered() else { return false };
    let most = before.regions[region].cycle.as_ref().map_or(0, |cycle| cycle.bound - 1);
    let trips = TRIPS.iter().copied().filter(|&trips| trips < most).chain([most]);
    let phis = replaced(before, after, region);
    let cuts = points_of_cuts(most + 1).take(2);
    let cuts = cuts.filter_map(|point| cut(before, after, region, true, &phis, point));
    let cuts: Vec<Cut> = cuts.collect();
    ends.iter().all(|&end| {
        let mut compared = false;
        let mut forms = vec![cuts.is_empty(); phis.len()];
        let agree = trips.clone().all(|trips| {
            let made = [before, &new].map(|graph| ended(graph, region, end, trips));
            let [Some(before), Some(after)] = &made else { return false };
            compared |= is_finite_somewhere(before, &SIZES[..2]);
            let agree = agree_where(before, after, &SIZES[..2]);
            agree
                && cuts.iter().all(|cut| {
                    let end = cut.blocks.get(&end).copied();
                    let graph = end.and_then(|end| ended(&cut.graph, cut.region, end, trips));
                    graph.is_some_and(|graph| holds(&graph, &mut forms))
                })
        });
        agree && compared && forms.into_iter().all(|compared| compared)
    })
}

/// The graph with `region` made to end in the block `end` of iteration number `trips`.
fn ended(graph: &Graph, region: Region, end: Block, trips: u32) -> Option<Graph> {
    let mut graph = graph.clone();
    let root = graph.regions[region].root;
    let number = graph.nodes.iter().find(|(_, data)| data.def == Def::Iteration(region));
    let number = number.map(|(node, _)| node);
    let number = number.unwrap_or_else(|| graph.push_iteration(region));
    let [no, yes] = [0.0, 1.0f64].map(|value| graph.push_const(value.to_bits()));
    let trips = graph.push_const(f64::from(trips).to_bits());
    let [goes_on, is_over] = [Op::Lt, Op::Ge].map(|op| {
        let node = graph.push_apply(root, op, &[number, trips], None);
        graph.blocks[root].items.pop();
        node
    });
    graph.blocks[root].items.splice(0..0, [Item::Node(goes_on), Item::Node(is_over)]);
    let again = |graph: &Graph, leaf: Block| match &graph.blocks[leaf].end {
        End::Return(values) => values.first().copied(),
        End::Branch { .. } | End::Open => None,
    };
    let constant = |graph: &Graph, node: Option<Node>| node.and_then(|node| graph.constant(node));
    let leaves = graph.leaves(root);
    let on =
        leaves.iter().copied().find(|&leaf| constant(&graph, again(&graph, leaf)) != Some(0.0))?;
    let (to_end, to_next) = (sides(&graph, end), sides(&graph, on));
    for leaf in leaves {
        if let End::Return(values) = &mut graph.blocks[leaf].end {
            values[0] = if leaf == on { goes_on } else { no };
        }
    }
    for &(block, side) in to_end.iter().chain(&to_next) {
        let side_of = |way: &[(Block, bool)]| {
            way.iter().find(|(other, _)| *other == block).map(|&(_, side)| side)
        };
        let decision = match (side_of(&to_end), side_of(&to_next)) {
            (Some(true), Some(false)) => is_over,
            (Some(false), Some(true)) => goes_on,
            _ if side => yes,
            _ => no,
        };
        if let End::Branch { condition, .. } = &mut graph.blocks[block].end {
            *condition = decision;
        }
    }
    // And all that is around it, so that it is reached.
    let parents = graph.parents();
    let mut below = root;
    while let Some(above) = parents[below] {
        if let End::Branch { condition, then, .. } = &mut graph.blocks[above].end
            && [*then, below].contains(&below)
            && graph.regions.values().all(|region| region.root != below)
        {
            *condition = if *then == below { yes } else { no };
        }
        below = above;
    }
    in_order(&graph)
}

/// The branches above `block` in its tree, each with the side on which it is.
fn sides(graph: &Graph, block: Block) -> Vec<(Block, bool)> {
    let parents = graph.parents();
    let (mut sides, mut below) = (Vec::new(), block);
    while let Some(above) = parents[below] {
        let End::Branch { then, otherwise, .. } = graph.blocks[above].end else { break };
        if ![then, otherwise].contains(&below) {
            break;
        }
        sides.push((above, then == below));
        below = above;
    }
    sides
}

fn alike(a: &[f64], b: &[f64]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(&a, &b)| is_alike(a, b, 0.0))
}

/// Whether two numbers are the same but for rounding, which may come to `rounding`.
fn is_alike(a: f64, b: f64, rounding: f64) -> bool {
    // A result that is not finite is computed again on the tape.
    !a.is_finite()
        || !b.is_finite()
        || (a - b).abs() <= (TOLERANCE * a.abs().max(b.abs()).max(1e-9)).max(rounding)
}

/// The graph without its guards: what it would come to if they held.
///
/// # Examples
///
/// ```
/// use phigrad::phi::without_guards;
/// use phigrad::ssa::{Outcome, interpret, parse};
///
/// let graph = parse("graph active 1 inactive 0\nb0:\n  guard v0\n  return v0\n")?;
/// assert_eq!(interpret(&without_guards(&graph), &[0.0]), Outcome::Values(vec![0.0]));
/// # Ok::<(), phigrad::ssa::ParseError>(())
/// ```
pub fn without_guards(graph: &Graph) -> Graph {
    let mut graph = graph.clone();
    let blocks: Vec<_> = graph.blocks.keys().collect();
    for block in blocks {
        graph.blocks[block].items.retain(|item| !matches!(item, Item::Guard { .. }));
    }
    graph
}
