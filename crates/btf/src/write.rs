//! Writer of BTF: a [`Builder`] to which types are added, each with the next id. It may
//! start with the types of a blob; without additions it reproduces the bytes.

use crate::kind::Kind;
use crate::strings::Strings;
use crate::wire::{HEADER_SIZE, MAGIC, VERSION, info};
use crate::{
    Array, Btf, DeclTag, Enumerator, Func, FwdKind, Int, Member, Param, StrOffset, Type, TypeId,
    Var, VarSecinfo,
};

/// Builder of a BTF blob.
#[derive(Clone, Debug)]
pub struct Builder {
    types: Vec<u8>,
    strings: Strings,
    next: u32,
    /// Offset of the first string.
    first_string: u32,
}

impl Default for Builder {
    fn default() -> Builder {
        Builder::new()
    }
}

impl Builder {
    /// Empty builder.
    pub fn new() -> Builder {
        Builder {
            types: Vec::new(),
            strings: Strings::new(),
            next: 1,
            first_string: 0,
        }
    }

    /// Builder with the strings of a blob and none of its types: string offsets of that
    /// blob are valid.
    pub fn with_strings_of(btf: &Btf<'_>) -> Builder {
        Builder {
            types: Vec::new(),
            strings: Strings::of(&btf.all_strings()),
            next: 1,
            first_string: 0,
        }
    }

    /// Builder with all types and strings of a blob, with their ids and offsets.
    pub fn with_types_of(btf: &Btf<'_>) -> Builder {
        let mut builder = Builder::behind(btf);
        builder.types = btf.all_types().into_owned();
        builder
    }

    /// Builder of split BTF on that of a kernel, as modules have it: ids and string offsets
    /// continue those of the kernel.
    pub fn module_of(kernel: &Btf<'_>) -> Builder {
        Builder {
            next: kernel.len() as u32,
            first_string: kernel.strings_end() as u32,
            ..Builder::new()
        }
    }

    /// Builder of additions to a blob: ids continue those of the blob, its strings are
    /// present.
    pub(crate) fn behind(btf: &Btf<'_>) -> Builder {
        let mut builder = Builder::with_strings_of(btf);
        builder.next = btf.len() as u32;
        builder
    }

    /// Added types, and all strings.
    pub(crate) fn parts(&self) -> (&[u8], &[u8]) {
        (&self.types, self.strings.as_bytes())
    }

    /// Offset of a string, added if it is new. A NUL and what follows it are cut off.
    pub fn string(&mut self, text: impl AsRef<[u8]>) -> StrOffset {
        let text = text.as_ref();
        let text = text.split(|&byte| byte == 0).next().unwrap_or_default();
        match text {
            [] => StrOffset::EMPTY,
            text => StrOffset(self.first_string + self.strings.add(text).0),
        }
    }

    /// Id of the next type: the number of types, `void` included.
    pub fn next_id(&self) -> TypeId {
        TypeId(self.next)
    }

    /// Bytes of the blob.
    pub fn finish(&self) -> Vec<u8> {
        write_blob(&self.types, self.strings.as_bytes())
    }

    /// Adds an integer.
    pub fn int(&mut self, name: StrOffset, int: Int) -> TypeId {
        let id = self.record(name, Kind::Int, 0, false, int.size);
        let encoding = u32::from(int.encoding.0) << 24;
        self.words([encoding | int.offset << 16 | int.bits]);
        id
    }

    /// Adds a pointer, typedef, other modifier or type tag.
    pub fn reference(&mut self, kind: Kind, name: StrOffset, to: TypeId) -> TypeId {
        self.record(name, kind, 0, false, to.0)
    }

    /// Adds an array.
    pub fn array(&mut self, array: Array) -> TypeId {
        let id = self.record(StrOffset::EMPTY, Kind::Array, 0, false, 0);
        self.words([array.element.0, array.index.0, array.count]);
        id
    }

    /// Adds a structure or union of `size` bytes. With a bit field among the members, bit
    /// offsets are cut to 24 bits.
    pub fn composite(
        &mut self,
        kind: Kind,
        name: StrOffset,
        size: u32,
        members: &[Member],
    ) -> TypeId {
        let bitfields = members.iter().any(|member| member.bits != 0);
        let id = self.record(name, kind, members.len(), bitfields, size);
        for member in members {
            let place = member.bits << 24 | member.bit_offset;
            self.words([member.name.0, member.ty.0, place]);
        }
        id
    }

    /// Adds an enumeration of `size` bytes with values of 32 bits.
    pub fn enumeration(
        &mut self,
        name: StrOffset,
        size: u32,
        signed: bool,
        values: &[Enumerator],
    ) -> TypeId {
        let id = self.record(name, Kind::Enum, values.len(), signed, size);
        for value in values {
            self.words([value.name.0, value.value as u32]);
        }
        id
    }

    /// Adds an enumeration of `size` bytes with values of 64 bits.
    pub fn enumeration64(
        &mut self,
        name: StrOffset,
        size: u32,
        signed: bool,
        values: &[Enumerator],
    ) -> TypeId {
        let id = self.record(name, Kind::Enum64, values.len(), signed, size);
        for value in values {
            self.words([value.name.0, value.value as u32, (value.value >> 32) as u32]);
        }
        id
    }

    /// Adds a forward declaration.
    pub fn forward(&mut self, name: StrOffset, forward: FwdKind) -> TypeId {
        self.record(name, Kind::Fwd, 0, forward == FwdKind::Union, 0)
    }

    /// Adds a function.
    pub fn func(&mut self, name: StrOffset, func: Func) -> TypeId {
        let linkage = func.linkage.0 as usize;
        self.record(name, Kind::Func, linkage, false, func.proto.0)
    }

    /// Adds a prototype.
    pub fn proto(&mut self, returns: TypeId, params: &[Param]) -> TypeId {
        let kind = Kind::FuncProto;
        let id = self.record(StrOffset::EMPTY, kind, params.len(), false, returns.0);
        for param in params {
            self.words([param.name.0, param.ty.0]);
        }
        id
    }

    /// Adds a variable.
    pub fn var(&mut self, name: StrOffset, var: Var) -> TypeId {
        let id = self.record(name, Kind::Var, 0, false, var.ty.0);
        self.words([var.linkage.0]);
        id
    }

    /// Adds a data section of `size` bytes.
    pub fn datasec(&mut self, name: StrOffset, size: u32, vars: &[VarSecinfo]) -> TypeId {
        let id = self.record(name, Kind::Datasec, vars.len(), false, size);
        for placed in vars {
            self.words([placed.var.0, placed.offset, placed.size]);
        }
        id
    }

    /// Adds a floating-point number of `size` bytes.
    pub fn float(&mut self, name: StrOffset, size: u32) -> TypeId {
        self.record(name, Kind::Float, 0, false, size)
    }

    /// Adds a declaration tag.
    pub fn decl_tag(&mut self, text: StrOffset, tag: DeclTag) -> TypeId {
        let id = self.record(text, Kind::DeclTag, 0, false, tag.target.0);
        self.words([tag.component as u32]);
        id
    }

    /// Adds a copy of a type of another blob. `map` translates the ids that it refers to.
    pub fn copy(&mut self, ty: Type<'_>, mut map: impl FnMut(TypeId) -> TypeId) -> TypeId {
        let id = TypeId(self.next);
        self.next += 1;
        let record = ty.record();
        let name = self.string(ty.name().as_bytes());
        let payload = match ty.referred() {
            Some(to) => map(to).0,
            None => record.payload,
        };
        self.words([name.0, record.info, payload]);
        let (fixed, each) = ty.kind().tail();
        let step = if each == 0 { fixed } else { each };
        let (named, typed) = parts(ty.kind());
        for part in ty.tail().chunks_exact(step.max(1)) {
            for (index, word) in part.chunks_exact(4).enumerate() {
                let word = u32::from_le_bytes([word[0], word[1], word[2], word[3]]);
                let word = if named.contains(&index) {
                    self.string(ty.btf().string(StrOffset(word)).as_bytes()).0
                } else if typed.contains(&index) {
                    map(TypeId(word)).0
                } else {
                    word
                };
                self.words([word]);
            }
        }
        id
    }

    /// Adds a type as raw words.
    pub(crate) fn add_words(&mut self, words: &[u32]) {
        self.next += 1;
        for word in words {
            self.types.extend_from_slice(&word.to_le_bytes());
        }
    }

    fn record(
        &mut self,
        name: StrOffset,
        kind: Kind,
        count: usize,
        flag: bool,
        payload: u32,
    ) -> TypeId {
        let id = TypeId(self.next);
        self.next += 1;
        self.words([name.0, info(kind as u32, count as u32, flag), payload]);
        id
    }

    fn words<const N: usize>(&mut self, words: [u32; N]) {
        for word in words {
            self.types.extend_from_slice(&word.to_le_bytes());
        }
    }
}

/// Blob of these types and strings.
pub(crate) fn write_blob(types: &[u8], strings: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(HEADER_SIZE + types.len() + strings.len());
    out.extend_from_slice(&MAGIC.to_le_bytes());
    out.extend_from_slice(&[VERSION, 0]);
    let (types_len, strings_len) = (types.len() as u32, strings.len() as u32);
    for word in [HEADER_SIZE as u32, 0, types_len, types_len, strings_len] {
        out.extend_from_slice(&word.to_le_bytes());
    }
    out.extend_from_slice(types);
    out.extend_from_slice(strings);
    out
}

/// Indices of the words after a record that are names, and that are type ids.
pub(crate) fn parts(kind: Kind) -> (&'static [usize], &'static [usize]) {
    match kind {
        Kind::Array => (&[], &[0, 1]),
        Kind::Struct | Kind::Union | Kind::FuncProto => (&[0], &[1]),
        Kind::Enum | Kind::Enum64 => (&[0], &[]),
        Kind::Datasec => (&[], &[0]),
        _ => (&[], &[]),
    }
}
