//! Options that do nothing beside others, which are refused.
//!
//! Clap refuses pairs that exclude each other, and asks for an option that another needs, but not
//! where a third excludes it. What an option needs to act is in the table here, by the names of
//! clap's arguments.

use clap::ArgMatches;
use clap::parser::ValueSource;

use crate::answer::Failure;

/// Options of a command that act only if a condition holds.
struct Rule {
    /// The command, and the one below it.
    command: &'static str,
    needs: Needs,
    options: &'static [&'static [&'static str]],
}

/// A condition of the other arguments.
#[derive(Clone, Copy)]
enum Needs {
    /// This argument is given; the remedy.
    Given(&'static str, &'static str),
    /// This argument is not given.
    Absent(&'static str),
    /// This argument has this value; the remedy.
    Is(&'static str, &'static str, &'static str),
    /// This argument has another value.
    IsNot(&'static str, &'static str),
    /// No argument makes it act, since other commands share it; what the command does not do.
    Never(&'static str),
}

use Needs::{Absent, Given, Is, IsNot, Never};

/// Options of a kernel, those of [`KernelArgs`](crate::kernel_input::KernelArgs).
const KERNEL: &[&str] = &[
    "kernel",
    "btf",
    "reduced_btf",
    "kconfig",
    "kernel_version",
    "module_btf",
    "core_btf",
    "machine_memory",
    "feature",
    "host_functions",
];
/// Options of a kernel that decide about the creation of maps alone.
const CREATING_MAPS: &[&str] = &["machine_memory"];
const FORMAT: &[&str] = &["format", "json"];
/// Options of verification.
const VERIFYING: &[&str] = &[
    "kind",
    "prog",
    "privileges",
    "log",
    "verbose",
    "debug",
    "top_src_lines",
    "set",
    "flags",
    "jobs",
    "test_states",
    "test_reg_invariants",
    "test_tags",
];

const RULES: &[Rule] = &[
    Rule {
        command: "run",
        needs: Given("ebpf", "--ebpf, if FILE holds unverified instructions"),
        options: &[&[
            "trust",
            "memory",
            "registers",
            "gotox",
            "trace",
            "dump_mem",
            "form",
            "section",
        ]],
    },
    Rule {
        command: "run",
        needs: Absent("ebpf"),
        options: &[&["jobs", "share_maps"], KERNEL],
    },
    Rule {
        command: "run",
        needs: Given("pcap", "--pcap IN"),
        options: &[&["jobs", "share_maps"]],
    },
    Rule {
        command: "filter",
        needs: Absent("why"),
        options: &[&["output_format", "engine", "jobs", "snaplen", "perf"]],
    },
    Rule {
        command: "filter",
        needs: Absent("dump"),
        options: &[
            FORMAT,
            &[
                "output",
                "output_format",
                "merge",
                "count",
                "per_file",
                "limit",
                "engine",
                "jobs",
                "snaplen",
                "perf",
                "why",
                "list_linktypes",
            ],
        ],
    },
    Rule {
        command: "filter",
        needs: Absent("list_linktypes"),
        options: &[&[
            "output_format",
            "limit",
            "semantics",
            "engine",
            "jobs",
            "snaplen",
            "perf",
            "why",
            "no_optimize",
            "merge",
            "count",
            "per_file",
        ]],
    },
    Rule {
        command: "asm",
        needs: Given("expression", "-e EXPR"),
        options: &[&["no_optimize"]],
    },
    Rule {
        command: "dis",
        needs: Given("expression", "-e EXPR"),
        options: &[&["no_optimize"]],
    },
    Rule {
        command: "dis",
        needs: Given("jit", "--jit"),
        options: &[&["processor", "retpoline", "entry_slots"]],
    },
    Rule {
        command: "dis",
        needs: Given("xlated", "--xlated"),
        options: &[CREATING_MAPS],
    },
    Rule {
        command: "show",
        needs: Never("it creates no map"),
        options: &[CREATING_MAPS],
    },
    Rule {
        command: "gen min-core-btf",
        needs: Never("CO-RE relocations do not depend on it"),
        options: &[CREATING_MAPS, &["host_functions"]],
    },
    Rule {
        command: "kfuncs",
        needs: Never("it creates no map"),
        options: &[CREATING_MAPS],
    },
    Rule {
        command: "verify",
        needs: Absent("compare_files"),
        options: &[VERIFYING, &["compare"], KERNEL],
    },
    Rule {
        command: "verify",
        needs: Absent("replay"),
        options: &[VERIFYING, KERNEL],
    },
    Rule {
        command: "verify",
        needs: Absent("compare"),
        options: &[FORMAT, &["log", "verbose", "debug", "top_src_lines"]],
    },
    Rule {
        command: "verify",
        needs: IsNot("cost", "folded"),
        options: &[
            FORMAT,
            &[
                "explain",
                "facts",
                "log",
                "verbose",
                "debug",
                "top_src_lines",
                "emit",
                "compare",
            ],
        ],
    },
    Rule {
        command: "btf dump",
        needs: Is("format", "c", "--format c"),
        options: &[&["unsorted"]],
    },
    Rule {
        command: "kfuncs",
        needs: Absent("header"),
        options: &[FORMAT, KERNEL],
    },
    Rule {
        command: "seccomp table",
        needs: Absent("syscall"),
        options: &[&["all"]],
    },
    Rule {
        command: "gateway run",
        needs: Absent("per_packet"),
        options: &[&["top"]],
    },
    Rule {
        command: "gateway compile",
        needs: Absent("no_analysis"),
        options: &[&["budget"]],
    },
];

/// Fails for an option that does nothing beside the others.
pub(crate) fn check(command: &clap::Command, matches: &ArgMatches) -> Result<(), Failure> {
    let (mut path, mut command, mut matches) = (String::new(), command, matches);
    while let Some((name, below)) = matches.subcommand() {
        if !path.is_empty() {
            path.push(' ');
        }
        path.push_str(name);
        let found = command.find_subcommand(name);
        command = found.expect("clap has parsed it");
        matches = below;
    }
    let rules = RULES.iter().filter(|rule| rule.command == path);
    for rule in rules {
        if rule.needs.hold(matches) {
            continue;
        }
        let mut options = rule.options.iter().copied().flatten();
        if let Some(option) = options.find(|option| is_given(matches, option)) {
            return Err(rule.needs.refusal(command, option));
        }
    }
    Ok(())
}

/// True if the command line has an argument.
fn is_given(matches: &ArgMatches, name: &str) -> bool {
    matches.value_source(name) == Some(ValueSource::CommandLine)
}

/// True if an argument has a value, given or by default.
fn has_value(matches: &ArgMatches, name: &str, value: &str) -> bool {
    let mut values = matches.get_raw(name).into_iter().flatten();
    values.any(|given| given == value)
}

impl Needs {
    fn hold(self, matches: &ArgMatches) -> bool {
        match self {
            Given(name, _) => is_given(matches, name),
            Absent(name) => !is_given(matches, name),
            Is(name, value, _) => has_value(matches, name, value),
            IsNot(name, value) => !has_value(matches, name, value),
            Never(_) => false,
        }
    }

    /// The refusal of an option of a command.
    fn refusal(self, command: &clap::Command, option: &str) -> Failure {
        let option = shown(command, option);
        match self {
            Given(name, remedy) => {
                let what = format_args!("{option} does nothing without {}", shown(command, name));
                Failure::new(what).hint(remedy)
            }
            Is(name, value, remedy) => {
                let needed = format!("{} {value}", shown(command, name));
                Failure::new(format_args!("{option} does nothing without {needed}")).hint(remedy)
            }
            Absent(name) => {
                let other = shown(command, name);
                let what = format_args!("{option} does nothing with {other}");
                Failure::new(what).hint(format_args!("no {option}, or no {other}"))
            }
            IsNot(name, value) => {
                let other = format!("{} {value}", shown(command, name));
                let what = format_args!("{option} does nothing with {other}");
                Failure::new(what).hint(format_args!("no {option}, or no {other}"))
            }
            Never(why) => {
                let name = command.get_name();
                let what = format_args!("{option} does nothing with {name}: {why}");
                Failure::new(what).hint(format_args!("no {option}"))
            }
        }
    }
}

/// The name of an argument as users write it.
fn shown(command: &clap::Command, name: &str) -> String {
    let argument = command.get_arguments().find(|arg| arg.get_id() == name);
    match argument.map(|arg| (arg.get_long(), arg.get_short())) {
        Some((Some(long), _)) => format!("--{long}"),
        Some((None, Some(short))) => format!("-{short}"),
        Some((None, None)) | None => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::kernel_input::KernelArgs;

    #[test]
    fn the_options_of_a_kernel_are_all() {
        let listed: Vec<String> = KERNEL.iter().map(|id| id.replace('_', "-")).collect();
        assert_eq!(listed, KernelArgs::options());
    }

    #[test]
    fn rules_name_commands_and_arguments() {
        let all = crate::Cli::command();
        for rule in RULES {
            let words = rule.command.split(' ');
            let command = words.fold(&all, |command, name| {
                let found = command.find_subcommand(name);
                found.unwrap_or_else(|| panic!("no command {}", rule.command))
            });
            let needed = match rule.needs {
                Given(name, _) | Absent(name) | Is(name, ..) | IsNot(name, _) => Some(name),
                Never(_) => None,
            };
            for name in rule.options.iter().copied().flatten().chain(&needed) {
                let mut arguments = command.get_arguments();
                assert!(
                    arguments.any(|arg| arg.get_id() == *name),
                    "{} has no {name}",
                    rule.command
                );
            }
        }
    }
}
