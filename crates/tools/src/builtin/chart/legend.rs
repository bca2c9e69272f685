//! Which colour is whose: colours that people can tell apart who see few, and dashes where they begin again.

use super::svg::{Anchor, INK, Look, Svg};

/// What a series, or a slice, looks like.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Style {
    pub(super) colour: &'static str,
    pub(super) dashes: &'static str,
    pub(super) opacity: f64,
}

/// Those of Okabe and Ito, but yellow, which nobody sees on white.
const COLOURS: [&str; 7] = ["#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#000000"];

const DASHES: [&str; 4] = ["", "6 4", "1 4", "10 4 1 4"];
const OPACITIES: [f64; 4] = [1.0, 0.65, 0.4, 0.2];

const ROW: f64 = 18.0;
const SWATCH: f64 = 18.0;

/// What stands between a drawing and its legend, and between a colour and its name.
const GAP: f64 = 8.0;

/// How wide a legend is in a drawing of that width.
pub(super) fn width_in(width: f64) -> f64 {
    (width / 3.0).min(240.0)
}

/// The look of that one.
pub(super) fn style(number: usize) -> Style {
    let round = number / COLOURS.len() % DASHES.len();
    Style { colour: COLOURS[number % COLOURS.len()], dashes: DASHES[round], opacity: OPACITIES[round] }
}

/// Names and looks below each other, as many as have room between these heights.
pub(super) fn draw<'n>(
    svg: &mut Svg,
    (left, width): (f64, f64),
    (top, bottom): (f64, f64),
    names: impl ExactSizeIterator<Item = &'n str>,
) {
    let room = (((bottom - top) / ROW).floor().max(1.0)) as usize;
    let count = names.len();
    let shown = if count <= room { count } else { room - 1 };
    let text_at = left + GAP + SWATCH + GAP;
    let text_width = left + width - text_at;
    for (number, name) in names.take(shown).enumerate() {
        let y = top + ROW * (number as f64 + 0.5);
        let Style { colour, dashes, opacity } = style(number);
        let moves = format!("M{:.1} {y:.1}h{SWATCH}", left + GAP);
        svg.path(&moves, Look { opacity, ..Look::line(colour, 5.0, dashes) });
        svg.text((text_at, y + 4.0), name, (Anchor::Start, text_width));
    }
    if shown < count {
        let y = top + ROW * (shown as f64 + 0.5) + 4.0;
        svg.text((text_at, y), &format!("and {} more", count - shown), (Anchor::Start, text_width));
    }
}

/// Lines that lead the eye.
pub(super) const GRID: Look = Look::line("#dddddd", 1.0, "");
pub(super) const AXIS: Look = Look::line(INK, 1.0, "");
