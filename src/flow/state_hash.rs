//! Hashes of static state.

use core::hash::Hasher;

/// A list of words of static state, of which only the number and a hash are kept.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct StateHash {
    words: u64,
    /// The only word, or a hash of several.
    hash: u64,
}

impl StateHash {
    /// The number of words.
    pub(super) fn len(self) -> u64 {
        self.words
    }

    /// Adds a word.
    pub(super) fn add(&mut self, word: u64) {
        self.hash = match self.words {
            0 => word,
            1 => mix(mix(0, self.hash), word),
            _ => mix(self.hash, word),
        };
        self.words += 1;
    }

    /// Adds the position of a traced number among the words. It is scrambled, so that no state of
    /// the user's is like it.
    pub(super) fn add_traced(&mut self) {
        self.add(self.words.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0xd6e8_feb8_6659_fd93);
    }

    /// The word, if it is the only one; otherwise a hash of all.
    pub(super) fn word_or_hash(self) -> u64 {
        self.hash
    }

    /// A hash of `before`, the number of words, and the words.
    pub(super) fn after(self, before: u64) -> u64 {
        mix(mix(before, self.words), self.hash)
    }

    /// A hash of the number of words and the words.
    pub(super) fn finish(self) -> u64 {
        mix(self.words, self.hash)
    }
}

/// Hashes a type id, which is a hash already.
#[derive(Debug, Default)]
pub(super) struct WordHasher(u64);

impl Hasher for WordHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for bytes in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = mix(self.0, word);
    }
}

/// A hash of a list of words: every bit of the result depends on every bit of each word.
pub(super) fn mix(hash: u64, word: u64) -> u64 {
    let mut bits = (hash ^ word).wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    (bits ^ bits >> 31).wrapping_add(hash.rotate_left(23))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The hash of words; `None` is a traced number.
    fn hash(words: &[Option<u64>]) -> u64 {
        let mut hash = StateHash::default();
        for word in words {
            match word {
                Some(word) => hash.add(*word),
                None => hash.add_traced(),
            }
        }
        hash.finish()
    }

    #[test]
    fn no_number_is_like_a_traced_one() {
        for word in [0, 1, 3, u64::MAX] {
            assert_ne!(hash(&[Some(word)]), hash(&[None]));
            assert_ne!(hash(&[Some(word), None]), hash(&[None, Some(word)]));
        }
    }

    #[test]
    fn a_single_word_is_kept() {
        let mut state = StateHash::default();
        state.add(7);
        assert_eq!((state.len(), state.word_or_hash()), (1, 7));
    }
}
