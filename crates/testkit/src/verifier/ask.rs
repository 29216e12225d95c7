//! One program, put to the running kernel and to our verifier: verdict, counts and
//! the last line of the log.

use std::fmt;

use isa::ebpf::{PseudoLoad, RawInsn, assemble, encode};
use program::{MapDef, MapParams, Program};
use spec::Kernel;
use spec::maps::MapKind;
use spec::programs::ProgramType;
use spec::registry::Registry;
use sys::bpf::{Map, MapRequest, ProgLoad, prog_load};
use verifier::{Options, Verdict, verify};

use super::grammar::{ENTRIES, Target, VALUE_SIZE};

/// Bytes of room for the kernel's log.
const LOG_BYTES: usize = 1 << 20;

/// What one verifier says of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// True if it accepts.
    pub accepted: bool,
    /// Instructions processed and states made.
    pub counts: Option<(u32, u32)>,
    /// The last line before the counts, of a refused program.
    pub reason: String,
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.accepted {
            true => write!(f, "accepted")?,
            false => write!(f, "refused: {}", self.reason)?,
        }
        if let Some((insns, states)) = self.counts {
            write!(f, " ({insns} insns, {states} states)")?;
        }
        Ok(())
    }
}

/// Whether two answers agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Agreement {
    /// Verdict, counts and reason are equal.
    Equal,
    /// We do not judge the program.
    Unsupported,
    /// We accept what the kernel refuses.
    FalseAccept,
    /// We refuse what the kernel accepts.
    FalseReject,
    /// The verdicts are equal, the counts differ.
    Counts,
    /// Both refuse, for different reasons.
    Reason,
}

/// Both verifiers, with the map that generated programs use.
pub struct Judges<'a> {
    kernel: &'a Kernel,
    registry: &'a Registry,
    map: Map,
    log: Vec<u8>,
}

impl<'a> Judges<'a> {
    /// Judges for a kernel; fails where the kernel creates no map for us.
    pub fn new(kernel: &'a Kernel, registry: &'a Registry) -> Result<Judges<'a>, String> {
        let request = MapRequest {
            map_type: MapKind::Array.number(),
            key_size: 4,
            value_size: VALUE_SIZE,
            max_entries: ENTRIES,
            ..MapRequest::default()
        };
        let map = Map::create(&request).map_err(|errno| format!("no map: {errno}"))?;
        Ok(Judges {
            kernel,
            registry,
            map,
            log: Vec::with_capacity(LOG_BYTES),
        })
    }

    /// The kernel's answer; `None` where its log does not fit.
    pub fn kernel(&mut self, target: Target, insns: &[RawInsn]) -> Option<Answer> {
        let mut insns = insns.to_vec();
        for insn in &mut insns {
            if insn.pseudo_load() == Some(PseudoLoad::MapIdx) && insn.imm == 0 {
                insn.set_src(PseudoLoad::MapFd as u8);
                insn.imm = self.map.descriptor() as i32;
            }
        }
        let request = ProgLoad {
            log_level: 1,
            log_size: LOG_BYTES,
            ..ProgLoad::new(kind(target).number(), &insns)
        };
        let result = prog_load(&request, &mut self.log).result;
        let log = String::from_utf8_lossy(&self.log);
        let counts = log.lines().rev().find_map(read_counts);
        let reason = log
            .lines()
            .rev()
            .find(|line| !is_statistics(line) && !line.starts_with("; "));
        match result {
            Ok(_) => Some(Answer {
                accepted: true,
                counts,
                reason: String::new(),
            }),
            Err(errno) if errno.0 == ENOSPC => None,
            Err(_) => Some(Answer {
                accepted: false,
                counts,
                reason: reason.unwrap_or_default().to_owned(),
            }),
        }
    }

    /// Our answer; `Err` says what we do not judge, or what broke.
    pub fn ours(&self, target: Target, insns: &[RawInsn]) -> Result<Answer, String> {
        let map = MapDef::new(
            "",
            MapParams {
                map_type: MapKind::Array.number(),
                key_size: 4,
                value_size: VALUE_SIZE,
                max_entries: ENTRIES,
                ..MapParams::default()
            },
        );
        let program = Program::builder(kind(target), insns.to_vec())
            .maps(vec![std::sync::Arc::new(map)])
            .license("Dual MIT/GPL")
            .build()
            .map_err(|error| error.to_string())?;
        let done = verify(&program, self.kernel, self.registry, &Options::default());
        let counts = Some((
            done.statistics.insns_processed,
            done.statistics.total_states,
        ));
        match done.verdict {
            Verdict::Accepted => Ok(Answer {
                accepted: true,
                counts,
                reason: String::new(),
            }),
            Verdict::Refused(refusal) => Ok(Answer {
                accepted: false,
                counts,
                reason: refusal.message,
            }),
            Verdict::Unsupported(what) => Err(what),
            Verdict::Bug(what) => Err(format!("bug: {what}")),
        }
    }

    /// Puts a program to both.
    pub fn compare(&mut self, target: Target, insns: &[RawInsn]) -> Option<Comparison> {
        let kernel = self.kernel(target, insns)?;
        let ours = self.ours(target, insns);
        let agreement = match &ours {
            Err(_) => Agreement::Unsupported,
            Ok(ours) if ours.accepted && !kernel.accepted => Agreement::FalseAccept,
            Ok(ours) if !ours.accepted && kernel.accepted => Agreement::FalseReject,
            Ok(ours) if ours.reason != kernel.reason => Agreement::Reason,
            // Programs that are refused before the walk have no counts.
            Ok(ours) if kernel.counts.is_some() && ours.counts != kernel.counts => {
                Agreement::Counts
            }
            Ok(_) => Agreement::Equal,
        };
        Some(Comparison {
            agreement,
            kernel,
            ours,
        })
    }
}

/// Two answers to one program.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// Whether they agree.
    pub agreement: Agreement,
    /// The kernel's.
    pub kernel: Answer,
    /// Ours, or what we do not judge.
    pub ours: Result<Answer, String>,
}

/// Slots of a program's text.
pub fn assembled(text: &str) -> Result<Vec<RawInsn>, String> {
    let insns = assemble(text).map_err(|error| error.to_string())?;
    encode(&insns).map_err(|error| format!("{error:?}"))
}

const ENOSPC: i32 = 28;

fn kind(target: Target) -> ProgramType {
    match target {
        Target::SchedCls => ProgramType::SchedCls,
        Target::Xdp => ProgramType::Xdp,
        Target::SocketFilter => ProgramType::SocketFilter,
    }
}

fn is_statistics(line: &str) -> bool {
    ["processed ", "verification time ", "stack depth "]
        .iter()
        .any(|start| line.starts_with(start))
}

/// Instructions and states of the line `processed N insns ... total_states S ...`.
fn read_counts(line: &str) -> Option<(u32, u32)> {
    let rest = line.strip_prefix("processed ")?;
    let insns = rest.split_whitespace().next()?.parse().ok()?;
    let states = rest.split("total_states ").nth(1)?;
    let states = states.split_whitespace().next()?.parse().ok()?;
    Some((insns, states))
}
