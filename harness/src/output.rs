//! The file that a command writes its result to: opened before anything is measured,
//! so that a wrong path costs no time, and written at the end.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::error::Error;

/// A file that can be written. What it held is kept until there is a result.
#[derive(Debug)]
pub struct OutputFile {
    file: File,
    path: PathBuf,
    kind: &'static str,
}

impl OutputFile {
    /// Opens the file, creating it if need be; messages call it a file of this kind.
    pub fn open(path: &Path, kind: &'static str) -> Result<OutputFile, Error> {
        let path = path.to_owned();
        match OpenOptions::new().write(true).create(true).truncate(false).open(&path) {
            Ok(file) => Ok(OutputFile { file, path, kind }),
            Err(source) => Err(Error::File { kind, path, source }),
        }
    }

    /// Replaces the content.
    pub fn write(mut self, content: &[u8]) -> Result<(), Error> {
        let OutputFile { path, kind, .. } = &self;
        let (path, kind) = (path.clone(), *kind);
        self.replace(content).map_err(|source| Error::File { kind, path, source })
    }

    fn replace(&mut self, content: &[u8]) -> std::io::Result<()> {
        // Pipes and terminals have no length to set.
        if self.file.metadata()?.is_file() {
            self.file.set_len(0)?;
        }
        self.file.write_all(content)
    }
}
