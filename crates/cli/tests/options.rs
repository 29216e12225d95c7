//! Each option of each command in each mode acts or is refused by its name; the table is
//! `data/options/modes.txt`.

use std::fs;
use std::io::Read;
use std::process::{Command, Stdio};

use command_tests::modes::{Mode, Place, check, check_all, run};
use command_tests::options::Opt;

use crate::seccomp::SANDBOXED;
use crate::support::BEEBOX;

#[oracle::test]
fn every_option_acts_or_is_refused() {
    let modes = include_str!("data/options/modes.txt");
    check_all(BEEBOX, modes, &write_files, &check_beside_process);
}

/// Files that modes name.
fn write_files(at: &Place<'_>) {
    let directory = at.directory;
    let put = |name: &str, text: &str| fs::write(directory.join(name), text).unwrap();
    put(
        "tcp.ddd",
        "4\n40 0 0 12\n21 0 1 2048\n6 0 0 262144\n6 0 0 0\n",
    );
    put("half.info", "SF:a.bpf.c\nDA:1,2\nDA:2,0\nend_of_record\n");
    put("drop.asm", "ret #0\n");
    put("allow.asm", "ret #0x7fff0000\n");
    put(
        "sum.asm",
        "w0 = 0\nr2 += r1\nnext:\nif r1 == r2 goto done\nr3 = *(u8 *)(r1 + 0)\nr0 += r3\nr1 += 1\n\
         goto next\ndone:\nexit\n",
    );
    put("kconfig", "CONFIG_HZ=250\n");
    put("empty", "");
    let profile = |action: &str| {
        format!(
            r#"{{"defaultAction": "{action}", "architectures": ["SCMP_ARCH_X86_64"], "syscalls": [
            {{"names": ["read", "write"], "action": "SCMP_ACT_ALLOW"}},
            {{"names": ["open"], "action": "SCMP_ACT_KILL", "includes": {{"caps": ["CAP_SYS_ADMIN"]}}}}]}}"#
        )
    };
    put("profile.json", &profile("SCMP_ACT_ERRNO"));
    put("other.json", &profile("SCMP_ACT_KILL"));
    for name in ["old.csv", "new.csv"] {
        let object = "examples/packets/firewall.bpf.o";
        let words = ["verify", object, "--format", "csv"].map(str::to_owned);
        put(name, &run(at, &words).out);
    }
}

/// The complaints about a mode that reads the filters of a process.
fn check_beside_process(mode: &Mode, options: &[Opt], at: &Place<'_>) -> Vec<String> {
    let filter = at.directory.join("allow.bpf").display().to_string();
    let words = ["asm", "{dir}/allow.asm", "-o", &filter].map(str::to_owned);
    assert_eq!(run(at, &words).code, Some(0));
    let child = Command::new("python3")
        .args(["-c", SANDBOXED, &filter])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    let Ok(mut child) = child else {
        oracle::skip("options for processes with filters", "no python3");
        return Vec::new();
    };
    let mut ready = [0; 5];
    let started = child
        .stdout
        .as_mut()
        .expect("a pipe")
        .read_exact(&mut ready);
    let at = Place {
        executable: at.executable,
        directory: at.directory,
        process: &child.id().to_string(),
    };
    let words = ["seccomp", "dump", "--pid", "{pid}"].map(str::to_owned);
    let found = match started.is_ok() && run(&at, &words).code == Some(0) {
        true => check(mode, options, &at),
        false => {
            oracle::skip("options for processes with filters", "they are not shown");
            Vec::new()
        }
    };
    child.kill().expect("a child of ours");
    child.wait().expect("a child of ours");
    found
}
