//! Stack of call chains, after the walk (`check_max_stack_depth`).
//!
//! Follows every chain of calls from the main function and from each asynchronous
//! callback, in the order of the instructions, and adds up the rounded stack of the
//! frames. Programs whose kernel gives them private stacks are limited by frame instead.

use spec::behaviour::Behaviour;

use super::Analysis;
use super::calls::{is_function_address, is_local_call, throws};
use crate::env::SubprogAux;
use crate::input::Input;
use crate::log::Sink;
use crate::rejection::Program;
use crate::state::MAX_CALL_FRAMES;
use crate::type_rules::{HookRules, TargetKind};
use crate::{LIMITS, Result, Stop, refuse, verbose};

/// Stack of the callers above which a subprogram may not make tail calls.
const MAX_STACK_BEFORE_TAIL_CALL: u32 = 256;
/// Frames of kernels with [`Behaviour::SixteenFrames`].
const MANY_FRAMES: usize = 16;
/// Stack from which a function gets a private one.
const MIN_PRIVATE_STACK: u32 = 64;

/// Location of a function's stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StackMode {
    Unknown,
    Kernel,
    Private,
}

/// Checks the stack of all chains of calls (`check_max_stack_depth`). Sets
/// [`SubprogAux::tail_call_reachable`].
pub(crate) fn check_max_stack_depth(
    input: &Input<'_>,
    analysis: &Analysis,
    sink: &mut Sink<'_>,
    subprogs: &mut [SubprogAux],
) -> Result<()> {
    let mut check = Check {
        input,
        analysis,
        pass: sink.at(0),
        modes: vec![StackMode::Unknown; subprogs.len()],
        subprogs,
    };
    let has_tail_call = analysis
        .subprogs
        .iter()
        .any(|subprog| subprog.has_tail_call);
    let private = input.private_stack && !has_tail_call && has_private_stack(input);
    for root in (0..check.subprogs.len()).rev() {
        if root == 0 || check.subprogs[root].is_async_cb {
            check.walk(root, root == 0 && private)?;
        }
    }
    Ok(())
}

/// True if the kernel gives the program's functions stacks of their own.
fn has_private_stack(input: &Input<'_>) -> bool {
    let rules = input.type_rules();
    let is_by_hook = rules.target == TargetKind::Function;
    rules.has_private_stack
        && (!is_by_hook || HookRules::of(input.context.hook()).has_private_stack)
}

/// Where a call returns to.
#[derive(Clone, Copy, Debug)]
struct Return {
    insn: u32,
    subprog: usize,
    /// Frame of the caller.
    frame: usize,
}

struct Check<'s, 'e, 'l> {
    input: &'s Input<'e>,
    analysis: &'s Analysis,
    pass: &'s mut Sink<'l>,
    modes: Vec<StackMode>,
    subprogs: &'s mut [SubprogAux],
}

impl Check<'_, '_, '_> {
    /// Stack of a function, as Linux rounds it (`round_up_stack_depth`).
    #[doc(alias = "round_up_stack_depth")]
    fn rounded(&self, subprog: usize) -> u32 {
        let depth = self.subprogs[subprog].stack_depth;
        match self.input.rules.has(Behaviour::FramesOf16) {
            true => depth.next_multiple_of(16),
            false => depth.max(1).next_multiple_of(32),
        }
    }

    /// Follows all calls from one function (`check_max_stack_depth_subprog`).
    #[doc(alias = "check_max_stack_depth_subprog")]
    fn walk(&mut self, root: usize, private: bool) -> Result<()> {
        let many = self.input.rules.has(Behaviour::SixteenFrames);
        let most = if many { MANY_FRAMES } else { MAX_CALL_FRAMES };
        let mut returns: Vec<Return> = Vec::new();
        let (mut frame, mut depth) = (0, 0);
        let mut subprog = root;
        let mut tail_call_reachable = false;
        self.enter(subprog, private, 1, &mut depth)?;
        let mut insn = self.analysis.subprogs[subprog].start;
        loop {
            let call = self.next_call(subprog, insn, &returns)?;
            if let Some((site, callee)) = call {
                returns.push(Return {
                    insn: site + 1,
                    subprog,
                    frame,
                });
                subprog = callee;
                insn = self.analysis.subprogs[subprog].start;
                tail_call_reachable |= self.analysis.subprogs[subprog].has_tail_call;
                frame = match many && self.analysis.subprogs[subprog].is_global {
                    true => 0,
                    false => frame + 1,
                };
                self.pass.insn_idx = site;
                if frame >= most {
                    return Err(refuse!(self.pass => Program::TooManyFramesLinked { frame }));
                }
                self.enter(subprog, private, returns.len() + 1, &mut depth)?;
                continue;
            }
            if tail_call_reachable {
                for caller in &returns {
                    self.subprogs[caller.subprog].tail_call_reachable = true;
                }
            }
            let Some(caller) = returns.pop() else {
                return Ok(());
            };
            if self.modes[subprog] != StackMode::Private {
                depth -= self.rounded(subprog);
            }
            (insn, subprog, frame) = (caller.insn, caller.subprog, caller.frame);
        }
    }

    /// Adds a function to the chain.
    fn enter(
        &mut self,
        subprog: usize,
        private: bool,
        frames: usize,
        depth: &mut u32,
    ) -> Result<()> {
        if !private {
            self.modes[subprog] = StackMode::Kernel;
        }
        if subprog != 0
            && self.analysis.subprogs[subprog].has_tail_call
            && *depth >= MAX_STACK_BEFORE_TAIL_CALL
        {
            return Err(refuse!(self.pass => Program::TailCallStack { depth: *depth }));
        }
        let own = self.rounded(subprog);
        if private && self.modes[subprog] == StackMode::Unknown && own >= MIN_PRIVATE_STACK {
            self.modes[subprog] = StackMode::Private;
        }
        let is_private = self.modes[subprog] == StackMode::Private;
        let chain = if is_private { own } else { *depth + own };
        let deepest = &mut self.pass.deepest_stack;
        *deepest = chain.max(*deepest);
        if is_private {
            if own > LIMITS.stack {
                return Err(refuse!(self.pass => Program::SubprogStack { subprog, own }));
            }
            return Ok(());
        }
        *depth += own;
        if *depth > LIMITS.stack {
            return Err(refuse!(self.pass => Program::CombinedStack { frames, depth: *depth }));
        }
        Ok(())
    }

    /// The next instruction that calls a function or takes its address, and the function.
    /// Asynchronous callbacks run on a stack of their own unless called directly.
    /// A throw on the way must not unwind a callback.
    fn next_call(
        &mut self,
        subprog: usize,
        from: u32,
        callers: &[Return],
    ) -> Result<Option<(u32, usize)>> {
        for index in from..self.analysis.subprogs[subprog].end {
            let insn = self.input.program.insns()[index as usize];
            if throws(self.input, insn) {
                let callers = callers.iter().map(|caller| caller.subprog);
                let mut chain = callers.chain([subprog]);
                if chain.any(|frame| self.subprogs[frame].is_cb) {
                    return Err(refuse!(self.pass => Program::ThrowInCallback { index, subprog }));
                }
            }
            let is_call = is_local_call(insn);
            if !is_call && !is_function_address(insn) {
                continue;
            }
            let target = (index + 1).wrapping_add_signed(insn.imm);
            let callee = self
                .analysis
                .subprog_at(target)
                .ok_or_else(|| Stop::Bug(format!("callee not found at insn {target}")))?;
            if is_call && self.analysis.exception_callback == Some(callee) {
                // The kernel ends this line of the log with its statistics.
                let rejection = Program::ExceptionCallbackCall {
                    index: index.into(),
                };
                verbose!(self.pass, "{rejection}");
                return Err(Stop::refusal(rejection, Some(self.pass.insn_idx)));
            }
            if is_call || !self.subprogs[callee].is_async_cb {
                return Ok(Some((index, callee)));
            }
        }
        Ok(None)
    }
}
