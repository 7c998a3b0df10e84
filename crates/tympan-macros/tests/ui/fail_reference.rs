#[derive(serde::Serialize, tympan::Inputs)]
#[prompt("prompts/reference.prompty")]
struct Refers {}

fn main() {}
