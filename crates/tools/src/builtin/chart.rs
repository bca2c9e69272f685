//! `render_chart`: draws figures as a chart (`docs/contracts/tools.md#t1.9`). It needs no configuration and no network.
//!
//! ```text
//! Arguments ─► Data::read ─┬─► plot ─► Scale, ticks ─┬─► Svg ─► text
//!                          └─► pie ──────────────────┘
//! ```
//! The drawing is self-contained: no scripts, styles or references. Only `svg` escapes texts and formats numbers.

mod data;
mod legend;
mod pie;
mod plot;
mod scale;
mod svg;
mod time;

use super::Tools;
use crate::answer::{Answer, Success};
use crate::caller::Caller;
use crate::definition::Definition;
use crate::typed::{TypedTool, schema_of, tool};
use belljar_contract::action::{ActionType, BuiltInAction};
use belljar_contract::category::Category;
use data::Data;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use std::collections::BTreeMap;
use svg::Svg;

/// Figures, and how to draw them.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// Kind of the chart.
    kind: Kind,
    /// Title above the chart.
    #[schemars(length(min = 1, max = 200))]
    title: String,
    /// Label of the horizontal axis.
    #[schemars(length(max = 200))]
    x_label: Option<String>,
    /// Label of the vertical axis.
    #[schemars(length(max = 200))]
    y_label: Option<String>,
    /// Type of the horizontal axis. Default: inferred from the points.
    x_axis: Option<XAxis>,
    /// The figures: at most 200 series and 20000 points. `series` of `query_metrics` are accepted unchanged.
    #[schemars(length(max = 200))]
    series: Vec<Series>,
    /// Width in pixels. Default: 800.
    #[schemars(range(min = 200, max = 4_000))]
    width: Option<u32>,
    /// Height in pixels. Default: 450.
    #[schemars(range(min = 150, max = 4_000))]
    height: Option<u32>,
}

/// Kind of a chart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Kind {
    /// A line for each series.
    Line,
    /// A line for each series, with the area below it filled.
    Area,
    /// A bar for each point; bars at one position stand side by side.
    Bar,
    /// A dot for each point.
    Scatter,
    /// A slice for each point of one series, or for the last point of each of several series.
    Pie,
}

/// Type of the horizontal axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum XAxis {
    /// Numbers.
    Number,
    /// Times: seconds since 1970, or texts such as 2026-01-31T12:00:00Z.
    Time,
    /// Names, in the order of their first occurrence.
    Category,
}

/// A series of points.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Series {
    /// Its name.
    #[schemars(length(max = 200))]
    name: Option<String>,
    /// Labels that make its name, as in `query_metrics`.
    labels: Option<BTreeMap<String, String>>,
    /// Pairs of x and y.
    #[schemars(length(max = 20_000))]
    points: Vec<(Cell, Cell)>,
}

/// A coordinate of a point. A number may be given as a text, as JSON has no NaN; null means no value.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(untagged)]
enum Cell {
    /// A number.
    Number(f64),
    /// A text.
    Text(String),
    /// No value.
    Nothing(()),
}

/// Size of a drawing, in pixels.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Size {
    width: f64,
    height: f64,
}

struct ChartRenderTool;

const DESCRIPTION: &str = "Draws a chart as SVG: `kind` is line, area, bar, scatter or pie. Each of the \
    `series` has a `name` and `points`, which are pairs of x and y; x is a number, a time \
    (2026-01-31T12:00:00Z) or a category name. `series` of `query_metrics` are accepted unchanged, \
    with x in seconds. Returns `svg`, without scripts and external references, and the number of \
    drawn `points`; `left_out` counts points that are NaN, Inf, beyond 1e300 or null (for a pie, \
    also values that aren't positive). At most 200 series and 20000 points.";

const USUAL_WIDTH: u32 = 800;
const USUAL_HEIGHT: u32 = 450;

/// Returns the tool.
///
/// # Errors
/// Never: the name is valid.
pub fn tools() -> Tools {
    let summary = "Draws a chart of data series.";
    let definition =
        Definition::named("render_chart", Category::Analytics, summary, schema_of::<Arguments>())?;
    let definition = Definition {
        description: DESCRIPTION.to_owned(),
        action: ActionType::from(BuiltInAction::DocsWrite),
        ..definition
    };
    Ok(vec![tool(definition, ChartRenderTool)])
}

impl TypedTool for ChartRenderTool {
    type Arguments = Arguments;

    async fn call(&self, _: &Caller, arguments: Arguments) -> Answer {
        let data = Data::read(&arguments)?;
        let size = Size {
            width: f64::from(arguments.width.unwrap_or(USUAL_WIDTH)),
            height: f64::from(arguments.height.unwrap_or(USUAL_HEIGHT)),
        };
        let mut svg = Svg::begin(size, &arguments.title, &data.told(arguments.kind));
        match arguments.kind {
            _ if data.is_empty() => svg.centred("No data"),
            Kind::Pie => pie::draw(&mut svg, size, &data),
            kind => plot::draw(&mut svg, size, &data, (kind, &arguments)),
        }
        let mut told = json!({
            "svg": svg.end(),
            "content_type": "image/svg+xml",
            "width": size.width,
            "height": size.height,
            "series": data.series.len(),
            "points": data.points(),
            "left_out": data.left_out,
        });
        if data.is_empty() {
            told["notice"] = "no point can be drawn".into();
        }
        Ok(Success::of(told))
    }
}

// === impl Kind ===

impl Kind {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Line => "line",
            Self::Area => "area",
            Self::Bar => "bar",
            Self::Scatter => "scatter",
            Self::Pie => "pie",
        }
    }
}

#[cfg(test)]
mod tests;
