//! The merged traces as a decision tree: basic blocks for the function and for each region
//! instance.
//!
//! Unlike in the graph, adding a path changes nothing else: a region is the end of a basic block,
//! and for each exit of the region there is a tail, the basic block after it. `emit` makes the
//! graph.

use hashbrown::HashMap;
use smallvec::SmallVec;

use super::sharing_groups::SharingGroups;
use super::step_bound::StepBound;
use super::trace_loop::{TraceLoop, TraceLoopId};
use super::undo_log::UndoLog;
use super::values::Values;
use crate::entity::{Entity, entity};
use crate::op::{MAX_ARITY, Op};
use crate::trace::{Event, LoopThreshold, Role, Site, StateWord};

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
    /// An operation and its operands; entries beyond the arity repeat the first.
    Apply(Applied, [Value; MAX_ARITY], Site),
    /// Carried out of a region by one of its exits.
    Carried,
    /// Computed in a loop.
    InLoop,
}

/// The operation that an event applies to its operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Applied {
    Primitive(Op),
    /// An argument of a custom operation is passed.
    Argument,
    /// An output of a custom operation is taken.
    Output,
}

impl Applied {
    pub(super) fn of(event: &Event<'_>) -> Applied {
        match event.role() {
            Role::Argument => Applied::Argument,
            Role::Output => Applied::Output,
            _ => Applied::Primitive(event.op()),
        }
    }

    pub(super) fn arity(self) -> usize {
        match self {
            Applied::Primitive(op) => op.arity(),
            Applied::Argument | Applied::Output => 2,
        }
    }
}

/// The guard of an escaped value.
pub(super) const SAME: Applied = Applied::Primitive(Op::Same);

/// One step of a basic block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Value(Value),
    Guard {
        condition: Value,
        expect: bool,
    },
    /// A loop.
    Loop(TraceLoopId),
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
pub(super) struct BasicBlockData {
    /// True if a trace took it, false if it was copied.
    pub(super) is_walked: bool,
    /// The version of the tree that created it.
    pub(super) created: u64,
    /// If it was created with an open end: the version that last extended it, and the number of
    /// steps before that.
    pub(super) extension: Option<(u64, usize)>,
    pub(super) steps: Vec<Step>,
    /// The number of steps, those in loops counted once for each iteration.
    pub(super) weight: usize,
    pub(super) end: End,
}

/// The static state at a point.
pub(super) type State = SmallVec<[StateWord; 2]>;

/// The identity of an exit.
///
/// Two paths out of a region are the same exit if they lead to one point of the program with equal
/// live static state; the continuation then depends on the carried values only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ExitKey {
    pub(super) to: Target,
    /// The static state at the target.
    pub(super) state: State,
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
pub(super) struct InstanceData {
    pub(super) site: Site,
    pub(super) root: BasicBlock,
    pub(super) exits: Vec<Exit>,
    /// The number of values that are older than it.
    pub(super) older_values: usize,
    /// The instance that it is inside of.
    pub(super) parent: Option<Instance>,
    /// The number of instances of the same region around it, by recursion.
    pub(super) recursion: u32,
    /// True if paths were copied from or to it.
    pub(super) is_shared: bool,
    /// The basic block that ends with it.
    pub(super) block: Option<BasicBlock>,
    pub(super) live_in: LiveInState,
    pub(super) jump_live_in: LiveInState,
    /// The targets of its jumps: the regions to whose ends they lead, in the order of the code;
    /// `None` for regions that are not merged.
    pub(super) jump_targets: SmallVec<[Option<Instance>; 1]>,
}

/// The live-in values of an instance, as far as walks have seen them.
#[derive(Clone, Debug)]
pub(super) enum LiveInState {
    /// Unknown, or not completely known.
    Unknown,
    Known(LiveIn),
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
    pub(super) state: State,
    /// The traced values, in the order of the code.
    pub(super) captured: Vec<Value>,
}

impl LiveIn {
    /// Tests for equality.
    pub(super) fn is(&self, of: Option<Instance>, state: &[StateWord], captured: &[Value]) -> bool {
        self.of == of && self.state[..] == *state && self.captured == captured
    }
}

/// The largest number of steps for which all iterations of split loops are emitted: graphs of this
/// size are made in some hundredths of a second.
const PEEL_LIMIT: usize = 1 << 20;

/// The merged traces.
#[derive(Clone, Debug)]
pub(super) struct Tree {
    pub(super) values: Values,
    pub(super) loops: UndoLog<TraceLoopId, TraceLoop>,
    pub(super) basic_blocks: UndoLog<BasicBlock, BasicBlockData>,
    pub(super) instances: UndoLog<Instance, InstanceData>,
    constants: HashMap<u64, Value>,
    /// The instances that share paths.
    pub(super) groups: SharingGroups,
    /// The number of guards outside regions that were seen with both outcomes.
    pub(super) splits: usize,
    /// The bound on the number of steps on all paths.
    pub(super) step_bound: StepBound,
    /// The bytes of exits and of live-in values.
    pub(super) instance_bytes: usize,
    /// True if paths were copied between instances.
    pub(super) is_shared: bool,
    /// The version under construction, or the latest one.
    pub(super) version: u64,
    pub(super) active: usize,
    pub(super) inactive: usize,
    /// The size from which repetition becomes a loop.
    pub(super) loop_threshold: LoopThreshold,
    /// The largest number of steps for which all iterations of split loops are emitted.
    pub(super) peel_limit: usize,
    /// The work done so far, in comparisons of two steps (`work.rs`).
    pub(super) work: u64,
    /// The amount of work at which path sharing ends.
    pub(super) most_work: u64,
    /// The state at the beginning of the transaction.
    before: Before,
}

/// The part of the state that is copied at the beginning of a transaction.
#[derive(Clone, Copy, Debug, Default)]
struct Before {
    splits: usize,
    step_bound: StepBound,
    instance_bytes: usize,
    is_shared: bool,
    version: u64,
}

impl Tree {
    /// A tree with these inputs and one open basic block.
    pub(super) fn new(active: usize, inactive: usize, version: u64) -> Self {
        let mut tree = Tree {
            values: (0..active + inactive).map(|i| Origin::Input(i as u32)).collect(),
            loops: UndoLog::new(),
            basic_blocks: UndoLog::new(),
            instances: UndoLog::new(),
            constants: HashMap::new(),
            groups: SharingGroups::default(),
            splits: 0,
            step_bound: StepBound::default(),
            instance_bytes: 0,
            is_shared: false,
            version,
            active,
            inactive,
            loop_threshold: LoopThreshold::DEFAULT,
            peel_limit: PEEL_LIMIT,
            work: 0,
            most_work: u64::MAX,
            before: Before::default(),
        };
        tree.new_basic_block();
        tree
    }

    /// Begins a transaction.
    pub(super) fn begin(&mut self) {
        let Tree { splits, step_bound, instance_bytes, is_shared, version, .. } = *self;
        self.before = Before { splits, step_bound, instance_bytes, is_shared, version };
        self.values.begin();
        self.loops.begin();
        self.basic_blocks.begin();
        self.instances.begin();
    }

    /// Keeps the changes.
    pub(super) fn commit(&mut self) {
        self.values.commit();
        self.loops.commit();
        self.basic_blocks.commit();
        self.instances.commit();
    }

    /// Undoes the changes.
    pub(super) fn roll_back(&mut self) {
        for origin in self.values.newer() {
            if let Origin::Const(bits) = origin {
                self.constants.remove(bits);
            }
        }
        self.values.roll_back();
        self.loops.roll_back();
        self.basic_blocks.roll_back();
        self.instances.roll_back();
        self.groups.note_roll_back();
        let Before { splits, step_bound, instance_bytes, is_shared, version } = self.before;
        (self.splits, self.step_bound, self.instance_bytes) = (splits, step_bound, instance_bytes);
        (self.is_shared, self.version) = (is_shared, version);
    }

    /// An empty tree with as many inputs, for this version.
    pub(super) fn cleared(&self, version: u64) -> Tree {
        let Tree { loop_threshold, peel_limit, work, most_work, .. } = *self;
        Tree {
            loop_threshold,
            peel_limit,
            work,
            most_work,
            ..Tree::new(self.active, self.inactive, version)
        }
    }

    /// The number of basic blocks and instances.
    pub(super) fn size(&self) -> usize {
        self.basic_blocks.len() + self.instances.len()
    }

    /// The approximate size in bytes.
    pub(super) fn bytes(&self) -> usize {
        let values = self.values.origins().len() * (size_of::<Origin>() + size_of::<Step>());
        let basic_blocks = self.basic_blocks.len() * size_of::<BasicBlockData>();
        let instances = self.instances.len() * size_of::<InstanceData>();
        values + basic_blocks + instances + self.instance_bytes
    }

    pub(super) fn root(&self) -> BasicBlock {
        BasicBlock::from_index(0)
    }

    pub(super) fn new_basic_block(&mut self) -> BasicBlock {
        self.basic_blocks.push(BasicBlockData {
            is_walked: false,
            created: self.version,
            extension: None,
            steps: Vec::new(),
            weight: 0,
            end: End::Open,
        })
    }

    /// Notes that the open end of `basic_block` is about to be extended.
    pub(super) fn note_extension(&mut self, basic_block: BasicBlock) {
        let (data, version) = (&self.basic_blocks[basic_block], self.version);
        if data.created < version && data.extension.is_none_or(|(last, _)| last < version) {
            let steps = data.steps.len();
            self.basic_blocks[basic_block].extension = Some((version, steps));
        }
    }

    /// Appends a step to `basic_block`, which is inside a region or not.
    pub(super) fn push_step(&mut self, basic_block: BasicBlock, step: Step, in_region: bool) {
        let weight = self.weight(&step);
        self.step_bound.add_steps(weight, in_region);
        let data = &mut self.basic_blocks[basic_block];
        data.weight = data.weight.saturating_add(weight);
        data.steps.push(step);
    }

    /// Notes that a trace takes `basic_block`.
    pub(super) fn mark_walked(&mut self, basic_block: BasicBlock) {
        if !self.basic_blocks[basic_block].is_walked {
            self.basic_blocks[basic_block].is_walked = true;
        }
    }

    pub(super) fn new_instance(&mut self, site: Site, parent: Option<Instance>) -> Instance {
        let (root, exits) = (self.new_basic_block(), Vec::new());
        let (mut around, mut recursion) = (parent, 0);
        while let Some(instance) = around {
            let data = &self.instances[instance];
            if data.site == site {
                recursion = data.recursion + 1;
                break;
            }
            around = data.parent;
        }
        self.instances.push(InstanceData {
            site,
            root,
            exits,
            older_values: self.values.len(),
            parent,
            recursion,
            is_shared: false,
            block: None,
            live_in: LiveInState::Unknown,
            jump_live_in: LiveInState::Unknown,
            jump_targets: SmallVec::new(),
        })
    }

    pub(super) fn live_in(&self, instance: Instance) -> Option<&LiveIn> {
        match &self.instances[instance].live_in {
            LiveInState::Known(live_in) => Some(live_in),
            LiveInState::Unknown | LiveInState::Varying => None,
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
            self.instances[instance].block = Some(basic_block);
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
        state: &[StateWord],
        carried: usize,
    ) -> Option<usize> {
        let is_it = |exit: &Exit| {
            exit.key.to == to && exit.key.carried == carried && exit.key.state[..] == *state
        };
        self.instances[instance].exits.iter().position(is_it)
    }

    pub(super) fn new_exit(&mut self, instance: Instance, key: ExitKey) -> usize {
        self.instance_bytes += size_of::<Exit>() + key.carried * size_of::<Value>();
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
        let (known, new) = (self.new_basic_block(), self.new_basic_block());
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
        let (is_walked, created, extension) = (data.is_walked, data.created, data.extension);
        // Extensions before the guard stay with the block.
        let (above, below) = match extension {
            Some((version, at)) if at > step => (None, Some((version, at - step - 1))),
            _ => (extension, None),
        };
        data.extension = above;
        let known_data = &mut self.basic_blocks[known];
        (known_data.is_walked, known_data.extension, known_data.steps) = (is_walked, below, rest);
        known_data.weight = weight.saturating_sub(above_weight).saturating_sub(1);
        known_data.created = above.map_or(created, |(version, _)| version);
        self.set_end(known, end);
        new
    }

    /// Tests whether loops were split and the tree has few steps.
    pub(super) fn is_small_and_split(&self) -> bool {
        let weights = self.basic_blocks.values().map(|basic_block| basic_block.weight);
        self.loops.values().any(|trace_loop| trace_loop.times > 0 && trace_loop.is_split_off)
            && weights.fold(0, usize::saturating_add) <= self.peel_limit
    }
}
