//! Mathematical notation: graphs told to people, in Unicode and LaTeX.
//!
//! `read` chooses names and makes `term`s of the rest, `sums` finds loops that
//! are Σ or Π, `tidy` collects like terms, `program` tells steps in lines, and
//! `write` spells terms, `logic` conditions.

mod apart;
mod brief;
mod display;
mod flat;
mod latex;
mod logic;
mod phis;
mod program;
mod read;
mod rows;
mod sums;
mod tell;
mod term;
mod tidy;
mod write;

pub(crate) use apart::number_loops;
pub(super) use brief::{Brief, number};
pub(crate) use display::display_form;
pub use phis::{Phis, differentiated_phis, phis};
use program::Writer;
use read::{Reader, Style};
pub(super) use tell::Teller;
use term::{Line, Part};
use write::{Script, lines};

use crate::entity::Array;
use crate::ssa::{Block, Graph, Place, Region};

/// Something in mathematical notation, twice. `Display` shows the text.
///
/// # Examples
///
/// ```
/// use phigrad::phi::Notation;
///
/// let form = Notation::of_form("x₀² + Σ_{i<9} i·w".to_owned());
/// assert_eq!(form.latex, "x_{0}^{2} + \\sum_{i<9} i\\cdot w");
/// ```
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notation {
    /// In Unicode.
    pub text: String,
    /// In the language of LaTeX, for math mode.
    pub latex: String,
}

impl Notation {
    /// A form of [`Applied`](super::Applied).
    pub fn of_form(text: String) -> Notation {
        let latex = latex::latex(&text);
        Notation { text, latex }
    }

    fn of(told: &[Line]) -> Notation {
        Notation { text: lines(told, Script::Unicode), latex: lines(told, Script::Latex) }
    }
}

impl core::fmt::Display for Notation {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(&self.text)
    }
}

/// `graph` as a program, the way it was seen: loops are loops.
///
/// Inputs are x₀, x₁, …, inactive ones d₀, d₁, …; other names stand for what is
/// large or used several times. What is very long is cut.
///
/// # Examples
///
/// ```
/// use phigrad::phi::program;
/// use phigrad::ssa::parse;
///
/// let text = "graph active 2 inactive 0\nv2 = const 1e-4\nb0:\n  v3 = sub v0 v1\n  \
///             v4 = abs v3\n  v5 = ge v4 v2\n  guard v5\n  \
///             v6 = sqrt v4\n  v7 = div v6 v0\n  return v7\n";
/// let told = program(&parse(text)?);
/// assert_eq!(told.text, "provided that |x₀ − x₁| ≥ 1e-4\nreturn √|x₀ − x₁|/x₀");
/// # Ok::<(), phigrad::ssa::ParseError>(())
/// ```
pub fn program(graph: &Graph) -> Notation {
    let reader = Reader::new(graph, Style { sums: false, formulas: false, pivots: false });
    Notation::of(&Writer::new(&reader).whole())
}

/// `graph` as a program in which loops that add up or multiply are Σ and Π. With
/// `pivots`, where sums have become polynomials around pivots, terms are left out
/// that only make up for the rounding of those.
///
/// # Examples
///
/// ```
/// use phigrad::phi::closed_program;
/// use phigrad::ssa::parse;
///
/// let text = "graph active 1 inactive 0\nv1 = const 0.0\nv2 = const 9.0\nv4 = iteration r0\n\
///             b0:\n  v8 = region r0 b1 bound 10 entries v3=v1\n  return v8\nb1:\n  \
///             v5 = mul v0 v4\n  v6 = add v3 v5\n  v7 = lt v4 v2\n  return v7 v6 v6\n";
/// assert_eq!(closed_program(&parse(text)?, false).text, "return Σ_{i<10} x₀·i");
/// # Ok::<(), phigrad::ssa::ParseError>(())
/// ```
pub fn closed_program(graph: &Graph, pivots: bool) -> Notation {
    let reader = Reader::new(graph, Style { sums: true, formulas: false, pivots });
    Notation::of(&Writer::new(&reader).whole())
}

/// A loop, and what it does.
///
/// For an example see [`loops`].
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// Where in the user's source, if that is known.
    pub at: Option<Place>,
    /// What it does.
    pub notation: Notation,
}

/// The loops of `graph` in order, each before those in it.
///
/// # Examples
///
/// ```
/// use phigrad::phi::loops;
/// use phigrad::ssa::parse;
///
/// let text = "graph active 1 inactive 0\nv1 = const 9.0\nv3 = iteration r0\n\
///             b0:\n  v6 = region r0 b1 bound 10 entries v2=v0\n  return v6\nb1:\n  \
///             v4 = sin v2\n  v5 = lt v3 v1\n  return v5 v4 v4\n";
/// let told = loops(&parse(text)?);
/// let expected = "loop 10 times in i, with w from x₀\n  w ← sin(w)";
/// assert_eq!(told[0].notation.text, expected);
/// # Ok::<(), phigrad::ssa::ParseError>(())
/// ```
pub fn loops(graph: &Graph) -> Vec<Told> {
    let reader = Reader::new(graph, Style { sums: true, formulas: false, pivots: false });
    let told = |region: Region| {
        let place = graph.regions[region].place;
        let at = place.and_then(|place| graph.places.get(place)).cloned();
        let notation = Notation::of(&Writer::new(&reader).only(region));
        Told { at, notation }
    };
    regions_of_loops(graph).into_iter().map(told).collect()
}

/// The loops of `graph` in order, each before those in it.
fn regions_of_loops(graph: &Graph) -> Vec<Region> {
    let mut roots: Array<Block, Option<Region>> = Array::filled(None, graph.blocks.len());
    for (region, data) in graph.regions.iter() {
        roots[data.root] = Some(region).filter(|_| data.cycle.is_some());
    }
    graph.preorder().into_iter().filter_map(|block| roots[block]).collect()
}

/// The outputs of `graph`, which are the derivatives by its active inputs: as
/// formulas, or as a program where there are loops in it; for `pivots` see
/// [`closed_program`].
///
/// # Errors
///
/// How many lines there would be, if those are too many to be read.
///
/// # Examples
///
/// ```
/// use phigrad::diff::{Wanted, reverse};
/// use phigrad::phi::gradient_formula;
/// use phigrad::ssa::{Folding, eliminate_dead_code, parse};
///
/// let graph = parse("graph active 1 inactive 0\nb0:\n  v1 = sin v0\n  return v1\n")?;
/// let gradient = eliminate_dead_code(&reverse(&graph, Wanted::Gradient, Folding::Real));
/// let told = gradient_formula(&gradient, false).expect("it is short");
/// assert_eq!(told.text, "∂f/∂x₀ = cos(x₀)");
/// assert_eq!(told.latex.lines().nth(1), Some("& \\frac{\\partial f}{\\partial x_{0}} = \\cos\\left(x_{0}\\right)"));
/// # Ok::<(), phigrad::ssa::ParseError>(())
/// ```
pub fn gradient_formula(graph: &Graph, pivots: bool) -> Result<Notation, usize> {
    const MOST_LINES: usize = 40;
    /// Of a program.
    const MOST_STEPS: usize = 64;
    let heads = |reader: &Reader<'_>| -> Vec<Part> {
        let returned = graph.returned_outputs().map(|number| number as usize);
        let derivatives = returned.take_while(|&number| number < graph.active);
        derivatives.map(|number| Part::Derivative(reader.input(number))).collect()
    };
    let reader = Reader::new(graph, Style { sums: true, formulas: true, pivots });
    let formulas = Writer::new(&reader).formulas(&heads(&reader), MOST_LINES);
    if let Some(told) = formulas {
        return Ok(Notation::of(&told));
    }
    let reader = Reader::new(graph, Style { sums: true, formulas: false, pivots });
    let writer = || Writer::new(&reader).with_heads(&heads(&reader));
    match writer().length() {
        length if length > MOST_STEPS => Err(length),
        _ => Ok(Notation::of(&writer().whole())),
    }
}
