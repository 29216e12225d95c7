//! A loaded program in the forms that engines run.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use ::kernel::programs::TestProgram;
use ::kernel::variables::Variables;
use btf::TypeId;
use interp::checked::CheckedProgram;
use isa::ebpf::{Callee, Imm64, Insn, Value64};
use program::{LineInfo, Program};
use spec::Kernel;
use spec::kfuncs::KernelFunction;
use spec::programs::{AttachType, ProgramType};
use vm::{HostFunction, Streams};

use super::compiled::{Code, Compiled, FunctionCode};
#[cfg(feature = "coverage")]
use super::counts::ProgramCounts;
use super::unwritten::UnwrittenRead;
use super::{ObjectMap, RunError};
use crate::engine::EngineRefusal;

/// `bpf_get_current_task` and `bpf_get_current_task_btf`.
const TASK_HELPERS: [i32; 2] = [35, 158];

/// A program in the form that its engine runs.
pub(super) struct Prepared {
    pub(super) program: Program,
    pub(super) rules: TestProgram,
    /// Instructions name maps by their place among those that are created.
    pub(super) checked: Arc<CheckedProgram>,
    /// It for an engine without checks.
    pub(super) code: Option<Code>,
    /// Functions that timers call, for that engine, by their first slots.
    pub(super) callbacks: BTreeMap<u32, FunctionCode>,
    /// It calls a helper that returns the task that runs.
    pub(super) uses_current_task: bool,
    /// Reason why the checked engine runs it although another one was requested.
    pub(super) fallback_reason: Option<EngineRefusal>,
    /// The functions of the host that it may call.
    pub(super) host: Arc<[HostFunction]>,
    /// Its standard output and error.
    pub(super) streams: Streams,
    /// What its runs executed, if they count.
    #[cfg(feature = "coverage")]
    pub(super) counts: Option<ProgramCounts>,
    /// The least instruction that may read stack memory which the program never wrote.
    may_read_unwritten: Option<usize>,
    /// The least instruction that did so in the checked engine; [`usize::MAX`] for none.
    /// The attach type, if Linux does not test-run programs of it.
    refused_attach: Option<AttachType>,
    read_unwritten: AtomicUsize,
    /// The source lines of its slots.
    lines: OnceLock<Vec<Option<LineInfo>>>,
}

/// A program, and what the checked engine has to know of it.
pub(super) struct Source<'k> {
    pub(super) program: Program,
    pub(super) number: u32,
    pub(super) kernel: &'k Kernel,
    pub(super) variables: &'k Variables,
    /// Slots of loads from memory that need not be there, ascending.
    pub(super) probing: Vec<usize>,
    /// Instructions that may read stack memory which the program never wrote, ascending; `None`
    /// if nothing is known of it, as it was not verified.
    pub(super) unwritten_reads: Option<Vec<u32>>,
    /// It is remembered which bytes of the stack were written.
    pub(super) watches_stack: bool,
}

impl Prepared {
    /// Prepares a program for the checked engine, and for another one if it was compiled for it.
    pub(super) fn new(
        source: Source<'_>,
        rules: TestProgram,
        compiled: Option<Result<Compiled, EngineRefusal>>,
        maps: &[Option<ObjectMap>],
        host: Arc<[HostFunction]>,
    ) -> Prepared {
        let Source {
            program,
            number,
            kernel,
            variables,
            probing,
            unwritten_reads,
            watches_stack,
        } = source;
        let (code, callbacks, fallback_reason) = match compiled {
            None => (None, BTreeMap::new(), None),
            Some(Ok(Compiled { program, callbacks })) => (Some(program), callbacks, None),
            Some(Err(why)) => (None, BTreeMap::new(), Some(why)),
        };
        let place = |index: &mut i32| {
            let before = maps.iter().take(usize::try_from(*index).unwrap_or(0));
            *index = before.flatten().count() as i32;
        };
        let mut insns = program.decode();
        for insn in &mut insns {
            if let Some(function) = KernelFunction::from_insn(kernel, insn) {
                *insn = function.resolved(*insn);
            }
            if let Insn::LoadImm64 { imm, .. } = insn
                && let Imm64::MapIndex { index, .. } | Imm64::MapIndexValue { index, .. } = imm
            {
                place(index);
            }
            if let Insn::LoadImm64 { imm, .. } = insn
                && let Imm64::BtfId { id, .. } = imm
                && let Some(address) = variables.address(TypeId(*id as u32))
            {
                *imm = Imm64::Value(Value64::new(address));
            }
        }
        let uses_current_task = insns.iter().any(|insn| {
            matches!(insn, Insn::Call(Callee::Helper(number)) if TASK_HELPERS.contains(number))
        });
        let exception_callback = program.exception_callback().map(|slot| slot as usize);
        let checked = CheckedProgram::new(insns)
            .with_number(number)
            .with_probing_loads(probing)
            .with_exception_callback(exception_callback);
        let may_read_unwritten = unwritten_reads.as_deref().and_then(<[u32]>::first);
        let may_read_unwritten = may_read_unwritten.map(|insn| *insn as usize);
        let may_read = unwritten_reads.is_none() || may_read_unwritten.is_some();
        let checked = match watches_stack || may_read {
            true => checked.with_watched_stack(),
            false => checked,
        };
        Prepared {
            may_read_unwritten,
            read_unwritten: AtomicUsize::new(usize::MAX),
            lines: OnceLock::new(),
            refused_attach: refused_attach(&program),
            uses_current_task,
            rules,
            checked: Arc::new(checked),
            code,
            callbacks,
            fallback_reason,
            program,
            host,
            streams: Streams::new(),
            #[cfg(feature = "coverage")]
            counts: None,
        }
    }

    /// Refuses what Linux does not test-run.
    #[inline]
    pub(super) fn check_attach_type(&self) -> Result<(), RunError> {
        match self.refused_attach {
            Some(attach) => Err(RunError::AttachType(attach)),
            None => Ok(()),
        }
    }

    /// Has it run in the checked engine after all, for this reason.
    pub(super) fn drop_code(&mut self, why: EngineRefusal) {
        self.callbacks.clear();
        if self.code.take().is_some() {
            self.fallback_reason = Some(why);
        }
    }

    /// Notes that an instruction read stack memory which the program never wrote.
    pub(super) fn note_unwritten_read(&self, insn: usize) {
        self.read_unwritten.fetch_min(insn, Ordering::Relaxed);
    }

    /// The read of stack memory that the program never wrote: one that runs of the checked engine
    /// made, or one that runs without checks may make.
    pub(super) fn unwritten_read(&self) -> Option<UnwrittenRead> {
        let is_certain = self.code.is_none();
        let insn = match is_certain {
            true => Some(self.read_unwritten.load(Ordering::Relaxed)),
            false => self.may_read_unwritten,
        };
        let insn = insn.filter(|insn| *insn != usize::MAX)?;
        Some(UnwrittenRead {
            program: self.program.name().to_owned(),
            insn,
            line: self.line_at(insn),
            is_certain,
        })
    }

    /// File, number and text of the source line of an instruction.
    pub(super) fn line_at(&self, insn: usize) -> Option<(String, u32, String)> {
        let lines = self.lines.get_or_init(|| {
            let lines = self.program.source_lines().into_iter();
            lines.map(|line| line.copied()).collect()
        });
        let line = (*lines.get(insn)?)?;
        let types = self.program.btf()?;
        let (file, text) = (types.string(line.file), types.string(line.text));
        Some((file.to_string(), line.line, text.to_string()))
    }
}

impl std::fmt::Debug for Prepared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Prepared")
            .field("program", &self.program.name())
            .field("engine", &self.code.as_ref().map(Code::engine))
            .finish_non_exhaustive()
    }
}

/// The attach type of a program, if Linux does not test-run programs of it.
fn refused_attach(program: &Program) -> Option<AttachType> {
    let attach = AttachType::from_number(program.expected_attach_type());
    let is_refused = |attach: &AttachType| {
        program.kind() == ProgramType::Xdp
            && matches!(attach, AttachType::XdpDevmap | AttachType::XdpCpumap)
    };
    attach.filter(is_refused)
}
