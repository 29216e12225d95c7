//! The presets, a row for each kernel.

use std::fmt;
use std::sync::{Arc, LazyLock, OnceLock};

use btf::Btf;
use spec::Kernel;
use spec::behaviour::is_compared;
use spec::kernel::{Features, KernelVersion, Release, Source};
use spec::programs::AttachType;

use crate::data::{self, Packed};
use crate::derived;

/// A kernel that is known by name.
#[derive(Debug)]
pub struct Preset {
    name: &'static str,
    title: &'static str,
    series: Release,
    distribution: Option<&'static str>,
    is_lts: bool,
    data: Data,
}

/// Where the data of a preset are.
#[derive(Clone, Copy)]
enum Data {
    /// Those of the built-in Linux 6.18.
    BuiltIn,
    /// The difference to these.
    Packed(Packed),
    /// Those of the preset of this name, of a newer release.
    #[allow(dead_code, reason = "each is of a cargo feature")]
    DerivedFrom(&'static str),
}

impl fmt::Debug for Data {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Data::BuiltIn => "built in",
            Data::Packed(_) => "of a file",
            Data::DerivedFrom(name) => name,
        })
    }
}

/// Defines the presets: the cargo feature, the name, the series, the distribution whose kernel it is,
/// what else it is called, and its data. Of each series the first row is the one that the series means.
macro_rules! presets {
    ($($(#[$feature:meta])* $name:literal: $major:literal $minor:literal, $distribution:expr, $lts:ident,
        $data:expr;)*) => {
        static ALL: &[Preset] = &[$(
            $(#[$feature])*
            Preset {
                name: $name,
                title: concat!("Linux ", $name),
                series: Release { major: $major, minor: $minor },
                distribution: $distribution,
                is_lts: is!($lts),
                data: $data,
            },
        )*];
    };
}

/// True for a release with long-term support.
macro_rules! is {
    (lts) => {
        true
    };
    (stable) => {
        false
    };
}

/// Data of a kernel in a file.
macro_rules! packed {
    ($file:literal) => {
        Data::Packed(Packed(include_bytes!(concat!("../data/linux-", $file))))
    };
}

presets! {
    #[cfg(feature = "kernel-5.10")]
    "5.10.262": 5 10, Some("debian-11"), lts, packed!("5.10.262");
    #[cfg(feature = "kernel-6.1")]
    "5.15": 5 15, None, lts, Data::DerivedFrom("6.1.192");
    #[cfg(feature = "kernel-6.1")]
    "6.1.192": 6 1, Some("debian-12"), lts, packed!("6.1.192");
    #[cfg(feature = "kernel-6.12")]
    "6.6": 6 6, None, lts, Data::DerivedFrom("6.12.117");
    #[cfg(feature = "kernel-6.12")]
    "6.12.117": 6 12, Some("debian-13"), lts, packed!("6.12.117");
    "6.18.44": 6 18, None, lts, Data::BuiltIn;
    "6.18.15": 6 18, None, lts, packed!("6.18.15");
    #[cfg(feature = "kernel-7.0")]
    "7.0.13": 7 0, None, stable, packed!("7.0.13");
    #[cfg(feature = "kernel-7.2")]
    "7.2.12": 7 2, None, stable, packed!("7.2.12");
    #[cfg(feature = "kernel-7.3")]
    "7.3.4": 7 3, None, stable, packed!("7.3.4");
}

impl Preset {
    /// Every preset that is built in, oldest first; of a series first the one that the series means.
    pub fn all() -> &'static [Preset] {
        ALL
    }

    /// The preset of a name: a version (`6.12.117`), a series (`6.12`), or a distribution
    /// (`debian-13`). `None` if it is not built in.
    pub fn named(name: &str) -> Option<&'static Preset> {
        ALL.iter().find(|preset| {
            preset.name == name
                || preset.distribution == Some(name)
                || preset.series.to_string() == name
        })
    }

    /// Name: its version.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Release that it is of.
    pub fn series(&self) -> Release {
        self.series
    }

    /// Version. The patch level is at most 255, as kernels state it.
    pub fn version(&self) -> KernelVersion {
        let version = self.name.parse();
        version.expect("a version")
    }

    /// Distribution whose kernel of the release it is, as `debian-13`.
    pub fn distribution(&self) -> Option<&'static str> {
        self.distribution
    }

    /// True for a release with long-term support.
    pub fn is_lts(&self) -> bool {
        self.is_lts
    }

    /// The preset that it is derived from: a kernel of a newer release, without what is newer than this
    /// one. `None` for one of which a kernel was asked.
    pub fn derived_from(&self) -> Option<&'static str> {
        match self.data {
            Data::DerivedFrom(name) => Some(name),
            Data::BuiltIn | Data::Packed(_) => None,
        }
    }

    /// True if its answers were compared with those of the kernel.
    pub fn is_compared(&self) -> bool {
        self.derived_from().is_none() && is_compared(self.series)
    }

    /// True if it is the one that its series means.
    pub fn is_of_series(&self) -> bool {
        Preset::named(&self.series.to_string()).is_some_and(|first| first.name == self.name)
    }

    /// The kernel. It is made once; each call returns a clone, which shares its data.
    pub fn kernel(&self) -> Kernel {
        static KERNELS: LazyLock<Vec<OnceLock<Kernel>>> =
            LazyLock::new(|| ALL.iter().map(|_| OnceLock::new()).collect());
        let place = ALL.iter().position(|preset| preset.name == self.name);
        let place = place.expect("a preset is one of all");
        KERNELS[place].get_or_init(|| self.read()).clone()
    }

    fn read(&self) -> Kernel {
        match self.data {
            Data::BuiltIn => kernel_data::linux_6_18(),
            Data::Packed(packed) => self.with_data(packed),
            Data::DerivedFrom(name) => {
                let other = Preset::named(name).expect("a preset with data");
                self.derived(other)
            }
        }
    }

    fn with_data(&self, packed: Packed) -> Kernel {
        let registry = move |types: &Btf<'_>| data::registry(&packed.registry_text(), types);
        let symbols = move || packed.symbol_text();
        let (types, config, features) = (packed.types(), packed.config(), self.features());
        kernel_data::assemble(
            self.title,
            self.version(),
            types,
            config,
            features,
            symbols,
            registry,
        )
        .with_rules_by_table()
    }

    fn derived(&self, other: &Preset) -> Kernel {
        let source = || Source::BuiltIn(self.title);
        let kernel = other.kernel();
        let features = Features {
            syscall_wrapper: kernel.features().syscall_wrapper,
            ..self.features()
        };
        let release = self.series;
        let whole = kernel.btf().expect("a preset has types");
        let types = Arc::new(derived::types(whole, release));
        let (of_registry, own_types) = (kernel.clone(), Arc::clone(&types));
        let registry = move || {
            let registry = of_registry.registry().expect("a preset has a registry");
            data::registry(&derived::older(registry, release), &own_types)
        };
        kernel
            .with_name(self.title)
            .with_version(self.version(), source())
            .with_btf(types, Source::BuiltIn(other.title))
            .with_features(features, source())
            .with_registry(Box::new(registry), source())
            .with_rules_by_table()
    }

    /// Features that the release decides.
    fn features(&self) -> Features {
        let cookies = spec::helpers::helper(BPF_GET_ATTACH_COOKIE);
        let cookies = cookies.is_none_or(|helper| helper.since.release <= self.series);
        Features {
            cookies,
            uprobe_multi: AttachType::TraceUprobeMulti.since().release <= self.series,
            ..Features::LINUX_6_18
        }
    }
}

const BPF_GET_ATTACH_COOKIE: i32 = 174;

/// No preset has a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownPreset(pub String);

impl fmt::Display for UnknownPreset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = ALL.iter().map(Preset::name).collect();
        let names = names.join(", ");
        write!(f, "no kernel {:?} is built in; there are {names}", self.0)
    }
}

impl std::error::Error for UnknownPreset {}

/// The presets that a word means, oldest first: `all` (one of each series), `lts` (those with long-term
/// support), a range of series (`5.10-`, `6.1-6.12`, `-6.1`), or the one of a name ([`Preset::named`]).
///
/// # Errors
/// [`UnknownPreset`]: the word means none that is built in.
pub fn select(word: &str) -> Result<Vec<&'static Preset>, UnknownPreset> {
    let unknown = || UnknownPreset(word.to_owned());
    let of_series = || ALL.iter().filter(|preset| preset.is_of_series());
    let found: Vec<_> = match (word, word.split_once('-')) {
        ("all", _) => of_series().collect(),
        ("lts", _) => of_series().filter(|preset| preset.is_lts).collect(),
        (_, Some((first, last))) if is_range(first, last) => {
            let is_within = |preset: &&Preset| {
                let starts = first
                    .parse()
                    .is_ok_and(|first: Release| first > preset.series);
                let ends = last.parse().is_ok_and(|last: Release| last < preset.series);
                !starts && !ends
            };
            of_series().filter(is_within).collect()
        }
        _ => vec![Preset::named(word).ok_or_else(unknown)?],
    };
    match found.is_empty() {
        true => Err(unknown()),
        false => Ok(found),
    }
}

/// True for the ends of a range of series, of which one may be left out.
fn is_range(first: &str, last: &str) -> bool {
    let is_end = |word: &str| word.is_empty() || word.parse::<Release>().is_ok();
    is_end(first) && is_end(last) && !(first.is_empty() && last.is_empty())
}

#[cfg(test)]
mod tests;
