//! Amounts of money in the reported digits, and their exact sums.

use serde::{Deserialize, Serialize};
use std::fmt;

/// An amount of money, in the very digits in which it was reported.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct Cost(String);

/// The text is no amount.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a decimal number from 0 on")]
pub struct ParseCostError;

/// An exact sum of amounts. Its text has no exponent, and no redundant zeros.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct CostTotal {
    /// Digits, the lowest first, without zeros at either end.
    digits: Vec<u8>,
    /// Power of ten of the lowest digit.
    exponent: i32,
}

/// Lowest power of ten of a cost's digits. No provider charges less, and sums stay short.
const LOWEST_EXPONENT: i32 = -400;

// === impl Cost ===

impl Cost {
    const LONGEST_BYTES: usize = 40;

    /// Parses a decimal number, perhaps with an exponent.
    ///
    /// # Errors
    /// [`ParseCostError`] for every other text, for infinite numbers, and for amounts with too many digits after the
    /// point.
    pub fn parse(text: &str) -> Result<Self, ParseCostError> {
        let begins_well = text.bytes().next().is_some_and(|byte| byte.is_ascii_digit());
        let is_finite = text.parse::<f64>().is_ok_and(f64::is_finite);
        let is_cost = text.len() <= Self::LONGEST_BYTES && begins_well && is_finite;
        let total = Some(text).filter(|_| is_cost).and_then(CostTotal::read).ok_or(ParseCostError)?;
        // Between zeros in front and an exponent behind, a number may be finite and its digits without end.
        if total.exponent < LOWEST_EXPONENT { Err(ParseCostError) } else { Ok(Self(text.to_owned())) }
    }

    /// The digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the number, independent of notation: `0.1` equals `1e-1`.
    pub fn to_total(&self) -> CostTotal {
        CostTotal::read(&self.0).unwrap_or_default()
    }
}

impl TryFrom<String> for Cost {
    type Error = ParseCostError;

    fn try_from(text: String) -> Result<Self, ParseCostError> {
        Self::parse(&text)
    }
}

impl From<Cost> for String {
    fn from(cost: Cost) -> Self {
        cost.0
    }
}

// === impl CostTotal ===

impl CostTotal {
    /// The longest text of a sum: the digits of the largest finite number, a point, and those down to [`LOWEST_EXPONENT`].
    const LONGEST_BYTES: usize = 1_024;

    /// Adds an amount.
    pub fn add(&mut self, cost: &Cost) {
        *self = self.plus(&cost.to_total());
    }

    /// Returns true if it is zero.
    pub fn is_zero(&self) -> bool {
        self.digits.is_empty()
    }

    /// Returns the nearest floating-point number, for comparisons only.
    pub fn to_f64(&self) -> f64 {
        self.to_string().parse().unwrap_or(f64::INFINITY)
    }

    /// Digits, perhaps a point and more of them, perhaps an exponent; the caller has seen that it is a number.
    fn read(text: &str) -> Option<Self> {
        let (mantissa, exponent) = match text.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
            None => (text, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits: Vec<u8> =
            whole.bytes().chain(fraction.bytes()).rev().map(|byte| byte.wrapping_sub(b'0')).collect();
        let exponent = exponent.checked_sub(i32::try_from(fraction.len()).ok()?)?;
        digits.iter().all(|digit| *digit < 10).then(|| Self { digits, exponent }.trimmed())
    }

    /// The amount in millionths of a dollar, rounded up; `u64::MAX` for more than that holds.
    pub fn micro_dollars(&self) -> u64 {
        const MICRO: i32 = -6;
        let digits = (MICRO..self.end()).rev().map(|power| u64::from(self.digit(power)));
        let micros = digits.fold(0_u64, |sum, digit| sum.saturating_mul(10).saturating_add(digit));
        match self.exponent < MICRO {
            true => micros.saturating_add(1),
            false => micros,
        }
    }

    fn plus(&self, other: &Self) -> Self {
        let (exponent, mut digits, mut carry) = (self.lowest(other), Vec::new(), 0);
        for at in exponent..self.end().max(other.end()) {
            let sum = self.digit(at) + other.digit(at) + carry;
            digits.push(sum % 10);
            carry = sum / 10;
        }
        digits.push(carry);
        Self { digits, exponent }.trimmed()
    }

    /// Returns the lower exponent of two numbers; a zero doesn't count.
    fn lowest(&self, other: &Self) -> i32 {
        match (self.is_zero(), other.is_zero()) {
            (true, _) => other.exponent,
            (_, true) => self.exponent,
            _ => self.exponent.min(other.exponent),
        }
    }

    /// Returns the power of ten above the highest digit.
    fn end(&self) -> i32 {
        self.exponent + i32::try_from(self.digits.len()).unwrap_or(i32::MAX)
    }

    fn digit(&self, power: i32) -> u8 {
        let at = usize::try_from(power - self.exponent).ok();
        at.and_then(|at| self.digits.get(at)).copied().unwrap_or_default()
    }

    fn trimmed(mut self) -> Self {
        while self.digits.last() == Some(&0) {
            self.digits.pop();
        }
        let zeros = self.digits.iter().take_while(|digit| **digit == 0).count();
        self.digits.drain(..zeros);
        self.exponent = match self.digits.is_empty() {
            true => 0,
            false => self.exponent.saturating_add(i32::try_from(zeros).unwrap_or(i32::MAX)),
        };
        self
    }
}

impl fmt::Display for CostTotal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digit = |power: i32| char::from(b'0' + self.digit(power));
        let whole: String = (0..self.end().max(1)).rev().map(digit).collect();
        f.write_str(&whole)?;
        if self.exponent < 0 {
            let fraction: String = (self.exponent..0).rev().map(digit).collect();
            write!(f, ".{fraction}")?;
        }
        Ok(())
    }
}

impl TryFrom<String> for CostTotal {
    type Error = ParseCostError;

    fn try_from(text: String) -> Result<Self, ParseCostError> {
        let is_plain = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let (whole, fraction) = text.split_once('.').unwrap_or((text.as_str(), "0"));
        let is_sum = text.len() <= Self::LONGEST_BYTES && is_plain(whole) && is_plain(fraction);
        Some(text.as_str()).filter(|_| is_sum).and_then(Self::read).ok_or(ParseCostError)
    }
}

impl From<CostTotal> for String {
    fn from(total: CostTotal) -> Self {
        total.to_string()
    }
}

impl<'c> FromIterator<&'c Cost> for CostTotal {
    fn from_iter<I: IntoIterator<Item = &'c Cost>>(costs: I) -> Self {
        let mut total = Self::default();
        costs.into_iter().for_each(|cost| total.add(cost));
        total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cost_total_round_trips_and_rejects_invalid_text() {
        let total: CostTotal = [Cost::parse("4e-7").unwrap(), Cost::parse("12.5").unwrap()].iter().collect();
        assert_eq!(total.to_string(), "12.5000004");
        assert_eq!(CostTotal::try_from(total.to_string()), Ok(total));
        assert_eq!(CostTotal::try_from("0".to_owned()), Ok(CostTotal::default()));
        for text in ["", ".", "1.", ".5", "-1", "1e3", "0.1.2", "abc", &"1".repeat(2_000)] {
            assert!(CostTotal::try_from(text.to_owned()).is_err(), "{text}");
        }
    }

    #[test]
    fn micro_dollars_are_exact_and_rounded_up() {
        for (text, micros) in [
            ("0", 0),
            ("0.000001", 1),
            ("1e-06", 1),
            ("0.0000001", 1),
            ("1e-300", 1),
            ("0.1", 100_000),
            ("2.5", 2_500_000),
            ("2.5000001", 2_500_001),
            ("1e3", 1_000_000_000),
            ("12345.678901", 12_345_678_901),
            ("1e300", u64::MAX),
        ] {
            assert_eq!(Cost::parse(text).unwrap().to_total().micro_dollars(), micros, "{text}");
        }
    }
}
