//! `--html` and `--why --format html`: runs as pages to look at.

use beebox::Engine;
use beebox::internal::program::ProgramType;
use beebox::internal::run::{RunEnd, RunnableProgram, takes_packet};
use report::coverage::Coverage;
use report::html::{PacketLine, RunPage, RunSummary, SourceFinder};
use report::why::Why;

use super::Args;
use super::output::limit_text;
use crate::answer::Failure;
use crate::output_file::write_whole;
use crate::output_path::OutputPath;
use crate::stdout::write_bytes;

/// The page of `--html`, which is no input, and none of the files that the run writes beside it.
pub(super) fn page_path(args: &Args) -> Result<Option<OutputPath<'_>>, Failure> {
    let Some(path) = &args.html else {
        return Ok(None);
    };
    let page = OutputPath::new(path, args.inputs().chain(args.kernel.files()))?;
    if page.is_standard() {
        let failure = Failure::new("--html -: standard output holds the results");
        return Err(failure.hint("the name of a file; --why N --format html prints a page"));
    }
    if args.selection.writes(path) {
        let file = path.display();
        let failure = Failure::new(format_args!("--html {file}: an -o writes this file"));
        return Err(failure.hint("a file of its own"));
    }
    Ok(Some(page))
}

/// Writes the page of the runs of a program.
pub(super) fn write(
    args: &Args,
    page: Option<OutputPath<'_>>,
    (name, program): (&str, &mut RunnableProgram<'_>),
    ran: &RunEnd,
) -> Result<(), Failure> {
    let Some(page) = page else {
        return Ok(());
    };
    let summary = RunSummary {
        stopped: match ran {
            RunEnd::Stopped { error, .. } => Some(limit_text(error)),
            RunEnd::Packet { .. } | RunEnd::Capture { .. } => None,
        },
        ..summary(args, name, program.kind(), program.engine())
    };
    match program.take_page(&summary, &sources(args)) {
        Some(text) => write_whole(page.path(), text.as_bytes()),
        None => Ok(()),
    }
}

/// Prints the page of the run on one packet.
pub(super) fn print_page(
    args: &Args,
    why: &Why,
    kind: ProgramType,
    engine: Engine,
) -> Result<(), Failure> {
    let line = PacketLine {
        packet: why.packet.unwrap_or(0),
        captured: why.bytes,
        wire: why.bytes as u32,
        verdict: why.verdict.clone().unwrap_or_else(|| "stopped".to_owned()),
        retval: why.retval,
        redirect: why.redirect_text.clone().unwrap_or_default(),
        text: match takes_packet(kind) {
            true => why.packet_text.clone(),
            false => "no packet".to_owned(),
        },
        ..PacketLine::default()
    };
    let mut page = RunPage::default();
    page.add(&line, Some(why));
    let summary = RunSummary {
        stopped: why.stopped.clone(),
        ..summary(args, &why.prog, kind, engine)
    };
    let coverage = Coverage::default();
    let text = page.finish(&summary, &coverage, &Default::default(), &sources(args));
    write_bytes(text.as_bytes(), None)
}

fn summary(args: &Args, prog: &str, kind: ProgramType, engine: Engine) -> RunSummary {
    RunSummary {
        object: args.inputs.file.display().to_string(),
        prog: prog.to_owned(),
        prog_type: kind.name().to_owned(),
        engine: engine.name().to_owned(),
        capture: args
            .inputs
            .pcap
            .as_ref()
            .map(|path| path.display().to_string()),
        stopped: None,
    }
}

fn sources(args: &Args) -> SourceFinder {
    SourceFinder::beside([args.inputs.file.as_path()])
}
