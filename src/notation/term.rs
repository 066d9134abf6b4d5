//! Terms: a number times factors, over others. A sum is one factor.

use crate::op::Op;

/// How tightly a text binds, the loosest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    Relation,
    Sum,
    Product,
    Root,
    Power,
    Atom,
}

#[derive(Clone, Debug, PartialEq)]
struct Factor {
    text: String,
    level: Level,
    power: i32,
}

impl Factor {
    /// The text, in parentheses if it binds less tightly than `level`.
    fn at_least(&self, level: Level) -> String {
        match self.power {
            1 => parenthesised(&self.text, self.level < level),
            power => {
                let text =
                    parenthesised(&self.text, self.level < Level::Atom) + &superscript(power);
                parenthesised(&text, Level::Power < level)
            }
        }
    }
}

/// A term of a formula.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Term {
    number: f64,
    over: Vec<Factor>,
    under: Vec<Factor>,
}

impl Term {
    pub(crate) fn number(number: f64) -> Term {
        Term { number, over: Vec::new(), under: Vec::new() }
    }

    pub(crate) fn new(text: impl Into<String>, level: Level) -> Term {
        let factor = Factor { text: text.into(), level, power: 1 };
        Term { number: 1.0, over: vec![factor], under: Vec::new() }
    }

    pub(crate) fn atom(text: impl Into<String>) -> Term {
        Term::new(text, Level::Atom)
    }

    /// What is left out.
    pub(crate) fn dots() -> Term {
        Term::atom("…")
    }

    fn negated(mut self) -> Term {
        self.number = -self.number;
        self
    }

    fn is_negative(&self) -> bool {
        self.number.is_sign_negative() && !self.number.is_nan()
    }

    /// The only factor, if there is nothing else.
    fn single(&self) -> Option<&Factor> {
        match (&self.over[..], &self.under[..]) {
            ([factor], []) if self.number == 1.0 => Some(factor),
            _ => None,
        }
    }

    pub(crate) fn level(&self) -> Level {
        match self.single() {
            Some(factor) if factor.power == 1 => factor.level,
            Some(_) => Level::Power,
            None if self.is_negative() => Level::Sum,
            None if self.over.is_empty() && self.under.is_empty() => {
                if digits(self.number).contains('e') { Level::Product } else { Level::Atom }
            }
            None => Level::Product,
        }
    }

    /// The text.
    pub(crate) fn text(&self) -> String {
        if let Some(factor) = self.single() {
            return factor.at_least(Level::Relation);
        }
        let size = self.number.abs();
        let mut over: Vec<String> = Vec::new();
        if size != 1.0 || self.over.is_empty() {
            over.push(digits(size));
        }
        over.extend(self.over.iter().map(|factor| factor.at_least(Level::Root)));
        let minus = if self.is_negative() { "−" } else { "" };
        let over = format!("{minus}{}", over.join("·"));
        let under: Vec<String> = self.under.iter().map(|f| f.at_least(Level::Root)).collect();
        match &under[..] {
            [] => over,
            [factor] => format!("{over}/{factor}"),
            factors => format!("{over}/({})", factors.join("·")),
        }
    }

    /// The text, in parentheses if it binds less tightly than `level`.
    pub(crate) fn at_least(&self, level: Level) -> String {
        parenthesised(&self.text(), self.level() < level)
    }

    fn plus(self, other: Term) -> Term {
        let (first, second) = (self.at_least(Level::Sum), other.at_least(Level::Sum));
        if first == second && !first.contains('…') {
            return Term::number(2.0).times(self);
        }
        let sum = match second.strip_prefix('−') {
            Some(second) => format!("{first} − {second}"),
            None => format!("{first} + {second}"),
        };
        Term::new(sum, Level::Sum)
    }

    fn minus(self, other: Term) -> Term {
        if other.is_negative() {
            return self.plus(other.negated());
        }
        let second = other.at_least(Level::Product);
        Term::new(format!("{} − {second}", self.at_least(Level::Sum)), Level::Sum)
    }

    fn times(mut self, other: Term) -> Term {
        self.number = match self.number.abs() == 1.0 || other.number.abs() == 1.0 {
            true => self.number * other.number,
            false => shortened(self.number * other.number),
        };
        merge(&mut self.over, other.over);
        merge(&mut self.under, other.under);
        self
    }

    fn divided_by(mut self, mut other: Term) -> Term {
        if other.is_negative() {
            (self, other) = (self.negated(), other.negated());
        }
        if other.number != 1.0 {
            let text = digits(other.number);
            self.under.push(Factor { text, level: Level::Atom, power: 1 });
        }
        merge(&mut self.under, other.over);
        merge(&mut self.over, other.under);
        self
    }

    /// The term to the power of a number.
    fn power(self, exponent: f64) -> Term {
        if exponent.fract() != 0.0 || exponent.abs() >= 1e4 {
            return self.raised(&Term::number(exponent));
        }
        let (text, level, power) = match self.single() {
            Some(Factor { text, level, power }) => (text.clone(), *level, *power),
            None => (self.text(), self.level(), 1),
        };
        let factor = Factor { text, level, power: power.saturating_mul(exponent as i32) };
        Term { over: vec![factor], ..Term::number(1.0) }
    }

    fn raised(&self, exponent: &Term) -> Term {
        let text = format!("{}^{}", self.at_least(Level::Atom), exponent.at_least(Level::Atom));
        Term::new(text, Level::Power)
    }

    /// The application of `op`, no comparison and no choice.
    pub(crate) fn apply(op: Op, args: impl IntoIterator<Item = Term>) -> Term {
        let mut args = args.into_iter();
        let mut next = || args.next().unwrap_or_else(Term::dots);
        match op {
            Op::Add => next().plus(next()),
            Op::Sub => next().minus(next()),
            Op::Mul => next().times(next()),
            Op::Div => next().divided_by(next()),
            Op::Neg => next().negated(),
            Op::Recip => Term::number(1.0).divided_by(next()),
            Op::MulAdd => next().times(next()).plus(next()),
            Op::Powi | Op::Powf => match (next(), next()) {
                (base, Term { number, over, under }) if over.is_empty() && under.is_empty() => {
                    base.power(number)
                }
                (base, exponent) => base.raised(&exponent),
            },
            Op::Exp => Term::atom("e").raised(&next()),
            Op::Exp2 => Term::number(2.0).raised(&next()),
            Op::ExpM1 => Term::atom("e").raised(&next()).minus(Term::number(1.0)),
            Op::Ln1p => Term::apply(Op::Ln, [Term::number(1.0).plus(next())]),
            Op::Sqrt => Term::new(format!("√{}", next().at_least(Level::Atom)), Level::Root),
            Op::Hypot => Term::apply(Op::Sqrt, [next().power(2.0).plus(next().power(2.0))]),
            Op::Abs => Term::atom(format!("|{}|", next().text())),
            Op::Attach => next(),
            _ => {
                let texts: Vec<String> = args.map(|arg| arg.text()).collect();
                Term::atom(format!("{}({})", function(op), texts.join(", ")))
            }
        }
    }
}

/// What mathematics calls `op`.
fn function(op: Op) -> &'static str {
    match op {
        Op::Log2 => "log₂",
        Op::Log10 => "log₁₀",
        Op::Asin => "arcsin",
        Op::Acos => "arccos",
        Op::Atan => "arctan",
        Op::Signum => "sgn",
        _ => op.name(),
    }
}

fn parenthesised(text: &str, needed: bool) -> String {
    if needed { format!("({text})") } else { text.to_owned() }
}

/// Multiplies by `others`: of equal factors the powers add up.
fn merge(factors: &mut Vec<Factor>, others: Vec<Factor>) {
    for other in others {
        // Two terms of which something is left out may differ.
        let is_same = |known: &&mut Factor| {
            (&known.text, known.power > 0) == (&other.text, other.power > 0)
                && !known.text.contains('…')
        };
        match factors.iter_mut().find(is_same) {
            Some(known) => known.power = known.power.saturating_add(other.power),
            None => factors.push(other),
        }
    }
}

/// A number, without the digits that are the rounding of how it was computed.
fn shortened(number: f64) -> f64 {
    format!("{number:.14e}").parse().unwrap_or(number)
}

/// The text of a [`shortened`] number.
pub(crate) fn number(number: f64) -> String {
    Term::number(shortened(number)).text()
}

/// A number that is not negative.
fn digits(number: f64) -> String {
    match number {
        _ if number.is_nan() => "NaN".to_owned(),
        _ if number.is_infinite() => "∞".to_owned(),
        _ if number == 0.0 || (1e-3..1e15).contains(&number) => format!("{number}"),
        _ => format!("{number:e}"),
    }
}

pub(crate) fn subscript(number: usize) -> String {
    let digit = |digit: char| digit.to_digit(10).and_then(|d| char::from_u32(0x2080 + d));
    number.to_string().chars().filter_map(digit).collect()
}

fn superscript(number: i32) -> String {
    const DIGITS: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    let digit = |digit: char| digit.to_digit(10).map_or('⁻', |d| DIGITS[d as usize]);
    number.to_string().chars().map(digit).collect()
}
