#[derive(serde::Serialize, tympan_macros::Inputs)]
#[prompt("prompts/reference.prompty")]
struct Refers {}

fn main() {}
