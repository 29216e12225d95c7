//! The passes before the walk: control flow, subprograms, prune points, strongly
//! connected components, live registers, fastcall patterns; live stack slots during the
//! walk, and the stack depth after it.
//!
//! The passes come in three groups, between which the kernel makes other checks:
//! [`find_subprogs`], then BTF and the resolution of immediates; [`check_cfg`], then the
//! attach target; [`finish`], then the walk; [`check_max_stack_depth`] after it.
//!
//! | file | contents |
//! |---|---|
//! | `btf_info` | func_info and line_info |
//! | `subprogs` | discovery and layout of subprograms, successors |
//! | `cfg` | control-flow walk, prune points |
//! | `order` | postorder, strongly connected components |
//! | `live_regs` | live registers |
//! | `fastcall` | spills around calls of the `bpf_fastcall` contract |
//! | `live_stack` | live stack slots by call chain |
//! | `stack_depth` | stack of call chains |
//! | `constants` | constants in registers, and branches that they decide |
//! | `stack_liveness` | live halves of stack slots, before the walk |
//! | `stack_track` | where pointers to stacks point |
//! | `stack_access` | bytes of stacks that instructions access |
//! | `calls` | prototypes as far as the passes need them |

mod btf_info;
pub(crate) mod calls;
mod cfg;
mod constants;
mod exceptions;
mod fastcall;
mod func_model;
mod live_regs;
mod live_stack;
mod order;
mod stack_access;
mod stack_depth;
mod stack_liveness;
mod stack_track;
mod subprogs;

use std::collections::BTreeMap;
use std::rc::Rc;

use isa::ebpf::Insn;
use spec::behaviour::Behaviour;

use crate::input::Input;
use crate::log::Sink;
use crate::precise;
use crate::state::MORE_FRAMES;
use crate::{Result, Stop, refuse};

use constants::Constants;
pub(crate) use func_model::check_func_proto;
pub(crate) use live_stack::LiveStack;
pub(crate) use stack_depth::check_max_stack_depth;
use stack_liveness::{StackLiveness, Stopped};

/// Instructions that control may reach next, the one behind first; `u32::MAX` where
/// there are fewer than two.
pub(crate) type Successors = [u32; 2];

/// What the passes before the walk compute of an instruction (`bpf_insn_aux_data`); the walk's
/// part is [`crate::env::InsnAux`].
#[doc(alias = "bpf_insn_aux_data")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InsnInfo {
    /// States are compared here (`is_prune_point`).
    #[doc(alias = "is_prune_point")]
    pub prune_point: bool,
    /// The history records the way here (`is_jmp_point`, `mark_jmp_point`).
    #[doc(alias = "is_jmp_point")]
    #[doc(alias = "mark_jmp_point")]
    pub jmp_point: bool,
    /// A state is always kept here (`is_force_checkpoint`, `mark_force_checkpoint`).
    #[doc(alias = "is_force_checkpoint")]
    #[doc(alias = "mark_force_checkpoint")]
    pub force_checkpoint: bool,
    /// The call takes a callback (`calls_callback`, `mark_calls_callback`).
    #[doc(alias = "mark_calls_callback")]
    pub calls_callback: bool,
    /// Part of a spill or fill of a fastcall pattern.
    pub fastcall_pattern: bool,
    /// Of a call, the number of spill and fill pairs of its fastcall pattern.
    pub fastcall_spills: u8,
    /// Strongly connected component; 0: none.
    pub scc: u32,
    /// Registers live before the instruction, one bit each.
    pub live_regs: u16,
    /// Registers whose precision the instruction hands on ([`precise::concerned_regs`]).
    pub concerned_regs: u16,
}

/// What the passes before the walk compute of a subprogram (`bpf_subprog_info`); the walk's
/// part is [`crate::env::SubprogAux`].
#[doc(alias = "bpf_subprog_info")]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SubprogInfo {
    /// First instruction.
    pub start: u32,
    /// Instruction behind the last.
    pub end: u32,
    /// Index of its last `exit` instruction.
    pub exit_idx: u32,
    /// Its part of [`Analysis::postorder`]: first index.
    pub postorder_start: u32,
    /// Its part of [`Analysis::postorder`]: index behind the last.
    pub postorder_end: u32,
    /// Name, for the log (`subprog_name`).
    #[doc(alias = "subprog_name")]
    pub name: String,
    /// Verified on its own by its BTF (`subprog_is_global`, `bpf_subprog_is_global`).
    #[doc(alias = "subprog_is_global")]
    #[doc(alias = "bpf_subprog_is_global")]
    pub is_global: bool,
    /// Makes tail calls.
    pub has_tail_call: bool,
    /// Has legacy packet loads.
    pub has_ld_abs: bool,
    /// Changes packet data, itself or by what it calls (`mark_subprog_changes_pkt_data`).
    #[doc(alias = "mark_subprog_changes_pkt_data")]
    pub changes_pkt_data: bool,
    /// May sleep, itself or by what it calls (`mark_subprog_might_sleep`).
    #[doc(alias = "mark_subprog_might_sleep")]
    pub might_sleep: bool,
    /// May throw an exception, itself or by what it calls (`mark_subprog_might_throw`).
    #[doc(alias = "mark_subprog_might_throw")]
    pub might_throw: bool,
    /// Initial offset of the fastcall spills.
    pub fastcall_stack_off: i32,
    /// Fastcall spills must be kept.
    pub keep_fastcall_stack: bool,
}

impl SubprogInfo {
    /// Its instructions in postorder.
    pub(crate) fn postorder<'a>(&self, analysis: &'a Analysis) -> &'a [u32] {
        &analysis.postorder[self.postorder_start as usize..self.postorder_end as usize]
    }
}

/// Results of the passes before the walk.
#[derive(Clone, Debug, Default)]
pub struct Analysis {
    /// By instruction.
    pub insns: Vec<InsnInfo>,
    /// By subprogram, ordered by start.
    pub subprogs: Vec<SubprogInfo>,
    /// Number of the subprogram that runs when an exception is thrown, if there is one
    /// (`mark_subprog_exc_cb`, `bpf_mark_subprog_exc_cb`, `subprog_is_exc_cb`).
    #[doc(alias = "mark_subprog_exc_cb")]
    #[doc(alias = "bpf_mark_subprog_exc_cb")]
    #[doc(alias = "subprog_is_exc_cb")]
    pub exception_callback: Option<usize>,
    /// Number of strongly connected components, counted from 1.
    pub scc_count: u32,
    /// By instruction, where control goes next; of jumps by a table, nothing.
    pub successors: Vec<Successors>,
    /// Of each jump by a table, the instructions that control may reach next, ascending; of what may end
    /// a function early, its last exit.
    pub jump_tables: BTreeMap<u32, Box<[u32]>>,
    /// Instructions in postorder, subprogram by subprogram.
    pub postorder: Vec<u32>,
    /// Live halves of stack slots, of kernels that know them before the walk.
    pub(crate) stack_liveness: Option<Rc<StackLiveness>>,
}

impl Analysis {
    /// Instructions that control may reach next within the subprogram (`bpf_insn_successors`).
    #[doc(alias = "bpf_insn_successors")]
    pub fn next(&self, insn: u32) -> impl Iterator<Item = u32> + '_ {
        let pair = self.successors[insn as usize].into_iter();
        let table = self.jump_tables.get(&insn).into_iter().flatten().copied();
        pair.filter(|next| *next != subprogs::NONE).chain(table)
    }

    /// Number of the subprogram that an instruction belongs to (`find_containing_subprog`,
    /// `bpf_find_containing_subprog`).
    #[doc(alias = "find_containing_subprog")]
    #[doc(alias = "bpf_find_containing_subprog")]
    pub fn subprog_containing(&self, insn: u32) -> usize {
        self.subprogs
            .partition_point(|subprog| subprog.start <= insn)
            - 1
    }

    /// Number of the subprogram that starts at an instruction (`find_subprog`, `bpf_find_subprog`).
    #[doc(alias = "find_subprog")]
    #[doc(alias = "bpf_find_subprog")]
    pub fn subprog_at(&self, insn: u32) -> Option<usize> {
        self.subprogs
            .binary_search_by_key(&insn, |subprog| subprog.start)
            .ok()
    }
}

/// Finds the subprograms, checks their layout and what BTF says of them
/// (`check_btf_info_early`, `add_subprog_and_kfunc`, `check_subprogs`, `check_btf_info`).
#[doc(alias = "check_btf_info_early")]
#[doc(alias = "add_subprog_and_kfunc")]
#[doc(alias = "check_subprogs")]
#[doc(alias = "check_btf_info")]
pub(crate) fn find_subprogs(
    input: &Input<'_>,
    sink: &mut Sink<'_>,
    analysis: &mut Analysis,
) -> Result<()> {
    btf_info::check_btf_info_early(input, sink)?;
    let callback = exceptions::find_callback(input, sink)?;
    // Where a check behind this refuses the program, its report and statistics name the subprograms.
    analysis.subprogs = subprogs::find(input, sink, callback)?;
    let subprogs = &mut analysis.subprogs;
    subprogs::check_layout(input, sink, subprogs)?;
    btf_info::check_btf_info(input, sink, subprogs)?;
    analysis.exception_callback =
        callback.and_then(|start| subprogs.iter().position(|subprog| subprog.start == start));
    let info = |insn: &Insn| InsnInfo {
        concerned_regs: precise::concerned_regs(*insn, input.rules),
        ..InsnInfo::default()
    };
    analysis.insns = input.insns.iter().map(info).collect();
    let insns = input.program.insns().iter().zip(0..);
    analysis.successors = insns
        .map(|(insn, index)| subprogs::successors(input, *insn, index))
        .collect();
    Ok(())
}

/// Checks control flow, marks prune points and computes the postorder (`check_cfg`,
/// `compute_postorder`).
#[doc(alias = "compute_postorder")]
pub(crate) fn check_cfg(
    input: &Input<'_>,
    sink: &mut Sink<'_>,
    analysis: &mut Analysis,
) -> Result<()> {
    cfg::check_cfg(input, sink.at(0), analysis)?;
    order::compute_postorder(analysis);
    Ok(())
}

/// Computes strongly connected components, live registers and fastcall patterns
/// (`compute_scc`, `compute_live_registers`, `mark_fastcall_patterns`).
#[doc(alias = "compute_scc")]
#[doc(alias = "compute_live_registers")]
#[doc(alias = "mark_fastcall_patterns")]
pub(crate) fn finish(
    input: &mut Input<'_>,
    sink: &mut Sink<'_>,
    analysis: &mut Analysis,
) -> Result<()> {
    let (folds, forgets) = (Behaviour::BranchesFolded, Behaviour::DeadForgotten);
    let needs_constants = input.rules.has(folds) || input.rules.has(forgets);
    let constants = needs_constants.then(|| Constants::of(input, analysis));
    if let Some(constants) = constants.as_ref().filter(|_| input.rules.has(folds)) {
        constants.fold_branches(input, analysis);
    }
    let pass = sink.at(0);
    if input.rules.has(Behaviour::FunctionsRecurNot) {
        let found = stack_liveness::find_recursion(input, analysis);
        if let Some((caller, callee, insn)) = found {
            pass.insn_idx = insn;
            let name = |subprog: usize| analysis.subprogs[subprog].name.clone();
            let (caller, callee) = (name(caller), name(callee));
            return Err(refuse!(pass => Program::Recursion { caller, callee }));
        }
    }
    order::compute_components(input.rules, analysis);
    live_regs::compute(input, pass, analysis);
    fastcall::mark_fastcall_patterns(input, analysis);
    if let Some(constants) = constants.filter(|_| input.rules.has(forgets)) {
        let found = StackLiveness::of(input, analysis, &constants);
        let found = found.map_err(|stopped| match stopped {
            Stopped::Analyses => refuse!(pass => Program::LivenessLimit),
            Stopped::Frames => Stop::unsupported(MORE_FRAMES),
        })?;
        analysis.stack_liveness = Some(Rc::new(found));
    }
    Ok(())
}
