//! Memory of a kernel and of a process that a test gives to a run in the checked engine.

/// Result of an access of given memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GivenAccess {
    /// No object has these addresses.
    Absent,
    /// The bytes were copied.
    Done,
    /// An object has them, and not all of them were given: the first that was not, by type and field.
    NotGiven(String),
}

/// Objects at addresses of their own, of which some bytes are given.
pub trait GivenMemory {
    /// Copies bytes of the kernel.
    fn read(&self, address: u64, into: &mut [u8]) -> GivenAccess;

    /// Copies up to eight bytes of the kernel, of which only some bits are used.
    fn load(&self, address: u64, into: &mut [u8], bits: u64) -> GivenAccess;

    /// Writes bytes of the kernel, which are given afterwards.
    fn write(&self, address: u64, bytes: &[u8]) -> GivenAccess;

    /// Copies bytes of the process.
    fn read_user(&self, address: u64, into: &mut [u8]) -> GivenAccess;

    /// Name of the object that an address is in, and the offset in it.
    fn place(&self, address: u64) -> Option<(String, u64)>;

    /// Name of the member that so many bytes at an address are, 0 for that which begins there.
    fn member_name(&self, address: u64, len: usize) -> Option<String>;
}
