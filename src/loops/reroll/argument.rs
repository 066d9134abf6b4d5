//! Operands of the new graph, as functions of the iteration numbers of enclosing loops.

use std::rc::Rc;

use hashbrown::HashMap;
use smallvec::SmallVec;

use super::emit_affine_loop::Row;
use crate::ssa::{
    Access, AccessData, Appender, Array, ArrayData, Block, Def, Graph, Node, PlaceId, Region,
    inputs_first,
};

/// The strides of an index by loops.
type Strides = SmallVec<[(Region, i32); 2]>;

/// An operand in the new graph.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Arg {
    Leaf(Leaf),
    /// An element of inputs or saved values.
    Element {
        array: ArraySource,
        base: u32,
        strides: Strides,
    },
    /// An element of a table of leaves, which becomes an array where it is used.
    Table {
        leaves: Rc<[Leaf]>,
        strides: Strides,
    },
    /// In a loop, for an inner loop that is not known yet.
    Row(Row),
    /// All saved values of this node, computed in a loop that has ended.
    Saved(Node),
    /// An operand without a form in the new graph. Emission fails if a step uses it.
    Missing,
}

/// An array that is identified by its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum ArraySource {
    /// All active inputs.
    Active,
    /// All inactive inputs. Kernels have them in another buffer, so no array holds both kinds.
    Inactive,
    /// The saved values of this node, computed in a loop that has ended.
    Saved(Node),
}

impl ArraySource {
    /// The array of this input, and its index.
    pub(super) fn of_input(graph: &Graph, number: u32) -> (ArraySource, u32) {
        match number.checked_sub(graph.active as u32) {
            Some(number) => (ArraySource::Inactive, number),
            None => (ArraySource::Active, number),
        }
    }
}

/// An operand that is the same in all iterations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Leaf {
    /// A constant; it becomes a node where one is needed.
    Const(u64),
    Node(Node),
}

/// The new graph with its tables and elements, for reuse.
pub(super) struct OutputGraph {
    pub(super) graph: Appender,
    tables: HashMap<Rc<[Leaf]>, Array>,
    elements: HashMap<(Block, Access), Node>,
    /// The φs with the values of nodes in the last iterations of their loops.
    finals: HashMap<(Node, u32), Node>,
    /// True if a step uses an operand without a form.
    has_failed: bool,
}

impl OutputGraph {
    /// A graph of the same inputs and places as `old`.
    pub(super) fn new(old: &Graph) -> Self {
        OutputGraph {
            graph: Appender::like(old),
            tables: HashMap::new(),
            elements: HashMap::new(),
            finals: HashMap::new(),
            has_failed: false,
        }
    }

    /// The graph, if all operands have a form.
    pub(super) fn finish(self) -> Option<Graph> {
        (!self.has_failed).then(|| inputs_first(self.graph.into_graph()))
    }

    /// Records that `phi` is the value of `node` in iteration `last`, the last one of its loop.
    pub(super) fn set_final(&mut self, node: Node, last: u32, phi: Node) {
        self.finals.insert((node, last), phi);
    }

    /// The node of `arg`, appended to `block` if it is new.
    pub(super) fn node(&mut self, arg: &Arg, block: Block, place: Option<PlaceId>) -> Node {
        let (array, base, strides) = match arg {
            &Arg::Leaf(leaf) => return self.leaf(leaf),
            Arg::Element { array, base, strides } => {
                if let (ArraySource::Saved(node), true) = (array, strides.is_empty())
                    && let Some(&phi) = self.finals.get(&(*node, *base))
                {
                    return phi;
                }
                (self.array(*array), *base, strides)
            }
            Arg::Table { leaves, strides } => (self.table(leaves), 0, strides),
            Arg::Row(_) | Arg::Saved(_) | Arg::Missing => {
                self.fail();
                return self.graph.intern_const(0);
            }
        };
        let data =
            AccessData { array, base, strides: strides.clone(), changes: Default::default() };
        let access = self.graph.intern_access(data);
        if let Some(&element) = self.elements.get(&(block, access)) {
            return element;
        }
        let element = self.graph.push_element(block, access, place);
        self.elements.insert((block, access), element);
        element
    }

    /// Notes that a step has no form in the new graph.
    pub(super) fn fail(&mut self) {
        self.has_failed = true;
    }

    fn leaf(&mut self, leaf: Leaf) -> Node {
        match leaf {
            Leaf::Const(bits) => self.graph.intern_const(bits),
            Leaf::Node(node) => node,
        }
    }

    fn array(&mut self, array: ArraySource) -> Array {
        let (active, inactive) = (self.graph.active as u32, self.graph.inactive as u32);
        self.graph.intern_array(match array {
            ArraySource::Active => ArrayData::Inputs { first: 0, count: active },
            ArraySource::Inactive => ArrayData::Inputs { first: active, count: inactive },
            ArraySource::Saved(node) => ArrayData::Saved(node),
        })
    }

    fn table(&mut self, leaves: &Rc<[Leaf]>) -> Array {
        if let Some(&array) = self.tables.get(leaves) {
            return array;
        }
        let bits = leaves.iter().map(|leaf| match leaf {
            Leaf::Const(bits) => Some(*bits),
            Leaf::Node(_) => None,
        });
        let data = match bits.collect() {
            Some(bits) => ArrayData::Constants(bits),
            None => ArrayData::Nodes(leaves.iter().map(|&leaf| self.leaf(leaf)).collect()),
        };
        let array = self.graph.intern_array(data);
        self.tables.insert(Rc::clone(leaves), array);
        array
    }

    /// The operand that is `args[i]` in iteration i of `inside`, a loop that will be appended to
    /// `block`.
    pub(super) fn in_loop(
        &mut self,
        args: &[Arg],
        inside: Region,
        block: Block,
        place: Option<PlaceId>,
    ) -> Arg {
        let progression = || element(args, inside, &self.graph);
        if let Some(arg) = same(args).or_else(progression).or_else(|| table(args, inside)) {
            return arg;
        }
        let nodes: Vec<Arg> =
            args.iter().map(|arg| Arg::Leaf(Leaf::Node(self.node(arg, block, place)))).collect();
        table(&nodes, inside).unwrap_or_else(|| nodes[0].clone())
    }
}

/// The value of all `args`, if it is the same.
fn same(args: &[Arg]) -> Option<Arg> {
    let first = args.first()?;
    args.iter().all(|arg| arg == first).then(|| first.clone())
}

/// The access, if `args` are elements of one array in arithmetic progression.
fn element(args: &[Arg], inside: Region, graph: &Graph) -> Option<Arg> {
    let place = |arg: &Arg| place(arg, graph);
    let [first, second, ..] = args else { return None };
    let (array, base) = place(first)?;
    let by = place(second)?.1 - base;
    let fits = |(arg, index): (&Arg, i64)| {
        place(arg) == Some((array, base + by * index)) && strides_of(arg) == strides_of(first)
    };
    if !args.iter().zip(0..).all(fits) {
        return None;
    }
    let mut strides: Strides = strides_of(first).into();
    strides.push((inside, i32::try_from(by).ok()?));
    Some(Arg::Element { array, base: u32::try_from(base).ok()?, strides })
}

/// The array of which `arg` is an element, with its index but for the strides.
pub(super) fn place(arg: &Arg, graph: &Graph) -> Option<(ArraySource, i64)> {
    match arg {
        Arg::Element { array, base, .. } => Some((*array, i64::from(*base))),
        Arg::Leaf(Leaf::Node(node)) => match graph.nodes[*node].def {
            Def::Input(number) => {
                let (array, number) = ArraySource::of_input(graph, number);
                Some((array, i64::from(number)))
            }
            _ => None,
        },
        Arg::Leaf(Leaf::Const(_)) | Arg::Table { .. } => None,
        Arg::Row(_) | Arg::Saved(_) | Arg::Missing => None,
    }
}

/// The strides of an operand; none for leaves.
pub(super) fn strides_of(arg: &Arg) -> &[(Region, i32)] {
    match arg {
        Arg::Element { strides, .. } | Arg::Table { strides, .. } => strides,
        Arg::Leaf(_) | Arg::Row(_) | Arg::Saved(_) | Arg::Missing => &[],
    }
}

/// The table of `args`, which are leaves, or tables with the same strides.
fn table(args: &[Arg], inside: Region) -> Option<Arg> {
    let tables = args.iter().find_map(|arg| match arg {
        Arg::Table { leaves, strides } => Some((leaves.len(), strides.clone())),
        Arg::Leaf(_) | Arg::Element { .. } => None,
        Arg::Row(_) | Arg::Saved(_) | Arg::Missing => None,
    });
    let (len, mut strides) = tables.unwrap_or((1, Strides::new()));
    let fits = |arg: &Arg| match arg {
        Arg::Leaf(_) => true,
        Arg::Table { leaves, strides: like } => leaves.len() == len && *like == strides,
        Arg::Element { .. } | Arg::Row(_) | Arg::Saved(_) | Arg::Missing => false,
    };
    if !args.iter().all(fits) {
        return None;
    }
    let leaf = |arg: &Arg, index: usize| match arg {
        Arg::Leaf(leaf) => Some(*leaf),
        Arg::Table { leaves, .. } => leaves.get(index).copied(),
        Arg::Element { .. } | Arg::Row(_) | Arg::Saved(_) | Arg::Missing => None,
    };
    let leaves: Option<Rc<[Leaf]>> =
        (0..len).flat_map(|index| args.iter().map(move |arg| leaf(arg, index))).collect();
    let width = i32::try_from(args.len()).ok()?;
    for (_, stride) in &mut strides {
        *stride = stride.checked_mul(width)?;
    }
    strides.push((inside, 1));
    Some(Arg::Table { leaves: leaves?, strides })
}
