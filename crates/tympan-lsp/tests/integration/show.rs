//! Answers as text, for fixtures.

use serde_json::Value as Json;

/// Returns the range as `line:character-line:character`, counted from 1.
pub(crate) fn range(range: &Json) -> String {
    let at = |end: &str, unit: &str| range[end][unit].as_u64().unwrap_or_default() + 1;
    let (line, end_line) = (at("start", "line"), at("end", "line"));
    let (column, end_column) = (at("start", "character"), at("end", "character"));
    match line == end_line {
        true => format!("{line}:{column}-{end_column}"),
        false => format!("{line}:{column}-{end_line}:{end_column}"),
    }
}

pub(crate) fn diagnostics(list: &Json) -> String {
    let lines = list.as_array().into_iter().flatten().map(|found| {
        let severity = match found["severity"].as_u64() {
            Some(1) => "error",
            Some(2) => "warning",
            _ => "other",
        };
        let tag = match found["tags"][0].as_u64() {
            Some(1) => " (unnecessary)",
            Some(2) => " (deprecated)",
            _ => "",
        };
        let message = found["message"].as_str().unwrap_or_default().replace('\n', " / ");
        let mut lines =
            format!("{} {severity} {}{tag} {message}\n", range(&found["range"]), found["code"].as_str().unwrap_or("?"));
        for related in found["relatedInformation"].as_array().into_iter().flatten() {
            lines +=
                &format!("  {} {}\n", range(&related["location"]["range"]), related["message"].as_str().unwrap_or("?"));
        }
        lines
    });
    lines.collect()
}

/// Returns the answer to a request as text.
pub(crate) fn answer(request: &str, answer: &Json, text: &str) -> String {
    let list = || answer.as_array().into_iter().flatten();
    let word = |json: &Json| json.as_str().unwrap_or("?").to_owned();
    match request {
        "hover" => match answer {
            Json::Null => "nothing\n".to_owned(),
            _ => format!("{}\n{}\n", range(&answer["range"]), word(&answer["contents"]["value"])),
        },
        "completion" => {
            let items = answer["items"].as_array().into_iter().flatten();
            items
                .map(|item| format!("{} | {}\n", word(&item["label"]), item["detail"].as_str().unwrap_or("")))
                .collect()
        }
        "definition" | "references" => {
            list().map(|found| format!("{} {}\n", word(&found["uri"]), range(&found["range"]))).collect()
        }
        "documentHighlight" => list().map(|found| range(&found["range"]) + "\n").collect(),
        "symbols" => list().map(|symbol| self::symbol(symbol, 0)).collect(),
        "tokens" => tokens(answer, text),
        "hints" => {
            let position = |at: &Json| {
                format!("{}:{}", at["line"].as_u64().unwrap_or(0) + 1, at["character"].as_u64().unwrap_or(0) + 1)
            };
            list().map(|hint| format!("{} {}\n", position(&hint["position"]), word(&hint["label"]))).collect()
        }
        "lenses" => {
            let lens = |lens: &Json| {
                let name = lens["command"]["arguments"][1].as_str().map_or(String::new(), |name| format!(" {name}"));
                let line = lens["range"]["start"]["line"].as_u64().unwrap_or_default() + 1;
                format!("{line} {} ({}{name})\n", word(&lens["command"]["title"]), word(&lens["command"]["command"]))
            };
            list().map(lens).collect()
        }
        other => panic!("unknown request {other}"),
    }
}

fn symbol(symbol: &Json, depth: usize) -> String {
    let indent = "  ".repeat(depth);
    let (name, detail) = (symbol["name"].as_str().unwrap_or("?"), symbol["detail"].as_str().unwrap_or(""));
    let mut shown =
        format!("{indent}{} {} {name}: {detail}\n", range(&symbol["range"]), range(&symbol["selectionRange"]));
    for child in symbol["children"].as_array().into_iter().flatten() {
        shown += &self::symbol(child, depth + 1);
    }
    shown
}

/// Returns the tokens with their text. Positions are in UTF-8.
fn tokens(answer: &Json, text: &str) -> String {
    const TYPES: [&str; 10] = [
        "keyword",
        "parameter",
        "variable",
        "property",
        "function",
        "macro",
        "string",
        "number",
        "comment",
        "operator",
    ];
    const MODIFIERS: [&str; 3] = ["trusted", "untrusted", "declaration"];
    let data: Vec<_> = answer["data"].as_array().into_iter().flatten().filter_map(Json::as_u64).collect();
    let lines: Vec<_> = text.lines().collect();
    let (mut line, mut column, mut shown) = (0, 0, String::new());
    for token in data.chunks(5) {
        let [lines_down, start, length, kind, modifiers] =
            token.iter().map(|unit| *unit as usize).collect::<Vec<_>>()[..]
        else {
            panic!("a token has five numbers")
        };
        column = if lines_down > 0 { start } else { column + start };
        line += lines_down;
        let text = &lines[line][column..column + length];
        if TYPES[kind] == "operator" {
            continue;
        }
        shown += &format!("{}: {text} {}", line + 1, TYPES[kind]);
        for (bit, modifier) in MODIFIERS.iter().enumerate().filter(|(bit, _)| modifiers >> bit & 1 == 1) {
            let _ = bit;
            shown += &format!(" {modifier}");
        }
        shown.push('\n');
    }
    shown
}
