//! Extraction: one walk through a loop body finds each value as a polynomial of invariants, with
//! coefficients that a data program computes.
//!
//! The variables are the largest invariant expressions; beside nodes these are their reciprocals,
//! from divisions, and their exponentials: exp(u + c) is exp(u) times the datum exp(c).

use hashbrown::{HashMap, HashSet};

use super::data::{Data, Datum, Step, sample};
use super::polynomial::{MAX_VARIABLES, Monomial, Polynomial};
use crate::entity::PrimaryMap;
use crate::op::Op;
use crate::phi::reason::SumReason;
use crate::phi::recurrence::{Body, is_inside, movable_steps};
use crate::ssa::{Access, ArrayData, Def, Graph, Item, Nest, Node, Region};

/// The function of an invariant node that a variable is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Transform {
    Identity,
    Reciprocal,
    Exp,
    /// The exponential of the negated node.
    ExpNeg,
}

impl Transform {
    /// The reciprocal of the transformed node, as a transform.
    pub(super) fn reciprocal(self) -> Transform {
        match self {
            Transform::Identity => Transform::Reciprocal,
            Transform::Reciprocal => Transform::Identity,
            Transform::Exp => Transform::ExpNeg,
            Transform::ExpNeg => Transform::Exp,
        }
    }
}

/// A variable of polynomials.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Variable {
    pub(super) node: Node,
    pub(super) transform: Transform,
}

/// The loop to be closed, and analyses of its graph.
#[derive(Clone, Copy)]
pub(super) struct LoopContext<'a> {
    pub(super) graph: &'a Graph,
    pub(super) nest: &'a Nest,
    pub(super) region: Region,
    /// The loop before which inactive live-ins count as data; `None` allows constants only.
    pub(super) outer: Option<Region>,
    /// True for nodes that depend on constants, inactive inputs and iteration numbers alone.
    pub(super) inactive: &'a PrimaryMap<Node, bool>,
}

/// A walk through the body of a loop.
pub(super) struct Extraction<'a> {
    context: LoopContext<'a>,
    pub(super) data: Data,
    pub(super) variables: Vec<Variable>,
    /// True for variables that are expanded around a point.
    is_shifted: Vec<bool>,
    /// The largest number of variables.
    limit: usize,
    /// The polynomials of entry φs and of the steps so far.
    polynomials: HashMap<Node, Polynomial>,
    /// The steps so far that are invariant.
    invariant: HashSet<Node>,
    /// The datum of the iteration number.
    number: Option<Datum>,
}

impl<'a> Extraction<'a> {
    /// A walk that expands the variables `is_shifted` around a point, of at most `limit` variables.
    pub(super) fn new(
        context: LoopContext<'a>,
        is_shifted: &[bool],
        limit: usize,
    ) -> Extraction<'a> {
        let is_shifted = is_shifted.to_vec();
        let (polynomials, invariant) = (HashMap::new(), HashSet::new());
        let (data, variables, number) = (Data::default(), Vec::new(), None);
        Extraction { context, data, variables, is_shifted, limit, polynomials, invariant, number }
    }

    /// The polynomial of `wanted`, a node visible at the end of the body, which depends on
    /// `needed`.
    pub(super) fn polynomial(
        &mut self,
        body: &Body,
        needed: &HashSet<Node>,
        wanted: Node,
    ) -> Result<Polynomial, SumReason> {
        let LoopContext { graph, region, .. } = self.context;
        for (entry, number) in graph.entries(region).iter().zip(0..) {
            let monomial = Monomial { carried: Some(number), ..Monomial::ONE };
            let one = self.data.constant(1.0);
            self.polynomials.insert(entry.phi, Polynomial::of(monomial, one));
        }
        for item in &body.items {
            match *item {
                Item::Node(node) if needed.contains(&node) => {
                    if self.is_invariant_step(node) {
                        self.invariant.insert(node);
                    } else {
                        let polynomial = self.step(node)?;
                        self.polynomials.insert(node, polynomial);
                    }
                }
                Item::Region(inner) => {
                    let phis = &graph.regions[inner].phis;
                    if phis.iter().any(|phi| needed.contains(phi)) {
                        return Err(SumReason::InnerLoop);
                    }
                }
                _ => {}
            }
        }
        self.value(wanted)
    }

    /// True if the step `node` is invariant and no datum.
    fn is_invariant_step(&self, node: Node) -> bool {
        let LoopContext { graph, nest, region, .. } = self.context;
        let is_same = |arg: &Node| {
            let is_constant = graph.constant(*arg).is_some();
            is_constant || self.invariant.contains(arg) || !is_inside(nest, *arg, region)
        };
        match graph.nodes[node].def {
            Def::Apply(..) => {
                let args = graph.operands(node);
                args.iter().all(is_same) && !args.iter().all(|&arg| self.is_datum(arg))
            }
            Def::Element(access) => {
                let data = &graph.accesses[access];
                let is_fixed = |&(of, by): &(Region, i32)| of != region || by == 0;
                data.strides.iter().chain(&data.changes).all(is_fixed)
                    && !self.reads_inactive_inputs(access)
            }
            _ => false,
        }
    }

    /// True if `node` is a datum: a constant, an inactive live-in, or computed from data.
    fn is_datum(&self, node: Node) -> bool {
        self.context.graph.constant(node).is_some()
            || self.is_before_outer(node)
            || self.polynomials.get(&node).is_some_and(|of| of.as_datum().is_some())
    }

    /// True if `node` is inactive and visible before the loop `outer`.
    fn is_before_outer(&self, node: Node) -> bool {
        let LoopContext { graph, nest, outer, inactive, .. } = self.context;
        let is_outside = |outer| !is_inside(nest, node, outer);
        graph.constant(node).is_none() && inactive[node] && outer.is_some_and(is_outside)
    }

    /// True if `access` reads inactive inputs by an index that no other loop moves.
    fn reads_inactive_inputs(&self, access: Access) -> bool {
        let LoopContext { graph, region, outer, .. } = self.context;
        let data = &graph.accesses[access];
        let is_own = |&(of, stride): &(Region, i32)| stride == 0 || of == region;
        let is_inactive = match graph.arrays[data.array] {
            ArrayData::Inputs { first, .. } => !graph.is_active(first),
            _ => false,
        };
        outer.is_some() && is_inactive && data.changes.is_empty() && data.strides.iter().all(is_own)
    }

    /// The polynomial of `node`.
    fn value(&mut self, node: Node) -> Result<Polynomial, SumReason> {
        if let Some(polynomial) = self.polynomials.get(&node) {
            return Ok(polynomial.clone());
        }
        let LoopContext { graph, nest, region, .. } = self.context;
        if let Some(number) = graph.constant(node) {
            return Ok(self.number(number));
        }
        if graph.nodes[node].def == Def::Iteration(region) {
            let number = *self.number.get_or_insert_with(|| self.data.push(Step::Iteration));
            return Ok(Polynomial::of(Monomial::ONE, number));
        }
        if self.is_before_outer(node) {
            let datum = self.data.push(Step::LiveIn(node));
            let polynomial = Polynomial::of(Monomial::ONE, datum);
            self.polynomials.insert(node, polynomial.clone());
            return Ok(polynomial);
        }
        if is_inside(nest, node, region) && !self.invariant.contains(&node) {
            return Err(SumReason::DataOfCall);
        }
        self.variable(node, Transform::Identity)
    }

    fn number(&mut self, number: f64) -> Polynomial {
        match number {
            0.0 => Polynomial::default(),
            _ => Polynomial::of(Monomial::ONE, self.data.constant(number)),
        }
    }

    /// The variable that is `transform` of an invariant node.
    fn variable(&mut self, node: Node, transform: Transform) -> Result<Polynomial, SumReason> {
        let LoopContext { graph, nest, region, .. } = self.context;
        if movable_steps(graph, nest, node, |inside| inside == region).is_none() {
            return Err(SumReason::DataOfCall);
        }
        let variable = Variable { node, transform };
        let known = self.variables.iter().position(|&known| known == variable);
        let number = known.unwrap_or_else(|| {
            self.variables.push(variable);
            self.variables.len() - 1
        });
        let limit = self.limit.min(MAX_VARIABLES);
        if number >= limit {
            return Err(SumReason::Variables(limit));
        }
        let one = self.data.constant(1.0);
        let own = Polynomial::of(Monomial::variable(number), one);
        if !self.is_shifted.get(number).is_some_and(|&is_shifted| is_shifted) {
            return Ok(own);
        }
        let expansion_point = self.data.push(Step::ExpansionPoint(number));
        Ok(own.plus(&Polynomial::of(Monomial::ONE, expansion_point), &mut self.data))
    }

    fn step(&mut self, node: Node) -> Result<Polynomial, SumReason> {
        match self.context.graph.nodes[node].def {
            Def::Apply(op, args) => self.applied(op, &args[..op.arity()]),
            Def::Element(access) => self.element(access),
            _ => Err(SumReason::InnerLoop),
        }
    }

    fn applied(&mut self, op: Op, args: &[Node]) -> Result<Polynomial, SumReason> {
        // A quotient by an invariant is a product with its reciprocal.
        if let (Op::Div, &[dividend, divisor]) = (op, args)
            && self.is_variable(divisor)
        {
            let inverse = self.variable(divisor, Transform::Reciprocal)?;
            return self.value(dividend)?.times(&inverse, &mut self.data);
        }
        if let (Op::Recip, &[divisor]) = (op, args)
            && self.is_variable(divisor)
        {
            return self.variable(divisor, Transform::Reciprocal);
        }
        let values = args.iter().map(|&arg| self.value(arg)).collect::<Result<Vec<_>, _>>()?;
        let data = &mut self.data;
        match (op, &values[..]) {
            (Op::Add, [a, b]) => Ok(a.plus(b, data)),
            (Op::Sub, [a, b]) => {
                let b = b.map(|datum| data.apply(Op::Neg, &[datum]));
                Ok(a.plus(&b, data))
            }
            (Op::Neg, [a]) => Ok(a.map(|datum| data.apply(Op::Neg, &[datum]))),
            (Op::Mul, [a, b]) => a.times(b, data),
            (Op::MulAdd, [a, b, c]) => Ok(a.times(b, data)?.plus(c, data)),
            _ if values.iter().all(|value| value.as_datum().is_some()) => {
                let args: Vec<Datum> = values
                    .iter()
                    .map(|value| value.as_datum().flatten().unwrap_or_else(|| data.constant(0.0)))
                    .collect();
                Ok(Polynomial::of(Monomial::ONE, data.apply(op, &args)))
            }
            (Op::Div, [a, b]) => match b.terms() {
                &[(monomial, divisor)] if monomial.carried.is_none() => {
                    let quotient = a.map(|datum| data.apply(Op::Div, &[datum, divisor]));
                    self.over(quotient, &monomial)
                }
                _ => Err(SumReason::NotPolynomial(op)),
            },
            (Op::Powi, [a, b]) => match b.as_datum().flatten().and_then(|b| data.number(b)) {
                Some(power) if (1.0..=4.0).contains(&power) => {
                    (1..power as u8).try_fold(a.clone(), |all, _| all.times(a, data))
                }
                _ => Err(SumReason::NotPolynomial(op)),
            },
            (Op::Select, [condition, then, otherwise]) => match condition.as_datum() {
                Some(Some(condition)) => {
                    let zero = data.constant(0.0);
                    let then_part =
                        then.map(|datum| data.apply(Op::Select, &[condition, datum, zero]));
                    let other_part =
                        otherwise.map(|datum| data.apply(Op::Select, &[condition, zero, datum]));
                    Ok(then_part.plus(&other_part, data))
                }
                _ => Err(SumReason::NotPolynomial(op)),
            },
            _ if values.iter().any(is_carried) => Err(SumReason::NotAdded),
            (Op::Exp, [exponent]) => self.exponential(&exponent.clone()),
            _ => Err(SumReason::NotPolynomial(op)),
        }
    }

    /// The quotient of a polynomial by a monomial: a product with the reciprocals of its variables.
    fn over(&mut self, dividend: Polynomial, by: &Monomial) -> Result<Polynomial, SumReason> {
        let mut quotient = dividend;
        for number in 0..MAX_VARIABLES {
            for _ in 0..by.exponents[number] {
                let Variable { node, transform } = self.variables[number];
                let inverse = self.variable(node, transform.reciprocal())?;
                quotient = quotient.times(&inverse, &mut self.data)?;
            }
        }
        Ok(quotient)
    }

    /// True if `node` is invariant and no datum.
    fn is_variable(&self, node: Node) -> bool {
        let LoopContext { graph, nest, region, .. } = self.context;
        graph.constant(node).is_none()
            && !self.is_before_outer(node)
            && !self.polynomials.contains_key(&node)
            && (self.invariant.contains(&node) || !is_inside(nest, node, region))
    }

    /// The exponential of a sum of a datum and of variables with coefficients ±1: the product of
    /// their exponentials.
    fn exponential(&mut self, exponent: &Polynomial) -> Result<Polynomial, SumReason> {
        let mut product = match exponent.coefficient(&Monomial::ONE) {
            Some(datum) => Polynomial::of(Monomial::ONE, self.data.apply(Op::Exp, &[datum])),
            None => self.number(1.0),
        };
        for &(monomial, factor) in exponent.terms() {
            let variable = (0..self.variables.len()).find(|&at| monomial == Monomial::variable(at));
            // A variable with exponentials is not expanded around a point.
            let shifted =
                |at: &usize| self.is_shifted.get(*at).is_some_and(|&is_shifted| is_shifted);
            let variable = variable.filter(|at| !shifted(at)).map(|at| self.variables[at]);
            let power = match (variable, self.data.number(factor)) {
                _ if monomial == Monomial::ONE => continue,
                (Some(Variable { node, transform: Transform::Identity }), Some(1.0)) => {
                    (node, Transform::Exp)
                }
                (Some(Variable { node, transform: Transform::Identity }), Some(-1.0)) => {
                    (node, Transform::ExpNeg)
                }
                _ => return Err(SumReason::NotPolynomial(Op::Exp)),
            };
            let power = self.variable(power.0, power.1)?;
            product = product.times(&power, &mut self.data)?;
        }
        Ok(product)
    }

    fn element(&mut self, access: Access) -> Result<Polynomial, SumReason> {
        let LoopContext { graph, region, .. } = self.context;
        let data = &graph.accesses[access];
        if !data.changes.is_empty() {
            return Err(SumReason::DataOfCall);
        }
        let moving: Vec<(Region, i32)> =
            data.strides.iter().copied().filter(|&(_, stride)| stride != 0).collect();
        let own = data.strides.iter().find(|&&(of, _)| of == region);
        let (base, stride) =
            (i64::from(data.base), own.map_or(0, |&(_, stride)| i64::from(stride)));
        let step = match &graph.arrays[data.array] {
            ArrayData::Constants(table) if matches!(moving[..], [(of, _)] if of == region) => {
                Step::Element { table: table.clone(), base, stride }
            }
            &ArrayData::Inputs { count, .. } if self.reads_inactive_inputs(access) => {
                Step::InactiveInput {
                    array: data.array,
                    sample: sample(data.array, count),
                    base,
                    stride,
                }
            }
            _ => return Err(SumReason::DataOfCall),
        };
        let datum = self.data.push(step);
        Ok(Polynomial::of(Monomial::ONE, datum))
    }
}

/// True if an entry φ occurs in it.
fn is_carried(polynomial: &Polynomial) -> bool {
    polynomial.terms().iter().any(|(monomial, _)| monomial.carried.is_some())
}
