#[derive(serde::Serialize, tympan::Inputs)]
#[prompt("prompts/broken.yaml")]
struct Broken {
    name: String,
}

fn main() {}
