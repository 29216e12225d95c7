//! Output files, which are complete or absent: they are written under another name in their
//! directory, and get their own when they are complete. Errors and signals remove what was begun;
//! a file of that name stays as it was until then.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use sys::unfinished::RemovedOnSignal;

use crate::answer::Failure;

/// Symbolic links that are followed at most, as the kernel does.
const MOST_LINKS: usize = 40;

/// An output that is not complete. Dropping it removes the file.
pub struct Unfinished {
    /// The name that the user gave.
    given: PathBuf,
    /// The names until and when it is complete; `None` for what is no regular file.
    names: Option<Names>,
}

struct Names {
    part: PathBuf,
    complete: PathBuf,
    removed: RemovedOnSignal,
}

impl Unfinished {
    /// Creates the file of an output.
    pub fn create(given: &Path) -> Result<(File, Unfinished), Failure> {
        let fail = |error: io::Error| Failure::of_file(given, &error);
        let Some(complete) = replaceable(given) else {
            let file = File::create(given).map_err(fail)?;
            let given = given.to_owned();
            return Ok((file, Unfinished { given, names: None }));
        };
        let (file, part, removed) = create_part(&complete).map_err(fail)?;
        let unfinished = Unfinished {
            given: given.to_owned(),
            names: Some(Names {
                part,
                complete,
                removed,
            }),
        };
        // It is for those who could read the file that it replaces.
        if let Some(Names { complete, .. }) = &unfinished.names
            && let Ok(old) = fs::metadata(complete)
        {
            file.set_permissions(old.permissions()).map_err(fail)?;
        }
        Ok((file, unfinished))
    }

    /// True if the file has another name until it is complete.
    pub fn is_written_aside(&self) -> bool {
        self.names.is_some()
    }

    /// Gives the file, to which everything is written, its name.
    pub fn finish(mut self) -> Result<(), Failure> {
        let Some(names) = &self.names else {
            return Ok(());
        };
        let renamed = fs::rename(&names.part, &names.complete);
        renamed.map_err(|error| Failure::of_file(&self.given, &error))?;
        self.names = None;
        Ok(())
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if let Some(Names { part, removed, .. }) = self.names.take() {
            // It may be gone already; there is nothing else to do about it.
            let _ = fs::remove_file(part);
            drop(removed);
        }
    }
}

/// Creates a file beside the one of this path.
fn create_part(complete: &Path) -> io::Result<(File, PathBuf, RemovedOnSignal)> {
    // WASI has no process numbers.
    let process = if cfg!(target_os = "wasi") {
        0
    } else {
        std::process::id()
    };
    for number in 0.. {
        let part = format!(".beebox.{process}.{number}.part");
        let part = complete.with_file_name(part);
        let removed = RemovedOnSignal::new(&part);
        let removed = removed.map_err(|errno| io::Error::from_raw_os_error(errno.0))?;
        match OpenOptions::new().write(true).create_new(true).open(&part) {
            Ok(file) => return Ok((file, part, removed)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    unreachable!("the numbers do not end")
}

/// The path of the regular file that an output replaces or creates; `None` for devices, pipes and
/// descriptors of the process (`/dev/stdout`), which are written to as they are.
fn replaceable(given: &Path) -> Option<PathBuf> {
    let mut path = given.to_owned();
    for _ in 0..MOST_LINKS {
        if path.starts_with("/proc") || path.starts_with("/dev/fd") {
            return None;
        }
        let Ok(target) = fs::read_link(&path) else {
            let is_other = fs::metadata(&path).is_ok_and(|data| !data.is_file());
            return (!is_other && path.file_name().is_some()).then_some(path);
        };
        path = path.parent().unwrap_or(Path::new("")).join(target);
    }
    None
}

/// A buffered output file.
pub struct OutputFile {
    /// Buffer in front of the file.
    pub writer: BufWriter<File>,
    unfinished: Unfinished,
}

impl OutputFile {
    /// Creates the file of an output.
    pub fn create(given: &Path) -> Result<OutputFile, Failure> {
        let (file, unfinished) = Unfinished::create(given)?;
        Ok(OutputFile {
            writer: BufWriter::new(file),
            unfinished,
        })
    }

    /// Writes what waits, and gives the file its name.
    pub fn finish(mut self) -> Result<(), Failure> {
        let flushed = self.writer.flush();
        flushed.map_err(|error| Failure::of_file(&self.unfinished.given, &error))?;
        self.unfinished.finish()
    }
}

/// Writes a file whole.
pub fn write_whole(given: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let (mut file, unfinished) = Unfinished::create(given)?;
    let written = file.write_all(bytes);
    written.map_err(|error| Failure::of_file(given, &error))?;
    unfinished.finish()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

    use super::*;

    #[test]
    fn a_file_has_its_old_contents_until_the_new_ones_are_complete() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        fs::write(path("a"), "old").unwrap();
        fs::set_permissions(path("a"), fs::Permissions::from_mode(0o600)).unwrap();
        symlink("a", path("link")).unwrap();
        symlink("new", path("dangling")).unwrap();

        let mut begun = OutputFile::create(&path("link")).unwrap();
        begun.writer.write_all(b"new").unwrap();
        begun.writer.flush().unwrap();
        assert_eq!(fs::read(path("a")).unwrap(), b"old");
        drop(begun);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 3);

        write_whole(&path("link"), b"new").unwrap();
        write_whole(&path("dangling"), b"made").unwrap();
        assert!(fs::symlink_metadata(path("link")).unwrap().is_symlink());
        assert_eq!(fs::read(path("a")).unwrap(), b"new");
        assert_eq!(fs::metadata(path("a")).unwrap().mode() & 0o777, 0o600);
        assert_eq!(fs::read(path("new")).unwrap(), b"made");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 4);
    }

    #[test]
    fn devices_and_descriptors_are_written_to_as_they_are() {
        for path in [
            "/dev/null",
            "/dev/full",
            "/dev/stdout",
            "/proc/self/fd/1",
            "/",
        ] {
            assert_eq!(replaceable(Path::new(path)), None, "{path}");
        }
        assert_eq!(replaceable(Path::new("a/b")), Some("a/b".into()));
        assert!(write_whole(Path::new("/dev/full"), b"x").is_err());
    }
}
