//! A seeded random number generator (SplitMix64), the same on all hosts.

/// A random number generator.
///
/// SplitMix64: G. L. Steele, D. Lea, C. H. Flood, "Fast splittable pseudorandom
/// number generators", OOPSLA 2014. Good enough for tests, not for secrets.
///
/// # Examples
///
/// ```
/// use phigrad::internals::Random;
///
/// let (mut a, mut b) = (Random::new(7), Random::new(7));
/// assert_eq!(a.bits(), b.bits());
/// assert!((1.0..2.0).contains(&a.uniform(1.0, 2.0)));
/// ```
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
    /// Numbers to return first; a stack.
    choices: Vec<u16>,
}

impl Random {
    /// The generator with this seed.
    pub const fn new(seed: u64) -> Self {
        Random { state: seed, choices: Vec::new() }
    }

    /// A generator whose first numbers are these bytes, two for each, so that a fuzzer that
    /// changes one of them changes one choice.
    ///
    /// # Examples
    ///
    /// ```
    /// use phigrad::internals::Random;
    ///
    /// assert_eq!(Random::from_choices(&[0xff, 0xff]).below(10), 9);
    /// ```
    pub fn from_choices(bytes: &[u8]) -> Self {
        let pairs = bytes.chunks_exact(2).rev();
        let choices = pairs.map(|pair| u16::from_be_bytes([pair[0], pair[1]])).collect();
        Random { state: bytes.len() as u64, choices }
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        if let Some(choice) = self.choices.pop() {
            return u64::from(choice) << 48;
        }
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from `low` up to but not including `high`.
    pub fn uniform(&mut self, low: f64, high: f64) -> f64 {
        let unit = (self.bits() >> 11) as f64 * (0.5 * f64::EPSILON);
        low + unit * (high - low)
    }

    /// An index below `count`; 0 when `count` is 0.
    pub fn below(&mut self, count: usize) -> usize {
        // The bias is `count / 2^64`.
        ((u128::from(self.bits()) * count as u128) >> 64) as usize
    }

    /// Returns true with this probability.
    pub fn chance(&mut self, probability: f64) -> bool {
        self.uniform(0.0, 1.0) < probability
    }

    /// A random element of `items`.
    ///
    /// # Panics
    ///
    /// If there is none.
    pub fn pick<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_is_the_published_one() {
        let mut random = Random::new(1_234_567);
        let found = [random.bits(), random.bits(), random.bits()];
        assert_eq!(found, [6457827717110365317, 3203168211198807973, 9817491932198370423]);
    }

    #[test]
    fn indices_and_numbers_stay_in_range() {
        let mut random = Random::new(0);
        let mut seen = [false; 5];
        for _ in 0..200 {
            seen[random.below(5)] = true;
            assert!((-1.0..1.0).contains(&random.uniform(-1.0, 1.0)));
        }
        assert_eq!((seen, random.below(0)), ([true; 5], 0));
    }
}
