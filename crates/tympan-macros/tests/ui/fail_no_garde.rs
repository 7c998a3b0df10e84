// Validation rules must be enforced.
#[derive(serde::Serialize, tympan::Inputs)]
#[prompt("prompts/ask.yaml")]
struct Ask {
    name: String,
    #[garde(length(min = 1))]
    question: String,
}

fn main() {}
