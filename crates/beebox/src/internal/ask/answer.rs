//! What the loader in the guest writes: an answer for each program.

use std::collections::BTreeMap;

use program::Program;

/// The answer of a kernel about a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuestAnswer {
    /// Error number of bpf(2); 0 if the kernel takes the program.
    pub errno: i32,
    /// The map that the kernel does not create, if that is why the program is not loaded.
    pub refused_map: Option<String>,
    /// Error number with which the kernel refuses the program's BTF, so that it is loaded without; 0 if
    /// it does not.
    pub btf_errno: i32,
    /// The end of the verifier's log.
    pub log: String,
    /// Bytes of the log before that.
    pub log_left_out: u32,
}

impl GuestAnswer {
    /// True if the kernel takes the program.
    pub fn is_accepted(&self) -> bool {
        self.errno == 0
    }

    /// Instructions and states of the line of statistics.
    pub fn counts(&self) -> Option<(u64, u64)> {
        let line = self
            .log
            .lines()
            .rev()
            .find(|line| line.starts_with("processed "))?;
        let number = |word: &str| {
            let mut words = line.split_whitespace();
            words.find(|known| *known == word)?;
            words.next()?.parse().ok()
        };
        Some((number("processed")?, number("total_states")?))
    }

    /// Why the kernel refuses it: the last line of the log that is no statistics.
    pub fn reason(&self) -> String {
        if let Some(map) = &self.refused_map {
            return format!("map {map:?} is not created (error {})", self.errno);
        }
        let last_of = |log: &'_ str| sys::kernel::last_words(log).map(str::to_owned);
        // Words that the report ends in are indented; some refusals have one more line behind it.
        let report = self.log.find("\nVerification failed: ");
        let last = last_of(&self.log);
        let last = match (report, last.as_deref()) {
            (Some(at), Some(line)) if line.starts_with(' ') => last_of(&self.log[..at]),
            _ => last,
        };
        // Some refusals have no words: the log ends with the instruction.
        match last.filter(|line| !is_insn(line)) {
            Some(line) => line.trim().to_owned(),
            None if self.errno == 0 => String::new(),
            None => format!("the kernel refuses it with error {}", self.errno),
        }
    }
}

/// True for a line of the log that shows an instruction: `1: (7a) *(u64 *)(r0 +144) = 1`.
fn is_insn(line: &str) -> bool {
    let Some((place, insn)) = line.split_once(": (") else {
        return false;
    };
    place.parse::<u32>().is_ok() && insn.get(2..4) == Some(") ")
}

/// The answers in the output, by number.
pub(super) fn read(output: &[u8], programs: &[&Program]) -> BTreeMap<u32, GuestAnswer> {
    const HEADER: usize = 28;
    let mut answers = BTreeMap::new();
    let mut rest = output.strip_prefix(b"BXUP").unwrap_or_default();
    while let Some(header) = rest.get(..HEADER).filter(|_| rest.starts_with(b"BXAN")) {
        let word = |at: usize| {
            let bytes = &header[4 + 4 * at..8 + 4 * at];
            u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
        };
        let (id, need, len, kept) = (word(0), word(2), word(4), word(5));
        let Some(log) = rest.get(HEADER..HEADER + kept as usize) else {
            break;
        };
        rest = &rest[HEADER + kept as usize..];
        let Some(program) = programs.get(id as usize) else {
            break;
        };
        let used = program.used_maps();
        let map = (need as usize).checked_sub(1).and_then(|at| used.get(at));
        let map = map.and_then(|map| program.map(*map));
        let answer = GuestAnswer {
            errno: -(word(1) as i32),
            refused_map: map.map(|map| map.name.clone()),
            btf_errno: -(word(3) as i32),
            log: String::from_utf8_lossy(log).into_owned(),
            log_left_out: len.saturating_sub(kept),
        };
        answers.insert(id, answer);
    }
    answers
}

#[cfg(test)]
mod tests {
    use isa::ebpf::assemble;
    use spec::programs::ProgramType;

    use super::*;

    #[test]
    fn answers_are_read_as_far_as_they_are_whole() {
        let program = Program::builder(ProgramType::Xdp, {
            let insns = assemble("r0 = 0\nexit\n").unwrap();
            isa::ebpf::encode(&insns).unwrap()
        });
        let program = program.build().unwrap();
        let log = b"R0 !read_ok\nprocessed 12 insns (limit 1000000) max_states_per_insn 1 total_states 3 peak_states 3 mark_read 0\n";
        let mut output = b"BXUP".to_vec();
        for (id, error) in [(0u32, 0i32), (1, -13)] {
            output.extend(b"BXAN");
            for word in [id, error as u32, 0, 0, 200, log.len() as u32] {
                output.extend(word.to_le_bytes());
            }
            output.extend(log);
        }
        let programs = [&program, &program];
        let answers = read(&output, &programs);
        assert!(answers[&0].is_accepted() && !answers[&1].is_accepted());
        assert_eq!(answers[&1].counts(), Some((12, 3)));
        assert_eq!(answers[&1].reason(), "R0 !read_ok");
        assert_eq!(answers[&1].log_left_out, 200 - log.len() as u32);
        let cut = read(&output[..output.len() - 1], &programs);
        assert_eq!(cut.keys().collect::<Vec<_>>(), [&0]);
        assert!(read(b"", &programs).is_empty() && read(b"BXUPBXAN", &programs).is_empty());
    }

    #[test]
    fn a_refusal_without_words_has_its_error_number() {
        let log = "0: R1=ctx() R10=fp0\n1: (7a) *(u64 *)(r0 +144) = 1\nprocessed 2 insns\n";
        let answer = GuestAnswer {
            errno: 13,
            refused_map: None,
            btf_errno: 0,
            log: log.to_owned(),
            log_left_out: 0,
        };
        assert_eq!(answer.reason(), "the kernel refuses it with error 13");
    }
}
