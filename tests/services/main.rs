//! Against real servers, with what networks do to them: a ledger in a bucket, records from a topic.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

mod candidate;
mod deployment;
mod gateway;
mod interceptor;
mod kafka_headers;
mod kafka_record;
mod kafka_service;
mod kafka_topics;
mod kafka_windows;
mod mirror;
mod mirror_guide;
mod mirror_kill;
mod mirror_replay;
mod mirror_topics;
mod raw;
mod s3_command;
mod s3_store;
mod topic;
