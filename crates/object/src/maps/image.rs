//! Contents of a map before it exists: so many bytes, of which only those up to the
//! last that is set take memory, and those that nobody changed stay in the file. A
//! file may state gigabytes of zeros, or a thousand sections that share their bytes.

use std::borrow::Cow;

/// Bytes with a size of their own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Image<'a> {
    size: u32,
    /// The first bytes; all that follow are zero.
    bytes: Cow<'a, [u8]>,
}

impl<'a> Image<'a> {
    /// Zeros.
    pub fn zeros(size: u32) -> Image<'a> {
        Image {
            size,
            bytes: Cow::default(),
        }
    }

    /// These bytes, cut or followed by zeros up to the size.
    pub fn new(bytes: &'a [u8], size: u32) -> Image<'a> {
        let len = bytes.len().min(size as usize);
        Image {
            size,
            bytes: Cow::Borrowed(&bytes[..len]),
        }
    }

    /// Bytes.
    pub fn size(&self) -> u32 {
        self.size
    }

    /// The bytes up to the last that was set; zeros follow.
    pub fn start(&self) -> &[u8] {
        &self.bytes
    }

    /// All bytes.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut all = self.bytes.to_vec();
        all.resize(self.size as usize, 0);
        all
    }

    /// The bytes from an offset on; zeros beyond the end.
    pub fn read(&self, offset: u32, into: &mut [u8]) {
        into.fill(0);
        let known = self.bytes.get(offset as usize..).unwrap_or_default();
        let len = known.len().min(into.len());
        into[..len].copy_from_slice(&known[..len]);
    }

    /// Sets bytes; `false` if they reach beyond the end, and then nothing is set.
    pub fn write(&mut self, offset: u32, bytes: &[u8]) -> bool {
        let Some(end) = (offset as usize).checked_add(bytes.len()) else {
            return false;
        };
        if end > self.size as usize {
            return false;
        }
        let known = self.bytes.to_mut();
        if known.len() < end {
            known.resize(end, 0);
        }
        known[offset as usize..end].copy_from_slice(bytes);
        true
    }

    /// Gives it another size; what is cut off is lost.
    pub fn resize(&mut self, size: u32) {
        self.size = size;
        if self.bytes.len() > size as usize {
            self.bytes.to_mut().truncate(size as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_take_no_memory() {
        let mut image = Image::zeros(u32::MAX);
        assert!(image.write(4, &[1, 2]));
        assert_eq!((image.start().len(), image.size()), (6, u32::MAX));
        let mut bytes = [9; 4];
        image.read(3, &mut bytes);
        assert_eq!(bytes, [0, 1, 2, 0]);
        image.read(u32::MAX - 2, &mut bytes);
        assert_eq!(bytes, [0; 4]);
    }

    #[test]
    fn nothing_is_written_beyond_the_end() {
        let mut image = Image::new(&[1, 2, 3, 4], 3);
        assert!(!image.write(2, &[7, 7]));
        assert!(image.write(2, &[7]));
        assert_eq!(image.to_vec(), [1, 2, 7]);
        image.resize(1);
        image.resize(2);
        assert_eq!(image.to_vec(), [1, 0]);
    }
}
