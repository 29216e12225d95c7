//! Changes to parsed BTF, as loaders make them to the types of an object before the
//! kernel gets them.
//!
//! Ids, sizes and linkages are changed in place, so other bytes are unchanged. Additions
//! are appended and rewrite the blob, header included. A borrowed blob is copied at the
//! first change.

use crate::kind::Kind;
use crate::starts::Starts;
use crate::wire::{HEADER_SIZE, PARAM_SIZE, PLACED_SIZE, RECORD_SIZE, Record, word};
use crate::{Btf, Builder, Linkage, StrOffset, TypeId, VarSecinfo};

impl Btf<'_> {
    /// Sets the linkage of a function or variable; no effect on other types.
    pub fn set_linkage(&mut self, id: TypeId, linkage: Linkage) {
        let Some((start, record)) = self.record(id) else {
            return;
        };
        match self.at(id).kind() {
            Kind::Func => {
                let info = record.info & 0xffff_0000 | linkage.0 & 0xffff;
                self.write(start + 4, info);
            }
            Kind::Var => self.write(start + RECORD_SIZE, linkage.0),
            _ => {}
        }
    }

    /// Sets the type that a pointer, modifier, function, variable or tag refers to. It
    /// must exist, and be a prototype for a function. No effect on other types.
    pub fn set_referred(&mut self, id: TypeId, to: TypeId) {
        let fits = match self.at(id).kind() {
            Kind::Func => self.at(to).kind() == Kind::FuncProto,
            _ => self.at(id).referred().is_some() && to.index() < self.len(),
        };
        if fits && let Some((start, _)) = self.record(id) {
            self.write(start + 8, to.0);
        }
    }

    /// Sets the name of a parameter of a prototype to an existing string. No effect if
    /// there is no such parameter.
    pub fn set_param_name(&mut self, id: TypeId, index: usize, name: StrOffset) {
        if self.at(id).kind() == Kind::FuncProto
            && index < self.at(id).count()
            && (name.0 as usize) < self.strings_end()
            && let Some((start, _)) = self.record(id)
        {
            self.write(start + RECORD_SIZE + index * PARAM_SIZE, name.0);
        }
    }

    /// Sets the size of a data section and the offsets of its variables. No effect unless
    /// there are as many as before, of existing types.
    pub fn set_section(&mut self, id: TypeId, size: u32, vars: &[VarSecinfo]) {
        let ty = self.at(id);
        let is_sound = ty.kind() == Kind::Datasec
            && ty.count() == vars.len()
            && vars.iter().all(|placed| placed.var.index() < self.len());
        if let (true, Some((start, _))) = (is_sound, self.record(id)) {
            self.write(start + 8, size);
            for (index, placed) in vars.iter().enumerate() {
                let at = start + RECORD_SIZE + index * PLACED_SIZE;
                self.write(at, placed.var.0);
                self.write(at + 4, placed.offset);
                self.write(at + 8, placed.size);
            }
        }
    }

    /// Takes kinds that a kernel lacks out of the types, as libbpf does before it loads them: a type tag
    /// becomes a `const`, a declaration tag an integer of a byte, a floating-point number a structure.
    pub fn replace_kinds(&mut self, is_lacking: impl Fn(Kind) -> bool) {
        /// Word of an integer of eight bits without sign.
        const BYTE: u32 = 8;
        for id in (0..self.len() as u32).map(TypeId) {
            let kind = self.at(id).kind();
            let other = match kind {
                Kind::TypeTag => Kind::Const,
                Kind::DeclTag => Kind::Int,
                Kind::Float => Kind::Struct,
                _ => continue,
            };
            let Some((start, _)) = self.record(id).filter(|_| is_lacking(kind)) else {
                continue;
            };
            self.write(start, 0);
            self.write(start + 4, (other as u32) << 24);
            if kind == Kind::DeclTag {
                self.write(start + 8, 1);
                self.write(start + RECORD_SIZE, BYTE);
            }
        }
        self.clear_indexes();
    }

    /// Hides a type from lookups by name, or a member or enumerator of it: the name loses its first letter.
    pub fn hide(&mut self, id: TypeId, part: Option<usize>) {
        let (fixed, each) = self.at(id).kind().tail();
        let is_there = part.is_none_or(|part| part < self.at(id).count());
        if let Some((start, _)) = self.record(id).filter(|_| is_there) {
            let at = part.map_or(start, |part| start + RECORD_SIZE + fixed + each * part);
            match word(&self.blob, at) {
                0 => {}
                name => self.write(at, name + 1),
            }
        }
        self.clear_indexes();
    }

    /// Appends types and strings; existing ids and offsets remain valid. Additions may
    /// refer only to existing types and to earlier additions.
    pub fn append<R>(&mut self, add: impl FnOnce(&mut Builder) -> R) -> R {
        self.stand_alone();
        let mut builder = Builder::behind(self);
        let result = add(&mut builder);
        self.grow(&builder);
        result
    }

    fn grow(&mut self, builder: &Builder) {
        let (added, strings) = builder.parts();
        if added.is_empty() && strings.len() == self.index.strings.1 {
            return;
        }
        let header = word(&self.blob, 4) as usize;
        let old = self.type_section();
        let mut blob = Vec::with_capacity(header + old.len() + added.len() + strings.len());
        blob.extend_from_slice(&self.blob[..header]);
        blob.extend_from_slice(old);
        // The types follow the header, which may have moved.
        let moved = self.index.types.0 - header;
        let starts = self.index.starts.iter();
        let mut starts: Starts = starts
            .map(|start| start.saturating_sub(moved as u32))
            .collect();
        let mut at = blob.len();
        blob.extend_from_slice(added);
        while at < blob.len() {
            let record = Record::read(&blob, at);
            let kind = Kind::from_number(record.kind()).unwrap_or(Kind::Void);
            let (fixed, each) = kind.tail();
            if kind == Kind::Datasec {
                self.index.datasecs.push(TypeId(starts.len() as u32));
            }
            starts.push(at as u32);
            at += RECORD_SIZE + fixed + each * record.count();
        }
        self.index.starts = starts;
        self.index.types = (header, blob.len());
        self.index.strings = (blob.len(), strings.len());
        blob.extend_from_slice(strings);
        let types = (self.index.types.1 - self.index.types.0) as u32;
        let words = [0, types, types, strings.len() as u32];
        for (word, at) in words.iter().zip((8..HEADER_SIZE).step_by(4)) {
            blob[at..at + 4].copy_from_slice(&word.to_le_bytes());
        }
        self.blob = blob.into();
        self.clear_indexes();
    }

    fn record(&mut self, id: TypeId) -> Option<(usize, Record)> {
        self.stand_alone();
        let start = self.index.starts.get(id.index())? as usize;
        (start != 0).then(|| (start, Record::read(&self.blob, start)))
    }

    fn write(&mut self, at: usize, word: u32) {
        self.blob.to_mut()[at..at + 4].copy_from_slice(&word.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Encoding, Func, Int, Param, Shape, Var, dump_raw};

    fn sample() -> Vec<u8> {
        let mut builder = Builder::new();
        let name = builder.string("int");
        let encoding = Encoding::SIGNED;
        let int = builder.int(
            name,
            Int {
                size: 4,
                bits: 32,
                offset: 0,
                encoding,
            },
        );
        let name = builder.string("counter");
        let var = builder.var(
            name,
            Var {
                ty: int,
                linkage: Linkage::EXTERN,
            },
        );
        let name = builder.string(".ksyms");
        let placed = VarSecinfo {
            var,
            offset: 0,
            size: 0,
        };
        builder.datasec(name, 0, &[placed]);
        let param = Param {
            name: StrOffset::EMPTY,
            ty: int,
        };
        let proto = builder.proto(int, &[param]);
        let name = builder.string("callee");
        builder.func(
            name,
            Func {
                proto,
                linkage: Linkage::EXTERN,
            },
        );
        builder.finish()
    }

    #[test]
    fn hidden_names_are_not_found_and_kinds_are_replaced() {
        let mut btf = Btf::parse(sample()).unwrap();
        assert!(btf.find(Kind::Func, "callee").is_some());
        btf.hide(TypeId(5), None);
        assert!(btf.find(Kind::Func, "callee").is_none());
        assert!(btf.find(Kind::Func, "allee").is_some());
        let tagged = btf.append(|add| {
            let name = add.string("kptr");
            add.reference(Kind::TypeTag, name, TypeId(1))
        });
        btf.replace_kinds(|_| false);
        assert_eq!(btf.at(tagged).kind(), Kind::TypeTag);
        btf.replace_kinds(|kind| kind == Kind::TypeTag);
        assert!(matches!(btf.at(tagged).shape(), Shape::Const(TypeId(1))));
        assert!(btf.at(tagged).name().is_empty());
    }

    #[test]
    fn changes_stay_where_they_are_made() {
        let blob = sample();
        let mut btf = Btf::parse(&blob[..]).unwrap();
        btf.set_linkage(TypeId(2), Linkage::GLOBAL);
        btf.set_linkage(TypeId(5), Linkage::GLOBAL);
        let placed = VarSecinfo {
            var: TypeId(2),
            offset: 8,
            size: 4,
        };
        btf.set_section(TypeId(3), 12, &[placed]);
        let text = String::from_utf8(dump_raw(&btf)).unwrap();
        assert!(
            text.contains("VAR 'counter' type_id=1, linkage=global"),
            "{text}"
        );
        assert!(
            text.contains("size=12 vlen=1\n\ttype_id=2 offset=8 size=4"),
            "{text}"
        );
        assert!(
            text.contains("FUNC 'callee' type_id=4 linkage=global"),
            "{text}"
        );
        let changed = btf.as_bytes();
        let differing = changed.iter().zip(&blob).filter(|(new, old)| new != old);
        assert_eq!((changed.len(), differing.count()), (blob.len(), 5));
    }

    #[test]
    fn invalid_edits_change_nothing() {
        let blob = sample();
        let mut btf = Btf::parse(&blob[..]).unwrap();
        btf.set_linkage(TypeId(1), Linkage::GLOBAL);
        btf.set_linkage(TypeId(77), Linkage::GLOBAL);
        btf.set_referred(TypeId(2), TypeId(77));
        btf.set_referred(TypeId(1), TypeId(2));
        btf.set_referred(TypeId(5), TypeId(1));
        btf.set_param_name(TypeId(4), 1, StrOffset(1));
        btf.set_param_name(TypeId(4), 0, StrOffset(1 << 20));
        btf.set_section(TypeId(3), 12, &[]);
        let nowhere = VarSecinfo {
            var: TypeId(77),
            offset: 0,
            size: 0,
        };
        btf.set_section(TypeId(3), 12, &[nowhere]);
        btf.append(|_| ());
        assert_eq!(btf.as_bytes(), blob);
    }

    #[test]
    fn additions_come_behind() {
        let blob = sample();
        let mut btf = Btf::parse(&blob[..]).unwrap();
        assert!(btf.find(Kind::Var, "dummy").is_none());
        let added = btf.append(|builder| {
            let name = builder.string("dummy");
            builder.var(
                name,
                Var {
                    ty: TypeId(1),
                    linkage: Linkage::GLOBAL,
                },
            )
        });
        assert_eq!(added, TypeId(6));
        btf.set_param_name(TypeId(4), 0, btf.at(added).name_offset());
        assert_eq!(btf.find(Kind::Var, "dummy").unwrap().id(), added);
        let again = Btf::parse(btf.as_bytes()).unwrap();
        assert_eq!(dump_raw(&again), dump_raw(&btf));
        let Shape::Proto(proto) = again.at(TypeId(4)).shape() else {
            panic!("a prototype");
        };
        let param = proto.params().next().unwrap();
        assert_eq!(again.string(param.name), "dummy");
    }
}
