//! Two hosts on one Ethernet: network namespaces joined by a veth pair.

use std::process::{Child, Command, Stdio};

use super::{Expect, wait_until};
use crate::Outcome;

/// The name of the interface on both hosts.
pub(super) const INTERFACE: &str = "eth0";
/// The right-hand host's addresses.
pub(super) const RIGHT_V4: &str = "192.0.2.2";
pub(super) const RIGHT_V6: &str = "2001:db8::2";

const LEFT_V4: &str = "192.0.2.1";
const LEFT_V6: &str = "2001:db8::1";

/// Both hosts; they cease to exist with this value.
pub(super) struct Hosts {
    pub(super) left: Host,
    pub(super) right: Host,
}

impl Hosts {
    pub(super) fn create() -> Outcome<Hosts> {
        let hosts = Hosts {
            left: Host::create("left")?,
            right: Host::create("right")?,
        };
        ip(&[
            "link",
            "add",
            INTERFACE,
            "netns",
            &hosts.left.name,
            "address",
            "02:00:00:00:00:01",
            "type",
            "veth",
            "peer",
            "name",
            INTERFACE,
            "netns",
            &hosts.right.name,
            "address",
            "02:00:00:00:00:02",
        ])?;
        hosts.left.configure(LEFT_V4, LEFT_V6)?;
        hosts.right.configure(RIGHT_V4, RIGHT_V6)?;
        for host in [&hosts.left, &hosts.right] {
            host.wait_for_link()?;
        }
        Ok(hosts)
    }
}

/// One host: a network namespace.
pub(super) struct Host {
    name: String,
}

impl Host {
    fn create(side: &str) -> Outcome<Host> {
        let name = format!("beebox-{side}-{}", std::process::id());
        ip(&["netns", "add", &name])?;
        Ok(Host { name })
    }

    fn configure(&self, v4: &str, v6: &str) -> Outcome {
        let succeed = |command: &[&str]| self.run(command, Expect::Success);
        // Without this a veth pair carries segments of 64 KB with sums to be
        // filled in by hardware, which is not what an Ethernet carries.
        succeed(&[
            "ethtool", "-K", INTERFACE, "tx", "off", "rx", "off", "tso", "off", "gso", "off",
            "gro", "off",
        ])?;
        succeed(&["ip", "link", "set", "lo", "up"])?;
        succeed(&[
            "ip",
            "address",
            "add",
            &format!("{v4}/24"),
            "dev",
            INTERFACE,
        ])?;
        succeed(&[
            "ip",
            "address",
            "add",
            &format!("{v6}/64"),
            "dev",
            INTERFACE,
            "nodad",
        ])?;
        succeed(&["ip", "link", "set", INTERFACE, "up"])
    }

    fn wait_for_link(&self) -> Outcome {
        wait_until("the link", || {
            let output = self.command(&["ip", "link", "show", INTERFACE]).output()?;
            Ok(String::from_utf8_lossy(&output.stdout).contains("LOWER_UP"))
        })
    }

    /// A command that will run on this host.
    pub(super) fn command(&self, command: &[&str]) -> Command {
        let mut ip = Command::new("ip");
        ip.args(["netns", "exec", &self.name])
            .args(command)
            .stdin(Stdio::null());
        ip
    }

    /// Starts a program and leaves it running.
    pub(super) fn start(&self, command: &[&str]) -> Outcome<Child> {
        let child = self
            .command(command)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        Ok(child)
    }

    /// Runs a program to its end.
    pub(super) fn run(&self, command: &[&str], expect: Expect) -> Outcome {
        let output = self.command(command).output()?;
        if output.status.success() == (expect == Expect::Success) {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        Err(format!("{}: {}\n{said}", command.join(" "), output.status).into())
    }

    /// Waits until something listens on the TCP port.
    pub(super) fn wait_for_listener(&self, port: u16) -> Outcome {
        wait_until(&format!("a server on port {port}"), || {
            let filter = format!("sport = :{port}");
            let output = self.command(&["ss", "-Hltn", &filter]).output()?;
            Ok(!output.stdout.is_empty())
        })
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        if let Err(error) = ip(&["netns", "delete", &self.name]) {
            eprintln!("xtask: the namespace {} is left over: {error}", self.name);
        }
    }
}

fn ip(arguments: &[&str]) -> Outcome {
    let output = Command::new("ip").args(arguments).output()?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("ip {}: {said}", arguments.join(" ")).into())
}
