//! Tests of the crate, in one executable.

mod attach;
mod conformance;
mod embed;
mod engines;
mod errors;
mod expect;
mod fuzz;
mod host;
mod instance;
mod instance_objects;
mod jobs;
mod kernel_image;
mod kfuncs;
mod light_skeleton;
mod limits;
mod loader;
mod matrix;
mod pages;
mod sockets;
mod support;
mod unwritten_stack;
mod verify_kernel_types;
mod verify_log;
mod walk;

// They compare with the running kernel, which is asked on Linux only.
#[cfg(target_os = "linux")]
mod arenas;
#[cfg(target_os = "linux")]
mod bits;
#[cfg(target_os = "linux")]
mod context_fields;
#[cfg(target_os = "linux")]
mod explain;
#[cfg(target_os = "linux")]
mod explain_edits;
#[cfg(target_os = "linux")]
mod pointers;
#[cfg(target_os = "linux")]
mod run_data;
#[cfg(target_os = "linux")]
mod run_kernel;
#[cfg(target_os = "linux")]
mod run_types;
#[cfg(target_os = "linux")]
mod tail_calls;
#[cfg(target_os = "linux")]
mod test_run_options;
#[cfg(target_os = "linux")]
mod timers;
#[cfg(target_os = "linux")]
mod user_records;
#[cfg(target_os = "linux")]
mod xdp_sockets;

fn main() -> std::process::ExitCode {
    oracle::main()
}
