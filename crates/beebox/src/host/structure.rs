//! What arguments of host functions point to.

use spec::host::{Field, Pointee, Scalar};

use super::Number;
use crate::run::Plain;

/// What an argument may point to: a number, or a structure that
/// [`kfunc_struct!`](crate::kfunc_struct) defines.
pub trait Object: Plain {
    /// Its type in the prototype.
    fn pointee() -> Pointee;
}

/// The type of a member of a structure: a number, or an array of numbers.
pub trait Member {
    /// Type of the number, and elements of an array.
    const TYPE: (Scalar, Option<u32>);
}

/// A member of this type.
pub fn field<T: Member>(name: &str) -> Field {
    let (scalar, count) = T::TYPE;
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
                Pointee::Scalar(<$ty as Number>::SCALAR)
            }
        }

        impl Member for $ty {
            const TYPE: (Scalar, Option<u32>) = (<$ty as Number>::SCALAR, None);
        }

        impl<const N: usize> Member for [$ty; N] {
            const TYPE: (Scalar, Option<u32>) = (<$ty as Number>::SCALAR, Some(N as u32));
        }
    )*};
}

numbers! { u8 u16 u32 u64 i8 i16 i32 i64 }
