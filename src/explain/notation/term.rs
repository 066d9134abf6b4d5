//! Terms of formulas: a number times powers of factors. A sum is one factor.

use crate::op::Op;

/// The precedence of a text, the lowest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    Relation,
    Sum,
    Product,
    Root,
    Power,
    Atom,
}

/// A factor with its exponent; that of a divisor is negative.
#[derive(Clone, Debug, PartialEq)]
struct Factor {
    text: String,
    level: Level,
    power: i32,
}

impl Factor {
    /// The text without the sign of the exponent, in parentheses if its precedence is below
    /// `level`.
    fn at_least(&self, level: Level) -> String {
        match self.power.unsigned_abs() {
            1 => parenthesised(&self.text, self.level < level),
            power => {
                parenthesised(&self.text, self.level < Level::Atom) + &script(power, SUPERSCRIPTS)
            }
        }
    }
}

/// A term of a formula.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Term {
    number: f64,
    factors: Vec<Factor>,
}

impl Term {
    pub(crate) fn number(number: f64) -> Term {
        Term { number, factors: Vec::new() }
    }

    pub(crate) fn new(text: impl Into<String>, level: Level) -> Term {
        let factor = Factor { text: text.into(), level, power: 1 };
        Term { number: 1.0, factors: vec![factor] }
    }

    pub(crate) fn atom(text: impl Into<String>) -> Term {
        Term::new(text, Level::Atom)
    }

    /// The term "…" for an omitted term.
    pub(crate) fn ellipsis() -> Term {
        Term::atom("…")
    }

    fn negated(mut self) -> Term {
        self.number = -self.number;
        self
    }

    fn is_negative(&self) -> bool {
        self.number.is_sign_negative() && !self.number.is_nan()
    }

    /// The factor of a term that consists of a single one.
    fn single(&self) -> Option<&Factor> {
        match &self.factors[..] {
            [factor] if self.number == 1.0 && factor.power > 0 => Some(factor),
            _ => None,
        }
    }

    fn level(&self) -> Level {
        match self.single() {
            Some(factor) if factor.power == 1 => factor.level,
            Some(_) => Level::Power,
            None if self.is_negative() => Level::Sum,
            None if self.factors.is_empty() && digits(self.number).is_ascii() => Level::Atom,
            None => Level::Product,
        }
    }

    /// The text.
    pub(crate) fn text(&self) -> String {
        if let Some(factor) = self.single() {
            return factor.at_least(Level::Relation);
        }
        let texts = |is_numerator: bool| -> Vec<String> {
            let those = self.factors.iter().filter(|factor| (factor.power > 0) == is_numerator);
            those.map(|factor| factor.at_least(Level::Root)).collect()
        };
        let (mut over, under) = (texts(true), texts(false));
        if self.number.abs() != 1.0 || over.is_empty() {
            over.insert(0, digits(self.number.abs()));
        }
        let minus = if self.is_negative() { "−" } else { "" };
        let over = format!("{minus}{}", over.join("·"));
        match &under[..] {
            [] => over,
            [factor] => format!("{over}/{factor}"),
            factors => format!("{over}/({})", factors.join("·")),
        }
    }

    /// The text, in parentheses if its precedence is below `level`.
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

    fn times(mut self, other: Term) -> Term {
        self.number *= other.number;
        self.multiply(other.factors);
        self
    }

    fn divided_by(mut self, mut other: Term) -> Term {
        if other.is_negative() {
            (self, other) = (self.negated(), other.negated());
        }
        if other.number != 1.0 {
            let number = Term::number(other.number);
            self.factors.push(Factor { text: number.text(), level: number.level(), power: -1 });
        }
        let inverse = other.factors.into_iter();
        self.multiply(inverse.map(|factor| Factor { power: -factor.power, ..factor }));
        self
    }

    /// Multiplies by `others`. The exponents of equal factors add up, separately in the numerator
    /// and the denominator.
    fn multiply(&mut self, others: impl IntoIterator<Item = Factor>) {
        for other in others {
            // Two terms with omitted parts may differ.
            let is_same = |known: &&mut Factor| {
                (&known.text, known.power > 0) == (&other.text, other.power > 0)
                    && !known.text.contains('…')
            };
            match self.factors.iter_mut().find(is_same) {
                Some(known) => known.power = known.power.saturating_add(other.power),
                None => self.factors.push(other),
            }
        }
    }

    /// The term to the power of a number.
    fn power(self, exponent: f64) -> Term {
        if exponent.fract() != 0.0 || exponent == 0.0 || exponent.abs() >= 1e4 {
            return self.raised(&Term::number(exponent));
        }
        let mut factor = match self.single() {
            Some(factor) => factor.clone(),
            None => Factor { text: self.text(), level: self.level(), power: 1 },
        };
        factor.power = factor.power.saturating_mul(exponent as i32);
        Term { number: 1.0, factors: vec![factor] }
    }

    fn raised(&self, exponent: &Term) -> Term {
        let text = format!("{}^{}", self.at_least(Level::Atom), exponent.at_least(Level::Atom));
        Term::new(text, Level::Power)
    }

    /// The application of `op`, which is no comparison and no select.
    pub(crate) fn apply(op: Op, args: impl IntoIterator<Item = Term>) -> Term {
        let mut args = args.into_iter();
        let mut next = || args.next().unwrap_or_else(Term::ellipsis);
        match op {
            Op::Add => next().plus(next()),
            Op::Sub => next().plus(next().negated()),
            Op::Mul => next().times(next()),
            Op::Div => next().divided_by(next()),
            Op::Neg => next().negated(),
            Op::Recip => Term::number(1.0).divided_by(next()),
            Op::MulAdd => next().times(next()).plus(next()),
            Op::Powi | Op::Powf => match (next(), next()) {
                (base, Term { number, factors }) if factors.is_empty() => base.power(number),
                (base, exponent) => base.raised(&exponent),
            },
            Op::Exp => Term::atom("e").raised(&next()),
            Op::Exp2 => Term::number(2.0).raised(&next()),
            Op::ExpM1 => Term::atom("e").raised(&next()).plus(Term::number(-1.0)),
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

/// The mathematical name of `op`.
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

/// A number as text.
pub(crate) fn number(number: f64) -> String {
    Term::number(number).text()
}

/// A non-negative number, rounded to 15 digits to hide rounding errors, with a power of ten if it
/// is very small or large.
fn digits(number: f64) -> String {
    let short = format!("{number:.14e}").parse().unwrap_or(number);
    let text = match short {
        _ if short.is_infinite() => "∞".to_owned(),
        _ if short == 0.0 || (1e-3..1e15).contains(&short) => format!("{short}"),
        _ => format!("{short:e}"),
    };
    match text.split_once('e') {
        Some(("1", power)) => format!("10{}", script(power, SUPERSCRIPTS)),
        Some((digits, power)) => format!("{digits}·10{}", script(power, SUPERSCRIPTS)),
        None => text,
    }
}

/// The superscript digits, and a superscript minus.
pub(super) const SUPERSCRIPTS: &str = "⁰¹²³⁴⁵⁶⁷⁸⁹⁻";
/// The subscript digits.
pub(super) const SUBSCRIPTS: &str = "₀₁₂₃₄₅₆₇₈₉";

/// `number` in these digits.
fn script(number: impl ToString, digits: &str) -> String {
    let digit = |digit: char| digits.chars().nth(digit.to_digit(10).unwrap_or(10) as usize);
    number.to_string().chars().filter_map(digit).collect()
}

pub(crate) fn subscript(number: usize) -> String {
    script(number, SUBSCRIPTS)
}
