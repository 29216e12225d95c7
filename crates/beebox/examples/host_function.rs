//! Runs an object whose program calls a function of this program, on one packet.

use std::error::Error;
use std::sync::{Arc, Mutex};

use beebox::host::HostFunction;
use beebox::object::Object;
use beebox::run::{LoadOptions, LoadedObject};

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
pub(crate) fn run(file: &[u8], packet: &[u8], seen: HostFunction) -> Result<u32, Box<dyn Error>> {
    let kernel = kernel_data::linux_6_18();
    let (object, options) = (Object::open(file)?, LoadOptions::default());
    let mut loaded = LoadedObject::load_with_functions(&object, &kernel, &options, &[seen])?;
    let mut program = loaded.program("count").ok_or("no program named count")?;
    Ok(program.test_run(packet)?.retval)
}

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1);
    let path = path.ok_or("usage: host_function FILE.bpf.o")?;
    let types = Seen::default();
    let returned = run(&std::fs::read(path)?, &[8; 64], seen(&types))?;
    println!("returned {returned}; types {:02x?}", types.lock().unwrap());
    Ok(())
}
