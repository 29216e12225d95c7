//! Instructions and the source lines above them.

use std::fmt;

use btf::TypeId;
use isa::ebpf::{Callee, Insn};
use program::MapId;
use spec::maps::MapKind;

use super::Sink;
use crate::input::Input;

/// Bytes that the kernel writes at once.
const WRITE_LIMIT: usize = 1023;

/// Writes an instruction with its newline, such as `(bf) r2 = r10` (`verbose_insn`)
/// (`bpf_verbose_insn`).
#[doc(alias = "bpf_verbose_insn")]
pub(crate) fn verbose_insn(input: &Input<'_>, sink: &mut Sink<'_>, insn_idx: u32) {
    if !sink.is_on() {
        return;
    }
    let insn = insn_as_resolved(input, insn_idx);
    let names = |callee: Callee| callee_name(input, callee);
    sink.write(format_args!("{}\n", insn.kernel_form(&names)));
}

/// The text of an instruction (`print_bpf_insn`).
#[doc(alias = "print_bpf_insn")]
pub(crate) fn insn_text(input: &Input<'_>, insn_idx: u32) -> String {
    let names = |callee: Callee| callee_name(input, callee);
    insn_as_resolved(input, insn_idx)
        .kernel_form(&names)
        .to_string()
}

/// The instruction as the kernel has it after it resolved 64-bit immediates: loads of
/// maps and variables hold addresses. Ours are made up from the map's index or the BTF
/// id; those in an arena are those of user space. Callers who may not learn addresses see 0 for maps
/// and their values (`print_bpf_insn`).
fn insn_as_resolved(input: &Input<'_>, insn_idx: u32) -> Insn {
    use isa::ebpf::{Imm64, Value64};
    const MAPS: u64 = 0xffff_8880_0000_0000;
    const VALUES: u64 = 0xffff_c900_0000_0000;
    const SYMBOLS: u64 = 0xffff_ffff_8000_0000;
    let insn = input.insns[insn_idx as usize];
    let Insn::LoadImm64 { dst, imm } = insn else {
        return insn;
    };
    let address = match imm {
        Imm64::MapFd { .. }
        | Imm64::MapIndex { .. }
        | Imm64::MapValue { .. }
        | Imm64::MapIndexValue { .. }
            if !input.allow_ptr_leaks =>
        {
            0
        }
        Imm64::MapFd { fd: index, .. } | Imm64::MapIndex { index, .. } => {
            MAPS | (index as u32 as u64) << 12
        }
        Imm64::MapValue { fd: index, offset } | Imm64::MapIndexValue { index, offset } => {
            let arena = input.program.map(MapId(index as u32));
            let arena = arena.filter(|map| map.kind() == Some(MapKind::Arena));
            let start = match arena {
                Some(arena) => arena.params.arena_start(),
                None => VALUES | (index as u32 as u64) << 32,
            };
            start.wrapping_add_signed(offset.into())
        }
        Imm64::BtfId { id, .. } => SYMBOLS | (id as u32 as u64) << 4,
        Imm64::Value(_) | Imm64::Func { .. } => return insn,
    };
    Insn::LoadImm64 {
        dst,
        imm: Imm64::Value(Value64::new(address)),
    }
}

/// Name of what a call calls (`disasm_kfunc_name`).
#[doc(alias = "disasm_kfunc_name")]
fn callee_name<'e>(input: &'e Input<'_>, callee: Callee) -> Option<&'e str> {
    match callee {
        Callee::Helper(number) => spec::helpers::helper(number).map(|helper| helper.name),
        Callee::Kfunc { id, module: 0 } => {
            let kfunc = input.registry.kfunc(u32::try_from(id).ok()?)?;
            Some(&kfunc.name)
        }
        Callee::Kfunc { id, module } => {
            let module = usize::try_from(module).ok()?.checked_sub(1)?;
            let btf = &input.modules.get(module)?.btf;
            btf.get(TypeId(u32::try_from(id).ok()?))?.name().to_str()
        }
        Callee::Local(_) => None,
    }
}

/// Writes the source line of an instruction behind `prefix`, unless it was written last
/// (`verbose_linfo`, `find_linfo`).
#[doc(alias = "find_linfo")]
pub(crate) fn verbose_linfo(input: &Input<'_>, sink: &mut Sink<'_>, prefix: impl fmt::Display) {
    if !sink.is_on() {
        return;
    }
    let lines = input.program.line_info();
    let count = lines.partition_point(|line| line.insn <= sink.insn_idx);
    let Some(index) = count.checked_sub(1) else {
        return;
    };
    let last = sink.line_info;
    if last == Some(index as u32) {
        return;
    }
    let line = &lines[index];
    let is_repeated = last.is_some_and(|last| {
        let last = &lines[last as usize];
        last.file == line.file && last.line == line.line
    });
    let Some(btf) = input.program.btf().filter(|_| !is_repeated) else {
        return;
    };
    let text = btf.string(line.text);
    let text = text.as_bytes().trim_ascii_start();
    let text = String::from_utf8_lossy(&text[..text.len().min(WRITE_LIMIT)]);
    let path = btf.string(line.file);
    let path = path.to_string_lossy();
    let file = path.rsplit('/').next().unwrap_or_default();
    sink.write(format_args!("{prefix}{text} @ {file}:{}\n", line.line));
    sink.line_info = Some(index as u32);
}
