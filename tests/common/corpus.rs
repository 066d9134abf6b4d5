//! The graphs of `tests/corpus` with their directives.

use std::fs;
use std::path::Path;

use phigrad::internals::ssa::{Graph, parse};

/// All graphs of the corpus.
pub fn cases() -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let cases: Vec<Case> = paths
        .filter(|path| path.extension().is_some_and(|ending| ending == "graph"))
        .map(|path| Case::read(&path))
        .collect();
    assert!(cases.len() > 30);
    cases
}

/// A file with its directives.
pub struct Case {
    pub name: String,
    pub graph: Graph,
    /// Inputs with the outputs, or `None` where a guard fails.
    pub runs: Vec<(Vec<f64>, Option<Vec<f64>>)>,
    /// Inputs for which a guard fails, with its condition.
    pub failures: Vec<(Vec<f64>, String)>,
    pub gradients: Vec<(Vec<f64>, Vec<f64>)>,
    pub rules: Option<Vec<String>>,
}

impl Case {
    fn read(path: &Path) -> Case {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let text = fs::read_to_string(path).unwrap();
        let graph = parse(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        let canonical: String =
            text.split_inclusive('\n').filter(|l| !l.starts_with(';')).collect();
        assert_eq!(graph.to_string(), canonical, "{name}");
        let (mut runs, mut failures, mut gradients) = (Vec::new(), Vec::new(), Vec::new());
        let mut rules = None;
        for line in text.lines().filter_map(|line| line.strip_prefix("; ")) {
            let (kind, rest) = line.split_once(' ').unwrap_or((line, ""));
            let sides = rest.split_once('=');
            match (kind, sides) {
                ("run", Some((at, values))) => runs.push((numbers(at), Some(numbers(values)))),
                ("gradient", Some((at, values))) => gradients.push((numbers(at), numbers(values))),
                ("unseen", None) => {
                    let (at, condition) = rest.split_once(" at ").unwrap_or((rest, ""));
                    runs.push((numbers(at), None));
                    if !condition.is_empty() {
                        failures.push((numbers(at), condition.to_owned()));
                    }
                }
                ("rules", None) => rules = Some(sorted(rest.split(' ').map(str::to_owned))),
                _ => {}
            }
        }
        assert!(runs.len() + gradients.len() > 0, "{name} expects nothing");
        Case { name, graph, runs, failures, gradients, rules }
    }
}

fn numbers(text: &str) -> Vec<f64> {
    text.split_whitespace().map(|number| number.parse().unwrap()).collect()
}

pub fn sorted(items: impl Iterator<Item = String>) -> Vec<String> {
    let mut items: Vec<String> = items.collect();
    items.sort();
    items.dedup();
    items
}
