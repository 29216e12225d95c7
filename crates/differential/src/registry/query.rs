//! Questions by loading: one small program for each helper, offset, width and kind
//! of program. A [`Subject`] is a kind of program that the running kernel verifies.

use btf::{Btf, Kind};
use isa::ebpf::RawInsn;
use spec::programs::{AttachType, ProgramType};
use spec::registry::ReturnRange;
use sys::Errno;
use sys::bpf::{BtfObject, LogLevel, ProgLoad};

use super::fields;

/// A program type under test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Subject {
    /// Type.
    pub kind: ProgramType,
    /// Number of its expected attach type.
    pub attach: u32,
    /// True if the program is declared to sleep.
    pub sleepable: bool,
    /// BTF id of its attach target, or 0.
    pub attach_btf_id: u32,
}

impl Subject {
    /// Its expected attach type.
    pub const fn attach_type(&self) -> Option<AttachType> {
        AttachType::from_number(self.attach)
    }

    /// False for the sleepable variant of a kind of program: kfuncs that may sleep, and
    /// maps that programs that sleep may not use, are refused for that alone.
    pub fn has_own_rules(&self) -> bool {
        !self.sleepable || self.kind == ProgramType::Syscall
    }
}

/// Attach types that may tell programs of a type apart, 0 first where the kernel
/// takes it.
const ATTACH_TYPES: &[(ProgramType, &[u32])] = &[
    (ProgramType::SocketFilter, &[0]),
    (ProgramType::Kprobe, &[0, 42, 48, 56, 57]),
    (ProgramType::SchedCls, &[0, 46, 47, 54, 55]),
    (ProgramType::SchedAct, &[0]),
    (ProgramType::Tracepoint, &[0]),
    (ProgramType::Xdp, &[0, 33, 35, 37]),
    (ProgramType::PerfEvent, &[0, 41]),
    (ProgramType::CgroupSkb, &[0, 1]),
    (ProgramType::CgroupSock, &[2, 34, 12, 13]),
    (ProgramType::LwtIn, &[0]),
    (ProgramType::LwtOut, &[0]),
    (ProgramType::LwtXmit, &[0]),
    (ProgramType::SockOps, &[0, 3]),
    (ProgramType::SkSkb, &[0, 4, 5, 38]),
    (ProgramType::CgroupDevice, &[0, 6]),
    (ProgramType::SkMsg, &[0, 7]),
    (ProgramType::RawTracepoint, &[0]),
    (
        ProgramType::CgroupSockAddr,
        &[
            8, 9, 10, 11, 49, 14, 15, 50, 19, 20, 51, 29, 30, 52, 31, 32, 53,
        ],
    ),
    (ProgramType::LwtSeg6local, &[0]),
    (ProgramType::SkReuseport, &[0, 39, 40]),
    (ProgramType::FlowDissector, &[0, 17]),
    (ProgramType::CgroupSysctl, &[0, 18]),
    (ProgramType::RawTracepointWritable, &[0]),
    (ProgramType::CgroupSockopt, &[21, 22]),
    (ProgramType::SkLookup, &[36]),
    (ProgramType::Syscall, &[0]),
    (ProgramType::Netfilter, &[45]),
];

/// Types whose programs may sleep without a BTF target.
const MAY_SLEEP: &[ProgramType] = &[ProgramType::Kprobe];

/// All program types that can be tested.
pub fn subjects(btf: &Btf<'_>) -> Vec<Subject> {
    let mut subjects = Vec::new();
    for &(kind, attach_types) in ATTACH_TYPES {
        for &attach in attach_types {
            let sleepable = kind == ProgramType::Syscall;
            subjects.push(Subject {
                kind,
                attach,
                sleepable,
                attach_btf_id: 0,
            });
            if MAY_SLEEP.contains(&kind) {
                subjects.push(Subject {
                    sleepable: true,
                    ..subjects[subjects.len() - 1]
                });
            }
        }
    }
    let targets = [
        (23, Kind::Typedef, "btf_trace_sched_switch"),
        (28, Kind::Func, "bpf_iter_task"),
    ];
    for (attach, kind, name) in targets {
        if let Some(target) = btf.find(kind, name) {
            subjects.push(Subject {
                kind: ProgramType::Tracing,
                attach,
                sleepable: false,
                attach_btf_id: target.id().0,
            });
            if attach == 28 {
                subjects.push(Subject {
                    sleepable: true,
                    ..subjects[subjects.len() - 1]
                });
            }
        }
    }
    subjects
}

/// An instruction slot.
pub const fn slot(code: u8, dst: u8, src: u8, off: i16, imm: i32) -> RawInsn {
    RawInsn {
        code,
        regs: src << 4 | dst,
        off,
        imm,
    }
}

const fn set(reg: u8, imm: i32) -> RawInsn {
    slot(0xb7, reg, 0, 0, imm)
}

const EXIT: RawInsn = slot(0x95, 0, 0, 0, 0);

/// Queries the kernel and counts queries.
#[derive(Debug, Default)]
pub struct KernelQuery {
    log: Vec<u8>,
    /// Programs that were given to the kernel.
    pub questions: u64,
}

/// The kernel's answer.
#[derive(Debug)]
pub struct Answer<'a> {
    /// The program, or the errno.
    pub result: Result<sys::bpf::LoadedProgram, Errno>,
    /// Words.
    pub log: &'a str,
}

impl KernelQuery {
    /// An kernel_query with room for short logs.
    pub fn new() -> KernelQuery {
        KernelQuery {
            log: Vec::with_capacity(1 << 14),
            questions: 0,
        }
    }

    /// Loads a program of the subject's kind.
    pub fn ask(&mut self, subject: &Subject, insns: &[RawInsn], is_gpl: bool) -> Answer<'_> {
        self.questions += 1;
        let request = ProgLoad {
            expected_attach_type: subject.attach,
            attach_btf_id: subject.attach_btf_id,
            flags: if subject.sleepable { 1 << 4 } else { 0 },
            license: if is_gpl { c"GPL" } else { c"Other" },
            log_level: LogLevel::LEVEL2,
            log_size: 1 << 14,
            ..ProgLoad::new(subject.kind.number(), insns)
        };
        let result = request.load_into(&mut self.log).result;
        Answer {
            result,
            log: std::str::from_utf8(&self.log).unwrap_or_default(),
        }
    }

    /// Loads a program with one static callback that starts at an instruction.
    pub fn ask_with_callback(
        &mut self,
        subject: &Subject,
        insns: &[RawInsn],
        callback: u32,
    ) -> Answer<'_> {
        self.questions += 1;
        let (blob, [main, function]) = fields::with_callback();
        let types = BtfObject::load(&blob).ok();
        let request = ProgLoad {
            expected_attach_type: subject.attach,
            attach_btf_id: subject.attach_btf_id,
            flags: if subject.sleepable { 1 << 4 } else { 0 },
            btf: types.as_ref(),
            func_info: &[[0, main.0], [callback, function.0]],
            log_level: LogLevel::LEVEL2,
            log_size: 1 << 14,
            ..ProgLoad::new(subject.kind.number(), insns)
        };
        let result = request.load_into(&mut self.log).result;
        Answer {
            result,
            log: std::str::from_utf8(&self.log).unwrap_or_default(),
        }
    }

    /// True if the kernel verifies programs of the kind at all.
    pub fn can_ask(&mut self, subject: &Subject) -> bool {
        let answer = self.ask(subject, &[EXIT], true);
        // Some operations return nothing, others hold a reference first.
        let is_verified = |word| answer.log.contains(word);
        answer.result.is_ok() || is_verified("R0 !read_ok") || is_verified("Unreleased reference")
    }

    /// True if programs of the kind have the helper.
    pub fn has_helper(&mut self, subject: &Subject, id: u32) -> bool {
        let call = call_with_scalars(id);
        let log = self.ask(subject, &call, true).log;
        // Older kernels call a helper that these programs have not an unknown function.
        let refusals = ["cannot use helper", "invalid func", "unknown func"];
        !refusals.iter().any(|words| log.contains(words))
    }

    /// Type of the helper's first argument, by the text of the refusal of a number there.
    pub fn first_argument(&mut self, subject: &Subject, id: u32) -> Option<String> {
        let call = call_with_scalars(id);
        let log = self.ask(subject, &call, true).log;
        let (_, refusal) = log.split_once("R1 type=")?;
        let (_, expected) = refusal.split_once(" expected=")?;
        Some(expected.lines().next().unwrap_or_default().to_owned())
    }

    /// True if the attach target is what the helper is refused for.
    pub fn is_refused_by_target(&mut self, subject: &Subject, id: u32) -> bool {
        let call = call_with_scalars(id);
        let log = self.ask(subject, &call, true).log;
        log.contains("helper call is not allowed in probe")
    }

    /// True if only GPL-compatible programs may call the helper.
    pub fn is_gpl_only(&mut self, subject: &Subject, id: u32) -> bool {
        let call = call_with_scalars(id);
        let log = self.ask(subject, &call, false).log;
        log.contains("GPL-restricted")
    }

    /// The words for a read (with sign extension) of the context: what the register
    /// holds, or `None` for a refused access.
    pub fn ctx_read(
        &mut self,
        subject: &Subject,
        offset: i16,
        size: u32,
        signed: bool,
    ) -> Option<String> {
        let code = match (size, signed) {
            (1, false) => 0x71,
            (2, false) => 0x69,
            (4, false) => 0x61,
            (8, false) => 0x79,
            (1, true) => 0x91,
            (2, true) => 0x89,
            (4, true) => 0x81,
            _ => return None,
        };
        let log = self.ask(
            subject,
            &[slot(code, 2, 1, offset, 0), set(0, 0), EXIT],
            true,
        );
        let log = log.log;
        // Some kernels walk over what they cannot rewrite then.
        if !log.contains("\n1: (b7) r0 = 0") || log.contains("verifier is misconfigured") {
            return None;
        }
        // The state behind the instruction, before Linux 5.18 in a line of its own.
        let mut lines = log.lines();
        let state = lines.find_map(|line| match line.strip_prefix("0: (") {
            Some(insn) => Some(insn.split_once(';')?.1),
            None => line
                .strip_prefix("1: ")
                .filter(|state| state.starts_with('R')),
        })?;
        let value = state.split_whitespace().find_map(|word| {
            word.strip_prefix("R2=")
                .or_else(|| word.strip_prefix("R2_w="))
        })?;
        Some(value.to_owned())
    }

    /// True if the context may be written there.
    pub fn ctx_write(&mut self, subject: &Subject, offset: i16, size: u32) -> bool {
        let code = match size {
            1 => 0x73,
            2 => 0x6b,
            4 => 0x63,
            8 => 0x7b,
            _ => return false,
        };
        let insns = [set(0, 0), slot(code, 1, 0, offset, 0), set(2, 0), EXIT];
        let log = self.ask(subject, &insns, true).log;
        log.contains("\n2: (b7) r2 = 0")
    }

    /// The values that the program may return.
    pub fn return_range(&mut self, subject: &Subject) -> Option<ReturnRange> {
        // r0 = bpf_get_prandom_u32()
        let insns = [slot(0x85, 0, 0, 0, 7), EXIT];
        let log = self.ask(subject, &insns, true).log;
        let (_, range) = log.split_once("should have been in ")?;
        if let Some(range) = range.strip_prefix('[') {
            let (min, rest) = range.split_once(", ")?;
            let (max, _) = rest.split_once(']')?;
            return Some(ReturnRange {
                min: min.parse().ok()?,
                max: max.parse().ok()?,
            });
        }
        // Before Linux 6.8 known bits and a mask of the unknown ones.
        let (value, rest) = range.strip_prefix('(')?.split_once("; ")?;
        let (mask, _) = rest.split_once(')')?;
        let number = |word: &str| {
            let digits = word.strip_prefix("0x").unwrap_or(word);
            i32::from_str_radix(digits, 16).ok()
        };
        let min = number(value)?;
        Some(ReturnRange {
            min,
            max: min | number(mask)?,
        })
    }

    /// The immediates of the translated calls of a program, which ends with a value that it returns;
    /// `None` if the program is refused.
    pub fn callees(&mut self, subject: &Subject, insns: &[RawInsn]) -> Option<Vec<i32>> {
        let loaded = [0, 1].into_iter().find_map(|value| {
            let insns = [insns, &[set(0, value), EXIT]].concat();
            self.ask(subject, &insns, true).result.ok()
        })?;
        let info = loaded.info().ok()?;
        let calls = info.translated.iter().filter(|insn| insn.is_call());
        Some(calls.map(|call| call.imm).collect())
    }

    /// True if programs of the kind may call the kfunc. Those that only programs bound
    /// to a device may call count as not allowed: no such device is here.
    pub fn has_kfunc(&mut self, subject: &Subject, btf_id: u32) -> bool {
        let mut call = call_with_scalars(btf_id);
        call[5].regs = 2 << 4;
        let log = self.ask(subject, &call, true).log;
        // Reports say of other refusals, too, that an operation is not allowed.
        let is_not_allowed = log.lines().any(|line| {
            line.starts_with("calling kernel function ") && line.ends_with(" is not allowed")
        });
        // The last one is what kernels without any kfunc say.
        let refusals = ["device-bound", "reserved fields"];
        !log.is_empty() && !is_not_allowed && !refusals.iter().any(|words| log.contains(words))
    }
}

/// A call with the number 1 in every argument.
fn call_with_scalars(id: u32) -> [RawInsn; 8] {
    [
        set(1, 1),
        set(2, 1),
        set(3, 1),
        set(4, 1),
        set(5, 1),
        slot(0x85, 0, 0, 0, id as i32),
        set(0, 0),
        EXIT,
    ]
}
