//! The JSON file of a command.

use std::path::Path;

use serde::Serialize;

use crate::error::Error;
use crate::output::OutputFile;

/// A JSON file that can be written.
#[derive(Debug)]
pub struct JsonFile(OutputFile);

impl JsonFile {
    /// Opens the file, creating it if need be.
    pub fn open(path: &Path) -> Result<JsonFile, Error> {
        OutputFile::open(path, "JSON").map(JsonFile)
    }

    /// Replaces the content by the rows as a JSON array.
    pub fn write(self, rows: &[impl Serialize]) -> Result<(), Error> {
        let mut text = serde_json::to_string_pretty(rows)?;
        text.push('\n');
        self.0.write(text.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

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
