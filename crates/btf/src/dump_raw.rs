//! Text of a blob in the form of `bpftool btf dump format raw`.

use std::io::Write as _;

use crate::{Btf, FwdKind, Shape, StrOffset, Type};

/// Text of all types of a blob, without those of its base. Names are copied unchanged, so
/// the result is bytes.
pub fn dump_raw(btf: &Btf<'_>) -> Vec<u8> {
    let mut dump = RawDump {
        btf,
        out: Vec::with_capacity(btf.as_bytes().len() * 2),
    };
    for ty in btf.own_types() {
        dump.ty(ty);
    }
    dump.out
}

/// Text of one type, without the final newline.
pub fn dump_raw_type(ty: Type<'_>) -> Vec<u8> {
    let mut dump = RawDump {
        btf: ty.btf(),
        out: Vec::new(),
    };
    dump.ty(ty);
    dump.out.pop();
    dump.out
}

struct RawDump<'b> {
    btf: &'b Btf<'b>,
    out: Vec<u8>,
}

/// Appends formatted text; writing to memory does not fail.
macro_rules! put {
    ($dump:expr, $($format:tt)*) => {
        let _ = write!($dump.out, $($format)*);
    };
}

impl RawDump<'_> {
    fn name(&mut self, offset: StrOffset) {
        let name = match offset {
            StrOffset::EMPTY => b"(anon)",
            offset => self.btf.string(offset).as_bytes(),
        };
        self.out.push(b'\'');
        self.out.extend_from_slice(name);
        self.out.push(b'\'');
    }

    fn ty(&mut self, ty: Type<'_>) {
        put!(self, "[{}] {} ", ty.id(), ty.kind().name());
        self.name(ty.name_offset());
        let count = ty.count();
        match ty.shape() {
            Shape::Void => {}
            Shape::Int(int) => {
                put!(
                    self,
                    " size={} bits_offset={} nr_bits={} encoding={}",
                    int.size,
                    int.offset,
                    int.bits,
                    int.encoding.name()
                );
            }
            Shape::Ptr(to)
            | Shape::Typedef(to)
            | Shape::Volatile(to)
            | Shape::Const(to)
            | Shape::Restrict(to)
            | Shape::TypeTag(to) => {
                put!(self, " type_id={to}");
            }
            Shape::Array(array) => {
                put!(
                    self,
                    " type_id={} index_type_id={} nr_elems={}",
                    array.element,
                    array.index,
                    array.count
                );
            }
            Shape::Struct(composite) | Shape::Union(composite) => {
                put!(self, " size={} vlen={count}", composite.size);
                for member in composite.members() {
                    put!(self, "\n\t");
                    self.name(member.name);
                    put!(
                        self,
                        " type_id={} bits_offset={}",
                        member.ty,
                        member.bit_offset
                    );
                    if member.bits != 0 {
                        put!(self, " bitfield_size={}", member.bits);
                    }
                }
            }
            Shape::Enum(of) => {
                let encoding = if of.signed { "SIGNED" } else { "UNSIGNED" };
                put!(self, " encoding={encoding} size={} vlen={count}", of.size);
                for value in of.values() {
                    put!(self, "\n\t");
                    self.name(value.name);
                    let suffix = match (of.wide, of.signed) {
                        (false, _) => "",
                        (true, true) => "LL",
                        (true, false) => "ULL",
                    };
                    if of.signed {
                        put!(self, " val={}{suffix}", value.value as i64);
                    } else {
                        put!(self, " val={}{suffix}", value.value);
                    }
                }
            }
            Shape::Fwd(FwdKind::Struct) => {
                put!(self, " fwd_kind=struct");
            }
            Shape::Fwd(FwdKind::Union) => {
                put!(self, " fwd_kind=union");
            }
            Shape::Func(func) => {
                put!(
                    self,
                    " type_id={} linkage={}",
                    func.proto,
                    func.linkage.name()
                );
            }
            Shape::Proto(proto) => {
                put!(self, " ret_type_id={} vlen={count}", proto.returns);
                for param in proto.params() {
                    put!(self, "\n\t");
                    self.name(param.name);
                    put!(self, " type_id={}", param.ty);
                }
            }
            Shape::Var(var) => {
                put!(self, " type_id={}, linkage={}", var.ty, var.linkage.name());
            }
            Shape::Datasec(section) => {
                put!(self, " size={} vlen={count}", section.size);
                for placed in section.vars() {
                    put!(
                        self,
                        "\n\ttype_id={} offset={} size={}",
                        placed.var,
                        placed.offset,
                        placed.size
                    );
                    let var = self.btf.at(placed.var);
                    put!(self, " ({} ", var.kind().name());
                    self.name(var.name_offset());
                    put!(self, ")");
                }
            }
            Shape::Float(size) => {
                put!(self, " size={size}");
            }
            Shape::DeclTag(tag) => {
                put!(
                    self,
                    " type_id={} component_idx={}",
                    tag.target,
                    tag.component
                );
            }
        }
        self.out.push(b'\n');
    }
}
