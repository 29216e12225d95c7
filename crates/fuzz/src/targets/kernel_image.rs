//! Kernel images: any bytes are one, whose kernel is decompressed within its stated size, or
//! are refused.

use beebox::internal::kernel::KernelImage;

use crate::{Signature, Target};

pub(super) const TARGET: Target = Target {
    name: "kernel-image",
    property: "a kernel image is decompressed or refused, the same way each time",
    words: &[
        "HdrS",
        "\u{1f}\u{8}\0",
        "BZh9",
        "7zXZ\0",
        "]\0\0",
        "\u{7f}ELF",
        "\u{4}\u{2}",
        "\u{8}\u{2}",
        "\0\0\0\u{40}",
    ],
    run,
};

fn run(input: &[u8]) -> Signature {
    let found = KernelImage::read(input).map_err(|error| error.to_string());
    assert_eq!(
        found,
        KernelImage::read(input).map_err(|error| error.to_string()),
        "another result"
    );
    match found {
        Ok(Some(image)) => {
            assert!(image.elf.starts_with(b"\x7fELF"));
            let release = image.release.as_deref();
            assert!(release.is_none_or(|it| !it.is_empty() && !it.contains(' ')));
            Signature::of((image.elf.len().ilog2(), image.release.is_some()))
        }
        Ok(None) => Signature::of(()),
        Err(fault) => {
            let letters = fault.chars().filter(|it| !it.is_ascii_digit());
            Signature::of(letters.take(60).collect::<String>())
        }
    }
}
