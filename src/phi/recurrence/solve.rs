//! One loop and its closed form.

use std::collections::{BTreeMap, BTreeSet};

use hashbrown::{HashMap, HashSet};

use super::MOST_STATES;
use super::body::{Body, Cone, LONG};
use super::edit::Edit;
use super::emit::Emitter;
use super::form::{Affine, Base, Form, Forms, Rows};
use super::power::{self, System, advanced};
use super::powers::{POWERS, Powers};
use super::record::{place, record};
use super::rest::{self, is_rest};
use super::rounded::ADD_UP;
use crate::op::Op;
use crate::phi::pair::Pairs;
use crate::phi::rule::{Applied, Rule};
use crate::ssa::{Access, AccessData, Def, Graph, Item, Node, Region, SeriesData};

/// So many steps are always worth a loop.
pub(super) const FEW: usize = 32;
/// Forms that are only compared with their loops may take the steps of such loops.
pub(super) const COMPARED: usize = 1 << 12;

/// How many steps may compute values with their derivatives in the place of `region`, in whose time
/// so many are done: a few in any case, half of them backwards, but in another loop few steps are
/// done so often that they count.
pub(super) fn most_derived(edit: &Edit, region: Region, time: usize) -> usize {
    let few = if edit.is_inner(region) { 0 } else { 2 * FEW };
    time.saturating_add(few)
}

/// From so many iterations what they came to may be wanted: each is gone through
/// by steps of its own.
const MOST_PASTS: usize = 16;

/// Replaces those φs of `region` that have a closed form; says why if none has.
pub(super) fn solve(edit: &mut Edit, region: Region) -> Result<Vec<Applied>, &'static str> {
    let body = Body::of(edit, region)?;
    let mut plan = Plan::of(edit, &body);
    let mut graph = core::mem::replace(&mut edit.graph, Graph::new(0, 0));
    let place = graph.regions[region].place;
    let given = rest::given(edit, &mut graph, &body);
    // The graph has what was there, and nodes that no block has: what is made
    // and then given up is in no order.
    let outcome = loop {
        let mut emitter = Emitter::new(&mut graph, place).with_measured(&edit.measured);
        rest::known(&mut emitter, &given);
        match attempt(edit, &body, &plan, &mut emitter) {
            Ok(attempt) => {
                let given = rest::continued(&mut emitter, &given, &attempt.nodes);
                break Ok((attempt, emitter.items, emitter.required, given));
            }
            Err(Failure { why, states }) => {
                if states.is_empty() || !plan.give_up(&states, why) {
                    rest::continued(&mut emitter, &given, &[]);
                    break Err(why);
                }
            }
        }
    };
    edit.graph = graph;
    let (attempt, items, required, given) = outcome.map_err(|why| plan.why.unwrap_or(why))?;
    edit.given.extend(given);
    edit.required.extend(required);
    edit.replace(region, items, attempt.nodes, plan.whole());
    Ok(attempt.applied)
}

/// What is to be replaced.
struct Plan {
    wanted: Vec<Wanted>,
    /// The states that the loop must go on computing.
    kept: BTreeSet<usize>,
    /// Whether something else keeps the loop.
    stays: bool,
    why: Option<&'static str>,
    /// The nodes that guards depend on.
    decisive: HashSet<Node>,
}

/// Something that comes out of the loop.
struct Wanted {
    /// A φ, or an element of a history.
    node: Node,
    /// What it is at the end of its iteration.
    value: Node,
    iteration: u32,
    cone: Cone,
    closure: BTreeSet<usize>,
    is_wanted: bool,
}

impl Plan {
    fn of(edit: &Edit, body: &Body) -> Plan {
        let mut plan = Plan {
            wanted: Vec::new(),
            kept: BTreeSet::new(),
            stays: false,
            why: None,
            decisive: HashSet::new(),
        };
        let keep = |plan: &mut Plan, why| {
            plan.stays = true;
            plan.why = plan.why.or(Some(why));
        };
        let mut outputs = Vec::new();
        let iterations = edit.histories(body.region).iter().filter_map(|past| past.iteration);
        let few_pasts = iterations.collect::<BTreeSet<u32>>().len() <= MOST_PASTS;
        for past in edit.histories(body.region) {
            let node = edit.resolved(past.node);
            match past.iteration.filter(|_| few_pasts) {
                Some(iteration) => outputs.push((past.element, node, iteration)),
                None => {
                    plan.kept.extend(body.closure(&body.cone(edit, node)).0);
                    keep(&mut plan, "its values in all iterations are used");
                }
            }
        }
        let phis = &edit.graph.regions[body.region].phis;
        let values = phis.iter().zip(&body.values);
        outputs.extend(values.map(|(&phi, &value)| (phi, value, body.times - 1)));
        for &(condition, _) in &body.guards {
            let cone = body.cone(edit, condition);
            let (closure, is_inner) = body.closure(&cone);
            if cone.changes || is_inner || !closure.is_empty() {
                plan.kept.extend(closure);
                keep(
                    &mut plan,
                    match watches(&edit.graph, condition) {
                        true => {
                            "the closed form of a loop in it may overflow, and its state decides"
                        }
                        false => "a decision depends on its state",
                    },
                );
            }
            plan.decisive.extend(cone.nodes);
        }
        if body.has_regions {
            plan.kept.extend(0..body.entries.len());
            keep(&mut plan, "there are loops or branches in it");
        }
        for (node, value, iteration) in outputs {
            let cone = body.cone(edit, value);
            let (closure, is_inner) = body.closure(&cone);
            let is_wanted = !is_inner;
            plan.wanted.push(Wanted { node, value, iteration, cone, closure, is_wanted });
        }
        plan.settle();
        plan
    }

    /// What depends on kept states is kept: the loop computes it anyway.
    fn settle(&mut self) {
        loop {
            let before = self.kept.len();
            for wanted in &mut self.wanted {
                wanted.is_wanted &= wanted.closure.is_disjoint(&self.kept);
                if !wanted.is_wanted {
                    self.kept.extend(&wanted.closure);
                }
            }
            if self.kept.len() == before {
                return;
            }
        }
    }

    /// Leaves `states` to the loop; whether there is still something to do.
    fn give_up(&mut self, states: &BTreeSet<usize>, why: &'static str) -> bool {
        self.why = Some(why);
        self.kept.extend(states);
        self.settle();
        self.wanted.iter().any(|wanted| wanted.is_wanted)
    }

    /// Whether nothing of the loop is left.
    fn whole(&self) -> bool {
        !self.stays && self.wanted.iter().all(|wanted| wanted.is_wanted)
    }
}

struct Failure {
    why: &'static str,
    /// The states that have no closed form; if there are none, nothing has.
    states: BTreeSet<usize>,
}

impl From<&'static str> for Failure {
    fn from(why: &'static str) -> Self {
        Failure { why, states: BTreeSet::new() }
    }
}

struct Attempt {
    /// What comes out of the loop, and what takes its place.
    nodes: Vec<(Node, Node)>,
    applied: Vec<Applied>,
}

fn attempt(
    edit: &Edit,
    body: &Body,
    plan: &Plan,
    emitter: &mut Emitter<'_>,
) -> Result<Attempt, Failure> {
    let wanted: Vec<&Wanted> = plan.wanted.iter().filter(|wanted| wanted.is_wanted).collect();
    if wanted.is_empty() && !plan.whole() {
        return Err(Failure::from("nothing of it has a closed form"));
    }
    let states: BTreeSet<usize> = wanted.iter().flat_map(|phi| &phi.closure).copied().collect();
    let numbers = body.entries.iter().enumerate();
    let numbered = numbers.map(|(number, &(phi, _))| (phi, number)).collect();
    let mut forms = Forms::new(emitter, body.region, body.times as usize, numbered);
    forms.powers = Some(Powers::default());
    let mut needed: HashSet<Node> = HashSet::new();
    for &state in &states {
        needed.extend(&body.next_cones[state].nodes);
    }
    if plan.whole() {
        needed.extend(&plan.decisive);
    }
    for &node in body.steps.iter().filter(|node| needed.contains(*node)) {
        forms.learn(node, |node| edit.resolved(node));
    }
    let mut rows = Rows::new();
    let mut failed: Option<Failure> = None;
    for &state in &states {
        match forms.row(body.nexts[state]) {
            Ok(row) => {
                rows.insert(state, row);
            }
            Err(why) => {
                failed.get_or_insert_with(|| Failure::from(why)).states.insert(state);
            }
        }
    }
    if let Some(failed) = failed {
        return Err(failed);
    }
    let is_end =
        |wanted: &&Wanted| wanted.iteration == body.times - 1 && body.nexts.contains(&wanted.value);
    forms.turn(&mut rows, wanted.iter().all(is_end))?;
    forms.add_powers(&mut rows);
    let rounded = forms.unfit_for_lines(&rows);
    if !rounded.is_empty() {
        return Err(Failure { why: ADD_UP, states: rounded });
    }
    forms.spread(&mut rows);
    forms.count(&mut rows);
    let one = forms.emitter.constant(1.0);
    let counter = forms.counter();
    let mut applied = Vec::new();
    let mut systems = Vec::new();
    for states in components(&rows) {
        if states.len() > MOST_STATES {
            let why = "too many numbers depend on each other";
            return Err(Failure { why, states: owned(&states, counter) });
        }
        let zero = forms.emitter.constant(0.0);
        let first = |&state: &usize| match body.entries.get(state) {
            Some(&(_, first)) => first,
            None if state >= POWERS => one,
            None => zero,
        };
        let system = System {
            rows: states.iter().map(|state| rows[state].clone()).collect(),
            firsts: states.iter().map(first).collect(),
            states,
        };
        applied.push(record(&forms, body, &system));
        systems.push(system);
    }
    if plan.whole() {
        for &(condition, expect) in &body.guards {
            let Form::Fixed(condition) = forms.find(condition) else {
                return Err(Failure::from("a decision depends on its state"));
            };
            forms.emitter.items.push(Item::Guard { condition, expect });
        }
    }
    let mut nodes = Vec::new();
    let iterations: BTreeSet<u32> = wanted.iter().map(|wanted| wanted.iteration).collect();
    let steps = body.times as usize * states.len().max(body.weight(forms.emitter.graph));
    let time = body.time(edit, forms.emitter.graph, &states).max(states.len());
    let time = body.times as usize * time;
    let compared = if edit.all_forms { COMPARED } else { 0 };
    let most = FEW + steps.max(compared);
    let most_derived = most_derived(edit, body.region, time.max(LONG * compared));
    for iteration in iterations {
        let here = || wanted.iter().filter(|wanted| wanted.iteration == iteration);
        // Where nothing is wanted but what is next, there is no iteration to be
        // gone through in the end.
        let next_of = |wanted: &&&Wanted| {
            let is_next = |&state: &usize| body.nexts[state] == wanted.value;
            wanted.closure.iter().copied().find(is_next)
        };
        let finals: Option<Vec<usize>> = here().map(|wanted| next_of(&wanted)).collect();
        let times = iteration as usize + usize::from(finals.is_some());
        let ends: BTreeSet<usize> = match &finals {
            Some(finals) => finals.iter().copied().collect(),
            None => here().flat_map(|wanted| wanted.cone.states.iter().copied()).collect(),
        };
        let mut at: HashMap<usize, Node> = HashMap::new();
        for system in &systems {
            let failure = |why| Failure { why, states: owned(&system.states, counter) };
            // What it would cost is known at most, roughly, before there is a form.
            let goal = power::Wanted { states: &ends, most: LONG * most };
            let after = advanced(&mut forms, system, times, &goal).map_err(failure)?;
            at.extend(system.states.iter().copied().zip(after));
            let derived = forms.emitter.derived;
            if forms.emitter.items.len() - derived > most || derived > most_derived {
                return Err(failure("its closed form would cost more than the loop"));
            }
        }
        if let Some(finals) = finals {
            let ends: BTreeMap<Node, usize> =
                here().map(|wanted| wanted.node).zip(finals).collect();
            // The guards of the φs are theirs as well: an input that only a sum does without may be
            // no number.
            let mut left = most_derived;
            for combination in edit.combinations(body.region) {
                let before = forms.emitter.items.len();
                let mut several = systems.iter().filter(|system| system.states.len() > 1);
                let form = several.find_map(|system| {
                    let state_of = |phi| ends.get(&phi).copied();
                    combination.form(&mut forms, system, times, left, state_of)
                });
                nodes.extend(form.map(|form| (combination.node, form)));
                left = left.saturating_sub(forms.emitter.items.len() - before);
            }
            nodes.extend(ends.into_iter().map(|(phi, state)| (phi, at[&state])));
            continue;
        }
        let mut tail =
            Tail { edit, body, at, iteration, copies: HashMap::new(), forms: &mut forms };
        for wanted in here() {
            for &node in body.steps.iter().filter(|node| wanted.cone.nodes.contains(*node)) {
                tail.copy(node);
            }
            nodes.push((wanted.node, tail.node(wanted.value)));
        }
        for node in &body.finite {
            if let Some(&copy) = tail.copies.get(node) {
                tail.forms.emitter.require_finite(copy);
            }
        }
        if forms.emitter.items.len() - forms.emitter.derived > most {
            return Err(Failure { why: "its closed form would cost more than the loop", states });
        }
    }
    if applied.is_empty() && !nodes.is_empty() {
        let form = "what an iteration comes to".to_owned();
        applied.push(Applied { rule: Rule::F4, at: place(forms.emitter, body.region), form });
    }
    Ok(Attempt { nodes, applied })
}

/// The `states` that are carried, without the iteration number and products with it.
fn owned(states: &[usize], counter: usize) -> BTreeSet<usize> {
    states.iter().copied().filter(|&state| state < counter).collect()
}

impl Forms<'_, '_> {
    /// What a state is in the next iteration.
    pub(super) fn row(&mut self, next: Node) -> Result<Affine, &'static str> {
        let form = self.find(next);
        self.affine(&form)
    }
}

/// The states in groups that do not depend on each other.
pub(super) fn components(rows: &Rows) -> Vec<Vec<usize>> {
    let mut group: HashMap<usize, usize> = rows.keys().map(|&state| (state, state)).collect();
    for (&state, row) in rows {
        for base in row.keys() {
            let Base::State(other) = *base else { continue };
            let (a, b) = (group[&state], group[&other]);
            group.values_mut().filter(|of| **of == b).for_each(|of| *of = a);
        }
    }
    let mut found: Vec<Vec<usize>> = Vec::new();
    for &state in rows.keys() {
        match found.iter_mut().find(|other| group[&other[0]] == group[&state]) {
            Some(other) => other.push(state),
            None => found.push(vec![state]),
        }
    }
    found
}

/// An iteration, as straight code.
struct Tail<'a, 'f, 'e, 'g> {
    edit: &'a Edit,
    body: &'a Body,
    /// The states before it.
    at: HashMap<usize, Node>,
    iteration: u32,
    copies: HashMap<Node, Node>,
    forms: &'f mut Forms<'e, 'g>,
}

impl Tail<'_, '_, '_, '_> {
    fn node(&mut self, node: Node) -> Node {
        let node = self.edit.resolved(node);
        if let Some(&copy) = self.copies.get(&node) {
            return copy;
        }
        match self.forms.emitter.graph.nodes[node].def {
            _ if is_rest(self.forms.emitter.graph, node) => self.forms.emitter.constant(0.0),
            Def::Iteration(region) if region == self.body.region => {
                self.forms.emitter.constant(f64::from(self.iteration))
            }
            Def::Entry(region, number) if region == self.body.region => {
                // Those that something wanted depends on have been advanced.
                self.at.get(&(number as usize)).copied().unwrap_or(node)
            }
            _ => node,
        }
    }

    fn copy(&mut self, node: Node) {
        if self.copies.contains_key(&node) {
            return;
        }
        let known = self.forms.known.get(&node);
        let copy = match (known, self.forms.emitter.graph.nodes[node].def) {
            (Some(Form::Fixed(fixed)), _) => *fixed,
            (_, Def::Apply(op, args)) => {
                let args: Vec<Node> =
                    args[..op.arity()].iter().map(|&arg| self.node(arg)).collect();
                self.forms.emitter.apply(op, &args)
            }
            (_, Def::Element(access)) => self.element(access),
            _ => return,
        };
        self.copies.insert(node, copy);
    }

    fn element(&mut self, access: Access) -> Node {
        let emitter = &mut *self.forms.emitter;
        let data = &emitter.graph.accesses[access];
        let own = data.strides.iter().find(|&&(region, _)| region == self.body.region);
        let Some(&(_, stride)) = own else { return emitter.element(access) };
        let base = i64::from(data.base) + i64::from(stride) * i64::from(self.iteration);
        let mut strides = data.strides.clone();
        strides.retain(|&mut (region, _)| region != self.body.region);
        let base = u32::try_from(base).unwrap_or(u32::MAX);
        if strides.is_empty() {
            match &emitter.graph.series[data.series] {
                SeriesData::Nodes(nodes) => {
                    if let Some(&node) = nodes.get(base as usize) {
                        return self.edit.resolved(node);
                    }
                }
                SeriesData::Constants(numbers) => {
                    if let Some(&number) = numbers.get(base as usize) {
                        return emitter.constant(f64::from_bits(number));
                    }
                }
                &SeriesData::Inputs { first, .. } => {
                    return emitter.input(first.saturating_add(base));
                }
                SeriesData::History(_) | SeriesData::Sums(_) | SeriesData::Outputs { .. } => {}
            }
        }
        let access = AccessData { series: data.series, base, strides };
        let access = emitter.graph.accesses.push(access);
        emitter.element(access)
    }
}

/// Whether `condition` is that a number is finite: a closed form asks for that.
fn watches(graph: &Graph, condition: Node) -> bool {
    match graph.nodes[condition].def {
        Def::Apply(Op::Lt, [_, limit, _]) => graph.constant(limit) == Some(f64::INFINITY),
        _ => false,
    }
}
