//! Bytes of files on systems without the files of Unix that are endless or silent.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::Path;

/// The bytes of a file, or of standard input if the path is `-`, at most `limit`.
///
/// # Errors
/// Those of the system; of the kind `FileTooLarge` if there are more bytes.
pub fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let source: Box<dyn Read> = match path == Path::new("-") {
        true => Box::new(io::stdin()),
        false => Box::new(File::open(path)?),
    };
    let mut bytes = Vec::new();
    source
        .take(limit.saturating_add(1))
        .read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        let what = format!("more than the limit of {limit} bytes");
        return Err(io::Error::new(ErrorKind::FileTooLarge, what));
    }
    Ok(bytes)
}
