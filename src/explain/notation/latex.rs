//! Formulas in LaTeX, translated from their text.
//!
//! A factor is a name, number or group with its superscripts and subscripts; the factors since the
//! last operator are the numerator of a fraction. Words of several letters are text.

use core::iter::{Peekable, from_fn};
use core::str::Chars;

use super::term::{SUBSCRIPTS, SUPERSCRIPTS};

/// Functions that LaTeX knows.
const FUNCTIONS: [&str; 13] = [
    "sin", "cos", "tan", "arcsin", "arccos", "arctan", "sinh", "cosh", "tanh", "ln", "log", "min",
    "max",
];

/// `text` in LaTeX, for math mode.
pub(super) fn latex(text: &str) -> String {
    Translation(text.chars().peekable()).sequence(None)
}

struct Translation<'a>(Peekable<Chars<'a>>);

impl Translation<'_> {
    /// Translates up to `end`, which is skipped.
    fn sequence(&mut self, end: Option<char>) -> String {
        let mut out = String::new();
        // The start of the factors since the last operator, and true right after an operator.
        let (mut factors, mut is_due) = (0, true);
        while let Some(&next) = self.0.peek() {
            if Some(next) == end && !(next == '|' && is_due) {
                self.0.next();
                break;
            }
            if let Some(words) = self.words() {
                let space = if out.ends_with(' ') && out.pop().is_some() { " " } else { "" };
                out.push_str(&format!("\\text{{{space}{words}}}"));
                (factors, is_due) = (out.len(), true);
            } else if let Some(factor) = self.factor() {
                out.push_str(&factor);
                is_due = false;
            } else if self.0.next() == Some('/') && out.len() > factors {
                let over = out.split_off(factors);
                let under = self.factor().unwrap_or_default();
                out.push_str(&format!(
                    "\\frac{{{}}}{{{}}}",
                    without_parentheses(&over),
                    without_parentheses(&under)
                ));
                is_due = false;
            } else {
                out.push_str(&operator(next));
                is_due = true;
                if next != '·' {
                    factors = out.len();
                }
            }
        }
        out
    }

    fn letters(&mut self) -> String {
        from_fn(|| self.0.next_if(char::is_ascii_alphabetic)).collect()
    }

    /// Consecutive words with the spaces after them, if they come next.
    fn words(&mut self) -> Option<String> {
        let mut words = String::new();
        loop {
            let before = self.0.clone();
            let word = self.letters();
            let is_name = self.0.peek().is_some_and(|&next| next == '(' || script(next).is_some());
            if word.len() < 2 || is_name {
                self.0 = before;
                return Some(words).filter(|words| !words.is_empty());
            }
            words.push_str(&word);
            words.extend(from_fn(|| self.0.next_if_eq(&' ')));
        }
    }

    /// A factor, if one comes next.
    fn factor(&mut self) -> Option<String> {
        let (mut factor, is_name) = self.base()?;
        while let Some(&next) = self.0.peek() {
            let part = match (next, script(next)) {
                (_, Some((sign, _))) => {
                    let digit = |next: char| script(next).filter(|&(other, _)| other == sign);
                    let digits = from_fn(|| self.0.next_if(|&next| digit(next).is_some()));
                    let digits: String = digits.filter_map(digit).map(|(_, digit)| digit).collect();
                    format!("{sign}{{{digits}}}")
                }
                ('^' | '_', _) => {
                    self.0.next();
                    let is_group = self.0.next_if_eq(&'{').is_some();
                    let part = match self.0.peek() {
                        _ if is_group => Some(self.sequence(Some('}'))),
                        Some('[') => self.base().map(|(group, _)| group),
                        _ if next == '_' => self.base().map(|(base, _)| base),
                        _ => self.factor(),
                    };
                    format!("{next}{{{}}}", without_parentheses(&part.unwrap_or_default()))
                }
                ('\'', _) => self.0.next().into_iter().collect(),
                ('(' | '[', _) if is_name => self.base()?.0,
                _ => break,
            };
            factor.push_str(&part);
        }
        Some(factor)
    }

    /// A factor without superscripts and subscripts, and true if it is a name.
    fn base(&mut self) -> Option<(String, bool)> {
        let next = *self.0.peek()?;
        if next.is_ascii_digit() {
            let is_part = |next: &char| next.is_ascii_digit() || *next == '.';
            return Some((from_fn(|| self.0.next_if(is_part)).collect(), false));
        }
        if next.is_ascii_alphabetic() {
            let word = self.letters();
            let name = match &word[..] {
                word if word.len() == 1 => word.to_owned(),
                word if FUNCTIONS.contains(&word) => format!("\\{word}"),
                word => format!("\\operatorname{{{word}}}"),
            };
            return Some((name, true));
        }
        let next = self.0.next_if(|next| "√∂φ…∞ΣΠ([|".contains(*next))?;
        let base = match next {
            '√' => {
                format!("\\sqrt{{{}}}", without_parentheses(&self.factor().unwrap_or_default()))
            }
            '∂' => format!("\\partial {}", self.factor().unwrap_or_default()),
            'φ' => "\\varphi ".to_owned(),
            '…' => "\\dots ".to_owned(),
            '∞' => "\\infty ".to_owned(),
            'Σ' => "\\sum".to_owned(),
            'Π' => "\\prod".to_owned(),
            open => {
                let end = if open == '(' {
                    ')'
                } else if open == '[' {
                    ']'
                } else {
                    '|'
                };
                format!("\\left{open}{}\\right{end}", self.sequence(Some(end)))
            }
        };
        Some((base, next == 'φ'))
    }
}

/// `text` without parentheses around all of it.
fn without_parentheses(text: &str) -> &str {
    let inside = text.strip_prefix("\\left(").and_then(|text| text.strip_suffix("\\right)"));
    let Some(inside) = inside else { return text };
    let mut depth = 0i32;
    for part in inside.split('\\') {
        depth += i32::from(part.starts_with("left(")) - i32::from(part.starts_with("right)"));
        if depth < 0 {
            return text;
        }
    }
    inside
}

fn operator(sign: char) -> String {
    let name = match sign {
        '·' => return " \\cdot ".to_owned(),
        '−' => return "-".to_owned(),
        '≤' => "le",
        '≥' => "ge",
        '≠' => "ne",
        '←' => "gets",
        '×' => "times",
        '⟨' => "langle",
        '⟩' => "rangle",
        '≡' => "equiv",
        '≢' => "not\\equiv",
        '%' | '#' | '&' | '$' | '{' | '}' | '_' => return format!("\\{sign}"),
        other => return other.to_string(),
    };
    format!("\\{name} ")
}

/// The sign for a superscript or subscript digit, and the digit.
fn script(character: char) -> Option<(char, char)> {
    [('^', SUPERSCRIPTS), ('_', SUBSCRIPTS)].into_iter().find_map(|(sign, digits)| {
        let at = digits.chars().position(|digit| digit == character)?;
        Some((sign, "0123456789-".chars().nth(at)?))
    })
}
