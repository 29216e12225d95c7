//! A unit test of the firewall.

use beebox::object::Object;
use beebox::run::{LoadOptions, LoadedObject};

#[test]
fn a_blocked_network_is_dropped() -> Result<(), Box<dyn std::error::Error>> {
    let file = include_bytes!("../../../../examples/packets/firewall.bpf.o");
    let (object, kernel) = (Object::open(file)?, kernel_data::linux_6_18());
    let mut loaded = LoadedObject::load(&object, &kernel, &LoadOptions::default())?;
    let blocked = loaded.typed_map::<[u8; 8], [u64; 3]>("blocked")?;
    blocked.insert(&[24, 0, 0, 0, 192, 0, 2, 0], &[0; 3])?;

    let mut packet = [0; 34];
    packet[12..15].copy_from_slice(&[0x08, 0x00, 0x45]);
    packet[26..30].copy_from_slice(&[192, 0, 2, 7]);
    let mut firewall = loaded.program("firewall").ok_or("no program")?;
    assert_eq!(firewall.test_run(&packet)?.verdict.name, "XDP_DROP");
    Ok(())
}
