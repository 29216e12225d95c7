//! Arguments of host functions: from registers and memory to Rust values and back.

use std::ffi::{CStr, CString};

use spec::host::{Argument as ArgumentType, NumberType};
use vm::HostMemory;

use super::Object;

/// Longest constant string; the verifier bounds it by the map that holds it.
const MOST_TEXT: usize = 1 << 20;

/// The argument registers of a call, taken one by one.
#[derive(Clone, Copy, Debug)]
pub struct Words {
    words: [u64; 5],
    next: usize,
}

impl Words {
    /// All of a call.
    pub fn new(words: [u64; 5]) -> Words {
        Words { words, next: 0 }
    }

    /// The next one; `None` behind the fifth.
    pub fn take(&mut self) -> Option<u64> {
        let word = self.words.get(self.next)?;
        self.next += 1;
        Some(*word)
    }

    /// The register that returns a result.
    pub fn result(result: impl Number) -> u64 {
        result.into_word()
    }
}

/// A number that a function returns, or nothing.
pub trait Number {
    /// Its type; [`NumberType::U64`] for nothing.
    fn scalar() -> NumberType;

    /// The register that returns it.
    fn into_word(self) -> u64;
}

impl Number for () {
    fn scalar() -> NumberType {
        NumberType::U64
    }

    fn into_word(self) -> u64 {
        0
    }
}

/// An argument of a host function.
pub trait Argument<'h>: Sized {
    /// Owner of the argument during the call.
    type Held: 'h;

    /// Its type in the prototype.
    fn describe() -> ArgumentType;

    /// Takes it from registers and memory; `None` if the memory cannot be read.
    fn take(words: &mut Words, memory: &dyn HostMemory) -> Option<Self::Held>;

    /// The argument as the function receives it.
    fn lend(held: &'h mut Self::Held) -> Self;

    /// Writes back what the function changed; `None` if that is not possible.
    fn put_back(held: Self::Held, memory: &mut dyn HostMemory) -> Option<()> {
        let _ = (held, memory);
        Some(())
    }
}

macro_rules! numbers {
    ($($ty:ty as $bits:ty = $scalar:ident,)*) => {$(
        impl Number for $ty {
            fn scalar() -> NumberType {
                NumberType::$scalar
            }

            fn into_word(self) -> u64 {
                self as $bits as u64
            }
        }

        impl<'h> Argument<'h> for $ty {
            type Held = $ty;

            fn describe() -> ArgumentType {
                ArgumentType::Scalar(NumberType::$scalar)
            }

            fn take(words: &mut Words, _: &dyn HostMemory) -> Option<$ty> {
                Some(words.take()? as $ty)
            }

            fn lend(held: &'h mut $ty) -> $ty {
                *held
            }
        }
    )*};
}

numbers! {
    u8 as u8 = U8,
    u16 as u16 = U16,
    u32 as u32 = U32,
    u64 as u64 = U64,
    // C returns short numbers as `int`, in the lower half of the register.
    i8 as u32 = I8,
    i16 as u32 = I16,
    i32 as u32 = I32,
    i64 as u64 = I64,
}

impl Number for bool {
    fn scalar() -> NumberType {
        NumberType::Bool
    }

    fn into_word(self) -> u64 {
        self.into()
    }
}

impl<'h> Argument<'h> for bool {
    type Held = bool;

    fn describe() -> ArgumentType {
        ArgumentType::Scalar(NumberType::Bool)
    }

    fn take(words: &mut Words, _: &dyn HostMemory) -> Option<bool> {
        Some(words.take()? as u8 != 0)
    }

    fn lend(held: &'h mut bool) -> bool {
        *held
    }
}

/// Memory with its address.
#[derive(Debug)]
pub struct Copied<T> {
    address: u64,
    value: T,
}

fn take_bytes(words: &mut Words, memory: &dyn HostMemory) -> Option<Copied<Vec<u8>>> {
    let (address, size) = (words.take()?, words.take()? as u32);
    let mut value = vec![0; size as usize];
    let is_read = size == 0 || memory.read(address, &mut value);
    is_read.then_some(Copied { address, value })
}

impl<'h> Argument<'h> for &'h [u8] {
    type Held = Copied<Vec<u8>>;

    fn describe() -> ArgumentType {
        ArgumentType::Bytes { is_written: false }
    }

    fn take(words: &mut Words, memory: &dyn HostMemory) -> Option<Self::Held> {
        take_bytes(words, memory)
    }

    fn lend(held: &'h mut Self::Held) -> &'h [u8] {
        &held.value
    }
}

impl<'h> Argument<'h> for &'h mut [u8] {
    type Held = Copied<Vec<u8>>;

    fn describe() -> ArgumentType {
        ArgumentType::Bytes { is_written: true }
    }

    fn take(words: &mut Words, memory: &dyn HostMemory) -> Option<Self::Held> {
        take_bytes(words, memory)
    }

    fn lend(held: &'h mut Self::Held) -> &'h mut [u8] {
        &mut held.value
    }

    fn put_back(held: Self::Held, memory: &mut dyn HostMemory) -> Option<()> {
        let is_written = held.value.is_empty() || memory.write(held.address, &held.value);
        is_written.then_some(())
    }
}

impl<'h> Argument<'h> for &'h CStr {
    type Held = CString;

    fn describe() -> ArgumentType {
        ArgumentType::Text
    }

    fn take(words: &mut Words, memory: &dyn HostMemory) -> Option<CString> {
        let address = words.take()?;
        let mut text = Vec::new();
        while text.len() < MOST_TEXT {
            let mut byte = [0];
            if !memory.read(address.wrapping_add(text.len() as u64), &mut byte) {
                return None;
            }
            if byte == [0] {
                break;
            }
            text.push(byte[0]);
        }
        CString::new(text).ok()
    }

    fn lend(held: &'h mut CString) -> &'h CStr {
        held
    }
}

fn take_object<T: Object>(words: &mut Words, memory: &dyn HostMemory) -> Option<Copied<T>> {
    let address = words.take()?;
    let mut bytes = vec![0; T::SIZE];
    let is_read = memory.read(address, &mut bytes);
    is_read.then(|| Copied {
        address,
        value: T::from_bytes(&bytes),
    })
}

impl<'h, T: Object + 'h> Argument<'h> for &'h T {
    type Held = Copied<T>;

    fn describe() -> ArgumentType {
        ArgumentType::Object {
            pointee: T::pointee(),
            is_written: false,
        }
    }

    fn take(words: &mut Words, memory: &dyn HostMemory) -> Option<Copied<T>> {
        take_object(words, memory)
    }

    fn lend(held: &'h mut Copied<T>) -> &'h T {
        &held.value
    }
}

impl<'h, T: Object + 'h> Argument<'h> for &'h mut T {
    type Held = Copied<T>;

    fn describe() -> ArgumentType {
        ArgumentType::Object {
            pointee: T::pointee(),
            is_written: true,
        }
    }

    fn take(words: &mut Words, memory: &dyn HostMemory) -> Option<Copied<T>> {
        take_object(words, memory)
    }

    fn lend(held: &'h mut Copied<T>) -> &'h mut T {
        &mut held.value
    }

    fn put_back(held: Copied<T>, memory: &mut dyn HostMemory) -> Option<()> {
        let mut bytes = Vec::with_capacity(T::SIZE);
        held.value.put(&mut bytes);
        memory.write(held.address, &bytes).then_some(())
    }
}
