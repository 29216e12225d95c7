//! Reason why the target lacks the access of a relocation, for messages.
//!
//! The path is followed again in the first type of the target with the right name, up to
//! the step that has no counterpart there.

use super::compatible::Comparison;
use super::matching::{Found, Wanted, find_member};
use super::path::{Path, Subject};
use super::resolver::candidates_in;
use super::{CoreError, essential_name};
use crate::diff::describe;
use crate::ext::{CoreKind, CoreSpec};
use crate::{Btf, Shape, TypeId};

/// What the target lacks, or has instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Absence {
    /// The target has no type of this name.
    NoType {
        /// The type in C notation, as `struct linux_dirent64`.
        name: String,
    },
    /// The type of the target has no such member or enumerator.
    NoPart {
        /// Type of the target in C notation.
        of: String,
        /// Name of the member or enumerator.
        part: String,
        /// True for an enumerator.
        is_enumerator: bool,
    },
    /// The member of the target has another type.
    OtherType {
        /// Member, as `task_struct.pid`.
        member: String,
        /// Type in the object in C notation.
        local: String,
        /// Type in the target in C notation.
        target: String,
    },
    /// The array of the target is shorter, or no array.
    NoElement {
        /// Type in the target in C notation.
        target: String,
        /// Index of the element.
        index: u32,
    },
    /// The type of the target is not compatible with the object's.
    OtherKind {
        /// The type in C notation.
        name: String,
    },
    /// The target has the field, and a load or store of the object's size would not give its
    /// value.
    OtherSize {
        /// Field, as `task_struct.pid`.
        field: String,
    },
}

impl std::fmt::Display for Absence {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Absence::NoType { name } => write!(f, "the kernel has no {name}"),
            Absence::NoPart {
                of,
                part,
                is_enumerator,
            } => {
                let noun = if *is_enumerator {
                    "enumerator"
                } else {
                    "member"
                };
                write!(f, "the kernel's {of} has no {noun} {part}")
            }
            Absence::OtherType {
                member,
                local,
                target,
            } => write!(
                f,
                "{member} is {target} in the kernel, {local} in the object"
            ),
            Absence::NoElement { target, index } => {
                write!(
                    f,
                    "the kernel has {target} there, without an element {index}"
                )
            }
            Absence::OtherKind { name } => {
                write!(f, "the kernel's {name} differs from the object's")
            }
            Absence::OtherSize { field } => {
                write!(f, "the kernel's {field} has another size or sign")
            }
        }
    }
}

impl Absence {
    /// Reason why the target lacks the access of a relocation. `modules` are searched if the
    /// kernel has no type of the name.
    ///
    /// # Errors
    /// If the relocation is malformed, or its types too deep to compare.
    pub fn of(
        local: &Btf<'_>,
        kernel: &Btf<'_>,
        modules: &[&Btf<'_>],
        spec: &CoreSpec,
    ) -> Result<Absence, CoreError> {
        let path = Path::parse(local, spec)?;
        let root = path.root();
        let name = || plain_name(local, root.id());
        let all = [kernel].into_iter().chain(modules.iter().copied());
        let candidate = all
            .map(|btf| (btf, candidates_in(btf, root, 1)))
            .find_map(|(btf, found)| Some((btf, found.first()?.id)));
        let Some((target, id)) = candidate else {
            return Ok(Absence::NoType { name: name() });
        };
        let mut types = Comparison::new(local, target);
        match Subject::of(spec.kind) {
            Some(Subject::Field) => in_fields(&path, &mut types, id),
            Some(Subject::EnumValue) => Ok(Absence::NoPart {
                of: plain_name(target, id),
                part: last_name(&path),
                is_enumerator: true,
            }),
            Some(Subject::Type) | None => Ok(Absence::OtherKind { name: name() }),
        }
    }
}

/// A type in C notation without the flavour of its name.
fn plain_name(btf: &Btf<'_>, id: TypeId) -> String {
    let text = describe(btf, id);
    String::from_utf8_lossy(essential_name(text.as_bytes())).into_owned()
}

/// A type in C notation, with the type that its name stands for.
fn full_name(btf: &Btf<'_>, id: TypeId) -> String {
    let plain = btf.skip_modifiers(id).unwrap_or(id);
    let (named, plain) = (describe(btf, id), describe(btf, plain));
    match named == plain || named.contains('*') || named.contains('[') {
        true => named,
        false => format!("{named} ({plain})"),
    }
}

fn last_name(path: &Path<'_>) -> String {
    let step = path.steps.last();
    let name = step.map(|step| path.name(step));
    name.map_or_else(String::new, |name| {
        String::from_utf8_lossy(essential_name(name.as_bytes())).into_owned()
    })
}

fn in_fields<'b>(
    local: &Path<'b>,
    types: &mut Comparison<'b>,
    root: TypeId,
) -> Result<Absence, CoreError> {
    let target = types.target;
    let mut path = Path::empty(target, root, CoreKind::FIELD_BYTE_OFFSET);
    let mut ty = root;
    let mut label = target.at(root).name().to_string();
    for (at, step) in local.steps.iter().enumerate() {
        if let Some(wanted) = Wanted::of(local, step) {
            let name = local.name(step).to_string();
            match find_member(&wanted, types, &mut path, ty)? {
                Found::Member(below) => ty = below,
                Found::Nothing => {
                    return Ok(Absence::NoPart {
                        of: plain_name(target, ty),
                        part: name,
                        is_enumerator: false,
                    });
                }
                Found::Misfit(found) => {
                    return Ok(Absence::OtherType {
                        member: format!("{label}.{name}"),
                        local: full_name(types.local, wanted.ty),
                        target: full_name(target, found),
                    });
                }
            }
            label = format!("{label}.{name}");
            continue;
        }
        ty = types.plain_target(ty)?.id();
        if at > 0 {
            let array = match target.at(ty).shape() {
                Shape::Array(array) if path.reaches(array, step.index) => array,
                _ => {
                    return Ok(Absence::NoElement {
                        target: describe(target, ty),
                        index: step.index,
                    });
                }
            };
            ty = types.plain_target(array.element)?.id();
            label = format!("{label}[{}]", step.index);
        }
        let size = target.size_of(ty);
        path.push_element(ty, step.index, size.unwrap_or(0));
    }
    Ok(Absence::OtherSize { field: label })
}
