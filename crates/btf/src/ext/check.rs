//! Does a `.BTF.ext` fit the `.BTF` beside it?

use super::{BtfExt, TableKind};
use crate::{Btf, Kind, StrOffset, TypeId};

/// Bytes of an instruction slot.
const SLOT: u32 = 8;

/// What does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ExtFault {
    /// A name starts beyond the strings.
    NoString {
        /// In which table.
        table: TableKind,
        /// Where the name should start.
        offset: StrOffset,
    },
    /// A type does not exist.
    NoType {
        /// In which table.
        table: TableKind,
        /// Its number.
        id: TypeId,
    },
    /// A function's type is something else.
    NoFunction {
        /// Its number.
        id: TypeId,
    },
    /// An offset is not that of an instruction.
    InsideInsn {
        /// In which table.
        table: TableKind,
        /// The offset, in bytes.
        offset: u32,
    },
    /// Functions or lines of a section do not follow each other.
    Order {
        /// In which table.
        table: TableKind,
        /// The offset that is too small, in bytes.
        offset: u32,
    },
}

impl BtfExt<'_> {
    /// Checks everything that is said against the types.
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

        let table = TableKind::Functions;
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
        let table = TableKind::Lines;
        for group in self.lines() {
            string(table, group.section)?;
            let mut next = 0;
            for info in group.records() {
                next = follow(table, info.offset, next)?;
                string(table, info.file)?;
                string(table, info.text)?;
            }
        }
        let table = TableKind::Relocations;
        for group in self.relocations() {
            string(table, group.section)?;
            for info in group.records() {
                follow(table, info.offset, 0)?;
                ty(table, info.question.ty)?;
                string(table, info.question.access)?;
            }
        }
        Ok(())
    }
}

/// The least offset that may follow this one.
fn follow(table: TableKind, offset: u32, least: u32) -> Result<u32, ExtFault> {
    if !offset.is_multiple_of(SLOT) {
        return Err(ExtFault::InsideInsn { table, offset });
    }
    if offset < least {
        return Err(ExtFault::Order { table, offset });
    }
    Ok(offset.saturating_add(SLOT))
}
