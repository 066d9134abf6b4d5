//! Invariants of the repository's own files: headers, sizes, the direction of
//! imports, where `unsafe` and Cranelift may occur, what must not occur at all,
//! and that tests name each reason to fail. Every check is
//! tested with a planted violation.

use crate::source::{Source, code, files, is_word, words};

const RUST_FOLDERS: [&str; 6] =
    ["src", "macros/src", "harness/src", "tests", "examples", "benches"];
const MAX_LINES: usize = 700;

/// The layers with their ranks: a layer imports from lower ranks only.
const LAYERS: [(&str, usize); 28] = [
    ("entity", 0),
    ("custom", 1),
    ("op", 1),
    ("numeric", 2),
    ("trace", 3),
    ("flow", 4),
    ("linalg", 4),
    ("ssa", 4),
    ("random", 0),
    ("loops", 6),
    ("validate", 6),
    ("notation", 6),
    ("sparse", 6),
    ("cost", 7),
    ("merge", 7),
    ("phi", 8),
    ("simplify", 8),
    ("soi", 8),
    ("diff", 8),
    ("jit", 8),
    ("pipeline", 9),
    ("runtime", 10),
    ("explain", 11),
    ("check", 11),
    ("guide", 12),
    ("internals", 12),
    ("report", 12),
    ("lib", 12),
];

/// A check of one file: what is wrong in it, by line.
type Check = fn(&str, &str) -> Vec<String>;

fn violation(path: &str, line: usize, what: &str) -> String {
    format!("{path}:{line}: {what}")
}

fn header(path: &str, text: &str) -> Vec<String> {
    let described = text.lines().next().is_some_and(|line| line.starts_with("//! "));
    if described { vec![] } else { vec![violation(path, 1, "no `//! ` line says what it is for")] }
}

fn size(path: &str, text: &str) -> Vec<String> {
    let lines = text.lines().count();
    if lines <= MAX_LINES { vec![] } else { vec![violation(path, lines, "more than 700 lines")] }
}

/// The cost model is below what it decides about, the passes are above.
const COST_MODEL: &str = "src/pipeline/cost.rs";
/// Closed forms are recorded in mathematical notation, and explained above.
const NOTATION: &str = "src/explain/notation/";

fn layer(path: &str) -> &str {
    if path == COST_MODEL {
        return "cost";
    }
    if path.starts_with(NOTATION) {
        return "notation";
    }
    let below = path.trim_start_matches("src/");
    below.split('/').next().unwrap_or(below).trim_end_matches(".rs")
}

fn rank(name: &str) -> Option<usize> {
    LAYERS.iter().find(|(layer, _)| *layer == name).map(|&(_, rank)| rank)
}

/// Paths that start at the crate's root name only lower layers, or the own one.
fn imports(path: &str, text: &str) -> Vec<String> {
    let own = layer(path);
    let Some(own_rank) = rank(own) else {
        return vec![violation(path, 1, "is in no known layer")];
    };
    let code =
        code(text).replace("pipeline::cost", "cost").replace("explain::notation", "notation");
    let mut found = Vec::new();
    for root in ["crate::", "super::super::"] {
        for (at, _) in code.match_indices(root) {
            let line = code[..at].lines().count().max(1);
            for name in first_names(&code[at + root.len()..]) {
                let allowed = match rank(name) {
                    Some(rank) => name == own || rank < own_rank,
                    // An item of the root is of the highest layer; a second
                    // `super` may end in an inline module instead.
                    None => root != "crate::",
                };
                if !allowed {
                    found.push(violation(path, line, &format!("{own} must not use {name}")));
                }
            }
        }
    }
    found
}

/// The first names of the path, or group of paths, that `code` starts with.
fn first_names(code: &str) -> Vec<&str> {
    let name = |text: &'_ str| text.bytes().take_while(|&byte| is_word(byte)).count();
    let Some(group) = code.strip_prefix('{') else { return vec![&code[..name(code)]] };
    let mut names = Vec::new();
    let (mut depth, mut start) = (0, 0);
    for (at, character) in group.char_indices() {
        match character {
            '{' => depth += 1,
            '}' | ',' if depth == 0 => {
                let part = group[start..at].trim_start();
                names.extend(Some(&part[..name(part)]).filter(|name| !name.is_empty()));
                start = at + 1;
                if character == '}' {
                    break;
                }
            }
            '}' => depth -= 1,
            _ => {}
        }
    }
    names
}

fn unsafe_code(path: &str, text: &str) -> Vec<String> {
    if path == "src/jit/code.rs" {
        return vec![];
    }
    let code = code(text);
    let found = words(&code).filter(|&(_, word)| word == "unsafe");
    found.map(|(line, _)| violation(path, line, "unsafe code outside src/jit/code.rs")).collect()
}

fn cranelift(path: &str, text: &str) -> Vec<String> {
    if path.starts_with("src/jit/") {
        return vec![];
    }
    let code = code(text);
    let found = words(&code).filter(|(_, word)| word.starts_with("cranelift"));
    found.map(|(line, _)| violation(path, line, "Cranelift outside src/jit")).collect()
}

fn leftovers(path: &str, text: &str) -> Vec<String> {
    let notes = words(text).filter(|(_, word)| ["TODO", "FIXME", "XXX"].contains(word));
    let mut found: Vec<_> =
        notes.map(|(line, word)| violation(path, line, &format!("a {word} left"))).collect();
    for (index, line) in code(text).lines().enumerate() {
        for name in ["dbg!", "println!", "eprintln!", "print!", "eprint!"] {
            let whole = |at: usize| at == 0 || !is_word(line.as_bytes()[at - 1]);
            if line.match_indices(name).any(|(at, _)| whole(at)) {
                found.push(violation(path, index + 1, &format!("{name} in the library")));
            }
        }
    }
    found
}

/// Places of somebody's machine, in code, strings, comments and documents.
fn absolute_paths(path: &str, text: &str) -> Vec<String> {
    let starts = ["home", "work", "tmp", "root", "Users", "usr", "opt", "var", "mnt"];
    let mut found = Vec::new();
    for (index, line) in text.lines().enumerate() {
        for start in starts.map(|start| format!("/{start}/")) {
            let first = |at: usize| match line[..at].chars().next_back() {
                Some(before) => "\"'`( =".contains(before),
                None => true,
            };
            if line.match_indices(&start).any(|(at, _)| first(at)) {
                found.push(violation(path, index + 1, "an absolute path"));
            }
        }
    }
    found
}

/// The names of the variants of `pub enum name`.
fn variants(text: &str, name: &str) -> Vec<String> {
    let code = code(text);
    let Some(start) = code.find(&format!("pub enum {name} {{")) else { return vec![] };
    let body = code[start..].lines().skip(1).take_while(|line| !line.starts_with('}'));
    let names = body.filter_map(|line| {
        let line = line.strip_prefix("    ")?;
        let length = line.bytes().take_while(|&byte| is_word(byte)).count();
        line.starts_with(|c: char| c.is_ascii_uppercase()).then(|| line[..length].to_owned())
    });
    names.collect()
}

/// True if `text` has `name`, not as a part of a longer word.
fn has(text: &str, name: &str) -> bool {
    let bytes = text.as_bytes();
    text.match_indices(name).any(|(at, _)| {
        let word = |byte: Option<&u8>| byte.is_some_and(|&byte| is_word(byte));
        let before = at.checked_sub(1).and_then(|before| bytes.get(before));
        !word(before) && !word(bytes.get(at + name.len()))
    })
}

/// Words that are the field's in no sense, or have another one there.
const PRIVATE_WORDS: [&str; 26] = [
    "census",
    "certificate",
    "couplings",
    "curiosity",
    "decisive",
    "departure",
    "departures",
    "disproved",
    "doubt",
    "glimpse",
    "graft",
    "grafts",
    "grafting",
    "jet",
    "learnt",
    "lesson",
    "lessons",
    "meeting",
    "patience",
    "relay",
    "settled",
    "singles",
    "suspects",
    "teach",
    "toward",
    "valleys",
];

fn private_words(path: &str, text: &str) -> Vec<String> {
    let is_private = |word: &&str| PRIVATE_WORDS.contains(&word.to_lowercase().as_str());
    let of_line = |(number, line): (usize, &str)| {
        let words = line.split(|character: char| !character.is_alphabetic());
        let found = words.filter(is_private);
        found.map(|word| violation(path, number + 1, word)).collect::<Vec<_>>()
    };
    text.lines().enumerate().flat_map(of_line).collect()
}

/// Docs of items begin with a noun or a verb.
fn beginnings(path: &str, text: &str) -> Vec<String> {
    const QUESTIONS: [&str; 8] = ["What", "Whether", "How", "Where", "Why", "Which", "When", "Who"];
    let mut before = "";
    let mut found = Vec::new();
    for (number, line) in text.lines().map(str::trim_start).enumerate() {
        if let Some(doc) = line.strip_prefix("/// ")
            && !before.starts_with("///")
            && QUESTIONS.iter().any(|&question| doc.split(' ').next() == Some(question))
        {
            found.push(violation(path, number + 1, line));
        }
        before = line;
    }
    found
}

/// True if a test in `codes`, which are without comments and strings, has `name`.
fn is_named(codes: &[String], name: &str) -> bool {
    codes.iter().any(|code| has(code, name))
}

/// The code of all tests but this one.
fn tests() -> Vec<String> {
    let tests = files(&["tests"], &[".rs"]).into_iter();
    tests
        .filter(|test| test.path != "tests/tidy/repository.rs")
        .map(|test| code(&test.text))
        .collect()
}

fn assert_tidy(check: Check, files: &[Source]) {
    assert!(!files.is_empty());
    let found: Vec<String> =
        files.iter().flat_map(|source| check(&source.path, &source.text)).collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn every_file_says_what_it_is_for_and_is_not_too_long() {
    let all = files(&RUST_FOLDERS, &[".rs"]);
    assert!(all.len() > 40, "the walk found {} files only", all.len());
    assert_tidy(header, &all);
    assert_tidy(size, &all);
}

#[test]
fn files_import_from_lower_layers_only() {
    assert_tidy(imports, &files(&["src"], &[".rs"]));
}

#[test]
fn unsafe_code_and_cranelift_stay_in_their_places() {
    assert_tidy(
        unsafe_code,
        &files(&["src", "macros", "harness", "examples", "benches"], &[".rs"]),
    );
    assert_tidy(cranelift, &files(&["src", "examples"], &[".rs"]));
}

#[test]
fn nothing_is_left_over() {
    assert_tidy(leftovers, &files(&["src"], &[".rs"]));
    let folders =
        [&RUST_FOLDERS[..], &["README.md", "CHANGELOG.md", "Cargo.toml", "data", ".ci"]].concat();
    let mut texts = files(&folders, &[".rs", ".md", ".toml", "run"]);
    texts.retain(|source| source.path != "tests/tidy/repository.rs");
    assert_tidy(absolute_paths, &texts);
}

#[test]
fn words_are_those_of_the_field() {
    let documents =
        ["README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "docs", "fuzz"];
    let folders = [&RUST_FOLDERS[..], &documents].concat();
    let mut texts = files(&folders, &[".rs", ".md"]);
    texts.retain(|source| source.path != "tests/tidy/repository.rs");
    assert_tidy(private_words, &texts);
}

#[test]
fn docs_of_items_begin_with_a_noun_or_a_verb() {
    assert_tidy(beginnings, &files(&RUST_FOLDERS, &[".rs"]));
    assert_found(beginnings, "src/a.rs", "/// Whether it is.\nfn f() {}\n", 1);
    assert_found(beginnings, "src/a.rs", "/// True if it is.\n/// What\nfn f() {}\n", 0);
}

#[test]
fn planted_private_words_are_found() {
    assert_found(
        private_words,
        "src/a.rs",
        "let last_lesson = 1; // Learnt.\nfn teacher() {}\n",
        2,
    );
}

#[test]
fn tests_name_every_reason_to_fail() {
    let (sources, tests) = (files(&["src"], &[".rs"]), tests());
    for name in ["Refusal", "MergeError", "CompileError", "RunError", "TraceError", "ParseError"] {
        let all: Vec<String> =
            sources.iter().flat_map(|source| variants(&source.text, name)).collect();
        assert!(all.len() >= 2, "{name}: {all:?}");
        for variant in all {
            assert!(
                is_named(&tests, &format!("{name}::{variant}")),
                "no test of {name}::{variant}"
            );
        }
    }
    assert!(is_named(&tests, "VerifyError"));
}

/// Asserts that `check` finds as many violations in `text` as stated.
fn assert_found(check: Check, path: &str, text: &str, count: usize) {
    let found = check(path, text);
    assert_eq!(found.len(), count, "{text}\n{found:?}");
}

#[test]
fn planted_headers_and_sizes_are_found() {
    assert_found(header, "src/a.rs", "//! For this.\nfn f() {}\n", 0);
    assert_found(header, "src/a.rs", "// For this.\n", 1);
    assert_found(header, "src/a.rs", "", 1);
    assert_found(size, "src/a.rs", &"\n".repeat(700), 0);
    assert_found(size, "src/a.rs", &"\n".repeat(701), 1);
}

#[test]
fn planted_imports_are_found() {
    for (path, text, count) in [
        ("src/merge/mod.rs", "use crate::trace::Trace; use crate::ssa::Graph;", 0),
        ("src/merge/mod.rs", "use crate::jit::Kernel;", 1),
        ("src/phi/close.rs", "use crate::pipeline::cost;", 0),
        ("src/phi/close.rs", "use crate::pipeline::Options;", 1),
        ("src/pipeline/cost.rs", "use crate::loops::expand; use crate::phi::close;", 1),
        ("src/diff/mod.rs", "use crate::jit::Kernel;", 1),
        ("src/jit/mod.rs", "use crate::diff::reverse;", 1),
        ("src/validate/mod.rs", "use crate::{phi::close, ssa::Graph, diff::reverse};", 2),
        ("src/phi/close.rs", "use crate::validate::refuted;", 0),
        ("src/entity/mod.rs", "fn f() { crate::op::eval() }", 1),
        ("src/op/mod.rs", "use crate::{entity::Array, ssa::{Graph, Node}, trace};", 2),
        ("src/op/mod.rs", "use crate::{\n    entity::PrimaryMap,\n};", 0),
        ("src/trace/var.rs", "/// [`Tape`](crate::Tape)\nconst T: &str = \"crate::ssa\";", 0),
        ("src/trace/var.rs", "use crate::Tape;", 1),
        ("src/trace/var.rs", "use super::super::ssa::Graph;", 1),
        ("src/trace/var.rs", "mod tests { use super::super::helper; }", 0),
        ("src/runtime/core.rs", "use crate::check::gradient;", 1),
        ("src/lib.rs", "pub use crate::runtime::Tape;", 0),
        ("src/attic/mod.rs", "", 1),
    ] {
        assert_found(imports, path, text, count);
    }
}

#[test]
fn planted_unsafe_code_and_cranelift_are_found() {
    assert_found(unsafe_code, "src/op/mod.rs", "fn f() { unsafe { g() } }", 1);
    assert_found(unsafe_code, "src/jit/code.rs", "fn f() { unsafe { g() } }", 0);
    let quoted = "// unsafe\n/* unsafe /* */ unsafe */ const A: &str = \"\\\"unsafe\"; 'u'";
    assert_found(unsafe_code, "src/op/mod.rs", quoted, 0);
    assert_found(unsafe_code, "src/op/mod.rs", "const A: &str = r#\"\"unsafe\"#; unsafe {}", 1);
    assert_found(unsafe_code, "src/op/mod.rs", "fn f<'a>(c: char) { c == '\"'; unsafe {} }", 1);
    assert_found(unsafe_code, "src/op/mod.rs", "#![deny(unsafe_op_in_unsafe_fn)]", 0);
    assert_found(cranelift, "src/ssa/mod.rs", "use cranelift_codegen::ir;", 1);
    assert_found(cranelift, "src/jit/mod.rs", "use cranelift_codegen::ir;", 0);
    assert_found(cranelift, "src/lib.rs", "//! Kernels by cranelift.", 0);
}

#[test]
fn planted_leftovers_are_found() {
    assert_found(leftovers, "src/a.rs", "// TODO: more\nfn f() { dbg!(1); }", 2);
    assert_found(leftovers, "src/a.rs", "fn f() { std::println!(\"{}\", 1) }", 1);
    assert_found(leftovers, "src/a.rs", "// println!\nfn f() { writeln!(out, \"FIXMEs\") }", 0);
    for (text, count) in [
        ("let p = \"/ho\u{6d}e/me/file\";", 1),
        ("see `/t\u{6d}p/x`", 1),
        ("#!/usr/bin/env bash", 0),
        ("src/home/x and https://host/home/x", 0),
        ("std::fs::read(\"/proc/self/statm\")", 0),
    ] {
        assert_found(absolute_paths, "README.md", text, count);
    }
}

#[test]
fn variants_and_names_are_read_from_the_source() {
    let text = "/// pub enum Other {\npub enum Why {\n    /// Big.\n    #[error(\"X\")]\n    Big {\n        Limit: usize,\n    },\n    Small(u8),\n    Other,\n}\n    Late,\n";
    assert_eq!(variants(text, "Why"), ["Big", "Small", "Other"]);
    assert!(variants(text, "Other").is_empty());
    let tests = [code("use_it(Why::Big); // Why::Small\nWhy::OtherOne")];
    for (name, named) in
        [("Why::Big", true), ("Why::Bi", false), ("Why::Small", false), ("Why::Other", false)]
    {
        assert_eq!(is_named(&tests, name), named, "{name}");
    }
}
