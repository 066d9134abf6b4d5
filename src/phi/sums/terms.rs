//! What a loop adds up, as a program over polynomials: which parts are data,
//! which are invariant in the loop, and what is computed of them.

use hashbrown::{HashMap, HashSet};
use smallvec::SmallVec;

use super::chain::Added;
use super::choice::{self, Choice, Part};
use crate::op::Op;
use crate::phi::draft::Draft;
use crate::ssa::{AccessData, Def, Node, Region, SeriesData, Table};

/// Where polynomials end: the largest degree of a term.
pub(super) const DEGREE: u32 = 4;

/// The same where the data are known only in a call: quotients are products with inverses
/// there, which have degrees of their own.
const LARGE_DEGREE: u32 = 6;

/// How many nodes before a loop are taken as lines in others.
const LINES: usize = 8;

/// What is said of a value of a region in the loop.
pub(super) const INNER: &str = "a region in it has no closed form";

/// What is said of a condition that has no data alone.
const CHOSEN: &str = "what it adds is chosen by what is not data";

/// So many steps may compute what a sum begins with.
const FIRST: usize = 64;

/// One step of the program.
#[derive(Clone, Debug)]
pub(super) enum Step {
    Number(f64),
    /// The number at `base` plus each stride times the iteration of its loop.
    Element {
        numbers: Table,
        /// What rounding has taken from each of them.
        lost: Option<Table>,
        base: i64,
        strides: Vec<(usize, i64)>,
    },
    /// The iteration of the loop with this number.
    Iteration(usize),
    /// The variable with this number.
    Variable(usize),
    /// A node that is known before the loop.
    Known(Node),
    /// What this element of a series is, which is known before the loop.
    Read(AccessData),
    /// An operation on the results of former steps.
    Apply(Op, [usize; 3]),
}

/// The terms that an iteration adds, as functions of variables and iterations.
#[derive(Clone, Debug)]
pub(super) struct Terms {
    pub(super) steps: Vec<Step>,
    /// The degree of the result of each step.
    pub(super) degrees: Vec<u32>,
    /// The results that are added, or subtracted where the sign is negative.
    pub(super) added: Vec<(f64, usize)>,
    /// The result with which the sum begins, if that is a polynomial in the variables, too.
    pub(super) begin: Option<usize>,
    /// What is a variable: nodes that are invariant in the loop.
    pub(super) variables: Vec<Node>,
    /// The loop itself, then loops around it whose iterations matter.
    pub(super) loops: Vec<Region>,
}

impl Terms {
    pub(super) fn degree(&self) -> u32 {
        let begin = self.begin.iter().copied();
        let all = self.added.iter().map(|&(_, step)| step).chain(begin);
        all.map(|step| self.degrees[step]).max().unwrap_or(0)
    }

    /// These terms of a sum that begins with `first`: often the term of an iteration before
    /// the loop, from which the others must not be apart where all of them cancel.
    pub(super) fn begun(
        mut self,
        draft: &Draft,
        first: Node,
        inverses: &HashMap<Node, Node>,
    ) -> Terms {
        let (before, size) = (self.clone(), self.steps.len());
        let (lines, varies) = (HashSet::new(), HashMap::new());
        let variable = |(number, step): (usize, &Step)| match *step {
            Step::Variable(variable) => Some((draft.resolve(self.variables[variable]), number)),
            _ => None,
        };
        let steps = self.steps.iter().enumerate().filter_map(variable).collect();
        let region = self.loops[0];
        let variables = Variables::Small;
        self.begin = None;
        let mut search =
            Search { draft, region, variables, inverses, lines, varies, steps, terms: self };
        match search.begin(first) {
            Some(step) if search.terms.steps.len() <= size + FIRST => {
                search.terms.begin = Some(step);
                search.terms
            }
            _ => before,
        }
    }
}

/// What counts as a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Variables {
    /// The largest invariant expressions.
    Large,
    /// The smallest: what is computed from others by sums and products is not, nor
    /// what is a line in another.
    Small,
    /// What is computed in this loop around, or depends on active inputs; all
    /// else that is known before that loop is data.
    Inside(Region),
}

/// The terms `added` in `region`; or why they are none. To divide by what has one of
/// `inverses` is to multiply by that.
pub(super) fn terms(
    draft: &Draft,
    region: Region,
    added: &[Added],
    variables: Variables,
    inverses: &HashMap<Node, Node>,
) -> Result<Terms, String> {
    let mut search = Search {
        draft,
        region,
        variables,
        inverses,
        lines: HashSet::new(),
        varies: HashMap::new(),
        steps: HashMap::new(),
        terms: Terms {
            steps: Vec::new(),
            degrees: Vec::new(),
            added: Vec::new(),
            begin: None,
            variables: Vec::new(),
            loops: vec![region],
        },
    };
    search.terms.added = search.added(added)?;
    Ok(search.terms)
}

pub(super) struct Search<'a> {
    pub(super) draft: &'a Draft,
    pub(super) region: Region,
    pub(super) variables: Variables,
    inverses: &'a HashMap<Node, Node>,
    /// What is known before the loop and taken as a line in another.
    lines: HashSet<Node>,
    /// Whether a node changes from one iteration of the loop to the next.
    pub(super) varies: HashMap<Node, bool>,
    /// The step of each node.
    steps: HashMap<Node, usize>,
    terms: Terms,
}

impl Search<'_> {
    /// The steps that are added, with their signs.
    fn added(&mut self, added: &[Added]) -> Result<Vec<(f64, usize)>, String> {
        let mut steps = Vec::new();
        for added in added {
            match added {
                Added::Term(sign, node) => steps.push((*sign, self.find(*node)?)),
                Added::Choice { condition, then, otherwise } => {
                    let condition = self.find(*condition)?;
                    let (then, otherwise) = (self.total(then)?, self.total(otherwise)?);
                    if self.terms.degrees[condition] > 0 {
                        return Err(CHOSEN.to_owned());
                    }
                    let degree = self.terms.degrees[then].max(self.terms.degrees[otherwise]);
                    let choice = Step::Apply(Op::Select, [condition, then, otherwise]);
                    steps.push((1.0, self.push(choice, degree)));
                }
            }
        }
        Ok(steps)
    }

    /// The step that is all of `added`.
    fn total(&mut self, added: &[Added]) -> Result<usize, String> {
        let mut total: Option<usize> = None;
        for (sign, step) in self.added(added)? {
            let (op, args) = match total {
                None if sign > 0.0 => {
                    total = Some(step);
                    continue;
                }
                None => (Op::Neg, [step; 3]),
                Some(total) if sign > 0.0 => (Op::Add, [total, step, step]),
                Some(total) => (Op::Sub, [total, step, step]),
            };
            let degrees = args.map(|arg| self.terms.degrees[arg]);
            total = Some(self.push(Step::Apply(op, args), degrees[0].max(degrees[1])));
        }
        Ok(total.unwrap_or_else(|| self.push(Step::Number(0.0), 0)))
    }

    /// The step of `node`, with those before it.
    fn find(&mut self, node: Node) -> Result<usize, String> {
        // The operands first, without recursion: bodies may be long.
        let mut pending = vec![(self.draft.resolve(node), false)];
        while let Some((node, ready)) = pending.pop() {
            if self.steps.contains_key(&node) {
                continue;
            }
            if !self.is_open(node)? {
                let step = self.leaf(node)?;
                self.steps.insert(node, step);
            } else if ready {
                let step = match choice::of(self.draft, self.region, node) {
                    Some(choice) => self.chosen(&choice)?,
                    None => self.apply(node)?,
                };
                self.steps.insert(node, step);
            } else {
                pending.push((node, true));
                let args = self.operands(node);
                pending.extend(args.into_iter().map(|arg| (arg, false)));
            }
        }
        let node = self.draft.resolve(node);
        self.steps.get(&node).copied().ok_or_else(|| "it has no step".to_owned())
    }

    /// The step of `first`, which is known before the loop, if it is a polynomial in numbers
    /// and the variables that there are.
    fn begin(&mut self, first: Node) -> Option<usize> {
        let first = self.draft.resolve(first);
        if self.draft.graph.constant(first).is_some() {
            return None;
        }
        let mut pending = vec![(first, false)];
        while let Some((node, ready)) = pending.pop() {
            if self.steps.contains_key(&node) {
                continue;
            }
            if pending.len() + self.steps.len() > 4 * FIRST {
                return None;
            }
            let step = match self.draft.graph.nodes[node].def {
                Def::Const(bits) => self.push(Step::Number(f64::from_bits(bits)), 0),
                Def::Apply(..) if ready => self.apply(node).ok()?,
                Def::Apply(..) => {
                    pending.push((node, true));
                    pending.extend(self.factors(node).into_iter().map(|arg| (arg, false)));
                    continue;
                }
                _ => return None,
            };
            self.steps.insert(node, step);
        }
        self.steps.get(&first).copied()
    }

    /// What the step of `node`, an application or a choice, is made of.
    fn operands(&self, node: Node) -> SmallVec<[Node; 3]> {
        match choice::of(self.draft, self.region, node) {
            Some(choice) => choice.nodes().collect(),
            None => self.factors(node),
        }
    }

    /// The step that chooses between those of the sides.
    fn chosen(&mut self, choice: &Choice) -> Result<usize, String> {
        let mut steps: Vec<usize> = Vec::new();
        for part in &choice.parts {
            let step = match *part {
                Part::Value(node) => self.known_step(node)?,
                Part::Choose(condition) => {
                    let condition = self.known_step(condition)?;
                    if self.terms.degrees[condition] > 0 {
                        return Err(CHOSEN.to_owned());
                    }
                    let (Some(otherwise), Some(then)) = (steps.pop(), steps.pop()) else {
                        return Err("it has no step".to_owned());
                    };
                    let degree = self.terms.degrees[then].max(self.terms.degrees[otherwise]);
                    self.push(Step::Apply(Op::Select, [condition, then, otherwise]), degree)
                }
            };
            steps.push(step);
        }
        steps.pop().ok_or_else(|| "it has no step".to_owned())
    }

    fn known_step(&self, node: Node) -> Result<usize, String> {
        self.steps.get(&node).copied().ok_or_else(|| "it has no step".to_owned())
    }

    /// The operands of `node`; of a quotient that is a product with an inverse its factors.
    fn factors(&self, node: Node) -> SmallVec<[Node; 3]> {
        let mut args: SmallVec<[Node; 3]> = self.draft.args(node).collect();
        if let (Def::Apply(Op::Div, _), Some(divisor)) =
            (self.draft.graph.nodes[node].def, args.get_mut(1))
            && let Some(&inverse) = self.inverses.get(divisor)
        {
            *divisor = inverse;
        }
        args
    }

    /// Whether the step of `node` is made of those of its operands.
    fn is_open(&mut self, node: Node) -> Result<bool, String> {
        if choice::of(self.draft, self.region, node).is_some() {
            // Before the loop it would be a region.
            return match self.varies(node)? {
                true => Ok(true),
                false => Err(INNER.to_owned()),
            };
        }
        let Def::Apply(op, _) = self.draft.graph.nodes[node].def else { return Ok(false) };
        if self.draft.folds(node) {
            return Ok(true);
        }
        if !self.draft.is_inside(node, self.region) {
            return Ok(self.variables == Variables::Small && self.opens_line(node, op));
        }
        if self.varies(node)? {
            return Ok(true);
        }
        let is_polynomial = matches!(op, Op::Add | Op::Sub | Op::Mul | Op::Neg | Op::MulAdd);
        Ok(match self.variables {
            Variables::Large => false,
            Variables::Small => is_polynomial,
            Variables::Inside(_) => {
                let is_data = |number: usize| {
                    self.draft.args(node).nth(number).is_some_and(|arg| self.draft.is_passive(arg))
                };
                let is_quotient = match op {
                    Op::Div | Op::Powi => is_data(1),
                    Op::Select => is_data(0),
                    _ => false,
                };
                is_polynomial || is_quotient || self.draft.is_passive(node)
            }
        })
    }

    /// Whether `node`, which is known before the loop, is taken as a line in
    /// another: as two variables they would depend on each other.
    fn opens_line(&mut self, node: Node, op: Op) -> bool {
        if self.lines.contains(&node) {
            return true;
        }
        let constants = self.draft.args(node).filter(|&arg| self.draft.folds(arg)).count();
        let is_line = matches!(op, Op::Add | Op::Sub | Op::Mul) && constants == 1;
        let opens = (is_line || op == Op::Neg) && self.lines.len() < LINES;
        if opens {
            self.lines.insert(node);
        }
        opens
    }

    /// The number of a loop whose iterations matter.
    fn numbered(&mut self, region: Region) -> usize {
        let loops = &mut self.terms.loops;
        loops.iter().position(|&known| known == region).unwrap_or_else(|| {
            loops.push(region);
            loops.len() - 1
        })
    }

    fn push(&mut self, step: Step, degree: u32) -> usize {
        self.terms.steps.push(step);
        self.terms.degrees.push(degree);
        self.terms.steps.len() - 1
    }

    fn leaf(&mut self, node: Node) -> Result<usize, String> {
        let graph = &self.draft.graph;
        if let Variables::Inside(outer) = self.variables {
            match graph.nodes[node].def {
                Def::Element(access) if !self.draft.folds(node) && self.is_known(access) => {
                    return Ok(self.push(Step::Read(graph.accesses[access].clone()), 0));
                }
                Def::Const(_) | Def::Iteration(_) | Def::Element(_) => {}
                _ if !self.draft.is_inside(node, outer) && self.draft.is_passive(node) => {
                    return Ok(self.push(Step::Known(node), 0));
                }
                _ => {}
            }
        }
        match graph.nodes[node].def {
            Def::Const(bits) => Ok(self.push(Step::Number(f64::from_bits(bits)), 0)),
            Def::Iteration(region) => {
                let number = self.numbered(region);
                Ok(self.push(Step::Iteration(number), 0))
            }
            Def::Element(access) if self.draft.folds(node) => {
                let data = graph.accesses[access].clone();
                let SeriesData::Constants(numbers) = &graph.series[data.series] else {
                    return Err("its terms read data that are known only in a call".to_owned());
                };
                let (numbers, lost) = (numbers.clone(), self.draft.lost.get(&node).cloned());
                let strides = data.strides.iter().filter(|&&(_, stride)| stride != 0);
                let strides = strides
                    .map(|&(region, stride)| (self.numbered(region), i64::from(stride)))
                    .collect();
                let base = i64::from(data.base);
                Ok(self.push(Step::Element { numbers, lost, base, strides }, 0))
            }
            _ => {
                if self.varies(node)? {
                    return Err("its terms read data that are known only in a call".to_owned());
                }
                let number = self.terms.variables.len();
                self.terms.variables.push(node);
                Ok(self.push(Step::Variable(number), 1))
            }
        }
    }

    fn apply(&mut self, node: Node) -> Result<usize, String> {
        let Def::Apply(mut op, _) = self.draft.graph.nodes[node].def else {
            return Err("it has no step".to_owned());
        };
        let factors = self.factors(node);
        if op == Op::Div && !self.draft.args(node).eq(factors.iter().copied()) {
            op = Op::Mul;
        }
        let mut args = [0; 3];
        for (to, arg) in args.iter_mut().zip(factors) {
            *to = self.steps.get(&arg).copied().ok_or_else(|| "it has no step".to_owned())?;
        }
        let degrees = args.map(|arg| self.terms.degrees.get(arg).copied().unwrap_or(0));
        let all = &degrees[..op.arity()];
        let most = all.iter().copied().max().unwrap_or(0);
        let degree = match op {
            Op::Add | Op::Sub | Op::Neg => most,
            Op::Mul => degrees[0] + degrees[1],
            Op::MulAdd => (degrees[0] + degrees[1]).max(degrees[2]),
            Op::Div if degrees[1] == 0 => degrees[0],
            Op::Select if degrees[0] == 0 => most,
            Op::Powi if degrees[0] > 0 => match self.exponent(args[1]) {
                Some(exponent) => degrees[0].saturating_mul(exponent),
                None => return Err("its terms are no polynomials".to_owned()),
            },
            _ if most == 0 => 0,
            _ => return Err(format!("{op} of what is not data is no polynomial")),
        };
        let most = match self.variables {
            Variables::Inside(_) => LARGE_DEGREE,
            Variables::Large | Variables::Small => DEGREE,
        };
        if degree > most {
            return Err(format!("its terms have a degree above {most}"));
        }
        Ok(self.push(Step::Apply(op, args), degree))
    }

    /// The exponent, if it is a small number above 0.
    fn exponent(&self, step: usize) -> Option<u32> {
        match self.terms.steps.get(step) {
            Some(&Step::Number(number)) if (1.0..=f64::from(DEGREE)).contains(&number) => {
                Some(number as u32)
            }
            _ => None,
        }
    }
}
