//! The HTML pages. Each is one file that loads nothing, runs nothing and prints well.

mod chart;
mod days;
mod differs;
mod fleet;
mod heat;
mod over_time;
mod page;
mod timeline;
mod trial;
mod verdict;

pub use fleet::{BoardPage, board, fleet_page};
pub use trial::try_page;
pub use verdict::verdict_page;
