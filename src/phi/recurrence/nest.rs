//! Loops in loops: what the inner one makes of the state is an affine map, and so one
//! step of the outer one; only that has a form in the graph.
//!
//! The body is gone through once, in terms of the state of the outer loop. An inner loop
//! is gone through in terms of its own: values of the outer loop that it uses and leaves
//! as they are belong to that, too. A loop that does nothing but another one is that with
//! as many iterations as both have together.

use std::collections::{BTreeMap, BTreeSet};

use hashbrown::{HashMap, HashSet};

use super::body::Body;
use super::edit::Edit;
use super::emit::Emitter;
use super::form::{Affine, Base, CHANGES, Coefficient, Form, Forms, Rows};
use super::map::{self, Map};
use super::power::{System, Wanted, advanced};
use super::record::record;
use super::rest;
use super::rounded::ADD_UP;
use super::solve::{COMPARED, FEW, components, most_derived};
use crate::phi::pair::Pairs;
use crate::phi::rule::Applied;
use crate::ssa::{Def, Graph, Item, Node, Region};

/// A system of more numbers stays with its loops.
const MOST_STATES: usize = 4;

/// So many steps of a form are done in the time of one in the loops, that of its sweep included, as
/// kernels show of one and two numbers and of 35 to 900 iterations: those of a form wait for each
/// other, too.
const STEP: usize = 6;

/// A loop with the loops in it.
struct Nest {
    body: Body,
    times: usize,
    steps: Vec<Step>,
    /// What it begins with, and what comes out of it: φs, and what they are at the end.
    firsts: Vec<Node>,
    phis: Vec<(Node, Node)>,
    /// What is used in it.
    uses: BTreeSet<Node>,
    /// Whether it stands for two loops.
    is_joined: bool,
}

enum Step {
    Node(Node),
    Inner(Box<Nest>),
}

/// Puts a closed form in the place of `region` and the loops in it, if it has some and
/// all of them are affine.
pub(super) fn solve(edit: &mut Edit, region: Region) -> Option<Vec<Applied>> {
    if edit.is_gone(region) {
        return None;
    }
    let nest = Nest::of(edit, region).ok()?;
    let regions = nest.regions();
    if regions.len() == 1 && !nest.is_joined {
        return None;
    }
    let all = inner_regions(&edit.graph, region);
    let mut graph = core::mem::replace(&mut edit.graph, Graph::new(0, 0));
    let place = graph.regions[region].place;
    // Of a loop that stands for two none of them is the one around.
    let given = match nest.is_joined {
        true => Vec::new(),
        false => rest::given(edit, &mut graph, &nest.body),
    };
    let mut emitter = Emitter::new(&mut graph, place).with_measured(&edit.measured);
    rest::known(&mut emitter, &given);
    let outcome = attempt(edit, &nest, &all, &mut emitter);
    let nodes = outcome.as_ref().map_or(&[][..], |(nodes, _)| nodes);
    let given = rest::continued(&mut emitter, &given, nodes);
    let (items, required) = (emitter.items, emitter.required);
    edit.graph = graph;
    let (nodes, applied) = outcome.ok()?;
    edit.given.extend(given);
    edit.required.extend(required);
    edit.replace(region, items, nodes, true);
    edit.leave_out(all);
    Some(applied)
}

/// `region` and those in it.
fn inner_regions(graph: &Graph, region: Region) -> HashSet<Region> {
    let (mut all, mut pending) = (HashSet::new(), vec![region]);
    while let Some(region) = pending.pop() {
        if all.insert(region) {
            pending.extend(graph.regions_of(graph.regions[region].root));
        }
    }
    all
}

const GUARDS: &str = "a decision is made in it";

impl Nest {
    fn of(edit: &Edit, region: Region) -> Result<Nest, &'static str> {
        let body = Body::of(edit, region)?;
        if !body.guards.is_empty() || !body.finite.is_empty() {
            return Err(GUARDS);
        }
        if !edit.histories(region).is_empty() {
            return Err("its values in all iterations are used");
        }
        let graph = &edit.graph;
        // What nothing comes of is left out.
        let mut uses: BTreeSet<Node> = body.nexts.iter().chain(&body.values).copied().collect();
        let mut steps = Vec::new();
        for item in graph.blocks[graph.regions[region].root].items.iter().rev() {
            match *item {
                Item::Node(node) if uses.contains(&node) => {
                    let args = graph.nodes[node].args();
                    uses.extend(args.iter().map(|&arg| edit.resolved(arg)));
                    steps.push(Step::Node(node));
                }
                Item::Node(_) => {}
                Item::Region(inner) if edit.is_gone(inner) => {}
                Item::Region(inner) => {
                    let inner = Nest::of(edit, inner)?;
                    uses.extend(&inner.uses);
                    uses.extend(&inner.firsts);
                    steps.push(Step::Inner(Box::new(inner)));
                }
                Item::Guard { .. } | Item::Fill(_) | Item::Accumulate(..) => return Err(GUARDS),
            }
        }
        steps.reverse();
        let firsts = body.entries.iter().map(|&(_, first)| first).collect();
        let phis = graph.regions[region].phis.iter().copied().zip(body.values.iter().copied());
        let (times, phis) = (body.times as usize, phis.collect());
        let nest = Nest { body, times, steps, firsts, phis, uses, is_joined: false };
        Ok(nest.joined())
    }

    /// The loop in it in its place, with as many iterations as both have together, if it
    /// does nothing else.
    fn joined(self) -> Nest {
        let Some((inner, firsts, phis)) = self.only() else { return self };
        let times = self.times.saturating_mul(inner.times);
        let mut steps = Vec::new();
        let mut found = None;
        for step in self.steps {
            match step {
                Step::Inner(inner) => found = Some(inner),
                Step::Node(_) => steps.push(step),
            }
        }
        // What was computed before it is the same in all iterations.
        let Some(inner) = found else { return Nest { steps, ..self } };
        let inner = *inner;
        steps.extend(inner.steps);
        Nest { body: inner.body, times, steps, firsts, phis, uses: self.uses, is_joined: true }
    }

    /// The only loop in it, if that does all; with what it begins with and what comes out.
    #[allow(clippy::type_complexity)] // Parts of a nest.
    fn only(&self) -> Option<(&Nest, Vec<Node>, Vec<(Node, Node)>)> {
        let mut inner = self.steps.iter().filter_map(|step| match step {
            Step::Inner(inner) => Some(&**inner),
            Step::Node(_) => None,
        });
        let (Some(inner), None) = (inner.next(), inner.next()) else { return None };
        let size = self.firsts.len();
        if inner.firsts.len() != size || inner.body.has_regions {
            return None;
        }
        if inner.body.next_cones.iter().any(|cone| cone.changes) {
            return None;
        }
        // Of each number that the inner loop carries, the one that the outer loop does.
        let mut of_inner = vec![None; size];
        for (number, &next) in self.body.nexts.iter().enumerate() {
            let value = inner.phis.iter().find(|&&(phi, _)| phi == next)?.1;
            let own = inner.body.nexts.iter().position(|&other| other == value)?;
            let first = inner.firsts.get(own)?;
            if *first != self.body.entries.get(number)?.0 || of_inner[own].is_some() {
                return None;
            }
            of_inner[own] = Some(number);
        }
        // Nothing else depends on what it carries.
        let entries: HashSet<Node> = self.body.entries.iter().map(|&(phi, _)| phi).collect();
        if inner.uses.iter().any(|node| entries.contains(node)) {
            return None;
        }
        let firsts = of_inner.iter().map(|number| self.firsts.get((*number)?).copied());
        let firsts = firsts.collect::<Option<Vec<Node>>>()?;
        let phis = self.phis.iter().map(|&(phi, value)| {
            let own = self.body.nexts.iter().position(|&next| next == value)?;
            let of = of_inner.iter().position(|&number| number == Some(own))?;
            Some((phi, inner.body.nexts[of]))
        });
        let phis = phis.collect::<Option<Vec<(Node, Node)>>>()?;
        Some((inner, firsts, phis))
    }

    fn regions(&self) -> Vec<Region> {
        let inner = self.steps.iter().filter_map(|step| match step {
            Step::Inner(inner) => Some(inner.regions()),
            Step::Node(_) => None,
        });
        inner.flatten().chain([self.body.region]).collect()
    }

    /// How many steps it takes.
    fn cost(&self) -> usize {
        let cost = |step: &Step| match step {
            Step::Node(_) => 1,
            Step::Inner(inner) => inner.cost(),
        };
        let steps: usize = self.steps.iter().map(cost).fold(0, usize::saturating_add);
        self.times.saturating_mul(steps)
    }
}

type Solved = (Vec<(Node, Node)>, Vec<Applied>);

fn attempt(
    edit: &Edit,
    nest: &Nest,
    regions: &HashSet<Region>,
    emitter: &mut Emitter<'_>,
) -> Result<Solved, &'static str> {
    let entries = nest.body.entries.iter().enumerate();
    let states = entries.map(|(number, &(phi, _))| (phi, number)).collect();
    let mut forms = Forms::new(emitter, nest.body.region, nest.times, states);
    let mut applied = Vec::new();
    let rows = rows(edit, &mut forms, nest, &mut applied)?;
    if !nest.is_joined && !forms.emitter.has_told() {
        return Err("the coefficients of the loops in it are known");
    }
    let steps = nest.cost();
    let steps = if edit.all_forms { steps.max(COMPARED) } else { steps };
    let most = FEW.saturating_add(steps);
    let most_derived = most_derived(edit, nest.body.region, STEP.saturating_mul(steps));
    let mut at: HashMap<usize, Node> = HashMap::new();
    for mut system in systems(rows)? {
        let zero = forms.emitter.constant(0.0);
        let first = |state: &usize| nest.firsts.get(*state).copied().unwrap_or(zero);
        system.firsts = system.states.iter().map(first).collect();
        let is_known = |coefficient: &Coefficient| match coefficient {
            Coefficient::Fixed(pair) => forms.number(*pair).is_some(),
            Coefficient::Table(_) => true,
            Coefficient::Polynomial(_) => false,
        };
        let mut coefficients = system.rows.iter().flat_map(|row| row.values());
        if nest.is_joined && coefficients.all(is_known) {
            return Err("its coefficients are known");
        }
        applied.push(record(&forms, &nest.body, &system));
        let ends: BTreeSet<usize> = system.states.iter().copied().collect();
        let goal = Wanted { states: &ends, most: most_derived };
        let after = advanced(&mut forms, &system, nest.times, &goal)?;
        at.extend(system.states.iter().copied().zip(after));
    }
    let mut nodes = Vec::new();
    for &(phi, value) in &nest.phis {
        let state = nest.body.nexts.iter().position(|&next| next == value);
        let node = match (state, forms.find(value)) {
            (Some(state), _) => at.get(&state).copied(),
            (None, Form::Fixed(node)) => Some(node),
            _ => None,
        };
        nodes.push((phi, node.ok_or("it passes on what it does not carry")?));
    }
    let emitter = forms.emitter;
    let own = emitter.items.len().saturating_sub(emitter.derived);
    if own > most || emitter.derived > most_derived {
        return Err("its closed form would cost more than the loop");
    }
    match is_outside(emitter, regions, &nodes) {
        true => Ok((nodes, applied)),
        false => Err("it depends on what changes in it"),
    }
}

/// Whether nothing that was emitted depends on anything in the loops.
fn is_outside(emitter: &Emitter<'_>, regions: &HashSet<Region>, nodes: &[(Node, Node)]) -> bool {
    let graph = &*emitter.graph;
    let mut inside: HashSet<Node> = HashSet::new();
    for &region in regions {
        inside.extend(&graph.regions[region].phis);
        inside.extend(graph.entries(region).iter().map(|entry| entry.phi));
        for item in &graph.blocks[graph.regions[region].root].items {
            if let Item::Node(node) = *item {
                inside.insert(node);
            }
        }
    }
    let is_outside = |node: Node| match graph.nodes[node].def {
        Def::Iteration(region) => !regions.contains(&region),
        Def::Element(access) => {
            let strides = &graph.accesses[access].strides;
            !inside.contains(&node) && strides.iter().all(|(region, _)| !regions.contains(region))
        }
        _ => !inside.contains(&node),
    };
    let is_item_outside = |item: &Item| match *item {
        Item::Node(node) => {
            is_outside(node) && graph.nodes[node].args().iter().all(|&arg| is_outside(arg))
        }
        Item::Guard { condition, .. } => is_outside(condition),
        _ => false,
    };
    emitter.items.iter().all(is_item_outside) && nodes.iter().all(|&(_, node)| is_outside(node))
}

/// What an iteration makes of each number that `nest` carries.
fn rows(
    edit: &Edit,
    forms: &mut Forms<'_, '_>,
    nest: &Nest,
    applied: &mut Vec<Applied>,
) -> Result<Rows, &'static str> {
    for step in &nest.steps {
        match step {
            Step::Node(node) => forms.learn(*node, |node| edit.resolved(node)),
            Step::Inner(inner) => go_through(edit, forms, inner, applied)?,
        }
    }
    let mut rows = Rows::new();
    for (number, &next) in nest.body.nexts.iter().enumerate() {
        rows.insert(number, forms.row(next)?);
    }
    // What only an outer loop changes.
    let one = forms.emitter.number(1.0, 0.0);
    for other in rows.len()..forms.counter() {
        rows.insert(other, [(Base::State(other), Coefficient::Fixed(one))].into());
    }
    if !forms.unfit_for_lines(&rows).is_empty() {
        return Err(ADD_UP);
    }
    forms.spread(&mut rows);
    forms.count(&mut rows);
    Ok(rows)
}

/// The numbers of `rows` in groups that depend on each other.
fn systems(rows: Rows) -> Result<Vec<System>, &'static str> {
    let system = |states: Vec<usize>| match states.len() > MOST_STATES {
        true => Err("too many numbers depend on each other"),
        false => {
            let rows = states.iter().map(|state| rows[state].clone()).collect();
            Ok(System { rows, firsts: Vec::new(), states })
        }
    };
    components(&rows).into_iter().map(system).collect()
}

/// Finds the forms of what comes out of a loop in the loop of `outer`.
fn go_through(
    edit: &Edit,
    outer: &mut Forms<'_, '_>,
    nest: &Nest,
    applied: &mut Vec<Applied>,
) -> Result<(), &'static str> {
    let mut firsts: Vec<Affine> = Vec::new();
    let (mut states, mut known) = (HashMap::new(), HashMap::new());
    for (&(phi, _), &first) in nest.body.entries.iter().zip(&nest.firsts) {
        states.insert(phi, firsts.len());
        let form = outer.find(first);
        firsts.push(outer.affine(&form)?);
    }
    for &node in nest.uses.iter().filter(|&&node| !nest.body.is_inside(node)) {
        match outer.find(node) {
            Form::Fixed(other) if other == node => {}
            Form::Affine(form) => {
                states.insert(node, firsts.len());
                firsts.push(form);
            }
            Form::Table(_) => {
                known.insert(node, Form::Other(CHANGES));
            }
            form => {
                known.insert(node, form);
            }
        }
    }
    let own = nest.body.entries.len();
    let mut forms = Forms::new(&mut *outer.emitter, nest.body.region, nest.times, states);
    forms.known = known;
    let rows = rows(edit, &mut forms, nest, applied)?;
    let mut maps: Vec<(Vec<usize>, Map)> = Vec::new();
    for mut system in systems(rows)? {
        let zero = forms.emitter.constant(0.0);
        let first = |state: &usize| nest.firsts.get(*state).copied().unwrap_or(zero);
        system.firsts = system.states.iter().map(first).collect();
        if system.states.iter().any(|&state| state < own) {
            applied.push(record(&forms, &nest.body, &system));
        }
        forms.require_range_of_steps(&system)?;
        let map = map::after(forms.emitter, &system, nest.times).ok_or(CHANGES)?;
        maps.push((system.states, map));
    }
    drop(forms);
    for &(phi, value) in &nest.phis {
        let state = nest.body.nexts.iter().position(|&next| next == value);
        let form = match state {
            Some(state) => mapped(outer, &firsts, &maps, state)?,
            None => Form::Other("it depends on the last iteration of a loop in it"),
        };
        outer.known.insert(phi, form);
    }
    Ok(())
}

/// Number `state` behind a loop that these `maps` stand for.
fn mapped(
    outer: &mut Forms<'_, '_>,
    firsts: &[Affine],
    maps: &[(Vec<usize>, Map)],
    state: usize,
) -> Result<Form, &'static str> {
    let mut all: Form = Form::Affine(BTreeMap::new());
    for (states, map) in maps {
        let Some(row) = states.iter().position(|&other| other == state) else { continue };
        for (other, power) in states.iter().zip(&map.powers[row]) {
            // Without a first value it is the number of the iteration, from 0.
            let (Some(power), Some(first)) = (power, firsts.get(*other)) else { continue };
            let part = outer.scaled(first.clone(), &Coefficient::Fixed(*power))?;
            all = outer.sum(&all, &part)?;
        }
        if let Some(added) = map.added[row] {
            let one = outer.emitter.constant(1.0);
            let part: Affine = [(Base::Node(one), Coefficient::Fixed(added))].into();
            all = outer.sum(&all, &Form::Affine(part))?;
        }
    }
    Ok(all)
}
