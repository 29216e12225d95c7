//! Numbers of instructions that the kernel makes of one, by the length of accepted programs
//! after rewriting (`bpf_prog_info.xlated_prog_len`).

use std::collections::BTreeMap;

use isa::ebpf::RawInsn;
use spec::maps::MapKind;
use spec::programs::ProgramType;
use spec::registry::{
    AccessForm, FieldRule, Layout, PacketLoads, RegBase, RegistryData, Rewriting, Rewritten, Widths,
};
use sys::bpf::Map;

use super::build::HELPERS;
use super::layout;
use super::map_requests::create_all;
use super::maps::{self, MapQuery};
use super::query::{KernelQuery, Subject, slot};
use super::source;

/// Offset of `tstamp_type` in `struct __sk_buff`.
const TSTAMP_TYPE: i16 = 180;
/// Offsets of `tstamp` in `struct __sk_buff`.
const TSTAMP: std::ops::Range<i16> = 152..160;
/// Offset of `sk` in `struct __sk_buff`.
const SK: i16 = 168;
const MAP_LOOKUP: i32 = 1;
const SK_FULLSOCK: i32 = 95;
const TCP_SOCK: i32 = 96;
/// Offsets asked about of sockets.
const SOCKET_OFFSETS: i16 = 128;
/// Widths of accesses in bytes.
const WIDTHS: [u32; 4] = [1, 2, 4, 8];

const EXIT: RawInsn = slot(0x95, 0, 0, 0, 0);

const fn set(reg: u8, imm: i32) -> RawInsn {
    slot(0xb7, reg, 0, 0, imm)
}

/// One access to what register 1 points to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldAccess {
    /// Offset of the field.
    pub offset: i16,
    /// Bytes.
    pub bytes: u32,
    /// Form of the access.
    pub form: AccessForm,
    /// True if the program also accesses `tstamp_type`.
    pub beside_tstamp_type: bool,
}

impl FieldAccess {
    /// All accesses to an offset; those of programs that access `tstamp_type` where it matters.
    pub fn at(subject: &Subject, offset: i16) -> impl Iterator<Item = FieldAccess> {
        let is_skb = matches!(subject.kind, ProgramType::SchedCls | ProgramType::SchedAct);
        let besides: &[bool] = match is_skb && TSTAMP.contains(&offset) {
            true => &[false, true],
            false => &[false],
        };
        let forms = AccessForm::ALL.into_iter();
        let forms = forms.flat_map(|form| WIDTHS.map(|bytes| (form, bytes)));
        let forms = forms.filter(|(form, bytes)| !(form.is_signed() && *bytes == 8));
        forms.flat_map(move |(form, bytes)| {
            besides.iter().map(move |&beside_tstamp_type| FieldAccess {
                offset,
                bytes,
                form,
                beside_tstamp_type,
            })
        })
    }

    /// The access; a store writes register 0.
    fn insn(self) -> RawInsn {
        let size = match self.bytes {
            1 => 0x10,
            2 => 0x08,
            4 => 0x00,
            _ => 0x18,
        };
        let load = |mode: u8, dst| slot(mode | size | 0x01, dst, 1, self.offset, 0);
        match self.form {
            AccessForm::Read => load(0x60, 2),
            AccessForm::ReadBase => load(0x60, 1),
            AccessForm::SignedRead => load(0x80, 2),
            AccessForm::SignedReadBase => load(0x80, 1),
            AccessForm::Write => slot(0x63 | size, 1, 0, self.offset, 0),
            AccessForm::WriteImm => slot(0x62 | size, 1, 0, self.offset, 0),
        }
    }

    /// The entry of a registry; none for one instruction, which is the rule.
    fn entry(self, insns: u32) -> Option<Rewritten> {
        (insns != 1 || self.beside_tstamp_type).then_some(Rewritten {
            form: self.form,
            bytes: self.bytes as u8,
            beside_tstamp_type: self.beside_tstamp_type,
            insns: insns as u8,
        })
    }
}

/// Length of a program after rewriting; `None` if it is refused.
fn len(kernel_query: &mut KernelQuery, subject: &Subject, insns: &[RawInsn]) -> Option<u32> {
    let loaded = kernel_query.ask(subject, insns, true).result.ok()?;
    Some(loaded.info().ok()?.translated.len() as u32)
}

/// Instructions that one becomes in a program that is `without` long without it; 0 if Linux
/// accepts the access in the walk and fails to rewrite it, `None` if it refuses the program.
fn insns_of(
    kernel_query: &mut KernelQuery,
    subject: &Subject,
    program: &[RawInsn],
    without: u32,
) -> Option<u32> {
    let answer = kernel_query.ask(subject, program, true);
    if answer.log.contains("error during ctx access conversion") {
        return Some(0);
    }
    let len = answer.result.ok()?.info().ok()?.translated.len() as u32;
    (len + 1).checked_sub(without)
}

/// Instructions that an access to the context becomes, in a program that returns `returns`;
/// 0 for one that Linux accepts and fails to rewrite.
pub fn access_insns(
    kernel_query: &mut KernelQuery,
    subject: &Subject,
    access: FieldAccess,
    returns: i32,
) -> Option<u32> {
    let program = |insn: RawInsn| {
        let mut insns = vec![set(0, returns)];
        if access.beside_tstamp_type {
            insns.push(slot(0x71, 3, 1, TSTAMP_TYPE, 0));
        }
        insns.extend([insn, EXIT]);
        insns
    };
    let without = match access.beside_tstamp_type {
        true => len(kernel_query, subject, &program(set(2, 0)))?,
        false => 3,
    };
    insns_of(kernel_query, subject, &program(access.insn()), without)
}

/// The accesses to an offset of a context of which the kernel makes several instructions.
pub fn of_offset(
    kernel_query: &mut KernelQuery,
    subject: &Subject,
    rules: &[FieldRule],
    offset: i16,
    returns: i32,
) -> Vec<Rewritten> {
    let is_allowed = |access: &FieldAccess| {
        rules.iter().any(|rule| {
            let widths = match (access.form.writes(), access.form.is_signed()) {
                (true, _) => rule.writes,
                (false, true) => rule.signed_reads,
                (false, false) => rule.reads,
            };
            widths.has(access.bytes)
        })
    };
    let accesses = FieldAccess::at(subject, offset).filter(is_allowed);
    let mut rewritten: Vec<Rewritten> = Vec::new();
    for access in accesses {
        let insns = access_insns(kernel_query, subject, access, returns);
        rewritten.extend(insns.and_then(|insns| access.entry(insns)));
    }
    rewritten
}

/// Instructions that the kernel puts in front of programs of a kind that write to packets.
pub fn prologue(
    kernel_query: &mut KernelQuery,
    subject: &Subject,
    layout: &Layout,
    returns: i32,
) -> u8 {
    let Layout::Fields(rules) = layout else {
        return 0;
    };
    let load = |base: RegBase, dst: u8| {
        let rule = rules.iter().find(|rule| rule.value.base == base)?;
        let code = if rule.reads.has(4) { 0x61 } else { 0x79 };
        Some(slot(code, dst, 1, rule.first as i16, 0))
    };
    let (Some(data), Some(end)) = (
        load(RegBase::PtrToPacket, 2),
        load(RegBase::PtrToPacketEnd, 3),
    ) else {
        return 0;
    };
    let mut program = |access: RawInsn| {
        let insns = [
            data,
            end,
            slot(0xbf, 4, 2, 0, 0),
            slot(0x07, 4, 0, 0, 8),
            // if r4 > r3 goto +1
            slot(0x2d, 4, 3, 1, 0),
            access,
            set(0, returns),
            EXIT,
        ];
        len(kernel_query, subject, &insns)
    };
    let read = program(slot(0x71, 4, 2, 0, 0));
    let written = program(slot(0x72, 2, 0, 0, 0));
    let more = written.zip(read).map(|(written, read)| written - read);
    more.unwrap_or(0) as u8
}

/// Source of a socket of a kind in a program.
pub struct SocketQuery {
    xskmap: Option<Map>,
}

/// Kinds of sockets whose fields are rewritten.
pub const SOCKETS: [RegBase; 4] = [
    RegBase::PtrToSocket,
    RegBase::PtrToSockCommon,
    RegBase::PtrToTcpSock,
    RegBase::PtrToXdpSock,
];

impl SocketQuery {
    /// With the map that holds XDP sockets.
    pub fn new() -> SocketQuery {
        let mut maps = create_all().into_iter();
        let xskmap = maps.find(|(kind, _)| *kind == MapKind::Xskmap);
        SocketQuery {
            xskmap: xskmap.map(|(_, map)| map),
        }
    }

    /// A program that does this with a socket in register 1.
    fn program(&self, base: RegBase, insn: RawInsn) -> Option<(Subject, Vec<RawInsn>)> {
        let kind = match base {
            RegBase::PtrToXdpSock => ProgramType::Xdp,
            _ => ProgramType::SchedCls,
        };
        let mut insns = Vec::new();
        let call = |number| [slot(0x85, 0, 0, 0, number), slot(0xbf, 1, 0, 0, 0)];
        match base {
            RegBase::PtrToXdpSock => {
                insns.push(slot(
                    0x18,
                    1,
                    1,
                    0,
                    self.xskmap.as_ref()?.descriptor() as i32,
                ));
                insns.extend([slot(0, 0, 0, 0, 0), slot(0xbf, 2, 10, 0, 0)]);
                insns.extend([slot(0x07, 2, 0, 0, -4), slot(0x62, 10, 0, -4, 0)]);
                insns.extend(call(MAP_LOOKUP));
            }
            _ => insns.push(slot(0x79, 1, 1, SK, 0)),
        }
        let mut checks = vec![insns.len()];
        insns.push(slot(0x15, 1, 0, 0, 0));
        if let Some(helper) = match base {
            RegBase::PtrToSocket => Some(SK_FULLSOCK),
            RegBase::PtrToTcpSock => Some(TCP_SOCK),
            _ => None,
        } {
            insns.extend(call(helper));
            checks.push(insns.len());
            insns.push(slot(0x15, 1, 0, 0, 0));
        }
        insns.push(insn);
        let end = insns.len();
        for at in checks {
            insns[at].off = (end - at - 1) as i16;
        }
        insns.extend([set(0, 0), EXIT]);
        let subject = Subject {
            kind,
            attach: 0,
            sleepable: false,
            attach_btf_id: 0,
        };
        Some((subject, insns))
    }

    /// Instructions that a load of a field becomes, 0 for one that Linux accepts and fails to
    /// rewrite; `None` if it is refused.
    pub fn insns(
        &self,
        kernel_query: &mut KernelQuery,
        base: RegBase,
        access: FieldAccess,
    ) -> Option<u32> {
        let (subject, insns) = self.program(base, set(2, 0))?;
        let without = len(kernel_query, &subject, &insns)?;
        let (subject, insns) = self.program(base, access.insn())?;
        insns_of(kernel_query, &subject, &insns, without)
    }

    /// The fields of every kind of socket.
    pub fn ask(&self, kernel_query: &mut KernelQuery) -> Vec<(RegBase, Vec<FieldRule>)> {
        let rules = SOCKETS.map(|base| {
            let mut rules = Vec::new();
            for offset in 0..SOCKET_OFFSETS {
                rules.extend(self.rule(kernel_query, base, offset));
            }
            (base, layout::finish(rules))
        });
        rules.into()
    }

    fn rule(
        &self,
        kernel_query: &mut KernelQuery,
        base: RegBase,
        offset: i16,
    ) -> Option<FieldRule> {
        let mut rule = FieldRule {
            first: offset as u32,
            last: offset as u32,
            step: 1,
            reads: Widths::default(),
            signed_reads: Widths::default(),
            writes: Widths::default(),
            value: RegBase::Scalar.into(),
            btf: None,
            field_size: 0,
            rewritten: Vec::new(),
        };
        for access in socket_accesses(offset) {
            let Some(insns) = self.insns(kernel_query, base, access) else {
                continue;
            };
            let widths = match (access.form.writes(), access.form.is_signed()) {
                (true, _) => &mut rule.writes,
                (false, true) => &mut rule.signed_reads,
                (false, false) => &mut rule.reads,
            };
            widths.0 |= Widths::of(access.bytes).0;
            rule.rewritten.extend(access.entry(insns));
        }
        let is_allowed = rule.reads.0 | rule.signed_reads.0 | rule.writes.0 != 0;
        is_allowed.then_some(rule)
    }
}

impl Default for SocketQuery {
    fn default() -> SocketQuery {
        SocketQuery::new()
    }
}

/// All accesses to an offset of a socket that are asked about.
pub fn socket_accesses(offset: i16) -> impl Iterator<Item = FieldAccess> {
    let forms = AccessForm::ALL.into_iter();
    let forms = forms.flat_map(|form| WIDTHS.map(|bytes| (form, bytes)));
    let forms = forms.filter(|(form, bytes)| !(form.is_signed() && *bytes == 8));
    forms.map(move |(form, bytes)| FieldAccess {
        offset,
        bytes,
        form,
        beside_tstamp_type: false,
    })
}

/// Offsets of a socket that are asked about.
pub fn socket_offsets() -> std::ops::Range<i16> {
    0..SOCKET_OFFSETS
}

/// Rewriting of calls and packet loads, as far as a program here can make them.
pub fn ask(
    kernel_query: &mut KernelQuery,
    maps: &MapQuery<'_>,
    registry: &RegistryData,
    subjects: &[Subject],
) -> Rewriting {
    let mut calls = BTreeMap::new();
    for id in 1..=HELPERS {
        for (kind, map) in maps.for_calls(registry, id) {
            let insns = subjects.iter().find_map(|subject| {
                let call = maps.call_of(registry, subject, id, map)?;
                call_insns(kernel_query, subject, &call)
            });
            // Only what lookups become depends on the map.
            let kind = kind.filter(|_| id == MAP_LOOKUP as u32);
            calls.extend(insns.map(|insns| ((id, kind), insns)));
        }
    }
    Rewriting {
        calls,
        packet_loads: packet_loads(kernel_query).unwrap_or_default(),
    }
}

/// Instructions that the call of a draft becomes.
fn call_insns(kernel_query: &mut KernelQuery, subject: &Subject, call: &maps::Draft) -> Option<u8> {
    let insns = match call.callback {
        // Without the call, its function would be dead code.
        Some(callback) => {
            let answer = kernel_query.ask_with_callback(subject, &call.insns, callback);
            let whole = answer.result.ok()?.info().ok()?.translated.len();
            (whole + 1).checked_sub(call.insns.len())? as u32
        }
        None => {
            let whole = len(kernel_query, subject, &call.insns)?;
            let mut without = call.insns.clone();
            without[call.behind - 1] = set(0, 0);
            (whole + 1).checked_sub(len(kernel_query, subject, &without)?)?
        }
    };
    u8::try_from(insns).ok()
}

/// Rewriting of legacy packet loads.
fn packet_loads(kernel_query: &mut KernelQuery) -> Option<PacketLoads> {
    let subject = Subject {
        kind: ProgramType::SocketFilter,
        attach: 0,
        sleepable: false,
        attach_btf_id: 0,
    };
    let mut ask = |load: RawInsn| {
        let insns = [slot(0xbf, 6, 1, 0, 0), set(7, 0), load, set(0, 0), EXIT];
        Some((len(kernel_query, &subject, &insns)? - 4) as u8)
    };
    Some(PacketLoads {
        absolute: ask(slot(0x20, 0, 0, 0, 4))?,
        indirect: ask(slot(0x40, 0, 7, 0, 0))?,
        indirect_offset: ask(slot(0x40, 0, 7, 0, 4))?,
    })
}

/// Adds what could not be asked: calls on special fields of values and on objects that no
/// program here has.
pub fn add_unasked(rewriting: &mut Rewriting, not_asked: &mut Vec<String>) {
    for (helper, insns, name) in source::UNASKED_CALLS {
        rewriting.calls.insert((helper, None), insns);
        not_asked.push(format!("instructions in place of {name}: {insns}"));
    }
    rewriting.calls.retain(|_, insns| *insns != 1);
}
