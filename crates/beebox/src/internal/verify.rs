//! Verification of the programs of an object, each loaded alone.

/// Registry of a kernel's helpers, kfuncs, contexts and maps.
pub mod registry {
    pub use spec::registry::{
        AccessForm, ArgBase, ArgDetail, ArgType, Capability, CtxAccess, CtxQuery, CtxRefused,
        FieldRule, HelperEntry, HelperProto, HostHelper, IteratorArg, IteratorTarget, KernelType,
        Kfunc, KfuncFlags, Layout, Lists, MapTraits, PacketLoads, ProgramContext, ProgramRules,
        ProgramTypes, RegBase, RegType, Registry, RegistryData, Restriction, RetBase, RetType,
        ReturnRange, Rewriting, Rewritten, SafeList, SpecialKfunc, TracepointArg, TypeFlags,
        Unavailable, Widths,
    };
}

mod cost;
mod cost_table;
mod fact_table;
#[cfg(feature = "html")]
mod html;
mod load;
/// Verdicts of several kernels beside each other, and what decides where they differ.
pub mod matrix;
mod notes;
mod object;
/// Verification of many files in parallel, with results as rows.
pub mod results;
mod test_tags;

pub use self::registry::Registry;
pub use cost::{
    CallChainCost, FunctionCost, LineCost, StackUse, cost_by_chain, cost_by_function, cost_by_line,
    deepest_stack, folded_stacks,
};
pub use cost_table::ProgramCost;
pub use fact_table::FactTable;
#[cfg(feature = "html")]
pub use html::walk_page;
pub use load::{ProgramLoader, ReadBtf, StandaloneProgram};
pub use notes::MapNote;
pub use object::ProgramVerification;
pub use program::creation::{
    EntriesRule, InnerFault, MapFault, MapRefusal, RefusedMap, SizeRule, TypeRule,
};
pub use report::explain::plain_text as explanation_text;
pub use spec::kfuncs::KernelFunction;
pub use verifier::domain::Violation;
pub use verifier::precise::PrecisionCounts;
pub use verifier::reason::{self, Explanation, InsnPlace, Source as SourceLine};
pub use verifier::{
    Branch, CallFact, ChainCost, Cost, FormSlot, FunctionStack, InsnCost, InsnFact, KernelCode,
    LOG_LIMIT, LiveCode, LogOutput, LogTail, MapRef, OffsetRange, Options, PacketCheck, Pointer,
    PointerKind, ProgramFacts, Proof, RULES, Refusal, RefusalKind, Scalar, Spills, Statistics,
    Stop, Stress, SubprogCost, Tnum, Value, Verdict, Verification, explain, verify, verify_to,
};
#[cfg(feature = "html")]
pub use verifier::{KeptSteps, PrecisionRequest, StatePlace, StepEnd, Walk, WalkStep, walk};

/// Results in the form of veristat: columns, filters, order, comma-separated values, comparison.
pub mod veristat {
    pub use report::veristat::{
        Column, Emit, Filters, Joined, ResultRow, ResultVerdict, Stat, StatSide, VeristatError,
        csv, differences, read_csv,
    };
}
