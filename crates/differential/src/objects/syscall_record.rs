//! Data that a loader passes to the kernel for one object, in a form common to libbpf and
//! Beebox.

use serde::{Deserialize, Deserializer};

/// Loaded programs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Scope {
    /// The program that was loaded alone; empty for the whole object.
    pub prog: String,
}

/// Progress of a loader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stage {
    /// Reading the object.
    Open,
    /// Everything after.
    Load,
}

/// Result.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Outcome {
    /// The last stage that was entered.
    pub stage: Stage,
    /// The error, as a number of the system or of libbpf's own; 0 for success.
    pub errno: i32,
    /// Messages.
    pub messages: Vec<String>,
    /// The class of error, where it is known by more than words.
    #[serde(skip)]
    pub known_class: Option<&'static str>,
}

/// A program, when the object is open.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct OpenedProgram {
    /// The name of its function.
    pub name: String,
    /// The name of its section.
    pub section: String,
    /// The number of its program type.
    #[serde(rename = "type")]
    pub kind: u32,
    /// The number of its expected attach type.
    pub attach: u32,
    /// Its flags so far.
    pub flags: u32,
    /// True if it is loaded by default.
    pub autoload: bool,
    /// Slots, without subprograms.
    pub insns: u32,
}

/// What opened and created maps have.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct MapAttributes {
    /// The number of its kind.
    #[serde(rename = "type")]
    pub kind: u32,
    /// Bytes of a key.
    pub key_size: u32,
    /// Bytes of a value.
    pub value_size: u32,
    /// Entries at most.
    pub max_entries: u32,
    /// Flags.
    pub flags: u32,
    /// The attribute that each kind reads in its own way.
    pub extra: u64,
    /// The memory node.
    pub numa_node: u32,
    /// The type of a key.
    pub btf_key: u32,
    /// The type of a value.
    pub btf_value: u32,
}

/// A map, when the object is open.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct OpenedMap {
    /// Name.
    pub name: String,
    /// Its attributes.
    #[serde(flatten)]
    pub attributes: MapAttributes,
    /// True if it is created by default.
    pub autocreate: bool,
    /// Pin path; empty if it is not pinned.
    pub pin: String,
    /// Initial contents, for maps of global data.
    #[serde(default, deserialize_with = "some_bytes")]
    pub initial: Option<Vec<u8>>,
}

/// A created map.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct CreatedMap {
    /// Its whole name; the template of the inner maps of `a` is `a.inner`.
    pub map: String,
    /// Its name for the kernel, of 15 bytes at most.
    pub name: String,
    /// Its attributes.
    #[serde(flatten)]
    pub attributes: MapAttributes,
    /// The network device.
    pub ifindex: u32,
    /// True if it is loaded with the object's BTF.
    pub btf: bool,
    /// The kernel's type of a value.
    pub btf_vmlinux_value: u32,
    /// The template of its inner maps.
    pub inner: Option<String>,
}

/// A value that is written before anything runs.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct WrittenValue {
    /// The map.
    pub map: String,
    /// The key.
    #[serde(deserialize_with = "bytes")]
    pub key: Vec<u8>,
    /// The value; not there if it is a map or a program.
    #[serde(default, deserialize_with = "some_bytes")]
    pub value: Option<Vec<u8>>,
    /// The map that is the value.
    pub value_map: Option<String>,
    /// The program that is the value.
    pub value_prog: Option<String>,
    /// Programs in the value, by offset; the value has zeros there.
    #[serde(default)]
    pub progs: Vec<(usize, String)>,
}

/// A loaded program.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct LoadedProgram {
    /// The name of its function.
    pub prog: String,
    /// Its name for the kernel, of 15 bytes at most.
    pub name: String,
    /// The number of its program type.
    #[serde(rename = "type")]
    pub kind: u32,
    /// The number of its expected attach type.
    pub attach: u32,
    /// Flags.
    pub flags: u32,
    /// The licence.
    pub license: String,
    /// The kernel's version, where the type requires it.
    pub kern_version: u32,
    /// The network device.
    pub ifindex: u32,
    /// Attach target, as a BTF id of the kernel.
    pub attach_btf_id: u32,
    /// True if it is loaded with the object's BTF.
    pub btf: bool,
    /// The instructions; a reference to a map has 0 in its place.
    #[serde(deserialize_with = "bytes")]
    pub insns: Vec<u8>,
    /// The maps that instructions refer to, by slot.
    pub maps: Vec<(usize, String)>,
    /// Bytes of a record of `func_info`.
    pub func_info_size: u32,
    /// func_info.
    #[serde(deserialize_with = "bytes")]
    pub func_info: Vec<u8>,
    /// Bytes of a record of `line_info`.
    pub line_info_size: u32,
    /// line_info.
    #[serde(deserialize_with = "bytes")]
    pub line_info: Vec<u8>,
}

/// Loaded BTF.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct LoadedTypes {
    /// Length in bytes.
    pub size: usize,
    /// FNV-1a of 64 bits.
    pub hash: u64,
    /// The whole blob, on request.
    #[serde(default, deserialize_with = "some_bytes")]
    pub bytes: Option<Vec<u8>>,
}

impl LoadedTypes {
    /// These bytes.
    pub fn new(bytes: &[u8]) -> LoadedTypes {
        let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325, |sum: u64, &byte| {
            (sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
        });
        LoadedTypes {
            size: bytes.len(),
            hash,
            bytes: Some(bytes.to_vec()),
        }
    }
}

/// Contents of a map that is mapped into memory.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Contents {
    /// The map.
    pub map: String,
    /// Offset in the map.
    pub offset: u64,
    /// The bytes.
    #[serde(deserialize_with = "bytes")]
    pub bytes: Vec<u8>,
}

/// A frozen map.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Frozen {
    /// The map.
    pub map: String,
}

/// A line of the harness.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "t", rename_all = "snake_case")]
pub(super) enum Line {
    Object(Scope),
    Program(OpenedProgram),
    Map(OpenedMap),
    Load(Outcome),
    Btf(LoadedTypes),
    MapCreate(CreatedMap),
    MapUpdate(WrittenValue),
    MapFreeze(Frozen),
    MapContents(Contents),
    ProgLoad(LoadedProgram),
    ProgBind(serde::de::IgnoredAny),
    Died(serde::de::IgnoredAny),
    End,
}

/// All that a loader handed over for one object, in its order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SyscallRecord {
    /// Loaded programs.
    pub scope: Scope,
    /// The programs of the open object; only for the whole object.
    pub programs: Vec<OpenedProgram>,
    /// The maps of the open object; only for the whole object.
    pub maps: Vec<OpenedMap>,
    /// Result; `None` if the loader crashed.
    pub outcome: Option<Outcome>,
    /// The type information.
    pub types: Option<LoadedTypes>,
    /// The maps that were made.
    pub created: Vec<CreatedMap>,
    /// Map updates.
    pub written: Vec<WrittenValue>,
    /// Frozen maps.
    pub frozen: Vec<Frozen>,
    /// Contents of mapped maps.
    pub contents: Vec<Contents>,
    /// The programs that were loaded.
    pub loaded: Vec<LoadedProgram>,
}

impl SyscallRecord {
    /// An empty record.
    pub fn new(scope: Scope) -> SyscallRecord {
        SyscallRecord {
            scope,
            ..SyscallRecord::default()
        }
    }

    pub(super) fn add(&mut self, line: Line) {
        match line {
            Line::Program(program) => self.programs.push(program),
            Line::Map(map) => self.maps.push(map),
            Line::Load(outcome) => self.outcome = Some(outcome),
            Line::Btf(types) => self.types = Some(types),
            Line::MapCreate(map) => self.created.push(map),
            Line::MapUpdate(value) => self.written.push(value),
            Line::MapFreeze(map) => self.frozen.push(map),
            Line::MapContents(contents) => self.add_contents(contents),
            Line::ProgLoad(program) => self.loaded.push(program),
            Line::Object(_) | Line::ProgBind(_) | Line::Died(_) | Line::End => {}
        }
    }

    /// Adds the contents of a map, without trailing zeros, because memory is mapped by
    /// pages.
    pub(super) fn add_contents(&mut self, mut contents: Contents) {
        let used = contents.bytes.iter().rposition(|&byte| byte != 0);
        contents.bytes.truncate(used.map_or(0, |last| last + 1));
        if !contents.bytes.is_empty() {
            self.contents.push(contents);
        }
    }

    /// True if the object was opened.
    pub fn is_open(&self) -> bool {
        self.outcome
            .as_ref()
            .is_some_and(|outcome| outcome.stage == Stage::Load)
    }

    /// True if everything was loaded.
    pub fn is_loaded(&self) -> bool {
        self.outcome
            .as_ref()
            .is_some_and(|outcome| outcome.errno == 0)
    }
}

fn bytes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    let text = <&str>::deserialize(deserializer)?;
    unhex(text).ok_or_else(|| serde::de::Error::custom("not hexadecimal"))
}

fn some_bytes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<u8>>, D::Error> {
    bytes(deserializer).map(Some)
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let pairs = text.as_bytes().chunks(2);
    pairs
        .map(|pair| match *pair {
            [high, low] => Some((digit(high)? << 4 | digit(low)?) as u8),
            _ => None,
        })
        .collect()
}
