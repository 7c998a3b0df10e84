//! Signing keys and their file formats: PEM, and TOML files for trusted keys.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose;
use serde::Deserialize;

use crate::error::{Error, Kind, Result};
use crate::text::hash::sha256_hex;

/// The DER bytes before the 32 bytes of a private key in PKCS #8.
const PRIVATE_PREFIX: [u8; 16] =
    [0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20];
/// The DER bytes before the 32 bytes of a public key.
const PUBLIC_PREFIX: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];

/// A private key. It is never printed, and its memory is cleared on drop.
pub struct SigningKey(pub(super) ed25519_dalek::SigningKey);

impl SigningKey {
    /// Creates a key from 32 random bytes.
    pub fn from_bytes(bytes: &[u8; 32]) -> Self {
        Self(ed25519_dalek::SigningKey::from_bytes(bytes))
    }

    /// Parses a private key in PEM.
    ///
    /// # Errors
    /// Returns an error if the text is not an Ed25519 private key. The error never quotes the text.
    pub fn from_pem(pem: &str) -> Result<Self> {
        let wrong = || {
            Error::new(Kind::InvalidKey, "expected an Ed25519 private key in PEM format")
                .with_help("create one with `tympan keygen KEY`")
        };
        let der = from_pem(pem, "PRIVATE KEY").ok_or_else(wrong)?;
        let bytes = der
            .strip_prefix(PRIVATE_PREFIX.as_slice())
            .and_then(|bytes| bytes.first_chunk::<32>().filter(|_| bytes.len() == 32));
        bytes.map(Self::from_bytes).ok_or_else(wrong)
    }

    /// Returns the key in PEM. Store it in a file that only its owner can read.
    pub fn to_pem(&self) -> String {
        to_pem("PRIVATE KEY", &[PRIVATE_PREFIX.as_slice(), &self.0.to_bytes()].concat())
    }

    /// Returns the public key that verifies this key's signatures.
    pub fn public_key(&self) -> PublicKey {
        PublicKey(self.0.verifying_key())
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningKey({})", crate::spec::REDACTED)
    }
}

/// A public key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicKey(pub(super) ed25519_dalek::VerifyingKey);

impl PublicKey {
    /// Parses a public key in PEM.
    ///
    /// # Errors
    /// Returns an error if the text is not an Ed25519 public key, or if the key is weak: a weak key accepts forged
    /// signatures.
    pub fn from_pem(pem: &str) -> Result<Self> {
        let wrong = || Error::new(Kind::InvalidKey, "expected an Ed25519 public key in PEM format");
        let der = from_pem(pem, "PUBLIC KEY").ok_or_else(wrong)?;
        let bytes = der
            .strip_prefix(PUBLIC_PREFIX.as_slice())
            .and_then(|bytes| bytes.first_chunk::<32>().filter(|_| bytes.len() == 32));
        let key = bytes.and_then(|bytes| ed25519_dalek::VerifyingKey::from_bytes(bytes).ok()).ok_or_else(wrong)?;
        if key.is_weak() {
            return Err(Error::new(Kind::InvalidKey, "the key is weak: signatures for it can be forged"));
        }
        Ok(Self(key))
    }

    /// Returns the key in PEM.
    pub fn to_pem(&self) -> String {
        to_pem("PUBLIC KEY", &[PUBLIC_PREFIX.as_slice(), self.0.as_bytes()].concat())
    }

    /// Returns the key's fingerprint in Rye's format: the first 16 hexadecimal digits of the SHA-256 of the PEM text.
    pub fn fingerprint(&self) -> String {
        let mut digits = sha256_hex(self.to_pem());
        digits.truncate(16);
        digits
    }
}

/// A trusted public key and its owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustedKey {
    /// The key.
    pub key: PublicKey,
    /// The owner's name.
    pub owner: Option<String>,
    fingerprint: String,
}

/// The TOML file of a trusted key, in Rye's format.
#[derive(Deserialize)]
struct File {
    fingerprint: String,
    owner: Option<String>,
    public_key: FileKey,
}

#[derive(Deserialize)]
struct FileKey {
    pem: String,
}

impl TrustedKey {
    /// Creates a trusted key.
    pub fn new(key: PublicKey, owner: Option<String>) -> Self {
        let fingerprint = key.fingerprint();
        Self { key, owner, fingerprint }
    }

    /// Returns the key's fingerprint. See [`PublicKey::fingerprint`].
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    /// Parses the TOML file of a trusted key.
    ///
    /// # Errors
    /// Returns an error if the file does not have the expected fields, or if its fingerprint belongs to another key.
    pub fn from_toml(text: &str) -> Result<Self> {
        let file: File = toml::from_str(text).map_err(|error| {
            Error::new(Kind::InvalidKey, error.message())
                .with_help("a key file has `fingerprint`, `owner` and, under `[public_key]`, `pem`")
        })?;
        let key = Self::new(PublicKey::from_pem(&file.public_key.pem)?, file.owner.filter(|owner| !owner.is_empty()));
        if key.fingerprint != file.fingerprint {
            let details = format!("the fingerprint does not match the key, whose fingerprint is {}", key.fingerprint);
            return Err(Error::new(Kind::InvalidKey, details));
        }
        Ok(key)
    }

    /// Returns the key as a TOML file.
    pub fn to_toml(&self) -> String {
        let owner = self.owner.as_deref().unwrap_or_default();
        // JSON strings are valid TOML basic strings, except that TOML requires U+007F to be escaped.
        let owner = serde_json::Value::from(owner).to_string().replace('\u{7f}', "\\u007f");
        let (fingerprint, pem) = (&self.fingerprint, self.key.to_pem());
        format!(
            "fingerprint = \"{fingerprint}\"\nowner = {owner}\nattestation = \"\"\n\n[public_key]\npem = \"\"\"\n{pem}\"\"\"\n"
        )
    }
}

fn to_pem(label: &str, der: &[u8]) -> String {
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", general_purpose::STANDARD.encode(der))
}

/// Decodes the bytes between the BEGIN and END lines of a PEM text.
fn from_pem(text: &str, label: &str) -> Option<Vec<u8>> {
    let (_, rest) = text.split_once(&format!("-----BEGIN {label}-----"))?;
    let (inside, _) = rest.split_once(&format!("-----END {label}-----"))?;
    let digits: String = inside.split_whitespace().collect();
    general_purpose::STANDARD.decode(digits).ok()
}

/// Encodes bytes in Rye's variant of base64: the URL-safe alphabet, with padding.
pub(super) fn encode(bytes: &[u8]) -> String {
    general_purpose::URL_SAFE.encode(bytes)
}

/// Decodes base64, but only in the exact form that [`encode`] writes: URL-safe alphabet, padding, and no stray bits at
/// the end. Otherwise the same signature could be written in several ways.
pub(super) fn decode(text: &str) -> Option<Vec<u8>> {
    general_purpose::URL_SAFE.decode(text).ok().filter(|bytes| encode(bytes) == text)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A key generated by OpenSSL, and the fingerprint that its tools print.
    #[test]
    fn keys_are_written_as_others_write_them() {
        let pem = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g\n-----END PRIVATE KEY-----\n";
        // The secret and public key from RFC 8032, section 7.1, test 1.
        let key = SigningKey::from_pem(pem).expect("it is a key");
        let public = "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=\n-----END PUBLIC KEY-----\n";
        assert_eq!(key.to_pem(), pem);
        assert_eq!(key.public_key().to_pem(), public);
        assert_eq!(PublicKey::from_pem(public).expect("it is a key"), key.public_key());
        assert_eq!(format!("{key:?}"), "SigningKey([REDACTED])");
    }

    #[test]
    fn files_of_keys_are_read_again() {
        let key = SigningKey::from_bytes(&[3; 32]).public_key();
        for owner in [Some("ada"), Some("a \"quoted\" \\ näme\n\u{7f}"), None] {
            let trusted = TrustedKey::new(key.clone(), owner.map(str::to_owned));
            assert_eq!(TrustedKey::from_toml(&trusted.to_toml()).expect("it is read"), trusted);
        }
        let toml = TrustedKey::new(key, None).to_toml();
        let other = toml.replacen(&toml[15..31], "0123456789abcdef", 1);
        assert!(TrustedKey::from_toml(&other).expect_err("it is refused").message().contains("does not match the key"));
        for text in ["", "fingerprint = 3", "fingerprint = \"a\"\n[public_key]\npem = \"x\""] {
            assert_eq!(TrustedKey::from_toml(text).expect_err("it is refused").kind(), Kind::InvalidKey);
        }
        // Lax implementations accept any signature for the neutral element.
        let weak = to_pem("PUBLIC KEY", &[PUBLIC_PREFIX.as_slice(), &[1], &[0; 31]].concat());
        assert!(PublicKey::from_pem(&weak).expect_err("it is refused").message().contains("weak"));
    }

    #[test]
    fn base64_is_read_in_one_form() {
        assert_eq!(decode("-__-AQ==").as_deref(), Some([0xfb, 0xff, 0xfe, 0x01].as_slice()));
        // No padding, the standard alphabet, both of these, stray bits at the end, too much padding.
        for text in
            ["-__-AQ", "-__-AQ=", "+//+AQ==", "+//+AQ", "-//-AQ==", "-__-AR==", "-__-AQ===", "-__-AQ==\n", "a b"]
        {
            assert_eq!(decode(text), None, "{text}");
        }
    }
}
