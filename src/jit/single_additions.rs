//! Sums whose elements get one addition each, all in one loop: the addition to zero stores its
//! result, and the array needs no zeros before the loop.
//!
//! ```text
//! fill a                                   (nothing)
//! for i in 0..9 { a[i] += x[i] }     →     for i in 0..9 { a[i] = 0 + x[i] }
//! ```

use crate::entity::PrimaryMap;
use crate::ssa::{Access, Array, ArrayData, Block, Graph, Item, Region, last_iteration};

/// The items that fill an array or add to it.
#[derive(Clone, Default)]
struct Writes {
    fills: Vec<(Block, usize)>,
    additions: Vec<(Block, Access)>,
}

/// Tests of each array whether its elements get one addition each.
pub(super) fn single_additions(graph: &Graph) -> PrimaryMap<Array, bool> {
    let mut writes = PrimaryMap::filled(Writes::default(), graph.arrays.len());
    let mut regions = PrimaryMap::filled(None, graph.regions.len());
    for (block, data) in graph.blocks.iter() {
        for (item, index) in data.items.iter().zip(0..) {
            match *item {
                Item::Fill(array) => writes[array].fills.push((block, index)),
                Item::Accumulate(access, _) => {
                    writes[graph.accesses[access].array].additions.push((block, access));
                }
                Item::Region(region) => regions[region] = Some((block, index)),
                _ => {}
            }
        }
    }
    let is_single = |(array, writes): (Array, &Writes)| {
        let (&[(filling, fill)], &[(adding, access)]) = (&writes.fills[..], &writes.additions[..])
        else {
            return false;
        };
        let Some((region, _)) = graph.regions.iter().find(|(_, data)| data.root == adding) else {
            return false;
        };
        let is_after =
            regions[region].is_some_and(|(block, index)| block == filling && index > fill);
        let ArrayData::Sums(firsts) = &graph.arrays[array] else { return false };
        is_after
            && firsts.iter().all(Option::is_none)
            && visits_all(graph, region, access, firsts.len())
    };
    writes.iter().map(is_single).collect()
}

/// Tests whether the iterations of `region` access each of so many elements once.
fn visits_all(graph: &Graph, region: Region, access: Access, elements: usize) -> bool {
    let counting = graph.regions[region].replays.unwrap_or(region);
    let access = &graph.accesses[access];
    if !access.changes.is_empty() {
        return false;
    }
    let [(moving, stride)] = access.strides[..] else { return false };
    let is_own = graph.regions[moving].replays.unwrap_or(moving) == counting;
    let Some(last) = last_iteration(graph, counting).filter(|last| last.terms.is_empty()) else {
        return false;
    };
    let first = match stride {
        1 => 0,
        -1 => last.constant,
        _ => return false,
    };
    is_own && i128::from(access.base) == first && last.constant + 1 == elements as i128
}
