//! Affine forms: what the values of a loop's body are as functions of the state
//! that the loop carries.

use std::collections::BTreeMap;
use std::rc::Rc;

use hashbrown::HashMap;

use super::binomials::{Polynomial, Product};
use super::emit::Emitter;
use super::line::{Line, line};
use super::powers::Powers;
use super::rest::is_rest;
use crate::op::{Op, eval};
use crate::phi::double::Double;
use crate::phi::pair::{Pair, Pairs};
use crate::ssa::{Access, Def, Node, Region, SeriesData};

/// What a value of the body is.
#[derive(Clone, Debug)]
pub(super) enum Form {
    /// The same in all iterations: a node before the loop.
    Fixed(Node),
    /// A number for each iteration, known before the program runs.
    Table(Rc<[f64]>),
    /// An affine function of the state.
    Affine(Affine),
    /// Something else, for this reason.
    Other(&'static str),
}

/// A sum of products of coefficients with what they belong to.
pub(super) type Affine = BTreeMap<Base, Coefficient>;

/// What each number of the state is after an iteration, in the order of the numbers.
pub(super) type Rows = BTreeMap<usize, Affine>;

/// What a coefficient belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Base {
    /// A number of the state; the number after the last stands for the iteration.
    State(usize),
    /// A node before the loop; for what is added as it is, the constant 1.
    Node(Node),
}

#[derive(Clone, Debug)]
pub(super) enum Coefficient {
    /// The same in all iterations.
    Fixed(Pair),
    /// A number for each iteration.
    Table(Rc<[Double]>),
    /// A polynomial in the iteration number.
    Polynomial(Polynomial),
}

pub(super) const CHANGES: &str = "its coefficients depend on inputs and change";
pub(super) const NONLINEAR: &str = "it is no affine function of what is carried";
const ELEMENT: &str = "it depends on elements of inputs or computed values";
const INNER: &str = "it depends on what an inner region comes to";
const TERMS: &str = "it depends on too many values";

/// How many numbers the tables of one loop may hold.
const TABLES: usize = 1 << 23;

/// The largest number of terms of an affine form.
const MOST_TERMS: usize = 16;

/// Finds the forms of a body's values, in order.
pub(super) struct Forms<'a, 'g> {
    pub(super) emitter: &'a mut Emitter<'g>,
    pub(super) region: Region,
    /// The number of iterations that are done in one.
    pub(super) times: usize,
    /// The number of each entry φ among those that are carried.
    pub(super) states: HashMap<Node, usize>,
    pub(super) known: HashMap<Node, Form>,
    /// How many numbers tables may still hold.
    pub(super) budget: usize,
    /// The numbers of the state after that of the iteration: products with binomials.
    pub(super) products: Vec<Product>,
    /// The powers that are numbers of the state, if they may be.
    pub(super) powers: Option<Powers>,
}

impl<'a, 'g> Forms<'a, 'g> {
    /// Nothing is known yet of the body of `region`, `times` iterations of which are done
    /// in one; each of these entry φs is the state of that number.
    pub(super) fn new(
        emitter: &'a mut Emitter<'g>,
        region: Region,
        times: usize,
        states: HashMap<Node, usize>,
    ) -> Self {
        Forms {
            emitter,
            region,
            times,
            states,
            known: HashMap::new(),
            budget: TABLES,
            products: Vec::new(),
            powers: None,
        }
    }
}

impl Forms<'_, '_> {
    /// The number that stands for the iteration number among the states.
    pub(super) fn counter(&self) -> usize {
        self.states.len()
    }

    /// The form of a node of the body, whose operands are known, or of one outside.
    pub(super) fn find(&mut self, node: Node) -> Form {
        if let Some(form) = self.known.get(&node) {
            return form.clone();
        }
        if let Some(&state) = self.states.get(&node) {
            let one = self.emitter.number(1.0, 0.0);
            return Form::Affine([(Base::State(state), Coefficient::Fixed(one))].into());
        }
        match self.emitter.graph.nodes[node].def {
            Def::Iteration(region) if region == self.region => {
                let numbers = (0..self.times).map(|i| i as f64).collect();
                self.known.insert(node, Form::Table(numbers));
                self.known[&node].clone()
            }
            // What a loop carries of rounding errors is none of its numbers.
            _ if is_rest(self.emitter.graph, node) => Form::Fixed(self.emitter.constant(0.0)),
            _ => Form::Fixed(node),
        }
    }

    /// Finds the form of a step of the body.
    pub(super) fn learn(&mut self, node: Node, resolve: impl Fn(Node) -> Node) {
        if let Some(form) = self.without_slope(node, &resolve) {
            self.known.insert(node, form);
            return;
        }
        let form = match self.emitter.graph.nodes[node].def {
            Def::Apply(op, args) => {
                let args: Vec<Form> =
                    args[..op.arity()].iter().map(|&arg| self.find(resolve(arg))).collect();
                self.applied(op, &args)
            }
            Def::Element(access) => self.element(access),
            Def::Phi(..) | Def::Entry(..) | Def::Iteration(_) | Def::Call(_) | Def::Result(..) => {
                Form::Other(INNER)
            }
            Def::Input(_) | Def::Const(_) => Form::Fixed(node),
        };
        let form = match form {
            Form::Affine(affine) if affine.len() > MOST_TERMS => Form::Other(TERMS),
            other => other,
        };
        self.known.insert(node, form);
    }

    fn element(&mut self, access: Access) -> Form {
        let data = &self.emitter.graph.accesses[access];
        let is_own = |&&(region, _): &&(Region, i32)| region == self.region;
        let Some(&(_, stride)) = data.strides.iter().find(is_own) else {
            // A history of this loop is of no use before it has ended.
            return Form::Fixed(self.emitter.element(access));
        };
        let SeriesData::Constants(numbers) = &self.emitter.graph.series[data.series] else {
            return Form::Other(ELEMENT);
        };
        if data.strides.len() > 1 || self.times > self.budget {
            return Form::Other(ELEMENT);
        }
        self.budget -= self.times;
        let at = |i: usize| i64::from(data.base) + i64::from(stride) * i as i64;
        let number = |i| usize::try_from(at(i)).ok().and_then(|at| numbers.get(at));
        let numbers = (0..self.times).map(|i| number(i).map(|&bits| f64::from_bits(bits)));
        match numbers.collect::<Option<Vec<f64>>>() {
            Some(numbers) => Form::Table(numbers.into()),
            None => Form::Other(ELEMENT),
        }
    }

    fn applied(&mut self, op: Op, args: &[Form]) -> Form {
        if let Some(Form::Other(why)) = args.iter().find(|arg| matches!(arg, Form::Other(_))) {
            return Form::Other(why);
        }
        let fixed = |arg: &Form| match arg {
            Form::Fixed(node) => Some(*node),
            _ => None,
        };
        if let Some(nodes) = args.iter().map(fixed).collect::<Option<Vec<Node>>>() {
            return Form::Fixed(self.emitter.copied(op, &nodes));
        }
        if let Some(form) = self.table(op, args) {
            return form;
        }
        let affine = match op {
            Op::Add => self.sum(&args[0], &args[1]),
            Op::Sub => {
                let negative = self.scaled_by(&args[1], -1.0);
                negative.and_then(|negative| self.sum(&args[0], &negative))
            }
            Op::Neg => self.scaled_by(&args[0], -1.0),
            Op::Mul => self.product(&args[0], &args[1]),
            Op::MulAdd => {
                let product = self.product(&args[0], &args[1]);
                product.and_then(|product| self.sum(&product, &args[2]))
            }
            Op::Div => self.quotient(&args[0], &args[1]),
            Op::Exp => self.exponential(&args[0]),
            Op::Powf => match (&args[0], self.numbers(&args[1])) {
                (&Form::Fixed(of), Some(exponents)) => self.power(of, &exponents).ok_or(NONLINEAR),
                _ => Err(NONLINEAR),
            },
            _ => Err(NONLINEAR),
        };
        affine.unwrap_or_else(Form::Other)
    }

    /// What `op` comes to if it depends on the iteration number alone.
    fn table(&mut self, op: Op, args: &[Form]) -> Option<Form> {
        let tables = args.iter().map(|arg| self.numbers(arg)).collect::<Option<Vec<_>>>()?;
        if self.times > self.budget {
            return None;
        }
        self.budget -= self.times;
        let at = |i: usize| {
            eval(op, core::array::from_fn(|k| tables.get(k).map_or(0.0, |table| table[i])))
        };
        Some(Form::Table((0..self.times).map(at).collect()))
    }

    /// The numbers that a form stands for, if they are known.
    fn numbers(&self, form: &Form) -> Option<Rc<[f64]>> {
        let constant = |node: Node| self.emitter.graph.constant(node);
        match form {
            Form::Fixed(node) => constant(*node).map(|value| vec![value; self.times].into()),
            Form::Table(table) => Some(table.clone()),
            Form::Affine(_) | Form::Other(_) => None,
        }
    }

    pub(super) fn affine(&mut self, form: &Form) -> Result<Affine, &'static str> {
        let one = self.emitter.constant(1.0);
        Ok(match form {
            Form::Affine(affine) => affine.clone(),
            Form::Fixed(node) if self.emitter.graph.constant(*node).is_some() => {
                [(Base::Node(one), Coefficient::Fixed((*node).into()))].into()
            }
            Form::Fixed(node) => [(Base::Node(*node), Coefficient::Fixed(one.into()))].into(),
            Form::Table(table) => {
                let table = table.iter().map(|&number| number.into()).collect();
                [(Base::Node(one), Coefficient::Table(table))].into()
            }
            Form::Other(why) => return Err(why),
        })
    }

    pub(super) fn sum(&mut self, a: &Form, b: &Form) -> Result<Form, &'static str> {
        let (mut sum, b) = (self.affine(a)?, self.affine(b)?);
        for (base, coefficient) in b {
            let before = sum.remove(&base);
            let after = match before {
                Some(before) => self.added(&before, &coefficient)?,
                None => coefficient,
            };
            sum.insert(base, after);
        }
        Ok(Form::Affine(sum))
    }

    fn added(&mut self, a: &Coefficient, b: &Coefficient) -> Result<Coefficient, &'static str> {
        if let (&Coefficient::Fixed(a), &Coefficient::Fixed(b)) = (a, b) {
            let sum = self.emitter.sum(Some(a), Some(b)).ok_or(CHANGES)?;
            return Ok(Coefficient::Fixed(sum));
        }
        match self.are_known(a, b) {
            true => self.table_of(a, b, |a, b| a + b),
            false => self.added_polynomials(a, b),
        }
    }

    fn multiplied(
        &mut self,
        a: &Coefficient,
        b: &Coefficient,
    ) -> Result<Coefficient, &'static str> {
        if let (&Coefficient::Fixed(a), &Coefficient::Fixed(b)) = (a, b) {
            return Ok(Coefficient::Fixed(self.emitter.product(a, b)));
        }
        match self.are_known(a, b) {
            true => self.table_of(a, b, Double::times_in_range),
            false => self.multiplied_polynomials(a, b),
        }
    }

    fn are_known(&self, a: &Coefficient, b: &Coefficient) -> bool {
        [a, b].into_iter().all(|coefficient| match coefficient {
            Coefficient::Fixed(pair) => self.number(*pair).is_some(),
            Coefficient::Table(_) => true,
            Coefficient::Polynomial(_) => false,
        })
    }

    fn table_of(
        &mut self,
        a: &Coefficient,
        b: &Coefficient,
        f: impl Fn(Double, Double) -> Double,
    ) -> Result<Coefficient, &'static str> {
        let (a, b) = (self.doubles(a).ok_or(CHANGES)?, self.doubles(b).ok_or(CHANGES)?);
        if self.times > self.budget {
            return Err(TERMS);
        }
        self.budget -= self.times;
        Ok(Coefficient::Table(a.iter().zip(&*b).map(|(&a, &b)| f(a, b)).collect()))
    }

    fn doubles(&self, coefficient: &Coefficient) -> Option<Rc<[Double]>> {
        match coefficient {
            Coefficient::Table(table) => Some(table.clone()),
            Coefficient::Fixed(pair) => {
                self.number(*pair).map(|number| vec![number; self.times].into())
            }
            Coefficient::Polynomial(_) => None,
        }
    }

    /// Makes the iteration number a part of the state in `rows` where that lets
    /// numbers in even steps and coefficients that are not known go together, and gives it
    /// a row if there is a use of it.
    pub(super) fn count(&mut self, rows: &mut Rows) {
        if self.has_unknown(rows) {
            self.count_lines(rows);
        }
        let counter = self.counter();
        if rows.values().any(|row| row.contains_key(&Base::State(counter))) {
            let one = self.emitter.constant(1.0);
            let one_more = Coefficient::Fixed(one.into());
            let row = [(Base::State(counter), one_more.clone()), (Base::Node(one), one_more)];
            rows.insert(counter, row.into());
        }
    }

    fn count_lines(&mut self, rows: &mut Rows) {
        let counter = Base::State(self.counter());
        for row in rows.values_mut() {
            let mut steps: Option<Pair> = None;
            for (base, coefficient) in row.iter_mut() {
                let (&Base::Node(node), Coefficient::Table(table)) = (base, &*coefficient) else {
                    continue;
                };
                let Some(Line { first, step, .. }) = line(table) else { continue };
                let step = self.emitter.number(step.high, step.low);
                let step = self.emitter.product(step, node.into());
                steps = self.emitter.sum(steps, Some(step));
                *coefficient = Coefficient::Fixed(self.emitter.number(first.high, first.low));
            }
            if let Some(steps) = steps {
                row.insert(counter, Coefficient::Fixed(steps));
            }
        }
    }

    /// Whether some coefficient of `rows` is not known.
    pub(super) fn has_unknown(&self, rows: &Rows) -> bool {
        let mut all = rows.values().flat_map(|row| row.values());
        all.any(|coefficient| match coefficient {
            Coefficient::Fixed(pair) => self.number(*pair).is_none(),
            Coefficient::Table(_) => false,
            Coefficient::Polynomial(_) => true,
        })
    }

    /// The number that `pair` is, if it is known.
    pub(super) fn number(&self, pair: Pair) -> Option<Double> {
        let constant = |node: Node| self.emitter.graph.constant(node);
        let low = pair.low.map_or(Some(0.0), constant)?;
        Some(Double::from(constant(pair.high)?) + low.into())
    }

    fn scaled_by(&mut self, form: &Form, factor: f64) -> Result<Form, &'static str> {
        let factor = Form::Fixed(self.emitter.constant(factor));
        self.product(form, &factor)
    }

    fn product(&mut self, a: &Form, b: &Form) -> Result<Form, &'static str> {
        let (factor, other) = match (a, b) {
            (Form::Fixed(_), _) => (a.clone(), b),
            (_, Form::Fixed(_)) | (_, Form::Table(_)) => (b.clone(), a),
            (Form::Table(_), _) => (a.clone(), b),
            (Form::Affine(a), Form::Affine(b)) => {
                let has_state =
                    |affine: &Affine| affine.keys().any(|base| matches!(base, Base::State(_)));
                let (factor, other) = match (has_state(a), has_state(b)) {
                    (true, true) => return Err(NONLINEAR),
                    (true, false) => (b, a),
                    (false, _) => (a, b),
                };
                let factor = self.without_states(factor)?;
                return self.scaled(other.clone(), &factor);
            }
            (Form::Other(why), _) | (_, Form::Other(why)) => return Err(why),
        };
        let affine = self.affine(other)?;
        let one = self.emitter.constant(1.0);
        let node = match factor {
            Form::Fixed(node) => node,
            Form::Table(table) => {
                let table = table.iter().map(|&number| number.into()).collect();
                return self.scaled(affine, &Coefficient::Table(table));
            }
            Form::Affine(_) | Form::Other(_) => return Err(NONLINEAR),
        };
        if self.emitter.graph.constant(node).is_some() {
            return self.scaled(affine, &Coefficient::Fixed(node.into()));
        }
        let mut scaled = Affine::new();
        for (base, coefficient) in affine {
            let (base, coefficient) = match (base, coefficient) {
                (base, Coefficient::Fixed(pair)) => {
                    // What an inner loop adds is no number, and stays whole: 1·b - x·b next to
                    // each other would cancel where x is near 1.
                    let is_number = self.number(pair).is_some();
                    match is_number && base == Base::Node(one) {
                        true => (Base::Node(node), Coefficient::Fixed(pair)),
                        false => {
                            (base, Coefficient::Fixed(self.emitter.product(pair, node.into())))
                        }
                    }
                }
                (Base::Node(other), table) => {
                    (Base::Node(self.emitter.apply(Op::Mul, &[other, node])), table)
                }
                (base @ Base::State(_), coefficient) => {
                    let factor = Coefficient::Fixed(node.into());
                    (base, self.multiplied(&coefficient, &factor)?)
                }
            };
            let coefficient = match scaled.remove(&base) {
                Some(before) => self.added(&before, &coefficient)?,
                None => coefficient,
            };
            scaled.insert(base, coefficient);
        }
        Ok(Form::Affine(scaled))
    }

    pub(super) fn scaled(
        &mut self,
        affine: Affine,
        factor: &Coefficient,
    ) -> Result<Form, &'static str> {
        let scaled = affine.into_iter().map(|(base, coefficient)| {
            self.multiplied(&coefficient, factor).map(|product| (base, product))
        });
        scaled.collect::<Result<Affine, _>>().map(Form::Affine)
    }

    fn quotient(&mut self, a: &Form, b: &Form) -> Result<Form, &'static str> {
        if let Some(inverse) = self.inverse_power(b) {
            return self.product(a, &Form::Affine(inverse));
        }
        let affine = self.affine(a)?;
        let divisor = match b {
            Form::Fixed(node) => *node,
            _ => {
                let table = self.numbers(b).ok_or(NONLINEAR)?;
                let inverse = |&x: &f64| Double::from(1.0) / x.into();
                return self
                    .scaled(affine, &Coefficient::Table(table.iter().map(inverse).collect()));
            }
        };
        let mut quotient = Affine::new();
        for (base, coefficient) in affine {
            let coefficient = match coefficient {
                Coefficient::Fixed(pair) => {
                    Coefficient::Fixed(self.emitter.quotient(pair, divisor))
                }
                coefficient => match (&coefficient, self.emitter.graph.constant(divisor)) {
                    (Coefficient::Table(table), Some(divisor)) => {
                        let divided = table.iter().map(|number| *number / divisor.into());
                        Coefficient::Table(divided.collect())
                    }
                    _ => {
                        let one = self.emitter.number(1.0, 0.0);
                        let inverse = self.emitter.quotient(one, divisor);
                        self.multiplied(&coefficient, &Coefficient::Fixed(inverse))?
                    }
                },
            };
            quotient.insert(base, coefficient);
        }
        Ok(Form::Affine(quotient))
    }
}
