//! Definitions and forward declarations.

use super::padding::Gap;
use super::{CDump, DumpError, Progress};
use crate::{Enum, FwdKind, Kind, Shape, TypeId};

impl CDump<'_> {
    /// Writes the definition of a type; inside the structure or typedef `inside`, the
    /// definitions that its members need. `inside` is `void` at the top level.
    pub(super) fn emit(&mut self, id: TypeId, inside: TypeId) -> Result<(), DumpError> {
        self.enter(id)?;
        let done = self.emit_inside(id, inside);
        self.leave();
        done
    }

    fn emit_inside(&mut self, id: TypeId, inside: TypeId) -> Result<(), DumpError> {
        let ty = self.btf.at(id);
        let is_top = inside.is_void();
        let is_named = ty.name_offset().0 != 0;
        match self.state(id).emit {
            Progress::Done => return Ok(()),
            Progress::Begun => return self.emit_again(id, inside),
            Progress::No => {}
        }
        match ty.shape() {
            Shape::Int(_) => {
                self.alias_of_vector(id);
                self.state(id).emit = Progress::Done;
            }
            Shape::Enum(of) => {
                if is_top {
                    self.enumeration(id, of, 0);
                    self.put(";\n\n");
                }
                self.state(id).emit = Progress::Done;
            }
            Shape::Ptr(to)
            | Shape::Volatile(to)
            | Shape::Const(to)
            | Shape::Restrict(to)
            | Shape::TypeTag(to) => self.emit(to, inside)?,
            Shape::Array(array) => self.emit(array.element, inside)?,
            Shape::Fwd(_) => {
                self.forward(id);
                self.put(";\n\n");
                self.state(id).emit = Progress::Done;
            }
            Shape::Typedef(to) => {
                self.state(id).emit = Progress::Begun;
                self.emit(to, id)?;
                if !self.state(id).is_declared {
                    self.typedef(id, to)?;
                }
                self.state(id).emit = Progress::Done;
            }
            Shape::Struct(composite) | Shape::Union(composite) => {
                self.state(id).emit = Progress::Begun;
                if is_top || !is_named {
                    let inside = if is_named { id } else { inside };
                    for member in composite.members() {
                        self.emit(member.ty, inside)?;
                    }
                } else if !self.state(id).is_declared && id != inside {
                    self.forward_declaration(id);
                }
                if is_top {
                    self.composite(id, 0)?;
                    self.put(";\n\n");
                    self.state(id).emit = Progress::Done;
                } else {
                    self.state(id).emit = Progress::No;
                }
            }
            Shape::Proto(proto) => {
                self.emit(proto.returns, inside)?;
                for param in proto.params() {
                    self.emit(param.ty, inside)?;
                }
            }
            Shape::Void
            | Shape::Float(_)
            | Shape::Func(_)
            | Shape::Var(_)
            | Shape::Datasec(_)
            | Shape::DeclTag(_) => {}
        }
        Ok(())
    }

    /// Handles a type that is met again during its definition: writes a forward
    /// declaration.
    fn emit_again(&mut self, id: TypeId, inside: TypeId) -> Result<(), DumpError> {
        let ty = self.btf.at(id);
        if self.state(id).is_declared {
            return Ok(());
        }
        match ty.shape() {
            Shape::Struct(_) | Shape::Union(_) if id != inside && ty.name_offset().0 != 0 => {
                self.forward_declaration(id);
            }
            Shape::Typedef(to) => {
                self.typedef(id, to)?;
                self.state(id).is_declared = true;
            }
            _ => {}
        }
        Ok(())
    }

    fn forward_declaration(&mut self, id: TypeId) {
        self.forward(id);
        self.put(";\n\n");
        self.state(id).is_declared = true;
    }

    /// Writes `struct name`, without the semicolon.
    pub(super) fn forward(&mut self, id: TypeId) {
        let ty = self.btf.at(id);
        let is_forward = matches!(ty.shape(), Shape::Fwd(_));
        let word = match ty.shape() {
            Shape::Union(_) | Shape::Fwd(FwdKind::Union) => "union",
            _ => "struct",
        };
        self.put(word);
        if is_forward || ty.name_offset().0 != 0 {
            self.put(" ");
        }
        let name = self.names.tag(id);
        self.put(name);
    }

    /// Writes typedefs of Arm's vector types that gcc defines itself.
    fn alias_of_vector(&mut self, id: TypeId) {
        const ALIASES: &[(&[u8], &str)] = &[
            (b"__Poly8_t", "unsigned char"),
            (b"__Poly16_t", "unsigned short"),
            (b"__Poly64_t", "unsigned long long"),
            (b"__Poly128_t", "unsigned __int128"),
        ];
        let name = self.names.tag(id);
        if let Some((_, standard)) = ALIASES.iter().find(|(known, _)| *known == name) {
            self.put(format!("typedef {standard} "));
            self.put(name);
            self.put(";\n\n");
        }
    }

    fn typedef(&mut self, id: TypeId, to: TypeId) -> Result<(), DumpError> {
        // Every compiler defines it.
        if self.btf.at(id).name() == "__builtin_va_list" {
            return Ok(());
        }
        let name = self.names.identifier(id);
        // Old versions of gcc emit it as void.
        if to.is_void() && name == b"__gnuc_va_list" {
            self.put("typedef __builtin_va_list __gnuc_va_list");
        } else {
            self.put("typedef ");
            self.declaration(to, &name, 0)?;
        }
        self.put(";\n\n");
        Ok(())
    }

    /// Writes `struct name { ... }`, without the semicolon.
    pub(super) fn composite(&mut self, id: TypeId, level: usize) -> Result<(), DumpError> {
        let ty = self.btf.at(id);
        let Some(composite) = ty.as_composite() else {
            return Ok(());
        };
        let is_struct = ty.kind() == Kind::Struct;
        let is_packed = is_struct && self.alignments.is_packed(id);
        let align = u64::from(self.alignments.of(id).unwrap_or(0));
        self.forward(id);
        self.put(" {");
        let mut end = 0u64;
        let mut after_bits = false;
        for member in composite.members() {
            self.spend()?;
            let start = u64::from(member.bit_offset);
            let align = match is_packed {
                true => 1,
                false => self.alignments.of(member.ty).unwrap_or(0),
            };
            let gap = Gap {
                from: end,
                to: start,
                align: align.into(),
                between_bits: after_bits && member.bits != 0,
            };
            self.fill(&gap, level + 1)?;
            self.new_line(level + 1);
            let name = self.btf.string(member.name).as_bytes();
            self.declaration(member.ty, name, level + 1)?;
            after_bits = member.bits != 0;
            if after_bits {
                self.put(format!(": {}", member.bits));
                end = start + u64::from(member.bits);
            } else {
                let size = self.btf.size_of(member.ty).unwrap_or(0);
                end = start + 8 * u64::from(size);
            }
            self.put(";");
        }
        if is_struct {
            let gap = Gap {
                from: end,
                to: 8 * u64::from(composite.size),
                align,
                between_bits: false,
            };
            self.fill(&gap, level + 1)?;
        }
        if ty.count() > 0 || composite.size > 0 {
            self.new_line(level);
        }
        self.put("}");
        if is_packed {
            self.put(" __attribute__((packed))");
        }
        Ok(())
    }

    /// Writes `enum name { ... }`, without the semicolon.
    pub(super) fn enumeration(&mut self, id: TypeId, of: Enum<'_>, level: usize) {
        self.put("enum");
        if self.btf.at(id).name_offset().0 != 0 {
            self.put(" ");
        }
        let name = self.names.tag(id);
        self.put(name);
        if of.values().len() == 0 {
            return;
        }
        self.put(" {");
        for value in of.values() {
            self.new_line(level + 1);
            let name = self.names.value(self.btf.string(value.name));
            self.put(name);
            let suffix = match (of.wide, of.signed) {
                (false, _) => "",
                (true, true) => "LL",
                (true, false) => "ULL",
            };
            if of.signed {
                self.put(format!(" = {}{suffix},", value.value as i64));
            } else {
                self.put(format!(" = {}{suffix},", value.value));
            }
        }
        self.new_line(level);
        self.put("}");
        let needs_64_bits = of.values().any(|value| of.wide && value.value >> 32 != 0);
        if of.size == 1 {
            self.put(" __attribute__((mode(byte)))");
        } else if of.size == 8 && self.alignments.pointer == 8 && !needs_64_bits {
            self.put(" __attribute__((mode(word)))");
        }
    }
}
