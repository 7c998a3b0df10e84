#[derive(serde::Serialize, tympan::Inputs)]
#[prompt("prompts/list.json")]
struct List {
    items: Vec<String>,
    #[serde(skip)]
    note: String,
}

fn main() {}
