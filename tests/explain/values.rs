//! Display forms are correct: the text of the gradient is parsed and evaluated, and equals that of
//! the tape.

use std::collections::HashMap;

use phigrad::internals::{LoopForm, Tuning};
use phigrad::{Tape, Var, traced};

/// The values of names.
type Values = HashMap<String, f64>;

/// Reads the text of a formula, as far as gradients without loops need it.
struct Reader<'a> {
    text: &'a [char],
    values: &'a Values,
}

impl Reader<'_> {
    fn next_if(&mut self, expected: &str) -> bool {
        let expected: Vec<char> = expected.chars().collect();
        let fits = self.text.starts_with(&expected);
        if fits {
            self.text = &self.text[expected.len()..];
        }
        fits
    }

    fn expect(&mut self, expected: &str) {
        assert!(self.next_if(expected), "{expected:?} expected: {}", self.rest());
    }

    fn rest(&self) -> String {
        self.text.iter().collect()
    }

    fn take_while(&mut self, fits: impl Fn(char) -> bool) -> String {
        let length = self.text.iter().take_while(|&&c| fits(c)).count();
        let (taken, rest) = self.text.split_at(length);
        self.text = rest;
        taken.iter().collect()
    }

    fn condition(&mut self) -> bool {
        let left = self.sum();
        self.expect(" ");
        let relation = self.take_while(|c| c != ' ');
        self.expect(" ");
        let right = self.sum();
        match relation.as_str() {
            "<" => left < right,
            ">" => left > right,
            "≤" => left <= right,
            "≥" => left >= right,
            "=" => left == right,
            "≠" => left != right,
            other => panic!("{other}"),
        }
    }

    fn sum(&mut self) -> f64 {
        let negative = self.next_if("−");
        let first = self.product();
        let mut sum = if negative { -first } else { first };
        loop {
            if self.next_if(" + ") {
                sum += self.product();
            } else if self.next_if(" − ") {
                sum -= self.product();
            } else {
                return sum;
            }
        }
    }

    fn product(&mut self) -> f64 {
        let mut product = self.power();
        loop {
            if self.next_if("·") {
                product *= self.power();
            } else if self.next_if("/") {
                product /= self.power();
            } else {
                return product;
            }
        }
    }

    fn power(&mut self) -> f64 {
        if self.next_if("√") {
            return self.power().sqrt();
        }
        let base = self.atom();
        if self.next_if("^") {
            return base.powf(self.atom());
        }
        const DIGITS: &str = "⁰¹²³⁴⁵⁶⁷⁸⁹";
        let digit = |c: char| DIGITS.chars().position(|digit| digit == c);
        let negative = self.next_if("⁻");
        let digits = self.take_while(|c| digit(c).is_some());
        let exponent = digits.chars().filter_map(digit).fold(0, |all, d| 10 * all + d as i32);
        match digits.is_empty() {
            true => base,
            false => base.powi(if negative { -exponent } else { exponent }),
        }
    }

    fn atom(&mut self) -> f64 {
        if self.next_if("(") {
            let inside = self.sum();
            self.expect(")");
            return inside;
        }
        if self.next_if("|") {
            let inside = self.sum();
            self.expect("|");
            return inside.abs();
        }
        if self.next_if("φ(") {
            let holds = self.condition();
            self.expect("; ");
            let then = self.sum();
            self.expect(", ");
            let otherwise = self.sum();
            self.expect(")");
            return if holds { then } else { otherwise };
        }
        let digits = self.take_while(|c| c.is_ascii_digit() || c == '.');
        if !digits.is_empty() {
            return digits.parse().unwrap();
        }
        if self.next_if("∞") {
            return f64::INFINITY;
        }
        let is_in_name = |c: char| c.is_ascii_alphabetic() || ('₀'..='₉').contains(&c);
        let name = self.take_while(is_in_name);
        if self.next_if("(") {
            let inside = self.sum();
            let other = if self.next_if(", ") { self.sum() } else { f64::NAN };
            self.expect(")");
            return match name.as_str() {
                "ln" => inside.ln(),
                "sin" => inside.sin(),
                "cos" => inside.cos(),
                "min" => inside.min(other),
                "max" => inside.max(other),
                "sgn" => inside.signum(),
                other => panic!("{other}"),
            };
        }
        match self.values.get(&name) {
            Some(&value) => value,
            None if name == "e" => std::f64::consts::E,
            None => panic!("{name:?} is not known: {}", self.rest()),
        }
    }
}

fn evaluated(text: &str, values: &Values) -> f64 {
    let characters: Vec<char> = text.chars().collect();
    let mut reader = Reader { text: &characters, values };
    let value = reader.sum();
    assert!(reader.text.is_empty(), "{} is left of {text}", reader.rest());
    value
}

/// The derivatives at `x` by the text of `gradient`.
fn shown(gradient: &str, x: &[f64]) -> Vec<f64> {
    let below = |number: usize| -> String {
        let digit = |c: char| char::from_u32(0x2080 + c.to_digit(10).unwrap()).unwrap();
        number.to_string().chars().map(digit).collect()
    };
    let named = |(number, &value): (usize, &f64)| (format!("x{}", below(number)), value);
    let mut values: Values = x.iter().enumerate().map(named).collect();
    // In programs names come before their uses, in formulas "where" comes after them,
    // each name again before its uses.
    let lines: Vec<&str> = gradient.lines().map(str::trim).collect();
    let is_derivative = |line: &&&str| line.starts_with("∂f/∂");
    for line in lines.iter().filter(|line| !is_derivative(line)) {
        if line.starts_with('(') || line.starts_with("provided that ") {
            continue;
        }
        let (name, term) = line.trim_start_matches("where ").split_once(" = ").unwrap();
        let value = evaluated(term, &values);
        values.insert(name.to_owned(), value);
    }
    let term = |line: &&str| evaluated(line.split_once(" = ").unwrap().1, &values);
    lines.iter().filter(is_derivative).map(term).collect()
}

fn check(name: &str, f: impl Fn(&[Var]) -> Var, points: &[&[f64]]) {
    let builder = Tape::builder().hot_threshold(u32::MAX).background(false);
    let f = builder.tuning(Tuning::with_loops(LoopForm::Closed)).record(f);
    for x in points {
        f.grad(x).unwrap();
    }
    let explanation = f.explain().unwrap();
    let gradient = &explanation.gradient.as_ref().unwrap_or_else(|| panic!("{name}")).text;
    assert!(!gradient.contains("loop"), "{name}: {gradient}");
    for x in points {
        let (expected, found) = (f.grad(x).unwrap(), shown(gradient, x));
        assert_eq!(expected.len(), found.len(), "{name}: {gradient}");
        let size = expected.iter().fold(1e-3, |size: f64, d| size.max(d.abs()));
        let near = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-9 * size;
        let fits = expected.iter().zip(&found).all(near);
        assert!(fits, "{name} at {x:?}: {expected:?} {found:?}\n{gradient}");
    }
}

#[test]
fn shown_gradients_of_closed_forms_evaluate_to_the_tapes() {
    let data: Vec<f64> = (0..100).map(|i| (0.7 * f64::from(i)).sin() + 0.3).collect();
    let sum = |x: &[Var]| (0..100).fold(x[0], |s, i| s + x[1] * f64::from(i * i));
    check("index", sum, &[&[0.5, 0.25], &[-3.0, 2.0]]);
    let power = |x: &[Var]| (0..100).fold(x[0], |p, _| p * x[1]);
    check("power", power, &[&[0.5, 0.99], &[-3.0, -1.01], &[1.0, 1.0]]);
    let affine = |x: &[Var]| (0..64).fold(x[0], |y, _| x[1] * y + x[2]);
    check("affine", affine, &[&[0.5, 0.9, 0.1], &[0.5, 1.001, 0.1], &[2.0, -0.5, 3.0]]);
    let rate = |x: &[Var]| (0..64).fold(x[0], |w, _| w - x[1] * 2.0 * (w - 0.7));
    check("rate", rate, &[&[0.5, 0.01], &[2.0, 0.1], &[-1.0, 0.9], &[1.0, 1e-4]]);
    let squares = |x: &[Var]| data.iter().map(|&d| (d - x[0]) * (d - x[0])).sum::<Var>();
    check("squares", squares, &[&[0.5], &[-2.0], &[0.3]]);
    let line = |x: &[Var]| {
        let residuals = data.windows(2).map(|pair| pair[1] - x[0] * pair[0] - x[1]);
        residuals.map(|residual| residual * residual).sum::<Var>()
    };
    check("line", line, &[&[0.5, 1.0], &[-2.0, 0.25]]);
    let growth = |x: &[Var]| {
        let rate = (x[0] * 0.004).exp();
        (0..250).fold(x[1], |price, _| price * rate).ln()
    };
    check("growth", growth, &[&[0.5, 1.0], &[-2.0, 0.25]]);
}

#[test]
fn shown_gradients_of_branches_evaluate_to_the_tapes() {
    #[traced]
    fn branches(x: &[Var]) -> Var {
        let y = x[0] + x[1] * x[2];
        let z;
        if x[1] > 0.0 {
            if y > 0.5 {
                z = y.powf(1.5) / y;
            } else {
                z = (y.exp() + 1.0).ln();
            }
        } else {
            z = x[1] * y;
        }
        z * (y.exp() + 1.0)
    }
    let points: [&[f64]; 4] =
        [&[0.3, 0.5, 2.0], &[0.1, 0.2, 0.3], &[0.3, -0.5, 2.0], &[-0.3, -0.5, -2.0]];
    check("branches", branches, &points);
    let bend = |x: &[Var]| (x[0] - x[1]).abs().max(x[0] * 0.5).min(x[1] + 3.0) * x[1].sin();
    check("bend", bend, &[&[0.3, 1.5], &[2.0, 0.2], &[-1.0, 0.7], &[9.0, -2.0]]);
}
