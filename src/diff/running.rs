//! Entry φs whose adjoints go on with the sums of what they stand for.
//!
//! To the tape an entry φ is no event of its own: it stands for its first value, then
//! for what the iteration before has passed on. So that each adjoint is one running sum
//! (see `order`), the adjoint of an entry φ begins in each iteration with what has been
//! added to that so far:
//!
//! - what is read later of the history of the node that was passed on to it;
//! - in iteration 0 the sum of its first value, and what comes of that *is* then the
//!   sum of the first value.
//!
//! Where the sweep of the loop adds to the first value by its own name, or by that of
//! another entry φ that begins with it, it adds the same to the entry φ in iteration 0,
//! and -0.0, which changes nothing, in the others.
//!
//! If entry φs pass on to each other, as where a value is used two iterations later,
//! they are a *chain*: the first of them, to which none passes on, stands for the first
//! value of the second one in iteration 1, and so on. It begins with all these sums, and
//! the others get theirs from the iteration behind.

use super::activity::{Activity, passed};
use super::loops::Carried;
use super::order::Order;
use super::reverse::Reverse;
use super::sums::Opened;
use crate::entity::Array;
use crate::op::Op;
use crate::ssa::{AccessData, Def, Graph, Node, Region, SeriesData};

/// What the entry φs of a loop that is being swept begin with.
#[derive(Default)]
pub(super) struct Running {
    chains: Vec<Chain>,
    /// The entry φs that go on with the sum of their first value, by number.
    goes_on: Vec<usize>,
    /// How many groups are for the loops around.
    groups: usize,
}

/// Entry φs of which each passes on to the next one.
struct Chain {
    /// Their numbers.
    numbers: Vec<usize>,
    /// What is passed on to the last of them, if its history is read later.
    past: Option<Node>,
    /// Whether something has been added to a first value before the loop.
    has_begun: bool,
}

/// The names of a first value in a loop that is being swept.
pub(super) struct Group {
    region: Region,
    first: Node,
    /// The entry φs that stand for it, each in the iteration of that number.
    names: Vec<(Node, u32)>,
    /// Whether what is added to a name belongs to the others, too.
    is_shared: bool,
}

/// What is passed on to an entry φ.
enum Next {
    /// The entry φ of the same loop with this number.
    Entry(usize),
    /// Something else, if it is always the same.
    Other(Option<Node>),
    /// Now an entry φ, then something else.
    Unclear,
}

/// How many iterations later entry φs of `region` may still stand for what `node` was in
/// one, if the loop has one end.
fn longest_chain(graph: &Graph, region: Region, node: Node) -> u32 {
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

/// For each node whose history is read how many sums there are before those of its
/// iterations.
pub(super) fn leads(activity: &Activity<'_>) -> Array<Node, u32> {
    let graph = activity.graph;
    let mut leads = Array::filled(0, graph.nodes.len());
    for (region, pasts) in activity.pasts.iter() {
        for &past in pasts {
            leads[past] = longest_chain(graph, region, past);
        }
    }
    leads
}

impl Running {
    /// Whether the entry φ with this number goes on with the sum of its first value.
    pub(super) fn goes_on_with(&self, number: usize) -> bool {
        self.goes_on.contains(&number)
    }
}

impl Order {
    /// Whether what is added to `node` is at once added to others.
    pub(super) fn is_named(&self, node: Node) -> bool {
        let has = |group: &Group| {
            group.first == node
                || group.is_shared && group.names.iter().any(|&(name, _)| name == node)
        };
        self.groups.iter().any(has)
    }
}

impl Reverse<'_> {
    /// What the entry φs of `region` will begin with, of which `reached` get adjoints.
    pub(super) fn running(&self, region: Region, reached: &[usize], opened: &Opened) -> Running {
        let groups = self.order.groups.len();
        if !self.order.is_exact {
            return Running::default();
        }
        let mut running =
            Running { chains: self.chains(region, reached), groups, ..Running::default() };
        let entries = self.graph.entries(region);
        let last = self.last(region);
        for chain in &mut running.chains {
            for (&number, at) in chain.numbers.iter().zip(0..) {
                let first = entries[number].first;
                let same = reached.iter().filter(|&&other| entries[other].first == first);
                let fits = match self.has_sum(first) {
                    true => same.count() == 1 && self.is_only_opened(region, first, opened),
                    false => !self.is_in_row(region, first),
                };
                let exists = at == 0 || last.is_some_and(|last| last >= at);
                if fits && exists && self.is_plain(first) {
                    running.goes_on.push(number);
                    chain.has_begun |= self.adjoints.get(first).is_some();
                }
            }
        }
        running
    }

    /// The chains of entry φs of `region` that are `reached`; none for those that no
    /// such rule holds for.
    fn chains(&self, region: Region, reached: &[usize]) -> Vec<Chain> {
        let nexts: Vec<Next> = reached.iter().map(|&number| self.next(region, number)).collect();
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
            while let Some(number) = at {
                let place = reached.binary_search(&number).ok();
                // Two that pass on to the same one are refused in any case.
                is_clear &= numbers.len() < reached.len()
                    && passes_to(number).count() == usize::from(number != head)
                    && self.past_sums(entries[number].phi).is_none();
                let Some(place) = place.filter(|_| is_clear) else {
                    is_clear = false;
                    break;
                };
                numbers.push(number);
                at = match nexts[place] {
                    Next::Entry(next) => Some(next),
                    Next::Other(next) => {
                        past = next;
                        None
                    }
                    Next::Unclear => {
                        is_clear = false;
                        None
                    }
                };
            }
            let is_past = |&node: &Node| {
                self.past_sums(node).is_some()
                    && self.last(region).is_some()
                    && self.activity.nest.node_loop(node) == Some(region)
            };
            if is_clear {
                let fits = |&past: &Node| self.order.lead[past] as usize >= numbers.len();
                let past = past.filter(is_past).filter(fits);
                chains.push(Chain { numbers, past, has_begun: false });
            }
        }
        chains
    }

    fn next(&self, region: Region, number: usize) -> Next {
        let entry = |node: Node| match self.graph.nodes[node].def {
            Def::Entry(of, number) if of == region => Some(number as usize),
            _ => None,
        };
        let nexts: Vec<Node> = self.activity.nexts(region, number).collect();
        match nexts.split_first() {
            None => Next::Other(None),
            Some((&next, others)) if others.iter().all(|&other| other == next) => match entry(next)
            {
                Some(number) => Next::Entry(number),
                None => Next::Other(Some(next)),
            },
            Some(_) if nexts.iter().any(|&next| entry(next).is_some()) => Next::Unclear,
            Some(_) => Next::Other(None),
        }
    }

    /// Whether an entry φ can go on with the sum of `first`, as far as that itself goes.
    fn is_plain(&self, first: Node) -> bool {
        self.activity.active[first] && self.direct(first).is_none() && !self.order.is_named(first)
    }

    /// Whether the adjoint of `first` is in `opened`, sums that nothing in `region` adds
    /// to there: while it is in sums it cannot be read.
    fn is_only_opened(&self, region: Region, first: Node, opened: &Opened) -> bool {
        let is_name = |group: &Group| group.names.iter().any(|&(name, _)| name == first);
        self.is_opened(opened, first)
            && !self.may_read(region, first)
            && !self.is_used_in(region, first)
            && !self.order.groups.iter().any(is_name)
    }

    /// The first values that several entry φs of `region` go on with.
    pub(super) fn shared_firsts(&self, region: Region, running: &Running) -> Vec<Node> {
        let entries = self.graph.entries(region);
        let firsts: Vec<Node> =
            running.goes_on.iter().map(|&number| entries[number].first).collect();
        let is_again = |&(index, first): &(usize, &Node)| firsts[..index].contains(first);
        let mut shared: Vec<Node> =
            firsts.iter().enumerate().filter(is_again).map(|(_, &first)| first).collect();
        shared.sort_unstable();
        shared.dedup();
        shared
    }

    /// Whether an element that is read in `region` by an index that changes may be
    /// `node`.
    fn is_in_row(&self, region: Region, node: Node) -> bool {
        let graph = self.graph;
        graph.nodes.iter().any(|(element, data)| match data.def {
            Def::Element(access) if self.activity.is_inside(element, region) => {
                match &graph.series[graph.accesses[access].series] {
                    SeriesData::Nodes(nodes) => nodes.contains(&node),
                    _ => false,
                }
            }
            _ => false,
        })
    }

    /// What entry φ `number` of `region` gets in the last iteration, as if there were
    /// another one, of what is read later.
    pub(super) fn past_of_last(
        &mut self,
        region: Region,
        number: usize,
        running: &Running,
    ) -> Option<Node> {
        let (past, back) = running.chains.iter().find_map(|chain| {
            let at = chain.numbers.iter().position(|&other| other == number)?;
            Some((chain.past?, chain.numbers.len() - at))
        })?;
        let series = self.past_sums(past)?;
        let base = (self.last(region)? + 1 + self.order.lead[past]).checked_sub(back as u32)?;
        Some(self.builder.element(AccessData { series, base, strides: Default::default() }))
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
        for chain in &running.chains {
            let Some(&head) = chain.numbers.first() else { continue };
            let mut begin = chain.past.and_then(|past| {
                let (series, length) = (self.past_sums(past)?, chain.numbers.len() as u32);
                let base = self.order.lead[past].checked_sub(length)?;
                let strides = core::iter::once((copy, 1)).collect();
                Some(self.builder.element(AccessData { series, base, strides }))
            });
            for (&number, at) in chain.numbers.iter().zip(0..) {
                if !running.goes_on.contains(&number) {
                    continue;
                }
                if let Some(sum) = self.adjoints.get(entries[number].first) {
                    let other = begin.unwrap_or_else(|| self.builder.constant(0.0));
                    let is_at = self.is_at(region, at);
                    begin = Some(self.builder.apply(Op::Select, &[is_at, sum, other]));
                }
            }
            if let Some(begin) = begin {
                self.adjoints.set(entries[head].phi, begin);
            }
        }
        self.name_firsts(region, running);
    }

    /// Notes the names of the first values of `region`.
    fn name_firsts(&mut self, region: Region, running: &Running) {
        let entries = self.graph.entries(region);
        for chain in &running.chains {
            for (at, &number) in chain.numbers.iter().enumerate() {
                if !running.goes_on.contains(&number) {
                    continue;
                }
                let first = entries[number].first;
                let names = chain.numbers[..=at].iter().rev().zip(0..);
                let names = names.map(|(&number, at)| (entries[number].phi, at));
                let known = self.order.groups[running.groups..].iter_mut();
                match known.into_iter().find(|group| group.first == first) {
                    Some(group) => {
                        group.names.extend(names);
                        group.is_shared = true;
                    }
                    None => {
                        let (names, is_shared) = (names.collect(), false);
                        self.order.groups.push(Group { region, first, names, is_shared });
                    }
                }
            }
        }
        // Elements of rows do not know that they have other names.
        let is_in_series = |node: Node| {
            self.graph.series.values().any(|series| match series {
                SeriesData::Nodes(nodes) => nodes.contains(&node),
                _ => false,
            })
        };
        let shared = self.order.groups[running.groups..].iter().filter(|group| group.is_shared);
        if shared.flat_map(|group| &group.names).any(|&(name, _)| is_in_series(name)) {
            self.order.refuse(region);
        }
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

    /// Adds what was added to `node` to what stands for the same.
    pub(super) fn add_to_names(&mut self, node: Node, passed: Node) {
        if self.order.groups.is_empty() {
            return;
        }
        let mut pending = vec![(node, passed, None)];
        while let Some((node, passed, from)) = pending.pop() {
            for (to, region, at) in self.names(node, from) {
                let (is_at, nothing) = (self.is_at(region, at), self.builder.constant(-0.0));
                let passed = self.builder.apply(Op::Select, &[is_at, passed, nothing]);
                self.add_to_one(to, passed);
                pending.push((to, passed, Some(region)));
            }
        }
    }

    /// What stands for the same as `node`, each in an iteration of a loop, other than
    /// the one that it was found by.
    pub(super) fn names(&self, node: Node, from: Option<Region>) -> Vec<(Node, Region, u32)> {
        let mut found = Vec::new();
        for group in self.order.groups.iter().filter(|group| Some(group.region) != from) {
            let region = group.region;
            if group.first == node {
                found.extend(group.names.iter().map(|&(name, at)| (name, region, at)));
            } else if group.is_shared {
                for &(_, at) in group.names.iter().filter(|&&(name, _)| name == node) {
                    found.push((group.first, region, at));
                    let others = group.names.iter().filter(|&&other| other.1 == at);
                    let others = others.filter(|&&(other, _)| other != node);
                    found.extend(others.map(|&(other, at)| (other, region, at)));
                }
            }
        }
        found
    }

    /// Ends what [`Reverse::begin_running`] began.
    pub(super) fn end_running(&mut self, running: &Running) {
        self.order.groups.truncate(running.groups);
    }

    /// Makes the adjoint of entry φ `number` of `region`, which has been swept, that of
    /// its first value, if it went on with that.
    pub(super) fn go_on_with(
        &mut self,
        region: Region,
        number: usize,
        adjoint: Node,
        running: &Running,
    ) -> bool {
        if !running.goes_on.contains(&number) {
            return false;
        }
        let first = self.graph.entries(region)[number].first;
        self.adjoints.set(first, adjoint);
        true
    }

    /// Whether what `value`, passed on in the last iteration of `region`, has collected
    /// behind the loop comes before all that is in the adjoint of `value`.
    pub(super) fn is_before_running(&self, region: Region, value: Node, carried: &Carried) -> bool {
        let Def::Entry(of, number) = self.graph.nodes[value].def else { return true };
        let chains = &carried.running.chains;
        let found = chains.iter().find_map(|chain| {
            let at = chain.numbers.iter().position(|&other| other == number as usize)?;
            Some((chain, chain.numbers.len() - at))
        });
        match found.filter(|_| of == region) {
            // It is a first value only if there are few iterations.
            Some((chain, back)) => {
                let is_later = self.last(region).is_some_and(|last| last as usize >= back);
                chain.past.is_none() && (is_later || !chain.has_begun)
            }
            None => true,
        }
    }
}
