//! Lists of kernels for one answer about each: `all`, `lts`, ranges of releases (`5.10-6.12`, `6.12-`),
//! names of distributions, and several names with commas.
//!
//! A range has the known kernels between its ends, oldest first. Known are the built-in ones and those
//! that `tools/kernels/vm describe` described in the cache. An end without a point release stands for
//! all point releases of its series.

use std::env;
use std::fmt::{self, Display};
use std::fs;
use std::path::PathBuf;

use beebox::internal::program::Release;
use beebox::kernel::{KernelVersion, Preset};

use crate::answer::Failure;
use crate::kernel_input::KernelName;

/// Releases of distributions' kernels that keep their version, by the names of the distributions.
const DISTRIBUTIONS: &[(&[&str], &str)] = &[
    (&["debian-10", "buster"], "4.19"),
    (&["debian-11", "bullseye"], "5.10"),
    (&["debian-12", "bookworm"], "6.1"),
    (&["debian-13", "trixie"], "6.12"),
    (&["ubuntu-20.04", "focal"], "5.4"),
    (&["ubuntu-22.04", "jammy"], "5.15"),
    (&["ubuntu-24.04", "noble"], "6.8"),
];

/// How a kernel that is not known becomes known.
pub(crate) const DESCRIBE: &str = "tools/kernels/vm describe NAME --program FILE with a static \
     beebox-differential, which boots a kernel of Debian and writes down what it has; or --kernel \
     DIRECTORY with vmlinux.btf, config, System.map, kernel.release and registry";

/// A word of the option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum KernelWord {
    /// One kernel.
    One(KernelName),
    /// The kernel of a distribution, with its release, which is not known.
    Unknown(String, &'static str),
    /// Every known kernel, or those of a range.
    Range(Range),
}

/// Kernels between two versions, both included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    /// As it is written.
    word: String,
    from: Option<End>,
    to: Option<End>,
    /// It has series with long-term support alone.
    is_lts: bool,
}

/// An end of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct End {
    version: KernelVersion,
    /// It has all point releases.
    is_series: bool,
}

impl End {
    fn parse(text: &str) -> Option<End> {
        let is_plain = text
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'.');
        let version = text.parse().ok().filter(|_| is_plain)?;
        let is_series = text.bytes().filter(|byte| *byte == b'.').count() < 2;
        Some(End { version, is_series })
    }

    /// The versions that a range from here to here has.
    fn span(self) -> (u32, u32) {
        let first = self.version.code();
        match self.is_series {
            true => (first, first | 0xff),
            false => (first, first),
        }
    }
}

impl Range {
    fn parse(word: &str) -> Option<Range> {
        let range = |from, to| Range {
            word: word.to_owned(),
            from,
            to,
            is_lts: word == "lts",
        };
        if matches!(word, "all" | "lts") {
            return Some(range(None, None));
        }
        let (from, to) = word.split_once('-')?;
        let end = |text: &str| match text {
            "" => Some(None),
            text => End::parse(text).map(Some),
        };
        let (from, to) = (end(from)?, end(to)?);
        (from.is_some() || to.is_some()).then(|| range(from, to))
    }

    fn has(&self, version: KernelVersion) -> bool {
        let code = version.code();
        let has_support =
            |preset: &Preset| preset.is_lts() && preset.series() == Release::from(version);
        if self.is_lts && !Preset::all().iter().any(has_support) {
            return false;
        }
        self.from.is_none_or(|from| from.span().0 <= code)
            && self.to.is_none_or(|to| code <= to.span().1)
    }

    /// The known kernels in it.
    fn kernels(&self) -> Result<Vec<KernelName>, Failure> {
        let word = &self.word;
        if let (Some(from), Some(to)) = (self.from, self.to)
            && from.span().0 > to.span().1
        {
            return Err(Failure::new(format_args!(
                "--kernel {word}: the range ends before it begins"
            ))
            .hint("the older release first, as 6.1-6.12"));
        }
        let known = known();
        let inside = known.iter().filter(|kernel| self.has(kernel.version));
        let names: Vec<KernelName> = inside.map(|kernel| kernel.name.clone()).collect();
        match names.is_empty() {
            true => Err(Failure::new(format_args!(
                "--kernel {word}: none of the known kernels is in this range: {}",
                listed(&known)
            ))
            .hint(DESCRIBE)),
            false => Ok(names),
        }
    }
}

impl KernelWord {
    /// Reads a word. A name is never an error here: reading the kernel says what it is not.
    pub(crate) fn parse(word: &str) -> KernelWord {
        let name = KernelName::parse(word);
        if !matches!(&name, KernelName::Path(path) if !path.exists()) {
            return KernelWord::One(name);
        }
        let lower = word.to_ascii_lowercase();
        let named = DISTRIBUTIONS
            .iter()
            .find(|(names, _)| names.contains(&&*lower));
        if let Some((_, release)) = named {
            return match KernelName::parse(release) {
                KernelName::Path(_) => KernelWord::Unknown(word.to_owned(), release),
                known => KernelWord::One(known),
            };
        }
        Range::parse(&lower).map_or(KernelWord::One(name), KernelWord::Range)
    }

    /// True if it may stand for several kernels.
    pub(crate) fn is_list(&self) -> bool {
        matches!(self, KernelWord::Range(_))
    }

    /// The kernels that it stands for, oldest first.
    pub(crate) fn kernels(&self) -> Result<Vec<KernelName>, Failure> {
        match self {
            KernelWord::One(name) => Ok(vec![name.clone()]),
            KernelWord::Unknown(word, release) => Err(Failure::new(format_args!(
                "--kernel {word}: it has Linux {release}, which is not among the known kernels: {}",
                listed(&known())
            ))
            .hint(DESCRIBE)),
            KernelWord::Range(range) => range.kernels(),
        }
    }
}

impl Display for KernelWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KernelWord::One(name) => name.fmt(f),
            KernelWord::Unknown(word, _) | KernelWord::Range(Range { word, .. }) => {
                f.write_str(word)
            }
        }
    }
}

/// A kernel that answers are given for by the name of its series.
pub(crate) struct Known {
    /// Its name.
    pub(crate) name: KernelName,
    /// Its version.
    pub(crate) version: KernelVersion,
    /// Its version in full, of which a kernel states no patch level above 255.
    pub(crate) release: String,
}

/// The known kernels, oldest first.
pub(crate) fn known() -> Vec<Known> {
    let of_series = Preset::all().iter().filter(|preset| preset.is_of_series());
    let built_in = of_series.map(|preset| Known {
        name: KernelName::parse(&preset.series().to_string()),
        version: preset.version(),
        release: preset.name().to_owned(),
    });
    let mut known: Vec<Known> = built_in.collect();
    let cache = cache().map(|cache| cache.join("kernels"));
    let entries = cache.and_then(|cache| fs::read_dir(cache).ok());
    for entry in entries.into_iter().flatten().flatten() {
        let word = entry.file_name().to_string_lossy().into_owned();
        let name = KernelName::parse(&word);
        if let KernelName::Described(_, directory) = &name
            && let Some(version) = described_version(directory)
        {
            let release = version.to_string();
            known.push(Known {
                name,
                version,
                release,
            });
        }
    }
    known.sort_by_key(|kernel| kernel.version.code());
    known
}

/// Names and versions for a message.
pub(crate) fn listed(known: &[Known]) -> String {
    let names = known
        .iter()
        .map(|kernel| format!("{} ({})", kernel.name, kernel.release));
    names.collect::<Vec<_>>().join(", ")
}

/// The version in the file of a directory that describes a kernel.
fn described_version(directory: &std::path::Path) -> Option<KernelVersion> {
    let release = fs::read_to_string(directory.join("kernel.release")).ok()?;
    release.trim().parse().ok()
}

/// The directory that describes a kernel of a series or version, where `tools/kernels/vm` keeps it.
pub(crate) fn described(word: &str) -> Option<PathBuf> {
    let version: KernelVersion = word.parse().ok()?;
    let directory = home(&Release::from(version).to_string())?.join("described");
    let release = fs::read_to_string(directory.join("kernel.release")).ok()?;
    let is_wanted = word == Release::from(version).to_string() || word == release.trim();
    is_wanted.then_some(directory)
}

/// Where `tools/kernels/vm` keeps the kernel of a series: its image, configuration and description.
pub(crate) fn home(series: &str) -> Option<PathBuf> {
    Some(cache()?.join("kernels").join(series))
}

/// The cache: `$BEEBOX_CACHE`, or beebox in the user's.
fn cache() -> Option<PathBuf> {
    let set = |name: &str| env::var_os(name).filter(|value| !value.is_empty());
    if let Some(cache) = set("BEEBOX_CACHE") {
        return Some(cache.into());
    }
    let in_home = || Some(PathBuf::from(set("HOME")?).join(".cache"));
    let users = set("XDG_CACHE_HOME").map(PathBuf::from);
    Some(users.or_else(in_home)?.join("beebox"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_have_the_versions_between_their_ends() {
        let has = |word: &str, version: &str| {
            let range = Range::parse(word).unwrap_or_else(|| panic!("{word}"));
            range.has(version.parse().unwrap())
        };
        for inside in [
            ("all", "4.19"),
            ("6.1-6.12", "6.1.192"),
            ("6.1-6.12", "6.12.117"),
            ("6.12-", "7.3.4"),
            ("-6.12", "6.12.117"),
            ("6.12.43-6.12.43", "6.12.43"),
            ("6.12-6.12", "6.12.5"),
        ] {
            assert!(has(inside.0, inside.1), "{inside:?}");
        }
        for outside in [
            ("6.1-6.12", "6.0.9"),
            ("6.1-6.12", "6.13"),
            ("6.12.44-", "6.12.43"),
            ("-6.12.43", "6.12.117"),
        ] {
            assert!(!has(outside.0, outside.1), "{outside:?}");
        }
        for word in [
            "-",
            "6.12",
            "a-b",
            "6.12-x",
            "6.18-minimal",
            "6.1-6.2-6.3",
            "",
        ] {
            assert_eq!(Range::parse(word), None, "{word:?}");
        }
    }
}
