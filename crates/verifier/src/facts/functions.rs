//! What BTF says about subprograms: names, linkage, and return types where the layout
//! needs them.

use btf::{Btf, Linkage, Shape, TypeId};

use super::{Facts, Pass};
use crate::env::Env;
use crate::{Result, refuse};

/// Checks func_info against the subprograms, and takes names and linkage from it
/// (`check_btf_func`).
pub(super) fn check(env: &Env<'_>, pass: &mut Pass<'_>, facts: &mut Facts) -> Result<()> {
    let info = env.program.func_info();
    let Some(btf) = env.program.btf().filter(|_| !info.is_empty()) else {
        return check_without_btf(pass, facts);
    };
    if info.len() != facts.subprogs.len() {
        return Err(refuse!(
            pass,
            EINVAL,
            Btf,
            "number of funcs in func_info doesn't match number of subprogs"
        ));
    }
    for (number, (subprog, info)) in facts.subprogs.iter_mut().zip(info).enumerate() {
        if subprog.start != info.insn {
            return Err(refuse!(
                pass,
                EINVAL,
                Btf,
                "func_info BTF section doesn't match subprog layout in BPF program"
            ));
        }
        let Some(ty) = btf.get(info.type_id) else {
            continue;
        };
        let Shape::Func(func) = ty.shape() else {
            continue;
        };
        subprog.name = ty.name().to_string_lossy().into_owned();
        subprog.is_global = func.linkage == Linkage::GLOBAL;
        if number == 0 || returns_number(btf, func.proto) {
            continue;
        }
        if subprog.has_ld_abs {
            return Err(refuse!(
                pass,
                EINVAL,
                Btf,
                "LD_ABS is only allowed in functions that return 'int'."
            ));
        }
        if subprog.has_tail_call {
            return Err(refuse!(
                pass,
                EINVAL,
                Btf,
                "tail_call is only allowed in functions that return 'int'."
            ));
        }
    }
    Ok(())
}

/// Subprograms without BTF may neither load packets nor make tail calls
/// (`check_abnormal_return`).
fn check_without_btf(pass: &mut Pass<'_>, facts: &Facts) -> Result<()> {
    for subprog in facts.subprogs.iter().skip(1) {
        if subprog.has_ld_abs {
            return Err(refuse!(
                pass,
                EINVAL,
                Btf,
                "LD_ABS is not allowed in subprogs without BTF"
            ));
        }
        if subprog.has_tail_call {
            return Err(refuse!(
                pass,
                EINVAL,
                Btf,
                "tail_call is not allowed in subprogs without BTF"
            ));
        }
    }
    Ok(())
}

/// True if a prototype returns an integer of up to eight bytes or an enumeration.
fn returns_number(btf: &Btf<'_>, proto: TypeId) -> bool {
    let Some(Shape::Proto(proto)) = btf.get(proto).map(|ty| ty.shape()) else {
        return false;
    };
    let returned = btf.skip_modifiers(proto.returns).and_then(|id| btf.get(id));
    match returned.map(|ty| ty.shape()) {
        Some(Shape::Int(int)) => int.size <= 8,
        Some(Shape::Enum(_)) => true,
        _ => false,
    }
}
