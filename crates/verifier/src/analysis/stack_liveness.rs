//! Live halves of stack slots, found before the walk (`bpf_compute_subprog_arg_access`).
//!
//! Each function is analysed for each call that gives it pointers to stacks, and once on its own if
//! no call does. A forward data flow finds where pointers point ([`super::stack_track`]); from it follow the
//! halves of slots that an instruction may read and those that it certainly writes; a backward data
//! flow over the postorder gives the halves that may be read later. What is live at a function's
//! entry is read by its call.
//!
//! Half n covers `[fp-4(n+1), fp-4n)` and is bit n of a set.

use std::collections::HashMap;

use isa::ebpf::{Insn, RawInsn, Reg};

use super::constants::Constants;
use super::stack_access::{self, Bytes};
use super::stack_track::{SLOTS, Track, Tracks};
use super::{Analysis, calls};
use crate::input::Input;
use crate::state::{MAX_CALL_FRAMES, State};

/// Analyses of functions, at most.
const MOST_ANALYSES: u32 = 10_000;

/// Why a program is not analysed.
pub(crate) enum Stopped {
    /// More analyses of functions than the kernel makes.
    Analyses,
    /// More frames than are modelled.
    Frames,
}

/// Sets of halves of one frame at one instruction.
#[derive(Clone, Copy, Debug, Default)]
struct Marks {
    may_read: u128,
    must_write: u128,
    live_before: u128,
}

/// A function at a call of a certain depth, or on its own.
#[derive(Debug)]
struct Instance {
    depth: usize,
    subprog: usize,
    start: u32,
    /// By frame, by instruction; empty until the first mark.
    frames: [Vec<Marks>; MAX_CALL_FRAMES],
    is_complete: bool,
}

impl Instance {
    /// An instance without marks (`fresh_instance`).
    #[doc(alias = "fresh_instance")]
    fn new(analysis: &Analysis, depth: usize, subprog: usize) -> Instance {
        Instance {
            depth,
            subprog,
            start: analysis.subprogs[subprog].start,
            frames: Default::default(),
            is_complete: false,
        }
    }

    /// Marks of a frame at an instruction, if there are any (`get_frame_masks`).
    #[doc(alias = "get_frame_masks")]
    fn marks(&self, frame: usize, insn: u32) -> Option<&Marks> {
        self.frames[frame].get((insn - self.start) as usize)
    }

    /// Marks of a frame at an instruction, for writing (`alloc_frame_masks`).
    #[doc(alias = "alloc_frame_masks")]
    fn marks_mut(&mut self, analysis: &Analysis, frame: usize, insn: u32) -> &mut Marks {
        let range = &analysis.subprogs[self.subprog];
        let marks = &mut self.frames[frame];
        if marks.is_empty() {
            marks.resize((range.end - range.start) as usize, Marks::default());
        }
        &mut marks[(insn - self.start) as usize]
    }

    /// Halves of a frame that may be read from an instruction on (`is_live_before`).
    #[doc(alias = "is_live_before")]
    fn live_before(&self, frame: usize, insn: u32) -> u128 {
        self.marks(frame, insn).map_or(0, |marks| marks.live_before)
    }

    /// What another analysis of the same function may read, it may read; what one does not write is not
    /// written for certain (`merge_instances`).
    #[doc(alias = "merge_instances")]
    fn merge(&mut self, other: Instance) {
        for (old, new) in self
            .frames
            .iter_mut()
            .zip(other.frames)
            .take(self.depth + 1)
        {
            match (old.is_empty(), new.is_empty()) {
                (_, true) => old.iter_mut().for_each(|marks| marks.must_write = 0),
                (true, false) => {
                    *old = new;
                    old.iter_mut().for_each(|marks| marks.must_write = 0);
                }
                (false, false) => {
                    for (old, new) in old.iter_mut().zip(new) {
                        old.may_read |= new.may_read;
                        old.must_write &= new.must_write;
                    }
                }
            }
        }
    }

    /// The backward data flow to its fixpoint (`update_instance`, `update_insn`).
    #[doc(alias = "update_insn")]
    fn update(&mut self, analysis: &Analysis) {
        self.is_complete = true;
        let order = analysis.subprogs[self.subprog].postorder(analysis);
        loop {
            let mut changed = false;
            for marks in self.frames.iter_mut().filter(|marks| !marks.is_empty()) {
                for &insn in order {
                    let mut next = analysis.next(insn).peekable();
                    if next.peek().is_none() {
                        continue;
                    }
                    let after = next.fold(0, |live, next| {
                        live | marks[(next - self.start) as usize].live_before
                    });
                    let marks = &mut marks[(insn - self.start) as usize];
                    let before = after & !marks.must_write | marks.may_read;
                    changed |= before != marks.live_before;
                    marks.live_before = before;
                }
            }
            if !changed {
                return;
            }
        }
    }
}

/// Live halves of slots at each instruction of each function.
#[derive(Debug, Default)]
pub(crate) struct StackLiveness {
    instances: Vec<Instance>,
    /// By call, or by first instruction of a function on its own, and depth.
    by_site: HashMap<(u32, usize), usize>,
}

impl StackLiveness {
    /// Computes them; `None` where Linux gives up (`bpf_compute_subprog_arg_access`).
    #[doc(alias = "bpf_compute_subprog_arg_access")]
    pub(crate) fn of(
        input: &Input<'_>,
        analysis: &Analysis,
        constants: &Constants,
    ) -> Result<StackLiveness, Stopped> {
        let mut search = Search {
            input,
            analysis,
            constants,
            found: StackLiveness::default(),
            tracks: vec![None; analysis.subprogs.len()],
            slots_at: HashMap::new(),
            analyses: 0,
        };
        for subprog in callers_first(input, analysis) {
            let is_done = search.tracks[subprog].is_some();
            if is_done && !analysis.subprogs[subprog].is_global {
                continue;
            }
            let site = analysis.subprogs[subprog].start;
            let instance = search.instance(site, 0, subprog);
            search.analyse(instance, None, &mut [0; MAX_CALL_FRAMES])?;
        }
        Ok(search.found)
    }

    /// Halves of slots of each frame of a state that may be read (`bpf_stack_slot_alive`).
    #[doc(alias = "bpf_stack_slot_alive")]
    pub(crate) fn alive(&self, analysis: &Analysis, state: &State) -> [u128; MAX_CALL_FRAMES] {
        let top = state.curframe;
        let mut alive = [!0; MAX_CALL_FRAMES];
        let Some(innermost) = self.lookup(analysis, state, top) else {
            return alive;
        };
        for (frame, alive) in alive.iter_mut().enumerate().take(top + 1) {
            *alive = match (frame + innermost.depth).checked_sub(top) {
                Some(own) if own <= innermost.depth => innermost.live_before(own, state.insn_idx),
                _ => 0,
            };
            for outer in frame..top {
                let instance = self.lookup(analysis, state, outer);
                let own = instance.and_then(|it| (frame + it.depth).checked_sub(outer));
                let (Some(instance), Some(own)) = (instance, own) else {
                    *alive = !0;
                    break;
                };
                let site = state.frame(outer + 1).callsite as u32;
                let insn = match analysis.insns[site as usize].calls_callback {
                    true => site,
                    false => site + 1,
                };
                *alive |= instance.live_before(own, insn);
            }
        }
        alive
    }

    /// The instance of a frame: of its call at the depth where it was analysed (`lookup_instance`,
    /// `find_instance`).
    #[doc(alias = "lookup_instance")]
    #[doc(alias = "find_instance")]
    fn lookup(&self, analysis: &Analysis, state: &State, frame: usize) -> Option<&Instance> {
        let start = analysis.subprogs[state.frame(frame).subprogno as usize].start;
        let site = match frame {
            0 => start,
            _ => state.frame(frame).callsite as u32,
        };
        (0..=frame).rev().find_map(|depth| {
            let key = match depth {
                0 => start,
                _ => site,
            };
            Some(&self.instances[*self.by_site.get(&(key, depth))?])
        })
    }
}

/// Functions, those that are called behind their callers.
fn callers_first(input: &Input<'_>, analysis: &Analysis) -> Vec<usize> {
    let mut order = sort(input, analysis).unwrap_or_default();
    order.reverse();
    order
}

/// A function and one that it calls, which calls it in turn, and the call.
pub(super) fn find_recursion(
    input: &Input<'_>,
    analysis: &Analysis,
) -> Option<(usize, usize, u32)> {
    sort(input, analysis).err()
}

/// Functions, those that are called in front of their callers; or a call of a function that is not
/// left (`sort_subprogs_topo`).
#[doc(alias = "sort_subprogs_topo")]
fn sort(input: &Input<'_>, analysis: &Analysis) -> Result<Vec<usize>, (usize, usize, u32)> {
    let insns = input.program.insns();
    let callees = |subprog: usize| {
        let order = analysis.subprogs[subprog].postorder(analysis);
        order.iter().filter_map(move |&index| {
            let insn = insns[index as usize];
            let is_call = calls::is_local_call(insn);
            let is_named = is_call || calls::is_function_address(insn);
            let target = (index + 1).wrapping_add_signed(insn.imm);
            let callee = analysis.subprog_at(target).filter(|_| is_named)?;
            Some((callee, is_call, index))
        })
    };
    let mut order = Vec::new();
    let mut is_seen = vec![false; analysis.subprogs.len()];
    for root in 0..analysis.subprogs.len() {
        if std::mem::replace(&mut is_seen[root], true) {
            continue;
        }
        let mut stack = vec![root];
        while let Some(&top) = stack.last() {
            let is_open = |callee: &usize| stack.contains(callee);
            let mut open = callees(top)
                .filter(|(callee, is_call, _)| !is_seen[*callee] || *is_call && is_open(callee));
            match open.next() {
                Some((callee, _, insn)) if is_seen[callee] => return Err((top, callee, insn)),
                Some((callee, ..)) => {
                    is_seen[callee] = true;
                    stack.push(callee);
                }
                None => {
                    order.push(top);
                    stack.pop();
                }
            }
        }
    }
    Ok(order)
}

/// The analysis under way.
struct Search<'a> {
    input: &'a Input<'a>,
    analysis: &'a Analysis,
    constants: &'a Constants,
    found: StackLiveness,
    /// By function, registers before each instruction as of its last analysis.
    tracks: Vec<Option<Vec<[Track; 11]>>>,
    /// By call, the slots of the calling function before it.
    slots_at: HashMap<u32, [Track; SLOTS]>,
    analyses: u32,
}

impl Search<'_> {
    /// The instance of a call at a depth, made if there is none (`call_instance`).
    #[doc(alias = "call_instance")]
    fn instance(&mut self, site: u32, depth: usize, subprog: usize) -> usize {
        let (instances, analysis) = (&mut self.found.instances, self.analysis);
        *(self.found.by_site)
            .entry((site, depth))
            .or_insert_with(|| {
                instances.push(Instance::new(analysis, depth, subprog));
                instances.len() - 1
            })
    }

    /// Analyses a function with what a call gives it, and the functions that it calls
    /// (`analyze_subprog`, `has_fp_args`).
    #[doc(alias = "analyze_subprog")]
    #[doc(alias = "has_fp_args")]
    fn analyse(
        &mut self,
        number: usize,
        args: Option<&[Track; 11]>,
        sites: &mut [u32; MAX_CALL_FRAMES],
    ) -> Result<(), Stopped> {
        self.analyses += 1;
        if self.analyses > MOST_ANALYSES {
            return Err(Stopped::Analyses);
        }
        let (depth, subprog) = {
            let instance = &self.found.instances[number];
            (instance.depth, instance.subprog)
        };
        let mut fresh = Instance::new(self.analysis, depth, subprog);
        let regs = self.find_tracks(&mut fresh, args, sites);
        let order = self.analysis.subprogs[subprog].postorder(self.analysis);
        for &site in order {
            let insn = self.input.program.insns()[site as usize];
            let at = &regs[(site - fresh.start) as usize];
            let Some((callee, args)) = self.called(&mut fresh, site, insn, at) else {
                continue;
            };
            if !args.iter().any(|arg| arg.is_pointer()) {
                continue;
            }
            if depth == MAX_CALL_FRAMES - 1 {
                return Err(Stopped::Frames);
            }
            let inner = self.instance(site, depth + 1, callee);
            sites[depth] = site;
            self.analyse(inner, Some(&args), sites)?;
            let inner = &self.found.instances[inner];
            let entry = inner.start;
            let live: Vec<u128> = (0..=depth)
                .map(|frame| inner.live_before(frame, entry))
                .collect();
            for (frame, live) in live.into_iter().enumerate().filter(|(_, live)| *live != 0) {
                fresh.marks_mut(self.analysis, frame, site).may_read |= live;
            }
        }
        self.tracks[subprog] = Some(regs);
        let instance = &mut self.found.instances[number];
        match instance.is_complete {
            true => instance.merge(fresh),
            false => *instance = fresh,
        }
        instance.update(self.analysis);
        Ok(())
    }

    /// The function that a call enters, with the pointers that it is given.
    fn called(
        &self,
        instance: &mut Instance,
        site: u32,
        insn: RawInsn,
        regs: &[Track; 11],
    ) -> Option<(usize, [Track; 11])> {
        let mut args = [Track::Other; 11];
        if calls::is_local_call(insn) {
            let target = (site + 1).wrapping_add_signed(insn.imm);
            args[1..6].copy_from_slice(&regs[1..6]);
            return Some((self.analysis.subprog_at(target)?, args));
        }
        if !self.analysis.insns[site as usize].calls_callback {
            return None;
        }
        let [function, given, taken] = stack_access::callback_registers(insn)?;
        let Some(callee) = self.constants.function(site, function) else {
            // One of several functions, which may read whatever they are given.
            if regs[given.index()] != Track::Other {
                for frame in 0..=instance.depth {
                    instance.marks_mut(self.analysis, frame, site).may_read = !0;
                }
            }
            return None;
        };
        args[taken.index()] = regs[given.index()];
        Some((callee, args))
    }

    /// The forward data flow of a function, and the marks that follow from it; registers before each
    /// instruction (`compute_subprog_args`).
    #[doc(alias = "compute_subprog_args")]
    fn find_tracks(
        &mut self,
        instance: &mut Instance,
        args: Option<&[Track; 11]>,
        sites: &[u32; MAX_CALL_FRAMES],
    ) -> Vec<[Track; 11]> {
        let range = &self.analysis.subprogs[instance.subprog];
        let (start, depth) = (range.start, instance.depth);
        let order = range.postorder(self.analysis);
        let mut before = vec![Tracks::UNVISITED; (range.end - start) as usize];
        let mut regs = [Track::Other; 11];
        if let Some(args) = args {
            regs[1..6].copy_from_slice(&args[1..6]);
        }
        regs[Reg::R10.index()] = Track::at(depth, 0);
        let slots = [Track::Other; SLOTS];
        before[0] = Tracks { regs, slots };
        loop {
            let mut changed = false;
            for &index in order.iter().rev() {
                let tracks = &before[(index - start) as usize];
                if tracks.regs[0] == Track::Unvisited && tracks.regs[1] == Track::Unvisited {
                    continue;
                }
                let mut after = tracks.clone();
                let outer = |frame: usize| self.slots_at.get(&sites[frame]);
                after.apply(self.input.insns[index as usize], depth, outer);
                for next in self.analysis.next(index) {
                    if (start..range.end).contains(&next) {
                        changed |= before[(next - start) as usize].join(&after);
                    }
                }
            }
            if !changed {
                break;
            }
        }
        for &index in order.iter().rev() {
            let tracks = &before[(index - start) as usize];
            self.mark(instance, index, &tracks.regs);
            let insn = self.input.program.insns()[index as usize];
            if calls::is_local_call(insn) || self.analysis.insns[index as usize].calls_callback {
                self.slots_at.insert(index, tracks.slots);
            }
        }
        before.into_iter().map(|tracks| tracks.regs).collect()
    }

    /// Marks what an instruction reads and writes (`record_load_store_access`,
    /// `record_call_access`, `record_arg_access`).
    #[doc(alias = "record_load_store_access")]
    #[doc(alias = "record_call_access")]
    #[doc(alias = "record_arg_access")]
    fn mark(&self, instance: &mut Instance, index: u32, regs: &[Track; 11]) {
        let insn = self.input.insns[index as usize];
        if let Some((base, off, bytes)) = stack_access::of_memory(insn) {
            self.mark_access(instance, index, regs[base.index()].moved(off.into()), bytes);
        }
        if !matches!(insn, Insn::Call(_)) {
            return;
        }
        let raw = self.input.program.insns()[index as usize];
        if calls::is_local_call(raw) {
            return;
        }
        let count = calls::summary(self.input, raw).map_or(5, |call| call.params.min(5));
        for arg in 0..usize::from(count) {
            let track = regs[arg + 1];
            if track.is_pointer() {
                let bytes = stack_access::of_argument(self.input, self.constants, index, raw, arg);
                self.mark_access(instance, index, track, bytes);
            }
        }
    }

    /// Marks an access at a pointer (`record_stack_access`, `record_imprecise`, `mark_stack_read`,
    /// `mark_stack_write`).
    #[doc(alias = "record_stack_access")]
    #[doc(alias = "record_imprecise")]
    #[doc(alias = "mark_stack_read")]
    #[doc(alias = "mark_stack_write")]
    fn mark_access(&self, instance: &mut Instance, insn: u32, track: Track, bytes: Bytes) {
        if bytes == Bytes::None {
            return;
        }
        let Some(frame) = track.frame() else {
            if let Track::Frames(frames) = track {
                for frame in (0..=instance.depth).filter(|frame| frames & 1 << frame != 0) {
                    instance.marks_mut(self.analysis, frame, insn).may_read = !0;
                }
            }
            return;
        };
        if frame > instance.depth {
            return;
        }
        let offsets = track.offsets();
        if offsets.is_empty() {
            if !matches!(bytes, Bytes::Written(_)) {
                instance.marks_mut(self.analysis, frame, insn).may_read = !0;
            }
            return;
        }
        if matches!(bytes, Bytes::Written(_)) && offsets.len() != 1 {
            return;
        }
        for &offset in offsets {
            let (read, written) = bytes.halves(offset);
            if read | written != 0 {
                let marks = instance.marks_mut(self.analysis, frame, insn);
                marks.may_read |= read;
                marks.must_write |= written;
            }
        }
    }
}
