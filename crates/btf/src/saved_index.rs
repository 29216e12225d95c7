//! Index of a blob as bytes, so that a blob that is part of a program is not walked over
//! when the program starts.
//!
//! [`Btf::to_index`] writes the starts of the types, the ids of data sections and both
//! indexes by name; [`Btf::with_index`] reads them. The starts are copied (two bytes for
//! each type); an index by name is copied on first use.
//!
//! The form is one sequence of little-endian words: the length of the blob, its four section
//! bounds, then the tables, each behind the number of its elements.

use std::borrow::Cow;
use std::fmt;

use crate::lookup::NameIndex;
use crate::parse::Index;
use crate::starts::Starts;
use crate::wire::word;
use crate::{Btf, TypeId};

/// The index belongs to another blob, or is damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OtherIndex;

impl fmt::Display for OtherIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the index is not of this BTF")
    }
}

impl std::error::Error for OtherIndex {}

impl<'a> Btf<'a> {
    /// Index of a blob without a base, for [`Btf::with_index`].
    pub fn to_index(&self) -> Vec<u8> {
        let mut index = Writer::default();
        let Index {
            types,
            strings,
            starts,
            datasecs,
        } = &self.index;
        for number in [
            self.as_bytes().len(),
            types.0,
            types.1,
            strings.0,
            strings.1,
        ] {
            index.word(number as u32);
        }
        index.words(datasecs.iter().map(|id| id.0));
        starts.save(&mut index);
        for names in [true, false].map(|of_functions| NameIndex::new(self, of_functions)) {
            names.save(&mut index);
        }
        index.0
    }

    /// BTF of a blob with the index that [`Btf::to_index`] wrote for the same bytes. Nothing
    /// of the blob is read.
    ///
    /// # Errors
    /// If the index is of a blob of another length, or cut. Of another blob of the same
    /// length lookups answer wrongly or panic.
    pub fn with_index(
        blob: impl Into<Cow<'a, [u8]>>,
        index: &'static [u8],
    ) -> Result<Btf<'a>, OtherIndex> {
        let blob = blob.into();
        let mut saved = Reader(index);
        let mut number = || saved.word().map(|number| number as usize);
        let len = number()?;
        let (types, strings) = ((number()?, number()?), (number()?, number()?));
        let is_within = types.0 <= types.1 && types.1 <= len;
        let is_strings = strings
            .0
            .checked_add(strings.1)
            .is_some_and(|end| end <= len);
        if len != blob.len() || !is_within || !is_strings {
            return Err(OtherIndex);
        }
        let datasecs = saved.words()?.map(TypeId).collect();
        let starts = Starts::saved(&mut saved)?;
        let names = [NameIndex::skip(&mut saved)?, NameIndex::skip(&mut saved)?];
        let index = Index {
            types,
            strings,
            starts,
            datasecs,
        };
        Ok(Btf::with_saved_names(blob, index, names))
    }
}

/// Writer of an index.
#[derive(Default)]
pub(crate) struct Writer(Vec<u8>);

impl Writer {
    pub(crate) fn word(&mut self, word: u32) {
        self.0.extend(word.to_le_bytes());
    }

    /// A table behind the number of its elements.
    pub(crate) fn words(&mut self, words: impl ExactSizeIterator<Item = u32>) {
        self.word(words.len() as u32);
        words.for_each(|word| self.word(word));
    }

    /// A table of halves of words, filled up to whole words.
    pub(crate) fn halves(&mut self, halves: &[u16]) {
        self.word(halves.len() as u32);
        self.0
            .extend(halves.iter().flat_map(|half| half.to_le_bytes()));
        self.0.resize(self.0.len().next_multiple_of(4), 0);
    }
}

/// Reader of an index.
#[derive(Clone, Copy)]
pub(crate) struct Reader(&'static [u8]);

impl Reader {
    pub(crate) fn word(&mut self) -> Result<u32, OtherIndex> {
        self.take(4).map(|bytes| word(bytes, 0))
    }

    /// A table behind the number of its elements.
    pub(crate) fn words(&mut self) -> Result<impl Iterator<Item = u32> + 'static, OtherIndex> {
        let count = self.word()? as usize;
        let bytes = self.take(count.saturating_mul(4))?;
        Ok(bytes.chunks_exact(4).map(|bytes| word(bytes, 0)))
    }

    /// A table of halves of words.
    pub(crate) fn halves(&mut self) -> Result<impl Iterator<Item = u16> + 'static, OtherIndex> {
        let count = self.word()? as usize;
        let bytes = self.take(count.saturating_mul(2).next_multiple_of(4))?;
        let halves = bytes.chunks_exact(2).take(count);
        Ok(halves.map(|half| u16::from_le_bytes([half[0], half[1]])))
    }

    /// Passes over a table.
    pub(crate) fn skip_words(&mut self) -> Result<(), OtherIndex> {
        let count = self.word()? as usize;
        self.take(count.saturating_mul(4)).map(|_| ())
    }

    fn take(&mut self, len: usize) -> Result<&'static [u8], OtherIndex> {
        let (taken, rest) = self.0.split_at_checked(len).ok_or(OtherIndex)?;
        self.0 = rest;
        Ok(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Builder, Encoding, Func, Int, Kind, Linkage};

    /// A blob with types and functions that share names, flavours and a data section.
    fn blob() -> Vec<u8> {
        let mut builder = Builder::new();
        let mut ids = Vec::new();
        for at in 0..700 {
            let name = builder.string(format!("type_{}___old", at % 300));
            ids.push(builder.int(
                name,
                Int {
                    size: 4,
                    encoding: Encoding::default(),
                    offset: 0,
                    bits: 32,
                },
            ));
            let proto = builder.proto(ids[at / 2], &[]);
            let name = builder.string(format!("function_{}", at % 400));
            let linkage = Linkage::STATIC;
            builder.func(name, Func { proto, linkage });
        }
        builder.finish()
    }

    fn leaked(index: &[u8]) -> &'static [u8] {
        Vec::leak(index.to_vec())
    }

    #[test]
    fn a_saved_index_answers_as_the_one_of_parsing() {
        let blob = blob();
        let parsed = Btf::parse(&*blob).unwrap();
        let saved = Btf::with_index(&*blob, leaked(&parsed.to_index())).unwrap();
        let ids = |btf: &Btf<'_>, kind, name: &str| -> Vec<TypeId> {
            btf.find_all(kind, name.as_bytes())
                .map(|ty| ty.id())
                .collect()
        };
        assert_eq!(parsed.len(), saved.len());
        for ty in parsed.types() {
            assert_eq!(saved.at(ty.id()).name(), ty.name());
            let name = ty.name().to_string();
            assert_eq!(
                ids(&saved, ty.kind(), &name),
                ids(&parsed, ty.kind(), &name)
            );
        }
        assert_eq!(ids(&saved, Kind::Func, "function_7").len(), 2);
        assert_eq!(ids(&saved, Kind::Func, "type_7"), []);
        let flavours = |btf: &Btf<'_>| btf.find_flavours(Kind::Int, b"type_7").count();
        assert_eq!(flavours(&saved), flavours(&parsed));
        assert_eq!(saved.to_index(), parsed.to_index());
        let datasecs = |btf: &Btf<'_>| btf.datasecs().map(|ty| ty.id()).collect::<Vec<_>>();
        assert_eq!(datasecs(&saved), datasecs(&parsed));
    }

    #[test]
    fn an_index_of_another_blob_or_a_cut_one_is_refused() {
        let blob = blob();
        let index = Btf::parse(&*blob).unwrap().to_index();
        assert_eq!(
            Btf::with_index(&blob[1..], leaked(&index)).unwrap_err(),
            OtherIndex
        );
        let index = leaked(&index);
        for len in 0..index.len() {
            let cut = Btf::with_index(&*blob, &index[..len]);
            assert!(cut.is_err(), "{len} bytes");
        }
    }
}
