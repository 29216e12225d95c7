//! Options that do nothing beside others, by command.

use command::kernel_input::KERNEL;
use command::unused_options::{
    Needs::{Absent, Given, Is, IsNot, Never},
    Rule,
};

/// Options of a kernel that decide about the creation of maps alone.
const CREATING_MAPS: &[&str] = &["machine_memory"];
const FORMAT: &[&str] = &["format", "json"];
/// Options of verification.
const VERIFYING: &[&str] = &[
    "loader",
    "kinds",
    "attach",
    "define",
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

pub(crate) const RULES: &[Rule] = &[
    Rule {
        command: "run",
        needs: Given("pcap", "--pcap IN"),
        options: &[&["jobs", "share_maps", "output"]],
    },
    Rule {
        command: "debug",
        needs: Given("pcap", "--pcap IN"),
        options: &[&["from"]],
    },
    Rule {
        command: "exec",
        needs: Given("memory", "--mem SOURCE"),
        options: &[&["output", "dump_mem"]],
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
];

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn rules_name_commands_and_arguments() {
        command::unused_options::check_names(super::RULES, crate::Cli::command());
    }
}
