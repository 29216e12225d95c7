//! The programs of an object, linked, with names in place of numbers.

use beebox::Kernel;
use beebox::internal::ebpf::decode;
use beebox::internal::listing::{
    BesideNative, Labels, LineForm, Listed, Outcome, UnknownProgram, Xlated, linked_json,
    linked_text, xlated_json, xlated_text,
};
use beebox::internal::loading::ObjectLoading;
use beebox::internal::native::CodeOptions;
use beebox::internal::object::Object;
use beebox::internal::object::kernel_lacks_feature;
use beebox::internal::program::ProgramId;
use beebox::internal::program::case::Case;
use beebox::internal::verify::ProgramLoader;

use super::ebpf;
use super::native::disassemble;
use crate::answer::Failure;
use crate::input::name;
use crate::kernel_input::{FOR_LINKING, FOR_VERIFYING, assumed, note_assumed, note_built_in};
use crate::loading::{change, note_guess};
use crate::object_input::{ObjectFile, no_programs, refused};
use crate::program_input::ClassicForm;
use crate::program_output::ProgramFormat;

/// Options of the listing.
pub(super) struct View<'a> {
    /// How the object is opened, and what is set.
    pub(super) loading: &'a ObjectLoading,
    pub(super) format: ProgramFormat,
    /// Are source lines shown?
    pub(super) source: bool,
    /// Options of the native code beside the instructions, if there is any.
    pub(super) native: Option<CodeOptions>,
    /// True if the kernel's instructions are shown.
    pub(super) xlated: bool,
}

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
    view: &View<'_>,
) -> Result<Shown, Failure> {
    let mut object = file.open_by(view.loading, &[])?;
    note_guess(&object, &name(file.path()));
    change(&mut object, view.loading).map_err(|failure| failure.within(file.path().display()))?;
    let object = &object;
    let chosen = choose(object, names).map_err(|failure| failure.within(file.path().display()))?;
    let link_report = object.try_link(&chosen, kernel);
    let outcomes = link_report.programs.iter().filter_map(|link_report| {
        let name = object.program_defs().get(link_report.id)?.name.to_string();
        Some((name, Listed::of(link_report)))
    });
    let outcomes: Vec<Outcome<'_>> = outcomes.collect();
    if outcomes.iter().all(|(_, outcome)| outcome.is_err())
        && let Some((_, Err(error))) = outcomes.last()
    {
        return Err(refused((*error).clone(), Some(kernel)));
    }
    let complete = !link_report.weak_externs && outcomes.iter().all(|(_, outcome)| outcome.is_ok());
    if let Some(error) = link_report
        .refusal
        .as_ref()
        .filter(|_| link_report.weak_externs)
    {
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
    if kernel_lacks_feature(&link_report) {
        note_built_in(kernel);
    }
    let note = assumed(kernel, fields).filter(|_| is_listing);
    let note = note.map(|note| format!("; {answered} for {}, {note}\n", kernel.name()));
    let note = note.unwrap_or_default().into_bytes();
    let labels = Labels::of(object, kernel);
    if view.xlated {
        let programs = Xlated::of_all(&link_report, &outcomes, kernel).ok_or_else(|| {
            Failure::new(format_args!(
                "{} has no registry to verify by",
                kernel.name()
            ))
        })?;
        let bytes = match view.format {
            ProgramFormat::Json => crate::stdout::json(&xlated_json(&programs, &labels)),
            _ if is_listing => {
                let text = xlated_text(&programs, &labels, view.source);
                [note, text.into_bytes()].concat()
            }
            _ => {
                let what = "instructions of the kernel are written as in its log, or as JSON";
                return Err(Failure::new(what).hint("no --format, or --format json"));
            }
        };
        let complete = complete && programs.iter().all(Xlated::is_accepted);
        return Ok(Shown { bytes, complete });
    }
    let native = view.native.map(|options| BesideNative {
        kernel,
        options,
        disassemble,
    });
    let bytes = match view.format {
        ProgramFormat::Json => crate::stdout::json(
            &linked_json(&outcomes, &labels, native.as_ref()).map_err(Failure::new)?,
        ),
        ProgramFormat::Form(ClassicForm::D) | ProgramFormat::Log => {
            let form = match view.format {
                ProgramFormat::Log => LineForm::Log,
                _ => LineForm::Llvm,
            };
            let text = linked_text(&outcomes, &labels, form, view.source, native.as_ref());
            let text = text.map_err(Failure::new)?;
            [note, text.into_bytes()].concat()
        }
        ProgramFormat::Case => {
            let names: Vec<&String> = outcomes.iter().map(|(name, _)| name).collect();
            case(file, kernel, (&names, view.loading))?
        }
        format => match &outcomes[..] {
            [(_, Ok(program))] => ebpf::format(&decode(program.insns), format)?,
            _ => return Err(holds_one(outcomes.len(), file)),
        },
    };
    Ok(Shown { bytes, complete })
}

/// The only program of these names, as it is loaded alone, as a text case.
fn case(
    file: &ObjectFile,
    kernel: &Kernel,
    (names, loading): (&[&String], &ObjectLoading),
) -> Result<Vec<u8>, Failure> {
    let [wanted] = names else {
        return Err(holds_one(names.len(), file));
    };
    let mut loaded = None;
    let is_wanted = |name: &str| name == wanted.as_str();
    let set_globals = |object: &mut Object<'_>| {
        // The object that is listed has the same ones.
        let _ = loading.set_globals(object);
    };
    let loader = ProgramLoader::new(kernel)
        .with_choice(&is_wanted)
        .with_loading(loading)
        .with_change(&set_globals);
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
    let known = programs.iter().map(|(_, name)| name.clone()).collect();
    UnknownProgram::check(names, known).map_err(unknown_program)?;
    let wanted = |name: &String| names.is_empty() || names.contains(name);
    let chosen = programs.iter().filter(|(_, name)| wanted(name));
    Ok(chosen.map(|(id, _)| *id).collect())
}

/// The failure for a name of no program.
pub(super) fn unknown_program(error: UnknownProgram) -> Failure {
    Failure::new(&error).hint(format_args!("it has {}", error.known.join(", ")))
}
