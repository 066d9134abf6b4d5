//! Emits the new graph from templates.
//!
//! Used outputs of a loop become φs if they are of the last iteration, otherwise elements of
//! saved values.

use hashbrown::HashMap;
use smallvec::SmallVec;

use super::argument::{Arg, ArraySource, Leaf, OutputGraph};
use super::collect::Collected;
use super::places::set_distinct_places;
use super::template::{Inner, Ref, Scope, ScopeEnd, Template, TemplateId, Templates};
use super::trace_loops::{TraceLoopFields, whole_array};
use crate::op::Op;
use crate::ssa::{Block, Def, End, Graph, Item, Node, PlaceId};

/// The graph of `collected`, which was collected from `old`; `None` if a loop would have to save
/// all values of an inner loop.
pub(super) fn emit(old: &Graph, templates: &Templates, collected: &Collected) -> Option<Graph> {
    let mut output = OutputGraph::new(old);
    let operands = collected.operands.iter().map(|&node| match old.nodes[node].def {
        Def::Input(number) => Arg::Leaf(Leaf::Node(output.graph.intern_input(number))),
        Def::Const(bits) => Arg::Leaf(Leaf::Const(bits)),
        _ => whole_array(old, node).unwrap_or(Arg::Missing),
    });
    let operands: Vec<Arg> = operands.collect();
    let root = output.graph.root();
    let mut emitter = Emitter { templates, output };
    emitter.scope(&collected.scope, &operands, root);
    let mut graph = emitter.output.finish()?;
    set_distinct_places(&mut graph);
    Some(graph)
}

/// The emitter: templates on their way to the new graph.
pub(super) struct Emitter<'a> {
    pub(super) templates: &'a Templates,
    pub(super) output: OutputGraph,
}

/// The operands of a step.
pub(super) type Args = SmallVec<[Arg; 3]>;

/// The outputs of the steps in a scope or body, by number.
pub(super) struct Locals {
    /// The outputs that have been emitted.
    args: Vec<Option<Arg>>,
    needed: Vec<bool>,
    /// The number of the next output.
    next: usize,
}

impl Locals {
    pub(super) fn new(count: usize) -> Self {
        Locals { args: vec![None; count], needed: vec![false; count], next: 0 }
    }

    pub(super) fn need(&mut self, reference: Ref) {
        if let Ref::Own(number) | Ref::Carried { value: number, .. } = reference {
            self.needed[number as usize] = true;
        }
    }

    pub(super) fn get(&self, number: u32) -> Arg {
        self.args.get(number as usize).cloned().flatten().unwrap_or(Arg::Missing)
    }

    /// Tests whether output `number` of the next step is used.
    pub(super) fn is_needed(&self, number: usize) -> bool {
        self.needed[self.next + number]
    }

    /// Defines `outputs` of the next `count`.
    pub(super) fn define_some(&mut self, count: usize, outputs: Vec<(usize, Arg)>) {
        for (number, arg) in outputs {
            self.args[self.next + number] = Some(arg);
        }
        self.next += count;
    }

    pub(super) fn define(&mut self, node: Node) {
        self.define_as(Arg::Leaf(Leaf::Node(node)));
    }

    pub(super) fn define_as(&mut self, arg: Arg) {
        self.args[self.next] = Some(arg);
        self.next += 1;
    }
}

impl Emitter<'_> {
    pub(super) fn scope(&mut self, scope: &Scope, outer: &[Arg], root: Block) {
        let steps = || scope.blocks.iter().flat_map(|block| &block.steps);
        let mut locals =
            Locals::new(steps().map(|step| self.templates.outputs(step.template)).sum());
        steps().flat_map(|step| &step.operands).for_each(|&operand| locals.need(operand));
        for block in &scope.blocks {
            match &block.end {
                ScopeEnd::Return(values) => values.iter().for_each(|&value| locals.need(value)),
                ScopeEnd::Branch { condition, .. } => locals.need(*condition),
            }
        }
        // A parent comes before its arms, so their new blocks are known when they are emitted.
        let resolve = |locals: &Locals, reference: Ref| match reference {
            Ref::Own(number) => locals.get(number),
            Ref::Outer(outside)
            | Ref::Carried { outer: outside, .. }
            | Ref::Rows { outer: outside, .. } => outer[outside as usize].clone(),
        };
        let mut blocks = vec![root; scope.blocks.len()];
        for (index, data) in scope.blocks.iter().enumerate() {
            let block = blocks[index];
            for step in &data.steps {
                let args = step.operands.iter().map(|&operand| resolve(&locals, operand)).collect();
                self.step(step.template, args, block, &mut locals);
            }
            let end = match &data.end {
                ScopeEnd::Return(values) => {
                    let values = values.iter().map(|&value| resolve(&locals, value));
                    End::Return(values.map(|value| self.output.node(&value, block, None)).collect())
                }
                ScopeEnd::Branch { condition, then, otherwise } => {
                    let condition = self.output.node(&resolve(&locals, *condition), block, None);
                    blocks[*then] = self.output.graph.new_block();
                    blocks[*otherwise] = self.output.graph.new_block();
                    let (then, otherwise) = (blocks[*then], blocks[*otherwise]);
                    End::Branch { condition, then, otherwise }
                }
            };
            self.output.graph.blocks[block].end = end;
        }
    }

    pub(super) fn step(
        &mut self,
        template: TemplateId,
        args: Args,
        block: Block,
        locals: &mut Locals,
    ) {
        match self.templates.get(template) {
            Template::Apply { op, place, .. } => {
                let args: SmallVec<[Node; 3]> =
                    args.iter().map(|arg| self.output.node(arg, block, *place)).collect();
                locals.define(self.output.graph.push_apply(block, *op, &args, *place));
            }
            Template::Guard { expect } => {
                let condition = self.output.node(&args[0], block, None);
                let guard = Item::Guard { condition, expect: *expect };
                self.output.graph.blocks[block].items.push(guard);
            }
            Template::Region { scope, phis, place } => {
                let region = self.output.graph.push_region(block, None, *place);
                let root = self.output.graph.regions[region].root;
                self.scope(scope, &args, root);
                (0..*phis).for_each(|_| locals.define(self.output.graph.push_phi(region)));
            }
            Template::TraceLoop { times, scope, params, entries, saved, phis, place } => {
                let (times, entries, saved) = (*times, *entries, *saved);
                let (phis, place) = (*phis, *place);
                let template =
                    TraceLoopFields { times, scope, params, entries, saved, phis, place };
                self.emit_trace_loop(&template, &args, block, locals);
            }
            Template::Saved { iteration, .. } => {
                let element = match args[0] {
                    Arg::Saved(node) => Arg::Element {
                        array: ArraySource::Saved(node),
                        base: *iteration,
                        strides: SmallVec::new(),
                    },
                    _ => Arg::Missing,
                };
                locals.define_as(element);
            }
            Template::While { .. } => {
                let phis = self.emit_exit_loop(template, &args, block);
                phis.into_iter().for_each(|phi| locals.define(phi));
            }
            // Emitted with the loop around it.
            Template::AffineLoop { .. } => self.output.fail(),
            Template::Loop { times, steps, place } => {
                let first = locals.next;
                locals.next += self.templates.outputs(template);
                let needed = (first..locals.next).filter(|&number| locals.needed[number]);
                let needed: Vec<usize> = needed.map(|number| number - first).collect();
                let outputs = self.emit_loop(*times, steps, &args, &needed, block, *place);
                for (number, arg) in needed.into_iter().zip(outputs) {
                    locals.args[first + number] = Some(arg);
                }
            }
        }
    }

    /// Emits a loop, and returns its `needed` outputs.
    fn emit_loop(
        &mut self,
        times: u32,
        steps: &[Inner],
        args: &[Arg],
        needed: &[usize],
        block: Block,
        place: Option<PlaceId>,
    ) -> Vec<Arg> {
        let width = steps.iter().map(|step| self.templates.outputs(step.template)).sum();
        let mut locals = Locals::new(width);
        steps.iter().flat_map(|step| &step.operands).for_each(|&operand| locals.need(operand));
        needed.iter().for_each(|number| locals.needed[number % width] = true);
        // Operands first: new elements and initial values are steps before the loop.
        let region = self.output.graph.regions.next_key();
        let (carried, operands) = self.operands(times, &self.refs(steps, place), args, block);
        let pushed = self.output.graph.push_region(block, None, place);
        debug_assert_eq!(region, pushed);
        let phis = self.output.graph.make_loop(region, times, &carried.firsts);
        let number = self.output.graph.intern_iteration(region);
        let body = self.output.graph.regions[region].root;
        let mut operands = operands.into_iter();
        for step in steps {
            let args = operands.by_ref().take(step.operands.len());
            let args: Args = args.map(|operand| operand.arg(&locals, &phis)).collect();
            match self.templates.get(step.template) {
                Template::AffineLoop { .. } => {
                    let around = (region, times);
                    self.emit_affine_loop(step.template, args, around, body, &mut locals);
                }
                _ => self.step(step.template, args, body, &mut locals),
            }
        }
        let nexts = self.nexts(&carried, &locals, &phis, body, place);
        let values: Vec<Node> = needed
            .iter()
            .map(|number| self.output.node(&locals.get((number % width) as u32), body, place))
            .collect();
        // The exit condition; outputs of the last iteration are φs.
        let last = times - 1;
        let most = self.output.graph.intern_const(f64::from(last).to_bits());
        let again = self.output.graph.push_apply(body, Op::Lt, &[number, most], place);
        let iteration = |number: usize| (number / width) as u32;
        let finals = needed.iter().zip(&values).filter(|(number, _)| iteration(**number) == last);
        let finals: Vec<Node> = finals.map(|(_, &value)| value).collect();
        let passed = [again].into_iter().chain(nexts).chain(finals.iter().copied());
        self.output.graph.blocks[body].end = End::Return(passed.collect());
        for value in finals {
            let phi = self.output.graph.push_phi(region);
            self.output.set_final(value, last, phi);
        }
        let saved = |(&number, node): (&usize, Node)| Arg::Element {
            array: ArraySource::Saved(node),
            base: iteration(number),
            strides: SmallVec::new(),
        };
        needed.iter().zip(values).map(saved).collect()
    }

    /// The operands of these steps with the places of the steps.
    pub(super) fn refs(
        &self,
        steps: &[Inner],
        place: Option<PlaceId>,
    ) -> Vec<(Ref, Option<PlaceId>)> {
        let of_step = |step: &Inner| {
            let place = self.templates.place(step.template).or(place);
            step.operands.iter().map(move |&operand| (operand, place)).collect::<Vec<_>>()
        };
        steps.iter().flat_map(of_step).collect()
    }

    /// The operands of a loop body, and the values that it carries. The loop will be the next
    /// region.
    pub(super) fn operands(
        &mut self,
        times: u32,
        refs: &[(Ref, Option<PlaceId>)],
        args: &[Arg],
        block: Block,
    ) -> (Carried, Vec<Operand>) {
        let region = self.output.graph.regions.next_key();
        self.operands_by(refs, args, block, |output, operand, place| match operand {
            Ref::Rows { outer, trips } => {
                let (rows, trips) = (&args[outer as usize..], (trips, times as usize));
                output.rows_in_loop(rows, trips, region, block, place)
            }
            Ref::Own(outer) | Ref::Outer(outer) | Ref::Carried { outer, .. } => {
                let args = &args[outer as usize..][..times as usize];
                output.in_loop(args, region, block, place)
            }
        })
    }

    /// As [`Emitter::operands`]; `in_loop` gives an operand that comes from outside.
    pub(super) fn operands_by(
        &mut self,
        refs: &[(Ref, Option<PlaceId>)],
        args: &[Arg],
        block: Block,
        in_loop: impl Fn(&mut OutputGraph, Ref, Option<PlaceId>) -> Arg,
    ) -> (Carried, Vec<Operand>) {
        let mut carried = Carried::default();
        let mut operands = Vec::with_capacity(refs.len());
        for &(operand, place) in refs {
            operands.push(match operand {
                Ref::Own(number) => Operand::Own(number),
                Ref::Outer(_) | Ref::Rows { .. } => {
                    Operand::Arg(in_loop(&mut self.output, operand, place))
                }
                Ref::Carried { value, distance, outer } => {
                    let mut next = Next::Own(value);
                    let firsts = &args[outer as usize..][..distance as usize];
                    let mut entry = 0;
                    for first in firsts.iter().rev() {
                        let first = self.output.node(first, block, place);
                        entry = carried.entry(next, first);
                        next = Next::Entry(entry);
                    }
                    Operand::Entry(entry)
                }
            });
        }
        (carried, operands)
    }

    /// The next values of the entry φs.
    pub(super) fn nexts(
        &mut self,
        carried: &Carried,
        locals: &Locals,
        phis: &[Node],
        block: Block,
        place: Option<PlaceId>,
    ) -> Vec<Node> {
        let next = |next: &Next| match *next {
            Next::Own(number) => self.output.node(&locals.get(number), block, place),
            Next::Entry(entry) => phis[entry],
        };
        carried.nexts.iter().map(next).collect()
    }
}

/// An operand of a step of a loop.
pub(super) enum Operand {
    Own(u32),
    Entry(usize),
    Arg(Arg),
}

impl Operand {
    /// The operand in the new graph, with these entry φs.
    pub(super) fn arg(self, locals: &Locals, phis: &[Node]) -> Arg {
        match self {
            Operand::Own(number) => locals.get(number),
            Operand::Entry(entry) => Arg::Leaf(Leaf::Node(phis[entry])),
            Operand::Arg(arg) => arg,
        }
    }
}

/// The next value of an entry φ.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Next {
    /// An output of the steps inside.
    Own(u32),
    /// The current value of another entry φ.
    Entry(usize),
}

/// The entry φs of a loop.
#[derive(Default)]
pub(super) struct Carried {
    nexts: Vec<Next>,
    pub(super) firsts: Vec<Node>,
    known: HashMap<(Next, Node), usize>,
}

impl Carried {
    /// The entry φ with the initial value `first` and this next value.
    fn entry(&mut self, next: Next, first: Node) -> usize {
        let Carried { nexts, firsts, known } = self;
        *known.entry((next, first)).or_insert_with(|| {
            nexts.push(next);
            firsts.push(first);
            firsts.len() - 1
        })
    }
}
