//! The cost model: run times of loops, and of the closed forms and routines that replace them.
//!
//! The unit is a tenth of a nanosecond, measured on the x86-64 server of the benchmarks. An
//! iteration takes the larger of its throughput and of the latency of its loop-carried
//! dependence chain.

use hashbrown::{HashMap, HashSet};

use crate::loops::can_expand;
use crate::numeric::{AffineMap, AffinePower, Instruction, Program, Routine, Trips};
use crate::op::{Op, latency, throughput};
use crate::ssa::{Array, ArrayData, Block, Def, End, Entry, Graph, Item, Node, Region};
use crate::ssa::{fallback_loops, last_iteration};

/// The overhead of an iteration: counting, comparing, jumping.
const ITERATION: u64 = 8;
/// The overhead of an execution of a loop, with that of its reverse sweep.
const EXECUTION: u64 = 60;
/// An element that straight-line code has in a register: the load, and in the sweep the addition to
/// memory.
const ELEMENT: u64 = 6;
/// A node in an array that a loop reads: a store before the loop, and two additions in the sweep.
const ARRAY_NODE: u64 = 8;
/// The number of values that a loop carries in registers; others are stored in each iteration.
const REGISTERS: u64 = 16;
/// The least trip count of a loop that kernels run in vectors of two.
const LEAST_VECTOR_TRIPS: u64 = 8;
/// The size of straight-line code, or of a loop body, that stays in the instruction cache between
/// two runs, in items; larger code adds the time to fetch each item.
const MOST_CACHED: usize = 1 << 13;
const FETCH: u64 = 4;
/// The overhead of a routine: arguments and results through memory, and the branch on acceptance.
const CALL: u64 = 300;
/// An instruction of a coefficient program with its reverse step.
const INSTRUCTION: u64 = 60;
/// An instruction of the program of a polynomial with its reverse step.
const POLYNOMIAL_INSTRUCTION: u64 = 90;
/// An instruction of a program for moments, which has no reverse step.
const MOMENTS_INSTRUCTION: u64 = 50;
/// The number of other instructions that an exponential takes as long as.
const EXPONENTIAL: u64 = 16;
/// The power of a map of one state, which is a quotient, for each output.
const QUOTIENTS: u64 = 900;
/// A level of binary powering with its reverse step, for each number of states.
const LEVEL: [u64; 6] = [250, 1_000, 2_300, 4_600, 8_200, 13_500];

/// The part of the time of straight-line code by which a loop may be slower.
const TOLERANCE: u64 = 16;
/// The trip count below which straight-line code may be faster than a loop.
pub(crate) const LEAST_ROLLED_TRIPS: u32 = 32;
/// The trip count and the number of steps of a body from which on a loop is about as fast as
/// straight-line code, which takes longer to compile.
const LEAST_LARGE_TRIPS: u64 = 8;
const LEAST_LARGE_BODY: u64 = 128;
/// The number of steps below which straight-line code is faster than a loop whose iterations can
/// overlap, by up to a factor of two.
pub(crate) const LEAST_ROLLED_STEPS: u64 = 512;
/// The number of steps from which on straight-line code is slower than any loop: each call fetches
/// it anew, and an iteration of so many steps hides the overhead of the loop.
const LEAST_LARGE_STEPS: u64 = 1 << 12;

/// The time of an iteration, without the loops in it.
#[derive(Clone, Copy, Default)]
struct Iteration {
    /// The throughput of all steps, if they are independent.
    steps: u64,
    /// The additional throughput of their reverse sweep.
    sweep: u64,
    /// The latency of the loop-carried dependence chain; with that of its reverse sweep.
    chain: u64,
    chain_with_sweep: u64,
}

/// The latency of a chain of dependent steps; with that of its reverse sweep.
type Depth = (u64, u64);

/// The latency of `op` in a chain. Additions and multiplications overlap with the loads and stores
/// around them and count three quarters.
fn chain_latency(op: Op) -> u64 {
    match latency(op) {
        cheap @ ..=12 => cheap * 3 / 4,
        other => other,
    }
}

impl Iteration {
    /// The time of `blocks`, the body of `region`, a loop, or straight-line code, with all arms.
    fn of(graph: &Graph, region: Option<Region>, blocks: &[Block]) -> Iteration {
        /// The number of iterations over which the chain is averaged: a recurrence through several
        /// entry φs has its period.
        const ROUNDS: u64 = 4;
        let items = || blocks.iter().flat_map(|&block| &graph.blocks[block].items);
        let (mut all, mut uses) = (Iteration::default(), HashMap::<Node, u32>::new());
        for item in items() {
            match *item {
                Item::Node(node) => match graph.nodes[node].def {
                    Def::Apply(op, _) => {
                        all.steps += throughput(op);
                        // The derivative of a library function is arithmetic.
                        all.sweep += throughput(op).min(throughput(Op::Div));
                        for &arg in graph.operands(node) {
                            *uses.entry(arg).or_insert(0u32) += 1;
                        }
                    }
                    Def::Element(_) => all.steps += 1,
                    Def::Call(call) => all.steps += routine(&graph.calls[call].routine),
                    _ => {}
                },
                _ => all.steps += 1,
            }
        }
        if items().count() > MOST_CACHED {
            let fetched = FETCH * items().count() as u64;
            (all.steps, all.sweep) = (all.steps + fetched, all.sweep + fetched);
        }
        let entries = region.map_or(&[][..], |region| graph.entries(region));
        if entries.is_empty() {
            return all;
        }
        let mut depths: HashMap<Node, Depth> =
            entries.iter().map(|entry| (entry.phi, (0, 0))).collect();
        let mut longest = Vec::new();
        for _ in 0..2 * ROUNDS {
            for item in items() {
                let &Item::Node(node) = item else { continue };
                if let Some(depth) = depth(graph, &depths, &uses, node) {
                    depths.insert(node, depth);
                }
            }
            let mut next: HashMap<Node, Depth> = HashMap::new();
            for &block in blocks {
                let End::Return(passed) = &graph.blocks[block].end else { continue };
                for (entry, value) in entries.iter().zip(passed.iter().skip(1)) {
                    let depth = depths.get(value).copied().unwrap_or_default();
                    let known = next.entry(entry.phi).or_default();
                    *known = (known.0.max(depth.0), known.1.max(depth.1));
                }
            }
            longest.push(next.values().fold((0, 0), |a: Depth, b| (a.0.max(b.0), a.1.max(b.1))));
            depths = next;
        }
        if let [.., last] = longest[..] {
            let before = longest[longest.len() - 1 - ROUNDS as usize];
            all.chain = (last.0 - before.0) / ROUNDS;
            all.chain_with_sweep = (last.1 - before.1) / ROUNDS;
        }
        all
    }

    fn forward(self) -> u64 {
        (ITERATION + self.steps).max(self.chain)
    }

    fn with_sweep(self) -> u64 {
        (ITERATION + self.steps + self.sweep).max(self.chain_with_sweep)
    }

    /// The time with the sweep as straight-line code, with `inner` for the loops inside.
    fn straight(self, inner: u64) -> u64 {
        (self.steps + self.sweep + inner).max(self.chain_with_sweep)
    }

    /// The time with the sweep in a loop, in vectors of two if it `is_vector`, that has so many values
    /// in memory.
    fn rolled(self, inner: u64, is_vector: bool, in_memory: u64) -> u64 {
        let all = ITERATION + ELEMENT * in_memory + self.steps + self.sweep + inner;
        (if is_vector { all / 2 } else { all }).max(self.chain_with_sweep)
    }

    /// True if iterations cannot overlap. Additions alone can be reordered, and have no chain in
    /// the reverse sweep.
    fn is_chained(self) -> bool {
        self.chain_with_sweep > self.steps + self.sweep && self.chain_with_sweep > self.chain
    }
}

/// The depth of `node` in the chain, if an operand is loop-carried.
fn depth(
    graph: &Graph,
    depths: &HashMap<Node, Depth>,
    uses: &HashMap<Node, u32>,
    node: Node,
) -> Option<Depth> {
    let Def::Apply(op, _) = graph.nodes[node].def else { return None };
    let depth = |arg: &Node| {
        let &(forward, both) = depths.get(arg)?;
        // Adjoints of several uses are added up.
        let added =
            if uses.get(arg).is_some_and(|&uses| uses > 1) { chain_latency(Op::Add) } else { 0 };
        Some((forward, both + added))
    };
    let before = graph.operands(node).iter().filter_map(depth);
    let (forward, both) = before.reduce(|a, b| (a.0.max(b.0), a.1.max(b.1)))?;
    // An addition forwards the adjoint unchanged.
    let back = if matches!(op, Op::Add | Op::Sub) {
        0
    } else {
        chain_latency(op).min(chain_latency(Op::Div))
    };
    Some((forward + chain_latency(op), both + chain_latency(op) + back))
}

/// The sum of `time` over all iterations of `region`, or of the whole graph, without the loops
/// `excluded`.
fn all_iterations(
    graph: &Graph,
    region: Option<Region>,
    excluded: &HashSet<Region>,
    time: fn(Iteration) -> u64,
) -> u64 {
    let (mut total, mut pending) = (0u64, vec![(region, 1u64)]);
    while let Some((region, outer)) = pending.pop() {
        let times = outer.saturating_mul(region.map_or(1, |region| average_trips(graph, region)));
        let root = region.map_or(graph.root(), |region| graph.regions[region].root);
        let blocks = graph.tree(root);
        let iteration = Iteration::of(graph, region, &blocks);
        total = total.saturating_add(times.saturating_mul(time(iteration)));
        let inner = blocks.iter().flat_map(|&block| graph.regions_of(block));
        let inner = inner.filter(|inner| !excluded.contains(inner));
        pending.extend(inner.map(|inner| (Some(inner), times)));
    }
    total
}

/// The trip count of `region`; 1 if it is no loop. That of a loop whose trip count depends on the
/// iteration of a loop around it is half way between the least and the largest; otherwise it is the
/// bound.
fn average_trips(graph: &Graph, region: Region) -> u64 {
    let bound = u64::from(graph.bound(region));
    let Some(last) = last_iteration(graph, region) else { return bound };
    let (least, most) = last.range(graph);
    u64::try_from((least + most) / 2 + 1).unwrap_or(bound)
}

/// The time of `graph` with its reverse sweep, if all calls are accepted.
pub(crate) fn time_with_sweep(graph: &Graph) -> u64 {
    all_iterations(graph, None, &fallback_loops(graph), Iteration::with_sweep)
}

/// The sum of `time` over all iterations of `region`, a loop.
fn loop_time(graph: &Graph, region: Region, time: fn(Iteration) -> u64) -> u64 {
    all_iterations(graph, Some(region), &HashSet::new(), time)
}

/// The loops of a graph that are short.
#[derive(Default)]
pub(crate) struct ShortLoops {
    /// Those that are faster as straight-line code.
    pub(crate) loops: Vec<Region>,
    /// True if there are others, with data-dependent exits.
    pub(crate) others: bool,
    /// The number of steps of the graph with `loops` as straight-line code.
    pub(crate) steps: u64,
    /// The time that this saves, with the sweep.
    pub(crate) saved: u64,
}

/// The loops of `graph` that are faster as straight-line code, without fallback versions, which
/// rarely run.
pub(crate) fn short_loops(graph: &Graph) -> ShortLoops {
    let (fallback, mut short) = (fallback_loops(graph), ShortLoops::default());
    let (mut order, mut pending) = (Vec::new(), vec![(graph.root(), 1u64)]);
    let mut executions: HashMap<Region, u64> = HashMap::new();
    while let Some((root, count)) = pending.pop() {
        for region in graph.tree(root).into_iter().flat_map(|block| graph.regions_of(block)) {
            order.push(region);
            executions.insert(region, count);
            let inside = count.saturating_mul(average_trips(graph, region));
            pending.push((graph.regions[region].root, inside));
        }
    }
    let mut steps: HashMap<Region, u64> = HashMap::new();
    let mut times: HashMap<Region, u64> = HashMap::new();
    for &region in order.iter().rev() {
        let blocks = graph.tree(graph.regions[region].root);
        let inner = || blocks.iter().flat_map(|&block| graph.regions_of(block));
        let mut all =
            inner().map(|inner| steps[&inner]).fold(size(graph, &blocks), u64::saturating_add);
        let inside = inner().map(|inner| times[&inner]).fold(0, u64::saturating_add);
        let iteration = Iteration::of(graph, Some(region), &blocks);
        times.insert(region, iteration.straight(inside));
        if let Some(cycle) = graph.regions[region].cycle.as_ref()
            && !fallback.contains(&region)
        {
            let trips = u64::from(cycle.bound);
            let unrolled = all.saturating_mul(trips);
            let is_large = unrolled >= LEAST_LARGE_STEPS
                || all >= LEAST_LARGE_BODY && trips >= LEAST_LARGE_TRIPS;
            let is_small = trips < u64::from(LEAST_ROLLED_TRIPS) && !is_large
                || unrolled < LEAST_ROLLED_STEPS && !iteration.is_chained();
            let is_vector = is_vector(graph, region, &blocks);
            let straight = trips.saturating_mul(iteration.straight(inside));
            let rolled = iteration.rolled(inside, is_vector, elements(graph, &blocks));
            let execution = EXECUTION + ARRAY_NODE * nodes_in_arrays(graph, &blocks);
            let rolled = trips.saturating_mul(rolled).saturating_add(execution);
            let is_slower = rolled > straight.saturating_add(straight / TOLERANCE);
            let is_short = is_small && is_slower;
            times.insert(region, straight);
            if is_short && can_expand(graph, region) && !counts_inner_loops(graph, region, &blocks)
            {
                short.loops.push(region);
                let saved = rolled.saturating_sub(straight).saturating_mul(executions[&region]);
                short.saved = short.saved.saturating_add(saved);
                all = unrolled;
            }
            // A trip count that changes with the loop around is no data-dependent exit.
            let has_exits = || last_iteration(graph, region).is_none();
            short.others |= is_short && !can_expand(graph, region) && has_exits();
        }
        steps.insert(region, all);
    }
    let blocks = graph.tree(graph.root());
    let inner = blocks.iter().flat_map(|&block| graph.regions_of(block));
    short.steps = inner.map(|inner| steps[&inner]).fold(size(graph, &blocks), u64::saturating_add);
    short
}

/// Tests whether `rolled` with all its loops is about as fast as `other` with straight-line code for
/// its short loops, or that is too large.
pub(crate) fn is_as_fast(rolled: &Graph, other: &Graph) -> bool {
    let short = short_loops(other);
    let best = rolled_time(other).saturating_sub(short.saved);
    short.steps >= LEAST_LARGE_STEPS || rolled_time(rolled) <= best + best / TOLERANCE
}

/// The time of `graph` with its reverse sweep and with its arrays in memory.
fn rolled_time(graph: &Graph) -> u64 {
    let (mut total, mut pending) = (0u64, vec![(None, graph.root(), 1u64)]);
    while let Some((region, root, executions)) = pending.pop() {
        let blocks = graph.tree(root);
        let trips = region.map_or(1, |region| average_trips(graph, region));
        let is_vector = region.is_some_and(|region| is_vector(graph, region, &blocks));
        let iteration = Iteration::of(graph, region, &blocks);
        let carried = region.map_or(0, |region| graph.entries(region).len() as u64);
        let in_memory = elements(graph, &blocks) + carried.saturating_sub(REGISTERS);
        let iteration = iteration.rolled(0, is_vector, in_memory);
        let all = executions.saturating_mul(trips);
        let execution = EXECUTION + ARRAY_NODE * nodes_in_arrays(graph, &blocks);
        let time =
            all.saturating_mul(iteration).saturating_add(executions.saturating_mul(execution));
        total = total.saturating_add(time);
        for inner in blocks.iter().flat_map(|&block| graph.regions_of(block)) {
            pending.push((Some(inner), graph.regions[inner].root, all));
        }
    }
    total
}

/// The number of nodes in arrays that `blocks` read: a kernel stores them before the loop, and its sweep
/// adds each of their adjoints.
fn nodes_in_arrays(graph: &Graph, blocks: &[Block]) -> u64 {
    let mut arrays = HashSet::new();
    for item in blocks.iter().flat_map(|&block| &graph.blocks[block].items) {
        let &Item::Node(node) = item else { continue };
        if let Def::Element(access) = graph.nodes[node].def {
            arrays.insert(graph.accesses[access].array);
        }
    }
    let count = |array: Array| match &graph.arrays[array] {
        ArrayData::Nodes(nodes) => nodes.len() as u64,
        _ => 0,
    };
    arrays.into_iter().map(count).sum()
}

/// The number of elements in `blocks` of arrays other than constants.
fn elements(graph: &Graph, blocks: &[Block]) -> u64 {
    let items = blocks.iter().flat_map(|&block| &graph.blocks[block].items);
    let is_element = |item: &&Item| match **item {
        Item::Node(node) => match graph.nodes[node].def {
            Def::Element(access) => {
                !matches!(graph.arrays[graph.accesses[access].array], ArrayData::Constants(_))
            }
            _ => false,
        },
        _ => false,
    };
    items.filter(is_element).count() as u64
}

/// Tests whether kernels may run `region` and its sweep in vectors: it is one block of arithmetic, and
/// carries sums at most.
fn is_vector(graph: &Graph, region: Region, blocks: &[Block]) -> bool {
    if u64::from(graph.bound(region)) < LEAST_VECTOR_TRIPS {
        return false;
    }
    let [block] = blocks else { return false };
    let is_arithmetic = |item: &Item| match *item {
        Item::Node(node) => match graph.nodes[node].def {
            Def::Apply(op, _) => latency(op) <= latency(Op::Div),
            Def::Element(_) => true,
            _ => false,
        },
        Item::Accumulate(..) | Item::Store(..) => true,
        Item::Guard { .. } | Item::Region(_) | Item::Fill(_) => false,
    };
    let Some(passed) = graph.passed(region, *block) else { return false };
    let is_sum = |(entry, next): (&Entry, &Node)| match graph.nodes[*next].def {
        Def::Apply(Op::Add | Op::Sub, args) => args[..2].contains(&entry.phi),
        _ => *next == entry.phi,
    };
    graph.blocks[*block].items.iter().all(is_arithmetic)
        && graph.entries(region).iter().zip(passed.nexts).all(is_sum)
        && !has_close_elements(graph, region, *block)
}

/// Tests whether `block`, the body of `region`, reads two elements of an array that are an odd number
/// of a few iterations apart: the additions of the sweep are not in vectors then.
fn has_close_elements(graph: &Graph, region: Region, block: Block) -> bool {
    const MOST_ITERATIONS: i64 = 8;
    type Moving = (Array, Vec<(Region, i32)>);
    let mut read: HashMap<Moving, Vec<i64>> = HashMap::new();
    for item in &graph.blocks[block].items {
        let &Item::Node(node) = item else { continue };
        let Def::Element(access) = graph.nodes[node].def else { continue };
        let access = &graph.accesses[access];
        let is_varied = access.strides.iter().any(|stride| stride.0 == region);
        if is_varied && !matches!(graph.arrays[access.array], ArrayData::Constants(_)) {
            let strides = access.strides.to_vec();
            read.entry((access.array, strides)).or_default().push(i64::from(access.base));
        }
    }
    read.iter().any(|((_, strides), bases)| {
        let own = strides.iter().filter(|stride| stride.0 == region);
        let by = own.map(|stride| i64::from(stride.1)).sum::<i64>().abs().max(1);
        let is_close = |apart: i64| {
            apart % by == 0 && apart / by % 2 != 0 && (apart / by).abs() <= MOST_ITERATIONS
        };
        bases.iter().any(|base| bases.iter().any(|other| is_close(base - other)))
    })
}

/// Tests whether a loop in `blocks`, the body of `region`, has a trip count that depends on the iteration
/// number of `region`: then `region` cannot be expanded.
fn counts_inner_loops(graph: &Graph, region: Region, blocks: &[Block]) -> bool {
    let mut inner = blocks.iter().flat_map(|&block| graph.regions_of(block));
    inner.any(|inner| {
        last_iteration(graph, inner)
            .is_some_and(|last| last.terms.iter().any(|term| term.0 == region))
    })
}

/// The number of steps of `blocks`.
fn size(graph: &Graph, blocks: &[Block]) -> u64 {
    blocks.iter().map(|&block| graph.blocks[block].items.len() as u64).sum()
}

/// The time of a call of `routine`.
fn routine(routine: &Routine) -> u64 {
    match routine {
        Routine::AffinePower(power) => affine_power(power),
        Routine::Polynomial(polynomial) => {
            CALL + POLYNOMIAL_INSTRUCTION * instructions(polynomial.program())
        }
        Routine::Moments(moments) => CALL + MOMENTS_INSTRUCTION * instructions(moments.program()),
        // Unknown, and the same in all forms of a graph.
        Routine::Custom(_) => CALL,
    }
}

/// The number of instructions of `program`, with exponentials weighted.
fn instructions(program: &Program) -> u64 {
    let weight = |instruction: &Instruction| match instruction {
        Instruction::Apply(Op::Exp, _) => EXPONENTIAL,
        _ => 1,
    };
    program.instructions().iter().map(weight).sum()
}

fn affine_power(routine: &AffinePower) -> u64 {
    let program = routine.program();
    let inner = program.instructions().iter().map(|instruction| match instruction {
        Instruction::Power(power) => powering(&power.map, Trips::Constant(power.trips)),
        _ => 0,
    });
    let coefficients = INSTRUCTION * instructions(program) + inner.sum::<u64>();
    let power = match routine.map().states() {
        1 if !program.has_powers() => QUOTIENTS,
        _ => powering(routine.map(), routine.trips()),
    };
    // One half is the forward part, the other half the reverse step of each output.
    CALL + (coefficients + power) * (1 + routine.outputs().len() as u64) / 2
}

/// The time of the power of a map.
fn powering(map: &AffineMap, trips: Trips) -> u64 {
    /// The trip count that is assumed if it is known in a call only.
    const ASSUMED_TRIPS: u64 = 100;
    let trips = match trips {
        Trips::Constant(count) => count,
        Trips::Input(_) => ASSUMED_TRIPS,
    };
    let levels = u64::from(u64::BITS - trips.leading_zeros());
    LEVEL[map.states().saturating_sub(1).min(LEVEL.len() - 1)] * levels
}

/// True if `closed` is less than `open` by more than the error of the model, an eighth.
fn is_less(closed: u64, open: u64) -> bool {
    closed.saturating_add(closed / 8) < open
}

/// True if closed forms by these routines take less time than `region`, a loop.
pub(crate) fn is_worth_closing<'a>(
    graph: &Graph,
    region: Region,
    routines: impl Iterator<Item = &'a AffinePower>,
) -> bool {
    is_less(routines.map(affine_power).sum(), loop_time(graph, region, Iteration::with_sweep))
}

/// As [`is_worth_closing`] for a loop that is kept only to compute its trip count: the closed
/// forms replace its reverse sweep. Unless it `is_counted`, half of the largest trip count is
/// assumed.
pub(crate) fn is_worth_closing_exit_loop<'a>(
    graph: &Graph,
    region: Region,
    is_counted: bool,
    routines: impl Iterator<Item = &'a AffinePower>,
) -> bool {
    let forward = loop_time(graph, region, Iteration::forward);
    let sweep = loop_time(graph, region, Iteration::with_sweep).saturating_sub(forward);
    let likely = if is_counted { sweep } else { sweep / 2 };
    is_less(routines.map(affine_power).sum(), likely)
}

/// True if closed forms of so many additions and multiplications, and by these routines, take less
/// time than `region`, a loop. `before` is their share of what is computed before loops around.
pub(crate) fn is_worth_folding<'a>(
    graph: &Graph,
    region: Region,
    (steps, before): (u64, u64),
    routines: impl Iterator<Item = &'a Routine>,
) -> bool {
    let steps = 2 * steps * throughput(Op::Mul);
    let all = steps + routines.map(routine).sum::<u64>();
    is_less(all.saturating_add(before), loop_time(graph, region, Iteration::with_sweep))
}

/// The time of `passes` loops over the data of `region`, a loop with `count` iterations, without a
/// reverse sweep and with about as many steps, with a call of `moments` in each iteration.
pub(crate) fn data_passes(
    graph: &Graph,
    region: Region,
    passes: u64,
    count: u64,
    moments: Option<&Routine>,
) -> u64 {
    // Each moment takes an addition and the steps of its coefficient.
    const MORE_STEPS: u64 = 2;
    let calls = moments.map_or(0, routine).saturating_mul(count);
    calls.saturating_add(
        loop_time(graph, region, Iteration::forward).saturating_mul(passes * MORE_STEPS),
    )
}
