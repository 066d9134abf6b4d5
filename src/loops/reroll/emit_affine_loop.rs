//! Emits inner loops whose trip count changes with the loop around: rows of operands as array
//! accesses that are affine in both iteration numbers, and the trip count as a node.

use smallvec::SmallVec;

use super::argument::{Arg, Leaf, OutputGraph, place, strides_of};
use super::emit::{Args, Emitter, Locals, Operand};
use super::non_rectangular::Trips;
use super::template::{Ref, Template, TemplateId};
use crate::op::Op;
use crate::ssa::{Block, End, Node, PlaceId, Region};

/// An operand of an inner loop in the new graph, before that loop is known.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Row {
    /// The operand in the first iteration of the inner loop.
    first: Box<Arg>,
    /// The change of its index from one iteration to the next.
    by: i32,
}

impl OutputGraph {
    /// The operand whose rows are `args`, one row after the other, in iteration i of `outside`, a
    /// loop that will be appended to `block`.
    pub(super) fn rows_in_loop(
        &mut self,
        args: &[Arg],
        (trips, times): (Trips, usize),
        outside: Region,
        block: Block,
        place: Option<PlaceId>,
    ) -> Arg {
        let mut starts = Vec::with_capacity(times);
        let mut at = 0;
        for iteration in 0..times {
            starts.push(at);
            at += trips.at(iteration);
        }
        let rows = || starts.iter().enumerate().map(|(i, &start)| &args[start..][..trips.at(i)]);
        if rows().all(|row| row.iter().all(|arg| *arg == row[0])) {
            let firsts: Vec<Arg> = rows().map(|row| row[0].clone()).collect();
            return self.in_loop(&firsts, outside, block, place);
        }
        self.progression(rows(), outside)
            .or_else(|| padded_table(rows(), outside))
            .unwrap_or(Arg::Missing)
    }

    /// The access, if `rows` are elements of one array whose index is affine in both iteration
    /// numbers.
    fn progression<'a>(
        &self,
        rows: impl Iterator<Item = &'a [Arg]> + Clone,
        outside: Region,
    ) -> Option<Arg> {
        let index = |arg: &Arg| place(arg, &self.graph);
        let mut firsts = rows.clone();
        let (first, second) = (firsts.next()?, firsts.next()?);
        let (array, base) = index(first.first()?)?;
        let by_inner = index(first.get(1)?)?.1 - base;
        let by_outer = index(second.first()?)?.1 - base;
        let like = strides_of(&first[0]);
        let fits = |(i, row): (i64, &[Arg])| {
            row.iter().zip(0..).all(|(arg, j): (&Arg, i64)| {
                index(arg) == Some((array, base + by_outer * i + by_inner * j))
                    && strides_of(arg) == like
            })
        };
        if !(0..).zip(rows).all(fits) {
            return None;
        }
        let mut strides: SmallVec<[(Region, i32); 2]> = like.into();
        strides.push((outside, i32::try_from(by_outer).ok()?));
        let element = Arg::Element { array, base: u32::try_from(base).ok()?, strides };
        let by = i32::try_from(by_inner).ok()?;
        Some(Arg::Row(Row { first: Box::new(element), by }))
    }
}

/// The table of `rows`, which are constants; shorter rows are padded.
fn padded_table<'a>(rows: impl Iterator<Item = &'a [Arg]> + Clone, outside: Region) -> Option<Arg> {
    let width = rows.clone().map(<[Arg]>::len).max()?;
    let mut leaves = Vec::new();
    for row in rows {
        let constants = row.iter().map(|arg| match arg {
            &Arg::Leaf(leaf @ Leaf::Const(_)) => Some(leaf),
            _ => None,
        });
        let constants: Option<Vec<Leaf>> = constants.collect();
        let constants = constants?;
        let last = *constants.last()?;
        leaves.extend(constants.into_iter().chain(core::iter::repeat(last)).take(width));
    }
    let strides = [(outside, i32::try_from(width).ok()?)].into_iter().collect();
    let table = Arg::Table { leaves: leaves.into(), strides };
    Some(Arg::Row(Row { first: Box::new(table), by: 1 }))
}

impl Row {
    /// The operand of a step in `inside`.
    pub(super) fn operand(arg: &Arg, inside: Region) -> Arg {
        match arg {
            Arg::Row(row) => row.clone().in_loop(inside),
            other => other.clone(),
        }
    }

    /// The operand in `inside`, the inner loop.
    fn in_loop(self, inside: Region) -> Arg {
        let Row { first, by } = self;
        match *first {
            Arg::Element { array, base, mut strides } => {
                strides.push((inside, by));
                Arg::Element { array, base, strides }
            }
            Arg::Table { leaves, mut strides } => {
                strides.push((inside, by));
                Arg::Table { leaves, strides }
            }
            other => other,
        }
    }
}

impl Emitter<'_> {
    /// Emits an inner loop of iterations of `around`, which will run at most `times` times.
    pub(super) fn emit_affine_loop(
        &mut self,
        template: TemplateId,
        args: Args,
        (around, times): (Region, u32),
        block: Block,
        locals: &mut Locals,
    ) {
        let Template::AffineLoop { trips, steps, place } = self.templates.get(template) else {
            return;
        };
        let (trips, place) = (*trips, *place);
        let most = trips.at(0).max(trips.at(times.saturating_sub(1) as usize)) as u32;
        let width = steps.iter().map(|step| self.templates.outputs(step.template)).sum();
        let mut inner = Locals::new(width);
        steps.iter().flat_map(|step| &step.operands).for_each(|&operand| inner.need(operand));
        let needed: Vec<usize> = (0..width).filter(|&number| locals.is_needed(number)).collect();
        needed.iter().for_each(|&number| inner.need(Ref::Own(number as u32)));
        let last = self.last_iteration(trips, around, block, place);
        // Initial values first: they are steps before the loop.
        let region = self.output.graph.regions.next_key();
        let row = |_: &mut OutputGraph, operand: Ref, _| match operand {
            Ref::Outer(outer) => Row::operand(&args[outer as usize], region),
            _ => Arg::Missing,
        };
        let (carried, operands) = self.operands_by(&self.refs(steps, place), &args, block, row);
        let pushed = self.output.graph.push_region(block, None, place);
        debug_assert_eq!(region, pushed);
        let phis = self.output.graph.make_loop(region, most, &carried.firsts);
        let number = self.output.graph.intern_iteration(region);
        let body = self.output.graph.regions[region].root;
        let mut operands = operands.into_iter();
        for step in steps {
            let args = operands.by_ref().take(step.operands.len());
            let args = args.map(|operand: Operand| operand.arg(&inner, &phis)).collect();
            self.step(step.template, args, body, &mut inner);
        }
        let nexts = self.nexts(&carried, &inner, &phis, body, place);
        let values: Vec<Node> = needed
            .iter()
            .map(|&number| self.output.node(&inner.get(number as u32), body, place))
            .collect();
        let again = self.output.graph.push_apply(body, Op::Lt, &[number, last], place);
        let passed = [again].into_iter().chain(nexts).chain(values);
        self.output.graph.blocks[body].end = End::Return(passed.collect());
        let outputs = needed
            .into_iter()
            .map(|number| (number, Arg::Leaf(Leaf::Node(self.output.graph.push_phi(region)))));
        let outputs: Vec<(usize, Arg)> = outputs.collect();
        locals.define_some(width, outputs);
    }

    /// The number of the last iteration of an inner loop, as a node of `block`, in `around`.
    fn last_iteration(
        &mut self,
        Trips { first, by }: Trips,
        around: Region,
        block: Block,
        place: Option<PlaceId>,
    ) -> Node {
        let graph = &mut self.output.graph;
        let number = graph.intern_iteration(around);
        let multiple = match by {
            1 => number,
            _ => {
                let by = graph.intern_const(f64::from(by).to_bits());
                graph.push_apply(block, Op::Mul, &[number, by], place)
            }
        };
        let first = graph.intern_const((f64::from(first) - 1.0).to_bits());
        graph.push_apply(block, Op::Add, &[multiple, first], place)
    }
}
