// A rule that nobody enforces is no rule.
#[derive(serde::Serialize, tympan::Inputs)]
#[prompt("prompts/ask.yaml")]
struct Ask {
    name: String,
    #[garde(length(min = 1))]
    question: String,
}

fn main() {}
