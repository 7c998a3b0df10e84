//! Comparisons of two versions of a prompt: what changed in the definition, in the messages, in their tokens, in what
//! inputs reach, and in the findings of the rules.
//!
//! [`compare`] is a pure function. Versions come from files, or from git with [`revision`](crate::revision).

mod definition;
mod findings;
mod json;
mod messages;
mod reach;
mod words;

pub use definition::{DefinitionChange, HashChange};
pub use messages::{MessageComparison, MessageVersion};
pub use reach::{InputPath, ReachChange, ReachTarget, ReachWarning};
pub use words::{Change, Piece, TextWriter, WriterKind};

use tympan_core::wire::ModelSelection;
use tympan_core::wire::{EncodeOptions, catalog::Catalog};
use tympan_core::{Prompt, Rendered, Result};
use tympan_lint::Finding;

use crate::token_count::TokenCount;
use messages::Messages;

/// A version of a prompt.
#[derive(Clone, Debug)]
pub struct PromptVersion {
    /// The prompt as it is written: loaded without the values of environment variables, so that the comparison is the
    /// same on every machine.
    pub written: Prompt,
    /// The prompt that was rendered.
    pub prompt: Prompt,
    /// The rendered variants, by name. Variants that could not be rendered are missing.
    pub renders: Vec<(String, Rendered)>,
    /// The findings of the rules in the file.
    pub findings: Vec<Finding>,
}

/// What changed between two versions of a prompt.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Comparison {
    /// The inputs that get more influence on instructions. This is what a reviewer should see first.
    pub warnings: Vec<ReachWarning>,
    /// The inputs whose text newly counts as the author's.
    pub newly_trusted: Vec<String>,
    /// The changes of what the prompt declares.
    pub definition: Vec<DefinitionChange>,
    /// The hashes that changed.
    pub hashes: Vec<HashChange>,
    /// The changes of what inputs reach.
    pub reach: Vec<ReachChange>,
    /// The messages of the variants that both versions have and that were rendered.
    pub variants: Vec<VariantComparison>,
    /// The findings that only the version after the change has.
    pub new_findings: Vec<Finding>,
    /// The findings that only the version before the change has.
    pub fixed_findings: Vec<Finding>,
}

/// The messages of a variant in two versions.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct VariantComparison {
    /// The name of the variant: `default` if it has no other.
    pub variant: String,
    /// The messages, in order.
    pub messages: Vec<MessageComparison>,
    /// The tokens before the change.
    pub before: ModelTokens,
    /// The tokens after the change.
    pub after: ModelTokens,
}

/// The tokens of a version for its model.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ModelTokens {
    /// The model that the prompt names.
    pub model: Option<String>,
    /// The tokens.
    pub count: TokenCount,
    /// The estimated cost of a call's input in US dollars, if the price of the model is known.
    pub cost: Option<f64>,
}

impl VariantComparison {
    /// Returns whether the messages are the same.
    pub fn is_equal(&self) -> bool {
        self.messages.iter().all(MessageComparison::is_equal)
    }
}

impl Comparison {
    /// Returns whether nothing changed.
    pub fn is_equal(&self) -> bool {
        self.definition.is_empty()
            && self.hashes.is_empty()
            && self.reach.is_empty()
            && self.variants.iter().all(VariantComparison::is_equal)
            && self.new_findings.is_empty()
            && self.fixed_findings.is_empty()
    }
}

/// Compares two versions of a prompt. Costs are estimated with the prices of the catalog.
///
/// # Errors
/// Returns an error if the engine does not have the parser of a prompt that was rendered.
pub fn compare(before: &PromptVersion, after: &PromptVersion, catalog: &Catalog) -> Result<Comparison> {
    let (old, new) = (&before.written, &after.written);
    let (old_reach, new_reach) =
        (tympan_lint::reach_as_far_as_possible(old), tympan_lint::reach_as_far_as_possible(new));
    let (new_findings, fixed_findings) = findings::compare(before, after);
    Ok(Comparison {
        warnings: reach::warnings(&old_reach, &new_reach),
        newly_trusted: newly_trusted(old, new),
        definition: definition::compare(old, new),
        hashes: definition::compare_hashes(old, new),
        reach: reach::compare(&old_reach, &new_reach),
        variants: compare_variants(before, after, catalog)?,
        new_findings,
        fixed_findings,
    })
}

/// Returns the inputs that were declared before and not trusted, and now are.
fn newly_trusted(before: &Prompt, after: &Prompt) -> Vec<String> {
    let was_untrusted = |name: &str| before.variables().iter().any(|input| input.name == name && !input.trusted);
    let trusted = after.variables().iter().filter(|input| input.trusted && was_untrusted(&input.name));
    trusted.map(|input| input.name.clone()).collect()
}

fn compare_variants(
    before: &PromptVersion,
    after: &PromptVersion,
    catalog: &Catalog,
) -> Result<Vec<VariantComparison>> {
    let mut variants = Vec::new();
    for (variant, old) in &before.renders {
        let Some((_, new)) = after.renders.iter().find(|(name, _)| name == variant) else { continue };
        let (old_model, new_model) = (model(&before.written), model(&after.written));
        let old = Messages::new(&before.prompt, old, old_model.unwrap_or_default())?;
        let new = Messages::new(&after.prompt, new, new_model.unwrap_or_default())?;
        variants.push(VariantComparison {
            variant: variant.clone(),
            messages: messages::compare(&old, &new),
            before: ModelTokens::new(old_model, old.count, catalog),
            after: ModelTokens::new(new_model, new.count, catalog),
        });
    }
    Ok(variants)
}

fn model(prompt: &Prompt) -> Option<&str> {
    ModelSelection::new(prompt, &EncodeOptions::default()).model
}

impl ModelTokens {
    fn new(model: Option<&str>, count: TokenCount, catalog: &Catalog) -> Self {
        let price = model.and_then(|model| catalog.get(model).price);
        Self { model: model.map(str::to_owned), cost: price.map(|price| count.cost(&price)), count }
    }
}
