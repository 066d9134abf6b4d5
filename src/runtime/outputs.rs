//! The outputs of functions: numbers in arrays, vectors and tuples, in any nesting.

use core::convert::Infallible;

use smallvec::SmallVec;

use crate::trace::Var;

/// The return type of a recorded function: [`Outputs`], or a `Result` of them with an error of its
/// own.
///
/// An error of the function is returned by the call, inside the library's `Result`; such a call is
/// served by the tape and not recorded.
///
/// # Examples
///
/// ```
/// use phigrad::{Tape, Var};
///
/// #[derive(Debug, PartialEq)]
/// struct Negative;
///
/// let f = Tape::record(|x: &[Var]| if x[0] < 0.0 { Err(Negative) } else { Ok(x[0].sqrt()) });
/// assert_eq!(f.grad(&[4.0])?, Ok(vec![0.25]));
/// assert_eq!(f.grad(&[-4.0])?, Err(Negative));
/// # Ok::<(), phigrad::Error>(())
/// ```
pub trait Output {
    /// The outputs of a call without an error.
    type Outputs: Outputs;
    /// The error of the function.
    type Error;
    /// The result of a call that computes a `T`: `T` itself for a function that has no errors,
    /// otherwise `Result<T, Self::Error>`.
    type Of<T>;

    /// Separates the outputs from an error.
    ///
    /// # Errors
    ///
    /// That of the function.
    fn into_outputs(self) -> Result<Self::Outputs, Self::Error>;

    /// The result of a call with this outcome of the function.
    fn answer<T>(result: Result<T, Self::Error>) -> Self::Of<T>;
}

impl<N: Outputs> Output for N {
    type Outputs = N;
    type Error = Infallible;
    type Of<T> = T;

    fn into_outputs(self) -> Result<N, Infallible> {
        Ok(self)
    }

    fn answer<T>(result: Result<T, Infallible>) -> T {
        match result {
            Ok(value) => value,
            Err(never) => match never {},
        }
    }
}

impl<N: Outputs, E> Output for Result<N, E> {
    type Outputs = N;
    type Error = E;
    type Of<T> = Result<T, E>;

    fn into_outputs(self) -> Result<N, E> {
        self
    }

    fn answer<T>(result: Result<T, E>) -> Result<T, E> {
        result
    }
}

/// Numbers that a recorded function returns: a `Var`, or arrays, vectors and tuples of outputs.
///
/// The numbers are in order: those of the first element, then those of the second. Implement it for
/// a type of your own to return that.
///
/// # Examples
///
/// ```
/// use phigrad::{OutputReader, OutputWriter, Outputs, Tape, Var};
///
/// struct Polar<T> {
///     radius: T,
///     angle: T,
/// }
///
/// impl Outputs for Polar<Var> {
///     type Values = Polar<f64>;
///
///     fn write(self, to: &mut OutputWriter) {
///         to.number(self.radius);
///         to.number(self.angle);
///     }
///
///     fn read(from: &mut OutputReader<'_, f64>) -> Polar<f64> {
///         Polar { radius: from.number(), angle: from.number() }
///     }
///
///     fn read_vars(from: &mut OutputReader<'_, Var>) -> Polar<Var> {
///         Polar { radius: from.number(), angle: from.number() }
///     }
/// }
///
/// let f = Tape::record(|x: &[Var]| Polar { radius: x[0].hypot(x[1]), angle: x[1].atan2(x[0]) });
/// assert_eq!(f.eval(&[3.0, 0.0])?.radius, 3.0);
/// assert_eq!(f.jacobian(&[1.0, 0.0])?, [1.0, 0.0, 0.0, 1.0]);
/// # Ok::<(), phigrad::Error>(())
/// ```
pub trait Outputs {
    /// The same with `f64` in place of [`Var`].
    type Values;

    /// The number of outputs, if that is known for the type. It must equal the number of numbers
    /// that `write` writes: if it is 1 and `write` writes none or several, calls are an error
    /// ([`Error::is_shape`](crate::Error::is_shape)). If it is `None`, the first call with each
    /// length of input runs the function twice.
    const COUNT: Option<usize> = None;

    /// Writes the numbers in order, and the lengths of vectors.
    fn write(self, to: &mut OutputWriter);

    /// Reads the values of the numbers that `write` has written, in the same order.
    fn read(from: &mut OutputReader<'_, f64>) -> Self::Values;

    /// Reads the numbers again that `write` has written, for calls inside other recorded functions.
    fn read_vars(from: &mut OutputReader<'_, Var>) -> Self;
}

impl Outputs for Var {
    type Values = f64;

    const COUNT: Option<usize> = Some(1);

    fn write(self, to: &mut OutputWriter) {
        to.number(self);
    }

    fn read(from: &mut OutputReader<'_, f64>) -> f64 {
        from.number()
    }

    fn read_vars(from: &mut OutputReader<'_, Var>) -> Var {
        from.number()
    }
}

impl<N: Outputs, const LENGTH: usize> Outputs for [N; LENGTH] {
    type Values = [N::Values; LENGTH];

    const COUNT: Option<usize> = match N::COUNT {
        Some(count) => Some(count * LENGTH),
        None => None,
    };

    fn write(self, to: &mut OutputWriter) {
        self.into_iter().for_each(|one| one.write(to));
    }

    fn read(from: &mut OutputReader<'_, f64>) -> Self::Values {
        core::array::from_fn(|_| N::read(from))
    }

    fn read_vars(from: &mut OutputReader<'_, Var>) -> Self {
        core::array::from_fn(|_| N::read_vars(from))
    }
}

impl<N: Outputs> Outputs for Vec<N> {
    type Values = Vec<N::Values>;

    fn write(self, to: &mut OutputWriter) {
        to.length(self.len());
        self.into_iter().for_each(|one| one.write(to));
    }

    fn read(from: &mut OutputReader<'_, f64>) -> Self::Values {
        (0..from.length()).map(|_| N::read(from)).collect()
    }

    fn read_vars(from: &mut OutputReader<'_, Var>) -> Self {
        (0..from.length()).map(|_| N::read_vars(from)).collect()
    }
}

/// The number of outputs of all parts.
const fn sum(counts: &[Option<usize>]) -> Option<usize> {
    let (mut sum, mut part) = (0, 0);
    while part < counts.len() {
        match counts[part] {
            Some(count) => sum += count,
            None => return None,
        }
        part += 1;
    }
    Some(sum)
}

macro_rules! tuples {
    ($(($($name:ident $number:tt),*))*) => {$(
        impl<$($name: Outputs),*> Outputs for ($($name,)*) {
            type Values = ($($name::Values,)*);

            const COUNT: Option<usize> = sum(&[$($name::COUNT),*]);

            fn write(self, to: &mut OutputWriter) {
                $(self.$number.write(to);)*
            }

            fn read(from: &mut OutputReader<'_, f64>) -> Self::Values {
                ($($name::read(from),)*)
            }

            fn read_vars(from: &mut OutputReader<'_, Var>) -> Self {
                ($($name::read_vars(from),)*)
            }
        }
    )*};
}

tuples! {
    (A 0)
    (A 0, B 1)
    (A 0, B 1, C 2)
    (A 0, B 1, C 2, D 3)
    (A 0, B 1, C 2, D 3, E 4)
    (A 0, B 1, C 2, D 3, E 4, G 5)
}

/// Takes the outputs of one call; see [`Outputs`].
#[derive(Debug, Default)]
pub struct OutputWriter {
    pub(super) numbers: SmallVec<[Var; 2]>,
    lengths: SmallVec<[usize; 2]>,
}

impl OutputWriter {
    /// Takes the next number.
    pub fn number(&mut self, number: Var) {
        self.numbers.push(number);
    }

    /// Takes the length of a vector whose elements come next: a length that can be another one in
    /// another call.
    pub fn length(&mut self, length: usize) {
        self.lengths.push(length);
    }

    /// The only number; `None` if there are none, or several.
    pub(super) fn single(&self) -> Option<Var> {
        match self.numbers[..] {
            [number] => Some(number),
            _ => None,
        }
    }

    pub(super) fn clear(&mut self) {
        self.numbers.clear();
        self.lengths.clear();
    }

    /// Tests whether the outputs have this shape.
    pub(super) fn is_of(&self, shape: &OutputShape) -> bool {
        self.numbers.len() == shape.count && self.lengths == shape.lengths
    }

    pub(super) fn shape(&self) -> OutputShape {
        OutputShape { count: self.numbers.len(), lengths: self.lengths.clone() }
    }
}

/// Gives the outputs of one call, as `f64` or [`Var`]; see [`Outputs`].
#[derive(Debug)]
pub struct OutputReader<'a, T> {
    numbers: core::slice::Iter<'a, T>,
    lengths: core::slice::Iter<'a, usize>,
}

impl<'a, T: Copy + From<f64>> OutputReader<'a, T> {
    pub(super) fn new(numbers: &'a [T], shape: &'a OutputShape) -> Self {
        OutputReader { numbers: numbers.iter(), lengths: shape.lengths.iter() }
    }

    /// The next number; NaN if all have been read.
    pub fn number(&mut self) -> T {
        self.numbers.next().copied().unwrap_or(f64::NAN.into())
    }

    /// The next length; 0 if all have been read.
    pub fn length(&mut self) -> usize {
        self.lengths.next().copied().unwrap_or(0)
    }
}

/// The number of the outputs of a call, and the lengths of the vectors that they are in.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct OutputShape {
    pub(super) count: usize,
    lengths: SmallVec<[usize; 2]>,
}

impl OutputShape {
    /// The shape of outputs whose number is known without a call.
    pub(super) fn of_type<N: Outputs>() -> Option<OutputShape> {
        N::COUNT.map(|count| OutputShape { count, lengths: SmallVec::new() })
    }
}
