//! Finds for each operand of each statement the value that it has in all iterations.

use std::collections::BTreeMap;
use std::rc::Rc;

use hashbrown::HashMap;
use smallvec::SmallVec;

use super::affine::Affine;
use super::matrices::{Matrix, matrices};
use super::recording::Recording;
use super::tree::Tree;
use crate::ssa::{Def, Node};

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
    /// The number of a copy that assigns to it, too.
    pub(super) copy: Option<usize>,
}

/// A value that a variable has before each execution of a loop.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Copy {
    pub(super) before: usize,
    pub(super) operand: Operand,
}

/// The operands of a statement, or the returned values, which are read after all steps.
pub(super) struct Reader<'a> {
    pub(super) loops: &'a [usize],
    pub(super) vectors: Vec<&'a [i64]>,
    steps: Vec<u32>,
}

/// An operand that is read from memory.
pub(super) struct Load<'a> {
    pub(super) reader: Rc<Reader<'a>>,
    /// The source for each iteration vector.
    pub(super) sources: Vec<Source>,
}

/// The operands of all statements, and what they refer to.
pub(super) struct Operands {
    /// For each statement its operands.
    pub(super) of_statements: Vec<Vec<Operand>>,
    pub(super) returned: Vec<Operand>,
    pub(super) variables: Vec<Variable>,
    pub(super) copies: Vec<Copy>,
    pub(super) matrices: Vec<Matrix>,
}

/// The largest number of operands that are read from memory.
const MOST_LOADS: usize = 512;

/// The operands of all statements of `tree`; `None` if one has no form in loops.
pub(super) fn operands(recording: &Recording<'_>, tree: &Tree) -> Option<Operands> {
    let mut search = Search {
        recording,
        tree,
        variables: Vec::new(),
        copies: Vec::new(),
        assignments: HashMap::new(),
        loads: Vec::new(),
        tables: Vec::new(),
    };
    let mut of_statements = Vec::new();
    for statement in &tree.statements {
        let vectors = (0..statement.steps.len()).map(|number| statement.vector(number)).collect();
        let steps = statement.steps.clone();
        let reader = Rc::new(Reader { loops: &statement.loops, vectors, steps });
        let count = statement.steps.first().map_or(0, |&step| recording.operands(step).len());
        let slots = (0..count).map(|slot| {
            let sources = statement.steps.iter();
            let sources = sources.map(|&step| search.source(recording.operands(step)[slot]));
            let sources = sources.collect::<Option<_>>()?;
            search.operand(&reader, sources)
        });
        of_statements.push(slots.collect::<Option<Vec<_>>>()?);
    }
    let end = Rc::new(Reader { loops: &[], vectors: vec![&[]], steps: vec![u32::MAX] });
    let returned = recording.returned().iter();
    let returned = returned.map(|&node| search.operand(&end, vec![search.source(node)?]));
    let returned = returned.collect::<Option<Vec<_>>>()?;
    let Search { variables, copies, loads, tables, .. } = search;
    (loads.len() <= MOST_LOADS).then_some(())?;
    let (mut matrices, cells) = matrices(tree, &loads)?;
    let of_loads = matrices.len();
    matrices.extend(tables);
    let mut operands = Operands { of_statements, returned, variables, copies, matrices };
    // Until here the numbers of loads and of tables stand for matrices.
    let all = operands.of_statements.iter_mut().flatten().chain(&mut operands.returned);
    for operand in all.chain(operands.copies.iter_mut().map(|copy| &mut copy.operand)) {
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
    copies: Vec<Copy>,
    /// The steps of sets of statements.
    assignments: HashMap<Vec<usize>, Rc<[u32]>>,
    loads: Vec<Load<'a>>,
    tables: Vec<Matrix>,
}

impl<'a> Search<'a, '_> {
    /// The operand with these sources, one for each step of `reader`.
    fn operand(&mut self, reader: &Rc<Reader<'a>>, sources: Vec<Source>) -> Option<Operand> {
        let first = *sources.first()?;
        let is_same = sources.iter().all(|source| *source == first);
        match first {
            Source::Leaf(leaf) if is_same => return Some(Operand::Leaf(leaf)),
            _ => {}
        }
        let leaf = |source: &Source| match source {
            Source::Leaf(leaf) => Some(*leaf),
            Source::Step(_) => None,
        };
        if let Some(leaves) = sources.iter().map(leaf).collect::<Option<Vec<Leaf>>>() {
            return self.inputs(reader, &leaves).or_else(|| self.table(reader, &leaves));
        }
        let found = self.variable(reader, &sources).or_else(|| self.carried(reader, &sources));
        Some(found.unwrap_or_else(|| {
            let reader = Rc::clone(reader);
            self.loads.push(Load { reader, sources });
            let index = Affine::zero(0);
            Operand::Cell(self.loads.len() - 1, index)
        }))
    }

    fn source(&self, node: Node) -> Option<Source> {
        if let Some(step) = self.recording.step_of(node) {
            return Some(Source::Step(step));
        }
        match self.recording.graph.nodes[node].def {
            Def::Const(bits) => Some(Source::Leaf(Leaf::Const(bits))),
            Def::Input(number) => Some(Source::Leaf(Leaf::Input(number))),
            _ => None,
        }
    }

    /// The operand, if `leaves` are inputs of one kind whose numbers are affine, or those of a packed
    /// triangle.
    fn inputs(&self, reader: &Reader<'_>, leaves: &[Leaf]) -> Option<Operand> {
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
        let affine = Affine::through(depth, reader.vectors.iter().copied().zip(values()));
        let (index, changes) = match affine {
            Some(index) => (index, SmallVec::new()),
            None => {
                let pairs = |&number: &i64| number * (number - 1) / 2;
                let extended = |vector: &&[i64]| -> Vec<i64> {
                    vector.iter().copied().chain(vector.iter().map(pairs)).collect()
                };
                let extended: Vec<Vec<i64>> = reader.vectors.iter().map(extended).collect();
                let samples = extended.iter().map(|vector| &vector[..]).zip(values());
                let mut index = Affine::through(2 * depth, samples)?;
                let changes = index.factors.drain(depth..).collect();
                (index, changes)
            }
        };
        is_one_kind.then_some(Operand::Input(index, changes))
    }

    /// The operand as an element of a table, in memory if there are inputs in it.
    fn table(&mut self, reader: &Reader<'_>, leaves: &[Leaf]) -> Option<Operand> {
        let (index, leaves) = table(reader, leaves)?;
        if let Some(numbers) = constants(&leaves) {
            return Some(Operand::Constant(numbers, index));
        }
        let size = u32::try_from(leaves.last_key_value()?.0 + 1).ok()?;
        self.tables.push(Matrix { scope: None, size, stores: Vec::new(), leaves });
        Some(Operand::Table(self.tables.len() - 1, index))
    }

    /// The operand, if `sources` are the latest values of the statements that they are from.
    fn variable(&mut self, reader: &Reader<'_>, sources: &[Source]) -> Option<Operand> {
        let statements = self.statements(sources);
        let assigned = self.assigned(&statements);
        let mut first = None;
        for (before, &source) in latest(&assigned, &reader.steps).zip(sources) {
            let is_latest = match source {
                Source::Step(source) => before == Some(source),
                Source::Leaf(leaf) => before.is_none() && *first.get_or_insert(leaf) == leaf,
            };
            is_latest.then_some(())?;
        }
        Some(self.intern(Variable { statements, first, copy: None }))
    }

    /// The operand, if all iterations of the innermost loop but the first read the latest values,
    /// assigned in the same execution of the loop.
    fn carried(&mut self, reader: &Rc<Reader<'a>>, sources: &[Source]) -> Option<Operand> {
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
        let tree = self.tree;
        let start = |at: usize| tree.loops[inner].start(&reader.vectors[at][..depth]);
        for (at, before) in latest(&assigned, &reader.steps).enumerate() {
            let is_inside = before.is_some_and(|before| before >= start(at));
            let fits = match sources[at] {
                _ if reader.vectors[at][depth] == 0 => !is_inside,
                Source::Step(source) => before == Some(source) && is_inside,
                Source::Leaf(_) => false,
            };
            fits.then_some(())?;
        }
        // Read before the loop.
        let is_before = |&at: &usize| match sources[at] {
            Source::Step(step) => step < start(at),
            Source::Leaf(_) => true,
        };
        firsts.iter().all(is_before).then_some(())?;
        let vectors = firsts.iter().map(|&at| &reader.vectors[at][..depth]).collect();
        let steps = firsts.iter().map(|&at| start(at)).collect();
        let outer = Rc::new(Reader { loops: around, vectors, steps });
        let operand = self.operand(&outer, firsts.iter().map(|&at| sources[at]).collect())?;
        let copy = Copy { before: inner, operand };
        let known = self.copies.iter().position(|known| *known == copy);
        let copy = known.unwrap_or_else(|| {
            self.copies.push(copy);
            self.copies.len() - 1
        });
        Some(self.intern(Variable { statements, first: None, copy: Some(copy) }))
    }

    /// The statements that compute `sources`, in order.
    fn statements(&self, sources: &[Source]) -> Vec<usize> {
        let statement = |source: &Source| match *source {
            Source::Step(step) => Some(self.tree.of_step[step as usize].0 as usize),
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
                && known.copy == variable.copy
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

/// For each of `steps` the latest of `assigned` before it; both in order.
fn latest(assigned: &[u32], steps: &[u32]) -> impl Iterator<Item = Option<u32>> {
    let mut next = 0;
    steps.iter().map(move |&step| {
        while assigned.get(next).is_some_and(|&other| other < step) {
            next += 1;
        }
        next.checked_sub(1).map(|at| assigned[at])
    })
}

/// The values of an operand in an array with an axis for each loop on which they depend: the index,
/// and the values that are used, by index.
fn table(reader: &Reader<'_>, leaves: &[Leaf]) -> Option<(Affine, BTreeMap<i64, Leaf>)> {
    let depth = reader.loops.len();
    let extents: Vec<i64> = (0..depth)
        .map(|axis| reader.vectors.iter().map(|vector| vector[axis] + 1).max())
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
        let is_same = |(vector, leaf): (&&[i64], &Leaf)| {
            *known.entry(projected.at(vector)).or_insert(*leaf) == *leaf
        };
        if reader.vectors.iter().zip(leaves).all(is_same) {
            axes = others;
        }
    }
    let (index, size) = index(&axes)?;
    let table: BTreeMap<i64, Leaf> =
        reader.vectors.iter().zip(leaves).map(|(vector, &leaf)| (index.at(vector), leaf)).collect();
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
