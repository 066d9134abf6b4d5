//! The sites of events, compressed: loops pass the same sites in each iteration, so segments that
//! repeat are stored as one period.

use core::cell::Cell;
use core::panic::Location;
use core::ptr;

use hashbrown::HashMap;

use super::Site;

/// The first sites are stored uncompressed: copying what fits into the cache is faster than
/// comparing.
const SHORT: usize = 1 << 14;

/// A compressed sequence of sites.
#[derive(Debug)]
pub(super) struct Sites {
    /// The stored periods of all segments.
    kept: Vec<Site>,
    segments: Vec<Segment>,
    len: usize,
    /// The latest period found.
    period: usize,
    /// True if the latest block of sites does not repeat: a gap between segments that do.
    is_gap: bool,
    /// The border lengths of all prefixes of the latest block (Knuth, Morris and Pratt); kept for
    /// its memory.
    borders: Vec<usize>,
}

/// The sites up to the next segment: a stored period, repeated.
#[derive(Clone, Copy, Debug)]
struct Segment {
    /// The index of its first site.
    first: usize,
    /// The index in `kept` of its period.
    kept: usize,
    /// The length of the period.
    period: usize,
}

impl Default for Sites {
    fn default() -> Self {
        Sites::new()
    }
}

impl Sites {
    pub(super) const fn new() -> Self {
        Sites {
            kept: Vec::new(),
            segments: Vec::new(),
            len: 0,
            period: 1,
            is_gap: true,
            borders: Vec::new(),
        }
    }

    pub(super) fn clear(&mut self) {
        self.kept.clear();
        self.segments.clear();
        (self.len, self.period, self.is_gap) = (0, 1, true);
    }

    /// Appends `site`, `count` times.
    pub(super) fn push_repeated(&mut self, site: Site, count: usize) {
        if count > 0 {
            self.begin(1);
            self.kept.push(site);
            self.len += count;
        }
    }

    /// Sets all following sites to `site`; nothing may be appended afterwards.
    pub(super) fn end_with(&mut self, site: Site) {
        self.begin(1);
        self.kept.push(site);
    }

    /// Appends `new`.
    pub(super) fn extend(&mut self, new: &[Cell<Site>]) {
        if self.len < SHORT {
            self.keep(new, new.len());
        } else if !self.continues(new) {
            let period = self.period_after_gap(new);
            self.is_gap = period == new.len();
            self.keep(new, period);
        }
        self.len += new.len();
    }

    /// The number of sites of `new` to store, which do not continue the latest segment.
    ///
    /// Between two runs of an inner loop there is a gap of one block, after which the old
    /// period returns. So a block after a period is stored whole, without a search.
    fn period_after_gap(&mut self, new: &[Cell<Site>]) -> usize {
        if self.period < new.len() && repeats(new, &new[self.period..]) {
            return self.period;
        }
        if !self.is_gap {
            return new.len();
        }
        let period = self.period(new);
        if period < new.len() {
            self.period = period;
        }
        period
    }

    /// Stores the first `period` of `new`, which repeat in the others.
    fn keep(&mut self, new: &[Cell<Site>], period: usize) {
        match self.segments.last_mut() {
            // No repetition so far.
            Some(latest) if latest.first + latest.period == self.len && period == new.len() => {
                latest.period += period;
            }
            _ => self.begin(period),
        }
        self.kept.extend(new[..period].iter().map(Cell::get));
    }

    /// Tests whether `new` continues the latest segment.
    fn continues(&self, new: &[Cell<Site>]) -> bool {
        let Some(latest) = self.segments.last() else { return new.is_empty() };
        let period_sites = &self.kept[latest.kept..];
        let phase = (self.len - latest.first) % latest.period;
        let (head, tail) = new.split_at(latest.period.min(new.len()));
        let expected = period_sites[phase..].iter().chain(period_sites);
        expected.zip(head).all(|(&old, new)| ptr::eq(old, new.get())) && repeats(new, tail)
    }

    /// The shortest period of `sites`.
    ///
    /// By the algorithm of Knuth, Morris and Pratt, in linear time: at the end of an inner loop
    /// long parts repeat, but not all.
    fn period(&mut self, sites: &[Cell<Site>]) -> usize {
        let is_same = |i: usize, j: usize| ptr::eq(sites[i].get(), sites[j].get());
        self.borders.clear();
        let mut border = 0;
        for i in 0..sites.len() {
            while border > 0 && !is_same(i, border) {
                border = self.borders[border - 1];
            }
            border += usize::from(i > 0 && is_same(i, border));
            self.borders.push(border);
        }
        sites.len() - border
    }

    /// Begins a segment; its period is stored next.
    fn begin(&mut self, period: usize) {
        self.segments.push(Segment { first: self.len, kept: self.kept.len(), period });
    }

    /// A number for each site, equal for equal sites, in order of first occurrence.
    pub(super) fn numbers(&self) -> Vec<u32> {
        let mut known: HashMap<*const Location<'static>, u32> = HashMap::new();
        let kept = self.kept.iter().map(|&site| {
            let next = known.len() as u32;
            *known.entry(ptr::from_ref(site)).or_insert(next)
        });
        let kept: Vec<u32> = kept.collect();
        let mut numbers = Vec::with_capacity(self.len);
        for (index, segment) in self.segments.iter().enumerate() {
            let end = self.segments.get(index + 1).map_or(self.len, |next| next.first);
            let period_sites = &kept[segment.kept..][..segment.period];
            while numbers.len() < end {
                let count = period_sites.len().min(end - numbers.len());
                numbers.extend_from_slice(&period_sites[..count]);
            }
        }
        numbers
    }

    /// The site of event number `index`.
    pub(super) fn at(&self, index: usize) -> Site {
        let segment = match self.segments.last() {
            Some(&last) if last.first <= index => last,
            _ => {
                let next = self.segments.partition_point(|segment| segment.first <= index);
                self.segments[next - 1]
            }
        };
        let offset = index - segment.first;
        // Short runs are one segment, and division is slow.
        let phase = if offset < segment.period { offset } else { offset % segment.period };
        self.kept[segment.kept + phase]
    }
}

/// Tests whether `tail` is a prefix of `sites`.
fn repeats(sites: &[Cell<Site>], tail: &[Cell<Site>]) -> bool {
    // Without an exit at the first difference, so that the loop is vectorised.
    let differences = sites.iter().zip(tail).map(|(old, new)| address(old) ^ address(new));
    differences.fold(0, |all, one| all | one) == 0
}

fn address(site: &Cell<Site>) -> usize {
    ptr::from_ref(site.get()).addr()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// Different sites.
    #[rustfmt::skip]
    fn places() -> [Site; 8] {
        #[track_caller]
        fn here() -> Site { Location::caller() }
        [here(), here(), here(), here(), here(), here(), here(), here()]
    }

    #[test]
    fn sites_survive_compression() {
        let places = places();
        // Several periods, two with a shorter border, and no period.
        let kinds: [&dyn Fn(usize) -> usize; 5] =
            [&|_| 3, &|i| i % 4, &|i| i % 5, &|i| [0, 1, 0, 2, 0, 1, 0][i % 7], &|i| i * i / 3 % 8];
        let mut random = Random::new(1);
        let mut random = |count: usize| random.below(count);
        for _ in 0..300 {
            let (mut sites, mut expected) = (Sites::new(), Vec::new());
            sites.push_repeated(places[7], random(2) * SHORT + random(3));
            expected.resize(sites.len, places[7]);
            for _ in 0..random(8) {
                let kind = kinds[random(kinds.len())];
                let from = random(9);
                let piece: Vec<Site> = (from..from + random(70)).map(|i| places[kind(i)]).collect();
                for block in piece.chunks(1 + random(40)) {
                    sites.extend(&block.iter().map(|&site| Cell::new(site)).collect::<Vec<_>>());
                }
                expected.extend(piece);
            }
            assert_eq!(sites.len, expected.len());
            assert!(expected.iter().enumerate().all(|(i, &site)| ptr::eq(site, sites.at(i))));
            let numbers = sites.numbers();
            assert_eq!(numbers.len(), expected.len());
            for (i, number) in numbers.iter().enumerate().skip(1) {
                let other = numbers[i / 2] == *number;
                assert_eq!(other, ptr::eq(expected[i / 2], expected[i]));
            }
        }
    }

    #[test]
    fn a_loop_is_stored_once() {
        let places = places();
        let mut sites = Sites::new();
        sites.push_repeated(places[7], SHORT);
        for block in 0..100 {
            let block: Vec<_> =
                (0..128).map(|i| Cell::new(places[(block * 128 + i) % 7])).collect();
            sites.extend(&block);
        }
        assert_eq!((sites.len, sites.kept.len()), (SHORT + 12_800, 1 + 7));
    }
}
