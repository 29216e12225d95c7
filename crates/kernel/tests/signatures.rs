//! What implementations declare beside them is what the prototypes of the built-in kernel say.

use std::collections::{BTreeMap, BTreeSet};

use beebox_kernel::{declared, find_call, helpers, kfuncs};
use btf::{Kind, Param, Shape, TypeId};
use spec::bits::BitOp;
use spec::callback::CallbackKind;
use spec::helpers::HelperId;
use spec::kfuncs::KernelFunction;
use spec::registry::{ArgBase, KfuncFlags, SpecialKfunc, kfunc_signature};

/// The signatures of every helper and kfunc of the built-in kernel by number of resolved code,
/// with their names.
fn signatures() -> BTreeMap<i32, (String, BTreeSet<String>)> {
    let kernel = kernel_data::linux_6_18();
    let registry = kernel.registry().expect("the built-in registry");
    let types = kernel.btf().expect("the built-in types");
    let mut found: BTreeMap<i32, (String, BTreeSet<String>)> = BTreeMap::new();
    for proto in &registry.protos {
        let entry = found.entry(proto.id as i32).or_default();
        entry.0 = proto.name.to_string();
        entry.1.insert(proto.signature());
    }
    for kfunc in registry.kfuncs.values() {
        let Some(function) = KernelFunction::of_linux(&kfunc.name) else {
            continue;
        };
        // Those of modules and of other configurations have no type.
        if kfunc.btf_id == 0 {
            continue;
        }
        let signature = kfunc_signature(types, kfunc.btf_id, kfunc.flags);
        let entry = found.entry(function.number()).or_default();
        entry.0 = kfunc.name.to_string();
        entry.1.insert(signature.expect("a function"));
    }
    found
}

#[test]
fn every_implementation_declares_the_signatures_of_linux() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for (number, (name, signatures)) in signatures() {
        let Some(declared) = declared(number) else {
            continue;
        };
        count += 1;
        let called = find_call(number).map(|implementation| implementation.declared);
        assert!(called.is_none_or(|called| called == declared), "{name}");
        let declared: BTreeSet<String> = vm::signatures(declared).collect();
        if declared != signatures {
            let list = signatures.into_iter().collect::<Vec<_>>().join(" or ");
            wrong.push(format!("{name}: \"{list}\""));
        }
    }
    assert!(wrong.is_empty(), "other signatures:\n{}", wrong.join("\n"));
    let kernel = kernel_data::linux_6_18();
    let registry = kernel.registry().expect("the built-in registry");
    let of_kernel = registry.kfuncs.values().filter(|kfunc| kfunc.btf_id != 0);
    let built = of_kernel.filter(|kfunc| {
        let state = kfuncs::state(&kfunc.name);
        state.is_some_and(|state| state.why_not().is_none())
    });
    let linux = |number: &&i32| spec::helpers::helper(**number).is_some();
    let expected = helpers::NUMBERS.iter().filter(linux).count() + built.count();
    assert_eq!(count, expected);
}

#[test]
fn bit_operations_have_the_signatures_of_their_module() {
    let kernel = kernel_data::linux_6_18().with_bit_operations();
    let module = kernel.modules().last().expect("the module");
    let kfuncs = module.kfuncs.as_deref().expect("its functions");
    assert_eq!(kfuncs.len(), BitOp::ALL.len());
    for kfunc in kfuncs {
        let id = kfunc.btf_id as i32;
        let op = BitOp::from_func(module, id).expect("an operation");
        let signature = kfunc_signature(&module.btf, kfunc.btf_id, kfunc.flags);
        assert_eq!(signature.as_deref(), Some(op.signature()), "{op:?}");
    }
}

/// Rows of functions that the registry leaves out, as programs of no type that it describes reach
/// them, are compared by the types of the kernel, which has no flags.
#[test]
fn every_kfunc_has_the_types_of_the_kernels_function() {
    const FLAGS: [&str; 6] = [
        "acquire",
        "release",
        "ret_null",
        "trusted_args",
        "rcu",
        "rcu_protected",
    ];
    let kernel = kernel_data::linux_6_18();
    let types = kernel.btf().expect("the built-in types");
    let functions = (0..=u16::MAX).map(KernelFunction::Linux);
    let functions = functions.map_while(|function| Some((function.name()?, function.number())));
    let (mut compared, mut wrong) = (BTreeSet::new(), Vec::new());
    for (name, number) in functions {
        let (Some(declared), Some(ty)) = (declared(number), types.find(Kind::Func, name)) else {
            continue;
        };
        let signature = kfunc_signature(types, ty.id().0, KfuncFlags::default());
        let signature = signature.expect("a function");
        let without_flags = |declared: String| {
            let words = declared.split(' ').filter(|word| !FLAGS.contains(word));
            words.collect::<Vec<_>>().join(" ")
        };
        if !vm::signatures(declared)
            .map(without_flags)
            .any(|declared| declared == signature)
        {
            wrong.push(format!("{name}: {declared:?}, the kernel: {signature:?}"));
        }
        compared.insert(name);
    }
    assert!(wrong.is_empty(), "other types:\n{}", wrong.join("\n"));
    for name in ["bpf_get_task_exe_file", "bpf_path_d_path", "bpf_put_file"] {
        assert!(compared.contains(name), "{name}");
    }
    assert!(compared.len() > 100, "{}", compared.len());
}

#[test]
fn functions_that_are_called_back_have_their_row() {
    let kernel = kernel_data::linux_6_18();
    let registry = kernel.registry().expect("the built-in registry");
    let types = kernel.btf().expect("the built-in types");
    let strip = |id| types.skip_modifiers(id).unwrap_or(TypeId::VOID);
    let is_function = |param: Param| match types.at(strip(param.ty)).shape() {
        Shape::Ptr(target) => types.at(strip(target)).kind() == Kind::FuncProto,
        _ => false,
    };
    let register = |kind: Option<CallbackKind>| kind.map(|kind| kind.rules().register.number());
    for proto in &registry.protos {
        let mut args = proto.args.iter().zip(1..);
        let found = args.find(|(arg, _)| arg.base == ArgBase::PtrToFunc);
        let kind = proto.helper().and_then(HelperId::callback);
        assert_eq!(
            found.map(|(_, number)| number),
            register(kind),
            "{}",
            proto.name
        );
    }
    let mut count = 0;
    for kfunc in registry.kfuncs.values() {
        let Some(Shape::Func(func)) = types.get(TypeId(kfunc.btf_id)).map(|ty| ty.shape()) else {
            continue;
        };
        let Some(Shape::Proto(proto)) = types.get(func.proto).map(|ty| ty.shape()) else {
            continue;
        };
        let found = proto
            .params()
            .zip(1..)
            .find(|(param, _)| is_function(*param));
        let kind = kfunc.special.and_then(SpecialKfunc::callback);
        assert_eq!(
            found.map(|(_, number)| number),
            register(kind),
            "{}",
            kfunc.name
        );
        count += usize::from(kind.is_some());
    }
    assert!(count > 0);
}
