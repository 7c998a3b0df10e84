//! Comments of prompt files that are addressed to Tympan.

use tympan_core::Prompt;
use tympan_core::format::definition::Syntax;
use tympan_core::format::outline::{Field, Outline};
use tympan_core::format::{Format, frontmatter};
use tympan_core::spec::PromptKind;
use tympan_core::template::syntax::{Token, TokenKind, parse_jinja, parse_mustache};
use tympan_core::text::source::{SourceFile, Span};

/// The word that a comment starts with.
pub(super) const ADDRESS: &str = "tympan:";

/// The language that a comment is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Language {
    /// `# …` in YAML and TOML.
    Data,
    /// `{# … #}`.
    Jinja,
    /// `{{! … }}`.
    Mustache,
    /// `<!-- … -->` in directives.
    Markup,
}

/// A comment that starts with [`ADDRESS`].
#[derive(Clone, Debug)]
pub(super) struct Comment {
    pub(super) language: Language,
    /// The position of the whole comment in the file.
    pub(super) span: Span,
    /// The position of the text after the address, without white space around it. Empty if the text is not in the file
    /// as it is.
    pub(super) text: Span,
    /// The part of the file that the comment is about.
    pub(super) target: Span,
    /// The line with its line end, if nothing else is on it.
    pub(super) line: Option<Span>,
}

/// Returns the comments of a file, in its order. A test file has no prompt.
pub(super) fn comments(source: &SourceFile, prompt: Option<&Prompt>) -> Vec<Comment> {
    if !source.text().contains(ADDRESS) {
        return Vec::new();
    }
    let mut comments = Vec::new();
    match prompt {
        None => comments.extend(test_file_comments(source)),
        Some(prompt) => comments.extend(data_comments(source, prompt)),
    }
    match prompt.map(|prompt| (prompt, prompt.kind())) {
        None => {}
        Some((_, PromptKind::Directive)) => comments.extend(markup_comments(source)),
        Some((prompt, _)) => comments.extend(template_comments(source, prompt)),
    }
    comments.sort_by_key(|comment| (comment.span.start, comment.span.end));
    comments.dedup_by_key(|comment| comment.span);
    comments
}

/// Returns the comments in a front matter or a definition. What belongs to a key or a value is not one.
fn data_comments(source: &SourceFile, prompt: &Prompt) -> Vec<Comment> {
    let text = source.text();
    let format = Format::from_name(source.name()).or_else(|| Format::of_content(text));
    let (region, is_toml) = match (prompt.kind(), format) {
        (PromptKind::Definition, Some(Format::Definition(Syntax::Json))) => return Vec::new(),
        (PromptKind::Definition, Some(Format::Definition(syntax))) => {
            (Span::new(0, text.len()), syntax == Syntax::Toml)
        }
        (PromptKind::Definition, _) => return Vec::new(),
        _ => match frontmatter::split(text).ok().and_then(|split| split.front_matter) {
            Some(front_matter) => (front_matter, false),
            None => return Vec::new(),
        },
    };
    let outline = match prompt.kind() {
        PromptKind::Directive => Outline::new(source, Format::Prompty),
        _ => prompt.outline(),
    };
    comments_in(text, region, is_toml, &outline)
}

/// Returns the comments in a test file.
fn test_file_comments(source: &SourceFile) -> Vec<Comment> {
    let syntax = Format::from_name(source.name()).and_then(Format::syntax);
    let Some(syntax) = syntax.filter(|syntax| *syntax != Syntax::Json) else { return Vec::new() };
    let outline = Outline::new(source, Format::Tests(syntax));
    comments_in(source.text(), Span::new(0, source.text().len()), syntax == Syntax::Toml, &outline)
}

/// Returns the comments in a part of a file that has an outline.
fn comments_in(text: &str, region: Span, is_toml: bool, outline: &Outline<'_>) -> Vec<Comment> {
    let mut taken = Vec::new();
    outline.get(&[]).into_iter().for_each(|root| scalars(root, &mut taken));
    // Keys and values do not overlap, so only the last one that starts before a position can contain it.
    taken.sort_by_key(|span| (span.start, span.end));
    let is_taken = |at: usize| {
        let after = taken.partition_point(|span| span.start <= at);
        after.checked_sub(1).is_some_and(|last| taken[last].range().contains(&at))
    };
    let mut found = Vec::new();
    let mut end = 0;
    for (at, _) in text[region.range()].match_indices(ADDRESS) {
        let at = region.start + at;
        let before = text[..at].trim_end_matches([' ', '\t']);
        let Some(before) = before.strip_suffix('#').filter(|_| at >= end) else { continue };
        let start = before.len();
        let starts_comment = is_toml || before.is_empty() || before.ends_with([' ', '\t', '\n']);
        if starts_comment && start >= region.start && !is_taken(start) {
            end = line_end(text, at);
            let content = Span::new(at + ADDRESS.len(), end);
            found.push(comment(text, Language::Data, Span::new(start, end), content, |span| span));
        }
    }
    found
}

/// Collects the positions of keys and of values that are neither maps nor lists.
fn scalars(field: Field<'_>, taken: &mut Vec<Span>) {
    let mut children = field.entries().chain(field.items()).peekable();
    if children.peek().is_none() {
        taken.push(field.span);
    }
    for child in children {
        if child.key.is_some() {
            taken.push(child.key_span);
        }
        scalars(child, taken);
    }
}

/// Returns the comments in templates.
fn template_comments(source: &SourceFile, prompt: &Prompt) -> Vec<Comment> {
    let mut found = Vec::new();
    for template in prompt.templates() {
        let text = template.source();
        let (language, tokens) = match prompt.spec().template.format.as_str() {
            "mustache" => (Language::Mustache, parse_mustache(text).tokens),
            "jinja2" | "jinja" | "nunjucks" | "*" => (Language::Jinja, parse_jinja(text).tokens),
            _ => return Vec::new(),
        };
        let is_comment = |token: &Token| token.kind == TokenKind::Comment;
        for span in tokens.into_iter().filter(is_comment).map(Token::span) {
            let Some(content) = content_of(text, span, language) else { continue };
            let in_file = |span: Span| {
                let located = template.locate(span);
                // Escapes in strings have other lengths.
                if source.slice(located) == &text[span.range()] {
                    located
                } else {
                    Span::new(located.start, located.start)
                }
            };
            let mut comment = comment(text, language, span, content, in_file);
            comment.span = template.locate(span);
            found.push(comment);
        }
    }
    found
}

/// Returns the position of the text after the address, if a comment starts with it.
fn content_of(text: &str, span: Span, language: Language) -> Option<Span> {
    let (open, close) = match language {
        Language::Jinja => ("{#", "#}"),
        Language::Markup => ("<!--", "-->"),
        // Mustache can have other delimiters.
        _ => return mustache_content(text, span),
    };
    let inner = text[span.range()].strip_prefix(open)?.strip_suffix(close)?;
    let inner_start = span.start + open.len();
    let inner = if language == Language::Jinja { inner.strip_suffix(['-', '+']).unwrap_or(inner) } else { inner };
    let rest =
        inner.trim_start_matches(|char: char| char.is_whitespace() || (language == Language::Jinja && char == '-'));
    let after = rest.strip_prefix(ADDRESS)?;
    let end = inner_start + inner.len();
    Some(Span::new(end - after.len(), end))
}

fn mustache_content(text: &str, span: Span) -> Option<Span> {
    let comment = &text[span.range()];
    let mark = comment.find('!')?;
    let start = comment[mark + 1..].trim_start().strip_prefix(ADDRESS)?;
    let content = span.end - start.len();
    // The list of rules ends before the closing delimiter, whatever that is.
    let end = start.find(']').map_or(span.end, |bracket| content + bracket + 1);
    let end = if end == span.end { content + start.trim_end_matches('}').len() } else { end };
    Some(Span::new(content, end))
}

/// Returns the comments in a directive: those in its XML, and those in its text outside of code.
fn markup_comments(source: &SourceFile) -> Vec<Comment> {
    let text = source.text();
    let mut found = Vec::new();
    let (mut at, mut fence): (usize, Option<(&str, bool)>) = (0, None);
    for line in text.split_inclusive('\n') {
        let trimmed = line.trim_start();
        let mark = ["```", "~~~"].into_iter().find(|mark| trimmed.starts_with(mark));
        match (fence, mark) {
            (None, Some(mark)) => fence = Some((mark, trimmed[mark.len()..].trim().eq_ignore_ascii_case("xml"))),
            (Some((open, _)), Some(mark)) if open == mark => fence = None,
            _ => {}
        }
        if fence.is_none_or(|(_, is_xml)| is_xml) {
            found.extend(markup_comment(text, at, line));
        }
        at += line.len();
    }
    found
}

fn markup_comment(text: &str, at: usize, line: &str) -> Option<Comment> {
    let open = line.find("<!--")?;
    let close = open + line[open..].find("-->")? + "-->".len();
    let is_code = line[..open].matches('`').count() % 2 == 1;
    let is_data = text[..at + open].rfind("<![CDATA[").is_some_and(|data| !text[data..at + open].contains("]]>"));
    let span = Span::new(at + open, at + close);
    let content = content_of(text, span, Language::Markup).filter(|_| !is_code && !is_data)?;
    Some(comment(text, Language::Markup, span, content, |span| span))
}

/// Creates a comment. The spans are positions in `text`, and `in_file` converts them.
fn comment(text: &str, language: Language, span: Span, content: Span, in_file: impl Fn(Span) -> Span) -> Comment {
    let line_start = text[..span.start].rfind('\n').map_or(0, |newline| newline + 1);
    let end = line_end(text, span.end);
    let next = text[end..].find('\n').map_or(text.len(), |length| end + length + 1);
    let is_alone = text[line_start..span.start].trim().is_empty() && text[span.end..end].trim().is_empty();
    let target = if is_alone { next_line(text, next) } else { Span::new(line_start, end) };
    let trimmed = text[content.range()].trim();
    let text_start = content.start + text[content.range()].find(trimmed).unwrap_or_default();
    Comment {
        language,
        span: in_file(span),
        text: in_file(Span::new(text_start, text_start + trimmed.len())),
        // Both ends are converted, because the part between them may contain escapes.
        target: Span::new(
            in_file(Span::new(target.start, target.start)).start,
            in_file(Span::new(target.end, target.end)).start,
        ),
        line: Some(in_file(Span::new(line_start, next))).filter(|line| is_alone && line.start < line.end),
    }
}

/// Returns the line at an offset. Lines that only consist of comments to Tympan are passed over.
fn next_line(text: &str, mut at: usize) -> Span {
    loop {
        let end = line_end(text, at);
        let line = text[at..end].trim();
        let inner = line.trim_start_matches(['#', '{', '!', '<', '-']).trim_start();
        if !inner.starts_with(ADDRESS) || inner.len() == line.len() || end >= text.len() {
            return Span::new(at, end);
        }
        at = text[end..].find('\n').map_or(text.len(), |length| end + length + 1);
    }
}

/// Returns the end of the line at an offset, before its line end.
fn line_end(text: &str, at: usize) -> usize {
    let end = text[at..].find('\n').map_or(text.len(), |length| at + length);
    if text[at..end].ends_with('\r') { end - 1 } else { end }
}
