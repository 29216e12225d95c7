//! First mainline release of each helper ([`crate::helpers`]), kfunc, map kind, flag,
//! program type, attach type and [`Feature`].
//!
//! Every row names its source: the commit in Linux's repository that introduced it, or
//! the header that has it first. Rows were compared with the kernel headers in each
//! release of iproute2 (4.1 to 7.1) and strace (7.2), and with the feature tables of
//! docs.ebpf.io and bcc (`docs/kernel-versions.md`). Backports of distributions are not
//! included.
//!
//! The releases are a lower bound for a program: a later verifier accepts more than an
//! earlier one.

mod features;
mod fields;
mod instructions;
mod kfuncs;
mod loops;
mod types;

use std::fmt;

use crate::kernel::KernelVersion;

pub use features::Feature;
pub use fields::value_features;
pub use kfuncs::kfunc;
pub(crate) use kfuncs::{kfunc_index, kfunc_name};
pub use loops::has_loop;
pub use types::newest_in;

/// A mainline release of Linux.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Release {
    /// Number before the dot.
    pub major: u8,
    /// Number after the dot.
    pub minor: u8,
}

#[doc(hidden)]
impl From<KernelVersion> for Release {
    fn from(version: KernelVersion) -> Release {
        let KernelVersion { major, minor, .. } = version;
        Release { major, minor }
    }
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

impl std::error::Error for BadRelease {}

impl std::str::FromStr for Release {
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

/// First release with a feature, and the source of that fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Since {
    /// First release.
    pub release: Release,
    /// IntroducedBy of the fact.
    pub source: IntroducedBy,
}

/// Source of a first release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntroducedBy {
    /// Commit that introduced the feature, by the first twelve digits of its hash.
    Commit(&'static str),
    /// First release whose `include/uapi/linux/bpf.h` has it.
    Header,
}

impl fmt::Display for IntroducedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            IntroducedBy::Commit(name) => write!(f, "commit {name}"),
            IntroducedBy::Header => f.write_str("include/uapi/linux/bpf.h"),
        }
    }
}

/// The first release of a row: its two numbers and the commit, or the numbers alone for what a
/// header shows.
macro_rules! since {
    ($major:literal, $minor:literal) => {
        Since::header($major, $minor)
    };
    ($major:literal, $minor:literal, $commit:literal) => {
        Since::commit($major, $minor, $commit)
    };
}

pub(crate) use since;

impl Since {
    pub(crate) const fn commit(major: u8, minor: u8, name: &'static str) -> Since {
        Since {
            release: Release { major, minor },
            source: IntroducedBy::Commit(name),
        }
    }

    pub(crate) const fn header(major: u8, minor: u8) -> Since {
        Since {
            release: Release { major, minor },
            source: IntroducedBy::Header,
        }
    }
}
