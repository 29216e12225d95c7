//! `beebox gateway import`: rules of iptables and nftables.

use std::fs;
use std::path::{Path, PathBuf};

use gateway::import::{Imported, iptables_save, nft_json};

use crate::answer::{Answer, Failure};
use crate::program_input::name;
use crate::program_output::write_output;

/// Make rules of what iptables-save or nft print
///
/// Rules that cannot be expressed are listed on standard error with the reason, and left out;
/// the exit code is 1 then.
#[derive(clap::Args)]
pub(super) struct Args {
    /// What printed the file
    #[arg(long, value_enum)]
    from: Source,

    /// The file; `-` is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// The chain [default: the one at input if it has rules, otherwise at forward]
    #[arg(long, value_name = "CHAIN")]
    chain: Option<String>,

    /// Write the rules
    #[arg(short, long, value_name = "RULES")]
    output: Option<PathBuf>,
}

/// What printed a file.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Source {
    /// iptables-save or ip6tables-save
    IptablesSave,
    /// nft -j list ruleset
    NftJson,
}

pub(super) fn run(args: Args) -> Result<Answer, Failure> {
    let path = &args.file;
    let text = match path == Path::new("-") {
        true => std::io::read_to_string(std::io::stdin().lock()),
        false => fs::read_to_string(path),
    };
    let text = text.map_err(|error| Failure::of_file(path, &error))?;
    let chain = args.chain.as_deref();
    let imported = match args.from {
        Source::IptablesSave => iptables_save(&text, chain),
        Source::NftJson => nft_json(&text, chain),
    };
    let Imported {
        chain,
        set,
        remarks,
    } = imported.map_err(|error| Failure::new(error).within(name(path)))?;
    for remark in &remarks {
        let fate = match remark.is_left_out {
            true => "left out",
            false => "kept",
        };
        let (place, reason, rule) = (&remark.place, &remark.reason, &remark.rule);
        diagnostic!("{}: {place}: {fate}: {reason}: {rule}", name(path));
    }
    let mut text = format!("# {chain}\n");
    for remark in remarks.iter().filter(|remark| remark.is_left_out) {
        let (place, reason) = (&remark.place, &remark.reason);
        text += &format!("# left out, {place}: {reason}\n");
    }
    text += &set.to_string();
    write_output(text.as_bytes(), args.output.as_deref())?;
    Ok(match remarks.iter().any(|remark| remark.is_left_out) {
        true => Answer::No,
        false => Answer::Yes,
    })
}
