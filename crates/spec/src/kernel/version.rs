//! Releases of Linux, and versions of kernels.

use std::error::Error;
use std::fmt;
use std::str::FromStr;

/// A mainline release of Linux, with which features come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Release {
    /// Number before the dot.
    pub major: u8,
    /// Number after the dot.
    pub minor: u8,
}

impl Release {
    /// The release whose rules and limits the workspace has.
    pub const LINUX_6_18: Release = Release {
        major: 6,
        minor: 18,
    };
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// The text is no release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadRelease(String);

impl fmt::Display for BadRelease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} is no release of Linux: write two numbers, as 5.15",
            self.0
        )
    }
}

impl Error for BadRelease {}

#[doc(hidden)]
impl FromStr for Release {
    type Err = BadRelease;

    /// Reads `MAJOR.MINOR`.
    fn from_str(text: &str) -> Result<Release, BadRelease> {
        let (major, minor) = text
            .split_once('.')
            .ok_or_else(|| BadRelease(text.into()))?;
        match (major.parse(), minor.parse()) {
            (Ok(major), Ok(minor)) => Ok(Release { major, minor }),
            _ => Err(BadRelease(text.into())),
        }
    }
}

/// A version of Linux: a release with its patch level, as a kernel states it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KernelVersion {
    /// Major version.
    pub major: u8,
    /// Minor version.
    pub minor: u8,
    /// Patch level; [`code`](KernelVersion::code) has at most 255.
    pub patch: u16,
}

impl KernelVersion {
    /// Version of these numbers.
    pub const fn new(major: u8, minor: u8, patch: u16) -> KernelVersion {
        KernelVersion {
            major,
            minor,
            patch,
        }
    }

    /// Version of a `LINUX_VERSION_CODE`.
    pub const fn from_code(code: u32) -> KernelVersion {
        KernelVersion::new((code >> 16) as u8, (code >> 8) as u8, code as u16 & 0xff)
    }

    /// `LINUX_VERSION_CODE`: a byte for each number, the major version highest; patch levels from 255
    /// on are 255.
    pub const fn code(self) -> u32 {
        let patch = match self.patch {
            patch @ 0..=255 => patch as u32,
            256.. => 255,
        };
        (self.major as u32) << 16 | (self.minor as u32) << 8 | patch
    }
}

impl fmt::Display for KernelVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

/// Error of parsing a kernel version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidVersion(String);

impl fmt::Display for InvalidVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} is no kernel version such as 6.18 or 6.18.44",
            self.0
        )
    }
}

impl Error for InvalidVersion {}

#[doc(hidden)]
impl FromStr for KernelVersion {
    type Err = InvalidVersion;

    /// Parses a release: `6.18`, `6.18.44`, `6.18-rc1`, `6.18.44-distribution`.
    fn from_str(text: &str) -> Result<KernelVersion, InvalidVersion> {
        let refused = || InvalidVersion(text.to_owned());
        let end = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.');
        let (numbers, suffix) = text.split_at(end.unwrap_or(text.len()));
        let has_suffix = suffix.is_empty()
            || suffix.starts_with(['-', '+', '~', '_'])
            || suffix.starts_with("rc");
        let numbers: Result<Vec<u32>, _> = numbers.split('.').map(str::parse).collect();
        let numbers = numbers.ok().filter(|_| has_suffix).ok_or_else(refused)?;
        let (major, minor, patch) = match numbers[..] {
            [major, minor] => (major, minor, 0),
            [major, minor, patch, ..] => (major, minor, patch),
            _ => return Err(refused()),
        };
        match (
            u8::try_from(major),
            u8::try_from(minor),
            u16::try_from(patch),
        ) {
            (Ok(major), Ok(minor), Ok(patch)) => Ok(KernelVersion::new(major, minor, patch)),
            _ => Err(refused()),
        }
    }
}

#[doc(hidden)]
impl From<KernelVersion> for Release {
    fn from(version: KernelVersion) -> Release {
        let KernelVersion { major, minor, .. } = version;
        Release { major, minor }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_versions() {
        let code = |text: &str| text.parse::<KernelVersion>().map(KernelVersion::code).ok();
        assert_eq!(code("6.18.44-foo"), Some(0x06122c));
        assert_eq!(code("6.18-rc1"), Some(0x061200));
        assert_eq!(code("5.4.300"), Some(0x0504ff));
        assert_eq!(code("6.1.0+"), Some(0x060100));
        for text in ["", "6", "6.x.1", "x", "700.1", ".1", "6.1.70000"] {
            assert_eq!(code(text), None, "{text}");
        }
        let version = KernelVersion::from_code(0x06122c);
        assert_eq!(version.to_string(), "6.18.44");
    }
}
