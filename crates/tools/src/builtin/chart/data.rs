//! Figures as numbers: parsed once, with clear errors.

use super::scale::{Range, number};
use super::time::moment;
use super::{Arguments, Cell, Kind, Series, XAxis};
use crate::answer::Failure;
use crate::page::{one_line, without_invisible};
use jiff::Timestamp;
use std::collections::HashMap;

/// Figures of a chart.
#[derive(Debug, PartialEq)]
pub(super) struct Data {
    pub(super) x: AxisPositions,
    pub(super) series: Vec<Line>,
    /// Number of points that can't be drawn.
    pub(super) left_out: usize,
}

/// Positions on the horizontal axis.
#[derive(Debug, PartialEq)]
pub(super) enum AxisPositions {
    Numbers,
    /// Seconds since 1970.
    Moments,
    /// Names side by side; points have their indices.
    Names(Vec<String>),
}

/// A series.
#[derive(Debug, PartialEq)]
pub(super) struct Line {
    pub(super) name: String,
    /// From left to right. A point without a value interrupts a line.
    pub(super) points: Vec<(f64, Option<f64>)>,
}

const MOST_SERIES: usize = 200;
const MOST_POINTS: usize = 20_000;

/// Larger absolute values aren't drawn: the distance of two of them may overflow.
const LARGEST: f64 = 1e300;

/// Maximum number of labels in a name.
const MOST_LABELS: usize = 8;

// === impl Data ===

impl Data {
    /// Parses the arguments.
    ///
    /// # Errors
    /// A description of the first invalid value, with its path.
    pub(super) fn read(arguments: &Arguments) -> Result<Self, Failure> {
        let Arguments { kind, x_axis, series, .. } = arguments;
        let count: usize = series.iter().map(|one| one.points.len()).sum();
        if series.len() > MOST_SERIES || count > MOST_POINTS {
            let said = format!(
                "/series: {} series and {count} points; at most {MOST_SERIES} and {MOST_POINTS} can be \
    drawn",
                series.len()
            );
            return Err(Failure::argument(said));
        }
        let axis = x_axis.unwrap_or_else(|| inferred(series));
        let mut data = Self { x: AxisPositions::Numbers, series: Vec::new(), left_out: 0 };
        let mut names = NameIndex::default();
        for (number, one) in series.iter().enumerate() {
            let mut points = Vec::with_capacity(one.points.len());
            for (at, (x, y)) in one.points.iter().enumerate() {
                let place = |half| format!("/series/{number}/points/{at}/{half}");
                let x = match axis {
                    XAxis::Category => Some(names.place_of(x)),
                    XAxis::Number => figure(x, || place(0))?,
                    XAxis::Time => instant(x, || place(0))?,
                };
                let y = figure(y, || place(1))?.filter(|y| *kind != Kind::Pie || *y > 0.0);
                data.left_out += usize::from(x.is_none() || y.is_none());
                points.extend(x.map(|x| (x, y)));
            }
            if axis != XAxis::Category {
                points.sort_by(|(one, _), (other, _)| one.total_cmp(other));
            }
            data.series.push(Line { name: name(one, number), points });
        }
        data.x = match axis {
            XAxis::Category => AxisPositions::Names(names.all),
            XAxis::Number => AxisPositions::Numbers,
            XAxis::Time => AxisPositions::Moments,
        };
        // Bars and slices are placed by name, in any case.
        if matches!(kind, Kind::Bar | Kind::Pie) {
            data.by_name();
        }
        Ok(data)
    }

    /// Returns the number of points that are drawn.
    pub(super) fn points(&self) -> usize {
        self.drawn().count()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.drawn().next().is_none()
    }

    pub(super) fn x_range(&self) -> Range {
        Range::of(self.drawn().map(|(x, _)| x))
    }

    pub(super) fn y_range(&self) -> Range {
        Range::of(self.drawn().map(|(_, y)| y))
    }

    /// Returns a description for readers who can't see the chart.
    pub(super) fn told(&self, kind: Kind) -> String {
        let (series, points) = (self.series.len(), self.points());
        let begin = format!("A {} chart of {points} points in {series} series", kind.as_str());
        if self.is_empty() {
            return format!("{begin}.");
        }
        let (x, y) = (self.x_range(), self.y_range());
        let across = match &self.x {
            AxisPositions::Numbers => format!("from {} to {}", number(x.least), number(x.most)),
            AxisPositions::Moments => format!("from {} to {} UTC", moment(x.least), moment(x.most)),
            AxisPositions::Names(names) => format!("at {} places", names.len()),
        };
        format!("{begin}, {across}; the values go from {} to {}.", number(y.least), number(y.most))
    }

    fn drawn(&self) -> impl Iterator<Item = (f64, f64)> {
        let points = self.series.iter().flat_map(|line| &line.points);
        points.filter_map(|(x, y)| Some((*x, (*y)?)))
    }

    /// Converts positions to names, from left to right.
    fn by_name(&mut self) {
        let said: fn(f64) -> String = match self.x {
            AxisPositions::Names(_) => return,
            AxisPositions::Numbers => number,
            AxisPositions::Moments => moment,
        };
        let mut places: Vec<f64> =
            self.series.iter().flat_map(|line| line.points.iter().map(|(x, _)| *x)).collect();
        places.sort_by(f64::total_cmp);
        places.dedup();
        for (x, _) in self.series.iter_mut().flat_map(|line| &mut line.points) {
            // Every position is in the list, so the error case doesn't occur.
            let (Ok(found) | Err(found)) = places.binary_search_by(|place| place.total_cmp(x));
            *x = found as f64;
        }
        self.x = AxisPositions::Names(places.into_iter().map(said).collect());
    }
}

/// Names, with their positions.
#[derive(Default)]
struct NameIndex {
    all: Vec<String>,
    places: HashMap<String, usize>,
}

impl NameIndex {
    fn place_of(&mut self, x: &Cell) -> f64 {
        let name = match x {
            Cell::Number(value) => number(*value),
            Cell::Text(text) => without_invisible(&one_line(text)),
            Cell::Nothing(()) => String::new(),
        };
        let next = self.all.len();
        let place = *self.places.entry(name).or_insert_with_key(|name| {
            self.all.push(name.clone());
            next
        });
        place as f64
    }
}

/// Infers the type of the horizontal axis from the points.
fn inferred(series: &[Series]) -> XAxis {
    let places = || series.iter().flat_map(|one| one.points.iter().map(|(x, _)| x));
    let is_of_metrics = series.iter().any(|one| one.labels.is_some());
    let is_moment = |x: &Cell| matches!(x, Cell::Text(text) if text.parse::<Timestamp>().is_ok());
    if places().all(|x| matches!(x, Cell::Number(_) | Cell::Nothing(()))) {
        return if is_of_metrics { XAxis::Time } else { XAxis::Number };
    }
    if places().all(|x| is_moment(x) || *x == Cell::Nothing(())) { XAxis::Time } else { XAxis::Category }
}

/// Parses a number; `None` if it can't be drawn.
fn figure(cell: &Cell, place: impl Fn() -> String) -> Result<Option<f64>, Failure> {
    let value = match cell {
        Cell::Nothing(()) => return Ok(None),
        Cell::Number(value) => *value,
        // `+Inf` and `NaN`, as Prometheus writes them, are parsed as numbers.
        Cell::Text(text) => {
            text.trim().parse().map_err(|_| Failure::argument(format!("{}: not a number", place())))?
        }
    };
    Ok((value.abs() <= LARGEST).then_some(value))
}

fn instant(cell: &Cell, place: impl Fn() -> String) -> Result<Option<f64>, Failure> {
    if let Cell::Text(text) = cell
        && let Ok(at) = text.trim().parse::<Timestamp>()
    {
        return Ok(Some(at.as_duration().as_secs_f64()));
    }
    let seconds = figure(cell, &place)?;
    let is_moment = |seconds: &f64| super::time::timestamp(*seconds).is_some();
    match seconds {
        Some(seconds) if !is_moment(&seconds) => Err(Failure::argument(format!(
            "{}: not a time: expected seconds since 1970, or a text such as 2026-01-31T12:00:00Z",
            place()
        ))),
        seconds => Ok(seconds),
    }
}

/// Returns the name of a series.
fn name(series: &Series, number: usize) -> String {
    let said = match (&series.name, &series.labels) {
        (Some(name), _) => name.clone(),
        (None, Some(labels)) => {
            let labels = labels.iter().filter(|(name, _)| *name != "__name__").take(MOST_LABELS);
            let labels: Vec<_> = labels.map(|(name, value)| format!("{name}={value}")).collect();
            let metric = series.labels.as_ref().and_then(|labels| labels.get("__name__"));
            let metric = metric.map_or("", String::as_str);
            if labels.is_empty() { metric.to_owned() } else { format!("{metric}{{{}}}", labels.join(", ")) }
        }
        (None, None) => String::new(),
    };
    let said = without_invisible(&one_line(&said));
    if said.is_empty() { format!("series {}", number + 1) } else { said }
}
