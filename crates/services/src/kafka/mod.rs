//! What every service needs of Kafka: settings, and what a topic looks like from outside.

pub mod producer;
pub mod settings;
pub mod topic;

pub use settings::Settings;
