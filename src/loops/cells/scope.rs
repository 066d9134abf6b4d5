//! The arrays of one loop: those that it reads in iterations of inner loops, with the steps that
//! compute their elements.

use std::collections::BTreeMap;

use hashbrown::{HashMap, HashSet};

use super::LEAST_COLUMNS;
use super::columns::{Column, Columns, Layout, Placement, Value};
use crate::ssa::{Array, ArrayData, Block, Def, End, Graph, Nest, Node, Region, last_iteration};

/// A loop with a constant trip count and one block, or the graph's own root.
pub(super) struct Scope<'a> {
    graph: &'a Graph,
    nest: Nest,
    region: Option<Region>,
    block: Block,
    trips: u32,
}

/// A step that stores what an inner loop computes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    /// The node, whose innermost loop is the inner loop.
    pub(super) node: Node,
    /// The column in its first iteration, and the change from one to the next.
    pub(super) column: i64,
    pub(super) by: i64,
    /// 1 if the next iteration of the loop reads it.
    pub(super) later: u32,
}

/// A step that stores one value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Single {
    pub(super) node: Node,
    pub(super) column: i64,
    pub(super) kind: Kind,
}

/// The iterations in which a value is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// In each, for itself.
    Each,
    /// In each, for the next.
    Next,
    /// It is the same in each.
    Invariant,
}

/// A matrix of cells.
pub(super) struct Matrix {
    /// The position of the first column.
    pub(super) low: i64,
    pub(super) width: u32,
    /// The number of rows: 1 if no iteration reads what another has computed.
    pub(super) rows: u32,
    pub(super) runs: Vec<Run>,
    pub(super) stores: Vec<Single>,
    /// The entry φs that the cells replace, with their columns.
    pub(super) carried: Vec<(u32, i64)>,
    /// Those whose initial values are stored, copies included.
    pub(super) firsts: Vec<(u32, i64)>,
    /// The arrays that are read in the loop, with scale and offset of their elements.
    pub(super) arrays: Vec<(Array, i64, i64)>,
    /// Those that are read after the loop.
    pub(super) finals: Vec<(Array, i64, i64)>,
}

impl<'a> Scope<'a> {
    /// The scope of `region`, or of the root of `graph`; `None` for other loops.
    pub(super) fn of(graph: &'a Graph, region: Option<Region>) -> Option<Self> {
        let nest = Nest::of(graph);
        let Some(of) = region else {
            let block = graph.root();
            return Some(Scope { graph, nest, region, block, trips: 1 });
        };
        let trips = constant_trips(graph, of)?;
        let block = graph.regions[of].root;
        Some(Scope { graph, nest, region, block, trips })
    }

    /// The matrices for the arrays that pay.
    pub(super) fn arrays(&self, most_cells: u64) -> Vec<Matrix> {
        let mut arrays: Vec<(Array, Vec<Value>)> = self.candidates();
        if arrays.is_empty() {
            return Vec::new();
        }
        // Longer ones first, so that shorter ones may be parts of them.
        arrays.sort_by_key(|(array, values)| (core::cmp::Reverse(values.len()), *array));
        let nexts = self.nexts();
        let mut layout = Layout::default();
        for whole in self.whole_loops(&arrays, &nexts) {
            layout.place_all(&whole);
        }
        let mut placed: Vec<(Array, Placement)> = Vec::new();
        for (array, values) in &arrays {
            let ArrayData::Nodes(nodes) = &self.graph.arrays[*array] else { continue };
            placed.push((*array, layout.place(nodes, values)));
        }
        let mut matrices = Vec::new();
        for (number, columns) in layout.matrices.iter().enumerate() {
            let own = placed.iter().filter(|(_, place)| place.matrix == number);
            let own: Vec<(Array, i64, i64)> =
                own.map(|(array, place)| (*array, place.scale, place.offset)).collect();
            if !own.is_empty()
                && let Some(matrix) = self.matrix(columns, own, &nexts, most_cells)
            {
                matrices.push(matrix);
            }
        }
        for matrix in &mut matrices {
            self.find_finals(matrix, &nexts);
        }
        matrices
    }

    /// The values of each array of nodes that is read at a varying index and has some of this loop.
    fn candidates(&self) -> Vec<(Array, Vec<Value>)> {
        let mut arrays: BTreeMap<Array, bool> = BTreeMap::new();
        for (node, data) in self.graph.nodes.iter() {
            let Def::Element(access) = data.def else { continue };
            let access = &self.graph.accesses[access];
            if let ArrayData::Nodes(nodes) = &self.graph.arrays[access.array]
                && nodes.len() >= LEAST_COLUMNS
                && self.is_inside(node)
            {
                let is_varying = !access.strides.is_empty();
                *arrays.entry(access.array).or_default() |= is_varying;
            }
        }
        let values = |array: Array| {
            let ArrayData::Nodes(nodes) = &self.graph.arrays[array] else { return None };
            let values: Vec<Value> =
                nodes.iter().map(|&node| self.value(node)).collect::<Option<_>>()?;
            let is_own = |value: &Value| matches!(value, Value::Carried(_) | Value::Saved(..));
            values.iter().any(is_own).then_some((array, values))
        };
        arrays.into_iter().filter_map(|(array, varies)| values(array).filter(|_| varies)).collect()
    }

    /// Tests whether `node` is computed in the loop.
    fn is_inside(&self, node: Node) -> bool {
        let Some(region) = self.region else { return true };
        let around = self.nest.node_region(node);
        core::iter::successors(around, |&inner| self.nest.region_around(inner))
            .any(|around| around == region)
    }

    /// The value of `node` in the loop; `None` if it is of an inner loop.
    fn value(&self, node: Node) -> Option<Value> {
        let here = self.nest.node_block(node) == Some(self.block);
        match self.graph.nodes[node].def {
            Def::Entry(region, number) if here && Some(region) == self.region => {
                Some(Value::Carried(number))
            }
            Def::Iteration(_) => None,
            Def::Element(_) | Def::Phi(..) if let Some((saved, iteration)) = self.saved(node) => {
                Some(Value::Saved(saved, iteration))
            }
            _ if here => Some(Value::Single(node)),
            _ if self.is_inside(node) && self.nest.node_block(node).is_some() => None,
            _ => Some(Value::Invariant(node)),
        }
    }

    /// The node and the iteration of a loop directly in this one that `node` is the value of: a
    /// saved one, or a φ.
    fn saved(&self, node: Node) -> Option<(Node, u32)> {
        if let Def::Phi(inner, number) = self.graph.nodes[node].def {
            let root = self.graph.regions[inner].root;
            let last = constant_trips(self.graph, inner)?.checked_sub(1)?;
            let &value = self.graph.passed(inner, root)?.values.get(number as usize)?;
            let is_number = matches!(self.graph.nodes[value].def, Def::Iteration(_));
            let is_own = self.nest.region_block(inner) == Some(self.block)
                && self.nest.node_block(value) == Some(root)
                && !is_number;
            return is_own.then_some((value, last));
        }
        let Def::Element(access) = self.graph.nodes[node].def else { return None };
        let access = &self.graph.accesses[access];
        let ArrayData::Saved(saved) = self.graph.arrays[access.array] else { return None };
        let inner = self.nest.node_loop(saved)?;
        let is_own = access.strides.is_empty()
            && self.nest.region_block(inner) == Some(self.block)
            && self.nest.node_block(node) == Some(self.block);
        is_own.then_some((saved, access.base))
    }

    /// The next values of the entry φs.
    fn nexts(&self) -> Vec<Node> {
        let passed = self.region.and_then(|region| self.graph.passed(region, self.block));
        passed.map_or_else(Vec::new, |passed| passed.nexts.to_vec())
    }

    /// For each node whose saved values are used, or become those of entry φs: the values of all its
    /// iterations.
    fn whole_loops(
        &self,
        arrays: &[(Array, Vec<Value>)],
        nexts: &[Node],
    ) -> Vec<Vec<Option<Value>>> {
        let mut used: BTreeMap<Node, Vec<Option<Value>>> = BTreeMap::new();
        let mut carried = used.clone();
        let bound = |saved: Node| {
            self.nest.node_loop(saved).map_or(0, |inner| self.graph.bound(inner) as usize)
        };
        for &value in arrays.iter().flat_map(|(_, values)| values) {
            match value {
                Value::Saved(saved, _) => {
                    let all = (0..bound(saved) as u32).map(|at| Some(Value::Saved(saved, at)));
                    used.entry(saved).or_insert_with(|| all.collect());
                }
                Value::Carried(number) => {
                    let Some((saved, at)) = self.saved(nexts[number as usize]) else { continue };
                    let all = carried.entry(saved).or_insert_with(|| vec![None; bound(saved)]);
                    if let Some(place) = all.get_mut(at as usize) {
                        place.get_or_insert(value);
                    }
                }
                Value::Single(_) | Value::Invariant(_) => {}
            }
        }
        let mut all: Vec<Vec<Option<Value>>> =
            carried.into_values().chain(used.into_values()).collect();
        all.sort_by_key(|values| core::cmp::Reverse(values.len()));
        all
    }

    /// The matrix with these columns and arrays, if it pays.
    fn matrix(
        &self,
        columns: &Columns,
        arrays: Vec<(Array, i64, i64)>,
        nexts: &[Node],
        most_cells: u64,
    ) -> Option<Matrix> {
        let (mut of_loops, mut stores) = (BTreeMap::<(u32, Node), Vec<(u32, i64)>>::new(), vec![]);
        let (mut carried, mut firsts) = (Vec::new(), Vec::new());
        for (&column, &content) in columns {
            let mut single = |node, kind| stores.push(Single { node, column, kind });
            let value = match content {
                Column::Value(value) => value,
                Column::Copy(Value::Carried(number), _) => {
                    firsts.push((number, column));
                    single(nexts[number as usize], Kind::Next);
                    continue;
                }
                Column::Copy(_, node) => {
                    single(node, Kind::Each);
                    continue;
                }
                Column::Reserved => continue,
            };
            match value {
                Value::Saved(saved, at) => {
                    of_loops.entry((0, saved)).or_default().push((at, column));
                }
                Value::Single(node) => single(node, Kind::Each),
                Value::Invariant(node) => single(node, Kind::Invariant),
                Value::Carried(number) => {
                    carried.push((number, column));
                    firsts.push((number, column));
                    let next = nexts[number as usize];
                    match self.saved(next) {
                        Some((saved, at)) => {
                            of_loops.entry((1, saved)).or_default().push((at, column));
                        }
                        None => single(next, Kind::Next),
                    }
                }
            }
        }
        let mut runs = Vec::new();
        for ((later, node), mut stored) in of_loops {
            stored.sort_unstable();
            runs.push(self.run(node, later, &stored, columns)?);
        }
        let (low, high) = (*columns.keys().next()?, *columns.keys().next_back()?);
        let width = u32::try_from(high - low + 1).ok()?;
        let rows = if carried.is_empty() { 1 } else { self.trips.checked_add(1)? };
        let cells = u64::from(width) * u64::from(rows);
        let pays = stores.len() * 2 <= columns.len() && cells <= most_cells;
        let finals = Vec::new();
        pays.then_some(Matrix { low, width, rows, runs, stores, carried, firsts, arrays, finals })
    }

    /// The step that stores the values of `node` in these iterations and columns, if they form a
    /// progression and its other iterations meet no column of another value.
    fn run(&self, node: Node, later: u32, stored: &[(u32, i64)], columns: &Columns) -> Option<Run> {
        let &[(first, column), (second, next), ..] = stored else { return None };
        let by = (next - column) / i64::from(second - first).max(1);
        let bound = self.graph.bound(self.nest.node_loop(node)?);
        let at = |iteration: u32| column + by * (i64::from(iteration) - i64::from(first));
        let mut own = stored.iter().peekable();
        let fits = (0..bound).all(|iteration| match own.next_if(|&&(of, _)| of == iteration) {
            Some(&(_, column)) => column == at(iteration),
            None => columns.get(&at(iteration)) == Some(&Column::Reserved),
        });
        (by != 0 && fits && own.next().is_none()).then_some(Run { node, column: at(0), by, later })
    }

    /// Finds the arrays that are read after the loop and that are part of its last row.
    fn find_finals(&self, matrix: &mut Matrix, nexts: &[Node]) {
        let Some(region) = self.region.filter(|_| !matrix.carried.is_empty()) else { return };
        let Some(passed) = self.graph.passed(region, self.block) else { return };
        // Two elements of saved values may be the same value.
        let value = |node: Node| self.saved(node).map_or((node, None), |(of, at)| (of, Some(at)));
        let of_entry = |&(entry, column): &(u32, i64)| (value(nexts[entry as usize]), column);
        let columns: HashMap<(Node, Option<u32>), i64> =
            matrix.carried.iter().map(of_entry).collect();
        let invariants = matrix.stores.iter().filter(|one| one.kind == Kind::Invariant);
        let invariants: HashSet<(Node, i64)> =
            invariants.map(|one| (one.node, one.column)).collect();
        // The column of a φ of the loop.
        let column = |node: Node| match self.graph.nodes[node].def {
            Def::Phi(of, number) if of == region => {
                let &passed = passed.values.get(number as usize)?;
                columns.get(&value(passed)).copied()
            }
            _ => None,
        };
        let mut finals = Vec::new();
        let mut seen = HashSet::new();
        for (node, data) in self.graph.nodes.iter() {
            let Def::Element(access) = data.def else { continue };
            let access = &self.graph.accesses[access];
            let ArrayData::Nodes(nodes) = &self.graph.arrays[access.array] else { continue };
            if nodes.len() < LEAST_COLUMNS || self.is_inside(node) || !seen.insert(access.array) {
                continue;
            }
            let columns: Vec<Option<i64>> = nodes.iter().map(|&node| column(node)).collect();
            let mut known =
                columns.iter().zip(0i64..).filter_map(|(&at, index)| Some((index, at?)));
            let (Some((first, at)), Some((second, next))) = (known.next(), known.next()) else {
                continue;
            };
            let scale = (next - at) / (second - first);
            let offset = at - scale * first;
            let fits = columns.iter().zip(nodes).zip(0i64..).all(|((&found, &node), index)| {
                let at = scale * index + offset;
                let is_invariant = || invariants.contains(&(node, at));
                found.map_or_else(is_invariant, |found| found == at)
            });
            if scale != 0 && fits {
                finals.push((access.array, scale, offset));
            }
        }
        matrix.finals = finals;
    }
}

/// The trip count of `region`, if it is a loop of one block with a constant one.
fn constant_trips(graph: &Graph, region: Region) -> Option<u32> {
    let data = &graph.regions[region];
    let cycle = data.cycle.as_ref().filter(|_| data.replays.is_none())?;
    let is_block = matches!(graph.blocks[data.root].end, End::Return(_));
    let last = last_iteration(graph, region)?;
    let is_constant = last.terms.is_empty() && last.constant + 1 == i128::from(cycle.bound);
    (is_block && is_constant).then_some(cycle.bound)
}
