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
