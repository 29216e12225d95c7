//! The types of numbers in C: what operands are promoted to, and results have.

/// The type of a number in C.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IntType {
    /// True for 64 bits, false for 32.
    pub(super) is_wide: bool,
    pub(super) is_signed: bool,
}

impl IntType {
    pub(super) const INT: IntType = IntType::new(false, true);
    pub(super) const UNSIGNED: IntType = IntType::new(false, false);
    pub(super) const LONG: IntType = IntType::new(true, true);
    pub(super) const UNSIGNED_LONG: IntType = IntType::new(true, false);

    const fn new(is_wide: bool, is_signed: bool) -> IntType {
        IntType { is_wide, is_signed }
    }

    /// The type that numbers of so many bytes are promoted to.
    pub(super) fn of(len: usize, is_signed: bool) -> IntType {
        IntType::new(len > 4, is_signed || len < 4)
    }

    /// The type of the result of an operator on numbers of two types.
    pub(super) fn common(self, other: IntType) -> IntType {
        match (self.is_wide, other.is_wide) {
            (true, false) => self,
            (false, true) => other,
            _ => IntType::new(self.is_wide, self.is_signed && other.is_signed),
        }
    }

    /// A number in this type, with its bits above filled as its sign says.
    pub(super) fn wrap(self, number: i64) -> i64 {
        match (self.is_wide, self.is_signed) {
            (true, _) => number,
            (false, true) => i64::from(number as i32),
            (false, false) => i64::from(number as u32),
        }
    }
}
