//! The forms that a secret takes on its way through texts.

use std::fmt::Write;
use std::ops::Range;

use base64::Engine;
use base64::alphabet;
use base64::engine::{GeneralPurpose, general_purpose::NO_PAD};
use memchr::memmem::Finder;

/// Secrets of fewer bytes have base64 forms that other texts have too.
const MIN_BASE64_BYTES: usize = 8;

/// One form of a secret.
#[derive(Clone)]
pub(super) struct Needle(Finder<'static>);

impl Needle {
    fn new(form: &str) -> Self {
        Self(Finder::new(form.as_bytes()).into_owned())
    }

    /// Adds all places where the form stands.
    pub(super) fn find(&self, text: &str, found: &mut Vec<Range<usize>>) {
        let length = self.0.needle().len();
        found.extend(self.0.find_iter(text.as_bytes()).map(|start| start..start + length));
    }
}

/// Adds all forms of a secret.
pub(super) fn add_forms(secret: &str, needles: &mut Vec<Needle>) {
    let mut forms = vec![secret.to_owned()];
    for (space, upper) in [("%20", true), ("%20", false), ("+", true), ("+", false)] {
        forms.push(percent_encoded(secret, space, upper));
    }
    forms.extend(json_escaped(secret));
    if secret.len() >= MIN_BASE64_BYTES {
        for alphabet in [alphabet::STANDARD, alphabet::URL_SAFE] {
            let engine = GeneralPurpose::new(&alphabet, NO_PAD);
            forms.extend((0..3).map(|shift| base64_inside(secret, shift, &engine)));
        }
    }
    forms.sort_unstable();
    forms.dedup();
    needles.extend(forms.iter().map(|form| Needle::new(form)));
}

fn percent_encoded(secret: &str, space: &str, upper: bool) -> String {
    secret.bytes().fold(String::new(), |mut out, byte| {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(char::from(byte)),
            b' ' => out.push_str(space),
            _ if upper => _ = write!(out, "%{byte:02X}"),
            _ => _ = write!(out, "%{byte:02x}"),
        }
        out
    })
}

fn json_escaped(secret: &str) -> Option<String> {
    let quoted = serde_json::to_string(secret).ok()?;
    Some(quoted.trim_matches('"').to_owned()).filter(|form| !form.is_empty())
}

/// The characters of base64 that a secret alone decides, `shift` bytes after a multiple of three.
fn base64_inside(secret: &str, shift: usize, engine: &GeneralPurpose) -> String {
    let mut bytes = vec![0; shift];
    bytes.extend_from_slice(secret.as_bytes());
    let encoded = engine.encode(&bytes);
    // The first characters hold bits of what stands before, and the last may hold bits of what comes after.
    let first = (shift * 8).div_ceil(6);
    encoded[first..bytes.len() * 8 / 6].to_owned()
}
