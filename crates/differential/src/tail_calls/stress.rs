//! Tail calls on several threads while others replace and remove the targets.
//!
//! Programs of four slots call each other in a fixed order of slots; which program a slot
//! holds changes at random, and each change installs code that was compiled for it, so that
//! the code of old targets is freed and its memory used again. A program writes into the
//! packet that it was entered, that its tail call fell through, and that it returns. After
//! each run the packet is read as the trace of a legal run: a jump to a wrong target, a
//! frame that was unwound without a jump, or a lost return leaves none.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use ::kernel::maps::{Host, Map, Resources, RunGuard, StoredProgram, ValueLayout};
use ::kernel::programs::SKB;
use btf::Btf;
use jit::memory::Pool;
use jit::{Features, Options};
use lower::{ContextKind, Lowered, PacketProgram, VerifiedProgram};
use packet::{Metadata, Packet};
use program::{FuncInfo, MapDef, Program};
use spec::limits;
use spec::programs::ProgramType;
use spec::registry::Registry;
use spec::{Kernel, SplitMix};
use verifier::Proof;
use vm::{DirectContext, HEADROOM, PacketBuffer, RunContext};

use super::engines::CLASS;
use super::{ARRAY, maps};
use crate::registry::fields::with_callback;
use testkit::ebpf::Choices;
use testkit::verifier::assembled;

/// Programs; the slot of each is its number modulo [`SLOTS`].
const PROGRAMS: u8 = 16;
const SLOTS: u8 = 4;

/// Bytes of the packet: the number of events, the events, and a zero that the verifier does
/// not know.
const BYTES: usize = 160;
const ZERO: usize = BYTES - 1;
/// Most events: 34 programs are entered, the last one falls through, and each may return.
const EVENTS: u8 = 150;

/// Events, beside the number of the program.
const ENTERED: u8 = 0x10;
const FELL_THROUGH: u8 = 0x20;
const RETURNED: u8 = 0x30;

/// Parameters of a stress run.
#[derive(Clone, Copy, Debug)]
pub struct Stress {
    /// Threads that run programs.
    pub runners: u32,
    /// Threads that change targets.
    pub writers: u32,
    /// Runs of each runner.
    pub runs: u64,
    /// Time after which runners stop, if they have runs left.
    pub time: Option<Duration>,
    /// Seed of the changes.
    pub seed: u64,
}

/// Counts of a stress run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Runs.
    pub runs: u64,
    /// Tail calls that arrived.
    pub tail_calls: u64,
    /// Targets installed, replaced or removed.
    pub changes: u64,
}

/// The slot that a program calls.
const fn next_slot(program: u8) -> u8 {
    (program * 5 + 1) % SLOTS
}

/// True if a program makes its tail call from a subprogram, and so returns.
const fn has_subprogram(program: u8) -> bool {
    program & 4 != 0
}

/// A program of that number. Half of them call an index that the verifier does not know.
fn text(program: u8) -> String {
    let mut text = String::new();
    let slot = next_slot(program);
    let index = match program & 8 {
        0 => format!("r3 = {slot}\n"),
        _ => format!("r3 = *(u8 *)(r7 + {ZERO})\nr3 += {slot}\n"),
    };
    // Calls invalidate pointers to the packet.
    let note = |event: u8| {
        let event = event | program;
        format!(
            "r7 = *(u32 *)(r6 + 76)\nr1 = *(u32 *)(r6 + 80)\nr2 = r7\nr2 += {BYTES}\n\
             if r2 > r1 goto full\nr8 = *(u8 *)(r7 + 0)\nif r8 > {EVENTS} goto full\nr9 = r7\nr9 += r8\nr2 = r9\n\
             r2 += 2\nif r2 > r1 goto full\n\
             r1 = {event}\n*(u8 *)(r9 + 1) = r1\nr8 += 1\n*(u8 *)(r7 + 0) = r8\n"
        )
    };
    let call = format!(
        "{index}r1 = r6\nr2 = map_idx({ARRAY}) ll\ncall 12\n{}r0 = {program}\nexit\n\
         full:\nr0 = 255\nexit\n",
        note(FELL_THROUGH)
    );
    text += "r6 = r1\n";
    text += &note(ENTERED);
    if has_subprogram(program) {
        let _ = write!(text, "r1 = r6\ncall f\n*(u32 *)(r10 - 8) = r0\n");
        text += &note(RETURNED);
        text += "r0 = *(u32 *)(r10 - 8)\nexit\nfull:\nr0 = 255\nexit\n";
        let reload = format!(
            "r6 = r1\nr7 = *(u32 *)(r6 + 76)\nr1 = *(u32 *)(r6 + 80)\nr2 = r7\nr2 += {BYTES}\n\
             if r2 > r1 goto full\n"
        );
        let subprogram = format!("f:\n{reload}{call}");
        text += &subprogram.replace("full", "full_too");
    } else {
        text += &call;
    }
    text
}

/// The trace of a run as it is read.
struct Trace<'a> {
    events: &'a [u8],
    at: usize,
    entered: u64,
}

impl Trace<'_> {
    fn next(&mut self) -> Option<u8> {
        let event = self.events.get(self.at).copied();
        self.at += 1;
        event
    }

    /// Reads what the program of that slot leaves behind until it has returned; its result.
    fn read(&mut self, slot: Option<u8>) -> Result<u8, &'static str> {
        // Programs whose tail call is in a subprogram, which return at the end.
        let mut callers = Vec::new();
        let mut slot = slot;
        let result = loop {
            let event = self.next().ok_or("the trace ends")?;
            let program = event & (PROGRAMS - 1);
            if event & !(PROGRAMS - 1) != ENTERED {
                return Err("a program was not entered");
            }
            if slot.is_some_and(|slot| program % SLOTS != slot) {
                return Err("a program was entered from a slot that never holds it");
            }
            self.entered += 1;
            if has_subprogram(program) {
                callers.push(program);
            }
            let next = self.events.get(self.at).copied();
            if next == Some(FELL_THROUGH | program) {
                self.at += 1;
                break program;
            }
            slot = Some(next_slot(program));
        };
        while let Some(program) = callers.pop() {
            if self.next() != Some(RETURNED | program) {
                return Err("a caller did not go on");
            }
        }
        Ok(result)
    }
}

/// Checks the trace of a run in its packet; the number of tail calls.
fn check(packet: &[u8], retval: u64) -> Result<u64, String> {
    let count = usize::from(packet[0]);
    let events = &packet[1..][..count.min(BYTES - 2)];
    let mut trace = Trace {
        events,
        at: 0,
        entered: 0,
    };
    let broken = |why: &str| format!("{why}: returned {retval}, trace {events:02x?}");
    let result = trace.read(None).map_err(broken)?;
    if u64::from(result) != retval {
        return Err(broken("another program returned"));
    }
    if trace.at != events.len() {
        return Err(broken("a run went on after its end"));
    }
    let tail_calls = trace.entered - 1;
    match tail_calls <= u64::from(limits::TAIL_CALLS) {
        true => Ok(tail_calls),
        false => Err(broken("there are too many tail calls")),
    }
}

/// The programs, ready to be compiled, and their array.
struct Stage {
    lowered: Vec<Lowered<PacketProgram>>,
    array: Arc<Map>,
    pool: Pool,
}

/// One stored program.
struct One(Arc<StoredProgram>);

impl Resources for One {
    fn program(&self, _: u32) -> Option<Arc<StoredProgram>> {
        Some(self.0.clone())
    }
}

impl Stage {
    fn new(kernel: &Kernel, registry: &Registry) -> Result<Stage, String> {
        let [params, _] = maps();
        let array = Map::create(&params, ValueLayout::plain(4), &Host::default());
        let array = Arc::new(array.map_err(|errno| format!("{errno:?}"))?);
        let handles = [Some(array.handle().clone())];
        let lowered = (0..PROGRAMS).map(|number| {
            let text = text(number);
            let program = program(&text)?;
            let proof = Proof::of(&program, kernel, registry);
            let proof = proof.map_err(|refused| format!("{:?}\n{text}", refused.verdict))?;
            let lowered =
                VerifiedProgram::from_proof(&proof, &handles, ::kernel::helpers::find_call);
            let lowered = lowered.map_err(|unfit| unfit.to_string())?;
            lowered
                .packet()
                .ok_or_else(|| "a program without a packet".to_owned())
        });
        Ok(Stage {
            lowered: lowered.collect::<Result<_, _>>()?,
            array,
            pool: Pool::new(),
        })
    }

    fn compile(&self, program: u8) -> Result<Arc<jit::Native<PacketProgram>>, String> {
        let options = Options {
            features: Features::detect(),
            tail_target: true,
            ..Options::default()
        };
        let native =
            jit::Native::compile(&self.lowered[usize::from(program)], &options, &self.pool);
        native.map(Arc::new).map_err(|error| error.to_string())
    }

    /// Changes targets until it is told to stop; returns their number.
    fn write(&self, seed: u64, is_over: &AtomicBool) -> Result<u64, String> {
        let mut choices = Choices::from_seed(seed);
        let mut changes = 0;
        while changes == 0 || !is_over.load(Relaxed) {
            let slot = choices.below(u32::from(SLOTS)) as u8;
            let key = u32::from(slot).to_ne_bytes();
            if choices.below(4) == 0 {
                // It may be empty already.
                let _ = self.array.delete(&key);
            } else {
                let program = slot + SLOTS * choices.below(u32::from(PROGRAMS / SLOTS)) as u8;
                self.install(slot, program)?;
            }
            changes += 1;
        }
        Ok(changes)
    }

    /// Compiles a program anew and puts it into a slot.
    fn install(&self, slot: u8, program: u8) -> Result<(), String> {
        let stored = StoredProgram {
            id: program.into(),
            class: CLASS,
            target: self.compile(program)?.tail_target(),
        };
        let key = u32::from(slot).to_ne_bytes();
        let stored = (self.array).update_with(&key, &key, 0, &One(Arc::new(stored)));
        stored.map_err(|errno| format!("a target is refused: {errno:?}"))
    }

    /// Runs a program again and again.
    fn run(&self, stress: &Stress, program: u8, is_over: &AtomicBool) -> Result<Tally, String> {
        let program = self.compile(program % PROGRAMS)?;
        let end = stress.time.map(|time| Instant::now() + time);
        let mut tally = Tally::default();
        let mut random = SplitMix::new(1);
        let mut packet = PacketBuffer::new(SKB, &[0; BYTES], HEADROOM, HEADROOM);
        while tally.runs < stress.runs && !is_over.load(Relaxed) {
            if tally.runs.is_multiple_of(1024) && end.is_some_and(|end| Instant::now() >= end) {
                break;
            }
            packet.linear_mut().fill(0);
            let mut context = DirectContext::new(ContextKind::SkBuff, &[]);
            let mut clock = || 0;
            let metadata = Metadata::from_cpu(0);
            let no_packet = Packet::whole(&[], &metadata);
            let cx = RunContext::new(&no_packet, &mut random, Some(&mut clock));
            let retval = program.run(&mut packet, &mut context, &RunGuard::new(), cx);
            let retval = retval.map_err(|error| error.to_string())?;
            tally.tail_calls += check(packet.linear(), retval)?;
            tally.runs += 1;
        }
        Ok(tally)
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.array.release();
    }
}

/// Runs programs and changes their targets at the same time; the first illegal trace, or why
/// nothing ran.
pub fn stress(kernel: &Kernel, registry: &Registry, stress: &Stress) -> Result<Tally, String> {
    let stage = &Stage::new(kernel, registry)?;
    for slot in 0..SLOTS {
        stage.install(slot, slot)?;
    }
    let is_over = &AtomicBool::new(false);
    // A run before the first change makes all tail calls that a run may make.
    let once = Stress { runs: 1, ..*stress };
    let changes = &AtomicU64::new(0);
    let total = &Mutex::new(stage.run(&once, 0, is_over)?);
    thread::scope(|scope| {
        let writers = (0..stress.writers).map(|number| {
            let seed = stress.seed.wrapping_add(number.into());
            scope.spawn(move || {
                changes.fetch_add(stage.write(seed, is_over)?, Relaxed);
                Ok(())
            })
        });
        let writers: Vec<_> = writers.collect();
        let runners = (0..stress.runners).map(|number| {
            scope.spawn(move || {
                let tally = stage.run(stress, number as u8, is_over)?;
                let mut total = total.lock().map_err(|_| "another thread failed")?;
                total.runs += tally.runs;
                total.tail_calls += tally.tail_calls;
                Ok(())
            })
        });
        let runners: Vec<_> = runners.collect();
        let mut first: Result<(), String> = Ok(());
        let mut join = |thread: thread::ScopedJoinHandle<'_, Result<(), String>>| {
            let ended = thread.join();
            let ended = ended.unwrap_or_else(|_| Err("a thread panicked".to_owned()));
            if first.is_ok() {
                first = ended;
            }
        };
        runners.into_iter().for_each(&mut join);
        is_over.store(true, Relaxed);
        writers.into_iter().for_each(&mut join);
        first
    })?;
    let total = *total.lock().map_err(|_| "a thread failed")?;
    Ok(Tally {
        changes: changes.load(Relaxed),
        ..total
    })
}

/// A program with the array and the types of its functions.
fn program(text: &str) -> Result<Program, String> {
    let slots = assembled(text)?;
    let exits = slots.iter().zip(1..).filter(|(slot, _)| slot.is_exit());
    let subprogram = exits.map(|(_, end)| end).nth(1);
    let (blob, [main, callee]) = with_callback();
    let types = Btf::parse(blob).map_err(|error| error.to_string())?;
    let subprogram = subprogram.filter(|start| (*start as usize) < slots.len());
    let functions = [(0, main)]
        .into_iter()
        .chain(subprogram.map(|start| (start, callee)));
    let records = functions.map(|(insn, type_id)| FuncInfo { insn, type_id });
    let [params, _] = maps();
    Program::builder(ProgramType::SchedCls, slots)
        .maps(vec![Arc::new(MapDef::new("array", params))])
        .btf(Some(Arc::new(types)))
        .func_info(records.collect())
        .license("GPL")
        .build()
        .map_err(|invalid| invalid.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn traced(events: &[u8], retval: u64) -> Result<u64, String> {
        let mut packet = vec![0; BYTES];
        packet[0] = events.len() as u8;
        packet[1..=events.len()].copy_from_slice(events);
        check(&packet, retval)
    }

    #[test]
    fn illegal_traces_are_found() {
        // 0 calls slot 1, 5 calls slot 2 from its subprogram, 2 calls slot 3.
        assert_eq!(traced(&[0x10, 0x20], 0), Ok(0));
        let legal = [0x10, 0x15, 0x12, 0x22, 0x35];
        assert_eq!(traced(&legal, 2), Ok(2));
        for (events, retval) in [
            (&legal[..], 5),
            (&legal[..4], 2),
            (&[0x10, 0x15, 0x22, 0x35], 2),
            (&[0x10, 0x13, 0x23], 3),
            (&[0x10, 0x20, 0x20], 0),
            (&[], 0),
        ] {
            assert!(traced(events, retval).is_err(), "{events:02x?}");
        }
        let endless: Vec<u8> = (0..36).map(|at| 0x10 | [0, 1, 2, 3][at % 4]).collect();
        assert!(traced(&[&endless[..], &[0x23]].concat(), 3).is_err());
    }
}
