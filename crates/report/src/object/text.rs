//! Renderer of an object as a one-screen text.

use std::fmt::Write;

use anstyle::{AnsiColor, Style};
use object::externs::ExternKind;
use object::maps::Map;
use object::overview::{Requirement, oldest};
use object::{Error, ProgramDef};

use super::{Missing, Place, Shown, Sizes, base, kinds, latest, relocations, words};
use crate::table::{Side, Table};
use spec::bits::BitOp;
use spec::since::Release;

/// Largest number of rows of a list, unless all are printed.
const ROWS: usize = 16;
/// Relocations and needs, which are many.
const FEW: usize = 8;
/// Heading of the feature that needs a release.
const BECAUSE: &str = "because of";

/// An object as text.
pub fn object_text(shown: &Shown<'_, '_>) -> String {
    let mut text = String::new();
    title(shown, &mut text);
    programs(shown, &mut text);
    maps(shown, &mut text);
    externs(shown, &mut text);
    core(shown, &mut text);
    needs(shown, &mut text);
    link_report(shown, &mut text);
    sizes(shown, &mut text);
    text
}

pub(super) fn heading(text: &mut String, words: &str) {
    let bold = Style::new().bold();
    let _ = writeln!(text, "\n{bold}{words}{bold:#}");
}

impl Shown<'_, '_> {
    fn most(&self, few: usize) -> usize {
        if self.all { usize::MAX } else { few }
    }
}

fn title(shown: &Shown<'_, '_>, text: &mut String) {
    let bold = Style::new().bold();
    let Shown {
        object, overview, ..
    } = shown;
    let license = match object.license() {
        "" => "no licence".to_owned(),
        license => format!("licence {license}"),
    };
    let _ = write!(
        text,
        "{bold}{}{bold:#}: {}, {}, {license}",
        shown.file,
        count(overview.programs.len(), "program"),
        count(overview.maps.len(), "map"),
    );
    if let Some(release) = oldest(&overview.needs()) {
        let _ = write!(text, "; needs {bold}Linux {release}{bold:#}");
    }
    text.push('\n');
}

pub(super) fn count(count: usize, noun: &str) -> String {
    match count {
        1 => format!("1 {noun}"),
        _ => format!("{count} {noun}s"),
    }
}

fn programs(shown: &Shown<'_, '_>, text: &mut String) {
    let Shown {
        object, overview, ..
    } = shown;
    if overview.programs.is_empty() {
        return;
    }
    let mut table = Table::new(&[
        ("name", Side::Left),
        ("section", Side::Left),
        ("type", Side::Left),
        ("attach_type", Side::Left),
        ("insns", Side::Right),
        ("subprogs", Side::Right),
        ("stack", Side::Right),
        ("core", Side::Right),
        ("linux", Side::Left),
        (BECAUSE, Side::Left),
    ])
    .fit(shown.width, &[BECAUSE, "core", "subprogs", "attach_type"]);
    for program in &overview.programs {
        let Some(code) = object.program_defs().get(program.id) else {
            continue;
        };
        let need = latest(overview.needs_of(program));
        table.row([
            code.name.to_string(),
            section(code),
            code.kind.map_or("-", |kind| kind.name()).to_owned(),
            code.attach.map_or("-", |attach| attach.name()).to_owned(),
            program.slots.to_string(),
            program.functions.len().to_string(),
            program.stack.to_string(),
            program.relocations.to_string(),
            release(need),
            because(shown, need),
        ]);
    }
    heading(text, "programs");
    table.write(text, shown.most(ROWS), shown.hints.rest);
}

/// The section, with the question mark of programs that are not loaded.
pub(super) fn section(code: &ProgramDef<'_>) -> String {
    let mark = if code.autoload { "" } else { "?" };
    format!("{mark}{}", code.section_name)
}

/// The release that has what is needed.
fn release(need: Option<&Requirement>) -> String {
    let since = need.and_then(|need| need.since);
    since.map_or_else(|| "-".to_owned(), |since| since.release.to_string())
}

/// The feature that needs the release.
fn because(shown: &Shown<'_, '_>, need: Option<&Requirement>) -> String {
    let need = need.filter(|need| need.since.is_some());
    need.map_or_else(String::new, |need| words(shown.object, need))
}

fn maps(shown: &Shown<'_, '_>, text: &mut String) {
    let Shown {
        object, overview, ..
    } = shown;
    if overview.maps.is_empty() {
        return;
    }
    let mut table = Table::new(&[
        ("name", Side::Left),
        ("type", Side::Left),
        ("key", Side::Left),
        ("value", Side::Left),
        ("max_entries", Side::Right),
        ("flags", Side::Right),
        ("linux", Side::Left),
        (BECAUSE, Side::Left),
    ])
    .fit(shown.width, &[BECAUSE, "flags"]);
    for ((_, map), needs) in object.maps().iter().zip(&overview.maps) {
        let params = map.params();
        let number = || format!("type {}", params.map_type);
        let kind = params.kind();
        let need = latest(needs.iter());
        table.row([
            named(map),
            kind.map_or_else(number, |kind| kind.name().to_owned()),
            format!("{}B", params.key_size),
            format!("{}B", params.value_size),
            params.max_entries.to_string(),
            format!("{:#x}", params.flags.0),
            release(need),
            because(shown, need),
        ]);
    }
    heading(text, "maps");
    table.write(text, shown.most(ROWS), shown.hints.rest);
}

fn named(map: &Map<'_>) -> String {
    let mut name = map.name().to_owned();
    if let Some(inner) = map.inner() {
        let kind = inner.kind().map_or("?", |kind| kind.name());
        let _ = write!(name, " of {kind}");
    }
    if let Some(pin) = &map.pin {
        let _ = write!(name, " @ {pin}");
    }
    if !map.autocreate {
        name.push_str(" (not created)");
    }
    name
}

fn externs(shown: &Shown<'_, '_>, text: &mut String) {
    let externs: Vec<_> = shown.object.externs().iter().collect();
    if externs.is_empty() {
        return;
    }
    let mut table = Table::new(&[
        ("name", Side::Left),
        ("kind", Side::Left),
        ("must be there", Side::Left),
        ("linux", Side::Left),
    ]);
    for wanted in externs {
        let kind = extern_kind(wanted.kind);
        let since = match wanted.kind {
            ExternKind::Function(_) => spec::since::kfunc(&wanted.name),
            _ => None,
        };
        let is_ours = BitOp::ALL.iter().any(|op| op.name() == wanted.name);
        let is_ours = is_ours && matches!(wanted.kind, ExternKind::Function(_));
        let release = match since {
            Some(since) => since.release.to_string(),
            None if is_ours => "none: a bit operation of Beebox".to_owned(),
            None => "-".to_owned(),
        };
        let strong = if wanted.weak { "no (weak)" } else { "yes" };
        table.row([
            wanted.name.clone(),
            kind.to_owned(),
            strong.to_owned(),
            release,
        ]);
    }
    heading(text, "externs");
    table.write(text, shown.most(ROWS), shown.hints.rest);
}

pub(super) fn extern_kind(kind: ExternKind) -> &'static str {
    match kind {
        ExternKind::Config(_) => "kconfig",
        ExternKind::Address => "ksym",
        ExternKind::Variable(_) => "typed ksym",
        ExternKind::Function(_) => "kfunc",
    }
}

fn core(shown: &Shown<'_, '_>, text: &mut String) {
    let relocations = relocations(shown.object);
    if relocations.is_empty() {
        return;
    }
    let total: usize = relocations.values().sum();
    heading(text, &format!("CO-RE relocations ({total})"));
    let mut parts: Vec<String> = relocations
        .iter()
        .map(|(what, times)| match times {
            1 => what.clone(),
            _ => format!("{what} × {times}"),
        })
        .collect();
    let most = shown.most(FEW);
    if let Some(more @ 1..) = parts.len().checked_sub(most) {
        parts.truncate(most);
        parts.push(format!("… and {more} more{}", shown.hints.rest));
    }
    for part in parts {
        let _ = writeln!(text, "  {part}");
    }
}

fn needs(shown: &Shown<'_, '_>, text: &mut String) {
    let Shown {
        object, overview, ..
    } = shown;
    let needs = overview.needs();
    let mut table = Table::new(&[
        ("linux", Side::Left),
        ("has", Side::Left),
        ("used at", Side::Left),
        ("source", Side::Left),
    ])
    .fit(shown.width, &["source"]);
    let known = needs.iter().filter(|need| need.since.is_some());
    let unknown = needs.iter().filter(|need| need.since.is_none());
    for need in known.chain(unknown) {
        let place = need.site.and_then(|site| Place::of(object, site));
        let release = need.since.map(|since| since.release.to_string());
        let source = need.since.map(|since| since.source.to_string());
        table.row([
            release.unwrap_or_else(|| "?".to_owned()),
            words(object, need),
            place.map_or_else(String::new, |place| place.to_string()),
            source.unwrap_or_default(),
        ]);
    }
    if !needs.is_empty() {
        heading(text, "since which release Linux has what is used");
        table.write(text, shown.most(FEW), shown.hints.rest);
    }
}

/// Requirements of an object that this release lacks, with the first place of each; one line if
/// there is nothing.
pub fn needs_newer_text(shown: &Shown<'_, '_>, release: Release) -> String {
    let needs = shown.overview.needs();
    let file = shown.file;
    let mut newer = Table::new(&[
        ("linux", Side::Left),
        ("has", Side::Left),
        ("used at", Side::Left),
    ]);
    let mut count = 0;
    for need in &needs {
        let since = need
            .since
            .filter(|since| since.release > release && !need.is_guarded);
        let Some(since) = since else {
            continue;
        };
        let place = need.site.and_then(|site| Place::of(shown.object, site));
        newer.row([
            since.release.to_string(),
            words(shown.object, need),
            place.map_or_else(String::new, |place| place.to_string()),
        ]);
        count += 1;
    }
    let oldest = match oldest(&needs) {
        Some(release) => format!("needs Linux {release}"),
        None => "needs nothing that has a known release".to_owned(),
    };
    if count == 0 {
        return format!("{file}: {oldest}\n");
    }
    let mut text = format!("{file}: {oldest}, newer than {release}\n");
    newer.write(&mut text, usize::MAX, "");
    text
}

fn link_report(shown: &Shown<'_, '_>, text: &mut String) {
    let Some((target, link_report)) = shown.link_report else {
        return;
    };
    heading(text, &format!("linked for {}", target.kernel.name()));
    if let Some(assumed) = &target.assumed {
        let _ = writeln!(text, "  {assumed}");
    }
    let red = AnsiColor::Red.on_default();
    let refused = |text: &mut String, error: &Error| {
        let _ = writeln!(text, "  {red}{error}{red:#}");
    };
    if let Some(error) = link_report
        .refusal
        .as_ref()
        .filter(|_| link_report.weak_externs)
    {
        refused(text, error);
        let _ = writeln!(
            text,
            "  libbpf loads no program of the object; linked with externs that the kernel lacks as weak ones"
        );
    }
    let mut fine = 0;
    let most = shown.most(ROWS);
    let mut lines = 0;
    for program in &link_report.programs {
        let code = shown.object.program_defs().get(program.id);
        let Some(code) = code else {
            continue;
        };
        if let Some(error) = program.refusal() {
            lines += 1;
            if lines <= most {
                refused(text, error);
            }
        }
        for reference in program.missing() {
            lines += 1;
            if lines <= most {
                let Missing { what, absence } =
                    Missing::of(shown.object, reference.to, target.kernel);
                let what = match absence.contains(&what) {
                    true => String::new(),
                    false => format!("{what}: "),
                };
                let _ = writeln!(
                    text,
                    "  {}, instruction {}: {what}{absence}: the verifier refuses the program if it reaches this",
                    code.name, reference.slot
                );
            }
        }
        fine += usize::from(program.refusal().is_none() && program.missing().next().is_none());
    }
    if let Some(more @ 1..) = lines.checked_sub(most) {
        let _ = writeln!(text, "  … and {more} more{}", shown.hints.rest);
    }
    if let Some(error) = &link_report.refusal
        && lines == 0
        && !link_report.weak_externs
    {
        refused(text, error);
    }
    let all = link_report.programs.len();
    let _ = writeln!(
        text,
        "  {fine} of {} linked with all references resolved",
        count(all, "program")
    );
    let undecided = link_report
        .programs
        .iter()
        .filter(|program| program.is_undecided());
    if let undecided @ 1.. = undecided.count() {
        let _ = writeln!(
            text,
            "  {} undecided: the data of the kernel leave out what they refer to{}",
            count(undecided, "program"),
            shown.hints.undecided
        );
    }
}

fn sizes(shown: &Shown<'_, '_>, text: &mut String) {
    let sizes = Sizes::of(shown.object);
    let kinds: Vec<String> = kinds(shown.object)
        .iter()
        .map(|(word, number)| count(*number, word))
        .collect();
    heading(text, "sizes in bytes");
    let _ = writeln!(
        text,
        "  file {}: instructions {}, data {}, .BTF {}, .BTF.ext {}, DWARF {}; zero-initialised data, not in the file, {}",
        shown.size,
        sizes.instructions,
        sizes.data,
        sizes.types,
        sizes.btf_ext,
        sizes.debug,
        sizes.zeros,
    );
    if !kinds.is_empty() {
        let _ = writeln!(text, "  types: {}", kinds.join(", "));
    }
    let lines = shown.object.btf_ext();
    let lines = lines.map(|ext| {
        ext.lines()
            .map(|group| group.records().len())
            .sum::<usize>()
    });
    if let Some(lines @ 1..) = lines {
        let files = source_files(shown);
        let _ = writeln!(text, "  source: {lines} lines of {}", files.join(", "));
    }
}

/// The files that instructions come from, at most three.
fn source_files(shown: &Shown<'_, '_>) -> Vec<String> {
    const MOST: usize = 3;
    let mut files: Vec<String> = Vec::new();
    if let Some((types, ext)) = shown.object.btf().zip(shown.object.btf_ext()) {
        for line in ext.lines().flat_map(|group| group.records()) {
            let file = types.string(line.file).to_string();
            let file = base(&file).to_owned();
            if !files.contains(&file) {
                if files.len() == MOST {
                    files.push("others".to_owned());
                    return files;
                }
                files.push(file);
            }
        }
    }
    files
}
