#[derive(serde::Serialize, tympan_macros::Inputs)]
#[prompt("prompts/list.json")]
struct List {
    items: Vec<String>,
    #[serde(skip)]
    note: String,
}

fn main() {}
