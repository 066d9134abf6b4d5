//! Parses the text form of a graph; the grammar is in `print`.

use std::sync::Arc;

use hashbrown::HashMap;
use smallvec::SmallVec;

use super::arrays::{Access, AccessData, Array, ArrayData, Entry, Loop};
use super::graph::{
    Block, Call, CallData, Def, End, Graph, Item, Node, NodeData, Place, PlaceId, Region,
    RegionData, padded,
};
use super::verify::{VerifyError, verify};
use crate::entity::{Entity, PrimaryMap};
use crate::numeric::Routine;
use crate::op::Op;

/// The reason why a text is not a graph.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseError {
    /// A line does not follow the grammar.
    #[error("line {line}: {what}")]
    Syntax {
        /// The number of the line, from 1.
        line: usize,
        /// The expected text.
        what: String,
    },
    /// The text follows the grammar but the graph breaks an invariant.
    #[error(transparent)]
    Invalid(#[from] VerifyError),
}

/// Parses a graph and verifies it.
///
/// # Errors
///
/// [`ParseError::Syntax`] with the line, or [`ParseError::Invalid`].
///
/// # Examples
///
/// ```
/// let text = "graph active 1 inactive 0\nb0:\n  v1 = sin v0\n  return v1\n";
/// assert_eq!(phigrad::internals::ssa::parse(text)?.to_string(), text);
/// # Ok::<(), phigrad::internals::ssa::ParseError>(())
/// ```
pub fn parse(text: &str) -> Result<Graph, ParseError> {
    let mut parser = Parser::default();
    for (index, line) in text.lines().enumerate() {
        let line = without_comment(line).trim();
        if !line.is_empty() {
            let located = |what| ParseError::Syntax { line: index + 1, what };
            parser.statement(line).map_err(located)?;
        }
    }
    let end = |what: &str| ParseError::Syntax { line: text.lines().count(), what: what.into() };
    let graph = parser.finish().map_err(|what| end(&what))?;
    verify(&graph)?;
    Ok(graph)
}

const EXPECTED: &str = "expected a block, a node, a guard, a region, a branch or a return";

/// The largest id that a text may name; bounds the memory for hostile input.
const MAX_ID: usize = 1 << 22;

/// The graph as parsed so far.
#[derive(Default)]
struct Parser {
    inputs: Option<(usize, usize)>,
    /// True if nodes of inputs have lines.
    is_sparse: bool,
    /// The nodes by their ids, without inputs that have no lines.
    nodes: HashMap<usize, NodeData>,
    blocks: Vec<(Vec<Item>, End)>,
    /// The regions by their ids.
    regions: HashMap<usize, RegionData>,
    arrays: PrimaryMap<Array, ArrayData>,
    accesses: PrimaryMap<Access, AccessData>,
    calls: PrimaryMap<Call, CallData>,
    places: PrimaryMap<PlaceId, Place>,
    known_places: HashMap<Place, PlaceId>,
}

impl Parser {
    fn statement(&mut self, line: &str) -> Result<(), String> {
        // Routines first: their text may contain the separators of other statements.
        if let Some((name, routine)) = line.split_once(" = routine ") {
            return self.routine(name.trim(), routine.trim());
        }
        let (line, place) = match line.split_once(" @ ") {
            Some((line, place)) => (line, Some(self.place(place.trim())?)),
            None => (line, None),
        };
        // The patterns are those of the grammar in `print`.
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["graph", "active", active, "inactive", inactive, ref rest @ ..]
                if self.inputs.is_none() && matches!(rest, [] | ["sparse"]) =>
            {
                self.is_sparse = !rest.is_empty();
                let (active, inactive) = (count(active)?, count(inactive)?);
                if active + inactive > MAX_ID {
                    return Err(format!("too many inputs, at most {MAX_ID}"));
                }
                self.inputs = Some((active, inactive));
                Ok(())
            }
            _ if self.inputs.is_none() => Err("expected `graph active N inactive N` first".into()),
            [name] if name.ends_with(':') => {
                if id("b", name.trim_end_matches(':'))? != self.blocks.len() {
                    return Err(format!("expected block b{}", self.blocks.len()));
                }
                self.blocks.push((Vec::new(), End::Open));
                Ok(())
            }
            _ if words.contains(&"region") => {
                let (phis, rest) = match words.iter().position(|&word| word == "region") {
                    Some(at) if at > 1 && words[at - 1] == "=" => (&words[..at - 1], &words[at..]),
                    Some(0) => (&[][..], &words[..]),
                    _ => return Err(EXPECTED.into()),
                };
                self.region(phis, &rest[1..], place)
            }
            ["fill", name] => self.item(Item::Fill(array(name)?)),
            ["accumulate", at, value] => {
                let (at, value) = (access(at)?, node(value)?);
                self.item(Item::Accumulate(at, value))
            }
            ["store", at, value] => {
                let (at, value) = (access(at)?, node(value)?);
                self.item(Item::Store(at, value))
            }
            [
                name,
                "=",
                kind @ ("constants" | "nodes" | "saved" | "sums" | "cells" | "inputs" | "outputs"),
                ref rest @ ..,
            ] => {
                let data = array_data(kind, rest)?;
                if id("a", name)? != self.arrays.len() {
                    return Err(format!("expected array a{}", self.arrays.len()));
                }
                self.arrays.push(data);
                Ok(())
            }
            [name, "=", of, "base", base, ref strides @ ..] => {
                let data = access_data(of, base, strides)?;
                if id("i", name)? != self.accesses.len() {
                    return Err(format!("expected access i{}", self.accesses.len()));
                }
                self.accesses.push(data);
                Ok(())
            }
            [node, "=", "iteration", name] => {
                self.define(node, Def::Iteration(region(name)?), None).map(|_| ())
            }
            [node, "=", "input", number] if self.is_sparse => {
                self.define(node, Def::Input(integer(number)?), None).map(|_| ())
            }
            [node, "=", "element", at] => {
                let node = self.define(node, Def::Element(access(at)?), place)?;
                self.item(Item::Node(node))
            }
            [node, "=", "call", name, ref args @ ..] => self.call(node, name, args, place),
            [node, "=", "result", of, number] => {
                let def = Def::Result(self::node(of)?, integer(number)?);
                let node = self.define(node, def, None)?;
                self.item(Item::Node(node))
            }
            [node, "=", "const", value] => {
                self.define(node, Def::Const(number(value)?.to_bits()), None).map(|_| ())
            }
            [node, "=", op, ref args @ ..] => {
                let op = Op::from_name(op).ok_or_else(|| format!("unknown primitive `{op}`"))?;
                if args.len() != op.arity() {
                    return Err(format!("{op} takes {} operands", op.arity()));
                }
                let args = args.iter().map(|arg| self::node(arg)).collect::<Result<Vec<_>, _>>()?;
                let node = self.define(node, Def::Apply(op, padded(&args)), place)?;
                self.item(Item::Node(node))
            }
            ["guard", "not", condition] => {
                let condition = node(condition)?;
                self.item(Item::Guard { condition, expect: false })
            }
            ["guard", condition] => {
                let condition = node(condition)?;
                self.item(Item::Guard { condition, expect: true })
            }
            ["branch", condition, then, otherwise] => {
                let condition = node(condition)?;
                let (then, otherwise) = (block(then)?, block(otherwise)?);
                self.end(End::Branch { condition, then, otherwise })
            }
            ["return", ref outputs @ ..] => {
                let outputs: SmallVec<_> =
                    outputs.iter().map(|output| node(output)).collect::<Result<_, _>>()?;
                self.end(End::Return(outputs))
            }
            _ => Err(EXPECTED.into()),
        }
    }

    /// The call `name` of a routine; its operands follow with its node.
    fn routine(&mut self, name: &str, text: &str) -> Result<(), String> {
        if id("c", name)? != self.calls.len() {
            return Err(format!("expected call c{}", self.calls.len()));
        }
        let routine = text.parse::<Routine>().map_err(|error| error.to_string())?;
        self.calls.push(CallData { routine: Arc::new(routine), args: Vec::new() });
        Ok(())
    }

    fn call(
        &mut self,
        node: &str,
        name: &str,
        args: &[&str],
        place: Option<PlaceId>,
    ) -> Result<(), String> {
        let call = id("c", name).map(Call::from_index)?;
        let args = args.iter().map(|arg| self::node(arg)).collect::<Result<Vec<_>, _>>()?;
        if self.calls.get(call).is_none() {
            return Err(format!("expected `{name} = routine …` first"));
        }
        self.calls[call].args = args;
        let node = self.define(node, Def::Call(call), place)?;
        self.item(Item::Node(node))
    }

    fn define(&mut self, name: &str, def: Def, place: Option<PlaceId>) -> Result<Node, String> {
        let index = id("v", name)?;
        let is_input = index < self.without_lines();
        if is_input || self.nodes.insert(index, NodeData { def, place }).is_some() {
            return Err(format!("{name} is defined twice"));
        }
        Ok(Node::from_index(index))
    }

    /// The number of inputs whose nodes have no lines.
    fn without_lines(&self) -> usize {
        self.inputs.filter(|_| !self.is_sparse).map_or(0, |(active, inactive)| active + inactive)
    }

    /// A region with these φs; `rest` are the words after `region`.
    fn region(
        &mut self,
        phis: &[&str],
        rest: &[&str],
        place: Option<PlaceId>,
    ) -> Result<(), String> {
        let wrong = || {
            let what = "expected `region r0 b0`, then for a loop `bound 2` or `bound 2 entries \
                        v1=v0`, then for one that replays `replays r1`";
            Err(what.to_owned())
        };
        let [name, root, ref rest @ ..] = *rest else { return wrong() };
        let (rest, replays) = match *rest {
            [ref rest @ .., "replays", replayed] => (rest, Some(region(replayed)?)),
            _ => (rest, None),
        };
        let (bound, entries) = match *rest {
            [] => (None, &[][..]),
            ["bound", bound] => (Some(integer(bound)?), &[][..]),
            ["bound", bound, "entries", ref entries @ ..] if !entries.is_empty() => {
                (Some(integer(bound)?), entries)
            }
            _ => return wrong(),
        };
        let (index, root) = (id("r", name)?, block(root)?);
        let region = Region::from_index(index);
        let define = |(i, phi): (usize, &&str)| self.define(phi, Def::Phi(region, i as u32), place);
        let phis = phis.iter().enumerate().map(define).collect::<Result<Vec<_>, _>>()?;
        let entry = |(i, entry): (usize, &&str)| {
            let names = entry.split_once('=');
            let (phi, first) = names.ok_or_else(|| format!("expected `v1=v0`, found `{entry}`"))?;
            let phi = self.define(phi, Def::Entry(region, i as u32), place)?;
            Ok::<_, String>(Entry { phi, first: node(first)? })
        };
        let entries = entries.iter().enumerate().map(entry).collect::<Result<Vec<_>, _>>()?;
        let cycle = bound.map(|bound| Loop { bound, entries });
        let data = RegionData { root, phis, replays, cycle, place };
        if self.regions.insert(index, data).is_some() {
            return Err(format!("{name} is defined twice"));
        }
        self.item(Item::Region(region))
    }

    fn item(&mut self, item: Item) -> Result<(), String> {
        match self.blocks.last_mut() {
            Some((items, End::Open)) => {
                items.push(item);
                Ok(())
            }
            _ => Err("expected a block first".into()),
        }
    }

    fn end(&mut self, end: End) -> Result<(), String> {
        match self.blocks.last_mut() {
            Some((_, open @ End::Open)) => {
                *open = end;
                Ok(())
            }
            _ => Err("expected a block first".into()),
        }
    }

    fn place(&mut self, text: &str) -> Result<PlaceId, String> {
        let mut parts = text.rsplitn(3, ':');
        let (column, line, file) = (parts.next(), parts.next(), parts.next());
        let read = |part: Option<&str>| part.and_then(|part| part.parse::<u32>().ok());
        let (column, nth) = match column.and_then(|column| column.split_once('#')) {
            Some((column, nth)) => {
                let nth = nth.parse::<u64>().ok().and_then(|nth| nth.checked_sub(1));
                let nth = nth.and_then(|nth| u32::try_from(nth).ok());
                (Some(column), nth.filter(|&nth| nth > 0))
            }
            None => (column, Some(0)),
        };
        let (Some(nth), Some(column), Some(line), Some(file)) =
            (nth, read(column), read(line), file)
        else {
            return Err("expected `@ file:line:column` or `@ file:line:column#number`".into());
        };
        let place = Place { file: file.into(), line, column, nth };
        Ok(*self.known_places.entry(place).or_insert_with_key(|p| self.places.push(p.clone())))
    }

    fn finish(mut self) -> Result<Graph, String> {
        let (active, inactive) = self.inputs.ok_or("expected `graph active N inactive N`")?;
        if self.blocks.is_empty() {
            return Err("expected a block".into());
        }
        let inputs = self.without_lines();
        let input = |i| NodeData { def: Def::Input(i as u32), place: None };
        let mut nodes: PrimaryMap<Node, NodeData> = (0..inputs).map(input).collect();
        for index in inputs..inputs + self.nodes.len() {
            let data = self.nodes.remove(&index).ok_or_else(|| format!("v{index} is missing"))?;
            nodes.push(data);
        }
        let exists = |node: &Node| nodes.get(*node).is_some();
        if let Some((node, _)) = nodes.iter().find(|(_, data)| !data.args().iter().all(exists)) {
            return Err(format!("an operand of {node} is not defined"));
        }
        if let Some((call, _)) = self.calls.iter().find(|(_, data)| !data.args.iter().all(exists)) {
            return Err(format!("an operand of {call} is not defined"));
        }
        let mut graph = Graph::without_nodes(active, inactive);
        graph.nodes = nodes;
        for index in 0..self.regions.len() {
            let data = self.regions.remove(&index);
            graph.regions.push(data.ok_or_else(|| format!("r{index} is missing"))?);
        }
        graph.places = self.places;
        graph.arrays = self.arrays;
        graph.accesses = self.accesses;
        graph.calls = self.calls;
        graph.blocks = PrimaryMap::new();
        for (items, end) in self.blocks {
            let block = graph.new_block();
            graph.blocks[block].items = items;
            graph.blocks[block].end = end;
        }
        Ok(graph)
    }
}

/// The line without a comment, which starts with `;` after a space. A `;` inside a word, such as
/// a file name, starts none.
fn without_comment(line: &str) -> &str {
    let starts = |&(index, _): &(usize, &str)| {
        line[..index].chars().next_back().is_none_or(char::is_whitespace)
    };
    line.match_indices(';').find(starts).map_or(line, |(index, _)| &line[..index])
}

fn id(prefix: &str, name: &str) -> Result<usize, String> {
    let index = name.strip_prefix(prefix).and_then(|digits| digits.parse().ok());
    index
        .filter(|&index: &usize| index < MAX_ID)
        .ok_or_else(|| format!("expected an id like `{prefix}0`, found `{name}`"))
}

fn node(name: &str) -> Result<Node, String> {
    id("v", name).map(Node::from_index)
}

fn block(name: &str) -> Result<Block, String> {
    id("b", name).map(Block::from_index)
}

fn region(name: &str) -> Result<Region, String> {
    id("r", name).map(Region::from_index)
}

fn array(name: &str) -> Result<Array, String> {
    id("a", name).map(Array::from_index)
}

fn access(name: &str) -> Result<Access, String> {
    id("i", name).map(Access::from_index)
}

/// The array of this kind; `rest` are the words after it.
fn array_data(kind: &str, rest: &[&str]) -> Result<ArrayData, String> {
    let of_nodes = || rest.iter().map(|name| node(name)).collect::<Result<Vec<_>, _>>();
    Ok(match (kind, rest) {
        ("constants", _) => {
            let bits = rest.iter().map(|word| Ok(number(word)?.to_bits()));
            ArrayData::Constants(bits.collect::<Result<_, String>>()?)
        }
        ("nodes", _) => ArrayData::Nodes(of_nodes()?),
        ("inputs", &[first, "count", count]) => {
            ArrayData::Inputs { first: integer(first)?, count: integer(count)? }
        }
        ("outputs", &[first, "count", count]) => {
            ArrayData::Outputs { first: integer(first)?, count: integer(count)? }
        }
        ("inputs" | "outputs", _) => return Err("expected `0 count 2`".into()),
        ("saved", [name]) => ArrayData::Saved(node(name)?),
        ("saved", _) => return Err("expected one node".into()),
        ("cells", &[number]) => ArrayData::Cells(count(number)? as u32),
        ("cells", _) => return Err("expected a number of cells".into()),
        _ => {
            let first = |name: &&str| if *name == "_" { Ok(None) } else { node(name).map(Some) };
            ArrayData::Sums(rest.iter().map(first).collect::<Result<_, _>>()?)
        }
    })
}

fn access_data(of: &str, base: &str, words: &[&str]) -> Result<AccessData, String> {
    let (mut strides, mut changes) = (SmallVec::new(), SmallVec::new());
    for word in words {
        if let Some((name, change)) = word.split_once("**") {
            changes.push((region(name)?, integer(change)?));
            continue;
        }
        let parts = word.split_once('*');
        let (name, stride) = parts.ok_or_else(|| format!("expected `r0*1`, found `{word}`"))?;
        strides.push((region(name)?, integer(stride)?));
    }
    Ok(AccessData { array: array(of)?, base: integer(base)?, strides, changes })
}

fn integer<T: core::str::FromStr>(word: &str) -> Result<T, String> {
    word.parse().map_err(|_| format!("expected an integer, found `{word}`"))
}

fn count(word: &str) -> Result<usize, String> {
    word.parse()
        .ok()
        .filter(|&n: &usize| n <= MAX_ID)
        .ok_or_else(|| format!("expected a number, found `{word}`"))
}

fn number(word: &str) -> Result<f64, String> {
    let nan = word.strip_prefix("nan:").and_then(|bits| u64::from_str_radix(bits, 16).ok());
    match nan {
        Some(bits) => Ok(f64::from_bits(bits)),
        None => word.parse().map_err(|_| format!("expected a number, found `{word}`")),
    }
}
