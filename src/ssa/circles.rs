//! Circles: what loops carry, together with what is computed on the way from one
//! iteration to the next.

use smallvec::{SmallVec, smallvec};

use super::flow::Flow;
use super::graph::{Def, Graph, Node};
use super::series::Series;
use crate::entity::{Array, Entity};

/// What values come from, by index: nodes, and behind them series. A long series is a
/// point of its own, so that the work is in proportion to the graph.
type Sources = SmallVec<[usize; 4]>;

/// A place of the walk along the flow.
struct Place {
    point: usize,
    sources: Sources,
    /// How many of the sources have been followed.
    followed: usize,
}

/// What is known in the walk.
struct Walk {
    /// When each point was seen first.
    order: Vec<Option<u32>>,
    /// The first point that is reached from each, among those that are open.
    lowest: Vec<u32>,
    /// The points whose circle is not complete.
    open: Vec<usize>,
    is_open: Vec<bool>,
}

/// For each node of `graph` the circle that it is in, by a number, if its value comes from
/// itself in some iterations of a loop. Found by Tarjan's algorithm: nodes that come from
/// each other have one number.
pub(super) fn circles(graph: &Graph, flow: &Flow<'_>) -> Array<Node, Option<u32>> {
    let nodes = graph.nodes.len();
    let points = nodes + graph.series.len();
    let mut circles = Array::filled(None, nodes);
    let mut walk = Walk {
        order: vec![None; points],
        lowest: vec![0; points],
        open: Vec::new(),
        is_open: vec![false; points],
    };
    let (mut seen, mut count) = (0, 0);
    for start in 0..points {
        if walk.order[start].is_some() {
            continue;
        }
        let mut way = vec![walk.enter(graph, flow, start, &mut seen)];
        while let Some(place) = way.last_mut() {
            let point = place.point;
            if let Some(&next) = place.sources.get(place.followed) {
                place.followed += 1;
                match walk.order[next] {
                    None => way.push(walk.enter(graph, flow, next, &mut seen)),
                    Some(order) if walk.is_open[next] => walk.reach(point, order),
                    Some(_) => {}
                }
                continue;
            }
            let comes_from_itself = place.sources.contains(&point);
            way.pop();
            if let Some(user) = way.last() {
                walk.reach(user.point, walk.lowest[point]);
            }
            if walk.order[point] == Some(walk.lowest[point]) {
                let members = walk.closed(point);
                if comes_from_itself || members.len() > 1 {
                    let members = members.into_iter().filter(|&member| member < nodes);
                    members.for_each(|member| circles[Node::from_index(member)] = Some(count));
                    count += 1;
                }
            }
        }
    }
    circles
}

impl Walk {
    fn enter(&mut self, graph: &Graph, flow: &Flow<'_>, point: usize, seen: &mut u32) -> Place {
        self.order[point] = Some(*seen);
        self.lowest[point] = *seen;
        *seen += 1;
        self.open.push(point);
        self.is_open[point] = true;
        Place { point, sources: sources(graph, flow, point), followed: 0 }
    }

    /// Learns that `point` comes from what was seen as number `order`.
    fn reach(&mut self, point: usize, order: u32) {
        self.lowest[point] = self.lowest[point].min(order);
    }

    /// The points that are complete with `first`, which was seen before the others.
    fn closed(&mut self, first: usize) -> Vec<usize> {
        let at = self.open.iter().rposition(|&point| point == first).unwrap_or(0);
        let members = self.open.split_off(at);
        members.iter().for_each(|&member| self.is_open[member] = false);
        members
    }
}

fn sources(graph: &Graph, flow: &Flow<'_>, point: usize) -> Sources {
    let nodes = graph.nodes.len();
    if point >= nodes {
        return flow.elements(Series::from_index(point - nodes)).map(Entity::index).collect();
    }
    let node = Node::from_index(point);
    match graph.nodes[node].def {
        Def::Element(access) => smallvec![nodes + graph.accesses[access].series.index()],
        _ => flow.sources(node).into_iter().map(Entity::index).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::circles;
    use crate::ssa::{Flow, parse};

    #[test]
    fn what_loops_carry_is_in_circles() -> Result<(), crate::ssa::ParseError> {
        // a' = sin a, b' = b + a, and behind the loop a + b
        let text = "graph active 2 inactive 0\nv2 = const 0.0\nb0:\n  \
                    v7 v8 = region r0 b1 bound 9 entries v3=v0 v4=v1\n  v9 = add v7 v8\n  \
                    return v9\nb1:\n  v5 = sin v3\n  v6 = add v4 v3\n  return v2 v5 v6 v5 v6\n";
        let graph = parse(text)?;
        let found = circles(&graph, &Flow::of(&graph));
        let of = |name: &str| {
            graph.nodes.keys().find(|node| format!("{node:?}") == name).and_then(|n| found[n])
        };
        assert!(of("v3").is_some() && of("v3") == of("v5"));
        assert!(of("v4").is_some() && of("v4") == of("v6") && of("v4") != of("v3"));
        assert!(["v0", "v1", "v2", "v7", "v8", "v9"].iter().all(|name| of(name).is_none()));
        Ok(())
    }
}
