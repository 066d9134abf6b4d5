//! The ways through an iteration of a loop, and how each ends.

use std::collections::BTreeSet;

use hashbrown::{HashMap, HashSet};

use super::body::is_counted;
use super::edit::Edit;
use super::emit::Emitter;
use super::form::{Base, Coefficient, Form, Forms, NONLINEAR};
use crate::op::Op;
use crate::phi::pair::Pairs;
use crate::ssa::{Access, Block, Def, End, Graph, Item, Node, NodeData, Region, SeriesData};

/// A loop that carries more numbers is not looked at.
const MOST_CARRIED: usize = 64;

const INNER: &str = "it depends on what an inner region comes to";
const BEFORE: &str = "it depends on what was carried before";

/// Whether there is another iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Again {
    Never,
    Always,
    /// This node decides.
    Open(Node),
}

impl Again {
    pub(super) fn goes_on(self) -> bool {
        self != Again::Never
    }

    pub(super) fn ends(self) -> bool {
        self != Again::Always
    }
}

/// An end of the tree of a loop.
pub(super) struct Leaf {
    pub(super) block: Block,
    pub(super) again: Again,
    /// What the entry φs are next.
    pub(super) nexts: Vec<Node>,
    /// What the φs are if the loop ends here.
    pub(super) values: Vec<Node>,
}

/// A loop with all its ways.
pub(super) struct Ways {
    pub(super) region: Region,
    pub(super) bound: u32,
    /// The entry φs with their first values.
    pub(super) entries: Vec<(Node, Node)>,
    pub(super) leaves: Vec<Leaf>,
    /// The nodes that its blocks compute, in order, and φs of regions in them.
    steps: Vec<Node>,
    /// All that is computed in the loop, at any depth.
    inside: HashSet<Node>,
    /// Whether it has guards or branches of its own.
    decides: bool,
}

impl Ways {
    pub(super) fn of(edit: &Edit, region: Region) -> Result<Ways, &'static str> {
        let graph = &edit.graph;
        let data = &graph.regions[region];
        let Some(cycle) = data.cycle.as_ref().filter(|_| data.replays.is_none()) else {
            return Err("it is no loop");
        };
        let entry = |entry: &crate::ssa::Entry| (entry.phi, edit.resolved(entry.first));
        let entries: Vec<(Node, Node)> = cycle.entries.iter().map(entry).collect();
        if entries.len() > MOST_CARRIED {
            return Err("it carries too many numbers");
        }
        let mut ways = Ways {
            region,
            bound: cycle.bound,
            inside: entries.iter().map(|&(phi, _)| phi).collect(),
            entries,
            leaves: Vec::new(),
            steps: Vec::new(),
            decides: false,
        };
        ways.collect(edit, data.root)?;
        if !ways.leaves.iter().any(|leaf| leaf.again.goes_on()) || ways.ends().next().is_none() {
            return Err("it has no other iteration, or no end");
        }
        Ok(ways)
    }

    fn collect(&mut self, edit: &Edit, root: Block) -> Result<(), &'static str> {
        let graph = &edit.graph;
        let (mut blocks, mut inner) = (vec![root], Vec::new());
        while let Some(block) = blocks.pop() {
            for item in &graph.blocks[block].items {
                match *item {
                    Item::Node(node) => self.steps.push(node),
                    Item::Region(region) => {
                        self.steps.extend(&graph.regions[region].phis);
                        inner.push(region);
                    }
                    Item::Guard { .. } => self.decides = true,
                    Item::Fill(_) | Item::Accumulate(..) => return Err("it adds to sums"),
                }
            }
            match &graph.blocks[block].end {
                End::Branch { then, otherwise, .. } => {
                    self.decides = true;
                    blocks.extend([*otherwise, *then]);
                }
                End::Return(passed) => {
                    let passed: Vec<Node> = passed.iter().map(|&n| edit.resolved(n)).collect();
                    let again = match graph.constant(passed[0]) {
                        Some(0.0) => Again::Never,
                        Some(_) => Again::Always,
                        None => Again::Open(passed[0]),
                    };
                    let (nexts, values) = passed[1..].split_at(self.entries.len());
                    let (nexts, values) = (nexts.to_vec(), values.to_vec());
                    self.leaves.push(Leaf { block, again, nexts, values });
                }
                End::Open => return Err("it is not complete"),
            }
        }
        self.inside.extend(&self.steps);
        while let Some(region) = inner.pop() {
            self.inside.extend(graph.entries(region).iter().map(|entry| entry.phi));
            self.inside.extend(&graph.regions[region].phis);
            let mut blocks = vec![graph.regions[region].root];
            while let Some(block) = blocks.pop() {
                for item in &graph.blocks[block].items {
                    match *item {
                        Item::Node(node) => _ = self.inside.insert(node),
                        Item::Region(region) => inner.push(region),
                        Item::Guard { .. } => {}
                        Item::Fill(_) | Item::Accumulate(..) => return Err("it adds to sums"),
                    }
                }
                if let End::Branch { then, otherwise, .. } = graph.blocks[block].end {
                    blocks.extend([then, otherwise]);
                }
            }
        }
        Ok(())
    }

    /// The leaves where the loop may end.
    pub(super) fn ends(&self) -> impl Iterator<Item = &Leaf> {
        self.leaves.iter().filter(|leaf| leaf.again.ends())
    }

    /// Whether the loop is gone through as often as its bound says, whatever comes out.
    pub(super) fn is_counted(&self, graph: &Graph) -> bool {
        self.leaves.iter().all(|leaf| match leaf.again {
            Again::Open(again) => is_counted(graph, self.region, again, self.bound - 1),
            Again::Never => false,
            Again::Always => true,
        })
    }

    /// Whether nothing of it is left if nothing that is carried is wanted.
    pub(super) fn is_idle(&self, graph: &Graph) -> bool {
        self.is_counted(graph) && !self.decides
    }

    /// What a state is next, if that is the same node on all ways.
    pub(super) fn common_next(&self, state: usize) -> Option<Node> {
        let mut nexts = self.leaves.iter().filter(|leaf| leaf.again.goes_on());
        let first = nexts.next()?.nexts[state];
        nexts.all(|leaf| leaf.nexts[state] == first).then_some(first)
    }

    /// The nodes of the loop that `goals` depend on, also by way of iterations before,
    /// and the numbers of the entry φs among them.
    pub(super) fn closure(
        &self,
        edit: &Edit,
        graph: &Graph,
        goals: Vec<Node>,
    ) -> (HashSet<Node>, BTreeSet<usize>) {
        let (mut nodes, mut states, mut pending) = (HashSet::new(), BTreeSet::new(), goals);
        while let Some(node) = pending.pop() {
            if !self.inside.contains(&node) || !nodes.insert(node) {
                continue;
            }
            match graph.nodes[node].def {
                Def::Entry(region, number) if region == self.region => {
                    states.insert(number as usize);
                    let goes_on = self.leaves.iter().filter(|leaf| leaf.again.goes_on());
                    pending.extend(goes_on.map(|leaf| leaf.nexts[number as usize]));
                }
                _ => {
                    let args = graph.nodes[node].args().iter();
                    pending.extend(args.map(|&arg| edit.resolved(arg)));
                }
            }
        }
        (nodes, states)
    }

    /// Whether `nodes` are such as affine forms are made of; why not.
    pub(super) fn may_be_affine(
        &self,
        graph: &Graph,
        nodes: impl Iterator<Item = Node>,
    ) -> Result<(), &'static str> {
        for node in nodes {
            match graph.nodes[node].def {
                Def::Apply(Op::Add | Op::Sub | Op::Neg | Op::Mul | Op::MulAdd | Op::Div, _) => {}
                // It may be the same in all iterations.
                Def::Apply(_, _) if !self.depends_on_state(graph, node) => {}
                Def::Apply(..) => return Err(NONLINEAR),
                Def::Element(access) => {
                    let strides = &graph.accesses[access].strides;
                    if strides.iter().any(|&(region, _)| region == self.region) {
                        return Err("it depends on elements that change");
                    }
                }
                Def::Phi(..) | Def::Call(_) | Def::Result(..) => return Err(INNER),
                Def::Entry(..) | Def::Iteration(_) | Def::Input(_) | Def::Const(_) => {}
            }
        }
        Ok(())
    }

    /// Whether an iteration computes `node` from what is carried.
    fn depends_on_state(&self, graph: &Graph, node: Node) -> bool {
        let (mut seen, mut pending) = (HashSet::new(), vec![node]);
        while let Some(node) = pending.pop() {
            if !self.inside.contains(&node) || !seen.insert(node) {
                continue;
            }
            match graph.nodes[node].def {
                Def::Apply(..) => pending.extend(graph.nodes[node].args()),
                _ => return true,
            }
        }
        false
    }

    /// Finds the forms of the nodes of the loop that are needed, but for those that are
    /// known already.
    pub(super) fn learn(
        &self,
        edit: &Edit,
        forms: &mut Forms<'_, '_>,
        is_needed: impl Fn(Node) -> bool,
    ) {
        for &node in &self.steps {
            if !is_needed(node) || forms.known.contains_key(&node) {
                continue;
            }
            match forms.emitter.graph.nodes[node].def {
                Def::Element(access) if self.reads_inside(forms.emitter.graph, access) => {
                    forms.known.insert(node, Form::Other(INNER));
                }
                _ => forms.learn(node, |node| edit.resolved(node)),
            }
        }
    }

    fn reads_inside(&self, graph: &Graph, access: Access) -> bool {
        match &graph.series[graph.accesses[access].series] {
            SeriesData::Constants(_) | SeriesData::Inputs { .. } => false,
            SeriesData::Nodes(nodes) => nodes.iter().any(|node| self.inside.contains(node)),
            SeriesData::History(node) => self.inside.contains(node),
            SeriesData::Sums(_) | SeriesData::Outputs { .. } => true,
        }
    }

    /// The states that after each iteration follow from other ones, with their forms: as
    /// what has been computed of a number for the decision, and is carried with it.
    pub(super) fn dependent(
        &self,
        edit: &Edit,
        emitter: &mut Emitter<'_>,
        states: &BTreeSet<usize>,
    ) -> Vec<(usize, Form)> {
        let mut found: Vec<(usize, Form)> = Vec::new();
        for &state in states {
            let Some(goal) = self.common_next(state).filter(|next| self.inside.contains(next))
            else {
                continue;
            };
            let one = emitter.number(1.0, 0.0);
            let times = self.bound as usize;
            let mut forms = Forms::new(emitter, self.region, times, HashMap::new());
            for (number, &(phi, _)) in self.entries.iter().enumerate() {
                forms.known.insert(phi, Form::Other(BEFORE));
                let is_other = number != state && found.iter().all(|&(other, _)| other != number);
                if let Some(next) = self.common_next(number)
                    && is_other
                    && next != goal
                    && self.steps.contains(&next)
                {
                    let form = [(Base::State(number), Coefficient::Fixed(one))].into();
                    forms.known.insert(next, Form::Affine(form));
                }
            }
            let mut needed = HashSet::new();
            let mut pending = vec![goal];
            while let Some(node) = pending.pop() {
                if self.inside.contains(&node)
                    && !forms.known.contains_key(&node)
                    && needed.insert(node)
                {
                    let args = forms.emitter.graph.nodes[node].args().iter();
                    pending.extend(args.map(|&arg| edit.resolved(arg)));
                }
            }
            self.learn(edit, &mut forms, |node| needed.contains(&node));
            let form = forms.find(goal);
            // A number that does not change is a state like others.
            let follows = |form: &Form| match form {
                Form::Affine(form) => form.iter().all(|(base, coefficient)| {
                    matches!(coefficient, Coefficient::Fixed(_))
                        && matches!(base, Base::State(of) if states.contains(of))
                        || matches!((base, coefficient), (Base::Node(_), Coefficient::Fixed(_)))
                }),
                _ => false,
            };
            if follows(&form) {
                found.push((state, form));
            }
        }
        // What one of them follows from is carried on.
        let is_gone = |of: usize, found: &[(usize, Form)]| found.iter().any(|&(s, _)| s == of);
        let clean = |form: &Form, found: &[(usize, Form)]| match form {
            Form::Affine(form) => {
                form.keys().all(|base| !matches!(base, Base::State(of) if is_gone(*of, found)))
            }
            _ => false,
        };
        let all = found.clone();
        found.retain(|(_, form)| clean(form, &all));
        found
    }

    /// What `states` are after the first iteration, as straight code.
    pub(super) fn first(
        &self,
        edit: &Edit,
        emitter: &mut Emitter<'_>,
        states: &[usize],
    ) -> Result<HashMap<usize, Node>, &'static str> {
        let goals: Option<Vec<Node>> = states.iter().map(|&s| self.common_next(s)).collect();
        let goals = goals.ok_or("its ways carry different forms on")?;
        let mut needed = HashSet::new();
        let mut pending = goals.clone();
        while let Some(node) = pending.pop() {
            if self.inside.contains(&node) && needed.insert(node) {
                let args = emitter.graph.nodes[node].args().iter();
                pending.extend(args.map(|&arg| edit.resolved(arg)));
            }
        }
        let mut copies: HashMap<Node, Node> = self.entries.iter().copied().collect();
        let zero = emitter.constant(0.0);
        let copied =
            |copies: &HashMap<Node, Node>, graph: &Graph, node: Node| match graph.nodes[node].def {
                Def::Iteration(region) if region == self.region => zero,
                _ => copies.get(&node).copied().unwrap_or(node),
            };
        for &node in self.steps.iter().filter(|node| needed.contains(*node)) {
            let copy = match emitter.graph.nodes[node].def {
                Def::Apply(op, args) => {
                    let graph = &*emitter.graph;
                    let args = args[..op.arity()].iter().map(|&arg| edit.resolved(arg));
                    let args: Vec<Node> = args.map(|arg| copied(&copies, graph, arg)).collect();
                    emitter.apply(op, &args)
                }
                Def::Element(access) => {
                    let data = &emitter.graph.accesses[access];
                    let is_own = data.strides.iter().any(|&(region, _)| region == self.region);
                    if is_own || self.reads_inside(emitter.graph, access) {
                        return Err("it depends on elements that change");
                    }
                    emitter.element(access)
                }
                _ => return Err(INNER),
            };
            copies.insert(node, copy);
        }
        let goals = states.iter().zip(goals);
        Ok(goals.map(|(&s, goal)| (s, copied(&copies, emitter.graph, goal))).collect())
    }

    /// A φ of the number of iterations before the last one, and of those that each end
    /// counts `offsets` besides, without the first `peeled`.
    pub(super) fn count(&self, graph: &mut Graph, offsets: &[Option<u32>], peeled: u32) -> Node {
        let is_number = |(_, data): &(Node, &NodeData)| data.def == Def::Iteration(self.region);
        let number = graph.nodes.iter().find(is_number).map(|(node, _)| node);
        let number = number.unwrap_or_else(|| graph.push_iteration(self.region));
        let one = graph.push_const(1.0f64.to_bits());
        let place = graph.regions[self.region].place;
        let value = |graph: &mut Graph, block, offset: Option<u32>| match offset {
            Some(offset) if offset > peeled => {
                graph.push_apply(block, Op::Add, &[number, one], place)
            }
            _ => number,
        };
        self.passed_out(graph, offsets, value)
    }

    /// A φ that is 1 where there is an offset, and 0 at the other ends.
    pub(super) fn indicator(&self, graph: &mut Graph, offsets: &[Option<u32>]) -> Node {
        let [no, yes] = [0.0, 1.0f64].map(|number| graph.push_const(number.to_bits()));
        self.passed_out(graph, offsets, |_, _, offset| if offset.is_some() { yes } else { no })
    }

    /// Another φ, which has this value at each of its ends.
    fn passed_out(
        &self,
        graph: &mut Graph,
        offsets: &[Option<u32>],
        value: impl Fn(&mut Graph, Block, Option<u32>) -> Node,
    ) -> Node {
        let nothing = graph.push_const(0);
        let mut offsets = offsets.iter();
        for leaf in &self.leaves {
            let passed = match leaf.again.ends() {
                true => {
                    let offset = offsets.next().copied().flatten();
                    value(graph, leaf.block, offset)
                }
                false => nothing,
            };
            if let End::Return(values) = &mut graph.blocks[leaf.block].end {
                values.push(passed);
            }
        }
        graph.push_phi(self.region)
    }
}
