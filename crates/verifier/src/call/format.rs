//! Format strings of `bpf_snprintf` and its kin: what the kernel's parser accepts
//! (`bpf_bprintf_prepare` in kernel/bpf/helpers.c). One pass over the bytes.

/// True if the format, up to its first NUL, is valid for `args` arguments
/// (`bpf_bprintf_prepare`).
#[doc(alias = "bpf_bprintf_prepare")]
pub(super) fn is_valid(format: &[u8], args: usize) -> bool {
    let Some(end) = format.iter().position(|&byte| byte == 0) else {
        return false;
    };
    let format = &format[..end];
    let at = |index: usize| format.get(index).copied().unwrap_or(0);
    let ends_word = |byte: u8| byte == 0 || is_space(byte) || byte.is_ascii_punctuation();
    let mut specifiers = 0;
    let mut i = 0;
    while i < format.len() {
        let byte = at(i);
        let is_printable = (0x20..0x7f).contains(&byte) || is_space(byte);
        if byte.is_ascii() && !is_printable {
            return false;
        }
        if byte != b'%' {
            i += 1;
            continue;
        }
        if at(i + 1) == b'%' {
            i += 2;
            continue;
        }
        if specifiers >= args {
            return false;
        }
        i += 1;
        if !at(i).is_ascii() {
            return false;
        }
        while matches!(at(i), b'0' | b'+' | b'-' | b' ') {
            i += 1;
        }
        if matches!(at(i), b'1'..=b'9') {
            while at(i).is_ascii_digit() {
                i += 1;
            }
        }
        specifiers += 1;
        match at(i) {
            b'p' => {
                let next = at(i + 1);
                if ends_word(next) {
                    // a plain pointer
                } else if matches!(next, b'k' | b'u') && at(i + 2) == b's' {
                    i += 2;
                    if !ends_word(at(i + 1)) {
                        return false;
                    }
                } else if matches!(next, b'K' | b'x' | b's' | b'S' | b'B') {
                    i += 1;
                } else if matches!(next, b'i' | b'I') && matches!(at(i + 2), b'4' | b'6') {
                    i += 2;
                } else {
                    return false;
                }
            }
            b's' => {
                if !ends_word(at(i + 1)) {
                    return false;
                }
            }
            b'c' => {}
            _ => {
                for _ in 0..2 {
                    if at(i) == b'l' {
                        i += 1;
                    }
                }
                if !matches!(at(i), b'i' | b'd' | b'u' | b'x' | b'X') {
                    return false;
                }
            }
        }
        i += 1;
    }
    true
}

/// White space as the kernel counts it, the vertical tab included.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | 9..=13)
}

#[cfg(test)]
mod tests {
    use super::is_valid;

    #[test]
    fn specifiers_need_arguments() {
        assert!(is_valid(b"%d %llx %s %pI4 %pK %c\0", 6));
        assert!(!is_valid(b"%d %d\0", 1));
        assert!(is_valid(b"100%%\0", 0));
    }

    #[test]
    fn unknown_forms_are_refused() {
        assert!(!is_valid(b"%p4\0", 1));
        assert!(!is_valid(b"%pi5\0", 1));
        assert!(!is_valid(b"%sa\0", 1));
        assert!(!is_valid(b"%lllx\0", 1));
        assert!(!is_valid(b"\x01\0", 0));
        assert!(!is_valid(b"no end", 0));
    }
}
