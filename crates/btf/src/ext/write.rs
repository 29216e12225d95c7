//! Writer of `.BTF.ext`.

use super::{BtfExt, CoreRelo, CoreSpec, ExtFuncInfo, ExtLineInfo, GROUP, HEADER, TableKind};
use crate::wire::{MAGIC, VERSION, word};
use crate::{StrOffset, TypeId};

/// Builder of a `.BTF.ext` blob. Sections are in the order of their first record.
#[derive(Clone, Debug, Default)]
pub struct ExtBuilder {
    tables: [Vec<(StrOffset, Vec<u32>)>; 3],
}

impl ExtBuilder {
    /// Empty builder.
    pub fn new() -> ExtBuilder {
        ExtBuilder::default()
    }

    /// Adds a func_info record.
    pub fn function(&mut self, section: StrOffset, info: ExtFuncInfo) {
        self.add(TableKind::FuncInfo, section, &[info.offset, info.func.0]);
    }

    /// Adds a line_info record. Line and column are cut to 22 and 10 bits.
    pub fn line(&mut self, section: StrOffset, info: ExtLineInfo) {
        let place = info.line << 10 | info.column & 0x3ff;
        let words = [info.offset, info.file.0, info.text.0, place];
        self.add(TableKind::LineInfo, section, &words);
    }

    /// Adds a CO-RE relocation.
    pub fn relocation(&mut self, section: StrOffset, relo: CoreRelo) {
        let CoreSpec { ty, access, kind } = relo.spec;
        let words = [relo.offset, ty.0, access.0, kind.0];
        self.add(TableKind::CoreRelo, section, &words);
    }

    fn add(&mut self, table: TableKind, section: StrOffset, words: &[u32]) {
        let groups = &mut self.tables[table as usize];
        match groups.iter_mut().rfind(|(name, _)| *name == section) {
            Some((_, records)) => records.extend_from_slice(words),
            None => groups.push((section, words.to_vec())),
        }
    }

    /// Bytes of the blob. Tables without records are omitted.
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
    /// Copy with every name and type id translated, in the order of the blob.
    pub fn mapped(
        &self,
        mut name: impl FnMut(StrOffset) -> StrOffset,
        mut ty: impl FnMut(TypeId) -> TypeId,
    ) -> Vec<u8> {
        let mut out = self.blob.to_vec();
        let mut set = |at: usize, new: u32| out[at..at + 4].copy_from_slice(&new.to_le_bytes());
        for (table, kind) in self.tables.iter().zip(TableKind::ALL) {
            // Indices of the words of a record that are names, and of the one that is a
            // type id.
            let (names, typed): (&[usize], Option<usize>) = match kind {
                TableKind::FuncInfo => (&[], Some(4)),
                TableKind::LineInfo => (&[4, 8], None),
                TableKind::CoreRelo => (&[8], Some(4)),
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
