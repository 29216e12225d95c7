//! Signatures: prototypes of helpers and kfuncs in one line, as far as they decide which memory
//! a call reads and writes and what `r0` holds after it.
//!
//! The implementation of a helper declares the signatures that it is written for; engines that
//! run without checks compare them with those that the verifier used.
//!
//! ```text
//! map map_key -> map_value?
//! mem:w size0 any -> int
//! mem:w:8 -> int
//! bpf_map* -> int:8
//! ```
//!
//! Of helpers, a word is the name of the kind in C in lower case, without `ARG_`, `RET_` and
//! `PTR_TO_`, followed by `?` if it may be null, `:` and letters or names of further
//! modifiers, and `:` with the bytes or `=` with the structure that the prototype names. Of
//! kfuncs, a word is a type of the prototype: `int:BYTES`, `void*`, `NAME*` for an object,
//! `NAME:BYTES*` for memory, and the suffix of the parameter's name; flags follow the result.

use std::fmt::{self, Write as _};

use btf::{Btf, Kind, ParamSuffix, Shape, TypeId};

use super::types::{ArgBase, ArgType, RetBase, RetType, TypeFlags};
use super::{ArgDetail, HelperProto, KernelType, KfuncFlags};

/// Modifiers in signatures. The others decide about what the program may pass, not about the
/// memory of the call.
const MODIFIERS: [(TypeFlags, &str); 15] = [
    (TypeFlags::PTR_MAYBE_NULL, "?"),
    (TypeFlags::MEM_WRITE, ":w"),
    (TypeFlags::MEM_RDONLY, ":r"),
    (TypeFlags::OBJ_RELEASE, ":release"),
    (TypeFlags::MEM_RINGBUF, ":ringbuf"),
    (TypeFlags::MEM_USER, ":user"),
    (TypeFlags::MEM_PERCPU, ":percpu"),
    (TypeFlags::PTR_UNTRUSTED, ":untrusted"),
    (TypeFlags::DYNPTR_TYPE_LOCAL, ":local"),
    (TypeFlags::DYNPTR_TYPE_RINGBUF, ":record"),
    (TypeFlags::DYNPTR_TYPE_SKB, ":skb"),
    (TypeFlags::DYNPTR_TYPE_XDP, ":xdp"),
    (TypeFlags::DYNPTR_TYPE_SKB_META, ":skb_meta"),
    (TypeFlags::MEM_ALLOC, ":alloc"),
    (TypeFlags::MEM_RCU, ":rcu"),
];

/// Flags in signatures of kfuncs: those that decide about pointers.
const KFUNC_FLAGS: [(KfuncFlags, &str); 6] = [
    (KfuncFlags::ACQUIRE, "acquire"),
    (KfuncFlags::RELEASE, "release"),
    (KfuncFlags::RET_NULL, "ret_null"),
    (KfuncFlags::TRUSTED_ARGS, "trusted_args"),
    (KfuncFlags::RCU, "rcu"),
    (KfuncFlags::RCU_PROTECTED, "rcu_protected"),
];

/// Structures nested at most, as the verifier looks into them.
const MOST_NESTED: u32 = 3;

impl HelperProto {
    /// The signature; see the module's text in the source.
    pub fn signature(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = self.write_signature(&mut text);
        text
    }

    fn write_signature(&self, out: &mut String) -> fmt::Result {
        let args = self.args.iter().zip(&self.arg_details);
        for (arg, detail) in args.take(self.arg_count()) {
            write_arg(*arg, detail, out)?;
            out.push(' ');
        }
        out.push_str("-> ");
        write_result(self.ret, self.ret_btf.as_ref(), out)
    }
}

fn write_arg(arg: ArgType, detail: &ArgDetail, out: &mut String) -> fmt::Result {
    let base = match arg.base {
        ArgBase::ConstMapPtr => "map",
        ArgBase::ConstSize => "size",
        ArgBase::ConstSizeOrZero => "size0",
        ArgBase::Anything => "any",
        base => return write_word(base.name(), arg.flags, detail, out),
    };
    write_word(base, arg.flags, detail, out)
}

fn write_result(ret: RetType, btf: Option<&KernelType>, out: &mut String) -> fmt::Result {
    let detail = btf.map_or(ArgDetail::None, |ty| ArgDetail::Btf(ty.clone()));
    match ret.base {
        RetBase::Integer => write_word("int", ret.flags, &detail, out),
        base => write_word(base.name(), ret.flags, &detail, out),
    }
}

fn write_word(name: &str, flags: TypeFlags, detail: &ArgDetail, out: &mut String) -> fmt::Result {
    let name = ["ARG_", "RET_"]
        .iter()
        .find_map(|prefix| name.strip_prefix(prefix))
        .unwrap_or(name);
    let name = name.strip_prefix("PTR_TO_").unwrap_or(name);
    out.push_str(&name.to_ascii_lowercase());
    for (flag, text) in MODIFIERS {
        if flags.has(flag) {
            out.push_str(text);
        }
    }
    match detail {
        ArgDetail::None => Ok(()),
        ArgDetail::Size(bytes) => write!(out, ":{bytes}"),
        ArgDetail::Btf(ty) => write!(out, "={}", ty.name),
    }
}

/// The signature of a kfunc with these flags, the function `id` of `btf`; `None` if that is no
/// function.
pub fn kfunc_signature(btf: &Btf<'_>, id: u32, flags: KfuncFlags) -> Option<String> {
    let Shape::Func(func) = btf.get(TypeId(id))?.shape() else {
        return None;
    };
    let Shape::Proto(proto) = btf.get(func.proto)?.shape() else {
        return None;
    };
    let mut text = String::new();
    for param in proto.params() {
        let name = btf.string(param.name);
        let name = name.as_bytes();
        // Writing to a string cannot fail.
        let _ = write_type(btf, param.ty, &mut text);
        let is_result_size = matches!(name, b"rdonly_buf_size" | b"rdwr_buf_size");
        let suffix = ParamSuffix::of(name).and_then(|_| {
            let at = name.windows(2).rposition(|pair| pair == b"__")?;
            str::from_utf8(&name[at..]).ok()
        });
        if is_result_size {
            text.push_str("=result");
        }
        text.push_str(suffix.unwrap_or_default());
        text.push(' ');
    }
    text.push_str("-> ");
    let _ = write_type(btf, proto.returns, &mut text);
    for (flag, name) in KFUNC_FLAGS {
        if flags.has(flag) {
            text.push(' ');
            text.push_str(name);
        }
    }
    Some(text)
}

fn write_type(btf: &Btf<'_>, id: TypeId, out: &mut String) -> fmt::Result {
    let id = btf.skip_modifiers(id).unwrap_or(TypeId::VOID);
    if id == TypeId::VOID {
        out.push_str("void");
        return Ok(());
    }
    let ty = btf.at(id);
    if let Shape::Ptr(pointee) = ty.shape() {
        write_type(btf, pointee, out)?;
        out.push('*');
        return Ok(());
    }
    let size = btf.size_of(id).unwrap_or(0);
    if is_number(btf, id) {
        return write!(out, "int:{size}");
    }
    write!(out, "{}", ty.name())?;
    if is_memory(btf, id, 0) {
        write!(out, ":{size}")?;
    }
    Ok(())
}

fn is_number(btf: &Btf<'_>, id: TypeId) -> bool {
    matches!(btf.at(id).kind(), Kind::Int | Kind::Enum | Kind::Enum64)
}

/// True for structures of numbers, which are memory where a kfunc takes one.
fn is_memory(btf: &Btf<'_>, id: TypeId, depth: u32) -> bool {
    let Some(composite) = btf.at(id).as_composite() else {
        return false;
    };
    depth <= MOST_NESTED
        && composite.members().all(|member| {
            let ty = btf.skip_modifiers(member.ty).unwrap_or(TypeId::VOID);
            match btf.at(ty).shape() {
                Shape::Array(array) => {
                    let element = btf.skip_modifiers(array.element);
                    element.is_some_and(|element| is_number(btf, element))
                }
                _ => is_number(btf, ty) || is_memory(btf, ty, depth + 1),
            }
        })
}
