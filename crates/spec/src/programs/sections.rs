//! Section definitions of loaders: program type and attach type by section name
//! (`SEC("xdp.frags/devmap")`). Each loader has a table; the first definition that matches wins.

use super::{AttachType, LoadFlags, ProgramType};

/// Section definition (libbpf's `struct bpf_sec_def`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SectionDef {
    /// Section name, without an attach target.
    pub name: &'static str,
    /// Section names that it matches.
    pub pattern: SectionPattern,
    /// Program type.
    pub kind: ProgramType,
    /// Expected attach type, if the kernel requires it at load time.
    pub attach: Option<AttachType>,
    /// Properties of the programs.
    pub flags: SectionFlags,
}

/// Section names that a definition matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SectionPattern {
    /// The name.
    Exact,
    /// The name, and the name before a slash and the attach target.
    WithTarget,
    /// The name before a slash.
    BeforeSlash,
    /// Every name that begins with it.
    Prefix,
}

/// Properties of the programs of a section (libbpf's `enum sec_def_flags`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SectionFlags(u8);

impl SectionFlags {
    /// No property.
    pub const NONE: SectionFlags = SectionFlags(0);
    /// Sleepable (`SEC_SLEEPABLE`).
    pub const SLEEPABLE: SectionFlags = SectionFlags(1);
    /// Attached by the BTF id of a kernel function or a function of another program,
    /// resolved at load time (`SEC_ATTACH_BTF`).
    pub const ATTACH_BTF: SectionFlags = SectionFlags(2);
    /// Support frames with fragments (`SEC_XDP_FRAGS`).
    pub const XDP_FRAGS: SectionFlags = SectionFlags(4);
    /// Attached to USDTs, by one uprobe-multi link if the kernel has those (`SEC_USDT`).
    pub const USDT: SectionFlags = SectionFlags(8);

    /// True if all of these are set.
    pub const fn has(self, other: SectionFlags) -> bool {
        self.0 & other.0 == other.0
    }

    const fn with(self, other: SectionFlags) -> SectionFlags {
        SectionFlags(self.0 | other.0)
    }

    /// Load flags that they imply.
    pub const fn load_flags(self) -> LoadFlags {
        let mut flags = LoadFlags(0);
        if self.has(SectionFlags::SLEEPABLE) {
            flags = flags.with(LoadFlags::SLEEPABLE);
        }
        if self.has(SectionFlags::XDP_FRAGS) {
            flags = flags.with(LoadFlags::XDP_HAS_FRAGS);
        }
        flags
    }
}

impl SectionDef {
    /// First definition of a table that matches a section name. The name has no leading `?`, which
    /// disables autoload.
    pub fn find(table: &'static [SectionDef], section: &str) -> Option<&'static SectionDef> {
        table.iter().find(|def| def.matches(section))
    }

    /// Attach target after the slash of a section name.
    pub fn target<'s>(&self, section: &'s str) -> Option<&'s str> {
        let rest = section.split_once('/').map(|(_, rest)| rest);
        rest.filter(|_| self.pattern == SectionPattern::WithTarget)
    }

    fn matches(&self, section: &str) -> bool {
        // The lengths exclude nearly all definitions without a comparison of names.
        let next = section.as_bytes().get(self.name.len());
        let is_possible = match (self.pattern, next) {
            (SectionPattern::BeforeSlash, None) => false,
            (_, None) => return section == self.name,
            (SectionPattern::Exact, Some(_)) => false,
            (SectionPattern::WithTarget | SectionPattern::BeforeSlash, Some(next)) => *next == b'/',
            (SectionPattern::Prefix, Some(_)) => true,
        };
        is_possible && section.starts_with(self.name)
    }
}

impl ProgramType {
    /// Type of the programs of a section, by libbpf's table.
    pub fn of_section(section: &str) -> Option<ProgramType> {
        SectionDef::find(libbpf::SECTIONS, section).map(|def| def.kind)
    }
}

/// Defines the table `SECTIONS` of a loader.
macro_rules! sections {
    ($($kind:ident { $($shape:ident $name:literal $(-> $attach:ident)? $(as $first:ident $(+ $more:ident)*)?;)+ })*) => {
        /// Every section definition.
        pub(crate) const SECTIONS: &[super::SectionDef] = &[$($(
            sections!(@def $kind $shape $name [$($attach)?] [$($first $($more)*)?]),
        )+)*];
    };
    (@def $kind:ident $shape:ident $name:literal [$($attach:ident)?] [$($flag:ident)*]) => {
        super::SectionDef {
            name: $name,
            pattern: sections!(@$shape),
            kind: crate::programs::ProgramType::$kind,
            attach: sections!(@attach $($attach)?),
            flags: super::SectionFlags::NONE$(.with(super::SectionFlags::$flag))*,
        }
    };
    (@exact) => { super::SectionPattern::Exact };
    (@target) => { super::SectionPattern::WithTarget };
    (@slash) => { super::SectionPattern::BeforeSlash };
    (@prefix) => { super::SectionPattern::Prefix };
    (@attach) => { None };
    (@attach $attach:ident) => { Some(crate::programs::AttachType::$attach) };
}

pub(crate) mod aya;
pub(crate) mod iproute2;
pub(crate) mod libbpf;

#[cfg(test)]
mod tests {
    use super::*;

    fn find(section: &str) -> Option<&'static SectionDef> {
        SectionDef::find(libbpf::SECTIONS, section)
    }

    #[test]
    fn no_two_definitions_of_libbpf_match_the_same_name() {
        for (at, rule) in libbpf::SECTIONS.iter().enumerate() {
            let mut names = vec![rule.name.to_owned()];
            if rule.pattern == SectionPattern::WithTarget {
                names.push(format!("{}/x", rule.name));
            }
            for name in names {
                let takers = libbpf::SECTIONS.iter().filter(|rule| rule.matches(&name));
                let takers = takers.count();
                assert_eq!(takers, 1, "rule {at}, {name}");
            }
        }
    }

    #[test]
    fn names_with_and_without_an_attach_target() {
        let kind = |name| find(name).map(|rule| (rule.kind, rule.attach));
        let probe = (ProgramType::Kprobe, None);
        assert_eq!(kind("kprobe"), Some(probe));
        assert_eq!(kind("kprobe/"), Some(probe));
        assert_eq!(kind("kprobe/do_exit+0x10"), Some(probe));
        assert_eq!(kind("kprobes"), None);
        assert_eq!(
            kind("xdp/devmap"),
            Some((ProgramType::Xdp, Some(AttachType::XdpDevmap)))
        );
        assert_eq!(kind("xdp/anything"), None);
        assert_eq!(kind("XDP"), None);
        assert_eq!(kind(""), None);
    }

    #[test]
    fn a_later_definition_of_a_longer_name_is_never_hidden() {
        for table in [aya::SECTIONS, libbpf::OF_CILIUM_EBPF, libbpf::OF_0_8] {
            for def in table {
                let name = match def.pattern {
                    SectionPattern::BeforeSlash => format!("{}/x", def.name),
                    _ => def.name.to_owned(),
                };
                assert_eq!(SectionDef::find(table, &name), Some(def), "{name}");
            }
        }
    }

    #[test]
    fn loaders_differ_in_what_they_take() {
        let kinds = |name| {
            let tables = [libbpf::SECTIONS, libbpf::OF_0_8, libbpf::OF_CILIUM_EBPF];
            let tables = tables
                .into_iter()
                .chain([aya::SECTIONS, iproute2::SECTIONS]);
            let found = tables.map(|table| SectionDef::find(table, name).map(|def| def.kind));
            found.collect::<Vec<_>>()
        };
        let (none, cls, xdp) = (None, Some(ProgramType::SchedCls), Some(ProgramType::Xdp));
        assert_eq!(kinds("classifier/in"), [none, cls, cls, cls, cls]);
        assert_eq!(kinds("tc_in"), [none, none, cls, none, none]);
        assert_eq!(kinds("xdp_pass"), [none, xdp, xdp, none, xdp]);
        assert_eq!(kinds("xdp_devmap/x"), [none, xdp, xdp, none, xdp]);
        assert_eq!(kinds("prog"), [none, none, none, none, xdp]);
        let socket = Some(ProgramType::SocketFilter);
        assert_eq!(kinds("socket1"), [none, socket, socket, none, none]);
    }

    #[test]
    fn section_names_imply_load_flags() {
        let flags = |name| find(name).unwrap().flags.load_flags();
        assert_eq!(flags("fentry.s/foo"), LoadFlags::SLEEPABLE);
        assert_eq!(flags("xdp.frags/devmap"), LoadFlags::XDP_HAS_FRAGS);
        assert_eq!(flags("lsm/foo"), LoadFlags(0));
        let rule = find("tp_btf.s/sched_switch").unwrap();
        assert!(rule.flags.has(SectionFlags::ATTACH_BTF));
        assert_eq!(rule.target("tp_btf.s/a/b"), Some("a/b"));
        assert_eq!(rule.target("tp_btf.s"), None);
    }
}
