//! The metadata and the steps of directives.

use super::reported;

reported! {
    NOT_APPLIED "TY026" "not_applied" Format Warning Never
    "Reports metadata of a directive that Tympan preserves but does not apply."
    "The author may rely on something that does not happen."
    "<directive name=\"greet\" extends=\"base\">"
    "Follow the help, for example by copying what the directive needs into the file.";

    MISPLACED_ELEMENT "TY027" "misplaced_element" Format Warning Never
    "Reports an element of a directive that belongs in `<metadata>`."
    "It takes effect, but other readers look for it in `<metadata>`."
    "<directive name=\"greet\">\n  <description>Greets somebody</description>\n</directive>"
    "Move the element into `<metadata>`.";

    UNKNOWN_ELEMENT "TY028" "unknown_element" Format Warning Never
    "Reports an element of a directive that Tympan does not know."
    "It is preserved but not used. Often, it is a misspelling."
    "<metadta>…</metadta>"
    "Correct its name, or remove it.";

    NOT_A_NUMBER "TY029" "not_a_number" Format Warning Never
    "Reports a limit or a cost in a directive that is not a number."
    "The value is ignored."
    "<turns>many</turns>"
    "Write a number such as `6` or `0.5`.";

    UNKNOWN_PERMISSION "TY030" "unknown_permission" Format Warning Never
    "Reports a permission in a directive that grants nothing."
    "The directive does not get the permission that it names."
    "<cap>rye.exec.tool.*</cap>"
    "Write `rye.<action>.<type>.<item>`.";

    HOOK_WITHOUT_WHEN "TY031" "hook_without_when" Format Warning Never
    "Reports a hook of a directive without a condition."
    "The hook never runs."
    "<hook><execute item_type=\"directive\">warn</execute></hook>"
    "Add a condition in `<when>`.";

    HOOK_WITHOUT_EXECUTE "TY032" "hook_without_execute" Format Warning Never
    "Reports a hook of a directive without an action."
    "The hook does nothing."
    "<hook><when>cost.current > 1</when></hook>"
    "Add an action in `<execute>`.";

    ALWAYS_DEFAULT "TY033" "always_default" Format Warning Never
    "Reports a reference with a default to an input that a directive does not declare."
    "The default is always used, because callers cannot pass the input."
    "Greet {input:nmae|you}."
    "Declare the input, or correct its name.";

    INVALID_NAME "TY034" "invalid_name" Format Warning Never
    "Reports a directive whose name contains characters other than letters, digits, `_`, `-`, `.` and `/`."
    "The name is copied unchanged into the prompt."
    "<directive name=\"a&lt;b\">"
    "Use only these characters.";

    INVALID_VERSION "TY035" "invalid_version" Format Warning Never
    "Reports a directive whose version is not a semantic version."
    "Tools cannot compare it with other versions."
    "<directive name=\"greet\" version=\"1\">"
    "Write three numbers, such as `1.0.0`.";

    MALFORMED_REFERENCE "TY036" "malformed_reference" Format Warning Never
    "Reports text in a directive that looks like a reference to an input but is not valid."
    "It is rendered as text."
    "Greet {input:}."
    "Write `{input:name}`, `{input:name?}`, `{input:name:default}` or `{input:name|default}`.";

    MISSING_METADATA "TY037" "missing_metadata" Format Warning Never
    "Reports a directive without a name, a description or other metadata that readers expect."
    "Tools that list directives have nothing to show."
    "<directive name=\"greet\" version=\"1.0.0\"></directive>"
    "Add the metadata that the message names.";

    NO_STEPS "TY038" "no_steps" Format Warning Never
    "Reports a directive without steps."
    "The model does not see the metadata, so it has nothing to do."
    "```xml\n<directive name=\"greet\" version=\"1.0.0\"></directive>\n```"
    "Write the steps after the fenced block.";

    UNKNOWN_TYPE "TY039" "unknown_type" Format Warning Never
    "Reports an input or output of a directive with an unknown type."
    "The type counts as `string`."
    "<input name=\"week\" type=\"intger\"/>"
    "Use one of the types that the help lists.";

    UNMENTIONED_OUTPUT "TY040" "unmentioned_output" Format Warning Never
    "Reports an output that the steps of a directive do not mention."
    "The model may not know how to produce it."
    "<outputs><output name=\"summary\"/></outputs>"
    "Say in a step how to produce it.";

    NOT_INTERPOLATED "TY041" "not_interpolated" Format Warning Never
    "Reports a reference to an input outside the steps of a directive."
    "References are replaced only in the steps, so this one is rendered as text."
    "# Greet {input:name}"
    "Move the reference below the metadata.";

    INVALID_SIGNATURE "TY042" "invalid_signature" Format Error Never
    "Reports a directive whose signature is missing, does not match the file, or was made with a key that is not \
     trusted."
    "The file may have been changed by somebody else."
    "<!-- rye:signed:… -->"
    "Sign the directive again after you have reviewed it.";
}
