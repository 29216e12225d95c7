//! The filter of `beebox filter`: one compiled filter for all packets, or an
//! expression that becomes a filter for each link type.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use beebox::captures::{FilterSource, LinkType};
use beebox::internal::captures::{Interface, expression_in, is_capture};
use beebox::{Engine, Expression, Filter, FilterError, Semantics, SockFilter};

use super::inputs::{self, NamedInput};
use super::profile::ProfilerOutput;
use crate::answer::Failure;
use crate::program_input::{filter_failure, parse_program, read_bytes};

/// Time after which compiling an expression is worth a note.
const LONG: Duration = Duration::from_secs(3);

/// The filter.
pub(super) enum Chosen {
    /// A compiled filter, and the link types of the interfaces that it ran on.
    Compiled(Filter, Mutex<BTreeMap<u32, LinkType>>),
    /// An expression, compiled for each link type.
    Expression {
        expression: Expression,
        /// True if libpcap's optimizer is used.
        optimizes: bool,
        /// The file that it was read from.
        file: Option<PathBuf>,
    },
}

/// Settings of the filter: semantics, engine and output for the profiler.
pub(super) struct Settings {
    pub(super) semantics: Semantics,
    pub(super) engine: Engine,
    /// False to leave out libpcap's optimizer.
    pub(super) optimizes: bool,
    /// Output for the profiler.
    pub(super) profile: Option<ProfilerOutput>,
}

impl Chosen {
    /// Reads the filter in a file (compiled, or an expression), or loads what compiles
    /// the expression.
    pub(super) fn new(
        file: Option<&Path>,
        expression: &str,
        settings: Settings,
    ) -> Result<Chosen, Failure> {
        let Some(path) = file else {
            return Chosen::expression(expression, None, settings);
        };
        let bytes = read_bytes(path)?;
        let refused = match parse_program(path, &bytes, None, false) {
            Ok(program) => return Chosen::compiled(path, &program, settings),
            Err(refused) => refused,
        };
        match expression_in(&bytes) {
            Some(expression) => Chosen::expression(&expression, Some(path), settings),
            None if is_capture(&bytes) => {
                Err(refused.hint("-F FILE with the filter; captures stand after it"))
            }
            None => Err(refused),
        }
    }

    fn compiled(
        path: &Path,
        program: &[SockFilter],
        settings: Settings,
    ) -> Result<Chosen, Failure> {
        let builder = Filter::builder()
            .semantics(settings.semantics)
            .engine(settings.engine);
        let filter = builder
            .build(program)
            .map_err(|error| filter_failure(&error).within(path.display()))?;
        name_code(
            &filter,
            settings.profile.as_ref(),
            &path.display().to_string(),
        );
        Ok(Chosen::Compiled(filter, Mutex::default()))
    }

    fn expression(text: &str, file: Option<&Path>, settings: Settings) -> Result<Chosen, Failure> {
        let builder = Filter::builder()
            .semantics(settings.semantics)
            .engine(settings.engine);
        let name = text.to_owned();
        let profile = Arc::new(settings.profile);
        let named = move |filter: &Filter| name_code(filter, (*profile).as_ref(), &name);
        let expression = builder.expression(text);
        let expression = expression.map_err(|error| filter_failure(&error))?;
        let expression = expression.optimize(settings.optimizes).on_compile(named);
        Ok(Chosen::Expression {
            expression,
            optimizes: settings.optimizes,
            file: file.map(Path::to_owned),
        })
    }

    /// Warnings before the filter runs.
    pub(super) fn warning(&self) -> Option<String> {
        let Chosen::Compiled(filter, _) = self else {
            return None;
        };
        let (at, extension) = filter.absent_ancillary()?;
        Some(format!(
            "instruction {at} loads #{}, which captures do not hold: the filter ends there \
             with 0 (--semantics kernel runs it as Linux does)",
            extension.name()
        ))
    }

    /// Warnings after the filter ran: a compiled filter is for one link type, because of
    /// the offsets of its loads.
    pub(super) fn link_type_warning(&self) -> Option<String> {
        let Chosen::Compiled(filter, seen) = self else {
            return None;
        };
        let seen: Vec<LinkType> = seen.lock().ok()?.values().copied().collect();
        let fault = filter.link_type_fault(&seen)?;
        Some(format!("the compiled filter {fault}"))
    }

    /// True when two runs on one packet may differ.
    pub(super) fn draws_random_numbers(&self) -> bool {
        matches!(self, Chosen::Compiled(filter, _) if filter.draws_random_numbers())
    }

    /// Compiles for the first interface, so that a bad expression is refused
    /// before anything is written.
    pub(super) fn check_first_interface(&self, named: &mut NamedInput) -> Result<(), Failure> {
        let first = named.input.first_interface();
        match first.map_err(|error| inputs::unreadable(&named.name, &error))? {
            Some(interface) => match self.compile_with_note(&interface) {
                Ok(_) => Ok(()),
                Err(error) => Err(self.refused(&error, &named.name)),
            },
            None => Ok(()),
        }
    }

    /// The filter for an interface; says on standard error what to do if compiling takes
    /// long.
    fn compile_with_note(&self, interface: &Interface) -> Result<&Filter, FilterError> {
        if !matches!(
            self,
            Chosen::Expression {
                optimizes: true,
                ..
            }
        ) {
            return self.for_interface(interface);
        }
        let (done, waiting) = mpsc::channel::<()>();
        thread::scope(|scope| {
            scope.spawn(move || {
                if waiting.recv_timeout(LONG) == Err(RecvTimeoutError::Timeout) {
                    diagnostic!(
                        "beebox: note: libpcap's optimizer is still at work on the expression; \
                         -O leaves it out"
                    );
                }
            });
            let filter = self.for_interface(interface);
            drop(done);
            filter
        })
    }

    /// The file that an expression was read from.
    fn file(&self) -> Option<&Path> {
        match self {
            Chosen::Expression { file, .. } => file.as_deref(),
            Chosen::Compiled(..) => None,
        }
    }

    /// Warning about an interface without a filter.
    pub(super) fn refused(&self, error: &FilterError, place: &str) -> Failure {
        let failure = filter_failure(error);
        if let (FilterError::Expression { .. }, Some(file)) = (error, self.file()) {
            return failure.within(file.display());
        }
        match error {
            FilterError::Expression { text, .. } if Path::new(text).is_file() => {
                failure.within(place).hint(format_args!(
                    "beebox filter EXPR {text}, or -F FILE for a compiled filter ({text} is also a \
                     file)"
                ))
            }
            FilterError::Expression { text, .. } if names_direction(text) => {
                failure.within(place).hint(
                    "a capture that states directions, as those of tcpdump -i any (LINUX_SLL); \
                     otherwise ether src or ether dst",
                )
            }
            FilterError::Expression { .. } | FilterError::LinkType(_) => failure.within(place),
            _ => failure,
        }
    }
}

/// True if an expression asks for the direction of packets.
fn names_direction(expression: &str) -> bool {
    let mut words = expression.split(|c: char| !c.is_ascii_alphanumeric());
    words.any(|word| matches!(word, "inbound" | "outbound"))
}

impl FilterSource for Chosen {
    fn for_interface(&self, interface: &Interface) -> Result<&Filter, FilterError> {
        match self {
            Chosen::Compiled(filter, seen) => {
                let link_type = interface.link_type;
                if let Ok(mut seen) = seen.lock() {
                    seen.insert(link_type.0, link_type);
                }
                Ok(filter)
            }
            Chosen::Expression { expression, .. } => expression.for_interface(interface),
        }
    }
}

/// Adds a filter's native code to the output for the profiler.
fn name_code(filter: &Filter, profile: Option<&ProfilerOutput>, name: &str) {
    let name = format!("filter {name}");
    if let (Some(profile), Some(code)) = (profile, filter.native_code(&name)) {
        // Without it the profile shows an address instead of a name.
        let _ = profile.add(&code);
    }
}
