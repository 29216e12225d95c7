//! Types under deduplication: the words of the blob, with interned names and mutable
//! references.

use crate::kind::Kind;
use crate::wire::{RECORD_SIZE, Record};
use crate::write::parts;
use crate::{Btf, StrOffset, TypeId};

/// Number of words of a type record.
const RECORD: usize = RECORD_SIZE / 4;

/// All types as words.
pub(super) struct Graph {
    words: Vec<u32>,
    /// Start of each type; `void` has an empty record at the start.
    starts: Vec<u32>,
}

impl Graph {
    /// Types of a blob; `name` translates names, in the order of the blob.
    pub(super) fn new(btf: &Btf<'_>, mut name: impl FnMut(StrOffset) -> StrOffset) -> Graph {
        let mut graph = Graph {
            words: vec![0; RECORD],
            starts: vec![0],
        };
        for ty in btf.types() {
            graph.starts.push(graph.words.len() as u32);
            let Record {
                name: own,
                info,
                payload,
            } = ty.record();
            let own = name(StrOffset(own)).0;
            graph.words.extend([own, info, payload]);
            let (named, _) = parts(ty.kind());
            let (_, each) = ty.kind().tail();
            let step = if each == 0 { usize::MAX } else { each / 4 };
            for (index, word) in ty.tail().chunks_exact(4).enumerate() {
                let word = u32::from_le_bytes([word[0], word[1], word[2], word[3]]);
                let is_name = named.contains(&(index % step));
                graph.words.push(match is_name {
                    true => name(StrOffset(word)).0,
                    false => word,
                });
            }
        }
        graph
    }

    /// Number of types, `void` included.
    pub(super) fn len(&self) -> usize {
        self.starts.len()
    }

    /// All type ids but that of `void`.
    pub(super) fn ids(&self) -> impl Iterator<Item = TypeId> + use<> {
        (1..self.starts.len() as u32).map(TypeId)
    }

    /// Words of a type.
    pub(super) fn words(&self, id: TypeId) -> &[u32] {
        let start = self.starts[id.index()] as usize;
        let end = match self.starts.get(id.index() + 1) {
            Some(&end) => end as usize,
            None => self.words.len(),
        };
        &self.words[start..end]
    }

    #[inline]
    pub(super) fn record(&self, id: TypeId) -> Record {
        let start = self.starts[id.index()] as usize;
        let words = &self.words[start..start + RECORD];
        Record {
            name: words[0],
            info: words[1],
            payload: words[2],
        }
    }

    #[inline]
    pub(super) fn kind(&self, id: TypeId) -> Kind {
        Kind::from_number(self.record(id).kind()).unwrap_or(Kind::Void)
    }

    /// Words after the record.
    pub(super) fn tail(&self, id: TypeId) -> &[u32] {
        &self.words(id)[RECORD..]
    }

    /// Members or parameters of a type, N words each.
    pub(super) fn members<const N: usize>(&self, id: TypeId) -> impl Iterator<Item = [u32; N]> {
        self.tail(id).as_chunks().0.iter().copied()
    }

    /// Indices of the references in the words of a type, in order.
    pub(super) fn references(&self, id: TypeId) -> impl DoubleEndedIterator<Item = usize> + use<> {
        let kind = self.kind(id);
        let refers = !kind.has_size() && !matches!(kind, Kind::Void | Kind::Array | Kind::Fwd);
        let own = refers.then_some(2);
        let (_, typed) = parts(kind);
        let (_, each) = kind.tail();
        let len = if typed.is_empty() {
            0
        } else {
            self.tail(id).len()
        };
        let step = if each == 0 { len.max(1) } else { each / 4 };
        let inside = (0..len)
            .step_by(step)
            .flat_map(move |from| typed.iter().map(move |&at| RECORD + from + at));
        own.into_iter().chain(inside)
    }

    /// Reference of a type.
    #[inline]
    pub(super) fn reference(&self, id: TypeId, at: usize) -> TypeId {
        TypeId(self.words[self.starts[id.index()] as usize + at])
    }

    /// Replaces a reference of a type.
    pub(super) fn set_reference(&mut self, id: TypeId, at: usize, to: TypeId) {
        let start = self.starts[id.index()] as usize;
        self.words[start + at] = to.0;
    }
}
