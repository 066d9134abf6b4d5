//! Finds for each operand of each statement the value that it has in all iterations.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::rc::Rc;

use hashbrown::HashMap;
use smallvec::SmallVec;

use super::affine::Affine;
use super::matrices::{Matrix, matrices};
use super::recording::Recording;
use super::tree::Tree;

/// A value from before all loops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Leaf {
    Const(u64),
    Input(u32),
}

/// The source of an operand in one iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    Leaf(Leaf),
    Step(u32),
}

/// An operand in all iterations.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Operand {
    Leaf(Leaf),
    /// An input, by its number, with the changes of its factors from one iteration to the next.
    Input(Affine, SmallVec<[i64; 4]>),
    /// An element of a table of constants.
    Constant(Rc<[u64]>, Affine),
    /// The latest value of this variable.
    Variable(usize),
    /// An element of a table with inputs.
    Table(usize, Affine),
    /// An element of a matrix of cells.
    Cell(usize, Affine),
}

/// A variable: each step of the statements assigns to it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Variable {
    /// In order.
    pub(super) statements: Vec<usize>,
    /// The value before the first of these steps.
    pub(super) first: Option<Leaf>,
    /// The number of its value on entry to a loop, if that is another operand.
    pub(super) initial: Option<usize>,
}

/// The value of a variable on entry to a loop.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct InitialValue {
    /// The loop.
    pub(super) entered: usize,
    pub(super) operand: Operand,
}

/// The operands of a statement at all its steps; or the returned values, which are read after all
/// steps.
pub(super) struct UseSite<'a> {
    pub(super) loops: &'a [usize],
    /// The iteration vectors of its steps.
    vectors: Vec<Cow<'a, [i64]>>,
    /// The steps before which it reads.
    read_at: Vec<u32>,
    /// Its steps.
    steps: Vec<u32>,
}

/// One of the operands of a reader, at all its steps.
struct Column<'a> {
    reader: Rc<UseSite<'a>>,
    slot: usize,
    sources: Vec<Source>,
}

impl UseSite<'_> {
    /// The iteration vectors of its steps.
    pub(super) fn vectors(&self) -> impl Iterator<Item = &[i64]> + Clone {
        self.vectors.iter().map(|vector| &vector[..])
    }
}

/// An operand that is read from memory.
pub(super) struct Load<'a> {
    pub(super) reader: Rc<UseSite<'a>>,
    /// The source for each iteration vector.
    pub(super) sources: Vec<Source>,
}

/// The operands of all statements, and what they refer to.
pub(super) struct Operands {
    /// For each statement its operands.
    pub(super) of_statements: Vec<Vec<Operand>>,
    pub(super) returned: Vec<Operand>,
    pub(super) variables: Vec<Variable>,
    pub(super) initials: Vec<InitialValue>,
    pub(super) matrices: Vec<Matrix>,
}

/// The largest number of inputs and constants in gaps for an operand.
const MOST_LEAVES: usize = 1 << 18;
/// The largest number of operands that are read from memory.
const MOST_LOADS: usize = 512;

/// The operands of all statements of `tree`; `None` if one has no form in loops.
pub(super) fn operands(recording: &Recording<'_>, tree: &Tree) -> Option<Operands> {
    let mut search = Search {
        recording,
        tree,
        variables: Vec::new(),
        initials: Vec::new(),
        assignments: HashMap::new(),
        loads: Vec::new(),
        tables: Vec::new(),
    };
    let mut of_statements = Vec::new();
    for statement in &tree.statements {
        let vectors = (0..statement.steps.len()).map(|number| statement.vector(number).into());
        let (vectors, steps) = (vectors.collect(), statement.steps.clone());
        let read_at = steps.clone();
        let reader = Rc::new(UseSite { loops: &statement.loops, vectors, read_at, steps });
        let count = statement.steps.first().map_or(0, |&step| recording.operands(step).len());
        let slots = (0..count).map(|slot| {
            let sources = statement.steps.iter().map(|&step| recording.operands(step)[slot]);
            let (reader, sources) = (Rc::clone(&reader), sources.collect());
            search.operand(Column { reader, slot, sources })
        });
        of_statements.push(slots.collect::<Option<Vec<_>>>()?);
    }
    let vectors = vec![Cow::Borrowed(&[][..])];
    let end = vec![u32::MAX];
    let end = Rc::new(UseSite { loops: &[], vectors, read_at: end.clone(), steps: end });
    let returned = recording.returned.iter().map(|&source| {
        let (reader, sources) = (Rc::clone(&end), vec![source]);
        search.operand(Column { reader, slot: 0, sources })
    });
    let returned = returned.collect::<Option<Vec<_>>>()?;
    let Search { variables, initials, loads, tables, .. } = search;
    (loads.len() <= MOST_LOADS).then_some(())?;
    let (mut matrices, cells) = matrices(tree, &loads)?;
    let of_loads = matrices.len();
    matrices.extend(tables);
    let mut operands = Operands { of_statements, returned, variables, initials, matrices };
    // Until here the numbers of loads and of tables stand for matrices.
    let all = operands.of_statements.iter_mut().flatten().chain(&mut operands.returned);
    for operand in all.chain(operands.initials.iter_mut().map(|initial| &mut initial.operand)) {
        *operand = match operand {
            Operand::Cell(load, _) => {
                let (matrix, index) = cells[*load].clone();
                Operand::Cell(matrix, index)
            }
            Operand::Table(table, index) => Operand::Cell(of_loads + *table, index.clone()),
            _ => continue,
        };
    }
    Some(operands)
}

struct Search<'a, 'r> {
    recording: &'a Recording<'r>,
    tree: &'a Tree,
    variables: Vec<Variable>,
    initials: Vec<InitialValue>,
    /// The steps of sets of statements.
    assignments: HashMap<Vec<usize>, Rc<[u32]>>,
    loads: Vec<Load<'a>>,
    tables: Vec<Matrix>,
}

impl<'a> Search<'a, '_> {
    fn operand(&mut self, column: Column<'a>) -> Option<Operand> {
        if self.has_tables(&column) {
            return self.in_memory(column);
        }
        let Column { reader, slot, sources } = &column;
        let first = *sources.first()?;
        let is_same = sources.iter().all(|source| *source == first);
        match first {
            Source::Leaf(leaf) if is_same => return Some(Operand::Leaf(leaf)),
            _ => {}
        }
        let found = match leaves(sources) {
            Some(leaves) => self.inputs(reader, &leaves),
            None => self.variable(reader, sources).or_else(|| self.carried(reader, *slot, sources)),
        };
        found.or_else(|| self.in_memory(column))
    }

    /// The operand as an element of a table, or of a matrix of cells.
    fn in_memory(&mut self, column: Column<'a>) -> Option<Operand> {
        let (reader, sources) = self.with_leaves_in_gaps(column)?;
        if let Some(leaves) = leaves(&sources) {
            return self.table(&reader, &leaves);
        }
        self.loads.push(Load { reader, sources });
        Some(Operand::Cell(self.loads.len() - 1, Affine::zero(0)))
    }

    /// Tests whether `column` is a table of constants in a gap.
    fn has_tables(&self, Column { reader, slot, .. }: &Column<'_>) -> bool {
        let is_table = |&step: &u32| {
            let gap = self.recording.gap_after(step);
            gap.is_some_and(|gap| self.recording.is_table(gap, step, *slot))
        };
        !self.recording.gaps.is_empty() && reader.steps.iter().any(is_table)
    }

    /// `column` with the inputs and constants of steps in gaps.
    fn with_leaves_in_gaps(&self, column: Column<'a>) -> Option<(Rc<UseSite<'a>>, Vec<Source>)> {
        let Column { reader, slot, mut sources } = column;
        let (recording, depth) = (self.recording, reader.loops.len());
        let mut vectors = Vec::new();
        for at in 0..reader.steps.len() {
            let step = reader.steps[at];
            let Source::Leaf(_) = sources[at] else { continue };
            let Some(gap) = recording.gap_after(step) else { continue };
            let times = recording.gaps[gap].times;
            (vectors.len() + times as usize <= MOST_LEAVES).then_some(())?;
            for ahead in 1..=times {
                let leaf = recording.leaf_in_gap(gap, step, slot, ahead)?;
                let mut vector = self.tree.vector_in_gap(gap, step, ahead);
                vector.truncate(depth);
                vectors.push(Cow::Owned(vector));
                sources.push(Source::Leaf(leaf));
            }
        }
        if vectors.is_empty() {
            return Some((reader, sources));
        }
        let vectors = reader.vectors.iter().cloned().chain(vectors).collect();
        let (read_at, steps) = Default::default();
        Some((Rc::new(UseSite { loops: reader.loops, vectors, read_at, steps }), sources))
    }

    /// The operand, if `leaves` are inputs of one kind whose numbers are affine, or those of a packed
    /// triangle.
    fn inputs(&self, reader: &UseSite<'_>, leaves: &[Leaf]) -> Option<Operand> {
        let active = self.recording.graph.active;
        let number = |leaf: &Leaf| match *leaf {
            Leaf::Input(number) => Some(i64::from(number)),
            Leaf::Const(_) => None,
        };
        let numbers: Vec<i64> = leaves.iter().map(number).collect::<Option<_>>()?;
        let is_active = |number: i64| number < active as i64;
        let is_one_kind = numbers.iter().all(|&number| is_active(number) == is_active(numbers[0]));
        let depth = reader.loops.len();
        let values = || numbers.iter().copied();
        let affine = Affine::through(depth, reader.vectors().zip(values()));
        let (index, changes) = match affine {
            Some(index) => (index, SmallVec::new()),
            None => {
                let pairs = |&number: &i64| number * (number - 1) / 2;
                let extended = |vector: &[i64]| -> Vec<i64> {
                    vector.iter().copied().chain(vector.iter().map(pairs)).collect()
                };
                let extended: Vec<Vec<i64>> = reader.vectors().map(extended).collect();
                let samples = extended.iter().map(|vector| &vector[..]).zip(values());
                let mut index = Affine::through(2 * depth, samples)?;
                let changes = index.factors.drain(depth..).collect();
                (index, changes)
            }
        };
        is_one_kind.then_some(Operand::Input(index, changes))
    }

    /// The operand as an element of a table, in memory if there are inputs in it.
    fn table(&mut self, reader: &UseSite<'_>, leaves: &[Leaf]) -> Option<Operand> {
        let (index, leaves) = table(reader, leaves)?;
        if let Some(numbers) = constants(&leaves) {
            return Some(Operand::Constant(numbers, index));
        }
        let size = u32::try_from(leaves.last_key_value()?.0 + 1).ok()?;
        self.tables.push(Matrix { scope: None, size, stores: Vec::new(), leaves });
        Some(Operand::Table(self.tables.len() - 1, index))
    }

    /// The operand, if `sources` are the latest values of the statements that they are from.
    fn variable(&mut self, reader: &UseSite<'_>, sources: &[Source]) -> Option<Operand> {
        let statements = self.statements(sources);
        let assigned = self.assigned(&statements);
        let mut first = None;
        let recording = self.recording;
        for (before, &source) in latest(recording, &assigned, &reader.read_at).zip(sources) {
            let is_latest = match source {
                Source::Step(source) => before == Some(recording.position(source)),
                Source::Leaf(leaf) => before.is_none() && *first.get_or_insert(leaf) == leaf,
            };
            is_latest.then_some(())?;
        }
        Some(self.intern(Variable { statements, first, initial: None }))
    }

    /// The operand, if all iterations of the innermost loop but the first read the latest values,
    /// assigned in the same execution of the loop.
    fn carried(
        &mut self,
        reader: &UseSite<'a>,
        slot: usize,
        sources: &[Source],
    ) -> Option<Operand> {
        let (&inner, around) = reader.loops.split_last()?;
        let depth = around.len();
        let is_first = |&at: &usize| reader.vectors[at][depth] == 0;
        let (firsts, others): (Vec<usize>, Vec<usize>) = (0..sources.len()).partition(is_first);
        let statements = {
            let others: Vec<Source> = others.iter().map(|&at| sources[at]).collect();
            self.statements(&others)
        };
        let assigned = self.assigned(&statements);
        (!assigned.is_empty()).then_some(())?;
        let (tree, recording) = (self.tree, self.recording);
        let start = |at: usize| tree.loops[inner].start(&reader.vectors[at][..depth]);
        for (at, before) in latest(recording, &assigned, &reader.read_at).enumerate() {
            let is_inside = before.is_some_and(|before| before >= recording.position(start(at)));
            let fits = match sources[at] {
                _ if reader.vectors[at][depth] == 0 => !is_inside,
                Source::Step(source) => before == Some(recording.position(source)) && is_inside,
                Source::Leaf(_) => false,
            };
            fits.then_some(())?;
        }
        // Read before the loop.
        let is_before = |&at: &usize| match sources[at] {
            Source::Step(step) => recording.position(step) < recording.position(start(at)),
            Source::Leaf(_) => true,
        };
        firsts.iter().all(is_before).then_some(())?;
        let vectors = firsts.iter().map(|&at| reader.vectors[at][..depth].to_vec().into());
        let vectors = vectors.collect();
        let read_at = firsts.iter().map(|&at| start(at)).collect();
        let steps = firsts.iter().map(|&at| reader.steps[at]).collect();
        let outer = Rc::new(UseSite { loops: around, vectors, read_at, steps });
        let sources = firsts.iter().map(|&at| sources[at]).collect();
        let operand = self.operand(Column { reader: outer, slot, sources })?;
        let initial = InitialValue { entered: inner, operand };
        let known = self.initials.iter().position(|known| *known == initial);
        let initial = known.unwrap_or_else(|| {
            self.initials.push(initial);
            self.initials.len() - 1
        });
        Some(self.intern(Variable { statements, first: None, initial: Some(initial) }))
    }

    /// The statements that compute `sources`, in order.
    fn statements(&self, sources: &[Source]) -> Vec<usize> {
        let statement = |source: &Source| match *source {
            Source::Step(step) => Some(self.tree.statement_of(step)),
            Source::Leaf(_) => None,
        };
        let mut statements: Vec<usize> = sources.iter().filter_map(statement).collect();
        statements.sort_unstable();
        statements.dedup();
        statements
    }

    /// The steps of `statements`, in order.
    fn assigned(&mut self, statements: &[usize]) -> Rc<[u32]> {
        let tree = self.tree;
        let assigned = self.assignments.entry_ref(statements).or_insert_with(|| {
            let steps = statements.iter().flat_map(|&number| &tree.statements[number].steps);
            let mut steps: Vec<u32> = steps.copied().collect();
            steps.sort_unstable();
            steps.into()
        });
        Rc::clone(assigned)
    }

    fn intern(&mut self, variable: Variable) -> Operand {
        let is_same = |known: &Variable| {
            let is_first = known.first.is_none() || variable.first.is_none();
            known.statements == variable.statements
                && known.initial == variable.initial
                && (is_first || known.first == variable.first)
        };
        Operand::Variable(match self.variables.iter().position(is_same) {
            Some(known) => {
                let first = &mut self.variables[known].first;
                *first = first.or(variable.first);
                known
            }
            None => {
                self.variables.push(variable);
                self.variables.len() - 1
            }
        })
    }
}

/// For each of `steps` the position of the latest one before it of those that `assigned` are, also
/// in gaps; both in order.
fn latest(
    recording: &Recording<'_>,
    assigned: &[u32],
    steps: &[u32],
) -> impl Iterator<Item = Option<u32>> {
    let mut next = 0;
    steps.iter().map(move |&step| {
        while assigned.get(next).is_some_and(|&other| other < step) {
            next += 1;
        }
        let latest = next.checked_sub(1).map(|at| assigned[at])?;
        let gap = recording.gap_after(latest).map(|gap| &recording.gaps[gap]);
        let in_gap = gap.filter(|gap| gap.at <= step).map_or(0, |gap| gap.times * gap.period);
        Some(recording.position(latest) + in_gap)
    })
}

/// `sources`, if all are leaves.
fn leaves(sources: &[Source]) -> Option<Vec<Leaf>> {
    let leaf = |source: &Source| match source {
        Source::Leaf(leaf) => Some(*leaf),
        Source::Step(_) => None,
    };
    sources.iter().map(leaf).collect()
}

/// The values of an operand in an array with an axis for each loop on which they depend: the index,
/// and the values that are used, by index.
fn table(reader: &UseSite<'_>, leaves: &[Leaf]) -> Option<(Affine, BTreeMap<i64, Leaf>)> {
    let depth = reader.loops.len();
    let extents: Vec<i64> = (0..depth)
        .map(|axis| reader.vectors().map(|vector| vector[axis] + 1).max())
        .collect::<Option<_>>()?;
    let index = |axes: &[usize]| {
        let mut index = Affine::zero(depth);
        let mut size = 1;
        for &axis in axes.iter().rev() {
            index.factors[axis] = size;
            size = i64::checked_mul(size, extents[axis])?;
        }
        Some((index, size))
    };
    let mut axes: Vec<usize> = (0..depth).collect();
    for axis in 0..depth {
        let others: Vec<usize> = axes.iter().copied().filter(|&other| other != axis).collect();
        let (projected, _) = index(&others)?;
        let mut known: HashMap<i64, Leaf> = HashMap::new();
        let is_same = |(vector, leaf): (&[i64], &Leaf)| {
            *known.entry(projected.at(vector)).or_insert(*leaf) == *leaf
        };
        if reader.vectors().zip(leaves).all(is_same) {
            axes = others;
        }
    }
    let (index, size) = index(&axes)?;
    let table: BTreeMap<i64, Leaf> =
        reader.vectors().zip(leaves).map(|(vector, &leaf)| (index.at(vector), leaf)).collect();
    // Room for triangles in a square, but not for everything.
    (size as usize <= 64 + 8 * table.len()).then_some((index, table))
}

/// The numbers of a table of constants, with some number where none is used.
fn constants(table: &BTreeMap<i64, Leaf>) -> Option<Rc<[u64]>> {
    let (&last, _) = table.last_key_value()?;
    let mut numbers = vec![0; last as usize + 1];
    for (&index, &leaf) in table {
        let Leaf::Const(bits) = leaf else { return None };
        numbers[index as usize] = bits;
    }
    Some(numbers.into())
}
