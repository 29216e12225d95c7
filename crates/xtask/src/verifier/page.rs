//! Parts of docs/verifier.md that are written by chores, between marks.

use std::fs;
use std::path::Path;

use crate::Outcome;

const PAGE: &str = "docs/verifier.md";

/// Writes a part of the page, between the marks of its name.
pub(super) fn write_part(name: &str, text: &str) -> Outcome {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(PAGE);
    let page = fs::read_to_string(&path)?;
    let page =
        replace_part(&page, name, text).ok_or_else(|| format!("{PAGE} has no part {name}"))?;
    fs::write(path, page)?;
    Ok(())
}

fn replace_part(page: &str, name: &str, text: &str) -> Option<String> {
    let (start, end) = (format!("<!-- {name} -->\n"), format!("<!-- /{name} -->"));
    let (before, rest) = page.split_once(&start)?;
    let (_, after) = rest.split_once(&end)?;
    Some(format!("{before}{start}{}\n{end}{after}", text.trim_end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_replaced_between_their_marks() {
        let page = "a\n<!-- x -->\nold\n<!-- /x -->\nb\n";
        let new = replace_part(page, "x", "new\n").unwrap();
        assert_eq!(new, "a\n<!-- x -->\nnew\n<!-- /x -->\nb\n");
        assert_eq!(replace_part(page, "y", "new"), None);
    }
}
