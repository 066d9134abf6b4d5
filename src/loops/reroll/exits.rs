//! Emits loops with exits.

use std::rc::Rc;

use super::argument::{Arg, Leaf};
use super::emit::{Emitter, Locals, Operand};
use super::template::{Exit, Ref, Template, TemplateId};
use crate::op::Op;
use crate::ssa::{Block, End, Item, Node, PlaceId, Region};

impl Emitter<'_> {
    /// Emits the loop of this template, and returns its outputs.
    pub(super) fn emit_exit_loop(
        &mut self,
        template: TemplateId,
        args: &[Arg],
        block: Block,
    ) -> Vec<Node> {
        let templates = self.templates;
        let Template::While { times, steps, exits, last, has_flag, place } =
            templates.get(template)
        else {
            return Vec::new();
        };
        let (times, place, has_flag) = (*times, *place, *has_flag);
        let mut refs = self.refs(steps, place);
        let values = exits.iter().map(|exit| &exit.values).chain(last);
        refs.extend(values.flatten().flatten().map(|&value| (value, place)));

        let mut locals =
            Locals::new(steps.iter().map(|step| templates.outputs(step.template)).sum());
        refs.iter().for_each(|&(operand, _)| locals.need(operand));
        let (carried, operands) = self.operands(times, &refs, args, block);
        let region = self.output.graph.push_region(block, None, place);
        let phis = self.output.graph.make_loop(region, times, &carried.firsts);
        let mut operands = operands.into_iter();
        let used: usize = steps.iter().map(|step| step.operands.len()).sum();
        let of_steps: Vec<_> = operands.by_ref().take(used).collect();
        let mut of_steps = of_steps.into_iter();

        let mut here = self.output.graph.regions[region].root;
        let mut exits = exits.iter().peekable();
        let mut ended = false;
        for (at, step) in steps.iter().enumerate() {
            let args = of_steps.by_ref().take(step.operands.len());
            let args = args.map(|operand| operand.arg(&locals, &phis)).collect();
            let Some(exit) = exits.next_if(|exit| exit.at == at) else {
                self.step(step.template, args, here, &mut locals);
                continue;
            };
            let condition = self.output.node(&args[0], here, place);
            let expect = matches!(templates.get(step.template), Template::Guard { expect: true });
            let flag = has_flag.then_some(0.0);
            let values = values_of(flag, &exit.values, &mut operands, &locals, &phis);
            let is_whole = exit.seen.iter().all(|&seen| seen);
            if is_whole && last.is_none() && at + 1 == steps.len() {
                // The loop ends after each body or not, by this condition: a single leaf.
                let again = match expect {
                    true => condition,
                    false => {
                        let zero = self.output.graph.intern_const(0);
                        self.output.graph.push_apply(here, Op::Eq, &[condition, zero], place)
                    }
                };
                let nexts = self.nexts(&carried, &locals, &phis, here, place);
                self.end_leaf(here, again, nexts, &values, place);
                ended = true;
                continue;
            }
            let graph = &mut self.output.graph;
            let (then, otherwise) = (graph.new_block(), graph.new_block());
            graph.blocks[here].end = End::Branch { condition, then, otherwise };
            let (on, out) = if expect { (then, otherwise) } else { (otherwise, then) };
            if !is_whole {
                self.guard_seen(exit, region, out, place);
            }
            let no = self.output.graph.intern_const(0);
            self.end_leaf(out, no, phis.clone(), &values, place);
            here = on;
        }
        let count = templates.outputs(template);
        if !ended {
            let nexts = self.nexts(&carried, &locals, &phis, here, place);
            let (again, values) = match last {
                // Another iteration exceeds the bound, which stops the graph.
                None => (self.output.graph.intern_const(1f64.to_bits()), vec![UNUSED; count]),
                Some(last) => {
                    let most = self.output.graph.intern_const(f64::from(times - 1).to_bits());
                    let number = self.output.graph.intern_iteration(region);
                    let again = self.output.graph.push_apply(here, Op::Lt, &[number, most], place);
                    let flag = has_flag.then_some(1.0);
                    (again, values_of(flag, last, &mut operands, &locals, &phis))
                }
            };
            self.end_leaf(here, again, nexts, &values, place);
        }
        (0..count).map(|_| self.output.graph.push_phi(region)).collect()
    }

    /// Ends `block`, a leaf of a loop.
    fn end_leaf(
        &mut self,
        block: Block,
        again: Node,
        nexts: Vec<Node>,
        values: &[Arg],
        place: Option<PlaceId>,
    ) {
        let values = values.iter().map(|value| self.output.node(value, block, place));
        let values: Vec<Node> = values.collect();
        let all = core::iter::once(again).chain(nexts).chain(values);
        self.output.graph.blocks[block].end = End::Return(all.collect());
    }

    /// Guards an exit: stops the graph in iterations in which the exit was not seen.
    fn guard_seen(&mut self, exit: &Exit, region: Region, block: Block, place: Option<PlaceId>) {
        let leaf = |&seen: &bool| Leaf::Const(f64::from(u8::from(seen)).to_bits());
        let leaves: Rc<[Leaf]> = exit.seen.iter().map(leaf).collect();
        let strides = [(region, 1)].into_iter().collect();
        let condition = self.output.node(&Arg::Table { leaves, strides }, block, place);
        self.output.graph.blocks[block].items.push(Item::Guard { condition, expect: true });
    }
}

/// The value of an output that is not used after an exit.
const UNUSED: Arg = Arg::Leaf(Leaf::Const(0));

/// The outputs of the loop: the flag, if there is one, then `values` with the next operands.
fn values_of(
    flag: Option<f64>,
    values: &[Option<Ref>],
    operands: &mut impl Iterator<Item = Operand>,
    locals: &Locals,
    phis: &[Node],
) -> Vec<Arg> {
    let flag = flag.map(|flag| Arg::Leaf(Leaf::Const(flag.to_bits())));
    let value = |value: &Option<Ref>| match value {
        Some(_) => operands.next().map_or(UNUSED, |value| value.arg(locals, phis)),
        None => UNUSED,
    };
    flag.into_iter().chain(values.iter().map(value)).collect()
}
