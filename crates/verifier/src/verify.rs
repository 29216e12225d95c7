//! The verification as a whole: the kernel's `bpf_check` in its order.

use std::time::Instant;

use isa::ebpf::Insn;
use program::Program;
use spec::Kernel;
use spec::behaviour::Behaviour;
use spec::kernel::Privileges;
use spec::programs::ProgramType;
use spec::registry::Registry;
use spec::since::Release;

use crate::analysis::{self, Analysis, SubprogInfo};
use crate::attach::{self, LoadedTarget};
use crate::cost::{Cost, CostCounter};
use crate::diagnosis::{Noted, Scene};
use crate::env::{Check, Env, SubprogAux};
use crate::explore::check_function;
use crate::input::Input;
use crate::insn_facts::{Collector, FunctionStack};
use crate::log::{self, LogOutput, LogTail, Sink};
use crate::options::Options;
use crate::privilege;
use crate::reason::{self, Ending, Explanation};
use crate::recorded::{RecordedStates, Recorder};
use crate::rejection;
use crate::release::{self, RULES};
use crate::resolve;
use crate::verdict::{RefusalKind, Result, Stop, Verdict, Verification};
use crate::walk::{KeptSteps, Walk, WalkRecorder};
use crate::xlated;

/// Most bytes of a log that a [`Verification`] has.
pub const LOG_LIMIT: usize = 64 << 20;

/// Verifies a program for a kernel. What BTF does not say of the kernel is in the
/// registry, whose ids are those of the kernel's BTF.
pub fn verify(
    program: &Program,
    kernel: &Kernel,
    registry: &Registry,
    options: &Options,
) -> Verification {
    let mut log = LogTail::new(LOG_LIMIT);
    let verification = verify_to(program, kernel, registry, options, &mut log);
    with_log(verification, log)
}

/// As [`verify`], and hands the log out while it is written, however long it gets. The
/// verification has none.
pub fn verify_to(
    program: &Program,
    kernel: &Kernel,
    registry: &Registry,
    options: &Options,
    log: &mut dyn LogOutput,
) -> Verification {
    run(program, kernel, registry, options, Extras::default(), log).verification
}

fn with_log(verification: Verification, log: LogTail) -> Verification {
    let (log, log_left_out) = log.finish();
    Verification {
        log,
        log_left_out,
        ..verification
    }
}

/// As [`verify`], and keeps the state before each visit of an instruction. There are no
/// states if the walk does not begin, or if there are more than `limit`.
pub fn verify_recorded(
    program: &Program,
    kernel: &Kernel,
    registry: &Registry,
    options: &Options,
    limit: usize,
) -> (Verification, Option<RecordedStates>) {
    let extras = Extras {
        recorder: Some(Recorder::new(limit)),
        ..Extras::default()
    };
    let mut log = LogTail::new(LOG_LIMIT);
    let done = run(program, kernel, registry, options, extras, &mut log);
    (with_log(done.verification, log), done.states)
}

/// Explains why a program is refused; `None` if it is not. The program is verified again,
/// by the same options but for the log, and with more capabilities if the caller lacks some.
pub fn explain(
    program: &Program,
    kernel: &Kernel,
    registry: &Registry,
    options: &Options,
) -> Option<Explanation> {
    let options = Options {
        collect_cost: true,
        collect_facts: false,
        ..options.clone()
    };
    let extras = Extras {
        traces: true,
        ..Extras::default()
    };
    let log = &mut LogTail::new(0);
    let mut explanation = run(program, kernel, registry, &options, extras, log).explanation?;
    explanation.missing =
        reason::missing(program, kernel, registry, &options, &explanation.refusal);
    Some(explanation)
}

/// Verifies a program again, by the same options but for the log, and keeps steps of the walk.
pub fn walk(
    program: &Program,
    kernel: &Kernel,
    registry: &Registry,
    options: &Options,
    kept: KeptSteps,
) -> Walk {
    let options = Options {
        log_level: 0,
        ..options.clone()
    };
    let extras = Extras {
        walk: Some(Box::new(WalkRecorder::new(kept))),
        ..Extras::default()
    };
    let log = &mut LogTail::new(0);
    run(program, kernel, registry, &options, extras, log)
        .walk
        .unwrap_or_default()
}

/// Outputs of a verification beside its result; each is off by default.
#[derive(Default)]
struct Extras {
    /// Keeps states.
    recorder: Option<Recorder>,
    /// Records the path, to explain a refusal.
    traces: bool,
    /// Records the steps of the walk.
    walk: Option<Box<WalkRecorder>>,
    /// Rejections that are reported from the path.
    noted: Vec<Noted>,
}

/// A verification with its extras.
struct Done {
    verification: Verification,
    states: Option<RecordedStates>,
    explanation: Option<Explanation>,
    walk: Option<Walk>,
    /// Reports, by their places in the log.
    reports: Vec<(usize, String)>,
}

/// Linux's `bpf_check`.
#[doc(alias = "bpf_check")]
fn run(
    program: &Program,
    kernel: &Kernel,
    registry: &Registry,
    options: &Options,
    extras: Extras,
    log: &mut dyn LogOutput,
) -> Done {
    let begin = Instant::now();
    let mut sink = match extras.traces {
        true => Sink::tracing(),
        false => Sink::to_output(options.log_level, log),
    };
    sink.walk = extras.walk;
    sink.rules = kernel.behaviours();
    let privileges = kernel.privileges();
    let mut input = Input::new(program, kernel, registry, options);
    let target = program.attach_target();
    input.target =
        target.and_then(|target| load_target(target.program.as_deref()?, kernel, registry));
    sink.rules = input.rules;
    let mut verification = Verification {
        verdict: Verdict::Accepted,
        refused_map: input.maps.refused(program),
        statistics: Default::default(),
        precision: Default::default(),
        stack_depth: Vec::new(),
        duration_us: 0,
        cost: None,
        facts: None,
        log: String::new(),
        log_left_out: 0,
    };
    let other_release = (kernel.version().map(Release::from)).filter(|release| *release != RULES);
    let mut analysis = Analysis::default();
    let analysis = match analyze(&mut input, privileges, &mut sink, &mut analysis) {
        Ok(()) => analysis,
        Err(stop) => {
            verification.verdict = stop.into();
            if let Some(release) = other_release {
                verification.verdict =
                    release::verdict(&input, release, |_| false, verification.verdict);
            }
            adapt(&mut verification, &input);
            verification.stack_depth = vec![0; analysis.subprogs.len().max(1)];
            let walk = sink.walk.take();
            let walk = walk.map(|walk| walk.finish(&input, &analysis, None));
            let reports = report_all(&input, &analysis, &mut sink, &extras.noted);
            let explanation = extras.traces.then(|| {
                let cost = CostCounter::default().finish(&input, &analysis, &[]);
                explain_refusal(&input, &analysis, &cost, &mut sink, &verification)
            });
            let explanation = explanation.flatten();
            add_reports(program, kernel, registry, options, &mut sink);
            let unwalked: Vec<SubprogAux> = analysis.subprogs.iter().map(SubprogAux::new).collect();
            finish(&mut verification, sink, &analysis, &unwalked, begin);
            return Done {
                verification,
                states: None,
                explanation,
                walk,
                reports,
            };
        }
    };
    let mut env = Env::new(&input, &analysis, sink);
    if let Some(callback) = analysis.exception_callback {
        let callback = &mut env.subprogs[callback];
        (callback.is_cb, callback.is_async_cb) = (true, true);
    }
    env.observers.recorder = extras.recorder.map(Box::new);
    if options.collect_facts {
        env.observers.collector = Some(Box::new(Collector::new(input.insns.len())));
    }
    if options.collect_cost {
        env.observers.cost = Some(Box::new(CostCounter::new(input.insns.len())));
    }
    if let Err(stop) = check_program(&mut env) {
        verification.verdict = stop.into();
    }
    if let Some(release) = other_release {
        let is_reached = |at: usize| env.aux[at].seen;
        verification.verdict = release::verdict(&input, release, is_reached, verification.verdict);
    }
    adapt(&mut verification, &input);
    verification.statistics = env.explorer.statistics();
    verification.precision = env.precision;
    let counter = env.observers.cost.take();
    let cost = counter.map(|counter| counter.finish(&input, &analysis, &env.subprogs));
    let is_accepted = verification.verdict == Verdict::Accepted;
    verification.facts = (env.observers.collector.take())
        .filter(|_| is_accepted)
        .map(|collector| collector.finish(&input, &analysis, &env.subprogs));
    if let Some(facts) = &mut verification.facts {
        xlated::note_lengths(&env, facts);
    }
    verification.stack_depth = stack_depths(&env, is_accepted);
    let states = (env.observers.recorder.take())
        .and_then(|recorder| recorder.finish(&analysis, &mut env.live));
    let walk = env.sink.walk.take().map(|walk| {
        let processed = verification.statistics.insns_processed;
        let refused = (env.state.clone(), env.sink.insn_idx, processed);
        let refused = (!is_accepted).then_some(refused);
        walk.finish(&input, &analysis, refused)
    });
    let mut explanation = None;
    if let Some(cost) = &cost {
        let verdict = &verification.verdict;
        let loops =
            matches!(verdict, Verdict::Refused(refusal) if refusal.kind == RefusalKind::Loop);
        env.check.sink.end_trace(&env.check.state, loops);
        explanation = explain_refusal(&input, &analysis, cost, &mut env.sink, &verification);
    }
    verification.cost = cost;
    let reports = report_all(&input, &analysis, &mut env.sink, &extras.noted);
    add_reports(program, kernel, registry, options, &mut env.sink);
    finish(
        &mut verification,
        env.check.sink,
        &analysis,
        &env.check.subprogs,
        begin,
    );
    Done {
        verification,
        states,
        explanation,
        walk,
        reports,
    }
}

/// Puts the reports of the rejections that a log notes into it: the program is verified again with
/// its path recorded.
fn add_reports(
    program: &Program,
    kernel: &Kernel,
    registry: &Registry,
    options: &Options,
    sink: &mut Sink<'_>,
) {
    let noted = sink.take_noted();
    if noted.is_empty() {
        return;
    }
    let extras = Extras {
        traces: true,
        noted,
        ..Extras::default()
    };
    let log = &mut LogTail::new(0);
    let done = run(program, kernel, registry, options, extras, log);
    sink.insert(&done.reports);
}

/// The reports of rejections, read from the recorded path.
fn report_all(
    input: &Input<'_>,
    analysis: &Analysis,
    sink: &mut Sink<'_>,
    noted: &[Noted],
) -> Vec<(usize, String)> {
    if noted.is_empty() {
        return Vec::new();
    }
    let (trace, _) = sink.take_trace().unwrap_or_default();
    let scene = Scene::new(input, analysis, &trace);
    let reports = noted
        .iter()
        .map(|noted| (noted.position, scene.report(noted)));
    let reports = reports.filter_map(|(position, report)| Some((position, report?)));
    reports.collect()
}

/// Gives a refusal the words of the kernel.
fn adapt(verification: &mut Verification, input: &Input<'_>) {
    if let Verdict::Refused(refusal) = &mut verification.verdict {
        refusal.adapt(input.rules);
    }
}

/// Verifies a program that another attaches to.
fn load_target(program: &Program, kernel: &Kernel, registry: &Registry) -> Option<LoadedTarget> {
    let options = Options::default();
    let mut input = Input::new(program, kernel, registry, &options);
    let target = program.attach_target();
    input.target =
        target.and_then(|target| load_target(target.program.as_deref()?, kernel, registry));
    let mut sink = Sink::new(0);
    let mut analysis = Analysis::default();
    if let Err(stop) = analyze(&mut input, kernel.privileges(), &mut sink, &mut analysis) {
        return Some(LoadedTarget::without_functions(stop.into()));
    }
    let mut env = Env::new(&input, &analysis, sink);
    let verdict = match check_program(&mut env) {
        Ok(()) => Verdict::Accepted,
        Err(stop) => stop.into(),
    };
    Some(LoadedTarget::new(verdict, &env))
}

/// Explains the refusal of a verification whose path was recorded.
fn explain_refusal(
    input: &Input<'_>,
    analysis: &Analysis,
    cost: &Cost,
    sink: &mut Sink<'_>,
    verification: &Verification,
) -> Option<Explanation> {
    let (trace, log) = sink.take_trace()?;
    let Verdict::Refused(refusal) = &verification.verdict else {
        return None;
    };
    Some(reason::explain(Ending {
        input,
        analysis,
        cost,
        trace,
        log,
        refusal,
    }))
}

/// The passes before the walk.
fn analyze(
    input: &mut Input<'_>,
    privileges: Privileges,
    sink: &mut Sink<'_>,
    analysis: &mut Analysis,
) -> Result<()> {
    check_maps(input)?;
    check_replacement(input)?;
    privilege::check_load(input, privileges)?;
    analysis::find_subprogs(input, sink, analysis)?;
    let are_last = input.rules.has(Behaviour::TargetsLast);
    if !are_last {
        attach::check_attach_target(input, analysis, sink)?;
    }
    resolve::resolve_insns(input, sink)?;
    analysis::check_cfg(input, sink, analysis)?;
    if are_last {
        attach::check_attach_target(input, analysis, sink)?;
    }
    analysis::finish(input, sink, analysis)
}

/// Loaders create the maps of a program before they load it.
fn check_maps(input: &Input<'_>) -> Result<()> {
    match input.maps.refused(input.program) {
        Some(map) => {
            let errno = map.refusal.errno;
            let rejection = rejection::Program::MapCreation {
                map: map.to_string(),
            };
            Err(Stop::refusal(rejection, None).with_errno(errno))
        }
        None => Ok(()),
    }
}

/// A freplace program has the context, helpers and rules of the program that it attaches to.
fn check_replacement(input: &Input<'_>) -> Result<()> {
    let target = input.program.attach_target();
    let has_target = target.is_some_and(|target| target.program.is_some());
    if input.program.kind() == ProgramType::Ext && !has_target {
        return Err(Stop::unsupported(
            "a freplace program is verified by the rules of its target program, and none is given \
             (--target FILE:PROGRAM)",
        ));
    }
    Ok(())
}

/// The walk over the main program and over called global functions, and the checks behind it
/// (`do_check_main`).
#[doc(alias = "do_check_main")]
fn check_program(env: &mut Env<'_>) -> Result<()> {
    let on_demand = env.input.rules.has(Behaviour::GlobalsOnDemand);
    if !on_demand {
        check_global_functions(env)?;
    }
    check_function(env, 0)?;
    if on_demand {
        check_global_functions(env)?;
    }
    note_stack(env);
    drop_fastcall_spills(env);
    analysis::check_max_stack_depth(env)?;
    add_rewritten_stack(env);
    note_compiled_stack(env);
    xlated::check_rewriting(env)
}

/// Keeps the stack of each function for its facts, before anything is rewritten.
fn note_stack(env: &mut Env<'_>) {
    let subprogs = env.check.analysis.subprogs.iter().zip(&env.check.subprogs);
    if let Some(collector) = &mut env.observers.collector {
        collector.stack = subprogs
            .map(|(info, aux)| (info.start, aux.stack_depth))
            .collect();
    }
}

/// Keeps the stack of each function as the kernel compiles it.
fn note_compiled_stack(env: &mut Env<'_>) {
    let subprogs = env.check.analysis.subprogs.iter().zip(&env.check.subprogs);
    if let Some(collector) = &mut env.observers.collector {
        let stack = subprogs.map(|(info, aux)| FunctionStack {
            start: info.start,
            bytes: aux.stack_depth,
        });
        collector.compiled_stack = stack.collect();
    }
}

/// Spills around calls of the `bpf_fastcall` contract are removed, and with them the stack below
/// them, if nothing else uses it (`remove_fastcall_spills_fills`,
/// `bpf_remove_fastcall_spills_fills`).
#[doc(alias = "remove_fastcall_spills_fills")]
#[doc(alias = "bpf_remove_fastcall_spills_fills")]
fn drop_fastcall_spills(env: &mut Check<'_>) {
    for (info, aux) in env.analysis.subprogs.iter().zip(&mut env.subprogs) {
        let insns = &env.analysis.insns[info.start as usize..info.end as usize];
        let is_kept = aux.keep_fastcall_stack || aux.fastcall_stack_off == i32::from(i16::MIN);
        if !is_kept && insns.iter().any(|insn| insn.fastcall_spills > 0) {
            aux.stack_depth = aux.fastcall_stack_off.unsigned_abs();
        }
    }
}

/// Inlined `bpf_loop` calls and timed `may_goto` take stack (`optimize_bpf_loop`, `do_misc_fixups`,
/// `bpf_optimize_bpf_loop`).
#[doc(alias = "optimize_bpf_loop")]
#[doc(alias = "do_misc_fixups")]
#[doc(alias = "bpf_optimize_bpf_loop")]
fn add_rewritten_stack(env: &mut Check<'_>) {
    const LOOP_BYTES: u32 = 24;
    const MAY_GOTO_BYTES: u32 = 16;
    for (info, aux) in env.analysis.subprogs.iter().zip(&mut env.subprogs) {
        let range = info.start as usize..info.end as usize;
        // Also calls that only speculative paths reach.
        let insns = &env.aux[range.clone()];
        if insns.iter().any(|insn| insn.loop_inline.fits) {
            aux.stack_depth = aux.stack_depth.next_multiple_of(8) + LOOP_BYTES;
        }
        let insns = env.input.insns[range.clone()]
            .iter()
            .zip(&env.aux[range.clone()]);
        let is_timed = |insn: &Insn| matches!(insn, Insn::MayGoto { off } if *off != 0);
        if insns
            .into_iter()
            .any(|(insn, aux)| aux.seen && is_timed(insn))
        {
            aux.stack_depth += MAY_GOTO_BYTES;
        }
    }
}

/// Stack by subprogram; subprograms that the walk never reached are removed. Behind them stands the
/// default callback of exceptions, which Linux adds where it is needed (`add_hidden_subprog`).
#[doc(alias = "add_hidden_subprog")]
fn stack_depths(env: &Env<'_>, is_accepted: bool) -> Vec<u32> {
    let is_kept = |info: &SubprogInfo| {
        let insns = &env.aux[info.start as usize..info.end as usize];
        !is_accepted || insns.iter().any(|insn| insn.seen)
    };
    let subprogs = env.analysis.subprogs.iter().zip(&env.subprogs);
    let has_default =
        is_accepted && env.seen_exception && env.analysis.exception_callback.is_none();
    subprogs
        .filter(|(info, _)| is_kept(info))
        .map(|(_, aux)| aux.stack_depth)
        .chain(has_default.then_some(0))
        .collect()
}

/// Verifies global functions that verified functions call, each on its own
/// (`do_check_subprogs`).
#[doc(alias = "do_check_subprogs")]
fn check_global_functions(env: &mut Env<'_>) -> Result<()> {
    if env.input.program.func_info().is_empty() {
        return Ok(());
    }
    if let Some(callback) = env.analysis.exception_callback {
        env.subprogs[callback].called = true;
    }
    if !env.input.rules.has(Behaviour::GlobalsOnDemand) {
        env.subprogs
            .iter_mut()
            .for_each(|subprog| subprog.called = true);
    }
    loop {
        let mut is_new = false;
        for subprog in 1..env.subprogs.len() {
            let aux = &env.subprogs[subprog];
            if !env.analysis.subprogs[subprog].is_global || !aux.called || aux.verified {
                continue;
            }
            check_function(env, subprog as u32)?;
            if env.sink.walks() {
                let name = &env.analysis.subprogs[subprog].name;
                verbose!(
                    env.sink,
                    "Func#{subprog} ('{name}') is safe for any args that match its prototype\n"
                );
            }
            env.subprogs[subprog].verified = true;
            is_new = true;
        }
        if !is_new {
            return Ok(());
        }
    }
}

/// Writes the last lines of the log and hands it over.
fn finish(
    verification: &mut Verification,
    mut sink: Sink<'_>,
    analysis: &Analysis,
    subprogs: &[SubprogAux],
    begin: Instant,
) {
    let functions: Vec<_> = analysis.subprogs.iter().zip(subprogs).collect();
    let elapsed = begin.elapsed().as_micros();
    verification.duration_us = u64::try_from(elapsed).unwrap_or(u64::MAX);
    log::print_statistics(
        &mut sink,
        &verification.statistics,
        verification.duration_us,
        &verification.stack_depth,
        &functions,
    );
    sink.finish();
}

#[doc(hidden)]
impl From<Stop> for Verdict {
    fn from(stop: Stop) -> Verdict {
        match stop {
            Stop::Refused(refusal) => Verdict::Refused(*refusal),
            Stop::Unsupported(what) => Verdict::Unsupported(what),
            Stop::Bug(what) => Verdict::Bug(what),
        }
    }
}
