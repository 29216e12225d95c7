//! A unit test of the firewall: run, read a counter, run again.

use beebox::{Loader, Object, TestRun, XdpAction};

#[test]
fn a_blocked_network_is_dropped_and_counted() -> Result<(), beebox::Error> {
    let object = Object::open("../../examples/packets/firewall.bpf.o")?;
    let instance = Loader::default().load(&object)?;
    let (firewall, blocked) = (instance.program("firewall")?, instance.map("blocked")?);
    // 192.0.2.0/24, with the name of the rule and its hits.
    let network = [24u8, 0, 0, 0, 192, 0, 2, 0];
    blocked.update(&network, &[0u64; 3])?;

    let mut packet = [0; 34];
    packet[12..15].copy_from_slice(&[0x08, 0x00, 0x45]);
    packet[26..30].copy_from_slice(&[192, 0, 2, 7]);
    for hits in 1..=2 {
        let result = firewall.test_run(&TestRun::packet(&packet))?;
        assert_eq!(result.verdict, XdpAction::Drop);
        let rule = blocked.lookup::<_, [u64; 3]>(&network)?;
        assert_eq!(rule.map(|rule| rule[2]), Some(hits));
    }
    Ok(())
}
