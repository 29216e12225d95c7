//! Programs written as text in tests.

use std::sync::Arc;

use isa::ebpf::{RawInsn, assemble, encode};
use program::{MapDef, MapParams, Program};
use spec::maps::MapKind;
use spec::programs::ProgramType;

/// Slots of a program's text.
///
/// # Errors
/// Message of the assembler.
pub fn assembled(text: &str) -> Result<Vec<RawInsn>, String> {
    let insns = assemble(text).map_err(|error| error.to_string())?;
    encode(&insns).map_err(|error| format!("{error:?}"))
}

/// A program whose map 0 is an array of four entries of 48 bytes.
///
/// # Errors
/// Reason why the instructions are no program of the type.
pub fn program_with_array(kind: ProgramType, insns: &[RawInsn]) -> Result<Program, String> {
    let params = MapParams {
        map_type: MapKind::Array.number(),
        key_size: 4,
        value_size: 48,
        max_entries: 4,
        ..MapParams::default()
    };
    Program::builder(kind, insns.to_vec())
        .maps(vec![Arc::new(MapDef::new("", params))])
        .license("Dual MIT/GPL")
        .build()
        .map_err(|error| error.to_string())
}
