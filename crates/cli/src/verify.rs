//! `beebox verify`: verdicts of the programs of objects, as tables, logs and data.

mod filter;
pub(crate) mod globals;
mod html;
mod row;
pub(crate) mod run;
mod single;
mod target;

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::thread;

use beebox::internal::kernel::{Privileges, Source};
use beebox::internal::loading::ObjectLoading;
use beebox::internal::object::{Error, ExternFault};
use beebox::internal::program::LoadFlags;
use beebox::internal::verify::matrix::table::{self as matrix, MatrixTable, NamedKernel};
use beebox::internal::verify::matrix::{Cell, ProgramAnswers};
use beebox::internal::verify::results::{Counts, Job, Logs, Results, Row, UNTYPED, table};
use beebox::verify::Options;

use crate::answer::{Answer, Failure, note};
use crate::answer_format::AnswerFormat;
use crate::kernel_input::{FOR_VERIFYING, KernelArgs, note_assumed, note_built_in, with_rules};
use crate::loading::LoadingArgs;
use crate::log_level::LogLevelArg;
use crate::object_input::SET_TYPE;
use crate::output_path::OutputPath;
use crate::stdout::{fit, json, print, width_of, write_answer, write_output};
use beebox::Kernel;
use report::sarif::sarif;
use report::veristat::{Emit, Filters, Joined, ResultRow, ResultVerdict, csv, differences};

/// Verify BPF programs as Linux 6.18 does, or the kernels of --kernel
///
/// Every program of the objects is loaded alone, as libbpf loads it when nothing else
/// is requested, and verified: accepted, or refused with the kernel's reason. A program
/// that uses what Beebox does not support yet is `unsupported`, which is no verdict. No kernel
/// and no root is needed. A text case (`beebox dis --format case`) is one program; with
/// --type so are instructions alone (bytes, bytes in hexadecimal, or text in LLVM's assembly
/// language). Answers of kernels that a case records are compared
/// with ours.
#[derive(clap::Args)]
#[command(after_help = "\
Exit codes: 0 all accepted; 1 a program is refused, even if others are unsupported; 2 a program
is unsupported and none is refused, a file could not be read, or an answer recorded in a case is
not ours.

Examples:
  beebox verify prog.bpf.o                        a line for each program
  beebox verify prog.bpf.o --explain              why programs are refused, and what to do
  beebox verify prog.bpf.o --prog handle --log 1  the kernel's log of the refusal
  beebox verify -vl2 prog.bpf.o                   every log, with every instruction
  beebox verify prog.bpf.o --cost                 where verification spends instructions
  beebox verify prog.bpf.o --cost=folded | inferno-flamegraph > cost.svg
  beebox verify prog.bpf.o --facts                what holds at each instruction
  beebox verify prog.bpf.o --html walk.html       the walk of the verifier, to look at
  beebox verify *.o -o csv --output new.csv       veristat's columns, and the reason
  beebox verify *.o --compare old.csv             what changed
  beebox verify *.o -e file,prog,insns -s insns -n 10
  beebox verify prog.bpf.o --privileges none      as any user
  beebox verify prog.bpf.o --kernel all           which kernels accept it, and what decides that
  beebox verify prog.bpf.o --kernel 6.1-6.12 --explain  and the edit for those that do not
  beebox verify prog.bpf.o --diff 6.12,6.18       what changes from one kernel to another
  beebox verify -C old.csv new.csv                compare two files of results
  beebox verify found.case                        a program as text
  beebox verify --type xdp prog.s                 instructions alone")]
pub(crate) struct Args {
    /// Objects, text cases, or with --type instructions; with -C two files of results,
    /// with -R one
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    /// Only programs of this name
    #[arg(long, value_name = "NAME")]
    prog: Vec<String>,

    /// The program that freplace programs replace a function of, as `dispatcher.o:xdp_main`:
    /// they are verified by its rules. Tracing programs attach to it if it has the function that
    /// their section names
    #[arg(long, value_name = "FILE:PROGRAM", conflicts_with_all = ["compare_files", "replay"])]
    target: Option<String>,

    /// Capabilities of the user who loads the programs: `all`, `none`, or some of bpf,
    /// perfmon, net_admin and sys_admin with commas; without bpf as where
    /// kernel.unprivileged_bpf_disabled is 0
    #[arg(long, value_name = "LIST")]
    privileges: Option<Privileges>,

    #[command(flatten)]
    log: LogLevelArg,

    /// Print the log of every program, with statistics; of level 1 unless --log has another
    #[arg(short, long, conflicts_with = "quiet")]
    verbose: bool,

    /// As --verbose, and print on standard error how each program is loaded
    #[arg(short, long, conflicts_with = "quiet")]
    debug: bool,

    /// Leave out notes on standard error about what is assumed and about maps
    #[arg(short, long)]
    quiet: bool,

    /// Explain refusals: the source line, where the value came from, the path that leads
    /// there, what was needed and the usual edit (text and json)
    #[arg(long, conflicts_with_all = ["compare", "compare_files", "replay"])]
    explain: bool,

    /// Print costs: processed instructions and states by function, call chain and source
    /// line, worst first, and the deepest stack (text and json); `--cost=folded`
    /// prints folded stacks for a flame graph
    #[arg(
        long,
        value_name = "FORM",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "text",
        conflicts_with_all = ["compare", "compare_files", "replay"]
    )]
    cost: Option<CostForm>,

    /// Print what holds at each instruction of an accepted program in every run: kinds and
    /// offsets of pointers, ranges of numbers, constants, dead code, jumps that go one way,
    /// and whether the upper half of a 32-bit result is needed (text and json)
    #[arg(long, conflicts_with_all = ["compare", "compare_files", "replay"])]
    facts: bool,

    /// Write a page to look at, which needs nothing else: the steps of the walk over source and
    /// instructions, with the state at each step, why paths were pruned, where precision came from,
    /// and refusals with their causes
    #[arg(long, value_name = "PAGE")]
    #[arg(conflicts_with_all = ["compare", "compare_files", "replay", "diff"])]
    html: Option<PathBuf>,

    /// Output format; veristat's `table` is `text`
    #[arg(
        short = 'o',
        long,
        value_name = "FORMAT",
        default_value = "text",
        visible_alias = "output-format"
    )]
    format: VerifyFormat,

    /// Same as --format json
    #[arg(short, long, conflicts_with = "format")]
    json: bool,

    /// Write the results to OUT, which is complete or absent [default: standard output, as for
    /// `-`]
    #[arg(long, value_name = "OUT")]
    output: Option<PathBuf>,

    /// Print what differs from these results (CSV of veristat or of this command)
    #[arg(long, value_name = "OLD.csv")]
    compare: Option<PathBuf>,

    /// Compare the answers of two kernels: programs whose verdict changes, or whose instructions or
    /// states change by a factor of two or more. Exit code 1 if there are any
    #[arg(
        long,
        value_name = "OLD,NEW",
        value_delimiter = ',',
        conflicts_with_all = ["compare", "compare_files", "replay", "kernel"]
    )]
    diff: Vec<String>,

    /// Compare two files of results
    #[arg(short = 'C')]
    compare_files: bool,

    /// Print a file of results again
    #[arg(short = 'R', conflicts_with = "compare_files")]
    replay: bool,

    /// List the N source lines of each program that its log names most often (text and
    /// json)
    #[arg(short = 'S', long, value_name = "N")]
    top_src_lines: Option<usize>,

    /// Columns to print, by veristat's names
    #[arg(short = 'e', long, value_name = "SPEC")]
    emit: Vec<String>,

    /// Columns to sort by; `^` after a name ascends, `v` descends; with -C also the values
    /// NAME_a, NAME_b, NAME_diff, NAME_pct, and between bars absolute ones
    #[arg(short = 's', long, value_name = "SPEC")]
    sort: Vec<String>,

    /// FILE/PROG globs, with `!` to leave out, or conditions such as `insns>=1000`; @FILE
    /// holds one on each line
    #[arg(short = 'f', long, value_name = "FILTER")]
    filter: Vec<String>,

    /// At most so many results
    #[arg(short = 'n', long = "top-n", value_name = "N")]
    top: Option<usize>,

    /// A checkpoint at every prune point (BPF_F_TEST_STATE_FREQ)
    #[arg(short = 't', long)]
    test_states: bool,

    /// Broken register invariants refuse a program (BPF_F_TEST_REG_INVARIANTS)
    #[arg(short = 'r', long)]
    test_reg_invariants: bool,

    #[command(flatten)]
    loading: LoadingArgs,

    /// Load flags (BPF_F_*) of every program, as a number
    #[arg(long, value_name = "BITS", value_parser = number)]
    flags: Option<u32>,

    /// Obey declaration tags of the kernel's selftests: test_prog_flags, and test_btf_path
    /// with a file beside the object
    #[arg(long)]
    test_tags: bool,

    /// Verify so many files at the same time [default: 1; of several kernels the processors]
    #[arg(short = 'J', long, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=256))]
    jobs: Option<u16>,

    #[command(flatten)]
    kernel: KernelArgs,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum CostForm {
    /// Tables in front of the results
    Text,
    /// Folded stacks and nothing else, as flamegraph.pl and inferno read them
    Folded,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum VerifyFormat {
    /// Columns for people
    #[value(alias = "table")]
    Text,
    /// veristat's sixteen columns, the reason and the duration
    Csv,
    /// One record for each program, on a line of its own (JSON Lines)
    Json,
    /// Input of `veristat -C`: its columns only, without unsupported programs
    Veristat,
    /// Refusals at their source lines, with explanations, for code scanning (SARIF 2.1.0)
    Sarif,
    /// The table of several kernels (--kernel 6.12,6.18) in Markdown
    Markdown,
}

impl VerifyFormat {
    /// True if there is no place for costs, facts and logs.
    fn has_columns_only(&self) -> bool {
        matches!(
            self,
            VerifyFormat::Csv | VerifyFormat::Veristat | VerifyFormat::Sarif
        )
    }
}

/// The bit of the log level for statistics (`BPF_LOG_STATS`).
const LOG_STATS: u32 = 4;

pub(crate) fn number(text: &str) -> Result<u32, String> {
    let parsed = match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16),
        None => text.parse(),
    };
    parsed.map_err(|error| error.to_string())
}

pub(crate) fn run(mut args: Args) -> Result<Answer, Failure> {
    if args.json {
        args.format = VerifyFormat::Json;
    }
    let inputs = args.files.iter().chain(&args.compare);
    let inputs = inputs.map(PathBuf::as_path).chain(args.kernel.files());
    let inputs: Vec<&Path> = inputs.collect();
    let page = html::page_path(&args, &inputs)?;
    let output = OutputPath::optional(args.output.as_deref(), inputs)?;
    let fit = |text: &str| match output {
        None => fit(text),
        Some(_) => text.to_owned(),
    };
    let filters = filter::read(&args.filter)?;
    let emit = Emit::read(&args.emit, &args.sort).map_err(|error| row::failure(&error))?;
    if args.compare_files {
        let [old, new] = &args.files[..] else {
            return Err(Failure::new("-C compares two files of results"));
        };
        let (old, new) = (read_results(old, &filters)?, read_results(new, &filters)?);
        if old.is_empty() && new.is_empty() && !args.filter.is_empty() {
            return Err(selects_nothing(&args));
        }
        let joined = Joined::new([&old, &new], &emit, &filters, args.top);
        let joined = joined.map_err(|error| row::failure(&error))?;
        match args.format {
            VerifyFormat::Text => write_answer(AnswerFormat::Text, fit(&joined.table()), output)?,
            VerifyFormat::Csv => write_output(joined.csv().as_bytes(), output)?,
            VerifyFormat::Json
            | VerifyFormat::Veristat
            | VerifyFormat::Sarif
            | VerifyFormat::Markdown => {
                return Err(Failure::new(
                    "two files of results are compared with --format text or csv",
                ));
            }
        }
        return Ok(Answer::Yes);
    }
    if args.cost.is_some() && args.format.has_columns_only() {
        return Err(Failure::new("--cost is printed as text or json"));
    }
    if args.explain && matches!(args.format, VerifyFormat::Csv | VerifyFormat::Veristat) {
        return Err(Failure::new("--explain is printed as text or json"));
    }
    if args.facts && args.format.has_columns_only() {
        return Err(Failure::new("--facts are printed as text or json"));
    }
    let has_log = args.verbose || args.log.log > 0 || args.top_src_lines.is_some();
    if has_log && args.format.has_columns_only() {
        return Err(Failure::new("logs are printed as text or json")
            .hint("no -v, --log and --top-src-lines, or -o json"));
    }
    if let Some(failure) = number_of_jobs(&args) {
        return Err(failure);
    }
    let mut failures = Vec::new();
    let mut rules = None;
    let mut rows = if args.replay {
        let [file] = &args.files[..] else {
            return Err(Failure::new("-R prints one file of results"));
        };
        let rows: Vec<Row> = read_results(file, &filters)?
            .into_iter()
            .map(Row::from)
            .collect();
        if rows.is_empty() && !args.filter.is_empty() {
            return Err(selects_nothing(&args));
        }
        rows
    } else {
        let flags = LoadFlags(
            args.flags.unwrap_or(0)
                | u32::from(args.test_states) << 3
                | u32::from(args.test_reg_invariants) << 7,
        );
        let is_table = args.format == VerifyFormat::Text
            && args.compare.is_none()
            && args.cost != Some(CostForm::Folded);
        let prints = is_table
            && output.is_none()
            && args.top.is_none()
            && !emit.sorts()
            && !filters.selects_results()
            && (args.jobs.is_none_or(|jobs| jobs == 1) || args.files.len() == 1);
        let log = match (args.verbose || args.debug, args.log.log) {
            (false, level) => level,
            (true, 0) => 1 | LOG_STATS,
            (true, level) => level | LOG_STATS,
        };
        let printing = Mutex::new(None);
        let print = |text: &str| {
            if let Ok(mut failure) = printing.lock()
                && failure.is_none()
            {
                *failure = print(text).err();
            }
        };
        let print: Option<&(dyn Fn(&str) + Sync)> = if prints { Some(&print) } else { None };
        let logs = Logs::new(log, args.top_src_lines, print);
        let job = Job {
            programs: &args.prog,
            filters: &filters,
            flags,
            test_tags: args.test_tags,
            options: Options {
                log_level: logs.level(),
                collect_cost: args.cost.is_some(),
                collect_facts: args.facts,
                ..Options::default()
            },
            explains: args.explain || args.format == VerifyFormat::Sarif,
            loading: args.loading.read()?,
            target: None,
            logs,
            threads: threads(&args),
        };
        if !args.diff.is_empty() {
            return matrix_of(&args, &job, compared(&args)?, output);
        }
        if args.kernel.is_list() {
            return matrix_of(&args, &job, args.kernel.read_several()?, output);
        }
        if args.format == VerifyFormat::Markdown {
            return Err(
                Failure::new("--format markdown is the table of several kernels")
                    .hint("--kernel 6.12,6.18"),
            );
        }
        let mut kernel = args.kernel.read()?;
        if let Some(privileges) = args.privileges {
            kernel = kernel.with_privileges(privileges, Source::Given);
        }
        let by_loader = ObjectLoading {
            loader: job.loading.loader,
            ..ObjectLoading::default()
        };
        let target = args
            .target
            .as_deref()
            .map(|text| target::read(text, &kernel, &by_loader));
        let job = Job {
            target: target.transpose()?,
            ..job
        };
        let mut results = run::verify(
            &args.files,
            &job,
            &kernel,
            [!args.quiet, args.debug, page.is_some()],
        )?;
        if let Some(failure) = printing.lock().ok().and_then(|mut it| it.take()) {
            return Err(failure);
        }
        if !args.quiet {
            note_assumed(&kernel, FOR_VERIFYING, "verified");
        }
        if results.kernel_lacks_feature && !args.quiet {
            note_built_in(&kernel);
        }
        rules = with_rules(&kernel).map(|name| format!("--kernel {name}"));
        let uses_target = results.rows.iter().any(|row| row.uses_target);
        if let Some(target) = args.target.as_ref().filter(|_| !uses_target && !args.quiet) {
            let what = "no program that is verified replaces or traces a function of it";
            note(format_args!("--target {target}: {what}"));
        }
        failures = std::mem::take(&mut results.failures);
        failures.extend(results.rows.iter().flat_map(unlike_recorded));
        if failures.is_empty() {
            failures = unselected(&args, &results);
        }
        if let Some(page) = page {
            html::write(&args, page, &results.rows, &job, &kernel)?;
        }
        results.rows
    };
    rows.retain(|row| filters.keep_results(row));
    emit.sort(&mut rows);
    let answer = answer(&rows, failures, rules);
    let counts = Counts::of(&rows);
    if let Some(top) = args.top {
        rows.truncate(top);
    }
    if let Some(old) = &args.compare {
        let mut old = read_results(old, &filters)?;
        old.retain(|row| args.prog.is_empty() || args.prog.contains(&row.prog_name));
        let text = differences(&old, &rows, &emit);
        write_answer(AnswerFormat::Text, fit(&text), output)?;
        return answer;
    }
    if args.cost == Some(CostForm::Folded) {
        let costs = rows.iter().filter_map(|row| row.cost.as_ref());
        let stacks: String = costs.map(|cost| cost.folded.as_str()).collect();
        write_output(stacks.as_bytes(), output)?;
        return answer;
    }
    match args.format {
        VerifyFormat::Text if rows.is_empty() && answer.is_err() => {}
        VerifyFormat::Text => {
            let width = width_of(output);
            let text = table(&rows, &emit, &counts, width);
            write_answer(AnswerFormat::Text, text, output)?;
        }
        VerifyFormat::Csv => write_output(csv(&rows, &emit, true).as_bytes(), output)?,
        VerifyFormat::Veristat | VerifyFormat::Markdown => {
            write_output(csv(&rows, &emit, false).as_bytes(), output)?;
        }
        VerifyFormat::Json => {
            let lines: Vec<u8> = rows.iter().flat_map(json).collect();
            write_answer(AnswerFormat::Json, lines, output)?;
        }
        VerifyFormat::Sarif => {
            let results = rows.iter().map(|row| {
                let explanation = row.explanation.as_ref();
                (
                    row.as_ref(),
                    explanation.map(|explanation| &explanation.data),
                )
            });
            let mut log = sarif(env!("CARGO_PKG_VERSION"), results).to_string();
            log.push('\n');
            write_output(log.as_bytes(), output)?;
        }
    }
    answer
}

/// The answers of several kernels.
fn matrix_of(
    args: &Args,
    job: &Job<'_>,
    kernels: Vec<(String, Kernel)>,
    output: Option<OutputPath>,
) -> Result<Answer, Failure> {
    let one_only = [
        (args.cost.is_some(), "--cost"),
        (args.facts, "--facts"),
        (args.log.log > 0 || args.verbose || args.debug, "a log"),
        (args.compare.is_some(), "--compare"),
        (args.target.is_some(), "--target"),
        (args.html.is_some(), "--html"),
        (args.top.is_some(), "--top-n"),
        (!args.emit.is_empty(), "--emit"),
        (!args.sort.is_empty(), "--sort"),
        (args.format == VerifyFormat::Veristat, "--format veristat"),
        (args.format == VerifyFormat::Sarif, "--format sarif"),
    ];
    if let Some((_, what)) = one_only.iter().find(|(is_given, _)| *is_given) {
        let names = match args.diff.is_empty() {
            true => "--kernel names several",
            false => "--diff names two",
        };
        return Err(Failure::new(format_args!(
            "{what} is of one kernel, and {names}"
        )));
    }
    let kernels: Vec<NamedKernel> = kernels
        .into_iter()
        .map(|(name, kernel)| NamedKernel {
            name,
            kernel: match args.privileges {
                Some(privileges) => kernel.with_privileges(privileges, Source::Given),
                None => kernel,
            },
        })
        .collect();
    let described: Vec<Kernel> = kernels.iter().map(|named| named.kernel.clone()).collect();
    // A program is selected by what one of the kernels says of it.
    let is_selected = |program: &ProgramAnswers| {
        let mut rows = (0..kernels.len()).filter_map(|at| program.row(at));
        rows.any(|row| job.filters.keep_results(row))
    };
    let is_shown = |program: &ProgramAnswers| {
        is_selected(program) && (args.diff.is_empty() || matrix::changes(program))
    };
    let mut answers = run::verify_for(&args.files, job, &described, &is_shown)?;
    let mut failures = std::mem::take(&mut answers.failures);
    if failures.is_empty() {
        let named = answers.programs.iter();
        let results = Results {
            rows: named
                .map(|program| Row::empty(&program.file, &program.name))
                .collect(),
            left_out: std::mem::take(&mut answers.left_out),
            definable: std::mem::take(&mut answers.definable),
            ..Results::default()
        };
        failures = unselected(args, &results);
    }
    if !args.quiet {
        for named in &kernels {
            note_assumed(&named.kernel, FOR_VERIFYING, "verified");
        }
    }
    answers.programs.retain(|program| is_selected(program));
    let matrix = match args.diff.is_empty() {
        true => MatrixTable {
            kernels: &kernels,
            programs: answers.programs.iter().collect(),
            is_diff: false,
        },
        false => MatrixTable::of_changes(&kernels, &answers.programs),
    };
    match args.format {
        VerifyFormat::Text if answers.programs.is_empty() && !failures.is_empty() => {}
        VerifyFormat::Text => {
            let width = width_of(output);
            write_answer(AnswerFormat::Text, matrix.text(width), output)?;
        }
        VerifyFormat::Markdown => write_answer(AnswerFormat::Text, matrix.markdown(), output)?,
        VerifyFormat::Csv | VerifyFormat::Veristat | VerifyFormat::Sarif => {
            write_output(matrix::csv(&matrix).as_bytes(), output)?;
        }
        VerifyFormat::Json => {
            let lines: Vec<u8> = matrix::json(&matrix).iter().flat_map(json).collect();
            write_answer(AnswerFormat::Json, lines, output)?;
        }
    }
    if !args.diff.is_empty() && failures.is_empty() {
        return Ok(match matrix.programs.is_empty() {
            true => Answer::Yes,
            false => Answer::No,
        });
    }
    let is_refused = |cell: &Option<Cell>| {
        let row = cell.as_ref().map(|cell| &cell.row);
        row.is_some_and(|row| row.verdict == ResultVerdict::Failure)
    };
    let mut programs = answers.programs.iter();
    if args.explain && programs.any(|program| program.cells.iter().all(is_refused)) {
        let newest = kernels.last().map_or("6.18", |named| &named.name);
        note(format_args!(
            "what every kernel refuses is explained for one: --kernel {newest}"
        ));
    }
    let cells = answers
        .programs
        .into_iter()
        .flat_map(|program| program.cells);
    let rows: Vec<Row> = cells.flatten().map(|cell| cell.row).collect();
    answer(&rows, failures, None)
}

/// The two kernels of --diff.
fn compared(args: &Args) -> Result<Vec<(String, Kernel)>, Failure> {
    let kernels = args.kernel.read_listed(&args.diff)?;
    match kernels.len() {
        2 => Ok(kernels),
        count => Err(Failure::new(format_args!(
            "--diff {}: two kernels are compared, and it names {count}",
            args.diff.join(",")
        ))
        .hint("--diff 6.12,6.18")),
    }
}

/// The results in a file, without those of files and programs that the filters leave out.
fn read_results(path: &Path, filters: &Filters) -> Result<Vec<ResultRow>, Failure> {
    let mut rows = row::read_csv(path)?;
    // Filters have last parts of paths.
    let base = |name: &str| name.rsplit('/').next().unwrap_or(name).to_owned();
    rows.retain(|row| filters.keep(&base(&row.file_name), &row.prog_name));
    Ok(rows)
}

/// The most programs that a message lists.
const MOST_LISTED: usize = 12;

/// A failure for each name of --prog, --type, --attach and --define that none of the files has, or one
/// if names and filters leave out every program.
fn unselected(args: &Args, results: &Results<Failure>) -> Vec<Failure> {
    let listed = || {
        let found = results.rows.iter();
        let found = found.map(|row| format!("{}/{}", row.file_name, row.prog_name));
        let all: Vec<String> = found.chain(results.left_out.iter().cloned()).collect();
        let more = match all.len().saturating_sub(MOST_LISTED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let shown = &all[..all.len().min(MOST_LISTED)];
        format!("one of {}{more}", shown.join(", "))
    };
    let (rows, left_out) = (&results.rows, &results.left_out);
    let is_absent = |name: &&String| {
        let of_name = |program: &String| program.rsplit('/').next() == Some(name.as_str());
        !rows.iter().any(|row| row.prog_name == **name) && !left_out.iter().any(of_name)
    };
    let loading = args.loading.read().unwrap_or_default();
    let named: Vec<String> = loading.named_programs().map(str::to_owned).collect();
    let absent = args.prog.iter().chain(&named).filter(is_absent);
    let absent = absent.map(|name| Failure::new(format_args!("no program is called {name:?}")));
    let mut failures: Vec<Failure> = absent.map(|failure| failure.hint(listed())).collect();
    let mut defines = loading.defines.iter().map(|(name, _)| name);
    if let Some(name) = defines.find(|name| !results.definable.contains(*name)) {
        let known = results.definable.clone();
        let error = Error::new(ExternFault::NotUndefined { known }).about(name);
        failures.push(Failure::new(error));
    }
    if failures.is_empty() && rows.is_empty() && !left_out.is_empty() {
        failures.push(selects_nothing(args).hint(listed()));
    }
    failures
}

/// Failure if `-j N` is written for `-J N`.
fn number_of_jobs(args: &Args) -> Option<Failure> {
    let mut files = args.files.iter().filter(|_| args.json);
    let number = files.find(|file| {
        let is_number = file
            .to_str()
            .is_some_and(|word| word.parse::<u16>().is_ok());
        is_number && !file.exists()
    })?;
    let number = number.display();
    let failure = Failure::new(format_args!(
        "no file {number}: -j is --json, and takes no number"
    ));
    Some(failure.hint(format_args!(
        "-J {number}, so many programs at the same time"
    )))
}

/// Number of threads: those that are asked for, else one, and of several kernels the processors, since
/// nothing is printed before all have answered.
fn threads(args: &Args) -> usize {
    let is_matrix = args.kernel.is_list() || !args.diff.is_empty();
    match args.jobs {
        Some(jobs) => jobs.into(),
        None if is_matrix => thread::available_parallelism().map_or(1, usize::from),
        None => 1,
    }
}

/// Failure of names and filters that leave no program.
fn selects_nothing(args: &Args) -> Failure {
    let filters = args.filter.iter().map(|filter| format!("-f {filter:?}"));
    let names = args.prog.iter().map(|name| format!("--prog {name}"));
    let words: Vec<String> = names.chain(filters).collect();
    Failure::new(format_args!("{}: selects no program", words.join(" ")))
}

/// A failure for each recorded answer that is not ours.
fn unlike_recorded(row: &Row) -> impl Iterator<Item = Failure> + '_ {
    let differ = row.recorded.iter().filter(|answer| answer.differs());
    differ.map(|answer| Failure::new(answer).within(&row.file_name))
}

/// The answer for all: files that cannot be opened come before programs that are
/// refused, and those before unsupported programs. `rules` names a kernel that has those of the release.
fn answer(rows: &[Row], failures: Vec<Failure>, rules: Option<String>) -> Result<Answer, Failure> {
    let mut failures = failures.into_iter();
    if let Some(last) = failures.next_back() {
        for failure in failures {
            failure.report();
        }
        return Err(last);
    }
    let count = |verdict: ResultVerdict| rows.iter().filter(|row| row.verdict == verdict).count();
    if count(ResultVerdict::Failure) > 0 {
        return Ok(Answer::No);
    }
    let is_unsupported = |row: &&Row| row.verdict == ResultVerdict::Unsupported;
    let Some(first) = rows.iter().find(is_unsupported) else {
        return Ok(Answer::Yes);
    };
    let (file, program) = (&first.file_name, &first.prog_name);
    let reason = first.reason.lines().next().unwrap_or_default();
    let failure = match count(ResultVerdict::Unsupported) {
        1 => Failure::new(format_args!("{file}/{program}: unsupported: {reason}")),
        many => Failure::new(format_args!(
            "{many} programs are unsupported, first {file}/{program}: {reason}"
        )),
    };
    Err(match rows.iter().any(|row| row.prog_type == UNTYPED) {
        true => failure.hint(SET_TYPE),
        false => match rules {
            Some(rules) => failure.hint(rules),
            None => failure,
        },
    })
}
