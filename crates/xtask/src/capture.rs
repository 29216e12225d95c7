//! Records the sample capture from real programs.
//!
//! Two network namespaces joined by a veth pair are two hosts on an Ethernet.
//! The right one runs servers (ssh, HTTP, our own DNS); the left one runs their
//! clients and `tcpdump`. What no program here would send (VLAN tags, spanning
//! tree, MPLS …) our own frame sender puts on the wire through a packet socket.
//! Addresses are fixed and from the ranges for documentation, so that a new
//! capture differs from the old one in times, ports and keys only.
//!
//! Everything is taken down by `Drop`, whichever way the chore ends.

mod dns;
mod frames;
mod hosts;

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::Outcome;
use hosts::{Host, Hosts};

pub(crate) use dns::serve as serve_dns;
pub(crate) use frames::send as send_frames;

/// The hidden task that answers DNS queries.
pub(crate) const DNS_SERVER: &str = "capture-dns-server";
/// The hidden task that sends the frames no program would send.
pub(crate) const FRAME_SENDER: &str = "capture-frame-sender";

/// Programs that the capture needs, with their Debian packages.
const TOOLS: &[(&str, &str)] = &[
    ("ip", "iproute2"),
    ("ss", "iproute2"),
    ("ethtool", "ethtool"),
    ("tcpdump", "tcpdump"),
    ("ssh", "openssh-client"),
    ("ssh-keygen", "openssh-client"),
    ("sshd", "openssh-server"),
    ("curl", "curl"),
    ("python3", "python3"),
    ("dig", "bind9-dnsutils"),
    ("ping", "iputils-ping"),
];

/// The filters that are compiled beside the capture: file name and expression.
const FILTERS: &[(&str, &str)] = &[
    ("port-22", "port 22"),
    (
        "ssh-payload",
        "tcp port 22 and (((ip[2:2] - ((ip[0]&0xf)<<2)) - ((tcp[12]&0xf0)>>2)) != 0)",
    ),
];

/// Room for a whole capture in the repository.
const SIZE_LIMIT: u64 = 300_000;

/// Records the capture and compiles the filters.
pub(crate) fn take() -> Outcome {
    check_tools()?;
    let examples = examples_directory();
    fs::create_dir_all(&examples)?;
    let scratch = Scratch::create()?;
    let hosts = Hosts::create()?;

    println!("starting the servers");
    let servers = Servers::start(&hosts, &scratch.0)?;
    let fresh = scratch.0.join("sample.pcap");
    let recorder = Recorder::start(&hosts.left, &fresh)?;
    talk(&hosts, &scratch.0)?;
    // The last frames reach the recorder a moment after they are sent.
    sleep(Duration::from_millis(500));
    recorder.stop()?;
    drop(servers);

    let size = fs::metadata(&fresh)?.len();
    if size > SIZE_LIMIT {
        return Err(format!("the capture has {size} bytes, more than {SIZE_LIMIT}").into());
    }
    let sample = examples.join("sample.pcap");
    fs::copy(&fresh, &sample)?;
    println!("sample.pcap: {size} bytes");
    compile_filters(&sample, &examples)
}

fn check_tools() -> Outcome {
    if !nix::unistd::geteuid().is_root() {
        return Err("network namespaces need root".into());
    }
    for &(tool, package) in TOOLS {
        if find(tool).is_none() {
            return Err(format!("no {tool}; on Debian: apt-get install {package}").into());
        }
    }
    Ok(())
}

/// The full path of a program (sshd wants to be started by it).
fn find(tool: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|directory| directory.join(tool))
        .find(|candidate| candidate.is_file())
}

fn examples_directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

/// Runs the clients, one protocol after the other.
fn talk(hosts: &Hosts, scratch: &Path) -> Outcome {
    let on = |host: &Host, command: &[&str]| host.run(command, Expect::Success);
    let in_vain = |host: &Host, command: &[&str]| host.run(command, Expect::Failure);
    let left = &hosts.left;

    println!("ARP, ICMP and ICMPv6");
    on(left, &["ping", "-c", "3", "-i", "0.2", hosts::RIGHT_V4])?;
    on(left, &["ping", "-c", "3", "-i", "0.2", hosts::RIGHT_V6])?;
    // An IPv4 header with options is longer than 20 bytes.
    on(left, &["ping", "-c", "1", "-R", hosts::RIGHT_V4])?;
    println!("fragments");
    on(
        left,
        &[
            "ping",
            "-c",
            "2",
            "-i",
            "0.2",
            "-s",
            "4000",
            hosts::RIGHT_V4,
        ],
    )?;
    on(
        left,
        &[
            "ping",
            "-c",
            "2",
            "-i",
            "0.2",
            "-s",
            "4000",
            hosts::RIGHT_V6,
        ],
    )?;

    println!("DNS over UDP and TCP");
    let dig = |server: &str, query: &[&str]| {
        let at = format!("@{server}");
        let mut command = vec!["dig", &at, "+tries=1", "+time=2"];
        command.extend(query);
        left.run(&command, Expect::Success)
    };
    dig(hosts::RIGHT_V4, &["www.example.test", "A"])?;
    dig(hosts::RIGHT_V4, &["www.example.test", "AAAA"])?;
    dig(hosts::RIGHT_V4, &["absent.example.test", "A"])?;
    dig(hosts::RIGHT_V6, &["www.example.test", "AAAA"])?;
    // Longer than 512 bytes: truncated over UDP, repeated over TCP.
    dig(hosts::RIGHT_V4, &["+noedns", "long.example.test", "TXT"])?;
    dig(hosts::RIGHT_V6, &["+tcp", "www.example.test", "A"])?;

    println!("HTTP");
    let page = |host: &str, path: &str| format!("http://{host}:80{path}");
    let v6 = format!("[{}]", hosts::RIGHT_V6);
    let curl = |url: &str| left.run(&["curl", "-sS", "-o", "/dev/null", url], Expect::Success);
    curl(&page(hosts::RIGHT_V4, "/"))?;
    curl(&page(hosts::RIGHT_V4, "/absent"))?;
    curl(&page(hosts::RIGHT_V4, "/page.txt"))?;
    curl(&page(&v6, "/page.txt"))?;
    // Nobody listens there: a reset, and a "port unreachable".
    in_vain(
        left,
        &[
            "curl",
            "-sS",
            "-m",
            "2",
            &page(hosts::RIGHT_V4, "").replace(":80", ":81"),
        ],
    )?;
    in_vain(
        left,
        &[
            "dig",
            &format!("@{}", hosts::RIGHT_V4),
            "-p",
            "5353",
            "+tries=1",
            "+time=1",
            "a.test",
        ],
    )?;

    println!("ssh");
    for host in [hosts::RIGHT_V4, hosts::RIGHT_V6] {
        ssh(left, scratch, host, "seq 1 200; sleep 0.2; seq 1 20")?;
    }

    println!("VLAN, Q-in-Q and other frames of our own");
    let ourselves = std::env::current_exe()?;
    let ourselves = ourselves.to_string_lossy();
    on(&hosts.right, &[&ourselves, FRAME_SENDER, hosts::INTERFACE])
}

fn ssh(from: &Host, scratch: &Path, host: &str, command: &str) -> Outcome {
    let key = scratch.join("client_key").display().to_string();
    let options = ["-F", "none", "-i", &key, "-o", "BatchMode=yes"];
    let hosts = [
        "-o",
        "StrictHostKeyChecking=no",
        "-o",
        "UserKnownHostsFile=/dev/null",
    ];
    let user = format!("root@{host}");
    let mut ssh = vec!["ssh", "-q"];
    ssh.extend(options);
    ssh.extend(hosts);
    ssh.extend([user.as_str(), command]);
    from.run(&ssh, Expect::Success)
}

/// Expected exit status of a client.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Expect {
    Success,
    Failure,
}

/// The three servers on the right-hand host.
struct Servers {
    _running: Vec<Background>,
    _privilege_separation: Option<Scratch>,
}

impl Servers {
    fn start(hosts: &Hosts, scratch: &Path) -> Outcome<Servers> {
        let right = &hosts.right;
        let pages = scratch.join("pages");
        fs::create_dir(&pages)?;
        fs::write(
            pages.join("index.html"),
            "<!doctype html><title>Bees</title>\n",
        )?;
        fs::write(pages.join("page.txt"), page_text())?;
        for name in ["host_key", "client_key"] {
            let key = scratch.join(name).display().to_string();
            let keygen = [
                "ssh-keygen",
                "-q",
                "-t",
                "ed25519",
                "-N",
                "",
                "-C",
                "sample",
                "-f",
                &key,
            ];
            right.run(&keygen, Expect::Success)?;
        }
        let configuration = scratch.join("sshd_config");
        fs::write(&configuration, sshd_configuration(scratch))?;

        // sshd insists on this directory, which its service file makes elsewhere.
        let privilege_separation = Path::new("/run/sshd");
        let made = !privilege_separation.exists();
        if made {
            fs::create_dir(privilege_separation)?;
        }
        let sshd = find("sshd").ok_or("no sshd")?.display().to_string();
        let pages = pages.display().to_string();
        let configuration = configuration.display().to_string();
        let ourselves = std::env::current_exe()?.display().to_string();
        let servers = Servers {
            _privilege_separation: made.then(|| Scratch(privilege_separation.to_path_buf())),
            _running: vec![
                Background(right.start(&[&sshd, "-D", "-f", &configuration])?),
                Background(right.start(&[
                    "python3",
                    "-m",
                    "http.server",
                    "80",
                    "--bind",
                    "::",
                    "--directory",
                    &pages,
                ])?),
                Background(right.start(&[&ourselves, DNS_SERVER])?),
            ],
        };
        for port in [22, 80, 53] {
            right.wait_for_listener(port)?;
        }
        Ok(servers)
    }
}

fn sshd_configuration(scratch: &Path) -> String {
    let scratch = scratch.display();
    format!(
        "HostKey {scratch}/host_key\n\
         AuthorizedKeysFile {scratch}/client_key.pub\n\
         PidFile none\nPermitRootLogin yes\nStrictModes no\nUsePAM no\nUseDNS no\n\
         PrintMotd no\nPrintLastLog no\nLogLevel ERROR\n"
    )
}

/// A page of a few full-sized segments.
fn page_text() -> String {
    (1..=400)
        .map(|line| format!("line {line} of a page about bees, boxes and packets\n"))
        .collect()
}

/// `tcpdump` on the left-hand host.
struct Recorder(Background);

impl Recorder {
    fn start(host: &Host, file: &Path) -> Outcome<Recorder> {
        let mut tcpdump = host
            .command(&[
                "tcpdump",
                "-i",
                hosts::INTERFACE,
                "--immediate-mode",
                "-U",
                "-w",
                "-",
            ])
            .stdout(File::create(file)?)
            .stderr(Stdio::piped())
            .spawn()?;
        let messages = tcpdump.stderr.take().ok_or("no standard error")?;
        let recorder = Recorder(Background(tcpdump));
        for line in BufReader::new(messages).lines() {
            if line?.contains("listening on") {
                return Ok(recorder);
            }
        }
        Err("tcpdump did not start".into())
    }

    /// Lets it end by itself, so that the file is whole.
    fn stop(mut self) -> Outcome {
        let child = &mut self.0.0;
        kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGINT)?;
        let status = child.wait()?;
        if status.success() {
            Ok(())
        } else {
            Err(format!("tcpdump: {status}").into())
        }
    }
}

/// Compiles each filter for the capture's link type, as `tcpdump -ddd` and
/// `tcpdump -dd` print it.
fn compile_filters(sample: &Path, examples: &Path) -> Outcome {
    for &(name, expression) in FILTERS {
        for (form, ending) in [("-ddd", "ddd"), ("-dd", "dd")] {
            let output = Command::new("tcpdump")
                .arg("-r")
                .arg(sample)
                .args([form, expression])
                .output()?;
            if !output.status.success() {
                return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
            }
            fs::write(examples.join(format!("{name}.{ending}")), output.stdout)?;
        }
        println!("{name}: {expression}");
    }
    Ok(())
}

/// A process that ends with its owner.
struct Background(Child);

impl Drop for Background {
    fn drop(&mut self) {
        // It may have exited already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A directory that goes with its owner.
struct Scratch(PathBuf);

impl Scratch {
    fn create() -> Outcome<Scratch> {
        let path = std::env::temp_dir().join(format!("beebox-capture-{}", std::process::id()));
        fs::create_dir(&path)?;
        Ok(Scratch(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Polls `ready` until it is true, for at most five seconds.
fn wait_until(what: &str, mut ready: impl FnMut() -> Outcome<bool>) -> Outcome {
    let start = Instant::now();
    while !ready()? {
        if start.elapsed() > Duration::from_secs(5) {
            return Err(format!("waited in vain for {what}").into());
        }
        sleep(Duration::from_millis(50));
    }
    Ok(())
}
