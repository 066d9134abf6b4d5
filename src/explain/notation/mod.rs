//! Mathematical notation: formulas in Unicode, translated to LaTeX.
//!
//! - `term`: terms as products of factors
//! - `formula`: terms and conditions of the nodes of a graph
//! - `brief`: short formulas without names, to describe applications of rules
//! - `latex`: translation to LaTeX

mod brief;
mod formula;
mod latex;
mod term;

pub(crate) use brief::{Brief, carried};
pub(crate) use formula::{Names, input, letter};
pub(crate) use term::{Level, Term, number, subscript};

/// Mathematical notation in Unicode and in LaTeX. `Display` shows the Unicode.
///
/// # Examples
///
/// ```
/// use phigrad::explain::Notation;
///
/// let form = Notation::formula("x₀²/(1 + y) + Σ_{i<9} i·w".to_owned());
/// assert_eq!(form.latex, "\\frac{x_{0}^{2}}{1 + y} + \\sum_{i<9} i \\cdot w");
/// ```
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Notation {
    /// The text in Unicode.
    pub text: String,
    /// The text in LaTeX, for math mode.
    pub latex: String,
}

impl Notation {
    /// The notation of one line.
    pub fn formula(text: String) -> Notation {
        let latex = latex::latex(&text);
        Notation { text, latex }
    }

    /// The notation of lines with their depths; in LaTeX an `aligned` environment.
    pub(crate) fn lines(lines: &[(usize, String)]) -> Notation {
        let text = lines.iter().map(|(depth, line)| "  ".repeat(*depth) + line);
        let latex = lines
            .iter()
            .map(|(depth, line)| format!("& {}{}", "\\quad ".repeat(*depth), latex::latex(line)));
        let latex = latex.collect::<Vec<String>>().join(" \\\\\n");
        Notation {
            text: text.collect::<Vec<String>>().join("\n"),
            latex: format!("\\begin{{aligned}}\n{latex}\n\\end{{aligned}}"),
        }
    }
}

impl core::fmt::Display for Notation {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(&self.text)
    }
}
