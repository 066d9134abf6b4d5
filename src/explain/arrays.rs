//! Arrays that loops read and write, and what their elements are called.

use hashbrown::HashMap;

use crate::entity::Array;
use crate::notation::{Term, subscript};
use crate::ssa::{AccessData, Def, Graph, Node, Region, Series, SeriesData};

/// What the elements of an array are.
#[derive(Clone)]
pub(super) enum Elements {
    Named(String),
    /// Inputs of this letter from a number on.
    Inputs(&'static str, usize),
    /// What a node was in each iteration.
    Past(Node),
}

/// What the elements of each array are; those of constants and nodes are added to `tables`.
pub(super) fn elements<'a>(graph: &'a Graph, tables: &mut Vec<Series>) -> Array<Series, Elements> {
    const LETTERS: [&str; 5] = ["a", "b", "c", "g", "h"];
    let mut known: HashMap<&'a SeriesData, String> = HashMap::new();
    let mut sums = 0;
    let of = |(series, data): (Series, &'a SeriesData)| match data {
        SeriesData::History(node) => Elements::Past(*node),
        &SeriesData::Inputs { first, .. } => inputs_from(graph, first),
        SeriesData::Sums(_) | SeriesData::Outputs { .. } => {
            sums += 1;
            Elements::Named(format!("S{}", subscript(sums)))
        }
        SeriesData::Nodes(nodes) if let Some(elements) = inputs(graph, nodes) => elements,
        SeriesData::Nodes(_) | SeriesData::Constants(_) => {
            let count = known.len();
            let name = known.entry(data).or_insert_with(|| {
                tables.push(series);
                let letter = LETTERS[count % LETTERS.len()];
                match count / LETTERS.len() {
                    0 => letter.to_owned(),
                    round => format!("{letter}{}", subscript(round)),
                }
            });
            Elements::Named(name.clone())
        }
    };
    graph.series.iter().map(of).collect()
}

/// `nodes` as inputs that follow one another.
fn inputs(graph: &Graph, nodes: &[Node]) -> Option<Elements> {
    let Def::Input(first) = graph.nodes[*nodes.first()?].def else { return None };
    let fits = |(number, &node): (u32, &Node)| {
        graph.nodes[node].def == Def::Input(number)
            && graph.is_active(number) == graph.is_active(first)
    };
    (first..).zip(nodes).all(fits).then(|| inputs_from(graph, first))
}

fn inputs_from(graph: &Graph, first: u32) -> Elements {
    match (first as usize).checked_sub(graph.active) {
        None => Elements::Inputs("x", first as usize),
        Some(first) => Elements::Inputs("d", first),
    }
}

/// The index of an access as a text, counted from `first`.
pub(super) fn index(access: &AccessData, first: usize, counters: &Array<Region, String>) -> String {
    let mut text = String::new();
    for &(region, stride) in access.strides.iter().filter(|&&(_, stride)| stride != 0) {
        text.push(if stride < 0 { '−' } else { '+' });
        if stride.abs() != 1 {
            text.push_str(&stride.abs().to_string());
        }
        text.push_str(&counters[region]);
    }
    match (first + access.base as usize, text.strip_prefix('+')) {
        (base, _) if text.is_empty() => base.to_string(),
        (0, Some(text)) => text.to_owned(),
        (base, Some(text)) => format!("{text}+{base}"),
        (base, None) => format!("{base}{text}"),
    }
}

/// What a table has: the first of its numbers, as texts.
pub(super) fn sample(
    graph: &Graph,
    series: Series,
    node: impl Fn(Node) -> String,
) -> Option<String> {
    const SHOWN: usize = 4;
    let number = |&bits: &u64| Term::number(f64::from_bits(bits)).text();
    let (texts, count): (Vec<String>, usize) = match &graph.series[series] {
        SeriesData::Constants(all) => (all.iter().take(SHOWN).map(number).collect(), all.len()),
        SeriesData::Nodes(all) => (all.iter().take(SHOWN).map(|&n| node(n)).collect(), all.len()),
        _ => return None,
    };
    let texts = texts.join(", ");
    Some(if count > SHOWN {
        format!("({texts}, …), {count} numbers")
    } else {
        format!("({texts})")
    })
}
