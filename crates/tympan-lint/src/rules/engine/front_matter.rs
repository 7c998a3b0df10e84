//! Front matter that loads, with warnings.

use super::reported;

reported! {
    LEGACY_KEY "TY017" "legacy_key" Format Warning Sometimes
    "Reports keys and values of older versions of the format, and names that other formats use."
    "They are converted, but readers and other tools expect the current names."
    "model:\n  api: chat"
    "Write the name that the help shows, here `apiType: chat`. The fix converts the whole front matter.";

    MISSPELT_KEY "TY018" "misspelt_key" Format Warning Always
    "Reports an unknown key that is close to a known one."
    "Unknown keys are preserved but have no effect."
    "descripton: Greets somebody"
    "Write the key that the help shows, here `description`.";

    MISSING_KIND "TY019" "missing_kind" Format Warning Never
    "Reports a connection or a tool without a `kind`."
    "The kind is inferred from the other keys, and the guess may be wrong."
    "connection: {endpoint: https://example.com}"
    "Add the `kind` that the help shows.";

    UNQUOTED_TEXT "TY020" "unquoted_text" Format Warning Always
    "Reports a number or a boolean where text is expected."
    "YAML reads `1.10` as the number 1.1, and `no` as a boolean or as text, depending on its version."
    "name: 1.10"
    "Put the value in quotes.";

    KIND_AS_DEFAULT "TY021" "kind_as_default" Format Warning Always
    "Reports an input whose default is the name of a kind."
    "`question: string` does not declare a kind: it sets the default to the word `string`."
    "inputs:\n  question: string"
    "Write `question: {kind: string}`.";

    UNUSABLE_SAMPLE "TY022" "unusable_sample" Format Warning Never
    "Reports a `sample` that is not a map of examples."
    "The value is preserved but not used."
    "sample: sample.json"
    "Write `sample: ${file:sample.json}`, or an `example` for each input.";

    IGNORED_KEY "TY023" "ignored_key" Format Warning Never
    "Reports the keys `kind` and `instructions`. Tympan takes both from the file itself."
    "The value has no effect."
    "instructions: Be brief."
    "Remove the key. The template follows the front matter.";

    REFERENCE_IN_TEXT "TY024" "reference_in_text" Format Warning Never
    "Reports a `${env:…}` or `${file:…}` reference inside a longer text."
    "A reference is resolved only if it is the whole value. This one stays in the text as it is."
    "description: Answers for ${env:COMPANY}"
    "Pass text that varies as an input.";

    UNKNOWN_REFERENCE "TY025" "unknown_reference" Format Warning Never
    "Reports a reference that is neither `${env:…}` nor `${file:…}`."
    "The text stays as it is."
    "apiKey: ${enf:KEY}"
    "Write `${env:NAME}`, `${env:NAME:default}` or `${file:path}`.";
}
