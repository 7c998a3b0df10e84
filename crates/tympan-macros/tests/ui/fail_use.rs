use tympan::{Result, TypedInputs};

// Validation rules must be enforced.
#[derive(serde::Serialize, tympan::Inputs)]
#[prompt("prompts/ask.yaml")]
struct Ask {
    name: String,
    #[garde(length(min = 1))]
    question: String,
}

#[derive(serde::Serialize, tympan::Inputs)]
#[prompt("prompts/hello.yaml")]
struct Hello {
    name: String,
}

fn main() -> Result<()> {
    Hello {}.render()?;
    Hello { name: "Ada".to_owned(), colour: "red" }.render()?;
    Ok(())
}
