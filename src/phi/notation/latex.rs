//! Formulas that are text in Unicode, in the language of LaTeX.

/// `text` in the language of LaTeX, for math mode.
pub(super) fn latex(text: &str) -> String {
    let mut out = String::new();
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        if character.is_ascii_alphabetic() {
            let mut word = String::from(character);
            while let Some(&next) = characters.peek().filter(|next| next.is_ascii_alphabetic()) {
                word.push(next);
                characters.next();
            }
            match (word.len(), characters.peek()) {
                (1, _) => out.push_str(&word),
                (_, Some(' ')) => {
                    characters.next();
                    out.push_str(&format!("\\text{{{word} }}"));
                }
                _ => out.push_str(&format!("\\text{{{word}}}")),
            }
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
            '%' | '#' | '&' | '$' => out.extend(['\\', character]),
            // A power goes as far as its parentheses.
            '^' if characters.peek() == Some(&'(') => {
                out.push('^');
                out.push_str(&group(&mut characters));
            }
            '^' => {
                let mut power = String::new();
                let belongs = |next: &char| next.is_alphanumeric() || *next == '.';
                while let Some(&next) = characters.peek().filter(|next| belongs(next)) {
                    power.push(next);
                    characters.next();
                }
                match power.is_empty() {
                    true => out.push('^'),
                    false => out.push_str(&format!("^{{{power}}}")),
                }
            }
            other => out.push(other),
        }
    }
    out
}

/// What is in parentheses, in braces.
fn group(characters: &mut core::iter::Peekable<core::str::Chars<'_>>) -> String {
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
            ("p^(n-1), where q is 100 %", "p^{n-1}, \\text{where }q \\text{is }100 \\%"),
            ("f^((a)·b)", "f^{(a)\\cdot b}"),
            ("(unclosed ^(", "(\\text{unclosed }^{}"),
        ] {
            assert_eq!(latex(text), expected);
        }
    }
}
