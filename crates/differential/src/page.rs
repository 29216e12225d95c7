//! Parts of pages that commands write, between marks.

use std::error::Error;
use std::fs;
use std::path::Path;

/// Writes a part of a page of the repository, between the marks of its name.
///
/// # Errors
/// If the page cannot be read or written, or has no such marks.
pub fn write_part(page: &str, name: &str, text: &str) -> Result<(), Box<dyn Error>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(page);
    let old = fs::read_to_string(&path)?;
    let new = replace_part(&old, name, text);
    let page = new.ok_or_else(|| format!("{page} has no part {name}"))?;
    fs::write(path, page)?;
    Ok(())
}

/// The text between the marks of a name.
pub fn part<'p>(page: &'p str, name: &str) -> Option<&'p str> {
    let (start, end) = (format!("<!-- {name} -->\n"), format!("<!-- /{name} -->"));
    let (_, rest) = page.split_once(&start)?;
    Some(rest.split_once(&end)?.0)
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
