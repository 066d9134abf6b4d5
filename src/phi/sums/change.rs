//! Whether what a loop adds up changes from one of its iterations to the next.

use super::choice;
use super::terms::{INNER, Search, Variables};
use crate::ssa::{Access, Def, Node, Region, SeriesData};

impl Search<'_> {
    /// Whether `node` may change from one iteration to the next.
    pub(super) fn varies(&mut self, node: Node) -> Result<bool, String> {
        let mut pending = vec![(node, false)];
        while let Some((node, ready)) = pending.pop() {
            if self.varies.contains_key(&node) {
                continue;
            }
            let varies = match self.draft.graph.nodes[node].def {
                Def::Iteration(region) => region == self.region,
                Def::Element(access) => self.element_varies(node, access)?,
                _ if !self.draft.is_inside(node, self.region) => false,
                Def::Apply(..) if ready => {
                    self.draft.args(node).any(|arg| self.varies.get(&arg) == Some(&true))
                }
                Def::Apply(..) => {
                    pending.push((node, true));
                    pending.extend(self.draft.args(node).map(|arg| (arg, false)));
                    continue;
                }
                Def::Entry(..) => return Err("its terms depend on what it carries".to_owned()),
                Def::Phi(..) => match choice::of(self.draft, self.region, node) {
                    Some(choice) if ready => {
                        choice.nodes().any(|node| self.varies.get(&node) == Some(&true))
                    }
                    Some(choice) => {
                        pending.push((node, true));
                        pending.extend(choice.nodes().map(|node| (node, false)));
                        continue;
                    }
                    None => return Err(INNER.to_owned()),
                },
                Def::Input(_) | Def::Const(_) => false,
                Def::Call(_) | Def::Result(..) => return Err(INNER.to_owned()),
            };
            self.varies.insert(node, varies);
        }
        Ok(self.varies.get(&node) == Some(&true))
    }

    fn element_varies(&self, node: Node, access: Access) -> Result<bool, String> {
        let data = &self.draft.graph.accesses[access];
        let moves = data.strides.iter().any(|&(region, step)| region == self.region && step != 0);
        match &self.draft.graph.series[data.series] {
            SeriesData::Constants(_) => Ok(moves),
            _ if !self.draft.is_inside(node, self.region) => Ok(false),
            SeriesData::Nodes(_) | SeriesData::Inputs { .. } if self.is_known(access) => Ok(moves),
            SeriesData::Inputs { .. } if moves => {
                Err("its terms read data that are known only in a call".to_owned())
            }
            SeriesData::Inputs { .. } => Ok(false),
            SeriesData::Nodes(nodes) => {
                let inside =
                    |&node: &Node| self.draft.is_inside(self.draft.resolve(node), self.region);
                if moves || nodes.iter().any(inside) {
                    return Err("its terms read data that are known only in a call".to_owned());
                }
                Ok(false)
            }
            SeriesData::History(_) | SeriesData::Sums(_) | SeriesData::Outputs { .. } => {
                Err("its terms read what another loop computed".to_owned())
            }
        }
    }

    /// Whether the elements that `access` reads are data before the loop around.
    pub(super) fn is_known(&self, access: Access) -> bool {
        let Variables::Inside(outer) = self.variables else { return false };
        let data = &self.draft.graph.accesses[access];
        let is_free = |&(region, stride): &(Region, i32)| {
            stride == 0 || region == self.region || !self.draft.is_within(Some(region), outer)
        };
        let is_outer = |node| self.draft.is_passive(node) && !self.draft.is_inside(node, outer);
        let are_data = match self.draft.graph.series[data.series] {
            SeriesData::Inputs { first, .. } => !self.draft.graph.is_active(first),
            SeriesData::Nodes(_) => self.draft.read(access).all(is_outer),
            _ => false,
        };
        are_data && data.strides.iter().all(is_free)
    }
}
