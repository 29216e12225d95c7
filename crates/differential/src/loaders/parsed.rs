//! What a loader parses of an object, in a common form.

use std::collections::BTreeSet;

use serde::{Deserialize, Deserializer};

/// An object.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Parsed {
    /// The refusal.
    #[serde(default)]
    pub error: Option<String>,
    /// Programs by name.
    #[serde(default, deserialize_with = "or_empty")]
    pub programs: Vec<ParsedProgram>,
    /// Maps by name.
    #[serde(default, deserialize_with = "or_empty")]
    pub maps: Vec<ParsedMap>,
}

/// A program.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct ParsedProgram {
    /// Name of its function.
    pub name: String,
    /// Number of its type; 0 for none.
    #[serde(rename = "type")]
    pub kind: u32,
    /// Number of its attach type; 0 for none.
    pub attach: u32,
    /// Load flags.
    #[serde(default)]
    pub flags: Option<u32>,
    /// Attach target in its section name.
    #[serde(default)]
    pub target: Option<String>,
    /// Licence.
    #[serde(default)]
    pub license: Option<String>,
    /// Instructions, with 0 for maps; `None` if the loader does not relocate when it parses, or
    /// the program cannot be linked.
    #[serde(default, deserialize_with = "bytes")]
    pub insns: Option<Vec<u8>>,
    /// Number of its own instructions, without subprogs.
    #[serde(default)]
    pub own_insns: Option<usize>,
    /// True if it calls an undefined function.
    #[serde(skip)]
    pub calls_undefined: bool,
    /// True if it calls two functions at one offset of different sections.
    #[serde(skip)]
    pub has_equal_offsets: bool,
    /// Maps that instructions refer to, by slot.
    #[serde(default, deserialize_with = "or_empty")]
    pub maps: Vec<(usize, String)>,
    /// Slots that a kernel or the configuration sets.
    #[serde(default, deserialize_with = "or_none")]
    pub open: BTreeSet<usize>,
}

/// A map.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct ParsedMap {
    /// Name.
    pub name: String,
    /// Number of its kind.
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
    /// Value of `pinning`.
    pub pinning: u32,
    /// Type of a key in the object's BTF.
    #[serde(default)]
    pub btf_key: Option<u32>,
    /// Type of a value in the object's BTF.
    #[serde(default)]
    pub btf_value: Option<u32>,
    /// Template of its inner maps.
    #[serde(default)]
    pub inner: Option<Box<ParsedMap>>,
    /// Maps and programs by key; `None` if the loader has none when it parses.
    #[serde(default)]
    pub entries: Option<Vec<(u32, String)>>,
    /// Initial value of a map of global variables.
    #[serde(default, deserialize_with = "bytes")]
    pub data: Option<Vec<u8>>,
}

fn or_empty<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Vec<T>, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

fn or_none<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeSet<usize>, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

fn bytes<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Vec<u8>>, D::Error> {
    let text: Option<String> = Option::deserialize(from)?;
    let digit = |byte: u8| char::from(byte).to_digit(16).unwrap_or_default() as u8;
    let pairs = |text: String| {
        let (pairs, _) = text.as_bytes().as_chunks::<2>();
        pairs
            .iter()
            .map(|[high, low]| digit(*high) << 4 | digit(*low))
            .collect()
    };
    Ok(text.map(pairs))
}
