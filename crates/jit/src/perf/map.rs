//! The perf map format, `/tmp/perf-PID.map`: a line for each program with address and
//! length in hexadecimal digits and the symbol name.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::{CodeRegion, plain};

/// The perf map of this process.
#[derive(Debug)]
pub struct SymbolMap {
    file: File,
    path: PathBuf,
}

impl SymbolMap {
    /// Opens the map of this process at the path that perf reads. Other code of the process
    /// may write to it too, so its contents are kept.
    pub fn open() -> io::Result<SymbolMap> {
        SymbolMap::open_at(Path::new(&format!("/tmp/perf-{}.map", std::process::id())))
    }

    /// Opens a map at a path.
    ///
    /// `/tmp` is world-writable, so symbolic links and files of other users are refused.
    pub fn open_at(path: &Path) -> io::Result<SymbolMap> {
        let file = OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o644)
            .custom_flags(libc::O_NOFOLLOW | libc::O_CLOEXEC | libc::O_NONBLOCK)
            .open(path)?;
        let found = file.metadata()?;
        // SAFETY: the call takes no pointers.
        let us = unsafe { libc::geteuid() };
        if !found.is_file() || found.uid() != us {
            return Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                "not a regular file of this user",
            ));
        }
        Ok(SymbolMap {
            file,
            path: path.to_owned(),
        })
    }

    /// Adds a program. Threads may call it concurrently: a line is one write.
    pub fn add(&self, code: &CodeRegion<'_>) -> io::Result<()> {
        let line = format!(
            "{:x} {:x} {}\n",
            code.address,
            code.bytes.len(),
            plain(code.name)
        );
        (&self.file).write_all(line.as_bytes())
    }

    /// Path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    fn code(name: &str, address: u64) -> CodeRegion<'_> {
        CodeRegion {
            name,
            address,
            bytes: &[0x31, 0xc0, 0xc3],
            lines: &[],
        }
    }

    #[test]
    fn programs_are_lines() {
        let path = std::env::temp_dir().join(format!("beebox-map-{}", std::process::id()));
        let map = SymbolMap::open_at(&path).unwrap();
        map.add(&code("bpf port 22", 0x7fff_0000_1000)).unwrap();
        map.add(&code("two\nlines", 0x10)).unwrap();
        drop(map);
        let again = SymbolMap::open_at(&path).unwrap();
        again.add(&code("more", 0x20)).unwrap();
        let text = fs::read_to_string(again.path()).unwrap();
        fs::remove_file(&path).unwrap();
        assert_eq!(
            text,
            "7fff00001000 3 bpf port 22\n10 3 two?lines\n20 3 more\n"
        );
    }

    #[test]
    fn a_link_is_not_followed() {
        let directory = std::env::temp_dir();
        let link = directory.join(format!("beebox-link-{}", std::process::id()));
        let target = directory.join(format!("beebox-target-{}", std::process::id()));
        fs::write(&target, "mine").unwrap();
        symlink(&target, &link).unwrap();
        let refused = SymbolMap::open_at(&link);
        let text = fs::read_to_string(&target).unwrap();
        fs::remove_file(&link).unwrap();
        fs::remove_file(&target).unwrap();
        assert!(refused.is_err());
        assert_eq!(text, "mine");
        assert!(SymbolMap::open_at(Path::new("/dev/null")).is_err());
    }
}
