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

fn main() {
    // A missing prompt is reported once, and not also here.
    let _ = tympan::TypedInputs::render(&Misspelt { name: String::new() });
}
