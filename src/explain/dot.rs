//! DOT output: a graph in the language of Graphviz.

use core::fmt::Write;

use crate::ssa::{
    Array, Block, Def, End, Graph, Item, Passed, Region, access_line, array_line, node_line,
    region_line,
};

/// The graph in the language of Graphviz: a cluster for each block and each region, nested as in
/// the graph; data flow as solid and control flow as dashed edges.
///
/// # Examples
///
/// ```
/// use phigrad::internals::explain::dot;
/// use phigrad::internals::ssa::parse;
///
/// let graph = parse("graph active 1 inactive 0\nb0:\n  v1 = sin v0\n  return v1\n")?;
/// assert!(dot(&graph).contains("v0 -> v1"));
/// # Ok::<(), phigrad::internals::ssa::ParseError>(())
/// ```
pub fn dot(graph: &Graph) -> String {
    let mut out = String::from("digraph {\n  node [shape=box, fontname=monospace];\n");
    // Writing to a string does not fail.
    let _ = write(graph, &mut out);
    out.push_str("}\n");
    out
}

fn write(graph: &Graph, out: &mut String) -> core::fmt::Result {
    for (node, data) in graph.nodes.iter() {
        if matches!(data.def, Def::Input(_) | Def::Const(_) | Def::Iteration(_)) {
            writeln!(out, "  {node} [label={:?}];", node_line(graph, node))?;
        }
    }
    for array in graph.arrays.keys() {
        write_array(graph, array, out)?;
    }
    write_clusters(graph, out)?;
    for (node, data) in graph.nodes.iter() {
        for arg in graph.operands(node) {
            writeln!(out, "  {arg} -> {node};")?;
        }
        if let Def::Element(access) = data.def {
            let array = graph.accesses[access].array;
            writeln!(
                out,
                "  {array} -> {node} [style=dotted, label={:?}];",
                access_line(graph, access)
            )?;
        }
    }
    for block in graph.blocks.keys() {
        write_guards(graph, block, out)?;
        write_stores(graph, block, out)?;
    }
    for region in graph.regions.keys() {
        write_joins(graph, region, out)?;
    }
    for (block, data) in graph.blocks.iter() {
        if let End::Branch { condition, then, otherwise } = data.end {
            writeln!(out, "  {condition} -> {block};")?;
            writeln!(out, "  {block} -> {then} [style=dashed, label=yes];")?;
            writeln!(out, "  {block} -> {otherwise} [style=dashed, label=no];")?;
        }
    }
    for leaf in graph.leaves(graph.root()) {
        if let End::Return(outputs) = &graph.blocks[leaf].end {
            for output in outputs {
                writeln!(out, "  {output} -> {leaf};")?;
            }
        }
    }
    Ok(())
}

/// Writes the clusters with their nodes: a region within its block, and the blocks of its tree
/// within the region.
fn write_clusters(graph: &Graph, out: &mut String) -> core::fmt::Result {
    enum Step {
        Block(Block),
        Region(Region),
        Close,
    }
    let mut depth = 1;
    let mut pending = vec![Step::Block(graph.root())];
    while let Some(step) = pending.pop() {
        let indent = indent(depth);
        match step {
            Step::Close => {
                depth -= 1;
                writeln!(out, "{}}}", self::indent(depth))?;
            }
            Step::Region(region) => {
                let data = &graph.regions[region];
                let label = region_line(graph, region);
                writeln!(out, "{indent}subgraph cluster_{region} {{ label={label:?};")?;
                let entries = graph.entries(region).iter().map(|entry| &entry.phi);
                for &phi in entries.chain(&data.phis) {
                    writeln!(out, "{indent}  {phi} [label={:?}];", node_line(graph, phi))?;
                }
                depth += 1;
                pending.push(Step::Close);
                pending.push(Step::Block(data.root));
            }
            Step::Block(block) => {
                let data = &graph.blocks[block];
                writeln!(out, "{indent}subgraph cluster_{block} {{ label=\"{block}\";")?;
                for item in &data.items {
                    if let Item::Node(node) = *item {
                        writeln!(out, "{indent}  {node} [label={:?}];", node_line(graph, node))?;
                    }
                }
                let label = end_label(&data.end);
                writeln!(out, "{indent}  {block} [shape=oval, label={label:?}];")?;
                if let End::Branch { then, otherwise, .. } = data.end {
                    pending.extend([Step::Block(otherwise), Step::Block(then)]);
                }
                depth += 1;
                pending.push(Step::Close);
                pending.extend(graph.regions_of(block).rev().map(Step::Region));
            }
        }
    }
    Ok(())
}

/// The indentation, bounded since regions may nest deeply.
fn indent(depth: usize) -> String {
    "  ".repeat(depth.min(20))
}

fn write_guards(graph: &Graph, block: Block, out: &mut String) -> core::fmt::Result {
    for (index, item) in graph.blocks[block].items.iter().enumerate() {
        if let Item::Guard { condition, expect } = *item {
            let guard = format!("{block}_{index}");
            writeln!(out, "  {guard} [shape=diamond, label=\"guard {expect}\"];")?;
            writeln!(out, "  {condition} -> {guard} [style=dashed];")?;
        }
    }
    Ok(())
}

fn write_array(graph: &Graph, array: Array, out: &mut String) -> core::fmt::Result {
    writeln!(out, "  {array} [shape=folder, label={:?}];", array_line(graph, array))?;
    let mut nodes = graph.arrays[array].nodes();
    nodes.try_for_each(|node| writeln!(out, "  {node} -> {array};"))
}

/// Writes the edges of the items of `block` that write arrays.
fn write_stores(graph: &Graph, block: Block, out: &mut String) -> core::fmt::Result {
    for item in &graph.blocks[block].items {
        match *item {
            Item::Fill(array) => {
                writeln!(out, "  {block} -> {array} [style=dashed, label=fill];")?;
            }
            Item::Accumulate(access, node) => {
                let (array, label) = (graph.accesses[access].array, access_line(graph, access));
                writeln!(
                    out,
                    "  {node} -> {array} [style=dotted, label={:?}];",
                    format!("+ {label}")
                )?;
            }
            Item::Store(access, node) => {
                let (array, label) = (graph.accesses[access].array, access_line(graph, access));
                writeln!(out, "  {node} -> {array} [style=dotted, label={label:?}];")?;
            }
            Item::Node(_) | Item::Guard { .. } | Item::Region(_) => {}
        }
    }
    Ok(())
}

/// Writes the edges from the operands of φs to the φs; for a loop also those of entry φs, and from
/// the condition to continue to the root.
fn write_joins(graph: &Graph, region: Region, out: &mut String) -> core::fmt::Result {
    let data = &graph.regions[region];
    for entry in graph.entries(region) {
        writeln!(out, "  {} -> {} [label=first];", entry.first, entry.phi)?;
    }
    for leaf in graph.leaves(data.root) {
        if let Some(Passed { again, nexts, values }) = graph.passed(region, leaf) {
            if let Some(again) = again {
                writeln!(out, "  {again} -> {} [style=dashed, label=again];", data.root)?;
            }
            let entries = graph.entries(region).iter().map(|entry| &entry.phi);
            for (value, phi) in nexts.iter().chain(values).zip(entries.chain(&data.phis)) {
                writeln!(out, "  {value} -> {phi} [label={leaf}];")?;
            }
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
