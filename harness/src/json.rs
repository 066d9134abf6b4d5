//! The JSON file of a command: opened before anything is measured, so that a
//! wrong path costs no time, and written at the end.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::error::Error;

/// A file that can be written. What it held is kept until there is a result.
#[derive(Debug)]
pub struct JsonFile {
    file: File,
    path: PathBuf,
}

impl JsonFile {
    /// Opens the file, creating it if need be.
    pub fn open(path: &Path) -> Result<JsonFile, Error> {
        let path = path.to_owned();
        match OpenOptions::new().write(true).create(true).truncate(false).open(&path) {
            Ok(file) => Ok(JsonFile { file, path }),
            Err(source) => Err(Error::Json { path, source }),
        }
    }

    /// Replaces the content by the rows as a JSON array.
    pub fn write(mut self, rows: &[impl Serialize]) -> Result<(), Error> {
        let mut text = serde_json::to_string_pretty(rows)?;
        text.push('\n');
        self.replace(text.as_bytes()).map_err(|source| Error::Json { path: self.path, source })
    }

    fn replace(&mut self, content: &[u8]) -> std::io::Result<()> {
        // Pipes and terminals have no length to set.
        if self.file.metadata()?.is_file() {
            self.file.set_len(0)?;
        }
        self.file.write_all(content)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::tests::sample_row;

    fn scratch(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("phigrad-bench-{}-{name}", std::process::id()))
    }

    #[test]
    fn rows_replace_what_the_file_held() {
        let path = scratch("replaced.json");
        std::fs::write(&path, "x".repeat(10_000)).unwrap();
        let file = JsonFile::open(&path).unwrap();
        assert_eq!(
            std::fs::metadata(&path).unwrap().len(),
            10_000,
            "emptied before there are rows"
        );
        file.write(&[sample_row(), sample_row()]).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let rows: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(rows.as_array().unwrap().len(), 2);
        assert_eq!(rows[1]["kernel_ns"], 70.0);
    }

    #[test]
    fn a_file_that_cannot_be_written_is_named() {
        let path = scratch("no-such-folder").join("rows.json");
        let message = JsonFile::open(&path).unwrap_err().to_string();
        assert!(message.contains("cannot write the JSON file"), "{message}");
        assert!(message.contains("no-such-folder"), "{message}");
    }
}
