use lastcall_mirror::suppress::{Executor, effect, mode};

fn main() {
    let _ = Executor::<effect::Read, mode::Replica>::new;
    let _ = Executor::<effect::Read, mode::Snapshot>::new;
    let _ = Executor::<effect::Write, mode::DryRun>::new;
    let _ = Executor::<effect::Write, mode::Sandbox>::new;
}
