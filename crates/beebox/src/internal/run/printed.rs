//! Text that programs print.

use spec::Printk;

/// Texts that a program printed by `bpf_trace_printk` and `bpf_trace_vprintk`, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PrintedText {
    /// The texts, at most [`PrintedText::MOST`]; bytes that are no UTF-8 are replaced.
    pub texts: Vec<String>,
    /// Number of texts beyond those.
    pub lost: u64,
}

impl PrintedText {
    /// Most texts that are kept.
    pub const MOST: usize = 1 << 16;

    /// True if nothing was printed.
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty() && self.lost == 0
    }

    /// Adds the texts of a later run.
    pub fn append(&mut self, later: PrintedText) {
        self.lost += later.lost;
        for text in later.texts {
            self.push(text);
        }
    }

    fn push(&mut self, text: String) {
        match self.texts.len() < PrintedText::MOST {
            true => self.texts.push(text),
            false => self.lost += 1,
        }
    }
}

impl Printk for PrintedText {
    fn print(&mut self, text: &[u8]) {
        self.push(String::from_utf8_lossy(text).into_owned());
    }
}
