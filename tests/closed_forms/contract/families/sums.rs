//! Sums and products over data: polynomials of the inputs, exponentials and logarithms; over
//! captured data, and over data that are inactive inputs.

use phigrad::internals::Random;

use super::super::examine::Examined;
use super::super::number::Number;
use super::{Family, Reference, decade, sign};

pub fn all() -> Vec<Box<dyn Examined>> {
    let captured = KINDS.iter().map(|&kind| Sum { kind, is_captured: true });
    let inactive = [Kind::Squares, Kind::Line, Kind::Weighted];
    let inactive = inactive.into_iter().map(|kind| Sum { kind, is_captured: false });
    captured.chain(inactive).map(|sum| Box::new(sum) as Box<dyn Examined>).collect()
}

/// The term, or the factor, of each datum.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Slope,
    Squares,
    Variance,
    Line,
    Levels,
    Parabola,
    Plane,
    FourWeights,
    Covariance,
    Indefinite,
    Cubic,
    Fourth,
    Circle,
    Quotient,
    Poisson,
    Logarithms,
    Weighted,
    Exponents,
    Difference,
    Factors,
    Exponentials,
    Normal,
}

const KINDS: [Kind; 22] = [
    Kind::Slope,
    Kind::Squares,
    Kind::Variance,
    Kind::Line,
    Kind::Levels,
    Kind::Parabola,
    Kind::Plane,
    Kind::FourWeights,
    Kind::Covariance,
    Kind::Indefinite,
    Kind::Cubic,
    Kind::Fourth,
    Kind::Circle,
    Kind::Quotient,
    Kind::Poisson,
    Kind::Logarithms,
    Kind::Weighted,
    Kind::Exponents,
    Kind::Difference,
    Kind::Factors,
    Kind::Exponentials,
    Kind::Normal,
];

/// The weights that generate the data.
const TRUTH: [f64; 4] = [0.7, 0.3, -0.4, 0.9];

/// The largest trip count.
const MOST: usize = 120;

struct Sum {
    kind: Kind,
    is_captured: bool,
}

impl Sum {
    /// The mean and the noise of so many data.
    fn spread(&self, trips: usize) -> (f64, f64) {
        match trips {
            40 => (0.0, 0.1),
            60 => (1.0, 0.0),
            100 => (1e3, 0.1),
            _ => (1e6, 1e-6),
        }
    }

    /// The datum of this number: two coordinates and a target.
    fn datum(&self, trips: usize, index: usize) -> [f64; 3] {
        let (mean, noise) = self.spread(trips);
        let mut random = Random::new((trips * MOST + index) as u64);
        let [x, y] = [mean + random.uniform(-1.0, 1.0), mean + random.uniform(-1.0, 1.0)];
        let noise = noise * random.uniform(-1.0, 1.0);
        let [a, b, c, d] = TRUTH;
        match self.kind {
            Kind::Line | Kind::Levels => [x, y, a * x + b + noise],
            Kind::Parabola => [x, y, (a * x + b) * x + c + noise],
            Kind::Plane => [x, y, a * x + b * y + c + noise],
            Kind::FourWeights => [x, y, a * x + b * y + c * x * y + d + noise],
            Kind::Circle => {
                let angle = random.uniform(0.0, std::f64::consts::TAU);
                [mean + a + c * angle.cos() + noise, mean + b + c * angle.sin(), 0.0]
            }
            Kind::Poisson | Kind::Logarithms => [x.abs() + 0.5, y, 0.0],
            Kind::Weighted | Kind::Exponents => [x, y - mean, 0.0],
            // The first term is all of the sum, and cancels.
            Kind::Difference if index == 0 => [0.5, 1.0, 0.0],
            Kind::Difference => [-60.0, 0.0, 0.0],
            _ => [x, y, a * x + noise],
        }
    }

    /// The inputs that minimise the sum, or its terms, without noise.
    fn optimum(&self, trips: usize) -> Vec<f64> {
        let (mean, _) = self.spread(trips);
        let [a, b, c, d] = TRUTH;
        match self.kind {
            Kind::Variance | Kind::Fourth | Kind::Normal => vec![mean],
            Kind::Line => vec![a, b],
            Kind::Levels => vec![a, b + mean, -mean],
            Kind::Parabola | Kind::Plane => vec![a, b, c],
            Kind::FourWeights => vec![a, b, c, d],
            Kind::Covariance => vec![mean, mean],
            Kind::Circle => vec![mean + a, mean + b, c],
            Kind::Quotient => vec![a, b],
            Kind::Poisson | Kind::Logarithms => vec![mean.abs() + 0.5],
            Kind::Weighted => vec![a, b],
            Kind::Exponents => vec![a, b, c],
            Kind::Difference => vec![-0.5, 1.0],
            _ => vec![a],
        }
    }

    /// The state after a datum.
    fn add<T: Number>(&self, w: &[T], sum: T, [x, y, target]: [T; 3]) -> T {
        let constant = T::from;
        let term = match self.kind {
            Kind::Slope => (w[0] * x - target) * x,
            Kind::Squares => (w[0] * x - target).square(),
            Kind::Variance => (w[0] - x).square(),
            Kind::Line => (w[0] * x + w[1] - target).square(),
            Kind::Levels => (w[1] + w[2] + w[0] * x - target).square(),
            Kind::Parabola => ((w[0] * x + w[1]) * x + w[2] - target).square(),
            Kind::Plane => (w[0] * x + w[1] * y + w[2] - target).square(),
            Kind::FourWeights => (w[0] * x + w[1] * y + w[2] * (x * y) + w[3] - target).square(),
            Kind::Covariance => (x - w[0]) * (y - w[1]),
            Kind::Indefinite => (w[0] * x - target) * (w[0] * y + x),
            Kind::Cubic => (w[0] * x - target).square() * (w[0] * x - target),
            Kind::Fourth => (w[0] - x).square().square(),
            Kind::Circle => ((x - w[0]).square() + (y - w[1]).square() - w[2].square()).square(),
            Kind::Quotient => (w[0] * x - target) / w[1],
            Kind::Poisson => w[0].logarithm() * x - w[0],
            Kind::Logarithms => (w[0] * x).logarithm(),
            Kind::Weighted => x * (w[0] + y).exponential() * w[1],
            Kind::Exponents => x * (y - w[0] + w[1]).exponential() * w[2],
            Kind::Difference => (w[0] + x).exponential() - w[1] * y,
            Kind::Factors => return sum * (w[0] * (x * x + y)) / constant(0.7),
            Kind::Exponentials => return sum * (-w[0] * x).exponential(),
            Kind::Normal => return sum * (constant(-0.02) * (x - w[0]).square()).exponential(),
        };
        sum + term
    }

    fn is_product(&self) -> bool {
        matches!(self.kind, Kind::Factors | Kind::Exponentials | Kind::Normal)
    }
}

impl Family for Sum {
    fn name(&self) -> String {
        let over = if self.is_captured { "sum" } else { "sum over inputs" };
        format!("{over} {:?}", self.kind)
    }

    fn inputs(&self) -> usize {
        self.optimum(MOST).len()
    }

    fn trips(&self) -> &'static [usize] {
        match self.kind {
            Kind::Factors | Kind::Exponentials | Kind::Normal => &[40, 60],
            // Logarithms and exponentials take the reference long.
            Kind::Logarithms => &[40],
            Kind::Poisson | Kind::Weighted | Kind::Exponents => &[40, 100],
            Kind::Difference => &[40],
            _ => &[40, 60, 100, MOST],
        }
    }

    fn reference(&self) -> Reference {
        Reference::Steps
    }

    fn bits(&self) -> usize {
        match self.kind {
            Kind::Poisson
            | Kind::Logarithms
            | Kind::Weighted
            | Kind::Exponents
            | Kind::Difference => 224,
            _ => 320,
        }
    }

    fn start<T: Number>(&self, _: &[T]) -> Vec<T> {
        vec![T::from(if self.is_product() { 1.0 } else { 0.0 })]
    }

    fn step<T: Number>(&self, x: &[T], z: &[T], index: usize) -> Vec<T> {
        let (w, data) = x.split_at(self.inputs());
        let datum = [0, 1, 2].map(|i| data[3 * index + i]);
        vec![self.add(w, z[0], datum)]
    }

    fn captured(&self, trips: usize) -> Vec<f64> {
        match self.is_captured {
            true => (0..trips).flat_map(|index| self.datum(trips, index)).collect(),
            false => Vec::new(),
        }
    }

    fn point(&self, trips: usize, random: &mut Random) -> Vec<f64> {
        let optimum = self.optimum(trips).into_iter();
        let (kind, size) = (random.below(8), decade(random, -6.0, 3.0));
        let near = |at: f64| match kind {
            0 => at,
            1 => at * (1.0 + 1e-12 * random.uniform(-1.0, 1.0)),
            2 => at * (1.0 + 1e-8 * random.uniform(-1.0, 1.0)),
            3 => at + 1e-3 * random.uniform(-1.0, 1.0),
            4 => at + random.uniform(-1.0, 1.0),
            5 => random.uniform(-2.0, 2.0),
            6 => at + size * random.uniform(-1.0, 1.0),
            _ => size * random.uniform(-1.0, 1.0),
        };
        let mut point: Vec<f64> = optimum.map(near).collect();
        match self.kind {
            Kind::Poisson | Kind::Logarithms => point[0] = point[0].abs().max(1e-6),
            Kind::Weighted | Kind::Difference => point[0] = point[0].clamp(-200.0, 200.0),
            // Powers that are out of range, whose product is in range.
            Kind::Exponents if kind > 5 => {
                point[0] = random.uniform(-760.0, 760.0);
                point[1] = point[0] + random.uniform(-40.0, 40.0);
            }
            Kind::Exponents => point[0] = point[0].clamp(-200.0, 200.0),
            Kind::Factors => point[0] = sign(random) * decade(random, -4.0, 4.0),
            Kind::Exponentials => point[0] = point[0].clamp(-8.0, 8.0),
            _ => {}
        }
        if !self.is_captured {
            point.extend((0..trips).flat_map(|index| self.datum(trips, index)));
        }
        point
    }
}
