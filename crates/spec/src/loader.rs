//! Loaders of objects and their conventions: what names of sections, definitions of maps and
//! undefined symbols mean. Objects follow the conventions of the loader that they are written for.
//!
//! [`LoaderKind::rules`] is the one place that knows a loader: a row of [`LoaderRules`] with its
//! table of section definitions. Releases: libbpf 7.2 and 0.8, cilium/ebpf 0.22, aya 0.14 and the
//! loader of iproute2 (`struct bpf_elf_map`).

use std::fmt;

use crate::maps::MapKind;
use crate::programs::SectionDef;
use crate::programs::sections::{aya, iproute2, libbpf};

/// Loader whose conventions an object follows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LoaderKind {
    /// libbpf from 1.0 on.
    #[default]
    Libbpf,
    /// libbpf before 1.0.
    Libbpf08,
    /// cilium/ebpf, for Go.
    CiliumEbpf,
    /// aya, for Rust.
    Aya,
    /// tc and ip.
    Iproute2,
}

/// Conventions of a loader.
#[derive(Debug)]
pub struct LoaderRules {
    /// Name in messages.
    pub title: &'static str,
    /// Section definitions; the first that matches counts.
    pub sections: &'static [SectionDef],
    /// True if an executable section without a definition is an error.
    pub refuses_other_sections: bool,
    /// True if a `?` in front of a section name disables autoload.
    pub has_optional_programs: bool,
    /// True if a program in a section `ID/KEY` is an element of the program array with this id.
    pub has_tail_call_sections: bool,
    /// Legacy map definitions; `None` if they are refused.
    pub legacy_maps: Option<LegacyMapRules>,
    /// Values of `pinning` in declarations.
    pub pinning: PinningRule,
    /// True if `values` has initial elements, and program arrays have `values`.
    pub has_initial_values: bool,
    /// True if unknown attributes of declarations are ignored.
    pub ignores_attributes: bool,
    /// True if functions in program sections may be static, and be called.
    pub calls_programs: bool,
    /// True if sections that begin with `.text` are as `.text`.
    pub has_text_sections: bool,
    /// Order of subprogs in a program.
    pub subprogs: SubprogOrder,
    /// True if exception callbacks, which a tag names, are appended.
    pub has_exception_callbacks: bool,
    /// True if kconfig values, variables and functions of the kernel are linked.
    pub has_externs: bool,
    /// True if externs may be variables of the kernel of other types than `void`.
    pub has_typed_variables: bool,
    /// True if weak maps and weak kconfig values may be referred to.
    pub has_weak_references: bool,
    /// True if sections `.bss.NAME` have variables too.
    pub has_named_bss: bool,
    /// True if BTF may have enumerations of 64 bits; it is malformed otherwise.
    pub has_enum64: bool,
    /// Kinds of ring buffers whose sizes are rounded up to what kernels accept.
    pub rounded_kinds: &'static [MapKind],
    /// True if two functions of one name in a section are an error.
    pub refuses_equal_names: bool,
    /// True if `.addr_space.1` has variables of an arena, and `.jumptables` jump tables.
    pub has_arena_and_jump_tables: bool,
    /// True if enumerations state numbers in declarations (`__ulong`).
    pub has_wide_numbers: bool,
    /// True if the variable of a declaration may have an initial value, which is ignored.
    pub has_initialised_maps: bool,
    /// True if CO-RE relocations compare whole types (`bpf_core_type_matches`).
    pub has_type_matches: bool,
    /// True if the only function of an object is a program in `.text` too.
    pub has_text_program: bool,
    /// True if bytes of a section of functions that are in no function are an error.
    pub refuses_gaps: bool,
    /// Sections of struct_ops.
    pub struct_ops: StructOpsRule,
    /// Loads of undefined symbols that BTF does not describe.
    pub undefined: UndefinedRule,
    /// Maps of global variables.
    pub data: DataRule,
    /// True if sizes of kinds that allow one only, and numbers of CPUs, are set on creation, and
    /// the type of a value states no size of kinds without one.
    pub completes_sizes: bool,
    /// Licence of an object that states none.
    pub default_license: &'static str,
}

/// Rules of legacy map definitions (`struct bpf_map_def`): five numbers, then what loaders added.
#[derive(Clone, Copy, Debug)]
pub struct LegacyMapRules {
    /// True if sections `maps/NAME` and all others that begin with `maps` have definitions.
    pub in_prefixed_sections: bool,
    /// Size of a definition.
    pub size: DefinitionSize,
    /// Least size in bytes.
    pub least: u32,
    /// Members after the five numbers.
    pub members: LegacyMembers,
    /// Bytes after the members.
    pub rest: RestRule,
    /// True if a structure `____btf_map_NAME` has the types of key and value.
    pub has_types: bool,
}

/// Size of a legacy map definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DefinitionSize {
    /// The section is divided by the number of its symbols.
    Equal,
    /// The size of the symbol.
    OfSymbol,
}

/// Members of a legacy map definition after type, sizes, entries and flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LegacyMembers {
    /// None.
    None,
    /// Id and pinning.
    Pinning,
    /// Id, pinning, id of the inner map, index in the outer map (`struct bpf_elf_map`).
    Inner,
}

/// Bytes after the members of a legacy map definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestRule {
    /// They must be zero.
    Zero,
    /// They are ignored.
    Ignored,
    /// There are none.
    None,
}

/// Values of `pinning` in map declarations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PinningRule {
    /// None (0) and by name (1); others are refused.
    NoneOrByName,
    /// Others are for the application.
    Others,
    /// Others are none.
    OthersAreNone,
}

/// Order of the subprogs that follow a program's instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubprogOrder {
    /// Depth first, in the order of calls.
    DepthFirst,
    /// Breadth first, those of one function by name.
    BreadthFirst,
}

/// Loads (ld_imm64) of undefined symbols that BTF does not describe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UndefinedRule {
    /// They are errors.
    Refused,
    /// They load 0, unless the application defines the symbol; a program that calls one is not
    /// loaded.
    Zero,
}

/// Sections of struct_ops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StructOpsRule {
    /// `.struct_ops` and `.struct_ops.link`, optional ones (`?`) too.
    Both,
    /// `.struct_ops`; others are ignored.
    WithoutLink,
    /// `.struct_ops.link`; `.struct_ops` is an error, others are ignored.
    OnlyLink,
}

/// Maps of global variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataRule {
    /// Called by the object's name and the section; mapped if a variable is visible.
    Prefixed,
    /// Called by the object's name and the section, and mapped.
    PrefixedMapped,
    /// Called by the section.
    Plain,
    /// Called by the section, and mapped; sections that nothing refers to have none.
    PlainUsed,
}

/// What libbpf from 1.0 on accepts.
const LIBBPF: LoaderRules = LoaderRules {
    title: "libbpf",
    sections: libbpf::SECTIONS,
    refuses_other_sections: false,
    has_optional_programs: true,
    has_tail_call_sections: false,
    legacy_maps: None,
    pinning: PinningRule::NoneOrByName,
    has_initial_values: true,
    ignores_attributes: false,
    calls_programs: false,
    has_text_sections: false,
    subprogs: SubprogOrder::DepthFirst,
    has_exception_callbacks: true,
    has_externs: true,
    has_typed_variables: true,
    has_weak_references: true,
    has_named_bss: true,
    has_enum64: true,
    rounded_kinds: &[MapKind::Ringbuf, MapKind::UserRingbuf],
    refuses_equal_names: false,
    has_arena_and_jump_tables: true,
    has_wide_numbers: true,
    has_initialised_maps: true,
    has_type_matches: true,
    has_text_program: false,
    refuses_gaps: false,
    struct_ops: StructOpsRule::Both,
    undefined: UndefinedRule::Refused,
    data: DataRule::Prefixed,
    completes_sizes: false,
    default_license: "",
};

const LIBBPF_0_8: LoaderRules = LoaderRules {
    title: "libbpf 0.8",
    sections: libbpf::OF_0_8,
    legacy_maps: Some(LegacyMapRules {
        in_prefixed_sections: false,
        size: DefinitionSize::Equal,
        least: 0,
        members: LegacyMembers::None,
        rest: RestRule::Zero,
        has_types: true,
    }),
    has_named_bss: false,
    has_enum64: false,
    rounded_kinds: &[MapKind::Ringbuf],
    has_arena_and_jump_tables: false,
    has_wide_numbers: false,
    has_text_program: true,
    struct_ops: StructOpsRule::WithoutLink,
    data: DataRule::PrefixedMapped,
    ..LIBBPF
};

const CILIUM_EBPF: LoaderRules = LoaderRules {
    title: "cilium/ebpf",
    sections: libbpf::OF_CILIUM_EBPF,
    legacy_maps: Some(LegacyMapRules {
        in_prefixed_sections: true,
        size: DefinitionSize::OfSymbol,
        least: 20,
        members: LegacyMembers::None,
        rest: RestRule::Zero,
        has_types: false,
    }),
    pinning: PinningRule::Others,
    calls_programs: true,
    subprogs: SubprogOrder::BreadthFirst,
    has_exception_callbacks: false,
    has_typed_variables: false,
    has_weak_references: false,
    has_named_bss: false,
    rounded_kinds: &[],
    refuses_equal_names: true,
    has_arena_and_jump_tables: false,
    has_initialised_maps: false,
    struct_ops: StructOpsRule::OnlyLink,
    undefined: UndefinedRule::Zero,
    data: DataRule::PlainUsed,
    completes_sizes: true,
    ..LIBBPF
};

const AYA: LoaderRules = LoaderRules {
    title: "aya",
    sections: aya::SECTIONS,
    refuses_other_sections: true,
    has_optional_programs: false,
    legacy_maps: Some(LegacyMapRules {
        in_prefixed_sections: true,
        size: DefinitionSize::OfSymbol,
        least: 20,
        members: LegacyMembers::Pinning,
        rest: RestRule::Ignored,
        has_types: false,
    }),
    pinning: PinningRule::OthersAreNone,
    has_initial_values: false,
    ignores_attributes: true,
    calls_programs: true,
    has_text_sections: true,
    has_exception_callbacks: false,
    has_externs: false,
    rounded_kinds: &[MapKind::Ringbuf],
    has_arena_and_jump_tables: false,
    has_wide_numbers: false,
    has_type_matches: false,
    refuses_gaps: true,
    undefined: UndefinedRule::Zero,
    data: DataRule::Plain,
    default_license: "GPL",
    ..LIBBPF
};

const IPROUTE2: LoaderRules = LoaderRules {
    title: "iproute2",
    sections: iproute2::SECTIONS,
    has_tail_call_sections: true,
    legacy_maps: Some(LegacyMapRules {
        in_prefixed_sections: false,
        size: DefinitionSize::Equal,
        least: 16,
        members: LegacyMembers::Inner,
        rest: RestRule::None,
        has_types: true,
    }),
    ..LIBBPF
};

impl LoaderKind {
    /// Every loader, in the order in which they are tried.
    pub const ALL: [LoaderKind; 5] = [
        LoaderKind::Libbpf,
        LoaderKind::Libbpf08,
        LoaderKind::CiliumEbpf,
        LoaderKind::Aya,
        LoaderKind::Iproute2,
    ];

    /// Name as an option.
    pub const fn name(self) -> &'static str {
        match self {
            LoaderKind::Libbpf => "libbpf",
            LoaderKind::Libbpf08 => "libbpf-0.8",
            LoaderKind::CiliumEbpf => "cilium-ebpf",
            LoaderKind::Aya => "aya",
            LoaderKind::Iproute2 => "iproute2",
        }
    }

    /// Loader with this name.
    pub fn from_name(name: &str) -> Option<LoaderKind> {
        LoaderKind::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Conventions.
    #[doc(hidden)]
    pub const fn rules(self) -> &'static LoaderRules {
        match self {
            LoaderKind::Libbpf => &LIBBPF,
            LoaderKind::Libbpf08 => &LIBBPF_0_8,
            LoaderKind::CiliumEbpf => &CILIUM_EBPF,
            LoaderKind::Aya => &AYA,
            LoaderKind::Iproute2 => &IPROUTE2,
        }
    }
}

/// The name in messages.
impl fmt::Display for LoaderKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.rules().title)
    }
}
