//! Writer of cases.

use std::fmt;
use std::sync::Arc;

use btf::Btf;
use isa::ebpf::{Insn, RawInsn, encode};
use spec::programs::LoadFlags;

use super::lexer::quoted;
use super::{Case, KernelAnswer, btf_text, map_text};
use crate::externs::{ExternResolution, ExternSymbol, ExternSymbolKind};
use crate::program::{LineInfo, Program};

pub(super) fn write(case: &Case, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    write_program(&case.program, &case.answers, f)
}

fn write_program(
    program: &Program,
    answers: &[KernelAnswer],
    f: &mut dyn fmt::Write,
) -> fmt::Result {
    head(program, f)?;
    for map in program.maps() {
        f.write_str(&map_text::write(map))?;
    }
    for failed in program.failed_relocations() {
        let [access, absence] =
            [&failed.access, &failed.absence].map(|text| quoted(text.as_bytes()));
        writeln!(f, ".lacks {} {access} {absence}", failed.insn)?;
    }
    for symbol in program.externs() {
        writeln!(f, ".extern {}", extern_words(symbol))?;
    }
    if let Some(btf) = program.btf() {
        f.write_str(&btf_text::write(btf))?;
    }
    for answer in answers {
        write_answer(answer, f)?;
    }
    insns(program, f)
}

fn head(program: &Program, f: &mut dyn fmt::Write) -> fmt::Result {
    if !program.name().is_empty() {
        writeln!(f, ".program {}", quoted(program.name().as_bytes()))?;
    }
    if !program.section().is_empty() {
        writeln!(f, ".section {}", quoted(program.section().as_bytes()))?;
    }
    writeln!(f, ".type {}", program.kind())?;
    if let Some(attach) = program.attach_type() {
        writeln!(f, ".attach_type {attach}")?;
    }
    if let Some(number) = program.expected_attach_type {
        writeln!(f, ".expected_attach_type {number}")?;
    }
    let flags = program.flags().0;
    if flags != 0 {
        f.write_str(".flags")?;
        let mut rest = flags;
        for (flag, name) in LoadFlags::ALL {
            if program.flags().has(*flag) {
                write!(f, " {name}")?;
                rest &= !flag.0;
            }
        }
        match rest {
            0 => writeln!(f)?,
            rest => writeln!(f, " {rest:#x}")?,
        }
    }
    writeln!(f, ".license {}", quoted(program.license().as_bytes()))?;
    if program.kernel_version() != 0 {
        writeln!(f, ".kernel_version {:#x}", program.kernel_version())?;
    }
    for module in program.modules() {
        writeln!(f, ".module {}", quoted(module.as_bytes()))?;
    }
    if let Some(target) = program.attach_target() {
        write!(
            f,
            ".attach btf_id={} module={}",
            target.btf_id, target.module
        )?;
        if let Some(member) = target.member {
            write!(f, " member={member}")?;
        }
        writeln!(f)?;
        if let Some(program) = &target.program {
            f.write_str(".target\n")?;
            let mut text = String::new();
            write_program(program, &[], &mut text)?;
            for line in text.lines() {
                writeln!(f, "    {line}")?;
            }
            f.write_str(".end\n")?;
        }
    }
    Ok(())
}

fn extern_words(symbol: &ExternSymbol) -> String {
    let (kind, of) = match symbol.kind {
        ExternSymbolKind::Kconfig => ("kconfig", 0),
        ExternSymbolKind::Address => ("address", 0),
        ExternSymbolKind::Variable(ty) => ("variable", ty.0),
        ExternSymbolKind::Kfunc(ty) => ("kfunc", ty.0),
    };
    let resolution = match symbol.resolution {
        ExternResolution::Missing => "missing".to_owned(),
        ExternResolution::Unknown => "unknown".to_owned(),
        ExternResolution::Kconfig => "kconfig".to_owned(),
        ExternResolution::Address(address) => format!("address {address:#x}"),
        ExternResolution::Btf { id, module } => format!("btf {id} {module}"),
    };
    let weak = if symbol.is_weak { " weak" } else { "" };
    let name = quoted(symbol.name.as_bytes());
    format!(
        "{name} {kind} {of} type_id={}{weak} {resolution}",
        symbol.type_id
    )
}

fn write_answer(answer: &KernelAnswer, f: &mut dyn fmt::Write) -> fmt::Result {
    let release = quoted(answer.release.as_bytes());
    match answer.errno {
        None => writeln!(f, ".kernel {release} accepted")?,
        Some(errno) => writeln!(f, ".kernel {release} refused {errno}")?,
    }
    for line in &answer.log {
        writeln!(f, "    .log {}", quoted(line.as_bytes()))?;
    }
    if let Some(returns) = answer.returns {
        writeln!(f, "    .return {returns}")?;
    }
    f.write_str(".end\n")
}

fn insns(program: &Program, f: &mut dyn fmt::Write) -> fmt::Result {
    let mut subprogs = program.subprogs().iter().peekable();
    let mut func_info = program.func_info().iter().peekable();
    let mut line_info = program.line_info().iter().peekable();
    let mut file = None;
    let mut is_written = false;
    for (at, (insn, raw)) in (0u32..).zip(program.decode().iter().zip(program.insns())) {
        // Index that the reader gives to a record here: a line of two slots counts as two.
        let next = at + u32::from(is_written);
        while let Some(subprog) = subprogs.next_if(|it| it.start <= at) {
            write_index(subprog.start, next, f)?;
            writeln!(f, ".subprog {}", quoted(subprog.name.as_bytes()))?;
        }
        while let Some(record) = func_info.next_if(|it| it.insn <= at) {
            write_index(record.insn, next, f)?;
            writeln!(f, ".func_info {}", record.type_id)?;
        }
        while let Some(record) = line_info.next_if(|it| it.insn <= at) {
            write_index(record.insn, next, f)?;
            line(program, record, &mut file, f)?;
        }
        if std::mem::replace(&mut is_written, false) {
            continue;
        }
        let second = program.insns().get(at as usize + 1);
        is_written = write_insn(*insn, *raw, second.copied(), f)?;
    }
    let at = program.insns().len() as u32;
    for record in func_info {
        write_index(record.insn, at, f)?;
        writeln!(f, ".func_info {}", record.type_id)?;
    }
    for record in line_info {
        write_index(record.insn, at, f)?;
        line(program, record, &mut file, f)?;
    }
    Ok(())
}

/// Writes `.at` if the record is not of the next instruction.
fn write_index(record: u32, next: u32, f: &mut dyn fmt::Write) -> fmt::Result {
    match record == next {
        true => Ok(()),
        false => writeln!(f, ".at {record}"),
    }
}

/// Writes a line_info record: with its texts, or with their offsets where the BTF has
/// none there.
fn line(
    program: &Program,
    record: &LineInfo,
    file: &mut Option<u32>,
    f: &mut dyn fmt::Write,
) -> fmt::Result {
    let LineInfo { line, column, .. } = record;
    let is_string =
        |btf: &&Arc<Btf<'static>>| (record.file.0.max(record.text.0) as usize) < btf.strings_end();
    let Some(btf) = program.btf().filter(is_string) else {
        let (file, text) = (record.file.0, record.text.0);
        return writeln!(f, ".line {line} {column} file={file} text={text}");
    };
    if *file != Some(record.file.0) {
        writeln!(f, ".file {}", quoted(btf.string(record.file).as_bytes()))?;
        *file = Some(record.file.0);
    }
    let text = quoted(btf.string(record.text).as_bytes());
    writeln!(f, ".line {line} {column} {text}")
}

/// Writes an instruction; returns true if it wrote the second slot of a 64-bit load too.
fn write_insn(
    insn: Insn,
    raw: RawInsn,
    second: Option<RawInsn>,
    f: &mut dyn fmt::Write,
) -> Result<bool, fmt::Error> {
    let is_wide = matches!(insn, Insn::LoadImm64 { .. });
    let slots: &[Insn] = match is_wide {
        true => &[insn, Insn::Imm64High],
        false => &[insn],
    };
    let exact = encode(slots).is_ok_and(|slots| {
        slots[0] == raw && slots.get(1).is_none_or(|slot| Some(*slot) == second)
    });
    if exact && !matches!(insn, Insn::Imm64High) {
        writeln!(f, "    {insn}")?;
        return Ok(is_wide);
    }
    let bits = u64::from_le_bytes(raw.to_le_bytes());
    writeln!(f, "    .8byte {bits:#x}")?;
    Ok(false)
}
