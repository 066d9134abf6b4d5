//! Entry φs as aliases: adjoint forwarding to their first values, in the order of the tape.
//!
//! An entry φ is no event of the tape: in iteration 0 it is an alias of its first value, then
//! of its operand in the iteration before. So that each adjoint has one accumulator (see
//! `tape_order`):
//!
//! - A contribution to an entry φ is also added to its first value if this is iteration 0, one
//!   by one; in other iterations -0.0 is added, which changes nothing. The adjoint of the entry
//!   φ itself after iteration 0 is then not used.
//! - If the trajectory of the operand of an entry φ is read after the loop, the adjoint of the
//!   entry φ starts from the adjoint of that element.
//!
//! An entry φ whose operand is another entry φ (a value is used two iterations later) makes a
//! φ chain. The head of the chain, which is no operand of another one, is in iteration 1 an
//! alias of the first value of the second one, and so on. The head starts from the adjoints of
//! the trajectory; the others get these from the following iteration.
//!
//! All this is done only if the whole graph then has the order of the tape; otherwise entry φs
//! are events that copy a value ([`EntryPhis::Copies`]). Nor is it done for an entry φ in an
//! array of nodes, because a contribution to an element is added to one sum only.
//!
//! [`EntryPhis::Copies`]: super::tape_order::EntryPhis::Copies

use super::loops::Carried;
use super::reverse::Reverse;
use super::sums::Opened;
use super::tape_order::{AliasTarget, TapeOrder};
use crate::op::Op;
use crate::ssa::{AccessData, Def, Graph, Node, Region, phi_operands};

/// The aliases of the entry φs of a loop that is being swept.
#[derive(Default)]
pub(super) struct EntryOrder {
    phi_chains: Vec<PhiChain>,
    /// The entry φs, by number, that forward their contributions to the first value.
    forwarding: Vec<usize>,
    /// Those of them whose first value may have an adjoint before the loop is swept.
    seeded: Vec<usize>,
    /// The number of aliases of loops around.
    aliases: usize,
}

/// Entry φs of which each is the operand of the one before.
struct PhiChain {
    /// Their numbers, head first.
    numbers: Vec<usize>,
    /// The operand of the last of them, if its trajectory is read later.
    saved: Option<Node>,
}

/// An entry φ of a loop that is being swept, which is an alias of `first` in iteration `at`.
#[derive(Clone, Copy)]
pub(super) struct Alias {
    region: Region,
    entry: Node,
    at: u32,
    first: Node,
}

/// The length of the longest φ chain of `region` behind `node`: for so many iterations entry
/// φs hold its value. 0 if the loop has several ends.
pub(super) fn longest_phi_chain(graph: &Graph, region: Region, node: Node) -> u32 {
    let operands = phi_operands(graph, region, graph.regions[region].root);
    let length = |start: usize| {
        let (mut number, mut length) = (start, 1);
        while let Some(&next) = operands.nexts.get(number) {
            match graph.nodes[next].def {
                _ if next == node => return length,
                Def::Entry(of, next)
                    if of == region && (length as usize) < operands.nexts.len() =>
                {
                    (number, length) = (next as usize, length + 1);
                }
                _ => break,
            }
        }
        0
    };
    (0..operands.nexts.len()).map(length).max().unwrap_or(0)
}

impl EntryOrder {
    /// The trajectory of the φ chain that contains entry φ `number`, and the numbers of the chain
    /// from there on.
    fn phi_chain_from(&self, number: usize) -> Option<(Option<Node>, &[usize])> {
        self.phi_chains.iter().find_map(|chain| {
            let at = chain.numbers.iter().position(|&other| other == number)?;
            Some((chain.saved, &chain.numbers[at..]))
        })
    }

    /// True if entry φ `number` forwards its contributions to its first value.
    pub(super) fn is_forwarding(&self, number: usize) -> bool {
        self.forwarding.contains(&number)
    }
}

impl TapeOrder {
    /// True if contributions to `node` are forwarded to another node.
    pub(super) fn is_alias(&self, node: Node) -> bool {
        self.aliases.iter().any(|alias| alias.entry == node)
    }

    /// True if contributions to another node are forwarded to `node`.
    pub(super) fn has_alias(&self, node: Node) -> bool {
        self.aliases.iter().any(|alias| alias.first == node)
    }
}

impl Reverse<'_> {
    /// Determines the aliases of the `active` entry φs of `region` before it is swept.
    pub(super) fn entry_order(
        &self,
        region: Region,
        active: &[usize],
        outer: &[Node],
        opened: &Opened,
    ) -> EntryOrder {
        if !self.order.has_aliases {
            return EntryOrder::default();
        }
        let (phi_chains, aliases) = (self.phi_chains(region, active), self.order.aliases.len());
        let mut entry_order = EntryOrder { phi_chains, aliases, ..EntryOrder::default() };
        let (entries, last) = (self.graph.entries(region), self.last_iteration(region));
        let numbers = entry_order.phi_chains.iter().flat_map(|chain| chain.numbers.iter().zip(0..));
        for (&number, at) in numbers {
            let first = entries[number].first;
            let exists = at == 0 || last.is_some_and(|last| last >= at);
            let is_empty = self.is_empty(opened, first);
            let is_collected = || {
                let is_only = active.iter().filter(|&&n| entries[n].first == first).count() == 1;
                let is_fresh = is_empty && (self.has_sum(first) || !outer.contains(&first));
                is_only
                    && self.alias_target(first).is_none()
                    && !self.order.is_alias(first)
                    && (is_fresh || self.order.is_used_once(entries[number].phi))
                    && self.is_untouched(region, first)
            };
            let is_other = || matches!(self.alias_target(first), Some(AliasTarget::Node(_)));
            if !self.primal.varied[first] || !exists || is_other() || is_collected() {
                continue;
            }
            entry_order.forwarding.push(number);
            if !is_empty || (!self.has_sum(first) && self.alias_target(first).is_some()) {
                entry_order.seeded.push(number);
            }
        }
        entry_order
    }

    /// The nodes that entry φs of `region` forward contributions to, without those in sums.
    pub(super) fn forwarding_targets(&self, region: Region, entry_order: &EntryOrder) -> Vec<Node> {
        let entries = self.graph.entries(region);
        let mut pending: Vec<Node> =
            entry_order.forwarding.iter().map(|&number| entries[number].first).collect();
        let mut firsts = Vec::new();
        while let Some(node) = pending.pop() {
            if !firsts.contains(&node) {
                firsts.push(node);
                pending.extend(self.aliased_firsts(node));
            }
        }
        firsts.retain(|&node| !self.has_sum(node) && self.alias_target(node).is_none());
        firsts
    }

    /// The φ chains of the `active` entry φs of `region`, single entry φs included. Chains with
    /// an entry φ whose operands differ, or that is in an array of nodes, are left out.
    fn phi_chains(&self, region: Region, active: &[usize]) -> Vec<PhiChain> {
        let entries = self.graph.entries(region);
        let passes_to = |number: usize| {
            let phi = entries[number].phi;
            active.iter().filter(move |&&other| self.primal.nexts(region, other).any(|n| n == phi))
        };
        let mut phi_chains = Vec::new();
        for &head in active.iter().filter(|&&number| passes_to(number).next().is_none()) {
            let (mut numbers, mut at, mut saved) = (Vec::new(), Some(head), None);
            let mut is_clear = true;
            while let Some(number) = at.filter(|_| is_clear) {
                // Its operand, if all ends have the same one.
                let nexts: Vec<Node> = self.primal.nexts(region, number).collect();
                saved = nexts.first().copied().filter(|next| nexts.iter().all(|n| n == next));
                let is_entry = |&next: &Node| self.entry_of(region, next).is_some();
                // An entry φ that is the operand of two others is rejected elsewhere.
                is_clear = active.binary_search(&number).is_ok()
                    && numbers.len() < active.len()
                    && passes_to(number).count() == usize::from(number != head)
                    && self.trajectory_adjoints(entries[number].phi).is_none()
                    && !self.order.in_array[entries[number].phi]
                    && (saved.is_some() || !nexts.iter().any(is_entry));
                numbers.push(number);
                at = saved.and_then(|next| self.entry_of(region, next));
            }
            let is_saved = |&node: &Node| {
                self.trajectory_adjoints(node).is_some()
                    && self.last_iteration(region).is_some()
                    && self.primal.nest.node_loop(node) == Some(region)
            };
            if is_clear {
                let fits = |&saved: &Node| self.order.lag[saved] as usize >= numbers.len();
                let saved = saved.filter(is_saved).filter(fits);
                // A second chain with this trajectory is rejected elsewhere.
                let saved = saved
                    .filter(|_| phi_chains.iter().all(|chain: &PhiChain| chain.saved != saved));
                phi_chains.push(PhiChain { numbers, saved });
            }
        }
        phi_chains
    }

    /// The number of entry φ `node` of `region`, if it is one.
    fn entry_of(&self, region: Region, node: Node) -> Option<usize> {
        match self.graph.nodes[node].def {
            Def::Entry(of, number) if of == region => Some(number as usize),
            _ => None,
        }
    }

    /// The adjoint from the trajectory that entry φ `number` of `region` starts from before the
    /// last iteration is swept.
    pub(super) fn seed_of_last_iteration(
        &mut self,
        region: Region,
        number: usize,
        entry_order: &EntryOrder,
    ) -> Option<Node> {
        let (saved, after) = entry_order.phi_chain_from(number)?;
        let (saved, back) = (saved?, after.len() as u32);
        let array = self.trajectory_adjoints(saved)?;
        let base = (self.last_iteration(region)? + 1 + self.order.lag[saved]).checked_sub(back)?;
        Some(self.builder.element(AccessData {
            array,
            base,
            strides: Default::default(),
            changes: Default::default(),
        }))
    }

    /// True if an entry φ starts from the adjoints of the trajectory of `saved`.
    pub(super) fn seeds_phi_chain(&self, saved: Node, entry_order: &EntryOrder) -> bool {
        entry_order.phi_chains.iter().any(|chain| chain.saved == Some(saved))
    }

    /// Starts the adjoints of the entry φs of `region` in the current iteration, and adds aliases.
    pub(super) fn begin_aliases(&mut self, region: Region, entry_order: &EntryOrder) {
        let graph = self.graph;
        let entries = graph.entries(region);
        let Some(copy) = self.region_copy[region] else { return };
        for PhiChain { numbers, saved } in &entry_order.phi_chains {
            if let Some(saved) = *saved
                && let Some(array) = self.trajectory_adjoints(saved)
                && let Some(base) = self.order.lag[saved].checked_sub(numbers.len() as u32)
            {
                let strides = core::iter::once((copy, 1)).collect();
                let begin = self.builder.element(AccessData {
                    array,
                    base,
                    strides,
                    changes: Default::default(),
                });
                self.adjoints.set(entries[numbers[0]].phi, begin);
            }
            for (place, &number) in numbers.iter().enumerate() {
                if entry_order.is_forwarding(number) {
                    let first = entries[number].first;
                    for (&other, at) in numbers[..=place].iter().rev().zip(0..) {
                        let entry = entries[other].phi;
                        self.order.aliases.push(Alias { region, entry, at, first });
                    }
                }
            }
        }
    }

    /// Removes the aliases that [`Reverse::begin_aliases`] added.
    pub(super) fn end_aliases(&mut self, entry_order: &EntryOrder) {
        self.order.aliases.truncate(entry_order.aliases);
    }

    /// Forwards a contribution to `node` to the nodes that it is an alias of.
    pub(super) fn add_to_aliased_firsts(&mut self, node: Node, increment: Node) {
        if self.order.aliases.is_empty() {
            return;
        }
        let mut pending = vec![(node, increment)];
        while let Some((node, increment)) = pending.pop() {
            // Each first value is outside the loop of its entry φ, so this ends.
            for index in 0..self.order.aliases.len() {
                let Alias { region, entry, at, first } = self.order.aliases[index];
                if entry == node {
                    let (is_iteration, nothing) =
                        (self.is_iteration(region, at), self.builder.constant(-0.0));
                    let increment =
                        self.builder.apply(Op::Select, &[is_iteration, increment, nothing]);
                    self.add_to_one(first, increment);
                    pending.push((first, increment));
                }
            }
        }
    }

    /// The nodes that `node` is an alias of in some iteration.
    pub(super) fn aliased_firsts(&self, node: Node) -> Vec<Node> {
        let aliases = self.order.aliases.iter().filter(|alias| alias.entry == node);
        aliases.map(|alias| alias.first).collect()
    }

    /// Builds the test whether this is iteration `number` of `region`.
    fn is_iteration(&mut self, region: Region, number: u32) -> Node {
        let at = match self.region_copy[region] {
            Some(copy) => self.builder.iteration(copy),
            None => self.builder.constant(f64::NAN),
        };
        let number = self.builder.constant(f64::from(number));
        self.builder.apply(Op::Eq, &[at, number])
    }

    /// True if the adjoint after `region` of `value`, one of the φ operands `values` of the last
    /// iteration, is the first summand of its accumulator.
    pub(super) fn is_added_first(
        &self,
        region: Region,
        value: Node,
        values: &[Node],
        carried: &Carried,
    ) -> bool {
        let entry_order = &carried.entry_order;
        let of = |node: Node| self.entry_of(region, node);
        let Some((saved, after)) = of(value).and_then(|number| entry_order.phi_chain_from(number))
        else {
            return true;
        };
        // It is a first value only in short loops.
        let is_later = self.last_iteration(region).is_some_and(|last| last as usize >= after.len());
        let entries = self.graph.entries(region);
        let is_only = || {
            let direct = after.iter().filter(|&&number| entry_order.is_forwarding(number));
            let first = |number: usize| entries[number].first;
            let same = |number: usize| {
                let others = values.iter().filter_map(|&value| of(value));
                others.filter(|&other| first(other) == first(number)).count() <= 1
            };
            after.len() == 1 && direct.clone().all(|&n| !entry_order.seeded.contains(&n) && same(n))
                || direct.count() == 0
        };
        saved.is_none() && (is_later || is_only())
    }
}
