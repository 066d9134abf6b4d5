//! Distinct source places for nested loops.
//!
//! A loop has the place of its first step, which may be that of an inner loop. Then the outer
//! loop gets the place of another step of its own.

use hashbrown::HashSet;

use crate::ssa::{Block, End, Graph, Item, PlaceId, Region};

/// Gives each loop with the place of an inner loop the place of a step of its own, if it has one.
pub(super) fn set_distinct_places(graph: &mut Graph) {
    let mut regions = Vec::new();
    for block in graph.preorder() {
        regions.extend(graph.regions_of(block));
    }
    // Inner loops first.
    for region in regions.into_iter().rev() {
        let data = &graph.regions[region];
        if data.cycle.is_none() {
            continue;
        }
        let (own, inner) = places_in(graph, region);
        if data.place.is_some_and(|place| inner.contains(&place))
            && let Some(place) = own.into_iter().find(|place| !inner.contains(place))
        {
            graph.move_region(region, place);
        }
    }
}

/// The places of the steps of `region`, in order, and of the regions in it, at any depth.
fn places_in(graph: &Graph, region: Region) -> (Vec<PlaceId>, HashSet<PlaceId>) {
    let (mut own, mut inner) = (Vec::new(), HashSet::new());
    let mut pending: Vec<(Block, bool)> = vec![(graph.regions[region].root, true)];
    while let Some((block, is_own)) = pending.pop() {
        let data = &graph.blocks[block];
        for item in &data.items {
            match *item {
                Item::Node(node) if is_own => own.extend(graph.nodes[node].place),
                Item::Region(region) => {
                    inner.extend(graph.regions[region].place);
                    pending.push((graph.regions[region].root, false));
                }
                _ => {}
            }
        }
        if let End::Branch { then, otherwise, .. } = data.end {
            pending.extend([(otherwise, is_own), (then, is_own)]);
        }
    }
    (own, inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loops::{RerollLimits, reroll};
    use crate::op::Op;
    use crate::ssa::Place;

    /// Forty times the sum of twenty sines, each of them multiplied; steps have these lines.
    fn nested(lines: [u32; 3]) -> Graph {
        let mut graph = Graph::new(1, 0);
        let root = graph.root();
        let mut known: Vec<(u32, PlaceId)> = Vec::new();
        let places = lines.map(|line| {
            let found = known.iter().find(|&&(other, _)| other == line).map(|&(_, place)| place);
            let place = found.unwrap_or_else(|| graph.places.push(Place::new("user.rs", line, 1)));
            known.push((line, place));
            Some(place)
        });
        let mut number = graph.input(0);
        for _ in 0..40 {
            for _ in 0..20 {
                number = graph.push_apply(root, Op::Sin, &[number], places[0]);
                number = graph.push_apply(root, Op::Add, &[number, number], places[1]);
            }
            number = graph.push_apply(root, Op::Mul, &[number, number], places[2]);
        }
        graph.blocks[root].end = End::Return([number].into_iter().collect());
        reroll(&graph, RerollLimits::default())
    }

    /// The lines of its loops, outer ones first.
    fn lines(graph: &Graph) -> Vec<u32> {
        let regions = graph.preorder().into_iter().flat_map(|block| graph.regions_of(block));
        let places = regions.filter_map(|region| graph.regions[region].place);
        places.map(|place| graph.places[place].line).collect()
    }

    #[test]
    fn a_loop_around_another_has_the_place_of_a_step_of_its_own() {
        assert_eq!(lines(&nested([3, 4, 6])), [6, 3]);
        // No step has another place.
        assert_eq!(lines(&nested([3, 4, 3])), [3, 3]);
    }
}
