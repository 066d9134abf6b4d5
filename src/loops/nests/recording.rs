//! The steps of straight-line code by their form.

use hashbrown::HashMap;

use crate::entity::PrimaryMap;
use crate::op::Op;
use crate::ssa::{Def, End, Graph, Item, Node, PlaceId};

/// The form of a step: all but its operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Form {
    /// An application. The exponent of `powi` is part of it, because it must stay a constant.
    Apply { op: Op, exponent: Option<u64>, place: Option<PlaceId> },
    /// A guard on the operand.
    Guard { expect: bool },
}

/// A graph of one block, as a list of steps.
pub(super) struct Recording<'a> {
    pub(super) graph: &'a Graph,
    pub(super) steps: &'a [Item],
    pub(super) forms: Vec<Form>,
    /// The number of the form of each step.
    pub(super) form_of_step: Vec<u32>,
    /// For each step, the number of earlier ones of the same form.
    pub(super) ordinals: Vec<u32>,
    /// The step of each node.
    steps_of_nodes: PrimaryMap<Node, u32>,
}

/// The step of nodes that are inputs or constants.
const NO_STEP: u32 = u32::MAX;

impl<'a> Recording<'a> {
    /// The steps of `graph`; `None` if it has others than primitives and guards.
    pub(super) fn of(graph: &'a Graph) -> Option<Self> {
        let steps = &graph.blocks[graph.root()].items[..];
        let (mut forms, mut numbers) = (Vec::new(), HashMap::new());
        let (mut form_of_step, mut ordinals) = (Vec::new(), Vec::new());
        let mut counts: Vec<u32> = Vec::new();
        let mut steps_of_nodes = PrimaryMap::filled(NO_STEP, graph.nodes.len());
        for (&item, step) in steps.iter().zip(0..) {
            let form = match item {
                Item::Node(node) => {
                    let data = &graph.nodes[node];
                    let Def::Apply(op, args) = data.def else { return None };
                    steps_of_nodes[node] = step;
                    let exponent = match graph.nodes[args[1]].def {
                        Def::Const(bits) if op == Op::Powi => Some(bits),
                        _ => None,
                    };
                    Form::Apply { op, exponent, place: data.place }
                }
                Item::Guard { expect, .. } => Form::Guard { expect },
                _ => return None,
            };
            let number = *numbers.entry(form).or_insert_with(|| {
                forms.push(form);
                counts.push(0);
                forms.len() - 1
            });
            form_of_step.push(number as u32);
            ordinals.push(counts[number]);
            counts[number] += 1;
        }
        matches!(graph.blocks[graph.root()].end, End::Return(_)).then_some(())?;
        Some(Recording { graph, steps, forms, form_of_step, ordinals, steps_of_nodes })
    }

    /// The step that computes `node`; `None` for inputs and constants.
    pub(super) fn step_of(&self, node: Node) -> Option<u32> {
        Some(self.steps_of_nodes[node]).filter(|&step| step != NO_STEP)
    }

    /// The operands of a step.
    pub(super) fn operands(&self, step: u32) -> &[Node] {
        match &self.steps[step as usize] {
            Item::Node(node) => self.graph.operands(*node),
            Item::Guard { condition, .. } => core::slice::from_ref(condition),
            _ => &[],
        }
    }

    /// The values that the graph returns.
    pub(super) fn returned(&self) -> &[Node] {
        match &self.graph.blocks[self.graph.root()].end {
            End::Return(values) => values,
            _ => &[],
        }
    }

    /// The line and column of a step of this form; the largest for one without a place.
    pub(super) fn place(&self, form: u32) -> (u32, u32) {
        match self.forms[form as usize] {
            Form::Apply { place: Some(place), .. } => {
                let place = &self.graph.places[place];
                (place.line, place.column)
            }
            _ => (u32::MAX, u32::MAX),
        }
    }
}
