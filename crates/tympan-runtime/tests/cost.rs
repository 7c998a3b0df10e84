//! The cost of building functions from an OpenAPI document grows no faster than the document.

#[path = "../../tympan-core/tests/cost/measure.rs"]
mod measure;

use measure::{Row, check};
use serde_json::{Map, Value, json};
use tympan_runtime::tool::openapi::{Service, ServiceOptions};

/// Returns a document with these paths and schemas.
fn document(paths: Map<String, Value>, components: Value) -> Value {
    let servers = json!([{ "url": "https://a.example" }]);
    json!({ "openapi": "3.1.0", "servers": servers, "paths": paths, "components": components })
}

fn service(document: Value, operations: Option<Vec<String>>) -> Box<dyn Fn()> {
    let options = ServiceOptions { name: "api".into(), operations, ..ServiceOptions::default() };
    Box::new(move || {
        let service = Service::new(&document, &options);
        assert!(service.map_or_else(|error| !error.message().is_empty(), |service| service.functions().count() > 0));
    })
}

fn numbered(size: usize, value: impl Fn(usize) -> Value) -> Map<String, Value> {
    (0..size).map(|index| (format!("n{index}"), value(index))).collect()
}

/// Returns operations whose bodies all have the same schema.
fn operations(count: usize, schema: &str) -> Map<String, Value> {
    let content = json!({ "application/json": { "schema": { "$ref": format!("#/components/schemas/{schema}") } } });
    let operation = json!({ "post": { "requestBody": { "content": content } } });
    (0..count).map(|index| (format!("/p{index}"), operation.clone())).collect()
}

const ROWS: &[Row] = &[
    Row {
        name: "one schema in many places",
        size: 500,
        work: |n| {
            let all = numbered(n, |_| json!({ "$ref": "#/components/schemas/One" }));
            let one = json!({ "properties": numbered(n, |_| json!({ "readOnly": true })) });
            service(
                document(operations(20, "All"), json!({ "schemas": { "All": { "properties": all }, "One": one } })),
                None,
            )
        },
    },
    Row {
        name: "a long description in many places",
        size: 500,
        work: |n| {
            let all = numbered(n, |_| json!({ "$ref": "#/components/schemas/One" }));
            let one = json!({ "description": "d".repeat(100 * n), "allOf": [{ "$ref": "#/components/schemas/One" }] });
            service(
                document(operations(20, "All"), json!({ "schemas": { "All": { "properties": all }, "One": one } })),
                None,
            )
        },
    },
    Row {
        name: "a long default in many places",
        size: 500,
        work: |n| {
            let all = numbered(n, |_| json!({ "$ref": "#/components/schemas/One" }));
            let one = json!({ "default": vec![1; 20 * n], "required": vec!["a".repeat(n); 100] });
            service(
                document(operations(20, "All"), json!({ "schemas": { "All": { "properties": all }, "One": one } })),
                None,
            )
        },
    },
    Row {
        name: "many operations that were asked for",
        size: 400,
        work: |n| {
            let paths =
                (0..n).map(|index| (format!("/p{index}"), json!({ "get": { "operationId": format!("o{index}") } })));
            let wanted = (0..n).map(|index| format!("x{index}")).chain(["o1".to_owned()]).collect();
            service(document(paths.collect(), json!({})), Some(wanted))
        },
    },
    Row {
        name: "one path under many names",
        size: 400,
        work: |n| {
            let path = json!({ "$ref": "#/components/pathItems/P" });
            let parameters: Vec<_> =
                (0..n.min(900)).map(|index| json!({ "name": format!("q{index}"), "in": "query" })).collect();
            let get = json!({ "operationId": "o".repeat(100 * n), "description": "d".repeat(100 * n), "parameters": parameters });
            let paths = (0..n).map(|index| (format!("/p{index}"), path.clone())).collect();
            service(document(paths, json!({ "pathItems": { "P": { "get": get } } })), None)
        },
    },
    Row {
        name: "many ways to prove who calls",
        size: 400,
        work: |n| {
            let security: Vec<_> = (0..10 * n).map(|index| json!({ format!("s{index}"): [] })).collect();
            let paths = (0..n).map(|index| (format!("/p{index}"), json!({ "get": {} }))).collect();
            let mut document = document(paths, json!({}));
            document["security"] = json!(security);
            service(document, None)
        },
    },
];

#[test]
fn openapi_documents() {
    check(ROWS);
}
