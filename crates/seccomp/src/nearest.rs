//! Known names that are near to a mistyped one.

/// The known name that is nearest to a mistyped one; `None` if more than a third of the
/// characters would change.
pub(crate) fn nearest<'n>(name: &str, known: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let near = known.map(|known| (strsim::levenshtein(known, name), known));
    let (changes, known) = near.min()?;
    (3 * changes <= name.chars().count()).then_some(known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_near_if_a_third_or_less_of_it_changes() {
        let known = || ["fork", "openat", "F_OK"].into_iter();
        assert_eq!(nearest("foo", known()), None);
        assert_eq!(nearest("FOO", known()), None);
        assert_eq!(nearest("opneat", known()), Some("openat"));
        assert_eq!(nearest("frk", known()), Some("fork"));
        assert_eq!(nearest("", known()), None);
    }
}
