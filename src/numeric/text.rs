//! The text form of routines, one line each.
//!
//! ```text
//! routine     = ( "affine_power" program "advance" trips map "start" slot* "outputs" number* )
//!               | ( "polynomial" program "start" slot "value" slot )
//!               | ( "moments" program "values" slot* )
//!               | "custom" function "of" name
//! program     = "inputs" number "wrt" input* ":" ( instruction "|" )*
//! instruction = slot "=" ( input | "const" float | "folded" float float float | "rounded" input
//!               | "bounded" input | op slot slot? | "power" number map )
//! map         = "states" number "matrix" entry* "offset" entry*
//! entry       = slot | "-"
//! trips       = number | input
//! input       = "x" number
//! slot        = "t" number
//! ```
//!
//! - Words are separated by spaces, slots are numbered without gaps.
//! - Custom operations are written, but not read.
//! - `op` is the name of one of [`OPERATIONS`](super::OPERATIONS).
//! - `wrt` lists the differentiated inputs.
//! - Matrices are written row by row; `-` is a structural zero.
//! - A `power` defines a slot for each of its results; the text names the first.
//! - `folded` is followed by the high-order word, the low-order word and the error bound; for
//!   `bounded` these are an input and the two after it.
//!
//! ```text
//! affine_power inputs 3 wrt x0 x1 : t0 = x0 | t1 = const 1.0 | t2 = sub t1 t0 | t3 = x1 |
//! advance 100 states 1 matrix t2 offset t3 start t3 outputs 0
//! ```

use core::fmt::{self, Display, Formatter};
use core::str::{FromStr, SplitAsciiWhitespace};

use super::double_double::Bounded;
use super::{AffineMap, AffinePower, Instruction, Moments, Polynomial, Power, Program};
use super::{ProgramError, Routine, Slot, Trips};
use crate::entity::Entity;
use crate::op::Op;

impl Display for Trips {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Trips::Constant(count) => write!(f, "{count}"),
            Trips::Input(input) => write!(f, "x{input}"),
        }
    }
}

impl Display for AffineMap {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "states {} matrix", self.states())?;
        entries(f, self.matrix())?;
        write!(f, " offset")?;
        entries(f, self.offset())
    }
}

/// Writes entries of a map, each after a space.
fn entries(f: &mut Formatter<'_>, entries: &[Option<Slot>]) -> fmt::Result {
    for entry in entries {
        match entry {
            Some(slot) => write!(f, " {slot}")?,
            None => write!(f, " -")?,
        }
    }
    Ok(())
}

impl Display for Instruction {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Instruction::Input(input) => write!(f, "x{input}"),
            Instruction::Rounded(input) => write!(f, "rounded x{input}"),
            Instruction::Constant(value) => write!(f, "const {value:?}"),
            Instruction::Folded(Bounded { hi, lo, bound, .. }) => {
                write!(f, "folded {hi:?} {lo:?} {bound:?}")
            }
            Instruction::Bounded(first) => write!(f, "bounded x{first}"),
            Instruction::Apply(op, slots) => {
                write!(f, "{}", op.name())?;
                slots[..op.arity()].iter().try_for_each(|slot| write!(f, " {slot}"))
            }
            Instruction::Power(power) => write!(f, "power {} {}", power.trips, power.map),
        }
    }
}

/// Writes a program with its differentiated inputs.
fn program(f: &mut Formatter<'_>, program: &Program, differentiated: &[u32]) -> fmt::Result {
    write!(f, "inputs {} wrt", program.inputs())?;
    differentiated.iter().try_for_each(|input| write!(f, " x{input}"))?;
    write!(f, " :")?;
    let mut slot = 0;
    for instruction in program.instructions() {
        write!(f, " {} = {instruction} |", Slot::from_index(slot))?;
        slot += instruction.results();
    }
    Ok(())
}

impl Display for AffinePower {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "affine_power ")?;
        program(f, self.program(), self.differentiated())?;
        write!(f, " advance {} {} start", self.trips(), self.map())?;
        self.start().iter().try_for_each(|slot| write!(f, " {slot}"))?;
        write!(f, " outputs")?;
        self.outputs().iter().try_for_each(|output| write!(f, " {output}"))
    }
}

impl Display for Polynomial {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "polynomial ")?;
        program(f, self.program(), self.differentiated())?;
        write!(f, " start {} value {}", self.start(), self.value())
    }
}

impl Display for Moments {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "moments ")?;
        program(f, self.program(), &[])?;
        write!(f, " values")?;
        self.values().iter().try_for_each(|slot| write!(f, " {slot}"))
    }
}

impl Display for Routine {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Routine::AffinePower(power) => power.fmt(f),
            Routine::Polynomial(polynomial) => polynomial.fmt(f),
            Routine::Moments(moments) => moments.fmt(f),
            Routine::Custom(custom) => custom.fmt(f),
        }
    }
}

/// A reason why a text is no routine.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum TextError {
    /// A word that the grammar does not allow here.
    #[error("expected {expected}, found `{found}`")]
    Unexpected {
        /// The expected word or kind of word.
        expected: &'static str,
        /// The word found, empty at the end of the text.
        found: String,
    },
    /// An instruction that does not define the next slot.
    #[error("expected the definition of {expected}, found `{found}`")]
    Misnumbered {
        /// The next slot.
        expected: Slot,
        /// The slot that is defined.
        found: Slot,
    },
    /// A routine that parses but is malformed.
    #[error(transparent)]
    Malformed(#[from] ProgramError),
}

/// The words of a text.
struct Words<'a>(SplitAsciiWhitespace<'a>);

impl<'a> Words<'a> {
    /// The next word, empty at the end.
    fn next(&mut self) -> &'a str {
        self.0.next().unwrap_or_default()
    }

    /// The next word, without consuming it.
    fn peek(&self) -> &'a str {
        self.0.clone().next().unwrap_or_default()
    }

    /// Reads the word `expected`.
    fn word(&mut self, expected: &'static str) -> Result<(), TextError> {
        let found = self.next();
        if found == expected { Ok(()) } else { Err(unexpected(expected, found)) }
    }

    /// Reads a number after a prefix.
    fn number<T: FromStr>(&mut self, prefix: &str, expected: &'static str) -> Result<T, TextError> {
        let found = self.next();
        let digits = found.strip_prefix(prefix);
        // `parse` takes a sign as well.
        let digits = digits.filter(|digits| digits.starts_with(|c: char| c.is_ascii_digit()));
        digits.and_then(|digits| digits.parse().ok()).ok_or_else(|| unexpected(expected, found))
    }

    /// Reads numbers with a prefix up to the word `end`, and that word.
    fn numbers_until(
        &mut self,
        prefix: &str,
        expected: &'static str,
        end: &'static str,
    ) -> Result<Vec<u32>, TextError> {
        let mut numbers = Vec::new();
        while self.peek() != end {
            numbers.push(self.number(prefix, expected)?);
        }
        self.next();
        Ok(numbers)
    }

    /// Reads a slot.
    fn slot(&mut self) -> Result<Slot, TextError> {
        Ok(Slot::from_index(self.number::<u32>("t", "a slot")? as usize))
    }

    /// Reads a floating-point number.
    fn float(&mut self) -> Result<f64, TextError> {
        let found = self.next();
        found.parse().map_err(|_| unexpected("a number", found))
    }

    /// Reads a program up to the word `end`, and the inputs that are differentiated.
    fn program(&mut self, end: &'static str) -> Result<(Program, Vec<u32>), TextError> {
        self.word("inputs")?;
        let mut program = Program::new(self.number("", "a number of inputs")?);
        self.word("wrt")?;
        let differentiated = self.numbers_until("x", "an input", ":")?;
        while self.peek() != end {
            let expected = Slot::from_index(program.slots());
            let found = self.slot()?;
            self.word("=")?;
            let instruction = self.instruction()?;
            self.word("|")?;
            // A second load of an input defines no slot, so it is misnumbered.
            let defined = program.push(instruction)?;
            if found != expected || defined != expected {
                return Err(TextError::Misnumbered { expected, found });
            }
        }
        self.word(end)?;
        Ok((program, differentiated))
    }

    /// Reads `count` entries of a map.
    fn entries(&mut self, count: usize) -> Result<Vec<Option<Slot>>, TextError> {
        let mut entries = Vec::new();
        for _ in 0..count {
            let zero = self.peek() == "-";
            entries.push(if zero { None } else { Some(self.slot()?) });
            if zero {
                self.next();
            }
        }
        Ok(entries)
    }

    /// Reads a trip count.
    fn trips(&mut self) -> Result<Trips, TextError> {
        if self.peek().starts_with('x') {
            return Ok(Trips::Input(self.number("x", "an input")?));
        }
        Ok(Trips::Constant(self.number("", "a number of steps")?))
    }

    /// Reads a map.
    fn map(&mut self) -> Result<AffineMap, TextError> {
        self.word("states")?;
        let states: u8 = self.number("", "a number of states")?;
        let states = usize::from(states);
        self.word("matrix")?;
        let matrix = self.entries(states * states)?;
        self.word("offset")?;
        Ok(AffineMap::new(matrix, self.entries(states)?)?)
    }

    /// Reads an instruction after its `=`.
    fn instruction(&mut self) -> Result<Instruction, TextError> {
        if self.peek().starts_with('x') {
            return Ok(Instruction::Input(self.number("x", "an input")?));
        }
        Ok(match self.next() {
            "const" => Instruction::Constant(self.float()?),
            "folded" => {
                let words = (self.float()?, self.float()?);
                Instruction::Folded(Bounded::new(words, self.float()?))
            }
            "rounded" => Instruction::Rounded(self.number("x", "an input")?),
            "bounded" => Instruction::Bounded(self.number("x", "an input")?),
            "power" => {
                let trips = self.number("", "a number of steps")?;
                Instruction::Power(Box::new(Power { map: self.map()?, trips }))
            }
            found => {
                let op = Op::from_name(found).ok_or_else(|| unexpected("an instruction", found))?;
                let a = self.slot()?;
                Instruction::Apply(op, [a, if op.arity() > 1 { self.slot()? } else { a }])
            }
        })
    }
}

/// The error for an unexpected word.
fn unexpected(expected: &'static str, found: &str) -> TextError {
    TextError::Unexpected { expected, found: found.to_owned() }
}

impl FromStr for AffinePower {
    type Err = TextError;

    fn from_str(text: &str) -> Result<AffinePower, TextError> {
        let mut words = Words(text.split_ascii_whitespace());
        words.word("affine_power")?;
        let (program, differentiated) = words.program("advance")?;
        let trips = words.trips()?;
        let map = words.map()?;
        words.word("start")?;
        let start = words.numbers_until("t", "a slot", "outputs")?;
        let start = start.iter().map(|slot| Slot::from_index(*slot as usize)).collect();
        let outputs = words.numbers_until("", "a state", "")?;
        Ok(AffinePower::new(program, map, start, trips, outputs, differentiated)?)
    }
}

impl FromStr for Polynomial {
    type Err = TextError;

    fn from_str(text: &str) -> Result<Polynomial, TextError> {
        let mut words = Words(text.split_ascii_whitespace());
        words.word("polynomial")?;
        let (program, differentiated) = words.program("start")?;
        let start = words.slot()?;
        words.word("value")?;
        let value = words.slot()?;
        words.word("")?;
        Ok(Polynomial::new(program, start, value, differentiated)?)
    }
}

impl FromStr for Moments {
    type Err = TextError;

    fn from_str(text: &str) -> Result<Moments, TextError> {
        let mut words = Words(text.split_ascii_whitespace());
        words.word("moments")?;
        let (program, differentiated) = words.program("values")?;
        if !differentiated.is_empty() {
            return Err(unexpected(":", "x"));
        }
        let values = words.numbers_until("t", "a slot", "")?;
        let values = values.iter().map(|slot| Slot::from_index(*slot as usize)).collect();
        Ok(Moments::new(program, values)?)
    }
}

impl FromStr for Routine {
    type Err = TextError;

    fn from_str(text: &str) -> Result<Routine, TextError> {
        match Words(text.split_ascii_whitespace()).next() {
            "polynomial" => text.parse().map(Routine::Polynomial),
            "moments" => text.parse().map(Routine::Moments),
            _ => text.parse().map(Routine::AffinePower),
        }
    }
}
