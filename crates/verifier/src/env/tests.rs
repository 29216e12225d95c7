//! A verification of a tiny program that stands before its walk, so that a test runs one check
//! alone.

use std::sync::Arc;

use btf::{Btf, Builder, Encoding, Int, Kind, Member, TypeId};
use isa::ebpf::{Reg, assemble, encode};
use program::{MapDef, MapParams, Program, ProgramBuilder};
use spec::Kernel;
use spec::kernel::{Privileges, Source};
use spec::maps::{MapFlags, MapKind};
use spec::programs::ProgramType;
use spec::registry::{Registry, text};

use super::Env;
use crate::analysis::{self, Analysis};
use crate::domain::Scalar;
use crate::input::Input;
use crate::log::Sink;
use crate::options::Options;
use crate::state::{RegKind, RegState, TypeFlags};
use crate::{Errno, Result, Stop};

/// Prototypes and rules of the tests.
const REGISTRY: &str = "\
proto 1 bpf_map_lookup_elem PTR_TO_MAP_VALUE|PTR_MAYBE_NULL: pkt CONST_MAP_PTR PTR_TO_MAP_KEY
proto 8 bpf_get_smp_processor_id INTEGER: fastcall
proto 181 bpf_loop INTEGER: - ANYTHING PTR_TO_FUNC PTR_TO_STACK|PTR_MAYBE_NULL ANYTHING
helpers 0 1 2
layout fields
field 0-0/1 4 - - PTR_TO_PACKET 4
field 12-12/1 4 4 - SCALAR_VALUE 4
program xdp * helpers=0 layout=0
socket PTR_TO_SOCKET 0-0/1 4 4 - SCALAR_VALUE 4
map array helpers=1 direct
map prog_array helpers=12
";

/// What a verification is given.
pub(crate) struct Given {
    program: Program,
    kernel: Kernel,
    registry: Registry,
    options: Options,
}

/// An array of 16 bytes and two entries, which every program of the tests has as its first map.
fn array() -> MapDef {
    let params = MapParams {
        map_type: MapKind::Array.number(),
        key_size: 4,
        value_size: 16,
        max_entries: 2,
        flags: MapFlags::default(),
        extra: 0,
        numa_node: 0,
        key_type: TypeId::VOID,
        value_type: TypeId::VOID,
    };
    MapDef::new("array", params)
}

impl Given {
    /// An XDP program of these instructions, for a caller with all privileges.
    pub(crate) fn program(text: &str) -> Given {
        let insns = encode(&assemble(text).expect("instructions")).expect("encoding");
        let program = ProgramBuilder::new(ProgramType::Xdp, insns)
            .maps([Arc::new(array())])
            .license("GPL");
        Given {
            program: program.build().expect("a program"),
            kernel: Kernel::new("test"),
            registry: text::parse(REGISTRY).expect("a registry"),
            options: Options::default(),
        }
    }

    /// The same for a caller without privileges.
    pub(crate) fn unprivileged(mut self) -> Given {
        let privileges = Privileges::NONE;
        self.kernel = self.kernel.with_privileges(privileges, Source::Assumed);
        self
    }

    /// With a kernel whose BTF has one type: `struct pair` of two `u64`, id 2.
    pub(crate) fn with_types(mut self) -> Given {
        self.kernel = self.kernel.with_btf(pair(), Source::Assumed);
        self
    }

    /// Runs a check that stands at the first instruction.
    pub(crate) fn check<T>(&self, check: impl FnOnce(&mut Env<'_>) -> T) -> T {
        let mut input = Input::new(&self.program, &self.kernel, &self.registry, &self.options);
        let mut sink = Sink::new(1);
        let mut analysis = Analysis::default();
        analysis::find_subprogs(&input, &mut sink, &mut analysis).expect("subprograms");
        analysis::check_cfg(&input, &mut sink, &mut analysis).expect("control flow");
        analysis::finish(&mut input, &mut sink, &mut analysis).expect("an analysis");
        check(&mut Env::new(&input, &analysis, sink))
    }
}

fn pair() -> Arc<Btf<'static>> {
    let mut types = Builder::new();
    let name = types.string("u64");
    let int = Int {
        size: 8,
        bits: 64,
        offset: 0,
        encoding: Encoding::default(),
    };
    let ty = types.int(name, int);
    let names = ["a", "b"].map(|name| types.string(name));
    let member = |(name, bit_offset)| Member {
        name,
        ty,
        bit_offset,
        bits: 0,
    };
    let members: Vec<Member> = names.into_iter().zip([0, 64]).map(member).collect();
    let name = types.string("pair");
    types.composite(Kind::Struct, name, 16, &members);
    Arc::new(Btf::parse(types.finish()).expect("types"))
}

impl Env<'_> {
    /// Puts a value into a register.
    pub(crate) fn set(&mut self, reg: Reg, value: RegState) {
        *self.reg_mut(reg) = value;
    }

    /// Makes a register a plain pointer.
    pub(crate) fn point(&mut self, reg: Reg, kind: RegKind) {
        self.set(reg, RegState::pointer(kind, TypeFlags::NONE));
    }

    /// Makes a register a number from 0 to `greatest`.
    pub(crate) fn bound(&mut self, reg: Reg, greatest: u64) {
        let mut value = RegState::UNKNOWN;
        value.num = Scalar::up_to(greatest, self.input.rules);
        self.set(reg, value);
    }

    /// The log so far.
    pub(crate) fn text(&mut self) -> String {
        std::mem::take(&mut self.sink).into_text()
    }
}

/// The error number and the words of a refusal.
pub(crate) fn refusal<T>(result: Result<T>) -> (Errno, String) {
    match result.err() {
        Some(Stop::Refused(refusal)) => (refusal.errno, refusal.message()),
        Some(Stop::Unsupported(what)) => panic!("unsupported: {what}"),
        Some(Stop::Bug(what)) => panic!("bug: {what}"),
        None => panic!("no refusal"),
    }
}
