//! Exception callbacks: a program may name, by a tag on its function
//! (`exception_callback:NAME`), a function that runs when it throws. Nothing calls
//! that function, so it must be found and appended by name.

use btf::{Btf, Kind, Linkage, Shape};

use crate::programs::{Codes, ProgramId};
use crate::relocate::RelocationFault;

const TAG: &[u8] = b"exception_callback:";

/// A tag: the function that has it, and the function that it names.
struct Tag<'b> {
    /// `None` if it is on anything but a global function.
    on: Option<&'b [u8]>,
    callback: &'b [u8],
}

/// The tags of an object.
#[derive(Default)]
pub(crate) struct Callbacks<'b>(Vec<Tag<'b>>);

impl<'b> Callbacks<'b> {
    /// Finds the tags.
    pub(crate) fn of(btf: &'b Btf<'b>) -> Callbacks<'b> {
        let tags = btf.types().filter_map(|ty| match ty.shape() {
            Shape::DeclTag(tag) if tag.component == -1 => {
                let callback = ty.name().as_bytes().strip_prefix(TAG)?;
                let on = btf.at(tag.target);
                let is_global = matches!(
                    on.shape(),
                    Shape::Func(func) if func.linkage == Linkage::GLOBAL
                );
                let on = (on.kind() == Kind::Func && is_global).then(|| on.name().as_bytes());
                Some(Tag { on, callback })
            }
            _ => None,
        });
        Callbacks(tags.collect())
    }

    /// The callback of a program. Of several, none is meant: the kernel refuses
    /// that later.
    pub(crate) fn of_program(
        &self,
        codes: &Codes<'_>,
        program: ProgramId,
    ) -> Result<Option<ProgramId>, RelocationFault> {
        let name = codes.get(program).map(|code| code.name).unwrap_or_default();
        let mut found = None;
        for tag in &self.0 {
            let on = tag.on.ok_or(RelocationFault::CallbackTag)?;
            if on != name.as_bytes() {
                continue;
            }
            if found.is_some() {
                return Ok(None);
            }
            if tag.callback.is_empty() {
                return Err(RelocationFault::CallbackTag);
            }
            let text = || String::from_utf8_lossy(tag.callback).into_owned();
            let named = |code: &crate::Code<'_>| code.name.as_bytes() == tag.callback;
            let (id, code) = codes
                .iter()
                .find(|(_, code)| code.is_function && named(code))
                .ok_or_else(|| RelocationFault::NoCallback { name: text() })?;
            if !code.is_global || code.is_hidden {
                return Err(RelocationFault::CallbackLinkage { name: text() });
            }
            found = Some(id);
        }
        Ok(found)
    }
}
