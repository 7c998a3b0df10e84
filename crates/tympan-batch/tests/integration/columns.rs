//! Values of Arrow columns as inputs.

use std::sync::Arc;

use arrow::array::{Array, AsArray};
use arrow::array::{
    ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, DictionaryArray, Float32Array, Float64Array,
    Int8Array, Int64Array, LargeStringArray, ListArray, MapBuilder, RecordBatch, StringArray, StringBuilder,
    StringViewArray, StructArray, TimestampMicrosecondArray, UInt64Array,
};
use arrow::datatypes::{DataType, Field, Int32Type};
use tympan_batch::output::{OutputKind, TableOptions, TableRenderer};
use tympan_core::Prompt;

use crate::support::runtime;

/// Renders `{{ x }}` for every row of a column, with a declaration of the input.
fn rendered(column: ArrayRef, declaration: &str) -> Vec<Result<String, String>> {
    let source = format!("---\ninputs:\n  - {{name: x{declaration}}}\n---\nuser:\n{{{{ x }}}}");
    let prompt = Prompt::from_prompty(&source).expect("the prompt is valid");
    let batch = RecordBatch::try_from_iter_with_nullable([("x", column, true)]).expect("one column");
    let mut options = TableOptions::default();
    options.output = OutputKind::Text;
    let runtime = runtime();
    let renderer = TableRenderer::new(&runtime, &prompt, &batch.schema(), &options).expect("the column is bound");
    let table = renderer.render(&batch).expect("the table is rendered");
    let (texts, errors) = (table.column_by_name("text").expect("text"), table.column_by_name("error").expect("error"));
    let (texts, errors) = (texts.as_string::<i32>(), errors.as_string::<i32>());
    let rows = 0..table.num_rows();
    rows.map(|row| match errors.is_null(row) {
        true => Ok(texts.value(row).trim_start_matches("user:\n").to_owned()),
        false => Err(errors.value(row).to_owned()),
    })
    .collect()
}

fn values(column: impl Array + 'static, declaration: &str) -> Vec<String> {
    let rows = rendered(Arc::new(column), declaration);
    rows.into_iter().map(|row| row.expect("the row renders")).collect()
}

#[test]
fn every_type_has_the_text_that_json_would_have() {
    assert_eq!(values(StringArray::from(vec![Some("a"), None]), ""), ["a", ""]);
    assert_eq!(values(LargeStringArray::from(vec!["a"]), ""), ["a"]);
    assert_eq!(values(StringViewArray::from(vec!["a", "a text that is longer than twelve bytes"]), "")[1].len(), 39);
    assert_eq!(values(Int8Array::from(vec![-3]), ""), ["-3"]);
    assert_eq!(values(Int64Array::from(vec![i64::MIN]), ""), ["-9223372036854775808"]);
    assert_eq!(values(UInt64Array::from(vec![u64::MAX]), ""), ["18446744073709551615"]);
    assert_eq!(values(Float32Array::from(vec![0.1]), ", kind: float"), ["0.1"]);
    assert_eq!(values(Float64Array::from(vec![1.0, 0.1]), ", kind: float"), ["1.0", "0.1"]);
    // Programs without integers, or without integers that can be null, write floats.
    let whole = Float64Array::from(vec![1.0, -2.0, 0.5, 1e300]);
    assert_eq!(values(whole.clone(), ", kind: float")[..2], ["1.0", "-2.0"]);
    assert_eq!(values(whole.clone(), "")[0], "1.0");
    let rows = rendered(Arc::new(whole), ", kind: integer");
    assert_eq!(rows[..2], [Ok("1".to_owned()), Ok("-2".to_owned())]);
    assert!(rows[2].as_ref().is_err_and(|error| error.contains("expected an integer")), "{:?}", rows[2]);
    assert_eq!(values(BooleanArray::from(vec![true]), ", kind: boolean"), ["true"]);
    assert_eq!(values(Date32Array::from(vec![0]), ""), ["1970-01-01"]);
    let time = TimestampMicrosecondArray::from(vec![1_500_000]).with_timezone("+00:00");
    assert_eq!(values(time, ""), ["1970-01-01T00:00:01.500Z"]);
    let decimal = Decimal128Array::from(vec![12_50]).with_precision_and_scale(10, 2).expect("valid");
    assert_eq!(values(decimal, ""), ["12.50"]);
    assert_eq!(values(BinaryArray::from(vec![&b"\xff\x00"[..]]), ""), ["/wA="]);
    let shared: DictionaryArray<Int32Type> = vec![Some("a"), None, Some("a")].into_iter().collect();
    assert_eq!(values(shared, ""), ["a", "", "a"]);
}

#[test]
fn lists_structs_and_maps_keep_their_shape() {
    let list = ListArray::from_iter_primitive::<Int32Type, _, _>(vec![Some(vec![Some(1), None]), Some(vec![])]);
    assert_eq!(values(list.clone(), ", kind: array"), ["[1, null]", "[]"]);
    assert_eq!(values(list.slice(1, 1), ", kind: array"), ["[]"]);
    let inner: ArrayRef = Arc::new(list);
    let name: ArrayRef = Arc::new(StringArray::from(vec![Some("a"), None]));
    let fields = vec![
        (Arc::new(Field::new("name", DataType::Utf8, true)), name),
        (Arc::new(Field::new("items", inner.data_type().clone(), true)), inner),
    ];
    let structs = StructArray::from(fields);
    let expected = [r#"{"name": "a", "items": [1, null]}"#, r#"{"name": null, "items": []}"#];
    assert_eq!(values(structs, ", kind: object"), expected);
    let mut map = MapBuilder::new(None, StringBuilder::new(), StringBuilder::new());
    map.keys().append_value("k");
    map.values().append_value("v");
    map.append(true).expect("valid");
    assert_eq!(values(map.finish(), ", kind: object"), [r#"{"k": "v"}"#]);
}

#[test]
fn wide_structs_are_inputs_as_well() {
    let fields = (0..100).map(|index| {
        let column: ArrayRef = Arc::new(Int64Array::from(vec![index]));
        (Arc::new(Field::new(format!("f{index}"), DataType::Int64, true)), column)
    });
    let text = values(StructArray::from(fields.collect::<Vec<_>>()), ", kind: object").remove(0);
    assert!(text.starts_with(r#"{"f0": 0, "f1": 1"#) && text.ends_with(r#""f99": 99}"#), "{text}");
}

#[test]
fn text_is_read_as_the_declared_kind() {
    let text = |values: &[&str]| StringArray::from(values.to_vec());
    assert_eq!(values(text(&["3", " 4 "]), ", kind: integer"), ["3", "4"]);
    assert_eq!(values(text(&["1e3", "0.5"]), ", kind: float"), ["1000.0", "0.5"]);
    assert_eq!(values(text(&["True", "false"]), ", kind: boolean"), ["true", "false"]);
    assert_eq!(values(text(&["[1, {\"a\": null}]"]), ", kind: array"), ["[1, {\"a\": null}]"]);
    assert_eq!(values(text(&["007"]), ""), ["007"], "text stays text");
    let wrong = rendered(Arc::new(text(&["many"])), ", kind: integer").remove(0);
    assert!(wrong.as_ref().is_err_and(|error| error.contains("input `x`: expected an integer")), "{wrong:?}");
}

#[test]
fn values_without_a_form_in_json_are_errors_of_their_row() {
    let floats = Float64Array::from(vec![f64::NAN, 1.0]);
    let rows = rendered(Arc::new(floats), ", kind: float");
    assert!(rows[0].as_ref().is_err_and(|error| error.contains("column `x`: expected a finite number")), "{rows:?}");
    assert_eq!(rows[1], Ok("1.0".to_owned()));
}
