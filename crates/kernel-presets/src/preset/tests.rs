//! Names and facts of presets.

use super::*;

fn names(word: &str) -> Vec<&'static str> {
    select(word)
        .unwrap()
        .iter()
        .map(|preset| preset.name())
        .collect()
}

#[test]
fn words_mean_presets() {
    let of_series = |preset: &&Preset| preset.is_of_series();
    let all: Vec<&str> = ALL.iter().filter(of_series).map(Preset::name).collect();
    assert_eq!(names("all"), all);
    assert_eq!(names("6.18"), ["6.18.44"]);
    assert_eq!(names("6.18.44"), ["6.18.44"]);
    assert_eq!(names("6.18-6.18"), ["6.18.44"]);
    assert!(names("6.18-").iter().all(|name| all.contains(name)));
    assert_eq!(names("-6.18").last(), Some(&"6.18.44"));
    assert!(names("lts").contains(&"6.18.44"));
    for word in [
        "",
        "-",
        "5.4",
        "6.18.99",
        "6.18-minimal",
        "7.9-",
        "debian-9",
        "6.18-6.17",
    ] {
        assert_eq!(
            select(word).err(),
            Some(UnknownPreset(word.to_owned())),
            "{word:?}"
        );
    }
}

#[test]
fn presets_are_ordered_and_named_by_their_versions() {
    assert!(ALL.is_sorted_by_key(|preset| preset.series));
    for preset in ALL {
        assert_eq!(Release::from(preset.version()), preset.series);
        assert_eq!(
            Preset::named(preset.name).map(Preset::name),
            Some(preset.name)
        );
    }
}

#[test]
fn each_preset_has_all_facts() {
    for preset in ALL {
        let kernel = preset.kernel();
        assert_eq!(kernel.version(), Some(preset.version()), "{}", preset.name);
        let registry = kernel.registry().expect("a registry");
        let types = kernel.btf().expect("types");
        assert!(types.find(btf::Kind::Struct, "task_struct").is_some());
        assert!(!registry.programs.is_empty() && !registry.maps.is_empty());
        // The names of structures in prototypes are of the kernel's types.
        let current = registry
            .protos
            .iter()
            .find(|proto| proto.name == "bpf_get_current_task_btf");
        if let Some(ty) = current.and_then(|proto| proto.ret_btf.as_ref()) {
            assert_ne!(ty.btf_id, 0, "{}", preset.name);
        }
        assert!(
            kernel
                .assumptions()
                .all(|field| field == spec::kernel::KernelField::Memory
                    || field == spec::kernel::KernelField::Privileges)
        );
    }
}
