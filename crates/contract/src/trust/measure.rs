//! Measures for trust: shares of a whole, and quality.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;

/// The number is not in its range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no number from 0 to {most}")]
pub struct MeasureError {
    most: u32,
}

/// Number of steps of a measure.
const STEPS: u16 = 10_000;

macro_rules! measure {
    ($(#[$doc:meta])* $name:ident, $per_unit:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "f64", into = "f64")]
        pub struct $name(u16);

        impl $name {
            /// Minimum.
            pub const ZERO: Self = Self(0);
            /// Maximum.
            pub const MOST: Self = Self(STEPS);

            /// Creates a measure from a number of steps, capped at the maximum.
            pub fn from_steps(steps: u64) -> Self {
                u16::try_from(steps).map_or(Self::MOST, |steps| Self(steps.min(STEPS)))
            }

            /// Creates a measure from a whole number, capped at the maximum.
            pub const fn of_whole(wholes: u8) -> Self {
                let steps = wholes as u32 * $per_unit;
                if steps < STEPS as u32 { Self(steps as u16) } else { Self::MOST }
            }

            /// Returns the number of steps.
            pub fn steps(self) -> u64 {
                u64::from(self.0)
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "number", "minimum": 0, "maximum": u32::from(STEPS) / $per_unit })
            }
        }

        impl TryFrom<f64> for $name {
            type Error = MeasureError;

            /// Rounds down to a step, so that rounding never raises trust.
            fn try_from(number: f64) -> Result<Self, MeasureError> {
                let most = u32::from(STEPS) / $per_unit;
                if !(0.0..=f64::from(most)).contains(&number) {
                    return Err(MeasureError { most });
                }
                // A number that is a step, up to its precision, is rounded to that step; others are rounded down.
                let steps = number * f64::from($per_unit);
                let near = steps.round();
                let steps = if (steps - near).abs() < 1e-6 { near } else { steps.floor() };
                #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is within 0 and STEPS")]
                Ok(Self(steps as u16))
            }
        }

        impl From<$name> for f64 {
            fn from(measure: $name) -> Self {
                Self::from(measure.0) / Self::from($per_unit)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f64::from(*self).fmt(f)
            }
        }
    };
}

measure! {
    /// A share of a whole, from 0 to 1, in ten-thousandths.
    Share, 10_000_u32
}
measure! {
    /// Quality from 0 to 10, in thousandths.
    Quality, 1_000_u32
}
