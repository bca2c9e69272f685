//! Charts with two axes: lines, areas, bars and dots.

use super::data::{AxisPositions, Data, Line};
use super::legend::{self, AXIS, GRID, LegendArea, Style};
use super::scale::{Range, Scale, Tick};
use super::svg::{Anchor, LETTERS, ShapeStyle, Svg, width_of};
use super::{Arguments, Kind, Size, time};
use std::fmt::Write;

/// The drawing area, between the axes.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Frame {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

/// The axes.
struct Axes {
    frame: Frame,
    x: Scale,
    y: Scale,
    x_ticks: Vec<Tick>,
    y_ticks: Vec<Tick>,
    /// Range of a time axis as a text, as its tick labels are short.
    x_said: Option<String>,
}

const TOP: f64 = 44.0;
const MARGIN: f64 = 16.0;

/// Height of a text line.
const LINE: f64 = 20.0;

/// Approximate distance of tick labels, in pixels.
const APART_UP: f64 = 32.0;
const APART_ACROSS: f64 = 90.0;
const APART_NAMES: f64 = 60.0;

/// Share of a position's width that its bars take.
const FULL: f64 = 0.8;

/// Draws the chart.
pub(super) fn draw(svg: &mut Svg, size: Size, data: &Data, (kind, arguments): (Kind, &Arguments)) {
    let axes = Axes::of(size, data, (kind, arguments));
    axes.draw(svg, arguments);
    if kind == Kind::Area {
        // All areas are drawn before the lines, which keep their colours so.
        for (number, line) in data.series.iter().enumerate() {
            svg.path(&axes.areas(line), ShapeStyle::filled(legend::style(number).colour, 0.2));
        }
    }
    for (number, line) in data.series.iter().enumerate() {
        axes.series(svg, (number, data.series.len()), line, kind);
    }
    if data.series.len() > 1 {
        let (left, width) = (axes.frame.right + MARGIN / 2.0, legend::width_in(size.width));
        let names = data.series.iter().map(|line| line.name.as_str());
        let area = LegendArea { left, width, top: axes.frame.top, bottom: axes.frame.bottom };
        legend::draw(svg, area, names);
    }
}

// === impl Axes ===

impl Axes {
    fn of(size: Size, data: &Data, (kind, arguments): (Kind, &Arguments)) -> Self {
        let x_label =
            if arguments.x_label.is_some() || data.x == AxisPositions::Moments { LINE } else { 0.0 };
        let (top, bottom) = (TOP, size.height - MARGIN - LINE - x_label);
        let y_range = match kind {
            // Bars and areas need zero on the axis to be read correctly.
            Kind::Bar | Kind::Area => data.y_range().with_zero().widened(),
            _ => data.y_range().widened(),
        };
        let y = Scale { range: y_range, from: bottom, to: top };
        let y_ticks = y.ticks(((bottom - top) / APART_UP).max(2.0) as usize);
        let beside = y_ticks.iter().map(|tick| width_of(&tick.text, LETTERS)).fold(0.0, f64::max);
        let y_label = if arguments.y_label.is_some() { LINE } else { 0.0 };
        let left = MARGIN + y_label + beside;
        let legend = if data.series.len() > 1 { legend::width_in(size.width) } else { 0.0 };
        let right = (size.width - MARGIN - legend).max(left + 1.0);
        let x_range = match &data.x {
            AxisPositions::Names(names) => Range { least: -0.5, most: names.len() as f64 - 0.5 },
            AxisPositions::Moments => time::widened(data.x_range()),
            AxisPositions::Numbers => data.x_range().widened(),
        };
        let x = Scale { range: x_range, from: left, to: right };
        let about = ((right - left) / APART_ACROSS).max(1.0) as usize;
        let x_ticks = match &data.x {
            AxisPositions::Numbers => x.ticks(about),
            AxisPositions::Moments => time::ticks(x.range, about),
            AxisPositions::Names(names) => of_names(names, ((right - left) / APART_NAMES) as usize),
        };
        let x_said = (data.x == AxisPositions::Moments)
            .then(|| format!("{} to {} UTC", time::moment(x_range.least), time::moment(x_range.most)));
        Self { frame: Frame { left, right, top, bottom }, x, y, x_ticks, y_ticks, x_said }
    }

    fn draw(&self, svg: &mut Svg, arguments: &Arguments) {
        let Frame { left, right, top, bottom } = self.frame;
        let mut grid = String::new();
        for tick in &self.y_ticks {
            let y = self.y.place(tick.at);
            put(&mut grid, format_args!("M{left:.1} {y:.1}H{right:.1}"));
            svg.text((left - 6.0, y + 4.0), &tick.text, (Anchor::End, left));
        }
        let apart = (right - left) / self.x_ticks.len().max(1) as f64;
        for tick in &self.x_ticks {
            let x = self.x.place(tick.at);
            put(&mut grid, format_args!("M{x:.1} {bottom:.1}v4"));
            svg.text((x, bottom + 18.0), &tick.text, (Anchor::Middle, apart.max(24.0)));
        }
        svg.path(&grid, GRID);
        svg.path(&format!("M{left:.1} {top:.1}V{bottom:.1}H{right:.1}"), AXIS);
        let middle = f64::midpoint(left, right);
        if let Some(label) = arguments.x_label.as_deref().or(self.x_said.as_deref()) {
            svg.text((middle, bottom + 18.0 + LINE), label, (Anchor::Middle, right - left));
        }
        if let Some(label) = &arguments.y_label {
            svg.text((MARGIN, f64::midpoint(top, bottom)), label, (Anchor::Upwards, bottom - top));
        }
    }

    fn series(&self, svg: &mut Svg, (number, count): (usize, usize), line: &Line, kind: Kind) {
        let Style { colour, dashes, opacity } = legend::style(number);
        match kind {
            Kind::Bar => svg.path(&self.bars(line, (number, count)), ShapeStyle::filled(colour, opacity)),
            Kind::Scatter => {
                let look = ShapeStyle { opacity, ..ShapeStyle::line(colour, 5.0, "") };
                svg.path(&self.dots(line), look);
            }
            Kind::Line | Kind::Area | Kind::Pie => {
                svg.path(&self.lines(line), ShapeStyle::line(colour, 2.0, dashes));
            }
        }
    }

    fn place(&self, x: f64, y: f64) -> (f64, f64) {
        (self.x.place(x), self.y.place(y))
    }

    /// Splits a line at points without a value.
    fn stretches<'l>(&'l self, line: &'l Line) -> impl Iterator<Item = Vec<(f64, f64)>> + 'l {
        let parts = line.points.split(|(_, y)| y.is_none()).filter(|part| !part.is_empty());
        parts.map(|part| part.iter().filter_map(|(x, y)| Some(self.place(*x, (*y)?))).collect())
    }

    fn lines(&self, line: &Line) -> String {
        let mut moves = String::new();
        for stretch in self.stretches(line) {
            for (number, (x, y)) in stretch.iter().enumerate() {
                let pen = if number == 0 { 'M' } else { 'L' };
                put(&mut moves, format_args!("{pen}{x:.1} {y:.1}"));
            }
            // A single point is drawn as a dot.
            if stretch.len() == 1 {
                moves.push_str("h0");
            }
        }
        moves
    }

    fn areas(&self, line: &Line) -> String {
        let (mut moves, zero) = (String::new(), self.y.place(0.0));
        for stretch in self.stretches(line) {
            let (Some((first, _)), Some((last, _))) = (stretch.first(), stretch.last()) else { continue };
            put(&mut moves, format_args!("M{first:.1} {zero:.1}"));
            stretch.iter().for_each(|(x, y)| put(&mut moves, format_args!("L{x:.1} {y:.1}")));
            put(&mut moves, format_args!("L{last:.1} {zero:.1}Z"));
        }
        moves
    }

    fn dots(&self, line: &Line) -> String {
        let mut moves = String::new();
        for (x, y) in self.stretches(line).flatten() {
            put(&mut moves, format_args!("M{x:.1} {y:.1}h0"));
        }
        moves
    }

    fn bars(&self, line: &Line, (number, count): (usize, usize)) -> String {
        let (mut moves, zero) = (String::new(), self.y.place(0.0));
        let width = FULL / count.max(1) as f64;
        for (x, y) in line.points.iter().filter_map(|(x, y)| Some((*x, (*y)?))) {
            let left = x - FULL / 2.0 + width * number as f64;
            let (from, to) = (self.x.place(left), self.x.place(left + width));
            let y = self.y.place(y);
            put(&mut moves, format_args!("M{from:.1} {zero:.1}V{y:.1}H{to:.1}V{zero:.1}Z"));
        }
        moves
    }
}

/// Returns as many names as fit.
fn of_names(names: &[String], about: usize) -> Vec<Tick> {
    let every = names.len().div_ceil(about.max(1)).max(1);
    let shown = names.iter().enumerate().step_by(every);
    shown.map(|(number, name)| Tick { at: number as f64, text: name.clone() }).collect()
}

fn put(moves: &mut String, what: std::fmt::Arguments<'_>) {
    // Writing to a string can't fail.
    let _ = moves.write_fmt(what);
}
