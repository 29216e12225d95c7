//! Since when Linux has what programs use: the first mainline release of each
//! helper ([`crate::helpers`]), kernel function, map kind, flag, program type,
//! attach type and [`Feature`].
//!
//! Every row names where its number comes from: the commit that brought the thing,
//! in Linux's own repository, or the header that first has it. The numbers were
//! compared where several sources have them: the headers of the kernel as they
//! stand in each release of iproute2 (4.1 to 7.1) and strace (7.2), the feature
//! tables of docs.ebpf.io and of bcc (`docs/kernel-versions.md`). A distribution's
//! kernel may have things earlier; the table says nothing of that.
//!
//! Nothing here is the whole truth about one program: a later verifier accepts more
//! than an earlier one. What the table says is what a kernel must at least be.

mod features;
mod instructions;
mod kfuncs;
mod maps;
mod programs;

use std::fmt;

pub use features::Feature;
pub use kfuncs::kfunc;

/// A mainline release of Linux.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Release {
    /// The number before the dot.
    pub major: u8,
    /// The number behind it.
    pub minor: u8,
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// When something came, and how that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Since {
    /// The first release that has it.
    pub release: Release,
    /// What says so.
    pub source: Source,
}

/// What says when something came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The commit that brought it, by the first twelve digits of its name.
    Commit(&'static str),
    /// `include/uapi/linux/bpf.h` of that release, which is the first with it.
    Header,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Commit(name) => write!(f, "commit {name}"),
            Source::Header => f.write_str("include/uapi/linux/bpf.h"),
        }
    }
}

impl Since {
    const fn commit(major: u8, minor: u8, name: &'static str) -> Since {
        Since {
            release: Release { major, minor },
            source: Source::Commit(name),
        }
    }

    const fn header(major: u8, minor: u8) -> Since {
        Since {
            release: Release { major, minor },
            source: Source::Header,
        }
    }
}
