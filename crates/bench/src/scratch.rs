//! A directory for files that a benchmark makes.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// A directory that is removed with everything in it.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    /// A new one, below the system's directory for such files.
    pub(crate) fn new() -> io::Result<Scratch> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let name = format!("beebox-bench-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path)?;
        Ok(Scratch(path))
    }

    /// Path of the directory.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What can't be removed here can't be reported here either.
        let _ = fs::remove_dir_all(&self.0);
    }
}
