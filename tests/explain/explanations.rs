//! Explanations of recorded functions: programs, loops, branches and gradients; explaining changes
//! nothing.

use std::cell::Cell;

use phigrad::explain::{Notation, Phis};
use phigrad::report::{Op, OpenReason, RecurrenceReason, Rule};
use phigrad::{Numerics, Tape, Var, traced};

#[test]
fn nothing_is_explained_before_the_first_call() {
    let f = Tape::record(|x: &[Var]| x[0].sin());
    assert!(f.explain().unwrap_err().is_refused());
    let calls = Cell::new(0.0);
    let f = Tape::record(|x: &[Var]| x[0] * calls.replace(calls.get() + 1.0));
    f.grad(&[1.0]).unwrap();
    f.grad(&[1.0]).unwrap();
    assert!(f.explain().unwrap_err().is_refused(), "what depends on hidden state");
}

#[test]
fn explaining_runs_nothing_and_changes_nothing() {
    let calls = Cell::new(0);
    let f = Tape::record(|x: &[Var]| {
        calls.set(calls.get() + 1);
        x[0].exp() * x[1]
    });
    f.grad(&[0.5, 2.0]).unwrap();
    let before = f.report();
    let explanation = f.explain().unwrap();
    assert_eq!((calls.get(), f.report()), (1, before));
    assert_eq!(explanation, f.explain().unwrap());
    assert_eq!(explanation.program.text, "return x₁·e^x₀");
    assert_eq!(explanation.gradient.unwrap().text, "∂f/∂x₀ = x₁·e^x₀\n∂f/∂x₁ = e^x₀");
}

#[test]
fn the_length_of_input_that_was_called_most_is_explained() {
    let f = Tape::record(|x: &[Var]| x.iter().copied().sum::<Var>());
    f.grad(&[1.0, 2.0]).unwrap();
    f.grad(&[1.0, 2.0, 3.0]).unwrap();
    f.grad(&[1.0, 2.0, 4.0]).unwrap();
    let explanation = f.explain().unwrap();
    assert_eq!((explanation.active, explanation.inactive, explanation.paths), (3, 0, 1));
}

#[traced]
fn clipped(x: &[Var], data: &[Var]) -> Var {
    let mut sum = Var::from(0.0);
    for &d in data {
        let error = x[0] * d - x[1];
        if error.abs() < 1.0 {
            sum += error * error;
        } else {
            sum += error.abs();
        }
    }
    sum
}

#[test]
fn branches_in_loops_are_explained() {
    let f = Tape::record_with(clipped);
    let data: Vec<f64> = (0..50).map(|i| 0.1 * f64::from(i)).collect();
    f.grad(&[1.0, 2.0], &data).unwrap();
    for numerics in [Numerics::Real, Numerics::Exact] {
        let f = Tape::builder().numerics(numerics).record_with(clipped);
        f.grad(&[1.0, 2.0], &data).unwrap();
        let explanation = f.explain().unwrap();
        let text = &explanation.program.text;
        assert!(text.contains("= x₀·d_i − x₁") && text.contains("| < 1; w + "), "{text}");
        let gradient = &explanation.gradient.as_ref().unwrap().text;
        assert!(gradient.contains("loop 50 times backwards in i, with "), "{gradient}");
        assert!(explanation.rules().contains(&Rule::C2), "{explanation}");
        assert_eq!(explanation.loops.len(), 1);
        let at = explanation.loops[0].at.as_ref().unwrap();
        assert!(at.file.ends_with("explanations.rs"));
    }
}

#[test]
fn a_factor_moves_into_the_branch_where_it_cancels() {
    #[traced]
    fn program(x: &[Var], side: &[Var]) -> Var {
        let mut z = x[0];
        if side[0] > 0.0 {
            z = (x[0].exp() + 1.0).ln();
        }
        z * (x[0].exp() + 1.0)
    }
    let f = Tape::record_with(program);
    f.grad(&[0.3], &[1.0]).unwrap();
    f.grad(&[0.3], &[-1.0]).unwrap();
    let explanation = f.explain().unwrap();
    assert!(explanation.rules().contains(&Rule::F2), "{explanation}");
    assert!(explanation.branches[0].form.text.starts_with("φ(d₀ > 0; ln("), "{explanation}");
    assert!(explanation.latex().contains("\\varphi"), "{}", explanation.latex());
}

#[test]
fn derivatives_cancel_in_branches_and_across_them() {
    // The worked example of branches in section 3 of the paper.
    #[traced]
    fn program(x: &[Var], side: &[Var]) -> Var {
        let (p, q) = (x[0], x[1]);
        let y = p + q * x[2];
        let z;
        if side[0] > 0.0 {
            if y > 0.5 {
                z = y.powf(1.5) / y;
            } else {
                z = (y.exp() + 1.0).ln();
            }
        } else {
            z = q * y;
        }
        z * (y.exp() + 1.0)
    }
    let f = Tape::record_with(program);
    let points = [([0.3, 0.5, 2.0], 1.0), ([0.1, 0.2, 0.3], 1.0), ([0.3, 0.5, 2.0], -1.0)];
    for (x, side) in points {
        f.grad(&x, &[side]).unwrap();
    }
    let Notation { text: gradient, latex, .. } = f.explain().unwrap().gradient.unwrap();
    // y^1.5/y has become a root, and the factor has cancelled with the denominator
    // of the derivative of the logarithm, which is in another block.
    assert!(gradient.contains("> 0.5; √t₁, ln(e^t₁ + 1) + 1)"), "{gradient}");
    assert!(!gradient.contains("^1.5") && gradient.matches('/').count() == 3 + 1, "{gradient}");
    let root = "\\sqrt{t_{1}}";
    assert!(latex.contains(root) && !latex.contains("1.5") && is_latex(&latex), "{latex}");
    for (x, side) in points {
        let on_tape = f.value_and_grad(&x, &[side]).unwrap();
        f.compile().unwrap();
        let in_kernel = f.value_and_grad(&x, &[side]).unwrap();
        let close = |a: f64, b: f64| (a - b).abs() <= 1e-14 * b.abs();
        assert!(close(in_kernel.0, on_tape.0), "{in_kernel:?} {on_tape:?}");
        assert!(in_kernel.1.iter().zip(&on_tape.1).all(|(&a, &b)| close(a, b)));
    }
}

#[test]
fn text_latex_and_dot_are_complete() {
    let f = Tape::record(|x: &[Var]| {
        let mut w = x[0];
        for _ in 0..100 {
            w += x[1] * 2.0;
        }
        w.sqrt()
    });
    f.grad(&[1.0, 2.0]).unwrap();
    let explanation = f.explain().unwrap();
    let text = explanation.to_string();
    for part in ["the program (2 active and 0 inactive inputs, 1 path)", "loop 100 times", "√"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let latex = explanation.latex();
    assert!(latex.contains("\\begin{aligned}") && latex.contains("\\sqrt{"), "{latex}");
    assert_eq!(latex.matches('{').count(), latex.matches('}').count());
    let (before, after) = (explanation.dot_before(), explanation.dot_after());
    assert!(before.contains("cluster") && after.contains("cluster"));
    // A word of the language is no name of a graph.
    assert!(before.starts_with("digraph {\n") && after.starts_with("digraph {\n"));
}

#[test]
fn long_programs_are_truncated() {
    let f = Tape::record(|x: &[Var]| {
        let mut w = x[0];
        for i in 0..2000 {
            w = if i % 7 == 0 {
                w.sin()
            } else if i % 3 == 0 {
                w * x[1]
            } else {
                (w + x[0]).exp()
            };
            w = if i % (1 + i / 9) == 1 { w.cos() * w } else { w };
        }
        w
    });
    f.grad(&[1.0, 2.0]).unwrap();
    let explanation = f.explain().unwrap();
    assert!(explanation.program.text.lines().count() < 130);
    assert!(explanation.to_string().len() < 100_000);
}

#[test]
fn a_loop_that_adds_is_a_product() {
    let f = Tape::record(|x: &[Var]| {
        let mut sum = x[0];
        for _ in 0..100 {
            sum += x[1];
        }
        sum
    });
    f.grad(&[0.5, 0.25]).unwrap();
    let explanation = f.explain().unwrap();
    assert_eq!(explanation.closed.text, "return x₀ + 100·x₁");
    assert_eq!(
        explanation.closed.latex.lines().nth(1),
        Some("& \\text{return }x_{0} + 100 \\cdot x_{1}")
    );
    assert_eq!(explanation.gradient.as_ref().unwrap().text, "∂f/∂x₀ = 1\n∂f/∂x₁ = 100");
    let seen = "loop 100 times in i, with w from x₀\n  w ← x₁ + w";
    assert_eq!(explanation.loops[0].seen.text, seen);
    // As a recurrence, or as a sum.
    let form = &explanation.loops[0].forms[0];
    let text = &form.form.text;
    assert!(form.rule == Rule::C6 && text.contains("p = x₀") && text.contains(" = x₁"), "{text}");
    assert_eq!(explanation.rules(), [Rule::F5, Rule::C6]);
    let exact = Tape::builder()
        .phi_calculus(false)
        .record(|x: &[Var]| (0..100).fold(x[0], |sum, _| sum + x[1]));
    exact.grad(&[0.5, 0.25]).unwrap();
    let explanation = exact.explain().unwrap();
    assert!(explanation.rules().is_empty() && explanation.loops[0].forms.is_empty());
}

/// The error of a fit by gradient descent from `w`.
#[traced]
fn descent(mut w: Var, rate: Var, x: &[f64], y: &[f64]) -> Var {
    let n = x.len() as f64;
    let mut iteration = 0;
    while iteration < 40 {
        let mut slope = Var::from(0.0);
        for (&x, &y) in x.iter().zip(y) {
            slope += (w * x - y) * x;
        }
        slope *= 2.0 / n;
        if slope.abs() < 1e-4 {
            break;
        } else {
            w -= rate * slope;
        }
        iteration += 1;
    }
    let mut error = Var::from(0.0);
    for (&x, &y) in x.iter().zip(y) {
        let residual = y - w * x;
        error += residual * residual;
    }
    error / n
}

#[test]
fn gradient_descent_has_no_loop_over_its_data() {
    let x: Vec<f64> = (0..200).map(|i| (0.7 * f64::from(i)).sin()).collect();
    let y: Vec<f64> = x.iter().map(|x| 0.7 * x + 0.1 * (9.0 * x).cos()).collect();
    let f = Tape::record(|rate: &[Var]| descent(Var::from(0.0), rate[0], &x, &y));
    f.grad(&[0.05]).unwrap();
    let explanation = f.explain().unwrap();
    let seen = &explanation.program.text;
    assert!(seen.contains("  loop 200 times in j, with w₂ from 0\n"), "{seen}");
    let sums = explanation.loops.iter().filter(|known| known.seen.text.contains("loop 200 times"));
    assert!(sums.count() > 0, "{explanation}");
    let closed = &explanation.closed.text;
    assert!(closed.starts_with("loop 40 times in i, with w from 0\n"), "{closed}");
    assert!(!closed.contains("200 times") && !closed.contains('Σ'), "{closed}");
    assert!(closed.contains("\n  provided that |t₁| ≥ 10⁻⁴\n"), "{closed}");
    // The sums are a line and a parabola.
    let form = |start: &str| {
        let mut forms = explanation.loops.iter().flat_map(|known| &known.forms);
        let form = forms.find(|formula| formula.form.text.contains(start)).unwrap();
        (form.rule, form.form.text.clone())
    };
    let (rule, line) = form("u = φ_L(0, …)");
    assert!(rule == Rule::C7 && line.matches('·').count() == 1, "{line}");
    let (rule, square) = form("u = φ_L'(0, …)");
    assert!(rule == Rule::C7 && square.contains(")^2 + "), "{square}");
    // What stays a loop says why.
    assert_eq!(explanation.open.len(), 1, "{explanation}");
    let count = |kinds: fn(&Phis) -> usize| {
        let both = explanation.phis.iter().map(|(seen, left)| (kinds(seen), kinds(left)));
        both.fold((0, 0), |sum, both| (sum.0 + both.0, sum.1 + both.1))
    };
    assert_eq!(count(|phis| phis.entries), (6, 2), "{explanation}");
    assert_eq!(count(|phis| phis.exits), (3, 0), "{explanation}");
    let text = explanation.to_string();
    assert!(text.contains("the φs: 9 recorded, 7 removed"), "{explanation}");
    let latex = explanation.latex();
    assert!(latex.contains("$\\varphi_L$ of carried values: removed by C7"), "{latex}");
    let gradient = &explanation.gradient.as_ref().unwrap().text;
    assert!(gradient.contains("∂f/∂x₀ = ") && !gradient.contains("200 times"), "{gradient}");
}

/// Braces that match, and no character that mathematics in LaTeX does not know.
fn is_latex(text: &str) -> bool {
    let mut depth = 0i64;
    let fits = text.chars().all(|character| {
        depth += i64::from(character == '{') - i64::from(character == '}');
        depth >= 0 && (character.is_ascii() || "φ".contains(character))
    });
    fits && depth == 0 && text.matches("\\left").count() == text.matches("\\right").count()
}

#[test]
fn closed_forms_are_shown_without_their_fallback() {
    let f = Tape::record(|x: &[Var]| (0..64).fold(x[0], |y, _| x[1] * y + x[2]));
    f.grad(&[0.5, 0.9, 0.1]).unwrap();
    let explanation = f.explain().unwrap();
    let forms = &explanation.loops[0].forms;
    let expected = "a^64·p + b·Σ_{j<64} a^j, where p = x₀, a = x₁, b = x₂";
    assert_eq!((forms[0].rule, forms[0].form.text.as_str()), (Rule::C6, expected));
    let expected = "return x₂·(x₁⁶⁴ − 1)/(x₁ − 1) + x₀·x₁⁶⁴";
    assert_eq!(explanation.closed.text, expected, "{explanation}");
    let gradient = &explanation.gradient.as_ref().unwrap().text;
    assert!(gradient.contains("∂f/∂x₀ = x₁⁶⁴\n") && !gradient.contains("loop"), "{gradient}");
    assert!(explanation.to_string().contains("the φs: 3 recorded, 3 removed\n"));
    assert!(is_latex(&explanation.closed.latex) && is_latex(&forms[0].form.latex));
    // Several states are a vector, whose components have partial derivatives.
    let f = Tape::record(|x: &[Var]| {
        let (mut place, mut speed) = (x[0], x[1]);
        for _ in 0..500 {
            speed -= place * x[2] * 0.01;
            place += speed * 0.01;
        }
        place * place
    });
    f.grad(&[0.5, 0.9, 0.1]).unwrap();
    let explanation = f.explain().unwrap();
    let closed = &explanation.closed.text;
    assert!(closed.starts_with("y = A^500·p of the loop in line "), "{explanation}");
    assert!(closed.ends_with("\nreturn y₁²"), "{closed}");
    let gradient = explanation.gradient.unwrap();
    assert!(gradient.text.ends_with("\n∂f/∂x₂ = 2·∂y₁/∂x₂·y₁"), "{gradient}");
    assert!(is_latex(&gradient.latex), "{}", gradient.latex);
    // With numbers for coefficients each product is shown once.
    let f = Tape::record(|x: &[Var]| (0..64).fold(x[0], |y, _| 0.9 * y + x[1]));
    f.grad(&[0.5, 0.1]).unwrap();
    let closed = f.explain().unwrap().closed.text;
    assert!(closed.matches("x₀").count() == 1 && closed.matches("x₁").count() == 1, "{closed}");
    assert_eq!(closed.lines().count(), 1, "{closed}");
}

#[test]
fn a_loop_with_an_exit_only_computes_its_trip_count() {
    #[traced]
    fn converge(x: &[Var]) -> Var {
        let (mut w, mut count) = (x[0], 0);
        while count < 500 {
            let slope = w * x[2] - x[3];
            if slope.abs() < 1e-6 {
                break;
            } else {
                w -= x[1] * slope;
            }
            count += 1;
        }
        w * w
    }
    let f = Tape::record_with(|x: &[Var], _: &[Var]| converge(x));
    for number in 0..12 {
        let number = f64::from(number);
        f.grad(&[0.5 + 0.1 * number, 0.02 + 0.02 * number, 1.1, 0.4], &[]).unwrap();
    }
    let explanation = f.explain().unwrap();
    let form = &explanation.loops[0].forms[0];
    // Two signs in a row are folded: the offset is −(−x₃·x₁).
    let expected = "a^k·p + b·Σ_{j<k} a^j, where p = x₀, a = 1 − x₂·x₁, b = x₃·x₁";
    assert_eq!((form.rule, form.form.text.as_str()), (Rule::C6, expected));
    let text = explanation.to_string();
    assert!(text.contains("the φs: 3 recorded, 3 no longer differentiated\n"), "{text}");
    assert!(text.contains(": the loop only computes its trip count at "), "{text}");
    let gradient = &explanation.gradient.as_ref().unwrap().text;
    assert!(gradient.matches("loop at most 500 times").count() == 1, "{gradient}");
    assert!(gradient.contains("t₂ = 1 − x₁·x₂\n") && !gradient.contains("backwards"), "{gradient}");
}

#[test]
fn derivatives_by_consecutive_inputs_are_one_line() {
    let f = Tape::builder()
        .background(false)
        .record(|x: &[Var]| x[1..].iter().fold(x[0], |state, &term| (state + term).sin()));
    f.grad(&[0.5; 100]).unwrap();
    let gradient = f.explain().unwrap().gradient.unwrap();
    assert!(gradient.text.contains("S₁ is an array of sums that start with 0"), "{gradient}");
    assert!(gradient.text.ends_with("\n∂f/∂x₁, …, ∂f/∂x₉₉ = S₁"), "{gradient}");

    // All partials are elements of the array.
    let f = Tape::record(|x: &[Var]| x.iter().fold(Var::from(0.0), |sum, v| sum + v.sin() * 2.0));
    f.grad(&[0.5; 40]).unwrap();
    let gradient = f.explain().unwrap().gradient.unwrap();
    assert!(gradient.text.ends_with("\n∂f/∂x₀, …, ∂f/∂x₃₉ = S₁"), "{gradient}");
    assert!(is_latex(&gradient.latex), "{}", gradient.latex);
}

#[test]
fn gradients_with_loops_are_programs_and_long_ones_are_omitted() {
    let f = Tape::record(|x: &[Var]| (0..50).fold(x[0], |y, _| (y * x[1]).sin()));
    f.grad(&[0.5, 0.9]).unwrap();
    let explanation = f.explain().unwrap();
    let gradient = explanation.gradient.unwrap();
    assert!(gradient.text.starts_with("loop 50 times in i, with "), "{gradient}");
    assert!(gradient.text.contains("\nloop 50 times backwards in i, with "), "{gradient}");
    assert!(gradient.text.contains("\n∂f/∂x₀ = w"), "{gradient}");
    assert!(is_latex(&gradient.latex), "{}", gradient.latex);
    assert!(explanation.notes.iter().any(|note| note.contains("backwards")));
    let f = Tape::record(|x: &[Var]| {
        (1..12)
            .map(|k| (x[0] * f64::from(k)).sin() * (x[1] + x[2] * f64::from(k * k)).exp())
            .sum::<Var>()
    });
    f.grad(&[0.1, 0.2, 0.01]).unwrap();
    let explanation = f.explain().unwrap();
    assert!(explanation.gradient.is_some() || explanation.notes[0].contains("lines"));
    let f = Tape::record(|x: &[Var]| {
        let step = |y: Var, k: i32| match ((k * k * 7919) >> 5) % 7 {
            0 | 4 => (y * x[0]).sin(),
            1 => (y + x[1]).exp() * x[0],
            _ => (y * y + x[0]).sqrt() / (x[1] + f64::from(k)),
        };
        (0..150).fold(x[0], step)
    });
    f.grad(&[0.5, 0.9]).unwrap();
    let explanation = f.explain().unwrap();
    assert!(explanation.gradient.is_none());
    let note = &explanation.notes[0];
    assert!(note.starts_with("the gradient is not shown: ") && note.ends_with(" lines"), "{note}");
}

#[test]
fn constants_and_functions_without_inputs_are_explained() {
    let f = Tape::record(|_: &[Var]| Var::from(3.0));
    f.grad(&[0.5]).unwrap();
    let explanation = f.explain().unwrap();
    assert_eq!(explanation.program.text, "return 3");
    assert_eq!(explanation.gradient.unwrap().text, "∂f/∂x₀ = 0");
    f.grad(&[]).unwrap();
    f.grad(&[]).unwrap();
    let explanation = f.explain().unwrap();
    assert_eq!((explanation.active, explanation.gradient.is_none()), (0, true));
    assert!(explanation.to_string().contains("note: no gradient: there are no active inputs"));
}

#[test]
fn open_loops_show_their_reasons() {
    let f = Tape::record(|x: &[Var]| (0..200).fold(x[0], |y, _| (y * x[1]).sin()));
    f.grad(&[0.5, 0.9]).unwrap();
    let explanation = f.explain().unwrap();
    assert!(explanation.rules().contains(&Rule::C5), "{explanation}");
    let reason = OpenReason::Recurrence(RecurrenceReason::NotAffine(Op::Sin));
    assert!(explanation.open[0].reasons.contains(&reason), "{explanation}");
    let text = explanation.to_string();
    assert!(
        text.contains(&format!("; {reason}\n")) && text.contains("no closed form at "),
        "{text}"
    );
    assert!(text.contains("  φ_L of carried values: unchanged at "), "{text}");
    assert!(text.contains("the φs: 3 recorded, 1 removed, 2 remaining\n"), "{text}");
}

#[test]
fn each_recorded_phi_has_one_outcome() {
    // The sums over the data are known in a call alone, before the `while`.
    let data: Vec<f64> = (0..120).map(|i| (0.7 * f64::from(i)).sin() + 0.3).collect();
    #[traced]
    fn program(rate: &[Var], data: &[Var]) -> Var {
        let (x, y) = data.split_at(data.len() / 2);
        let (mut w, mut iteration) = (Var::from(0.0), 0);
        while iteration < 30 {
            let mut slope = Var::from(0.0);
            for (&x, &y) in x.iter().zip(y) {
                slope += (w * x - y) * x;
            }
            if slope.abs() < 1e-3 {
                break;
            }
            w -= rate[0] * slope;
            iteration += 1;
        }
        w * w
    }
    let f = Tape::record_with(program);
    f.grad(&[0.001], &data).unwrap();
    let text = f.explain().unwrap().to_string();
    let summary = text.lines().find(|line| line.starts_with("the φs: ")).unwrap();
    let numbers = summary.split(|c: char| !c.is_ascii_digit()).filter_map(|n| n.parse().ok());
    let numbers: Vec<usize> = numbers.collect();
    assert_eq!(numbers[0], numbers[1..].iter().sum::<usize>(), "{text}");
    assert!(
        summary.contains("6 recorded") && summary.contains(" no longer differentiated"),
        "{text}"
    );
}
