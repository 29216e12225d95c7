//! What is attached to a program: watchers of its instructions, helpers that fail on purpose, a model of
//! the kernel. While something is, runs are in the checked engine, those of functions of timers too.
//!
//! [`Watchers`] last over runs; each run has [`Observers`] of them, which are its one observer.

use std::marker::PhantomData;
use std::ops::ControlFlow;

use ::kernel::model::Model;
use interp::checked::{
    CheckedContext, CheckedProgram, Entry, Finish, Limits, Memory, Moment, Observer,
};
#[cfg(feature = "trace")]
use packet::FirstHeader;
#[cfg(feature = "trace")]
use trace::{Recorder, Run, Traced};

#[cfg(feature = "coverage")]
use super::counts::CountObserver;
#[cfg(feature = "debug")]
use super::debug::{DebugObserver, Debugging, Scene};
use super::faults::Faults;
#[cfg(feature = "fuzz")]
use super::inputs::Comparisons;
use super::prepared::Prepared;
#[cfg(feature = "coverage")]
use super::profile::Profiler;
#[cfg(feature = "trace")]
use super::recording::{Recording, RunHost};
use super::returned::Place;
use super::shared::Shared;

/// What is attached to a program.
#[derive(Debug, Default)]
pub(super) struct Attached<'o> {
    /// Helpers that fail on purpose.
    pub(super) faults: Option<Box<Faults>>,
    /// The model of the kernel around the program.
    pub(super) model: Option<Box<Model>>,
    /// What watches its runs.
    pub(super) watchers: Watchers<'o>,
}

impl Attached<'_> {
    /// True if the next run is in the checked engine for something of it.
    #[inline]
    pub(super) fn needs_checked(&self) -> bool {
        let is_counted = self.watchers.counts_executed;
        is_counted || self.faults.is_some() || self.model.is_some() || self.watchers.is_some()
    }
}

/// What watches the runs of a program.
#[derive(Debug, Default)]
pub(super) struct Watchers<'o> {
    /// The instructions of each run are counted.
    pub(super) counts_executed: bool,
    /// It is noted where runs return.
    pub(super) notes_return: bool,
    /// The last instruction of the last run, if that is noted.
    pub(super) returned: Option<Place>,
    /// What profiles the next runs.
    #[cfg(feature = "coverage")]
    pub(super) profiler: Option<Box<Profiler>>,
    /// What notes the comparisons of the next runs.
    #[cfg(feature = "fuzz")]
    pub(super) comparing: Option<Box<Comparisons>>,
    /// What records the next run.
    #[cfg(feature = "trace")]
    pub(super) recording: Option<Box<Recording<'o>>>,
    /// What the next runs are debugged with.
    #[cfg(feature = "debug")]
    pub(super) debugging: Option<Box<Debugging<'o>>>,
    object: PhantomData<&'o Shared>,
}

/// What a run is of, as its observers know it.
#[derive(Clone, Copy)]
#[cfg_attr(not(feature = "trace"), allow(dead_code))]
pub(super) struct Watched<'r> {
    pub(super) shared: &'r Shared,
    pub(super) prepared: &'r Prepared,
    /// The CPU of the run.
    pub(super) cpu: u32,
    /// True if the function of a timer is run.
    pub(super) is_timer: bool,
}

/// Names, maps and programs that a record is made with.
pub(super) struct Ground<'r> {
    #[cfg(feature = "trace")]
    recording: Option<(RunHost<'r>, Vec<Traced<'r>>, Option<u64>)>,
    run: PhantomData<&'r Shared>,
}

impl<'o> Watchers<'o> {
    /// True if some look at instructions.
    #[inline]
    fn is_some(&self) -> bool {
        let is_some = self.notes_return;
        #[cfg(feature = "coverage")]
        let is_some = is_some || self.profiler.is_some();
        #[cfg(feature = "fuzz")]
        let is_some = is_some || self.comparing.is_some();
        #[cfg(feature = "trace")]
        let is_some = is_some || self.recording.is_some();
        #[cfg(feature = "debug")]
        let is_some = is_some || self.debugging.is_some();
        is_some
    }

    /// What the observers of a run are made with.
    pub(super) fn ground<'r>(&self, of: Watched<'r>) -> Ground<'r>
    where
        'o: 'r,
    {
        #[cfg(not(feature = "trace"))]
        let _ = of;
        Ground {
            #[cfg(feature = "trace")]
            recording: self.recording.as_deref().map(|recording| {
                let host = recording.host(of.shared, of.cpu);
                let traced = recording.traced(&of.shared.programs);
                (host, traced, recording.tail_from)
            }),
            run: PhantomData,
        }
    }

    /// The observers of a run; `None` if nothing watches it.
    pub(super) fn observe<'r>(
        &'r mut self,
        of: Watched<'r>,
        ground: &'r Ground<'r>,
    ) -> Option<Observers<'r>> {
        let is_some = self.is_some();
        #[cfg(feature = "coverage")]
        let counts = CountObserver::new(&of.shared.programs);
        #[cfg(feature = "coverage")]
        let (counts_alone, is_some) = (!is_some, is_some || counts.is_some());
        #[cfg(feature = "coverage")]
        if let Some(profiler) = &mut self.profiler {
            profiler.begin();
        }
        #[cfg(not(feature = "coverage"))]
        let _ = (of, ground);
        is_some.then(|| Observers {
            last: None,
            #[cfg(feature = "coverage")]
            counts_alone,
            #[cfg(feature = "coverage")]
            counts,
            #[cfg(feature = "coverage")]
            profiler: self.profiler.as_deref_mut(),
            #[cfg(feature = "fuzz")]
            comparing: self.comparing.as_deref_mut(),
            #[cfg(feature = "trace")]
            recorder: ground.recording.as_ref().map(|(host, traced, tail_from)| {
                let first = match of.prepared.rules.has_link_header() {
                    true => FirstHeader::Link,
                    false => FirstHeader::Network,
                };
                let recorder = Recorder::new(host, traced, first);
                let recorder = match of.is_timer {
                    true => recorder.called_by("a timer"),
                    false => recorder,
                };
                match tail_from {
                    Some(from) => recorder.with_tail(*from),
                    None => recorder,
                }
            }),
            #[cfg(feature = "debug")]
            debugger: self.debugging.as_deref_mut().map(|debugging| {
                let scene = Scene::new(debugging, of);
                DebugObserver::new(&mut debugging.state, scene)
            }),
            #[cfg(all(test, feature = "trace"))]
            insns: Vec::new(),
            run: PhantomData,
        })
    }

    /// Notes what the observers of a run saw.
    pub(super) fn note(&mut self, seen: Seen, is_timer: bool) {
        #[cfg(feature = "trace")]
        if let Some((recording, run)) = self.recording.as_mut().zip(seen.recorded) {
            recording.add(run, is_timer);
            #[cfg(test)]
            recording.insns.extend(seen.insns);
        }
        if is_timer {
            return;
        }
        self.returned = seen.last;
        #[cfg(feature = "coverage")]
        if let Some(profiler) = &mut self.profiler {
            profiler.end_run();
        }
    }
}

/// The observers of one run.
pub(super) struct Observers<'r> {
    /// The last instruction.
    last: Option<Place>,
    /// Nothing but the counts looks at instructions.
    #[cfg(feature = "coverage")]
    counts_alone: bool,
    #[cfg(feature = "coverage")]
    counts: Option<CountObserver<'r>>,
    #[cfg(feature = "coverage")]
    profiler: Option<&'r mut Profiler>,
    #[cfg(feature = "fuzz")]
    comparing: Option<&'r mut Comparisons>,
    #[cfg(feature = "trace")]
    recorder: Option<Recorder<'r>>,
    #[cfg(feature = "debug")]
    debugger: Option<DebugObserver<'r>>,
    /// Number of the program and slot of each instruction, to which tests hold the others.
    #[cfg(all(test, feature = "trace"))]
    insns: Vec<(u32, u32)>,
    run: PhantomData<&'r Shared>,
}

/// What the observers of a run saw.
#[derive(Default)]
pub(super) struct Seen {
    /// The last instruction.
    last: Option<Place>,
    #[cfg(feature = "trace")]
    recorded: Option<Run>,
    #[cfg(all(test, feature = "trace"))]
    insns: Vec<(u32, u32)>,
}

impl Observer for Observers<'_> {
    const SEES_LEAPS: bool = cfg!(feature = "coverage");

    #[cfg(feature = "coverage")]
    fn enter(&mut self, program: u32, at: usize) {
        if let Some(counts) = &mut self.counts {
            counts.enter(program, at);
        }
    }

    #[cfg(feature = "coverage")]
    fn leap(&mut self, from: usize, to: usize) {
        if let Some(counts) = &mut self.counts {
            counts.leap(from, to);
        }
    }

    #[cfg(feature = "coverage")]
    fn leave(&mut self, at: usize) {
        if let Some(counts) = &mut self.counts {
            counts.leave(at);
        }
    }

    #[inline]
    fn before(&mut self, moment: &Moment<'_, '_>) -> ControlFlow<()> {
        self.last = Some((moment.program.number(), moment.at));
        #[cfg(feature = "coverage")]
        if let Some(profiler) = &mut self.profiler {
            profiler.before(moment)?;
        }
        #[cfg(feature = "fuzz")]
        if let Some(comparing) = &mut self.comparing {
            comparing.before(moment)?;
        }
        #[cfg(feature = "trace")]
        if let Some(recorder) = &mut self.recorder {
            #[cfg(test)]
            self.insns.push((moment.program.number(), moment.at as u32));
            recorder.before(moment)?;
        }
        #[cfg(feature = "debug")]
        if let Some(debugger) = &mut self.debugger {
            debugger.before(moment)?;
        }
        ControlFlow::Continue(())
    }
}

impl Observers<'_> {
    /// Runs a function of a program under them.
    pub(super) fn run(
        &mut self,
        program: &CheckedProgram,
        slot: usize,
        cx: CheckedContext<'_, '_, '_>,
        entry: Entry,
        limits: &Limits,
    ) -> Finish {
        #[cfg(feature = "coverage")]
        if let (true, Some(counts)) = (self.counts_alone, &mut self.counts) {
            return program.run_function_observed(slot, cx, entry, limits, counts);
        }
        program.run_function_observed(slot, cx, entry, limits, self)
    }

    /// What they saw of a run that ended.
    pub(super) fn finish(self, finish: &Finish, memory: &Memory<'_>) -> Seen {
        #[cfg(not(feature = "trace"))]
        let _ = (finish, memory);
        Seen {
            last: self.last,
            #[cfg(feature = "trace")]
            recorded: self.recorder.map(|it| it.finish(finish, memory)),
            #[cfg(all(test, feature = "trace"))]
            insns: self.insns,
        }
    }
}
