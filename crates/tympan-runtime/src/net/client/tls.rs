//! The TLS configuration.

use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

use crate::{Error, Kind, Result};

/// Creates a configuration that trusts Mozilla's built-in root certificates, and those that the host adds.
pub(crate) fn config(extra_roots: Option<&str>) -> Result<ClientConfig> {
    let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    if let Some(pem) = extra_roots {
        let before = roots.len();
        for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
            certificate.ok().and_then(|certificate| roots.add(certificate).ok()).ok_or_else(invalid_roots)?;
        }
        if roots.len() == before {
            return Err(invalid_roots());
        }
    }
    // Name the provider explicitly, because the host's code may change the global default.
    let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|reason| Error::new(Kind::Internal, reason))?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}

fn invalid_roots() -> Error {
    Error::new(Kind::InvalidRequest, "cannot use the extra root certificates")
        .with_help("use PEM certificates: -----BEGIN CERTIFICATE-----")
}
