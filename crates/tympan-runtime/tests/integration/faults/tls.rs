//! The server behind TLS, with a self-signed certificate.

use std::net::TcpStream;
use std::sync::Arc;

use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use super::{Exchange, Server};

/// Starts a server for `localhost`. Returns its certificate in PEM, for clients that should trust it.
pub(crate) fn start(answer: impl Fn(&mut Exchange<'_>) + Send + Sync + 'static) -> (Server, String) {
    let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate is made");
    let key = PrivateKeyDer::try_from(certified.signing_key.serialize_der()).expect("the key is well-formed");
    let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("ring has them")
        .with_no_client_auth()
        .with_single_cert(vec![certified.cert.der().clone()], key)
        .expect("key and certificate fit");
    let config = Arc::new(config);
    let wrap = move |socket: TcpStream| {
        let connection = ServerConnection::new(Arc::clone(&config)).map_err(std::io::Error::other)?;
        Ok(Box::new(StreamOwned::new(connection, socket)) as Box<dyn super::Wire>)
    };
    (Server::start_with("https", wrap, answer), certified.cert.pem())
}
