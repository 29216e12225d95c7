//! `--why`: the run on one packet, line by line.

use std::path::Path;

use beebox::internal::maps_json::RecordTypes;
use beebox::internal::program::ProgramType;
use beebox::internal::run::{
    Debug, Explained, LoadedObject, RunCaptureError, RunnableProgram, WhyOptions, tail_from,
};
use beebox::{Engine, Kernel};
use report::why::{Why, text};

use super::html::print_page;
use super::{Args, RunFormat};
use crate::answer::{Answer, Failure};
use crate::capture_file;
use crate::input::read_source;
use crate::stdout::{print, terminal_width, write_json};

/// Columns of text that is not for a terminal.
const USUAL_WIDTH: usize = 80;

/// Runs on the packet that `--why` chooses and tells why. `again` loads the object anew.
pub(super) fn answer<'o>(
    args: &Args,
    program: &mut RunnableProgram<'o>,
    (kernel, debug): (&'o Kernel, Option<&'o Debug>),
    types: &'o RecordTypes<'o>,
    again: &dyn Fn() -> Result<LoadedObject, Failure>,
    set_up: &dyn Fn(&mut RunnableProgram<'_>),
) -> Result<Answer, Failure> {
    let with = |tail_from| WhyOptions {
        kernel,
        debug,
        types,
        tail_from,
        folds: args.format() != RunFormat::Html,
    };
    let mut why = told(args, program, with(None))?;
    let is_stream = args.inputs.pcap.as_deref() == Some(Path::new("-"));
    // Where a long run ends is known behind its end.
    if let (Some(from), false) = (tail_from(&why), is_stream) {
        let loaded = again()?;
        if let Some(mut program) = loaded.program_of(&why.prog) {
            set_up(&mut program);
            why = told(args, &mut program, with(Some(from)))?;
        }
    }
    show(args, &why, program.kind(), Engine::Checked)?;
    Ok(match why.stopped {
        Some(_) => Answer::No,
        None => Answer::Yes,
    })
}

/// Tells the run on the packet that `--why` chooses.
fn told<'o>(
    args: &Args,
    program: &mut RunnableProgram<'o>,
    with: WhyOptions<'o>,
) -> Result<Why, Failure> {
    let why = match (&args.inputs.pcap, args.why.flatten()) {
        (Some(path), Some(number)) => {
            let input = capture_file::open(path, true)?;
            match program.explain_captured(input, number, with) {
                Ok(Explained::Packet(why)) => *why,
                Ok(Explained::Fewer(packets)) => {
                    let what = format_args!("{}: it has no packet {number}", path.display());
                    return Err(
                        Failure::new(what).hint(format_args!("--why N from 1 to {packets}"))
                    );
                }
                Err(RunCaptureError::Run { packet, error }) => {
                    return Err(Failure::new(format_args!("packet {packet}: {error}")));
                }
                Err(stop) => return Err(capture_file::stopped(path, None, stop)),
            }
        }
        (Some(_), None) => {
            return Err(Failure::new("--why has no number of a packet").hint("--why N, from 1"));
        }
        (None, Some(_)) => {
            return Err(Failure::new("--why N is for packets of a capture")
                .hint("--pcap IN, or --why alone"));
        }
        (None, None) => {
            let packet = args.inputs.packet()?.unwrap_or_default();
            let context = args.inputs.ctx.as_ref().map(read_source).transpose()?;
            let why = program.explain_test_run(&packet, context.as_deref(), with);
            *why.map_err(Failure::new)?
        }
    };
    Ok(why)
}

fn show(args: &Args, why: &Why, kind: ProgramType, engine: Engine) -> Result<(), Failure> {
    match args.format() {
        RunFormat::Text => print(&text(why, terminal_width().unwrap_or(USUAL_WIDTH))),
        RunFormat::Json => write_json(report::json::pretty(why).as_bytes()),
        RunFormat::Html => print_page(args, why, kind, engine),
        RunFormat::Csv => Err(Failure::new("--format csv shows --verdicts")),
        RunFormat::Junit => Err(Failure::new("--format junit needs --expect FILE")),
    }
}
