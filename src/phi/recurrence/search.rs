//! Loops that are left by a decision on what they carry: behind them that has the
//! closed form at the number of iterations, and the loop only searches for it.
//!
//! The loop stays as it is, with its comparisons, so the number is the one that the
//! program finds. But it is a number, and has no derivative: neither has the loop, so
//! nothing of its iterations is kept and no sweep goes through them.
//!
//! A φ behind the loop is, at each exit, what is carried into that iteration or what
//! would be carried out of it (F2 makes one form of these): it is the form after as
//! many iterations as came before, or one more. `ways` finds out which.

use std::collections::BTreeSet;

use hashbrown::HashMap;

use super::MOST_STATES;
use super::doubling::advanced_by;
use super::edit::Edit;
use super::emit::Emitter;
use super::form::{Affine, Base, CHANGES, Coefficient, Form, Forms, Rows};
use super::power::{System, Wanted, advanced};
use super::record::record_after;
use super::rounded::ADD_UP;
use super::solve::components;
use super::ways::Ways;
use crate::entity::Array;
use crate::op::Op;
use crate::phi::pair::Pairs;
use crate::phi::rule::{Applied, Rule};
use crate::ssa::{Block, Def, End, Graph, Item, Nest, Node, NodeData, Region, swept};

/// A graph in which nothing but numbers comes out of a loop.
pub(super) struct Found {
    pub(super) edit: Edit,
    pub(super) applied: Vec<Applied>,
    /// The blocks where the loop may end, if it finds out how often it is gone through.
    pub(super) ends: Vec<Block>,
}

/// What is known of a graph before its loops are looked at.
pub(super) struct Outlook {
    edit: Edit,
    /// The nodes through which derivatives pass.
    swept: Array<Node, bool>,
    /// The steps of each loop through which derivatives pass, in all its iterations.
    weights: Array<Region, u64>,
}

impl Outlook {
    pub(super) fn of(graph: &Graph) -> Outlook {
        let (nest, swept) = (Nest::of(graph), swept(graph));
        let mut weights: Array<Region, u64> = Array::filled(0, graph.regions.len());
        let steps = swept.iter().filter(|(_, swept)| **swept).map(|(node, _)| node);
        for node in steps.filter(|&node| matches!(graph.nodes[node].def, Def::Apply(..))) {
            let (mut around, mut times) = (nest.node_loop(node), 1u64);
            while let Some(region) = around {
                let bound = graph.regions[region].cycle.as_ref().map_or(1, |cycle| cycle.bound);
                times = times.saturating_mul(u64::from(bound));
                weights[region] = weights[region].saturating_add(times);
                around = nest.loop_around(region);
            }
        }
        Outlook { edit: Edit::of(graph), swept, weights }
    }

    /// The numbers of the φs of `region` through which derivatives pass; or why they have
    /// no closed form behind it, as far as that shows at a glance.
    pub(super) fn wanted(&self, region: Region) -> Result<Vec<usize>, &'static str> {
        let (edit, swept) = (&self.edit, &self.swept);
        let graph = &edit.graph;
        let phis = &graph.regions[region].phis;
        let wanted: Vec<usize> = (0..phis.len()).filter(|&number| swept[phis[number]]).collect();
        if wanted.is_empty() {
            return Ok(wanted);
        }
        if edit.histories(region).iter().any(|past| swept[past.element]) {
            return Err("its values in all iterations are used");
        }
        if 2 * self.weights[region] < LEAST {
            return Err(COSTS);
        }
        let ways = Ways::of(edit, region)?;
        if ways.is_idle(graph) {
            // It has been tried as a recurrence, and is no search.
            return Ok(Vec::new());
        }
        let goals = ways.ends().flat_map(|leaf| wanted.iter().map(|&n| leaf.values[n])).collect();
        let (needed, _) = ways.closure(edit, graph, goals);
        ways.may_be_affine(graph, needed.into_iter().filter(|&node| swept[node]))?;
        Ok(wanted)
    }
}

/// No closed form has fewer steps.
const LEAST: u64 = 16;

/// What is computed in pairs has at most so many times as many steps as derivatives pass
/// through in the loop.
const PAIRS: u64 = 4;

const COSTS: &str = "its closed form would cost more than its sweep";

/// Puts closed forms behind `region` in place of its φs of the numbers `wanted`; says
/// why if that is not possible or does not pay.
pub(super) fn search(
    graph: &Graph,
    outlook: &Outlook,
    region: Region,
    wanted: &[usize],
) -> Result<Found, &'static str> {
    let mut why = "nothing of it has a closed form";
    for eliminates in [true, false] {
        let mut edit = Edit::of(graph);
        let ways = Ways::of(&edit, region)?;
        let mut graph = core::mem::replace(&mut edit.graph, Graph::new(0, 0));
        let place = graph.regions[region].place;
        let emitter = Emitter::new(&mut graph, place).with_measured(&edit.measured);
        let most = usize::try_from(outlook.weights[region] / 2).unwrap_or(usize::MAX);
        let mut attempt = Attempt { edit: &edit, ways: &ways, wanted, first: None, most };
        let made = attempt.run(emitter, eliminates);
        edit.graph = graph;
        match made {
            Ok(made) => {
                // Of a loop that stays its sweep is saved, and what that needs is not kept;
                // what is computed in pairs has no sweep, and does many things at once.
                if made.cost(&edit.graph) > PAIRS * outlook.weights[region] {
                    return Err(COSTS);
                }
                let Made { items, nodes, required, applied } = made;
                edit.required.extend(required);
                edit.insert_after(region, items, nodes);
                let ends = match ways.is_counted(&edit.graph) {
                    true => Vec::new(),
                    false => ways.ends().map(|leaf| leaf.block).collect(),
                };
                return Ok(Found { edit, applied, ends });
            }
            // What the second attempt says is about the loop as it is.
            Err(reason) => why = reason,
        }
    }
    Err(why)
}

/// What comes behind the loop.
struct Made {
    items: Vec<Item>,
    nodes: Vec<(Node, Node)>,
    required: Vec<(Node, Option<Node>)>,
    applied: Vec<Applied>,
}

impl Made {
    /// The number of steps at most.
    fn cost(&self, graph: &Graph) -> u64 {
        let cost = |item: &Item| match *item {
            Item::Region(region) => {
                let data = &graph.regions[region];
                let steps = graph.blocks[data.root].items.len() as u64;
                steps * data.cycle.as_ref().map_or(1, |cycle| u64::from(cycle.bound))
            }
            _ => 1,
        };
        self.items.iter().map(cost).sum()
    }
}

/// How many steps are made.
#[derive(Clone, Copy)]
enum Count {
    Known(u32),
    /// So many as the loop has found.
    Found(Node),
}

/// A φ behind the loop.
struct Output {
    node: Node,
    /// What it is of the states after the number of iterations.
    form: Affine,
    /// For each end of the loop how many iterations are counted there beyond those
    /// before, if it is that form there.
    offsets: Vec<Option<u32>>,
    /// What it is at the other ends.
    outside: Option<Node>,
}

struct Attempt<'a> {
    edit: &'a Edit,
    ways: &'a Ways,
    /// The numbers of the φs.
    wanted: &'a [usize],
    /// What systems may cost with their derivatives.
    most: usize,
    /// The states after the first iteration, if that is gone through by itself.
    first: Option<HashMap<usize, Node>>,
}

impl Attempt<'_> {
    fn run(&mut self, emitter: Emitter<'_>, eliminates: bool) -> Result<Made, &'static str> {
        let (edit, ways) = (self.edit, self.ways);
        let mut emitter = emitter;
        let goals = ways.ends().flat_map(|leaf| self.wanted.iter().map(|&n| leaf.values[n]));
        let (needed, states) = ways.closure(edit, emitter.graph, goals.collect());
        let dependent = match eliminates {
            true => ways.dependent(edit, &mut emitter, &states),
            false => Vec::new(),
        };
        if eliminates && dependent.is_empty() {
            return Err("nothing of what it carries follows from the rest");
        }
        let kept: Vec<usize> =
            states.iter().copied().filter(|s| dependent.iter().all(|(d, _)| d != s)).collect();
        let mut first = HashMap::new();
        if eliminates {
            first = ways.first(edit, &mut emitter, &kept)?;
        }
        let numbers = ways.entries.iter().enumerate();
        let numbered = numbers.map(|(number, &(phi, _))| (phi, number)).collect();
        let mut forms = Forms::new(&mut emitter, ways.region, ways.bound as usize, numbered);
        for (state, form) in dependent {
            forms.known.insert(ways.entries[state].0, form);
        }
        ways.learn(edit, &mut forms, |node| needed.contains(&node));
        let mut rows = Rows::new();
        for &state in &kept {
            for leaf in ways.leaves.iter().filter(|leaf| leaf.again.goes_on()) {
                let row = forms.row(leaf.nexts[state])?;
                match rows.get(&state) {
                    None => _ = rows.insert(state, row),
                    Some(other) if is_same(other, &row) => {}
                    Some(_) => return Err("its ways carry different forms on"),
                }
            }
        }
        self.first = eliminates.then_some(first);
        let mut outputs = Vec::new();
        for &number in self.wanted {
            outputs.push(self.output(&mut forms, number, &states)?);
        }
        self.finish(forms, rows, outputs)
    }

    /// What φ `number` of the loop is.
    fn output(
        &self,
        forms: &mut Forms<'_, '_>,
        number: usize,
        states: &BTreeSet<usize>,
    ) -> Result<Output, &'static str> {
        let ways = self.ways;
        let mut outside = None;
        let mut values: Vec<Option<(Node, Affine)>> = Vec::new();
        for leaf in ways.ends() {
            let value = leaf.values[number];
            match forms.find(value) {
                Form::Fixed(node) => {
                    if *outside.get_or_insert(node) != node {
                        return Err("what comes out of it depends on how it is left");
                    }
                    values.push(None);
                }
                form => values.push(Some((value, forms.affine(&form)?))),
            }
        }
        let node = forms.emitter.graph.regions[ways.region].phis[number];
        for &state in states {
            let unit = forms.row(ways.entries[state].0)?;
            let Some(next_node) = ways.common_next(state) else { continue };
            let next = forms.row(next_node)?;
            // What is eliminated follows from the rest only behind the first iteration, and
            // the loop may be left in it: there forms say nothing, but nodes do.
            let offset = |(node, value): &(Node, Affine)| match self.first {
                Some(_) => (*node == next_node).then_some(1),
                None if is_same(value, &next) => Some(1),
                None => is_same(value, &unit).then_some(0),
            };
            let offsets: Vec<Option<u32>> =
                values.iter().map(|value| value.as_ref().and_then(&offset)).collect();
            if offsets
                .iter()
                .zip(&values)
                .all(|(offset, value)| offset.is_some() == value.is_some())
            {
                return Ok(Output { node, form: unit, offsets, outside });
            }
        }
        let mut known = values.iter().flatten();
        let (_, form) = known.next().cloned().ok_or("what comes out of it is not carried")?;
        if self.first.is_some() || !known.all(|(_, other)| is_same(other, &form)) {
            return Err("what comes out of it depends on how it is left");
        }
        let offsets = values.iter().map(|value| value.as_ref().map(|_| 0)).collect();
        Ok(Output { node, form, offsets, outside })
    }

    fn finish(
        &self,
        mut forms: Forms<'_, '_>,
        mut rows: Rows,
        outputs: Vec<Output>,
    ) -> Result<Made, &'static str> {
        let ways = self.ways;
        let counter = forms.counter();
        if !forms.unfit_for_lines(&rows).is_empty() {
            return Err(ADD_UP);
        }
        if self.first.is_none() {
            forms.spread(&mut rows);
        }
        forms.count(&mut rows);
        let changes = rows.values().flat_map(|row| row.values());
        let changes = changes.into_iter().any(|c| !matches!(c, Coefficient::Fixed(_)));
        let is_static = ways.is_counted(forms.emitter.graph);
        let mut systems = Vec::new();
        // Before the first step that counts the iteration number is 1 if one has been made.
        let number = forms.emitter.constant(f64::from(u8::from(self.first.is_some())));
        for states in components(&rows) {
            if states.len() > MOST_STATES {
                return Err("too many numbers depend on each other");
            }
            let first = |&state: &usize| match &self.first {
                // Before the first step products with it are zero.
                _ if state >= counter => number,
                Some(first) => first[&state],
                None => ways.entries[state].1,
            };
            let firsts = states.iter().map(first).collect();
            let rows = states.iter().map(|state| rows[state].clone()).collect();
            systems.push(System { states, rows, firsts });
        }
        let mut groups: Vec<(Vec<Option<u32>>, Vec<Output>)> = Vec::new();
        for output in outputs {
            let fits = |of: &Vec<Option<u32>>| {
                of.iter().zip(&output.offsets).all(|(a, b)| a.is_none() || b.is_none() || a == b)
            };
            match groups.iter_mut().find(|(offsets, _)| fits(offsets)) {
                Some((offsets, members)) => {
                    offsets.iter_mut().zip(&output.offsets).for_each(|(a, b)| *a = a.or(*b));
                    members.push(output);
                }
                None => groups.push((output.offsets.clone(), vec![output])),
            }
        }
        let peeled = u32::from(self.first.is_some());
        let mut applied = Vec::new();
        let mut nodes = Vec::new();
        for (offsets, members) in groups {
            let more: BTreeSet<u32> = offsets.iter().flatten().map(|&more| more - peeled).collect();
            let same = more.first().copied().filter(|_| more.len() == 1);
            let mut at: HashMap<usize, Node> = HashMap::new();
            let count = match same.filter(|_| is_static) {
                Some(_) if changes && peeled > 0 => return Err(CHANGES),
                Some(more) => Count::Known(ways.bound - 1 + more),
                None if changes => return Err(CHANGES),
                None => Count::Found(ways.count(forms.emitter.graph, &offsets, peeled)),
            };
            let bases = members.iter().flat_map(|output| output.form.keys());
            let ends: BTreeSet<usize> = bases
                .filter_map(|base| match base {
                    Base::State(state) => Some(*state),
                    Base::Node(_) => None,
                })
                .collect();
            for system in &systems {
                let needs = |output: &Output| {
                    let is_its = |base: &Base| matches!(base, Base::State(state) if system.states.contains(state));
                    output.form.keys().any(is_its)
                };
                if !members.iter().any(needs) {
                    continue;
                }
                let goal = Wanted { states: &ends, most: self.most };
                let after = match count {
                    Count::Known(times) => {
                        applied.push(record_after(&forms, ways.region, &times.to_string(), system));
                        advanced(&mut forms, system, times as usize, &goal)?
                    }
                    Count::Found(count) => {
                        applied.push(record_after(&forms, ways.region, "k", system));
                        forms.require_range(system)?;
                        let after = advanced_by(&mut forms, system, count, ways.bound, &goal)?;
                        after.iter().for_each(|&node| forms.emitter.require_finite(node));
                        after
                    }
                };
                at.extend(system.states.iter().copied().zip(after));
            }
            for output in members {
                let mut value = combined(&mut forms, &output.form, &at)?;
                if let (Some(outside), true) =
                    (output.outside, output.offsets.iter().any(Option::is_none))
                {
                    let is_it = ways.indicator(forms.emitter.graph, &output.offsets);
                    value = forms.emitter.apply(Op::Select, &[is_it, value, outside]);
                }
                nodes.push((output.node, value));
            }
        }
        if forms.emitter.overflows {
            return Err("the powers of its coefficients are not finite");
        }
        let at = applied.first().and_then(|first: &Applied| first.at.clone());
        let form = match is_static {
            true => "φ_L'(p, d) = d after the last iteration: the loop itself only decides",
            false => {
                "φ_L'(p, b1, ..) = what is carried after k iterations, at whichever end the \
                 loop is left: it only searches for k"
            }
        };
        applied.push(Applied { rule: Rule::F5, at, form: form.to_owned() });
        let Emitter { graph, items, required, .. } = forms.emitter;
        let items = live(graph, core::mem::take(items), &nodes);
        Ok(Made { items, nodes, required: core::mem::take(required), applied })
    }
}

/// The number that `form` is of these states.
fn combined(
    forms: &mut Forms<'_, '_>,
    form: &Affine,
    at: &HashMap<usize, Node>,
) -> Result<Node, &'static str> {
    let emitter = &mut *forms.emitter;
    let mut sum = None;
    for (base, coefficient) in form {
        let Coefficient::Fixed(pair) = coefficient else { return Err(CHANGES) };
        let node = match base {
            Base::State(state) => *at.get(state).ok_or("it is not carried")?,
            Base::Node(node) => *node,
        };
        let product = emitter.product(*pair, node.into());
        sum = emitter.sum(sum, Some(product));
    }
    Ok(match sum {
        Some(sum) => emitter.rounded(sum),
        None => emitter.constant(0.0),
    })
}

/// Whether two forms are made of the same.
fn is_same(a: &Affine, b: &Affine) -> bool {
    let same = |(a, b): (&Coefficient, &Coefficient)| match (a, b) {
        (Coefficient::Fixed(a), Coefficient::Fixed(b)) => a == b,
        (Coefficient::Table(a), Coefficient::Table(b)) => a == b,
        (Coefficient::Polynomial(a), Coefficient::Polynomial(b)) => a == b,
        _ => false,
    };
    a.keys().eq(b.keys()) && a.values().zip(b.values()).all(same)
}

/// The `items` that `nodes`, guards and loops need.
fn live(graph: &Graph, items: Vec<Item>, nodes: &[(Node, Node)]) -> Vec<Item> {
    let mut live: BTreeSet<Node> = nodes.iter().map(|&(_, node)| node).collect();
    let need = |live: &mut BTreeSet<Node>, data: &NodeData| live.extend(data.args());
    let mut kept: Vec<Item> = Vec::new();
    for item in items.into_iter().rev() {
        match item {
            Item::Node(node) if !live.contains(&node) => continue,
            Item::Node(node) => need(&mut live, &graph.nodes[node]),
            Item::Guard { condition, .. } => _ = live.insert(condition),
            Item::Region(region) => {
                live.extend(graph.entries(region).iter().map(|entry| entry.first));
                let block = &graph.blocks[graph.regions[region].root];
                for item in &block.items {
                    if let Item::Node(node) = *item {
                        need(&mut live, &graph.nodes[node]);
                    }
                }
                if let End::Return(values) = &block.end {
                    live.extend(values);
                }
            }
            Item::Fill(_) | Item::Accumulate(..) => {}
        }
        kept.push(item);
    }
    kept.reverse();
    kept
}
