//! Prints what aya parses of objects, one line of JSON for each: programs with type, attach type and
//! instructions, maps with their definitions. Nothing is loaded.

use std::collections::HashSet;
use std::fmt::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};

use aya_obj::btf::BtfFeatures;
use aya_obj::generated::{bpf_attach_type, bpf_insn, bpf_prog_type as kind};
use aya_obj::maps::{Map, PinningType};
use aya_obj::{Object, ProgramSection};

/// First number of the descriptors that stand for maps.
const FIRST_FD: i32 = 0x0100_0000;
/// `BPF_F_SLEEPABLE`.
const SLEEPABLE: u32 = 1 << 4;
/// `BPF_F_XDP_HAS_FRAGS`.
const XDP_HAS_FRAGS: u32 = 1 << 5;

fn main() {
    std::panic::set_hook(Box::new(|_| {}));
    for path in std::env::args().skip(1) {
        let read = catch_unwind(AssertUnwindSafe(|| read(&path)));
        let line = match read.unwrap_or_else(|_| Err("aya panics".to_owned())) {
            Ok(members) => format!("{{\"file\":{},{members}}}", text(&path)),
            Err(error) => format!(
                "{{\"file\":{},\"error\":{},\"programs\":null,\"maps\":null}}",
                text(&path),
                text(&error)
            ),
        };
        println!("{line}");
    }
}

fn read(path: &str) -> Result<String, String> {
    let bytes = std::fs::read(path).map_err(|error| error.to_string())?;
    let mut object = Object::parse(&bytes).map_err(|error| chain(&error))?;
    // Its loader completes BTF for the kernel before it creates maps.
    let features = BtfFeatures::new(true, true, true, true, true, true, true, true);
    object
        .fixup_and_sanitize_btf(&features)
        .map_err(|error| chain(&error))?;
    let mut maps: Vec<(String, Map)> = object.maps.drain().collect();
    maps.sort_by(|one, other| one.0.cmp(&other.0));
    let text_sections: HashSet<usize> = object.functions.keys().map(|key| key.0).collect();
    let numbered = maps.iter().zip(FIRST_FD..);
    object
        .relocate_maps(
            numbered.map(|((name, map), fd)| (name.as_str(), fd, map)),
            &text_sections,
        )
        .map_err(|error| chain(&error))?;
    object
        .relocate_calls(&text_sections)
        .map_err(|error| chain(&error))?;
    let mut programs: Vec<String> = Vec::new();
    for (name, program) in &object.programs {
        let function = &object.functions[&program.function_key()];
        let (kind, attach, flags) = described(&program.section);
        let (insns, used) = instructions(&function.instructions, &maps);
        programs.push(format!(
            "{{\"name\":{},\"type\":{},\"attach\":{},\"flags\":{flags},\"license\":{},\"insns\":\"{insns}\",\"maps\":[{used}],\"open\":[]}}",
            text(name),
            kind as u32,
            attach.map_or(0, |attach| attach as u32),
            text(&program.license.to_string_lossy()),
        ));
    }
    programs.sort();
    let maps: Vec<String> = maps
        .iter()
        .map(|(name, map)| definition(name, map))
        .collect();
    Ok(format!(
        "\"programs\":[{}],\"maps\":[{}]",
        programs.join(","),
        maps.join(",")
    ))
}

/// Error with its causes.
fn chain(error: &dyn std::error::Error) -> String {
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        let _ = write!(words, ": {next}");
        cause = next.source();
    }
    words
}

/// Type, attach type and load flags, as aya's `load` of each program type passes them.
fn described(section: &ProgramSection) -> (kind, Option<bpf_attach_type>, u32) {
    use ProgramSection as Of;
    use bpf_attach_type as at;
    let sleepable = |is: &bool| if *is { SLEEPABLE } else { 0 };
    match section {
        Of::KProbe | Of::KRetProbe => (kind::BPF_PROG_TYPE_KPROBE, None, 0),
        Of::UProbe { sleepable: is } | Of::URetProbe { sleepable: is } => {
            (kind::BPF_PROG_TYPE_KPROBE, None, sleepable(is))
        }
        Of::TracePoint => (kind::BPF_PROG_TYPE_TRACEPOINT, None, 0),
        Of::SocketFilter => (kind::BPF_PROG_TYPE_SOCKET_FILTER, None, 0),
        Of::Xdp { frags, attach_type } => (
            kind::BPF_PROG_TYPE_XDP,
            Some((*attach_type).into()),
            if *frags { XDP_HAS_FRAGS } else { 0 },
        ),
        Of::SkMsg => (kind::BPF_PROG_TYPE_SK_MSG, Some(at::BPF_SK_MSG_VERDICT), 0),
        Of::SkSkbStream { .. } => (kind::BPF_PROG_TYPE_SK_SKB, None, 0),
        Of::SockOps => (
            kind::BPF_PROG_TYPE_SOCK_OPS,
            Some(at::BPF_CGROUP_SOCK_OPS),
            0,
        ),
        Of::SchedClassifier => (kind::BPF_PROG_TYPE_SCHED_CLS, None, 0),
        Of::CgroupSkb { attach_type } => (
            kind::BPF_PROG_TYPE_CGROUP_SKB,
            attach_type.map(Into::into),
            0,
        ),
        Of::CgroupSockAddr { attach_type } => (
            kind::BPF_PROG_TYPE_CGROUP_SOCK_ADDR,
            Some((*attach_type).into()),
            0,
        ),
        Of::CgroupSysctl => (
            kind::BPF_PROG_TYPE_CGROUP_SYSCTL,
            Some(at::BPF_CGROUP_SYSCTL),
            0,
        ),
        Of::CgroupSockopt { attach_type } => (
            kind::BPF_PROG_TYPE_CGROUP_SOCKOPT,
            Some((*attach_type).into()),
            0,
        ),
        Of::LircMode2 => (kind::BPF_PROG_TYPE_LIRC_MODE2, Some(at::BPF_LIRC_MODE2), 0),
        Of::PerfEvent => (kind::BPF_PROG_TYPE_PERF_EVENT, None, 0),
        Of::RawTracePoint => (kind::BPF_PROG_TYPE_RAW_TRACEPOINT, None, 0),
        Of::Lsm { sleepable: is } => (
            kind::BPF_PROG_TYPE_LSM,
            Some(at::BPF_LSM_MAC),
            sleepable(is),
        ),
        Of::LsmCgroup => (kind::BPF_PROG_TYPE_LSM, Some(at::BPF_LSM_CGROUP), 0),
        Of::BtfTracePoint => (kind::BPF_PROG_TYPE_TRACING, Some(at::BPF_TRACE_RAW_TP), 0),
        Of::FEntry { sleepable: is } => (
            kind::BPF_PROG_TYPE_TRACING,
            Some(at::BPF_TRACE_FENTRY),
            sleepable(is),
        ),
        Of::FExit { sleepable: is } => (
            kind::BPF_PROG_TYPE_TRACING,
            Some(at::BPF_TRACE_FEXIT),
            sleepable(is),
        ),
        Of::FlowDissector => (
            kind::BPF_PROG_TYPE_FLOW_DISSECTOR,
            Some(at::BPF_FLOW_DISSECTOR),
            0,
        ),
        Of::Extension => (kind::BPF_PROG_TYPE_EXT, None, 0),
        Of::SkLookup => (kind::BPF_PROG_TYPE_SK_LOOKUP, Some(at::BPF_SK_LOOKUP), 0),
        Of::SkReuseport { attach_type } => (
            kind::BPF_PROG_TYPE_SK_REUSEPORT,
            Some((*attach_type).into()),
            0,
        ),
        Of::CgroupSock { attach_type } => (
            kind::BPF_PROG_TYPE_CGROUP_SOCK,
            Some((*attach_type).into()),
            0,
        ),
        Of::CgroupDevice => (
            kind::BPF_PROG_TYPE_CGROUP_DEVICE,
            Some(at::BPF_CGROUP_DEVICE),
            0,
        ),
        Of::Iter { sleepable: is } => (
            kind::BPF_PROG_TYPE_TRACING,
            Some(at::BPF_TRACE_ITER),
            sleepable(is),
        ),
    }
}

/// Instructions in hexadecimal, with 0 for maps, and the maps by slot.
fn instructions(insns: &[bpf_insn], maps: &[(String, Map)]) -> (String, String) {
    let (mut hex, mut used) = (String::new(), Vec::new());
    for (slot, insn) in insns.iter().enumerate() {
        let mut imm = insn.imm;
        let index = imm.wrapping_sub(FIRST_FD) as usize;
        if insn.code == 0x18 && matches!(insn.src_reg(), 1 | 2) && index < maps.len() {
            used.push(format!("[{slot},{}]", text(&maps[index].0)));
            imm = 0;
        }
        let registers = insn.src_reg() << 4 | insn.dst_reg();
        let bytes = [insn.code, registers].into_iter();
        let bytes = bytes.chain(insn.off.to_le_bytes()).chain(imm.to_le_bytes());
        for byte in bytes {
            let _ = write!(hex, "{byte:02x}");
        }
    }
    (hex, used.join(","))
}

fn definition(name: &str, map: &Map) -> String {
    let pinning = match map.pinning() {
        PinningType::None => 0,
        PinningType::ByName => 1,
    };
    let inner = map.inner().map(|inner| definition(name, &inner));
    let data = match map.data() {
        [] => "null".to_owned(),
        bytes => {
            let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            text(&hex)
        }
    };
    format!(
        "{{\"name\":{},\"type\":{},\"key_size\":{},\"value_size\":{},\"max_entries\":{},\"flags\":{},\"pinning\":{pinning},\"inner\":{},\"entries\":null,\"data\":{data}}}",
        text(name),
        map.map_type(),
        map.key_size(),
        map.value_size(),
        map.max_entries(),
        map.map_flags(),
        inner.unwrap_or_else(|| "null".to_owned()),
    )
}

/// A string of JSON.
fn text(words: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in words.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            letter if u32::from(letter) < 0x20 => {
                let _ = write!(quoted, "\\u{:04x}", u32::from(letter));
            }
            letter => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}
