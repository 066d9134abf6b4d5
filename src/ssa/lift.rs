//! Lifting: merges the traces of one function into one graph.
//!
//! The graph is faithful: each event of a path is one node, in order, nothing
//! folded or shared, so that a later trace can be compared with it step by
//! step. Two traces share nodes up to the first guard that came out
//! differently; there the block is split and the rest of the new trace becomes
//! a block of its own. Merging is incremental and atomic: a trace that cannot
//! be merged leaves the graph as it was.

use std::sync::Arc;

use hashbrown::HashMap;
use smallvec::SmallVec;

use super::graph::{Block, Def, End, Graph, Item, Node, Place, PlaceId};
use crate::op::{MAX_ARITY, Op};
use crate::trace::{Event, Operand, Role, Site, Trace};

/// How much a [`Lifted`] graph may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Paths {
    /// The largest number of paths.
    pub paths: usize,
    /// The largest number of steps on all paths together; see [`Lifted::steps`].
    pub nodes: usize,
}

/// What merging a trace came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Merged {
    /// The path was in the graph already.
    Known,
    /// The trace is the first one.
    First,
    /// The path is new; it left the known paths at this guard.
    New {
        /// Where in the user's source the guard is.
        at: Place,
    },
}

/// Why a trace was not merged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LiftError {
    /// Two runs did different things without a guard between them: the function
    /// reads something that is neither an input nor constant.
    #[error(
        "the function did something else at {at} than in an earlier run that had passed the \
         same comparisons; it depends on state that is neither an input nor constant"
    )]
    Divergent {
        /// Where the runs differ.
        at: Place,
    },
    /// The graph has as many paths as the limits allow.
    #[error("the function has more than {limit} paths (Limits::paths)")]
    TooManyPaths {
        /// The limit.
        limit: usize,
    },
    /// The graph has as many nodes as the limits allow.
    #[error("all paths of the function together have more than {limit} steps (Limits::nodes)")]
    TooManyNodes {
        /// The limit.
        limit: usize,
    },
}

/// A graph that grows trace by trace.
///
/// # Examples
///
/// ```
/// use std::panic::Location;
///
/// use phigrad::ssa::{Lifted, Merged, Paths};
/// use phigrad::trace::{Inputs, Tracer, Var};
///
/// let program = |x: &[Var], _: &[Var]| if x[0] > 0.0 { x[0].sqrt() } else { -x[0] };
/// let (mut tracer, mut lifted) = (Tracer::default(), Lifted::new(1, 0));
/// let limits = Paths { paths: 10, nodes: 100 };
/// let mut learn = |x: f64| -> Result<Merged, Box<dyn std::error::Error>> {
///     let inputs = Inputs { active: &[x], inactive: &[] };
///     let trace = tracer.run(program, inputs, 100, Location::caller())?;
///     Ok(lifted.merge(&trace, limits)?)
/// };
/// assert_eq!(learn(4.0)?, Merged::First);
/// assert_eq!(learn(9.0)?, Merged::Known);
/// assert!(matches!(learn(-9.0)?, Merged::New { .. }));
/// assert_eq!(lifted.paths(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Lifted {
    /// Shared with who asked for it; copied if it has to grow meanwhile.
    graph: Arc<Graph>,
    index: Index,
    paths: usize,
    steps: usize,
    /// The node of each event of the latest trace, kept for its memory.
    walked: Vec<Option<Node>>,
}

/// What the graph has, for finding it again.
#[derive(Clone, Debug, Default)]
struct Index {
    constants: HashMap<u64, Node>,
    places: HashMap<Site, PlaceId>,
}

/// Where a walk along a known path stands.
struct Walk {
    block: Block,
    item: usize,
}

/// Where a new path leaves the known ones.
enum Exit {
    /// In the empty root block.
    Root,
    /// At the guard that is item `item` of `block`: its other side.
    Guard { block: Block, item: usize, outcome: bool },
}

impl Lifted {
    /// A graph of these inputs and no path.
    pub fn new(active: usize, inactive: usize) -> Self {
        Lifted {
            graph: Arc::new(Graph::new(active, inactive)),
            index: Index::default(),
            paths: 0,
            steps: 0,
            walked: Vec::new(),
        }
    }

    /// The graph of all paths merged so far.
    pub fn graph(&self) -> &Arc<Graph> {
        &self.graph
    }

    /// The number of steps on all paths together; a step that several paths
    /// share counts for each of them. Derivatives grow with this number, because
    /// each path has a reverse sweep of its own.
    pub fn steps(&self) -> usize {
        self.steps
    }

    /// The number of paths merged so far.
    pub fn paths(&self) -> usize {
        self.paths
    }

    /// Adds the path of `trace`, a run of the function whose other traces were
    /// merged before, with as many inputs. For an example see [`Lifted`].
    ///
    /// # Errors
    ///
    /// See [`LiftError`]; the graph is then unchanged.
    pub fn merge(&mut self, trace: &Trace<'_>, limits: Paths) -> Result<Merged, LiftError> {
        let mut nodes = core::mem::take(&mut self.walked);
        nodes.clear();
        let merged = self.merge_into(trace, limits, &mut nodes);
        self.walked = nodes;
        merged
    }

    /// Merges `trace`, with room for the node of each event in `nodes`.
    fn merge_into(
        &mut self,
        trace: &Trace<'_>,
        limits: Paths,
        nodes: &mut Vec<Option<Node>>,
    ) -> Result<Merged, LiftError> {
        let (exit, merged) = if self.paths == 0 {
            (Exit::Root, Merged::First)
        } else {
            match self.follow(trace, nodes)? {
                None => return Ok(Merged::Known),
                Some(exit) => {
                    let at = trace.events.get(nodes.len()).map(|event| place(event.site()));
                    let at = at.unwrap_or_else(unknown_place);
                    (exit, Merged::New { at })
                }
            }
        };
        if self.paths >= limits.paths {
            return Err(LiftError::TooManyPaths { limit: limits.paths });
        }
        let steps = self.steps + trace.events.len() - (trace.active + trace.inactive);
        if steps > limits.nodes {
            return Err(LiftError::TooManyNodes { limit: limits.nodes });
        }
        let graph = Arc::make_mut(&mut self.graph);
        Appender { graph, index: &mut self.index }.append(trace, nodes, exit);
        self.steps = steps;
        self.paths += 1;
        Ok(merged)
    }

    /// Walks along the known path that agrees with `trace`, filling in the node
    /// of each event. Returns where the trace leaves the known paths, or `None`
    /// when it does not.
    fn follow(
        &self,
        trace: &Trace<'_>,
        nodes: &mut Vec<Option<Node>>,
    ) -> Result<Option<Exit>, LiftError> {
        let mut walk = Walk { block: self.graph.root(), item: 0 };
        for (index, event) in trace.events.iter().enumerate() {
            let divergent = || LiftError::Divergent { at: place(event.site()) };
            match event.role() {
                Role::ActiveInput | Role::InactiveInput => {
                    nodes.push(Some(self.graph.input(index)));
                }
                Role::Constant => {
                    nodes.push(self.index.constant(event.value()));
                }
                // The φ of an event is a sum; of a constant, the constant.
                Role::Phi if is_constant(event) => {
                    nodes.push(self.index.constant(event.value()));
                }
                Role::Enter | Role::Iterate | Role::Join | Role::State | Role::Opaque => {
                    nodes.push(None);
                }
                Role::Apply | Role::Phi => {
                    let node = self.next_node(&mut walk).ok_or_else(divergent)?;
                    if !self.matches(node, event, nodes) {
                        return Err(divergent());
                    }
                    nodes.push(Some(node));
                }
                Role::Guard => {
                    if let Some(exit) =
                        self.follow_guard(&mut walk, event, nodes).ok_or_else(divergent)?
                    {
                        return Ok(Some(exit));
                    }
                    nodes.push(None);
                }
            }
        }
        let at = || trace.events.last().map_or_else(unknown_place, |event| place(event.site()));
        let output = self.index.operand(trace.output, nodes);
        match &self.graph.blocks[walk.block] {
            data if data.items.len() == walk.item => match &data.end {
                End::Return(outputs) if outputs.first().copied() == output => Ok(None),
                _ => Err(LiftError::Divergent { at: at() }),
            },
            _ => Err(LiftError::Divergent { at: at() }),
        }
    }

    /// Follows one guard of a trace. The outer `None` means that the graph does
    /// something else here; the inner that the graph knows the outcome.
    fn follow_guard(
        &self,
        walk: &mut Walk,
        event: &Event,
        nodes: &[Option<Node>],
    ) -> Option<Option<Exit>> {
        loop {
            let condition = self.next_node(walk)?;
            // An escaped value that differs from the one seen before takes the
            // other side of that guard, and meets its own guard there.
            let same = self.matches(condition, event, nodes);
            if !same && !self.escapes_same_value(condition, event, nodes) {
                return None;
            }
            let outcome = same && event.value() != 0.0;
            let data = &self.graph.blocks[walk.block];
            match (data.items.get(walk.item), &data.end) {
                (Some(&Item::Guard { condition: guarded, expect }), _) if guarded == condition => {
                    if expect != outcome {
                        let (block, item) = (walk.block, walk.item);
                        return Some(Some(Exit::Guard { block, item, outcome }));
                    }
                    walk.item += 1;
                }
                (None, &End::Branch { condition: decided, then, otherwise })
                    if decided == condition =>
                {
                    let block = if outcome { then } else { otherwise };
                    *walk = Walk { block, item: 0 };
                }
                _ => return None,
            }
            if same {
                return Some(None);
            }
        }
    }

    /// The node that the known path computes next.
    fn next_node(&self, walk: &mut Walk) -> Option<Node> {
        match self.graph.blocks[walk.block].items.get(walk.item) {
            Some(&Item::Node(node)) => {
                walk.item += 1;
                Some(node)
            }
            Some(Item::Guard { .. }) | None => None,
        }
    }

    /// Whether `node` is what `event` computes.
    fn matches(&self, node: Node, event: &Event, nodes: &[Option<Node>]) -> bool {
        let data = &self.graph.nodes[node];
        matches!(data.def, Def::Apply(op, _) if op == event.op())
            && data.args().len() == event.op().arity()
            && data
                .args()
                .iter()
                .zip(operands(event))
                .all(|(&arg, operand)| self.index.operand(operand, nodes) == Some(arg))
    }

    /// Whether both guard the escape of one value, with different numbers.
    fn escapes_same_value(&self, node: Node, event: &Event, nodes: &[Option<Node>]) -> bool {
        let Def::Apply(Op::Same, [value, _, _]) = self.graph.nodes[node].def else { return false };
        let first = event.operands().next();
        event.op() == Op::Same
            && first.and_then(|operand| self.index.operand(operand, nodes)) == Some(value)
    }
}

impl Index {
    fn operand(&self, operand: Operand, nodes: &[Option<Node>]) -> Option<Node> {
        match operand {
            Operand::Event(event) => nodes.get(event as usize).copied().flatten(),
            Operand::Constant(value) => self.constant(value),
        }
    }

    fn constant(&self, value: f64) -> Option<Node> {
        self.constants.get(&value.to_bits()).copied()
    }
}

/// Makes the graph grow by one path.
struct Appender<'a> {
    graph: &'a mut Graph,
    index: &'a mut Index,
}

impl Appender<'_> {
    /// Appends the rest of `trace`, from the event after those in `nodes`.
    fn append(mut self, trace: &Trace<'_>, nodes: &mut Vec<Option<Node>>, exit: Exit) {
        let block = match exit {
            Exit::Root => self.graph.root(),
            Exit::Guard { block, item, outcome } => self.split(block, item, outcome),
        };
        // The guard at the exit has been decided by the split, unless it is an
        // escape, which needs a guard of its own on this side.
        let mut decided = match exit {
            Exit::Root => false,
            Exit::Guard { outcome, .. } => {
                trace.events.get(nodes.len()).is_some_and(|e| outcome == (e.value() != 0.0))
            }
        };
        for index in nodes.len()..trace.events.len() {
            let event = &trace.events[index];
            let node = match event.role() {
                Role::ActiveInput | Role::InactiveInput => Some(self.graph.input(index)),
                Role::Constant => Some(self.constant(event.value())),
                Role::Phi if is_constant(event) => Some(self.constant(event.value())),
                Role::Enter | Role::Iterate | Role::Join | Role::State | Role::Opaque => None,
                Role::Apply | Role::Phi => Some(self.push(block, event, nodes)),
                Role::Guard if decided => None,
                Role::Guard => {
                    let condition = self.push(block, event, nodes);
                    let expect = event.value() != 0.0;
                    self.graph.blocks[block].items.push(Item::Guard { condition, expect });
                    None
                }
            };
            decided = false;
            nodes.push(node);
        }
        let output = self.operand(trace.output, nodes);
        self.graph.blocks[block].end = End::Return([output].into_iter().collect());
    }

    /// Turns the guard that is item `item` of `block` into a branch. Returns the
    /// new, empty block on the side of `outcome`.
    fn split(&mut self, block: Block, item: usize, outcome: bool) -> Block {
        let (known, new) = (self.graph.new_block(), self.graph.new_block());
        let (then, otherwise) = if outcome { (new, known) } else { (known, new) };
        let data = &mut self.graph.blocks[block];
        let rest = data.items.split_off(item + 1);
        let guard = data.items.pop();
        let Some(Item::Guard { condition, .. }) = guard else { return new };
        let branch = End::Branch { condition, then, otherwise };
        let end = core::mem::replace(&mut data.end, branch);
        self.graph.blocks[known].items = rest;
        self.graph.blocks[known].end = end;
        new
    }

    fn push(&mut self, block: Block, event: &Event, nodes: &[Option<Node>]) -> Node {
        let args: SmallVec<[Node; MAX_ARITY]> =
            operands(event).map(|operand| self.operand(operand, nodes)).collect();
        let place = self.place(event.site());
        self.graph.push_apply(block, event.op(), &args, Some(place))
    }

    fn operand(&mut self, operand: Operand, nodes: &[Option<Node>]) -> Node {
        match self.index.operand(operand, nodes) {
            Some(node) => node,
            None => match operand {
                Operand::Constant(value) => self.constant(value),
                Operand::Event(_) => {
                    debug_assert!(false, "an event refers to a guard");
                    self.constant(f64::NAN)
                }
            },
        }
    }

    fn constant(&mut self, value: f64) -> Node {
        let bits = value.to_bits();
        *self.index.constants.entry(bits).or_insert_with(|| self.graph.push_const(bits))
    }

    fn place(&mut self, site: Site) -> PlaceId {
        let graph = &mut *self.graph;
        *self.index.places.entry(site).or_insert_with(|| graph.places.push(place(site)))
    }
}

/// The operands of the primitive: a φ adds -0.0, which keeps all bits.
fn operands(event: &Event) -> impl Iterator<Item = Operand> + use<> {
    let zero = (event.role() == Role::Phi).then_some(Operand::Constant(-0.0));
    event.operands().chain(zero)
}

fn is_constant(event: &Event) -> bool {
    matches!(event.operands().next(), Some(Operand::Constant(_)))
}

fn place(site: Site) -> Place {
    Place { file: site.file().into(), line: site.line(), column: site.column() }
}

fn unknown_place() -> Place {
    Place { file: "unknown".into(), line: 0, column: 0 }
}
