//! What is known of the graphs of a claim before loops are cut out of them.

use hashbrown::HashMap;

use super::Claim;
use crate::entity::Array;
use crate::ssa::{Access, Def, Graph, Nest, Node, Region, SeriesData, swept};

/// What is known of the graphs of a claim.
pub(super) struct Facts<'a> {
    pub(super) claim: &'a Claim<'a>,
    pub(super) nest: Nest,
    /// The nodes through which derivatives pass.
    pub(super) swept: Array<Node, bool>,
    /// What comes out of each loop and has a form: φs, what is computed of its φs and numbers, and
    /// what is read of iterations.
    outputs: HashMap<Region, Vec<Node>>,
}

impl<'a> Facts<'a> {
    pub(super) fn of(claim: &'a Claim<'a>) -> Facts<'a> {
        let before = claim.before;
        let nest = Nest::of(before);
        let mut outputs: HashMap<Region, Vec<Node>> = HashMap::new();
        for (node, data) in before.nodes.iter().filter(|&(node, _)| claim.resolved(node) != node) {
            let region = match data.def {
                Def::Phi(region, _) => Some(region),
                Def::Element(access) => past(before, access).and_then(|of| nest.node_loop(of)),
                Def::Apply(..) => region_of_sum(before, node),
                _ => None,
            };
            let region = region.filter(|&region| before.regions[region].cycle.is_some());
            if let Some(region) = region {
                outputs.entry(region).or_default().push(node);
            }
        }
        Facts { claim, nest, swept: swept(before), outputs }
    }

    /// What comes out of `region` and has a form.
    pub(super) fn outputs(&self, region: Region) -> &[Node] {
        self.outputs.get(&region).map_or(&[], Vec::as_slice)
    }

    /// The loops of which something has a form.
    pub(super) fn loops(&self) -> Vec<Region> {
        let regions = self.claim.before.regions.keys();
        regions.filter(|region| self.outputs.contains_key(region)).collect()
    }
}

/// The region of which all φs are that `node` is computed from with numbers alone, if it is.
fn region_of_sum(graph: &Graph, node: Node) -> Option<Region> {
    /// More nodes are not looked at: sums that have forms have fewer (`phi::recurrence::combined`).
    const MOST: usize = 64;
    let (mut pending, mut found) = (vec![node], None);
    for _ in 0..MOST {
        let Some(node) = pending.pop() else { return found };
        match graph.nodes[node].def {
            Def::Apply(..) => pending.extend(graph.nodes[node].args()),
            Def::Phi(region, _) if found.is_none_or(|found| found == region) => {
                found = Some(region);
            }
            Def::Const(_) => {}
            _ => return None,
        }
    }
    None
}

/// The node of which `access`, always to the same element, reads what it was.
pub(super) fn past(graph: &Graph, access: Access) -> Option<Node> {
    let data = &graph.accesses[access];
    match graph.series[data.series] {
        SeriesData::History(node) if data.strides.is_empty() => Some(node),
        _ => None,
    }
}
