//! What runs cost by source line and chain of calls: instructions and calls of helpers, counted in the
//! checked engine, so that equal input gives equal profiles.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::time::Instant;

use interp::checked::{Moment, Observer};
use isa::ebpf::{Callee, Insn};
use report::profile::{Profile, ProfileFrame, ProfileSample};
use spec::kfuncs::KernelFunction;

use super::RunnableProgram;
use super::prepared::Prepared;

/// A function in a chain of calls.
#[derive(Debug)]
struct Node {
    /// The node of the caller with the slot of the call; none for the program that a run begins with.
    caller: Option<(usize, usize)>,
    program: u32,
    /// First slot of the function.
    start: usize,
    /// By slot: executions.
    counts: Vec<u64>,
    /// By slot: nanoseconds, if they are measured.
    times: Vec<u64>,
}

/// A node by its caller with slot, program and first slot.
type NodeKey = (Option<(usize, usize)>, u32, usize);

/// Counts what runs execute, by chains of calls.
#[derive(Debug, Default)]
pub(super) struct Profiler {
    nodes: Vec<Node>,
    known: HashMap<NodeKey, usize>,
    /// The nodes of the functions that run, the innermost last, with their depths.
    stack: Vec<(usize, usize)>,
    last: usize,
    runs: u64,
    instructions: u64,
    least: u64,
    most: u64,
    /// True if time is measured.
    is_timed: bool,
    /// When the last instruction began, and the node that it is of.
    began: Option<(Instant, usize)>,
}

impl Profiler {
    /// Begins a run, or a call by a timer.
    pub(super) fn begin(&mut self) {
        self.stack.clear();
        self.instructions = 0;
        self.began = None;
    }

    /// Ends a run.
    pub(super) fn end_run(&mut self) {
        self.note_time();
        self.began = None;
        self.least = match self.runs {
            0 => self.instructions,
            _ => self.least.min(self.instructions),
        };
        self.most = self.most.max(self.instructions);
        self.runs += 1;
    }

    /// Adds the time since the last instruction began to it.
    fn note_time(&mut self) {
        if let Some((began, node)) = self.began {
            let time = began.elapsed().as_nanos() as u64;
            self.nodes[node].times[self.last] += time;
        }
    }

    #[cold]
    fn enter(&mut self, moment: &Moment<'_, '_>) {
        let (depth, program) = (moment.depth, moment.program.number());
        while self.stack.last().is_some_and(|(_, other)| *other > depth) {
            self.stack.pop();
        }
        if let Some((node, other)) = self.stack.last()
            && *other == depth
            && self.nodes[*node].program == program
        {
            return;
        }
        // A tail call takes the place of its caller, and is shown below it.
        let caller = self.stack.last().map(|(node, _)| (*node, self.last));
        let key = (caller, program, moment.at);
        let nodes = &mut self.nodes;
        let node = *self.known.entry(key).or_insert_with(|| {
            nodes.push(Node {
                caller,
                program,
                start: moment.at,
                counts: vec![0; moment.program.insns().len()],
                times: vec![0; moment.program.insns().len()],
            });
            nodes.len() - 1
        });
        self.stack.push((node, depth));
    }

    /// The profile, by the source lines of the programs.
    fn profile(&self, programs: &[Prepared]) -> Profile {
        let mut profile = Profile {
            runs: self.runs,
            least: self.least,
            most: self.most,
            samples: Vec::new(),
        };
        for (index, node) in self.nodes.iter().enumerate() {
            let prepared = &programs[node.program as usize];
            let insns = prepared.checked.insns();
            let above = self.frames(index, programs);
            let mut lines: HashMap<Option<u32>, usize> = HashMap::new();
            for (slot, count) in node.counts.iter().enumerate() {
                if *count == 0 {
                    continue;
                }
                let frame = frame(prepared, node.start, slot);
                let key = frame.line;
                let sample = *lines.entry(key).or_insert_with(|| {
                    let stack = [&above[..], &[frame]].concat();
                    profile.samples.push(ProfileSample {
                        stack,
                        ..ProfileSample::default()
                    });
                    profile.samples.len() - 1
                });
                profile.samples[sample].instructions += count;
                let helper = insns.get(slot).and_then(called);
                if helper.is_none() {
                    profile.samples[sample].nanoseconds += node.times[slot];
                }
                if let Some(name) = helper {
                    let mut stack = profile.samples[sample].stack.clone();
                    stack.push(ProfileFrame::of_helper(name));
                    profile.samples.push(ProfileSample {
                        stack,
                        instructions: 0,
                        calls: *count,
                        nanoseconds: node.times[slot],
                    });
                }
            }
        }
        profile.merge_equal();
        profile
    }

    /// The frames of the callers of a node, the outermost first, at the lines of their calls.
    fn frames(&self, node: usize, programs: &[Prepared]) -> Vec<ProfileFrame> {
        let mut frames = Vec::new();
        let mut at = self.nodes[node].caller;
        while let Some((caller, slot)) = at {
            let of = &self.nodes[caller];
            let prepared = &programs[of.program as usize];
            frames.push(frame(prepared, of.start, slot));
            at = of.caller;
        }
        frames.reverse();
        frames
    }
}

/// The frame of a function at a slot.
fn frame(prepared: &Prepared, start: usize, slot: usize) -> ProfileFrame {
    let program = &prepared.program;
    let subprog = program.subprog_at(start as u32);
    let (file, line, text) = match prepared.line_at(slot) {
        Some((file, line, text)) => (Some(file), Some(line), Some(text)),
        None => (None, None, None),
    };
    ProfileFrame {
        function: subprog.map_or_else(|| program.name().to_owned(), |it| it.name.clone()),
        file: file.map(|file| file.trim_start_matches("./").to_owned()),
        line,
        text: text.map(|text| text.trim().to_owned()),
    }
}

/// Name of the helper or kfunc that an instruction calls.
fn called(insn: &Insn) -> Option<&'static str> {
    let Insn::Call(Callee::Helper(number)) = insn else {
        return None;
    };
    let kfunc = || KernelFunction::from_number(*number)?.name();
    Some(
        spec::calls::name(*number)
            .or_else(kfunc)
            .unwrap_or("a function of the host"),
    )
}

impl Observer for Profiler {
    #[inline]
    fn before(&mut self, moment: &Moment<'_, '_>) -> ControlFlow<()> {
        if self.is_timed {
            self.note_time();
        }
        let top = self.stack.last();
        let is_there = top.is_some_and(|(node, depth)| {
            *depth == moment.depth && self.nodes[*node].program == moment.program.number()
        });
        if !is_there {
            self.enter(moment);
        }
        if let Some((node, _)) = self.stack.last() {
            self.nodes[*node].counts[moment.at] += 1;
        }
        self.instructions += 1;
        self.last = moment.at;
        if self.is_timed {
            let top = self.stack.last();
            self.began = top.map(|(node, _)| (Instant::now(), *node));
        }
        ControlFlow::Continue(())
    }
}

impl RunnableProgram<'_> {
    /// Has the next runs profiled, in the checked engine, with the time that they take if `times`.
    pub fn start_profile(&mut self, times: bool) {
        self.attached.watchers.profiler = Some(Box::new(Profiler {
            is_timed: times,
            ..Profiler::default()
        }));
    }

    /// The profile of the runs since.
    pub fn take_profile(&mut self) -> Option<Profile> {
        let profiler = self.attached.watchers.profiler.take()?;
        Some(profiler.profile(&self.shared.programs))
    }
}
