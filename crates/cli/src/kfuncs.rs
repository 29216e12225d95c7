//! `beebox kfuncs`: the kernel functions that programs may call.

use beebox::internal::kernel::{KernelField, Source, bits};
use beebox::internal::program::Release;
use report::kfuncs::{self, Listed};

use crate::answer::{Answer, Failure, note};
use crate::answer_format::{AnswerFormat, FormatArgs};
use crate::kernel_input::{FOR_CALLING, KernelArgs, note_assumed};
use crate::output_path::OutputArg;
use crate::stdout::{fit, write_answer};

/// List the kernel functions that programs may call
///
/// Linux's, with flags and the program types that have them, and with --host-functions bits
/// the bit operations (docs/kfuncs.md). Those of modules have prototypes with --module-btf.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  beebox kfuncs                          the functions of Linux 6.18
  beebox kfuncs --host-functions bits    and the bit operations
  beebox kfuncs -j | jq -r '.functions[] | select(.call_state == \"runs\").name'
  beebox kfuncs --header > bpf_bits.h    declarations of the bit operations for C")]
pub(crate) struct Args {
    /// Print the C header that declares the bit operations
    #[arg(long)]
    header: bool,

    #[command(flatten)]
    format: FormatArgs,

    #[command(flatten)]
    output: OutputArg,

    #[command(flatten)]
    kernel: KernelArgs,
}

/// Prints the list or the header.
pub(crate) fn run(args: Args) -> Result<Answer, Failure> {
    let output = args.output.path(args.kernel.files())?;
    if args.header {
        write_answer(AnswerFormat::Text, bits::header(), output)?;
        return Ok(Answer::Yes);
    }
    let kernel = args.kernel.read()?;
    let Some(registry) = kernel.registry() else {
        return Err(Failure::new("the functions of this kernel are unknown")
            .hint("--kernel 6.18 names the built-in one"));
    };
    note_assumed(&kernel, FOR_CALLING, "listed");
    let Some(types) = kernel.btf() else {
        return Err(Failure::new("the types of this kernel are unknown")
            .hint("--kernel 6.18 names the built-in one"));
    };
    let is_other = *kernel.source(KernelField::Registry) == Source::Assumed
        || *kernel.source(KernelField::Version) == Source::Given;
    let listed = Listed {
        registry,
        types,
        modules: kernel.modules(),
        release: kernel.version().filter(|_| is_other).map(Release::from),
    };
    for module in listed.without_functions() {
        note(format_args!(
            "module {module}: no function of it is listed, since flags and program types of none are \
             known"
        ));
    }
    let state = beebox::internal::run::kfunc_state;
    write_answer(
        args.format.format(),
        match args.format.format() {
            AnswerFormat::Text => {
                let list = kfuncs::list(listed, state);
                match output {
                    None => fit(&list),
                    Some(_) => list,
                }
            }
            AnswerFormat::Json => {
                let functions = kfuncs::list_json(listed, state);
                report::json::pretty(&functions)
            }
        },
        output,
    )?;
    Ok(Answer::Yes)
}
