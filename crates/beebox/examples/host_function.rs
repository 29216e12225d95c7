//! Runs an object whose program calls a function of this program, on one packet.

use std::sync::{Arc, Mutex};

use beebox::{Error, HostFunction, Loader, Object, TestRun};

/// The Ethernet types that the program saw.
type Seen = Arc<Mutex<Vec<[u8; 2]>>>;

/// A function for programs: it records the type of a frame and returns how many it saw.
pub(crate) fn seen(types: &Seen) -> HostFunction {
    let types = types.clone();
    beebox::kfunc! {
        fn host_seen(header: &[u8], length: u32) -> u64 {
            let mut types = types.lock().unwrap();
            if let [.., high, low] = *header && length >= 14 {
                types.push([high, low]);
            }
            types.len() as u64
        }
    }
}

/// What the program `count` returns for a packet.
pub(crate) fn run(file: &[u8], packet: &[u8], seen: HostFunction) -> Result<u32, Error> {
    let loader = Loader::default().host_function(seen);
    let instance = loader.load(&Object::from_bytes(file)?)?;
    let program = instance.program("count")?;
    Ok(program.test_run(&TestRun::packet(packet))?.retval)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1);
    let path = path.ok_or("usage: host_function FILE.bpf.o")?;
    let types = Seen::default();
    let returned = run(&std::fs::read(path)?, &[8; 64], seen(&types))?;
    println!("returned {returned}; types {:02x?}", types.lock().unwrap());
    Ok(())
}
