//! A real S3 server: Python's moto.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::python::{self, Environment};

const MOTO: Environment = Environment { name: "moto-5.2.5", packages: &["moto[server]==5.2.5"] };

/// Ends with this process, however that ends: its standard input is then closed.
const SERVE: &str = "
import os, sys, threading
threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
from moto.server import main
main(['-H', '127.0.0.1', '-p', sys.argv[1]] + sys.argv[2:])
";

/// An authority and a certificate for 127.0.0.1 by it, written to a folder.
const CERTIFY: &str = "
import datetime, ipaddress, sys
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
now = datetime.datetime.now(datetime.timezone.utc)
def made(name, key, issuer, signer, ca, extra=None):
    name, issuer = (x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, n)]) for n in (name, issuer))
    b = (x509.CertificateBuilder().subject_name(name).issuer_name(issuer).public_key(key.public_key())
         .serial_number(x509.random_serial_number()).not_valid_before(now - datetime.timedelta(days=1))
         .not_valid_after(now + datetime.timedelta(days=30))
         .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True))
    if extra:
        b = b.add_extension(extra, critical=False)
    return b.sign(signer, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
root, leaf = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
san = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address('127.0.0.1'))])
def write(name, data):
    with open(sys.argv[1] + '/' + name, 'wb') as f:
        f.write(data)
write('ca.pem', made('test authority', root, 'test authority', root, True))
write('cert.pem', made('127.0.0.1', leaf, 'test authority', root, False, san))
write('key.pem', leaf.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
                                    serialization.NoEncryption()))
";

const SECURE_BUCKET: &str = "
import ssl, sys, urllib.request
context = ssl.create_default_context(cafile=sys.argv[3])
context.verify_flags &= ~ssl.VERIFY_X509_STRICT
request = urllib.request.Request('https://%s/%s' % (sys.argv[1], sys.argv[2]), method='PUT')
urllib.request.urlopen(request, context=context)
";

/// A running server.
pub struct Moto {
    child: Child,
    /// Where it listens.
    pub address: SocketAddr,
}

impl Moto {
    /// Starts one on a free port; `None`, with a message, where Python or the package index is missing.
    /// `LASTCALL_SERVICES=required` makes that a failure.
    pub fn start() -> Option<Self> {
        Self::start_with(|_| Vec::new())
    }

    /// The same behind TLS, with a bucket; the authority is `ca.pem` in the folder.
    pub fn start_secure(folder: &Path, bucket: &str) -> Option<Self> {
        let file = |name: &str| folder.join(name).to_str().unwrap().to_owned();
        let ran = |command: &mut Command| assert!(command.status().unwrap().success(), "{command:?}");
        let moto = Self::start_with(|python| {
            ran(Command::new(python).args(["-c", CERTIFY]).arg(folder));
            vec!["-c".to_owned(), file("cert.pem"), "-k".to_owned(), file("key.pem")]
        })?;
        let address = moto.address.to_string();
        ran(Command::new(python::environment(MOTO, "no S3 server to test against")?).args([
            "-c",
            SECURE_BUCKET,
            &address,
            bucket,
            &file("ca.pem"),
        ]));
        Some(moto)
    }

    fn start_with(arguments: impl FnOnce(&Path) -> Vec<String>) -> Option<Self> {
        let python = python::environment(MOTO, "no S3 server to test against")?;
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let address: SocketAddr = ([127, 0, 0, 1], port).into();
        let child = Command::new(&python)
            .args(["-c", SERVE, &port.to_string()])
            .args(arguments(&python))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut moto = Self { child, address };
        let begun = Instant::now();
        while TcpStream::connect(address).is_err() {
            assert!(moto.child.try_wait().unwrap().is_none(), "moto ended at once");
            assert!(begun.elapsed() < Duration::from_secs(60), "moto does not listen");
            std::thread::sleep(Duration::from_millis(50));
        }
        Some(moto)
    }

    /// Makes a bucket.
    pub fn bucket(&self, name: &str) {
        let mut stream = TcpStream::connect(self.address).unwrap();
        let host = self.address;
        write!(
            stream,
            "PUT /{name} HTTP/1.1\r\nHost: {host}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
}

impl Drop for Moto {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
