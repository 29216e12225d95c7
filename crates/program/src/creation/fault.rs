//! The rule of map creation that a request violates, as data and in words.

use std::fmt;

use btf::fields::FieldKind;
use spec::Errno;
use spec::maps::{MapFlags, MapKind};

use crate::map_def::PAGE_SIZE;

/// Refusal of a map: the error number of `BPF_MAP_CREATE` and the violated rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapRefusal {
    /// The error number.
    pub errno: Errno,
    /// The violated rule.
    pub fault: MapFault,
}

/// A map that the kernel does not create.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedMap {
    /// Name in the object.
    pub name: String,
    /// Its kind, if the type is known.
    pub kind: Option<MapKind>,
    /// Reason.
    pub refusal: MapRefusal,
}

/// Violated rule of map creation.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MapFault {
    /// The kernel has no maps of this type.
    Kind {
        /// The number of the type.
        map_type: u32,
    },
    /// The caller lacks the capability that maps of the kind need.
    Privilege {
        /// Kind of the map.
        kind: MapKind,
        /// The capability.
        capability: &'static str,
    },
    /// BPF_F_ZERO_SEED without CAP_SYS_ADMIN.
    ZeroSeed,
    /// The size of a key.
    KeySize {
        /// Kind of the map.
        kind: MapKind,
        /// The requested size in bytes.
        size: u32,
        /// The sizes that the kind has.
        rule: SizeRule,
    },
    /// The size of a value.
    ValueSize {
        /// Kind of the map.
        kind: MapKind,
        /// The requested size in bytes.
        size: u32,
        /// The sizes that the kind has.
        rule: SizeRule,
    },
    /// Key and value of a hash table together.
    Element {
        /// Kind of the map.
        kind: MapKind,
        /// Their size in bytes.
        bytes: u64,
        /// Most bytes.
        most: u32,
    },
    /// `max_entries`.
    Entries {
        /// Kind of the map.
        kind: MapKind,
        /// The requested number.
        entries: u32,
        /// The numbers that the kind has.
        rule: EntriesRule,
    },
    /// The kind needs a flag.
    MissingFlag {
        /// Kind of the map.
        kind: MapKind,
        /// The flag.
        flag: MapFlags,
    },
    /// The kind does not take flags.
    Flags {
        /// Kind of the map.
        kind: MapKind,
        /// The flags.
        flags: MapFlags,
    },
    /// Two flags exclude each other.
    Exclusive {
        /// Both.
        flags: MapFlags,
    },
    /// BPF_F_TOKEN_FD without a token.
    Token,
    /// The NUMA node does not exist.
    NumaNode {
        /// Its number.
        node: u32,
    },
    /// The kind does not take `map_extra`.
    Extra {
        /// Kind of the map.
        kind: MapKind,
    },
    /// The number of hash functions of a Bloom filter (`map_extra`).
    Hashes {
        /// The requested number.
        hashes: u64,
    },
    /// The start of an arena in user space (`map_extra`).
    ArenaStart {
        /// The requested address.
        start: u64,
    },
    /// An arena whose addresses differ in their upper half.
    ArenaSpan {
        /// Its start.
        start: u64,
        /// Its size.
        bytes: u64,
    },
    /// The map is bound to a network device, and none takes maps.
    Device,
    /// A struct_ops map without structure of the kernel.
    KernelType,
    /// The inner maps of a map of maps.
    Inner(InnerFault),
    /// The kind needs types of key and value.
    Untyped {
        /// Kind of the map.
        kind: MapKind,
    },
    /// The kind takes no types.
    Typed {
        /// Kind of the map.
        kind: MapKind,
    },
    /// The type of the key.
    Key(TypeRule),
    /// The type of the value.
    Value(TypeRule),
    /// The special fields of values need CAP_BPF.
    FieldPrivilege,
    /// Programs may not read or not write values that have special fields.
    FieldAccess,
    /// Values of the kind cannot have a special field.
    Field {
        /// Kind of the map.
        kind: MapKind,
        /// Kind of the field.
        field: FieldKind,
    },
    /// The map takes more memory than the machine has.
    Memory {
        /// Bytes that the map takes.
        bytes: u64,
        /// Bytes of memory.
        memory: u64,
    },
}

/// Sizes in bytes that keys or values of a kind have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SizeRule {
    /// This size.
    Exactly(u32),
    /// One of these.
    OneOf(&'static [u32]),
    /// Any but 0.
    AtLeastOne,
    /// At most so many bytes.
    AtMost(u32),
    /// A size in a range, both ends included.
    Between(u32, u32),
    /// Whole frames of a stack trace: bytes of a frame and the most frames.
    Frames(u32, u32),
}

/// `max_entries` that a kind has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntriesRule {
    /// Entries belong to objects of the kernel: 0.
    None,
    /// Any but 0.
    AtLeastOne,
    /// At most so many.
    AtMost(u32),
    /// Bytes of a ring: a power of two of pages.
    Ring,
}

/// Definition of inner maps that no map of maps has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InnerFault {
    /// There is none.
    Missing {
        /// Kind of the map of maps.
        kind: MapKind,
    },
    /// No map holds maps of the kind.
    Kind {
        /// Kind of the inner map.
        kind: MapKind,
    },
    /// The inner map is not created.
    NotCreated(Box<MapFault>),
}

/// Key or value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MapSide {
    /// The key.
    Key,
    /// The value.
    Value,
}

/// Rule of the type of a key or value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TypeRule {
    /// The type is stated.
    Stated,
    /// The type of a key is not stated.
    Unstated(MapKind),
    /// It has the size of the key or value: that of the type, `None` without one, and the
    /// requested one.
    Size(Option<u32>, u32),
    /// An integer of so many bits, for the keys of a kind.
    Int(MapKind, u32),
    /// A structure, for the keys of a kind.
    Struct(MapKind),
    /// A section of variables, of an array without type of its keys.
    Section,
}

impl MapFault {
    /// The refusal with an error number.
    pub(super) fn with(self, errno: Errno) -> MapRefusal {
        MapRefusal { errno, fault: self }
    }
}

impl SizeRule {
    pub(super) fn allows(self, size: u32) -> bool {
        match self {
            SizeRule::Exactly(only) => size == only,
            SizeRule::OneOf(sizes) => sizes.contains(&size),
            SizeRule::AtLeastOne => size != 0,
            SizeRule::AtMost(most) => size <= most,
            SizeRule::Between(least, most) => (least..=most).contains(&size),
            SizeRule::Frames(frame, most) => {
                size != 0 && size.is_multiple_of(frame) && size / frame <= most
            }
        }
    }
}

impl EntriesRule {
    pub(super) fn allows(self, entries: u32) -> bool {
        match self {
            EntriesRule::None => entries == 0,
            EntriesRule::AtLeastOne => entries != 0,
            EntriesRule::AtMost(most) => entries <= most,
            EntriesRule::Ring => entries.is_power_of_two() && entries.is_multiple_of(PAGE_SIZE),
        }
    }
}

impl fmt::Display for MapRefusal {
    /// The rule, and the name of the error number.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.fault, self.errno)
    }
}

impl std::error::Error for MapRefusal {}

impl fmt::Display for RefusedMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "map '{}' is not created: {}", self.name, self.refusal)
    }
}

impl fmt::Display for MapFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MapFault::Kind { map_type } => match MapKind::from_number(*map_type) {
                Some(kind) => write!(f, "the kernel has no maps of type {}", kind.name()),
                None => write!(f, "the kernel has no maps of type {map_type}"),
            },
            MapFault::Privilege { kind, capability } => {
                write!(f, "{} needs {capability}", kind.noun().0)
            }
            MapFault::ZeroSeed => f.write_str("BPF_F_ZERO_SEED needs CAP_SYS_ADMIN"),
            MapFault::KeySize { kind, size, rule } => sizes(f, MapSide::Key, *kind, *size, *rule),
            MapFault::ValueSize { kind, size, rule } => {
                sizes(f, MapSide::Value, *kind, *size, *rule)
            }
            MapFault::Element { kind, bytes, most } => write!(
                f,
                "key and value of {} have at most {most} bytes together, these have {bytes}",
                kind.noun().1
            ),
            MapFault::Entries {
                kind,
                entries,
                rule,
            } => self::entries(f, *kind, *entries, *rule),
            MapFault::MissingFlag { kind, flag } => {
                write!(f, "{} needs {}", kind.noun().0, flag_names(*flag, " and "))
            }
            MapFault::Flags { kind, flags } => write!(
                f,
                "{} does not take {}",
                kind.noun().0,
                flag_names(*flags, " and ")
            ),
            MapFault::Exclusive { flags } => {
                write!(f, "{} exclude each other", flag_names(*flags, " and "))
            }
            MapFault::Token => f.write_str("BPF_F_TOKEN_FD needs a token, and there is none"),
            MapFault::NumaNode { node } => {
                write!(f, "the machine has no NUMA node {node}, it has node 0")
            }
            MapFault::Extra { kind } => {
                write!(f, "{} does not take map_extra", kind.noun().0)
            }
            MapFault::Hashes { hashes } => write!(
                f,
                "a Bloom filter has at most 15 hash functions (map_extra), not {hashes}"
            ),
            MapFault::ArenaStart { start } => write!(
                f,
                "an arena starts at a multiple of {PAGE_SIZE} (map_extra), not at {start:#x}"
            ),
            MapFault::ArenaSpan { start, bytes } => write!(
                f,
                "the addresses of an arena have one upper half, not those of {bytes} bytes from \
                 {start:#x} (map_extra)"
            ),
            MapFault::Device => f.write_str("the network device takes no maps"),
            MapFault::KernelType => f.write_str("a struct_ops map needs a structure of the kernel"),
            MapFault::Inner(fault) => fault.fmt(f),
            MapFault::Untyped { kind } => {
                write!(f, "{} needs BTF of key and value", kind.noun().0)
            }
            MapFault::Typed { kind } => write!(f, "{} takes no BTF", kind.noun().0),
            MapFault::Key(rule) => rule_words(f, MapSide::Key, *rule),
            MapFault::Value(rule) => rule_words(f, MapSide::Value, *rule),
            MapFault::FieldPrivilege => f.write_str("values with special fields need CAP_BPF"),
            MapFault::FieldAccess => f.write_str(
                "values with special fields exclude BPF_F_RDONLY_PROG and BPF_F_WRONLY_PROG",
            ),
            MapFault::Field { kind, field } => {
                write!(f, "values of {} have no {}", kind.noun().1, field.name())
            }
            MapFault::Memory { bytes, memory } => write!(
                f,
                "the map takes {} when it is created, the machine has {}",
                Bytes(*bytes),
                Bytes(*memory)
            ),
        }
    }
}

impl std::error::Error for MapFault {}

impl std::error::Error for InnerFault {}

impl fmt::Display for InnerFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InnerFault::Missing { kind } => {
                write!(
                    f,
                    "{} needs the definition of its inner maps",
                    kind.noun().0
                )
            }
            InnerFault::Kind { kind } => {
                write!(f, "{} cannot be an inner map", kind.noun().0)
            }
            InnerFault::NotCreated(fault) => write!(f, "its inner map is not created: {fault}"),
        }
    }
}

fn sizes(
    f: &mut fmt::Formatter<'_>,
    side: MapSide,
    kind: MapKind,
    size: u32,
    rule: SizeRule,
) -> fmt::Result {
    let of = kind.noun().1;
    let sides = match side {
        MapSide::Key => "keys",
        MapSide::Value => "values",
    };
    match rule {
        SizeRule::Exactly(0) => write!(f, "{of} have no {sides}, here of {size} bytes"),
        SizeRule::Exactly(only) => write!(f, "{sides} of {of} have {only} bytes, not {size}"),
        SizeRule::OneOf(allowed) => {
            let allowed: Vec<String> = allowed.iter().map(u32::to_string).collect();
            let allowed = allowed.join(" or ");
            write!(f, "{sides} of {of} have {allowed} bytes, not {size}")
        }
        SizeRule::AtLeastOne => write!(f, "{sides} of {of} have at least 1 byte, not {size}"),
        SizeRule::AtMost(most) => {
            let each = if kind.is_percpu() {
                " for each CPU"
            } else {
                ""
            };
            write!(
                f,
                "{sides} of {of} have at most {most} bytes{each}, not {size}"
            )
        }
        SizeRule::Between(least, most) => {
            write!(
                f,
                "{sides} of {of} have {least} to {most} bytes, not {size}"
            )
        }
        SizeRule::Frames(frame, most) => write!(
            f,
            "{sides} of {of} have {frame} bytes for each of 1 to {most} frames, not {size}"
        ),
    }
}

fn entries(
    f: &mut fmt::Formatter<'_>,
    kind: MapKind,
    entries: u32,
    rule: EntriesRule,
) -> fmt::Result {
    let (one, of) = kind.noun();
    match rule {
        EntriesRule::None => write!(f, "{of} have no max_entries, here of {entries}"),
        EntriesRule::AtLeastOne => write!(f, "{one} needs max_entries"),
        EntriesRule::AtMost(most) => {
            write!(f, "max_entries of {of} is at most {most}, not {entries}")
        }
        EntriesRule::Ring => write!(
            f,
            "max_entries of {of} is a power of two and a multiple of {PAGE_SIZE}, not {entries}"
        ),
    }
}

fn rule_words(f: &mut fmt::Formatter<'_>, side: MapSide, rule: TypeRule) -> fmt::Result {
    let side = match side {
        MapSide::Key => "key",
        MapSide::Value => "value",
    };
    match rule {
        TypeRule::Stated => write!(f, "the type of the {side} is not stated"),
        TypeRule::Unstated(kind) => {
            let of = kind.noun().1;
            write!(f, "{of} have no {side}s, so that BTF describes none")
        }
        TypeRule::Size(Some(found), size) => {
            write!(
                f,
                "the type of the {side} has {found} bytes, the {side} {size}"
            )
        }
        TypeRule::Size(None, _) => write!(f, "the type of the {side} has no size"),
        TypeRule::Int(kind, bits) => write!(
            f,
            "BTF describes {side}s of {} as integers of {bits} bits",
            kind.noun().1
        ),
        TypeRule::Struct(kind) => {
            let of = kind.noun().1;
            write!(f, "BTF describes {side}s of {of} as structures")
        }
        TypeRule::Section => write!(
            f,
            "an array without type of its keys has one value, a section of variables"
        ),
    }
}

/// The names of flags, and the bits that have none.
fn flag_names(flags: MapFlags, between: &str) -> String {
    let mut names: Vec<String> = flags.names().map(str::to_owned).collect();
    match flags.unknown() {
        0 => {}
        bits => names.push(format!("flag {bits:#x}")),
    }
    names.join(between)
}

/// Bytes, in the largest binary unit that leaves few digits.
struct Bytes(u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(u64, &str); 4] = [
            (1 << 40, "TiB"),
            (1 << 30, "GiB"),
            (1 << 20, "MiB"),
            (1 << 10, "KiB"),
        ];
        let unit = UNITS.iter().find(|(unit, _)| self.0 >= *unit);
        match unit {
            Some((unit, name)) if self.0.is_multiple_of(*unit) => {
                write!(f, "{} {name}", self.0 / unit)
            }
            Some((unit, name)) => write!(f, "{:.1} {name}", self.0 as f64 / *unit as f64),
            None if self.0 == 1 => f.write_str("1 byte"),
            None => write!(f, "{} bytes", self.0),
        }
    }
}
