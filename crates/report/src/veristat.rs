//! Results of verification in the form of veristat: columns, filters, order, comma-separated
//! values, and two sets of results side by side.
//!
//! ```
//! use beebox_report::veristat::{Emit, Filters, csv, read_csv};
//!
//! let text = "file_name,prog_name,verdict,total_insns\na.o,x,success,7\na.o,y,failure,9\n";
//! let mut rows = read_csv(text)?;
//! let mut filters = Filters::default();
//! filters.push("insns>=8")?;
//! rows.retain(|row| filters.keep_results(row));
//! let emit = Emit::read(&["prog,insns".to_owned()], &["insnsv".to_owned()])?;
//! emit.sort(&mut rows);
//! assert_eq!(csv(&rows, &emit, false), "prog_name,total_insns\ny,9\n");
//! # Ok::<(), beebox_report::veristat::VeristatError>(())
//! ```

mod columns;
mod compare;
mod error;
mod filter;
mod joined;
mod row;
mod spec;

pub use columns::{push_columns, push_columns_within};
pub use compare::differences;
pub use error::VeristatError;
pub use filter::Filters;
pub use joined::Joined;
pub use row::{MOST_ROWS, ResultRow, ResultVerdict, csv, csv_line, quoted, read_csv};
pub use spec::{Column, Emit, Stat, StatSide};
