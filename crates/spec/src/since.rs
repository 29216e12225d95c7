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

pub use crate::kernel::{BadRelease, Release};
pub use features::Feature;
pub use fields::value_features;
pub use kfuncs::kfunc;
pub(crate) use kfuncs::{kfunc_index, kfunc_name};
pub use loops::has_loop;
pub use types::newest_in;

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
