//! Runs programs in the running kernel.

use btf::{Btf, Kind, TypeId};
use isa::ebpf::{PseudoCall, PseudoLoad, RawInsn};
use spec::kfuncs::KernelFunction;
use spec::programs::ProgramType;
use sys::Errno;
use sys::bpf::{BtfObject, LogLevel, Map as KernelMap, MapRequest, ProgLoad, TestRun};
use sys::network::pin_to_cpu;

use super::case::{Case, Setup, callbacks, holds_sockets};
use super::compare::{self, Left, attach_type, is_returned};
use super::program_types::TYPES;
use super::sockets;
use crate::registry::fields::{FIELDS, value_with, with_callback};
use kernel_client::arena;

/// `BPF_F_SLEEPABLE`, which programs of type syscall have.
const SLEEPABLE: u32 = 1 << 4;
/// `BPF_F_XDP_HAS_FRAGS`: the program takes packets in several pieces.
const XDP_HAS_FRAGS: u32 = 1 << 5;

/// `BPF_F_TEST_RUN_ON_CPU`.
const RUN_ON_CPU: u32 = 1 << 0;

/// Most bytes that a test run returns.
const MOST_DATA: usize = 128 << 10;

/// Creates a map, whose values have the types of the program if it has some.
fn kernel_map(Setup(params, value): &Setup, types: Option<&BtfObject>) -> Result<KernelMap, Errno> {
    let locked = value_with(FIELDS[0]);
    let own = match (params.value_type, types) {
        (TypeId::VOID, _) | (_, Some(_)) => None,
        (_, None) => Some(BtfObject::load(&locked.blob)?),
    };
    let (btf, [key, value_type]) = match (params.value_type, types, &own) {
        (TypeId::VOID, ..) | (_, None, None) => (None, [TypeId::VOID; 2]),
        (value_type, Some(types), _) => (Some(types), [TYPES.key, value_type]),
        (_, None, Some(own)) => (Some(own), [locked.key, locked.value]),
    };
    let map = arena::create(&MapRequest {
        btf,
        btf_key: key.0,
        btf_value: value_type.0,
        map_type: params.map_type,
        key_size: params.key_size,
        value_size: params.value_size,
        max_entries: params.max_entries,
        flags: params.flags.0,
        extra: arena::extra(params),
        ..MapRequest::default()
    })?;
    if let Some(value) = value {
        map.update(&[0; 4], value)?;
        map.freeze()?;
    }
    if holds_sockets(params) {
        sockets::fill(&map);
    }
    Ok(map)
}

/// Puts BTF ids of the running kernel into calls of kfuncs.
fn put_kfuncs(slots: &mut [RawInsn], types: &Btf<'_>) {
    for slot in slots {
        let is_call = slot.pseudo_call() == Some(PseudoCall::Helper);
        let function = KernelFunction::from_number(slot.imm).filter(|_| is_call);
        if let Some(name) = function.and_then(KernelFunction::name) {
            let func = types.find(Kind::Func, name);
            slot.set_src(PseudoCall::Kfunc.number());
            slot.imm = func.map_or(0, |func| func.id().0 as i32);
        }
    }
}

/// Result of a program in the running kernel.
pub(super) fn theirs(case: &Case, types: &Btf<'_>) -> Result<Left, Errno> {
    let own_types = match case.has_types {
        true => Some(BtfObject::load(&TYPES.blob)?),
        false => None,
    };
    let maps = case.maps.iter();
    let maps = maps.map(|map| kernel_map(map, own_types.as_ref()));
    let maps: Vec<KernelMap> = maps.collect::<Result<_, Errno>>()?;
    let mut slots = case.slots(|is_map, index| {
        let source = if is_map {
            PseudoLoad::MapFd
        } else {
            PseudoLoad::MapValue
        };
        (
            source.number(),
            [maps[index as usize].descriptor() as i32, 0],
        )
    });
    put_kfuncs(&mut slots, types);
    let callbacks = callbacks(&slots, case.has_types);
    let exception_callback = case.exception_callback_at(&slots);
    let (with_callbacks, [main, callback]) = with_callback();
    let own = match own_types {
        None if !callbacks.is_empty() => Some(BtfObject::load(&with_callbacks)?),
        own_types => own_types,
    };
    let [main, callback] = match (case.has_types, exception_callback) {
        (false, _) => [main, callback],
        (true, None) => [TYPES.main, TYPES.callback],
        (true, Some(_)) => [TYPES.throwing_main, TYPES.callback],
    };
    let info = callbacks.iter().map(|start| [*start, callback.0]);
    let last = exception_callback.map(|start| [start as u32, TYPES.exception_callback.0]);
    let func_info: Vec<[u32; 2]> = [[0, main.0]].into_iter().chain(info).chain(last).collect();
    let request = ProgLoad {
        btf: own.as_ref(),
        func_info: match own {
            Some(_) => &func_info,
            None => &[],
        },
        flags: match case.kind {
            ProgramType::Syscall => SLEEPABLE,
            _ if case.has_fragments => XDP_HAS_FRAGS,
            _ => 0,
        },
        expected_attach_type: attach_type(case.kind),
        ..ProgLoad::new(case.kind.number(), &slots)
    };
    let (loaded, _) = match request.load() {
        Ok(loaded) => loaded,
        Err(refused) if refused.errno == Errno::EPERM => return Err(refused.errno),
        Err(refused) => {
            let again = request.with_log(LogLevel::LEVEL1).load();
            let why = again.map_err(|refused| refused.reason().to_owned());
            return Ok(Err(format!("refused: {:?} {why:?}", refused.errno)));
        }
    };
    let has_data = !matches!(
        case.kind,
        ProgramType::SkLookup | ProgramType::Syscall | ProgramType::RawTracepoint
    );
    let (mut data, mut context, mut results) = (Vec::new(), Vec::new(), Vec::new());
    let given = compare::context(case);
    for cpu in case.runs() {
        data.resize(if has_data { MOST_DATA } else { 0 }, 0);
        context.resize(if is_returned(case) { 256 } else { 0 }, 0);
        // Runs of tracepoints go to a CPU by themselves.
        let goes = cpu.filter(|_| case.kind == ProgramType::RawTracepoint);
        if let Some(cpu) = cpu.filter(|_| goes.is_none()) {
            pin_to_cpu(cpu)?;
        }
        let test = TestRun {
            context: &given,
            repeat: u32::from(!matches!(
                case.kind,
                ProgramType::Syscall | ProgramType::RawTracepoint
            )),
            flags: goes.map_or(0, |_| RUN_ON_CPU),
            cpu: goes.unwrap_or(0),
            ..TestRun::on(&case.packet)
        };
        let result = match loaded.test_run(&test, &mut data, &mut context) {
            Ok(result) => result,
            Err(errno) => return Ok(Err(format!("errno {}", errno.0))),
        };
        data.truncate(result.data_len);
        context.truncate(result.context_len);
        results.push(result.retval);
    }
    Ok(Ok((case.result(&results), data, context)))
}
