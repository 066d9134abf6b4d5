//! Fusion: products that are only added or subtracted become `mul_add`.

use hashbrown::HashSet;

use super::circles::circles;
use super::dead::eliminate_dead_code;
use super::flow::Flow;
use super::fold::Folding;
use super::graph::{Def, End, Graph, Item, Node};
use super::nest::Nest;
use super::rebuild::rebuild;
use super::series::{Series, SeriesData};
use crate::entity::Array;
use crate::op::{Op, is_singular};

/// A graph with the same outputs as real numbers, rounded less often.
///
/// What decides something, such as the operands of a guard or of a square root,
/// is left as it is: another rounding could decide otherwise. So is the
/// difference of two products, which must vanish where they are equal, and that of
/// a quotient times a number and a constant: a/a is 1. The first two also hold
/// through φs, loops and series. So is a sum of several products of what a loop carries,
/// to which it leads again: columns of a matrix that sum to 1 keep what is equal. And so
/// are sums over the iterations of a loop of which one is subtracted from another, and those
/// of products with a common factor and opposite signs: what one of them adds the other may
/// take away again, as often as there are iterations.
///
/// Worth it only where the host multiplies and adds in one instruction.
///
/// # Examples
///
/// ```
/// use phigrad::ssa::{fuse, parse};
///
/// let text = "graph active 3 inactive 0\nb0:\n  v3 = mul v0 v1\n  v4 = add v3 v2\n  return v4\n";
/// let fused = fuse(&parse(text)?).to_string();
/// assert!(fused.contains("v3 = mul_add v0 v1 v2\n  return v3"));
/// # Ok::<(), phigrad::ssa::ParseError>(())
/// ```
pub fn fuse(graph: &Graph) -> Graph {
    let uses = count_uses(graph);
    let (flow, nest) = (Flow::of(graph), Nest::of(graph));
    let decisive = decisive_nodes(graph, &flow);
    let products = product_nodes(graph, &flow);
    let circles = circles(graph, &flow);
    let opposed = opposed_sums(graph, &uses);
    let (carried, subtracted) =
        (carried_products(graph, &circles), subtracted_sums(graph, &flow, &circles));
    let fused = rebuild(graph, Folding::Real, |rebuild, node| {
        let Def::Apply(op @ (Op::Add | Op::Sub), [a, b, _]) = graph.nodes[node].def else {
            return None;
        };
        let is_subtracted = circles[node].is_some_and(|circle| subtracted.contains(&circle));
        if decisive[node] || opposed[node] || is_subtracted {
            return None;
        }
        // The second operand first: sums grow to the left, so the product is
        // more often there.
        for (factor, other, subtracted) in [(b, a, op == Op::Sub), (a, b, false)] {
            let Some(product) = product(graph, &uses, factor) else { continue };
            // A loop that is around the sum alone would multiply again and again.
            let is_apart = nest.node_loop(factor) != nest.node_loop(node);
            let vanishes = graph.constant(other).is_some() && product.has_quotient(graph);
            let is_mixed = carried[factor] && carried[other];
            if is_apart || vanishes || is_mixed || may_cancel(graph, &products, op, [factor, other])
            {
                continue;
            }
            let negative = product.negated != subtracted;
            let (x, y) = (rebuild.copied(product.x), rebuild.copied(product.y));
            let x = if negative { rebuild.builder.apply(Op::Neg, &[x]) } else { x };
            let other_subtracted = op == Op::Sub && factor == a;
            let mut addend = rebuild.copied(other);
            if other_subtracted {
                addend = rebuild.builder.apply(Op::Neg, &[addend]);
            }
            return Some(rebuild.builder.apply(Op::MulAdd, &[x, y, addend]));
        }
        None
    });
    eliminate_dead_code(&fused)
}

/// Which nodes a condition or a singular primitive depends on.
pub(crate) fn decisive_nodes(graph: &Graph, flow: &Flow<'_>) -> Array<Node, bool> {
    decisive_nodes_but(graph, flow, |_, _| false)
}

/// The same, where some operands of singular primitives are known not to come near a
/// singularity, or that is of no matter.
pub(crate) fn decisive_nodes_but(
    graph: &Graph,
    flow: &Flow<'_>,
    is_regular: impl Fn(Op, Node) -> bool,
) -> Array<Node, bool> {
    let mut pending: Vec<Node> = Vec::new();
    for block in graph.blocks.values() {
        for item in &block.items {
            if let Item::Guard { condition, .. } = *item {
                pending.push(condition);
            }
        }
        if let End::Branch { condition, .. } = block.end {
            pending.push(condition);
        }
    }
    for region in graph.regions.keys() {
        let (decides, _) = graph.passed_before_phis(region);
        if decides > 0 {
            pending.extend(flow.passed(region, 0));
        }
    }
    for data in graph.nodes.values() {
        if let Def::Apply(op, _) = data.def {
            for (operand, &arg) in data.args().iter().enumerate() {
                let has_pole = op == Op::Powi && graph.constant(data.args()[1]) < Some(0.0);
                if (is_singular(op, operand) || has_pole) && !is_regular(op, arg) {
                    pending.push(arg);
                }
            }
        }
    }
    let mut decisive = Array::filled(false, graph.nodes.len());
    // A long series has as many elements.
    let mut seen = Array::filled(false, graph.series.len());
    while let Some(node) = pending.pop() {
        if core::mem::replace(&mut decisive[node], true) {
            continue;
        }
        match graph.nodes[node].def {
            Def::Element(access) => {
                let series = graph.accesses[access].series;
                if !core::mem::replace(&mut seen[series], true) {
                    pending.extend(flow.elements(series));
                }
            }
            _ => pending.extend(flow.sources(node)),
        }
    }
    decisive
}

/// Which nodes are products, possibly negated, or may be one by way of φs and series.
fn product_nodes(graph: &Graph, flow: &Flow<'_>) -> Array<Node, bool> {
    let mut products = Array::filled(false, graph.nodes.len());
    let mut changed = true;
    // Again, since a loop may pass a product on to its next iteration.
    while core::mem::take(&mut changed) {
        let is_product = |series| flow.elements(series).any(|value| products[value]);
        let elements: Array<Series, bool> = graph.series.keys().map(is_product).collect();
        for (node, data) in graph.nodes.iter() {
            let found = match data.def {
                Def::Apply(Op::Mul, _) => true,
                Def::Apply(Op::Neg, [inner, ..]) => products[inner],
                // Doubled without rounding.
                Def::Apply(Op::Add, [a, b, _]) if a == b => products[a],
                // A sum that begins with zero, or has no other term.
                Def::Apply(Op::Add, [a, b, _]) if graph.constant(a) == Some(0.0) => products[b],
                Def::Apply(Op::Add | Op::Sub, [a, b, _]) if graph.constant(b) == Some(0.0) => {
                    products[a]
                }
                Def::Phi(..) | Def::Entry(..) => {
                    !products[node] && flow.sources(node).iter().any(|&value| products[value])
                }
                Def::Element(access) => elements[graph.accesses[access].series],
                Def::Apply(..) | Def::Input(_) | Def::Const(_) | Def::Iteration(_) => false,
            };
            if found && !products[node] {
                products[node] = true;
                changed = true;
            }
        }
    }
    products
}

/// Which nodes are products of what a loop carries that lead to it again, or sums of
/// such products with anything.
fn carried_products(graph: &Graph, circles: &Array<Node, Option<u32>>) -> Array<Node, bool> {
    let mut carried = Array::filled(false, graph.nodes.len());
    // Operands come first.
    for (node, data) in graph.nodes.iter() {
        carried[node] = match data.def {
            Def::Apply(Op::Mul, [x, y, _]) => circles[node]
                .is_some_and(|circle| circles[x] == Some(circle) || circles[y] == Some(circle)),
            Def::Apply(Op::Neg, [inner, ..]) => carried[inner],
            Def::Apply(Op::Add | Op::Sub, [a, b, _]) => carried[a] || carried[b],
            _ => false,
        };
    }
    carried
}

/// The circles of what loops carry where the results of two are subtracted. Rounded alike,
/// what has been added to both leaves nothing.
fn subtracted_sums(
    graph: &Graph,
    flow: &Flow<'_>,
    circles: &Array<Node, Option<u32>>,
) -> HashSet<u32> {
    let circle = |node: Node| match graph.nodes[node].def {
        Def::Phi(..) => flow.sources(node).iter().find_map(|&passed| circles[passed]),
        _ => None,
    };
    let differences = graph.nodes.values().filter_map(|data| match data.def {
        Def::Apply(Op::Sub, [a, b, _]) => Some([circle(a)?, circle(b)?]),
        _ => None,
    });
    differences.flatten().collect()
}

/// Whether `a` and `b` are products that may cancel. Rounded alike, equal
/// products leave nothing; if one of them is fused, they leave its rounding error.
fn may_cancel(graph: &Graph, products: &Array<Node, bool>, op: Op, [a, b]: [Node; 2]) -> bool {
    let is_square =
        |node: Node| matches!(graph.nodes[node].def, Def::Apply(Op::Mul, [x, y, _]) if x == y);
    let sum_of_squares = op == Op::Add && is_square(a) && is_square(b);
    products[a] && products[b] && !sum_of_squares
}

struct Product {
    x: Node,
    y: Node,
    negated: bool,
}

impl Product {
    /// Whether a factor is a quotient, which is rounded: the rounding of the product is
    /// often what makes up for it.
    fn has_quotient(&self, graph: &Graph) -> bool {
        let is_quotient =
            |node: Node| matches!(graph.nodes[node].def, Def::Apply(Op::Div | Op::Recip, _));
        is_quotient(self.x) || is_quotient(self.y)
    }
}

/// Which nodes are sums to which products with a common factor are added one after the other,
/// one of them with the other sign.
fn opposed_sums(graph: &Graph, uses: &Array<Node, u32>) -> Array<Node, bool> {
    let mut opposed = Array::filled(false, graph.nodes.len());
    for node in graph.nodes.keys() {
        let Some((sum, last)) = summands(graph, uses, node) else { continue };
        let Some((_, before)) = summands(graph, uses, sum) else { continue };
        let has_common = [last.x, last.y].iter().any(|&x| x == before.x || x == before.y);
        if has_common && last.negated != before.negated {
            opposed[node] = true;
            opposed[sum] = true;
        }
    }
    opposed
}

/// The sum that `node` is of something and a product that nothing else uses.
fn summands(graph: &Graph, uses: &Array<Node, u32>, node: Node) -> Option<(Node, Product)> {
    let Def::Apply(op @ (Op::Add | Op::Sub), [a, b, _]) = graph.nodes[node].def else {
        return None;
    };
    if let Some(last) = product(graph, uses, b) {
        let negated = last.negated != (op == Op::Sub);
        return Some((a, Product { negated, ..last }));
    }
    let last = product(graph, uses, a).filter(|_| op == Op::Add)?;
    Some((b, last))
}

/// The product that `node` is, possibly negated, if nothing else uses it.
fn product(graph: &Graph, uses: &Array<Node, u32>, node: Node) -> Option<Product> {
    if uses[node] != 1 {
        return None;
    }
    match graph.nodes[node].def {
        Def::Apply(Op::Mul, [x, y, _]) => Some(Product { x, y, negated: false }),
        Def::Apply(Op::Neg, [inner, _, _]) => {
            let inner = product(graph, uses, inner)?;
            Some(Product { negated: !inner.negated, ..inner })
        }
        _ => None,
    }
}

fn count_uses(graph: &Graph) -> Array<Node, u32> {
    let mut uses = Array::filled(0, graph.nodes.len());
    for data in graph.nodes.values() {
        data.args().iter().for_each(|&arg| uses[arg] += 1);
    }
    for block in graph.blocks.values() {
        for item in &block.items {
            match *item {
                Item::Guard { condition: node, .. } | Item::Accumulate(_, node) => uses[node] += 1,
                Item::Node(_) | Item::Region(_) | Item::Fill(_) => {}
            }
        }
        match &block.end {
            End::Return(outputs) => outputs.iter().for_each(|&output| uses[output] += 1),
            End::Branch { condition, .. } => uses[*condition] += 1,
            End::Open => {}
        }
    }
    for region in graph.regions.keys() {
        graph.entries(region).iter().for_each(|entry| uses[entry.first] += 1);
    }
    graph.series.values().flat_map(SeriesData::nodes).for_each(|node| uses[node] += 1);
    uses
}

#[cfg(test)]
mod tests {
    use super::fuse;
    use crate::ssa::{Outcome, interpret, parse};

    fn fused(text: &str) -> bool {
        let graph = parse(&format!("graph active 3 inactive 0\n{text}"));
        graph.is_ok_and(|graph| fuse(&graph).to_string().contains("mul_add"))
    }

    #[test]
    fn products_of_what_a_loop_carries_are_added_as_they_are() {
        // a' = a·x + y + b·y, b' = b·y + x
        let pair = "v3 = const 0.0\nb0:\n  v12 v13 = region r0 b1 bound 9 entries v4=v0 v5=v1\n  \
                    v14 = add v12 v13\n  return v14\nb1:\n  v6 = mul v4 v0\n  v7 = mul v5 v1\n  \
                    v8 = add v6 v2\n  v9 = add v8 v7\n  v10 = mul v5 v1\n  v11 = add v10 v2\n  \
                    return v3 v9 v11 v9 v11\n";
        let count = |text: &str| {
            let graph = parse(&format!("graph active 3 inactive 0\n{text}"));
            graph.map(|graph| fuse(&graph).to_string().matches("mul_add").count()).ok()
        };
        // b does not come from a, so b·y may be added to it at once.
        assert_eq!(count(pair), Some(3));
        // Of a loop whose results are subtracted nothing is.
        assert_eq!(count(&pair.replace("add v12 v13", "sub v12 v13")), Some(0));
        // b' = a·y + x
        assert_eq!(count(&pair.replace("v10 = mul v5 v1", "v10 = mul v4 v1")), Some(2));
    }

    #[test]
    fn what_vanishes_is_not_fused() {
        // (a/b)·c - 1 and a·(1/a) - 1
        let less = "v3 = const -1.0\nb0:\n  v4 = div v0 v1\n  v5 = mul v4 v2\n  v6 = add v5 v3\n  return v6\n";
        assert!(!fused(less));
        assert!(!fused(&less.replace("div v0 v1", "recip v2")));
        assert!(fused(&less.replace("div v0 v1", "sin v0")));
        // a·b - c + (c - a·b), where a product is doubled.
        let doubled = "b0:\n  v3 = mul v0 v1\n  v4 = add v3 v3\n  v5 = mul v1 v2\n  v6 = add v5 v4\n  return v6\n";
        assert!(!fused(doubled));
        assert!(fused(&doubled.replace("add v3 v3", "add v3 v0")));
        // 0 + a·a - a·a
        let begun = "graph active 1 inactive 0\nv1 = const 0.0\nb0:\n  v2 = mul v0 v0\n  v3 = add \
                     v1 v2\n  v4 = mul v0 v0\n  v5 = sub v3 v4\n  return v5\n";
        let graph = parse(begun).unwrap();
        assert_eq!(interpret(&fuse(&graph), &[0.1]), Outcome::Values(vec![0.0]));
    }
}
