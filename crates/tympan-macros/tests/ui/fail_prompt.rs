// The prompt cannot be used.
#[derive(serde::Serialize, tympan::Inputs)]
#[prompt("prompts/broken.yaml")]
struct Broken {
    name: String,
}

#[derive(serde::Serialize, tympan::Inputs)]
#[prompt("prompts/asks.yaml")]
struct Misspelt {
    name: String,
}

#[derive(serde::Serialize, tympan::Inputs)]
#[prompt("somewhere/else.yaml")]
struct Elsewhere {
    name: String,
}

#[derive(serde::Serialize, tympan::Inputs)]
#[prompt("prompts/reference.prompty")]
struct Refers {}

fn main() {
    // A missing prompt is reported once, and not also here.
    let _ = tympan::TypedInputs::render(&Misspelt { name: String::new() });
}
