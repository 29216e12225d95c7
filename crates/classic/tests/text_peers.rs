//! The text forms against the tools that they come from: what those printed is
//! recorded in `data/`, and asked again where they are at hand.

use std::path::{Path, PathBuf};
use std::process::Command;

use beebox_classic::text::{Form, dump_line, read, write};
use isa::classic::{Insn, SockFilter};

fn data(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data")
        .join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The blocks of a data file that start with `% NAME`: name and text.
fn blocks(text: &str) -> Vec<(&str, &str)> {
    text.split("\n% ")
        .skip(1)
        .map(|block| block.split_once('\n').expect("a block has lines"))
        .collect()
}

fn text(program: &[SockFilter], form: Form) -> String {
    String::from_utf8(write(program, form)).expect("a text form")
}

/// What tcpdump prints for one filter.
struct Listing {
    expression: String,
    d: String,
    dd: String,
    ddd: String,
}

impl Listing {
    /// Every listing gives the program that all three are written from.
    fn check(&self) {
        let program = read(self.ddd.as_bytes(), None).expect("-ddd");
        assert_eq!(
            text(&program, Form::Decimal),
            self.ddd,
            "{}",
            self.expression
        );
        assert_eq!(text(&program, Form::CArray), self.dd, "{}", self.expression);
        assert_eq!(text(&program, Form::Dump), self.d, "{}", self.expression);
        let read = |listing: &str| read(listing.as_bytes(), None);
        assert_eq!(read(&self.dd).as_ref(), Ok(&program), "{}", self.expression);
        // libpcap leaves chance values in the `k` of `tax` and `txa`.
        let shown: Vec<_> = program
            .iter()
            .map(|&raw| Insn::decode(raw).encode())
            .collect();
        assert_eq!(read(&self.d).as_ref(), Ok(&shown), "{}", self.expression);
        let source = text(&program, Form::Asm);
        assert!(!source.contains(".insn"), "{source}");
        assert_eq!(read(&source), Ok(shown), "{}", self.expression);
    }
}

fn recorded() -> Vec<Listing> {
    let file = data("tcpdump.txt");
    let of_kind = |block: &str, is_kind: fn(&str) -> bool| -> String {
        let lines = block.lines().filter(|line| is_kind(line));
        lines.map(|line| format!("{line}\n")).collect()
    };
    blocks(&file)
        .into_iter()
        .map(|(expression, block)| Listing {
            expression: expression.to_owned(),
            d: of_kind(block, |line| line.starts_with('(')),
            dd: of_kind(block, |line| line.starts_with('{')),
            ddd: of_kind(block, |line| line.starts_with(|c: char| c.is_ascii_digit())),
        })
        .collect()
}

#[oracle::test]
fn listings_are_those_of_tcpdump() {
    let listings = recorded();
    assert!(listings.len() >= 60, "only {} listings", listings.len());
    for listing in &listings {
        listing.check();
    }
}

#[oracle::test]
fn listings_are_those_of_the_tcpdump_at_hand() {
    let tcpdump = oracle::program("tcpdump");
    if oracle::found("listings beside tcpdump", tcpdump).is_none() {
        return;
    }
    let capture = empty_capture();
    let ask = |flag: &str, expression: &str| {
        let output = Command::new("tcpdump")
            .args(["-r".as_ref(), capture.as_os_str()])
            .args([flag, expression])
            .output()
            .expect("tcpdump runs");
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{expression}: {error}");
        String::from_utf8(output.stdout).expect("tcpdump prints text")
    };
    for Listing { expression, .. } in recorded() {
        let [d, dd, ddd] = ["-d", "-dd", "-ddd"].map(|flag| ask(flag, &expression));
        let listing = Listing {
            expression,
            d,
            dd,
            ddd,
        };
        listing.check();
    }
    std::fs::remove_file(capture).expect("the capture is ours");
}

/// A capture of no Ethernet packets, from which tcpdump learns the link type.
fn empty_capture() -> PathBuf {
    let mut header = Vec::new();
    header.extend_from_slice(&0xa1b2_c3d4u32.to_ne_bytes());
    header.extend_from_slice(&2u16.to_ne_bytes());
    header.extend_from_slice(&4u16.to_ne_bytes());
    for word in [0u32, 0, 262_144, 1] {
        header.extend_from_slice(&word.to_ne_bytes());
    }
    let name = format!("beebox-empty-{}.pcap", std::process::id());
    let path = std::env::temp_dir().join(name);
    std::fs::write(&path, header).expect("a temporary file");
    path
}

/// Every instruction, every extension and opcodes that libpcap does not know,
/// each with operands of all signs.
#[oracle::test]
fn lines_are_those_of_bpf_image() {
    let file = data("bpf_image.txt");
    let mut lines = 0;
    for row in file.lines().filter(|row| !row.starts_with('#')) {
        let (fields, line) = row.split_once('\t').expect("a tab");
        let fields: Vec<u32> = fields
            .split(' ')
            .map(|field| field.parse().unwrap())
            .collect();
        let [index, code, jt, jf, k] = fields[..] else {
            panic!("{row}")
        };
        let raw = SockFilter::new(code as u16, jt as u8, jf as u8, k);
        assert_eq!(dump_line(index as usize, raw), line);
        lines += 1;
    }
    assert!(lines > 300, "only {lines} lines");
}

/// A program of bpf_asm's language and what bpf_asm makes of it.
fn assembled() -> Vec<(String, String, String)> {
    blocks(&data("bpf_asm.txt"))
        .into_iter()
        .map(|(name, block)| {
            let (source, line) = block.rsplit_once("\n= ").expect("a result");
            (
                name.to_owned(),
                source.to_owned(),
                format!("{}\n", line.trim_end()),
            )
        })
        .collect()
}

#[oracle::test]
fn programs_are_assembled_as_by_bpf_asm() {
    let programs = assembled();
    assert!(programs.len() >= 16, "only {} programs", programs.len());
    for (name, source, line) in programs {
        let program = read(source.as_bytes(), Some(Form::Asm));
        let program = program.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(text(&program, Form::OneLine), line, "{name}");
        assert_eq!(Form::detect(source.as_bytes()), Some(Form::Asm), "{name}");
        assert_eq!(read(line.as_bytes(), None), Ok(program), "{name}");
    }
}

/// What the writer says in words, bpf_asm understands:
/// `BPF_ASM=path cargo test -- --include-ignored`.
#[oracle::test]
#[ignore = "needs bpf_asm, which BPF_ASM names"]
fn written_programs_are_understood_by_the_bpf_asm_at_hand() {
    let tool = std::env::var_os("BPF_ASM").expect("BPF_ASM names bpf_asm");
    let mut understood = 0;
    for seed in 0..400 {
        let program = sensible_program(seed);
        let source = text(&program, Form::Asm);
        assert!(!source.contains(".insn"), "{source}");
        let path = std::env::temp_dir().join(format!("beebox-{}.asm", std::process::id()));
        std::fs::write(&path, &source).expect("a temporary file");
        let output = Command::new(&tool)
            .arg(&path)
            .output()
            .expect("bpf_asm runs");
        let line = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(line, text(&program, Form::OneLine), "{source}");
        std::fs::remove_file(&path).expect("the source is ours");
        understood += 1;
    }
    assert_eq!(understood, 400);
}

/// A program that the language has words for: opcodes of the table, no value in
/// an ignored field, jumps that stay inside.
fn sensible_program(seed: u64) -> Vec<SockFilter> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 16) as u32
    };
    let len = 2 + random() as usize % 60;
    (0..len)
        .map(|index| {
            let rows = isa::classic::OPCODES;
            let (code, _) = rows[random() as usize % rows.len()];
            let k = match random() % 4 {
                0 => random() % 16,
                1 => 0xffff_f000 + random() % 72,
                _ => random(),
            };
            let room = (len - 1 - index).min(255);
            let mut skip = || match room {
                0 => None,
                _ => Some((random() as usize % room) as u8),
            };
            let raw = SockFilter::new(code, skip().unwrap_or(0), skip().unwrap_or(0), k);
            match Insn::decode(raw) {
                Insn::Jump { .. } | Insn::Goto(_) if room == 0 => Insn::RetA.encode(),
                Insn::Goto(_) => Insn::Goto(k % room as u32).encode(),
                insn => insn.encode(),
            }
        })
        .collect()
}
