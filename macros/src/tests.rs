//! Tests of what the attribute refuses.

use super::*;

fn message(item: TokenStream) -> String {
    traced(Arguments::default(), item).unwrap_err().to_string()
}

#[test]
fn what_is_not_understood_is_refused_by_name() {
    for (item, what) in [
        (
            quote!(
                async fn f() {}
            ),
            "an async fn",
        ),
        (
            quote!(
                const fn f() -> u8 {
                    0
                }
            ),
            "a const fn",
        ),
        (
            quote!(
                fn f() {
                    g(async { 1 });
                }
            ),
            "async code",
        ),
        (
            quote!(
                fn f() {
                    unsafe {
                        if a {
                            b()
                        }
                    }
                }
            ),
            "an unsafe block",
        ),
        (
            quote!(
                struct S;
            ),
            "is for functions",
        ),
    ] {
        let message = message(item);
        assert!(message.contains(what), "{message}");
    }
}

#[test]
fn the_only_argument_is_opaque() {
    assert!(syn::parse2::<Arguments>(quote!(opaque(a, self))).is_ok());
    let error = syn::parse2::<Arguments>(quote!(clear(a))).err().map(|e| e.to_string());
    assert!(error.unwrap_or_default().contains("opaque(variable"));
}
