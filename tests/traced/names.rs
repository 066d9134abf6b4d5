//! Valid functions with unusual names, macros and variables without values compile
//! under the attribute, without warnings.

use phigrad::{Tape, Var, traced};

macro_rules! give_if {
    ($condition:expr, $value:expr) => {
        if $condition {
            return $value;
        }
    };
}

macro_rules! remark {
    ($($word:tt)*) => {
        let _ = stringify!($($word)*);
    };
}

/// A loop that only a macro leaves, as the value of a function.
#[traced]
fn left_by_a_macro(x: &[Var]) -> Var {
    let (mut k, mut y) = (0, x[0]);
    loop {
        give_if!(k == 3, y);
        if x[1] > 0.0 {
            y *= 2.0;
        }
        k += 1;
    }
}

/// A type that can only be moved.
struct Token(Vec<f64>);

fn take(token: Token) -> f64 {
    token.0.len() as f64
}

/// Variables that have no value where a branch begins.
#[traced]
fn without_values(x: &[Var]) -> Var {
    let mut token = Token(vec![1.0]);
    let mut words = vec![1.0];
    let mut y = x[0] * take(token) * words.iter().sum::<f64>();
    drop(words);
    if x[1] > 0.0 {
        token = Token(vec![]);
        words = vec![2.0, 3.0];
        y += token.0.len() as f64 + words[1];
    } else {
        token = Token(vec![1.0, 2.0]);
        y += take(token);
    }
    let mut later = Default::default();
    let mut maybe = None;
    if x[0] > 0.0 {
        later = 2.5;
        maybe = Some(1.0);
        y = y * later + maybe.unwrap_or(0.0);
    } else if later > 1.0 {
        y -= maybe.unwrap_or(0.0);
    }
    y
}

#[traced]
#[allow(non_snake_case)]
fn capitals(x: &[Var], SCALE: f64) -> Var {
    const ONE: f64 = 1.0;
    let Y = x[0];
    remark!(a remark about Y, helper(x), usize::MAX, x.len() != 3);
    let scale = |V: Var| V * SCALE;
    let mut SUM = scale(Y);
    for V in x {
        if *V > 0.0 {
            SUM += *V * ONE;
        }
    }
    match x.len() {
        usize::MAX => SUM,
        N @ 0..=9 if x[1] > 0.0 => SUM * N as f64,
        _ => helper(SUM),
    }
}

fn helper(y: Var) -> Var {
    y * 3.0
}

#[test]
fn functions_with_unusual_names_and_macros_have_their_gradients() {
    let near = |f: fn(&[Var]) -> Var, x: &[f64], expected: &[f64]| {
        assert_eq!(Tape::record(f).grad(x).unwrap(), expected);
    };
    near(left_by_a_macro, &[1.0, 2.0], &[8.0, 0.0]);
    near(left_by_a_macro, &[1.0, -2.0], &[1.0, 0.0]);
    near(without_values, &[1.0, 2.0], &[2.5, 0.0]);
    near(without_values, &[-1.0, -2.0], &[1.0, 0.0]);
    near(|x| capitals(x, 0.5), &[1.0, 2.0], &[3.0, 2.0]);
    near(|x| capitals(x, 0.5), &[1.0, -2.0], &[4.5, 0.0]);
}
