//! Loops that only add up or multiply, and how often loops are gone through.

use crate::op::Op;
use crate::ssa::{Block, Def, End, Graph, Item, Node, Region};

/// A loop of more sums than this is told as a loop.
const MOST_SUMS: usize = 8;

/// What a φ of a loop is, if the loop only adds up or multiplies.
pub(super) struct Summed {
    pub(super) product: bool,
    pub(super) count: u32,
    pub(super) first: Node,
    /// What each iteration adds, or subtracts; or multiplies, or divides.
    pub(super) parts: Vec<(bool, Node)>,
    /// The steps that do so, with the entry φ.
    pub(super) spine: Vec<Node>,
}

/// How often the loop of `region` is gone through, by the first of the `passed` values.
pub(super) fn fixed_count(graph: &Graph, region: Region, again: Node) -> Option<u32> {
    match graph.nodes[again].def {
        Def::Apply(Op::Lt, args) if graph.nodes[args[0]].def == Def::Iteration(region) => {
            let last = graph.constant(args[1])?;
            let fits = last >= 0.0 && last < f64::from(u32::MAX);
            fits.then(|| last.ceil() as u32 + 1)
        }
        _ => None,
    }
}

/// The φs of `region`, if all of it is sums and products.
pub(super) fn sums_of(graph: &Graph, region: Region) -> Option<Vec<Summed>> {
    let data = &graph.regions[region];
    let cycle = data.cycle.as_ref().filter(|_| data.replays.is_none())?;
    let End::Return(passed) = &graph.blocks[data.root].end else { return None };
    let count = fixed_count(graph, region, *passed.first()?)?;
    if cycle.entries.len() > MOST_SUMS {
        return None;
    }
    let mut all = Vec::new();
    for (number, entry) in cycle.entries.iter().enumerate() {
        let next = *passed.get(1 + number)?;
        let Chain { product, parts, spine } = chain(graph, data.root, next, entry.phi)?;
        all.push((next, Summed { product, count, first: entry.first, parts, spine }));
    }
    // No step on the way from an entry φ may be used for anything else.
    let inside: Vec<Node> = all.iter().flat_map(|(_, sum)| sum.spine.iter().copied()).collect();
    let mut others = graph.blocks[data.root].items.iter().filter_map(|item| match item {
        Item::Node(node) if !inside.contains(node) => Some(*node),
        _ => None,
    });
    if others.any(|node| graph.nodes[node].args().iter().any(|arg| inside.contains(arg)))
        || graph.regions_of(data.root).next().is_some()
        || all.iter().any(|(_, sum)| sum.parts.iter().any(|(_, part)| inside.contains(part)))
    {
        return None;
    }
    let phis = passed[1 + cycle.entries.len()..].iter();
    phis.map(|value| {
        let (_, sum) = all.iter().find(|(next, _)| next == value)?;
        Some(Summed { parts: sum.parts.clone(), spine: sum.spine.clone(), ..*sum })
    })
    .collect()
}

/// Sums only, or products only; see [`Summed`].
struct Chain {
    product: bool,
    parts: Vec<(bool, Node)>,
    spine: Vec<Node>,
}

/// The way from an entry φ to what it is next.
fn chain(graph: &Graph, block: Block, next: Node, entry: Node) -> Option<Chain> {
    const LONGEST: usize = 8;
    let (mut at, mut product) = (next, None);
    let (mut parts, mut spine) = (Vec::new(), Vec::new());
    while at != entry {
        let Def::Apply(op, args) = graph.nodes[at].def else { return None };
        let multiplies = match op {
            Op::Add | Op::Sub => false,
            Op::Mul | Op::Div => true,
            _ => return None,
        };
        if product.is_some_and(|product| product != multiplies) || spine.len() > LONGEST {
            return None;
        }
        product = Some(multiplies);
        spine.push(at);
        let leads = |node: Node| leads_to(graph, node, entry, multiplies, LONGEST);
        let inverse = matches!(op, Op::Sub | Op::Div);
        let (on, off) = match (leads(args[0]), leads(args[1])) {
            (true, false) => (args[0], args[1]),
            (false, true) if !inverse => (args[1], args[0]),
            _ => return None,
        };
        parts.push((inverse, off));
        at = on;
    }
    spine.push(entry);
    parts.reverse();
    let in_block =
        |node: &Node| *node == entry || graph.blocks[block].items.contains(&Item::Node(*node));
    let product = product.filter(|_| spine.iter().all(in_block))?;
    Some(Chain { product, parts, spine })
}

/// Whether `entry` is `node`, or is added to others, or multiplied, to make it.
fn leads_to(graph: &Graph, node: Node, entry: Node, product: bool, steps: usize) -> bool {
    if node == entry {
        return true;
    }
    let Some(steps) = steps.checked_sub(1) else { return false };
    match graph.nodes[node].def {
        Def::Apply(op, args) => match (op, product) {
            (Op::Add, false) | (Op::Mul, true) => {
                args[..2].iter().any(|&arg| leads_to(graph, arg, entry, product, steps))
            }
            (Op::Sub, false) | (Op::Div, true) => leads_to(graph, args[0], entry, product, steps),
            _ => false,
        },
        _ => false,
    }
}
