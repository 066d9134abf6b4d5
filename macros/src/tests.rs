//! Tests of the attribute's error messages.

use super::*;

fn message(item: &str) -> String {
    traced(Arguments::default(), item.parse().unwrap()).unwrap_err().to_string()
}

#[test]
fn unsupported_code_is_named_in_the_error() {
    for (item, what) in [
        ("async fn f() {}", "an async fn"),
        ("const fn f() -> u8 { 0 }", "a const fn"),
        ("fn f() { g(async { 1 }); }", "async code"),
        ("fn f() { unsafe { if a { b() } } }", "an unsafe block"),
        ("struct S;", "is for functions"),
    ] {
        let message = message(item);
        assert!(message.contains(what), "{message}");
    }
}

#[test]
fn all_unsupported_code_is_reported_at_once() {
    let item = "fn f() { g(async { 1 }); unsafe { x = 1; } }".parse().unwrap();
    let error = traced(Arguments::default(), item).unwrap_err();
    assert_eq!(error.into_iter().count(), 2);
}

#[test]
fn the_only_argument_is_opaque() {
    assert!(syn::parse2::<Arguments>(quote!(opaque(a, self))).is_ok());
    let error = syn::parse2::<Arguments>(quote!(clear(a))).err().map(|e| e.to_string());
    assert!(error.unwrap_or_default().contains("opaque(variable"));
}

#[test]
fn a_name_in_opaque_without_a_variable_is_an_error_at_that_name() {
    let expand = |names: &str, item: &str| {
        let arguments = syn::parse_str::<Arguments>(&format!("opaque({names})")).unwrap();
        traced(arguments, item.parse().unwrap())
    };
    let function =
        "fn f(x: Var) -> Var { let mut sum = x; if let Some(y) = g(x) { sum += y; } sum }";
    assert!(expand("x, sum, y", function).is_ok());
    let error = expand("sum, total, mean", function).unwrap_err();
    let messages: Vec<String> = error.into_iter().map(|error| error.to_string()).collect();
    assert_eq!(messages.len(), 2);
    assert!(messages[0].contains("`total`, which is not declared"), "{}", messages[0]);
    assert!(messages[1].contains("`mean`") && messages[1].contains("correct the name or remove"));
    // The attribute of an impl block is for all methods.
    let methods = "impl S { fn f(&self, a: Var) -> Var { a } fn g(&self, b: Var) -> Var { b } }";
    assert!(expand("self, a, b", methods).is_ok());
    assert!(expand("a, c", methods).is_err());
}

fn tokens_of(stream: TokenStream) -> usize {
    let count = |token: proc_macro2::TokenTree| match token {
        proc_macro2::TokenTree::Group(group) => 1 + tokens_of(group.stream()),
        _ => 1,
    };
    stream.into_iter().map(count).sum()
}

#[test]
fn the_expansion_grows_with_the_text() {
    // The compiler has a larger stack than a test; nested code needs it in release builds.
    const STACK: usize = 8 << 20;
    let thread = std::thread::Builder::new().stack_size(STACK).spawn(compare_sizes);
    thread.unwrap().join().unwrap();
}

fn compare_sizes() {
    type Text = fn(usize) -> String;
    let kinds: [(&str, Text); 8] = [
        ("branches", |n| {
            let branch = |i| format!("if x[{i}] > 0.0 {{ a += x[{i}]; }} else {{ b -= f(c); }}");
            (0..n).map(branch).collect()
        }),
        ("variables", |n| {
            let branch =
                |i| format!("let mut v{i} = a; if v{i} > b {{ v{i} += x[{i}]; }} c += v{i};");
            (0..n).map(branch).collect()
        }),
        ("nested branches", |n| {
            let ends = "} else { b += a; }".repeat(n);
            format!("{}{ends}", "if f(a) > b { a += c; ".repeat(n))
        }),
        ("nested loops", |n| {
            format!("{}{}", "for i in 0..3 { a += c; ".repeat(n), "b += a; }".repeat(n))
        }),
        ("breaks", |n| format!("loop {{ {} a += b; }}", "if a > b { c += a; break; }".repeat(n))),
        ("continues", |n| {
            let jumps = "if a > b { *v += a; continue; }".repeat(n);
            format!("for v in w.iter_mut() {{ {jumps} *v += b; }}")
        }),
        ("questions", |n| "a += g(&mut b)?; c.push(h(a)?);".repeat(n)),
        ("later values", |n| {
            let one = |i| {
                format!("let d{i}; if a > b {{ d{i} = f(a); }} else {{ d{i} = b; }} c += d{i};")
            };
            (0..n).map(one).collect()
        }),
    ];
    for (name, make) in kinds {
        let size = |n| {
            let text = format!(
                "fn f(x: &[Var], w: &mut Vec<Var>) -> Option<Var> {{
                    let (mut a, mut b, mut c) = (x[0], x[1], x[2]); {} Some(a + b + c)
                }}",
                make(n)
            );
            tokens_of(traced(Arguments::default(), text.parse().unwrap()).unwrap())
        };
        let (few, many) = (size(20) - size(10), size(40) - size(20));
        assert!(many < few * 21 / 10, "{name}: {few} tokens for 10, {many} for 20");
        assert!(few < 10 * 900, "{name}: {few} tokens for 10");
    }
}
