//! Short addresses: pointers into the middle of words that straight code goes to often.
//!
//! An instruction of x86-64 that goes up to 128 bytes before a pointer, or 127 behind it, is three
//! bytes shorter than one that goes farther. Kernels are long, and run from the first instruction
//! to the last, so that they are fetched as fast as they run: that of a coupled recurrence, and
//! those of CartPole, have a tenth less code, and the latter take up to a tenth less time.

use core::cmp::Reverse;

use cranelift_codegen::ir::types::{F64, I64};
use cranelift_codegen::ir::{InstBuilder, MemFlagsData, Value};
use smallvec::SmallVec;

use super::lower::{Lowered, Lowering, offset};
use super::plan::{Source, Step};
use crate::ssa::Node;

/// How many words are near to a pointer to their middle.
const SPAN: u32 = 32;
/// How many of them come before the middle.
const BEFORE: u32 = SPAN / 2;
/// From so many accesses on a pointer is worth it: it takes ten bytes, for a move and a
/// subtraction, and each access saves three.
const WORTH: usize = 4;
/// How many pointers are kept at once. With those to the buffers, and to what loops keep
/// (`memory`), they take 12 of the 14 registers.
const MAX_WINDOWS: usize = 3;

/// One of the buffers, by its number in the signature.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Buffer {
    Active,
    Inactive,
    Constants,
    Scratch,
    Outputs,
}

/// A word of a buffer, by its number there.
pub(super) type Word = (Buffer, u32);

/// Words that a pointer is kept for.
struct Window {
    first: Word,
    /// The pointer to their middle, once it has been made.
    pointer: Option<Value>,
}

/// What is near in a stretch of straight code.
#[derive(Default)]
pub(super) struct Near(SmallVec<[Window; MAX_WINDOWS]>);

impl Near {
    /// Chooses what to keep pointers for in straight code that goes to `words`.
    fn of(words: impl Iterator<Item = Word>) -> Self {
        let mut near = Near::default();
        if !cfg!(target_arch = "x86_64") {
            return near;
        }
        // The first words of a buffer are near to its pointer.
        let mut words: Vec<Word> = words.filter(|&(_, word)| word >= BEFORE).collect();
        words.sort_unstable();
        while near.0.len() < MAX_WINDOWS
            && let Some((start, count)) = densest(&words)
            && count >= WORTH
        {
            near.0.push(Window { first: words[start], pointer: None });
            words.drain(start..start + count);
        }
        near
    }

    fn window(&mut self, (buffer, word): Word) -> Option<&mut Window> {
        let is_in = |window: &&mut Window| {
            let (of, first) = window.first;
            of == buffer && (first..first.saturating_add(SPAN)).contains(&word)
        };
        self.0.iter_mut().find(is_in)
    }
}

/// Where the largest run of `words`, which ascend, begins that fits into one window, and how many
/// they are; the first one of several.
fn densest(words: &[Word]) -> Option<(usize, usize)> {
    let mut end = 0;
    let counts = words.iter().enumerate().map(|(start, &(buffer, word))| {
        let fits = |&(of, other): &Word| of == buffer && other - word < SPAN;
        while words.get(end).is_some_and(fits) {
            end += 1;
        }
        (start, end - start)
    });
    counts.min_by_key(|&(_, count)| Reverse(count))
}

impl Lowering<'_, '_> {
    /// Chooses what is near in `steps`, straight code in which nothing but the last step is a call:
    /// that may change the registers of all pointers.
    pub(super) fn approach(&mut self, steps: &[Step]) {
        self.near = Near::of(steps.iter().filter_map(|&step| self.word_of(step)));
    }

    /// Where `word` is, as a pointer and a distance from it in bytes.
    pub(super) fn address(&mut self, word: Word) -> (Value, i32) {
        let (buffer, number) = word;
        let base = self.buffers[buffer as usize];
        let Some(window) = self.near.window(word) else { return (base, offset(number)) };
        // The middle may be beyond the end of the buffer.
        let middle = i64::from(window.first.1 + BEFORE);
        let pointer = *window.pointer.get_or_insert_with(|| {
            // Cranelift would make a sum with a constant part of each address again, but not a
            // difference.
            let less = self.builder.ins().iconst(I64, -8 * middle);
            self.builder.ins().isub(base, less)
        });
        let distance = 8 * (i64::from(number) - middle);
        debug_assert!(i8::try_from(distance).is_ok(), "the window is as large as is near");
        (pointer, distance as i32)
    }

    /// Brings `word` into a register, as the value of `node`.
    pub(super) fn load_word(&mut self, word: Word, node: Node) {
        let flags = match word.0 {
            Buffer::Scratch | Buffer::Outputs => MemFlagsData::trusted(),
            Buffer::Active | Buffer::Inactive | Buffer::Constants => {
                MemFlagsData::trusted().with_readonly()
            }
        };
        let (pointer, distance) = self.address(word);
        let value = self.builder.ins().load(F64, flags, pointer, distance);
        self.values.insert(node, Lowered::Number(value));
    }

    /// Copies the value of `node` to `word`.
    pub(super) fn store_word(&mut self, node: Node, word: Word) {
        let value = self.number(node);
        let (pointer, distance) = self.address(word);
        self.builder.ins().store(MemFlagsData::trusted(), value, pointer, distance);
    }

    /// The word that a step brings from `source`, unless loops decide which one it is.
    pub(super) fn word_at(&self, source: Source) -> Option<Word> {
        match source {
            Source::Active(index) => Some((Buffer::Active, index)),
            Source::Inactive(index) => Some((Buffer::Inactive, index)),
            Source::Const(index) => Some((Buffer::Constants, index)),
            Source::Slot(slot) => Some(self.slot(slot)),
            Source::Home | Source::Iteration(_) => None,
        }
    }

    pub(super) fn slot(&self, slot: u32) -> Word {
        (Buffer::Scratch, self.layout.words + slot)
    }

    /// The word that `step` goes to, as far as pointers are chosen by it: what loops keep has its
    /// own.
    fn word_of(&self, step: Step) -> Option<Word> {
        match step {
            Step::Load(_, source) => self.word_at(source),
            Step::Store(_, slot) => Some(self.slot(slot)),
            Step::Write(_, word) => Some((Buffer::Scratch, word)),
            Step::Output(index, _) => Some((Buffer::Outputs, index)),
            Step::Compute(_)
            | Step::Guard(..)
            | Step::Zero(..)
            | Step::ZeroOutputs(..)
            | Step::Keep(..)
            | Step::Accumulate(..)
            | Step::Begin(_)
            | Step::Last(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first words of the windows that are chosen for accesses to these words.
    #[cfg(target_arch = "x86_64")]
    fn chosen(words: &[u32]) -> Vec<u32> {
        let near = Near::of(words.iter().map(|&word| (Buffer::Scratch, word)));
        near.0.iter().map(|window| window.first.1).collect()
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn windows_are_where_most_accesses_are() {
        // What is near to the begin of the buffer, and what is rare, needs none.
        assert_eq!(chosen(&[0, 3, 15, 15, 15, 40, 50, 60]), [0u32; 0]);
        assert_eq!(chosen(&[40, 50, 60, 71, 72, 72]), [50]);
        assert_eq!(chosen(&[20, 21, 22, 23, 300, 300, 300, 300, 310]), [300, 20]);
        let all: Vec<u32> = (16..1000).collect();
        assert_eq!(chosen(&all), [16, 48, 80]);
        let last = u32::MAX / 16;
        assert_eq!(chosen(&[last; 4]), [last]);
    }

    #[test]
    fn buffers_have_windows_of_their_own() {
        let places = [20, 21, 22].map(|word| (Buffer::Constants, word));
        let others = [20, 21, 22].map(|word| (Buffer::Scratch, word));
        let mut near = Near::of(places.into_iter().chain(others));
        assert!(near.window(places[0]).is_none() && near.window(others[0]).is_none());
        let mut near = Near::of(places.into_iter().chain([(Buffer::Constants, 51)]));
        let is_there = near.window(places[0]).is_some();
        assert_eq!(is_there, cfg!(target_arch = "x86_64"));
        assert!(near.window(others[0]).is_none() && near.window((Buffer::Constants, 52)).is_none());
    }
}
