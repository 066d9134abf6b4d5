//! Cells for values that later iterations read.
//!
//! The values of a statement in a nest of loops form a matrix with an axis for each of the loops. An
//! operand that reads one of them reads that of another iteration vector, an affine function of its
//! own. Where other statements give some of the values that it reads, those of a first row for
//! example, they continue the matrix: the function tells their places.
//!
//! ```text
//! y[i] = (b[i] - sum) / l[i, i]          value of iteration i - 1, for row i
//! sum += l[i, j] · y[j]                  reads the value of iteration j - 1: y[0] is in front
//! ```

use std::collections::BTreeMap;

use hashbrown::HashMap;
use smallvec::SmallVec;

use super::affine::{Affine, directions};
use super::operands::{Leaf, Load, Source};
use super::tree::Tree;

/// The statement that computes a value, and the number of innermost loops of which it gives the
/// value of the last iteration alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Producer {
    pub(super) statement: usize,
    pub(super) ended: usize,
}

/// A matrix of cells.
pub(super) struct Matrix {
    /// The loop in each of whose iterations the cells are filled anew, if it is not the root.
    pub(super) scope: Option<usize>,
    pub(super) size: u32,
    /// The steps that store, with the index of the cell.
    pub(super) stores: Vec<(Producer, Affine)>,
    /// Values from before the loops, by their index.
    pub(super) leaves: BTreeMap<i64, Leaf>,
}

/// The number of producers whose loops may give the axes of a matrix.
const MAIN_PRODUCERS: usize = 2;

/// The axes of a matrix: one for each loop of the main producer, but for the innermost ones.
#[derive(Clone, Copy, PartialEq)]
enum Axes {
    Loops,
    /// One axis for the innermost loops: a reader runs over all their values in a single loop, whose
    /// iteration number gives the factors.
    Read,
    /// One axis for so many innermost loops, row by row.
    Inner(usize),
    /// The last axis has so many positions for each iteration: other statements compute other
    /// coordinates.
    Interleaved(i64),
}

impl Axes {
    const ALL: [Axes; 6] = [
        Axes::Loops,
        Axes::Read,
        Axes::Inner(2),
        Axes::Inner(3),
        Axes::Interleaved(2),
        Axes::Interleaved(3),
    ];

    /// The factors of the innermost loops of the main producer in the position on the last axis.
    fn factors(
        self,
        tree: &Tree,
        main: &Producing<'_>,
        loads: &[(usize, &Load<'_>)],
    ) -> Option<SmallVec<[i64; 4]>> {
        match (self, main.loops) {
            (Axes::Loops, []) => Some(SmallVec::new()),
            (Axes::Loops, _) => Some(SmallVec::from_slice(&[1])),
            (Axes::Interleaved(by), [_, ..]) => Some(SmallVec::from_slice(&[by])),
            (Axes::Inner(count), loops) => {
                let mut factors: SmallVec<[i64; 4]> = SmallVec::from_slice(&[1]);
                let inner = &loops[loops.len().checked_sub(count - 1)?..];
                for &inner in inner.iter().rev() {
                    let trips = &tree.loops[inner].trips;
                    trips.factors.iter().all(|&by| by == 0).then_some(())?;
                    let size = factors[0].checked_mul(trips.constant);
                    factors.insert(0, size.filter(|&size| size <= MOST_CELLS)?);
                }
                (factors.len() <= loops.len()).then_some(factors)
            }
            (Axes::Read, _) => {
                loads.iter().find_map(|(_, load)| main.factors_of_reader(tree, load))
            }
            _ => None,
        }
    }
}

/// A position in a matrix: one number for each axis.
type Position = SmallVec<[i64; 4]>;

/// The largest number of cells of a matrix, so that indices have no overflow.
const MOST_CELLS: i64 = 1 << 26;

/// A matrix, and the index of a cell.
type Cell = (usize, Affine);

/// The matrices for `loads`, and for each load the cell that it reads.
pub(super) fn matrices(tree: &Tree, loads: &[Load<'_>]) -> Option<(Vec<Matrix>, Vec<Cell>)> {
    let producers: Vec<Vec<Producer>> = loads.iter().map(|load| producers(tree, load)).collect();
    let (mut matrices, mut cells) = (Vec::new(), vec![None; loads.len()]);
    for family in families(&producers) {
        let layout = |(main, axes)| {
            let mut layout = Layout::of(tree, loads, &producers, &family, main, axes)?;
            layout.place_all()?;
            Some(layout)
        };
        let attempts = (0..MAIN_PRODUCERS).flat_map(|main| Axes::ALL.map(|axes| (main, axes)));
        let layout = attempts.into_iter().find_map(layout)?;
        let matrix = matrices.len();
        matrices.push(layout.matrix(|load, index| cells[load] = Some((matrix, index)))?);
    }
    Some((matrices, cells.into_iter().collect::<Option<_>>()?))
}

/// The producers of the values of `load`.
fn producers(tree: &Tree, load: &Load<'_>) -> Vec<Producer> {
    let mut ended: BTreeMap<usize, usize> = BTreeMap::new();
    for (vector, source) in load.reader.vectors().zip(&load.sources) {
        let Source::Step(step) = *source else { continue };
        let count = ended_before(tree, step, load.reader.loops, vector);
        let least = ended.entry(tree.statement_of(step)).or_insert(count);
        *least = count.min(*least);
    }
    ended.into_iter().map(|(statement, ended)| Producer { statement, ended }).collect()
}

/// The number of loops that have ended with `step` where iteration `vector` of `loops` reads it.
fn ended_before(tree: &Tree, step: u32, loops: &[usize], vector: &[i64]) -> usize {
    let (own, own_loops) = (tree.vector_of(step), &tree.statements[tree.statement_of(step)].loops);
    let own = own_loops.iter().zip(own);
    let common = own.zip(loops.iter().zip(vector)).take_while(|(own, other)| own == other).count();
    ended_loops(tree, own_loops, tree.vector_of(step)).min(own_loops.len() - common)
}

/// The number of innermost loops in whose last iteration this is.
fn ended_loops(tree: &Tree, loops: &[usize], vector: &[i64]) -> usize {
    let is_last =
        |depth: &usize| vector[*depth] == tree.loops[loops[*depth]].trips.at(&vector[..*depth]) - 1;
    (0..loops.len()).rev().take_while(is_last).count()
}

/// The loads that share producers, as lists of their numbers.
fn families(producers: &[Vec<Producer>]) -> Vec<Vec<usize>> {
    let mut family: Vec<usize> = (0..producers.len()).collect();
    let mut of_producer: HashMap<Producer, usize> = HashMap::new();
    for (load, producers) in producers.iter().enumerate() {
        for &producer in producers {
            let (own, other) = (family[load], family[*of_producer.entry(producer).or_insert(load)]);
            family.iter_mut().filter(|family| **family == other).for_each(|family| *family = own);
        }
    }
    let mut lists: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    family
        .iter()
        .enumerate()
        .for_each(|(load, &family)| lists.entry(family).or_default().push(load));
    lists.into_values().collect()
}

/// The steps of a producer, with their iteration vectors.
struct Producing<'a> {
    producer: Producer,
    loops: &'a [usize],
    steps: Vec<(u32, &'a [i64])>,
    /// The position of a step, as a function of its iteration vector.
    map: Option<Vec<Affine>>,
    /// True if these are second positions of the steps.
    is_copy: bool,
}

/// A step that has a position, and is read at another one after so many loops have ended.
struct Copied {
    step: u32,
    ended: usize,
    position: Position,
}

/// The positions of steps.
struct Positions {
    /// For each step the number of its position; the largest number for none.
    of_steps: Vec<u32>,
    all: Vec<Position>,
}

impl Positions {
    fn get(&self, step: u32) -> Option<&Position> {
        self.all.get(self.of_steps[step as usize] as usize)
    }

    /// Sets the position of `step`; `None` if it has another one.
    fn set(&mut self, step: u32, position: Position) -> Option<()> {
        if let Some(known) = self.get(step) {
            return (*known == position).then_some(());
        }
        self.of_steps[step as usize] = self.all.len() as u32;
        self.all.push(position);
        Some(())
    }
}

/// The layout of the matrix of one family.
struct Layout<'a> {
    tree: &'a Tree,
    /// The number of axes.
    dimension: usize,
    /// The factors of the innermost loops of the main producer on the last axis.
    factors: SmallVec<[i64; 4]>,
    loads: Vec<(usize, &'a Load<'a>)>,
    /// The one with the axes of the matrix first.
    producing: Vec<Producing<'a>>,
    positions: Positions,
    leaves: HashMap<Position, Leaf>,
    /// For each load the position, as a function of the iteration vector of the reader.
    maps: Vec<Option<Vec<Affine>>>,
}

impl<'a> Layout<'a> {
    fn of(
        tree: &'a Tree,
        loads: &'a [Load<'a>],
        producers: &[Vec<Producer>],
        family: &[usize],
        main: usize,
        axes: Axes,
    ) -> Option<Self> {
        let mut counts: BTreeMap<Producer, usize> = BTreeMap::new();
        for &load in family {
            let is_of = |producer: &Producer, source: &Source| match *source {
                Source::Step(step) => tree.statement_of(step) == producer.statement,
                Source::Leaf(_) => false,
            };
            for &producer in &producers[load] {
                let own = loads[load].sources.iter().filter(|source| is_of(&producer, source));
                *counts.entry(producer).or_default() += own.count();
            }
        }
        // What stores the value of each iteration stores that of the last one, too.
        let mut ordered: Vec<(Producer, usize)> = Vec::new();
        for (producer, count) in counts {
            match ordered.last_mut().filter(|last| last.0.statement == producer.statement) {
                Some(last) => last.1 += count,
                None => ordered.push((producer, count)),
            }
        }
        ordered.sort_by_key(|&(_, count)| core::cmp::Reverse(count));
        (main < ordered.len()).then_some(())?;
        ordered.swap(0, main);
        let producing: Vec<Producing<'a>> =
            ordered.into_iter().map(|(producer, _)| Producing::of(tree, producer)).collect();
        let mut positions = Positions { of_steps: vec![u32::MAX; tree.steps()], all: vec![] };
        let main = producing.first()?;
        let loads: Vec<(usize, &Load<'_>)> =
            family.iter().map(|&load| (load, &loads[load])).collect();
        let factors = axes.factors(tree, main, &loads)?;
        let outer = main.loops.len() - factors.len();
        for &(step, vector) in &main.steps {
            let mut position = Position::from_slice(&vector[..outer]);
            if !factors.is_empty() {
                let products = factors.iter().zip(&vector[outer..]).map(|(by, number)| by * number);
                position.push(products.sum());
            }
            positions.set(step, position);
        }
        let dimension = outer + usize::from(!factors.is_empty());
        let maps = vec![None; loads.len()];
        let leaves = HashMap::new();
        Some(Layout { tree, dimension, factors, loads, producing, positions, leaves, maps })
    }

    /// Finds the position of each value that is read or stored; `None` if there is none.
    fn place_all(&mut self) -> Option<()> {
        loop {
            // What the known positions do not determine waits for more.
            if let Some(next) = self.next_load(|load| self.determines(load)) {
                self.place_load(next)?;
            } else if let Some(next) = self.next_producer() {
                self.place_producer(next)?;
            } else if let Some(next) = self.next_load(|_| true) {
                self.place_load(next)?;
            } else {
                return self.maps.iter().all(Option::is_some).then_some(());
            }
        }
    }

    /// Tests whether the known positions are in as many directions as there are.
    fn determines(&self, load: &Load<'_>) -> bool {
        let is_known = |source: &Source| match *source {
            Source::Step(step) => self.positions.get(step).is_some(),
            Source::Leaf(_) => false,
        };
        let pairs = || load.reader.vectors().zip(&load.sources);
        let known = pairs().filter(|(_, source)| is_known(source)).map(|(vector, _)| vector);
        directions(known) == directions(load.reader.vectors())
    }

    /// Finds the positions that a load reads, from those that are known.
    fn place_load(&mut self, number: usize) -> Option<()> {
        let (_, load) = self.loads[number];
        let reader = &load.reader;
        let map = self.map_of_load(load)?;
        let mut elsewhere: BTreeMap<usize, Vec<Copied>> = BTreeMap::new();
        for (vector, &source) in reader.vectors().zip(&load.sources) {
            let position = at(&map, vector);
            match source {
                Source::Step(step) if self.positions.set(step, position.clone()).is_none() => {
                    let ended = ended_before(self.tree, step, reader.loops, vector);
                    let statement = self.tree.statement_of(step);
                    let copied = Copied { step, ended, position };
                    elsewhere.entry(statement).or_default().push(copied);
                }
                Source::Step(_) => {}
                Source::Leaf(leaf) => {
                    (*self.leaves.entry(position).or_insert(leaf) == leaf).then_some(())?;
                }
            }
        }
        for (statement, steps) in elsewhere {
            self.place_copies(statement, &steps)?;
        }
        self.maps[number] = Some(map);
        Some(())
    }

    /// The positions that a load reads, as a function of the iteration vector of the reader: through
    /// all that are known, or else through those of as many producers as have one.
    fn map_of_load(&self, load: &'a Load<'a>) -> Option<Vec<Affine>> {
        let reader = &load.reader;
        let depth = reader.loops.len();
        let known = || {
            let of = |source: &Source| match *source {
                Source::Step(step) => Some((step, self.positions.get(step)?)),
                Source::Leaf(_) => None,
            };
            let pairs = reader.vectors().zip(&load.sources);
            pairs.filter_map(move |(vector, source)| of(source).map(|of| (vector, of)))
        };
        let all = through(depth, self.dimension, || known().map(|(v, (_, p))| (v, p)));
        if all.is_some() {
            return all;
        }
        let mut classes: BTreeMap<Producer, Vec<(&[i64], &Position)>> = BTreeMap::new();
        for (vector, (step, position)) in known() {
            let producer = self.producer_of(step);
            classes.entry(producer).or_default().push((vector, position));
        }
        let mut classes: Vec<_> = classes.into_values().collect();
        classes.sort_by_key(|class| core::cmp::Reverse(class.len()));
        let (mut chosen, mut map): (Vec<(&[i64], &Position)>, _) = (Vec::new(), None);
        for class in classes {
            let more = || chosen.iter().chain(&class).copied();
            if let Some(found) = through(depth, self.dimension, more) {
                map = Some(found);
                chosen.extend(class);
            }
        }
        map
    }

    /// The statement that computes this step, and how many loops end with it.
    fn producer_of(&self, step: u32) -> Producer {
        let statement = self.tree.statement_of(step);
        let loops = &self.tree.statements[statement].loops;
        Producer { statement, ended: ended_loops(self.tree, loops, self.tree.vector_of(step)) }
    }

    /// Adds a second store for values of `statement` that a load reads at other positions: values of last
    /// iterations.
    fn place_copies(&mut self, statement: usize, copied: &[Copied]) -> Option<()> {
        let tree = self.tree;
        let is_copy = |one: &&Producing<'_>| one.is_copy && one.producer.statement == statement;
        if let Some(known) = self.producing.iter().find(is_copy) {
            let (depth, map) = (known.loops.len(), known.map.as_ref()?);
            let fits = |one: &Copied| {
                one.ended >= known.producer.ended
                    && at(map, &tree.vector_of(one.step)[..depth]) == one.position
            };
            return copied.iter().all(fits).then_some(());
        }
        let ended = copied.iter().map(|one| one.ended).min().filter(|&ended| ended > 0)?;
        let loops = &tree.statements[statement].loops;
        let loops = &loops[..loops.len() - ended];
        let samples =
            || copied.iter().map(|one| (&tree.vector_of(one.step)[..loops.len()], &one.position));
        let map = Some(through(loops.len(), self.dimension, samples)?);
        let producer = Producer { statement, ended };
        self.producing.push(Producing { producer, loops, steps: Vec::new(), map, is_copy: true });
        Some(())
    }

    /// Finds the positions that a producer stores, from those that are known.
    fn place_producer(&mut self, number: usize) -> Option<()> {
        let producing = &self.producing[number];
        let shifted = self.shifted(producing);
        let known = || {
            let of = |&(step, vector): &(u32, &'a [i64])| Some((vector, self.positions.get(step)?));
            let others = shifted.iter().map(|(vector, position)| (&vector[..], *position));
            producing.steps.iter().filter_map(of).chain(others)
        };
        let mut map = through(producing.loops.len(), self.dimension, known)?;
        // Known positions in one iteration of a loop that is shared with the main producer leave the
        // factor of that loop open: the axis follows the loop.
        for (axis, component) in map.iter_mut().enumerate() {
            let by = match self.factors[..] {
                _ if axis + 1 < self.dimension => 1,
                [by] => by,
                _ => continue,
            };
            let is_shared = producing.loops.get(axis) == self.producing[0].loops.get(axis);
            let mut numbers = known().map(|(vector, _)| vector.get(axis));
            let first = numbers.next().flatten();
            if let Some(first) = first.filter(|_| is_shared && component.factors[axis] == 0)
                && numbers.all(|number| number == Some(first))
            {
                component.factors[axis] = by;
                component.constant -= by * first;
            }
        }
        let stored = producing.steps.iter().map(|&(step, vector)| (step, at(&map, vector)));
        for (step, position) in stored.collect::<Vec<_>>() {
            self.positions.set(step, position)?;
        }
        self.producing[number].map = Some(map);
        Some(())
    }

    /// Positions that iterations of `producing` that do not run would have: a load in the same loops
    /// reads its values from so many iterations before, and in the first ones those of other producers,
    /// whose positions are known.
    fn shifted(&self, producing: &Producing<'_>) -> Vec<(Position, &Position)> {
        let mut shifted = Vec::new();
        for (&(_, load), map) in self.loads.iter().zip(&self.maps) {
            if map.is_some() || load.reader.loops != producing.loops {
                continue;
            }
            let pairs = || {
                load.reader.vectors().zip(&load.sources).filter_map(
                    |(vector, source)| match *source {
                        Source::Step(step) => Some((vector, step)),
                        Source::Leaf(_) => None,
                    },
                )
            };
            let is_own = |step: u32| self.tree.statement_of(step) == producing.producer.statement;
            let shift = |(vector, step): (&[i64], u32)| -> Position {
                vector.iter().zip(self.tree.vector_of(step)).map(|(to, from)| to - from).collect()
            };
            let mut shifts = pairs().filter(|pair| is_own(pair.1)).map(shift);
            let Some(first) = shifts.next().filter(|first| shifts.all(|shift| shift == *first))
            else {
                continue;
            };
            for (vector, step) in pairs().filter(|pair| !is_own(pair.1)) {
                let Some(position) = self.positions.get(step) else { continue };
                let before = vector.iter().zip(&first).map(|(to, by)| to - by).collect();
                shifted.push((before, position));
            }
        }
        shifted
    }

    /// A producer without a map of which some positions are known.
    fn next_producer(&self) -> Option<usize> {
        let is_known = |&(step, _): &(u32, &[i64])| self.positions.get(step).is_some();
        let is_next = |one: &Producing<'_>| one.map.is_none() && one.steps.iter().any(is_known);
        self.producing.iter().position(is_next)
    }

    /// The load without a map of which most positions are known, of those that `may_be` allows.
    fn next_load(&self, may_be: impl Fn(&Load<'_>) -> bool) -> Option<usize> {
        let known = |load: &Load<'_>| {
            let is_known = |source: &&Source| match source {
                Source::Step(step) => self.positions.get(*step).is_some(),
                Source::Leaf(_) => false,
            };
            load.sources.iter().filter(is_known).count()
        };
        let open = (0..self.loads.len()).filter(|&at| self.maps[at].is_none());
        let counts = open.map(|at| (at, known(self.loads[at].1)));
        let counts = counts.filter(|&(at, known)| known > 0 && may_be(self.loads[at].1));
        counts.max_by_key(|&(_, known)| known).map(|(at, _)| at)
    }

    /// The matrix; calls `set` with each load and the index that it reads.
    fn matrix(self, mut set: impl FnMut(usize, Affine)) -> Option<Matrix> {
        let outer = self.common_loops();
        let axes = self.dimension;
        let scope = outer.checked_sub(1).map(|last| self.producing[0].loops[last]);
        // Calls a function with all positions that are stored.
        let for_each_stored = |each: &mut dyn FnMut(&[i64])| {
            let mut position = Position::from_elem(0, axes);
            for Producing { loops, map, .. } in &self.producing {
                let map = map.as_deref().unwrap_or_default();
                self.tree.for_each_vector(loops, &mut |vector: &[i64]| {
                    for (number, component) in position.iter_mut().zip(map) {
                        *number = component.at(vector);
                    }
                    each(&position);
                });
            }
        };
        let mut bounds = vec![(i64::MAX, i64::MIN); axes];
        let mut extend = |position: &[i64]| {
            for (bound, &number) in bounds.iter_mut().zip(position) {
                *bound = (bound.0.min(number), bound.1.max(number));
            }
        };
        for_each_stored(&mut extend);
        self.leaves.keys().for_each(|position| extend(position));
        let (mut index, mut whole) = (Affine::zero(axes), Affine::zero(axes));
        let (mut size, mut all): (i64, i64) = (1, 1);
        for (axis, &(low, high)) in bounds.iter().enumerate().rev() {
            whole.factors[axis] = all;
            let extent = high.checked_sub(low)?.checked_add(1)?;
            all = all.checked_mul(extent).filter(|&all| all <= MOST_CELLS)?;
            if axis >= outer {
                index.factors[axis] = size;
                index.constant = index.constant.checked_sub(low.checked_mul(size)?)?;
                size = all;
            }
        }
        // Each cell is stored once.
        let low = Affine {
            constant: -bounds
                .iter()
                .zip(&whole.factors)
                .map(|(bound, by)| bound.0 * by)
                .sum::<i64>(),
            ..whole.clone()
        };
        let (mut seen, mut count, mut is_once) = (vec![0u64; all as usize / 64 + 1], 0, true);
        for_each_stored(&mut |position| {
            let at = low.at(position) as usize;
            let (word, bit) = (at / 64, 1 << (at % 64));
            is_once &= seen[word] & bit == 0;
            seen[word] |= bit;
            count += 1;
        });
        // Room for triangles in a box, but not for everything.
        let is_filled = size as usize <= 64 + 16 * (count + self.leaves.len());
        (is_once && is_filled).then_some(())?;
        // Values from before are stored in each iteration of the scope: no other may be there in any.
        let mut is_stored = vec![false; size as usize];
        for_each_stored(&mut |position| is_stored[index.at(position) as usize] = true);
        let mut leaves = BTreeMap::new();
        for (position, &leaf) in &self.leaves {
            let cell = index.at(position);
            let is_same = *leaves.entry(cell).or_insert(leaf) == leaf;
            (is_same && !is_stored[cell as usize]).then_some(())?;
        }
        let of_map = |map: &[Affine], depth: usize| {
            let mut all = Affine { constant: index.constant, ..Affine::zero(depth) };
            map.iter().zip(&index.factors).for_each(|(component, &by)| all.add(by, component));
            all
        };
        for (&(load, data), map) in self.loads.iter().zip(&self.maps) {
            set(load, of_map(map.as_deref()?, data.reader.loops.len()));
        }
        let stores = self.producing.iter().map(|producing| {
            Some((producing.producer, of_map(producing.map.as_deref()?, producing.loops.len())))
        });
        let stores = stores.collect::<Option<_>>()?;
        Some(Matrix { scope, size: u32::try_from(size).ok()?, stores, leaves })
    }

    /// The number of outer loops that all readers and producers share and in which they stay in
    /// their iteration.
    fn common_loops(&self) -> usize {
        let first = self.producing[0].loops;
        let axes = first.len().min(self.dimension);
        let readers = self.loads.iter().map(|(_, load)| load.reader.loops).zip(&self.maps);
        let producers = self.producing.iter().map(|one| (one.loops, &one.map));
        let is_own = |axis: &usize| {
            readers.clone().chain(producers.clone()).all(|(loops, map)| {
                let component = map.as_ref().map(|map| &map[*axis]);
                loops.get(*axis) == Some(&first[*axis])
                    && component == Some(&Affine::number(*axis, loops.len()))
            })
        };
        (0..axes).take_while(is_own).count()
    }
}

impl<'a> Producing<'a> {
    fn of(tree: &'a Tree, producer: Producer) -> Self {
        let statement = &tree.statements[producer.statement];
        let depth = statement.loops.len() - producer.ended;
        let mut steps: Vec<(u32, &[i64])> = Vec::new();
        for (number, &step) in statement.steps.iter().enumerate() {
            let vector = &statement.vector(number)[..depth];
            // The last iteration comes last.
            match steps.last_mut().filter(|last| producer.ended > 0 && last.1 == vector) {
                Some(last) => last.0 = step,
                None => steps.push((step, vector)),
            }
        }
        let is_own = |&step: &u32| {
            tree.statement_of(step) == producer.statement
                && ended_loops(tree, &statement.loops, tree.vector_of(step)) >= producer.ended
        };
        let in_gaps = tree.in_gaps().filter(is_own);
        steps.extend(in_gaps.map(|step| (step, &tree.vector_of(step)[..depth])));
        Producing { producer, loops: &statement.loops[..depth], steps, map: None, is_copy: false }
    }
}

impl Producing<'_> {
    /// The changes of the iteration number with which `load` reads a value from one iteration of the
    /// innermost loops to the next, if it reads over several loops in one.
    fn factors_of_reader(&self, tree: &Tree, load: &Load<'_>) -> Option<SmallVec<[i64; 4]>> {
        let depth = self.loops.len();
        (load.reader.loops.len() < depth).then_some(())?;
        let own = |(vector, source): (&[i64], &Source)| match *source {
            Source::Step(step) if tree.statement_of(step) == self.producer.statement => {
                Some((step, *vector.last()?))
            }
            _ => None,
        };
        let own: Vec<(u32, i64)> =
            load.reader.vectors().zip(&load.sources).filter_map(own).collect();
        let samples = own.iter().map(|&(step, number)| (&tree.vector_of(step)[..depth], number));
        let number = Affine::through(depth, samples)?;
        let outer = number.factors.iter().take_while(|&&by| by == 0).count();
        let factors: SmallVec<[i64; 4]> = number.factors[outer..].into();
        (factors.len() > 1 && factors.iter().all(|&by| by != 0)).then_some(factors)
    }
}

/// The functions of so many numbers, one for each axis, with these positions.
fn through<'v, 'p, I>(depth: usize, axes: usize, samples: impl Fn() -> I) -> Option<Vec<Affine>>
where
    I: Iterator<Item = (&'v [i64], &'p Position)> + Clone,
{
    let component = |axis: usize| {
        Affine::through(depth, samples().map(move |(vector, position)| (vector, position[axis])))
    };
    (0..axes).map(component).collect()
}

/// The position for this iteration vector.
fn at(map: &[Affine], vector: &[i64]) -> Position {
    map.iter().map(|component| component.at(vector)).collect()
}
