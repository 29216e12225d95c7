//! The commands: `compare` makes one comparison whole, mostly for the table of a page; `soak`
//! compares generated programs from a seed on, until a number or a time is reached.

mod booted;
mod execution;
mod gateway;
mod generated;
mod guest;
mod loaders;
mod models;
mod objects;
mod runs;
mod soak;
mod tail_calls;
mod verifier;

use std::error::Error;
use std::fs;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use spec::kernel::Privileges;

use loaders::LoaderSelection;
use objects::ObjectSelection;
use verifier::LogSelection;
use verifier::selftests::Selection;

/// Result of a command.
type Outcome<T = ()> = Result<T, Box<dyn Error>>;

/// Compare Beebox with the running kernel, with libbpf, and its engines with each other
///
/// What asks the kernel needs root on Linux 6.18. Exit code 1: answers differ, or could not be
/// had. Long comparisons are best compiled with --release.
#[derive(Parser)]
#[command(name = "differential", bin_name = "cargo differential")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Make a comparison whole, and write the table of its page
    #[command(subcommand)]
    Compare(Comparison),
    /// Compare generated programs, for long
    #[command(subcommand)]
    Soak(Soak),
    /// Write the page about what changed from one release to another: programs of the kernel's tests whose
    /// recorded answers differ, by what decides it (needs the selftests, and both kernels described)
    Drift {
        /// The release before, as 6.12.117
        old: String,
        /// The release after, as 6.18.15
        new: String,
    },
    /// Run a command of this program inside Debian's Linux 6.18 (needs tools/kernels/vm, the
    /// selftests, and the Rust target x86_64-unknown-linux-musl)
    ///
    /// Tables go to the parts of the page that are about that kernel.
    Guest {
        /// The command, such as: compare messages --types tracing,lsm
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    },
    /// Write the registry of the running kernel: what it answers about helpers, contexts and kfuncs
    ///
    /// In the kernel of `tools/kernels/vm run 6.18` it is a part of what `cargo xtask kernel-data
    /// DIRECTORY` makes the built-in data of (CONTRIBUTING.md).
    Registry {
        /// The file
        file: PathBuf,
    },
}

/// Comparisons by name.
#[derive(Subcommand)]
enum Comparison {
    /// Classic programs beside the running kernel: docs/classic-oracle.md and the kept answers
    Classic,
    /// eBPF programs in every engine and the running kernel: docs/ebpf-oracle.md
    Ebpf {
        /// Programs for the engines
        #[arg(default_value_t = generated::ENGINE_PROGRAMS)]
        programs: u64,
    },
    /// Blobs of types beside the running kernel: docs/btf-oracle.md
    Btf,
    /// Results of helpers, error numbers, packets and contexts beside the running kernel
    Helpers(Families),
    /// The same of kfuncs
    Kfuncs(Families),
    /// What cilium/ebpf, aya and libbpf 0.8 parse of objects: a table of docs/loaders.md (needs
    /// tools/loaders/build)
    Loaders(LoaderSelection),
    /// Creation of maps and operations on each kind beside the running kernel
    Maps {
        /// Operations on each kind
        #[arg(default_value_t = generated::MAP_OPERATIONS)]
        operations: u64,
    },
    /// The verifier's numeric domain beside the running kernel's logs
    Numbers {
        /// Values
        #[arg(default_value_t = generated::NUMBER_CASES)]
        cases: u64,
    },
    /// Objects of the kernel's tests beside libbpf: docs/loading.md (needs the selftests)
    Objects(ObjectSelection),
    /// Tests of tail calls of the kernel: a table of docs/tail-calls.md (needs the selftests)
    TailCalls,
    /// The built-in registry beside the running kernel: a table of docs/verifier.md
    Registry,
    /// Whole logs of the kernel's tests: a table of docs/verifier.md (needs the selftests)
    Log(LogSelection),
    /// Messages that the kernel's tests expect in the log: a table of docs/verifier.md (needs the
    /// selftests)
    Messages(Selection),
    /// Answers for kernels that `tools/kernels/vm describe` described, beside those that they gave: a
    /// table of docs/kernels.md (needs the selftests)
    Kernels {
        /// Kernels by the names that `tools/kernels/vm` has for them; without names all that are
        /// described, and the page is written
        names: Vec<String>,
        /// Objects whose name has this text
        #[arg(long, value_name = "TEXT")]
        only: Option<String>,
        /// Name every program that is not answered
        #[arg(long)]
        list: bool,
    },
    /// The objects of this repository in kernels that `tools/kernels/vm` keeps, booted for `beebox ask` (needs
    /// QEMU; says what is absent)
    Booted {
        /// Kernels by the names that `tools/kernels/vm` has for them; without names all that are kept
        names: Vec<String>,
    },
    /// Programs whose recorded answers each behaviour decides, on both sides of it (needs the selftests, and
    /// the kernels described); `compare kernels` has them in its table
    Behaviours,
    /// The answers of kernels to crates/testkit/cases/kernels, written into these and compared with ours, and
    /// to kernels-open beside them, where they differ (needs the kernels; without names all)
    Cases {
        /// Kernels by the names that `tools/kernels/vm` has for them; without names all that are described
        names: Vec<String>,
    },
    /// Instructions left by dead code removal: a table of docs/verifier.md (needs the selftests)
    LiveCode(Selection),
    /// Tools attached in Debian's Linux 6.18, beside runs in a model that is given the same values (needs
    /// QEMU, gcc and the libbpf of tools/selftests/build)
    Models,
    /// Logs of Linux 7.3.4 with its reports, beside ours (needs the selftests)
    Reports {
        /// The description of that kernel, if it is not the kept one
        directory: Option<PathBuf>,
        /// Objects whose name has this text
        #[arg(long, value_name = "TEXT")]
        only: Option<String>,
    },
    /// Test runs of the kernel's tests: a table of docs/helpers.md (needs the selftests)
    Runs(Selection),
    /// Verdicts of Debian's Linux 6.18 on the kernel's tests, beside those for the built-in kernel and
    /// for its files in a directory: a table of docs/verifier.md (needs the selftests)
    Trampolines {
        /// The directory, with vmlinux.btf, config, kernel.release and System.map; without it the
        /// page is not written
        directory: Option<PathBuf>,
    },
    /// Verdicts for callers without capabilities: a table of docs/verifier.md (needs the
    /// selftests)
    Unprivileged(Selection),
    /// Verdicts of the kernel's tests beside recorded answers: a table of docs/verifier.md
    /// (needs the selftests)
    Verifier(Selection),
}

/// Families of programs that call helpers or kfuncs.
#[derive(Args)]
struct Families {
    /// Programs of each family
    #[arg(default_value_t = generated::HELPER_PROGRAMS)]
    programs: u64,
    /// Families whose name has this text
    #[arg(long, value_name = "TEXT", default_value = "")]
    only: String,
}

/// Soaks by name.
#[derive(Subcommand)]
enum Soak {
    /// Programs with maps as native code, with and without each pass, and in the checked engine
    Execution {
        /// Programs
        #[arg(default_value_t = 100_000)]
        programs: u64,
        /// First seed
        #[arg(default_value_t = 0)]
        seed: u64,
        /// Of so many programs, one runs in the kernel too
        #[arg(default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..))]
        witnessed: u64,
    },
    /// Random rules and packets: the gateway here and in the kernel, by the definition and nftables
    Gateway {
        /// Sets of rules
        #[arg(default_value_t = 1_000)]
        sets: u64,
        /// Packets of each set
        #[arg(default_value_t = 10_000)]
        packets: u64,
    },
    /// Runs of accepted programs, held to the states and facts of their verification
    ///
    /// Without numbers 10,000 generated programs and those of the kernel's tests, for the tables
    /// in docs/verifier.md.
    Soundness {
        /// Programs
        programs: Option<u64>,
        /// First seed
        #[arg(default_value_t = 0)]
        seed: u64,
    },
    /// Programs that call each other on 2 and 8 threads, while 2 threads change the targets
    TailCalls {
        /// Time in seconds
        #[arg(long, value_name = "N", default_value_t = 600)]
        seconds: u64,
    },
    /// Verdict, counts and last line of generated programs beside the running kernel's verifier
    Verifier(Limits),
    /// The same of programs of the selftests and of our own with one instruction changed
    Mutations {
        #[command(flatten)]
        limits: Limits,
        /// Programs of the objects (`*.bpf.o`) in this directory, in place of the selftests
        #[arg(long, value_name = "DIRECTORY")]
        objects: Option<PathBuf>,
        #[command(flatten)]
        selection: Selection,
    },
    /// Both beside kernels that `tools/kernels/vm` keeps and described, booted under QEMU (no root), with each
    /// difference reduced to a case
    Kernels(soak::KernelSoak),
    /// The verifier's answers to calls of every kfunc in programs of every type
    Kfuncs {
        /// Programs of each
        #[arg(default_value_t = 10)]
        rounds: u64,
        /// First seed
        #[arg(default_value_t = 0)]
        seed: u64,
    },
    /// Print the program that is generated from a seed, as a case
    Program {
        /// The seed
        seed: u64,
    },
}

/// Limits of a comparison of verifiers.
#[derive(Args)]
struct Limits {
    /// Programs to compare [default: 200000, or as many as the time allows]
    programs: Option<u64>,
    /// First seed
    #[arg(default_value_t = 0)]
    seed: u64,
    /// Time in seconds
    #[arg(long, value_name = "N")]
    seconds: Option<u64>,
    /// Capabilities of the caller: all, none, or a list such as bpf,net_admin
    #[arg(long, value_name = "LIST", default_value = "all")]
    privileges: Privileges,
}

impl Arguments {
    /// Runs the command.
    pub(crate) fn run(self) -> Outcome {
        match self.command {
            Command::Compare(comparison) => comparison.run(),
            Command::Soak(soak) => soak.run(),
            Command::Registry { file } => {
                let built = beebox_differential::registry::build::build()?;
                for line in &built.not_asked {
                    println!("not asked: {line}");
                }
                Ok(fs::write(
                    file,
                    spec::registry::text::write(&built.registry),
                )?)
            }
            Command::Drift { old, new } => verifier::write_drift(&old, &new),
            Command::Guest { words } => guest::run(&words),
        }
    }
}

impl Comparison {
    fn run(self) -> Outcome {
        match self {
            Comparison::Classic => generated::compare_classic(),
            Comparison::Ebpf { programs } => generated::compare_ebpf(programs),
            Comparison::Btf => generated::compare_btf(),
            Comparison::Helpers(of) => generated::compare_helpers(of.programs, &of.only),
            Comparison::Kfuncs(of) => generated::compare_kfuncs(of.programs, &of.only),
            Comparison::Loaders(selection) => loaders::compare_loaders(selection),
            Comparison::Maps { operations } => generated::compare_maps(operations),
            Comparison::Numbers { cases } => generated::compare_numbers(cases),
            Comparison::Objects(selection) => objects::compare(selection),
            Comparison::TailCalls => tail_calls::compare_selftests(),
            Comparison::Kernels { names, only, list } => {
                verifier::compare_kernels(&names, only.as_deref(), list)
            }
            Comparison::Cases { names } => soak::record_cases(&names),
            Comparison::Booted { names } => booted::compare(&names),
            Comparison::Behaviours => verifier::search_sides(),
            Comparison::Registry => verifier::compare_registry(),
            Comparison::Log(selection) => verifier::compare_logs(selection),
            Comparison::Messages(selection) => verifier::compare_messages(selection),
            Comparison::LiveCode(selection) => verifier::compare_live_code(selection),
            Comparison::Models => models::compare(),
            Comparison::Reports { directory, only } => {
                verifier::compare_reports(directory.as_deref(), only.as_deref())
            }
            Comparison::Runs(selection) => runs::compare(selection),
            Comparison::Trampolines { directory } => {
                verifier::score_trampolines(directory.as_deref())
            }
            Comparison::Unprivileged(selection) => verifier::compare_unprivileged(selection),
            Comparison::Verifier(selection) => verifier::score(selection),
        }
    }
}

impl Soak {
    fn run(self) -> Outcome {
        match self {
            Soak::Execution {
                programs,
                seed,
                witnessed,
            } => execution::compare_runs(programs, seed, witnessed),
            Soak::Gateway { sets, packets } => gateway::compare(sets, packets),
            Soak::Soundness { programs, seed } => verifier::check_soundness(programs, seed),
            Soak::TailCalls { seconds } => tail_calls::change_targets(seconds),
            Soak::Verifier(limits) => soak::compare_verifiers(&limits),
            Soak::Mutations {
                limits,
                objects,
                selection,
            } => soak::compare_mutated(&limits, objects.as_deref(), selection),
            Soak::Kernels(kernels) => soak::compare_kernels(&kernels),
            Soak::Kfuncs { rounds, seed } => soak::compare_kfunc_calls(rounds, seed),
            Soak::Program { seed } => {
                let kernel = sys::kernel::running()?;
                let types = kernel.btf().ok_or("the running kernel has no BTF")?;
                print!("{}", testkit::verifier::generated_case(seed, types).1);
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::Arguments;

    #[test]
    fn arguments_are_consistent() {
        Arguments::command().debug_assert();
    }
}
