//! Stack of call chains, after the walk (`check_max_stack_depth`).
//!
//! Follows every chain of calls from the main function and from each asynchronous
//! callback, in the order of the instructions, and adds up the rounded stack of the
//! frames. Programs whose kernel gives them private stacks are limited by frame instead.

use spec::behaviour::Behaviour;
use spec::limits;

use super::calls::{is_function_address, is_local_call, throws};
use crate::env::Check;
use crate::input::Input;
use crate::rejection::Program;
use crate::state::MAX_CALL_FRAMES;
use crate::type_rules::{HookRules, TargetKind};
use crate::{Result, Stop, refuse, refuse_if, verbose};

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
/// `tail_call_reachable` of functions.
pub(crate) fn check_max_stack_depth(env: &mut Check<'_>) -> Result<()> {
    env.sink.insn_idx = 0;
    let input = env.input;
    let mut subprogs = env.analysis.subprogs.iter();
    let has_tail_call = subprogs.any(|subprog| subprog.has_tail_call);
    let private = input.private_stack && !has_tail_call && has_private_stack(input);
    let modes = vec![StackMode::Unknown; env.subprogs.len()];
    let mut depths = StackDepths { env, modes };
    for root in (0..depths.modes.len()).rev() {
        if root == 0 || depths.env.subprogs[root].is_async_cb {
            depths.walk(root, root == 0 && private)?;
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

struct StackDepths<'s, 'a> {
    env: &'s mut Check<'a>,
    modes: Vec<StackMode>,
}

impl StackDepths<'_, '_> {
    /// Stack of a function, as Linux rounds it (`round_up_stack_depth`).
    #[doc(alias = "round_up_stack_depth")]
    fn rounded(&self, subprog: usize) -> u32 {
        let depth = self.env.subprogs[subprog].stack_depth;
        match self.env.input.rules.has(Behaviour::FramesOf16) {
            true => depth.next_multiple_of(16),
            false => depth.max(1).next_multiple_of(32),
        }
    }

    /// Follows all calls from one function (`check_max_stack_depth_subprog`).
    #[doc(alias = "check_max_stack_depth_subprog")]
    fn walk(&mut self, root: usize, private: bool) -> Result<()> {
        let many = self.env.input.rules.has(Behaviour::SixteenFrames);
        let most = if many { MANY_FRAMES } else { MAX_CALL_FRAMES };
        let mut returns: Vec<Return> = Vec::new();
        let (mut frame, mut depth) = (0, 0);
        let mut subprog = root;
        let mut tail_call_reachable = false;
        self.enter(subprog, private, 1, &mut depth)?;
        let mut insn = self.env.analysis.subprogs[subprog].start;
        loop {
            let call = self.next_call(subprog, insn, &returns)?;
            if let Some((site, callee)) = call {
                returns.push(Return {
                    insn: site + 1,
                    subprog,
                    frame,
                });
                subprog = callee;
                insn = self.env.analysis.subprogs[subprog].start;
                tail_call_reachable |= self.env.analysis.subprogs[subprog].has_tail_call;
                frame = match many && self.env.analysis.subprogs[subprog].is_global {
                    true => 0,
                    false => frame + 1,
                };
                self.env.sink.insn_idx = site;
                refuse_if!(frame >= most, self.env => Program::TooManyFramesLinked { frame });
                self.enter(subprog, private, returns.len() + 1, &mut depth)?;
                continue;
            }
            if tail_call_reachable {
                for caller in &returns {
                    self.env.subprogs[caller.subprog].tail_call_reachable = true;
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
            && self.env.analysis.subprogs[subprog].has_tail_call
            && *depth >= MAX_STACK_BEFORE_TAIL_CALL
        {
            return Err(refuse!(self.env => Program::TailCallStack { depth: *depth }));
        }
        let own = self.rounded(subprog);
        if private && self.modes[subprog] == StackMode::Unknown && own >= MIN_PRIVATE_STACK {
            self.modes[subprog] = StackMode::Private;
        }
        let is_private = self.modes[subprog] == StackMode::Private;
        let chain = if is_private { own } else { *depth + own };
        let deepest = &mut self.env.sink.deepest_stack;
        *deepest = chain.max(*deepest);
        if is_private {
            refuse_if!(own > limits::STACK, self.env => Program::SubprogStack { subprog, own });
            return Ok(());
        }
        *depth += own;
        if *depth > limits::STACK {
            return Err(refuse!(self.env => Program::CombinedStack { frames, depth: *depth }));
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
        for index in from..self.env.analysis.subprogs[subprog].end {
            let insn = self.env.input.program.insns()[index as usize];
            if throws(self.env.input, insn) {
                let callers = callers.iter().map(|caller| caller.subprog);
                let mut chain = callers.chain([subprog]);
                if chain.any(|frame| self.env.subprogs[frame].is_cb) {
                    return Err(refuse!(self.env => Program::ThrowInCallback { index, subprog }));
                }
            }
            let is_call = is_local_call(insn);
            if !is_call && !is_function_address(insn) {
                continue;
            }
            let target = (index + 1).wrapping_add_signed(insn.imm);
            let callee = self
                .env
                .analysis
                .subprog_at(target)
                .ok_or_else(|| Stop::Bug(format!("callee not found at insn {target}")))?;
            if is_call && self.env.analysis.exception_callback == Some(callee) {
                // The kernel ends this line of the log with its statistics.
                let rejection = Program::ExceptionCallbackCall {
                    index: index.into(),
                };
                verbose!(self.env.sink, "{rejection}");
                return Err(Stop::refusal(rejection, Some(self.env.sink.insn_idx)));
            }
            if is_call || !self.env.subprogs[callee].is_async_cb {
                return Ok(Some((index, callee)));
            }
        }
        Ok(None)
    }
}
