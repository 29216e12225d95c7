//! Coverage as pages: one with all files, one for each file with its source. They need nothing else and
//! follow the colours of the system.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::{BranchCoverage, Coverage, FileCoverage, Share, Totals};
use crate::xml::escaped;

const STYLE: &str = "\
:root{color-scheme:light dark;--hit:#2a8a3a22;--miss:#d0303030;--part:#d0a01033;--dead:#8883}
body{font:15px/1.4 system-ui,sans-serif;margin:2em auto;max-width:75em;padding:0 1em}
h1{font-size:1.3em}table{border-collapse:collapse}td,th{padding:.15em .8em;text-align:right}
td:first-child,th:first-child{text-align:left}a{color:inherit}
table.source{font:13px/1.5 ui-monospace,monospace;width:100%}
.source td{padding:0 .7em;vertical-align:top;white-space:pre-wrap}
.source td.n,.source td.c{color:#888;text-align:right;white-space:nowrap;width:1%}
.source td.b{white-space:nowrap;width:1%}.source td.t{text-align:left;tab-size:4}
tr.hit td{background:var(--hit)}tr.miss td{background:var(--miss)}
tr.part td{background:var(--part)}tr.dead td{background:var(--dead);color:#888}
.legend span{padding:.1em .6em;margin-right:.6em}
";

/// The pages by the names of their files. `source` is the text of a source file, if it is known.
pub(super) fn html(
    coverage: &Coverage,
    source: &dyn Fn(&str) -> Option<String>,
) -> BTreeMap<String, String> {
    let files = coverage.files.iter().enumerate();
    let pages = files.map(|(number, (name, file))| {
        let text = page(name, file, source(name).as_deref());
        (page_name(number, name), text)
    });
    let index = ("index.html".to_owned(), index(coverage));
    [index].into_iter().chain(pages).collect()
}

/// Name of the page of a file, which is unlike that of any other.
fn page_name(number: usize, name: &str) -> String {
    let base = name.rsplit('/').next().unwrap_or(name);
    let is_plain = |each: char| each.is_ascii_alphanumeric() || matches!(each, '.' | '-' | '_');
    let base: String = base.chars().filter(|each| is_plain(*each)).collect();
    format!("{number}-{base}.html")
}

fn head(title: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n<meta \
         name=\"viewport\" content=\"width=device-width\"><title>{0}</title>\n\
         <style>{STYLE}</style></head><body>\n<h1>{0}</h1>\n",
        escaped(title)
    )
}

fn cells(totals: Totals) -> String {
    let share = |share: Share| {
        format!(
            "<td>{} of {}</td><td>{}</td>",
            share.hit,
            share.found,
            share.percent()
        )
    };
    [
        share(totals.lines),
        share(totals.branches),
        share(totals.functions),
        format!("<td>{}</td>", totals.unreachable),
    ]
    .concat()
}

const HEADINGS: &str = "<th>lines</th><th></th><th>branches</th><th></th><th>functions</th>\
                        <th></th><th>lines that no run can reach</th>";

fn index(coverage: &Coverage) -> String {
    let mut out = head("Coverage");
    let _ = writeln!(out, "<table><tr><th>file</th>{HEADINGS}</tr>");
    for (number, (name, file)) in coverage.files.iter().enumerate() {
        let _ = writeln!(
            out,
            "<tr><td><a href=\"{}\">{}</a></td>{}</tr>",
            page_name(number, name),
            escaped(name),
            cells(file.totals())
        );
    }
    let _ = writeln!(
        out,
        "<tr><td>all</td>{}</tr></table>\n</body></html>",
        cells(coverage.totals())
    );
    out
}

fn page(name: &str, file: &FileCoverage, source: Option<&str>) -> String {
    let mut out = head(name);
    let _ = writeln!(
        out,
        "<p><a href=\"index.html\">all files</a></p>\n<table><tr><th></th>{HEADINGS}</tr>\
         <tr><td></td>{}</tr></table>\n<p class=\"legend\">\
         <span style=\"background:var(--hit)\">executed</span>\
         <span style=\"background:var(--part)\">a branch went one way only</span>\
         <span style=\"background:var(--miss)\">not executed</span>\
         <span style=\"background:var(--dead)\">no run can reach it</span></p>\n\
         <table class=\"source\">",
        cells(file.totals())
    );
    match source {
        Some(source) => {
            for (number, text) in (1..).zip(source.lines()) {
                write_line(&mut out, file, number, text);
            }
        }
        // What the object has of it.
        None => {
            let mut before = None;
            for number in file.lines.keys() {
                if before.is_some_and(|before| before + 1 != *number) {
                    out.push_str("<tr><td class=\"n\">⋮</td></tr>\n");
                }
                before = Some(*number);
                let text = file.texts.get(number).map_or("", String::as_str);
                write_line(&mut out, file, *number, text);
            }
        }
    }
    out.push_str("</table>\n</body></html>\n");
    out
}

fn write_line(out: &mut String, file: &FileCoverage, number: u32, text: &str) {
    let line = file.lines.get(&number);
    let branches: Vec<&BranchCoverage> = file.branches_of(number).map(|(_, it)| it).collect();
    let is_partial = branches
        .iter()
        .any(|branch| branch.ways().any(|(_, count)| count == 0));
    let (class, count) = match line {
        None => ("", String::new()),
        Some(line) if !line.is_reachable => ("dead", "never".to_owned()),
        Some(line) if line.count == 0 => ("miss", "0".to_owned()),
        Some(line) if is_partial => ("part", line.count.to_string()),
        Some(line) => ("hit", line.count.to_string()),
    };
    let way = |count: Option<u64>| count.map_or("–".to_owned(), |count| count.to_string());
    let ways = branches
        .iter()
        .map(|it| format!("{}/{}", way(it.jumped), way(it.fell)));
    let title = match branches.is_empty() {
        true => "",
        false => " title=\"jumps: taken/not taken; – is a way that no run can take\"",
    };
    let _ = writeln!(
        out,
        "<tr class=\"{class}\" id=\"L{number}\"><td class=\"n\">{number}</td><td class=\"c\">{count}\
         </td><td class=\"b\"{title}>{}</td><td class=\"t\">{}</td></tr>",
        ways.collect::<Vec<_>>().join(" "),
        escaped(text)
    );
}
