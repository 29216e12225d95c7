//! BTF from files.

use std::path::{Path, PathBuf};

use beebox::btf::{Btf, BtfExt, Shape, TypeId};
use beebox::kernel::{KernelImage, KernelVersion};
use object::{Object, ObjectSection};
use sys::mapping::KernelFile;

use crate::answer::Failure;
use crate::program_input::name;
use crate::run::memory::read_file;

/// The directory of the running kernel's BTF.
const KERNEL_TYPES: &str = "/sys/kernel/btf";

/// BTF and BTF.ext of a file.
pub(crate) struct Types {
    pub(crate) btf: Btf<'static>,
    pub(crate) ext: Option<BtfExt<'static>>,
    /// The version of Linux that the file is an image of, if it says one.
    pub(crate) version: Option<KernelVersion>,
}

impl Types {
    /// Reads a file, or standard input (`-`).
    pub(crate) fn read(path: &Path) -> Result<Types, Failure> {
        let failed = |error| Failure::of_file(path, &error);
        let inside = |failure: Failure| failure.within(name(path));
        if path.starts_with(KERNEL_TYPES) {
            // A command reads one or two, until it ends.
            let file = Box::leak(Box::new(KernelFile::open(path).map_err(failed)?));
            let btf = Btf::parse(&**file).map_err(|error| inside(Failure::new(error)))?;
            return Ok(Types {
                btf,
                ext: None,
                version: None,
            });
        }
        Types::read_inside(read_file(path)?).map_err(inside)
    }

    fn read_inside(bytes: Vec<u8>) -> Result<Types, Failure> {
        let image = KernelImage::read(&bytes).map_err(Failure::new)?;
        let stated = image.as_ref().and_then(|image| image.release.as_deref());
        let stated = stated.and_then(|release| release.parse().ok());
        let is_image = image.is_some();
        let bytes = image.map_or(bytes, |image| image.elf);
        let mut version = None;
        let (blob, ext) = if bytes.starts_with(b"\x7fELF") {
            let file = object::File::parse(&*bytes)
                .map_err(|error| Failure::new(format_args!("the ELF file is damaged: {error}")))?;
            if !file.is_little_endian() {
                return Err(Failure::new(
                    "ELF file of a big-endian machine: only little-endian ones are read",
                ));
            }
            let blob = section(&file, ".BTF")?.ok_or_else(|| match is_image {
                true => Failure::new("the kernel in the image has no section .BTF")
                    .hint("a kernel that is configured with CONFIG_DEBUG_INFO_BTF"),
                false => Failure::new("ELF file without a section .BTF").hint(
                    "clang -target bpf -g writes one; llvm-strip -g keeps it, strip does not",
                ),
            })?;
            version = banner_version(&bytes);
            (blob, section(&file, ".BTF.ext")?)
        } else {
            (bytes, None)
        };
        let version = stated.or(version);
        let btf = Btf::parse(blob).map_err(Failure::new)?;
        let ext = ext
            .map(|ext| BtfExt::parse(ext).map_err(|error| Failure::new(error).within(".BTF.ext")))
            .transpose()?;
        Ok(Types { btf, ext, version })
    }
}

/// The version in the banner of a kernel image (`linux_banner`: `Linux version 6.18.44
/// (user@host) …`).
fn banner_version(image: &[u8]) -> Option<KernelVersion> {
    const BANNER: &[u8] = b"Linux version ";
    let mut starts = (0..image.len()).filter(|&at| image[at..].starts_with(BANNER));
    starts.find_map(|at| {
        let rest = image.get(at + BANNER.len()..)?;
        let end = rest.iter().position(|byte| matches!(byte, b' ' | 0))?;
        std::str::from_utf8(&rest[..end]).ok()?.parse().ok()
    })
}

fn section(file: &object::File<'_>, name: &str) -> Result<Option<Vec<u8>>, Failure> {
    let Some(section) = file.section_by_name(name) else {
        return Ok(None);
    };
    let data = section
        .uncompressed_data()
        .map_err(|error| Failure::new(error).within(name))?;
    Ok(Some(data.into_owned()))
}

/// The types with a number, or with a name (with or without `struct` and the like).
pub(crate) fn find(btf: &Btf<'_>, word: &str) -> Result<Vec<TypeId>, Failure> {
    if let Ok(number) = word.parse() {
        let id = TypeId(number);
        return match btf.get(id) {
            Some(_) if !id.is_void() => Ok(vec![id]),
            _ => Err(Failure::new(format!(
                "no type {number}: the last is {}",
                btf.len() - 1
            ))),
        };
    }
    let (prefix, name) = word.split_once(' ').unwrap_or(("", word));
    let fits = |shape: Shape<'_>| match prefix {
        "struct" => matches!(shape, Shape::Struct(_)),
        "union" => matches!(shape, Shape::Union(_)),
        "enum" => matches!(shape, Shape::Enum(_)),
        _ => true,
    };
    let found: Vec<TypeId> = btf
        .types()
        .filter(|ty| ty.name() == name && fits(ty.shape()))
        .filter(|ty| {
            !matches!(
                ty.shape(),
                Shape::Fwd(_) | Shape::DeclTag(_) | Shape::TypeTag(_)
            )
        })
        .map(|ty| ty.id())
        .collect();
    if found.is_empty() {
        return Err(missing(btf, name, word));
    }
    Ok(found)
}

/// The failure for a name that no type has, with the nearest one.
fn missing(btf: &Btf<'_>, name: &str, word: &str) -> Failure {
    let failure = Failure::new(format!("no type named {word}"));
    let names = btf
        .types()
        .map(|ty| ty.name())
        .filter(|name| !name.is_empty());
    let near = names
        .map(|other| (strsim::damerau_levenshtein(&other.to_string(), name), other))
        .min_by_key(|(distance, _)| *distance)
        .filter(|(distance, _)| 3 * *distance <= name.chars().count());
    match near {
        Some((_, near)) => failure.hint(near),
        None => failure.hint("beebox btf dump FILE lists the types"),
    }
}

/// A file on the command line.
#[derive(clap::Args)]
pub(super) struct FileArg {
    /// BTF, or an ELF file with a section .BTF; `-` is standard input
    #[arg(value_name = "FILE")]
    pub(super) file: PathBuf,
}
