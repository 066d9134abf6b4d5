//! Ways: how control may go through a function, as far as its text shows, and whether
//! a variable has a value, or is used later, on the ways through a place.
//!
//! What may be used on some way from here has a value here, on all ways that lead here:
//! otherwise the compiler would refuse the use. So that to borrow it is allowed wherever
//! this is known of a way that the compiler knows, too. A call may never return, and a
//! macro may do anything: behind these a way is not certain. What is used on such
//! ways alone may be borrowed if it has got a value on all ways that lead here, and is
//! only named otherwise.

use syn::{Lifetime, Member};

use crate::captures::{How, Mention, overlap};
use crate::log::Variable;

/// A stretch of text that is run as a whole: its index in [`Ways::blocks`].
pub type BlockId = usize;

/// A place: a block, and how much of it comes before.
#[derive(Clone, Copy, Default)]
pub struct Place {
    block: BlockId,
    count: usize,
}

/// Whether something happens on a way from a place.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Later {
    Never,
    /// On ways that may not be taken.
    Perhaps,
    /// On a way that the compiler knows.
    Surely,
}

/// What happens to variables.
enum Event {
    Declared(Variable),
    /// The index of a [`Mention`].
    Mentioned(usize),
    /// The same in a closure, which takes what it mentions where it is made.
    Captured(usize),
}

#[derive(Default)]
struct Block {
    events: Vec<Event>,
    /// Where control goes next; with `false` if that is not certain.
    next: Vec<(BlockId, bool)>,
    before: Vec<BlockId>,
}

/// A loop or a block with a label around the expression at hand.
#[derive(Default)]
struct Exit {
    label: Option<Lifetime>,
    /// The head of a loop.
    head: Option<BlockId>,
    /// From where it is left.
    left: Vec<(BlockId, bool)>,
    /// From where `continue` leads to the end of the body.
    next: Vec<(BlockId, bool)>,
}

pub struct Ways {
    blocks: Vec<Block>,
    here: BlockId,
    exits: Vec<Exit>,
    /// In so many closures.
    closures: usize,
}

impl Default for Ways {
    fn default() -> Self {
        Ways { blocks: vec![Block::default()], here: 0, exits: Vec::new(), closures: 0 }
    }
}

impl Ways {
    pub fn place(&self) -> Place {
        Place { block: self.here, count: self.blocks[self.here].events.len() }
    }

    /// The end of what was walked through last.
    pub fn here(&self) -> BlockId {
        self.here
    }

    /// A variable is declared.
    pub fn declare(&mut self, variable: Variable) {
        self.blocks[self.here].events.push(Event::Declared(variable));
    }

    /// The mention of this index is next.
    pub fn mention(&mut self, index: usize) {
        let event = match self.closures {
            0 => Event::Mentioned(index),
            _ => Event::Captured(index),
        };
        self.blocks[self.here].events.push(event);
    }

    /// A block begins to which control comes from the ends of these.
    fn begin(&mut self, from: &[(BlockId, bool)]) {
        if self.closures > 0 {
            return;
        }
        self.here = self.blocks.len();
        self.blocks.push(Block::default());
        for &(before, certain) in from {
            self.lead(before, self.here, certain);
        }
    }

    fn lead(&mut self, from: BlockId, to: BlockId, certain: bool) {
        self.blocks[from].next.push((to, certain));
        self.blocks[to].before.push(from);
    }

    /// The walk goes on behind `from`. Returns where it was.
    pub fn go(&mut self, from: BlockId) -> BlockId {
        let here = self.here;
        self.begin(&[(from, true)]);
        here
    }

    /// Ways part here. Returns where.
    pub fn part(&mut self) -> BlockId {
        self.go(self.here)
    }

    /// Control does not get here.
    pub fn lose(&mut self) {
        self.begin(&[]);
    }

    /// Ways from these blocks lead here; the one at hand does if it is among them.
    pub fn meet(&mut self, from: &[BlockId]) {
        let from: Vec<_> = from.iter().map(|&block| (block, true)).collect();
        self.begin(&from);
    }

    /// Control may not get past what is here.
    pub fn doubt(&mut self) {
        self.begin(&[(self.here, false)]);
    }

    /// What was walked through behind `before` may have run or not.
    pub fn may_have_run(&mut self, before: BlockId) {
        self.begin(&[(self.here, true), (before, false)]);
    }

    /// Walks through a closure.
    pub fn enter_closure(&mut self) {
        self.closures += 1;
    }

    pub fn leave_closure(&mut self) {
        self.closures -= 1;
    }

    /// A block with a label begins.
    pub fn enter_block(&mut self, label: Option<Lifetime>) {
        self.exits.push(Exit { label, ..Exit::default() });
    }

    /// It ends.
    pub fn leave_block(&mut self) {
        let exit = self.exits.pop().unwrap_or_default();
        self.begin(&[&[(self.here, true)], exit.left.as_slice()].concat());
    }

    /// A loop begins. Returns its head.
    pub fn enter_loop(&mut self, label: Option<Lifetime>) -> BlockId {
        self.part();
        let head = self.here;
        self.exits.push(Exit { label, head: Some(head), ..Exit::default() });
        self.part()
    }

    /// The text of the body ends: what `continue` has jumped over meets what comes next.
    pub fn end_body(&mut self) {
        let next = self.exits.last_mut().map(|exit| core::mem::take(&mut exit.next));
        self.begin(&[&[(self.here, true)], next.unwrap_or_default().as_slice()].concat());
    }

    /// The loop ends, which is left by `break`, or also behind `refused`.
    pub fn leave_loop(&mut self, refused: Option<BlockId>) {
        self.end_body();
        let mut exit = self.exits.pop().unwrap_or_default();
        if let (Some(head), 0) = (exit.head, self.closures) {
            self.lead(self.here, head, true);
        }
        exit.left.extend(refused.map(|block| (block, true)));
        self.begin(&exit.left);
    }

    /// `break`.
    pub fn break_out(&mut self, label: Option<&Lifetime>) {
        let here = self.here;
        if let Some(exit) = self.target(label) {
            exit.left.push((here, true));
        }
        self.lose();
    }

    /// `continue`.
    pub fn repeat(&mut self, label: Option<&Lifetime>) {
        let here = self.here;
        if let Some(exit) = self.target(label) {
            exit.next.push((here, true));
        }
        self.lose();
    }

    fn target(&mut self, label: Option<&Lifetime>) -> Option<&mut Exit> {
        self.exits.iter_mut().rev().find(|exit| match label {
            Some(label) => exit.label.as_ref() == Some(label),
            None => exit.head.is_some(),
        })
    }

    /// Control may leave any loop or block from here, and go on with any.
    pub fn may_jump(&mut self) {
        if self.closures > 0 {
            return;
        }
        let here = self.here;
        for exit in &mut self.exits {
            exit.left.push((here, false));
            exit.next.push((here, false));
        }
        self.doubt();
    }

    /// Whether the value that these fields of `variable` have at `place` may be used.
    pub fn used(
        &self,
        place: Place,
        variable: Variable,
        fields: &[Member],
        mentions: &[Mention],
    ) -> Later {
        [(true, Later::Surely), (false, Later::Perhaps)]
            .into_iter()
            .find(|&(certain, _)| self.is_used(place, variable, fields, mentions, certain))
            .map_or(Later::Never, |(_, later)| later)
    }

    fn is_used(
        &self,
        place: Place,
        variable: Variable,
        fields: &[Member],
        mentions: &[Mention],
        certain: bool,
    ) -> bool {
        let mut seen = vec![false; self.blocks.len()];
        let mut stack = vec![(place.block, place.count)];
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
                let other = &mention.way.fields;
                if mention.variable != variable || !overlap(other, fields) {
                    continue;
                }
                match mention.how {
                    How::Assign if !captured && mention.way.element.is_none() => {
                        ends = fields.starts_with(other);
                        if ends {
                            break;
                        }
                    }
                    // What a word stands for may be something else.
                    How::Word if certain => {}
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

    /// Whether `variable`, which was declared without a value, has got one on every
    /// way that leads to `place`.
    pub fn has_value(&self, place: Place, variable: Variable, mentions: &[Mention]) -> bool {
        let mut seen = vec![false; self.blocks.len()];
        let mut stack = vec![(place.block, place.count)];
        while let Some((block, end)) = stack.pop() {
            let assigned = self.blocks[block].events[..end].iter().rev().find_map(|e| match *e {
                Event::Declared(other) => (other == variable).then_some(false),
                Event::Captured(_) => None,
                Event::Mentioned(index) => {
                    let Mention { variable: of, way, how, .. } = &mentions[index];
                    let is = *of == variable && *how == How::Assign && way.is_whole();
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
