//! Routines that kernels call: placeholder until the room is complete.

/// What a call computes.
#[derive(Clone, Debug, PartialEq)]
pub enum Routine {
    /// Doubles its only operand; for tests.
    Double,
}

impl Routine {
    /// How many operands a call has.
    pub fn inputs(&self) -> usize {
        1
    }

    /// How many results it fills.
    pub fn results(&self) -> usize {
        2
    }

    /// Computes all results.
    pub fn run(&self, inputs: &[f64], _with_partials: bool, results: &mut [f64]) {
        results[0] = 1.0;
        results[1] = 2.0 * inputs[0];
    }

    /// Whether this result is a partial derivative.
    pub fn is_partial(&self, _result: usize) -> bool {
        false
    }

    /// Reads the text form.
    pub fn parse(text: &str) -> Result<Routine, String> {
        match text {
            "double" => Ok(Routine::Double),
            _ => Err("unknown routine".into()),
        }
    }
}

impl core::fmt::Display for Routine {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("double")
    }
}
