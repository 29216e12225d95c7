//! The standard streams as files, and which names are those of one file.

use std::fs::{self, File};
use std::io;
#[cfg(not(windows))]
use std::os::fd::AsFd as _;
#[cfg(windows)]
use std::os::windows::io::AsHandle as _;
use std::path::Path;

/// Standard input as a file.
///
/// # Errors
/// Those of the system.
pub fn standard_input() -> io::Result<File> {
    #[cfg(windows)]
    let owned = io::stdin().as_handle().try_clone_to_owned();
    #[cfg(not(windows))]
    let owned = io::stdin().as_fd().try_clone_to_owned();
    owned.map(File::from)
}

/// Standard output as a file.
///
/// # Errors
/// Those of the system.
pub fn standard_output() -> io::Result<File> {
    #[cfg(windows)]
    let owned = io::stdout().as_handle().try_clone_to_owned();
    #[cfg(not(windows))]
    let owned = io::stdout().as_fd().try_clone_to_owned();
    owned.map(File::from)
}

/// The identity of a regular file: equal for all names of it. Systems other than Unix tell no
/// numbers of files, so that names differ there if their paths without links do, and standard
/// input is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileId(Id);

#[cfg(unix)]
type Id = (u64, u64);
#[cfg(not(unix))]
type Id = std::path::PathBuf;

impl FileId {
    /// Of the regular file at a path, if there is one.
    pub fn at(path: &Path) -> Option<FileId> {
        let data = fs::metadata(path).ok()?;
        #[cfg(unix)]
        let id = number(&data);
        // WASI finds no path without links.
        #[cfg(not(unix))]
        let id = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        data.is_file().then_some(FileId(id))
    }

    /// Of the regular file that standard input comes from, if it does.
    pub fn of_standard_input() -> Option<FileId> {
        #[cfg(unix)]
        {
            let data = standard_input().ok()?.metadata().ok()?;
            data.is_file().then(|| FileId(number(&data)))
        }
        #[cfg(not(unix))]
        None
    }
}

/// Number of the device, and of the file there.
#[cfg(unix)]
fn number(data: &fs::Metadata) -> Id {
    use std::os::unix::fs::MetadataExt as _;
    (data.dev(), data.ino())
}
