//! Names and flavours: `X___Y` is a flavour of `X` (`bpf_core_essential_name_len`).

/// Number of underscores between a name and its flavour.
const SEPARATOR: usize = 3;

/// Name without its flavour: the part before the last three underscores that have other
/// characters on both sides (`bpf_core_essential_name_len`).
#[doc(alias = "bpf_core_essential_name_len")]
pub fn essential_name(name: &[u8]) -> &[u8] {
    // Three consecutive underscores cover a multiple of three.
    let mut at = name.len();
    while at > SEPARATOR {
        at -= SEPARATOR;
        if name[at] == b'_'
            && let Some(end) = separator_around(name, at)
        {
            return &name[..end];
        }
    }
    name
}

/// Start of the separator that covers `at`, if there is one (`bpf_core_is_flavor_sep`).
#[doc(alias = "bpf_core_is_flavor_sep")]
fn separator_around(name: &[u8], at: usize) -> Option<usize> {
    let underscores = |bytes: &[u8]| bytes.iter().all(|&byte| byte == b'_');
    let first = (at + 1).saturating_sub(SEPARATOR).max(1);
    (first..=at).rev().find(|&start| {
        let end = start + SEPARATOR;
        end < name.len()
            && underscores(&name[start..end])
            && name[start - 1] != b'_'
            && name[end] != b'_'
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reference implementation, character by character.
    fn slow(name: &[u8]) -> &[u8] {
        for at in (1..name.len()).rev() {
            let rest = &name[at..];
            let is_flavour = rest.len() > 3 && rest.starts_with(b"___") && rest[3] != b'_';
            if is_flavour && name[at - 1] != b'_' {
                return &name[..at];
            }
        }
        name
    }

    #[test]
    fn a_flavour_is_left_out() {
        let cases = [
            ("task_struct", "task_struct"),
            ("task_struct___old", "task_struct"),
            ("a___b___c", "a___b"),
            ("a___", "a___"),
            ("___a", "___a"),
            ("a____b", "a____b"),
            ("a___b____c", "a"),
            ("", ""),
        ];
        for (name, essential) in cases {
            assert_eq!(
                essential_name(name.as_bytes()),
                essential.as_bytes(),
                "{name}"
            );
        }
    }

    #[test]
    fn every_short_name_is_as_defined() {
        for len in 0..12 {
            for bits in 0u32..1 << len {
                let letter = |at: usize| if bits >> at & 1 == 1 { b'_' } else { b'a' };
                let name: Vec<u8> = (0..len).map(letter).collect();
                assert_eq!(
                    essential_name(&name),
                    slow(&name),
                    "{}",
                    name.escape_ascii()
                );
            }
        }
    }
}
