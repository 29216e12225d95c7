//! Calls of every kfunc by programs of every type that can be loaded, with arguments of every
//! kind: both verifiers must give the same answer.

use std::ops::Range;
use std::sync::Arc;

use btf::{Btf, Shape, TypeId};
use program::{Image, InitialContents, MapDef, MapParams, Program};
use spec::maps::{MapFlags, MapKind};
use spec::programs::{LoadFlags, ProgramType};
use spec::registry::{Kfunc, Registry};

use super::soak::Tally;
use super::verdict_comparison::VerifierPair;
use testkit::ebpf::Choices;
use testkit::verifier::assembled;

/// Offsets of `data` and `data_end` in a context, if programs reach the packet by them.
type Bounds = Option<(u32, u32)>;

/// Program types, with the expected attach type and the offsets of `data` and `data_end` in
/// contexts with packets.
const TYPES: &[(ProgramType, u32, Bounds)] = &[
    (ProgramType::Xdp, 0, Some((0, 4))),
    (ProgramType::SchedCls, 0, Some((76, 80))),
    (ProgramType::SchedAct, 0, Some((76, 80))),
    (ProgramType::SocketFilter, 0, None),
    (ProgramType::CgroupSkb, 0, Some((76, 80))),
    (ProgramType::LwtXmit, 0, Some((76, 80))),
    (ProgramType::SkSkb, 0, Some((76, 80))),
    (ProgramType::FlowDissector, 17, None),
    (ProgramType::RawTracepoint, 0, None),
    (ProgramType::Tracepoint, 0, None),
    (ProgramType::SockOps, 3, None),
    (ProgramType::CgroupSockAddr, 8, None),
    (ProgramType::CgroupSockopt, 21, None),
    (ProgramType::SkLookup, 36, None),
    (ProgramType::Syscall, 0, None),
];

/// Constants of programs: two strings, then text without an end.
const CONSTANTS: [u8; 128] = {
    let strings = b"text\0more text\0";
    let mut bytes = [b'x'; 128];
    let mut at = 0;
    while at < strings.len() {
        bytes[at] = strings[at];
        at += 1;
    }
    bytes
};

/// Compares calls of every kfunc of a registry in programs of every type: for each a program of
/// every seed.
pub fn compare_kfunc_calls(
    verifiers: &mut VerifierPair<'_>,
    registry: &Registry,
    types: &Btf<'_>,
    seeds: Range<u64>,
) -> Result<Tally, String> {
    let mut tally = Tally::default();
    let known = registry.kfuncs.values().filter(|kfunc| kfunc.btf_id != 0);
    for (kfunc, number) in known.zip(0u64..) {
        for (at, (kind, attach, packet)) in (0u64..).zip(TYPES.iter().copied()) {
            for seed in seeds.clone() {
                let mut choices = Choices::from_seed(seed << 20 | number << 8 | at);
                let writer = Writer {
                    registry,
                    types,
                    packet,
                };
                let text = writer.program(&mut choices, kfunc, kind);
                let program = build(&text, kind, attach, &mut choices)?;
                let origin = || format!("{} in {}, seed {seed}", kfunc.name, kind.name());
                tally.compare(verifiers, &program, kind.name(), origin);
            }
        }
    }
    Ok(tally)
}

/// A parameter of a kfunc: its name, and the name and size of what it points to.
struct Parameter {
    name: String,
    pointee: Option<String>,
    size: u32,
}

/// Functions that return an object of a structure, with the one that releases it.
const OBJECTS: &[(&str, &str, &str)] = &[
    ("task_struct", "bpf_task_from_pid", "bpf_task_release"),
    ("cgroup", "bpf_cgroup_from_id", "bpf_cgroup_release"),
    ("bpf_key", "bpf_lookup_system_key", "bpf_key_put"),
    ("bpf_cpumask", "bpf_cpumask_create", "bpf_cpumask_release"),
    ("cpumask", "bpf_cpumask_create", "bpf_cpumask_release"),
];

/// Sections around a call, and what ends them.
const SECTIONS: &[[&str; 2]] = &[
    ["bpf_rcu_read_lock", "bpf_rcu_read_unlock"],
    ["bpf_preempt_disable", "bpf_preempt_enable"],
];

/// Writes the programs for one kernel.
struct Writer<'w> {
    registry: &'w Registry,
    types: &'w Btf<'w>,
    packet: Bounds,
}

impl Writer<'_> {
    /// A call of a kfunc by its name.
    fn call(&self, name: &str) -> String {
        let id = self
            .registry
            .kfunc_named(name)
            .map_or(0, |kfunc| kfunc.btf_id);
        format!("call kfunc({id})\n")
    }

    /// The text of a program that calls a kfunc.
    fn program(&self, choices: &mut Choices<'_>, kfunc: &Kfunc, kind: ProgramType) -> String {
        let mut text = "r6 = r1\nr1 = 0\n*(u64 *)(r10 - 8) = r1\n*(u64 *)(r10 - 16) = r1\n\
                        *(u64 *)(r10 - 24) = r1\n*(u64 *)(r10 - 32) = r1\nr9 = 0\n"
            .to_owned();
        // A number that is not known, and one with bounds.
        text += "call 5\nr7 = r0\nr8 = r0\nr8 &= 15\n";
        let parameters = parameters(kfunc, self.types);
        let is_wanted = |(name, ..): &&(&str, &str, &str)| {
            let mut pointees = parameters
                .iter()
                .filter_map(|found| found.pointee.as_deref());
            pointees.any(|pointee| pointee == *name)
        };
        let object = OBJECTS
            .iter()
            .find(is_wanted)
            .filter(|_| !choices.one_in(4));
        match object {
            Some((_, get, _)) => {
                text += &format!("r1 = 1\n{}r9 = r0\n", self.call(get));
                if !choices.one_in(6) {
                    text += "if r9 == 0 goto out\n";
                }
            }
            // A value of a map, checked for null or not.
            None if choices.one_in(2) => {
                text += "ld_pseudo r1, 5, 0\nr2 = r10\nr2 += -8\ncall 1\nr9 = r0\n";
                if !choices.one_in(4) {
                    text += "if r9 == 0 goto out\n";
                }
            }
            None => {}
        }
        let section = choices.pick(SECTIONS);
        let has_section = choices.one_in(6);
        if has_section {
            text += &self.call(section[0]);
        }
        for (parameter, number) in parameters.iter().zip(1..=5) {
            let reg = format!("r{number}");
            text += &match choices.one_in(6) {
                true => self.argument(choices, &reg),
                false => self.fitting(choices, &reg, parameter, object.is_some()),
            };
        }
        text += &self.call(&kfunc.name);
        if has_section && !choices.one_in(8) {
            text += &self.call(section[1]);
        }
        text += match choices.below(10) {
            0 => "r1 = *(u32 *)(r0 + 0)\n",
            1 => "if r0 == 0 goto out\nr1 = *(u32 *)(r0 + 0)\n",
            2 => "if r0 != 0 goto out\n",
            3 => "r7 = r0\n",
            4 => "r1 = 0\n*(u64 *)(r0 + 0) = r1\n",
            _ => "",
        };
        if let Some((.., release)) = object
            && *kfunc.name != **release
            && !choices.one_in(6)
        {
            text += &format!("r1 = r9\n{}", self.call(release));
        }
        let result = match kind {
            ProgramType::CgroupSkb
            | ProgramType::SockOps
            | ProgramType::CgroupSockAddr
            | ProgramType::SkLookup => 1,
            _ => 0,
        };
        text + &format!("out:\nr0 = {result}\nexit\n")
    }

    /// An argument that a parameter mostly takes.
    fn fitting(
        &self,
        choices: &mut Choices<'_>,
        reg: &str,
        parameter: &Parameter,
        has_object: bool,
    ) -> String {
        let name = &parameter.name;
        let stack = |choices: &mut Choices<'_>| {
            let offset = choices.pick(&[8, 16, 24, 32, 32, 32]);
            format!("{reg} = r10\n{reg} += -{offset}\n")
        };
        match parameter.pointee.as_deref() {
            None if name.ends_with("__sz") || name.ends_with("__szk") => {
                let size = choices.pick(&[4, 8, 8, 12, 16, 16, 24, 32, 36]);
                match choices.below(8) {
                    0 => format!("{reg} = r8\n"),
                    1 => format!("{reg} = r7\n"),
                    _ => format!("{reg} = {size}\n"),
                }
            }
            None => match choices.below(4) {
                0 => format!("{reg} = r7\n"),
                1 => format!("{reg} = r8\n"),
                _ => format!("{reg} = {}\n", choices.pick(&[0, 1, 2, 5])),
            },
            Some("xdp_md" | "__sk_buff" | "bpf_sock_addr_kern" | "bpf_sock_ops_kern") => {
                format!("{reg} = r6\n")
            }
            Some("bpf_map") => format!("ld_pseudo {reg}, 5, 0\n"),
            Some(_) if name.ends_with("__str") => {
                format!(
                    "ld_pseudo {reg}, 6, 1\n{reg} += {}\n",
                    choices.pick(&[0, 5, 120])
                )
            }
            Some(_) if name == "obj" => format!("{reg} = r6\n"),
            Some(pointee) if has_object && OBJECTS.iter().any(|(of, ..)| *of == pointee) => {
                format!("{reg} = r9\n")
            }
            Some(_) if parameter.size > 32 => format!("{reg} = r9\n"),
            Some(_) => stack(choices),
        }
    }

    /// An argument of some kind.
    fn argument(&self, choices: &mut Choices<'_>, reg: &str) -> String {
        match choices.below(22) {
            0 => String::new(),
            1 | 2 => format!("{reg} = 0\n"),
            3 => {
                let number = choices.pick(&[1, 4, 8, 12, 16, 36, 48, 408]);
                format!("{reg} = {number}\n")
            }
            4 => {
                let number = choices.pick(&[-1, -8, i32::MAX, i32::MIN]);
                format!("{reg} = {number}\n")
            }
            5 => format!("{reg} = 0x100000000 ll\n"),
            6 => format!("{reg} = r7\n"),
            7 => format!("{reg} = r8\n"),
            8..=10 => format!("{reg} = r6\n"),
            11..=13 => {
                let offset = choices.pick(&[8, 16, 24, 32, 40, 64, 0]);
                format!("{reg} = r10\n{reg} += -{offset}\n")
            }
            14 => format!("{reg} = r10\n{reg} += r8\n{reg} += -32\n"),
            15 => format!("ld_pseudo {reg}, 5, 0\n"),
            16 => format!("{reg} = r9\n"),
            17 => {
                let offset = choices.pick(&[1, 40, 44, 48, -1]);
                format!("{reg} = r9\n{reg} += {offset}\n")
            }
            18 => {
                let offset = choices.pick(&[0, 5, 120]);
                format!("ld_pseudo {reg}, 6, 1\n{reg} += {offset}\n")
            }
            19 => format!("{reg} = r6\n{reg} += 8\n"),
            _ => match self.packet {
                Some((data, end)) => {
                    let least = choices.pick(&[4, 8, 16, 40]);
                    format!(
                        "{reg} = *(u32 *)(r6 + {data})\nr7 = *(u32 *)(r6 + {end})\nr0 = {reg}\n\
                         r0 += {least}\nif r0 > r7 goto out\nr7 = 3\n"
                    )
                }
                None => format!("{reg} = r7\n"),
            },
        }
    }
}

/// The parameters of a kfunc.
fn parameters(kfunc: &Kfunc, types: &Btf<'_>) -> Vec<Parameter> {
    let proto = types
        .get(TypeId(kfunc.btf_id))
        .and_then(|func| func.referred());
    let Some(Shape::Proto(proto)) = proto.and_then(|id| types.get(id)).map(|ty| ty.shape()) else {
        return Vec::new();
    };
    let parameters = proto.params().map(|param| {
        let bare = |id| types.skip_modifiers(id).and_then(|id| types.get(id));
        let pointee = match bare(param.ty).map(|ty| ty.shape()) {
            Some(Shape::Ptr(to)) => types.skip_modifiers(to),
            _ => None,
        };
        Parameter {
            name: types.string(param.name).to_string_lossy().into_owned(),
            pointee: pointee.map(|id| types.at(id).name().to_string_lossy().into_owned()),
            size: pointee.and_then(|id| types.size_of(id)).unwrap_or(0),
        }
    });
    parameters.collect()
}

/// The program with its maps: an array, and constants.
fn build(
    text: &str,
    kind: ProgramType,
    attach: u32,
    choices: &mut Choices<'_>,
) -> Result<Program, String> {
    let array = MapDef::new(
        "",
        MapParams {
            map_type: MapKind::Array.number(),
            key_size: 4,
            value_size: 48,
            max_entries: 4,
            ..MapParams::default()
        },
    );
    let mut constants = MapDef::new(
        "",
        MapParams {
            map_type: MapKind::Array.number(),
            key_size: 4,
            value_size: CONSTANTS.len() as u32,
            max_entries: 1,
            flags: MapFlags::RDONLY_PROG,
            ..MapParams::default()
        },
    );
    constants.contents = InitialContents::Value {
        image: Image::new(&CONSTANTS, CONSTANTS.len() as u32),
        frozen: true,
    };
    let insns = assembled(text).map_err(|error| format!("{error}\n{text}"))?;
    let flags = match kind {
        ProgramType::Syscall => LoadFlags::SLEEPABLE,
        _ => LoadFlags::default(),
    };
    let license = if choices.one_in(50) {
        "Proprietary"
    } else {
        "GPL"
    };
    Program::builder(kind, insns)
        .expected_attach_type(attach)
        .flags(flags)
        .maps(vec![Arc::new(array), Arc::new(constants)])
        .license(license)
        .build()
        .map_err(|error| error.to_string())
}
