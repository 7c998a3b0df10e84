#[derive(serde::Serialize, tympan::Inputs)]
#[prompt("prompts/hello.yaml")]
struct Tuple(String);

#[derive(serde::Serialize, tympan::Inputs)]
#[prompt("prompts/hello.yaml")]
enum Choice {
    One { name: String },
}

#[derive(serde::Serialize, tympan::Inputs)]
struct NoPrompt {
    name: String,
}

#[derive(serde::Serialize, tympan::Inputs)]
#[prompt("prompts/hello.yaml")]
#[prompt("prompts/ask.yaml")]
struct Two {
    name: String,
}

#[derive(serde::Serialize, tympan::Inputs)]
#[prompt("/prompts/hello.yaml")]
struct Absolute {
    name: String,
}

#[derive(serde::Serialize, tympan::Inputs)]
#[prompt = "prompts/hello.yaml"]
struct Assigned {
    name: String,
}

fn main() {}
