//! Keys and values of maps, and global variables, as Rust types.

/// A type of which every bit pattern is a value: what keys and values of maps and global variables
/// are read and written as. Numbers are little-endian on every machine, as programs keep them here.
/// Padding is written as zeros and not read.
///
/// Numbers and arrays implement it. [`pod!`](crate::internal::pod) implements it for structures, those that
/// `beebox gen rust` writes for an object among them.
pub trait Pod: Copy {
    /// Bytes of a value.
    const SIZE: usize;

    /// Appends the bytes of a value.
    fn put(&self, bytes: &mut Vec<u8>);

    /// The value of [`Pod::SIZE`] bytes.
    ///
    /// # Panics
    /// For another number of bytes.
    fn from_bytes(bytes: &[u8]) -> Self;
}

macro_rules! numbers {
    ($($number:ty)*) => {$(
        impl Pod for $number {
            const SIZE: usize = size_of::<$number>();

            fn put(&self, bytes: &mut Vec<u8>) {
                bytes.extend_from_slice(&self.to_le_bytes());
            }

            fn from_bytes(bytes: &[u8]) -> $number {
                let mut own = [0; size_of::<$number>()];
                own.copy_from_slice(bytes);
                <$number>::from_le_bytes(own)
            }
        }
    )*};
}

numbers! { u8 i8 u16 i16 u32 i32 u64 i64 u128 i128 f32 f64 }

/// The key of a queue, a stack or a Bloom filter, which has no bytes.
impl Pod for () {
    const SIZE: usize = 0;

    fn put(&self, _: &mut Vec<u8>) {}

    fn from_bytes(bytes: &[u8]) {
        assert!(bytes.is_empty(), "{} bytes for a type of none", bytes.len());
    }
}

impl<T: Pod, const N: usize> Pod for [T; N] {
    const SIZE: usize = T::SIZE * N;

    fn put(&self, bytes: &mut Vec<u8>) {
        for item in self {
            item.put(bytes);
        }
    }

    fn from_bytes(bytes: &[u8]) -> [T; N] {
        assert_eq!(bytes.len(), Self::SIZE, "bytes of an array");
        std::array::from_fn(|at| T::from_bytes(&bytes[at * T::SIZE..(at + 1) * T::SIZE]))
    }
}

/// The bytes of a value.
pub(crate) fn bytes<T: Pod>(value: &T) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(T::SIZE);
    value.put(&mut bytes);
    bytes
}

/// End of a field at an offset in bytes. [`pod!`](crate::internal::pod) checks by it that the fields are named
/// in their order.
#[doc(hidden)]
pub const fn field_end<S, F: Pod>(end: usize, offset: usize, _: fn(S) -> F) -> usize {
    assert!(
        end <= offset,
        "the fields are in another order than in the structure"
    );
    offset + F::SIZE
}

/// The field at an offset in the bytes of a structure.
#[doc(hidden)]
pub fn field<F: Pod>(bytes: &[u8], offset: usize) -> F {
    F::from_bytes(&bytes[offset..offset + F::SIZE])
}

/// Implements [`Pod`](crate::Pod) for `#[repr(C)]` structures, of which all fields are named in
/// their order.
///
/// ```
/// #[derive(Clone, Copy)]
/// #[repr(C)]
/// struct Network {
///     prefix_length: u32,
///     address: [u8; 4],
/// }
///
/// beebox::pod! { Network { prefix_length, address } }
///
/// assert_eq!(<Network as beebox::Pod>::SIZE, 8);
/// ```
#[macro_export]
macro_rules! pod {
    ($($name:ident { $($field:ident),* $(,)? })*) => {$(
        impl $crate::Pod for $name {
            const SIZE: usize = ::core::mem::size_of::<$name>();

            fn put(&self, bytes: &mut ::std::vec::Vec<u8>) {
                let start = bytes.len();
                $(
                    bytes.resize(start + ::core::mem::offset_of!($name, $field), 0);
                    let field = self.$field;
                    $crate::Pod::put(&field, bytes);
                )*
                bytes.resize(start + <$name as $crate::Pod>::SIZE, 0);
            }

            fn from_bytes(bytes: &[u8]) -> Self {
                assert_eq!(bytes.len(), <$name as $crate::Pod>::SIZE, "bytes of a structure");
                $name {
                    $($field: $crate::internal::pod::field(bytes, ::core::mem::offset_of!($name, $field)),)*
                }
            }
        }

        const _: usize = {
            let end = 0;
            $(
                let offset = ::core::mem::offset_of!($name, $field);
                let end = $crate::internal::pod::field_end(end, offset, |value: $name| value.$field);
            )*
            end
        };
    )*};
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy, Debug, PartialEq)]
    #[repr(C)]
    struct Padded {
        flag: u8,
        count: u32,
        tail: [u16; 1],
    }

    #[derive(Clone, Copy)]
    #[repr(C, packed)]
    struct Packed {
        flag: u8,
        padded: Padded,
    }

    crate::pod! {
        Padded { flag, count, tail }
        Packed { flag, padded }
    }

    #[test]
    fn padding_is_zero_and_not_read() {
        let value = Padded {
            flag: 1,
            count: 2,
            tail: [3],
        };
        let written = bytes(&value);
        assert_eq!(written, [1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0]);
        let mut read = written.clone();
        read[1] = 9;
        read[11] = 9;
        assert_eq!(Padded::from_bytes(&read), value);
        let packed = Packed {
            flag: 7,
            padded: value,
        };
        assert_eq!(bytes(&packed)[1..], written);
        let padded = Packed::from_bytes(&bytes(&packed)).padded;
        assert_eq!(padded, value);
    }
}
