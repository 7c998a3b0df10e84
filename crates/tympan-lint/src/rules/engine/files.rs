//! Files that do not load.

use super::reported;

reported! {
    FILE_NOT_FOUND "TY001" "file_not_found" Format Error Never
    "Reports a prompt file that does not exist."
    "There is nothing to check."
    "tympan check prompts/suport.prompty"
    "Correct the path.";

    UNREADABLE_FILE "TY002" "unreadable_file" Format Error Never
    "Reports a file that cannot be read: a directory, a file that is too large or not UTF-8, or a file without read \
     permission."
    "Prompt files are text files of limited size."
    "tympan check picture.png"
    "The message gives the reason. Convert the file to UTF-8, or name another one.";

    INVALID_FRONTMATTER "TY003" "invalid_frontmatter" Format Error Never
    "Reports front matter that is not closed or is not valid YAML."
    "Without its front matter, a prompt has no model and no inputs."
    "---\nname: one\nname: two\n---"
    "Fix the YAML at the position shown. Put `---` on its own line before and after it.";

    INVALID_DOCUMENT "TY004" "invalid_document" Format Error Never
    "Reports a field with the wrong shape, such as a list where a string is expected."
    "The file does not load."
    "name: [not, text]"
    "Write the value in the form that the message asks for. The guide lists all fields.";

    INVALID_DEFINITION "TY005" "invalid_definition" Format Error Never
    "Reports a prompt definition that does not parse, or that does not match the schema of definitions."
    "The definition does not load."
    "name: greeting\nrole: systm\nbody: Hello!"
    "Fix the field at the position shown. `tympan schema` prints the schema.";

    INVALID_DIRECTIVE "TY006" "invalid_directive" Format Error Never
    "Reports a directive that lacks a required part, or a part with the wrong shape."
    "The directive does not load."
    "<directive version=\"1.0.0\">"
    "Add the part that the message names.";

    INVALID_XML "TY007" "invalid_xml" Format Error Never
    "Reports directive metadata that is not well-formed XML."
    "The directive does not load."
    "<directive name=\"greet\">\n  <inputs>\n</directive>"
    "Close every element, and escape `&` and `<` in text.";

    TEMPLATE_SYNTAX "TY008" "template_syntax" Format Error Never
    "Reports a template that does not parse."
    "The prompt cannot be rendered."
    "Hello {{ name }"
    "Fix the template at the position shown.";

    EXCLUDED_FEATURE "TY009" "excluded_feature" Format Error Never
    "Reports `include`, `import`, `extends`, `block` and Mustache partials in a template."
    "A template that loads other files would hide where its text comes from."
    "{% include \"rules.txt\" %}"
    "Write the text into the template, or pass it as an input with `trusted: true`.";

    LIMIT_EXCEEDED "TY010" "limit_exceeded" Format Error Never
    "Reports a file or a template that exceeds a limit, for example because it nests too deeply."
    "Limits keep a file from using up time and memory."
    "{{ ((((((…)))))) }}"
    "Simplify the template, or raise the limit in the application.";

    NOT_REGISTERED "TY011" "not_registered" Format Error Never
    "Reports a template format or a parser that is not built into Tympan."
    "The prompt cannot be rendered unless the application registers it."
    "template: {format: erb}"
    "Write `jinja2` or `mustache`, and `prompty` for the parser, or register the name in the application.";

    ENV_NOT_SET "TY012" "env_not_set" Format Warning Never
    "Reports a `${env:NAME}` reference to a variable that is not set."
    "Rendering or calling the model fails if it needs the value. `tympan check` reads no environment variables, so only \
     applications and other commands report it."
    "apiKey: ${env:OPENAI_API_KEY}"
    "Set the variable before the prompt runs, or add a default: `${env:NAME:value}`.";

    ENV_NOT_ALLOWED "TY013" "env_not_allowed" Format Error Never
    "Reports a `${env:NAME}` reference to a variable that is not allowed."
    "Prompt files may read only the variables that the application allows. `tympan check` reads none, so only applications \
     and other commands report it."
    "description: ${env:HOME}"
    "Allow the variable in the application or with `--allow-env`, or remove the reference.";

    REFERENCED_FILE_NOT_FOUND "TY014" "referenced_file_not_found" Format Error Never
    "Reports a `${file:path}` reference to a file that does not exist."
    "The prompt does not load."
    "sample: ${file:sampel.json}"
    "Correct the path. It is relative to the prompt file.";

    FILE_OUTSIDE_ROOT "TY015" "file_outside_root" Format Error Never
    "Reports a `${file:path}` reference to a file outside the allowed directories."
    "A prompt file from somebody else must not read arbitrary files."
    "sample: ${file:/etc/passwd}"
    "Move the file into the directory of the prompt, or allow its directory in the application or with `--allow-dir`.";

    INVALID_REFERENCED_FILE "TY016" "invalid_referenced_file" Format Error Never
    "Reports a referenced file that cannot be used: not a regular file, too large, not UTF-8, or not valid JSON or \
     YAML."
    "The prompt does not load."
    "sample: ${file:picture.png}"
    "Refer to a text file within the size limit. JSON and YAML files have to be valid.";
}
