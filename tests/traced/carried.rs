//! Checks a trace for numbers that pass a join or loop head without being carried.

use phigrad::internals::trace::{Operand, Role, Trace};

/// The sites of operations on numbers that were computed after a guard inside a
/// region and used after its join or loop head without being carried there. On
/// another path such a number does not exist.
pub fn leaks(trace: &Trace<'_>) -> Vec<String> {
    let events: Vec<_> = trace.events.iter().collect();
    let mut lost = vec![false; events.len()];
    // Guards since which paths have not joined.
    let mut split = vec![false; events.len()];
    // Id and start of each open region, or of its latest iteration.
    let mut open: Vec<(u64, usize)> = Vec::new();
    let mut leaks = Vec::new();
    let mut used = |lost: &[bool], operand: Operand, place: String| {
        if let Operand::Event(event) = operand
            && lost[event as usize]
        {
            leaks.push(format!("{} used at {place}", events[event as usize].site()));
        }
    };
    let mut skip = 0;
    for (index, event) in events.iter().enumerate() {
        match event.role() {
            Role::Enter => open.push((event.payload(), index)),
            Role::Join | Role::Iterate => {
                let at = open.iter().rposition(|&(id, _)| id == event.payload()).unwrap();
                let start = open[at].1;
                open.truncate(at);
                if event.role() == Role::Iterate {
                    open.push((event.payload(), index));
                }
                let carried = events[index + 1..]
                    .iter()
                    .take_while(|event| event.role().is_carried())
                    .count();
                let merged = (index + 1..=index + carried)
                    .all(|carried| events[carried].role() != Role::Opaque);
                let guard = (start..index).find(|&at| split[at]).map(|at| at - start);
                // Carried values may be from this region, but not from one that ended.
                skip = carried;
                for event in &events[index + 1..=index + carried] {
                    event.operands().for_each(|o| used(&lost, o, event.site().to_string()));
                }
                if let (Some(guard), true) = (guard, merged) {
                    lost[start + guard..index].fill(true);
                    split[start..index].fill(false);
                }
            }
            _ if skip > 0 => skip -= 1,
            Role::Guard => {
                split[index] = true;
                event.operands().for_each(|o| used(&lost, o, event.site().to_string()));
            }
            _ => {
                for operand in event.operands() {
                    used(&lost, operand, event.site().to_string());
                }
            }
        }
    }
    used(&lost, trace.output, "the end".into());
    leaks
}
