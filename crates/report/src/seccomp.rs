//! Renderers of seccomp tables and differences, as text and as JSON.

use std::fmt::Write;

use anstyle::{AnsiColor, Style};
use classic::SeccompData;
use seccomp::{Action, Arch, Case, Condition, Difference, Finding, Group, Others, Table, calls};
use serde_json::{Value, json};

/// Columns that lists are wrapped to.
const WIDTH: usize = 80;

/// The colour of a filter that the kernel installs.
pub const ACCEPTED: Style = AnsiColor::Green.on_default();
/// The colour of one that it refuses.
pub const REFUSED: Style = AnsiColor::Red.on_default();

/// The colour of an action: allowed, delegated, denied, fatal.
fn style(action: Action) -> Style {
    match action.effect() {
        Action::Allow => AnsiColor::Green.on_default(),
        Action::Log | Action::Trace(_) | Action::UserNotif => AnsiColor::Cyan.on_default(),
        Action::Errno(_) => AnsiColor::Yellow.on_default(),
        _ => AnsiColor::Red.on_default(),
    }
}

/// An action in its colour, for a terminal.
pub fn action_text(action: Action) -> String {
    let style = style(action);
    format!("{style}{action}{style:#}")
}

fn heading(text: &str) -> String {
    let bold = Style::new().bold();
    format!("{bold}{text}{bold:#}")
}

/// An action, with the expression for its data where they are computed.
fn case_action(case: &Case) -> String {
    match &case.data {
        Some(data) => format!("{}({data})", case.action.name()),
        None => case.action.to_string(),
    }
}

/// The table of one architecture, for people: calls with conditions first, the default
/// last. `all` lists the calls of the default too; without it `hint` is behind their number.
pub fn table_text(table: &Table, all: bool, hint: &str) -> String {
    let mut text = String::new();
    let title = format!("{} (arch {:#010x})", table.arch, table.arch.audit());
    let _ = writeln!(text, "{}", heading(&title));
    let is_conditional = |group: &&Group| group.cases.len() > 1;
    let (conditional, unconditional): (Vec<_>, Vec<_>) = table
        .groups
        .iter()
        .filter(|group| !group.is_default)
        .partition(is_conditional);
    if !conditional.is_empty() {
        let _ = writeln!(text, "\n  {}", heading("by argument"));
    }
    for group in conditional {
        let names: Vec<&str> = group.calls.iter().map(|&(_, name)| name).collect();
        wrap(&mut text, "    ", &names);
        cases(&mut text, "      ", &group.cases);
    }
    for group in unconditional {
        let _ = write!(text, "\n  {}", cases_heading(&group.cases));
        let _ = writeln!(text, "  {}", number_of_calls(group));
        names_of(&mut text, group);
    }
    let _ = writeln!(text, "\n  {}", heading("numbers without a name"));
    others(&mut text, "    ", &table.others, "every number");
    for group in table.groups.iter().filter(|group| group.is_default) {
        let _ = writeln!(text, "\n  {}", heading("by default"));
        let count = number_of_calls(group);
        let hint = if all { "" } else { hint };
        match &group.cases[..] {
            [_] => {
                let _ = writeln!(text, "    {}  {count}{hint}", cases_heading(&group.cases));
            }
            several => {
                let _ = writeln!(text, "    {count}{hint}");
                cases(&mut text, "      ", several);
            }
        }
        if all {
            names_of(&mut text, group);
        }
    }
    text
}

/// The cases of one call, for people.
pub fn call_cases_text(arch: Arch, nr: u32, list: &[Case]) -> String {
    let name = match calls::name(arch, nr) {
        Some(name) => name.to_owned(),
        None => seccomp::number_text(nr.into()),
    };
    let mut text = format!("{}\n", heading(&format!("{arch} {name}")));
    cases(&mut text, "  ", list);
    text
}

/// The action of a group whose calls all get the same.
fn cases_heading(cases: &[Case]) -> String {
    let Some(case) = cases.first() else {
        return String::new();
    };
    let style = style(case.action);
    format!("{style}{}{style:#}", case_action(case))
}

fn number_of_calls(group: &Group) -> String {
    match group.calls.len() {
        1 => "1 call".to_owned(),
        count => format!("{count} calls"),
    }
}

/// The names of a group's calls in alphabetical order.
fn names_of(text: &mut String, group: &Group) {
    let mut names: Vec<&str> = group.calls.iter().map(|&(_, name)| name).collect();
    names.sort_unstable();
    wrap(text, "    ", &names);
}

fn cases(text: &mut String, indent: &str, cases: &[Case]) {
    let width = cases
        .iter()
        .map(|case| case_action(case).chars().count())
        .max();
    for (at, case) in cases.iter().enumerate() {
        let action = case_action(case);
        let style = style(case.action);
        let pad = width.unwrap_or(0) - action.chars().count();
        let when = if cases.len() > 1 && at + 1 == cases.len() {
            "otherwise".to_owned()
        } else {
            case.when.to_string()
        };
        let _ = writeln!(text, "{indent}{style}{action}{style:#}{:pad$}  {when}", "");
    }
}

/// Cases of unsupported architectures.
pub fn foreign_text(list: &[Others]) -> String {
    let mut text = heading("other architectures");
    text.push('\n');
    others(
        &mut text,
        "  ",
        list,
        "every architecture without a name here",
    );
    text
}

fn others(text: &mut String, indent: &str, list: &[Others], all: &str) {
    for others in list {
        let which = if others.is_all { all } else { &others.which };
        match &others.cases[..] {
            [case] => {
                let style = style(case.action);
                let action = case_action(case);
                let _ = writeln!(text, "{indent}{style}{action}{style:#}  {which}");
            }
            several => {
                let _ = writeln!(text, "{indent}{which}");
                cases(text, &format!("{indent}  "), several);
            }
        }
    }
}

fn wrap(text: &mut String, indent: &str, words: &[&str]) {
    let mut column = usize::MAX;
    for word in words {
        if column.saturating_add(word.len() + 1) > WIDTH {
            if column != usize::MAX {
                text.push('\n');
            }
            text.push_str(indent);
            column = indent.len();
        } else {
            text.push(' ');
            column += 1;
        }
        text.push_str(word);
        column += word.len();
    }
    if column != usize::MAX {
        text.push('\n');
    }
}

/// A call as arguments of `beebox seccomp eval`.
pub fn call_text(data: &SeccompData) -> String {
    let arch = arch_of(data);
    let nr = data.nr as u32;
    let name = arch.and_then(|arch| calls::name(arch, nr));
    let mut text = match arch {
        Some(arch) => arch.to_string(),
        None => format!("arch {:#010x}", data.arch),
    };
    let _ = match name {
        Some(name) => write!(text, " {name}("),
        None => write!(text, " {}(", seccomp::number_text(nr.into())),
    };
    let given = data.args.iter().rposition(|&arg| arg != 0);
    let given = given.map_or(0, |last| last + 1);
    for (at, &arg) in data.args[..given].iter().enumerate() {
        let comma = if at > 0 { ", " } else { "" };
        let _ = write!(text, "{comma}{}", seccomp::number_text(arg));
    }
    text.push(')');
    if data.instruction_pointer != 0 {
        let _ = write!(text, " at {:#x}", data.instruction_pointer);
    }
    text
}

/// The architecture that a call belongs to, if it has a name.
pub fn arch_of(data: &SeccompData) -> Option<Arch> {
    let nr = data.nr as u32;
    let is_x32 = (seccomp::X32_BIT..2 * seccomp::X32_BIT).contains(&nr);
    Arch::ALL.iter().copied().find(|arch| {
        arch.audit() == data.arch && (*arch == Arch::X32) == (is_x32 && arch.has_x32_twin())
    })
}

/// Differences of two filters as text.
pub fn differences_text(list: &[Difference], names: [&str; 2]) -> String {
    let mut text = String::new();
    let mut arch = None;
    for difference in list {
        if arch != Some(difference.arch) {
            if arch.is_some() {
                text.push('\n');
            }
            arch = Some(difference.arch);
            let title = difference.arch.map_or("other architectures", Arch::name);
            let _ = writeln!(text, "{}", heading(title));
        }
        let names_of: Vec<&str> = difference.calls.iter().map(|&(_, name)| name).collect();
        wrap(&mut text, "  ", &names_of);
        match &difference.others {
            Some(_) if difference.is_all_others && difference.arch.is_some() => {
                let _ = writeln!(text, "  every number without a name");
            }
            Some(which) => {
                let _ = writeln!(text, "  {which}");
            }
            None => {}
        }
        for contrast in &difference.contrasts {
            if !contrast.when.is_always() {
                let _ = writeln!(text, "    when {}", contrast.when);
            }
            let (first, second) = (style(contrast.first), style(contrast.second));
            let _ = writeln!(
                text,
                "    {first}{}{first:#} → {second}{}{second:#}",
                contrast.first, contrast.second
            );
            let _ = match &contrast.example {
                Some(data) => writeln!(text, "    for instance {}", call_text(data)),
                None => writeln!(text, "    undecided: no call found that shows it"),
            };
        }
    }
    if list.is_empty() {
        let _ = writeln!(
            text,
            "{} and {} do the same with every call",
            names[0], names[1]
        );
    }
    text
}

/// The table of one architecture, for programs.
pub fn table_json(table: &Table) -> Value {
    let mut list = Vec::new();
    for group in &table.groups {
        for &(nr, name) in &group.calls {
            list.push(json!({
                "name": name,
                "nr": nr,
                "default": group.is_default,
                "cases": group.cases.iter().map(case_json).collect::<Vec<_>>(),
            }));
        }
    }
    list.sort_by_key(|call| call["nr"].as_u64());
    json!({
        "arch": table.arch.name(),
        "audit_arch": table.arch.audit(),
        "calls": list,
        "other_numbers": others_json(&table.others),
    })
}

/// The cases of single calls of one architecture, for programs.
pub fn call_cases_json(arch: Arch, list: &[(u32, Vec<Case>)]) -> Value {
    let calls = list.iter().map(|(nr, cases)| {
        json!({
            "name": calls::name(arch, *nr),
            "nr": nr,
            "cases": cases.iter().map(case_json).collect::<Vec<_>>(),
        })
    });
    json!({
        "arch": arch.name(),
        "audit_arch": arch.audit(),
        "calls": calls.collect::<Vec<_>>(),
    })
}

/// Cases of unnamed numbers or unsupported architectures as JSON.
pub fn others_json(list: &[Others]) -> Value {
    let others = list.iter().map(|others| {
        json!({
            "which": others.which,
            "is_all": others.is_all,
            "cases": others.cases.iter().map(case_json).collect::<Vec<_>>(),
        })
    });
    others.collect()
}

fn case_json(case: &Case) -> Value {
    json!({
        "action": case_action(case),
        "return": match case.data {
            Some(_) => Value::Null,
            None => json!(case.action.to_return()),
        },
        "when": case.when.to_string(),
        "terms": terms_json(&case.when),
        "example": case.example.as_ref().map(call_json),
    })
}

fn terms_json(condition: &Condition) -> Value {
    condition.terms().map(Value::from).collect()
}

/// A call, for programs.
pub fn call_json(data: &SeccompData) -> Value {
    let nr = data.nr as u32;
    json!({
        "audit_arch": data.arch,
        "nr": nr,
        "name": arch_of(data).and_then(|arch| calls::name(arch, nr)),
        "instruction_pointer": data.instruction_pointer,
        "args": data.args,
    })
}

/// Differences of two filters as JSON.
pub fn differences_json(list: &[Difference]) -> Value {
    let differences = list.iter().map(|difference| {
        let contrasts = difference.contrasts.iter().map(|contrast| {
            json!({
                "first": contrast.first.to_string(),
                "second": contrast.second.to_string(),
                "when": contrast.when.to_string(),
                "terms": terms_json(&contrast.when),
                "example": contrast.example.as_ref().map(call_json),
            })
        });
        let calls = difference.calls.iter();
        json!({
            "arch": difference.arch.map(Arch::name),
            "calls": calls.map(|&(nr, name)| json!({"nr": nr, "name": name})).collect::<Vec<_>>(),
            "others": difference.others,
            "contrasts": contrasts.collect::<Vec<_>>(),
        })
    });
    differences.collect()
}

/// A mistake in one or two lines, with its name.
pub fn finding_text(finding: &Finding) -> String {
    let bold = AnsiColor::Yellow.on_default();
    let name = finding_name(finding);
    let mut text = format!("{bold}{name}{bold:#}: {}", finding_sentence(finding));
    if let Some(example) = finding_example(finding) {
        let _ = write!(text, "\n  for instance {}", call_text(example));
    }
    text
}

/// A mistake, for programs.
pub fn finding_json(finding: &Finding) -> Value {
    json!({
        "name": finding_name(finding),
        "message": finding_sentence(finding),
        "example": finding_example(finding).map(call_json),
    })
}

fn finding_name(finding: &Finding) -> &'static str {
    match finding {
        Finding::NoArchCheck => "no-arch-check",
        Finding::ForeignArchAllowed { .. } => "foreign-arch-allowed",
        Finding::X32Allowed { .. } => "x32-allowed",
        Finding::DefaultAllow { .. } => "default-allow",
        Finding::LowHalfOnly { .. } => "low-half-only",
        Finding::UpperHalfEvades { .. } => "upper-half-evades",
        Finding::SiblingAllowed { .. } => "sibling-allowed",
        Finding::Unreachable { .. } => "unreachable",
        Finding::UnknownAction { .. } => "unknown-action",
        Finding::ErrnoTooLarge { .. } => "errno-too-large",
    }
}

fn finding_example(finding: &Finding) -> Option<&SeccompData> {
    match finding {
        Finding::ForeignArchAllowed { example }
        | Finding::DefaultAllow { example, .. }
        | Finding::X32Allowed { example, .. }
        | Finding::UpperHalfEvades { example, .. } => example.as_ref(),
        _ => None,
    }
}

fn finding_sentence(finding: &Finding) -> String {
    match finding {
        Finding::NoArchCheck => "the filter does not test the architecture: a system call of \
            another one (int 0x80 on x86_64) is taken for the call with the same number"
            .to_owned(),
        Finding::ForeignArchAllowed { .. } => {
            "system calls of architectures that the filter does not test are allowed".to_owned()
        }
        Finding::X32Allowed { calls, .. } => {
            let count = calls.len();
            let shown: Vec<&str> = calls.iter().copied().take(6).collect();
            let more = if count > shown.len() { ", …" } else { "" };
            format!(
                "{count} system {} refused on x86_64 but allowed under the x32 number \
                 (number + 0x40000000): {}{more}",
                if count == 1 { "call is" } else { "calls are" },
                shown.join(", ")
            )
        }
        Finding::DefaultAllow { arch, numbers, .. } => {
            let which = match numbers.as_str() {
                "all" => "every number without a name".to_owned(),
                numbers => numbers.to_owned(),
            };
            format!(
                "on {arch}, system calls without a name here are allowed, those of later \
                 kernels included: {which}"
            )
        }
        Finding::LowHalfOnly { arch, call, arg } => {
            format!("on {arch}, only the low 32 bits of {call}'s 64-bit arg{arg} are compared")
        }
        Finding::UpperHalfEvades {
            arch, call, arg, ..
        } => format!(
            "on {arch}, the filter compares the upper 32 bits of {call}'s arg{arg}, which the \
             kernel ignores: with one of them set, a refused call is allowed"
        ),
        Finding::SiblingAllowed {
            arch,
            refused,
            allowed,
        } => format!(
            "on {arch}, {refused} is refused for some arguments or all, \
             but {allowed}, which can do the same, is allowed"
        ),
        Finding::Unreachable { insns, .. } => {
            let shown: Vec<String> = insns.iter().take(8).map(usize::to_string).collect();
            let more = if insns.len() > shown.len() {
                ", …"
            } else {
                ""
            };
            format!(
                "no system call reaches instruction {}{more}",
                shown.join(", ")
            )
        }
        Finding::UnknownAction { insn, value, .. } => format!(
            "instruction {insn} returns {value:#010x}, an unknown action: the kernel kills the \
             process"
        ),
        Finding::ErrnoTooLarge { insn, errno, .. } => {
            format!("instruction {insn} returns errno {errno}, which the kernel caps to 4095")
        }
    }
}
