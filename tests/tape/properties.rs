//! Properties of whole functions at arbitrary numbers, with shrinking: the Exact
//! kernel is the tape bit for bit, and text brings every number back.

use phigrad::internals::ssa::{Builder, Folding, parse};
use phigrad::{Numerics, Tape, Var};
use proptest::prelude::*;

fn program(x: &[Var]) -> Var {
    let ratio = x[0] / x[1];
    let chosen = if ratio < x[2] { ratio.sin() * x[2] } else { (x[0] - x[1]).hypot(x[2]) };
    chosen.max(ratio) + x[1].powi(-3)
}

fn same(a: f64, b: f64) -> bool {
    a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan())
}

proptest! {
    #[test]
    fn an_exact_kernel_is_the_tape_at_every_number(
        first in prop::array::uniform3(any::<f64>()),
        second in prop::array::uniform3(any::<f64>()),
    ) {
        let tape = Tape::builder().hot_threshold(u32::MAX).record(program);
        let kernel =
            Tape::builder().hot_threshold(u32::MAX).numerics(Numerics::Exact).record(program);
        kernel.grad(&first).unwrap();
        kernel.compile().unwrap();
        for x in [first, second] {
            let (value, gradient) = tape.value_and_grad(&x).unwrap();
            let (found, found_gradient) = kernel.value_and_grad(&x).unwrap();
            prop_assert!(same(value, found), "{value} {found}");
            for (a, b) in gradient.iter().zip(&found_gradient) {
                prop_assert!(same(*a, *b), "{gradient:?} {found_gradient:?}");
            }
        }
    }

    #[test]
    fn every_number_survives_the_text_form(bits in any::<u64>()) {
        let mut builder = Builder::new(0, 0, Folding::Exact);
        let constant = builder.constant(f64::from_bits(bits));
        builder.finish_block(&[constant]);
        let graph = builder.into_graph();
        prop_assert_eq!(parse(&graph.to_string()).unwrap(), graph);
    }
}
