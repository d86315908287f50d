//! A candidate behind HTTP that counts what it is asked, and does with each request what the test says.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

/// What becomes of a request.
pub enum Reply {
    /// The candidate's answer.
    Answer(Value),
    /// Another status, and a body.
    Status(u16, String),
    /// The connection ends without a word.
    Gone,
    /// A body that never ends, this many bytes at a time.
    Endless(usize),
    /// Nothing, for so long; then the answer.
    After(Duration, Value),
}

/// A request: path and body.
pub struct Asked {
    /// The path.
    pub path: String,
    /// The body; of a GET null.
    pub body: Value,
}

/// By path: requests that came, that were answered, that are being answered.
#[derive(Clone, Copy, Debug, Default)]
pub struct Count {
    /// That came.
    pub came: u64,
    /// That were answered.
    pub answered: u64,
}

type Behave = dyn Fn(&Asked) -> Reply + Send + Sync;

/// A running server; it ends with the test.
pub struct Candidate {
    /// Its address.
    pub address: SocketAddr,
    counts: Arc<Mutex<BTreeMap<String, Count>>>,
}

impl Candidate {
    /// Starts one.
    pub fn start(behave: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let counts: Arc<Mutex<BTreeMap<String, Count>>> = Arc::default();
        let (behave, told): (Arc<Behave>, _) = (Arc::new(behave), counts.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (behave, told) = (behave.clone(), told.clone());
                std::thread::spawn(move || {
                    // Whoever asked may be killed at any moment.
                    let _ = serve(&stream, &*behave, &told);
                });
            }
        });
        Self { address, counts }
    }

    /// A URL with this path.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// What came so far on a path.
    pub fn count(&self, path: &str) -> Count {
        self.counts.lock().unwrap().get(path).copied().unwrap_or_default()
    }
}

fn serve(
    stream: &TcpStream,
    behave: &Behave,
    counts: &Mutex<BTreeMap<String, Count>>,
) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream);
    let mut writer = stream;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let path = line.split(' ').nth(1).unwrap_or("/").to_owned();
        let mut length = 0;
        loop {
            let mut header = String::new();
            reader.read_line(&mut header)?;
            let header = header.trim().to_ascii_lowercase();
            if header.is_empty() {
                break;
            }
            if let Some(value) = header.strip_prefix("content-length:") {
                length = value.trim().parse().unwrap_or(0);
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        let asked = Asked { path: path.clone(), body: serde_json::from_slice(&body).unwrap_or(Value::Null) };
        counts.lock().unwrap().entry(path.clone()).or_default().came += 1;
        let (status, text) = match behave(&asked) {
            Reply::Answer(answer) => (200, answer.to_string()),
            Reply::Status(status, text) => (status, text),
            Reply::Gone => return Ok(()),
            Reply::After(wait, answer) => {
                std::thread::sleep(wait);
                (200, answer.to_string())
            }
            Reply::Endless(size) => {
                write!(writer, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n")?;
                let piece = vec![b' '; size];
                loop {
                    writer.write_all(&piece)?;
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
        };
        write!(
            writer,
            "HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{text}",
            text.len()
        )?;
        writer.flush()?;
        counts.lock().unwrap().entry(path).or_default().answered += 1;
    }
}

/// The usual answer.
pub fn found(count: u64) -> Value {
    json!({"status": "ok", "result": {"found": count}})
}

/// Holds requests back until it is opened.
#[derive(Default)]
pub struct Gate {
    state: Mutex<(bool, u64)>,
    changed: Condvar,
}

impl Gate {
    /// Whether requests are held from now on.
    pub fn close(&self, closed: bool) {
        self.state.lock().unwrap().0 = closed;
        self.changed.notify_all();
    }

    /// Requests that are held now.
    pub fn held(&self) -> u64 {
        self.state.lock().unwrap().1
    }

    /// Waits until it is open.
    pub fn pass(&self) {
        let mut state = self.state.lock().unwrap();
        if !state.0 {
            return;
        }
        state.1 += 1;
        while state.0 {
            state = self.changed.wait(state).unwrap();
        }
        state.1 -= 1;
    }
}
