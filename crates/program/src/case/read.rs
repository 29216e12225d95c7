//! Parser of cases.
//!
//! One pass over the lines. Instructions are collected and assembled as a whole, so that
//! labels work across directives; a record of the next instruction takes its index from
//! the count of the statements before it. A `.target` starts a reader of its own; at most
//! [`MAX_TARGETS`] are nested.

use std::sync::Arc;

use btf::{Btf, Builder, StrOffset, TypeId};
use isa::ebpf::{AsmProblem, RawInsn, assemble, encode};
use spec::programs::{AttachType, LoadFlags, ProgramType};

use super::lexer::Words;
use super::{Case, CaseError, CaseProblem, KernelAnswer, btf_text, map_text};
use crate::builder::MAX_TARGETS;
use crate::externs::{ExternResolution, ExternSymbol, ExternSymbolKind};
use crate::map_def::MapDef;
use crate::program::{AttachTarget, FailedRelocation, FuncInfo, LineInfo, Program, Subprog};

pub(super) fn read(text: &str) -> Result<Case, CaseError> {
    let mut reader = Reader::default();
    // Readers of the programs around a `.target`, the outermost first.
    let mut outer = Vec::new();
    for (line, text) in (1..).zip(text.lines()) {
        let mut words = Words::of(line, text);
        match reader.block {
            Block::None if reader.opens_target(text, &mut words)? => {
                if outer.len() == MAX_TARGETS {
                    return Err(words.fault(CaseProblem::NestedTargets));
                }
                outer.push(std::mem::replace(&mut reader, Reader::of_target(line)));
            }
            Block::None if !outer.is_empty() && first_word(text) == Some(".end") => {
                words.word();
                words.end()?;
                let around = outer.pop().unwrap_or_default();
                let target = std::mem::replace(&mut reader, around);
                reader.end_target(line, target)?;
            }
            _ => reader.line(line, text)?,
        }
    }
    match outer.is_empty() {
        true => reader.finish(),
        false => Err(CaseError {
            line: 0,
            problem: CaseProblem::Unended(".target"),
        }),
    }
}

fn first_word(text: &str) -> Option<&str> {
    text.split_whitespace().next()
}

/// Block that is being read.
#[derive(Default)]
enum Block {
    #[default]
    None,
    Map(Box<map_text::Open>),
    Btf(Box<btf_text::Types>),
    BtfBytes(Vec<u8>),
    Answer(KernelAnswer),
}

/// line_info record whose texts are not yet in the BTF.
struct Line {
    insn: u32,
    line: u32,
    column: u32,
    texts: LineTexts,
}

/// File name and text of a line_info record.
enum LineTexts {
    /// Both as texts.
    Bytes { file: Vec<u8>, text: Vec<u8> },
    /// Both as offsets into the strings of the BTF.
    Offsets { file: StrOffset, text: StrOffset },
}

#[derive(Default)]
struct Reader {
    /// Line of the `.target` that the program is in; 0 outside.
    target_line: usize,
    block: Block,
    /// Instructions, each on its line of the case; other lines are empty.
    source: String,
    /// Number of instruction slots so far.
    count: u32,
    /// Index of the instruction of the next record, if stated by `.at`.
    at: Option<u32>,
    name: String,
    section: String,
    kind: Option<ProgramType>,
    attach_type: Option<AttachType>,
    expected_attach_type: Option<u32>,
    flags: LoadFlags,
    license: String,
    kernel_version: u32,
    modules: Vec<String>,
    target: Option<AttachTarget>,
    has_target_program: bool,
    maps: Vec<Arc<MapDef>>,
    externs: Vec<ExternSymbol>,
    btf: Option<Builder>,
    subprogs: Vec<Subprog>,
    func_info: Vec<FuncInfo>,
    failed_relocations: Vec<FailedRelocation>,
    file: Vec<u8>,
    lines: Vec<Line>,
    answers: Vec<KernelAnswer>,
}

impl Reader {
    /// Reader of the program in the block `.target` that starts on this line.
    fn of_target(line: usize) -> Reader {
        Reader {
            target_line: line,
            ..Reader::default()
        }
    }

    /// True if the line opens the block of the program's target.
    fn opens_target(&self, text: &str, words: &mut Words<'_>) -> Result<bool, CaseError> {
        if first_word(text) != Some(".target") {
            return Ok(false);
        }
        if self.has_target_program {
            return Err(words.unexpected("one .target of a program"));
        }
        words.word();
        words.end()?;
        Ok(true)
    }

    /// Sets the target program, whose block ends on this line.
    fn end_target(&mut self, line: usize, target: Reader) -> Result<(), CaseError> {
        // Errors of the assembler count the lines of the block too.
        let lines = target.target_line..=line;
        self.source.extend(lines.map(|_| '\n'));
        let program = target.finish()?.program;
        self.target.get_or_insert_default().program = Some(Arc::new(program));
        self.has_target_program = true;
        Ok(())
    }

    fn line(&mut self, number: usize, text: &str) -> Result<(), CaseError> {
        let mut words = Words::of(number, text);
        let trimmed = text.trim_start();
        let is_directive = trimmed.starts_with('.') && !is_data_directive(trimmed);
        match std::mem::take(&mut self.block) {
            Block::None if is_directive => {
                self.source.push('\n');
                let directive = words.expect_word("a directive")?;
                self.directive(directive, &mut words)?;
                match self.block {
                    Block::None => words.end(),
                    _ => Ok(()),
                }
            }
            Block::None => {
                self.count += slots_of(text);
                self.source.push_str(text);
                self.source.push('\n');
                Ok(())
            }
            block => {
                self.source.push('\n');
                if words.is_empty() {
                    self.block = block;
                    return Ok(());
                }
                self.in_block(block, trimmed, &mut words)
            }
        }
    }

    fn in_block(
        &mut self,
        block: Block,
        text: &str,
        words: &mut Words<'_>,
    ) -> Result<(), CaseError> {
        if text.split_whitespace().next() == Some(".end") {
            match block {
                Block::None => {}
                Block::Map(map) => self.maps.push(Arc::new(map.finish())),
                Block::Btf(types) => self.btf = Some(types.finish()),
                Block::BtfBytes(bytes) => {
                    let btf =
                        Btf::parse(bytes).map_err(|error| words.fault(CaseProblem::Btf(error)))?;
                    self.btf = Some(Builder::with_types_of(&btf));
                }
                Block::Answer(answer) => self.answers.push(answer),
            }
            return Ok(());
        }
        self.block = match block {
            Block::None => Block::None,
            Block::Map(mut map) => {
                let directive = words.expect_word("a directive")?;
                map.read(directive, words)?;
                Block::Map(map)
            }
            Block::Btf(mut types) => {
                types.read(words)?;
                Block::Btf(types)
            }
            Block::BtfBytes(mut bytes) => {
                bytes.extend(words.hex()?);
                Block::BtfBytes(bytes)
            }
            Block::Answer(mut answer) => {
                match words.expect_word(".log or .return")? {
                    ".log" => answer.log.push(words.text("a line in quotes")?),
                    ".return" => answer.returns = Some(words.fitting("a number of 32 bits")?),
                    other => return Err(words.fault(CaseProblem::Directive(other.to_owned()))),
                }
                words.end()?;
                Block::Answer(answer)
            }
        };
        Ok(())
    }

    fn directive(&mut self, name: &str, words: &mut Words<'_>) -> Result<(), CaseError> {
        match name {
            ".program" => self.name = words.text("a name in quotes")?,
            ".section" => self.section = words.text("a name in quotes")?,
            ".type" => {
                let refusal = words.unexpected("a program type, as xdp");
                let kind = words.word().and_then(ProgramType::from_name);
                self.kind = Some(kind.ok_or(refusal)?);
            }
            ".attach_type" => {
                let refusal = words.unexpected("an attach type, as cgroup_inet_ingress");
                let attach = words.word().and_then(AttachType::from_name);
                self.attach_type = Some(attach.ok_or(refusal)?);
            }
            ".expected_attach_type" => {
                self.expected_attach_type = Some(words.fitting("a number")?);
            }
            ".flags" => self.flags(words)?,
            ".license" => self.license = words.text("a licence in quotes")?,
            ".kernel_version" => self.kernel_version = words.fitting("a version as a number")?,
            ".module" => self.modules.push(words.text("a name in quotes")?),
            ".attach" => target(self.target.get_or_insert_default(), words)?,
            ".map" => self.block = Block::Map(Box::new(map_text::Open::new(words)?)),
            ".extern" => self.externs.push(extern_symbol(words)?),
            ".lacks" => self.failed_relocations.push(FailedRelocation {
                insn: words.fitting("the index of an instruction")?,
                access: words.text("a field or type in quotes")?,
                absence: words.text("what the kernel lacks in quotes")?,
            }),
            ".btf" => self.block = Block::Btf(Box::default()),
            ".btf_bytes" => self.block = Block::BtfBytes(Vec::new()),
            ".kernel" if self.target_line != 0 => {
                return Err(words.fault(CaseProblem::AnswerOfTarget));
            }
            ".kernel" => self.block = Block::Answer(answer(words)?),
            ".subprog" => self.subprogs.push(Subprog {
                name: words.text("a name in quotes")?,
                start: self.at.take().unwrap_or(self.count),
            }),
            ".at" => self.at = Some(words.fitting("the index of an instruction")?),
            ".func_info" => {
                let type_id = TypeId(words.fitting("a BTF id")?);
                let insn = self.at.take().unwrap_or(self.count);
                self.func_info.push(FuncInfo { insn, type_id });
            }
            ".file" => self.file = words.bytes("a name in quotes")?,
            ".line" => {
                let line = Line {
                    insn: self.at.take().unwrap_or(self.count),
                    line: words.fitting("a line")?,
                    column: words.fitting("a column")?,
                    texts: self.line_texts(words)?,
                };
                self.lines.push(line);
            }
            other => return Err(words.fault(CaseProblem::Directive(other.to_owned()))),
        }
        Ok(())
    }

    /// Text of a line in quotes, or `file=OFFSET text=OFFSET`.
    fn line_texts(&self, words: &mut Words<'_>) -> Result<LineTexts, CaseError> {
        const EXPECTED: &str = "the line in quotes, or file=OFFSET text=OFFSET";
        if words.has_text() {
            return Ok(LineTexts::Bytes {
                file: self.file.clone(),
                text: words.bytes(EXPECTED)?,
            });
        }
        let mut offset = |key| {
            let refusal = words.unexpected(EXPECTED);
            match words.key() == Some(key) {
                true => Ok(StrOffset(words.fitting("an offset")?)),
                false => Err(refusal),
            }
        };
        Ok(LineTexts::Offsets {
            file: offset("file")?,
            text: offset("text")?,
        })
    }

    fn flags(&mut self, words: &mut Words<'_>) -> Result<(), CaseError> {
        while !words.is_empty() {
            let refusal = words.unexpected("BPF_F_* or a number");
            let word = words.word().unwrap_or_default();
            let named = LoadFlags::ALL.iter().find(|(_, name)| *name == word);
            let digits = word.strip_prefix("0x");
            let number = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
            let flag = named.map(|(flag, _)| *flag).or(number.map(LoadFlags));
            self.flags = self.flags.with(flag.ok_or(refusal)?);
        }
        Ok(())
    }

    fn finish(self) -> Result<Case, CaseError> {
        let line = self.target_line;
        let whole = |problem| CaseError { line, problem };
        let unended = match self.block {
            Block::None => None,
            Block::Map(_) => Some(".map"),
            Block::Btf(_) => Some(".btf"),
            Block::BtfBytes(_) => Some(".btf_bytes"),
            Block::Answer(_) => Some(".kernel"),
        };
        if let Some(block) = unended {
            return Err(whole(CaseProblem::Unended(block)));
        }
        let insns = insns(&self.source, line)?;
        if insns.len() != self.count as usize {
            return Err(whole(CaseProblem::Count));
        }
        let mut builder = self.btf;
        let mut line_info = Vec::with_capacity(self.lines.len());
        for line in self.lines {
            let (file, text) = match line.texts {
                LineTexts::Bytes { file, text } => {
                    let strings = builder.get_or_insert_default();
                    (strings.string(file), strings.string(text))
                }
                LineTexts::Offsets { file, text } => (file, text),
            };
            line_info.push(LineInfo {
                insn: line.insn,
                file,
                text,
                line: line.line,
                column: line.column,
            });
        }
        let btf = builder.map(|builder| Btf::parse(builder.finish()));
        let btf = btf
            .transpose()
            .map_err(|error| whole(CaseProblem::Btf(error)))?;
        let kind = self.kind.ok_or_else(|| whole(CaseProblem::NoType))?;
        let mut program = Program::builder(kind, insns)
            .name(self.name)
            .section(self.section)
            .attach_type(self.attach_type)
            .attach_target(self.target)
            .flags(self.flags)
            .subprogs(self.subprogs)
            .maps(self.maps)
            .btf(btf.map(Arc::new))
            .func_info(self.func_info)
            .line_info(line_info)
            .failed_relocations(self.failed_relocations)
            .externs(self.externs)
            .modules(self.modules)
            .license(self.license)
            .kernel_version(self.kernel_version);
        if let Some(number) = self.expected_attach_type {
            program = program.expected_attach_type(number);
        }
        let program = program.build();
        Ok(Case {
            program: program.map_err(|error| whole(CaseProblem::Program(error)))?,
            answers: self.answers,
        })
    }
}

/// True for a data directive of the assembler, which states the bits of a slot.
fn is_data_directive(text: &str) -> bool {
    text.starts_with(".8byte") || text.starts_with(".quad")
}

/// Assembles instructions that start behind this line of the case.
fn insns(source: &str, line: usize) -> Result<Vec<RawInsn>, CaseError> {
    let assembled = assemble(source).map_err(|mut error| {
        error.line += line;
        if let AsmProblem::DuplicateLabel { first_line, .. } = &mut error.problem {
            *first_line += line;
        }
        CaseError {
            line: error.line,
            problem: CaseProblem::Asm(error),
        }
    })?;
    // Encoding fails for no assembled instruction.
    encode(&assembled).map_err(|_| CaseError {
        line,
        problem: CaseProblem::Count,
    })
}

/// Number of instruction slots of a line: two for each 64-bit load, one for each other
/// statement.
fn slots_of(line: &str) -> u32 {
    let end = line.find('#').or_else(|| line.find("//"));
    let statements = line[..end.unwrap_or(line.len())].split(';');
    let slots = statements.map(|statement| {
        let statement = match statement.rsplit_once(':') {
            Some((_, behind)) => behind,
            None => statement,
        };
        let statement = match statement.rsplit_once('<') {
            Some((before, name)) if name.trim_end().ends_with('>') => before,
            _ => statement,
        };
        match statement.trim() {
            "" => 0,
            statement if statement.ends_with(" ll") => 2,
            _ => 1,
        }
    });
    slots.sum()
}

fn target(target: &mut AttachTarget, words: &mut Words<'_>) -> Result<(), CaseError> {
    while !words.is_empty() {
        let refusal = words.unexpected("btf_id=, module= or member=");
        match words.key() {
            Some("btf_id") => target.btf_id = TypeId(words.fitting("a BTF id")?),
            Some("module") => target.module = words.fitting("the number of a module")?,
            Some("member") => target.member = Some(words.fitting("the index of a member")?),
            _ => return Err(refusal),
        }
    }
    Ok(())
}

fn extern_symbol(words: &mut Words<'_>) -> Result<ExternSymbol, CaseError> {
    let name = words.text("a name in quotes")?;
    let kind = words.expect_word("kconfig, address, variable or kfunc")?;
    let of = TypeId(words.fitting("a BTF id")?);
    let kind = match kind {
        "kconfig" => ExternSymbolKind::Kconfig,
        "address" => ExternSymbolKind::Address,
        "variable" => ExternSymbolKind::Variable(of),
        "kfunc" => ExternSymbolKind::Kfunc(of),
        _ => return Err(words.unexpected("kconfig, address, variable or kfunc before")),
    };
    let type_id = match words.key() {
        Some("type_id") => TypeId(words.fitting("a BTF id")?),
        _ => return Err(words.unexpected("type_id=ID")),
    };
    let mut word = words.expect_word("weak or a resolution")?;
    let is_weak = word == "weak";
    if is_weak {
        word = words.expect_word("a resolution")?;
    }
    let resolution = match word {
        "missing" => ExternResolution::Missing,
        "unknown" => ExternResolution::Unknown,
        "kconfig" => ExternResolution::Kconfig,
        "address" => ExternResolution::Address(words.fitting("an address")?),
        "btf" => ExternResolution::Btf {
            id: TypeId(words.fitting("a BTF id")?),
            module: words.fitting("the number of a module")?,
        },
        _ => return Err(words.unexpected("missing, unknown, kconfig, address or btf before")),
    };
    Ok(ExternSymbol {
        name,
        type_id,
        is_weak,
        kind,
        resolution,
    })
}

fn answer(words: &mut Words<'_>) -> Result<KernelAnswer, CaseError> {
    let release = words.text("a release in quotes")?;
    let refusal = words.unexpected("accepted or refused ERRNO");
    let errno = match words.word() {
        Some("accepted") => None,
        Some("refused") => Some(words.fitting("an error number")?),
        _ => return Err(refusal),
    };
    words.end()?;
    Ok(KernelAnswer {
        release,
        errno,
        log: Vec::new(),
        returns: None,
    })
}
