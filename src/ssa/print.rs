//! The text form of a graph.
//!
//! ```text
//! graph    = "graph active" N "inactive" N  const*  block+
//! const    = node "=" "const" number
//! block    = "b" N ":"  item*  end
//! item     = node "=" op node+ [place]
//!          | "guard" ["not"] node
//!          | [node+ "="] "region" region block ["replays" region] [place]
//! end      = "branch" node block block  |  "return" node*
//! place    = "@" file ":" line ":" column
//! node     = "v" N            inputs are v0, v1, … and have no line
//! region   = "r" N            before it its φs, after it the block where it begins
//! number   = as Rust prints f64, or "nan:" and 16 hexadecimal digits
//! ```
//!
//! One statement a line; `;` after a space starts a comment. Ids are the indices of the
//! graph, so that printing what was parsed gives the same text.

use core::fmt;

use super::graph::{Block, Def, End, Graph, Item, Node, PlaceId, Region};

impl fmt::Display for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", header_line(self))?;
        for (node, data) in self.nodes.iter() {
            if matches!(data.def, Def::Const(_)) {
                writeln!(f, "{}", node_line(self, node))?;
            }
        }
        for (block, data) in self.blocks.iter() {
            writeln!(f, "{block}:")?;
            for item in &data.items {
                match *item {
                    Item::Node(node) => writeln!(f, "  {}", node_line(self, node))?,
                    Item::Region(region) => writeln!(f, "  {}", region_line(self, region))?,
                    Item::Guard { condition, expect: true } => writeln!(f, "  guard {condition}")?,
                    Item::Guard { condition, expect: false } => {
                        writeln!(f, "  guard not {condition}")?;
                    }
                }
            }
            writeln!(f, "  {}", end_line(self, block))?;
        }
        Ok(())
    }
}

/// The first line of the text form.
pub(super) fn header_line(graph: &Graph) -> String {
    format!("graph active {} inactive {}", graph.active, graph.inactive)
}

/// The line of `node`; that of a φ is for errors and pictures only.
pub(super) fn node_line(graph: &Graph, node: Node) -> String {
    let data = &graph.nodes[node];
    let mut line = match data.def {
        Def::Input(i) => format!("{node} = input {i}"),
        Def::Const(bits) => format!("{node} = const {}", number(f64::from_bits(bits))),
        Def::Apply(op, _) => format!("{node} = {op}"),
        Def::Phi(region, index) => format!("{node} = phi {region} {index}"),
    };
    for arg in data.args() {
        line.push_str(&format!(" {arg}"));
    }
    if matches!(data.def, Def::Apply(..)) {
        line.push_str(&place_suffix(graph, data.place));
    }
    line
}

/// The line of `region`.
pub(super) fn region_line(graph: &Graph, region: Region) -> String {
    let data = &graph.regions[region];
    let mut line = data.phis.iter().fold(String::new(), |line, phi| format!("{line}{phi} "));
    if !line.is_empty() {
        line.push_str("= ");
    }
    line.push_str(&format!("region {region} {}", data.root));
    if let Some(replayed) = data.replays {
        line.push_str(&format!(" replays {replayed}"));
    }
    line.push_str(&place_suffix(graph, data.place));
    line
}

fn place_suffix(graph: &Graph, place: Option<PlaceId>) -> String {
    let place = place.and_then(|place| graph.places.get(place));
    place.map_or(String::new(), |place| format!(" @ {place}"))
}

/// The line of the end of `block`.
pub(super) fn end_line(graph: &Graph, block: Block) -> String {
    match &graph.blocks[block].end {
        End::Open => "open".to_owned(),
        End::Return(outputs) => {
            outputs.iter().fold("return".to_owned(), |line, node| format!("{line} {node}"))
        }
        End::Branch { condition, then, otherwise } => {
            format!("branch {condition} {then} {otherwise}")
        }
    }
}

/// A number so that it reads back with the same bits.
pub(super) fn number(value: f64) -> String {
    if value.is_nan() { format!("nan:{:016x}", value.to_bits()) } else { format!("{value:?}") }
}
