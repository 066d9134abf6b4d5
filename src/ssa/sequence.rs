//! Code in the order in which it is run, as far as it matters for dividing it.

use core::ops::Range;

use smallvec::SmallVec;

/// The steps of a program in the order in which they are run, by their numbers.
///
/// # Examples
///
/// ```
/// use phigrad::internals::jit::schedule;
/// use phigrad::internals::ssa::parse;
///
/// let text = "graph active 1 inactive 0\nb0:\n  v1 = sin v0\n  v2 = mul v1 v1\n  return v2\n";
/// let graph = parse(text)?;
/// // The two nodes, the output and the end.
/// let sequence = schedule(&graph)?.sequence();
/// assert_eq!((sequence.steps, sequence.values.len()), (4, 2));
/// assert_eq!((sequence.values[0].begin, &sequence.values[0].uses[..]), (0, &[1, 1][..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sequence {
    /// How many steps there are.
    pub steps: u32,
    /// The steps of each region, and of each side of a branch: two of them are apart,
    /// or one is in the other. They are in the order of their first steps, the outer
    /// one before the inner one.
    pub regions: Vec<Range<u32>>,
    /// What is computed in one step and used in others.
    pub values: Vec<Lifetime>,
}

/// Where a value comes from, and where it is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lifetime {
    /// The step that computes it.
    pub begin: u32,
    /// The steps that use it, in order, each as often as it does.
    pub uses: SmallVec<[u32; 4]>,
}
