//! `.BTF.ext` in the making.

use super::{BtfExt, CoreQuestion, CoreRelo, FuncInfo, GROUP, HEADER, LineInfo, TableKind};
use crate::wire::{MAGIC, VERSION, word};
use crate::{StrOffset, TypeId};

/// Records, section by section; the sections come in the order in which they
/// were first named.
#[derive(Clone, Debug, Default)]
pub struct ExtBuilder {
    tables: [Vec<(StrOffset, Vec<u32>)>; 3],
}

impl ExtBuilder {
    /// Nothing yet.
    pub fn new() -> ExtBuilder {
        ExtBuilder::default()
    }

    /// Adds the start of a function.
    pub fn function(&mut self, section: StrOffset, info: FuncInfo) {
        self.add(TableKind::Functions, section, &[info.offset, info.func.0]);
    }

    /// Adds a line. Numbers that do not fit are cut.
    pub fn line(&mut self, section: StrOffset, info: LineInfo) {
        let place = info.line << 10 | info.column & 0x3ff;
        let words = [info.offset, info.file.0, info.text.0, place];
        self.add(TableKind::Lines, section, &words);
    }

    /// Adds a relocation.
    pub fn relocation(&mut self, section: StrOffset, relo: CoreRelo) {
        let CoreQuestion { ty, access, kind } = relo.question;
        let words = [relo.offset, ty.0, access.0, kind.0];
        self.add(TableKind::Relocations, section, &words);
    }

    fn add(&mut self, table: TableKind, section: StrOffset, words: &[u32]) {
        let groups = &mut self.tables[table as usize];
        match groups.iter_mut().rfind(|(name, _)| *name == section) {
            Some((_, records)) => records.extend_from_slice(words),
            None => groups.push((section, words.to_vec())),
        }
    }

    /// The blob. Tables without records are left out.
    pub fn finish(&self) -> Vec<u8> {
        let mut out = Vec::new();
        out.extend_from_slice(&MAGIC.to_le_bytes());
        out.extend_from_slice(&[VERSION, 0]);
        out.extend_from_slice(&(HEADER as u32).to_le_bytes());
        let mut body: Vec<u32> = Vec::new();
        for (groups, kind) in self.tables.iter().zip(TableKind::ALL) {
            let start = body.len();
            if !groups.is_empty() {
                body.push(kind.record_size() as u32);
            }
            for (section, records) in groups {
                let count = records.len() * 4 / kind.record_size();
                body.extend([section.0, count as u32]);
                body.extend(records);
            }
            for place in [start, body.len() - start] {
                out.extend_from_slice(&(4 * place as u32).to_le_bytes());
            }
        }
        for word in body {
            out.extend_from_slice(&word.to_le_bytes());
        }
        out
    }
}

impl BtfExt<'_> {
    /// The same bytes, with every name and type exchanged, in the order in which
    /// they stand.
    pub fn mapped(
        &self,
        mut name: impl FnMut(StrOffset) -> StrOffset,
        mut ty: impl FnMut(TypeId) -> TypeId,
    ) -> Vec<u8> {
        let mut out = self.blob.to_vec();
        let mut set = |at: usize, new: u32| out[at..at + 4].copy_from_slice(&new.to_le_bytes());
        for (table, kind) in self.tables.iter().zip(TableKind::ALL) {
            // Which words of a record are names, and which is a type.
            let (names, typed): (&[usize], Option<usize>) = match kind {
                TableKind::Functions => (&[], Some(4)),
                TableKind::Lines => (&[4, 8], None),
                TableKind::Relocations => (&[8], Some(4)),
            };
            let mut at = table.start;
            while at + GROUP <= table.end {
                let count = word(&self.blob, at + 4) as usize;
                set(at, name(StrOffset(word(&self.blob, at))).0);
                at += GROUP;
                for record in 0..count {
                    let from = at + record * table.each;
                    for offset in names {
                        let old = StrOffset(word(&self.blob, from + offset));
                        set(from + offset, name(old).0);
                    }
                    if let Some(offset) = typed {
                        let old = TypeId(word(&self.blob, from + offset));
                        set(from + offset, ty(old).0);
                    }
                }
                at += count * table.each;
            }
        }
        out
    }
}
