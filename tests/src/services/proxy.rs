//! A small HTTP proxy that stands in front of the S3 server and does what networks and servers do to requests.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What happens to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// Nothing.
    None,
    /// The answer comes late, but in time.
    Slow(Duration),
    /// An error with this code, and nothing was done.
    Answers(u16, &'static str),
    /// It is done, and then an error is answered.
    DoneButAnswers(u16, &'static str),
    /// It is never done and never answered.
    Silent,
    /// It is done, and never answered.
    DoneButSilent,
    /// It is never answered, and done long after the client gave up.
    DoneLater(Duration),
    /// The connection is cut before the request goes on.
    Cut,
    /// It is done, and the connection is cut before the answer.
    DoneButCut,
    /// The connection is cut in the middle of the answer.
    CutInside,
    /// The answer says that it is another hour.
    OtherHour,
    /// `If-None-Match` is taken out: a store that does not know it.
    Unconditional,
}

/// What a fault is decided by.
pub struct Asked<'a> {
    /// GET, PUT, DELETE.
    pub method: &'a str,
    /// Path and query.
    pub path: &'a str,
    /// Whether it carries `If-None-Match`.
    pub conditional: bool,
    /// The access key that signed it.
    pub credential: Option<&'a str>,
}

type Choose = dyn Fn(&Asked) -> Fault + Send + Sync;

/// A running proxy; it ends with the test.
pub struct Proxy {
    /// Where it listens.
    pub address: SocketAddr,
    hits: Arc<Mutex<BTreeMap<String, usize>>>,
}

struct Shared {
    upstream: SocketAddr,
    choose: Box<Choose>,
    hits: Arc<Mutex<BTreeMap<String, usize>>>,
    /// One write at a time: moto looks and then writes, S3 decides in one step.
    writing: Mutex<()>,
}

impl Proxy {
    /// Starts one.
    pub fn start(upstream: SocketAddr, choose: impl Fn(&Asked) -> Fault + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let hits = Arc::new(Mutex::new(BTreeMap::new()));
        let shared =
            Shared { upstream, choose: Box::new(choose), hits: hits.clone(), writing: Mutex::new(()) };
        let shared = Arc::new(shared);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let shared = shared.clone();
                // A client that goes away is no error of the proxy's.
                std::thread::spawn(move || serve(client, &shared));
            }
        });
        Self { address, hits }
    }

    /// How often each fault happened.
    pub fn hits(&self) -> BTreeMap<String, usize> {
        self.hits.lock().unwrap().clone()
    }
}

fn serve(mut client: TcpStream, shared: &Shared) -> std::io::Result<()> {
    let Some((head, body)) = read_request(&mut client)? else { return Ok(()) };
    let mut words = head.lines().next().unwrap_or_default().split(' ');
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let conditional = head.to_ascii_lowercase().contains("\r\nif-none-match:");
    let credential =
        head.split_once("Credential=").and_then(|(_, rest)| rest.split_once('/')).map(|(key, _)| key);
    let fault = (shared.choose)(&Asked { method, path, conditional, credential });
    let name = format!("{fault:?}").split('(').next().unwrap_or_default().to_owned();
    *shared.hits.lock().unwrap().entry(name).or_default() += 1;
    let forward = |conditional| forward(shared, method, &head, &body, conditional);
    match fault {
        Fault::None => client.write_all(&forward(true)?),
        Fault::Unconditional => client.write_all(&forward(false)?),
        Fault::OtherHour => {
            let answer = String::from_utf8_lossy(&forward(true)?).into_owned();
            let (before, rest) = answer.split_once("\r\nDate: ").unwrap();
            let (_, after) = rest.split_once("\r\n").unwrap();
            client.write_all(format!("{before}\r\nDate: Tue, 01 Dec 2020 06:00:00 GMT\r\n{after}").as_bytes())
        }
        Fault::Slow(time) => {
            std::thread::sleep(time);
            client.write_all(&forward(true)?)
        }
        Fault::Answers(status, code) => client.write_all(error(status, code).as_bytes()),
        Fault::DoneButAnswers(status, code) => {
            forward(true)?;
            client.write_all(error(status, code).as_bytes())
        }
        Fault::Silent => wait_for_the_end(&mut client),
        Fault::DoneButSilent => {
            forward(true)?;
            wait_for_the_end(&mut client)
        }
        Fault::DoneLater(time) => {
            std::thread::sleep(time);
            forward(true).map(|_| ())
        }
        Fault::Cut => client.shutdown(Shutdown::Both),
        Fault::DoneButCut => {
            forward(true)?;
            client.shutdown(Shutdown::Both)
        }
        Fault::CutInside => {
            let answer = forward(true)?;
            client.write_all(answer.get(..answer.len() / 2).unwrap_or_default())?;
            client.shutdown(Shutdown::Both)
        }
    }
}

fn read_request(client: &mut TcpStream) -> std::io::Result<Option<(String, Vec<u8>)>> {
    let mut read = Vec::new();
    let mut piece = [0u8; 65536];
    let end = loop {
        if let Some(at) = read.windows(4).position(|w| w == b"\r\n\r\n") {
            break at + 4;
        }
        match client.read(&mut piece)? {
            0 => return Ok(None),
            n => read.extend_from_slice(&piece[..n]),
        }
    };
    let head = String::from_utf8_lossy(&read[..end]).into_owned();
    let mut body = read.split_off(end);
    let length = head
        .lines()
        .find_map(|l| l.to_ascii_lowercase().strip_prefix("content-length:")?.trim().parse().ok());
    while body.len() < length.unwrap_or(0) {
        match client.read(&mut piece)? {
            0 => return Ok(None),
            n => body.extend_from_slice(&piece[..n]),
        }
    }
    Ok(Some((head, body)))
}

fn forward(
    shared: &Shared,
    method: &str,
    head: &str,
    body: &[u8],
    conditional: bool,
) -> std::io::Result<Vec<u8>> {
    let _one = (method == "PUT").then(|| shared.writing.lock().unwrap());
    let mut kept = String::new();
    for line in head.trim_end().split("\r\n") {
        let lower = line.to_ascii_lowercase();
        let condition = lower.starts_with("if-none-match:") && !conditional;
        if !lower.starts_with("connection:") && !condition {
            kept.push_str(line);
            kept.push_str("\r\n");
        }
    }
    let mut upstream = TcpStream::connect(shared.upstream)?;
    upstream.write_all(format!("{kept}Connection: close\r\n\r\n").as_bytes())?;
    upstream.write_all(body)?;
    let mut answer = Vec::new();
    match upstream.read_to_end(&mut answer) {
        Err(error) if error.kind() != ErrorKind::ConnectionReset => Err(error),
        _ => Ok(answer),
    }
}

fn error(status: u16, code: &str) -> String {
    let body = format!(
        "<?xml version=\"1.0\"?><Error><Code>{code}</Code><Message>made by the test</Message></Error>"
    );
    let region = if status == 301 { "x-amz-bucket-region: eu-west-3\r\n" } else { "" };
    let length = body.len();
    format!(
        "HTTP/1.1 {status} X\r\n{region}Content-Type: application/xml\r\nContent-Length: {length}\r\nConnection: \
         close\r\n\r\n{body}"
    )
}

fn wait_for_the_end(client: &mut TcpStream) -> std::io::Result<()> {
    client.set_read_timeout(Some(Duration::from_secs(60)))?;
    client.read(&mut [0u8; 1]).map(|_| ())
}
