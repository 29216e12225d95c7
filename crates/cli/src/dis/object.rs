//! The programs of an object, linked, with names in place of numbers.

use std::fmt::Write;
use std::rc::Rc;

use beebox::Kernel;
use beebox::internal::btf::core::Path;
use beebox::internal::btf::ext::{CoreKind, CoreSpec};
use beebox::internal::ebpf::{Callee, Insn, RawInsn, decode, helper_name};
use beebox::internal::native::{CodeOptions, NativeDraft};
use beebox::internal::object::{Error, Object, Reference, Referent, reference_at};
use beebox::internal::object::{ProgramTrial, TrialOutcome};
use beebox::internal::program::case::Case;
use beebox::internal::program::{AttachType, LineInfo, MapId, ProgramId, ProgramType, Subprog};
use beebox::internal::verify::ProgramLoader;
use serde_json::{Value, json};

use super::native::Sides;
use super::slot::{Slot, Source};
use super::{ebpf, native, xlated};
use crate::answer::Failure;
use crate::kernel_input::{FOR_LINKING, FOR_VERIFYING, assumed, note_assumed, note_built_in};
use crate::object_input::{ObjectFile, is_lacking, no_programs, refused};
use crate::program_input::ClassicForm;
use crate::program_output::ProgramFormat;

/// Options of the listing.
pub(super) struct View {
    pub(super) format: ProgramFormat,
    /// Are source lines shown?
    pub(super) source: bool,
    /// Options of the native code beside the instructions, if there is any.
    pub(super) native: Option<CodeOptions>,
    /// True if the kernel's instructions are shown.
    pub(super) xlated: bool,
}

/// A linked program, loadable or not.
pub(super) struct Listed<'t> {
    pub(super) name: &'t str,
    pub(super) section: &'t str,
    kind: Option<ProgramType>,
    attach_type: Option<AttachType>,
    insns: &'t [RawInsn],
    pub(super) subprogs: &'t [Subprog],
    pub(super) line_info: &'t [LineInfo],
    references: &'t [Reference],
}

impl<'t> Listed<'t> {
    fn of(trial: &'t ProgramTrial) -> Result<Listed<'t>, &'t Error> {
        match &trial.outcome {
            TrialOutcome::Linked(linked) => Ok(Listed {
                name: linked.program.name(),
                section: linked.program.section(),
                kind: Some(linked.program.kind()),
                attach_type: linked.program.attach_type(),
                insns: linked.program.insns(),
                subprogs: linked.program.subprogs(),
                line_info: linked.program.line_info(),
                references: &linked.references,
            }),
            TrialOutcome::Unloadable(program) => Ok(Listed {
                name: &program.name,
                section: &program.section,
                kind: program.kind,
                attach_type: program.attach_type,
                insns: &program.insns,
                subprogs: &program.subprogs,
                line_info: &program.line_info,
                references: &program.references,
            }),
            TrialOutcome::Refused(error) => Err(error),
        }
    }

    fn subprog_at(&self, insn: u32) -> Option<&Subprog> {
        let after = self.subprogs.partition_point(|it| it.start <= insn);
        self.subprogs.get(after.checked_sub(1)?)
    }
}

/// A program that was to be linked, and what came of it.
pub(super) type Outcome<'t> = (String, Result<Listed<'t>, &'t Error>);

/// Programs as they are shown.
pub(super) struct Shown {
    pub(super) bytes: Vec<u8>,
    /// Was every program linked?
    pub(super) complete: bool,
}

/// Links the programs of these names, or all of them, and shows them.
pub(super) fn show(
    file: &ObjectFile,
    kernel: &Kernel,
    names: &[String],
    view: &View,
) -> Result<Shown, Failure> {
    let object = &file.open()?;
    let chosen = choose(object, names).map_err(|failure| failure.within(file.path().display()))?;
    let trial = object.try_link(&chosen, kernel);
    let outcomes = trial.programs.iter().filter_map(|trial| {
        let name = object.program_defs().get(trial.id)?.name.to_string();
        Some((name, Listed::of(trial)))
    });
    let outcomes: Vec<Outcome<'_>> = outcomes.collect();
    if outcomes.iter().all(|(_, outcome)| outcome.is_err())
        && let Some((_, Err(error))) = outcomes.last()
    {
        return Err(refused((*error).clone(), Some(kernel)));
    }
    let complete = !trial.weak_externs && outcomes.iter().all(|(_, outcome)| outcome.is_ok());
    if let Some(error) = trial.refusal.as_ref().filter(|_| trial.weak_externs) {
        diagnostic!(
            "beebox: {}: {error}; linked with externs that the kernel lacks as weak ones",
            file.path().display()
        );
    }
    let (answered, fields) = match view.xlated {
        true => ("verified", FOR_VERIFYING),
        false => ("linked", FOR_LINKING),
    };
    let is_listing = matches!(
        view.format,
        ProgramFormat::Form(ClassicForm::D) | ProgramFormat::Log
    );
    if !is_listing {
        note_assumed(kernel, fields, answered);
    }
    if is_lacking(&trial) {
        note_built_in(kernel);
    }
    let note = assumed(kernel, fields).filter(|_| is_listing);
    let note = note.map(|note| format!("; {answered} for {}, {note}\n", kernel.name()));
    let note = note.unwrap_or_default().into_bytes();
    let labels = Labels::of(object, kernel);
    if view.xlated {
        let mut shown = xlated::show(&trial, &outcomes, &labels, view)?;
        shown.bytes.splice(..0, note);
        shown.complete &= complete;
        return Ok(shown);
    }
    let bytes = match view.format {
        ProgramFormat::Json => as_json(&outcomes, &labels, view)?,
        ProgramFormat::Form(ClassicForm::D) | ProgramFormat::Log => {
            [note, as_text(&outcomes, &labels, view)?].concat()
        }
        ProgramFormat::Case => {
            let names: Vec<&String> = outcomes.iter().map(|(name, _)| name).collect();
            case(file, kernel, &names)?
        }
        format => match &outcomes[..] {
            [(_, Ok(program))] => ebpf::format(&decode(program.insns), format)?,
            _ => return Err(holds_one(outcomes.len(), file)),
        },
    };
    Ok(Shown { bytes, complete })
}

/// The only program of these names, as it is loaded alone, as a text case.
fn case(file: &ObjectFile, kernel: &Kernel, names: &[&String]) -> Result<Vec<u8>, Failure> {
    let [wanted] = names else {
        return Err(holds_one(names.len(), file));
    };
    let mut loaded = None;
    let is_wanted = |name: &str| name == wanted.as_str();
    let loader = ProgramLoader::new(kernel).with_choice(&is_wanted);
    let opened = loader.load_each(file.bytes(), &file.base_name(), &mut |program| {
        loaded = Some(program);
    });
    opened.map_err(|error| refused(error, Some(kernel)))?;
    let Some(loaded) = loaded else {
        return Err(holds_one(0, file));
    };
    if let Some(refusal) = &loaded.btf_refusal {
        diagnostic!("beebox: Linux refuses its BTF ({refusal}): the case has none");
    }
    match loaded.program {
        Ok(program) => Ok(Case::new(program).to_string().into_bytes()),
        Err(error) => Err(refused(error, Some(kernel))),
    }
}

/// The refusal of a format that holds one program, when several are selected.
fn holds_one(count: usize, file: &ObjectFile) -> Failure {
    let what = format!("{count} programs are selected: this format holds one");
    Failure::new(what)
        .within(file.path().display())
        .hint("--prog NAME selects one")
}

fn choose(object: &Object<'_>, names: &[String]) -> Result<Vec<ProgramId>, Failure> {
    let programs: Vec<(ProgramId, String)> = object
        .programs()
        .map(|(id, code)| (id, code.name.to_string()))
        .collect();
    if programs.is_empty() {
        return Err(no_programs()
            .hint("a section for the program, as SEC(\"xdp\"), or --ebpf for the code alone"));
    }
    let known = |name: &str| programs.iter().any(|(_, known)| known == name);
    if let Some(name) = names.iter().find(|name| !known(name)) {
        let all: Vec<&str> = programs.iter().map(|(_, name)| name.as_str()).collect();
        return Err(
            Failure::new(format_args!("the object has no program {name}"))
                .hint(format_args!("it has {}", all.join(", "))),
        );
    }
    let wanted = |name: &String| names.is_empty() || names.contains(name);
    let chosen = programs.iter().filter(|(_, name)| wanted(name));
    Ok(chosen.map(|(id, _)| *id).collect())
}

/// Names of what instructions refer to.
pub(super) struct Labels<'o, 'a> {
    object: &'o Object<'a>,
    /// The kernel that programs are linked for.
    pub(super) kernel: &'o Kernel,
    /// Variables by map and place.
    globals: Vec<(u32, u32, String)>,
}

impl<'o, 'a> Labels<'o, 'a> {
    fn of(object: &'o Object<'a>, kernel: &'o Kernel) -> Labels<'o, 'a> {
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
    fn slots(&self, program: &Listed<'_>, with_source: bool) -> Vec<Slot> {
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

fn as_text(
    outcomes: &[Outcome<'_>],
    labels: &Labels<'_, '_>,
    view: &View,
) -> Result<Vec<u8>, Failure> {
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
        let slots = labels.slots(program, view.source);
        let _ = writeln!(text, "{}", heading(program));
        match view.native {
            Some(options) => {
                let draft = draft(program, labels.kernel, options)?;
                text.push_str(&native::listing(&Sides::of(None, slots, &draft)));
            }
            None => write_slots(&mut text, program.subprogs, &slots, view.format),
        }
    }
    Ok(text.into_bytes())
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
pub(super) fn write_slots(
    text: &mut String,
    subprogs: &[Subprog],
    slots: &[Slot],
    format: ProgramFormat,
) {
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
        let _ = match format {
            ProgramFormat::Log => writeln!(text, "{}", in_log_form(slot)),
            _ => writeln!(text, "{}", slot.line()),
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

/// The native code of a program that is not loaded.
fn draft(
    program: &Listed<'_>,
    kernel: &Kernel,
    options: CodeOptions,
) -> Result<NativeDraft, Failure> {
    NativeDraft::from_linked(program.insns, kernel, options)
        .map_err(|malformed| Failure::new(malformed).within(program.name))
}

/// The programs, each with its instructions or with why it has none.
fn as_json(
    outcomes: &[Outcome<'_>],
    labels: &Labels<'_, '_>,
    view: &View,
) -> Result<Vec<u8>, Failure> {
    let records = outcomes.iter().map(|(name, outcome)| match outcome {
        Ok(program) => record(program, labels, view),
        Err(error) => Ok(json!({ "name": name, "error": error.to_string() })),
    });
    let programs: Result<Vec<Value>, Failure> = records.collect();
    Ok(crate::stdout::json(&json!({ "programs": programs? })))
}

fn record(program: &Listed<'_>, labels: &Labels<'_, '_>, view: &View) -> Result<Value, Failure> {
    let slots = labels.slots(program, true);
    let functions = program.subprogs.iter();
    let functions =
        functions.map(|function| json!({ "name": function.name, "start": function.start }));
    let insns = slots
        .iter()
        .map(|slot| json!(ebpf::Record::of(slot, program.insns)));
    let mut record = json!({
        "name": program.name,
        "section": program.section,
        "type": program.kind.map(|kind| kind.name()),
        "attach_type": program.attach_type.map(|attach| attach.name()),
        "functions": functions.collect::<Vec<_>>(),
        "insns": insns.collect::<Vec<_>>(),
    });
    if let Some(options) = view.native {
        let draft = draft(program, labels.kernel, options)?;
        record["native"] = json!(native::record(&Sides::of(None, slots, &draft)));
    }
    Ok(record)
}
