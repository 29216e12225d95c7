//! Capabilities that helpers need, asked by a thread that gave up capabilities.
//!
//! A program type can be asked about as far as the kernel loads it without them: those of
//! the network without CAP_PERFMON, socket filters and cgroup_skb without any while
//! `kernel.unprivileged_bpf_disabled` is 0. No program can tell what the other types need.

use spec::kernel::Privileges;
use spec::programs::ProgramType;
use spec::registry::Capability;
use sys::Errno;
use sys::bpf::{BtfObject, Map};
use sys::capabilities::{self, drop_effective};

use super::fields::plain_value;
use super::map_requests::for_each;
use super::query::{KernelQuery, Subject};
use super::source;
use kernel_client::unprivileged::Caller;

/// Without which capabilities programs of a kind are loaded.
#[derive(Clone, Copy, Debug)]
pub struct Privilege {
    subject: Subject,
    without_perfmon: bool,
    without_any: bool,
}

impl Privilege {
    /// Asks about a kind of program.
    pub fn of(kernel_query: &mut KernelQuery, subject: &Subject) -> Privilege {
        let without_perfmon = without(PERFMON, || kernel_query.can_ask(subject));
        // Every other type is refused before its program is looked at.
        let may_be_unprivileged = matches!(
            subject.kind,
            ProgramType::SocketFilter | ProgramType::CgroupSkb
        );
        let without_any =
            may_be_unprivileged && without(ALL, || kernel_query.can_ask(subject)) == Some(true);
        Privilege {
            subject: *subject,
            without_perfmon: without_perfmon == Some(true),
            without_any,
        }
    }

    /// True if a question can tell what a helper needs.
    pub fn is_askable(&self) -> bool {
        self.without_perfmon
    }

    /// True if a question can tell CAP_BPF from no capability.
    pub fn tells_bpf(&self) -> bool {
        self.without_any
    }

    /// Capabilities that programs of the kind need for a helper that they have with all of them.
    /// Where no question tells CAP_BPF from nothing, because the type itself needs it,
    /// the answer is the source's.
    pub fn for_helper(&self, kernel_query: &mut KernelQuery, id: u32) -> Capability {
        let by_source = source::capability(id);
        if !self.without_perfmon {
            return by_source;
        }
        let subject = &self.subject;
        if without(PERFMON, || kernel_query.has_helper(subject, id)) != Some(true) {
            return Capability::Perfmon;
        }
        if !self.without_any {
            return by_source;
        }
        match without(ALL, || kernel_query.has_helper(subject, id)) {
            Some(true) => Capability::None,
            _ => Capability::Bpf,
        }
    }
}

/// CAP_PERFMON, and CAP_SYS_ADMIN, which stands for it.
const PERFMON: &[capabilities::Capability] = &[
    capabilities::Capability::SYS_ADMIN,
    capabilities::Capability::PERFMON,
];
/// All that give rights beyond those of any user.
const ALL: &[capabilities::Capability] = &[
    capabilities::Capability::SYS_ADMIN,
    capabilities::Capability::PERFMON,
    capabilities::Capability::BPF,
];

/// An answer without capabilities; `None` where they cannot be given up.
fn without<T>(capabilities: &[capabilities::Capability], ask: impl FnOnce() -> T) -> Option<T> {
    let _dropped = drop_effective(capabilities).ok()?;
    Some(ask())
}

/// Maps and programs that the running kernel lets a caller create.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallerRights {
    /// Creations that were asked about: of each kind of map, and of BTF.
    pub asked: usize,
    /// Those that the kernel permits.
    pub permitted: usize,
    /// Differences from [`Privileges`].
    pub differences: Vec<String>,
}

/// Asks the running kernel which maps and types a caller may create; `None` where it lets no
/// such caller do anything.
pub fn compare_rights(privileges: Privileges) -> Option<CallerRights> {
    let caller = Caller::with(privileges)?;
    let kernel = kernel_data::linux_6_18();
    let registry = kernel.registry()?;
    let mut rights = CallerRights::default();
    let mut count = |what: &str, errno: Option<Errno>, is_permitted: bool| {
        rights.asked += 1;
        let found = errno != Some(Errno::EPERM);
        rights.permitted += usize::from(found);
        if found != is_permitted {
            let found = format!("{privileges:?}: {what}: the kernel {errno:?}");
            rights.differences.push(found);
        }
    };
    for_each(|kind, request| {
        // Kinds that the kernel does not know are refused before rights are asked for.
        if registry.map(kind).is_none() {
            return;
        }
        let dropped = caller.loads_programs();
        let errno = Map::create(request).err();
        drop(dropped);
        let is_permitted = privileges.lacks_to_create(kind).is_none();
        count(kind.name(), errno, is_permitted);
    });
    let value = plain_value();
    let dropped = caller.loads_programs();
    let errno = BtfObject::load(&value.blob).err();
    drop(dropped);
    count("BTF", errno, privileges.may_load_btf());
    Some(rights)
}
