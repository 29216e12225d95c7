//! Code without checks of verified programs: its memory, contexts, calls, stack and direct accesses to maps.

mod direct;
mod direct_access;
mod direct_call;
pub(crate) mod direct_context;
mod hash_lookup;
mod map_function;
mod stack_frames;
mod tail_table;
mod verified_run;

pub use direct::Direct;
pub use direct_access::{DirectAccess, Elements};
pub use direct_call::direct_call;
pub use direct_context::{ContextKind, DirectContext};
pub use hash_lookup::{HASH_MULTIPLIER, HashLookup, HashParts, hash_start, hash_words};
pub use map_function::{MapFunction, RecordOutput, WordLookup};
pub use stack_frames::{FrameLayout, FrameRecord, StackFrames};
pub use tail_table::{TailConvention, TailTable, TailTableError, TailTarget};
pub use verified_run::{NoSuchCpu, References};
