use lastcall_mirror::suppress::{Executor, effect, mode};

fn main() {
    let _ = Executor::<effect::Send, mode::DryRun>::new;
}
