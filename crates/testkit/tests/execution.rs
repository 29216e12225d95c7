//! Verified programs as native code, in the checked engine and in the running kernel: equal
//! results, packets, contexts and maps.

use std::fmt::Write as _;
use std::sync::Arc;

use beebox_testkit::ebpf::Choices;
use beebox_testkit::verifier::{Target, assembled, generated_program};
use interp::checked::{Calls, CheckedContext, CheckedProgram, Entry, Limits, Memory, Permission};
use jit::memory::Pool;
use jit::{Features, Native, Options};
use kernel::maps::{Host, Map, ValueLayout};
use kernel::programs::{PacketContext, SKB, XDP};
use lower::{ContextKind, Lowered, Unfit};
use program::{MapDef, MapParams, Program};
use spec::maps::{MapFlags, MapKind};
use spec::programs::ProgramType;
use spec::registry::Registry;
use spec::{Kernel, SplitMix};
use sys::bpf::{MapRequest, ProgLoad, TestRun};
use verifier::Proof;
use vm::{DirectContext, MapHandle, RunGuard, World};

const CPU: u32 = 1;

/// What a run leaves behind beside maps: `r0`, packet, context without packet bounds.
#[derive(Debug, PartialEq, Eq)]
struct Left {
    r0: u64,
    packet: Vec<u8>,
    context: Vec<u8>,
}

fn kernel() -> (Kernel, Registry) {
    let kernel = kernel_data::linux_6_18();
    let types = kernel.btf().expect("the built-in kernel has types");
    let registry = kernel_data::linux_6_18_registry(types);
    (kernel, registry)
}

fn maps_of(program: &Program) -> Vec<Arc<Map>> {
    let create = |def: &Arc<MapDef>| {
        let value = ValueLayout::plain(def.params.value_size as usize);
        Arc::new(Map::create(&def.params, value, &Host { cpus: 4, seed: 1 }).unwrap())
    };
    program.maps().iter().map(create).collect()
}

fn context_of(program: &Program) -> (ContextKind, PacketContext) {
    match program.kind() {
        ProgramType::Xdp => (ContextKind::Xdp, XDP),
        _ => (ContextKind::SkBuff, SKB),
    }
}

/// The context without the packet's bounds, which are addresses.
fn without_bounds(kind: ContextKind, context: &[u8]) -> Vec<u8> {
    let mut context = context.to_vec();
    let bounds: &[usize] = match kind {
        ContextKind::Xdp => &[0, 4, 8],
        ContextKind::SkBuff => &[76, 80, 140],
    };
    for &at in bounds {
        context[at..at + 4].fill(0);
    }
    context
}

/// A verified program as native code, with its maps.
struct Ours {
    native: Native,
    checked: CheckedProgram,
    kind: ContextKind,
    context: PacketContext,
    native_maps: Vec<Arc<Map>>,
    checked_maps: Vec<Arc<Map>>,
}

impl Ours {
    fn new(proof: &Proof) -> Result<Ours, Unfit> {
        let program = proof.program();
        let (native_maps, checked_maps) = (maps_of(program), maps_of(program));
        let handles: Vec<Option<MapHandle>> = native_maps
            .iter()
            .map(|map| Some(MapHandle::new(map.clone())))
            .collect();
        let lowered = Lowered::from_verified(proof, &handles, ::kernel::helpers::find_call)?;
        let options = Options {
            features: Features::detect(),
            ..Options::default()
        };
        let (kind, context) = context_of(program);
        Ok(Ours {
            native: Native::compile(&lowered, &options, &Pool::new()).unwrap(),
            checked: CheckedProgram::new(program.decode()),
            kind,
            context,
            native_maps,
            checked_maps,
        })
    }

    fn run_native(&self, packet: &[u8], context: &[u8], seed: u64) -> Left {
        let mut packet = packet.to_vec();
        let mut context = DirectContext::new(context);
        let mut random = SplitMix::new(seed);
        let mut clock = || seed;
        let world = World::new(&mut random, &mut clock, CPU);
        let program = self.native.on_context(self.kind).unwrap();
        let r0 = program.run(&mut packet, &mut context, &RunGuard::new(), world);
        Left {
            r0,
            packet,
            context: without_bounds(self.kind, &context.structure()[..self.context.size]),
        }
    }

    fn run_checked(&self, packet: &[u8], context: &[u8], seed: u64) -> Left {
        let guard = RunGuard::new();
        let (mut packet, mut context) = (packet.to_vec(), context.to_vec());
        let len = context[..4].to_vec();
        let packet_len = packet.len() as u32;
        let mut memory = Memory::new();
        let data = memory.add_packet(&mut packet).unwrap();
        let address = memory.address(data) as u32;
        self.context
            .set_packet(&mut context, address, packet_len, packet_len);
        if self.kind == ContextKind::SkBuff {
            context[..4].copy_from_slice(&len);
        }
        let region = memory.add_context(&mut context).unwrap();
        for map in &self.checked_maps {
            (memory.add_map("", &**map, &guard, Permission::ReadWrite)).unwrap();
        }
        let arguments = [memory.address(region), 0, 0, 0, 0];
        let mut random = SplitMix::new(seed);
        let mut calls = Calls::resolved(|number, arguments, memory| {
            let mut clock = || seed;
            let mut world = World::new(&mut random, &mut clock, CPU);
            let helper = ::kernel::helpers::find(number)?;
            Some(helper(arguments, memory, &mut world))
        });
        let cx = CheckedContext {
            memory: &mut memory,
            calls: &mut calls,
            packet: None,
        };
        let finish = self
            .checked
            .run(cx, Entry { arguments }, &Limits::default());
        let r0 = finish.outcome.unwrap_or_else(|trap| panic!("{trap}"));
        drop(memory);
        Left {
            r0,
            packet,
            context: without_bounds(self.kind, &context),
        }
    }

    /// Runs both; the same must be left behind.
    fn run(&self, packet: &[u8], context: &[u8], seed: u64, text: &str) -> Left {
        let native = self.run_native(packet, context, seed);
        let checked = self.run_checked(packet, context, seed);
        assert_eq!(native, checked, "{text}\n{packet:02x?}");
        native
    }
}

/// Values of a map by keys of the programs of this test; `None` where it has none.
fn contents(
    def: &MapDef,
    mut lookup: impl FnMut(&[u8], &mut [u8]) -> bool,
) -> Vec<Option<Vec<u8>>> {
    let prefixes: &[u32] = match def.kind() {
        Some(MapKind::LpmTrie) => &[0, 8, 32],
        _ => &[u32::MAX],
    };
    let mut found = Vec::new();
    for &prefix in prefixes {
        for number in 0..8u32 {
            let mut key = number.to_ne_bytes().to_vec();
            if prefix != u32::MAX {
                key.splice(0..0, prefix.to_ne_bytes());
            }
            let mut value = vec![0; def.params.value_size as usize];
            found.push(lookup(&key, &mut value).then_some(value));
        }
    }
    found
}

/// Array, hash, LRU hash and LPM trie, with values of 16 bytes.
fn declared() -> Vec<Arc<MapDef>> {
    let map = |kind: MapKind, key_size, max_entries, flags| {
        let params = MapParams {
            map_type: kind.number(),
            key_size,
            value_size: 16,
            max_entries,
            flags: MapFlags(flags),
            ..MapParams::default()
        };
        Arc::new(MapDef::new("m", params))
    };
    vec![
        map(MapKind::Array, 4, 5, 0),
        map(MapKind::Hash, 4, 6, 0),
        map(MapKind::LruHash, 4, 1024, 0),
        map(MapKind::LpmTrie, 8, 64, 1),
    ]
}

/// A program that works on maps, packet, context and stack, and mixes every result into
/// `r9`, which ends in the packet and is returned.
fn map_program(choices: &mut Choices<'_>, kind: ProgramType) -> String {
    let (data, end) = match kind {
        ProgramType::Xdp => (0, 4),
        _ => (76, 80),
    };
    let mut text = format!(
        "r6 = r1\nr9 = 0\nr7 = *(u32 *)(r6 + {data})\nr1 = *(u32 *)(r6 + {end})\nr2 = r7\n\
         r2 += 40\nif r2 > r1 goto short\n"
    );
    for slot in 1..=4 {
        let _ = writeln!(text, "*(u64 *)(r10 - {}) = 0", 8 * slot);
    }
    text += "r1 = r6\nr2 = 3\ncall length\nr9 = r0\n";
    for number in 0..3 + choices.below(12) {
        let map = choices.below(4);
        let byte = 22 + choices.below(18);
        let _ = writeln!(text, "r1 = *(u8 *)(r7 + {byte})\nr1 &= 7");
        let prefix = choices.pick(&[0, 8, 32]);
        let _ = match map {
            3 => writeln!(text, "*(u32 *)(r10 - 8) = {prefix}\n*(u32 *)(r10 - 4) = r1"),
            _ => writeln!(text, "*(u32 *)(r10 - 8) = r1"),
        };
        let pointer = 0x5118u64 | u64::from(map) << 32;
        let arguments = format!(".8byte {pointer:#x}\n.8byte 0\nr2 = r10\nr2 += -8\n");
        let mix = "r9 *= 31\nr9 += r0\n";
        let _ = match choices.below(7) {
            0 | 1 => write!(
                text,
                "{arguments}call 1\nif r0 == 0 goto null{number}\nr1 = *(u64 *)(r0 + 8)\n\
                 r9 *= 31\nr9 += r1\nr9 += 1\nlock *(u64 *)(r0 + 8) += r9\n\
                 *(u32 *)(r0 + 4) = {number}\nnull{number}:\n"
            ),
            2 | 3 => {
                let flags = choices.pick(&[0, 0, 1, 2, 9]);
                write!(
                    text,
                    "*(u64 *)(r10 - 24) = r9\n{arguments}r3 = r10\nr3 += -24\nr4 = {flags}\n\
                     call 2\n{mix}"
                )
            }
            4 => write!(text, "{arguments}call 3\n{mix}"),
            5 => write!(
                text,
                "r1 = r10\nr1 += -24\nr2 = 16\nr3 = r10\nr3 += -8\nr4 = 4\nr5 = r9\n\
                 call 28\n{mix}"
            ),
            _ if kind == ProgramType::SchedCls => write!(
                text,
                "r1 = *(u8 *)(r6 + 9)\nr9 += r1\n*(u32 *)(r6 + 8) = r9\n\
                 r1 = *(u32 *)(r6 + 8)\n*(u32 *)(r6 + 52) = r1\nr1 = r6\nr2 = r9\n\
                 call length\n{mix}"
            ),
            _ => write!(text, "r1 = r6\nr2 = r9\ncall length\n{mix}"),
        };
    }
    let _ = write!(
        text,
        "*(u64 *)(r7 + 14) = r9\nr0 = r9\nr0 &= 0x7fff\nexit\nshort:\nr0 = 2\nexit\n\
         length:\nr3 = *(u32 *)(r1 + {data})\nr0 = *(u32 *)(r1 + {end})\nr0 -= r3\n\
         *(u64 *)(r10 - 8) = r2\nr1 = *(u32 *)(r10 - 8)\nr0 *= r1\nexit\n"
    );
    text
}

#[test]
fn programs_with_maps_run_as_in_linux() {
    const WHAT: &str = "native code of verified programs and the running kernel";
    let (kernel, registry) = kernel();
    let mut compared = 0;
    for seed in 0..150 {
        let mut choices = Choices::from_seed(seed);
        let kind = choices.pick(&[ProgramType::Xdp, ProgramType::SchedCls]);
        let text = map_program(&mut choices, kind);
        let slots = assembled(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let program = Program::builder(kind, slots)
            .maps(declared())
            .license("GPL")
            .build()
            .unwrap();
        let proof = Proof::of(&program, &kernel, &registry)
            .unwrap_or_else(|refused| panic!("{:?}\n{text}", refused.verdict));
        let ours = Ours::new(&proof).unwrap_or_else(|unfit| panic!("{unfit}\n{text}"));

        let request = |def: &Arc<MapDef>| {
            sys::bpf::Map::create(&MapRequest {
                map_type: def.params.map_type,
                name: "m",
                key_size: def.params.key_size,
                value_size: def.params.value_size,
                max_entries: def.params.max_entries,
                flags: def.params.flags.0,
                ..MapRequest::default()
            })
        };
        let theirs: Result<Vec<_>, _> = program.maps().iter().map(request).collect();
        let theirs = oracle::found(WHAT, theirs);
        let loaded = theirs.as_ref().and_then(|maps| {
            let slots = program.insns_with_map_fds(|map| maps[map.0 as usize].descriptor() as i32);
            let request = ProgLoad::new(kind.number(), &slots);
            let (loaded, _) = oracle::found(WHAT, request.load().map_err(|refused| refused.errno))?;
            Some(loaded)
        });
        for run in 0..6 {
            let len = 60 + choices.below(100) as usize;
            let packet: Vec<u8> = (0..len).map(|_| choices.below(256) as u8).collect();
            let mut context = vec![0; ours.context.size];
            if kind == ProgramType::SchedCls {
                context[..4].copy_from_slice(&(len as u32).to_le_bytes());
            }
            let left = ours.run(&packet, &context, run, &text);
            if let Some(loaded) = &loaded {
                let mut data = vec![0; len];
                let result = loaded.test_run(&TestRun::on(&packet), &mut data, &mut []);
                assert_eq!(result.unwrap().retval, left.r0 as u32, "{text}");
                assert_eq!(data, left.packet, "{text}");
                compared += 1;
            }
        }
        for (index, def) in program.maps().iter().enumerate() {
            let native = contents(def, |key, value| {
                ours.native_maps[index].lookup(key, value, 0).is_ok()
            });
            let checked = contents(def, |key, value| {
                ours.checked_maps[index].lookup(key, value, 0).is_ok()
            });
            assert_eq!(native, checked, "map {index}\n{text}");
            if let Some(maps) = &theirs {
                let theirs = contents(def, |key, value| maps[index].lookup(key, value).is_ok());
                assert_eq!(native, theirs, "map {index}\n{text}");
            }
        }
    }
    assert!(compared == 900 || compared == 0, "{compared}");
}

#[test]
fn a_program_runs_only_as_what_it_was_verified_for() {
    let (kernel, registry) = kernel();
    let build = |kind, text: &str| {
        let slots = assembled(text).unwrap();
        Program::builder(kind, slots)
            .license("GPL")
            .build()
            .unwrap()
    };
    let program = build(ProgramType::Xdp, "r0 = 2\nexit");
    let ours = Ours::new(&Proof::of(&program, &kernel, &registry).unwrap()).unwrap();
    assert!(ours.native.on_context(ContextKind::SkBuff).is_none());
    assert!(ours.native.on_memory().is_none() && ours.native.on_packets().is_none());
    let refused = build(ProgramType::Xdp, "r0 = *(u64 *)(r1 + 0)\nexit");
    assert!(Proof::of(&refused, &kernel, &registry).is_err());
    let unfit = build(ProgramType::RawTracepoint, "r0 = 0\nexit");
    let proof = Proof::of(&unfit, &kernel, &registry).unwrap();
    let lowered = Lowered::from_verified(&proof, &[], ::kernel::helpers::find_call);
    assert!(matches!(lowered, Err(Unfit::ProgramType(_))));
    let uses_map = assembled(".8byte 0x5118\n.8byte 0\nr0 = 2\nexit").unwrap();
    let with_maps = generated_program(Target::Xdp, &uses_map);
    let proof = Proof::of(&with_maps.unwrap(), &kernel, &registry).unwrap();
    let lowered = Lowered::from_verified(&proof, &[], ::kernel::helpers::find_call);
    assert!(matches!(lowered, Err(Unfit::Map(0))));
}
