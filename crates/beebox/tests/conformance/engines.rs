//! The engines that every case runs on.

use beebox::internal::raw::{
    Calls, CheckedContext, CheckedProgram, Entry, Limits, Memory, SplitMix, Trap,
};
use interp::ThreadedProgram;
use isa::ebpf::Insn;
use jit::memory::Pool;
use jit::{Native, Options};
use lower::{Lowered, Malformed, MemoryProgram};
use packet::{Metadata, Packet};
use vm::{Machine, Outcome, Unchecked};

/// How a run ended.
pub(crate) enum Answer {
    Returned(u64),
    Trapped(Trap),
    /// The engine does not take the program.
    Refused,
}

/// What a program runs on.
pub(crate) struct Engine {
    pub(crate) name: &'static str,
    /// Whether any program may run on it; if not, only those that do no wrong.
    pub(crate) is_checked: bool,
    run: fn(&Setting<'_>, &mut [u8]) -> Answer,
}

/// What a program runs with, beside memory.
pub(crate) struct Setting<'a> {
    pub(crate) program: &'a [Insn],
    pub(crate) packet: Option<&'a [u8]>,
    /// Whether `gotox` is an instruction.
    pub(crate) indirect_jumps: bool,
}

/// All engines. To add one, add a line.
pub(crate) const ENGINES: &[Engine] = &[
    Engine {
        name: "checked",
        is_checked: true,
        run: run_checked,
    },
    Engine {
        name: "interp",
        is_checked: false,
        run: run_interp,
    },
    Engine {
        name: "native",
        is_checked: false,
        run: run_jit,
    },
];

impl Engine {
    /// Runs a program with memory; `r1` is its address and `r2` its length.
    ///
    /// # Safety
    /// On an engine that does not check, the program does nothing wrong.
    pub(crate) unsafe fn run(&self, setting: &Setting<'_>, memory: &mut [u8]) -> Answer {
        (self.run)(setting, memory)
    }
}

fn run_checked(setting: &Setting<'_>, bytes: &mut [u8]) -> Answer {
    let mut memory = Memory::new();
    let len = bytes.len() as u64;
    let region = memory.add("memory", bytes).expect("there is room");
    let arguments = [memory.address(region), len, 0, 0, 0];
    let mut calls = Calls::basic(SplitMix::new(0), || 1);
    let packet = setting
        .packet
        .map(|data| Packet::whole(data, &Metadata::UNKNOWN));
    let cx = CheckedContext {
        memory: &mut memory,
        calls: &mut calls,
        packet: packet.as_ref(),
    };
    let limits = Limits {
        indirect_jumps: setting.indirect_jumps,
        ..Limits::default()
    };
    let program = CheckedProgram::new(setting.program.to_vec());
    match program.run(cx, Entry { arguments }, &limits).outcome {
        Ok(value) => Answer::Returned(value),
        Err(trap) => Answer::Trapped(trap),
    }
}

fn run_interp(setting: &Setting<'_>, memory: &mut [u8]) -> Answer {
    let Ok(lowered) = lower(setting) else {
        return Answer::Refused;
    };
    let Ok(code) = ThreadedProgram::compile(&lowered) else {
        return Answer::Refused;
    };
    let (mut machine, mut random) = (Machine::new(), SplitMix::new(0));
    answer(match setting.packet {
        None => code.run(&mut machine, memory, &mut random),
        Some(data) => {
            let packet = Packet::whole(data, &Metadata::UNKNOWN);
            code.run_with_packet(&mut machine, memory, &packet, &mut random)
        }
    })
}

fn run_jit(setting: &Setting<'_>, memory: &mut [u8]) -> Answer {
    let Ok(lowered) = lower(setting) else {
        return Answer::Refused;
    };
    let pool = Pool::new();
    let native = Native::compile(&lowered, &Options::default(), &pool).expect("native code");
    let (mut machine, mut random) = (Machine::new(), SplitMix::new(0));
    answer(match setting.packet {
        None => native.run(&mut machine, memory, &mut random),
        Some(data) => {
            let packet = Packet::whole(data, &Metadata::UNKNOWN);
            native.run_with_packet(&mut machine, memory, &packet, &mut random, None)
        }
    })
}

fn lower(setting: &Setting<'_>) -> Result<Lowered<MemoryProgram>, Malformed> {
    // SAFETY: who runs a program on an engine that does not check upholds that it
    // does nothing wrong, see `Engine::run`.
    let trusted = unsafe { Unchecked::assume_safe(setting.program.to_vec()) };
    Lowered::from_unchecked(trusted)
}

fn answer(outcome: Outcome) -> Answer {
    match outcome {
        Outcome::Returned(value) => Answer::Returned(value),
        Outcome::BudgetExhausted | Outcome::DeadlinePassed => panic!("there is no limit"),
    }
}
