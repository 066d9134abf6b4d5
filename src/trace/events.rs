//! The tape as structure of arrays: values and steps for the sweep, and the sites, which repeat, in
//! compressed form.

use core::cell::Cell;
use core::fmt;

use super::event::Step;
use super::sites::Sites;
use super::{Event, Role, Site};

/// The events of one recorded run, in order. For an example see
/// [`Tracer::run`](super::Tracer::run).
#[derive(Default)]
pub struct Events {
    /// A long run has more values than steps; its events are not visible outside of
    /// [`LongRun`](super::LongRun).
    pub(super) values: Vec<f64>,
    pub(super) steps: Vec<Step>,
    sites: Sites,
    /// True if sites and marks are not recorded.
    is_untracked: bool,
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl Events {
    /// The number of events.
    pub fn len(&self) -> usize {
        self.steps.len()
    }

    /// Tests whether there are no events.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// The event with this index.
    pub fn get(&self, index: usize) -> Option<Event<'_>> {
        (index < self.len()).then(|| self.at(index))
    }

    /// The last event.
    pub fn last(&self) -> Option<Event<'_>> {
        self.get(self.len().checked_sub(1)?)
    }

    /// All events, in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Event<'_>> + ExactSizeIterator {
        (0..self.len()).map(|index| self.at(index))
    }

    /// The marks at which regions and iterations begin and end, in order.
    pub(crate) fn marks(&self) -> impl Iterator<Item = Event<'_>> {
        self.with_role(|role| matches!(role, Role::Enter | Role::Iterate | Role::Join))
    }

    /// The guards and loop heads, in order.
    pub(crate) fn guards_and_iterations(&self) -> impl Iterator<Item = Event<'_>> {
        self.with_role(|role| matches!(role, Role::Guard | Role::Iterate))
    }

    /// The events whose role is wanted, in order.
    fn with_role(&self, is_wanted: impl Fn(Role) -> bool) -> impl Iterator<Item = Event<'_>> {
        let steps = self.steps.iter().enumerate();
        let wanted = steps.filter(move |(_, step)| is_wanted(step.kind.role));
        wanted.map(|(index, _)| self.at(index))
    }

    /// The event with this index, which is less than the length.
    #[inline]
    pub(crate) fn at(&self, index: usize) -> Event<'_> {
        let (value, step) = (self.values[index], self.steps[index]);
        Event { value, step, index, sites: &self.sites }
    }

    /// The role of the event with this index, if there is one.
    #[inline]
    pub(crate) fn role(&self, index: usize) -> Option<Role> {
        self.steps.get(index).map(|step| step.kind.role)
    }

    /// A number for the site of each event, equal for equal sites.
    pub(super) fn site_numbers(&self) -> Vec<u32> {
        self.sites.numbers()
    }

    pub(super) const fn new() -> Self {
        Events { values: Vec::new(), steps: Vec::new(), sites: Sites::new(), is_untracked: false }
    }

    /// Clears the tape for a run of the function recorded at `made`, which is the site of all
    /// events of an untracked run.
    pub(super) fn begin(&mut self, is_untracked: bool, made: Site) {
        self.values.clear();
        self.steps.clear();
        self.sites.clear();
        self.is_untracked = is_untracked;
        if is_untracked {
            self.sites.end_with(made);
        }
    }

    /// Tests whether marks and sites are not recorded.
    pub(super) fn is_untracked(&self) -> bool {
        self.is_untracked
    }

    /// Appends the leaves with these values, with the site `site`.
    pub(super) fn extend_leaves(&mut self, step: Step, values: &[f64], site: Site) {
        self.values.extend_from_slice(values);
        self.steps.resize(self.values.len(), step);
        if !self.is_untracked {
            self.sites.push_repeated(site, values.len());
        }
    }

    /// Appends events.
    pub(super) fn extend(
        &mut self,
        values: &[Cell<f64>],
        steps: &[Cell<Step>],
        sites: &[Cell<Site>],
    ) {
        self.extend_without_sites(values, steps);
        if !self.is_untracked {
            self.sites.extend(sites);
        }
    }

    /// Appends events of a long run.
    pub(super) fn extend_without_sites(&mut self, values: &[Cell<f64>], steps: &[Cell<Step>]) {
        self.values.extend(values.iter().map(Cell::get));
        self.steps.extend(steps.iter().map(Cell::get));
    }

    /// Drops all but the values.
    pub(super) fn keep_values(&mut self) {
        self.steps.clear();
        self.sites.clear();
    }

    /// Drops everything.
    pub(super) fn keep_nothing(&mut self) {
        self.keep_values();
        self.values.clear();
    }
}
