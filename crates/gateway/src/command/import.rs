//! `beebox-gateway import`: rules of iptables and nftables.

use std::path::PathBuf;

use gateway::import::{
    Assumptions, ConnectionState, Fate, Imported, Remark, Variant, iptables_save, nft_json,
};
use report::run::one_line;

use command::answer::{Answer, Failure};
use command::input::{LONGEST_TEXT, name, read_text};
use command::output_path::OutputPath;
use command::stdout::write_output;

/// Make rules of what iptables-save or nft print
///
/// Rules that cannot be expressed are listed on standard error with the reason, and left out;
/// the exit code is 1 then. Rules that ask for an interface or for a connection's state can be
/// expressed if it is the same for all packets, and stated.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  beebox-gateway import --from iptables-save examples/gateway/filter.iptables-save
  iptables-save | beebox-gateway import --from iptables-save - -o office.rules
  nft -j list ruleset | beebox-gateway import --from nft-json - -o office.rules")]
pub(super) struct Args {
    /// Tool that printed the file
    #[arg(long, value_enum)]
    from: Source,

    /// The file; `-` is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Variant of iptables that loads the rules, which decides about packets with cut headers
    /// [default: the one that the file's comment names, otherwise nft]
    #[arg(long, value_enum, value_name = "VARIANT")]
    variant: Option<VariantName>,

    /// The chain [default: the one at input if it has rules, otherwise at forward]
    #[arg(long, value_name = "CHAIN")]
    chain: Option<String>,

    /// The interface by which packets arrive, for rules that ask for it
    #[arg(long, value_name = "IFACE")]
    in_interface: Option<String>,

    /// The interface by which packets leave
    #[arg(long, value_name = "IFACE")]
    out_interface: Option<String>,

    /// The state of connections that packets have
    #[arg(long, value_name = "STATE")]
    ct_state: Option<StateName>,

    /// Write the rules
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
}

/// Tool that printed a file.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Source {
    /// iptables-save or ip6tables-save
    IptablesSave,
    /// nft -j list ruleset
    NftJson,
}

/// A variant of iptables.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum VariantName {
    /// iptables-legacy: matches drop packets whose transport header is cut off
    Legacy,
    /// iptables-nft: those of tcp and udp do not
    Nft,
}

/// A state of connection tracking.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum StateName {
    New,
    Established,
    Related,
    Invalid,
    Untracked,
}

impl From<StateName> for ConnectionState {
    fn from(name: StateName) -> ConnectionState {
        match name {
            StateName::New => ConnectionState::New,
            StateName::Established => ConnectionState::Established,
            StateName::Related => ConnectionState::Related,
            StateName::Invalid => ConnectionState::Invalid,
            StateName::Untracked => ConnectionState::Untracked,
        }
    }
}

pub(super) fn run(args: Args) -> Result<Answer, Failure> {
    let path = &args.file;
    let output = OutputPath::optional(args.output.as_deref(), [path.as_path()])?;
    let text = read_text(path, LONGEST_TEXT)?;
    if text.trim().is_empty() {
        let tool = match args.from {
            Source::IptablesSave => "iptables-save, as root",
            Source::NftJson => "nft -j list ruleset, as root",
        };
        let failure = Failure::new("the file is empty").within(name(path));
        return Err(failure.hint(format_args!("what is printed by {tool}")));
    }
    let chain = args.chain.as_deref();
    let assumptions = Assumptions {
        in_interface: args.in_interface,
        out_interface: args.out_interface,
        state: args.ct_state.map(ConnectionState::from),
    };
    let imported = match args.from {
        Source::IptablesSave => {
            let variant = args.variant.map(|variant| match variant {
                VariantName::Legacy => Variant::Legacy,
                VariantName::Nft => Variant::Nft,
            });
            let variant = variant
                .or_else(|| Variant::of_save(&text))
                .unwrap_or_else(|| {
                    diagnostic!(
                        "{}: no comment names the variant of iptables: assumed nft (--variant)",
                        name(path)
                    );
                    Variant::Nft
                });
            iptables_save(&text, chain, variant, &assumptions)
        }
        Source::NftJson if args.variant.is_some() => {
            let failure = Failure::new("--variant is about iptables");
            return Err(failure.hint("--from iptables-save"));
        }
        Source::NftJson => nft_json(&text, chain, &assumptions),
    };
    let Imported {
        chain,
        set,
        remarks,
        reads_ports_of_fragments,
    } = imported.map_err(|error| Failure::new(error).within(name(path)))?;
    for remark in &remarks {
        let fate = match remark.fate {
            Fate::LeftOut => "left out",
            Fate::Kept => "kept",
            Fate::WithoutEffect => "without effect",
        };
        let (place, reason, rule) = (&remark.place, &remark.reason, &remark.rule);
        diagnostic!("{}: {place}: {fate}: {reason}: {rule}", name(path));
    }
    if reads_ports_of_fragments {
        diagnostic!(
            "{}: note: nftables reads ports of later fragments out of their data; here later \
             fragments have no ports, and rules with ports do not match them",
            name(path)
        );
    }
    let is_left_out = |remark: &&Remark| remark.fate == Fate::LeftOut;
    let mut text = one_line(&format!("# {chain}{}", in_words(&assumptions))) + "\n";
    for remark in remarks.iter().filter(is_left_out) {
        let (place, reason) = (&remark.place, &remark.reason);
        text += &one_line(&format!("# left out, {place}: {reason}"));
        text.push('\n');
    }
    text += &set.to_string();
    write_output(text.as_bytes(), output)?;
    Ok(match remarks.iter().any(|remark| is_left_out(&remark)) {
        true => Answer::No,
        false => Answer::Yes,
    })
}

/// The assumptions as text, behind the name of the chain.
fn in_words(assumptions: &Assumptions) -> String {
    let sides = [
        ("arriving by", &assumptions.in_interface),
        ("leaving by", &assumptions.out_interface),
    ];
    let sides = sides.into_iter().filter_map(|(how, name)| {
        let name = name.as_ref()?;
        Some(format!("{how} {name}"))
    });
    let state = assumptions
        .state
        .map(|it| format!("of connections that are {}", it.name()));
    let words: Vec<String> = sides.chain(state).collect();
    match words.is_empty() {
        true => String::new(),
        false => format!(", for packets {}", words.join(", ")),
    }
}
