//! The legend: colours that people with colour-blindness can distinguish, and dashes when the colours repeat.

use super::svg::{Anchor, INK, ShapeStyle, Svg};

/// Style of a series or a slice.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Style {
    pub(super) colour: &'static str,
    pub(super) dashes: &'static str,
    pub(super) opacity: f64,
}

/// The colours of Okabe and Ito, without yellow, which is invisible on white.
const COLOURS: [&str; 7] = ["#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#000000"];

const DASHES: [&str; 4] = ["", "6 4", "1 4", "10 4 1 4"];
const OPACITIES: [f64; 4] = [1.0, 0.65, 0.4, 0.2];

const ROW: f64 = 18.0;
const SWATCH: f64 = 18.0;

/// Distance between a drawing and its legend, and between a colour and its name.
const GAP: f64 = 8.0;

/// Returns the width of the legend in a drawing of that width.
pub(super) fn width_in(width: f64) -> f64 {
    (width / 3.0).min(240.0)
}

/// Returns the style of the series with that index.
pub(super) fn style(number: usize) -> Style {
    let round = number / COLOURS.len() % DASHES.len();
    Style { colour: COLOURS[number % COLOURS.len()], dashes: DASHES[round], opacity: OPACITIES[round] }
}

/// Area of a legend, in pixels.
#[derive(Debug, Clone, Copy)]
pub(super) struct LegendArea {
    pub(super) left: f64,
    pub(super) width: f64,
    pub(super) top: f64,
    pub(super) bottom: f64,
}

/// Draws names and styles in a column, as many as fit in the area.
pub(super) fn draw<'n>(svg: &mut Svg, area: LegendArea, names: impl ExactSizeIterator<Item = &'n str>) {
    let LegendArea { left, width, top, bottom } = area;
    let room = (((bottom - top) / ROW).floor().max(1.0)) as usize;
    let count = names.len();
    let shown = if count <= room { count } else { room - 1 };
    let text_at = left + GAP + SWATCH + GAP;
    let text_width = left + width - text_at;
    for (number, name) in names.take(shown).enumerate() {
        let y = top + ROW * (number as f64 + 0.5);
        let Style { colour, dashes, opacity } = style(number);
        let moves = format!("M{:.1} {y:.1}h{SWATCH}", left + GAP);
        svg.path(&moves, ShapeStyle { opacity, ..ShapeStyle::line(colour, 5.0, dashes) });
        svg.text((text_at, y + 4.0), name, (Anchor::Start, text_width));
    }
    if shown < count {
        let y = top + ROW * (shown as f64 + 0.5) + 4.0;
        svg.text((text_at, y), &format!("and {} more", count - shown), (Anchor::Start, text_width));
    }
}

/// Styles of grid lines and axes.
pub(super) const GRID: ShapeStyle = ShapeStyle::line("#dddddd", 1.0, "");
pub(super) const AXIS: ShapeStyle = ShapeStyle::line(INK, 1.0, "");
