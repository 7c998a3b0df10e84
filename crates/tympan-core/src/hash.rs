//! Content hashes.

use serde_json::Value as Json;
use sha2::{Digest, Sha256};

/// The SHA-256 of some bytes, as lower-case hexadecimal digits.
pub fn sha256_hex(bytes: impl AsRef<[u8]>) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digest = Sha256::digest(bytes.as_ref());
    let digits = digest.iter().flat_map(|byte| [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
    digits.map(char::from).collect()
}

/// JSON in the one form that hashes are made of: keys in the order of their code points, no white space.
pub fn canonical_json(value: Json) -> String {
    sorted(value).to_string()
}

/// The same value with the keys of all its maps in the order of their code points.
fn sorted(value: Json) -> Json {
    match value {
        Json::Object(map) => {
            let mut entries: Vec<_> = map.into_iter().map(|(key, value)| (key, sorted(value))).collect();
            entries.sort_by(|(a, _), (b, _)| a.cmp(b));
            Json::Object(entries.into_iter().collect())
        }
        Json::Array(items) => items.into_iter().map(sorted).collect(),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn known_value() {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(super::sha256_hex(""), empty);
    }
}
