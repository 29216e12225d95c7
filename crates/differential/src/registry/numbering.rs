//! Numbers of types in prototypes, which change between releases.
//!
//! The registry has the numbers of Linux 6.18 (`spec::registry::ArgType`). Each kernel tells its own by
//! name, in the enumerations of its BTF: since Linux 5.17 a base and flags, before a number for each
//! combination (`WHOLE_ARGS`).

use std::collections::BTreeMap;

use btf::{Btf, Kind, Shape};
use spec::registry::{ArgBase, ArgType, BASE_MASK, RetBase, RetType, TypeFlags};

/// Names that were others before or are others since.
const RENAMED: &[(&str, &str)] = &[
    ("ARG_MEM_SIZE", "ARG_CONST_SIZE"),
    ("ARG_MEM_SIZE_OR_ZERO", "ARG_CONST_SIZE_OR_ZERO"),
    ("ARG_PTR_TO_ALLOC_MEM", "ARG_PTR_TO_RINGBUF_MEM"),
    ("ARG_PTR_TO_KPTR", "ARG_KPTR_XCHG_DEST"),
    // Numbers alone: 6.18 takes what it takes for a number.
    ("ARG_SCALAR", "ARG_ANYTHING"),
    ("RET_PTR_TO_ALLOC_MEM", "RET_PTR_TO_MEM"),
];

/// Enumerators of kernels without flags that are a base with flags: what they are since, and the bytes of
/// memory of fixed size.
const WHOLE_ARGS: &[(&str, &str, TypeFlags, Option<u32>)] = {
    const UNINIT: TypeFlags = TypeFlags::MEM_UNINIT.with(TypeFlags::MEM_WRITE);
    // Memory of numbers was read before the call as any other: it must be initialised.
    const NUMBER: TypeFlags = TypeFlags::MEM_FIXED_SIZE.with(TypeFlags::MEM_ALIGNED);
    &[
        ("ARG_PTR_TO_UNINIT_MEM", "ARG_PTR_TO_MEM", UNINIT, None),
        (
            "ARG_PTR_TO_UNINIT_MAP_VALUE",
            "ARG_PTR_TO_MAP_VALUE",
            UNINIT,
            None,
        ),
        ("ARG_PTR_TO_INT", "ARG_PTR_TO_MEM", NUMBER, Some(4)),
        ("ARG_PTR_TO_LONG", "ARG_PTR_TO_MEM", NUMBER, Some(8)),
    ]
};

/// End of the names of pointers that may be null, where kernels have no flags.
const OR_NULL: &str = "_OR_NULL";

/// Place of the fields of a prototype (`struct bpf_func_proto`).
#[derive(Clone, Copy, Debug)]
pub struct ProtoLayout {
    /// Types of arguments.
    pub args: u64,
    /// What the types of arguments refer to.
    pub details: u64,
    /// The BTF id that is returned.
    pub ret_btf: u64,
    /// The function that allows calls.
    pub allowed: u64,
}

/// A kernel's numbers.
pub struct Numbering {
    args: BTreeMap<u32, ArgBase>,
    returns: BTreeMap<u32, RetBase>,
    /// `None` of kernels whose enumerators are whole types.
    flags: Option<Vec<(u32, TypeFlags)>>,
    whole_args: BTreeMap<u32, (ArgType, Option<u32>)>,
    whole_returns: BTreeMap<u32, RetType>,
    /// Place of the fields of a prototype.
    pub layout: ProtoLayout,
}

impl Numbering {
    /// The numbers of the kernel with this BTF; `None` if it has none of the types.
    pub fn of(btf: &Btf<'_>) -> Option<Numbering> {
        let renamed = |name: &str| -> String {
            let new = RENAMED.iter().find(|(old, _)| *old == name);
            new.map_or(name, |(_, new)| new).to_owned()
        };
        let bases = |name| {
            let all = enumerators(btf, name)?.into_iter();
            let plain = all.filter(|(_, number)| *number <= BASE_MASK);
            Some(
                plain
                    .map(|(name, number)| (renamed(&name), number))
                    .collect::<Vec<_>>(),
            )
        };
        let args = bases("bpf_arg_type")?
            .into_iter()
            .filter_map(|(name, number)| {
                let base = ArgBase::ALL.iter().find(|base| base.name() == name)?;
                Some((number, *base))
            });
        let returns = bases("bpf_return_type")?
            .into_iter()
            .filter_map(|(name, number)| {
                let base = RetBase::ALL.iter().find(|base| base.name() == name)?;
                Some((number, *base))
            });
        let flags = enumerators(btf, "bpf_type_flag").map(|all| {
            let has_ringbuf = all.iter().any(|(name, _)| name == "MEM_RINGBUF");
            let flags = all.iter().filter_map(|(name, number)| {
                // Memory of ring buffers was what is allocated, before programs allocated objects.
                let name = match name.as_str() {
                    "MEM_ALLOC" if !has_ringbuf => "MEM_RINGBUF",
                    name => name,
                };
                let (flag, _) = TypeFlags::ALL.iter().find(|(_, known)| *known == name)?;
                Some((*number, *flag))
            });
            flags.collect()
        });
        let whole = |name| Some(enumerators(btf, name)?.into_iter());
        let whole_args = whole("bpf_arg_type")?
            .filter_map(|(name, number)| Some((number, whole_arg(&name, &renamed)?)));
        let whole_returns = whole("bpf_return_type")?
            .filter_map(|(name, number)| Some((number, whole_return(&name, &renamed)?)));
        Some(Numbering {
            args: args.collect(),
            returns: returns.collect(),
            flags,
            whole_args: whole_args.collect(),
            whole_returns: whole_returns.collect(),
            layout: layout(btf)?,
        })
    }

    /// The type of an argument; `None` if Linux 6.18 has none of that name.
    pub fn arg(&self, raw: u32) -> Option<ArgType> {
        if self.flags.is_none() {
            return Some(self.whole_args.get(&raw)?.0);
        }
        let base = self.args.get(&(raw & BASE_MASK))?;
        Some(base.with(self.flags(raw)?))
    }

    /// Bytes of the memory that an argument points to, where its type alone says so.
    pub fn size(&self, raw: u32) -> Option<u32> {
        let is_whole = self.flags.is_none();
        self.whole_args.get(&raw).filter(|_| is_whole)?.1
    }

    /// The type of a result.
    pub fn ret(&self, raw: u32) -> Option<RetType> {
        if self.flags.is_none() {
            return self.whole_returns.get(&raw).copied();
        }
        let base = self.returns.get(&(raw & BASE_MASK))?;
        Some(base.with(self.flags(raw)?))
    }

    /// True if a result with this number may have the id of a structure.
    pub fn may_return_structure(&self, raw: u32) -> bool {
        (self.ret(raw)).is_some_and(|ret| {
            matches!(
                ret.base,
                RetBase::PtrToMem | RetBase::PtrToMemOrBtfId | RetBase::PtrToBtfId
            )
        })
    }

    fn flags(&self, raw: u32) -> Option<TypeFlags> {
        let mut rest = raw & !BASE_MASK;
        let mut flags = TypeFlags::NONE;
        for (number, flag) in self.flags.iter().flatten() {
            if rest & number != 0 {
                rest &= !number;
                flags = flags.with(*flag);
            }
        }
        (rest == 0).then_some(flags)
    }
}

/// The argument that an enumerator without flags is.
fn whole_arg(name: &str, renamed: &dyn Fn(&str) -> String) -> Option<(ArgType, Option<u32>)> {
    let base = |name: &str| {
        let name = renamed(name);
        ArgBase::ALL
            .iter()
            .find(|base| base.name() == name)
            .copied()
    };
    if let Some(base) = base(name) {
        return Some((base.into(), None));
    }
    if let Some((_, of, flags, size)) = WHOLE_ARGS.iter().find(|(known, ..)| *known == name) {
        return Some((base(of)?.with(*flags), *size));
    }
    let base = base(name.strip_suffix(OR_NULL)?)?;
    Some((base.with(TypeFlags::PTR_MAYBE_NULL), None))
}

/// The result that an enumerator without flags is.
fn whole_return(name: &str, renamed: &dyn Fn(&str) -> String) -> Option<RetType> {
    let (plain, null) = match name.strip_suffix(OR_NULL) {
        Some(plain) => (plain, TypeFlags::PTR_MAYBE_NULL),
        None => (name, TypeFlags::NONE),
    };
    // Memory of ring buffers alone was allocated.
    let memory = match plain {
        "RET_PTR_TO_ALLOC_MEM" => TypeFlags::MEM_RINGBUF,
        _ => TypeFlags::NONE,
    };
    let name = renamed(plain);
    let base = RetBase::ALL.iter().find(|base| base.name() == name)?;
    Some(base.with(null.with(memory)))
}

/// Names and numbers of an enumeration.
pub(super) fn enumerators(btf: &Btf<'_>, name: &str) -> Option<Vec<(String, u32)>> {
    let Shape::Enum(values) = btf.find(Kind::Enum, name)?.shape() else {
        return None;
    };
    let named = values.values().filter_map(|value| {
        let name = btf.string(value.name).to_str()?.to_owned();
        Some((name, value.value as u32))
    });
    Some(named.collect())
}

/// Arguments and details are the two unions without a name.
fn layout(btf: &Btf<'_>) -> Option<ProtoLayout> {
    let proto = btf.find(Kind::Struct, "bpf_func_proto")?.as_composite()?;
    let at = |wanted: &str| {
        let mut members = proto.members();
        let found = members.find(|member| btf.string(member.name).to_str() == Some(wanted))?;
        Some(u64::from(found.bit_offset / 8))
    };
    let unnamed = proto
        .members()
        .filter(|member| btf.string(member.name).is_empty());
    let unnamed: Vec<u64> = unnamed
        .map(|member| u64::from(member.bit_offset / 8))
        .collect();
    let [args, details] = unnamed[..] else {
        return None;
    };
    Some(ProtoLayout {
        args,
        details,
        ret_btf: at("ret_btf_id")?,
        allowed: at("allowed")?,
    })
}
