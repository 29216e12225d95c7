//! Reader and writer of map definitions, the blocks from `.map` to `.end`.

use std::fmt::Write as _;
use std::sync::Arc;

use btf::TypeId;
use spec::maps::{MapFlags, MapKind};

use super::lexer::{Words, hex, quoted};
use super::{CaseError, CaseProblem};
use crate::image::Image;
use crate::map_def::{
    InitialContents, KernelTypeId, MapDef, MapEntry, MapId, MapParams, ProgramId, ProgramRef,
};

/// Block `.map` of a map definition.
pub(super) fn write(map: &MapDef) -> String {
    let mut text = format!(".map {}\n", head(map));
    if let Some(inner) = &map.inner {
        let _ = writeln!(text, "    .inner {}", head(inner));
    }
    match &map.contents {
        InitialContents::Entries(entries) => {
            for (key, entry) in entries {
                let _ = match entry {
                    MapEntry::Map(map) => writeln!(text, "    .entry {key} map {}", map.0),
                    MapEntry::Program(of) => {
                        let name = quoted(of.name.as_bytes());
                        writeln!(text, "    .entry {key} program {} {name}", of.id.0)
                    }
                };
            }
        }
        InitialContents::Value { image, frozen } => {
            text.push_str(&data(image));
            if *frozen {
                text.push_str("    .frozen\n");
            }
        }
        InitialContents::Arena { image, offset } => {
            let _ = writeln!(text, "    .arena {offset}");
            text.push_str(&data(image));
        }
        InitialContents::StructOps { image, programs } => {
            text.push_str("    .struct_ops\n");
            text.push_str(&data(image));
            for (offset, of) in programs {
                let name = quoted(of.name.as_bytes());
                let _ = writeln!(text, "    .member {offset} program {} {name}", of.id.0);
            }
        }
        InitialContents::JumpTable(targets) => {
            let targets: Vec<String> = targets.iter().map(u32::to_string).collect();
            let _ = writeln!(text, "    .jump {}", targets.join(" "));
        }
    }
    text.push_str(".end\n");
    text
}

fn head(map: &MapDef) -> String {
    let params = &map.params;
    let kind = params.kind();
    let kind = kind.map_or_else(
        || params.map_type.to_string(),
        |kind| kind.name().to_owned(),
    );
    let mut text = format!(
        "{} type={kind} key={} value={} entries={}",
        quoted(map.name.as_bytes()),
        params.key_size,
        params.value_size,
        params.max_entries
    );
    let rare = [
        ("flags", u64::from(params.flags.0)),
        ("extra", params.extra),
        ("numa_node", params.numa_node.into()),
        ("ifindex", map.ifindex.into()),
        ("btf_key", params.key_type.0.into()),
        ("btf_value", params.value_type.0.into()),
        ("btf", map.has_btf.into()),
    ];
    for (key, value) in rare.into_iter().filter(|(_, value)| *value != 0) {
        let _ = match key {
            "flags" | "extra" => write!(text, " {key}={value:#x}"),
            _ => write!(text, " {key}={value}"),
        };
    }
    if let Some(value) = map.kernel_value {
        let _ = write!(
            text,
            " kernel_value={} kernel_module={}",
            value.id, value.module
        );
    }
    if map.kernel_name != crate::map_def::kernel_name(&map.name) {
        let _ = write!(text, " kernel_name={}", quoted(map.kernel_name.as_bytes()));
    }
    text
}

fn data(image: &Image<'_>) -> String {
    let mut text = format!("    .data size={}\n", image.size());
    for (at, bytes) in image.start().chunks(32).enumerate() {
        if bytes.iter().any(|&byte| byte != 0) {
            let _ = writeln!(text, "    .bytes {} {}", at * 32, hex(bytes));
        }
    }
    text
}

/// Reader of a block `.map`.
pub(super) struct Open {
    map: MapDef,
    image: Image<'static>,
    has_image: bool,
}

impl Open {
    /// Reads the operands of `.map`.
    pub(super) fn new(words: &mut Words<'_>) -> Result<Open, CaseError> {
        Ok(Open {
            map: read_head(words)?,
            image: Image::default(),
            has_image: false,
        })
    }

    /// Reads a directive of the block.
    pub(super) fn read(&mut self, directive: &str, words: &mut Words<'_>) -> Result<(), CaseError> {
        match directive {
            ".inner" => self.map.inner = Some(Arc::new(read_head(words)?)),
            ".data" => {
                let size = match words.key() {
                    Some("size") => words.fitting("a size")?,
                    _ => return Err(words.unexpected("size=BYTES")),
                };
                self.image = Image::zeros(size);
                self.has_image = true;
                let bytes = words.hex()?;
                self.write(0, &bytes, words)?;
            }
            ".bytes" => {
                let offset = words.fitting("an offset")?;
                let bytes = words.hex()?;
                self.write(offset, &bytes, words)?;
            }
            ".frozen" => {
                self.map.contents = InitialContents::Value {
                    image: Image::default(),
                    frozen: true,
                };
            }
            ".arena" => {
                self.map.contents = InitialContents::Arena {
                    image: Image::default(),
                    offset: words.fitting("an offset")?,
                };
            }
            ".struct_ops" => {
                self.map.contents = InitialContents::StructOps {
                    image: Image::default(),
                    programs: Vec::new(),
                };
            }
            ".member" => {
                let offset = words.fitting("an offset")?;
                let of = match words.expect_word("program")? {
                    "program" => program(words)?,
                    _ => return Err(words.unexpected("program")),
                };
                match &mut self.map.contents {
                    InitialContents::StructOps { programs, .. } => programs.push((offset, of)),
                    _ => return Err(words.unexpected(".struct_ops before")),
                }
            }
            ".entry" => {
                let key = words.fitting("a key")?;
                let entry = match words.expect_word("map or program")? {
                    "map" => MapEntry::Map(MapId(words.fitting("the index of a map")?)),
                    "program" => MapEntry::Program(program(words)?),
                    _ => return Err(words.unexpected("map or program")),
                };
                match &mut self.map.contents {
                    InitialContents::Entries(entries) => entries.push((key, entry)),
                    _ => return Err(words.unexpected("no other contents")),
                }
            }
            ".jump" => {
                let mut targets = Vec::new();
                while !words.is_empty() {
                    targets.push(words.fitting("the index of an instruction")?);
                }
                self.map.contents = InitialContents::JumpTable(targets);
            }
            other => return Err(words.fault(CaseProblem::Directive(other.to_owned()))),
        }
        words.end()
    }

    fn write(&mut self, at: u32, bytes: &[u8], words: &Words<'_>) -> Result<(), CaseError> {
        match bytes.is_empty() || self.image.write(at, bytes) {
            true => Ok(()),
            false => Err(words.unexpected("no more bytes than the size of .data")),
        }
    }

    /// Map definition, complete at `.end`.
    pub(super) fn finish(mut self) -> MapDef {
        let own = self.image;
        match &mut self.map.contents {
            InitialContents::Value { image, .. }
            | InitialContents::Arena { image, .. }
            | InitialContents::StructOps { image, .. } => *image = own,
            InitialContents::Entries(entries) if self.has_image && entries.is_empty() => {
                self.map.contents = InitialContents::Value {
                    image: own,
                    frozen: false,
                };
            }
            InitialContents::Entries(_) | InitialContents::JumpTable(_) => {}
        }
        self.map
    }
}

fn program(words: &mut Words<'_>) -> Result<ProgramRef, CaseError> {
    Ok(ProgramRef {
        id: ProgramId(words.fitting("the index of a program")?),
        name: words.text("the name of the program in quotes")?,
    })
}

fn read_head(words: &mut Words<'_>) -> Result<MapDef, CaseError> {
    let name = words.text("the name of the map in quotes")?;
    let mut map = MapDef::new(name, MapParams::default());
    let mut kernel_value = None;
    let mut module = 0;
    while !words.is_empty() {
        let refusal = words.unexpected("key=value");
        let key = words.key().ok_or(refusal)?;
        let params = &mut map.params;
        match key {
            "type" => {
                let refusal = words.unexpected("a map type by name or number");
                let word = words.expect_word("a map type")?;
                let known = MapKind::ALL.iter().find(|kind| kind.name() == word);
                params.map_type = match known {
                    Some(kind) => kind.number(),
                    None => word.parse().map_err(|_| refusal)?,
                };
            }
            "key" => params.key_size = words.fitting("bytes")?,
            "value" => params.value_size = words.fitting("bytes")?,
            "entries" => params.max_entries = words.fitting("a number")?,
            "flags" => params.flags = MapFlags(words.fitting("flags")?),
            "extra" => params.extra = words.fitting("a number")?,
            "numa_node" => params.numa_node = words.fitting("a number")?,
            "ifindex" => map.ifindex = words.fitting("a number")?,
            "btf_key" => params.key_type = TypeId(words.fitting("a BTF id")?),
            "btf_value" => params.value_type = TypeId(words.fitting("a BTF id")?),
            "btf" => map.has_btf = words.number("0 or 1")? != 0,
            "kernel_value" => kernel_value = Some(TypeId(words.fitting("a BTF id")?)),
            "kernel_module" => module = words.fitting("a module")?,
            "kernel_name" => map.kernel_name = words.text("a name in quotes")?,
            _ => return Err(words.unexpected("a known key")),
        }
    }
    map.kernel_value = kernel_value.map(|id| KernelTypeId { id, module });
    Ok(map)
}
