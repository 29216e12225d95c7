//! Tests of the crate, in one executable.

mod ebpf_asm;
mod ebpf_eval;
mod ebpf_linux;
mod ebpf_llvm;
mod ebpf_operands;
mod ebpf_properties;
mod ebpf_table;

fn main() -> std::process::ExitCode {
    oracle::main()
}
