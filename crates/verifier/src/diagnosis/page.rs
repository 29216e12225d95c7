//! The text of a report: headings, wrapped paragraphs, places in source and instructions.

use std::fmt::Write as _;

use isa::ebpf::Insn;
use program::LineInfo;

use crate::analysis::Analysis;
use crate::input::Input;
use crate::log::insn_text;

/// Columns of a line of text.
const TEXT: usize = 100;
/// Columns of a line of source.
const SOURCE: usize = 88;
/// Columns between tab stops.
const TAB: usize = 8;
/// Lines and instructions shown before and behind the one at hand.
const AROUND: i64 = 2;
/// The mark of the line at hand, and of the others.
const MARKS: [&str; 2] = ["    ", ">>> "];

/// A report while it is written.
pub(super) struct Page<'a> {
    input: &'a Input<'a>,
    analysis: &'a Analysis,
    text: String,
}

impl<'a> Page<'a> {
    pub(super) fn new(input: &'a Input<'a>, analysis: &'a Analysis) -> Page<'a> {
        Page {
            input,
            analysis,
            text: String::new(),
        }
    }

    pub(super) fn finish(mut self) -> String {
        self.text.push('\n');
        self.text
    }

    pub(super) fn header(&mut self, category: &str, problem: &str) {
        let (first, rest) = problem.split_at(1);
        let first = first.to_ascii_uppercase();
        self.line(format_args!(
            "\nVerification failed: {category}: {first}{rest}"
        ));
    }

    pub(super) fn section(&mut self, title: &str) {
        self.line(format_args!("\n{title}:"));
    }

    pub(super) fn paragraph(&mut self, text: &str) {
        self.wrap("  ", "  ", text);
    }

    /// An empty line.
    pub(super) fn gap(&mut self) {
        self.text.push('\n');
    }

    pub(super) fn line(&mut self, text: std::fmt::Arguments<'_>) {
        // Writing to a String does not fail.
        let _ = writeln!(self.text, "{text}");
    }

    /// Writes text in lines, broken at spaces; `first` stands before the first, `next` before the
    /// others.
    fn wrap(&mut self, first: &str, next: &str, text: &str) {
        let (mut prefix, mut rest) = (first, text);
        while !rest.is_empty() {
            let room = TEXT.saturating_sub(prefix.len()).max(1);
            let line = rest.find('\n').unwrap_or(rest.len());
            let mut end = rest.floor_char_boundary(line.min(room));
            if end < line && !rest[end..].starts_with(' ') {
                let space = rest[..end].rfind(' ').filter(|space| *space > 0);
                end = space.unwrap_or(end);
            }
            self.line(format_args!("{prefix}{}", &rest[..end]));
            rest = rest[end..].trim_start_matches(' ');
            rest = rest.strip_prefix('\n').unwrap_or(rest);
            prefix = next;
        }
    }

    /// Writes where an instruction is, with `label: message` under its source line.
    pub(super) fn place(&mut self, insn: u32, label: &str, message: &str) {
        let message = format!("{label}: {message}");
        let lines = self.input.program.line_info();
        let at = lines.partition_point(|line| line.insn <= insn);
        let found = at.checked_sub(1).map(|at| lines[at]);
        let file = found.map(|line| self.file_of(&line)).unwrap_or_default();
        let Some(found) = found.filter(|_| !file.is_empty()) else {
            self.line(format_args!("  insn {insn}"));
            return self.without_source(insn, &message);
        };
        let subprogs = &self.analysis.subprogs;
        let subprog = subprogs
            .iter()
            .find(|it| (it.start..it.end).contains(&insn));
        let place = format!("{file}:{}:{}", found.line, found.column);
        match subprog.filter(|subprog| !subprog.name.is_empty()) {
            Some(subprog) => self.line(format_args!("  {} @ {place}", subprog.name)),
            None => self.line(format_args!("  {place}")),
        }
        let text = self.text_of(&found);
        if text.is_empty() {
            return self.without_source(insn, &message);
        }
        let of_subprog: Vec<LineInfo> = lines
            .iter()
            .filter(|line| subprog.is_none_or(|it| (it.start..it.end).contains(&line.insn)))
            .filter(|line| line.file == found.file)
            .copied()
            .collect();
        let number = i64::from(found.line);
        let width = digits(number + AROUND);
        let indent = indent_of(&text).min(SOURCE.saturating_sub(width + 8));
        self.line(format_args!("  Source context:"));
        for shown in number - AROUND..=number + AROUND {
            if shown <= 0 {
                self.line(format_args!("  "));
                continue;
            }
            let mut alike = of_subprog
                .iter()
                .filter(|line| i64::from(line.line) == shown)
                .map(|line| self.text_of(line));
            let source = alike.find(|text| !text.is_empty());
            let prefix = format!("{}{shown:width$} | ", MARKS[usize::from(shown == number)]);
            let room = SOURCE.saturating_sub(prefix.len());
            let source = cut(source.as_deref().unwrap_or(b"..."), room);
            self.line(format_args!("  {prefix}{source}"));
            if shown == number {
                self.annotate(width, indent, &message);
            }
        }
        self.insns(insn);
    }

    fn without_source(&mut self, insn: u32, message: &str) {
        self.annotate(0, 0, message);
        self.insns(insn);
    }

    fn annotate(&mut self, width: usize, indent: usize, message: &str) {
        let lane = format!("  {:1$} | {2:3$}", "", width + 4, "", indent);
        self.wrap(&format!("{lane}^-- "), &format!("{lane}    "), message);
    }

    fn insns(&mut self, insn: u32) {
        let insns = &self.input.insns;
        let width = digits(insns.len() as i64 - 1);
        self.line(format_args!("  Instruction context:"));
        for shown in i64::from(insn) - AROUND..=i64::from(insn) + AROUND {
            let found = usize::try_from(shown).ok().and_then(|at| insns.get(at));
            if found.is_some_and(|found| !matches!(found, Insn::Imm64High)) {
                let mark = MARKS[usize::from(shown == i64::from(insn))];
                let text = insn_text(self.input, shown as u32);
                self.line(format_args!("  {mark}{shown:width$} | {text}"));
            }
        }
    }

    fn file_of(&self, line: &LineInfo) -> String {
        let Some(btf) = self.input.program.btf() else {
            return String::new();
        };
        let path = btf.string(line.file).to_string_lossy().into_owned();
        path.rsplit('/').next().unwrap_or_default().to_owned()
    }

    fn text_of(&self, line: &LineInfo) -> Vec<u8> {
        let btf = self.input.program.btf();
        btf.map_or_else(Vec::new, |btf| btf.string(line.text).as_bytes().to_vec())
    }
}

/// Digits of a number that is not negative.
fn digits(number: i64) -> usize {
    number.max(0).to_string().len()
}

/// Columns before the first letter of a line.
fn indent_of(line: &[u8]) -> usize {
    let blank = line.iter().take_while(|byte| matches!(byte, b' ' | b'\t'));
    blank.fold(0, |column, byte| match byte {
        b'\t' => (column + 1usize).next_multiple_of(TAB),
        _ => column + 1,
    })
}

/// A line with spaces for tabs, shortened to so many columns.
fn cut(line: &[u8], room: usize) -> String {
    const MORE: &str = "...";
    let mut text = Vec::new();
    let mut rest = line.iter();
    while text.len() < room {
        match rest.next() {
            Some(b'\t') => text.resize((text.len() + 1).next_multiple_of(TAB).min(room), b' '),
            Some(byte) => text.push(*byte),
            None => break,
        }
    }
    if rest.next().is_some() {
        text.truncate(room.saturating_sub(MORE.len()));
        text.extend_from_slice(&MORE.as_bytes()[..MORE.len().min(room)]);
    }
    String::from_utf8_lossy(&text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::{cut, indent_of};

    #[test]
    fn lines_of_source_are_cut_behind_tab_stops() {
        assert_eq!(cut(b"\tif (a)", 88), "        if (a)");
        assert_eq!(cut(b"a\tb", 88), "a       b");
        assert_eq!(cut(b"0123456789", 10), "0123456789");
        assert_eq!(cut(b"0123456789a", 10), "0123456...");
        assert_eq!((indent_of(b"\t  x"), indent_of(b"  \tx")), (10, 8));
    }
}
