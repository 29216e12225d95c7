//! A C header, also for C++.

use std::collections::HashSet;
use std::fmt::Write;

use btf::{Btf, CDump, DumpError, Kind, Shape, TypeId};
use object::Object;

use super::{BindingsError, BindingsOptions, Contained, Section};

/// Structures of special fields that <linux/bpf.h> defines, too.
const OF_LINUX: &[&str] = &[
    "bpf_spin_lock",
    "bpf_timer",
    "bpf_task_work",
    "bpf_wq",
    "bpf_dynptr",
    "bpf_list_head",
    "bpf_list_node",
    "bpf_rb_root",
    "bpf_rb_node",
    "bpf_refcount",
];

/// C header of an object.
///
/// # Errors
/// An object without BTF, types that C can't express, variables that overlap.
pub fn header(object: &Object<'_>, options: &BindingsOptions) -> Result<String, BindingsError> {
    let contained = Contained::of(object)?;
    let prefix = identifier(match &*options.name {
        "" => object.name(),
        name => name,
    });
    let guard = format!("{}_BPF_H", prefix.to_uppercase());
    let mut header = Header {
        dump: CDump::new(contained.btf).without_type_tags(),
        out: String::new(),
        prefix,
    };
    let _ = write!(
        header.out,
        "/* Types, maps and global variables of {}. Written by beebox gen header. */
#ifndef {guard}
#define {guard}

#include <assert.h>
#include <stddef.h>
",
        options.file.replace("*/", "* /")
    );
    if !options.omit_types {
        header.types(&contained, &options.types)?;
    }
    header.maps(&contained)?;
    header.programs(&contained);
    for section in &contained.sections {
        header.section(&contained, section)?;
    }
    let _ = write!(header.out, "\n#endif /* {guard} */\n");
    Ok(header.out)
}

struct Header<'b> {
    dump: CDump<'b>,
    out: String,
    prefix: String,
}

impl Header<'_> {
    /// Definitions of the types of maps and variables.
    fn types(&mut self, of: &Contained<'_>, more: &[TypeId]) -> Result<(), BindingsError> {
        let of_maps = of.maps.iter().flat_map(|map| [map.key, map.value]);
        let of_variables = of.sections.iter().flat_map(|section| &section.variables);
        let roots: Vec<TypeId> = (more.iter().copied())
            .chain(of_maps.flatten())
            .chain(of_variables.map(|variable| variable.ty))
            .collect();
        if roots.is_empty() {
            return Ok(());
        }
        self.out.push('\n');
        for name in OF_LINUX {
            if let Some(ty) = of.btf.find(Kind::Struct, name) {
                self.guarded(of.btf, ty.id()).map_err(of.failed(ty.id()))?;
            }
        }
        for root in roots {
            for named in named_types(of.btf, root) {
                self.add(named).map_err(of.failed(root))?;
            }
        }
        self.out.truncate(self.out.trim_end().len());
        self.out.push('\n');
        Ok(())
    }

    /// Writes a type and its dependencies.
    fn add(&mut self, id: TypeId) -> Result<(), DumpError> {
        let start = self.dump.as_bytes().len();
        self.dump.add(id)?;
        let text = &self.dump.as_bytes()[start..];
        self.out.push_str(&String::from_utf8_lossy(text));
        Ok(())
    }

    /// Writes a structure that <linux/bpf.h> defines if that is not included before.
    fn guarded(&mut self, btf: &Btf<'_>, id: TypeId) -> Result<(), DumpError> {
        let members = btf.at(id).as_composite().into_iter();
        for member in members.flat_map(|of| of.members()) {
            for named in named_types(btf, member.ty) {
                self.add(named)?;
            }
        }
        self.out.push_str("#ifndef __LINUX_BPF_H__\n");
        self.add(id)?;
        self.out.truncate(self.out.trim_end().len());
        self.out.push_str("\n#endif\n\n");
        Ok(())
    }

    /// Text of a declaration, without the semicolon.
    fn declared(&mut self, id: TypeId, name: &str) -> Result<String, DumpError> {
        let start = self.dump.as_bytes().len();
        self.dump.declare(id, name)?;
        let text = &self.dump.as_bytes()[start..];
        Ok(String::from_utf8_lossy(text).into_owned())
    }

    fn maps(&mut self, of: &Contained<'_>) -> Result<(), BindingsError> {
        if !of.maps.is_empty() {
            self.out
                .push_str("\n/* Maps: names, types of keys and values. */\n");
        }
        for entry in &of.maps {
            let name = entry.map.name();
            let ident = format!("{}__map__{}", self.prefix, identifier(name));
            let _ = writeln!(self.out, "#define {ident} {}", literal(name));
            let params = entry.map.params();
            for (part, ty, size) in [
                ("key", entry.key, params.key_size),
                ("value", entry.value, params.value_size),
            ] {
                let Some(ty) = ty else {
                    continue;
                };
                let ident = format!("{ident}__{part}");
                let text = self.declared(ty, &ident).map_err(of.failed(ty))?;
                let _ = writeln!(self.out, "typedef {text};");
                // The value of a map of maps has another size than its type.
                if of.btf.size_of(ty) == Some(size) {
                    let _ = writeln!(
                        self.out,
                        "static_assert(sizeof({ident}) == {size}, \"size of {ident}\");"
                    );
                }
            }
        }
        Ok(())
    }

    fn programs(&mut self, of: &Contained<'_>) {
        if !of.programs.is_empty() {
            self.out.push_str("\n/* Programs. */\n");
        }
        for name in &of.programs {
            let ident = identifier(name);
            let _ = writeln!(
                self.out,
                "#define {}__prog__{ident} {}",
                self.prefix,
                literal(name)
            );
        }
    }

    /// The variables of a section as a structure.
    fn section(&mut self, of: &Contained<'_>, section: &Section<'_>) -> Result<(), BindingsError> {
        let align_of = |ty| of.btf.align_of(ty).unwrap_or(1).max(1);
        let is_packed = (section.variables.iter())
            .any(|variable| !variable.offset.is_multiple_of(align_of(variable.ty)));
        let ident = format!("{}__{}", self.prefix, identifier(&section.ident));
        let (map, size) = (literal(section.map.name()), section.size);
        let _ = write!(
            self.out,
            "\n/* Global variables: the value of the map, {size} bytes. */
#define {ident}__map {map}
#define {ident}__size {size}
struct {ident} {{
"
        );
        let mut end = 0;
        let mut asserts = String::new();
        for (index, variable) in section.variables.iter().enumerate() {
            let (offset, ty) = (variable.offset, variable.ty);
            let failed = of.failed(ty);
            let name = identifier(&variable.name);
            let overlap = || BindingsError::Overlap {
                section: section.name.clone(),
                variable: variable.name.clone(),
            };
            let gap = offset.checked_sub(end).ok_or_else(overlap)?;
            let align = if is_packed { 1 } else { align_of(ty) };
            if end.checked_next_multiple_of(align) != Some(offset) {
                let _ = writeln!(self.out, "\tunsigned char __pad{index}[{gap}];");
            }
            let text = self.declared(ty, &name).map_err(&failed)?;
            let lines = text.replace('\n', "\n\t");
            let _ = writeln!(self.out, "\t{lines};");
            let _ = writeln!(
                asserts,
                "static_assert(offsetof(struct {ident}, {name}) == {offset}, \"offset of {name}\");"
            );
            let size = of.btf.size_of(ty).ok_or(DumpError::NoLayout { id: ty });
            let size = size.map_err(&failed)?;
            end = offset.checked_add(size).ok_or_else(overlap)?;
        }
        let packed = if is_packed {
            " __attribute__((packed))"
        } else {
            ""
        };
        let _ = write!(self.out, "}}{packed};\n{asserts}");
        Ok(())
    }
}

/// Named types whose definition a declaration with this type requires. Of structures
/// behind pointers the name suffices.
fn named_types(btf: &Btf<'_>, id: TypeId) -> Vec<TypeId> {
    let mut found = Vec::new();
    let mut seen = HashSet::new();
    let mut open = vec![(id, false)];
    while let Some((id, by_pointer)) = open.pop() {
        let Some(ty) = btf.get(id).filter(|_| seen.insert((id, by_pointer))) else {
            continue;
        };
        let is_named = !ty.name().is_empty();
        match ty.shape() {
            Shape::Ptr(to) => open.push((to, true)),
            Shape::Volatile(to) | Shape::Const(to) | Shape::Restrict(to) | Shape::TypeTag(to) => {
                open.push((to, by_pointer));
            }
            Shape::Array(array) => open.push((array.element, false)),
            Shape::Proto(proto) => {
                let params = proto.params().map(|param| (param.ty, by_pointer));
                open.extend(params.rev());
                open.push((proto.returns, by_pointer));
            }
            Shape::Struct(_) | Shape::Union(_) if is_named && by_pointer => {}
            Shape::Struct(composite) | Shape::Union(composite) if !is_named => {
                let members = composite.members().map(|member| (member.ty, false));
                open.extend(members.rev());
            }
            Shape::Struct(_) | Shape::Union(_) | Shape::Typedef(_) => found.push(id),
            Shape::Enum(_) if is_named => found.push(id),
            _ => {}
        }
    }
    found
}

/// C identifier for a name.
fn identifier(name: &str) -> String {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut text: String = name
        .chars()
        .map(|c| if is_part(c) { c } else { '_' })
        .collect();
    if text.is_empty() || text.starts_with(|c: char| c.is_ascii_digit()) {
        text.insert(0, '_');
    }
    text
}

/// C string literal.
fn literal(text: &str) -> String {
    let mut literal = String::from('"');
    for byte in text.bytes() {
        match byte {
            b' ' | b'!' | b'#'..=b'>' | b'@'..=b'[' | b']'..=b'~' => literal.push(byte.into()),
            byte => {
                let _ = write!(literal, "\\{byte:03o}");
            }
        }
    }
    literal.push('"');
    literal
}
