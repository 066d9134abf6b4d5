//! The merged traces as a decision tree: basic blocks for the function and for each region
//! instance.
//!
//! Unlike in the graph, adding a path changes nothing else: a region is the end of a basic block,
//! and for each exit of the region there is a tail, the basic block after it. `emit` makes the
//! graph.

use hashbrown::HashMap;
use smallvec::SmallVec;

use super::log::Log;
use super::repeat::{Repeat, RepeatId};
use super::values::Values;
use crate::entity::{Entity, PrimaryMap, entity};
use crate::op::{MAX_ARITY, Op};
use crate::trace::{Site, Worth};

entity!(
    /// A value on some path through the function.
    Value,
    "m"
);

entity!(
    /// A basic block: steps without a branch.
    BasicBlock,
    "s"
);

entity!(
    /// An instance of a region: a region of the user's code on some path.
    Instance,
    "j"
);

/// The definition of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    Input(u32),
    Const(u64),
    /// A primitive and its operands; entries beyond the arity repeat the first.
    Apply(Op, [Value; MAX_ARITY], Site),
    /// Carried out of a region by one of its exits.
    Carried,
    /// Computed in a loop.
    Repeated,
}

/// One step of a basic block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Value(Value),
    Guard {
        condition: Value,
        expect: bool,
    },
    /// A loop.
    Repeat(RepeatId),
}

/// The end of a basic block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The continuation is unknown.
    Open,
    /// The function returns.
    Return(Value),
    /// Branches on a condition.
    Branch { condition: Value, then: BasicBlock, otherwise: BasicBlock },
    /// Runs a region, then the tail of the exit that it takes.
    Region { instance: Instance, tails: SmallVec<[BasicBlock; 1]> },
    /// Exits the region by this exit, carrying these values.
    Exit { exit: usize, values: SmallVec<[Value; 4]> },
}

/// A basic block: steps, then an end.
#[derive(Clone, Debug)]
pub(super) struct StretchData {
    /// True if a trace took it, false if it was copied.
    pub(super) is_walked: bool,
    /// The version of the tree that created it.
    pub(super) born: u64,
    /// If it was created with an open end: the version that last extended it, and the number of
    /// steps before that.
    pub(super) grown: Option<(u64, usize)>,
    pub(super) steps: Vec<Step>,
    /// The number of steps, those in loops counted once for each iteration.
    weight: usize,
    pub(super) end: End,
}

/// The identity of an exit.
///
/// Two paths out of a region are the same exit if they lead to one point of the program with equal
/// live static state; the continuation then depends on the carried values only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ExitKey {
    pub(super) to: Target,
    /// The static state at the target.
    pub(super) state: SmallVec<[u64; 4]>,
    /// The number of carried values.
    pub(super) carried: usize,
}

/// The target of an exit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// Its own end.
    Join,
    /// The next iteration, if the region is the body of a loop.
    Iterate,
    /// An exit of the region around it.
    Outer(usize),
}

/// An exit of a region.
#[derive(Clone, Debug)]
pub(super) struct Exit {
    pub(super) key: ExitKey,
    /// The carried values, by their names outside.
    pub(super) carried: SmallVec<[Value; 4]>,
}

/// A region, or one iteration of a loop.
#[derive(Clone, Debug)]
pub(super) struct MeetingData {
    pub(super) site: Site,
    pub(super) root: BasicBlock,
    pub(super) exits: Vec<Exit>,
    /// The number of values that are older than it.
    pub(super) born: usize,
    /// The instance that it is inside of.
    pub(super) parent: Option<Instance>,
    /// The number of instances of the same region around it, by recursion.
    pub(super) recursion: u32,
    /// True if paths were copied from or to it.
    pub(super) is_shared: bool,
    /// The basic block that ends with it.
    pub(super) home: Option<BasicBlock>,
    pub(super) live_in: Knowledge,
    pub(super) for_jumps: Knowledge,
    /// The targets of its jumps: the regions to whose ends they lead, in the order of the code;
    /// `None` for regions that are not merged.
    pub(super) goals: SmallVec<[Option<Instance>; 1]>,
}

/// The live-in values of an instance, as far as walks have seen them.
#[derive(Clone, Debug)]
pub(super) enum Knowledge {
    /// Unknown, or not completely known.
    Nothing,
    LiveIn(LiveIn),
    /// Different walks had different ones.
    Varying,
}

/// The live-in values of an instance: all that its code names.
///
/// The live-in values of an iteration are those carried to the head of the loop: all that changes
/// in the loop. Other values are the same for all iterations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LiveIn {
    /// The loop, for an iteration of one.
    pub(super) of: Option<Instance>,
    /// The static state, or a hash of it.
    pub(super) state: SmallVec<[u64; 4]>,
    /// The traced values, in the order of the code.
    pub(super) captured: Vec<Value>,
}

impl LiveIn {
    /// Tests for equality.
    pub(super) fn is(&self, of: Option<Instance>, state: &[u64], captured: &[Value]) -> bool {
        self.of == of && self.state[..] == *state && self.captured == captured
    }
}

/// The largest number of steps for which all iterations of split loops are emitted: graphs of this
/// size are made in some hundredths of a second.
const FLAT: usize = 1 << 20;

/// The merged traces.
#[derive(Clone, Debug)]
pub(super) struct Tree {
    pub(super) values: Values,
    pub(super) repeats: Log<RepeatId, Repeat>,
    pub(super) basic_blocks: Log<BasicBlock, StretchData>,
    pub(super) instances: Log<Instance, MeetingData>,
    constants: HashMap<u64, Value>,
    /// The number of guards outside regions that were seen with both outcomes.
    pub(super) splits: usize,
    /// True if paths were copied between instances.
    pub(super) is_shared: bool,
    /// The version under construction, or the latest one.
    pub(super) version: u64,
    pub(super) active: usize,
    pub(super) inactive: usize,
    /// The size from which repetition becomes a loop.
    pub(super) worth: Worth,
    /// The largest number of steps for which all iterations of split loops are emitted.
    pub(super) flat: usize,
    /// The state at the beginning of the transaction.
    before: Before,
}

/// The part of the state that is copied at the beginning of a transaction.
#[derive(Clone, Copy, Debug, Default)]
struct Before {
    splits: usize,
    is_shared: bool,
    version: u64,
}

impl Tree {
    /// A tree with these inputs and one open basic block.
    pub(super) fn new(active: usize, inactive: usize, version: u64) -> Self {
        let mut tree = Tree {
            values: (0..active + inactive).map(|i| Origin::Input(i as u32)).collect(),
            repeats: Log::new(),
            basic_blocks: Log::new(),
            instances: Log::new(),
            constants: HashMap::new(),
            splits: 0,
            is_shared: false,
            version,
            active,
            inactive,
            worth: Worth::DEFAULT,
            flat: FLAT,
            before: Before::default(),
        };
        tree.new_stretch();
        tree
    }

    /// Begins a transaction.
    pub(super) fn begin(&mut self) {
        let Tree { splits, is_shared, version, .. } = *self;
        self.before = Before { splits, is_shared, version };
        self.values.begin();
        self.repeats.begin();
        self.basic_blocks.begin();
        self.instances.begin();
    }

    /// Keeps the changes.
    pub(super) fn keep(&mut self) {
        self.values.keep();
        self.repeats.keep();
        self.basic_blocks.keep();
        self.instances.keep();
    }

    /// Undoes the changes.
    pub(super) fn undo(&mut self) {
        for origin in self.values.newer() {
            if let Origin::Const(bits) = origin {
                self.constants.remove(bits);
            }
        }
        self.values.undo();
        self.repeats.undo();
        self.basic_blocks.undo();
        self.instances.undo();
        let Before { splits, is_shared, version } = self.before;
        (self.splits, self.is_shared, self.version) = (splits, is_shared, version);
    }

    /// An empty tree with as many inputs, for this version.
    pub(super) fn anew(&self, version: u64) -> Tree {
        let Tree { worth, flat, .. } = *self;
        Tree { worth, flat, ..Tree::new(self.active, self.inactive, version) }
    }

    pub(super) fn root(&self) -> BasicBlock {
        BasicBlock::from_index(0)
    }

    pub(super) fn new_stretch(&mut self) -> BasicBlock {
        self.basic_blocks.push(StretchData {
            is_walked: false,
            born: self.version,
            grown: None,
            steps: Vec::new(),
            weight: 0,
            end: End::Open,
        })
    }

    /// Notes that the open end of `basic_block` is about to be extended.
    pub(super) fn grow(&mut self, basic_block: BasicBlock) {
        let (data, version) = (&self.basic_blocks[basic_block], self.version);
        if data.born < version && data.grown.is_none_or(|(last, _)| last < version) {
            let steps = data.steps.len();
            self.basic_blocks[basic_block].grown = Some((version, steps));
        }
    }

    /// Appends a step to `basic_block`.
    pub(super) fn push_step(&mut self, basic_block: BasicBlock, step: Step) {
        let weight = self.weight(&step);
        let data = &mut self.basic_blocks[basic_block];
        data.weight = data.weight.saturating_add(weight);
        data.steps.push(step);
    }

    /// Notes that a trace takes `basic_block`.
    pub(super) fn walk_along(&mut self, basic_block: BasicBlock) {
        if !self.basic_blocks[basic_block].is_walked {
            self.basic_blocks[basic_block].is_walked = true;
        }
    }

    pub(super) fn new_meeting(&mut self, site: Site, parent: Option<Instance>) -> Instance {
        let (root, exits) = (self.new_stretch(), Vec::new());
        let (mut around, mut recursion) = (parent, 0);
        while let Some(instance) = around {
            let data = &self.instances[instance];
            if data.site == site {
                recursion = data.recursion + 1;
                break;
            }
            around = data.parent;
        }
        self.instances.push(MeetingData {
            site,
            root,
            exits,
            born: self.values.len(),
            parent,
            recursion,
            is_shared: false,
            home: None,
            live_in: Knowledge::Nothing,
            for_jumps: Knowledge::Nothing,
            goals: SmallVec::new(),
        })
    }

    pub(super) fn live_in(&self, instance: Instance) -> Option<&LiveIn> {
        match &self.instances[instance].live_in {
            Knowledge::LiveIn(live_in) => Some(live_in),
            Knowledge::Nothing | Knowledge::Varying => None,
        }
    }

    pub(super) fn is_constant(&self, value: Value) -> bool {
        matches!(self.values[value], Origin::Const(_))
    }

    /// The counterpart of `value`, if these captured values correspond.
    pub(super) fn captured(
        &self,
        value: Value,
        pairs: impl Iterator<Item = (Value, Value)>,
    ) -> Option<Value> {
        // A constant may be a literal in the code.
        let literal = matches!(self.values[value], Origin::Const(_)).then_some(value);
        let captured = pairs.filter(|(from, _)| *from == value).map(|(_, to)| to);
        let mut candidates = literal.into_iter().chain(captured);
        let first = candidates.next()?;
        candidates.all(|candidate| candidate == first).then_some(first)
    }

    /// Gives `basic_block` its end.
    pub(super) fn set_end(&mut self, basic_block: BasicBlock, end: End) {
        if let End::Region { instance, .. } = end {
            self.instances[instance].home = Some(basic_block);
        }
        self.basic_blocks[basic_block].end = end;
    }

    /// The exit of `instance` with this key, if there is one.
    pub(super) fn find_exit(&self, instance: Instance, key: &ExitKey) -> Option<usize> {
        self.find_exit_to(instance, key.to, &key.state, key.carried)
    }

    /// The exit of `instance` to this target, with this state and number of values.
    pub(super) fn find_exit_to(
        &self,
        instance: Instance,
        to: Target,
        state: &[u64],
        carried: usize,
    ) -> Option<usize> {
        let is_it = |exit: &Exit| {
            exit.key.to == to && exit.key.carried == carried && exit.key.state[..] == *state
        };
        self.instances[instance].exits.iter().position(is_it)
    }

    pub(super) fn new_exit(&mut self, instance: Instance, key: ExitKey) -> usize {
        let carried = (0..key.carried).map(|_| self.values.push(Origin::Carried)).collect();
        let exits = &mut self.instances[instance].exits;
        exits.push(Exit { key, carried });
        exits.len() - 1
    }

    /// The number of inputs.
    pub(super) fn inputs(&self) -> usize {
        self.active + self.inactive
    }

    pub(super) fn input(&self, index: usize) -> Value {
        Value::from_index(index)
    }

    pub(super) fn constant(&mut self, bits: u64) -> Value {
        let values = &mut self.values;
        *self.constants.entry(bits).or_insert_with(|| values.push(Origin::Const(bits)))
    }

    /// Turns the guard that is step number `step` of `basic_block` into a branch. Returns the new,
    /// open basic block for `outcome`.
    pub(super) fn split(
        &mut self,
        basic_block: BasicBlock,
        step: usize,
        outcome: bool,
    ) -> BasicBlock {
        let (known, new) = (self.new_stretch(), self.new_stretch());
        let (then, otherwise) = if outcome { (new, known) } else { (known, new) };
        let data = &mut self.basic_blocks[basic_block];
        let rest = data.steps.split_off(step + 1);
        let Some(Step::Guard { condition, .. }) = data.steps.pop() else { return new };
        // The steps before the guard have less weight.
        let weight = data.weight;
        let above_weight =
            self.basic_blocks[basic_block].steps.iter().map(|step| self.weight(step)).sum();
        let data = &mut self.basic_blocks[basic_block];
        data.weight = above_weight;
        let branch = End::Branch { condition, then, otherwise };
        let end = core::mem::replace(&mut data.end, branch);
        let (is_walked, born, grown) = (data.is_walked, data.born, data.grown);
        // Extensions before the guard stay with the block.
        let (above, below) = match grown {
            Some((version, at)) if at > step => (None, Some((version, at - step - 1))),
            _ => (grown, None),
        };
        data.grown = above;
        let known_data = &mut self.basic_blocks[known];
        (known_data.is_walked, known_data.grown, known_data.steps) = (is_walked, below, rest);
        known_data.weight = weight.saturating_sub(above_weight).saturating_sub(1);
        known_data.born = above.map_or(born, |(version, _)| version);
        self.set_end(known, end);
        new
    }

    /// Tests whether loops were split and the tree has few steps.
    pub(super) fn has_short_pieces(&self) -> bool {
        let weights = self.basic_blocks.values().map(|basic_block| basic_block.weight);
        self.repeats.values().any(|repeat| repeat.times > 0 && repeat.is_piece)
            && weights.fold(0, usize::saturating_add) <= self.flat
    }

    /// The number of steps on all paths through the function together, where a region counts once
    /// for each path through it. Counts `all` paths, or only those taken by traces.
    pub(super) fn steps(&self, all: bool) -> usize {
        // The blocks to visit with the number of steps above them. A region is summed by itself,
        // because its paths join.
        let mut inner: PrimaryMap<Instance, usize> = PrimaryMap::filled(0, self.instances.len());
        // Inner instances are younger, so their sums are known first.
        let instances: Vec<Instance> = self.instances.keys().collect();
        for &instance in instances.iter().rev() {
            inner[instance] = self.sum(self.instances[instance].root, &inner, false, all);
        }
        self.sum(self.root(), &inner, true, all)
    }

    /// The number of steps in the tree of `root`: of each block once, or along each path.
    fn sum(
        &self,
        root: BasicBlock,
        inner: &PrimaryMap<Instance, usize>,
        ways: bool,
        all: bool,
    ) -> usize {
        let (mut total, mut pending) = (0usize, vec![(root, 0usize)]);
        while let Some((basic_block, above)) = pending.pop() {
            let data = &self.basic_blocks[basic_block];
            if !all && !data.is_walked {
                continue;
            }
            let own = data.weight;
            let below = if ways { above.saturating_add(own) } else { 0 };
            if !ways {
                total = total.saturating_add(own);
            }
            match &data.end {
                End::Branch { then, otherwise, .. } => {
                    pending.extend([(*then, below), (*otherwise, below)]);
                }
                End::Region { instance, tails } => {
                    let inner = inner[*instance];
                    let below = if ways { below.saturating_add(inner) } else { 0 };
                    if !ways {
                        total = total.saturating_add(inner);
                    }
                    pending.extend(tails.iter().map(|&tail| (tail, below)));
                }
                End::Return(_) | End::Exit { .. } | End::Open => {
                    total = total.saturating_add(below);
                }
            }
        }
        total
    }
}
