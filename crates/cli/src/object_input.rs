//! Objects on the command line, and the kernels that they are linked for.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use beebox::object::{Blame, Error, Object, OpenOptions, Target};
use btf::Btf;
use profile::Profile;

use crate::answer::Failure;
use crate::btf::Types;
use crate::program_input::{name, read_at_most};

/// Bytes of the largest object that is read.
const LARGEST: u64 = 1 << 30;

/// A file that should be an object.
pub(crate) struct ObjectFile {
    path: PathBuf,
    bytes: Vec<u8>,
}

impl ObjectFile {
    /// Is the file that stands there an ELF file, or an archive of such?
    pub(crate) fn is_at(path: &Path) -> Result<bool, Failure> {
        let failed = |error| Failure::of_file(path, &error);
        let mut start = Vec::new();
        let file = File::open(path).map_err(failed)?;
        file.take(8).read_to_end(&mut start).map_err(failed)?;
        Ok(start.starts_with(b"\x7fELF") || start == b"!<arch>\n")
    }

    pub(crate) fn read(path: &Path) -> Result<ObjectFile, Failure> {
        let bytes = read_at_most(path, LARGEST)?;
        Ok(ObjectFile {
            path: path.to_owned(),
            bytes,
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn open(&self) -> Result<Object<'_>, Failure> {
        let name = name(&self.path);
        let options = OpenOptions {
            name: Some(&name),
            ..OpenOptions::default()
        };
        Object::open_with(&self.bytes, &options).map_err(refused)
    }
}

/// A refusal for people, with the source line that it is about.
pub(crate) fn refused(error: Error) -> Failure {
    let failure = Failure::new(&error);
    let failure = match &error.place().line {
        Some(line) if !line.text.trim().is_empty() => {
            failure.excerpt(format_args!("{:>6} | {}", line.line, line.text.trim_end()))
        }
        _ => failure,
    };
    match error.blame() {
        Blame::Beebox => failure.hint("Linux's loader takes it; this is a gap of beebox"),
        Blame::Target => failure.hint("--btf FILE links for another kernel"),
        Blame::File | Blame::User => failure,
    }
}

/// The kernel that programs are linked for.
#[derive(clap::Args)]
pub(crate) struct TargetArgs {
    /// The kernel's types: BTF as in /sys/kernel/btf/vmlinux, or a kernel image;
    /// Linux 6.18's if left out
    #[arg(long, value_name = "FILE")]
    btf: Option<PathBuf>,

    /// The kernel's configuration, lines of CONFIG_NAME=value
    #[arg(long, value_name = "FILE")]
    kconfig: Option<PathBuf>,
}

/// A kernel to link for.
pub(crate) struct Kernel {
    /// What messages call it.
    pub(crate) name: String,
    profile: Profile,
    /// Types in place of the profile's.
    types: Option<Btf<'static>>,
    /// A configuration in place of the profile's.
    config: Option<String>,
}

impl TargetArgs {
    /// Was a kernel named?
    pub(crate) fn is_given(&self) -> bool {
        self.btf.is_some() || self.kconfig.is_some()
    }

    pub(crate) fn read(&self) -> Result<Kernel, Failure> {
        let types = self.btf.as_deref().map(Types::read).transpose()?;
        let named = self.btf.as_deref().map(|path| path.display().to_string());
        let config = self.kconfig.as_deref().map(|path| {
            let failed = |error| Failure::of_file(path, &error);
            fs::read_to_string(path).map_err(failed)
        });
        Ok(Kernel {
            name: named.unwrap_or_else(|| "Linux 6.18".to_owned()),
            profile: Profile::linux_6_18(),
            types: types.map(|types| types.btf),
            config: config.transpose()?,
        })
    }
}

impl Kernel {
    /// Its types.
    pub(crate) fn types(&self) -> &Btf<'static> {
        self.types.as_ref().unwrap_or(self.profile.types())
    }

    pub(crate) fn target(&self) -> Target<'_> {
        Target {
            types: Some(self.types.as_ref().unwrap_or(self.profile.types())),
            config: Some(self.config.as_deref().unwrap_or(self.profile.config())),
            version: self.profile.version(),
            page_size: 4096,
            ..Target::default()
        }
    }
}
