//! Lines of prototypes and of sets of helpers.
//!
//! `proto NUMBER FUNCTION RETURN:STRUCTURE MARKS ARGUMENT…`, an argument with its size or
//! structure behind `:`; `helpers PROTOTYPE…`, a prototype by its number with the
//! capability that it needs behind `:`.

use std::fmt::{self, Write as _};

use super::words::{Words, base, flags, kernel_type, write_type};
use crate::registry::{
    ArgBase, ArgDetail, ArgType, Capability, HelperEntry, HelperProto, Restriction, RetBase,
    RetType, TypeFlags,
};

type Mark = fn(&mut HelperProto) -> &mut bool;

/// Marks of a prototype.
const MARKS: &[(&str, Mark)] = &[
    ("gpl", |proto| &mut proto.gpl_only),
    ("pkt", |proto| &mut proto.pkt_access),
    ("sleep", |proto| &mut proto.might_sleep),
    ("fastcall", |proto| &mut proto.allow_fastcall),
];

/// Checks of the attach target, marks too.
const RESTRICTIONS: &[(&str, Restriction)] = &[
    ("d_path", Restriction::DPath),
    ("sleepable_hook", Restriction::SleepableHook),
    ("sk_storage", Restriction::SkStorageTracing),
];

/// Capabilities of an entry.
const CAPABILITIES: &[(&str, Capability)] = &[
    ("", Capability::None),
    ("bpf", Capability::Bpf),
    ("perfmon", Capability::Perfmon),
];

fn restriction(word: &str) -> Option<Restriction> {
    let found = RESTRICTIONS.iter().find(|(name, _)| *name == word);
    found.map(|(_, restriction)| *restriction)
}

/// Reads a prototype.
pub(super) fn read_proto(mut words: Words<'_>) -> Option<HelperProto> {
    let id = words.next()?.parse().ok()?;
    let name = crate::helpers::helper(i32::try_from(id).ok()?)?.name;
    let function = words.next()?.into();
    let (ret, ret_btf) = words.next()?.split_once(':').unwrap_or_default();
    let ret = RetType::new(
        base(ret, "RET_", RetBase::ALL, |base| base.name())?,
        flags(ret)?,
    );
    let mut proto = HelperProto {
        id,
        name: name.into(),
        function,
        args: [ArgType::new(ArgBase::DontCare, TypeFlags::NONE); 5],
        arg_details: Default::default(),
        ret,
        ret_btf: kernel_type(ret_btf),
        gpl_only: false,
        pkt_access: false,
        might_sleep: false,
        allow_fastcall: false,
        restriction: None,
    };
    for word in words.next()?.split(',').filter(|word| *word != "-") {
        match MARKS.iter().find(|(mark, _)| *mark == word) {
            Some((_, of)) => *of(&mut proto) = true,
            None => proto.restriction = Some(restriction(word)?),
        }
    }
    for (word, index) in words.zip(0..) {
        let (ty, detail) = word.split_once(':').unwrap_or((word, ""));
        let base = base(ty, "ARG_", ArgBase::ALL, |base| base.name())?;
        *proto.args.get_mut(index)? = ArgType::new(base, flags(ty)?);
        proto.arg_details[index] = match detail.parse() {
            Ok(size) => ArgDetail::Size(size),
            Err(_) => kernel_type(detail).map_or(ArgDetail::None, ArgDetail::Btf),
        };
    }
    Some(proto)
}

/// Writes a prototype.
pub(super) fn write_proto(proto: &HelperProto, out: &mut String) -> fmt::Result {
    write!(out, "proto {} {} ", proto.id, proto.function)?;
    write_type(proto.ret.base.name(), "RET_", proto.ret.flags, out);
    out.push(':');
    out.push_str(proto.ret_btf.as_ref().map_or("", |ty| &ty.name));
    let mut marked = proto.clone();
    let marks = MARKS.iter().filter(|(_, of)| *of(&mut marked));
    let mut words: Vec<&str> = marks.map(|(mark, _)| *mark).collect();
    let restrictions = RESTRICTIONS.iter();
    let of_proto = restrictions.filter(|(_, restriction)| proto.restriction == Some(*restriction));
    words.extend(of_proto.map(|(word, _)| *word));
    let words = match words[..] {
        [] => "-".to_owned(),
        _ => words.join(","),
    };
    write!(out, " {words}")?;
    for (arg, detail) in proto
        .args
        .iter()
        .zip(&proto.arg_details)
        .take(proto.arg_count())
    {
        out.push(' ');
        write_type(arg.base.name(), "ARG_", arg.flags, out);
        match detail {
            ArgDetail::None => {}
            ArgDetail::Size(size) => write!(out, ":{size}")?,
            ArgDetail::Btf(ty) => write!(out, ":{}", ty.name)?,
        }
    }
    out.push('\n');
    Ok(())
}

/// Reads a set of helpers, whose prototypes stand before it.
pub(super) fn read_set(protos: &[HelperProto], words: Words<'_>) -> Option<Vec<HelperEntry>> {
    let read = |word: &str| read_entry(protos, word);
    let mut set = words.map(read).collect::<Option<Vec<_>>>()?;
    set.sort_by_key(|entry| entry.id);
    Some(set)
}

fn read_entry(protos: &[HelperProto], word: &str) -> Option<HelperEntry> {
    let (proto, capability) = word.split_once(':').unwrap_or((word, ""));
    let proto = proto.parse().ok()?;
    let found = CAPABILITIES.iter().find(|(name, _)| *name == capability)?;
    Some(HelperEntry {
        id: protos.get(proto as usize)?.id,
        proto,
        capability: found.1,
    })
}

/// Writes a set of helpers.
pub(super) fn write_set(set: &[HelperEntry], out: &mut String) -> fmt::Result {
    out.push_str("helpers");
    for entry in set {
        write!(out, " {}", entry.proto)?;
        let mut found = CAPABILITIES.iter();
        let found = found.find(|(name, other)| !name.is_empty() && *other == entry.capability);
        if let Some((name, _)) = found {
            write!(out, ":{name}")?;
        }
    }
    out.push('\n');
    Ok(())
}
