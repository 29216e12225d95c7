//! SipHash-2-4 (Aumasson and Bernstein, 2012), which Linux uses as its keyed hash.

/// SipHash-2-4 of some bytes.
pub(crate) fn siphash(bytes: &[u8], [k0, k1]: [u64; 2]) -> u64 {
    let mut state = [
        k0 ^ 0x736f_6d65_7073_6575,
        k1 ^ 0x646f_7261_6e64_6f6d,
        k0 ^ 0x6c79_6765_6e65_7261,
        k1 ^ 0x7465_6462_7974_6573,
    ];
    let (words, rest) = bytes.as_chunks::<8>();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    last[7] = bytes.len() as u8;
    for word in words.iter().chain([&last]) {
        let word = u64::from_le_bytes(*word);
        state[3] ^= word;
        (0..2).for_each(|_| round(&mut state));
        state[0] ^= word;
    }
    state[2] ^= 0xff;
    (0..4).for_each(|_| round(&mut state));
    state[0] ^ state[1] ^ state[2] ^ state[3]
}

fn round([a, b, c, d]: &mut [u64; 4]) {
    *a = a.wrapping_add(*b);
    *c = c.wrapping_add(*d);
    *b = b.rotate_left(13) ^ *a;
    *d = d.rotate_left(16) ^ *c;
    *a = a.rotate_left(32);
    *c = c.wrapping_add(*b);
    *a = a.wrapping_add(*d);
    *b = b.rotate_left(17) ^ *c;
    *d = d.rotate_left(21) ^ *a;
    *c = c.rotate_left(32);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_that_of_its_paper() {
        let key = [0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908];
        let bytes: Vec<u8> = (0..15).collect();
        assert_eq!(siphash(&bytes, key), 0xa129_ca61_49be_45e5);
    }
}
