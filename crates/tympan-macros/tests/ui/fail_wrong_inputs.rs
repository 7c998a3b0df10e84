use tympan::{Result, TypedInputs};

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
