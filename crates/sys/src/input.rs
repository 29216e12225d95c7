//! Bytes of files that may be endless or silent: devices, FIFOs, standard input.
//!
//! Every read has a limit on the bytes, which is smaller where the system states no size,
//! and a file that the path names is not waited for longer than [`PATIENCE`]. Pipes that
//! this process inherited (`-`, `/dev/fd/N`) may take as long as their writers.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::files::standard_input;

/// Most bytes of a file without a size.
pub const STREAM_LIMIT: u64 = 128 << 20;

/// Longest time without a byte from a file.
pub const PATIENCE: Duration = Duration::from_millis(1500);

/// Directories whose entries are open files of this process.
const INHERITED: [&str; 4] = [
    "/dev/fd",
    "/dev/stdin",
    "/proc/self/fd",
    "/proc/thread-self/fd",
];

/// The bytes of a file, or of standard input if the path is `-`, at most `limit`.
///
/// # Errors
/// Those of the system; of the kind `FileTooLarge` if there are more bytes, `TimedOut` if
/// the file stays silent.
pub fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let is_inherited = path == Path::new("-") || INHERITED.iter().any(|dir| path.starts_with(dir));
    let file = match path == Path::new("-") {
        true => standard_input()?,
        false => open(path, is_inherited)?,
    };
    let about = file.metadata()?;
    // Files of /proc and /sys have the size 0, or that of a page.
    let limit = match about.is_file() {
        true if about.len() > limit => return Err(too_large(Some(about.len()), limit)),
        true => limit,
        false => limit.min(STREAM_LIMIT),
    };
    let waits_for_writer = about.file_type().is_fifo() && !is_inherited;
    let mut bytes = Vec::with_capacity(about.len().min(limit) as usize);
    let mut piece = (&file).take(limit.saturating_add(1));
    let mut heard = Instant::now();
    loop {
        let before = bytes.len();
        let read = piece.read_to_end(&mut bytes);
        if bytes.len() as u64 > limit {
            return Err(too_large(None, limit));
        }
        if bytes.len() > before {
            heard = Instant::now();
        }
        let is_silent = match read {
            Ok(_) => waits_for_writer && bytes.is_empty(),
            Err(error) if error.kind() == ErrorKind::WouldBlock => true,
            Err(error) => return Err(error),
        };
        if !is_silent {
            return Ok(bytes);
        }
        if heard.elapsed() >= PATIENCE {
            let what = format!(
                "nothing was written to it for {} ms, the limit for devices and FIFOs",
                PATIENCE.as_millis()
            );
            return Err(io::Error::new(ErrorKind::TimedOut, what));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Opens a file without waiting for a writer or for data.
fn open(path: &Path, is_inherited: bool) -> io::Result<File> {
    let flags = match is_inherited {
        true => 0,
        false => libc::O_NONBLOCK,
    };
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(flags | libc::O_NOCTTY);
    options.open(path)
}

fn too_large(size: Option<u64>, limit: u64) -> io::Error {
    let size = size.map_or_else(String::new, |size| format!("{size} bytes: "));
    let what = format!("{size}more than the limit of {limit} bytes");
    io::Error::new(ErrorKind::FileTooLarge, what)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::path::PathBuf;

    use super::*;

    fn temporary(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("beebox-input-{}-{name}", std::process::id()))
    }

    fn refused(path: &str, limit: u64) -> (ErrorKind, String) {
        let error = read(Path::new(path), limit).unwrap_err();
        (error.kind(), error.to_string())
    }

    #[test]
    fn endless_files_meet_the_limit() {
        let began = Instant::now();
        for path in ["/dev/zero", "/dev/urandom", "/dev/full"] {
            let (kind, what) = refused(path, u64::MAX - 1);
            assert_eq!(kind, ErrorKind::FileTooLarge, "{path}");
            assert_eq!(what, format!("more than the limit of {STREAM_LIMIT} bytes"));
        }
        let (_, what) = refused("/dev/zero", 10);
        assert_eq!(what, "more than the limit of 10 bytes");
        assert!(began.elapsed() < Duration::from_secs(20));
        assert_eq!(read(Path::new("/dev/null"), 10).unwrap(), b"");
    }

    #[test]
    fn a_large_file_is_refused_before_it_is_read() {
        let path = temporary("sparse");
        File::create(&path).unwrap().set_len(1 << 40).unwrap();
        let began = Instant::now();
        let (kind, what) = refused(path.to_str().unwrap(), 1 << 30);
        assert_eq!(kind, ErrorKind::FileTooLarge);
        let expected = "1099511627776 bytes: more than the limit of 1073741824 bytes";
        assert_eq!(what, expected);
        assert!(began.elapsed() < Duration::from_secs(1));
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_fifo_is_read_to_its_end_and_not_waited_for_without_one() {
        let path = temporary("fifo");
        let made = std::process::Command::new("mkfifo").arg(&path).status();
        assert!(made.unwrap().success());
        let (kind, what) = refused(path.to_str().unwrap(), 10);
        assert_eq!(kind, ErrorKind::TimedOut);
        assert!(
            what.starts_with("nothing was written to it for 1500 ms"),
            "{what}"
        );
        let writer = {
            let path = path.clone();
            std::thread::spawn(move || {
                let mut file = OpenOptions::new().write(true).open(path).unwrap();
                for piece in ["some", " bytes"] {
                    file.write_all(piece.as_bytes()).unwrap();
                    std::thread::sleep(Duration::from_millis(300));
                }
            })
        };
        assert_eq!(read(&path, 100).unwrap(), b"some bytes");
        writer.join().unwrap();
        std::fs::remove_file(path).unwrap();
    }
}
