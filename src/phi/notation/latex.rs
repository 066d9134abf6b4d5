//! Formulas that are text in Unicode, in the language of LaTeX.

use core::iter::Peekable;
use core::str::Chars;

/// Words that LaTeX knows.
const FUNCTIONS: [&str; 9] = ["sin", "cos", "tan", "sinh", "cosh", "tanh", "ln", "min", "max"];

/// The letters that come next.
fn letters(characters: &mut Peekable<Chars<'_>>) -> String {
    core::iter::from_fn(|| characters.next_if(char::is_ascii_alphabetic)).collect()
}

/// `text` in the language of LaTeX, for math mode.
pub(super) fn latex(text: &str) -> String {
    let mut out = String::new();
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        if character.is_ascii_alphabetic() {
            let mut words = String::from(character);
            words.push_str(&letters(&mut characters));
            if words.len() == 1 {
                out.push_str(&words);
                continue;
            }
            if FUNCTIONS.contains(&words.as_str()) {
                out.push_str(&format!("\\{words}"));
                continue;
            }
            // Words that follow one another are one text, with the spaces around it.
            while characters.peek() == Some(&' ') {
                characters.next();
                words.push(' ');
                let mut ahead = characters.clone();
                let next = letters(&mut ahead);
                if next.len() < 2 || FUNCTIONS.contains(&next.as_str()) {
                    break;
                }
                words.push_str(&next);
                characters = ahead;
            }
            let space = if out.ends_with(' ') && out.pop().is_some() { " " } else { "" };
            out.push_str(&format!("\\text{{{space}{words}}}"));
            continue;
        }
        if character.is_ascii_digit() {
            out.push(character);
            out.push_str(&tens(&mut characters));
            continue;
        }
        if let Some((script, digit)) = scripted(character) {
            out.push_str(&format!("{script}{{{digit}"));
            while let Some((_, digit)) =
                characters.peek().copied().and_then(scripted).filter(|(next, _)| *next == script)
            {
                out.push(digit);
                characters.next();
            }
            out.push('}');
            continue;
        }
        match character {
            'Σ' => out.push_str("\\sum"),
            'Π' => out.push_str("\\prod"),
            '·' => out.push_str("\\cdot "),
            '√' => out.push_str("\\surd "),
            '−' => out.push('-'),
            'φ' => out.push_str("\\varphi "),
            '∂' => out.push_str("\\partial "),
            '≤' => out.push_str("\\le "),
            '≥' => out.push_str("\\ge "),
            '≠' => out.push_str("\\ne "),
            '←' => out.push_str("\\gets "),
            '∞' => out.push_str("\\infty "),
            '…' => out.push_str("\\dots "),
            '×' => out.push_str("\\times "),
            '⟨' => out.push_str("\\langle "),
            '⟩' => out.push_str("\\rangle "),
            '⌊' => out.push_str("\\lfloor "),
            '⌋' => out.push_str("\\rfloor "),
            '⌈' => out.push_str("\\lceil "),
            '⌉' => out.push_str("\\rceil "),
            '∛' => out.push_str("\\sqrt[3]{}"),
            '≡' => out.push_str("\\equiv "),
            '≢' => out.push_str("\\not\\equiv "),
            '%' | '#' | '&' | '$' => out.extend(['\\', character]),
            // A power goes as far as its parentheses.
            '^' if characters.peek() == Some(&'(') => {
                out.push('^');
                out.push_str(&group(&mut characters));
            }
            '^' => {
                let mut power = String::new();
                let belongs = |next: &char| next.is_alphanumeric() || ".…".contains(*next);
                while let Some(&next) = characters.peek().filter(|next| belongs(next)) {
                    power.push(next);
                    characters.next();
                }
                match power.is_empty() {
                    true => out.push('^'),
                    false => out.push_str(&format!("^{{{}}}", latex(&power))),
                }
            }
            other => out.push(other),
        }
    }
    out
}

/// The power of ten that comes after the digits of a number, if there is one.
fn tens(characters: &mut Peekable<Chars<'_>>) -> String {
    let mut ahead = characters.clone();
    if ahead.next() != Some('e') {
        return String::new();
    }
    let minus: String =
        ahead.next_if(|next| "-−".contains(*next)).map(|_| '-').into_iter().collect();
    let digits: String = core::iter::from_fn(|| ahead.next_if(char::is_ascii_digit)).collect();
    if digits.is_empty() {
        return String::new();
    }
    *characters = ahead;
    format!(" \\cdot 10^{{{minus}{digits}}}")
}

/// What is in parentheses, in braces.
fn group(characters: &mut Peekable<Chars<'_>>) -> String {
    let (mut depth, mut inside) = (0, String::new());
    for character in characters.by_ref() {
        match character {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            break;
        }
        inside.push(character);
    }
    format!("{{{}}}", latex(inside.strip_prefix('(').unwrap_or(&inside)))
}

/// A raised or lowered digit, and the sign for it.
fn scripted(character: char) -> Option<(char, char)> {
    Some(match character {
        '⁰' => ('^', '0'),
        '¹' => ('^', '1'),
        '²' => ('^', '2'),
        '³' => ('^', '3'),
        '⁴' => ('^', '4'),
        '⁵' => ('^', '5'),
        '⁶' => ('^', '6'),
        '⁷' => ('^', '7'),
        '⁸' => ('^', '8'),
        '⁹' => ('^', '9'),
        '⁻' => ('^', '-'),
        '₀'..='₉' => ('_', char::from_digit(character as u32 - 0x2080, 10)?),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::latex;

    #[test]
    fn forms_become_latex() {
        for (text, expected) in [
            ("a^n·p + b·Σ_{j<n} a^j", "a^{n}\\cdot p + b\\cdot \\sum_{j<n} a^{j}"),
            ("x₁₂² − 0.5", "x_{12}^{2} - 0.5"),
            ("p^(n-1), where q is 100 %", "p^{n-1},\\text{ where }q\\text{ is }100 \\%"),
            ("g(i) is what is added to a", "g(i)\\text{ is what is added to }a"),
            ("2·sin(x₁)", "2\\cdot \\sin(x_{1})"),
            ("f^((a)·b)", "f^{(a)\\cdot b}"),
            ("e^x₁ + e^…", "e^{x_{1}} + e^{\\dots }"),
            ("1e-4·x₀ + 25e7 − 2e", "1 \\cdot 10^{-4}\\cdot x_{0} + 25 \\cdot 10^{7} - 2e"),
            ("⌊x₁⌋ ≡ 3", "\\lfloor x_{1}\\rfloor  \\equiv  3"),
            ("(unclosed ^(", "(\\text{unclosed }^{}"),
        ] {
            assert_eq!(latex(text), expected);
        }
    }
}
