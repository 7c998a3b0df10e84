//! Matrices: every combination of several values is a case.

use std::collections::{HashMap, HashSet};

use serde_json::Value as Json;
use tympan_core::spec::test_suite::Matrix;

use crate::case::Case;

/// The maximum number of combinations of a matrix.
const MAX_COMBINATIONS: usize = 100_000;

/// The greatest length of a value in a name, in characters.
const MAX_LABEL: usize = 24;

/// The combinations of a matrix, each made when it is needed. The last values change fastest.
pub(crate) struct Combinations {
    case: Case,
    axes: Vec<Axis>,
    /// The index of the next combination.
    next: usize,
    count: usize,
}

/// A list of values, each with its unique label.
struct Axis {
    kind: AxisKind,
    values: Vec<(String, Json)>,
}

/// What the values of an axis are.
enum AxisKind {
    Input(String),
    Variant,
    Model,
}

impl Combinations {
    /// Creates the combinations for a case.
    ///
    /// # Errors
    /// Returns a message if there are too many.
    pub(crate) fn new(case: Case, matrix: &Matrix) -> Result<Self, String> {
        let inputs = matrix.inputs.iter().map(|(name, values)| {
            let values = values.as_array().map_or(&[][..], Vec::as_slice);
            Axis::new(
                AxisKind::Input(name.clone()),
                values.iter().map(|value| (format!("{name}={}", label(value)), value.clone())),
            )
        });
        let texts = |kind, texts: &[String]| {
            let values = texts.iter().map(|text| (text.clone(), Json::String(text.clone())));
            (!texts.is_empty()).then(|| Axis::new(kind, values))
        };
        let others = [texts(AxisKind::Variant, &matrix.variants), texts(AxisKind::Model, &matrix.models)];
        let axes: Vec<_> = inputs.chain(others.into_iter().flatten()).collect();
        let count = axes.iter().fold(1_usize, |count, axis| count.saturating_mul(axis.values.len()));
        if count > MAX_COMBINATIONS {
            return Err(format!("the matrix has {count} combinations; the maximum is {MAX_COMBINATIONS}"));
        }
        Ok(Self { case, axes, next: 0, count })
    }
}

impl Iterator for Combinations {
    type Item = Case;

    fn next(&mut self) -> Option<Case> {
        if self.next == self.count {
            return None;
        }
        let mut rest = self.next;
        self.next += 1;
        let mut chosen = Vec::new();
        for axis in self.axes.iter().rev() {
            chosen.push((axis, &axis.values[rest % axis.values.len()]));
            rest /= axis.values.len();
        }
        let mut case = self.case.clone();
        let mut labels = Vec::new();
        for (axis, (label, value)) in chosen.into_iter().rev() {
            axis.set(&mut case, value);
            labels.push(label.as_str());
        }
        case.name = format!("{}[{}]", case.name, labels.join(", "));
        Some(case)
    }
}

impl Axis {
    fn new(kind: AxisKind, values: impl Iterator<Item = (String, Json)>) -> Self {
        let (mut counts, mut taken) = (HashMap::new(), HashSet::new());
        // Long values can have the same beginning.
        let mut unique = |label: String| {
            let count = counts.entry(label.clone()).or_insert(0_usize);
            loop {
                *count += 1;
                let candidate = if *count == 1 { label.clone() } else { format!("{label} #{count}") };
                if taken.insert(candidate.clone()) {
                    return candidate;
                }
            }
        };
        Self { kind, values: values.map(|(label, value)| (unique(label), value)).collect() }
    }

    /// Writes a value into the settings of a case.
    fn set(&self, case: &mut Case, value: &Json) {
        let settings = &mut case.settings;
        let text = value.as_str().unwrap_or_default();
        match &self.kind {
            AxisKind::Input(name) => drop(settings.inputs.insert(name.clone(), value.clone())),
            AxisKind::Variant => settings.variant = Some(text.to_owned()),
            AxisKind::Model => match text.split_once('/') {
                Some((provider, model)) => {
                    (settings.provider, settings.model) = (Some(provider.to_owned()), Some(model.to_owned()));
                }
                None => settings.model = Some(text.to_owned()),
            },
        }
    }
}

fn label(value: &Json) -> String {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let short: String = text.chars().take(MAX_LABEL).map(|char| if char.is_control() { ' ' } else { char }).collect();
    if short.len() < text.len() { format!("{short}…") } else { short }
}
