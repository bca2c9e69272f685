//! Extracts the visible text of a page.

use super::Part;
use super::prose::Prose;
use super::tree::{Element, PAGE, Step, Tree};
use url::Url;

/// Elements without visible text: scripts, styles, drawings, embedded pages, and form controls.
const UNSEEN: [&str; 26] = [
    "applet", "area", "audio", "base", "button", "canvas", "datalist", "embed", "frame", "frameset", "head",
    "iframe", "input", "link", "math", "meta", "noembed", "noframes", "noscript", "object", "script",
    "select", "style", "svg", "template", "textarea",
];

/// Elements that surround the main content.
const AROUND: [&str; 3] = ["aside", "footer", "nav"];

/// Block elements, and the number of line ends around them.
const BLOCKS: [(&str, usize); 33] = [
    ("address", 1),
    ("article", 2),
    ("aside", 2),
    ("blockquote", 2),
    ("body", 2),
    ("dd", 1),
    ("details", 2),
    ("div", 1),
    ("dl", 2),
    ("dt", 1),
    ("fieldset", 1),
    ("figcaption", 1),
    ("figure", 2),
    ("footer", 2),
    ("form", 1),
    ("h1", 2),
    ("h2", 2),
    ("h3", 2),
    ("h4", 2),
    ("h5", 2),
    ("h6", 2),
    ("header", 2),
    ("hr", 2),
    ("li", 1),
    ("main", 2),
    ("nav", 2),
    ("ol", 1),
    ("p", 2),
    ("pre", 2),
    ("section", 2),
    ("table", 2),
    ("tr", 1),
    ("ul", 1),
];

/// Line prefixes by element.
const BEGINS: [(&str, &str); 7] = [
    ("li", "- "),
    ("h1", "# "),
    ("h2", "## "),
    ("h3", "### "),
    ("h4", "#### "),
    ("h5", "##### "),
    ("h6", "###### "),
];

/// Minimum length of an article, in bytes, to omit the rest of its page by default.
const SHORTEST_ARTICLE: usize = 200;

/// Maximum length of a link address in the text, in bytes.
const LONGEST_ADDRESS: usize = 500;

/// Visible text of a part of a page. Without the URL of the page, link addresses are omitted.
pub(super) fn text(tree: &Tree, url: Option<&Url>, part: Part) -> String {
    let article = match part {
        Part::FullText => None,
        Part::Auto | Part::Article => article(tree),
    };
    match (part, article) {
        (Part::FullText, _) | (Part::Auto, None) => written(tree, url, PAGE, false),
        (Part::Article, None) => written(tree, url, PAGE, true),
        (Part::Article, Some((number, _))) => written(tree, url, number, true),
        (Part::Auto, Some((number, length))) => match length >= SHORTEST_ARTICLE {
            true => written(tree, url, number, true),
            false => written(tree, url, PAGE, false),
        },
    }
}

/// Visible text of the whole page, without link addresses.
pub(super) fn bare(tree: &Tree) -> String {
    written(tree, None, PAGE, false)
}

/// The longest main or article element, and its length.
fn article(tree: &Tree) -> Option<(usize, usize)> {
    let mut open: Vec<(usize, usize)> = Vec::new();
    let (mut longest, mut length) = (None, 0);
    tree.walk(PAGE, &mut |step| match step {
        Step::Text(text) => {
            length += text.trim().len();
            true
        }
        Step::Enter(number, element) => {
            let is_wanted = is_seen(element) && !AROUND.contains(&element.name());
            if is_wanted && is_article(element) {
                open.push((number, length));
            }
            is_wanted
        }
        Step::Leave(number, element) => {
            if is_article(element)
                && let Some((_, before)) = open.pop()
                && longest.is_none_or(|(_, longest)| length - before > longest)
            {
                longest = Some((number, length - before));
            }
            true
        }
    });
    longest
}

fn is_article(element: &Element) -> bool {
    matches!(element.name(), "article" | "main")
        || matches!(element.attribute("role"), Some("main" | "article"))
}

fn written(tree: &Tree, url: Option<&Url>, from: usize, is_article: bool) -> String {
    let mut prose = Prose::default();
    let (mut preformatted, mut cells) = (0_usize, 0_usize);
    tree.walk(from, &mut |step| {
        match step {
            Step::Text(text) if preformatted > 0 => prose.preformatted(text),
            Step::Text(text) => prose.text(text),
            Step::Enter(_, element) => {
                if !is_seen(element) || (is_article && AROUND.contains(&element.name())) {
                    return false;
                }
                match element.name() {
                    "br" => prose.end_line(1),
                    "pre" => preformatted += 1,
                    "tr" => cells = 0,
                    "td" | "th" => {
                        if cells > 0 {
                            prose.text(" | ");
                        }
                        cells += 1;
                    }
                    _ => {}
                }
                around(&mut prose, element);
                if let Some((_, begin)) = BEGINS.iter().find(|(name, _)| *name == element.name()) {
                    prose.begin_line(begin);
                }
            }
            Step::Leave(_, element) => {
                match element.name() {
                    "pre" => preformatted -= 1,
                    "a" => {
                        if let Some(address) = url.and_then(|url| address(element, url)) {
                            prose.text(&format!(" <{address}>"));
                        }
                    }
                    _ => {}
                }
                around(&mut prose, element);
            }
        }
        true
    });
    prose.finish()
}

fn around(prose: &mut Prose, element: &Element) {
    if let Some((_, lines)) = BLOCKS.iter().find(|(name, _)| *name == element.name()) {
        prose.end_line(*lines);
    }
}

/// Target of a link, if it is another page.
fn address(element: &Element, url: &Url) -> Option<String> {
    let text = element.attribute("href").map(str::trim).filter(|text| !text.starts_with('#'))?;
    let to = url.join(text).ok()?;
    let is_page = matches!(to.scheme(), "http" | "https") && to.as_str().len() <= LONGEST_ADDRESS;
    is_page.then(|| to.into())
}

/// True unless attributes of the element hide it.
pub(super) fn is_seen(element: &Element) -> bool {
    let is_said = |name: &str, value: &str| {
        element.attribute(name).is_some_and(|own| own.trim().eq_ignore_ascii_case(value))
    };
    !UNSEEN.contains(&element.name())
        && element.attribute("hidden").is_none()
        && !is_said("aria-hidden", "true")
        && !element.attribute("style").is_some_and(hides)
}

/// True if a style hides its element: not displayed, without size or colour, or off-screen.
fn hides(style: &str) -> bool {
    style.to_ascii_lowercase().split(';').filter_map(|one| one.split_once(':')).any(|(name, value)| {
        let value = value.replace("!important", "");
        let value = value.trim();
        let number =
            || value.trim_end_matches(|one: char| one.is_ascii_alphabetic() || one == '%').parse::<f32>();
        match name.trim() {
            "display" => value == "none",
            "visibility" => matches!(value, "hidden" | "collapse"),
            "content-visibility" => value == "hidden",
            "opacity" => number().is_ok_and(|number| number < 0.1),
            "font-size" => number().is_ok_and(|number| number < 2.0) && !value.ends_with("em"),
            "font" => value.starts_with('0'),
            "color" | "-webkit-text-fill-color" => value == "transparent",
            "left" | "right" | "top" | "bottom" | "text-indent" | "margin-left" | "margin-top" => {
                number().is_ok_and(|number| number <= -500.0)
            }
            "clip" => value.replace([' ', ','], "").starts_with("rect(0"),
            "clip-path" => {
                value.replace(' ', "").starts_with("inset(50%)")
                    || value.replace(' ', "").starts_with("inset(100%)")
            }
            "transform" => value.replace(' ', "").starts_with("scale(0)"),
            _ => false,
        }
    })
}
