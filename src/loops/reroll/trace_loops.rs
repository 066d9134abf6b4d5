//! Trace loops as steps: loops that were found while recording, whose bodies are rolled in turn,
//! and with them the repetition around.
//!
//! A trace loop has one block and a constant trip count. It reads inputs, constants and saved
//! values of earlier loops at affine indices. A graph with other loops is returned unchanged.

use std::rc::Rc;

use smallvec::SmallVec;

use super::argument::{Arg, ArraySource, Leaf};
use super::collect::Collect;
use super::emit::{Args, Emitter, Locals};
use super::template::{Scope, Step, Template};
use crate::entity::PrimaryMap;
use crate::op::Op;
use crate::ssa::{AccessData, ArrayData, Block, Def, End, Graph, Item, Node, PlaceId, Region};

/// A parameter of the body of a trace loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Param {
    /// The entry φ with this number.
    Entry(u32),
    /// A loop-invariant value.
    Invariant,
    /// An input with this stride.
    Input { stride: i32 },
    /// A saved value of an earlier loop, with this base and stride.
    Saved { base: u32, stride: i32 },
    /// Constants with stride 1.
    Constants,
}

/// The parts of a trace loop.
pub(in crate::loops) struct TraceLoop {
    pub(in crate::loops) times: u32,
    /// Its only block.
    pub(in crate::loops) body: Block,
    /// The next values of the entry φs, then those of the φs.
    pub(in crate::loops) passed: SmallVec<[Node; 2]>,
}

/// The parts of `region`, if it is a trace loop.
pub(in crate::loops) fn trace_loop(graph: &Graph, region: Region) -> Option<TraceLoop> {
    let data = &graph.regions[region];
    let (body, cycle) = (data.root, data.cycle.as_ref().filter(|_| data.replays.is_none())?);
    let End::Return(passed) = &graph.blocks[body].end else { return None };
    let (&again, passed) = passed.split_first()?;
    let Def::Apply(Op::Lt, args) = graph.nodes[again].def else { return None };
    let [number, most, _] = args;
    let is_counted = graph.nodes[number].def == Def::Iteration(region)
        && graph.constant(most) == Some(f64::from(cycle.bound) - 1.0);
    let items = &graph.blocks[body].items;
    let is_used = |node: Node| node == again || node == number;
    let is_plain = |item: &Item| match *item {
        Item::Node(node) if node == again => true,
        Item::Node(node) => match graph.nodes[node].def {
            Def::Apply(..) => !graph.nodes[node].args().iter().any(|&arg| is_used(arg)),
            Def::Element(access) => {
                let data = &graph.accesses[access];
                matches!(data.strides[..], [(by, _)] if by == region) && is_indexed(graph, data)
            }
            _ => false,
        },
        Item::Guard { condition, .. } => !is_used(condition),
        Item::Region(_) | Item::Fill(_) | Item::Accumulate(..) | Item::Store(..) => false,
    };
    let fits = is_counted
        && items.iter().all(is_plain)
        && !passed.iter().any(|&node| is_used(node))
        && items.last() == Some(&Item::Node(again));
    fits.then(|| TraceLoop { times: cycle.bound, body, passed: passed.into() })
}

/// Tests whether the access is to inputs, to constants from the first on, or to saved values.
fn is_indexed(graph: &Graph, access: &AccessData) -> bool {
    match &graph.arrays[access.array] {
        ArrayData::Constants(_) => access.base == 0 && access.strides.iter().all(|by| by.1 == 1),
        ArrayData::Inputs { .. } | ArrayData::Saved(_) => true,
        ArrayData::Nodes(_)
        | ArrayData::Sums(_)
        | ArrayData::Outputs { .. }
        | ArrayData::Cells(_) => false,
    }
}

/// Tests whether `graph` has loops, and all are trace loops.
pub(super) fn has_only_trace_loops(graph: &Graph) -> bool {
    let loops = || graph.regions.keys().filter(|&region| graph.regions[region].cycle.is_some());
    let mut is_body = PrimaryMap::filled(false, graph.blocks.len());
    loops().for_each(|region| is_body[graph.regions[region].root] = true);
    let is_saved = |item: &Item| match *item {
        Item::Node(node) => saved_element(graph, node).is_some() || !is_element(graph, node),
        _ => true,
    };
    loops().next().is_some()
        && loops().all(|region| trace_loop(graph, region).is_some())
        && graph
            .blocks
            .keys()
            .all(|block| is_body[block] || graph.blocks[block].items.iter().all(is_saved))
}

fn is_element(graph: &Graph, node: Node) -> bool {
    matches!(graph.nodes[node].def, Def::Element(_))
}

/// The saved node and the iteration that `node` reads, if it reads one with a constant index.
pub(super) fn saved_element(graph: &Graph, node: Node) -> Option<(Node, u32)> {
    let Def::Element(access) = graph.nodes[node].def else { return None };
    let data = &graph.accesses[access];
    match graph.arrays[data.array] {
        ArrayData::Saved(node) if data.strides.is_empty() => Some((node, data.base)),
        _ => None,
    }
}

impl Collect<'_> {
    /// The step of `region`, a trace loop.
    pub(super) fn trace_loop_step(&mut self, region: Region) -> Option<Step> {
        let graph = self.graph;
        let TraceLoop { times, body, passed, .. } = trace_loop(graph, region)?;
        let saved: Vec<Node> = graph.blocks[body]
            .items
            .iter()
            .filter_map(|item| match *item {
                Item::Node(node) if self.saved.contains(&node) => Some(node),
                _ => None,
            })
            .collect();
        let (entries, phis) = (graph.entries(region), &graph.regions[region].phis);
        self.tree.ends[body] = End::Return(passed.iter().chain(&saved).copied().collect());
        let (scope, used) = self.scope(body);
        let mut operands: SmallVec<[Node; 3]> = entries.iter().map(|entry| entry.first).collect();
        let mut params = Vec::with_capacity(used.len());
        for &node in &used {
            let (param, operand) = self.param(region, node)?;
            params.push(param);
            operands.extend(operand);
        }
        let inside = scope.blocks.iter().flat_map(|block| &block.steps);
        let inside: u64 = inside.map(|step| self.templates.weight(step.template)).sum();
        let (weight, place) =
            (inside.saturating_mul(u64::from(times)), graph.regions[region].place);
        let (entries, saved_count, phi_count) =
            (entries.len() as u32, saved.len() as u32, phis.len() as u32);
        let template = Template::TraceLoop {
            times,
            scope,
            params,
            entries,
            saved: saved_count,
            phis: phi_count,
            place,
        };
        let template = self.templates.intern(template, saved.len() + phis.len(), weight);
        Some(Step { template, operands, outputs: saved.iter().chain(phis).copied().collect() })
    }

    /// The parameter for `node`, a live-in of the body of `region`, and its operand.
    fn param(&self, region: Region, node: Node) -> Option<(Param, Option<Node>)> {
        let access = match self.graph.nodes[node].def {
            Def::Entry(of, number) if of == region => return Some((Param::Entry(number), None)),
            Def::Element(access) => &self.graph.accesses[access],
            _ => return Some((Param::Invariant, Some(node))),
        };
        let stride = match access.strides[..] {
            [(by, stride)] if by == region => stride,
            // It was read before the loop.
            _ => return Some((Param::Invariant, Some(node))),
        };
        Some(match self.graph.arrays[access.array] {
            // The element stands for the whole array.
            ArrayData::Constants(_) => (Param::Constants, Some(node)),
            // The element stands for its first input.
            ArrayData::Inputs { .. } => (Param::Input { stride }, Some(node)),
            ArrayData::Saved(of) => (Param::Saved { base: access.base, stride }, Some(of)),
            ArrayData::Nodes(_)
            | ArrayData::Sums(_)
            | ArrayData::Outputs { .. }
            | ArrayData::Cells(_) => return None,
        })
    }
}

/// The constants that the element `node` of a trace loop reads, or its first input.
pub(super) fn whole_array(graph: &Graph, node: Node) -> Option<Arg> {
    let Def::Element(access) = graph.nodes[node].def else { return None };
    let access = &graph.accesses[access];
    match &graph.arrays[access.array] {
        ArrayData::Constants(numbers) => {
            let leaves: Rc<[Leaf]> = numbers.iter().map(|&bits| Leaf::Const(bits)).collect();
            Some(Arg::Table { leaves, strides: SmallVec::new() })
        }
        ArrayData::Inputs { first, .. } => {
            let (array, base) = ArraySource::of_input(graph, first + access.base);
            Some(Arg::Element { array, base, strides: SmallVec::new() })
        }
        _ => None,
    }
}

/// The fields of `Template::TraceLoop`.
pub(super) struct TraceLoopFields<'a> {
    pub(super) times: u32,
    pub(super) scope: &'a Scope,
    pub(super) params: &'a [Param],
    pub(super) entries: u32,
    pub(super) saved: u32,
    pub(super) phis: u32,
    pub(super) place: Option<PlaceId>,
}

impl Emitter<'_> {
    /// Emits a trace loop, and defines its outputs.
    pub(super) fn emit_trace_loop(
        &mut self,
        template: &TraceLoopFields<'_>,
        args: &Args,
        block: Block,
        locals: &mut Locals,
    ) {
        let &TraceLoopFields { times, place, .. } = template;
        let (firsts, used) = args.split_at((template.entries as usize).min(args.len()));
        let firsts: Vec<Node> =
            firsts.iter().map(|arg| self.output.node(arg, block, place)).collect();
        let region = self.output.graph.push_region(block, None, place);
        let entries = self.output.graph.make_loop(region, times, &firsts);
        let number = self.output.graph.intern_iteration(region);
        // The operands of the body, as functions of the iteration number.
        let mut used = used.iter();
        let mut outer = Vec::with_capacity(template.params.len());
        for param in template.params {
            let arg = match *param {
                Param::Entry(number) => {
                    outer.push(Arg::Leaf(Leaf::Node(entries[number as usize])));
                    continue;
                }
                _ => used.next(),
            };
            let arg = arg.and_then(|arg| self.inside(*param, arg, region, times));
            outer.push(arg.unwrap_or(Arg::Missing));
        }
        let body = self.output.graph.regions[region].root;
        self.scope(template.scope, &outer, body);
        let most = self.output.graph.intern_const(f64::from(times - 1).to_bits());
        let again = self.output.graph.push_apply(body, Op::Lt, &[number, most], place);
        // The scope returned the saved nodes last; they are no φs.
        let end = core::mem::replace(&mut self.output.graph.blocks[body].end, End::Open);
        let End::Return(mut passed) = end else { return };
        let count = passed.len().saturating_sub(template.saved as usize);
        let saved = passed[count..].to_vec();
        passed.truncate(count);
        passed.insert(0, again);
        self.output.graph.blocks[body].end = End::Return(passed);
        saved.into_iter().for_each(|node| locals.define_as(Arg::Saved(node)));
        for _ in 0..template.phis {
            let phi = self.output.graph.push_phi(region);
            locals.define(phi);
        }
    }

    /// The operand `arg` of `param` inside `region`.
    fn inside(&self, param: Param, arg: &Arg, region: Region, times: u32) -> Option<Arg> {
        let graph = &self.output.graph;
        Some(match (param, arg) {
            (Param::Invariant, Arg::Saved(_) | Arg::Missing) | (Param::Entry(_), _) => return None,
            (Param::Invariant, _) => arg.clone(),
            (Param::Input { stride }, Arg::Leaf(Leaf::Node(node))) => {
                let Def::Input(number) = graph.nodes[*node].def else { return None };
                let (array, base) = ArraySource::of_input(graph, number);
                Arg::Element { array, base, strides: SmallVec::from_slice(&[(region, stride)]) }
            }
            (
                Param::Input { stride },
                Arg::Element {
                    array: array @ (ArraySource::Active | ArraySource::Inactive),
                    base,
                    strides,
                },
            ) => {
                let (array, base, mut strides) = (*array, *base, strides.clone());
                strides.push((region, stride));
                Arg::Element { array, base, strides }
            }
            (Param::Saved { base, stride }, Arg::Saved(node)) => {
                let strides = SmallVec::from_slice(&[(region, stride)]);
                Arg::Element { array: ArraySource::Saved(*node), base, strides }
            }
            (Param::Constants, Arg::Table { leaves, strides }) => {
                let mut strides = strides.clone();
                let stride = i32::try_from(leaves.len() / times.max(1) as usize).ok()?;
                strides.push((region, stride));
                Arg::Table { leaves: Rc::clone(leaves), strides }
            }
            _ => return None,
        })
    }
}
