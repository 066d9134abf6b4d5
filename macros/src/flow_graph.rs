//! The control-flow graph of a function's text, with liveness and definite assignment.
//!
//! If a variable may be read later on a path that the compiler knows, it has a value here:
//! otherwise the compiler would reject the read. So it may be borrowed here. Calls may diverge, and
//! macros may contain any code: edges after them are uncertain. A variable that is read on
//! uncertain paths only may be borrowed if it is definitely assigned, and is opaque otherwise.

use syn::{Lifetime, Member};

use crate::captures::{Access, Mention, overlap};
use crate::log::Variable;

/// A basic block: its index in [`FlowGraph::blocks`].
pub type BlockId = usize;

/// A location: a block, and the number of its events before it.
#[derive(Clone, Copy, Default)]
pub struct Location {
    block: BlockId,
    count: usize,
}

/// The liveness of a variable at a location.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Liveness {
    Dead,
    /// Live on uncertain paths only.
    MaybeLive,
    /// Live on a path that the compiler knows.
    Live,
}

/// An event that concerns a variable.
enum Event {
    Declared(Variable),
    /// A mention, by its index.
    Mentioned(usize),
    /// A mention in a closure, which captures the variable where it is created.
    Captured(usize),
}

#[derive(Default)]
struct Block {
    events: Vec<Event>,
    /// The successors; `false` marks an uncertain edge.
    next: Vec<(BlockId, bool)>,
    before: Vec<BlockId>,
}

/// A loop or labelled block around the current expression.
#[derive(Default)]
struct Exit {
    label: Option<Lifetime>,
    /// The head, for a loop.
    head: Option<BlockId>,
    /// The sources of edges to its end.
    breaks: Vec<(BlockId, bool)>,
    /// The sources of edges from `continue` to the end of the body.
    continues: Vec<(BlockId, bool)>,
}

pub struct FlowGraph {
    blocks: Vec<Block>,
    here: BlockId,
    exits: Vec<Exit>,
    /// The nesting depth of closures.
    closures: usize,
}

impl Default for FlowGraph {
    fn default() -> Self {
        FlowGraph { blocks: vec![Block::default()], here: 0, exits: Vec::new(), closures: 0 }
    }
}

impl FlowGraph {
    pub fn location(&self) -> Location {
        Location { block: self.here, count: self.blocks[self.here].events.len() }
    }

    /// The current block.
    pub fn here(&self) -> BlockId {
        self.here
    }

    /// Adds a declaration.
    pub fn declare(&mut self, variable: Variable) {
        self.blocks[self.here].events.push(Event::Declared(variable));
    }

    /// Adds a mention, by its index.
    pub fn mention(&mut self, index: usize) {
        let event = match self.closures {
            0 => Event::Mentioned(index),
            _ => Event::Captured(index),
        };
        self.blocks[self.here].events.push(event);
    }

    /// Begins a block with these predecessors.
    fn begin(&mut self, from: &[(BlockId, bool)]) {
        if self.closures > 0 {
            return;
        }
        self.here = self.blocks.len();
        self.blocks.push(Block::default());
        for &(before, certain) in from {
            self.add_edge(before, self.here, certain);
        }
    }

    fn add_edge(&mut self, from: BlockId, to: BlockId, certain: bool) {
        self.blocks[from].next.push((to, certain));
        self.blocks[to].before.push(from);
    }

    /// Continues after block `from`. Returns the current block.
    pub fn continue_from(&mut self, from: BlockId) -> BlockId {
        let here = self.here;
        self.begin(&[(from, true)]);
        here
    }

    /// Begins a new block, so that paths can branch here. Returns the former block.
    pub fn fork(&mut self) -> BlockId {
        self.continue_from(self.here)
    }

    /// Begins an unreachable block.
    pub fn begin_unreachable(&mut self) {
        self.begin(&[]);
    }

    /// Begins a block at which the paths from these blocks join.
    pub fn join(&mut self, from: &[BlockId]) {
        let from: Vec<_> = from.iter().map(|&block| (block, true)).collect();
        self.begin(&from);
    }

    /// Adds an uncertain edge: control may not get past the current location.
    pub fn may_diverge(&mut self) {
        self.begin(&[(self.here, false)]);
    }

    /// Joins the path around the code after `before`, which may not have run.
    pub fn join_skipped(&mut self, before: BlockId) {
        self.begin(&[(self.here, true), (before, false)]);
    }

    /// Enters a closure.
    pub fn enter_closure(&mut self) {
        self.closures += 1;
    }

    pub fn leave_closure(&mut self) {
        self.closures -= 1;
    }

    /// Enters a labelled block.
    pub fn enter_block(&mut self, label: Option<Lifetime>) {
        self.exits.push(Exit { label, ..Exit::default() });
    }

    /// Ends the labelled block.
    pub fn leave_block(&mut self) {
        let exit = self.exits.pop().unwrap_or_default();
        self.begin(&[&[(self.here, true)], exit.breaks.as_slice()].concat());
    }

    /// Enters a loop. Returns its head.
    pub fn enter_loop(&mut self, label: Option<Lifetime>) -> BlockId {
        self.fork();
        let head = self.here;
        self.exits.push(Exit { label, head: Some(head), ..Exit::default() });
        self.fork()
    }

    /// Ends the body of a loop: paths of `continue` join here.
    pub fn end_body(&mut self) {
        let next = self.exits.last_mut().map(|exit| core::mem::take(&mut exit.continues));
        self.begin(&[&[(self.here, true)], next.unwrap_or_default().as_slice()].concat());
    }

    /// Ends a loop, whose exits are `break` and, if any, `refused`.
    pub fn leave_loop(&mut self, refused: Option<BlockId>) {
        self.end_body();
        let mut exit = self.exits.pop().unwrap_or_default();
        if let (Some(head), 0) = (exit.head, self.closures) {
            self.add_edge(self.here, head, true);
        }
        exit.breaks.extend(refused.map(|block| (block, true)));
        self.begin(&exit.breaks);
    }

    /// Adds a `break`.
    pub fn add_break(&mut self, label: Option<&Lifetime>) {
        let here = self.here;
        if let Some(exit) = self.target(label) {
            exit.breaks.push((here, true));
        }
        self.begin_unreachable();
    }

    /// Adds a `continue`.
    pub fn add_continue(&mut self, label: Option<&Lifetime>) {
        let here = self.here;
        if let Some(exit) = self.target(label) {
            exit.continues.push((here, true));
        }
        self.begin_unreachable();
    }

    fn target(&mut self, label: Option<&Lifetime>) -> Option<&mut Exit> {
        self.exits.iter_mut().rev().find(|exit| match label {
            Some(label) => exit.label.as_ref() == Some(label),
            None => exit.head.is_some(),
        })
    }

    /// Adds uncertain edges to the ends of all enclosing loops, bodies and blocks.
    pub fn may_jump(&mut self) {
        if self.closures > 0 {
            return;
        }
        let here = self.here;
        for exit in &mut self.exits {
            exit.breaks.push((here, false));
            exit.continues.push((here, false));
        }
        self.may_diverge();
    }

    /// The liveness at `location` of these fields of `variable`.
    pub fn liveness(
        &self,
        location: Location,
        variable: Variable,
        fields: &[Member],
        mentions: &[Mention],
    ) -> Liveness {
        [(true, Liveness::Live), (false, Liveness::MaybeLive)]
            .into_iter()
            .find(|&(certain, _)| self.is_live(location, variable, fields, mentions, certain))
            .map_or(Liveness::Dead, |(_, liveness)| liveness)
    }

    fn is_live(
        &self,
        location: Location,
        variable: Variable,
        fields: &[Member],
        mentions: &[Mention],
        certain: bool,
    ) -> bool {
        // Forwards over the edges, to a use, or to an event that ends the value.
        let mut seen = vec![false; self.blocks.len()];
        let mut stack = vec![(location.block, location.count)];
        while let Some((block, from)) = stack.pop() {
            let mut ends = false;
            for event in &self.blocks[block].events[from..] {
                let (mention, captured) = match *event {
                    Event::Declared(other) if other == variable => {
                        ends = true;
                        break;
                    }
                    Event::Declared(_) => continue,
                    Event::Mentioned(index) => (&mentions[index], false),
                    Event::Captured(index) => (&mentions[index], true),
                };
                let other = &mention.projection.fields;
                if mention.variable != variable || !overlap(other, fields) {
                    continue;
                }
                match mention.access {
                    Access::Assign if !captured && mention.projection.element.is_none() => {
                        ends = fields.starts_with(other);
                        if ends {
                            break;
                        }
                    }
                    // A word may refer to something else.
                    Access::Word if certain => {}
                    _ => return true,
                }
            }
            if ends {
                continue;
            }
            for &(next, is_certain) in &self.blocks[block].next {
                if (is_certain || !certain) && !seen[next] {
                    seen[next] = true;
                    stack.push((next, 0));
                }
            }
        }
        false
    }

    /// Tests whether `variable`, declared without a value, is definitely assigned at `location`.
    pub fn is_assigned(
        &self,
        location: Location,
        variable: Variable,
        mentions: &[Mention],
    ) -> bool {
        // Backwards over the edges, to an assignment, or to the declaration.
        let mut seen = vec![false; self.blocks.len()];
        let mut stack = vec![(location.block, location.count)];
        while let Some((block, end)) = stack.pop() {
            let assigned = self.blocks[block].events[..end].iter().rev().find_map(|e| match *e {
                Event::Declared(other) => (other == variable).then_some(false),
                Event::Captured(_) => None,
                Event::Mentioned(index) => {
                    let Mention { variable: of, projection, access, .. } = &mentions[index];
                    let is = *of == variable && *access == Access::Assign && projection.is_whole();
                    is.then_some(true)
                }
            });
            match assigned {
                Some(true) => continue,
                Some(false) => return false,
                None => {}
            }
            for &before in &self.blocks[block].before {
                if !seen[before] {
                    seen[before] = true;
                    stack.push((before, self.blocks[before].events.len()));
                }
            }
        }
        true
    }
}
