// The struct does not fit the prompt.
#[derive(serde::Serialize, tympan::Inputs)]
#[prompt("prompts/hello.yaml")]
struct Misspelt {
    nmae: String,
}

#[derive(serde::Serialize, tympan::Inputs)]
#[prompt("prompts/hello.yaml")]
struct TooMany {
    name: String,
    colour: String,
}

#[derive(serde::Serialize, tympan::Inputs)]
#[prompt("prompts/hello.yaml")]
#[serde(rename_all = "camelCase")]
struct Renamed {
    #[serde(rename = "Name")]
    name: String,
    full_name: String,
}

#[derive(serde::Serialize, tympan::Inputs)]
#[prompt("prompts/list.json")]
struct List {
    items: Vec<String>,
    #[serde(skip)]
    note: String,
}

#[derive(serde::Serialize)]
struct Inner {
    name: String,
}

#[derive(serde::Serialize, tympan::Inputs)]
#[prompt("prompts/hello.yaml")]
struct Flattened {
    #[serde(flatten)]
    inner: Inner,
}

#[derive(serde::Serialize, tympan::Inputs)]
#[prompt("prompts/hello.yaml")]
#[serde(transparent)]
struct Transparent {
    name: String,
}

#[derive(serde::Serialize, tympan::Inputs)]
#[prompt("prompts/hello.yaml")]
struct Tuple(String);

#[derive(serde::Serialize, tympan::Inputs)]
#[prompt("prompts/hello.yaml")]
enum Choice {
    One { name: String },
}

#[derive(serde::Serialize, tympan::Inputs)]
struct NoPrompt {
    name: String,
}

#[derive(serde::Serialize, tympan::Inputs)]
#[prompt("prompts/hello.yaml")]
#[prompt("prompts/ask.yaml")]
struct Two {
    name: String,
}

#[derive(serde::Serialize, tympan::Inputs)]
#[prompt("/prompts/hello.yaml")]
struct Absolute {
    name: String,
}

#[derive(serde::Serialize, tympan::Inputs)]
#[prompt = "prompts/hello.yaml"]
struct Assigned {
    name: String,
}

#[derive(serde::Serialize, tympan::Inputs)]
#[prompt("prompts/ask.yaml")]
struct NoGarde {
    name: String,
    question: String,
}

#[derive(serde::Serialize, garde::Validate, tympan::Inputs)]
#[prompt("prompts/ask.yaml")]
struct Skipped {
    #[garde(skip)]
    name: String,
    #[garde(skip)]
    question: String,
}

#[derive(serde::Serialize, garde::Validate, tympan::Inputs)]
#[prompt("prompts/ask.yaml")]
#[garde(allow_unvalidated)]
struct AllowUnvalidated {
    name: String,
    question: String,
}

fn main() {}
