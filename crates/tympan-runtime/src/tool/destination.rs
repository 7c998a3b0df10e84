//! Checks where tools may send requests.
//!
//! Addresses in a prompt file or an API description do not come from the host, so they are not trusted. Unless the host
//! allows it, tools cannot send requests to private addresses: those of this machine, the local network, or cloud
//! metadata services. A name is resolved only once, and the connection uses the address that was checked. This prevents
//! DNS rebinding, where a name resolves to a different address after the check.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use tympan_core::{Error, Kind, Result};
use url::{Host, Url};

use crate::net::client::shown;

/// The addresses that tools may call, in addition to public ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolAddresses {
    /// Whether tools may call any address.
    pub allow_private: bool,
    /// Hosts that tools may call, whatever their address: `localhost`, `10.0.0.7`, `tools.internal`.
    pub allow_hosts: Vec<String>,
}

impl ToolAddresses {
    /// Parses an address and checks whether tools may call it, as far as possible before its name is resolved.
    ///
    /// # Errors
    /// Returns an error if the address is not an HTTP or HTTPS URL, or if it is private and the host does not allow it.
    pub fn check(&self, address: &str) -> Result<Url> {
        let url = Url::parse(address)
            .map_err(|reason| blocked(format_args!("`{}` is not a valid URL: {reason}", shown(address))))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(blocked(format_args!("expected an http or https URL, found `{}:`", shown(url.scheme()))));
        }
        let allowed = match url.host() {
            Some(Host::Ipv4(address)) => self.allows(&address.to_string(), address.into()),
            Some(Host::Ipv6(address)) => self.allows(&address.to_string(), address.into()),
            // Other names are checked when they are resolved.
            Some(Host::Domain(name)) => !is_local_name(name) || self.allows_host(name),
            None => false,
        };
        if allowed {
            Ok(url)
        } else {
            Err(blocked(format_args!("{} is a private address", url.host_str().unwrap_or("it"))))
        }
    }

    fn allows(&self, host: &str, address: IpAddr) -> bool {
        is_public(address) || self.allows_host(host)
    }

    fn allows_host(&self, host: &str) -> bool {
        self.allow_private || self.allow_hosts.iter().any(|allowed| allowed.eq_ignore_ascii_case(host))
    }

    /// Returns a DNS resolver for the HTTP client of tools.
    pub(crate) fn resolver(&self) -> Arc<dyn Resolve> {
        Arc::new(Resolver(Arc::new(self.clone())))
    }
}

/// A DNS resolver that removes addresses that tools may not call.
struct Resolver(Arc<ToolAddresses>);

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let addresses = self.0.clone();
        Box::pin(async move {
            let host = name.as_str().to_owned();
            let found: Vec<SocketAddr> = tokio::net::lookup_host((host.as_str(), 0)).await?.collect();
            let allowed: Vec<_> = found.into_iter().filter(|found| addresses.allows(&host, found.ip())).collect();
            if allowed.is_empty() {
                return Err(blocked(format_args!("`{}` resolves only to private addresses", shown(&host))).into());
            }
            Ok(Box::new(allowed.into_iter()) as Addrs)
        })
    }
}

/// Returns whether a name always refers to this machine.
fn is_local_name(name: &str) -> bool {
    let name = name.trim_end_matches('.');
    name.eq_ignore_ascii_case("localhost") || name.to_ascii_lowercase().ends_with(".localhost")
}

fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

/// Returns whether an IPv4 address is public: not in a block of IANA's special-purpose registry that is unreachable
/// from the public internet, and not multicast.
fn is_public_v4(address: Ipv4Addr) -> bool {
    let is_special = match address.octets() {
        // This network, private networks, carrier-grade NAT, loopback, link-local.
        [0 | 10 | 127, ..] | [100, 64..=127, ..] | [169, 254, ..] | [172, 16..=31, ..] | [192, 168, ..] => true,
        // Protocol assignments, documentation, 6to4 relays, benchmarking.
        [192, 0, 0 | 2, _] | [192, 88, 99, _] | [198, 18 | 19, ..] | [198, 51, 100, _] | [203, 0, 113, _] => true,
        // Multicast and reserved.
        [224..=255, ..] => true,
        _ => false,
    };
    !is_special
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    if let Some(embedded) = embedded_v4(address) {
        return is_public_v4(embedded);
    }
    match address.segments() {
        // Protocol assignments, including Teredo, benchmarking and ORCHID.
        [0x2001, 0..=0x01ff, ..] => false,
        // Documentation, and 6to4, whose relays can lead anywhere.
        [0x2001, 0x0db8, ..] | [0x3fff, 0..=0x0fff, ..] | [0x2002, ..] => false,
        // An ISATAP address leads to the IPv4 address embedded at its end.
        [first, .., 0 | 0x0200, 0x5efe, high, low] => is_handed_out(first) && is_public_v4(v4(high, low)),
        [first, ..] => is_handed_out(first),
    }
}

/// Returns whether an IPv6 address with this first segment is in the global unicast range, `2000::/3`. This excludes
/// private and link-local addresses, IPv4-compatible addresses, translated addresses of private networks
/// (`64:ff9b:1::`), the discard-only block (`100::`), and multicast.
fn is_handed_out(first: u16) -> bool {
    first & 0xe000 == 0x2000
}

/// Returns the IPv4 address that a connection to an IPv6 address leads to, if it is mapped or translated (`64:ff9b::`).
fn embedded_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    match address.segments() {
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => Some(v4(high, low)),
        _ => None,
    }
}

fn v4(high: u16, low: u16) -> Ipv4Addr {
    let [[a, b], [c, d]] = [high.to_be_bytes(), low.to_be_bytes()];
    Ipv4Addr::new(a, b, c, d)
}

fn blocked(details: impl std::fmt::Display) -> Error {
    Error::new(Kind::BlockedDestination, details)
        .with_help("use a public address, or allow this one with RuntimeOptions::tool_addresses or `--allow-private`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_addresses_are_refused_in_every_spelling() {
        let none = ToolAddresses::default();
        for address in [
            "http://127.0.0.1/",
            "http://2130706433/",
            "http://0177.0.0.1/",
            "http://0x7f.1/",
            "http://127.1/",
            "http://0.0.0.0/",
            "http://10.1.2.3/",
            "http://172.16.0.1/",
            "http://192.168.0.1:8080/x",
            "http://169.254.169.254/latest/meta-data/",
            "http://100.100.100.200/",
            "http://198.18.0.1/",
            "http://224.0.0.1/",
            "http://255.255.255.255/",
            "http://[::1]/",
            "http://[::]/",
            "http://[::ffff:127.0.0.1]/",
            "http://[::ffff:7f00:1]/",
            "http://[64:ff9b::7f00:1]/",
            "http://[2002:7f00:1::]/",
            "http://[2002:5db8:d822::]/",
            "http://[2001::1]/",
            "http://[2001:0:5db8:d822::1]/",
            "http://[2001:2::1]/",
            "http://[2001:10::1]/",
            "http://[2001:20::1]/",
            "http://[2001:1ff::1]/",
            "http://[2001:db8::1]/",
            "http://[3fff::1]/",
            "http://[3fff:fff::1]/",
            "http://[64:ff9b::a00:1]/",
            "http://[64:ff9b::169.254.169.254]/",
            "http://[64:ff9b:1::5db8:d822]/",
            "http://[64:ff9b:1:ffff::1]/",
            "http://[::ffff:0:127.0.0.1]/",
            "http://[::ffff:10.0.0.1]/",
            "http://[::127.0.0.1]/",
            "http://[::93.184.216.34]/",
            "http://[2606:4700::5efe:10.0.0.1]/",
            "http://[2606:4700::200:5efe:127.0.0.1]/",
            "http://[100::1]/",
            "http://[100:0:0:1::1]/",
            "http://[5f00::1]/",
            "http://[fec0::1]/",
            "http://[ff02::1]/",
            "http://[fc00::1]/",
            "http://192.0.0.8/",
            "http://192.0.2.1/",
            "http://192.88.99.1/",
            "http://198.19.255.255/",
            "http://198.51.100.1/",
            "http://203.0.113.1/",
            "http://240.0.0.1/",
            "http://172.31.255.255/",
            "http://100.127.255.255/",
            "http://[fd00:ec2::254]/",
            "http://[fe80::1]/",
            "http://localhost/",
            "http://LOCALHOST./",
            "http://a.localhost/",
            "file:///etc/passwd",
            "http+unix://%2Fvar%2Frun%2Fdocker.sock/",
            "ftp://example.org/",
            "not an address",
        ] {
            let error = none.check(address).expect_err(address);
            assert_eq!(error.kind(), Kind::BlockedDestination, "{address}");
        }
    }

    #[test]
    fn public_addresses_and_names_are_allowed() {
        let none = ToolAddresses::default();
        for address in [
            "https://example.org/x",
            "http://93.184.216.34/",
            "https://[2606:4700::1111]/",
            "https://[2001:4860:4860::8888]/",
            "https://[2001:200::1]/",
            "https://[2a00:1450:4001::1]/",
            "https://[::ffff:93.184.216.34]/",
            "https://[64:ff9b::93.184.216.34]/",
            "https://[2606:4700::5efe:93.184.216.34]/",
            "http://172.32.0.1/",
            "http://172.15.0.1/",
            "http://100.63.0.1/",
            "http://100.128.0.1/",
            "http://192.1.0.1/",
            "http://198.17.0.1/",
            "http://223.255.255.255/",
        ] {
            assert!(none.check(address).is_ok(), "{address}");
        }
    }

    #[test]
    fn what_the_host_allows_is_allowed_and_nothing_else() {
        let hosts = ToolAddresses { allow_hosts: vec!["127.0.0.1".into(), "LocalHost".into()], allow_private: false };
        assert!(hosts.check("http://127.0.0.1:9/").is_ok());
        assert!(hosts.check("http://localhost:9/").is_ok());
        assert!(hosts.check("http://127.0.0.2/").is_err());
        let all = ToolAddresses { allow_private: true, ..ToolAddresses::default() };
        assert!(all.check("http://10.0.0.1/").is_ok());
        assert!(all.check("file:///etc/passwd").is_err());
    }

    #[test]
    fn a_name_with_private_addresses_is_not_found() {
        let resolve = |addresses: ToolAddresses| {
            crate::net::io::spawn(async move {
                let name = "localhost".parse().map_err(|_| Error::new(Kind::Internal, "no name"))?;
                Ok(addresses.resolver().resolve(name).await.is_ok())
            })
            .wait()
        };
        assert_eq!(resolve(ToolAddresses::default()).ok(), Some(false));
        assert_eq!(resolve(ToolAddresses { allow_private: true, ..ToolAddresses::default() }).ok(), Some(true));
    }
}
