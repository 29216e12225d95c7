//! Verification of the programs of an object, each loaded alone.

mod cost;
mod load;
mod test_tags;

pub use cost::{
    CallChainCost, FunctionCost, LineCost, StackUse, cost_by_chain, cost_by_function, cost_by_line,
    deepest_stack, folded_stacks,
};
pub use load::{Loaded, Loader, ReadBtf};
pub use spec::registry::Registry;
pub use verifier::reason::{self, Explanation};
pub use verifier::{
    Branch, CallFact, ChainCost, Cost, InsnCost, InsnFact, MapRef, OffsetRange, Options,
    PacketCheck, Pointer, PointerKind, ProgramFacts, Refusal, RefusalKind, Scalar, Statistics,
    Stress, SubprogCost, Tnum, Value, Verdict, Verification, explain, verify,
};
