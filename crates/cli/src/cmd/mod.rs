//! One file per subcommand.

pub mod contract;
pub mod decide;
pub mod demo;
pub mod ledger;
pub mod plan;
pub mod run;
pub mod simulate;
pub mod status;
pub mod try_calls;
