//! Axis scales and ticks.

/// Minimum and maximum of some numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Range {
    pub(super) least: f64,
    pub(super) most: f64,
}

/// Maps numbers to pixels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Scale {
    pub(super) range: Range,
    /// Positions of the minimum and of the maximum.
    pub(super) from: f64,
    pub(super) to: f64,
}

/// A tick with its label.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Tick {
    pub(super) at: f64,
    pub(super) text: String,
}

/// Relative distance below which numbers count as equal: nothing could be drawn between them.
const CLOSEST: f64 = 1e-12;

/// Minimum length of an axis.
const SMALLEST: f64 = 1e-300;

/// Range of numbers that are written without an exponent.
const WRITTEN_OUT: std::ops::Range<f64> = 1e-4..1e7;

// === impl Range ===

impl Range {
    /// Returns the range of numbers; zero to zero without any.
    pub(super) fn of(numbers: impl Iterator<Item = f64>) -> Self {
        let both = numbers.fold(None, |range: Option<(f64, f64)>, number| match range {
            None => Some((number, number)),
            Some((least, most)) => Some((least.min(number), most.max(number))),
        });
        let (least, most) = both.unwrap_or_default();
        Self { least, most }
    }

    /// Extends the range to zero.
    pub(super) fn with_zero(self) -> Self {
        Self { least: self.least.min(0.0), most: self.most.max(0.0) }
    }

    /// Extends the range if all of its numbers are equal.
    pub(super) fn widened(self) -> Self {
        let largest = self.least.abs().max(self.most.abs());
        let span = self.most - self.least;
        if span > largest * CLOSEST && span > SMALLEST {
            return self;
        }
        let room = if largest * 0.1 > SMALLEST { largest * 0.1 } else { 1.0 };
        Self { least: self.least - room, most: self.most + room }
    }

    pub(super) fn span(self) -> f64 {
        self.most - self.least
    }
}

// === impl Scale ===

impl Scale {
    pub(super) fn place(&self, number: f64) -> f64 {
        let share = (number - self.range.least) / self.range.span();
        self.from + share * (self.to - self.from)
    }

    /// Returns about that many ticks at round numbers.
    pub(super) fn ticks(&self, about: usize) -> Vec<Tick> {
        let Range { least, most } = self.range;
        let step = round_up(self.range.span() / about.max(1) as f64);
        let largest = least.abs().max(most.abs());
        let first = (least / step).ceil();
        (0..=about * 2)
            .map(|number| (first + number as f64) * step)
            .take_while(|at| *at <= most + step * 1e-6)
            .map(|at| Tick { at, text: written(at, step, largest) })
            .collect()
    }
}

/// Rounds up to 1, 2, 5 or 10 times a power of ten.
fn round_up(number: f64) -> f64 {
    let power = 10_f64.powf(number.log10().floor());
    let factor = [1.0, 2.0, 5.0].into_iter().find(|factor| number <= factor * power * 1.000_001);
    factor.unwrap_or(10.0) * power
}

/// Formats a number with the digits that distinguish it from the next tick.
fn written(number: f64, step: f64, largest: f64) -> String {
    // Tolerates rounding errors: 0.0500001 needs no more digits than 0.05.
    let digits = |number: f64| (number * 1.000_01).log10().floor();
    let number = if number.abs() < step * 1e-6 { 0.0 } else { number };
    match WRITTEN_OUT.contains(&largest) {
        true => format!("{number:.*}", (-digits(step)).clamp(0.0, 12.0) as usize),
        false if number == 0.0 => "0".to_owned(),
        false => format!("{number:.*e}", (digits(number.abs()) - digits(step)).clamp(0.0, 12.0) as usize),
    }
}

/// Formats a single number, with at most six significant digits.
pub(super) fn number(number: f64) -> String {
    if number == 0.0 {
        return "0".to_owned();
    }
    if !WRITTEN_OUT.contains(&number.abs()) {
        return trimmed(&format!("{number:.5e}"));
    }
    let decimals = (5.0 - number.abs().log10().floor()).clamp(0.0, 9.0) as usize;
    trimmed(&format!("{number:.decimals$}"))
}

/// Removes trailing zeros.
fn trimmed(text: &str) -> String {
    let (digits, power) = text.split_once('e').map_or((text, None), |(digits, power)| (digits, Some(power)));
    let digits = match digits.contains('.') {
        true => digits.trim_end_matches('0').trim_end_matches('.'),
        false => digits,
    };
    power.map_or_else(|| digits.to_owned(), |power| format!("{digits}e{power}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(least: f64, most: f64, about: usize) -> Vec<String> {
        let range = Range { least, most }.widened();
        Scale { range, from: 0.0, to: 1.0 }.ticks(about).into_iter().map(|tick| tick.text).collect()
    }

    #[test]
    fn axis_tick_labels_are_round_numbers() {
        assert_eq!(texts(0.0, 10.0, 5), ["0", "2", "4", "6", "8", "10"]);
        assert_eq!(texts(-0.13, 0.31, 5), ["-0.1", "0.0", "0.1", "0.2", "0.3"]);
        assert_eq!(texts(0.0, 3e9, 3), ["0", "1e9", "2e9", "3e9"]);
        assert_eq!(texts(1e-7, 3e-7, 4), ["1.0e-7", "1.5e-7", "2.0e-7", "2.5e-7", "3.0e-7"]);
        assert_eq!(texts(7.0, 7.0, 2), ["7"]);
        assert_eq!(texts(0.0, 0.0, 2), ["-1", "0", "1"]);
    }

    #[test]
    fn tick_count_is_bounded_for_extreme_ranges() {
        let extremes = [0.0, -1e300, 1e300, 1e-300, -1e-310, 5e-324, 1.0, 1.0 + 1e-13, -1.7e9, 1e15];
        for least in extremes {
            for most in extremes.into_iter().filter(|most| *most >= least) {
                let texts = texts(least, most, 6);
                assert!((1..=13).contains(&texts.len()), "{least}, {most}: {texts:?}");
                assert!(texts.iter().all(|text| text.len() < 24), "{least}, {most}: {texts:?}");
            }
        }
    }

    #[test]
    fn numbers_are_formatted_with_significant_digits_only() {
        let all = [0.0, -1.5, 1_234_567.0, 12_345_678.0, 0.1 + 0.2, 0.000_01, 1e300].map(number);
        assert_eq!(all, ["0", "-1.5", "1234567", "1.23457e7", "0.3", "1e-5", "1e300"]);
    }
}
