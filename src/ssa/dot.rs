//! DOT output, for a picture of a graph.

use core::fmt::Write;

use super::graph::{Def, End, Graph, Item};
use super::print::node_line;

/// The graph in the language of Graphviz: one cluster for each block, data flow
/// as solid and control flow as dashed edges.
///
/// # Examples
///
/// ```
/// use phigrad::ssa::{dot, parse};
///
/// let graph = parse("graph active 1 inactive 0\nb0:\n  v1 = sin v0\n  return v1\n")?;
/// assert!(dot(&graph).contains("v0 -> v1"));
/// # Ok::<(), phigrad::ssa::ParseError>(())
/// ```
pub fn dot(graph: &Graph) -> String {
    let mut out = String::from("digraph graph {\n  node [shape=box, fontname=monospace];\n");
    // Writing to a string does not fail.
    let _ = write(graph, &mut out);
    out.push_str("}\n");
    out
}

fn write(graph: &Graph, out: &mut String) -> core::fmt::Result {
    for (node, data) in graph.nodes.iter() {
        if !matches!(data.def, Def::Apply(..)) {
            writeln!(out, "  {node} [label={:?}];", node_line(graph, node))?;
        }
    }
    for (block, data) in graph.blocks.iter() {
        writeln!(out, "  subgraph cluster_{block} {{\n    label=\"{block}\";")?;
        for item in &data.items {
            if let Item::Node(node) = *item {
                writeln!(out, "    {node} [label={:?}];", node_line(graph, node))?;
            }
        }
        writeln!(out, "    {block} [shape=oval, label={:?}];", end_label(&data.end))?;
        out.push_str("  }\n");
        for (index, item) in data.items.iter().enumerate() {
            match *item {
                Item::Region(_) => {}
                Item::Node(node) => {
                    for arg in graph.nodes[node].args() {
                        writeln!(out, "  {arg} -> {node};")?;
                    }
                }
                Item::Guard { condition, expect } => {
                    let guard = format!("{block}_{index}");
                    writeln!(out, "  {guard} [shape=diamond, label=\"guard {expect}\"];")?;
                    writeln!(out, "  {condition} -> {guard} [style=dashed];")?;
                }
            }
        }
        match &data.end {
            End::Return(outputs) => {
                for output in outputs {
                    writeln!(out, "  {output} -> {block};")?;
                }
            }
            End::Branch { condition, then, otherwise } => {
                writeln!(out, "  {condition} -> {block};")?;
                writeln!(out, "  {block} -> {then} [style=dashed, label=yes];")?;
                writeln!(out, "  {block} -> {otherwise} [style=dashed, label=no];")?;
            }
            End::Open => {}
        }
    }
    Ok(())
}

fn end_label(end: &End) -> &'static str {
    match end {
        End::Open => "open",
        End::Return(_) => "return",
        End::Branch { .. } => "branch",
    }
}
