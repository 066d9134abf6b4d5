//! One loop and its closed form.

use std::collections::BTreeSet;

use hashbrown::{HashMap, HashSet};

use super::MOST_STATES;
use super::body::{Body, Cone};
use super::edit::Edit;
use super::emit::Emitter;
use super::form::{Affine, Base, Coefficient, Form, Forms};
use super::power::{System, advanced};
use crate::phi::rule::{Applied, Rule};
use crate::ssa::{Access, AccessData, Def, Graph, Item, Node, Place, Region};

/// So many steps are always worth a loop.
const FEW: usize = 32;
/// How many numbers the tables of one loop may hold.
const TABLES: usize = 1 << 24;

/// Replaces those φs of `region` that have a closed form; says why if none has.
pub(super) fn solve(edit: &mut Edit, region: Region) -> Result<Vec<Applied>, &'static str> {
    let body = Body::of(edit, region)?;
    let mut plan = Plan::of(edit, &body);
    let mut graph = core::mem::replace(&mut edit.graph, Graph::new(0, 0));
    let place = graph.regions[region].place;
    // The graph has what was there, and nodes that no block has: what is made
    // and then given up is in no order.
    let outcome = loop {
        let mut emitter = Emitter::new(&mut graph, place);
        match attempt(edit, &body, &plan, &mut emitter) {
            Ok(attempt) => break Ok((attempt, emitter.items)),
            Err(Failure { why, states }) => {
                drop(emitter);
                if states.is_empty() || !plan.give_up(&states, why) {
                    break Err(why);
                }
            }
        }
    };
    edit.graph = graph;
    let (attempt, items) = outcome.map_err(|why| plan.why.unwrap_or(why))?;
    edit.replace(region, items, attempt.phis, plan.whole());
    Ok(attempt.applied)
}

/// Which φs are to be replaced.
struct Plan {
    phis: Vec<Wanted>,
    /// The states that the loop must go on computing.
    kept: BTreeSet<usize>,
    /// Whether something else keeps the loop.
    stays: bool,
    why: Option<&'static str>,
    /// The nodes that guards depend on.
    decisive: HashSet<Node>,
}

struct Wanted {
    number: usize,
    cone: Cone,
    closure: BTreeSet<usize>,
    is_wanted: bool,
}

impl Plan {
    fn of(edit: &Edit, body: &Body) -> Plan {
        let mut plan = Plan {
            phis: Vec::new(),
            kept: BTreeSet::new(),
            stays: false,
            why: None,
            decisive: HashSet::new(),
        };
        let keep = |plan: &mut Plan, why| {
            plan.stays = true;
            plan.why = plan.why.or(Some(why));
        };
        for &past in edit.histories(body.region) {
            let (closure, _) = body.closure(&body.cone(edit, past));
            plan.kept.extend(closure);
            keep(&mut plan, "its values in all iterations are used");
        }
        for &(condition, _) in &body.guards {
            let cone = body.cone(edit, condition);
            let (closure, is_inner) = body.closure(&cone);
            if cone.changes || is_inner || !closure.is_empty() {
                plan.kept.extend(closure);
                keep(&mut plan, "a decision depends on its state");
            }
            plan.decisive.extend(cone.nodes);
        }
        if body.has_regions {
            plan.kept.extend(0..body.entries.len());
            keep(&mut plan, "there are loops or branches in it");
        }
        for (number, &value) in body.values.iter().enumerate() {
            let cone = body.cone(edit, value);
            let (closure, is_inner) = body.closure(&cone);
            plan.phis.push(Wanted { number, cone, closure, is_wanted: !is_inner });
        }
        plan.settle();
        plan
    }

    /// What depends on kept states is kept: the loop computes it anyway.
    fn settle(&mut self) {
        loop {
            let before = self.kept.len();
            for phi in &mut self.phis {
                phi.is_wanted &= phi.closure.is_disjoint(&self.kept);
                if !phi.is_wanted {
                    self.kept.extend(&phi.closure);
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
        self.phis.iter().any(|phi| phi.is_wanted)
    }

    /// Whether nothing of the loop is left.
    fn whole(&self) -> bool {
        !self.stays && self.phis.iter().all(|phi| phi.is_wanted)
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
    /// φs, and what takes their places.
    phis: Vec<(Node, Node)>,
    applied: Vec<Applied>,
}

fn attempt(
    edit: &Edit,
    body: &Body,
    plan: &Plan,
    emitter: &mut Emitter<'_>,
) -> Result<Attempt, Failure> {
    let wanted: Vec<&Wanted> = plan.phis.iter().filter(|phi| phi.is_wanted).collect();
    if wanted.is_empty() {
        return Err(Failure::from("nothing of it has a closed form"));
    }
    let states: BTreeSet<usize> = wanted.iter().flat_map(|phi| &phi.closure).copied().collect();
    // Where the loop passes on nothing but what is next, there is no last
    // iteration to be gone through.
    let next_of = |phi: &Wanted| {
        let value = body.values[phi.number];
        phi.closure.iter().copied().find(|&state| body.nexts[state] == value)
    };
    let finals: Option<Vec<usize>> = wanted.iter().map(|phi| next_of(phi)).collect();
    let numbers = body.entries.iter().enumerate();
    let mut forms = Forms {
        emitter,
        region: body.region,
        times: body.times as usize - usize::from(finals.is_none()),
        states: numbers.map(|(number, &(phi, _))| (phi, number)).collect(),
        known: HashMap::new(),
        budget: TABLES,
    };
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
    let mut rows: HashMap<usize, Affine> = HashMap::new();
    for &state in &states {
        match forms.row(body.nexts[state]) {
            Ok(row) => {
                rows.insert(state, row);
            }
            Err(why) => return Err(Failure { why, states: [state].into() }),
        }
    }
    let one = forms.emitter.constant(1.0);
    let counter = forms.counter();
    let is_counted = rows.values().any(|row| row.contains_key(&Base::State(counter)));
    let mut all: Vec<usize> = states.iter().copied().collect();
    if is_counted {
        let one_more = Coefficient::Fixed(one.into());
        let row = [(Base::State(counter), one_more.clone()), (Base::Node(one), one_more)];
        rows.insert(counter, row.into());
        all.push(counter);
    }
    let mut at: HashMap<usize, Node> = HashMap::new();
    let mut applied = Vec::new();
    for states in components(&all, &rows) {
        let numbers = states.iter().copied().filter(|&state| state != counter);
        let failure = |why| Failure { why, states: numbers.clone().collect() };
        if states.len() > MOST_STATES {
            return Err(failure("too many numbers depend on each other"));
        }
        let zero = forms.emitter.constant(0.0);
        let first = |&state: &usize| body.entries.get(state).map_or(zero, |&(_, first)| first);
        let system = System {
            rows: states.iter().map(|state| rows[state].clone()).collect(),
            firsts: states.iter().map(first).collect(),
            states: states.clone(),
        };
        let before = forms.emitter.items.len();
        let nodes = advanced(&mut forms, &system).map_err(failure)?;
        let made = forms.emitter.items.len() - before;
        if made > FEW + body.times as usize * states.len().max(body.steps.len()) {
            return Err(failure("its closed form costs more than it does"));
        }
        applied.push(applied_to(&forms, body, &system));
        at.extend(states.iter().copied().zip(nodes));
    }
    if plan.whole() {
        for &(condition, expect) in &body.guards {
            let Form::Fixed(condition) = forms.find(condition) else {
                return Err(Failure::from("a decision depends on its state"));
            };
            forms.emitter.items.push(Item::Guard { condition, expect });
        }
    }
    let known = core::mem::take(&mut forms.known);
    let phi_of = |emitter: &Emitter<'_>, wanted: &Wanted| {
        emitter.graph.regions[body.region].phis[wanted.number]
    };
    if let Some(finals) = finals {
        let pairs = wanted.iter().zip(finals);
        let phis = pairs.map(|(phi, state)| (phi_of(emitter, phi), at[&state])).collect();
        return Ok(Attempt { phis, applied });
    }
    let mut tail = Tail { edit, body, at, known, copies: HashMap::new(), emitter };
    let mut phis = Vec::new();
    for phi in wanted {
        for &node in body.steps.iter().filter(|node| phi.cone.nodes.contains(*node)) {
            tail.copy(node);
        }
        let old = phi_of(tail.emitter, phi);
        phis.push((old, tail.node(body.values[phi.number])));
    }
    if applied.is_empty() {
        let form = "what the last iteration comes to".to_owned();
        applied.push(Applied { rule: Rule::F4, at: place(tail.emitter, body.region), form });
    }
    Ok(Attempt { phis, applied })
}

impl Forms<'_, '_> {
    /// What a state is in the next iteration.
    fn row(&mut self, next: Node) -> Result<Affine, &'static str> {
        let form = self.find(next);
        self.affine(&form)
    }
}

/// The states in groups that do not depend on each other.
fn components(states: &[usize], rows: &HashMap<usize, Affine>) -> Vec<Vec<usize>> {
    let mut group: HashMap<usize, usize> = states.iter().map(|&state| (state, state)).collect();
    for &state in states {
        for base in rows[&state].keys() {
            let Base::State(other) = *base else { continue };
            let (a, b) = (group[&state], group[&other]);
            group.values_mut().filter(|of| **of == b).for_each(|of| *of = a);
        }
    }
    let mut found: Vec<Vec<usize>> = Vec::new();
    for &state in states {
        match found.iter_mut().find(|other| group[&other[0]] == group[&state]) {
            Some(other) => other.push(state),
            None => found.push(vec![state]),
        }
    }
    found
}

fn place(emitter: &Emitter<'_>, region: Region) -> Option<Place> {
    let graph = &emitter.graph;
    graph.regions[region].place.and_then(|place| graph.places.get(place)).cloned()
}

fn applied_to(forms: &Forms<'_, '_>, body: &Body, system: &System) -> Applied {
    let graph = &forms.emitter.graph;
    let at = place(forms.emitter, body.region);
    let n = forms.times;
    let tables = |row: &Affine| row.values().any(|c| matches!(c, Coefficient::Table(_)));
    let changes = system.rows.iter().any(tables);
    let own = system.rows[0].get(&Base::State(system.states[0]));
    let is_one = |c: &Coefficient| match c {
        Coefficient::Fixed(pair) => pair.low.is_none() && graph.constant(pair.high) == Some(1.0),
        Coefficient::Table(_) => false,
    };
    let (rule, form) = match (system.states.len(), changes) {
        (1, false) if own.is_some_and(is_one) => (Rule::C6, format!("p + {n}·b")),
        (1, false) if system.rows[0].len() == 1 => (Rule::C6, format!("a^{n}·p")),
        (1, false) => (Rule::C6, format!("a^{n}·p + b·Σ_{{j<{n}}} a^j")),
        (1, true) if own.is_some_and(is_one) => (Rule::C7, format!("p + Σ_{{i<{n}}} b(i)")),
        (1, true) if system.rows[0].len() == 1 => (Rule::C8, format!("p·Π_{{i<{n}}} a(i)")),
        (1, true) => (Rule::C9, format!("p·Π_{{i<{n}}} a(i) + Σ_i b(i)·Π_{{j>i}} a(j)")),
        (size, false) => {
            (Rule::C6, format!("A^{n}·p + Σ_{{j<{n}}} A^j·b, {size} numbers"))
        }
        (size, true) => {
            let form = format!("Π_{{i<{n}}} A(i)·p + Σ_i Π_{{j>i}} A(j)·b(i), {size} numbers");
            (Rule::C9, form)
        }
    };
    Applied { rule, at, form }
}

/// The last iteration, as straight code.
struct Tail<'a, 'b, 'g> {
    edit: &'a Edit,
    body: &'a Body,
    /// The states before it.
    at: HashMap<usize, Node>,
    known: HashMap<Node, Form>,
    copies: HashMap<Node, Node>,
    emitter: &'b mut Emitter<'g>,
}

impl Tail<'_, '_, '_> {
    fn node(&mut self, node: Node) -> Node {
        let node = self.edit.resolved(node);
        if let Some(&copy) = self.copies.get(&node) {
            return copy;
        }
        match self.emitter.graph.nodes[node].def {
            Def::Iteration(region) if region == self.body.region => {
                self.emitter.constant(f64::from(self.body.times - 1))
            }
            Def::Entry(region, number) if region == self.body.region => {
                // Those that a wanted φ depends on have been advanced.
                self.at.get(&(number as usize)).copied().unwrap_or(node)
            }
            _ => node,
        }
    }

    fn copy(&mut self, node: Node) {
        if self.copies.contains_key(&node) {
            return;
        }
        let copy = match (self.known.get(&node), self.emitter.graph.nodes[node].def) {
            (Some(Form::Fixed(fixed)), _) => *fixed,
            (_, Def::Apply(op, args)) => {
                let args: Vec<Node> =
                    args[..op.arity()].iter().map(|&arg| self.node(arg)).collect();
                self.emitter.apply(op, &args)
            }
            (_, Def::Element(access)) => self.last_element(access),
            _ => return,
        };
        self.copies.insert(node, copy);
    }

    fn last_element(&mut self, access: Access) -> Node {
        let data = &self.emitter.graph.accesses[access];
        let own = data.strides.iter().find(|&&(region, _)| region == self.body.region);
        let Some(&(_, stride)) = own else { return self.emitter.element(access) };
        let last = i64::from(self.body.times - 1);
        let base = i64::from(data.base) + i64::from(stride) * last;
        let mut strides = data.strides.clone();
        strides.retain(|&mut (region, _)| region != self.body.region);
        let base = u32::try_from(base).unwrap_or(u32::MAX);
        let access = AccessData { series: data.series, base, strides };
        let access = self.emitter.graph.accesses.push(access);
        self.emitter.element(access)
    }
}
