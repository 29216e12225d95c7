//! Sparse initial contents of a map: bytes of a stated size, of which only those up to
//! the last written byte take memory. Unwritten images borrow or share the bytes of the
//! file (copy on write), because a file may state gigabytes of zeros, or many sections
//! with the same bytes.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// Bytes of a stated size; those after the last written byte are zero.
#[derive(Clone, Default)]
pub struct Image<'a> {
    size: u32,
    bytes: Cow<'a, [u8]>,
    /// Range of bytes shared between images; replaces `bytes`.
    shared: Option<(Arc<[u8]>, Range<usize>)>,
}

impl<'a> Image<'a> {
    /// Image of zeros.
    pub fn zeros(size: u32) -> Image<'a> {
        Image {
            size,
            ..Image::default()
        }
    }

    /// Image of these bytes, cut or padded with zeros to the size.
    pub fn new(bytes: &'a [u8], size: u32) -> Image<'a> {
        let len = bytes.len().min(size as usize);
        Image {
            size,
            bytes: Cow::Borrowed(&bytes[..len]),
            shared: None,
        }
    }

    /// Size in bytes.
    pub fn size(&self) -> u32 {
        self.size
    }

    /// Bytes up to the last written one; zeros follow up to the size.
    pub fn start(&self) -> &[u8] {
        match &self.shared {
            None => &self.bytes,
            Some((all, part)) => all.get(part.clone()).unwrap_or_default(),
        }
    }

    /// Borrowed bytes that the image was made from, if nothing was written.
    pub fn borrowed(&self) -> Option<&'a [u8]> {
        match (&self.bytes, &self.shared) {
            (Cow::Borrowed(bytes), None) => Some(bytes),
            _ => None,
        }
    }

    /// All bytes, zeros included.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut all = self.start().to_vec();
        all.resize(self.size as usize, 0);
        all
    }

    /// Reads bytes from an offset; zeros beyond the end.
    pub fn read(&self, offset: u32, into: &mut [u8]) {
        into.fill(0);
        let known = self.start().get(offset as usize..).unwrap_or_default();
        let len = known.len().min(into.len());
        into[..len].copy_from_slice(&known[..len]);
    }

    /// Writes bytes at an offset; returns `false` and writes nothing if they reach beyond
    /// the end.
    pub fn write(&mut self, offset: u32, bytes: &[u8]) -> bool {
        let Some(end) = (offset as usize).checked_add(bytes.len()) else {
            return false;
        };
        if end > self.size as usize {
            return false;
        }
        let known = self.to_mut();
        if known.len() < end {
            known.resize(end, 0);
        }
        known[offset as usize..end].copy_from_slice(bytes);
        true
    }

    /// Changes the size: truncates, or pads with zeros.
    pub fn resize(&mut self, size: u32) {
        self.size = size;
        if self.start().len() > size as usize {
            self.to_mut().truncate(size as usize);
        }
    }

    /// Copy without the borrow; shared bytes remain shared.
    pub fn to_owned(&self) -> Image<'static> {
        let bytes = match &self.shared {
            None => Cow::Owned(self.bytes.to_vec()),
            Some(_) => Cow::default(),
        };
        Image {
            size: self.size,
            bytes,
            shared: self.shared.clone(),
        }
    }

    /// Image of the same size whose bytes are a range of shared ones.
    pub fn in_shared(&self, all: &Arc<[u8]>, part: Range<usize>) -> Image<'static> {
        Image {
            size: self.size,
            bytes: Cow::default(),
            shared: Some((all.clone(), part)),
        }
    }

    fn to_mut(&mut self) -> &mut Vec<u8> {
        if let Some((all, part)) = self.shared.take() {
            self.bytes = Cow::Owned(all.get(part).unwrap_or_default().to_vec());
        }
        self.bytes.to_mut()
    }
}

/// Equality of size and bytes, independent of their storage.
impl PartialEq for Image<'_> {
    fn eq(&self, other: &Self) -> bool {
        let (mine, theirs) = (self.start(), other.start());
        let both = mine.len().min(theirs.len());
        let are_zeros = |rest: &[u8]| rest.iter().all(|&byte| byte == 0);
        self.size == other.size
            && mine[..both] == theirs[..both]
            && are_zeros(&mine[both..])
            && are_zeros(&theirs[both..])
    }
}

impl Eq for Image<'_> {}

impl fmt::Debug for Image<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Image({} bytes, {:02x?})", self.size, self.start())
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
    fn writes_beyond_the_end_are_refused() {
        let mut image = Image::new(&[1, 2, 3, 4], 3);
        assert!(!image.write(2, &[7, 7]));
        assert!(image.write(2, &[7]));
        assert_eq!(image.to_vec(), [1, 2, 7]);
        image.resize(1);
        image.resize(2);
        assert_eq!(image.to_vec(), [1, 0]);
    }

    #[test]
    fn images_may_share_bytes() {
        let all: Arc<[u8]> = Arc::from([1, 2, 3, 4]);
        let image = Image::new(&all[1..3], 4);
        let mut shared = image.in_shared(&all, 1..3);
        assert_eq!(shared, image.to_owned());
        assert_eq!((shared.start(), shared.borrowed()), (&[2, 3][..], None));
        assert!(shared.write(3, &[9]));
        assert_eq!((shared.to_vec(), all[3]), (vec![2, 3, 0, 9], 4));
    }
}
