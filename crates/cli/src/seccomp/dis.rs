//! `beebox seccomp dis`: disassembles filters.

use report::json::pretty;
use std::fmt::Write;

use beebox::internal::ClassicInsn as Insn;
use beebox::internal::seccomp::annotate;

use super::input::{Inputs, Program};
use crate::answer::{Answer, Failure};
use crate::answer_format::{AnswerFormat, FormatArgs};
use crate::output_path::OutputArg;
use crate::stdout::write_answer;

/// List filters with the names of actions, calls and architectures
///
/// The name of a call is that of the architecture which the filter tested before; where
/// it tested none, the names of several are listed.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  beebox seccomp dis filter.bpf
  beebox seccomp dis profile.json --cap docker
  beebox seccomp dis --pid 4711")]
pub(crate) struct Args {
    #[command(flatten)]
    inputs: Inputs,
    #[command(flatten)]
    format: FormatArgs,
    #[command(flatten)]
    output: OutputArg,
}

pub(crate) fn run(args: Args) -> Result<Answer, Failure> {
    let output = args.output.path(args.inputs.files())?;
    let order = args.inputs.byte_order()?;
    let programs = args.inputs.programs()?;
    programs.iter().for_each(Program::print_notes);
    let listings = programs.iter().map(|program| {
        let insns: Vec<Insn> = program.insns.iter().map(|&raw| Insn::decode(raw)).collect();
        let lines = program.insns.iter().enumerate();
        let lines =
            lines.map(|(at, &raw)| beebox::internal::text::dump_line(at, raw).replace('\t', " "));
        let lines: Vec<String> = lines.map(|line| line.trim_end().to_owned()).collect();
        (program, lines, annotate(&insns, order))
    });
    let mut text = String::new();
    let mut filters = Vec::new();
    for (program, lines, comments) in listings {
        if programs.len() > 1 {
            let _ = writeln!(text, "{}:", program.name);
        }
        let mut records = Vec::new();
        for (line, comment) in lines.iter().zip(&comments) {
            let line = format!("{line:<48} {comment}");
            let _ = writeln!(text, "{}", line.trim_end());
        }
        for (line, comment) in lines.iter().zip(comments) {
            records.push(serde_json::json!({ "text": line, "comment": comment }));
        }
        filters.push(serde_json::json!({ "file": program.name, "insns": records }));
    }
    write_answer(
        args.format.format(),
        match args.format.format() {
            AnswerFormat::Text => text,
            AnswerFormat::Json => pretty(&serde_json::json!({ "filters": filters })),
        },
        output,
    )?;
    Ok(Answer::Yes)
}
