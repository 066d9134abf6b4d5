//! Numbers of twice the precision, the reference for the tests of rules.

use crate::op::Op;

/// The unevaluated sum of two numbers, the second small.
#[derive(Clone, Copy, Debug)]
pub(super) struct Precise(f64, f64);

const LN_2: Precise = Precise(core::f64::consts::LN_2, 2.319_046_813_846_299_6e-17);

impl From<f64> for Precise {
    fn from(x: f64) -> Precise {
        Precise(x, 0.0)
    }
}

impl Precise {
    pub(super) fn is_finite(self) -> bool {
        self.0.is_finite() && self.1.is_finite()
    }

    /// How far `x` is from this number.
    pub(super) fn distance(self, x: f64) -> f64 {
        self.sub(Precise::from(x)).0.abs()
    }

    fn of_sum(a: f64, b: f64) -> Precise {
        let sum = a + b;
        let of_b = sum - a;
        Precise(sum, (a - (sum - of_b)) + (b - of_b))
    }

    fn add(self, other: Precise) -> Precise {
        let (high, low) = (Precise::of_sum(self.0, other.0), Precise::of_sum(self.1, other.1));
        let high = Precise::of_sum(high.0, high.1 + low.0);
        Precise::of_sum(high.0, high.1 + low.1)
    }

    fn neg(self) -> Precise {
        Precise(-self.0, -self.1)
    }

    fn sub(self, other: Precise) -> Precise {
        self.add(other.neg())
    }

    fn mul(self, other: Precise) -> Precise {
        let product = self.0 * other.0;
        let rest = self.0.mul_add(other.0, -product);
        Precise::of_sum(product, rest + (self.0 * other.1 + self.1 * other.0))
    }

    fn div(self, other: Precise) -> Precise {
        let first = self.0 / other.0;
        let rest = self.sub(other.mul(first.into()));
        let second = rest.0 / other.0;
        let rest = rest.sub(other.mul(second.into()));
        Precise::of_sum(first, second).add((rest.0 / other.0).into())
    }

    fn sqrt(self) -> Precise {
        if self.0 == 0.0 {
            return self;
        }
        let root = self.0.sqrt();
        let rest = self.sub(Precise::from(root).mul(root.into()));
        Precise::of_sum(root, rest.0 / (2.0 * root))
    }

    fn exp(self) -> Precise {
        let halvings = (self.0 / core::f64::consts::LN_2).round();
        let rest = self.sub(LN_2.mul(halvings.into())).mul((1.0 / 512.0).into());
        let (mut sum, mut term) = (Precise::from(0.0), Precise::from(1.0));
        for i in 1..12 {
            term = term.mul(rest).div(f64::from(i).into());
            sum = sum.add(term);
        }
        // (1 + s)² - 1 = 2s + s², so that nothing small is lost.
        for _ in 0..9 {
            sum = sum.add(sum).add(sum.mul(sum));
        }
        let power = 2f64.powi(halvings as i32);
        sum.add(1.0.into()).mul(power.into())
    }

    /// `eˣ - 1`, to all digits also near 0.
    fn exp_m1(self) -> Precise {
        if self.0.abs() > 0.5 {
            return self.exp().sub(1.0.into());
        }
        let (mut sum, mut term) = (Precise::from(0.0), Precise::from(1.0));
        for i in 1..30 {
            term = term.mul(self).div(f64::from(i).into());
            sum = sum.add(term);
        }
        sum
    }

    /// Sine and cosine of a number that is not large, by its half, and so on.
    fn sin_cos(self) -> (Precise, Precise) {
        if self.0.abs() > 0.5 {
            let (sine, cosine) = self.mul(0.5.into()).sin_cos();
            let twice = sine.add(sine);
            return (twice.mul(cosine), Precise::from(1.0).sub(twice.mul(sine)));
        }
        let (mut all, mut term) = ([Precise::from(0.0); 2], Precise::from(1.0));
        for i in 0..30 {
            let signed = if i % 4 < 2 { term } else { term.neg() };
            all[i as usize % 2] = all[i as usize % 2].add(signed);
            term = term.mul(self).div(f64::from(i + 1).into());
        }
        (all[1], all[0])
    }

    fn ln(self) -> Precise {
        let guess = Precise::from(self.0.ln());
        let better = guess.add(self.mul(guess.neg().exp())).sub(1.0.into());
        better.add(self.mul(better.neg().exp())).sub(1.0.into())
    }

    /// `op` of these numbers; NaN for those that the rules do not have.
    pub(super) fn eval(op: Op, args: &[Precise]) -> Precise {
        let [a, b] = [0, 1].map(|i| args.get(i).copied().unwrap_or(Precise(0.0, 0.0)));
        let one = Precise::from(1.0);
        match op {
            Op::Add => a.add(b),
            Op::Sub => a.sub(b),
            Op::Mul => a.mul(b),
            Op::Div => a.div(b),
            Op::Recip => one.div(a),
            Op::Neg => a.neg(),
            Op::Sqrt => a.sqrt(),
            Op::Exp => a.exp(),
            Op::ExpM1 => a.exp_m1(),
            Op::Sinh => a.exp_m1().sub(a.neg().exp_m1()).mul(0.5.into()),
            Op::Tanh => {
                let twice = a.add(a).exp_m1();
                twice.div(twice.add(2.0.into()))
            }
            Op::Sin => a.sin_cos().0,
            Op::Cos => a.sin_cos().1,
            Op::Ln => a.ln(),
            Op::Ln1p => a.add(one).ln(),
            Op::Powf if b.0 == 0.0 => one,
            Op::Powf if a.0 == 0.0 && b.0 > 0.0 => a,
            Op::Powf if a.0 > 0.0 => b.mul(a.ln()).exp(),
            Op::Powf if b.0 == 2.0 => a.mul(a),
            Op::Powf if b.0 == 3.0 => a.mul(a).mul(a),
            Op::Powf if b.0 == 4.0 => a.mul(a).mul(a.mul(a)),
            Op::Powf if b.0 == -1.0 => one.div(a),
            Op::Abs if a.0 < 0.0 => a.neg(),
            Op::Abs => a,
            Op::Max => {
                if a.0 > b.0 {
                    a
                } else {
                    b
                }
            }
            Op::Min => {
                if a.0 < b.0 {
                    a
                } else {
                    b
                }
            }
            Op::Select => {
                if a.0 != 0.0 {
                    b
                } else {
                    args[2]
                }
            }
            Op::Gt => Precise::from(f64::from(u8::from(a.0 > b.0))),
            _ => Precise(f64::NAN, f64::NAN),
        }
    }
}
