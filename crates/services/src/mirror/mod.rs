//! `lastcall-mirror`: each production call against its tool's candidates, and one row of it in the output, in order.
//!
//! ```text
//! broker ─► reader (one thread, polls, never waits) ─► lane of a partition: intake ─► calls in flight ─► emit ─► broker
//!              ▲  │ assigns at the output's tails         (decodes, admits)  (replays)    (in order)        │
//!              └──┴───────────────────────── acknowledged positions ◄───────────────────────────────────────┘
//! ```
//!
//! Where reading goes on stands in the output alone: each message there carries a [`Mark`]. A row counts once the broker
//! has acknowledged it.

mod dry;
mod lane;
mod mark;
pub mod metrics;
mod output;
mod owned;
mod parts;
mod probe;
mod reader;
mod reload;
mod service;
mod start;

pub use dry::dry;
pub use mark::Mark;
pub use metrics::{TABLE, Telemetry};
pub use parts::Reading;
pub use probe::probe;
pub use reload::File;
pub use service::{Options, Summary, run};
