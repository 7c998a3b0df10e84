#[derive(serde::Serialize)]
struct Inner {
    name: String,
}

#[derive(serde::Serialize, tympan::Inputs)]
#[prompt("prompts/hello.yaml")]
struct Flattened {
    #[serde(flatten)]
    inner: Inner,
}

#[derive(serde::Serialize, tympan::Inputs)]
#[prompt("prompts/hello.yaml")]
#[serde(transparent)]
struct Transparent {
    name: String,
}

fn main() {}
