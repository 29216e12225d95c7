//! Static linking of BTF.
//!
//! The types of each file are appended to those of earlier files. Visible variables and
//! functions of one name are merged at once into one type, which refers to the type of
//! the defining file. Other equal types are merged by deduplication. Strings stay in the
//! order of their first use.
//! type, which in the end refers to what the file says that defines it. All other
//! joining is left to deduplication. Strings stay in the order in which they came.

use std::collections::HashMap;

use btf::{
    Btf, BtfExt, Builder, Kind, Linkage, Name, Shape, StrOffset, Type, TypeId, VarSecinfo,
    dedup_types,
};

use super::agreement::{Mismatch, Typed, check_symbols};
use super::input::{Input, is_shared};
use super::output::Output;
use super::symbols::Symbols;
use super::{LinkFault, info};
use crate::Error;

/// A type of an input file.
#[derive(Clone, Copy)]
struct Origin {
    file: usize,
    id: TypeId,
}

/// BTF of all files.
#[derive(Default)]
pub(super) struct Types {
    builder: Builder,
    /// Output type id of each type, by file.
    numbers: Vec<Vec<TypeId>>,
    /// Visible variables and functions, by name.
    shared: HashMap<Vec<u8>, Shared>,
    /// Names set for parameters of prototypes, in order.
    params: Vec<(TypeId, usize, StrOffset)>,
}

/// A visible variable or function.
struct Shared {
    /// Type id.
    id: TypeId,
    /// Type in the first file that has it.
    first: Origin,
    linkage: Linkage,
    /// Type that it refers to.
    to: Origin,
    /// True if the next type of this name decides the reference.
    is_renewed: bool,
    /// Index among the variables of its DATASEC.
    variable: Option<usize>,
}

impl Types {
    /// Checks the compatibility of a new symbol with the known one of the same name.
    pub(super) fn check(
        &self,
        files: &[Input<'_>],
        name: &[u8],
        now: Type<'_>,
    ) -> Result<(), Mismatch> {
        let shared = self.shared.get(name).ok_or(Mismatch::Untyped)?;
        if !matches!(now.kind(), Kind::Var | Kind::Func) {
            return Err(Mismatch::Neither(now.kind()));
        }
        let before = self.at(files, shared.first);
        let to = self.at(files, shared.to);
        let (Some(before), Some(to)) = (before, to) else {
            return Err(Mismatch::Untyped);
        };
        let to = Typed {
            btf: to.btf(),
            id: to.id(),
        };
        check_symbols(before, shared.linkage, to, now)
    }

    /// Type that a known symbol refers to.
    pub(super) fn referred<'f>(&self, files: &'f [Input<'_>], name: &[u8]) -> Option<Type<'f>> {
        self.at(files, self.shared.get(name)?.to)
    }

    fn at<'f>(&self, files: &'f [Input<'_>], origin: Origin) -> Option<Type<'f>> {
        files.get(origin.file)?.btf.as_ref()?.get(origin.id)
    }

    /// Replaces a declaration or weak definition by `now`, the definition of a file.
    pub(super) fn define(&mut self, files: &[Input<'_>], name: &[u8], now: Type<'_>) {
        let Some(shared) = self.shared.get_mut(name) else {
            return;
        };
        shared.linkage = Linkage::GLOBAL;
        shared.is_renewed = true;
        let Shape::Func(func) = now.shape() else {
            return;
        };
        // Declarations do not name their parameters. The earlier prototype gets the names
        // too, so that deduplication finds both equal.
        let to = shared.to;
        let Some(btf) = files.get(to.file).and_then(|file| file.btf.as_ref()) else {
            return;
        };
        let (Shape::Proto(old), Shape::Proto(new)) =
            (btf.at(to.id).shape(), now.btf().at(func.proto).shape())
        else {
            return;
        };
        let id = self.numbers[to.file][to.id.0 as usize];
        for (index, param) in new.params().enumerate().take(old.params().len()) {
            if param.name != StrOffset::EMPTY {
                let name = self.builder.string(now.btf().string(param.name).as_bytes());
                self.params.push((id, index, name));
            }
        }
    }

    /// Appends the types of a file, which will be file `file`.
    pub(super) fn append(
        &mut self,
        file: usize,
        input: &Input<'_>,
        symbols: &Symbols,
    ) -> Result<(), Error> {
        let Some(btf) = &input.btf else {
            self.numbers.push(Vec::new());
            return Ok(());
        };
        let mut numbers = vec![TypeId::VOID; btf.len()];
        let mut added = Vec::new();
        let mut next = self.builder.next_id();
        for ty in btf.types() {
            let name = ty.name().as_bytes();
            // A DATASEC variable without a symbol is in an omitted section.
            let is_shared = is_shared(ty);
            if ty.kind() == Kind::Datasec || is_shared && !symbols.contains(name) {
                continue;
            }
            let origin = |id| Origin { file, id };
            let to = origin(ty.referred().unwrap_or_default());
            if let (true, Some(shared)) = (is_shared, self.shared.get_mut(name)) {
                if shared.is_renewed {
                    shared.to = to;
                    shared.is_renewed = false;
                }
                numbers[ty.id().0 as usize] = shared.id;
                continue;
            }
            if is_shared {
                let shared = Shared {
                    id: next,
                    first: origin(ty.id()),
                    linkage: linkage(ty),
                    to,
                    is_renewed: false,
                    variable: None,
                };
                self.shared.insert(name.to_vec(), shared);
            }
            numbers[ty.id().0 as usize] = next;
            next.0 += 1;
            added.push(ty);
        }
        for ty in added {
            let mut left_out = None;
            self.builder.copy(ty, |to| {
                let number = numbers[to.0 as usize];
                if number.is_void() && !to.is_void() {
                    left_out = Some(to);
                }
                number
            });
            if let Some(to) = left_out {
                return Err(Error::from(LinkFault::TypeLeftOut(to)).about(ty.name()));
            }
        }
        self.numbers.push(numbers);
        Ok(())
    }

    /// Offset of a string that BTF.ext uses.
    pub(super) fn string(&mut self, text: Name<'_>) -> StrOffset {
        self.builder.string(text.as_bytes())
    }

    /// Appends the variables of a file, whose types are appended, to their DATASECs.
    pub(super) fn append_variables(
        &mut self,
        files: &[Input<'_>],
        symbols: &Symbols,
        output: &mut Output,
    ) -> Result<(), Error> {
        let Some((input, numbers)) = files.last().zip(self.numbers.last()) else {
            return Ok(());
        };
        let Some(btf) = &input.btf else {
            return Ok(());
        };
        for part in &input.parts {
            let Some(placed) = part.variables.as_ref().filter(|_| !part.is_left_out) else {
                continue;
            };
            let variables = output.sections[part.to].variables.get_or_insert_default();
            for placed in placed {
                let var = btf.at(placed.var);
                let new = VarSecinfo {
                    var: numbers[placed.var.0 as usize],
                    offset: (part.at as u32).wrapping_add(placed.offset),
                    size: placed.size,
                };
                let name = var.name().as_bytes();
                let about = |fault: LinkFault| {
                    let section = Name::new(&part.name);
                    Error::from(fault).about(var.name()).in_section(section)
                };
                let shared = self.shared.get_mut(name);
                let Some(shared) = shared.filter(|shared| shared.id == new.var) else {
                    variables.push(new);
                    continue;
                };
                if symbols.section_of(name) != Some(part.to) {
                    return Err(about(LinkFault::OtherSection));
                }
                let Some(known) = shared.variable else {
                    shared.variable = Some(variables.len());
                    variables.push(new);
                    continue;
                };
                let known = variables.get_mut(known);
                let known = known.ok_or_else(|| about(LinkFault::OtherSection))?;
                // The size is that of the current type; functions have none.
                if var.kind() == Kind::Var {
                    let to = shared.to;
                    let size = files[to.file]
                        .btf
                        .as_ref()
                        .and_then(|btf| btf.size_of(to.id));
                    known.size = size.ok_or_else(|| about(LinkFault::NoSize))?;
                }
            }
        }
        Ok(())
    }

    /// Output type id of a type of a file.
    pub(super) fn number(&self, file: usize, id: TypeId) -> TypeId {
        self.numbers[file]
            .get(id.0 as usize)
            .copied()
            .unwrap_or_default()
    }

    /// `.BTF` and, if there are records, `.BTF.ext`; `None` without types.
    pub(super) fn finish(mut self, output: &Output) -> Result<Option<Blobs>, LinkFault> {
        if self.builder.next_id() == TypeId(1) {
            return Ok(None);
        }
        for section in &output.sections[1..] {
            if let Some(variables) = &section.variables {
                let name = self.builder.string(&section.name);
                self.builder.datasec(name, section.size as u32, variables);
            }
        }
        let ext = info::write(output, &mut self.builder);
        let mut btf = Btf::parse(self.builder.finish()).map_err(|_| LinkFault::TooLarge)?;
        for shared in self.shared.values() {
            btf.set_linkage(shared.id, shared.linkage);
            btf.set_referred(shared.id, self.number(shared.to.file, shared.to.id));
        }
        for &(id, index, name) in &self.params {
            btf.set_param_name(id, index, name);
        }
        let ext = ext
            .map(|ext| BtfExt::parse(ext).map_err(|_| LinkFault::TooLarge))
            .transpose()?;
        let joined = dedup_types(&btf, ext.as_ref()).map_err(LinkFault::Dedup)?;
        Ok(Some((with_layout(joined.btf), joined.ext)))
    }
}

/// `.BTF` and `.BTF.ext`.
type Blobs = (Vec<u8>, Option<Vec<u8>>);

fn linkage(ty: Type<'_>) -> Linkage {
    match ty.shape() {
        Shape::Var(var) => var.linkage,
        Shape::Func(func) => func.linkage,
        _ => Linkage::STATIC,
    }
}

/// Blob with the header of Linux 7, which has two more words, for an empty layout
/// section.
fn with_layout(blob: Vec<u8>) -> Vec<u8> {
    const OLD: usize = 24;
    const NEW: u32 = 32;
    let mut out = blob[..OLD].to_vec();
    out[4..8].copy_from_slice(&NEW.to_le_bytes());
    out.extend([0; NEW as usize - OLD]);
    out.extend_from_slice(&blob[OLD..]);
    out
}
