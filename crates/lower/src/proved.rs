//! Lowering of programs that the verifier accepted: references to maps become addresses of
//! handles, accesses to the context those of a [`vm::DirectContext`]; then come the passes.

use std::sync::Arc;

use verifier::Proof;
use vm::{ContextKind, HostFunction, MapHandle, PacketRules};

use crate::callbacks::{Callbacks, EntrySizes, OneFunction};
use crate::code::Code;
use crate::counts::Counting;
use crate::kind::{EntryFunction, Lowered, VerifiedProgram};
use crate::passes::{self, Optimized, Passes, Source};
use crate::structure::{self, FindCall};
use crate::verified::{self, UnsupportedConstruct, UsedMaps};
use crate::{Evidence, LoweredCall, LoweredCode, premises};

impl VerifiedProgram {
    /// Lowers a program that the verifier accepted, with its maps in the order of the
    /// program's (`None` for those that no instruction refers to), and the helpers that it
    /// may call.
    ///
    /// `find_call` gives the functions of helpers with the signatures that they are written for.
    ///
    /// # Errors
    /// The feature that native code does not support; [`UnsupportedConstruct::Signature`] or [`UnsupportedConstruct::Field`] if
    /// the registry that the proof rests on says otherwise of helpers, contexts or sockets; [`UnsupportedConstruct::HostFunctions`] if the program was
    /// verified for functions of a host.
    pub fn from_proof(
        proof: &Proof,
        maps: &[Option<MapHandle>],
        find_call: FindCall,
    ) -> Result<VerifiedProgram, UnsupportedConstruct> {
        VerifiedProgram::from_proof_with(proof, maps, find_call, Passes::ALL)
    }

    /// As [`VerifiedProgram::from_proof`], with only these passes.
    ///
    /// # Errors
    /// As [`VerifiedProgram::from_proof`].
    pub fn from_proof_with(
        proof: &Proof,
        maps: &[Option<MapHandle>],
        find_call: FindCall,
        passes: Passes,
    ) -> Result<VerifiedProgram, UnsupportedConstruct> {
        let part = Part {
            number: 0,
            function: None,
            passes,
            counting: None,
        };
        let (code, kind) = lower(proof, maps, find_call, &Arc::default(), part)?;
        Ok(VerifiedProgram::new(code, kind))
    }

    /// As [`VerifiedProgram::from_proof`], for a program that helpers know by a number after
    /// its runs ([`vm::Callback`]), with the functions of the host that it was verified for.
    ///
    /// # Errors
    /// As [`VerifiedProgram::from_proof`]; [`UnsupportedConstruct::HostFunctions`] if it was verified for
    /// other functions of a host.
    pub fn from_numbered(
        proof: &Proof,
        maps: &[Option<MapHandle>],
        find_call: FindCall,
        host: &Arc<[HostFunction]>,
        number: u32,
    ) -> Result<VerifiedProgram, UnsupportedConstruct> {
        VerifiedProgram::from_counted(proof, maps, find_call, host, (number, None))
    }

    /// As [`VerifiedProgram::from_numbered`], for a program that counts what it executes.
    ///
    /// # Errors
    /// As [`VerifiedProgram::from_numbered`].
    pub fn from_counted(
        proof: &Proof,
        maps: &[Option<MapHandle>],
        find_call: FindCall,
        host: &Arc<[HostFunction]>,
        (number, counting): (u32, Option<&Counting>),
    ) -> Result<VerifiedProgram, UnsupportedConstruct> {
        let part = Part {
            number,
            function: None,
            passes: Passes::ALL,
            counting,
        };
        let (code, kind) = lower(proof, maps, find_call, host, part)?;
        Ok(VerifiedProgram::new(code, kind))
    }
}

impl Lowered<EntryFunction> {
    /// Lowers the function at a slot ([`timer_callbacks`](crate::timer_callbacks)) of a program
    /// with a number; see [`VerifiedProgram::from_numbered`].
    ///
    /// # Errors
    /// As [`VerifiedProgram::from_numbered`]; [`UnsupportedConstruct::Callback`] if timers of several kinds of
    /// values may call the function.
    pub fn from_function(
        proof: &Proof,
        maps: &[Option<MapHandle>],
        find_call: FindCall,
        host: &Arc<[HostFunction]>,
        (number, slot): (u32, u32),
    ) -> Result<Lowered<EntryFunction>, UnsupportedConstruct> {
        Lowered::from_function_with(proof, maps, find_call, host, (number, slot), Passes::ALL)
    }

    /// As [`Lowered::from_function`], of a program that counts what it executes.
    ///
    /// # Errors
    /// As [`Lowered::from_function`].
    pub fn from_counted_function(
        proof: &Proof,
        maps: &[Option<MapHandle>],
        find_call: FindCall,
        host: &Arc<[HostFunction]>,
        (number, slot, counting): (u32, u32, Option<&Counting>),
    ) -> Result<Lowered<EntryFunction>, UnsupportedConstruct> {
        let part = Part {
            number,
            function: Some(slot),
            passes: Passes::ALL,
            counting,
        };
        Lowered::from_part(proof, maps, find_call, host, (slot, part))
    }

    /// As [`Lowered::from_function`], with only these passes.
    ///
    /// # Errors
    /// As [`Lowered::from_function`].
    pub fn from_function_with(
        proof: &Proof,
        maps: &[Option<MapHandle>],
        find_call: FindCall,
        host: &Arc<[HostFunction]>,
        (number, slot): (u32, u32),
        passes: Passes,
    ) -> Result<Lowered<EntryFunction>, UnsupportedConstruct> {
        let part = Part {
            number,
            function: Some(slot),
            passes,
            counting: None,
        };
        Lowered::from_part(proof, maps, find_call, host, (slot, part))
    }

    fn from_part(
        proof: &Proof,
        maps: &[Option<MapHandle>],
        find_call: FindCall,
        host: &Arc<[HostFunction]>,
        (slot, part): (u32, Part<'_>),
    ) -> Result<Lowered<EntryFunction>, UnsupportedConstruct> {
        let sizes =
            EntrySizes::of_timers(maps).ok_or(UnsupportedConstruct::Callback(slot as usize))?;
        let (code, _) = lower(proof, maps, find_call, host, part)?;
        Ok(Lowered::new(code, sizes))
    }
}

/// Part of a verified program to lower, with options.
struct Part<'c> {
    /// Number of the program.
    number: u32,
    /// The slot of the function; without one the whole program.
    function: Option<u32>,
    passes: Passes,
    /// Its counters, if it counts what it executes.
    counting: Option<&'c Counting>,
}

/// The code of a program, or of a function of it, and the kind of its context.
fn lower(
    proof: &Proof,
    maps: &[Option<MapHandle>],
    find_call: FindCall,
    host: &Arc<[HostFunction]>,
    part: Part<'_>,
) -> Result<(LoweredCode, ContextKind), UnsupportedConstruct> {
    let host = match proof.host() {
        None => Arc::default(),
        Some(verified) => {
            let given = host.iter().map(|function| function.prototype());
            if !given.eq(verified) {
                return Err(UnsupportedConstruct::HostFunctions);
            }
            host.clone()
        }
    };
    let kind = verified::context_of(proof.program().kind())?;
    premises::check_premises(proof, find_call, &host)?;
    let (decoded, facts) = (proof.program().decode(), proof.facts());
    let callbacks = Callbacks::of(&decoded, facts);
    let used = UsedMaps::new(proof.program(), maps, kind)?;
    let insns = verified::rewrite(proof, kind, &used, part.number)?;
    let function = (part.function).map(|slot| OneFunction::new(&decoded, facts, slot as usize));
    let source = Source {
        callbacks: &callbacks,
        facts,
        maps,
        tables: &used.tables,
        function: function.as_ref(),
        counts: part.counting.map(|counting| &counting.plan),
    };
    let optimized = passes::apply(insns, &source, part.passes);
    let Optimized {
        code: patched,
        stack,
        accesses,
        tail_slots,
    } = optimized.ok_or(UnsupportedConstruct::TooLong)?;
    let evidence = Evidence::Verified(kind);
    let mut lowered = LoweredCode {
        code: Code::default(),
        evidence,
        packet_rules: PacketRules::Kernel,
        find_call,
        maps: maps.iter().flatten().cloned().collect(),
        accesses,
        tail_slots,
        tail_tables: used.tables.into_iter().flatten().collect(),
        host,
        counters: part.counting.map(|counting| counting.counters.clone()),
    };
    let is_call = |number| lowered.makes(LoweredCall::from_number(number));
    let functions = structure::check_structure(&patched.insns, is_call)
        .map_err(UnsupportedConstruct::Malformed)?;
    let code = Code {
        origins: Some(patched.origins),
        stack,
        ..Code::new(patched.insns, functions, evidence)
    };
    lowered.code = code.optimized(part.passes, evidence);
    Ok((lowered, kind))
}
