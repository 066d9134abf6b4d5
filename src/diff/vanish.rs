//! Rounding errors: nodes that are zero as functions of real numbers, and have
//! no derivative.
//!
//! Who computes what rounding has taken away, `mul_add(a, b, -(a·b))` or the
//! error of a sum, does so to correct a value. To differentiate that would be to
//! add and subtract the same over and over.

use smallvec::{SmallVec, smallvec};

use crate::entity::Array;
use crate::op::Op;
use crate::ssa::{
    Def, Flow, Folding, Graph, Node, eliminate_dead_code, for_people, has_tangents, is_far,
    is_held, rebuild, without_tangents,
};

/// `graph` as a function of real numbers: rounding errors are zero in it, and what
/// was computed of them is gone; `None` if there are none.
///
/// # Examples
///
/// ```
/// use phigrad::diff::without_rounding_errors;
/// use phigrad::ssa::parse;
///
/// // A product, and what rounding has taken from it.
/// let text = "graph active 2 inactive 0\nb0:\n  v2 = mul v0 v1\n  v3 = neg v2\n  \
///             v4 = mul_add v0 v1 v3\n  v5 = add v2 v4\n  return v5\n";
/// let exact = without_rounding_errors(&parse(text)?).expect("there is one");
/// assert!(!exact.to_string().contains("mul_add"));
/// # Ok::<(), phigrad::ssa::ParseError>(())
/// ```
pub fn without_rounding_errors(graph: &Graph) -> Option<Graph> {
    // Values with known derivatives are functions again.
    let mut exact = has_tangents(graph).then(|| without_tangents(graph));
    exact = for_people(exact.as_ref().unwrap_or(graph)).or(exact);
    // Where some are gone, others show.
    for _ in 0..ROUNDS {
        let graph = exact.as_ref().unwrap_or(graph);
        let vanishes = vanishing(graph);
        if !vanishes.values().any(|&vanishes| vanishes) {
            break;
        }
        let fewer = rebuild(graph, Folding::Real, |rebuild, node| {
            if vanishes[node] {
                return Some(rebuild.builder.constant(0.0));
            }
            // What loops carry is no step of its own.
            let Def::Apply(op, args) = graph.nodes[node].def else { return None };
            match (op, args) {
                (Op::Add, [a, b, _]) if vanishes[a] => return Some(rebuild.copied(b)),
                (Op::Add | Op::Sub, [a, b, _]) if vanishes[b] => return Some(rebuild.copied(a)),
                _ => {}
            }
            let is_zero =
                |&arg: &Node| vanishes[arg] && matches!(graph.nodes[arg].def, Def::Entry(..));
            args.iter().any(is_zero).then(|| {
                let zero = rebuild.builder.constant(0.0);
                let args = args.map(|arg| if is_zero(&arg) { zero } else { rebuild.copied(arg) });
                rebuild.builder.apply(op, &args[..op.arity()])
            })
        });
        exact = Some(eliminate_dead_code(&fewer));
    }
    exact
}

/// How often what has been left out may show more.
const ROUNDS: usize = 4;

/// A term of a form: a node or constant, or the product of two.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Term {
    Node(Node),
    /// A positive constant, by its bits.
    Number(u64),
    Product(Node, Node),
}

/// A sum of few terms, each with how often it counts.
type Form = SmallVec<[(Term, i32); 4]>;

/// Which nodes of `graph` vanish by the rules of real numbers, as far as that
/// shows in a few terms; none in a graph without `mul_add`.
pub(super) fn vanishing(graph: &Graph) -> Array<Node, bool> {
    let none = || Array::filled(false, graph.nodes.len());
    let is_mul_add = |def: &Def| matches!(def, Def::Apply(Op::MulAdd, _));
    if !graph.nodes.values().any(|data| is_mul_add(&data.def)) {
        return none();
    }
    // What a loop carries from zero on vanishes if all that is carried on does.
    let flow = Flow::of(graph);
    let is_zero = |node: Node, search: &Search<'_>| {
        search.vanishes[node] || graph.constant(node) == Some(0.0)
    };
    let mut carried: Vec<Node> = Vec::new();
    for data in graph.regions.values().filter(|data| data.replays.is_none()) {
        let entries = data.cycle.iter().flat_map(|cycle| &cycle.entries);
        carried.extend(entries.map(|entry| entry.phi));
    }
    for _ in 0..ROUNDS {
        let mut search = Search { graph, vanishes: none() };
        carried.iter().for_each(|&phi| search.vanishes[phi] = true);
        search.run();
        let before = carried.len();
        carried.retain(|&phi| flow.sources(phi).into_iter().all(|source| is_zero(source, &search)));
        if carried.len() == before {
            return search.vanishes;
        }
    }
    let mut search = Search { graph, vanishes: none() };
    search.run();
    search.vanishes
}

/// How deep forms are followed: the error of a sum needs four steps.
const DEPTH: usize = 6;

struct Search<'a> {
    graph: &'a Graph,
    vanishes: Array<Node, bool>,
}

impl Search<'_> {
    fn run(&mut self) {
        for node in self.graph.nodes.keys() {
            let Def::Apply(op, args) = self.graph.nodes[node].def else { continue };
            self.vanishes[node] = match op {
                Op::Sub if self.is_whole(node) => false,
                Op::Add | Op::Sub | Op::MulAdd => self.form(node, 1, DEPTH).is_empty(),
                Op::Neg => self.vanishes[args[0]],
                Op::Mul => self.vanishes[args[0]] || self.vanishes[args[1]],
                Op::Div => self.vanishes[args[0]],
                _ => false,
            };
        }
    }

    /// Whether this difference is no rounding error: what is held has no derivative, but is not
    /// zero, and what a program takes from itself is no number where that is none.
    fn is_whole(&self, node: Node) -> bool {
        let args = self.graph.nodes[node].args();
        args[0] == args[1] || is_held(self.graph, node)
    }

    /// What `node` is as a sum; a sum in it is a term of its own if `levels` is 0.
    /// Differences by `mul_add` are followed `depth` deep in any case: they are
    /// such that must not be rounded otherwise, and no sums of the program.
    fn form(&self, node: Node, levels: usize, depth: usize) -> Form {
        if self.vanishes[node] {
            return Form::new();
        }
        let (op, [a, b, c]) = match self.graph.nodes[node].def {
            Def::Apply(op, args) => (op, args),
            Def::Const(bits) => {
                let number = f64::from_bits(bits);
                let sign = if number < 0.0 { -1 } else { 1 };
                return match number == 0.0 {
                    true => Form::new(),
                    false => smallvec![(Term::Number(number.abs().to_bits()), sign)],
                };
            }
            _ => return smallvec![(Term::Node(node), 1)],
        };
        match op {
            Op::Sub if self.is_whole(node) => smallvec![(Term::Node(node), 1)],
            Op::Neg if depth > 0 => scaled(self.form(a, levels, depth - 1), -1),
            Op::Mul => self.product(a, b),
            Op::Add if levels > 0 => sum(self.form(a, 0, depth), self.form(b, 0, depth)),
            Op::Sub if levels > 0 => {
                sum(self.form(a, 0, depth), scaled(self.form(b, 0, depth), -1))
            }
            // A tangent, however it is spelt by now, has a derivative.
            Op::MulAdd if self.graph.constant(c).is_some_and(|c| is_far(-c)) => {
                smallvec![(Term::Node(node), 1)]
            }
            Op::MulAdd if depth > 0 && self.unit(b).is_some() => {
                let sign = self.unit(b).unwrap_or(1);
                // One of the two is the sum from which the other is taken.
                let form = |of_a, of_c| {
                    let of_a = scaled(self.form(a, of_a, depth - 1), sign);
                    sum(of_a, self.form(c, of_c, depth - 1))
                };
                let first = form(1, 0);
                if first.len() < 2 {
                    return first;
                }
                let second = form(0, 1);
                if second.len() < first.len() { second } else { first }
            }
            Op::MulAdd if levels > 0 => sum(self.product(a, b), self.form(c, 0, depth)),
            _ => smallvec![(Term::Node(node), 1)],
        }
    }

    fn product(&self, a: Node, b: Node) -> Form {
        if self.vanishes[a] || self.vanishes[b] {
            return Form::new();
        }
        let ((a, sign_a), (b, sign_b)) = (self.signed(a), self.signed(b));
        let sign = sign_a * sign_b;
        // A quotient times its divisor.
        for (quotient, other) in [(a, b), (b, a)] {
            if let Def::Apply(Op::Div, [dividend, divisor, _]) = self.graph.nodes[quotient].def
                && divisor == other
            {
                return scaled(self.form(dividend, 0, 1), sign);
            }
            if let Def::Apply(Op::Recip, [divisor, ..]) = self.graph.nodes[quotient].def
                && divisor == other
            {
                return smallvec![(Term::Number(1.0f64.to_bits()), sign)];
            }
        }
        smallvec![(Term::Product(a.min(b), a.max(b)), sign)]
    }

    /// The sign of `node` if that is 1 or -1.
    fn unit(&self, node: Node) -> Option<i32> {
        match self.graph.constant(node)? {
            1.0 => Some(1),
            -1.0 => Some(-1),
            _ => None,
        }
    }

    fn signed(&self, node: Node) -> (Node, i32) {
        match self.graph.nodes[node].def {
            Def::Apply(Op::Neg, [inner, ..]) => (inner, -1),
            _ => (node, 1),
        }
    }
}

fn scaled(mut form: Form, factor: i32) -> Form {
    form.iter_mut().for_each(|(_, count)| *count *= factor);
    form
}

fn sum(mut a: Form, b: Form) -> Form {
    for (term, count) in b {
        match a.iter_mut().find(|(other, _)| *other == term) {
            Some((_, before)) => *before += count,
            None => a.push((term, count)),
        }
    }
    a.retain(|&mut (_, count)| count != 0);
    a
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entity::Entity;
    use crate::ssa::{Builder, FAR, Folding, parse};

    fn found(text: &str) -> Vec<usize> {
        let graph = parse(text).unwrap();
        let vanishing = vanishing(&graph);
        vanishing.iter().filter(|(_, vanishes)| **vanishes).map(|(node, _)| node.index()).collect()
    }

    #[test]
    fn errors_of_products_sums_and_quotients_vanish() {
        let product = "graph active 2 inactive 0\nb0:\n  v2 = mul v0 v1\n  v3 = neg v2\n  \
                       v4 = mul_add v0 v1 v3\n  v5 = mul v4 v1\n  v6 = add v5 v2\n  return v6\n";
        assert_eq!(found(product), [4, 5]);
        let sum = "graph active 2 inactive 0\nv2 = const 1.0\nb0:\n  v3 = add v0 v1\n  \
                   v4 = neg v0\n  v5 = mul_add v3 v2 v4\n  v6 = neg v5\n  \
                   v7 = mul_add v3 v2 v6\n  v8 = sub v0 v7\n  v9 = sub v1 v5\n  \
                   v10 = add v8 v9\n  v11 = add v3 v10\n  return v11\n";
        assert_eq!(found(sum), [8, 9, 10]);
        let differences = "graph active 2 inactive 0\nv2 = const -1.0\nb0:\n  \
                           v3 = add v0 v1\n  v4 = mul_add v0 v2 v3\n  \
                           v5 = mul_add v4 v2 v3\n  v6 = sub v0 v5\n  v7 = sub v1 v4\n  \
                           v8 = add v6 v7\n  v9 = add v3 v8\n  return v9\n";
        assert_eq!(found(differences), [6, 7, 8]);
        let exact = without_rounding_errors(&parse(differences).unwrap()).unwrap();
        let plain = "graph active 2 inactive 0\nb0:\n  v2 = add v0 v1\n  return v2\n";
        assert_eq!(exact.to_string(), plain);
        let quotient = "graph active 2 inactive 0\nb0:\n  v2 = div v0 v1\n  v3 = neg v2\n  \
                        v4 = mul_add v3 v1 v0\n  v5 = add v2 v4\n  return v5\n";
        assert_eq!(found(quotient), [4]);
        let inverse = "graph active 1 inactive 0\nv1 = const 1.0\nb0:\n  v2 = recip v0\n  \
                       v3 = neg v2\n  v4 = mul_add v3 v0 v1\n  v5 = add v2 v4\n  return v5\n";
        assert_eq!(found(inverse), [4]);
    }

    #[test]
    fn what_loops_carry_vanishes_if_it_does_in_each_iteration() {
        // A number and the error of its square are squared as a pair.
        let text = "graph active 1 inactive 0\nv1 = const 0.0\nv2 = const 8.0\nv6 = iteration r0\n\
                    b0:\n  v14 v15 = region r0 b1 bound 9 entries v3=v0 v4=v1 v5=v1\n  \
                    v16 = add v14 v15\n  return v16\nb1:\n  v7 = mul v3 v3\n  v8 = neg v7\n  \
                    v9 = mul_add v3 v3 v8\n  v10 = mul v3 v4\n  v11 = add v9 v10\n  \
                    v12 = add v5 v7\n  v13 = lt v6 v2\n  return v13 v7 v11 v12 v7 v12\n";
        assert_eq!(found(text), [4, 9, 10, 11]);
    }

    #[test]
    fn what_does_not_vanish_or_is_no_correction_stays() {
        let other = "graph active 3 inactive 0\nb0:\n  v3 = mul v0 v1\n  v4 = neg v3\n  \
                     v5 = mul_add v0 v2 v4\n  v6 = mul_add v0 v1 v3\n  v7 = add v5 v6\n  \
                     return v7\n";
        assert!(found(other).is_empty());
        // Next to the error of a product a number less itself is none.
        let zero = "graph active 2 inactive 0\nb0:\n  v2 = mul v0 v1\n  v3 = neg v2\n  v4 = \
                    mul_add v0 v1 v3\n  v5 = sub v0 v0\n  v6 = mul v5 v1\n  v7 = add v4 v6\n  \
                    return v7\n";
        assert_eq!(found(zero), [4]);
        // Without a product that is rounded once nobody corrects anything.
        let plain = "graph active 1 inactive 0\nb0:\n  v1 = sub v0 v0\n  return v1\n";
        assert!(found(plain).is_empty());
    }

    #[test]
    fn known_derivatives_are_passed_on_and_no_others() {
        let far = FAR;
        // sin x, of which 7 and its own tangent are said to be the derivatives.
        let text = format!(
            "graph active 1 inactive 0\nv1 = const 1.0\nv2 = const {far:?}\nv3 = const {:?}\n\
             v4 = const 7.0\nb0:\n  v5 = sin v0\n  v6 = add v5 v2\n  v7 = mul_add v6 v1 v3\n  \
             v8 = sub v5 v7\n  v9 = add v0 v2\n  v10 = mul_add v9 v1 v3\n  v11 = mul v4 v10\n  \
             v12 = add v8 v11\n  return v12\n",
            -far
        );
        assert!(found(&text).is_empty());
        let graph = parse(&text).unwrap();
        let gradient =
            crate::diff::reverse(&graph, crate::diff::Wanted::GradientAndValue, Folding::Real);
        let expected = "graph active 1 inactive 0\nv2 = const 7.0\nb0:\n  v1 = sin v0\n  \
                        return v2 v1\n";
        assert_eq!(gradient.to_string(), expected);
        let exact = without_rounding_errors(&graph).expect("there is a tangent");
        assert_eq!(
            exact.to_string(),
            "graph active 1 inactive 0\nb0:\n  v1 = sin v0\n  return v1\n"
        );
    }

    #[test]
    fn long_chains_of_differences_are_followed_a_few_steps() {
        let mut builder = Builder::new(2, 0, Folding::Exact);
        let (mut x, y, one) = (builder.input(0), builder.input(1), builder.constant(1.0));
        for _ in 0..100_000 {
            x = builder.apply(Op::MulAdd, &[y, one, x]);
        }
        builder.finish_block(&[x]);
        assert!(vanishing(builder.graph()).values().all(|vanishes| !vanishes));
    }
}
