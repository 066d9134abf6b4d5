//! Series: rows of numbers that loops read, and what they are called.

use hashbrown::HashMap;

use super::term::Name;
use crate::entity::Array;
use crate::ssa::{Def, Graph, Node, Series, SeriesData};

/// What the elements of a series are.
#[derive(Clone)]
pub(super) enum Row {
    Named(Name),
    /// Every so manieth input from this one on.
    Inputs {
        letter: &'static str,
        first: i64,
        step: i64,
    },
    Past(Node),
}

/// What the elements of each series are; those that are named are listed.
pub(super) fn rows(graph: &Graph, tables: &mut Vec<Series>) -> Array<Series, Row> {
    const LETTERS: [&str; 9] = ["a", "b", "c", "g", "h", "p", "q", "u", "v"];
    let mut known: HashMap<&SeriesData, Name> = HashMap::new();
    let mut sums = 0;
    let mut rows = Array::new();
    for (series, data) in graph.series.iter() {
        let row = match data {
            SeriesData::History(node) => Row::Past(*node),
            &SeriesData::Inputs { first, .. } => inputs_from(graph, i64::from(first), 1),
            SeriesData::Sums(_) | SeriesData::Outputs { .. } => {
                sums += 1;
                Row::Named(Name { letter: "S", number: Some(sums) })
            }
            SeriesData::Nodes(nodes) if let Some(row) = inputs(graph, nodes) => row,
            SeriesData::Nodes(_) | SeriesData::Constants(_) => {
                let count = known.len();
                let name = known.entry(data).or_insert_with(|| {
                    tables.push(series);
                    match LETTERS.get(count) {
                        Some(letter) => Name { letter, number: None },
                        None => Name { letter: "a", number: Some(count - LETTERS.len() + 1) },
                    }
                });
                Row::Named(name.clone())
            }
        };
        rows.push(row);
    }
    rows
}

/// `nodes` as inputs of one kind in even steps.
pub(super) fn inputs(graph: &Graph, nodes: &[Node]) -> Option<Row> {
    let number = |node: Node| match graph.nodes[node].def {
        Def::Input(number) => Some(i64::from(number)),
        _ => None,
    };
    let first = number(*nodes.first()?)?;
    let step = nodes.get(1).map_or(Some(1), |&second| Some(number(second)? - first))?;
    let active = graph.active as i64;
    let even = |(i, &node): (usize, &Node)| {
        number(node)
            .is_some_and(|n| n == first + step * i as i64 && (n < active) == (first < active))
    };
    if step == 0 || !nodes.iter().enumerate().all(even) {
        return None;
    }
    Some(inputs_from(graph, first, step))
}

fn inputs_from(graph: &Graph, first: i64, step: i64) -> Row {
    let active = graph.active as i64;
    let (letter, first) = if first < active { ("x", first) } else { ("d", first - active) };
    Row::Inputs { letter, first, step }
}

/// The first, second and last of many numbers, for the definition of a table.
pub(super) fn sample(graph: &Graph, series: Series) -> Option<(Vec<Node>, Vec<f64>, usize)> {
    const SHOWN: usize = 4;
    match &graph.series[series] {
        SeriesData::Constants(numbers) => {
            let shown = numbers.iter().take(SHOWN).map(|&bits| f64::from_bits(bits)).collect();
            Some((Vec::new(), shown, numbers.len()))
        }
        SeriesData::Nodes(nodes) => {
            let shown = nodes.iter().take(SHOWN).copied().collect();
            Some((shown, Vec::new(), nodes.len()))
        }
        SeriesData::Inputs { .. }
        | SeriesData::History(_)
        | SeriesData::Sums(_)
        | SeriesData::Outputs { .. } => None,
    }
}

/// What a table says that marks elements by 1 and 0.
pub(super) fn marked(graph: &Graph, series: Series) -> Option<String> {
    const SHOWN: usize = 4;
    let SeriesData::Constants(numbers) = &graph.series[series] else { return None };
    let (no, yes) = (0.0f64.to_bits(), 1.0f64.to_bits());
    if numbers.len() < 2 || numbers.iter().any(|&bits| bits != no && bits != yes) {
        return None;
    }
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for (index, _) in numbers.iter().enumerate().filter(|&(_, &bits)| bits == yes) {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == index => *last = index,
            _ => runs.push((index, index)),
        }
    }
    let run = |&(first, last): &(usize, usize)| match last - first {
        0 => first.to_string(),
        _ => format!("{first} to {last}"),
    };
    let shown: Vec<String> = runs.iter().take(SHOWN).map(run).collect();
    let more = if runs.len() > SHOWN { ", …" } else { "" };
    let (ones, count) = (numbers.iter().filter(|&&bits| bits == yes).count(), numbers.len());
    let shown = shown.join(", ");
    Some(format!(
        " marks {ones} of {count} elements: it is 1 in number {shown}{more}, 0 in the others"
    ))
}
