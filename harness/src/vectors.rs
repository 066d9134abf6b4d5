//! The expected values and gradients, built into the binary.

use serde::Deserialize;

use crate::error::Error;
use crate::programs::Program;

/// One configuration of one program: an input, and what is right there.
#[derive(Debug, Deserialize)]
pub struct Case {
    /// Name of the program.
    pub benchmark: String,
    /// Number of the configuration, from 1.
    pub config: usize,
    /// The point.
    pub input: Vec<f64>,
    /// The objective there.
    pub value: f64,
    /// The gradient there.
    pub grad: Vec<f64>,
}

impl Case {
    /// The name of the case in messages.
    pub fn subject(&self) -> String {
        format!("{} {}", self.benchmark, self.config)
    }

    /// The program `P` with the data of this case.
    pub fn program<P: Program>(&self) -> Result<P, Error> {
        let config = self.config.checked_sub(1).and_then(|index| P::CONFIGS.get(index));
        match config {
            Some(config) => Ok(P::new(*config)),
            None => Err(Error::MissingVector { program: P::NAME, config: self.config }),
        }
    }
}

/// All cases.
pub fn load() -> Result<Vec<Case>, Error> {
    Ok(serde_json::from_str(include_str!("../data/vectors.json"))?)
}

/// The case of one configuration.
pub fn find<'a>(
    cases: &'a [Case],
    program: &'static str,
    config: usize,
) -> Result<&'a Case, Error> {
    cases
        .iter()
        .find(|case| case.benchmark == program && case.config == config)
        .ok_or(Error::MissingVector { program, config })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::programs::PROGRAMS;

    #[test]
    fn every_configuration_has_a_case_of_the_right_shape() {
        let cases = load().unwrap();
        for entry in PROGRAMS {
            for config in 1..=entry.configs {
                let case = find(&cases, entry.name, config).unwrap();
                assert_eq!(case.input.len(), case.grad.len(), "{}", case.subject());
            }
        }
        let configs: usize = PROGRAMS.iter().map(|entry| entry.configs).sum();
        assert_eq!(cases.len(), configs, "a row that no program uses");
    }

    #[test]
    fn numbers_are_read_to_the_last_bit() {
        let cases = load().unwrap();
        let text = include_str!("../data/vectors.json");
        for case in &cases {
            for number in case.input.iter().chain(&case.grad).chain([&case.value]) {
                assert!(text.contains(&serde_json::to_string(number).unwrap()), "{number:?}");
            }
        }
    }
}
