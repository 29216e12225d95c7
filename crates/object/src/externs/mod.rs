//! What a program expects of the kernel by name: values of its configuration
//! (`.kconfig`), and its variables and functions (`.ksyms`).
//!
//! The symbols of the file say that a name is wanted and whether it is optional
//! (weak); the types say what it is, and by the section that lists it, where to look
//! for it. Collecting brings the two together, gives the values of the
//! configuration their places in a map of their own, and changes the types to what
//! kernels accept: externs become variables that the object has.
//!
//! Cost: a pass over symbols and types each, for any number of externs.

mod fault;
mod kconfig;
mod ksyms;

use std::cmp::Reverse;
use std::collections::HashMap;

use btf::{Btf, Func, Kind, Linkage, Name, Placed, Shape, TypeId, Var};
use program::{ExternId, ExternResolution, ExternSymbol, ExternSymbolKind, Image};

use crate::datasec::{KCONFIG, KSYMS};
use crate::elf::{Binding, Elf, SymbolId};
use crate::error::Error;
use kconfig::Values;
use spec::Kernel;

pub use fault::ExternFault;
pub use kconfig::{ConfigKind, ConfigValue};

/// What an object expects of the kernel: first values of its configuration, in the
/// order of their places, then what it has, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Externs {
    all: Vec<Extern>,
    by_symbol: HashMap<SymbolId, ExternId>,
    by_name: HashMap<String, ExternId>,
}

/// One name that the kernel should know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extern {
    /// The name.
    pub name: String,
    /// The symbol that stands for it.
    pub symbol: SymbolId,
    /// Its type in the object: a variable or a function.
    pub ty: TypeId,
    /// May it be missing?
    pub weak: bool,
    /// What it is.
    pub kind: ExternKind,
}

/// What is expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExternKind {
    /// A value of the configuration.
    Config(ConfigValue),
    /// A symbol of no type, whose address is wanted.
    Address,
    /// A variable of this type.
    Variable(TypeId),
    /// A function of this prototype.
    Function(TypeId),
}

impl Externs {
    /// Finds what is expected, and changes the types to what kernels accept.
    pub(crate) fn collect(elf: &Elf<'_>, btf: Option<&mut Btf<'_>>) -> Result<Externs, Error> {
        let mut wanted = Vec::new();
        for symbol in elf.symbols().iter().filter(|symbol| symbol.is_extern()) {
            let name = elf.symbol_name(symbol).unwrap_or_default();
            if !name.is_empty() {
                wanted.push((name, symbol.id, symbol.binding == Binding::Weak));
            }
        }
        let Some(btf) = btf else {
            return match wanted.first() {
                Some((name, ..)) => Err(Error::new(ExternFault::NoTypes).about(name)),
                None => Ok(Externs::default()),
            };
        };
        let placeholder = add_placeholder(btf);
        if wanted.is_empty() {
            return Ok(Externs::default());
        }
        let found = Found::of(btf, wanted.iter().map(|&(name, ..)| name));
        let mut externs = Vec::with_capacity(wanted.len());
        for &(name, symbol, weak) in &wanted {
            let described = found.describe(btf, name);
            let (ty, kind) = described.map_err(|fault| Error::new(fault).about(name))?;
            let name = name.to_string();
            externs.push(Extern {
                name,
                symbol,
                ty,
                weak,
                kind,
            });
        }
        let externs = Externs::new(externs);
        let sections = found.sections_of(&externs);
        for id in sections {
            externs.settle(btf, id, placeholder)?;
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

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Extern> {
        self.all.iter()
    }

    /// What the symbol stands for.
    pub fn of_symbol(&self, symbol: SymbolId) -> Option<(ExternId, &Extern)> {
        let id = *self.by_symbol.get(&symbol)?;
        Some((id, self.get(id)?))
    }

    /// The extern of that number.
    pub fn get(&self, id: ExternId) -> Option<&Extern> {
        self.all.get(id.0 as usize)
    }

    /// Finds out what each is in the target, in libbpf's order: values that loaders
    /// make up, the configuration, symbols, types. `config` is a text that goes before
    /// the target's own configuration.
    pub(crate) fn resolve(
        &self,
        btf: &Btf<'_>,
        kernel: &Kernel,
        config: Option<&str>,
    ) -> Result<ResolvedExterns, Error> {
        let mut values = Values::new(self, self.config_size().unwrap_or(0));
        values.fill(kernel, config)?;
        let mut found = vec![ExternResolution::Missing; self.all.len()];
        ksyms::resolve(self, btf, kernel, &mut found)
            .map_err(|(index, fault)| Error::new(fault).about(&self.all[index].name))?;
        for (index, resolution) in found.iter_mut().enumerate() {
            if values.set[index] {
                *resolution = ExternResolution::Kconfig;
            }
            let known = &self.all[index];
            if *resolution == ExternResolution::Missing && !known.weak {
                return Err(Error::new(ExternFault::Unresolved).about(&known.name));
            }
        }
        Ok(ResolvedExterns {
            found,
            config: values.image,
        })
    }

    /// The externs as a program has them.
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

    /// The extern of that name.
    pub fn named(&self, name: &str) -> Option<(ExternId, &Extern)> {
        let id = *self.by_name.get(name)?;
        Some((id, self.get(id)?))
    }

    /// Bytes of the map of configuration values; `None` without any.
    pub(crate) fn config_size(&self) -> Option<u32> {
        let mut values = self.all.iter().rev().filter_map(|known| match known.kind {
            ExternKind::Config(value) => Some(value.offset.saturating_add(value.size)),
            _ => None,
        });
        values.next()
    }

    /// Changes a section of externs to one of variables that the object has.
    fn settle(&self, btf: &mut Btf<'_>, id: TypeId, placeholder: TypeId) -> Result<(), Error> {
        let Shape::Datasec(section) = btf.at(id).shape() else {
            return Ok(());
        };
        let is_config = btf.at(id).name() == KCONFIG;
        let mut places: Vec<Placed> = section.vars().collect();
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
        // Kernels take no externs, so each becomes an integer that is there.
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

/// Configuration first, by alignment from the largest, then by size; all others by
/// name.
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

/// What the externs of an object are in a target.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResolvedExterns {
    found: Vec<ExternResolution>,
    /// The contents of the map of configuration values.
    pub(crate) config: Image<'static>,
}

impl ResolvedExterns {
    /// What the extern of that number is.
    pub fn get(&self, id: ExternId) -> ExternResolution {
        self.found.get(id.0 as usize).copied().unwrap_or_default()
    }
}

/// Parameters of a prototype without names, which kernels ask for, get one.
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

/// A variable that stands in `.ksyms` for each function there, as only variables
/// may. Without such functions none is made, and `void` is answered.
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

/// The first integer of 32 bits.
fn find_int(btf: &Btf<'_>) -> TypeId {
    let is_int = |shape| matches!(shape, Shape::Int(int) if int.bits == 32);
    let found = btf.types().find(|ty| is_int(ty.shape()));
    found.map_or(TypeId::VOID, |ty| ty.id())
}

/// What the types say about the names that are wanted.
struct Found<'e> {
    /// The first variable or function of each name.
    types: HashMap<&'e [u8], TypeId>,
    /// The first section that lists each.
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

    /// The sections that list them: `.ksyms`, `.kconfig`.
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
