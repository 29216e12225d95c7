//! Options of tcpdump: those that print the compiled filter, those that change nothing of what
//! `beebox filter` does, and those in whose place another command stands.

use std::ffi::OsString;
use std::path::Path;

use beebox::captures::FilterSource;
use beebox::internal::captures::{Interface, LinkType};

use super::inputs;
use crate::answer::{Answer, Failure};
use crate::program_input::ClassicForm;
use crate::program_output::{ProgramFormat, format_program, write_program};

/// Group of the options in whose place another command stands: each is refused by its name, with
/// or without operands.
pub(super) const REFUSED: &str = "refused";

/// The options.
#[derive(clap::Args)]
#[command(next_help_heading = "Options of tcpdump")]
#[command(group = clap::ArgGroup::new(REFUSED).multiple(true))]
pub(super) struct TcpdumpArgs {
    /// Print the compiled filter and exit: -d as a listing, -dd as a C array, -ddd as numbers;
    /// for the link type of the first capture, or Ethernet without one
    #[arg(short = 'd', action = clap::ArgAction::Count)]
    dump: u8,

    /// The link type for -d, as tcpdump -y and `beebox filter -L` name it
    #[arg(short = 'y', long, value_name = "LINKTYPE")]
    linktype: Option<String>,

    /// Accepted: no addresses are printed
    #[arg(short = 'n', action = clap::ArgAction::Count)]
    numeric: u8,

    /// Accepted: no link-level headers are printed
    #[arg(short = 'e')]
    link_level: bool,

    /// Accepted: no protocols are printed
    #[arg(short = 'q')]
    quick: bool,

    /// Accepted: no numbers of packets are printed
    #[arg(short = '#', long)]
    number: bool,

    /// Accepted: no times are printed
    #[arg(short = 't', action = clap::ArgAction::Count)]
    time: u8,

    /// Accepted: no interface is opened
    #[arg(short = 'p', long)]
    no_promiscuous_mode: bool,

    /// Accepted: forms in which tcpdump prints packets, and when it writes them
    #[arg(
        short = 'U',
        short_aliases = ['b', 'f', 'H', 'K', 'l', 'N', 'S', 'u'],
        action = clap::ArgAction::Count,
        hide = true
    )]
    printing: u8,

    /// Accepted: what tcpdump needs to print packets, and the size of its buffer
    #[arg(
        short = 'T',
        short_aliases = ['B', 'E', 'M', 'm'],
        value_name = "VALUE",
        action = clap::ArgAction::Append,
        hide = true
    )]
    printing_by: Vec<OsString>,

    /// Capture in monitor mode
    #[arg(short = 'I', long, hide = true, group = REFUSED)]
    monitor_mode: bool,

    /// Direction of the packets that tcpdump captures
    #[arg(
        short = 'Q',
        short_alias = 'P',
        long,
        value_name = "DIRECTION",
        hide = true,
        group = REFUSED
    )]
    direction: Option<OsString>,

    /// Command that tcpdump runs on each file
    #[arg(short = 'z', value_name = "COMMAND", hide = true, group = REFUSED)]
    postrotate: Option<OsString>,

    /// The user that tcpdump becomes
    #[arg(short = 'Z', value_name = "USER", hide = true, group = REFUSED)]
    user: Option<OsString>,

    /// The interface that tcpdump reads
    #[arg(short = 'i', long, value_name = "IFACE", hide = true, group = REFUSED)]
    interface: Option<OsString>,

    /// Print the packets
    #[arg(short = 'v', short_aliases = ['A', 'X', 'x'], action = clap::ArgAction::Count, hide = true, group = REFUSED)]
    print: u8,

    /// List the interfaces
    #[arg(short = 'D', long, hide = true, group = REFUSED)]
    list_interfaces: bool,

    /// Number of files that tcpdump writes
    #[arg(short = 'W', value_name = "FILES", hide = true, group = REFUSED)]
    files: Option<OsString>,

    /// Size of a file, after which tcpdump begins the next
    #[arg(short = 'C', value_name = "SIZE", hide = true, group = REFUSED)]
    file_size: Option<OsString>,

    /// Seconds after which tcpdump begins the next file
    #[arg(short = 'G', value_name = "SECONDS", hide = true, group = REFUSED)]
    file_seconds: Option<OsString>,
}

impl TcpdumpArgs {
    /// Refuses what tcpdump itself does, with the command that does it.
    pub(super) fn check(&self) -> Result<(), Failure> {
        if let Some(interface) = &self.interface {
            let interface = interface.display();
            let failure = Failure::new("-i: packets come from captures, not from interfaces");
            return Err(failure.hint(format_args!(
                "tcpdump -i {interface} -w - | beebox filter EXPR -"
            )));
        }
        if let Some(user) = &self.user {
            let user = user.display();
            let failure = Failure::new("-Z: the command stays the user who starts it");
            return Err(failure.hint(format_args!("sudo -u {user} beebox filter EXPR IN")));
        }
        if self.print > 0 {
            let failure = Failure::new("-v, -x, -X, -A: packets are written, not printed");
            return Err(failure.hint("beebox filter EXPR IN -w - | tcpdump -X -r -"));
        }
        if self.list_interfaces {
            let failure = Failure::new("-D: packets come from captures, not from interfaces");
            return Err(failure.hint("tcpdump -D"));
        }
        if self.monitor_mode || self.direction.is_some() {
            let failure = Failure::new("-I, -Q: packets come from captures, not from interfaces");
            return Err(failure.hint("tcpdump -i IFACE -Q in -w - | beebox filter EXPR -"));
        }
        if self.linktype.is_some() && self.dump == 0 {
            let failure = Failure::new("-y: packets have the link type of their capture");
            return Err(failure.hint("no -y, or -d to print the filter for a link type"));
        }
        let rotation = [
            ("-C", &self.file_size),
            ("-G", &self.file_seconds),
            ("-W", &self.files),
            ("-z", &self.postrotate),
        ];
        for (option, value) in rotation {
            if let Some(value) = value {
                let failure = format_args!("{option}: the packets go to one file");
                return Err(Failure::new(failure).hint(format_args!(
                    "beebox filter EXPR IN -w - | tcpdump -r - {option} {} -w OUT",
                    value.display()
                )));
            }
        }
        Ok(())
    }

    /// The form in which the filter is printed, if it is.
    pub(super) fn dump(&self) -> Option<ClassicForm> {
        match self.dump {
            0 => None,
            1 => Some(ClassicForm::D),
            2 => Some(ClassicForm::Dd),
            _ => Some(ClassicForm::Ddd),
        }
    }
}

/// Prints the compiled filter. Without -r all words are the expression, unless the last is a
/// capture.
pub(super) fn write_filter(args: &super::Args, form: ClassicForm) -> Result<Answer, Failure> {
    let has_filter = args.filter.is_some();
    let names_capture = args.words.len() > 1 && args.words.last().is_some_and(inputs::is_capture);
    let (expression, paths) = match args.read.is_empty() && !names_capture && !has_filter {
        true => (inputs::joined(&args.words)?, Vec::new()),
        false => inputs::tell_apart(&args.words, &args.read, has_filter)?,
    };
    let programs = args.programs(&expression)?;
    let mut interface = Interface::UNKNOWN;
    let mut place = "Ethernet".to_owned();
    if let Some(path) = paths.first() {
        let mut input = inputs::open(Path::new(path), &Default::default())?;
        let first = input.input.first_interface();
        let first = first.map_err(|error| inputs::unreadable(&input.name, &error))?;
        interface = first.unwrap_or(Interface::UNKNOWN);
        place = input.name;
    }
    if let Some(name) = &args.tcpdump.linktype {
        let link_type = LinkType::named(name).ok_or_else(|| {
            Failure::new(format_args!("-y {name}: no such link type")).hint("beebox filter -L")
        })?;
        interface = Interface {
            link_type,
            snaplen: link_type.max_captured(),
            ..interface
        };
        place.clone_from(name);
    }
    let filter = programs.for_interface(&interface);
    let filter = filter.map_err(|error| programs.refused(&error, &place))?;
    let format = ProgramFormat::Form(form);
    let text = format_program(filter.checked().program(), format)?;
    write_program(&text, format, None)?;
    Ok(Answer::Yes)
}
