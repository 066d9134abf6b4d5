//! Reads the repository's own source text, for the checks in `tidy`.

use std::fs;
use std::path::{Path, PathBuf};

/// A file of the repository.
pub struct Source {
    /// Below the root of the repository, with `/` between the parts.
    pub path: String,
    pub text: String,
}

/// All files below `folders` whose names end in one of `endings`.
pub fn files(folders: &[&str], endings: &[&str]) -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut pending: Vec<PathBuf> = folders.iter().map(|folder| root.join(folder)).collect();
    let mut found = Vec::new();
    while let Some(path) = pending.pop() {
        if path.is_dir() {
            let entries = fs::read_dir(&path).unwrap();
            pending.extend(entries.map(|entry| entry.unwrap().path()));
        } else if endings.iter().any(|ending| path.to_string_lossy().ends_with(ending))
            && let Ok(text) = fs::read_to_string(&path)
        {
            let below = path.strip_prefix(root).unwrap().components();
            let parts: Vec<_> = below.map(|part| part.as_os_str().to_string_lossy()).collect();
            found.push(Source { path: parts.join("/"), text });
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

/// `text` with a blank for each byte of a comment, a string or a character, so
/// that lines and columns stay.
pub fn code(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut code = Vec::with_capacity(bytes.len());
    while code.len() < bytes.len() {
        let at = code.len();
        let length = skipped(&bytes[at..], code.last().copied());
        match length {
            0 => code.push(bytes[at]),
            _ => {
                let end = (at + length).min(bytes.len());
                code.extend(bytes[at..end].iter().map(|&b| if b == b'\n' { b } else { b' ' }));
            }
        }
    }
    String::from_utf8(code).unwrap()
}

/// The length of the comment, string or character that `rest` starts with.
fn skipped(rest: &[u8], before: Option<u8>) -> usize {
    let find = |needle: &[u8]| rest.windows(needle.len()).position(|window| window == needle);
    if rest.starts_with(b"//") {
        return find(b"\n").unwrap_or(rest.len());
    }
    if rest.starts_with(b"/*") {
        return block_comment(rest);
    }
    let in_word = before.is_some_and(is_word);
    if !in_word && rest[0] == b'r' {
        let hashes = rest[1..].iter().take_while(|&&b| b == b'#').count();
        if rest.get(1 + hashes) == Some(&b'"') {
            let end: Vec<u8> = [b"\"".as_slice(), &b"#".repeat(hashes)].concat();
            let body = &rest[2 + hashes..];
            let length = body.windows(end.len()).position(|window| window == end);
            return length.map_or(rest.len(), |length| 2 + hashes + length + end.len());
        }
    }
    match rest[0] {
        b'"' => quoted(rest, b'"'),
        // A lifetime has no second quote close by.
        b'\'' if rest.get(1) == Some(&b'\\') => quoted(rest, b'\''),
        b'\'' => {
            let width = rest[1..].iter().skip(1).take_while(|&&b| b & 0xc0 == 0x80).count() + 1;
            if rest.get(1 + width) == Some(&b'\'') { width + 2 } else { 0 }
        }
        _ => 0,
    }
}

fn block_comment(rest: &[u8]) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < rest.len() {
        match &rest[at..] {
            [b'/', b'*', ..] => (depth, at) = (depth + 1, at + 2),
            [b'*', b'/', ..] => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            break;
        }
    }
    at
}

fn quoted(rest: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while at < rest.len() && rest[at] != quote {
        at += if rest[at] == b'\\' { 2 } else { 1 };
    }
    at + 1
}

pub fn is_word(byte: u8) -> bool {
    byte == b'_' || byte.is_ascii_alphanumeric()
}

/// The words of `text` with the numbers of their lines.
pub fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().flat_map(|(index, line)| {
        let words = line.split(|c: char| c != '_' && !c.is_alphanumeric());
        words.filter(|word| !word.is_empty()).map(move |word| (index + 1, word))
    })
}
