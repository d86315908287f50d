//! The HTML pages. Each is one file that loads nothing, runs nothing and prints well.

mod chart;
mod fleet;
mod page;
mod trial;
mod verdict;

pub use fleet::fleet_page;
pub use trial::try_page;
pub use verdict::verdict_page;
