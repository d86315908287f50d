//! One file per subcommand.

pub mod affected;
pub mod contract;
pub mod decide;
pub mod demo;
pub mod diff;
pub mod ledger;
pub mod lint;
pub mod pair_config;
pub mod plan;
pub mod preset;
pub mod run;
pub mod simulate;
pub mod status;
pub mod synth;
pub mod try_calls;
