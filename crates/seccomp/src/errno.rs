//! Error numbers by name, the same on every supported architecture: those of [`spec::Errno`] that user space
//! has.

use spec::Errno;

/// The name of an error number.
pub fn name(number: u16) -> Option<&'static str> {
    let number = Errno(number.into());
    number.name().filter(|_| number <= Errno::EHWPOISON)
}

/// The error number of a name.
pub fn number(name: &str) -> Option<u16> {
    let number = match name {
        // What the C library calls it.
        "ENOTSUP" => Errno::EOPNOTSUPP,
        name => Errno::from_name(name)?,
    };
    let number = Some(number).filter(|number| *number <= Errno::EHWPOISON)?;
    u16::try_from(number.0).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_are_inverse() {
        let named: Vec<u16> = (0..=u16::MAX).filter(|no| name(*no).is_some()).collect();
        assert_eq!((named.len(), named.last()), (131, Some(&133)));
        for no in named {
            assert_eq!(name(no).and_then(number), Some(no));
        }
        assert_eq!(name(13), Some("EACCES"));
        assert_eq!(name(38), Some("ENOSYS"));
        assert_eq!(number("ENOTSUPP"), None);
    }
}
