//! Lengths: roots of sums of squares, which neither overflow nor vanish on the way.
//!
//! The squares of 1e200 and 1e-200 are no numbers of use, although √(x² + y²) is one, and
//! so are its derivatives, which are quotients by it. So the root of a sum of squares
//! becomes a region: where the sum is of a usual size it is the root of that, all bits
//! kept; otherwise what is squared is scaled by a power of two before, and the root back.
//! A call pays a comparison that always comes out the same way, and one branch.
//!
//! A sum with a constant is never tiny, and only numbers that hardly any program has
//! overflow. So a kernel need not have code for them: it leaves where they do.

use hashbrown::HashMap;
use smallvec::SmallVec;

use crate::entity::Array;
use crate::op::Op;
use crate::ssa::{
    Builder, Def, Flow, Folding, Graph, Node, SeriesData, decisive_nodes_but, for_each_use, rebuild,
};

/// Sums from here on have all digits: a square that vanishes beside it is no part of it.
const LEAST: f64 = f64::from_bits((1023 - 960) << 52);
/// Squares of numbers from a sum below [`LEAST`] times this are neither tiny nor huge, and
/// those of numbers from a sum that overflows, times its reciprocal.
const SCALE: f64 = f64::from_bits((1023 + 600) << 52);
/// Sums from the reciprocal of this on are scaled down.
const PER_HUGE: f64 = f64::from_bits((1023 - 1020) << 52);
/// A constant up to this is no part of a sum that overflows.
const LARGEST_CONSTANT: f64 = 1e270;
/// Of longer sums there is one in a program, and it is written as a loop.
const MOST_SQUARES: usize = 8;

/// In code with more lengths than this whose sums may be tiny the branches, and the blocks that
/// they begin, would take a fifth of its time, and double that of compiling it.
const MOST_LENGTHS: usize = 64;

/// What is added up under a root.
struct Sum {
    /// What is squared, in the order of the program.
    squared: SmallVec<[Node; MOST_SQUARES]>,
    constants: SmallVec<[f64; 2]>,
}

impl Sum {
    fn is_never_tiny(&self) -> bool {
        self.constants.iter().any(|&constant| constant >= LEAST)
    }
}

/// The graph with roots of sums of squares, and of constants, that are right also where the
/// sum overflows or vanishes; for graphs that are not differentiated any more. Everywhere
/// else values keep their bits, and so do derivatives, but for those that are divided by a
/// length more than once, which are rounded in another order. What decides something stays as
/// it is, and so do a sum that is used by something else, too, and more than 64 lengths of sums
/// that may be tiny.
///
/// # Examples
///
/// ```
/// use phigrad::phi::scale_lengths;
/// use phigrad::ssa::{Outcome, interpret, parse};
///
/// let text = "graph active 2 inactive 0\nb0:\n  v2 = mul v0 v0\n  v3 = mul v1 v1\n  \
///             v4 = add v2 v3\n  v5 = sqrt v4\n  return v5\n";
/// let scaled = scale_lengths(&parse(text)?);
/// let huge = 2f64.powi(700);
/// let length = interpret(&scaled, &[3.0 * huge, 4.0 * huge]);
/// assert_eq!(length, Outcome::Values(vec![5.0 * huge]));
/// # Ok::<(), phigrad::ssa::ParseError>(())
/// ```
pub fn scale_lengths(graph: &Graph) -> Graph {
    match Lengths::of(graph) {
        Some(lengths) => lengths.rewritten(|_| true).graph,
        None => graph.clone(),
    }
}

/// A graph that comes to what it should as long as some of its nodes are finite.
#[derive(Debug)]
pub struct InRange {
    /// The graph.
    pub graph: Graph,
    /// Those nodes, which are never negative, in order.
    pub finite: Vec<Node>,
}

/// As [`scale_lengths`], but lengths with a constant under the root that keeps the sum from being
/// tiny stay as they are: the sums must be finite, otherwise what [`scale_lengths`] makes tells the
/// values.
///
/// # Examples
///
/// ```
/// use phigrad::phi::lengths_in_range;
///
/// let text = "graph active 1 inactive 0\nv1 = const 9.0\nb0:\n  v2 = mul v0 v0\n  \
///             v3 = add v2 v1\n  v4 = sqrt v3\n  return v4\n";
/// let graph = phigrad::ssa::parse(text)?;
/// let in_range = lengths_in_range(&graph);
/// assert_eq!(in_range.graph, graph);
/// assert_eq!(in_range.finite.len(), 1);
/// # Ok::<(), phigrad::ssa::ParseError>(())
/// ```
pub fn lengths_in_range(graph: &Graph) -> InRange {
    let Some(lengths) = Lengths::of(graph) else {
        return InRange { graph: graph.clone(), finite: Vec::new() };
    };
    let is_scaled = |sum: &Sum| !sum.is_never_tiny();
    if lengths.sums.values().any(is_scaled) || lengths.have_shares() {
        return lengths.rewritten(is_scaled);
    }
    let of_lengths = graph.nodes.keys().filter(|length| lengths.sums.contains_key(length));
    let finite = of_lengths.filter_map(|length| root(graph, length));
    InRange { graph: graph.clone(), finite: computed(graph, finite.collect()) }
}

/// Those of `nodes` that are computed, in order: a constant is what it is on the tape.
fn computed(graph: &Graph, mut nodes: Vec<Node>) -> Vec<Node> {
    nodes.retain(|&node| matches!(graph.nodes[node].def, Def::Apply(..)));
    nodes.sort_unstable();
    nodes
}

/// What `node` is the root of.
fn root(graph: &Graph, node: Node) -> Option<Node> {
    match graph.nodes[node].def {
        Def::Apply(Op::Sqrt, [sum, ..]) => Some(sum),
        _ => None,
    }
}

/// The lengths of a graph, with what is squared in each.
struct Lengths<'a> {
    graph: &'a Graph,
    sums: HashMap<Node, Sum>,
}

/// What the derivative by a part of a length is: the adjoint of the length times the part
/// over the length, and perhaps what it is added to.
struct Share {
    adjoint: Node,
    part: Node,
    length: Node,
    rest: Option<Node>,
}

impl<'a> Lengths<'a> {
    /// Those of `graph`, if there are any and not too many.
    fn of(graph: &'a Graph) -> Option<Lengths<'a>> {
        if !graph.nodes.keys().any(|node| root(graph, node).is_some()) {
            return None;
        }
        let mut uses = Array::filled(0u32, graph.nodes.len());
        graph.nodes.values().flat_map(|data| data.args()).for_each(|&arg| uses[arg] += 1);
        for_each_use(graph, |node| uses[node] += 1);
        let decisive = decisive_nodes_but(graph, &Flow::of(graph), |op, _| is_continuous(op));
        let found = graph.nodes.keys().filter(|&node| !decisive[node]).filter_map(|node| {
            let under = root(graph, node).filter(|&under| uses[under] == 1)?;
            Some((node, sum(graph, &uses, under)?))
        });
        let mut sums: HashMap<Node, Sum> = found.collect();
        if sums.values().filter(|sum| !sum.is_never_tiny()).count() > MOST_LENGTHS {
            sums.retain(|_, sum| sum.is_never_tiny());
        }
        (!sums.is_empty()).then_some(Lengths { graph, sums })
    }

    /// The graph with those lengths scaled for which `is_scaled` holds.
    fn rewritten(&self, is_scaled: impl Fn(&Sum) -> bool) -> InRange {
        let mut finite = Vec::new();
        let graph = rebuild(self.graph, Folding::Real, |rebuild, node| {
            if let (Some(sum), Some(under)) = (self.sums.get(&node), root(self.graph, node)) {
                let plain = rebuild.copied(under);
                if !is_scaled(sum) {
                    finite.push(plain);
                    return None;
                }
                let squared: SmallVec<[Node; MOST_SQUARES]> =
                    sum.squared.iter().map(|&node| rebuild.copied(node)).collect();
                return Some(length(&mut rebuild.builder, plain, &squared, sum));
            }
            let Share { adjoint, part, length, rest } = self.share(node)?;
            let [adjoint, part, length] = [adjoint, part, length].map(|node| rebuild.copied(node));
            let rest = rest.map(|node| rebuild.copied(node));
            let builder = &mut rebuild.builder;
            let share = builder.apply(Op::Div, &[part, length]);
            Some(match rest {
                Some(rest) => builder.apply(Op::MulAdd, &[share, adjoint, rest]),
                None => builder.apply(Op::Mul, &[share, adjoint]),
            })
        });
        let finite = computed(&graph, finite);
        InRange { graph, finite }
    }

    fn have_shares(&self) -> bool {
        self.graph.nodes.keys().any(|node| self.share(node).is_some())
    }

    /// What `node` is, or was in another iteration.
    fn origin(&self, node: Node) -> Node {
        match self.graph.nodes[node].def {
            Def::Element(access) => match self.graph.series[self.graph.accesses[access].series] {
                SeriesData::History(past) => past,
                _ => node,
            },
            _ => node,
        }
    }

    /// What `node` is twice, or itself.
    fn undoubled(&self, node: Node) -> Node {
        match self.graph.nodes[node].def {
            Def::Apply(Op::Mul, [x, two, _]) if self.graph.constant(two) == Some(2.0) => x,
            Def::Apply(Op::Mul, [two, x, _]) if self.graph.constant(two) == Some(2.0) => x,
            Def::Apply(Op::Add, [x, y, _]) if x == y => x,
            _ => node,
        }
    }

    /// What is divided by a length, and that.
    fn quotient(&self, node: Node) -> Option<(Node, Node)> {
        let is_length = |node: Node| self.sums.contains_key(&self.origin(node));
        match self.graph.nodes[node].def {
            Def::Apply(Op::Div, [a, b, _]) => is_length(b).then_some((a, b)),
            Def::Apply(Op::Mul, [a, b, _]) => {
                let recip = |node: Node| match self.graph.nodes[node].def {
                    Def::Apply(Op::Recip, [b, ..]) if is_length(b) => Some(b),
                    _ => None,
                };
                let first = recip(a).map(|length| (b, length));
                first.or_else(|| recip(b).map(|length| (a, length)))
            }
            _ => None,
        }
    }

    /// Whether `node` is the adjoint of `length` times a part of it, over it, where the
    /// adjoint has been divided by the length already: divided once more it may vanish or
    /// overflow, although the product does not.
    fn share(&self, node: Node) -> Option<Share> {
        let (a, b, rest) = match self.graph.nodes[node].def {
            Def::Apply(Op::Mul, [a, b, _]) => (a, b, None),
            Def::Apply(Op::MulAdd, [a, b, rest]) => (a, b, Some(rest)),
            _ => return None,
        };
        [(a, b), (b, a)].into_iter().find_map(|(quotient, part)| {
            let (adjoint, length) = self.quotient(quotient)?;
            let sum = self.sums.get(&self.origin(length))?;
            let is_part = sum.squared.contains(&self.origin(self.undoubled(part)));
            let is_share = is_part && self.is_divided(adjoint, self.origin(length));
            is_share.then_some(Share { adjoint, part, length, rest })
        })
    }

    /// Whether `node` is computed from a quotient by `length`, not far away.
    fn is_divided(&self, node: Node, length: Node) -> bool {
        /// How many steps are looked at.
        const MOST_STEPS: usize = 32;
        let mut pending: SmallVec<[Node; 16]> = smallvec::smallvec![node];
        for _ in 0..MOST_STEPS {
            let Some(node) = pending.pop() else { return false };
            let data = &self.graph.nodes[node];
            match data.def {
                Def::Apply(Op::Div, [_, by, _]) | Def::Apply(Op::Recip, [by, ..])
                    if self.origin(by) == length =>
                {
                    return true;
                }
                _ => data.args().iter().for_each(|&arg| pending.push(arg)),
            }
        }
        false
    }
}

/// Whether what is singular about `op` is no jump, so that a better number is one of the
/// same function.
fn is_continuous(op: Op) -> bool {
    let is_root = matches!(op, Op::Sqrt | Op::Cbrt | Op::Hypot | Op::Powi | Op::Powf);
    let is_logarithm = matches!(op, Op::Ln | Op::Ln1p | Op::Log2 | Op::Log10);
    let is_inverse = matches!(op, Op::Asin | Op::Acos | Op::Acosh | Op::Atanh | Op::Atan2);
    is_root || is_logarithm || is_inverse || matches!(op, Op::Div | Op::Recip)
}

/// What is added up in `sum`, if those are squares and constants, and nothing else uses a
/// part of it.
fn sum(graph: &Graph, uses: &Array<Node, u32>, sum: Node) -> Option<Sum> {
    let mut found = Sum { squared: SmallVec::new(), constants: SmallVec::new() };
    let mut pending: SmallVec<[Node; 8]> = smallvec::smallvec![sum];
    while let Some(part) = pending.pop() {
        match graph.nodes[part].def {
            Def::Apply(Op::Mul, [x, y, _]) if x == y => found.squared.push(x),
            Def::Apply(Op::Powi | Op::Powf, [x, power, _])
                if graph.constant(power) == Some(2.0) =>
            {
                found.squared.push(x);
            }
            Def::Apply(Op::Add, [a, b, _]) if part == sum || uses[part] == 1 => {
                pending.extend([b, a]);
            }
            Def::Const(bits) => {
                let constant = f64::from_bits(bits);
                found.constants.push(constant);
                if !(0.0..=LARGEST_CONSTANT).contains(&constant) {
                    return None;
                }
            }
            _ => return None,
        }
        if found.squared.len() > MOST_SQUARES {
            return None;
        }
    }
    let parts = found.squared.len() + found.constants.len();
    (!found.squared.is_empty() && parts > 1).then_some(found)
}

/// The root of `sum`, which is the sum of the squares of `squared` and of the constants of `of`.
fn length(builder: &mut Builder, sum: Node, squared: &[Node], of: &Sum) -> Node {
    let is_never_tiny = of.is_never_tiny();
    let is_usual = if is_never_tiny {
        let largest = builder.constant(f64::MAX);
        builder.apply(Op::Le, &[sum, largest])
    } else {
        is_usual(builder, sum)
    };
    let region = builder.begin_region(None);
    let (usual, unusual) = builder.branch(is_usual);
    builder.enter(usual);
    let root = builder.apply(Op::Sqrt, &[sum]);
    builder.finish_block(&[root]);
    builder.leave();
    builder.enter(unusual);
    let root = if is_never_tiny {
        let [down, up] = [SCALE.recip(), SCALE].map(|number| builder.constant(number));
        scaled_root(builder, squared, None, (down, up))
    } else {
        root_of_tiny_or_huge(builder, sum, squared, &of.constants)
    };
    builder.finish_block(&[root]);
    builder.leave();
    let passed = builder.end_region(region, 1);
    passed.first().copied().unwrap_or(sum)
}

/// Whether `sum`, which is not negative, is at least [`LEAST`] and below 1 / [`PER_HUGE`].
/// One comparison, so that there is one branch: sum·(1 - sum·p) is the sum itself where that
/// is below `LEAST`, at least `LEAST` between, and neither above nor for an infinite or
/// unknown sum.
fn is_usual(builder: &mut Builder, sum: Node) -> Node {
    let [one, per_huge, least] = [1.0, PER_HUGE, LEAST].map(|number| builder.constant(number));
    let share = builder.apply(Op::Mul, &[sum, per_huge]);
    let rest = builder.apply(Op::Sub, &[one, share]);
    let product = builder.apply(Op::Mul, &[sum, rest]);
    builder.apply(Op::Ge, &[product, least])
}

/// The root of a sum that is tiny or huge.
fn root_of_tiny_or_huge(
    builder: &mut Builder,
    sum: Node,
    squared: &[Node],
    constants: &[f64],
) -> Node {
    let [one, up, down, none] =
        [1.0, SCALE, SCALE.recip(), 0.0].map(|number| builder.constant(number));
    let is_tiny = builder.apply(Op::Lt, &[sum, one]);
    let scale = builder.apply(Op::Select, &[is_tiny, up, down]);
    let back = builder.apply(Op::Select, &[is_tiny, down, up]);
    let constants: f64 = constants.iter().map(|constant| constant * SCALE * SCALE).sum();
    let constants = (constants != 0.0).then(|| {
        let constants = builder.constant(constants);
        builder.apply(Op::Select, &[is_tiny, constants, none])
    });
    scaled_root(builder, squared, constants, (scale, back))
}

/// √(Σ(x·scale)² + constants)·back for all x of `squared`; what `constants` there are is scaled.
fn scaled_root(
    builder: &mut Builder,
    squared: &[Node],
    constants: Option<Node>,
    (scale, back): (Node, Node),
) -> Node {
    // What this is added to is left as it is, with all folding.
    let mut sum = constants.unwrap_or_else(|| builder.constant(-0.0));
    for &node in squared {
        let scaled = builder.apply(Op::Mul, &[node, scale]);
        let square = builder.apply(Op::Mul, &[scaled, scaled]);
        sum = builder.apply(Op::Add, &[sum, square]);
    }
    let root = builder.apply(Op::Sqrt, &[sum]);
    builder.apply(Op::Mul, &[root, back])
}
