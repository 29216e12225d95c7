//! Answers on a terminal of 80 columns: they fit, and verdicts have colours; a pipe gets neither.

use std::io::Write;
use std::process::{Command, Stdio};

use command_tests::root;

/// Commands, and a verdict with its colour that they print, if any.
const COMMANDS: &[(&str, &str)] = &[
    (
        "run examples/packets/firewall.bpf.o --packet zero:60",
        "\x1b[32mXDP_PASS\x1b[0m",
    ),
    (
        "run examples/packets/firewall.bpf.o --pcap examples/sample.pcap",
        "\x1b[32mXDP_PASS\x1b[0m",
    ),
    (
        "run examples/packets/firewall.bpf.o --pcap examples/sample.pcap --verdicts",
        "\x1b[32mXDP_PASS\x1b[0m",
    ),
    (
        "run examples/packets/firewall.bpf.o --pcap examples/sample.pcap --profile",
        "",
    ),
    (
        "run examples/packets/firewall.bpf.o --pcap examples/sample.pcap --why 3",
        "",
    ),
    ("test examples/tests", "\x1b[32mok  \x1b[0m"),
    (
        "test crates/cli/tests/data/json/failing.expect",
        "\x1b[31mFAIL\x1b[0m",
    ),
    (
        "verify examples/verify/port.bpf.o --kernel 6.12,6.18",
        "\x1b[31mrefused\x1b[0m",
    ),
    (
        "verify examples/packets/firewall.bpf.o --kernel 6.12,6.18",
        "\x1b[32maccepted",
    ),
    (
        "filter -F examples/port-22.ddd examples/sample.pcap --why 3",
        "",
    ),
    (
        "seccomp diff examples/sandbox.asm examples/seccomp/unchecked.asm",
        "\x1b[32mALLOW\x1b[0m",
    ),
    ("seccomp check examples/seccomp/unchecked.asm", ""),
    ("show examples/packets/firewall.bpf.o", ""),
    ("kfuncs", ""),
];

/// Runs each line of standard input in a terminal of 80 columns; outputs end with a zero.
const TERMINAL: &str = r"
import fcntl, os, pty, struct, sys, termios
for line in sys.stdin:
    pid, fd = pty.fork()
    if pid == 0:
        os.environ['TERM'] = 'xterm-256color'
        for name in ('COLUMNS', 'NO_COLOR', 'CLICOLOR'):
            os.environ.pop(name, None)
        # Until the size is set.
        sys.stdin = open(0)
        sys.stdin.readline()
        os.execv(sys.argv[1], [sys.argv[1]] + line.split())
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack('HHHH', 24, 80, 0, 0))
    attributes = termios.tcgetattr(fd)
    attributes[3] &= ~termios.ECHO
    termios.tcsetattr(fd, termios.TCSANOW, attributes)
    os.write(fd, b'\n')
    while True:
        try:
            part = os.read(fd, 65536)
        except OSError:
            break
        if not part:
            break
        sys.stdout.buffer.write(part)
    os.waitpid(pid, 0)
    sys.stdout.buffer.write(b'\0')
";

/// A line without `ESC [ … m`.
fn without_styles(line: &str) -> String {
    let mut parts = line.split('\x1b');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        text + part.split_once('m').map_or(part, |(_, rest)| rest)
    })
}

#[oracle::test]
fn answers_fit_a_terminal_and_verdicts_have_colours() {
    let beebox = env!("CARGO_BIN_EXE_beebox");
    let child = Command::new("python3")
        .args(["-c", TERMINAL, beebox])
        .current_dir(root())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn();
    let Ok(mut child) = child else {
        return oracle::skip("answers on a terminal", "no python3");
    };
    let lines: String = COMMANDS
        .iter()
        .map(|(line, _)| format!("{line}\n"))
        .collect();
    let mut input = child.stdin.take().expect("a pipe");
    input.write_all(lines.as_bytes()).unwrap();
    drop(input);
    let output = child.wait_with_output().unwrap();
    let shown = String::from_utf8(output.stdout).unwrap();
    let shown: Vec<&str> = shown.split_terminator('\0').collect();
    assert_eq!(shown.len(), COMMANDS.len(), "{shown:?}");
    for ((line, verdict), shown) in COMMANDS.iter().zip(shown) {
        assert!(shown.contains(verdict), "{line}: {shown}");
        // Progress overwrites its line.
        for row in shown.lines() {
            let row = without_styles(row.rsplit('\r').next().unwrap_or(row));
            assert!(row.chars().count() <= 80, "{line}: {row}");
        }
        let piped = Command::new(beebox)
            .args(line.split(' '))
            .current_dir(root())
            .output();
        let piped = String::from_utf8(piped.unwrap().stdout).unwrap();
        assert!(!piped.contains('\x1b'), "{line}: {piped}");
    }
}
