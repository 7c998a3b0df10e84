//! Signatures of directives, in Rye's form or in one that covers the whole file.
//!
//! Rye's form is a comment on the first line. Its hash covers only the `<directive>` element: not the title and the
//! description before it, not the steps after it, and not the signing time. Tympan's own form covers every byte after
//! the signature line, and the time. The result of [`verify`] says which bytes the signature covers.

mod key;

use std::ops::Range;

use ed25519_dalek::{Signature, Signer};

pub use key::{PublicKey, SigningKey, TrustedKey};

use crate::error::{Error, Kind, Result};
use crate::format::directive::{after_signatures, metadata_of};
use crate::text::hash::sha256_hex;
use crate::text::source::{SourceFile, Span};

/// The form of a signature, which determines the bytes it covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Rye's form: covers the `<directive>` element.
    Rye,
    /// Tympan's form: covers every byte after the signature line.
    WholeFile,
}

impl Form {
    /// Returns the text that the signature comment starts with.
    const fn opening(self) -> &'static str {
        match self {
            Self::Rye => "<!-- rye:signed:",
            Self::WholeFile => "<!-- tympan:signed:",
        }
    }

    /// Returns the form's name, for display and for machine-readable output.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Rye => "rye",
            Self::WholeFile => "whole-file",
        }
    }
}

/// A signature line parsed from a file. Nothing about it has been verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignatureLine {
    /// The signature's form.
    pub form: Form,
    /// The signing time, as the line states it.
    pub timestamp: String,
    /// The SHA-256 of the covered bytes, in hexadecimal digits.
    pub hash: String,
    /// The fingerprint of the signing key.
    pub fingerprint: String,
    /// The signature itself, in base64.
    signature: String,
    /// The offset just after the line.
    end: usize,
}

/// A verified signature and the bytes it covers.
#[derive(Clone, Debug, PartialEq)]
pub struct Verified {
    /// The signature line.
    pub line: SignatureLine,
    /// The key's owner, as stated in the trusted key's file.
    pub owner: Option<String>,
    /// The bytes that the signature protects from changes.
    pub covered: Span,
    /// The bytes that anyone may have changed. They do not include the signature line.
    pub uncovered: Vec<Span>,
}

impl SignatureLine {
    /// Returns the signature on the first line of a text, or `None` if there is no signature.
    ///
    /// # Errors
    /// Returns an error if the first line starts like a signature but cannot be parsed.
    pub fn find(text: &str) -> Result<Option<Self>> {
        let line = text.split_inclusive('\n').next().unwrap_or_default();
        let forms = [Form::Rye, Form::WholeFile];
        let Some((form, rest)) = forms.into_iter().find_map(|form| Some((form, line.strip_prefix(form.opening())?)))
        else {
            return Ok(None);
        };
        let fields = rest.trim_end().strip_suffix("-->").map(str::trim_end);
        let fields = fields.ok_or_else(|| refused("the signature comment is not closed on its line"))?;
        // Registries append the publisher after a `|`. It says nothing about the signer.
        let fields = fields.split_once('|').map_or(fields, |(fields, _)| fields);
        let [fingerprint, signature, hash, timestamp] = fields.rsplitn(4, ':').collect::<Vec<_>>()[..] else {
            return Err(refused("expected a time, a hash, a signature and a fingerprint"));
        };
        if !is_hex(hash, 64) || !is_hex(fingerprint, 16) {
            return Err(refused("expected a hash of 64 hexadecimal digits and a fingerprint of 16")
                .with_help("sign the file; before the first signature it may contain a placeholder"));
        }
        Ok(Some(Self {
            form,
            timestamp: timestamp.to_owned(),
            hash: hash.to_owned(),
            fingerprint: fingerprint.to_owned(),
            signature: signature.to_owned(),
            end: line.len(),
        }))
    }

    /// Returns the signed message.
    fn message(&self) -> String {
        message(self.form, &self.timestamp, &self.hash)
    }
}

/// Builds the message to sign. Rye's form signs only the hash; Tympan's form adds a prefix and the time.
fn message(form: Form, timestamp: &str, hash: &str) -> String {
    match form {
        Form::Rye => hash.to_owned(),
        Form::WholeFile => format!("tympan:signed:{timestamp}:{hash}"),
    }
}

/// Verifies the signature of a directive with the trusted keys.
///
/// # Errors
/// Returns an error if there is no valid signature line, if the covered text has changed, if the key is not trusted,
/// or if the signature was not made with that key.
pub fn verify(text: &str, trusted: &[TrustedKey]) -> Result<Verified> {
    let line = SignatureLine::find(text)?.ok_or_else(|| {
        refused("no signature on the first line").with_help(
            "sign the file with `tympan sign --key \
            KEY FILE`",
        )
    })?;
    let covered = match line.form {
        Form::WholeFile => line.end..text.len(),
        Form::Rye => rye_range(text)?,
    };
    let hash = sha256_hex(&text[covered.clone()]);
    if !same(hash.as_bytes(), line.hash.as_bytes()) {
        return Err(
            refused("the signed content has changed").with_help("if the change is intended, sign the file again")
        );
    }
    let fits = |key: &&TrustedKey| same(key.fingerprint().as_bytes(), line.fingerprint.as_bytes());
    let key = trusted.iter().find(fits).ok_or_else(|| {
        refused(format_args!("key {} is not trusted", line.fingerprint))
            .with_help("if you trust the key, add its TOML file to the directory of trusted keys")
    })?;
    let bytes = key::decode(&line.signature).and_then(|bytes| Signature::from_slice(&bytes).ok());
    let is_right = bytes.is_some_and(|bytes| key.key.0.verify_strict(line.message().as_bytes(), &bytes).is_ok());
    if !is_right {
        return Err(refused(format_args!("the signature does not match the key {}", line.fingerprint))
            .with_help("the signature line has been modified"));
    }
    let rest = [line.end..covered.start, covered.end..text.len()];
    let uncovered = rest.into_iter().filter(|range| range.start < range.end).map(Span::from).collect();
    Ok(Verified { owner: key.owner.clone(), line, covered: covered.into(), uncovered })
}

/// Signs a directive and returns the text with the signature on its first line. Any existing signatures are replaced.
///
/// # Errors
/// With [`Form::Rye`], returns an error if the text has no `<directive>` element, or if other text would be covered
/// than the metadata that Tympan reads.
pub fn sign(text: &str, form: Form, timestamp: &str, key: &SigningKey) -> Result<String> {
    let content = &text[after_signatures(text)..];
    let content = content.strip_prefix('\u{feff}').unwrap_or(content);
    let covered = match form {
        Form::WholeFile => 0..content.len(),
        Form::Rye => rye_range(content)?,
    };
    let hash = sha256_hex(&content[covered]);
    let signature = key.0.sign(message(form, timestamp, &hash).as_bytes());
    let signature = key::encode(&signature.to_bytes());
    let fingerprint = key.public_key().fingerprint();
    Ok(format!("{}{timestamp}:{hash}:{signature}:{fingerprint} -->\n{content}", form.opening()))
}

/// Returns the range that Rye's signature covers: from the first `<directive …>` to the last `</directive>`. It must be
/// the same element that we read as the metadata. Otherwise a signed element could be hidden elsewhere in the file.
fn rye_range(text: &str) -> Result<Range<usize>> {
    let nothing = || {
        refused("no `<directive>` element, and a Rye signature covers only that")
            .with_help("use `tympan sign --whole-file` to cover the whole file")
    };
    let opening = |(at, _): (usize, &str)| text[at..].contains('>').then_some(at);
    let start = text.match_indices("<directive").find_map(opening).ok_or_else(nothing)?;
    let closing = "</directive>";
    let end = text.rfind(closing).filter(|end| *end > start).ok_or_else(nothing)? + closing.len();
    let metadata = metadata_of(&SourceFile::new("<signed>", text)).map(Span::range);
    let is_metadata = metadata.is_some_and(|metadata| {
        metadata.start <= start && end <= metadata.end && text[metadata.start..start].trim().is_empty()
    });
    if is_metadata {
        return Ok(start..end);
    }
    Err(refused(
        "a Rye signature covers the text from the first `<directive` to the last `</directive>`, which is not the \
            metadata here",
    )
    .with_help("use `tympan sign --whole-file` to cover the whole file"))
}

fn refused(details: impl std::fmt::Display) -> Error {
    Error::new(Kind::InvalidSignature, details)
}

fn is_hex(text: &str, length: usize) -> bool {
    text.len() == length && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Compares in constant time, so that timing does not reveal the position of the first difference.
fn same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |different, (a, b)| different | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIME: &str = "2026-02-22T02:41:03Z";
    const TEXT: &str = "# Greet\n\nSays hello.\n\n```xml\n<directive name=\"greet\" version=\"1.0.0\">\n  <metadata/>\n\
                        </directive>\n```\n\n1. Say hello.\n";

    fn keys() -> (SigningKey, Vec<TrustedKey>) {
        let key = SigningKey::from_bytes(&[7; 32]);
        let trusted = TrustedKey::new(key.public_key(), Some("ada".into()));
        (key, vec![trusted])
    }

    #[test]
    fn what_is_signed_is_verified() {
        let (key, trusted) = keys();
        for form in [Form::Rye, Form::WholeFile] {
            let signed = sign(TEXT, form, TIME, &key).expect("it is signed");
            let verified = verify(&signed, &trusted).expect("it is verified");
            assert_eq!((verified.line.form, verified.line.timestamp.as_str()), (form, TIME));
            assert_eq!(verified.owner.as_deref(), Some("ada"));
            assert_eq!(verified.uncovered.len(), if form == Form::Rye { 2 } else { 0 });
            // Signing again replaces the existing signature.
            assert_eq!(sign(&signed, form, TIME, &key).expect("it is signed"), signed);
        }
    }

    #[test]
    fn one_byte_changed_is_refused() {
        let (key, trusted) = keys();
        for form in [Form::Rye, Form::WholeFile] {
            let signed = sign(TEXT, form, TIME, &key).expect("it is signed");
            let verified = verify(&signed, &trusted).expect("it is verified");
            for at in 0..signed.len() {
                let mut bytes = signed.clone().into_bytes();
                bytes[at] ^= 1;
                let changed = String::from_utf8(bytes).expect("it is still ASCII");
                let is_covered = verified.covered.range().contains(&at);
                // On the signature line, Rye's form does not cover the time. White space before a line end is ignored.
                let is_line = at < verified.line.end;
                let outcome = verify(&changed, &trusted);
                assert!(
                    outcome.is_err() || !(is_covered || (is_line && form == Form::WholeFile)),
                    "{form:?} {at} {changed}"
                );
            }
        }
    }

    #[test]
    fn a_key_that_is_not_trusted_is_refused() {
        let (key, _) = keys();
        let other = TrustedKey::new(SigningKey::from_bytes(&[8; 32]).public_key(), None);
        let signed = sign(TEXT, Form::Rye, TIME, &key).expect("it is signed");
        let error = verify(&signed, &[other]).expect_err("it is refused");
        assert!(error.message().contains("is not trusted"), "{error}");
        let error = verify(TEXT, &[]).expect_err("it is refused");
        assert!(error.message().contains("no signature on the first line"), "{error}");
    }

    #[test]
    fn a_signature_is_written_in_one_way() {
        let (key, trusted) = keys();
        for form in [Form::Rye, Form::WholeFile] {
            let signed = sign(TEXT, form, TIME, &key).expect("it is signed");
            let signature = SignatureLine::find(&signed).expect("it reads").expect("there is one").signature;
            assert!(signature.ends_with("==") && signature.len() == 88, "{signature}");
            let mut others = vec![signature.trim_end_matches('=').to_owned(), signature.replacen("==", "=", 1)];
            others.push(signature.replace('-', "+").replace('_', "/"));
            // The last character before the padding has four unused bits.
            let (start, last) = signature[..86].split_at(85);
            let alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
            let place = alphabet.find(last).expect("it is in the alphabet");
            others.push(format!("{start}{}==", &alphabet[place + 1..place + 2]));
            for other in others.iter().filter(|other| **other != signature) {
                let error = verify(&signed.replace(&signature, other), &trusted).expect_err("it is refused");
                assert!(error.message().contains("does not match the key"), "{other}: {error}");
            }
        }
    }

    /// A signed element that is not the metadata must not lend its signature to other metadata.
    #[test]
    fn a_signed_element_has_to_be_the_metadata() {
        let (key, trusted) = keys();
        let signed = sign(TEXT, Form::Rye, TIME, &key).expect("it is signed");
        let (line, text) = signed.split_once('\n').expect("there are two lines");
        let forged = [
            format!("{line}\n---\nname: evil\npermissions: '*'\n---\n````\n{text}\n````\n"),
            format!("{line}\n````md\n{text}````\n```yaml\nname: evil\n```\n"),
        ];
        for text in forged {
            let error = verify(&text, &trusted).expect_err("it is refused");
            assert!(error.message().contains("not the metadata"), "{error}");
        }
        assert!(sign("---\nname: a\n---\nsteps", Form::Rye, TIME, &key).is_err());
        assert!(sign("---\nname: a\n---\nsteps", Form::WholeFile, TIME, &key).is_ok());
    }

    #[test]
    fn lines_are_read_as_rye_writes_them() {
        let hash = "7".repeat(64);
        let line = format!("<!-- rye:signed:{TIME}:{hash}:c2ln:9fbfabe975fa5a7f|rye-registry@ada -->\n");
        let found = SignatureLine::find(&line).expect("it reads").expect("there is one");
        assert_eq!(
            (found.timestamp.as_str(), found.hash, found.fingerprint.as_str()),
            (TIME, hash, "9fbfabe975fa5a7f")
        );
        assert_eq!(SignatureLine::find("# Title\n").expect("it reads"), None);
        for line in [
            "<!-- rye:signed:TIMESTAMP:placeholder:unsigned:unsigned -->",
            "<!-- rye:signed:",
            "<!-- tympan:signed:a -->",
        ] {
            assert!(SignatureLine::find(line).is_err(), "{line}");
        }
    }
}
