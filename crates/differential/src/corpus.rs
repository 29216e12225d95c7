//! Programs of others, on which the optimizations of our engines are counted.
//!
//! - Every function of the kernel's selftests, in both builds, as the compiler left
//!   it: map addresses, which a loader fills in, become 64-bit constants, and calls of
//!   helpers, kfuncs and other functions become calls of one helper. So code has the
//!   shape of the linked program's. Functions with equal code count once.
//! - What libpcap makes of common filter expressions, for Ethernet.
//! - Container profiles (`profiles/*.json` beside the selftests), in both shapes that
//!   our compiler knows, for the architectures that they name.
//!
//! Parts that are not on the machine are omitted and reported.
//!
//! # Modules
//!
//! Programs of others, on which optimizations are counted.

pub mod page;

use std::collections::{BTreeSet, HashSet};
use std::fs;

use classic::{Rules, Semantics, check, convert};
use isa::classic::SockFilter;
use isa::ebpf::{Callee, Imm64, Insn, Value64};
use lower::{ClassicFilter, Lowered, LoweredCode, Passes};
use object::elf::{Elf, SymbolKind};
use seccomp::Arch;
use seccomp::profile::{
    ContainerProfile, NEWEST_KERNEL, ProgramShape, Runtime, TargetMachine, compile,
};
use spec::calls::GET_PRANDOM_U32;
use vm::Unchecked;

use crate::objects::selftests::Set;

/// The selftests that belong to the corpus.
const SETS: &[&str] = &["v3", "v4"];

/// Stand-in for a map's address.
const ADDRESS: u64 = 0xffff_8881_0203_0400;

/// Filter expressions that people write, from the manuals of tcpdump and pcap-filter
/// and from everyday use.
const EXPRESSIONS: &[&str] = &[
    "ip",
    "ip6",
    "arp",
    "tcp",
    "udp",
    "icmp",
    "icmp6",
    "port 53",
    "port 80 or port 443",
    "tcp port 22",
    "udp port 53",
    "tcp port 80 or tcp port 443",
    "src port 1024",
    "dst port 8080",
    "portrange 6000-6008",
    "tcp dst portrange 1024-65535",
    "host 192.0.2.1",
    "host 192.0.2.1 and port 443",
    "host 192.0.2.1 and not port 22",
    "src host 192.0.2.1",
    "dst net 198.51.100.0/24",
    "net 10.0.0.0/8 and not net 10.1.0.0/16",
    "src net 192.168.0.0/16 and dst net 10.0.0.0/8",
    "host 192.0.2.1 or host 192.0.2.2 or host 192.0.2.3",
    "host 2001:db8::1",
    "ip6 net 2001:db8::/32 and tcp port 443",
    "ether host 02:00:00:00:00:01",
    "ether broadcast or ether multicast",
    "ip multicast",
    "ip broadcast or ip multicast and not arp",
    "not arp and not icmp",
    "less 128",
    "greater 1000",
    "tcp[tcpflags] & (tcp-syn|tcp-fin) != 0",
    "tcp[tcpflags] == tcp-syn",
    "tcp[13] & 2 != 0 and dst port 80",
    "tcp[tcpflags] & tcp-rst != 0",
    "icmp[icmptype] != icmp-echo and icmp[icmptype] != icmp-echoreply",
    "tcp port 80 and (((ip[2:2] - ((ip[0]&0xf)<<2)) - ((tcp[12]&0xf0)>>2)) != 0)",
    "tcp[((tcp[12:1] & 0xf0) >> 2):4] = 0x47455420",
    "ip[2:2] > 576",
    "ip[6:2] & 0x1fff != 0",
    "ip[8] < 5",
    "ip proto 47",
    "ip proto 50 or ip proto 51",
    "ip6 proto 58",
    "udp[8:2] == 0x1234 and udp port 53",
    "vlan",
    "vlan 100 and tcp port 80",
    "vlan and ip and host 192.0.2.1",
    "mpls 100",
    "pppoes and ip",
    "ether proto 0x88cc",
    "udp port 67 or udp port 68",
    "udp port 123 and host 192.0.2.1",
    "tcp port 25 or tcp port 587 or tcp port 465",
    "(tcp port 80 or tcp port 443) and host 192.0.2.1 and not src net 10.0.0.0/8",
    "tcp and not (port 22 or port 80 or port 443)",
    "udp portrange 10000-20000 and greater 200",
    "port 5060 or portrange 16384-32767",
    "gateway 192.0.2.1 and not host 192.0.2.2",
    "sctp port 3868",
    "ip[0] & 0xf != 5",
    "ether[0] & 1 = 0 and ip[16] >= 224",
];

/// Programs of one source.
pub struct Part {
    /// Source of the programs.
    pub title: String,
    /// The programs, ready for an engine's compiler. They are not to be run.
    pub programs: Vec<LoweredCode>,
    /// Programs that no engine takes, such as those with indirect jumps.
    pub refused: usize,
    /// Reason of the absence, where the source is not on this machine.
    pub absent: Option<String>,
}

impl Part {
    fn absent(title: &str, why: String) -> Part {
        Part {
            title: title.to_owned(),
            programs: Vec::new(),
            refused: 0,
            absent: Some(why),
        }
    }

    /// Total number of instructions.
    pub fn insns(&self) -> usize {
        self.programs
            .iter()
            .map(|program| program.insns().len())
            .sum()
    }
}

/// All parts of the corpus.
pub fn parts() -> Vec<Part> {
    let mut parts: Vec<Part> = SETS.iter().map(|name| selftests(name)).collect();
    parts.push(expressions());
    parts.push(profiles());
    parts
}

fn selftests(name: &str) -> Part {
    let title = format!("selftests, cpu {name}");
    let set = Set::find(name).expect("the corpus names sets that there are");
    let objects = match set.objects() {
        Ok(objects) if objects.is_empty() => return Part::absent(&title, "not built".into()),
        Ok(objects) => objects,
        Err(error) => return Part::absent(&title, error.to_string()),
    };
    let mut part = Part {
        title,
        programs: Vec::new(),
        refused: 0,
        absent: None,
    };
    let mut seen: HashSet<Vec<Insn>> = HashSet::new();
    for path in objects {
        let Ok(file) = fs::read(&path) else { continue };
        for function in functions(&file) {
            if !seen.insert(function.clone()) {
                continue;
            }
            match lowered(function) {
                Some(program) => part.programs.push(program),
                None => part.refused += 1,
            }
        }
    }
    part
}

/// The functions of an object, each as a program.
fn functions(file: &[u8]) -> Vec<Vec<Insn>> {
    let Ok(elf) = Elf::parse(file) else {
        return Vec::new();
    };
    let mut functions = Vec::new();
    for symbol in elf.symbols() {
        let section = symbol.section().and_then(|id| elf.section(id));
        let Some(section) = section.filter(|section| section.executable) else {
            continue;
        };
        let (start, len) = (symbol.value as usize, symbol.size as usize);
        if symbol.kind != SymbolKind::Function || len == 0 {
            continue;
        }
        let code = section
            .data()
            .ok()
            .and_then(|data| data.get(start..)?.get(..len));
        if let Some(Ok(insns)) = code.map(isa::ebpf::decode_bytes) {
            functions.push(insns.into_iter().map(linked).collect());
        }
    }
    functions
}

/// An instruction as a linked program has it.
fn linked(insn: Insn) -> Insn {
    match insn {
        // Compilers load other numbers of 32 bits by a move.
        Insn::LoadImm64 {
            dst,
            imm: Imm64::Value(value),
        } if i32::try_from(value.get() as i64).is_err() => Insn::LoadImm64 {
            dst,
            imm: Imm64::Value(value),
        },
        Insn::LoadImm64 { dst, .. } => Insn::LoadImm64 {
            dst,
            imm: Imm64::Value(Value64::new(ADDRESS)),
        },
        Insn::Call(Callee::Helper(number)) if vm::find_call(number).is_some() => insn,
        Insn::Call(_) => Insn::Call(Callee::Helper(GET_PRANDOM_U32)),
        insn => insn,
    }
}

/// A program for an engine's compiler.
#[allow(unsafe_code)]
fn lowered(insns: Vec<Insn>) -> Option<LoweredCode> {
    // SAFETY: programs of a corpus are never run: their calls and addresses are stand-ins.
    let program = unsafe { Unchecked::assume_safe(insns) };
    // The compiler's optimizations are counted by themselves.
    let lowered = Lowered::from_unchecked_with(program, Passes::NONE);
    lowered.ok().map(Lowered::into_code)
}

fn expressions() -> Part {
    const TITLE: &str = "libpcap";
    /// A pcap header: Ethernet, packets of up to 262,144 bytes.
    const HEADER: [u8; 24] = {
        let mut header = [0; 24];
        let fields: [[u8; 4]; 6] = [
            0xa1b2_c3d4u32.to_le_bytes(),
            0x0004_0002u32.to_le_bytes(),
            [0; 4],
            [0; 4],
            262_144u32.to_le_bytes(),
            1u32.to_le_bytes(),
        ];
        let mut at = 0;
        while at < 24 {
            header[at] = fields[at / 4][at % 4];
            at += 1;
        }
        header
    };
    let libpcap = match sys::libpcap::Libpcap::load() {
        Ok(libpcap) => libpcap,
        Err(absent) => return Part::absent(TITLE, absent.0),
    };
    let mut part = Part {
        title: format!("{TITLE}, {} expressions", EXPRESSIONS.len()),
        programs: Vec::new(),
        refused: 0,
        absent: None,
    };
    for expression in EXPRESSIONS {
        let program = libpcap.compile(&HEADER, expression, true);
        match program
            .ok()
            .and_then(|program| filter(&program, Rules::Capture))
        {
            Some(program) => part.programs.push(program),
            None => part.refused += 1,
        }
    }
    part
}

fn filter(program: &[SockFilter], rules: Rules) -> Option<LoweredCode> {
    let checked = check(program, rules).ok()?;
    let semantics = match rules {
        Rules::Capture => Semantics::Capture,
        Rules::Seccomp | Rules::Socket => Semantics::Kernel,
    };
    Some(ClassicFilter::from_converted(convert(&checked, semantics)).into_code())
}

fn profiles() -> Part {
    const TITLE: &str = "container profiles";
    let directory = oracle::selftests().with_file_name("profiles");
    let mut files: Vec<_> = fs::read_dir(&directory)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "json")
        })
        .collect();
    files.sort();
    if files.is_empty() {
        return Part::absent(TITLE, format!("no profiles in {}", directory.display()));
    }
    let mut part = Part {
        title: format!("{TITLE}, {} files", files.len()),
        programs: Vec::new(),
        refused: 0,
        absent: None,
    };
    for file in files {
        let profile = fs::read(&file)
            .ok()
            .and_then(|text| ContainerProfile::read(&text).ok());
        let Some(profile) = profile else {
            part.refused += 1;
            continue;
        };
        for arch in [Arch::X86_64, Arch::Aarch64] {
            for shape in [ProgramShape::Linear, ProgramShape::Tree] {
                for caps in [&[][..], &["CAP_SYS_ADMIN", "CAP_SYS_PTRACE"]] {
                    let machine = TargetMachine {
                        arch,
                        caps: caps
                            .iter()
                            .map(|cap| (*cap).to_owned())
                            .collect::<BTreeSet<_>>(),
                        kernel: NEWEST_KERNEL,
                        runtime: Runtime::Libseccomp,
                    };
                    let compiled = compile(&profile, &machine, shape);
                    let program = compiled.ok().map(|compiled| compiled.program);
                    match program.and_then(|program| filter(&program, Rules::Seccomp)) {
                        Some(program) => part.programs.push(program),
                        None => part.refused += 1,
                    }
                }
            }
        }
    }
    part
}
