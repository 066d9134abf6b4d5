//! The derive of `Carry`.

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};
use syn::{Data, DeriveInput, Error, Fields, Result, parse_quote};

/// The implementation of `Carry` for `input`.
pub fn carry(input: DeriveInput) -> Result<TokenStream> {
    let name = &input.ident;
    let mut generics = input.generics.clone();
    for parameter in generics.type_params_mut() {
        parameter.bounds.push(parse_quote!(::phigrad::Carry));
    }
    let (parameters, arguments, bounds) = generics.split_for_impl();
    let (carry, note) = match &input.data {
        Data::Struct(data) => {
            let pattern = quote!(#name);
            (arm(&pattern, &data.fields, None, "carry"), arm(&pattern, &data.fields, None, "note"))
        }
        Data::Enum(data) => {
            let arms = |method: &str| -> TokenStream {
                let arms = data.variants.iter().zip(0u64..).map(|(variant, index)| {
                    let variant_name = &variant.ident;
                    arm(&quote!(#name::#variant_name), &variant.fields, Some(index), method)
                });
                arms.collect()
            };
            (arms("carry"), arms("note"))
        }
        Data::Union(data) => {
            let message = "`Carry` cannot be derived for a union, whose active field is unknown; implement it";
            return Err(Error::new(data.union_token.span, message));
        }
    };
    // A type without values has no arms.
    let (carried, noted) = match &input.data {
        Data::Enum(data) if data.variants.is_empty() => (quote!(*self), quote!(*self)),
        _ => (quote!(self), quote!(self)),
    };
    let fields: Vec<&syn::Field> = match &input.data {
        Data::Struct(data) => data.fields.iter().collect(),
        Data::Enum(data) => data.variants.iter().flat_map(|v| &v.fields).collect(),
        Data::Union(_) => Vec::new(),
    };
    // A recursive type cannot ask itself.
    let (own, others): (Vec<_>, Vec<_>) =
        fields.iter().map(|field| &field.ty).partition(|ty| names(ty, name));
    let holders = others.into_iter();
    let lifetimes = !own.is_empty()
        && (input.generics.lifetimes().next().is_some()
            || input.generics.type_params().next().is_some());
    let plain = plain(&input);
    Ok(quote! {
        #plain

        #[automatically_derived]
        impl #parameters ::phigrad::Carry for #name #arguments #bounds {
            const REFERS: bool = #lifetimes #(|| <#holders as ::phigrad::Carry>::REFERS)*;

            fn carry(&mut self, __to: &mut ::phigrad::flow::Carrier) {
                let _ = &__to;
                match #carried { #carry }
            }

            fn note(&self, __to: &mut ::phigrad::flow::Carrier) {
                let _ = &__to;
                match #noted { #note }
            }
        }
    })
}

/// The numbers of the variants of an enum without fields.
fn plain(input: &DeriveInput) -> Option<TokenStream> {
    let Data::Enum(data) = &input.data else { return None };
    let is_plain = data.variants.iter().all(|variant| matches!(variant.fields, Fields::Unit));
    if !is_plain || data.variants.is_empty() || !input.generics.params.is_empty() {
        return None;
    }
    let (name, count) = (&input.ident, u32::try_from(data.variants.len()).ok()?);
    let arms = data.variants.iter().zip(0i128..).map(|(variant, number)| {
        let variant = &variant.ident;
        quote!(#name::#variant => #number,)
    });
    Some(quote! {
        #[automatically_derived]
        impl ::phigrad::flow::Plain for #name {
            const NUMBERING: ::phigrad::flow::Numbering = ::phigrad::flow::Numbering::Choices(#count);

            fn wide(&self) -> i128 {
                match self { #(#arms)* }
            }
        }
    })
}

/// Tests whether a type mentions the derived one.
fn names(ty: &syn::Type, name: &Ident) -> bool {
    let names = crate::tokens::idents(quote!(#ty));
    names.iter().any(|other| other == name || other == "Self")
}

/// The match arm of a struct or variant; `index` is the number of the variant.
fn arm(path: &TokenStream, fields: &Fields, index: Option<u64>, method: &str) -> TokenStream {
    let method = format_ident!("{method}");
    let locals: Vec<Ident> = (0..fields.len()).map(|i| format_ident!("__field{i}")).collect();
    let members = fields.members();
    let index = index.map(|index| quote!(__to.state(#index);));
    quote! {
        #path { #(#members: #locals,)* } => {
            #index
            #(::phigrad::Carry::#method(#locals, __to);)*
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_union_is_an_error_with_the_reason() {
        let error = carry(parse_quote!(union U { a: u32, b: f32 })).unwrap_err();
        assert!(error.to_string().contains("union"), "{error}");
    }
}
