//! Over a bucket.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lastcall_ledger::store::s3::{S3Config, S3Store};
use lastcall_tests::chance::{Rng, number};
use lastcall_tests::services::moto::Moto;
use lastcall_tests::services::proxy::{Fault, Proxy};

use crate::check;
use crate::store::Under;
use crate::world::World;

/// The same over a bucket, behind a network that loses answers (LASTCALL_S3_SEEDS): the simulated crashes on top of real
/// time-outs, conflicts and cut connections.
#[test]
fn over_a_bucket_on_a_bad_network_it_is_what_was_fed_in_too() {
    let Some(moto) = Moto::start() else { return };
    moto.bucket("books");
    let (first, seeds) = (number("LASTCALL_SEED", 0), number("LASTCALL_S3_SEEDS", 2));
    let dice = Mutex::new(Rng(first ^ 0x5eed));
    let proxy = Proxy::start(moto.address, move |_| {
        let mut dice = dice.lock().unwrap();
        if !dice.chance(4) {
            return Fault::None;
        }
        match dice.below(8) {
            0 => Fault::Answers(500, "InternalError"),
            1 => Fault::Answers(503, "SlowDown"),
            2 => Fault::Answers(409, "ConditionalRequestConflict"),
            3 => Fault::DoneButAnswers(500, "InternalError"),
            4 => Fault::Cut,
            5 => Fault::DoneButCut,
            6 => Fault::CutInside,
            _ => Fault::DoneButSilent,
        }
    });
    for seed in first..first + seeds {
        let open = |address: SocketAddr, timeout: u64| {
            let variables = [
                ("AWS_ACCESS_KEY_ID", "test".to_owned()),
                ("AWS_SECRET_ACCESS_KEY", "test".to_owned()),
                ("AWS_ENDPOINT_URL", format!("http://{address}")),
                ("AWS_ALLOW_HTTP", "true".to_owned()),
            ];
            let config = S3Config {
                variables: variables.map(|(n, v)| (n.to_owned(), v)).into(),
                timeout: Duration::from_millis(timeout),
                ..S3Config::from_env("books", &format!("sim/{seed}")).unwrap()
            };
            Under::Real(Arc::new(S3Store::open(config).unwrap()))
        };
        let begun = std::time::Instant::now();
        let mut world = World::over(open(moto.address, 20_000), open(proxy.address, 500), seed, None);
        world.run();
        world.bring_home();
        check(world, true);
        println!("seed {seed} over a bucket: {:.1?}", begun.elapsed());
    }
    println!("requests by fault: {:?}", proxy.hits());
}
