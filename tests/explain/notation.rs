//! Mathematical notation of graphs: precedence, names, branches and loops.

use phigrad::explain::Notation;
use phigrad::internals::explain::{differentiated_phis, program};
use phigrad::internals::op::Op;
use phigrad::internals::ssa::{Builder, Folding, Graph, parse};
use phigrad::{Tape, Var};

/// The program of steps over two inputs that return `last`.
fn shown(steps: &str, last: &str) -> String {
    let text = format!(
        "graph active 2 inactive 1\nv3 = const -2\nv4 = const 1.5\nb0:\n{steps}  return {last}\n"
    );
    let graph = parse(&text).unwrap();
    let shown = program(&graph);
    assert!(
        shown.latex.matches('{').count() == shown.latex.matches('}').count(),
        "{}",
        shown.latex
    );
    shown.text.strip_prefix("return ").unwrap_or(&shown.text).to_owned()
}

#[test]
fn terms_have_the_parentheses_they_need() {
    for (steps, expected) in [
        ("  v5 = add v0 v1\n  v6 = mul v5 v2\n", "(x₀ + x₁)·d₀"),
        ("  v5 = mul v0 v1\n  v6 = sub v2 v5\n", "d₀ − x₀·x₁"),
        ("  v5 = sub v0 v1\n  v6 = sub v2 v5\n", "d₀ − (x₀ − x₁)"),
        ("  v5 = add v0 v3\n  v6 = neg v5\n", "−(x₀ − 2)"),
        ("  v5 = mul v0 v3\n  v6 = add v5 v1\n", "−2·x₀ + x₁"),
        ("  v5 = mul v0 v1\n  v6 = div v2 v5\n", "d₀/(x₀·x₁)"),
        ("  v5 = div v0 v1\n  v6 = div v5 v2\n", "x₀/(x₁·d₀)"),
        ("  v5 = recip v0\n  v6 = mul v5 v1\n", "x₁/x₀"),
        ("  v5 = mul v0 v0\n  v6 = mul v5 v0\n", "x₀³"),
        ("  v5 = add v0 v1\n  v6 = mul v5 v5\n", "(x₀ + x₁)²"),
        ("  v5 = powi v0 v3\n  v6 = add v5 v1\n", "1/x₀² + x₁"),
        ("  v5 = powf v0 v4\n  v6 = div v5 v0\n", "x₀^1.5/x₀"),
        ("  v5 = exp v0\n  v6 = ln_1p v5\n", "ln(1 + e^x₀)"),
        ("  v5 = mul v0 v1\n  v6 = exp v5\n", "e^(x₀·x₁)"),
        ("  v5 = exp v0\n  v6 = mul v5 v5\n", "(e^x₀)²"),
        ("  v5 = add v0 v1\n  v6 = sqrt v5\n", "√(x₀ + x₁)"),
        ("  v5 = sqrt v0\n  v6 = powf v5 v1\n", "(√x₀)^x₁"),
        ("  v5 = hypot v0 v1\n  v6 = abs v5\n", "|√(x₀² + x₁²)|"),
        ("  v5 = lt v0 v1\n  v6 = select v5 v0 v1\n", "φ(x₀ < x₁; x₀, x₁)"),
        ("  v5 = mul_add v0 v1 v2\n  v6 = exp_m1 v5\n", "e^(x₀·x₁ + d₀) − 1"),
        ("  v5 = min v0 v1\n  v6 = asin v5\n", "arcsin(min(x₀, x₁))"),
    ] {
        assert_eq!(shown(steps, "v6"), expected, "{steps}");
    }
}

#[test]
fn every_primitive_has_a_notation() {
    for &op in Op::ALL {
        let mut builder = Builder::new(3, 0, Folding::Exact);
        let mut args: Vec<_> = (0..op.arity()).map(|i| builder.input(i)).collect();
        if op == Op::Powi {
            args[1] = builder.constant(3.0);
        }
        let node = builder.apply(op, &args);
        builder.finish_block(&[node]);
        let shown = program(&builder.into_graph());
        assert!(shown.text.contains("x₀") && shown.latex.contains("x_{0}"), "{op}: {shown}");
    }
}

#[test]
fn large_terms_that_are_used_twice_get_names() {
    let steps =
        "  v5 = mul v0 v1\n  v6 = sin v5\n  v7 = add v6 v2\n  v8 = exp v7\n  v9 = mul v7 v8\n";
    assert_eq!(shown(steps, "v9"), "t₁ = sin(x₀·x₁) + d₀\nreturn t₁·e^t₁");
}

#[test]
fn branches_are_terms_or_statements() {
    let small = "graph active 2 inactive 0\nv2 = const 0\nb0:\n  v3 = gt v0 v2\n  v5 = region r0 b1\n  \
                 v6 = mul v5 v1\n  return v6\nb1:\n  branch v3 b2 b3\nb2:\n  return v0\nb3:\n  \
                 v4 = neg v0\n  return v4\n";
    assert_eq!(program(&parse(small).unwrap()).text, "return φ(x₀ > 0; x₀, −x₀)·x₁");
    let stops = small.replace("  v4 = neg", "  guard v1\n  v4 = neg");
    let expected = "if x₀ > 0\n  z₁ ← x₀\nelse\n  provided that x₁ ≠ 0\n  z₁ ← −x₀\nreturn z₁·x₁";
    assert_eq!(program(&parse(&stops).unwrap()).text, expected);
}

/// w ← x₀·w − d_i for each of five data, unless that is small.
fn descent() -> Graph {
    let text = "graph active 1 inactive 5\nv6 = const 0\nv7 = const 4\nv8 = const 0.5\n\
                a0 = nodes v1 v2 v3 v4 v5\ni0 = a0 base 0 r0*1\nv10 = iteration r0\nb0:\n  \
                v16 = region r0 b1 bound 5 entries v9=v6\n  return v16\nb1:\n  v11 = mul v0 v9\n  \
                v12 = element i0\n  v13 = sub v11 v12\n  v14 = lt v13 v8\n  branch v14 b2 b3\nb2:\n  \
                return v6 v6 v9\nb3:\n  v15 = lt v10 v7\n  return v15 v13 v13\n";
    parse(text).unwrap()
}

#[test]
fn loops_show_trip_counts_and_carried_values() {
    let expected = "loop at most 5 times in i, with w from 0\n  t₁ = x₀·w − d_i\n  \
                    if t₁ < 0.5\n    exit the loop\n  else\n    w ← t₁\nreturn w";
    assert_eq!(program(&descent()).text, expected);
}

#[test]
fn carried_values_are_assigned_together() {
    let text = "graph active 2 inactive 0\nv2 = const 0\nv3 = const 9\nv6 = iteration r0\nb0:\n  \
                v11 v12 = region r0 b1 bound 10 entries v4=v2 v5=v0\n  \
                v13 = add v11 v12\n  return v13\nb1:\n  v7 = mul v6 v1\n  v8 = sub v4 v7\n  \
                v9 = mul v5 v1\n  v10 = lt v6 v3\n  return v10 v8 v9 v8 v9\n";
    let expected = "loop 10 times in i, with w₁ from 0, w₂ from x₀\n  \
                    (w₁, w₂) ← (w₁ − i·x₁, w₂·x₁)\nreturn w₁ + w₂";
    assert_eq!(program(&parse(text).unwrap()).text, expected);
}

#[test]
fn long_tables_are_truncated() {
    let text = "graph active 1 inactive 0\nv1 = const 0.0\nv2 = const 8.0\nv4 = iteration r0\n\
                a0 = constants 0.0 1.0 1.0 1.0 1.0 2.0 3.0 4.0 5.0\ni0 = a0 base 0 r0*1\n\
                b0:\n  v11 = region r0 b1 bound 9 entries v3=v1\n  return v11\n\
                b1:\n  v5 = element i0\n  v6 = sin v3\n  v7 = mul v5 v0\n  v8 = add v6 v7\n  \
                v9 = cos v8\n  v10 = lt v4 v2\n  return v10 v9 v9\n";
    let shown = program(&parse(text).unwrap()).text;
    assert_eq!(shown.lines().last(), Some("where a = (0, 1, 1, 1, 1, 2, 3, 4, … (9 values))"));
}

#[test]
fn latex_has_no_double_superscripts() {
    let latex = |steps: &str| {
        let text = format!("graph active 2 inactive 0\nv2 = const 2\nb0:\n{steps}  return v4\n");
        program(&parse(&text).unwrap()).latex
    };
    let quotient = latex("  v3 = div v0 v1\n  v4 = powi v3 v2\n");
    assert!(quotient.contains("\\left(\\frac{x_{0}}{x_{1}}\\right)^{2}"), "{quotient}");
    let power = latex("  v3 = exp v0\n  v4 = powi v3 v2\n");
    assert!(power.contains("\\left(e^{x_{0}}\\right)^{2}"), "{power}");
    // Values of other iterations have brackets.
    let past = "graph active 1 inactive 0\nv1 = const 3\na0 = saved v4\ni0 = a0 base 2\n\
                v3 = iteration r0\nb0:\n  v6 = region r0 b1 bound 4 entries v2=v0\n  \
                v7 = element i0\n  v8 = mul v7 v7\n  return v8\nb1:\n  v4 = sin v2\n  \
                v5 = lt v3 v1\n  return v5 v4 v4\n";
    let shown = program(&parse(past).unwrap());
    assert!(shown.latex.contains("t_{1}\\left[2\\right]^{2}"), "{}", shown.latex);
    assert!(shown.text.ends_with("\nwhere t₁[i] is t₁ in iteration i, counted from 0"), "{shown}");
}

/// w ← sin(w) while `condition`, from x₀.
fn while_loop(condition: &str) -> String {
    let text = format!(
        "graph active 2 inactive 0\nv3 = iteration r0\nb0:\n  v6 = region r0 b1 bound 10 \
         entries v2=v0\n  return v6\nb1:\n  v4 = sin v2\n  v5 = {condition}\n  return v5 v4 v4\n"
    );
    program(&parse(&text).unwrap()).text
}

#[test]
fn loop_conditions_name_old_and_new_values() {
    let head = "loop (recorded at most 10 times) in i, with w from x₀\n";
    // A condition on the new value, before it is assigned.
    let expected = format!("{head}  last iteration unless sin(w) > x₁\n  w ← sin(w)\nreturn w");
    assert_eq!(while_loop("gt v4 v1"), expected);
    // A condition on the old value.
    let expected = format!("{head}  last iteration unless w > x₁\n  w ← sin(w)\nreturn w");
    assert_eq!(while_loop("gt v2 v1"), expected);
}

#[test]
fn terms_with_omitted_parts_are_not_combined() {
    // Two values of a loop begin alike: a·b is no square of one, and a − b is not zero.
    let text = "graph active 2 inactive 0\nv2 = const 0\nv3 = const 9\nv6 = iteration r1\nb0:\n  \
                v4 = gt v1 v2\n  v18 = region r0 b1\n  return v18\nb1:\n  branch v4 b2 b3\n\
                b2:\n  v11 v12 = region r1 b4 bound 10 entries v5=v0 v7=v0\n  \
                v13 = add v11 v12\n  v14 = mul v11 v12\n  v15 = sub v13 v14\n  \
                v16 = sub v11 v12\n  v17 = add v15 v16\n  return v17\nb3:\n  return v0\n\
                b4:\n  v8 = sin v5\n  v9 = cos v7\n  v10 = lt v6 v3\n  return v10 v8 v9 v9 v8\n";
    let applied = differentiated_phis(&parse(text).unwrap());
    let expected = "∂φ(x₁ > 0; φ_L'(x₀, …) + φ_L'(x₀, …) − φ_L'(x₀, …)·φ_L'(x₀, …) + φ_L'(x₀, …) − φ_L'(x₀, …), x₀)";
    assert!(applied[0].form.text.starts_with(expected), "{}", applied[0].form);
}

#[test]
fn loops_of_a_function_that_is_called_twice_have_forms_of_their_own() {
    let grow = |x: Var, rate: Var| (0..100).fold(x, |x, _| x * rate + 1.0);
    let f = Tape::record(move |x: &[Var]| grow((grow(x[0], x[1]) * 0.01).sin(), x[2]));
    f.grad(&[0.5, 0.9, 0.8]).unwrap();
    let explanation = f.explain().unwrap();
    let forms: Vec<Vec<&str>> = explanation
        .loops
        .iter()
        .map(|shown| {
            let own = shown.forms.iter().filter(|form| form.at == shown.at);
            own.map(|form| form.form.text.as_str()).collect()
        })
        .collect();
    let left = "φ_L'(p, d) = d after the last iteration, the only exit";
    let form =
        |p: &str, a: &str| format!("a^100·p + b·Σ_{{j<100}} a^j, where p = {p}, a = {a}, b = 1");
    let expected = [form("x₀", "x₁"), form("sin(0.01·φ_L'(x₀, …))", "x₂")];
    assert_eq!(forms, expected.each_ref().map(|form| vec![form.as_str(), left]));
    let places: Vec<u32> =
        explanation.loops.iter().map(|shown| shown.at.as_ref().unwrap().nth).collect();
    assert_eq!(places, [0, 1]);
}

#[test]
fn text_becomes_latex() {
    let absolute = "\\sqrt{\\left|a - \\left|b\\right|\\right|}";
    for (text, expected) in [
        ("a^n·p + b·Σ_{j<n} a^j", "a^{n} \\cdot p + b \\cdot \\sum_{j<n} a^{j}"),
        ("x₁₂²/(1 − y)", "\\frac{x_{12}^{2}}{1 - y}"),
        ("(a + b)·(c)/x", "\\frac{\\left(a + b\\right) \\cdot \\left(c\\right)}{x}"),
        ("p^(n-1), where q is 100 %", "p^{n-1},\\text{ where }q\\text{ is }100 \\%"),
        ("g(i) is added to a", "g\\left(i\\right)\\text{ is added to }a"),
        ("e^x₁/log₂(y)", "\\frac{e^{x_{1}}}{\\log_{2}\\left(y\\right)}"),
        ("∂f/∂x₀", "\\frac{\\partial f}{\\partial x_{0}}"),
        ("√|a − |b||", absolute),
        ("10⁻⁴·x_{2i+1} ≤ 2.5·10⁷", "10^{-4} \\cdot x_{2i+1} \\le  2.5 \\cdot 10^{7}"),
        ("φ_L'(x₀, …)", "\\varphi _{L}'\\left(x_{0}, \\dots \\right)"),
    ] {
        assert_eq!(Notation::formula(text.to_owned()).latex, expected);
    }
    let unclosed = Notation::formula("(unclosed ^(".to_owned()).latex;
    assert_eq!(unclosed.matches("\\left").count(), unclosed.matches("\\right").count());
}
