//! Tests of the crate, in one executable.

mod address_independence;
mod btf;
mod cases;
mod committed;
mod ebpf;
mod execution;
mod helpers;
mod helpers_page;
mod insn_facts;
mod kernel;
mod kfunc_traps;
mod kfuncs;
mod libpcap;
mod live_code;
mod liveness;
mod loaders;
mod log_form;
mod maps;
mod minimal_btf;
mod native;
mod numbers;
mod objects;
mod packet_fusions;
mod precision;
mod printk;
mod profiles;
mod refusals_page;
mod registry;
mod since;
mod slots;
mod sockets;
mod soundness;
mod support;
mod system_calls;
mod tail_call_model;
mod tail_call_stress;
mod tail_calls;
mod unwritten_stack;
mod verifier;
mod verifier_cases;
mod verifier_programs;

fn main() -> std::process::ExitCode {
    oracle::main()
}
