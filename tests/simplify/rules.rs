//! Each rewrite rule on numbers: an instance of its left-hand side, with guards that imply ranges
//! of the variables, is simplified. The result is about as accurate as the original, against
//! multiple precision, finite where that is, and NaN if an operand is. Without its facts a rule
//! does nothing.

use dashu_float::FBig;
use dashu_float::round::mode::HalfEven;
use phigrad::internals::Random;
use phigrad::internals::op::{Op, eval};
use phigrad::internals::simplify::{SimplifyLimits, Stage, Tag, rewrite_rules, simplify_segments};
use phigrad::internals::soi::divide;
use phigrad::internals::ssa::{Def, End, Graph, Node, Outcome, interpret, parse};

/// The left-hand side of a rule.
enum Tree {
    Letter(char),
    Number(f64),
    Apply(Op, Vec<Tree>),
}

impl Tree {
    fn read<'a>(words: &mut impl Iterator<Item = &'a str>) -> Tree {
        let word = words.next().unwrap();
        if word == "(" {
            let op = Op::from_name(words.next().unwrap()).unwrap();
            let operands = (0..op.arity()).map(|_| Tree::read(words)).collect();
            assert_eq!(words.next(), Some(")"));
            return Tree::Apply(op, operands);
        }
        match word.strip_prefix('?') {
            Some(name) => Tree::Letter(name.chars().next().unwrap()),
            None => Tree::Number(word.parse().unwrap()),
        }
    }

    fn parse(text: &str) -> Tree {
        let spaced = text.replace('(', " ( ").replace(')', " ) ");
        Tree::read(&mut spaced.split_whitespace())
    }

    fn letters(&self, all: &mut Vec<char>) {
        match self {
            Tree::Letter(name) if !all.contains(name) => all.push(*name),
            Tree::Letter(_) | Tree::Number(_) => {}
            Tree::Apply(_, operands) => operands.iter().for_each(|tree| tree.letters(all)),
        }
    }
}

/// The bounds of each variable that guards imply.
type Scenario = fn(char) -> [f64; 2];

const ANY: [f64; 2] = [f64::NEG_INFINITY, f64::INFINITY];
const SCENARIOS: &[Scenario] = &[
    |_| ANY,
    |_| [0.0, f64::INFINITY],
    |_| [1e-3, f64::INFINITY],
    |_| [-100.0, 100.0],
    |_| [0.5, 8.0],
    |name| if name == 'x' { [-40.0, 0.0] } else { ANY },
    |name| if name == 'a' { [5.0, 8.0] } else { [1.0, 2.0] },
    |name| if name == 'a' { [1.0, 2.0] } else { [5.0, 8.0] },
];
const CONSTANTS: &[[f64; 2]] = &[[1.5, 0.5], [2.5, 3.0], [-0.75, 2.0], [0.5, 1.25]];

/// Rules that lower the cost only together with others.
const IN_COMPANY: &[(&str, &str)] = &[
    ("magnitude-of-difference", "(add (abs (sub ?a ?b)) (abs (sub ?b ?a)))"),
    ("common-divisor", "(add (div ?a ?b) (div ?c ?b))"),
];

/// An instance of a left-hand side, and its simplified form.
struct Instance {
    tree: Tree,
    /// The inputs.
    letters: Vec<char>,
    bounds: Vec<[f64; 2]>,
    constants: Option<[f64; 2]>,
    original: Graph,
    simplified: Graph,
}

/// A graph as text. Constants come before steps.
#[derive(Default)]
struct Text {
    inputs: usize,
    constants: Vec<f64>,
    steps: Vec<String>,
}

impl Text {
    fn constant(&mut self, value: f64) -> String {
        self.constants.push(value);
        format!("c{}.", self.constants.len() - 1)
    }

    fn step(&mut self, step: String) -> String {
        self.steps.push(step);
        format!("s{}.", self.steps.len() - 1)
    }

    fn tree(&mut self, tree: &Tree, value: &impl Fn(char, &mut Text) -> String) -> String {
        match tree {
            Tree::Letter(name) => value(*name, self),
            Tree::Number(number) => self.constant(*number),
            Tree::Apply(op, operands) => {
                let operands: Vec<String> =
                    operands.iter().map(|operand| self.tree(operand, value)).collect();
                self.step(format!("{op} {}", operands.join(" ")))
            }
        }
    }

    fn graph(&self, outputs: &str) -> Graph {
        let Text { inputs, constants, steps } = self;
        let mut text = format!("graph active {inputs} inactive 0\n");
        for (number, value) in constants.iter().enumerate() {
            text += &format!("c{number}. = const {value:?}\n");
        }
        text += "b0:\n";
        for (number, step) in steps.iter().enumerate() {
            text += &match step.starts_with("guard") {
                true => format!("  {step}\n"),
                false => format!("  s{number}. = {step}\n"),
            };
        }
        text += &format!("  return {outputs}\n");
        let values = (0..constants.len()).map(|number| format!("c{number}."));
        let is_value = |number: &usize| !steps[*number].starts_with("guard");
        let steps = (0..steps.len()).filter(is_value).map(|number| format!("s{number}."));
        for (node, name) in (*inputs..).zip(values.chain(steps)) {
            text = text.replace(&name, &format!("v{node}"));
        }
        parse(&text).unwrap()
    }
}

impl Instance {
    fn of(name: &str, left: &str, scenario: Scenario, constants: Option<[f64; 2]>) -> Instance {
        let left =
            IN_COMPANY.iter().find(|(rule, _)| *rule == name).map_or(left, |&(_, text)| text);
        let tree = Tree::parse(left);
        let mut letters = Vec::new();
        tree.letters(&mut letters);
        letters.retain(|name| constants.is_none() || !['k', 'm'].contains(name));
        let mut text = Text { inputs: letters.len(), ..Text::default() };
        let bounds: Vec<[f64; 2]> = letters.iter().map(|&name| scenario(name)).collect();
        for (input, [lower, upper]) in bounds.iter().enumerate() {
            for (op, bound) in [("ge", *lower), ("le", *upper)] {
                if bound.is_finite() {
                    let bound = text.constant(bound);
                    let condition = text.step(format!("{op} v{input} {bound}"));
                    text.step(format!("guard {condition}"));
                }
            }
        }
        let value =
            |name: char, text: &mut Text| match letters.iter().position(|&same| same == name) {
                Some(input) => format!("v{input}"),
                None => text.constant(constants.unwrap()[usize::from(name == 'm')]),
            };
        let output = text.tree(&tree, &value);
        // With a select that becomes its arm, so that an e-graph is built.
        let output = text.step(format!("select v0 {output} {output}"));
        let original = text.graph(&output);
        let segments = divide(&original, 200);
        let limits = SimplifyLimits::DEFAULT;
        let simplified = simplify_segments(&original, &segments, Stage::Final, limits).graph;
        Instance { tree, letters, bounds, constants, original, simplified }
    }

    fn has_changed(&self) -> bool {
        let output = |graph: &Graph| match &graph.blocks[graph.root()].end {
            End::Return(outputs) => outputs[0],
            _ => panic!("{graph}"),
        };
        let arm = self.original.operands(output(&self.original))[1];
        term(&self.original, arm) != term(&self.simplified, output(&self.simplified))
    }

    /// The values of the original and of the simplified form.
    fn values(&self, inputs: &[f64]) -> [f64; 2] {
        [&self.original, &self.simplified].map(|graph| match interpret(graph, inputs) {
            Outcome::Values(values) => values[0],
            Outcome::Unseen(why) => panic!("{why:?} at {inputs:?}\n{graph}"),
        })
    }

    /// The errors of both values against the exact one, if there is one.
    fn errors(&self, inputs: &[f64]) -> Option<[f64; 2]> {
        let (_, exact) = self.exact(&self.tree, inputs)?;
        let distance = |x: f64| (exact.clone() - precise(x)).to_f64().value().abs();
        Some(self.values(inputs).map(|x| if x.is_finite() { distance(x) } else { f64::INFINITY }))
    }

    /// The value of `tree` and that in multiple precision, if it has one.
    fn exact(&self, tree: &Tree, inputs: &[f64]) -> Option<(f64, Precise)> {
        match tree {
            Tree::Number(value) => Some((*value, precise(*value))),
            Tree::Letter(name) => {
                let value = match self.letters.iter().position(|letter| letter == name) {
                    Some(input) => inputs[input],
                    None => self.constants.unwrap()[usize::from(*name == 'm')],
                };
                value.is_finite().then(|| (value, precise(value)))
            }
            Tree::Apply(op, operands) => {
                let operands: Option<Vec<(f64, Precise)>> =
                    operands.iter().map(|operand| self.exact(operand, inputs)).collect();
                let (rounded, exact): (Vec<f64>, Vec<Precise>) = operands?.into_iter().unzip();
                let arg = |i: usize| rounded.get(i).copied().unwrap_or(0.0);
                let value = eval(*op, [arg(0), arg(1), arg(2)]);
                let exact = applied(*op, &exact).filter(|_| value.is_finite())?;
                Some((value, exact))
            }
        }
    }
}

/// The expression of `node`, independent of node ids and the order of factors.
fn term(graph: &Graph, node: Node) -> String {
    match graph.nodes[node].def {
        Def::Apply(op, _) => {
            let operands = graph.operands(node).iter().map(|&operand| term(graph, operand));
            let mut operands: Vec<String> = operands.collect();
            if matches!(op, Op::Add | Op::Mul) {
                operands.sort();
            }
            format!("({op} {})", operands.join(" "))
        }
        Def::Const(bits) => f64::from_bits(bits).to_string(),
        _ => node.to_string(),
    }
}

type Precise = FBig<HalfEven, 2>;

const BITS: usize = 200;

fn precise(x: f64) -> Precise {
    FBig::try_from(x).unwrap().with_precision(BITS).value()
}

/// `op` of these numbers, if it is finite.
fn applied(op: Op, args: &[Precise]) -> Option<Precise> {
    let (a, b) = (&args[0], args.get(1).unwrap_or(&args[0]));
    let zero = precise(0.0);
    let exact = match op {
        Op::Add => a + b,
        Op::Sub => a - b,
        Op::Mul => a * b,
        Op::Div if *b != zero && *a == zero => zero,
        Op::Div if *b != zero => a / b,
        Op::Recip if *a != zero => precise(1.0) / a,
        Op::Neg => -a,
        Op::Sqrt if *a >= zero => a.sqrt(),
        Op::Exp => a.exp(),
        Op::Ln if *a > zero => a.ln(),
        Op::Ln1p if *a > precise(-1.0) => a.ln_1p(),
        Op::Powf => {
            let exponent = b.to_f64().value();
            if *a > zero {
                (a.ln() * b).exp()
            } else if exponent.fract() == 0.0 && exponent >= 0.0 {
                (0..exponent as u32).fold(precise(1.0), |product, _| product * a)
            } else if exponent == -1.0 && *a != zero {
                precise(1.0) / a
            } else {
                return None;
            }
        }
        Op::Abs => {
            if *a < zero {
                -a
            } else {
                a.clone()
            }
        }
        Op::Max => {
            if a > b {
                a.clone()
            } else {
                b.clone()
            }
        }
        Op::Min => {
            if a < b {
                a.clone()
            } else {
                b.clone()
            }
        }
        Op::Select => {
            if *a != zero {
                b.clone()
            } else {
                args[2].clone()
            }
        }
        _ => return None,
    };
    Some(exact.with_precision(BITS).value())
}

/// A number near to 0, 1 or -1, at any distance.
fn near(random: &mut Random) -> f64 {
    let distance = 10f64.powf(-16.0 * random.uniform(0.0, 1.0));
    let signed = if random.chance(0.5) { -distance } else { distance };
    signed + random.pick(&[0.0, 0.0, 1.0, -1.0])
}

fn ulp(x: f64) -> f64 {
    (x.abs().next_up() - x.abs()).max(f64::MIN_POSITIVE)
}

/// Calls `check` with an instance of each rule in each scenario in which it is simplified.
fn for_each_instance(mut check: impl FnMut(&str, Tag, &Instance)) {
    for rule in rewrite_rules() {
        let has_constants = rule.left.contains("?k");
        let constants = if has_constants { CONSTANTS } else { &CONSTANTS[..1] };
        let mut has_changed = false;
        for &scenario in SCENARIOS {
            for &constants in constants {
                let instance = Instance::of(rule.name, rule.left, scenario, Some(constants));
                if instance.has_changed() {
                    has_changed = true;
                    check(rule.name, rule.tag, &instance);
                }
            }
        }
        assert!(has_changed, "{} never holds", rule.name);
    }
}

#[test]
fn rules_are_accurate_where_they_hold() {
    let mut random = Random::new(17);
    for_each_instance(|name, tag, instance| {
        for number in 0..30 {
            let mut inputs = Vec::new();
            for &[lower, upper] in &instance.bounds {
                let (lower, upper) = (lower.max(-30.0), upper.min(30.0));
                inputs.push(match number % 3 {
                    // Near 0 and 1, where digits are lost.
                    0 => near(&mut random).clamp(lower, upper),
                    _ => random.uniform(lower, upper),
                });
            }
            let [old, new] = instance.values(&inputs);
            // With facts other rules apply as well, which may change the sign of a zero.
            if tag == Tag::Exact && instance.bounds.iter().all(|bounds| *bounds == ANY) {
                assert!(old.to_bits() == new.to_bits() || old.is_nan(), "{name} {inputs:?}");
            }
            let Some([_, error]) = instance.errors(&inputs) else { continue };
            // The tape may happen to be exact at one point.
            let near = [0.0, -2e-16, 2e-16, -3e-9, -1e-9, 1e-9, 2e-9].map(|step| {
                let inputs = inputs.iter().zip(&instance.bounds);
                let inputs = inputs.map(|(x, [lower, upper])| (x + x * step).clamp(*lower, *upper));
                instance.errors(&inputs.collect::<Vec<_>>()).map_or(0.0, |[old, _]| old)
            });
            let bound = 4.0 * near.into_iter().fold(0.0, f64::max) + 4.0 * ulp(old);
            assert!(
                error <= bound,
                "{name}: {new:e} for {old:e} at {inputs:?}\n{}",
                instance.simplified
            );
        }
    });
}

#[test]
fn rules_add_no_infinities_and_propagate_nan() {
    let sizes = [
        0.0,
        5e-324,
        1e-310,
        1e-200,
        1e-9,
        0.3,
        1.0,
        2.0,
        30.0,
        700.5,
        709.5,
        745.0,
        800.0,
        1e9,
        1e154,
        1e200,
        1e308,
        f64::INFINITY,
    ];
    let mut random = Random::new(5);
    for_each_instance(|name, _, instance| {
        for _ in 0..250 {
            let mut inputs = Vec::new();
            for &[lower, upper] in &instance.bounds {
                let size = random.pick(&sizes);
                let x: f64 = if random.chance(0.5) { -size } else { size };
                inputs.push(x.clamp(lower, upper));
            }
            let [old, new] = instance.values(&inputs);
            // A product near the largest number may round to infinity.
            let is_finite = old.is_finite() && old.abs() < 1e305;
            assert!(!is_finite || new.is_finite(), "{name}: {new} for {old} at {inputs:?}");
            for (input, bounds) in instance.bounds.iter().enumerate() {
                if *bounds == ANY {
                    let before = std::mem::replace(&mut inputs[input], f64::NAN);
                    let [old, new] = instance.values(&inputs);
                    assert!(!old.is_nan() || new.is_nan(), "{name} forgets {inputs:?}");
                    inputs[input] = before;
                }
            }
        }
    });
}

#[test]
fn rules_do_nothing_without_the_facts_that_they_need() {
    for rule in rewrite_rules() {
        let needs_fact = rule.tag == Tag::NeedsFact;
        let constants = (!needs_fact).then_some(CONSTANTS[0]);
        let instance = Instance::of(rule.name, rule.left, |_| ANY, constants);
        // Another rule is about the same terms.
        let is_other = rule.name == "logarithm-of-1-and-power-at-most-1";
        assert_eq!(instance.has_changed(), !needs_fact || is_other, "{}", rule.name);
    }
}

#[test]
fn rules_have_names_of_their_own() {
    let mut names: Vec<&str> = rewrite_rules().map(|rule| rule.name).collect();
    names.sort_unstable();
    let count = names.len();
    names.dedup();
    assert_eq!(names.len(), count);
}
