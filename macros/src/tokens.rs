//! Predicates on tokens: names, and the arguments of macros.

use proc_macro2::{Ident, TokenStream, TokenTree};
use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::{Expr, Macro, Token};

/// All names in `tokens`.
pub fn idents(tokens: TokenStream) -> Vec<Ident> {
    let names = tokens.into_iter().flat_map(|token| match token {
        TokenTree::Ident(name) => vec![name],
        TokenTree::Group(group) => idents(group.stream()),
        TokenTree::Punct(_) | TokenTree::Literal(_) => Vec::new(),
    });
    names.collect()
}

/// The names in `tokens` that may be variables: no keywords, fields, methods, parts of paths,
/// macros or arguments of macros.
pub fn variables(tokens: TokenStream) -> Vec<Ident> {
    const WORDS: &[&str] = &[
        "as",
        "bool",
        "break",
        "char",
        "const",
        "continue",
        "crate",
        "dyn",
        "else",
        "enum",
        "expr",
        "f32",
        "f64",
        "false",
        "fn",
        "for",
        "i16",
        "i32",
        "i64",
        "i8",
        "ident",
        "if",
        "impl",
        "in",
        "isize",
        "let",
        "loop",
        "macro_rules",
        "match",
        "mod",
        "move",
        "mut",
        "pat",
        "pub",
        "ref",
        "return",
        "self",
        "Self",
        "static",
        "struct",
        "super",
        "trait",
        "true",
        "tt",
        "ty",
        "type",
        "u16",
        "u32",
        "u64",
        "u8",
        "unsafe",
        "use",
        "usize",
        "where",
        "while",
    ];
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let is = |at: Option<usize>, sign: char| match at.and_then(|at| tokens.get(at)) {
        Some(TokenTree::Punct(punct)) => punct.as_char() == sign,
        _ => false,
    };
    let names = tokens.iter().enumerate().flat_map(|(at, token)| match token {
        TokenTree::Group(group) => variables(group.stream()),
        TokenTree::Ident(name) => {
            let before = |steps: usize, sign: char| is(at.checked_sub(steps), sign);
            let after = |steps: usize, sign: char| is(Some(at + steps), sign);
            let is_part = (before(1, '.') && !before(2, '.'))
                || (before(1, ':') && before(2, ':'))
                || (after(1, ':') && after(2, ':'))
                || (after(1, '!') && !after(2, '='))
                || before(1, '\'')
                || before(1, '$');
            let capital = name.to_string().starts_with(char::is_uppercase);
            let is_made = capital && matches!(tokens.get(at + 1), Some(TokenTree::Group(_)));
            match is_part || is_made || WORDS.iter().any(|word| name == word) {
                true => Vec::new(),
                false => vec![name.clone()],
            }
        }
        TokenTree::Punct(_) | TokenTree::Literal(_) => Vec::new(),
    });
    names.collect()
}

/// The arguments of a macro of the standard library that takes expressions.
pub fn arguments(call: &Macro) -> Option<Vec<Expr>> {
    const KNOWN: &[&str] = &[
        "assert",
        "assert_eq",
        "assert_ne",
        "dbg",
        "debug_assert",
        "debug_assert_eq",
        "debug_assert_ne",
        "eprint",
        "eprintln",
        "format",
        "format_args",
        "panic",
        "print",
        "println",
        "todo",
        "unimplemented",
        "unreachable",
        "vec",
        "write",
        "writeln",
    ];
    let own = |first: &Ident| ["std", "core", "alloc"].iter().any(|name| first == name);
    let is_own = call.path.segments.len() == 1
        || call.path.segments.first().is_some_and(|first| own(&first.ident));
    let name = call.path.segments.last()?.ident.to_string();
    if !is_own || !KNOWN.contains(&name.as_str()) {
        return None;
    }
    let list = Punctuated::<Expr, Token![,]>::parse_terminated;
    let pair = |input: syn::parse::ParseStream<'_>| {
        let value: Expr = input.parse()?;
        input.parse::<Token![;]>()?;
        Ok(vec![value, input.parse()?])
    };
    let tokens = call.tokens.clone();
    let parsed = list.parse2(tokens.clone()).map(|list| list.into_iter().collect());
    parsed.or_else(|_| pair.parse2(tokens)).ok()
}
