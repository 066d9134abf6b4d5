//! Wrong forms of all kinds, also where whole graphs show nothing of them.

use super::*;
use crate::op::Op;
use crate::ssa::{Def, End, FAR, Item, parse};

/// A graph in which nodes have taken the place of others.
struct Planted {
    before: Graph,
    after: Graph,
    nodes: HashMap<Node, Node>,
}

impl Planted {
    /// `graph` with each of these nodes replaced by what `form` makes of it at the beginning.
    fn of(graph: &Graph, nodes: &[usize], form: impl Fn(&mut Graph, Node) -> Node) -> Planted {
        let mut after = graph.clone();
        let root = after.root();
        let mut replaced = HashMap::new();
        for &node in nodes {
            let node = named(graph, node);
            let items = after.blocks[root].items.len();
            let new = form(&mut after, node);
            let made: Vec<Item> = after.blocks[root].items.drain(items..).collect();
            after.blocks[root].items.splice(0..0, made);
            replaced.insert(node, new);
        }
        for block in after.blocks.keys() {
            if let End::Return(values) = &mut after.blocks[block].end {
                values.iter_mut().for_each(|node| *node = *replaced.get(node).unwrap_or(node));
            }
            for index in 0..after.blocks[block].items.len() {
                if let Item::Node(step) = after.blocks[block].items[index]
                    && let Def::Apply(_, args) = &mut after.nodes[step].def
                {
                    args.iter_mut().for_each(|node| *node = *replaced.get(node).unwrap_or(node));
                }
            }
        }
        Planted { before: graph.clone(), after, nodes: replaced }
    }

    /// The loops that are found wrong, where rules say nothing of other lengths.
    fn wrong(&self) -> Vec<Region> {
        self.wrong_by(&|_| None)
    }

    fn wrong_by(&self, rules: Rules<'_>) -> Vec<Region> {
        disproved(&self.claim(), false, rules)
    }

    fn claim(&self) -> Claim<'_> {
        Claim { before: &self.before, after: &self.after, replaced: &self.nodes }
    }
}

fn named(graph: &Graph, number: usize) -> Node {
    graph.nodes.keys().find(|node| node.to_string() == format!("v{number}")).unwrap()
}

/// The product of input 0 and `factor`, which is computed at the beginning.
fn scaled(graph: &mut Graph, factor: f64) -> Node {
    let (root, x) = (graph.root(), graph.input(0));
    let factor = graph.push_const(factor.to_bits());
    graph.push_apply(root, Op::Mul, &[factor, x], None)
}

fn planted(graph: &Graph, phi: usize, factor: f64) -> Planted {
    Planted::of(graph, &[phi], |graph, _| scaled(graph, factor))
}

/// What `graph`, in which φ `phi` is ten times input 0, says of that and of a wrong form.
fn checked(text: &str, phi: usize) {
    let graph = parse(text).unwrap();
    let right = planted(&graph, phi, 10.0);
    assert_eq!(right.wrong(), []);
    for factor in [9.0, 10.001, 0.0, -10.0, 10.0 * (1.0 + 1e-9)] {
        let wrong = planted(&graph, phi, factor);
        // The whole graph does not tell.
        assert!(agree(&graph, &in_order(&wrong.after).unwrap()), "{factor}");
        assert_eq!(wrong.wrong().len(), 1, "{factor}");
    }
}

#[test]
fn a_wrong_form_behind_a_rare_branch_is_found() {
    let text = "graph active 1 inactive 0\nv1 = const 0.0\nv2 = const 1e300\nv3 = const 9.0\n\
                v6 = iteration r1\n\
                b0:\n  v4 = gt v0 v2\n  v10 = region r0 b1\n  return v10\n\
                b1:\n  branch v4 b2 b3\n\
                b2:\n  v9 = region r1 b4 bound 10 entries v5=v1\n  return v9\n\
                b3:\n  return v0\n\
                b4:\n  v7 = add v5 v0\n  v8 = lt v6 v3\n  return v8 v7 v7\n";
    checked(text, 9);
}

#[test]
fn a_wrong_form_that_is_multiplied_by_zero_or_not_chosen_is_found() {
    let looped = |end: &str| {
        format!(
            "graph active 1 inactive 0\nv1 = const 0.0\nv2 = const 9.0\nv4 = iteration r0\n\
             b0:\n  v7 = region r0 b1 bound 10 entries v3=v1\n  v8 = {end}\n  return v8\n\
             b1:\n  v5 = add v3 v0\n  v6 = lt v4 v2\n  return v6 v5 v5\n"
        )
    };
    checked(&looped("mul v7 v1"), 7);
    checked(&looped("select v1 v7 v0"), 7);
}

#[test]
fn a_wrong_form_that_is_hidden_in_a_loop_around_is_found() {
    // What the inner loop comes to is thrown away in all iterations but one that is not
    // gone through.
    let text = "graph active 1 inactive 0\nv1 = const 0.0\nv2 = const 9.0\nv4 = iteration r0\n\
                v6 = iteration r1\n\
                b0:\n  v14 = region r0 b1 bound 10 entries v3=v1\n  return v14\n\
                b1:\n  v9 = region r1 b2 bound 10 entries v5=v1\n  v10 = gt v4 v2\n  \
                v11 = select v10 v9 v0\n  v12 = add v3 v11\n  v13 = lt v4 v2\n  return v13 v12 v12\n\
                b2:\n  v7 = add v5 v0\n  v8 = lt v6 v2\n  return v8 v7 v7\n";
    checked(text, 9);
}

#[test]
fn a_wrong_power_of_a_long_loop_is_found() {
    // Of other numbers than those near one such powers vanish or overflow.
    for count in [1000u32, 20_000, 1 << 20] {
        let text = format!(
            "graph active 1 inactive 0\nv1 = const 1.0\nv2 = const {}.0\nv4 = iteration r0\n\
             b0:\n  v7 = region r0 b1 bound {count} entries v3=v1\n  return v7\n\
             b1:\n  v5 = mul v3 v0\n  v6 = lt v4 v2\n  return v6 v5 v5\n",
            count - 1
        );
        let graph = parse(&text).unwrap();
        let power = |exponent: f64| {
            Planted::of(&graph, &[7], |graph, _| {
                let (root, x) = (graph.root(), graph.input(0));
                let exponent = graph.push_const(exponent.to_bits());
                graph.push_apply(root, Op::Powf, &[x, exponent], None)
            })
        };
        assert_eq!(power(f64::from(count)).wrong(), []);
        for wrong in [0.5, 0.99, 2.0] {
            assert_eq!(power(wrong * f64::from(count)).wrong().len(), 1, "{count}");
        }
    }
}

/// The sum of input 0, so many times.
fn sum(count: u32) -> Graph {
    let text = format!(
        "graph active 1 inactive 0\nv1 = const 0.0\nv2 = const {}.0\nv4 = iteration r0\n\
         b0:\n  v7 = region r0 b1 bound {count} entries v3=v1\n  return v7\n\
         b1:\n  v5 = add v3 v0\n  v6 = lt v4 v2\n  return v6 v5 v5\n",
        count - 1
    );
    parse(&text).unwrap()
}

#[test]
fn a_form_that_is_wrong_for_another_number_of_iterations_only_is_found() {
    for own in [10u32, 40, 1000, 1 << 20] {
        let right = planted(&sum(own), 7, f64::from(own));
        let compared = core::cell::RefCell::new(Vec::new());
        // What rules that are wrong for one number make of the loop.
        let rules = |wrong: Option<u32>| {
            let compared = &compared;
            move |graph: &Graph| {
                let bound = graph.regions.values().next()?.cycle.as_ref()?.bound;
                compared.borrow_mut().push(bound);
                let factor = f64::from(bound) + if wrong == Some(bound) { 1.0 } else { 0.0 };
                let mut after = graph.clone();
                let form = scaled(&mut after, factor);
                let root = after.root();
                after.blocks[root].end = End::Return([form].into_iter().collect());
                Some(after)
            }
        };
        assert_eq!(right.wrong_by(&rules(None)), []);
        let mut bounds = compared.take();
        bounds.sort_unstable();
        assert_eq!(bounds, TRIPS.map(|trips| trips + 1));
        for trips in TRIPS {
            assert_eq!(right.wrong_by(&rules(Some(trips + 1))).len(), 1, "{trips} of {own}");
        }
        // Rules need not apply.
        assert_eq!(right.wrong_by(&|_| None), []);
        assert_eq!(right.wrong_by(&|graph| Some(graph.clone())), []);
    }
}

#[test]
fn a_wrong_slope_is_found() {
    // The value without a derivative, and a derivative of the input.
    let with_slope = |count: u32, slope: f64| {
        Planted::of(&sum(count), &[7], |graph, _| {
            let value = scaled(graph, f64::from(count));
            let root = graph.root();
            let [far, less, one, slope] =
                [FAR, -FAR, 1.0, slope].map(|number| graph.push_const(number.to_bits()));
            let tangent = |graph: &mut Graph, node: Node| {
                let sum = graph.push_apply(root, Op::Add, &[node, far], None);
                graph.push_apply(root, Op::MulAdd, &[sum, one, less], None)
            };
            let of_value = tangent(graph, value);
            let held = graph.push_apply(root, Op::Sub, &[value, of_value], None);
            let x = graph.input(0);
            let of_x = tangent(graph, x);
            let product = graph.push_apply(root, Op::Mul, &[slope, of_x], None);
            graph.push_apply(root, Op::Add, &[held, product], None)
        })
    };
    for count in [3, 10, 1000] {
        let slope = f64::from(count);
        assert_eq!(with_slope(count, slope).wrong(), []);
        for wrong in [0.0, -slope, slope + 1.0, slope * (1.0 + 1e-9), f64::NAN] {
            assert_eq!(with_slope(count, wrong).wrong().len(), 1, "{wrong}");
        }
    }
}

#[test]
fn only_the_wrong_one_of_two_loops_is_found() {
    let text = "graph active 1 inactive 0\nv1 = const 0.0\nv2 = const 9.0\nv4 = iteration r0\n\
                v9 = iteration r1\n\
                b0:\n  v7 = region r0 b1 bound 10 entries v3=v1\n  \
                v12 = region r1 b2 bound 10 entries v8=v1\n  v13 = add v7 v12\n  return v13\n\
                b1:\n  v5 = add v3 v0\n  v6 = lt v4 v2\n  return v6 v5 v5\n\
                b2:\n  v10 = add v8 v0\n  v11 = lt v9 v2\n  return v11 v10 v10\n";
    let graph = parse(text).unwrap();
    let regions: Vec<Region> = graph.regions.keys().collect();
    for wrong in [7, 12] {
        let factor = |node: Node| if node == named(&graph, wrong) { 11.0 } else { 10.0 };
        let planted = Planted::of(&graph, &[7, 12], |graph, node| scaled(graph, factor(node)));
        assert_eq!(planted.wrong(), [regions[usize::from(wrong == 12)]]);
    }
    let both = Planted::of(&graph, &[7, 12], |graph, _| scaled(graph, 10.0));
    assert_eq!(both.wrong(), []);
}

#[test]
fn a_large_number_that_has_nothing_to_do_with_a_form_excuses_nothing() {
    // The second number that is carried grows to 1e30.
    let text = "graph active 1 inactive 0\nv1 = const 0.0\nv2 = const 9.0\nv3 = const 1000.0\n\
                v6 = iteration r0\n\
                b0:\n  v10 v11 = region r0 b1 bound 10 entries v4=v1 v5=v3\n  return v10\n\
                b1:\n  v7 = add v4 v0\n  v8 = mul v5 v3\n  v9 = lt v6 v2\n  \
                return v9 v7 v8 v7 v8\n";
    checked_values(text, 10, 10.0);
}

/// That the form `factor` times input 0 of `node` is right, and those near it are wrong.
fn checked_values(text: &str, node: usize, factor: f64) {
    let graph = parse(text).unwrap();
    assert_eq!(planted(&graph, node, factor).wrong(), [], "{text}");
    for wrong in [1.0 + 1e-9, 1.1, -1.0, 0.0] {
        let found = planted(&graph, node, wrong * factor).wrong();
        assert_eq!(found.len(), 1, "{wrong}\n{text}");
    }
}

#[test]
fn a_wrong_form_of_what_a_loop_was_in_an_iteration_is_found() {
    let text = |index: u32| {
        format!(
            "graph active 1 inactive 0\nv1 = const 0.0\nv2 = const 9.0\nv4 = iteration r0\n\
             a0 = history v5\ni0 = a0 base {index}\n\
             b0:\n  region r0 b1 bound 10 entries v3=v1\n  v7 = element i0\n  return v7\n\
             b1:\n  v5 = add v3 v0\n  v6 = lt v4 v2\n  return v6 v5\n"
        )
    };
    for index in [0, 4, 9] {
        checked_values(&text(index), 7, f64::from(index + 1));
        // That of the iteration before.
        let before = planted(&parse(&text(index)).unwrap(), 7, f64::from(index));
        assert_eq!(before.wrong().len(), 1);
    }
}

#[test]
fn a_wrong_form_of_a_loop_that_reads_what_another_one_was_is_found() {
    // The second loop adds up what the first one was, which is anything here, and ten
    // times the input.
    let text = "graph active 1 inactive 0\nv1 = const 0.0\nv2 = const 9.0\nv4 = iteration r0\n\
                v8 = iteration r1\na0 = history v5\ni0 = a0 base 3\n\
                b0:\n  region r0 b1 bound 10 entries v3=v1\n  v7 = element i0\n  \
                v12 = region r1 b2 bound 10 entries v9=v7\n  return v12\n\
                b1:\n  v5 = add v3 v0\n  v6 = lt v4 v2\n  return v6 v5\n\
                b2:\n  v10 = add v9 v0\n  v11 = lt v8 v2\n  return v11 v10 v10\n";
    let graph = parse(text).unwrap();
    let form = |factor: f64| {
        let mut planted = Planted::of(&graph, &[12], |graph, _| scaled(graph, factor));
        let (root, after) = (graph.root(), &mut planted.after);
        let sum = planted.nodes[&named(&graph, 12)];
        let first = named(&graph, 7);
        let whole = after.push_apply(root, Op::Add, &[first, sum], None);
        planted.nodes.insert(named(&graph, 12), whole);
        planted
    };
    assert_eq!(form(10.0).wrong(), []);
    for factor in [9.0, 10.0 * (1.0 + 1e-9), -10.0] {
        assert_eq!(form(factor).wrong().len(), 1, "{factor}");
    }
}

#[test]
fn a_wrong_form_behind_an_exit_is_found() {
    // The sum of the input until it is beyond 7.5, with the number of iterations.
    let text = "graph active 1 inactive 0\nv1 = const 0.0\nv2 = const 49.0\nv3 = const 7.5\n\
                v5 = iteration r0\n\
                b0:\n  v9 v10 = region r0 b1 bound 50 entries v4=v1\n  return v9\n\
                b1:\n  v6 = gt v4 v3\n  branch v6 b2 b3\n\
                b2:\n  return v1 v4 v4 v5\n\
                b3:\n  v7 = add v4 v0\n  v8 = lt v5 v2\n  return v8 v7 v7 v5\n";
    let graph = parse(text).unwrap();
    let region = graph.regions.keys().next().unwrap();
    // At the first end as many as came before, at the other one more.
    let [early, late] = [2, 3].map(|number| graph.blocks.keys().nth(number).unwrap());
    let form = |sign: f64, more: f64| {
        let mut after = graph.clone();
        let root = after.root();
        let [sign, more] = [sign, more].map(|number| after.push_const(number.to_bits()));
        let (count, x) = (named(&graph, 10), after.input(0));
        let count = after.push_apply(root, Op::Add, &[count, more], None);
        let product = after.push_apply(root, Op::Mul, &[count, x], None);
        let form = after.push_apply(root, Op::Mul, &[product, sign], None);
        after.blocks[root].end = End::Return([form].into_iter().collect());
        let nodes: HashMap<_, _> = [(named(&graph, 9), form)].into_iter().collect();
        let claim = Claim { before: &graph, after: &after, replaced: &nodes };
        [early, late].map(|end| agree_at_ends(&claim, region, &[end]))
    };
    assert_eq!(form(1.0, 0.0), [true, false]);
    assert_eq!(form(1.0, 1.0), [false, true]);
    assert_eq!(form(-1.0, 0.0), [false, false]);
    assert_eq!(form(1.0 + 1e-9, 0.0), [false, false]);
}

#[test]
fn a_loop_that_adds_to_sums_cannot_be_compared() {
    let text = "graph active 1 inactive 0\nv1 = const 0.0\nv2 = const 9.0\nv4 = iteration r0\n\
                a0 = sums _\ni0 = a0 base 0\n\
                b0:\n  fill a0\n  v7 = region r0 b1 bound 10 entries v3=v1\n  return v7\n\
                b1:\n  v5 = add v3 v0\n  accumulate i0 v0\n  v6 = lt v4 v2\n  return v6 v5 v5\n";
    assert_eq!(planted(&parse(text).unwrap(), 7, 10.0).wrong().len(), 1);
}

#[test]
fn shorter_loops_read_the_first_of_their_data_and_longer_ones_are_not_made() {
    // The input times 1, 2, …, 10.
    let text = "graph active 1 inactive 0\nv1 = const 0.0\nv2 = const 9.0\nv4 = iteration r0\n\
                a0 = constants 1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0 9.0 10.0\ni0 = a0 base 0 r0*1\n\
                b0:\n  v9 = region r0 b1 bound 10 entries v3=v1\n  return v9\n\
                b1:\n  v5 = element i0\n  v6 = mul v5 v0\n  v7 = add v3 v6\n  v8 = lt v4 v2\n  \
                return v8 v7 v7\n";
    let right = planted(&parse(text).unwrap(), 9, 55.0);
    let bounds = core::cell::RefCell::new(Vec::new());
    let rules = |first: fn(f64) -> f64| {
        let bounds = &bounds;
        move |graph: &Graph| {
            let bound = graph.regions.values().next()?.cycle.as_ref()?.bound;
            bounds.borrow_mut().push(bound);
            let count = f64::from(bound);
            let mut after = graph.clone();
            let form = scaled(&mut after, count * first(count) + count * (count - 1.0) / 2.0);
            let root = after.root();
            after.blocks[root].end = End::Return([form].into_iter().collect());
            Some(after)
        }
    };
    assert_eq!(right.wrong_by(&rules(|_| 1.0)), []);
    assert_eq!(bounds.take(), [1, 2, 3, 4]);
    // The last ones instead.
    assert_eq!(right.wrong_by(&rules(|count| 11.0 - count)).len(), 1);
}

#[test]
fn a_wrong_form_near_one_alone_is_found() {
    // x·yⁿ, and for n·|y - 1| up to a limit the same with a wrong term.
    let text = "graph active 2 inactive 0\nv2 = const 2.0\nv4 = iteration r0\nb0:\n  \
                v7 = region r0 b1 bound 3 entries v3=v0\n  return v7\nb1:\n  v5 = mul v3 v1\n  \
                v6 = lt v4 v2\n  return v6 v5 v5\n";
    let graph = parse(text).unwrap();
    for (wrong, is_wrong) in [(1e-3, true), (0.0, false)] {
        let planted = Planted::of(&graph, &[7], |graph, _| {
            let (x, y) = (named(graph, 0), named(graph, 1));
            let root = graph.root();
            let apply =
                |graph: &mut Graph, op, args: &[Node]| graph.push_apply(root, op, args, None);
            let [one, limit, factor] = [1.0, crate::ssa::marked(1.0 / 8192.0), wrong]
                .map(|number: f64| graph.push_const(number.to_bits()));
            let square = apply(graph, Op::Mul, &[y, y]);
            let power = apply(graph, Op::Mul, &[square, y]);
            let form = apply(graph, Op::Mul, &[x, power]);
            let less = apply(graph, Op::Sub, &[y, one]);
            let error = apply(graph, Op::Mul, &[less, factor]);
            let near = apply(graph, Op::MulAdd, &[form, error, form]);
            let size = apply(graph, Op::Abs, &[less]);
            let is_far = apply(graph, Op::Gt, &[size, limit]);
            apply(graph, Op::Select, &[is_far, form, near])
        });
        assert_eq!(!planted.wrong().is_empty(), is_wrong);
    }
}
