//! Being written.

use crate::ui::Exit;

/// Arguments.
#[derive(clap::Args)]
pub struct Args {}

/// Runs it.
pub fn run(_args: Args) -> anyhow::Result<Exit> {
    Ok(Exit::Usage)
}
