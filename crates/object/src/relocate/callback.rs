//! Exception callbacks: a declaration tag on a program's function
//! (`exception_callback:NAME`) names a function that runs when the program throws. It has
//! no caller, so it is resolved by name and appended.

use std::collections::HashMap;

use btf::{Btf, DeclTag, Kind, Linkage, Shape};

use crate::programs::{ProgramDefs, ProgramId};
use crate::relocate::RelocationFault;

const TAG: &[u8] = b"exception_callback:";

/// A tag: the function that has it, and the function that it names.
struct Tag<'b> {
    on: &'b [u8],
    callback: &'b [u8],
}

/// Exception-callback tags of an object, by the name of the tagged function.
#[derive(Default)]
pub(crate) struct Callbacks<'b> {
    tags: Vec<Tag<'b>>,
    /// First function of each name, if there are tags.
    functions: HashMap<&'b [u8], ProgramId>,
    /// True if a tag is not on a global function.
    is_misplaced: bool,
}

impl<'b> Callbacks<'b> {
    /// Collects the tags.
    pub(crate) fn of(btf: &'b Btf<'b>, codes: &'b ProgramDefs<'_>) -> Callbacks<'b> {
        let mut found = Callbacks::default();
        for ty in btf.of_kind(Kind::DeclTag) {
            let Shape::DeclTag(DeclTag {
                target,
                component: -1,
            }) = ty.shape()
            else {
                continue;
            };
            let Some(callback) = ty.name().as_bytes().strip_prefix(TAG) else {
                continue;
            };
            let on = btf.at(target);
            match on.shape() {
                Shape::Func(func) if func.linkage == Linkage::GLOBAL => {
                    let on = on.name().as_bytes();
                    found.tags.push(Tag { on, callback });
                }
                _ => found.is_misplaced = true,
            }
        }
        found.tags.sort_by_key(|tag| tag.on);
        if !found.tags.is_empty() {
            let functions = codes.iter().filter(|(_, code)| code.is_function);
            for (id, code) in functions {
                found.functions.entry(code.name.as_bytes()).or_insert(id);
            }
        }
        found
    }

    /// Exception callback of a program; `None` for several, which the kernel refuses.
    pub(crate) fn of_program(
        &self,
        codes: &ProgramDefs<'_>,
        program: ProgramId,
    ) -> Result<Option<ProgramId>, RelocationFault> {
        let name = codes.get(program).map(|code| code.name).unwrap_or_default();
        if self.is_misplaced {
            return Err(RelocationFault::CallbackTag);
        }
        let from = self.tags.partition_point(|tag| tag.on < name.as_bytes());
        let own = self.tags[from..]
            .iter()
            .take_while(|tag| tag.on == name.as_bytes());
        let mut own = own.map(|tag| tag.callback);
        let (Some(callback), None) = (own.next(), own.next()) else {
            return Ok(None);
        };
        if callback.is_empty() {
            return Err(RelocationFault::CallbackTag);
        }
        let text = || String::from_utf8_lossy(callback).into_owned();
        let named = self.functions.get(callback).copied();
        let id = named.ok_or_else(|| RelocationFault::NoCallback { name: text() })?;
        match codes.get(id) {
            Some(code) if code.is_global && !code.is_hidden => Ok(Some(id)),
            _ => Err(RelocationFault::CallbackLinkage { name: text() }),
        }
    }
}
