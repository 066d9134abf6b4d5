//! Rewrites a graph with the arrays of one loop in cells.

use hashbrown::HashSet;
use smallvec::SmallVec;

use super::LEAST_COLUMNS;
use super::scope::{Kind, Matrix, Single};
use crate::op::Op;
use crate::ssa::{
    Access, AccessData, Array, ArrayData, Block, Def, Editor, End, Graph, Item, Loop, Nest, Node,
    Region, RegionData,
};

/// `graph` with `matrices` for arrays of `region`, or of the root.
pub(super) fn emit(graph: &Graph, region: Option<Region>, matrices: &[Matrix]) -> Option<Graph> {
    let nest = Nest::of(graph);
    let block = region.map_or(graph.root(), |region| graph.regions[region].root);
    let around = region.map_or(Some(block), |region| nest.region_block(region))?;
    let (editor, replaced) = (Editor::of(graph), HashSet::new());
    let mut emitter = Emitter { graph, nest, region, block, around, editor, replaced };
    for matrix in matrices {
        emitter.matrix(matrix)?;
    }
    let mut carried: Vec<u32> =
        matrices.iter().flat_map(|matrix| &matrix.carried).map(|&(number, _)| number).collect();
    carried.sort_unstable();
    emitter.remove_entries(&carried);
    emitter.editor.finish()
}

struct Emitter<'a> {
    graph: &'a Graph,
    nest: Nest,
    region: Option<Region>,
    /// The only block of the loop.
    block: Block,
    /// The block of which the loop is a step.
    around: Block,
    editor: Editor,
    /// The entry φs that are elements now.
    replaced: HashSet<Node>,
}

impl Emitter<'_> {
    fn matrix(&mut self, matrix: &Matrix) -> Option<()> {
        let cells = self.editor.arrays.push(ArrayData::Cells(matrix.rows * matrix.width));
        let at = |row: u32, column: i64| -> Option<u32> {
            (row * matrix.width).checked_add(u32::try_from(column - matrix.low).ok()?)
        };
        let row = self.row(matrix);
        for run in &matrix.runs {
            let inner = self.nest.node_loop(run.node)?;
            let by = (inner, i32::try_from(run.by).ok()?);
            let strides = row.into_iter().chain([by]).collect();
            let base = at(run.later, run.column)?;
            let store = self.store(
                AccessData { array: cells, base, strides, changes: Default::default() },
                run.node,
            );
            let body = self.graph.regions[inner].root;
            self.editor.blocks[body].items.push(store);
        }
        for &Single { node, column, kind } in &matrix.stores {
            let base = at(u32::from(kind == Kind::Next), column)?;
            let access = AccessData {
                array: cells,
                base,
                strides: row.into_iter().collect(),
                changes: Default::default(),
            };
            let store = self.store(access, node);
            match kind {
                Kind::Each => self.insert_after(node, store)?,
                Kind::Next => self.editor.blocks[self.block].items.push(store),
                Kind::Invariant => {
                    self.editor.blocks[self.block].items.insert(0, store);
                    if !matrix.finals.is_empty() {
                        let base = at(matrix.rows - 1, column)?;
                        let last = AccessData {
                            array: cells,
                            base,
                            strides: SmallVec::new(),
                            changes: Default::default(),
                        };
                        let store = self.store(last, node);
                        self.insert_before(store)?;
                    }
                }
            }
        }
        self.store_firsts(matrix, cells)?;
        self.redirect(matrix, cells)?;
        let entries = self.region.map_or(&[][..], |region| self.graph.entries(region));
        let mut elements = Vec::new();
        for &(number, column) in &matrix.carried {
            let phi = entries[number as usize].phi;
            if !self.replaced.insert(phi) {
                continue;
            }
            let base = at(0, column)?;
            let access = AccessData {
                array: cells,
                base,
                strides: row.into_iter().collect(),
                changes: Default::default(),
            };
            let access = self.editor.accesses.push(access);
            self.editor.nodes[phi].def = Def::Element(access);
            elements.push(Item::Node(phi));
        }
        self.editor.blocks[self.block].items.splice(0..0, elements);
        let filled = if matrix.rows > 1 { self.around } else { self.block };
        self.editor.blocks[filled].items.insert(0, Item::Fill(cells));
        Some(())
    }

    /// The stride from one row to the next.
    fn row(&self, matrix: &Matrix) -> Option<(Region, i32)> {
        self.region.filter(|_| matrix.rows > 1).map(|region| (region, matrix.width as i32))
    }

    fn store(&mut self, access: AccessData, node: Node) -> Item {
        Item::Store(self.editor.accesses.push(access), node)
    }

    /// Inserts `item` after the step that computes `node`.
    fn insert_after(&mut self, node: Node, item: Item) -> Option<()> {
        let step = match self.graph.nodes[node].def {
            Def::Phi(region, _) => Item::Region(region),
            _ => Item::Node(node),
        };
        let items = &mut self.editor.blocks[self.block].items;
        let at = items.iter().position(|&other| other == step)?;
        items.insert(at + 1, item);
        Some(())
    }

    /// Inserts `item` before the loop.
    fn insert_before(&mut self, item: Item) -> Option<()> {
        let items = &mut self.editor.blocks[self.around].items;
        let at = items.iter().position(|&other| Some(other) == self.region.map(Item::Region))?;
        items.insert(at, item);
        Some(())
    }

    /// Stores the initial values of the entry φs in the first row.
    fn store_firsts(&mut self, matrix: &Matrix, cells: Array) -> Option<()> {
        let entries = self.region.map_or(&[][..], |region| self.graph.entries(region));
        let mut rest = &matrix.firsts[..];
        while let Some(&(_, column)) = rest.first() {
            let follows = |&(at, &(_, other)): &(usize, &(u32, i64))| other == column + at as i64;
            let count = rest.iter().enumerate().take_while(follows).count();
            let (here, later) = rest.split_at(count);
            rest = later;
            let firsts: Vec<Node> =
                here.iter().map(|&(number, _)| entries[number as usize].first).collect();
            let base = u32::try_from(column - matrix.low).ok()?;
            if count < LEAST_COLUMNS {
                for (&first, base) in firsts.iter().zip(base..) {
                    let access = AccessData {
                        array: cells,
                        base,
                        strides: SmallVec::new(),
                        changes: Default::default(),
                    };
                    let store = self.store(access, first);
                    self.insert_before(store)?;
                }
            } else {
                self.copy_firsts(firsts, cells, base)?;
            }
        }
        Some(())
    }

    /// Inserts a loop that stores `firsts` in consecutive cells.
    fn copy_firsts(&mut self, firsts: Vec<Node>, cells: Array, base: u32) -> Option<()> {
        let place = self.graph.regions[self.region?].place;
        let bound = u32::try_from(firsts.len()).ok()?;
        let editor = &mut self.editor;
        let root = editor.new_block();
        let cycle = Some(Loop { bound, entries: Vec::new() });
        let phis = Vec::new();
        let copy = editor.regions.push(RegionData { root, phis, replays: None, cycle, place });
        let number = editor.push_iteration(copy);
        let strides: SmallVec<[(Region, i32); 2]> = [(copy, 1)].into_iter().collect();
        let (array, from) = consecutive_inputs(self.graph, &firsts)
            .unwrap_or_else(|| (ArrayData::Nodes(firsts), 0));
        let array = editor.arrays.push(array);
        let from =
            AccessData { array, base: from, strides: strides.clone(), changes: Default::default() };
        let from = editor.accesses.push(from);
        let first = editor.push_element(root, from, place);
        let store = self
            .store(AccessData { array: cells, base, strides, changes: Default::default() }, first);
        let editor = &mut self.editor;
        editor.blocks[root].items.push(store);
        let last = editor.push_const(f64::from(bound - 1).to_bits());
        let again = editor.push_apply(root, Op::Lt, &[number, last], place);
        editor.blocks[root].end = End::Return([again].into_iter().collect());
        self.insert_before(Item::Region(copy))
    }

    /// Has the elements of the arrays of `matrix` read `cells`.
    fn redirect(&mut self, matrix: &Matrix, cells: Array) -> Option<()> {
        for (node, data) in self.graph.nodes.iter() {
            let Def::Element(access) = data.def else { continue };
            let of = &self.graph.accesses[access];
            let is_inside = self.is_inside(node);
            let arrays = if is_inside { &matrix.arrays } else { &matrix.finals };
            let Some(&(_, scale, offset)) = arrays.iter().find(|array| array.0 == of.array) else {
                continue;
            };
            let column = scale * i64::from(of.base) + offset - matrix.low;
            let row = if is_inside { 0 } else { (matrix.rows - 1) * matrix.width };
            let base = row.checked_add(u32::try_from(column).ok()?)?;
            let scale = i32::try_from(scale).ok()?;
            let mut strides = of.strides.clone();
            for (_, stride) in &mut strides {
                *stride = stride.checked_mul(scale)?;
            }
            strides.extend(self.row(matrix).filter(|_| is_inside));
            let access: Access = self.editor.accesses.push(AccessData {
                array: cells,
                base,
                strides,
                changes: Default::default(),
            });
            self.editor.nodes[node].def = Def::Element(access);
        }
        Some(())
    }

    /// Tests whether `node` is computed in the loop.
    fn is_inside(&self, node: Node) -> bool {
        let Some(region) = self.region else { return true };
        let around = self.nest.node_region(node);
        core::iter::successors(around, |&inner| self.nest.region_around(inner))
            .any(|around| around == region)
    }

    /// Removes the entry φs with these numbers, which are elements now.
    fn remove_entries(&mut self, removed: &[u32]) {
        let Some(region) = self.region else { return };
        let is_kept = |number: usize| removed.binary_search(&(number as u32)).is_err();
        let (conditions, nexts) = self.graph.passed_before_phis(region);
        if let End::Return(passed) = &mut self.editor.blocks[self.block].end {
            let mut number = 0;
            passed.retain(|_| {
                number += 1;
                !(conditions..conditions + nexts).contains(&(number - 1))
                    || is_kept(number - 1 - conditions)
            });
        }
        let Some(cycle) = &mut self.editor.regions[region].cycle else { return };
        let mut number = 0;
        cycle.entries.retain(|_| {
            number += 1;
            is_kept(number - 1)
        });
        let kept: Vec<Node> = cycle.entries.iter().map(|entry| entry.phi).collect();
        for (&phi, number) in kept.iter().zip(0..) {
            self.editor.nodes[phi].def = Def::Entry(region, number);
        }
    }
}

/// The array of all active or all inactive inputs, and the index of the first of `nodes`, if these
/// are consecutive ones.
fn consecutive_inputs(graph: &Graph, nodes: &[Node]) -> Option<(ArrayData, u32)> {
    let number = |node: Node| match graph.nodes[node].def {
        Def::Input(number) => Some(number),
        _ => None,
    };
    let first = number(*nodes.first()?)?;
    let fits = |(&node, at): (&Node, u32)| {
        number(node) == Some(at) && graph.is_active(at) == graph.is_active(first)
    };
    if !nodes.iter().zip(first..).all(fits) {
        return None;
    }
    let (active, inactive) = (graph.active as u32, graph.inactive as u32);
    Some(match graph.is_active(first) {
        true => (ArrayData::Inputs { first: 0, count: active }, first),
        false => (ArrayData::Inputs { first: active, count: inactive }, first - active),
    })
}
