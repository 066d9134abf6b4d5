//! The attribute `traced`: functions, and blocks of them.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{
    Attribute, Block, Error, FnArg, ImplItem, Item, Result, ReturnType, Signature, Token,
    TraitItem, Type, parenthesized, parse_quote,
};

use crate::binding::{Origin, Reference};
use crate::emit::fill;
use crate::log::Role;
use crate::shape;
use crate::walk::{Bound, Walker, enter, join};

/// The arguments of the attribute.
#[derive(Default)]
pub struct Arguments {
    opaque: Vec<Ident>,
}

impl Parse for Arguments {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let mut arguments = Arguments::default();
        while !input.is_empty() {
            let name: Ident = input.parse()?;
            if name != "opaque" {
                let message = "the only argument of `traced` is `opaque(variable, ..)`";
                return Err(Error::new(name.span(), message));
            }
            let names;
            parenthesized!(names in input);
            let parse = |input: ParseStream<'_>| match input.parse::<Option<Token![self]>>()? {
                Some(own) => Ok(Ident::from(own)),
                None => input.parse(),
            };
            let names = Punctuated::<Ident, Token![,]>::parse_terminated_with(&names, parse)?;
            arguments.opaque.extend(names);
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(arguments)
    }
}

/// Rewrites the functions of the item under the attribute.
pub fn traced(arguments: Arguments, item: TokenStream) -> Result<TokenStream> {
    let mut opaque = OpaqueNames { unbound: arguments.opaque.clone(), all: arguments.opaque };
    let rewritten = rewrite(&mut opaque, item)?;
    opaque.check()?;
    Ok(rewritten)
}

/// The names in the attribute's `opaque`.
struct OpaqueNames {
    all: Vec<Ident>,
    /// Those of which no variable was found yet.
    unbound: Vec<Ident>,
}

impl OpaqueNames {
    /// Refuses names of which there is no variable.
    fn check(self) -> Result<()> {
        let errors = self.unbound.iter().map(|name| {
            let message = format!(
                "`opaque` names the variable `{name}`, which is not declared under this attribute; \
                 correct the name or remove it"
            );
            Error::new(name.span(), message)
        });
        errors.reduce(combined).map_or(Ok(()), Err)
    }
}

fn combined(mut all: Error, error: Error) -> Error {
    all.combine(error);
    all
}

fn rewrite(opaque: &mut OpaqueNames, item: TokenStream) -> Result<TokenStream> {
    let message = "`#[phigrad::traced]` is for functions, methods, traits and impl blocks";
    match syn::parse2(item)? {
        Item::Fn(mut function) => {
            function.block = Box::new(body(opaque, &function.sig, &function.block)?);
            function.attrs.push(allowed());
            Ok(function.into_token_stream())
        }
        Item::Impl(mut block) => {
            for item in &mut block.items {
                // Functions evaluated at compile time have no `Var`.
                if let ImplItem::Fn(method) = item
                    && method.sig.constness.is_none()
                {
                    method.block = body(opaque, &method.sig, &method.block)?;
                    method.attrs.push(allowed());
                }
            }
            Ok(block.into_token_stream())
        }
        Item::Trait(mut block) => {
            for item in &mut block.items {
                if let TraitItem::Fn(method) = item
                    && let Some(code) = &method.default
                {
                    method.default = Some(body(opaque, &method.sig, code)?);
                    method.attrs.push(allowed());
                }
            }
            Ok(block.into_token_stream())
        }
        other => Err(Error::new_spanned(other, message)),
    }
}

/// Lints that generated code would trigger: a region ends by a call that diverging paths do not
/// reach, and a former block is an argument of that call.
fn allowed() -> Attribute {
    parse_quote!(#[allow(unused_braces, clippy::diverging_sub_expression)])
}

/// The rewritten body of a function.
fn body(opaque: &mut OpaqueNames, signature: &Signature, code: &Block) -> Result<Block> {
    let refusal = [
        signature.constness.map(|word| (word.span, "a const fn")),
        signature.asyncness.map(|word| (word.span, "an async fn")),
    ];
    if let Some((span, what)) = refusal.into_iter().flatten().next() {
        let message = format!("`#[phigrad::traced]` does not support {what}; remove the attribute");
        return Err(Error::new(span, message));
    }
    if matches!(&signature.output, ReturnType::Type(_, ty) if matches!(**ty, Type::Never(_))) {
        // Nothing is carried, so nothing is looked up.
        opaque.unbound.clear();
        return Ok(code.clone());
    }
    let walker = Walker::new(opaque.all.clone());
    let first = walk(walker, signature, &mut code.clone());
    let mut rewritten = code.clone();
    let mut walker = walk(first.again(), signature, &mut rewritten);
    walker.log.complete();
    if let Some(error) = walker.errors.drain(..).reduce(combined) {
        return Err(error);
    }
    opaque.unbound.retain(|name| walker.log.bindings.iter().all(|binding| binding.name != *name));
    let span = signature.fn_token.span;
    let region = format_ident!("__phigrad_body", span = Span::mixed_site());
    let enter = enter(span, 0);
    // A diverging body does not reach its end.
    let whole = match shape::block_diverges(code) {
        true => rewritten.to_token_stream(),
        false => join(span, &quote!(#region), &quote!(#rewritten), 0),
    };
    let methods = (walker.log.methods > 0).then(|| {
        quote_spanned! {Span::mixed_site()=>
            #[allow(unused_variables)]
            let __phigrad_methods = ::core::cell::Cell::new(0u64);
        }
    });
    let shadows = walker.parameter_shadows();
    let tokens = quote_spanned! {Span::mixed_site()=> {
        #[allow(unused_imports)]
        use ::phigrad::flow::{
            Carried as _, CarriedElement as _, CarriedWhole as _, Hidden as _, Holds as _,
            HoldsKnown as _, MayHold as _, NoReference as _, Order as _, OtherMethods as _,
            OtherOrder as _, OwnMethods as _, Reaches as _, KnownMethods as _, Uncarried as _,
            UncarriedElement as _, Viewed as _, ViewedElement as _, ViewedWhole as _,
            HiddenElement as _, ComparedIndices as _, OtherIndices as _, Tracked as _,
            Untracked as _,
        };
        #methods
        #(#shadows)*
        let #region = #enter;
        #whole
    }};
    syn::parse2(fill(&walker.log, tokens))
}

fn walk(mut walker: Walker, signature: &Signature, code: &mut Block) -> Walker {
    for input in &signature.inputs {
        match input {
            FnArg::Receiver(receiver) => {
                let name = Ident::from(receiver.self_token);
                let by_mut = receiver.reference.is_some() && receiver.mutability.is_some();
                let typed =
                    receiver.colon_token.is_some().then(|| crate::walk::of_type(&receiver.ty));
                let bound = typed.unwrap_or(Bound {
                    reference: if by_mut { Reference::Mutable } else { Reference::NotMutable },
                    known: true,
                    ..Bound::default()
                });
                let mutable = receiver.reference.is_none() && receiver.mutability.is_some();
                walker.bind(&name, mutable, Bound { origin: Origin::Parameter, ..bound });
            }
            FnArg::Typed(typed) => {
                let pattern = syn::Pat::Type(typed.clone());
                walker.bind_parameter(
                    &pattern,
                    Bound { origin: Origin::Parameter, ..Bound::default() },
                );
            }
        }
    }
    walker.log.lends_out = match &signature.output {
        ReturnType::Default => false,
        ReturnType::Type(_, ty) => shape::has_lifetime(ty.to_token_stream()),
    };
    walker.begin();
    walker.exit();
    walker.block(code);
    let end = walker.log.entries.len();
    walker
        .log
        .points
        .iter_mut()
        .filter(|point| point.role == Role::Exit)
        .for_each(|point| point.end = end);
    walker
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
