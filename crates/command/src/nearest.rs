//! The name that was probably meant by a mistyped or shortened one.

/// The known name that begins with a word, or is nearest to it; `None` if several begin with it, or
/// more than a third of the characters would change.
pub fn nearest<'n>(word: &str, known: impl Iterator<Item = &'n str> + Clone) -> Option<&'n str> {
    let longer = known.clone().filter(|known| known.starts_with(word));
    let mut longer = longer.filter(|_| !word.is_empty());
    match (longer.next(), longer.next()) {
        (Some(known), None) => return Some(known),
        (Some(_), Some(_)) => return None,
        (None, _) => {}
    }
    let near = known.map(|known| (strsim::damerau_levenshtein(known, word), known));
    let (changes, known) = near.min()?;
    (3 * changes <= word.chars().count()).then_some(known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_beginning_or_a_name_with_few_changes_is_meant() {
        let known = || ["cilium-ebpf", "libbpf", "libbpf-0.8", "aya"].into_iter();
        assert_eq!(nearest("cilium", known()), Some("cilium-ebpf"));
        assert_eq!(nearest("libpbf", known()), Some("libbpf"));
        assert_eq!(nearest("libb", known()), None);
        assert_eq!(nearest("go", known()), None);
        assert_eq!(nearest("", known()), None);
    }
}
