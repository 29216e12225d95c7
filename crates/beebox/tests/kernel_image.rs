//! Kernel images as distributions install them, of every compression.

use beebox::internal::kernel::{ImageFault, KernelImage};

/// The bytes of the kernels here: they begin as an ELF file.
fn elf() -> Vec<u8> {
    [b"\x7fELF", "a kernel, ".repeat(20).as_bytes()].concat()
}

/// [`elf`] as `gzip -9n` compresses it.
#[rustfmt::skip]
const GZIP: &[u8] = &[
    0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03, 0xab, 0x77, 0xf5, 0x71, 0x4b, 0x54,
    0xc8, 0x4e, 0x2d, 0xca, 0x4b, 0xcd, 0xd1, 0x51, 0x18, 0xda, 0x2c, 0x00, 0xd5, 0x5b, 0x86, 0x48,
    0xcc, 0x00, 0x00, 0x00,
];

/// [`elf`] as `lz4 -l -9` compresses it.
#[rustfmt::skip]
const LZ4: &[u8] = &[
    0x02, 0x21, 0x4c, 0x18, 0x18, 0x00, 0x00, 0x00, 0xef, 0x7f, 0x45, 0x4c, 0x46, 0x61, 0x20, 0x6b,
    0x65, 0x72, 0x6e, 0x65, 0x6c, 0x2c, 0x20, 0x0a, 0x00, 0xa6, 0x50, 0x6e, 0x65, 0x6c, 0x2c, 0x20,
];

/// [`elf`] as `zstd -19` compresses it.
#[rustfmt::skip]
const ZSTD: &[u8] = &[
    0x28, 0xb5, 0x2f, 0xfd, 0x04, 0x68, 0xad, 0x00, 0x00, 0x70, 0x7f, 0x45, 0x4c, 0x46, 0x61, 0x20,
    0x6b, 0x65, 0x72, 0x6e, 0x65, 0x6c, 0x2c, 0x20, 0x01, 0x00, 0xbb, 0x52, 0x45, 0x09, 0xe5, 0x5e,
    0x0c, 0x54,
];

/// [`elf`] as `xz --check=crc32 --x86` compresses it.
#[rustfmt::skip]
const XZ: &[u8] = &[
    0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00, 0x00, 0x01, 0x69, 0x22, 0xde, 0x36, 0x02, 0x01, 0x04, 0x00,
    0x21, 0x01, 0x16, 0x00, 0x0d, 0x86, 0x35, 0x1f, 0xe0, 0x00, 0xcb, 0x00, 0x15, 0x5d, 0x00, 0x3f,
    0x91, 0x45, 0x84, 0x6b, 0xcf, 0xdb, 0x60, 0x31, 0x34, 0xda, 0x22, 0x0f, 0xa2, 0xf6, 0x7a, 0xcc,
    0x09, 0x20, 0xc0, 0x00, 0x00, 0x00, 0x00, 0x00, 0xd5, 0x5b, 0x86, 0x48, 0x00, 0x01, 0x2d, 0xcc,
    0x01, 0x00, 0x00, 0x00, 0x8a, 0xa0, 0x3e, 0xec, 0x3e, 0x30, 0x0d, 0x8b, 0x02, 0x00, 0x00, 0x00,
    0x00, 0x01, 0x59, 0x5a,
];

/// [`elf`] as `bzip2 -9` compresses it.
#[rustfmt::skip]
const BZIP2: &[u8] = &[
    0x42, 0x5a, 0x68, 0x39, 0x31, 0x41, 0x59, 0x26, 0x53, 0x59, 0xb1, 0x66, 0x8d, 0x7c, 0x00, 0x00,
    0x65, 0x95, 0x80, 0x40, 0x04, 0x03, 0x04, 0x22, 0x0d, 0x10, 0x00, 0xa0, 0x00, 0x40, 0x54, 0x92,
    0x34, 0xf5, 0x1e, 0x90, 0x81, 0xa0, 0x68, 0x54, 0x86, 0xc8, 0xaf, 0x48, 0xe5, 0xf9, 0x77, 0x21,
    0x84, 0x61, 0x1a, 0x23, 0x08, 0xe1, 0x14, 0x46, 0xbf, 0x17, 0x72, 0x45, 0x38, 0x50, 0x90, 0xb1,
    0x66, 0x8d, 0x7c,
];

/// Payloads as images have them: gzip ends in the size by itself.
fn payloads() -> Vec<Vec<u8>> {
    let size = (elf().len() as u32).to_le_bytes();
    let sized = [LZ4, ZSTD, XZ, BZIP2].map(|payload| [payload, &size].concat());
    [vec![GZIP.to_vec()], sized.to_vec()].concat()
}

/// A bzImage with this payload: setup sectors, a stub, the payload, what follows.
fn image(payload: &[u8], sectors: u8) -> Vec<u8> {
    const STUB: usize = 100;
    let setup = match sectors {
        0 => 5,
        sectors => usize::from(sectors) + 1,
    };
    let mut image = vec![0; setup * 512 + STUB];
    image[..2].copy_from_slice(b"MZ");
    image[0x1f1] = sectors;
    image[0x202..0x206].copy_from_slice(b"HdrS");
    image[0x206..0x208].copy_from_slice(&0x020f_u16.to_le_bytes());
    image[0x20e..0x210].copy_from_slice(&0x180_u16.to_le_bytes());
    image[0x248..0x24c].copy_from_slice(&(STUB as u32).to_le_bytes());
    image[0x24c..0x250].copy_from_slice(&(payload.len() as u32).to_le_bytes());
    let release = b"5.15.7-test (builder@host) #1 SMP\0";
    image[0x380..0x380 + release.len()].copy_from_slice(release);
    image.extend(payload);
    image.extend([0xee; 64]);
    image
}

#[oracle::test]
fn kernels_of_every_compression_are_unpacked() {
    for payload in payloads() {
        for sectors in [0, 4, 27] {
            let read = KernelImage::read(&image(&payload, sectors))
                .unwrap()
                .unwrap();
            assert_eq!(read.elf, elf());
            assert_eq!(read.release.as_deref(), Some("5.15.7-test"));
        }
    }
    // Without a header, as vmlinux.gz.
    for compressed in [GZIP, LZ4, ZSTD, XZ, BZIP2] {
        let read = KernelImage::read(compressed).unwrap().unwrap();
        assert_eq!((read.elf, read.release), (elf(), None));
    }
    assert_eq!(KernelImage::read(&elf()).unwrap(), None);
    assert_eq!(KernelImage::read(b"").unwrap(), None);
}

#[oracle::test]
fn images_that_cannot_be_read_say_why() {
    let fault = |image: &[u8]| KernelImage::read(image).unwrap_err();
    let whole = image(GZIP, 4);
    let mut old = whole.clone();
    old[0x206] = 7;
    assert!(matches!(
        fault(&old),
        ImageFault::OldHeader { protocol: 0x0207 }
    ));
    let cut = &whole[..whole.len() - 100];
    assert!(matches!(fault(cut), ImageFault::Cut { .. }));
    let lzma = image(&[0x5d, 0, 0, 0x80, 0, 1, 0, 0, 0], 4);
    let text = fault(&lzma).to_string();
    assert!(
        text.contains("compressed as lzma; gzip, lz4, zstd, xz"),
        "{text}"
    );
    let unknown = image(b"something else", 4);
    assert!(matches!(
        fault(&unknown),
        ImageFault::Compression { name: None }
    ));
    let large = image(&[LZ4, &u32::MAX.to_le_bytes()].concat(), 4);
    assert!(matches!(fault(&large), ImageFault::TooLarge { .. }));
    let mut damaged = GZIP.to_vec();
    damaged[12] ^= 0xff;
    let fault_of_damaged = fault(&image(&damaged, 4));
    assert!(matches!(
        fault_of_damaged,
        ImageFault::Damaged(_) | ImageFault::NotElf
    ));
    // A size that the payload does not have.
    let longer = image(&[ZSTD, &500_u32.to_le_bytes()].concat(), 4);
    assert!(matches!(fault(&longer), ImageFault::Damaged(_)));
    // No input panics.
    for payload in payloads() {
        let whole = image(&payload, 0);
        for at in 0..whole.len() {
            let _ = KernelImage::read(&whole[..at]);
            let mut damaged = whole.clone();
            damaged[at] ^= 0x55;
            let _ = KernelImage::read(&damaged);
        }
    }
}
