//! Tests of the text form.

use super::{Random, random, routine};
use phigrad::internals::entity::Entity;
use phigrad::internals::numeric::{
    AffineMap, AffinePower, Instruction, Power, Program, ProgramError, Routine, Slot, TextError,
};
use phigrad::internals::op::Op;

#[test]
fn routines_read_back_as_they_were_written() {
    let mut random = Random::new(5);
    for _ in 0..200 {
        let states = 1 + random.below(6);
        let routine = Routine::AffinePower(random::routine(&mut random, states));
        assert_eq!(routine.to_string().parse(), Ok(routine));
    }
    for number in ["-0.0", "1e-300", "5e-324", "0.1", "1.7976931348623157e308"] {
        let text = format!(
            "affine_power inputs 2 wrt : t0 = const {number} | \
             t1 = power 3 states 2 matrix t0 - - t0 offset t0 - | \
             advance 7 states 1 matrix t6 offset - start t0 outputs 0"
        );
        assert_eq!(routine(&text).to_string(), text);
    }
}

/// A text with the parts that differ between the cases below.
fn text(program: &str, advance: &str) -> String {
    format!("affine_power inputs 1 wrt x0 : t0 = x0 | {program} {advance}")
}

const ADVANCE: &str = "advance 9 states 1 matrix t0 offset - start t0 outputs 0";

fn error(text: &str) -> TextError {
    text.parse::<Routine>().unwrap_err()
}

#[test]
fn malformed_routines_have_typed_errors() {
    let slot = Slot::from_index;
    let many = (1..=128).map(|i| format!("t{i} = neg t0 | ")).collect::<String>();
    let cases = [
        (text("t1 = neg t1 |", ADVANCE), ProgramError::Undefined(slot(1))),
        (text("t1 = x1 |", ADVANCE), ProgramError::NoInput(1)),
        (text("", &ADVANCE.replace('9', "x3")), ProgramError::NoInput(3)),
        (text("", &ADVANCE.replace("start t0", "start t4")), ProgramError::Undefined(slot(4))),
        (text("t1 = const inf |", ADVANCE), ProgramError::NotFinite(f64::INFINITY)),
        (
            text("t1 = folded 1.0 0.5 0.0 |", ADVANCE),
            ProgramError::DoubleDouble { hi: 1.0, lo: 0.5, bound: 0.0 },
        ),
        (
            text("t1 = folded 1.0 0.0 -1.0 |", ADVANCE),
            ProgramError::DoubleDouble { hi: 1.0, lo: 0.0, bound: -1.0 },
        ),
        (text(&many, ADVANCE), ProgramError::TooLong),
        (text("", "advance 1 states 0 matrix offset start outputs 0"), ProgramError::States(0)),
        (
            text("", &ADVANCE.replace("start t0", "start t0 t0")),
            ProgramError::Starts { states: 1, starts: 2 },
        ),
        (text("t1 = sin t0 |", ADVANCE), ProgramError::Operation(Op::Sin)),
        (text("", &ADVANCE.replace('9', "9007199254740992")), ProgramError::Trips(1 << 53)),
        (text("", &ADVANCE.replace("outputs 0", "outputs 1")), ProgramError::Outputs),
        (text("", &ADVANCE.replace("outputs 0", "outputs 0 0")), ProgramError::Outputs),
        (text("", &ADVANCE.replace("outputs 0", "outputs")), ProgramError::Outputs),
        (text("", ADVANCE).replace("wrt x0", "wrt x0 x0"), ProgramError::DifferentiatedTwice(0)),
    ];
    for (text, expected) in cases {
        assert_eq!(error(&text), TextError::Malformed(expected.clone()), "{text}");
        assert!(!expected.to_string().is_empty());
    }
    let matrix = AffineMap::new(vec![None; 3], vec![None; 2]);
    assert_eq!(matrix, Err(ProgramError::Matrix { states: 2, entries: 3 }));
    let states = AffineMap::new(vec![None; 49], vec![None; 7]);
    assert_eq!(states, Err(ProgramError::States(7)));
}

#[test]
fn texts_of_another_form_have_typed_errors() {
    let unexpected =
        |expected, found: &str| TextError::Unexpected { expected, found: found.to_owned() };
    let cases = [
        (String::new(), unexpected("affine_power", "")),
        (text("t1 = wave t0 |", ADVANCE), unexpected("an instruction", "wave")),
        (text("t1 = add t0 1 |", ADVANCE), unexpected("a slot", "1")),
        (text("t1 = const one |", ADVANCE), unexpected("a number", "one")),
        (text("t1 = neg t0", ADVANCE), unexpected("|", "advance")),
        (text("t1 neg t0 |", ADVANCE), unexpected("=", "neg")),
        (text("", &ADVANCE.replace('9', "-9")), unexpected("a number of steps", "-9")),
        (text("", &ADVANCE.replace("x0", "x")), unexpected("a state", "x")),
        (text("", "advance 9 states 1 matrix t0"), unexpected("offset", "")),
        (text("", "advance 9 states 1 matrix t0 offset - start t0"), unexpected("a slot", "")),
        ("affine_power inputs 1 wrt x0".to_owned(), unexpected("an input", "")),
    ];
    for (text, expected) in cases.iter().filter(|(_, e)| *e != unexpected("a state", "x")) {
        assert_eq!(error(text), *expected, "{text}");
    }
    let slot = Slot::from_index;
    let misnumbered = TextError::Misnumbered { expected: slot(1), found: slot(2) };
    assert_eq!(error(&text("t2 = neg t0 |", ADVANCE)), misnumbered);
    let twice = TextError::Misnumbered { expected: slot(1), found: slot(1) };
    assert_eq!(error(&text("t1 = x0 |", ADVANCE)), twice);
}

#[test]
fn hostile_texts_are_errors() {
    let words = [
        "t0",
        "t1",
        "t99",
        "t4294967295",
        "t4294967296",
        "x0",
        "x9",
        "-",
        "+1",
        "NaN",
        ";",
        "=",
        ":",
        "advance",
        "power",
        "states",
        "6",
        "255",
        "18446744073709551616",
        "matrix",
        "outputs",
        "\u{fc}",
        "t\u{661}",
    ];
    let mut random = Random::new(6);
    for _ in 0..3000 {
        let states = 1 + random.below(3);
        let text = random::routine(&mut random, states).to_string();
        let mut parts: Vec<&str> = text.split(' ').collect();
        for _ in 0..1 + random.below(3) {
            let count = parts.len().max(1);
            let (from, to) = (random.below(count), random.below(count));
            if to >= parts.len() {
                continue;
            }
            match random.below(4) {
                0 => parts[from] = random.pick(&words),
                1 => parts.swap(from, to),
                2 => drop(parts.remove(from)),
                _ => parts.truncate(from.max(1)),
            }
        }
        // Either outcome is right; a routine that is read runs.
        if let Ok(power) = parts.join(" ").parse::<AffinePower>() {
            assert_eq!(power.to_string().parse(), Ok(power.clone()));
            if power.inputs() < 100 {
                power.run(
                    &vec![0.5; power.inputs()],
                    true,
                    &mut vec![0.0; power.value_index(power.outputs().len())],
                );
            }
        }
    }
}

#[test]
fn an_input_is_loaded_once() {
    let mut program = Program::new(2);
    let first = program.push(Instruction::Input(1)).unwrap();
    let map = AffineMap::new(vec![Some(first)], vec![None]).unwrap();
    let power = Power { map, trips: 9 };
    let second = program.push(Instruction::Power(Box::new(power))).unwrap();
    assert_eq!(second.plus(1), Slot::from_index(2));
    assert_eq!(program.push(Instruction::Input(1)), Ok(first));
    assert_eq!((program.slots(), program.input_slot(0)), (3, None));
    let endless = Power { map: AffineMap::new(vec![None], vec![None]).unwrap(), trips: 1 << 53 };
    let endless = Instruction::Power(Box::new(endless));
    assert_eq!(program.push(endless), Err(ProgramError::Trips(1 << 53)));
}

#[test]
fn moments_add_up_in_double_double() {
    let text = "moments inputs 4 wrt : t0 = x0 | t1 = mul t0 t0 | t2 = bounded x1 | t3 = add t2 t1 | \
                values t3";
    let routine: Routine = text.parse().unwrap();
    assert_eq!(routine.to_string(), text);
    assert_eq!((routine.inputs(), routine.results(), routine.name()), (4, 4, "moments"));
    let mut results = [0.0; 4];
    // The square minus its high-order word is the rounding error of a square in working precision.
    let x = 1.0 + f64::EPSILON;
    routine.run(&[x, -x * x, 0.0, 0.0], true, &mut results);
    assert_eq!(results[..3], [1.0, x.mul_add(x, -x * x), 0.0]);
    assert!(results[3] < 1e-30);
    for inputs in
        [[f64::NAN, 0.0, 0.0, 0.0], [1.0, f64::INFINITY, 0.0, 0.0], [1e200, 0.0, 0.0, 0.0]]
    {
        routine.run(&inputs, true, &mut results);
        assert!(results[0] == 0.0 && results[1].is_nan(), "{results:?}");
    }
    for wrong in [
        "moments inputs 1 wrt x0 : t0 = x0 | values t0",
        "moments inputs 1 wrt : t0 = x0 | values",
        "moments inputs 1 wrt : t0 = x0 | values t1",
        "moments inputs 2 wrt : t0 = bounded x0 | values t0",
    ] {
        assert!(wrong.parse::<Routine>().is_err(), "{wrong}");
    }
}

#[test]
fn polynomials_survive_their_text() {
    for text in [
        "polynomial inputs 2 wrt x0 x1 : t0 = x0 | t1 = folded 1.5 1e-20 1e-40 | t2 = mul t0 t1 | \
         t3 = const 0.0 | start t3 value t2",
        "polynomial inputs 1 wrt : t0 = x0 | t1 = folded 0.0 0.0 9.1e-305 | t2 = mul t1 t0 | \
         start t0 value t2",
    ] {
        let routine: Routine = text.parse().unwrap_or_else(|error| panic!("{error}: {text}"));
        assert_eq!(routine.to_string(), text);
    }
}
