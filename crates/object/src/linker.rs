//! Static linker: links several objects into one, as libbpf's linker does.
//!
//! Sections of the same name are concatenated; visible symbols are merged; relocations,
//! BTF and BTF.ext are adjusted. Each file is added separately: checked, its sections
//! appended, its symbols resolved against earlier ones, its relocations and types
//! renumbered. The BTF of all files is deduplicated at the end. The output is
//! deterministic and byte for byte that of libbpf's linker.
//!
//! Debug sections are omitted. Only little-endian files are supported.
//!
//! Linear in the files, apart from deduplication (see [`btf::dedup`]). Files stay
//! borrowed until the output is written.

mod agreement;
mod fault;
mod info;
mod input;
mod maps;
mod output;
mod relocations;
mod symbols;
mod texts;
mod types;

pub use agreement::{MapAttribute, Mismatch};
pub use fault::{LinkFault, SectionMismatch};

use crate::Error;
use crate::elf::Section;
use input::Input;
use output::Output;
use symbols::Symbols;
use types::Types;

/// Sections with equal contents in every file, once in the output.
const SAID_ONCE: [&[u8]; 2] = [b"license", b"version"];

/// Objects that are becoming one.
///
/// ```
/// use beebox_object::linker::Linker;
///
/// let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/link");
/// let main = std::fs::read(format!("{examples}/main.bpf.o"))?;
/// let count = std::fs::read(format!("{examples}/count.bpf.o"))?;
/// let linked = Linker::new()
///     .add("main.bpf.o", &main)?
///     .add("count.bpf.o", &count)?
///     .finish()?;
/// assert!(linked.starts_with(b"\x7fELF"));
///
/// let error = Linker::new().add("README.md", b"# Read me").err().unwrap();
/// assert_eq!(error.to_string(), "README.md: this file has no ELF magic number");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// An error consumes the linker: there is no partially linked object.
pub struct Linker<'a> {
    files: Vec<Input<'a>>,
    output: Output,
    symbols: Symbols,
    types: Types,
}

impl Default for Linker<'_> {
    fn default() -> Self {
        Linker::new()
    }
}

impl<'a> Linker<'a> {
    /// Linker without inputs.
    pub fn new() -> Linker<'a> {
        Linker {
            files: Vec::new(),
            output: Output::new(),
            symbols: Symbols::default(),
            types: Types::default(),
        }
    }

    /// Adds an object; `name` is its name in errors.
    pub fn add(mut self, name: impl Into<String>, bytes: &'a [u8]) -> Result<Linker<'a>, Error> {
        let name = name.into();
        match self.append(name.clone(), bytes) {
            Ok(()) => Ok(self),
            Err(error) => Err(error.in_file(name)),
        }
    }

    fn append(&mut self, name: String, bytes: &'a [u8]) -> Result<(), Error> {
        let mut input = Input::read(name, bytes)?;
        self.append_sections(&mut input)?;
        let numbers =
            self.symbols
                .append(&self.files, &input, &mut self.output, &mut self.types)?;
        relocations::append(&mut input, &numbers, &mut self.output)?;
        let file = self.files.len();
        self.types.append(file, &input, &self.symbols)?;
        self.files.push(input);
        self.types
            .append_variables(&self.files, &self.symbols, &mut self.output)?;
        info::append(file, &self.files[file], &mut self.types, &mut self.output)
    }

    fn append_sections(&mut self, input: &mut Input<'_>) -> Result<(), Error> {
        for part in &mut input.parts[1..] {
            if !part.is_data() {
                continue;
            }
            let known = self.output.find(&part.name);
            part.to = known.unwrap_or_else(|| self.output.add_section(&part.name));
            let Some(section) = part.section else {
                continue;
            };
            let about = |error: Error| error.in_section(section.name);
            if known.is_some() {
                self.output
                    .check_match(part.to, &section)
                    .map_err(|fault| about(fault.into()))?;
                if SAID_ONCE.contains(&&*part.name) {
                    self.check_same(part.to, &section).map_err(about)?;
                    part.is_left_out = true;
                    continue;
                }
            }
            let data = section.data().map_err(|fault| about(fault.into()))?;
            let placed = self
                .output
                .ensure_header(part.to, &section)
                .and_then(|()| self.output.append(part.to, &section, data));
            part.at = placed.map_err(|fault| about(fault.into()))?;
        }
        Ok(())
    }

    fn check_same(&self, known: usize, section: &Section<'_>) -> Result<(), Error> {
        match self.output.sections[known].data == section.data()? {
            true => Ok(()),
            false => Err(LinkFault::ContentsDiffer.into()),
        }
    }

    /// Bytes of the linked object, an ELF file.
    pub fn finish(self) -> Result<Vec<u8>, Error> {
        if self.files.is_empty() {
            return Err(LinkFault::NoInput.into());
        }
        let mut last = Vec::new();
        if let Some((types, info)) = self.types.finish(&self.output)? {
            last.push((".BTF", types));
            last.extend(info.map(|info| (".BTF.ext", info)));
        }
        self.output.write(last)
    }
}
