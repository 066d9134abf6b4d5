//! Periodic runs in a list of templates (repetitions in the sense of stringology).

use hashbrown::HashMap;

use super::RerollLimits;
use super::template::TemplateId;

/// A run in which each template equals the one a period before, from the second period on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::loops) struct PeriodicRun {
    pub(in crate::loops) period: usize,
    pub(in crate::loops) start: usize,
    pub(in crate::loops) end: usize,
}

/// The limit on comparisons for each template of the list.
const WORK: usize = 64;

/// The runs of at least as many periods as a loop needs iterations, short periods first. Periods
/// are the distances of a template to its last few occurrences.
pub(in crate::loops) fn runs(templates: &[TemplateId], limits: &RerollLimits) -> Vec<PeriodicRun> {
    let count = templates.len();
    let iterations = limits.iterations.max(2) as usize;
    let longest = count / iterations;
    if longest == 0 {
        return Vec::new();
    }
    let mut last = HashMap::with_capacity(count.min(1 << 10));
    let previous: Vec<Option<usize>> =
        templates.iter().enumerate().map(|(at, &template)| last.insert(template, at)).collect();
    let mut runs = Vec::new();
    // The end of the last run compared for each period.
    let mut ends = vec![0; longest + 1];
    let mut work = count.saturating_mul(WORK);
    for at in 0..count {
        let mut earlier = previous[at];
        for _ in 0..limits.occurrences {
            let Some(start) = earlier.filter(|&start| at - start <= longest) else { break };
            earlier = previous[start];
            let period = at - start;
            if ends[period] > at {
                continue;
            }
            let mut end = at + 1;
            while end < count && templates[end] == templates[end - period] {
                end += 1;
            }
            ends[period] = end;
            if end - start >= period * iterations {
                runs.push(PeriodicRun { period, start, end });
            }
            work = work.saturating_sub(end - at);
        }
        if work == 0 {
            break;
        }
    }
    runs.sort_unstable();
    runs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entity::Entity;

    fn found(text: &str) -> Vec<(usize, usize, usize)> {
        let templates: Vec<TemplateId> =
            text.bytes().map(|byte| TemplateId::from_index(usize::from(byte))).collect();
        let runs = runs(&templates, &RerollLimits::default());
        runs.iter().map(|run| (run.period, run.start, run.end)).collect()
    }

    #[test]
    fn runs_are_found_with_their_remainders() {
        assert_eq!(found("xabcabcabcabcabz"), [(3, 1, 15)]);
        assert_eq!(found("abcabcabcx"), []);
        assert_eq!(found("aaaab"), [(1, 0, 4)]);
        assert_eq!(found("abacabacabacabac"), [(4, 0, 16)]);
        assert!(found("aabaabaabaabaab").contains(&(3, 0, 15)));
        assert_eq!(found(""), []);
    }
}
