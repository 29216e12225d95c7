//! Structures and unions with explicit padding.

use std::fmt::Write;

use super::RustDump;
use super::names::Identifiers;
use crate::dump_c::DumpError;
use crate::{Shape, TypeId};

/// Field of a structure or union.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RustField<'n> {
    /// Name; empty for an anonymous member.
    pub name: &'n str,
    /// Type.
    pub ty: TypeId,
    /// Offset in bits from the start of the structure.
    pub bit_offset: u32,
    /// Width of a bit field in bits; 0 for other fields.
    pub bits: u32,
}

/// Size of a structure in bytes, asserted at compile time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RustSize {
    /// This size; explicit padding fills the rest.
    Exact(u32),
    /// At least this size.
    AtLeast(u32),
}

/// Layout of a structure or union.
pub(super) struct Layout<'l> {
    pub(super) name: &'l str,
    pub(super) is_union: bool,
    pub(super) fields: &'l [RustField<'l>],
    pub(super) size: RustSize,
    /// Type; `void` if it is none of the blob.
    pub(super) id: TypeId,
}

/// Text of the parts of a definition.
#[derive(Default)]
struct Parts {
    fields: String,
    methods: String,
    asserts: String,
    names: Identifiers,
    method_names: Identifiers,
    paddings: usize,
    /// End of the last field in bytes.
    end: u64,
    /// Bit fields that share bytes: the fields and the first bit.
    open: Option<Bits>,
}

/// Storage of adjacent bit fields.
struct Bits {
    name: String,
    /// Offset in bytes.
    start: u64,
    /// End in bits.
    end: u64,
}

impl RustDump<'_> {
    /// Text of the definition of a structure or union.
    pub(super) fn layout(&mut self, of: &Layout<'_>, path: &str) -> Result<String, DumpError> {
        let overlap = DumpError::NoLayout { id: of.id };
        let (is_packed, align) = self.alignment(of);
        let mut parts = Parts::default();
        if of.fields.iter().any(|field| field.bits != 0) && !is_packed {
            let name = parts.names.unique("_align");
            let _ = writeln!(parts.fields, "    pub {name}: [u{}; 0],", 8 * align);
        }
        for (index, field) in of.fields.iter().enumerate() {
            if of.is_union {
                parts.end = 0;
            }
            if parts.fields.len() > self.budget {
                return Err(DumpError::TooLong);
            }
            let anonymous = format!("_anon{index}");
            let name = match field.name {
                "" => &anonymous,
                name => name,
            };
            let inner = format!(
                "{}__{}",
                of.name.trim_start_matches("r#"),
                name.trim_start_matches('_')
            );
            let expression = self.refer(field.ty, &inner, path)?;
            if field.bits != 0 {
                let start = u64::from(field.bit_offset);
                let end = start + u64::from(field.bits);
                parts.bits(start, end).ok_or(overlap)?;
                if of.is_union {
                    parts.close(Some(name));
                } else {
                    self.has_bits = true;
                    let is_signed = self.is_signed(field.ty);
                    parts.accessors(field, name, &expression, is_signed);
                }
                continue;
            }
            parts.close(None);
            let (at, rest) = (u64::from(field.bit_offset / 8), field.bit_offset % 8);
            let field_align = match is_packed {
                true => 1,
                false => self.alignments.of(field.ty).unwrap_or(1).max(1),
            };
            if rest != 0 || at < parts.end {
                return Err(overlap);
            }
            parts.pad_to(at, field_align);
            let name = parts.names.unique(name);
            let _ = writeln!(parts.fields, "    pub {name}: {expression},");
            let _ = writeln!(
                parts.asserts,
                "    assert!(core::mem::offset_of!({}, {name}) == {at});",
                of.name
            );
            let size = self.btf.size_of(field.ty).ok_or(overlap)?;
            parts.end = at + u64::from(size);
        }
        parts.close(None);
        if let RustSize::Exact(size) = of.size {
            match of.is_union {
                true if of
                    .fields
                    .iter()
                    .all(|field| self.btf.size_of(field.ty) != Some(size)) =>
                {
                    let _ = writeln!(parts.fields, "    pub _size: [u8; {size}],");
                }
                true => {}
                false if parts.end > size.into() => return Err(overlap),
                false => parts.pad_to(size.into(), align),
            }
        }
        Ok(parts.text(of, is_packed))
    }

    /// True if the fields are not all aligned, and the alignment in bytes.
    fn alignment(&mut self, of: &Layout<'_>) -> (bool, u32) {
        let mut largest = 1;
        let mut is_packed = false;
        for field in of.fields {
            let align = self.alignments.of(field.ty).unwrap_or(1).max(1);
            largest = largest.max(align);
            is_packed |= field.bits == 0 && !field.bit_offset.is_multiple_of(8 * align);
        }
        if let RustSize::Exact(size) = of.size {
            is_packed |= !size.is_multiple_of(largest);
        }
        (is_packed, if is_packed { 1 } else { largest })
    }

    fn is_signed(&self, id: TypeId) -> bool {
        let base = self.btf.skip_modifiers(id).and_then(|id| self.btf.get(id));
        match base.map(|ty| ty.shape()) {
            Some(Shape::Int(int)) => int.encoding.is_signed(),
            Some(Shape::Enum(of)) => of.signed,
            _ => false,
        }
    }
}

impl Parts {
    /// Pads so that the next field of this alignment starts at `at`.
    fn pad_to(&mut self, at: u64, align: u32) {
        if self.end.next_multiple_of(align.into()) != at {
            let name = self.names.unique(&format!("_pad{}", self.paddings));
            self.paddings += 1;
            let _ = writeln!(self.fields, "    pub {name}: [u8; {}],", at - self.end);
        }
    }

    /// Opens or extends the storage of bit fields; `None` if it overlaps another field.
    fn bits(&mut self, start: u64, end: u64) -> Option<()> {
        if let Some(open) = &mut self.open {
            if start < open.end {
                return None;
            }
            if start / 8 <= open.end.div_ceil(8) {
                open.end = end;
                return Some(());
            }
        }
        self.close(None);
        if start / 8 < self.end {
            return None;
        }
        self.pad_to(start / 8, 1);
        self.end = start / 8;
        let name = self.names.unique(&format!("_bits{}", start / 8));
        self.open = Some(Bits {
            name,
            start: start / 8,
            end,
        });
        Some(())
    }

    /// Ends the storage of bit fields.
    fn close(&mut self, only: Option<&str>) {
        let Some(open) = self.open.take() else {
            return;
        };
        self.end = open.end.div_ceil(8);
        if let Some(field) = only {
            let _ = writeln!(
                self.fields,
                "    /// Bits 0 to {} are `{field}`.",
                open.end - 1
            );
        }
        let bytes = self.end - open.start;
        let _ = writeln!(self.fields, "    pub {}: [u8; {bytes}],", open.name);
    }

    fn accessors(&mut self, field: &RustField<'_>, name: &str, ty: &str, is_signed: bool) {
        let Some(open) = &self.open else {
            return;
        };
        let (storage, width) = (&open.name, field.bits);
        let at = u64::from(field.bit_offset) - 8 * open.start;
        let getter = self.method_names.unique(name);
        let setter = self.method_names.unique(&format!("set_{name}"));
        let mut value = format!("bits(&self.{storage}, {at}, {width})");
        if is_signed && width < 64 {
            let rest = 64 - width;
            value = format!("(({value} << {rest}) as i64 >> {rest})");
        }
        let _ = write!(
            self.methods,
            "    pub fn {getter}(&self) -> {ty} {{
        {value} as {ty}
    }}

    pub fn {setter}(&mut self, value: {ty}) {{
        set_bits(&mut self.{storage}, {at}, {width}, value as u64)
    }}

"
        );
    }

    fn text(self, of: &Layout<'_>, is_packed: bool) -> String {
        let name = of.name;
        let packed = if is_packed { ", packed" } else { "" };
        let word = if of.is_union { "union" } else { "struct" };
        let mut fields = self.fields;
        // A union has at least one field.
        if of.is_union && fields.is_empty() {
            fields.push_str("    pub _size: [u8; 0],\n");
        }
        let mut text = format!(
            "\n#[repr(C{packed})]\n#[derive(Clone, Copy)]\npub {word} {name} {{\n{fields}}}\n"
        );
        if !self.methods.is_empty() {
            let methods = self.methods.trim_end();
            let _ = writeln!(text, "\nimpl {name} {{\n{methods}\n}}");
        }
        let (sign, size) = match of.size {
            RustSize::Exact(size) => ("==", size),
            RustSize::AtLeast(size) => (">=", size),
        };
        let _ = write!(
            text,
            "\nconst _: () = {{\n    assert!(core::mem::size_of::<{name}>() {sign} {size});\n{}}};\n",
            self.asserts
        );
        text
    }
}
