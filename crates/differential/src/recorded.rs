//! Recorded answers of kernels: packed comma-separated values with a line for each program.

use std::error::Error;
use std::fs;
use std::path::Path;

use flate2::read::GzDecoder;

/// The text of a file, perhaps packed.
///
/// # Errors
/// If it cannot be read, or is no text.
pub fn read_text(path: &Path) -> Result<String, Box<dyn Error>> {
    let bytes = fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(match bytes.starts_with(&[0x1f, 0x8b]) {
        true => std::io::read_to_string(GzDecoder::new(&bytes[..]))?,
        false => String::from_utf8(bytes)?,
    })
}

/// The cells of a line of comma-separated values.
pub fn cells(line: &str) -> Vec<String> {
    let mut cells = vec![String::new()];
    let mut is_quoted = false;
    let mut rest = line.chars().peekable();
    while let Some(now) = rest.next() {
        match (now, is_quoted, cells.last_mut()) {
            ('"', true, Some(cell)) if rest.peek() == Some(&'"') => {
                rest.next();
                cell.push('"');
            }
            ('"', ..) => is_quoted = !is_quoted,
            (',', false, _) => cells.push(String::new()),
            (other, _, Some(cell)) => cell.push(other),
            (_, _, None) => {}
        }
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::cells;

    #[test]
    fn quoted_cells_hold_commas_and_quotes() {
        assert_eq!(cells("a,\"b,\"\"c\"\"\",,d"), ["a", "b,\"c\"", "", "d"]);
    }
}
