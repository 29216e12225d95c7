//! `beebox verify`.

mod compare;
mod cost;
mod recorded;
mod row;
mod run;
mod single;
mod spec;
mod table;

use std::path::PathBuf;

use ::spec::programs::{LoadFlags, ProgramType};
use beebox::verify::Options;

use crate::answer::{Answer, Failure};
use crate::kernel_input::{FOR_VERIFYING, KernelArgs, assumed};
use crate::program_output::{print, write_output};
use row::{Row, Verdict};
use spec::{Emit, Filters};

/// Verify BPF programs as Linux 6.18 does
///
/// Every program of the objects is loaded alone, as libbpf loads it when nothing else
/// is wanted, and verified: accepted, or refused with the kernel's reason. What a
/// program uses that cannot be judged yet is `unsupported`, never a verdict. No kernel
/// and no root is needed. A text case (`beebox dis --format case`) is one program; with
/// --type so are instructions alone. Answers of kernels that a case records are compared
/// with ours.
#[derive(clap::Args)]
#[command(
    arg_required_else_help = true,
    after_help = "\
Exit codes: 0 all accepted, 1 a program is refused, 2 a program could not be judged,
a file could not be read, or an answer recorded in a case is not ours.

Examples:
  beebox verify prog.bpf.o                        a line for each program
  beebox verify prog.bpf.o --prog handle --log 1  why it is refused
  beebox verify *.o --format csv > new.csv        veristat's columns, and the reason
  beebox verify *.o --compare old.csv             what changed
  beebox verify *.o -e file,prog,insns -s insns -n 10
  beebox verify -C old.csv new.csv                compare two files of results
  beebox verify found.case                        a program as text
  beebox verify --type xdp prog.s                 instructions alone"
)]
pub(crate) struct Args {
    /// Objects, text cases, or with --type instructions; with -C two files of results,
    /// with -R one
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    /// Read files that are neither objects nor cases as the instructions of a program of
    /// this type: bytes, bytes in hexadecimal, or text in LLVM's assembly language
    #[arg(long = "type", value_name = "TYPE", value_parser = program_type)]
    kind: Option<ProgramType>,

    /// Only programs of this name
    #[arg(long, value_name = "NAME")]
    prog: Vec<String>,

    #[command(flatten)]
    kernel: KernelArgs,

    /// Bits of the kernel's log level: 1 the path that leads to the refusal, 2 every
    /// instruction, 4 statistics
    #[arg(short = 'l', long = "log", value_name = "LEVEL", default_value_t = 0)]
    log: u32,

    /// What verification costs: instructions processed and states by function and source
    /// line, worst first (table and json)
    #[arg(long, conflicts_with_all = ["compare", "compare_files", "replay"])]
    cost: bool,

    /// How to print the results
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    format: Format,

    /// Print what differs from these results (CSV of veristat or of this command)
    #[arg(long, value_name = "OLD.csv")]
    compare: Option<PathBuf>,

    /// Compare two files of results
    #[arg(short = 'C')]
    compare_files: bool,

    /// Print a file of results again
    #[arg(short = 'R', conflicts_with = "compare_files")]
    replay: bool,

    /// Columns to print, by veristat's names
    #[arg(short = 'e', long, value_name = "SPEC")]
    emit: Vec<String>,

    /// Columns to sort by; `^` behind a name ascends, `v` descends
    #[arg(short = 's', long, value_name = "SPEC")]
    sort: Vec<String>,

    /// FILE/PROG globs, with `!` to leave out, or conditions such as `insns>=1000`
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

    /// Set a global variable before loading, as `NAME = VALUE`
    #[arg(short = 'G', long = "set-global-vars", value_name = "GLOBAL")]
    globals: Vec<String>,

    /// Load flags (BPF_F_*) of every program, as a number
    #[arg(long, value_name = "BITS", value_parser = number)]
    flags: Option<u32>,

    /// Load flags that test_prog_flags declaration tags ask for, as the kernel's
    /// selftests have them
    #[arg(long)]
    test_flags: bool,

    /// Verify so many programs at the same time
    #[arg(short = 'j', long, value_name = "N", default_value_t = 1)]
    jobs: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// Columns for people
    Table,
    /// veristat's sixteen columns, the reason and the duration
    Csv,
    /// One record for each program
    Json,
    /// What `veristat -C` reads: its columns only, no program that is unsupported
    Veristat,
}

fn number(text: &str) -> Result<u32, String> {
    let parsed = match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16),
        None => text.parse(),
    };
    parsed.map_err(|error| error.to_string())
}

fn program_type(name: &str) -> Result<ProgramType, String> {
    ProgramType::from_name(name).ok_or_else(|| {
        let names: Vec<&str> = ProgramType::ALL.iter().map(|kind| kind.name()).collect();
        format!("expected one of {}", names.join(", "))
    })
}

pub(crate) fn run(args: Args) -> Result<Answer, Failure> {
    let filters = Filters::read(&args.filter)?;
    let emit = Emit::read(&args.emit, &args.sort)?;
    if args.compare_files {
        let [old, new] = &args.files[..] else {
            return Err(Failure::new("-C compares two files of results"));
        };
        let (old, new) = (row::read_csv(old)?, row::read_csv(new)?);
        let text = compare::table(&old, &new, &emit);
        print(&text)?;
        return Ok(Answer::Yes);
    }
    if args.cost && matches!(args.format, Format::Csv | Format::Veristat) {
        return Err(Failure::new("--cost is printed as table or json"));
    }
    let mut failures = Vec::new();
    let mut rows = if args.replay {
        let [file] = &args.files[..] else {
            return Err(Failure::new("-R prints one file of results"));
        };
        row::read_csv(file)?
    } else {
        let flags = LoadFlags(
            args.flags.unwrap_or(0)
                | u32::from(args.test_states) << 3
                | u32::from(args.test_reg_invariants) << 7,
        );
        let job = run::Job {
            files: &args.files,
            programs: &args.prog,
            filters: &filters,
            rules: beebox::verify::LoadRules {
                flags,
                test_flags: args.test_flags,
            },
            options: Options {
                log_level: args.log,
                collect_cost: args.cost,
                ..Options::default()
            },
            kind: args.kind,
            globals: run::globals(&args.globals)?,
            threads: args.jobs.max(1),
        };
        let kernel = args.kernel.read()?;
        let results = run::verify(&job, &kernel)?;
        if let Some(note) = assumed(&kernel, FOR_VERIFYING) {
            eprintln!("beebox: verified for {}, {note}", kernel.name());
        }
        failures = results.failures;
        failures.extend(results.rows.iter().flat_map(recorded::differences));
        failures.extend(absent_programs(
            &args.prog,
            &results.rows,
            failures.is_empty(),
        ));
        results.rows
    };
    rows.retain(|row| filters.keep_results(row));
    emit.sort(&mut rows);
    let answer = answer(&rows, failures);
    if let Some(top) = args.top {
        rows.truncate(top);
    }
    if let Some(old) = &args.compare {
        let text = compare::table(&row::read_csv(old)?, &rows, &emit);
        print(&text)?;
        return answer;
    }
    match args.format {
        Format::Table if rows.is_empty() && answer.is_err() => {}
        Format::Table => print(&table::table(&rows, &emit))?,
        Format::Csv => write_output(row::csv(&rows, &emit, true).as_bytes(), None)?,
        Format::Veristat => write_output(row::csv(&rows, &emit, false).as_bytes(), None)?,
        Format::Json => {
            let lines: Vec<u8> = rows.iter().flat_map(row::json).collect();
            write_output(&lines, None)?;
        }
    }
    answer
}

/// A failure for each program that was asked for by name and is in none of the files, if
/// all of these were read.
fn absent_programs(names: &[String], rows: &[Row], all_read: bool) -> Vec<Failure> {
    let is_absent = |name: &&String| all_read && !rows.iter().any(|row| row.prog_name == **name);
    let absent = names.iter().filter(is_absent);
    absent
        .map(|name| {
            Failure::new(format_args!("no program is called {name:?}"))
                .hint("`beebox show FILE.o` lists the programs of an object")
        })
        .collect()
}

/// The answer for all: files that cannot be opened come before programs that are
/// refused, and those before programs that are not judged.
fn answer(rows: &[Row], failures: Vec<Failure>) -> Result<Answer, Failure> {
    let mut failures = failures.into_iter();
    if let Some(last) = failures.next_back() {
        for failure in failures {
            failure.report();
        }
        return Err(last);
    }
    let count = |verdict: Verdict| rows.iter().filter(|row| row.verdict == verdict).count();
    if count(Verdict::Failure) > 0 {
        return Ok(Answer::No);
    }
    match count(Verdict::Unsupported) {
        0 => Ok(Answer::Yes),
        1 => Err(Failure::new("a program could not be judged")),
        many => Err(Failure::new(format_args!(
            "{many} programs could not be judged"
        ))),
    }
}
