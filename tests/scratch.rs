//! Scratch.
use phigrad::{Tape, Var, Recorded};
fn shared<T: Send + Sync>(_: &T) {}
#[test]
fn t() {
    let f = Tape::record(|x: &[Var]| x[0]);
    shared(&f);
}
