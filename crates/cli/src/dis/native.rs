//! The disassembler of native code, whose instructions the library lists beside those of a program.

use beebox::internal::listing::NativeInsn;
use iced_x86::{
    Decoder, DecoderOptions, Formatter, IntelFormatter, MemorySizeOptions, Mnemonic, OpKind,
};

/// The instructions of machine code that is at address 0.
pub(super) fn disassemble(code: &[u8]) -> Vec<NativeInsn> {
    let mut formatter = formatter();
    let decoder = Decoder::with_ip(64, code, 0, DecoderOptions::NONE).into_iter();
    let insns = decoder.map(|insn| {
        let mut text = String::new();
        formatter.format(&insn, &mut text);
        let is_branch = insn.op_count() == 1 && insn.op0_kind() == OpKind::NearBranch64;
        let refers = insn.is_ip_rel_memory_operand();
        NativeInsn {
            offset: insn.ip() as usize,
            len: insn.len(),
            text,
            is_call: insn.mnemonic() == Mnemonic::Call,
            refers_to: refers.then(|| insn.ip_rel_memory_address() as usize),
            branches_to: is_branch.then(|| insn.near_branch64() as usize),
        }
    });
    insns.collect()
}

/// Intel's syntax, in lower case, with numbers as eBPF's text has them.
fn formatter() -> IntelFormatter {
    let mut formatter = IntelFormatter::new();
    let options = formatter.options_mut();
    options.set_hex_prefix("0x");
    options.set_hex_suffix("");
    options.set_uppercase_hex(false);
    options.set_space_after_operand_separator(true);
    options.set_show_branch_size(false);
    options.set_branch_leading_zeros(false);
    options.set_memory_size_options(MemorySizeOptions::Minimal);
    formatter
}
