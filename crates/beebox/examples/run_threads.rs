//! Runs a program in two threads, which count in the same map, and keeps the map over a reload.

use std::thread;

use beebox::{Error, Loader, Object};

/// Runs `firewall` `times` times in each of two threads, loaded anew for the second half; the sum
/// of what its runs counted.
pub(crate) fn count(path: &str, times: u32) -> Result<u64, Error> {
    let object = Object::open(path)?;
    let first = Loader::default().load(&object)?;
    let actions = first.map("actions")?;
    // The new instance counts in the map of the old one.
    let second = Loader::default().reuse_map("actions", &actions);
    let second = second.load(&object)?;
    for instance in [first, second] {
        let program = instance.program("firewall")?;
        let threads = [0, 1].map(|cpu| {
            let program = program.clone();
            thread::spawn(move || -> Result<(), Error> {
                // A runner for each thread: it keeps the memory of the packet from run to run.
                let mut runner = program.runner_on(cpu);
                for _ in 0..times {
                    runner.run(&[0; 64])?;
                }
                Ok(())
            })
        });
        for thread in threads {
            thread.join().expect("the thread ends")?;
        }
    }
    let counts = actions.entries_percpu::<u32, u64>()?;
    Ok(counts.iter().flat_map(|(_, cpus)| cpus).sum())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1);
    let path = path.ok_or("usage: run_threads firewall.bpf.o")?;
    println!("{} runs", count(&path, 1000)?);
    Ok(())
}
