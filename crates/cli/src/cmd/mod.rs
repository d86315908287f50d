//! One file per subcommand.

pub mod try_calls;
pub mod contract;
pub mod ledger;
pub mod plan;
pub mod run;
pub mod decide;
pub mod status;
pub mod simulate;
pub mod demo;
