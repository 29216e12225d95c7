//! The filter that was chosen: one compiled filter for all packets, or an
//! expression that becomes a program for each link type.

use std::path::Path;
use std::sync::OnceLock;

use beebox::captures::Programs;
use beebox::{Engine, Filter, Refusal, Rules, Semantics, SockFilter};
use capture::{ByteOrder, Interface, LinkType, PcapHeader};
use isa::classic::{AD_OFFSET, Extension, Insn};
use sys::libpcap::{self, Libpcap};

use super::inputs::{self, NamedInput};
use super::profile::Profile;
use crate::answer::Failure;
use crate::program_input::{load_libpcap, read_program, refused};

/// The filter that was chosen.
pub(super) struct Chosen {
    source: Source,
    semantics: Semantics,
    engine: Engine,
    /// Where the profiler reads about native code.
    profile: Option<Profile>,
}

enum Source {
    Compiled {
        filter: Filter,
        program: Vec<SockFilter>,
    },
    Expression {
        libpcap: Libpcap,
        text: String,
        compiled: Link,
    },
}

/// What was compiled so far: a list to which threads append and from which
/// nothing is taken, so that a filter in it can be lent for good.
type Link = OnceLock<Box<Compiled>>;

struct Compiled {
    /// What the program depends on.
    target: (LinkType, ByteOrder),
    result: Result<Filter, Refused>,
    next: Link,
}

/// Why there is no filter for an interface.
#[derive(Clone)]
pub(super) enum Refused {
    /// libpcap refuses the expression.
    Libpcap(libpcap::Refused),
    /// What libpcap made is not allowed in a socket.
    Rules(Vec<SockFilter>, Refusal),
}

impl Chosen {
    /// Reads and checks the compiled filter, or loads what compiles the
    /// expression.
    pub(super) fn new(
        compiled: Option<&Path>,
        expression: &str,
        semantics: Semantics,
        engine: Engine,
        profile: Option<Profile>,
    ) -> Result<Chosen, Failure> {
        let source = match compiled {
            Some(path) => {
                let program = read_program(path, None)?;
                let filter = Filter::new(&program, rules(semantics), semantics, engine)
                    .map_err(|refusal| refused(&program, refusal).within(path.display()))?;
                Source::Compiled { filter, program }
            }
            None => Source::Expression {
                libpcap: load_libpcap()?,
                text: expression.to_owned(),
                compiled: Link::new(),
            },
        };
        let chosen = Chosen {
            source,
            semantics,
            engine,
            profile,
        };
        if let (Source::Compiled { filter, .. }, Some(path)) = (&chosen.source, compiled) {
            chosen.name_code(filter, &path.display().to_string());
        }
        Ok(chosen)
    }

    /// Tells the profiler which filter the native code is.
    fn name_code(&self, filter: &Filter, name: &str) {
        let name = format!("filter {name}");
        if let (Some(profile), Some(code)) = (&self.profile, filter.native_code(&name)) {
            // The profile then has an address where a name could be.
            let _ = profile.add(&code);
        }
    }

    /// What the user should know before the filter runs.
    pub(super) fn warning(&self) -> Option<String> {
        let Source::Compiled { program, .. } = &self.source else {
            return None;
        };
        if self.semantics == Semantics::Kernel {
            return None;
        }
        program.iter().enumerate().find_map(|(at, &insn)| {
            let extension = ancillary(insn)?;
            Some(format!(
                "instruction {at} asks for #{}, which no capture has: the load ends the filter \
                 with 0, as beyond the packet (--semantics kernel runs it as Linux does)",
                extension.name()
            ))
        })
    }

    /// True when two runs on one packet may differ.
    pub(super) fn draws_random_numbers(&self) -> bool {
        let Source::Compiled { program, .. } = &self.source else {
            return false;
        };
        self.semantics == Semantics::Kernel
            && program
                .iter()
                .any(|&insn| ancillary(insn) == Some(Extension::Random))
    }

    /// Compiles for the first interface, so that a bad expression is refused
    /// before anything is written.
    pub(super) fn check_first_interface(&self, named: &mut NamedInput) -> Result<(), Failure> {
        let first = named.input.first_interface();
        match first.map_err(|error| inputs::unreadable(&named.name, &error))? {
            Some(interface) => match self.for_interface(&interface) {
                Ok(_) => Ok(()),
                Err(refusal) => Err(self.refused(&refusal, &named.name)),
            },
            None => Ok(()),
        }
    }

    /// What to say about an interface without a filter.
    pub(super) fn refused(&self, refusal: &Refused, place: &str) -> Failure {
        use libpcap::Refused::{Expression, Header, Nul, OutOfMemory};
        let text = match &self.source {
            Source::Expression { text, .. } => text.as_str(),
            Source::Compiled { .. } => "",
        };
        match refusal {
            Refused::Libpcap(Expression(message)) => {
                let failure =
                    Failure::new(format_args!("{place}: libpcap refuses {text:?}: {message}"));
                match Path::new(text).is_file() {
                    true => failure.hint(format_args!(
                        "the first word is the expression; {text} is also a file: \
                         beebox filter EXPR {text} …, or -F FILE for a compiled filter"
                    )),
                    false => failure,
                }
            }
            Refused::Libpcap(Header(message)) => Failure::new(format_args!(
                "{place}: libpcap does not know this kind of capture: {message}"
            )),
            Refused::Libpcap(Nul) => Failure::new("the expression contains a NUL"),
            Refused::Libpcap(OutOfMemory) => Failure::new("there is no memory for libpcap"),
            Refused::Rules(program, refusal) => refused(program, *refusal),
        }
    }

    fn compile(
        &self,
        libpcap: &Libpcap,
        text: &str,
        interface: &Interface,
    ) -> Result<Filter, Refused> {
        let header = PcapHeader::new(*interface);
        let program = libpcap
            .compile(header.raw(), text)
            .map_err(Refused::Libpcap)?;
        let filter = Filter::new(&program, rules(self.semantics), self.semantics, self.engine)
            .map_err(|refusal| Refused::Rules(program, refusal))?;
        self.name_code(&filter, text);
        Ok(filter)
    }
}

impl Programs for Chosen {
    type Refusal = Refused;

    fn for_interface(&self, interface: &Interface) -> Result<&Filter, Refused> {
        let (libpcap, text, mut link) = match &self.source {
            Source::Compiled { filter, .. } => return Ok(filter),
            Source::Expression {
                libpcap,
                text,
                compiled,
            } => (libpcap, text, compiled),
        };
        let target = (interface.link_type, interface.order);
        loop {
            // Another thread may append another link type first; then the search
            // goes on.
            let compiled = link.get_or_init(|| {
                Box::new(Compiled {
                    target,
                    result: self.compile(libpcap, text, interface),
                    next: Link::new(),
                })
            });
            if compiled.target == target {
                return compiled.result.as_ref().map_err(Refused::clone);
            }
            link = &compiled.next;
        }
    }
}

/// The rules that a filter must obey to run with some semantics.
fn rules(semantics: Semantics) -> Rules {
    match semantics {
        Semantics::Capture => Rules::Capture,
        Semantics::Kernel => Rules::Socket,
    }
}

/// The ancillary value that an instruction loads.
fn ancillary(insn: SockFilter) -> Option<Extension> {
    match Insn::decode(insn) {
        Insn::LoadAbs { k, .. } if k >= AD_OFFSET => Extension::from_offset(k),
        _ => None,
    }
}
