//! What inner loops come to, with derivatives that tangents tell, in the body of an outer loop.

use super::form::{Affine, Form, Forms};
use crate::ssa::{Def, Node, is_tangent, told_number};

impl Forms<'_, '_> {
    /// The form of `node` if it tells a derivative of what changes from one iteration to the
    /// next: that counts as its value, since its derivative is known otherwise. What is the same
    /// in all iterations keeps what is told of it.
    pub(super) fn without_slope(
        &mut self,
        node: Node,
        resolve: &impl Fn(Node) -> Node,
    ) -> Option<Form> {
        let Def::Apply(_, args) = self.emitter.graph.nodes[node].def else { return None };
        if is_tangent(self.emitter.graph, node) {
            let is_fixed = args.into_iter().all(|arg| self.is_fixed(resolve(arg)));
            // Zero, but not one that is the same in all iterations: the last one is copied whole.
            return (!is_fixed).then(|| Form::Affine(Affine::new()));
        }
        let value = told_number(self.emitter.graph, node)?;
        (!self.is_fixed(resolve(value))).then(|| self.find(resolve(value)))
    }

    fn is_fixed(&mut self, node: Node) -> bool {
        matches!(self.find(node), Form::Fixed(_))
    }
}
