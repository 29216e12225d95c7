//! Live stack slots, found as the walk goes (6.18's `kernel/bpf/liveness.c`).
//!
//! For each function instance, which is a function at the end of a particular chain of
//! call sites, and for each of its instructions and each frame of the chain, two sets of
//! slots are collected: those that the instruction may read, and those that every visit
//! of it wrote. From them a backward data flow over the postorder computes the slots
//! that may be read later, and those that are certainly written first; what is known at
//! a function's entry is carried to the call site in its caller. The data flow runs
//! whenever a path ends and sets have changed; read sets only grow and write sets only
//! shrink, so states that are complete see final answers.
//!
//! Slot n covers `[fp-8(n+1), fp-8n)` and is bit n of a set.
//!
//! Cost: marking and queries are constant; an update computes, for each round and frame, the
//! instructions whose marks, or whose successors, changed.

use std::collections::HashMap;
use std::fmt;
use std::rc::Rc;

use super::subprogs::NONE;
use super::{Analysis, SubprogInfo};
use crate::log::{Sink, SlotList};
use crate::state::{MAX_CALL_FRAMES, State};
use crate::{Result, Stop};

/// Sets of slots of one frame at one instruction.
#[derive(Clone, Copy, Debug, Default)]
struct Marks {
    may_read: u64,
    must_write: u64,
    /// Written by this instruction or certainly before the function ends.
    must_write_later: u64,
    live_before: u64,
}

/// Call sites from the outermost frame inwards; the last entry is the first instruction
/// of the innermost function.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
struct CallChain {
    sites: [u32; MAX_CALL_FRAMES],
    depth: u8,
}

/// The instructions of a function by their ranks in its postorder.
#[derive(Debug)]
struct Order {
    /// By place in the function.
    ranks: Vec<u32>,
    /// By rank, the end of its predecessors; they begin where those of the one before end.
    ends: Vec<u32>,
    predecessors: Vec<u32>,
}

impl Order {
    fn of(analysis: &Analysis, subprog: &SubprogInfo) -> Order {
        let (start, end) = (subprog.start, subprog.end);
        let order = subprog.postorder(analysis);
        let mut ranks = vec![0; (end - start) as usize];
        for (rank, &insn) in (0..).zip(order) {
            ranks[(insn - start) as usize] = rank;
        }
        let edges = || {
            let edges = (0..).zip(order).flat_map(|(from, &insn)| {
                let successors = analysis.successors[insn as usize];
                successors.into_iter().map(move |to| (from, to))
            });
            let edges = edges.filter(move |(_, to)| (start..end).contains(to));
            edges.map(|(from, to)| (from, ranks[(to - start) as usize] as usize))
        };
        let mut ends = vec![0; order.len()];
        edges().for_each(|(_, to)| ends[to] += 1);
        let mut sum = 0;
        for end in &mut ends {
            sum += std::mem::replace(end, sum);
        }
        let mut predecessors = vec![0; sum as usize];
        for (from, to) in edges() {
            predecessors[ends[to] as usize] = from;
            ends[to] += 1;
        }
        Order {
            ranks,
            ends,
            predecessors,
        }
    }

    /// Ranks of the predecessors of an instruction.
    fn before(&self, rank: usize) -> &[u32] {
        let begin = if rank == 0 { 0 } else { self.ends[rank - 1] };
        &self.predecessors[begin as usize..self.ends[rank] as usize]
    }
}

/// A set of ranks.
#[derive(Debug, Default)]
struct Ranks(Vec<u64>);

impl Ranks {
    /// All of so many.
    fn all(count: usize) -> Ranks {
        let mut words = vec![!0; count.div_ceil(64)];
        if let Some(last) = words.last_mut() {
            *last >>= count.next_multiple_of(64) - count;
        }
        Ranks(words)
    }

    fn insert(&mut self, rank: u32) {
        self.0[rank as usize / 64] |= 1 << (rank % 64);
    }

    /// Takes out the first one from `rank` on.
    fn take_from(&mut self, rank: usize) -> Option<usize> {
        let mut word = rank / 64;
        let mut bits = self.0.get(word)? & !0 << (rank % 64);
        while bits == 0 {
            word += 1;
            bits = *self.0.get(word)?;
        }
        let bit = bits.trailing_zeros() as usize;
        self.0[word] &= !(1 << bit);
        Some(64 * word + bit)
    }
}

/// A function at the end of a call chain.
#[derive(Debug)]
struct Instance {
    chain: CallChain,
    /// First instruction of the function of each frame.
    starts: [u32; MAX_CALL_FRAMES],
    subprog: usize,
    updated: bool,
    must_write_dropped: bool,
    /// By frame, by instruction of the function; empty until the first mark.
    frames: [Vec<Marks>; MAX_CALL_FRAMES],
    /// By frame, those that are to be computed anew.
    stale: [Ranks; MAX_CALL_FRAMES],
    order: Rc<Order>,
    /// Instructions that were visited.
    visited: Vec<bool>,
}

impl Instance {
    fn depth(&self) -> usize {
        usize::from(self.chain.depth)
    }

    /// First instruction of the function.
    fn start(&self) -> u32 {
        self.starts[self.depth()]
    }

    /// Index of an instruction within the function (`relative_idx`).
    #[doc(alias = "relative_idx")]
    fn relative(&self, insn: u32) -> usize {
        (insn - self.start()) as usize
    }

    /// Marks of a frame at an instruction, if there are any (`get_frame_masks`).
    #[doc(alias = "get_frame_masks")]
    fn marks(&self, frame: usize, insn: u32) -> Option<&Marks> {
        self.frames[frame].get(self.relative(insn))
    }

    /// Marks of a frame at an instruction, for writing (`alloc_frame_masks`).
    #[doc(alias = "alloc_frame_masks")]
    fn marks_mut(&mut self, frame: usize, insn: u32) -> &mut Marks {
        let (index, count) = (self.relative(insn), self.visited.len());
        let marks = &mut self.frames[frame];
        if marks.is_empty() {
            marks.resize(count, Marks::default());
            self.stale[frame] = Ranks::all(self.order.ends.len());
        }
        &mut marks[index]
    }

    fn set_stale(&mut self, frame: usize, insn: u32) {
        let rank = self.order.ranks[self.relative(insn)];
        self.stale[frame].insert(rank);
    }

    /// Notes reads of slots of a frame by an instruction (`mark_stack_read`).
    #[doc(alias = "mark_stack_read")]
    fn mark_read(&mut self, frame: usize, insn: u32, slots: u64) {
        let marks = self.marks_mut(frame, insn);
        let grown = marks.may_read | slots;
        let is_news = grown != marks.may_read && grown & !marks.live_before != 0;
        let changed = grown != marks.may_read;
        marks.may_read = grown;
        self.updated |= is_news;
        if changed {
            self.set_stale(frame, insn);
        }
    }

    fn commit_writes(&mut self, insn: u32, written: &[u64; MAX_CALL_FRAMES]) {
        let index = self.relative(insn);
        let visited = self.visited[index];
        for (frame, &slots) in written.iter().enumerate().take(self.depth() + 1) {
            // Nothing written, now or before: the most frequent case.
            let wrote = |marks: &Marks| marks.must_write as u32 != 0;
            if slots == 0 && !(visited && self.frames[frame].get(index).is_some_and(wrote)) {
                continue;
            }
            let marks = self.marks_mut(frame, insn);
            // Linux 6.18 keeps the former set in 32 bits, so that slots from 32 on are
            // forgotten at the second visit.
            let former = u64::from(marks.must_write as u32);
            let slots = if visited { slots & former } else { slots };
            let dropped = former & !slots != 0;
            let changed = former != slots;
            if changed {
                marks.must_write = slots;
                self.set_stale(frame, insn);
            }
            self.updated |= changed;
            self.must_write_dropped |= dropped;
        }
        self.visited[index] = true;
    }

    /// Slots of a frame that may be read from an instruction on (`is_live_before`).
    fn is_live_before(&self, frame: usize, insn: u32) -> u64 {
        self.marks(frame, insn).map_or(0, |marks| marks.live_before)
    }
}

/// Live stack slots of all function instances of a verification (`propagate_liveness`).
#[doc(alias = "propagate_liveness")]
#[derive(Debug, Default)]
pub struct LiveStack {
    instances: Vec<Instance>,
    /// By function.
    orders: HashMap<usize, Rc<Order>>,
    by_chain: HashMap<CallChain, usize>,
    /// The instance last found at each depth.
    recent: [usize; MAX_CALL_FRAMES],
    /// Instance of the executing frame.
    current: Option<usize>,
    /// Slots written by the executing instruction, by frame.
    written: [u64; MAX_CALL_FRAMES],
    write_insn: u32,
    /// Answer of the last [`LiveStack::query_init`], by frame.
    alive: [u64; MAX_CALL_FRAMES],
}

impl LiveStack {
    /// Begins an instruction (`bpf_reset_stack_write_marks`).
    #[doc(alias = "bpf_reset_stack_write_marks")]
    #[inline]
    pub fn reset_write_marks(&mut self, analysis: &Analysis, state: &State, insn_idx: u32) {
        self.ensure_current(analysis, state);
        self.begin_writes(insn_idx);
    }

    /// Notes reads of slots of a frame (`bpf_mark_stack_read`).
    #[doc(alias = "bpf_mark_stack_read")]
    #[inline]
    pub fn mark_read(
        &mut self,
        analysis: &Analysis,
        state: &State,
        frameno: usize,
        insn_idx: u32,
        slots: u64,
    ) {
        let current = self.ensure_current(analysis, state);
        self.instances[current].mark_read(frameno, insn_idx, slots);
    }

    /// Notes writes of slots of a frame by the executing instruction
    /// (`bpf_mark_stack_write`).
    #[doc(alias = "bpf_mark_stack_write")]
    #[inline]
    pub fn mark_write(&mut self, frameno: usize, slots: u64) {
        self.written[frameno] |= slots;
    }

    /// Ends the instruction (`bpf_commit_stack_write_marks`). Does nothing if the path
    /// ended or entered another frame since.
    #[doc(alias = "bpf_commit_stack_write_marks")]
    #[inline]
    pub fn commit_write_marks(&mut self) {
        if let Some(current) = self.current {
            self.commit_to(current);
        }
    }

    /// Forgets which instance executes, because a frame is entered
    /// (`bpf_reset_live_stack_callchain`).
    #[doc(alias = "bpf_reset_live_stack_callchain")]
    #[inline]
    pub fn reset_callchain(&mut self) {
        self.current = None;
    }

    /// Propagates what changed in the instances of the state's frames, innermost first
    /// (`bpf_update_live_stack`). Called when a path ends and when a frame is left.
    #[doc(alias = "bpf_update_live_stack")]
    pub fn update(
        &mut self,
        analysis: &Analysis,
        sink: &mut Sink<'_>,
        state: &State,
    ) -> Result<()> {
        self.reset_callchain();
        for frame in (0..=state.curframe).rev() {
            let instance = self.lookup(analysis, state, frame);
            if self.instances[instance].updated {
                self.propagate(analysis, sink, instance)?;
                self.instances[instance].updated = false;
                self.instances[instance].must_write_dropped = false;
            }
        }
        Ok(())
    }

    /// Prepares questions about a state (`bpf_live_stack_query_init`).
    #[doc(alias = "bpf_live_stack_query_init")]
    pub fn query_init(&mut self, analysis: &Analysis, state: &State) {
        let top = state.curframe;
        let innermost = self.lookup(analysis, state, top);
        let mut alive = [0; MAX_CALL_FRAMES];
        for (frame, alive) in alive.iter_mut().enumerate().take(top + 1) {
            *alive = self.instances[innermost].is_live_before(frame, state.insn_idx);
        }
        // Slots of an outer frame are also read by the functions between: behind the
        // call, or at it if the call runs callbacks repeatedly.
        for outer in 0..top {
            let site = self.instances[innermost].chain.sites[outer];
            let insn = match analysis.insns[site as usize].calls_callback {
                true => site,
                false => site + 1,
            };
            let instance = self.lookup(analysis, state, outer);
            for (frame, alive) in alive.iter_mut().enumerate().take(outer + 1) {
                *alive |= self.instances[instance].is_live_before(frame, insn);
            }
        }
        self.alive = alive;
    }

    /// All slots of a frame that may be read, one bit each.
    #[inline]
    pub fn alive_slots(&self, frameno: usize) -> u64 {
        self.alive[frameno]
    }

    fn ensure_current(&mut self, analysis: &Analysis, state: &State) -> usize {
        match self.current {
            Some(current) => current,
            None => {
                let current = self.lookup(analysis, state, state.curframe);
                self.current = Some(current);
                current
            }
        }
    }

    fn begin_writes(&mut self, insn: u32) {
        self.write_insn = insn;
        self.written = [0; MAX_CALL_FRAMES];
    }

    fn commit_to(&mut self, instance: usize) {
        self.instances[instance].commit_writes(self.write_insn, &self.written);
        self.write_insn = 0;
    }

    /// The instance of a frame of the state, made if there is none (`lookup_instance`).
    #[doc(alias = "lookup_instance")]
    fn lookup(&mut self, analysis: &Analysis, state: &State, frameno: usize) -> usize {
        let mut chain = CallChain {
            depth: frameno as u8,
            ..CallChain::default()
        };
        for frame in 0..frameno {
            chain.sites[frame] = state.frame(frame + 1).callsite as u32;
        }
        let subprog = state.frame(frameno).subprogno as usize;
        chain.sites[frameno] = analysis.subprogs[subprog].start;
        let recent = self.recent[frameno];
        if self
            .instances
            .get(recent)
            .is_some_and(|instance| instance.chain == chain)
        {
            return recent;
        }
        let mut starts = [0; MAX_CALL_FRAMES];
        for (frame, start) in starts.iter_mut().enumerate().take(frameno + 1) {
            *start = analysis.subprogs[state.frame(frame).subprogno as usize].start;
        }
        self.instance_of(analysis, chain, starts)
    }

    fn instance_of(
        &mut self,
        analysis: &Analysis,
        chain: CallChain,
        starts: [u32; MAX_CALL_FRAMES],
    ) -> usize {
        let depth = usize::from(chain.depth);
        let (instances, orders) = (&mut self.instances, &mut self.orders);
        let found = *self.by_chain.entry(chain).or_insert_with(|| {
            let subprog = analysis.subprog_containing(starts[depth]);
            let range = &analysis.subprogs[subprog];
            let order = orders
                .entry(subprog)
                .or_insert_with(|| Rc::new(Order::of(analysis, range)));
            instances.push(Instance {
                order: order.clone(),
                stale: Default::default(),
                chain,
                starts,
                subprog,
                updated: false,
                must_write_dropped: false,
                frames: Default::default(),
                visited: vec![false; (range.end - range.start) as usize],
            });
            instances.len() - 1
        });
        self.recent[depth] = found;
        found
    }

    /// Runs the data flow of an instance to its fixpoint and carries the result of its
    /// entry to its caller (`update_instance`).
    #[doc(alias = "update_instance")]
    fn propagate(&mut self, analysis: &Analysis, sink: &mut Sink<'_>, number: usize) -> Result<()> {
        let instance = &mut self.instances[number];
        let depth = instance.depth();
        let start = instance.start();
        if instance.must_write_dropped {
            for marks in instance.frames.iter_mut().flatten() {
                marks.must_write_later = 0;
            }
            let count = instance.order.ends.len();
            for (stale, marks) in instance.stale.iter_mut().zip(&instance.frames) {
                if !marks.is_empty() {
                    *stale = Ranks::all(count);
                }
            }
        }
        let insns = analysis.subprogs[instance.subprog].postorder(analysis);
        let logs = sink.is_full();
        let mut rounds = 0;
        loop {
            rounds += 1;
            let mut changed = false;
            for frame in 0..=depth {
                let stale = &mut instance.stale[frame];
                let mut next = 0;
                while let Some(rank) = stale.take_from(next) {
                    next = rank + 1;
                    let insn = insns[rank];
                    let Some((before, after)) =
                        transfer(&mut instance.frames[frame], analysis, start, insn)
                    else {
                        continue;
                    };
                    if before.live_before != after.live_before
                        || before.must_write_later != after.must_write_later
                    {
                        changed = true;
                        for &predecessor in instance.order.before(rank) {
                            stale.insert(predecessor);
                        }
                    }
                    if logs
                        && (after.may_read != 0
                            || after.must_write != 0
                            || insn == start
                            || analysis.insns[insn as usize].prune_point)
                    {
                        let place = (&instance.chain, frame, insn);
                        let (old, new) = (before.live_before, after.live_before);
                        write_change(sink, place, "live", old, new);
                        let (old, new) = (before.must_write_later, after.must_write_later);
                        write_change(sink, place, "written", old, new);
                    }
                }
            }
            if !changed {
                break;
            }
        }
        if logs {
            sink.write(format_args!(
                "{} live stack update done in {rounds} iterations\n",
                instance.chain
            ));
        }
        if depth > 0 {
            self.carry_to_caller(analysis, number)?;
        }
        Ok(())
    }

    fn carry_to_caller(&mut self, analysis: &Analysis, number: usize) -> Result<()> {
        let instance = &self.instances[number];
        let depth = instance.depth();
        let (mut chain, mut starts) = (instance.chain, instance.starts);
        let entry = instance.start();
        let site = chain.sites[depth - 1];
        chain.sites[depth] = 0;
        starts[depth] = 0;
        chain.depth -= 1;
        chain.sites[depth - 1] = starts[depth - 1];
        if starts[depth - 1] > site {
            return Err(Stop::Bug(format!("call site {site} outside its function")));
        }
        let outer = self.instance_of(analysis, chain, starts);
        self.begin_writes(site);
        for frame in 0..depth {
            if let Some(&marks) = self.instances[number].marks(frame, entry) {
                self.written[frame] |= marks.must_write_later;
                self.instances[outer].mark_read(frame, site, marks.live_before);
            }
        }
        self.commit_to(outer);
        Ok(())
    }
}

/// The transfer function of one instruction; its marks before and after, unless the instruction has
/// no successors (`update_insn`).
#[doc(alias = "update_insn")]
#[inline]
fn transfer(
    marks: &mut [Marks],
    analysis: &Analysis,
    start: u32,
    insn: u32,
) -> Option<(Marks, Marks)> {
    let [next, target] = analysis.successors[insn as usize];
    if next == NONE {
        return None;
    }
    let first = &marks[(next - start) as usize];
    let (mut live_after, mut written_later) = (first.live_before, first.must_write_later);
    if target != NONE {
        let second = &marks[(target - start) as usize];
        live_after |= second.live_before;
        written_later &= second.must_write_later;
    }
    let marks = &mut marks[(insn - start) as usize];
    let before = *marks;
    marks.must_write_later = written_later | marks.must_write;
    marks.live_before = live_after & !marks.must_write | marks.may_read;
    Some((before, *marks))
}

fn write_change(
    sink: &mut Sink<'_>,
    (chain, frame, insn): (&CallChain, usize, u32),
    what: &str,
    old: u64,
    new: u64,
) {
    if old == new {
        return;
    }
    sink.write(format_args!("{chain} frame {frame} insn {insn} "));
    let (added, removed) = (new & !old, old & !new);
    if added != 0 {
        sink.write(format_args!("+{what} {} ", SlotList(added)));
    }
    if removed != 0 {
        sink.write(format_args!("-{what} {}", SlotList(removed)));
    }
    sink.write(format_args!("\n"));
}

impl fmt::Display for CallChain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(")?;
        for (number, site) in self
            .sites
            .iter()
            .take(usize::from(self.depth) + 1)
            .enumerate()
        {
            let comma = if number == 0 { "" } else { "," };
            write!(f, "{comma}{site}")?;
        }
        f.write_str(")")
    }
}
