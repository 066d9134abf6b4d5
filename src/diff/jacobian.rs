//! The Jacobian of straight-line code, all of it in one graph: forward or reverse, whichever takes
//! fewer steps, without those for structural zeros.

use crate::entity::PrimaryMap;
use crate::op::{Op, contribution};
use crate::ssa::{Builder, Def, End, Folding, Graph, Item, Node};

/// The derivatives of the outputs of `graph`, a verified graph, by its active inputs, row by row.
/// `None` if it has branches, regions, arrays or calls, or if that takes more than `most` steps.
///
/// # Examples
///
/// ```
/// use phigrad::internals::diff::jacobian;
/// use phigrad::internals::ssa::{Folding, Outcome, interpret, parse};
///
/// // (x·y, sin x)
/// let text = "graph active 2 inactive 0\nb0:\n  v2 = mul v0 v1\n  v3 = sin v0\n  return v2 v3\n";
/// let jacobian = jacobian(&parse(text)?, Folding::Real, 100).expect("straight-line code");
/// assert_eq!(interpret(&jacobian, &[0.0, 3.0]), Outcome::Values(vec![3.0, 0.0, 1.0, 0.0]));
/// # Ok::<(), phigrad::internals::ssa::ParseError>(())
/// ```
pub fn jacobian(graph: &Graph, folding: Folding, most: usize) -> Option<Graph> {
    let root = &graph.blocks[graph.root()];
    let End::Return(outputs) = &root.end else { return None };
    if !graph.arrays.is_empty() || !graph.calls.is_empty() || !graph.regions.is_empty() {
        return None;
    }
    let steps: Vec<Node> = root.items.iter().filter_map(applied).collect();
    let columns = columns(graph, &steps, most)?;
    let rows = rows(graph, &steps, outputs, &columns, most)?;
    let by_columns = work(graph, &steps, |_, arg| columns[arg].len());
    let by_rows =
        work(graph, &steps, |node, arg| if columns[arg].is_empty() { 0 } else { rows[node] });
    if by_columns.min(by_rows) > most {
        return None;
    }
    let mut pass = Copy::new(graph, folding);
    for item in &root.items {
        match *item {
            Item::Node(node) => pass.copy_step(node),
            Item::Guard { condition, expect } => {
                let condition = pass.copied(condition);
                pass.builder.guard(condition, expect);
            }
            Item::Region(_) | Item::Fill(_) | Item::Accumulate(..) | Item::Store(..) => {
                return None;
            }
        }
    }
    let derivatives = match by_columns <= by_rows {
        true => pass.forward(&steps, outputs),
        false => pass.reverse(&steps, outputs, &columns),
    };
    pass.builder.finish_block(&derivatives);
    Some(pass.builder.into_graph())
}

fn applied(item: &Item) -> Option<Node> {
    match *item {
        Item::Node(node) => Some(node),
        _ => None,
    }
}

/// The operands of a step.
fn operands(graph: &Graph, step: Node) -> &[Node] {
    graph.nodes[step].args()
}

/// The active inputs that each node depends on, in order; `None` if these are too many in all.
fn columns(graph: &Graph, steps: &[Node], most: usize) -> Option<PrimaryMap<Node, Vec<u32>>> {
    let mut columns = PrimaryMap::filled(Vec::new(), graph.nodes.len());
    let mut all = 0;
    for (node, number) in graph.input_nodes().filter(|&(_, number)| graph.is_active(number)) {
        columns[node].push(number);
    }
    for &step in steps {
        let mut union: Vec<u32> = Vec::new();
        for &arg in operands(graph, step) {
            union.extend(&columns[arg]);
        }
        union.sort_unstable();
        union.dedup();
        all += union.len();
        if all > most {
            return None;
        }
        columns[step] = union;
    }
    Some(columns)
}

/// The number of outputs that depend on each node, counting no node twice for one output.
fn rows(
    graph: &Graph,
    steps: &[Node],
    outputs: &[Node],
    columns: &PrimaryMap<Node, Vec<u32>>,
    most: usize,
) -> Option<PrimaryMap<Node, usize>> {
    let mut rows = PrimaryMap::filled(0, graph.nodes.len());
    let mut reached = PrimaryMap::filled(usize::MAX, graph.nodes.len());
    let mut visited = 0;
    for (number, &output) in outputs.iter().enumerate() {
        reached[output] = number;
        for &step in steps.iter().rev() {
            visited += 1;
            if reached[step] == number {
                rows[step] += 1;
                let args = operands(graph, step).iter();
                args.filter(|&&arg| !columns[arg].is_empty())
                    .for_each(|&arg| reached[arg] = number);
            }
        }
        // The search itself should not take long.
        if visited > most.saturating_mul(64) {
            return None;
        }
    }
    Some(rows)
}

/// The number of contributions, if `count` tells those of a step by an operand.
fn work(graph: &Graph, steps: &[Node], count: impl Fn(Node, Node) -> usize) -> usize {
    let of_step =
        |&step: &Node| operands(graph, step).iter().map(|&arg| count(step, arg)).sum::<usize>();
    steps.iter().map(of_step).sum()
}

/// The new graph: a copy of the old one, to which derivatives are appended.
struct Copy<'a> {
    graph: &'a Graph,
    builder: Builder,
    copy: PrimaryMap<Node, Option<Node>>,
}

impl<'a> Copy<'a> {
    fn new(graph: &'a Graph, folding: Folding) -> Self {
        let copy = PrimaryMap::filled(None, graph.nodes.len());
        Copy { graph, builder: Builder::of(graph, folding), copy }
    }

    fn copy_step(&mut self, node: Node) {
        self.builder.set_place(self.graph.nodes[node].place);
        if let Def::Apply(op, args) = self.graph.nodes[node].def {
            let args = args.map(|arg| self.copied(arg));
            self.copy[node] = Some(self.builder.apply(op, &args[..op.arity()]));
        }
    }

    fn copied(&mut self, node: Node) -> Node {
        if let Some(copy) = self.copy[node] {
            return copy;
        }
        match self.graph.nodes[node].def {
            Def::Input(number) => self.builder.input(number as usize),
            Def::Const(bits) => self.builder.constant(f64::from_bits(bits)),
            // A verified graph computes operands before their uses.
            _ => self.builder.constant(f64::NAN),
        }
    }

    /// The contribution of `step` by one of its operands: to the derivative of the step if
    /// `factor` is that of the operand, to the adjoint of the operand if it is that of the step.
    fn part(&mut self, step: Node, operand: usize, factor: Node) -> Option<Node> {
        let Def::Apply(op, args) = self.graph.nodes[step].def else { return None };
        self.builder.set_place(self.graph.nodes[step].place);
        let (x, y) = (args.map(|arg| self.copied(arg)), self.copied(step));
        contribution(&mut self.builder, op, operand, x, y, factor)
    }

    fn add(&mut self, to: &mut Option<Node>, part: Node) {
        *to = Some(match *to {
            Some(sum) => self.builder.apply(Op::Add, &[sum, part]),
            None => part,
        });
    }

    /// The derivatives of all steps by the inputs that they depend on.
    fn forward(&mut self, steps: &[Node], outputs: &[Node]) -> Vec<Node> {
        let (zero, one) = (self.builder.constant(0.0), self.builder.constant(1.0));
        let mut derivatives: PrimaryMap<Node, Vec<(u32, Node)>> =
            PrimaryMap::filled(Vec::new(), self.graph.nodes.len());
        for (node, number) in self.graph.input_nodes() {
            if self.graph.is_active(number) {
                derivatives[node].push((number, one));
            }
        }
        for &step in steps {
            let mut sums: Vec<(u32, Option<Node>)> = Vec::new();
            for (operand, &arg) in operands(self.graph, step).iter().enumerate() {
                for (column, factor) in derivatives[arg].clone() {
                    let Some(part) = self.part(step, operand, factor) else { continue };
                    let at = match sums.binary_search_by_key(&column, |&(column, _)| column) {
                        Ok(at) => at,
                        Err(at) => {
                            sums.insert(at, (column, None));
                            at
                        }
                    };
                    self.add(&mut sums[at].1, part);
                }
            }
            derivatives[step] =
                sums.into_iter().filter_map(|(column, sum)| Some((column, sum?))).collect();
        }
        let mut all = Vec::with_capacity(outputs.len() * self.graph.active);
        for &output in outputs {
            let row = all.len();
            all.resize(row + self.graph.active, zero);
            for &(column, derivative) in &derivatives[output] {
                all[row + column as usize] = derivative;
            }
        }
        all
    }

    /// The adjoints of the active inputs for each output.
    fn reverse(
        &mut self,
        steps: &[Node],
        outputs: &[Node],
        columns: &PrimaryMap<Node, Vec<u32>>,
    ) -> Vec<Node> {
        let (zero, one) = (self.builder.constant(0.0), self.builder.constant(1.0));
        let mut all = Vec::with_capacity(outputs.len() * self.graph.active);
        let mut adjoints: PrimaryMap<Node, Option<Node>> =
            PrimaryMap::filled(None, self.graph.nodes.len());
        for &output in outputs {
            adjoints[output] = Some(one);
            for &step in steps.iter().rev() {
                let Some(factor) = adjoints[step].take() else { continue };
                for (operand, &arg) in operands(self.graph, step).iter().enumerate() {
                    if columns[arg].is_empty() {
                        continue;
                    }
                    if let Some(part) = self.part(step, operand, factor) {
                        let mut sum = adjoints[arg];
                        self.add(&mut sum, part);
                        adjoints[arg] = sum;
                    }
                }
            }
            // A constant output.
            adjoints[output] = adjoints[output].filter(|_| !columns[output].is_empty());
            let row = all.len();
            all.resize(row + self.graph.active, zero);
            for (node, number) in self.graph.input_nodes() {
                if let Some(adjoint) = adjoints[node].take()
                    && self.graph.is_active(number)
                {
                    all[row + number as usize] = adjoint;
                }
            }
        }
        all
    }
}
