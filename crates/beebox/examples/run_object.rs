//! Runs a program on a packet, reads a counter, and runs it again.

use beebox::{Error, Instance, Loader, Map, Object, Program, TestRun, Verdict};

/// A loaded firewall: handles of its program and of the counters in a map.
pub(crate) struct Firewall {
    program: Program,
    actions: Map,
}

impl Firewall {
    /// Loads it for Linux 6.18: links, verifies and compiles the program.
    pub(crate) fn load(path: &str) -> Result<Firewall, Error> {
        let object = Object::open(path)?;
        let instance: Instance = Loader::default().map_memory(64 << 20).load(&object)?;
        Ok(Firewall {
            program: instance.program("firewall")?,
            actions: instance.map("actions")?,
        })
    }

    /// What it decides about a packet, and how often it has decided so.
    pub(crate) fn decide(&self, packet: &[u8]) -> Result<(Verdict, u64), Error> {
        let result = self.program.test_run(&TestRun::packet(packet))?;
        // A per-CPU array: its counts are summed up.
        let counts = self.actions.lookup_percpu::<u32, u64>(&result.retval)?;
        Ok((result.verdict, counts.unwrap_or_default().iter().sum()))
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1);
    let firewall = Firewall::load(&path.ok_or("usage: run_object firewall.bpf.o")?)?;
    for _ in 0..2 {
        let (verdict, times) = firewall.decide(&[0; 64])?;
        println!("{}, {times} times", verdict.name());
    }
    Ok(())
}
