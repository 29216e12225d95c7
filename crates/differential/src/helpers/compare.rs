//! Runs programs here and in the running kernel, and compares what they leave.

use std::borrow::Cow;
use std::cell::Cell;
use std::sync::Arc;
use std::thread;

use spec::programs::ProgramType;
use sys::Errno;
use sys::network::OwnNamespace;
use vm::{SKB, System};

use super::case::Case;
use super::checked::{OurSide, ours, own_system};
use super::in_kernel::theirs;
use super::{Family, native};
use crate::direct::DirectEngine;
use crate::execution::Setting;
use testkit::ebpf::Choices;

/// Programs that were run on both sides.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    /// Programs.
    pub programs: u64,
    /// Calls of helpers in them.
    pub calls: u64,
    /// Programs that return another value than 0 in the kernel.
    pub answers: u64,
    /// Differences, as text.
    pub differences: Vec<String>,
}

/// Result of a test run: the low half of the result, data and context; or why it does not.
pub(super) type Left = Result<(u32, Vec<u8>, Vec<u8>), String>;

/// Programs in one network of a family that has its own.
const PROGRAMS_PER_NETWORK: u64 = 150;

/// Runs so many programs of a family here and in the kernel, in network namespaces of their
/// own.
///
/// # Errors
/// The reason why the kernel cannot be asked.
pub fn compare(family: Family, seed: u64, programs: u64) -> Result<Comparison, Errno> {
    run_in_networks(None, family, seed, programs)
}

/// As [`compare`], with native code of the programs, verified for a kernel.
///
/// # Errors
/// As [`compare`].
pub fn compare_engines(
    setting: Setting<'_>,
    family: Family,
    seed: u64,
    programs: u64,
) -> Result<Comparison, Errno> {
    run_in_networks(Some(setting), family, seed, programs)
}

/// The results of a tc program of this text here and in the kernel, or why there are none. It has
/// the types of `program_types.rs`, a map whose value holds objects (the first) and one
/// whose values have resilient locks.
///
/// # Errors
/// As [`compare`].
pub fn compare_text(text: &str) -> Result<[Result<u32, String>; 2], Errno> {
    let run = || {
        let _namespace = OwnNamespace::enter()?;
        let types = Arc::new(sys::kernel::btf().map_err(|_| Errno::EPERM)?);
        let case = Case::with_all_maps(text);
        let side = OurSide {
            system: &own_system(),
            types: &types,
            verifier: None,
        };
        let ours = ours(&case, &side, &Cell::new(0));
        let theirs = theirs(&case, &types)?;
        let result = |left: Left| left.map(|(retval, ..)| retval);
        Ok([result(ours), result(theirs)])
    };
    thread::scope(|scope| match scope.spawn(run).join() {
        Ok(result) => result,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}

fn run_in_networks(
    setting: Option<Setting<'_>>,
    family: Family,
    seed: u64,
    programs: u64,
) -> Result<Comparison, Errno> {
    let most = match family.network {
        Some(_) => PROGRAMS_PER_NETWORK,
        None => programs.max(1),
    };
    let mut all = Comparison::default();
    for (index, first) in (0..programs).step_by(most as usize).enumerate() {
        let count = most.min(programs - first);
        let seed = seed.wrapping_add(0x1_0000 * index as u64);
        let run = move || in_namespace(setting, family, seed, count);
        let compared = thread::scope(|scope| match scope.spawn(run).join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        })?;
        all.programs += compared.programs;
        all.calls += compared.calls;
        all.answers += compared.answers;
        all.differences.extend(compared.differences);
    }
    Ok(all)
}

/// Runs programs in one network namespace, which the thread enters.
fn in_namespace(
    setting: Option<Setting<'_>>,
    family: Family,
    seed: u64,
    programs: u64,
) -> Result<Comparison, Errno> {
    let _namespace = OwnNamespace::enter()?;
    let types = Arc::new(sys::kernel::btf().map_err(|_| Errno::EPERM)?);
    let mut choices = Choices::from_seed(seed);
    let mut system = own_system();
    if let Some(make_network) = family.network {
        system = make_network(&mut choices, system)?;
    }
    let side = OurSide {
        system: &system,
        types: &types,
        verifier: setting.map(native::verifier),
    };
    let mut comparison = Comparison::default();
    for _ in 0..programs {
        let case = (family.make)(&mut choices);
        let calls = Cell::new(0);
        let ours = ours(&case, &side, &calls);
        let theirs = theirs(&case, &types)?;
        comparison.programs += 1;
        comparison.calls += calls.get();
        comparison.answers += u64::from(matches!(theirs, Ok((1.., ..))));
        if let Some(setting) = setting {
            for engine in DirectEngine::ALL {
                let direct = native::left(*engine, setting, &case, &side);
                if direct.as_ref().is_some_and(|direct| *direct != ours) {
                    comparison.differences.push(format!(
                        "{family:?}: {engine} {direct:x?}\nchecked {ours:x?}\n{:?}\n{}",
                        case.kind, case.text
                    ));
                }
            }
        }
        if ours != theirs {
            comparison.differences.push(format!(
                "{family:?}: here {ours:x?}\nin the kernel {theirs:x?}\n{:?}\n{}\n{:?}\n{:02x?}\n{:02x?}{}",
                case.kind, case.text, case.maps, case.packet, case.context, socket_list(&system)
            ));
        }
    }
    Ok(comparison)
}

/// The sockets of a system, a line for each.
fn socket_list(system: &System) -> String {
    let list = system.network.sockets.list().iter();
    list.map(|socket| {
        format!(
            "\n{:?} {:?} {} {} only IPv6: {} device {} mark {} group {:?} cpu {:?}",
            socket.protocol,
            socket.state,
            socket.local,
            socket.remote,
            socket.is_ipv6_only,
            socket.device,
            socket.mark,
            socket.group,
            socket.incoming_cpu
        )
    })
    .collect()
}

/// The context that both sides get: zeros where it is returned and none is given, as the kernel
/// takes for it.
pub(super) fn context(case: &Case) -> Cow<'_, [u8]> {
    match is_returned(case) && case.context.is_empty() {
        true => Cow::Owned(vec![0; SKB.size]),
        false => Cow::Borrowed(&case.context),
    }
}

/// True if a test run returns the context.
pub(super) fn is_returned(case: &Case) -> bool {
    use ProgramType::{FlowDissector, Netfilter, RawTracepoint, SkLookup, Syscall, Xdp};
    match case.kind {
        Netfilter | RawTracepoint | Syscall => false,
        Xdp | FlowDissector | SkLookup => !case.context.is_empty(),
        _ => true,
    }
}

/// The attach type that loading a type demands.
pub(super) fn attach_type(kind: ProgramType) -> u32 {
    const SK_LOOKUP: u32 = 36;
    const NETFILTER: u32 = 45;
    match kind {
        ProgramType::SkLookup => SK_LOOKUP,
        ProgramType::Netfilter => NETFILTER,
        _ => 0,
    }
}
