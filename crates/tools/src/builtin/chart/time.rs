//! Ticks of a time axis: round times, in UTC.

use super::scale::{Range, Tick};
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

/// Round distances in seconds.
const STEPS: [f64; 33] = [
    0.001,
    0.002,
    0.005,
    0.01,
    0.02,
    0.05,
    0.1,
    0.2,
    0.5,
    1.0,
    2.0,
    5.0,
    10.0,
    15.0,
    30.0,
    60.0,
    120.0,
    300.0,
    600.0,
    900.0,
    1_800.0,
    3_600.0,
    7_200.0,
    10_800.0,
    21_600.0,
    43_200.0,
    DAY,
    2.0 * DAY,
    3.0 * DAY,
    4.0 * DAY,
    5.0 * DAY,
    7.0 * DAY,
    14.0 * DAY,
];

/// Round distances in months.
const MONTHS: [i32; 13] = [1, 2, 3, 6, 12, 24, 60, 120, 240, 600, 1_200, 2_400, 6_000];

const DAY: f64 = 86_400.0;
const MONTH: f64 = 30.44 * DAY;

/// Additional ticks, as months differ in length.
const MORE: usize = 8;

/// Seconds before and after a single time.
const AROUND: f64 = 60.0;

/// Converts seconds since 1970, if in range.
pub(super) fn timestamp(seconds: f64) -> Option<Timestamp> {
    let since = SignedDuration::try_from_secs_f64(seconds).ok()?;
    Timestamp::from_duration(since).ok()
}

/// Formats a single time.
pub(super) fn moment(seconds: f64) -> String {
    let is_whole = seconds.fract() == 0.0;
    written(seconds, if is_whole { "%Y-%m-%d %H:%M:%S" } else { "%Y-%m-%d %H:%M:%S%.3f" })
}

/// Extends the range if all of its times are equal.
pub(super) fn widened(range: Range) -> Range {
    match range.span() < STEPS[0] {
        true => Range { least: range.least - AROUND, most: range.most + AROUND },
        false => range,
    }
}

/// Returns at most that many ticks at round times.
pub(super) fn ticks(range: Range, most: usize) -> Vec<Tick> {
    let most = most.max(1);
    let least_step = range.span() / most as f64;
    let Some(step) = STEPS.into_iter().find(|step| *step >= least_step) else {
        return months(range, most);
    };
    let format = match step {
        ..1.0 => "%H:%M:%S%.3f",
        ..60.0 => "%H:%M:%S",
        ..DAY => "%H:%M",
        _ => "%Y-%m-%d",
    };
    let first = (range.least / step).ceil();
    let moments = (0..=most).map(|number| (first + number as f64) * step);
    let moments = moments.take_while(|at| *at <= range.most);
    moments
        .map(|at| {
            // Midnight is labelled with its date.
            let format = if (60.0..DAY).contains(&step) && at % DAY == 0.0 { "%m-%d" } else { format };
            Tick { at, text: written(at, format) }
        })
        .collect()
}

fn months(range: Range, most: usize) -> Vec<Tick> {
    let least_step = range.span() / MONTH / most as f64;
    let step = MONTHS.into_iter().find(|step| f64::from(*step) >= least_step).unwrap_or(12_000);
    let format = if step < 12 { "%Y-%m" } else { "%Y" };
    let Some(first) = timestamp(range.least) else { return Vec::new() };
    let first = first.to_zoned(TimeZone::UTC).date();
    let first = (i32::from(first.year()) * 12 + i32::from(first.month()) - 1).div_euclid(step) * step;
    (0..)
        .map(|number| first + number * step)
        .take(most + MORE)
        .filter_map(|month| {
            let year = i16::try_from(month.div_euclid(12)).ok()?;
            let date = Date::new(year, i8::try_from(month.rem_euclid(12) + 1).ok()?, 1).ok()?;
            let at = date.to_zoned(TimeZone::UTC).ok()?.timestamp().as_duration().as_secs_f64();
            (range.least..=range.most).contains(&at).then(|| Tick { at, text: written(at, format) })
        })
        .collect()
}

fn written(seconds: f64, format: &str) -> String {
    timestamp(seconds).map_or_else(String::new, |at| at.strftime(format).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(from: &str, to: &str, most: usize) -> Vec<String> {
        let seconds = |text: &str| text.parse::<Timestamp>().unwrap().as_duration().as_secs_f64();
        let range = Range { least: seconds(from), most: seconds(to) };
        ticks(range, most).into_iter().map(|tick| tick.text).collect()
    }

    #[test]
    fn time_axis_ticks_are_round_in_clock_and_calendar_units() {
        let texts = [
            texts("2026-01-31T12:00:00Z", "2026-01-31T12:00:00.4Z", 4),
            texts("2026-01-31T12:00:07Z", "2026-01-31T12:00:40Z", 4),
            texts("2026-01-31T20:30:00Z", "2026-02-01T05:00:00Z", 5),
            texts("2026-01-30T12:00:00Z", "2026-02-03T00:00:00Z", 5),
            texts("2026-01-15T00:00:00Z", "2026-05-15T00:00:00Z", 4),
            texts("1969-06-01T00:00:00Z", "2026-01-01T00:00:00Z", 6),
            texts("0001-01-01T00:00:00Z", "9000-01-01T00:00:00Z", 6),
        ];
        insta::assert_snapshot!(texts.map(|texts| texts.join(" ")).join("\n"), @r##"
        12:00:00.000 12:00:00.200 12:00:00.400
        12:00:10 12:00:20 12:00:30 12:00:40
        22:00 02-01 02:00 04:00
        2026-01-31 2026-02-01 2026-02-02 2026-02-03
        2026-02 2026-03 2026-04 2026-05
        1970 1980 1990 2000 2010 2020
        1000 2000 3000 4000 5000 6000 7000 8000 9000
        "##);
    }
}
