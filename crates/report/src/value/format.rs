//! Forms of addresses, ports and bytes within values: by type, by the name of a field, or chosen by
//! the path of a field.
//!
//! A type with a form is written as text (`"192.0.2.1"`) and read from it; what is no such text is
//! read by its type, so that numbers and lists of bytes remain possible. All forms are exact: what
//! is shown is read as the same bytes.
//!
//! Without a choice the rules are:
//!
//! | form | type | names of fields |
//! |---|---|---|
//! | IPv4 | `struct in_addr`; `__be32` | any, but [`OTHER_BE32`] |
//! | IPv4 | `unsigned int`, `unsigned char[4]` | [`ADDRESSES`] |
//! | IPv6 | `struct in6_addr` | any |
//! | IPv6 | `unsigned char[16]`, `unsigned int[4]`, `__be32[4]` | [`ADDRESSES`] |
//! | MAC | `unsigned char[6]` | [`HARDWARE`] |
//! | port | `__be16` | [`PORTS`] |

use std::net::{Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use btf::{Btf, Encoding, Shape, TypeId};
use serde_json::Value;

use super::DEEPEST;
use super::write::number;

/// Names of fields that hold IPv4 or IPv6 addresses in network order.
pub const ADDRESSES: &[&str] = &[
    "saddr",
    "daddr",
    "addr",
    "ip",
    "ip4",
    "ip6",
    "ipv4",
    "ipv6",
    "v4",
    "v6",
    "src_ip",
    "dst_ip",
    "src_addr",
    "dst_addr",
    "ip_addr",
    "ipv4_addr",
    "ipv6_addr",
    "saddr6",
    "daddr6",
    "addr4",
    "addr6",
];
/// Names of fields of the type `__be32` that hold no address.
pub const OTHER_BE32: &[&str] = &[
    "seq",
    "ack_seq",
    "ack",
    "spi",
    "vni",
    "teid",
    "mark",
    "key",
    "id",
    "label",
    "flowlabel",
    "tunnel_id",
    "ports",
];
/// Names of fields that hold Ethernet addresses.
pub const HARDWARE: &[&str] = &[
    "h_source", "h_dest", "mac", "smac", "dmac", "src_mac", "dst_mac", "mac_addr", "hwaddr",
    "eth_src", "eth_dst", "ar_sha", "ar_tha",
];
/// Names of fields that hold ports in network order.
pub const PORTS: &[&str] = &[
    "port",
    "sport",
    "dport",
    "source",
    "dest",
    "src_port",
    "dst_port",
    "local_port",
    "remote_port",
    "lport",
    "rport",
    "peer_port",
];

/// The form of a part of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Four bytes, as `192.0.2.1`.
    Ipv4,
    /// Sixteen bytes, as `2001:db8::1`.
    Ipv6,
    /// Six bytes, as `02:00:00:00:00:01`.
    Mac,
    /// A number of two bytes in network order.
    Port,
    /// Bytes in hexadecimal, with spaces.
    Hex,
    /// An unsigned number of so many bytes (1, 2, 4 or 8), in the byte order of the machine.
    Unsigned(usize),
}

impl Format {
    /// All forms.
    pub const ALL: &[Format] = &[
        Format::Ipv4,
        Format::Ipv6,
        Format::Mac,
        Format::Port,
        Format::Hex,
        Format::Unsigned(1),
        Format::Unsigned(2),
        Format::Unsigned(4),
        Format::Unsigned(8),
    ];

    /// The name.
    pub fn name(self) -> &'static str {
        match self {
            Format::Ipv4 => "ipv4",
            Format::Ipv6 => "ipv6",
            Format::Mac => "mac",
            Format::Port => "port",
            Format::Hex => "hex",
            Format::Unsigned(1) => "u8",
            Format::Unsigned(2) => "u16",
            Format::Unsigned(4) => "u32",
            Format::Unsigned(_) => "u64",
        }
    }

    /// Bytes that a value of the form has; `None` for any number.
    pub fn size(self) -> Option<usize> {
        match self {
            Format::Ipv4 => Some(4),
            Format::Ipv6 => Some(16),
            Format::Mac => Some(6),
            Format::Port => Some(2),
            Format::Hex => None,
            Format::Unsigned(size) => Some(size),
        }
    }

    pub(super) fn fits(self, size: usize) -> bool {
        self.size().is_none_or(|own| own == size)
    }

    /// The value of bytes; `None` if the form does not fit their number.
    pub(super) fn show(self, bytes: &[u8]) -> Option<Value> {
        Some(match self {
            Format::Ipv4 => {
                let bytes: [u8; 4] = bytes.try_into().ok()?;
                Ipv4Addr::from(bytes).to_string().into()
            }
            Format::Ipv6 => {
                let bytes: [u8; 16] = bytes.try_into().ok()?;
                Ipv6Addr::from(bytes).to_string().into()
            }
            Format::Mac if bytes.len() == 6 => joined(bytes, ":").into(),
            Format::Port => u16::from_be_bytes(bytes.try_into().ok()?).into(),
            Format::Hex => joined(bytes, " ").into(),
            Format::Unsigned(size) if bytes.len() == size => {
                let mut wide = [0; 8];
                wide.get_mut(..size)?.copy_from_slice(bytes);
                u64::from_le_bytes(wide).into()
            }
            Format::Mac | Format::Unsigned(_) => return None,
        })
    }

    /// Writes a value of this form over all bytes; `None` if it has another form, and is read by its
    /// type.
    pub(super) fn read_exactly(self, value: &Value, into: &mut [u8]) -> Option<()> {
        let text = value.as_str();
        match self {
            Format::Ipv4 => copy(&text?.parse::<Ipv4Addr>().ok()?.octets(), into),
            Format::Ipv6 => copy(&text?.parse::<Ipv6Addr>().ok()?.octets(), into),
            Format::Mac => {
                let parts: Vec<u8> = bytes_of(text?.split(':'))?;
                copy(&parts, into)
            }
            Format::Port => copy(&u16::try_from(number(value)?).ok()?.to_be_bytes(), into),
            Format::Hex => copy(&hex(text?)?, into),
            Format::Unsigned(size) => {
                let bytes = u64::try_from(number(value)?).ok()?.to_le_bytes();
                let (low, high) = bytes.split_at_checked(size)?;
                match high.iter().all(|byte| *byte == 0) {
                    true => copy(low, into),
                    false => None,
                }
            }
        }
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(name: &str) -> Result<Format, String> {
        let found = Format::ALL.iter().find(|format| format.name() == name);
        found.copied().ok_or_else(|| {
            let names: Vec<&str> = Format::ALL.iter().map(|format| format.name()).collect();
            format!("no form is called {name:?}; there are {}", names.join(", "))
        })
    }
}

/// Forms that are chosen by the path of a field: names of members from the value on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Formats(Vec<(Vec<String>, Format)>);

impl Formats {
    /// No choice: types and names of fields decide.
    pub const NONE: &Formats = &Formats(Vec::new());

    /// Chooses the form of a field of a value of a type, or with an empty path that of the value; of
    /// an array it is that of the array, or of its elements.
    ///
    /// # Errors
    /// If there is no such field, the form has another size, or the field has a form already.
    pub fn set(
        &mut self,
        types: Option<&Btf<'_>>,
        (ty, size): (TypeId, usize),
        path: Vec<String>,
        format: Format,
    ) -> Result<(), String> {
        let place = path.join(".");
        // The form of a structure leaves none to its fields.
        let is_same = |of: &[String]| of.starts_with(&path) || path.starts_with(of);
        if let Some((_, other)) = self.0.iter().find(|(of, _)| is_same(of)) {
            let two = format!("{place}: two forms, {} and {}", other.name(), format.name());
            return Err(two.trim_start_matches(": ").to_owned());
        }
        let misfit = |size| {
            let (name, own) = (format.name(), format.size().unwrap_or(size));
            format!("{place}: it has {size} bytes, {name} takes {own}")
                .trim_start_matches(": ")
                .to_owned()
        };
        match types.filter(|_| ty != TypeId::VOID) {
            Some(types) => {
                let field = path
                    .iter()
                    .try_fold((ty, 0), |(ty, _), name| member(types, ty, name, DEEPEST));
                let (field, bits) =
                    field.ok_or_else(|| format!("{place}: there is no such field"))?;
                if bits != 0 {
                    return Err(format!("{place}: a bit field has no other form"));
                }
                let sizes = sizes_of(types, field);
                if !sizes.iter().any(|size| format.fits(*size)) {
                    return Err(misfit(sizes.first().copied().unwrap_or(0)));
                }
            }
            None if !path.is_empty() => return Err(format!("{place}: the object has no types")),
            None if !format.fits(size) => return Err(misfit(size)),
            None => {}
        }
        self.0.push((path, format));
        Ok(())
    }

    /// The form of the whole value.
    pub(super) fn of_value(&self) -> Option<Format> {
        self.at(&[])
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The forms of the fields of a member.
    pub fn below(&self, name: &str) -> Formats {
        let below = self.0.iter().filter_map(|(path, format)| {
            let (first, rest) = path.split_first()?;
            (first == name).then(|| (rest.to_vec(), *format))
        });
        Formats(below.collect())
    }

    /// The form that is chosen for a path.
    pub(super) fn at(&self, path: &[String]) -> Option<Format> {
        let found = self.0.iter().find(|(of, _)| of == path);
        found.map(|(_, format)| *format)
    }
}

/// The type of a member of a structure, a union, or the elements of an array of such, or of a
/// variable of a section, and its width in bits if it is a bit field, otherwise 0; members of
/// unnamed members are its own.
fn member(types: &Btf<'_>, ty: TypeId, name: &str, depth: u32) -> Option<(TypeId, u32)> {
    let of = match types.get(types.skip_modifiers(ty)?)?.shape() {
        Shape::Struct(of) | Shape::Union(of) => of,
        Shape::Array(array) if depth > 0 => {
            return member(types, array.element, name, depth - 1);
        }
        Shape::Datasec(section) => {
            let mut vars = section.vars().map(|var| types.at(var.var));
            let found = vars.find(|var| var.name() == *name)?;
            return match found.shape() {
                Shape::Var(of) => Some((of.ty, 0)),
                _ => None,
            };
        }
        _ => return None,
    };
    let own = of.members().find(|it| types.string(it.name) == *name);
    let unnamed = || {
        let mut unnamed = of.members().filter(|it| types.string(it.name) == *"");
        let inner = |it: btf::Member| member(types, it.ty, name, depth - 1);
        unnamed.find_map(|it| (depth > 0).then(|| inner(it)).flatten())
    };
    own.map(|it| (it.ty, it.bits)).or_else(unnamed)
}

/// The sizes of a type, and of its elements if it is an array.
fn sizes_of(types: &Btf<'_>, ty: TypeId) -> Vec<usize> {
    let (mut sizes, mut ty) = (Vec::new(), ty);
    for _ in 0..DEEPEST {
        sizes.extend(types.size_of(ty).map(|size| size as usize));
        let shape = types
            .skip_modifiers(ty)
            .and_then(|ty| Some(types.get(ty)?.shape()));
        match shape {
            Some(Shape::Array(array)) => ty = array.element,
            _ => break,
        }
    }
    sizes
}

/// The form of a type by the rules, as a member of a name; `None` for most.
pub(super) fn of_type(types: &Btf<'_>, ty: TypeId, name: Option<&str>) -> Option<Format> {
    let is_named = |names: &[&str]| name.is_some_and(|name| names.contains(&name));
    match base(types, ty)? {
        Base::InAddr => Some(Format::Ipv4),
        Base::In6Addr => Some(Format::Ipv6),
        Base::Be32 => (!is_named(OTHER_BE32)).then_some(Format::Ipv4),
        Base::Be16 => is_named(PORTS).then_some(Format::Port),
        Base::Unsigned(4) => is_named(ADDRESSES).then_some(Format::Ipv4),
        Base::Unsigned(_) => None,
        Base::Array(element, count) => match (base(types, element)?, count) {
            (Base::Unsigned(1), 4) => is_named(ADDRESSES).then_some(Format::Ipv4),
            (Base::Unsigned(1), 16) | (Base::Unsigned(4) | Base::Be32, 4) => {
                is_named(ADDRESSES).then_some(Format::Ipv6)
            }
            (Base::Unsigned(1), 6) => is_named(HARDWARE).then_some(Format::Mac),
            _ => None,
        },
    }
}

/// What a type is for the rules.
enum Base {
    Be16,
    Be32,
    /// An unsigned integer of so many bytes that is no boolean.
    Unsigned(u32),
    InAddr,
    In6Addr,
    Array(TypeId, u32),
}

fn base(types: &Btf<'_>, ty: TypeId) -> Option<Base> {
    let mut found = types.get(ty)?;
    for _ in 0..DEEPEST {
        match found.shape() {
            Shape::Typedef(of) => {
                match &*found.name().to_string() {
                    "__be16" => return Some(Base::Be16),
                    "__be32" => return Some(Base::Be32),
                    _ => {}
                }
                found = types.get(of)?;
            }
            Shape::Const(of) | Shape::Volatile(of) | Shape::Restrict(of) | Shape::TypeTag(of) => {
                found = types.get(of)?;
            }
            Shape::Int(int) if int.encoding == Encoding(0) && int.bits == int.size * 8 => {
                return Some(Base::Unsigned(int.size));
            }
            Shape::Struct(of) => {
                return match (&*found.name().to_string(), of.size) {
                    ("in_addr", 4) => Some(Base::InAddr),
                    ("in6_addr", 16) => Some(Base::In6Addr),
                    _ => None,
                };
            }
            Shape::Array(array) => return Some(Base::Array(array.element, array.count)),
            _ => return None,
        }
    }
    None
}

fn joined(bytes: &[u8], separator: &str) -> String {
    let digits = bytes.iter().map(|byte| format!("{byte:02x}"));
    digits.collect::<Vec<_>>().join(separator)
}

/// Bytes as two digits each, with or without spaces between them.
pub(super) fn hex(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<char> = text.chars().filter(|c| !c.is_ascii_whitespace()).collect();
    let pairs = digits.chunks(2).map(|pair| match pair {
        [high, low] => {
            let digit = |c: &char| c.to_digit(16).and_then(|digit| u8::try_from(digit).ok());
            Some(digit(high)? << 4 | digit(low)?)
        }
        _ => None,
    });
    pairs.collect()
}

/// Bytes of one or two hexadecimal digits each.
fn bytes_of<'t>(parts: impl Iterator<Item = &'t str>) -> Option<Vec<u8>> {
    let byte = |part: &str| match part.len() {
        1 | 2 if part.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
            u8::from_str_radix(part, 16).ok()
        }
        _ => None,
    };
    parts.map(byte).collect()
}

fn copy(from: &[u8], into: &mut [u8]) -> Option<()> {
    (from.len() == into.len()).then(|| into.copy_from_slice(from))
}
