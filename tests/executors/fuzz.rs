//! The fuzz targets on seeded bytes: texts of graphs and routines with damage, and programs.

use crate::common::fuzz::{graph_text, notation, program, routine_text};
use crate::common::graphs::GraphRecipe;
use phigrad::internals::Random;

/// Replaces some bytes of `text` by others, by pieces of the grammar or by pieces of itself.
fn damaged(text: &str, random: &mut Random) -> Vec<u8> {
    const PIECES: [&str; 16] = [
        "v1",
        "b0:",
        " ",
        "\n",
        "return",
        "guard not ",
        "9",
        "const",
        "=",
        "powi",
        "-",
        "r0",
        "a0",
        "i0",
        "bound 4294967295",
        "nan:7ff8000000000000",
    ];
    let mut bytes = text.as_bytes().to_vec();
    for _ in 0..=random.below(3) {
        let from = random.below(bytes.len() + 1);
        let until = (from + random.below(12)).min(bytes.len());
        let piece = match random.below(3) {
            0 => random.pick(&PIECES).as_bytes().to_vec(),
            1 => {
                let start = random.below(bytes.len() + 1);
                bytes[start..(start + random.below(24)).min(bytes.len())].to_vec()
            }
            _ => vec![random.below(128) as u8],
        };
        bytes.splice(from..until, piece);
    }
    bytes
}

#[test]
fn damaged_texts_of_graphs_are_refused_or_run_alike() {
    let mut random = Random::new(11);
    for recipe in [GraphRecipe::default(), GraphRecipe { loops: 0.2, ..GraphRecipe::default() }] {
        for _ in 0..200 {
            let text = recipe.graph(&mut random).to_string();
            graph_text(text.as_bytes());
            (0..20).for_each(|_| graph_text(&damaged(&text, &mut random)));
        }
    }
}

#[test]
fn damaged_texts_of_routines_are_refused_or_run() {
    const TEXTS: [&str; 3] = [
        "affine_power inputs 3 wrt x0 x1 : t0 = x0 | t1 = x1 | t2 = mul t0 t1 | \
         advance x2 states 1 matrix t0 offset t2 start t1 outputs 0",
        "affine_power inputs 2 wrt : t0 = const 0.5 | \
         t1 = power 3 states 2 matrix t0 - - t0 offset t0 - | \
         advance 7 states 1 matrix t0 offset - start t0 outputs 0",
        "affine_power inputs 1 wrt x0 : t0 = x0 | t1 = exp t0 | \
         advance 9 states 1 matrix t1 offset - start t0 outputs 0",
    ];
    let mut random = Random::new(12);
    for text in TEXTS {
        assert!(text.parse::<phigrad::internals::numeric::Routine>().is_ok(), "{text}");
        routine_text(text.as_bytes());
        (0..10_000).for_each(|_| routine_text(&damaged(text, &mut random)));
    }
}

#[test]
fn any_text_has_latex_with_matching_braces() {
    let mut random = Random::new(13);
    for _ in 0..10_000 {
        notation(&damaged("x₀²/(1 + y) + Σ_{i<9} i·w^(a + 1)/√(b₁)", &mut random));
    }
}

#[test]
fn programs_of_any_bytes_agree_on_tape_and_kernel() {
    let mut random = Random::new(14);
    for _ in 0..600 {
        let count = random.below(400);
        program(&(0..count).map(|_| random.below(256) as u8).collect::<Vec<u8>>());
    }
}
