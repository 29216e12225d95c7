//! The programs of an object, linked, with names in place of numbers.

use std::fmt::{self, Write};
use std::rc::Rc;

use lower::Malformed;
use serde_json::{Map, Value, json};

use super::native::{NativeInsn, NativeListing, native_record, native_text};
use super::plain::Record;
use super::slot::{Slot, Source};
use crate::Kernel;
use crate::internal::btf::core::Path;
use crate::internal::btf::ext::{CoreKind, CoreSpec};
use crate::internal::ebpf::{Callee, Insn, RawInsn, decode, helper_name};
use crate::internal::native::{CodeOptions, NativeDraft};
use crate::internal::object::reference_at;
use crate::internal::object::{Error, LinkOutcome, Object, ProgramLinkReport, Reference, Referent};
use crate::internal::program::{AttachType, LineInfo, MapId, ProgramType, Subprog};

/// A linked program, loadable or not.
pub struct Listed<'t> {
    /// Its name.
    pub name: &'t str,
    pub(super) section: &'t str,
    pub(super) kind: Option<ProgramType>,
    attach_type: Option<AttachType>,
    /// Its instructions.
    pub insns: &'t [RawInsn],
    /// Its functions.
    pub subprogs: &'t [Subprog],
    pub(super) line_info: &'t [LineInfo],
    references: &'t [Reference],
}

impl<'t> Listed<'t> {
    /// The program of a report.
    ///
    /// # Errors
    /// Why it is not linked.
    pub fn of(link_report: &'t ProgramLinkReport) -> Result<Listed<'t>, &'t Error> {
        match &link_report.outcome {
            LinkOutcome::Linked(linked) => Ok(Listed {
                name: linked.program.name(),
                section: linked.program.section(),
                kind: Some(linked.program.kind()),
                attach_type: linked.program.attach_type(),
                insns: linked.program.insns(),
                subprogs: linked.program.subprogs(),
                line_info: linked.program.line_info(),
                references: &linked.references,
            }),
            LinkOutcome::Unloadable(program) => Ok(Listed {
                name: &program.name,
                section: &program.section,
                kind: program.kind,
                attach_type: program.attach_type,
                insns: &program.insns,
                subprogs: &program.subprogs,
                line_info: &program.line_info,
                references: &program.references,
            }),
            LinkOutcome::Refused(error) => Err(error),
        }
    }

    fn subprog_at(&self, insn: u32) -> Option<&Subprog> {
        let after = self.subprogs.partition_point(|it| it.start <= insn);
        self.subprogs.get(after.checked_sub(1)?)
    }
}

/// A program that was to be linked, and what came of it.
pub type Outcome<'t> = (String, Result<Listed<'t>, &'t Error>);

/// Names of what instructions refer to.
pub struct Labels<'o, 'a> {
    object: &'o Object<'a>,
    /// The kernel that programs are linked for.
    pub kernel: &'o Kernel,
    /// Variables by map and place.
    globals: Vec<(u32, u32, String)>,
}

impl<'o, 'a> Labels<'o, 'a> {
    /// Names in an object that is linked for a kernel.
    pub fn of(object: &'o Object<'a>, kernel: &'o Kernel) -> Labels<'o, 'a> {
        let mut globals: Vec<_> = object
            .globals()
            .map(|global| (global.map.0, global.offset, global.name))
            .collect();
        globals.sort();
        Labels {
            object,
            kernel,
            globals,
        }
    }

    /// The reference of the instruction at a slot.
    pub(super) fn of_slot(&self, program: &Listed<'_>, slot: u32, insn: Insn) -> Option<String> {
        if let Some(Reference { to, .. }) = reference_at(program.references, slot) {
            return Some(self.of_reference(program, *to));
        }
        match insn {
            Insn::Call(Callee::Helper(number)) => helper_name(number).map(str::to_owned),
            _ => None,
        }
    }

    fn of_reference(&self, program: &Listed<'_>, to: Referent) -> String {
        let map = |id: MapId| {
            let map = self.object.maps().get(id);
            map.map_or_else(|| format!("map {}", id.0), |map| map.name().to_owned())
        };
        let wanted = |id| {
            let wanted = self.object.externs().get(id);
            wanted.map(|wanted| wanted.name.clone()).unwrap_or_default()
        };
        let function = |start| {
            let function = program.subprog_at(start);
            function
                .map(|function| function.name.clone())
                .unwrap_or_default()
        };
        match to {
            Referent::Map(id) => map(id),
            Referent::Value { map: id, offset } => {
                format!("{}{}", map(id), self.variable(id.0, offset))
            }
            Referent::MissingMap(id) => format!("no map {}", map(id)),
            Referent::Call { start } | Referent::FunctionAddress { start } => function(start),
            Referent::Kfunc { function, .. } => wanted(function),
            Referent::MissingKfunc(id) => format!("no kfunc {}", wanted(id)),
            Referent::Typed { object, .. } | Referent::Address(object) => wanted(object),
            Referent::Core(spec) => self.relocation(&spec),
            Referent::MissingCore(spec) | Referent::LeftOut(spec) => {
                format!("no {}", self.relocation(&spec))
            }
        }
    }

    /// The variable at a place of a map, with what is between; nothing if no
    /// variable is before the place.
    fn variable(&self, map: u32, offset: u32) -> String {
        let key = |global: &(u32, u32, String)| (global.0, global.1);
        let after = self
            .globals
            .partition_point(|global| key(global) <= (map, offset));
        let before = after.checked_sub(1).map(|at| &self.globals[at]);
        match before.filter(|global| global.0 == map) {
            Some((_, start, name)) if *start == offset => format!(" {name}"),
            Some((_, start, name)) => format!(" {name}+{}", offset - start),
            None => format!("+{offset}"),
        }
    }

    /// Description of a relocation; with its kind, unless it is a field offset.
    fn relocation(&self, spec: &CoreSpec) -> String {
        let types = self.object.btf();
        let path = types.and_then(|types| Path::parse(types, spec).ok());
        let label = path.map_or_else(|| "?".to_owned(), |path| path.label());
        match spec.kind {
            CoreKind::FIELD_BYTE_OFFSET => label,
            kind => format!("{label} {}", kind.name().unwrap_or("?")),
        }
    }

    /// The slots of a program with names and optional source lines.
    pub fn slots(&self, program: &Listed<'_>, with_source: bool) -> Vec<Slot> {
        let mut slots = Vec::new();
        let mut line: Option<Rc<Source>> = None;
        let mut lines = program.line_info.iter().peekable();
        for (index, insn) in decode(program.insns).into_iter().enumerate() {
            let slot = index as u32;
            while let Some(next) = lines.next_if(|line| line.insn <= slot) {
                line = self.line(next);
            }
            if matches!(insn, Insn::Imm64High) {
                continue;
            }
            slots.push(Slot {
                index,
                origin: None,
                insn,
                name: self.of_slot(program, slot, insn),
                source: line.clone().filter(|_| with_source),
            });
        }
        slots
    }

    pub(super) fn line(&self, line: &LineInfo) -> Option<Rc<Source>> {
        let types = self.object.btf()?;
        Some(Rc::new(Source::of(types, line)))
    }
}

/// The form of a line of an instruction.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum LineForm {
    /// As LLVM writes it.
    Llvm,
    /// As the log of Linux's verifier has it.
    Log,
}

/// Native code of programs that are not loaded, beside their instructions.
pub struct BesideNative<'k> {
    /// The kernel that they are linked for.
    pub kernel: &'k Kernel,
    /// Options of the code.
    pub options: CodeOptions,
    /// The disassembler: from machine code at address 0 to its instructions.
    pub disassemble: fn(&[u8]) -> Vec<NativeInsn>,
}

/// A program has no native code, since its structure is malformed.
#[derive(Debug)]
pub struct NoNative {
    /// Its name.
    pub program: String,
    /// What is wrong.
    pub fault: Malformed,
}

impl fmt::Display for NoNative {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.program, self.fault)
    }
}

impl std::error::Error for NoNative {}

impl BesideNative<'_> {
    /// Shows the instructions with their native code.
    fn with_listing<T>(
        &self,
        program: &Listed<'_>,
        slots: Vec<Slot>,
        show: impl FnOnce(&NativeListing<'_>) -> T,
    ) -> Result<T, NoNative> {
        let draft = NativeDraft::from_linked(program.insns, self.kernel, self.options);
        let draft = draft.map_err(|fault| NoNative {
            program: program.name.to_owned(),
            fault,
        })?;
        let disassemble = self.disassemble;
        Ok(show(&NativeListing::new(None, slots, &draft, disassemble)))
    }

    fn text(&self, program: &Listed<'_>, slots: Vec<Slot>) -> Result<String, NoNative> {
        self.with_listing(program, slots, native_text)
    }

    /// Members of the program's record.
    fn json(&self, program: &Listed<'_>, slots: Vec<Slot>) -> Result<Map<String, Value>, NoNative> {
        let record = |listing: &NativeListing<'_>| json!(native_record(listing));
        Ok(match self.with_listing(program, slots, record)? {
            Value::Object(members) => members,
            _ => Map::new(),
        })
    }
}

/// The programs as text, with source lines if `source` says so.
///
/// # Errors
/// [`NoNative`] for a program without native code.
pub fn linked_text(
    outcomes: &[Outcome<'_>],
    labels: &Labels<'_, '_>,
    form: LineForm,
    source: bool,
    beside: Option<&BesideNative<'_>>,
) -> Result<String, NoNative> {
    let mut text = String::new();
    for (at, (name, outcome)) in outcomes.iter().enumerate() {
        if at > 0 {
            text.push('\n');
        }
        let program = match outcome {
            Ok(program) => program,
            Err(error) => {
                let _ = writeln!(text, "{name}: can't be linked: {error}");
                continue;
            }
        };
        let slots = labels.slots(program, source);
        let _ = writeln!(text, "{}", heading(program));
        match beside {
            Some(beside) => text.push_str(&beside.text(program, slots)?),
            None => write_slots(&mut text, program.subprogs, &slots, form),
        }
    }
    Ok(text)
}

/// The programs as JSON, each with its instructions or with why it has none.
///
/// # Errors
/// [`NoNative`] for a program without native code.
pub fn linked_json(
    outcomes: &[Outcome<'_>],
    labels: &Labels<'_, '_>,
    beside: Option<&BesideNative<'_>>,
) -> Result<Value, NoNative> {
    let records = outcomes.iter().map(|(name, outcome)| match outcome {
        Ok(program) => record(program, labels, beside),
        Err(error) => Ok(json!({ "name": name, "error": error.to_string() })),
    });
    let programs = records.collect::<Result<Vec<Value>, NoNative>>()?;
    Ok(json!({ "programs": programs }))
}

fn heading(program: &Listed<'_>) -> String {
    let Listed {
        name,
        section,
        insns,
        ..
    } = program;
    let kind = program.kind.map_or("no type", |kind| kind.name());
    format!(
        "{name}: {kind}, section {section}, {} instructions",
        insns.len()
    )
}

/// Writes instructions, with the names of subprogs and source lines between them.
pub(super) fn write_slots(text: &mut String, subprogs: &[Subprog], slots: &[Slot], form: LineForm) {
    let mut shown: Option<&Source> = None;
    let mut functions = subprogs.iter().peekable();
    for slot in slots {
        if let Some(function) = functions.next_if(|function| function.start as usize == slot.index)
        {
            let _ = writeln!(text, "{}:", function.name);
        }
        if let Some(source) = slot.source.as_deref()
            && !shown.is_some_and(|shown| shown.is_line_of(source))
        {
            shown = Some(source);
            let _ = writeln!(text, "{}", source.comment());
        }
        let _ = match form {
            LineForm::Log => writeln!(text, "{}", in_log_form(slot)),
            LineForm::Llvm => writeln!(text, "{}", slot.line()),
        };
    }
}

/// The instruction as the verifier's log has it; what it refers to follows.
fn in_log_form(slot: &Slot) -> String {
    let text = slot.log_text();
    let is_named = matches!(
        slot.insn,
        Insn::Call(Callee::Helper(_) | Callee::Kfunc { .. })
    );
    match slot.name.as_deref().filter(|_| !is_named) {
        Some(name) => format!("{}: {text} <{name}>", slot.index),
        None => format!("{}: {text}", slot.index),
    }
}

fn record(
    program: &Listed<'_>,
    labels: &Labels<'_, '_>,
    beside: Option<&BesideNative<'_>>,
) -> Result<Value, NoNative> {
    let slots = labels.slots(program, true);
    let functions = program.subprogs.iter();
    let functions =
        functions.map(|function| json!({ "name": function.name, "start": function.start }));
    let insns = slots
        .iter()
        .map(|slot| json!(Record::of(slot, program.insns)));
    let mut record = json!({
        "name": program.name,
        "section": program.section,
        "type": program.kind.map(|kind| kind.name()),
        "attach_type": program.attach_type.map(|attach| attach.name()),
        "functions": functions.collect::<Vec<_>>(),
        "insns": insns.collect::<Vec<_>>(),
    });
    if let (Some(beside), Some(members)) = (beside, record.as_object_mut()) {
        members.extend(beside.json(program, slots)?);
    }
    Ok(record)
}
