//! Sockets of a network: what programs read of them in each engine, and maps that hold them.

use crate::support::{ENGINES, NATIVE};
use std::sync::Arc;

use beebox::Engine;
use beebox::internal::network::{SocketState, TcpFigures};
use beebox::internal::program::{MapDef, MapKind, MapParams, Program, ProgramType};
use beebox::internal::run::{Errno, LoadOptions, LoadedObject};
use beebox::network::{NetSocket, System};
use isa::ebpf::{assemble, encode};

/// A server with a connection, and one that is asked for.
fn system() -> System {
    let at = |text: &str| text.parse().expect("an address");
    let mut system = System::default();
    let sockets = &mut system.network.sockets;
    sockets.add(NetSocket {
        mark: 9,
        ..NetSocket::listener(at("192.0.2.2:80"))
    });
    sockets.add(NetSocket {
        tcp: TcpFigures {
            snd_cwnd: 10,
            bytes_acked: 1 << 33,
            ..TcpFigures::NONE
        },
        ..NetSocket::connection(at("192.0.2.2:80"), at("192.0.2.1:5000"))
    });
    sockets.add(NetSocket {
        state: SocketState::NewSynRecv,
        ..NetSocket::connection(at("192.0.2.2:80"), at("192.0.2.1:5001"))
    });
    system
}

/// A tc program that finds the TCP socket of 192.0.2.2:80 and a port of 192.0.2.1 with a helper,
/// leaves the result of these instructions on the pointer in `r7`, and releases the socket.
fn finding(helper: u32, port: u16, then: &str) -> Program {
    let [ours, theirs] = [80u16, port].map(|port| u32::from(port.swap_bytes()));
    let ports = theirs | ours << 16;
    let text = format!(
        "r6 = r1\nr8 = 0\nr1 = 0x020200c0010200c0 ll\n*(u64 *)(r10 - 16) = r1\nr1 = {ports} ll\n\
         *(u64 *)(r10 - 8) = r1\nr1 = r6\nr2 = r10\nr2 += -16\nr3 = 12\nr4 = -1\nr5 = 0\n\
         call {helper}\nif r0 == 0 goto out\nr7 = r0\n{then}\nr1 = r7\ncall 86\nout:\nr0 = r8\nexit"
    );
    program(&text, Vec::new())
}

fn program(text: &str, maps: Vec<Arc<MapDef>>) -> Program {
    let insns = assemble(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let insns = encode(&insns).expect("an encoding");
    let builder = Program::builder(ProgramType::SchedCls, insns);
    let built = builder.name("find").maps(maps).license("GPL").build();
    built.expect("a program")
}

fn loaded(program: &Program, engine: Engine) -> LoadedObject {
    let kernel = kernel_data::linux_6_18();
    let options = LoadOptions {
        engine,
        ..LoadOptions::default()
    };
    let loaded = LoadedObject::from_program(program.clone(), &kernel, &options);
    let mut loaded = loaded.unwrap_or_else(|error| panic!("{error}"));
    loaded.set_system(system());
    loaded
}

/// What a program returns in an engine, and the engine that it ran in.
fn run(program: &Program, engine: Engine) -> (u32, Engine) {
    let mut loaded = loaded(program, engine);
    let mut program = loaded.program("find").expect("the program");
    let output = program.test_run(&[0; 64]).expect("a run");
    (output.retval, program.engine())
}

#[oracle::test]
fn fields_are_read_in_place_by_native_code() {
    let state = "r8 = *(u32 *)(r7 + 72)";
    let cwnd = "r1 = r7\ncall 96\nif r0 == 0 goto +1\nr8 = *(u32 *)(r0 + 0)";
    let acked = "r1 = r7\ncall 96\nif r0 == 0 goto +2\nr8 = *(u64 *)(r0 + 88)\nr8 >>= 32";
    for (helper, port, then, expected) in [
        (84, 5000, state, 1),
        (84, 5000, cwnd, 10),
        (84, 5000, acked, 2),
        // The listener stands for the connection that it is asked for, and for new ones.
        (84, 5001, "r8 = *(u32 *)(r7 + 16)", 9),
        (99, 5001, state, 12),
        (84, 5002, state, 10),
        (85, 5000, state, 0),
    ] {
        let program = finding(helper, port, then);
        for engine in ENGINES {
            assert_eq!(run(&program, engine), (expected, engine), "{port} {then}");
        }
    }
}

#[oracle::test]
fn structures_of_the_kernel_are_read_in_the_checked_engine() {
    let kernel = kernel_data::linux_6_18();
    let types = kernel.btf().expect("types");
    let tcp = types.find(btf::Kind::Struct, "tcp_sock").expect("tcp_sock");
    let btf::Shape::Struct(tcp) = tcp.shape() else {
        panic!("a structure");
    };
    let mut members = tcp.members();
    let cwnd = members.find(|member| types.string(member.name).as_bytes() == b"snd_cwnd");
    let cwnd = cwnd.expect("snd_cwnd").bit_offset / 8;
    // The family and the window: `struct sock_common` has the family at offset 16.
    let then = format!(
        "r1 = r7\ncall 137\nif r0 == 0 goto +4\nr8 = *(u16 *)(r0 + 16)\nr8 <<= 8\n\
         r1 = *(u32 *)(r0 + {cwnd})\nr8 += r1"
    );
    let found = run(&finding(84, 5000, &then), NATIVE);
    assert_eq!(found, (2 << 8 | 10, Engine::Checked));
}

#[oracle::test]
fn maps_hold_sockets_by_their_cookies() {
    let params = MapParams {
        map_type: MapKind::Sockmap.number(),
        key_size: 4,
        value_size: 8,
        max_entries: 2,
        ..MapParams::default()
    };
    let map = Arc::new(MapDef::new("servers", params));
    let text = "*(u32 *)(r10 - 4) = 1\nr8 = 0\n.8byte 0x5118\n.8byte 0\nr2 = r10\nr2 += -4\ncall 1\n\
                if r0 == 0 goto out\nr8 = *(u32 *)(r0 + 16)\nr1 = r0\ncall 86\nout:\nr0 = r8\nexit";
    let program = program(text, vec![map]);
    for engine in ENGINES {
        let mut loaded = loaded(&program, engine);
        let key = |number: u32| number.to_le_bytes();
        assert_eq!(loaded.set_socket("servers", &key(1), 1), Ok(()));
        assert_eq!(loaded.set_socket("servers", &key(2), 1), Err(Errno::E2BIG));
        assert_eq!(loaded.set_socket("servers", &key(0), 7), Err(Errno::EBADF));
        assert_eq!(loaded.set_socket("clients", &key(0), 1), Err(Errno::ENOENT));
        let map = loaded.maps().next().expect("a map");
        assert_eq!(loaded.socket_at(map, &key(1)), Some(1));
        let mut program = loaded.program("find").expect("the program");
        assert_eq!(program.test_run(&[0; 64]).expect("a run").retval, 9);
        assert_eq!(program.engine(), engine);
    }
}

#[oracle::test]
fn structures_are_laid_out_as_linux_declares_them() {
    let kernel = kernel_data::linux_6_18();
    let types = kernel.btf().expect("types");
    let tcp = types.find(btf::Kind::Struct, "bpf_tcp_sock");
    let btf::Shape::Struct(tcp) = tcp.expect("bpf_tcp_sock").shape() else {
        panic!("a structure");
    };
    let members = tcp.members().map(|member| {
        let name = types.string(member.name).to_string_lossy().into_owned();
        let size = types.size_of(member.ty).expect("a size") as usize;
        (name, member.bit_offset as usize / 8, size)
    });
    let ours = TcpFigures::places().map(|(name, at, size)| (name.to_owned(), at, size));
    assert_eq!(members.collect::<Vec<_>>(), ours.collect::<Vec<_>>());
}
