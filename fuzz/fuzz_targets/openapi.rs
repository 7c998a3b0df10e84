//! Any text as an OpenAPI document, and any text as arguments: functions that providers take, and requests that go to the
//! service and nowhere else.
#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};
use tympan::tool::openapi::{Service, ServiceOptions, ServiceRequest, read};

/// A service with a parameter in each place.
const DOCUMENT: &str = include_str!("../seeds/openapi/places.json");

fuzz_target!(|texts: (&str, &str)| {
    let (document, value) = texts;
    if let Ok(document) = read("fuzz", document) {
        let endpoint = "https://api.example.com/v1".parse().ok();
        for endpoint in [None, endpoint] {
            let options = ServiceOptions { endpoint, ..ServiceOptions::default() };
            if let Ok(service) = Service::new(&document, &options) {
                check(&service, value);
            }
        }
    }
    let places = read("places.json", DOCUMENT).and_then(|document| Service::new(&document, &ServiceOptions::default()));
    check(&places.expect("it is a service"), value);
});

fn check(service: &Service, value: &str) {
    let mut names = std::collections::HashSet::new();
    for function in service.functions() {
        assert!(is_name(&function.name) && names.insert(&function.name), "{}", function.name);
        let properties = function.parameters["properties"].as_object().expect("it takes a map");
        assert!(properties.keys().all(|name| is_name(name)), "{properties:?}");
        for value in [json!(value), json!([value, 1]), json!({ value: value }), json!({ "a": { value: [value] } })] {
            let arguments = properties.keys().map(|name| (name.clone(), value.clone())).collect();
            if let Ok(request) = service.request(&function.name, &arguments) {
                check_request(service, &request);
            }
        }
    }
}

fn is_name(name: &str) -> bool {
    (1..=64).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
}

fn check_request(service: &Service, request: &ServiceRequest) {
    assert_eq!(request.url.origin(), service.base().origin());
    assert!(request.url.username().is_empty() && request.url.password().is_none() && request.url.fragment().is_none());
    let again: Value = json!(request.url.as_str().parse::<url::Url>().expect("it is an address").as_str());
    assert_eq!(again, json!(request.url.as_str()));
    for (name, value) in &request.headers {
        assert!(!value.bytes().any(|byte| byte < b' ' && byte != b'\t' || byte == 0x7f), "{name}: {value:?}");
        assert!(!["host", "authorization", "content-length", "transfer-encoding"].contains(&name.as_str()), "{name}");
    }
}
