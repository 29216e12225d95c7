//! Receivers of a log while it is written.

/// Receiver of a log.
///
/// At level 2 text is only added. At level 1 the text of paths that end without a refusal
/// is dropped again, as the kernel resets its log.
pub trait LogOutput {
    /// Appends text.
    fn write(&mut self, text: &str);

    /// Drops everything from this byte of the log on.
    fn truncate(&mut self, len: u64);
}

/// The last bytes of a log, as the kernel's log buffer keeps them: whole lines, at most
/// twice the limit in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogTail {
    limit: usize,
    text: String,
    left_out: u64,
}

impl LogTail {
    /// Without text; keeps so many bytes.
    pub fn new(limit: usize) -> LogTail {
        LogTail {
            limit,
            text: String::new(),
            left_out: 0,
        }
    }

    /// The lines that are kept.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Bytes before them that are left out.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// The lines that are kept, and the number of bytes before them that are left out.
    pub fn finish(mut self) -> (String, u64) {
        self.trim();
        (self.text, self.left_out)
    }

    /// Drops whole lines in front until the limit holds.
    fn trim(&mut self) {
        let Some(least) = self.text.len().checked_sub(self.limit).filter(|&it| it > 0) else {
            return;
        };
        let rest = &self.text.as_bytes()[least - 1..];
        let newline = rest.iter().position(|&byte| byte == b'\n');
        let end = newline.map_or(self.text.len(), |at| least + at);
        self.text.drain(..end);
        self.left_out += end as u64;
    }
}

impl LogOutput for LogTail {
    fn write(&mut self, text: &str) {
        self.text.push_str(text);
        if self.text.len() / 2 > self.limit {
            self.trim();
        }
    }

    fn truncate(&mut self, len: u64) {
        match len.checked_sub(self.left_out) {
            Some(len) => self.text.truncate(len as usize),
            None => {
                self.text.clear();
                self.left_out = len;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_kept() {
        let mut tail = LogTail::new(10);
        for number in 0..100 {
            tail.write(&format!("{number:03}\n"));
            assert!(tail.as_str().len() <= 24);
        }
        assert_eq!(tail.clone().finish(), ("098\n099\n".to_owned(), 392));
        tail.truncate(396);
        tail.write("x\n");
        assert_eq!(tail.clone().finish(), ("097\n098\nx\n".to_owned(), 388));
        tail.truncate(8);
        tail.write("y\n");
        assert_eq!(tail.finish(), ("y\n".to_owned(), 8));
    }

    #[test]
    fn a_line_beyond_the_limit_is_left_out() {
        let mut tail = LogTail::new(4);
        tail.write("0123456789\n");
        assert_eq!(tail.clone().finish(), (String::new(), 11));
        tail.write("ab\n");
        assert_eq!(tail.finish(), ("ab\n".to_owned(), 11));
    }
}
