//! Pointee types of arguments of host functions.

use spec::host::{Field, NumberType, Pointee};

use super::Number;
use crate::Pod;

/// Pointee type of an argument: a number, or a structure that
/// [`kfunc_struct!`](crate::kfunc_struct) defines.
pub trait Object: Pod {
    /// Its type in the prototype.
    fn pointee() -> Pointee;
}

/// The type of a member of a structure: a number, or an array of numbers.
pub trait Member {
    /// Type of the number, and elements of an array.
    fn ty() -> (NumberType, Option<u32>);
}

/// A member of this type.
pub fn field<T: Member>(name: &str) -> Field {
    let (scalar, count) = T::ty();
    Field {
        name: name.to_owned(),
        scalar,
        count,
    }
}

macro_rules! numbers {
    ($($ty:ty)*) => {$(
        impl Object for $ty {
            fn pointee() -> Pointee {
                Pointee::Scalar(<$ty as Number>::scalar())
            }
        }

        impl Member for $ty {
            fn ty() -> (NumberType, Option<u32>) {
                (<$ty as Number>::scalar(), None)
            }
        }

        impl<const N: usize> Member for [$ty; N] {
            fn ty() -> (NumberType, Option<u32>) {
                (<$ty as Number>::scalar(), Some(N as u32))
            }
        }
    )*};
}

numbers! { u8 u16 u32 u64 i8 i16 i32 i64 }
