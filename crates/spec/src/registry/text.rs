//! The text form of a registry: a line for each fact, words apart by spaces.
//!
//! ```text
//! proto 1 bpf_map_lookup_elem bpf_map_lookup_elem PTR_TO_MAP_VALUE|PTR_MAYBE_NULL pkt CONST_MAP_PTR PTR_TO_MAP_KEY
//! helpers 0 3 5:bpf 9:perfmon
//! layout fields
//! field 0-188/4 1248 - 4 SCALAR_VALUE 4
//! program xdp 33 helpers=2 layout=1 returns=0..1 asked
//! kfunc bpf_task_acquire 0x15 tracing,syscall
//! map array helpers=1,2,3 direct sleepable fields=0x1
//! list safe_rcu task_struct cpus_ptr
//! ```
//!
//! Prototypes, sets of helpers and layouts are numbered from 0 in the order of their
//! lines. Reading is linear in the text.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

use super::{
    ArgBase, ArgDetail, ArgType, Capability, FieldRule, HelperEntry, HelperProto, KernelType,
    Kfunc, KfuncFlags, Layout, Limits, Lists, MapTraits, ProgramRules, ProgramTypes, RegBase,
    RegType, Registry, Restriction, RetBase, RetType, ReturnRange, SafeList, TypeFlags, Widths,
};
use crate::maps::MapKind;
use crate::programs::ProgramType;

/// A line that says nothing that is understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// Number of the line, from 1 on.
    pub line: usize,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {} of the registry is malformed", self.line)
    }
}

impl std::error::Error for Malformed {}

/// Reads a registry. Ids of BTF types are 0 until [`Registry::resolve`].
pub fn parse(text: &str) -> Result<Registry, Malformed> {
    let mut registry = Registry {
        protos: Vec::new(),
        helper_sets: Vec::new(),
        layouts: Vec::new(),
        programs: BTreeMap::new(),
        maps: BTreeMap::new(),
        kfuncs: BTreeMap::new(),
        kfunc_ids: BTreeMap::new(),
        limits: Limits::LINUX_6_18,
        lists: Lists::default(),
    };
    for (line, number) in text.lines().zip(1..) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        read_line(&mut registry, line).ok_or(Malformed { line: number })?;
    }
    Ok(registry)
}

fn read_line(registry: &mut Registry, line: &str) -> Option<()> {
    let mut words = line.split(' ');
    match words.next()? {
        "proto" => registry.protos.push(read_proto(words)?),
        "helpers" => {
            let read = |word: &str| read_entry(&registry.protos, word);
            let mut set = words.map(read).collect::<Option<Vec<_>>>()?;
            set.sort_by_key(|entry| entry.id);
            registry.helper_sets.push(set);
        }
        "layout" => registry.layouts.push(match words.next()? {
            "fields" => Layout::Fields(Vec::new()),
            "btf" => Layout::Btf,
            "target" => Layout::OfTarget,
            _ => return None,
        }),
        "field" => match registry.layouts.last_mut()? {
            Layout::Fields(rules) => rules.push(read_field(words)?),
            _ => return None,
        },
        "program" => {
            let (key, rules) = read_program(words)?;
            registry.programs.insert(key, rules);
        }
        "kfunc" => {
            let kfunc = read_kfunc(words)?;
            registry.kfuncs.insert(kfunc.name.clone(), kfunc);
        }
        "map" => {
            let traits = read_map(words)?;
            registry.maps.insert(traits.kind, traits);
        }
        "list" => read_list(&mut registry.lists, words)?,
        _ => return None,
    }
    Some(())
}

type Words<'t> = std::str::Split<'t, char>;

fn read_proto(mut words: Words<'_>) -> Option<HelperProto> {
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
        name,
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
    for word in words.next()?.split(',') {
        match word {
            "-" => {}
            "gpl" => proto.gpl_only = true,
            "pkt" => proto.pkt_access = true,
            "sleep" => proto.might_sleep = true,
            "fastcall" => proto.allow_fastcall = true,
            "d_path" => proto.restriction = Some(Restriction::DPath),
            "sk_storage" => proto.restriction = Some(Restriction::SkStorageTracing),
            _ => return None,
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

fn kernel_type(name: &str) -> Option<KernelType> {
    (!name.is_empty()).then(|| KernelType {
        name: name.into(),
        btf_id: 0,
    })
}

/// The base of a type written without the prefix of its names, before any flag.
fn base<B: Copy>(text: &str, prefix: &str, all: &[B], name: fn(B) -> &'static str) -> Option<B> {
    let text = text.split('|').next()?;
    all.iter()
        .copied()
        .find(|&base| name(base).strip_prefix(prefix) == Some(text))
}

fn flags(text: &str) -> Option<TypeFlags> {
    text.split('|')
        .skip(1)
        .try_fold(TypeFlags::NONE, |flags, word| {
            let found = TypeFlags::ALL.iter().find(|(_, name)| *name == word)?;
            Some(flags.with(found.0))
        })
}

fn read_entry(protos: &[HelperProto], word: &str) -> Option<HelperEntry> {
    let (proto, capability) = word.split_once(':').unwrap_or((word, ""));
    let proto = proto.parse().ok()?;
    Some(HelperEntry {
        id: protos.get(proto as usize)?.id,
        proto,
        capability: match capability {
            "" => Capability::None,
            "bpf" => Capability::Bpf,
            "perfmon" => Capability::Perfmon,
            _ => return None,
        },
    })
}

fn read_field(mut words: Words<'_>) -> Option<FieldRule> {
    let (range, step) = words.next()?.split_once('/')?;
    let (first, last) = range.split_once('-')?;
    let mut widths = || {
        let digits = words.next()?.chars().filter(|&digit| digit != '-');
        let sum = digits
            .map(|digit| digit.to_digit(10))
            .sum::<Option<u32>>()?;
        Some(Widths(u8::try_from(sum).ok()?))
    };
    let (reads, signed_reads, writes) = (widths()?, widths()?, widths()?);
    let (value, btf) = {
        let word = words.next()?;
        word.split_once(':').unwrap_or((word, ""))
    };
    Some(FieldRule {
        first: first.parse().ok()?,
        last: last.parse().ok()?,
        step: step.parse().ok().filter(|&step| step > 0)?,
        reads,
        signed_reads,
        writes,
        value: RegType::new(
            base(value, "", RegBase::ALL, |base| base.name())?,
            flags(value)?,
        ),
        btf: kernel_type(btf),
        field_size: words.next()?.parse().ok()?,
    })
}

type ProgramKey = (ProgramType, Option<u32>);

fn read_program(mut words: Words<'_>) -> Option<(ProgramKey, ProgramRules)> {
    let kind = ProgramType::from_name(words.next()?)?;
    let attach = match words.next()? {
        "*" => None,
        number => Some(number.parse().ok()?),
    };
    let mut rules = ProgramRules {
        helpers: words.next()?.strip_prefix("helpers=")?.parse().ok()?,
        layout: None,
        returns: None,
        is_asked: false,
    };
    for word in words {
        match word.split_once('=') {
            Some(("layout", number)) => rules.layout = Some(number.parse().ok()?),
            Some(("returns", range)) => {
                let (min, max) = range.split_once("..")?;
                rules.returns = Some(ReturnRange {
                    min: min.parse().ok()?,
                    max: max.parse().ok()?,
                });
            }
            None if word == "asked" => rules.is_asked = true,
            _ => return None,
        }
    }
    Some(((kind, attach), rules))
}

fn read_kfunc(mut words: Words<'_>) -> Option<Kfunc> {
    let name = words.next()?.into();
    let flags = words.next()?.strip_prefix("0x")?;
    let types = words.next()?.split(',').filter(|name| *name != "-");
    let types = types.map(ProgramType::from_name);
    Some(Kfunc {
        name,
        btf_id: 0,
        flags: KfuncFlags(u32::from_str_radix(flags, 16).ok()?),
        program_types: types
            .collect::<Option<Vec<_>>>()?
            .into_iter()
            .fold(ProgramTypes::default(), |types, kind| types.with(kind)),
    })
}

fn read_map(mut words: Words<'_>) -> Option<MapTraits> {
    let name = words.next()?;
    let kind = MapKind::ALL.iter().find(|kind| kind.name() == name)?;
    let mut traits = MapTraits {
        kind: *kind,
        helpers: Box::default(),
        has_direct_value: false,
        in_sleepable: false,
        special_fields: 0,
    };
    for word in words {
        match word.split_once('=') {
            Some(("helpers", list)) => {
                let numbers = list.split(',').map(|number| number.parse().ok());
                traits.helpers = numbers.collect::<Option<_>>()?;
            }
            Some(("fields", bits)) => {
                let bits = bits.strip_prefix("0x")?;
                traits.special_fields = u32::from_str_radix(bits, 16).ok()?;
            }
            None if word == "direct" => traits.has_direct_value = true,
            None if word == "sleepable" => traits.in_sleepable = true,
            _ => return None,
        }
    }
    Some(traits)
}

fn read_list(lists: &mut Lists, mut words: Words<'_>) -> Option<()> {
    let list = words.next()?;
    if let Some(safe) = SafeList::ALL
        .into_iter()
        .find(|safe| safe.suffix().strip_prefix("__") == Some(list))
    {
        let structure: Box<str> = words.next()?.into();
        lists
            .safe_fields
            .extend(words.map(|field| (safe, structure.clone(), field.into())));
        return Some(());
    }
    match list {
        "nullable_tracepoint_args" => {
            let name = words.next()?.into();
            let mask = words.next()?.strip_prefix("0x")?;
            let mask = u64::from_str_radix(mask, 16).ok()?;
            lists.nullable_tracepoint_args.insert(name, mask);
        }
        "destructor" => {
            lists
                .destructors
                .insert(words.next()?.into(), words.next()?.into());
        }
        name => {
            let (_, get) = NAME_LISTS.iter().find(|(list, _)| *list == name)?;
            get(lists).extend(words.map(Box::from));
        }
    }
    Some(())
}

type NameList = fn(&mut Lists) -> &mut std::collections::BTreeSet<Box<str>>;

const NAME_LISTS: &[(&str, NameList)] = &[
    ("d_path", |lists| &mut lists.d_path),
    ("lsm_hooks", |lists| &mut lists.lsm_hooks),
    ("lsm_sleepable", |lists| &mut lists.lsm_sleepable),
    ("lsm_disabled", |lists| &mut lists.lsm_disabled),
    ("lsm_untrusted", |lists| &mut lists.lsm_untrusted),
    ("lsm_bool", |lists| &mut lists.lsm_bool),
    ("attach_denied", |lists| &mut lists.attach_denied),
];

/// The text of a registry; [`parse`] reads it back.
pub fn write(registry: &Registry) -> String {
    let mut text = String::new();
    let out = &mut text;
    // Writing to a string cannot fail.
    let _ = write_all(registry, out);
    text
}

fn write_all(registry: &Registry, out: &mut String) -> fmt::Result {
    for proto in &registry.protos {
        write_proto(proto, out)?;
    }
    for set in &registry.helper_sets {
        out.push_str("helpers");
        for entry in set {
            write!(out, " {}", entry.proto)?;
            out.push_str(match entry.capability {
                Capability::None => "",
                Capability::Bpf => ":bpf",
                Capability::Perfmon => ":perfmon",
            });
        }
        out.push('\n');
    }
    for layout in &registry.layouts {
        match layout {
            Layout::Btf => out.push_str("layout btf\n"),
            Layout::OfTarget => out.push_str("layout target\n"),
            Layout::Fields(rules) => {
                out.push_str("layout fields\n");
                for rule in rules {
                    write_field(rule, out)?;
                }
            }
        }
    }
    for ((kind, attach), rules) in &registry.programs {
        write!(out, "program {kind} ")?;
        match attach {
            Some(attach) => write!(out, "{attach}")?,
            None => out.push('*'),
        }
        write!(out, " helpers={}", rules.helpers)?;
        if let Some(layout) = rules.layout {
            write!(out, " layout={layout}")?;
        }
        if let Some(range) = rules.returns {
            write!(out, " returns={}..{}", range.min, range.max)?;
        }
        out.push_str(if rules.is_asked { " asked\n" } else { "\n" });
    }
    for kfunc in registry.kfuncs.values() {
        let types = ProgramType::ALL.iter();
        let types = types.filter(|kind| kfunc.program_types.has(**kind));
        let types: Vec<&str> = types.map(|kind| kind.name()).collect();
        let types = if types.is_empty() {
            "-".to_owned()
        } else {
            types.join(",")
        };
        writeln!(out, "kfunc {} {:#x} {types}", kfunc.name, kfunc.flags.0)?;
    }
    for traits in registry.maps.values() {
        write!(out, "map {}", traits.kind.name())?;
        let helpers: Vec<String> = traits.helpers.iter().map(u32::to_string).collect();
        if !helpers.is_empty() {
            write!(out, " helpers={}", helpers.join(","))?;
        }
        out.push_str(if traits.has_direct_value {
            " direct"
        } else {
            ""
        });
        out.push_str(if traits.in_sleepable {
            " sleepable"
        } else {
            ""
        });
        if traits.special_fields != 0 {
            write!(out, " fields={:#x}", traits.special_fields)?;
        }
        out.push('\n');
    }
    write_lists(&registry.lists, out)
}

fn write_proto(proto: &HelperProto, out: &mut String) -> fmt::Result {
    write!(out, "proto {} {} ", proto.id, proto.function)?;
    write_type(proto.ret.base.name(), "RET_", proto.ret.flags, out);
    out.push(':');
    out.push_str(proto.ret_btf.as_ref().map_or("", |ty| &ty.name));
    let words = [
        (proto.gpl_only, "gpl"),
        (proto.pkt_access, "pkt"),
        (proto.might_sleep, "sleep"),
        (proto.allow_fastcall, "fastcall"),
        (proto.restriction == Some(Restriction::DPath), "d_path"),
        (
            proto.restriction == Some(Restriction::SkStorageTracing),
            "sk_storage",
        ),
    ];
    let words: Vec<&str> = words
        .iter()
        .filter(|word| word.0)
        .map(|word| word.1)
        .collect();
    write!(
        out,
        " {}",
        if words.is_empty() {
            "-".to_owned()
        } else {
            words.join(",")
        }
    )?;
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

fn write_type(name: &str, prefix: &str, flags: TypeFlags, out: &mut String) {
    out.push_str(name.strip_prefix(prefix).unwrap_or(name));
    for (flag, name) in TypeFlags::ALL {
        if flags.has(*flag) {
            out.push('|');
            out.push_str(name);
        }
    }
}

fn write_field(rule: &FieldRule, out: &mut String) -> fmt::Result {
    write!(out, "field {}-{}/{}", rule.first, rule.last, rule.step)?;
    for widths in [rule.reads, rule.signed_reads, rule.writes] {
        out.push(' ');
        if widths == Widths::default() {
            out.push('-');
        }
        for width in [1, 2, 4, 8] {
            if widths.has(width) {
                write!(out, "{width}")?;
            }
        }
    }
    out.push(' ');
    write_type(rule.value.base.name(), "", rule.value.flags, out);
    if let Some(ty) = &rule.btf {
        write!(out, ":{}", ty.name)?;
    }
    writeln!(out, " {}", rule.field_size)
}

fn write_lists(lists: &Lists, out: &mut String) -> fmt::Result {
    for (list, structure, field) in &lists.safe_fields {
        let list = list.suffix().trim_start_matches('_');
        writeln!(out, "list {list} {structure} {field}")?;
    }
    for (name, mask) in &lists.nullable_tracepoint_args {
        writeln!(out, "list nullable_tracepoint_args {name} {mask:#x}")?;
    }
    for (structure, function) in &lists.destructors {
        writeln!(out, "list destructor {structure} {function}")?;
    }
    let mut lists = lists.clone();
    for (list, get) in NAME_LISTS {
        let names = get(&mut lists);
        if !names.is_empty() {
            let names: Vec<&str> = names.iter().map(|name| &**name).collect();
            writeln!(out, "list {list} {}", names.join(" "))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
proto 1 bpf_map_lookup_elem PTR_TO_MAP_VALUE|PTR_MAYBE_NULL: pkt CONST_MAP_PTR PTR_TO_MAP_KEY
proto 184 get_func_ret INTEGER: - PTR_TO_CTX PTR_TO_MEM|MEM_FIXED_SIZE|MEM_WRITE:8
proto 158 bpf_get_current_task_btf PTR_TO_BTF_ID|PTR_TRUSTED:task_struct -
helpers 0 2:perfmon 1:bpf
layout fields
field 0-8/4 124 - 4 SCALAR_VALUE 4
field 16-16/1 8 - - PTR_TO_BTF_ID|PTR_TRUSTED:sk_buff 8
layout btf
program xdp * helpers=0 layout=0 asked
program tracing 28 helpers=0 layout=1 returns=0..1 asked
kfunc bpf_task_acquire 0x15 tracing,syscall
map array helpers=1,2 direct sleepable fields=0x3
list safe_rcu task_struct cpus_ptr
list nullable_tracepoint_args sched_pi_setprio 0x10
list destructor task_struct bpf_task_release_dtor
list d_path dentry_open vfs_truncate
";

    #[test]
    fn text_is_read_back() {
        let registry = parse(TEXT).unwrap();
        let written = write(&registry);
        assert_eq!(parse(&written), Ok(registry.clone()));
        for line in TEXT.lines().filter(|line| !line.starts_with("helpers")) {
            assert!(
                written.lines().any(|other| other == line),
                "{line}\n{written}"
            );
        }
        assert_eq!(registry.protos[1].arg_details[1], ArgDetail::Size(8));
        assert_eq!(
            registry.protos[2].ret_btf.as_ref().unwrap().name.as_ref(),
            "task_struct"
        );
    }

    #[test]
    fn malformed_lines_are_named() {
        for line in [
            "proto 0 x INTEGER: -",
            "nonsense",
            "field 0-0/1 1 - - SCALAR_VALUE 1",
            "program x * helpers=0",
        ] {
            assert_eq!(
                parse(&format!("# a comment\n{line}\n")),
                Err(Malformed { line: 2 }),
                "{line}"
            );
        }
    }
}
