//! The nineteen kinds of types (BTF_KIND_*), by number and name.

use crate::wire::{MEMBER_SIZE, PARAM_SIZE, PLACED_SIZE, VALUE_SIZE, VALUE64_SIZE};

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $number:literal, $text:literal, $fixed:expr, $each:expr;)*) => {
        /// Kind of a type (BTF_KIND_*).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Kind {
            /// Kind of type id 0, which has no record (`btf_type_is_void`).
            #[doc(alias = "btf_type_is_void")]
            Void = 0,
            $($(#[$doc])* $name = $number,)*
        }

        impl Kind {
            /// Every kind of record, by number.
            pub const ALL: &'static [Kind] = &[$(Kind::$name,)*];

            /// Kind with this number.
            pub fn from_number(number: u32) -> Option<Kind> {
                match number {
                    $($number => Some(Kind::$name),)*
                    _ => None,
                }
            }

            /// Name in dumps and in the kernel's log (`btf_type_str`).
            #[doc(alias = "btf_type_str")]
            pub fn name(self) -> &'static str {
                match self {
                    Kind::Void => "UNKNOWN",
                    $(Kind::$name => $text,)*
                }
            }

            /// Size in bytes of the data after the record: fixed size, and size for each
            /// counted item.
            pub(crate) const fn tail(self) -> (usize, usize) {
                match self {
                    Kind::Void => (0, 0),
                    $(Kind::$name => ($fixed, $each),)*
                }
            }
        }
    };
}

// Number, name, fixed size after the record, size of each counted item.
kinds! {
    /// Integer, character or boolean.
    Int = 1, "INT", 4, 0;
    /// A pointer.
    Ptr = 2, "PTR", 0, 0;
    /// An array.
    Array = 3, "ARRAY", 12, 0;
    /// A structure.
    Struct = 4, "STRUCT", 0, MEMBER_SIZE;
    /// A union.
    Union = 5, "UNION", 0, MEMBER_SIZE;
    /// An enumeration whose values have at most 32 bits.
    Enum = 6, "ENUM", 0, VALUE_SIZE;
    /// Forward declaration of a structure or union.
    Fwd = 7, "FWD", 0, 0;
    /// Typedef.
    Typedef = 8, "TYPEDEF", 0, 0;
    /// `volatile`.
    Volatile = 9, "VOLATILE", 0, 0;
    /// `const`.
    Const = 10, "CONST", 0, 0;
    /// `restrict`.
    Restrict = 11, "RESTRICT", 0, 0;
    /// Function: a name for a prototype.
    Func = 12, "FUNC", 0, 0;
    /// Function prototype.
    FuncProto = 13, "FUNC_PROTO", 0, PARAM_SIZE;
    /// A variable.
    Var = 14, "VAR", 4, 0;
    /// A section of variables (`btf_type_is_datasec`).
    #[doc(alias = "btf_type_is_datasec")]
    Datasec = 15, "DATASEC", 0, PLACED_SIZE;
    /// A floating-point number.
    Float = 16, "FLOAT", 0, 0;
    /// `__attribute__((btf_decl_tag))` (`btf_type_is_decl_tag`).
    #[doc(alias = "btf_type_is_decl_tag")]
    DeclTag = 17, "DECL_TAG", 4, 0;
    /// `__attribute__((btf_type_tag))`.
    TypeTag = 18, "TYPE_TAG", 0, 0;
    /// An enumeration whose values have up to 64 bits.
    Enum64 = 19, "ENUM64", 0, VALUE64_SIZE;
}

impl Kind {
    /// True if the record contains a size instead of a type: the kinds with a size of their own
    /// (`btf_type_has_size`).
    #[doc(alias = "btf_type_has_size")]
    pub fn has_size(self) -> bool {
        matches!(
            self,
            Kind::Int
                | Kind::Struct
                | Kind::Union
                | Kind::Enum
                | Kind::Datasec
                | Kind::Float
                | Kind::Enum64
        )
    }

    /// True for typedefs and qualifiers, which have the size of another type
    /// (`btf_type_is_modifier`).
    #[doc(alias = "btf_type_is_modifier")]
    pub fn is_modifier(self) -> bool {
        matches!(
            self,
            Kind::Typedef | Kind::Volatile | Kind::Const | Kind::Restrict | Kind::TypeTag
        )
    }

    /// True for structures and unions.
    pub fn is_composite(self) -> bool {
        matches!(self, Kind::Struct | Kind::Union)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_follow_the_format() {
        for (at, kind) in Kind::ALL.iter().enumerate() {
            assert_eq!(Kind::from_number(at as u32 + 1), Some(*kind));
            assert_eq!(*kind as usize, at + 1);
        }
        assert_eq!(Kind::from_number(0), None);
        assert_eq!(Kind::from_number(20), None);
    }
}
