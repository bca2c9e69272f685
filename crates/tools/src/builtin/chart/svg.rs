//! Writes an SVG. Only here do texts and numbers become markup.

use super::Size;
use crate::page::{one_line, without_invisible};
use std::fmt::Write;

/// An unfinished drawing.
pub(super) struct Svg {
    text: String,
    size: Size,
}

/// Alignment of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
    /// Rotated, from bottom to top.
    Upwards,
}

/// Style of a shape.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct ShapeStyle {
    pub(super) stroke: &'static str,
    pub(super) stroke_width: f64,
    pub(super) dashes: &'static str,
    pub(super) fill: &'static str,
    pub(super) opacity: f64,
}

pub(super) const NONE: &str = "none";
pub(super) const INK: &str = "#333333";

/// Font sizes, in pixels.
pub(super) const LETTERS: f64 = 12.0;
const LETTERS_OF_TITLE: f64 = 16.0;

/// Approximate width of characters, relative to the font size: the viewer chooses the font.
const WIDTH: f64 = 0.58;
const WIDTH_OF_WIDE: f64 = 1.05;

/// First character of the scripts with wide characters.
const FIRST_WIDE: char = '\u{1100}';

/// Position of the title.
const TITLE_AT: f64 = 26.0;

// === impl Svg ===

impl Svg {
    /// Begins a drawing, with its title and its description for screen readers.
    pub(super) fn begin(size: Size, title: &str, told: &str) -> Self {
        let mut svg = Self { text: String::new(), size };
        let Size { width, height } = size;
        svg.put(format_args!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
             role=\"img\" aria-labelledby=\"chart-title chart-desc\" font-family=\"sans-serif\" font-size=\"{LETTERS}\">\n\
             <title id=\"chart-title\">{}</title>\n<desc id=\"chart-desc\">{}</desc>\n\
             <rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n",
            escaped(&one_line(title)),
            escaped(told),
        ));
        let shown = escaped(&fitting(title, width - 20.0, LETTERS_OF_TITLE));
        svg.put(format_args!(
            "<text x=\"{}\" y=\"{TITLE_AT}\" text-anchor=\"middle\" font-size=\"{LETTERS_OF_TITLE}\" fill=\"{INK}\">{shown}</text>\n",
            width / 2.0,
        ));
        svg
    }

    /// Ends the drawing.
    pub(super) fn end(mut self) -> String {
        self.text.push_str("</svg>\n");
        self.text
    }

    /// Draws a text of at most that width.
    pub(super) fn text(&mut self, (x, y): (f64, f64), text: &str, (anchor, width): (Anchor, f64)) {
        let shown = escaped(&fitting(text, width, LETTERS));
        let (place, anchor) = match anchor {
            Anchor::Start => (format!("x=\"{x:.1}\" y=\"{y:.1}\""), "start"),
            Anchor::Middle => (format!("x=\"{x:.1}\" y=\"{y:.1}\""), "middle"),
            Anchor::End => (format!("x=\"{x:.1}\" y=\"{y:.1}\""), "end"),
            Anchor::Upwards => (format!("transform=\"translate({x:.1} {y:.1}) rotate(-90)\""), "middle"),
        };
        self.put(format_args!("<text {place} text-anchor=\"{anchor}\" fill=\"{INK}\">{shown}</text>\n"));
    }

    /// Draws a text in the centre.
    pub(super) fn centred(&mut self, text: &str) {
        let Size { width, height } = self.size;
        self.text((width / 2.0, height / 2.0), text, (Anchor::Middle, width));
    }

    /// Draws a path.
    pub(super) fn path(&mut self, moves: &str, look: ShapeStyle) {
        if moves.is_empty() {
            return;
        }
        let ShapeStyle { stroke, stroke_width, dashes, fill, opacity } = look;
        self.put(format_args!(
            "<path d=\"{moves}\" fill=\"{fill}\" stroke=\"{stroke}\" stroke-width=\"{stroke_width}\" stroke-linecap=\"round\" \
             stroke-linejoin=\"round\"",
        ));
        if opacity < 1.0 {
            self.put(format_args!(" opacity=\"{opacity}\""));
        }
        if !dashes.is_empty() {
            self.put(format_args!(" stroke-dasharray=\"{dashes}\""));
        }
        self.text.push_str("/>\n");
    }

    fn put(&mut self, what: std::fmt::Arguments<'_>) {
        // Writing to a string can't fail.
        let _ = self.text.write_fmt(what);
    }
}

// === impl ShapeStyle ===

impl ShapeStyle {
    /// Returns the style of a line.
    pub(super) const fn line(stroke: &'static str, stroke_width: f64, dashes: &'static str) -> Self {
        Self { stroke, stroke_width, dashes, fill: NONE, opacity: 1.0 }
    }

    /// Returns the style of a filled shape.
    pub(super) const fn filled(fill: &'static str, opacity: f64) -> Self {
        Self { stroke: NONE, stroke_width: 0.0, dashes: "", fill, opacity }
    }
}

/// Returns the approximate width of a text.
pub(super) fn width_of(text: &str, letters: f64) -> f64 {
    let widths = text.chars().map(|one| if one < FIRST_WIDE { WIDTH } else { WIDTH_OF_WIDE });
    widths.sum::<f64>() * letters
}

/// Truncates a text to that width.
fn fitting(text: &str, width: f64, letters: f64) -> String {
    let text = one_line(text);
    if width_of(&text, letters) <= width {
        return text;
    }
    let mut fitting = String::new();
    let mut used = WIDTH_OF_WIDE * letters;
    for one in text.chars() {
        used += width_of(one.encode_utf8(&mut [0; 4]), letters);
        if used > width {
            break;
        }
        fitting.push(one);
    }
    fitting.push('…');
    fitting
}

/// Escapes a text for any place in the markup.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for one in without_invisible(text).chars() {
        match one {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            // XML doesn't allow these characters.
            '\u{fffe}' | '\u{ffff}' => {}
            _ => escaped.push(one),
        }
    }
    escaped
}
