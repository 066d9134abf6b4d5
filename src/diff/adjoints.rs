//! The adjoints of a sweep, with scopes that restore them at the end of each arm.

use crate::entity::PrimaryMap;
use crate::ssa::Node;

/// For each node of the primal graph the node that computes its adjoint so far.
///
/// Both arms of a branch start from the same adjoints, so each has a scope, and closing it
/// restores the adjoints from before.
pub(super) struct Adjoints {
    current: PrimaryMap<Node, Option<Node>>,
    /// The former adjoint for each change in an open scope, in order.
    replaced: Vec<(Node, Option<Node>)>,
    /// For each open scope the number of changes before it.
    scopes: Vec<usize>,
}

/// The adjoints that a scope changed, by the ids of their nodes.
pub(super) type Changed = Vec<(Node, Node)>;

impl Adjoints {
    /// Makes an empty map for a graph of this many nodes.
    pub(super) fn new(nodes: usize) -> Self {
        let current = PrimaryMap::filled(None, nodes);
        Adjoints { current, replaced: Vec::new(), scopes: Vec::new() }
    }

    /// The adjoint of `node` so far, if there was a contribution.
    pub(super) fn get(&self, node: Node) -> Option<Node> {
        self.current[node]
    }

    /// Replaces the adjoint of `node`.
    pub(super) fn set(&mut self, node: Node, adjoint: Node) {
        self.replace(node, Some(adjoint));
    }

    /// Removes and returns the adjoint of `node`.
    pub(super) fn take(&mut self, node: Node) -> Option<Node> {
        let adjoint = self.current[node];
        if adjoint.is_some() {
            self.replace(node, None);
        }
        adjoint
    }

    fn replace(&mut self, node: Node, adjoint: Option<Node>) {
        self.replaced.push((node, self.current[node]));
        self.current[node] = adjoint;
    }

    /// Opens a scope.
    pub(super) fn open(&mut self) {
        self.scopes.push(self.replaced.len());
    }

    /// Closes the innermost scope. Returns the adjoints that were changed in it and not taken
    /// since.
    pub(super) fn close(&mut self) -> Changed {
        let start = self.scopes.pop().unwrap_or(0);
        let mut nodes: Vec<Node> = self.replaced[start..].iter().map(|&(node, _)| node).collect();
        nodes.sort_unstable();
        nodes.dedup();
        let remaining = |&node: &Node| self.current[node].map(|adjoint| (node, adjoint));
        let changed = nodes.iter().filter_map(remaining).collect();
        for (node, before) in self.replaced.drain(start..).rev() {
            self.current[node] = before;
        }
        changed
    }
}
