//! Numbers as pairs of nodes: a value, and what rounding has taken from it
//! (`ssa::error_free`).
//!
//! As a function of real numbers a rounding error is zero, and so is its
//! derivative: differentiation sees the first parts alone. So where a pair is a
//! factor of many, its first part must be as near to the number as it can be.

use crate::op::Op;
use crate::ssa::{FAR, Node, split_product, split_sum};

/// A number as the sum of a node and a far smaller one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Pair {
    pub(super) high: Node,
    pub(super) low: Option<Node>,
}

impl From<Node> for Pair {
    fn from(high: Node) -> Self {
        Pair { high, low: None }
    }
}

/// What a pair was made of.
#[derive(Clone, Copy, Debug)]
pub(super) enum How {
    Sum(Pair, Pair),
    Product(Pair, Pair),
    Quotient(Pair, Node),
}

/// What makes steps, and pairs of them.
pub(super) trait Pairs {
    /// What `op` comes to.
    fn apply(&mut self, op: Op, args: &[Node]) -> Node;

    fn constant(&mut self, value: f64) -> Node;

    /// The value of a node that is a constant.
    fn value(&self, node: Node) -> Option<f64>;

    /// Called for each sum, product and quotient of pairs that is made.
    fn made(&mut self, _result: Pair, _how: How) {}

    /// The pair of two constants.
    fn number(&mut self, high: f64, low: f64) -> Pair {
        let high = self.constant(high);
        Pair { high, low: if low == 0.0 { None } else { Some(self.constant(low)) } }
    }

    /// `a + b`, either of which may be missing.
    fn sum(&mut self, a: Option<Pair>, b: Option<Pair>) -> Option<Pair> {
        let (a, b) = match (a, b) {
            (Some(a), Some(b)) => (a, b),
            (a, b) => return a.or(b),
        };
        let (high, lost) = self.split_sum(a.high, b.high);
        let low = self.add_low(Some(lost), a.low);
        let low = self.add_low(low, b.low);
        let sum = Pair { high, low: self.unless_zero(low) };
        self.made(sum, How::Sum(a, b));
        Some(sum)
    }

    /// `a + b`, and what rounding takes from it.
    fn split_sum(&mut self, a: Node, b: Node) -> (Node, Node) {
        let less = self.constant(-1.0);
        let [sum, lost] = split_sum(|op, args| self.apply(op, args), less, [a, b]);
        (sum, lost)
    }

    /// `a · b`.
    fn product(&mut self, a: Pair, b: Pair) -> Pair {
        let product = self.multiplied(a, b);
        self.made(product, How::Product(a, b));
        product
    }

    /// The product, as steps.
    fn multiplied(&mut self, a: Pair, b: Pair) -> Pair {
        for (factor, other) in [(a, b), (b, a)] {
            if let (Some(scale), None) = (self.value(factor.high), factor.low)
                && is_power_of_two(scale)
            {
                let high = self.apply(Op::Mul, &[other.high, factor.high]);
                let low = other.low.map(|low| self.apply(Op::Mul, &[low, factor.high]));
                return Pair { high, low };
            }
        }
        let [high, lost] = split_product(|op, args| self.apply(op, args), [a.high, b.high]);
        let lost = self.unless_zero(Some(lost));
        if let (true, Some(second)) = (a == b, a.low) {
            let twice = self.apply(Op::Add, &[a.high, a.high]);
            let low = match lost {
                Some(lost) => self.apply(Op::MulAdd, &[twice, second, lost]),
                None => self.apply(Op::Mul, &[twice, second]),
            };
            return Pair { high, low: Some(low) };
        }
        let mut low = lost;
        for (factor, other) in [(b.high, a.low), (a.high, b.low)] {
            low = match (low, other) {
                (Some(low), Some(other)) => Some(self.apply(Op::MulAdd, &[factor, other, low])),
                (None, Some(other)) => Some(self.apply(Op::Mul, &[factor, other])),
                (low, None) => low,
            };
        }
        Pair { high, low }
    }

    /// `a / b` for a node `b`.
    fn quotient(&mut self, a: Pair, b: Node) -> Pair {
        let high = self.apply(Op::Div, &[a.high, b]);
        let negative = self.apply(Op::Neg, &[high]);
        let left = self.apply(Op::MulAdd, &[negative, b, a.high]);
        let left = self.add_low(Some(left), a.low);
        let low = left.map(|left| self.apply(Op::Div, &[left, b]));
        let quotient = Pair { high, low: self.unless_zero(low) };
        self.made(quotient, How::Quotient(a, b));
        quotient
    }

    /// The same number with a second part of at most half an ulp of the first.
    fn normal(&mut self, a: Pair) -> Pair {
        let Some(low) = a.low else { return a };
        let high = self.apply(Op::Add, &[a.high, low]);
        let less = self.constant(-1.0);
        let moved = self.apply(Op::MulAdd, &[a.high, less, high]);
        let low = self.apply(Op::Sub, &[low, moved]);
        Pair { high, low: self.unless_zero(Some(low)) }
    }

    /// The pair as one number.
    fn rounded(&mut self, a: Pair) -> Node {
        match a.low {
            Some(low) => self.apply(Op::Add, &[a.high, low]),
            None => a.high,
        }
    }

    /// The tangent of `node`: zero, with the derivative one.
    fn tangent(&mut self, node: Node) -> Node {
        self.tangent_by(FAR, node)
    }

    /// The same, spelt with a number that is so `far`.
    fn tangent_by(&mut self, far: f64, node: Node) -> Node {
        if self.value(node).is_some() {
            return self.constant(0.0);
        }
        let (less, far, one) = (self.constant(-far), self.constant(far), self.constant(1.0));
        let sum = self.apply(Op::Add, &[node, far]);
        self.apply(Op::MulAdd, &[sum, one, less])
    }

    /// `node` without a derivative.
    fn held(&mut self, node: Node) -> Node {
        match self.value(node) {
            Some(_) => node,
            None => {
                let tangent = self.tangent(node);
                self.apply(Op::Sub, &[node, tangent])
            }
        }
    }

    /// `value`, which has these derivatives by these nodes and no others.
    fn with_slopes(&mut self, value: Node, slopes: &[(Node, Node)]) -> Node {
        let all = slopes.iter().filter(|(_, slope)| self.value(*slope) != Some(0.0));
        let slopes: Vec<_> = all.map(|&(node, slope)| (FAR, node, slope)).collect();
        self.with_slopes_by(value, &slopes)
    }

    /// The same, where the tangent of each node is so far. Derivatives that are known to be zero are
    /// told, too: they may have vanished.
    fn with_slopes_by(&mut self, value: Node, slopes: &[(f64, Node, Node)]) -> Node {
        let mut sum = self.held(value);
        for &(far, node, slope) in slopes {
            if self.value(node).is_some() {
                continue;
            }
            let (slope, tangent) = (self.held(slope), self.tangent_by(far, node));
            let product = self.apply(Op::Mul, &[slope, tangent]);
            sum = self.apply(Op::Add, &[sum, product]);
        }
        sum
    }

    fn add_low(&mut self, a: Option<Node>, b: Option<Node>) -> Option<Node> {
        match (a, b) {
            (Some(a), Some(b)) => Some(self.apply(Op::Add, &[a, b])),
            (a, b) => a.or(b),
        }
    }

    fn unless_zero(&self, node: Option<Node>) -> Option<Node> {
        node.filter(|&node| self.value(node) != Some(0.0))
    }
}

/// Whether multiplication by `x` loses no digits.
pub(super) fn is_power_of_two(x: f64) -> bool {
    const MANTISSA: u64 = (1 << 52) - 1;
    x.is_normal() && x.to_bits() & MANTISSA == 0
}
