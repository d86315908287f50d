//! Where a ledger lies, as people write it: a folder, or `s3://bucket/prefix`.

use std::fmt;
use std::path::{Path, PathBuf};

const SCHEME: &str = "s3://";

/// A place for a ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// A folder on a local disk.
    Folder(PathBuf),
    /// A bucket of an S3-compatible store, and a prefix in it.
    Bucket {
        /// The bucket's name.
        bucket: String,
        /// Without slashes at its ends; empty for the whole bucket.
        prefix: String,
    },
}

impl Location {
    /// Reads a command's argument. Whatever has no scheme is a folder; the error says what is wrong with an address.
    pub fn of(place: &Path) -> Result<Self, String> {
        let Some(text) = place.to_str() else { return Ok(Self::Folder(place.to_owned())) };
        let Some(rest) = text.strip_prefix(SCHEME) else {
            return match text.split_once("://") {
                Some((scheme, _)) if scheme.bytes().all(|b| b.is_ascii_alphanumeric()) => Err(format!(
                    "`{text}`: no ledger can lie at {scheme}://; give a folder, or s3://BUCKET/PREFIX for any \
                     S3-compatible store (AWS_ENDPOINT_URL names the server)"
                )),
                _ => Ok(Self::Folder(place.to_owned())),
            };
        };
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let fits = |b: u8| b.is_ascii_alphanumeric() || b"-._".contains(&b);
        if bucket.is_empty() || bucket.len() > 255 || bucket.starts_with('.') || !bucket.bytes().all(fits) {
            return Err(format!("`{text}`: `{bucket}` cannot name a bucket; write s3://BUCKET/PREFIX"));
        }
        let prefix = prefix.trim_end_matches('/');
        if let Err(error) = object_store::path::Path::parse(prefix) {
            return Err(format!("`{text}`: {error}; write s3://BUCKET/PREFIX"));
        }
        Ok(Self::Bucket { bucket: bucket.to_owned(), prefix: prefix.to_owned() })
    }

    /// The place of a file in it, for messages and for other tools.
    pub fn file(&self, path: &str) -> String {
        match self {
            Self::Folder(folder) => folder.join(path).display().to_string(),
            Self::Bucket { bucket, prefix } if prefix.is_empty() => format!("{SCHEME}{bucket}/{path}"),
            Self::Bucket { bucket, prefix } => format!("{SCHEME}{bucket}/{prefix}/{path}"),
        }
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(folder) => write!(f, "{}", folder.display()),
            Self::Bucket { bucket, prefix } if prefix.is_empty() => write!(f, "{SCHEME}{bucket}"),
            Self::Bucket { bucket, prefix } => write!(f, "{SCHEME}{bucket}/{prefix}"),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<Location, String> {
        Location::of(Path::new(text))
    }

    #[test]
    fn a_folder_or_a_bucket() {
        for folder in ["ledger", "/a/b", "./s3", "s3:/x", "C:\\ledger", "a b/://c"] {
            assert_eq!(of(folder).unwrap(), Location::Folder(PathBuf::from(folder)));
        }
        let bucket = |bucket: &str, prefix: &str| {
            Ok(Location::Bucket { bucket: bucket.to_owned(), prefix: prefix.to_owned() })
        };
        assert_eq!(of("s3://b"), bucket("b", ""));
        assert_eq!(of("s3://b/"), bucket("b", ""));
        assert_eq!(of("s3://my-bucket.x/a/b/"), bucket("my-bucket.x", "a/b"));
        assert_eq!(of("s3://b/a").unwrap().file("ledger.json"), "s3://b/a/ledger.json");
        assert_eq!(of("s3://b").unwrap().file("ledger.json"), "s3://b/ledger.json");
        assert_eq!(of("s3://b/a/").unwrap().to_string(), "s3://b/a");
        for wrong in ["s3://", "s3:///x", "s3://b c/x", "s3://b?x/y", "s3://b/a//b", "s3://b/../x", "s3://.."]
        {
            assert!(of(wrong).unwrap_err().contains("s3://BUCKET/PREFIX"), "{wrong}");
        }
        assert!(of("gs://bucket/x").unwrap_err().contains("AWS_ENDPOINT_URL"));
    }
}
