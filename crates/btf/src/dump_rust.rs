//! Rust definitions of types, with the layout that BTF states.
//!
//! | BTF | Rust |
//! |---|---|
//! | integer | `u8` … `i64`; 16 bytes: `[u64; 2]` |
//! | `_Bool` | `u8`, because memory that programs write may hold any byte |
//! | enumeration | alias of an integer, and a constant for each enumerator |
//! | pointer | `u64`: an address in the kernel |
//! | structure, union | `#[repr(C)]`, `packed` where members are not aligned |
//! | bit fields | bytes, with a method to read and one to set each of a structure |
//! | anonymous member | a field `_anonN` |
//! | typedef | alias |
//!
//! So every bit pattern is a value of each type. Padding is explicit; sizes and offsets
//! are asserted at compile time. A walk from the types that are referred to writes each
//! definition once, so the text is linear in the blob but for the names of anonymous
//! types: a budget bounds it.

mod composite;
mod names;

use std::collections::HashMap;
use std::fmt::Write;

use crate::dump_c::DumpError;
use crate::layout::Alignments;
use crate::{Btf, Enum, Int, Shape, TypeId};
use composite::Layout;
pub use composite::{RustField, RustSize};
use names::Identifiers;

/// Methods of bit fields call these.
const BIT_FUNCTIONS: &str = "
/// Bits from `start` of little-endian bytes.
fn bits(bytes: &[u8], start: usize, width: usize) -> u64 {
    (0..width).fold(0, |value, bit| {
        let at = start + bit;
        value | u64::from(bytes[at / 8] >> (at % 8) & 1) << bit
    })
}

/// Sets bits from `start` of little-endian bytes.
fn set_bits(bytes: &mut [u8], start: usize, width: usize, value: u64) {
    for bit in 0..width {
        let at = start + bit;
        bytes[at / 8] &= !(1 << (at % 8));
        bytes[at / 8] |= ((value >> bit & 1) as u8) << (at % 8);
    }
}
";

/// Writer of types as Rust.
pub struct RustDump<'b> {
    btf: &'b Btf<'b>,
    alignments: Alignments<'b>,
    /// Names of the types that are written.
    names: HashMap<TypeId, String>,
    types: Identifiers,
    constants: Identifiers,
    out: String,
    has_bits: bool,
    /// Maximum length of the text in bytes.
    budget: usize,
}

impl<'b> RustDump<'b> {
    /// Writer without text.
    pub fn new(btf: &'b Btf<'b>) -> RustDump<'b> {
        RustDump {
            btf,
            alignments: Alignments::new(btf),
            names: HashMap::new(),
            types: Identifiers::of_types(),
            constants: Identifiers::default(),
            out: String::new(),
            has_bits: false,
            budget: (1 << 18) + 256 * btf.as_bytes().len(),
        }
    }

    /// Rust expression of a type, whose definition and dependencies are written if they
    /// are not yet. `path` is the path of the module of the definitions, with `::`; `name`
    /// names the type if it is anonymous.
    pub fn refer(&mut self, id: TypeId, name: &str, path: &str) -> Result<String, DumpError> {
        let ty = self.btf.get(id).ok_or(DumpError::NoType { id })?;
        // This bounds the depth of the walk, too.
        if self.alignments.of(id).is_none() {
            return Err(DumpError::NoLayout { id });
        }
        let text = match ty.shape() {
            Shape::Int(int) => integer(int),
            Shape::Float(4) => "f32".into(),
            Shape::Float(8) => "f64".into(),
            Shape::Float(size) => format!("[u64; {}]", size / 8),
            Shape::Ptr(_) => unsigned(self.btf.pointer_size()),
            Shape::Array(array) => {
                let element = self.refer(array.element, name, path)?;
                format!("[{element}; {}]", array.count)
            }
            Shape::Volatile(to) | Shape::Const(to) | Shape::Restrict(to) | Shape::TypeTag(to) => {
                self.refer(to, name, path)?
            }
            Shape::Typedef(to) => self.typedef(id, to, path)?,
            Shape::Struct(_) | Shape::Union(_) => {
                let name = self.composite(id, name)?;
                format!("{path}{name}")
            }
            Shape::Enum(of) => {
                let name = self.enumeration(id, of, name)?;
                format!("{path}{name}")
            }
            Shape::Void
            | Shape::Fwd(_)
            | Shape::Func(_)
            | Shape::Proto(_)
            | Shape::Var(_)
            | Shape::Datasec(_)
            | Shape::DeclTag(_) => return Err(DumpError::NoLayout { id }),
        };
        match text.len() + self.out.len() > self.budget {
            true => Err(DumpError::TooLong),
            false => Ok(text),
        }
    }

    /// Text of a `#[repr(C)]` structure that is no type of the blob, such as the variables
    /// of a section.
    pub fn structure(
        &mut self,
        name: &str,
        fields: &[RustField<'_>],
        size: RustSize,
        path: &str,
    ) -> Result<String, DumpError> {
        let layout = Layout {
            name,
            is_union: false,
            fields,
            size,
            id: TypeId::VOID,
        };
        self.layout(&layout, path)
    }

    /// Identifier for a name that is no type: keywords are escaped.
    pub fn identifier(name: &str) -> String {
        names::identifier(name)
    }

    /// Definitions so far.
    pub fn into_text(mut self) -> String {
        if self.has_bits {
            self.out.push_str(BIT_FUNCTIONS);
        }
        self.out
    }

    fn typedef(&mut self, id: TypeId, to: TypeId, path: &str) -> Result<String, DumpError> {
        if let Some(name) = self.names.get(&id) {
            return Ok(format!("{path}{name}"));
        }
        let name = self.btf.at(id).name().to_string();
        let plain = names::identifier(&name);
        let target = self.refer(to, &name, "")?;
        // `typedef struct x x`, and an anonymous type that got the name of its typedef.
        if target == plain {
            return match names::is_primitive(&plain) {
                true => Ok(target),
                false => Ok(format!("{path}{target}")),
            };
        }
        let name = self.types.unique(&name);
        let _ = writeln!(self.out, "\npub type {name} = {target};");
        self.names.insert(id, name.clone());
        Ok(format!("{path}{name}"))
    }

    fn enumeration(&mut self, id: TypeId, of: Enum<'_>, name: &str) -> Result<String, DumpError> {
        if let Some(name) = self.names.get(&id) {
            return Ok(name.clone());
        }
        let name = self.name_type(id, name);
        let base = match of.signed {
            true => signed(of.size),
            false => unsigned(of.size),
        };
        let _ = writeln!(self.out, "\npub type {name} = {base};");
        for value in of.values() {
            let constant = self.btf.string(value.name).to_string();
            let constant = self.constants.unique(&constant);
            let _ = match of.signed {
                true => writeln!(
                    self.out,
                    "pub const {constant}: {name} = {};",
                    value.value as i64
                ),
                false => writeln!(self.out, "pub const {constant}: {name} = {};", value.value),
            };
        }
        Ok(name)
    }

    fn composite(&mut self, id: TypeId, name: &str) -> Result<String, DumpError> {
        if let Some(name) = self.names.get(&id) {
            return Ok(name.clone());
        }
        let name = self.name_type(id, name);
        let ty = self.btf.at(id);
        let Some(composite) = ty.as_composite() else {
            return Err(DumpError::NoLayout { id });
        };
        let names: Vec<String> = composite
            .members()
            .map(|member| self.btf.string(member.name).to_string())
            .collect();
        let fields: Vec<RustField<'_>> = composite
            .members()
            .zip(&names)
            .map(|(member, name)| RustField {
                name,
                ty: member.ty,
                bit_offset: member.bit_offset,
                bits: self.bit_width(member.ty, member.bits),
            })
            .collect();
        let layout = Layout {
            name: &name,
            is_union: matches!(ty.shape(), Shape::Union(_)),
            fields: &fields,
            size: RustSize::Exact(composite.size),
            id,
        };
        let text = self.layout(&layout, "")?;
        self.out.push_str(&text);
        Ok(name)
    }

    /// Unique name of a type: its own, or `name` if it is anonymous.
    fn name_type(&mut self, id: TypeId, name: &str) -> String {
        let own = self.btf.at(id).name().to_string();
        let name = self.types.unique(if own.is_empty() { name } else { &own });
        self.names.insert(id, name.clone());
        name
    }

    /// Width of a bit field in bits; 0 for other members. Without `kind_flag` the integer
    /// states it.
    fn bit_width(&self, id: TypeId, bits: u32) -> u32 {
        let base = self.btf.skip_modifiers(id).and_then(|id| self.btf.get(id));
        match base.map(|ty| ty.shape()) {
            Some(Shape::Int(int)) if bits == 0 && u64::from(int.bits) < 8 * u64::from(int.size) => {
                int.bits
            }
            _ => bits,
        }
    }
}

fn integer(int: Int) -> String {
    match int.encoding.is_signed() {
        true => signed(int.size),
        false => unsigned(int.size),
    }
}

fn unsigned(size: u32) -> String {
    match size {
        1 | 2 | 4 | 8 => format!("u{}", 8 * size),
        // Its alignment is that of a pointer, like that of the type.
        _ if size.is_multiple_of(8) => format!("[u64; {}]", size / 8),
        _ => format!("[u8; {size}]"),
    }
}

fn signed(size: u32) -> String {
    match size {
        1 | 2 | 4 | 8 => format!("i{}", 8 * size),
        _ => unsigned(size),
    }
}
