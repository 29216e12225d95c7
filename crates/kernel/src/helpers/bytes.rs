//! Bytes that a helper copies in or out, short ones without an allocation.

use vm::MemoryPort;

/// Bytes that a helper copies.
pub(crate) enum Bytes {
    Short([u8; Bytes::SHORT], usize),
    Long(Vec<u8>),
}

impl Bytes {
    const SHORT: usize = 64;

    /// So many zeros.
    #[inline(always)]
    pub(crate) fn zeroed(len: usize) -> Bytes {
        match len <= Bytes::SHORT {
            true => Bytes::Short([0; Bytes::SHORT], len),
            false => Bytes::Long(vec![0; len]),
        }
    }

    /// So many zeros; `None` if there is no memory for them.
    pub(crate) fn try_zeroed(len: usize) -> Option<Bytes> {
        if len <= Bytes::SHORT {
            return Some(Bytes::zeroed(len));
        }
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(len).ok()?;
        bytes.resize(len, 0);
        Some(Bytes::Long(bytes))
    }

    /// Bytes of the memory.
    #[inline(always)]
    pub(crate) fn read<M: MemoryPort>(
        memory: &M,
        address: u64,
        len: usize,
    ) -> Result<Bytes, M::Fault> {
        let mut bytes = Bytes::zeroed(len);
        memory.read(address, bytes.get_mut())?;
        Ok(bytes)
    }

    #[inline(always)]
    pub(crate) fn get(&self) -> &[u8] {
        match self {
            Bytes::Short(bytes, len) => &bytes[..*len],
            Bytes::Long(bytes) => bytes,
        }
    }

    #[inline(always)]
    pub(crate) fn get_mut(&mut self) -> &mut [u8] {
        match self {
            Bytes::Short(bytes, len) => &mut bytes[..*len],
            Bytes::Long(bytes) => bytes,
        }
    }
}
