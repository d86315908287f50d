//! What an S3 store needs to know, from the usual `AWS_*` variables; what is missing is named before the first request.

use std::collections::BTreeMap;
use std::time::Duration;

use object_store::aws::{AmazonS3, AmazonS3Builder, S3ConditionalPut};
use object_store::{Certificate, ClientOptions, RetryConfig};

use super::watch::WatchedConnector;

/// How long one request may stay without an answer.
const TIMEOUT: Duration = Duration::from_secs(30);
/// How long an operation is repeated while the store does not answer as it should.
const PATIENCE: Duration = Duration::from_secs(120);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// A bucket, a prefix and how to reach them.
#[derive(Clone)]
pub struct S3Config {
    /// The bucket.
    pub bucket: String,
    /// The prefix of every path, without slashes at its ends; empty for the whole bucket.
    pub prefix: String,
    /// `AWS_*` variables by name, as the tools of AWS read them from the environment. Secrets.
    pub variables: BTreeMap<String, String>,
    /// How long one request may stay without an answer; a large body gets more.
    pub timeout: Duration,
    /// How long an operation is repeated while the store does not answer as it should.
    pub patience: Duration,
}

impl S3Config {
    /// Reads `AWS_*`, `LASTCALL_S3_TIMEOUT` and `LASTCALL_S3_PATIENCE` (seconds) from the environment. The error names a
    /// variable that cannot be read.
    pub fn from_env(bucket: &str, prefix: &str) -> Result<Self, String> {
        let variables = std::env::vars_os().filter_map(|(name, value)| {
            let (name, value) = (name.into_string().ok()?, value.into_string().ok()?);
            (name.starts_with("AWS_") && !value.is_empty()).then_some((name, value))
        });
        let text = |name: &str| std::env::var(name).ok();
        Ok(Self {
            bucket: bucket.to_owned(),
            prefix: prefix.to_owned(),
            variables: variables.collect(),
            timeout: seconds("LASTCALL_S3_TIMEOUT", text("LASTCALL_S3_TIMEOUT"), TIMEOUT)?,
            patience: seconds("LASTCALL_S3_PATIENCE", text("LASTCALL_S3_PATIENCE"), PATIENCE)?,
        })
    }

    fn variable(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str)
    }

    fn is_on(&self, name: &str) -> bool {
        self.variable(name)
            .is_some_and(|v| ["1", "true", "on", "yes", "y"].contains(&v.to_lowercase().as_str()))
    }

    /// The server's address, if it is not AWS's own.
    pub(super) fn endpoint(&self) -> Option<&str> {
        ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"]
            .iter()
            .find_map(|name| self.variable(name))
    }

    /// Names the variable that is missing, before a request is made.
    fn check(&self) -> Result<(), String> {
        let has = |name: &str| self.variable(name).is_some();
        let missing =
            |name: &str, other: &str| Err(format!("{other} is set, but {name} is not: set {name} too"));
        match (has("AWS_ACCESS_KEY_ID"), has("AWS_SECRET_ACCESS_KEY")) {
            (true, false) => return missing("AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY_ID"),
            (false, true) => return missing("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"),
            (true, true) => {}
            (false, false) => self.check_other_credentials()?,
        }
        match self.endpoint() {
            None if !has("AWS_REGION") && !has("AWS_DEFAULT_REGION") => Err(
                "AWS_REGION is not set: set it to the bucket's region, or AWS_ENDPOINT_URL for a server that is not \
                 AWS's"
                    .to_owned(),
            ),
            Some(url) if url.starts_with("http://") && !self.is_on("AWS_ALLOW_HTTP") => Err(
                "AWS_ENDPOINT_URL begins with http://, which encrypts nothing: give an https:// address, or set \
                 AWS_ALLOW_HTTP=true if the network between is yours"
                    .to_owned(),
            ),
            Some(url) if !url.starts_with("http://") && !url.starts_with("https://") => {
                Err(format!("AWS_ENDPOINT_URL is `{url}`: it must begin with https://"))
            }
            _ => Ok(()),
        }
    }

    fn check_other_credentials(&self) -> Result<(), String> {
        let has = |name: &str| self.variable(name).is_some();
        let missing =
            |name: &str, other: &str| Err(format!("{other} is set, but {name} is not: set {name} too"));
        if self.is_on("AWS_SKIP_SIGNATURE") || has("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI") {
            return Ok(());
        }
        if has("AWS_CONTAINER_CREDENTIALS_FULL_URI") {
            return match has("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE") {
                true => Ok(()),
                false => {
                    missing("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_FULL_URI")
                }
            };
        }
        if has("AWS_WEB_IDENTITY_TOKEN_FILE") {
            return match has("AWS_ROLE_ARN") {
                true => Ok(()),
                false => missing("AWS_ROLE_ARN", "AWS_WEB_IDENTITY_TOKEN_FILE"),
            };
        }
        if has("AWS_PROFILE") {
            return Err("AWS_PROFILE is set, but profiles are not read and AWS_ACCESS_KEY_ID and \
                AWS_SECRET_ACCESS_KEY are not set; `eval \"$(aws configure export-credentials --format env)\"` sets them"
                .to_owned());
        }
        // On a machine of AWS the instance's own role is asked; another server has no such thing.
        match self.endpoint() {
            Some(_) => Err("AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not set: set both".to_owned()),
            None => Ok(()),
        }
    }

    /// The client; the error names what is missing or cannot be read.
    pub(super) fn client(&self) -> Result<AmazonS3, String> {
        self.check()?;
        // Both may stand in one process: the first one stays.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let plain = self.endpoint().is_some_and(|url| url.starts_with("http://"));
        let mut options = ClientOptions::new()
            // An attempt's limits are the store's own: a limit on the whole would cut a large upload.
            .with_timeout_disabled()
            .with_connect_timeout(CONNECT_TIMEOUT.min(self.timeout))
            // Without TLS nobody asks for certificates, which a small container may not have.
            .with_no_system_certificates(plain);
        if let Some(file) = self.variable("AWS_CA_BUNDLE").filter(|_| !plain) {
            let pem = std::fs::read(file).map_err(|e| format!("AWS_CA_BUNDLE names {file}: {e}"))?;
            let trusted =
                Certificate::from_pem_bundle(&pem).map_err(|e| format!("AWS_CA_BUNDLE names {file}: {e}"))?;
            options = trusted.into_iter().fold(options, ClientOptions::with_root_certificate);
        }
        let mut builder = AmazonS3Builder::new().with_client_options(options);
        for (name, value) in &self.variables {
            if let Ok(key) = name.to_ascii_lowercase().parse() {
                builder = builder.with_config(key, value);
            }
        }
        builder
            .with_bucket_name(&self.bucket)
            .with_http_connector(WatchedConnector)
            .with_conditional_put(S3ConditionalPut::ETagMatch)
            // One DELETE a file: not every store knows the other way.
            .with_disable_bulk_delete(true)
            // Whether an attempt may be repeated depends on what it was and what came of it: the store repeats.
            .with_retry(RetryConfig { max_retries: 0, ..RetryConfig::default() })
            .build()
            .map_err(|e| e.to_string())
    }
}

fn seconds(name: &str, given: Option<String>, otherwise: Duration) -> Result<Duration, String> {
    match given.as_deref().map(str::trim) {
        None | Some("") => Ok(otherwise),
        Some(text) => match text.parse::<u32>() {
            Ok(seconds) if seconds > 0 => Ok(Duration::from_secs(seconds.into())),
            _ => Err(format!("{name} is `{text}`: give whole seconds, 1 or more")),
        },
    }
}

/// Secrets are not printed.
impl std::fmt::Debug for S3Config {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("S3Config")
            .field("bucket", &self.bucket)
            .field("prefix", &self.prefix)
            .field("variables", &self.variables.keys())
            .field("timeout", &self.timeout)
            .field("patience", &self.patience)
            .finish()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn refused(variables: &[(&str, &str)]) -> String {
        let variables = variables.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
        let config = S3Config { variables, ..S3Config::from_env("bucket", "x").unwrap() };
        config.check().err().unwrap_or_default()
    }

    #[test]
    fn the_missing_variable_is_named() {
        let key = ("AWS_ACCESS_KEY_ID", "AKIA");
        let secret = ("AWS_SECRET_ACCESS_KEY", "hunter2");
        let region = ("AWS_REGION", "eu-west-1");
        let local = ("AWS_ENDPOINT_URL", "http://localhost:9000");
        assert_eq!(refused(&[key, secret, region]), "");
        assert_eq!(refused(&[key, secret, ("AWS_DEFAULT_REGION", "eu-west-1")]), "");
        assert_eq!(refused(&[key, secret, local, ("AWS_ALLOW_HTTP", "true")]), "");
        assert_eq!(refused(&[region]), "", "the instance's role");
        assert_eq!(refused(&[("AWS_WEB_IDENTITY_TOKEN_FILE", "/t"), ("AWS_ROLE_ARN", "arn"), region]), "");
        for (given, named) in [
            (vec![key, region], "AWS_SECRET_ACCESS_KEY is not"),
            (vec![secret, region], "AWS_ACCESS_KEY_ID is not"),
            (vec![key, secret], "AWS_REGION is not set"),
            (vec![key, secret, local], "AWS_ALLOW_HTTP=true"),
            (
                vec![local, ("AWS_ALLOW_HTTP", "true")],
                "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not set",
            ),
            (vec![key, secret, ("AWS_ENDPOINT_URL", "localhost:9000")], "must begin with https://"),
            (vec![("AWS_WEB_IDENTITY_TOKEN_FILE", "/t"), region], "AWS_ROLE_ARN is not"),
            (vec![("AWS_PROFILE", "work"), region], "export-credentials"),
            (
                vec![("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://x"), region],
                "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
            ),
        ] {
            let text = refused(&given);
            assert!(text.contains(named), "{given:?}: {text}");
            assert!(!text.contains("hunter2"), "{text}");
        }
    }

    #[test]
    fn times_are_whole_seconds() {
        let read = |text: &str| seconds("LASTCALL_S3_TIMEOUT", Some(text.to_owned()), TIMEOUT);
        assert_eq!(seconds("LASTCALL_S3_TIMEOUT", None, TIMEOUT), Ok(TIMEOUT));
        assert_eq!(read(""), Ok(TIMEOUT));
        assert_eq!(read(" 5 "), Ok(Duration::from_secs(5)));
        for wrong in ["0", "-1", "1.5", "30s", "soon"] {
            assert!(read(wrong).unwrap_err().contains("LASTCALL_S3_TIMEOUT"), "{wrong}");
        }
    }

    #[test]
    fn secrets_are_not_printed() {
        let mut config = S3Config::from_env("bucket", "x").unwrap();
        config.variables = [("AWS_SECRET_ACCESS_KEY".to_owned(), "hunter2".to_owned())].into();
        let shown = format!("{config:?}");
        assert!(shown.contains("AWS_SECRET_ACCESS_KEY") && !shown.contains("hunter2"), "{shown}");
    }
}
