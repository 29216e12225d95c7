//! The filter of `beebox filter`: one compiled filter for all packets, or an
//! expression that becomes a filter for each link type.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use beebox::captures::{Interface, LinkType, Programs};
use beebox::{Engine, Expression, Filter, FilterError, Semantics, SockFilter};
use isa::classic::{AD_OFFSET, Cond, Extension, Insn, Operand, Size};

use super::inputs::{self, NamedInput};
use super::profile::Profile;
use crate::answer::Failure;
use crate::program_input::{filter_failure, read_program};

/// The filter.
pub(super) enum Chosen {
    /// A compiled filter, and the link types of the interfaces that it ran on.
    Compiled(Filter, Mutex<BTreeMap<u32, LinkType>>),
    /// An expression, compiled for each link type.
    Expression(Expression),
}

impl Chosen {
    /// Reads and checks the compiled filter, or loads what compiles the
    /// expression. Native code is reported to `profile`.
    pub(super) fn new(
        compiled: Option<&Path>,
        expression: &str,
        semantics: Semantics,
        engine: Engine,
        profile: Option<Profile>,
    ) -> Result<Chosen, Failure> {
        let settings = Filter::builder().semantics(semantics).engine(engine);
        let profile = Arc::new(profile);
        let name_code = |filter: &Filter, profile: &Option<Profile>, name: &str| {
            let name = format!("filter {name}");
            if let (Some(profile), Some(code)) = (profile, filter.native_code(&name)) {
                // Without it the profile shows an address instead of a name.
                let _ = profile.add(&code);
            }
        };
        match compiled {
            Some(path) => {
                let program = read_program(path)?;
                let filter = settings
                    .build(&program)
                    .map_err(|error| filter_failure(&error).within(path.display()))?;
                name_code(&filter, &profile, &path.display().to_string());
                Ok(Chosen::Compiled(filter, Mutex::default()))
            }
            None => {
                let compiled = settings.expression(expression);
                let name = expression.to_owned();
                let named = move |filter: &Filter| name_code(filter, &profile, &name);
                let compiled = compiled.map_err(|error| filter_failure(&error))?;
                Ok(Chosen::Expression(compiled.on_compile(named)))
            }
        }
    }

    /// What the user should know before the filter runs.
    pub(super) fn warning(&self) -> Option<String> {
        let Chosen::Compiled(filter, _) = self else {
            return None;
        };
        if filter.semantics() == Semantics::Kernel {
            return None;
        }
        let mut program = filter.checked().program().iter().enumerate();
        program.find_map(|(at, &insn)| {
            let extension = ancillary(insn)?;
            Some(format!(
                "instruction {at} loads #{}, which captures do not hold: the filter ends there \
                 with 0 (--semantics kernel runs it as Linux does)",
                extension.name()
            ))
        })
    }

    /// What the user should know after the filter ran: a compiled filter fits one link
    /// type, because the offsets of its loads do.
    pub(super) fn link_type_warning(&self) -> Option<String> {
        let Chosen::Compiled(filter, seen) = self else {
            return None;
        };
        let seen: Vec<LinkType> = seen.lock().ok()?.values().copied().collect();
        let name = |link_type: &LinkType| match link_type.name() {
            Some(name) => name.to_owned(),
            None => format!("link type {}", link_type.0),
        };
        let names: Vec<String> = seen.iter().map(name).collect();
        let names = names.join(", ");
        if seen.len() > 1 {
            return Some(format!(
                "the compiled filter ran on packets of several link types, but its offsets \
                 fit one: {names}"
            ));
        }
        let compiled_for = compiled_for(filter.checked().program())?;
        let [only] = seen[..] else { return None };
        (only != compiled_for).then(|| {
            format!(
                "the compiled filter was probably compiled for {}, but the packets are {names}",
                name(&compiled_for)
            )
        })
    }

    /// True when two runs on one packet may differ.
    pub(super) fn draws_random_numbers(&self) -> bool {
        let Chosen::Compiled(filter, _) = self else {
            return false;
        };
        let mut program = filter.checked().program().iter();
        filter.semantics() == Semantics::Kernel
            && program.any(|&insn| ancillary(insn) == Some(Extension::Random))
    }

    /// Compiles for the first interface, so that a bad expression is refused
    /// before anything is written.
    pub(super) fn check_first_interface(&self, named: &mut NamedInput) -> Result<(), Failure> {
        let first = named.input.first_interface();
        match first.map_err(|error| inputs::unreadable(&named.name, &error))? {
            Some(interface) => match self.for_interface(&interface) {
                Ok(_) => Ok(()),
                Err(error) => Err(self.refused(&error, &named.name)),
            },
            None => Ok(()),
        }
    }

    /// What to say about an interface without a filter.
    pub(super) fn refused(&self, error: &FilterError, place: &str) -> Failure {
        let failure = filter_failure(error);
        match error {
            FilterError::Expression { text, .. } if Path::new(text).is_file() => {
                failure.within(place).hint(format_args!(
                    "beebox filter EXPR {text}, or -F FILE for a compiled filter ({text} is also a \
                     file)"
                ))
            }
            FilterError::Expression { .. } | FilterError::LinkType(_) => failure.within(place),
            _ => failure,
        }
    }
}

impl Programs for Chosen {
    type Refusal = FilterError;

    fn for_interface(&self, interface: &Interface) -> Result<&Filter, FilterError> {
        match self {
            Chosen::Compiled(filter, seen) => {
                let link_type = interface.link_type;
                if let Ok(mut seen) = seen.lock() {
                    seen.insert(link_type.0, link_type);
                }
                Ok(filter)
            }
            Chosen::Expression(expression) => expression.for_interface(interface),
        }
    }
}

/// The link type that a filter was probably compiled for: the one whose header has the
/// EtherType where the filter compares one first.
fn compiled_for(program: &[SockFilter]) -> Option<LinkType> {
    const ETHERTYPES: [u32; 4] = [0x0800, 0x0806, 0x8100, 0x86dd];
    let (
        Insn::LoadAbs {
            size: Size::H,
            k: offset,
        },
        Insn::Jump {
            cond: Cond::Eq,
            src: Operand::K(value),
            ..
        },
    ) = (
        Insn::decode(*program.first()?),
        Insn::decode(*program.get(1)?),
    )
    else {
        return None;
    };
    if !ETHERTYPES.contains(&value) {
        return None;
    }
    match offset {
        0 => Some(LinkType::LINUX_SLL2),
        12 => Some(LinkType::ETHERNET),
        14 => Some(LinkType::LINUX_SLL),
        _ => None,
    }
}

/// The ancillary value that an instruction loads.
fn ancillary(insn: SockFilter) -> Option<Extension> {
    match Insn::decode(insn) {
        Insn::LoadAbs { k, .. } if k >= AD_OFFSET => Extension::from_offset(k),
        _ => None,
    }
}
