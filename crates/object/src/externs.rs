//! Externs: kconfig values (`.kconfig`) and kernel variables and functions (`.ksyms`).
//!
//! ELF symbols state the names and whether they are weak; BTF states the types, and by
//! DATASEC the kind of extern. Collecting combines both, lays out the map `.kconfig`, and
//! rewrites BTF into a form that the kernel accepts: externs become defined variables.
//!
//! One pass over symbols and types each.

mod fault;
mod kconfig;
mod ksyms;

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};

use btf::{Btf, Func, Kind, Linkage, Name, Shape, TypeId, Var, VarSecinfo};
use program::{ExternId, ExternResolution, ExternSymbol, ExternSymbolKind, Image};

use crate::datasec::{KCONFIG, KSYMS};
use crate::elf::{Binding, Elf, SymbolId};
use crate::error::Error;
use kconfig::Values;
use spec::Kernel;
use spec::loader::{LoaderRules, UndefinedRule};

pub use fault::ExternFault;
pub use kconfig::{ConfigKind, ConfigValue};

/// Externs of an object: kconfig externs by offset, then ksyms by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Externs {
    all: Vec<Extern>,
    /// Values of undefined symbols without BTF, by symbol.
    constants: HashMap<SymbolId, u64>,
    /// Symbols that BTF does not describe, as those of inline assembly, and that the loader does
    /// not define.
    zeros: Vec<String>,
    /// True if a symbol that another object may define loads 0.
    has_undefined: bool,
    /// Values that the loader defines, by name.
    defined: HashMap<String, u64>,
    by_symbol: HashMap<SymbolId, ExternId>,
    by_name: HashMap<String, ExternId>,
}

/// An extern symbol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extern {
    /// Name.
    pub name: String,
    /// ELF symbol.
    pub symbol: SymbolId,
    /// BTF id in the object: a variable or a function.
    pub ty: TypeId,
    /// True if it is weak.
    pub weak: bool,
    /// Kind.
    pub kind: ExternKind,
}

/// Kind of extern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExternKind {
    /// kconfig value.
    Config(ConfigValue),
    /// Typeless ksym, used by its address.
    Address,
    /// Typed ksym: a variable of this type.
    Variable(TypeId),
    /// kfunc of this prototype.
    Function(TypeId),
}

impl ExternKind {
    /// True for a kconfig value.
    pub(crate) fn is_config(self) -> bool {
        matches!(self, ExternKind::Config(_))
    }
}

/// What undefined symbols are for a loader.
pub(crate) struct Undefined<'o> {
    pub(crate) rules: &'static LoaderRules,
    /// Values that the loader defines.
    pub(crate) defines: &'o [(String, u64)],
}

impl Undefined<'_> {
    fn is_defined(&self, name: Name<'_>) -> bool {
        self.defines.iter().any(|(known, _)| name == known.as_str())
    }

    /// Value of a symbol that BTF does not describe; `None` if it is an error.
    fn value(&self, name: Name<'_>) -> Option<u64> {
        let mut defines = self.defines.iter().rev();
        let defined = defines.find(|(known, _)| name == known.as_str());
        match (defined, self.rules.undefined) {
            (Some((_, value)), _) => Some(*value),
            (None, UndefinedRule::Zero) => Some(0),
            (None, UndefinedRule::Refused) => None,
        }
    }
}

impl Externs {
    /// Collects the externs, and rewrites BTF into a form that the kernel accepts.
    pub(crate) fn collect(
        elf: &Elf<'_>,
        btf: Option<&mut Btf<'_>>,
        undefined: &Undefined<'_>,
    ) -> Result<Externs, Error> {
        let mut wanted = Vec::new();
        let mut constants = HashMap::new();
        let mut zeros = Vec::new();
        let mut has_undefined = false;
        for symbol in elf.symbols().iter().filter(|symbol| symbol.is_extern()) {
            let name = elf.symbol_name(symbol).unwrap_or_default();
            if !name.is_empty() {
                wanted.push((name, symbol.id, symbol.binding == Binding::Weak));
            }
        }
        let Some(btf) = btf else {
            for (name, symbol, _) in wanted {
                let value = undefined.value(name);
                let missing = || Error::new(ExternFault::NoTypes).about(name);
                constants.insert(symbol, value.ok_or_else(missing)?);
                has_undefined |= !undefined.is_defined(name);
            }
            return Ok(Externs {
                constants,
                has_undefined,
                ..Externs::default()
            });
        };
        let placeholder = add_placeholder(btf);
        if wanted.is_empty() {
            return Ok(Externs::default());
        }
        let found = Found::of(btf, wanted.iter().map(|&(name, ..)| name));
        let mut externs = Vec::with_capacity(wanted.len());
        for &(name, symbol, weak) in &wanted {
            let (ty, kind) = match (found.describe(btf, name), undefined.value(name)) {
                (Ok((id, _)), _)
                    if !undefined.rules.has_typed_variables && found.is_typed_ksym(btf, id) =>
                {
                    return Err(Error::new(ExternFault::TypedVariable).about(name));
                }
                (Ok(described), _) => described,
                (Err(fault), Some(value)) => {
                    constants.insert(symbol, value);
                    match fault {
                        _ if undefined.is_defined(name) => {}
                        ExternFault::NotDescribed => zeros.push(name.to_string()),
                        _ => has_undefined = true,
                    }
                    continue;
                }
                (Err(fault), None) => return Err(Error::new(fault).about(name)),
            };
            let name = name.to_string();
            externs.push(Extern {
                name,
                symbol,
                ty,
                weak,
                kind,
            });
        }
        let mut externs = Externs::new(externs);
        externs.constants = constants;
        externs.zeros = zeros;
        externs.has_undefined = has_undefined;
        externs.defined = undefined.defines.iter().cloned().collect();
        let sections = found.sections_of(&externs);
        for id in sections {
            externs.define_externs(btf, id, placeholder)?;
        }
        Ok(externs)
    }

    fn new(mut all: Vec<Extern>) -> Externs {
        sort(&mut all);
        place_config(&mut all);
        let mut externs = Externs::default();
        for (known, id) in all.iter().zip(0..).map(|(known, id)| (known, ExternId(id))) {
            externs.by_symbol.insert(known.symbol, id);
            externs.by_name.entry(known.name.clone()).or_insert(id);
        }
        externs.all = all;
        externs
    }

    /// Names that a loader may define: undefined symbols, kconfig values and variables of the
    /// kernel.
    pub(crate) fn definable(&self, elf: &Elf<'_>) -> BTreeSet<String> {
        let symbols = self.constants.keys().filter_map(|id| elf.symbol(*id));
        let symbols = symbols.map(|symbol| elf.display_name(symbol).to_string());
        let values = self.all.iter();
        let values = values.filter(|known| !matches!(known.kind, ExternKind::Function(_)));
        symbols
            .chain(values.map(|known| known.name.clone()))
            .collect()
    }

    /// Value of an undefined symbol that is no extern.
    pub(crate) fn constant(&self, symbol: SymbolId) -> Option<u64> {
        self.constants.get(&symbol).copied()
    }

    /// Symbols that only the loader can define, and that load 0.
    pub(crate) fn zeros(&self) -> &[String] {
        &self.zeros
    }

    /// True if symbols that another object may define load 0.
    pub(crate) fn has_undefined(&self) -> bool {
        self.has_undefined
    }

    /// True for a variable of the kernel whose address the loader defines.
    fn is_defined(&self, known: &Extern) -> bool {
        let is_variable = matches!(known.kind, ExternKind::Address | ExternKind::Variable(_));
        is_variable && self.defined.contains_key(&known.name)
    }

    /// All externs.
    pub fn iter(&self) -> impl Iterator<Item = &Extern> {
        self.all.iter()
    }

    /// Extern of an ELF symbol.
    pub fn of_symbol(&self, symbol: SymbolId) -> Option<(ExternId, &Extern)> {
        let id = *self.by_symbol.get(&symbol)?;
        Some((id, self.get(id)?))
    }

    /// Extern with this index.
    pub fn get(&self, id: ExternId) -> Option<&Extern> {
        self.all.get(id.0 as usize)
    }

    /// Resolves all externs in libbpf's order: virtual kconfig, kconfig, symbols, BTF.
    /// `config` is a configuration that takes precedence over the kernel's.
    pub(crate) fn resolve(
        &self,
        btf: &Btf<'_>,
        kernel: &Kernel,
        config: Option<&str>,
    ) -> Result<ResolvedExterns, Error> {
        let mut values = Values::new(self, self.config_size().unwrap_or(0));
        values.define(&self.defined)?;
        values.fill(kernel, config)?;
        let mut found = vec![ExternResolution::Missing; self.all.len()];
        ksyms::resolve(self, btf, kernel, &mut found)
            .map_err(|(index, fault)| Error::new(fault).about(&self.all[index].name))?;
        for (index, resolution) in found.iter_mut().enumerate() {
            if values.set[index] {
                *resolution = ExternResolution::Kconfig;
            }
            let known = &self.all[index];
            if self.is_defined(known) {
                *resolution = ExternResolution::Address(self.defined[&known.name]);
            }
            if *resolution == ExternResolution::Missing && !known.weak {
                return Err(Error::new(ExternFault::Unresolved).about(&known.name));
            }
        }
        Ok(ResolvedExterns {
            found,
            config: values.image,
        })
    }

    /// The same externs, all weak.
    pub(crate) fn weakened(&self) -> Externs {
        let mut weakened = self.clone();
        for known in &mut weakened.all {
            known.weak = true;
        }
        weakened
    }

    /// Externs in the form of a program.
    pub(crate) fn symbols(&self, resolved: &ResolvedExterns) -> Vec<ExternSymbol> {
        let ids = (0..).map(ExternId);
        self.all
            .iter()
            .zip(ids)
            .map(|(known, id)| ExternSymbol {
                name: known.name.clone(),
                type_id: known.ty,
                is_weak: known.weak,
                kind: match known.kind {
                    ExternKind::Config(_) => ExternSymbolKind::Kconfig,
                    ExternKind::Address => ExternSymbolKind::Address,
                    ExternKind::Variable(ty) => ExternSymbolKind::Variable(ty),
                    ExternKind::Function(ty) => ExternSymbolKind::Kfunc(ty),
                },
                resolution: resolved.get(id),
            })
            .collect()
    }

    /// Extern with this name.
    pub fn named(&self, name: &str) -> Option<(ExternId, &Extern)> {
        let id = *self.by_name.get(name)?;
        Some((id, self.get(id)?))
    }

    /// Size in bytes of the map `.kconfig`; `None` without kconfig externs.
    pub(crate) fn config_size(&self) -> Option<u32> {
        let mut values = self.all.iter().rev().filter_map(|known| match known.kind {
            ExternKind::Config(value) => Some(value.offset.saturating_add(value.size)),
            _ => None,
        });
        values.next()
    }

    /// Rewrites a DATASEC of externs into one of defined variables.
    fn define_externs(
        &self,
        btf: &mut Btf<'_>,
        id: TypeId,
        placeholder: TypeId,
    ) -> Result<(), Error> {
        let Shape::Datasec(section) = btf.at(id).shape() else {
            return Ok(());
        };
        let is_config = btf.at(id).name() == KCONFIG;
        let mut places: Vec<VarSecinfo> = section.vars().collect();
        let mut known = Vec::with_capacity(places.len());
        for placed in &places {
            let ty = btf.at(placed.var);
            let missing = || Error::new(ExternFault::NoSymbol).about(ty.name());
            let named = self.named(&ty.name().to_string_lossy());
            known.push(named.ok_or_else(missing)?.1.kind);
        }
        if is_config {
            for (placed, kind) in places.iter_mut().zip(&known) {
                btf.set_linkage(placed.var, Linkage::GLOBAL);
                if let ExternKind::Config(value) = kind {
                    placed.offset = value.offset;
                }
            }
            btf.set_section(id, self.config_size().unwrap_or(0), &places);
            return Ok(());
        }
        // The kernel accepts no extern variables, so each becomes a defined integer.
        let int = find_int(btf);
        let mut end = 0;
        for placed in &mut places {
            btf.set_linkage(placed.var, Linkage::GLOBAL);
            match btf.at(placed.var).shape() {
                Shape::Func(func) => {
                    name_params(btf, func, placeholder);
                    placed.var = placeholder;
                }
                _ => btf.set_referred(placed.var, int),
            }
            placed.offset = end;
            placed.size = 4;
            end += 4;
        }
        btf.set_section(id, end, &places);
        Ok(())
    }
}

/// Sorts kconfig externs by descending alignment, then by size; the others by name.
fn sort(externs: &mut [Extern]) {
    externs.sort_by(|a, b| {
        let rank = |known: &Extern| match known.kind {
            ExternKind::Config(value) => (0, Reverse(value.align), value.size),
            _ => (1, Reverse(0), 0),
        };
        (rank(a), &a.name).cmp(&(rank(b), &b.name))
    });
}

fn place_config(externs: &mut [Extern]) {
    let mut end = 0u32;
    for known in externs {
        if let ExternKind::Config(value) = &mut known.kind {
            let next = end.checked_next_multiple_of(value.align);
            value.offset = next.unwrap_or(u32::MAX);
            end = value.offset.saturating_add(value.size);
        }
    }
}

/// Resolution of the externs of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResolvedExterns {
    found: Vec<ExternResolution>,
    /// Contents of the map `.kconfig`.
    pub(crate) config: Image<'static>,
}

impl ResolvedExterns {
    /// Resolution of the extern with this index.
    pub fn get(&self, id: ExternId) -> ExternResolution {
        self.found.get(id.0 as usize).copied().unwrap_or_default()
    }
}

/// Names the unnamed parameters of a prototype, as the kernel requires names.
fn name_params(btf: &mut Btf<'_>, func: Func, placeholder: TypeId) {
    let name = btf.at(placeholder).name_offset();
    let Shape::Proto(proto) = btf.at(func.proto).shape() else {
        return;
    };
    let nameless: Vec<usize> = proto
        .params()
        .enumerate()
        .filter(|(_, param)| param.name.0 == 0 && !param.ty.is_void())
        .map(|(index, _)| index)
        .collect();
    for index in nameless {
        btf.set_param_name(func.proto, index, name);
    }
}

/// Adds a placeholder variable that replaces the functions in the DATASEC `.ksyms`, which
/// may contain only variables. Returns `void` if there are no functions.
fn add_placeholder(btf: &mut Btf<'_>) -> TypeId {
    let has_functions = btf
        .datasecs()
        .find(|ty| ty.name() == KSYMS)
        .is_some_and(|ty| match ty.shape() {
            Shape::Datasec(section) => section
                .vars()
                .any(|placed| btf.at(placed.var).kind() == Kind::Func),
            _ => false,
        });
    if !has_functions {
        return TypeId::VOID;
    }
    let ty = find_int(btf);
    let linkage = Linkage::GLOBAL;
    btf.append(|builder| {
        let name = builder.string("dummy_ksym");
        builder.var(name, Var { ty, linkage })
    })
}

/// First integer of 32 bits.
fn find_int(btf: &Btf<'_>) -> TypeId {
    let is_int = |shape| matches!(shape, Shape::Int(int) if int.bits == 32);
    let found = btf.types().find(|ty| is_int(ty.shape()));
    found.map_or(TypeId::VOID, |ty| ty.id())
}

/// BTF of the extern names.
struct Found<'e> {
    /// First variable or function of each name.
    types: HashMap<&'e [u8], TypeId>,
    /// First DATASEC that lists each.
    sections: HashMap<TypeId, TypeId>,
}

impl<'e> Found<'e> {
    fn of(btf: &Btf<'_>, names: impl Iterator<Item = Name<'e>>) -> Found<'e> {
        let mut types: HashMap<&[u8], TypeId> =
            names.map(|name| (name.as_bytes(), TypeId::VOID)).collect();
        let mut sections = HashMap::new();
        for ty in btf.types() {
            match ty.shape() {
                Shape::Var(_) | Shape::Func(_) => {
                    if let Some(first) = types.get_mut(ty.name().as_bytes())
                        && first.is_void()
                    {
                        *first = ty.id();
                    }
                }
                Shape::Datasec(section) => {
                    for placed in section.vars() {
                        sections.entry(placed.var).or_insert(ty.id());
                    }
                }
                _ => {}
            }
        }
        Found { types, sections }
    }

    fn describe(&self, btf: &Btf<'_>, name: Name<'_>) -> Result<(TypeId, ExternKind), ExternFault> {
        let id = self.types.get(name.as_bytes()).copied().unwrap_or_default();
        let (of, linkage, is_function) = match btf.at(id).shape() {
            Shape::Var(var) => (var.ty, var.linkage, false),
            Shape::Func(func) => (func.proto, func.linkage, true),
            _ => return Err(ExternFault::NotDescribed),
        };
        if linkage != Linkage::EXTERN {
            return Err(ExternFault::NotExtern);
        }
        let section = self.sections.get(&id).ok_or(ExternFault::NoSection)?;
        let section = btf.at(*section).name();
        let kind = if section == KCONFIG {
            if is_function {
                return Err(ExternFault::ConfigFunction);
            }
            ExternKind::Config(ConfigValue::of(btf, of)?)
        } else if section == KSYMS {
            match btf.skip_modifiers(of).unwrap_or_default() {
                proto if is_function => ExternKind::Function(proto),
                TypeId::VOID => ExternKind::Address,
                ty => ExternKind::Variable(ty),
            }
        } else {
            return Err(ExternFault::UnknownSection(section.to_string()));
        };
        Ok((id, kind))
    }

    /// True for a variable of the kernel of another type than `void`, `const void` included.
    fn is_typed_ksym(&self, btf: &Btf<'_>, id: TypeId) -> bool {
        let section = self.sections.get(&id);
        section.is_some_and(|section| btf.at(*section).name() == KSYMS)
            && matches!(btf.at(id).shape(), Shape::Var(var) if !var.ty.is_void())
    }

    /// DATASECs that list externs: `.ksyms`, `.kconfig`.
    fn sections_of(&self, externs: &Externs) -> Vec<TypeId> {
        let mut found: Vec<TypeId> = externs
            .iter()
            .filter_map(|known| self.sections.get(&known.ty).copied())
            .collect();
        found.sort_unstable();
        found.dedup();
        found
    }
}
