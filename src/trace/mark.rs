//! Marks: what the control flow of annotated functions records.
//!
//! Nothing here can fail a run, except that the limit of events is reached.

use super::captures::for_jumps;
use super::event::{ONE_WAY, Step, WHOLE};
use super::{Operand, Role, Site, Var, recorder};

/// A region begins at `at`. Returns its id in this run; 0, with which nothing
/// is recorded, if this is no recording.
#[inline]
pub(crate) fn enter(at: Site) -> u32 {
    let id = recorder::next_region();
    if id != 0 && append(Role::Enter, u64::from(id), at).is_none() { 0 } else { id }
}

/// What ends with a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// A region.
    Region,
    /// An iteration of a loop through items; their position is not carried.
    Item,
    /// An iteration of another loop.
    Iteration,
}

/// The head of loop `id` is passed, or region `id` ends. `false` if nothing has to
/// be carried: nothing is recorded, or there is only one way.
#[inline]
pub(crate) fn end(id: u32, ending: Ending, one_way: bool, at: Site) -> bool {
    let (role, whole) = match ending {
        Ending::Region => (Role::Join, 0),
        Ending::Item => (Role::Iterate, 0),
        Ending::Iteration => (Role::Iterate, WHOLE),
    };
    let flag = if one_way { ONE_WAY | whole } else { whole };
    let carries = id != 0 && append(role, u64::from(id) | flag, at).is_some() && !one_way;
    recorder::set_carries(carries);
    carries
}

/// Whether the latest mark of this kind asked for what is carried.
#[inline]
pub(crate) fn carries() -> bool {
    recorder::carries()
}

/// The number of guards passed whose ways have not met since.
#[inline]
pub(crate) fn parted() -> u32 {
    recorder::parted()
}

/// Ways met; so many guards are left whose ways have not.
#[inline]
pub(crate) fn meet(parted: u32) {
    recorder::meet(parted);
}

/// Ways did not meet that parted when so many guards were open: at least one is left.
#[inline]
pub(crate) fn part(parted: u32) {
    recorder::meet(recorder::parted().max(parted + 1));
}

/// Changes with every guard (first) and every event (second) recorded.
#[inline]
pub(crate) fn progress() -> (u64, u64) {
    recorder::progress()
}

/// Whether what regions are given is captured.
#[inline]
pub(crate) fn captures() -> bool {
    recorder::captures()
}

/// The region that was just entered was given these numbers; `key` stands for
/// all else.
pub(crate) fn capture(key: u64, operands: &[Operand]) {
    recorder::capture(|captures, event| captures.push(event, key, operands));
}

/// The region that was just entered, of which all that it was given is captured,
/// was given this together with what is carried to the ends of the regions `goals`,
/// to which jumps lead out of it.
pub(crate) fn capture_for_jumps(key: u64, goals: &[u32], operands: &[Operand]) {
    let operands = for_jumps(goals, operands);
    recorder::capture(|captures, event| captures.push_for_jumps(event, key, &operands));
}

/// What `var` stands for in this recording, if anything.
pub(crate) fn operand(var: Var) -> Option<Operand> {
    match var.is_constant() {
        true => Some(Operand::Constant(var.value)),
        false => recorder::is_own(var.tag).then_some(Operand::Event(var.tag as u32)),
    }
}

/// Static state is carried.
pub(crate) fn state(bits: u64, at: Site) {
    append(Role::State, bits, at);
}

/// The variable `name` is carried, and what it holds is not known.
pub(crate) fn opaque(name: &'static str, at: Site) {
    if let Some(tag) = append(Role::Opaque, 0, at) {
        recorder::name(tag, name);
    }
}

/// Makes `var` an event of its own. `false` for a `Var` of another recording,
/// which stays as it is: to carry it is not yet to use it.
pub(crate) fn phi(var: &mut Var, at: Site) -> bool {
    let step = if var.is_constant() {
        Step::phi_of_constant(var.value)
    } else if recorder::is_own(var.tag) {
        Step::phi(var.tag as u32)
    } else {
        return false;
    };
    // Where the limit is reached the run has failed, and is of no recording.
    if let Some(tag) = recorder::append(var.value, step, at) {
        var.tag = tag;
    }
    true
}

/// Among the state of a point if some of it stands for inputs, as [`fixed`] says.
pub(crate) const FIXED: u64 = 0x6669_7865_6420_2d2d;

/// What stands for `var` where it cannot become an event of its own: the bits
/// of a constant or the index of an input. `None` for other events.
pub(crate) fn fixed(var: Var) -> Option<[u64; 2]> {
    if var.is_constant() {
        return Some([0, var.value.to_bits()]);
    }
    let index = var.tag as u32;
    let input = recorder::is_own(var.tag) && recorder::is_input(index);
    input.then_some([1, u64::from(index)])
}

#[inline]
fn append(role: Role, payload: u64, at: Site) -> Option<u64> {
    recorder::append(0.0, Step::none(role, payload), at)
}
