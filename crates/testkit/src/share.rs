//! The share of long counts that a run does: thousands of kills, seeds and changed bytes, of which CI does a part each day.
//!
//! `BELLJAR_SHARE=2/4` is the second quarter. Without it everything is done. `scripts/test` sets it by the day, prints it, and leaves
//! it away with `--long`. Every check is done in every run; what is shared out is how often, or with which seeds.

use std::ops::Range;

/// A part of all numbers, such as each fourth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// Counted from 0.
    index: u64,
    of: u64,
}

/// The variable that names the share.
const VARIABLE: &str = "BELLJAR_SHARE";

// === impl Share ===

impl Share {
    /// The share of this run.
    ///
    /// # Panics
    /// When the variable is set and names none.
    pub fn current() -> Self {
        let Ok(text) = std::env::var(VARIABLE) else { return Self { index: 0, of: 1 } };
        Self::parse(&text).unwrap_or_else(|| panic!("{VARIABLE} must be like 2/4, not {text:?}"))
    }

    fn parse(text: &str) -> Option<Self> {
        let (number, of) = text.split_once('/')?;
        let (number, of): (u64, u64) = (number.parse().ok()?, of.parse().ok()?);
        (1..=of).contains(&number).then(|| Self { index: number - 1, of })
    }

    /// Returns true if a number, counted from 0, is in the share. All shares together have each number once.
    pub fn includes(self, number: u64) -> bool {
        number % self.of == self.index
    }

    /// The share of a range of seeds.
    pub fn of_seeds(self, seeds: Range<u64>) -> Range<u64> {
        let length = seeds.end - seeds.start;
        let bound = |index| seeds.start + length * index / self.of;
        bound(self.index)..bound(self.index + 1)
    }

    /// Returns true if a number, counted from 0, is done in the given one of two ways (0 or 1) in this run. With
    /// shares, each way has a twelfth of the numbers in each run, and all of them in twelve. Without shares it has all.
    pub fn is_turn(self, way: u64, number: u64) -> bool {
        self.of == 1 || (number + 6 * way + self.index).is_multiple_of(12)
    }

    /// Returns the share's part of a number of repetitions, at least one.
    pub fn of_count(self, count: u64) -> u64 {
        count.div_ceil(self.of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_partition_all_numbers_without_overlap() {
        let shares = ["1/4", "2/4", "3/4", "4/4"].map(|text| Share::parse(text).unwrap());
        for number in 0..20 {
            assert_eq!(shares.iter().filter(|share| share.includes(number)).count(), 1, "{number}");
        }
        let seeds: Vec<u64> = shares.iter().flat_map(|share| share.of_seeds(5..107)).collect();
        assert_eq!(seeds, (5..107).collect::<Vec<_>>());
        assert_eq!(shares[2].of_count(10), 3);
        let shares: Vec<_> = (1..=12).map(|share| Share::parse(&format!("{share}/12")).unwrap()).collect();
        for (number, way) in (0..24).zip([0, 1].into_iter().cycle()) {
            assert_eq!(shares.iter().filter(|share| share.is_turn(way, number)).count(), 1, "{number}");
            assert!(shares.iter().all(|share| !(share.is_turn(0, number) && share.is_turn(1, number))));
        }
        let whole = Share::parse("1/1").unwrap();
        assert!(whole.is_turn(0, 3) && whole.is_turn(1, 3));
        assert_eq!(whole.of_seeds(0..9), 0..9);
        for wrong in ["", "0/4", "5/4", "1", "a/b", "1/0"] {
            assert_eq!(Share::parse(wrong), None, "{wrong}");
        }
    }
}
