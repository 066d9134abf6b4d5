//! Closed forms of sums, and their lowering: to nodes in working precision, or to the program of a
//! routine.

use hashbrown::HashMap;

use super::extract::{Transform, Variable};
use super::polynomial::Monomial;
use crate::numeric::double_double::Bounded;
use crate::numeric::{Instruction, Polynomial, Program, Slot};
use crate::op::Op;
use crate::phi::reason::SumReason;
use crate::ssa::{Editor, Node, PlaceId, Region};

/// A coefficient: a folded number, or nodes before the loop that compute it in a call.
#[derive(Clone, Copy, Debug)]
pub(super) enum Coefficient {
    Number(Bounded),
    Node(Node),
    /// The high-order word, the low-order word and the error bound of a double-double.
    DoubleDouble([Node; 3]),
}

impl Coefficient {
    fn is_zero(self) -> bool {
        matches!(self, Coefficient::Number(number) if number.is_zero())
    }

    fn lower<T: Target>(self, target: &mut T) -> Result<T::Value, SumReason> {
        match self {
            Coefficient::Number(number) => target.number(number),
            Coefficient::Node(node) => {
                target.variable(Variable { node, transform: Transform::Identity })
            }
            Coefficient::DoubleDouble(words) => target.double_double(words),
        }
    }
}

/// A sum in closed form: `(start_number + start_node) · factor
/// + Π factors · Σ moments · Π (variable - expansion_point)^exponent`.
#[derive(Clone)]
pub(super) struct Sum {
    pub(super) variables: Vec<Variable>,
    /// The variables that are factors of all terms, with their exponents.
    pub(super) factors: Vec<(usize, u8)>,
    pub(super) monomials: Vec<Monomial>,
    pub(super) moments: Vec<Coefficient>,
    /// The expansion point; missing coordinates are zero.
    pub(super) expansion_point: Vec<Coefficient>,
    /// The first value of the sum, if it is a constant; zero if it is a node.
    pub(super) start_number: f64,
    /// True if `start_number` is included in the moments.
    pub(super) start_is_moment: bool,
    /// The first value of the sum, if it is no constant.
    pub(super) start_node: Option<Node>,
    /// The factor of the first value.
    pub(super) factor: Bounded,
}

/// The target of lowering a closed form.
pub(super) trait Target {
    type Value: Copy;
    fn number(&mut self, number: Bounded) -> Result<Self::Value, SumReason>;
    fn variable(&mut self, variable: Variable) -> Result<Self::Value, SumReason>;
    fn double_double(&mut self, words: [Node; 3]) -> Result<Self::Value, SumReason>;
    fn apply(&mut self, op: Op, args: [Self::Value; 2]) -> Result<Self::Value, SumReason>;
}

impl Sum {
    /// This sum with other moments and another factor of the first value.
    pub(super) fn with_moments(&self, factor: Bounded, moments: &[Bounded]) -> Sum {
        let moments = moments.iter().map(|&moment| Coefficient::Number(moment)).collect();
        Sum { factor, moments, ..self.clone() }
    }

    /// The nodes of the variables in its monomials, without common factors.
    pub(super) fn monomial_nodes(&self) -> impl Iterator<Item = Node> {
        let is_summed = |at: usize| self.monomials.iter().any(|of| of.exponents[at] > 0);
        let variables = self.variables.iter().enumerate();
        variables.filter(move |&(at, _)| is_summed(at)).map(|(_, variable)| variable.node)
    }

    /// The nodes of all variables, and of the first value.
    pub(super) fn nodes(&self) -> Vec<Node> {
        let mut nodes: Vec<Node> = Vec::new();
        for node in self.variables.iter().map(|variable| variable.node).chain(self.start_node) {
            if !nodes.contains(&node) {
                nodes.push(node);
            }
        }
        nodes
    }

    /// The number of additions and multiplications in working precision, approximately.
    pub(super) fn steps(&self) -> u64 {
        (2 * self.monomials.len() + self.variables.len() + self.factors.len()) as u64
    }

    /// Lowers the closed form to `target`.
    pub(super) fn lower<T: Target>(&self, target: &mut T) -> Result<T::Value, SumReason> {
        let mut differences = Vec::new();
        for (number, &variable) in self.variables.iter().enumerate() {
            // A common factor is not expanded around a point.
            if !self.monomials.iter().any(|monomial| monomial.exponents[number] > 0) {
                differences.push(None);
                continue;
            }
            let mut value = target.variable(variable)?;
            if let Some(expansion_point) =
                self.expansion_point.get(number).filter(|point| !point.is_zero())
            {
                let expansion_point = expansion_point.lower(target)?;
                value = target.apply(Op::Sub, [value, expansion_point])?;
            }
            differences.push(Some(value));
        }
        let all: Vec<usize> = (0..self.monomials.len()).collect();
        // The polynomial, then the common factors, then the first value.
        let mut form = self.horner(target, &all, &differences)?;
        for &(variable, exponent) in &self.factors {
            let Some(mut product) = form else { break };
            for _ in 0..exponent {
                let Variable { node, transform } = self.variables[variable];
                let (op, transform) = match transform {
                    Transform::Reciprocal => (Op::Div, Transform::Identity),
                    Transform::ExpNeg => (Op::Div, Transform::Exp),
                    transform => (Op::Mul, transform),
                };
                let factor = target.variable(Variable { node, transform })?;
                product = target.apply(op, [product, factor])?;
            }
            form = Some(product);
        }
        let start = if self.start_is_moment { 0.0 } else { self.start_number };
        let start = self.factor * Bounded::exact(start);
        let first = match self.start_node {
            None if start.is_zero() => None,
            None => Some(target.number(start)?),
            Some(node) => {
                let first = target.variable(Variable { node, transform: Transform::Identity })?;
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
    fn horner<T: Target>(
        &self,
        target: &mut T,
        monomials: &[usize],
        variables: &[Option<T::Value>],
    ) -> Result<Option<T::Value>, SumReason> {
        let Some((&variable, rest)) = variables.split_first() else {
            let moment = monomials.first().map(|&at| self.moments[at]);
            return moment.filter(|moment| !moment.is_zero()).map(|m| m.lower(target)).transpose();
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
            let inner = self.horner(target, &inner, rest)?;
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
        let mut routine = ProgramBuilder::default();
        let start = match self.start_node {
            Some(node) => routine.variable(Variable { node, transform: Transform::Identity })?,
            None => routine.number(Bounded::ZERO)?,
        };
        let value = self.lower(&mut routine)?;
        let (program, inputs, differentiated) = routine.finish(is_differentiated);
        let polynomial = Polynomial::new(program, start, value, differentiated);
        Ok((polynomial.map_err(|_| SumReason::TooManySteps)?, inputs))
    }
}

/// Lowers to nodes before a loop.
pub(super) struct NodeBuilder<'a> {
    pub(super) editor: &'a mut Editor,
    /// The loop.
    pub(super) region: Region,
    pub(super) place: Option<PlaceId>,
    /// Pairs of a node in the loop and its copy before it.
    pub(super) moved: Vec<(Node, Node)>,
}

impl Target for NodeBuilder<'_> {
    type Value = Node;

    fn number(&mut self, number: Bounded) -> Result<Node, SumReason> {
        Ok(self.editor.push_const(number.hi.to_bits()))
    }

    fn variable(&mut self, Variable { node, transform }: Variable) -> Result<Node, SumReason> {
        let known = self.moved.iter().find(|(before, _)| *before == node);
        let node = known.map_or(node, |&(_, moved)| moved);
        match transform {
            Transform::Identity => Ok(node),
            Transform::Exp => self.apply(Op::Exp, [node, node]),
            Transform::Reciprocal => self.apply(Op::Recip, [node, node]),
            Transform::ExpNeg => {
                let negative = self.apply(Op::Neg, [node, node])?;
                self.apply(Op::Exp, [negative, negative])
            }
        }
    }

    fn double_double(&mut self, _: [Node; 3]) -> Result<Node, SumReason> {
        Err(SumReason::DataOfCall)
    }

    fn apply(&mut self, op: Op, [a, b]: [Node; 2]) -> Result<Node, SumReason> {
        Ok(self.editor.insert_apply(self.region, op, &[a, b][..op.arity()], self.place))
    }
}

/// Lowers to the program of a routine.
#[derive(Default)]
pub(super) struct ProgramBuilder {
    program: Program,
    inputs: Vec<Node>,
    slots: HashMap<Variable, Slot>,
}

impl ProgramBuilder {
    fn push(&mut self, instruction: Instruction) -> Result<Slot, SumReason> {
        self.program.push(instruction).map_err(|_| SumReason::TooManySteps)
    }

    fn input(&mut self, node: Node) -> u32 {
        self.inputs.push(node);
        self.program.add_input()
    }

    /// The program, its inputs, and the numbers of the differentiated ones.
    pub(super) fn finish(
        self,
        is_differentiated: impl Fn(Node) -> bool,
    ) -> (Program, Vec<Node>, Vec<u32>) {
        let ProgramBuilder { program, inputs, .. } = self;
        let numbered = (0u32..).zip(&inputs).filter(|(_, input)| is_differentiated(**input));
        let differentiated = numbered.map(|(number, _)| number).collect();
        (program, inputs, differentiated)
    }
}

impl Target for ProgramBuilder {
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
        let Variable { node, transform } = variable;
        let slot = match transform {
            Transform::Identity => {
                let input = self.input(node);
                self.push(Instruction::Input(input))?
            }
            Transform::Exp => {
                let exponent = self.variable(Variable { node, transform: Transform::Identity })?;
                self.push(Instruction::Apply(Op::Exp, [exponent; 2]))?
            }
            Transform::Reciprocal | Transform::ExpNeg => {
                let divisor =
                    self.variable(Variable { node, transform: transform.reciprocal() })?;
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
