//! Nests of loops whose trip counts depend on outer loops, with arrays that they write and read:
//! graphs that do not grow with the arrays, with the same results and derivatives.

use phigrad::internals::Random;
use phigrad::internals::loops::recognise_nests;
use phigrad::internals::op::Op;
use phigrad::internals::ssa::{End, Graph, Node, Place, PlaceId, interpret, parse, verify};
use phigrad::{Tape, Var};

use super::carried_arrays::{assert_close, compare, recorded, size};

const MOST_CELLS: u64 = 1 << 20;

type Program = fn(&[Var], usize) -> Var;

/// Pairs of points, each once.
fn pairs(x: &[Var], n: usize) -> Var {
    let mut energy = Var::from(0.0);
    for i in 0..n {
        for j in 0..i {
            let distance = x[i] - x[j];
            energy += (distance * distance + 0.01).sqrt();
        }
    }
    energy
}

/// A triangular system, solved downwards.
fn forward(x: &[Var], n: usize) -> Var {
    let (b, l) = x.split_at(n);
    let mut y: Vec<Var> = Vec::new();
    for i in 0..n {
        let mut sum = b[i];
        for j in 0..i {
            sum -= l[i * n + j] * y[j];
        }
        y.push(sum / (l[i * n + i] + 2.0));
    }
    y.iter().map(|&y| y * y).sum()
}

/// A triangular system, solved upwards, in place.
fn backward(x: &[Var], n: usize) -> Var {
    let (b, u) = x.split_at(n);
    let mut y = b.to_vec();
    for i in (0..n).rev() {
        for j in i + 1..n {
            let known = y[j];
            y[i] -= u[i * n + j] * known;
        }
        y[i] /= u[i * n + i] + 2.0;
    }
    y.iter().map(|&y| y.exp()).sum()
}

/// The product with a triangle, column by column, and with its transpose.
fn products(x: &[Var], n: usize) -> Var {
    let (b, l) = x.split_at(n);
    let (mut y, mut z) = (b.to_vec(), vec![Var::from(0.0); n]);
    for j in 0..n {
        for i in j + 1..n {
            y[i] += l[i * n + j] * b[j];
        }
    }
    for i in 0..n {
        for j in i..n {
            z[i] += l[j * n + i] * y[j];
        }
    }
    z.iter().map(|&z| (z * z + 1.0).ln()).sum()
}

/// A triangular system with several right-hand sides, one after the other.
fn sides(x: &[Var], n: usize) -> Var {
    let (b, l) = x.split_at(n * n);
    let mut y = vec![Var::from(0.0); n * n];
    for k in 0..n {
        for i in 0..n {
            let mut sum = b[i * n + k];
            for j in 0..i {
                sum -= l[i * n + j] * y[j * n + k];
            }
            y[i * n + k] = sum / (l[i * n + i] + 2.0);
        }
    }
    y.iter().map(|&y| y * y).sum()
}

/// The products with a packed triangle by columns, and by rows.
fn packed(x: &[Var], n: usize) -> Var {
    let (b, l) = x.split_at(n);
    let mut y = b.to_vec();
    let mut at = 0;
    for (i, &b) in b.iter().enumerate() {
        for y in &mut y[i + 1..] {
            *y += l[at] * b;
            at += 1;
        }
    }
    at = 0;
    let mut total = Var::from(0.0);
    for i in 1..n {
        let mut sum = y[i];
        for &y in &y[..i] {
            sum += l[at] * y;
            at += 1;
        }
        total += sum * sum;
    }
    total
}

/// Triples of points, each once.
fn triples(x: &[Var], n: usize) -> Var {
    let mut total = Var::from(0.0);
    for i in 0..n {
        for j in 0..i {
            for k in 0..j {
                total += (x[i] * x[j] + x[k]).sin();
            }
        }
    }
    total
}

/// The squares of the elements of L·Lᵀ, of a packed triangle L with a shifted diagonal.
fn squares(x: &[Var], n: usize) -> Var {
    let mut l = vec![vec![Var::from(0.0); n]; n];
    let mut at = 0;
    for (i, row) in l.iter_mut().enumerate() {
        for (j, element) in row[..=i].iter_mut().enumerate() {
            *element = if i == j { x[at] + 2.0 } else { x[at] / 3.0 };
            at += 1;
        }
    }
    let mut total = Var::from(0.0);
    for i in 0..n {
        for j in 0..=i {
            let mut sum = Var::from(0.0);
            for (&a, &b) in l[i][..=j].iter().zip(&l[j]) {
                sum += a * b;
            }
            total += sum * sum;
        }
    }
    total
}

/// A triangular system with three right-hand sides, row by row; all solutions in one sum.
fn rows_of_sides(x: &[Var], n: usize) -> Var {
    let (b, l) = x.split_at(3 * n);
    let mut y = vec![Var::from(0.0); 3 * n];
    for i in 0..n {
        for side in 0..3 {
            let mut sum = b[3 * i + side];
            for j in 0..i {
                sum -= l[i * n + j] * y[3 * j + side];
            }
            y[3 * i + side] = sum / (l[i * n + i] + 2.0);
        }
    }
    y.iter().map(|&y| y * y).sum()
}

/// Points in time steps, with forces between pairs.
fn forces(x: &[Var], n: usize) -> Var {
    let (mut place, mut speed) = (x.to_vec(), vec![Var::from(0.0); n]);
    for _ in 0..18 {
        let mut force = vec![Var::from(0.0); n];
        for i in 0..n {
            for j in 0..i {
                let distance = place[i] - place[j];
                let pull = distance / (distance * distance + 0.1);
                force[i] -= pull;
                force[j] += pull;
            }
        }
        for i in 0..n {
            speed[i] += force[i] * 0.01;
            place[i] += speed[i] * 0.1;
        }
    }
    place.iter().map(|&place| place * place).sum()
}

/// Points in a plane with interleaved coordinates, in time steps.
fn planets(x: &[Var], n: usize) -> Var {
    let (mut place, mut speed) = (x.to_vec(), vec![Var::from(0.0); 2 * n]);
    for _ in 0..9 {
        let mut force = vec![Var::from(0.0); 2 * n];
        for i in 0..n {
            for j in 0..i {
                let dx = place[2 * i] - place[2 * j];
                let dy = place[2 * i + 1] - place[2 * j + 1];
                let pull = 1.0 / (dx * dx + dy * dy + 0.1);
                force[2 * i] -= dx * pull;
                force[2 * i + 1] -= dy * pull;
                force[2 * j] += dx * pull;
                force[2 * j + 1] += dy * pull;
            }
        }
        for k in 0..2 * n {
            speed[k] += force[k] * 0.01;
            place[k] += speed[k] * 0.1;
        }
    }
    place.iter().map(|&place| place * place).sum()
}

/// Bodies whose speeds change with each pair, in time steps.
fn bodies(x: &[Var], n: usize) -> Var {
    let mut bodies: Vec<[Var; 2]> = (0..n).map(|i| [x[2 * i], x[2 * i + 1]]).collect();
    for _ in 0..9 {
        for i in 0..n {
            for j in i + 1..n {
                let distance = bodies[j][0] - bodies[i][0];
                let pull = distance / (distance * distance + 0.1) * 0.01;
                bodies[i][1] += pull;
                bodies[j][1] -= pull;
            }
        }
        for [place, speed] in &mut bodies {
            *place += *speed * 0.1;
        }
    }
    bodies.iter().map(|&[_, speed]| speed * speed).sum()
}

/// Pairs of different points, each twice.
fn others(x: &[Var], n: usize) -> Var {
    let mut energy = Var::from(0.0);
    for i in 0..n {
        for j in 0..n {
            if i != j {
                let distance = x[i] - x[j];
                energy += (distance * distance + 0.01).sqrt();
            }
        }
    }
    energy
}

/// Heat in a plate whose sides keep their temperature.
fn plate(x: &[Var], n: usize) -> Var {
    let mut now = x.to_vec();
    for _ in 0..6 {
        let mut next = now.clone();
        for i in 1..n - 1 {
            for j in 1..n - 1 {
                let at = i * n + j;
                let around = now[at - 1] + now[at + 1] + now[at - n] + now[at + n];
                next[at] = now[at] + (around - now[at] * 4.0) * 0.1;
            }
        }
        now = next;
    }
    now.iter().map(|&now| now * now).sum()
}

/// Heat in a rod with insulated ends.
fn rod(x: &[Var], n: usize) -> Var {
    let mut now = x.to_vec();
    for _ in 0..18 {
        let next = |i: usize| {
            let (left, right) = (now[i.max(1) - 1], now[(i + 1).min(n - 1)]);
            now[i] + (left - now[i] * 2.0 + right) * 0.2 + now[i].sin() * 0.1
        };
        now = (0..n).map(next).collect();
    }
    now.iter().map(|&now| now.exp()).sum()
}

/// The determinant of a covariance matrix, by its Cholesky factor.
fn cholesky(x: &[Var], n: usize) -> Var {
    let mut factor = vec![Var::from(0.0); n * n];
    let mut total = Var::from(0.0);
    for i in 0..n {
        for j in 0..=i {
            let distance = x[i] - x[j];
            let mut sum = (distance * distance * -0.5).exp();
            if i == j {
                sum += 1.5;
            }
            for k in 0..j {
                sum -= factor[i * n + k] * factor[j * n + k];
            }
            factor[i * n + j] = if i == j { sum.sqrt() } else { sum / factor[j * n + j] };
        }
        total += factor[i * n + i].ln();
    }
    total
}

/// Gaussian elimination in place.
fn elimination(x: &[Var], n: usize) -> Var {
    let mut a = x[..n * n].to_vec();
    for k in 0..n {
        for i in k + 1..n {
            let factor = a[i * n + k] / (a[k * n + k] + n as f64);
            for j in k + 1..n {
                let above = a[k * n + j];
                a[i * n + j] -= factor * above;
            }
        }
    }
    (0..n).map(|i| a[i * n + i] * a[i * n + i]).sum()
}

/// The cost of an alignment: a table of which each element needs three neighbours.
fn alignment(x: &[Var], n: usize) -> Var {
    let m = n + 1;
    let mut cost = vec![Var::from(0.0); m * m];
    for i in 1..m {
        cost[i * m] = cost[(i - 1) * m] + 0.3;
        cost[i] = cost[i - 1] + 0.4;
    }
    for i in 1..m {
        for j in 1..m {
            let differs = (x[i - 1] - x[n + j - 1]).tanh();
            let all = (-cost[(i - 1) * m + j]).exp() + (-cost[i * m + j - 1]).exp();
            cost[i * m + j] = differs * differs - (all + (-cost[(i - 1) * m + j - 1]).exp()).ln();
        }
    }
    cost[m * m - 1]
}

/// A recurrence of order three, whose values are used twice.
fn recurrence(x: &[Var], n: usize) -> Var {
    let mut y = vec![Var::from(0.1), Var::from(0.2), x[0]];
    for i in 3..n {
        y.push((y[i - 1] * x[i] + 0.3 * y[i - 3]).sin());
    }
    (0..n).map(|i| y[i] * y[n - 1 - i]).sum()
}

/// A program with the number of inputs for a size.
type Sample = (&'static str, Program, fn(usize) -> usize);

const PROGRAMS: [Sample; 20] = [
    ("sides", sides, |n| 2 * n * n),
    ("packed", packed, |n| n * (n + 1) / 2),
    ("pairs", pairs, |n| n),
    ("forward", forward, |n| n + n * n),
    ("backward", backward, |n| n + n * n),
    ("products", products, |n| n + n * n),
    ("cholesky", cholesky, |n| n),
    ("elimination", elimination, |n| n * n),
    ("alignment", alignment, |n| 2 * n),
    ("recurrence", recurrence, |n| n),
    ("triples", triples, |n| n),
    ("squares", squares, |n| n * (n + 1) / 2),
    ("rows of sides", rows_of_sides, |n| n * n + 3 * n),
    ("forces", forces, |n| n),
    ("rod", rod, |n| n),
    ("planets", planets, |n| 2 * n),
    ("bodies", bodies, |n| 2 * n),
    ("others", others, |n| n),
    ("plate", plate, |n| n * n),
    ("backward and forward", |x, n| backward(x, n) + forward(x, n), |n| n + n * n),
];

fn recognised(name: &str, graph: &Graph) -> Graph {
    let nests =
        recognise_nests(graph, MOST_CELLS).unwrap_or_else(|| panic!("{name}: no nests\n{graph}"));
    verify(&nests).unwrap_or_else(|error| panic!("{name}: {error}\n{nests}"));
    let text = nests.to_string();
    assert_eq!(parse(&text).map(|graph| graph.to_string()), Ok(text));
    nests
}

#[test]
fn nests_have_the_same_derivatives() {
    for (name, program, inputs) in PROGRAMS {
        for n in [10, 13] {
            let graph = recorded(inputs(n), false, |x| program(x, n));
            let nests = recognised(name, &graph);
            compare(name, &graph, &nests);
        }
    }
}

#[test]
fn graphs_do_not_grow_with_nests() {
    for (name, program, inputs) in PROGRAMS {
        let graphs =
            [10, 11, 24].map(|n| recognised(name, &recorded(inputs(n), false, |x| program(x, n))));
        let sizes = graphs.each_ref().map(size);
        // The last iteration of a triangle may need no addition.
        let is_same = |size: &usize| size.abs_diff(sizes[0]) <= 2;
        let is_small = sizes.iter().all(is_same) && sizes[0] < 150;
        assert!(is_small, "{name}: {sizes:?}\n{}", graphs[2]);
    }
}

#[test]
fn kernels_of_nests_do_not_grow() {
    // Those of a few steps are faster as straight-line code.
    let is_long = |sample: &Sample| !["recurrence", "rod"].contains(&sample.0);
    for (name, program, inputs) in PROGRAMS.into_iter().filter(is_long) {
        let sizes = [24, 31].map(|n| {
            let x: Vec<f64> = (0..inputs(n)).map(|i| (i as f64 * 0.7).sin() * 0.4).collect();
            let f = Tape::builder().hot_threshold(u32::MAX).background(false);
            let f = f.record(move |x: &[Var]| program(x, n));
            let expected = f.grad(&x).unwrap();
            f.compile().unwrap();
            assert_close(name, &expected, &f.grad(&x).unwrap());
            let report = f.report();
            assert_eq!(report.kernel_calls, 1, "{name}: {report}");
            report.kernels.iter().map(|kernel| kernel.nodes).collect::<Vec<_>>()
        });
        assert_eq!(sizes[0], sizes[1], "{name}");
    }
}

/// A random program of nested loops, run as straight-line code: each statement is a place.
struct Generator<'a> {
    random: &'a mut Random,
    /// The size of each axis of the arrays.
    n: usize,
    places: u32,
}

#[derive(Clone)]
enum Statement {
    /// From a number, or one more than the iteration of the loop around, to a number, or to that of
    /// the loop around; or all but that.
    Loop {
        from: usize,
        from_outer: bool,
        to: usize,
        to_outer: bool,
        skips: bool,
        body: Vec<Statement>,
    },
    /// `target = sin(op(a, b))`
    Assign { target: Element, op: Op, operands: [Operand; 2], place: u32 },
}

/// An element of an array, or the only one: the loops of its indices, with offsets.
#[derive(Clone, Copy)]
struct Element {
    array: usize,
    /// None for a scalar.
    indices: [Option<(usize, i64)>; 2],
}

#[derive(Clone, Copy)]
enum Operand {
    Value(Element),
    Constant(usize),
    Input(usize, i64),
}

const ARRAYS: usize = 5;

impl Generator<'_> {
    fn place(&mut self, depth: usize) -> Element {
        // A scalar, two vectors, a matrix, and a vector of pairs.
        let array = self.random.below(ARRAYS);
        let mut index = || Some((self.random.below(depth), self.random.below(3) as i64 - 1));
        let indices = match array {
            0 => [None, None],
            3 => [index(), index()],
            4 => [index(), Some((0, self.random.below(2) as i64))],
            _ => [index(), None],
        };
        Element { array, indices }
    }

    fn statements(&mut self, depth: usize) -> Vec<Statement> {
        let count = 1 + self.random.below(2);
        let mut all = Vec::new();
        for _ in 0..count {
            if depth == 0 || depth < 3 && self.random.chance(0.5) {
                let (from_outer, to_outer) = match depth {
                    0 => (false, false),
                    _ => (self.random.chance(0.3), self.random.chance(0.4)),
                };
                let (from, to) = (1 + self.random.below(2), self.n - 1 - self.random.below(2));
                let to_outer = to_outer && !from_outer;
                let skips = depth > 0 && !from_outer && !to_outer && self.random.chance(0.3);
                let body = self.statements(depth + 1);
                all.push(Statement::Loop { from, from_outer, to, to_outer, skips, body });
            } else {
                let operands = [(); 2].map(|()| match self.random.below(5) {
                    0 => Operand::Constant(1 + self.random.below(7)),
                    1 => Operand::Input(self.random.below(depth), self.random.below(3) as i64 - 1),
                    _ => Operand::Value(self.place(depth)),
                });
                self.places += 2;
                let (target, op) =
                    (self.place(depth), self.random.pick(&[Op::Add, Op::Mul, Op::Sub]));
                all.push(Statement::Assign { target, op, operands, place: self.places });
            }
        }
        all
    }
}

/// A machine that runs programs.
trait Machine {
    type Value: Copy;

    fn constant(&mut self, value: f64) -> Self::Value;

    fn input(&mut self, number: usize) -> Self::Value;

    /// `op(a, b)` as a step at one of the places.
    fn apply(&mut self, op: Op, operands: &[Self::Value], place: u32) -> Self::Value;
}

/// The machine that makes the graph, as straight-line code.
struct Unrolled {
    graph: Graph,
    places: Vec<PlaceId>,
}

impl Machine for Unrolled {
    type Value = Node;

    fn constant(&mut self, value: f64) -> Node {
        self.graph.push_const(value.to_bits())
    }

    fn input(&mut self, number: usize) -> Node {
        self.graph.input(number)
    }

    fn apply(&mut self, op: Op, operands: &[Node], place: u32) -> Node {
        let root = self.graph.root();
        self.graph.push_apply(root, op, operands, Some(self.places[place as usize]))
    }
}

/// The machine that runs on the tape.
struct Recorded<'x>(&'x [Var]);

impl Machine for Recorded<'_> {
    type Value = Var;

    fn constant(&mut self, value: f64) -> Var {
        Var::from(value)
    }

    fn input(&mut self, number: usize) -> Var {
        self.0[number]
    }

    fn apply(&mut self, op: Op, operands: &[Var], place: u32) -> Var {
        let (a, b) = (operands[0], operands[operands.len() - 1]);
        // Two places for each operation.
        match (op, place / 2 % 2) {
            (Op::Add, 0) => a + b,
            (Op::Add, _) => a + b,
            (Op::Mul, 0) => a * b,
            (Op::Mul, _) => a * b,
            (Op::Sub, 0) => a - b,
            (Op::Sub, _) => a - b,
            (_, 0) => a.sin(),
            _ => a.sin(),
        }
    }
}

/// The state of a program: the arrays.
struct State<'m, M: Machine> {
    machine: &'m mut M,
    n: usize,
    arrays: Vec<Vec<M::Value>>,
}

impl<M: Machine> State<'_, M> {
    /// Runs the program; returns the sum of some elements.
    fn result(machine: &mut M, statements: &[Statement], n: usize) -> M::Value {
        let inputs: Vec<M::Value> = (0..n).map(|number| machine.input(number)).collect();
        let zero = machine.constant(0.0);
        let pairs = vec![zero; 2 * n];
        let arrays = vec![vec![inputs[0]], inputs, vec![zero; n], vec![zero; n * n], pairs];
        let mut state = State { machine, n, arrays };
        state.run(statements, &mut Vec::new());
        let elements = state.arrays.concat().into_iter().step_by(3);
        elements.fold(zero, |sum, element| state.machine.apply(Op::Add, &[sum, element], 0))
    }

    fn index(&self, place: Element, numbers: &[usize]) -> usize {
        let index = |at: usize| {
            place.indices[at].map_or(0, |(of, offset)| (numbers[of] as i64 + offset) as usize)
        };
        match place.array {
            3 => index(0) * self.n + index(1),
            4 => 2 * index(0) + place.indices[1].map_or(0, |of| of.1) as usize,
            _ => index(0),
        }
    }

    fn run(&mut self, statements: &[Statement], numbers: &mut Vec<usize>) {
        for statement in statements {
            match statement {
                Statement::Loop { from, from_outer, to, to_outer, skips, body } => {
                    let outer = numbers.last().copied().unwrap_or(0);
                    let from = if *from_outer { outer + 1 } else { *from };
                    let to = if *to_outer { outer } else { *to };
                    for number in (from..to).filter(|&number| !skips || number != outer) {
                        numbers.push(number);
                        self.run(body, numbers);
                        numbers.pop();
                    }
                }
                Statement::Assign { target, op, operands, place } => {
                    let operands = operands.map(|operand| match operand {
                        Operand::Value(at) => self.arrays[at.array][self.index(at, numbers)],
                        Operand::Constant(factor) => {
                            let sum = numbers.iter().sum::<usize>() * factor;
                            self.machine.constant(sum as f64 * 0.1)
                        }
                        Operand::Input(of, offset) => {
                            self.machine.input((numbers[of] as i64 + offset) as usize)
                        }
                    });
                    let value = self.machine.apply(*op, &operands, *place);
                    let value = self.machine.apply(Op::Sin, &[value], *place + 1);
                    let index = self.index(*target, numbers);
                    self.arrays[target.array][index] = value;
                }
            }
        }
    }
}

fn unrolled(statements: &[Statement], places: u32, n: usize) -> Graph {
    let mut graph = Graph::new(n, 0);
    let place = |line| graph.places.push(Place::new("user.rs", line + 1, 1));
    let places = (0..places + 2).map(place).collect();
    let mut machine = Unrolled { graph, places };
    let sum = State::result(&mut machine, statements, n);
    let root = machine.graph.root();
    machine.graph.blocks[root].end = End::Return([sum].into_iter().collect());
    machine.graph
}

#[test]
fn random_nests_have_the_same_results() {
    let (mut random, mut found) = (Random::new(7), 0);
    for round in 0..600 {
        let n = 6 + random.below(5);
        let mut generator = Generator { random: &mut random, n, places: 0 };
        let statements = generator.statements(0);
        let places = generator.places;
        let graph = unrolled(&statements, places, n);
        let Some(nests) = recognise_nests(&graph, MOST_CELLS) else { continue };
        found += 1;
        verify(&nests).unwrap_or_else(|error| panic!("{round}: {error}\n{nests}"));
        let x: Vec<f64> = (0..n).map(|_| random.uniform(-2.0, 2.0)).collect();
        assert_eq!(interpret(&graph, &x), interpret(&nests, &x), "{round}\n{graph}\n{nests}");
    }
    assert!(found > 60, "{found}");
}

#[test]
fn random_nests_with_trace_loops_have_the_same_results() {
    let (mut random, mut found) = (Random::new(11), 0);
    for round in 0..200 {
        let n = 34 + random.below(8);
        let mut generator = Generator { random: &mut random, n, places: 0 };
        let statements = generator.statements(0);
        let graph = recorded(n, true, |x| State::result(&mut Recorded(x), &statements, n));
        if graph.regions.is_empty() {
            continue;
        }
        let Some(nests) = recognise_nests(&graph, MOST_CELLS) else { continue };
        found += 1;
        verify(&nests).unwrap_or_else(|error| panic!("{round}: {error}\n{nests}"));
        let x: Vec<f64> = (0..n).map(|_| random.uniform(-2.0, 2.0)).collect();
        assert_eq!(interpret(&graph, &x), interpret(&nests, &x), "{round}\n{nests}");
        if found % 4 == 0 {
            compare(&format!("round {round}"), &graph, &nests);
        }
    }
    assert!(found > 10, "{found}");
}
