//! The tables of helpers, kinds, types and kernel functions against kernels: the
//! running one's verifier names helpers in its log, its types list its functions,
//! and the header of the kernel's tests, where they are built, lists the numbers.

use std::collections::BTreeMap;
use std::fs;

use btf::{Btf, Shape};
use isa::ebpf::{Callee, Insn, encode};
use kernel_client::kernel_release;
use spec::helpers;
use spec::maps::{MapFlags, MapKind};
use spec::programs::{AttachType, ProgramType};
use spec::since::{Release, kfunc};
use sys::Errno;
use sys::bpf::{LogLevel, ProgLoad};

/// The release of the running kernel.
fn running() -> Option<Release> {
    let text = fs::read_to_string("/proc/sys/kernel/osrelease").ok()?;
    let mut numbers = text.split(['.', '-']);
    let mut number = || numbers.next()?.parse().ok();
    Some(Release {
        major: number()?,
        minor: number()?,
    })
}

/// The verifier's name of a helper, if it answers.
fn name_in_log(number: i32) -> Option<String> {
    let slots = encode(&[Insn::Call(Callee::Helper(number)), Insn::Exit]).ok()?;
    let request =
        ProgLoad::new(ProgramType::SocketFilter.number(), &slots).with_log(LogLevel::LEVEL2);
    let log = match request.load() {
        Ok((_, log)) => log,
        Err(refused) if refused.errno == Errno::EPERM => return None,
        Err(refused) => refused.log,
    };
    let (_, rest) = log.split_once("(85) call ")?;
    let end = rest.find('#')?;
    Some(rest[..end].to_owned())
}

#[oracle::test]
fn the_running_kernel_has_these_helpers() {
    let what = "helpers of the running kernel";
    if oracle::found(what, kernel_release()).is_none() {
        return;
    }
    if name_in_log(1).is_none() {
        return oracle::skip(what, "bpf(2) is not permitted");
    }
    let running = running().expect("a kernel says its release");
    for (number, helper) in helpers::all() {
        let known = match helper.since.release <= running {
            true => helper.name,
            false => "unknown",
        };
        assert_eq!(name_in_log(number).as_deref(), Some(known), "{number}");
    }
    let beyond = helpers::all().count() as i32 + 1;
    assert_eq!(name_in_log(beyond).as_deref(), Some("unknown"));
}

#[oracle::test]
fn every_function_that_the_running_kernel_offers_has_a_row() {
    let what = "kfuncs of the running kernel";
    if oracle::found(what, kernel_release()).is_none() {
        return;
    }
    let Some(blob) = oracle::found(what, fs::read("/sys/kernel/btf/vmlinux")) else {
        return;
    };
    let running = running().expect("a kernel says its release");
    let types = Btf::parse(&blob[..]).expect("the kernel's own types");
    let mut count = 0;
    for tag in types.types() {
        let Shape::DeclTag(about) = tag.shape() else {
            continue;
        };
        if tag.name() != "bpf_kfunc" {
            continue;
        }
        let name = types.at(about.target).name().to_string();
        // Linux's tests of itself, which no program has a use for.
        let is_test = ["_test", "memb_release"]
            .iter()
            .any(|part| name.contains(part));
        if !is_test {
            let since = kfunc(&name).unwrap_or_else(|| panic!("{name} has no row"));
            assert!(since.release <= running, "{name}: {}", since.release);
            count += 1;
        }
    }
    assert!(count > 100, "{count} functions");
}

/// The values of an enumeration of the header, by name without prefix.
fn enumeration(header: &str, prefix: &str, begin: &str) -> BTreeMap<String, u32> {
    let (_, body) = header.split_once(begin).expect("the header has it");
    let (body, _) = body.split_once("};").expect("it ends");
    let mut next = 0;
    let mut found = BTreeMap::new();
    for line in body.lines() {
        let Some(rest) = line.trim().strip_prefix(prefix) else {
            continue;
        };
        let name: String = rest
            .chars()
            .take_while(|c| c.is_alphanumeric() || *c == '_')
            .collect();
        if let Some((_, value)) = rest.split_once('=') {
            // An older name for the one before.
            match value.trim().trim_end_matches(',').parse() {
                Ok(number) => next = number,
                Err(_) => continue,
            }
        }
        found.insert(name.to_lowercase(), next);
        next += 1;
    }
    found.remove("unspec");
    found
}

#[oracle::test]
fn the_newest_header_has_these_numbers() {
    let path = oracle::selftest_path("7.2/linux/tools/include/uapi/linux/bpf.h");
    let Some(path) = oracle::found("numbers of the newest header", path) else {
        return;
    };
    let header = fs::read_to_string(path).expect("the header can be read");
    let ours = |rows: Vec<(&str, u32)>| -> BTreeMap<String, u32> {
        let named = rows.into_iter();
        named
            .map(|(name, number)| (name.to_owned(), number))
            .collect()
    };

    let mut kinds = enumeration(&header, "BPF_MAP_TYPE_", "enum bpf_map_type {");
    kinds.retain(|name, _| !name.ends_with("_deprecated"));
    // A name that stands for the deprecated one.
    kinds.entry("cgroup_storage".to_owned()).or_insert(19);
    kinds
        .entry("percpu_cgroup_storage".to_owned())
        .or_insert(21);
    let rows = MapKind::ALL.iter().map(|kind| (kind.name(), kind.number()));
    assert_eq!(ours(rows.collect()), kinds);

    let types = enumeration(&header, "BPF_PROG_TYPE_", "enum bpf_prog_type {");
    let rows = ProgramType::ALL
        .iter()
        .map(|kind| (kind.name(), kind.number()));
    assert_eq!(ours(rows.collect()), types);

    let attach = enumeration(&header, "BPF_", "enum bpf_attach_type {");
    let rows = AttachType::ALL
        .iter()
        .map(|kind| (kind.name(), kind.number()));
    assert_eq!(ours(rows.collect()), attach);

    for (number, helper) in helpers::all() {
        let row = format!("FN({}, {number}, ##ctx)", &helper.name[4..]);
        assert!(header.contains(&row), "{row}");
    }
    for (flag, name) in MapFlags::ALL {
        let bit = flag.0.trailing_zeros();
        let line = header
            .lines()
            .find(|line| line.split_whitespace().next() == Some(name));
        let line = line.unwrap_or_else(|| panic!("{name} is not in the header"));
        assert!(line.contains(&format!("(1U << {bit})")), "{line}");
    }
}
