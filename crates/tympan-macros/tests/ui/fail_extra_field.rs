#[derive(serde::Serialize, tympan::Inputs)]
#[prompt("prompts/hello.yaml")]
struct Misspelt {
    nmae: String,
}

#[derive(serde::Serialize, tympan::Inputs)]
#[prompt("prompts/hello.yaml")]
struct TooMany {
    name: String,
    colour: String,
}

#[derive(serde::Serialize, tympan::Inputs)]
#[prompt("prompts/hello.yaml")]
#[serde(rename_all = "camelCase")]
struct Renamed {
    #[serde(rename = "Name")]
    name: String,
    full_name: String,
}

fn main() {}
