//! Words for maps that the kernel does not create, and that programs misuse.

use btf::fields::FieldFault;
use program::creation::{EntriesRule, InnerFault, MapFault, RefusedMap, SizeRule, TypeRule};
use spec::maps::{MapFlags, MapKind};

use verifier::reason::{Explanation, MapMisuse};

use super::{Words, any_of};

/// The words for a map: the violated rule, and the edit of the definition.
pub(super) fn words(map: &RefusedMap) -> Words {
    let fault = &map.refusal.fault;
    let words = Words::new("map-creation", map.to_string());
    match help(&map.name, fault) {
        Some(help) => words.help(help),
        None => words,
    }
}

/// The words for a map that the program or the helper may not use.
pub(super) fn misuse(explanation: &Explanation, map: &str, of: &str, fault: &MapMisuse) -> Words {
    let (name, map) = (map, format!("map `{map}` ({of})"));
    match fault {
        MapMisuse::WriteForbidden => {
            Words::new("map-write", format!("{map} may not be written by programs"))
                .needed("a map without BPF_F_RDONLY_PROG")
                .help("constants (`const`, .rodata) and maps with BPF_F_RDONLY_PROG are only read")
        }
        MapMisuse::ReadForbidden => {
            Words::new("map-read", format!("{map} may not be read by programs"))
                .needed("a map without BPF_F_WRONLY_PROG")
                .help("take BPF_F_WRONLY_PROG from the map's flags")
        }
        MapMisuse::Helper { helper, kinds } => {
            Words::new("map-helper", format!("`{helper}` does not take {map}"))
                .needed(match &kinds[..] {
                    [] => String::from("a map of a kind that the helper takes"),
                    kinds => format!("a map of kind {}", any_of(kinds)),
                })
                .help("check the `type` of the map's definition, and which helper is for its kind")
        }
        MapMisuse::NoKeys(helper) => Words::new(
            "map-without-keys",
            format!("`{helper}` takes a key, and {map} has none"),
        )
        .needed("a map with keys, or a helper that takes none")
        .help(
            "bpf_map_push_elem, bpf_map_peek_elem and bpf_map_pop_elem are for queues and stacks, \
             the first two for Bloom filters",
        ),
        MapMisuse::None => Words::new("no-map", "the immediate is loaded as a map, and names none")
            .needed("the descriptor or index of a map")
            .help("refer to the map by its name (`&map`), which the loader resolves"),
        MapMisuse::Offset => Words::new(
            "map-offset",
            format!("an address in a value of {map} is beyond the value's end"),
        )
        .needed("an offset within the value")
        .help("check the index into the global variable"),
        MapMisuse::DirectValue => Words::new(
            "map-direct-value",
            format!("the address of a value of {map} is used directly"),
        )
        .needed("an array map, and an offset within its values")
        .help("look values of other maps up by bpf_map_lookup_elem"),
        MapMisuse::Field(field) => Words::new(
            "map-field",
            format!("values of {map} have no `{field}` here"),
        )
        .needed(format!("a map with BTF whose value contains a `{field}`"))
        .help(format!(
            "declare the map in SEC(\".maps\") with `__type(value, …)`, and put a `{field}` \
             in the structure"
        )),
        MapMisuse::NoBtf(field) => Words::new(
            "map-field",
            format!("values of {map} have no `{field}` here: the program is loaded without BTF"),
        )
        .needed("BTF that the kernel takes")
        .help("compile with -g; if the kernel refuses the BTF, a note before this says why: mend that first"),
        MapMisuse::UnusableFields { field, fault } => {
            let words = Words::new(
                "map-field",
                format!("values of {map} have no `{field}` here: {fault}"),
            )
            .needed("special fields that the kernel takes: if one is wrong, it takes none of a value");
            match field_help(fault) {
                Some(help) => words.help(help),
                None => words,
            }
        }
        MapMisuse::WithoutBtf { field, refusal } => Words::new(
            "map-field",
            format!(
                "values of {map} have no `{field}` here: the map is created without BTF, since {}",
                refusal.fault
            ),
        )
        .needed(format!("a map whose values can have a `{field}`"))
        .help(help(name, &refusal.fault).unwrap_or_else(|| {
            "a hash map or an array takes locks, timers and kptrs in its values".into()
        })),
        MapMisuse::Sleepable => Words::new(
            "map-sleepable",
            format!("sleepable programs cannot use {map}"),
        )
        .needed("an array, hash, ring buffer or local storage map")
        .help("another kind of map, or a program that does not sleep (SEC without .s)"),
        MapMisuse::ProgramType => Words::new(
            "map-program-type",
            format!("{} programs cannot use {map}", explanation.program_type.name()),
        )
        .needed("a map that this program type may use")
        .help(
            "maps that may allocate are not for tracing programs, and device-bound maps are for \
             programs of that device",
        ),
        MapMisuse::FieldForType(field) => Words::new(
            "map-program-type",
            format!(
                "{} programs cannot use {map}: its values have a {}",
                explanation.program_type.name(),
                match field.as_str() {
                    "bpf_{list_head,rb_root}" => "`bpf_list_head` or `bpf_rb_root`".to_owned(),
                    field => format!("`{field}`"),
                }
            ),
        )
        .needed("a map without such a member, or a program of another type")
        .help("keep what this program needs in a map of its own, or attach the program elsewhere (another SEC)"),
        MapMisuse::Second => Words::new(
            "map-second",
            format!("{map} is the second map of its kind in the program"),
        )
        .needed("one arena, and one cgroup storage of each kind, for a program")
        .help("put both into one map"),
    }
}

/// The edit of the definition of a map that mends a fault.
pub(super) fn help(map: &str, fault: &MapFault) -> Option<String> {
    Some(match fault {
        MapFault::Kind { map_type } if MapKind::from_number(*map_type).is_none() => {
            "another kind of map: no release that is known has this one".into()
        }
        MapFault::Kind { .. } => {
            "another kind of map, or a kernel that has it (`beebox show` names the release)".into()
        }
        MapFault::Privilege { capability, .. } => format!("load with {capability}"),
        MapFault::ZeroSeed => "load with CAP_SYS_ADMIN, or take BPF_F_ZERO_SEED out".into(),
        MapFault::KeySize { rule, .. } => sizes("key", *rule)?,
        MapFault::ValueSize { rule, .. } => sizes("value", *rule)?,
        MapFault::Element { .. } => format!("make the value of `{map}` smaller"),
        MapFault::Entries { rule, .. } => match rule {
            EntriesRule::None => format!("take `__uint(max_entries, …)` from `{map}`"),
            EntriesRule::AtLeastOne => {
                format!("add `__uint(max_entries, N);` to `{map}`, or set it before loading")
            }
            EntriesRule::AtMost(_) => format!("state fewer max_entries for `{map}`"),
            EntriesRule::Ring => "round the size up, as libbpf does: `__uint(max_entries, 4096 * \
                                  N);` with a power of two N"
                .into(),
        },
        MapFault::MissingFlag { flag, .. } => {
            let flag = flag.names().next()?;
            format!("add `__uint(map_flags, {flag});` to `{map}`")
        }
        MapFault::Flags { kind, flags } => match (kind, *flags) {
            (MapKind::LruHash | MapKind::LruPercpuHash, MapFlags::NO_PREALLOC) => {
                format!("take BPF_F_NO_PREALLOC from `{map}`: LRU maps are preallocated")
            }
            (_, flags) if flags.unknown() == 0 => {
                let names: Vec<_> = flags.names().collect();
                format!("take {} from the map_flags of `{map}`", names.join(" | "))
            }
            (_, flags) => format!("take {:#x} from the map_flags of `{map}`", flags.0),
        },
        MapFault::Exclusive { .. } => format!("state one of them in the map_flags of `{map}`"),
        MapFault::Extra { .. } | MapFault::Hashes { .. } => {
            format!("change `__ulong(map_extra, …)` of `{map}`, or leave it out")
        }
        MapFault::ArenaStart { .. } | MapFault::ArenaSpan { .. } => format!(
            "state an address in `__ulong(map_extra, …)` of `{map}` with room below the next 4 \
             GiB, or leave it out: the kernel chooses one"
        ),
        MapFault::Inner(InnerFault::Missing { .. }) => format!(
            "declare the inner maps of `{map}` with `__array(values, struct {{ … }});`, or let \
             the loader set them (bpf_map__set_inner_map_fd)"
        ),
        MapFault::Inner(_) => format!("change the inner maps of `{map}` (`__array(values, …)`)"),
        MapFault::Untyped { .. } | MapFault::Key(TypeRule::Stated) => {
            format!("declare `{map}` with `__type(key, …)` and `__type(value, …)`, compile with -g")
        }
        MapFault::Key(_) => format!("change `__type(key, …)` of `{map}`"),
        MapFault::Value(_) => format!("change `__type(value, …)` of `{map}`"),
        MapFault::FieldPrivilege => "load with CAP_BPF".into(),
        MapFault::FieldAccess => {
            format!("take BPF_F_RDONLY_PROG and BPF_F_WRONLY_PROG from `{map}`")
        }
        MapFault::Field { field, .. } => format!(
            "take the {} from the value of `{map}`, or use another kind of map",
            field.name()
        ),
        MapFault::Memory { .. } => {
            "state fewer max_entries or smaller values; BPF_F_NO_PREALLOC makes a hash map grow \
             as it is filled"
                .into()
        }
        MapFault::Token
        | MapFault::NumaNode { .. }
        | MapFault::Device
        | MapFault::KernelType
        | MapFault::Typed { .. } => return None,
        // The enumeration is not exhaustive outside of its crate.
        _ => return None,
    })
}

/// The edit of the size of a key or value.
fn sizes(side: &str, rule: SizeRule) -> Option<String> {
    Some(match rule {
        SizeRule::Exactly(0) => format!("take `__type({side}, …)` from the definition"),
        SizeRule::Exactly(4) => format!("`__type({side}, __u32);`"),
        SizeRule::Exactly(size) => format!("`__uint({side}_size, {size});`"),
        SizeRule::OneOf(sizes) => format!("`__uint({side}_size, {});`", sizes.first()?),
        SizeRule::AtLeastOne => format!("add `__type({side}, …);` to the definition"),
        SizeRule::AtMost(_) => format!("make the {side} smaller"),
        SizeRule::Between(5, _) => {
            "a key of a trie is a structure: the length of the prefix in bits (__u32), and the \
             data"
                .into()
        }
        SizeRule::Between(..) => format!("change the size of the {side}"),
        SizeRule::Frames(frame, most) => {
            format!("`__uint({side}_size, {frame} * N);` with N of at most {most}")
        }
    })
}

/// The edit that mends special fields of a structure.
pub(super) fn field_help(fault: &FieldFault) -> Option<&'static str> {
    Some(match fault {
        FieldFault::Pointer => {
            "give the pointer one of the tags `__kptr`, `__kptr_untrusted` and `__percpu_kptr`, and \
             define its structure: where only a declaration is compiled (no member is used), BTF \
             has no structure"
        }
        FieldFault::NoDestructor => {
            "the kernel keeps references to some structures only, such as task_struct and cgroup: \
             keep an id, or declare the member `__kptr_untrusted`"
        }
        FieldFault::Contains
        | FieldFault::ContainsNothing
        | FieldFault::ContainsPlain
        | FieldFault::Node
        | FieldFault::NoNode => {
            "name the structure and its member of type bpf_list_node or bpf_rb_node: \
             `__contains(STRUCT, NODE)`"
        }
        FieldFault::NoLock => {
            "declare a `struct bpf_spin_lock` beside it, in the same structure or section"
        }
        FieldFault::NoRefcount => {
            "add a `struct bpf_refcount` to the structure that is in a list and a tree"
        }
        FieldFault::Twice => "declare one lock, one timer and one workqueue in a value",
        FieldFault::TwoLocks => "declare either bpf_spin_lock or bpf_res_spin_lock",
        FieldFault::InsideByte
        | FieldFault::TooDeep
        | FieldFault::TooMany
        | FieldFault::Repeated
        | FieldFault::Overlap
        | FieldFault::None
        | FieldFault::OwnershipLoop => return None,
    })
}
