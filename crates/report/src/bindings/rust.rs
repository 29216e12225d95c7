//! Rust bindings: modules `types`, `maps`, `programs` and `globals`.

use std::fmt::Write;

use btf::{DumpError, RustDump, RustField, RustSize};
use object::Object;

use super::{BindingsError, BindingsOptions, Contained, Section, pods};

/// Rust bindings of an object: items of a module, without inner attributes.
///
/// # Errors
/// An object without BTF, types without a layout, variables that overlap.
pub fn rust_bindings(
    object: &Object<'_>,
    options: &BindingsOptions,
) -> Result<String, BindingsError> {
    let contained = Contained::of(object)?;
    let mut types = RustDump::new(contained.btf);
    for &id in &options.types {
        types
            .refer(id, "anonymous", "")
            .map_err(contained.failed(id))?;
    }
    let maps = maps(&contained, &mut types)?;
    let mut globals = String::new();
    for section in &contained.sections {
        globals.push_str(&variables(&contained, section, &mut types)?);
    }
    let mut text = format!(
        "// Types, maps and global variables of {}. Written by beebox gen rust.\n",
        options.file.replace(['\n', '\r'], " ")
    );
    let mut types = types.into_text();
    if options.pod {
        types = pods::with_calls(&types);
    }
    let parts = [
        (
            "Types of keys, values and variables. Every bit pattern is a value of each.",
            types,
        ),
        (
            "Maps by name, with the types of their keys and values.",
            maps,
        ),
        ("Names of programs.", programs(&contained)),
        (
            "Global variables by section: the start of the value of the map `MAP`.",
            globals,
        ),
    ];
    for ((about, items), name) in parts.iter().zip(["types", "maps", "programs", "globals"]) {
        if !items.is_empty() {
            let items = indented(items.trim());
            let _ = write!(
                text,
                "
/// {about}
#[allow(dead_code, non_camel_case_types, non_snake_case, non_upper_case_globals)]
#[rustfmt::skip]
pub mod {name} {{
{items}}}
"
            );
        }
    }
    Ok(text)
}

fn indented(items: &str) -> String {
    let mut text = String::new();
    for line in items.lines() {
        let indent = if line.is_empty() { "" } else { "    " };
        let _ = writeln!(text, "{indent}{line}");
    }
    text
}

fn maps(of: &Contained<'_>, types: &mut RustDump<'_>) -> Result<String, BindingsError> {
    let mut text = String::new();
    for entry in &of.maps {
        let name = entry.map.name();
        let params = entry.map.params();
        let ident = RustDump::identifier(name);
        let _ = write!(
            text,
            "\npub mod {ident} {{\n    pub const NAME: &str = {name:?};\n"
        );
        for (part, ty, size) in [
            ("Key", entry.key, params.key_size),
            ("Value", entry.value, params.value_size),
        ] {
            let Some(ty) = ty else {
                continue;
            };
            let failed = of.failed(ty);
            // Maps of maps state the type of the inner map.
            if of.btf.size_of(ty) != Some(size) {
                continue;
            }
            let anonymous = format!("{name}_{}", part.to_lowercase());
            let refer = types.refer(ty, &anonymous, "super::super::types::");
            let _ = writeln!(text, "    pub type {part} = {};", refer.map_err(failed)?);
            let _ = writeln!(
                text,
                "    const _: () = assert!(core::mem::size_of::<{part}>() == {size});"
            );
        }
        text.push_str("}\n");
    }
    Ok(text)
}

fn programs(of: &Contained<'_>) -> String {
    let mut text = String::new();
    for name in &of.programs {
        let ident = RustDump::identifier(name);
        let _ = writeln!(text, "pub const {ident}: &str = {name:?};");
    }
    text
}

fn variables(
    of: &Contained<'_>,
    section: &Section<'_>,
    types: &mut RustDump<'_>,
) -> Result<String, BindingsError> {
    let ident = RustDump::identifier(&section.ident);
    let fields = section.variables.iter().map(|variable| {
        let bit_offset = variable.offset.checked_mul(8);
        let overlap = || BindingsError::Overlap {
            section: section.name.clone(),
            variable: variable.name.clone(),
        };
        Ok(RustField {
            name: &variable.name,
            ty: variable.ty,
            bit_offset: bit_offset.ok_or_else(overlap)?,
            bits: 0,
        })
    });
    let fields: Vec<RustField<'_>> = fields.collect::<Result<_, BindingsError>>()?;
    let size = section.variables.iter().filter_map(|variable| {
        let size = of.btf.size_of(variable.ty)?;
        variable.offset.checked_add(size)
    });
    let size = RustSize::AtLeast(size.max().unwrap_or(0));
    let first = section.variables[0].ty;
    let written = types.structure(&ident, &fields, size, "super::types::");
    let failed = |error| match error {
        DumpError::NoLayout { id } if id.is_void() => BindingsError::Overlap {
            section: section.name.clone(),
            variable: "or its type".into(),
        },
        error => of.failed(first)(error),
    };
    let text = written.map_err(failed)?;
    Ok(format!(
        "{text}
impl {ident} {{
    /// Name of the map.
    pub const MAP: &str = {:?};
    /// Size of its value in bytes.
    pub const SIZE: usize = {};
}}
",
        section.map.name(),
        section.size
    ))
}
