//! Code generation: replaces the placeholders once the log is complete.

use proc_macro2::{Group, Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote, quote_spanned};

use crate::binding::Origin;
use crate::captures::LiveIns;
use crate::log::{Element, Kind, Log, Point, Projection};
use crate::mutators::{Ask, Mutator};
use crate::walk::plain::{shadow, track};

const POINT: &str = "__phigrad_point_";
const MUTATORS: &str = "__phigrad_mutators_";
const JUMPS: &str = "__phigrad_jumps_";
const CAPTURED: &str = "__phigrad_captured_by_";
const COUNTS: &str = "__phigrad_counts_";
const LIVE_INS: &str = "__phigrad_live_ins_";
/// The number of bits; the last one is shared by all further variables.
const LAST_BIT: usize = 63;

/// Replaces all placeholders in `tokens`.
pub fn fill(log: &Log, tokens: TokenStream) -> TokenStream {
    let filled = tokens.into_iter().map(|token| match token {
        TokenTree::Group(group) => {
            let mut new = Group::new(group.delimiter(), fill(log, group.stream()));
            new.set_span(group.span());
            TokenTree::Group(new).into()
        }
        TokenTree::Ident(name) => {
            placeholder(log, &name).unwrap_or_else(|| TokenTree::Ident(name).into())
        }
        other => other.into(),
    });
    filled.collect()
}

fn placeholder(log: &Log, name: &Ident) -> Option<TokenStream> {
    let text = name.to_string();
    let point = |number: &str| number.parse().ok().and_then(|index: usize| log.points.get(index));
    if let Some(number) = text.strip_prefix(POINT) {
        let index: usize = number.parse().ok()?;
        Some(hand_over(log, index, point(number)?))
    } else if let Some(number) = text.strip_prefix(JUMPS) {
        let jumps = log.jumps(point(number)?);
        Some(if jumps { TokenStream::new() } else { quote_spanned!(site()=> .without_jumps()) })
    } else if let Some(number) = text.strip_prefix(CAPTURED) {
        let &(_, start, end) = log.closures.get(number.parse::<usize>().ok()?)?;
        let questions = log.captured(start, end).into_iter().map(|s| question(log, &s));
        let unknown = |kind: &Kind| matches!(kind, Kind::Unknown(_));
        let unknown = log.entries[start..end].iter().any(|entry| unknown(&entry.kind));
        Some(quote_spanned!(site()=> (#unknown #(| #questions)*)))
    } else if let Some(number) = text.strip_prefix(COUNTS) {
        let counts = log.is_counter(number.parse().ok()?);
        Some(quote!(#counts))
    } else if let Some(number) = text.strip_prefix(LIVE_INS) {
        let (point, name) = (point(number)?, quote!(capture));
        let live_ins =
            log.live_ins(point).map(|live_ins| capture(log, &live_ins, &name, &quote!()));
        let reach = live_ins.is_some().then(|| log.jump_live_ins(point)).flatten();
        let reach = reach.map(|(targets, live_ins)| {
            let targets = targets.iter().map(|&target| match target {
                0 => format_ident!("__phigrad_body", span = site()),
                target => format_ident!("__phigrad_region_{target}", span = site()),
            });
            capture(log, &live_ins, &quote!(capture_for_jumps), &quote!([#(#targets),*],))
        });
        Some(quote!(#live_ins #reach))
    } else {
        Some(ask(log, point(text.strip_prefix(MUTATORS)?)?))
    }
}

fn site() -> Span {
    Span::mixed_site()
}

/// Hands over the variables carried to `point`.
fn hand_over(log: &Log, point_index: usize, point: &Point) -> TokenStream {
    let value = point.value.then(|| {
        let content = quote_spanned! {site()=>
            (&mut ::phigrad::flow::Probe(&mut *__phigrad_value)).hand_over(__phigrad_to);
        };
        let content = point.target.map_or(content.clone(), |target| {
            let shadow = shadow(target);
            quote_spanned! {site()=>
                if !(&::phigrad::flow::Track(&*__phigrad_value, &#shadow)).carry_value(__phigrad_to) {
                    #content
                }
            }
        });
        quote_spanned! {site()=>
            __phigrad_to.temporary("the value of the expression");
            #content
        }
    });
    let ignored = (!point.value && point.role != crate::log::Role::Head)
        .then(|| quote_spanned!(site()=> let _ = __phigrad_value;));
    let carried = log.carried(point).into_iter().map(|carried| {
        let binding = &log.bindings[carried.variable];
        let (name, fields, assigned) =
            (&binding.name, &carried.projection.fields, carried.assigned);
        let mut text = name.to_string();
        for field in fields {
            text += &format!(".{}", field.to_token_stream());
        }
        let access = match binding.mutable || binding.is_deferred() || !fields.is_empty() {
            true => quote!(&mut #name #(.#fields)*),
            false => quote!(&mut *#name),
        };
        let site = site().located_at(name.span());
        let item = (point.memory.is_some() && binding.origin == Origin::Item)
            .then(|| quote_spanned!(site=> __phigrad_to.item();));
        let index = carried.projection.element.as_ref().map(|element| index(log, element));
        let content = match (carried.opaque, index) {
            (false, Some(index)) => quote_spanned! {site=>
                (&mut &mut ::phigrad::flow::Element(#access, &#index)).hand_over(__phigrad_to);
            },
            (true, _) => quote_spanned!(site=> __phigrad_to.opaque();),
            (false, None) => {
                let content = quote_spanned! {site=>
                    (&mut ::phigrad::flow::Probe(#access)).hand_over(__phigrad_to);
                };
                match binding.tracked && carried.projection.is_whole() {
                    true => {
                        let (index, keeps) = (
                            carried.variable as u64,
                            log.keeps_constant(point_index, carried.variable),
                        );
                        let call = quote_spanned!(site=> carry(__phigrad_to, #index, #keeps));
                        let call = track(name, carried.variable, &call);
                        quote_spanned!(site=> if !#call { #content })
                    }
                    false => content,
                }
            }
        };
        // The place of the variable.
        let begin = quote_spanned!(name.span()=> variable(#text, #assigned));
        quote_spanned!(site=> __phigrad_to.#begin; #item #content)
    });
    // Opaque variables: mutators, receivers of user methods, unknown names.
    let mutators = log.points.get(point.mutators_of).map(|point| log.mutators(point));
    let mutators = mutators.unwrap_or_default();
    let mutators = mutators.iter().enumerate().map(|(index, mutator)| {
        let (bit, text) =
            (index.min(LAST_BIT) as u32, log.bindings[mutator.variable].name.to_string());
        quote_spanned!(site()=> __phigrad_to.mutator(#bit, #text);)
    });
    let methods = log.methods(point).into_iter().map(|(variable, number)| {
        let (bit, text) = (number.min(LAST_BIT) as u32, log.bindings[variable].name.to_string());
        quote_spanned!(site()=> __phigrad_to.called(&__phigrad_methods, #bit, #text);)
    });
    let unknown = log.unknown(point).into_iter().map(|name| {
        let text = name.to_string();
        quote_spanned!(site()=> __phigrad_to.variable(#text, false); __phigrad_to.item(); __phigrad_to.opaque();)
    });
    let remember =
        point.memory.as_ref().map(|m| quote_spanned!(site()=> __phigrad_to.remember(&#m);));
    quote_spanned!(site()=> let _ = &__phigrad_to; #ignored #value #(#carried)* #(#mutators)* #(#methods)* #(#unknown)* #remember)
}

fn index(log: &Log, element: &Element) -> TokenStream {
    match element {
        Element::Variable(index) => log.bindings[*index].name.to_token_stream(),
        Element::Number(number) => number.to_token_stream(),
    }
}

/// Wraps `call`, method call number `number`, in a test of the type of its receiver.
pub fn noted(number: usize, receiver: &syn::Expr, call: &syn::Expr) -> TokenStream {
    let bit = number.min(LAST_BIT) as u32;
    quote_spanned! {site()=>
        (match (&&::phigrad::flow::Own::of(|| &#receiver)).note(&__phigrad_methods, #bit) {
            () => #call
        })
    }
}

/// Captures live-in values by this method.
fn capture(
    log: &Log,
    live_ins: &LiveIns,
    method: &TokenStream,
    targets: &TokenStream,
) -> TokenStream {
    let pairs = live_ins.pairs.iter().map(|(one, other)| {
        let (one, other) = (index(log, one), index(log, other));
        quote_spanned! {site()=>
            (&::phigrad::flow::SameIndex(&#one, &#other)).show(__phigrad_to);
        }
    });
    let places = live_ins.places.iter().map(|(variable, Projection { fields, element })| {
        let name = &log.bindings[*variable].name;
        match element.as_ref().map(|element| index(log, element)) {
            Some(index) => quote_spanned! {site()=>
                (&&::phigrad::flow::ElementView(&#name #(.#fields)*, &#index)).show(__phigrad_to);
            },
            None if log.bindings[*variable].tracked && fields.is_empty() => {
                let call = track(name, *variable, &quote_spanned!(site()=> capture(__phigrad_to)));
                let other = match log.bindings[*variable].known {
                    true => {
                        quote_spanned!(site()=> (&::phigrad::flow::View(&#name)).show(__phigrad_to))
                    }
                    false => quote_spanned!(site()=> __phigrad_to.incomplete()),
                };
                quote_spanned!(site()=> if !#call { #other; })
            }
            None => quote_spanned! {site()=>
                (&::phigrad::flow::View(&#name #(.#fields)*)).show(__phigrad_to);
            },
        }
    });
    quote_spanned! {site()=>
        .#method(#targets |__phigrad_to| {
            // The type of a closure depends on all generic parameters of the function.
            __phigrad_to.code(&|| {});
            #(#pairs)*
            #(#places)*
        })
    }
}

/// The bits of the mutators of the region that ends at `point`.
fn ask(log: &Log, point: &Point) -> TokenStream {
    let bits = log.mutators(point).into_iter().enumerate().map(|(index, mutator)| {
        let (question, bit) = (question(log, &mutator), index.min(LAST_BIT));
        quote_spanned!(site()=> | ((#question as u64) << #bit))
    });
    quote_spanned!(site()=> 0u64 #(#bits)*)
}

fn question(log: &Log, mutator: &Mutator) -> TokenStream {
    let (name, fields) = (&log.bindings[mutator.variable].name, &mutator.fields);
    let look = |of: TokenStream| match mutator.missing {
        false => quote_spanned!(site()=> ::core::option::Option::Some(&#of)),
        // Unreachable code has a type, and borrows nothing.
        true => quote_spanned! {site()=>
            if true { ::core::option::Option::None } else {
                #[allow(unreachable_code, clippy::all)]
                { loop {} ::core::option::Option::Some(&#of) }
            }
        },
    };
    let holds = |of: TokenStream| {
        let of = look(of);
        quote_spanned!(site()=> (&&::phigrad::flow::Hold(#of)).holds())
    };
    match mutator.ask {
        Ask::Reaches => {
            let of = look(quote!(#name #(.#fields)*));
            quote_spanned!(site()=> (&::phigrad::flow::Reach(#of)).reaches())
        }
        Ask::Holds => holds(quote!(#name #(.#fields)*)),
        Ask::HoldsBehind => holds(quote!(*#name)),
        Ask::Captured => {
            let closure = log.closures.iter().position(|closure| closure.0 == mutator.variable);
            let local =
                closure.map(|index| format_ident!("__phigrad_holds_{index}", span = site()));
            local.map_or(quote!(true), |local| quote!(#local))
        }
        Ask::Always => quote!(true),
    }
}
