//! AF_XDP sockets in an `xskmap`, here and in the running kernel: which sockets the map takes,
//! what programs read of them, what `bpf_redirect_map` returns, and which socket gets the packet.
//! The sockets of the kernel are bound to queues of devices in a network namespace of their own,
//! where the kernel redirects live frames to them.

use crate::support::ENGINES;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::thread;

use beebox::Engine;
use beebox::internal::network::{DeviceQueue, XdpSocket};
use beebox::internal::program::{MapDef, MapKind, MapParams, Program, ProgramType};
use beebox::internal::run::{Errno, LoadOptions, LoadedObject, Redirect, SplitMix};
use beebox::network::{NetDevice, NetSocket, System};
use isa::ebpf::{assemble, encode};
use kernel_client::load::{LoadRequest, load};
use spec::Random;
use sys::bpf::{LoadedProgram, Map, TestRun};
use sys::network::{NetworkInterface, OwnNamespace};

const ENTRIES: u32 = 4;
const STEPS: u32 = 2000;
/// `BPF_F_TEST_XDP_LIVE_FRAMES`: the kernel does what the program decides.
const LIVE_FRAMES: u32 = 2;

/// Offsets in the packet of the key and the flags that the program uses, and of the number of
/// the socket's queue and one, which it writes.
const KEY: usize = 16;
const FLAGS: usize = 20;
const QUEUE: usize = 28;

/// Looks up a key and redirects to it.
fn program() -> Program {
    let text = format!(
        "r2 = *(u32 *)(r1 + 4)\nr6 = *(u32 *)(r1 + 0)\nr3 = r6\nr3 += 32\nr0 = 2\n\
         if r3 > r2 goto out\nr7 = *(u32 *)(r6 + {KEY})\nr8 = *(u64 *)(r6 + {FLAGS})\n\
         *(u32 *)(r10 - 4) = r7\n.8byte 0x5118\n.8byte 0\nr2 = r10\nr2 += -4\ncall 1\nr9 = 0\n\
         if r0 == 0 goto +2\nr9 = *(u32 *)(r0 + 0)\nr9 += 1\n*(u32 *)(r6 + {QUEUE}) = r9\n\
         .8byte 0x5118\n.8byte 0\nr2 = r7\nr3 = r8\ncall 51\nout:\nexit"
    );
    let insns = assemble(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let insns = encode(&insns).expect("an encoding");
    let params = MapParams {
        map_type: MapKind::Xskmap.number(),
        key_size: 4,
        value_size: 4,
        max_entries: ENTRIES,
        ..MapParams::default()
    };
    let maps = vec![Arc::new(MapDef::new("queues", params))];
    let builder = Program::builder(ProgramType::Xdp, insns);
    let built = builder.name("steer").maps(maps).license("GPL").build();
    built.expect("a program")
}

fn loaded(program: &Program, engine: Engine, system: &System) -> LoadedObject {
    let options = LoadOptions {
        engine,
        ..LoadOptions::default()
    };
    let kernel = kernel_data::linux_6_18_minimal();
    let loaded = LoadedObject::from_program(program.clone(), &kernel, &options);
    let mut loaded = loaded.unwrap_or_else(|error| panic!("{error}"));
    loaded.set_system(system.clone());
    let program = loaded.program("steer").expect("the program");
    assert_eq!(program.engine(), engine, "{:?}", program.fallback_reason());
    loaded
}

/// A packet for the program.
fn packet(key: u32, flags: u64) -> Vec<u8> {
    let mut packet = vec![0; 64];
    packet[KEY..KEY + 4].copy_from_slice(&key.to_le_bytes());
    packet[FLAGS..FLAGS + 8].copy_from_slice(&flags.to_le_bytes());
    packet
}

/// The context of a packet that an interface received.
fn context(packet: &[u8], ifindex: u32) -> Vec<u8> {
    let fields = [0, packet.len() as u32, 0, ifindex, 0, 0];
    fields
        .iter()
        .flat_map(|field| field.to_le_bytes())
        .collect()
}

/// The kernel's side.
struct KernelProgram {
    program: LoadedProgram,
    map: Map,
    sockets: Vec<sys::xdp_socket::XdpSocket>,
    udp: UdpSocket,
    _namespace: OwnNamespace,
}

/// The queues that sockets are bound to, by numbers of devices; the first socket is not bound.
const BOUND: [Option<(usize, u16)>; 5] =
    [None, Some((0, 0)), Some((0, 1)), Some((0, 3)), Some((1, 0))];

impl KernelProgram {
    /// The kernel's side and the devices of its namespace.
    fn new(program: &Program) -> Result<(KernelProgram, [NetworkInterface; 2]), String> {
        let namespace = OwnNamespace::enter().map_err(|errno| errno.to_string())?;
        let devices = namespace.create_ethernet_pair();
        let devices = devices.map_err(|errno| errno.to_string())?;
        let sockets = BOUND.iter().map(|bound| {
            let mut socket = sys::xdp_socket::XdpSocket::new()?;
            if let Some((device, queue)) = bound {
                socket.bind(devices[*device].ifindex, u32::from(*queue))?;
            }
            Ok(socket)
        });
        let sockets: Result<_, sys::Errno> = sockets.collect();
        let request = LoadRequest {
            log_level: 1,
            log_size: 1 << 20,
        };
        let mut loaded = load(program, request).map_err(|fault| format!("{fault:?}"))?;
        let theirs = KernelProgram {
            program: loaded
                .answer
                .result
                .map_err(|errno| format!("{errno}: {}", loaded.log))?,
            map: loaded.maps.swap_remove(0).expect("the program uses it"),
            sockets: sockets.map_err(|errno| errno.to_string())?,
            udp: UdpSocket::bind("0.0.0.0:0").map_err(|error| error.to_string())?,
            _namespace: namespace,
        };
        Ok((theirs, devices))
    }

    /// The descriptor of the socket that has a cookie here; one that is closed for others.
    fn descriptor(&self, cookie: u64) -> u32 {
        match self.sockets.get(cookie as usize - 1) {
            Some(socket) => socket.descriptor(),
            None if cookie == UDP => self.udp.as_raw_fd() as u32,
            None => 0x7fff_fff0,
        }
    }

    /// Packets that arrived at each socket.
    fn arrived(&self) -> Vec<u64> {
        let arrived = self.sockets.iter().map(|socket| socket.arrived());
        arrived.map(|count| count.expect("statistics")).collect()
    }
}

/// Cookies here: AF_XDP sockets from 1 on, a UDP socket, none.
const UDP: u64 = BOUND.len() as u64 + 1;
const NONE: u64 = UDP + 1;

/// The system with the same sockets.
fn system(devices: [u32; 2]) -> System {
    let mut system = System::default();
    for (index, name) in devices.into_iter().zip(["bee0", "bee1"]) {
        system
            .network
            .add_device(NetDevice::ethernet(index, name.into()));
    }
    for bound in BOUND {
        let queue = bound.map(|(device, queue)| DeviceQueue {
            device: devices[device],
            queue,
        });
        system
            .network
            .sockets
            .add_xdp(XdpSocket { cookie: 0, queue });
    }
    let any = "0.0.0.0:4000".parse().expect("an address");
    system.network.sockets.add(NetSocket::udp(any));
    system
}

#[oracle::test]
fn maps_of_af_xdp_sockets_do_what_linux_does() {
    // The thread enters a network namespace.
    thread::scope(|scope| scope.spawn(compare).join())
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
}

fn compare() {
    let program = program();
    let theirs = KernelProgram::new(&program);
    let Some((theirs, devices)) = oracle::found("AF_XDP sockets of the kernel", theirs) else {
        return;
    };
    let indices = devices.map(|device| device.ifindex);
    let system = system(indices);
    let mut ours = ENGINES.map(|engine| loaded(&program, engine, &system));
    let mut random = SplitMix::new(0x7a5c);
    let mut pick = |count: u32| random.next_u32() % count;
    let (mut redirected, mut delivered) = (0, 0);
    for step in 0..STEPS {
        let key = pick(ENTRIES + 2);
        let bytes = key.to_le_bytes();
        match pick(4) {
            0 => {
                let cookie = 1 + u64::from(pick(NONE as u32));
                let value = theirs.descriptor(cookie).to_le_bytes();
                let expected = theirs.map.update(&bytes, &value).map_err(|errno| errno.0);
                for ours in &ours {
                    let put = ours.set_socket("queues", &bytes, cookie);
                    assert_eq!(
                        put.map_err(|errno| errno.0),
                        expected,
                        "step {step}: {cookie}"
                    );
                }
            }
            1 => {
                let expected = theirs.map.delete(&bytes).map_err(|errno| errno.0);
                for ours in &ours {
                    let map = ours.map("queues").expect("the map");
                    let deleted = map.delete(&bytes).map_err(|errno| errno.0);
                    assert_eq!(deleted, expected, "step {step}");
                }
            }
            _ => {
                let flags = match pick(4) {
                    0 => 1 << pick(64),
                    flags => u64::from(flags),
                };
                let packet = packet(key, flags);
                let context = context(&packet, [1, indices[0], indices[1]][pick(3) as usize]);
                let run = TestRun {
                    context: &context,
                    ..TestRun::on(&packet)
                };
                let mut data = [0; 128];
                let tested = theirs.program.test_run(&run, &mut data, &mut [0; 24]);
                let tested = tested.expect("a test run");
                let before = theirs.arrived();
                let live = TestRun {
                    flags: LIVE_FRAMES,
                    batch_size: 1,
                    ..run
                };
                let live = theirs.program.test_run(&live, &mut [], &mut []);
                live.expect("a run on live frames");
                let after = theirs.arrived();
                let arrived = after
                    .iter()
                    .zip(&before)
                    .position(|(after, before)| after > before);
                for ours in &mut ours {
                    let mut program = ours.program("steer").expect("the program");
                    let run = program.test_run_with_context(&packet, Some(&context), 1);
                    let run = run.expect("a test run");
                    assert_eq!(run.retval, tested.retval, "step {step}: {key} {flags:#x}");
                    assert_eq!(run.data_out, data[..tested.data_len], "step {step}");
                    let reached = match run.redirect {
                        Some(Redirect::Socket {
                            cookie,
                            is_delivered: true,
                        }) => Some(cookie),
                        Some(Redirect::Socket { .. }) | None => None,
                        other => panic!("step {step}: {other:?}"),
                    };
                    let arrived = arrived.map(|socket| socket as u64 + 1);
                    assert_eq!(reached, arrived, "step {step}: {:?}", run.redirect);
                    redirected += u32::from(run.redirect.is_some());
                    delivered += u32::from(reached.is_some());
                }
            }
        }
    }
    assert!(
        redirected > 300 && delivered > 30,
        "{redirected} redirected, {delivered} delivered"
    );
    // bpf(2) reads no socket of such a map.
    let unreadable = theirs.map.lookup_with(&[0; 4], &mut [0; 4], 0);
    let ours = ours[0]
        .map("queues")
        .expect("the map")
        .lookup(&[0; 4], &mut [0; 4], 0);
    assert_eq!(
        unreadable.map_err(|errno| errno.0),
        ours.map_err(|errno| errno.0)
    );
}

#[oracle::test]
fn packets_reach_sockets_that_are_bound_to_their_queue() {
    let program = program();
    for engine in ENGINES {
        let mut loaded = loaded(&program, engine, &system([2, 3]));
        let at = |key: u32| key.to_le_bytes();
        assert_eq!(loaded.set_socket("queues", &at(0), 2), Ok(()));
        assert_eq!(loaded.set_socket("queues", &at(1), 4), Ok(()));
        assert_eq!(
            loaded.set_socket("queues", &at(1), UDP),
            Err(Errno::EOPNOTSUPP)
        );
        assert_eq!(loaded.set_socket("queues", &at(4), 2), Err(Errno::E2BIG));
        let map = loaded.maps().next().expect("a map");
        assert_eq!(loaded.socket_at(map, &at(1)), Some(4));
        let shown = map.entries().expect("entries");
        let keys: Vec<&[u8]> = shown.iter().map(|(key, _)| &key[..]).collect();
        assert_eq!(keys, [at(0), at(1)]);
        let mut run = |key, flags, ifindex| {
            let packet = packet(key, flags);
            let mut program = loaded.program("steer").expect("the program");
            let run = program.test_run_with_context(&packet, Some(&context(&packet, ifindex)), 1);
            let run = run.expect("a run");
            (run.retval, run.data_out[QUEUE], run.redirect)
        };
        let to = |cookie, is_delivered| {
            Some(Redirect::Socket {
                cookie,
                is_delivered,
            })
        };
        assert_eq!(run(0, 2, 2), (4, 1, to(2, true)));
        assert_eq!(run(0, 2, 3), (4, 1, to(2, false)));
        assert_eq!(run(1, 2, 2), (4, 4, to(4, false)));
        assert_eq!(run(2, 2, 2), (2, 0, None));
        assert_eq!(run(0, 8, 2), (0, 1, None));
    }
}
