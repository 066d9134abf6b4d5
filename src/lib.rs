//! Fast gradients of ordinary Rust code.
//!
//! `phigrad` differentiates functions by running them: inside a recorded
//! function numbers are [`Var`]s, whose operators write down what they do, and a
//! backward sweep over that record (the tape) gives the gradient. Functions that
//! are called often are compiled: what the tape has seen becomes a native
//! kernel, which checks on every call that it applies and otherwise leaves the
//! call to the tape.
//!
//! # Quick start
//!
//! ```
//! use phigrad::{Tape, Var};
//!
//! let f = Tape::record(|x: &[Var]| (x[0] * x[1]).sin() + x[0]);
//! let (value, gradient) = f.value_and_grad(&[0.5, 2.0])?;
//! assert_eq!(value, 1.0f64.sin() + 0.5);
//! assert_eq!(gradient, [2.0 * 1.0f64.cos() + 1.0, 0.5 * 1.0f64.cos()]);
//! # Ok::<(), phigrad::Error>(())
//! ```
//!
//! [`Tape::record`] takes a function of inputs, [`Tape::record_with`] one that
//! also has inputs without a gradient, [`Tape::builder`] sets options. The
//! results, [`Recorded`] and [`RecordedWith`], are called with plain numbers.
//! In a loop use [`Recorded::grad_into`], which allocates nothing once a kernel
//! serves; for many inputs [`Recorded::grad_batch_into`]. [`Recorded::report`] tells who served
//! and what was compiled.
//!
//! # Guide
//!
//! | page | content |
//! | --- | --- |
//! | [A first gradient](guide::first_gradient) | recording, calls, loops that call a gradient, generic code |
//! | [Data that change](guide::data) | inputs, constants, hidden state |
//! | [Outputs and derivatives](guide::derivatives) | several outputs, Jacobians, Hessians, functions in functions |
//! | [Control flow](guide::control_flow) | guards and paths, [`macro@traced`], loops and closed forms |
//! | [Escapes](guide::escapes) | numbers that leave the recording |
//! | [Reading a report](guide::reports) | who served, and the remedy where the tape does |
//! | [Accuracy](guide::accuracy) | [`Numerics`], error bounds, NaN, subgradients, checks |
//!
//! # Errors
//!
//! Calls return [`Error`], which is opaque and has predicates:
//! [`Error::is_shape`], [`Error::is_foreign_var`], [`Error::is_too_long`],
//! [`Error::is_not_repeatable`], [`Error::is_not_twice_differentiable`], [`Error::is_refused`].
//! [`Error::place`] is the place in the caller's source. A batch returns [`BatchError`], which
//! tells the elements without a result. [`Recorded::find_non_finite`] finds the operation that made
//! a NaN or an infinity. The library does not panic by itself; a panic of the recorded function
//! passes through and leaves the function usable. That no kernel can be made is
//! not an error of a call (the tape serves) but of [`Recorded::compile`], and a
//! [`Refusal`] in the report.
//!
//! # Threads
//!
//! [`Recorded`] is `Send` and `Sync` when the function is: many threads may call
//! it at once, and all share its kernels. A [`Var`] stays on its thread; a
//! recorded function that starts threads must give them numbers, not `Var`s.
//! Kernels are compiled on a background thread unless
//! [`TapeBuilder::background`] says otherwise.
//!
//! # Limits
//!
//! [`Limits`] bounds the operations of one call, and the paths, nodes and input
//! lengths that are recorded. Each is a count, so the speed of the machine decides nothing.
//! A call with more than [`Limits::call_events`] operations is an error; beyond any other limit the
//! tape serves, and the report has a [`Refusal`].
//!
//! # Features
//!
//! - `jit` (on by default): native kernels. Without it the tape serves all calls.
//! - `linalg`: the functions of [`linalg`] that need nalgebra.
//! - `nalgebra`, `ndarray`: [`trait@Carry`] for their arrays of `Var`.
//! - `rayon`: batches on several threads.
//! - `serde`: serialises reports and explanations.
//! - `internals`: the stages between trace and kernel as public modules, exempt from semantic
//!   versioning; `ARCHITECTURE.md` in the repository describes them.
//!
//! The idea of coarsening a trace before it is differentiated is that of
//! "Coarsening Optimization for Differentiable Programming" (OOPSLA 2021).

// Text forms, oracles and statistics that only tests and tools use; see `internals`.
#![cfg_attr(not(feature = "internals"), allow(dead_code, unused_imports))]

pub mod check;
mod custom;
mod diff;
mod entity;
pub mod explain;
#[doc(hidden)]
pub mod flow;
#[cfg(any(doc, doctest))]
pub mod guide;
#[cfg(feature = "internals")]
#[doc(hidden)]
pub mod internals;
mod jit;
pub mod linalg;
mod loops;
mod merge;
mod numeric;
mod op;
mod phi;
mod pipeline;
mod random;
pub mod report;
mod runtime;
mod simplify;
mod soi;
mod sparse;
mod ssa;
mod trace;
mod validate;

pub use custom::{CustomOperation, Operation};
pub use explain::Explanation;
pub use flow::{Carrier, Carry};
/// Derives [`trait@Carry`] for a struct or an enum, field by field; type
/// parameters get the bound. The type is plain (holds no mutable reference and no
/// cell) if all its fields are. Of mutually recursive types one needs an
/// implementation by hand.
///
/// ```
/// use phigrad::{Carry, Tape, Var, traced};
///
/// #[derive(Carry)]
/// enum Stage {
///     Burning { fuel: Var },
///     Coasting,
/// }
///
/// #[traced]
/// fn height(x: &[Var]) -> Var {
///     let (mut stage, mut speed, mut height) = (Stage::Burning { fuel: x[0] }, x[1], x[1] * 0.0);
///     for _ in 0..10 {
///         if let Stage::Burning { fuel } = &mut stage {
///             *fuel -= 1.0;
///             speed += 2.0;
///             if *fuel < 0.0 {
///                 stage = Stage::Coasting;
///             }
///         }
///         height += speed;
///     }
///     height
/// }
///
/// assert_eq!(Tape::record(height).grad(&[3.5, 0.0])?, [0.0, 10.0]);
/// # Ok::<(), phigrad::Error>(())
/// ```
pub use phigrad_macros::Carry;
/// Marks the control flow of a function, so that its paths are merged where they
/// join.
///
/// Without the attribute every path through a recorded function is recorded as a
/// whole: ten branches in a row are up to 1,024 paths. In an annotated function
/// the recorder knows where each `if`, `match`, loop, `&&`, `||`, `?` and
/// `return` begins, where its arms join, and which variables they have changed.
/// The results of the function, its types and its signature do not change.
///
/// ```
/// use phigrad::{Tape, Var, traced};
///
/// #[traced]
/// fn loss(x: &[Var]) -> Var {
///     let mut sum = Var::from(0.0);
///     for v in x {
///         if *v > 0.0 {
///             sum += v.sqrt();
///         } else {
///             sum -= *v;
///         }
///     }
///     sum
/// }
///
/// let f = Tape::record(loss);
/// assert_eq!(f.grad(&[4.0, -3.0])?, [0.25, -1.0]);
/// # Ok::<(), phigrad::Error>(())
/// ```
///
/// The attribute applies to functions, methods, and `impl` and `trait` blocks, of
/// which it rewrites all functions with a body. Annotate the functions that
/// compare traced numbers; functions that they call may be annotated or not.
/// Closures and inner functions are not rewritten. `async` code, `const`
/// functions and `unsafe` blocks with control flow are compile errors; in an
/// `impl` block `const` functions are skipped.
///
/// # Carried variables
///
/// Where paths join, and at each loop head, the function hands over the variables
/// that were changed and may still be used, by the trait [`trait@Carry`]. Numbers,
/// tuples, arrays, `Vec`, `Option` and so on implement it; derive it for types of
/// your own. In a generic function a type parameter needs the bound (`T: Carry`,
/// or a trait of yours with `Carry` as supertrait).
///
/// A local `bool`, integer or `enum` without fields is handed over as a traced number if each use
/// of it can be rewritten; see [control flow](guide::control_flow). Other plain values are static
/// state: paths join where it is equal.
///
/// A variable whose type does not implement it is opaque: paths are not merged
/// while it is in use. The same holds for a variable that cannot be accessed, such
/// as one that a closure has borrowed.
///
/// Each traced number that is handed over is a step of the trace. A long `Vec`
/// that is changed as a whole in a loop is handed over in each iteration.
///
/// # Limits
///
/// A variable that is used in a region and may hold a mutable reference or a cell
/// is opaque: `Option<&mut T>`, a `Vec` of references, iterators over them,
/// `Cell`, `RefCell`, atomics, trait objects, closures that change something. So
/// is a variable whose type is not known to be plain: a type of yours without
/// [`trait@Carry`], a type parameter without that bound, and `self` in a trait.
/// Plain fields of it, used by themselves, are not.
///
/// - Changes of state that no variable leads to are not tracked: statics,
///   thread-locals, targets of raw pointers, and effects of `Drop` on them.
/// - Paths recorded in one call of a region are used in other calls with equal
///   live-in content. If the region itself observes more than content (whether
///   two references have one target, the number of owners of an `Rc`, the
///   capacity of a `Vec`, an address) by the names of the standard library
///   (`ptr::eq`, `Rc::ptr_eq`, `Rc::strong_count`, `Rc::get_mut`, `capacity`,
///   `as_ptr`, …, or a cast to a pointer), its paths are not shared. Such
///   observations in functions that it calls, or by other names, are not
///   recognised: let the result of a region depend on the content of its
///   variables only.
/// - A macro of yours may do anything with the names among its arguments, so they
///   count as changed. If a variable declared by a macro is changed, paths are not
///   merged while it is in use. A macro must not declare or change variables that
///   are not among its arguments, unless it is defined in the function.
/// - A name in capitals in a refutable pattern (`Some(N)`) is taken for a constant
///   unless it has `mut`, `ref` or `@`. If it is a variable and used, fewer paths
///   are shared.
/// - A method of yours with the name of a standard method that changes nothing
///   (`len`, `iter`, `get`, `abs`, …) makes its receiver opaque, if that was
///   declared with `mut` or is a mutable reference. It is taken for the standard
///   method inside closures and macro arguments, where the place expression of the
///   receiver has an index that is a call with arguments, and if a trait of yours
///   adds it to types of the language. `clone`, `to_string` and `to_owned` are
///   always taken for the standard methods.
/// - A variable must not be borrowed where it is handed over. If a borrow that the
///   macro has not recognised is still in use, or if the type of a variable is
///   inferred from later code and does not implement `Carry`, the function does
///   not compile. Name the variable that holds the borrow in
///   `#[traced(opaque(variable))]`: it is then opaque and is not accessed. A name of
///   which there is no variable is an error.
///
/// ```
/// use phigrad::{Tape, Var, traced};
///
/// struct Log(Vec<f64>);
///
/// #[traced(opaque(logs))]
/// fn f(x: &[Var]) -> Var {
///     let mut logs = Vec::new();
///     for v in x {
///         logs.push(Log(vec![1.0]));
///     }
///     x[0] * logs.len() as f64
/// }
///
/// assert_eq!(Tape::record(f).grad(&[4.0, -3.0])?, [2.0, 0.0]);
/// # Ok::<(), phigrad::Error>(())
/// ```
pub use phigrad_macros::traced;
pub use pipeline::{Limits, Numerics, Purpose, Refusal};
pub use runtime::{
    BatchError, ElementCause, ElementError, Error, NonFinite, NonFiniteOrigin, NonFiniteResult,
    Output, OutputReader, OutputWriter, Outputs, Recorded, RecordedWith, Report, Rows, Tape,
    TapeBuilder,
};
pub use sparse::SparseMatrix;
pub use ssa::Place;
pub use trace::{Special, Var};

/// The README's example is compiled and run like those of the documentation.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
