//! Reuse-aware division of a schedule into units of compilation (section 4 of the paper).
//!
//! The region tree is that of the schedule: its inner nodes are the regions and the arms of
//! branches, its leaves the straight-line code between them. A region within the limit is kept
//! whole. A larger one is divided into its children, and a leaf over the limit is split in two,
//! recursively. Neighbours are then merged up to the limit, wherever they are in the tree, since
//! consecutive code can be compiled together.
//!
//! The paper splits a leaf after the value with the most references, so that a reused value is
//! computed once and becomes one input of the next segment. Here a leaf is split where the fewest
//! values cross that are used soon, and among such places after the value with the most
//! references. (Splitting by references first lets more words cross than cutting straight-line
//! programs at equal distances; this, up to a fifth fewer.) Between two uses that are farther
//! apart than the limit a value goes through the buffer wherever the cuts are.

use core::cmp::Reverse;
use core::ops::Range;

use crate::ssa::Sequence;

/// The cuts of `sequence`: the first steps of all segments but the first one, ascending. Each
/// segment has at most `limit` steps.
///
/// The work is proportional to the number of steps and uses.
///
/// # Examples
///
/// ```
/// use phigrad::internals::jit::schedule;
/// use phigrad::internals::soi::{crossing, cut, cut_evenly};
/// use phigrad::internals::ssa::parse;
///
/// // At three places only one value is needed later: after v1, v4, and v7.
/// let text = "graph active 1 inactive 0\nb0:\n  v1 = sin v0\n  v2 = cos v1\n  v3 = exp v1\n  \
///             v4 = mul v3 v2\n  v5 = sin v4\n  v6 = exp v4\n  v7 = add v5 v6\n  return v7\n";
/// let graph = parse(text)?;
/// let sequence = schedule(&graph)?.sequence();
/// let (aware, even) = (cut(&sequence, 6), cut_evenly(&sequence, 6));
/// assert_eq!((&aware[..], &even[..]), (&[4][..], &[6][..]));
/// assert_eq!((crossing(&sequence, &aware), crossing(&sequence, &even)), (1, 2));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn cut(sequence: &Sequence, limit: usize) -> Vec<u32> {
    let (limit, steps) = (bounded(limit), sequence.steps as usize);
    // The number of values that cross into each step, as differences to the step before, and the
    // number of uses of what the step before computes.
    let (mut crossing, mut references) = (vec![0i32; steps + 2], vec![0u32; steps + 2]);
    for value in &sequence.values {
        references[value.begin as usize + 1] += value.uses.len() as u32;
        let mut last = value.begin;
        for &step in &value.uses {
            if step.abs_diff(last) < limit {
                crossing[last as usize + 1] += 1;
                crossing[step as usize + 1] -= 1;
            }
            last = step;
        }
    }
    let mut sum = 0;
    for crossing in &mut crossing {
        sum += *crossing;
        *crossing = sum;
    }
    cut_by(sequence, limit, |piece| {
        // The first half has at least half the limit.
        let longest = piece.start + limit;
        let candidates = piece.start + (limit / 2).max(1)..=longest;
        let best = candidates.max_by_key(|&step| {
            (Reverse(crossing[step as usize]), references[step as usize], step)
        });
        best.unwrap_or(longest)
    })
}

/// Like [`cut`], but straight-line code over the limit is cut every `limit` steps: the baseline
/// for [`cut`].
pub fn cut_evenly(sequence: &Sequence, limit: usize) -> Vec<u32> {
    let limit = bounded(limit);
    cut_by(sequence, limit, |piece| piece.start + limit)
}

/// The number of words that cross between the segments of `cuts`: each value counts once for each
/// segment that uses it and does not compute it.
pub fn crossing(sequence: &Sequence, cuts: &[u32]) -> usize {
    let segment = |step: u32| cuts.partition_point(|&cut| cut <= step);
    let mut words = 0;
    for value in &sequence.values {
        let mut last = segment(value.begin);
        for &step in &value.uses {
            let here = segment(step);
            words += usize::from(here != last);
            last = here;
        }
    }
    words
}

/// The limit as a number of steps, at least 1.
fn bounded(limit: usize) -> u32 {
    u32::try_from(limit).unwrap_or(u32::MAX).max(1)
}

/// The worklist algorithm. `split` chooses the first step of the second half of a piece over the
/// limit.
fn cut_by(sequence: &Sequence, limit: u32, split: impl Fn(&Range<u32>) -> u32) -> Vec<u32> {
    let limit = limit as usize;
    let (mut cuts, mut begin) = (Vec::new(), 0);
    // A stack: the next piece is last.
    let mut worklist = pieces(sequence, limit);
    worklist.reverse();
    while let Some(piece) = worklist.pop() {
        if piece.len() > limit {
            let at = split(&piece).clamp(piece.start + 1, piece.end - 1);
            worklist.extend([at..piece.end, piece.start..at]);
        } else if (begin..piece.end).len() > limit {
            cuts.push(piece.start);
            begin = piece.start;
        }
    }
    cuts
}

/// The regions within the limit, and the straight-line code between them, in order.
fn pieces(sequence: &Sequence, limit: usize) -> Vec<Range<u32>> {
    let mut pieces = Vec::new();
    // The ends of the enclosing regions, all over the limit, the innermost last.
    let (mut here, mut ends) = (0, Vec::new());
    for region in &sequence.regions {
        if region.start < here {
            // Inside a region that is kept whole.
            continue;
        }
        while let Some(end) = ends.pop_if(|end| *end <= region.start) {
            pieces.push(here..end);
            here = end;
        }
        pieces.push(here..region.start);
        here = region.start;
        if region.len() <= limit {
            pieces.push(region.clone());
            here = region.end;
        } else {
            ends.push(region.end);
        }
    }
    for end in ends.into_iter().rev().chain([sequence.steps]) {
        pieces.push(here..end);
        here = end;
    }
    pieces.retain(|piece| !piece.is_empty());
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ssa::Lifetime;

    fn sequence(steps: u32, regions: &[Range<u32>], values: &[(u32, &[u32])]) -> Sequence {
        let lifetime = |&(begin, uses): &(u32, &[u32])| Lifetime { begin, uses: uses.into() };
        let values = values.iter().map(lifetime).collect();
        Sequence { steps, regions: regions.to_vec(), values }
    }

    #[test]
    fn small_regions_are_whole_and_large_ones_are_divided() {
        let regions = [2..10, 3..5, 6..9, 12..30, 13..20, 20..29, 24..28];
        let sequence = sequence(34, &regions, &[]);
        let expected =
            [0..2, 2..10, 10..12, 12..13, 13..20, 20..24, 24..28, 28..29, 29..30, 30..34];
        assert_eq!(pieces(&sequence, 8), expected);
        let expected = [0..2, 2..10, 10..12, 12..13, 13..20, 20..29, 29..30, 30..34];
        assert_eq!(pieces(&sequence, 9), expected);
        // Merged; 0..2 and 2..10 are too long together.
        assert_eq!(cut_evenly(&sequence, 8), [2, 10, 13, 20, 28]);
    }

    #[test]
    fn straight_line_code_is_split_where_the_fewest_values_cross() {
        // Two values cross into 2 to 6, one into 7 and 8, two into all others.
        let values: [(u32, &[u32]); 3] = [(0, &[3, 6, 8, 11]), (1, &[3, 6]), (8, &[9, 11])];
        let sequence = sequence(12, &[], &values);
        assert_eq!((cut(&sequence, 11), cut_evenly(&sequence, 11)), (vec![8], vec![11]));
        assert_eq!((crossing(&sequence, &[8]), crossing(&sequence, &[6])), (1, 2));
        assert_eq!(crossing(&sequence, &[2, 6]), 4);
    }

    #[test]
    fn uses_beyond_the_limit_do_not_count() {
        let values: [(u32, &[u32]); 2] = [(5, &[15]), (7, &[9, 10])];
        assert_eq!(cut(&sequence(16, &[], &values), 10), [6]);
        let values: [(u32, &[u32]); 2] = [(5, &[14]), (7, &[9, 10])];
        assert_eq!(cut(&sequence(15, &[], &values), 10), [5]);
    }

    #[test]
    fn ties_are_split_after_the_value_with_the_most_references() {
        // One value crosses into all but 1.
        let values: [(u32, &[u32]); 4] =
            [(1, &[2, 3, 4, 5, 6]), (6, &[7, 7, 8]), (8, &[9]), (9, &[11])];
        assert_eq!(cut(&sequence(12, &[], &values), 11), [7]);
    }

    #[test]
    fn segments_are_bounded_and_cuts_ascend() {
        let regions = [5..90, 6..40, 40..89, 100..130];
        let values: Vec<(u32, Vec<u32>)> =
            (0..200).map(|begin| (begin, vec![begin + 1, begin + 2 + begin % 7])).collect();
        let values: Vec<(u32, &[u32])> = values.iter().map(|(b, uses)| (*b, &uses[..])).collect();
        let sequence = sequence(220, &regions, &values);
        for limit in [0, 1, 2, 3, 7, 30, 34, 35, 100, 219, 220] {
            for cuts in [cut(&sequence, limit), cut_evenly(&sequence, limit)] {
                let starts = [0].into_iter().chain(cuts.iter().copied());
                let ends = cuts.iter().copied().chain([220]);
                let sizes: Vec<i64> =
                    starts.zip(ends).map(|(a, b)| i64::from(b) - i64::from(a)).collect();
                let fits = |&size: &i64| (1..=limit.max(1) as i64).contains(&size);
                assert!(sizes.iter().all(fits), "{limit}: {sizes:?}");
                // No two neighbours could have been merged.
                assert!(sizes.windows(2).all(|two| two[0] + two[1] > limit as i64), "{sizes:?}");
            }
        }
    }
}
