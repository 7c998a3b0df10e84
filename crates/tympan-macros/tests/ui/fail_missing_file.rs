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
    // That there is no prompt is one mistake, and not also one here.
    let _ = tympan::TypedInputs::render(&Misspelt { name: String::new() });
}
