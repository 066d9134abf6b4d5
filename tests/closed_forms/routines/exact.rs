//! The same results in multiple precision, by another algorithm: forward mode, and powers from
//! the highest bit down.

use super::Bounded;
use dashu_float::FBig;
use phigrad::internals::entity::Entity;
use phigrad::internals::numeric::{AffineMap, AffinePower, Instruction, Slot};
use phigrad::internals::op::Op;

/// The working precision of the reference in bits, above the 2 · 500 by which results may cancel.
const PRECISION: usize = 1200;

/// A number of the reference.
#[derive(Clone, Debug)]
pub struct Exact(FBig);

impl Exact {
    pub fn new(value: f64) -> Exact {
        let Ok(value) = FBig::try_from(value) else { panic!("{value} is not finite") };
        Exact(value.with_precision(PRECISION).value())
    }

    pub fn to_f64(&self) -> f64 {
        self.0.to_f64().value()
    }

    pub fn plus(&self, other: &Exact) -> Exact {
        Exact(&self.0 + &other.0)
    }

    pub fn minus(&self, other: &Exact) -> Exact {
        Exact(&self.0 - &other.0)
    }

    pub fn times(&self, other: &Exact) -> Exact {
        Exact(&self.0 * &other.0)
    }

    /// `self / other`, `None` for a divisor of zero.
    pub fn over(&self, other: &Exact) -> Option<Exact> {
        (!other.is_zero()).then(|| Exact(&self.0 / &other.0))
    }

    pub fn is_zero(&self) -> bool {
        self.0 == <FBig>::ZERO
    }

    /// The distances of the number from `hi + lo` and from `hi`.
    pub fn errors(&self, result: Bounded) -> [f64; 2] {
        if !(result.hi.is_finite() && result.lo.is_finite()) {
            return [f64::INFINITY; 2];
        }
        let of_hi = self.minus(&Exact::new(result.hi));
        [of_hi.minus(&Exact::new(result.lo)).to_f64().abs(), of_hi.to_f64().abs()]
    }
}

/// A number and its derivatives along some directions.
#[derive(Clone, Debug)]
pub struct Dual {
    pub value: Exact,
    pub partials: Vec<Exact>,
}

impl Dual {
    fn constant(value: f64, directions: usize) -> Dual {
        Dual { value: Exact::new(value), partials: vec![Exact::new(0.0); directions] }
    }

    /// The number `value` whose partials are made from those of both by `partial`.
    fn zip(&self, other: &Dual, value: Exact, partial: impl Fn(&Exact, &Exact) -> Exact) -> Dual {
        let partials = self.partials.iter().zip(&other.partials);
        Dual { value, partials: partials.map(|(a, b)| partial(a, b)).collect() }
    }

    fn plus(&self, other: &Dual) -> Dual {
        self.zip(other, self.value.plus(&other.value), Exact::plus)
    }

    fn minus(&self, other: &Dual) -> Dual {
        self.zip(other, self.value.minus(&other.value), Exact::minus)
    }

    fn times(&self, other: &Dual) -> Dual {
        self.zip(other, self.value.times(&other.value), |a, b| {
            a.times(&other.value).plus(&b.times(&self.value))
        })
    }

    fn over(&self, other: &Dual) -> Option<Dual> {
        let quotient = self.value.over(&other.value)?;
        let inverse = Exact::new(1.0).over(&other.value)?;
        Some(self.zip(other, quotient.clone(), |a, b| a.minus(&b.times(&quotient)).times(&inverse)))
    }

    /// `None` for an exponent that programs do not have.
    fn exp(&self) -> Option<Dual> {
        let is_zero = self.value.is_zero();
        let value = if is_zero { Exact::new(1.0) } else { Exact(self.value.0.exp()) };
        let is_small = self.value.to_f64().abs() <= 350.0;
        is_small.then(|| self.zip(self, value.clone(), |a, _| a.times(&value)))
    }

    /// `None` for a radicand that is zero or negative.
    fn sqrt(&self) -> Option<Dual> {
        let is_positive = self.value.to_f64() > 0.0;
        let value = is_positive.then(|| Exact(self.value.0.sqrt()))?;
        let inverse = Exact::new(0.5).over(&value)?;
        Some(self.zip(self, value, |a, _| a.times(&inverse)))
    }
}

/// A map `z -> A z + b`, the rows of the matrix with the offset as last column.
type Map = Vec<Vec<Dual>>;

/// `outer` after `inner`.
fn compose(outer: &Map, inner: &Map) -> Map {
    let states = outer.len();
    let row = |row: &Vec<Dual>| {
        let column = |j: usize| {
            let products = (0..states).map(|q| row[q].times(&inner[q][j]));
            let sum = products.reduce(|sum, product| sum.plus(&product)).unwrap();
            if j == states { sum.plus(&row[states]) } else { sum }
        };
        (0..=states).map(column).collect()
    };
    outer.iter().map(row).collect()
}

fn power(map: &Map, trips: u64, directions: usize) -> Map {
    let states = map.len();
    let unit = |i, j| Dual::constant(f64::from(u8::from(i == j)), directions);
    let mut power: Map = (0..states).map(|i| (0..=states).map(|j| unit(i, j)).collect()).collect();
    for k in (0..u64::BITS - trips.leading_zeros()).rev() {
        power = compose(&power, &power);
        if trips >> k & 1 == 1 {
            power = compose(&power, map);
        }
    }
    power
}

fn load(map: &AffineMap, slots: &[Dual], directions: usize) -> Map {
    let entry = |slot: &Option<Slot>| match slot {
        Some(slot) => slots[slot.index()].clone(),
        None => Dual::constant(0.0, directions),
    };
    let rows = map.matrix().chunks(map.states()).zip(map.offset());
    rows.map(|(row, offset)| row.iter().chain([offset]).map(entry).collect()).collect()
}

/// The outputs for inputs with derivatives; trip counts are read from `plain`. `None` after a
/// division by zero.
pub fn evaluate(routine: &AffinePower, inputs: &[Dual], plain: &[f64]) -> Option<Vec<Dual>> {
    let directions = inputs.first().map_or(0, |input| input.partials.len());
    let mut slots: Vec<Dual> = Vec::new();
    for instruction in routine.program().instructions() {
        let at = |slot: &Slot| &slots[slot.index()];
        let value = match instruction {
            Instruction::Input(input) => inputs[*input as usize].clone(),
            // The largest error within the bound.
            Instruction::Rounded(input) => {
                let mut rounded = inputs[*input as usize].clone();
                rounded.value = rounded.value.times(&Exact::new(1.0 - f64::EPSILON / 2.0));
                rounded
            }
            Instruction::Constant(value) => Dual::constant(*value, directions),
            Instruction::Bounded(input) => Dual::constant(plain[*input as usize], directions),
            Instruction::Folded(value) => Dual::constant(value.hi, directions),
            Instruction::Apply(op, [a, b]) => match op {
                Op::Add => at(a).plus(at(b)),
                Op::Sub => at(a).minus(at(b)),
                Op::Mul => at(a).times(at(b)),
                Op::Div => at(a).over(at(b))?,
                Op::Neg => Dual::constant(0.0, directions).minus(at(a)),
                Op::Exp => at(a).exp()?,
                Op::Sqrt => at(a).sqrt()?,
                _ => return None,
            },
            Instruction::Power(inner) => {
                let map = load(&inner.map, &slots, directions);
                let map = power(&map, inner.trips, directions);
                let states = map.len();
                for row in &map {
                    slots.extend_from_slice(&row[..states]);
                }
                slots.extend(map.iter().map(|row| row[states].clone()));
                continue;
            }
        };
        slots.push(value);
    }
    let map = load(routine.map(), &slots, directions);
    let map = power(&map, routine.trips().count(plain)?, directions);
    let output = |output: &u32| {
        let row = &map[*output as usize];
        let start = routine.start().iter().map(|slot| &slots[slot.index()]);
        let products = row.iter().zip(start).map(|(entry, start)| entry.times(start));
        products.reduce(|sum, product| sum.plus(&product)).unwrap().plus(&row[map.len()])
    };
    Some(routine.outputs().iter().map(output).collect())
}

/// The results of [`AffinePower::run`] but for the first, in order.
pub fn results(routine: &AffinePower, inputs: &[f64]) -> Option<Vec<Exact>> {
    let differentiated = routine.differentiated();
    let duals: Vec<Dual> = (0u32..)
        .zip(inputs)
        .map(|(input, value)| {
            let unit = |other: &u32| Exact::new(f64::from(u8::from(input == *other)));
            Dual { value: Exact::new(*value), partials: differentiated.iter().map(unit).collect() }
        })
        .collect();
    let outputs = evaluate(routine, &duals, inputs)?;
    let results = outputs.into_iter().flat_map(|output| [vec![output.value], output.partials]);
    Some(results.flatten().collect())
}

/// A directional derivative equals a difference quotient, and the powers the loop.
#[test]
fn the_reference_agrees_with_differences_and_with_the_loop() {
    let text = "affine_power inputs 3 wrt x0 x1 x2 : t0 = x0 | t1 = x1 | t2 = x2 | \
                t3 = mul t0 t1 | t4 = div t2 t0 | t5 = power 3 states 1 matrix t3 offset t4 | \
                t7 = sub t5 t6 | advance 5 states 2 matrix t3 - t7 t0 offset t2 - \
                start t0 t4 outputs 1";
    let inputs = [0.75, -0.5, 0.3];
    let direction = [0.7, -0.2, 0.4];
    let step = Exact::new(2f64.powi(-200));
    let moved = |sign: f64| -> Vec<Dual> {
        let step = step.times(&Exact::new(sign));
        let place = |(x, d): (&f64, &f64)| Exact::new(*x).plus(&Exact::new(*d).times(&step));
        let values = inputs.iter().zip(&direction).map(place);
        values.map(|value| Dual { value, partials: vec![] }).collect()
    };
    let routine = super::routine(text);
    let value = |sign| evaluate(&routine, &moved(sign), &inputs).unwrap().remove(0).value;
    let difference = value(1.0).minus(&value(-1.0)).over(&step.plus(&step)).unwrap();
    let results = results(&routine, &inputs).unwrap();
    let terms = results[1..].iter().zip(&direction).map(|(p, d)| p.times(&Exact::new(*d)));
    let derivative = terms.reduce(|a, b| a.plus(&b)).unwrap();
    assert!(difference.minus(&derivative).to_f64().abs() < 1e-100);
    let [x0, x1, x2] = inputs;
    let (mut inner, mut sum) = (1.0, 0.0);
    for _ in 0..3 {
        (inner, sum) = (inner * (x0 * x1), sum * (x0 * x1) + x2 / x0);
    }
    let mut state = [x0, x2 / x0];
    for _ in 0..5 {
        state = [x0 * x1 * state[0] + x2, (inner - sum) * state[0] + x0 * state[1]];
    }
    assert!((results[0].to_f64() - state[1]).abs() < 1e-14);
}
