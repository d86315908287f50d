//! What changed between two contracts: changed places, the rename map, the diff with its proofs and witnesses.
//!
//! Pure. Nothing here judges a call.

mod change;
mod class;
mod doc;
mod generate;
pub mod lint;
mod near;
mod places;
mod pointer;
mod profile;
mod prove;
mod rename;
mod report;
mod rules;
mod surface;
pub mod synth;

pub use change::{Change, ChangeKind, RenameHint, Side, WitnessCall, WitnessFrom};
pub use class::{Backing, Bump, Class, Handling};
pub use doc::SchemaDoc;
pub use generate::{Aim, Generator, Rng, agreeing, showing, valid};
pub use near::names_are_near;
pub use places::{ChangedPlaces, Place, PlaceKind, changed_places, only_adds, same_but_for_text};
pub use pointer::{Pattern, Token, escape, join, join_name, tokens};
pub use prove::{Answer, Model, Operand, OperandError, Options, Witness, contains, declared_by, is_witness};
pub use rename::{InferredRename, Rename, inferred_renames};
pub use report::{
    ContractDiff, DiffOptions, Direction, Fact, FactAnswer, Facts, SurfaceDiff, ToolDiff, ToolFacts,
    ToolStatus,
};
pub use rules::{DiffError, diff_contracts, diff_schemas};
pub use surface::{SurfaceTool, diff_surfaces};
