//! The capacity of schemas: how many bits an answer can carry, and the answer without anything beyond them.

use serde_json::{Value as Json, json};

/// The largest range of numbers that is considered. Ranges beyond it are not small.
const MAX_VALUES: f64 = 4_294_967_296.0;

/// The bits that a turn may still learn about hidden values.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bits {
    left: u32,
    /// The number of successes since the last failure.
    successes: u32,
}

impl Bits {
    pub(crate) fn new(left: u32) -> Self {
        Self { left, successes: 0 }
    }

    /// Pays for an answer. Returns whether there are enough bits.
    pub(crate) fn pay(&mut self, bits: u32) -> bool {
        let left = self.left.checked_sub(bits);
        self.left = left.unwrap_or(self.left);
        left.is_some()
    }

    /// Counts something that might have failed.
    pub(crate) fn add_success(&mut self) {
        self.successes = self.successes.saturating_add(1);
    }

    /// Pays for a failure. A failure after many successes says more than an immediate one: which of them failed. Its
    /// price is the length of that number in the Elias gamma code, so many cheap failures cannot carry more bits than
    /// the budget has.
    pub(crate) fn pay_failure(&mut self) -> bool {
        let is_paid = self.pay(2 * self.successes.saturating_add(1).ilog2() + 1);
        if is_paid {
            self.successes = 0;
        }
        is_paid
    }
}

/// A type whose values carry few bits.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum SmallType {
    Boolean,
    Enum(Vec<Json>),
    Integer {
        min: i64,
        max: i64,
    },
    /// The numbers `min + n * step`.
    Number {
        min: f64,
        step: f64,
        count: u64,
    },
    /// Dates, as days since 1970-01-01.
    Date {
        min: i64,
        max: i64,
    },
}

impl SmallType {
    /// Reads a schema. Returns `None` if its values are not bounded to few bits.
    pub(crate) fn of(schema: &Json) -> Option<Self> {
        if let Some(values) = schema.get("enum") {
            let values = values.as_array().filter(|values| !values.is_empty())?;
            let is_scalar = |value: &Json| !value.is_array() && !value.is_object();
            return values.iter().all(is_scalar).then(|| Self::Enum(values.clone()));
        }
        match schema.get("type")?.as_str()? {
            "boolean" => Some(Self::Boolean),
            "integer" => {
                let (min, max) = (bound(schema, "minimum")?.ceil(), bound(schema, "maximum")?.floor());
                let is_small = min <= max && max - min < MAX_VALUES && min.abs() < 9e15 && max.abs() < 9e15;
                #[expect(clippy::cast_possible_truncation, reason = "the bounds are small integers")]
                is_small.then_some(Self::Integer { min: min as i64, max: max as i64 })
            }
            "number" => {
                let (min, max, step) =
                    (bound(schema, "minimum")?, bound(schema, "maximum")?, bound(schema, "multipleOf")?);
                let count = ((max - min) / step + 1e-9).floor() + 1.0;
                #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is from 1 to 2^32")]
                (step > 0.0 && min <= max && count <= MAX_VALUES).then_some(Self::Number {
                    min,
                    step,
                    count: count as u64,
                })
            }
            "string" if schema.get("format").and_then(Json::as_str) == Some("date") => {
                let day = |key: &str| schema.get(key).and_then(Json::as_str).and_then(days);
                let (min, max) = (day("formatMinimum")?, day("formatMaximum")?);
                (min <= max).then_some(Self::Date { min, max })
            }
            _ => None,
        }
    }

    /// Returns the number of bits that an answer carries. That there is no answer counts as one more value.
    pub(crate) fn bits(&self) -> u32 {
        let values = match self {
            Self::Boolean => 2,
            Self::Enum(values) => values.len() as u64,
            Self::Integer { min, max } | Self::Date { min, max } => min.abs_diff(*max).saturating_add(1),
            Self::Number { count, .. } => *count,
        };
        u64::BITS - values.leading_zeros()
    }

    /// Returns the value of the type that is meant, in the one form that the type has for it. The form of an answer
    /// must not carry more bits than its value.
    pub(crate) fn normalized(&self, answer: &Json) -> Option<Json> {
        match self {
            Self::Boolean => answer.as_bool().map(Json::Bool),
            Self::Enum(values) => values.iter().find(|value| *value == answer).cloned(),
            Self::Integer { min, max } => {
                let number = answer.as_i64().or_else(|| whole(answer.as_f64()?))?;
                (*min..=*max).contains(&number).then(|| json!(number))
            }
            Self::Number { min, step, count } => {
                let steps = ((answer.as_f64()? - min) / step).round();
                #[expect(clippy::cast_precision_loss, reason = "it is at most 2^32")]
                let is_within = steps >= 0.0 && steps < *count as f64;
                is_within.then(|| rounded(min + steps * step))
            }
            Self::Date { min, max } => {
                let text = answer.as_str()?;
                let day = days(text)?;
                (*min..=*max).contains(&day).then(|| json!(text))
            }
        }
    }
}

/// Returns a bound of a schema, if it is a finite number.
fn bound(schema: &Json, key: &str) -> Option<f64> {
    schema.get(key)?.as_f64().filter(|number| number.is_finite())
}

fn whole(number: f64) -> Option<i64> {
    #[expect(clippy::cast_possible_truncation, reason = "it is a small integer")]
    (number.fract() == 0.0 && number.abs() < 9e15).then_some(number as i64)
}

/// Writes a number without the digits that rounding adds.
fn rounded(number: f64) -> Json {
    let text = format!("{number:.9}");
    text.parse::<f64>().map_or(Json::Null, |number| whole(number).map_or_else(|| json!(number), |whole| json!(whole)))
}

/// Parses a date of the form `2024-02-29` into days since 1970-01-01. There is one text for each day.
fn days(text: &str) -> Option<i64> {
    let bytes = text.as_bytes();
    let is_form = bytes.len() == 10
        && bytes
            .iter()
            .enumerate()
            .all(|(at, byte)| if at == 4 || at == 7 { *byte == b'-' } else { byte.is_ascii_digit() });
    if !is_form {
        return None;
    }
    let number = |range: std::ops::Range<usize>| text[range].parse::<i64>().ok();
    let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let last = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if is_leap => 29,
        2 => 28,
        _ => return None,
    };
    if !(1..=last).contains(&day) {
        return None;
    }
    // Years begin in March here, so that the leap day is the last one.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * month + 2) / 5 + day - 1;
    Some(era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bits(schema: &Json) -> Option<u32> {
        SmallType::of(schema).map(|small| small.bits())
    }

    #[test]
    fn small_types_have_few_bits() {
        assert_eq!(bits(&json!({"type": "boolean"})), Some(2), "true, false or no answer");
        assert_eq!(bits(&json!({"enum": ["a", "b", "c"]})), Some(2));
        assert_eq!(bits(&json!({"type": "string", "enum": ["a", "b", "c", "d"]})), Some(3));
        assert_eq!(bits(&json!({"type": "integer", "minimum": 0, "maximum": 6})), Some(3));
        assert_eq!(bits(&json!({"type": "number", "minimum": 0, "maximum": 5, "multipleOf": 0.1})), Some(6));
        let year =
            json!({"type": "string", "format": "date", "formatMinimum": "2024-01-01", "formatMaximum": "2024-12-31"});
        assert_eq!(bits(&year), Some(9));
        for large in [
            json!({"type": "string"}),
            json!({"type": "number", "minimum": 0, "maximum": 1}),
            json!({"type": "integer", "minimum": 0}),
            json!({"type": "integer", "minimum": 0, "maximum": 1e300}),
            json!({"type": "number", "minimum": 0, "maximum": 1, "multipleOf": 1e-300}),
            json!({"type": "number", "minimum": 0, "maximum": 1, "multipleOf": 0}),
            json!({"type": "string", "format": "date"}),
            json!({"type": "string", "format": "date", "formatMinimum": "2024-01-01", "formatMaximum": "2024-13-01"}),
            json!({"enum": []}),
            json!({"enum": [["a"]]}),
            json!({"type": ["boolean", "string"]}),
            json!({}),
            json!(true),
        ] {
            assert_eq!(bits(&large), None, "{large}");
        }
    }

    #[test]
    fn answers_have_one_form() {
        let normalized = |schema: Json, answer: Json| SmallType::of(&schema).expect("it is small").normalized(&answer);
        let integer = json!({"type": "integer", "minimum": -2, "maximum": 6});
        assert_eq!(normalized(integer.clone(), json!(6.0)), Some(json!(6)));
        assert_eq!(normalized(integer.clone(), json!(7)), None);
        assert_eq!(normalized(integer, json!("6")), None);
        let price = json!({"type": "number", "minimum": 0, "maximum": 5, "multipleOf": 0.01});
        assert_eq!(normalized(price.clone(), json!(4.200_000_123)), Some(json!(4.2)));
        assert_eq!(normalized(price.clone(), json!(3)), Some(json!(3)));
        assert_eq!(normalized(price, json!(5.01)), None);
        let date =
            json!({"type": "string", "format": "date", "formatMinimum": "2024-02-28", "formatMaximum": "2024-03-01"});
        assert_eq!(normalized(date.clone(), json!("2024-02-29")), Some(json!("2024-02-29")));
        for other in ["2024-2-29", "2024-02-30", "2024-03-02", "٢٠٢٤-02-29", "2024-02-29 "] {
            assert_eq!(normalized(date.clone(), json!(other)), None, "{other}");
        }
        assert_eq!(normalized(json!({"enum": ["a", 1]}), json!("a ")), None);
    }

    /// The failures of any sequence cost at least as many bits as it takes to say where they are.
    #[test]
    fn failures_carry_no_more_than_the_budget() {
        let mut found = std::collections::BTreeSet::new();
        for sequence in 0..1_u32 << 12 {
            let mut bits = Bits::new(8);
            let mut seen = Vec::new();
            for step in 0..12 {
                match sequence >> step & 1 {
                    0 => bits.add_success(),
                    _ if bits.pay_failure() => seen.push(step),
                    // From here on, the model counts as having read the value.
                    _ => break,
                }
            }
            found.insert(seen);
        }
        assert!(found.len() <= 1 << 8, "{} sequences can be told apart", found.len());
        assert!(!Bits::new(0).pay_failure() && Bits::new(1).pay_failure());
    }

    #[test]
    fn days_are_counted() {
        assert_eq!((days("1970-01-01"), days("1970-03-01"), days("1969-12-31")), (Some(0), Some(59), Some(-1)));
        assert_eq!((days("2000-02-29"), days("1900-02-29"), days("2024-12-31")), (Some(11016), None, Some(20088)));
    }
}
