//! What changed between two contracts: changed places and the rename map.
//!
//! Pure. Rules and proofs, witnesses and lint come on top of the same walk; nothing here judges a call.

mod doc;
mod generate;
mod near;
mod places;
mod pointer;
mod rename;

pub use doc::SchemaDoc;
pub use generate::{Aim, Generator, Rng, agreeing, showing, valid};
pub use near::names_are_near;
pub use places::{Place, PlaceKind, changed_places, only_adds, same_but_for_text};
pub use pointer::{Pattern, Token, escape, join, join_name, tokens};
pub use rename::{Rename, inferred_renames};
