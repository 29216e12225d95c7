//! C declarators. C writes types inside out, pointers to the left, arrays and parameters
//! to the right, so the chain of types is pushed on a stack, outermost first, and written
//! from its top.

use super::{CDump, DumpError};
use crate::{Kind, Proto, Shape, TypeId};

impl CDump<'_> {
    /// Writes the declaration of `name`, which may be empty, at this level of
    /// indentation.
    pub(super) fn declaration(
        &mut self,
        id: TypeId,
        name: &[u8],
        level: usize,
    ) -> Result<(), DumpError> {
        self.enter(id)?;
        let base = self.stack.len();
        let mut id = id;
        loop {
            self.spend()?;
            self.stack.push(id);
            id = match self.btf.at(id).shape() {
                Shape::Ptr(to)
                | Shape::Volatile(to)
                | Shape::Const(to)
                | Shape::Restrict(to)
                | Shape::TypeTag(to) => to,
                Shape::Proto(proto) => proto.returns,
                Shape::Array(array) => array.element,
                _ => break,
            };
        }
        let done = self.chain(base, name, level);
        self.stack.truncate(base);
        self.leave();
        done
    }

    /// Kind of the type on top of the stack, above `base`.
    fn next(&self, base: usize) -> Option<Kind> {
        let above = self.stack.get(base..)?;
        above.last().map(|&id| self.btf.at(id).kind())
    }

    fn chain(&mut self, base: usize, name: &[u8], level: usize) -> Result<(), DumpError> {
        // No space between a pointer and the name, nor before a name alone in
        // parentheses.
        let mut after_pointer = true;
        while self.stack.len() > base {
            let Some(id) = self.stack.pop() else {
                break;
            };
            let ty = self.btf.at(id);
            let is_anonymous = ty.name_offset().0 == 0;
            match ty.shape() {
                Shape::Void => {
                    self.qualifiers(base);
                    self.put("void");
                }
                Shape::Int(_) | Shape::Float(_) => {
                    self.qualifiers(base);
                    self.put(ty.name().as_bytes());
                }
                Shape::Struct(_) | Shape::Union(_) => {
                    self.qualifiers(base);
                    if is_anonymous {
                        self.composite(id, level)?;
                    } else {
                        self.forward(id);
                    }
                }
                Shape::Enum(of) => {
                    self.qualifiers(base);
                    if is_anonymous {
                        self.enumeration(id, of, level);
                    } else {
                        self.put("enum ");
                        let name = self.names.tag(id);
                        self.put(name);
                    }
                }
                Shape::Fwd(_) => {
                    self.qualifiers(base);
                    self.forward(id);
                }
                Shape::Typedef(_) => {
                    self.qualifiers(base);
                    let name = self.names.identifier(id);
                    self.put(name);
                }
                Shape::Ptr(_) => self.put(if after_pointer { "*" } else { " *" }),
                Shape::Volatile(_) => self.put(" volatile"),
                Shape::Const(_) => self.put(" const"),
                Shape::Restrict(_) => self.put(" restrict"),
                Shape::TypeTag(_) if !self.has_type_tags => {
                    self.qualifiers(base);
                    continue;
                }
                Shape::TypeTag(_) => {
                    self.qualifiers(base);
                    let (before, after) = match ty.flag() {
                        true => (" __attribute__((", "))"),
                        false => (" __attribute__((btf_type_tag(\"", "\")))"),
                    };
                    self.put(before);
                    self.put(ty.name().as_bytes());
                    self.put(after);
                }
                Shape::Array(array) => {
                    return self.array(base, array.count, name, level, after_pointer);
                }
                Shape::Proto(proto) => {
                    return self.function(base, proto, name, level, after_pointer);
                }
                Shape::Func(_) | Shape::Var(_) | Shape::Datasec(_) | Shape::DeclTag(_) => {
                    return Ok(());
                }
            }
            after_pointer = ty.kind() == Kind::Ptr;
        }
        self.name(name, after_pointer);
        Ok(())
    }

    fn name(&mut self, name: &[u8], after_pointer: bool) {
        if !name.is_empty() && !after_pointer {
            self.put(" ");
        }
        self.put(name);
    }

    /// Writes the qualifiers of a type that is no pointer.
    fn qualifiers(&mut self, base: usize) {
        while let Some(kind) = self.next(base) {
            self.put(match kind {
                Kind::Volatile => "volatile ",
                Kind::Const => "const ",
                Kind::Restrict => "restrict ",
                _ => return,
            });
            self.stack.pop();
        }
    }

    /// Drops meaningless qualifiers: gcc repeats those of elements for the array, and
    /// marks functions that do not return as volatile.
    fn drop_qualifiers(&mut self, base: usize) {
        while self.next(base).is_some_and(Kind::is_qualifier) {
            self.stack.pop();
        }
    }

    fn array(
        &mut self,
        base: usize,
        count: u32,
        name: &[u8],
        level: usize,
        after_pointer: bool,
    ) -> Result<(), DumpError> {
        self.drop_qualifiers(base);
        match self.next(base) {
            None => self.name(name, after_pointer),
            Some(next) => {
                if !name.is_empty() && !after_pointer {
                    self.put(" ");
                }
                let is_array = next == Kind::Array;
                if !is_array {
                    self.put("(");
                }
                self.rest(base, name, level)?;
                if !is_array {
                    self.put(")");
                }
            }
        }
        self.put(format!("[{count}]"));
        Ok(())
    }

    fn function(
        &mut self,
        base: usize,
        proto: Proto<'_>,
        name: &[u8],
        level: usize,
        after_pointer: bool,
    ) -> Result<(), DumpError> {
        self.drop_qualifiers(base);
        if self.next(base).is_some() {
            self.put(" (");
            self.rest(base, name, level)?;
            self.put(")");
        } else {
            self.name(name, after_pointer);
        }
        self.put("(");
        let count = proto.params().len();
        for (index, param) in proto.params().enumerate() {
            if index > 0 {
                self.put(", ");
            }
            if index == count - 1 && param.ty.is_void() {
                self.put(if count == 1 { "void" } else { "..." });
            } else {
                let name = self.btf.string(param.name).as_bytes();
                self.declaration(param.ty, name, level)?;
            }
        }
        if count == 0 {
            self.put("void");
        }
        self.put(")");
        Ok(())
    }

    /// Writes the rest of the stack.
    fn rest(&mut self, base: usize, name: &[u8], level: usize) -> Result<(), DumpError> {
        self.enter(TypeId::VOID)?;
        let done = self.chain(base, name, level);
        self.leave();
        done
    }
}
