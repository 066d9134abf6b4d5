//! The tree of loops, and the iteration vectors of all steps.

use hashbrown::HashMap;

use super::affine::Affine;
use super::parse::{Key, LoopGap, Parse, Token, iterations_in_gaps};
use super::recording::{InGap, Recording};

/// A part of the body of a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Part {
    Statement(usize),
    Loop(usize),
}

/// Steps of one form at one place in the tree: one for each of their iteration vectors.
pub(super) struct Statement {
    /// The loops around it, outermost first.
    pub(super) loops: Vec<usize>,
    /// Its position in the body around it.
    pub(super) position: usize,
    pub(super) form: u32,
    /// In order.
    pub(super) steps: Vec<u32>,
    /// The iteration vectors of its steps, one after the other.
    vectors: Vec<i64>,
}

impl Statement {
    /// The iteration vector of step number `number`.
    pub(super) fn vector(&self, number: usize) -> &[i64] {
        let depth = self.loops.len();
        &self.vectors[number * depth..][..depth]
    }
}

/// A loop.
pub(super) struct TreeLoop {
    /// The loops around it, outermost first.
    pub(super) around: Vec<usize>,
    /// Its position in the body around it.
    pub(super) position: usize,
    pub(super) body: Vec<Part>,
    /// Its trip counts, as functions of the iteration vectors of the loops around it.
    pub(super) trips: Affine,
    pub(super) most_trips: u32,
    /// The first step of each execution, by the iteration vectors of the loops around it.
    starts: HashMap<Vec<i64>, u32>,
    /// The iteration vectors with trip counts, while the tree is made.
    executions: (Vec<i64>, Vec<i64>),
}

impl TreeLoop {
    /// The first step of the execution in these iterations of the loops around it.
    pub(super) fn start(&self, vector: &[i64]) -> u32 {
        self.starts.get(vector).copied().unwrap_or(0)
    }
}

/// All statements and loops.
pub(super) struct Tree {
    pub(super) statements: Vec<Statement>,
    pub(super) loops: Vec<TreeLoop>,
    pub(super) root: Vec<Part>,
    /// For each step its statement, and its number there.
    of_step: Vec<(u32, u32)>,
    /// The iteration vectors of steps in gaps.
    in_gaps: Vec<Vec<i64>>,
    /// For each gap the loop whose iterations are left out, and how many of them one of the trace
    /// loop is.
    gaps: Vec<(usize, u32)>,
}

/// The largest number of statements.
pub(super) const MOST_STATEMENTS: usize = 1 << 12;

impl Tree {
    /// The tree of `parse`; `None` if it is too large, or if a trip count is no affine function.
    pub(super) fn of(recording: &Recording<'_>, parse: &Parse) -> Option<Tree> {
        let mut tree = Tree {
            statements: Vec::new(),
            loops: Vec::new(),
            root: Vec::new(),
            of_step: vec![(0, 0); recording.len()],
            in_gaps: Vec::new(),
            gaps: vec![(0, 0); recording.gaps.len()],
        };
        for (position, token) in parse.tokens.iter().enumerate() {
            let part = tree.part(parse, token.key, &[], position)?;
            tree.root.push(part);
        }
        let mut vector = Vec::new();
        for (position, &token) in parse.tokens.iter().enumerate() {
            tree.assign(parse, tree.root[position], token, &mut vector);
        }
        for &InGap { gap, step, ahead } in &recording.in_gaps {
            tree.of_step.push(tree.of_step[step as usize]);
            tree.in_gaps.push(tree.vector_in_gap(gap as usize, step, ahead));
        }
        for at in &mut tree.loops {
            let (vectors, trips) = core::mem::take(&mut at.executions);
            let depth = at.around.len();
            let samples =
                trips.iter().enumerate().map(|(i, &trips)| (&vectors[i * depth..][..depth], trips));
            at.trips = Affine::through(depth, samples)?;
            at.most_trips = u32::try_from(trips.into_iter().max()?).ok()?;
        }
        Some(tree)
    }

    /// The number of steps that are listed.
    fn listed(&self) -> usize {
        self.of_step.len() - self.in_gaps.len()
    }

    /// The number of steps, also of those in gaps.
    pub(super) fn steps(&self) -> usize {
        self.of_step.len()
    }

    /// The statement of a step.
    pub(super) fn statement_of(&self, step: u32) -> usize {
        self.of_step[step as usize].0 as usize
    }

    /// The iteration vector of a step.
    pub(super) fn vector_of(&self, step: u32) -> &[i64] {
        match (step as usize).checked_sub(self.listed()) {
            Some(in_gap) => &self.in_gaps[in_gap],
            None => {
                let (statement, number) = self.of_step[step as usize];
                self.statements[statement as usize].vector(number as usize)
            }
        }
    }

    /// The steps in gaps.
    pub(super) fn in_gaps(&self) -> impl Iterator<Item = u32> {
        self.listed() as u32..self.of_step.len() as u32
    }

    /// The iteration vector in a gap, so many iterations after `step`.
    pub(super) fn vector_in_gap(&self, gap: usize, step: u32, ahead: u32) -> Vec<i64> {
        let (statement, number) = self.of_step[step as usize];
        let statement = &self.statements[statement as usize];
        let (around, by) = self.gaps[gap];
        let mut vector = statement.vector(number as usize).to_vec();
        if let Some(depth) = statement.loops.iter().position(|&other| other == around) {
            vector[depth] += i64::from(ahead) * i64::from(by);
        }
        vector
    }

    /// Calls `each` with all iteration vectors of `loops`, a path from the root.
    pub(super) fn for_each_vector(&self, loops: &[usize], each: &mut impl FnMut(&[i64])) {
        let mut vector = Vec::with_capacity(loops.len());
        self.for_each_inside(loops, &mut vector, each);
    }

    fn for_each_inside(
        &self,
        loops: &[usize],
        vector: &mut Vec<i64>,
        each: &mut impl FnMut(&[i64]),
    ) {
        let Some(&next) = loops.get(vector.len()) else { return each(vector) };
        for number in 0..self.loops[next].trips.at(vector) {
            vector.push(number);
            self.for_each_inside(loops, vector, each);
            vector.pop();
        }
    }

    /// The parts of the body of `parent`, or of the root.
    pub(super) fn body(&self, parent: Option<usize>) -> &[Part] {
        parent.map_or(&self.root, |parent| &self.loops[parent].body)
    }

    fn part(&mut self, parse: &Parse, key: Key, around: &[usize], position: usize) -> Option<Part> {
        match key {
            Key::Form(form) => {
                (self.statements.len() < MOST_STATEMENTS).then_some(())?;
                let (steps, vectors) = Default::default();
                let loops = around.to_vec();
                self.statements.push(Statement { loops, position, form, steps, vectors });
                Some(Part::Statement(self.statements.len() - 1))
            }
            Key::Loop(number) => {
                let own = self.loops.len();
                let around = around.to_vec();
                let inside: Vec<usize> = around.iter().copied().chain([own]).collect();
                let trips = Affine::zero(0);
                let (body, starts, executions) = Default::default();
                self.loops.push(TreeLoop {
                    around,
                    position,
                    body,
                    trips,
                    most_trips: 0,
                    starts,
                    executions,
                });
                for (position, &key) in parse.bodies[number as usize].iter().enumerate() {
                    let part = self.part(parse, key, &inside, position)?;
                    self.loops[own].body.push(part);
                }
                Some(Part::Loop(own))
            }
        }
    }

    /// Assigns the steps of `token` to `part`, in the iterations `vector` of the loops around.
    fn assign(&mut self, parse: &Parse, part: Part, token: Token, vector: &mut Vec<i64>) {
        match part {
            Part::Statement(number) => {
                let statement = &mut self.statements[number];
                self.of_step[token.first as usize] = (number as u32, statement.steps.len() as u32);
                statement.steps.push(token.first);
                statement.vectors.extend_from_slice(vector);
            }
            Part::Loop(number) => {
                let depth = vector.len();
                let execution = &parse.executions[token.execution as usize];
                let period = self.loops[number].body.len();
                let at = &mut self.loops[number];
                at.starts.insert(vector.clone(), token.first);
                let (vectors, trips) = &mut at.executions;
                vectors.extend_from_slice(vector);
                trips.push(i64::from(execution.times));
                for &LoopGap { gap, by, .. } in &execution.gaps {
                    self.gaps[gap as usize] = (number, by);
                }
                for (iteration, tokens) in execution.tokens.chunks(period).enumerate() {
                    vector.push(iteration as i64);
                    for (position, &token) in tokens.iter().enumerate() {
                        // A gap may be anywhere in an iteration.
                        let in_gaps = iterations_in_gaps(&execution.gaps, token.first);
                        vector[depth] = iteration as i64 + i64::from(in_gaps);
                        let part = self.loops[number].body[position];
                        self.assign(parse, part, token, vector);
                    }
                    vector.pop();
                }
            }
        }
    }
}
