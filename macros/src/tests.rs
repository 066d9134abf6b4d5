//! Tests of what the attribute refuses.

use super::*;

fn message(item: &str) -> String {
    traced(Arguments::default(), item.parse().unwrap()).unwrap_err().to_string()
}

#[test]
fn what_is_not_understood_is_refused_by_name() {
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
fn all_that_is_not_understood_is_told_at_once() {
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
