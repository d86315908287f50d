//! Which effect may be kept from happening how (invariant 7). An [`Executor`] is the only way to a candidate, and there
//! is one only for a pair of side effect and mode that [`RunsUnder`] names. Nothing runs under [`effect::Send`].

use std::marker::PhantomData;

use lastcall_contract::SideEffect;
use lastcall_event::Suppression;

use crate::answer::Exchange;
use crate::settings::Limits;
use crate::target::{Ask, Target};

mod sealed {
    pub trait Sealed {}
}

/// What a call does to the world, as the registry states it.
pub mod effect {
    /// Reads only.
    pub enum Read {}
    /// Changes state that can be looked at or undone.
    pub enum Write {}
    /// Leaves the house. Runs under nothing.
    pub enum Send {}
    impl super::sealed::Sealed for Read {}
    impl super::sealed::Sealed for Write {}
    impl super::sealed::Sealed for Send {}
}

/// How the effect is kept from happening while the candidate runs.
pub mod mode {
    /// Read from a replica.
    pub enum Replica {}
    /// Read from a snapshot.
    pub enum Snapshot {}
    /// The candidate's own dry run, which it has to offer.
    pub enum DryRun {}
    /// A sandbox tenant.
    pub enum Sandbox {}
    impl super::sealed::Sealed for Replica {}
    impl super::sealed::Sealed for Snapshot {}
    impl super::sealed::Sealed for DryRun {}
    impl super::sealed::Sealed for Sandbox {}
}

/// A way to run a candidate.
pub trait Mode: sealed::Sealed {
    /// What a row says.
    const SUPPRESSION: Suppression;
    /// The name in the candidate's protocol.
    const NAME: &'static str;
    /// The candidate itself keeps the effect from happening, so it must have said that it does before it is called.
    const OFFERED: bool = false;
}

impl Mode for mode::Replica {
    const SUPPRESSION: Suppression = Suppression::Replica;
    const NAME: &'static str = "replica";
}
impl Mode for mode::Snapshot {
    const SUPPRESSION: Suppression = Suppression::Snapshot;
    const NAME: &'static str = "snapshot";
}
impl Mode for mode::DryRun {
    const SUPPRESSION: Suppression = Suppression::DryRun;
    const NAME: &'static str = "dry_run";
    const OFFERED: bool = true;
}
impl Mode for mode::Sandbox {
    const SUPPRESSION: Suppression = Suppression::Sandbox;
    const NAME: &'static str = "sandbox";
}

/// Side effects that may be run under `M`.
#[diagnostic::on_unimplemented(
    message = "no executor: a tool of side effect `{Self}` is never run under `{M}`",
    label = "never run",
    note = "reads run on a replica or a snapshot, writes in a dry run or a sandbox, sends never"
)]
pub trait RunsUnder<M: Mode>: sealed::Sealed {}
impl RunsUnder<mode::Replica> for effect::Read {}
impl RunsUnder<mode::Snapshot> for effect::Read {}
impl RunsUnder<mode::DryRun> for effect::Write {}
impl RunsUnder<mode::Sandbox> for effect::Write {}

/// Runs a candidate of a tool of side effect `E` under mode `M`.
pub struct Executor<E: RunsUnder<M>, M: Mode> {
    target: Target,
    marker: PhantomData<fn() -> (E, M)>,
}

impl<E: RunsUnder<M>, M: Mode> Executor<E, M> {
    /// An executor over this target.
    pub fn new(target: Target) -> Self {
        Self { target, marker: PhantomData }
    }

    /// One exchange. Where the mode has to be offered, nothing is sent before it was.
    pub(crate) async fn run(&self, ask: &Ask<'_>, limits: &Limits) -> Exchange {
        self.target.exchange(ask, M::OFFERED.then_some(M::NAME), limits).await
    }
}

/// An executor that exists, or what stands in for one.
pub(crate) enum Runner {
    Replica(Executor<effect::Read, mode::Replica>),
    Snapshot(Executor<effect::Read, mode::Snapshot>),
    DryRun(Executor<effect::Write, mode::DryRun>),
    Sandbox(Executor<effect::Write, mode::Sandbox>),
    Stub(crate::target::Stub),
    Nothing,
}

/// Names of what a side effect allows, for messages.
pub(crate) fn allowed(effect: SideEffect) -> &'static str {
    match effect {
        SideEffect::Read => "replica, snapshot, stub",
        SideEffect::Write => "dry_run, sandbox, stub",
        SideEffect::Send => "nothing: a tool that sends is never executed, not even a stub of it",
    }
}

impl Runner {
    /// The executor for a tool of this side effect; `None`: there is none. `target` is told the mode's name.
    pub fn of(
        effect: SideEffect,
        asked: Suppression,
        target: impl FnOnce(&'static str) -> Target,
    ) -> Option<Self> {
        fn executor<E: RunsUnder<M>, M: Mode>(target: impl FnOnce(&'static str) -> Target) -> Executor<E, M> {
            Executor::new(target(M::NAME))
        }
        Some(match (effect, asked) {
            (SideEffect::Read, Suppression::Replica) => Self::Replica(executor(target)),
            (SideEffect::Read, Suppression::Snapshot) => Self::Snapshot(executor(target)),
            (SideEffect::Write, Suppression::DryRun) => Self::DryRun(executor(target)),
            (SideEffect::Write, Suppression::Sandbox) => Self::Sandbox(executor(target)),
            _ => return None,
        })
    }

    /// What a row says once the candidate was asked.
    pub fn suppression(&self) -> Suppression {
        match self {
            Self::Replica(_) => mode::Replica::SUPPRESSION,
            Self::Snapshot(_) => mode::Snapshot::SUPPRESSION,
            Self::DryRun(_) => mode::DryRun::SUPPRESSION,
            Self::Sandbox(_) => mode::Sandbox::SUPPRESSION,
            Self::Stub(_) => Suppression::Stub,
            Self::Nothing => Suppression::NotExecuted,
        }
    }

    /// Something is asked, be it a stub.
    pub fn asks(&self) -> bool {
        !matches!(self, Self::Nothing)
    }

    /// The target, where there is one.
    pub fn target(&self) -> Option<&Target> {
        match self {
            Self::Replica(executor) => Some(&executor.target),
            Self::Snapshot(executor) => Some(&executor.target),
            Self::DryRun(executor) => Some(&executor.target),
            Self::Sandbox(executor) => Some(&executor.target),
            Self::Stub(_) | Self::Nothing => None,
        }
    }

    /// One exchange.
    pub async fn run(&self, ask: &Ask<'_>, limits: &Limits) -> Exchange {
        match self {
            Self::Replica(executor) => executor.run(ask, limits).await,
            Self::Snapshot(executor) => executor.run(ask, limits).await,
            Self::DryRun(executor) => executor.run(ask, limits).await,
            Self::Sandbox(executor) => executor.run(ask, limits).await,
            Self::Stub(stub) => Ok(stub.answer(ask)),
            Self::Nothing => Ok(crate::answer::Said::not_run()),
        }
    }
}
