//! Exception callbacks: a program may name, by a tag on its function
//! (`exception_callback:NAME`), a function that runs when it throws. Nothing calls
//! that function, so it must be found and appended by name.

use btf::{Btf, DeclTag, Kind, Linkage, Shape};

use crate::programs::{Code, Codes, ProgramId};
use crate::relocate::RelocationFault;

const TAG: &[u8] = b"exception_callback:";

/// A tag: the function that has it, and the function that it names.
struct Tag<'b> {
    on: &'b [u8],
    callback: &'b [u8],
}

/// The tags of an object, by the name of the function that they are on.
#[derive(Default)]
pub(crate) struct Callbacks<'b> {
    tags: Vec<Tag<'b>>,
    /// Is one on anything but a global function?
    is_misplaced: bool,
}

impl<'b> Callbacks<'b> {
    /// Finds the tags.
    pub(crate) fn of(btf: &'b Btf<'b>) -> Callbacks<'b> {
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
        found
    }

    /// The callback of a program. Of several, none is meant: the kernel refuses
    /// that later.
    pub(crate) fn of_program(
        &self,
        codes: &Codes<'_>,
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
        let is_meant = |code: &Code<'_>| code.is_function && code.name.as_bytes() == callback;
        match codes.iter().find(|(_, code)| is_meant(code)) {
            None => Err(RelocationFault::NoCallback { name: text() }),
            Some((_, code)) if !code.is_global || code.is_hidden => {
                Err(RelocationFault::CallbackLinkage { name: text() })
            }
            Some((id, _)) => Ok(Some(id)),
        }
    }
}
