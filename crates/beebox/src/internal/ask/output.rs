//! Answers of a kernel beside ours, for people and as data.

use std::fmt::Write as _;

use report::aligned;
use report::run::verifier_verdict_style;
use report::terminal::fold;
use serde_json::{Value, json};

use super::compare::{Asked, first_difference};

/// A table, and below it reasons and what differs.
pub fn text(asked: &[Asked<'_>], version: &str, with_logs: bool, width: Option<usize>) -> String {
    let mut cells: Vec<Vec<String>> = vec![
        vec![
            "program",
            &format!("Linux {version}"),
            "insns",
            "states",
            "Beebox",
            "insns",
            "states",
            "",
        ]
        .into_iter()
        .map(str::to_owned)
        .collect(),
    ];
    for asked in asked {
        let counts = asked.answer().and_then(|answer| answer.counts());
        let theirs = counts.map_or([String::new(), String::new()], |(insns, states)| {
            [insns.to_string(), states.to_string()]
        });
        let [insns, states] = theirs;
        let row = asked.row;
        let differ = asked.differences();
        cells.push(vec![
            format!("{}/{}", row.file_name, row.prog_name),
            asked.verdict_word().to_owned(),
            insns,
            states,
            asked.our_verdict_word().to_owned(),
            row.total_insns.to_string(),
            row.total_states.to_string(),
            match differ.is_empty() {
                true => String::new(),
                false => format!("differs: {}", differ.join(", ")),
            },
        ]);
    }
    let mut text = aligned(&cells, &[2, 3, 5, 6], |_, _, cell| {
        verifier_verdict_style(cell)
    });
    for asked in asked {
        let lines = reasons(asked);
        if !lines.is_empty() {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "\n{}/{}", asked.row.file_name, asked.row.prog_name);
        }
        for line in lines {
            let _ = writeln!(text, "  {line}");
        }
    }
    let same = asked.iter().filter(|asked| asked.answer().is_some());
    let differ = asked.iter().filter(|asked| !asked.differences().is_empty());
    let differ = differ.count();
    let answered = same.count();
    let _ = writeln!(
        text,
        "\n{answered} of {} answered, {differ} differ",
        asked.len()
    );
    let mut text = width.map_or(text.clone(), |width| fold(&text, width));
    for asked in asked.iter().filter(|_| with_logs) {
        logs(asked, &mut text);
    }
    text
}

/// Why a program is refused, by both.
fn reasons(asked: &Asked<'_>) -> Vec<String> {
    let ours = asked.row.reason.trim();
    let mut lines = Vec::new();
    match &asked.theirs {
        Some(Ok(answer)) => {
            if answer.btf_errno != 0 {
                let errno = answer.btf_errno;
                lines.push(format!(
                    "kernel: refuses the BTF (error {errno}): loaded without"
                ));
            }
            let theirs = answer.reason();
            match answer.is_accepted() {
                true => {}
                false if theirs == ours => lines.push(format!("both: {theirs}")),
                false => lines.push(format!("kernel: {theirs}")),
            }
            if !ours.is_empty() && (answer.is_accepted() || theirs != ours) {
                lines.push(format!("ours: {ours}"));
            }
        }
        Some(Err(fault)) => lines.push(fault.to_string()),
        None => lines.push(ours.to_owned()),
    }
    lines
}

/// The kernel's log, and where ours begins to differ.
fn logs(asked: &Asked<'_>, text: &mut String) {
    let Some(answer) = asked.answer() else {
        return;
    };
    let _ = writeln!(
        text,
        "\n{}/{}: the kernel's log",
        asked.row.file_name, asked.row.prog_name
    );
    if answer.log_left_out > 0 {
        let _ = writeln!(
            text,
            "({} bytes before this are left out)",
            answer.log_left_out
        );
    }
    text.push_str(&answer.log);
    match first_difference(&answer.log, &asked.row.log) {
        None => text.push_str("our log is the same\n"),
        Some((line, theirs, ours)) => {
            let _ = writeln!(
                text,
                "our log differs from line {line} on\n  kernel: {theirs}\n  ours: {ours}"
            );
        }
    }
}

/// A record for each program.
pub fn records(asked: &[Asked<'_>], version: &str, with_logs: bool) -> Vec<Value> {
    let records = asked.iter().map(|asked| {
        let row = asked.row;
        let answer = asked.answer();
        let counts = answer.and_then(|answer| answer.counts());
        let reason = match &asked.theirs {
            Some(Err(fault)) => Some(fault.to_string()),
            _ => answer.map(|answer| answer.reason()),
        };
        let own_reason = row.reason.trim();
        let mut kernel = json!({
            "version": version,
            "verifier_verdict": asked.verdict_name(),
            "errno": answer.map(|answer| answer.errno),
            "total_insns": counts.map(|(insns, _)| insns),
            "total_states": counts.map(|(_, states)| states),
            "reason": reason.filter(|reason| !reason.is_empty()),
        });
        let mut ours = json!({
            "verifier_verdict": row.verdict.name(),
            "total_insns": row.total_insns,
            "total_states": row.total_states,
            "reason": Some(own_reason).filter(|reason| !reason.is_empty()),
        });
        if with_logs {
            kernel["log"] = answer.map(|answer| answer.log.as_str()).into();
            ours["log"] = row.log.as_str().into();
        }
        json!({
            "file_name": row.file_name,
            "prog_name": row.prog_name,
            "kernel": kernel,
            "ours": ours,
            "differs": asked.differences(),
        })
    });
    records.collect()
}
