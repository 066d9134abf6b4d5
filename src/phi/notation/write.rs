//! Terms as text: in Unicode, or in the language of LaTeX.

use super::flat::{Factors, summands};
use super::logic::decision;
use super::term::{Index, Line, Name, Part, Term};
use crate::op::Op;

/// In what a formula is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Script {
    Unicode,
    Latex,
}

use Script::{Latex, Unicode};

/// How tightly a piece of text holds together, the loosest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    Relation,
    Sum,
    Product,
    Root,
    Power,
    Atom,
}

struct Piece {
    text: String,
    level: Level,
}

fn atom(text: impl Into<String>) -> Piece {
    Piece { text: text.into(), level: Level::Atom }
}

/// The lines as one text.
pub(super) fn lines(lines: &[Line], script: Script) -> String {
    let written: Vec<String> = lines.iter().map(|l| line(l, script)).collect();
    match script {
        Unicode => written.join("\n"),
        Latex => format!("\\begin{{aligned}}\n{}\n\\end{{aligned}}", written.join(" \\\\\n")),
    }
}

fn line(line: &Line, script: Script) -> String {
    let parts = line.parts.iter().map(|part| script.part(part));
    match script {
        Unicode => format!("{}{}", "  ".repeat(line.depth), parts.collect::<String>()),
        Latex => format!("& {}{}", "\\quad ".repeat(line.depth), parts.collect::<String>()),
    }
}

impl Script {
    pub(super) fn pick(self, unicode: &'static str, latex: &'static str) -> &'static str {
        match self {
            Unicode => unicode,
            Latex => latex,
        }
    }

    pub(super) fn term(self, term: &Term) -> String {
        self.piece(term).text
    }

    pub(super) fn words(self, words: &str) -> String {
        match self {
            Unicode => words.to_owned(),
            Latex => format!("\\text{{{}}}", words.replace('…', "\\ldots")),
        }
    }

    fn part(self, part: &Part) -> String {
        match part {
            Part::Words(words) if words.trim() == "=" => words.clone(),
            Part::Words(words) => self.words(words),
            Part::Term(term) => self.term(term),
            Part::Derivative(name) => match self {
                Unicode => format!("∂f/∂{}", self.name(name)),
                Latex => format!("\\frac{{\\partial f}}{{\\partial {}}}", self.name(name)),
            },
            Part::Define(name, term) => format!("{} = {}", self.name(name), self.term(term)),
            Part::Assign(names, terms) => {
                let names: Vec<String> = names.iter().map(|name| self.name(name)).collect();
                let terms: Vec<String> = terms.iter().map(|term| self.term(term)).collect();
                let arrow = self.pick(" ← ", " \\gets ");
                match names.len() {
                    1 => format!("{}{arrow}{}", names[0], terms[0]),
                    _ => format!("({}){arrow}({})", names.join(", "), terms.join(", ")),
                }
            }
            Part::Condition(term, holds) => self.condition(term, *holds),
        }
    }

    pub(super) fn name(self, name: &Name) -> String {
        match (name.number, self) {
            (None, _) => name.letter.to_owned(),
            (Some(number), Unicode) => format!("{}{}", name.letter, below(number)),
            (Some(number), Latex) => format!("{}_{{{number}}}", name.letter),
        }
    }

    fn index(self, index: &Index) -> String {
        let mut text = String::new();
        for (factor, counter) in &index.steps {
            match (text.is_empty(), *factor < 0) {
                (true, false) => {}
                (false, false) => text.push('+'),
                (_, true) => text.push_str(self.pick("−", "-")),
            }
            if factor.unsigned_abs() != 1 {
                text.push_str(&factor.unsigned_abs().to_string());
            }
            text.push_str(&self.name(counter));
        }
        match (text.is_empty(), index.base) {
            (true, base) => base.to_string(),
            (false, 0) => text,
            (false, base) if text.starts_with(self.pick("−", "-")) => format!("{base}{text}"),
            (false, base) => format!("{text}+{base}"),
        }
    }

    fn element(self, name: &Name, index: &Index) -> String {
        let at = self.index(index);
        match (self, name.number, index.steps.is_empty()) {
            (Latex, None, _) => format!("{}_{{{at}}}", name.letter),
            (Latex, Some(number), _) => format!("{}_{{{number},{at}}}", name.letter),
            (Unicode, None, true) => format!("{}{}", name.letter, below(index.base as usize)),
            (Unicode, None, false) if at.chars().count() == 1 => format!("{}_{at}", name.letter),
            (Unicode, None, false) => format!("{}_{{{at}}}", name.letter),
            (Unicode, Some(_), _) => format!("{}[{at}]", self.name(name)),
        }
    }

    pub(super) fn parenthesised(self, text: &str) -> String {
        match self {
            Unicode => format!("({text})"),
            Latex => format!("\\left({text}\\right)"),
        }
    }

    /// The term, in parentheses if it holds together less tightly than `level`.
    pub(super) fn at_least(self, term: &Term, level: Level) -> String {
        let piece = self.piece(term);
        if piece.level < level { self.parenthesised(&piece.text) } else { piece.text }
    }

    fn piece(self, term: &Term) -> Piece {
        match term {
            Term::Number(value) => self.number(*value),
            Term::Name(name) => atom(self.name(name)),
            Term::Vague("…", _) => atom(self.pick("…", "\\dots")),
            Term::Vague(letter, _) => atom(*letter),
            Term::Text(text) => {
                let text = if self == Latex { super::latex::latex(text) } else { text.clone() };
                Piece { text, level: Level::Power }
            }
            Term::Element(name, index) => atom(self.element(name, index)),
            Term::Past(name, index) => {
                let (name, index) = (self.name(name), self.index(index));
                let raised = |text: String| Piece { text, level: Level::Power };
                match self {
                    Unicode => raised(format!("{name}^({index})")),
                    Latex => raised(format!("{{{name}}}^{{({index})}}")),
                }
            }
            Term::Sum { product, counter, count, body } => {
                let sign = match product {
                    false => self.pick("Σ", "\\sum"),
                    true => self.pick("Π", "\\prod"),
                };
                let (counter, body) = (self.name(counter), self.at_least(body, Level::Product));
                let text = format!("{sign}_{{{counter}<{count}}} {body}");
                Piece { text, level: Level::Sum }
            }
            Term::Apply(op, args) => self.application(*op, args),
            Term::Carried { exit, first, .. } => {
                let sign = self.pick("φ_L", "\\varphi_{L}");
                let exit = if *exit { "'" } else { "" };
                let inside = format!("{}, {}", self.term(first), self.pick("…", "\\dots"));
                atom(format!("{sign}{exit}{}", self.parenthesised(&inside)))
            }
        }
    }

    fn number(self, value: f64) -> Piece {
        if value.is_sign_negative() && !value.is_nan() {
            let text = format!("{}{}", self.pick("−", "-"), self.number(-value).text);
            return Piece { text, level: Level::Sum };
        }
        let size = value.abs();
        let text = match () {
            () if value.is_nan() => self.pick("NaN", "\\mathrm{NaN}").to_owned(),
            () if size.is_infinite() => self.pick("∞", "\\infty").to_owned(),
            () if size == 0.0 || (1e-3..1e15).contains(&size) => format!("{value}"),
            () => {
                let text = format!("{value:e}");
                match (self, text.split_once('e')) {
                    (Latex, Some(("1", power))) => format!("10^{{{power}}}"),
                    (Latex, Some((digits, power))) => {
                        let text = format!("{digits} \\cdot 10^{{{power}}}");
                        return Piece { text, level: Level::Product };
                    }
                    _ => text,
                }
            }
        };
        atom(text)
    }

    fn application(self, op: Op, args: &[Term]) -> Piece {
        match op {
            Op::Add | Op::Sub | Op::MulAdd | Op::ExpM1 => self.sum(op, args),
            Op::Mul | Op::Div | Op::Recip | Op::Neg => {
                let (negative, piece) = self.product(&Term::Apply(op, args.to_vec()));
                if !negative {
                    return piece;
                }
                let inner = match piece.level {
                    Level::Relation | Level::Sum => self.parenthesised(&piece.text),
                    _ => piece.text,
                };
                Piece { text: format!("{}{inner}", self.pick("−", "-")), level: Level::Sum }
            }
            Op::Powi | Op::Powf => match &args[1] {
                Term::Number(n) => self.power(&args[0], *n),
                exponent => self.raised(self.at_least(&args[0], Level::Atom), exponent),
            },
            Op::Exp => self.raised("e".to_owned(), &args[0]),
            Op::Exp2 => self.raised("2".to_owned(), &args[0]),
            Op::Sqrt | Op::Cbrt => match self {
                Unicode => {
                    let sign = if op == Op::Sqrt { "√" } else { "∛" };
                    let text = format!("{sign}{}", self.at_least(&args[0], Level::Atom));
                    Piece { text, level: Level::Root }
                }
                Latex => {
                    let degree = if op == Op::Sqrt { "" } else { "[3]" };
                    atom(format!("\\sqrt{degree}{{{}}}", self.term(&args[0])))
                }
            },
            Op::Hypot => {
                let square = |i: usize| Term::apply(Op::Powi, [args[i].clone(), Term::Number(2.0)]);
                let sum = Term::apply(Op::Add, [square(0), square(1)]);
                self.application(Op::Sqrt, &[sum])
            }
            Op::Abs => self.between("|", "|", &args[0]),
            Op::Floor => {
                self.between(self.pick("⌊", "\\lfloor "), self.pick("⌋", "\\rfloor"), &args[0])
            }
            Op::Ceil => {
                self.between(self.pick("⌈", "\\lceil "), self.pick("⌉", "\\rceil"), &args[0])
            }
            Op::Select => {
                let (decides, holds) = decision(&args[0]);
                let sides = if holds { [&args[1], &args[2]] } else { [&args[2], &args[1]] };
                let sides = sides.map(|side| self.term(side));
                let (condition, sign) = (self.condition(decides, true), self.pick("φ", "\\varphi"));
                let inside = format!("{condition}; {}, {}", sides[0], sides[1]);
                atom(format!("{sign}{}", self.parenthesised(&inside)))
            }
            Op::Lt | Op::Le | Op::Gt | Op::Ge | Op::Eq | Op::Ne | Op::Same => {
                let sides = [0, 1].map(|i| self.at_least(&args[i], Level::Sum));
                let text = format!("{} {} {}", sides[0], self.relation(op, true), sides[1]);
                Piece { text, level: Level::Relation }
            }
            Op::Ln1p => {
                let sum = Term::apply(Op::Add, [Term::Number(1.0), args[0].clone()]);
                self.application(Op::Ln, &[sum])
            }
            _ => self.function(op, args),
        }
    }

    fn between(self, left: &str, right: &str, inner: &Term) -> Piece {
        let (opening, closing) = match self {
            Unicode => ("", ""),
            Latex => ("\\left", "\\right"),
        };
        atom(format!("{opening}{left}{}{closing}{right}", self.term(inner)))
    }

    fn function(self, op: Op, args: &[Term]) -> Piece {
        let args: Vec<String> = args.iter().map(|arg| self.term(arg)).collect();
        let inside = self.parenthesised(&args.join(", "));
        // Those that LaTeX knows by another name, or not at all.
        let (name, known) = match op {
            Op::Ln => ("ln", true),
            Op::Log2 => (self.pick("log₂", "log_2"), true),
            Op::Log10 => (self.pick("log₁₀", "log_{10}"), true),
            Op::Sin | Op::Cos | Op::Tan | Op::Sinh | Op::Cosh | Op::Tanh => (op.name(), true),
            Op::Min | Op::Max => (op.name(), true),
            Op::Asin => ("arcsin", true),
            Op::Acos => ("arccos", true),
            Op::Atan => ("arctan", true),
            Op::Asinh => ("arsinh", false),
            Op::Acosh => ("arcosh", false),
            Op::Atanh => ("artanh", false),
            Op::Signum => ("sgn", false),
            Op::Fract => ("frac", false),
            Op::Rem => ("rem", false),
            _ => (op.name(), false),
        };
        match (self, known) {
            (Unicode, _) => atom(format!("{name}{inside}")),
            (Latex, true) => atom(format!("\\{name}{inside}")),
            (Latex, false) => atom(format!("\\operatorname{{{name}}}{inside}")),
        }
    }

    pub(super) fn relation(self, op: Op, holds: bool) -> &'static str {
        match (op, holds) {
            (Op::Lt, true) | (Op::Ge, false) => "<",
            (Op::Gt, true) | (Op::Le, false) => ">",
            (Op::Le, true) | (Op::Gt, false) => self.pick("≤", "\\le"),
            (Op::Ge, true) | (Op::Lt, false) => self.pick("≥", "\\ge"),
            (Op::Eq, true) | (Op::Ne, false) => "=",
            (Op::Ne, true) | (Op::Eq, false) => self.pick("≠", "\\ne"),
            (_, true) => self.pick("≡", "\\equiv"),
            (_, false) => self.pick("≢", "\\not\\equiv"),
        }
    }

    /// `base` to the power of a number.
    fn power(self, base: &Term, exponent: f64) -> Piece {
        if exponent == 1.0 {
            return self.piece(base);
        }
        let base = self.at_least(base, Level::Atom);
        match self {
            Unicode if exponent.fract() == 0.0 && exponent.abs() < 1e4 => {
                let text = format!("{base}{}", above(exponent as i32));
                Piece { text, level: Level::Power }
            }
            _ => self.raised(base, &Term::Number(exponent)),
        }
    }

    fn raised(self, base: String, exponent: &Term) -> Piece {
        let text = match self {
            Unicode => format!("{base}^{}", self.at_least(exponent, Level::Atom)),
            Latex => format!("{base}^{{{}}}", self.term(exponent)),
        };
        Piece { text, level: Level::Power }
    }

    fn sum(self, op: Op, args: &[Term]) -> Piece {
        let mut parts = Vec::new();
        summands(&Term::Apply(op, args.to_vec()), false, &mut parts);
        let mut text = String::new();
        for (negative, term) in parts {
            let (inner, piece) = self.product(&term);
            let negative = negative != inner;
            match (text.is_empty(), negative) {
                (true, false) => {}
                (true, true) => text.push_str(self.pick("−", "-")),
                (false, false) => text.push_str(" + "),
                (false, true) => text.push_str(self.pick(" − ", " - ")),
            }
            // What a sum with a sign before it would need.
            let loose = piece.level < Level::Sum || negative && piece.level == Level::Sum;
            text.push_str(&if loose { self.parenthesised(&piece.text) } else { piece.text });
        }
        Piece { text, level: Level::Sum }
    }

    /// A term as a product, or anything else: whether there is a minus before it,
    /// and the rest.
    fn product(self, term: &Term) -> (bool, Piece) {
        let is_product = |op: &Op| matches!(op, Op::Mul | Op::Div | Op::Recip | Op::Neg);
        match term {
            Term::Apply(op, _) if is_product(op) => {}
            Term::Number(value) if *value < 0.0 => return (true, self.number(-value)),
            other => return (false, self.piece(other)),
        }
        let mut factors = Factors::default();
        factors.collect(term, false);
        let over = self.factors(&factors.over);
        if factors.under.is_empty() {
            return (factors.negative, over);
        }
        let under = self.factors(&factors.under);
        let piece = match self {
            // A power of it has parentheses.
            Latex => {
                let text = format!("\\frac{{{}}}{{{}}}", over.text, under.text);
                Piece { text, level: Level::Product }
            }
            Unicode => {
                let under = match under.level {
                    Level::Atom | Level::Power | Level::Root => under.text,
                    _ => self.parenthesised(&under.text),
                };
                let over = match over.level {
                    Level::Relation | Level::Sum => self.parenthesised(&over.text),
                    _ => over.text,
                };
                Piece { text: format!("{over}/{under}"), level: Level::Product }
            }
        };
        (factors.negative, piece)
    }

    fn factors(self, factors: &[(Term, u32)]) -> Piece {
        let single = |(term, count): &(Term, u32)| match count {
            1 => self.piece(term),
            _ => self.power(term, f64::from(*count)),
        };
        match factors {
            [] => atom("1"),
            [factor] => single(factor),
            _ => {
                let loose = |piece: Piece| match piece.level {
                    Level::Relation | Level::Sum | Level::Product => {
                        self.parenthesised(&piece.text)
                    }
                    _ => piece.text,
                };
                let texts: Vec<String> = factors.iter().map(|f| loose(single(f))).collect();
                let text = texts.join(self.pick("·", " \\cdot "));
                Piece { text, level: Level::Product }
            }
        }
    }
}

fn below(number: usize) -> String {
    let digit = |digit: char| digit.to_digit(10).and_then(|d| char::from_u32(0x2080 + d));
    number.to_string().chars().filter_map(digit).collect()
}

fn above(number: i32) -> String {
    const DIGITS: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    let digit = |digit: char| digit.to_digit(10).map_or('⁻', |d| DIGITS[d as usize]);
    number.to_string().chars().map(digit).collect()
}
