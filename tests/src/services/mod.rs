//! Servers that tests run against, and what networks do to them.

pub mod broker;
pub mod moto;
pub mod proxy;
pub mod python;
