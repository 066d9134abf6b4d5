//! Marks: events that record the control flow of annotated functions.
//!
//! A mark fails a run only if it reaches the limit of events.

use super::event::Step;
use super::payload::Payload;
use super::run::CarriedName;
use super::{Operand, Role, Site, Var, recorder};

/// Records that a region begins at `at`. Returns its id in this run, or 0 if nothing is recorded.
#[inline]
pub(crate) fn enter(at: Site) -> u32 {
    let id = recorder::next_region();
    if id != 0 && append(Role::Enter, Payload::enter(id), at).is_none() { 0 } else { id }
}

/// The kind of code that ends at a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// A region.
    Region,
    /// An iteration of a `for` loop; the iterator's position is not carried.
    Item,
    /// An iteration of another loop.
    Iteration,
}

/// Records that region `id` ends, or that loop `id` passes its head. Returns whether the values
/// carried there have to be recorded: they have not if nothing is recorded, or if there is a single
/// path.
#[inline]
pub(crate) fn end(id: u32, ending: Ending, single_path: bool, at: Site) -> bool {
    let role = match ending {
        Ending::Region => Role::Join,
        Ending::Item | Ending::Iteration => Role::Iterate,
    };
    let payload = Payload::end(id, single_path, ending == Ending::Iteration);
    let carries = id != 0 && append(role, payload, at).is_some() && !single_path;
    recorder::set_carries(carries);
    carries
}

/// Tests whether the latest mark is followed by carried values.
#[inline]
pub(crate) fn carries() -> bool {
    recorder::carries()
}

/// The number of guards passed since which paths have not joined.
#[inline]
pub(crate) fn unjoined() -> u32 {
    recorder::unjoined()
}

/// All paths join here, but for `unjoined` guards passed before.
#[inline]
pub(crate) fn paths_join(unjoined: u32) {
    recorder::set_unjoined(unjoined);
}

/// Paths do not join here: at least one guard more than `unjoined` counts as passed.
#[inline]
pub(crate) fn paths_stay_apart(unjoined: u32) {
    recorder::set_unjoined(recorder::unjoined().max(unjoined + 1));
}

/// A hash of the guards and the tag of the next event: they change with every guard and every
/// event.
#[inline]
pub(crate) fn progress() -> (u64, u64) {
    recorder::progress()
}

/// Tests whether live-in values are captured.
#[inline]
pub(crate) fn captures() -> bool {
    recorder::captures()
}

/// Captures the live-in values of the region just entered; `key` is a hash of its static state.
pub(crate) fn capture(key: u64, operands: Vec<Operand>) {
    recorder::capture(|captures, event| {
        captures.push(event, key, &operands);
        captures.return_spare(operands);
    });
}

/// An empty list for the operands of a capture.
pub(crate) fn operands() -> Vec<Operand> {
    recorder::spare_operands()
}

/// Captures for the region just entered, after [`capture`], its live-in values together with those
/// carried to the ends of the regions `targets`, to which jumps lead out of it.
pub(crate) fn capture_for_jumps(key: u64, targets: &[u32], operands: Vec<Operand>) {
    recorder::capture(|captures, event| {
        captures.push_for_jumps(event, key, targets, &operands);
        captures.return_spare(operands);
    });
}

/// The operand for `var`; `None` for a `Var` of another recording.
pub(crate) fn operand(var: Var) -> Option<Operand> {
    match var.is_constant() {
        true => Some(Operand::Constant(var.value)),
        false => recorder::is_own(var.tag()).then_some(Operand::Event(var.tag() as u32)),
    }
}

/// The number of `var`, which is not read out of the trace.
#[inline]
pub(crate) fn number(var: Var) -> f64 {
    var.value
}

/// Records carried static state, that of the variable `of`.
pub(crate) fn state(bits: u64, of: CarriedName, at: Site) {
    if let Some(tag) = append(Role::State, Payload::state(bits), at) {
        recorder::name_state(tag, of);
    }
}

/// Records that the carried static state names inputs by index.
pub(crate) fn names_input(at: Site) {
    append(Role::NamesInput, Payload::NONE, at);
}

/// Records that `name` is carried and its content is not known.
pub(crate) fn opaque(name: &'static str, at: Site) {
    if let Some(tag) = append(Role::Opaque, Payload::NONE, at) {
        recorder::name(tag, name);
    }
}

/// Records a φ and makes `var` its value. `false` for a `Var` of another recording, which is
/// unchanged: carrying it is not an error, only using it.
pub(crate) fn phi(var: &mut Var, at: Site) -> bool {
    let step = if var.is_constant() {
        Step::phi_of_constant(var.value)
    } else if recorder::is_own(var.tag()) {
        Step::phi(var.tag() as u32)
    } else {
        return false;
    };
    // At the limit the run has failed and its events are dropped.
    if let Some(tag) = recorder::append(var.value, step, at) {
        *var = Var::traced(var.value, tag);
    }
    true
}

/// A traced number as static state, where it cannot become a φ.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum StaticValue {
    Constant(f64),
    /// An input, by its index. [`names_input`] has to follow the state.
    Input(u32),
}

/// Static state that identifies `var`; `None` if it is neither a constant nor an input.
pub(crate) fn static_value(var: Var) -> Option<StaticValue> {
    if var.is_constant() {
        return Some(StaticValue::Constant(var.value));
    }
    let index = var.tag() as u32;
    let input = recorder::is_own(var.tag()) && recorder::is_input(index);
    input.then_some(StaticValue::Input(index))
}

#[inline]
fn append(role: Role, payload: Payload, at: Site) -> Option<u64> {
    recorder::append(0.0, Step::none(role, payload), at)
}
