//! Text templates with placeholders, filled for one run.
//!
//! `{name}` is a placeholder; `{{` and `}}` are braces. Filled values are not interpreted again.

use std::fmt::Write;

/// A text with placeholders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template(Vec<TemplatePart>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum TemplatePart {
    Text(String),
    Gap { gap: PlaceholderKind, is_json: bool },
}

/// Placeholders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlaceholderKind {
    /// The agent's prompt.
    Prompt,
    /// The model's name inside the sandbox.
    Model,
    /// The base URL of the models, without a path.
    BaseUrl,
}

/// Values of the placeholders.
#[derive(Debug, Clone, Copy)]
pub struct PlaceholderValues<'f> {
    /// The agent's prompt.
    pub prompt: &'f str,
    /// The model's name inside the sandbox.
    pub model: &'f str,
    /// The base URL of the models, without a path.
    pub base_url: &'f str,
}

/// Reasons why a text is not a template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// An unknown placeholder.
    #[error("{{{name}}} is no gap; there are {{prompt}}, {{model}}, {{base_url}}, and {{json:…}} of each")]
    Unknown {
        /// Its name.
        name: String,
    },
    /// An unpaired brace.
    #[error("a brace alone; written twice it is one")]
    Brace,
}

const GAPS: [(&str, PlaceholderKind); 3] = [
    ("prompt", PlaceholderKind::Prompt),
    ("model", PlaceholderKind::Model),
    ("base_url", PlaceholderKind::BaseUrl),
];

// === impl Template ===

impl Template {
    /// Parses a template. `{json:name}` is filled with the value as a JSON string, with quotes.
    ///
    /// # Errors
    /// [`TemplateError`].
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        let (mut parts, mut plain, mut rest) = (Vec::new(), String::new(), text);
        while let Some(at) = rest.find(['{', '}']) {
            let (before, brace) = rest.split_at(at);
            plain.push_str(before);
            if let Some(after) = brace.strip_prefix("{{").or_else(|| brace.strip_prefix("}}")) {
                plain.push_str(&brace[..1]);
                rest = after;
                continue;
            }
            let inner = brace.strip_prefix('{').and_then(|inner| inner.split_once('}'));
            let (name, after) = inner.ok_or(TemplateError::Brace)?;
            parts.push(TemplatePart::Text(std::mem::take(&mut plain)));
            parts.push(gap(name)?);
            rest = after;
        }
        plain.push_str(rest);
        parts.push(TemplatePart::Text(plain));
        parts.retain(|part| *part != TemplatePart::Text(String::new()));
        Ok(Self(parts))
    }

    /// Returns the text with all placeholders filled.
    pub fn fill(&self, filling: &PlaceholderValues<'_>) -> String {
        let mut text = String::new();
        for part in &self.0 {
            match part {
                TemplatePart::Text(plain) => text.push_str(plain),
                TemplatePart::Gap { gap, is_json: false } => text.push_str(filling.of(*gap)),
                TemplatePart::Gap { gap, is_json: true } => {
                    // Writing to a text can't fail.
                    let _ = write!(text, "{}", serde_json::Value::from(filling.of(*gap)));
                }
            }
        }
        text
    }

    /// Returns true for a non-empty text without placeholders.
    pub fn is_plain(&self) -> bool {
        matches!(self.0.as_slice(), [TemplatePart::Text(_)])
    }

    /// Returns true if it has that placeholder.
    pub fn has(&self, wanted: PlaceholderKind) -> bool {
        self.0.iter().any(|part| matches!(part, TemplatePart::Gap { gap, .. } if *gap == wanted))
    }
}

// === impl PlaceholderValues ===

impl<'f> PlaceholderValues<'f> {
    fn of(&self, gap: PlaceholderKind) -> &'f str {
        match gap {
            PlaceholderKind::Prompt => self.prompt,
            PlaceholderKind::Model => self.model,
            PlaceholderKind::BaseUrl => self.base_url,
        }
    }
}

fn gap(name: &str) -> Result<TemplatePart, TemplateError> {
    let (is_json, bare) = match name.strip_prefix("json:") {
        Some(bare) => (true, bare),
        None => (false, name),
    };
    let found = GAPS.iter().find(|(known, _)| *known == bare);
    let (_, gap) = found.ok_or_else(|| TemplateError::Unknown { name: name.to_owned() })?;
    Ok(TemplatePart::Gap { gap: *gap, is_json })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILLING: PlaceholderValues<'_> =
        PlaceholderValues { prompt: "say \"{model}\"", model: "small", base_url: "http://localhost:8080" };

    #[test]
    fn placeholders_are_filled_once_and_doubled_braces_are_literal() {
        let fill = |text: &str| Template::parse(text).unwrap().fill(&FILLING);
        assert_eq!(fill("--model={model}"), "--model=small");
        assert_eq!(fill("{prompt}"), "say \"{model}\"");
        assert_eq!(fill("{{\"m\": {json:prompt}}}"), "{\"m\": \"say \\\"{model}\\\"\"}");
        assert_eq!(fill("{base_url}/v1 }}{{"), "http://localhost:8080/v1 }{");
        assert_eq!(fill(""), "");
        assert!(Template::parse("a {prompt}").unwrap().has(PlaceholderKind::Prompt));
    }

    #[test]
    fn unknown_placeholders_and_single_braces_are_rejected() {
        assert_eq!(Template::parse("{key}"), Err(TemplateError::Unknown { name: "key".to_owned() }));
        for alone in ["{", "}", "a } b", "{prompt", "{{{"] {
            assert_eq!(Template::parse(alone), Err(TemplateError::Brace), "{alone}");
        }
    }
}
