//! Emits the graph of a tree of loops.

use hashbrown::HashMap;
use smallvec::SmallVec;

use super::affine::Affine;
use super::copies::{Copies, copies};
use super::matrices::Producer;
use super::operands::{Leaf, Operand, Operands, Variable};
use super::recording::{Form, Recording};
use super::tree::{Part, Tree};
use super::variables::{Phis, Value, Variables};
use crate::op::Op;
use crate::ssa::{
    Access, AccessData, Appender, Array, ArrayData, Block, End, Graph, Item, Node, PlaceId, Region,
    inputs_first,
};

/// The graph of `tree` with `operands`; `None` if an index is too large.
pub(super) fn emit(
    recording: &Recording<'_>,
    tree: &Tree,
    mut operands: Operands,
) -> Option<Graph> {
    // The values that are stored after a loop are variables, too.
    let mut variables = core::mem::take(&mut operands.variables);
    let mut stored: HashMap<Part, Vec<(usize, Stored, Affine)>> = HashMap::new();
    for (matrix, data) in operands.matrices.iter().enumerate() {
        for &(Producer { statement, ended }, ref index) in &data.stores {
            let loops = &tree.statements[statement].loops;
            let (part, value) = match ended {
                0 => (Part::Statement(statement), Stored::Statement(statement)),
                _ => {
                    variables.push(Variable {
                        statements: vec![statement],
                        first: None,
                        initial: None,
                    });
                    let inner = loops[loops.len() - ended];
                    (Part::Loop(inner), Stored::After(inner, variables.len() - 1))
                }
            };
            stored.entry(part).or_default().push((matrix, value, index.clone()));
        }
    }
    let variables = Variables { tree, variables: &variables, initials: &operands.initials };
    let mut phis = Phis::of(tree.loops.len());
    for (statement, operands) in tree.statements.iter().zip(&operands.of_statements) {
        let parent = statement.loops.last().copied();
        for operand in operands {
            if let &Operand::Variable(number) = operand {
                let value = variables.before(number, parent, statement.position);
                variables.add_phis(&mut phis, number, value);
            }
        }
    }
    for initial in &operands.initials {
        if let Operand::Variable(number) = initial.operand {
            variables.add_phis(&mut phis, number, variables.before_loop(number, initial.entered));
        }
    }
    for operand in &operands.returned {
        if let &Operand::Variable(number) = operand {
            let value = variables.before(number, None, tree.root.len());
            variables.add_phis(&mut phis, number, value);
        }
    }
    for (_, value, _) in stored.values().flatten() {
        if let &Stored::After(inner, number) = value {
            variables.add_phis(&mut phis, number, Value::Exit(inner));
        }
    }
    let mut emitter = Emitter {
        recording,
        tree,
        operands: &operands,
        variables,
        phis,
        stored,
        graph: Appender::like(recording.graph),
        regions: vec![None; tree.loops.len()],
        statements: vec![None; tree.statements.len()],
        entries: HashMap::new(),
        exits: HashMap::new(),
        initials: vec![None; operands.initials.len()],
        cells: Vec::new(),
        invariants: HashMap::new(),
        elements: HashMap::new(),
    };
    let root = emitter.graph.root();
    for matrix in &operands.matrices {
        emitter.cells.push(emitter.graph.arrays.push(ArrayData::Cells(matrix.size)));
    }
    emitter.body(None, root)?;
    let end = tree.root.len();
    let returned = operands.returned.iter();
    let returned = returned.map(|operand| emitter.operand(operand, &[], (None, end), root, None));
    let returned = returned.collect::<Option<SmallVec<[Node; 2]>>>()?;
    emitter.graph.blocks[root].end = End::Return(returned);
    Some(inputs_first(emitter.graph.into_graph()))
}

/// A value that is stored.
enum Stored {
    Statement(usize),
    /// That of a variable after a loop.
    After(usize, usize),
}

struct Emitter<'a> {
    recording: &'a Recording<'a>,
    tree: &'a Tree,
    operands: &'a Operands,
    variables: Variables<'a>,
    phis: Phis,
    /// The stores after each part: the matrix, the value, and the index.
    stored: HashMap<Part, Vec<(usize, Stored, Affine)>>,
    graph: Appender,
    /// The regions of loops that have begun.
    regions: Vec<Option<Region>>,
    /// The latest node of each statement.
    statements: Vec<Option<Node>>,
    /// The φs by loop and variable.
    entries: HashMap<(usize, usize), Node>,
    exits: HashMap<(usize, usize), Node>,
    initials: Vec<Option<Node>>,
    /// The cells of each matrix.
    cells: Vec<Array>,
    /// The operands, by statement and number, that are read before a loop around the statement.
    invariants: HashMap<(usize, usize), Node>,
    /// The elements that a block has read.
    elements: HashMap<(Block, Access), Node>,
}

impl Emitter<'_> {
    /// Emits the body of a loop, or the root, to `block`.
    fn body(&mut self, parent: Option<usize>, block: Block) -> Option<()> {
        let loops: Vec<usize> = parent.map_or_else(Vec::new, |parent| {
            self.tree.loops[parent].around.iter().copied().chain([parent]).collect()
        });
        self.fill(parent, block)?;
        let tree = self.tree;
        for (position, &part) in tree.body(parent).iter().enumerate() {
            match part {
                Part::Statement(number) => self.statement(number, (parent, position), block)?,
                Part::Loop(number) => self.inner_loop(number, block)?,
            }
            for (matrix, value, index) in self.stored.remove(&part).unwrap_or_default() {
                let node = match value {
                    Stored::Statement(statement) => self.statements[statement]?,
                    Stored::After(inner, variable) => *self.exits.get(&(inner, variable))?,
                };
                let access = self.access(self.cells[matrix], &index, &loops)?;
                let access = self.graph.intern_access(access);
                self.graph.blocks[block].items.push(Item::Store(access, node));
            }
        }
        Some(())
    }

    fn statement(
        &mut self,
        number: usize,
        point: (Option<usize>, usize),
        block: Block,
    ) -> Option<()> {
        let statement = &self.tree.statements[number];
        let form = self.recording.forms[statement.form as usize];
        let place = form.place();
        let operands = self.operands.of_statements[number].iter().enumerate();
        let operands = operands.map(|(slot, operand)| match self.invariants.get(&(number, slot)) {
            Some(&node) => Some(node),
            None => self.operand(operand, &statement.loops, point, block, place),
        });
        let operands = operands.collect::<Option<SmallVec<[Node; 3]>>>()?;
        match form {
            Form::Apply { op, .. } => {
                let node = self.graph.push_apply(block, op, &operands, place);
                self.statements[number] = Some(node);
            }
            Form::Guard { expect } => {
                let guard = Item::Guard { condition: operands[0], expect };
                self.graph.blocks[block].items.push(guard);
            }
        }
        Some(())
    }

    /// Reads the cells that all iterations of loop `number` read, before the loop: the reverse sweep
    /// then saves them once.
    fn invariants(&mut self, number: usize, block: Block) -> Option<()> {
        let (tree, all) = (self.tree, self.operands);
        let around = &tree.loops[number].around;
        let is_before = |matrix: usize| {
            let matrix = &all.matrices[matrix];
            matrix.scope.is_none_or(|scope| around.contains(&scope))
                && matrix.stores.iter().all(|(producer, _)| {
                    !tree.statements[producer.statement].loops.contains(&number)
                })
        };
        for (at, statement) in tree.statements.iter().enumerate() {
            if !statement.loops.contains(&number) {
                continue;
            }
            for (slot, operand) in all.of_statements[at].iter().enumerate() {
                let Operand::Cell(matrix, index) = operand else { continue };
                let is_same = index.factors[around.len()..].iter().all(|&by| by == 0);
                if !is_same || !is_before(*matrix) || self.invariants.contains_key(&(at, slot)) {
                    continue;
                }
                let access = self.access(self.cells[*matrix], index, &statement.loops)?;
                let place = self.recording.forms[statement.form as usize].place();
                let node = self.element(access, block, place);
                self.invariants.insert((at, slot), node);
            }
        }
        Some(())
    }

    /// Emits a loop as a step of `block`.
    fn inner_loop(&mut self, number: usize, block: Block) -> Option<()> {
        let data = &self.tree.loops[number];
        let place = self.place(number);
        let last = self.last_iteration(number, block, place)?;
        self.invariants(number, block)?;
        let point = (data.around.last().copied(), data.position);
        for (at, initial) in self.operands.initials.iter().enumerate() {
            if initial.entered == number {
                let node = self.operand(&initial.operand, &data.around, point, block, place)?;
                self.initials[at] = Some(node);
            }
        }
        let entries = self.phis.entries[number].clone();
        let firsts = entries
            .iter()
            .map(|&variable| self.value(variable, self.variables.before_loop(variable, number)));
        let firsts = firsts.collect::<Option<Vec<Node>>>()?;
        let region = self.graph.push_region(block, None, place);
        self.regions[number] = Some(region);
        let phis = self.graph.make_loop(region, data.most_trips, &firsts);
        for (&variable, phi) in entries.iter().zip(phis) {
            self.entries.insert((number, variable), phi);
        }
        let body = self.graph.regions[region].root;
        self.body(Some(number), body)?;
        let counter = self.graph.intern_iteration(region);
        let again = self.graph.push_apply(body, Op::Lt, &[counter, last], place);
        let exits = self.phis.exits[number].clone();
        let mut passed: SmallVec<[Node; 2]> = [again].into_iter().collect();
        for &variable in entries.iter().chain(&exits) {
            passed.push(self.value(variable, self.variables.after_iteration(variable, number))?);
        }
        self.graph.blocks[body].end = End::Return(passed);
        for variable in exits {
            let phi = self.graph.push_phi(region);
            self.exits.insert((number, variable), phi);
        }
        Some(())
    }

    /// The place of a loop: that of the first of its own steps, or of those of inner loops.
    fn place(&self, number: usize) -> Option<PlaceId> {
        let of = |part: &Part| match *part {
            Part::Statement(statement) => {
                self.recording.forms[self.tree.statements[statement].form as usize].place()
            }
            Part::Loop(_) => None,
        };
        let inner = |part: &Part| match *part {
            Part::Loop(inner) => self.place(inner),
            Part::Statement(_) => None,
        };
        let body = &self.tree.loops[number].body;
        body.iter().find_map(of).or_else(|| body.iter().find_map(inner))
    }

    /// The number of the last iteration of a loop, as a node of `block`.
    fn last_iteration(
        &mut self,
        number: usize,
        block: Block,
        place: Option<PlaceId>,
    ) -> Option<Node> {
        let data = &self.tree.loops[number];
        let mut sum: Option<Node> = None;
        for (&around, &by) in data.around.iter().zip(&data.trips.factors) {
            if by == 0 {
                continue;
            }
            let counter = self.graph.intern_iteration(self.regions[around]?);
            let multiple = match by {
                1 => counter,
                _ => {
                    let by = self.graph.intern_const((by as f64).to_bits());
                    self.graph.push_apply(block, Op::Mul, &[counter, by], place)
                }
            };
            sum = Some(match sum {
                None => multiple,
                Some(sum) => self.graph.push_apply(block, Op::Add, &[sum, multiple], place),
            });
        }
        let constant = ((data.trips.constant - 1) as f64).to_bits();
        Some(match sum {
            None => self.graph.intern_const(constant),
            Some(sum) if data.trips.constant == 1 => sum,
            Some(sum) => {
                let constant = self.graph.intern_const(constant);
                self.graph.push_apply(block, Op::Add, &[sum, constant], place)
            }
        })
    }

    /// The node of an operand before the part `position` of the body of `parent`.
    fn operand(
        &mut self,
        operand: &Operand,
        loops: &[usize],
        (parent, position): (Option<usize>, usize),
        block: Block,
        place: Option<PlaceId>,
    ) -> Option<Node> {
        let (array, index) = match operand {
            &Operand::Leaf(leaf) => return Some(self.leaf(leaf)),
            &Operand::Variable(number) => {
                return self.value(number, self.variables.before(number, parent, position));
            }
            Operand::Input(number, changes) => {
                let (array, index) = self.inputs(number);
                let mut access = self.access(array, &index, loops)?;
                for (&number, &by) in loops.iter().zip(changes) {
                    if by != 0 {
                        access.changes.push((self.regions[number]?, i32::try_from(by).ok()?));
                    }
                }
                return Some(self.element(access, block, place));
            }
            Operand::Constant(numbers, index) => {
                let table = ArrayData::Constants(numbers.iter().copied().collect());
                (self.graph.intern_array(table), index.clone())
            }
            Operand::Table(matrix, index) | Operand::Cell(matrix, index) => {
                (self.cells[*matrix], index.clone())
            }
        };
        let access = self.access(array, &index, loops)?;
        Some(self.element(access, block, place))
    }

    /// The element at `access`, which no later step of `block` changes: the sweep adds up all its
    /// adjoints at once.
    fn element(&mut self, access: AccessData, block: Block, place: Option<PlaceId>) -> Node {
        let access = self.graph.intern_access(access);
        let known = self.elements.get(&(block, access)).copied();
        known.unwrap_or_else(|| {
            let node = self.graph.push_element(block, access, place);
            self.elements.insert((block, access), node);
            node
        })
    }

    /// All inputs of a kind, and the index among them.
    fn inputs(&mut self, number: &Affine) -> (Array, Affine) {
        let (active, inactive) = (self.graph.active as u32, self.graph.inactive as u32);
        let mut index = number.clone();
        let data = if index.constant < i64::from(active) {
            ArrayData::Inputs { first: 0, count: active }
        } else {
            index.constant -= i64::from(active);
            ArrayData::Inputs { first: active, count: inactive }
        };
        (self.graph.intern_array(data), index)
    }

    fn access(&self, array: Array, index: &Affine, loops: &[usize]) -> Option<AccessData> {
        let mut strides = SmallVec::new();
        for (&number, &by) in loops.iter().zip(&index.factors) {
            if by != 0 {
                strides.push((self.regions[number]?, i32::try_from(by).ok()?));
            }
        }
        Some(AccessData {
            array,
            base: u32::try_from(index.constant).ok()?,
            strides,
            changes: Default::default(),
        })
    }

    fn leaf(&mut self, leaf: Leaf) -> Node {
        match leaf {
            Leaf::Const(bits) => self.graph.intern_const(bits),
            Leaf::Input(number) => self.graph.intern_input(number),
        }
    }

    fn value(&mut self, variable: usize, value: Value) -> Option<Node> {
        match value {
            Value::Statement(number) => self.statements[number],
            Value::Entry(number) => self.entries.get(&(number, variable)).copied(),
            Value::Exit(number) => self.exits.get(&(number, variable)).copied(),
            Value::Initial(number) => self.initials[number],
            // Never read without a value: a NaN would show.
            Value::First(leaf) => Some(self.leaf(leaf.unwrap_or(Leaf::Const(f64::NAN.to_bits())))),
        }
    }

    /// Fills the matrices of this scope, and stores the values from before all loops.
    fn fill(&mut self, scope: Option<usize>, block: Block) -> Option<()> {
        let operands = self.operands;
        for (matrix, data) in operands.matrices.iter().enumerate() {
            if data.scope != scope {
                continue;
            }
            let cells = self.cells[matrix];
            self.graph.blocks[block].items.push(Item::Fill(cells));
            for values in copies(&data.leaves)? {
                self.copy(cells, &values, block)?;
            }
        }
        Some(())
    }

    /// Stores `values`, in loops.
    fn copy(&mut self, cells: Array, values: &Copies, block: Block) -> Option<()> {
        let (mut block, mut strides) = (block, [SmallVec::new(), SmallVec::new()]);
        let mut ends: Vec<(Region, Node)> = Vec::new();
        // The number by which a trip count grows in each iteration of the loop around, and the last one.
        let (mut longer, mut last_around) = (0, 0);
        for at in &values.loops {
            let last = self.graph.intern_const(((at.count - 1) as f64).to_bits());
            let last = match ends.last().filter(|_| longer != 0) {
                None => last,
                Some(&(around, _)) => {
                    let number = self.graph.intern_iteration(around);
                    let by = self.graph.intern_const((longer as f64).to_bits());
                    let more = self.graph.push_apply(block, Op::Mul, &[number, by], None);
                    self.graph.push_apply(block, Op::Add, &[more, last], None)
                }
            };
            let region = self.graph.push_region(block, None, None);
            let most = at.count.max(at.count + longer * last_around);
            self.graph.make_loop(region, u32::try_from(most).ok()?, &[]);
            for (strides, by) in strides.iter_mut().zip([at.by.0, at.by.1]) {
                if by != 0 {
                    strides.push((region, i32::try_from(by).ok()?));
                }
            }
            block = self.graph.regions[region].root;
            ends.push((region, last));
            (longer, last_around) = (at.longer, most - 1);
        }
        let [of_cells, of_inputs] = strides;
        let access = |array, base: i64, strides| {
            let base = u32::try_from(base).ok()?;
            Some(AccessData { array, base, strides, changes: Default::default() })
        };
        let (cell, first) = values.first;
        let node = match first {
            Leaf::Input(number) if !of_inputs.is_empty() => {
                let number = Affine { constant: i64::from(number), factors: SmallVec::new() };
                let (array, index) = self.inputs(&number);
                let access = self.graph.intern_access(access(array, index.constant, of_inputs)?);
                self.graph.push_element(block, access, None)
            }
            _ => self.leaf(first),
        };
        let access = self.graph.intern_access(access(cells, cell, of_cells)?);
        self.graph.blocks[block].items.push(Item::Store(access, node));
        for (region, last) in ends {
            let counter = self.graph.intern_iteration(region);
            let body = self.graph.regions[region].root;
            let again = self.graph.push_apply(body, Op::Lt, &[counter, last], None);
            self.graph.blocks[body].end = End::Return([again].into_iter().collect());
        }
        Some(())
    }
}
