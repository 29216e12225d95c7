//! Check of a `.BTF.ext` against its `.BTF`.

use std::fmt;

use super::{BtfExt, TableKind};
use crate::{Btf, Kind, StrOffset, TypeId};

/// Size of an instruction slot in bytes.
const SLOT: u32 = 8;

/// Mismatch between `.BTF.ext` and `.BTF`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ExtFault {
    /// A name is beyond the strings.
    NoString {
        /// Table.
        table: TableKind,
        /// Offset of the name.
        offset: StrOffset,
    },
    /// A type is missing.
    NoType {
        /// Table.
        table: TableKind,
        /// Type id.
        id: TypeId,
    },
    /// The type of a func_info record is no function.
    NoFunction {
        /// Type id.
        id: TypeId,
    },
    /// An offset is not that of an instruction.
    InsideInsn {
        /// Table.
        table: TableKind,
        /// Offset in bytes.
        offset: u32,
    },
    /// func_info or line_info records of a section are not ascending.
    Order {
        /// Table.
        table: TableKind,
        /// Offset in bytes that is too small.
        offset: u32,
    },
}

impl fmt::Display for ExtFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ExtFault::NoString { table, offset } => {
                write!(
                    f,
                    "{}: name offset {} is beyond the strings",
                    table.name(),
                    offset.0
                )
            }
            ExtFault::NoType { table, id } => write!(f, "{}: type {id} is missing", table.name()),
            ExtFault::NoFunction { id } => write!(f, "func_info: type {id} is no function"),
            ExtFault::InsideInsn { table, offset } => {
                write!(
                    f,
                    "{}: no instruction starts at byte {offset}",
                    table.name()
                )
            }
            ExtFault::Order { table, offset } => {
                write!(
                    f,
                    "{}: byte {offset} is not after the record before it",
                    table.name()
                )
            }
        }
    }
}

impl std::error::Error for ExtFault {}

impl BtfExt<'_> {
    /// Checks every record against the types.
    pub fn check(&self, btf: &Btf<'_>) -> Result<(), ExtFault> {
        let strings = btf.strings_end();
        let string = |table, offset: StrOffset| match (offset.0 as usize) < strings {
            true => Ok(()),
            false => Err(ExtFault::NoString { table, offset }),
        };
        let ty = |table, id: TypeId| match btf.get(id) {
            Some(ty) => Ok(ty),
            None => Err(ExtFault::NoType { table, id }),
        };

        let table = TableKind::FuncInfo;
        for group in self.functions() {
            string(table, group.section)?;
            let mut next = 0;
            for info in group.records() {
                next = follow(table, info.offset, next)?;
                if ty(table, info.func)?.kind() != Kind::Func {
                    return Err(ExtFault::NoFunction { id: info.func });
                }
            }
        }
        let table = TableKind::LineInfo;
        for group in self.lines() {
            string(table, group.section)?;
            let mut next = 0;
            for info in group.records() {
                next = follow(table, info.offset, next)?;
                string(table, info.file)?;
                string(table, info.text)?;
            }
        }
        let table = TableKind::CoreRelo;
        for group in self.relocations() {
            string(table, group.section)?;
            for info in group.records() {
                follow(table, info.offset, 0)?;
                ty(table, info.spec.ty)?;
                string(table, info.spec.access)?;
            }
        }
        Ok(())
    }
}

/// Minimum offset of the next record after this one.
fn follow(table: TableKind, offset: u32, least: u32) -> Result<u32, ExtFault> {
    if !offset.is_multiple_of(SLOT) {
        return Err(ExtFault::InsideInsn { table, offset });
    }
    if offset < least {
        return Err(ExtFault::Order { table, offset });
    }
    Ok(offset.saturating_add(SLOT))
}
