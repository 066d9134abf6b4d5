//! The macros of `phigrad`, which documents and re-exports them.

use proc_macro::TokenStream;

mod derive;

/// Derives `phigrad::Carry` for a struct or an enum, field by field.
#[proc_macro_derive(Carry)]
pub fn derive_carry(item: TokenStream) -> TokenStream {
    let expanded = syn::parse(item).and_then(derive::carry);
    expanded.unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Traced.
#[proc_macro_attribute]
pub fn traced(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let _ = arguments;
    item
}
