//! Tests of the crate, in one executable.

mod asm_dis;
mod attach;
mod bindings;
mod btf;
mod captures;
mod coverage;
mod debug;
mod documents;
mod files;
mod filter;
mod generate;
mod habits;
mod html;
mod json;
mod kernel_cases;
mod kernels;
mod kfuncs;
mod link;
mod loaders;
mod matrix;
mod mutate;
mod native_listing;
mod objects;
mod options;
mod outputs;
mod packaging;
mod perf;
mod releases;
mod remedies;
mod run;
mod run_expect;
mod run_kinds;
mod run_objects;
mod run_outputs;
mod run_why;
mod run_why_values;
mod seccomp;
mod several_files;
mod show_forms;
mod support;
mod tcpdump;
mod terminal;
mod test_files;
mod test_model;
mod verify;
mod vocabulary;

fn main() -> std::process::ExitCode {
    oracle::main()
}
