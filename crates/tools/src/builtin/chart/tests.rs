//! Tests of charts, and that every input gives a valid drawing.

use super::*;
use crate::answer::Failure;
use crate::schema::ArgumentSchema;
use belljar_contract::tool::{AgentKind, DomainCode};
use futures_util::FutureExt;
use proptest::prelude::*;
use quick_xml::events::Event;
use serde_json::Value;

fn called(arguments: &Value) -> Result<Value, Failure> {
    let tool = tools().unwrap().remove(0);
    let arguments = arguments.as_object().unwrap().clone();
    let answer = tool.call(&Caller::of(AgentKind::Sandbox), arguments).now_or_never();
    answer.expect("the call completes without waiting").map(|success| success.data)
}

fn drawn(arguments: &Value) -> String {
    let told = called(arguments).unwrap();
    let svg = told["svg"].as_str().unwrap().to_owned();
    checked(&svg);
    svg
}

/// Checks a drawing: well-formed, few elements and attributes, no scripts or references.
fn checked(svg: &str) {
    let mut reader = quick_xml::Reader::from_str(svg);
    let mut depth = 0;
    loop {
        match reader.read_event().unwrap_or_else(|error| panic!("{error}: {svg}")) {
            Event::Start(element) => {
                depth += 1;
                check_element(&element, svg);
            }
            Event::Empty(element) => check_element(&element, svg),
            Event::End(_) => depth -= 1,
            Event::Text(text) => drop(text.decode().unwrap()),
            Event::GeneralRef(name) => {
                let known = ["amp", "lt", "gt", "quot", "#39"];
                assert!(known.contains(&std::str::from_utf8(&name).unwrap()), "{svg}");
            }
            Event::Eof => break,
            other => panic!("{other:?}: {svg}"),
        }
    }
    assert_eq!(depth, 0, "{svg}");
    let is_allowed = |one: char| !one.is_control() || one == '\n';
    assert!(svg.chars().all(is_allowed) && !svg.contains(['\u{fffe}', '\u{ffff}']), "{svg:?}");
    for word in ["NaN", "inf"] {
        assert!(!svg.contains(&format!("{word} ")) && !svg.contains(&format!("M{word}")), "{svg}");
    }
}

fn check_element(element: &quick_xml::events::BytesStart<'_>, svg: &str) {
    let allowed = ["svg", "title", "desc", "rect", "text", "path"];
    assert!(allowed.iter().any(|name| name.as_bytes() == element.name().as_ref()), "{svg}");
    for attribute in element.attributes() {
        let attribute = attribute.unwrap();
        let name = std::str::from_utf8(attribute.key.as_ref()).unwrap();
        let value = std::str::from_utf8(&attribute.value).unwrap();
        assert!(!name.starts_with("on") && !["href", "xlink:href", "style"].contains(&name), "{svg}");
        assert!(name == "xmlns" || !value.contains(':'), "{name}={value}: {svg}");
    }
}

#[test]
fn line_chart_has_axes_labels_and_description() {
    let svg = drawn(&json!({
        "kind": "line", "title": "Load & <more>", "x_label": "n", "y_label": "load", "width": 300, "height": 200,
        "series": [{ "name": "a", "points": [[0, 1], [1, "2.5"], [2, "NaN"], [3, 4], [2.5, null]] }]
    }));
    insta::assert_snapshot!(svg, @r##"
    <svg xmlns="http://www.w3.org/2000/svg" width="300" height="200" viewBox="0 0 300 200" role="img" aria-labelledby="chart-title chart-desc" font-family="sans-serif" font-size="12">
    <title id="chart-title">Load &amp; &lt;more&gt;</title>
    <desc id="chart-desc">A line chart of 3 points in 1 series, from 0 to 3; the values go from 1 to 4.</desc>
    <rect width="300" height="200" fill="#ffffff"/>
    <text x="150" y="26" text-anchor="middle" font-size="16" fill="#333333">Load &amp; &lt;more&gt;</text>
    <text x="37.0" y="148.0" text-anchor="end" fill="#333333">1</text>
    <text x="37.0" y="114.7" text-anchor="end" fill="#333333">2</text>
    <text x="37.0" y="81.3" text-anchor="end" fill="#333333">3</text>
    <text x="37.0" y="48.0" text-anchor="end" fill="#333333">4</text>
    <text x="43.0" y="162.0" text-anchor="middle" fill="#333333">0</text>
    <text x="203.7" y="162.0" text-anchor="middle" fill="#333333">2</text>
    <path d="M43.0 144.0H284.0M43.0 110.7H284.0M43.0 77.3H284.0M43.0 44.0H284.0M43.0 144.0v4M203.7 144.0v4" fill="none" stroke="#dddddd" stroke-width="1" stroke-linecap="round" stroke-linejoin="round"/>
    <path d="M43.0 44.0V144.0H284.0" fill="none" stroke="#333333" stroke-width="1" stroke-linecap="round" stroke-linejoin="round"/>
    <text x="163.5" y="182.0" text-anchor="middle" fill="#333333">n</text>
    <text transform="translate(16.0 94.0) rotate(-90)" text-anchor="middle" fill="#333333">load</text>
    <path d="M43.0 144.0L123.3 94.0M284.0 44.0h0" fill="none" stroke="#0072b2" stroke-width="2" stroke-linecap="round" stroke-linejoin="round"/>
    </svg>
    "##);
}

#[test]
fn bar_chart_groups_bars_by_category() {
    let svg = drawn(&json!({
        "kind": "bar", "title": "T", "width": 300, "height": 200, "series": [
            { "name": "one", "points": [["x", 1], ["y", -2]] }, { "name": "two", "points": [["y", 3]] }
        ]
    }));
    insta::assert_snapshot!(svg, @r##"
    <svg xmlns="http://www.w3.org/2000/svg" width="300" height="200" viewBox="0 0 300 200" role="img" aria-labelledby="chart-title chart-desc" font-family="sans-serif" font-size="12">
    <title id="chart-title">T</title>
    <desc id="chart-desc">A bar chart of 3 points in 2 series, at 2 places; the values go from -2 to 3.</desc>
    <rect width="300" height="200" fill="#ffffff"/>
    <text x="150" y="26" text-anchor="middle" font-size="16" fill="#333333">T</text>
    <text x="23.9" y="168.0" text-anchor="end" fill="#333333">-2</text>
    <text x="23.9" y="120.0" text-anchor="end" fill="#333333">0</text>
    <text x="23.9" y="72.0" text-anchor="end" fill="#333333">2</text>
    <text x="68.4" y="182.0" text-anchor="middle" fill="#333333">x</text>
    <text x="145.5" y="182.0" text-anchor="middle" fill="#333333">y</text>
    <path d="M29.9 164.0H184.0M29.9 116.0H184.0M29.9 68.0H184.0M68.4 164.0v4M145.5 164.0v4" fill="none" stroke="#dddddd" stroke-width="1" stroke-linecap="round" stroke-linejoin="round"/>
    <path d="M29.9 44.0V164.0H184.0" fill="none" stroke="#333333" stroke-width="1" stroke-linecap="round" stroke-linejoin="round"/>
    <path d="M37.6 116.0V92.0H68.4V116.0ZM114.7 116.0V164.0H145.5V116.0Z" fill="#0072b2" stroke="none" stroke-width="0" stroke-linecap="round" stroke-linejoin="round"/>
    <path d="M145.5 116.0V44.0H176.3V116.0Z" fill="#e69f00" stroke="none" stroke-width="0" stroke-linecap="round" stroke-linejoin="round"/>
    <path d="M200.0 53.0h18" fill="none" stroke="#0072b2" stroke-width="5" stroke-linecap="round" stroke-linejoin="round"/>
    <text x="226.0" y="57.0" text-anchor="start" fill="#333333">one</text>
    <path d="M200.0 71.0h18" fill="none" stroke="#e69f00" stroke-width="5" stroke-linecap="round" stroke-linejoin="round"/>
    <text x="226.0" y="75.0" text-anchor="start" fill="#333333">two</text>
    </svg>
    "##);
}

#[test]
fn pie_chart_has_a_slice_per_share() {
    let svg = drawn(&json!({
        "kind": "pie", "title": "T", "width": 300, "height": 200,
        "series": [{ "points": [["a", 3], ["b", 1], ["c", 0], ["d", -5]] }]
    }));
    insta::assert_snapshot!(svg, @r##"
    <svg xmlns="http://www.w3.org/2000/svg" width="300" height="200" viewBox="0 0 300 200" role="img" aria-labelledby="chart-title chart-desc" font-family="sans-serif" font-size="12">
    <title id="chart-title">T</title>
    <desc id="chart-desc">A pie chart of 2 points in 1 series, at 4 places; the values go from 1 to 3.</desc>
    <rect width="300" height="200" fill="#ffffff"/>
    <text x="150" y="26" text-anchor="middle" font-size="16" fill="#333333">T</text>
    <path d="M100.0 114.0L100.0 44.0A70.0 70.0 0 1 1 30.0 114.0Z" fill="#0072b2" stroke="#ffffff" stroke-width="1" stroke-linecap="round" stroke-linejoin="round"/>
    <path d="M100.0 114.0L30.0 114.0A70.0 70.0 0 0 1 100.0 44.0Z" fill="#e69f00" stroke="#ffffff" stroke-width="1" stroke-linecap="round" stroke-linejoin="round"/>
    <path d="M192.0 53.0h18" fill="none" stroke="#0072b2" stroke-width="5" stroke-linecap="round" stroke-linejoin="round"/>
    <text x="218.0" y="57.0" text-anchor="start" fill="#333333">75.0 % a</text>
    <path d="M192.0 71.0h18" fill="none" stroke="#e69f00" stroke-width="5" stroke-linecap="round" stroke-linejoin="round"/>
    <text x="218.0" y="75.0" text-anchor="start" fill="#333333">25.0 % b</text>
    </svg>
    "##);
    // A single slice is a full circle; the smallest of many slices are combined.
    let whole = drawn(&json!({ "kind": "pie", "title": "T", "series": [{ "points": [["a", 3]] }] }));
    assert!(whole.contains("100.0 % a"), "{whole}");
    let points: Vec<_> = (1..=40).map(|number| json!([format!("n{number}"), number])).collect();
    let many = drawn(&json!({ "kind": "pie", "title": "T", "series": [{ "points": points }] }));
    assert!(many.contains("% 29 others") && many.contains("% n40"), "{many}");
}

#[test]
fn metrics_query_result_is_drawn_over_time() {
    let series = json!([
        { "labels": { "__name__": "up", "job": "house", "instance": "a:1" }, "points": [[1_769_860_800, "1"], [1_769_862_600, "+Inf"]] },
        { "labels": { "__name__": "up", "job": "barn" }, "points": [[1_769_860_800, "0"], [1_769_864_400, "1"]] },
    ]);
    let told = called(&json!({ "kind": "area", "title": "Up", "series": series })).unwrap();
    let svg = told["svg"].as_str().unwrap();
    checked(svg);
    assert_eq!((&told["points"], &told["left_out"], &told["series"]), (&json!(3), &json!(1), &json!(2)));
    for part in [
        "up{instance=a:1",
        "up{job=barn}",
        "12:00",
        "13:00",
        "2026-01-31 12:00:00 to 2026-01-31 13:00:00 UTC",
    ] {
        assert!(svg.contains(part), "{part}: {svg}");
    }
    // An instant query has one value per series; each is a slice.
    let now = json!([
        { "labels": { "job": "house" }, "points": [[1_769_860_800, "3"]] },
        { "labels": { "job": "barn" }, "points": [[1_769_860_800, "1"]] },
    ]);
    let svg = drawn(&json!({ "kind": "pie", "title": "Share", "series": now }));
    assert!(svg.contains("75.0 % {job=house}") && svg.contains("25.0 % {job=barn}"), "{svg}");
}

#[test]
fn time_and_category_axes_are_detected() {
    let shown =
        |points: Value| drawn(&json!({ "kind": "scatter", "title": "T", "series": [{ "points": points }] }));
    assert!(shown(json!([["2026-01-31T12:00:00Z", 1], ["2026-02-01T12:00:00Z", 2]])).contains("12:00"));
    assert!(shown(json!([["2026-01-31T12:00:00Z", 1], ["later", 2]])).contains(">later</text>"));
    let said = json!({ "kind": "line", "title": "T", "x_axis": "category", "series": [{ "points": [[3, 1], [1, 2]] }] });
    assert!(drawn(&said).contains("at 2 places"));
}

#[test]
fn chart_without_data_says_so() {
    for series in
        [json!([]), json!([{ "points": [] }]), json!([{ "points": [[1, "NaN"], [2, 1e301], [null, 1]] }])]
    {
        for kind in ["line", "area", "bar", "scatter", "pie"] {
            let told = called(&json!({ "kind": kind, "title": "T", "series": series })).unwrap();
            let svg = told["svg"].as_str().unwrap();
            checked(svg);
            assert!(svg.contains(">No data</text>") && told["notice"].is_string(), "{told}");
        }
    }
}

#[test]
fn undrawable_points_are_reported_with_position() {
    let mistake = |kind: &str, axis: Value, points: Value| {
        let mut arguments = json!({ "kind": kind, "title": "T", "series": [{ "points": points }] });
        if axis.is_string() {
            arguments["x_axis"] = axis;
        }
        let failure = called(&arguments).unwrap_err();
        assert_eq!(failure.code, DomainCode::InvalidArgument);
        failure.message
    };
    let no_number = "not a number";
    assert_eq!(
        mistake("line", Value::Null, json!([[1, 2], [2, "many"]])),
        format!("/series/0/points/1/1: {no_number}")
    );
    assert_eq!(
        mistake("line", json!("number"), json!([["x", 2]])),
        format!("/series/0/points/0/0: {no_number}")
    );
    let moment = mistake("line", json!("time"), json!([[1e18, 2]]));
    assert!(moment.starts_with("/series/0/points/0/0: not a time"), "{moment}");
    let many: Vec<_> = (0..20_001).map(|number| json!([number, 1])).collect();
    let said = mistake("line", Value::Null, Value::Array(many));
    assert_eq!(said, "/series: 1 series and 20001 points; at most 200 and 20000 can be drawn");
}

#[test]
fn largest_chart_fits_into_an_answer() {
    let series: Vec<_> = (0..200)
        .map(|number| {
            let points: Vec<_> = (0..100).map(|at| json!([at, (at * number) % 977])).collect();
            json!({ "name": format!("<&{}", "\"ä".repeat(99)), "points": points })
        })
        .collect();
    for kind in ["line", "area", "bar", "scatter", "pie"] {
        let told = called(&json!({
            "kind": kind, "title": "\"".repeat(200), "series": series, "width": 4_000, "height": 4_000
        }));
        let told = told.unwrap();
        checked(told["svg"].as_str().unwrap());
        assert!(told.to_string().len() < 1 << 20, "{kind}: {}", told.to_string().len());
    }
}

fn cell() -> impl Strategy<Value = Value> {
    prop_oneof![
        5 => any::<f64>().prop_map(|number| json!(number)),
        2 => (-1000_i32..1000).prop_map(|number| json!(number)),
        1 => ".{0,12}".prop_map(Value::from),
        1 => Just(Value::Null),
        1 => prop::sample::select(vec!["NaN", "-Inf", "+Inf", "1e-320", "2026-01-31T12:00:00Z", "]]>", "&#0;"]).prop_map(Value::from),
    ]
}

fn given() -> impl Strategy<Value = Value> {
    let name = prop::option::of(any::<String>().prop_map(|text| text.chars().take(200).collect::<String>()));
    let series = (name.clone(), prop::collection::vec((cell(), cell()), 0..12))
        .prop_map(|(name, points)| json!({ "name": name, "points": points }));
    let kind = prop::sample::select(vec!["line", "area", "bar", "scatter", "pie"]);
    let axis = prop::option::of(prop::sample::select(vec!["number", "time", "category"]));
    let sizes = (200_u32..4000, 150_u32..4000);
    (kind, name, axis, prop::collection::vec(series, 0..9), sizes).prop_map(
        |(kind, title, x_axis, series, (width, height))| {
            let title = title.filter(|title| !title.is_empty()).unwrap_or_else(|| "T".to_owned());
            json!({
                "kind": kind, "title": title, "x_label": title, "y_label": title, "x_axis": x_axis,
                "series": series, "width": width, "height": height
            })
        },
    )
}

proptest! {
    #[test]
    fn any_input_yields_a_chart_or_an_error_with_position(arguments in given()) {
        match called(&arguments) {
            Ok(told) => checked(told["svg"].as_str().unwrap()),
            Err(failure) => prop_assert!(failure.message.starts_with("/series"), "{}", failure),
        }
    }
}

#[test]
fn chart_schema_accepts_metrics_results_and_rejects_malformed_points() {
    let tool = tools().unwrap().remove(0);
    let schema = ArgumentSchema::new(&tool.definition().input).unwrap();
    let check = |series: Value| {
        let arguments = json!({ "kind": "line", "title": "T", "series": series });
        schema.check(arguments.as_object().unwrap()).is_ok()
    };
    assert!(check(json!([{ "labels": { "a": "b" }, "points": [[1, "2"], [2, "NaN"]] }])));
    assert!(!check(json!([{ "points": [[1, 2, 3]] }])));
    assert!(!check(json!([{ "points": [[1]] }])));
    assert!(!check(json!([{ "points": [[{}, 1]] }])));
}
