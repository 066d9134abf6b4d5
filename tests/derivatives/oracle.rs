//! Two oracles for gradients of graphs, which share nothing with `diff`: dual numbers along the
//! trace of a run, and, bit for bit, a reverse sweep over that trace, as on the tape. φs of
//! regions are copies in the trace; entry φs, φs of loops and elements are aliases of other
//! entries, or copies, too.

use crate::common::outcomes::outputs;
use phigrad::check::same;
use phigrad::internals::diff::{Checkpointed, Wanted, checkpoint, reordered, reverse};
use phigrad::internals::entity::PrimaryMap;
use phigrad::internals::op::{Numbers, Op, contribution, eval};
use phigrad::internals::ssa::{
    Access, ArrayData, Block, Def, End, Folding, Graph, Item, Nest, Node, Region, simplify, verify,
};

/// The computation of an entry of the trace from earlier entries.
#[derive(Clone, Copy)]
enum Step {
    Leaf,
    Copy(usize),
    Apply(Op, [usize; 3]),
}

/// One run of a graph: its trace.
struct Run<'a> {
    graph: &'a Graph,
    /// True if entry φs, φs of loops and elements have no entries of their own.
    aliases: bool,
    steps: Vec<(Step, f64)>,
    /// The latest entry of each node.
    latest: PrimaryMap<Node, usize>,
    /// The entries of all nodes in each iteration of the latest run of each loop.
    past: PrimaryMap<Region, Vec<PrimaryMap<Node, usize>>>,
    iterations: PrimaryMap<Region, u32>,
    nest: Nest,
    outputs: Vec<usize>,
}

impl<'a> Run<'a> {
    /// Runs `graph`; `None` where it stops.
    fn of(graph: &'a Graph, inputs: &[f64], aliases: bool) -> Option<Run<'a>> {
        let mut run = Run {
            graph,
            aliases,
            steps: Vec::new(),
            latest: PrimaryMap::filled(usize::MAX, graph.nodes.len()),
            past: PrimaryMap::filled(Vec::new(), graph.regions.len()),
            iterations: PrimaryMap::filled(0, graph.regions.len()),
            nest: Nest::of(graph),
            outputs: Vec::new(),
        };
        // The first entries are the inputs.
        run.steps.extend(inputs.iter().map(|&value| (Step::Leaf, value)));
        for (node, data) in graph.nodes.iter() {
            match data.def {
                Def::Input(number) => run.latest[node] = number as usize,
                Def::Const(bits) => run.define(node, Step::Leaf, f64::from_bits(bits)),
                _ => {}
            }
        }
        run.outputs = run.tree(graph.root())?;
        Some(run)
    }

    fn define(&mut self, node: Node, step: Step, value: f64) {
        self.latest[node] = self.steps.len();
        self.steps.push((step, value));
    }

    fn copy(&mut self, node: Node, from: usize) {
        let value = self.steps[from].1;
        self.define(node, Step::Copy(from), value);
    }

    /// Makes `node` an alias of the entry `from`.
    fn alias(&mut self, node: Node, from: usize) {
        match self.aliases {
            true => self.latest[node] = from,
            false => self.copy(node, from),
        }
    }

    fn value(&self, node: Node) -> f64 {
        self.steps[self.latest[node]].1
    }

    /// Runs the tree of `block`; returns the entries that its end returns.
    fn tree(&mut self, mut block: Block) -> Option<Vec<usize>> {
        loop {
            for &item in &self.graph.blocks[block].items {
                match item {
                    Item::Node(node) => self.compute(node),
                    Item::Guard { condition, expect } => {
                        if (self.value(condition) != 0.0) != expect {
                            return None;
                        }
                    }
                    Item::Region(region) => self.region(region)?,
                    Item::Fill(_) | Item::Accumulate(..) | Item::Store(..) => panic!("sums"),
                }
            }
            match &self.graph.blocks[block].end {
                &End::Branch { condition, then, otherwise } => {
                    block = if self.value(condition) != 0.0 { then } else { otherwise };
                }
                End::Return(passed) => {
                    return Some(passed.iter().map(|&node| self.latest[node]).collect());
                }
                End::Open => panic!("{block} is open"),
            }
        }
    }

    fn compute(&mut self, node: Node) {
        match self.graph.nodes[node].def {
            Def::Apply(op, args) => {
                let args = args.map(|arg| self.latest[arg]);
                let value = eval(op, args.map(|arg| self.steps[arg].1));
                self.define(node, Step::Apply(op, args), value);
            }
            Def::Element(access) => match self.element(access) {
                Ok(from) => self.alias(node, from),
                Err(constant) => self.define(node, Step::Leaf, constant),
            },
            other => panic!("{other:?}"),
        }
    }

    /// The entry, or the constant, of an element.
    fn element(&self, access: Access) -> Result<usize, f64> {
        let data = &self.graph.accesses[access];
        let mut index = i64::from(data.base);
        for &(region, stride) in &data.strides {
            index += i64::from(stride) * i64::from(self.iterations[region]);
        }
        let index = usize::try_from(index).unwrap();
        match &self.graph.arrays[data.array] {
            ArrayData::Constants(numbers) => Err(f64::from_bits(numbers[index])),
            &ArrayData::Inputs { first, .. } => Ok(first as usize + index),
            ArrayData::Nodes(nodes) => Ok(self.latest[nodes[index]]),
            ArrayData::Saved(node) => {
                let iterations = &self.past[self.nest.node_loop(*node).unwrap()];
                iterations.get(index).map(|latest| latest[*node]).ok_or(f64::NAN)
            }
            ArrayData::Sums(_) | ArrayData::Outputs { .. } | ArrayData::Cells(_) => panic!("sums"),
        }
    }

    fn region(&mut self, region: Region) -> Option<()> {
        let data = &self.graph.regions[region];
        assert!(data.replays.is_none());
        let mut nexts: Vec<usize> =
            self.graph.entries(region).iter().map(|entry| self.latest[entry.first]).collect();
        let values = match &data.cycle {
            None => self.tree(data.root)?,
            Some(cycle) => {
                self.past[region].clear();
                let mut number = 0;
                loop {
                    self.iterations[region] = number;
                    for (node, data) in self.graph.nodes.iter() {
                        if data.def == Def::Iteration(region) {
                            self.define(node, Step::Leaf, f64::from(number));
                        }
                    }
                    for (entry, &next) in cycle.entries.iter().zip(&nexts) {
                        self.alias(entry.phi, next);
                    }
                    let mut passed = self.tree(data.root)?;
                    self.past[region].push(self.latest.clone());
                    let mut rest = passed.split_off(1);
                    let values = rest.split_off(nexts.len());
                    if self.steps[passed[0]].1 == 0.0 {
                        break values;
                    }
                    number += 1;
                    if number >= cycle.bound {
                        return None;
                    }
                    nexts = rest;
                }
            }
        };
        for (&phi, value) in data.phis.iter().zip(values) {
            match data.cycle {
                Some(_) => self.alias(phi, value),
                None => self.copy(phi, value),
            }
        }
        Some(())
    }

    /// The gradient of the first output, then its value, as the tape computes them.
    fn sweep(&self) -> Vec<f64> {
        let mut adjoints = vec![0.0; self.steps.len()];
        adjoints[self.outputs[0]] = 1.0;
        for (index, &(step, value)) in self.steps.iter().enumerate().rev() {
            let adjoint: f64 = adjoints[index];
            match step {
                _ if adjoint == 0.0 => {}
                Step::Leaf => {}
                Step::Copy(from) => adjoints[from] += adjoint,
                Step::Apply(op, args) => {
                    let x = args.map(|arg| self.steps[arg].1);
                    for (operand, &arg) in args.iter().enumerate().take(op.arity()) {
                        let passed = contribution(&mut Numbers, op, operand, x, value, adjoint);
                        adjoints[arg] += passed.unwrap_or(0.0);
                    }
                }
            }
        }
        let gradient = (0..self.graph.active).map(|i| adjoints[i]);
        gradient.chain([self.steps[self.outputs[0]].1]).collect()
    }

    /// The derivative of the first output along the active input `index`, and the sum of the
    /// absolute values of all terms, which scales rounding errors.
    fn forward(&self, index: usize) -> (f64, f64) {
        let mut tangents = vec![(0.0, 0.0); self.steps.len()];
        tangents[index] = (1.0, 1.0);
        for (at, &(step, value)) in self.steps.iter().enumerate() {
            match step {
                Step::Leaf => {}
                Step::Copy(from) => tangents[at] = tangents[from],
                Step::Apply(op, args) => {
                    let x = args.map(|arg| self.steps[arg].1);
                    for (operand, &arg) in args.iter().enumerate().take(op.arity()) {
                        let partial = contribution(&mut Numbers, op, operand, x, value, 1.0);
                        let (partial, tangent): (f64, (f64, f64)) =
                            (partial.unwrap_or(0.0), tangents[arg]);
                        tangents[at].0 += partial * tangent.0;
                        tangents[at].1 += partial.abs() * tangent.1;
                    }
                }
            }
        }
        tangents[self.outputs[0]]
    }
}

/// Compares the gradient graphs of `graph`, also after simplification, with the oracles at
/// `inputs`: bit for bit in the order of the tape, and, where aliases are copies, if `bits`.
/// True if there was a finite gradient to compare.
pub fn check(graph: &Graph, inputs: &[f64], bits: bool) -> bool {
    assert_eq!(verify(graph), Ok(()), "{graph}");
    let in_order = reordered(graph).is_empty();
    let run = Run::of(graph, inputs, in_order);
    for folding in [Folding::Exact, Folding::Real] {
        let gradient = reverse(graph, Wanted::GradientAndValue, folding);
        if let Err(error) = verify(&gradient) {
            panic!("{error} in\n{gradient}of\n{graph}");
        }
        let found = outputs(&gradient, inputs);
        let simple = simplify(&gradient, Folding::Exact);
        assert_eq!(verify(&simple), Ok(()), "{simple}of\n{gradient}");
        let again = outputs(&simple, inputs);
        let bits_of = |values: &Option<Vec<f64>>| {
            values.as_ref().map(|values| values.iter().map(|v| v.to_bits()).collect::<Vec<u64>>())
        };
        if found.iter().flatten().all(|value| !value.is_nan()) {
            assert_eq!(bits_of(&found), bits_of(&again), "{simple}of\n{gradient}");
        }
        assert_eq!(found.is_some(), run.is_some(), "at {inputs:?} of\n{graph}");
        let (Some(found), Some(run)) = (found, &run) else { continue };
        // Zero times an infinite partial is NaN in a graph, and skipped by a sweep.
        if !run.steps.iter().all(|&(_, value)| value.abs() < 1e100) {
            return false;
        }
        for index in 0..graph.active {
            let (derivative, scale) = run.forward(index);
            let error = (found[index] - derivative).abs();
            let say = || format!("{found:?} for {derivative} (input {index}), {folding:?}");
            assert!(error <= 1e-11 * scale, "{} at {inputs:?} of\n{graph}\n{gradient}", say());
        }
        if folding == Folding::Exact && (in_order || bits) {
            let expected = run.sweep();
            let agree = found.iter().zip(&expected).all(|(&a, &b)| same(a, b));
            assert!(agree, "{found:?} for {expected:?} at {inputs:?} of\n{graph}\n{gradient}");
        }
    }
    run.is_some()
}

/// Compares the gradients of `graph` at `inputs` with those from less and less memory, as far as
/// checkpoints go: bit for bit with [`Folding::Exact`]. Returns the number of comparisons.
#[allow(dead_code)] // Some graphs have no loops.
pub fn check_checkpoints(graph: &Graph, inputs: &[f64]) -> usize {
    let mut compared = 0;
    for folding in [Folding::Exact, Folding::Real] {
        let plain = outputs(&reverse(graph, Wanted::GradientAndValue, folding), inputs);
        let mut checkpointed = Checkpointed::new(graph);
        while let Some(next) = checkpoint(&checkpointed) {
            checkpointed = next;
            assert_eq!(verify(&checkpointed.graph), Ok(()), "{}of\n{graph}", checkpointed.graph);
            let gradient = checkpointed.reverse(Wanted::GradientAndValue, folding);
            for gradient in [&gradient, &simplify(&gradient, folding)] {
                if let Err(error) = verify(gradient) {
                    panic!("{error} in\n{gradient}of\n{}", checkpointed.graph);
                }
                let found = outputs(gradient, inputs);
                assert_eq!(found.is_some(), plain.is_some(), "{gradient}of\n{graph}");
                let values = plain.iter().flatten().zip(found.iter().flatten());
                let agree = |(&a, &b): (&f64, &f64)| match folding {
                    Folding::Exact => same(a, b),
                    Folding::Real => (a - b).abs() <= 1e-9 * (1.0 + a.abs()),
                };
                let finite = plain.iter().flatten().all(|value| value.abs() < 1e50);
                let agree = !finite || { values }.all(agree);
                assert!(agree, "{found:?} for {plain:?} in {gradient}of\n{graph}");
                compared += usize::from(finite && plain.is_some());
            }
        }
    }
    compared
}
