//! Entry φs and what they stand for.
//!
//! To the tape an entry φ is no event of its own: it stands for its first value, then
//! for what the iteration before has passed on. So that each adjoint is one running sum
//! (see `order`):
//!
//! - What is added to an entry φ is also added to its first value if this is iteration 0,
//!   one by one; in other iterations that gets -0.0, which changes nothing. What the
//!   entry φ itself has collected in iteration 0 is then of no use.
//! - An entry φ begins with what is read later of the history of the node that was passed
//!   on to it.
//!
//! If entry φs pass on to each other, as where a value is used two iterations later,
//! they are a *chain*: the first of them, to which none passes on, stands for the first
//! value of the second one in iteration 1, and so on; it is the one that begins with what
//! is read later, and the others get that from the iteration behind.
//!
//! All this is done only where it leads to the order of the tape in the whole graph: if
//! it does not, entry φs are events that copy a value ([`Entries::Copies`]). Nor is it
//! done for an entry φ in an array of nodes: what is added to an element is added to a
//! sum of that one alone.
//!
//! [`Entries::Copies`]: super::order::Entries::Copies

use super::activity::passed;
use super::loops::Carried;
use super::order::{Direct, Order};
use super::reverse::Reverse;
use super::sums::Opened;
use crate::op::Op;
use crate::ssa::{AccessData, Def, Graph, Node, Region};

/// What is known of the entry φs of a loop that is being swept.
#[derive(Default)]
pub(super) struct Running {
    chains: Vec<Chain>,
    /// The entry φs, by number, of which all that is added is added to the first value.
    direct: Vec<usize>,
    /// Those of them whose first value may have a sum before the loop is swept.
    begun: Vec<usize>,
    /// How many names are for the loops around.
    names: usize,
}

/// Entry φs of which each passes on to the next one.
struct Chain {
    /// Their numbers.
    numbers: Vec<usize>,
    /// What is passed on to the last of them, if its history is read later.
    past: Option<Node>,
}

/// An entry φ of a loop that is being swept, which in one iteration is another node.
#[derive(Clone, Copy)]
pub(super) struct Name {
    region: Region,
    entry: Node,
    at: u32,
    first: Node,
}

/// How many iterations later entry φs of `region` may still stand for what `node` was in
/// one, if the loop has one end.
pub(super) fn longest_chain(graph: &Graph, region: Region, node: Node) -> u32 {
    let passed = passed(graph, region, graph.regions[region].root);
    let length = |start: usize| {
        let (mut number, mut length) = (start, 1);
        while let Some(&next) = passed.nexts.get(number) {
            match graph.nodes[next].def {
                _ if next == node => return length,
                Def::Entry(of, next) if of == region && (length as usize) < passed.nexts.len() => {
                    (number, length) = (next as usize, length + 1);
                }
                _ => break,
            }
        }
        0
    };
    (0..passed.nexts.len()).map(length).max().unwrap_or(0)
}

impl Running {
    /// What entry φs begin with that are in a chain with entry φ `number`, and the numbers of
    /// these from there on.
    fn chain_from(&self, number: usize) -> Option<(Option<Node>, &[usize])> {
        self.chains.iter().find_map(|chain| {
            let at = chain.numbers.iter().position(|&other| other == number)?;
            Some((chain.past, &chain.numbers[at..]))
        })
    }

    /// Whether all that is added to the entry φ with this number is added to its first
    /// value.
    pub(super) fn is_direct(&self, number: usize) -> bool {
        self.direct.contains(&number)
    }
}

impl Order {
    /// Whether what is added to `node` is at once added to another.
    pub(super) fn is_named(&self, node: Node) -> bool {
        self.names.iter().any(|name| name.entry == node)
    }

    /// Whether what is added to another node is at once added to `node`.
    pub(super) fn is_first(&self, node: Node) -> bool {
        self.names.iter().any(|name| name.first == node)
    }
}

impl Reverse<'_> {
    /// What is known of the entry φs of `region`, which reaches these, before it is swept.
    pub(super) fn running(
        &self,
        region: Region,
        reached: &[usize],
        outer: &[Node],
        opened: &Opened,
    ) -> Running {
        if !self.order.has_names {
            return Running::default();
        }
        let (chains, names) = (self.chains(region, reached), self.order.names.len());
        let mut running = Running { chains, names, ..Running::default() };
        let (entries, last) = (self.graph.entries(region), self.last(region));
        let numbers = running.chains.iter().flat_map(|chain| chain.numbers.iter().zip(0..));
        for (&number, at) in numbers {
            let first = entries[number].first;
            let exists = at == 0 || last.is_some_and(|last| last >= at);
            let is_empty = self.is_empty(opened, first);
            let is_collected = || {
                let is_alone = reached.iter().filter(|&&n| entries[n].first == first).count() == 1;
                let is_fresh = is_empty && (self.has_sum(first) || !outer.contains(&first));
                is_alone
                    && self.direct(first).is_none()
                    && !self.order.is_named(first)
                    && (is_fresh || self.order.is_single(entries[number].phi))
                    && self.is_untouched(region, first)
            };
            let is_other = || matches!(self.direct(first), Some(Direct::Node(_)));
            if !self.activity.active[first] || !exists || is_other() || is_collected() {
                continue;
            }
            running.direct.push(number);
            if !is_empty || (!self.has_sum(first) && self.direct(first).is_some()) {
                running.begun.push(number);
            }
        }
        running
    }

    /// What gets what is added to entry φs of `region`, as far as that is in no sums.
    pub(super) fn direct_firsts(&self, region: Region, running: &Running) -> Vec<Node> {
        let entries = self.graph.entries(region);
        let mut pending: Vec<Node> =
            running.direct.iter().map(|&number| entries[number].first).collect();
        let mut firsts = Vec::new();
        while let Some(node) = pending.pop() {
            if !firsts.contains(&node) {
                firsts.push(node);
                pending.extend(self.firsts_of(node));
            }
        }
        firsts.retain(|&node| !self.has_sum(node) && self.direct(node).is_none());
        firsts
    }

    /// The chains of entry φs of `region` that are `reached`; none for those that no
    /// such rule holds for.
    fn chains(&self, region: Region, reached: &[usize]) -> Vec<Chain> {
        let entries = self.graph.entries(region);
        let passes_to = |number: usize| {
            let phi = entries[number].phi;
            reached
                .iter()
                .filter(move |&&other| self.activity.nexts(region, other).any(|n| n == phi))
        };
        let mut chains = Vec::new();
        for &head in reached.iter().filter(|&&number| passes_to(number).next().is_none()) {
            let (mut numbers, mut at, mut past) = (Vec::new(), Some(head), None);
            let mut is_clear = true;
            while let Some(number) = at.filter(|_| is_clear) {
                // What is passed on to it, if that is always the same.
                let nexts: Vec<Node> = self.activity.nexts(region, number).collect();
                past = nexts.first().copied().filter(|next| nexts.iter().all(|n| n == next));
                let is_entry = |&next: &Node| self.entry_of(region, next).is_some();
                // Two that pass on to the same one are refused in any case.
                is_clear = reached.binary_search(&number).is_ok()
                    && numbers.len() < reached.len()
                    && passes_to(number).count() == usize::from(number != head)
                    && self.past_sums(entries[number].phi).is_none()
                    && !self.order.in_array[entries[number].phi]
                    && (past.is_some() || !nexts.iter().any(is_entry));
                numbers.push(number);
                at = past.and_then(|next| self.entry_of(region, next));
            }
            let is_past = |&node: &Node| {
                self.past_sums(node).is_some()
                    && self.last(region).is_some()
                    && self.activity.nest.node_loop(node) == Some(region)
            };
            if is_clear {
                let fits = |&past: &Node| self.order.lead[past] as usize >= numbers.len();
                let past = past.filter(is_past).filter(fits);
                // The other chain is refused in any case.
                let past = past.filter(|_| chains.iter().all(|chain: &Chain| chain.past != past));
                chains.push(Chain { numbers, past });
            }
        }
        chains
    }

    /// The number of `node` if it is an entry φ of `region`.
    fn entry_of(&self, region: Region, node: Node) -> Option<usize> {
        match self.graph.nodes[node].def {
            Def::Entry(of, number) if of == region => Some(number as usize),
            _ => None,
        }
    }

    /// What entry φ `number` of `region` gets in the last iteration, as if there were
    /// another one, of what is read later.
    pub(super) fn past_of_last(
        &mut self,
        region: Region,
        number: usize,
        running: &Running,
    ) -> Option<Node> {
        let (past, after) = running.chain_from(number)?;
        let (past, back) = (past?, after.len() as u32);
        let array = self.past_sums(past)?;
        let base = (self.last(region)? + 1 + self.order.lead[past]).checked_sub(back)?;
        Some(self.builder.element(AccessData { array, base, strides: Default::default() }))
    }

    /// Whether what is read later of `past` is in what entry φs begin with.
    pub(super) fn begins_in_chain(&self, past: Node, running: &Running) -> bool {
        running.chains.iter().any(|chain| chain.past == Some(past))
    }

    /// Lets the entry φs of `region` begin their adjoints in the iteration at hand.
    pub(super) fn begin_running(&mut self, region: Region, running: &Running) {
        let graph = self.graph;
        let entries = graph.entries(region);
        let Some(copy) = self.region_copy[region] else { return };
        for Chain { numbers, past } in &running.chains {
            if let Some(past) = *past
                && let Some(array) = self.past_sums(past)
                && let Some(base) = self.order.lead[past].checked_sub(numbers.len() as u32)
            {
                let strides = core::iter::once((copy, 1)).collect();
                let begin = self.builder.element(AccessData { array, base, strides });
                self.adjoints.set(entries[numbers[0]].phi, begin);
            }
            for (place, &number) in numbers.iter().enumerate() {
                if running.is_direct(number) {
                    let first = entries[number].first;
                    for (&other, at) in numbers[..=place].iter().rev().zip(0..) {
                        let entry = entries[other].phi;
                        self.order.names.push(Name { region, entry, at, first });
                    }
                }
            }
        }
    }

    /// Ends what [`Reverse::begin_running`] began.
    pub(super) fn end_running(&mut self, running: &Running) {
        self.order.names.truncate(running.names);
    }

    /// Adds what was added to `node` to what it stands for.
    pub(super) fn add_to_firsts(&mut self, node: Node, passed: Node) {
        if self.order.names.is_empty() {
            return;
        }
        let mut pending = vec![(node, passed)];
        while let Some((node, passed)) = pending.pop() {
            // Each is outside of the loop of the one before.
            for index in 0..self.order.names.len() {
                let Name { region, entry, at, first } = self.order.names[index];
                if entry == node {
                    let (is_at, nothing) = (self.is_at(region, at), self.builder.constant(-0.0));
                    let passed = self.builder.apply(Op::Select, &[is_at, passed, nothing]);
                    self.add_to_one(first, passed);
                    pending.push((first, passed));
                }
            }
        }
    }

    /// What `node` stands for in some iteration of the loops that are being swept.
    pub(super) fn firsts_of(&self, node: Node) -> Vec<Node> {
        let names = self.order.names.iter().filter(|name| name.entry == node);
        names.map(|name| name.first).collect()
    }

    /// Whether this is the iteration of `region` with this number.
    fn is_at(&mut self, region: Region, number: u32) -> Node {
        let at = match self.region_copy[region] {
            Some(copy) => self.builder.iteration(copy),
            None => self.builder.constant(f64::NAN),
        };
        let number = self.builder.constant(f64::from(number));
        self.builder.apply(Op::Eq, &[at, number])
    }

    /// Whether what has been collected behind `region` for `value`, one of `values` that
    /// it passes on in the last iteration, comes before all that is in the sum to which
    /// it is added.
    pub(super) fn is_before_running(
        &self,
        region: Region,
        value: Node,
        values: &[Node],
        carried: &Carried,
    ) -> bool {
        let running = &carried.running;
        let of = |node: Node| self.entry_of(region, node);
        let Some((past, after)) = of(value).and_then(|number| running.chain_from(number)) else {
            return true;
        };
        // It is a first value only if there are few iterations.
        let is_later = self.last(region).is_some_and(|last| last as usize >= after.len());
        let entries = self.graph.entries(region);
        let is_alone = || {
            let direct = after.iter().filter(|&&number| running.is_direct(number));
            let first = |number: usize| entries[number].first;
            let same = |number: usize| {
                let others = values.iter().filter_map(|&value| of(value));
                others.filter(|&other| first(other) == first(number)).count() <= 1
            };
            after.len() == 1 && direct.clone().all(|&n| !running.begun.contains(&n) && same(n))
                || direct.count() == 0
        };
        past.is_none() && (is_later || is_alone())
    }
}
