//! `beebox fuzz`: looks for packets on which a property does not hold.

mod progress;

use std::path::{Path, PathBuf};
use std::time::Duration;

use beebox::Kernel;
use beebox::internal::fuzz::{
    Campaign, CorpusError, FindsError, FuzzInput, FuzzPlan, Property, make_find_directory,
    object_path, read_corpus, write_corpus, write_find,
};
use beebox::internal::loading::ObjectLoading;
use beebox::internal::object::Object;
use beebox::internal::run::{
    LoadOptions, LoadedObject, PERF_BUFFER_BYTES, can_test_run, leave_out_struct_ops, load_only,
};
use beebox::network::System;
use report::json::pretty;

use crate::answer::{Answer, Failure};
use crate::answer_format::{AnswerFormat, FormatArgs};
use crate::kernel_input::{FOR_VERIFYING, KernelArgs, note_assumed, note_rules};
use crate::loading::{LoadingArgs, change, load_failure, note_guess};
use crate::object_input::ObjectFile;
use crate::run::maps_file::{MapsFile, contents};
use crate::run::read_network;
use crate::stdout::{print_folded, write_json};
use progress::Progress;

/// Look for packets on which a property does not hold
///
/// Packets are made, changed and run in native code with counters; those that execute something new are
/// kept and changed further. Finds are made small. Maps are set back after each input. The same seed and
/// number of jobs make the same runs.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  beebox fuzz firewall.bpf.o --maps rules.json --never 'XDP_PASS if src net 192.0.2.0/24'
  beebox fuzz firewall.bpf.o --assert 'instructions <= 120' --duration 30s -o finds
  beebox fuzz new.bpf.o --against old.bpf.o --pcap in.pcap --corpus corpus
  beebox fuzz nat.bpf.o --idempotent --assert 'checksums valid' --runs 1000000 --seed 7

Exit codes: 0 nothing was found, 1 a property does not hold, 2 could not answer.")]
pub(crate) struct Args {
    /// An object (`.bpf.o`)
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// The program [default: the only one that Linux test-runs]
    #[arg(long, value_name = "NAME")]
    prog: Option<String>,

    /// No run has this verdict, on the packets that a filter of tcpdump takes, or on all: XDP_PASS,
    /// 'XDP_PASS if src net 192.0.2.0/24'; may be given several times
    #[arg(long, value_name = "VERDICT [if FILTER]")]
    never: Vec<String>,

    /// Every run has this verdict, on these packets
    #[arg(long, value_name = "VERDICT [if FILTER]")]
    always: Vec<String>,

    /// What holds after every run, as expectation files say it: 'instructions <= 120', 'checksums valid',
    /// 'global refused = 0'; may be given several times
    #[arg(long = "assert", value_name = "STATEMENT")]
    statements: Vec<String>,

    /// A second run, on the packet that the first one left, has the same verdict and changes nothing
    #[arg(long)]
    idempotent: bool,

    /// Another object whose program of this name does the same: verdict, packet, records, text and maps
    #[arg(long, value_name = "FILE")]
    against: Option<PathBuf>,

    /// Fill maps from a JSON file, as in `run`; they are so in front of each input
    #[arg(long, value_name = "FILE")]
    maps: Option<PathBuf>,

    /// The contents of this map are inputs, too; may be given several times
    #[arg(long, value_name = "MAP")]
    vary: Vec<String>,

    /// Fields of the context (mark, priority, cb, tstamp of struct __sk_buff) are inputs, too; programs
    /// without packets have no others
    #[arg(long)]
    vary_ctx: bool,

    /// Packets of a capture to begin with; may be given several times
    #[arg(long, value_name = "IN")]
    pcap: Vec<PathBuf>,

    /// Directory of inputs to begin with, into which those that are kept are written
    #[arg(long, value_name = "DIR")]
    corpus: Option<PathBuf>,

    /// Most packets of an input, which run one after the other over the same maps
    #[arg(long, value_name = "N", default_value_t = 8)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=64))]
    packets: u32,

    /// Seed of all choices
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,

    /// Most runs, about
    #[arg(long, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    runs: Option<u64>,

    /// Most time, in seconds or with a unit, as 10m [default: 60, with --runs none]
    #[arg(long, value_name = "SECONDS", value_parser = span)]
    duration: Option<Duration>,

    /// Number of threads
    #[arg(short = 'J', long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=256))]
    jobs: u32,

    /// The network that programs see, as in `run`
    #[arg(long, value_name = "FILE")]
    network: Option<PathBuf>,

    /// Directory for finds, made if need be: a test for `beebox test` and a capture of each; files that
    /// are there stay [default: the tests are printed]
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,

    #[command(flatten)]
    format: FormatArgs,

    #[command(flatten)]
    loading: LoadingArgs,

    #[command(flatten)]
    kernel: KernelArgs,
}

/// Time of a campaign, if nothing else is given.
const TIME: Duration = Duration::from_secs(60);

/// Reads a time with a unit.
fn span(text: &str) -> Result<Duration, String> {
    let form = || format!("{text:?} is no time as 500ms, 60s, 10m or 2h");
    let digits = text.trim_end_matches(|each: char| each.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "ms" => 1,
        "s" | "" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return Err(form()),
    };
    let number: u64 = digits.parse().map_err(|_| form())?;
    let time = number.checked_mul(unit).filter(|time| *time > 0);
    Ok(Duration::from_millis(time.ok_or_else(form)?))
}

pub(crate) fn run(args: &Args) -> Result<Answer, Failure> {
    let kernel = args.kernel.read()?;
    note_assumed(&kernel, FOR_VERIFYING, "verified");
    note_rules(&kernel);
    let loading = args.loading.read()?;
    let properties = properties(args)?;
    let file = ObjectFile::read(&args.file)?;
    let filling = args.maps.as_deref().map(MapsFile::read).transpose()?;
    let system = args.network.as_deref().map(read_network).transpose()?;
    let setup = Setup {
        kernel: &kernel,
        loading: &loading,
        filling: filling.as_ref(),
        system: system.as_ref(),
    };
    let mut object = setup.open(&file)?;
    let program = choose(&object, args.prog.as_deref())
        .map_err(|failure| failure.within(args.file.display()))?;
    setup.choose(&mut object, &program);
    let old_file = args.against.as_deref().map(ObjectFile::read).transpose()?;
    let old = match &old_file {
        Some(file) => {
            let mut old = setup.open(file)?;
            choose(&old, Some(&program))
                .map_err(|failure| failure.within(file.path().display()))?;
            setup.choose(&mut old, &program);
            Some((old, file.path()))
        }
        None => None,
    };
    let seeds = seeds(args)?;
    let mut targets = Vec::new();
    for _ in 0..args.jobs {
        let loaded = setup.load(&object, &args.file)?;
        let old = old.as_ref();
        let old = old.map(|(old, path)| setup.load(old, path)).transpose()?;
        targets.push((loaded, old));
    }
    let plan = FuzzPlan {
        program: program.clone(),
        properties,
        seeds,
        seed: args.seed,
        runs: args.runs,
        time: args.duration.or(args.runs.is_none().then_some(TIME)),
        packets: args.packets as usize,
        vary: args.vary.clone(),
        contexts: args.vary_ctx,
    };
    let unfit = |what: String| Failure::new(what).within(args.file.display());
    if let Some(directory) = &args.output {
        make_find_directory(directory).map_err(|error| of_finds(directory, error))?;
    }
    let mut campaign = Campaign::new(&object, plan, targets).map_err(unfit)?;
    let mut progress = Progress::default();
    let mut report = campaign.run(&mut |at| progress.show(at)).map_err(unfit)?;
    drop(progress);
    if let Some(directory) = &args.corpus {
        write_corpus(directory, &report.corpus).map_err(corpus_failure)?;
    }
    for find in &mut report.finds {
        // Every test begins with the maps as they are filled.
        let fresh = setup.load(&object, &args.file)?;
        let path = object_path(&args.file, args.output.as_deref());
        find.write_test(&object, &path, &program, &fresh);
    }
    let mut files = Vec::new();
    for find in &report.finds {
        files.push(match &args.output {
            Some(directory) => write_find(directory, find, campaign.capture_form())
                .map_err(|error| of_finds(directory, error))?,
            None => Vec::new(),
        });
    }
    match args.format.format() {
        AnswerFormat::Text => print_folded(&report.text(&program, &files))?,
        AnswerFormat::Json => write_json(pretty(&report.json(&program, &files)).as_bytes())?,
    }
    Ok(match report.finds.is_empty() {
        true => Answer::Yes,
        false => Answer::No,
    })
}

/// The failure for finds that are not written.
fn of_finds(directory: &Path, error: FindsError) -> Failure {
    match &error {
        FindsError::NoDirectory => Failure::new(&error)
            .within(directory.display())
            .hint("-o with a directory, which is made if need be"),
        FindsError::File(path, error) => Failure::of_file(path, error),
        FindsError::Full(_) => Failure::new(&error).within(directory.display()),
    }
}

/// The properties of the command line.
fn properties(args: &Args) -> Result<Vec<Property>, Failure> {
    let mut properties = Vec::new();
    let sides = [
        ("--never", &args.never, true),
        ("--always", &args.always, false),
    ];
    for (option, given, is_never) in sides {
        for text in given {
            let (verdict, filter) = match text.split_once(" if ") {
                Some((verdict, filter)) => (verdict.trim(), Some(filter.trim())),
                None => (text.trim(), None),
            };
            let property = match is_never {
                true => Property::never(verdict, filter),
                false => Property::always(verdict, filter),
            };
            properties.push(
                property.map_err(|error| {
                    Failure::new(error).within(format_args!("{option} {text:?}"))
                })?,
            );
        }
    }
    for text in &args.statements {
        let property = Property::expect(text);
        properties.push(property.map_err(|what| {
            let failure = Failure::new(what).within("--assert");
            failure.hint("an expectation of `beebox test`, as 'instructions <= 120'")
        })?);
    }
    if args.idempotent {
        properties.push(Property::idempotent());
    }
    if properties.is_empty() && args.against.is_none() && args.corpus.is_none() {
        let failure = Failure::new("there is no property that runs have to have");
        return Err(failure.hint(
            "--never, --always, --assert, --idempotent or --against; --corpus, which only collects inputs",
        ));
    }
    Ok(properties)
}

/// The first inputs.
fn seeds(args: &Args) -> Result<Vec<FuzzInput>, Failure> {
    let mut seeds = Vec::new();
    for path in &args.pcap {
        seeds.extend(read_corpus(path).map_err(corpus_failure)?.inputs);
    }
    if let Some(directory) = &args.corpus {
        if directory.is_dir() {
            let corpus = read_corpus(directory).map_err(corpus_failure)?;
            for left_out in &corpus.skipped {
                diagnostic!("beebox: warning: this file is left out: {left_out}");
            }
            seeds.extend(corpus.inputs);
        } else if directory.exists() {
            let failure = Failure::new("this is no directory").within(directory.display());
            return Err(failure.hint("--corpus DIR; --pcap FILE for a capture"));
        }
    }
    Ok(seeds)
}

fn corpus_failure(error: CorpusError) -> Failure {
    Failure::new(error.what).within(error.path.display())
}

/// How objects are opened and loaded.
struct Setup<'s> {
    kernel: &'s Kernel,
    loading: &'s ObjectLoading,
    filling: Option<&'s MapsFile>,
    system: Option<&'s System>,
}

impl Setup<'_> {
    fn open<'f>(&self, file: &'f ObjectFile) -> Result<Object<'f>, Failure> {
        let mut object = file.open_by(self.loading, &[])?;
        note_guess(&object, &crate::input::name(file.path()));
        let changed = change(&mut object, self.loading);
        changed.map_err(|failure| failure.within(file.path().display()))?;
        Ok(object)
    }

    /// Has the programs loaded that runs of a program need.
    fn choose(&self, object: &mut Object<'_>, program: &str) {
        load_only(object, vec![program.to_owned()], contents(self.filling));
        leave_out_struct_ops(object);
    }

    fn load(&self, object: &Object<'_>, path: &Path) -> Result<LoadedObject, Failure> {
        let name = path.display();
        let options = Campaign::load_options(LoadOptions {
            timeout: Some(Duration::from_secs(1)),
            ..LoadOptions::default()
        });
        let loaded = LoadedObject::load(object, self.kernel, &options);
        let mut loaded = loaded.map_err(|error| load_failure(error, &name.to_string()))?;
        if let Some(system) = self.system {
            loaded.set_system(system.clone());
        }
        if let Some(file) = self.filling {
            file.fill(&loaded, object, &[])?;
        }
        let opened = loaded.open_perf_buffers(PERF_BUFFER_BYTES);
        opened.map_err(|errno| Failure::new(format_args!("{name}: perf buffers: {errno}")))?;
        Ok(loaded)
    }
}

/// The named program, or the only one that runs here.
fn choose(object: &Object<'_>, name: Option<&str>) -> Result<String, Failure> {
    let all = object.programs().map(|(_, program)| program);
    let names = || {
        let names = object.programs().map(|(_, it)| it.name.to_string());
        names.collect::<Vec<_>>().join(", ")
    };
    let found: Vec<String> = all
        .filter(|program| match name {
            Some(name) => program.name == *name,
            None => program.kind.is_some_and(can_test_run),
        })
        .map(|program| program.name.to_string())
        .collect();
    match (&found[..], name) {
        ([one], _) => Ok(one.clone()),
        (_, Some(name)) => Err(Failure::new(format_args!("no program is called {name:?}"))
            .hint(format_args!("--prog with one of {}", names()))),
        ([], None) => Err(Failure::new("no program of a type that Linux test-runs")
            .hint("`beebox show FILE.o` lists the programs of an object and their types")),
        (several, None) => Err(Failure::new("several programs can be run")
            .hint(format_args!("--prog with one of {}", several.join(", ")))),
    }
}
