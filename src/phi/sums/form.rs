//! Closed forms of sums, and the ways to write them: as nodes in working precision, as the program
//! of a routine, and as a number, for translation validation.

use hashbrown::HashMap;

use super::extract::{Of, Variable};
use super::polynomial::Monomial;
use crate::numeric::double_double::Bounded;
use crate::numeric::{Instruction, Polynomial, Program, Slot};
use crate::op::Op;
use crate::phi::reason::SumReason;
use crate::phi::version::Cursor;
use crate::ssa::{Def, Graph, Node, PlaceId};

/// A coefficient: a number that was folded, or a node before the loop that computes it in a call.
#[derive(Clone, Copy, Debug)]
pub(super) enum Coefficient {
    Number(Bounded),
    Node(Node),
    /// The words and the error bound of a double-double.
    DoubleDouble([Node; 3]),
}

impl Coefficient {
    fn is_zero(self) -> bool {
        matches!(self, Coefficient::Number(number) if number.is_zero())
    }

    fn write<T: Target>(self, target: &mut T) -> Result<T::Value, SumReason> {
        match self {
            Coefficient::Number(number) => target.number(number),
            Coefficient::Node(node) => target.variable(Variable { node, of: Of::Itself }),
            Coefficient::DoubleDouble(words) => target.double_double(words),
        }
    }
}

/// A sum in closed form:
/// `(begin + first) · factor + Π factors · Σ moments · Π (variable - pivot)^exponent`.
#[derive(Clone)]
pub(super) struct Sum {
    pub(super) variables: Vec<Variable>,
    /// The variables that are factors of all terms, with their exponents.
    pub(super) factors: Vec<(usize, u8)>,
    pub(super) monomials: Vec<Monomial>,
    pub(super) moments: Vec<Coefficient>,
    /// The expansion point; zero for variables that have no coordinate.
    pub(super) pivot: Vec<Coefficient>,
    /// What the sum begins with: a number, or a node.
    pub(super) begin: f64,
    /// Whether that number is among the moments.
    pub(super) is_begun: bool,
    pub(super) first: Option<Node>,
    /// What that is multiplied by.
    pub(super) factor: Bounded,
}

/// Where a closed form is written.
pub(super) trait Target {
    type Value: Copy;
    fn number(&mut self, number: Bounded) -> Result<Self::Value, SumReason>;
    fn variable(&mut self, variable: Variable) -> Result<Self::Value, SumReason>;
    fn double_double(&mut self, words: [Node; 3]) -> Result<Self::Value, SumReason>;
    fn apply(&mut self, op: Op, args: [Self::Value; 2]) -> Result<Self::Value, SumReason>;
}

impl Sum {
    /// The same with these moments.
    pub(super) fn with_moments(&self, factor: Bounded, moments: &[Bounded]) -> Sum {
        let moments = moments.iter().map(|&moment| Coefficient::Number(moment)).collect();
        Sum { factor, moments, ..self.clone() }
    }

    /// The nodes that its terms depend on, without what is a factor of all.
    pub(super) fn summed(&self) -> impl Iterator<Item = Node> {
        let is_summed = |at: usize| self.monomials.iter().any(|of| of.exponents[at] > 0);
        let variables = self.variables.iter().enumerate();
        variables.filter(move |&(at, _)| is_summed(at)).map(|(_, variable)| variable.node)
    }

    /// The nodes that it depends on.
    pub(super) fn nodes(&self) -> Vec<Node> {
        let mut nodes: Vec<Node> = Vec::new();
        for node in self.variables.iter().map(|variable| variable.node).chain(self.first) {
            if !nodes.contains(&node) {
                nodes.push(node);
            }
        }
        nodes
    }

    /// The number of additions and multiplications of a form in working precision.
    pub(super) fn steps(&self) -> u64 {
        (2 * self.monomials.len() + self.variables.len() + self.factors.len()) as u64
    }

    /// Writes the form.
    pub(super) fn write<T: Target>(&self, target: &mut T) -> Result<T::Value, SumReason> {
        let mut differences = Vec::new();
        for (number, &variable) in self.variables.iter().enumerate() {
            // A factor is not measured from anywhere.
            if !self.monomials.iter().any(|monomial| monomial.exponents[number] > 0) {
                differences.push(None);
                continue;
            }
            let mut value = target.variable(variable)?;
            if let Some(pivot) = self.pivot.get(number).filter(|pivot| !pivot.is_zero()) {
                let pivot = pivot.write(target)?;
                value = target.apply(Op::Sub, [value, pivot])?;
            }
            differences.push(Some(value));
        }
        let all: Vec<usize> = (0..self.monomials.len()).collect();
        let mut form = self.nested(target, &all, &differences)?;
        for &(variable, exponent) in &self.factors {
            let Some(mut product) = form else { break };
            for _ in 0..exponent {
                let Variable { node, of } = self.variables[variable];
                let (op, of) = match of {
                    Of::Inverse => (Op::Div, Of::Itself),
                    Of::Decay => (Op::Div, Of::Exponential),
                    of => (Op::Mul, of),
                };
                let factor = target.variable(Variable { node, of })?;
                product = target.apply(op, [product, factor])?;
            }
            form = Some(product);
        }
        let begin = if self.is_begun { 0.0 } else { self.begin };
        let begin = self.factor * Bounded::exact(begin);
        let first = match self.first {
            None if begin.is_zero() => None,
            None => Some(target.number(begin)?),
            Some(node) => {
                let first = target.variable(Variable { node, of: Of::Itself })?;
                if self.factor == Bounded::ONE {
                    Some(first)
                } else {
                    let factor = target.number(self.factor)?;
                    Some(target.apply(Op::Mul, [first, factor])?)
                }
            }
        };
        match (first, form) {
            (Some(first), Some(form)) => target.apply(Op::Add, [first, form]),
            (Some(form), None) | (None, Some(form)) => Ok(form),
            (None, None) => target.number(Bounded::ZERO),
        }
    }

    /// The sum of these monomials times their moments, by Horner's rule.
    fn nested<T: Target>(
        &self,
        target: &mut T,
        monomials: &[usize],
        variables: &[Option<T::Value>],
    ) -> Result<Option<T::Value>, SumReason> {
        let Some((&variable, rest)) = variables.split_first() else {
            let moment = monomials.first().map(|&at| self.moments[at]);
            return moment.filter(|moment| !moment.is_zero()).map(|m| m.write(target)).transpose();
        };
        let number = self.variables.len() - variables.len();
        let exponent = |at: usize| self.monomials[at].exponents[number];
        let degree = monomials.iter().map(|&at| exponent(at)).max().unwrap_or(0);
        let mut form: Option<T::Value> = None;
        for power in (0..=degree).rev() {
            let inner: Vec<usize> =
                monomials.iter().copied().filter(|&at| exponent(at) == power).collect();
            if let (Some(sum), Some(variable)) = (form, variable) {
                form = Some(target.apply(Op::Mul, [sum, variable])?);
            }
            let inner = self.nested(target, &inner, rest)?;
            form = match (form, inner) {
                (Some(form), Some(inner)) => Some(target.apply(Op::Add, [form, inner])?),
                (form, inner) => form.or(inner),
            };
        }
        Ok(form)
    }

    /// The routine that evaluates it, and its inputs.
    pub(super) fn routine(
        &self,
        is_differentiated: impl Fn(Node) -> bool,
    ) -> Result<(Polynomial, Vec<Node>), SumReason> {
        let mut routine = Writer::default();
        let start = match self.first {
            Some(node) => routine.variable(Variable { node, of: Of::Itself })?,
            None => routine.number(Bounded::ZERO)?,
        };
        let value = self.write(&mut routine)?;
        let (program, inputs, differentiated) = routine.finish(is_differentiated);
        let polynomial = Polynomial::new(program, start, value, differentiated);
        Ok((polynomial.map_err(|_| SumReason::TooManySteps)?, inputs))
    }
}

/// Writes nodes before a loop.
pub(super) struct Nodes<'a> {
    pub(super) graph: &'a mut Graph,
    pub(super) cursor: &'a mut Cursor,
    pub(super) place: Option<PlaceId>,
    /// For each node what it is before the loop.
    pub(super) moved: Vec<(Node, Node)>,
}

impl Target for Nodes<'_> {
    type Value = Node;

    fn number(&mut self, number: Bounded) -> Result<Node, SumReason> {
        Ok(self.graph.push_const(number.hi.to_bits()))
    }

    fn variable(&mut self, Variable { node, of }: Variable) -> Result<Node, SumReason> {
        let known = self.moved.iter().find(|(before, _)| *before == node);
        let node = known.map_or(node, |&(_, moved)| moved);
        match of {
            Of::Itself => Ok(node),
            Of::Exponential => self.apply(Op::Exp, [node, node]),
            Of::Inverse => self.apply(Op::Recip, [node, node]),
            Of::Decay => {
                let negative = self.apply(Op::Neg, [node, node])?;
                self.apply(Op::Exp, [negative, negative])
            }
        }
    }

    fn double_double(&mut self, _: [Node; 3]) -> Result<Node, SumReason> {
        Err(SumReason::DataOfCall)
    }

    fn apply(&mut self, op: Op, [a, b]: [Node; 2]) -> Result<Node, SumReason> {
        Ok(self.cursor.push(self.graph, Def::Apply(op, [a, b, a]), self.place))
    }
}

/// Writes the program of a routine.
#[derive(Default)]
pub(super) struct Writer {
    program: Program,
    inputs: Vec<Node>,
    slots: HashMap<Variable, Slot>,
}

impl Writer {
    fn push(&mut self, instruction: Instruction) -> Result<Slot, SumReason> {
        self.program.push(instruction).map_err(|_| SumReason::TooManySteps)
    }

    fn input(&mut self, node: Node) -> u32 {
        self.inputs.push(node);
        self.program.add_input()
    }

    /// The program with its inputs, and those to differentiate by.
    pub(super) fn finish(
        self,
        is_differentiated: impl Fn(Node) -> bool,
    ) -> (Program, Vec<Node>, Vec<u32>) {
        let Writer { program, inputs, .. } = self;
        let numbered = (0u32..).zip(&inputs).filter(|(_, input)| is_differentiated(**input));
        let differentiated = numbered.map(|(number, _)| number).collect();
        (program, inputs, differentiated)
    }
}

impl Target for Writer {
    type Value = Slot;

    fn number(&mut self, number: Bounded) -> Result<Slot, SumReason> {
        let is_exact = number.lo == 0.0 && number.bound == 0.0;
        self.push(if is_exact {
            Instruction::Constant(number.hi)
        } else {
            Instruction::Folded(number)
        })
    }

    fn variable(&mut self, variable: Variable) -> Result<Slot, SumReason> {
        if let Some(&slot) = self.slots.get(&variable) {
            return Ok(slot);
        }
        let Variable { node, of } = variable;
        let slot = match of {
            Of::Itself => {
                let input = self.input(node);
                self.push(Instruction::Input(input))?
            }
            Of::Exponential => {
                let exponent = self.variable(Variable { node, of: Of::Itself })?;
                self.push(Instruction::Apply(Op::Exp, [exponent; 2]))?
            }
            Of::Inverse | Of::Decay => {
                let divisor = self.variable(Variable { node, of: of.inverse() })?;
                let one = self.push(Instruction::Constant(1.0))?;
                self.push(Instruction::Apply(Op::Div, [one, divisor]))?
            }
        };
        self.slots.insert(variable, slot);
        Ok(slot)
    }

    fn double_double(&mut self, words: [Node; 3]) -> Result<Slot, SumReason> {
        let [first, ..] = words.map(|node| self.input(node));
        self.push(Instruction::Bounded(first))
    }

    fn apply(&mut self, op: Op, args: [Slot; 2]) -> Result<Slot, SumReason> {
        self.push(Instruction::Apply(op, args))
    }
}
