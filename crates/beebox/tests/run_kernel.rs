//! Programs of the examples on the packets of the sample capture, here and in the running
//! kernel's test run: return values, packets, contexts, maps, and the errors of sizes. Each
//! runs as native code and in the checked engine.

use std::time::Duration;

use crate::support::{INTERP, NATIVE, file, packets};
use beebox::Engine;
use beebox::internal::maps::Ring;
use beebox::internal::object::Object;
use beebox::internal::program::Program;
use beebox::internal::run::{LoadOptions, LoadedObject, RunError};
use kernel_client::load::{LoadRequest, load};
use spec::maps::MapKind;
use spec::programs::ProgramType;
use sys::bpf::{LoadedProgram, Map, RingBuffer, TestRun};

/// A program here and in the kernel.
struct Both {
    name: String,
    kind: ProgramType,
    /// As native code.
    ours: LoadedObject,
    interp: LoadedObject,
    checked: LoadedObject,
    theirs: LoadedProgram,
    maps: Vec<Option<Map>>,
}

impl Both {
    /// `None` where no kernel can be asked.
    fn load(path: &str, name: &str) -> Option<Both> {
        let file = std::fs::read(file(path)).expect("a committed object");
        let mut object = Object::open(&file).expect("an object");
        object.set_autoload(|program| program.name == name);
        let kernel = kernel_data::linux_6_18_minimal();
        let linked = object.link(&kernel).expect("it links");
        let program: &Program = &linked.programs[0].program;
        let request = LoadRequest {
            log_level: 1,
            log_size: 1 << 20,
        };
        let loaded = load(program, request).map_err(|fault| format!("{fault:?}"));
        let loaded = oracle::found("test runs of the kernel", loaded)?;
        let theirs = match loaded.answer.result {
            Ok(theirs) => theirs,
            Err(errno) if errno.0 == 1 => {
                oracle::skip("test runs of the kernel", errno);
                return None;
            }
            Err(errno) => panic!("{name}: {errno}: {}", loaded.log),
        };
        let ours = |engine| {
            let options = LoadOptions {
                engine,
                ..LoadOptions::default()
            };
            let loaded = LoadedObject::load(&object, &kernel, &options);
            let mut loaded = loaded.unwrap_or_else(|error| panic!("{name}: {error}"));
            let program = loaded.program(name).expect("it is loaded");
            let left_out = program.fallback_reason();
            assert_eq!(program.engine(), engine, "{name}: {left_out:?}");
            loaded
        };
        Some(Both {
            name: name.to_owned(),
            kind: program.kind(),
            ours: ours(NATIVE),
            interp: ours(INTERP),
            checked: ours(Engine::Checked),
            theirs,
            maps: loaded.maps,
        })
    }

    /// Writes an element of a map on both sides.
    fn update(&self, map: &str, key: &[u8], value: &[u8]) {
        let mut maps = self.ours.maps();
        let at = maps.position(|of| of.def.name == map).expect(map);
        for ours in [&self.ours, &self.interp, &self.checked] {
            let ours = ours.map(map).expect(map);
            ours.update(key, value, 0).expect(map);
        }
        let theirs = self.maps.iter().flatten().nth(at).expect(map);
        theirs.update(key, value).expect(map);
    }

    /// Runs both on a packet and compares all that a test run returns.
    fn run(&mut self, packet: &[u8], repeat: u32) {
        let about = format!("{}, {} bytes", self.name, packet.len());
        let context = match self.kind {
            // Data that ends with the packet; nothing else is given.
            ProgramType::Xdp => {
                let mut context = vec![0; 24];
                context[4..8].copy_from_slice(&(packet.len() as u32).to_le_bytes());
                context
            }
            ProgramType::SocketFilter => Vec::new(),
            _ => vec![0; 192],
        };
        let all = [&mut self.ours, &mut self.interp, &mut self.checked];
        let [ours, interp, checked] = all.map(|loaded| {
            let mut program = loaded.program(&self.name).expect("it is loaded");
            let given = (!context.is_empty()).then_some(&context[..]);
            let mut run = program.test_run_with_context(packet, given, repeat);
            if let Ok(run) = &mut run {
                run.duration = Duration::ZERO;
            }
            run
        });
        assert_eq!(
            ours, interp,
            "{about}: native code and threaded interpreter"
        );
        assert_eq!(ours, checked, "{about}: native code and checked engine");
        let (mut data, mut context_out) = (vec![0; 1 << 17], vec![0; context.len()]);
        let request = TestRun {
            context: &context,
            repeat,
            ..TestRun::on(packet)
        };
        let theirs = self.theirs.test_run(&request, &mut data, &mut context_out);
        let (ours, theirs) = match (ours, theirs) {
            (Ok(ours), Ok(theirs)) => (ours, theirs),
            (Err(RunError::Size { errno, .. }), Err(theirs)) => {
                assert_eq!(errno.0, theirs.0, "{about}");
                return;
            }
            (ours, theirs) => panic!("{about}: {ours:?}, the kernel {theirs:?}"),
        };
        assert_eq!(ours.retval, theirs.retval, "{about}");
        assert!(
            ours.data_out == data[..theirs.data_len],
            "{about}: {:02x?}, the kernel {:02x?}",
            ours.data_out,
            &data[..theirs.data_len]
        );
        if !context.is_empty() {
            assert_eq!(ours.ctx_out, context_out, "{about}");
        }
    }

    /// Compares all maps; of values for each CPU the sums.
    fn compare_maps(&self) -> usize {
        let mut compared = 0;
        let theirs = self.maps.iter().flatten();
        let engines = self
            .ours
            .maps()
            .zip(self.interp.maps().zip(self.checked.maps()));
        for ((ours, (interp, checked)), theirs) in engines.zip(theirs) {
            let name = &ours.def.name;
            assert_eq!(
                theirs.info().unwrap().max_entries,
                ours.map.params().max_entries
            );
            // A ring buffer has no elements; `compare_records` reads it.
            if ours.map.kind() == MapKind::Ringbuf {
                continue;
            }
            let size = ours.def.params.value_size as usize;
            let is_percpu = matches!(
                ours.map.kind(),
                MapKind::PercpuArray | MapKind::PercpuHash | MapKind::LruPercpuHash
            );
            let entries = ours.entries().expect(name);
            let of_interp = interp.entries().expect(name);
            assert_eq!(
                entries, of_interp,
                "{name}: native code and threaded interpreter"
            );
            let of_checked = checked.entries().expect(name);
            assert_eq!(
                entries, of_checked,
                "{name}: native code and checked engine"
            );
            let mut keys = 0;
            let mut last: Option<Vec<u8>> = None;
            while let Some(key) = theirs.next_key(last.as_deref()).expect(name) {
                keys += 1;
                last = Some(key);
            }
            assert_eq!(entries.len(), keys, "{}: {name}", self.name);
            for (key, value) in &entries {
                let mut other = vec![0; theirs.value_len()];
                theirs.lookup(key, &mut other).expect(name);
                let (value, other) = match is_percpu {
                    true => (sums(value, size), sums(&other, size)),
                    false => (value.clone(), other),
                };
                let differing = value.iter().zip(&other).enumerate();
                let differing: Vec<_> = differing.filter(|(_, (a, b))| a != b).collect();
                assert!(
                    differing.is_empty(),
                    "{}: {name} {key:?}: {differing:?}",
                    self.name
                );
                compared += 1;
            }
        }
        compared
    }

    /// Reads all records of a ring buffer, which have `len` bytes, and compares so many of
    /// them. Returns the number of records.
    fn compare_records(&self, map: &str, len: usize, compared: usize) -> usize {
        let mut maps = self.ours.maps();
        let at = maps.position(|of| of.def.name == map).expect(map);
        let ring = self
            .ours
            .map(map)
            .expect(map)
            .of_kind::<Ring>()
            .expect("a ring buffer");
        let theirs = self.maps.iter().flatten().nth(at).expect(map);
        let mut theirs = RingBuffer::open(theirs).expect("the kernel maps it");
        for count in 0.. {
            let (ours, theirs) = (ring.consume(), theirs.next_record());
            let (Some(ours), Some(theirs)) = (&ours, &theirs) else {
                assert_eq!(ours, theirs, "{map}: record {count}");
                return count;
            };
            assert_eq!(
                (ours.len(), theirs.len()),
                (len, len),
                "{map}: record {count}"
            );
            assert_eq!(
                ours[..compared],
                theirs[..compared],
                "{map}: record {count}"
            );
        }
        unreachable!("there are fewer records than numbers")
    }
}

/// The sums over all CPUs of the numbers of 4 bytes in a value.
fn sums(value: &[u8], size: usize) -> Vec<u8> {
    let mut sums = vec![0u32; size / 4];
    for of_cpu in value.chunks(size.next_multiple_of(8)) {
        for (sum, bytes) in sums.iter_mut().zip(of_cpu.chunks_exact(4)) {
            *sum += u32::from_le_bytes(bytes.try_into().unwrap());
        }
    }
    sums.iter().flat_map(|sum| sum.to_le_bytes()).collect()
}

#[oracle::test]
fn a_firewall_answers_as_in_the_kernel() {
    let Some(mut both) = Both::load("../../examples/packets/firewall.bpf.o", "firewall") else {
        return;
    };
    both.update("blocked", &[32, 0, 0, 0, 192, 0, 2, 2], &[0; 24]);
    both.update("blocked", &[8, 0, 0, 0, 10, 0, 0, 0], &[0; 24]);
    both.update("open_ports", &80u16.to_le_bytes(), &[0; 8]);
    for packet in packets() {
        both.run(&packet, 1);
    }
    assert!(both.compare_maps() >= 8);
}

#[oracle::test]
fn a_rewriter_answers_as_in_the_kernel() {
    let Some(mut both) = Both::load("../../examples/packets/rewrite.bpf.o", "rewrite") else {
        return;
    };
    let mut target = [0; 16];
    target[..4].copy_from_slice(&[198, 51, 100, 9]);
    both.update("targets", &[192, 0, 2, 2], &target);
    for packet in packets() {
        both.run(&packet, 1);
        both.run(&packet, 3);
    }
    assert!(both.compare_maps() >= 1);
}

#[oracle::test]
fn a_rate_limiter_answers_as_in_the_kernel() {
    let Some(mut both) = Both::load("../../examples/packets/limit.bpf.o", "limit") else {
        return;
    };
    // Values for each CPU count what runs on this one.
    sys::network::pin_to_cpu(0).expect("a thread may choose its CPU");
    for packet in packets() {
        if packet.len() >= 34 {
            both.run(&packet, 1);
        }
    }
    assert!(both.compare_maps() >= 4);
}

#[oracle::test]
fn a_load_balancer_answers_as_in_the_kernel() {
    let Some(mut both) = Both::load("../../examples/packets/balance.bpf.o", "balance") else {
        return;
    };
    for (port, protocol) in [(80, 6), (53, 17), (22, 6)] {
        both.update("services", &[192, 0, 2, 2, port, 0, protocol, 0], &[0; 8]);
    }
    let backend = |id| {
        let mut backend = [0; 32];
        backend[..10].copy_from_slice(&[id, 0, 0, 0, 2, 0, 0, 0, 0, id]);
        backend
    };
    for round in 0..3u8 {
        // A backend comes, another one goes.
        both.update("backends", &[round, 0, 0, 0], &backend(11 + round));
        if round == 2 {
            both.update("backends", &[0; 4], &[0; 32]);
        }
        for packet in packets() {
            both.run(&packet, 1);
        }
        assert!(both.compare_maps() >= 20);
    }
}

#[oracle::test]
fn a_dns_parser_answers_as_in_the_kernel() {
    let Some(mut both) = Both::load("../../examples/packets/dns.bpf.o", "dns") else {
        return;
    };
    let mut blocked = [0; 64];
    blocked[..20].copy_from_slice(b".absent.example.test");
    both.update("blocked", &blocked, &[0; 8]);
    for packet in packets() {
        both.run(&packet, 1);
    }
    // Names that end too early, are too long, or have other lengths in them.
    for packet in packets().iter().filter(|packet| is_dns_query(packet)) {
        for at in 42..packet.len() {
            both.run(&packet[..at], 1);
            for byte in [0, 1, 63, 64, 0xc0, b'Z'] {
                let mut other = packet.clone();
                other[at] = byte;
                both.run(&other, 1);
            }
        }
    }
    assert!(both.compare_maps() >= 10);
}

#[oracle::test]
fn a_flow_monitor_answers_as_in_the_kernel() {
    let Some(mut both) = Both::load("../../examples/packets/flows.bpf.o", "monitor") else {
        return;
    };
    for packet in packets() {
        both.run(&packet, 1);
    }
    assert!(both.compare_maps() >= 10);
    // The last eight bytes are a time.
    let records = both.compare_records("events", 48, 40);
    assert!(records >= 20, "{records}");
}

/// True of IPv4 packets without options to port 53 over UDP.
fn is_dns_query(packet: &[u8]) -> bool {
    packet.len() > 42
        && packet[12..15] == [0x08, 0x00, 0x45]
        && packet[23] == 17
        && packet[36..38] == [0, 53]
}

#[oracle::test]
fn contexts_hold_what_the_kernels_do() {
    for name in ["of_tc", "of_cgroup", "of_socket", "of_xdp"] {
        let Some(mut both) = Both::load("tests/run/context.bpf.o", name) else {
            return;
        };
        for packet in packets() {
            both.run(&packet, 1);
            assert!(both.compare_maps() >= 1);
        }
    }
}

#[oracle::test]
fn sizes_are_refused_as_in_the_kernel() {
    for name in ["of_tc", "of_cgroup", "of_socket", "of_xdp"] {
        let Some(mut both) = Both::load("tests/run/context.bpf.o", name) else {
            return;
        };
        for ethertype in [[0x08, 0x00], [0x86, 0xdd], [0x08, 0x06], [0x00, 0x40]] {
            let mut packet: Vec<u8> = (0..80000u32).map(|at| (at / 7) as u8).collect();
            packet[12..14].copy_from_slice(&ethertype);
            let interesting = [
                0, 1, 13, 14, 15, 16, 33, 34, 35, 53, 54, 55, 60, 1514, 3519, 3520, 3521, 3711,
                3712, 3713, 3776, 3777, 4096, 4097, 9000, 65535, 65536, 69632, 73151, 73152, 73153,
                80000,
            ];
            for len in interesting {
                both.run(&packet[..len], 1);
                both.compare_maps();
            }
        }
    }
}
