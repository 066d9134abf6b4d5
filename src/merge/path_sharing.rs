//! Path sharing: the paths seen in one instance of a region become paths of others.
//!
//! Two instances of one region with equal captured static state run the same code on the same
//! static state. They do the same for any traced values until a number escapes, and after escapes
//! of the same number they still do. So a path that one of them has taken is copied to the other,
//! with corresponding values substituted: a value computed in the region by the one computed at the
//! same point, a captured value by the one captured at the same position. Where that is ambiguous
//! (one value was captured at two positions, at which the other instance has different values) the
//! path stays unknown. `jumps` copies jumps out of a region. An escaped number of one instance
//! becomes one more that may escape in the other. `specialisation` copies paths to instances with
//! constants in the place of traced values.
//!
//! Iterations of one loop share paths if the static state carried to their heads is equal. Their
//! captured values are the carried ones; values from before the loop are the same for both.

use hashbrown::HashMap;
use smallvec::SmallVec;

use super::jumps::Jumps;
use super::specialisation::{self, Fold};
use super::tree::{BasicBlock, End, Instance, LiveInState, Origin, SAME, Step, Tree, Value};
use super::work;
use crate::entity::Entity;

/// Copies the paths of `from` to `to`. Returns whether `to` lacked any.
pub(super) fn share_paths(
    tree: &mut Tree,
    from: Instance,
    to: Instance,
    budget: &mut usize,
) -> bool {
    if from == to || *budget == 0 {
        return false;
    }
    let around = tree.live_in(from).and_then(|live_in| live_in.of);
    let pairs = [(from, to)].into_iter().chain(around.map(|around| (around, around))).collect();
    let (values, jumps) = (HashMap::new(), Jumps::between(tree, from, to));
    let folds = specialisation::folds(tree, from, to);
    let mut sharing =
        PathSharing { tree, from, to, pairs, values, jumps, budget, folds, is_changed: false };
    let start = Task::Compare(sharing.root(from), sharing.root(to));
    sharing.run(start);
    let PathSharing { tree, pairs, is_changed, .. } = sharing;
    if is_changed {
        tree.is_shared = true;
        for instance in pairs.into_iter().flat_map(|(a, b)| [a, b]) {
            tree.instances[instance].is_shared = true;
        }
    }
    is_changed
}

/// A point of the tree: a step of a basic block, or its end.
#[derive(Clone, Copy)]
struct Point {
    basic_block: BasicBlock,
    step: usize,
    /// The innermost instance that it is inside of.
    inside: Instance,
}

impl Point {
    fn start(basic_block: BasicBlock, inside: Instance) -> Self {
        Point { basic_block, step: 0, inside }
    }

    fn next(self) -> Self {
        Point { step: self.step + 1, ..self }
    }

    /// The start of another basic block inside the same instance.
    fn at(self, basic_block: BasicBlock) -> Self {
        Point::start(basic_block, self.inside)
    }
}

/// The work list, innermost last.
enum Task {
    /// Continues from two corresponding points.
    Compare(Point, Point),
    /// Continues after two corresponding regions, which have been compared.
    CompareTails(Point, Point),
    /// Appends the code at the first point to the second, which is an open end.
    Copy(Point, Point),
}

pub(super) struct PathSharing<'a> {
    pub(super) tree: &'a mut Tree,
    pub(super) from: Instance,
    to: Instance,
    /// Corresponding instances.
    pub(super) pairs: HashMap<Instance, Instance>,
    /// Corresponding values computed inside.
    pub(super) values: HashMap<Value, Value>,
    /// The correspondence of jumps to the outside, if known.
    pub(super) jumps: Option<Jumps>,
    /// The number of steps that may still be copied.
    budget: &'a mut usize,
    /// True if constants stand in the place of traced values.
    pub(super) folds: bool,
    is_changed: bool,
}

impl PathSharing<'_> {
    fn run(&mut self, first: Task) {
        let mut tasks = vec![first];
        while let Some(task) = tasks.pop() {
            self.tree.work += 1;
            match task {
                Task::Compare(from, to) => self.compare(from, to, &mut tasks),
                Task::CompareTails(from, to) => self.compare_tails(from, to, &mut tasks),
                Task::Copy(from, to) => self.copy(from, to, &mut tasks),
            }
        }
    }

    fn root(&self, instance: Instance) -> Point {
        Point::start(self.tree.instances[instance].root, instance)
    }

    fn step(&self, point: Point) -> Option<Step> {
        self.tree.basic_blocks[point.basic_block].steps.get(point.step).copied()
    }

    fn end(&self, point: Point) -> End {
        self.tree.basic_blocks[point.basic_block].end.clone()
    }

    /// Walks along both as far as they agree.
    fn compare(&mut self, mut from: Point, mut to: Point, tasks: &mut Vec<Task>) {
        loop {
            self.tree.work += 1;
            if self.tree.work > self.tree.most_work {
                *self.budget = 0;
                return;
            }
            if let Some(Step::Value(a)) = self.step(from) {
                match self.fold(a) {
                    Fold::Step => {}
                    Fold::Constant => {
                        from = from.next();
                        continue;
                    }
                    Fold::Unknown => return,
                }
            }
            match (self.step(from), self.step(to)) {
                (Some(Step::Value(a)), _) if self.is_escape(a) => {
                    return self.compare_escapes(a, from, to, tasks);
                }
                (Some(Step::Value(a)), Some(Step::Value(b))) if self.is_same_operation(a, b) => {
                    self.values.insert(a, b);
                    (from, to) = (from.next(), to.next());
                }
                (
                    Some(Step::Guard { condition, expect: seen }),
                    Some(Step::Guard { condition: other, expect: known }),
                ) if self.is_paired(condition, other) => {
                    if seen != known {
                        let new = self.split(to, seen);
                        return tasks.push(Task::Copy(from.next(), to.at(new)));
                    }
                    (from, to) = (from.next(), to.next());
                }
                (Some(Step::Guard { condition, expect }), None) => match self.end(to) {
                    End::Branch { condition: other, then, otherwise }
                        if self.is_paired(condition, other) =>
                    {
                        let arm = if expect { then } else { otherwise };
                        (from, to) = (from.next(), to.at(arm));
                    }
                    End::Open => return tasks.push(Task::Copy(from, to)),
                    _ => return,
                },
                (None, Some(Step::Guard { condition: other, expect })) => match self.end(from) {
                    End::Branch { condition, then, otherwise }
                        if self.is_paired(condition, other) =>
                    {
                        let (same, other) =
                            if expect { (then, otherwise) } else { (otherwise, then) };
                        let new = self.split(to, !expect);
                        tasks.push(Task::Copy(from.at(other), to.at(new)));
                        // The known path is in a new block now.
                        let End::Branch { then, otherwise, .. } = self.end(to) else { return };
                        let known = if expect { then } else { otherwise };
                        (from, to) = (from.at(same), to.at(known));
                    }
                    _ => return,
                },
                (None, None) => return self.compare_ends(from, to, tasks),
                (Some(_), None) if self.end(to) == End::Open => {
                    return tasks.push(Task::Copy(from, to));
                }
                // They differ, and no captured state explains why.
                _ => return,
            }
        }
    }

    fn compare_ends(&mut self, from: Point, to: Point, tasks: &mut Vec<Task>) {
        match (self.end(from), self.end(to)) {
            (
                End::Branch { condition, then: a, otherwise: b },
                End::Branch { condition: other, then: c, otherwise: d },
            ) if self.is_paired(condition, other) => {
                tasks.push(Task::Compare(from.at(b), to.at(d)));
                tasks.push(Task::Compare(from.at(a), to.at(c)));
            }
            (End::Region { instance: a, .. }, End::Region { instance: b, .. }) => {
                if !self.is_same_region(a, b) {
                    return;
                }
                self.pairs.insert(a, b);
                tasks.push(Task::CompareTails(from, to));
                tasks.push(Task::Compare(self.root(a), self.root(b)));
            }
            (End::Open, _) => {}
            (_, End::Open) => tasks.push(Task::Copy(from, to)),
            _ => {}
        }
    }

    /// Continues from an escape, `a`. The escaped numbers of a value form a chain of branches: each
    /// is compared with the next number on the branch where it differs.
    fn compare_escapes(&mut self, a: Value, from: Point, to: Point, tasks: &mut Vec<Task>) {
        let Some((arm, rest)) = self.arms(a, from) else { return };
        // The value that corresponds to the escaped one; the numbers must be equal.
        let Origin::Apply(op, args, site) = self.tree.values[a] else { return };
        let Some(escaped) = self.value(args[0]) else { return };
        let mut at = to;
        let arm_at = loop {
            let known = match self.step(at) {
                Some(Step::Value(known)) => known,
                None if self.end(at) == End::Open => break None,
                _ => return,
            };
            match self.tree.values[known] {
                Origin::Apply(SAME, others, other_site)
                    if others[0] == escaped && other_site == site =>
                {
                    let Some((arm, rest)) = self.arms(known, at) else { return };
                    if others[1] == args[1] {
                        self.values.insert(a, known);
                        break Some(arm);
                    }
                    at = match rest {
                        Some(rest) => rest,
                        None => {
                            let new = self.split(at.next(), false);
                            at.at(new)
                        }
                    };
                }
                _ => return,
            }
        };
        if let Some(rest) = rest {
            tasks.push(Task::Compare(rest, to));
        }
        match arm_at {
            Some(known) => tasks.push(Task::Compare(arm, known)),
            None => {
                let others = core::array::from_fn(|i| if i == 1 { args[1] } else { escaped });
                let condition = self.tree.values.push(Origin::Apply(op, others, site));
                self.values.insert(a, condition);
                if self.push(at, Step::Value(condition)) {
                    self.push(at, Step::Guard { condition, expect: true });
                    tasks.push(Task::Copy(arm, at));
                }
            }
        }
    }

    /// The points after the escape at `point`: where the number is equal, and where it is not.
    fn arms(&self, escape: Value, point: Point) -> Option<(Point, Option<Point>)> {
        let next = point.next();
        match (self.step(next), self.end(next)) {
            (Some(Step::Guard { condition, expect: true }), _) if condition == escape => {
                Some((next.next(), None))
            }
            (None, End::Branch { condition, then, otherwise }) if condition == escape => {
                Some((point.at(then), Some(point.at(otherwise))))
            }
            _ => None,
        }
    }

    /// Continues after two regions, for each exit of the first one.
    fn compare_tails(&mut self, from: Point, to: Point, tasks: &mut Vec<Task>) {
        let End::Region { instance: a, tails } = self.end(from) else { return };
        let End::Region { instance: b, .. } = self.end(to) else { return };
        for (exit, tail) in tails.into_iter().enumerate() {
            let Some(other) = self.exit(a, exit, b) else { continue };
            let carried = self.tree.instances[a].exits[exit].carried.clone();
            let others = self.tree.instances[b].exits[other].carried.clone();
            self.values.extend(carried.into_iter().zip(others));
            if let End::Region { tails, .. } = self.end(to)
                && let Some(&other) = tails.get(other)
            {
                tasks.push(Task::Compare(from.at(tail), to.at(other)));
            }
        }
    }

    /// Appends the code at `from` to the open end `to`, as far as its values have counterparts.
    fn copy(&mut self, mut from: Point, to: Point, tasks: &mut Vec<Task>) {
        // Another task may have filled it.
        if self.tree.basic_blocks[to.basic_block].end != End::Open {
            return;
        }
        while let Some(step) = self.step(from) {
            self.tree.work += work::COPY_STEP;
            let copy = match step {
                Step::Value(value) => match self.fold(value) {
                    Fold::Step => self.copy_value(value).map(Step::Value),
                    Fold::Constant => {
                        from = from.next();
                        continue;
                    }
                    Fold::Unknown => None,
                },
                Step::Guard { condition, expect } => {
                    self.condition(condition).map(|condition| Step::Guard { condition, expect })
                }
                // Loops have been peeled before sharing.
                Step::Loop(_) => None,
            };
            let Some(copy) = copy else { return };
            if !self.push(to, copy) {
                return;
            }
            from = from.next();
        }
        let end = match self.end(from) {
            End::Branch { condition, then, otherwise } => {
                let Some(condition) = self.condition(condition) else { return };
                let (first, second) = (self.tree.new_basic_block(), self.tree.new_basic_block());
                tasks.push(Task::Copy(from.at(otherwise), to.at(second)));
                tasks.push(Task::Copy(from.at(then), to.at(first)));
                End::Branch { condition, then: first, otherwise: second }
            }
            End::Region { instance, .. } => {
                if matches!(self.tree.instances[instance].live_in, LiveInState::Varying)
                    || !self.spend()
                {
                    return;
                }
                let site = self.tree.instances[instance].site;
                let copy = self.tree.new_instance(site, Some(to.inside));
                self.pairs.insert(instance, copy);
                tasks.push(Task::CompareTails(from, to));
                tasks.push(Task::Copy(self.root(instance), self.root(copy)));
                End::Region { instance: copy, tails: SmallVec::new() }
            }
            End::Exit { exit, values } => {
                let Some(values) = self.carried(from.inside, exit, &values) else { return };
                let Some(exit) = self.exit(from.inside, exit, to.inside) else { return };
                End::Exit { exit, values }
            }
            // A region has no other ends.
            End::Return(_) | End::Open => return,
        };
        self.tree.note_extension(to.basic_block);
        self.tree.set_end(to.basic_block, end);
        self.is_changed = true;
    }

    fn split(&mut self, at: Point, outcome: bool) -> BasicBlock {
        self.is_changed = true;
        self.tree.split(at.basic_block, at.step, outcome)
    }

    /// Appends a step to the open end `to`, if the budget allows. A guard comes with its value.
    fn push(&mut self, to: Point, step: Step) -> bool {
        let has_budget = matches!(step, Step::Guard { .. }) || self.spend();
        if has_budget {
            self.tree.note_extension(to.basic_block);
            self.tree.push_step(to.basic_block, step, true);
            self.is_changed = true;
        }
        has_budget
    }

    /// Takes one step from the budget, if there is one.
    fn spend(&mut self) -> bool {
        let has_budget = *self.budget > 0;
        *self.budget = self.budget.saturating_sub(1);
        has_budget
    }

    /// Tests whether two values are computed by the same operation from operands that may
    /// correspond: known counterparts are the operands of the other, and constants are equal.
    fn is_same_operation(&self, a: Value, b: Value) -> bool {
        let (Origin::Apply(op, args, site), Origin::Apply(other, others, other_site)) =
            (self.tree.values[a], self.tree.values[b])
        else {
            return false;
        };
        op == other
            && site == other_site
            && args.into_iter().zip(others).all(|(a, b)| match self.value(a) {
                Some(same) => same == b,
                None => !self.tree.is_constant(a) && !self.tree.is_constant(b),
            })
    }

    fn is_paired(&self, a: Value, b: Value) -> bool {
        self.values.get(&a) == Some(&b)
    }

    fn is_escape(&self, value: Value) -> bool {
        matches!(self.tree.values[value], Origin::Apply(SAME, ..))
    }

    /// Tests whether two inner instances are of the same region, as far as is known.
    fn is_same_region(&self, a: Instance, b: Instance) -> bool {
        let (a, b) = (&self.tree.instances[a], &self.tree.instances[b]);
        a.site == b.site
            && match (&a.live_in, &b.live_in) {
                (LiveInState::Varying, _) | (_, LiveInState::Varying) => false,
                (LiveInState::Known(a), LiveInState::Known(b)) => a.state == b.state,
                _ => true,
            }
    }

    /// The counterpart of a condition; a constant is no condition.
    fn condition(&self, condition: Value) -> Option<Value> {
        self.value(condition).filter(|&condition| !self.tree.is_constant(condition))
    }

    fn copy_value(&mut self, value: Value) -> Option<Value> {
        let Origin::Apply(op, args, site) = self.tree.values[value] else { return None };
        let mut copy_carried = args;
        for (copy, arg) in copy_carried.iter_mut().zip(args) {
            *copy = self.value(arg)?;
        }
        let copy = self.tree.values.push(Origin::Apply(op, copy_carried, site));
        self.values.insert(value, copy);
        Some(copy)
    }

    /// The counterpart of `value`, computed inside or captured.
    pub(super) fn value(&self, value: Value) -> Option<Value> {
        if let Some(&known) = self.values.get(&value) {
            return Some(known);
        }
        let (from, to) = (self.tree.live_in(self.from)?, self.tree.live_in(self.to)?);
        // A value that does not change in a loop is the same for all iterations.
        if let (Some(of), false) = (from.of, from.captured.contains(&value)) {
            let is_outside = match self.tree.values[value] {
                Origin::Input(_) | Origin::Const(_) => true,
                Origin::Apply(..) | Origin::Carried | Origin::InLoop => {
                    value.index() < self.tree.instances[of].older_values
                }
            };
            return is_outside.then_some(value);
        }
        let captured = from.captured.iter().copied().zip(to.captured.iter().copied());
        self.tree.captured(value, captured)
    }
}
