//! The macros of `phigrad`, which documents and re-exports them.

use proc_macro::TokenStream;

mod binding;
mod borrows;
mod captures;
mod derive;
mod emit;
mod flow_graph;
mod hint;
mod liveness;
mod log;
mod mutators;
mod places;
mod shape;
mod tokens;
mod traced;
mod types;
mod uniform;
mod walk;

/// Derives `phigrad::Carry` for a struct or an enum, field by field.
#[proc_macro_derive(Carry)]
pub fn derive_carry(item: TokenStream) -> TokenStream {
    let expanded = syn::parse(item).and_then(derive::carry);
    expanded.unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Rewrites a function so that the recorder sees its control flow.
#[proc_macro_attribute]
pub fn traced(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let expanded = syn::parse(arguments).and_then(|a| traced::traced(a, item.into()));
    expanded.unwrap_or_else(syn::Error::into_compile_error).into()
}
