//! Completion of DATASECs: sizes and offsets of variables, which compilers leave 0, are
//! filled in from the ELF file.
//!
//! Hidden variables become static, which decides whether user space may mmap the map. The
//! DATASECs of externs get their offsets from [`externs`](crate::externs); here their
//! variables are only sorted.
//!
//! Sorts the symbols by name once, then one binary search for each variable.

use std::fmt;

use btf::{Btf, Kind, Linkage, Shape, TypeId, VarSecinfo};
use spec::Errno;
use spec::loader::{LoaderRules, UndefinedRule};

use crate::elf::{Binding, Elf, Symbol, SymbolKind};
use crate::error::{Blame, Error};

/// DATASEC of kconfig externs.
pub(crate) const KCONFIG: &str = ".kconfig";
/// DATASEC of ksym externs.
pub(crate) const KSYMS: &str = ".ksyms";

/// Fault of a DATASEC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DatasecFault {
    /// The file lacks the section, or it is empty.
    NoSection,
    /// The DATASEC lists a type that is not a variable.
    NotVariable(Kind),
    /// The DATASEC lists a variable that the file lacks.
    NoSymbol(String),
}

impl DatasecFault {
    /// Party that can fix it.
    pub fn blame(&self) -> Blame {
        Blame::File
    }

    /// Error number of libbpf.
    pub fn errno(&self) -> Errno {
        match self {
            DatasecFault::NotVariable(_) => Errno::EINVAL,
            DatasecFault::NoSection | DatasecFault::NoSymbol(_) => Errno::ENOENT,
        }
    }
}

impl fmt::Display for DatasecFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DatasecFault::NoSection => {
                write!(f, "BTF describes the section, and the file lacks it")
            }
            DatasecFault::NotVariable(kind) => {
                write!(f, "DATASEC lists a {} instead of a variable", kind.name())
            }
            DatasecFault::NoSymbol(name) => {
                write!(f, "DATASEC lists `{name}`, which the file lacks")
            }
        }
    }
}

impl std::error::Error for DatasecFault {}

/// Sets sizes and offsets of all DATASECs.
pub(crate) fn complete(elf: &Elf<'_>, btf: &mut Btf<'_>, rules: &LoaderRules) -> Result<(), Error> {
    let sections: Vec<TypeId> = btf.datasecs().map(|ty| ty.id()).collect();
    if sections.is_empty() {
        return Ok(());
    }
    let names = Names::of(elf);
    for id in sections {
        let plan = Plan::of(btf, &names, id, rules);
        let plan = plan.map_err(|fault| Error::new(fault).in_section(btf.at(id).name()))?;
        for var in plan.hidden {
            btf.set_linkage(var, Linkage::STATIC);
        }
        btf.set_section(id, plan.size, &plan.places);
    }
    Ok(())
}

/// Planned change of a DATASEC.
struct Plan {
    size: u32,
    places: Vec<VarSecinfo>,
    /// Variables that become static.
    hidden: Vec<TypeId>,
}

impl Plan {
    fn of(
        btf: &Btf<'_>,
        names: &Names<'_>,
        id: TypeId,
        rules: &LoaderRules,
    ) -> Result<Plan, DatasecFault> {
        let ty = btf.at(id);
        let Shape::Datasec(section) = ty.shape() else {
            return Err(DatasecFault::NotVariable(ty.kind()));
        };
        let mut plan = Plan {
            size: section.size,
            places: section.vars().collect(),
            hidden: Vec::new(),
        };
        let is_of_externs = ty.name() == KCONFIG || ty.name() == KSYMS;
        if !is_of_externs || !rules.has_externs {
            let name = ty.name().as_bytes();
            match plan.fill(btf, names, name) {
                // Undefined symbols, which load 0.
                Err(DatasecFault::NoSection)
                    if rules.has_externs && rules.undefined == UndefinedRule::Zero => {}
                filled => filled?,
            }
        }
        plan.places.sort_by_key(|placed| placed.offset);
        Ok(plan)
    }

    fn fill(&mut self, btf: &Btf<'_>, names: &Names<'_>, name: &[u8]) -> Result<(), DatasecFault> {
        // Linkers have set sizes and offsets already.
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

/// Symbols and sections of a file by name.
struct Names<'e> {
    /// Visible variables.
    variables: ByName<'e, &'e Symbol>,
    /// Sizes of sections in bytes.
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

/// Map by name: a sorted array with binary search, ordered by length first to reduce
/// comparisons.
struct ByName<'e, T>(Vec<(&'e [u8], T)>);

impl<'e, T: Copy> ByName<'e, T> {
    fn new(mut named: Vec<(&'e [u8], T)>) -> ByName<'e, T> {
        named.sort_by_key(|(name, _)| (name.len(), *name));
        ByName(named)
    }

    /// First item with this name.
    fn first(&self, name: &[u8]) -> Option<T> {
        let before = |other: &[u8]| (other.len(), other) < (name.len(), name);
        let at = self.0.partition_point(|(other, _)| before(other));
        let found = self.0.get(at).filter(|(other, _)| *other == name);
        found.map(|(_, thing)| *thing)
    }
}
