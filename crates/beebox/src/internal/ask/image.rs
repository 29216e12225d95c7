//! Images of kernels: where they are, and which kernel they have.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use spec::kernel::KernelVersion;

/// Names of images in a directory.
const NAMES: [&str; 3] = ["vmlinuz", "bzImage", "image"];
/// Place of the signature of the boot protocol, and of the offset of the version's text.
const SIGNATURE: (usize, &[u8]) = (0x202, b"HdrS");
const VERSION: usize = 0x20e;
/// Bytes in which the text of the version is.
const START: u64 = 64 << 10;

/// The image in a directory, or beside one that `tools/kernels/vm describe` wrote.
pub fn image_in(directory: &Path) -> Option<PathBuf> {
    let parent = directory
        .parent()
        .filter(|_| directory.ends_with("described"));
    let places = [Some(directory), parent];
    let mut images = places
        .into_iter()
        .flatten()
        .flat_map(|place| NAMES.map(|name| place.join(name)));
    images.find(|image| image.is_file())
}

/// The version of the kernel in an image that boots; none in a file that is no such image.
///
/// # Errors
/// If the file cannot be read.
pub fn image_version(path: &Path) -> io::Result<Option<KernelVersion>> {
    let mut start = Vec::new();
    File::open(path)?.take(START).read_to_end(&mut start)?;
    let (at, signature) = SIGNATURE;
    if !start
        .get(at..)
        .is_some_and(|rest| rest.starts_with(signature))
    {
        return Ok(None);
    }
    let place = start.get(VERSION..VERSION + 2);
    let place = place.map_or(0, |bytes| {
        usize::from(u16::from_le_bytes([bytes[0], bytes[1]]))
    });
    let text = start.get(place + 0x200..).unwrap_or_default();
    let text: Vec<u8> = text.iter().copied().take_while(|byte| *byte != 0).collect();
    Ok(version_in(&String::from_utf8_lossy(&text)))
}

/// The version in the text of an image. Debian's older kernels have the package's name for a release,
/// and the version behind it: `5.10.0-39-cloud-amd64 (…) #1 SMP Debian 5.10.255-1 (…)`.
fn version_in(text: &str) -> Option<KernelVersion> {
    let parse = |word: &str| {
        let end = word.find(|letter: char| !letter.is_ascii_digit() && letter != '.');
        word[..end.unwrap_or(word.len())]
            .parse::<KernelVersion>()
            .ok()
    };
    let release = parse(text)?;
    let debian = text.split(" Debian ").nth(1).and_then(parse);
    let same = |other: &KernelVersion| (other.major, other.minor) == (release.major, release.minor);
    Some(debian.filter(same).unwrap_or(release))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_that_of_the_kernel_and_not_of_its_package() {
        for (text, expected) in [
            (
                "5.10.0-39-cloud-amd64 (debian-kernel@x) #1 SMP Debian 5.10.255-1 (2026-01-02)",
                "5.10.255",
            ),
            (
                "6.18.15+deb13-cloud-amd64 (debian-kernel@x) #1 SMP PREEMPT_DYNAMIC Debian 6.18.15-1~bpo13+1",
                "6.18.15",
            ),
            ("6.12.117 (me@host) #3 SMP", "6.12.117"),
        ] {
            assert_eq!(version_in(text).unwrap().to_string(), expected);
        }
        assert_eq!(version_in("none"), None);
    }
}
