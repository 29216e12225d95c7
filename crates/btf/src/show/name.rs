//! Prefix of a printed value: the name of its member, its type in parentheses, the bracket
//! of a structure or array.

use super::{ShowFlags, Walk};
use crate::{Kind, Shape, TypeId};

/// Bytes of the text at most (`BTF_SHOW_NAME_SIZE` without its NUL).
const LONGEST: usize = 79;

/// Most types from a typedef, array or pointer to what it is made of.
const MOST_STEPS: usize = 10;

impl Walk<'_, '_, '_> {
    /// The text before the value that is shown (`btf_show_name`).
    #[doc(alias = "btf_show_name")]
    pub(super) fn name(&self) -> Vec<u8> {
        if self.is_element {
            return Vec::new();
        }
        let id = match (self.member, self.shown) {
            (Some(member), _) => member.ty,
            (None, Some((_, id))) => id,
            (None, None) => TypeId::VOID,
        };
        let Some(description) = self.describe(id) else {
            return Vec::new();
        };
        let mut text = match self.flags.has(ShowFlags::NONAME) {
            true => description.bracket.to_owned(),
            false => {
                let member = self.member.map(|member| self.types.string(member.name));
                let member = match member.filter(|name| !name.is_empty()) {
                    Some(name) => format!(".{name} = "),
                    None => String::new(),
                };
                format!("{member}({}){}", description.ty, description.bracket)
            }
        }
        .into_bytes();
        text.truncate(LONGEST);
        text
    }

    /// A type as in C, as far as Linux does: behind the first qualifier there is no name.
    fn describe(&self, id: TypeId) -> Option<Description> {
        let mut ty = self.types.get(id)?;
        let (mut name, mut stars, mut brackets) = (None, String::new(), String::new());
        let mut steps = 0..MOST_STEPS;
        loop {
            steps.next()?;
            let next = match ty.shape() {
                Shape::Typedef(to) => {
                    name.get_or_insert(ty.name());
                    to
                }
                Shape::Array(array) => {
                    brackets += "[]";
                    array.element
                }
                Shape::Ptr(to) => {
                    stars += "*";
                    to
                }
                _ => break,
            };
            if next.is_void() {
                break;
            }
            ty = self.skip_qualifiers(next)?;
        }
        let name_of_type = name.unwrap_or_else(|| ty.name());
        let prefix = match ty.kind() {
            _ if name.is_some() => "",
            Kind::Struct => "struct",
            Kind::Union => "union",
            Kind::Enum | Kind::Enum64 => "enum",
            _ => "",
        };
        let bracket = match ty.kind() {
            _ if !stars.is_empty() => "",
            _ if !brackets.is_empty() => "[",
            Kind::Struct | Kind::Union => "{",
            _ => "",
        };
        let name = name_of_type.to_string_lossy();
        let before_name = if prefix.is_empty() || name.is_empty() {
            ""
        } else {
            " "
        };
        let before_stars = if stars.is_empty() { "" } else { " " };
        Some(Description {
            ty: format!("{prefix}{before_name}{name}{before_stars}{stars}{brackets}"),
            bracket,
        })
    }

    /// The type below qualifiers (`btf_type_skip_qualifiers`).
    #[doc(alias = "btf_type_skip_qualifiers")]
    fn skip_qualifiers(&self, id: TypeId) -> Option<crate::Type<'_>> {
        let mut ty = self.types.get(id)?;
        for _ in 0..self.types.len() {
            match ty.shape() {
                Shape::Volatile(to)
                | Shape::Const(to)
                | Shape::Restrict(to)
                | Shape::TypeTag(to) => ty = self.types.get(to)?,
                _ => return Some(ty),
            }
        }
        None
    }
}

/// A type as text.
struct Description {
    /// Name with prefix and suffixes.
    ty: String,
    /// Opening bracket of a structure or array.
    bracket: &'static str,
}
