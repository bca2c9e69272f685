//! Pie charts.

use super::Size;
use super::data::{AxisPositions, Data};
use super::legend::{self, LegendArea, Style};
use super::svg::{ShapeStyle, Svg};
use std::f64::consts::{FRAC_PI_2, TAU};

/// A slice.
struct Slice {
    name: String,
    value: f64,
}

/// Maximum number of slices; the smallest ones of more are combined.
const MOST_SLICES: usize = 12;

const TOP: f64 = 44.0;
const MARGIN: f64 = 16.0;

/// Share from which on a slice is drawn as a full circle: an arc with equal ends draws nothing.
const WHOLE: f64 = 0.999_9;

/// Draws the chart.
pub(super) fn draw(svg: &mut Svg, size: Size, data: &Data) {
    let slices = most(slices(data));
    // Scaled first, as the sum of the values may overflow.
    let largest = slices.iter().map(|slice| slice.value).fold(f64::MIN_POSITIVE, f64::max);
    let sum: f64 = slices.iter().map(|slice| slice.value / largest).sum();
    let legend = legend::width_in(size.width);
    let right = size.width - legend - MARGIN;
    let centre = (f64::midpoint(MARGIN, right), f64::midpoint(TOP, size.height - MARGIN));
    let radius = ((right - MARGIN).min(size.height - MARGIN - TOP) / 2.0).max(1.0);
    let mut from = -FRAC_PI_2;
    let mut names = Vec::new();
    for (number, slice) in slices.iter().enumerate() {
        let share = slice.value / largest / sum;
        let Style { colour, opacity, .. } = legend::style(number);
        let look = ShapeStyle { stroke: "#ffffff", stroke_width: 1.0, ..ShapeStyle::filled(colour, opacity) };
        svg.path(&arc(centre, radius, (from, share)), look);
        from += share * TAU;
        names.push(format!("{:.1} % {}", share * 100.0, slice.name));
    }
    let area = LegendArea { left: right, width: legend, top: TOP, bottom: size.height - MARGIN };
    legend::draw(svg, area, names.iter().map(String::as_str));
}

/// Returns the points of one series, or the last points of several.
fn slices(data: &Data) -> Vec<Slice> {
    let named = |x: f64| match &data.x {
        AxisPositions::Names(names) => names.get(x as usize).cloned().unwrap_or_default(),
        AxisPositions::Numbers | AxisPositions::Moments => String::new(),
    };
    match &data.series[..] {
        [line] => {
            let points = line.points.iter().filter_map(|(x, y)| Some((named(*x), (*y)?)));
            points.map(|(name, value)| Slice { name, value }).collect()
        }
        lines => {
            let last = |points: &[(f64, Option<f64>)]| points.iter().rev().find_map(|(_, y)| *y);
            let of_each = lines.iter().filter_map(|line| Some((line.name.clone(), last(&line.points)?)));
            of_each.map(|(name, value)| Slice { name, value }).collect()
        }
    }
}

fn most(mut slices: Vec<Slice>) -> Vec<Slice> {
    if slices.len() <= MOST_SLICES {
        return slices;
    }
    slices.sort_by(|one, other| other.value.total_cmp(&one.value));
    let others = slices.split_off(MOST_SLICES - 1);
    let value = others.iter().map(|slice| slice.value).sum::<f64>().min(f64::MAX);
    slices.push(Slice { name: format!("{} others", others.len()), value });
    slices
}

fn arc((x, y): (f64, f64), radius: f64, (from, share): (f64, f64)) -> String {
    if share > WHOLE {
        let (top, bottom) = (y - radius, y + radius);
        return format!(
            "M{x:.1} {top:.1}A{radius:.1} {radius:.1} 0 1 1 {x:.1} {bottom:.1}A{radius:.1} {radius:.1} 0 1 1 {x:.1} {top:.1}Z"
        );
    }
    let at = |angle: f64| (x + radius * angle.cos(), y + radius * angle.sin());
    let ((from_x, from_y), (to_x, to_y)) = (at(from), at(from + share * TAU));
    let is_large = u8::from(share > 0.5);
    format!(
        "M{x:.1} {y:.1}L{from_x:.1} {from_y:.1}A{radius:.1} {radius:.1} 0 {is_large} 1 {to_x:.1} {to_y:.1}Z"
    )
}
