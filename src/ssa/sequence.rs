//! A schedule with its live ranges, the input of `soi::cut`.

use core::ops::Range;

use smallvec::SmallVec;

/// The steps of a schedule in execution order, by number.
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
    /// The number of steps.
    pub steps: u32,
    /// The steps of each region and of each arm of a branch. Two ranges are disjoint or nested;
    /// they are sorted by first step, outer before inner.
    pub regions: Vec<Range<u32>>,
    /// The values that are computed in one step and used in others.
    pub values: Vec<Lifetime>,
}

/// The live range of a value: its definition and its uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lifetime {
    /// The step that computes the value.
    pub begin: u32,
    /// The steps that use the value, in order; a step that uses it twice is there twice.
    pub uses: SmallVec<[u32; 4]>,
}
