//! Prompts that load, but may not do what their authors want.

use super::reported;

reported! {
    UNSUPPORTED_OPTION "TY109" "unsupported_option" Correctness Warning Never
    "Reports a model option that the provider does not support."
    "The option is silently left out of the request."
    "model: {id: gpt-4o, provider: openai, options: {topK: 5}}"
    "Remove the option, or choose a provider that supports it.";

    DUPLICATE_NAME "TY111" "duplicate_name" Correctness Error Never
    "Reports two inputs or outputs of a directive with the same name. In other formats, this is `invalid_document`."
    "Nobody can tell which one is meant."
    "<inputs><input name=\"who\"/><input name=\"who\"/></inputs>"
    "Rename one of the two.";

    UNDECLARED_INPUT "TY113" "undeclared_input" Correctness Error Never
    "Reports a reference in a directive to an input that it does not declare."
    "Callers cannot pass the input."
    "Greet {input:nmae}."
    "Correct the reference, or declare the input.";

    SCHEMA_NOT_STRICT "TY114" "schema_not_strict" Correctness Warning Never
    "Reports a JSON Schema that the prompt asks the provider to enforce, and that the provider cannot enforce."
    "The model may return data that does not match. Tympan still checks it."
    "outputs: {type: object, properties: {on: {type: string, minLength: 3}}}"
    "Remove the keywords that the message names, or accept that they are checked after the response.";

    SCHEMA_NOT_CHECKED "TY115" "schema_not_checked" Correctness Warning Never
    "Reports keywords of a JSON Schema that Tympan does not check."
    "Values that violate them go unnoticed."
    "outputs: {type: object, properties: {on: {type: string, format: date}}}"
    "Check the values in your own code if they matter.";

    NO_CREDENTIALS "TY116" "no_credentials" Correctness Warning Never
    "Reports a connection that needs an access token but has no credential provider."
    "Requests fail because there is no token. `tympan check` does not know the credentials of the application, so only \
     applications report it."
    "connection: {kind: foundry, endpoint: https://example.services.ai.azure.com}"
    "Configure a credential command or a credential provider.";

    VARIABLE_UNUSED_IN_VARIANT "TY202" "variable_unused_in_variant" Suspicious Warning Never
    "Reports a variable that some variants of a definition use and others do not."
    "Variants are alternatives for the same task, so one of them may lack something."
    "body: 'Greet {{ name }}.'\nvariants:\n  short: {body: Hello!}"
    "Use the variable in the variant if it is needed there.";

    UNMENTIONED_THREAD "TY203" "unmentioned_thread" Suspicious Warning Never
    "Reports a thread input that the template does not mention."
    "Its messages follow the last message of the template, which is often the question."
    "inputs: [{name: history, kind: thread}]"
    "Write `{{ history }}` where the messages belong.";

    UNTRUSTED_WITHOUT_GUARD "TY308" "untrusted_without_guard" Trust Warning Never
    "Reports an untrusted variable of a definition whose metadata does not mention a guard."
    "The author has not said whether the text is marked as untrusted for the model."
    "variables:\n  page: {type: string, trusted: false}\nbody: 'Summarize {{ page }}.'"
    "Add a `guard` key to the metadata and render with the guard, or set `trusted: true`.";

    TRUSTED_RESULT "TY310" "trusted_result" Trust Warning Never
    "Reports `trusted` on a tool of a prompt."
    "Only the host can say that results are trusted: in the tools file, or in code. In a prompt, the key has no effect."
    "tools:\n  - {name: find_order, kind: function, effect: read, trusted: true}"
    "Remove the key. If no result of the tool contains text of others, set `trusted = true` in the tools file.";
}
