//! The text form of a graph.
//!
//! ```text
//! graph    = "graph active" N "inactive" N ["sparse"]  leaf*  array*  access*  call*  block+
//! leaf     = node "=" "const" number  |  node "=" "iteration" region
//!          | node "=" "input" N
//! array    = "a" N "=" "constants" number*  |  "a" N "=" "nodes" node*
//!          | "a" N "=" "saved" node       |  "a" N "=" "sums" (node | "_")*
//!          | "a" N "=" "inputs" N "count" N |  "a" N "=" "outputs" N "count" N
//!          | "a" N "=" "cells" N
//! access   = "i" N "=" array "base" N  (region "*" integer)*
//! call     = "c" N "=" "routine" routine
//! block    = "b" N ":"  item*  end
//! item     = node "=" op node+ [place]  |  node "=" "element" access [place]
//!          | node "=" "call" ("c" N) node* [place]  |  node "=" "result" node N
//!          | "guard" ["not"] node
//!          | "fill" array  |  "accumulate" access node  |  "store" access node
//!          | [node+ "="] "region" region block [loop] ["replays" region] [place]
//! loop     = "bound" N ["entries" (node "=" node)+]
//! end      = "branch" node block block  |  "return" node*
//! place    = "@" file ":" line ":" column ["#" N]   N, from 2, numbers the loops there
//! sparse                      inputs that are nodes have lines; otherwise all inputs are
//!                             nodes, v0, v1, …, and have none
//! node     = "v" N
//! routine                     as `numeric` writes it
//! region   = "r" N            before it its φs, after it its root
//! loop                        each entry φ with its initial value
//! number   = as Rust prints f64, or "nan:" and 16 hexadecimal digits
//! ```
//!
//! One statement a line; `;` after a space starts a comment. Ids are the indices of the
//! graph, so that printing what was parsed gives the same text.

use core::fmt;

use super::arrays::{Access, Array, ArrayData};
use super::graph::{Block, Def, End, Graph, Item, Node, PlaceId, Region};
use crate::entity::Entity;

impl fmt::Display for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_sparse = is_sparse(self);
        writeln!(f, "{}", header_line(self))?;
        for (node, data) in self.nodes.iter() {
            let is_leaf = match data.def {
                Def::Input(_) => is_sparse,
                def => matches!(def, Def::Const(_) | Def::Iteration(_)),
            };
            if is_leaf {
                writeln!(f, "{}", node_line(self, node))?;
            }
        }
        for array in self.arrays.keys() {
            writeln!(f, "{}", array_line(self, array))?;
        }
        for access in self.accesses.keys() {
            writeln!(f, "{}", access_line(self, access))?;
        }
        for (call, data) in self.calls.iter() {
            writeln!(f, "{call} = routine {}", data.routine)?;
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
                    Item::Fill(array) => writeln!(f, "  fill {array}")?,
                    Item::Accumulate(access, node) => writeln!(f, "  accumulate {access} {node}")?,
                    Item::Store(access, node) => writeln!(f, "  store {access} {node}")?,
                }
            }
            writeln!(f, "  {}", end_line(self, block))?;
        }
        Ok(())
    }
}

/// Tests whether nodes of inputs need lines: the first nodes are not exactly the inputs in order.
fn is_sparse(graph: &Graph) -> bool {
    let in_place =
        |(at, (node, number)): (usize, (Node, u32))| node.index() == at && number as usize == at;
    graph.input_nodes().count() != graph.active.saturating_add(graph.inactive)
        || !graph.input_nodes().enumerate().all(in_place)
}

/// The first line of the text form.
pub(super) fn header_line(graph: &Graph) -> String {
    let kind = if is_sparse(graph) { " sparse" } else { "" };
    format!("graph active {} inactive {}{kind}", graph.active, graph.inactive)
}

/// The line of `node`; for a φ it appears only in errors and pictures.
pub(crate) fn node_line(graph: &Graph, node: Node) -> String {
    let data = &graph.nodes[node];
    let mut line = match data.def {
        Def::Input(i) => format!("{node} = input {i}"),
        Def::Const(bits) => format!("{node} = const {}", number(f64::from_bits(bits))),
        Def::Apply(op, _) => format!("{node} = {op}"),
        Def::Phi(region, index) => format!("{node} = phi {region} {index}"),
        Def::Entry(region, index) => format!("{node} = entry {region} {index}"),
        Def::Iteration(region) => format!("{node} = iteration {region}"),
        Def::Element(access) => format!("{node} = element {access}"),
        Def::Call(call) => format!("{node} = call {call}"),
        Def::Result(..) => format!("{node} = result"),
    };
    for arg in graph.operands(node) {
        line.push_str(&format!(" {arg}"));
    }
    if let Def::Result(_, number) = data.def {
        line.push_str(&format!(" {number}"));
    }
    if matches!(data.def, Def::Apply(..) | Def::Element(_) | Def::Call(_)) {
        line.push_str(&place_suffix(graph, data.place));
    }
    line
}

/// The line of `region`.
pub(crate) fn region_line(graph: &Graph, region: Region) -> String {
    let data = &graph.regions[region];
    let mut line = data.phis.iter().fold(String::new(), |line, phi| format!("{line}{phi} "));
    if !line.is_empty() {
        line.push_str("= ");
    }
    line.push_str(&format!("region {region} {}", data.root));
    if let Some(cycle) = &data.cycle {
        line.push_str(&format!(" bound {}", cycle.bound));
        if !cycle.entries.is_empty() {
            line.push_str(" entries");
        }
        for entry in &cycle.entries {
            line.push_str(&format!(" {}={}", entry.phi, entry.first));
        }
    }
    if let Some(replayed) = data.replays {
        line.push_str(&format!(" replays {replayed}"));
    }
    line.push_str(&place_suffix(graph, data.place));
    line
}

/// The line of `array`.
pub(crate) fn array_line(graph: &Graph, array: Array) -> String {
    let mut line = format!("{array} = ");
    match &graph.arrays[array] {
        ArrayData::Constants(numbers) => {
            line.push_str("constants");
            for &bits in numbers.iter() {
                line.push_str(&format!(" {}", number(f64::from_bits(bits))));
            }
        }
        ArrayData::Inputs { first, count } => {
            line.push_str(&format!("inputs {first} count {count}"));
        }
        ArrayData::Outputs { first, count } => {
            line.push_str(&format!("outputs {first} count {count}"));
        }
        ArrayData::Nodes(nodes) => {
            line.push_str("nodes");
            nodes.iter().for_each(|node| line.push_str(&format!(" {node}")));
        }
        ArrayData::Saved(node) => line.push_str(&format!("saved {node}")),
        ArrayData::Cells(count) => line.push_str(&format!("cells {count}")),
        ArrayData::Sums(firsts) => {
            line.push_str("sums");
            for first in firsts {
                line.push(' ');
                line.push_str(&first.map_or("_".to_owned(), |first| first.to_string()));
            }
        }
    }
    line
}

/// The line of `access`.
pub(crate) fn access_line(graph: &Graph, access: Access) -> String {
    let data = &graph.accesses[access];
    let line = format!("{access} = {} base {}", data.array, data.base);
    let line = data
        .strides
        .iter()
        .fold(line, |line, (region, stride)| format!("{line} {region}*{stride}"));
    data.changes.iter().fold(line, |line, (region, change)| format!("{line} {region}**{change}"))
}

fn place_suffix(graph: &Graph, place: Option<PlaceId>) -> String {
    let place = place.and_then(|place| graph.places.get(place));
    place.map_or(String::new(), |place| format!(" @ {place}"))
}

/// The line of the terminator of `block`.
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

/// The text of a number that parses to the same bits.
pub(super) fn number(value: f64) -> String {
    if value.is_nan() { format!("nan:{:016x}", value.to_bits()) } else { format!("{value:?}") }
}
