//! What an answer means: done, surely not done, nobody knows, or no; and what to do about a no.

use object_store::client::HttpErrorKind;

use super::config::S3Config;
use super::watch::Seen;

/// Why an attempt did not do what was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// Nothing stands there.
    Absent,
    /// Something stands there already.
    Exists,
    /// Surely not done, and it may be asked again: refused for its rate, or never sent.
    NotDone(String),
    /// It may have been done or not.
    Unclear(String),
    /// No, and asking again will not help. The text says the next step.
    Refused(String),
}

/// Where instances and containers of AWS ask for their credentials.
const METADATA_HOSTS: [&str; 3] = ["169.254.169.254", "169.254.170.2", "169.254.170.23"];

/// Reads what was seen of a failed attempt; `error` is what `object_store` made of it.
pub(super) fn failure(seen: &Seen, error: &str, config: &S3Config) -> Failure {
    let Some(status) = seen.status else {
        return match &seen.silence {
            Some((kind, text)) => silence(*kind, text, seen, config),
            // Nothing was sent: a variable, a token file, an address.
            None => Failure::Refused(error.to_owned()),
        };
    };
    let code = seen.code.as_deref().unwrap_or_default();
    let said = match (&seen.code, &seen.message) {
        (Some(code), Some(message)) => format!("{status} {code}: {message}"),
        (Some(code), None) => format!("{status} {code}"),
        _ => format!("{status}"),
    };
    if METADATA_HOSTS.contains(&seen.host.as_str()) {
        return match status {
            429 | 500..=599 => Failure::NotDone(format!("the source of credentials answered {said}")),
            _ => Failure::Refused(format!("the source of credentials answered {said}; {SET_KEYS}")),
        };
    }
    let refused = |what: String| Failure::Refused(format!("{what} ({said})"));
    let bucket = &config.bucket;
    match (status, code) {
        // The answer began, and broke off.
        (200..=299, _) => Failure::Unclear(format!("the answer broke off: {error}")),
        (_, "NoSuchBucket") => refused(format!(
            "there is no bucket `{bucket}` at {}; make it, or check its name and AWS_ENDPOINT_URL",
            at(config)
        )),
        (404, _) => Failure::Absent,
        (304 | 412, _) => Failure::Exists,
        // Another conditional write to the same place is under way; whose, the answer does not say.
        (409, _) => Failure::Unclear(said),
        (429, _) | (503, "SlowDown" | "ServiceUnavailable" | "Throttling") => Failure::NotDone(said),
        (408, _) | (400, "RequestTimeout") => Failure::Unclear(said),
        (501, _) => refused(
            "the store does not know a part of the request; a ledger needs conditional create (If-None-Match): use a \
             store or a version that has it"
                .to_owned(),
        ),
        (500..=599, _) => Failure::Unclear(said),
        (300..=399, _) | (400, "AuthorizationHeaderMalformed" | "IllegalLocationConstraintException") => {
            let region = seen.region.as_ref().map(|r| format!(": set AWS_REGION={r}"));
            refused(format!(
                "the bucket `{bucket}` is in another region{}",
                region.unwrap_or_else(|| "; set AWS_REGION to it".to_owned())
            ))
        }
        (_, "RequestTimeTooSkewed" | "RequestExpired") => {
            refused("this machine's clock is too far from the store's; set it right".to_owned())
        }
        (_, "InvalidAccessKeyId") => {
            refused("the store does not know the key in AWS_ACCESS_KEY_ID; check it".to_owned())
        }
        (_, "SignatureDoesNotMatch") => {
            refused("AWS_SECRET_ACCESS_KEY does not belong to AWS_ACCESS_KEY_ID; check both".to_owned())
        }
        (_, "ExpiredToken" | "InvalidToken" | "TokenRefreshRequired") => {
            refused("the credentials have expired; get new ones (AWS_SESSION_TOKEN)".to_owned())
        }
        (401 | 403, _) => refused(format!(
            "access to the bucket `{bucket}` was denied; the key needs s3:GetObject, s3:PutObject and s3:ListBucket \
             (without the last one S3 answers so for what does not exist)"
        )),
        _ => Failure::Refused(format!("the store answered {said}")),
    }
}

const SET_KEYS: &str = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or give this machine a role";

fn at(config: &S3Config) -> &str {
    config.endpoint().unwrap_or("AWS")
}

fn silence(kind: HttpErrorKind, text: &str, seen: &Seen, config: &S3Config) -> Failure {
    if METADATA_HOSTS.contains(&seen.host.as_str()) {
        return Failure::NotDone(format!("there are no credentials; {SET_KEYS} ({text})"));
    }
    if text.contains("certificate") {
        return Failure::Refused(format!(
            "{} cannot prove who it is: {text}; AWS_CA_BUNDLE names a file of certificates to trust beside the system's",
            at(config)
        ));
    }
    match kind {
        HttpErrorKind::Connect => {
            Failure::NotDone(format!("{} cannot be reached (AWS_ENDPOINT_URL): {text}", at(config)))
        }
        _ => Failure::Unclear(text.to_owned()),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests {
    use super::*;

    fn config() -> S3Config {
        S3Config { variables: Default::default(), ..S3Config::from_env("books", "x").unwrap() }
    }

    fn answered(status: u16, code: &str) -> Failure {
        let code = (!code.is_empty()).then(|| code.to_owned());
        let seen = Seen { host: "s3".to_owned(), status: Some(status), code, ..Seen::default() };
        failure(&seen, "error", &config())
    }

    fn silent(host: &str, kind: HttpErrorKind, text: &str) -> Failure {
        let silence = Some((kind, text.to_owned()));
        failure(&Seen { host: host.to_owned(), silence, ..Seen::default() }, "error", &config())
    }

    #[test]
    fn only_a_clear_answer_is_taken_for_one() {
        assert_eq!(answered(404, "NoSuchKey"), Failure::Absent);
        assert_eq!(answered(404, ""), Failure::Absent);
        assert_eq!(answered(412, "PreconditionFailed"), Failure::Exists);
        assert_eq!(answered(304, ""), Failure::Exists);
        for (status, code) in [
            (409, "ConditionalRequestConflict"),
            (500, "InternalError"),
            (502, ""),
            (503, ""),
            (504, ""),
            (408, ""),
        ] {
            assert!(matches!(answered(status, code), Failure::Unclear(_)), "{status}");
        }
        assert!(matches!(answered(200, ""), Failure::Unclear(_)), "the body broke off");
        assert!(matches!(answered(503, "SlowDown"), Failure::NotDone(_)));
        assert!(matches!(answered(429, ""), Failure::NotDone(_)));
        assert!(matches!(silent("s3", HttpErrorKind::Connect, "refused"), Failure::NotDone(_)));
        for kind in [
            HttpErrorKind::Timeout,
            HttpErrorKind::Request,
            HttpErrorKind::Interrupted,
            HttpErrorKind::Unknown,
        ] {
            assert!(matches!(silent("s3", kind, "cut"), Failure::Unclear(_)), "{kind:?}");
        }
    }

    #[test]
    fn a_no_says_the_next_step() {
        for (status, code, step) in [
            (404, "NoSuchBucket", "no bucket `books`"),
            (301, "PermanentRedirect", "AWS_REGION"),
            (400, "AuthorizationHeaderMalformed", "AWS_REGION"),
            (403, "RequestTimeTooSkewed", "clock"),
            (403, "InvalidAccessKeyId", "AWS_ACCESS_KEY_ID"),
            (403, "SignatureDoesNotMatch", "AWS_SECRET_ACCESS_KEY"),
            (400, "ExpiredToken", "AWS_SESSION_TOKEN"),
            (403, "AccessDenied", "s3:ListBucket"),
            (401, "", "s3:PutObject"),
            (501, "NotImplemented", "If-None-Match"),
            (400, "InvalidRequest", "400 InvalidRequest"),
        ] {
            match answered(status, code) {
                Failure::Refused(text) => assert!(text.contains(step), "{status} {code}: {text}"),
                other => panic!("{status} {code}: {other:?}"),
            }
        }
        let tls = silent("s3", HttpErrorKind::Connect, "invalid peer certificate: UnknownIssuer");
        assert!(matches!(&tls, Failure::Refused(text) if text.contains("AWS_CA_BUNDLE")), "{tls:?}");
        let none = silent("169.254.169.254", HttpErrorKind::Timeout, "timed out");
        assert!(matches!(&none, Failure::NotDone(text) if text.contains("AWS_ACCESS_KEY_ID")), "{none:?}");
        let seen = Seen { status: Some(301), region: Some("eu-west-3".to_owned()), ..Seen::default() };
        let moved = failure(&seen, "", &config());
        assert!(
            matches!(&moved, Failure::Refused(text) if text.contains("AWS_REGION=eu-west-3")),
            "{moved:?}"
        );
    }
}
