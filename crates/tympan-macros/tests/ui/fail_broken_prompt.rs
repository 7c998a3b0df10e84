#[derive(serde::Serialize, tympan_macros::Inputs)]
#[prompt("prompts/broken.yaml")]
struct Broken {
    name: String,
}

fn main() {}
