//! Type ids, string offsets and names, as distinct types.

use std::borrow::Cow;
use std::fmt;

/// Type id; 0 is `void`, which has no record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TypeId(pub u32);

impl TypeId {
    /// Type id of `void`.
    pub const VOID: TypeId = TypeId(0);

    /// True for `void`.
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

/// Offset of a string in bytes from the start of the string section; 0 is the empty
/// string, which means no name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StrOffset(pub u32);

impl StrOffset {
    /// Offset of the empty string.
    pub const EMPTY: StrOffset = StrOffset(0);
}

/// A string of a BTF blob, without its final NUL. Any bytes, in practice ASCII.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Name<'b>(&'b [u8]);

impl<'b> Name<'b> {
    /// Name of these bytes.
    pub fn new(bytes: &'b [u8]) -> Name<'b> {
        Name(bytes)
    }

    /// Bytes of the name.
    pub fn as_bytes(self) -> &'b [u8] {
        self.0
    }

    /// True for the empty name.
    pub fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// The name, or `(anon)` if it is empty, as messages and listings of the kernel have it.
    pub fn or_anonymous(self) -> Name<'b> {
        match self.is_empty() {
            true => Name(b"(anon)"),
            false => self,
        }
    }

    /// The name as text, if it is UTF-8.
    pub fn to_str(self) -> Option<&'b str> {
        std::str::from_utf8(self.0).ok()
    }

    /// The name as text; invalid UTF-8 is replaced.
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
