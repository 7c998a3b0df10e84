//! Generates the workloads in `data/`. The words are pseudorandom and the same in every run; only the structure
//! matters.
//!
//! The expected texts are built by hand and not rendered by any of the libraries under test.
//! `cargo run --example generate` updates the files.

use serde_json::{Value, json};

/// A file of `data/`: its name and its text.
pub type File = (String, String);

/// Returns all files of `data/`.
pub fn files() -> Vec<File> {
    [chat(), retrieval(), history()].into_iter().flat_map(Generated::files).collect()
}

/// A generated workload.
struct Generated {
    name: &'static str,
    /// The template, with a history as a loop.
    jinja: String,
    /// The template of the `.prompty` file, with a history as a thread.
    prompty: String,
    /// The `inputs:` of the `.prompty` file.
    inputs: &'static str,
    /// The names and types for prompting-press.
    variables: &'static [(&'static str, &'static str)],
    values: Value,
    expected: String,
}

impl Generated {
    fn files(self) -> Vec<File> {
        let name = self.name;
        let prompty = format!(
            "---\nname: bench_{name}\ndescription: A prompt to measure with\nauthors:\n  - tympan\nmodel:\n  \
             id: gpt-4o\n  provider: openai\n  apiType: chat\n  options:\n    temperature: 0.2\n    \
             maxOutputTokens: 512\ninputs:\n{}---\n{}\n",
            self.inputs, self.prompty
        );
        let mut press = format!("name: bench-{name}\nrole: user\nbody: {}\nvariables:\n", Value::from(&*self.jinja));
        for (variable, kind) in self.variables {
            press += &format!("  {variable}: {{ type: {kind}, trusted: true }}\n");
        }
        vec![
            (format!("{name}.jinja"), self.jinja),
            (format!("{name}.prompty"), prompty),
            (format!("{name}.press.yaml"), press),
            (format!("{name}.json"), self.values.to_string() + "\n"),
            (format!("{name}.expected.txt"), self.expected),
        ]
    }
}

/// A small chat: a default value, a condition, and four messages.
fn chat() -> Generated {
    let template = r#"system:
You answer letters for the Harbour Museum. Write in a {{ tone | default("warm") }} and plain style,
name the room you are speaking of, and never mention loans that have not been announced yet.
{% if premium %}The writer is a friend of the museum: offer a tour with the curator.{% endif %}

user:
My name is {{ customer }}, and I was at the museum with my class last week.

assistant:
How good to hear from you, {{ customer }}! I have your visit in front of me. Tell me what you would like to know,
and I will look it up in the catalogue before I answer.

user:
{{ question }}"#;
    let customer = "Søren Ångström";
    let question = "We paid €4.50 each, yet the board said “school groups: free” & the café bill shows <2>. \
                    Which is right, and whom do I write to?";
    let expected = template
        .replace(r#"{{ tone | default("warm") }}"#, "warm")
        .replace("{% if premium %}", "")
        .replace("{% endif %}", "")
        .replace("{{ customer }}", customer)
        .replace("{{ question }}", question);
    Generated {
        name: "w1",
        jinja: template.to_owned(),
        prompty: template.to_owned(),
        inputs: "  - name: customer\n    kind: string\n  - name: premium\n    kind: boolean\n  \
                 - name: question\n    kind: string\n  - name: tone\n    kind: string\n",
        variables: &[("customer", "string"), ("premium", "boolean"), ("question", "string"), ("tone", "string")],
        values: json!({ "customer": customer, "premium": true, "question": question }),
        expected,
    }
}

/// Retrieval: a long template, nested attributes, joins, and a loop over twenty documents.
fn retrieval() -> Generated {
    let mut words = Words::new(20);
    let rules: String = (1..=26).map(|n| format!("{n}. {}.\n", words.sentence(22))).collect();
    let question = "In which year did the museum buy the second sextant, and which document says so?";
    let head = "system:\nYou answer questions for ";

    let jinja = [
        head,
        "{{ user.profile.name }} of {{ user.profile.org.name }} using only the documents below.\n\
         Their groups: {{ user.groups | join(\", \") }}.\n\
         {% if strict %}If no document has the answer, say so and stop.{% else %}You may add what you know.{% endif %}\n\
         # Rules\n",
        &rules,
        "# Documents\n\
         {% for doc in docs %}[{{ loop.index }}] {{ doc.title }} (source {{ doc.meta.source }}, score {{ doc.score }})\n\
         {% if doc.meta.verified %}verified\n{% endif %}tags: {{ doc.tags | join(\", \") }}\n\
         {{ doc.body }}\n---\n\
         {% endfor %}End of documents.\n\nuser:\n{{ question }}",
    ]
    .concat();

    let mut expected = format!(
        "{head}Åse Müller of Tide & Daughters using only the documents below.\n\
         Their groups: archive, rigging, night watch.\n\
         If no document has the answer, say so and stop.\n# Rules\n{rules}# Documents\n"
    );
    let mut docs = Vec::new();
    for n in 1..=20u32 {
        let title = format!("Document {n}: {}", words.line(4));
        let score = f64::from(9700 - 211 * n) / 10_000.0;
        let body = words.lines(8, 96);
        let tags = [words.next(), words.next(), words.next()];
        let source = format!("shelf://{}/{}", words.next(), 2000 + n);
        let verified = n % 3 != 0;
        expected += &format!("[{n}] {title} (source {source}, score {score})\n");
        expected += if verified { "verified\n" } else { "" };
        expected += &format!("tags: {}\n{body}\n---\n", tags.join(", "));
        docs.push(json!({ "title": title, "score": score, "body": body, "tags": tags,
                          "meta": { "source": source, "verified": verified } }));
    }
    expected += &format!("End of documents.\n\nuser:\n{question}");

    Generated {
        name: "w2",
        prompty: jinja.clone(),
        jinja,
        inputs: "  - name: user\n    kind: object\n    properties: []\n  - name: strict\n    kind: boolean\n  \
                 - name: docs\n    kind: array\n    items:\n      kind: object\n      properties: []\n  \
                 - name: question\n    kind: string\n",
        variables: &[("user", "object"), ("strict", "boolean"), ("docs", "array"), ("question", "string")],
        values: json!({
            "user": {
                "profile": { "name": "Åse Müller", "org": { "name": "Tide & Daughters" } },
                "groups": ["archive", "rigging", "night watch"],
            },
            "strict": true,
            "docs": docs,
            "question": question,
        }),
        expected,
    }
}

/// A chat with a history of fifty messages.
fn history() -> Generated {
    let mut words = Words::new(50);
    let customer = "Åse Müller";
    let question = "Then which of the two rooms should I visit first?";
    let head = |customer: &str| {
        format!(
            "system:\nYou answer letters for the Harbour Museum, this time those of {customer}.\n\
             Be brief. Come back to what was said before where it matters.\n\n"
        )
    };
    let mut expected = head(customer);
    let mut turns = Vec::new();
    for n in 0..50 {
        let (role, lines) = if n % 2 == 0 { ("user", 2) } else { ("assistant", 4) };
        let content = words.lines(lines, 89);
        expected += &format!("{role}:\n{content}\n\n");
        turns.push(json!({ "role": role, "content": content }));
    }
    expected += &format!("user:\n{question}");

    let head = head("{{ customer }}");
    Generated {
        name: "w3",
        jinja: format!(
            "{head}{{% for m in history %}}{{{{ m.role }}}}:\n{{{{ m.content }}}}\n\n{{% endfor %}}user:\n{{{{ question }}}}"
        ),
        prompty: format!("{head}{{{{ history }}}}\n\nuser:\n{{{{ question }}}}"),
        inputs: "  - name: customer\n    kind: string\n  - name: history\n    kind: thread\n  \
                 - name: question\n    kind: string\n",
        variables: &[("customer", "string"), ("history", "array"), ("question", "string")],
        values: json!({ "customer": customer, "history": turns, "question": question }),
        expected,
    }
}

/// A pseudorandom sequence of words, which depends only on the seed.
struct Words(u64);

impl Words {
    fn new(seed: u64) -> Words {
        Words(seed)
    }

    fn next(&mut self) -> &'static str {
        // A linear congruential generator with Knuth's constants. The high bits are the most random.
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        VOCABULARY[(self.0 >> 33) as usize % VOCABULARY.len()]
    }

    /// Returns this many words.
    fn line(&mut self, words: usize) -> String {
        (0..words).map(|_| self.next()).collect::<Vec<_>>().join(" ")
    }

    /// Returns this many words, starting with a capital letter.
    fn sentence(&mut self, words: usize) -> String {
        let line = self.line(words);
        let mut chars = line.chars();
        chars.next().map_or_else(String::new, |first| first.to_uppercase().collect::<String>() + chars.as_str())
    }

    /// Returns this many lines of at most `width` characters.
    fn lines(&mut self, count: usize, width: usize) -> String {
        let mut lines = Vec::new();
        let mut word = self.next();
        for _ in 0..count {
            let mut line = word.to_owned();
            word = self.next();
            while line.chars().count() + 1 + word.chars().count() <= width {
                line = line + " " + word;
                word = self.next();
            }
            lines.push(line);
        }
        lines.join("\n")
    }
}

const VOCABULARY: &[&str] = &[
    "a",
    "an",
    "the",
    "of",
    "to",
    "in",
    "on",
    "by",
    "from",
    "with",
    "or",
    "and",
    "that",
    "which",
    "was",
    "were",
    "had",
    "not",
    "as",
    "at",
    "anchor",
    "archive",
    "ballast",
    "barometer",
    "brass",
    "bridge",
    "cabin",
    "captain",
    "cargo",
    "chart",
    "chronometer",
    "compass",
    "crane",
    "crew",
    "curator",
    "deck",
    "dock",
    "drawing",
    "engine",
    "exhibit",
    "ferry",
    "figurehead",
    "fog",
    "gallery",
    "harbour",
    "hull",
    "keel",
    "lantern",
    "ledger",
    "lighthouse",
    "logbook",
    "mast",
    "model",
    "oilskin",
    "pilot",
    "plank",
    "propeller",
    "quay",
    "rigging",
    "room",
    "rope",
    "rudder",
    "sail",
    "sextant",
    "signal",
    "sounding",
    "storm",
    "tide",
    "timber",
    "voyage",
    "whistle",
    "winch",
    "café",
    "naïve",
    "Ærø",
    "“quoted”",
    "€4.50",
    "24/7",
    "&",
    "<i>",
    "東京",
    "🌊",
    "1,204.75",
    "No. 7",
];
