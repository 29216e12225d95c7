//! What a BTF blob is indexed by: types by number, strings by offset. Each has
//! its own type, so that one can't be taken for the other.

use std::borrow::Cow;
use std::fmt;

/// The number of a type; 0 is `void`, which no record describes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TypeId(pub u32);

impl TypeId {
    /// No type at all.
    pub const VOID: TypeId = TypeId(0);

    /// Is it `void`?
    pub fn is_void(self) -> bool {
        self == TypeId::VOID
    }

    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for TypeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Where a string starts, in bytes from the start of the string section; 0 is
/// the empty string, which says "no name".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StrOffset(pub u32);

impl StrOffset {
    /// The empty string.
    pub const EMPTY: StrOffset = StrOffset(0);
}

/// A string of a BTF blob, without its final NUL. Nearly always it is ASCII, but
/// nothing in the format says so.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Name<'b>(&'b [u8]);

impl<'b> Name<'b> {
    /// Bytes as a name.
    pub fn new(bytes: &'b [u8]) -> Name<'b> {
        Name(bytes)
    }

    /// Its bytes.
    pub fn as_bytes(self) -> &'b [u8] {
        self.0
    }

    /// Does it say "no name"?
    pub fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// As text, if it is text.
    pub fn to_str(self) -> Option<&'b str> {
        std::str::from_utf8(self.0).ok()
    }

    /// As text; what is none is replaced.
    pub fn to_string_lossy(self) -> Cow<'b, str> {
        String::from_utf8_lossy(self.0)
    }
}

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.to_string_lossy().fmt(f)
    }
}

impl fmt::Debug for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.to_string_lossy(), f)
    }
}

impl PartialEq<str> for Name<'_> {
    fn eq(&self, other: &str) -> bool {
        self.0 == other.as_bytes()
    }
}

impl PartialEq<&str> for Name<'_> {
    fn eq(&self, other: &&str) -> bool {
        self.0 == other.as_bytes()
    }
}
