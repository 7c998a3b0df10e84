//! The session: a token that works once, and the cookie that it is exchanged for.

use std::io;
use std::sync::{Mutex, PoisonError};

/// The number of random bytes of a secret.
const BYTES: usize = 32;

/// The secrets of a session.
pub(crate) struct Session {
    /// The token of the address, until it is used.
    token: Mutex<Option<String>>,
    cookie: String,
    name: String,
}

impl Session {
    /// Creates a session. The name of the cookie contains the port, because browsers send the cookies of a host to all its
    /// ports: a second studio must not replace the cookie of the first.
    pub(crate) fn new(port: u16) -> io::Result<Self> {
        let token = Mutex::new(Some(secret()?));
        Ok(Self { token, cookie: secret()?, name: format!("tympan_studio_{port}") })
    }

    /// Returns the token, if it was not used.
    pub(crate) fn token(&self) -> Option<String> {
        self.token.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Exchanges the token for the value of the `Set-Cookie` header. A token works once; a wrong one changes nothing.
    pub(crate) fn exchange(&self, token: &str) -> Option<String> {
        let mut own = self.token.lock().unwrap_or_else(PoisonError::into_inner);
        own.take_if(|own| is_same(own, token))?;
        Some(format!("{}={}; Path=/; HttpOnly; SameSite=Strict", self.name, self.cookie))
    }

    /// Returns whether the values of `Cookie` headers contain the cookie of this session.
    pub(crate) fn is_in<'c>(&self, cookies: impl Iterator<Item = &'c str>) -> bool {
        let mut pairs = cookies.flat_map(|header| header.split(';')).filter_map(|pair| pair.trim().split_once('='));
        pairs.any(|(name, value)| name == self.name && is_same(value, &self.cookie))
    }
}

fn secret() -> io::Result<String> {
    let mut bytes = [0; BYTES];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Compares secrets in a time that depends only on their lengths.
fn is_same(own: &str, other: &str) -> bool {
    let difference = own.bytes().zip(other.bytes()).fold(0, |difference, (a, b)| difference | (a ^ b));
    own.len() == other.len() && difference == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_works_once() {
        let session = Session::new(1).expect("there are random bits");
        let token = session.token().expect("it is new");
        assert!(session.exchange("").is_none() && session.exchange(&token[1..]).is_none());
        let header = session.exchange(&token).expect("it is the token");
        assert!(session.exchange(&token).is_none() && session.token().is_none());
        let cookie = header.split(';').next().expect("it has parts");
        assert!(session.is_in(["a=b; c=d", &format!("x=y; {cookie}")].into_iter()));
        assert!(!session.is_in([&cookie[..cookie.len() - 1], "tympan_studio_1=", ""].into_iter()));
        assert!(!session.is_in(std::iter::empty()));
    }
}
