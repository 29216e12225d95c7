//! Tests of the crate, in one executable.

mod arenas;
mod bits;
mod conformance;
mod context_fields;
mod embed;
mod engines;
mod errors;
mod expect;
mod explain;
mod explain_edits;
mod host;
mod instance;
mod instance_objects;
mod jobs;
mod kernel_image;
mod kfuncs;
mod light_skeleton;
mod limits;
mod loader;
mod pages;
mod pointers;
mod run_data;
mod run_kernel;
mod run_types;
mod sockets;
mod support;
mod tail_calls;
mod test_run_options;
mod timers;
mod unwritten_stack;
mod user_records;
mod verify_kernel_types;
mod verify_log;
mod xdp_sockets;

fn main() -> std::process::ExitCode {
    oracle::main()
}
