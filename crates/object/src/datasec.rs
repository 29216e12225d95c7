//! What a compiler leaves open in the types of sections: their sizes, and where the
//! variables are in them. The file knows, so the loader fills it in.
//!
//! A variable that is hidden (for its own module only) becomes static, which
//! decides whether user space may map its section. The sections of externs have
//! their places from [`externs`](crate::externs); here their variables are only put
//! in order.
//!
//! Cost: the symbols sorted by name once, then a look-up for each variable.

use std::fmt;

use btf::{Btf, Kind, Linkage, Placed, Shape, TypeId};

use crate::elf::{Binding, Elf, Symbol, SymbolKind};
use crate::error::{Blame, Error};

/// The section of values of the kernel's configuration.
pub(crate) const KCONFIG: &str = ".kconfig";
/// The section of what the kernel has.
pub(crate) const KSYMS: &str = ".ksyms";

/// What is wrong with the description of a section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DatasecFault {
    /// The file has no such section, or it is empty.
    NoSection,
    /// It lists something that is no variable.
    NotVariable(Kind),
    /// It lists a variable that the file does not have.
    NoSymbol(String),
}

impl DatasecFault {
    /// Whose fault it is.
    pub fn blame(&self) -> Blame {
        Blame::File
    }

    /// The number of the error that Linux's loader gives (`errno.h`).
    pub fn errno(&self) -> i32 {
        match self {
            DatasecFault::NotVariable(_) => 22,
            DatasecFault::NoSection | DatasecFault::NoSymbol(_) => 2,
        }
    }
}

impl fmt::Display for DatasecFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DatasecFault::NoSection => write!(f, "the types describe it, but the file has none"),
            DatasecFault::NotVariable(kind) => {
                write!(f, "its types list a {} among the variables", kind.name())
            }
            DatasecFault::NoSymbol(name) => {
                write!(f, "its types list `{name}`, which the file does not have")
            }
        }
    }
}

/// Fills in sizes and places.
pub(crate) fn complete(elf: &Elf<'_>, btf: &mut Btf<'_>) -> Result<(), Error> {
    let sections: Vec<TypeId> = btf.datasecs().map(|ty| ty.id()).collect();
    if sections.is_empty() {
        return Ok(());
    }
    let names = Names::of(elf);
    for id in sections {
        let plan = Plan::of(btf, &names, id);
        let plan = plan.map_err(|fault| Error::new(fault).in_section(btf.at(id).name()))?;
        for var in plan.hidden {
            btf.set_linkage(var, Linkage::STATIC);
        }
        btf.set_section(id, plan.size, &plan.places);
    }
    Ok(())
}

/// What a section should say.
struct Plan {
    size: u32,
    places: Vec<Placed>,
    /// Variables that become static.
    hidden: Vec<TypeId>,
}

impl Plan {
    fn of(btf: &Btf<'_>, names: &Names<'_>, id: TypeId) -> Result<Plan, DatasecFault> {
        let ty = btf.at(id);
        let Shape::Datasec(section) = ty.shape() else {
            return Err(DatasecFault::NotVariable(ty.kind()));
        };
        let mut plan = Plan {
            size: section.size,
            places: section.vars().collect(),
            hidden: Vec::new(),
        };
        if ty.name() != KCONFIG && ty.name() != KSYMS {
            plan.fill(btf, names, ty.name().as_bytes())?;
        }
        plan.places.sort_by_key(|placed| placed.offset);
        Ok(plan)
    }

    fn fill(&mut self, btf: &Btf<'_>, names: &Names<'_>, name: &[u8]) -> Result<(), DatasecFault> {
        // Linkers have filled in sizes and places already.
        let is_open = self.size == 0;
        if is_open {
            self.size = names.sections.first(name).map_or(0, |size| size as u32);
            if self.size == 0 {
                return Err(DatasecFault::NoSection);
            }
        }
        for placed in &mut self.places {
            let ty = btf.at(placed.var);
            let Shape::Var(var) = ty.shape() else {
                return Err(DatasecFault::NotVariable(ty.kind()));
            };
            if matches!(var.linkage, Linkage::STATIC | Linkage::EXTERN) {
                continue;
            }
            let symbol = names.variables.first(ty.name().as_bytes());
            let symbol = symbol.ok_or_else(|| DatasecFault::NoSymbol(ty.name().to_string()))?;
            if is_open {
                placed.offset = symbol.value as u32;
            }
            if symbol.hidden {
                self.hidden.push(placed.var);
            }
        }
        Ok(())
    }
}

/// What a file has, by name.
struct Names<'e> {
    /// The variables that others can see.
    variables: ByName<'e, &'e Symbol>,
    /// The bytes of sections.
    sections: ByName<'e, u64>,
}

impl<'e> Names<'e> {
    fn of(elf: &'e Elf<'_>) -> Names<'e> {
        let seen = elf.symbols().iter().filter(|symbol| {
            symbol.kind == SymbolKind::Variable
                && matches!(symbol.binding, Binding::Global | Binding::Weak)
        });
        let variables =
            seen.filter_map(|symbol| Some((elf.symbol_name(symbol)?.as_bytes(), symbol)));
        let sections = elf.sections().iter().skip(1);
        let sections = sections.map(|section| (section.name.as_bytes(), section.size));
        Names {
            variables: ByName::new(variables.collect()),
            sections: ByName::new(sections.collect()),
        }
    }
}

/// Things by name, found by halving: most objects have too few for a table. Shorter
/// names come first, so that names are seldom looked at.
struct ByName<'e, T>(Vec<(&'e [u8], T)>);

impl<'e, T: Copy> ByName<'e, T> {
    fn new(mut named: Vec<(&'e [u8], T)>) -> ByName<'e, T> {
        named.sort_by_key(|(name, _)| (name.len(), *name));
        ByName(named)
    }

    /// Of several of a name the first counts.
    fn first(&self, name: &[u8]) -> Option<T> {
        let before = |other: &[u8]| (other.len(), other) < (name.len(), name);
        let at = self.0.partition_point(|(other, _)| before(other));
        let found = self.0.get(at).filter(|(other, _)| *other == name);
        found.map(|(_, thing)| *thing)
    }
}
