//! Renderers of objects: a one-screen text, and JSON with all data.
//!
//! Words are those that people know from elsewhere: types of programs and maps and
//! the columns of maps are bpftool's, `insns` is veristat's.

mod json;
mod text;
mod unlinked;

use std::collections::BTreeMap;
use std::fmt;

use btf::Kind;
use btf::core::Path;
use btf::ext::CoreSpec;
use object::overview::{LinkReport, Overview, Requirement, UseSite};
use object::sections::Role;
use object::{Object, Referent, SourceLine};
use spec::Kernel;

pub use json::object_json;
pub use text::{needs_newer_text, object_text};
pub use unlinked::{unlinked_json, unlinked_notes, unlinked_text};

/// The kernel that an object was linked for.
#[derive(Clone, Debug)]
pub struct LinkedFor<'s> {
    /// The kernel.
    pub kernel: &'s Kernel,
    /// Assumptions about the kernel.
    pub assumed: Option<String>,
}

/// An object to be shown.
#[derive(Clone, Copy)]
pub struct Shown<'s, 'a> {
    /// The file.
    pub file: &'s str,
    /// Its size in bytes.
    pub size: usize,
    /// The object in it.
    pub object: &'s Object<'a>,
    /// Contents of the object.
    pub overview: &'s Overview,
    /// Result of linking, and the target kernel.
    pub link_report: Option<(&'s LinkedFor<'s>, &'s LinkReport)>,
    /// True to print all rows.
    pub all: bool,
    /// Columns of the terminal, for which tables leave out columns; `None` for all.
    pub width: Option<usize>,
    /// What texts say behind facts that the caller can change.
    pub hints: Hints,
}

/// Words behind facts that the caller can change, each with a space before it, as
/// ` (--all lists them)`; none if it is empty.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hints {
    /// Behind the number of rows, or the names of columns, that are left out.
    pub rest: &'static str,
    /// Behind the number of programs that the data of the kernel leave undecided.
    pub undecided: &'static str,
}

/// A required feature by its category and name.
fn feature(object: &Object<'_>, need: &Requirement) -> (&'static str, String) {
    (need.category(), need.name_in(object))
}

/// A required feature in words.
fn words(object: &Object<'_>, need: &Requirement) -> String {
    let (category, name) = feature(object, need);
    let guarded = match need.is_guarded {
        true => ", behind a check",
        false => "",
    };
    format!("{category} {name}{guarded}")
        .trim_start()
        .to_owned()
}

/// The latest of some needs: what decides which kernel is the oldest.
fn latest<'n>(needs: impl Iterator<Item = &'n Requirement>) -> Option<&'n Requirement> {
    needs
        .filter(|need| need.since.is_some() && !need.is_guarded)
        .reduce(|latest, need| match need.since.map(|since| since.release) {
            release if release > latest.since.map(|since| since.release) => need,
            _ => latest,
        })
}

/// First use.
struct Place {
    /// The program or function.
    code: String,
    /// From the start of that.
    slot: usize,
    line: Option<SourceLine>,
}

impl Place {
    fn of(object: &Object<'_>, site: UseSite) -> Option<Place> {
        let code = object.program_defs().get(site.code)?;
        Some(Place {
            code: code.name.to_string(),
            slot: site.slot,
            line: object.line(code.section, code.start + site.slot),
        })
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}+{}", self.code, self.slot)?;
        match &self.line {
            Some(line) => write!(f, " {}:{}", base(&line.file), line.line),
            None => Ok(()),
        }
    }
}

/// A file without the directories that it is in.
fn base(path: &str) -> &str {
    path.rsplit(std::path::is_separator).next().unwrap_or(path)
}

/// Number of relocations by kind.
fn relocations(object: &Object<'_>) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    let groups = object.btf_ext().into_iter();
    for relo in groups.flat_map(|ext| ext.relocations().flat_map(|group| group.records())) {
        *counts.entry(relocation(object, &relo.spec)).or_default() += 1;
    }
    counts
}

/// Types by kind, in words of C.
fn kinds(object: &Object<'_>) -> BTreeMap<&'static str, usize> {
    let mut counts = BTreeMap::new();
    for ty in object.btf().into_iter().flat_map(|types| types.types()) {
        let word = match ty.kind() {
            Kind::Struct => "struct",
            Kind::Union => "union",
            Kind::Enum | Kind::Enum64 => "enum",
            Kind::Typedef => "typedef",
            Kind::Func => "function",
            Kind::Var => "variable",
            Kind::DeclTag | Kind::TypeTag => "tag",
            _ => continue,
        };
        *counts.entry(word).or_default() += 1;
    }
    counts
}

/// Sizes of the file's sections.
#[derive(Default)]
struct Sizes {
    instructions: u64,
    data: u64,
    /// Not part of the file.
    zeros: u64,
    types: u64,
    btf_ext: u64,
    debug: u64,
}

impl Sizes {
    fn of(object: &Object<'_>) -> Sizes {
        let mut sizes = Sizes::default();
        let known = object.sections();
        for section in object.elf().sections() {
            let name = section.name.to_string();
            let slot = match known.role(section.id) {
                Role::Code => &mut sizes.instructions,
                Role::Data | Role::Constants | Role::StructOps => &mut sizes.data,
                Role::Zeros => &mut sizes.zeros,
                Role::Other if Some(section.id) == known.btf => &mut sizes.types,
                Role::Other if Some(section.id) == known.btf_ext => &mut sizes.btf_ext,
                Role::Other if name.starts_with(".debug") || name.starts_with(".rel.debug") => {
                    &mut sizes.debug
                }
                Role::Other => continue,
            };
            *slot += section.size;
        }
        sizes
    }
}

/// A missing reference: what it is, and what the kernel lacks or has instead.
struct Missing {
    what: String,
    absence: String,
}

impl Missing {
    fn of(object: &Object<'_>, to: Referent, kernel: &Kernel) -> Missing {
        let lacking = |what: String| Missing {
            absence: format!("the kernel has no {what}"),
            what,
        };
        match to {
            Referent::MissingCore(spec) | Referent::LeftOut(spec) => {
                let what = relocation(object, &spec);
                match object.absence(&spec, kernel) {
                    Some(absence) => Missing {
                        what,
                        absence: absence.to_string(),
                    },
                    None => lacking(what),
                }
            }
            Referent::MissingKfunc(id) => {
                let wanted = object.externs().get(id);
                let name = wanted.map(|wanted| wanted.name.as_str());
                lacking(format!("kfunc {}", name.unwrap_or_default()))
            }
            Referent::MissingMap(id) => {
                let map = object.maps().get(id);
                lacking(format!(
                    "map {}",
                    map.map(|map| map.name()).unwrap_or_default()
                ))
            }
            _ => lacking(String::new()),
        }
    }
}

/// Description of a relocation.
fn relocation(object: &Object<'_>, spec: &CoreSpec) -> String {
    let kind = spec.kind.name().unwrap_or("unknown");
    let types = object.btf();
    let path = types.and_then(|types| Path::parse(types, spec).ok());
    let label = path.map_or_else(|| "?".to_owned(), |path| path.label());
    format!("{label} ({kind})")
}
