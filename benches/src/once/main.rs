//! Temporary.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let location = std::path::Path::new(&args[0]);
    let ledger = lastcall_ledger::Ledger::open(location)?;
    let options = lastcall_record::RunOptions { is_final: true, ..Default::default() };
    let done = lastcall_record::run_file(&ledger, std::path::Path::new(&args[1]), &options, &mut |_| {})?;
    eprintln!("{} calls, {} chunks", done.balance.calls, done.chunks);
    Ok(())
}
